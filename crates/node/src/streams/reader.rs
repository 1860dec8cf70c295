//! A reader's window: filled ahead of the playout point, emptied behind it.

use crate::api::*;
use crate::core::Core;
use crate::limits::EARLY_REQUESTS;
use crate::node::Node;
use crate::streams::stream::{Lost, Slot, Stream};
use crate::work::BlockPart;
use alloc::vec::Vec;
use core::ops::Range;
use playout::Ask;
use store::BLOCK;
use units::{Bytes, Instant};

/// What a block failed with that did not come in time: `ETIMEDOUT` of Linux.
const TIMED_OUT: i32 = 110;

impl Stream {
    /// [`Op::StreamRead`].
    pub(crate) fn read(
        &mut self,
        core: &mut Core,
        now: Instant,
        ticket: Ticket,
        len_max: Bytes,
        has_writer: bool,
    ) {
        if self.mode != Mode::Read {
            return core.answer(ticket, Err(Error::WrongMode));
        }
        if let Err(error) = self.may_ask(len_max) {
            return core.answer(ticket, Err(error));
        }
        self.ask = Some(Ask::new(ticket, len_max));
        self.pump_reader(core, now, has_writer);
    }

    /// [`Op::StreamAdvance`].
    pub(crate) fn advance(
        &mut self,
        core: &mut Core,
        now: Instant,
        len: Bytes,
        has_writer: bool,
    ) -> Result<(), Error> {
        if self.mode != Mode::Read {
            return Err(Error::WrongMode);
        }
        if len > self.held {
            return Err(Error::Invalid { what: "advance", rule: "at most what was read last" });
        }
        self.held = Bytes::ZERO;
        self.pace.renew(now);
        let paid = len.min(self.pace.available(now));
        self.goes_beyond(self.position + len, len - paid);
        self.pace.spend(len, now);
        self.account.moved += len;
        self.position += len;
        self.pump_reader(core, now, has_writer);
        Ok(())
    }

    /// Whether [`Op::StreamRead`] of at most `len_max` would be answered with bytes at once: they are in
    /// memory, nobody asks, and the rate allows it.
    fn is_there(&self, core: &Core, now: Instant, len_max: Bytes) -> bool {
        let is_reader = self.mode == Mode::Read && self.shared.is_none() && !self.closing;
        let is_free = is_reader && self.ask.is_none() && self.held.is_zero();
        let length = core.store.volume(self.volume).expect("open volumes stay").length();
        let (at, block) = (self.position, self.block_at(self.position));
        let end = self.end_of(block, length);
        // What a jump began with early is handed out by its own rules.
        let is_early = self.early_upto(at).is_some() || self.is_early_with_disk(block);
        let is_there = self.primed
            && at < end
            && matches!(self.window.get(block), Some(Slot::Ready))
            && !is_early
            && self.lost_at(at).is_none();
        let within = || {
            let mut pace = self.pace;
            pace.renew(now);
            pace.may_pass(len_max.min(end - at)) <= now
        };
        is_free && is_there && !len_max.is_zero() && (self.may_read_beyond(now) || within())
    }

    /// Does all that can be done now: lets go of blocks behind the playout
    /// point, asks for blocks ahead, answers the program. `has_writer`: a writer
    /// is open on the volume.
    pub(crate) fn pump_reader(&mut self, core: &mut Core, now: Instant, has_writer: bool) {
        self.pump_reader_silently(core, now, has_writer);
        if self.closing {
            return;
        }
        if self.shared.is_some() {
            self.tell_data(core, now, has_writer);
        } else {
            self.answer_reader(core, now, has_writer);
        }
    }

    /// All but answers.
    pub(crate) fn pump_reader_silently(&mut self, core: &mut Core, now: Instant, has_writer: bool) {
        if self.closing {
            return;
        }
        self.follow(core, now);
        let first = self.window.first();
        while self.window.first() < self.block_at(self.position) && self.held.is_zero() {
            debug_assert!(!matches!(self.window.get(self.window.first()), Some(Slot::Moving(_))));
            self.slide(core);
        }
        self.let_excess_have_the_turn(core, now);
        self.ask_ahead(core, now, has_writer);
        // With each block, and where the program waits: a piece changes little.
        let is_there = matches!(self.window.get(self.block_at(self.position)), Some(Slot::Ready));
        if self.went_beyond && (first < self.window.first() || !is_there) {
            self.went_beyond = false;
            self.hold_back(core, now, has_writer);
        }
    }

