//! The metadata log: what is written, in which order, to which area.
//!
//! Every disk carries the same log. On each, one area is *current*: its
//! checkpoint and the records behind it are the state. The other one, the
//! *twin*, holds a checkpoint with the same content as the current one's, so
//! that a damaged checkpoint on a single disk is no loss. Each record is written
//! twice in a row for the same reason.
//!
//! Invariants: at every moment, on every disk, one area holds a whole
//! checkpoint whose records are all that was ever acknowledged; generations grow
//! with every checkpoint and sequence numbers with every record and every pair
//! of checkpoints, and neither is ever used for two different contents.

use crate::api::{DiskIndex, Id};
use crate::format;
use crate::geometry::{Area, Geometry};
use crate::steps::{Steps, Task};
use crate::structure::{Kind, Owner, Payload, Stamp, Structure};
use alloc::vec;
use alloc::vec::Vec;
use units::Bytes;

/// The log on one disk.
#[derive(Clone, Debug)]
pub(crate) struct LogDisk {
    pub(crate) owner: Owner,
    pub(crate) geometry: Geometry,
    /// The current area; until the first checkpoint, the one to be written last.
    pub(crate) area: Area,
}

/// The end of the log, where it is appended to.
#[derive(Clone, Debug)]
pub(crate) struct Log {
    disks: Vec<LogDisk>,
    generation: u64,
    sequence: u64,
    base: u64,
    /// Every disk holds this sequence number or a higher one when the next write begins.
    held: u64,
    /// How much of the current area's log is used.
    used: Bytes,
}

impl Log {
    /// A log that begins with the next checkpoint; generations and sequence
    /// numbers up to these were used before, and every disk holds `held`.
    pub(crate) fn new(disks: Vec<LogDisk>, generation: u64, sequence: u64, held: u64) -> Self {
        Self { disks, generation, sequence, base: sequence, held, used: Bytes::ZERO }
    }
    pub(crate) fn owner(pool: Id, disk: Id) -> Owner {
        Owner { pool, disk }
    }
    pub(crate) fn disks(&self) -> impl Iterator<Item = DiskIndex> + use<> {
        (0..self.disks.len()).map(DiskIndex::new)
    }
    fn each(&self) -> impl Iterator<Item = (DiskIndex, &LogDisk)> {
        self.disks().zip(&self.disks)
    }
    /// Room for a checkpoint on every disk.
    pub(crate) fn checkpoint_size(&self) -> Bytes {
        self.disks[0].geometry.checkpoint_size()
    }
    /// Appends a record to every disk, then flushes every disk. False, and
    /// nothing happens, where it does not fit.
    #[must_use]
    pub(crate) fn append(&mut self, payload: &Payload, steps: &mut Steps) -> bool {
        let size = payload.size();
        let used = self.used + Bytes::new(size as u64) * 2;
        if used > self.disks[0].geometry.records_size() {
            return false;
        }
        self.sequence += 1;
        let stamp = Stamp {
            generation: self.generation,
            parent: self.generation - 1,
            sequence: self.sequence,
            base: self.base,
        };
        steps.push(self.each().map(|(index, disk)| {
            let at = disk.geometry.log(disk.area) + self.used;
            let copy =
                |at| Structure::new(Kind::Record, disk.owner, stamp, at, payload.clone()).bytes();
            let bytes = [copy(at), copy(at + Bytes::new(size as u64))].concat();
            (index, Task::Write(at, bytes))
        }));
        steps.push_flush(self.disks());
        self.used = used;
        self.held = self.sequence;
        true
    }
    /// Replaces the log by a checkpoint, in both areas, one after the other: at
    /// no moment is there a disk without a whole one.
    pub(crate) fn checkpoint(&mut self, payload: &Payload, steps: &mut Steps) {
        self.sequence += 1;
        self.base = self.sequence;
        self.used = Bytes::ZERO;
        for twin in [true, false] {
            self.generation += 1;
            let stamp = Stamp {
                generation: self.generation,
                parent: self.generation - u64::from(!twin),
                sequence: self.sequence,
                base: if twin { self.held } else { self.base },
            };
            steps.push(self.each().map(|(index, disk)| {
                let area = if twin { disk.area.other() } else { disk.area };
                let at = disk.geometry.checkpoint(area);
                let kind = Kind::Checkpoint;
                let structure = Structure::new(kind, disk.owner, stamp, at, payload.clone());
                (index, Task::Structure(at, structure))
            }));
            steps.push_flush(self.disks());
        }
        self.held = self.sequence;
        self.seal(steps);
    }
    /// Says in the twin that the current generation was durable, so that its
    /// loss is never taken for its not having been there yet. Nothing waits for
    /// this: it is durable with the next flush.
    fn seal(&self, steps: &mut Steps) {
        let mut payload = vec![0; format::seal::LEN];
        format::seal::SUCCESSOR.put(&mut payload, self.generation);
        let payload = Payload::new(payload);
        let stamp = Stamp {
            generation: self.generation - 1,
            parent: self.generation - 1,
            sequence: self.sequence,
            base: self.base,
        };
        steps.push(self.each().map(|(index, disk)| {
            let at = disk.geometry.seal(disk.area.other());
            let seal = Structure::new(Kind::Seal, disk.owner, stamp, at, payload.clone());
            (index, Task::Write(at, seal.bytes()))
        }));
    }
}
