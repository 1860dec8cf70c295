//! Whether the clock is believed where something would be given up for its age (`ages.rs`).
//!
//! A clock that was set forward is believed when it has stood for a while: until then somebody, or the
//! network, may set it right. At the start nobody knows where it was before; there it is compared with the
//! times by which the pool recorded.
//!
//! By how much it was set forward since it was believed last is known apart from the times for which the
//! machine slept: these have passed.
//!
//! Invariant: a clock that is set back to where it was is believed at once.

use crate::api::ClockDoubt;
use crate::limits::{CLOCK_AHEAD, CLOCK_JUMP, CLOCK_STANDS};
use alloc::vec::Vec;
use store::VolumeId;
use units::{Duration, Instant};

/// What is known of the rings' ages.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ages {
    /// When rings are looked through next.
    pub due: Option<Instant>,
    /// For how long the machine has slept, as far as its driver has said so.
    pub(super) slept: Duration,
    pub(super) trust: Trust,
    /// Rings that are to be told of a step of the clock.
    pub(super) to_tell: Vec<VolumeId>,
    pub(super) step: Option<Step>,
}

impl Ages {
    /// Why the clock is not believed now.
    pub(crate) fn doubt(&self, now: Instant) -> Option<ClockDoubt> {
        self.trust.doubt(now)
    }
}

/// Whether the clock is believed; see the module.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Trust {
    /// What time it was at the epoch when that was looked at last.
    epoch: Option<i64>,
    /// For how long the machine had slept then.
    slept: Duration,
    doubt: Option<ClockDoubt>,
    /// By how much it was set forward since it was believed last, as far as that was seen.
    stepped: i64,
}

/// A clock at a look.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    /// What time it is, in nanoseconds since 1970,
    pub time: i64,
    /// and was at the epoch, by that.
    pub epoch: i64,
    /// For how long the machine has slept.
    pub slept: Duration,
}

/// The clock was set to another time, as was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// Whoever noted a time before this did so before it was set.
    pub until: i64,
    /// By how much it was set forward since it was believed last; zero where it is back.
    pub by: i64,
}

impl Trust {
    /// Why it is not believed now.
    pub(crate) fn doubt(&self, now: Instant) -> Option<ClockDoubt> {
        self.doubt.filter(|doubt| doubt.until > now)
    }

    /// Looks at the clock of now. At the first look, how far it is ahead of what was `recorded` is asked
    /// for. Says so where it was set to another time than at the look before.
    pub(crate) fn look(
        &mut self,
        now: Instant,
        Clock { time, epoch, slept }: Clock,
        recorded: impl FnOnce() -> i64,
    ) -> Option<Step> {
        let nanos = |time: Duration| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
        let jump = nanos(CLOCK_JUMP);
        let slept = nanos(slept.saturating_sub(core::mem::replace(&mut self.slept, slept)));
        let before = self.epoch.replace(epoch);
        let (moved, most) = match before {
            None => (recorded(), CLOCK_AHEAD + CLOCK_STANDS),
            Some(before) => (epoch.saturating_sub(before), CLOCK_JUMP),
        };
        if moved.saturating_abs() <= nanos(most) {
            return None;
        }
        let since_believed = self.doubt(now).map_or(0, |_| self.stepped);
        let ahead = self.doubt(now).map_or(0, |doubt| nanos(doubt.ahead)).saturating_add(moved);
        self.doubt = (ahead > jump).then(|| ClockDoubt {
            ahead: Duration::from_nanos(ahead.unsigned_abs()),
            until: now.saturating_add(CLOCK_STANDS),
        });
        before?;
        let moved = moved.saturating_sub(slept);
        if moved.saturating_abs() <= jump {
            return None;
        }
        self.stepped = match self.doubt {
            None => 0,
            // By a clock that was plainly wrong nothing has a time.
            Some(_) if time.saturating_sub(moved) < store::CLOCKS_FROM => since_believed,
            Some(_) => since_believed.saturating_add(moved),
        };
        let by = if self.stepped > jump { self.stepped } else { 0 };
        // What was noted since then was so between two looks.
        let back = if moved > 0 { by.min(moved) } else { by };
        Some(Step { until: time.saturating_sub(back / 2), by })
    }
}
