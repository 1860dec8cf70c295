//! A window that is shared with its program: told ahead, used without asking.
//!
//! The program is told pieces, a block each at the most, one after the other as they
//! come to be in memory (or as there is room); it uses them when it likes, and says how
//! far it is done. The playout point follows it as far as the contract allows (ABISS,
//! section 2.3 and 3.4): by a credit that is added to at the contract's rate and never
//! exceeds what the program may touch at once. Behind the playout point memory is used
//! again; so a program that runs ahead of its contract comes to the end of its window,
//! and waits there until the playout point has come after it.
//!
//! What is promised is section 2.3 word for word, with the playout point as a function
//! of time: while `p` rises by less than `b + r t` in any time `t`, every byte less than
//! `b` ahead of it is in memory, where it lies less than `b + r t` ahead of where the
//! playout point was any `t` before. Why: what is in memory only grows by telling it,
//! and shrinks only behind `p`; the rest is the argument of `contract.rs`.
//!
//! Invariant: `point <= program <= told <= end of the window`. Of a reader `point` is
//! the stream's `position`, of a writer `program` is.

use crate::api::*;
use crate::core::Core;
use crate::streams::stream::{Slot, Stream};
use playout::Ask;
use units::{Bytes, Instant};

pub(crate) fn not_this_kind() -> Error {
    Error::Invalid {
        what: "request",
        rule: "streams with a shared window take WindowNext and WindowMoved, others the rest",
    }
}

impl Stream {
    /// Everything that can be done now.
    pub(crate) fn pump(&mut self, core: &mut Core, now: Instant, has_writer: bool) {
        match self.mode {
            Mode::Read => self.pump_reader(core, now, has_writer),
            Mode::Write | Mode::Update => self.pump_writer(core, now),
        }
    }

    /// [`Op::WindowNext`].
    pub(crate) fn window_next(
        &mut self,
        core: &mut Core,
        now: Instant,
        ticket: Ticket,
        has_writer: bool,
    ) {
        let error = match (self.closing, self.shared, self.ask) {
            (true, ..) => Some(Error::NoSuchStream { stream: self.id }),
            (_, None, _) => Some(not_this_kind()),
            (.., Some(_)) => {
                Some(Error::Invalid { what: "request", rule: "one ask for a piece at a time" })
            }
            _ => None,
        };
        if let Some(error) = error {
            return core.answer(ticket, Err(error));
        }
        let len_max = self.contract.block;
        self.ask = Some(Ask::new(ticket, len_max));
        self.pump(core, now, has_writer);
    }

    /// [`Op::WindowMoved`].
    pub(crate) fn window_moved(
        &mut self,
        core: &mut Core,
        now: Instant,
        len: Bytes,
    ) -> Result<Reply, Error> {
        let Some(shared) = &mut self.shared else { return Err(not_this_kind()) };
        if self.closing {
            return Err(Error::NoSuchStream { stream: self.id });
        }
        if len > shared.told - shared.program {
            return Err(Error::Invalid { what: "move", rule: "at most what was told" });
        }
        shared.program += len;
        self.account.moved += len;
        if self.mode.writes() {
            self.follow(core, now);
            self.filled_to(core, now, self.position + len);
            if let Some(error) = self.failure(core) {
                return Err(error);
            }
        }
        Ok(Reply::Done)
    }

    /// [`Op::WindowWaits`].
    pub(crate) fn window_waits(&mut self, core: &mut Core, now: Instant) -> Result<Reply, Error> {
        self.follow(core, now);
        let Some(shared) = self.shared else { return Err(not_this_kind()) };
        // It may wait though it has not passed all that it was told: it keeps some of that.
        if self.has_no_more(core) {
            return Ok(Reply::Done);
        }
        let when = self.pace.may_pass(shared.program - shared.point + Bytes::new(1));
        if when <= now {
            self.starved(now);
            return Ok(Reply::Done);
        }
        if let Some(shared) = &mut self.shared {
            self.account.throttled += u64::from(!shared.lags);
            (shared.lags, shared.waits) = (true, true);
        }
        self.wake_by(core, when);
        Ok(Reply::Done)
    }

