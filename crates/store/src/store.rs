//! An open pool: its volumes, and the commits that make changes durable.
//!
//! Changes are made in memory at once and are *staged*; [`Store::commit`] takes
//! all that is staged and makes it durable in three steps: flush the disks that
//! hold unflushed data, write the record on every disk, flush every disk. So a
//! watermark never becomes durable before the bytes that it speaks of. A commit of
//! which there is nothing to record writes an empty record, and the flush behind that
//! covers the data: every commit takes a number on every disk, by which a disk that was
//! not there is found out (progress.rs).
//!
//! Invariants: an extent that was given back is not handed out before the commit
//! that gave it back is durable, so a pool that is opened after a power cut
//! never shows one volume's bytes in another; a state whose checkpoint could
//! come to be larger than its place is never entered.

use crate::api::Ownership;
use crate::api::{
    BLOCK, CommitId, Disk, DiskIndex, EXTENT, Io, IoError, IoId, Location, Placement, Pool, Space,
    Suspect, VolumeId,
};
use crate::blocks::Blocks;
use crate::building::{self, Building, Part, Reused};
use crate::change::{
    Change, Encoder, SCATTERED_SIZE, growth_size, name_size, ownership_size, run_size,
    thin_described, volume_size_max,
};
use crate::described::Taken;
use crate::error::StoreError;
use crate::facts::NUMBER_MAX;
use crate::format;
use crate::frontier::Frontiers;
use crate::geometry::{EXTENTS_MAX, Geometry};
use crate::holdings::Holdings;
use crate::label::{StoredProfile, profile_task};
use crate::log::Log;
use crate::moved::Moved;
use crate::names::is_volume_name;
use crate::recording::Recording;
use crate::ring::{ring_described, ring_extents};
use crate::runs::{Freed, Run, Wish};
use crate::state::{NUMBERS_AHEAD, State};
use crate::steps::Steps;
use crate::structure::Payload;
use crate::volume::Volume;
use alloc::borrow::Cow;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::ops::Range;
use units::Bytes;

/// An open pool.
#[derive(Clone, Debug)]
pub struct Store {
    pool: Pool,
    pub(crate) profiles: Vec<StoredProfile>,
    pub(crate) geometry: Vec<Geometry>,
    pub(crate) state: State,
    /// Bad and slow extents, by disk: those in `state`, or more where there was no room.
    pub(crate) known: Vec<Vec<Suspect>>,
    /// The same: extents that no volume gets as long as there are others.
    pub(crate) avoid: Vec<BTreeSet<u32>>,
    /// Reserved for moves.
    pub(crate) held: Freed,
    /// Moved away from.
    pub(crate) quarantine: Freed,
    /// What writers side by side write to next.
    pub(crate) frontiers: Frontiers,
    /// Held places that thin rings have given up, of which nobody was told.
    pub(crate) vacated: Freed,
    pub(crate) log: Log,
    pub(crate) staged: Staged,
    /// Extents with blocks that were written behind the end of what is recorded: no record has these
    /// blocks before the end has come so far.
    ahead: Extents,
    running: Option<Running>,
    pub(crate) scattered: Scattered,
    /// What the volumes take in a checkpoint: the sum, as it is kept with each change of one.
    pub(crate) taken: Taken,
    /// What each user and each group has.
    pub(crate) holdings: Holdings,
    /// See [`Store::walks`].
    pub(crate) walks: u64,
    /// What arrives for volumes, and when.
    pub(crate) recording: Recording,
    /// What time it is, in nanoseconds since 1970, where the caller says so.
    pub(crate) clock: Option<i64>,
    /// Where renamed directories have come to.
    pub(crate) moved: Moved,
    /// The next checkpoint, where it is being built.
    building: Option<Building>,
    /// See [`Store::set_increment`].
    increment: Bytes,
    record_longest: Bytes,
    /// Nothing was committed since the last empty record, or since the pool was opened.
    closed: bool,
    steps: Steps,
    committed: CommitId,
    next: CommitId,
    /// The next volume's number, as it is durable.
    numbers_recorded: VolumeId,
}

