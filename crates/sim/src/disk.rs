//! A simulated disk: its medium, its volatile cache, its time, and its faults.
//!
//! A write is in the cache from the moment it is given to the disk; a flush that
//! begins later than a write has ended puts it on the medium. When the power is
//! cut, of what is in the cache any subset reaches the medium, whole or torn, in
//! any order.

use crate::Random;
use crate::keeps::{Everything, Keeps, Metadata};
use crate::ordering::Ordering;
use disk::{Bus, Drive, Flash, HardDisk, Profile};
use node::{CommandId, DeviceError, DiskAction};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::rc::Rc;
use units::{Access, Bytes, Command, Direction, Duration, Instant, Lba, Rate};

const BLOCK: usize = 4096;
/// What a power cut may tear: the sector that the electronics guard.
const SECTOR: usize = 512;

/// How long commands take.
#[derive(Clone, Debug)]
pub enum Timing {
    /// As this drive would.
    Drive(Box<HardDisk>),
    /// As this drive would on a bus that other disks use, too; a copy of the disk
    /// stays on the same bus.
    OnBus(Box<HardDisk>, Rc<RefCell<Bus>>),
    /// As a drive would that takes the commands that it has in an order of its own. Slow places and
    /// a standstill are not known to it.
    Ordering(Ordering),
    /// As this device would, which works on several commands at once.
    Flash(Box<Flash>),
    /// A random share, up to all, of the profile's bound.
    WithinBound(Box<Profile>, Random),
    /// So many percent of the profile's bound: above 100 the disk breaks its promise.
    Percent(Box<Profile>, u64),
    /// So many percent of the profile's bound, and once in `once_in` times `rarely`.
    Seldom {
        /// The profile.
        profile: Box<Profile>,
        /// Percent of its bound.
        percent: u64,
        /// The long time.
        rarely: Duration,
        /// How seldom.
        once_in: u64,
        /// Draws.
        random: Random,
    },
    /// A fixed time, for tests of content.
    Fixed(Duration),
}

/// What shall go wrong, once `after` commands have been served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Reads of this range of bytes fail with EIO.
    ReadError {
        /// From here
        from: Bytes,
        /// to here.
        to: Bytes,
    },
    /// All writes and flushes fail with EIO.
    WriteError {
        /// Commands that still go well.
        after: u64,
    },
    /// Transfers that touch this range of bytes take so many percent of their time.
    Slow {
        /// From here
        from: Bytes,
        /// to here.
        to: Bytes,
        /// More than 100.
        percent: u64,
    },
    /// Flushes take so much longer.
    SlowFlush {
        /// By this.
        by: Duration,
    },
    /// Flushes succeed and do nothing: the disk lies.
    LyingFlush,
    /// The disk stands still: what would be under way then ends so much later.
    Stall {
        /// From then
        from: Instant,
        /// to then.
        to: Instant,
    },
    /// One command fails with EIO, whatever it does.
    ErrorAt {
        /// Commands that end before it.
        number: u64,
    },
    /// Of a million commands so many fail with EIO, whatever they do.
    Errors {
        /// At most a million.
        ppm: u64,
        /// Which ones follows from it.
        seed: u64,
    },
}

#[derive(Clone, Debug)]
struct Cached {
    offset: u64,
    bytes: Vec<u8>,
    /// The write has ended; a flush that begins from now on covers it.
    ended: bool,
}

#[derive(Clone, Debug)]
struct Running {
    id: CommandId,
    action: DiskAction,
    predicted: Duration,
    started: Instant,
    finish: Instant,
    /// The cached write, or how many of the cache a flush covers.
    cached: Option<u64>,
}

/// How a command ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Finished {
    pub id: CommandId,
    pub predicted: Duration,
    pub started: Instant,
    pub finished: Instant,
    pub result: Result<(), DeviceError>,
    /// What it read of the disk.
    pub read: Bytes,
}