    /// A reader's program that waited when the rate did not allow it more waits still when it does.
    fn waits_within_rate(&mut self, core: &mut Core, now: Instant) {
        let Some(shared) = self.shared.filter(|shared| shared.waits) else { return };
        let when = self.pace.may_pass(shared.program - shared.point + Bytes::new(1));
        if when <= now {
            self.starved(now);
        } else {
            self.wake_by(core, when);
        }
    }

    /// There is nothing that the program could be told.
    fn has_no_more(&self, core: &Core) -> bool {
        let Some(shared) = self.shared else { return false };
        let volume = core.store.volume(self.volume).expect("open volumes stay");
        match self.mode {
            // Also a block that is not whole yet.
            Mode::Read => {
                shared.told >= volume.length()
                    || !matches!(self.slot_at(shared.told), Some(Slot::Moving(_)) | None)
            }
            Mode::Write | Mode::Update => shared.told >= volume.limit(),
        }
    }

    fn slot_at(&self, offset: Bytes) -> Option<Slot> {
        self.window.get(self.block_at(offset)).copied()
    }

    /// The playout point follows the program, as far as the contract allows; the rest
    /// by the timer.
    pub(crate) fn follow(&mut self, core: &mut Core, now: Instant) {
        self.pace.renew(now);
        self.exceed(core, now);
        let Some(mut shared) = self.shared else { return };
        let before = self.block_at(shared.point);
        if shared.point < shared.program {
            // What a ring gave up costs nothing: what lies before it passes, and what lies behind it.
            for _ in 0..2 {
                shared.point = shared.behind_gap();
                let all = shared.upto_gap() - shared.point;
                let passes = all.min(self.pace.available(now));
                self.pace.spend(passes, now);
                shared.point += passes;
                if self.may_read_beyond(now) {
                    self.goes_beyond(shared.upto_gap(), all - passes);
                    self.pace.spend(all - passes, now);
                    shared.point = shared.upto_gap();
                }
            }
            shared.point = shared.behind_gap();
            let block_len = self.contract.block;
            let left = shared.program - shared.point;
            if left.is_zero() {
                shared.lags = false;
            } else {
                // Nothing depends on the playout point but where a block ends.
                let block_end = block_len * (self.block_at(shared.point) + 1);
                let wake = self.pace.may_pass(left.min(block_end - shared.point));
                self.wake_by(core, wake);
                self.account.throttled += u64::from(!shared.lags);
                shared.lags = true;
            }
        }
        if self.mode == Mode::Read {
            self.position = shared.point;
        }
        self.shared = Some(shared);
        self.come_under_contract(core, now, before..self.block_at(shared.point));
    }

