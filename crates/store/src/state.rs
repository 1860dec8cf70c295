//! What a pool holds at one moment, and how a change changes it.
//!
//! The running store and recovery go through the same [`State::apply`]: the
//! first makes changes that must apply, the second applies changes that it read
//! and believes nothing. Invariants: every extent of a disk is free, or belongs
//! to exactly one volume, or was freed by a change whose caller holds it; the
//! shares of a volume's disks differ by one at the most; a length is never
//! beyond its volume's size; an extent is in its volume's `scattered` exactly if a block
//! beyond its watermark was written.

use crate::api::{BLOCK, DiskIndex, EXTENT, RUN_MAX, Suspect, VolumeId, Zone};
use crate::api::{KeptPolicy, Ownership};
use crate::blocks::Blocks;
use crate::change::{Change, Decoder, Encoder, WATERMARK_SIZE, policy_size, suspects_size};
use crate::described::Taken;
use crate::facts::NUMBER_MAX;
use crate::format;
use crate::geometry::Geometry;
use crate::names::{below_number, is_volume_name, number_in};
use crate::numbered::Numbered;
use crate::ring;
use crate::runs::{FreeMap, Freed, Run};
use crate::volume::{BLOCKS, Volume};
use alloc::borrow::Cow;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::{Bound, Range};
use units::Bytes;

/// The volumes of a pool and the extents that they leave free.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) volumes: Numbered<VolumeId, Volume>,
    names: BTreeMap<String, VolumeId>,
    pub(crate) next_volume: VolumeId,
    pub(crate) free: Vec<FreeMap>,
    /// Bad and slow extents of each disk, by their numbers.
    pub(crate) suspects: Vec<Vec<Suspect>>,
    /// The policy that was chosen for the disks.
    pub(crate) policy: Option<KeptPolicy>,
    /// A checkpoint has room for the watermarks of so many extents.
    extents_max: u64,
}

