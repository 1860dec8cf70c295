//! A random history of a pool, whose power can be cut at every write and flush.
//!
//! The world knows what it was promised: the state at the last acknowledged
//! commit, the state at the commit on its way, and every version of every block
//! of data that it ever wrote. After a cut and a recovery the pool must be in one
//! of the two states, and each block of data must be a version that is no older
//! than that state (bytes of later, unflushed versions may be mixed in where they
//! were torn). Faults can be planted in the disks and in the driver, to see that
//! they are caught.

mod thin;

use super::{BLOCK, Block, Cut, Disk, Random, at, capacities, check, new_pool, run_until};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use store::{
    Blocks, CommitId, DiskIndex, EXTENT, Id, Io, IoId, IoKind, KeptPolicy, Location, Opening,
    Ownership, Placement, Recorded, Service, ServiceKind, ServicePriority, Severity, Store,
    Suspect, Times, VolumeId, Zone,
};
use units::{Bytes, Duration, Rate};

/// A bug that is planted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    None,
    /// The flush of data before a commit's record does nothing.
    NoDataFlush,
    /// The flush after a commit's writes does nothing.
    NoLogFlush,
    /// Extents that a commit gives back can be had before it is durable: the end
    /// of the commit's I/O is told early, to the store only.
    EarlyReuse,
    /// Recovery writes nothing to one of the disks.
    NoMirroring,
    /// The flushes of a recovery that is cut short do nothing.
    NoRecoveryFlush,
    /// An extent is relocated before its bytes are copied.
    EarlyMove,
    /// The parts of a checkpoint reach the disk with the next commit only: also the last one,
    /// after the log has gone over to that checkpoint.
    LatePart,
    /// An extent settles, and a commit begins, before it is written where it is held.
    EarlySettle,
}

/// What a volume is called, whose it is, how it is served, when it was used, and recorded.
type Named = (String, Ownership, Option<Service>, Option<Times>, Recorded);

/// Of what kind a volume is, and which extents it has.
type Shape = (bool, Range<u64>);

/// Everything that is kept of a pool's volumes, and the suspects of each disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description(
    Vec<(VolumeId, Named, Shape, u64, Placement, Vec<Location>)>,
    Vec<Vec<Suspect>>,
    Option<KeptPolicy>,
);

impl Description {
    pub fn of(store: &Store) -> Self {
        let volumes = store.volumes().map(|volume| {
            let first = volume.start() / store::EXTENT;
            let held = first..first + volume.extents();
            let form = volume.is_ring();
            let length = volume.length().get();
            let places = held.clone().map(|i| {
                let place = store.locate(volume.id(), i).unwrap();
                // What lies behind the end is kept only while the pool runs.
                let before = length.saturating_sub(i * store::EXTENT.get());
                let whole = if form { u64::MAX } else { before };
                let recorded = store::Blocks::first(Bytes::new(whole));
                Location { written: place.written.intersection(&recorded), ..place }
            });
            let placement = volume.placement().clone();
            let (name, times) = (volume.name().to_string(), volume.times());
            let recorded = volume.recorded().clone();
            let named = (name, volume.ownership(), volume.service(), times, recorded);
            (volume.id(), named, (form, held), length, placement, places.collect())
        });
        let suspects = store.disks().iter().map(|disk| store.suspects(disk.index).to_vec());
        Self(volumes.collect(), suspects.collect(), store.policy().cloned())
    }
    /// The blocks of data that it shows: volume, block of the volume, disk, offset.
    fn blocks(&self) -> impl Iterator<Item = (VolumeId, u64, DiskIndex, u64)> {
        self.0.iter().flat_map(|(id, _, (_, held), .., places)| {
            held.clone().zip(places).flat_map(move |(extent, place)| {
                let blocks = place
                    .written
                    .runs()
                    .flat_map(|run| run.start.get() / BLOCK as u64..run.end.get() / BLOCK as u64);
                blocks.map(move |block| {
                    let offset = at(place) + block * BLOCK as u64;
                    (*id, extent * 256 + block, place.disk, offset)
                })
            })
        })
    }
}

/// A state that recovery may give, and the last data write that it covers.
#[derive(Clone)]
struct Promise {
    state: Description,
    version: u64,
}

