//! What a disk of a pool does, and for whom: its queue as the pool fills it.

use crate::api::*;
use crate::groups::group::Item;
use crate::limits;
use crate::volumes::writes::Claim;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::{Deref, DerefMut, Range};
use queue::{Chunks, DeviceTime, Merging, Next, Queue, Side};
use sched::Class;
use store::{Blocks, EXTENT, IoId};
use units::{Access, Bytes, Command, Direction, Instant, Lba};

/// Whom the end of a command concerns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// A block of a stream, in this place.
    Block { stream: StreamId, block: u64, place: Bytes, part: BlockPart },
    /// The first bytes of a block in this place, ahead of the block itself.
    Early { stream: StreamId, block: u64, place: Bytes },
    /// A block of a stream, in this place, is copied to this room, to be kept for others.
    Keep { stream: StreamId, block: u64, place: Bytes, room: Bytes },
    /// Blocks of members of a group, one behind the other on the disk.
    Group { items: Box<[Item]> },
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

/// What a command is for, and what it does: in a box, since it is handed on many times.
#[derive(Clone, Debug)]
pub struct Work(Box<Inside>);

/// What there is of a [`Work`].
#[derive(Clone, Debug)]
pub struct Inside {
    pub(crate) owner: Owner,
    pub(crate) action: DiskAction,
    /// It was cut: another chunk of the same part follows, or came before.
    pub(crate) chunk: Option<Chunk>,
    /// It does what others are for, too.
    merged: Option<Box<Merged>>,
    /// It is not to be merged.
    is_alone: bool,
    /// It failed for what is no fault of the place that it touched.
    pub(crate) is_of_host: bool,
}

/// What a command was before it came to do what others are for, too.
#[derive(Clone, Debug)]
struct Merged {
    own: DiskAction,
    /// Some of those are of other operations.
    of_others: bool,
}

/// A chunk of a part.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chunk {
    /// More of the part follows.
    pub more: bool,
    /// The device failed on one that came before.
    pub failed: Option<DeviceError>,
}

impl Deref for Work {
    type Target = Inside;
    fn deref(&self) -> &Inside {
        &self.0
    }
}

impl DerefMut for Work {
    fn deref_mut(&mut self) -> &mut Inside {
        &mut self.0
    }
}

impl Work {
    pub(crate) fn new(owner: Owner, action: DiskAction) -> Self {
        let inside =
            Inside { owner, action, chunk: None, merged: None, is_alone: false, is_of_host: false };
        Self(Box::new(inside))
    }

    /// The same in the box of one that has ended.
    pub(crate) fn anew(mut self, owner: Owner, action: DiskAction) -> Self {
        // Field by field: as one they would be put together elsewhere, and moved here.
        (self.owner, self.action) = (owner, action);
        (self.chunk, self.merged, self.is_alone, self.is_of_host) = (None, None, false, false);
        self
    }

    /// The same, for what has failed together with others and is tried by itself.
    pub(crate) fn alone(owner: Owner, action: DiskAction) -> Self {
        let mut work = Self::new(owner, action);
        work.is_alone = true;
        work
    }

