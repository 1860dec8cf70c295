//! What all parts of a node share: the disks with their schedules, the store,
//! the arena, commands under way, answers and timers.
//!
//! Invariant: every command is in the queue of the disk that its number names, and ends
//! in exactly one call of [`Core::command_ended`].

use crate::admission::asked::{Chunking, ChunkingBefore};
use crate::admission::contract::refused;
use crate::admission::costs::Costs;
use crate::admission::rates::RateSearch;
use crate::api::*;
use crate::commits::state::Commits;
use crate::commits::tasks::LogTasks;
use crate::copy_on_write::CopyOnWrite;
use crate::groups::group::Groups;
use crate::jobs::measuring::Measuring;
use crate::jobs::moves::Moves;
use crate::limits;
use crate::memory::arena::Arena;
use crate::memory::reserve::Reserves;
use crate::streams::undecided::Undecided;
use crate::volumes::handles::Handles;
use crate::volumes::services::{Piece, Services, Turn};
use crate::volumes::writes::{Writes, overlap};
use crate::work::{self, CommandEnded, Owner, Part, Work, as_command};
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use core::ops::Range;
use disk::online::Suspect;
use queue::{Device, Handle, Queue, Rest};
use sched::{Class, Request, Schedule, Task, TaskId};
use store::{Store, Volume};
use units::{Bytes, Command, Duration, Instant};

/// What became of a command.
#[derive(Clone, Debug)]
pub(crate) struct Ended {
    pub disk: DiskIndex,
    pub owner: Owner,
    /// None: its owner hears at the end of what follows.
    pub result: Option<Result<(), DeviceError>>,
    /// Real-time requests: how late, and how long since the release.
    pub late_by: Duration,
    pub latency: Duration,
    /// By when they were promised.
    pub due: Option<Instant>,
    /// It was under a contract.
    pub promised: bool,
    /// It took so long, and this was its bound; only where it was alone on the device,
    /// not on a suspect extent, and done.
    pub took: Option<(Duration, Duration)>,
    /// No part of its request is left.
    pub is_last: bool,
    /// It failed together with others, and is to be tried by itself.
    pub again: Option<DiskAction>,
    /// So much was in memory already.
    pub from_memory: Bytes,
}

#[derive(Clone, Debug)]
pub(crate) struct Disk {
    pub index: DiskIndex,
    pub queue: Handle<Work>,
    /// Contracts of the metadata log.
    pub log: LogTasks,
    /// Best-effort transfers are cut to this.
    pub piece: Bytes,
    /// One read takes it so long that what best effort reads is cached.
    pub is_slow: bool,
    /// In which commands the requests of streams are served.
    pub chunking: Chunking,
    /// Another profile is stored, which is used when the pool is opened again.
    pub profile_for_next_start: bool,
    /// A longer gap that was measured, with what the contracts that are open do not bear.
    pub gap_refused: Option<(Duration, Error)>,
    /// Commands that failed for what is no fault of the medium.
    pub host_errors: u64,
    /// When its gaps are looked at next though no command ends.
    pub gaps_due: Option<Instant>,
}

/// A disk as it was when something was begun that may fail.
#[must_use = "what was begun is kept or undone"]
struct DiskBefore {
    queue: queue::Attempt,
    chunks: Option<queue::Chunks<Work>>,
    piece: Bytes,
    chunking: ChunkingBefore,
}

