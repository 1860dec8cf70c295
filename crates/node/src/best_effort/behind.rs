//! Writes that are answered before they are on their disk: *write-behind*.
//!
//! A write that asks for it ([`WriteRange::behind`]) is answered when its blocks are claimed, or as soon
//! afterwards as there is room, and goes on as it would have gone. What must not see its volume without the
//! bytes waits: a best-effort read for those pieces that it overlaps, behind the end of the volume for all of
//! the write; whoever opens, serves, cuts, renames or
//! removes the volume until none of its writes is behind; and [`Op::SyncVolume`] and [`Op::Sync`] for those
//! that were answered before them, which are served from then on as what somebody waits for.
//!
//! How much is behind has a bound, in writes, in runs of neighbours and in bytes, so that nobody waits long for
//! it. A user has at the most what all
//! together leave free: one alone half of the bound, two a third each (the dynamic threshold of Choudhury and
//! Hahne, "Dynamic queue length thresholds for shared-memory packet switches", 1998, with a factor of 1).
//!
//! Invariants: what is answered ahead is of normal priority and waits for no other write; its volume has no
//! stream, no contract, and nobody who waits for it. What was answered is written, also while the node ends,
//! and waits where the contracts leave no slack. A failure is counted, and told to everybody who syncs the
//! volume and was not told of it.

use super::pieces::read_piece;
use super::{BestEffort, Operation, Piece};
use crate::api::*;
use crate::core::Core;
use crate::limits;
use crate::memory::line::Rank;
use crate::volumes::services::Services;
use crate::volumes::writes::{Claim, Extent, overlap};
use crate::waiters::Waiters;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;
use store::{EXTENT, VolumeId};
use units::{Bytes, Instant};

#[derive(Clone, Debug, Default)]
pub(super) struct Behind {
    /// Operations that are answered and have not ended.
    writes: BTreeMap<u64, Write>,
    /// Operations that are to be answered when there is room, by their user, the oldest first.
    later: BTreeSet<(u32, u64)>,
    /// Whose turn it is to have room.
    turn: u32,
    volumes: BTreeMap<VolumeId, OnVolume>,
    users: BTreeMap<u32, Amount>,
    all: Amount,
    /// Pieces of reads, by the claim that each waits for.
    reads: BTreeMap<Claim, Vec<Reading>>,
    /// Those who wait for all volumes, in the order in which they came.
    syncs_of_all: VecDeque<Syncing>,
    /// Those who wait in all.
    syncs: Waiters,
    deferred: Waiters,
    /// What these waited for has ended.
    synced: Vec<Syncing>,
    free: VecDeque<Deferred>,
    /// For how many that were deferred, and not asked again, nothing of a volume may be behind.
    wanted: BTreeMap<VolumeId, u64>,
    failures: BTreeMap<VolumeId, Failures>,
}

#[derive(Clone, Copy, Debug)]
struct Write {
    volume: VolumeId,
    uid: u32,
    range: (Bytes, Bytes),
    len: Bytes,
    /// It does not go on where another one that was behind ended.
    begins_run: bool,
}

/// A volume of which a write is behind.
#[derive(Clone, Debug, Default)]
struct OnVolume {
    /// The later one has the higher number.
    writes: BTreeSet<u64>,
    /// Where they end.
    ends: BTreeSet<(Bytes, u64)>,
    /// In the order in which they came.
    syncs: VecDeque<Syncing>,
    deferred: VecDeque<Deferred>,
    /// The volume's recorded bytes reach so far at least when these have ended.
    recorded: Bytes,
}

#[derive(Clone, Copy, Debug, Default)]
struct Amount {
    operations: u64,
    runs: u64,
    bytes: Bytes,
}

/// A piece of a read that waits for a write.
#[derive(Clone, Debug)]
struct Reading {
    operation: u64,
    extent: Extent,
    range: Range<Bytes>,
    span: Span,
    /// It waits for claims before this one.
    came: Claim,
    /// What it waits for does so as one that somebody waits for.
    lifts: bool,
}

/// Somebody waits until what was answered before him is on its disk.
#[derive(Clone, Copy, Debug)]
struct Syncing {
    ticket: Ticket,
    uid: u32,
    since: Instant,
    /// Of this volume; none: of all.
    of: Option<Flushed>,
    /// He waits for operations before this one.
    came: u64,
}

