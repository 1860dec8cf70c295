//! Reading many ranges at once, and as much of each as the devices can.
//!
//! A transfer that fails is read again block by block, so that one bad sector
//! costs one block and not its neighbours.

use crate::api::{BLOCK, DiskIndex, IO_MAX, Io, IoError, IoId, IoKind};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use units::Bytes;

/// A range that was read.
#[derive(Clone, Debug)]
pub(crate) struct Range {
    pub(crate) device: DiskIndex,
    pub(crate) offset: Bytes,
    len: usize,
    /// What was read; zeros where the device failed.
    pub(crate) bytes: Vec<u8>,
    /// The blocks that the device could not read in the end, by their place on it.
    pub(crate) failed: BTreeMap<Bytes, IoError>,
}

#[derive(Clone, Copy, Debug)]
struct Piece {
    range: usize,
    from: usize,
    len: usize,
}

/// Ranges being read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reads {
    ranges: Vec<Range>,
    waiting: VecDeque<Piece>,
    in_flight: BTreeMap<IoId, Piece>,
    next: u64,
}

impl Reads {
    /// Asks for `len` bytes (a multiple of [`BLOCK`]).
    pub(crate) fn want(&mut self, device: DiskIndex, offset: Bytes, len: Bytes) {
        let range = self.ranges.len();
        let len = len.as_usize();
        for from in (0..len).step_by(IO_MAX.as_usize()) {
            self.waiting.push_back(Piece { range, from, len: IO_MAX.as_usize().min(len - from) });
        }
        self.ranges.push(Range { device, offset, len, bytes: Vec::new(), failed: BTreeMap::new() });
    }
    pub(crate) fn poll(&mut self) -> Option<Io> {
        let piece = self.waiting.pop_front()?;
        let id = IoId(self.next);
        self.next += 1;
        self.in_flight.insert(id, piece);
        let range = &self.ranges[piece.range];
        let offset = range.offset + Bytes::new(piece.from as u64);
        let kind = IoKind::Read { offset, len: Bytes::new(piece.len as u64) };
        Some(Io { id, disk: range.device, kind })
    }
    pub(crate) fn done(&mut self, id: IoId, result: Result<Vec<u8>, IoError>) {
        let piece = self.in_flight.remove(&id).expect("the end of an I/O that is not in flight");
        let range = &mut self.ranges[piece.range];
        if let Ok(bytes) = &result {
            assert_eq!(bytes.len(), piece.len, "a read gave other bytes than were asked for");
        }
        match result {
            // Mostly a range is one piece, and is taken as it is.
            Ok(bytes) if bytes.len() == range.len => range.bytes = bytes,
            Ok(bytes) => {
                range.bytes.resize(range.len, 0);
                range.bytes[piece.from..piece.from + piece.len].copy_from_slice(&bytes);
            }
            Err(_) if piece.len > BLOCK.as_usize() => {
                let len = BLOCK.as_usize();
                let blocks = (piece.from..piece.from + piece.len).step_by(len);
                self.waiting.extend(blocks.map(|from| Piece { from, len, ..piece }));
            }
            Err(error) => {
                range.bytes.resize(range.len, 0);
                range.failed.insert(range.offset + Bytes::new(piece.from as u64), error);
            }
        }
    }
    pub(crate) fn is_finished(&self) -> bool {
        self.waiting.is_empty() && self.in_flight.is_empty()
    }
    /// The ranges in the order in which they were asked for; more can be asked for afterwards.
    pub(crate) fn take(&mut self) -> Vec<Range> {
        assert!(self.is_finished(), "ranges are still being read");
        core::mem::take(&mut self.ranges)
    }
    /// The number that the next I/O gets.
    pub(crate) fn next_id(&self) -> u64 {
        self.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every block of the disk holds its number, and block 70 cannot be read.
    fn disk(offset: Bytes, len: Bytes) -> Result<Vec<u8>, IoError> {
        let blocks = offset / BLOCK..(offset + len) / BLOCK;
        if blocks.contains(&70) {
            return Err(IoError(5));
        }
        Ok(blocks.flat_map(|block| [block as u8; BLOCK.get() as usize]).collect())
    }

    #[test]
    fn one_bad_sector_costs_one_block() {
        let mut reads = Reads::default();
        reads.want(DiskIndex(3), BLOCK * 2, BLOCK * 100);
        while let Some(io) = reads.poll() {
            let IoKind::Read { offset, len } = io.kind else { panic!("only reads") };
            reads.done(io.id, disk(offset, len));
        }
        let range = reads.take().remove(0);
        assert_eq!(range.failed, BTreeMap::from([(BLOCK * 70, IoError(5))]));
        for (i, block) in range.bytes.chunks(BLOCK.as_usize()).enumerate() {
            let expected = if i + 2 == 70 { 0 } else { i as u8 + 2 };
            assert!(block.iter().all(|&byte| byte == expected), "block {i}");
        }
    }
}
