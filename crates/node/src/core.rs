//! What all parts of a node share: the disks with their schedules, the store,
//! the arena, commands under way, answers and timers.
//!
//! Invariant: every command in `commands` is in exactly one disk's schedule or
//! in its `instant` queue, and ends in exactly one call of
//! [`Core::command_done`].

use crate::admission::contract::refused;
use crate::admission::costs::Costs;
use crate::admission::rates::RateSearch;
use crate::api::*;
use crate::commits::state::Commits;
use crate::copy_on_write::CopyOnWrite;
use crate::jobs::measuring::Measuring;
use crate::jobs::moves::Moves;
use crate::limits;
use crate::memory::arena::Arena;
use crate::memory::reserve::Reserves;
use crate::volumes::services::{Piece, Services, Turn};
use crate::volumes::writes::{Claim, Writes};
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use disk::online::{Completion, Observations, Observed, Suspect};
use disk::{Head, Profile};
use sched::{Class, Next, Request, Schedule, Task, TaskId};
use store::{IoId, Store};
use units::{Access, Bytes, Command, Duration, Instant, Lba};

/// Whom the end of a command concerns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// A block of a stream, in this place; of a writer, with its claim.
    Block { stream: StreamId, block: u64, place: Bytes, claim: Option<Claim> },
    /// A command of a best-effort operation.
    Piece { operation: u64, part: Part },
    /// A piece of a write (or a flush) of the store.
    Store { io: IoId },
    /// A piece of the move that runs on the disk.
    Move { write: bool },
    /// A read of the measurement that runs on the disk.
    Measure,
}

/// What a command does for a best-effort operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Reads a piece of it.
    Read,
    /// Has to be done before the piece with this claim can be written: its edges, or zeros
    /// before it.
    Before(Claim),
    /// Writes the piece with this claim.
    Write(Claim),
}

#[derive(Clone, Debug)]
struct Pending {
    disk: DiskIndex,
    owner: Owner,
    action: DiskAction,
    predicted: Duration,
    /// As the schedule knows it; the action's bytes may have moved out.
    command: Command,
    class: Class,
    len: Bytes,
}

/// What became of a command.
#[derive(Clone, Debug)]
pub(crate) struct Ended {
    pub disk: DiskIndex,
    pub owner: Owner,
    pub result: Result<(), DeviceError>,
    /// Real-time requests: how late, and how long since the release.
    pub late_by: Duration,
    pub latency: Duration,
    /// It was under a contract.
    pub promised: bool,
    /// It took so long, and this was its bound; only where it was alone on the device,
    /// not on a suspect extent, and done.
    pub took: Option<(Duration, Duration)>,
}

#[derive(Clone, Debug)]
pub(crate) struct Disk {
    pub profile: Profile,
    /// Where the heads may be, as far as completions tell.
    pub head: Head,
    /// What it did, held against the profile.
    pub seen: Observations,
    pub schedule: Schedule,
    /// Commands that need no device.
    instant: VecDeque<CommandId>,
    /// Contracts of the metadata log: flush, write.
    pub metadata: [TaskId; 2],
    pub status: DiskStatus,
    wake: bool,
    /// Deadlines are advanced by this: host and device latency.
    pub advance: Duration,
    /// Best-effort transfers are cut to this, which costs that.
    pub piece: Bytes,
    pub reserve: Duration,
    /// The longest flush.
    pub flush_longest: Duration,
}

/// A node's parts, without the streams and best-effort operations.
#[derive(Clone, Debug)]
pub(crate) struct Core {
    pub config: Config,
    pub store: CopyOnWrite<Store>,
    pub disks: Vec<Disk>,
    pub arena: Arena,
    pub writes: Writes,
    pub commits: Commits,
    pub services: Services,
    pub reserves: Reserves,
    pub moves: Moves,
    pub measuring: Measuring,
    pub outputs: VecDeque<Output>,
    /// What the refusal that is answered next leaves to be searched.
    pub search: Option<Box<RateSearch>>,
    /// How late the host may be, as far as windows go.
    pub late: Duration,
    /// Parts of regions that are not needed any more, and nobody was told: by where
    /// they begin, how long.
    freed: BTreeMap<Bytes, Bytes>,
    commands: BTreeMap<CommandId, Pending>,
    timers: BTreeSet<(Instant, StreamId)>,
    next_command: u64,
}

