//! What a disk of a pool does, and for whom: its queue as the pool fills it.

use crate::api::*;
use crate::limits;
use crate::volumes::writes::Claim;
use alloc::vec::Vec;
use core::ops::Range;
use queue::{Chunks, DeviceTime, Merging, Next, Queue, Side};
use store::{Blocks, EXTENT, IoId};
use units::{Access, Bytes, Command, Instant, Lba};

/// Whom the end of a command concerns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// A block of a stream, in this place.
    Block { stream: StreamId, block: u64, place: Bytes, part: BlockPart },
    /// The first bytes of a block in this place, ahead of the block itself.
    Early { stream: StreamId, block: u64, place: Bytes },
    /// A block of a stream, in this place, is copied to this room, to be kept for others.
    Keep { stream: StreamId, block: u64, place: Bytes, room: Bytes },
    /// A command of a best-effort operation.
    Piece { operation: u64, part: Part },
    /// A piece of a write (or a flush) of the store.
    Store { io: IoId },
    /// A piece of the move that runs on the disk.
    Move { write: bool },
    /// A read of the measurement that runs on the disk.
    Measure,
}

/// What of a block a command moves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BlockPart {
    /// Bytes of the volume.
    pub range: Range<Bytes>,
    /// The block is moved by this command alone.
    pub is_all: bool,
    /// Of a writer: the claim of the first extent that it writes to. The claims of those that
    /// follow have the numbers that follow.
    pub claim: Option<Claim>,
}

/// What a command does for a best-effort operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Reads a piece of it.
    Read,
    /// Has to be done before the piece with this claim can be written: its edges, or zeros
    /// before it.
    Before(Claim),
    /// Writes the piece with this claim.
    Write(Claim),
}

/// What a command is for, and what it does.
#[derive(Clone, Debug)]
pub struct Work {
    pub(crate) owner: Owner,
    pub(crate) action: DiskAction,
    /// It was cut: another chunk of the same part follows, or came before.
    pub(crate) chunk: Option<Chunk>,
}

/// A chunk of a part.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chunk {
    /// More of the part follows.
    pub more: bool,
    /// The device failed on one that came before.
    pub failed: Option<DeviceError>,
}

impl Work {
    pub(crate) fn new(owner: Owner, action: DiskAction) -> Self {
        Self { owner, action, chunk: None }
    }

    /// Where the kept memory lies that it copies to or from, where it does.
    pub(crate) fn kept(&self) -> Option<Bytes> {
        match (&self.action, &self.owner) {
            (DiskAction::Copy { span, .. }, Owner::Keep { .. }) => Some(span.offset),
            (DiskAction::Copy { from, .. }, _) => Some(from.offset),
            _ => None,
        }
    }

    /// Whether it can be done in chunks: plain reads and writes of programs' memory.
    fn may_cut(&self) -> bool {
        let is_plain = matches!(self.action, DiskAction::Read { .. } | DiskAction::Write { .. });
        is_plain && matches!(self.owner, Owner::Block { .. } | Owner::Piece { .. })
    }

    /// What a writer's program has written is the window's first block before long: as best
    /// effort it is not begun and then left, and its stream's turn finds it waiting as a whole.
    fn stays_whole(&self) -> bool {
        matches!(&self.owner, Owner::Block { part, .. } if part.claim.is_some())
    }

    /// Cuts it behind the first `len` bytes that the disk moves. What is read of a block ends
    /// chunk by chunk, so that only the chunk is lost that the device fails on; what is written
    /// was claimed as a whole, and ends so.
    fn cut(&mut self, len: Bytes) -> (Command, (Command, Self)) {
        let (near, far) = match &self.action {
            DiskAction::Read { offset, span, written } => {
                let at = written.span().start + len;
                let (before, behind) = written.cut(at);
                let [near, far] = span.cut(at);
                let (offset, far_offset) = (*offset, *offset + at);
                (
                    DiskAction::Read { offset, span: near, written: before },
                    DiskAction::Read { offset: far_offset, span: far, written: behind },
                )
            }
            DiskAction::Write { offset, span, valid } => {
                let [near, far] = span.cut(len);
                let (offset, valid) = (*offset, *valid);
                let left = valid.saturating_sub(len);
                (
                    DiskAction::Write { offset, span: near, valid: valid.min(len) },
                    DiskAction::Write { offset: offset + len, span: far, valid: left },
                )
            }
            _ => unreachable!("only plain reads and writes are cut"),
        };
        let failed = self.chunk.and_then(|chunk| chunk.failed);
        let mut left = Self::new(self.owner.clone(), far);
        left.chunk = Some(Chunk { more: false, failed: None });
        self.chunk = Some(Chunk { more: true, failed });
        if let (Owner::Block { part: near_part, .. }, Owner::Block { part: far_part, .. }) =
            (&mut self.owner, &mut left.owner)
        {
            (near_part.is_all, far_part.is_all) = (false, false);
            if near_part.claim.is_none() {
                let DiskAction::Read { span, .. } = &near else { unreachable!("it is read") };
                let at = near_part.range.start + span.len;
                (near_part.range.end, far_part.range.start) = (at, at);
            }
        }
        self.action = near;
        let commands = (as_command(&self.action), as_command(&left.action));
        (commands.0, (commands.1, left))
    }

