//! What can be seen of a node, gathered in steps: none of them takes long, however many
//! streams and volumes there are, and the slack of the disks is searched on copies.

use crate::api::*;
use crate::commits::times::sync_max;
use crate::limits::{NAMES_STEP, STATUS_STEP};
use crate::node::Node;
use crate::overdue::{Overdue, is_held_up};
use crate::streams::stream::Stream;
use crate::volumes::permission::check;
use crate::volumes::rings;
use crate::volumes::services::Holder;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;
use sched::TaskSet;
use store::{EXTENT, Volume, VolumeId};
use units::{Bytes, Duration, Instant};

/// A status that is being gathered: [`Node::look`] until that says that it was all, then
/// [`Look::finish`] where nobody waits, then [`Node::learn`].
///
/// What it shows is of the time between the first and the last look: a stream that closes
/// meanwhile may be missing, or be shown without its volume's name.
#[derive(Debug)]
pub struct Look {
    next: Next,
    status: Status,
    sets: Vec<TaskSet>,
    /// Disks on which requests may be late that have not ended.
    held_up: Vec<DiskIndex>,
    // As they were looked at: to put them together moves them all now and then.
    volumes: Vec<Vec<VolumeStatus>>,
    streams: Vec<Vec<StreamStatus>>,
}

/// What is looked at next.
#[derive(Clone, Copy, Debug)]
enum Next {
    Disk(usize),
    VolumesAfter(Option<VolumeId>),
    StreamsAfter(StreamId),
}

/// The contracts of each disk, with their analysis.
#[derive(Debug)]
pub struct Analysed(Vec<TaskSet>);

impl Look {
    /// Nothing looked at yet.
    pub fn new(now: Instant) -> Self {
        let status = Status {
            now,
            policy: Policy::default(),
            policy_kept: false,
            promised: false,
            disks: Vec::new(),
            volumes: Vec::new(),
            streams: Vec::new(),
            memory: MemoryStatus::default(),
            read_only: false,
            clock_doubt: None,
            delivery: Duration::ZERO,
            delivery_refused: None,
        };
        let (sets, held_up, volumes, streams) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { next: Next::Disk(0), status, sets, held_up, volumes, streams }
    }

    /// Searches the slack of each disk, which may take some time.
    pub fn finish(mut self) -> (Status, Analysed) {
        for (disk, set) in self.status.disks.iter_mut().zip(&self.sets) {
            disk.slack = set.slack();
        }
        self.status.volumes = self.volumes.into_iter().flatten().collect();
        self.status.streams = self.streams.into_iter().flatten().collect();
        (self.status, Analysed(self.sets))
    }
}

impl Node {
    /// Looks at a little more; false where that was all.
    pub fn look(&self, look: &mut Look) -> bool {
        let (core, status) = (&self.core, &mut look.status);
        match look.next {
            Next::Disk(at) => match core.disks.get(at) {
                Some(disk) => {
                    status.disks.push(core.disk_status(status.now, disk));
                    look.held_up.extend(is_held_up(disk, status.now).then_some(disk.index));
                    look.sets.push(disk.queue.tasks().clone());
                    look.next = Next::Disk(at + 1);
                }
                None => {
                    status.memory = core.arena.status();
                    // What is cached and with programs is theirs, as other memory for best effort.
                    let lent = core.writes.cache.taken();
                    status.memory.best_effort += lent;
                    status.memory.free -= lent;
                    status.memory.kept -= lent;
                    status.memory.from_memory = core.writes.served_in_all();
                    status.read_only = self.is_read_only();
                    status.clock_doubt = self.ages.doubt(status.now);
                    status.delivery = core.delivery.counted;
                    let refused = core.delivery.refused.as_ref();
                    status.delivery_refused = refused.map(|(_, error)| Box::new(error.clone()));
                    (status.policy, status.promised) = (core.config.policy, core.promises());
                    let kept = core.store.policy();
                    status.policy_kept = kept == Some(&crate::kept_policy(status.policy));
                    look.next = Next::VolumesAfter(None);
                }
            },
            Next::VolumesAfter(last) => {
                let some = core.store.volumes_after(last).take(STATUS_STEP);
                let overdue = self.overdue(status.now, look.held_up.iter().copied());
                let some: Vec<_> = some.map(|volume| self.status_of(volume, &overdue)).collect();
                look.next = match some.last() {
                    None => Next::StreamsAfter(StreamId(0)),
                    Some(last) => Next::VolumesAfter(Some(last.id)),
                };
                look.volumes.push(some);
            }
            Next::StreamsAfter(last) => {
                let some = self.streams.all_after(last).take(STATUS_STEP);
                let overdue = self.overdue(status.now, look.held_up.iter().copied());
                let some: Vec<_> = some.map(|one| self.stream_status(one, &overdue)).collect();
                match some.last() {
                    Some(last) => look.next = Next::StreamsAfter(last.stream),
                    None => return false,
                }
                look.streams.push(some);
            }
        }
        true
    }

