//! The last hours as they are recorded, and those who watch.
//!
//! Invariant: those who watch are counted, by user and in all.

mod history;

use crate::limits::{WATCHERS_MAX, WATCHERS_PER_USER};
use crate::lock::Mutex;
use crate::people::Peer;
use crate::pool::Entry;
use crate::was_late::WasLate;
use bytes::Bytes;
use history::{Kept, STEP};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::watch;
use wire::control::{Disk, Finding};
use wire::{Code, Problem};

/// A user, and whether it is by his tokens: whoever holds one does not keep him out.
type Who = (u32, bool);

/// The last hours, and those who watch.
pub struct Live {
    kept: Kept,
    was_late: Mutex<WasLate>,
    watchers: Mutex<HashMap<Who, usize>>,
    stopping: watch::Receiver<bool>,
}

impl Live {
    /// With what was kept in this directory.
    pub fn new(state: Option<PathBuf>, stopping: watch::Receiver<bool>) -> Arc<Self> {
        Arc::new(Self {
            kept: Kept::new(state),
            was_late: Mutex::default(),
            watchers: Mutex::default(),
            stopping,
        })
    }

    /// Records what the disks do until the daemon stops.
    pub async fn record(self: Arc<Self>, entry: Entry) {
        let mut stopping = self.stopping.clone();
        let mut before = entry.0.status().disks;
        loop {
            tokio::select! {
                () = tokio::time::sleep(STEP) => {}
                _ = stopping.wait_for(|&stopping| stopping) => return,
            }
            let now = entry.0.status().disks;
            let step = history::step(&before, &now);
            before = now;
            let live = Arc::clone(&self);
            // It writes a line to a file. Where that fails it has said why.
            let added = tokio::task::spawn_blocking(move || live.kept.add(step));
            tokio::select! {
                _ = added => {}
                _ = stopping.wait_for(|&stopping| stopping) => return, // whatever that disk does
            }
        }
    }

    /// The last day, as the JSON of a [`History`](wire::control::History).
    pub fn history(&self) -> Bytes {
        self.kept.told()
    }

    /// What is to be told of requests that were late, as far as somebody looked since.
    pub fn was_late(&self, disks: &[Disk]) -> Vec<Finding> {
        self.was_late.lock().look(std::time::Instant::now(), disks)
    }

    /// One more of this user's watches, if he may.
    ///
    /// # Errors
    /// He has as many as he may, or all have.
    pub fn watch(self: &Arc<Self>, peer: &Peer) -> Result<Watcher, Box<Problem>> {
        let mut watchers = self.watchers.lock();
        let all: usize = watchers.values().sum();
        let who = (peer.uid, peer.scope.is_some());
        let own = watchers.get(&who).copied().unwrap_or_default();
        if own >= WATCHERS_PER_USER || all >= WATCHERS_MAX {
            let what = format!(
                "{own} programs or pages of this user watch already, and {all} of all; at most \
                 {WATCHERS_PER_USER} and {WATCHERS_MAX} may"
            );
            let next_step = "close a page, or ask without `accept: text/event-stream` now and then";
            return Err(Box::new(Problem::new(Code::Busy, what, next_step)));
        }
        watchers.insert(who, own + 1);
        Ok(Watcher { live: Arc::clone(self), who })
    }
}

/// One who watches.
pub struct Watcher {
    live: Arc<Live>,
    who: Who,
}

impl Watcher {
    /// How many watch, with this one.
    pub fn all(&self) -> usize {
        self.live.watchers.lock().values().sum()
    }

    /// Ends when the daemon stops.
    pub async fn over(&self) {
        // An end without a word is one, too.
        let _ = self.live.stopping.clone().wait_for(|&stopping| stopping).await;
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        let mut watchers = self.live.watchers.lock();
        if let Some(own) = watchers.get_mut(&self.who) {
            *own -= 1;
            if *own == 0 {
                watchers.remove(&self.who);
            }
        }
    }
}
