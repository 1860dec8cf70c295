//! All files under contract on one block device.
//!
//! Invariants: each key in `keys` is a read that waits in the schedule or is under way,
//! and a slot of its stream says so; what contracts have of the device's time is at most
//! `Options::share_ppm`, whatever a profile would allow, because the device is not ours.

use crate::map::FileMap;
use crate::stream::{Ask, Slot, Stream};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;
use disk::Profile;
use node::alone::{self, Credit};
use node::{Contract, DiskIndex, Error, Mode, Refusal, StreamId, StreamStatus};
use sched::{Class, PolicyKind, Request, Schedule, Task, TaskId, TaskSet};
use units::{Access, Bytes, Command, Duration, Instant, Lba, Outside, Rate};

/// Streams on one device at once.
const STREAMS_MAX: usize = 1_000;
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

/// What happened on a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Reads done.
    pub requests: u64,
    /// Those done after their deadline, and the latest.
    pub late_requests: u64,
    /// See above.
    pub late_max: Duration,
    /// Reads that took longer than the profile and `others` account for, and by how much
    /// at the most.
    pub disturbed: u64,
    /// See above.
    pub disturbed_max: Duration,
    /// Sums of the times by the profile, and of those that it took.
    pub predicted: Duration,
    /// See above.
    pub actual: Duration,
}

/// A read that waits or is under way.
#[derive(Clone, Copy, Debug)]
struct Pending {
    stream: StreamId,
    block: u64,
    cost: Duration,
    started: Instant,
}

/// One block device, as far as contracts on its files go.
#[derive(Clone, Debug)]
pub struct Device {
    index: DiskIndex,
    profile: Profile,
    options: Options,
    schedule: Schedule,
    streams: BTreeMap<StreamId, Stream>,
    keys: BTreeMap<u64, Pending>,
    outputs: VecDeque<Output>,
    next_key: u64,
    account: Account,
}

/// What reads cost: at the most, because nobody knows where others leave the heads.
struct Worst<'a> {
    profile: &'a Profile,
    /// Of blocks in several runs, by where they begin: what the others cost.
    further: BTreeMap<Lba, Duration>,
}

impl sched::Predict for Worst<'_> {
    fn bound(&self, _: Lba, command: &Command) -> Duration {
        let Some(access) = command.access() else { return Duration::ZERO };
        let further = self.further.get(&access.lba).copied().unwrap_or_default();
        one_run(self.profile, access) + further
    }
}

fn one_run(profile: &Profile, access: &Access) -> Duration {
    profile.worst(access.lba..access.end(), access.len, access.direction)
}

impl Device {
    /// Nothing yet; `index` names the device in refusals and shares.
    ///
    /// # Panics
    /// Where [`Options::check`] refuses.
    pub fn new(index: DiskIndex, profile: Profile, options: Options) -> Self {
        options.check().expect("options that were checked");
        let queue = sched::Options {
            reserve: options.others,
            burst: Duration::ZERO, // no best effort of ours is here
            depth: profile.depth(),
            ..sched::Options::default()
        };
        Self {
            index,
            schedule: Schedule::new(PolicyKind::Slack, queue),
            profile,
            options,
            streams: BTreeMap::new(),
            keys: BTreeMap::new(),
            outputs: VecDeque::new(),
            next_key: 0,
            account: Account::default(),
        }
    }

    /// What it is judged by.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// How contracts are kept on it.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// What contracts have of its time, in parts per million.
    pub fn utilisation_ppm(&self) -> u64 {
        self.schedule.tasks().utilisation().ppm()
    }

    /// What happened on it.
    pub fn account(&self) -> Account {
        self.account
    }

    /// Streams open on it.
    pub fn streams(&self) -> usize {
        self.streams.len()
    }

    /// The largest rate in blocks of 1 MiB, each in one run, that would be admitted now.
    pub fn rate_max(&self) -> Rate {
        let end = Lba::containing(self.profile.capacity());
        let cost = self.profile.worst(Lba::default()..end, Bytes::MIB, units::Direction::Read);
        self.largest(self.schedule.tasks(), Bytes::MIB, cost, Rate::of(Bytes::MIB, cost))
    }