/// Whose writes are synced, and what is told of those that have failed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flushed {
    pub volume: VolumeId,
    /// Of so many he was told.
    pub told: u64,
}

/// A request that waits until none of its volumes' writes is behind, or until zeros lie behind the
/// end of one.
#[derive(Clone, Debug)]
pub(crate) struct Deferred {
    /// All volumes that must be at rest.
    pub(super) volumes: Vec<VolumeId>,
    pub ticket: Ticket,
    pub who: Who,
    pub op: Op,
    pub arrived: Instant,
}

/// Writes of a volume that were answered and have failed.
#[derive(Clone, Copy, Debug)]
struct Failures {
    count: u64,
    /// Those that nobody was told of.
    untold: u64,
    disk: DiskIndex,
    error: DeviceError,
}

impl Failures {
    fn error(&self, core: &Core, volume: VolumeId) -> Error {
        let Self { count: failures, disk, error, .. } = *self;
        let name = core.store.volume(volume).map_or("", |volume| volume.name());
        Error::WriteBehind { name: String::from(name), failures, disk, error }
    }
}

impl Amount {
    fn add(&mut self, write: &Write) {
        self.operations += 1;
        self.runs += u64::from(write.begins_run);
        self.bytes += write.len;
    }

    fn remove(&mut self, write: &Write) {
        self.operations -= 1;
        self.runs -= u64::from(write.begins_run);
        self.bytes -= write.len;
    }
}

impl Behind {
    pub(super) fn has(&self, operation: u64) -> bool {
        !self.writes.is_empty() && self.writes.contains_key(&operation)
    }

    pub(super) fn is_on(&self, volume: VolumeId) -> bool {
        !self.volumes.is_empty() && self.volumes.contains_key(&volume)
    }

    /// The volume's recorded bytes reach so far at least when what is behind has ended.
    pub(super) fn recorded(&self, volume: VolumeId) -> Bytes {
        self.volumes.get(&volume).map_or(Bytes::ZERO, |on| on.recorded)
    }

    fn add(&mut self, operation: u64, write: Write, recorded: Bytes) {
        self.writes.insert(operation, write);
        let on = self.volumes.entry(write.volume).or_default();
        on.writes.insert(operation);
        on.ends.insert((write.range.1, operation));
        on.recorded = on.recorded.max(recorded);
        self.users.entry(write.uid).or_default().add(&write);
        self.all.add(&write);
    }

    /// An operation of this user has ended: false where it was not answered before.
    pub(super) fn remove(&mut self, operation: u64, uid: u32) -> bool {
        if self.writes.is_empty() && self.later.is_empty() {
            return false;
        }
        self.later.remove(&(uid, operation));
        let Some(write) = self.writes.remove(&operation) else { return false };
        let his = self.users.get_mut(&uid).expect("its user is counted");
        his.remove(&write);
        if his.operations == 0 {
            self.users.remove(&uid);
        }
        self.all.remove(&write);
        let on = self.volumes.get_mut(&write.volume).expect("its volume is counted");
        on.writes.remove(&operation);
        on.ends.remove(&(write.range.1, operation));
        let oldest = on.writes.first().copied().unwrap_or(u64::MAX);
        while let Some(sync) = on.syncs.pop_front_if(|sync| sync.came <= oldest) {
            self.synced.push(sync);
        }
        let oldest = self.writes.first_key_value().map_or(u64::MAX, |(&operation, _)| operation);
        while let Some(sync) = self.syncs_of_all.pop_front_if(|sync| sync.came <= oldest) {
            self.synced.push(sync);
        }
        if on.writes.is_empty() {
            let on = self.volumes.remove(&write.volume).expect("just found");
            self.free.extend(on.deferred);
        }
        true
    }

    /// Counts one more of this user's that is deferred, where there is room for it.
    pub(super) fn note_deferred(&mut self, uid: u32) -> Result<(), Error> {
        self.deferred.come(uid, limits::WAITERS_MAX)
    }

    /// No longer so for one that was deferred.
    fn unwant(&mut self, volumes: &[VolumeId]) {
        for volume in volumes {
            let wanted = self.wanted.get_mut(volume).expect("it was counted");
            *wanted -= 1;
            if *wanted == 0 {
                self.wanted.remove(volume);
            }
        }
    }

