//! A pool in memory that answers when a test says so, and a daemon around it.
//!
//! Time does not pass in it: a test waits for what happened ([`Fake::wait`]),
//! never for a while.
#![allow(dead_code)] // each test file uses its part

use client::Client;
use daemon::config::SocketMode;
use daemon::pool::{Callback, Chunk, Description, HostLateness, Pool, Reply, Room};
use daemon::quotas::own_uid;
use daemon::serve::{ServeError, ServeOptions};
use daemon::socket::Claim;
use node::*;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use tempfile::TempDir;
use units::{Bytes, Duration, Instant, Rate};
use wire::control::Lateness;

/// The sum of rates that the fake admits.
pub const RATE_MAX: Rate = Rate::per_second(10_000_000);
/// The most that the fake gives at once, so that answers come in pieces.
const PIECE: u64 = 5000;

/// The ends of writes.
type Ends = Vec<Box<dyn FnOnce()>>;

thread_local! {
    /// In the midst of a go.
    static GO: std::cell::RefCell<Option<Ends>> = const { std::cell::RefCell::new(None) };
}

pub struct Fake {
    state: Mutex<State>,
    news: Condvar,
    /// The next who asks how it is finds that it has gone wrong.
    pub fails: AtomicBool,
}

#[derive(Default)]
pub struct State {
    pub volumes: BTreeMap<String, Volume>,
    pub streams: BTreeMap<u64, Stream>,
    /// Volumes that were made by an operation.
    pub made: u64,
    pub last_stream: u64,
    /// Nobody is told beforehand what a contract would take.
    pub hides_terms: bool,
    /// How every stream was closed, in order: its number and its durable end.
    pub closed: Vec<(u64, u64)>,
    /// Best-effort operations begun and held back.
    pub held: Vec<(Op, Callback)>,
    pub hold_best_effort: bool,
    /// Nobody is told what a plan needs to know.
    pub hold_plans: bool,
    /// How often somebody asked for that.
    pub plans: u64,
    /// Writes are held back.
    pub hold_writes: bool,
    /// Those that were.
    pub held_writes: Vec<Box<dyn FnOnce() + Send>>,
    /// Reads of these volume bytes are gaps.
    pub gap: Option<(u64, u64)>,
    /// Commits go nowhere while set; those who wait for durability wait on.
    pub hold_commits: bool,
    /// Whose change of a volume's service is in force, and not durable.
    pub uncommitted: Vec<Callback>,
    /// Readers are not answered while set: as if what they ask for had not been written yet.
    pub hold_reads: bool,
    /// Streams are not closed while set: as if their last commit took long.
    pub hold_closes: bool,
    /// Refusals are not told while set: as if what would have fitted were searched for.
    pub hold_refusals: bool,
    /// Streams are not opened while set.
    pub hold_opens: bool,
    /// A change to this rate is in force, and not answered while set.
    pub hold_changes_to: Option<Rate>,
    /// The pool is told to end and does not.
    pub hold_shutdown: bool,
    pub shut_down: bool,
    /// So much time has passed.
    pub passed: Duration,
    /// The priority that each best-effort operation stated, in order.
    pub stated: Vec<Option<Priority>>,
    rooms: Arc<Mutex<BTreeMap<u64, Vec<u8>>>>,
}

#[derive(Clone, Default)]
pub struct Volume {
    /// Of those that were made by an operation each has its own.
    pub number: u64,
    pub size: u64,
    pub ownership: Ownership,
    pub service: Service,
    /// Who gave it.
    pub given_by: Option<u32>,
    pub data: Vec<u8>,
    pub changes: u64,
    /// For which memory is set aside.
    pub operations: u64,
    /// A ring, and for how long it keeps what it has.
    pub ring: Option<Option<Duration>>,
}

pub struct Stream {
    pub volume: String,
    pub mode: Mode,
    pub contract: Contract,
    pub position: u64,
    pub durable: u64,
    waiting: Vec<(u64, Callback)>,
}

struct FakeChunk(Vec<u8>);
impl Chunk for FakeChunk {
    fn bytes(&self) -> &[u8] {
        &self.0
    }
    fn into_any(self: Box<Self>) -> Box<dyn std::any::Any> {
        self
    }
}