    fn task(&self, contract: &Contract, cost: Duration) -> Result<Task, Refusal> {
        let (period, cost) =
            (contract.rate.time_for(contract.block), cost.max(Duration::from_nanos(1)));
        let deadline = period.saturating_sub(self.options.host_latency);
        if cost > deadline {
            let late = (cost + self.options.host_latency).saturating_sub(period);
            let utilisation_ppm = self.utilisation_ppm().saturating_add(ppm(cost, period));
            return Err(self.refusal(utilisation_ppm, Some((period, late))));
        }
        Ok(Task::new(period, deadline, cost))
    }

    fn refusal(&self, utilisation_ppm: u64, deadline: Option<(Duration, Duration)>) -> Refusal {
        Refusal { disk: self.index, utilisation_ppm, deadline, rate_max: Rate::ZERO }
    }

    /// Whether these tasks and this one are within the share and the analysis.
    fn admits(&self, set: &TaskSet, task: &Task) -> Result<(), Refusal> {
        let utilisation_ppm = set.utilisation().ppm().saturating_add(ppm(task.cost, task.period));
        if utilisation_ppm > self.options.share_ppm {
            return Err(self.refusal(utilisation_ppm, None));
        }
        let refused =
            |refusal: sched::Refusal| self.refusal(refusal.utilisation_ppm, refusal.deadline);
        set.admits(task).map(drop).map_err(refused)
    }

    /// The largest rate up to `most` that these tasks leave room for, in such blocks.
    fn largest(&self, set: &TaskSet, block: Bytes, cost: Duration, most: Rate) -> Rate {
        let (mut good, mut bad) = (0, most.get().saturating_add(1));
        while bad - good > 1 {
            let middle = good + (bad - good) / 2;
            let rate = Rate::per_second(middle);
            let contract = Contract { rate, block, burst: Bytes::ZERO };
            let fits = alone::check(&contract).is_ok()
                && self.task(&contract, cost).is_ok_and(|task| self.admits(set, &task).is_ok());
            if fits { good = middle } else { bad = middle }
        }
        Rate::per_second(good)
    }

    /// Blocks of a window: what the contract needs, and with what is to be ridden out.
    fn blocks(&self, contract: &Contract) -> (u64, u64) {
        let needed = alone::window_blocks(contract, self.options.host_latency);
        let more = contract.rate.bytes_in(self.options.ride_out).div_ceil(contract.block);
        (needed, needed + more)
    }

    /// The memory of a window, whether or not there is so much.
    fn window(&self, contract: &Contract) -> Bytes {
        contract.block.saturating_mul(self.blocks(contract).1)
    }

    fn check_memory(&self, contract: &Contract, without: Option<StreamId>) -> Result<(), Error> {
        let others = self.streams.values().filter(|stream| Some(stream.id) != without);
        let used: Bytes = others.map(Stream::window).sum();
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
        alone::check(contract)?;
        if start > Bytes::OUTSIDE_MAX {
            return Err(Error::Invalid { what: "start", rule: "at most 1 EiB" });
        }
        if self.streams.len() >= STREAMS_MAX {
            return Err(Error::Busy { waiting: STREAMS_MAX as u64 });
        }
        self.check_memory(contract, None)?;
        let cost = map.worst(&self.profile, contract.block);
        let joined = self.join(now, contract, cost);
        let task = joined.map_err(|refusal| self.with_rate(refusal, contract, cost, None))?;
        let begins = self.schedule.next_release(task.0).max(now);
        let (needed, target) = self.blocks(contract);
        let mut stream = Stream {
            id,
            name,
            length: map.length(),
            map,
            contract: *contract,
            task,
            slots: VecDeque::new(),
            target,
            needed,
            base: start / contract.block,
            position: start,
            credit: Credit::new(contract.rate, contract.burst.max(contract.block), now),
            later: None,
            held: Bytes::ZERO,
            ask: None,
            timer: None,
            primed: false,
            playout_from: begins.saturating_add(filled_in(contract, needed)),
            open_since: now,
            moved: Bytes::ZERO,
            requests: 0,
            late_requests: 0,
            late_max: Duration::ZERO,
            latency_max: Duration::ZERO,
            underruns: 0,
            throttled: 0,
            gaps: Bytes::ZERO,
        };
        stream.fit();
        let window = stream.window();
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
        self.admits(self.schedule.tasks(), &task)?;
        let patience = task.period / 2;
        let joined = self.schedule.join_within(now, task, patience);
        let id =
            joined.map_err(|refusal| self.refusal(refusal.utilisation_ppm, refusal.deadline))?;
        Ok((id, task))
    }

