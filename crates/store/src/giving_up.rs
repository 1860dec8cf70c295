//! Rings are made, and give up extents (`ring.rs`).
//!
//! A ring gives its extents up in memory at once and durably with the next commit; until that is
//! durable nothing is written to their places ([`Store::writable_end`]). It costs no transfer of its
//! own: a record has one change for each ring that gave up something since the last.

use crate::api::{DiskIndex, EXTENT, Ownership, Placement, VolumeId};
use crate::change::Change;
use crate::error::StoreError;
use crate::ring::{END_MAX, GRAIN, RING_GRAIN};
use crate::runs::Freed;
use crate::state::State;
use crate::store::Store;
use crate::volume::Volume;
use core::ops::Range;
use units::{Bytes, Duration};

/// The shortest time that a ring keeps what is recorded.
const KEEP_MIN: Duration = Duration::from_secs(1);
/// The longest: 36 years, in seconds.
const KEEP_MAX: u32 = 1_152_921_504;

/// What a ring gives up for its age at a time, 16,384 extents: each is forgotten by itself, and whoever
/// wants something of the pool waits for that.
const GIVEN_UP_MAX: Bytes = Bytes::new(16 << 30);

/// For how many whole seconds a ring keeps what is recorded to it: never less than was asked for.
///
/// # Errors
/// [`StoreError::BadKeep`] where it is not from one second to 36 years.
pub fn keep_seconds(keep: Duration) -> Result<u32, StoreError> {
    let seconds = u32::try_from(keep.as_nanos().div_ceil(1_000_000_000)).ok();
    let seconds = seconds.filter(|&seconds| keep >= KEEP_MIN && seconds <= KEEP_MAX);
    seconds.ok_or(StoreError::BadKeep)
}

/// A ring of so many extents may begin with this one.
fn check_end(first: u64, extents: u64) -> Result<(), &'static str> {
    let end = first.checked_add(extents).and_then(|end| end.checked_mul(EXTENT.get()));
    if end.is_none_or(|end| end > END_MAX) {
        return Err("a ring ends behind all offsets");
    }
    Ok(())
}

impl State {
    /// A volume that has all of its extents, and nothing in them, is a ring from now on.
    pub(crate) fn make_ring(&mut self, id: VolumeId) -> Result<(), &'static str> {
        let volume = self.volumes.get_mut(&id).ok_or("a ring is no volume")?;
        let turn = volume.slots.len() as u64 * u64::from(volume.run());
        let extents = volume.extents();
        if extents == 0 || !extents.is_multiple_of(GRAIN.into()) || !extents.is_multiple_of(turn) {
            return Err("a ring is of a length that no ring has");
        }
        let is_new = volume.ring.is_none() && volume.length == 0 && volume.scattered.is_empty();
        if !is_new || volume.written.iter().any(|&blocks| blocks > 0) {
            return Err("a volume that has been used becomes a ring");
        }
        volume.ring = Some(0);
        Ok(())
    }
    /// A ring keeps what is recorded for so many seconds.
    pub(crate) fn keep(&mut self, id: VolumeId, seconds: u32) -> Result<(), &'static str> {
        let volume = self.volumes.get_mut(&id).filter(|volume| volume.is_ring());
        volume.ok_or("a volume that is no ring gives up what is old")?.keep = seconds;
        Ok(())
    }
    /// A ring gives up all extents before `first`.
    pub(crate) fn give_up(&mut self, id: VolumeId, first: u64) -> Result<Freed, &'static str> {
        let volume = self.volumes.get_mut(&id).ok_or("a ring is no volume")?;
        let before = volume.ring.ok_or("a volume that is no ring gives up extents")?;
        if first < before || !first.is_multiple_of(GRAIN.into()) {
            return Err("a ring gives up a part of a block, or takes one back");
        }
        check_end(first, volume.extents())?;
        Ok(volume.give_up(first))
    }
    /// A thin ring of which nothing is written yet begins with this extent. It has the places that it
    /// has there.
    pub(crate) fn begin(&mut self, id: VolumeId, first: u64) -> Result<(), &'static str> {
        let volume = self.volumes.get_mut(&id).filter(|volume| volume.placement.thin);
        let volume = volume.ok_or("a volume begins that is no thin ring")?;
        let is_new = volume.ring == Some(0) && volume.length == 0 && volume.scattered.is_empty();
        if !is_new || volume.written.iter().any(|&blocks| blocks > 0) {
            return Err("a ring that has been used begins, or a volume that is none");
        }
        if !first.is_multiple_of(GRAIN.into()) {
            return Err("a ring begins with a part of a block");
        }
        check_end(first, volume.extents())?;
        (volume.ring, volume.length) = (Some(first), first * EXTENT.get());
        Ok(())
    }
}