    /// Requests every block of the window that has data and was not asked for, up to
    /// a bound: at any time a stream needs only those requests that its rate is made
    /// of, and a few early ones that find the disk idle. The next of a large window
    /// is asked for when one has come, which is before it can be released.
    fn ask_ahead(&mut self, core: &mut Core, now: Instant, has_writer: bool) {
        let needed = self.window.target.saturating_sub(self.contract.blocks_ahead(core.late));
        let moving = self.window.iter().filter(|(_, slot)| matches!(slot, Slot::Moving(_)));
        let moving = moving.count();
        let mut room = (needed + EARLY_REQUESTS).saturating_sub(moving as u64);
        let again = self.ask_anew(core, has_writer);
        let (mut behind_writer, mut asked) = (false, false);
        // Disks on which blocks wait for those that were asked for in the slack.
        let mut waiting = Vec::new();
        for block in self.window.first()..self.window.end() {
            if self.is_gone(core, block) {
                if self.window.get(block) == Some(&Slot::Open) {
                    let gone = self.gone(core, block);
                    *self.window.get_mut(block).expect("looked at above") = gone;
                }
                continue;
            }
            // A block that a writer is still filling is asked for when it is whole.
            if !self.has_data(core, block, has_writer) {
                behind_writer = has_writer;
                break;
            }
            match self.window.get(block) {
                Some(Slot::Open) => {}
                Some(&Slot::Moving(id)) => {
                    self.recall_waiting(core, now, block, id);
                    continue;
                }
                _ => continue,
            }
            if room == 0 {
                break;
            }
            let from = again.iter().find(|&&(anew, _)| anew == block);
            let from = from.map_or(Bytes::ZERO, |&(_, from)| from);
            if from.is_zero() && self.recall(core, now, block, None) {
                (room, asked) = (room - 1, true);
                continue;
            }
            let disk = self.disk_of(core, block);
            if waiting.contains(&disk) {
                continue;
            }
            let Some(class) = self.asking_class(core, now, (disk, block)) else {
                waiting.push(disk);
                continue;
            };
            (room, asked) = (room - 1, true);
            let (disk, parts) = self.reading_from(core, block, from);
            let needs_disk = parts.iter().any(|(action, _)| !action.needs_no_disk());
            let class = if needs_disk { class } else { self.class(disk) };
            let id = core.submit_parts(now, disk, class, parts);
            self.forget_lost(block, from);
            *self.window.get_mut(block).expect("looked at above") = Slot::Moving(id);
            self.note_end(core, block);
            if from.is_zero() {
                self.expect(core, block, id);
            }
        }
        self.note_wanted(core);
        // What has just been written was not asked for ahead: nobody could promise it.
        let was_behind = core::mem::replace(&mut self.behind_writer, behind_writer);
        if (was_behind || !again.is_empty()) && asked && self.primed {
            self.steady = self.steady.max(self.steady_from(core, now, has_writer));
        }
    }

    /// Remembers where the volume ends, if that is within a block that is read now.
    pub(crate) fn note_end(&mut self, core: &Core, block: u64) {
        let length = core.store.volume(self.volume).expect("open volumes stay").length();
        self.short.retain(|&(short, _)| short != block);
        if length < self.contract.block * (block + 1) {
            self.short.push((block, length));
        }
    }

    /// Where what was read of a block ends: the volume may have grown within it since.
    pub(crate) fn end_of(&self, block: u64, length: Bytes) -> Bytes {
        let end = (self.contract.block * (block + 1)).min(length);
        let short = self.short.iter().find(|&&(short, _)| short == block);
        short.map_or(end, |&(_, upto)| end.min(upto))
    }

    /// Blocks within which the volume ended when they were read, and has grown since, are to be
    /// read again: from the last 4 KiB on that were told, so that no more of what the program
    /// may look at is touched; all of one that had failed. Gives these, and from where on.
    fn ask_anew(&mut self, core: &Core, has_writer: bool) -> Vec<(u64, Bytes)> {
        let was_asked_for = |slot: Option<&Slot>| {
            matches!(slot, Some(Slot::Ready | Slot::Moving(_) | Slot::Failed(..)))
        };
        let Self { short, window, .. } = self;
        short.retain(|&(block, _)| was_asked_for(window.get(block)));
        let mut again = Vec::new();
        if !self.held.is_zero() || self.short.is_empty() {
            return again;
        }
        let length = core.store.volume(self.volume).expect("open volumes stay").length();
        for &(block, upto) in &self.short {
            let start = self.contract.block * block;
            let grew = upto < (start + self.contract.block).min(length);
            let from = match self.window.get(block) {
                Some(Slot::Ready) => upto.round_down(BLOCK).saturating_sub(start),
                Some(Slot::Failed(..)) => Bytes::ZERO,
                _ => continue,
            };
            if grew && self.has_data(core, block, has_writer) {
                again.push((block, from));
            }
        }
        for &(block, _) in &again {
            *self.window.get_mut(block).expect("looked at above") = Slot::Open;
        }
        again
    }

