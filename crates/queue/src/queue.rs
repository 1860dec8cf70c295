//! The queue of one disk.
//!
//! Invariant: every command in `commands` waits in the schedule, or waits in `instant`
//! because it needs no device, or is with the device; it ends in exactly one call of
//! [`Queue::ended`], unless it is taken back before it was started.
//!
//! A request may be served in several commands, its *parts*, one after the other: the
//! schedule has one request, whose cost is that of all parts. From when the first part is
//! started until the last one that needs the device is, nothing else is, so that what is promised to
//! others waits for one request at the most, as the analysis has it; and the parts find the heads
//! where the part before them left them. The schedule is done with a request when the device is: it
//! does not wait for parts that need none, which come last. But where requests are served in chunks
//! ([`Queue::set_chunks`]) and the schedule says so, others go between: no command is then
//! longer than a chunk, and a request of which more is left waits in the schedule again after
//! each; from outside it looks as if the device had it all the time. Each part ends in a call of [`Queue::ended`] of its own, with
//! the same key.
//!
//! The other way round, requests that wait and go on where one ends that is started may be served
//! by the same command ([`Queue::set_merging`]), where the slack covers that: they end with it
//! ([`Ended::with`]).

use crate::account::{Account, Counted};
use crate::begun::Begun;
use crate::by_key::ByKey;
use crate::chunks::{Chunks, both, first_chunk, from_anywhere, in_pieces, len_of};
use crate::classes::Classes;
use crate::gaps::Gaps;
use crate::measured::HostTime;
use crate::merging::Merging;
use crate::parts::following;
use crate::predictions::{Heads, MayGoBeside, Predictions};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use disk::online::{Completion, Observations, Suspect};
use disk::{Head, Profile};
use sched::{
    Class, Contract, OddsWatch, PolicyKind, Predict, Refusal, Request, Schedule, Task, TaskId,
    TaskSet,
};
use units::{Bytes, Command, Duration, Instant, Lba};

/// Whether the device does only what its queue says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// Nobody else uses it: the heads are where its own commands left them.
    Alone,
    /// Others use it, too, and may have it for so long when a command comes. Each command
    /// is counted at its worst.
    Shared {
        /// How long.
        others: Duration,
    },
}

/// What a queue is made for.
#[derive(Clone, Debug)]
pub struct Device {
    /// What commands cost on it.
    pub profile: Profile,
    /// Its size.
    pub capacity: Bytes,
    /// Deadlines in the schedule are advanced by this: what the host and the device's
    /// pipeline may take beside the command.
    pub advance: Duration,
    /// Where nothing but the owner's own contracts is promised ([`Queue::set_own`]), a command on a
    /// suspect extent waits for slack of at most this.
    pub patience: Duration,
    /// Who else uses it.
    pub usage: Use,
}

/// The parts of a request behind its first: commands, and what they are for.
pub type Rest<W> = VecDeque<(Option<Command>, W)>;

/// A command that is known.
#[derive(Clone, Debug)]
pub(crate) struct Entry<W> {
    pub work: W,
    /// None where nothing is asked of the device.
    pub command: Option<Command>,
    pub(crate) class: Class,
    pub(crate) predicted: Duration,
    /// It is, or was, served in several commands.
    pub in_parts: bool,
    /// The device had some of it, and may not have the rest yet.
    pub begun: bool,
    /// What follows under the same request: commands, and what they are for.
    pub rest: Rest<W>,
    /// Where the whole request needs no device and counts for its contract: when it was asked for.
    asked: Option<Instant>,
    /// Where the device has had all that it is needed for, and parts are left that need none:
    /// the release and the deadline that the request had in the schedule, which has forgotten it.
    pub(crate) times: Option<(Instant, Instant)>,
}

/// A request of which parts are left to be started.
#[derive(Clone, Copy, Debug)]
struct Parted {
    key: u64,
    /// The part before has ended.
    goes_on: bool,
}

/// What the device shall do now.
#[derive(Debug, PartialEq, Eq)]
pub enum Next<'a, W> {
    /// Give it this command, then ask again.
    Start {
        /// Comes back with its end.
        key: u64,
        /// Bound on the device time; zero where nothing is asked of the device.
        predicted: Duration,
        /// It counts for a contract.
        is_promised: bool,
        /// What it is for. What is taken out of it does not come back at the end.
        work: &'a mut W,
    },
    /// Nothing before this instant, or before the next event.
    Wait {
        /// None: only after an event.
        until: Option<Instant>,
    },
}

