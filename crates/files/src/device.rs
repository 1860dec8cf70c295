//! All files under contract on one block device.
//!
//! Invariants: each read in the queue that has not ended, but of closed streams, is in a
//! slot of its stream; what contracts have of the device's time is at most
//! `Options::share_ppm`, whatever a profile would allow, because the device is not ours.

use crate::host::Host;
use crate::map::FileMap;
use crate::stream::{Slot, Stream};
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;
use disk::Profile;
use node::{Contract, DiskIndex, Error, Mode, Refusal, StreamId, StreamStatus};
use playout::{Ask, Pace, Window};
use queue::{Account, Ended, Queue, Use};
use sched::{Class, PolicyKind, Request, Schedule, Task, TaskId, TaskSet};
use units::{Bytes, Command, Duration, Instant, Lba, Outside, Rate};

/// Streams on one device at once.
const STREAMS_MAX: usize = 1_000;
/// The longest block of a stream: how a file lies is asked of its file system piece by piece.
const BLOCK_MAX: Bytes = Bytes::MIB;
/// Reads of one device at once, at the most.
pub const READS_MAX: u32 = 8;
/// Reads of one stream that may wait beyond those that its contract needs.
const EARLY: u64 = 16;

/// How contracts are kept on a device that others use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The most of its time that contracts may have, in parts per million.
    pub share_ppm: u64,
    /// What others may have in the device when a read of ours comes: admission leaves that
    /// much slack.
    pub others: Duration,
    /// Deadlines are advanced by this much, so that a late wake-up does no harm.
    pub host_latency: Duration,
    /// What the host takes from the end of a read until the next one begins, until that is
    /// measured.
    pub gap: Duration,
    /// Windows hold so much more than the contract needs, filled when nothing else is due,
    /// so that the device may be others' for so long.
    pub ride_out: Duration,
    /// All windows together.
    pub memory: Bytes,
}

/// The longest that others may be said to have the device, or the host to be late: what a
/// read under contract comes after so long is of no use to anybody.
const OTHERS_MAX: Duration = Duration::from_secs(60);
/// The longest that windows are made to ride out.
const RIDE_OUT_MAX: Duration = Duration::from_secs(3_600);

impl Options {
    /// Holds every number of it to its limit.
    ///
    /// # Errors
    /// [`Error::Invalid`] says which limit.
    pub fn check(&self) -> Result<(), Error> {
        let invalid = |what, rule| Err(Error::Invalid { what, rule });
        match self {
            Self { others, .. } if *others > OTHERS_MAX => invalid("others", "at most a minute"),
            Self { host_latency, .. } if *host_latency > OTHERS_MAX => {
                invalid("host latency", "at most a minute")
            }
            Self { gap, .. } if *gap > queue::limits::GAP_MAX => invalid("gap", "at most 10 ms"),
            Self { ride_out, .. } if *ride_out > RIDE_OUT_MAX => {
                invalid("ride_out", "at most an hour")
            }
            Self { memory, .. } if *memory > Bytes::OUTSIDE_MAX => {
                invalid("memory", "at most 1 EiB")
            }
            _ => Ok(()),
        }
    }
}

/// What to do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Read `len` bytes of the stream's file from `offset` on: its block with that number.
    /// Ask again at once for what can go beside it.
    Read {
        /// Comes back with the end.
        key: u64,
        /// Whose file.
        stream: StreamId,
        /// Which block.
        block: u64,
        /// Where.
        offset: Bytes,
        /// How much; the file may end before that.
        len: Bytes,
    },
    /// Nothing before this instant, or the next event.
    Wait {
        /// None: only after an event.
        until: Option<Instant>,
    },
}

/// What a program hears.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// Of what it asked.
    pub ticket: u64,
    /// What came of it.
    pub result: Result<Reply, Error>,
}

