//! Whether a program is still there: what it was last heard to do, and what it said of a pause.
//!
//! A program that is stopped, or hangs, holds its contract against everybody else. It is told
//! from one that works by its silence: it neither moves its window, nor asks for anything, nor
//! has said before that it pauses (Clockwise thesis, section 5.4: a client shows regularly that
//! it lives, or loses its reservation). Whoever has asked for something and has had no answer is
//! not silent: it waits for the other side.
//!
//! Whoever keeps the time may stand still himself, mostly together with the program: a container that is
//! frozen, a virtual machine that is stopped. It sees that by the clock that goes on meanwhile, and the
//! program is given the limit anew.
//!
//! Invariant: a program that was heard less than `limit` ago, or is within the pause that it
//! announced, or waits for an answer, is not silent; neither is one in whose time nobody looked.

use units::{Duration, Instant};

/// The longest pause that a program can announce at once; it can announce another one.
pub const PAUSE_MAX: Duration = Duration::from_secs(24 * 3600);

/// Who looks at the clock so much later than he wanted has stood still.
pub const STOOD_STILL: Duration = Duration::from_secs(1);

/// What is known of one program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepAlive {
    /// A program may be silent for so long; zero: for ever.
    limit: Duration,
    until: Instant,
    waits: bool,
}

impl KeepAlive {
    /// A program that was heard just now.
    pub fn new(now: Instant, limit: Duration) -> Self {
        Self { limit, until: now.saturating_add(limit), waits: false }
    }

    /// It moved its window, or asked for something. A pause that it had announced is over.
    pub fn heard(&mut self, now: Instant) {
        self.until = now.saturating_add(self.limit);
    }

    /// It says that it will be silent for at most so long ([`PAUSE_MAX`] at the most), and then
    /// for as long as every program may be.
    pub fn pauses(&mut self, now: Instant, span: Duration) {
        self.until = now.saturating_add(span.min(PAUSE_MAX)).saturating_add(self.limit);
    }

    /// From now on it waits for an answer, or no longer does: it is given the limit anew.
    pub fn waits(&mut self, now: Instant, waits: bool) {
        if self.waits && !waits {
            self.until = self.until.max(now.saturating_add(self.limit));
        }
        self.waits = waits;
    }

    /// When it has been silent for too long if nothing is heard of it; none where it may be for
    /// ever, or waits for an answer.
    pub fn due(&self) -> Option<Instant> {
        let counts = !self.limit.is_zero() && !self.waits;
        counts.then_some(self.until)
    }

    /// True where it has been silent for too long, asked by who wanted to look when that is [due](Self::due).
    /// Where he looks [much later](STOOD_STILL), it is given the limit anew: its own time may have stood still,
    /// too.
    pub fn is_silent(&mut self, now: Instant) -> bool {
        let Some(due) = self.due().filter(|&due| now >= due) else { return false };
        let stood_still = now.saturating_since(due) > STOOD_STILL;
        if stood_still {
            self.heard(now);
        }
        !stood_still
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(300);

    fn at(secs: u64) -> Instant {
        Instant::EPOCH + Duration::from_secs(secs)
    }

    /// A player shows a film, is stopped by its user, and never goes on.
    #[test]
    fn who_is_silent_for_the_limit_is_found_and_no_sooner() {
        let mut alive = KeepAlive::new(at(0), LIMIT);
        for second in (0..3_000).step_by(250) {
            assert!(!alive.is_silent(at(second)), "{second}");
            alive.heard(at(second));
        }
        assert_eq!(alive.due(), Some(at(2_750 + 300)));
        assert!(!alive.is_silent(at(3_049)));
        assert!(alive.is_silent(at(3_050)));
    }

    /// Daemon and program were stopped for an hour, and when both went on, the daemon looked first: it took
    /// each contract whose program owed a word.
    #[test]
    fn who_looks_long_after_it_was_due_has_stood_still_and_gives_the_limit_anew() {
        let mut alive = KeepAlive::new(at(0), LIMIT);
        assert!(!alive.is_silent(at(3_600)));
        assert_eq!(alive.due(), Some(at(3_900)));
        assert!(!alive.is_silent(at(3_899)));
        assert!(alive.is_silent(at(3_901)), "as late as the machine may be");
        alive.heard(at(4_000));
        assert!(!alive.is_silent(at(4_302)) && alive.is_silent(at(4_602)), "stopped again");
        alive.waits(at(5_000), true);
        assert!(!alive.is_silent(at(9_000)));
    }

    #[test]
    fn a_pause_that_was_announced_holds_and_ends_with_the_next_sign_of_life() {
        let hour = Duration::from_secs(3_600);
        let mut alive = KeepAlive::new(at(0), LIMIT);
        alive.pauses(at(100), hour);
        assert!(!alive.is_silent(at(3_700)), "the end of the pause itself is not silence");
        assert!(alive.is_silent(at(4_000)));
        alive.pauses(at(100), hour);
        alive.heard(at(200));
        assert!(alive.is_silent(at(500)), "it went on");
        alive.pauses(at(500), Duration::ZERO);
        assert_eq!(alive.due(), Some(at(800)), "a pause of nothing is a sign of life");
        alive.pauses(at(0), Duration::from_secs(u64::MAX / 2_000_000_000));
        assert_eq!(alive.due(), Some(at(24 * 3_600 + 300)), "no pause is longer than a day");
    }

    /// A reader behind a writer waits for data for hours.
    #[test]
    fn who_waits_for_an_answer_is_not_silent_and_has_the_limit_anew_when_it_came() {
        let mut alive = KeepAlive::new(at(0), LIMIT);
        alive.waits(at(10), true);
        assert_eq!(alive.due(), None);
        assert!(!alive.is_silent(at(100_000)));
        alive.waits(at(100_000), false);
        assert_eq!(alive.due(), Some(at(100_300)));
        // A pause that was announced before is not cut short by an answer.
        alive.pauses(at(100_000), Duration::from_secs(1_000));
        alive.waits(at(100_001), true);
        alive.waits(at(100_002), false);
        assert_eq!(alive.due(), Some(at(101_300)));
    }

    #[test]
    fn without_a_limit_nobody_is_silent() {
        let mut alive = KeepAlive::new(at(0), Duration::ZERO);
        alive.pauses(at(1), Duration::from_secs(1));
        assert!(alive.due().is_none() && !alive.is_silent(at(1 << 30)));
    }
}