/// One disk of a [`World`](crate::World). What it keeps is in its type: a
/// `SimDisk<Metadata>` takes the time of any disk, and forgets the content.
#[derive(Clone, Debug)]
pub struct SimDisk<K = Everything> {
    keeps: PhantomData<K>,
    capacity: Bytes,
    timing: Timing,
    /// Shared between copies of the disk until written, so that a copy is cheap.
    medium: BTreeMap<u64, Rc<[u8; BLOCK]>>,
    cache: BTreeMap<u64, Cached>,
    next_cached: u64,
    running: Vec<Running>,
    busy_until: Instant,
    head: Lba,
    served: u64,
    /// How fast its thread copies what needs no disk, one after the other; at once, where nothing
    /// is said.
    pub copies: Option<Rate>,
    copying_until: Instant,
    /// What shall go wrong.
    pub faults: Vec<Fault>,
}

impl SimDisk {
    /// An empty disk, all zeros.
    pub fn new(capacity: Bytes, timing: Timing) -> Self {
        Self::keeping(capacity, timing)
    }

    /// What a reader would get now: the medium with the cache over it.
    pub fn read(&self, offset: Bytes, into: &mut [u8]) {
        self.kept(offset, into);
    }
}

impl SimDisk<Metadata> {
    /// An empty disk that keeps a pool's metadata and forgets the content, however
    /// much there is of it.
    pub fn metadata_only(capacity: Bytes, timing: Timing) -> Self {
        Self::keeping(capacity, timing)
    }
}

impl<K: Keeps> SimDisk<K> {
    /// An empty disk that keeps what its type says.
    pub fn keeping(capacity: Bytes, timing: Timing) -> Self {
        Self {
            keeps: PhantomData,
            capacity,
            timing,
            medium: BTreeMap::new(),
            cache: BTreeMap::new(),
            next_cached: 0,
            running: Vec::new(),
            busy_until: Instant::EPOCH,
            head: Lba::new(0),
            served: 0,
            copies: None,
            copying_until: Instant::EPOCH,
            faults: Vec::new(),
        }
    }

    /// Its size.
    pub fn capacity(&self) -> Bytes {
        self.capacity
    }

    /// The most commands that it had at a time, where it serves them in [any order](Ordering::Any).
    pub fn deepest(&self) -> usize {
        match &self.timing {
            Timing::Ordering(Ordering::Any(any)) => any.deepest,
            _ => 1,
        }
    }

    /// Commands served since it was made.
    pub fn served(&self) -> u64 {
        self.served
    }

    /// Writes and flushes that a power cut could fall on.
    pub fn unflushed(&self) -> usize {
        self.cache.len()
    }

    /// What is kept of these bytes: the medium with the cache over it.
    pub(crate) fn kept(&self, offset: Bytes, into: &mut [u8]) {
        let mut at = offset.get();
        let mut rest = &mut *into;
        while !rest.is_empty() {
            let within = at as usize % BLOCK;
            let len = rest.len().min(BLOCK - within);
            let (now, later) = rest.split_at_mut(len);
            match self.medium.get(&(at / BLOCK as u64)) {
                Some(block) => now.copy_from_slice(&block[within..within + len]),
                None => now.fill(0),
            }
            rest = later;
            at += len as u64;
        }
        for write in self.cache.values() {
            overlay(into, offset.get(), &write.bytes, write.offset);
        }
    }

    /// Puts bytes on the medium at once, as formatting and planted damage do.
    pub fn put(&mut self, offset: Bytes, bytes: &[u8]) {
        let mut at = offset.get();
        let mut rest = bytes;
        while !rest.is_empty() {
            let within = at as usize % BLOCK;
            let len = rest.len().min(BLOCK - within);
            let block = self.medium.entry(at / BLOCK as u64).or_insert_with(|| Rc::new([0; BLOCK]));
            Rc::make_mut(block)[within..within + len].copy_from_slice(&rest[..len]);
            rest = &rest[len..];
            at += len as u64;
        }
    }

