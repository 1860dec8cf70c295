//! Operations without a stream: read, write, and memory for them.
//!
//! An operation has one span of memory and is cut into pieces, one transfer
//! each, so that no contract waits long behind it. It is answered when its last
//! piece has ended. Those of a volume under contract have memory that is set aside
//! ([`reserve`](crate::memory::reserve)); others that find none wait, up to a bound
//! ([`line`](crate::memory::line)); past that the work is handed back.
//!
//! A piece of a write claims its blocks ([`Writes`](crate::volumes::writes::Writes)) and waits for
//! those that came before it and overlap it. Where it begins or ends within 4 KiB, the
//! rest of these is read first, and goes back to the disk with it.
//!
//! What is read is cached, and read ahead of who reads on and on ([`cached`]); what is written may be
//! answered before it is on its disk ([`behind`]).

mod asking;
mod behind;
mod behind_end;
mod cached;
mod checks;
mod gaps;
mod pieces;

use self::behind::Behind;
pub(crate) use self::behind::{Deferred, Flushed};
use self::behind_end::Clearing;
pub(crate) use self::checks::find_to_write;
pub(crate) use self::gaps::Gap;
use self::pieces::{Whose, cut, edges, first_piece, read_piece, reads_anew, submit_for};
use crate::api::*;
use crate::core::Core;
use crate::limits;
use crate::memory::line::{Line, Rank, Waiter};
use crate::volumes::read_ahead::Readers;
use crate::volumes::services::{Holder, Kept};
use crate::volumes::slack::in_slack;
use crate::volumes::writes::{Claim, End, Extent};
use crate::work::{Owner, Part, Work};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;
use queue::ByKey;
use sched::Class;
use store::{EXTENT, VolumeId};
use units::{Bytes, Duration, Instant, Lba};

#[derive(Clone, Debug, Default)]
pub(crate) struct BestEffort {
    operations: ByKey<Operation>,
    /// Pieces of writes that have not ended.
    pieces: ByKey<Piece, Claim>,
    line: Line,
    readers: Readers,
    behind: Behind,
    clearing: Clearing,
    next: u64,
    /// Streams whose opening has failed here: to be closed.
    unopened: Vec<StreamId>,
    /// The node ends: nothing more is begun on a disk.
    ending: bool,
    /// When it is looked next whether some wait for slack that will not come.
    slack_looked: Option<Instant>,
}

#[derive(Clone, Debug)]
struct Operation {
    /// None: nobody asked for it, it reads ahead.
    ticket: Option<Ticket>,
    /// For whom.
    uid: u32,
    /// Who waits for what it reads ahead.
    waiting: Vec<Waiter>,
    volume: VolumeId,
    /// By whose contract it was asked for; none: by the volume's service.
    handle: Option<HandleId>,
    offset: Bytes,
    /// The end of the whole blocks of the volume that it touches.
    end: Bytes,
    span: Option<Span>,
    /// Its memory is of the line, not set aside for its volume.
    is_of_line: bool,
    kept: Kept,
    /// Of a write: the volume's recorded bytes reach so far when it has ended.
    recorded: Bytes,
    write: bool,
    /// What the handle states.
    priority: Option<Priority>,
    /// Of a write: who wants to know of changes that are not his own.
    writer: Option<Writer>,
    /// Those that have not ended.
    pieces: u64,
    /// In a box, as the reply is: both are seldom there, and the operation is moved in and out.
    error: Option<Box<Error>>,
    /// What follows where it went well, if that is not plain.
    then: Option<Then>,
}

/// What follows an operation that went well.
#[derive(Clone, Debug)]
enum Then {
    /// This is answered.
    Reply(Box<Reply>),
    /// Who waits for zeros behind the volume's end goes on, and hears where it has failed.
    Cleared,
}

