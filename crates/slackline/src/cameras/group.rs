//! The process group of a camera's command, while it runs.
//!
//! Invariant: a command is started, and reaped, under the lock: its number is nobody else's as long as it
//! stands here.

use rustix::process::{Pid, Signal, kill_process_group};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What runs for one camera.
#[derive(Default)]
pub struct Group(Mutex<Option<Pid>>);

impl Group {
    /// For whoever starts and reaps it.
    pub fn lock(&self) -> MutexGuard<'_, Option<Pid>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Kills all that runs. Nothing is started as long as what this gives is held.
pub fn kill_all<'a>(groups: impl Iterator<Item = &'a Group>) -> Vec<MutexGuard<'a, Option<Pid>>> {
    let groups: Vec<_> = groups.map(Group::lock).collect();
    for group in groups.iter().filter_map(|group| **group) {
        let _ = kill_process_group(group, Signal::KILL);
    }
    groups
}