/// What is counted for deliveries.
#[derive(Clone, Debug, Default)]
pub(crate) struct Delivery {
    /// Deadlines are advanced by so much for it, which is a part of the host latency.
    pub counted: Duration,
    /// What was asked for and does not fit, and why.
    pub refused: Option<(Duration, Error)>,
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
    pub handles: Handles,
    pub moves: Moves,
    pub groups: Groups,
    /// Openings that cannot be decided now.
    pub undecided: Vec<Undecided>,
    /// A volume as it is when it was made smaller, while it is looked whether what was promised of it
    /// holds on that map: what is cut cannot be had back.
    pub smaller: Option<Volume>,
    pub measuring: Measuring,
    pub outputs: VecDeque<Output>,
    /// What the refusal that is answered next leaves to be searched.
    pub search: Option<Box<RateSearch>>,
    /// What deliveries take, which the host latency of `config` contains.
    pub delivery: Delivery,
    /// The latest time that the node was told.
    pub latest: Instant,
    /// When the gaps of a disk are looked at next though no command ends.
    pub gaps_due: Option<Instant>,
    /// All contracts are admitted anew at other costs: nobody asks for more than he has.
    pub recharges: bool,
    /// The commit interval with the profiles of the start.
    pub first_interval: Duration,
    /// How late the host may be, as far as windows go.
    pub late: Duration,
    /// Parts of regions that are not needed any more, and nobody was told: by where
    /// they begin, how long.
    freed: BTreeMap<Bytes, Bytes>,
    /// One of them that the driver gives back at this moment, with its number.
    releasing: Option<(u64, Span)>,
    /// How many there were.
    releases: u64,
    timers: BTreeSet<(Instant, StreamId)>,
    /// Since the drivers were last told.
    pub timers_changed: bool,
    /// When to look for requests that must be served although they have no slack.
    pub stuck_look: Option<Instant>,
    next_command: u64,
    /// Works that have ended, for their boxes: commands end and come in batches, and the allocator has
    /// no more than a few of a size at hand.
    spare: Vec<Work>,
}

impl Core {
    pub(crate) fn new(
        mut config: Config,
        setups: Vec<DiskSetup>,
        store: Store,
    ) -> Result<Self, Error> {
        for (disk, setup) in store.disks().iter().zip(&setups) {
            let costs = Costs::new(&config, &setup.profile, disk.capacity, setup.gap);
            let least = costs.commit_interval_under(config.policy, setup.profile.depth());
            config.commit_interval = config.commit_interval.max(least);
        }
        let mut disks = Vec::with_capacity(setups.len());
        for (index, setup) in setups.into_iter().enumerate() {
            disks.push(Disk::new(&config, DiskIndex(index as u16), setup, &store)?);
        }
        let writes = Writes::on(&store);
        Ok(Self {
            config,
            store: CopyOnWrite::new(store),
            disks,
            arena: Arena::new(config.memory),
            writes,
            commits: Commits::default(),
            services: Services::default(),
            reserves: Reserves::default(),
            handles: Handles::default(),
            moves: Moves::default(),
            groups: Groups::default(),
            undecided: Vec::new(),
            measuring: Measuring::default(),
            outputs: VecDeque::new(),
            search: None,
            delivery: Delivery::default(),
            latest: Instant::EPOCH,
            gaps_due: None,
            recharges: false,
            first_interval: config.commit_interval,
            late: config.host_latency,
            smaller: None,
            freed: BTreeMap::new(),
            releasing: None,
            releases: 0,
            timers: BTreeSet::new(),
            timers_changed: false,
            stuck_look: None,
            next_command: 0,
            spare: Vec::new(),
        })
    }

    /// Tries something with the schedules of these disks; where it fails they are as they
    /// were. What it asks of one disk alone may go without this, where each step there
    /// changes nothing when it fails. Meanwhile no command begins or ends.
    pub(crate) fn attempt<T, E>(
        &mut self,
        disks: impl IntoIterator<Item = DiskIndex>,
        steps: impl FnOnce(&mut Self) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut begin = |index: DiskIndex| (index, self.disk(index).attempt());
        let begun: Vec<(DiskIndex, DiskBefore)> = disks.into_iter().map(&mut begin).collect();
        let result = steps(self);
        for (disk, before) in begun.into_iter().rev() {
            match result {
                Ok(_) => self.disk(disk).keep(before),
                Err(_) => self.disk(disk).undo(before),
            }
        }
        result
    }

    /// Whether what contracts say is promised: they are admitted, by an analysis that the
    /// policy keeps.
    pub(crate) fn promises(&self) -> bool {
        self.config.admission && self.config.policy.keeps_contracts()
    }