/// A good answer to a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// These bytes of the file, which lie in the block with this number.
    Data {
        /// The block.
        block: u64,
        /// Where in the file they start.
        offset: Bytes,
        /// How many.
        len: Bytes,
    },
    /// The device failed on these bytes; the stream goes on behind them.
    Gap {
        /// Where they start.
        offset: Bytes,
        /// How many.
        len: Bytes,
    },
    /// The file ends here.
    End,
}

/// What a read is for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Purpose {
    stream: StreamId,
    block: u64,
    started: Instant,
}

/// The task of a stream, and the name that it has in the schedule.
pub(crate) type TaskOf = (TaskId, Task);

/// One block device, as far as contracts on its files go.
#[derive(Clone, Debug)]
pub struct Device {
    pub(crate) index: DiskIndex,
    options: Options,
    pub(crate) queue: Queue<Purpose>,
    pub(crate) host: Host,
    streams: BTreeMap<StreamId, Stream>,
    outputs: VecDeque<Output>,
    next_key: u64,
}

impl Device {
    /// Nothing yet; `index` names the device in refusals and shares.
    ///
    /// # Panics
    /// Where [`Options::check`] refuses.
    pub fn new(index: DiskIndex, profile: Profile, options: Options) -> Self {
        options.check().expect("options that were checked");
        let under = sched::Options {
            reserve: options.others,
            gap: options.gap,
            burst: Duration::ZERO, // no best effort of ours is here
            depth: profile.depth().min(READS_MAX),
            ..sched::Options::default()
        };
        let schedule = Schedule::new(PolicyKind::SLACK, under);
        let device = queue::Device {
            capacity: profile.capacity(),
            profile,
            advance: options.host_latency,
            patience: Duration::MAX,
            usage: Use::Shared { others: options.others },
        };
        Self {
            index,
            queue: Queue::new(device, schedule, []),
            options,
            host: Host::default(),
            streams: BTreeMap::new(),
            outputs: VecDeque::new(),
            next_key: 0,
        }
    }

    /// What it is judged by.
    pub fn profile(&self) -> &Profile {
        self.queue.profile()
    }

    /// How contracts are kept on it.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// What contracts have of its time, in parts per million.
    pub fn utilisation_ppm(&self) -> u64 {
        self.queue.tasks().utilisation().ppm()
    }

    /// What happened on it.
    pub fn account(&self) -> &Account {
        self.queue.account()
    }

    /// Streams open on it.
    pub fn streams(&self) -> usize {
        self.streams.len()
    }

    /// The largest rate in blocks of 1 MiB, each in one run, that would be admitted now.
    pub fn rate_max(&self) -> Rate {
        let end = Lba::containing(self.profile().capacity());
        let cost = self.profile().worst(Lba::default()..end, Bytes::MIB, units::Direction::Read);
        self.largest(self.queue.tasks(), Bytes::MIB, cost, Rate::of(Bytes::MIB, cost))
    }

    pub(crate) fn task(&self, contract: &Contract, cost: Duration) -> Result<Task, Refusal> {
        self.task_within(contract, cost, self.deadline_advance())
    }

    /// The same where deadlines are so much earlier.
    pub(crate) fn task_within(
        &self,
        contract: &Contract,
        cost: Duration,
        advance: Duration,
    ) -> Result<Task, Refusal> {
        let (period, cost) =
            (contract.rate.time_for(contract.block), cost.max(Duration::from_nanos(1)));
        let deadline = period.saturating_sub(advance);
        if cost > deadline {
            let late = (cost + advance).saturating_sub(period);
            let utilisation_ppm = self.utilisation_ppm().saturating_add(ppm(cost, period));
            return Err(self.refusal(utilisation_ppm, Some((period, late))));
        }
        Ok(Task::new(period, deadline, cost))
    }

    pub(crate) fn refusal(
        &self,
        utilisation_ppm: u64,
        deadline: Option<(Duration, Duration)>,
    ) -> Refusal {
        let bus = self.queue.profile().bus.clone().map(Box::new);
        Refusal {
            disk: self.index,
            utilisation_ppm,
            deadline,
            rate_max: Rate::ZERO,
            longer: None,
            within: None,
            bus,
            undecided: false,
            parts: 1,
        }
    }

