//! How fast a program may go: its credit, under a contract that may change.
//!
//! A slower contract binds the program at once. A faster one it may use only from when the
//! window can follow; until then it has the smaller of both.

use crate::{Contract, Credit};
use units::{Bytes, Duration, Instant, Rate};

/// The pace of one program.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    credit: Credit,
    /// What the credit goes by.
    bound: Contract,
    /// A faster contract, for the program from then on.
    later: Option<(Instant, Contract)>,
}

impl Pace {
    /// All that the contract allows at once, at `now`.
    pub fn new(contract: &Contract, now: Instant) -> Self {
        let credit = Credit::new(contract.rate, contract.at_once(), now);
        Self { credit, bound: *contract, later: None }
    }

    /// All that the contract allows at once, and nothing on top of it before `at`.
    pub fn begin_at(contract: &Contract, now: Instant, at: Instant) -> Self {
        let Self { credit, bound, later } = Self::new(contract, now);
        Self { credit: credit.begin_at(at), bound, later }
    }

    /// Another contract, all of which holds from now on.
    pub fn change(&mut self, now: Instant, contract: &Contract) {
        self.later = None;
        self.set(now, contract);
    }

    /// Another contract: what it has less than the one before holds from now on, what it
    /// has more from `follows` on.
    pub fn change_later(&mut self, now: Instant, contract: &Contract, follows: Instant) {
        self.renew(now);
        let rate: Rate = contract.rate.min(self.bound.rate);
        let burst = contract.burst.min(self.bound.burst);
        let first = Contract { rate, burst, ..*contract };
        self.change(now, &first);
        if first != *contract {
            self.later = Some((follows, *contract));
        }
    }

    fn set(&mut self, now: Instant, contract: &Contract) {
        self.bound = *contract;
        self.credit = self.credit.changed(contract.rate, contract.at_once(), now);
    }

    /// A faster contract is made use of when its time has come.
    pub fn renew(&mut self, now: Instant) {
        if let Some((_, contract)) = self.later.take_if(|(from, _)| *from <= now) {
            self.set(now, &contract);
        }
    }

    /// What may pass now may pass; nothing is added to it before `until`.
    pub fn hold(&mut self, now: Instant, until: Instant) {
        self.credit = self.credit.held(now, until);
    }

    /// When `len` more bytes may pass, as far as is known now; at most what may pass at
    /// once is asked for.
    pub fn may_pass(&self, len: Bytes) -> Instant {
        let when = self.credit.when(len.min(self.credit.cap()));
        self.later.map_or(when, |(from, _)| when.min(from))
    }

    /// How many bytes may pass now.
    pub fn available(&self, now: Instant) -> Bytes {
        self.credit.available(now)
    }

    /// `len` bytes pass.
    pub fn spend(&mut self, len: Bytes, now: Instant) {
        self.credit.spend(len, now);
    }

    /// From when on a window of `blocks` can follow `contract`, whose first request is
    /// released at `begins`, where a request is released every `period` so far: all that
    /// was asked for before has come, and the window has been filled anew. Begun earlier,
    /// requests that follow would have their deadlines too late.
    pub fn follows(
        contract: &Contract,
        blocks: u64,
        begins: Instant,
        now: Instant,
        period: Duration,
    ) -> Instant {
        let filled = begins.saturating_add(contract.time_of(blocks));
        filled.max(now.saturating_add(period))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: Bytes = Bytes::kib(64);
    fn at(ms: u64) -> Instant {
        Instant::EPOCH + Duration::from_millis(ms)
    }
    fn contract(rate: u64, burst: Bytes) -> Contract {
        Contract { rate: Rate::per_second(rate), block: BLOCK, burst }
    }

    #[test]
    fn a_slower_contract_binds_at_once_and_a_faster_one_when_the_window_follows() {
        let mut pace = Pace::new(&contract(65_536, Bytes::ZERO), at(0));
        pace.spend(BLOCK, at(0));
        assert_eq!(pace.may_pass(BLOCK), at(1_000));
        pace.change_later(at(0), &contract(32_768, Bytes::ZERO), at(9_000));
        assert_eq!(pace.may_pass(BLOCK), at(2_000), "at half the rate, at once");
        pace.change_later(at(0), &contract(655_360, Bytes::mib(1)), at(1_500));
        assert_eq!(pace.may_pass(BLOCK), at(1_500), "looked at again when the window follows");
        pace.renew(at(1_499));
        assert!(pace.available(at(1_499)) < BLOCK, "the burst is not there yet");
        pace.renew(at(1_500));
        assert!(pace.available(at(1_500)) < Bytes::mib(1), "a larger burst fills at the rate");
        assert_eq!(pace.available(at(3_500)), Bytes::mib(1));
    }

    #[test]
    fn a_faster_contract_follows_when_what_was_asked_for_has_come_and_the_window_is_filled() {
        let fast = contract(65_536, Bytes::ZERO);
        let follows = |begins, period| {
            Pace::follows(&fast, 4, at(begins), at(100), Duration::from_millis(period))
        };
        assert_eq!(follows(500, 0), at(4_500));
        assert_eq!(follows(500, 10_000), at(10_100));
    }
}