    /// Whom the end of the command concerns; what is left is good for a box alone.
    pub(crate) fn take_owner(&mut self) -> Owner {
        core::mem::replace(&mut self.0.owner, Owner::Measure)
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

    /// What a stream writes or reads beyond its rate is needed before long: as best effort it is not
    /// begun and then left, and its stream's turn finds it waiting as a whole.
    fn stays_whole(&self) -> bool {
        matches!(self.owner, Owner::Block { .. })
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

    /// Of which operation it is a piece, and its memory, where it does nothing else than to transfer
    /// all of that, or what it was merged of.
    fn whole_pieces(&self) -> Option<(u64, &[Span])> {
        let Owner::Piece { operation, part: Part::Read | Part::Write(_) } = self.owner else {
            return None;
        };
        let spans = match &self.action {
            DiskAction::Read { span, written, .. } if written.covers(span.len) => {
                core::slice::from_ref(span)
            }
            DiskAction::Write { span, valid, .. } if *valid == span.len => {
                core::slice::from_ref(span)
            }
            DiskAction::Several { spans, .. } => spans,
            _ => return None,
        };
        let may = self.chunk.is_none() && !self.is_alone;
        may.then_some((operation, spans))
    }

    /// Whether `next`, which goes on where this ends on the disk, can be done by the same command: pieces
    /// of an operation, or of operations of the same class, of as many bytes as one may have. (Who is
    /// served in another turn than its own would take part of it from those of his class.)
    fn may_merge(&self, next: &Self, is_of_one_class: bool) -> bool {
        let (Some((first, one)), Some((second, two))) = (self.whole_pieces(), next.whole_pieces())
        else {
            return false;
        };
        if first != second && !is_of_one_class {
            return false;
        }
        let len: Bytes = one.iter().chain(two).map(|span| span.len).sum();
        len <= EXTENT && one.len() + two.len() <= limits::SPANS_MAX
    }

    /// It does also what `other` is for, which lies next to it ([`Work::may_merge`]).
    fn merge(&mut self, other: &Self, side: Side) {
        let (_, mine) = self.whole_pieces().expect("it may be merged");
        let (of_other, theirs) = other.whole_pieces().expect("it may be merged");
        let spans = match side {
            Side::Before => [theirs, mine].concat(),
            Side::Behind => [mine, theirs].concat(),
        };
        let first = if side == Side::Before { &other.action } else { &self.action };
        let (range, direction) = first.transfer().expect("it is a transfer");
        let spans = joined(spans);
        let action = match (&spans[..], direction) {
            (&[span], Direction::Read) => {
                let written = Blocks::first(span.len).into();
                DiskAction::Read { offset: range.start, span, written }
            }
            (&[span], Direction::Write) => {
                DiskAction::Write { offset: range.start, span, valid: span.len }
            }
            _ => DiskAction::Several { offset: range.start, direction, spans },
        };
        let own = core::mem::replace(&mut self.action, action);
        let Owner::Piece { operation, .. } = self.owner else { unreachable!("a piece") };
        let merged = self.merged.get_or_insert_with(|| Box::new(Merged { own, of_others: false }));
        merged.of_others |= operation != of_other;
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

/// Spans of which none goes on in memory where the one before it ends.
fn joined(spans: Vec<Span>) -> Vec<Span> {
    let mut all: Vec<Span> = Vec::new();
    for span in spans {
        match all.last_mut() {
            Some(last) if last.offset + last.len == span.offset => last.len += span.len,
            _ => all.push(span),
        }
    }
    all
}

/// How a disk's requests are cut into chunks.
pub(crate) fn chunks(len: Bytes) -> Chunks<Work> {
    Chunks { len, may_cut: Work::may_cut, stays_whole: Work::stays_whole, cut: Work::cut }
}

/// Whether it may be with the disk beside others: plain transfers of what programs read and write.
/// (An early read goes into the memory of its block, which is not to be read at the same time.) What a
/// reader asks for beyond its rate is needed by a turn, and no drive is to put it off.
pub(crate) fn may_go_beside(work: &Work, class: &Class) -> bool {
    let is_block = matches!(work.owner, Owner::Block { .. });
    let is_read = matches!(work.action, DiskAction::Read { .. });
    let is_beyond = is_block && is_read && matches!(class, Class::BestEffort { .. });
    let is_of_group = matches!(work.owner, Owner::Group { .. });
    !is_beyond
        && !is_of_group
        && (work.may_cut() || matches!(work.action, DiskAction::Several { .. }))
}

/// Whether what a command touched is to blame where it fails: of a group each block is tried by itself,
/// and a host that has no room says nothing of the medium.
pub(crate) fn is_to_blame(work: &Work) -> bool {
    !work.is_of_host && !matches!(&work.owner, Owner::Group { items } if items.len() > 1)
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
    is_again: bool,
}

impl CommandEnded {
    /// Takes out what the command did for other requests than its own, one for each. Where it failed,
    /// and served requests of several operations, each of these is to be
    /// [tried by itself](Self::again): the device failed on what one of them is for, and nobody
    /// else's fails for it.
    pub(crate) fn take_others(&mut self) -> impl Iterator<Item = Self> + use<> {
        let Self { disk, finished, result, .. } = *self;
        let with = core::mem::take(&mut self.of_queue.with);
        let merged = self.of_queue.work.merged.take();
        let of_others = merged.as_ref().is_some_and(|merged| merged.of_others);
        let is_again = of_others && matches!(result, Some(Err(_)));
        if let Some(merged) = merged {
            self.of_queue.work.action = merged.own;
        }
        self.is_again = is_again;
        with.into_iter().map(move |of_queue| Self { disk, finished, result, of_queue, is_again })
    }

    /// What is to be tried by itself, where that is so.
    pub(crate) fn again(&self) -> Option<DiskAction> {
        self.is_again.then(|| self.of_queue.work.action.clone())
    }
}

/// What the device of this queue shall do now.
pub fn next_command(queue: &mut DiskQueue, now: Instant) -> DiskPoll {
    match queue.next(now) {
        Next::Wait { until } => DiskPoll::Wait { until },
        Next::Start { key, predicted, is_promised, work } => {
            // Metadata is used once: its bytes move out.
            let action = match &mut work.action {
                DiskAction::WriteBytes { offset, bytes } => {
                    DiskAction::WriteBytes { offset: *offset, bytes: core::mem::take(bytes) }
                }
                other => other.clone(),
            };
            DiskPoll::Start(DiskCommand { id: CommandId(key), action, predicted, is_promised })
        }
    }
}

/// A command of a best-effort operation, or a reader's block, that waits since `before`, and for
/// which there will be no slack, is given up: it ends here, without the device, in each of its
/// parts. The same for the node. What a writer or an updater has handed in waits on, as what `is_kept` says
/// of an operation: it would be lost.
pub(crate) fn given_up(
    queue: &mut DiskQueue,
    disk: DiskIndex,
    (now, before): (Instant, Instant),
    (is_reader, is_kept): (impl Fn(StreamId) -> bool, impl Fn(u64) -> bool),
) -> Vec<CommandEnded> {
    // What a reader asked for beyond its rate has its turn yet.
    let may = |work: &Work, class: &Class| match &work.owner {
        Owner::Piece { operation, .. } => !is_kept(*operation),
        Owner::Block { stream, .. } => matches!(class, Class::RealTime(_)) && is_reader(*stream),
        _ => false,
    };
    let ended = |of_queue: queue::Ended<Work>| {
        let result = of_queue.work.result(Err(DeviceError::NO_SLACK));
        CommandEnded { disk, finished: now, result, of_queue, is_again: false }
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
    if result.is_err_and(DeviceError::is_of_host)
        && let Some(work) = queue.work_mut(id.0)
    {
        work.is_of_host = true;
    }
    let of_queue = queue.ended_within(id.0, times, result.is_ok());
    let failed = of_queue.work.chunk.and_then(|chunk| chunk.failed).or(result.err());
    if let Some(Chunk { more: true, .. }) = of_queue.work.chunk
        && let Some(next) = queue.work_mut(id.0)
    {
        next.chunk = next.chunk.map(|chunk| Chunk { failed, ..chunk });
    }
    let result = of_queue.work.result(result);
    let (disk, finished) = (id.disk(), times.noticed);
    CommandEnded { disk, finished, result, of_queue, is_again: false }
}

/// As [`command_noticed`] has said, the device has ended a command and has gone on; what it was for is
/// there only now, since the driver had to fill memory. The node has not been told yet.
pub fn command_filled(queue: &mut DiskQueue, ended: &mut CommandEnded, now: Instant) {
    queue.filled(&mut ended.of_queue, ended.finished, now);
    ended.finished = ended.finished.max(now);
}

/// What has to be done although there will be no slack for it: a part of a record, without which nobody's bytes
/// become durable, and then what writers have handed in; of what waits in the slack only what has no turn, in
/// which it would go otherwise. One of a disk goes next, as [`DiskQueue::insist`] says.
pub(crate) fn insist(
    queue: &mut DiskQueue,
    now: Instant,
    waits: (Instant, Instant),
    (is_writer, has_turn): (impl Fn(StreamId) -> bool, impl Fn(&Owner) -> bool),
) -> bool {
    let is_written = |owner: &Owner| match owner {
        Owner::Group { .. } => true,
        Owner::Block { stream, .. } => is_writer(*stream),
        _ => false,
    };
    let must = |work: &Work, class: &Class| match &work.owner {
        Owner::Store { .. } => Some(0),
        owner if is_written(owner) => {
            (matches!(class, Class::RealTime(_)) || !has_turn(owner)).then_some(1)
        }
        _ => None,
    };
    queue.insist(now, waits, must)
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

    fn spans(work: &Work) -> Vec<(u64, u64)> {
        let spans = |spans: &[Span]| {
            spans.iter().map(|span| (span.offset.get() >> 10, span.len.get() >> 10)).collect()
        };
        match &work.action {
            DiskAction::Write { span, valid, .. } => {
                assert_eq!(*valid, span.len);
                spans(&[*span])
            }
            DiskAction::Several { direction, spans: all, .. } => {
                assert_eq!(*direction, Direction::Write);
                spans(all)
            }
            other => panic!("{other:?}"),
        }
    }

    /// Whosoever they are, and wherever their memory lies; what lies one behind the other in memory
    /// is one span.
    #[test]
    fn pieces_are_merged_before_and_behind_and_each_knows_what_it_was() {
        let kib = Bytes::kib;
        let mut work = write(1, kib(128), kib(256));
        for (operation, at, memory, side) in
            [(1, 192, 320, Side::Behind), (2, 256, 64, Side::Behind), (3, 64, 512, Side::Before)]
        {
            let other = write(operation, kib(at), kib(memory));
            let pair = if side == Side::Before { (&other, &work) } else { (&work, &other) };
            assert!(pair.0.may_merge(pair.1, true), "{operation}");
            work.merge(&other, side);
            let is_of_others = work.merged.as_ref().unwrap().of_others;
            assert_eq!(is_of_others, operation > 1);
        }
        assert_eq!(spans(&work), [(512, 64), (256, 128), (64, 64)]);
        let (range, direction) = work.action.transfer().unwrap();
        assert_eq!((range, direction), (kib(64)..kib(320), Direction::Write));
        let own = &work.merged.as_ref().unwrap().own;
        assert_eq!(own.transfer().unwrap().0, kib(128)..kib(192));
    }

    #[test]
    fn chunks_what_has_failed_and_what_is_long_are_not_merged() {
        let kib = Bytes::kib;
        let first = write(1, kib(64), kib(256));
        assert!(first.may_merge(&write(2, kib(128), kib(384)), true));
        assert!(!first.may_merge(&write(2, kib(128), kib(384)), false), "of another class");
        assert!(first.may_merge(&write(1, kib(128), kib(384)), false), "its own operation");
        let mut cut = write(1, kib(128), kib(320));
        cut.chunk = Some(Chunk { more: false, failed: None });
        assert!(!first.may_merge(&cut, true), "a chunk of a piece");
        let mut again = write(1, kib(128), kib(320));
        again.is_alone = true;
        assert!(
            !first.may_merge(&again, true) && !again.may_merge(&first, true),
            "it failed with others"
        );
        let long = Span { offset: kib(2_048), len: EXTENT - kib(64) };
        let long = |len: Bytes| {
            let action =
                DiskAction::Write { offset: kib(128), span: Span { len, ..long }, valid: len };
            Work::new(first.owner.clone(), action)
        };
        assert!(first.may_merge(&long(EXTENT - kib(64)), true));
        assert!(
            !first.may_merge(&long(EXTENT - kib(60)), true),
            "longer than one operation may be"
        );
    }
}