/// An I/O that was started: a write is in the cache, a flush covers so many writes.
struct Started {
    id: IoId,
    disk: usize,
    kind: IoKind,
    covers: u64,
}

pub struct World {
    random: Random,
    fault: Fault,
    /// The power really fails now and then; without, the log fills up sooner.
    interrupted: bool,
    /// Most volumes are thin.
    is_thin: bool,
    disks: Vec<Disk>,
    store: Store,
    in_flight: Vec<Started>,
    /// I/O that the store was told has ended ([`Fault::EarlyReuse`]).
    late: Vec<Started>,
    /// Parts of a checkpoint that were not written ([`Fault::LatePart`]): disk, offset, bytes.
    held_back: Vec<(usize, u64, Vec<u8>)>,
    /// What checkpoints are written in.
    increment: Bytes,
    acknowledged: Promise,
    running: Option<(CommitId, Promise)>,
    /// Every version of every block, in order.
    history: BTreeMap<(VolumeId, u64), Vec<(u64, Block)>>,
    version: u64,
    names: u64,
    /// A write of the running commit has been started.
    log_written: bool,
    /// Whose data each place on a disk last held.
    owners: BTreeMap<(usize, u64), VolumeId>,
    /// Extents of thin volumes that are being written where they will lie.
    holding: Vec<thin::Hold>,
    /// Places that extents have settled from.
    left: Vec<(DiskIndex, Bytes)>,
    pub counts: Counts,
}

/// What happened, so that a test sees that what it is about happened at all.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Writes and flushes at which the power was cut.
    pub cuts: u64,
    pub recoveries: u64,
    /// Times that a commit became a checkpoint, counted per disk and area.
    pub checkpoints: u64,
    /// Data writes over the data of a volume that is gone.
    pub reused: u64,
    /// Extents that were moved.
    pub moved: u64,
    /// Parts of checkpoints that were written, first blocks apart, and first blocks that made
    /// one whole; counted per disk.
    pub parts: u64,
    pub built: u64,
    /// Runs of thin volumes that were placed, extents that settled at a frontier, those of them that
    /// had another place before, and places that thin rings gave back.
    pub placed: u64,
    pub settled: u64,
    pub resettled: u64,
    pub given_back: u64,
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.cuts += other.cuts;
        self.recoveries += other.recoveries;
        self.checkpoints += other.checkpoints;
        self.reused += other.reused;
        self.moved += other.moved;
        self.parts += other.parts;
        self.built += other.built;
        self.placed += other.placed;
        self.settled += other.settled;
        self.resettled += other.resettled;
        self.given_back += other.given_back;
    }
}

type Verdict = Result<(), String>;

fn pattern(volume: VolumeId, block: u64, version: u64) -> Block {
    let mut random = Random::new(volume.0 << 40 ^ block << 20 ^ version);
    let mut bytes = [0; BLOCK];
    bytes.chunks_mut(8).for_each(|word| word.copy_from_slice(&random.next().to_le_bytes()));
    Arc::new(bytes)
}

impl World {
    pub fn new(seed: u64, fault: Fault) -> Self {
        let mut random = Random::new(seed);
        let sizes: Vec<Bytes> = (0..1 + random.below(3))
            .map(|_| Bytes::mib(8 + random.below(6)) + Bytes::kib(4 * random.below(3)))
            .collect();
        Self::on(random, seed, fault, &sizes)
    }

    /// A world of thin volumes, on disks on which a frontier has room.
    pub fn thin(seed: u64, fault: Fault) -> Self {
        let mut random = Random::new(seed);
        let sizes: Vec<Bytes> =
            (0..1 + random.below(2)).map(|_| Bytes::mib(40 + random.below(20))).collect();
        let mut world = Self::on(random, seed, fault, &sizes);
        world.is_thin = true;
        world
    }

    fn on(random: Random, seed: u64, fault: Fault, sizes: &[Bytes]) -> Self {
        let mut disks = new_pool(seed, sizes);
        let mut opening = Opening::new(&capacities(&disks));
        run_until(&mut opening, &mut disks, u64::MAX);
        let store = opening.finish().expect("a new pool opens").store;
        let acknowledged = Promise { state: Description::of(&store), version: 0 };
        Self {
            random,
            fault,
            interrupted: seed % 2 == 1,
            is_thin: false,
            disks,
            store,
            in_flight: Vec::new(),
            late: Vec::new(),
            held_back: Vec::new(),
            increment: Bytes::kib(64),
            acknowledged,
            running: None,
            history: BTreeMap::new(),
            version: 0,
            names: 0,
            log_written: false,
            owners: BTreeMap::new(),
            holding: Vec::new(),
            left: Vec::new(),
            counts: Counts::default(),
        }
    }