/// When a command was with the device, as far as the host knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceTime {
    /// When the device could begin with it.
    pub started: Instant,
    /// The earliest instant at which it may have been done: what the device is held against,
    /// since whatever came after may be the host's.
    pub finished: Instant,
    /// When the host noticed: what a promise is held against.
    pub noticed: Instant,
}

/// What became of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended<W> {
    /// What it was for.
    pub work: W,
    /// By how much it missed its deadline; zero without one.
    pub late_by: Duration,
    /// From its release to its end; zero where nothing was asked of the device.
    pub latency: Duration,
    /// By when it was to end, where it had a deadline.
    pub due: Option<Instant>,
    /// It was under a contract.
    pub promised: bool,
    /// It took so long, and this was its bound; only where it was alone on the device, not
    /// on a suspect extent, and done.
    pub took: Option<(Duration, Duration)>,
    /// The suspect extents of [`Queue::seen`] have changed by it.
    pub suspects_changed: bool,
    /// The request has ended with it: false where another part follows.
    pub is_last: bool,
    /// Other requests that the same command served.
    pub with: Vec<Ended<W>>,
}

/// One disk at work; `W` is what its owner wants to know of each command.
#[derive(Clone, Debug)]
pub struct Queue<W> {
    pub(crate) device: Device,
    pub(crate) head: Head,
    seen: Observations,
    pub(crate) schedule: Schedule,
    /// Contracts of its owner's own.
    own: usize,
    pub(crate) commands: ByKey<Entry<W>>,
    /// Commands that need no device.
    pub(crate) instant: VecDeque<u64>,
    /// Of commands that are scattered over several places, what their other places cost; of
    /// requests in several parts nothing, since that is asked for when it is wanted to know.
    pub(crate) further: BTreeMap<u64, Duration>,
    parted: Option<Parted>,
    pub(crate) begun: Begun,
    chunks: Option<Chunks<W>>,
    pub(crate) merging: Option<Merging<W>>,
    /// Whether what a command touched is to blame where it fails.
    pub(crate) blames: fn(&W) -> bool,
    /// Which commands the device may have beside others; none where it serves one after the other.
    pub(crate) beside: Option<MayGoBeside<W>>,
    /// Since it was idle last, the device has had several commands.
    pub(crate) had_several: bool,
    /// Until then best effort is counted with that somebody waits for.
    pub(crate) somebody_waits: Instant,
    /// Of commands that serve several requests the keys of the others.
    pub(crate) merged: BTreeMap<u64, Vec<u64>>,
    pub(crate) classes: Classes,
    /// When the device had ended the last command.
    last_end: Instant,
    pub(crate) account: Account,
    /// The longest flushes that went well, the longest first.
    flushes: [Duration; 2],
    pub(crate) gaps: Gaps,
    odds: OddsWatch,
    pub(crate) has_news: bool,
    /// The latest time that it was told. Who shares it may come with an earlier one.
    pub(crate) latest: Instant,
}

impl<W> Entry<W> {
    /// In one part.
    fn new(work: W, command: Option<Command>, class: Class) -> Self {
        let (predicted, rest) = (Duration::ZERO, VecDeque::new());
        let (in_parts, begun, asked, times) = (false, false, None, None);
        Self { work, command, class, predicted, in_parts, begun, rest, asked, times }
    }

    /// It is given out. Of what needs no device only what counts for a contract is under it.
    pub(crate) fn given(&mut self, key: u64) -> Next<'_, W> {
        let counts = self.command.is_some() || self.times.is_some() || self.asked.is_some();
        let is_promised = counts && self.class.task().is_some();
        Next::Start { key, predicted: self.predicted, is_promised, work: &mut self.work }
    }
}

