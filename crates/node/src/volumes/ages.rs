//! Rings that give up what is old, also where there is room for it (`store`'s `giving_up.rs`).
//!
//! A pool with such a ring is looked through every [`limits::OLD_LOOK`], which asks no disk for
//! anything; what is found goes with the next commit. Where nobody has said what time it is, and while the
//! pool stops, nothing is given up for its age.
//!
//! A clock that is a month ahead for a minute would make everything a month older, and all of it would be
//! gone (`trust.rs`). One that was a month behind, and is set right, would do the same to what it noted
//! meanwhile: each ring of the pool is told of the step at once, and it is durable long before anything is
//! given up by the clock as it is then (`store`'s `stepped.rs`). If the clock is set back, that is taken
//! back.
//!
//! Invariants: there is a next look as long as a ring has an age to keep to; nothing is given up for its age
//! while the clock is in doubt, nor before all rings were told of its last step.

use crate::api::*;
use crate::limits::{self, CLOCK_STANDS};
use crate::node::Node;
use crate::volumes::trust::{Clock, Step};
use alloc::vec::Vec;
use store::{Volume, VolumeId};
use units::{Duration, Instant};

impl Node {
    /// For how long the machine has slept so far: its clock has gone on meanwhile, and the one that only
    /// counts has not. It is said before [`Node::set_wall_clock`] says what time it is.
    pub fn set_slept(&mut self, slept: Duration) {
        self.ages.slept = slept;
    }

    /// Looks whether the clock is to be believed.
    fn look_at_clock(&mut self, now: Instant) {
        let (Some(epoch), Some(clock)) = (self.wall_clock, self.core.store.clock()) else { return };
        // What was recorded within the last hour may have been by a clock that was wrong already.
        let stood = i64::try_from(CLOCK_STANDS.as_nanos()).unwrap_or(i64::MAX);
        let volumes = self.core.store.volumes();
        let recorded = || {
            let before = clock.saturating_sub(stood);
            let latest = volumes.filter_map(|volume| volume.recorded().latest_before(before)).max();
            // Where nothing is as old as that, nothing is lost.
            latest.map_or(0, |latest| clock.saturating_sub(latest))
        };
        let slept = self.ages.slept;
        let step = self.ages.trust.look(now, Clock { time: clock, epoch, slept }, recorded);
        if step.is_some() {
            let rings = self.core.store.volumes().filter(|volume| volume.is_ring());
            self.ages.to_tell = rings.map(Volume::id).collect();
            self.ages.step = step;
        }
    }

    /// A step of which all rings were told, and that the clock stands by, stays: the next one is another.
    fn leave_step(&mut self, now: Instant) {
        let stands = self.ages.to_tell.is_empty() && self.ages.trust.doubt(now).is_none();
        if self.ages.step.take_if(|_| stands).is_some() {
            self.core.store.steps_stand();
        }
    }

    /// Tells some rings of the step of the clock: so many as a record of the log has room for.
    fn tell_of_step(&mut self, now: Instant) {
        let Some(Step { until, by }) = self.ages.step else { return };
        for _ in 0..limits::OLD_RINGS {
            let Some(ring) = self.ages.to_tell.pop() else { break };
            if self.core.store.note_step(ring, until, by) {
                self.core.changed(now);
            }
        }
    }

    /// The next look is at once, where a ring has an age to keep to; a node begins with it.
    pub(crate) fn look_for_old(&mut self, now: Instant) {
        let keeps = self.core.store.volumes().any(|volume| volume.keep().is_some());
        self.ages.due = keeps.then_some(now);
        self.core.wake_timers();
    }

    /// Whether a ring may keep what it has for so long.
    pub(crate) fn check_keep(keep: Option<Duration>) -> Result<(), Error> {
        keep.map_or(Ok(0), store::keep_seconds).map(drop).map_err(Error::from)
    }

    pub(crate) fn keep_for(
        &mut self,
        now: Instant,
        name: &str,
        keep: Option<Duration>,
    ) -> Result<(), Error> {
        let volume = self.find(name)?;
        self.core.store.keep_for(volume, keep)?;
        self.look_for_old(now);
        Ok(())
    }

    /// Gives up what is too old by now, where it is time to look.
    pub(crate) fn give_up_old(&mut self, now: Instant) {
        if self.is_ending() || self.ages.due.is_none_or(|due| due > now) {
            return;
        }
        self.tell_time(now);
        self.leave_step(now);
        self.look_at_clock(now);
        self.tell_of_step(now);
        let keeps = |volume: &&Volume| volume.keep().is_some();
        let rings: Vec<VolumeId> =
            self.core.store.volumes().filter(keeps).map(Volume::id).collect();
        let is_told = self.ages.to_tell.is_empty();
        let mut gave_up = 0;
        for &ring in &rings {
            if gave_up == limits::OLD_RINGS || !is_told || self.ages.trust.doubt(now).is_some() {
                break;
            }
            if let Some(range) = self.core.store.give_up_old(ring) {
                self.core.gave_up(now, ring, &range);
                gave_up += 1;
            }
        }
        // There may be more to give up, or to tell: the next commit takes that.
        let soon = self.core.config.commit_interval.min(limits::OLD_LOOK);
        let next = if gave_up > 0 || !is_told { soon } else { limits::OLD_LOOK };
        self.ages.due = (!rings.is_empty()).then(|| now + next);
    }
}
