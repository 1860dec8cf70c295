//! What a program waits for.

use crate::Account;
use units::{Bytes, Instant};

/// A program waits for the next bytes, or for room for them.
#[derive(Clone, Copy, Debug)]
pub struct Ask<T> {
    /// What the answer goes back with.
    pub ticket: T,
    /// It takes no more than this at once.
    pub len_max: Bytes,
    /// Counted as slowed to its rate.
    is_throttled: bool,
    /// When it was first within its rate and found the window not ready.
    starved_since: Option<Instant>,
}

impl<T> Ask<T> {
    /// Nothing has kept it waiting yet.
    pub fn new(ticket: T, len_max: Bytes) -> Self {
        Self { ticket, len_max, is_throttled: false, starved_since: None }
    }

    /// The rate keeps it waiting: counted once.
    pub fn throttle(&mut self, account: &mut Account) {
        account.throttled += u64::from(!self.is_throttled);
        self.is_throttled = true;
    }

    /// The window keeps it waiting: counted once, where that `counts`.
    pub fn starve(&mut self, now: Instant, counts: bool, account: &mut Account) {
        if self.starved_since.is_none() {
            self.starved_since = Some(now);
            account.underruns += u64::from(counts);
        }
    }

    /// Since when the window keeps it waiting, if it does.
    pub fn starved_since(&self) -> Option<Instant> {
        self.starved_since
    }

    /// What kept it waiting is no more: it asks for something else.
    pub fn begin_anew(&mut self) {
        (self.is_throttled, self.starved_since) = (false, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Duration;

    #[test]
    fn each_ask_counts_once_for_each_reason() {
        let (mut account, mut ask) = (Account::default(), Ask::new(1, Bytes::MIB));
        let at = |ms| Instant::EPOCH + Duration::from_millis(ms);
        for ms in [3, 5, 7] {
            ask.throttle(&mut account);
            ask.starve(at(ms), true, &mut account);
        }
        assert_eq!((account.throttled, account.underruns), (1, 1));
        assert_eq!(ask.starved_since(), Some(at(3)));
        ask.begin_anew();
        assert_eq!(ask.starved_since(), None);
        ask.throttle(&mut account);
        ask.starve(at(9), false, &mut account);
        assert_eq!((account.throttled, account.underruns), (2, 1), "a wait that does not count");
        assert_eq!(ask.starved_since(), Some(at(9)));
    }
}