    /// One of them has failed.
    fn failed(&mut self, volume: VolumeId, disk: DiskIndex, error: DeviceError) {
        let none = Failures { count: 0, untold: 0, disk, error };
        let failures = self.failures.entry(volume).or_insert(none);
        *failures =
            Failures { count: failures.count + 1, untold: failures.untold + 1, disk, error };
    }

    pub(super) fn forget(&mut self, volume: VolumeId) {
        self.failures.remove(&volume);
    }

    /// Somebody syncs, and waits for this write.
    pub(super) fn is_awaited(&self, operation: u64) -> bool {
        let Some(write) = self.writes.get(&operation) else { return false };
        let on = self.volumes.get(&write.volume).expect("some of it is behind");
        let waits =
            |line: &VecDeque<Syncing>| line.back().is_some_and(|sync| sync.came > operation);
        waits(&on.syncs) || waits(&self.syncs_of_all)
    }

    /// Some who were deferred are to be asked again.
    pub(super) fn has_free(&self) -> bool {
        !self.free.is_empty()
    }

    fn is_full(&self) -> bool {
        self.all.operations >= limits::BEHIND_MAX
    }

    fn has_room(&self, core: &Core, write: &Write) -> bool {
        let his = self.users.get(&write.uid).copied().unwrap_or_default();
        let share = core.arena.for_best_effort() / limits::BEHIND_DIVISOR;
        let most = share.min(limits::BEHIND_BYTES_MAX);
        his.operations + self.all.operations < limits::BEHIND_MAX
            && (!write.begins_run || his.runs + self.all.runs < limits::BEHIND_RUNS_MAX)
            && his.bytes + self.all.bytes + write.len <= most
    }

    /// Whether a write that begins here goes on where one that is behind ends.
    fn continues(&self, volume: VolumeId, at: Bytes) -> bool {
        let on = self.volumes.get(&volume);
        on.is_some_and(|on| on.ends.range((at, 0)..=(at, u64::MAX)).next().is_some())
    }
}

impl BestEffort {
    /// This write has claimed its blocks, from `first` on, and may be answered from now on: where none of
    /// its pieces waits for another write, which may be of another priority, and wait for long.
    pub(super) fn may_be_behind(&mut self, core: &Core, id: u64, first: Claim) {
        let mut pieces = self.pieces.range(first..);
        let waits = |(claim, piece): (Claim, &Piece)| !core.writes.may_start(piece.extent, claim);
        if let (false, Some(operation)) = (pieces.any(waits), self.operations.get(id)) {
            self.behind.later.insert((operation.uid, id));
        }
    }

    /// Answers writes for which there is room, of a few users at a time; `has_stream` of their volume are not.
    pub(crate) fn answer_ahead(&mut self, core: &mut Core, has_stream: impl Fn(VolumeId) -> bool) {
        let mut users = 0;
        while users < limits::GO_ON_STEP
            && !self.behind.is_full()
            && let Some(first) = self.behind.later.first()
        {
            let next = self.behind.later.range((self.behind.turn, 0)..).next();
            let (uid, id) = *next.unwrap_or(first);
            self.behind.turn = uid;
            let operation = self.operation(id);
            let (Some(ticket), Some(span)) = (operation.ticket, operation.span) else {
                unreachable!("somebody asked for it, from memory")
            };
            let (holder, stated, has_failed) =
                (operation.holder(), operation.priority, operation.error.is_some());
            let (recorded, range) = (operation.recorded, (operation.offset, operation.end));
            let volume = holder.volume;
            let begins_run = !self.behind.continues(volume, range.0);
            let write = Write { volume, uid, range, len: span.len, begins_run };
            let is_wanted = self.behind.wanted.contains_key(&volume);
            let is_hindered = is_wanted || has_stream(volume) || !is_plain(core, volume);
            let may = !self.ending && !has_failed && !is_hindered;
            if !may || core.rank_of(holder, stated) != Rank::Normal {
                // It is answered when it is on its disk.
                self.behind.later.remove(&(uid, id));
            } else if self.behind.has_room(core, &write) {
                self.behind.later.remove(&(uid, id));
                self.behind.add(id, write, recorded);
                core.answer(ticket, Ok(Reply::Done));
            } else {
                users += 1;
                self.behind.turn = uid.wrapping_add(1);
            }
        }
    }

