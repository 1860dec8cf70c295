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
use store::{Blocks, EXTENT, VolumeId};
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
        if !operation.moves_end() {
            return false;
        }
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

    /// The disk has failed on this piece, so that its blocks may hold anything. Who has written to one of them
    /// and is not answered yet fails, too: in the block of the end, zeros come in the place of his bytes.
    pub(super) fn may_be_anything(&mut self, core: &mut Core, failed: Claim, error: &Error) {
        let Piece { operation: own, extent, ref blocks, .. } = self.pieces[failed];
        let (volume, at, blocks) = (extent.0, EXTENT * extent.1, blocks.clone());
        core.writes.ends.may_be_anything(
            &core.store,
            volume,
            &(at + blocks.start..at + blocks.end),
        );
        let has_written = |(id, it): &(u64, &Operation)| {
            let start = it.offset.round_down(BLOCK_MIN).saturating_sub(at).max(blocks.start);
            let end = it.end.saturating_sub(at).min(blocks.end);
            let theirs =
                self.pieces.values().filter(|it| it.operation == *id && it.extent == extent);
            let waiting = theirs.fold(Blocks::NONE, |all, it| all.union(&Blocks::of(&it.blocks)));
            start < end && !Blocks::of(&(start..end)).without(&waiting).is_empty()
        };
        let others = self
            .operations
            .range(..)
            .filter(|(id, it)| *id != own && it.volume == volume && it.write && it.then.is_none());
        let others: Vec<u64> = others.filter(has_written).map(|(id, _)| id).collect();
        others.into_iter().for_each(|id| self.operation(id).fails(error.clone()));
    }

    /// This operation was answered, or writes zeros for one that was.
    pub(super) fn is_owed(&self, id: u64) -> bool {
        let is_of_answered =
            |waits: &Waits| matches!(waits, Waits::Operation(id) if self.behind.has(*id));
        self.behind.has(id)
            || self.operations.get(id).is_some_and(|operation| {
                matches!(operation.then, Some(Then::Cleared))
                    && self.waiting_for_zeros(operation.volume).any(is_of_answered)
            })
    }

    /// The piece that writes the zeros for which this operation waits.
    pub(super) fn zeros_for(&self, volume: VolumeId, id: u64) -> Option<Claim> {
        let is_it = |waits: &Waits| matches!(waits, Waits::Operation(waiting) if *waiting == id);
        let clears = |piece: &Piece| piece.clears && piece.extent.0 == volume;
        self.waiting_for_zeros(volume).find(|waits| is_it(waits))?;
        self.pieces.range(..).find(|(_, piece)| clears(piece)).map(|(claim, _)| claim)
    }

    fn waiting_for_zeros(&self, volume: VolumeId) -> impl Iterator<Item = &Waits> {
        self.clearing.waiting.get(&volume).into_iter().flatten()
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
        let (volume, index) = self.pieces[claim].extent;
        let blocks = self.pieces[claim].blocks.clone();
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
