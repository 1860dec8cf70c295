//! A part of a block that is written before the block is full, because somebody waits for it: a
//! sync, the close, or the writer that goes elsewhere; or because the volume ends within the
//! block. (The parts that a long block falls into are in `commands.rs`.)
//!
//! A contract has one request for each block, and a part is one more. So a part goes in the
//! slack and takes no turn of its stream: the whole block comes in its own turn, however many
//! syncs there were before. Where that turn comes while the part still waits, because there
//! is no slack or because the program has stopped, the part has it, so that a sync takes a
//! bounded time. The whole block may then have its turn anew, once.
//!
//! A part that still waits when more of its block is wanted, or when the rest of it is there,
//! is not written by itself: what is written in its place has it. While a part is with the
//! disk the program fills on behind it, also within the part's last 4 KiB; these are written
//! again with what follows.
//!
//! Invariants: there is at most one part, of the block that the program fills or has just
//! filled; the blocks before it are on the disk; room is zeros before a program has it, so that
//! what a part writes behind its bytes is zeros or the program's own.

use crate::api::*;
use crate::core::{Core, Parts};
use crate::limits;
use crate::streams::stream::{DurableAsk, Partial, Slot, Stream};
use crate::volumes::services::Turn;
use crate::volumes::slack::in_slack;
use crate::volumes::writes::{Claim, End};
use crate::work::{BlockPart, Owner};
use sched::Class;
use store::EXTENT;
use units::{Bytes, Instant};

impl Stream {
    /// Sends what somebody waits for of the block that is not full.
    pub(crate) fn write_partial(&mut self, core: &mut Core, now: Instant) {
        let upto = self.position;
        let block = self.block_at(upto);
        let sent = self.partial.map_or(self.written(), |partial| partial.upto);
        let limit = core.store.volume(self.volume).expect("open volumes stay").limit();
        // Where the volume ends within the block, it will not be full.
        let ends = self.closing || self.going.is_some() || upto == limit;
        let is_awaited = |ask: &DurableAsk| ask.urgent && ask.at_least > sent;
        let is_wanted = upto > sent && (ends || self.durable_asks.iter().any(is_awaited));
        // One that the disk has is followed by another when it has ended.
        let may_go = self.partial.is_none_or(|partial| self.may_replace(core, &partial));
        if is_wanted && may_go && self.written() >= self.contract.block * block {
            self.send(core, now, block, upto % self.contract.block);
        }
        self.let_partial_have_the_turn(core, now);
    }

    /// Sends a block that is full. While a part is with the disk, its block and those that
    /// follow it in its extent are not sent: what counts as written there begins at the
    /// extent's watermark and has no holes.
    pub(crate) fn write_block(&mut self, core: &mut Core, now: Instant, block: u64) {
        let start = self.contract.block * block;
        let is_behind = |partial: &Partial| {
            block == self.block_at(partial.upto) || start / EXTENT == partial.upto / EXTENT
        };
        let partial = self.partial.filter(is_behind);
        if partial.is_none_or(|partial| self.may_replace(core, &partial)) {
            self.send(core, now, block, self.contract.block);
        }
    }

    /// A part has ended: the blocks that were not sent because of it go now.
    pub(crate) fn write_blocks_behind(&mut self, core: &mut Core, now: Instant, block: u64) {
        for full in block..self.block_at(self.position) {
            if self.window.get(full) == Some(&self.fillable()) {
                self.write_block(core, now, full);
            }
        }
    }

    /// Sends the first `len` bytes of a block to its disk, in the place of a part of it that
    /// waits, where one does.
    fn send(&mut self, core: &mut Core, now: Instant, block: u64, len: Bytes) {
        if self.group.is_some() {
            return self.send_in_group(core, now, block, len);
        }
        let block_len = self.contract.block;
        let start = block_len * block;
        let waiting = self.partial.take_if(|partial| partial.upto / block_len == block);
        if let Some(partial) = waiting {
            let range = start..partial.upto.round_up(limits::BLOCK_MIN);
            core.writes.end_run(&mut core.store, self.volume, &range, partial.claim, End::Failed);
        }
        let (disk, parts) = self.writing(core, block, len, len.round_up(limits::BLOCK_MIN));
        let claim = Self::claim_of(&parts);
        let own = Class::RealTime(self.writing_task_on(disk).id);
        let is_whole = len == self.contract.block;
        let redirected = waiting.filter(|partial| {
            let done = core.redirect(now, partial.id, own, parts.clone());
            if !done {
                core.take_back(partial.id);
            }
            done
        });
        let id = match (redirected, own) {
            (Some(partial), _) => partial.id,
            (None, Class::RealTime(task)) if is_whole && self.partial_had_turn == Some(block) => {
                let due = now.saturating_add(self.contract.period());
                core.submit_in_turn(now, disk, (task, Turn { from: now, due }), parts)
            }
            (None, _) => {
                let mut is_own = is_whole && self.is_under_contract(block);
                if is_own && let Some(older) = self.oldest_in_slack(core, disk, block) {
                    core.upgrade(now, older, own);
                    is_own = false;
                }
                let in_turn = is_own || self.has_turn(core, now, disk);
                if is_whole && !in_turn {
                    self.slack_end = block + 1;
                }
                let priority = if is_whole { Priority::Normal } else { Priority::Interactive };
                let class = if in_turn { own } else { in_slack(priority, self.volume) };
                if in_turn && !is_whole {
                    self.partial_had_turn = Some(block);
                }
                core.submit_parts(now, disk, class, parts)
            }
        };
        if !is_whole {
            self.partial = Some(Partial { id, claim, upto: start + len, at: None });
        }
        *self.window.get_mut(block).expect("a block of the window") = Slot::Moving(id);
    }

    /// The first claim of what writes a block.
    pub(crate) fn claim_of(parts: &Parts) -> Claim {
        match parts.first() {
            Some((_, Owner::Block { part: BlockPart { claim: Some(claim), .. }, .. })) => *claim,
            _ => unreachable!("what a stream writes is claimed"),
        }
    }

    /// A part that waits in the slack has the stream's turn, when that comes. (A member's goes with its
    /// group.)
    fn let_partial_have_the_turn(&mut self, core: &mut Core, now: Instant) {
        let Some(partial) = self.partial.filter(|_| self.group.is_none()) else { return };
        if !matches!(core.waits_as(partial.id), Some(Class::BestEffort { .. })) {
            return;
        }
        let disk = partial.id.disk();
        if self.has_turn(core, now, disk) {
            core.upgrade(now, partial.id, Class::RealTime(self.writing_task_on(disk).id));
            self.partial_had_turn = Some(self.block_at(partial.upto));
        }
    }

    /// Wakes up when a part that waits in the slack may have the stream's turn.
    pub(crate) fn wake_for_partial(&mut self, core: &mut Core) {
        let Some(partial) = self.partial.filter(|_| self.group.is_none()) else { return };
        if matches!(core.waits_as(partial.id), Some(Class::BestEffort { .. })) {
            let turn = core.next_release(self.writing_task_on(partial.id.disk()));
            self.wake_by(core, turn);
        }
    }

    fn has_turn(&self, core: &Core, now: Instant, disk: DiskIndex) -> bool {
        core.next_release(self.writing_task_on(disk)) <= now
    }
}