    /// A refusal that says what would fit instead.
    fn with_rate(
        &self,
        refusal: Refusal,
        contract: &Contract,
        cost: Duration,
        without: Option<TaskId>,
    ) -> Error {
        let mut set = self.schedule.tasks().clone();
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
        alone::check(contract)?;
        if contract.block != old.block {
            let rule = "stays what it was while a stream is open; open another one";
            return Err(Error::Invalid { what: "block size", rule });
        }
        self.check_memory(contract, Some(id))?;
        let cost = self.streams[&id].task.1.cost;
        let changed = self.put_in_place(now, task_id, contract, cost);
        let task =
            changed.map_err(|refusal| self.with_rate(refusal, contract, cost, Some(task_id)))?;
        let (needed, target) = self.blocks(contract);
        let stream = self.stream(id)?;
        (stream.task, stream.contract) = ((task_id, task), *contract);
        (stream.needed, stream.target) = (needed, target);
        stream.fit();
        // The window has to follow before the program may make use of a faster one.
        let patience =
            if contract.rate > old.rate { filled_in(contract, needed) } else { Duration::ZERO };
        stream.later = Some((now.saturating_add(patience), *contract));
        let window = stream.contract.block * target;
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
        let mut others = self.schedule.tasks().clone();
        others.remove(id);
        self.admits(&others, &task)?;
        let changed = self.schedule.change(now, id, task);
        changed.map_err(|refusal| self.refusal(refusal.utilisation_ppm, refusal.deadline))?;
        Ok(task)
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
                stream.ask = Some(Ask { ticket, len_max, throttled: false, starved: false });
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
        stream.credit.spend(len, now);
        stream.moved += len;
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
        self.streams.get(&id).map(|stream| stream.base)
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
        if let Some(slot) = stream.slot(last)
            && matches!(slot, Slot::Ready(_))
        {
            *slot = Slot::Open;
        }
        self.pump(now, id);
    }

    /// Closes a stream. Reads of it that are under way end for nobody.
    ///
    /// # Errors
    /// Where there is none.
    pub fn close(&mut self, id: StreamId) -> Result<(), Error> {
        let stream = self.streams.remove(&id).ok_or(Error::NoSuchStream { stream: id })?;
        for key in self.schedule.leave(stream.task.0) {
            self.keys.remove(&key);
        }
        if let Some(ask) = stream.ask {
            let result = Err(Error::NoSuchStream { stream: id });
            self.outputs.push_back(Output { ticket: ask.ticket, result });
        }
        Ok(())
    }

    /// What to read now. Programs may hear something by it, whose time has come.
    pub fn next(&mut self, now: Instant) -> Next {
        let due: Vec<StreamId> = self
            .streams
            .values_mut()
            .filter_map(|stream| stream.timer.take_if(|at| *at <= now).map(|_| stream.id))
            .collect();
        for id in due {
            self.pump(now, id);
        }
        let costs = Worst { profile: &self.profile, further: self.further() };
        match self.schedule.next(now, &costs) {
            sched::Next::Start { key, .. } => {
                let pending = self.keys.get_mut(&key).expect("a waiting read is known");
                pending.started = now;
                let stream = &self.streams[&pending.stream];
                let len = stream.contract.block;
                let (stream, block) = (pending.stream, pending.block);
                Next::Read { key, stream, block, offset: len * block, len }
            }
            sched::Next::Wait { until } => {
                let timer = self.streams.values().filter_map(|stream| stream.timer).min();
                Next::Wait { until: until.into_iter().chain(timer).min() }
            }
        }
    }

    /// Of the reads that are known, what their further runs cost.
    fn further(&self) -> BTreeMap<Lba, Duration> {
        let mut further = BTreeMap::new();
        for pending in self.keys.values() {
            let stream = self.streams.get(&pending.stream).filter(|one| one.map.runs() > 1);
            let Some(stream) = stream else { continue };
            let (access, cost) = stream.map.command(&self.profile, range(stream, pending.block));
            let more = cost.saturating_sub(one_run(&self.profile, &access));
            if !more.is_zero() {
                further.insert(access.lba, more);
            }
        }
        further
    }

