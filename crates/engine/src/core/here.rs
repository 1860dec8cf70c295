//! Commands that the thread which asks for them carries out itself: the disk's thread is not woken
//! for what takes less than that does ([`backend::here`](crate::backend::here)).
//!
//! Invariants: what a thread carries out here it has begun itself, in the section before; what
//! callbacks ask for meanwhile goes to the disk's thread, so that no thread stays here, however much
//! is asked for; no lock is held while a command is carried out; nobody is called back before what this
//! thread has begun has ended.

use super::{Core, News};
use crate::backend::here::Here;
use crate::lock::Fatal;
use crate::on_disk::keeps_time;
use node::{DiskCommand, DiskIndex};
use std::cell::Cell;
use std::sync::Arc;
use units::{Bytes, Duration};

/// So much is moved at a time by who asks, on all disks together: some tens of microseconds.
const MOVED_MAX: Bytes = Bytes::kib(128);

thread_local! {
    /// Whether this thread carries out commands, or delivers what follows from them.
    static IS_HERE: Cell<bool> = const { Cell::new(false) };
}

#[cfg(test)]
shuttle::thread_local! {
    /// The same in a scene, whose threads are one of ours.
    static SCENE: Cell<bool> = Cell::new(false);
}

fn with<T>(look: impl FnOnce(&Cell<bool>) -> T) -> T {
    #[cfg(test)]
    if super::schedules::inside() {
        return SCENE.with(look);
    }
    IS_HERE.with(look)
}

/// How much this thread may move of what it has begun. Threads that keep time for others move
/// nothing: what they have to do next may be promised to somebody.
pub(super) fn may() -> Bytes {
    if with(Cell::get) || keeps_time() { Bytes::ZERO } else { MOVED_MAX }
}

/// Commands of a disk that this thread is to carry out.
pub(super) struct Carried {
    pub(super) disk: DiskIndex,
    pub(super) commands: Vec<DiskCommand>,
    pub(super) here: Arc<dyn Here>,
}

/// As long as this lives this thread carries out no more.
pub(super) struct Within;

impl Within {
    fn enter() -> Self {
        with(|is| is.set(true));
        Self
    }
}

impl Drop for Within {
    fn drop(&mut self) {
        with(|is| is.set(false));
    }
}

impl Core {
    /// Carries out what was begun in a section of this thread, and tells the pool. What follows from
    /// that is to be delivered as long as the other one lives.
    pub(super) fn carry_out(self: &Arc<Self>, all: Vec<Carried>) -> Option<(News, Within)> {
        if all.is_empty() {
            return None;
        }
        let within = Within::enter();
        // Half a transfer cannot be taken back.
        let _fatal = Fatal::new("in a transfer");
        let mut told = Vec::new();
        for Carried { disk, commands, here } in all {
            let at = disk.as_usize();
            for command in &commands {
                let done = here.run(command); // without the lock
                let (ended, wakes) = self.disks[at].lock().ended_here(&self.arena, &done);
                if wakes {
                    self.events[at].signal();
                }
                told.push(ended);
            }
        }
        Some((self.tell(told, Duration::ZERO), within))
    }
}
