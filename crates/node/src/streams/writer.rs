//! A writer's window: filled by the program, drained behind it.

use crate::api::*;
use crate::core::Core;
use crate::limits;
use crate::streams::stream::{DurableAsk, Slot, Stream};
use crate::volumes::writes::End;
use crate::work::BlockPart;
use playout::Ask;
use units::{Bytes, Instant};

impl Stream {
    /// [`Op::StreamRoom`].
    pub(crate) fn room(&mut self, core: &mut Core, now: Instant, ticket: Ticket, len_max: Bytes) {
        if !self.mode.writes() {
            return core.answer(ticket, Err(Error::WrongMode));
        }
        if let Err(error) = self.may_ask(len_max) {
            return core.answer(ticket, Err(error));
        }
        let size = core.store.volume(self.volume).expect("open volumes stay").limit();
        if self.position >= size {
            return core.answer(ticket, Err(Error::VolumeFull { size }));
        }
        self.ask = Some(Ask::new(ticket, len_max));
        self.pump_writer(core, now);
    }

    /// [`Op::StreamWrite`].
    pub(crate) fn write(&mut self, core: &mut Core, now: Instant, len: Bytes) -> Result<(), Error> {
        if !self.mode.writes() {
            return Err(Error::WrongMode);
        }
        if len > self.held {
            return Err(Error::Invalid { what: "write", rule: "at most the room given last" });
        }
        self.held = Bytes::ZERO;
        let paid = len.min(self.pace.available(now));
        self.pace.spend(paid, now);
        if paid < len {
            self.note_excess(self.position + len, len - paid);
        }
        self.account.moved += len;
        self.filled_to(core, now, self.position + len);
        self.pump_writer(core, now);
        Ok(())
    }

    /// The program has filled the window up to here: whole blocks go to their disks.
    pub(crate) fn filled_to(&mut self, core: &mut Core, now: Instant, position: Bytes) {
        core.store.note_arrived(self.volume, self.position, position);
        let first = self.block_at(self.position);
        self.position = position;
        for block in first..self.block_at(position) {
            self.write_block(core, now, block);
        }
    }

    /// Does all that can be done now: slides over blocks that are on the disk,
    /// writes the part of a block that somebody waits for, gives room.
    pub(crate) fn pump_writer(&mut self, core: &mut Core, now: Instant) {
        let block_len = self.contract.block;
        while self.window.first() < self.block_at(self.position)
            && self.window.get(self.window.first()) == Some(&Slot::Ready)
        {
            self.slide(core);
            self.note_written_to(core, block_len * self.window.first());
        }
        if let Some(error) = self.failure(core) {
            // A commit may make durable what is before it.
            self.raise(core);
            return self.give_up(core, &error);
        }
        self.load(core, now);
        self.write_partial(core, now);
        self.let_excess_have_the_turn(core, now);
        self.note_written(core, now);
        self.arrive(core, now);
        if self.going.is_some() {
            return self.wake_for_partial(core);
        }
        if self.shared.is_some() {
            self.tell_room(core, now);
        } else {
            self.answer_writer(core, now);
        }
        self.wake_for_partial(core);
    }

    /// What keeps this stream from ever becoming durable.
    pub(crate) fn failure(&self, core: &Core) -> Option<Error> {
        let failed = self.window.iter().find_map(|(_, slot)| match *slot {
            Slot::Failed(disk, error) => Some(Error::Device { disk, error }),
            _ => None,
        });
        failed.or_else(|| core.read_only())
    }

    /// Every caller hears the error; the stream can only be closed.
    fn give_up(&mut self, core: &mut Core, error: &Error) {
        if let Some(ask) = self.ask.take() {
            core.answer(ask.ticket, Err(error.clone()));
        }
        for ask in core::mem::take(&mut self.durable_asks) {
            core.answer(ask.ticket, Err(error.clone()));
        }
        self.stop_going(core, error.clone());
    }

