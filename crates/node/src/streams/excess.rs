//! A writer or a reader that is faster than its contract, while its disks keep up.
//!
//! What a program writes beyond its rate is *excess*. It goes in the slack, as best effort of
//! normal priority does: behind all contracts, in turns with others who have none. Excess is not
//! paid for by the contract's credit: the rest of what the program writes is under contract as if
//! there were none.
//!
//! What was taken is written in the order in which it came. The stream's turns on a disk go to the
//! oldest of its blocks that wait there, whether excess or not: where a block of excess still waits
//! when a later block would have the turn, the earlier one has it and the later one waits in
//! the slack. Without that a writer that stays within its rate, and so has a block for each turn,
//! would fill its window behind a block that never gets one.
//!
//! Where a window is shared, a program may be ahead of its playout point, by no more than its
//! window. What it fills there is under contract from when the playout point has come past it
//! (`window.rs`), and waits in the slack like excess until then.
//!
//! Where the turn comes to a block that the disk has already, among others and in an order of its own, that
//! block needs no turn: it is promised for when the turn's would be done, and nothing is given to the
//! disk from then on that would make it later.
//!
//! So a block of excess puts off what comes behind it on that disk by a turn at the most. It is
//! taken only where the window has room for that: where each block that is not written, and each
//! one that follows at the contract's rate, is written by its turn before the program, at its
//! rate, needs its place ([`Stream::has_room_beyond`]). Where the disks do not keep up, the program
//! is slowed to its rate, as it always was.
//!
//! **A reader** that asks for more than its rate is given what is in its window. Of the blocks that are
//! asked for then, one in each turn is under contract, and one at a time goes in the slack, on each disk;
//! the turn goes to the one that waits there. So what is read ahead takes no turn from what follows, and
//! each block comes no later than it would to a reader at the rate. When the program comes back to its
//! rate, or the disk has no more time, it may have to wait once: for as long as it would then find its
//! window empty, which is no longer than it is ahead ([`Stream::hold_back`]). From then on its contract
//! holds as before. A reader whose requests may be late now and then, or who reads what is being
//! written, has no excess.
//!
//! What the log has to hold of excess comes out of the room that records have for best effort.
//! All writers together take no more than half of that between two commits.

use crate::api::*;
use crate::core::Core;
use crate::streams::shared::Shared;
use crate::streams::stream::{Slot, Stream};
use crate::volumes::slack::in_slack;
use alloc::vec::Vec;
use core::ops::Range;
use sched::Class;
use store::EXTENT;
use units::{Bytes, Duration, Instant};

impl Stream {
    /// Whether the program may fill its window up to `upto`, of which the last `len` bytes go
    /// beyond the contract's rate.
    pub(crate) fn may_exceed(
        &self,
        core: &mut Core,
        now: Instant,
        upto: Bytes,
        len: Bytes,
    ) -> bool {
        self.mode == Mode::Write
            && self.group.is_none()
            && !self.closing
            && self.going.is_none()
            && self.has_room_beyond(core, now, upto)
            && core.commits.take_excess(len)
    }

    /// Whether a reader may be given what is in its window beyond its contract's rate.
    pub(crate) fn may_read_beyond(&self, now: Instant) -> bool {
        let is_steady = self.primed && now >= self.steady && !self.behind_writer;
        let is_steady = is_steady && self.is_looked_at_by_block() && self.odds.is_none();
        self.mode == Mode::Read && !self.closing && is_steady
    }

    /// A reader that was given more than its rate, or whose turns have changed since, has its contract
    /// again from when its window can follow.
    pub(crate) fn hold_back(&mut self, core: &Core, now: Instant, has_writer: bool) {
        if self.mode == Mode::Read && self.primed && !self.account.excess.is_zero() {
            let left = self.pace.available(now);
            self.pace.hold(now, self.steady_after(core, now, left, has_writer));
        }
    }

    /// The class in which a reader's disk is asked for a block: of what a reader asks for that has just been
    /// ahead of its rate, one block in each turn is under contract, and one at a time goes in the
    /// slack. None where the block has to wait for these.
    pub(crate) fn asking_class(
        &mut self,
        core: &mut Core,
        now: Instant,
        (disk, block): (DiskIndex, u64),
    ) -> Option<Class> {
        let own = Some(self.class(disk));
        if !self.may_ask_in_slack() {
            return own;
        }
        let waits = self.oldest_in_slack(core, disk, block).is_some();
        // The one that waits has the next turn.
        let turn = core.next_release(self.task_on(disk)).saturating_sub(core.late);
        if !waits && turn <= now {
            return own;
        }
        if waits || self.is_served_in_slack(core, disk) {
            if turn > now {
                self.wake_by(core, turn);
            }
            return None;
        }
        self.slack_end = self.slack_end.max(block + 1);
        Some(in_slack(Priority::Normal, self.volume))
    }

