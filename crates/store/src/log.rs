//! The metadata log: what is written, in which order, to which area.
//!
//! Every disk carries the same log. On each, one area is *current*: its
//! checkpoint and the records behind it are the state. The other one, the
//! *twin*, holds what makes the same content as the current checkpoint: a checkpoint
//! of that content, or an older one and the records up to it. So
//! a damaged checkpoint on a single disk is no loss, but while the twin's place is
//! written over in parts (`building.rs`). Each record is written
//! twice in a row for the same reason.
//!
//! Invariants: at every moment, on every disk, one area holds a whole
//! checkpoint whose records are all that was ever acknowledged; generations grow
//! with every checkpoint and sequence numbers with every record and every pair
//! of checkpoints, and neither is ever used for two different contents.

use crate::api::{DiskIndex, Id};
use crate::building::{End, Part};
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
    /// Of the current checkpoint, and so of its records.
    parent: u64,
    base: u64,
    /// What the seal is stamped with that says that the current generation is durable, until
    /// it is written.
    seal: Option<Stamp>,
    /// Every disk holds this sequence number or a higher one when the next write begins.
    held: u64,
    /// How much of the current area's log is used.
    used: Bytes,
}

impl Log {
    /// A log that begins with the next checkpoint; generations and sequence
    /// numbers up to these were used before, and every disk holds `held`.
    pub(crate) fn new(disks: Vec<LogDisk>, generation: u64, sequence: u64, held: u64) -> Self {
        let (parent, base, used) = (generation, sequence, Bytes::ZERO);
        Self { disks, generation, sequence, parent, base, seal: None, held, used }
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
    /// Bytes of the current area's log that are free.
    pub(crate) fn free(&self) -> Bytes {
        self.records_size() - self.used
    }
    /// Bytes of a log region that records may use.
    pub(crate) fn records_size(&self) -> Bytes {
        self.disks[0].geometry.records_size()
    }
    /// True where a record of this size, header and padding included, fits behind the others.
    pub(crate) fn fits(&self, size: usize) -> bool {
        Bytes::new(size as u64) * 2 <= self.free()
    }
    /// Appends a record to every disk, and beside it a part of the next checkpoint, then
    /// flushes every disk. It must fit.
    pub(crate) fn append(&mut self, payload: &Payload, part: Option<&Part>, steps: &mut Steps) {
        let size = payload.size();
        assert!(self.fits(size), "a record that does not fit");
        let held = self.held;
        self.sequence += 1;
        let stamp = Stamp {
            generation: self.generation,
            parent: self.parent,
            sequence: self.sequence,
            base: self.base,
        };
        let records = self.each().map(|(index, disk)| {
            let at = disk.geometry.log(disk.area) + self.used;
            let copy =
                |at| Structure::new(Kind::Record, disk.owner, stamp, at, payload.clone()).bytes();
            let bytes = [copy(at), copy(at + Bytes::new(size as u64))].concat();
            (index, Task::Write(at, bytes))
        });
        let mut tasks: Vec<_> = records.collect();
        self.used += Bytes::new(size as u64) * 2;
        if let Some(seal) = self.seal.take() {
            tasks.extend(self.seal_tasks(seal));
        }
        if let Some(part) = part.filter(|part| !part.bytes.is_empty()) {
            let write = |(index, disk): (DiskIndex, &LogDisk)| {
                let at = disk.geometry.checkpoint(disk.area.other()) + part.at;
                (index, Task::Write(at, part.bytes.clone()))
            };
            tasks.extend(self.each().map(write));
        }
        if let Some(end) = part.and_then(|part| part.end.as_ref()) {
            self.go_over(end, held, &mut tasks);
        }
        steps.push(tasks);
        steps.push_flush(self.disks());
        self.held = self.sequence;
    }
    /// The first block of the checkpoint in the other area makes it whole: with the step that
    /// writes it, it is the current one. It has the number of the record that is written with
    /// it, and its content has that record. Nothing has to be written into the area that is
    /// left: its checkpoint and its records make the same content.
    fn go_over(&mut self, end: &End, held: u64, tasks: &mut Vec<(DiskIndex, Task)>) {
        let left = Stamp {
            generation: self.generation,
            parent: self.generation,
            sequence: self.sequence,
            base: held,
        };
        self.generation += 1;
        let stamp = Stamp { generation: self.generation, parent: self.generation, ..left };
        for (index, disk) in self.disks.iter_mut().enumerate() {
            disk.area = disk.area.other();
            let at = disk.geometry.checkpoint(disk.area);
            let of = (end.length, end.checksum);
            let header = Structure::header(Kind::Checkpoint, disk.owner, stamp, at, of);
            let block = [&header[..], &end.first[..]].concat();
            tasks.push((DiskIndex::new(index), Task::Write(at, block)));
        }
        self.parent = self.generation;
        self.base = held;
        self.used = Bytes::ZERO;
        self.seal = Some(left);
    }
    /// Replaces the log by a checkpoint, in both areas, one after the other: at
    /// no moment is there a disk without a whole one. The seal is written with the next
    /// record, or by [`Log::write_seal`].
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
        self.parent = self.generation - 1;
        self.seal = Some(Stamp {
            generation: self.generation - 1,
            parent: self.generation - 1,
            sequence: self.sequence,
            base: self.base,
        });
    }
    /// Writes the seal that is owed, if any. Nothing waits for this: it is durable with the
    /// next flush.
    pub(crate) fn write_seal(&mut self, steps: &mut Steps) {
        if let Some(seal) = self.seal.take() {
            let tasks: Vec<_> = self.seal_tasks(seal).collect();
            steps.push(tasks);
        }
    }
    /// Says in the area that is not current that the current generation was durable, so that
    /// its loss is never taken for its not having been there yet.
    fn seal_tasks(&self, stamp: Stamp) -> impl Iterator<Item = (DiskIndex, Task)> {
        let mut payload = vec![0; format::seal::LEN];
        format::seal::SUCCESSOR.put(&mut payload, self.generation);
        let payload = Payload::new(payload);
        self.each().map(move |(index, disk)| {
            let at = disk.geometry.seal(disk.area.other());
            let seal = Structure::new(Kind::Seal, disk.owner, stamp, at, payload.clone());
            (index, Task::Write(at, seal.bytes()))
        })
    }
}
