//! Who asks for an operation: whether it can be, and which memory it has, at once or after a wait.

use super::checks::checked;
use super::{Asker, BestEffort};
use crate::api::*;
use crate::core::Core;
use crate::memory::line::{Rank, Waiter};
use crate::memory::reserve::Place;
use units::Instant;

impl BestEffort {
    /// Begins an operation that needs memory, or lets it wait for some.
    pub(super) fn ask(&mut self, core: &mut Core, now: Instant, mut waiter: Waiter) {
        if self.placed(core, &mut waiter) {
            self.ask_placed(core, now, waiter);
        }
    }

    /// Sets where an operation begins, and in which class it waits. False where it cannot be, and was
    /// answered so.
    pub(super) fn placed(&mut self, core: &mut Core, waiter: &mut Waiter) -> bool {
        let (place, stated) = match checked(core, &waiter.op, waiter.handle, waiter.place) {
            Ok(Some((place, stated))) => (Some(place), stated),
            Ok(None) => (None, None),
            Err(error) => {
                core.answer(waiter.ticket, Err(error));
                return false;
            }
        };
        waiter.rank = match place {
            Some((holder, _)) => core.rank_of(holder, stated),
            None => Priority::default().into(),
        };
        waiter.place = place;
        true
    }

    pub(super) fn ask_placed(&mut self, core: &mut Core, now: Instant, waiter: Waiter) {
        if self.answers_from_cache(core, now, &waiter) {
            return;
        }
        let (rank, ticket) = (waiter.rank, waiter.ticket);
        let cached = self.memory_to_cache(core, &waiter);
        let set_aside = || {
            let place = waiter.place.filter(|_| rank == Rank::Contract)?;
            core.reserves.take(now, place, waiter.len)
        };
        let at_once = cached.or_else(set_aside).or_else(|| self.line.take_at_once(core, &waiter));
        if let Some(span) = at_once {
            return self.start_placed(core, now, &waiter, span);
        }
        let waiting = self.line.waiting(rank) as u64;
        let refused = self.line.wait(core, now, waiter).map(|refused| refused.ticket);
        if let Some(refused) = refused {
            core.answer(refused, Err(Error::Busy { waiting }));
        }
        if refused != Some(ticket) {
            self.serve_waiting(core, now);
        }
    }

    /// Begins an operation that has waited for its memory.
    pub(super) fn start(&mut self, core: &mut Core, now: Instant, mut waiter: Waiter, span: Span) {
        // The volume may have become shorter while it waited, or another one has its name.
        match checked(core, &waiter.op, waiter.handle, waiter.place) {
            Err(error) => {
                self.give(core, now, span);
                core.answer(waiter.ticket, Err(error));
            }
            Ok(place) => {
                waiter.place = place.map(|(place, _)| place);
                self.start_placed(core, now, &waiter, span);
            }
        }
    }

    /// The same, where it was just looked where it begins.
    pub(super) fn start_placed(
        &mut self,
        core: &mut Core,
        now: Instant,
        waiter: &Waiter,
        span: Span,
    ) {
        let Waiter { ticket, uid, arrived, ref op, place, .. } = *waiter;
        match *op {
            Op::Read { offset, priority, .. } => {
                let (holder, _) = place.expect("a read has a volume");
                let asker = Asker { ticket: Some(ticket), uid, arrived };
                self.read(core, now, asker, holder, offset, span, priority);
            }
            _ => core.answer(ticket, Ok(Reply::Room { room: span })),
        }
    }

    /// Memory comes back.
    pub(super) fn give(&mut self, core: &mut Core, now: Instant, span: Span) {
        if core.writes.cache.give(&mut core.arena, &span) {
            return;
        }
        if !core.reserves.has_lent(&span) {
            return self.line.give(&mut core.arena, now, span);
        }
        let Some(place) = core.reserves.give(&mut core.arena, now, span) else { return };
        self.serve_place(core, now, place);
    }

    /// A slot is free that is set aside for `place`: whoever waits for it has it.
    pub(super) fn serve_place(&mut self, core: &mut Core, now: Instant, place: Place) {
        while let Some(longest) = core.reserves.free(place)
            && let Some(waiter) = self.line.pop_of(place, longest)
        {
            let span =
                core.reserves.take(now, place, waiter.len).expect("it is free, and long enough");
            self.start(core, now, waiter, span);
        }
    }

    /// Memory has come back that nobody here had.
    pub(crate) fn memory_is_back(&mut self, core: &mut Core, now: Instant) {
        if !self.line.is_empty() && !self.ending {
            self.serve_waiting(core, now);
        }
    }

    /// Memory has come back, or somebody has come who may have some: as many as it
    /// suffices for, in the order of the line.
    pub(super) fn serve_waiting(&mut self, core: &mut Core, now: Instant) {
        while let Some((waiter, span)) = self.line.serve(core) {
            self.start(core, now, waiter, span);
        }
    }
}
