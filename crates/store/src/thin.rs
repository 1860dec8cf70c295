//! Thin volumes: they take their extents when these are written.
//!
//! A thin volume is made with its size and without any place on its disks. An extent gets one, a whole
//! run of the volume at a time, before the first write to it ([`Store::place`]). So its size is a limit
//! and not a reservation: the sizes of all volumes together may be more than the disks hold, and a
//! write may find no space.
//!
//! Writers that record side by side take their extents from a *frontier*, one for each part of a disk:
//! what they write at about the same time lies one behind the other, whosever it is, and is written in
//! one go. So that space is refused before bytes are taken, a writer has each extent *promised*
//! ([`Store::promise`]); when it writes, it *holds* the next one at the frontier ([`Store::hold`]), and
//! when that is written the extent *settles* there ([`Store::settle`]), also where it had another place
//! before. That place is given back when nobody can be reading it any more.
//!
//! A thin ring gives the places of what it gives up back to the disk.
//!
//! Invariants: what was written of a thin volume has a place; what a frontier has is neither free nor
//! any volume's, is at least what was promised of it, and lies in stretches of
//! [`Store::stretch_len`] at least, as it was taken; a power cut frees it.

use crate::api::{DiskIndex, EXTENT, VolumeId, Zone};
use crate::change::{Change, PLACE_SIZE};
use crate::error::StoreError;
use crate::runs::{Freed, Run, Wish};
use crate::state::{NO_EXTENT, NO_VOLUME, State};
use crate::store::Store;
use crate::volume::Volume;
use alloc::vec::Vec;
use core::ops::Range;
use units::Bytes;

/// Where there was no stretch, and no more is free since, one is looked for all the same when so often more
/// was wanted.
const LOOKS: u8 = 64;

/// Extents that a frontier takes at a time: so many of a zone's, and no less and no more than these.
const STRETCHES: u32 = 64;
const STRETCH: Range<u32> = 16..256;

impl Volume {
    /// Whether it takes its extents when they are written.
    pub fn is_thin(&self) -> bool {
        self.placement.thin
    }
    /// What it has of its disks: of a volume that is not thin its size.
    pub fn taken(&self) -> Bytes {
        let placed = self.slots.iter().flat_map(|slot| slot.placed());
        EXTENT * placed.map(|run| u64::from(run.count)).sum::<u64>()
    }
    /// How many extents of `disk` it has.
    pub fn taken_on(&self, disk: DiskIndex) -> u64 {
        let slot = self.placement.disks.iter().position(|&it| it == disk);
        let placed = slot.into_iter().flat_map(|slot| self.slots[slot].placed());
        placed.map(|run| u64::from(run.count)).sum()
    }
    /// It is thin, and an extent of it has no place.
    pub(crate) fn lacks(&self, index: u32) -> bool {
        self.placement.thin && self.place(index).is_none_or(|(_, extent)| extent.is_none())
    }
    /// Some of its extents have no place.
    pub(crate) fn has_room_to_take(&self) -> bool {
        self.placement.thin && self.slots.iter().any(|slot| slot.iter().any(|run| !run.has_place()))
    }
    /// The places of these extents, counted by their places in a ring, are given back.
    pub(crate) fn vacate(&mut self, extents: Range<u32>) -> Freed {
        let mut freed = Freed::new();
        for slot in 0..self.slots.len() {
            let (from, to) = (self.share(extents.start, slot), self.share(extents.end, slot));
            let old = self.slots[slot].put(from, Run::nowhere(to - from));
            let old = old.expect("extents of the volume");
            let disk = self.placement.disks[slot];
            freed.extend(old.into_iter().map(|run| (disk, run)));
        }
        freed
    }
    /// The disk of an extent, and where in the list of that disk it and its neighbours lie that are to
    /// have places together with it; none where it has one.
    fn missing(&self, index: u32) -> Option<(DiskIndex, u32, u32)> {
        let (slot, position) = self.slot_of(index);
        let run = self.run();
        let first = position / run * run;
        let end = (first + run).min(self.slots[slot].len());
        let lacks = |position: &u32| self.slots[slot].get(*position).is_none();
        let before = (first..position).rev().take_while(lacks).count() as u32;
        let behind = (position..end).take_while(lacks).count() as u32;
        let disk = self.placement.disks[slot];
        (behind > 0).then(|| (disk, position - before, before + behind))
    }
}

