//! Zeros behind the end of what is recorded, before the end moves on ([`Ends`](crate::volumes::ends)).
//!
//! The block that the volume ends in is read, and written with zeros behind the end, as a piece of an
//! operation of its own: it claims the block, so that no write of it is under way meanwhile. The
//! request that needs it waits, and is asked again. There is memory for one such block, so that these
//! go one after the other, and wait for nobody's memory.

use super::behind::Deferred;
use super::{BestEffort, Operation, Piece, Then};
use crate::api::*;
use crate::core::Core;
use crate::limits::BLOCK_MIN;
use crate::volumes::services::Kept;
use crate::volumes::writes::{Claim, End};
use crate::work::Part;
use alloc::boxed::Box;
use alloc::vec::Vec;
use store::{EXTENT, VolumeId};
use units::{Bytes, Instant};

impl BestEffort {
    /// This is asked again when zeros lie behind the end of the volume, which is in this `block`.
    pub(crate) fn clear_behind_end(
        &mut self,
        core: &mut Core,
        now: Instant,
        (volume, block): (VolumeId, Bytes),
        (ticket, who, op, arrived): (Ticket, Who, Op, Instant),
    ) {
        if let Err(error) = self.behind.note_deferred() {
            return self.refuse(core, now, ticket, &op, error);
        }
        let uid = who.uid;
        let again = Deferred { volumes: Vec::new(), ticket, who, op, arrived };
        let operation = Operation {
            ticket: Some(ticket),
            uid,
            waiting: Vec::new(),
            volume,
            handle: None,
            offset: block,
            end: block + BLOCK_MIN,
            span: None,
            is_of_line: false,
            kept: Kept::from(now),
            recorded: Bytes::ZERO,
            write: true,
            priority: None,
            writer: None,
            pieces: 0,
            error: None,
            then: Some(Then::Ask(Box::new(again))),
        };
        let operation = self.open(operation);
        let within = block % EXTENT;
        let piece = Piece {
            operation,
            extent: (volume, block / EXTENT),
            bytes: within..within,
            blocks: within..within + BLOCK_MIN,
            span: None,
            clears: true,
            before: 0,
            failed: false,
            commands: Vec::new(),
        };
        self.claim(core, now, piece);
    }

    /// Nobody else writes the block of this claim: it is read and written, where that is needed yet.
    pub(super) fn begin_to_clear(&mut self, core: &mut Core, now: Instant, claim: Claim) {
        if !self.clearing.is_empty() && self.clearing.front() != Some(&claim) {
            return self.clearing.push_back(claim);
        }
        let (volume, index) = self.pieces[&claim].extent;
        let blocks = self.pieces[&claim].blocks.clone();
        let block = EXTENT * index + blocks.start;
        if core.writes.ends.unclear(&core.store, volume) != Some(block) {
            // Somebody has written it meanwhile.
            return self.end_piece(core, now, claim, End::Failed);
        }
        if self.clearing.is_empty() {
            self.clearing.push_back(claim);
        }
        let location = core.store.locate(volume, index).expect("within the volume");
        let offset = location.offset.expect("it was written") + blocks.start;
        let span = core.arena.one_block();
        let upto = core.writes.ends.of(&core.store, volume) - block;
        let nothing = Bytes::ZERO..Bytes::ZERO;
        let action = DiskAction::Merge { offset, span, keep: nothing, upto };
        let piece = self.piece(claim);
        (piece.span, piece.before) = (Some(span), 1);
        self.submit(core, now, claim, location.disk, action, Part::Before(claim));
    }

    /// The block of this claim is written, or will not be: the next one has the memory.
    pub(super) fn ended_to_clear(
        &mut self,
        core: &mut Core,
        now: Instant,
        (claim, volume): (Claim, VolumeId),
        end: End,
    ) {
        if end == End::Written {
            core.writes.ends.cleared(&core.store, volume);
        }
        if self.clearing.front() == Some(&claim) {
            self.clearing.pop_front();
            if let Some(&next) = self.clearing.front() {
                self.begin(core, now, next);
            }
        } else {
            self.clearing.retain(|other| *other != claim);
        }
    }
}