impl State {
    /// No volumes on disks with these places.
    pub(crate) fn new(disks: &[Geometry]) -> Self {
        let free = disks.iter().map(|disk| FreeMap::new(disk.first..disk.last)).collect();
        let rooms = disks.iter().map(|disk| disk.checkpoint_size().get());
        Self {
            volumes: Numbered::default(),
            names: BTreeMap::new(),
            next_volume: VolumeId(1),
            extents_max: rooms.min().unwrap_or(0) / WATERMARK_SIZE,
            free,
            suspects: disks.iter().map(|_| Vec::new()).collect(),
            policy: None,
        }
    }
    /// The volume of this name, or of the number in `/NUMBER`, or below that directory.
    pub(crate) fn find(&self, name: &str) -> Option<&Volume> {
        match number_in(name) {
            Some(number) => self.volumes.get(&VolumeId(number)),
            None => self.names.get(&*self.whole_name(name)?).map(|id| &self.volumes[id]),
        }
    }
    /// The name in full, also of what has none yet; none where that lies in a directory, given by its
    /// number, that is not there.
    pub(crate) fn whole_name<'a>(&self, name: &'a str) -> Option<Cow<'a, str>> {
        let Some((_, below)) = below_number(name) else { return Some(Cow::Borrowed(name)) };
        let directory = self.directory_of(name)?;
        Some(Cow::Owned(alloc::format!("{}/{below}", directory.name())))
    }
    /// The directory of the number in `/NUMBER/PATH`.
    pub(crate) fn directory_of(&self, name: &str) -> Option<&Volume> {
        let (number, _) = below_number(name)?;
        let found = self.volumes.get(&VolumeId(number));
        found.filter(|volume| volume.ownership().kind() == Ownership::DIRECTORY)
    }
    /// The volumes whose names begin so, in the order of their names, from `from` on.
    pub(crate) fn named(
        &self,
        prefix: &str,
        from: &str,
    ) -> impl Iterator<Item = (&str, VolumeId)> + use<'_> {
        let prefix = String::from(prefix);
        let names = self.names.range::<str, _>((Bound::Included(from), Bound::Unbounded));
        let names = names.map(|(name, &id)| (name.as_str(), id));
        names.take_while(move |(name, _)| name.starts_with(&prefix))
    }
    /// Applies one change, wholly or, where it contradicts the state, not
    /// usefully: the state is then to be thrown away. Gives the extents that it
    /// freed; they are not free until [`State::give_back`].
    pub(crate) fn apply(&mut self, change: &Change) -> Result<Freed, &'static str> {
        match change {
            Change::Create { volume, name, zone, disks } => {
                self.create(*volume, name, *zone, disks)?;
            }
            Change::Grow { volume, extents, runs } => self.grow(*volume, *extents, runs)?,
            Change::Cut { volume, size } => {
                if self.volumes.get(volume).is_some_and(Volume::is_ring) {
                    return Err("a ring is cut");
                }
                return self.cut(*volume, *size);
            }
            Change::Delete { volume } => {
                let freed = self.cut(*volume, 0)?;
                let volume = self.volumes.remove(volume).ok_or(NO_VOLUME)?;
                self.names.remove(&volume.name);
                return Ok(freed);
            }
            Change::Length { volume, length } => {
                let volume = self.volumes.get_mut(volume).ok_or(NO_VOLUME)?;
                if *length > volume.end().get() || *length < volume.start().get() {
                    return Err("a volume's length is beyond its space");
                }
                volume.set_length(*length);
            }
            Change::Written { volume, first, count, blocks } => {
                let volume = self.written_in(*volume, *first, *count)?;
                (*first..*first + *count).try_for_each(|index| raise(volume, index, *blocks))?;
            }
            Change::WrittenEach { volume, first, blocks } => {
                let count = u32::try_from(blocks.len()).map_err(|_| NO_EXTENT)?;
                let volume = self.written_in(*volume, *first, count)?;
                let mut pairs = (*first..).zip(blocks);
                pairs.try_for_each(|(index, blocks)| raise(volume, index, *blocks))?;
            }
            Change::Scattered { volume, index, blocks } => {
                let volume = self.written_in(*volume, *index, 1)?;
                if !blocks.is_empty() && volume.lacks(*index) {
                    return Err(NOWHERE);
                }
                volume.add(*index, *blocks);
            }
            Change::Move { volume, index, extent } => {
                return self.relocate(*volume, *index, *extent);
            }
            Change::Suspects { disk, suspects } => {
                let known = self.suspects.get_mut(disk.as_usize());
                let known =
                    known.ok_or("a suspect extent of a disk that the pool does not have")?;
                if !suspects.is_sorted_by(|a, b| a.extent < b.extent) {
                    return Err("suspect extents are out of order");
                }
                known.clone_from(suspects);
            }
            Change::Owner { volume, ownership } => {
                if !Ownership::is_mode(ownership.mode) {
                    return Err("a volume's mode has bits that no mode has");
                }
                self.volumes.get_mut(volume).ok_or(NO_VOLUME)?.ownership = *ownership;
            }
            Change::Service { volume, service } => {
                self.volumes.get_mut(volume).ok_or(NO_VOLUME)?.service = *service;
            }
            Change::Policy { policy } => self.policy.clone_from(policy),
            Change::Run { volume, extents } => self.rotate_by(*volume, *extents)?,
            Change::Rename { volume, name } => self.rename(*volume, name)?,
            Change::Times { volume, times } => {
                self.volumes.get_mut(volume).ok_or(NO_VOLUME)?.times = Some(*times);
            }
            Change::Ring { volume } => self.make_ring(*volume)?,
            Change::GivenUp { volume, first } => return self.give_up(*volume, *first),
            Change::Keep { volume, seconds } => self.keep(*volume, *seconds)?,
            Change::Thin { volume } => self.make_thin(*volume)?,
            Change::Begins { volume, first } => self.begin(*volume, *first)?,
            Change::Stepped { volume, stepped } => self.step(*volume, *stepped)?,
            Change::Placed { volume, index, run } => return self.put(*volume, *index, *run),
            Change::Recorded { volume, more } => {
                self.volumes.get_mut(volume).ok_or(NO_VOLUME)?.recorded.apply(more)?;
            }
        }
        Ok(Vec::new())
    }
    fn rename(&mut self, id: VolumeId, name: &str) -> Result<(), &'static str> {
        if !is_volume_name(name) {
            return Err("a volume's name is not allowed");
        }
        if self.names.contains_key(name) {
            return Err("a volume gets a name that another has");
        }
        let volume = self.volumes.get_mut(&id).ok_or(NO_VOLUME)?;
        self.names.remove(&volume.name);
        self.names.insert(name.into(), id);
        volume.name = name.into();
        Ok(())
    }
    /// An empty volume rotates over its disks by so many extents.
    fn rotate_by(&mut self, id: VolumeId, extents: u16) -> Result<(), &'static str> {
        let run = EXTENT * u64::from(extents);
        if !extents.is_power_of_two() || run > RUN_MAX {
            return Err("a volume's run is of a length that no run has");
        }
        let volume = self.volumes.get_mut(&id).ok_or(NO_VOLUME)?;
        if volume.extents() > 0 {
            return Err("a volume that has extents rotates by another run");
        }
        volume.placement.run = run;
        Ok(())
    }
    /// Extent `index` of a volume lies at `extent` of its disk from now on.
    fn relocate(&mut self, id: VolumeId, index: u32, extent: u32) -> Result<Freed, &'static str> {
        let place = self.volumes.get(&id).ok_or(NO_VOLUME)?.place(index);
        let has_place = place.is_some_and(|(_, extent)| extent.is_some());
        if !has_place {
            return Err(NO_EXTENT);
        }
        self.occupy(id, index, Run { start: extent, count: 1 })
    }
    /// Extents of a volume from `index` on, which lie on one disk, lie there in this run from now on.
    /// Gives the places that they had.
    pub(crate) fn occupy(
        &mut self,
        id: VolumeId,
        index: u32,
        run: Run,
    ) -> Result<Freed, &'static str> {
        let volume = self.volumes.get_mut(&id).ok_or(NO_VOLUME)?;
        let (disk, _) = volume.place(index).ok_or(NO_EXTENT)?;
        if !run.has_place() || !self.free[disk.as_usize()].take(run) {
            return Err("an extent has two owners, or none");
        }
        let (slot, position) = volume.slot_of(index);
        let old = volume.slots[slot].put(position, run).ok_or(NO_EXTENT)?;
        Ok(old.into_iter().map(|run| (disk, run)).collect())
    }
    fn create(
        &mut self,
        id: VolumeId,
        name: &str,
        zone: Zone,
        disks: &[DiskIndex],
    ) -> Result<(), &'static str> {
        let repeated = |(i, disk): (usize, &DiskIndex)| disks[..i].contains(disk);
        if !is_volume_name(name) {
            return Err("a volume's name is not allowed");
        }
        if self.volumes.contains_key(&id) || self.names.contains_key(name) {
            return Err("a volume is there twice");
        }
        if disks.is_empty() || disks.iter().any(|disk| disk.as_usize() >= self.free.len()) {
            return Err("a volume lies on a disk that the pool does not have");
        }
        if disks.iter().enumerate().any(repeated) {
            return Err("a volume names a disk twice");
        }
        self.names.insert(name.into(), id);
        self.volumes.insert(id, Volume::new(id, name.into(), zone, disks.into()));
        Ok(())
    }
    fn grow(&mut self, id: VolumeId, extents: u32, runs: &[Vec<Run>]) -> Result<(), &'static str> {
        let volume = self.volumes.get_mut(&id).ok_or(NO_VOLUME)?;
        if runs.len() != volume.slots.len() || u64::from(extents) < volume.extents() {
            return Err("a volume grows by the wrong extents");
        }
        if volume.is_ring() {
            return Err("a ring grows");
        }
        if volume.placement.thin && u64::from(extents) > self.extents_max {
            return Err("a volume has more extents than a checkpoint has room for");
        }
        for (slot, runs) in runs.iter().enumerate() {
            let free = &mut self.free[volume.placement.disks[slot].as_usize()];
            for run in runs {
                let is_taken =
                    if run.has_place() { free.take(*run) } else { volume.placement.thin };
                if run.count == 0 || !is_taken {
                    return Err("an extent has two owners, or none");
                }
                if run.count > volume.share(extents, slot) - volume.slots[slot].len() {
                    return Err("a volume's extents do not rotate over its disks");
                }
                volume.slots[slot].push(*run);
            }
            if volume.slots[slot].len() != volume.share(extents, slot) {
                return Err("a volume's extents do not rotate over its disks");
            }
        }
        volume.written.resize(extents as usize, 0);
        Ok(())
    }
    /// What lies beyond `size` bytes goes: extents, length, and watermarks, so
    /// that no old byte comes back when the volume grows again.
    fn cut(&mut self, id: VolumeId, size: u64) -> Result<Freed, &'static str> {
        let volume = self.volumes.get_mut(&id).ok_or(NO_VOLUME)?;
        let extents = match u32::try_from(size.div_ceil(EXTENT.get())) {
            Ok(extents) if u64::from(extents) <= volume.extents() => extents,
            _ => return Err("a volume is cut to more than it has"),
        };
        let freed = volume.truncate(extents);
        volume.scattered.split_off(&extents);
        volume.length = volume.length.min(size);
        volume.recorded.cut(Bytes::new(size));
        let in_last = Bytes::new(size) % EXTENT;
        if let (Some(last), false) = (extents.checked_sub(1), in_last.is_zero()) {
            let blocks = volume.blocks(last).expect("the volume has it");
            volume.set(last, blocks.intersection(&Blocks::first(in_last)));
        }
        Ok(freed)
    }
    /// Volumes have other numbers from here on than any that was given out since the last record.
    pub(crate) fn leave_numbers_out(&mut self) {
        let next = self.next_volume.0.saturating_add(NUMBERS_AHEAD);
        self.next_volume = VolumeId(next.min(NUMBER_MAX - 1));
    }
    /// Nothing was ever written behind the ends of what is recorded.
    pub(crate) fn forget_behind_ends(&mut self) {
        self.volumes.values_mut().for_each(Volume::forget_behind_end);
    }
    /// The volume, where it has all of these extents.
    fn written_in(
        &mut self,
        id: VolumeId,
        first: u32,
        count: u32,
    ) -> Result<&mut Volume, &'static str> {
        let volume = self.volumes.get_mut(&id).ok_or(NO_VOLUME)?;
        let end = first.checked_add(count).ok_or(NO_EXTENT)?;
        if u64::from(end) > volume.extents() {
            return Err(NO_EXTENT);
        }
        Ok(volume)
    }
    /// Makes freed extents free.
    pub(crate) fn give_back(&mut self, freed: Freed) {
        for (disk, run) in freed {
            self.free[disk.as_usize()].give(run);
        }
    }
    /// The part of a disk that `zone` is.
    pub(crate) fn zone(disk: &Geometry, zone: Zone) -> Range<u32> {
        match zone {
            Zone::Any => disk.first..disk.last,
            Zone::Outer => disk.first..disk.middle(),
            Zone::Inner => disk.middle()..disk.last,
        }
    }
    /// What all volumes take. Cost: one look at each.
    pub(crate) fn taken(&self) -> Taken {
        let each = self.volumes.values().map(Volume::taken_of_checkpoint);
        each.fold(Taken::default(), Taken::and)
    }
    /// What a checkpoint takes beside its volumes.
    pub(crate) fn taken_beside(&self) -> u64 {
        let suspects = self.suspects.iter().map(|list| suspects_size(list.len()));
        let fixed = (format::header::LEN + format::changes::LEN) as u64;
        fixed + suspects.sum::<u64>() + policy_size(self.policy.as_ref())
    }
    /// The payload of a checkpoint: the changes that make this state from nothing.
    pub(crate) fn checkpoint(&self) -> Vec<u8> {
        self.checkpoint_with(Volume::recorded_blocks)
    }
    /// A checkpoint for records that follow it already. Those of an earlier program may move an end
    /// over blocks that an earlier record named behind it, so this one has them too.
    pub(crate) fn checkpoint_before_records(&self) -> Vec<u8> {
        self.checkpoint_with(Volume::blocks)
    }
    fn checkpoint_with(&self, blocks: BlocksOf) -> Vec<u8> {
        let mut encoder = Encoder::new(self.next_volume);
        for volume in self.volumes.values() {
            Self::describe(volume, &mut encoder);
            Self::describe_blocks(volume, 0..volume.written.len() as u32, blocks, &mut encoder);
        }
        self.describe_pool(&mut encoder);
        encoder.finish()
    }
    /// The changes that make a volume, but for what of it was written.
    pub(crate) fn describe(volume: &Volume, encoder: &mut Encoder) {
        let Volume {
            id, name, placement, slots, written, length, ownership, service, times, ..
        } = volume;
        encoder.change(&Change::Create {
            volume: *id,
            name: name.clone(),
            zone: placement.zone,
            disks: placement.disks.clone(),
        });
        if *ownership != Ownership::ROOT {
            encoder.change(&Change::Owner { volume: *id, ownership: *ownership });
        }
        if volume.run() > 1 {
            encoder.change(&Change::Run { volume: *id, extents: volume.run() as u16 });
        }
        if volume.placement.thin {
            encoder.change(&Change::Thin { volume: *id });
        }
        if service.is_some() {
            encoder.change(&Change::Service { volume: *id, service: *service });
        }
        if let Some(times) = *times {
            encoder.change(&Change::Times { volume: *id, times });
        }
        if !written.is_empty() {
            encoder.change(&Change::Grow {
                volume: *id,
                extents: written.len() as u32,
                runs: slots.iter().map(|slot| slot.iter().collect()).collect(),
            });
            ring::described(volume).for_each(|change| encoder.change(&change));
            encoder.change(&Change::Length { volume: *id, length: *length });
        }
        if !volume.recorded.points.is_empty() {
            encoder.change(&Change::Recorded { volume: *id, more: volume.recorded.all() });
        }
    }
    /// What was written of these extents of a volume, as far as it is recorded.
    pub(crate) fn describe_extents(volume: &Volume, extents: Range<u32>, encoder: &mut Encoder) {
        Self::describe_blocks(volume, extents, Volume::recorded_blocks, encoder);
    }
    fn describe_blocks(
        volume: &Volume,
        extents: Range<u32>,
        blocks: BlocksOf,
        encoder: &mut Encoder,
    ) {
        if extents.is_empty() {
            return;
        }
        let blocks = |index| blocks(volume, index).expect("an extent of the volume");
        let watermarks: Vec<u16> =
            extents.clone().map(|index| blocks(index).count_first()).collect();
        encoder.watermarks(volume.id, extents.start, &watermarks);
        for (&index, _) in volume.scattered.range(extents) {
            let blocks = blocks(index);
            if !blocks.is_prefix() {
                encoder.change(&Change::Scattered { volume: volume.id, index, blocks });
            }
        }
    }
    /// What is not of one volume: the suspect extents of all disks, and the policy.
    pub(crate) fn describe_pool(&self, encoder: &mut Encoder) {
        for (disk, suspects) in
            self.suspects.iter().enumerate().filter(|(_, list)| !list.is_empty())
        {
            let (disk, suspects) = (DiskIndex::new(disk), suspects.clone());
            encoder.change(&Change::Suspects { disk, suspects });
        }
        if self.policy.is_some() {
            encoder.change(&Change::Policy { policy: self.policy.clone() });
        }
    }
    /// Applies a payload: a checkpoint to an empty state, or the next record.
    pub(crate) fn replay(&mut self, payload: &[u8]) -> Result<(), &'static str> {
        let mut decoder = Decoder::new(payload)?;
        let mut freed = Freed::new();
        while let Some(change) = decoder.next()? {
            freed.extend(self.apply(&change)?);
        }
        self.give_back(freed);
        let highest = self.volumes.last_key();
        if decoder.next_volume < self.next_volume || highest >= Some(decoder.next_volume) {
            return Err("a volume's number comes back");
        }
        if decoder.next_volume.0 >= NUMBER_MAX {
            return Err("more volumes were made than can be");
        }
        self.next_volume = decoder.next_volume;
        Ok(())
    }
}