impl Store {
    /// Makes a ring of whomever, of at least `size`: rounded up so that no block lies across its
    /// end. As [`Store::create_owned`].
    ///
    /// # Panics
    /// Where the mode has more than nine bits.
    pub fn create_ring(
        &mut self,
        name: &str,
        size: Bytes,
        placement: &Placement,
        ownership: Ownership,
    ) -> Result<VolumeId, StoreError> {
        self.create_kind(name, (size, true), placement, ownership)
    }
    /// A ring gives up its oldest extents, as many as it takes for its space to reach to `end`:
    /// from now on they are not read, and with the next commit that is durable. Gives the bytes
    /// that were given up. Does nothing where the volume is gone or is no ring, where its space
    /// reaches so far, and where nothing is committed any more.
    pub fn give_up(&mut self, id: VolumeId, end: Bytes) -> Option<Range<Bytes>> {
        let volume = self.volume(id).filter(|volume| volume.is_ring())?;
        let (start, size) = (volume.start(), volume.size());
        let first = end.min(volume.limit()).saturating_sub(size).round_up(RING_GRAIN);
        if first <= start || first + size > volume.limit() || self.failed().is_some() {
            return None;
        }
        let before = start / EXTENT;
        let freed = self.change(Some(id), |state| state.give_up(id, first / EXTENT));
        self.held.extend(freed.iter().copied());
        self.vacated.extend(freed);
        self.staged.given_up.entry(id).or_insert(before);
        self.count_room();
        Some(start..first)
    }
    /// For how long a ring keeps what is recorded to it, in whole seconds; none: as long as there
    /// is room. Durable with the next commit.
    ///
    /// # Errors
    /// Where it is no ring, the pool is read-only, or the time is not from one second to 36
    /// years.
    pub fn keep_for(&mut self, id: VolumeId, keep: Option<Duration>) -> Result<(), StoreError> {
        self.check_writable()?;
        if !self.volume(id).is_some_and(Volume::is_ring) {
            return Err(StoreError::NoRing);
        }
        let seconds = keep.map_or(Ok(0), keep_seconds)?;
        self.stage(Change::Keep { volume: id, seconds });
        Ok(())
    }
    /// A ring gives up what is older than it keeps things, where somebody has said what time it is,
    /// by the times that are noted of it: whole grains of it, durably with the next commit. Gives
    /// the bytes that were given up.
    pub fn give_up_old(&mut self, id: VolumeId) -> Option<Range<Bytes>> {
        let volume = self.volume(id)?;
        let (keep, clock) = (volume.keep()?, self.clock?);
        let before = clock.saturating_sub(i64::try_from(keep.as_nanos()).ok()?);
        // It may have been recorded so much later than is noted.
        let before = before.saturating_sub(volume.recorded().within());
        let old = volume.recorded_before(before).min(volume.length());
        // Not all of a large ring at once: others wait for this.
        let most = volume.start().saturating_add(GIVEN_UP_MAX);
        let end = old.round_down(RING_GRAIN).min(most) + volume.size();
        self.give_up(id, end)
    }
    /// How far the volume may be written: to its end, but of a ring not where a commit that gives
    /// up what lay there is not durable yet.
    pub fn writable_end(&self, id: VolumeId) -> Bytes {
        let Some(volume) = self.volume(id) else { return Bytes::ZERO };
        let durable = self.given_up_later(id).map_or(volume.start(), |first| EXTENT * first);
        durable + volume.size()
    }
    /// The disk on which extent `extent` of a volume lies, or lay when it was held.
    pub fn disk_of(&self, id: VolumeId, extent: u64) -> Option<DiskIndex> {
        let volume = self.volume(id)?;
        let at = if volume.is_ring() { extent % volume.extents() } else { extent };
        volume.place(u32::try_from(at).ok()?).map(|(disk, _)| disk)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::Zone;
    use crate::change::Change;
    use crate::geometry::{AreaSize, Geometry};
    use crate::runs::Run;
    use alloc::vec;
    use alloc::vec::Vec;

    const ID: VolumeId = VolumeId(1);

    fn ring(extents: u32) -> Vec<Change> {
        let disks = vec![DiskIndex(0)];
        let runs = vec![vec![Run { start: 40, count: extents }]];
        vec![
            Change::Create { volume: ID, name: "ring".into(), zone: Zone::Any, disks },
            Change::Grow { volume: ID, extents, runs },
            Change::Ring { volume: ID },
        ]
    }

    fn given_up(first: u64) -> Change {
        Change::GivenUp { volume: ID, first }
    }

    /// Applies changes one after the other; gives the first that is refused, and why.
    fn refused(changes: &[Change]) -> Option<(usize, &'static str)> {
        let capacity = Bytes::mib(200);
        let disk = Geometry::new(capacity, AreaSize::for_pool(capacity)).expect("room");
        let mut state = State::new(&[disk]);
        let mut results = changes.iter().map(|change| state.apply(change)).enumerate();
        results.find_map(|(at, result)| Some((at, result.err()?)))
    }

    #[test]
    fn what_no_ring_does_is_refused() {
        let last = END_MAX / EXTENT.get() - 32;
        let length = |length| Change::Length { volume: ID, length };
        let sound = [given_up(16), given_up(16), given_up(last), Change::Delete { volume: ID }];
        assert_eq!(refused(&[ring(32), sound.to_vec()].concat()), None);
        let written = Change::Written { volume: ID, first: 3, count: 1, blocks: 2 };
        let grown = Change::Grow { volume: ID, extents: 33, runs: vec![vec![]] };
        let bad = [
            vec![given_up(8)],
            vec![given_up(32), given_up(16)],
            vec![given_up(last + 16)],
            vec![given_up(u64::MAX / 16 * 16)],
            vec![given_up(32), length(EXTENT.get() * 32 - 1)],
            vec![given_up(32), length(EXTENT.get() * 64 + 1)],
            vec![Change::Ring { volume: ID }],
            vec![Change::Cut { volume: ID, size: 0 }],
            vec![grown],
        ];
        for bad in bad {
            let all = [ring(32), bad.clone()].concat();
            let found = refused(&all).map(|(at, _)| at);
            assert_eq!(found, Some(all.len() - 1), "{bad:?}");
        }
        assert_eq!(refused(&ring(33)).map(|(at, _)| at), Some(2));
        assert_eq!(refused(&ring(0)).map(|(at, _)| at), Some(1), "a run of nothing");
        let mut used = ring(32);
        used.insert(2, written);
        assert_eq!(refused(&used).map(|(at, _)| at), Some(3));
        let mut plain = ring(32);
        plain[2] = given_up(16);
        assert_eq!(refused(&plain).map(|(at, _)| at), Some(2));
    }
}