    /// A shared reader's next piece, if it is asked for and there.
    pub(crate) fn tell_data(&mut self, core: &mut Core, now: Instant, has_writer: bool) {
        let (Some(_), Some(shared)) = (self.ask, self.shared) else { return };
        let length = core.store.volume(self.volume).expect("open volumes stay").length();
        if shared.told >= length {
            if !has_writer {
                self.tell(core, Ok(Reply::End), shared.told, None);
            }
            return;
        }
        if !self.primed && !self.begin_playout(core, now) {
            return;
        }
        let offset = shared.told;
        let block = self.block_at(offset);
        let whole = (self.contract.block * (block + 1)).min(length);
        let len = whole - offset;
        if let Some(upto) = self.early_upto(offset) {
            let span = Span { offset: self.place(offset), len: upto - offset };
            return self.tell(core, Ok(Reply::Data { bytes: span, offset }), upto, None);
        }
        if self.is_early_with_disk(block) {
            return;
        }
        if matches!(self.slot_at(offset), Some(Slot::Moving(_))) {
            self.waits_within_rate(core, now);
        }
        let Some(ask) = self.ask else { return };
        match self.slot_at(offset) {
            Some(Slot::Ready) => {
                let end = self.end_of(block, length);
                if offset >= end {
                    return; // a writer is at it: it is read again when it is whole
                }
                if let Some(lost) = self.lost_at(offset) {
                    let upto = lost.end.min(whole);
                    self.note_gap(core, block, upto - offset);
                    let gap = Reply::Gap { offset, len: upto - offset };
                    return self.tell(core, Ok(gap), upto, None);
                }
                let end = self.before_lost(offset, end);
                let len = end - offset;
                let span = Span { offset: self.place(offset), len };
                let promise = self.promise_of(core, now, block);
                self.tell(core, Ok(Reply::Data { bytes: span, offset }), end, Some(promise));
            }
            Some(Slot::Failed(..)) => {
                let end = self.gap_end(core, block).min(length);
                let len = end - offset;
                if self.is_gone(core, block)
                    && let Some(shared) = &mut self.shared
                {
                    shared.skips(offset, end);
                }
                self.note_gap(core, block, len);
                self.tell(core, Ok(Reply::Gap { offset, len }), end, None);
            }
            // A failing disk cannot hold a program for ever: it gives this block up
            // when it has waited for as long as the whole window lasts.
            Some(Slot::Moving(id)) if ask.starved_since().is_some() => {
                let since = ask.starved_since().unwrap_or(now);
                let patience = since.saturating_add(self.window.time(&self.contract));
                if now < patience {
                    self.wake_by(core, patience);
                } else if self.gives_up(core, block, id) {
                    self.never_came(core, block);
                    self.note_gap(core, block, len);
                    self.tell(core, Ok(Reply::Gap { offset, len }), whole, None);
                }
            }
            Some(Slot::Moving(_) | Slot::Full | Slot::Open | Slot::Loaded | Slot::Nowhere)
            | None => {}
        }
    }

    /// A shared writer's next room, if it is asked for and there.
    pub(crate) fn tell_room(&mut self, core: &mut Core, now: Instant) {
        self.follow(core, now);
        let (Some(_), Some(shared)) = (self.ask, self.shared) else { return };
        if self.closing {
            return;
        }
        let size = core.store.volume(self.volume).expect("open volumes stay").limit();
        let block = self.block_at(shared.told);
        let end = (self.contract.block * (block + 1)).min(size);
        if shared.told >= end {
            return self.tell(core, Err(Error::VolumeFull { size }), shared.told, None);
        }
        // As much ahead of the playout point as the window holds: a disk that is quicker
        // makes nobody's contract larger.
        let is_near = block < self.block_at(shared.point) + self.window.target;
        let has_room = block < self.window.end() && self.may_fill(core, block);
        if is_near && has_room && self.is_loaded(core, now, block) {
            if let Err(error) = self.take_space(core, now, block) {
                return self.tell(core, Err(error), shared.told, None);
            }
            let span = Span { offset: self.place(shared.told), len: end - shared.told };
            let promise = self.promise_of_room(core, now);
            self.tell(core, Ok(Reply::Room { room: span }), end, Some(promise));
        }
    }

    fn tell(
        &mut self,
        core: &mut Core,
        result: Result<Reply, Error>,
        told: Bytes,
        promise: Option<Promise>,
    ) {
        let ask = self.ask.take().expect("somebody asked");
        let shared = self.shared.as_mut().expect("a shared window");
        (shared.told, shared.waits) = (told, false);
        core.answer_promised(ask.ticket, result, promise);
    }

    /// The program knows of some of this block.
    pub(crate) fn is_told(&self, block: u64) -> bool {
        self.shared.is_some_and(|shared| shared.told > self.contract.block * block)
    }

    /// The window shall have so many blocks: more as far as there is memory, fewer when
    /// it has slid.
    pub(crate) fn resize(&mut self, core: &mut Core, blocks: u64) {
        let blocks = match self.more_memory(core, blocks) {
            Ok(more) => {
                self.grow(more);
                blocks
            }
            Err(_) => self.window.len().max(self.window.target),
        };
        self.window.target = blocks;
        self.trim(core);
    }
}