/// Leaves its bytes with the pool when dropped.
struct FakeRoom {
    stream: u64,
    bytes: Vec<u8>,
    home: Arc<Mutex<BTreeMap<u64, Vec<u8>>>>,
}
impl Room for FakeRoom {
    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
    fn into_any(self: Box<Self>) -> Box<dyn std::any::Any> {
        self
    }
}
impl Drop for FakeRoom {
    fn drop(&mut self) {
        self.home.lock().unwrap().insert(self.stream, std::mem::take(&mut self.bytes));
    }
}

type Result<T> = std::result::Result<T, Error>;

impl Default for Fake {
    /// A failed assertion may drop the daemon with its locks, which ends the process: it is said by then.
    fn default() -> Self {
        engine::keep_panics();
        let (state, news, fails) = (Mutex::default(), Condvar::new(), AtomicBool::new(false));
        Self { state, news, fails }
    }
}

impl Fake {
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Waits until the pool has come to this.
    pub fn wait(&self, mut done: impl FnMut(&State) -> bool) -> MutexGuard<'_, State> {
        let state = self.state();
        self.news.wait_while(state, |state| !done(state)).unwrap()
    }

    /// Lets what was held back happen, from now on.
    pub fn release(&self) {
        let held = {
            let mut state = self.state();
            (state.hold_writes, state.hold_plans) = (false, false);
            let writes = std::mem::take(&mut state.held_writes);
            drop(state);
            writes.into_iter().for_each(|write| write());
            let mut state = self.state();
            (state.hold_best_effort, state.hold_commits) = (false, false);
            (state.hold_closes, state.hold_refusals) = (false, false);
            state.hold_reads = false;
            (state.hold_opens, state.hold_changes_to) = (false, None);
            std::mem::take(&mut state.held)
        };
        for (op, callback) in held {
            self.submit(Who::root(), op, callback);
        }
        self.commit();
    }

    /// Everything written is on the medium; those who waited hear of it.
    pub fn commit(&self) {
        let mut heard = Vec::new();
        let mut state = self.state();
        if state.hold_commits {
            return;
        }
        for stream in state.streams.values_mut().filter(|stream| stream.mode == Mode::Write) {
            stream.durable = stream.position;
            let upto = Bytes::new(stream.durable);
            let (now, later): (Vec<_>, Vec<_>) =
                stream.waiting.drain(..).partition(|(beyond, _)| stream.durable > *beyond);
            stream.waiting = later;
            heard.extend(now.into_iter().map(|(_, callback)| (upto, callback)));
        }
        let changed = std::mem::take(&mut state.uncommitted);
        drop(state);
        for callback in changed {
            callback(Ok(Reply::Done));
        }
        for (upto, callback) in heard {
            callback(Ok(Reply::Durable { upto }));
        }
    }
}

impl State {
    fn volume(&mut self, name: &str) -> Result<&mut Volume> {
        let found = self.known_as(name).and_then(|name| self.volumes.get_mut(&name));
        found.ok_or_else(|| Error::NoSuchVolume { name: name.into() })
    }

    /// The name of a volume, that may be given by its number.
    fn known_as(&self, name: &str) -> Option<String> {
        let Some(number) = name.strip_prefix('/') else { return Some(name.into()) };
        let number: u64 = number.parse().ok()?;
        let mut all = self.volumes.iter();
        all.find(|(_, volume)| volume.number == number).map(|(name, _)| name.clone())
    }

    fn found(&self, name: &str) -> Option<&Volume> {
        self.volumes.get(&self.known_as(name)?)
    }

    /// As a node does.
    fn permit(&self, who: &Who, op: &Op) -> Result<()> {
        match permission::Wanted::by(op) {
            permission::Wanted::Of(name, act) => {
                let none = || Error::NoSuchVolume { name: name.into() };
                let volume = self.found(name).ok_or_else(none)?;
                permission::check(who, name, volume.ownership, act)
            }
            permission::Wanted::ReadAndWrite(name) => {
                let none = || Error::NoSuchVolume { name: name.into() };
                let whose = self.found(name).ok_or_else(none)?.ownership;
                permission::check(who, name, whose, node::Act::Read)?;
                permission::check(who, name, whose, node::Act::Write)
            }
            permission::Wanted::Pool(what) if !who.is_superuser => Err(Error::OnlyRoot { what }),
            _ => Ok(()),
        }
    }

