//! What was answered and is not durable yet: which run of the daemon has it.
//!
//! Invariant: a mark goes only where the run that it names has synced after it was made, or where
//! somebody was told that what it stands for is lost. It outlives every close: whoever opens the
//! file next may sync it.

use crate::lock::locked;
use std::collections::BTreeMap;
use std::sync::Mutex;

/// So many marks are made before everything is synced to be rid of them.
const MANY: usize = 10_000;

/// The marks of all files, and of the names.
#[derive(Default)]
pub struct Unsynced(Mutex<Marks>);

#[derive(Default)]
struct Marks {
    /// By inode and run of the daemon: the number of the last mark.
    last: BTreeMap<(u64, u64), u64>,
    /// Marks made up to now.
    count: u64,
    /// How many there were when last everything was synced.
    left: usize,
}

impl Unsynced {
    /// A run of the daemon has something of an inode that is not durable.
    pub fn note(&self, inode: u64, run: u64) {
        let mut marks = locked(&self.0);
        marks.count += 1;
        let count = marks.count;
        marks.last.insert((inode, run), count);
    }

    /// A sync is about to be asked for. What it gives is for [`synced`](Self::synced).
    pub fn begin(&self) -> u64 {
        locked(&self.0).count
    }

    /// A run of the daemon has made durable what it had when the sync began.
    pub fn synced(&self, run: u64, begun: u64) {
        let mut marks = locked(&self.0);
        marks.last.retain(|(_, of), last| *of != run || *last > begun);
        marks.left = marks.last.len();
    }

    /// Whether what a run had of an inode when the sync began is lost, since another run has
    /// synced. That is said once.
    pub fn is_lost(&self, inode: u64, run: u64, begun: u64) -> bool {
        let mut marks = locked(&self.0);
        let before = marks.last.len();
        marks.last.retain(|(file, of), last| *file != inode || *of == run || *last > begun);
        marks.last.len() < before
    }

    /// An inode is gone: nobody can ask for it any more.
    pub fn forget(&self, inode: u64) {
        locked(&self.0).last.retain(|(of, _), _| *of != inode);
    }

    /// Whether there are so many that a sync is worth its while.
    pub fn are_many(&self) -> bool {
        let marks = locked(&self.0);
        marks.last.len() >= marks.left + MANY
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_run_had_is_lost_once_and_what_came_during_a_sync_stays_marked() {
        let marks = Unsynced::default();
        marks.note(7, 1);
        marks.note(8, 1);
        // The other run has it only from here on.
        let begun = marks.begin();
        marks.note(7, 2);
        marks.synced(2, begun);
        assert!(marks.is_lost(7, 2, begun));
        assert!(!marks.is_lost(7, 2, begun), "said once");
        // The third run has synced: what the second had since is lost, and what the first had.
        let begun = marks.begin();
        marks.synced(3, begun);
        assert!(marks.is_lost(7, 3, begun));
        assert!(marks.is_lost(8, 3, begun));
        // Synced by the run that has it.
        marks.note(7, 3);
        let begun = marks.begin();
        marks.synced(3, begun);
        let later = marks.begin();
        marks.synced(4, later);
        assert!(!marks.is_lost(7, 4, later));
    }

    #[test]
    fn there_are_many_only_where_a_sync_can_take_them_away() {
        let marks = Unsynced::default();
        (0..MANY as u64).for_each(|inode| marks.note(inode, 1));
        assert!(marks.are_many());
        // Another run cannot.
        marks.synced(2, marks.begin());
        assert!(!marks.are_many());
        (0..MANY as u64).for_each(|inode| marks.note(inode, 2));
        assert!(marks.are_many());
        marks.forget(3);
        assert!(!marks.are_many());
    }
}
