//! What stands between a disk's thread and its device.
//!
//! A [`Backend`] belongs to one thread. It is given commands, and waited on for
//! their ends; it never decides anything. There are two: `uring` for files and
//! block devices, `emulated` for drive models. Before either stands `aside`, for what needs no
//! device.

pub(crate) mod aside;
pub(crate) mod emulated;
pub(crate) mod here;
mod transfer;
pub(crate) mod uring;

use crate::aligned::Aligned;
use crate::arena::Arena;
use crate::sys::Event;
use crate::{HostLateness, lock::Mutex};
use node::{CommandId, DeviceError, DiskAction, DiskCommand, Region, Span, Written};
use std::ops::Range;
use std::slice;
use std::sync::Arc;
use store::BLOCK;
use units::{Bytes, Direction, Instant};

/// The end of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Which command.
    pub id: CommandId,
    /// When the device began with it.
    pub started: Instant,
    /// When the device was done, as early as the host cannot rule out: what the host itself
    /// may have taken until it noticed is no time of the device's.
    pub finished: Instant,
    /// By when it was done for certain. What a request is held against is this.
    pub noticed: Instant,
    /// What the device said.
    pub result: Result<(), DeviceError>,
    /// What of it has ended.
    pub stage: Stage,
}

/// What of a command has ended. A device that is done can have its next command, whatever the host has
/// to do yet for the last one; whoever asked has to wait for that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// All of it, at once.
    Whole,
    /// The device is done with it. Its memory is still being filled: the end of that has this
    /// number, which no other command has.
    Device(u64),
    /// Its memory is filled. Of the times only `noticed` counts.
    Memory(u64),
}

impl Completion {
    /// The end of a command of which the host knows when it was.
    pub fn of(
        id: CommandId,
        started: Instant,
        finished: Instant,
        result: Result<(), DeviceError>,
    ) -> Self {
        Self { id, started, finished, noticed: finished, result, stage: Stage::Whole }
    }
}

/// A device that is given commands and waited on.
///
/// The memory of a command is the backend's from [`Backend::start`] to the end
/// of the command, all of it ([`Stage`]): nobody else refers to what it may fill.
pub trait Backend {
    /// Takes a command; it may go to the device now or at the next
    /// [`Backend::submit`] or [`Backend::wait`].
    fn start(&mut self, command: DiskCommand);

    /// Sends what was taken to the device without waiting for it.
    fn submit(&mut self);

    /// Sends what was taken, and sleeps until a command ends, somebody wakes the
    /// thread or `until` has come; then appends what has ended to `done`.
    fn wait(&mut self, until: Option<Instant>, done: &mut Vec<Completion>);

    /// Commands that were taken and have not ended.
    fn in_flight(&self) -> usize;
}

/// A device whose reads of what was written in part can be filled with zeros by somebody else.
pub(crate) trait LeavesHoles: Backend {
    /// As [`Backend::start`] of a read: what of its memory was never written is not touched.
    fn start_leaving_holes(&mut self, command: DiskCommand);

    /// Bytes of such reads that have ended and are still to be put into their places.
    fn take_read(&mut self) -> Vec<(CommandId, Scattered)>;
}

/// What was read for many pieces of memory.
pub(crate) struct Scattered {
    /// They begin with what the first piece is for.
    bytes: Aligned,
    span: Span,
    written: Written,
}

/// What a backend needs of its surroundings.
#[derive(Clone)]
pub(crate) struct Surroundings {
    /// The memory that spans point into.
    pub arena: Arc<Arena>,
    /// What others wake the thread with.
    pub event: Arc<Event>,
    /// Where the host's lateness is counted.
    pub lateness: Arc<Mutex<HostLateness>>,
}

/// What a command writes to in the arena, by the device's hand or by the backend's:
/// nobody else may refer to it while the command lasts.
pub(crate) fn fills(action: &DiskAction) -> &[Span] {
    match action {
        DiskAction::Copy { span, .. } if Region::of(span).is_none() => slice::from_ref(span),
        DiskAction::Copy { .. } => &[],
        _ if regions(action).next().is_some() => &[],
        DiskAction::Read { span, .. } | DiskAction::Merge { span, .. } => slice::from_ref(span),
        DiskAction::Several { spans, direction: Direction::Read, .. } => spans,
        DiskAction::Several { .. }
        | DiskAction::Write { .. }
        | DiskAction::WriteBytes { .. }
        | DiskAction::Flush => &[],
    }
}