/// So many volumes are made between two records at the most.
pub(crate) const NUMBERS_AHEAD: u64 = 1 << 24;

/// Which blocks of an extent of a volume a description names.
type BlocksOf = fn(&Volume, u32) -> Option<Blocks>;

pub(crate) const NO_VOLUME: &str = "it changes a volume that is not there";
pub(crate) const NO_EXTENT: &str = "it changes an extent that is not there";
const NOWHERE: &str = "what was written of a volume has no place";

fn raise(volume: &mut Volume, index: u32, blocks: u16) -> Result<(), &'static str> {
    if blocks > BLOCKS {
        return Err("a watermark is beyond its extent");
    }
    if blocks > 0 && volume.lacks(index) {
        return Err(NOWHERE);
    }
    volume.add(index, Blocks::first(BLOCK * u64::from(blocks)));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::AreaSize;
    use alloc::vec;

    /// Records of an earlier program speak of blocks behind the end: they are not there when the pool
    /// was opened, so that they are news when they are written again, and a record has them.
    #[test]
    fn what_old_records_have_behind_an_end_was_never_written() {
        let capacity = Bytes::mib(200);
        let disk = Geometry::new(capacity, AreaSize::for_pool(capacity)).expect("room");
        let mut state = State::new(&[disk]);
        let volume = VolumeId(1);
        let hole = Blocks::of(&(Bytes::kib(8)..Bytes::kib(12)));
        for change in [
            Change::Create {
                volume,
                name: "old".into(),
                zone: Zone::Any,
                disks: vec![DiskIndex(0)],
            },
            Change::Grow { volume, extents: 4, runs: vec![vec![Run { start: 40, count: 4 }]] },
            Change::Length { volume, length: EXTENT.get() + 5000 },
            Change::Written { volume, first: 0, count: 3, blocks: 256 },
            Change::Scattered { volume, index: 3, blocks: hole },
        ] {
            state.apply(&change).expect("a sound change");
        }
        state.next_volume = VolumeId(2);
        // The next record moves the end over them: a checkpoint that is made before it has them.
        let mut repaired = State::new(&[disk]);
        repaired.replay(&state.checkpoint_before_records()).expect("a sound checkpoint");
        for state in [&mut repaired, &mut state.clone()] {
            let length = 4 * EXTENT.get();
            state.apply(&Change::Length { volume, length }).expect("a sound change");
            state.forget_behind_ends();
            let volume = &state.volumes[&volume];
            assert_eq!(volume.written[..3], [256, 256, 256]);
            assert_eq!(volume.blocks(3), Some(hole));
        }
        state.forget_behind_ends();
        let volume = state.volumes.get_mut(&volume).expect("just made");
        assert_eq!(volume.written, [256, 2, 0, 0]);
        assert!(volume.scattered.is_empty());
        assert!(volume.add(2, Blocks::first(EXTENT)), "it is news");
    }
}