/// A profile as a schedule wants to ask it. Where the schedule thinks the heads to
/// be, they are only where the last command was served from the platters; what the
/// completions tell goes before that.
struct Predictions<'a> {
    profile: &'a Profile,
    head: &'a Head,
    /// Where the schedule thinks the heads to be.
    at: Lba,
    /// What is known of suspect extents, on which commands take longer than their bound,
    seen: &'a Observations,
    /// and the most that such a command is waited for.
    patience: Duration,
}

impl Predictions<'_> {
    /// As if no extent were suspect: what the command is held against.
    fn plain(&self, from: Lba, command: &Command) -> Duration {
        if from == self.at {
            self.head.bound(self.profile, command)
        } else {
            self.profile.bound(from, command)
        }
    }
}

impl sched::Predict for Predictions<'_> {
    fn bound(&self, from: Lba, command: &Command) -> Duration {
        let plain = self.plain(from, command);
        self.seen.expected(command, plain).min(plain.max(self.patience))
    }
}

impl Core {
    pub(crate) fn new(
        mut config: Config,
        setups: Vec<DiskSetup>,
        store: Store,
    ) -> Result<Self, Error> {
        for (disk, setup) in store.disks().iter().zip(&setups) {
            let least = Costs::new(&config, &setup.profile, disk.capacity).commit_interval();
            config.commit_interval = config.commit_interval.max(least);
        }
        let mut disks = Vec::with_capacity(setups.len());
        for (index, setup) in setups.into_iter().enumerate() {
            disks.push(Disk::new(&config, DiskIndex(index as u16), setup.profile, &store)?);
        }
        Ok(Self {
            config,
            store: CopyOnWrite::new(store),
            disks,
            arena: Arena::new(config.memory),
            writes: Writes::default(),
            commits: Commits::default(),
            services: Services::default(),
            reserves: Reserves::default(),
            moves: Moves::default(),
            measuring: Measuring::default(),
            outputs: VecDeque::new(),
            search: None,
            late: config.host_latency,
            freed: BTreeMap::new(),
            commands: BTreeMap::new(),
            timers: BTreeSet::new(),
            next_command: 0,
        })
    }

    /// Tries something with the schedules of these disks; where it fails they are as they
    /// were. What it asks of one disk alone may go without a copy, where each step there
    /// changes nothing when it fails.
    pub(crate) fn attempt<T, E>(
        &mut self,
        disks: impl IntoIterator<Item = DiskIndex>,
        steps: impl FnOnce(&mut Self) -> Result<T, E>,
    ) -> Result<T, E> {
        let copy = |disk| (disk, self.disks[DiskIndex::as_usize(disk)].schedule.clone());
        let before: Vec<(DiskIndex, Schedule)> = disks.into_iter().map(copy).collect();
        let result = steps(self);
        if result.is_err() {
            for (disk, schedule) in before {
                self.disk(disk).schedule = schedule;
            }
        }
        result
    }

    pub(crate) fn disk(&mut self, disk: DiskIndex) -> &mut Disk {
        &mut self.disks[usize::from(disk.0)]
    }

    pub(crate) fn answer(&mut self, ticket: Ticket, result: Result<Reply, Error>) {
        let is_refused = matches!(result, Err(Error::Refused(_)));
        let search = self.search.take().filter(|_| is_refused);
        self.outputs.push_back(Output { ticket, result, search });
    }

    /// A part of a region is not needed any more.
    pub(crate) fn freed(&mut self, span: Span) {
        self.freed.insert(span.offset, span.len);
    }

    /// It is needed again.
    pub(crate) fn unfree(&mut self, offset: Bytes) {
        self.freed.remove(&offset);
    }

    /// All of the region is gone, and nothing needs to be said about its parts.
    pub(crate) fn forget_freed(&mut self, region: Region) {
        let end = region.offset() + limits::REGION_STRIDE;
        while let Some((&at, _)) = self.freed.range(region.offset()..end).next() {
            self.freed.remove(&at);
        }
    }

    pub(crate) fn poll_freed(&mut self) -> Option<Span> {
        self.freed.pop_first().map(|(offset, len)| Span { offset, len })
    }

    /// Puts an action into its disk's schedule.
    pub(crate) fn submit(
        &mut self,
        now: Instant,
        disk: DiskIndex,
        class: Class,
        action: DiskAction,
        owner: Owner,
    ) -> CommandId {
        let id = CommandId(self.next_command);
        self.next_command += 1;
        let (command, len) = as_command(&action);
        let state = self.disk(disk);
        state.wake = true;
        if action.needs_no_disk() {
            state.instant.push_back(id);
        } else {
            state.schedule.submit(now, id.0, Request { class, command });
        }
        let predicted = Duration::ZERO;
        let pending = Pending { disk, owner, action, predicted, command, class, len };
        self.commands.insert(id, pending);
        id
    }