    /// The pool gets so many volumes that its checkpoints are longer than the parts that they
    /// are written in.
    pub fn in_parts(self, seed: u64) -> Self {
        let mut world = self;
        world.increment = Bytes::kib(4 + 4 * (seed % 3));
        world.store.set_increment(world.increment);
        let volumes = 100 + world.random.below(200);
        for number in 0..volumes {
            let name = format!("{number:060}");
            world.store.create(&name, Bytes::ZERO, &Placement::default()).expect("there is room");
        }
        super::commit(&mut world.store, &mut world.disks);
        // Opened again, so that the log is empty and all is on the medium.
        world.store = super::open(&mut world.disks).expect("it opens").store;
        world.store.set_increment(world.increment);
        world.acknowledged = Promise { state: Description::of(&world.store), version: 0 };
        world
    }

    /// Lives for `steps` steps.
    pub fn live(&mut self, steps: u64) -> Verdict {
        for _ in 0..steps {
            match self.random.below(if self.is_thin { 150 } else { 100 }) {
                0..8 => self.create(),
                8..14 => self.delete(),
                14..20 => self.resize(),
                20..38 => self.write()?,
                38..54 => self.start_commit(),
                56..60 => self.relocate()?,
                60 => self.suspect(),
                61..64 => self.give_away(),
                64..67 => self.serve(),
                67 => self.choose(),
                68..70 => self.rename(),
                70 => self.use_at_a_time(),
                71..73 => self.give_up(),
                100..120 => self.hold()?,
                120..140 => self.settle()?,
                140..150 => self.give_back(),
                54 if self.interrupted => self.power_fails_in_earnest()?,
                55 if self.interrupted => self.restart()?,
                _ => self.io()?,
            }
            assert!(
                self.store.is_counted(),
                "what is kept of the sizes of volumes is what they are"
            );
        }
        Ok(())
    }