    /// Refuses what asks for a promise, or whether one could be given, where contracts are
    /// admitted and the policy keeps none.
    pub(crate) fn may_promise(&self, op: &Op) -> Result<(), Error> {
        let asks = match op {
            Op::StreamOpen { .. }
            | Op::WindowOpen { .. }
            | Op::Open { .. }
            | Op::StreamChange { .. }
            | Op::HandleOpen { .. }
            | Op::Plan => true,
            Op::VolumeService { service, .. } => !matches!(service, Service::BestEffort(_)),
            _ => false,
        };
        if asks && self.config.admission && !self.promises() {
            return Err(Error::KeepsNothing { policy: self.config.policy.into() });
        }
        Ok(())
    }

    pub(crate) fn disk(&mut self, disk: DiskIndex) -> &mut Disk {
        &mut self.disks[usize::from(disk.0)]
    }

    /// A refusal names the bus that is counted, as its disk is described now.
    pub(crate) fn name_bus(&self, error: &mut Error) {
        if let Some(refusal) = error.refusal_mut() {
            let profile = self.disks.get(refusal.disk.as_usize()).map(|disk| disk.queue.profile());
            refusal.bus = profile.and_then(|profile| profile.bus.clone()).map(Box::new);
        }
    }

    pub(crate) fn answer(&mut self, ticket: Ticket, mut result: Result<Reply, Error>) {
        if let Err(error) = &mut result
            && !matches!(error, Error::ProfileRefused { .. })
        {
            self.name_bus(error);
        }
        let is_refused = matches!(result, Err(Error::Refused(_)));
        let search = self.search.take().filter(|_| is_refused);
        self.outputs.push_back(Output { ticket, result, search, promise: None });
    }

    /// The same of an answer under contract.
    pub(crate) fn answer_promised(
        &mut self,
        ticket: Ticket,
        result: Result<Reply, Error>,
        promise: Option<Promise>,
    ) {
        self.answer(ticket, result);
        self.outputs.back_mut().expect("just answered").promise = promise;
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
        self.releasing =
            self.releasing.filter(|(_, span)| Region::of(span).map(|of| of.0) != Some(region));
    }

    pub(crate) fn has_freed(&self) -> bool {
        !self.freed.is_empty()
    }

    /// As [`Node::release_next`](crate::Node::release_next).
    pub(crate) fn release_next(&mut self) -> Option<(u64, Span)> {
        if self.releasing.is_some() {
            return None;
        }
        let span = self.poll_freed()?;
        self.releases += 1;
        self.releasing = Some((self.releases, span));
        self.releasing
    }

    /// As [`Node::released`](crate::Node::released).
    pub(crate) fn released(&mut self, number: u64) {
        self.releasing = self.releasing.filter(|&(other, _)| other != number);
    }

    /// What is being given back of this region, from where on in it.
    pub(crate) fn releasing_in(&self, region: Region) -> Option<Bytes> {
        let (other, place) = Region::of(&self.releasing?.1)?;
        (other == region).then_some(place)
    }

    pub(crate) fn poll_freed(&mut self) -> Option<Span> {
        self.freed.pop_first().map(|(offset, len)| Span { offset, len })
    }

    fn queue_of(&self, id: CommandId) -> &Queue<Work> {
        &self.disks[id.disk().as_usize()].queue
    }

    /// The queue that a command was put into.
    pub(crate) fn queue_of_mut(&mut self, id: CommandId) -> &mut Queue<Work> {
        &mut self.disks[id.disk().as_usize()].queue
    }

    /// Puts an action into its disk's queue.
    pub(crate) fn submit(
        &mut self,
        now: Instant,
        disk: DiskIndex,
        class: Class,
        action: DiskAction,
        owner: Owner,
    ) -> CommandId {
        let work = match self.spare.pop() {
            Some(spare) => spare.anew(owner, action),
            None => Work::new(owner, action),
        };
        self.submit_work(now, disk, class, work)
    }

    /// The same of work that says how it is to be done.
    pub(crate) fn submit_work(
        &mut self,
        now: Instant,
        disk: DiskIndex,
        class: Class,
        work: Work,
    ) -> CommandId {
        let id = CommandId::new(disk, self.next_command);
        self.next_command += 1;
        let queue = self.queue_of_mut(id);
        if work.action.needs_no_disk() {
            // Of best effort what needs no disk is under no contract.
            let asked = matches!(work.owner, Owner::Block { .. }).then_some(now);
            queue.submit_instant(asked, id.0, class, work);
        } else {
            let command = as_command(&work.action);
            queue.submit(now, id.0, Request { class, command }, work);
        }
        id
    }