    /// The first write that was answered before `came`, has not ended, and overlaps this.
    fn behind_before(
        &self,
        core: &Core,
        extent: Extent,
        range: &Range<Bytes>,
        came: Claim,
    ) -> Option<Claim> {
        if !self.behind.is_on(extent.0) {
            return None;
        }
        let is_behind =
            |claim: &Claim| *claim < came && self.behind.has(self.pieces[*claim].operation);
        let found = core.writes.claims_in(extent, range).find(is_behind);
        found.or_else(|| self.ended_in_part(core, extent, range, came))
    }

    /// A piece that is under way, of a write that was answered before `came` and has written some of this
    /// behind the end of the volume: that is shown when all of it has ended, and zeros lie where it moves the
    /// end on over what it does not write.
    fn ended_in_part(
        &self,
        core: &Core,
        (volume, index): Extent,
        range: &Range<Bytes>,
        came: Claim,
    ) -> Option<Claim> {
        let shown = core.store.volume(volume)?.length().round_up(limits::BLOCK_MIN);
        let at = EXTENT * index;
        let behind_end = (at + range.start).max(shown)..at + range.end;
        if behind_end.is_empty() {
            return None;
        }
        let writes = &self.behind.volumes.get(&volume)?.writes;
        let mut theirs = writes.iter().filter(|operation| {
            let (start, end) = self.behind.writes[operation].range;
            overlap(&(start..end), &behind_end)
        });
        theirs.find_map(|operation| {
            let mut pieces = self.pieces.range(..came);
            let own = pieces.find(|(_, piece)| piece.operation == *operation);
            own.map(|(claim, _)| claim).or_else(|| self.zeros_for(volume, *operation))
        })
    }

    /// Whether this piece of a read waits for a write that was answered; then it is begun when that
    /// has ended.
    pub(super) fn waits_for_write(
        &mut self,
        core: &mut Core,
        now: Instant,
        (id, operation): (u64, &Operation),
        (extent, range): (Extent, &Range<Bytes>),
        span: Span,
    ) -> bool {
        if !self.behind.is_on(extent.0) {
            return false;
        }
        let (came, range) = (core.writes.next_claim(), range.clone());
        let lifts = core.rank_of(operation.holder(), operation.priority) <= Rank::Interactive;
        let reading = Reading { operation: id, extent, range, span, came, lifts };
        self.wait_for_write(core, now, reading).is_none()
    }

    /// Gives it back where it does not have to wait.
    fn wait_for_write(
        &mut self,
        core: &mut Core,
        now: Instant,
        reading: Reading,
    ) -> Option<Reading> {
        let before = self.behind_before(core, reading.extent, &reading.range, reading.came);
        let Some(claim) = before else { return Some(reading) };
        if reading.lifts {
            let volume = reading.extent.0;
            self.pieces[claim].commands.iter().for_each(|&id| core.lift(now, id, volume));
        }
        self.behind.reads.entry(claim).or_default().push(reading);
        None
    }

    /// A write has ended: pieces of reads that waited for it go on.
    pub(super) fn read_behind(&mut self, core: &mut Core, now: Instant, ended: Claim) {
        for reading in self.behind.reads.remove(&ended).unwrap_or_default() {
            let Some(reading) = self.wait_for_write(core, now, reading) else { continue };
            let Reading { operation: id, extent: (volume, index), range, span, .. } = reading;
            match core.store.locate(volume, index).filter(|_| !self.ending) {
                Some(location) => {
                    let operation = self.operation(id);
                    read_piece(core, now, operation, id, index, (range, location), span);
                }
                None => {
                    self.operation(id).fails(Error::ShuttingDown);
                    self.piece_ended(core, now, id);
                }
            }
        }
    }

    /// Such pieces of reads wait no more, and are not read.
    pub(super) fn take_back_reads(
        &mut self,
        core: &mut Core,
        now: Instant,
        is_meant: fn(&Self, u64) -> bool,
    ) {
        let is_meant = |this: &Self, reading: &Reading, _| is_meant(this, reading.operation);
        self.end_reads(core, now, &Error::ShuttingDown, is_meant);
    }

