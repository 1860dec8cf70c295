//! Something is tried with a queue, and undone where it fails: contracts and the classes of what
//! waits. What requests do, and into what they are cut, is not undone.

use crate::Queue;
use alloc::vec::Vec;
use sched::Class;

/// A queue as it was when something was begun; see [`Queue::attempt`].
#[derive(Debug)]
#[must_use = "what was begun is kept or undone"]
pub struct Attempt {
    schedule: sched::Attempt,
    classes: usize,
}

/// The classes that requests had before they were changed, while something is tried.
#[derive(Clone, Debug, Default)]
pub(crate) struct Classes {
    /// How many things are tried, each within the one before it.
    tried: u32,
    /// The latest change last.
    before: Vec<(u64, Class)>,
}

impl Classes {
    /// A request that waits has another class from here on.
    pub(crate) fn note(&mut self, key: u64, before: Class) {
        if self.tried > 0 {
            self.before.push((key, before));
        }
    }

    fn end(&mut self) {
        self.tried -= 1;
        if self.tried == 0 {
            self.before = Vec::new();
        }
    }
}

impl<W> Queue<W> {
    /// As [`Schedule::attempt`](sched::Schedule::attempt): [`Queue::keep`] or [`Queue::undo`] ends it.
    pub fn attempt(&mut self) -> Attempt {
        self.classes.tried += 1;
        Attempt { schedule: self.schedule.attempt(), classes: self.classes.before.len() }
    }

    /// What was tried stays.
    pub fn keep(&mut self, attempt: Attempt) {
        self.schedule.keep(attempt.schedule);
        self.classes.end();
    }

    /// Contracts, and the classes of what waits, are as they were when that was begun.
    pub fn undo(&mut self, attempt: Attempt) {
        self.schedule.undo(attempt.schedule);
        for (key, class) in self.classes.before.drain(attempt.classes..).rev() {
            if let Some(entry) = self.commands.get_mut(key) {
                entry.class = class;
            }
        }
        self.classes.end();
    }
}