    /// A copy into a stream's window in place of a read: it counts for the contract as if its disk
    /// had been asked at `asked`.
    pub(crate) fn submit_copy(
        &mut self,
        asked: Instant,
        disk: DiskIndex,
        class: Class,
        copy: DiskAction,
        owner: Owner,
    ) -> CommandId {
        let id = CommandId::new(disk, self.next_command);
        self.next_command += 1;
        let work = Work::new(owner, copy);
        self.queue_of_mut(id).submit_instant(Some(asked), id.0, class, work);
        id
    }

    /// As [`Core::submit`], of a request in several parts, one at least: one command after the
    /// other. Those that need no disk come last.
    pub(crate) fn submit_parts(
        &mut self,
        now: Instant,
        disk: DiskIndex,
        class: Class,
        parts: Parts,
    ) -> CommandId {
        let id = CommandId::new(disk, self.next_command);
        self.next_command += 1;
        let (command, work, rest) = in_order(parts);
        let queue = self.queue_of_mut(id);
        match command {
            None => {
                let asked = matches!(work.owner, Owner::Block { .. }).then_some(now);
                queue.submit_instant_in_parts(asked, id.0, class, work, rest);
            }
            Some(command) => {
                queue.submit_in_parts(now, id.0, Request { class, command }, work, rest);
            }
        }
        id
    }

    /// As [`Core::submit_parts`], of a request under contract that has waited for something: where
    /// its deadline would be later than is promised from its turn on, it is brought forward
    /// as far as nobody else is late for it. That the host is late to see what was asked for is counted
    /// in each contract ([`Seen::asked`](crate::admission::contract::Seen::asked)).
    pub(crate) fn submit_in_turn(
        &mut self,
        now: Instant,
        disk: DiskIndex,
        (task, turn): (TaskId, Turn),
        parts: Parts,
    ) -> CommandId {
        // Other policies do not look at the exact slack before they let others go first.
        let needs_disk = parts.iter().any(|(action, _)| !action.needs_no_disk());
        let exact = self.config.policy.is(Policy::SLACK) && needs_disk;
        let late = self.heard_late();
        let queue = &mut self.disk(disk).queue;
        let (advance, comes) = (queue.advance(), queue.schedule().next_release(task).max(now));
        let is_behind = exact && comes > turn.from.saturating_add(late);
        if is_behind && !queue.schedule().has_early(task) {
            queue.renew(now, task, turn.from);
        }
        let id = self.submit_parts(now, disk, Class::RealTime(task), parts);
        if is_behind {
            let by = turn.due.saturating_sub(advance);
            self.queue_of_mut(id).advance_deadline_to(now, id.0, by);
        }
        id
    }

    /// How late the host may be to see that something has come: without what it takes to carry an answer.
    pub(crate) fn heard_late(&self) -> Duration {
        self.config.host_latency.saturating_sub(self.delivery.counted)
    }

    /// What waits and is wanted, with the priority that is given for it, in the order in
    /// which it came.
    pub(crate) fn waiting(
        &self,
        wanted: impl Fn(&Owner) -> Option<Option<Priority>>,
    ) -> Vec<Piece> {
        let mut pieces = Vec::new();
        for disk in &self.disks {
            for (key, work, command) in disk.queue.commands() {
                let Some(stated) = wanted(&work.owner) else { continue };
                let is_free = disk.queue.class_of(key).is_some_and(|class| !is_ordered(class));
                let access = command.and_then(|command| command.access().copied());
                let Some(access) = access.filter(|_| is_free) else { continue };
                pieces.push(Piece {
                    id: CommandId(key),
                    disk: disk.index,
                    at: access.lba,
                    len: access.len,
                    direction: access.direction,
                    stated,
                });
            }
        }
        pieces.sort_by_key(|piece| piece.id);
        pieces
    }