/// What changed since the last commit began.
#[derive(Clone, Debug, Default)]
pub(crate) struct Staged {
    changes: Vec<Change>,
    /// What the changes take in a record.
    size: u64,
    /// Where in the changes the times of a volume are that somebody said.
    times: BTreeMap<VolumeId, usize>,
    pub(crate) freed: Freed,
    /// Disks with another profile.
    pub(crate) profiles: BTreeSet<DiskIndex>,
    /// Extents of which more blocks were written.
    written: Extents,
    /// Volumes whose length rose.
    lengths: BTreeSet<VolumeId>,
    /// Volumes that were written, and whose times are those of the last write.
    pub(crate) touched: BTreeSet<VolumeId>,
    /// Rings that gave up extents, and how many they had given up before.
    pub(crate) given_up: BTreeMap<VolumeId, u64>,
    /// When volumes were recorded. It takes part in no size: records have room for it.
    recorded: Vec<Change>,
    /// Disks with data that no flush has covered.
    pub(crate) unflushed: BTreeSet<DiskIndex>,
    /// An empty record is wanted.
    closing: bool,
}

/// Extents, by their volumes.
type Extents = BTreeMap<VolumeId, BTreeSet<u32>>;

/// Extents that were written with holes, each of which takes
/// [`SCATTERED_SIZE`] in a checkpoint.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Scattered {
    /// As many as there is room for.
    pub(crate) room: u64,
    /// Writes are under way that could leave so many more.
    pub(crate) reserved: u64,
}

/// A commit on its way.
#[derive(Clone, Debug)]
struct Running {
    id: CommitId,
    /// The next volume's number, as it is recorded.
    next_volume: VolumeId,
    freed: Freed,
    given_up: BTreeMap<VolumeId, u64>,
}

impl Store {
    pub(crate) fn new(
        pool: Pool,
        profiles: Vec<StoredProfile>,
        geometry: Vec<Geometry>,
        state: State,
        log: Log,
    ) -> Self {
        let numbers = |list: &Vec<Suspect>| list.iter().map(|suspect| suspect.extent).collect();
        let mut store = Self {
            numbers_recorded: state.next_volume,
            avoid: state.suspects.iter().map(numbers).collect(),
            known: state.suspects.clone(),
            held: Freed::new(),
            quarantine: Freed::new(),
            frontiers: Frontiers::new(),
            vacated: Freed::new(),
            pool,
            profiles,
            geometry,
            state,
            log,
            staged: Staged::default(),
            ahead: Extents::new(),
            running: None,
            scattered: Scattered::default(),
            taken: Taken::default(),
            holdings: Holdings::default(),
            walks: 0,
            recording: Recording::default(),
            clock: None,
            moved: Moved::default(),
            building: None,
            increment: INCREMENT,
            record_longest: Bytes::ZERO,
            closed: true,
            steps: Steps::default(),
            committed: CommitId::NONE,
            next: CommitId(1),
        };
        store.count_all();
        store
    }