    /// As [`Core::submit`], of a request under contract that has waited for something: where
    /// its deadline would be later than is promised from its turn on, it is brought forward
    /// as far as nobody else is late for it.
    pub(crate) fn submit_in_turn(
        &mut self,
        now: Instant,
        disk: DiskIndex,
        (task, turn): (TaskId, Turn),
        action: DiskAction,
        owner: Owner,
    ) -> CommandId {
        // Other policies do not look at the exact slack before they let others go first.
        let exact = self.config.policy == Policy::Slack && !action.needs_no_disk();
        let Disk { schedule, advance, .. } = self.disk(disk);
        let (advance, comes) = (*advance, schedule.next_release(task).max(now));
        let is_behind = exact && comes > turn.from.saturating_add(advance);
        if is_behind && !schedule.has_early(task) {
            schedule.renew(now, task, turn.from);
        }
        let id = self.submit(now, disk, Class::RealTime(task), action, owner);
        if is_behind {
            let by = turn.due.saturating_sub(advance);
            self.disk(disk).schedule.hurry_by(now, id.0, by);
        }
        id
    }

    /// A command that waits and has another class now.
    pub(crate) fn note_class(&mut self, id: CommandId, class: Class) {
        self.commands.get_mut(&id).expect("it waits").class = class;
    }

    /// What waits and is wanted, with the priority that is given for it, in the order in
    /// which it came.
    pub(crate) fn waiting(
        &self,
        wanted: impl Fn(&Owner) -> Option<Option<Priority>>,
    ) -> Vec<Piece> {
        let piece = |(&id, pending): (&CommandId, &Pending)| {
            let state = &self.disks[pending.disk.as_usize()];
            let stated = wanted(&pending.owner)?;
            let waits = state.schedule.queues().get(id.0).is_some();
            let access =
                pending.command.access().filter(|_| waits && !is_ordered(pending.class))?;
            Some(Piece {
                id,
                disk: pending.disk,
                at: access.lba,
                len: access.len,
                direction: access.direction,
                stated,
            })
        };
        self.commands.iter().filter_map(piece).collect()
    }

    /// All commands of best effort, whether a disk has begun with them or not.
    pub(crate) fn pieces(&self) -> Vec<(CommandId, u64, Part)> {
        let piece = |(&id, pending): (&CommandId, &Pending)| match pending.owner {
            Owner::Piece { operation, part } => Some((id, operation, part)),
            _ => None,
        };
        self.commands.iter().filter_map(piece).collect()
    }

    /// The newest command.
    pub(crate) fn last_command(&self) -> CommandId {
        CommandId(self.next_command.saturating_sub(1))
    }

    /// Takes a command back that has not been started. Says whether it could.
    pub(crate) fn cancel(&mut self, id: CommandId) -> bool {
        let Some(pending) = self.commands.get(&id) else { return false };
        let state = &mut self.disks[usize::from(pending.disk.0)];
        let instant = state.instant.iter().position(|&other| other == id);
        let cancelled = match instant {
            Some(at) => state.instant.remove(at).is_some(),
            None => state.schedule.cancel(id.0),
        };
        if cancelled {
            self.commands.remove(&id);
        }
        cancelled
    }

    /// Where a command waits for its disk, and as what.
    pub(crate) fn waits_as(&self, id: CommandId) -> Option<(DiskIndex, Class)> {
        let pending = self.commands.get(&id)?;
        let schedule = &self.disks[pending.disk.as_usize()].schedule;
        schedule.queues().get(id.0).map(|_| (pending.disk, pending.class))
    }

    /// The disk of a command that waits under contract and can be redirected or taken back;
    /// or needs no disk and was not given out.
    pub(crate) fn waits_on(&self, id: CommandId) -> Option<DiskIndex> {
        let pending = self.commands.get(&id)?;
        let state = &self.disks[pending.disk.as_usize()];
        let waits = state.schedule.queues().get(id.0).is_some() || state.instant.contains(&id);
        waits.then_some(pending.disk)
    }