impl<W> Queue<W> {
    /// An idle disk. `suspects`: extents that an earlier life found bad or slow.
    /// Contracts that `schedule` has already are the owner's own.
    pub fn new(
        device: Device,
        schedule: Schedule,
        suspects: impl IntoIterator<Item = Suspect>,
    ) -> Self {
        let mut seen = Observations::new(&device.profile, device.capacity);
        seen.remember(suspects);
        let gap = schedule.tasks().gap();
        Self {
            own: schedule.tasks().len(),
            device,
            head: Head::anywhere(),
            seen,
            schedule,
            commands: ByKey::default(),
            instant: VecDeque::new(),
            further: BTreeMap::new(),
            parted: None,
            begun: Begun::default(),
            chunks: None,
            merging: None,
            beside: None,
            blames: |_| true,
            had_several: false,
            somebody_waits: Instant::EPOCH,
            merged: BTreeMap::new(),
            classes: Classes::default(),
            last_end: Instant::EPOCH,
            account: Account::default(),
            flushes: [Duration::ZERO; 2],
            gaps: Gaps::new(gap),
            odds: OddsWatch::default(),
            has_news: false,
            latest: Instant::EPOCH,
        }
    }

    /// Time does not go back here.
    pub(crate) fn time(&mut self, now: Instant) -> Instant {
        self.latest = self.latest.max(now);
        self.latest
    }

    /// What commands cost.
    pub fn profile(&self) -> &Profile {
        &self.device.profile
    }

    /// The device's size.
    pub fn capacity(&self) -> Bytes {
        self.device.capacity
    }

    /// By how much deadlines in the schedule are advanced.
    pub fn advance(&self) -> Duration {
        self.device.advance
    }

    /// What has happened.
    pub fn account(&self) -> &Account {
        &self.account
    }

    /// What the device did, held against its profile.
    pub fn seen(&self) -> &Observations {
        &self.seen
    }

    /// How long flushes take at the longest, but for one: a single one may have met with a
    /// trouble that does not come again.
    pub fn flush_longest(&self) -> Duration {
        self.flushes[1]
    }

    /// What the host took between commands.
    pub fn gaps(&self) -> HostTime {
        self.gaps.seen(self.gap())
    }

    /// What came of requests that may be late now and then.
    pub fn odds(&self) -> &OddsWatch {
        &self.odds
    }

    /// What each command is charged for between it and the next.
    pub fn gap(&self) -> Duration {
        self.tasks().gap()
    }

    /// Whether another gap than is charged was measured ([`Queue::take_gap_wanted`]).
    pub fn is_gap_wanted(&self) -> bool {
        self.gaps.is_another_wanted()
    }

    /// The gap that is to be charged from now on, by what was measured; said once.
    pub fn take_gap_wanted(&mut self) -> Option<Duration> {
        self.gaps.take_wanted()
    }

    /// What was measured of gaps long ago does not count any more
    /// ([`Measuring::pass`](crate::Measuring::pass)).
    pub fn forget_gaps(&mut self, now: Instant) {
        let (now, gap) = (self.time(now), self.gap());
        self.gaps.pass(now, gap);
    }

    /// When [`Queue::forget_gaps`] may find that another gap is wanted.
    pub fn gaps_due(&self) -> Option<Instant> {
        self.gaps.due(self.gap())
    }

    /// As [`Schedule::set_gap`].
    ///
    /// # Errors
    /// Where what is promised would not be kept with it.
    pub fn set_gap(&mut self, now: Instant, gap: Duration) -> Result<(), Refusal> {
        let now = self.time(now);
        self.schedule.set_gap(now, gap)?;
        self.has_news = true;
        Ok(())
    }

    /// What is promised.
    pub fn tasks(&self) -> &TaskSet {
        self.schedule.tasks()
    }

    /// Contracts, requests that wait, and when they are due.
    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// As [`Schedule::join`].
    ///
    /// # Errors
    /// Where what is promised would not fit any more.
    pub fn join(&mut self, now: Instant, contract: impl Into<Contract>) -> Result<TaskId, Refusal> {
        let now = self.time(now);
        let task = self.schedule.join(now, contract)?;
        self.odds_changed(task);
        Ok(task)
    }

    /// As [`Schedule::join_within`].
    ///
    /// # Errors
    /// Where what is promised would not fit any more.
    pub fn join_within(
        &mut self,
        now: Instant,
        contract: impl Into<Contract>,
        patience: Duration,
    ) -> Result<TaskId, Refusal> {
        let now = self.time(now);
        let task = self.schedule.join_within(now, contract, patience)?;
        self.odds_changed(task);
        Ok(task)
    }

    /// This task has come or goes: where it has odds, what is held against odds is another set.
    fn odds_changed(&mut self, task: TaskId) {
        if self.tasks().get(task).is_some_and(|task| task.odds.is_some()) {
            self.odds.tasks_changed();
        }
    }

