//! The ways in and out, as the loops see them: bytes in order, from a stream under
//! contract, from a volume as best effort, from a file.

use crate::error::Error;
use client::control::Stream;
use serde::Serialize;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;
use units::Bytes;

/// Bytes that are read in order.
pub trait Input: Send {
    /// Reads the next bytes; gives how many, fewer than `into` holds only at the end.
    ///
    /// # Errors
    /// What the storage refused.
    fn read(&mut self, into: &mut [u8]) -> Result<usize, Error>;

    /// Moves the playout point behind what was read.
    ///
    /// # Errors
    /// What the storage refused.
    fn move_playout(&mut self) -> Result<(), Error> {
        Ok(())
    }

    /// Ends it; under contract, gives the daemon's account.
    ///
    /// # Errors
    /// What the storage refused.
    fn close(self: Box<Self>) -> Result<Option<Account>, Error>;
}

/// Bytes that are written in order.
pub trait Output: Send {
    /// Hands over the next bytes; returns when the storage has taken them.
    ///
    /// # Errors
    /// What the storage refused.
    fn write(&mut self, from: &[u8]) -> Result<(), Error>;

    /// Moves the playout point behind what was written.
    ///
    /// # Errors
    /// What the storage refused.
    fn move_playout(&mut self) -> Result<(), Error> {
        Ok(())
    }

    /// Puts everything on the medium and ends it; under contract, gives the daemon's
    /// account.
    ///
    /// # Errors
    /// What the storage refused.
    fn close(self: Box<Self>) -> Result<Option<Account>, Error>;
}

/// The daemon's account of a stream under contract.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Account {
    /// Disk requests done.
    pub requests: u64,
    /// Those done after their deadline.
    pub late_requests: u64,
    /// The latest of them, after its deadline.
    pub late_max_ns: u64,
    /// Times that the program, within its rate, found the window not ready.
    pub underruns: u64,
    /// Times that the program was slowed to its rate.
    pub throttled: u64,
    /// Bytes given up as declared gaps.
    pub gap_bytes: u64,
    /// Memory of the window.
    pub window_bytes: u64,
    /// Whether the program has the window mapped.
    pub is_shared: bool,
}

impl Account {
    /// Of a stream as the daemon sees it.
    pub(crate) fn of(stream: &Stream, is_shared: bool) -> Self {
        Self {
            requests: stream.requests,
            late_requests: stream.late_requests,
            late_max_ns: stream.late_max_ns.as_nanos(),
            underruns: stream.underruns,
            throttled: stream.throttled,
            gap_bytes: stream.gap_bytes.get(),
            window_bytes: stream.window_bytes.get(),
            is_shared,
        }
    }
}

/// How far a writer is, for the reader that follows it where the storage does not tell.
#[derive(Debug, Default)]
pub struct Written {
    state: Mutex<(Bytes, bool)>,
    news: Condvar,
}

/// How long a follower waits before it looks for itself again.
const LOOK: Duration = Duration::from_secs(1);

impl Written {
    fn state(&self) -> MutexGuard<'_, (Bytes, bool)> {
        self.state.lock().expect("no thread panics while it holds the state")
    }

    /// Everything up to here can be read.
    pub fn upto(&self, end: Bytes) {
        let mut state = self.state();
        state.0 = state.0.max(end);
        self.news.notify_all();
    }

    /// Nothing more comes.
    pub fn end(&self) {
        self.state().1 = true;
        self.news.notify_all();
    }

    /// How far, and whether that is all.
    pub fn now(&self) -> (Bytes, bool) {
        *self.state()
    }

    /// Waits until everything up to `end` can be read, or nothing more comes.
    pub fn wait(&self, end: Bytes) {
        let mut state = self.state();
        while state.0 < end && !state.1 {
            let waited = self.news.wait_timeout(state, LOOK);
            state = waited.expect("no thread panics while it holds the state").0;
        }
    }
}
