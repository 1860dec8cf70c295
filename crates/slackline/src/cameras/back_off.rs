//! How long to wait before something is tried again: twice as long each time, up to a bound, and
//! not all cameras at the same moment. Long waits are for what gives nothing. Pure: chance is an argument.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct BackOff {
    least: Duration,
    most: Duration,
    next: Duration,
    /// The last wait, without chance.
    last: Duration,
}

/// Whatever gives something for so many times the least wait does well, however long was waited before.
const WELL: u32 = 10;

impl BackOff {
    /// From `least` to `most`.
    pub fn new((least, most): (Duration, Duration)) -> Self {
        Self { least, most, next: least, last: Duration::ZERO }
    }

    /// The wait before the next try: a quarter less or more by `chance`.
    pub fn wait(&mut self, chance: u64) -> Duration {
        let wait = self.next;
        self.last = wait;
        self.next = wait.saturating_mul(2).min(self.most);
        // From three quarters to five quarters.
        wait.saturating_mul(768 + (chance % 513) as u32) / 1024
    }

    /// It went well for so long: from the least again, where that is longer than the wait before it.
    pub fn went_well(&mut self, span: Duration) {
        if span > self.last.min(self.least.saturating_mul(WELL)) {
            self.next = self.least;
        }
    }

    /// From the least again.
    pub fn reset(&mut self) {
        self.next = self.least;
    }
}

/// Some number.
pub fn chance() -> u64 {
    RandomState::new().hash_one(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_doubles_up_to_its_bound_and_begins_anew_after_a_good_time() {
        let secs = Duration::from_secs;
        let mut back_off = BackOff::new((secs(1), secs(10)));
        // Chance 256 is in the middle.
        let waits: Vec<_> = (0..6).map(|_| back_off.wait(256)).collect();
        assert_eq!(waits, [1, 2, 4, 8, 10, 10].map(secs));
        back_off.went_well(secs(10));
        assert_eq!(back_off.wait(256), secs(10));
        back_off.went_well(secs(11));
        assert_eq!(back_off.wait(256), secs(1));
    }

    /// A camera that dropped its connection every 50 s was waited for a minute each time: it was off for more
    /// than half of the time.
    #[test]
    fn what_gives_something_again_and_again_is_waited_for_the_least() {
        let secs = Duration::from_secs;
        let mut back_off = BackOff::new((secs(1), secs(60)));
        for _ in 0..10 {
            back_off.went_well(secs(50));
            assert_eq!(back_off.wait(256), secs(1));
        }
        // Also after it was away for an hour.
        let waits: Vec<_> = (0..10).map(|_| back_off.wait(256)).collect();
        assert_eq!(waits.last(), Some(&secs(60)));
        back_off.went_well(secs(50));
        assert_eq!(back_off.wait(256), secs(1));
        // What ends at once is waited for longer and longer, though it gave something.
        for wait in [2, 4, 8, 16, 32, 60, 60] {
            back_off.went_well(secs(1));
            assert_eq!(back_off.wait(256), secs(wait));
        }
    }

    #[test]
    fn chance_is_a_quarter_to_both_sides() {
        let wait =
            |chance| BackOff::new((Duration::from_secs(4), Duration::from_secs(4))).wait(chance);
        let all: Vec<_> = (0..513).map(wait).collect();
        assert_eq!(all.iter().min(), Some(&Duration::from_secs(3)));
        assert_eq!(all.iter().max(), Some(&Duration::from_secs(5)));
        assert_ne!(chance(), chance());
    }
}