impl Operation {
    /// A write of zeros alone within this range, which needs no memory of its asker, and after which no
    /// more is recorded than before.
    fn of_zeros(
        ticket: Ticket,
        now: Instant,
        volume: VolumeId,
        range: Range<Bytes>,
        then: Then,
    ) -> Self {
        Self {
            ticket: Some(ticket),
            uid: 0,
            waiting: Vec::new(),
            volume,
            handle: None,
            offset: range.start,
            end: range.end,
            span: None,
            is_of_line: false,
            kept: Kept::from(now),
            recorded: Bytes::ZERO,
            write: true,
            priority: None,
            writer: None,
            pieces: 0,
            error: None,
            then: Some(then),
        }
    }

    fn holder(&self) -> Holder {
        Holder { volume: self.volume, handle: self.handle }
    }

    /// A write, after which more may be recorded of the volume than before.
    fn moves_end(&self) -> bool {
        self.write && self.error.is_none() && self.then.is_none()
    }

    /// What it is answered with, where nothing has failed before.
    fn fails(&mut self, error: Error) {
        self.error.get_or_insert_with(|| Box::new(error));
    }
}

/// A piece of a write.
#[derive(Clone, Debug)]
struct Piece {
    operation: u64,
    extent: Extent,
    /// What is written, in bytes of the extent; without [`Piece::span`], nothing.
    bytes: Range<Bytes>,
    /// The whole blocks around them.
    blocks: Range<Bytes>,
    /// Their memory; none where only zeros are written.
    span: Option<Span>,
    /// Nothing is written but zeros, behind the end of the volume.
    clears: bool,
    /// Commands that must end before it is written.
    before: u64,
    failed: bool,
    /// The command that waits or is under way, and those before it.
    commands: Vec<CommandId>,
}

/// What somebody asks for.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub ticket: Ticket,
    /// The user, and the handle that he asks by.
    pub uid: u32,
    pub handle: Option<HandleId>,
    /// When his program asked.
    pub arrived: Instant,
    pub op: Op,
}

/// Who asks for an operation that has memory.
struct Asker {
    /// None: nobody, it is read ahead.
    ticket: Option<Ticket>,
    uid: u32,
    arrived: Instant,
}

impl BestEffort {
    /// Whether this operation is served as that volume, or that handle, is.
    pub(crate) fn is_of(&self, operation: u64, holder: Holder) -> bool {
        let operation = self.operations.get(operation);
        operation.is_some_and(|it| it.holder() == holder && it.ticket.is_some())
    }

    /// Somebody waits for memory of this volume's contract, or of this handle's.
    pub(crate) fn waits_for_contract(&self, holder: Holder) -> bool {
        self.line.has_waiting_of(holder)
    }

    /// The priority that the handle of this operation states.
    pub(crate) fn stated(&self, operation: u64) -> Option<Priority> {
        self.operations.get(operation).and_then(|operation| operation.priority)
    }

    /// Who asked for this operation.
    pub(crate) fn ticket(&self, operation: u64) -> Option<Ticket> {
        self.operations.get(operation).and_then(|operation| operation.ticket)
    }

    /// Whose an operation is that has not been answered, and by how much it is late by now, where a command
    /// of it that a disk has is late by so much.
    pub(crate) fn late_by(
        &self,
        now: Instant,
        operation: u64,
        of_command: Duration,
    ) -> Option<(Holder, Duration)> {
        let operation = self.operations.get(operation).filter(|it| it.ticket.is_some())?;
        Some((operation.holder(), operation.kept.late_by(now, of_command)))
    }

    /// Operations on a volume that somebody asked for. What is read ahead reads, at the worst, what
    /// is not the volume's any more, for nobody.
    fn on(&self, volume: VolumeId) -> impl Iterator<Item = &Operation> {
        self.operations.values().filter(move |it| it.volume == volume && it.ticket.is_some())
    }

    /// True while any operation touches the volume.
    pub(crate) fn touches(&self, volume: VolumeId) -> bool {
        self.on(volume).next().is_some()
    }

    /// The end of what operations have of the volume; its beginning where none has anything.
    pub(crate) fn reach(&self, volume: VolumeId) -> Bytes {
        self.on(volume).map(|operation| operation.end).max().unwrap_or_default()
    }

    /// True while any operation writes to the volume.
    pub(crate) fn writes(&self, volume: VolumeId) -> bool {
        self.on(volume).any(|operation| operation.write)
    }

