//! The programs of a one-disk world at work.

use super::place;
use super::plans::{Arrivals, LoadPlan, Pace, StreamPlan};
use crate::Random;
use sched::TaskId;
use units::{Access, Duration, Instant, Lba};

/// A stream at work.
pub(super) struct Stream {
    /// None once it has left.
    pub id: Option<TaskId>,
    pub outstanding: u64,
    /// It is in the agenda.
    pub is_scheduled: bool,
    plan: StreamPlan,
    period: Duration,
    /// When it would have asked without jitter.
    due: Instant,
    cursor: Lba,
}

impl Stream {
    pub(super) fn new(
        id: TaskId,
        plan: StreamPlan,
        period: Duration,
        first: Instant,
        random: &mut Random,
    ) -> Self {
        let cursor = start(&plan.places.range(), plan.block, random);
        Self { id: Some(id), outstanding: 0, is_scheduled: true, plan, period, due: first, cursor }
    }

    pub(super) fn is_eager(&self) -> bool {
        matches!(self.plan.pace, Pace::Eager(_))
    }

    pub(super) fn next_access(&mut self, random: &mut Random) -> Access {
        let lba = place(&self.plan.places, &mut self.cursor, self.plan.block, random);
        Access { lba, len: self.plan.block, direction: self.plan.direction }
    }

    /// When it asks again; none where it does so when it is answered.
    pub(super) fn next_ask(&mut self, now: Instant, random: &mut Random) -> Option<Instant> {
        match self.plan.pace {
            Pace::Steady => self.due += self.period,
            Pace::Jitter(most) => {
                self.due += self.period;
                return Some((self.due + random.span(most)).max(now));
            }
            Pace::Variable(percent) => {
                let least = self.period / 100 * (100 - percent);
                self.due += least + random.span(self.period / 100 * (3 * percent));
            }
            Pace::Eager(most) => return (self.outstanding < most).then_some(now),
        }
        Some(self.due)
    }
}

/// A load at work.
pub(super) struct Load {
    pub plan: LoadPlan,
    pub outstanding: u64,
    cursor: Lba,
}

impl Load {
    pub(super) fn new(plan: LoadPlan, random: &mut Random) -> Self {
        let cursor = start(&plan.places.range(), plan.size, random);
        Self { plan, outstanding: 0, cursor }
    }

    /// It asks again when it is answered, not at a time.
    pub(super) fn is_closed(&self) -> bool {
        matches!(self.plan.arrivals, Arrivals::Greedy(_) | Arrivals::Adversary(_))
    }

    /// When it begins.
    pub(super) fn first(&self, now: Instant, random: &mut Random) -> Instant {
        self.next_burst(now, random).unwrap_or(now)
    }

    /// How many requests it makes now.
    pub(super) fn burst(&self, random: &mut Random) -> u64 {
        match self.plan.arrivals {
            Arrivals::Poisson(_) => 1,
            Arrivals::Bursts { most, .. } => random.between(1, most),
            Arrivals::Greedy(most) | Arrivals::Adversary(most) => {
                most.saturating_sub(self.outstanding)
            }
        }
    }

    pub(super) fn next_burst(&self, now: Instant, random: &mut Random) -> Option<Instant> {
        match self.plan.arrivals {
            Arrivals::Poisson(apart) | Arrivals::Bursts { apart, .. } => {
                Some(now + random.exponential(apart).max(Duration::from_nanos(1)))
            }
            Arrivals::Greedy(_) | Arrivals::Adversary(_) => None,
        }
    }

    pub(super) fn next_access(&mut self, random: &mut Random) -> Access {
        let lba = place(&self.plan.places, &mut self.cursor, self.plan.size, random);
        Access { lba, len: self.plan.size, direction: self.plan.direction }
    }
}

/// Where a sequence begins: at a whole block of the range.
fn start(range: &core::ops::Range<Lba>, block: units::Bytes, random: &mut Random) -> Lba {
    let sectors = block.div_ceil(units::SECTOR);
    let blocks = range.start.distance(range.end) / sectors;
    Lba::new(range.start.get() + random.below(blocks.max(1)) * sectors)
}
