//! What a disk is told to do.
#![allow(missing_docs)] // a field that is named for what it holds is not explained twice

use super::words::{CommandId, Span, Written};
use alloc::vec::Vec;
use core::ops::Range;
use units::{Bytes, Direction, Duration, Instant};

/// What a disk shall do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskCommand {
    pub id: CommandId,
    pub action: DiskAction,
    /// Bound on the device time, for holding against reality.
    pub predicted: Duration,
    /// It counts for a contract. What the driver does itself for it, it does before it does such
    /// things for others.
    pub is_promised: bool,
}

/// The action of a [`DiskCommand`]; offsets are bytes on the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiskAction {
    /// Fill the blocks of `span` that `written` has from the disk, where they lie from
    /// `offset` on, and the others with zeros: what the disk holds there is nobody's to
    /// see. Where it has none, without touching the disk.
    Read { offset: Bytes, span: Span, written: Written },
    /// Fill `span` with what is in memory at `from`, without touching the disk. It is what a
    /// read of `written` at `offset` would bring at this moment. Other commands go before it.
    Copy { from: Span, offset: Bytes, span: Span, written: Written },
    /// Fill what a `span` of 4 KiB has outside of `keep` with what the disk has at `offset`, of
    /// which the first `upto` bytes count, and zeros behind them; without touching the disk where
    /// that is none.
    Merge { offset: Bytes, span: Span, keep: Range<Bytes>, upto: Bytes },
    /// Write `span` as it is. From `valid` on its bytes may change meanwhile: a program may be
    /// filling them. (So room of a stream is filled with zeros, to the end of its last 4 KiB,
    /// before the program is told of it.)
    Write { offset: Bytes, span: Span, valid: Bytes },
    /// Read what lies from `offset` on into these spans, one behind the other, or write them there:
    /// reads or writes of several operations, of all that they name; or blocks of several streams. What is
    /// read into lies in no region.
    Several { offset: Bytes, direction: Direction, spans: Vec<Span> },
    /// Write these bytes (metadata).
    WriteBytes { offset: Bytes, bytes: Vec<u8> },
    /// Put all completed writes on the medium.
    Flush,
}

impl DiskAction {
    /// True where nothing is asked of the disk.
    pub fn needs_no_disk(&self) -> bool {
        match self {
            Self::Read { written, .. } => written.is_empty(),
            Self::Copy { .. } => true,
            Self::Merge { upto, .. } => upto.is_zero(),
            Self::Write { .. } | Self::Several { .. } | Self::WriteBytes { .. } | Self::Flush => {
                false
            }
        }
    }

    /// What of the disk is transferred, in bytes, and which way; none for a flush, and
    /// where nothing is asked of the disk.
    pub fn transfer(&self) -> Option<(Range<Bytes>, Direction)> {
        let whole = |offset: Bytes, len| offset..offset + len;
        Some(match *self {
            _ if self.needs_no_disk() => return None,
            Self::Read { offset, ref written, .. } => {
                let span = written.span();
                (offset + span.start..offset + span.end, Direction::Read)
            }
            Self::Merge { offset, span, .. } => (whole(offset, span.len), Direction::Read),
            Self::Write { offset, span, .. } => (whole(offset, span.len), Direction::Write),
            Self::Several { offset, direction, ref spans } => {
                (whole(offset, spans.iter().map(|span| span.len).sum()), direction)
            }
            Self::WriteBytes { offset, ref bytes } => {
                (whole(offset, Bytes::new(bytes.len() as u64)), Direction::Write)
            }
            Self::Copy { .. } | Self::Flush => return None,
        })
    }
}

/// The answer of [`Node::poll_disk`](crate::Node::poll_disk).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiskPoll {
    /// Give this to the device now, then poll again.
    Start(DiskCommand),
    /// Nothing before this instant (or before the next event).
    Wait { until: Option<Instant> },
}