    pub(crate) fn idle(&self) -> bool {
        self.operations.is_empty() && self.line.is_empty() && !self.behind.has_free()
    }

    /// The node ends. What no disk has begun is not done any more: its programs are told,
    /// and were promised nothing. What a disk has begun ends there, and however much has
    /// been asked for, nobody waits for more; but what was answered is written.
    pub(crate) fn hand_back(&mut self, core: &mut Core, now: Instant) {
        self.ending = true;
        for waiter in self.line.leave(|_| true) {
            core.answer(waiter.ticket, Err(Error::ShuttingDown));
        }
        self.take_back(core, now, |this, id| !this.is_owed(id));
    }

    /// Whoever waits for memory for a volume that is gone is told so.
    pub(crate) fn refuse_waiting_on(&mut self, core: &mut Core, volume: VolumeId, name: &str) {
        for waiter in self.line.leave_volume(volume) {
            core.answer(waiter.ticket, Err(Error::NoSuchVolume { name: String::from(name) }));
        }
        let ahead = self.operations.range(..).filter(|(_, it)| it.volume == volume);
        let ahead: Vec<u64> = ahead.map(|(id, _)| id).collect();
        for id in ahead {
            for waiter in core::mem::take(&mut self.operation(id).waiting) {
                core.answer(waiter.ticket, Err(Error::NoSuchVolume { name: String::from(name) }));
            }
        }
        self.readers.forget(volume);
        self.behind.forget(volume);
    }

    /// A volume, or a handle, is served in another way from now on: what is promised of what waits or is
    /// under way counts from now.
    pub(crate) fn begin_anew(&mut self, now: Instant, holder: Holder) {
        for operation in self.operations.values_mut().filter(|it| it.holder() == holder) {
            operation.kept.begin_anew(now);
        }
        let waiting = self.operations.values_mut().flat_map(|it| it.waiting.iter_mut());
        let theirs = waiting.filter(|one| one.place.is_some_and(|(other, _)| other == holder));
        theirs.for_each(|waiter| waiter.arrived = now);
        self.line.begin_anew(now, holder);
    }

    /// A handle is closed: what was asked by it goes on as the volume's, and nothing is
    /// promised of it.
    pub(crate) fn leave_handle(&mut self, core: &mut Core, now: Instant, holder: Holder) {
        for operation in self.operations.values_mut().filter(|it| it.holder() == holder) {
            operation.handle = None;
            operation.kept.unpromised();
        }
        for waiter in self.line.leave_holder(holder) {
            self.ask(core, now, Waiter { handle: None, ..waiter });
        }
    }

    /// Other memory is set aside for a volume, or a handle: whoever waits for it asks anew.
    pub(crate) fn ask_anew(&mut self, core: &mut Core, now: Instant, holder: Holder) {
        for waiter in self.line.leave_holder(holder) {
            self.ask(core, now, waiter);
        }
        self.serve_waiting(core, now);
    }

    /// [`Op::Room`] and [`Op::Read`].
    pub(crate) fn handle(&mut self, core: &mut Core, now: Instant, asked: Asked) {
        let Asked { ticket, uid, handle, arrived, op } = asked;
        let len = match &op {
            Op::Read { len, .. } | Op::Room { len, .. } => *len,
            _ => unreachable!("only operations that need memory"),
        };
        let rank = Priority::default().into();
        let mut waiter = Waiter { ticket, uid, handle, arrived, op, len, rank, place: None };
        if !self.placed(core, &mut waiter) {
            return;
        }
        let ahead = self.ahead_of(core, &waiter);
        self.ask_placed(core, now, waiter);
        if let Some(ahead) = ahead {
            self.read_ahead(core, now, ahead);
        }
    }

    /// What no disk has begun of such operations is not done.
    fn take_back(&mut self, core: &mut Core, now: Instant, is_meant: fn(&Self, u64) -> bool) {
        self.take_back_reads(core, now, is_meant);
        for (command, operation, part) in core.pieces() {
            if is_meant(self, operation) && core.cancel(command) {
                self.operation(operation).fails(Error::ShuttingDown);
                self.part_done(core, now, operation, part, false);
            }
        }
    }

