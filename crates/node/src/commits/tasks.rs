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

/// What the log has to write, and what its contracts hold.
#[derive(Clone, Debug)]
pub(crate) struct Log {
    /// The extents that the writer of a volume may come to between two commits.
    writers: BTreeMap<VolumeId, u64>,
    pub extents: u64,
    /// What the contracts hold.
    pub size: Bytes,
}

impl Default for Log {
    fn default() -> Self {
        Self { writers: BTreeMap::new(), extents: 0, size: limits::METADATA_PIECE }
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
            lengths: self.writers.len() as u64 + limits::RECORD_EXTENTS,
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
    /// From now on the writer of a volume may come to so many extents. Gives what it was.
    pub(crate) fn note(&mut self, volume: VolumeId, extents: Option<u64>) -> Option<u64> {
        let before = match extents {
            Some(extents) => self.writers.insert(volume, extents),
            None => self.writers.remove(&volume),
        };
        self.extents = self.extents - before.unwrap_or(0) + extents.unwrap_or(0);
        before
    }
}

impl LogWrite {
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
        let next = queue.schedule().next_release(self.id);
        self.put_off = Some((next, could));
        if next > could + at_most { Err(undecided(queue.tasks())) } else { Ok(()) }
    }
}

pub(crate) fn undecided(tasks: &TaskSet) -> sched::Refusal {
    let utilisation_ppm = tasks.utilisation().ppm();
    sched::Refusal { utilisation_ppm, deadline: None, undecided: true }
}
