//! Operations without a contract: read, write, and memory for them.
//!
//! An operation has one span of memory and is cut into pieces, one command
//! each, so that no contract waits long behind it. It is answered when its last
//! piece has ended. Operations that find no memory wait in order, up to a
//! bound; past that the work is handed back.

use crate::api::*;
use crate::arena::Use;
use crate::core::{Core, Owner, Written};
use crate::limits;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::String;
use core::ops::Range;
use sched::{Class, Flow};
use store::{EXTENT, VolumeId};
use units::{Bytes, Duration, Instant};
use units::{Direction, Lba};

/// Zeros of one extent and the writes that may only follow them: one after the
/// other. (Two extents in one flow would only wait for each other needlessly.)
fn in_order(volume: VolumeId, extent: u64) -> Class {
    let flow = Flow(volume.0.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(extent) | 1 << 63);
    Class::BestEffort { synchronous: true, flow, ordered: true }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct BestEffort {
    operations: BTreeMap<u64, Operation>,
    /// Waiting for memory.
    waiting: VecDeque<(Ticket, Op)>,
    next: u64,
}

#[derive(Clone, Debug)]
struct Operation {
    /// Whom to answer; none for zeros that nobody asked for.
    ticket: Option<Ticket>,
    volume: VolumeId,
    offset: Bytes,
    span: Option<Span>,
    /// Of a write: what is not counted as recorded.
    padding: Bytes,
    write: bool,
    /// What the handle states.
    priority: Option<Priority>,
    pieces: u64,
    error: Option<Error>,
    /// What to answer when it went well, where that is not plain.
    then: Option<Reply>,
}

/// A range of an extent that was never written and shall be zeros.
#[derive(Clone, Debug)]
pub(crate) struct Gap {
    pub volume: VolumeId,
    pub extent: u64,
    pub range: Range<Bytes>,
}

impl BestEffort {
    /// Whether this operation is on that volume.
    pub(crate) fn is_of(&self, operation: u64, volume: VolumeId) -> bool {
        self.operations.get(&operation).is_some_and(|operation| operation.volume == volume)
    }

    /// The priority that the handle of this operation states.
    pub(crate) fn stated(&self, operation: u64) -> Option<Priority> {
        self.operations.get(&operation).and_then(|operation| operation.priority)
    }

    /// Who asked for this operation.
    pub(crate) fn ticket(&self, operation: u64) -> Option<Ticket> {
        self.operations.get(&operation).and_then(|operation| operation.ticket)
    }

    /// True while any operation touches the volume.
    pub(crate) fn touches(&self, volume: VolumeId) -> bool {
        self.operations.values().any(|operation| operation.volume == volume)
    }

    /// True while any operation writes to the volume.
    pub(crate) fn writes(&self, volume: VolumeId) -> bool {
        let mut operations = self.operations.values();
        operations.any(|operation| operation.volume == volume && operation.write)
    }

    pub(crate) fn idle(&self) -> bool {
        self.operations.is_empty() && self.waiting.is_empty()
    }

    /// Everything that waits for memory is answered with `error`.
    pub(crate) fn refuse_waiting(&mut self, core: &mut Core, error: &Error) {
        for (ticket, _) in self.waiting.drain(..) {
            core.answer(ticket, Err(error.clone()));
        }
    }

    /// [`Op::Room`], [`Op::Read`], [`Op::Write`] and [`Op::Release`].
    pub(crate) fn handle(&mut self, core: &mut Core, now: Instant, ticket: Ticket, op: Op) {
        match op {
            Op::Release { span } => {
                core.arena.give(span, Use::BestEffort);
                core.answer(ticket, Ok(Reply::Done));
                self.serve_waiting(core, now);
            }
            Op::Write { volume, offset, span, padding, priority } => {
                let written =
                    self.write(core, now, ticket, &volume, offset, padding, span, priority);
                if let Err(error) = written {
                    core.arena.give(span, Use::BestEffort);
                    core.answer(ticket, Err(error));
                    self.serve_waiting(core, now);
                }
            }
            op if self.waiting.is_empty() => self.start(core, now, ticket, op),
            op => self.wait(core, ticket, op),
        }
    }

    fn wait(&mut self, core: &mut Core, ticket: Ticket, op: Op) {
        let waiting = self.waiting.len();
        if waiting >= limits::BEST_EFFORT_WAITING_MAX {
            return core.answer(ticket, Err(Error::Busy { waiting: waiting as u64 }));
        }
        self.waiting.push_back((ticket, op));
    }

    /// Starts an operation that needs memory, or lets it wait for some.
    fn start(&mut self, core: &mut Core, now: Instant, ticket: Ticket, op: Op) {
        let len = match &op {
            Op::Read { len, .. } | Op::Room { len } => *len,
            _ => unreachable!("only operations that need memory"),
        };
        let checked = match &op {
            Op::Read { volume, offset, len, .. } => find(core, volume, *offset, *len).map(Some),
            _ => check_len(len).map(|()| None),
        };
        let volume = match checked {
            Ok(volume) => volume,
            Err(error) => return core.answer(ticket, Err(error)),
        };
        let Some(span) = core.arena.take(len, Use::BestEffort) else {
            return self.wait(core, ticket, op);
        };
        match op {
            Op::Read { offset, priority, .. } => {
                let volume = volume.expect("a read has a volume");
                self.read(core, now, ticket, volume, offset, span, priority);
            }
            _ => core.answer(ticket, Ok(Reply::Room { span })),
        }
    }

    /// Memory has come back: as many as it suffices for, in order.
    fn serve_waiting(&mut self, core: &mut Core, now: Instant) {
        while let Some((ticket, op)) = self.waiting.pop_front() {
            let before = self.waiting.len();
            self.start(core, now, ticket, op);
            if self.waiting.len() > before {
                // It went to the end for want of memory; it belongs in front.
                let first = self.waiting.pop_back().expect("put there just now");
                return self.waiting.push_front(first);
            }
        }
    }

    #[allow(clippy::too_many_arguments)] // what is asked
    fn read(
        &mut self,
        core: &mut Core,
        now: Instant,
        ticket: Ticket,
        volume: VolumeId,
        offset: Bytes,
        span: Span,
        priority: Option<Priority>,
    ) {
        let id = self.open(Operation {
            ticket: Some(ticket),
            volume,
            offset,
            span: Some(span),
            padding: Bytes::ZERO,
            write: false,
            priority,
            pieces: 0,
            error: None,
            then: None,
        });
        let mut at = offset;
        let end = offset + span.len;
        while at < end {
            let (extent, within) = (at / EXTENT, at % EXTENT);
            let location = core.store.locate(volume, extent).expect("within the volume");
            let piece = core.disk(location.disk).piece.min(core.services.piece(volume));
            let len = (end - at).min(EXTENT - within).min(piece);
            let place = Lba::containing(location.offset + within);
            let class = core.class_of(volume, location.disk, place, len, Direction::Read, priority);
            let action = DiskAction::Read {
                offset: location.offset + within,
                span: Span { offset: span.offset + (at - offset), len },
                valid: location.written.saturating_sub(within).min(len),
            };
            let owner = Owner::Piece { operation: id, write: None };
            core.submit(now, location.disk, class, action, owner);
            self.operation(id).pieces += 1;
            at += len;
        }
    }

    #[allow(clippy::too_many_arguments)] // what is asked
    fn write(
        &mut self,
        core: &mut Core,
        now: Instant,
        ticket: Ticket,
        volume: &str,
        offset: Bytes,
        padding: Bytes,
        span: Span,
        priority: Option<Priority>,
    ) -> Result<(), Error> {
        let volume = find(core, volume, offset, span.len)?;
        if padding >= limits::BLOCK_MIN {
            return Err(Error::Invalid { what: "padding", rule: "less than 4 KiB" });
        }
        if let Some(error) = core.read_only() {
            return Err(error);
        }
        let id = self.open(Operation {
            ticket: Some(ticket),
            volume,
            offset,
            span: Some(span),
            padding,
            write: true,
            priority,
            pieces: 0,
            error: None,
            then: None,
        });
        let mut at = offset;
        let end = offset + span.len;
        while at < end {
            let (extent, within) = (at / EXTENT, at % EXTENT);
            let location = core.store.locate(volume, extent).expect("within the volume");
            let piece = core.disk(location.disk).piece.min(core.services.piece(volume));
            let len = (end - at).min(EXTENT - within).min(piece);
            let range = within..within + len;
            if let Some(gap) = core.writes.claim(volume, extent, range.clone(), location.written) {
                self.write_zeros(core, now, id, volume, extent, gap);
            }
            let part = Span { offset: span.offset + (at - offset), len };
            self.write_piece(core, now, id, volume, extent, range, part);
            at += len;
        }
        Ok(())
    }

    /// Fills an extent with zeros from its watermark to `upto`, so that a
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
        let id = self.open(Operation {
            ticket: Some(ticket),
            volume,
            offset: EXTENT * extent,
            span: None,
            padding: Bytes::ZERO,
            write: true,
            priority: None,
            pieces: 0,
            error: None,
            then: Some(then),
        });
        // Claimed as a write of the gap itself, so nothing is left to fill.
        let none = core.writes.claim(volume, extent, range.clone(), range.start);
        assert!(none.is_none(), "the gap begins at the watermark");
        self.write_zeros(core, now, id, volume, extent, range);
    }

    /// `range` must have been claimed as one; its pieces complete as one.
    fn write_zeros(
        &mut self,
        core: &mut Core,
        now: Instant,
        id: u64,
        volume: VolumeId,
        extent: u64,
        range: Range<Bytes>,
    ) {
        let parts = (range.end - range.start).div_ceil(limits::ZEROS);
        core.writes.fill(volume, extent, range.clone(), parts);
        let zeros = core.arena.zeros();
        let mut at = range.start;
        while at < range.end {
            let len = (range.end - at).min(limits::ZEROS);
            let part = Span { offset: zeros.offset, len };
            self.write_piece(core, now, id, volume, extent, at..at + len, part);
            at += len;
        }
    }

    #[allow(clippy::too_many_arguments)] // where from, where to, and for whom
    fn write_piece(
        &mut self,
        core: &mut Core,
        now: Instant,
        id: u64,
        volume: VolumeId,
        extent: u64,
        range: Range<Bytes>,
        span: Span,
    ) {
        let location = core.store.locate(volume, extent).expect("within the volume");
        let offset = location.offset + range.start;
        let action = DiskAction::Write { offset, span, valid: span.len };
        let after_zeros = core.writes.behind_zeros(volume, extent, &range);
        let class = match after_zeros {
            true => in_order(volume, extent),
            false => {
                let place = Lba::containing(offset);
                let stated = self.operation(id).priority;
                core.class_of(volume, location.disk, place, span.len, Direction::Write, stated)
            }
        };
        let write = Some(Written { volume, extent, from: range.start, to: range.end });
        let owner = Owner::Piece { operation: id, write };
        core.submit(now, location.disk, class, action, owner);
        self.operation(id).pieces += 1;
    }

    /// A piece has ended.
    pub(crate) fn piece_done(
        &mut self,
        core: &mut Core,
        now: Instant,
        id: u64,
        write: Option<Written>,
        result: Result<(), (DiskIndex, DeviceError)>,
        promised: Option<(Duration, Duration)>,
    ) {
        if let Some((late_by, latency)) = promised {
            let volume = self.operation(id).volume;
            core.services.account(volume, late_by, latency);
        }
        if let Some(Written { volume, extent, from, to }) = write {
            match result {
                Ok(()) => {
                    let watermark = core.writes.complete(volume, extent, from..to);
                    core.store.note_written(volume, extent, watermark);
                    core.changed(now);
                }
                Err((disk, error)) => core.writes.fail(volume, extent, from..to, disk, error),
            }
        }
        let operation = self.operation(id);
        operation.pieces -= 1;
        if let Err((disk, error)) = result {
            operation.error.get_or_insert(Error::Device { disk, error });
        }
        if operation.pieces == 0 {
            self.end(core, now, id);
        }
    }

    fn end(&mut self, core: &mut Core, now: Instant, id: u64) {
        let operation = self.operations.remove(&id).expect("an operation ends once");
        let Operation { ticket, volume, offset, span, padding, write, error, then, .. } = operation;
        let give_back = write || error.is_some();
        let answer = match (error, then, span) {
            (Some(error), ..) => Err(error),
            (None, Some(then), _) => Ok(then),
            (None, None, Some(span)) if write => {
                core.store.note_length(volume, offset + span.len - padding);
                Ok(Reply::Done)
            }
            (None, None, Some(span)) => Ok(Reply::Data { span, offset }),
            (None, None, None) => Ok(Reply::Done),
        };
        if let Some(ticket) = ticket {
            core.answer(ticket, answer);
        }
        if let (true, Some(span)) = (give_back, span) {
            core.arena.give(span, Use::BestEffort);
            self.serve_waiting(core, now);
        }
    }

    fn open(&mut self, operation: Operation) -> u64 {
        let id = self.next;
        self.next += 1;
        self.operations.insert(id, operation);
        id
    }

    fn operation(&mut self, id: u64) -> &mut Operation {
        self.operations.get_mut(&id).expect("an operation under way")
    }
}

fn check_len(len: Bytes) -> Result<(), Error> {
    if len.is_zero() || len > limits::BEST_EFFORT_MAX || !len.is_multiple_of(limits::BLOCK_MIN) {
        return Err(Error::Invalid { what: "length", rule: "a multiple of 4 KiB, at most 1 MiB" });
    }
    Ok(())
}

/// The volume of that name, if it has these bytes.
fn find(core: &Core, name: &str, offset: Bytes, len: Bytes) -> Result<VolumeId, Error> {
    check_len(len)?;
    if !offset.is_multiple_of(limits::BLOCK_MIN) {
        return Err(Error::Invalid { what: "offset", rule: "a multiple of 4 KiB" });
    }
    let none = || Error::NoSuchVolume { name: String::from(name) };
    let volume = core.store.find(name).map(|volume| volume.id()).ok_or_else(none)?;
    let size = core.store.volume(volume).expect("just found").size();
    match offset.checked_add(len) {
        Some(end) if end <= size.round_up(limits::BLOCK_MIN) => Ok(volume),
        _ => Err(Error::BeyondEnd { size }),
    }
}