    /// [`Op::Release`], of somebody who is answered or not.
    pub(crate) fn release(
        &mut self,
        core: &mut Core,
        now: Instant,
        ticket: Option<Ticket>,
        span: Span,
    ) {
        self.give(core, now, span);
        if let Some(ticket) = ticket {
            core.answer(ticket, Ok(Reply::Done));
        }
        self.serve_waiting(core, now);
    }

    /// When something is to be done: those that wait are refused, as [`Line::due`] says, looked at, or asked
    /// again.
    pub(crate) fn due(&self) -> Option<Instant> {
        if self.behind.has_free() {
            return Some(Instant::EPOCH); // at once
        }
        self.line.due().into_iter().chain(self.slack_looked).min()
    }

    /// Sees to it that what is under way is looked at in time. True where that was not so.
    pub(crate) fn look_for_slack_later(&mut self, now: Instant, has_streams: bool) -> bool {
        let waits = has_streams || !self.operations.is_empty();
        let is_new = self.slack_looked.is_none() && waits;
        if is_new {
            self.slack_looked = Some(now.saturating_add(limits::NO_SLACK_WITHIN));
        }
        is_new
    }

    /// Whether it is time to look.
    pub(crate) fn looks_for_slack(&mut self, now: Instant) -> bool {
        self.slack_looked.take_if(|due| *due <= now).is_some()
    }

    /// Refuses what waits for memory that does not come; not what waits for its contract's.
    pub(crate) fn refuse_overdue(&mut self, core: &mut Core, now: Instant) {
        if self.line.due().is_none_or(|due| due > now) {
            return;
        }
        let free = core.arena.free_for_best_effort();
        let Core { reserves, .. } = core;
        let in_vain = |waiter: &Waiter| {
            let place = waiter.place.filter(|_| waiter.rank == Rank::Contract);
            place.is_none_or(|place| reserves.is_stuck(now, place, waiter.len))
        };
        let refused = self.line.leave(in_vain);
        self.line.looked_at(now);
        for Waiter { ticket, len: asked, .. } in refused {
            core.answer(ticket, Err(Error::NoMemory { asked, free }));
        }
    }

    /// Answers a write that cannot be; its memory goes to whoever waits for some.
    pub(crate) fn refuse_write(
        &mut self,
        core: &mut Core,
        now: Instant,
        ticket: Ticket,
        span: Span,
        error: Error,
    ) {
        self.give(core, now, span);
        core.answer(ticket, Err(error));
        self.serve_waiting(core, now);
    }

    /// Answers what cannot be; the memory of a write goes to whoever waits for some.
    pub(crate) fn refuse(
        &mut self,
        core: &mut Core,
        now: Instant,
        ticket: Ticket,
        op: &Op,
        error: Error,
    ) {
        match *op {
            Op::Write { span, .. } => self.refuse_write(core, now, ticket, span, error),
            _ => core.answer(ticket, Err(error)),
        }
    }

    #[allow(clippy::too_many_arguments)] // what is asked
    fn read(
        &mut self,
        core: &mut Core,
        now: Instant,
        asker: Asker,
        holder: Holder,
        offset: Bytes,
        span: Span,
        priority: Option<Priority>,
    ) {
        let is_of_line = self.line.begin(&span);
        core.reserves.begin(&span);
        let Holder { volume, handle } = holder;
        let Asker { ticket, uid, arrived } = asker;
        let id = self.next;
        self.next += 1;
        let mut operation = Operation {
            ticket,
            uid,
            waiting: Vec::new(),
            volume,
            handle,
            offset,
            end: offset + span.len,
            span: Some(span),
            is_of_line,
            kept: Kept::from(arrived),
            recorded: Bytes::ZERO,
            write: false,
            priority,
            writer: None,
            pieces: 0,
            error: None,
            then: None,
        };
        let blocks = offset..offset + span.len;
        // Zeros for what is not shown yet are nobody else's: by then it may have been answered.
        if core.writes.cache.has_taken(&span) && !core.store.is_ahead(volume, &blocks) {
            core.writes.expect_to_cache(volume, id, &blocks, ticket.is_none());
        }
        let whose = Whose { holder, stated: priority, is_asked_for: ticket.is_some() };
        let mut at = blocks.start;
        while at < blocks.end {
            let (extent, range, location) = first_piece(core, whose, at..blocks.end);
            let (len, before) = (range.end - range.start, at - offset);
            at += len;
            let span = Span { offset: span.offset + before, len };
            operation.pieces += 1;
            if !self.waits_for_write(core, now, (id, &operation), ((volume, extent), &range), span)
            {
                read_piece(core, now, &mut operation, id, extent, (range, location), span);
            }
        }
        self.operations.insert(id, operation);
    }

