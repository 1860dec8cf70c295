//! How far a program may have moved its playout point.
//!
//! Credit accrues at the contract's rate and is capped, so that a program that
//! paused cannot catch up on others' time (ABISS, section 2.3). Kept as an
//! anchor, not as a running sum, so that rounding never accumulates: byte `x`
//! after the anchor may pass at `anchor + (x - cap) / rate`.

use units::{Bytes, Duration, Instant, Rate};

/// Credit under one contract.
#[derive(Clone, Copy, Debug)]
pub struct Credit {
    rate: Rate,
    cap: Bytes,
    anchor: Instant,
    /// Bytes moved since the anchor.
    moved: Bytes,
}

impl Credit {
    /// Full credit at `now`.
    pub fn new(rate: Rate, cap: Bytes, now: Instant) -> Self {
        Self { rate, cap, anchor: now, moved: Bytes::ZERO }
    }

    /// The same credit under another rate and cap, from `now` on.
    pub fn changed(&self, rate: Rate, cap: Bytes, now: Instant) -> Self {
        let accrued = self.rate.bytes_in(now.saturating_since(self.anchor));
        let owed = self.moved.saturating_sub(accrued);
        let left = self.cap.saturating_sub(owed).min(cap);
        Self { rate, cap, anchor: now.max(self.anchor), moved: cap - left }
    }

    /// The credit that there is at `now`, to which nothing is added before `until`.
    pub fn held(&self, now: Instant, until: Instant) -> Self {
        Self { anchor: until.max(now), moved: self.cap - self.available(now), ..*self }
    }

    /// Full credit now, to which nothing is added before `at`.
    pub fn begin_at(&self, at: Instant) -> Self {
        Self { anchor: at, moved: Bytes::ZERO, ..*self }
    }

    /// When `len` more bytes may pass; at most the cap.
    pub fn when(&self, len: Bytes) -> Instant {
        debug_assert!(len <= self.cap);
        let beyond = (self.moved + len).saturating_sub(self.cap);
        if beyond.is_zero() {
            Instant::EPOCH
        } else {
            self.anchor.saturating_add(self.time(beyond))
        }
    }

    /// How many bytes may pass now; at most the cap.
    pub fn available(&self, now: Instant) -> Bytes {
        let accrued = self.rate.bytes_in(now.saturating_since(self.anchor));
        let all = self.cap.get().saturating_add(accrued.get());
        Bytes::new(all.saturating_sub(self.moved.get())).min(self.cap)
    }

    /// The most that may pass at once.
    pub fn cap(&self) -> Bytes {
        self.cap
    }

    /// `len` bytes pass at `now`.
    pub fn spend(&mut self, len: Bytes, now: Instant) {
        // Where the program is slower than its rate, credit beyond the cap is
        // forgotten: the anchor comes along.
        if now.saturating_since(self.anchor) > self.time(self.moved) {
            self.anchor = now;
            self.moved = Bytes::ZERO;
        }
        self.moved += len;
    }

    fn time(&self, len: Bytes) -> Duration {
        if len.is_zero() { Duration::ZERO } else { self.rate.time_for(len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate::per_second(1_000_000);
    const CAP: Bytes = Bytes::new(100_000);
    fn at(ms: u64) -> Instant {
        Instant::EPOCH + Duration::from_millis(ms)
    }

    #[test]
    fn a_burst_is_free_and_what_follows_comes_at_the_rate() {
        let mut credit = Credit::new(RATE, CAP, at(0));
        credit.spend(CAP, at(0));
        assert_eq!(credit.when(Bytes::new(50_000)), at(50));
        credit.spend(Bytes::new(50_000), at(50));
        assert_eq!(credit.when(CAP), at(150));
    }

    #[test]
    fn a_pause_saves_no_more_than_the_cap() {
        let mut credit = Credit::new(RATE, CAP, at(0));
        credit.spend(CAP, at(0));
        // After an hour, one cap at once and then the rate again.
        let later = 3_600_000;
        assert!(credit.when(CAP) <= at(later));
        credit.spend(CAP, at(later));
        assert_eq!(credit.when(CAP), at(later + 100));
    }

    #[test]
    fn what_may_pass_now_is_what_may_pass_by_now() {
        let mut credit = Credit::new(Rate::per_second(333_333), CAP, at(0)).begin_at(at(50));
        let mut seed = 1u64;
        let mut now = at(0);
        for _ in 0..10_000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            now += Duration::from_nanos(seed >> 37);
            let most = credit.available(now);
            assert!(credit.when(most) <= now);
            if most < CAP {
                assert!(credit.when(most + Bytes::new(1)) > now);
            }
            credit.spend(Bytes::new((seed >> 20) % (most.get() + 1)), now);
        }
    }

    #[test]
    fn rounding_does_not_add_up() {
        let rate = Rate::per_second(3);
        let mut credit = Credit::new(rate, Bytes::new(1), at(0));
        let mut now = at(0);
        for _ in 0..3_000 {
            credit.spend(Bytes::new(1), now);
            now = credit.when(Bytes::new(1));
        }
        assert_eq!(now, at(1_000_000), "3,000 bytes at 3 B/s");
    }
}
