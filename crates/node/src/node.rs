//! The state machine itself: what comes in is told to those whom it concerns.

use crate::api::*;
use crate::best_effort::{Asked, BestEffort};
use crate::core::{Core, Ended};
use crate::door;
use crate::groups::group::Times;
use crate::limits;
use crate::streams::index::Streams;
use crate::streams::rounds::Rounds;
use crate::streams::stream::Stream;
use crate::volumes::kept::KeptOutServices;
use crate::volumes::permission::{self, Wanted};
use crate::volumes::rings;
use crate::volumes::services::Holder;
use crate::volumes::trust::Ages;
use crate::work::Owner;
use crate::work::{self, CommandEnded};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use store::{Store, VolumeId};
use units::{Bytes, Instant};

/// One pool as a state machine; see the crate's first paragraph.
///
/// Time may stand still between calls but never goes back.
#[derive(Clone, Debug)]
pub struct Node {
    pub(crate) core: Core,
    pub(crate) streams: Streams,
    pub(crate) best_effort: BestEffort,
    pub(crate) rounds: Rounds,
    pub(crate) kept_out: KeptOutServices,
    pub(crate) next_stream: u64,
    pub(crate) ages: Ages,
    shutting_down: Option<Option<Ticket>>,
    pub(crate) finished: Option<Finished>,
    /// What time it was at the epoch of the clock here, where the driver says so.
    pub(crate) wall_clock: Option<i64>,
}

impl Node {
    /// A node over a recovered store; `disks` in the order of the pool. The services that the
    /// volumes were given are in force at once, but for those that do not fit any more
    /// ([`Node::kept_out`]).
    ///
    /// # Errors
    /// [`Error::Refused`] where a disk is too slow even for the metadata log at
    /// this commit interval; [`Error::Invalid`] as [`Config::check`].
    ///
    /// # Panics
    /// Where `disks` are not as many as the store's, or the memory is below
    /// [`limits::MEMORY_MIN`].
    pub fn new(config: Config, disks: Vec<DiskSetup>, store: Store) -> Result<Self, Error> {
        assert_eq!(disks.len(), store.disks().len(), "a profile for every disk of the pool");
        config.check()?;
        let mut core = Core::new(config, disks, store)?;
        core.moves.look_again();
        let mut node = Self {
            core,
            streams: Streams::default(),
            best_effort: BestEffort::default(),
            rounds: Rounds::default(),
            kept_out: KeptOutServices::default(),
            next_stream: 1,
            ages: Ages::default(),
            shutting_down: None,
            finished: None,
            wall_clock: None,
        };
        node.admit_kept();
        node.look_for_old(Instant::EPOCH);
        Ok(node)
    }

    /// How it is set up now.
    pub fn config(&self) -> Config {
        self.core.config
    }

    /// Something happened at `now`.
    pub fn handle(&mut self, now: Instant, event: Event) {
        self.core.search = None;
        self.tell_time(now);
        match event {
            Event::Request { ticket, who, op, arrived } => {
                self.request(now, ticket, &who, op, arrived.min(now));
                self.look_for_slack_later(now);
            }
            Event::CommandDone { disk, id, started, finished, result } => {
                let queue = &mut self.core.disk(disk).queue;
                let ended = work::command_ended(queue, id, started, finished, result);
                return self.command_ended(now, ended);
            }
        }
        self.go_on_behind(now);
        self.settle_memory(now);
        self.look_for_moves(now);
        self.run_commits(now);
    }

    /// Memory of best effort comes back, as with [`Op::Release`], from whoever drives this node:
    /// nobody is answered.
    pub fn release(&mut self, now: Instant, span: Span) {
        self.core.search = None;
        self.tell_time(now);
        self.best_effort.release(&mut self.core, now, None, span);
        self.look_for_slack_later(now);
        self.go_on_behind(now);
        self.settle_memory(now);
        self.look_for_moves(now);
        self.run_commits(now);
    }