    fn answer_writer(&mut self, core: &mut Core, now: Instant) {
        let Some(ask) = self.ask else { return };
        if self.closing {
            return;
        }
        let size = core.store.volume(self.volume).expect("open volumes stay").limit();
        let block = self.block_at(self.position);
        let block_end = self.contract.block * (block + 1);
        let len = ask.len_max.min(block_end.min(size).saturating_sub(self.position));
        if len.is_zero() {
            self.ask = None;
            return core.answer(ask.ticket, Err(Error::VolumeFull { size }));
        }
        let has_room = block < self.window.end() && self.may_fill(core, block);
        let beyond = len.saturating_sub(self.pace.available(now));
        let upto = self.position + len;
        if !(has_room && !beyond.is_zero() && self.may_exceed(core, now, upto, beyond)) {
            if !self.within_rate(core, now, len) {
                return;
            }
            if !has_room {
                return self.starved(now);
            }
        }
        self.ask = None;
        if let Err(error) = self.take_space(core, now, block) {
            return core.answer(ask.ticket, Err(error));
        }
        self.held = len;
        let span = Span { offset: self.place(self.position), len };
        let promise = self.promise_of_room(core, now);
        core.answer_promised(ask.ticket, Ok(Reply::Room { room: span }), Some(promise));
    }

    /// A block is on the disk, or a part of it, or the device failed on it. What of the block
    /// is on the disk is the volume's, also where another command of it failed.
    pub(crate) fn block_written(
        &mut self,
        core: &mut Core,
        now: Instant,
        block: u64,
        (part, is_last): (BlockPart, bool),
        result: Result<(), (DiskIndex, DeviceError)>,
    ) {
        let claim = part.claim.expect("a block that was written was claimed");
        let end = if result.is_ok() { End::Written } else { End::Failed };
        core.writes.end_run(&mut core.store, self.volume, &part.range, claim, end);
        let Some(result) = self.of_all_parts(block, (&part, is_last), result) else { return };
        self.wrote(core, now, block, result);
    }

    /// A block is on the disk, or the part of it that was under way, or the device failed on it.
    pub(crate) fn wrote(
        &mut self,
        core: &mut Core,
        now: Instant,
        block: u64,
        result: Result<(), (DiskIndex, DeviceError)>,
    ) {
        let block_len = self.contract.block;
        let partial = self.partial.take_if(|partial| partial.upto / block_len == block);
        match result {
            Ok(()) => {
                let state = if partial.is_some() { self.fillable() } else { Slot::Ready };
                *self.window.get_mut(block).expect("a block of the window") = state;
                match partial {
                    Some(partial) => {
                        self.note_written_to(core, partial.upto);
                        self.write_blocks_behind(core, now, block);
                    }
                    None => self.keep_written(core, now, block),
                }
            }
            Err((disk, error)) => {
                *self.window.get_mut(block).expect("a block of the window") =
                    Slot::Failed(disk, error);
            }
        }
        self.pump_writer(core, now);
    }

    /// Tells the store how far the data is on the device.
    fn raise(&self, core: &mut Core) {
        if self.has_recorded() {
            core.writes.raise(&mut core.store, self.volume, self.written());
        }
    }

    /// Tells the store and the commit how far the data is on the device.
    fn note_written(&mut self, core: &mut Core, now: Instant) {
        self.give_up_ahead(core, now);
        self.raise(core);
        let covered = self.covered(core);
        if self.written() > covered {
            core.changed(now);
        }
        let waits_for_commit = |ask: &DurableAsk| {
            ask.urgent && ask.at_least <= self.written() && ask.at_least > covered
        };
        let ends = self.closing || self.going.is_some();
        let closes = ends && self.written() == self.position && covered < self.written();
        if closes || self.durable_asks.iter().any(waits_for_commit) {
            core.commit_soon(now);
        }
    }

    /// The commit is on the medium.
    pub(crate) fn commit_ended(&mut self, core: &mut Core) {
        self.durable = self.covered(core);
        let durable = self.durable;
        self.durable_asks.retain(|ask| {
            let done = ask.at_least <= durable;
            if done {
                core.answer(ask.ticket, Ok(Reply::Durable { upto: durable }));
            }
            !done
        });
    }

    /// [`Op::StreamDurable`], [`Op::StreamSync`] and the end of a writer.
    pub(crate) fn when_durable(
        &mut self,
        core: &mut Core,
        now: Instant,
        ticket: Ticket,
        at_least: Bytes,
        urgent: bool,
    ) {
        if !self.mode.writes() {
            return core.answer(ticket, Err(Error::WrongMode));
        }
        if at_least <= self.durable {
            return core.answer(ticket, Ok(Reply::Durable { upto: self.durable }));
        }
        if self.durable_asks.len() >= limits::WAITERS_MAX {
            let waiting = self.durable_asks.len() as u64;
            return core.answer(ticket, Err(Error::Busy { waiting }));
        }
        self.durable_asks.push(DurableAsk { ticket, at_least, urgent });
        self.pump_writer(core, now);
    }
}
