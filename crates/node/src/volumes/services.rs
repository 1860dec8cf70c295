//! The volumes' services while the pool runs: their tasks on the disks, and which
//! class a request of a volume is of.
//!
//! What is here is in force. What a volume was given the pool keeps, also where it does not
//! fit any more (`kept.rs`).
//!
//! The clock of a contract of answers in time begins with the program's call. Each command
//! of an operation has its *turn*: at the call, or a period after the turn before it on the
//! same disk; it is due the promised time later, whatever it waited for meanwhile. (A write
//! whose edges are read first is asked for when these are there: not later than its turn.)
//!
//! Invariant: `served` has an entry for each volume whose service is not the
//! default, and for each disk of it a task where the service is a contract.

use crate::admission::contract::{self, Joined};
pub(crate) use crate::api::Holder;
use crate::api::*;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use store::VolumeId;
use units::{Bytes, Direction, Duration, Instant, Lba};

/// How one volume, or one handle, is served.
#[derive(Clone, Debug, Default)]
pub(crate) struct Served {
    pub service: Service,
    pub tasks: Vec<Joined>,
    pub account: ServiceAccount,
    /// On each disk, when the next command's turn is at the earliest.
    pub turns: BTreeMap<DiskIndex, Instant>,
}

/// When a command under contract should have come, and by when it is promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    pub from: Instant,
    pub due: Instant,
}

/// What becomes of the promise of one operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kept {
    /// When the program asked.
    arrived: Instant,
    /// By when it is to be answered, as far as its turns go; none where there are none.
    due: Option<Instant>,
    /// The latest of its commands under contract, and the longest, as their disks saw them, and
    /// by when the last of them was due there.
    seen: Option<(Duration, Duration, Instant)>,
    /// Some of it is under no contract.
    is_outside: bool,
}

impl Kept {
    /// Nothing has become of it yet.
    pub(crate) fn from(arrived: Instant) -> Self {
        Self { arrived, due: None, seen: None, is_outside: false }
    }

    /// When the program asked.
    pub(crate) fn arrived(&self) -> Instant {
        self.arrived
    }

    /// A command of it has this turn.
    pub(crate) fn promised(&mut self, turn: Turn) {
        self.due = self.due.max(Some(turn.due));
    }

    /// A command of it is asked for as best effort.
    pub(crate) fn unpromised(&mut self) {
        self.is_outside = true;
    }

    /// A command under contract has ended, so late and after so long.
    pub(crate) fn ended(&mut self, late_by: Duration, latency: Duration, due: Instant) {
        let (late, longest, last) = self.seen.unwrap_or((late_by, latency, due));
        self.seen = Some((late.max(late_by), longest.max(latency), last.max(due)));
    }

    /// Its volume is served in another way from now on: what waits counts from now.
    pub(crate) fn begin_anew(&mut self, now: Instant) {
        (self.arrived, self.due) = (now, None);
    }

    /// By how much it is late by now, where it has not been answered, and a command of it that a disk has is
    /// late by so much.
    pub(crate) fn late_by(&self, now: Instant, of_command: Duration) -> Duration {
        match (self.is_outside, self.due) {
            (true, _) => Duration::ZERO,
            (false, Some(due)) => now.saturating_since(due),
            (false, None) => of_command,
        }
    }

    /// Answered now: how late, after how long, and by when it is due; none where nothing was
    /// promised.
    fn answered(&self, now: Instant) -> Option<(Duration, Duration, Instant)> {
        let seen = self.seen.filter(|_| !self.is_outside)?;
        let by_call = |due| (now.saturating_since(due), now.saturating_since(self.arrived), due);
        Some(self.due.map_or(seen, by_call))
    }
}

/// All volumes and handles that are served otherwise than by default.
#[derive(Clone, Debug, Default)]
pub(crate) struct Services(pub BTreeMap<Holder, Served>);

impl Services {
    /// The volume, and handles on it, that are served otherwise than by default.
    pub(crate) fn on(&self, volume: VolumeId) -> Vec<Holder> {
        self.0.range(Holder::on(volume)).map(|(&holder, _)| holder).collect()
    }