    /// All commands of best effort, whether a disk has begun with them or not, in the order
    /// in which they came.
    pub(crate) fn pieces(&self) -> Vec<(CommandId, u64, Part)> {
        let all = self.disks.iter().flat_map(|disk| disk.queue.commands());
        let piece = |(key, work, _): (u64, &Work, Option<Command>)| match work.owner {
            Owner::Piece { operation, part } => Some((CommandId(key), operation, part)),
            _ => None,
        };
        let mut pieces: Vec<_> = all.filter_map(piece).collect();
        pieces.sort_by_key(|(id, ..)| *id);
        pieces
    }

    /// A command that has not ended transfers some of this.
    pub(crate) fn transfers_in(&self, disk: DiskIndex, place: Range<Bytes>) -> bool {
        let queue = &self.disks[disk.as_usize()].queue;
        let mut works = queue.commands().flat_map(|(key, ..)| queue.works(key));
        works.any(|work| work.action.transfer().is_some_and(|(range, _)| overlap(&range, &place)))
    }

    /// No command that has come is newer.
    pub(crate) fn last_command(&self) -> CommandId {
        CommandId::new(DiskIndex(u16::MAX), self.next_command.saturating_sub(1))
    }

    /// Takes a command back that has not been started. Says whether it could.
    pub(crate) fn cancel(&mut self, id: CommandId) -> bool {
        self.without(id, |queue| queue.cancel(id.0))
    }

    /// Takes a command out of its queue, where that can be: what it would have copied is not
    /// copied.
    fn without(&mut self, id: CommandId, take: impl FnOnce(&mut Queue<Work>) -> bool) -> bool {
        let kept: Vec<Bytes> = self.queue_of(id).works(id.0).filter_map(Work::kept).collect();
        let is_out = take(self.queue_of_mut(id));
        if is_out {
            kept.into_iter().for_each(|at| self.writes.kept.copied(&mut self.arena, at));
        }
        is_out
    }

    /// The class that a command waits in for its disk.
    pub(crate) fn waits_as(&self, id: CommandId) -> Option<Class> {
        self.queue_of(id).class_of(id.0)
    }

    /// Whether a command waits as best effort does.
    pub(crate) fn waits_in_slack(&self, id: CommandId) -> bool {
        matches!(self.waits_as(id), Some(Class::BestEffort { .. }))
    }

    /// Whether a command has not ended.
    pub(crate) fn is_known(&self, id: CommandId) -> bool {
        self.queue_of(id).works(id.0).next().is_some()
    }

    /// Whether a command has not been started.
    pub(crate) fn waits(&self, id: CommandId) -> bool {
        self.queue_of(id).waits(id.0)
    }

    /// Lets a command that waits do something else of the same class and on the same
    /// disk, in the time that it had. Says whether it could.
    pub(crate) fn redirect(
        &mut self,
        now: Instant,
        id: CommandId,
        class: Class,
        parts: Parts,
    ) -> bool {
        let (command, work, rest) = in_order(parts);
        let Some(command) = command else { return false };
        let request = Request { class, command };
        self.queue_of_mut(id).redirect(now, id.0, request, || (work, rest))
    }

    /// Lets a command that waits do so in another class.
    pub(crate) fn upgrade(&mut self, now: Instant, id: CommandId, class: Class) {
        self.queue_of_mut(id).upgrade(now, id.0, class);
    }

    /// What a disk has of best effort is needed by then.
    pub(crate) fn promise_with_disk(&mut self, id: CommandId, by: Instant) {
        self.queue_of_mut(id).promise_with_disk(id.0, by);
    }

    /// As [`Core::cancel`]; its release is the stream's again where it was the last.
    pub(crate) fn take_back(&mut self, id: CommandId) -> bool {
        self.without(id, |queue| queue.take_back(id.0))
    }

    /// Whether a command that waits has been released.
    pub(crate) fn is_released(&self, id: CommandId, now: Instant) -> bool {
        self.queue_of(id).is_released(id.0, now)
    }