    /// Whether these tasks and this one are within the share and the analysis.
    fn admits(&self, set: &TaskSet, task: &Task) -> Result<(), Refusal> {
        let charged = task.cost.saturating_add(set.gap());
        let utilisation_ppm = set.utilisation().ppm().saturating_add(ppm(charged, task.period));
        if utilisation_ppm > self.options.share_ppm {
            return Err(self.refusal(utilisation_ppm, None));
        }
        set.admits(task).map(drop).map_err(|refusal| self.refused(&refusal))
    }

    /// The largest rate up to `most` that these tasks leave room for, in such blocks.
    fn largest(&self, set: &TaskSet, block: Bytes, cost: Duration, most: Rate) -> Rate {
        let (mut good, mut bad) = (0, most.get().saturating_add(1));
        while bad - good > 1 {
            let middle = good + (bad - good) / 2;
            let rate = Rate::per_second(middle);
            let contract = Contract { rate, block, burst: Bytes::ZERO };
            let fits = contract.check().is_ok()
                && self.task(&contract, cost).is_ok_and(|task| self.admits(set, &task).is_ok());
            if fits { good = middle } else { bad = middle }
        }
        Rate::per_second(good)
    }

    /// Blocks of a window: what the contract needs, and with what is to be ridden out.
    fn blocks(&self, contract: &Contract) -> (u64, u64) {
        let needed = contract.blocks_on_one_disk(self.deadline_advance());
        let more = contract.rate.bytes_in(self.options.ride_out).div_ceil(contract.block);
        (needed, needed + more)
    }

    /// The memory of a window, whether or not there is so much.
    pub(crate) fn window(&self, contract: &Contract) -> Bytes {
        contract.block.saturating_mul(self.blocks(contract).1)
    }

    fn check_memory(&self, contract: &Contract, without: Option<StreamId>) -> Result<(), Error> {
        let others = self.streams.values().filter(|stream| Some(stream.id) != without);
        let used: Bytes = others.map(Stream::memory).sum();
        let (asked, free) = (self.window(contract), self.options.memory.saturating_sub(used));
        if asked > free { Err(Error::NoMemory { asked, free }) } else { Ok(()) }
    }

    /// Opens a file under contract, to be read from `start` on; gives the memory of its
    /// window.
    ///
    /// # Errors
    /// [`Error::Refused`] where it does not fit, [`Error::NoMemory`], [`Error::Invalid`].
    ///
    /// # Panics
    /// Where the number is in use.
    pub fn open(
        &mut self,
        now: Instant,
        id: StreamId,
        name: String,
        contract: &Contract,
        start: Bytes,
        map: FileMap,
    ) -> Result<Bytes, Error> {
        assert!(!self.streams.contains_key(&id), "a number of its own");
        contract.check()?;
        if contract.block > BLOCK_MAX {
            let rule = "at most 1 MiB of a file outside the pool";
            return Err(Error::Invalid { what: "block size", rule });
        }
        if start > Bytes::OUTSIDE_MAX {
            return Err(Error::Invalid { what: "start", rule: "at most 1 EiB" });
        }
        if self.streams.len() >= STREAMS_MAX {
            return Err(Error::Busy { waiting: STREAMS_MAX as u64 });
        }
        self.check_memory(contract, None)?;
        let cost = map.worst(self.profile(), contract.block);
        self.bears_host(id, contract, cost)?;
        let joined = self.join(now, contract, cost);
        let task = joined.map_err(|refusal| self.with_rate(refusal, contract, cost, None))?;
        let begins = self.queue.schedule().next_release(task.0).max(now);
        let (needed, target) = self.blocks(contract);
        let mut window = Window::new(start / contract.block, []);
        window.target = target;
        let mut stream = Stream {
            id,
            name,
            length: map.length(),
            map,
            contract: *contract,
            task,
            window,
            needed,
            position: start,
            pace: Pace::new(contract, now),
            held: Bytes::ZERO,
            ask: None,
            timer: None,
            primed: false,
            playout_from: begins.saturating_add(contract.time_of(needed)),
            open_since: now,
            account: playout::Account::default(),
        };
        stream.fit();
        let window = stream.memory();
        self.streams.insert(id, stream);
        self.pump(now, id);
        Ok(window)
    }

