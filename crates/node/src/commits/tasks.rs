//! What the metadata log has to write, and its contracts on a disk (`contract.rs` has how
//! they grow and shrink).
//!
//! Invariant: every disk has the same number of write contracts, for pieces of the same
//! length; together they hold [`Log::size`] bytes.

use crate::admission::contract;
use crate::api::*;
use crate::limits;
use crate::work::DiskQueue;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use sched::{Schedule, Task, TaskId, TaskSet};
use store::{EXTENT, RecordContent, VolumeId};
use units::{Bytes, Duration, Instant};

/// The contracts on one disk.
#[derive(Clone, Debug)]
pub(crate) struct LogTasks {
    pub flush: TaskId,
    pub writes: Vec<LogWrite>,
}

/// One contract for writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogWrite {
    pub id: TaskId,
    /// When it may release its next write since it last grew, and when it could have if it
    /// had not.
    pub put_off: Option<(Instant, Instant)>,
}

impl LogTasks {
    pub(crate) fn new(flush: TaskId, write: TaskId) -> Self {
        Self { flush, writes: Vec::from([LogWrite { id: write, put_off: None }]) }
    }
    /// How many contracts.
    pub(crate) fn len(&self) -> usize {
        1 + self.writes.len()
    }
    pub(crate) fn ids_mut(&mut self) -> impl Iterator<Item = &mut TaskId> {
        self.writes.iter_mut().map(|write| &mut write.id).chain([&mut self.flush])
    }
    pub(crate) fn ids(&self) -> impl Iterator<Item = TaskId> {
        self.writes.iter().map(|write| write.id).chain([self.flush])
    }
    /// The contract that may release a write first.
    pub(crate) fn next_write(&self, schedule: &Schedule) -> TaskId {
        let ids = self.writes.iter().map(|write| write.id);
        ids.min_by_key(|&id| schedule.next_release(id)).expect("the log has a contract")
    }
}

/// What the writer of a volume adds to records: what it may come to between two commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Adds {
    pub extents: u64,
    /// Places that extents of a thin volume get.
    pub placed: u64,
}

/// What the log has to write, and what its contracts hold.
#[derive(Clone, Debug)]
pub(crate) struct Log {
    writers: BTreeMap<VolumeId, Adds>,
    pub extents: u64,
    placed: u64,
    /// What the contracts hold.
    pub size: Bytes,
}

impl Default for Log {
    fn default() -> Self {
        let (extents, placed) = (0, 0);
        Self { writers: BTreeMap::new(), extents, placed, size: limits::METADATA_PIECE }
    }
}

/// Extents that a writer on so many disks may come to between two commits: in all of the
/// window, for a host that is so `late`, and what passes at its rate, from the middle of an
/// extent on.
pub(crate) fn extents_of(
    contract: &Contract,
    mode: Mode,
    (disks, run): (usize, Bytes),
    interval: Duration,
    late: Duration,
) -> u64 {
    // At the worst a run that is alone on its disk, of a volume of nearly two rounds.
    let gap = disks as u64 * 2 - 1;
    let in_a_row = (run / contract.block).max(1);
    let window = contract.block * contract::blocks_of(contract, (gap, in_a_row), mode, late);
    let passes = contract.rate.bytes_in(interval.saturating_mul(limits::COMMITS_APART));
    window.checked_add(passes).unwrap_or(Bytes::MAX).div_ceil(EXTENT) + 1
}

impl Log {
    /// The longest record there can be, in bytes on each disk: of all writers, and of the best
    /// effort and the changes that a record has room for.
    pub(crate) fn record(&self) -> Bytes {
        let content = RecordContent {
            changes: limits::RECORD_CHANGES,
            extents: self.extents + limits::RECORD_EXTENTS,
            placed: self.placed,
            lengths: self.writers.len() as u64 + limits::RECORD_EXTENTS,
            recorded: self.writers.len() as u64,
        };
        content.size_max()
    }
    /// What the contracts should hold: one write of some pieces, or several of the longest,
    /// as the store hands a long record out.
    pub(crate) fn wanted(&self) -> Bytes {
        let (piece, most) = (limits::METADATA_PIECE, limits::METADATA_COMMAND_MAX);
        let record = self.record();
        record.round_up(if record > most { most } else { piece })
    }
    /// How many writes of which length hold `size` bytes.
    pub(crate) fn pieces_of(size: Bytes) -> (usize, Bytes) {
        let most = limits::METADATA_COMMAND_MAX;
        (size.div_ceil(most) as usize, size.min(most))
    }
    /// The longest single write.
    pub(crate) fn piece(&self) -> Bytes {
        Self::pieces_of(self.size).1
    }
    /// From now on the writer of a volume may come to so much. Gives what it was.
    pub(crate) fn note(&mut self, volume: VolumeId, adds: Option<Adds>) -> Option<Adds> {
        let before = match adds {
            Some(adds) => self.writers.insert(volume, adds),
            None => self.writers.remove(&volume),
        };
        let (less, more) = (before.unwrap_or_default(), adds.unwrap_or_default());
        self.extents = self.extents - less.extents + more.extents;
        self.placed = self.placed - less.placed + more.placed;
        before
    }
}