    /// Lets a task release its next request at `from`, or as soon after as may be.
    pub(crate) fn renew(
        &mut self,
        now: Instant,
        joined: &crate::admission::contract::Joined,
        from: Instant,
    ) {
        self.disk(joined.disk).queue.renew(now, joined.id, from);
    }

    /// Promises a command that waits for as soon as nobody else is late for it, behind `others`
    /// that go before it in the slack.
    pub(crate) fn advance_deadline(&mut self, now: Instant, id: CommandId, others: Duration) {
        self.queue_of_mut(id).advance_deadline(now, id.0, others);
    }

    /// By when a command under way is done, as the contract's deadlines go; none where it needs no
    /// disk.
    pub(crate) fn due(&self, id: CommandId) -> Option<Instant> {
        self.queue_of(id).due(id.0)
    }

    /// By when what a command brings is there: what needs no disk by when all that is to be copied
    /// is, and the host has seen it.
    pub(crate) fn there_by(&self, id: CommandId, now: Instant) -> Instant {
        let copied = || self.writes.kept.copied_by(now, Bytes::ZERO).saturating_add(self.late);
        self.due(id).unwrap_or_else(copied)
    }

    /// Which bytes of its volume the first command of a block's request transfers, as long as that
    /// is not done.
    pub(crate) fn transfers(&self, id: CommandId) -> Option<&Range<Bytes>> {
        match &self.queue_of(id).works(id.0).next()?.owner {
            Owner::Block { part, .. } => Some(&part.range),
            _ => None,
        }
    }

    /// By how much the deadlines of a disk's requests are advanced.
    pub(crate) fn advance(&self, disk: DiskIndex) -> Duration {
        self.disks[disk.as_usize()].queue.advance()
    }

    /// When a task may release its next request.
    pub(crate) fn next_release(&self, joined: &crate::admission::contract::Joined) -> Instant {
        self.disks[joined.disk.as_usize()].queue.schedule().next_release(joined.id)
    }

    /// A command has ended in the queue of its disk: whom it concerns.
    pub(crate) fn command_ended(&mut self, ended: CommandEnded) -> Ended {
        let again = ended.again();
        let CommandEnded { disk, finished, result, of_queue, .. } = ended;
        let queue::Ended { mut work, late_by, latency, due, promised, took, .. } = of_queue;
        let queue::Ended { suspects_changed, is_last, .. } = of_queue;
        if suspects_changed {
            let seen = self.disks[disk.as_usize()].queue.seen();
            let suspects = seen.suspects().filter_map(|suspect| recorded(&suspect)).collect();
            self.moves.look_again();
            if self.store.suspect(disk, suspects) {
                self.changed(finished);
            }
        }
        self.disks[disk.as_usize()].host_errors += u64::from(work.is_of_host);
        let mut from_memory = Bytes::ZERO;
        if let Some(at) = work.kept() {
            match (&work.owner, &work.action) {
                (Owner::Keep { .. }, _) => {} // the stream says whether it stays
                (Owner::Block { .. }, DiskAction::Copy { from, .. }) => {
                    from_memory = from.len;
                    self.writes.kept.copied(&mut self.arena, at);
                }
                _ => self.writes.kept.copied(&mut self.arena, at),
            }
        }
        let owner = work.take_owner();
        if self.spare.len() < limits::SPARE_MAX {
            self.spare.push(work);
        }
        Ended {
            disk,
            owner,
            result,
            late_by,
            latency,
            due,
            promised,
            took,
            is_last,
            from_memory,
            again,
        }
    }

    /// Makes [`Core::due_timer`] name `stream` at `at`; returns the timer, to
    /// be taken back with [`Core::clear_timer`].
    pub(crate) fn set_timer(&mut self, at: Instant, stream: StreamId) {
        self.timers.insert((at, stream));
        self.wake_timers();
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
        let first = Instant::first(stream, self.commits.due());
        let first = Instant::first(first, self.groups.due());
        let opens = self.undecided.iter().map(|one| one.again).min();
        let first = Instant::first(first, opens);
        let first = Instant::first(first, self.stuck_look);
        Instant::first(first, Instant::first(self.moves.due(), self.gaps_due))
    }

