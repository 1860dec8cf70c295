//! Requests that the device has begun with, and since when it has which command.
//!
//! Invariant: it has exactly the requests of which the queue has given the device a command, and that have
//! not ended.

use alloc::vec::Vec;
use units::Instant;

/// In no order; mostly as many as the device has at a time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Begun(Vec<Request>);

#[derive(Clone, Copy, Debug)]
struct Request {
    key: u64,
    /// Since when the device has a command of it; none where the queue is to give it the next.
    given: Option<Instant>,
}

impl Begun {
    /// The device is given a command of this request.
    pub(crate) fn given(&mut self, key: u64, now: Instant) {
        let given = Some(now);
        match self.0.iter_mut().find(|one| one.key == key) {
            Some(one) => one.given = given,
            None => self.0.push(Request { key, given }),
        }
    }

    /// That command has ended, and another one of the request follows.
    pub(crate) fn goes_on(&mut self, key: u64) {
        if let Some(one) = self.0.iter_mut().find(|one| one.key == key) {
            one.given = None;
        }
    }

    /// The request has ended, or is dropped. Says whether it was begun with.
    pub(crate) fn ended(&mut self, key: u64) -> bool {
        let at = self.0.iter().position(|one| one.key == key);
        at.map(|at| self.0.swap_remove(at)).is_some()
    }

    /// The request of the command that the device has had for longest, and since when.
    pub(crate) fn oldest(&self) -> Option<(Instant, u64)> {
        self.0.iter().filter_map(|one| Some((one.given?, one.key))).min()
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = u64> {
        self.0.iter().map(|one| one.key)
    }
}