    fn create(&mut self) {
        let all = self.disks.len() as u64;
        let mut disks: Vec<DiskIndex> = Vec::new();
        for _ in 0..self.random.below(all + 1) {
            let disk = DiskIndex(self.random.below(all) as u16);
            if !disks.contains(&disk) {
                disks.push(disk);
            }
        }
        let zone = [Zone::Any, Zone::Any, Zone::Outer, Zone::Inner][self.random.index(4)];
        let size = Bytes::kib(self.random.below(5 << 10));
        let run = EXTENT * (1 << self.random.below(5));
        self.names += 1;
        let name = format!("v{}", self.names);
        let (thin, is_ring) = self.any_kind();
        let placement = Placement { disks, zone, run, thin };
        if thin {
            let whose = self.any_ownership().unwrap_or_default();
            let _ = match is_ring {
                true => self.store.create_ring(&name, Bytes::mib(32), &placement, whose),
                false => {
                    let size = size * (1 + self.random.below(3));
                    self.store.create_owned(&name, size, &placement, whose)
                }
            };
            return;
        }
        // No space is a fair answer.
        let _ = match self.any_ownership() {
            Some(whose) => self.store.create_owned(&name, size, &placement, whose),
            None => self.store.create(&name, size, &placement),
        };
    }
    /// Somebody's, or as where nobody is named.
    fn any_ownership(&mut self) -> Option<Ownership> {
        let (uid, gid) = (self.random.below(3) as u32, self.random.below(3) as u32);
        let mode = self.random.below(0o1000) as u16;
        (!self.random.once_in(3)).then_some(Ownership { uid, gid, mode })
    }
    fn give_away(&mut self) {
        if let (Some(volume), whose) = (self.any_volume(), self.any_ownership()) {
            let _ = self.store.set_ownership(volume, whose.unwrap_or_default());
        }
    }
    /// Another name, longer or shorter; sometimes that of another volume, which goes, or which
    /// gets one that is kept for it.
    fn rename(&mut self) {
        let Some(volume) = self.any_volume() else { return };
        self.names += 1;
        let new = "d/".repeat(self.random.index(9)) + &format!("v{}", self.names);
        let other = self.any_volume().filter(|other| *other != volume);
        let Some(other) = other.filter(|_| self.random.once_in(3)) else {
            return drop(self.store.rename(&[(volume, new)], None));
        };
        let name = self.store.volume(other).unwrap().name().to_string();
        let _ = match self.random.once_in(2) {
            true => self.store.rename(&[(volume, name)], Some(other)),
            false => self.store.rename(&[(other, new), (volume, name)], None),
        };
    }
    /// Somebody says when a volume was used; or what time it is, for all writes to come.
    fn use_at_a_time(&mut self) {
        let at = self.random.next().cast_signed() >> 8;
        match self.any_volume().filter(|_| self.random.once_in(2)) {
            Some(volume) => {
                let times = Times { accessed: at, modified: -at, changed: at };
                let _ = self.store.set_times(volume, times);
            }
            None => self.store.set_clock(at),
        }
    }
    /// A contract, one of another kind, or none any more.
    fn serve(&mut self) {
        let Some(volume) = self.any_volume() else { return };
        let (given_by, number) = (self.random.below(3) as u32, 1 + self.random.below(1 << 30));
        let (bytes, time) = (Bytes::new(number), Duration::from_nanos(number));
        let kind = match self.random.below(4) {
            0 => ServiceKind::BestEffort { priority: ServicePriority::Background },
            1 => ServiceKind::Rate { rate: Rate::per_second(number), block: bytes, period: time },
            2 => ServiceKind::Latency { len: bytes, within: time, every: time },
            _ => return drop(self.store.set_service(volume, None)),
        };
        let _ = self.store.set_service(volume, Some(Service { given_by, kind }));
    }
    /// Another policy for the pool, or none any more.
    fn choose(&mut self) {
        let value = self.random.below(1 << 30);
        let settings = (0..self.random.below(3)).map(|at| (format!("s{at}"), value)).collect();
        let name = ["fcfs", "ucsb"][self.random.index(2)].into();
        let policy = (!self.random.once_in(3)).then_some(KeptPolicy { name, settings });
        let _ = self.store.set_policy(policy);
    }
    fn any_volume(&mut self) -> Option<VolumeId> {
        let mut ids: Vec<VolumeId> = self.store.volumes().map(|volume| volume.id()).collect();
        if ids.len() > 50 && !self.random.once_in(8) {
            ids.drain(..ids.len() - 8); // of very many, most often one of a few
        }
        (!ids.is_empty()).then(|| ids[self.random.index(ids.len())])
    }
    fn delete(&mut self) {
        if let Some(volume) = self.any_volume() {
            self.store.delete(volume).expect("it was there");
        }
    }
    fn resize(&mut self) {
        if let Some(volume) = self.any_volume() {
            let size = Bytes::new(self.random.below(5 << 20));
            let _ = self.store.resize(volume, size);
        }
    }
    /// Writes a few blocks of one extent, over old ones, behind them, or with a hole.
    fn write(&mut self) -> Verdict {
        let Some((volume, extent)) = self.any_extent() else { return Ok(()) };
        if !self.may_write(volume, extent) || !self.place(volume, extent) {
            return Ok(());
        }
        let place = self.store.locate(volume, extent).unwrap();
        let written = place.written.watermark().get() / BLOCK as u64;
        let scattered = self.store.reserve_scattered();
        let first = match self.random.below(4) {
            0 => self.random.below(written + 1),
            1 if scattered => self.random.below(256),
            _ => written,
        };
        let count = (1 + self.random.below(3)).min(256 - first);
        if count == 0 {
            if scattered {
                self.store.release_scattered();
            }
            return Ok(());
        }
        let mut bytes = Vec::new();
        for block in extent * 256 + first..extent * 256 + first + count {
            self.version += 1;
            let content = pattern(volume, block, self.version);
            bytes.extend_from_slice(&content[..]);
            self.history.entry((volume, block)).or_default().push((self.version, content));
        }
        let offset = at(&place) + first * BLOCK as u64;
        self.note_owner(place.disk.as_usize(), offset, volume);
        self.disks[place.disk.as_usize()].write(offset, bytes);
        self.cut()?;
        let upto = Bytes::new((first + count) * BLOCK as u64);
        let from = Bytes::new(first * BLOCK as u64);
        self.store.note_written(volume, extent, &Blocks::of(&(from..upto)));
        if scattered {
            self.store.release_scattered();
        }
        let end = EXTENT * extent + upto - Bytes::new(self.random.below(BLOCK as u64));
        if let Some(clock) = self.store.clock() {
            let later = self.random.below(9_000_000_000).cast_signed();
            self.store.set_clock(clock.saturating_add(later));
            self.store.note_arrived(volume, EXTENT * extent, end);
        }
        self.store.note_length(volume, end);
        Ok(())
    }

