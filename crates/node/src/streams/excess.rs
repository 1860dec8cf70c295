//! A writer that is faster than its contract, while its disks keep up.
//!
//! What a program writes beyond its rate is *excess*. It is taken while the blocks that the
//! program filled before do not wait, so that there is room in its window, and it goes in the
//! slack, as best effort of normal priority does: behind all contracts, in turns with others
//! who have none. Where the stream's turn comes while a block of excess still waits, the
//! block has it; so all that was taken is written within the time that the contract says, and what
//! the stream is promised from then on is what it was promised before. Excess is not paid for by the
//! contract's credit: the rest of what the program writes is under contract as if there were
//! none. Where the disks do not keep up, the program is slowed to its rate, as it always was.
//!
//! What the log has to hold of excess comes out of the room that records have for best effort.
//! All writers together take no more than half of that between two commits.
//!
//! Invariants: a block with a byte of excess takes no release of the contract that the contract
//! needs for another block: it is submitted under contract only when its turn has come.

use crate::api::*;
use crate::core::Core;
use crate::streams::stream::{Slot, Stream};
use alloc::vec::Vec;
use sched::Class;
use units::{Bytes, Instant};

impl Stream {
    /// Whether `len` bytes more may go beyond the contract's rate now.
    pub(crate) fn may_exceed(&self, core: &mut Core, len: Bytes) -> bool {
        if self.mode != Mode::Write || self.closing || self.going.is_some() {
            return false;
        }
        let waits = |(_, slot): (u64, &Slot)| matches!(*slot, Slot::Moving(id) if core.waits(id));
        let waiting = self.window.iter().filter(|&one| waits(one)).count();
        waiting < self.tasks.len().max(1) && core.commits.take_excess(len)
    }

    /// A program with a shared window that has filled more than its rate allows has its playout
    /// point where it is, if that may be. The blocks that it has filled by that are excess.
    pub(crate) fn exceed(&mut self, core: &mut Core, now: Instant) {
        let Some(shared) = self.shared else { return };
        let ahead = shared.program.saturating_sub(shared.point);
        let paid = self.pace.available(now).min(ahead);
        if paid == ahead || !self.may_exceed(core, ahead - paid) {
            return;
        }
        self.pace.spend(paid, now);
        self.note_excess(shared.program, ahead - paid);
        if let Some(shared) = &mut self.shared {
            (shared.point, shared.lags) = (shared.program, false);
        }
    }

    /// So many bytes before `upto` went beyond the rate.
    pub(crate) fn note_excess(&mut self, upto: Bytes, len: Bytes) {
        self.account.excess += len;
        self.excess_end = self.excess_end.max(upto.div_ceil(self.contract.block));
    }

    /// Whether the block is not the contract's: some of it went beyond the rate.
    pub(crate) fn is_excess(&self, block: u64) -> bool {
        block < self.excess_end
    }

    /// The oldest block that waits in the slack on each disk has the stream's turn there, when that
    /// comes.
    pub(crate) fn let_excess_have_the_turn(&mut self, core: &mut Core, now: Instant) {
        if self.window.first() >= self.excess_end {
            return;
        }
        let partial = self.partial.map(|partial| partial.id);
        let in_slack = |slot: &Slot| match *slot {
            Slot::Moving(id) if partial != Some(id) => {
                matches!(core.waits_as(id), Some(Class::BestEffort { .. })).then_some(id)
            }
            _ => None,
        };
        let mut oldest: Vec<CommandId> = Vec::new();
        for id in self.window.iter().filter_map(|(_, slot)| in_slack(slot)) {
            if oldest.iter().all(|other| other.disk() != id.disk()) {
                oldest.push(id);
            }
        }
        let mut soonest = None;
        for id in oldest {
            let task = self.writing_task_on(id.disk());
            let (turn, class) = (core.next_release(task), Class::RealTime(task.id));
            if turn <= now {
                core.upgrade(now, id, class);
            }
            // The next one's comes a period later.
            let next = core.next_release(self.writing_task_on(id.disk())).max(turn);
            soonest = Some(soonest.map_or(next, |soonest: Instant| soonest.min(next)));
        }
        if let Some(next) = soonest {
            self.wake_by(core, next);
        }
    }
}
