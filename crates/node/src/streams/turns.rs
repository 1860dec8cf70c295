//! When a stream's disks serve it by its contract alone: once a period from the next turn on, each
//! request by its deadline.

use crate::admission::contract::Joined;
use crate::api::DiskIndex;
use crate::core::Core;
use crate::streams::stream::Stream;
use alloc::vec::Vec;
use units::{Duration, Instant};

/// A stream's turns on one of its disks.
#[derive(Clone, Copy)]
pub(crate) struct Turns {
    disk: DiskIndex,
    /// The next one.
    pub next: Instant,
    pub period: Duration,
    /// How long after its turn a request is done at the latest: a period at least.
    within: Duration,
}

impl Turns {
    /// So many turns are taken, one at least; when the last of them is done.
    pub(crate) fn take(&mut self, turns: u64) -> Instant {
        self.next = self.next.saturating_add(self.period.saturating_mul(turns));
        self.before_next()
    }

    /// When a request is done at the latest whose turn came before the next one.
    pub(crate) fn before_next(&self) -> Instant {
        self.next.saturating_add(self.within - self.period)
    }
}

/// The turns on each of a stream's disks.
pub(crate) struct AllTurns(pub Vec<Turns>);

impl AllTurns {
    pub(crate) fn on(&mut self, disk: DiskIndex) -> Option<&mut Turns> {
        self.0.iter_mut().find(|turns| turns.disk == disk)
    }

    pub(crate) fn remove(&mut self, disk: DiskIndex) -> Option<Turns> {
        let at = self.0.iter().position(|turns| turns.disk == disk)?;
        Some(self.0.swap_remove(at))
    }
}

impl Stream {
    /// The stream's turns on each of its disks.
    pub(crate) fn turns(&self, core: &Core, now: Instant) -> AllTurns {
        // Of one that may be late now and then a block is there so long after its turn.
        let response = self.odds.map_or(Duration::ZERO, |odds| odds.response);
        let of = |joined: &Joined| {
            let task = &joined.task;
            let within = task.deadline.saturating_add(core.advance(joined.disk)).max(task.period);
            let next = core.next_release(joined).max(now);
            Turns { disk: joined.disk, next, period: task.period, within: within.max(response) }
        };
        AllTurns(self.tasks.iter().map(of).collect())
    }
}