/// A place that extents of a volume shall have, which are neighbours in the list of one disk.
struct Chosen {
    disk: DiskIndex,
    /// Which of the volume's disks that is, and where in its list they begin.
    slot: usize,
    position: u32,
    /// The first of them, among all of the volume.
    first: u32,
    run: Run,
}

impl Chosen {
    /// The last of them stands here in the list of its disk.
    fn ends_at(&self, position: u32) -> bool {
        self.position + self.run.count == position + 1
    }
}

impl State {
    /// A volume without extents is thin from now on.
    pub(crate) fn make_thin(&mut self, id: VolumeId) -> Result<(), &'static str> {
        let volume = self.volumes.get_mut(&id).ok_or(NO_VOLUME)?;
        if volume.extents() > 0 {
            return Err("a volume that has extents becomes thin");
        }
        volume.placement.thin = true;
        Ok(())
    }
    /// Extents of a thin volume have these places from now on.
    pub(crate) fn put(
        &mut self,
        id: VolumeId,
        index: u32,
        run: Run,
    ) -> Result<Freed, &'static str> {
        let volume =
            self.volumes.get(&id).filter(|volume| volume.placement.thin).ok_or(NO_VOLUME)?;
        let of_its_run = volume.run() - index % volume.run();
        let end = index.checked_add(run.count).filter(|&end| u64::from(end) <= volume.extents());
        if run.count == 0 || run.count > of_its_run || end.is_none() {
            return Err(NO_EXTENT);
        }
        self.occupy(id, index, run)
    }
}

impl Store {
    /// Whether an extent of a volume has a place: it may be written to.
    pub fn is_placed(&self, id: VolumeId, extent: u64) -> bool {
        self.locate(id, extent).is_some_and(|location| location.offset.is_some())
    }

    /// Gives an extent of a thin volume a place, together with the rest of its run: behind what lies
    /// before it if that can be. Durable with the next commit. Does nothing where it has one.
    ///
    /// # Errors
    /// Where there is no free stretch as long as the run, or no room for the map; where the pool is
    /// read-only; where the volume has no such extent.
    pub fn place(&mut self, id: VolumeId, extent: u64) -> Result<(), StoreError> {
        self.place_all(id, extent..extent + 1).map(drop)
    }

    /// Gives each of these extents of a thin volume a place as [`Store::place`] does, or none of them.
    /// True where some had none before. Cost: a look for free space for each of these.
    ///
    /// # Errors
    /// As of one: then no extent has a place that had none before.
    pub fn place_all(&mut self, id: VolumeId, extents: Range<u64>) -> Result<bool, StoreError> {
        let mut chosen = Vec::new();
        let all = self.choose_places(id, extents, &mut chosen);
        // Taken out of what is free meanwhile, so that no two have the same place.
        for &Chosen { disk, run, .. } in &chosen {
            self.state.free[disk.as_usize()].give(run);
        }
        if let Err(StoreError::NoSpace { disk, zone, asked, .. }) = all {
            let others = chosen.iter().filter(|other| other.disk == disk);
            let others: u32 = others.map(|other| other.run.count).sum();
            return Err(self.no_stretch(disk, zone, (asked / EXTENT) as u32 + others));
        }
        all?;
        if chosen.is_empty() {
            return Ok(false);
        }
        self.check_places(chosen.len() as u64)?;
        for Chosen { first, run, .. } in chosen {
            self.stage_place(id, first, run, true);
        }
        Ok(true)
    }

    /// Places for those of these extents that have none, in what is free, out of which they are taken.
    fn choose_places(
        &mut self,
        id: VolumeId,
        extents: Range<u64>,
        chosen: &mut Vec<Chosen>,
    ) -> Result<(), StoreError> {
        for extent in extents {
            let none = || StoreError::NoSuchVolume { volume: id };
            let volume = self.volume(id).ok_or_else(none)?;
            let index = volume.place_of(extent).ok_or_else(none)?;
            let Some((disk, position, count)) = volume.missing(index) else { continue };
            let (slot, own) = volume.slot_of(index);
            let first = index - (own - position);
            let is_chosen = |other: &Chosen| other.slot == slot && other.first == first;
            if chosen.iter().rev().any(is_chosen) {
                continue; // with another one of its run
            }
            self.check_writable()?;
            let before = position.checked_sub(1).and_then(|before| {
                let has = volume.slots[slot].get(before);
                let of = chosen.iter().find(|other| other.slot == slot && other.ends_at(before));
                has.or_else(|| of.map(|other| other.run.start + other.run.count - 1))
            });
            let start = self.room_for_run(disk, volume.placement.zone, (count, before))?;
            let run = Run { start, count };
            assert!(self.state.free[disk.as_usize()].take(run), "it was free");
            chosen.push(Chosen { disk, slot, position, first, run });
        }
        Ok(())
    }

