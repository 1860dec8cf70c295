//! Recordings that fill their blocks slowly: what they hand over is on the medium some seconds later all
//! the same, since they ask for a sync where no block does it.

use std::time::{Duration, Instant};
use units::Bytes;

/// What was handed over is on the medium after so long, and a commit, though it fills no block.
pub const DURABLE_WITHIN: Duration = Duration::from_secs(10);

/// When a writer has to ask for a sync.
pub struct Due {
    /// Nothing has become durable since then, though something was handed over.
    since: Instant,
    durable: Bytes,
}

impl Due {
    /// For a writer that has handed nothing over yet.
    pub fn new(now: Instant, durable: Bytes) -> Self {
        Self { since: now, durable }
    }

    /// Whether a sync is due: everything before `durable` is on the medium, and `waits` says whether
    /// something behind it was handed over.
    pub fn is_due(&mut self, now: Instant, durable: Bytes, waits: bool) -> bool {
        if !waits || durable > self.durable {
            *self = Self::new(now, durable);
        }
        now.saturating_duration_since(self.since) >= DURABLE_WITHIN
    }

    /// A sync was asked for; everything before `durable` is on the medium so far.
    pub fn asked(&mut self, now: Instant, durable: Bytes) {
        *self = Self::new(now, durable);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sync_is_due_where_nothing_has_become_durable_for_long_though_something_waits() {
        let began = Instant::now();
        let at = |secs| began + Duration::from_secs(secs);
        let mut due = Due::new(began, Bytes::new(5));
        assert!(!due.is_due(at(60), Bytes::new(5), false), "nothing waits");
        assert!(!due.is_due(at(69), Bytes::new(5), true));
        assert!(due.is_due(at(70), Bytes::new(5), true));
        due.asked(at(70), Bytes::new(5));
        assert!(!due.is_due(at(79), Bytes::new(5), true), "once in that time");
        assert!(!due.is_due(at(80), Bytes::new(9), true), "a block was full");
        assert!(due.is_due(at(90), Bytes::new(9), true));
    }
}