    /// Copies an extent to a free one, block by block, and switches the map.
    fn relocate(&mut self) -> Verdict {
        let Some((id, index)) = self.any_extent() else { return Ok(()) };
        let from = self.store.locate(id, index).unwrap();
        let Some(old) = from.offset else {
            assert!(self.store.reserve(id, index).is_err(), "it lies nowhere");
            return Ok(());
        };
        let Ok(to) = self.store.reserve(id, index) else { return Ok(()) };
        let disk = from.disk.as_usize();
        let given_up = self.random.once_in(4);
        if self.fault == Fault::EarlyMove {
            self.store.relocate(id, index, to).unwrap();
            self.start_commit();
            self.io()?;
        }
        for block in 0..from.written.span().end / Bytes::new(BLOCK as u64) {
            let at = Bytes::new(BLOCK as u64) * block;
            let bytes = self.disks[disk].block((old + at).get());
            self.disks[disk].write((to + at).get(), bytes.to_vec());
            self.owners.insert((disk, (to + at).get()), id);
            self.cut()?;
        }
        if self.fault == Fault::EarlyMove {
            return Ok(());
        }
        if given_up {
            self.store.release(from.disk, to);
            return Ok(());
        }
        self.store.relocate(id, index, to).expect("there is room in the maps");
        self.counts.moved += 1;
        Ok(())
    }
    fn suspect(&mut self) {
        let disk = self.random.index(self.disks.len());
        let suspect = |extent| Suspect { extent, errors: 1, slow: 2, commands: 3 };
        let all: Vec<u32> = (0..8).filter(|_| self.random.once_in(4)).collect();
        let suspects = all.into_iter().map(suspect).collect();
        self.store.suspect(DiskIndex(disk as u16), suspects);
    }

    fn start_commit(&mut self) {
        if self.fault == Fault::EarlyReuse && !self.late.is_empty() {
            return; // the lie is about one commit at a time
        }
        if let Some(id) = self.store.commit() {
            for (disk, offset, bytes) in std::mem::take(&mut self.held_back) {
                self.disks[disk].write(offset, bytes);
            }
            let promise = Promise { state: Description::of(&self.store), version: self.version };
            self.running = Some((id, promise));
            self.log_written = false;
        }
    }
    /// Starts what can be started and ends one I/O; the power may fail before.
    fn io(&mut self) -> Verdict {
        while let Some(Io { id, disk, kind }) = self.store.poll() {
            let disk = disk.as_usize();
            let covers = self.disks[disk].writes();
            let started = Started { id, disk, kind, covers };
            if self.fault == Fault::EarlyReuse {
                self.store.done(id, Ok(Vec::new()));
                self.late.push(started);
            } else {
                self.in_flight.push(started);
            }
        }
        if !self.late.is_empty() {
            let mut started = self.late.remove(0); // in the order of the steps
            started.covers = self.disks[started.disk].writes();
            self.end(&started)?;
            if self.late.is_empty() {
                self.acknowledge();
            }
        } else if !self.in_flight.is_empty() {
            let started = self.in_flight.swap_remove(self.random.index(self.in_flight.len()));
            self.end(&started)?;
            self.store.done(started.id, Ok(Vec::new()));
            if self.running.as_ref().is_some_and(|(id, _)| self.store.committed() == *id) {
                self.acknowledge();
            }
        }
        Ok(())
    }
    fn end(&mut self, started: &Started) -> Verdict {
        match &started.kind {
            IoKind::Read { .. } => panic!("an open pool reads no metadata"),
            IoKind::Write { offset, bytes } => {
                self.log_written = true;
                let is_part = !bytes.starts_with(b"SLK");
                let is_checkpoint = bytes.starts_with(b"SLKCHECK");
                self.counts.checkpoints += u64::from(is_checkpoint);
                self.counts.parts += u64::from(is_part);
                let length = u32::from_le_bytes(bytes[88..92].try_into().unwrap());
                let is_first = is_checkpoint && length as usize > bytes.len();
                self.counts.built += u64::from(is_first);
                if is_part && self.fault == Fault::LatePart {
                    self.held_back.push((started.disk, offset.get(), bytes.clone()));
                    return Ok(());
                }
                self.disks[started.disk].write(offset.get(), bytes.clone());
                self.cut()
            }
            IoKind::Flush => {
                self.cut()?;
                let skipped = if self.log_written { Fault::NoLogFlush } else { Fault::NoDataFlush };
                if self.fault != skipped {
                    self.disks[started.disk].flush(started.covers);
                }
                Ok(())
            }
        }
    }
    fn acknowledge(&mut self) {
        self.acknowledged = self.running.take().expect("a commit was on its way").1;
    }