    fn join(
        &mut self,
        now: Instant,
        contract: &Contract,
        cost: Duration,
    ) -> Result<(TaskId, Task), Refusal> {
        let task = self.task(contract, cost)?;
        self.admits(self.queue.tasks(), &task)?;
        let patience = task.period / 2;
        let joined = self.queue.join_within(now, task, patience);
        Ok((joined.map_err(|refusal| self.refused(&refusal))?, task))
    }

    /// A refusal that says what would fit instead.
    fn with_rate(
        &self,
        refusal: Refusal,
        contract: &Contract,
        cost: Duration,
        without: Option<TaskId>,
    ) -> Error {
        let mut set = self.queue.tasks().clone();
        if let Some(id) = without {
            set.remove(id);
        }
        let rate_max = self.largest(&set, contract.block, cost, contract.rate);
        Error::Refused(Refusal { rate_max, ..refusal })
    }

    fn stream(&mut self, id: StreamId) -> Result<&mut Stream, Error> {
        self.streams.get_mut(&id).ok_or(Error::NoSuchStream { stream: id })
    }

    /// Gives an open stream another rate or burst, in the same blocks; gives the memory of
    /// its window. A refusal changes nothing.
    ///
    /// # Errors
    /// As [`Device::open`].
    pub fn change(
        &mut self,
        now: Instant,
        id: StreamId,
        contract: &Contract,
    ) -> Result<Bytes, Error> {
        let stream = self.stream(id)?;
        let (old, (task_id, _)) = (stream.contract, stream.task);
        contract.check()?;
        if contract.block != old.block {
            let rule = "stays what it was while a stream is open; open another one";
            return Err(Error::Invalid { what: "block size", rule });
        }
        self.check_memory(contract, Some(id))?;
        let cost = self.streams[&id].task.1.cost;
        if contract.rate > old.rate {
            self.bears_host(id, contract, cost)?;
        }
        let changed = self.put_in_place(now, task_id, contract, cost);
        let task =
            changed.map_err(|refusal| self.with_rate(refusal, contract, cost, Some(task_id)))?;
        let (needed, target) = self.blocks(contract);
        let begins = self.queue.schedule().next_release(task_id).max(now);
        let stream = self.stream(id)?;
        // The window has to follow before the program may make use of more.
        let period = stream.task.1.period.max(task.period);
        let follows = Pace::follows(contract, needed, begins, now, period);
        (stream.task, stream.contract) = ((task_id, task), *contract);
        (stream.needed, stream.window.target) = (needed, target);
        stream.fit();
        match stream.primed {
            true => stream.pace.change_later(now, contract, follows),
            false => {
                stream.pace.change(now, contract);
                stream.playout_from = stream.playout_from.max(follows);
            }
        }
        let window = contract.block * target;
        self.pump(now, id);
        Ok(window)
    }

    fn put_in_place(
        &mut self,
        now: Instant,
        id: TaskId,
        contract: &Contract,
        cost: Duration,
    ) -> Result<Task, Refusal> {
        let task = self.task(contract, cost)?;
        let mut others = self.queue.tasks().clone();
        others.remove(id);
        self.admits(&others, &task)?;
        let changed = self.queue.change(now, id, task);
        changed.map_err(|refusal| self.refused(&refusal))?;
        Ok(task)
    }

    /// The contracts, in the order in which they were given.
    pub(crate) fn tasks_of_streams(&self) -> Vec<(StreamId, TaskOf, Contract)> {
        let streams = self.streams.values();
        streams.map(|stream| (stream.id, stream.task, stream.contract)).collect()
    }

