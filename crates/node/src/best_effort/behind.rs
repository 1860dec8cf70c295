//! Writes that are answered before they are on their disk: *write-behind*.
//!
//! A write that asks for it ([`WriteRange::behind`]) is answered when its blocks are claimed, or as soon
//! afterwards as there is room, and goes on as it would have gone. What must not see its volume without the
//! bytes waits: a best-effort read for those pieces that it overlaps; whoever opens, serves, cuts, renames or
//! removes the volume until none of its writes is behind; and [`Op::SyncVolume`] for those that were answered
//! before it.
//!
//! How much is behind has a bound, so that a sync, or the end of the node, does not wait long. A user has
//! at the most what all together leave free: one alone half of the bound, two a third each.
//!
//! Invariants: nothing is answered ahead in the background, on a volume with a stream or a contract, or while
//! somebody waits for that volume. What was answered is written, also while the node ends. A failure is
//! counted, and told to everybody who syncs the volume and was not told of it.

use super::{BestEffort, Operation, read_piece};
use crate::api::*;
use crate::core::Core;
use crate::limits;
use crate::memory::line::Rank;
use crate::volumes::services::Services;
use crate::volumes::writes::{Claim, Extent};
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;
use store::VolumeId;
use units::{Bytes, Instant};

#[derive(Clone, Debug, Default)]
pub(super) struct Behind {
    /// Operations that are answered and have not ended.
    writes: BTreeMap<u64, Write>,
    /// Operations that are to be answered when there is room, by their user, the oldest first.
    later: BTreeSet<(u32, u64)>,
    volumes: BTreeMap<VolumeId, OnVolume>,
    users: BTreeMap<u32, Amount>,
    all: Amount,
    /// Pieces of reads, by the claim that each waits for.
    reads: BTreeMap<Claim, Vec<Reading>>,
    /// Who waits on any volume.
    waiting: usize,
    /// What these waited for has ended.
    synced: Vec<Syncing>,
    free: VecDeque<Held>,
    failures: BTreeMap<VolumeId, Failures>,
}

#[derive(Clone, Copy, Debug)]
struct Write {
    volume: VolumeId,
    uid: u32,
    len: Bytes,
}

/// A volume of which a write is behind.
#[derive(Clone, Debug, Default)]
struct OnVolume {
    /// The later one has the higher number.
    writes: BTreeSet<u64>,
    /// In the order in which they came.
    syncs: VecDeque<Syncing>,
    held: VecDeque<Held>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Amount {
    operations: u64,
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
    volume: VolumeId,
    /// Of failures he was told.
    told: u64,
    /// He waits for operations before this one.
    came: u64,
}

/// A request that waits until none of a volume's writes is behind.
#[derive(Clone, Debug)]
pub(crate) struct Held {
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

impl Amount {
    fn add(&mut self, len: Bytes) {
        self.operations += 1;
        self.bytes += len;
    }

    fn remove(&mut self, len: Bytes) {
        self.operations -= 1;
        self.bytes -= len;
    }
}

impl Behind {
    pub(super) fn has(&self, operation: u64) -> bool {
        !self.writes.is_empty() && self.writes.contains_key(&operation)
    }

    pub(super) fn is_on(&self, volume: VolumeId) -> bool {
        !self.volumes.is_empty() && self.volumes.contains_key(&volume)
    }

    fn add(&mut self, operation: u64, write: Write) {
        self.writes.insert(operation, write);
        self.volumes.entry(write.volume).or_default().writes.insert(operation);
        self.users.entry(write.uid).or_default().add(write.len);
        self.all.add(write.len);
    }

    /// An operation of this user has ended: false where it was not answered before.
    pub(super) fn remove(&mut self, operation: u64, uid: u32) -> bool {
        if self.writes.is_empty() && self.later.is_empty() {
            return false;
        }
        self.later.remove(&(uid, operation));
        let Some(write) = self.writes.remove(&operation) else { return false };
        let his = self.users.get_mut(&uid).expect("its user is counted");
        his.remove(write.len);
        if his.operations == 0 {
            self.users.remove(&uid);
        }
        self.all.remove(write.len);
        let on = self.volumes.get_mut(&write.volume).expect("its volume is counted");
        on.writes.remove(&operation);
        let oldest = on.writes.first().copied().unwrap_or(u64::MAX);
        while let Some(sync) = on.syncs.pop_front_if(|sync| sync.came <= oldest) {
            self.synced.push(sync);
        }
        if on.writes.is_empty() {
            let on = self.volumes.remove(&write.volume).expect("just found");
            self.free.extend(on.held);
        }
        true
    }

    /// Where somebody may wait for the writes of a volume; none where too many wait.
    fn line_on(&mut self, volume: VolumeId) -> Option<&mut OnVolume> {
        let on = self.volumes.get_mut(&volume).filter(|_| self.waiting < limits::WAITERS_MAX)?;
        self.waiting += 1;
        Some(on)
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

    fn has_room(&self, core: &Core, uid: u32, len: Bytes) -> bool {
        let his = self.users.get(&uid).copied().unwrap_or_default();
        let most = core.arena.for_best_effort() / limits::BEHIND_DIVISOR;
        his.operations + self.all.operations < limits::BEHIND_MAX
            && his.bytes + self.all.bytes + len <= most
    }
}

impl BestEffort {
    /// This write has claimed its blocks, and may be answered from now on.
    pub(super) fn may_be_behind(&mut self, id: u64) {
        let Some(operation) = self.operations.get(id) else { return };
        self.behind.later.insert((operation.uid, id));
    }

