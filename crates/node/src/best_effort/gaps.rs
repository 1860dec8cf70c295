//! Zeros before the place where a stream begins to write, in its extent.

use super::{BestEffort, Operation, Piece, Then};
use crate::api::*;
use crate::core::Core;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::Range;
use store::{EXTENT, VolumeId};
use units::{Bytes, Instant};

/// A range of an extent that was never written and shall be zeros.
#[derive(Clone, Debug)]
pub(crate) struct Gap {
    pub volume: VolumeId,
    pub extent: u64,
    pub range: Range<Bytes>,
}

impl BestEffort {
    /// Fills an extent with zeros where it was never written before `upto`, so that a
    /// stream can begin to write there. Answers `ticket` with `then`.
    pub(crate) fn prepare(
        &mut self,
        core: &mut Core,
        now: Instant,
        ticket: Ticket,
        gap: Gap,
        then: Reply,
    ) {
        let Gap { volume, extent, range } = gap;
        let all = EXTENT * extent..EXTENT * extent + range.end;
        let placed = core.place_all(now, volume, &all);
        let id =
            self.open(Operation::of_zeros(ticket, now, volume, all, Then::Reply(Box::new(then))));
        let piece = Piece {
            operation: id,
            extent: (volume, extent),
            bytes: range.end..range.end,
            blocks: range,
            span: None,
            clears: false,
            before: 0,
            failed: false,
            commands: Vec::new(),
        };
        if let Err(error) = placed {
            // Its stream is closed, and its program hears why.
            let operation = self.operation(id);
            operation.pieces += 1;
            operation.fails(error);
            return self.piece_ended(core, now, id);
        }
        self.claim(core, now, piece);
    }

    /// A stream that cannot be written to, since the zeros before it could not.
    pub(crate) fn unopened(&mut self) -> Option<StreamId> {
        self.unopened.pop()
    }
}
