//! By when the answers of a stream are to be with its program.
//!
//! A program that keeps its rate needs a block by its deadline. So bytes of a block that came
//! ahead are in time until then; those that are asked for later, and room, are in time as long as
//! the answer takes no more than what windows are made for the host to take. An answer that the
//! end of a command has given counts from the request's release, any other one from the ask.
//!
//! Invariant: at most one entry for each block of the window, and of others only the one that
//! ended last: a block that was written has left the window, and its room follows from its end.

use crate::api::{Mode, Promise, UnderContract};
use crate::core::Core;
use crate::streams::landing::Landing;
use crate::streams::stream::Stream;
use units::{Bytes, Duration, Instant};

impl Stream {
    /// The request of a block has ended, after so long; it was due then. One that went in the slack had
    /// no deadline: what a reader is owed of its block is owed a period later, as of a turn that is had
    /// now.
    pub(crate) fn landed(&mut self, now: Instant, block: u64, latency: Duration, due: Instant) {
        let is_open = due == Instant::MAX && self.mode == Mode::Read;
        let due = if is_open { now.saturating_add(self.contract.period()) } else { due };
        let window = &self.window;
        let is_inside = |block| (window.first()..window.end()).contains(&block);
        self.landed.0.retain(|one| one.block != block && is_inside(one.block));
        let from = now - latency.min(now.saturating_since(Instant::EPOCH));
        self.landed.0.push(Landing { block, at: now, from, due });
    }

    /// By when a block that has come, or has gone, was to do so.
    pub(crate) fn was_due(&self, block: u64) -> Option<Instant> {
        self.landed.0.iter().find(|one| one.block == block).map(|one| one.due)
    }

    /// What is owed of an answer with bytes of this block.
    pub(crate) fn promise_of(&self, core: &Core, now: Instant, block: u64) -> Promise {
        let landing = self.landed.0.iter().find(|one| one.block == block);
        self.promise_after(core, now, landing, Some(block))
    }

    /// What is owed of room, which comes when a block has gone.
    pub(crate) fn promise_of_room(&self, core: &Core, now: Instant) -> Promise {
        let landing = self.landed.0.last().filter(|one| one.at == now);
        self.promise_after(core, now, landing, landing.map(|one| one.block))
    }

    fn promise_after(
        &self,
        core: &Core,
        now: Instant,
        landing: Option<&Landing>,
        block: Option<u64>,
    ) -> Promise {
        let from = landing.filter(|one| one.at == now).map_or(now, |one| one.from);
        // A program that was told more needs this when it is done with that.
        let ahead = self.shared.map_or(Bytes::ZERO, |shared| shared.told - shared.program);
        let needed = core.late.saturating_add(self.contract.rate.time_for(ahead));
        let asked = now.saturating_add(needed);
        let due = match landing {
            // Who waits for it has waited for the disk.
            Some(one) if one.at == now && ahead.is_zero() => one.due,
            Some(one) => one.due.max(asked),
            None => asked,
        };
        let (whose, was_late) = (UnderContract::Stream(self.id), now > due);
        Promise { whose, from, due, handed: now, was_late, block }
    }
}
