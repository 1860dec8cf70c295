//! The time in which a program had to make room in its socket: its own, and not the daemon's.
//!
//! Invariant: it begins where the socket is found full and ends where a byte goes in again. What
//! a thread of the daemon takes to come back to the socket meanwhile is in it, too: nobody tells
//! when there was room.

use units::Duration;

/// So much, from the beginning of a connection on.
#[derive(Default)]
pub(crate) struct MadeRoom {
    since: Option<std::time::Instant>,
    before: std::time::Duration,
}

impl MadeRoom {
    fn all(&self) -> std::time::Duration {
        self.before + self.since.map_or(std::time::Duration::ZERO, |since| since.elapsed())
    }

    /// So much by now.
    pub(crate) fn so_far(&self) -> Duration {
        Duration::from_nanos(u64::try_from(self.all().as_nanos()).unwrap_or(u64::MAX))
    }

    /// The socket was found full, or not.
    pub(crate) fn is(&mut self, full: bool) {
        match full {
            true => drop(self.since.get_or_insert_with(std::time::Instant::now)),
            false => *self = Self { since: None, before: self.all() },
        }
    }
}
