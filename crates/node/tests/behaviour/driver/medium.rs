//! A disk of memory: what was written, what of it is on the medium, what it fails on, and
//! how long it takes.

use node::{CommandId, DeviceError, DiskAction, DiskCommand};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use units::{Bytes, Direction, Duration, Instant};

const PAGE: u64 = 4096;
/// What memory holds while a disk reads into it, and what of a failed write is on the disk.
const GARBAGE: u8 = 0xEE;

/// Bytes by their place, zero where nothing was put.
#[derive(Clone, Debug, Default)]
pub struct Pages(BTreeMap<u64, Vec<u8>>);

impl Pages {
    pub fn get(&self, at: Bytes, len: Bytes) -> Vec<u8> {
        let mut bytes = vec![0; len.as_usize()];
        for (page, within, place) in parts(at, len) {
            if let Some(from) = self.0.get(&page) {
                bytes[place.clone()].copy_from_slice(&from[within..within + place.len()]);
            }
        }
        bytes
    }

    pub fn put(&mut self, at: Bytes, bytes: &[u8]) {
        for (page, within, place) in parts(at, Bytes::new(bytes.len() as u64)) {
            let to = self.0.entry(page).or_insert_with(|| vec![0; PAGE as usize]);
            to[within..within + place.len()].copy_from_slice(&bytes[place]);
        }
    }
}

/// The pages of a range: which, from where in it, and which part of the range.
fn parts(at: Bytes, len: Bytes) -> impl Iterator<Item = (u64, usize, Range<usize>)> {
    let (at, end) = (at.get(), at.get() + len.get());
    (at / PAGE..end.div_ceil(PAGE)).filter_map(move |page| {
        let (from, to) = (at.max(page * PAGE), end.min((page + 1) * PAGE));
        let place = (from - at) as usize..(to.max(from) - at) as usize;
        (from < to).then_some((page, (from % PAGE) as usize, place))
    })
}

/// A command that the disk has.
#[derive(Clone, Debug)]
pub struct Flight {
    pub command: DiskCommand,
    pub started: Instant,
    pub finished: Instant,
    /// What it writes, as memory was when it began.
    bytes: Vec<u8>,
}

/// Something the disk does to certain commands.
#[derive(Clone, Debug)]
pub struct Trouble {
    pub at: Range<Bytes>,
    /// None: either. A flush has no place: see `flushes_fail`.
    pub direction: Option<Direction>,
    /// Fails with this errno.
    pub error: Option<i32>,
    /// Takes longer by so much.
    pub extra: Duration,
}

/// One disk.
#[derive(Clone, Debug, Default)]
pub struct MemoryDisk {
    pub capacity: Bytes,
    /// Commands that it has at a time.
    pub depth: u32,
    /// What reads give.
    written: Pages,
    /// What is there after a power cut.
    medium: Pages,
    /// Written since the last flush.
    volatile: BTreeSet<(Bytes, Bytes)>,
    pub flights: BTreeMap<CommandId, Flight>,
    pub troubles: Vec<Trouble>,
    /// Begins commands and does not end them.
    pub holds: bool,
    /// Each flush takes so long.
    pub flush_takes: Option<Duration>,
    /// Flushes fail, and what they should have brought to the medium is not there.
    pub flushes_fail: bool,
}

impl MemoryDisk {
    pub fn new(capacity: Bytes, depth: u32) -> Self {
        Self { capacity, depth, ..Self::default() }
    }

    pub fn read(&self, at: Bytes, len: Bytes) -> Vec<u8> {
        self.written.get(at, len)
    }

    pub fn write(&mut self, at: Bytes, bytes: &[u8]) {
        self.written.put(at, bytes);
        self.volatile.insert((at, Bytes::new(bytes.len() as u64)));
    }

    pub fn flush(&mut self) {
        for (at, len) in std::mem::take(&mut self.volatile) {
            self.medium.put(at, &self.written.get(at, len));
        }
    }

    /// All that was not flushed is gone.
    pub fn cut_power(&mut self) {
        self.written = self.medium.clone();
        self.volatile.clear();
        self.flights.clear();
    }

    fn trouble(&self, action: &DiskAction) -> Option<&Trouble> {
        let (range, direction) = action.transfer()?;
        self.troubles.iter().find(|trouble| {
            trouble.at.start < range.end
                && range.start < trouble.at.end
                && trouble.direction.is_none_or(|only| only == direction)
        })
    }