    /// Keeps what was found out for a status, so that the next one is quicker.
    pub fn learn(&self, analysed: &Analysed) {
        for (disk, set) in self.core.disks.iter().zip(&analysed.0) {
            disk.queue.tasks().learn_from(set);
        }
    }

    /// Everything that can be seen, at once. Cost: grows with streams and volumes, and
    /// searches the slack of each disk: not for a lock that others wait for.
    pub fn status(&self, now: Instant) -> Status {
        let mut look = Look::new(now);
        while self.look(&mut look) {}
        let (status, analysed) = look.finish();
        self.learn(&analysed);
        status
    }

    /// One open stream, as [`Node::status`] shows it.
    pub fn stream(&self, id: StreamId) -> Option<StreamStatus> {
        let stream = self.streams.get(id)?;
        let volume = self.core.store.volume(stream.volume);
        let has = |disk: DiskIndex| volume.is_some_and(|volume| volume.extents_on(disk) > 0);
        let disks = self.core.disks.iter().map(|disk| disk.index).filter(|&disk| has(disk));
        let overdue = self.overdue(self.core.latest, disks);
        Some(self.stream_status(stream, &overdue))
    }

    /// The volume of this name, as [`Node::status`] shows it, but for what is late of requests that have not
    /// ended: no disk is asked.
    pub fn volume(&self, name: &str) -> Option<VolumeStatus> {
        self.core.store.find(name).map(|volume| self.volume_status(volume))
    }

    /// Some of the volumes younger than `last`, or of all, with whose they are: none where there
    /// are no more.
    pub fn names_after(&self, last: Option<VolumeId>) -> Vec<(VolumeId, String, Ownership)> {
        let some = self.core.store.volumes_after(last).take(NAMES_STEP);
        some.map(|volume| (volume.id(), volume.name().into(), volume.ownership())).collect()
    }

    /// Operations for which memory is set aside: under the contract of a handle, or of a volume.
    /// Zero where there is no such volume or no such handle on it.
    pub fn operations(&self, volume: &str, handle: Option<HandleId>) -> u64 {
        let Some(volume) = self.core.store.find(volume) else { return 0 };
        self.core.reserves.of(Holder { volume: volume.id(), handle }).0
    }

    /// Failures of writes that were answered before ([`WriteRange::behind`](crate::WriteRange::behind))
    /// of which whoever begins to use the volume now need not be told: what he gives
    /// [`Op::SyncVolume`] at first.
    pub fn failures_told(&self, volume: &str) -> u64 {
        let volume = self.core.store.find(volume).map(|volume| volume.id());
        volume.map_or(0, |volume| self.best_effort.failures_told(volume))
    }

    /// `who` has heard of so many of them: not before, since what he was to hear may have been lost
    /// with his connection. Whoever begins to use the volume from now on need not hear of them, if `who`
    /// is one who may write to it.
    pub fn failures_were_told(&mut self, who: &Who, volume: &str, failures: u64) {
        let Some(found) = self.core.store.find(volume) else { return };
        let (id, name, whose) = (found.id(), found.name(), found.ownership());
        if check(who, name, whose, Act::Write).is_ok() {
            self.best_effort.failures_were_told(id, failures);
        }
    }