    fn stream(&mut self, stream: StreamId, mode: Mode) -> Result<&mut Stream> {
        let found = self.streams.get_mut(&stream.0).ok_or(Error::NoSuchStream { stream })?;
        if found.mode == mode { Ok(found) } else { Err(Error::WrongMode) }
    }

    fn open(
        &mut self,
        volume: String,
        mode: Mode,
        contract: Contract,
        start: Bytes,
    ) -> Result<Reply> {
        self.volume(&volume)?;
        let taken: Rate = self.streams.values().map(|stream| stream.contract.rate).sum();
        if taken + contract.rate > RATE_MAX {
            return Err(Error::Refused(Refusal {
                disk: DiskIndex(0),
                utilisation_ppm: (taken + contract.rate).get() * 1_000_000 / RATE_MAX.get(),
                deadline: Some((Duration::from_millis(507), Duration::from_millis(7))),
                rate_max: RATE_MAX - taken,
                longer: None,
                within: None,
                bus: None,
                undecided: false,
                parts: 1,
            }));
        }
        self.last_stream += 1;
        let (position, durable) = (start.get(), start.get());
        let stream = Stream { volume, mode, contract, position, durable, waiting: Vec::new() };
        self.streams.insert(self.last_stream, stream);
        Ok(Reply::Stream { stream: StreamId(self.last_stream), window: contract.block * 2 })
    }

    fn read(&mut self, stream: StreamId, len_max: Bytes) -> Result<Reply> {
        let gap = self.gap;
        let found = self.stream(stream, Mode::Read)?;
        let (name, at) = (found.volume.clone(), found.position);
        if let Some((from, len)) = gap
            && at == from
        {
            found.position += len;
            return Ok(Reply::Gap { offset: Bytes::new(from), len: Bytes::new(len) });
        }
        let data = &self.volume(&name)?.data;
        let stop = gap.map_or(u64::MAX, |(from, _)| if at < from { from } else { u64::MAX });
        let end = (data.len() as u64).min(at + len_max.get().min(PIECE)).min(stop);
        if end <= at {
            return Ok(Reply::End);
        }
        let chunk = Box::new(FakeChunk(data[at as usize..end as usize].to_vec()));
        Ok(Reply::Data { bytes: chunk, offset: Bytes::new(at) })
    }

    fn room(&mut self, stream: StreamId, len_max: Bytes) -> Result<Reply> {
        let found = self.stream(stream, Mode::Write)?;
        let (name, at) = (found.volume.clone(), found.position);
        let size = self.volume(&name)?.size;
        let len = len_max.get().min(PIECE).min(size - at);
        if len == 0 {
            return Err(Error::VolumeFull { size: Bytes::new(size) });
        }
        Ok(self.new_room(stream.0, len))
    }

    fn new_room(&self, stream: u64, len: u64) -> Reply {
        let (bytes, home) = (vec![0; len as usize], Arc::clone(&self.rooms));
        Reply::Room { room: Box::new(FakeRoom { stream, bytes, home }) }
    }

    fn change(&mut self, stream: StreamId, contract: Contract) -> Result<Reply> {
        let found = self.streams.get_mut(&stream.0).ok_or(Error::NoSuchStream { stream })?;
        if contract.rate > RATE_MAX {
            return Err(Error::Refused(Refusal {
                disk: DiskIndex(0),
                utilisation_ppm: 1_100_000,
                deadline: None,
                rate_max: RATE_MAX,
                longer: None,
                within: None,
                bus: None,
                undecided: false,
                parts: 1,
            }));
        }
        found.contract = contract;
        Ok(Reply::Stream { stream, window: contract.block * 3 })
    }

    fn write(&mut self, stream: StreamId, len: Bytes) -> Result<Reply> {
        let bytes = self.rooms.lock().unwrap().remove(&stream.0).expect("room was given back");
        let found = self.stream(stream, Mode::Write)?;
        let (name, at) = (found.volume.clone(), found.position as usize);
        found.position += len.get();
        let data = &mut self.volume(&name)?.data;
        data.resize(data.len().max(at + len.as_usize()), 0);
        data[at..at + len.as_usize()].copy_from_slice(&bytes[..len.as_usize()]);
        Ok(Reply::Done)
    }

