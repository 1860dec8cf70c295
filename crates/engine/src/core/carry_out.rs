//! Commands that the thread which asks for them carries out itself: the disk's thread is not woken
//! for what takes less than that does ([`backend::here`](crate::backend::here)).
//!
//! Invariants: what a thread carries out here it has begun itself, in the section before; what
//! callbacks ask for meanwhile goes to the disk's thread, so that no thread stays here, however much
//! is asked for; no lock is held while a command is carried out; nobody is called back before what this
//! thread has begun has ended.

use super::Core;
use super::disk::Carried;
use super::here::Within;
use super::news::News;
use crate::lock::Fatal;
use std::sync::Arc;
use units::Duration;

impl Core {
    /// Carries out what was begun in a section of this thread, and tells the pool. What follows from
    /// that is to be delivered before the guard is dropped.
    pub(super) fn carry_out(
        self: &Arc<Self>,
        all: Vec<(usize, Carried)>,
    ) -> Option<(News, Within)> {
        if all.is_empty() {
            return None;
        }
        let within = Within::enter();
        // Half a transfer cannot be taken back.
        let _fatal = Fatal::new("in a transfer");
        let mut told = Vec::new();
        for (at, Carried { commands, here }) in all {
            let done = here.run(&commands); // without the lock
            let (ended, wakes) = self.disks[at].lock().ended_here(&self.arena, &done);
            if wakes {
                self.events[at].signal();
            }
            told.extend(ended);
        }
        Some((self.tell(told, Duration::ZERO), within))
    }
}