    /// Whether a reader has been ahead of its rate within the last window, or blocks may wait in the slack.
    fn may_ask_in_slack(&self) -> bool {
        let has_excess = self.excess_end > 0;
        let first = self.window.first();
        first < self.slack_end || (has_excess && first < self.excess_end + self.window.len())
    }

    /// Whether the disk has a block of the window without a turn.
    fn is_served_in_slack(&self, core: &Core, disk: DiskIndex) -> bool {
        let is_served = |slot: &Slot| match *slot {
            Slot::Moving(id) => id.disk() == disk && core.due(id) == Some(Instant::MAX),
            _ => false,
        };
        self.window.first() < self.slack_end && self.window.iter().any(|(_, slot)| is_served(slot))
    }

    /// Whether the program, once it has filled its window up to `upto` and used up its credit, finds
    /// room at its rate from then on, where each disk serves the stream in its turns alone.
    ///
    /// It needs the place of a block when it has filled the window behind that block, which is at
    /// its rate at the earliest. That is compared with when the block is written: those that wait,
    /// by the turns that they have or will have; those that follow, by the turns after these.
    /// Only the turns that are taken by now can make these too late: a disk whose next turn comes
    /// before the next block does keeps up (`admission/contract.rs`).
    fn has_room_beyond(&self, core: &Core, now: Instant, upto: Bytes) -> bool {
        let (block_len, rate) = (self.contract.block, self.contract.rate);
        let late = rate.bytes_in(core.late).div_ceil(block_len);
        let ahead = self.window.len().min(self.window.target).saturating_sub(late);
        let needed = |block: u64| {
            let filled = block_len.saturating_mul(block.saturating_add(ahead));
            now.saturating_add(rate.time_for(filled.saturating_sub(upto)))
        };
        let mut turns = self.turns(core, now);
        let current = self.block_at(self.position);
        let waiting = self.window.iter().take_while(|&(block, _)| block < current);
        for (block, slot) in waiting {
            if let Slot::Moving(id) = *slot {
                // Its extent has just moved from there.
                let Some(turn) = turns.on(id.disk()) else { return false };
                let written = match core.due(id) {
                    // It is given its turn by a timer, for which the host may be late.
                    Some(Instant::MAX) => turn.take(1).saturating_add(core.late),
                    // It has a turn before the next one, or comes by then without one.
                    due => turn.before_next().max(due.unwrap_or(now)),
                };
                if written > needed(block) {
                    return false;
                }
            }
        }
        // What follows comes to each disk in runs of blocks. The last block of its first run is the
        // critical one: within a run turns take longer than the program does, and between two
        // runs the disk has its time for that.
        let limit = core.store.volume(self.volume).map_or(Bytes::ZERO, |volume| volume.limit());
        let end = limit.div_ceil(block_len);
        let mut from = current;
        for _ in 0..turns.0.len() * 2 {
            if from >= end || turns.0.is_empty() {
                return true;
            }
            let upto = ((from / self.in_a_row + 1) * self.in_a_row).min(end);
            let on = core.store.disk_of(self.volume, block_len * from / EXTENT);
            let Some(mut turn) = on.and_then(|disk| turns.remove(disk)) else {
                if on.is_none() {
                    break;
                }
                from = upto;
                continue;
            };
            if turn.take(upto - from) > needed(upto - 1) {
                return false;
            }
            from = upto;
        }
        // On the other disks a run may begin at once.
        let run = self.in_a_row;
        turns.0.iter_mut().all(|turn| turn.take(run) <= needed(from + run - 1))
    }

    /// A program with a shared window that has filled more than its rate allows has its playout
    /// point where it is, if that may be. The blocks that it has filled by that are excess.
    pub(crate) fn exceed(&mut self, core: &mut Core, now: Instant) {
        let Some(shared) = self.shared else { return };
        let ahead = shared.program.saturating_sub(shared.point);
        let paid = self.pace.available(now).min(ahead);
        if paid == ahead || !self.may_exceed(core, now, shared.program, ahead - paid) {
            return;
        }
        self.pace.spend(paid, now);
        self.note_excess(shared.program, ahead - paid);
        if let Some(shared) = &mut self.shared {
            (shared.point, shared.lags) = (shared.program, false);
        }
    }

    /// A reader was given so many bytes before `upto` beyond its rate. It owes them until it is held back.
    pub(crate) fn goes_beyond(&mut self, upto: Bytes, len: Bytes) {
        if !len.is_zero() {
            self.note_excess(upto, len);
            self.went_beyond = true;
        }
    }