    /// Answers writes for which there is room; `has_stream` of their volume are not.
    pub(crate) fn answer_ahead(&mut self, core: &mut Core, has_stream: impl Fn(VolumeId) -> bool) {
        let mut next = (0, 0);
        while let Some(&(uid, id)) = self.behind.later.range(next..).next() {
            let operation = self.operation(id);
            let (holder, stated, volume) =
                (operation.holder(), operation.priority, operation.volume);
            let (Some(ticket), Some(span)) = (operation.ticket, operation.span) else {
                unreachable!("somebody asked for it, from memory")
            };
            let len = span.len;
            let is_wanted = self.behind.volumes.get(&volume).is_some_and(|on| !on.held.is_empty());
            let may = !self.ending && !is_wanted && !has_stream(volume) && is_plain(core, volume);
            if !may || core.rank_of(holder, stated) == Rank::Background {
                // It is answered when it is on its disk.
                self.behind.later.remove(&(uid, id));
            } else if self.behind.has_room(core, uid, len) {
                self.behind.later.remove(&(uid, id));
                self.behind.add(id, Write { volume, uid, len });
                core.answer(ticket, Ok(Reply::Done));
            } else if let Some(other) = uid.checked_add(1) {
                next = (other, 0);
            } else {
                break;
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
            |claim: &Claim| *claim < came && self.behind.has(self.pieces[claim].operation);
        core.writes.claims_in(extent, range).find(is_behind)
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
            self.pieces[&claim].commands.iter().for_each(|&id| core.lift(now, id, volume));
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
                    read_piece(core, now, operation, id, (range, location), span);
                }
                None => {
                    self.operation(id).fails(Error::ShuttingDown);
                    self.piece_ended(core, now, id);
                }
            }
        }
    }

    /// The node ends: no read waits any more.
    pub(super) fn hand_back_reads(&mut self, core: &mut Core, now: Instant) {
        let reads = core::mem::take(&mut self.behind.reads);
        for Reading { operation, .. } in reads.into_values().flatten() {
            self.operation(operation).fails(Error::ShuttingDown);
            self.piece_ended(core, now, operation);
        }
    }

    /// Some writes of the volume are answered, and not on their disk.
    pub(crate) fn is_behind(&self, volume: VolumeId) -> bool {
        self.behind.is_on(volume)
    }

    /// Failures of such writes that whoever opens the volume now need not be told of: others were.
    pub(crate) fn failures_told(&self, volume: VolumeId) -> u64 {
        self.behind.failures.get(&volume).map_or(0, |it| it.count - it.untold)
    }

    /// Holds a request until none of the volume's writes is behind; gives it back where too many wait.
    pub(crate) fn hold(&mut self, volume: VolumeId, held: Held) -> Option<Held> {
        match self.behind.line_on(volume) {
            None => Some(held),
            Some(on) => {
                on.held.push_back(held);
                None
            }
        }
    }

    /// [`Op::SyncVolume`].
    pub(crate) fn sync_volume(
        &mut self,
        core: &mut Core,
        now: Instant,
        ticket: Ticket,
        volume: VolumeId,
        told: u64,
    ) {
        let sync = Syncing { ticket, volume, told, came: self.next };
        if !self.behind.is_on(volume) {
            return self.synced(core, now, sync);
        }
        let waiting = self.behind.waiting as u64;
        match self.behind.line_on(volume) {
            None => core.answer(ticket, Err(Error::Busy { waiting })),
            Some(on) => on.syncs.push_back(sync),
        }
    }

    /// Writes have ended, perhaps: who waited for them goes on. Gives a request that was held and is to
    /// be asked again.
    pub(crate) fn go_on(&mut self, core: &mut Core, now: Instant) -> Option<Held> {
        if self.behind.waiting == 0 {
            return None;
        }
        let synced = core::mem::take(&mut self.behind.synced);
        self.behind.waiting -= synced.len();
        for sync in synced {
            self.synced(core, now, sync);
        }
        let held = self.behind.free.pop_front()?;
        self.behind.waiting -= 1;
        Some(held)
    }

    /// What he waited for has ended.
    fn synced(&mut self, core: &mut Core, now: Instant, sync: Syncing) {
        let Syncing { ticket, volume, told, .. } = sync;
        match self.behind.failures.get_mut(&volume).filter(|failures| failures.count > told) {
            None => core.answer_when_committed(now, ticket),
            Some(failures) => {
                failures.untold = 0;
                let Failures { count, disk, error, .. } = *failures;
                let name = core.store.volume(volume).map_or("", |volume| volume.name());
                let name = String::from(name);
                let error = Error::WriteBehind { name, failures: count, disk, error };
                core.answer(ticket, Err(error));
            }
        }
    }

    /// What became of an operation that was answered before it ended.
    pub(super) fn ended_behind(
        &mut self,
        core: &mut Core,
        volume: VolumeId,
        recorded: Bytes,
        error: Option<Box<Error>>,
    ) {
        match error.map(|error| *error) {
            None => core.store.note_length(volume, recorded),
            Some(Error::Device { disk, error }) => self.behind.failed(volume, disk, error),
            Some(other) => unreachable!("what was answered is written: {other:?}"),
        }
    }
}

/// The volumes, by name, of which no write may be behind when this is done.
pub(crate) fn needs_rest(op: &Op) -> [Option<&str>; 2] {
    match op {
        Op::VolumeRename { name, to, .. } => [Some(name), Some(to)],
        Op::VolumeResize { name, .. }
        | Op::VolumeResizeWithin { name, .. }
        | Op::VolumeDelete { name }
        | Op::VolumeService { name, .. } => [Some(name), None],
        Op::HandleOpen { volume, .. }
        | Op::StreamOpen { volume, .. }
        | Op::WindowOpen { volume, .. } => [Some(volume), None],
        Op::Open { opening, .. } => [Some(&opening.volume), None],
        Op::Staged(op) => needs_rest(op),
        _ => [None, None],
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