/// The shared windows that a command transfers to or from: one for each of its spans that lies in one.
/// (A command that copies does so to or from the arena.)
pub(crate) fn regions(action: &DiskAction) -> impl Iterator<Item = Region> {
    let spans: [&[Span]; 2] = match action {
        DiskAction::Copy { from, span, .. } => [slice::from_ref(span), slice::from_ref(from)],
        DiskAction::Read { span, .. }
        | DiskAction::Write { span, .. }
        | DiskAction::Merge { span, .. } => [slice::from_ref(span), &[]],
        DiskAction::Several { spans, .. } => [spans, &[]],
        DiskAction::WriteBytes { .. } | DiskAction::Flush => [&[], &[]],
    };
    let all = spans.into_iter().flatten();
    all.filter_map(|span| Region::of(span).map(|(region, _)| region))
}

/// Fills room of a stream with zeros, to the end of its last page, before the program has it,
/// so that what a sync writes behind its bytes is zeros or its own.
pub(crate) fn zero_room(arena: &Arena, span: Span) {
    let end = (span.offset + span.len).round_up(BLOCK);
    zero(arena, Span { offset: span.offset, len: end - span.offset });
}

/// Fills with zeros what a read leaves out of its span.
fn zero_unwritten(arena: &Arena, span: Span, written: &Written) {
    if written.covers(span.len) {
        return; // mostly
    }
    holes(span, written).for_each(|hole| zero(arena, hole));
}

/// What a read leaves out of its span.
fn holes(span: Span, written: &Written) -> impl Iterator<Item = Span> {
    let holes = written.holes(span.len);
    holes.map(move |hole| Span { offset: span.offset + hole.start, len: hole.end - hole.start })
}

/// Puts what was read of the blocks of a span into their places.
fn spread(arena: &Arena, Scattered { bytes, span, written }: &Scattered) {
    let first = written.span().start;
    for run in written.runs() {
        let into = Span { offset: span.offset + run.start, len: run.end - run.start };
        put(arena, into, &bytes[(run.start - first).as_usize()..]);
    }
}

/// Fills a span with the first of these bytes.
#[allow(unsafe_code)]
fn put(arena: &Arena, span: Span, bytes: &[u8]) {
    let from = &bytes[..span.len.as_usize()];
    // SAFETY: the span lies in the arena or a region (`pointer` checks), and is lent to one
    // command alone; `bytes` are not of it, and `from` has this length.
    unsafe { arena.pointer(span).copy_from_nonoverlapping(from.as_ptr(), from.len()) };
}

/// Puts the first `upto` bytes of a block that was read, and zeros behind them, around the bytes of a
/// span that are kept.
#[allow(unsafe_code)]
fn merge(arena: &Arena, span: Span, keep: &Range<Bytes>, upto: Bytes, block: &mut [u8]) {
    block[upto.as_usize()..].fill(0);
    assert_eq!(block.len(), span.len.as_usize(), "a block for all of the span");
    for part in [Bytes::ZERO..keep.start, keep.end..span.len] {
        let (at, len) = (part.start.as_usize(), (part.end - part.start).as_usize());
        let into =
            arena.pointer(Span { offset: span.offset + part.start, len: part.end - part.start });
        // SAFETY: the part lies in the arena (`pointer` checks), and by `fills` it is lent
        // to this command alone; `block` is not of the arena and has these bytes.
        unsafe { into.copy_from_nonoverlapping(block[at..at + len].as_ptr(), len) };
    }
}

/// Copies what lies in memory, from one span to another of the same length.
#[allow(unsafe_code)]
fn copy(arena: &Arena, from: Span, to: Span) {
    assert_eq!(from.len, to.len, "as much as there is");
    // SAFETY: both lie in the arena or in regions (`pointer` checks). The node keeps both for this
    // command until it has ended: nothing is written to `from`, by a program neither, since of
    // regions only those come here that programs only look at; and by `fills` `to` is lent to it
    // alone, or lies in a region, into which nobody here makes references. The node gives places
    // that do not overlap, and where they did `copy_from` would still be defined.
    unsafe { arena.pointer(to).copy_from(arena.pointer(from), to.len.as_usize()) };
}

#[allow(unsafe_code)]
fn zero(arena: &Arena, span: Span) {
    // SAFETY: the span lies in the arena (`pointer` checks), and is lent to a command, or to
    // a program that does not know of it yet; or it lies in a region, into which nobody here
    // makes references.
    unsafe { arena.pointer(span).write_bytes(0, span.len.as_usize()) };
}

#[cfg(test)]
impl Surroundings {
    /// A small arena and an event, for a backend in a test.
    pub(crate) fn alone() -> Self {
        let arena = Arena::new(Bytes::mib(16), crate::Pages::Small, &mut Vec::new())
            .expect("16 MiB of memory");
        Self {
            arena: Arc::new(arena),
            event: Arc::new(Event::new().expect("an event")),
            lateness: Arc::new(Mutex::new(HostLateness::default())),
        }
    }
}