    fn close(&mut self, stream: StreamId) -> Result<(Reply, Vec<Callback>)> {
        let found = self.streams.remove(&stream.0).ok_or(Error::NoSuchStream { stream })?;
        let waiting = found.waiting.into_iter().map(|(_, callback)| callback).collect();
        self.closed.push((stream.0, found.position));
        let upto = Bytes::new(found.position);
        let answer = match found.mode {
            Mode::Read => Reply::Done,
            Mode::Write | Mode::Update => Reply::Durable { upto },
        };
        Ok((answer, waiting))
    }

    fn best_effort(&mut self, op: Op) -> Result<Reply> {
        match op {
            Op::Read { volume, offset, len, priority } => {
                self.stated.push(priority);
                let size = Bytes::new(self.volume(&volume)?.size);
                if offset + len > size {
                    return Err(Error::BeyondEnd { size });
                }
                let mut bytes = self.volume(&volume)?.data.clone();
                bytes.resize(size.as_usize(), 0);
                let bytes = bytes[offset.as_usize()..][..len.as_usize()].to_vec();
                Ok(Reply::Data { bytes: Box::new(FakeChunk(bytes)), offset })
            }
            Op::Room { len, .. } => Ok(self.new_room(0, len.get())),
            Op::Sync => Ok(Reply::Done),
            other => unreachable!("{other:?}"),
        }
    }

    fn volume_op(&mut self, who: &Who, op: Op) -> Result<Reply> {
        match op {
            Op::VolumeCreate { name, size, access, .. } => {
                let ownership = permission::settle(who, permission::of_new(who), access)?;
                if self.volumes.contains_key(&name) {
                    return Err(Error::VolumeExists { name });
                }
                self.made += 1;
                let (number, size) = (self.made, size.get());
                self.volumes.insert(name, Volume { number, size, ownership, ..Volume::default() });
                return Ok(Reply::Made { volume: VolumeId(number) });
            }
            Op::RingCreate { name, size, placement, access, keep } => {
                let create = Op::VolumeCreate { name: name.clone(), size, placement, access };
                let made = self.volume_op(who, create)?;
                self.volume(&name)?.ring = Some(keep);
                return Ok(made);
            }
            Op::RingKeep { name, keep } => {
                *self.volume(&name)?.ring.as_mut().ok_or(store::StoreError::NoRing)? = keep;
            }
            // Nothing is noted of when volumes were recorded.
            Op::VolumeCopied { name, of, .. } => {
                self.volume(&of)?;
                self.volume(&name)?;
            }
            Op::VolumeResize { name, size, may_cut } => {
                let volume = self.volume(&name)?;
                let recorded = Bytes::new(volume.data.len() as u64);
                if size < recorded && !may_cut {
                    return Err(Error::WouldCut { name, recorded, size });
                }
                volume.size = size.get();
            }
            Op::VolumeResizeWithin { name, size, may_cut: true, .. } => {
                self.volume(&name)?.size = size.get();
            }
            Op::VolumeAccess { name, access } => {
                let volume = self.volume(&name)?;
                volume.ownership = permission::settle(who, volume.ownership, access)?;
            }
            Op::VolumeRename { name, to, .. } => {
                self.volume(&name)?;
                let volume = self.volumes.remove(&name).expect("just found");
                self.volumes.insert(to, volume);
            }
            Op::VolumeTimes { name, .. } => {
                self.volume(&name)?;
            }
            Op::VolumeDelete { name, .. } => {
                let streams = self.streams.values().filter(|s| s.volume == name).count() as u64;
                if streams > 0 {
                    return Err(Error::VolumeBusy { name, streams });
                }
                self.volume(&name)?;
                self.volumes.remove(&name);
            }
            other => unreachable!("{other:?}"),
        }
        Ok(Reply::Done)
    }
}

/// What planning knows of a pool of one disk of no particular kind.
fn planner() -> node::Planner {
    let profile = disk::Profile::parse(PROFILE).unwrap();
    node::Planner::new(daemon::config::node_default(), vec![profile], Duration::ZERO).unwrap()
}

const PROFILE: &str = "\
kind = 'linear'
source = 'stated by the tests'
confidence = 'none'
capacity = '256MiB'
flush = '2ms'
[linear]
depth = 1
latency = '1ms'
read = { fixed = '1ms', rate = '100MB/s' }
write = { fixed = '1ms', rate = '100MB/s' }
";