    /// Lets a command that waits do something else of the same class and on the same
    /// disk, in the time that it had. Says whether it could.
    pub(crate) fn redirect(
        &mut self,
        now: Instant,
        id: CommandId,
        class: Class,
        action: DiskAction,
        owner: Owner,
    ) -> bool {
        let Some(pending) = self.commands.get_mut(&id).filter(|it| it.class == class) else {
            return false;
        };
        if action.needs_no_disk() {
            return false;
        }
        let (command, len) = as_command(&action);
        let state = &mut self.disks[pending.disk.as_usize()];
        if !state.schedule.redirect(now, id.0, command) {
            return false;
        }
        state.wake = true;
        (pending.action, pending.owner, pending.command, pending.len) =
            (action, owner, command, len);
        true
    }

    /// As [`Core::cancel`]; its release is the stream's again where it was the last.
    pub(crate) fn take_back(&mut self, id: CommandId) -> bool {
        let Some(pending) = self.commands.get(&id) else { return false };
        let state = &mut self.disks[pending.disk.as_usize()];
        if state.instant.contains(&id) {
            return self.cancel(id);
        }
        let taken = state.schedule.take_back(id.0);
        if taken {
            self.commands.remove(&id);
        }
        taken
    }

    /// Whether a command that waits has been released.
    pub(crate) fn is_released(&self, id: CommandId, now: Instant) -> bool {
        let Some(pending) = self.commands.get(&id) else { return false };
        let schedule = &self.disks[pending.disk.as_usize()].schedule;
        schedule.times(id.0).is_some_and(|times| times.release <= now)
    }

    /// Lets a task release its next request at `from`, or as soon after as may be.
    pub(crate) fn renew(
        &mut self,
        now: Instant,
        joined: &crate::admission::contract::Joined,
        from: Instant,
    ) {
        let state = self.disk(joined.disk);
        state.schedule.renew(now, joined.id, from);
        state.wake = true;
    }

    /// Promises a command that waits for as soon as nobody else is late for it.
    pub(crate) fn hurry(&mut self, now: Instant, id: CommandId) {
        let Some(pending) = self.commands.get(&id) else { return };
        self.disks[pending.disk.as_usize()].schedule.hurry(now, id.0);
    }

    /// By when a command under way is done, as the contract's deadlines go.
    pub(crate) fn due(&self, id: CommandId) -> Instant {
        let Some(pending) = self.commands.get(&id) else { return Instant::EPOCH };
        let state = &self.disks[pending.disk.as_usize()];
        let times = state.schedule.times(id.0);
        times.map_or(Instant::EPOCH, |times| times.deadline.saturating_add(state.advance))
    }

    /// When a task may release its next request.
    pub(crate) fn next_release(&self, joined: &crate::admission::contract::Joined) -> Instant {
        self.disks[joined.disk.as_usize()].schedule.next_release(joined.id)
    }

    /// What `disk` shall do next.
    pub(crate) fn poll_disk(&mut self, now: Instant, disk: DiskIndex) -> DiskPoll {
        let state = &mut self.disks[usize::from(disk.0)];
        state.wake = false;
        if let Some(id) = state.instant.pop_front() {
            let pending = &self.commands[&id];
            let action = pending.action.clone();
            return DiskPoll::Start(DiskCommand { id, action, predicted: Duration::ZERO });
        }
        let at = state.schedule.head();
        // Where there are no contracts but the log's, nobody is harmed by waiting for a
        // bad extent, and no slack would ever cover what a disk may try for so long.
        let alone = state.schedule.tasks().len() <= state.metadata.len();
        let patience = if alone { state.reserve } else { Duration::MAX };
        let (profile, head, seen) = (&state.profile, &state.head, &state.seen);
        let predictions = Predictions { profile, head, at, seen, patience };
        match state.schedule.next(now, &predictions) {
            Next::Start { key, .. } => {
                let id = CommandId(key);
                let pending = self.commands.get_mut(&id).expect("a scheduled command is known");
                let predicted = predictions.plain(at, &pending.command);
                pending.predicted = predicted;
                // Metadata is used once: its bytes move out.
                let action = match &mut pending.action {
                    DiskAction::WriteBytes { offset, bytes } => {
                        DiskAction::WriteBytes { offset: *offset, bytes: core::mem::take(bytes) }
                    }
                    other => other.clone(),
                };
                DiskPoll::Start(DiskCommand { id, action, predicted })
            }
            Next::Wait { until } => DiskPoll::Wait { until },
        }
    }