    /// So many bytes before `upto` went beyond the rate.
    pub(crate) fn note_excess(&mut self, upto: Bytes, len: Bytes) {
        self.account.excess += len;
        self.excess_end = self.excess_end.max(upto.div_ceil(self.contract.block));
    }

    /// The oldest block up to this one that waits in the slack on this disk.
    pub(crate) fn oldest_in_slack(
        &self,
        core: &Core,
        disk: DiskIndex,
        upto: u64,
    ) -> Option<CommandId> {
        if self.window.first() >= self.slack_end {
            return None;
        }
        let mut upto = self.window.iter().take_while(|&(block, _)| block <= upto);
        upto.find_map(|(_, slot)| self.in_slack(core, slot).filter(|id| id.disk() == disk))
    }

    /// The playout point of a program with a shared window has come past these blocks, within the
    /// rate: each of them has a turn, or the oldest that waits before it.
    pub(crate) fn come_under_contract(
        &mut self,
        core: &mut Core,
        now: Instant,
        blocks: Range<u64>,
    ) {
        if self.mode != Mode::Write || self.window.first() >= self.slack_end {
            return;
        }
        for block in blocks.start.max(self.excess_end).max(self.window.first())..blocks.end {
            let disk = self.disk_of(core, block);
            if let Some(oldest) = self.oldest_in_slack(core, disk, block) {
                core.upgrade(now, oldest, Class::RealTime(self.writing_task_on(disk).id));
            }
        }
    }

    /// Whether a full block has a turn of the contract: none of it is excess, nor ahead of the
    /// playout point.
    pub(crate) fn is_under_contract(&self, block: u64) -> bool {
        let end = self.contract.block * (block + 1);
        let is_ahead = |shared: Shared| self.mode == Mode::Write && shared.point < end;
        block >= self.excess_end && !self.shared.is_some_and(is_ahead)
    }

    fn in_slack(&self, core: &Core, slot: &Slot) -> Option<CommandId> {
        let partial = self.partial.map(|partial| partial.id);
        match *slot {
            Slot::Moving(id) if partial != Some(id) => {
                matches!(core.waits_as(id), Some(Class::BestEffort { .. })).then_some(id)
            }
            _ => None,
        }
    }

    /// The stream's contract has changed: what was asked for ahead of its turn may wait in the slack since, and
    /// has the turns that come.
    pub(crate) fn find_in_slack(&mut self, core: &mut Core, now: Instant) {
        if self.mode == Mode::Update {
            return; // its requests are of one task or of the other
        }
        let is_in_slack = |&(_, slot): &(u64, &Slot)| self.in_slack(core, slot).is_some();
        if let Some((block, _)) = self.window.iter().filter(is_in_slack).last() {
            self.slack_end = self.slack_end.max(block + 1);
            self.let_excess_have_the_turn(core, now);
        }
    }

    /// The oldest block that waits in the slack on each disk has the stream's turn there, when that
    /// comes. By when it would be done, those are that the disk has.
    pub(crate) fn let_excess_have_the_turn(&mut self, core: &mut Core, now: Instant) {
        if self.window.first() >= self.slack_end {
            return;
        }
        let (mut oldest, mut with_disk): (Vec<CommandId>, Vec<CommandId>) = Default::default();
        for (_, slot) in self.window.iter() {
            let Slot::Moving(id) = *slot else { continue };
            let has_task = self.tasks.iter().any(|joined| joined.disk == id.disk());
            if !has_task || core.due(id) != Some(Instant::MAX) {
                continue; // it has its turn, or needs none
            }
            if !core.waits(id) {
                with_disk.push(id);
            } else if self.in_slack(core, slot).is_some()
                && oldest.iter().all(|other| other.disk() != id.disk())
            {
                oldest.push(id);
            }
        }
        let mut soonest = None;
        for id in with_disk {
            let task = self.writing_task_on(id.disk());
            let turn = core.next_release(task);
            if turn <= now {
                core.promise_with_disk(id, now.saturating_add(task.task.deadline));
            } else {
                soonest = Some(soonest.map_or(turn, |soonest: Instant| soonest.min(turn)));
            }
        }
        for id in oldest {
            let task = self.writing_task_on(id.disk());
            let (turn, class) = (core.next_release(task), Class::RealTime(task.id));
            // A reader's is given it as much ahead as the timer may be late: it goes in its turn.
            let ahead = if self.mode == Mode::Read { core.late } else { Duration::ZERO };
            if turn <= now.saturating_add(ahead) {
                core.upgrade(now, id, class);
            }
            // The next one's comes a period later.
            let next = core.next_release(self.writing_task_on(id.disk())).max(turn);
            let next = next.saturating_sub(ahead);
            soonest = Some(soonest.map_or(next, |soonest: Instant| soonest.min(next)));
        }
        if let Some(next) = soonest {
            self.wake_by(core, next);
        }
    }
}