    /// Of which operation it is a piece, and its memory: where it does nothing else than to transfer
    /// all of that.
    fn whole_piece(&self) -> Option<(u64, Span)> {
        let Owner::Piece { operation, part: Part::Read | Part::Write(_) } = self.owner else {
            return None;
        };
        let span = match &self.action {
            DiskAction::Read { span, written, .. } if written.holes(span.len).next().is_none() => {
                span
            }
            DiskAction::Write { span, valid, .. } if *valid == span.len => span,
            _ => return None,
        };
        self.chunk.is_none().then_some((operation, *span))
    }

    /// Whether `next` goes on where this ends in memory, for the same operation. (A piece of another
    /// one would fail with this.)
    fn may_merge(&self, next: &Self) -> bool {
        match (self.whole_piece(), next.whole_piece()) {
            (Some((operation, span)), Some((other, behind))) => {
                let goes_on = span.offset + span.len == behind.offset;
                operation == other && goes_on && span.len + behind.len <= EXTENT
            }
            _ => false,
        }
    }

    /// It does also what `other` is for, which lies next to it ([`Work::may_merge`]).
    fn merge(&mut self, other: &Self, side: Side) {
        let (DiskAction::Read { offset, span, .. } | DiskAction::Write { offset, span, .. }) =
            &mut self.action
        else {
            unreachable!("only plain reads and writes are merged")
        };
        let (DiskAction::Read { offset: from, span: added, .. }
        | DiskAction::Write { offset: from, span: added, .. }) = &other.action
        else {
            unreachable!("a read or a write is merged with its like")
        };
        if side == Side::Before {
            (*offset, span.offset) = (*from, added.offset);
        }
        span.len += added.len;
        let len = span.len;
        match &mut self.action {
            DiskAction::Read { written, .. } => *written = Blocks::first(len).into(),
            DiskAction::Write { valid, .. } => *valid = len,
            _ => unreachable!("just seen"),
        }
    }

    /// What becomes of it at its end, with what became of the chunks before it; none where
    /// that is said at the end of the chunks that follow.
    fn result(&self, result: Result<(), DeviceError>) -> Option<Result<(), DeviceError>> {
        let Some(Chunk { more, failed }) = self.chunk else { return Some(result) };
        if self.ends_by_chunk() {
            return Some(result);
        }
        (!more).then(|| failed.map_or(result, Err))
    }

    /// Its owner hears of each chunk.
    fn ends_by_chunk(&self) -> bool {
        matches!(&self.owner, Owner::Block { part, .. } if part.claim.is_none())
    }
}

/// How a disk's requests are cut into chunks.
pub(crate) fn chunks(len: Bytes) -> Chunks<Work> {
    Chunks { len, may_cut: Work::may_cut, stays_whole: Work::stays_whole, cut: Work::cut }
}

/// Whether it may be with the disk beside others: plain transfers of what programs read and write.
/// (An early read goes into the memory of its block, which is not to be read at the same time.)
pub(crate) fn may_go_beside(work: &Work) -> bool {
    work.may_cut()
}

/// How a disk's requests are merged, of which best effort is cut into such pieces.
pub(crate) fn merging(piece: Bytes) -> Merging<Work> {
    Merging { piece, may_merge: Work::may_merge, merge: Work::merge }
}

pub(crate) fn as_command(action: &DiskAction) -> Command {
    let Some((range, direction)) = action.transfer() else { return Command::Flush };
    let len = (range.end - range.start).round_up(limits::BLOCK_MIN);
    Command::Transfer(Access { lba: Lba::containing(range.start), len, direction })
}

/// One disk of a pool at work.
pub type DiskQueue = Queue<Work>;