    /// A command has ended in its disk's queue.
    pub fn command_ended(&mut self, now: Instant, mut ended: CommandEnded) {
        self.core.search = None;
        self.tell_time(now);
        let disk = ended.disk;
        let others = ended.take_others();
        let ended = self.core.command_ended(ended);
        self.ended(now, ended);
        let mut latest = self.finished;
        for other in others {
            let ended = self.core.command_ended(other);
            self.ended(now, ended);
            let order = |finished: &Finished| (finished.late_by, finished.latency);
            latest = latest.into_iter().chain(self.finished).max_by_key(order);
        }
        self.finished = latest;
        self.measure_if_stale(now, disk);
        self.widen_flush(now, disk);
        self.follow_gap(now, disk);
        self.go_on_behind(now);
        self.settle_memory(now);
        self.look_for_moves(now);
        self.run_commits(now);
    }

    /// When [`Node::run_timers`] is to be called, if at any time.
    pub fn next_timer(&self) -> Option<Instant> {
        // Asked several times for each operation.
        let first = Instant::first(self.core.next_timer(), self.best_effort.due());
        let first = Instant::first(first, self.rounds.due());
        let first = Instant::first(first, self.kept_out.due());
        Instant::first(first, self.ages.due.filter(|_| !self.is_ending()))
    }