impl Pool for Fake {
    fn advance(
        &self,
        who: Who,
        stream: StreamId,
        (chunk, len): (Box<dyn Chunk>, Bytes),
        callback: Callback,
        (next, taken): (Bytes, Callback),
    ) {
        drop(chunk);
        self.submit(who, Op::StreamAdvance { stream, len }, callback);
        let mut state = self.state();
        let gap = state.gap.map(|(from, _)| from);
        let is_gap = state.streams.get(&stream.0).is_some_and(|one| gap == Some(one.position));
        if is_gap || state.hold_reads {
            return;
        }
        let read = state.read(stream, next);
        drop(state);
        if let Ok(Reply::Data { .. }) = read {
            taken(read);
        }
    }
    fn recorded(&self, name: &str) -> Option<node::Recorded> {
        // Nothing was noted of any volume that is there.
        self.volume(name).map(|_| node::Recorded::default())
    }
    fn submit(&self, who: Who, op: Op, callback: Callback) {
        let mut state = self.state();
        if let Err(error) = state.permit(&who, &op) {
            drop(state);
            return callback(Err(error));
        }
        let mut ended = Vec::new();
        let again = state.hold_refusals.then(|| op.clone());
        let result = match op {
            Op::Staged(op) => state.volume_op(&who, *op),
            Op::VolumeCreate { .. }
            | Op::VolumeResize { .. }
            | Op::VolumeResizeWithin { .. }
            | Op::VolumeAccess { .. }
            | Op::VolumeRename { .. }
            | Op::VolumeTimes { .. }
            | Op::RingCreate { .. }
            | Op::RingKeep { .. }
            | Op::VolumeCopied { .. }
            | Op::VolumeDelete { .. } => state.volume_op(&who, op),
            Op::StreamOpen { volume, mode, contract, start } => {
                state.open(volume, mode, contract, start)
            }
            Op::Open { .. } if state.hold_opens => {
                state.held.push((op, callback));
                return self.news.notify_all();
            }
            Op::Open { opening, region: None } => {
                let Opening { volume, mode, contract, start, .. } = *opening;
                state.open(volume, mode, contract, start)
            }
            Op::VolumeService { name, service } => match state.volume(&name) {
                Ok(volume) => {
                    volume.service = service;
                    volume.given_by = (service != Service::default()).then_some(who.uid);
                    if state.hold_commits {
                        state.uncommitted.push(callback);
                        return self.news.notify_all();
                    }
                    Ok(Reply::Done)
                }
                Err(error) => Err(error),
            },
            Op::ProfileSet { disk, .. } | Op::Reprofile { disk } if disk.0 > 0 => {
                Err(Error::NoSuchDisk { disk, disks: 1 })
            }
            Op::ProfileSet { .. }
            | Op::Reprofile { .. }
            | Op::PolicySet { .. }
            | Op::BusSet { .. } => Ok(Reply::Done),
            Op::Block { volume, .. } => {
                state.volume(&volume).map(|_| Reply::Block { block: Bytes::kib(8) })
            }
            Op::StreamChange { stream, contract }
                if state.hold_changes_to == Some(contract.rate) =>
            {
                let _ = state.change(stream, contract);
                state.held.push((op, callback));
                return self.news.notify_all();
            }
            Op::StreamChange { stream, contract } => state.change(stream, contract),
            Op::StreamRead { .. } if state.hold_reads => {
                state.held.push((op, callback));
                return self.news.notify_all();
            }
            Op::StreamRead { stream, len_max } => state.read(stream, len_max),
            Op::StreamSeek { stream, to } => state.stream(stream, Mode::Read).map(|stream| {
                stream.position = to.get();
                Reply::Ready { at: Instant::EPOCH, steady: Instant::EPOCH, seeks: 1 }
            }),
            Op::StreamAdvance { stream, len } => state.stream(stream, Mode::Read).map(|stream| {
                stream.position += len.get();
                Reply::Done
            }),
            Op::StreamRoom { stream, len_max } => state.room(stream, len_max),
            Op::StreamWrite { stream, len } => state.write(stream, len),
            Op::StreamDurable { stream, beyond } => match state.stream(stream, Mode::Write) {
                Ok(found) if found.durable <= beyond.get() => {
                    return found.waiting.push((beyond.get(), callback));
                }
                Ok(found) => Ok(Reply::Durable { upto: Bytes::new(found.durable) }),
                Err(error) => Err(error),
            },
            Op::StreamSync { stream } => {
                drop(state);
                self.commit();
                state = self.state();
                let found = state.stream(stream, Mode::Write);
                found.map(|found| Reply::Durable { upto: Bytes::new(found.position) })
            }
            Op::StreamClose { .. } if state.hold_closes => {
                state.held.push((op, callback));
                return self.news.notify_all();
            }
            Op::StreamClose { stream } => state.close(stream).map(|(answer, waiting)| {
                ended = waiting.into_iter().map(|waiting| (waiting, stream)).collect();
                answer
            }),
            Op::Plan if state.hold_plans => {
                state.plans += 1;
                state.held.push((op, callback));
                return self.news.notify_all();
            }
            Op::Plan => {
                state.plans += 1;
                Ok(Reply::Planner(Box::new(planner())))
            }
            Op::Shutdown => {
                state.shut_down = true;
                if state.hold_shutdown {
                    return state.held.push((op, callback));
                }
                Ok(Reply::Done)
            }
            Op::Read { .. } | Op::Sync if state.hold_best_effort => {
                state.held.push((op, callback));
                return self.news.notify_all();
            }
            other => state.best_effort(other),
        };
        if let (Err(Error::Refused(_)), Some(again)) = (&result, again) {
            state.held.push((again, callback));
            return self.news.notify_all();
        }
        drop(state);
        self.news.notify_all();
        callback(result);
        for (waiting, stream) in ended {
            waiting(Err(Error::NoSuchStream { stream }));
        }
    }