    /// Such pieces of reads, with the claim that each waits for, end so.
    fn end_reads(
        &mut self,
        core: &mut Core,
        now: Instant,
        error: &Error,
        is_meant: impl Fn(&Self, &Reading, Claim) -> bool,
    ) {
        let mut reads = core::mem::take(&mut self.behind.reads);
        let mut meant = Vec::new();
        for (&claim, waiting) in &mut reads {
            meant.extend(waiting.extract_if(.., |reading| is_meant(self, reading, claim)));
        }
        self.behind.reads = reads;
        for Reading { operation, .. } in meant {
            self.operation(operation).fails(error.clone());
            self.piece_ended(core, now, operation);
        }
    }

    /// Some requests that were deferred are to be asked again.
    pub(crate) fn has_free(&self) -> bool {
        self.behind.has_free()
    }

    /// Some writes of the volume are answered, and not on their disk.
    pub(crate) fn is_behind(&self, volume: VolumeId) -> bool {
        self.behind.is_on(volume)
    }

    /// Its recorded bytes reach so far at least when they are.
    pub(crate) fn recorded_behind(&self, volume: VolumeId) -> Bytes {
        self.behind.recorded(volume)
    }

    /// An operation that is answered, and not on its disk.
    pub(crate) fn is_answered(&self, operation: u64) -> bool {
        self.behind.has(operation)
    }

    /// Failures of such writes that whoever opens the volume now need not be told of: others were.
    pub(crate) fn failures_told(&self, volume: VolumeId) -> u64 {
        self.behind.failures.get(&volume).map_or(0, |it| it.count - it.untold)
    }

    /// Somebody who writes the volume has heard of so many.
    pub(crate) fn failures_were_told(&mut self, volume: VolumeId, told: u64) {
        if let Some(failures) = self.behind.failures.get_mut(&volume) {
            failures.untold = failures.untold.min(failures.count.saturating_sub(told));
        }
    }

    /// Defers a request until nothing is behind of the first of these volumes; nothing more of any is
    /// answered ahead until then.
    pub(crate) fn defer(
        &mut self,
        core: &mut Core,
        volumes: Vec<VolumeId>,
        (ticket, who, op, arrived): (Ticket, Who, Op, Instant),
    ) {
        if let Err(error) = self.behind.note_deferred(who.uid) {
            return core.answer(ticket, Err(error));
        }
        for &volume in &volumes {
            *self.behind.wanted.entry(volume).or_default() += 1;
        }
        let on = self.behind.volumes.get_mut(&volumes[0]).expect("some of it is behind");
        on.deferred.push_back(Deferred { volumes, ticket, who, op, arrived });
    }

    /// What this one was deferred for has ended: it is asked again, or, where that has failed, refused.
    pub(super) fn ask_again(
        &mut self,
        core: &mut Core,
        now: Instant,
        asked: Deferred,
        error: Option<Error>,
    ) {
        match error {
            None => self.behind.free.push_back(asked),
            Some(error) => {
                self.behind.deferred.go(asked.who.uid);
                self.behind.unwant(&asked.volumes);
                self.refuse(core, now, asked.ticket, &asked.op, error);
            }
        }
    }

    /// [`Op::SyncVolume`], or [`Op::Sync`].
    pub(crate) fn sync(
        &mut self,
        core: &mut Core,
        now: Instant,
        (ticket, uid): (Ticket, u32),
        of: Option<Flushed>,
    ) {
        let sync = Syncing { ticket, uid, since: now, of, came: self.next };
        let mut lifted_to = 0;
        let behind = &mut self.behind;
        let line = match of {
            None if behind.writes.is_empty() => None,
            None => Some(&mut behind.syncs_of_all),
            Some(of) => behind.volumes.get_mut(&of.volume).map(|on| &mut on.syncs),
        };
        match line {
            None => self.synced(core, now, sync),
            Some(line) => match behind.syncs.come(uid, limits::WAITERS_MAX) {
                Ok(()) => {
                    lifted_to = line.back().map_or(0, |before| before.came);
                    line.push_back(sync);
                }
                Err(error) => core.answer(ticket, Err(error)),
            },
        }
        if lifted_to < sync.came {
            self.lift_awaited(core, now, lifted_to);
        }
    }

    /// Somebody waits for writes that were answered, and waited until now as what nobody waits for. What is
    /// asked of a disk for them later is [served so](Self::class_of) from the start.
    fn lift_awaited(&self, core: &mut Core, now: Instant, from: u64) {
        let is_new =
            |piece: &&Piece| piece.operation >= from && self.behind.is_awaited(piece.operation);
        for piece in self.pieces.values().filter(is_new) {
            piece.commands.iter().for_each(|&id| core.lift(now, id, piece.extent.0));
        }
    }