    /// A stream has another deadline for the same contract, and the window that goes with it.
    pub(crate) fn advanced(&mut self, now: Instant, id: StreamId, task: TaskOf) {
        let (needed, target) = self.blocks(&self.streams[&id].contract);
        let Some(stream) = self.streams.get_mut(&id) else { return };
        stream.task = task;
        (stream.needed, stream.window.target) = (needed, target);
        stream.fit();
        self.pump(now, id);
    }

    /// The next bytes at the playout point, at most `len_max`, when they are there.
    pub fn read(&mut self, now: Instant, id: StreamId, ticket: u64, len_max: Bytes) {
        let refused = match self.stream(id) {
            Err(error) => Some(error),
            Ok(stream) if stream.ask.is_some() || !stream.held.is_zero() => Some(Error::Invalid {
                what: "request",
                rule: "one at a time: give back what the stream gave before asking for more",
            }),
            Ok(_) if len_max.is_zero() => {
                Some(Error::Invalid { what: "length", rule: "more than nothing" })
            }
            Ok(stream) => {
                stream.ask = Some(Ask::new(ticket, len_max));
                None
            }
        };
        match refused {
            Some(error) => self.outputs.push_back(Output { ticket, result: Err(error) }),
            None => self.pump(now, id),
        }
    }

    /// The program is done with the first `len` bytes of what it was given last.
    ///
    /// # Errors
    /// Where that was less, or there is no such stream.
    pub fn advance(&mut self, now: Instant, id: StreamId, len: Bytes) -> Result<(), Error> {
        let stream = self.stream(id)?;
        if len > stream.held {
            return Err(Error::Invalid { what: "advance", rule: "at most what was read last" });
        }
        stream.held = Bytes::ZERO;
        stream.pace.spend(len, now);
        stream.account.moved += len;
        stream.position += len;
        self.pump(now, id);
        Ok(())
    }

    /// The playout point of a stream, and the end of its file as far as it is known.
    pub fn place(&self, id: StreamId) -> Option<(Bytes, Bytes)> {
        self.streams.get(&id).map(|stream| (stream.position, stream.length))
    }

    /// How long the blocks of a stream are.
    pub fn block_of(&self, id: StreamId) -> Option<Bytes> {
        self.streams.get(&id).map(|stream| stream.contract.block)
    }

    /// The number of the first block of a stream's window: what is before it is done with.
    pub fn window_start(&self, id: StreamId) -> Option<u64> {
        self.streams.get(&id).map(|stream| stream.window.first())
    }