    /// Writes through the cache, not yet flushed.
    pub fn write(&mut self, offset: Bytes, bytes: Vec<u8>) -> u64 {
        let key = self.next_cached;
        self.next_cached += 1;
        self.cache.insert(key, Cached { offset: offset.get(), bytes, ended: false });
        key
    }

    /// Puts every ended write on the medium.
    pub fn flush(&mut self) {
        self.flush_below(self.next_cached);
    }

    /// Marks a cached write as ended.
    pub fn write_ended(&mut self, key: u64) {
        if let Some(write) = self.cache.get_mut(&key) {
            write.ended = true;
        }
    }

    /// A write that fails has got half-way all the same.
    fn cut_short(&mut self, key: u64) {
        if let Some(write) = self.cache.get_mut(&key) {
            write.bytes.truncate(write.bytes.len() / 2);
        }
    }

    fn flush_below(&mut self, below: u64) {
        if self.faults.contains(&Fault::LyingFlush) {
            return;
        }
        let covered: Vec<u64> = self
            .cache
            .range(..below)
            .filter(|(_, write)| write.ended)
            .map(|(&key, _)| key)
            .collect();
        for key in covered {
            let write = self.cache.remove(&key).expect("a key of the cache");
            self.put(Bytes::new(write.offset), &write.bytes);
        }
    }

    /// The power goes: what is left of the disk when it comes back.
    pub fn cut(mut self, random: &mut Random) -> Self {
        let mut writes: Vec<Cached> = core::mem::take(&mut self.cache).into_values().collect();
        // Of two writes to one place either may be the last.
        for at in (1..writes.len()).rev() {
            writes.swap(at, random.below(at as u64 + 1) as usize);
        }
        let mood = random.below(4);
        for write in writes {
            match if mood == 3 { random.below(3) } else { mood } {
                0 => {}
                1 => self.put(Bytes::new(write.offset), &write.bytes),
                _ => self.tear(&write, random),
            }
        }
        self.running.clear();
        if let Timing::Ordering(ordering) = &mut self.timing {
            ordering.cut();
        }
        self.busy_until = Instant::EPOCH;
        self
    }

    fn tear(&mut self, write: &Cached, random: &mut Random) {
        for (index, sector) in write.bytes.chunks(SECTOR).enumerate() {
            if random.chance(50) {
                self.put(Bytes::new(write.offset + (index * SECTOR) as u64), sector);
            }
        }
    }

    /// Begins a command. Data of a write is taken now.
    pub(crate) fn start(
        &mut self,
        now: Instant,
        command: node::DiskCommand,
        memory: &mut K::Memory,
    ) {
        let node::DiskCommand { id, action, predicted, .. } = command;
        let command = action.transfer().map_or(Command::Flush, |(range, direction)| {
            let len = (range.end - range.start).round_up(Bytes::new(BLOCK as u64));
            Command::Transfer(Access { lba: Lba::containing(range.start), len, direction })
        });
        let cached = match &action {
            DiskAction::Read { .. } | DiskAction::Merge { .. } => None,
            DiskAction::Copy { .. } => {
                self.check_copy(&action, memory);
                None
            }
            DiskAction::Write { offset, span, .. } => {
                let taken = K::taken(memory, span);
                taken.map(|bytes| self.write(*offset, bytes))
            }
            DiskAction::Several { direction: Direction::Read, .. } => None,
            DiskAction::Several { offset, spans, .. } => {
                let taken = spans.iter().map(|span| K::taken(memory, span));
                let taken: Option<Vec<_>> = taken.collect();
                taken.map(|bytes| self.write(*offset, bytes.concat()))
            }
            DiskAction::WriteBytes { offset, bytes } => Some(self.write(*offset, bytes.clone())),
            DiskAction::Flush => Some(self.next_cached),
        };
        let instant = action.needs_no_disk();
        if let (Timing::Ordering(queue), false) = (&mut self.timing, instant) {
            queue.submit(now, id.0, command);
            let (started, finish) = (now, Instant::MAX);
            return self.running.push(Running { id, action, predicted, started, finish, cached });
        }
        let overlaps = matches!(self.timing, Timing::Flash(_));
        let begin = if overlaps { now } else { now.max(self.busy_until) };
        let time = if instant { Duration::ZERO } else { self.time(begin, &command) };
        let finish = match (&action, self.copies) {
            (DiskAction::Copy { span, .. }, Some(rate)) => {
                self.copying_until = self.copying_until.max(now) + rate.time_for(span.len);
                self.copying_until
            }
            _ if instant => now,
            _ => begin + time,
        };
        if !instant {
            self.busy_until = self.busy_until.max(finish);
        }
        self.running.push(Running { id, action, predicted, started: begin, finish, cached });
    }