    /// As [`Schedule::change`].
    ///
    /// # Errors
    /// Where what is promised would not fit any more; nothing has changed then.
    pub fn change(
        &mut self,
        now: Instant,
        task: TaskId,
        contract: impl Into<Contract>,
    ) -> Result<(), Refusal> {
        self.change_charging(now, task, contract, &[])
    }

    /// As [`Schedule::change_charging`].
    ///
    /// # Errors
    /// Where what is promised would not fit any more; nothing has changed then.
    pub fn change_charging(
        &mut self,
        now: Instant,
        task: TaskId,
        contract: impl Into<Contract>,
        costs: &[(u64, Duration)],
    ) -> Result<(), Refusal> {
        let now = self.time(now);
        let changed = self.schedule.change_charging(now, task, contract, costs);
        for key in self.schedule.take_demoted() {
            let entry = self.commands.get_mut(key).filter(|_| changed.is_ok());
            let class = self.schedule.queues().get(key).map(|waiting| waiting.class);
            if let Some((entry, class)) = entry.zip(class) {
                let before = core::mem::replace(&mut entry.class, class);
                self.classes.note(key, before);
            }
        }
        changed
    }

    /// Into what requests are cut; into nothing at first.
    pub fn chunks(&self) -> Option<Chunks<W>> {
        self.chunks
    }

    /// From now on requests are cut so, also those that wait, where the contract of their task
    /// is one in chunks ([`Task::in_chunks`](sched::Task::in_chunks)), and best effort. Whoever
    /// calls sees to it that the contracts are ([`Queue::set_commands`]).
    pub fn set_chunks(&mut self, chunks: Option<Chunks<W>>) {
        self.chunks = chunks;
    }

    /// As [`Schedule::set_commands`].
    ///
    /// # Errors
    /// Where what is promised would not be kept so.
    pub fn set_commands(
        &mut self,
        now: Instant,
        tasks: &[(TaskId, Task)],
        reserve: Duration,
    ) -> Result<(), Refusal> {
        let now = self.time(now);
        self.schedule.set_commands(now, tasks, reserve)?;
        self.has_news = true;
        Ok(())
    }

    /// As [`Schedule::change_policy`].
    ///
    /// # Errors
    /// Where what is promised would not be kept.
    pub fn change_policy(&mut self, now: Instant, policy: PolicyKind) -> Result<(), Refusal> {
        let now = self.time(now);
        self.schedule.change_policy(now, policy)
    }

    /// Other costs from now on; what is promised stays as it is.
    pub fn use_profile(&mut self, profile: Profile, advance: Duration, patience: Duration) {
        let suspects: Vec<Suspect> = self.seen.suspects().collect();
        self.head = Head::anywhere();
        self.seen = Observations::new(&profile, self.device.capacity);
        self.seen.remember(suspects);
        self.device = Device { profile, advance, patience, ..self.device };
        self.odds = OddsWatch::default();
    }

    /// Deadlines in the schedule are advanced by so much from now on; those that it has stay.
    pub fn set_advance(&mut self, advance: Duration) {
        self.device.advance = advance;
    }

    /// So many contracts are the owner's own: where there are no others, nobody is harmed by
    /// waiting for a bad extent.
    pub fn set_own(&mut self, own: usize) {
        self.own = own;
    }

    /// Whether nobody is promised anything but the owner himself.
    pub fn is_unpromised(&self) -> bool {
        self.schedule.tasks().len() <= self.own
    }

    /// Whether something has come since the last [`Queue::next`] that may be started; said
    /// once.
    pub fn take_news(&mut self) -> bool {
        core::mem::take(&mut self.has_news)
    }

    /// [`Queue::next`] is to be asked, although nothing has come.
    pub fn look_again(&mut self) {
        self.has_news = true;
    }

    /// Takes a command of this key. Requests under contract are released as the contract
    /// allows.
    ///
    /// # Panics
    /// Where the key is in use, and as [`Schedule::submit`].
    pub fn submit(&mut self, now: Instant, key: u64, request: Request, work: W) {
        self.submit_scattered(now, key, request, Duration::ZERO, work);
    }

    /// As [`Queue::submit`]; the command goes to several places at once, of which it names
    /// the first, and the others cost `further`.
    pub fn submit_scattered(
        &mut self,
        now: Instant,
        key: u64,
        request: Request,
        further: Duration,
        work: W,
    ) {
        let Request { class, command } = request;
        if !further.is_zero() {
            self.further.insert(key, further);
        }
        let now = self.time(now);
        self.note_class(now, class);
        self.schedule.submit(now, key, request);
        self.insert(key, Entry::new(work, Some(command), class));
    }