    /// A command has ended: schedule, statistics, and whom it concerns.
    pub(crate) fn command_done(
        &mut self,
        id: CommandId,
        started: Instant,
        finished: Instant,
        result: Result<(), DeviceError>,
    ) -> Ended {
        let pending = self.commands.remove(&id).expect("a command ends once");
        let state = &mut self.disks[usize::from(pending.disk.0)];
        let without_device = pending.predicted.is_zero() && pending.action.needs_no_disk();
        let (mut late_by, mut latency) = (Duration::ZERO, Duration::ZERO);
        let (mut news, mut took) = (None, None);
        if !without_device {
            let (time, good) = (finished.saturating_since(started), result.is_ok());
            let sched::Outcome { times, actual, .. } = state.schedule.finished(finished, id.0);
            state.learn(&pending.command, time, good);
            let done = Completion {
                command: pending.command,
                bound: pending.predicted + state.profile.latency(),
                // Where commands overlap, what it took since the one before.
                actual: time.min(actual),
                alone: time <= actual,
                good,
                now: finished,
            };
            state.account(&pending, time, &done);
            if good && pending.command == Command::Flush {
                state.flush_longest = state.flush_longest.max(done.actual);
            }
            let explained = state.seen.is_explained(&pending.command);
            took = (good && done.alone && !explained).then_some((time, done.bound));
            if state.seen.completed(&state.profile, &done) {
                let suspects = state.seen.suspects().filter_map(|suspect| recorded(&suspect));
                news = Some(suspects.collect());
            }
            // Asked at the end: a change of the contract may have moved them.
            late_by = finished.saturating_since(times.deadline.saturating_add(state.advance));
            latency = finished.saturating_since(times.release);
        }
        if !late_by.is_zero() {
            state.status.late_requests += 1;
            state.status.late_max = state.status.late_max.max(late_by);
        }
        if let Some(suspects) = news {
            self.moves.look_again();
            if self.store.suspect(pending.disk, suspects) {
                self.changed(finished);
            }
        }
        let promised = pending.class.task().is_some();
        Ended { disk: pending.disk, owner: pending.owner, result, late_by, latency, promised, took }
    }

    /// Makes [`Core::due_timer`] name `stream` at `at`; returns the timer, to
    /// be taken back with [`Core::clear_timer`].
    pub(crate) fn set_timer(&mut self, at: Instant, stream: StreamId) {
        self.timers.insert((at, stream));
        // Disk 0's poll runs the timers.
        self.disks[0].wake = true;
    }

    pub(crate) fn clear_timer(&mut self, at: Instant, stream: StreamId) {
        self.timers.remove(&(at, stream));
    }

    pub(crate) fn due_timer(&mut self, now: Instant) -> Option<StreamId> {
        let &(at, stream) = self.timers.first()?;
        if at > now {
            return None;
        }
        self.timers.remove(&(at, stream));
        Some(stream)
    }

    /// When something is due that is no command's business.
    pub(crate) fn next_timer(&self) -> Option<Instant> {
        let stream = self.timers.first().map(|&(at, _)| at);
        [stream, self.commits.due(), self.moves.due()].into_iter().flatten().min()
    }

    pub(crate) fn next_wake(&mut self) -> Option<DiskIndex> {
        let at = self.disks.iter().position(|disk| disk.wake)?;
        self.disks[at].wake = false;
        Some(DiskIndex(at as u16))
    }

    pub(crate) fn wake_timers(&mut self) {
        self.disks[0].wake = true;
    }

    /// Lets the log's contracts begin anew, as if nothing had been committed
    /// lately; only while there is no stream whom that could harm.
    pub(crate) fn renew_metadata(&mut self, now: Instant) {
        for disk in &mut self.disks {
            for id in &mut disk.metadata {
                let task = disk.schedule.tasks().get(*id).expect("the log's tasks stay");
                // A disk in trouble may not take it now: the old one stays.
                if let Ok(renewed) = disk.schedule.join(now, task) {
                    let left = disk.schedule.leave(*id);
                    assert!(left.is_empty(), "no commit is running");
                    *id = renewed;
                }
            }
        }
    }

    /// Why nothing can be written any more, if so.
    pub(crate) fn read_only(&self) -> Option<Error> {
        self.store
            .failed()
            .map(|(disk, error)| Error::ReadOnly { disk, error: DeviceError(error.0) })
    }
}