    fn answer_reader(&mut self, core: &mut Core, now: Instant, has_writer: bool) {
        let Some(ask) = self.ask else { return };
        let length = core.store.volume(self.volume).expect("open volumes stay").length();
        if self.position >= length {
            if !has_writer {
                self.reply(core, Ok(Reply::End));
            }
            return;
        }
        if !self.primed && !self.begin_playout(core, now) {
            return;
        }
        let block = self.block_at(self.position);
        let end = self.end_of(block, length);
        if let Some(upto) = self.early_upto(self.position) {
            // Nothing is promised of it.
            return self.hand_out(core, now, ask, upto, None);
        }
        if self.is_early_with_disk(block) {
            return;
        }
        match *self.window.get(block).expect("the playout point is in the window") {
            // It has grown, and a writer is at it: it is read again when it is whole.
            Slot::Ready if self.position >= end => {}
            Slot::Ready if self.lost_at(self.position).is_some() => {
                self.declare_gap(core, now, has_writer);
            }
            Slot::Ready => {
                let end = self.before_lost(self.position, end);
                let promise = self.promise_of(core, now, block);
                self.hand_out(core, now, ask, end, Some(promise));
            }
            Slot::Failed(..) => self.declare_gap(core, now, has_writer),
            Slot::Moving(id) => self.wait_for_block(core, now, (block, id), has_writer),
            // The writer has not filled this block yet, or nobody has asked for it since a jump.
            Slot::Full | Slot::Open | Slot::Loaded | Slot::Nowhere => {}
        }
    }

    /// Answers with what is there up to `end`, as much as is asked for, when the rate allows it.
    fn hand_out(
        &mut self,
        core: &mut Core,
        now: Instant,
        ask: Ask<Ticket>,
        end: Bytes,
        promise: Option<Promise>,
    ) {
        let len = ask.len_max.min(end - self.position);
        if self.may_read_beyond(now) || self.within_rate(core, now, len) {
            self.held = len;
            let span = Span { offset: self.place(self.position), len };
            let ask = self.ask.take().expect("somebody asked");
            let data = Reply::Data { bytes: span, offset: self.position };
            core.answer_promised(ask.ticket, Ok(data), promise);
        }
    }

    /// Whether playout may begin: everything that is due by now is there, and what follows
    /// will be in time.
    pub(crate) fn begin_playout(&mut self, core: &mut Core, now: Instant) -> bool {
        if now < self.steady {
            self.wake_by(core, self.steady);
            return false;
        }
        let is_due = |id| core.there_by(id, now) <= now;
        let is_late = |slot: &Slot| matches!(*slot, Slot::Moving(id) if is_due(id));
        self.primed = !self.window.iter().any(|(_, slot)| is_late(slot));
        self.primed
    }

    /// The program is at a block that is not there. Within its rate that is an
    /// underrun; one that lasts longer than the whole window ends in a declared
    /// gap, so that a failing disk cannot hold a reader for ever.
    fn wait_for_block(
        &mut self,
        core: &mut Core,
        now: Instant,
        (block, id): (u64, CommandId),
        has_writer: bool,
    ) {
        if !self.within_rate(core, now, Bytes::new(1)) {
            return;
        }
        self.starved(now);
        let since = self.ask.and_then(|ask| ask.starved_since()).expect("starved just now");
        let patience = since.saturating_add(self.window.time(&self.contract));
        if now < patience {
            self.wake_by(core, patience);
        } else if self.gives_up(core, block, id) {
            self.declare_gap(core, now, has_writer);
        }
    }

    /// Takes back what was asked of a block. Says whether it could: not what the disk has, and not
    /// what needs no disk, which ends by itself.
    pub(crate) fn gives_up(&mut self, core: &mut Core, block: u64, id: CommandId) -> bool {
        self.stop_early(core, block);
        let waits = core.waits_as(id).is_some();
        self.early_with_disk() != Some(block) && waits && core.cancel(id)
    }