    fn submit_since(&self, who: Who, _arrived: Instant, op: Op, callback: Callback) {
        self.submit(who, op, callback);
    }

    fn write(
        &self,
        who: Who,
        _arrived: Instant,
        volume: String,
        priority: Option<Priority>,
        range: WriteRange,
        mut room: Box<dyn Room>,
        callback: Callback,
    ) {
        let mut state = self.state();
        state.stated.push(priority);
        let whose = state.volume(&volume).map(|volume| volume.ownership);
        let permitted = whose.and_then(|whose| permission::check(&who, &volume, whose, Act::Write));
        let result = permitted.and_then(|()| state.volume(&volume)).and_then(|volume| {
            let WriteRange { offset, len, .. } = range;
            let (at, skip) = (offset.as_usize(), range.skip().as_usize());
            let bytes = &room.bytes_mut()[skip..][..len.as_usize()];
            if at + bytes.len() > volume.size as usize {
                return Err(Error::BeyondEnd { size: Bytes::new(volume.size) });
            }
            let end = at + bytes.len();
            volume.data.resize(volume.data.len().max(end), 0);
            let counted = &mut volume.data[at..];
            let len = counted.len().min(bytes.len());
            counted[..len].copy_from_slice(&bytes[..len]);
            Ok(Reply::Done)
        });
        if state.hold_writes {
            state.held_writes.push(Box::new(move || callback(result)));
            return self.news.notify_all();
        }
        drop(state);
        let end: Box<dyn FnOnce()> = Box::new(move || callback(result));
        let now = GO.with_borrow_mut(|go| match go {
            Some(ends) => {
                ends.push(end);
                None
            }
            None => Some(end),
        });
        now.into_iter().for_each(|end| end());
    }

    /// What is written in one go is answered at its end.
    fn together(&self, ask: &mut dyn FnMut()) {
        GO.set(Some(Vec::new()));
        ask();
        GO.take().into_iter().flatten().for_each(|end| end());
    }

    fn written(
        &self,
        who: &Who,
        volume: (&str, VolumeId),
        range: Range<Bytes>,
    ) -> Result<Vec<(Bytes, bool)>> {
        let state = self.state();
        let none = || Error::NoSuchVolume { name: volume.0.into() };
        let found = state.volumes.get(volume.0).ok_or_else(none)?;
        permission::check(who, volume.0, found.ownership, Act::Read)?;
        match range.end.get() <= found.size {
            true => Ok(vec![(range.end - range.start, true)]),
            false => Err(Error::BeyondEnd { size: Bytes::new(found.size) }),
        }
    }

    fn failures_told(&self, _: &str) -> u64 {
        0
    }

