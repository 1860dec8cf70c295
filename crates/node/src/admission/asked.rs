//! What the tasks of streams on a disk were made of, so that they can be made anew in other
//! commands.
//!
//! Invariant: `asked` has an entry for each task that a stream has on the disk.

use crate::admission::contract::Share;
use crate::api::Contract;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use sched::TaskId;
use units::{Direction, Duration};

/// What a stream's task was made of.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub contract: Contract,
    pub share: Share,
    pub way: Direction,
}

/// How one disk serves the requests of streams.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chunking {
    asked: BTreeMap<TaskId, Asked>,
    /// What admission leaves for best effort where requests are whole; only where they are not.
    pub reserve_whole: Option<Duration>,
    /// How many things are tried, each within the one before it.
    tried: u32,
    /// What was before each change since then, the latest last.
    changes: Vec<(TaskId, Option<Asked>)>,
}

/// As it was when something was begun.
#[derive(Debug)]
#[must_use = "what was begun is kept or undone"]
pub(crate) struct ChunkingBefore {
    changes: usize,
    reserve_whole: Option<Duration>,
}

impl Chunking {
    /// What each task of a stream was made of.
    pub fn asked(&self) -> impl Iterator<Item = (TaskId, &Asked)> {
        self.asked.iter().map(|(&id, asked)| (id, asked))
    }

    /// A task is made of this from here on; of nothing where it has left.
    pub fn note(&mut self, id: TaskId, asked: Option<Asked>) {
        let before = match asked {
            Some(asked) => self.asked.insert(id, asked),
            None => self.asked.remove(&id),
        };
        if self.tried > 0 {
            self.changes.push((id, before));
        }
    }

    /// Something is tried from here on: [`Chunking::keep`] or [`Chunking::undo`] ends it.
    pub fn attempt(&mut self) -> ChunkingBefore {
        self.tried += 1;
        ChunkingBefore { changes: self.changes.len(), reserve_whole: self.reserve_whole }
    }

    /// What was tried stays.
    pub fn keep(&mut self, _: ChunkingBefore) {
        self.tried -= 1;
        if self.tried == 0 {
            self.changes = Vec::new();
        }
    }

    /// All is as it was when that was begun.
    pub fn undo(&mut self, before: ChunkingBefore) {
        self.tried -= 1;
        self.reserve_whole = before.reserve_whole;
        for (id, asked) in self.changes.drain(before.changes..).rev() {
            match asked {
                Some(asked) => self.asked.insert(id, asked),
                None => self.asked.remove(&id),
            };
        }
    }
}