    /// As [`Queue::submit`]; the request is served in several commands, of which it names the
    /// first. The others follow in this order, each when the one before it has ended; one
    /// that is none asks nothing of the device.
    pub fn submit_in_parts(
        &mut self,
        now: Instant,
        key: u64,
        request: Request,
        work: W,
        rest: Rest<W>,
    ) {
        self.submit(now, key, request, work);
        self.set_rest(key, rest);
    }

    fn set_rest(&mut self, key: u64, rest: Rest<W>) {
        self.further.remove(&key);
        if !rest.is_empty() {
            // Asked for when it is wanted to know: suspect extents come and go meanwhile.
            self.further.insert(key, Duration::ZERO);
        }
        let entry = self.commands.get_mut(key).expect("a command that waits is known");
        (entry.in_parts, entry.rest) = (!rest.is_empty(), rest);
    }

    /// Takes a command that needs no device: it goes before all others. Where it counts for its
    /// contract since it was `asked` for, it is due when it would be if the device had been.
    pub fn submit_instant(&mut self, asked: Option<Instant>, key: u64, class: Class, work: W) {
        self.submit_instant_in_parts(asked, key, class, work, VecDeque::new());
    }

    /// The same in several parts, none of which needs the device.
    pub fn submit_instant_in_parts(
        &mut self,
        asked: Option<Instant>,
        key: u64,
        class: Class,
        work: W,
        rest: Rest<W>,
    ) {
        assert!(rest.iter().all(|(command, _)| command.is_none()), "it needs the device");
        self.instant.push_back(key);
        self.insert(key, Entry { rest, asked, ..Entry::new(work, None, class) });
    }

    fn insert(&mut self, key: u64, entry: Entry<W>) {
        self.commands.insert(key, entry);
        self.has_news = true;
    }

    pub(crate) fn remove(&mut self, key: u64) -> Option<Entry<W>> {
        self.begun.ended(key);
        self.further.remove(&key);
        self.commands.remove(key)
    }

    /// Takes a command back that has not been started. Says whether it could.
    pub fn cancel(&mut self, key: u64) -> bool {
        let waits = !self.has_begun(key);
        self.drop_instant(key) || (waits && self.schedule.cancel(key) && self.remove(key).is_some())
    }

    /// As [`Queue::cancel`]; its release is its contract's again where it was the last.
    pub fn take_back(&mut self, key: u64) -> bool {
        let waits = !self.has_begun(key);
        self.drop_instant(key)
            || (waits && self.schedule.take_back(key) && self.remove(key).is_some())
    }

    fn drop_instant(&mut self, key: u64) -> bool {
        let at = self.instant.iter().position(|&other| other == key);
        // Its owner may have to hear of its first part yet.
        let at = at.filter(|_| !self.has_begun(key));
        at.is_some_and(|at| self.instant.remove(at).is_some()) && self.remove(key).is_some()
    }

    /// Gives a command that waits another class. Says whether it waited.
    pub fn upgrade(&mut self, now: Instant, key: u64, class: Class) -> bool {
        let now = self.time(now);
        let is_upgraded = !self.has_begun(key) && self.schedule.upgrade(now, key, class).is_some();
        if let Some(entry) = self.commands.get_mut(key).filter(|_| is_upgraded) {
            let before = core::mem::replace(&mut entry.class, class);
            self.classes.note(key, before);
        }
        is_upgraded
    }

    /// Lets a command that waits in this class do something else in the time that it had.
    /// Says whether it could; otherwise nothing has changed.
    pub fn redirect(
        &mut self,
        now: Instant,
        key: u64,
        request: Request,
        work: impl FnOnce() -> (W, Rest<W>),
    ) -> bool {
        let Request { class, command } = request;
        let now = self.time(now);
        if self.class_of(key) != Some(class) || !self.schedule.redirect(now, key, command) {
            return false;
        }
        let (work, rest) = work();
        self.set_rest(key, rest);
        let entry = self.commands.get_mut(key).expect("a command that waits is known");
        (entry.work, entry.command) = (work, Some(command));
        self.has_news = true;
        true
    }