    pub(crate) fn next_wake(&mut self) -> Option<DiskIndex> {
        let has_news = |disk: &mut Disk| disk.queue.take_news().then_some(disk.index);
        self.disks.iter_mut().find_map(has_news)
    }

    /// [`Core::next_timer`] may be sooner than it was.
    pub(crate) fn wake_timers(&mut self) {
        self.timers_changed = true;
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
        DiskSetup { profile, gap }: DiskSetup,
        store: &Store,
    ) -> Result<Self, Error> {
        let capacity = store.disks()[index.as_usize()].capacity;
        let costs = Costs::new(config, &profile, capacity, gap);
        let Costs { advance, piece, best_effort: reserve, .. } = costs;
        let mut options = sched::Options {
            admission: config.admission,
            by: config.policy.admission,
            reserve: costs.best_effort,
            gap,
            depth: profile.depth(),
            any_order: profile.queue(),
            ..sched::Options::default()
        };
        if matches!(profile.kind, disk::Kind::Linear(_)) {
            // Where the place does not matter, a change between streams and best effort
            // costs nothing: there is no reason to serve either in runs, nor the nearest first.
            (options.burst, options.place_matters) = (Duration::ZERO, false);
        }
        let mut schedule = Schedule::new(config.policy, options);
        let mut join = |task: Task| {
            let joined = schedule.join(Instant::EPOCH, task);
            joined.map_err(|refusal| Error::Refused(refused(index, &refusal)))
        };
        let [flush, write] = costs.metadata(config);
        let log = LogTasks::new(join(flush)?, join(write)?);
        let patience = reserve;
        let device = Device { profile, capacity, advance, patience, usage: queue::Use::Alone };
        let mut queue = Queue::new(device, schedule, store.suspects(index).iter().map(remembered));
        queue.set_merging(Some(work::merging(piece)));
        queue.set_beside(work::may_go_beside);
        queue.set_blames(work::is_to_blame);
        let queue = Handle::new(queue);
        let chunking = Chunking::default();
        Ok(Self {
            index,
            queue,
            log,
            piece,
            is_slow: costs.is_slow,
            chunking,
            profile_for_next_start: false,
            gap_refused: None,
            host_errors: 0,
            gaps_due: None,
        })
    }

    /// Something is tried from here on: [`Disk::keep`] or [`Disk::undo`] ends it.
    fn attempt(&mut self) -> DiskBefore {
        DiskBefore {
            queue: self.queue.attempt(),
            chunks: self.queue.chunks(),
            piece: self.piece,
            chunking: self.chunking.attempt(),
        }
    }

    /// What was tried stays.
    fn keep(&mut self, before: DiskBefore) {
        self.queue.keep(before.queue);
        self.chunking.keep(before.chunking);
    }

    /// Contracts, and in which commands they are served, are as they were.
    fn undo(&mut self, before: DiskBefore) {
        self.queue.undo(before.queue);
        self.queue.set_chunks(before.chunks);
        self.set_piece(before.piece);
        self.chunking.undo(before.chunking);
    }

    /// Best effort is cut into such pieces from now on.
    pub(crate) fn set_piece(&mut self, piece: Bytes) {
        self.piece = piece;
        self.queue.set_merging(Some(work::merging(piece)));
    }

    /// It has work that it may not know of.
    pub(crate) fn wake(&mut self) {
        self.queue.look_again();
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

/// What the parts of one request do, and for whom, by where they lie.
pub(crate) type Parts = Vec<(DiskAction, Owner)>;

/// Those that need the disk first: the command and the work of the first part, and the rest.
fn in_order(parts: Parts) -> (Option<Command>, Work, Rest<Work>) {
    let (instant, mut all): (Parts, Parts) =
        parts.into_iter().partition(|(action, _)| action.needs_no_disk());
    all.extend(instant);
    let part = |(action, owner): (DiskAction, Owner)| {
        let command = (!action.needs_no_disk()).then(|| as_command(&action));
        (command, Work::new(owner, action))
    };
    let mut all = all.into_iter().map(part);
    let (command, work) = all.next().expect("a request has a part");
    (command, work, all.collect())
}