    fn time(&mut self, start: Instant, command: &Command) -> Duration {
        let head = self.head;
        if let Some(end) = command.end() {
            self.head = end;
        }
        let time = match &mut self.timing {
            Timing::Drive(drive) => drive.serve(start, command),
            Timing::Ordering(_) => unreachable!("it says at the end when that is"),
            Timing::OnBus(drive, bus) => drive.serve_sharing(&mut bus.borrow_mut(), start, command),
            Timing::Flash(flash) => flash.submit(start, command),
            Timing::WithinBound(profile, random) => {
                let bound = profile.bound(head, command);
                Duration::from_nanos(random.between(1, bound.as_nanos().max(1)))
            }
            Timing::Percent(profile, percent) => profile.bound(head, command) * *percent / 100,
            Timing::Seldom { profile, percent, rarely, once_in, random } => {
                match random.below(*once_in) {
                    0 => *rarely,
                    _ => profile.bound(head, command) * *percent / 100,
                }
            }
            Timing::Fixed(time) => *time,
        };
        let range = command.access().map(|access| access.lba.offset()..access.end().offset());
        self.faults.iter().fold(time, |time, fault| match (fault, &range) {
            (Fault::Slow { from, to, percent }, Some(range))
                if *from < range.end && range.start < *to =>
            {
                time * *percent / 100
            }
            (Fault::SlowFlush { by }, None) => time + *by,
            (Fault::Stall { from, to }, _) if start < *to && start + time > *from => {
                time + (*to - start.max(*from))
            }
            _ => time,
        })
    }

    /// When the next command ends.
    pub(crate) fn next_finish(&self) -> Option<Instant> {
        let at_end = match &self.timing {
            Timing::Ordering(queue) => queue.next_completion(),
            _ => None,
        };
        let known = self.running.iter().map(|running| running.finish);
        known.chain(at_end).min().filter(|&at| at < Instant::MAX)
    }

    /// Ends a command that is due by `now`.
    pub(crate) fn finish(&mut self, now: Instant, memory: &mut K::Memory) -> Option<Finished> {
        if let Timing::Ordering(queue) = &mut self.timing
            && let Some((tag, end)) = queue.complete(now)
        {
            let running = self.running.iter_mut().find(|running| running.id == CommandId(tag));
            running.expect("what it was given runs").finish = end;
        }
        let due = self.running.iter().enumerate().filter(|(_, running)| running.finish <= now);
        let (at, _) = due.min_by_key(|(_, running)| (running.finish, running.id))?;
        let running = self.running.remove(at);
        let result = self.effect(&running, memory);
        self.served += 1;
        let Running { id, action, predicted, started, finish: finished, .. } = running;
        let read = match action.transfer() {
            Some((range, units::Direction::Read)) => range.end - range.start,
            _ => Bytes::ZERO,
        };
        Some(Finished { id, predicted, started, finished, result, read })
    }

    /// Whether the command that is the next to end fails, whatever it does.
    fn fails(&self) -> bool {
        self.faults.iter().any(|fault| match *fault {
            Fault::Errors { ppm, seed } => Random::new(seed ^ self.served).below(1_000_000) < ppm,
            Fault::ErrorAt { number } => self.served == number,
            _ => false,
        })
    }