    /// Cuts the power here, in several ways, without ending the history.
    fn cut(&mut self) -> Verdict {
        self.counts.cuts += 1;
        let uncertain = self.disks.iter().any(|disk| !disk.is_idle());
        let ways = [Cut::Any, Cut::Dropped, Cut::Applied, Cut::Torn];
        for how in &ways[..if uncertain { 4 } else { 1 }] {
            let disks: Vec<Disk> =
                self.disks.iter().map(|disk| disk.cut(*how, &mut self.random)).collect();
            self.survives(&disks)
                .map_err(|what| format!("cut {}, {how:?}: {what}", self.counts.cuts))?;
        }
        Ok(())
    }
    /// Recovers `disks` as they are after a cut, and holds everything against the promises.
    fn survives(&mut self, disks: &[Disk]) -> Result<(Vec<Disk>, Store, Promise), String> {
        let mut whole = disks.to_vec();
        let store = self.recover(&mut whole)?;
        let state = Description::of(&store);
        let promise = self.fulfilled(&state)?;
        self.data_is_there(&whole, &promise)?;
        accounts(&store)?;
        let report = check(&whole);
        if report.worst() > Some(Severity::Note) {
            return Err(format!("check after recovery: {:#?}", report.findings));
        }
        // Cut during recovery, and recovered again.
        let mut cut = disks.to_vec();
        cut.iter_mut().for_each(|disk| disk.deaf = self.fault == Fault::NoRecoveryFlush);
        let mut opening = Opening::new(&capacities(&cut));
        let limit = 1 + self.random.below(6 * cut.len() as u64 + 2);
        run_until(&mut opening, &mut cut, limit);
        let how = [Cut::Any, Cut::Torn][self.random.index(2)];
        let mut cut: Vec<Disk> = cut.iter().map(|d| d.cut(how, &mut self.random)).collect();
        let again = self.recover(&mut cut)?;
        let again = Description::of(&again);
        // What was only in the caches when the process died may be lost with the power.
        let in_caches = disks.iter().any(|disk| !disk.is_idle());
        if again != state && !in_caches {
            return Err(format!("a cut at write or flush {limit} of recovery changed the state"));
        }
        let promise_again = self.fulfilled(&again)?;
        self.data_is_there(&cut, &promise_again)?;
        Ok((whole, store, promise))
    }
    fn recover(&mut self, disks: &mut [Disk]) -> Result<Store, String> {
        self.counts.recoveries += 1;
        let mut opening = Opening::new(&capacities(disks));
        let spared = disks.last().cloned();
        run_until(&mut opening, disks, u64::MAX);
        if self.fault == Fault::NoMirroring {
            *disks.last_mut().expect("a pool has disks") = spared.expect("a pool has disks");
        }
        let mut opened = opening.finish().map_err(|error| error.to_string())?;
        opened.store.set_increment(self.increment);
        Ok(opened.store)
    }
    /// The promise that `state` keeps.
    fn fulfilled(&self, state: &Description) -> Result<Promise, String> {
        let running = self.running.iter().map(|(_, promise)| promise);
        // The older one first: where both have one state, only its data is promised.
        let promises = [&self.acknowledged].into_iter().chain(running);
        let found = promises.into_iter().find(|promise| promise.state == *state).cloned();
        found.ok_or_else(|| {
            format!(
                "a state that was never promised: {state:#?}\nacknowledged: {:#?}",
                self.acknowledged.state
            )
        })
    }
    /// Every block that is shown is a version no older than promised.
    fn data_is_there(&self, disks: &[Disk], promise: &Promise) -> Verdict {
        for (volume, block, disk, offset) in promise.state.blocks() {
            let content = disks[disk.as_usize()].block(offset);
            let versions = self.history.get(&(volume, block)).map_or(&[][..], |all| all);
            let covered = versions.partition_point(|(version, _)| *version <= promise.version);
            if covered == 0 {
                return Err(format!("{volume:?} shows block {block}, which was never written"));
            }
            let allowed = &versions[covered - 1..];
            if allowed.iter().any(|(_, version)| *version == content) {
                continue;
            }
            let whence = |(i, byte): (usize, &u8)| allowed.iter().any(|(_, v)| v[i] == *byte);
            if !content.iter().enumerate().all(whence) {
                return Err(format!("{volume:?}, block {block}: not what was written"));
            }
        }
        Ok(())
    }

