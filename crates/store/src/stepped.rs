//! Rings that were recorded by a clock which was behind, and was then set forward.
//!
//! What such a clock noted looks older than it is by the step: as soon as the clock is believed again, a
//! ring that keeps things for less than that would give up what was recorded an hour ago. So the step is
//! kept with the ring, and its age is reckoned with it. The times themselves stay as they were noted: the
//! step may have been one of a machine that stood still, and then they were right.
//!
//! A ring has one step. Two of the same opening add up, since what was recorded before the first is off by
//! both; of steps of several openings, between which the clock may have been right, the largest counts for
//! all that was recorded from the first of them on. So a ring may keep things for longer than it should, by
//! no more than its step, and not for a shorter time.
//!
//! Invariants: only what was recorded since the pool was opened begins a step; a step that nothing of the
//! ring is concerned by any more is forgotten with the next one.

use crate::api::VolumeId;
use crate::change::Change;
use crate::recorded::{Point, Reckoning, Recorded, Stepped};
use crate::state::State;
use crate::store::Store;
use crate::volume::Volume;
use units::Bytes;

/// A clock that says an earlier time is wrong, in nanoseconds since 1970: the beginning of 2026. No program
/// noted times of recordings before.
pub const CLOCKS_FROM: i64 = 1_767_225_600_000_000_000;

impl State {
    /// The age of what a ring holds is reckoned with this step.
    pub(crate) fn step(&mut self, id: VolumeId, stepped: Stepped) -> Result<(), &'static str> {
        let volume = self.volumes.get_mut(&id).filter(|volume| volume.is_ring());
        let volume = volume.ok_or("a clock is set by which no ring is recorded")?;
        volume.stepped = (stepped.by > 0).then_some(stepped);
        Ok(())
    }
}

impl Recorded {
    /// A step concerns something of what is held from `start` on.
    fn has_of(&self, stepped: &Stepped, start: Bytes) -> bool {
        let mut lines = self.held(start).filter(|(_, b)| b.block > stepped.first);
        lines.any(|(a, b)| stepped.is_of(a.at.min(b.at)))
    }
}

impl Store {
    /// The clock has been set forward by `by`: what was recorded to a ring since the pool was opened, and
    /// noted with times before `until`, counts as so much younger, durably with the next commit; both in
    /// nanoseconds, `until` since 1970. Takes the place of what was said since the last
    /// [`Store::steps_stand`]; where `by` is nothing, the clock is back where it was. True where something
    /// has changed. Nothing is said where the metadata of the pool are full.
    pub fn note_step(&mut self, id: VolumeId, until: i64, by: i64) -> bool {
        let Some(volume) = self.state.volumes.get(&id).filter(|volume| volume.is_ring()) else {
            return false;
        };
        let Some(noted) = self.recording.0.get_mut(&id) else { return false };
        let Some(first) = noted.clocked.first else { return false };
        let held = volume.stepped.filter(|old| {
            volume.recorded.has_of(old, volume.start()) || noted.arrivals().any(|at| old.is_of(at))
        });
        let clocked = &mut noted.clocked;
        let stepped = match u64::try_from(by / NANOS).ok().filter(|&by| by > 0) {
            None => clocked.before.take().unwrap_or(volume.stepped),
            Some(by) => {
                let until = Point::new(Bytes::ZERO, until).at;
                let before = *clocked.before.get_or_insert(held);
                Some(Stepped { first, until, by }.after(before, clocked.has_step))
            }
        };
        if stepped == volume.stepped || self.room_for(0) == 0 {
            return false;
        }
        let stepped = stepped.unwrap_or(Stepped { first: 0, until: 0, by: 0 });
        self.stage(Change::Stepped { volume: id, stepped });
        true
    }

    /// The clock stands: the steps that were noted stay.
    pub fn steps_stand(&mut self) {
        for noted in self.recording.0.values_mut() {
            noted.clocked.has_step |= noted.clocked.before.take().is_some();
        }
    }
}

impl Volume {
    /// Up to where a ring was recorded before a time, in nanoseconds since 1970
    /// ([`Recorded::recorded_before`]), with the step of its clock.
    pub(crate) fn recorded_before(&self, time: i64) -> Bytes {
        let reckoning = Reckoning { known: CLOCKS_FROM, stepped: self.stepped.as_ref() };
        self.recorded.recorded_before(time, reckoning)
    }
}

const NANOS: i64 = 1_000_000;