    /// What was written of a range of a volume, as far as `who` may read it: runs, each with
    /// its length and whether it was, one after the other from `range.start` on. What was
    /// never written reads as zeros. At most [`WRITTEN_MAX`](crate::limits::WRITTEN_MAX) of
    /// the range are looked at: who gets less asks again. `id` is the volume that is meant: one
    /// that was made anew under the same name is another.
    ///
    /// # Errors
    /// Where there is no such volume for him, or the range goes beyond its end.
    pub fn written(
        &self,
        who: &Who,
        (name, id): (&str, VolumeId),
        range: Range<Bytes>,
    ) -> Result<Vec<(Bytes, bool)>, Error> {
        let none = || Error::NoSuchVolume { name: name.into() };
        let volume = self.core.store.find(name).filter(|volume| volume.id() == id);
        let volume = volume.ok_or_else(none)?;
        check(who, name, volume.ownership(), Act::Read)?;
        if range.end > volume.end() {
            return Err(Error::BeyondEnd { size: volume.end() });
        }
        if range.start < volume.start() {
            return Err(Error::GivenUp { start: volume.start() });
        }
        let end = range.end.min(range.start.saturating_add(crate::limits::WRITTEN_MAX));
        let (mut runs, mut at) = (Vec::<(Bytes, bool)>::new(), range.start);
        let is_behind = self.best_effort.is_behind(id);
        let mut last = None;
        while at < end {
            let (index, within) = (at / EXTENT, at % EXTENT);
            let blocks = match last {
                Some((of, blocks)) if of == index => blocks,
                _ => {
                    let written = self.core.store.locate(id, index).ok_or_else(none)?.written;
                    match is_behind {
                        true => written.union(&self.core.writes.claimed((id, index))),
                        false => written,
                    }
                }
            };
            last = Some((index, blocks));
            let run = blocks.runs().find(|run| run.end > within);
            let (is_written, upto) = match run {
                Some(run) if run.start <= within => (true, run.end),
                Some(run) => (false, run.start),
                None => (false, EXTENT),
            };
            let len = (EXTENT * index + upto).min(end) - at;
            match runs.last_mut() {
                Some(last) if last.1 == is_written => last.0 += len,
                _ => runs.push((len, is_written)),
            }
            at += len;
        }
        Ok(runs)
    }

    /// The volume of this name, to know it again.
    pub fn volume_id(&self, name: &str) -> Option<VolumeId> {
        self.core.store.find(name).map(Volume::id)
    }

    /// What the volumes of a user or of a group are together.
    pub fn holding(&self, whose: CountedBy) -> Holding {
        self.core.store.holding(whose)
    }

    /// The room for volumes, and for how many more.
    pub fn capacity(&self) -> Capacity {
        let (store, space) = (&self.core.store, self.core.store.space());
        Capacity {
            total: space.total,
            free: space.free,
            volumes: store.volumes().len() as u64,
            volumes_free: store.volumes_room(),
        }
    }

    /// The room for volumes.
    pub fn space(&self) -> store::Space {
        self.core.store.space()
    }

    /// True once a metadata write has failed.
    pub fn is_read_only(&self) -> bool {
        self.core.read_only().is_some()
    }

    fn stream_status(&self, stream: &Stream, overdue: &Overdue) -> StreamStatus {
        let volume = self.core.store.volume(stream.volume);
        let name = volume.map(|volume| String::from(volume.name())).unwrap_or_default();
        let core = &self.core;
        let is_kept = stream.group.is_none_or(|id| !core.store.is_scattered(id.disk, id.zone));
        let promised = core.promises() && is_kept;
        let account = overdue.with_stream(stream.id, stream.account);
        StreamStatus { promised, account, ..stream.status(core, name) }
    }

    /// For whose memory, of the volume and the handles on it, somebody waits while a disk has it.
    fn memory_held(&self, volume: VolumeId) -> Option<MemoryHeld> {
        let core = &self.core;
        let waits = |holder: &Holder| self.best_effort.waits_for_contract(*holder);
        let mut holders = core.services.on(volume).into_iter().filter(waits);
        holders.find_map(|holder| core.reserves.held_by_disk(core.latest, holder))
    }

