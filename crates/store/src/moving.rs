//! Bad and slow extents: remembered, and moved away from.
//!
//! A move is three steps of the caller's: [`Store::reserve`] an extent of the same disk,
//! copy the bytes there, and [`Store::relocate`], which is a change like any other: the
//! next commit flushes the disk with the copy, then writes the record that switches the
//! map, so that the map never shows an extent whose bytes are not on the medium.
//!
//! Invariants: a reserved extent is nobody's and not free until it is relocated to or
//! released, and a power cut releases it; an extent that was moved away from is not
//! handed out again while the pool is open, so that reads that were on their way find
//! the old bytes, and so does a pool that is opened after a cut before the commit.

use crate::api::{DiskIndex, EXTENT, SUSPECTS_MAX, Suspect, VolumeId};
use crate::change::{Change, suspects_size};
use crate::error::StoreError;
use crate::format;
use crate::geometry::PROFILE_MAX;
use crate::runs::{Run, Wish};
use crate::state::State;
use crate::store::Store;
use alloc::vec::Vec;
use core::ops::Bound::{Included, Unbounded};
use units::Bytes;

/// How far the search for the owners of some places has got: see [`Store::seek_owners`].
#[derive(Clone, Debug, Default)]
pub struct OwnersSought {
    /// The volume that is looked at, and from which of its extents on the disk.
    within: Option<(VolumeId, u32)>,
    /// Places, the volume that has each, and which in its list.
    found: Vec<(u64, VolumeId, u32)>,
}

impl Store {
    /// What is known of bad and slow extents of a disk, in its order: as it was found
    /// when the pool was opened, or said since.
    pub fn suspects(&self, disk: DiskIndex) -> &[Suspect] {
        &self.known[disk.as_usize()]
    }

    /// Volumes get these extents of a disk only where there are no others, from now on
    /// and in place of those that were said before. The next commit makes it durable,
    /// where there is room for it in a checkpoint and the pool is not read-only. True
    /// where there is something new to commit.
    ///
    /// # Panics
    /// Where there are more than [`SUSPECTS_MAX`], or they are not in the order of the
    /// disk.
    pub fn suspect(&mut self, disk: DiskIndex, suspects: Vec<Suspect>) -> bool {
        assert!(suspects.len() <= SUSPECTS_MAX, "more suspects than there can be");
        assert!(suspects.is_sorted_by(|a, b| a.extent < b.extent), "suspects out of order");
        let at = disk.as_usize();
        self.avoid[at] = suspects.iter().map(|suspect| suspect.extent).collect();
        let recorded = &self.state.suspects[at];
        let news = recorded.len() != suspects.len()
            || recorded.iter().zip(&suspects).any(|(old, new)| old.extent != new.extent);
        self.known[at].clone_from(&suspects);
        let room = self.check_metadata(suspects_size(suspects.len()));
        let recorded = news && self.failed().is_none() && room.is_ok();
        if recorded {
            self.stage(Change::Suspects { disk, suspects });
        }
        recorded
    }

    /// Those of a disk's `extents` that are not free.
    pub fn taken(&self, disk: DiskIndex, extents: impl Iterator<Item = u64>) -> Vec<u64> {
        let free = &self.state.free[disk.as_usize()];
        let is_free = |&extent: &u64| {
            u32::try_from(extent).is_ok_and(|start| free.has(Run { start, count: 1 }))
        };
        extents.filter(|extent| !is_free(extent)).collect()
    }

    /// Goes on to look for the volumes that have these extents of a disk, which are in order, at no more
    /// volumes and runs than are `left`; true where all were looked at. Volumes may change in between: a
    /// place that a volume has all the while is found, since it stays where it is in the volume's list; one
    /// that another volume gets meanwhile may be found or not.
    pub fn seek_owners(
        &self,
        disk: DiskIndex,
        extents: &[u64],
        sought: &mut OwnersSought,
        left: &mut u64,
    ) -> bool {
        let mut take = || {
            let has = *left > 0;
            *left = left.saturating_sub(1);
            has
        };
        let from = sought.within.map_or(Unbounded, |(id, _)| Included(id));
        for (id, volume) in self.state.volumes.range((from, Unbounded)) {
            if sought.found.len() == extents.len() {
                return true;
            }
            let mut position = sought.within.filter(|(of, _)| *of == id).map_or(0, |(_, at)| at);
            sought.within = Some((id, position));
            if !take() {
                return false;
            }
            let slot = volume.placement().disks.iter().position(|&on| on == disk);
            let runs = slot.map(|slot| volume.slots[slot].runs_from(position));
            for run in runs.into_iter().flatten() {
                if !take() {
                    return false;
                }
                if run.has_place() {
                    let (start, end) = (u64::from(run.start), u64::from(run.start + run.count));
                    let first = extents.partition_point(|&extent| extent < start);
                    let theirs = extents[first..].iter().take_while(|&&extent| extent < end);
                    let at = |&extent: &u64| (extent, id, position + (extent - start) as u32);
                    sought.found.extend(theirs.map(at));
                }
                position += run.count;
                sought.within = Some((id, position));
            }
        }
        true
    }