    /// [`Op::Write`].
    pub(crate) fn write(&mut self, core: &mut Core, now: Instant, asked: Asked) {
        let Asked { ticket, uid, arrived, op, handle } = asked;
        let Op::Write { volume, range, span, priority } = op else { unreachable!("a write") };
        let came = (Asker { ticket: Some(ticket), uid, arrived }, handle);
        let written = self.begin_write(core, now, came, &volume, range, span, priority);
        if let Err(error) = written {
            self.refuse_write(core, now, ticket, span, error);
        }
    }

    #[allow(clippy::too_many_arguments)] // what is asked
    fn begin_write(
        &mut self,
        core: &mut Core,
        now: Instant,
        (asker, handle): (Asker, Option<HandleId>),
        volume: &str,
        range: WriteRange,
        span: Span,
        priority: Option<Priority>,
    ) -> Result<(), Error> {
        let bytes = range.offset..range.offset.saturating_add(range.len);
        let start = range.offset - range.skip();
        let blocks = start..start.saturating_add(range.room());
        let holder = core.holder(find_to_write(core, volume, &blocks)?, handle);
        let Holder { volume, handle } = holder;
        if range.len.is_zero() || range.room() > span.len {
            let rule = "more than nothing, and in memory from the start of its first 4 KiB on";
            return Err(Error::Invalid { what: "length", rule });
        }
        if let Some(error) = core.read_only() {
            return Err(error);
        }
        core.place_all(now, volume, &blocks)?;
        let is_of_line = self.line.begin(&span);
        core.reserves.begin(&span);
        let Asker { ticket, uid, arrived } = asker;
        let first = core.writes.next_claim();
        let id = self.open(Operation {
            ticket,
            uid,
            waiting: Vec::new(),
            volume,
            handle,
            offset: bytes.start,
            end: blocks.end,
            span: Some(span),
            is_of_line,
            kept: Kept::from(arrived),
            recorded: bytes.end,
            write: true,
            priority,
            writer: range.writer,
            pieces: 0,
            error: None,
            then: None,
        });
        let whose = Whose { holder, stated: priority, is_asked_for: ticket.is_some() };
        for (index, range) in cut(core, whose, blocks.clone()) {
            let start = EXTENT * index;
            let piece = Piece {
                operation: id,
                extent: (volume, index),
                bytes: bytes.start.saturating_sub(start).max(range.start)
                    ..(bytes.end - start).min(range.end),
                span: Some(Span {
                    offset: span.offset + (start + range.start - blocks.start),
                    len: range.end - range.start,
                }),
                blocks: range,
                clears: false,
                before: 0,
                failed: false,
                commands: Vec::new(),
            };
            self.claim(core, now, piece);
        }
        if !self.clear_beside(core, now, id) && range.behind {
            self.may_be_behind(core, id, first);
        }
        Ok(())
    }