    /// Begins a command.
    pub fn begin(&mut self, now: Instant, memory: &mut Pages, command: DiskCommand) {
        let mut takes = command.predicted;
        let mut bytes = Vec::new();
        match &command.action {
            DiskAction::Flush => takes = self.flush_takes.unwrap_or(takes),
            DiskAction::Write { span, .. } => bytes = memory.get(span.offset, span.len),
            DiskAction::Read { span, .. } => {
                memory.put(span.offset, &vec![GARBAGE; span.len.as_usize()]);
            }
            DiskAction::Several { direction, spans, .. } => {
                for span in spans {
                    match direction {
                        Direction::Read => {
                            memory.put(span.offset, &vec![GARBAGE; span.len.as_usize()]);
                        }
                        Direction::Write => bytes.extend(memory.get(span.offset, span.len)),
                    }
                }
            }
            DiskAction::WriteBytes { bytes: own, .. } => bytes = own.clone(),
            DiskAction::Merge { .. } => {}
            DiskAction::Copy { from, span, .. } => {
                bytes = memory.get(from.offset, from.len);
                memory.put(span.offset, &vec![GARBAGE; span.len.as_usize()]);
            }
        }
        takes += self.trouble(&command.action).map_or(Duration::ZERO, |trouble| trouble.extra);
        let flight = Flight { started: now, finished: now + takes, bytes, command };
        self.flights.insert(flight.command.id, flight);
    }

    /// Ends a command: what it did, and whether it went well.
    pub fn end(&mut self, memory: &mut Pages, flight: &Flight) -> Result<(), DeviceError> {
        let action = &flight.command.action;
        let error = self.trouble(action).and_then(|trouble| trouble.error);
        if let Some(error) = error {
            if let Some((range, Direction::Write)) = action.transfer() {
                let half = ((range.end - range.start) / 2).as_usize();
                self.write(range.start, &vec![GARBAGE; half]);
            }
            return Err(DeviceError(error));
        }
        match action {
            DiskAction::Read { offset, span, written } => {
                memory.put(span.offset, &vec![0; span.len.as_usize()]);
                for run in written.runs() {
                    let bytes = self.read(*offset + run.start, run.end - run.start);
                    memory.put(span.offset + run.start, &bytes);
                }
            }
            DiskAction::Copy { from, offset, span, written } => {
                let then = &flight.bytes;
                assert!(memory.get(from.offset, from.len) == *then, "changed while it is copied");
                let mut disks = vec![0; span.len.as_usize()];
                for run in written.runs() {
                    let bytes = self.read(*offset + run.start, run.end - run.start);
                    disks[run.start.as_usize()..run.end.as_usize()].copy_from_slice(&bytes);
                }
                assert!(disks == *then, "memory has other bytes than the disk: {action:?}");
                memory.put(span.offset, then);
            }
            DiskAction::Merge { offset, span, keep, upto } => {
                let mut bytes = self.read(*offset, *upto);
                bytes.resize(span.len.as_usize(), 0);
                let kept = memory.get(span.offset + keep.start, keep.end - keep.start);
                bytes[keep.start.as_usize()..keep.end.as_usize()].copy_from_slice(&kept);
                memory.put(span.offset, &bytes);
            }
            DiskAction::Write { offset, span, valid } => {
                let now = memory.get(span.offset, *valid);
                let then = &flight.bytes[..valid.as_usize()];
                assert!(now == then, "memory has changed under a write: {action:?}");
                self.write(*offset, &flight.bytes);
            }
            DiskAction::Several { offset, direction: Direction::Read, spans } => {
                let mut at = *offset;
                for span in spans {
                    memory.put(span.offset, &self.read(at, span.len));
                    at += span.len;
                }
            }
            DiskAction::Several { offset, spans, .. } => {
                let now = spans.iter().flat_map(|span| memory.get(span.offset, span.len));
                assert!(now.eq(flight.bytes.iter().copied()), "memory has changed under a write");
                self.write(*offset, &flight.bytes);
            }
            DiskAction::WriteBytes { offset, .. } => self.write(*offset, &flight.bytes),
            DiskAction::Flush if self.flushes_fail => return Err(DeviceError(5)),
            DiskAction::Flush => self.flush(),
        }
        Ok(())
    }
}