    /// The end of some operation, if any has ended.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.core.outputs.pop_front()
    }

    /// A part of the region of an open stream that is not needed any more: the driver may
    /// give its memory back, before it tells the node anything or asks a disk again. When
    /// a stream is closed nothing is said of its region: all of it is free.
    pub fn poll_freed(&mut self) -> Option<Span> {
        self.core.poll_freed()
    }

    /// How the request ended whose command this node was last told of, the latest one where it
    /// served several; none where that was under no contract.
    pub fn finished(&self) -> Option<Finished> {
        self.finished
    }

    fn look_for_slack_later(&mut self, now: Instant) {
        self.core.look_for_stuck_if_any(now);
        if self.best_effort.look_for_slack_later(now, !self.streams.is_empty()) {
            self.core.wake_timers();
        }
    }

    pub(crate) fn request(
        &mut self,
        now: Instant,
        ticket: Ticket,
        who: &Who,
        op: Op,
        arrived: Instant,
    ) {
        let closes = matches!(
            op,
            Op::Release { .. }
                | Op::StreamAdvance { .. }
                | Op::StreamWrite { .. }
                | Op::WindowMoved { .. }
                | Op::StreamSync { .. }
                | Op::StreamClose { .. }
                | Op::HandleClose { .. }
        );
        if self.shutting_down.is_some() && !closes {
            return self.core.answer(ticket, Err(Error::ShuttingDown));
        }
        if let Err(error) = self.permit(who, &op).and_then(|()| door::check(&op)) {
            return self.best_effort.refuse(&mut self.core, now, ticket, &op, error);
        }
        if let Err(error) = self.core.may_promise(&op) {
            return self.core.answer(ticket, Err(error));
        }
        let behind = self.behind_of(&op);
        if !behind.is_empty() {
            let what = (ticket, who.clone(), op, arrived);
            return self.best_effort.defer(&mut self.core, behind, what);
        }
        if let Some(block) = self.unclear_before(&op) {
            let what = (ticket, who.clone(), op, arrived);
            return self.best_effort.clear_before(&mut self.core, now, block, what);
        }
        match op {
            Op::VolumeCreate { .. }
            | Op::RingCreate { .. }
            | Op::RingKeep { .. }
            | Op::VolumeResize { .. }
            | Op::VolumeResizeWithin { .. }
            | Op::VolumeTruncate { .. }
            | Op::VolumeAccess { .. }
            | Op::VolumeRename { .. }
            | Op::VolumeExtend { .. }
            | Op::VolumeTimes { .. }
            | Op::VolumeCopied { .. }
            | Op::VolumeDelete { .. } => {
                let asked = (ticket, who.uid);
                self.change(now, asked, |node| node.change_volume(now, who, op));
            }
            Op::Staged(op) => {
                self.staged(now, who, ticket, *op);
            }
            Op::VolumeService { name, service } => {
                self.change(now, (ticket, who.uid), |node| {
                    let serve = |node: &mut Self| node.serve_and_keep(now, who, &name, service);
                    node.with_memory(now, serve).map(|()| Reply::Done)
                });
            }
            Op::HandleOpen { volume, service } => {
                let opened =
                    self.with_memory(now, |node| node.open_handle(now, who, &volume, service));
                self.core.answer(ticket, opened);
            }
            Op::HandleClose { handle } => {
                self.close_handle(now, handle);
                self.core.answer(ticket, Ok(Reply::Done));
            }
            Op::StreamOpen { volume, mode, contract, start } => {
                let opening = Opening { volume, mode, contract, start, early: false, miss: None };
                self.open(now, ticket, &opening, None);
            }
            Op::WindowOpen { volume, mode, contract, start, region } => {
                let opening = Opening { volume, mode, contract, start, early: false, miss: None };
                self.open(now, ticket, &opening, Some(region));
            }
            Op::Open { opening, region } => self.open(now, ticket, &opening, region),
            op @ (Op::WindowNext { .. }
            | Op::WindowMoved { .. }
            | Op::WindowWaits { .. }
            | Op::StreamSeek { .. }
            | Op::StreamBegin { .. }) => self.window_request(now, ticket, &op),
            Op::HostLatency { latency } => {
                self.resize_windows(now, latency);
                self.core.answer(ticket, Ok(Reply::Done));
            }
            Op::Delivery { takes } => {
                let set = self.set_delivery(now, takes);
                self.core.answer(ticket, set.map(|()| Reply::Done));
            }
            Op::StreamChange { stream, contract } => {
                let changed =
                    self.with_memory(now, |node| node.change_stream(now, stream, &contract));
                self.core.answer(ticket, changed);
                self.pump(now, stream);
            }
            Op::StreamRead { stream, len_max } => {
                self.with_stream(now, ticket, stream, |stream, core, has_writer| {
                    stream.read(core, now, ticket, len_max, has_writer);
                });
            }
            Op::StreamAdvance { stream, len } => {
                self.with_stream(now, ticket, stream, |stream, core, has_writer| {
                    let advanced = stream.advance(core, now, len, has_writer);
                    core.answer(ticket, advanced.map(|()| Reply::Done));
                });
            }
            Op::StreamRoom { stream, len_max } => {
                self.with_stream(now, ticket, stream, |stream, core, _| {
                    stream.room(core, now, ticket, len_max);
                });
            }
            Op::StreamWrite { stream, len } => {
                self.with_stream(now, ticket, stream, |stream, core, _| {
                    let written = stream.write(core, now, len);
                    core.answer(ticket, written.map(|()| Reply::Done));
                });
            }
            Op::StreamDurable { stream, beyond } => {
                self.with_stream(now, ticket, stream, |stream, core, _| {
                    let at_least = beyond + Bytes::new(1);
                    stream.when_durable(core, now, ticket, at_least, false);
                });
            }
            Op::StreamSync { stream } => {
                self.with_stream(now, ticket, stream, |stream, core, _| {
                    stream.when_durable(core, now, ticket, stream.position, true);
                });
            }
            Op::StreamClose { stream } => self.close(now, ticket, stream),
            Op::Write { volume, span, .. } if self.writer_of(&volume).is_some() => {
                let volume = self.core.store.find(&volume).map_or(volume, |it| it.name().into());
                // Zeros before this write could fall on what the stream records.
                let error = Error::VolumeBusy { name: volume, streams: 1 };
                self.best_effort.refuse_write(&mut self.core, now, ticket, span, error);
            }
            Op::Place { volume, offset, len } => {
                let placed = self.take_places(now, &volume, offset..offset.saturating_add(len));
                self.core.answer(ticket, placed.map(|()| Reply::Done));
            }
            Op::Release { span } => {
                self.best_effort.release(&mut self.core, now, Some(ticket), span);
            }
            op @ Op::Write { .. } => {
                let asked = Asked { ticket, uid: who.uid, handle: who.handle, arrived, op };
                self.best_effort.write(&mut self.core, now, asked);
            }
            op @ (Op::Read { .. } | Op::Room { .. }) => {
                let asked = Asked { ticket, uid: who.uid, handle: who.handle, arrived, op };
                self.best_effort.handle(&mut self.core, now, asked);
            }
            Op::Sync => self.best_effort.sync(&mut self.core, now, (ticket, who.uid), None),
            Op::SyncVolume { volume, told } => {
                self.sync_volume(now, (ticket, who.uid), &volume, told)
            }
            Op::ProfileSet { disk, profile } => {
                self.change(now, (ticket, who.uid), |node| {
                    node.set_profile(now, disk, &profile).map(|()| Reply::Done)
                });
            }
            Op::BusSet { disks, bus } => {
                self.change(now, (ticket, who.uid), |node| {
                    node.set_bus(now, &disks, bus.as_deref()).map(|()| Reply::Done)
                });
            }
            Op::PolicySet { policy, keep } => {
                let asked = (ticket, who.uid);
                self.change_where(now, asked, |node| {
                    let has_news = node.set_and_keep_policy(now, *policy, keep)?;
                    Ok((Reply::Done, has_news))
                });
            }
            Op::Reprofile { disk } => {
                let begun = self.reprofile(now, disk);
                self.core.answer(ticket, begun.map(|()| Reply::Done));
            }
            Op::Block { volume, mode, rate } => {
                let id = self.find(&volume);
                let block = id.map(|id| self.core.block_for(id, mode, rate));
                self.core.answer(ticket, block.map(|block| Reply::Block { block }));
            }
            Op::Plan => {
                let planner = Box::new(self.core.planner());
                self.core.answer(ticket, Ok(Reply::Planner(planner)));
            }
            Op::Shutdown => {
                if self.shutting_down.is_some() {
                    return self.core.answer(ticket, Err(Error::ShuttingDown));
                }
                self.shutting_down = Some(Some(ticket));
                self.refuse_undecided();
                self.core.abandon_moves(None);
                self.core.stop_measuring(now);
                self.best_effort.hand_back(&mut self.core, now);
                let open: Vec<StreamId> = self.streams.iter().map(|stream| stream.id).collect();
                for stream in open {
                    self.begin_close(now, stream);
                }
            }
        }
    }

    /// Refuses what the caller may not do, here, where it would be done next: nothing can
    /// come between.
    fn permit(&self, who: &Who, op: &Op) -> Result<(), Error> {
        match Wanted::by(op) {
            Wanted::Of(name, act) => {
                let volume = self.find(name)?;
                let whose = self.core.store.volume(volume).expect("just found").ownership();
                permission::check(who, name, whose, act)
            }
            Wanted::ReadOrWrite(name) => {
                let volume = self.find(name)?;
                let whose = self.core.store.volume(volume).expect("just found").ownership();
                let may = |act| permission::check(who, name, whose, act);
                may(Act::Read).or_else(|refused| may(Act::Write).map_err(|_| refused))
            }
            Wanted::ReadAndWrite(name) => {
                let volume = self.find(name)?;
                let whose = self.core.store.volume(volume).expect("just found").ownership();
                permission::check(who, name, whose, Act::Read)?;
                permission::check(who, name, whose, Act::Write)
            }
            Wanted::Pool(what) if !who.is_superuser => Err(Error::OnlyRoot { what }),
            Wanted::Pool(_) | Wanted::Nothing => Ok(()),
        }
    }

    pub(crate) fn create(
        &mut self,
        who: &Who,
        name: &str,
        (size, is_ring): (Bytes, bool),
        placement: &Placement,
        access: Access,
    ) -> Result<VolumeId, Error> {
        let whose = permission::settle(who, permission::of_new(who), access)?;
        self.check_place(name, whose.kind())?;
        let store = &mut self.core.store;
        let made = match is_ring {
            true if whose.kind() != 0 => return Err(rings::not_a_file()),
            true => store.create_ring(name, size, placement, whose)?,
            false => store.create_owned(name, size, placement, whose)?,
        };
        self.note_made(made);
        self.touch_above(name);
        Ok(made)
    }

    pub(crate) fn give_away(&mut self, who: &Who, name: &str, access: Access) -> Result<(), Error> {
        let volume = self.find(name)?;
        let before = self.core.store.volume(volume).expect("just found").ownership();
        let after = permission::settle(who, before, access)?;
        self.core.store.set_ownership(volume, after)?;
        self.core.store.note_changed(volume);
        Ok(())
    }

    /// Makes a change of the metadata, and answers it when it is durable.
    fn change(
        &mut self,
        now: Instant,
        asked: (Ticket, u32),
        make: impl FnOnce(&mut Self) -> Result<Reply, Error>,
    ) {
        self.change_where(now, asked, |node| Ok((make(node)?, true)));
    }

    /// The same, where the change itself says whether its answer waits for a commit. His place among
    /// those who wait is asked for before it: who is refused as busy has changed nothing.
    pub(crate) fn change_where(
        &mut self,
        now: Instant,
        (ticket, uid): (Ticket, u32),
        make: impl FnOnce(&mut Self) -> Result<(Reply, bool), Error>,
    ) {
        if let Err(error) = self.core.come_for_commit(uid) {
            return self.core.answer(ticket, Err(error));
        }
        match make(self) {
            Ok((reply, true)) => self.core.answer_at_commit(now, ticket, reply),
            ended => {
                self.core.leave_commit(uid);
                self.core.answer(ticket, ended.map(|(reply, _)| reply));
            }
        }
    }

    pub(crate) fn find(&self, name: &str) -> Result<VolumeId, Error> {
        let none = || Error::NoSuchVolume { name: String::from(name) };
        self.core.store.find(name).map(|volume| volume.id()).ok_or_else(none)
    }

    pub(crate) fn writer_of(&self, name: &str) -> Option<StreamId> {
        let volume = self.core.store.find(name)?.id();
        self.streams.writer_of(volume)
    }

    /// Serves a volume this way from now on, also what waits, for a disk or for memory.
    pub(crate) fn serve_volume(
        &mut self,
        now: Instant,
        volume: VolumeId,
        service: Service,
    ) -> Result<(), Error> {
        self.serve_holder(now, volume.into(), service)
    }

    /// The same of a volume or of a handle on it.
    pub(crate) fn serve_holder(
        &mut self,
        now: Instant,
        holder: Holder,
        service: Service,
    ) -> Result<(), Error> {
        let before = self.core.services.of(holder).0;
        self.core.serve(now, holder, service, &self.best_effort)?;
        if service != before {
            self.best_effort.begin_anew(now, holder);
        }
        self.best_effort.ask_anew(&mut self.core, now, holder);
        Ok(())
    }

    /// The contracts of a volume and of the handles on it are admitted again, as its map or
    /// the costs of its disks are now. Stops at the first that is not.
    pub(crate) fn serve_again(&mut self, now: Instant, volume: VolumeId) -> Result<(), Error> {
        for holder in self.core.under_contract(volume) {
            let (service, _) = self.core.services.of(holder);
            self.serve_holder(now, holder, service)?;
        }
        Ok(())
    }

    pub(crate) fn delete(
        &mut self,
        now: Instant,
        who: &Who,
        name: &str,
        (only, keep_directory): (Option<VolumeId>, bool),
    ) -> Result<(), Error> {
        let volume = self.find(name)?;
        if only.is_some_and(|only| only != volume) {
            return Err(Error::OtherVolume { name: name.into() });
        }
        self.check_removable(volume)?;
        self.check_idle(volume, name)?;
        self.core.abandon_moves(Some(volume));
        let path = String::from(self.core.store.volume(volume).expect("just found").name());
        self.core.store.delete(volume)?;
        self.left(who, &path, keep_directory);
        self.forget_removed(now, volume, name);
        Ok(())
    }

    /// Refuses where somebody uses a volume that is to be removed.
    pub(crate) fn check_idle(&self, volume: VolumeId, name: &str) -> Result<(), Error> {
        let streams = self.streams.count_on(volume);
        busy_where(streams > 0 || self.best_effort.touches(volume), name, streams)
    }

    /// Refuses where somebody is at work in a volume from `end` on, or behind.
    fn check_idle_from(&self, volume: VolumeId, name: &str, end: Bytes) -> Result<(), Error> {
        let size = self.core.store.volume(volume).expect("just found").size();
        let open = self.streams.on(volume).filter_map(|id| self.streams.get(id));
        let streams = open.filter(|stream| stream.reach(size) > end).count();
        busy_where(streams > 0 || self.best_effort.reach(volume) > end, name, streams)
    }

    /// What else the node has of a volume that was removed goes.
    pub(crate) fn forget_removed(&mut self, now: Instant, volume: VolumeId, name: &str) {
        self.core.writes.forget(volume);
        // Who waits to read it must not come to read another of the same name.
        self.best_effort.refuse_waiting_on(&mut self.core, volume, name);
        self.core.serve_nothing_on(volume);
        self.kept_out.forget(volume);
        self.try_host(now);
        self.given_back(now);
    }

    /// Grows or shrinks. While streams are open, what they were promised must
    /// still hold on the new map, or nothing changes. What is beyond the new end goes only where
    /// nobody is at work there; and what is recorded, where nobody uses the volume.
    pub(crate) fn resize(
        &mut self,
        now: Instant,
        name: &str,
        (size, may_cut): (Bytes, bool),
        rooms: &[ContractRoom],
    ) -> Result<(), Error> {
        let volume = self.find(name)?;
        let found = self.core.store.volume(volume).expect("just found");
        let (before, recorded) = (found.size(), found.length());
        // Errors have its name, also where it was asked for by its number.
        let called = String::from(found.name());
        let name = &*called;
        if found.is_ring() {
            return Err(store::StoreError::RingResized.into());
        }
        if size < recorded && !may_cut {
            return Err(Error::WouldCut { name: String::from(name), recorded, size });
        }
        let shrinks = size < before;
        let open: Vec<StreamId> = self.streams.on(volume).collect();
        if size < recorded {
            self.check_idle(volume, name)?;
        } else if shrinks {
            self.check_idle_from(volume, name, size)?;
        }
        let held = self.core.under_contract(volume).len();
        if shrinks && held > 0 {
            return Err(Error::UnderContract { name: String::from(name) });
        }
        if shrinks {
            self.core.abandon_moves(Some(volume));
        }
        let taken: Vec<_> = rooms.iter().map(|room| self.taken(volume, room)).collect();
        if shrinks {
            self.core.smaller = self.core.store.volume(volume).map(|found| found.cut_to(size));
        } else {
            self.core.store.resize(volume, size)?;
        }
        let mut promised = Vec::new();
        let mut fits = self.fit_into(volume, rooms, &taken);
        for id in open {
            if fits.is_err() {
                break;
            }
            match self.promise_anew(now, id) {
                Ok(promise) => promised.extend(promise),
                Err(error) => fits = Err(error),
            }
        }
        if fits.is_ok() {
            fits = self.serve_again(now, volume);
        }
        self.core.smaller = None;
        if shrinks && fits.is_ok() {
            fits = self.core.store.resize(volume, size).map_err(Error::from);
            self.core.writes.note_change(volume);
            if size < recorded && fits.is_ok() {
                self.core.writes.ends.hides(&self.core.store, volume);
            }
        }
        for promise in promised {
            match fits {
                Ok(()) => self.keep_from_now_on(now, promise),
                Err(_) => self.withdraw(promise),
            }
        }
        if fits.is_err() && !shrinks {
            self.core.store.resize(volume, before).expect("shrinking back takes no space");
            if held > 1 {
                // Some may have been admitted for the larger map, which takes no less.
                let _ = self.serve_again(now, volume);
            }
            // What it grew by is free again with the next commit: nobody else may ask for one.
            self.core.changed(now);
        }
        fits
    }

    /// Does what takes memory for a contract. Where there is none, what is read ahead and no disk has
    /// begun gives back what it has, and it is tried once more.
    pub(crate) fn with_memory<T>(
        &mut self,
        now: Instant,
        mut attempt: impl FnMut(&mut Self) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let done = attempt(self);
        let lacks = matches!(done, Err(Error::NoMemory { .. } | Error::NoServiceMemory { .. }));
        match lacks && self.best_effort.drop_ahead(&mut self.core, now) {
            true => attempt(self),
            false => done,
        }
    }

    /// What only windows in regions are asked, and seeks of both kinds.
    fn window_request(&mut self, now: Instant, ticket: Ticket, op: &Op) {
        let (&Op::WindowNext { stream }
        | &Op::WindowMoved { stream, .. }
        | &Op::WindowWaits { stream }
        | &Op::StreamSeek { stream, .. }
        | &Op::StreamBegin { stream }) = op
        else {
            unreachable!("one of these");
        };
        self.with_stream(now, ticket, stream, |stream, core, has_writer| {
            let done = match *op {
                Op::WindowNext { .. } => {
                    return stream.window_next(core, now, ticket, has_writer);
                }
                Op::WindowMoved { len, .. } => stream.window_moved(core, now, len),
                Op::StreamSeek { to, .. } if stream.mode.writes() => {
                    return stream.go(core, now, ticket, to);
                }
                Op::StreamSeek { to, .. } => stream.seek(core, now, to, has_writer),
                Op::StreamBegin { .. } => stream.begin_at_once(core, now, has_writer),
                _ => stream.window_waits(core, now),
            };
            core.answer(ticket, done);
            // What follows from it is told after it.
            stream.pump(core, now, has_writer);
        });
    }

    /// Calls `f` with an open stream; answers the ticket where there is none.
    fn with_stream(
        &mut self,
        now: Instant,
        ticket: Ticket,
        id: StreamId,
        f: impl FnOnce(&mut Stream, &mut Core, bool),
    ) {
        let has_writer = self.streams.has_writer(id);
        match self.streams.get_mut(id) {
            Some(stream) => {
                f(stream, &mut self.core, has_writer);
                self.after(now, id);
            }
            None => self.core.answer(ticket, Err(Error::NoSuchStream { stream: id })),
        }
    }

    pub(crate) fn pump(&mut self, now: Instant, id: StreamId) {
        let has_writer = self.streams.has_writer(id);
        let Some(stream) = self.streams.get_mut(id) else { return };
        stream.pump(&mut self.core, now, has_writer);
        self.after(now, id);
    }

    /// Readers of a volume that has grown, or whose writer has closed or gone elsewhere.
    pub(crate) fn pump_readers(&mut self, now: Instant, volume: VolumeId) {
        let writer = self.streams.writer_of(volume);
        let readers: Vec<StreamId> =
            self.streams.on(volume).filter(|&id| Some(id) != writer).collect();
        for id in readers {
            self.pump(now, id);
        }
    }

    fn close(&mut self, now: Instant, ticket: Ticket, id: StreamId) {
        match self.streams.get_mut(id) {
            Some(stream) if !stream.closing => {
                stream.close_ticket = Some(ticket);
                self.begin_close(now, id);
            }
            _ => self.core.answer(ticket, Err(Error::NoSuchStream { stream: id })),
        }
    }

    pub(crate) fn begin_close(&mut self, now: Instant, id: StreamId) {
        let Some(stream) = self.streams.get_mut(id) else { return };
        if stream.closing {
            return;
        }
        if stream.mode == Mode::Read {
            self.core.writes.kept.closed(stream.volume, id);
        }
        stream.begin_close(&mut self.core, now);
        self.after(now, id);
    }

    /// A closing stream goes when nothing of it is under way any more.
    pub(crate) fn after(&mut self, now: Instant, id: StreamId) {
        let Some(stream) = self.streams.get_mut(id) else { return };
        if core::mem::take(&mut stream.has_arrived) {
            let volume = stream.volume;
            self.pump_readers(now, volume);
        }
        let Some(stream) = self.streams.get_mut(id) else { return };
        let Some(end) = stream.ended(&self.core) else { return };
        let mut stream = self.streams.remove(id).expect("looked at above");
        self.core.writes.kept.closed(stream.volume, id);
        stream.stop_timer(&mut self.core);
        stream.leave(&mut self.core, now);
        stream.give_window(&mut self.core);
        if let Some(ticket) = stream.close_ticket {
            self.core.answer(ticket, end);
        }
        if stream.mode.writes() {
            // It may have filled more than it said.
            self.core.writes.ends.hides(&self.core.store, stream.volume);
            self.core.log_leaves(now, stream.volume);
        }
        self.try_wider_profiles(now);
        self.try_host(now);
        self.given_back(now);
        if stream.mode.writes() {
            self.pump_readers(now, stream.volume);
        }
    }

    /// A command has ended.
    pub(crate) fn ended(&mut self, now: Instant, ended: Ended) {
        let Ended { disk, owner, result, late_by, latency, due, promised, took, is_last, .. } =
            ended;
        let whose = || match owner {
            Owner::Block { stream, .. }
            | Owner::Early { stream, .. }
            | Owner::Keep { stream, .. } => Carrier::Stream(stream),
            Owner::Piece { operation, .. } => {
                Carrier::Operation(self.best_effort.ticket(operation))
            }
            Owner::Group { ref items } => Carrier::Stream(items[0].stream),
            Owner::Store { .. } | Owner::Move { .. } | Owner::Measure => Carrier::Pool,
        };
        let done = promised && is_last;
        self.finished = done.then(|| Finished { whose: whose(), late_by, latency });
        let Some(result) = result else { return };
        match owner {
            Owner::Block { stream: id, block, place, part } => {
                let has_writer = self.streams.has_writer(id);
                let core = &mut self.core;
                let stream = self.streams.get_mut(id).expect("a stream outlives its commands");
                stream.note_from_memory(core, ended.from_memory);
                if is_last {
                    stream.account.ended(late_by, latency);
                    stream.landed(now, block, latency, due.unwrap_or(now));
                }
                let result = result.map_err(|error| (disk, error));
                let part = (part, is_last);
                match stream.mode {
                    Mode::Read => {
                        stream.block_read(core, now, (block, place), part, result, has_writer);
                    }
                    Mode::Update if part.0.claim.is_none() => {
                        stream.block_loaded(core, now, block, part, result);
                    }
                    Mode::Write | Mode::Update => {
                        stream.block_written(core, now, block, part, result);
                    }
                }
                if !is_last {
                    return;
                }
                let (mode, volume) = (stream.mode, stream.volume);
                stream.leave_retired(core);
                self.after(now, id);
                if mode.writes() {
                    self.pump_readers(now, volume);
                }
            }
            Owner::Keep { stream: id, block, place, room } => {
                self.block_kept(now, id, (block, place, room));
            }
            Owner::Early { stream: id, block, place } => {
                let has_writer = self.streams.has_writer(id);
                let stream = self.streams.get_mut(id).expect("a stream outlives its commands");
                let (what, is_good) = ((block, place), result.is_ok());
                stream.early_ended(&mut self.core, now, what, is_good, has_writer);
                self.after(now, id);
            }
            Owner::Piece { operation, part } => {
                let times = due.filter(|_| promised).map(|due| (late_by, latency, due));
                if let Some(action) = ended.again {
                    let (core, what) = (&mut self.core, (operation, part));
                    if self.best_effort.again(core, now, disk, what, action, times) {
                        return;
                    }
                }
                let result = result.map_err(|error| (disk, error));
                self.best_effort.command_done(&mut self.core, now, operation, part, result, times);
                self.close_unopened(now);
            }
            Owner::Group { items } => {
                let times = Times { late_by, latency, due };
                self.group_ended(now, (disk, &items), result, times);
            }
            Owner::Store { io } => self.core.store_piece_done(now, io, result),
            Owner::Measure => self.measured(now, disk, took),
            Owner::Move { write } => self.move_piece_done(now, disk, write, result),
        }
    }

    /// Does what is due at some time and no command's business: what is due by now, or a
    /// part of it, where much is; [`Node::next_timer`] says so.
    pub fn run_timers(&mut self, now: Instant) {
        self.core.latest = now;
        for _ in 0..limits::ROUND_STEP {
            let Some(id) = self.core.due_timer(now) else { break };
            if let Some(stream) = self.streams.get_mut(id) {
                stream.timer = None;
                self.pump(now, id);
            }
        }
        self.write_groups(now);
        self.open_undecided(now);
        self.best_effort.refuse_overdue(&mut self.core, now);
        if self.best_effort.looks_for_slack(now) {
            self.give_up(now);
            self.core.look_for_stuck_if_any(now);
        }
        self.insist(now);
        self.try_kept_out(now);
        self.forget_gaps(now);
        self.go_on_behind(now);
        self.settle_memory(now);
        self.look_for_moves(now);
        self.give_up_old(now);
        self.run_commits(now);
    }

    /// Nothing is on its way that nobody asked for.
    fn is_at_rest(&self) -> bool {
        self.core.moves.idle() && self.core.measuring.idle()
    }

    /// It is being shut down.
    pub(crate) fn is_ending(&self) -> bool {
        self.shutting_down.is_some()
    }

    /// The node ends when nothing is open or under way any more.
    pub(crate) fn end_shutdown(&mut self, now: Instant) {
        let Some(ticket) = self.shutting_down else { return };
        if ticket.is_none()
            || !self.streams.is_empty()
            || !self.best_effort.idle()
            || !self.is_at_rest()
        {
            return;
        }
        match self.core.read_only() {
            Some(error) => {
                self.core.answer(ticket.expect("checked above"), Err(error));
                self.shutting_down = Some(None);
            }
            None if self.core.commits.idle() && self.core.store.close() => {
                let lost = self.best_effort.untold(&self.core);
                let ended = lost.map_or(Ok(Reply::Done), Err);
                self.core.answer(ticket.expect("checked above"), ended);
                self.shutting_down = Some(None);
            }
            None if self.core.commits.resting() => self.core.commit_soon(now),
            None => {}
        }
    }
}

/// Refuses where a volume is in use, by so many streams.
fn busy_where(is_used: bool, name: &str, streams: usize) -> Result<(), Error> {
    let streams = streams as u64;
    if is_used { Err(Error::VolumeBusy { name: String::from(name), streams }) } else { Ok(()) }
}
