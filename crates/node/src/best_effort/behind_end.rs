//! Zeros behind the end of what is recorded, before the end moves on ([`Ends`](crate::volumes::ends)).
//!
//! The block that the volume ends in is read, and written with zeros behind the end, as a piece of an
//! operation of its own: it claims the block, so that no write of it is under way meanwhile. A request
//! that needs it waits, and is asked again; a write that needs it has claimed its own blocks by then,
//! and has not ended before.
//!
//! Invariants: a volume has one such operation at a time, which all wait for who need it. It takes
//! memory where there is some; where there is none, one block that is kept for these goes from one to
//! the next, so that they wait for nobody else's memory.

use super::behind::Deferred;
use super::{BestEffort, Operation, Piece, Then};
use crate::api::*;
use crate::core::Core;
use crate::limits::BLOCK_MIN;
use crate::memory::arena::Use;
use crate::volumes::writes::{Claim, End};
use crate::work::Part;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec;
use alloc::vec::Vec;
use store::{EXTENT, VolumeId};
use units::{Bytes, Instant};

/// Which ends are being cleared.
#[derive(Clone, Debug, Default)]
pub(super) struct Clearing {
    /// Who waits for it, by the volume.
    waiting: BTreeMap<VolumeId, Vec<Waits>>,
    /// Pieces that wait for memory.
    queue: VecDeque<Claim>,
    /// The block that is kept for these is in use.
    one_block_is_taken: bool,
}

/// Who waits until an end is clear.
#[derive(Clone, Debug)]
enum Waits {
    /// This is asked again.
    Request(Box<Deferred>),
    /// It has not ended before.
    Operation(u64),
}

impl BestEffort {
    /// The end of this volume is being cleared.
    pub(crate) fn clears_end_of(&self, volume: VolumeId) -> bool {
        self.clearing.waiting.contains_key(&volume)
    }

    /// This is asked again when zeros lie behind the end of the volume, which is in this `block`.
    pub(crate) fn clear_before(
        &mut self,
        core: &mut Core,
        now: Instant,
        end: (VolumeId, Bytes),
        (ticket, who, op, arrived): (Ticket, Who, Op, Instant),
    ) {
        if let Err(error) = self.behind.note_deferred(who.uid) {
            return core.answer(ticket, Err(error));
        }
        let asked = Deferred { volumes: Vec::new(), ticket, who, op, arrived };
        self.clear(core, now, end, ticket, Waits::Request(Box::new(asked)));
    }

    /// This write, which has claimed its blocks, does not end before zeros lie behind the end of its
    /// volume, where it moves that on over bytes which it does not write. True where it waits.
    pub(super) fn clear_beside(&mut self, core: &mut Core, now: Instant, id: u64) -> bool {
        let operation = self.operation(id);
        let (volume, offset) = (operation.volume, operation.offset);
        let Some(ticket) = operation.ticket else { return false };
        let unclear = core.writes.ends.unclear(&core.store, volume);
        let Some((block, _)) = unclear.filter(|&(block, _)| block + BLOCK_MIN <= offset) else {
            return false;
        };
        operation.pieces += 1;
        self.clear(core, now, (volume, block), ticket, Waits::Operation(id));
        true
    }

    fn clear(
        &mut self,
        core: &mut Core,
        now: Instant,
        (volume, block): (VolumeId, Bytes),
        ticket: Ticket,
        waits: Waits,
    ) {
        if let Some(others) = self.clearing.waiting.get_mut(&volume) {
            return others.push(waits);
        }
        self.clearing.waiting.insert(volume, vec![waits]);
        let operation = self.open(Operation::of_zeros(
            ticket,
            now,
            volume,
            block..block + BLOCK_MIN,
            Then::Cleared,
        ));
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
        let (volume, index) = self.pieces[&claim].extent;
        let blocks = self.pieces[&claim].blocks.clone();
        let block = EXTENT * index + blocks.start;
        let unclear = core.writes.ends.unclear(&core.store, volume);
        let Some((_, end)) = unclear.filter(|(hiding, _)| *hiding == block) else {
            // Somebody has written it meanwhile.
            return self.end_piece(core, now, claim, End::Failed);
        };
        let clearing = &mut self.clearing;
        let span = match core.arena.take(BLOCK_MIN, Use::Interactive) {
            Some(span) => span,
            None if clearing.one_block_is_taken => return clearing.queue.push_back(claim),
            None => {
                clearing.one_block_is_taken = true;
                core.arena.one_block()
            }
        };
        let location = core.store.locate(volume, index).expect("within the volume");
        let offset = location.offset.expect("it was written") + blocks.start;
        let nothing = Bytes::ZERO..Bytes::ZERO;
        let action = DiskAction::Merge { offset, span, keep: nothing, upto: end - block };
        let piece = self.piece(claim);
        (piece.span, piece.before) = (Some(span), 1);
        self.submit(core, now, claim, location.disk, action, Part::Before(claim));
    }

    /// A piece that clears has ended: its memory goes to the next one.
    pub(super) fn ended_to_clear(&mut self, core: &mut Core, now: Instant, span: Option<Span>) {
        let Some(span) = span else { return };
        if span == core.arena.one_block() {
            self.clearing.one_block_is_taken = false;
        } else {
            core.arena.give(span, Use::Interactive);
            self.serve_waiting(core, now);
        }
        while !self.clearing.one_block_is_taken
            && let Some(next) = self.clearing.queue.pop_front()
        {
            self.begin(core, now, next);
        }
    }

    /// Zeros lie behind the end of the volume, or this kept them from it: who waited goes on.
    pub(super) fn cleared(
        &mut self,
        core: &mut Core,
        now: Instant,
        volume: VolumeId,
        error: Option<&Error>,
    ) {
        for waits in self.clearing.waiting.remove(&volume).unwrap_or_default() {
            match waits {
                Waits::Request(asked) => self.ask_again(core, now, *asked, error.cloned()),
                Waits::Operation(id) => {
                    if let Some(error) = error {
                        self.operation(id).fails(error.clone());
                    }
                    self.piece_ended(core, now, id);
                }
            }
        }
    }
}
