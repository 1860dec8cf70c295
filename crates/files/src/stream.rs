//! One file under contract: its window and its playout point.
//!
//! As a pool's reader (`node`): the window holds the blocks `base .. base + slots` of the
//! file; a program gets what is in memory and within its rate. Invariant: the playout
//! point lies in the window or at its end.

use crate::map::FileMap;
use alloc::collections::VecDeque;
use alloc::string::String;
use node::alone::Credit;
use node::{Contract, StreamId};
use sched::{Task, TaskId};
use units::{Bytes, Duration, Instant};

/// What a block of the window is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    Open,
    /// A read with this key waits or is under way.
    Moving(u64),
    /// So many bytes of it are in memory; fewer than a block at the end of the file.
    Ready(Bytes),
    /// The device failed on it with this errno.
    Failed(i32),
}

/// What the program waits for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ask {
    pub ticket: u64,
    pub len_max: Bytes,
    pub throttled: bool,
    pub starved: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Stream {
    pub id: StreamId,
    pub name: String,
    pub map: FileMap,
    pub length: Bytes,
    pub contract: Contract,
    pub task: (TaskId, Task),
    pub slots: VecDeque<Slot>,
    /// How many blocks the window shall have,
    pub target: u64,
    /// and how many of them the contract needs; the others are for riding out what others
    /// do.
    pub needed: u64,
    pub base: u64,
    pub position: Bytes,
    pub credit: Credit,
    /// A faster contract, for the program from then on.
    pub later: Option<(Instant, Contract)>,
    pub held: Bytes,
    pub ask: Option<Ask>,
    pub timer: Option<Instant>,
    pub primed: bool,
    pub playout_from: Instant,
    pub open_since: Instant,
    pub moved: Bytes,
    pub requests: u64,
    pub late_requests: u64,
    pub late_max: Duration,
    pub latency_max: Duration,
    pub underruns: u64,
    pub throttled: u64,
    pub gaps: Bytes,
}

impl Stream {
    pub fn block_at(&self, offset: Bytes) -> u64 {
        offset / self.contract.block
    }

    pub fn slot(&mut self, block: u64) -> Option<&mut Slot> {
        let at = block.checked_sub(self.base)?;
        self.slots.get_mut(usize::try_from(at).ok()?)
    }

    /// The memory of its window.
    pub fn window(&self) -> Bytes {
        self.contract.block * self.slots.len() as u64
    }

    /// Lets go of the blocks behind the playout point.
    pub fn slide(&mut self) {
        while self.base < self.block_at(self.position) {
            self.slots.pop_front();
            self.base += 1;
            if (self.slots.len() as u64) < self.target {
                self.slots.push_back(Slot::Open);
            }
        }
    }

    /// Brings the window to the size that it shall have, as far as nothing is in the way.
    pub fn fit(&mut self) {
        while (self.slots.len() as u64) < self.target {
            self.slots.push_back(Slot::Open);
        }
        while self.slots.len() as u64 > self.target && self.slots.back() == Some(&Slot::Open) {
            self.slots.pop_back();
        }
    }

    /// Whether what the contract needs is in memory: all that is not is behind the end.
    pub fn is_filled(&self) -> bool {
        let wanted = self.slots.iter().take(self.needed as usize);
        let mut blocks = (self.base..).zip(wanted);
        blocks.all(|(block, slot)| {
            matches!(slot, Slot::Ready(_) | Slot::Failed(_))
                || self.contract.block * block >= self.length
        })
    }

    /// Whether the rate allows `len` more bytes; if not, counted once an ask, and the
    /// timer is set for when it does.
    pub fn within_rate(&mut self, now: Instant, len: Bytes) -> bool {
        if let Some((_, contract)) = self.later.take_if(|(from, _)| *from <= now) {
            let cap = contract.burst.max(contract.block);
            self.credit = self.credit.changed(contract.rate, cap, now);
        }
        let mut when = self.credit.when(len);
        if when <= now {
            return true;
        }
        if let Some((from, _)) = self.later {
            when = when.min(from);
        }
        if let Some(ask) = &mut self.ask
            && !ask.throttled
        {
            ask.throttled = true;
            self.throttled += 1;
        }
        self.timer = Some(when);
        false
    }

    /// A program within its rate finds the window not ready: counted once an ask.
    pub fn starved(&mut self) {
        if let Some(ask) = &mut self.ask
            && !ask.starved
        {
            ask.starved = true;
            self.underruns += 1;
        }
    }
}