    /// A read has ended at `now`: so many bytes came, or an errno.
    ///
    /// # Panics
    /// Where [`Device::next`] did not give it.
    pub fn finished(&mut self, now: Instant, key: u64, result: Result<Bytes, i32>) {
        let outcome = self.schedule.finished(now, key);
        let pending = self.keys.remove(&key).expect("a read ends once");
        let deadline = outcome.times.deadline.saturating_add(self.options.host_latency);
        let late = now.saturating_since(deadline);
        let took = now.saturating_since(pending.started);
        let beyond = took.saturating_sub(pending.cost + self.profile.latency());
        let beyond = beyond.saturating_sub(self.options.others);
        self.account.add(late, beyond, pending.cost, outcome.actual.min(took));
        let latency = now.saturating_since(outcome.times.release);
        let Some(stream) = self.streams.get_mut(&pending.stream) else { return };
        stream.requests += 1;
        stream.latency_max = stream.latency_max.max(latency);
        if !late.is_zero() {
            stream.late_requests += 1;
            stream.late_max = stream.late_max.max(late);
        }
        let whole = stream.contract.block;
        let from = whole * pending.block;
        if let Ok(len) = result
            && len < whole
            && from + len < stream.length
        {
            stream.length = from + len; // the file was cut
        }
        if let Some(slot) = stream.slot(pending.block) {
            *slot = result.map_or_else(Slot::Failed, Slot::Ready);
        }
        self.pump(now, pending.stream);
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
        let moving = stream.slots.iter().filter(|slot| matches!(slot, Slot::Moving(_))).count();
        let mut room = (stream.needed + EARLY).saturating_sub(moving as u64);
        for at in 0..stream.slots.len() {
            let block = stream.base + at as u64;
            if room == 0 || stream.contract.block * block >= stream.length {
                break;
            }
            if stream.slots[at] != Slot::Open {
                continue;
            }
            room -= 1;
            let (access, cost) = stream.map.command(&self.profile, range(stream, block));
            let key = self.next_key;
            self.next_key += 1;
            let class = Class::RealTime(stream.task.0);
            let command = Command::Transfer(access);
            self.schedule.submit(now, key, Request { class, command });
            self.keys.insert(key, Pending { stream: id, block, cost, started: now });
            stream.slots[at] = Slot::Moving(key);
        }
    }

    fn answer(&mut self, now: Instant, id: StreamId) {
        let stream = self.streams.get_mut(&id).expect("it is pumped");
        let Some(ask) = stream.ask else { return };
        if stream.position >= stream.length {
            return self.reply(id, Reply::End);
        }
        if !stream.primed {
            let more = stream.contract.block * (stream.base + stream.needed) < stream.length;
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
        match *stream.slot(block).expect("the playout point is in the window") {
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
            Slot::Failed(_) => {
                let end = (from + stream.contract.block).min(stream.length);
                let (offset, len) = (stream.position, end - stream.position);
                stream.gaps += len;
                stream.position = end;
                self.reply(id, Reply::Gap { offset, len });
                self.pump(now, id);
            }
            Slot::Open | Slot::Moving(_) => {
                if stream.within_rate(now, Bytes::new(1)) {
                    stream.starved();
                }
            }
        }
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
            window: stream.window(),
            position: stream.position,
            moved: stream.moved,
            durable: Bytes::ZERO,
            requests: stream.requests,
            late_requests: stream.late_requests,
            late_max: stream.late_max,
            underruns: stream.underruns,
            throttled: stream.throttled,
            gaps: stream.gaps,
            latency_max: stream.latency_max,
            open_since: stream.open_since,
            shares: Vec::from([(self.index, ppm(stream.task.1.cost, stream.task.1.period))]),
        };
        self.streams.values().map(status).collect()
    }
}

impl Account {
    fn add(&mut self, late: Duration, beyond: Duration, predicted: Duration, actual: Duration) {
        self.requests += 1;
        self.predicted += predicted;
        self.actual += actual;
        if !late.is_zero() {
            self.late_requests += 1;
            self.late_max = self.late_max.max(late);
        }
        if !beyond.is_zero() {
            self.disturbed += 1;
            self.disturbed_max = self.disturbed_max.max(beyond);
        }
    }
}

/// How long so many blocks of a stream take to come.
fn filled_in(contract: &Contract, blocks: u64) -> Duration {
    contract.rate.time_for(contract.block).saturating_mul(blocks)
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