    /// A file has grown. Where its new part costs more than its contract has, the part is
    /// read all the same, and is late if it must be: it was promised to nobody.
    pub fn grown(&mut self, now: Instant, id: StreamId, map: FileMap) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        if map.length() <= stream.length {
            return;
        }
        let (block, old) = (stream.contract.block, stream.length);
        (stream.length, stream.map) = (map.length(), map);
        // What the last block had of the old file is not all of it now.
        let last = old / block;
        if let Some(slot) = stream.window.get_mut(last)
            && matches!(slot, Slot::Ready(_) | Slot::Given)
        {
            *slot = Slot::Open;
        }
        self.pump(now, id);
    }

    /// Closes a stream. Reads of it that are under way end for nobody.
    ///
    /// # Errors
    /// Where there is none.
    pub fn close(&mut self, now: Instant, id: StreamId) -> Result<(), Error> {
        let stream = self.streams.remove(&id).ok_or(Error::NoSuchStream { stream: id })?;
        self.queue.leave(stream.task.0);
        if let Some(ask) = stream.ask {
            let result = Err(Error::NoSuchStream { stream: id });
            self.outputs.push_back(Output { ticket: ask.ticket, result });
        }
        self.try_host(now);
        Ok(())
    }

    /// What to read now. Programs may hear something by it, whose time has come.
    pub fn next(&mut self, now: Instant) -> Next {
        if self.host.again.is_some_and(|at| at <= now) {
            self.try_host(now);
        }
        self.forget_gaps(now);
        let due: Vec<StreamId> = self
            .streams
            .values_mut()
            .filter_map(|stream| stream.timer.take_if(|at| *at <= now).map(|_| stream.id))
            .collect();
        for id in due {
            self.pump(now, id);
        }
        match self.queue.next(now) {
            queue::Next::Start { key, work, .. } => {
                work.started = now;
                let (stream, block) = (work.stream, work.block);
                let len = self.streams[&stream].contract.block;
                Next::Read { key, stream, block, offset: len * block, len }
            }
            queue::Next::Wait { until } => {
                let timer = self.streams.values().filter_map(|stream| stream.timer).min();
                let host = self.host.again.into_iter().chain(self.host.gaps_due);
                Next::Wait { until: until.into_iter().chain(timer).chain(host).min() }
            }
        }
    }

    /// Whether the bytes of a read under way are still to be kept: its block is in the window
    /// of its stream, and was not given up.
    pub fn is_wanted(&self, key: u64) -> bool {
        let Some(purpose) = self.queue.work(key) else { return false };
        let stream = self.streams.get(&purpose.stream);
        stream.is_some_and(|stream| stream.window.get(purpose.block) == Some(&Slot::Moving(key)))
    }

    /// A read has ended at `now`: so many bytes came, or an errno.
    ///
    /// # Panics
    /// Where [`Device::next`] did not give it.
    pub fn finished(&mut self, now: Instant, key: u64, result: Result<Bytes, i32>) {
        let started = self.queue.work(key).expect("a read ends once").started;
        let is_wanted = self.is_wanted(key);
        let ended = self.queue.ended(key, started, now, result.is_ok());
        self.follow_gap(now);
        let Ended { work: Purpose { stream, block, .. }, late_by: late, latency, .. } = ended;
        let Some(stream) = self.streams.get_mut(&stream) else { return };
        stream.account.ended(late, latency);
        if !is_wanted {
            let id = stream.id;
            return self.pump(now, id);
        }
        let whole = stream.contract.block;
        let from = whole * block;
        if let Ok(len) = result
            && len < whole
            && from + len < stream.length
        {
            stream.length = from + len; // the file was cut
        }
        if let Some(slot) = stream.window.get_mut(block) {
            *slot = result.map_or_else(Slot::Failed, Slot::Ready);
        }
        let id = stream.id;
        self.pump(now, id);
    }

    /// Does all that can be done for a stream now.
    fn pump(&mut self, now: Instant, id: StreamId) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        if stream.held.is_zero() {
            stream.slide();
        }
        self.ask_ahead(now, id);
        self.answer(now, id);
    }

    /// Asks for every block of the window that is in the file and was not asked for, up to
    /// a bound: those that the contract needs, and a few early ones for an idle device.
    fn ask_ahead(&mut self, now: Instant, id: StreamId) {
        let stream = self.streams.get_mut(&id).expect("it is pumped");
        let moving = stream.window.iter().filter(|(_, slot)| matches!(slot, Slot::Moving(_)));
        let mut room = (stream.needed + EARLY).saturating_sub(moving.count() as u64);
        for block in stream.window.first()..stream.window.end() {
            if room == 0 || stream.contract.block * block >= stream.length {
                break;
            }
            if stream.window.get(block) != Some(&Slot::Open) {
                continue;
            }
            room -= 1;
            let profile = self.queue.profile();
            let (access, cost) = stream.map.command(profile, range(stream, block));
            let one_run = profile.worst(access.lba..access.end(), access.len, access.direction);
            let key = self.next_key;
            self.next_key += 1;
            let class = Class::RealTime(stream.task.0);
            let request = Request { class, command: Command::Transfer(access) };
            let purpose = Purpose { stream: id, block, started: now };
            let further = cost.saturating_sub(one_run);
            self.queue.submit_scattered(now, key, request, further, purpose);
            *stream.window.get_mut(block).expect("looked at above") = Slot::Moving(key);
        }
    }

    fn answer(&mut self, now: Instant, id: StreamId) {
        let stream = self.streams.get_mut(&id).expect("it is pumped");
        let Some(mut ask) = stream.ask else { return };
        if stream.position >= stream.length {
            return self.reply(id, Reply::End);
        }
        if !stream.primed {
            let more =
                stream.contract.block * (stream.window.first() + stream.needed) < stream.length;
            if !stream.is_filled() {
                return;
            }
            if more && now < stream.playout_from {
                stream.timer = Some(stream.playout_from);
                return;
            }
            stream.primed = true;
        }
        let block = stream.block_at(stream.position);
        let from = stream.contract.block * block;
        match *stream.window.get_mut(block).expect("the playout point is in the window") {
            Slot::Ready(has) => {
                let end = (from + has).min(stream.length);
                if end <= stream.position {
                    stream.length = stream.position; // the file was cut
                    return self.reply(id, Reply::End);
                }
                let (offset, len) = (stream.position, ask.len_max.min(end - stream.position));
                if stream.within_rate(now, len) {
                    stream.held = len;
                    self.reply(id, Reply::Data { block, offset, len });
                }
            }
            Slot::Failed(_) | Slot::Given => self.declare_gap(now, id),
            Slot::Open => {
                if stream.within_rate(now, Bytes::new(1)) {
                    ask.starve(now, true, &mut stream.account);
                    stream.ask = Some(ask);
                }
            }
            Slot::Moving(key) => {
                if !stream.within_rate(now, Bytes::new(1)) {
                    return;
                }
                ask.starve(now, true, &mut stream.account);
                stream.ask = Some(ask);
                // A device that hangs cannot hold a program for ever: it goes on when it has
                // waited for as long as the whole window lasts.
                let since = ask.starved_since().unwrap_or(now);
                let patience = since.saturating_add(stream.window.time(&stream.contract));
                if now < patience {
                    stream.timer = Some(patience);
                    return;
                }
                self.queue.cancel(key);
                *stream.window.get_mut(block).expect("looked at above") = Slot::Given;
                self.declare_gap(now, id);
            }
        }
    }

    /// Skips the rest of the block at the playout point, and says so.
    fn declare_gap(&mut self, now: Instant, id: StreamId) {
        let stream = self.streams.get_mut(&id).expect("it is pumped");
        let end = stream.contract.block * (stream.block_at(stream.position) + 1);
        let (offset, len) = (stream.position, end.min(stream.length) - stream.position);
        stream.account.gaps += len;
        stream.position += len;
        self.reply(id, Reply::Gap { offset, len });
        self.pump(now, id);
    }

    fn reply(&mut self, id: StreamId, reply: Reply) {
        let stream = self.streams.get_mut(&id).expect("it is pumped");
        let ask = stream.ask.take().expect("somebody asked");
        self.outputs.push_back(Output { ticket: ask.ticket, result: Ok(reply) });
    }

    /// What programs shall hear.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// The streams, as a pool's.
    pub fn status(&self) -> Vec<StreamStatus> {
        let status = |stream: &Stream| StreamStatus {
            stream: stream.id,
            volume: stream.name.clone(),
            mode: Mode::Read,
            contract: stream.contract,
            window: stream.memory(),
            position: stream.position,
            durable: Bytes::ZERO,
            account: stream.account,
            open_since: stream.open_since,
            shares: Vec::from([(self.index, ppm(stream.task.1.cost, stream.task.1.period))]),
            miss: None,
            promised: true,
        };
        self.streams.values().map(status).collect()
    }
}

/// The bytes of a block, up to the end of the file.
fn range(stream: &Stream, block: u64) -> Range<Bytes> {
    let from = stream.contract.block * block;
    from..(from + stream.contract.block).min(stream.length.max(from + Bytes::new(1)))
}

fn ppm(part: Duration, whole: Duration) -> u64 {
    let ppm = u128::from(part.as_nanos()) * 1_000_000;
    u64::try_from(ppm.div_ceil(u128::from(whole.as_nanos().max(1)))).unwrap_or(u64::MAX)
}