    /// What is fixed about the pool.
    pub fn pool(&self) -> &Pool {
        &self.pool
    }
    /// The pool's disks in the order of their numbers.
    pub fn disks(&self) -> &[Disk] {
        &self.pool.disks
    }
    /// The profile that a disk carries, as it was given last.
    pub fn profile(&self, disk: DiskIndex) -> &[u8] {
        &self.profiles[disk.as_usize()].bytes
    }
    /// Every volume, oldest first.
    pub fn volumes(&self) -> impl ExactSizeIterator<Item = &Volume> {
        self.state.volumes.values()
    }
    /// The volumes younger than this one, or all, oldest first.
    pub fn volumes_after(&self, id: Option<VolumeId>) -> impl Iterator<Item = &Volume> {
        use core::ops::Bound::{Excluded, Unbounded};
        let from = id.map_or(Unbounded, Excluded);
        self.state.volumes.range((from, Unbounded)).map(|(_, volume)| volume)
    }
    /// The volume with this number.
    pub fn volume(&self, id: VolumeId) -> Option<&Volume> {
        self.state.volumes.get(&id)
    }
    /// The volume with this name, or with this number, which stands behind a slash, or with this path
    /// below the directory with this number, or that had this path at a moment ([`Store::moment`]).
    pub fn find(&self, name: &str) -> Option<&Volume> {
        match self.moved.found(name).ok()? {
            Some(name) => self.state.find(&name),
            None => self.state.find(name),
        }
    }
    /// The name in full, also of what has none yet; none where that lies in a directory, given by its
    /// number, that is not there, or was renamed and is not known any more.
    pub fn whole_name<'a>(&self, name: &'a str) -> Option<Cow<'a, str>> {
        match self.moved.found(name).ok()? {
            Some(name) => Some(name),
            None => self.state.whole_name(name),
        }
    }
    /// Whether a name says what a directory was called at a moment, and that has another name now.
    pub fn is_moved(&self, name: &str) -> bool {
        self.moved.is_moved(name)
    }
    /// This moment, and since which one the directory that has this name, and that no volume stands
    /// for, has had it. `/@MOMENT/PATH` is what had this path at that moment, whatever it is called now.
    pub fn moment(&self, name: &str) -> (u64, u64) {
        (self.moved.now(), self.moved.since(name))
    }
    /// A directory, with all that lies under it, has another name from now on.
    pub fn note_moved(&mut self, from: &str, to: &str) {
        self.moved.note(from, to);
    }
    /// The directory that a name gives by its number, where it does.
    pub fn directory_of(&self, name: &str) -> Option<&Volume> {
        self.state.directory_of(name)
    }
    /// The volumes whose names begin with `prefix`, in the order of their names, from `from` on.
    pub fn named(&self, prefix: &str, from: &str) -> impl Iterator<Item = (&str, VolumeId)> {
        self.state.named(prefix, from)
    }
    /// The room on one disk.
    pub fn space_on(&self, disk: DiskIndex) -> Space {
        let geometry = &self.geometry[disk.as_usize()];
        let extents = |count: u32| EXTENT * u64::from(count);
        let total = extents(geometry.last - geometry.first);
        let free = extents(self.state.free[disk.as_usize()].free());
        let freed = self.freed().filter(|(on, _)| *on == disk);
        let freeing = freed.map(|(_, run)| extents(run.count)).sum();
        Space { total, used: total - free - freeing, free, freeing }
    }
    /// The room in the whole pool.
    pub fn space(&self) -> Space {
        let disks = self.pool.disks.iter().map(|disk| self.space_on(disk.index));
        disks.fold(Space::default(), |sum, disk| Space {
            total: sum.total + disk.total,
            used: sum.used + disk.used,
            free: sum.free + disk.free,
            freeing: sum.freeing + disk.freeing,
        })
    }
    fn freed(&self) -> impl Iterator<Item = (DiskIndex, Run)> {
        let running = self.running.iter().flat_map(|running| &running.freed);
        let frontiers = self.frontiers.iter();
        let theirs =
            frontiers.flat_map(|(&(disk, _), one)| one.runs.iter().map(move |&run| (disk, run)));
        let others =
            self.staged.freed.iter().chain(running).chain(&self.held).chain(&self.quarantine);
        others.copied().chain(theirs)
    }
    /// Where extent `index` of a volume lies; `None` where there is none, or where a ring has
    /// given it up.
    pub fn locate(&self, volume: VolumeId, index: u64) -> Option<Location> {
        let volume = self.volume(volume)?;
        let place = volume.place_of(index)?;
        let (disk, extent) = volume.place(place)?;
        let offset = extent.map(|extent| EXTENT * u64::from(extent));
        Some(Location { disk, offset, written: volume.blocks(place)? })
    }

    /// Makes a volume of root's and reserves `size`, rounded up to whole extents.
    pub fn create(
        &mut self,
        name: &str,
        size: Bytes,
        placement: &Placement,
    ) -> Result<VolumeId, StoreError> {
        self.create_owned(name, size, placement, Ownership::ROOT)
    }
    /// The same, of whomever; durable with the next commit, both or neither.
    ///
    /// # Panics
    /// Where the mode has more than nine bits.
    pub fn create_owned(
        &mut self,
        name: &str,
        size: Bytes,
        placement: &Placement,
        ownership: Ownership,
    ) -> Result<VolumeId, StoreError> {
        self.create_kind(name, (size, false), placement, ownership)
    }
    /// The same, perhaps of a ring.
    pub(crate) fn create_kind(
        &mut self,
        name: &str,
        (size, is_ring): (Bytes, bool),
        placement: &Placement,
        ownership: Ownership,
    ) -> Result<VolumeId, StoreError> {
        self.check_writable()?;
        if !is_volume_name(name) {
            return Err(StoreError::BadName { name: name.into() });
        }
        if self.find(name).is_some() {
            return Err(StoreError::VolumeExists { name: name.into() });
        }
        let disks = self.resolve(&placement.disks)?;
        let run = placement.checked_run().ok_or(StoreError::BadRun { run: placement.run })?;
        let id = self.state.next_volume;
        let mut volume = Volume::new(id, name.into(), placement.zone, disks.clone());
        volume.placement.run = run;
        volume.placement.thin = placement.thin;
        let extents = match is_ring {
            true => ring_extents(size, disks.len(), run)?,
            false => extents_for(size)?,
        };
        self.trim_frontiers();
        let runs = self.choose(&volume, extents).map_err(|error| match error {
            StoreError::NoSpace { disk, zone, asked, free, freeing, .. } => {
                let fits = Some(self.fits(&volume, (size, is_ring)));
                StoreError::NoSpace { disk, zone, asked, free, freeing, fits }
            }
            error => error,
        })?;
        let name_size = name_size(name.len(), ownership);
        let described = volume_size_max(name_size, disks.len(), count(&runs), extents);
        let thin = thin_described((placement.thin, is_ring), disks.len());
        let ring = ring_described(is_ring.then_some(0)) + thin;
        let described = described + ownership_size(ownership) + run_size(run) + ring;
        self.check_counted(described).map_err(|error| with_most(error, &volume, extents))?;
        let next = VolumeId(id.0 + 1);
        // Numbers that the next opening would give out again are given to nobody.
        if next.0 >= NUMBER_MAX || next.0 - self.numbers_recorded.0 > NUMBERS_AHEAD {
            return Err(StoreError::NumbersSpent);
        }
        self.state.next_volume = next;
        let zone = placement.zone;
        self.stage(Change::Create { volume: id, name: name.into(), zone, disks });
        if ownership != Ownership::ROOT {
            self.stage(Change::Owner { volume: id, ownership });
        }
        if run > EXTENT {
            let extents = (run / EXTENT) as u16;
            self.stage(Change::Run { volume: id, extents });
        }
        if placement.thin {
            self.stage(Change::Thin { volume: id });
        }
        if extents > 0 {
            self.stage(Change::Grow { volume: id, extents, runs });
        }
        if is_ring {
            self.stage(Change::Ring { volume: id });
        }
        Ok(id)
    }
    /// Grows or shrinks a volume to `size`, rounded up to whole extents. What
    /// was recorded beyond `size` is gone, to the byte; no read or write beyond
    /// it may be on its way.
    pub fn resize(&mut self, id: VolumeId, size: Bytes) -> Result<(), StoreError> {
        self.check_writable()?;
        let volume = self.volume(id).ok_or(StoreError::NoSuchVolume { volume: id })?;
        if volume.is_ring() {
            return Err(StoreError::RingResized);
        }
        if size < volume.size() {
            let cuts = size < volume.length();
            match cuts {
                true => self.recording.forget(id),
                false => self.recording.cut(id, size),
            }
            self.stage(Change::Cut { volume: id, size: size.get() });
            if let Some(ahead) = self.ahead.get_mut(&id) {
                ahead.split_off(&(size.div_ceil(EXTENT) as u32));
            }
            // Space alone is none of what a program has written: it may have set the times since.
            if cuts {
                self.touch(id);
            }
            return Ok(());
        }
        let extents = extents_for(size)?;
        let more = extents - volume.written.len() as u32;
        if more > 0 {
            self.trim_frontiers();
            let runs = self.choose(&self.state.volumes[&id], extents)?;
            let checked = self.check_metadata(growth_size(count(&runs), more));
            checked.map_err(|error| with_most(error, &self.state.volumes[&id], extents))?;
            self.stage(Change::Grow { volume: id, extents, runs });
        }
        Ok(())
    }
    /// What is recorded of a volume from `length` on is gone, to the byte; all of its space stays
    /// with it. No read or write beyond `length` may be on its way.
    pub fn truncate(&mut self, id: VolumeId, length: Bytes) -> Result<(), StoreError> {
        self.check_writable()?;
        let volume = self.volume(id).ok_or(StoreError::NoSuchVolume { volume: id })?;
        if volume.is_ring() {
            return Err(StoreError::RingResized);
        }
        if length < volume.length() {
            self.recording.forget(id);
            // Before what was written since, which a record has behind its changes.
            self.stage(Change::Length { volume: id, length: length.get() });
            self.ahead.remove(&id);
            self.touch(id);
        }
        Ok(())
    }
    /// Removes a volume. No read or write of it may be on its way.
    pub fn delete(&mut self, id: VolumeId) -> Result<(), StoreError> {
        self.check_writable()?;
        self.volume(id).ok_or(StoreError::NoSuchVolume { volume: id })?;
        self.stage(Change::Delete { volume: id });
        self.staged.written.remove(&id);
        self.ahead.remove(&id);
        self.staged.lengths.remove(&id);
        self.staged.touched.remove(&id);
        self.staged.given_up.remove(&id);
        self.recording.forget(id);
        Ok(())
    }
    /// Writes of these blocks of an extent have ended: they were written from now on, and
    /// the disk is to be flushed. What leaves holes needs a place that
    /// [`Store::reserve_scattered`] has reserved, unless the extent has holes already.
    /// Does nothing where the volume or the extent is gone.
    ///
    /// # Panics
    /// Where the extent has no place.
    pub fn note_written(&mut self, id: VolumeId, index: u64, blocks: &Blocks) {
        let Some(location) = self.locate(id, index) else { return };
        assert!(location.offset.is_some() || blocks.is_empty(), "it was written somewhere");
        self.staged.unflushed.insert(location.disk);
        let volume = self.state.volumes.get_mut(&id).expect("it was just located");
        let index = volume.place_of(index).expect("it was just located");
        let before = volume.scattered.len() as u64;
        let recorded = volume.recorded_blocks(index);
        if volume.add(index, *blocks) {
            self.taken.scattered += volume.scattered.len() as u64;
            self.taken.scattered -= before;
            if volume.recorded_blocks(index) != recorded {
                self.staged.written.entry(id).or_default().insert(index);
            }
            if volume.is_ahead(index) {
                self.ahead.entry(id).or_default().insert(index);
            }
        }
    }
    /// All of a volume was written: as [`Store::note_written`] of each of its extents.
    ///
    /// # Panics
    /// Where an extent has no place.
    pub fn note_full(&mut self, id: VolumeId) {
        let Some(volume) = self.state.volumes.get_mut(&id) else { return };
        self.taken.scattered -= volume.scattered.len() as u64;
        self.staged.unflushed.extend(volume.disks());
        let (recorded, ahead) = volume.fill();
        for (noted, more) in [(&mut self.staged.written, recorded), (&mut self.ahead, ahead)] {
            if !more.is_empty() {
                // Many at once are quicker than one after the other.
                noted.entry(id).or_default().append(&mut BTreeSet::from_iter(more));
            }
        }
    }
    /// Recorded data reaches up to byte `length` of a volume: raises the length
    /// (never lowers it, never beyond the size). The volume was written now.
    pub fn note_length(&mut self, id: VolumeId, length: Bytes) {
        self.touch(id);
        let Some(volume) = self.state.volumes.get_mut(&id) else { return };
        let length = length.min(volume.end()).get();
        if length > volume.length {
            volume.length = length;
            self.staged.lengths.insert(id);
            self.record_ahead(id);
        }
    }
    /// The length has risen: what was written before it is recorded from now on.
    fn record_ahead(&mut self, id: VolumeId) {
        let Some(mut before) = self.ahead.remove(&id) else { return };
        let volume = &self.state.volumes[&id];
        let last = (volume.length / EXTENT.get()) as u32;
        let mut ahead = before.split_off(&last);
        if ahead.remove(&last) {
            before.insert(last);
            if volume.is_ahead(last) {
                ahead.insert(last);
            }
        }
        if !before.is_empty() {
            self.staged.written.entry(id).or_default().extend(before);
        }
        if !ahead.is_empty() {
            self.ahead.insert(id, ahead);
        }
    }
    /// Whether blocks of this range of a volume were written that lie behind the end of what is
    /// recorded, so that no record has them.
    pub fn is_ahead(&self, id: VolumeId, range: &Range<Bytes>) -> bool {
        let (Some(ahead), Some(volume)) = (self.ahead.get(&id), self.volume(id)) else {
            return false;
        };
        let index = |at: u64| u32::try_from(at).unwrap_or(u32::MAX);
        let extents = index(range.start / EXTENT)..index(range.end.div_ceil(EXTENT));
        !range.is_empty()
            && ahead.range(extents).any(|&index| {
                let at = EXTENT * u64::from(index);
                let within = range.start.saturating_sub(at)..range.end.saturating_sub(at);
                let blocks = volume.blocks(index).unwrap_or_default();
                let behind = blocks.without(&volume.before_end(index.into()));
                !behind.intersection(&Blocks::of(&within)).is_empty()
            })
    }

    /// A checkpoint that may be longer than this is written in parts, one with each commit:
    /// of so many bytes on each disk, or of more where the log would be full before.
    ///
    /// # Panics
    /// Where it is not whole blocks, or none.
    pub fn set_increment(&mut self, increment: Bytes) {
        assert!(increment >= BLOCK && increment.is_multiple_of(BLOCK), "whole blocks");
        self.increment = increment;
    }

    /// The longest record since the pool was opened: bytes on each disk, both copies.
    pub fn record_longest(&self) -> Bytes {
        self.record_longest
    }

    /// What the changes that wait for a commit take in its record, but for what is written to
    /// volumes and the times of that ([`RecordContent::changes`](crate::RecordContent)).
    pub fn staged_size(&self) -> Bytes {
        Bytes::new(self.staged.size)
    }
    /// True when there is something to commit.
    pub fn dirty(&self) -> bool {
        self.staged.has_news() || self.staged.closing
    }
    /// True when the pool may be closed: everything is committed, and a last, empty record
    /// proves that the last commit is on every disk, so that a disk which lacks it is known
    /// to be an older one. Otherwise the next commit is a step towards that; commit, and ask
    /// again. A pool that is not closed, or is used after it, loses nothing but that proof.
    pub fn close(&mut self) -> bool {
        if self.dirty() || self.running.is_some() {
            return false;
        }
        // With the empty record a checkpoint that is being built comes to be whole.
        self.staged.closing = !self.closed && self.failed().is_none();
        !self.staged.closing
    }
    /// Begins to make durable all that is staged, with a record on every disk; its I/O comes
    /// out of [`Store::poll`]. `None` while a commit is running, when nothing is staged
    /// and when the pool is read-only.
    pub fn commit(&mut self) -> Option<CommitId> {
        if self.running.is_some() || !self.dirty() || self.failed().is_some() {
            return None;
        }
        let closed = !self.staged.has_news();
        let mut staged = core::mem::take(&mut self.staged);
        if let Some(&rest) = staged.touched.iter().nth(TIMES_MAX) {
            self.staged.touched = staged.touched.split_off(&rest);
        }
        if staged.changed() {
            // What a record speaks of is durable before it. Where it speaks of nothing, the
            // flush behind it is enough.
            self.steps.push_flush(staged.unflushed.iter().copied());
        }
        self.write_profiles(&staged.profiles);
        staged.recorded = self.times_of_recordings(&staged.lengths);
        let record = Payload::new(self.record(&staged));
        self.record_longest = self.record_longest.max(Bytes::new(record.size() as u64) * 2);
        self.write_log(&staged, &record);
        self.closed = closed;
        let id = self.next;
        self.next = CommitId(id.0 + 1);
        let (freed, given_up) = (staged.freed, staged.given_up);
        let next_volume = self.state.next_volume;
        self.running = Some(Running { id, next_volume, freed, given_up });
        Some(id)
    }
    /// Writes the record, and a part of the next checkpoint beside it; or a checkpoint at
    /// once, where there is no room for the record.
    fn write_log(&mut self, staged: &Staged, record: &Payload) {
        if !self.log.fits(record.size()) {
            self.building = None;
            let checkpoint = Payload::new(self.state.checkpoint());
            assert!(checkpoint.size() <= self.log.checkpoint_size().as_usize());
            self.log.checkpoint(&checkpoint, &mut self.steps);
            return;
        }
        let part = self.next_part(staged, record.size());
        self.log.append(record, part.as_ref(), &mut self.steps);
    }
    /// What of the next checkpoint goes with this commit, where one is being built or begun.
    /// It is begun while there is room for enough records to come, and every commit writes so
    /// much of it that it is whole before the log is full.
    fn next_part(&mut self, staged: &Staged, record: usize) -> Option<Part> {
        let record = Bytes::new(record as u64) * 2;
        let free = self.log.free() - record;
        let mut building = match self.building.take() {
            Some(mut building) => {
                self.add_to(&mut building, staged).ok()?;
                building
            }
            None if staged.closing => return None,
            None => self.begin_building(free)?,
        };
        let commits = (free / record).saturating_sub(1);
        let budget = match building.to_write().checked_div(commits) {
            Some(share) if !staged.closing => self.increment.get().max(share + 1),
            _ => u64::MAX,
        };
        building.make(&self.state, budget).ok()?;
        if building.size() > self.log.checkpoint_size() {
            return None;
        }
        let part = building.part(self.state.next_volume, budget);
        self.building = part.end.is_none().then_some(building);
        Some(part)
    }
    /// A checkpoint of some length is begun when so much of the log is left that, were all
    /// records as long as may be, it would be whole in time.
    fn begin_building(&self, free: Bytes) -> Option<Building> {
        let records = self.log.records_size();
        if free > records * 3 / 4 {
            return None;
        }
        let size = self.described() + self.taken.scattered * SCATTERED_SIZE;
        let in_time = Bytes::new(size) * 2 + self.increment * 3;
        (size > self.increment.get() && free <= in_time).then(|| Building::new(size))
    }
    /// What a commit changes of the volumes that are in the list comes behind it.
    fn add_to(&self, building: &mut Building, staged: &Staged) -> Result<(), Reused> {
        let volume = |id| self.state.volumes.get(&id);
        for change in &staged.changes {
            let taken = building::taken(change, volume).ok_or(Reused)?;
            taken.into_iter().try_for_each(|(disk, run)| building.note_taken(disk, run))?;
        }
        let describes_pool = building.describes_pool();
        let of_it = |volume: Option<VolumeId>| volume.map_or(describes_pool, |id| building.has(id));
        let encoder = self.encode(staged, of_it);
        building.append(encoder);
        building.note_freed(&staged.freed);
        Ok(())
    }
    /// One copy after the other, so that one is whole at every moment.
    fn write_profiles(&mut self, disks: &BTreeSet<DiskIndex>) {
        for copy in [0, 1] {
            let task = |&disk: &DiskIndex| {
                let Disk { id, capacity, .. } = self.pool.disks[disk.as_usize()];
                let StoredProfile { bytes, generation } = &self.profiles[disk.as_usize()];
                let (owner, payload) = (Log::owner(self.pool.id, id), Payload::new(bytes.clone()));
                (disk, profile_task(owner, capacity, copy, &payload, *generation))
            };
            let tasks: Vec<_> = disks.iter().map(task).collect();
            self.steps.push(tasks);
            self.steps.push_flush(disks.iter().copied());
        }
    }
    /// The next I/O to start; none while others must end first.
    pub fn poll(&mut self) -> Option<Io> {
        self.steps.poll()
    }
    /// An I/O has ended.
    pub fn done(&mut self, id: IoId, result: Result<Vec<u8>, IoError>) {
        self.steps.done(id, result);
        if self.steps.is_finished()
            && self.failed().is_none()
            && let Some(running) = self.running.take()
        {
            self.committed = running.id;
            self.numbers_recorded = running.next_volume;
            self.state.give_back(running.freed);
        }
    }
    /// The last commit that is durable on every disk.
    pub fn committed(&self) -> CommitId {
        self.committed
    }
    /// The first metadata write or flush that failed; the pool is read-only since.
    pub fn failed(&self) -> Option<(DiskIndex, IoError)> {
        self.steps.failed()
    }

    /// How many extents a ring has given up durably, where it is giving up more.
    pub(crate) fn given_up_later(&self, id: VolumeId) -> Option<u64> {
        let running = self.running.as_ref().and_then(|running| running.given_up.get(&id));
        running.or(self.staged.given_up.get(&id)).copied()
    }
    pub(crate) fn check_writable(&self) -> Result<(), StoreError> {
        self.failed().map_or(Ok(()), |(disk, error)| Err(StoreError::ReadOnly { disk, error }))
    }
    fn resolve(&self, disks: &[DiskIndex]) -> Result<Vec<DiskIndex>, StoreError> {
        let all = self.pool.disks.len();
        if disks.is_empty() {
            return Ok((0..all).map(DiskIndex::new).collect());
        }
        for (i, &disk) in disks.iter().enumerate() {
            if disk.as_usize() >= all {
                return Err(StoreError::NoSuchDisk { disk, disks: all });
            }
            if disks[..i].contains(&disk) {
                return Err(StoreError::DiskTwice { disk });
            }
        }
        Ok(disks.into())
    }
    /// Chooses what `volume` needs to have `extents` extents, disk by disk.
    fn choose(&self, volume: &Volume, extents: u32) -> Result<Vec<Vec<Run>>, StoreError> {
        let Placement { disks, zone, .. } = volume.placement();
        let each = disks.iter().zip(&volume.slots).enumerate();
        each.map(|(slot, (&disk, has))| {
            let wanted = volume.share(extents, slot) - has.len();
            if volume.placement.thin {
                return Ok((wanted > 0).then(|| Run::nowhere(wanted)).into_iter().collect());
            }
            let free = &self.state.free[disk.as_usize()];
            let range = State::zone(&self.geometry[disk.as_usize()], *zone);
            let avoid = &self.avoid[disk.as_usize()];
            let run = volume.run();
            let wish = Wish { wanted, after: has.last(), run, within: has.len() % run };
            free.choose(&range, &wish, avoid).ok_or_else(|| StoreError::NoSpace {
                disk,
                zone: *zone,
                asked: EXTENT * u64::from(wanted),
                free: EXTENT * u64::from(free.free_in(&range)),
                freeing: self.space_on(disk).freeing,
                fits: Some(self.fits_here(volume)),
            })
        })
        .collect()
    }
    pub(crate) fn stage(&mut self, change: Change) {
        let freed = self.change(change.volume(), |state| state.apply(&change));
        self.staged.freed.extend(freed);
        self.staged.push(change);
    }
    /// The payload of a record.
    fn record(&self, staged: &Staged) -> Vec<u8> {
        self.encode(staged, |_| true).finish()
    }
    /// The changes in their order, then where the watermarks and lengths that rose have got
    /// to: of the volumes that are wanted, and of none in particular where that is.
    fn encode(&self, staged: &Staged, wanted: impl Fn(Option<VolumeId>) -> bool) -> Encoder {
        let mut encoder = Encoder::new(self.state.next_volume);
        let changes = staged.changes.iter().filter(|change| wanted(change.volume()));
        changes.for_each(|change| encoder.change(change));
        // Before what was written: of that there is nothing in a place that was given up.
        for &volume in staged.given_up.keys().filter(|id| wanted(Some(**id))) {
            let first = self.state.volumes[&volume].ring.expect("it is a ring");
            encoder.change(&Change::GivenUp { volume, first });
        }
        for (&id, extents) in staged.written.iter().filter(|(id, _)| wanted(Some(**id))) {
            let volume = &self.state.volumes[&id];
            let recorded = |&index| Some((index, volume.recorded_blocks(index)?));
            let recorded = extents.iter().filter_map(recorded);
            let recorded: Vec<(u32, Blocks)> =
                recorded.filter(|(_, blocks)| !blocks.is_empty()).collect();
            for &(index, blocks) in recorded.iter().filter(|(_, blocks)| !blocks.is_prefix()) {
                encoder.change(&Change::Scattered { volume: id, index, blocks });
            }
            for run in recorded.chunk_by(|a, b| a.0 + 1 == b.0) {
                let marks: Vec<u16> = run.iter().map(|(_, blocks)| blocks.count_first()).collect();
                encoder.watermarks(id, run[0].0, &marks);
            }
        }
        for &volume in staged.lengths.iter().filter(|id| wanted(Some(**id))) {
            let length = self.state.volumes[&volume].length;
            encoder.change(&Change::Length { volume, length });
        }
        for &volume in staged.touched.iter().filter(|id| wanted(Some(**id))) {
            let times = self.state.volumes[&volume].times.expect("it was touched");
            encoder.change(&Change::Times { volume, times });
        }
        // Behind what was given up, which takes points with it.
        let recorded = staged.recorded.iter().filter(|change| wanted(change.volume()));
        recorded.for_each(|change| encoder.change(change));
        encoder
    }
}

