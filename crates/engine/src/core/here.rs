//! Commands that the thread which asks for them carries out itself: the disk's thread is not woken
//! for what takes less than that does ([`backend::here`](crate::backend::here)).
//!
//! Invariants: what a thread carries out here it has begun itself, in the section before; what
//! callbacks ask for meanwhile goes to the disk's thread, so that no thread stays here, however much
//! is asked for; no lock is held while a command is carried out.

use super::Core;
use crate::backend::here::Here;
use crate::lock::Fatal;
use node::{DiskCommand, DiskIndex};
use std::cell::Cell;
use std::sync::Arc;
use units::Duration;

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

/// Whether this thread may carry out what it has begun.
pub(super) fn may() -> bool {
    !with(Cell::get)
}

/// As long as this lives this thread carries out no more.
struct Within;

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
    /// Carries out what was begun in a section of this thread, and tells what follows from that.
    pub(super) fn carry_out(
        self: &Arc<Self>,
        here: Vec<(DiskIndex, Vec<DiskCommand>, Arc<dyn Here>)>,
    ) {
        if here.is_empty() {
            return;
        }
        let _within = Within::enter();
        // Half a transfer cannot be taken back.
        let fatal = Fatal::new("in a transfer");
        let mut all = Vec::new();
        for (disk, commands, does) in here {
            let at = disk.as_usize();
            for command in &commands {
                let (ended, wakes) =
                    self.disks[at].lock().ended_here(&self.arena, &does.run(command));
                if wakes {
                    self.events[at].signal();
                }
                all.push(ended);
            }
        }
        let news = self.tell(all, Duration::ZERO);
        drop(fatal);
        self.deliver(news);
    }
}