    fn effect(&mut self, running: &Running, memory: &mut K::Memory) -> Result<(), DeviceError> {
        const EIO: DeviceError = DeviceError(5);
        let writes_fail = self
            .faults
            .iter()
            .any(|fault| matches!(fault, Fault::WriteError { after } if self.served >= *after));
        let writes_fail = writes_fail || self.fails();
        match &running.action {
            action @ DiskAction::Copy { .. } => self.fill(action, memory),
            action if action.needs_no_disk() => self.fill(action, memory),
            action @ (DiskAction::Read { .. }
            | DiskAction::Merge { .. }
            | DiskAction::Several { direction: Direction::Read, .. }) => {
                let (range, _) = action.transfer().expect("it reads");
                let hit = |fault: &Fault| matches!(fault, Fault::ReadError { from, to } if *from < range.end && range.start < *to);
                if self.faults.iter().any(hit) || self.fails() {
                    return Err(EIO);
                }
                self.fill(action, memory);
            }
            DiskAction::Write { .. }
            | DiskAction::Several { .. }
            | DiskAction::WriteBytes { .. } => {
                if let Some(key) = running.cached {
                    self.write_ended(key);
                }
                if writes_fail {
                    running.cached.into_iter().for_each(|key| self.cut_short(key));
                    return Err(EIO);
                }
            }
            DiskAction::Flush => {
                if writes_fail {
                    return Err(EIO);
                }
                self.flush_below(running.cached.expect("a flush knows what it covers"));
            }
        }
        Ok(())
    }

    /// What a read brings into memory.
    fn fill(&mut self, action: &DiskAction, memory: &mut K::Memory) {
        match action {
            DiskAction::Read { offset, span, written } => {
                let Some(whole) = K::place(memory, span) else { return };
                whole.fill(0);
                for run in written.runs() {
                    self.kept(
                        *offset + run.start,
                        &mut whole[run.start.as_usize()..run.end.as_usize()],
                    );
                }
            }
            DiskAction::Several { offset, spans, .. } => {
                let mut at = *offset;
                for span in spans {
                    let Some(whole) = K::place(memory, span) else { return };
                    self.kept(at, whole);
                    at += span.len;
                }
            }
            DiskAction::Merge { offset, span, keep, upto } => {
                let Some(whole) = K::place(memory, span) else { return };
                let mut block = vec![0; whole.len()];
                if !upto.is_zero() {
                    self.kept(*offset, &mut block[..upto.as_usize()]);
                }
                let keep = keep.start.as_usize()..keep.end.as_usize();
                block[keep.clone()].copy_from_slice(&whole[keep]);
                whole.copy_from_slice(&block);
            }
            DiskAction::Copy { from, span, .. } => {
                let bytes = K::place(memory, from).map(|bytes| bytes.to_vec());
                if let (Some(bytes), Some(whole)) = (bytes, K::place(memory, span)) {
                    whole.copy_from_slice(&bytes);
                }
            }
            _ => unreachable!("only what reads fills memory"),
        }
    }

    /// What is in memory in place of a read is what the read would bring.
    fn check_copy(&mut self, action: &DiskAction, memory: &mut K::Memory) {
        let DiskAction::Copy { from, offset, span, written } = action else { return };
        let Some(there) = K::place(memory, from).map(|bytes| bytes.to_vec()) else { return };
        let mut disks = vec![0; span.len.as_usize()];
        for run in written.runs() {
            let (at, end) = (run.start.as_usize(), run.end.as_usize());
            self.kept(*offset + run.start, &mut disks[at..end]);
        }
        assert!(there == disks, "memory has other bytes than the disk: {action:?}");
    }
}

/// Copies what of `bytes` (at `from`) falls into `into` (at `offset`).
fn overlay(into: &mut [u8], offset: u64, bytes: &[u8], from: u64) {
    let start = offset.max(from);
    let end = (offset + into.len() as u64).min(from + bytes.len() as u64);
    if start < end {
        let len = (end - start) as usize;
        into[(start - offset) as usize..][..len]
            .copy_from_slice(&bytes[(start - from) as usize..][..len]);
    }
}
