//! Refusals wait here for the largest rate that would have fitted, one after the other, on a
//! thread that nobody else waits for: a search may take some seconds.
//!
//! Invariant: no more than [`WAITING_MAX`] wait, each with its copy of what admission saw.

use crate::callers::Callback;
use crate::on_disk::on_a_disks_thread;
use crate::sys;
use node::{Error, RateSearch};
use std::sync::OnceLock;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};

/// Whoever is refused while so many wait is told to try again.
const WAITING_MAX: usize = 64;

struct Refused {
    error: Error,
    search: Box<RateSearch>,
    callback: Callback,
}

/// The thread that searches, from the first refusal on. It ends when this is dropped and
/// all are answered.
#[derive(Default)]
pub(crate) struct Searches {
    thread: OnceLock<Option<SyncSender<Refused>>>,
}

impl Searches {
    /// Calls back with the refusal when the rate is found. Where no thread is to be had, it
    /// is searched for here.
    pub(crate) fn run(&self, error: Error, search: Box<RateSearch>, callback: Callback) {
        let refused = Refused { error, search, callback };
        #[cfg(test)]
        if crate::core::schedules::inside() {
            return refused.answer();
        }
        match self.thread.get_or_init(start) {
            Some(thread) => match thread.try_send(refused) {
                Ok(()) => {}
                Err(TrySendError::Full(refused)) => {
                    (refused.callback)(Err(Error::Busy { waiting: WAITING_MAX as u64 }));
                }
                Err(TrySendError::Disconnected(refused)) => refused.answer(),
            },
            // A disk's thread has no second for it: the refusal goes without the rate.
            None if on_a_disks_thread() => (refused.callback)(Err(refused.error)),
            None => refused.answer(),
        }
    }
}

fn start() -> Option<SyncSender<Refused>> {
    let (sender, refusals) = sync_channel::<Refused>(WAITING_MAX);
    let thread = std::thread::Builder::new().name("slackline-rates".into());
    let started = thread.spawn(move || {
        // A disk's thread may have started it. To have less is always permitted.
        let _ = sys::become_ordinary();
        refusals.into_iter().for_each(Refused::answer);
    });
    started.ok().map(|_| sender)
}

impl Refused {
    fn answer(mut self) {
        self.search.complete(&mut self.error);
        (self.callback)(Err(self.error));
    }
}