    /// The power fails, and life goes on with what is left.
    fn power_fails_in_earnest(&mut self) -> Verdict {
        let disks: Vec<Disk> =
            self.disks.iter().map(|disk| disk.cut(Cut::Any, &mut self.random)).collect();
        self.go_on(&disks)
    }
    /// The process dies; the disks keep what is in their caches.
    fn restart(&mut self) -> Verdict {
        for mut started in std::mem::take(&mut self.late) {
            started.covers = self.disks[started.disk].writes();
            self.end(&started)?;
        }
        let disks = self.disks.clone();
        self.go_on(&disks)
    }
    fn go_on(&mut self, disks: &[Disk]) -> Verdict {
        let (disks, store, promise) = self.survives(disks)?;
        // What is there now is the truth, also of blocks whose last write was torn.
        self.history.clear();
        for (volume, block, disk, offset) in promise.state.blocks() {
            let content = disks[disk.as_usize()].block(offset);
            self.history.insert((volume, block), vec![(promise.version, content)]);
        }
        (self.disks, self.store, self.acknowledged) = (disks, store, promise);
        self.running = None;
        self.in_flight.clear();
        self.late.clear();
        self.held_back.clear();
        self.holding.clear();
        self.left.clear();
        Ok(())
    }
}

/// Space is accounted for, and no extent has two owners.
pub fn accounts(store: &Store) -> Verdict {
    let mut owners: BTreeMap<(DiskIndex, u64), Id> = BTreeMap::new();
    for disk in store.disks() {
        let space = store.space_on(disk.index);
        if space.total != space.used + space.free + space.freeing {
            return Err(format!("{space:?} does not add up"));
        }
        let (mut there, mut all) = (0, 0);
        for volume in store.volumes() {
            let mut taken = 0;
            let first = volume.start() / EXTENT;
            for i in first..first + volume.extents() {
                let place = store.locate(volume.id(), i).expect("every extent lies somewhere");
                if volume.length() > volume.end() {
                    return Err(format!("{volume:?} shows more than it has"));
                }
                if place.offset.is_none() {
                    if !volume.is_thin() || !place.written.is_empty() {
                        return Err(format!("{place:?}: extent {i} of {volume:?} has no place"));
                    }
                    continue;
                }
                let key = (place.disk, at(&place));
                if place.disk == disk.index && owners.insert(key, disk.id).is_some() {
                    return Err(format!("{key:?} has two owners"));
                }
                there += u64::from(place.disk == disk.index);
                taken += 1;
            }
            if volume.taken() != EXTENT * taken
                || !volume.is_thin() && volume.taken() != volume.size()
            {
                return Err(format!("{volume:?} has taken {taken} extents"));
            }
            all += volume.extents_on(disk.index);
        }
        if space.used != EXTENT * there || there > all {
            return Err(format!("{space:?}, but volumes have {there} extents, and {all} in all"));
        }
    }
    Ok(())
}
