//! Whether the clock is believed where something would be given up for its age (`ages.rs`).
//!
//! A clock that was set forward is believed when it has stood for a while: until then somebody, or the
//! network, may set it right. At the start nobody knows where it was before; there it is compared with the
//! times by which the pool recorded.
//!
//! Invariant: a clock that is set back to where it was is believed at once.

use crate::api::ClockDoubt;
use crate::limits::{CLOCK_AHEAD, CLOCK_JUMP, CLOCK_STANDS};
use units::{Duration, Instant};

/// Whether the clock is believed; see the module.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Trust {
    /// What time it was at the epoch when that was looked at last.
    epoch: Option<i64>,
    doubt: Option<ClockDoubt>,
}

impl Trust {
    /// Why it is not believed now.
    pub(crate) fn doubt(&self, now: Instant) -> Option<ClockDoubt> {
        self.doubt.filter(|doubt| doubt.until > now)
    }

    /// By the clock of now it was this time at the epoch. At the first look, how far that is ahead of
    /// what was `recorded` is asked for.
    pub(crate) fn look(&mut self, now: Instant, epoch: i64, recorded: impl FnOnce() -> i64) {
        let (moved, most) = match self.epoch.replace(epoch) {
            None => (recorded(), CLOCK_AHEAD + CLOCK_STANDS),
            Some(before) => (epoch.saturating_sub(before), CLOCK_JUMP),
        };
        let nanos = |time: Duration| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
        if moved.saturating_abs() <= nanos(most) {
            return;
        }
        let before = self.doubt(now).map_or(0, |doubt| nanos(doubt.ahead));
        let ahead = before.saturating_add(moved);
        self.doubt = (ahead > nanos(CLOCK_JUMP)).then(|| ClockDoubt {
            ahead: Duration::from_nanos(ahead.unsigned_abs()),
            until: now.saturating_add(CLOCK_STANDS),
        });
    }
}