    /// Claims the blocks of a piece, and begins with it unless it must wait for others.
    fn claim(&mut self, core: &mut Core, now: Instant, piece: Piece) {
        let extent = piece.extent;
        let operation = self.operation(piece.operation);
        operation.pieces += 1;
        let waits_long = operation.priority == Some(Priority::Background);
        let writer = operation.writer;
        let blocks = piece.blocks.clone();
        let claim = match piece.clears {
            true => core.writes.claim_written(extent, blocks),
            false => core.writes.claim(&mut core.store, extent, blocks, writer),
        };
        self.pieces.insert(claim, piece);
        if core.writes.may_start(extent, claim) {
            return self.begin(core, now, claim);
        }
        if !waits_long {
            for before in core.writes.before(extent, claim) {
                let before = &self.pieces[before];
                before.commands.iter().for_each(|&id| core.lift(now, id, extent.0));
            }
        }
    }

    /// Nobody is before this piece: whatever must be done first, or it itself.
    fn begin(&mut self, core: &mut Core, now: Instant, claim: Claim) {
        if self.is_too_late_for(self.pieces[claim].operation) {
            return self.write_piece(core, now, claim);
        }
        let piece = &self.pieces[claim];
        if piece.clears {
            return self.begin_to_clear(core, now, claim);
        }
        let (volume, index) = piece.extent;
        let (blocks, span) = (piece.blocks.clone(), piece.span);
        let location = core.store.locate(volume, index).expect("within the volume");
        let at = location.offset.expect("it has a place before it is written");
        let claimed = core.writes.range(piece.extent, claim);
        let mut first = Vec::new();
        if let Some(span) = span {
            for (block, keep) in edges(&piece.bytes, &blocks) {
                let within = block..block + limits::BLOCK_MIN;
                let upto = match location.written.covers(&within) {
                    true => core.writes.ends.upto(&core.store, volume, EXTENT * index + block),
                    false => Bytes::ZERO,
                };
                first.push(DiskAction::Merge {
                    offset: at + block,
                    span: Span {
                        offset: span.offset + (block - blocks.start),
                        len: limits::BLOCK_MIN,
                    },
                    keep,
                    upto,
                });
            }
        }
        // What the extent may not leave as a hole, in pieces as long as there are zeros for.
        let zeros = match span {
            Some(_) => claimed.start..blocks.start,
            None => claimed,
        };
        for run in Blocks::of(&zeros).without(&location.written).runs() {
            let mut done = run.start;
            while done < run.end {
                let len = (run.end - done).min(limits::ZEROS);
                let span = Span { offset: core.arena.zeros().offset, len };
                first.push(DiskAction::Write { offset: at + done, span, valid: len });
                done += len;
            }
        }
        self.piece(claim).before = first.len() as u64;
        if first.is_empty() {
            return self.write_piece(core, now, claim);
        }
        for action in first {
            self.submit(core, now, claim, location.disk, action, Part::Before(claim));
        }
    }

    /// All is done that had to be done before.
    fn write_piece(&mut self, core: &mut Core, now: Instant, claim: Claim) {
        let operation = self.pieces[claim].operation;
        if self.is_too_late_for(operation) {
            self.operation(operation).fails(Error::ShuttingDown);
            self.piece(claim).failed = true;
        }
        let piece = self.piece(claim);
        let (blocks, (volume, index)) = (piece.blocks.clone(), piece.extent);
        match piece.span.filter(|_| !piece.failed) {
            None => {
                let end = if piece.failed { End::Failed } else { End::Written };
                self.end_piece(core, now, claim, end);
            }
            Some(span) => {
                let location = core.store.locate(volume, index).expect("within the volume");
                let at = location.offset.expect("it has a place before it is written");
                let offset = at + blocks.start;
                let action = DiskAction::Write { offset, span, valid: span.len };
                self.submit(core, now, claim, location.disk, action, Part::Write(claim));
            }
        }
    }

    fn submit(
        &mut self,
        core: &mut Core,
        now: Instant,
        claim: Claim,
        disk: DiskIndex,
        action: DiskAction,
        part: Part,
    ) {
        let operation = self.pieces[claim].operation;
        let class = self.class_of(core, operation, disk, &action);
        let owner = Owner::Piece { operation, part };
        let operation = self.operation(operation);
        let id = submit_for(core, now, operation, (disk, class), (action, owner));
        self.piece(claim).commands.push(id);
    }