    /// A free stretch of so many extents, behind this one if it can be.
    fn room_for_run(
        &mut self,
        disk: DiskIndex,
        zone: Zone,
        (count, behind): (u32, Option<u32>),
    ) -> Result<u32, StoreError> {
        let range = State::zone(&self.geometry[disk.as_usize()], zone);
        let find = |store: &Self| {
            let (free, avoid) = (&store.state.free[disk.as_usize()], &store.avoid[disk.as_usize()]);
            let next = behind.and_then(|behind| behind.checked_add(1));
            let is_good = |&start: &u32| {
                let end = start.saturating_add(count);
                range.contains(&start)
                    && end <= range.end
                    && free.has(Run { start, count })
                    && avoid.range(start..end).next().is_none()
            };
            next.filter(is_good).or_else(|| {
                let wish = Wish { wanted: count, after: behind, run: count, within: 0 };
                let chosen = free.choose(&range, &wish, avoid)?;
                (chosen.len() == 1).then(|| chosen[0].start)
            })
        };
        if let Some(start) = find(self) {
            return Ok(start);
        }
        self.trim_frontiers();
        find(self).ok_or_else(|| self.no_stretch(disk, zone, count))
    }

    /// There is no free stretch of so many extents.
    fn no_stretch(&self, disk: DiskIndex, zone: Zone, count: u32) -> StoreError {
        let range = State::zone(&self.geometry[disk.as_usize()], zone);
        let free = self.state.free[disk.as_usize()].longest_in(&range);
        let freeing = self.space_on(disk).freeing;
        let (asked, free) = (EXTENT * u64::from(count), EXTENT * u64::from(free));
        StoreError::NoSpace { disk, zone, asked, free, freeing, fits: None }
    }

    /// Refuses so many more places where the map might not fit.
    fn check_places(&self, count: u64) -> Result<(), StoreError> {
        let size = PLACE_SIZE * count;
        if self.room_for(size) > 0 { Ok(()) } else { self.check_metadata(size) }
    }

    /// Bytes of a checkpoint that are kept for what is promised or held on all disks: that it settles is
    /// refused to nobody.
    pub(crate) fn places_size(&self) -> u64 {
        let promised = self.frontiers.values().map(|frontier| u64::from(frontier.promised));
        (promised.sum::<u64>() + self.held.len() as u64) * PLACE_SIZE
    }

    /// A place that was promised is counted where records are ([`RecordContent::placed`]), and others as
    /// any change is.
    ///
    /// [`RecordContent::placed`]: crate::RecordContent::placed
    fn stage_place(&mut self, id: VolumeId, index: u32, run: Run, counts: bool) -> Freed {
        let end = EXTENT * (self.state.volumes[&id].extent_at(index.into()) + u64::from(run.count));
        assert!(
            end <= self.writable_end(id),
            "a record says first what was placed, then what was given up"
        );
        let change = Change::Placed { volume: id, index, run };
        let freed = self.change(Some(id), |state| state.apply(&change));
        match counts {
            true => self.staged.push(change),
            false => self.staged.push_uncounted(change),
        }
        freed
    }

    /// How many neighbouring extents a frontier takes at a time on such a part of a disk.
    pub fn stretch_len(&self, disk: DiskIndex, zone: Zone) -> u64 {
        let range = State::zone(&self.geometry[disk.as_usize()], zone);
        stretch_of((range.end - range.start).into())
    }

