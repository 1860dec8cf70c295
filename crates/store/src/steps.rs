//! I/O in steps: all of one step may run at once, and the next one begins when
//! all of it has ended. The order of writes and flushes, on which crash safety
//! rests, is nothing but the order of steps.

use crate::api::{DiskIndex, IO_MAX, Io, IoError, IoId, IoKind};
use crate::structure::Structure;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec;
use alloc::vec::Vec;
use units::Bytes;

/// One thing to do on one disk; longer than one I/O, perhaps.
#[derive(Clone, Debug)]
pub(crate) enum Task {
    /// Write these bytes at an offset.
    Write(Bytes, Vec<u8>),
    /// Write this structure at an offset, in pieces.
    Structure(Bytes, Structure),
    /// Write zeros: offset and length.
    Zeros(Bytes, Bytes),
    /// Flush the disk.
    Flush,
}

impl Task {
    /// The I/O for the part of the task that begins at byte `from`, and how long it is.
    fn piece(&self, from: usize) -> (IoKind, usize) {
        let max = IO_MAX.as_usize();
        let (offset, bytes) = match self {
            Self::Flush => return (IoKind::Flush, 1),
            Self::Write(offset, bytes) => {
                (*offset, bytes[from..bytes.len().min(from + max)].into())
            }
            Self::Structure(offset, structure) => (*offset, structure.piece(from, max)),
            Self::Zeros(offset, len) => (*offset, vec![0; (len.as_usize() - from).min(max)]),
        };
        let len = bytes.len();
        (IoKind::Write { offset: offset + Bytes::new(from as u64), bytes }, len)
    }
    fn len(&self) -> usize {
        match self {
            Self::Flush => 1,
            Self::Write(_, bytes) => bytes.len(),
            Self::Structure(_, structure) => structure.size(),
            Self::Zeros(_, len) => len.as_usize(),
        }
    }
}

/// The tasks of one step.
pub(crate) type Step = VecDeque<(DiskIndex, Task)>;

/// Hands out I/O step by step.
#[derive(Clone, Debug, Default)]
pub(crate) struct Steps {
    steps: VecDeque<Step>,
    /// How far the first task of the first step is handed out.
    from: usize,
    in_flight: BTreeMap<IoId, DiskIndex>,
    next: u64,
    failed: Option<(DiskIndex, IoError)>,
}

impl Steps {
    /// No steps yet; the first I/O gets this number.
    pub(crate) fn starting_at(next: u64) -> Self {
        Self { next, ..Self::default() }
    }
    /// Adds a step behind all others; one without tasks is none.
    pub(crate) fn push(&mut self, step: impl IntoIterator<Item = (DiskIndex, Task)>) {
        let step: Step = step.into_iter().collect();
        if !step.is_empty() {
            self.steps.push_back(step);
        }
    }
    /// Adds a step that flushes each of `disks`.
    pub(crate) fn push_flush(&mut self, disks: impl IntoIterator<Item = DiskIndex>) {
        self.push(disks.into_iter().map(|disk| (disk, Task::Flush)));
    }
    /// The next I/O that may run now.
    pub(crate) fn poll(&mut self) -> Option<Io> {
        if self.failed.is_some() {
            return None;
        }
        if self.steps.front()?.is_empty() {
            if !self.in_flight.is_empty() {
                return None;
            }
            self.steps.pop_front();
        }
        let step = self.steps.front_mut()?;
        let (disk, task) = step.front().expect("no step is pushed empty");
        let (disk, (kind, len)) = (*disk, task.piece(self.from));
        self.from += len;
        if self.from == task.len() {
            self.from = 0;
            step.pop_front();
        }
        let id = IoId(self.next);
        self.next += 1;
        self.in_flight.insert(id, disk);
        Some(Io { id, disk, kind })
    }
    /// The end of an I/O. After a failure nothing more is handed out.
    pub(crate) fn done(&mut self, id: IoId, result: Result<Vec<u8>, IoError>) {
        let disk = self.in_flight.remove(&id).expect("the end of an I/O that is not in flight");
        if let Err(error) = result {
            self.failed.get_or_insert((disk, error));
        }
    }
    /// True when every step has ended, or one failed and nothing is in flight.
    pub(crate) fn is_finished(&self) -> bool {
        let nothing_left = self.steps.iter().all(VecDeque::is_empty) || self.failed.is_some();
        self.in_flight.is_empty() && nothing_left
    }
    /// The first failure.
    pub(crate) fn failed(&self) -> Option<(DiskIndex, IoError)> {
        self.failed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(offset: u64, len: usize) -> Task {
        Task::Write(Bytes::new(offset), vec![7; len])
    }

    #[test]
    fn a_step_begins_when_all_of_the_one_before_has_ended() {
        let (a, b) = (DiskIndex(0), DiskIndex(1));
        let mut steps = Steps::default();
        steps.push([(a, write(0, 300 << 10)), (b, write(4096, 4096))]);
        steps.push([]);
        steps.push_flush([a, b]);
        let first: Vec<Io> = core::iter::from_fn(|| steps.poll()).collect();
        let places: Vec<_> = first
            .iter()
            .map(|io| match &io.kind {
                IoKind::Write { offset, bytes } => (io.disk, offset.get(), bytes.len()),
                _ => panic!("only writes in the first step"),
            })
            .collect();
        assert_eq!(places, [(a, 0, 256 << 10), (a, 256 << 10, 44 << 10), (b, 4096, 4096)]);
        for io in first {
            assert!(steps.poll().is_none() && !steps.is_finished());
            steps.done(io.id, Ok(Vec::new()));
        }
        let flushes: Vec<Io> = core::iter::from_fn(|| steps.poll()).collect();
        assert!(flushes.iter().all(|io| io.kind == IoKind::Flush) && flushes.len() == 2);
        steps.done(flushes[1].id, Ok(Vec::new()));
        steps.done(flushes[0].id, Err(IoError(5)));
        assert!(steps.poll().is_none() && steps.is_finished());
        assert_eq!(steps.failed(), Some((a, IoError(5))));
    }
}