impl Staged {
    /// Adds a change; the times of a volume take the place of those that wait already.
    pub(crate) fn push(&mut self, change: Change) {
        if let Change::Times { volume, .. } = change {
            if let Some(&at) = self.times.get(&volume) {
                self.changes[at] = change;
                return;
            }
            self.times.insert(volume, self.changes.len());
        }
        self.size += Encoder::size_of(&change);
        self.changes.push(change);
    }
    /// Adds a change for which records have room of their own.
    pub(crate) fn push_uncounted(&mut self, change: Change) {
        self.changes.push(change);
    }
    /// True when there is something for a record.
    fn changed(&self) -> bool {
        let are_written = !self.written.is_empty() || !self.lengths.is_empty();
        let is_else = !self.changes.is_empty() || !self.touched.is_empty();
        are_written || is_else || !self.given_up.is_empty()
    }
    /// True when something was written or changed.
    fn has_news(&self) -> bool {
        let is_else = !self.unflushed.is_empty() || !self.profiles.is_empty();
        // What was given back is free only with a commit, also where nothing else is news.
        self.changed() || is_else || !self.freed.is_empty()
    }
}

/// The times of so many volumes that were written go with one record; those of others go with the
/// next ones, so that records stay as short as they were.
pub(crate) const TIMES_MAX: usize = 64;