    /// Promises one more extent at the frontier of the disk on which an extent of a thin volume lies
    /// or will lie. Up to `together` extents are taken there at a time, one behind the other: from one to
    /// [`Store::stretch_len`]. Where the free space has come to lie in shorter stretches, they come to lie
    /// in several ([`Store::has_stretch`]).
    ///
    /// # Errors
    /// Where there is no free extent, or no room for the map; where the pool is read-only; where the
    /// volume has no such extent.
    ///
    /// # Panics
    /// Where the volume is not thin.
    pub fn promise(&mut self, id: VolumeId, extent: u64, together: u32) -> Result<(), StoreError> {
        self.check_writable()?;
        let (disk, zone) = self.part_of(id, extent)?;
        self.check_places(1)?;
        loop {
            let frontier = self.frontiers.entry((disk, zone)).or_default();
            frontier.together = frontier.together.max(together);
            if frontier.usable() > frontier.promised {
                frontier.promised += 1;
                self.count_room();
                return Ok(());
            }
            // What has become free may lie in a stretch though no more is free than before.
            frontier.looks = (frontier.looks + 1) % LOOKS;
            frontier.none_of = frontier.none_of.filter(|_| frontier.looks > 0);
            let found = self.next_stretch(disk, zone).or_else(|| {
                self.trim_frontiers(); // of the other parts of the disk
                self.next_stretch(disk, zone)
            });
            let (run, none_of) = match found {
                Some(run) => (run, None),
                None => {
                    (self.next_piece(disk, zone)?, Some(self.state.free[disk.as_usize()].free()))
                }
            };
            assert!(self.state.free[disk.as_usize()].take(run), "it was free");
            let frontier = self.frontiers.entry((disk, zone)).or_default();
            frontier.push(run);
            (frontier.at, frontier.none_of) = (run.start + run.count, none_of);
        }
    }

    /// The next `count` extents that are held there lie one behind the other, as far as that can be: what
    /// is left of a stretch that is shorter is free again.
    pub fn begin_together(&mut self, disk: DiskIndex, zone: Zone, count: u32) {
        let Some(frontier) = self.frontiers.get_mut(&(disk, zone)) else { return };
        while let Some(&first) = frontier.runs.front()
            && first.count < count
            && frontier.len() - first.count >= frontier.promised
        {
            frontier.runs.pop_front();
            self.state.free[disk.as_usize()].give(first);
        }
    }

    /// One extent less is promised there.
    ///
    /// # Panics
    /// Where none is.
    pub fn promise_less(&mut self, id: VolumeId, extent: u64) {
        let Ok((disk, zone)) = self.part_of(id, extent) else { return };
        let frontier = self.frontiers.get_mut(&(disk, zone)).expect("it was promised");
        frontier.promised = frontier.promised.checked_sub(1).expect("it was promised");
        self.count_room();
    }

    fn part_of(&self, id: VolumeId, extent: u64) -> Result<(DiskIndex, Zone), StoreError> {
        let volume = self.volume(id).ok_or(StoreError::NoSuchVolume { volume: id })?;
        assert!(volume.placement.thin, "what is promised is of a thin volume");
        let disk = self.disk_of(id, extent).ok_or(StoreError::NoSuchVolume { volume: id })?;
        Ok((disk, volume.placement.zone))
    }

    /// What was held for an extent of a thin volume, and was not written to, is promised again: the next that
    /// is held there.
    ///
    /// # Panics
    /// Where it was not held, or the volume is not thin.
    pub fn put_back(&mut self, id: VolumeId, extent: u64, offset: Bytes) {
        let (disk, zone) = self.part_of(id, extent).expect("an extent of the volume");
        let run = self.unhold(disk, offset);
        let frontier = self.frontiers.entry((disk, zone)).or_default();
        match frontier.runs.front_mut() {
            Some(first) if run.start + 1 == first.start => {
                (first.start, first.count) = (run.start, first.count + 1);
            }
            _ => frontier.runs.push_front(run),
        }
        frontier.promised += 1;
    }

    /// The free space of a part of a disk has come to lie in short pieces: what is taken there together may
    /// come to lie in several places.
    pub fn is_scattered(&self, disk: DiskIndex, zone: Zone) -> bool {
        self.frontiers.get(&(disk, zone)).is_some_and(|frontier| frontier.none_of.is_some())
    }

    /// Whether there is space on a part of a disk for what is taken together to lie one behind the other.
    pub fn has_stretch(&self, disk: DiskIndex, zone: Zone) -> bool {
        let frontier = self.frontiers.get(&(disk, zone));
        let has_some =
            frontier.is_some_and(|one| one.none_of.is_none() && one.usable() > one.promised);
        has_some || self.next_stretch(disk, zone).is_some()
    }