    /// Writes have ended, perhaps: who waited for them goes on. Gives a request that was deferred and is to
    /// be asked again.
    pub(crate) fn go_on(&mut self, core: &mut Core, now: Instant) -> Option<Deferred> {
        if !self.behind.synced.is_empty() {
            let synced = core::mem::take(&mut self.behind.synced);
            for sync in synced {
                self.behind.syncs.go(sync.uid);
                self.synced(core, now, sync);
            }
        }
        let deferred = self.behind.free.pop_front()?;
        self.behind.deferred.go(deferred.who.uid);
        self.behind.unwant(&deferred.volumes);
        Some(deferred)
    }

    /// For this write, which was answered, there will be no slack as long as the contracts stay: it waits
    /// on, and who waits for it since `before` is told.
    pub(crate) fn no_slack(
        &mut self,
        core: &mut Core,
        (now, before): (Instant, Instant),
        disk: DiskIndex,
        operation: u64,
    ) {
        let Some(&Write { volume, .. }) = self.behind.writes.get(&operation) else { return };
        let error = Error::Device { disk, error: DeviceError::NO_SLACK };
        let waits = |sync: &Syncing| sync.came > operation && sync.since <= before;
        let Behind { volumes, syncs_of_all, .. } = &mut self.behind;
        let on = volumes.get_mut(&volume).expect("some of it is behind");
        let mut syncs = Vec::new();
        for line in [&mut on.syncs, syncs_of_all] {
            let (told, stay): (VecDeque<_>, VecDeque<_>) =
                core::mem::take(line).into_iter().partition(waits);
            syncs.extend(told);
            *line = stay;
        }
        let (deferred, stay): (VecDeque<_>, VecDeque<_>) =
            core::mem::take(&mut on.deferred).into_iter().partition(|one| one.arrived <= before);
        on.deferred = stay;
        syncs.iter().for_each(|sync| self.behind.syncs.go(sync.uid));
        for one in &deferred {
            self.behind.deferred.go(one.who.uid);
            self.behind.unwant(&one.volumes);
        }
        let syncs = syncs.into_iter().map(|sync| sync.ticket);
        for ticket in syncs.chain(deferred.into_iter().map(|one| one.ticket)) {
            core.answer(ticket, Err(error.clone()));
        }
        let is_late = |this: &Self, reading: &Reading, claim: Claim| {
            let asked = this.operations[reading.operation].kept.arrived();
            this.pieces[claim].operation == operation && asked <= before
        };
        self.end_reads(core, now, &error, is_late);
    }

    /// What he waited for has ended.
    fn synced(&mut self, core: &mut Core, now: Instant, sync: Syncing) {
        let Syncing { ticket, uid, of, .. } = sync;
        if let Some(Flushed { volume, told }) = of
            && let Some(failures) = self.behind.failures.get(&volume)
            && failures.count > told
        {
            return core.answer(ticket, Err(failures.error(core, volume)));
        }
        core.answer_when_committed(now, (ticket, uid), Reply::Done);
    }

    /// Failures that nobody was told of, of one volume.
    pub(crate) fn untold(&self, core: &Core) -> Option<Error> {
        let mut all = self.behind.failures.iter();
        let (&volume, failures) = all.find(|(_, failures)| failures.untold > 0)?;
        Some(failures.error(core, volume))
    }

    /// What became of an operation that was answered before it ended.
    pub(super) fn ended_behind(&mut self, volume: VolumeId, error: Option<Box<Error>>) {
        match error.map(|error| *error) {
            None => {}
            Some(Error::Device { disk, error }) => self.behind.failed(volume, disk, error),
            Some(other) => unreachable!("what was answered is written: {other:?}"),
        }
    }
}

/// The volume is served as best effort, and nothing else is promised of it.
fn is_plain(core: &Core, volume: VolumeId) -> bool {
    let Services(served) = &core.services;
    let is_best_effort = |service: &Service| matches!(service, Service::BestEffort(_));
    let mut on = served.range(Holder::on(volume));
    let keeps = core.store.volume(volume).is_some_and(|volume| volume.service().is_some());
    let is_in_force = served.contains_key(&Holder::from(volume));
    on.all(|(_, served)| is_best_effort(&served.service)) && (!keeps || is_in_force)
}
