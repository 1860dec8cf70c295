//! What happened to a stream since it was opened.

use units::{Bytes, Duration};

/// Counts of one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Account {
    /// Bytes moved by the program.
    pub moved: Bytes,
    /// Blocks that a disk has brought or taken, or failed on.
    pub requests: u64,
    /// Those done after their deadline, and answers that were late at the program.
    pub late_requests: u64,
    /// The most that one was late by.
    pub late_max: Duration,
    /// The longest time from the release of a request to its end.
    pub latency_max: Duration,
    /// Times that a program within its rate found the window not ready.
    pub underruns: u64,
    /// Times that a program was slowed to its rate.
    pub throttled: u64,
    /// Bytes that a reader or a writer moved beyond its rate, since its disks kept up.
    pub excess: Bytes,
    /// Bytes given up as declared gaps.
    pub gaps: Bytes,
    /// Of these, what a ring had given up before the program came there.
    pub overtaken: Bytes,
    /// Bytes of blocks that no disk was asked for, since another stream had just read or written
    /// them.
    pub from_memory: Bytes,
}

impl Account {
    /// A request has ended.
    pub fn ended(&mut self, late_by: Duration, latency: Duration) {
        self.requests += 1;
        self.late_requests += u64::from(!late_by.is_zero());
        self.late_max = self.late_max.max(late_by);
        self.latency_max = self.latency_max.max(latency);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_requests_are_those_beyond_their_deadline() {
        let mut account = Account::default();
        let ms = Duration::from_millis;
        for (late, latency) in [(0, 8), (3, 20), (1, 9), (0, 2)] {
            account.ended(ms(late), ms(latency));
        }
        assert_eq!((account.requests, account.late_requests), (4, 2));
        assert_eq!((account.late_max, account.latency_max), (ms(3), ms(20)));
    }
}