    /// Lets a task release its next request at `from`, or as soon after as may be.
    pub fn renew(&mut self, now: Instant, task: TaskId, from: Instant) {
        let now = self.time(now);
        self.schedule.renew(now, task, from);
        self.has_news = true;
    }

    /// Promises a command that waits for as soon as nobody else is late for it, behind `others`
    /// that go before it in the slack.
    pub fn advance_deadline(&mut self, now: Instant, key: u64, others: Duration) {
        let now = self.time(now);
        self.schedule.advance_deadline_behind(now, key, others);
    }

    /// Promises a command that waits for `by`, or as soon after as nobody else is late for it.
    pub fn advance_deadline_to(&mut self, now: Instant, key: u64, by: Instant) {
        let now = self.time(now);
        self.schedule.advance_deadline_to(now, key, by);
    }

    /// A contract ends. What waits under it is dropped, and what it was for returned.
    pub fn leave(&mut self, task: TaskId) -> Vec<W> {
        self.odds_changed(task);
        let dropped = self.schedule.leave(task);
        dropped.into_iter().filter_map(|key| self.remove(key)).map(|entry| entry.work).collect()
    }

    /// What the device shall do now. Ask again after [`Next::Start`], and after each event.
    pub fn next(&mut self, now: Instant) -> Next<'_, W> {
        self.has_news = false;
        let now = self.time(now);
        if let Some(key) = self.instant.pop_front() {
            let entry = self.commands.get_mut(key).expect("a command that waits is known");
            (entry.begun, entry.predicted) = (true, Duration::ZERO);
            return entry.given(key);
        }
        let at = self.schedule.head();
        if let Some(Parted { key, goes_on }) = self.parted {
            if !goes_on {
                return Next::Wait { until: None };
            }
            return self.start(key, at);
        }
        if self.holds_no_more(now) {
            return Next::Wait { until: None };
        }
        match self.predicting(|schedule, predictions| schedule.next(now, predictions)) {
            sched::Next::Wait { until } => {
                self.gaps.nothing_given();
                Next::Wait { until }
            }
            sched::Next::Start { key, .. } if self.is_beside() => self.start_beside(key),
            sched::Next::Start { key, .. } => {
                self.merge(now, key, at);
                self.start(key, at)
            }
        }
    }

    /// Asks the schedule something for which it has to know what commands take.
    pub(crate) fn predicting<T>(
        &mut self,
        ask: impl FnOnce(&mut Schedule, &dyn Predict) -> T,
    ) -> T {
        let at = self.schedule.head();
        // No slack would ever cover what a disk may try for so long on a bad extent.
        let patience = if self.is_unpromised() { self.device.patience } else { Duration::MAX };
        let beside = self.beside.filter(|_| self.device.profile.bus.is_none());
        let gap = self.gap();
        let Self { device, seen, commands, further, chunks, .. } = self;
        let places = &*further;
        let further = |key| match places.get(&key) {
            None => Duration::ZERO,
            Some(&others) => {
                let Entry { command, rest, .. } = &commands[key];
                let on = (&device.profile, matches!(device.usage, Use::Alone));
                others + following(on, seen, (patience, gap), (command.as_ref(), commands_of(rest)))
            }
        };
        let predictions = Predictions {
            profile: &device.profile,
            heads: heads(device.usage, &self.head, at),
            seen,
            patience,
            further: &further,
            gaps_within: &|key| {
                let rest = places.get(&key).map(|_| &commands[key].rest);
                rest.map_or(0, |rest| commands_of(rest).count() as u32)
            },
            first: &|key| {
                let chunks = chunks.as_ref()?;
                let entry = &commands[key];
                let is_promised = matches!(entry.class, Class::RealTime(_));
                if !is_promised && (chunks.stays_whole)(&entry.work) {
                    return None;
                }
                first_chunk(&device.profile, chunks, (entry.command, &entry.work), &entry.rest)
            },
            is_one: &|key| {
                let may = beside.is_some_and(|may| may(&commands[key].work, &commands[key].class));
                may && !places.contains_key(&key)
            },
        };
        ask(&mut self.schedule, &predictions)
    }

    /// What commands take from here, whatever request they are of.
    pub(crate) fn plain(&self, at: Lba) -> Predictions<'_> {
        plain(&self.device, &self.head, &self.seen, at)
    }

    /// Gives the device a command, or the next part of one.
    pub(crate) fn start(&mut self, key: u64, at: Lba) -> Next<'_, W> {
        // Other places are moved to by the same command; each part counts for itself.
        let places = self.further.get(&key).copied().unwrap_or_default();
        let has_more = self.schedule.has_more(key);
        let Self { device, head, seen, commands, .. } = self;
        let entry = commands.get_mut(key).expect("a scheduled command is known");
        if let Some(chunks) = self.chunks.filter(|_| has_more) {
            entry.cut(&chunks);
        }
        let bound = |command: &Command| plain(device, head, seen, at).plain(at, command) + places;
        entry.predicted = entry.command.as_ref().map_or(Duration::ZERO, bound);
        if entry.command.is_some() {
            self.gaps.given(key);
            self.begun.given(key, self.latest);
        }
        let goes_on_alone = commands_of(&entry.rest).next().is_some() && !has_more;
        self.parted = goes_on_alone.then_some(Parted { key, goes_on: false });
        entry.given(key)
    }

    /// A command has ended on the device, well or not.
    ///
    /// # Panics
    /// Where [`Queue::next`] did not give it.
    pub fn ended(&mut self, key: u64, started: Instant, finished: Instant, good: bool) -> Ended<W> {
        self.ended_within(key, DeviceTime { started, finished, noticed: finished }, good)
    }

    /// The same, where the host may have noticed some time after the end.
    ///
    /// # Panics
    /// As [`Queue::ended`].
    pub fn ended_within(&mut self, key: u64, times: DeviceTime, good: bool) -> Ended<W> {
        let mut ended = self.ended_alone(key, times, good);
        ended.with = self.end_merged(key, times, good);
        ended
    }

    /// The same, but for what was merged with it.
    pub(crate) fn ended_alone(&mut self, key: u64, times: DeviceTime, good: bool) -> Ended<W> {
        let DeviceTime { started, finished, noticed } = times;
        let noticed = noticed.max(finished);
        let mut entry = self.commands.remove(key).expect("a command ends once");
        let Entry { command, class, predicted, in_parts, asked, times: before, .. } = entry;
        let next = entry.rest.pop_front();
        let is_last = next.is_none();
        // What needs no device comes last, and the device does not wait for it.
        let is_over = next.iter().chain(&entry.rest).all(|(part, _)| part.is_none());
        let is_scheduled = command.is_some() || self.schedule.times(key).is_some();
        let within = sched::EndTime { earliest: finished, latest: noticed };
        let outcome = (is_over && is_scheduled).then(|| self.schedule.finished_within(within, key));
        let times = outcome.as_ref().map(|of| (of.times.release, of.times.deadline)).or(before);
        let was_begun = is_last && self.begun.ended(key);
        let work = match next {
            Some((command, work)) => {
                (entry.command, entry.times, entry.begun) =
                    (command, times, entry.begun || is_over);
                let ended = core::mem::replace(&mut entry.work, work);
                self.commands.insert(key, entry);
                self.begun.goes_on(key);
                ended
            }
            None => {
                self.further.remove(&key);
                entry.work
            }
        };
        let waits_again = !is_last && self.schedule.has_more(key);
        if !is_last && !waits_again {
            match &mut self.parted {
                Some(parted) if parted.key == key => parted.goes_on = true,
                _ => self.instant.push_front(key),
            }
        }
        let promised = class.task().is_some();
        let task = || self.schedule.tasks().get(class.task()?);
        let of_asked = |asked: Instant| Some((asked, asked.saturating_add(task()?.deadline)));
        let times = times.or_else(|| of_asked(asked?)).filter(|_| is_last);
        let latency = times.map_or(Duration::ZERO, |(from, _)| noticed.saturating_since(from));
        let due = times.map(|(_, deadline)| deadline.saturating_add(self.device.advance));
        let late_by = due.map_or(Duration::ZERO, |due| noticed.saturating_since(due));
        let Some(command) = command else {
            if was_begun {
                self.account.count_late(late_by); // of the parts before it
            }
            let (took, suspects_changed) = (None, false);
            return Ended {
                work,
                late_by,
                latency,
                due,
                promised,
                took,
                suspects_changed,
                is_last,
                with: Vec::new(),
            };
        };
        let time = finished.saturating_since(started);
        self.gaps.ended(key, (started, finished), self.schedule.tasks().gap());
        let actual = match &outcome {
            Some(of) if !in_parts => of.actual,
            _ => finished.saturating_since(started.max(self.last_end)),
        };
        self.last_end = self.last_end.max(noticed);
        let class = outcome.as_ref().map_or(class, |of| of.class);
        if let Class::RealTime(id) = class
            && let Some(odds) = self.tasks().get(id).and_then(|task| task.odds)
            && good
        {
            self.odds.ended(&odds, time.min(actual), !late_by.is_zero());
        }
        self.learn(&command, time, good);
        self.forget_order();
        if waits_again {
            self.wait_again(finished, key);
        }
        let others = match self.device.usage {
            Use::Alone => Duration::ZERO,
            Use::Shared { others } => others,
        };
        let done = Completion {
            command,
            bound: predicted + self.device.profile.latency() + others,
            // Where commands overlap, what it took since the one before.
            actual: time.min(actual),
            alone: time <= actual,
            good,
            now: finished,
        };
        if good && command == Command::Flush {
            let [first, second] = self.flushes;
            self.flushes = [first.max(done.actual), second.max(first.min(done.actual))];
        }
        let is_explained = self.seen.is_explained(&command);
        let took = (good && done.alone && !is_explained).then_some((time, done.bound));
        let is_said = good || (self.blames)(&work);
        let suspects_changed = is_said && self.seen.completed(&self.device.profile, &done);
        self.account.count(&Counted {
            class,
            len: command.access().map_or(Bytes::ZERO, |access| access.len),
            predicted,
            time,
            overrun: done.actual.saturating_sub(done.bound),
            late_by,
            good,
        });
        let promised = class.task().is_some();
        let with = Vec::new();
        Ended { work, late_by, latency, due, promised, took, suspects_changed, is_last, with }
    }

    /// A command of a request has ended of which more is left, and others may go first.
    fn wait_again(&mut self, now: Instant, key: u64) {
        let at = self.schedule.head();
        let (device, entry) = (&self.device, &self.commands[key]);
        let command = entry.command.expect("what needs no device comes last");
        let len = self.chunks.map(|chunks| chunks.len);
        let predictions = self.plain(at);
        let own = in_pieces(&device.profile, &command, len, |piece| predictions.plain(at, piece));
        let rest = entry.rest.iter().filter_map(|(command, _)| command.as_ref());
        let rest = rest.fold(own, |all, part| both(all, from_anywhere(&device.profile, part, len)));
        self.schedule.finished_part(now, key, command, rest);
        self.has_news = true;
    }

    /// Learns from a command that has ended where the heads may be. What was written from
    /// the disk's own buffer in a flush, or tried in a failed command, may have moved them
    /// anywhere.
    fn learn(&mut self, command: &Command, time: Duration, good: bool) {
        match command {
            Command::Transfer(access) if good => {
                self.head.completed(&self.device.profile, access, time);
            }
            _ => self.head = Head::anywhere(),
        }
    }
}