    /// The range that the device failed on, where `offset` is in one, although the rest of
    /// its block is there.
    pub(crate) fn lost_at(&self, offset: Bytes) -> Option<Range<Bytes>> {
        let lost = self.lost.iter().find(|lost| lost.range.contains(&offset));
        lost.map(|lost| lost.range.clone())
    }

    /// A block is read again, `from` so far within it on.
    pub(crate) fn forget_lost(&mut self, block: u64, from: Bytes) {
        let kept = self.contract.block * block + from;
        self.lost.retain_mut(|lost| {
            if lost.block == block {
                lost.range.end = lost.range.end.min(kept);
            }
            lost.range.start < lost.range.end
        });
    }

    /// How far the bytes from `offset` on are there, `end` at the most.
    pub(crate) fn before_lost(&self, offset: Bytes, end: Bytes) -> Bytes {
        let ahead = self.lost.iter().map(|lost| lost.range.start).filter(|&start| start > offset);
        ahead.min().map_or(end, |start| start.min(end))
    }

    /// Skips what is not there of the block at the playout point, and says so.
    fn declare_gap(&mut self, core: &mut Core, now: Instant, has_writer: bool) {
        let block = self.block_at(self.position);
        let length = core.store.volume(self.volume).expect("open volumes stay").length();
        let lost = self.lost_at(self.position);
        let gap_end = self.gap_end(core, block);
        let end = lost.map_or(gap_end, |range| range.end).min(length);
        let (offset, len) = (self.position, end - self.position);
        self.note_gap(core, block, len);
        self.position = end;
        if !matches!(self.window.get(block), Some(Slot::Failed(..) | Slot::Ready)) {
            self.never_came(core, block);
        }
        self.reply(core, Ok(Reply::Gap { offset, len }));
        self.pump_reader(core, now, has_writer);
    }

    /// A block that did not come is given up. Its memory was not filled, so that it is never
    /// told: whoever comes back to it has it read.
    pub(crate) fn never_came(&mut self, core: &mut Core, block: u64) {
        let disk = self.disk_of(core, block);
        let failed = Slot::Failed(disk, DeviceError(TIMED_OUT));
        *self.window.get_mut(block).expect("a block of the window") = failed;
        self.stop_early(core, block);
    }

    fn reply(&mut self, core: &mut Core, result: Result<Reply, Error>) {
        let ask = self.ask.take().expect("somebody asked");
        core.answer(ask.ticket, result);
    }

    /// A block has been read, or a part of it, or the device failed on it. Of a block in
    /// several parts only what the device failed on is lost.
    pub(crate) fn block_read(
        &mut self,
        core: &mut Core,
        now: Instant,
        (block, place): (u64, Bytes),
        (part, is_last): (BlockPart, bool),
        result: Result<(), (DiskIndex, DeviceError)>,
        has_writer: bool,
    ) {
        let result = self.unless_gone(core, block, result);
        let is_stray = self.strays.contains(&place);
        if let (Err(_), false, false) = (result, part.is_all, is_stray) {
            self.lost.push(Lost { block, range: part.range.clone() });
        }
        if !is_last {
            return;
        }
        if !self.stray_ended(core, place) {
            let slot = self.window.get_mut(block).expect("a block of the window, or a stray");
            let was = core::mem::replace(
                slot,
                match result {
                    Err((disk, error)) if part.is_all => Slot::Failed(disk, error),
                    _ => Slot::Ready,
                },
            );
            self.stop_early(core, block);
            if let Slot::Moving(id) = was {
                self.keep_read(core, now, block, id);
            }
        }
        self.pump_reader(core, now, has_writer);
    }

    /// One ask at a time, and for something.
    pub(crate) fn may_ask(&self, len_max: Bytes) -> Result<(), Error> {
        if self.closing {
            return Err(Error::NoSuchStream { stream: self.id });
        }
        if self.shared.is_some() {
            return Err(crate::streams::window::not_this_kind());
        }
        if self.ask.is_some() || !self.held.is_zero() {
            return Err(Error::Invalid {
                what: "request",
                rule: "one at a time: give back what the stream gave before asking for more",
            });
        }
        if len_max.is_zero() {
            return Err(Error::Invalid { what: "length", rule: "more than nothing" });
        }
        Ok(())
    }
}

impl Node {
    /// Whether [`Op::StreamRead`] of at most `len_max` would be answered with bytes at once.
    pub fn is_there(&self, now: Instant, stream: StreamId, len_max: Bytes) -> bool {
        let stream = self.streams.get(stream);
        stream.is_some_and(|stream| stream.is_there(&self.core, now, len_max))
    }
}