    /// What was found: places of a disk in their order, each with the volume that has it still, and which
    /// of the volume's extents that is now.
    pub fn owners_found(
        &self,
        disk: DiskIndex,
        sought: &OwnersSought,
    ) -> Vec<(u64, (VolumeId, u64))> {
        let still = |&(extent, id, position): &(u64, VolumeId, u32)| {
            let volume = self.volume(id)?;
            let slot = volume.placement().disks.iter().position(|&on| on == disk)?;
            let place = volume.slots[slot].get(position)?;
            let index = || volume.extent_at(volume.index_of(slot, position));
            (u64::from(place) == extent).then(|| (extent, (id, index())))
        };
        let mut found: Vec<_> = sought.found.iter().filter_map(still).collect();
        found.sort_unstable();
        found
    }

    /// Takes a free extent that is not suspect out of the free ones, for extent `index`
    /// of a volume to move to: on the same disk and in the volume's zone, between the
    /// volume's other extents there if it can be. Gives its offset.
    ///
    /// # Errors
    /// Where there is none, the extent has no place itself, or the pool is read-only.
    pub fn reserve(&mut self, id: VolumeId, index: u64) -> Result<Bytes, StoreError> {
        self.check_writable()?;
        let volume = self.volume(id).ok_or(StoreError::NoSuchVolume { volume: id })?;
        let location = self.locate(id, index).filter(|location| location.offset.is_some());
        let location = location.ok_or(StoreError::NoSuchVolume { volume: id })?;
        let (disk, zone) = (location.disk, volume.placement().zone);
        let span = volume.span_on(disk).expect("the volume has an extent there");
        let of = |place: Bytes| u32::try_from(place / EXTENT).expect("an extent of the disk");
        let all = State::zone(&self.geometry[disk.as_usize()], zone);
        let near = of(span.start).max(all.start)..of(span.end).min(all.end);
        let free = &self.state.free[disk.as_usize()];
        let avoid = &self.avoid[disk.as_usize()];
        let behind = Some(of(span.end) - 1);
        let found = [(near, None), (all.clone(), behind)].into_iter().find_map(|(range, after)| {
            let runs = free.choose(&range, &Wish { wanted: 1, after, run: 1, within: 0 }, avoid)?;
            runs.first().map(|run| run.start).filter(|extent| !avoid.contains(extent))
        });
        let extent = found.ok_or_else(|| StoreError::NoSpace {
            disk,
            zone,
            asked: EXTENT,
            free: EXTENT * u64::from(free.free_in(&all)),
            freeing: self.space_on(disk).freeing,
            fits: None,
        })?;
        let run = Run { start: extent, count: 1 };
        assert!(self.state.free[disk.as_usize()].take(run), "it was free");
        self.held.push((disk, run));
        Ok(EXTENT * u64::from(extent))
    }

    /// Gives back what [`Store::reserve`] gave.
    ///
    /// # Panics
    /// Where it was not reserved.
    pub fn release(&mut self, disk: DiskIndex, offset: Bytes) {
        let run = self.unhold(disk, offset);
        self.state.free[disk.as_usize()].give(run);
        self.count_room();
    }

    /// Extent `index` of a volume lies at `offset` from now on, which was reserved for it
    /// and holds its written blocks: writes of these have ended. Durable with
    /// the next commit, which flushes the disk before. The extent that it leaves is not
    /// handed out while the pool is open.
    ///
    /// # Errors
    /// Where the pool is read-only or the maps could become too large; the extent stays
    /// reserved.
    ///
    /// # Panics
    /// Where it was not reserved, or there is no such extent.
    pub fn relocate(&mut self, id: VolumeId, index: u64, offset: Bytes) -> Result<(), StoreError> {
        self.check_writable()?;
        self.check_metadata(2 * format::run::LEN as u64)?;
        let location = self.locate(id, index).expect("an extent of the volume");
        let run = self.unhold(location.disk, offset);
        self.state.free[location.disk.as_usize()].give(run);
        let place = self.volume(id).and_then(|volume| volume.place_of(index));
        let index = place.expect("it was located");
        let change = Change::Move { volume: id, index, extent: run.start };
        let left = self.change(Some(id), |state| state.apply(&change));
        self.quarantine.extend(left);
        self.staged.push(change);
        self.staged.unflushed.insert(location.disk);
        Ok(())
    }

    pub(crate) fn unhold(&mut self, disk: DiskIndex, offset: Bytes) -> Run {
        let is_it =
            |(on, run): &(DiskIndex, Run)| *on == disk && EXTENT * u64::from(run.start) == offset;
        let at = self.held.iter().position(is_it).expect("an extent that was reserved");
        self.held.swap_remove(at).1
    }

    /// Whether [`Store::set_profile`] would take this profile; changes nothing.
    ///
    /// # Errors
    /// As [`Store::set_profile`].
    pub fn check_profile(&self, profile: &[u8]) -> Result<(), StoreError> {
        self.check_writable()?;
        let len = Bytes::new(profile.len() as u64);
        if len > PROFILE_MAX {
            return Err(StoreError::ProfileTooLarge { len, most: PROFILE_MAX });
        }
        Ok(())
    }

    /// Replaces the profile that a disk carries; durable with the next commit. A power
    /// cut leaves the old one or the new one.
    ///
    /// # Errors
    /// Where it is too large, or the pool is read-only.
    pub fn set_profile(&mut self, disk: DiskIndex, profile: Vec<u8>) -> Result<(), StoreError> {
        self.check_profile(&profile)?;
        let stored = &mut self.profiles[disk.as_usize()];
        stored.generation += 1;
        stored.bytes = profile;
        self.staged.profiles.insert(disk);
        Ok(())
    }
}
