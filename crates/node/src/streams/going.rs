//! How a writer goes on at another place of its volume, under the contract that it has.
//!
//! First what was filled goes to the medium, as at a sync: blocks under way are finished, a
//! block that is filled in part is written so far, and the next commit covers both. Then the
//! window is put to the new place, all of it room, and the stream's tasks, memory and credit
//! are what they were. So every durable offset that is told before the answer is one of the
//! old place, and every later one is of the new place.
//!
//! Invariants: while a writer goes it is given no room; when it moves nothing of it is under
//! way, and its playout point has come up with its program, so that going gains a program no
//! byte beyond its contract; no block is left unwritten before the new place in its extent,
//! since what a stream writes counts from the extent's watermark on.

use crate::api::*;
use crate::core::Core;
use crate::streams::shared::Shared;
use crate::streams::stream::{Going, Slot, Stream};
use crate::volumes::rings::not_on_a_ring;
use store::EXTENT;
use units::{Bytes, Instant};

impl Stream {
    /// [`Op::StreamSeek`] of a writer.
    pub(crate) fn go(&mut self, core: &mut Core, now: Instant, ticket: Ticket, to: Bytes) {
        let volume = core.store.volume(self.volume).expect("open volumes stay");
        let (size, is_ring) = (volume.size(), volume.is_ring());
        let invalid = |what, rule| Err(Error::Invalid { what, rule });
        let may = if self.closing {
            Err(Error::NoSuchStream { stream: self.id })
        } else if self.going.is_some() || !self.held.is_zero() {
            invalid("request", "one at a time: give back what the stream gave before a seek")
        } else if !to.is_multiple_of(self.contract.block) {
            invalid("offset", "a multiple of the block size, for a writer")
        } else if is_ring {
            Err(not_on_a_ring("seek of a writer"))
        } else if to >= size {
            Err(Error::VolumeFull { size })
        } else {
            Ok(())
        };
        if let Err(error) = may {
            return core.answer(ticket, Err(error));
        }
        self.going = Some(Going { ticket, to });
        self.take_loads_back(core);
        self.pump_writer(core, now);
    }

    /// The writer is at its new place as soon as all that was filled is on the medium.
    pub(crate) fn arrive(&mut self, core: &mut Core, now: Instant) {
        let Some(Going { ticket, to }) = self.going else { return };
        self.follow(core, now);
        let lags = self.shared.is_some_and(|shared| shared.point < shared.program);
        if lags || self.closing || self.durable < self.position || self.moving() {
            return;
        }
        self.going = None;
        let written = core.store.locate(self.volume, to / EXTENT).map(|at| at.written.watermark());
        if written.is_none_or(|upto| upto < to % EXTENT) {
            let rule = "where its MiB of the volume is written up to it, or at the MiB's beginning";
            core.answer(ticket, Err(Error::Invalid { what: "offset", rule }));
            return self.load(core, now);
        }
        self.promise_no_more(core);
        // What was loaded and never written is forgotten.
        let slots = (0..self.window.len()).map(|_| Slot::Open).collect();
        self.window.replace(self.block_at(to), slots);
        self.position = to;
        self.shared = self.shared.map(|_| Shared::new(to));
        self.begin_segment(core, to);
        self.has_arrived = true;
        self.trim(core);
        for ask in core::mem::take(&mut self.durable_asks) {
            core.answer(ask.ticket, Ok(Reply::Durable { upto: to }));
        }
        let (at, steady) = self.load_window(core, now);
        core.answer(ticket, Ok(Reply::Ready { at, steady, seeks: 0 }));
    }

    /// Whoever waits for a writer to be at its new place hears this instead.
    pub(crate) fn stop_going(&mut self, core: &mut Core, error: Error) {
        if let Some(going) = self.going.take() {
            core.answer(going.ticket, Err(error));
        }
    }
}
