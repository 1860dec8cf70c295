//! Something is tried with a queue, and undone where it fails: contracts and the classes of what
//! waits. What requests do, and into what they are cut, is not undone.

use crate::Queue;

/// A queue as it was when something was begun; see [`Queue::attempt`].
#[derive(Debug)]
#[must_use = "what was begun is kept or undone"]
pub struct Attempt {
    schedule: sched::Attempt,
    classes: usize,
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