    /// The class of what an action of an operation transfers.
    fn class_of(&self, core: &Core, id: u64, disk: DiskIndex, action: &DiskAction) -> Class {
        let operation = &self.operations[id];
        let (holder, stated) = (operation.holder(), operation.priority);
        match action.transfer() {
            // Nobody asked for it: no contract has it.
            Some(_) if operation.ticket.is_none() => {
                in_slack(stated.unwrap_or_default(), holder.volume)
            }
            Some((range, direction)) => {
                let (at, len) = (Lba::containing(range.start), range.end - range.start);
                let class = core.class_of(holder, disk, at, len, direction, stated);
                // Zeros that nobody has asked for take no turn of a contract.
                let is_own = operation.then.is_some() || core.arena.is_zeros(action);
                let is_awaited = || self.behind.is_awaited(id);
                match class {
                    Class::RealTime(_) | Class::Server { .. } if is_own => {
                        in_slack(Priority::Interactive, holder.volume)
                    }
                    Class::BestEffort { .. } | Class::Background if is_awaited() => {
                        in_slack(Priority::Interactive, holder.volume)
                    }
                    _ => class,
                }
            }
            None => Class::Background, // it is done at once
        }
    }

    /// A command has failed that served others, too: this part of its work is tried by itself, in the
    /// slack. False where nothing more is begun.
    pub(crate) fn again(
        &mut self,
        core: &mut Core,
        now: Instant,
        disk: DiskIndex,
        (id, part): (u64, Part),
        action: DiskAction,
        promised: Option<(Duration, Duration, Instant)>,
    ) -> bool {
        if self.is_too_late_for(id) {
            return false;
        }
        let (disk, action) = match (part, &action) {
            (Part::Read, DiskAction::Read { span, .. }) => {
                match reads_anew(core, &self.operations[id], *span) {
                    Ok(anew) => anew,
                    Err(error) => {
                        self.operation(id).fails(error);
                        return false;
                    }
                }
            }
            _ => (disk, action),
        };
        let operation = self.operation(id);
        // What was promised of it stays so.
        if let Some((late_by, latency, due)) = promised {
            operation.kept.ended(late_by, latency, due);
        }
        let volume = operation.volume;
        let class = match self.class_of(core, id, disk, &action) {
            Class::RealTime(_) => in_slack(Priority::Interactive, volume),
            class => class,
        };
        let owner = Owner::Piece { operation: id, part };
        let command = core.submit_work(now, disk, class, Work::alone(owner, action));
        if let Part::Before(claim) | Part::Write(claim) = part {
            self.piece(claim).commands.push(command);
        }
        true
    }

    /// A command has ended.
    pub(crate) fn command_done(
        &mut self,
        core: &mut Core,
        now: Instant,
        id: u64,
        part: Part,
        result: Result<(), (DiskIndex, DeviceError)>,
        promised: Option<(Duration, Duration, Instant)>,
    ) {
        let operation = self.operation(id);
        if let Some((late_by, latency, due)) = promised {
            operation.kept.ended(late_by, latency, due);
        }
        if let Err((disk, error)) = result {
            operation.fails(Error::Device { disk, error });
            if let Part::Write(claim) = part {
                self.may_be_anything(core, claim, &Error::Device { disk, error });
            }
        }
        self.part_done(core, now, id, part, result.is_ok());
    }

    /// A command has ended, well or not, or will not be done.
    fn part_done(&mut self, core: &mut Core, now: Instant, id: u64, part: Part, is_good: bool) {
        match part {
            Part::Read => self.piece_ended(core, now, id),
            Part::Before(claim) => {
                let piece = self.piece(claim);
                piece.before -= 1;
                piece.failed |= !is_good;
                if piece.before == 0 {
                    self.write_piece(core, now, claim);
                }
            }
            Part::Write(claim) => {
                let end = if is_good { End::Written } else { End::Failed };
                self.end_piece(core, now, claim, end);
            }
        }
    }

    /// The node ends, and this operation has not been answered, nor does one wait for it that was.
    fn is_too_late_for(&self, operation: u64) -> bool {
        self.ending && !self.is_owed(operation)
    }