    /// The next free stretch that is long enough. It is not looked for where there was none and nothing
    /// has become free since.
    fn next_stretch(&self, disk: DiskIndex, zone: Zone) -> Option<Run> {
        let frontier = self.frontiers.get(&(disk, zone));
        let (at, none_of) = frontier.map_or((0, None), |frontier| (frontier.at, frontier.none_of));
        if none_of.is_some_and(|none_of| self.state.free[disk.as_usize()].free() <= none_of) {
            return None;
        }
        let least = u32::try_from(self.stretch_len(disk, zone)).expect("some extents");
        let Run { start, count } = self.next_free(disk, zone, at, least)?;
        Some(Run { start, count: count.min(least) })
    }

    /// The next free extents, however few.
    fn next_piece(&self, disk: DiskIndex, zone: Zone) -> Result<Run, StoreError> {
        let at = self.frontiers.get(&(disk, zone)).map_or(0, |frontier| frontier.at);
        let found = self.next_free(disk, zone, at, 1);
        let Run { start, count } = found.ok_or_else(|| self.no_stretch(disk, zone, 1))?;
        Ok(Run { start, count: count.min(STRETCH.end) })
    }

    fn next_free(&self, disk: DiskIndex, zone: Zone, at: u32, least: u32) -> Option<Run> {
        let range = State::zone(&self.geometry[disk.as_usize()], zone);
        let (free, avoid) = (&self.state.free[disk.as_usize()], &self.avoid[disk.as_usize()]);
        let found = free.stretch(&range, at, least, avoid);
        found.or_else(|| free.stretch(&range, range.start, least, avoid))
    }

    /// Takes the next extent at the frontier, of those that are promised, for an extent of a thin volume
    /// to be written to. Gives its offset on the disk. It is to [settle](Store::settle) there, or to be
    /// [released](Store::release).
    ///
    /// # Panics
    /// Where nothing is promised.
    pub fn hold(&mut self, id: VolumeId, extent: u64) -> Bytes {
        let (disk, zone) = self.part_of(id, extent).expect("an extent of the volume");
        let frontier = self.frontiers.get_mut(&(disk, zone)).expect("it was promised");
        frontier.promised = frontier.promised.checked_sub(1).expect("it was promised");
        let run = frontier.runs.front_mut().expect("what is promised is there");
        let start = run.start;
        (run.start, run.count) = (start + 1, run.count - 1);
        if run.count == 0 {
            frontier.runs.pop_front();
        }
        self.held.push((disk, Run { start, count: 1 }));
        EXTENT * u64::from(start)
    }

    /// An extent of a thin volume lies at `offset` from now on, which was held for it and has been
    /// written as the caller will [note](Store::note_written): all blocks that are known as written have
    /// been written there. Durable with the next commit. Gives the place that it had, which stays held
    /// until it is [given back](Store::give_back_held). Where the volume or the extent is gone, `offset`
    /// is given back.
    ///
    /// # Panics
    /// Where it was not held.
    pub fn settle(&mut self, id: VolumeId, extent: u64, disk: DiskIndex, offset: Bytes) -> Settled {
        let run = self.unhold(disk, offset);
        self.state.free[disk.as_usize()].give(run);
        let volume = self.volume(id).filter(|volume| volume.placement.thin);
        let Some(index) = volume.and_then(|volume| volume.place_of(extent)) else {
            return Settled::Gone;
        };
        let old = self.stage_place(id, index, run, false);
        self.staged.unflushed.insert(disk);
        self.held.extend(old.iter().copied());
        let old = old.first().map(|(_, run)| EXTENT * u64::from(run.start));
        Settled::There { old }
    }

    /// A place that an extent has [left](Settled::There) is free once the next commit is durable.
    ///
    /// # Panics
    /// Where it is not held.
    pub fn give_back_held(&mut self, disk: DiskIndex, offset: Bytes) {
        let run = self.unhold(disk, offset);
        self.staged.freed.push((disk, run));
        self.count_room();
    }

    /// Whether [`Store::take_vacated`] has something to tell.
    pub fn has_vacated(&self) -> bool {
        !self.vacated.is_empty()
    }

