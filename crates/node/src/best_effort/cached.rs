//! Reads of what is cached ([`cache`](crate::memory::cache)), and what is read ahead of who reads on and
//! on ([`read_ahead`](crate::volumes::read_ahead)): as best effort that nobody asked for. Who comes to
//! what is on its way so waits for that.

use super::{Asker, BestEffort};
use crate::api::*;
use crate::core::Core;
use crate::limits;
use crate::memory::cache::Taker;
use crate::memory::line::{Rank, Waiter};
use crate::volumes::services::Holder;
use alloc::vec::Vec;
use core::ops::Range;
use store::VolumeId;
use units::{Bytes, Instant};

/// What is to be read ahead of somebody.
pub(super) struct Ahead {
    uid: u32,
    volume: VolumeId,
    priority: Priority,
    range: Range<Bytes>,
}

impl BestEffort {
    /// What is to be read ahead, and no disk has begun, is not: its memory is for a contract that has
    /// none. Who waits for it reads himself. False where nothing is read ahead.
    pub(crate) fn drop_ahead(&mut self, core: &mut Core, now: Instant) -> bool {
        let any = self.operations.values().any(|operation| operation.ticket.is_none());
        if any {
            self.take_back(core, now, |this, id| this.ticket(id).is_none());
        }
        any
    }

    /// What is to be read ahead of who asks for this.
    pub(super) fn ahead_of(&mut self, core: &Core, waiter: &Waiter) -> Option<Ahead> {
        let (holder, range, stated) = may_be_cached(core, waiter)?;
        let most = core.writes.cache.ahead_max(&core.arena);
        let range = self.readers.note(holder.volume, &range, most)?;
        let Waiter { uid, .. } = *waiter;
        let priority = match (core.rank_of(holder, stated), stated) {
            (Rank::Background, _) => Priority::Background,
            _ => Priority::Normal,
        };
        Some(Ahead { uid, volume: holder.volume, priority, range })
    }

    /// Reads ahead, where there is memory for it that nobody waits for.
    pub(super) fn read_ahead(&mut self, core: &mut Core, now: Instant, ahead: Ahead) {
        let Ahead { uid, volume, priority, range } = ahead;
        let Some(found) = core.store.volume(volume) else { return };
        let end = range.end.min(found.end().round_down(limits::BLOCK_MIN));
        let start = core.writes.cache.reaches(volume, range.start);
        if start >= end || self.ending || !self.line.is_empty() {
            return;
        }
        let Core { arena, writes, .. } = core;
        let taker = Taker { uid, in_background: priority == Priority::Background };
        if let Some(span) = writes.cache.take(arena, taker, end - start) {
            let asker = Asker { ticket: None, uid, arrived: now };
            let holder = Holder { volume, handle: None };
            self.read(core, now, asker, holder, start, span, Some(priority));
        }
    }

    /// Answers a read of what is cached, or lets it wait for what is read ahead. False where neither
    /// is so.
    pub(super) fn answers_from_cache(
        &mut self,
        core: &mut Core,
        now: Instant,
        waiter: &Waiter,
    ) -> bool {
        let Some((holder, range, _)) = may_be_cached(core, waiter) else { return false };
        let Core { arena, writes, .. } = core;
        if let Some(span) = writes.cache.lend(arena, taker(waiter), holder.volume, &range) {
            let what = (waiter.arrived, span.len);
            let promise = match waiter.place.filter(|_| waiter.rank == Rank::Contract) {
                Some(place) => core.services.account_at_once(now, place, what),
                None => None,
            };
            let data = Reply::Data { bytes: span, offset: range.start };
            core.answer_promised(waiter.ticket, Ok(data), promise);
            return true;
        }
        let Some(id) = writes.cache.ahead_of(holder.volume, &range) else { return false };
        let ahead = self.operation(id);
        if ahead.waiting.len() >= limits::AHEAD_WAITING_MAX {
            return false;
        }
        let is_as_soon = match waiter.rank {
            Rank::Contract | Rank::Interactive => false,
            Rank::Normal => ahead.priority == Some(Priority::Normal),
            Rank::Background => true,
        };
        if is_as_soon {
            ahead.waiting.push(waiter.clone());
        }
        is_as_soon
    }

    /// Memory to read into where what is read is cached: not in the background, in which whole
    /// volumes are read once, and not while others wait for memory.
    pub(super) fn memory_to_cache(&self, core: &mut Core, waiter: &Waiter) -> Option<Span> {
        let may = self.line.is_empty() && waiter.rank != Rank::Background;
        let (_, range, _) = may_be_cached(core, waiter).filter(|_| may)?;
        let Core { arena, writes, .. } = core;
        writes.cache.take(arena, taker(waiter), range.end - range.start)
    }

    /// What was read ahead is there, or will not be: who waited for it asks again.
    pub(super) fn read_on(&mut self, core: &mut Core, now: Instant, waiting: Vec<Waiter>) {
        for waiter in waiting {
            match self.ending {
                true => core.answer(waiter.ticket, Err(Error::ShuttingDown)),
                false => self.ask(core, now, waiter),
            }
        }
    }
}

fn taker(waiter: &Waiter) -> Taker {
    Taker { uid: waiter.uid, in_background: waiter.rank == Rank::Background }
}

/// What an operation reads of a volume, and its priority, where that may be cached: where it takes
/// its disk long.
fn may_be_cached(core: &Core, waiter: &Waiter) -> Option<(Holder, Range<Bytes>, Option<Priority>)> {
    let Op::Read { offset, len, priority, .. } = waiter.op else { return None };
    let (holder, disk) = waiter.place?;
    let may = core.writes.cache.is_on && core.disks[disk.as_usize()].is_slow;
    may.then(|| (holder, offset..offset + len, priority))
}