    /// A piece of a write has ended: those that waited for it begin.
    fn end_piece(&mut self, core: &mut Core, now: Instant, claim: Claim, end: End) {
        let piece = self.pieces.remove(claim).expect("a piece ends once");
        let free = core.writes.end(&mut core.store, piece.extent, claim, end);
        let (volume, index) = piece.extent;
        if end == End::Written && piece.span.is_some() {
            let at = EXTENT * index;
            let blocks = at + piece.blocks.start..at + piece.blocks.end;
            core.writes.ends.written(volume, &blocks);
        }
        if piece.clears {
            self.ended_to_clear(core, now, piece.span);
        }
        core.changed(now);
        self.piece_ended(core, now, piece.operation);
        for claim in free {
            self.begin(core, now, claim);
        }
        self.read_behind(core, now, claim);
    }

    fn piece_ended(&mut self, core: &mut Core, now: Instant, id: u64) {
        let operation = self.operation(id);
        operation.pieces -= 1;
        // The disk may have failed on the block of the end since this write began.
        if operation.pieces == 0 && !self.clear_beside(core, now, id) {
            self.end(core, now, id);
        }
    }

    fn end(&mut self, core: &mut Core, now: Instant, id: u64) {
        let operation = self.operations.remove(id).expect("an operation ends once");
        let promise = core.services.account(now, operation.holder(), &operation.kept);
        if let Some(span) = &operation.span {
            core.reserves.end(now, span);
        }
        if operation.is_of_line {
            self.line.end(now);
            // Who waits is refused after a time only where nothing is under way.
            if self.line.due().is_some() {
                core.wake_timers();
            }
        }
        let Operation { ticket, uid, waiting, volume, offset, span, recorded, .. } = operation;
        let Operation { write, error, then, .. } = operation;
        if write && error.is_none() && then.is_none() {
            core.writes.raise(&mut core.store, volume, recorded);
        }
        if write && error.is_some() {
            core.writes.ends.write_failed(volume);
        }
        if write && core.writes.ends.has_failed(volume) && !self.writes(volume) {
            core.writes.ends.at_rest(&core.store, volume);
        }
        if self.behind.remove(id, uid) {
            self.ended_behind(volume, error);
            self.give(core, now, span.expect("it was written from"));
            return self.serve_waiting(core, now);
        }
        // What was read of a ring may be other bytes where they were given up meanwhile.
        let start = core.store.volume(volume).map_or(Bytes::ZERO, store::Volume::start);
        let is_gone = !write && offset < start;
        let error = error.map(|error| *error);
        if let Some(Then::Cleared) = then {
            return self.cleared(core, now, volume, error.as_ref());
        }
        let error = error.or_else(|| is_gone.then_some(Error::GivenUp { start }));
        if let (false, Some(span)) = (write, span) {
            let is_good = error.is_none();
            core.writes.cache.has_come((volume, id), (offset, span), uid, is_good);
        }
        let Some(ticket) = ticket else {
            self.give(core, now, span.expect("it was read into"));
            return self.read_on(core, now, waiting);
        };
        let give_back = write || error.is_some();
        let answer = match (error, then, span) {
            (Some(error), then, _) => {
                if let Some(Then::Reply(reply)) = &then
                    && let Reply::Stream { stream, .. } = **reply
                {
                    self.unopened.push(stream);
                }
                Err(error)
            }
            (None, Some(Then::Reply(reply)), _) => Ok(*reply),
            (None, Some(Then::Cleared), _) => unreachable!("told above"),
            (None, None, Some(_)) if write => Ok(Reply::Done),
            (None, None, Some(span)) => Ok(Reply::Data { bytes: span, offset }),
            (None, None, None) => Ok(Reply::Done),
        };
        core.answer_promised(ticket, answer, promise);
        if let (true, Some(span)) = (give_back, span) {
            self.give(core, now, span);
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
        self.operations.get_mut(id).expect("an operation under way")
    }

    fn piece(&mut self, claim: Claim) -> &mut Piece {
        self.pieces.get_mut(claim).expect("a piece of a write that has not ended")
    }
}
