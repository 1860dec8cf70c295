//! The pieces of a reader's shared window, told one after the other without an ask for each.
//!
//! Whoever is told a piece has the next asked for in the same section under the pool's lock,
//! so that a program's advance is all that takes the lock for itself. What is told lies here
//! until it is taken, in its order, under a lock of its own that nothing is done under.
//!
//! Invariant: at most one ask is with the node; there is none once [`MOST`] pieces lie here,
//! nor after an end or an error, until [`Pieces::ask`].

use crate::core::Core;
use crate::lock::Mutex;
use crate::reply::Told;
use node::{Error, StreamId, Who};
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use window::Kind;

/// Pieces that lie here at the most, and so are told in one section.
const MOST: usize = 8;

/// What a reader's shared window has to tell, in its order.
pub struct Pieces {
    core: Arc<Core>,
    who: Who,
    stream: StreamId,
    list: Mutex<List>,
    bell: Box<dyn Fn() + Send + Sync>,
}

#[derive(Default)]
struct List {
    told: VecDeque<Result<Told, Error>>,
    asked: bool,
}

impl Pieces {
    pub(crate) fn new(
        core: Arc<Core>,
        who: Who,
        stream: StreamId,
        bell: Box<dyn Fn() + Send + Sync>,
    ) -> Arc<Self> {
        Arc::new(Self { core, who, stream, list: Mutex::default(), bell })
    }

    /// Sees to it that pieces are told, from now on as they come to be in memory. Takes the
    /// pool's lock only where they had stopped: at the beginning, after an end or an error,
    /// and where several lay here unread.
    pub fn ask(self: &Arc<Self>) {
        let mut list = self.list.lock();
        if list.asked || list.told.len() >= MOST {
            return;
        }
        list.asked = true;
        drop(list);
        self.core.ask_for_pieces(self);
    }

    /// The next that was told, if any is left: [`Told`], or why there is none.
    pub fn take(&self) -> Option<Result<Told, Error>> {
        self.list.lock().told.pop_front()
    }

    pub(crate) fn who(&self) -> &Who {
        &self.who
    }

    pub(crate) fn stream(&self) -> StreamId {
        self.stream
    }

    /// Under the pool's lock, so that what is told is in its order. Says whether the next is
    /// to be asked for at once.
    pub(crate) fn tell(&self, told: Result<Told, Error>) -> bool {
        let goes_on = told.as_ref().is_ok_and(|told| told.piece.kind != Kind::End);
        let mut list = self.list.lock();
        list.told.push_back(told);
        list.asked = goes_on && list.told.len() < MOST;
        list.asked
    }

    /// Outside of the pool's lock: whoever takes them shall look.
    pub(crate) fn ring(&self) {
        (self.bell)();
    }
}

impl fmt::Debug for Pieces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pieces").field("stream", &self.stream).finish_non_exhaustive()
    }
}
