//! Who waits for which operation.
//!
//! Invariant: every ticket that is with the node has exactly one entry here,
//! except [`NOBODY`], and leaves with the operation's end.

use crate::{Pieces, Reply};
use node::{Error, Mode, Region, StreamId, Ticket};
use std::sync::Arc;
use window::Memory;

/// Called once, with the end of an operation.
pub(crate) type Callback = Box<dyn FnOnce(Result<Reply, Error>) + Send>;

/// The ticket of operations whose end nobody waits for.
pub(crate) const NOBODY: Ticket = Ticket(u64::MAX);

/// One waiting caller.
pub(crate) struct Caller {
    pub callback: Callback,
    /// The stream whose memory the operation asks for, if it does.
    pub stream: Option<StreamId>,
    /// What the operation has to do with a shared window, if it has.
    pub about: Option<About>,
}

/// What an operation has to do with a shared window.
pub(crate) enum About {
    /// Opens a stream with its window in this region.
    Open(Region, Arc<Memory>, Mode),
    /// Asks for the next piece of it.
    Next(StreamId),
    /// Asks for the next of a reader's, and then for those that follow.
    Pieces(Arc<Pieces>),
    /// The stream's seek of this number.
    Seek(u64),
    /// Closes the stream.
    Close(StreamId),
}

/// All waiting callers, found by ticket.
#[derive(Default)]
pub(crate) struct Callers {
    slots: Vec<Option<Caller>>,
    free: Vec<usize>,
}

impl Callers {
    /// Takes a caller in, and gives the ticket to ask the node with.
    pub(crate) fn insert(&mut self, caller: Caller) -> Ticket {
        let at = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        self.slots[at] = Some(caller);
        Ticket(at as u64)
    }

    /// The caller with this ticket, whose operation has ended.
    pub(crate) fn remove(&mut self, ticket: Ticket) -> Caller {
        let at = ticket.0 as usize;
        let caller = self.slots[at].take().expect("an operation ends once");
        self.free.push(at);
        caller
    }

    /// How many wait.
    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.slots.iter().flatten().count()
    }

    /// Everybody who still waits.
    pub(crate) fn drain(&mut self) -> Vec<Caller> {
        self.free.clear();
        self.slots.drain(..).flatten().collect()
    }
}
