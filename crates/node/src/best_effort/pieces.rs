//! The pieces that operations are cut to, and what asks a disk for one.

use super::Operation;
use crate::api::*;
use crate::core::Core;
use crate::limits;
use crate::volumes::services::Holder;
use crate::volumes::slack::in_slack;
use crate::volumes::writes::Extent;
use crate::work::{Owner, Part};
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;
use sched::Class;
use store::{EXTENT, Location, Volume};
use units::{Bytes, Direction, Instant, Lba};

/// Asks a disk for a piece of a read: a range of extent `index` of the volume, which lies there.
pub(super) fn read_piece(
    core: &mut Core,
    now: Instant,
    operation: &mut Operation,
    id: u64,
    index: u64,
    (range, location): (Range<Bytes>, Location),
    span: Span,
) {
    let (holder, priority) = (operation.holder(), operation.priority);
    let (offset, action) = reads(core, (holder.volume, index), (&range, &location), span);
    let class = match operation.ticket {
        Some(_) => {
            let place = Lba::containing(offset);
            core.class_of(holder, location.disk, place, span.len, Direction::Read, priority)
        }
        None => in_slack(priority.unwrap_or_default(), holder.volume),
    };
    let owner = Owner::Piece { operation: id, part: Part::Read };
    submit_for(core, now, operation, (location.disk, class), (action, owner));
}

/// What reads a range of an extent that lies there, and from where on. Blocks behind the end of what is
/// recorded are zeros for him, as they are after a crash.
fn reads(
    core: &Core,
    (volume, index): Extent,
    (range, location): (&Range<Bytes>, &Location),
    span: Span,
) -> (Bytes, DiskAction) {
    let before_end = core.store.volume(volume).map(|volume| volume.before_end(index));
    let shown = location.written.intersection(&before_end.unwrap_or_default());
    // What has no place was never written, so that no byte of it is asked of the disk.
    let offset = location.offset.unwrap_or_default() + range.start;
    let written = shown.within(range).into();
    (offset, DiskAction::Read { offset, span, written })
}

/// What reads the piece of an operation that was to come to this memory, from where it lies by now. Between
/// the end of a command and the time at which the node hears of it nobody knows of the read: what it was
/// to read may lie in another place since then, and its own be somebody else's.
///
/// # Errors
/// Where a ring has given it up.
pub(super) fn reads_anew(
    core: &Core,
    operation: &Operation,
    span: Span,
) -> Result<(DiskIndex, DiskAction), Error> {
    let memory = operation.span.expect("a read has memory");
    let at = operation.offset + (span.offset - memory.offset);
    let extent = (operation.volume, at / EXTENT);
    let Some(location) = core.store.locate(extent.0, extent.1) else {
        let start = core.store.volume(operation.volume).map_or(Bytes::ZERO, Volume::start);
        return Err(Error::GivenUp { start });
    };
    let within = at % EXTENT..at % EXTENT + span.len;
    Ok((location.disk, reads(core, extent, (&within, &location), span).1))
}

/// Asks a disk for a part of an operation; under contract, in its turn.
pub(super) fn submit_for(
    core: &mut Core,
    now: Instant,
    operation: &mut Operation,
    (disk, class): (DiskIndex, Class),
    (action, owner): (DiskAction, Owner),
) -> CommandId {
    let (holder, kept) = (operation.holder(), &mut operation.kept);
    if action.needs_no_disk() {
        return core.submit(now, disk, class, action, owner);
    }
    let Some(task) = class.task() else {
        kept.unpromised();
        return core.submit(now, disk, class, action, owner);
    };
    match core.services.turn(holder, disk, kept.arrived()) {
        None => core.submit(now, disk, class, action, owner),
        Some(turn) => {
            kept.promised(turn);
            core.submit_in_turn(now, disk, (task, turn), vec![(action, owner)])
        }
    }
}

/// The blocks that `bytes` cover in part, and what of each they cover.
pub(super) fn edges(bytes: &Range<Bytes>, blocks: &Range<Bytes>) -> Vec<(Bytes, Range<Bytes>)> {
    let block = limits::BLOCK_MIN;
    let last = blocks.end - block;
    let covered = |at: Bytes| {
        let (from, to) = (bytes.start.max(at), bytes.end.min(at + block));
        (at, from - at..to - at)
    };
    let both = [covered(blocks.start), covered(last)];
    let both = &both[..if last > blocks.start { 2 } else { 1 }];
    both.iter().filter(|(_, keep)| *keep != (Bytes::ZERO..block)).cloned().collect()
}

/// The pieces that whole blocks of a volume are moved in: an extent and a part of it each.
pub(super) fn cut(core: &Core, whose: Whose, blocks: Range<Bytes>) -> Vec<(u64, Range<Bytes>)> {
    let mut pieces = Vec::new();
    let mut at = blocks.start;
    while at < blocks.end {
        let (extent, range, _) = first_piece(core, whose, at..blocks.end);
        at += range.end - range.start;
        pieces.push((extent, range));
    }
    pieces
}

/// The first of them, and where it lies. What a contract covers stays whole, since admission has
/// counted it as one command with one turn; what none covers is as short as best effort must be.
pub(super) fn first_piece(
    core: &Core,
    whose: Whose,
    blocks: Range<Bytes>,
) -> (u64, Range<Bytes>, Location) {
    let (extent, within) = (blocks.start / EXTENT, blocks.start % EXTENT);
    let location = core.store.locate(whose.holder.volume, extent).expect("within the volume");
    let disk = location.disk;
    let promised = match whose.is_asked_for {
        true => core.services.len_promised(whose.holder, disk, whose.stated),
        false => None,
    };
    let piece = promised.unwrap_or(core.disks[disk.as_usize()].piece);
    let len = (blocks.end - blocks.start).min(EXTENT - within).min(piece);
    (extent, within..within + len, location)
}

/// For whom an operation is cut to pieces.
#[derive(Clone, Copy)]
pub(super) struct Whose {
    pub holder: Holder,
    /// The priority that the handle states.
    pub stated: Option<Priority>,
    /// Somebody asked for it: it is not read ahead.
    pub is_asked_for: bool,
}