impl LogWrite {
    /// A further contract. Refused, too, where its first write would be put off by more than
    /// `at_most`.
    pub(crate) fn join(
        queue: &mut DiskQueue,
        now: Instant,
        task: Task,
        at_most: Duration,
    ) -> Result<Self, sched::Refusal> {
        let mut write = Self { id: queue.join(now, task)?, put_off: None };
        write.note_put_off(queue, now, at_most)?;
        Ok(write)
    }

    /// Puts `task` in the place of the contract. Refused, too, where the next write would be
    /// put off by more than `at_most` for it, also over several changes.
    pub(crate) fn change(
        &mut self,
        queue: &mut DiskQueue,
        now: Instant,
        task: Task,
        at_most: Duration,
    ) -> Result<(), sched::Refusal> {
        let before = queue.schedule().next_release(self.id);
        let could = match self.put_off {
            Some((put_off, could)) if put_off == before && before > now => could,
            _ => before.max(now),
        };
        queue.change(now, self.id, task)?;
        self.note_put_off(queue, could, at_most)
    }

    fn note_put_off(
        &mut self,
        queue: &DiskQueue,
        could: Instant,
        at_most: Duration,
    ) -> Result<(), sched::Refusal> {
        let next = queue.schedule().next_release(self.id);
        self.put_off = Some((next, could));
        if next > could + at_most { Err(undecided(queue.tasks())) } else { Ok(()) }
    }
}

fn undecided(tasks: &TaskSet) -> sched::Refusal {
    let utilisation_ppm = tasks.utilisation().ppm();
    sched::Refusal::undecided(utilisation_ppm)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::work::{Owner, Work, as_command};
    use alloc::boxed::Box;
    use disk::{Model, Profile};
    use queue::{Device, Use};
    use sched::{Class, Request};

    const NOW: Instant = Instant::from_nanos(35_000_000);

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// A contract of the log: due 30 ms after its release.
    fn write(cost: Duration) -> Task {
        Task::new(ms(100), ms(30), cost)
    }

    /// A disk that has stood still for 35 ms, with six commands of 10 ms each waiting that are
    /// due 65 ms from now.
    fn behind() -> DiskQueue {
        let profile = Profile::of(&Model::named("laptop-4200").unwrap());
        let (capacity, advance, patience) = (profile.capacity(), Duration::ZERO, Duration::MAX);
        let device = Device { profile, capacity, advance, patience, usage: Use::Alone };
        let (burst, reserve) = (Duration::ZERO, Duration::ZERO);
        let options = sched::Options { burst, reserve, ..sched::Options::default() };
        let mut queue = DiskQueue::new(device, Schedule::new(Policy::SLACK, options), []);
        for key in 0..6 {
            let id = queue.join(Instant::EPOCH, Task::new(ms(100), ms(100), ms(10))).unwrap();
            let (offset, len) = (Bytes::mib(key), Bytes::kib(64));
            let span = Span { offset: Bytes::ZERO, len };
            let action = DiskAction::Read { offset, span, written: Blocks::first(len).into() };
            let request = Request { class: Class::RealTime(id), command: as_command(&action) };
            queue.submit(Instant::EPOCH, key, request, Work::new(Owner::Measure, action));
        }
        queue
    }

    type Asks = Box<dyn Fn(&mut DiskQueue, Duration) -> Result<(TaskId, Duration), sched::Refusal>>;

    /// By how much the next write of the log is put off; with as much allowed it is taken, with a
    /// nanosecond less it is refused for the moment.
    fn put_off(queue: &DiskQueue, asks: &Asks) -> Duration {
        let ask = |at_most| asks(&mut queue.clone(), at_most);
        let (_, put_off) = ask(ms(1_000)).unwrap();
        assert_eq!(ask(put_off).unwrap().1, put_off);
        if put_off > Duration::ZERO {
            let refused = ask(put_off - Duration::from_nanos(1)).unwrap_err();
            assert!(refused.undecided, "{refused:?}");
        }
        put_off
    }

    #[test]
    fn a_further_contract_is_refused_where_its_first_write_would_come_too_late() {
        let asks: Asks = Box::new(|queue, at_most| {
            let write = LogWrite::join(queue, NOW, write(ms(10)), at_most)?;
            Ok((write.id, queue.schedule().next_release(write.id) - NOW))
        });
        assert!(put_off(&behind(), &asks) > ms(20));
    }

    #[test]
    fn a_longer_contract_is_refused_where_its_next_write_would_come_too_late() {
        let mut queue = behind();
        let first = LogWrite::join(&mut queue, Instant::EPOCH, write(ms(1)), ms(0)).unwrap();
        let asks: Asks = Box::new(move |queue, at_most| {
            let mut one = first;
            // In two steps: what the first has put it off by counts.
            one.change(queue, NOW, write(ms(10)), ms(1_000))?;
            one.change(queue, NOW, write(ms(19)), at_most)?;
            Ok((one.id, queue.schedule().next_release(one.id) - NOW))
        });
        assert!(put_off(&queue, &asks) > ms(20));
    }
}