impl<W> Entry<W> {
    /// The device is given a chunk of it.
    fn cut(&mut self, chunks: &Chunks<W>) {
        (self.begun, self.in_parts) = (true, true);
        let is_longer = self.command.is_some_and(|command| len_of(&command) > chunks.len);
        if is_longer && (chunks.may_cut)(&self.work) {
            let (command, (left, work)) = (chunks.cut)(&mut self.work, chunks.len);
            self.command = Some(command);
            self.rest.push_front((Some(left), work));
        }
    }
}

/// Of the parts that are for the device.
fn commands_of<W>(rest: &Rest<W>) -> impl Iterator<Item = &Command> + Clone {
    rest.iter().filter_map(|(command, _)| command.as_ref())
}

/// As [`Queue::plain`].
fn plain<'a>(
    device: &'a Device,
    head: &'a Head,
    seen: &'a Observations,
    at: Lba,
) -> Predictions<'a> {
    Predictions {
        profile: &device.profile,
        heads: heads(device.usage, head, at),
        seen,
        patience: Duration::MAX,
        further: &|_| Duration::ZERO,
        gaps_within: &|_| 0,
        first: &|_| None,
        is_one: &|_| false,
    }
}

/// What is known of where the heads are; the schedule thinks them to be at `at`.
fn heads(usage: Use, head: &Head, at: Lba) -> Heads<'_> {
    match usage {
        Use::Alone => Heads::Ours { head, at },
        Use::Shared { .. } => Heads::Anywhere,
    }
}
