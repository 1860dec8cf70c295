//! One file under contract: its window and its playout point.
//!
//! As a pool's reader (`node`): a program gets what is in memory and within its rate.
//! Invariant: the playout point lies in the window or at its end.

use crate::map::FileMap;
use alloc::string::String;
use node::StreamId;
use playout::{Account, Ask, Contract, Pace, Window};
use sched::{Task, TaskId};
use units::{Bytes, Instant};

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
    /// Declared as a gap while its read was still under way.
    Given,
}

#[derive(Clone, Debug)]
pub(crate) struct Stream {
    pub id: StreamId,
    pub name: String,
    pub map: FileMap,
    pub length: Bytes,
    pub contract: Contract,
    pub task: (TaskId, Task),
    pub window: Window<Slot>,
    /// How many blocks of the window the contract needs; the others are for riding out what
    /// others do.
    pub needed: u64,
    pub position: Bytes,
    pub pace: Pace,
    pub held: Bytes,
    pub ask: Option<Ask<u64>>,
    pub timer: Option<Instant>,
    pub primed: bool,
    pub playout_from: Instant,
    pub open_since: Instant,
    pub account: Account,
}

impl Stream {
    pub fn block_at(&self, offset: Bytes) -> u64 {
        offset / self.contract.block
    }

    /// The memory of its window.
    pub fn memory(&self) -> Bytes {
        self.window.memory(&self.contract)
    }

    /// Lets go of the blocks behind the playout point.
    pub fn slide(&mut self) {
        while self.window.first() < self.block_at(self.position) {
            self.window.pop_front();
            if self.window.len() < self.window.target {
                self.window.push_back(Slot::Open);
            }
        }
    }

    /// Brings the window to the size that it shall have, as far as nothing is in the way.
    pub fn fit(&mut self) {
        while self.window.len() < self.window.target {
            self.window.push_back(Slot::Open);
        }
        while self.window.len() > self.window.target
            && self.window.get(self.window.end() - 1) == Some(&Slot::Open)
        {
            self.window.pop_back();
        }
    }

    /// Whether what the contract needs is in memory: all that is not is behind the end.
    pub fn is_filled(&self) -> bool {
        let mut wanted = self.window.iter().take(self.needed as usize);
        wanted.all(|(block, slot)| {
            !matches!(slot, Slot::Open | Slot::Moving(_))
                || self.contract.block * block >= self.length
        })
    }

    /// Whether the rate allows `len` more bytes; if not, counted once an ask, and the
    /// timer is set for when it does.
    pub fn within_rate(&mut self, now: Instant, len: Bytes) -> bool {
        self.pace.renew(now);
        let when = self.pace.may_pass(len);
        if when <= now {
            return true;
        }
        if let Some(ask) = &mut self.ask {
            ask.throttle(&mut self.account);
        }
        self.timer = Some(when);
        false
    }
}