/// What a checkpoint is written in, where nobody says otherwise.
const INCREMENT: Bytes = Bytes::kib(64);

/// The same of a thin volume that was to have so many extents, with how large it can be in whole GiB.
fn with_most(error: StoreError, volume: &Volume, extents: u32) -> StoreError {
    let StoreError::MetadataFull { needed, room, .. } = error else { return error };
    // Nothing of its size is reserved, but that it may be written.
    let each = Bytes::new(growth_size(0, 1));
    let beside = needed.saturating_sub(each * u64::from(extents));
    let most = EXTENT * (room.saturating_sub(beside).get() / each.get());
    let most = Some(most.round_down(Bytes::mib(1024)));
    let most = most.filter(|most| volume.is_thin() && !most.is_zero());
    StoreError::MetadataFull { needed, room, most }
}

/// Whole extents for `size`.
fn extents_for(size: Bytes) -> Result<u32, StoreError> {
    let extents = size.div_ceil(EXTENT);
    let possible = u32::try_from(extents).ok().filter(|&n| u64::from(n) < EXTENTS_MAX);
    possible.ok_or(StoreError::TooLarge { size })
}

fn count(runs: &[Vec<Run>]) -> usize {
    runs.iter().map(Vec::len).sum()
}

const _: () = assert!(format::header::LEN < BLOCK.get() as usize);