/// A command that has ended in its queue; the node is to be told.
#[derive(Clone, Debug)]
pub struct CommandEnded {
    pub(crate) disk: DiskIndex,
    pub(crate) finished: Instant,
    /// None where the command was a chunk whose owner hears at the end of the last one.
    pub(crate) result: Option<Result<(), DeviceError>>,
    pub(crate) of_queue: queue::Ended<Work>,
}

impl CommandEnded {
    /// One for each request that the command served.
    pub(crate) fn each(mut self) -> impl Iterator<Item = Self> {
        let Self { disk, finished, result, .. } = self;
        let with = core::mem::take(&mut self.of_queue.with);
        let others = with.into_iter();
        let others = others.map(move |of_queue| Self { disk, finished, result, of_queue });
        core::iter::once(self).chain(others)
    }
}

/// What the device of this queue shall do now.
pub fn next_command(queue: &mut DiskQueue, now: Instant) -> DiskPoll {
    match queue.next(now) {
        Next::Wait { until } => DiskPoll::Wait { until },
        Next::Start { key, predicted, work } => {
            // Metadata is used once: its bytes move out.
            let action = match &mut work.action {
                DiskAction::WriteBytes { offset, bytes } => {
                    DiskAction::WriteBytes { offset: *offset, bytes: core::mem::take(bytes) }
                }
                other => other.clone(),
            };
            DiskPoll::Start(DiskCommand { id: CommandId(key), action, predicted })
        }
    }
}

/// A command of a best-effort operation, or a reader's block, that waits since `before`, and for
/// which there will be no slack, is given up: it ends here, without the device, in each of its
/// parts. The same for the node. What a writer or an updater has handed in waits on: it would be
/// lost.
pub(crate) fn given_up(
    queue: &mut DiskQueue,
    disk: DiskIndex,
    (now, before): (Instant, Instant),
    is_reader: impl Fn(StreamId) -> bool,
) -> Vec<CommandEnded> {
    let may = |work: &Work| match &work.owner {
        Owner::Piece { .. } => true,
        Owner::Block { stream, .. } => is_reader(*stream),
        _ => false,
    };
    let ended = |of_queue: queue::Ended<Work>| {
        let result = of_queue.work.result(Err(DeviceError::NO_SLACK));
        CommandEnded { disk, finished: now, result, of_queue }
    };
    queue.give_up(now, before, may).into_iter().map(ended).collect()
}

/// A command has ended on the device of this queue. The result is for
/// [`Node::command_ended`](crate::Node::command_ended).
///
/// # Panics
/// Where [`next_command`] did not give it.
pub fn command_ended(
    queue: &mut DiskQueue,
    id: CommandId,
    started: Instant,
    finished: Instant,
    result: Result<(), DeviceError>,
) -> CommandEnded {
    command_noticed(queue, id, DeviceTime { started, finished, noticed: finished }, result)
}

/// As [`command_ended`], for a driver that may have noticed the end some time after it.
///
/// # Panics
/// As [`command_ended`] does.
pub fn command_noticed(
    queue: &mut DiskQueue,
    id: CommandId,
    times: DeviceTime,
    result: Result<(), DeviceError>,
) -> CommandEnded {
    let of_queue = queue.ended_within(id.0, times, result.is_ok());
    let failed = of_queue.work.chunk.and_then(|chunk| chunk.failed).or(result.err());
    if let (Some(Chunk { more: true, .. }), Some(next)) =
        (of_queue.work.chunk, queue.work_mut(id.0))
    {
        next.chunk = next.chunk.map(|chunk| Chunk { failed, ..chunk });
    }
    let result = of_queue.work.result(result);
    CommandEnded { disk: id.disk(), finished: times.noticed, result, of_queue }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(operation: u64, at: Bytes, memory: Bytes) -> Work {
        let len = Bytes::kib(64);
        let span = Span { offset: memory, len };
        let part = Part::Write(Claim::default());
        Work::new(
            Owner::Piece { operation, part },
            DiskAction::Write { offset: at, span, valid: len },
        )
    }

    /// Also where their memory happens to lie one behind the other: one would fail with the other.
    #[test]
    fn pieces_of_two_operations_are_not_merged() {
        let kib = Bytes::kib;
        let first = write(1, kib(64), kib(256));
        assert!(first.may_merge(&write(1, kib(128), kib(320))));
        assert!(!first.may_merge(&write(2, kib(128), kib(320))), "another operation");
        assert!(!first.may_merge(&write(1, kib(128), kib(384))), "elsewhere in memory");
        let mut cut = write(1, kib(128), kib(320));
        cut.chunk = Some(Chunk { more: false, failed: None });
        assert!(!first.may_merge(&cut), "a chunk of a piece");
    }
}