    /// Of a ring with a writer: what it gives up ahead of that.
    fn given_up_ahead(&self, volume: &Volume) -> Option<Bytes> {
        let writer = self.streams.writer_of(volume.id()).filter(|_| volume.is_ring())?;
        let stream = self.streams.get(writer)?;
        let window = stream.window.memory(&stream.contract);
        Some(rings::given_up(&stream.contract, window, sync_max(&self.core.config)))
    }

    pub(crate) fn volume_status(&self, volume: &Volume) -> VolumeStatus {
        self.status_of(volume, &Overdue::default())
    }

    fn status_of(&self, volume: &Volume, overdue: &Overdue) -> VolumeStatus {
        let core = &self.core;
        let (service, account) = core.services.of(volume.id().into());
        let mut handles = core.handles_on(volume.id());
        for one in &mut handles {
            let holder = Holder { volume: volume.id(), handle: Some(one.handle) };
            one.account = overdue.with_service(holder, one.account);
        }
        let (operations, memory) = core.reserves.of(volume.id().into());
        VolumeStatus {
            id: volume.id(),
            name: String::from(volume.name()),
            times: volume.times(),
            recorded: recorded(volume),
            ownership: volume.ownership(),
            size: volume.size(),
            taken: volume.taken(),
            length: volume.length().max(self.best_effort.recorded_behind(volume.id())),
            start: volume.is_ring().then(|| volume.start()),
            keep: volume.keep(),
            ahead: self.given_up_ahead(volume),
            changes: core.writes.changes_of(volume.id()),
            placement: volume.placement().clone(),
            extents: core.disks.iter().map(|disk| volume.taken_on(disk.index)).collect(),
            stretches: volume.stretches(),
            streams: self.streams.count_on(volume.id()) as u64,
            service,
            given_by: volume.service().map(|service| service.given_by),
            kept_out: self.kept_out_of(volume.id()),
            account: overdue.with_service(volume.id().into(), account),
            shares: core.services.shares(volume.id().into()),
            operations,
            memory,
            memory_held: self.memory_held(volume.id()),
            from_memory: core.writes.served(volume.id()),
            handles,
            promised: core.promises() && !matches!(service, Service::BestEffort(_)),
        }
    }
}

fn recorded(volume: &Volume) -> Option<(i64, i64, i64)> {
    let recorded = volume.recorded();
    Some((recorded.begins(volume.start())?, recorded.ends()?, recorded.within()))
}

impl Node {
    /// When the bytes of a volume were recorded; none where there is no such volume.
    pub fn recorded(&self, name: &str) -> Option<Recorded> {
        self.core.store.find(name).map(|volume| volume.recorded().clone())
    }
}

impl crate::core::Core {
    /// One disk, but for its slack, which has to be searched.
    fn disk_status(&self, now: Instant, disk: &crate::core::Disk) -> DiskStatus {
        let counts = disk.queue.schedule().counts();
        let oldest = disk.queue.oldest().map(|oldest| OldestCommand {
            age: now.saturating_since(oldest.given),
            bound: oldest.bound,
        });
        DiskStatus {
            disk: disk.index,
            capacity: disk.queue.capacity(),
            free: self.store.space_on(disk.index).free,
            utilisation_ppm: disk.queue.tasks().utilisation().ppm(),
            slack: Duration::ZERO,
            waiting_real_time: counts.waiting_real_time,
            waiting_best_effort: counts.waiting_best_effort,
            account: disk.queue.account_at(now),
            oldest,
            host_errors: disk.host_errors,
            observed: disk.queue.seen().observed(),
            moves: self.moves_on(disk.index),
            measured: self.measuring.told(disk.index),
            profile_for_next_start: disk.profile_for_next_start,
            bus: disk.queue.profile().bus.clone(),
            gaps: disk.queue.gaps(),
            gap_refused: disk.gap_refused.as_ref().map(|(_, error)| Box::new(error.clone())),
            chunk: disk.queue.chunks().map(|chunks| chunks.len),
            odds: OddsStatus {
                requests: disk.queue.odds().requests(),
                late: disk.queue.odds().late(),
                broken: disk.queue.odds().broken(),
            },
        }
    }
}
