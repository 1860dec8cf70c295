//! Rings that give up what is old, also where there is room for it (`store`'s `giving_up.rs`).
//!
//! A pool with such a ring is looked through every [`limits::OLD_LOOK`], which asks no disk for
//! anything; what is found goes with the next commit. Where nobody has said what time it is, and while the
//! pool stops, nothing is given up for its age.
//!
//! Invariant: there is a next look as long as a ring has an age to keep to.

use crate::api::*;
use crate::limits;
use crate::node::Node;
use alloc::vec::Vec;
use store::{Volume, VolumeId};
use units::{Duration, Instant};

impl Node {
    /// The next look is at once, where a ring has an age to keep to; a node begins with it.
    pub(crate) fn look_for_old(&mut self, now: Instant) {
        let keeps = self.core.store.volumes().any(|volume| volume.keep().is_some());
        self.old_look = keeps.then_some(now);
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
        if self.is_ending() || self.old_look.is_none_or(|due| due > now) {
            return;
        }
        self.tell_time(now);
        let keeps = |volume: &&Volume| volume.keep().is_some();
        let rings: Vec<VolumeId> =
            self.core.store.volumes().filter(keeps).map(Volume::id).collect();
        let mut gave_up = 0;
        for &ring in &rings {
            if gave_up == limits::OLD_RINGS {
                break;
            }
            if let Some(range) = self.core.store.give_up_old(ring) {
                self.core.gave_up(now, ring, &range);
                gave_up += 1;
            }
        }
        // There may be more to give up: the next commit takes that.
        let soon = self.core.config.commit_interval.min(limits::OLD_LOOK);
        let next = if gave_up > 0 { soon } else { limits::OLD_LOOK };
        self.old_look = (!rings.is_empty()).then(|| now + next);
    }
}