    fn failures_were_told(&self, _: &Who, _: &str, _: u64) {}

    fn volume_id(&self, name: &str) -> Option<VolumeId> {
        self.state().found(name).map(|volume| VolumeId(volume.number))
    }

    fn holding(&self, whose: CountedBy) -> Holding {
        let is_theirs = |volume: &VolumeStatus| match whose {
            CountedBy::User(uid) => volume.ownership.uid == uid,
            CountedBy::Group(gid) => volume.ownership.gid == gid,
        };
        let volumes = self.status().volumes.into_iter().filter(is_theirs);
        volumes.fold(Holding::default(), |sum, volume| Holding {
            space: sum.space + volume.size,
            volumes: sum.volumes + 1,
        })
    }

    fn terms(&self, volume: &str, wish: &Wish) -> Option<Terms> {
        let state = self.state();
        state.volumes.get(volume).filter(|_| !state.hides_terms)?;
        let disk = DiskIndex(0);
        Some(match wish {
            Wish::Stream(_, contract) | Wish::StreamAtOdds(_, contract, _) => {
                Terms { window: contract.block * 2, shares: vec![(disk, share(contract.rate))] }
            }
            Wish::Service(Service::Rate { rate, .. }) => {
                Terms { window: Bytes::ZERO, shares: vec![(disk, share(*rate))] }
            }
            // All of it.
            Wish::Service(Service::Latency { .. }) => {
                Terms { window: Bytes::ZERO, shares: vec![(disk, 1_000_000)] }
            }
            Wish::Service(_) => Terms::default(),
        })
    }

    fn status(&self) -> Status {
        assert!(!self.fails.swap(false, Ordering::Relaxed), "told to fail");
        let state = self.state();
        let volumes = state.volumes.iter().map(|(name, volume)| VolumeStatus {
            start: volume.ring.map(|_| Bytes::ZERO),
            keep: volume.ring.flatten(),
            ahead: None,
            recorded: None,
            id: VolumeId(volume.number),
            times: None,
            name: name.clone(),
            ownership: volume.ownership,
            size: Bytes::new(volume.size),
            taken: Bytes::new(volume.size),
            length: Bytes::new(volume.data.len() as u64),
            changes: Changes::at(volume.changes),
            placement: Placement::default(),
            extents: vec![volume.size >> 20],
            stretches: Default::default(),
            streams: state.streams.values().filter(|stream| &stream.volume == name).count() as u64,
            service: volume.service,
            given_by: volume.given_by,
            kept_out: None,
            account: ServiceAccount::default(),
            shares: match volume.service {
                Service::Rate { rate, .. } => vec![(DiskIndex(0), share(rate))],
                _ => Vec::new(),
            },
            operations: volume.operations,
            memory: Bytes::ZERO,
            memory_held: None,
            from_memory: Bytes::ZERO,
            handles: Vec::new(),
            promised: !matches!(volume.service, Service::BestEffort(_)),
        });
        let streams = state.streams.iter().map(|(&id, stream)| StreamStatus {
            stream: StreamId(id),
            volume: stream.volume.clone(),
            mode: stream.mode,
            contract: stream.contract,
            window: stream.contract.block * 2,
            position: Bytes::new(stream.position),
            durable: Bytes::new(stream.durable),
            account: node::StreamAccount {
                moved: Bytes::new(stream.position),
                requests: 1,
                latency_max: Duration::from_millis(3),
                ..Default::default()
            },
            open_since: Instant::from_nanos(id),
            shares: vec![(DiskIndex(0), share(stream.contract.rate))],
            miss: None,
            promised: true,
        });
        Status {
            now: Instant::from_nanos(1_000_000) + state.passed,
            policy: Policy::SLACK,
            policy_kept: false,
            promised: true,
            disks: vec![disk_status()],
            volumes: volumes.collect(),
            streams: streams.collect(),
            memory: MemoryStatus {
                total: Bytes::mib(64),
                windows: Bytes::MIB,
                regions: Bytes::ZERO,
                services: Bytes::ZERO,
                best_effort: Bytes::ZERO,
                free: Bytes::mib(63),
                kept: Bytes::ZERO,
                from_memory: Bytes::ZERO,
            },
            read_only: false,
            clock_doubt: None,
            delivery: Duration::ZERO,
            delivery_refused: None,
        }
    }