    /// What a contract has of each disk's time, in parts per million.
    pub(crate) fn shares(&self, holder: Holder) -> Vec<(DiskIndex, u64)> {
        self.0.get(&holder).map(|served| contract::used(&served.tasks)).unwrap_or_default()
    }

    pub(crate) fn of(&self, holder: Holder) -> (Service, ServiceAccount) {
        let served = self.0.get(&holder);
        served.map_or_else(Default::default, |served| (served.service, served.account))
    }

    /// The longest command that a contract covers on this disk, for whoever states this priority; none
    /// where he is served as best effort there.
    pub(crate) fn len_promised(
        &self,
        holder: Holder,
        disk: DiskIndex,
        stated: Option<Priority>,
    ) -> Option<Bytes> {
        let served = self.0.get(&holder)?;
        if stated.is_some_and(|stated| served.service.granted(stated).is_some()) {
            return None;
        }
        served.tasks.iter().find(|joined| joined.disk == disk)?;
        match served.service {
            Service::BestEffort(_) => None,
            Service::Rate { block: len, .. } | Service::Latency { len, .. } => Some(len),
        }
    }

    /// The turn of a command on a disk; none where nothing is promised of each.
    pub(crate) fn turn(
        &mut self,
        holder: Holder,
        disk: DiskIndex,
        arrived: Instant,
    ) -> Option<Turn> {
        let served = self.0.get_mut(&holder)?;
        let Service::Latency { within, every, .. } = served.service else { return None };
        let next = served.turns.entry(disk).or_insert(Instant::EPOCH);
        let from = arrived.max(*next);
        *next = from.saturating_add(every);
        Some(Turn { from, due: from.saturating_add(within) })
    }

    /// The first turn on a disk is not before this, where it had none.
    pub(crate) fn begin_turns(&mut self, holder: Holder, disk: DiskIndex, first: Instant) {
        if let Some(served) = self.0.get_mut(&holder) {
            served.turns.entry(disk).or_insert(first);
        }
    }

    /// An operation of `len` under contract, which begins on that disk, is answered from memory: the same.
    /// It counts as coming when its turn there would be, and leaves that to the next one.
    pub(crate) fn account_at_once(
        &mut self,
        now: Instant,
        (holder, disk): (Holder, DiskIndex),
        (arrived, len): (Instant, Bytes),
    ) -> Option<Promise> {
        let served = self.0.get(&holder)?;
        let Service::Latency { len: most, within, .. } = served.service else { return None };
        let next = served.turns.get(&disk).copied().unwrap_or(Instant::EPOCH);
        let mut kept = Kept::from(arrived);
        if len <= most {
            let from = arrived.max(next);
            let due = from.saturating_add(within);
            kept.promised(Turn { from, due });
            kept.ended(Duration::ZERO, Duration::ZERO, due);
        }
        self.account(now, holder, &kept)
    }

    /// An operation is answered: what is owed of that until its program has it.
    pub(crate) fn account(&mut self, now: Instant, holder: Holder, kept: &Kept) -> Option<Promise> {
        let served = self.0.get_mut(&holder)?;
        if let Service::BestEffort(_) = served.service {
            return None;
        }
        let (late_by, latency, due) = kept.answered(now)?;
        let account = &mut served.account;
        account.requests += 1;
        account.late_requests += u64::from(!late_by.is_zero());
        account.late_max = account.late_max.max(late_by);
        account.latency_max = account.latency_max.max(latency);
        let from = now - latency.min(now.saturating_since(Instant::EPOCH));
        let (whose, was_late) = (UnderContract::Service(holder), !late_by.is_zero());
        Some(Promise { whose, from, due, handed: now, was_late, block: None })
    }
}

/// A request of a volume that waits and may change its class.
pub(crate) struct Piece {
    pub id: CommandId,
    pub disk: DiskIndex,
    pub at: Lba,
    pub len: Bytes,
    pub direction: Direction,
    /// The priority that its handle states.
    pub stated: Option<Priority>,
}