    /// The places that thin rings have given up since this was asked last: each is held until it is
    /// [given back](Store::give_back_held), when nobody reads it any more.
    pub fn take_vacated(&mut self) -> impl Iterator<Item = (DiskIndex, Range<Bytes>)> + use<> {
        let range = |run: Run| {
            let start = EXTENT * u64::from(run.start);
            start..start + EXTENT * u64::from(run.count)
        };
        let vacated = core::mem::take(&mut self.vacated).into_iter();
        vacated.map(move |(disk, run)| (disk, range(run)))
    }

    /// What frontiers have beyond what is promised is free again.
    pub(crate) fn trim_frontiers(&mut self) {
        for (&(disk, _), frontier) in &mut self.frontiers {
            let mut spare = match frontier.promised {
                0 => frontier.len(),
                promised => frontier.usable().saturating_sub(promised),
            };
            while spare > 0 {
                let last = frontier.runs.back_mut().expect("it has what is to spare");
                let count = spare.min(last.count);
                last.count -= count;
                let start = last.start + last.count;
                self.state.free[disk.as_usize()].give(Run { start, count });
                frontier.at = start;
                if last.count == 0 {
                    frontier.runs.pop_back();
                }
                spare -= count;
            }
        }
    }

    /// The part of a disk on which a volume's extents lie, or may come to lie; none where it has none
    /// there.
    pub fn span_on(&self, id: VolumeId, disk: DiskIndex) -> Option<Range<Bytes>> {
        let volume = self.volume(id)?;
        if !volume.placement.thin || volume.extents_on(disk) == 0 {
            return volume.span_on(disk);
        }
        let zone = State::zone(&self.geometry[disk.as_usize()], volume.placement.zone);
        Some(EXTENT * u64::from(zone.start)..EXTENT * u64::from(zone.end))
    }
}

/// How many neighbouring extents a frontier takes at a time on a part of a disk that has so many.
pub fn stretch_of(extents: u64) -> u64 {
    (extents / u64::from(STRETCHES)).clamp(STRETCH.start.into(), STRETCH.end.into())
}