    fn description(&self) -> Description {
        let devices = vec!["emulated:laptop:/tmp/disk".into()];
        Description { name: "fake".into(), id: "0fa4e".into(), devices }
    }

    fn host_lateness(&self) -> HostLateness {
        let at_most = Duration::from_micros(80);
        let lateness = Lateness { count: 3, p50_ns: at_most, p999_ns: at_most, max_ns: at_most };
        HostLateness { wakeups: lateness.clone(), completions: lateness }
    }

    fn warnings(&self) -> Vec<String> {
        vec!["memory could not be locked".into()]
    }
}

/// What the fake says that a rate takes of its disk.
fn share(rate: Rate) -> u64 {
    rate.get() * 1_000_000 / RATE_MAX.get()
}

fn disk_status() -> DiskStatus {
    let traffic = Traffic { requests: 2, bytes: Bytes::MIB };
    DiskStatus {
        disk: DiskIndex(0),
        capacity: Bytes::GIB,
        free: Bytes::mib(512),
        utilisation_ppm: 123_456,
        slack: Duration::from_millis(40),
        waiting_real_time: 0,
        waiting_best_effort: 0,
        account: node::DiskAccount {
            real_time: traffic,
            best_effort: traffic,
            predicted_total: Duration::from_secs(2),
            actual_total: Duration::from_secs(1),
            ..node::DiskAccount::default()
        },
        oldest: None,
        host_errors: 0,
        observed: node::Observed::default(),
        moves: node::MoveStatus::default(),
        measured: None,
        profile_for_next_start: false,
        bus: None,
        gaps: node::HostTime::default(),
        gap_refused: None,
        odds: OddsStatus::default(),
        chunk: None,
    }
}

/// A daemon around a fake pool, in a directory of its own.
pub struct Running {
    pub pool: Arc<Fake>,
    pub client: Client,
    pub dir: TempDir,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<std::result::Result<(), ServeError>>>,
}

impl Running {
    /// A daemon whose pool has a volume "v" of 1 MiB, which everybody may read and write.
    pub fn start() -> Self {
        Self::start_by(SocketMode(0o600))
    }

    /// The same, by other options.
    pub fn start_by(options: impl Into<ServeOptions>) -> Self {
        let options = options.into();
        let pool = Arc::new(Fake::default());
        let ownership = Ownership { uid: own_uid(), gid: 0, mode: 0o666 };
        let volume = Volume { size: 1 << 20, ownership, ..Volume::default() };
        pool.state().volumes.insert("v".into(), volume);
        let dir = tempfile::Builder::new().prefix("slackline-").tempdir().unwrap();
        let socket = dir.path().join("s.sock");
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let (listening, is_listening) = std::sync::mpsc::channel();
        let serving = Arc::clone(&pool);
        let at = socket.clone();
        let thread = std::thread::spawn(move || {
            let claim = Claim::new(&at).unwrap();
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .enable_all()
                .build()
                .unwrap();
            // Polled for the first time after the sockets are there.
            let stop = async move {
                listening.send(()).unwrap();
                let _ = stopped.await;
            };
            runtime.block_on(daemon::serve::serve(serving, &claim, options, stop))
        });
        is_listening.recv().unwrap();
        let client = Client::connect(socket).unwrap();
        Self { pool, client, dir, stop: Some(stop), thread: Some(thread) }
    }

    /// Stops the daemon in order.
    pub fn stop(&mut self) -> std::result::Result<(), ServeError> {
        drop(self.stop.take());
        self.thread.take().expect("stopped once").join().expect("no panic")
    }

    pub fn data_socket(&self) -> PathBuf {
        wire::socket::data_path(self.client.socket())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.thread.is_some() && !std::thread::panicking() {
            self.stop().unwrap();
        }
    }
}

/// One megabyte a second in blocks of 4 KiB.
pub fn contract() -> client::control::Contract {
    client::control::Contract {
        rate_bytes_per_second: Rate::per_second(1_000_000),
        block_bytes: Bytes::kib(4),
        burst_bytes: Bytes::kib(4),
    }
}

/// Bytes without a pattern.
pub fn noise(len: usize) -> Vec<u8> {
    let mut x = 0x2545_f491_4f6c_dd1du64;
    let next = || {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        x as u8
    };
    std::iter::repeat_with(next).take(len).collect()
}