impl Disk {
    fn new(
        config: &Config,
        index: DiskIndex,
        profile: Profile,
        store: &Store,
    ) -> Result<Self, Error> {
        let capacity = store.disks()[index.as_usize()].capacity;
        let costs = Costs::new(config, &profile, capacity);
        let Costs { advance, piece, best_effort: reserve, .. } = costs;
        let mut options = sched::Options {
            admission: config.admission,
            reserve: costs.best_effort,
            depth: profile.depth(),
            ..sched::Options::default()
        };
        if matches!(profile.kind, disk::Kind::Linear(_)) {
            // Where the place does not matter, a change between streams and best effort
            // costs nothing: there is no reason to serve either in runs.
            options.burst = Duration::ZERO;
        }
        let mut schedule = Schedule::new(config.policy, options);
        let mut join = |task: Task| {
            let joined = schedule.join(Instant::EPOCH, task);
            joined.map_err(|refusal| Error::Refused(refused(index, &refusal)))
        };
        let [flush, write] = costs.metadata(config);
        let metadata = [join(flush)?, join(write)?];
        let status = DiskStatus {
            disk: index,
            capacity,
            free: Bytes::ZERO,
            utilisation_ppm: 0,
            slack: Duration::ZERO,
            waiting_real_time: 0,
            waiting_best_effort: 0,
            real_time: Traffic::default(),
            best_effort: Traffic::default(),
            overruns: 0,
            overrun_max: Duration::ZERO,
            predicted_total: Duration::ZERO,
            actual_total: Duration::ZERO,
            late_requests: 0,
            late_max: Duration::ZERO,
            errors: 0,
            observed: Observed::default(),
            moves: MoveStatus::default(),
            measured: None,
            profile_for_next_start: false,
        };
        let mut seen = Observations::new(&profile, capacity);
        seen.remember(store.suspects(index).iter().map(remembered));
        let (instant, head) = (VecDeque::new(), Head::anywhere());
        Ok(Self {
            profile,
            head,
            seen,
            schedule,
            instant,
            metadata,
            status,
            wake: false,
            advance,
            piece,
            reserve,
            flush_longest: Duration::ZERO,
        })
    }

    /// Learns from a command that has ended where the heads may be. What was
    /// written from the disk's own buffer in a flush, or tried in a failed command,
    /// may have moved them anywhere.
    fn learn(&mut self, command: &Command, time: Duration, good: bool) {
        match command {
            Command::Transfer(access) if good => self.head.completed(&self.profile, access, time),
            _ => self.head = Head::anywhere(),
        }
    }

    /// It has work that it may not know of.
    pub(crate) fn wake(&mut self) {
        self.wake = true;
    }

    fn account(&mut self, pending: &Pending, actual: Duration, done: &Completion) {
        let status = &mut self.status;
        let traffic = match pending.class {
            Class::RealTime(_) => &mut status.real_time,
            _ => &mut status.best_effort,
        };
        traffic.requests += 1;
        traffic.bytes += pending.len;
        status.errors += u64::from(!done.good);
        status.predicted_total = status.predicted_total.saturating_add(pending.predicted);
        status.actual_total = status.actual_total.saturating_add(actual);
        let overrun = done.actual.saturating_sub(done.bound);
        if !overrun.is_zero() {
            status.overruns += 1;
            status.overrun_max = status.overrun_max.max(overrun);
        }
    }
}

/// A suspect as the store keeps it.
fn recorded(suspect: &Suspect) -> Option<store::Suspect> {
    let count = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
    Some(store::Suspect {
        extent: u32::try_from(suspect.extent).ok()?,
        errors: count(suspect.errors),
        slow: count(suspect.slow),
        commands: count(suspect.commands),
    })
}

/// A suspect that the store has kept.
fn remembered(suspect: &store::Suspect) -> Suspect {
    let store::Suspect { extent, errors, slow, commands } = *suspect;
    let [extent, errors, slow, commands] = [extent, errors, slow, commands].map(u64::from);
    Suspect { extent, errors, slow, commands }
}

/// Requests in an order keep it, and so their class.
fn is_ordered(class: Class) -> bool {
    matches!(class, Class::BestEffort { ordered: true, .. } | Class::Server { ordered: true, .. })
}

fn as_command(action: &DiskAction) -> (Command, Bytes) {
    let Some((range, direction)) = action.transfer() else { return (Command::Flush, Bytes::ZERO) };
    let len = (range.end - range.start).round_up(limits::BLOCK_MIN);
    (Command::Transfer(Access { lba: Lba::containing(range.start), len, direction }), len)
}