/// What became of an extent that was to settle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// It lies there.
    There {
        /// Where it lay before, if it had a place.
        old: Option<Bytes>,
    },
    /// There is no such extent any more.
    Gone,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::{AreaSize, Geometry};
    use crate::ring::END_MAX;
    use crate::runs::NO_PLACE;
    use alloc::vec;
    use alloc::vec::Vec;

    const ID: VolumeId = VolumeId(1);

    fn run(start: u32, count: u32) -> Run {
        Run { start, count }
    }

    /// A volume with these runs on one disk, of 32 extents, in runs of four.
    fn volume(is_thin: bool, runs: Vec<Run>) -> Vec<Change> {
        let disks = vec![DiskIndex(0)];
        let made = [
            Change::Create { volume: ID, name: "film".into(), zone: Zone::Any, disks },
            Change::Run { volume: ID, extents: 4 },
        ];
        let thin = is_thin.then_some(Change::Thin { volume: ID });
        let grow = Change::Grow { volume: ID, extents: 32, runs: vec![runs] };
        made.into_iter().chain(thin).chain([grow]).collect()
    }

    fn placed(index: u32, run: Run) -> Change {
        Change::Placed { volume: ID, index, run }
    }

    /// Applies changes one after the other; gives the number of the first that is refused.
    fn refused(changes: &[Change]) -> Option<usize> {
        let capacity = Bytes::mib(200);
        let disk = Geometry::new(capacity, AreaSize::for_pool(capacity)).expect("room");
        let mut state = State::new(&[disk]);
        changes.iter().position(|change| state.apply(change).is_err())
    }

    #[test]
    fn what_no_thin_volume_does_is_refused() {
        let ring = [Change::Ring { volume: ID }, Change::GivenUp { volume: ID, first: 16 }];
        let written =
            |index, blocks| Change::Written { volume: ID, first: index, count: 1, blocks };
        let scattered = |index| {
            let blocks = crate::blocks::Blocks::of(&(Bytes::kib(8)..Bytes::kib(12)));
            Change::Scattered { volume: ID, index, blocks }
        };
        let begins = |first| Change::Begins { volume: ID, first };
        let half = || volume(true, vec![run(40, 8), Run::nowhere(24)]);
        let sound = vec![
            vec![placed(8, run(50, 4)), placed(9, run(60, 1)), placed(0, run(70, 3))],
            vec![placed(31, run(50, 1)), written(31, 5), written(7, 3), written(8, 0)],
            vec![scattered(7), Change::Move { volume: ID, index: 7, extent: 90 }],
            [&ring[..], &[placed(16, run(50, 4)), written(16, 3), placed(0, run(60, 4))]].concat(),
            vec![
                ring[0].clone(),
                begins(48),
                written(3, 1),
                Change::GivenUp { volume: ID, first: 64 },
            ],
            vec![Change::Cut { volume: ID, size: 0 }, Change::Thin { volume: ID }],
        ];
        for sound in sound {
            assert_eq!(refused(&[half(), sound.clone()].concat()), None, "{sound:?}");
        }
        let bad = vec![
            vec![Change::Thin { volume: ID }],
            vec![placed(8, run(50, 0))],
            vec![placed(8, run(50, 5))],
            vec![placed(9, run(50, 4))],
            vec![placed(30, run(50, 4))],
            vec![placed(32, run(50, 1))],
            vec![placed(u32::MAX, run(50, 1))],
            vec![placed(8, run(47, 2))],
            vec![placed(0, run(40, 1))],
            vec![placed(8, run(0, 1))],
            vec![placed(8, run(199, 2))],
            vec![placed(8, Run::nowhere(1))],
            vec![placed(0, Run::nowhere(1))],
            vec![placed(8, run(NO_PLACE - 1, 2))],
            vec![placed(8, run(50, 1)), placed(12, run(50, 1))],
            vec![Change::Move { volume: ID, index: 8, extent: 50 }],
            vec![Change::Placed { volume: VolumeId(2), index: 0, run: run(50, 1) }],
            vec![Change::Thin { volume: VolumeId(2) }],
            vec![written(8, 1)],
            vec![scattered(8)],
            vec![Change::WrittenEach { volume: ID, first: 7, blocks: vec![1, 1] }],
            vec![ring[0].clone(), ring[1].clone(), written(0, 1)],
            vec![begins(16)],
            vec![ring[0].clone(), begins(8)],
            vec![ring[0].clone(), begins(END_MAX / EXTENT.get() - 16)],
            vec![ring[0].clone(), begins(u64::MAX / 16 * 16)],
            vec![ring[0].clone(), begins(16), begins(32)],
            vec![ring[0].clone(), ring[1].clone(), begins(32)],
            vec![ring[0].clone(), written(7, 1), begins(32)],
            vec![ring[0].clone(), scattered(7), begins(32)],
        ];
        for bad in bad {
            let all = [half(), bad.clone()].concat();
            assert_eq!(refused(&all), Some(all.len() - 1), "{bad:?}");
        }
    }

    #[test]
    fn what_a_volume_that_is_not_thin_does_not_do_is_refused() {
        let whole = || volume(false, vec![run(40, 32)]);
        assert_eq!(refused(&whole()), None);
        for change in [placed(8, run(90, 4)), placed(0, run(40, 1))] {
            assert_eq!(refused(&[whole(), vec![change]].concat()), Some(3));
        }
        let begun =
            [whole(), vec![Change::Ring { volume: ID }, Change::Begins { volume: ID, first: 16 }]];
        assert_eq!(refused(&begun.concat()), Some(4));
        for is_thin in [false, true] {
            let at = if is_thin { None } else { Some(2) };
            assert_eq!(refused(&volume(is_thin, vec![run(40, 8), Run::nowhere(24)])), at);
            assert_eq!(refused(&volume(is_thin, vec![Run::nowhere(32)])), at);
        }
    }

    /// A list of changes that somebody else wrote may name more extents than there can be.
    #[test]
    fn more_extents_than_a_checkpoint_has_room_for_are_refused() {
        let grow = |extents, counts: &[u32]| {
            let runs = vec![counts.iter().map(|&count| Run::nowhere(count)).collect()];
            let made = &volume(true, vec![])[..3];
            [made, &[Change::Grow { volume: ID, extents, runs }]].concat()
        };
        assert_eq!(refused(&grow(90_000, &[90_000])), None);
        for (extents, counts) in [
            (u32::MAX, &[u32::MAX][..]),
            (1_000_000, &[1_000_000]),
            (32, &[33]),
            (32, &[31]),
            (32, &[u32::MAX, 33]),
            (32, &[0, 32]),
        ] {
            assert_eq!(refused(&grow(extents, counts)), Some(3), "{extents}: {counts:?}");
        }
    }
}
