//! What was answered and is not durable yet: which run of the daemon has it.
//!
//! Invariant: a mark goes only where the run that it names has synced after it was made, or where it
//! is known that what it stands for is lost. It outlives every close: whoever opens the file next may
//! sync it. That something is lost is told once by each handle that was open when somebody was told
//! first, and by the next one that asks, as Linux does it.

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
    /// By inode and run of the daemon.
    all: BTreeMap<(u64, u64), Mark>,
    /// Marks made up to now.
    count: u64,
    /// How many there were when last everything was synced.
    left: usize,
    /// Inodes of which something was lost.
    losses: BTreeMap<u64, Losses>,
    /// Of how many losses of its inode a handle has told; none where it is not here.
    told: BTreeMap<u64, u64>,
}

/// The numbers of the first and the last of those that are no more than one: what came before a sync is known
/// to be lost whatever was noted of the same run while the sync was under way.
#[derive(Clone, Copy)]
struct Mark {
    first: u64,
    last: u64,
}

impl Mark {
    /// What came up to here is settled. False where that is all.
    fn settle(&mut self, begun: u64) -> bool {
        self.first = self.first.max(begun + 1);
        self.last > begun
    }
}

#[derive(Clone, Copy, Default)]
struct Losses {
    count: u64,
    /// Somebody was told of the last one.
    are_told: bool,
}

impl Unsynced {
    /// A run of the daemon has something of an inode that is not durable.
    pub fn note(&self, inode: u64, run: u64) {
        let mut marks = locked(&self.0);
        marks.count += 1;
        let last = marks.count;
        marks.all.entry((inode, run)).or_insert(Mark { first: last, last }).last = last;
    }

    /// A sync is about to be asked for. What it gives is for [`synced`](Self::synced).
    pub fn begin(&self) -> u64 {
        locked(&self.0).count
    }

    /// A run of the daemon has made durable what it had when the sync began.
    pub fn synced(&self, run: u64, begun: u64) {
        let mut marks = locked(&self.0);
        marks.all.retain(|(_, of), mark| *of != run || mark.settle(begun));
        marks.left = marks.all.len();
    }

    /// An inode is opened: the handle tells of losses of which nobody was told so far, and of later ones.
    pub fn open(&self, inode: u64, handle: u64) {
        let mut marks = locked(&self.0);
        if let Some(losses) = marks.losses.get(&inode).copied() {
            marks.told.insert(handle, losses.count - u64::from(!losses.are_told));
        }
    }

    /// A handle is closed.
    pub fn close(&self, handle: u64) {
        locked(&self.0).told.remove(&handle);
    }

    /// Whether what a run had of an inode when the sync began is lost, since another run has
    /// synced. A handle says that once.
    pub fn is_lost(&self, (inode, handle): (u64, u64), run: u64, begun: u64) -> bool {
        let mut marks = locked(&self.0);
        let Marks { all, losses, told, .. } = &mut *marks;
        let mut has_lost = false;
        all.retain(|(file, of), mark| {
            if *file != inode || *of == run {
                return true;
            }
            has_lost |= mark.first <= begun;
            mark.settle(begun)
        });
        if has_lost {
            let losses = losses.entry(inode).or_default();
            (losses.count, losses.are_told) = (losses.count + 1, false);
        }
        let Some(losses) = losses.get_mut(&inode) else { return false };
        let known = told.insert(handle, losses.count).unwrap_or(0);
        let is_news = known < losses.count;
        losses.are_told |= is_news;
        is_news
    }

    /// An inode is gone: nobody can ask for it any more.
    pub fn forget(&self, inode: u64) {
        let mut marks = locked(&self.0);
        marks.all.retain(|(of, _), _| *of != inode);
        marks.losses.remove(&inode);
    }

    /// Whether there are so many that a sync is worth its while.
    pub fn are_many(&self) -> bool {
        let marks = locked(&self.0);
        marks.all.len() >= marks.left + MANY
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
        assert!(marks.is_lost((7, 1), 2, begun));
        assert!(!marks.is_lost((7, 1), 2, begun), "said once");
        // The third run has synced: what the second had since is lost, and what the first had.
        let begun = marks.begin();
        marks.synced(3, begun);
        assert!(marks.is_lost((7, 1), 3, begun));
        assert!(marks.is_lost((8, 2), 3, begun));
        // Synced by the run that has it.
        marks.note(7, 3);
        let begun = marks.begin();
        marks.synced(3, begun);
        let later = marks.begin();
        marks.synced(4, later);
        assert!(!marks.is_lost((7, 1), 4, later));
    }

    /// A change of another thread that is noted while the sync is under way, of the run that has gone.
    #[test]
    fn what_is_noted_during_a_sync_does_not_hide_what_was_lost_before() {
        let marks = Unsynced::default();
        marks.note(7, 1);
        let begun = marks.begin();
        marks.note(7, 1);
        marks.synced(2, begun);
        assert!(marks.is_lost((7, 1), 2, begun), "the first");
        assert!(!marks.is_lost((7, 1), 2, begun));
        let later = marks.begin();
        marks.synced(2, later);
        assert!(marks.is_lost((7, 1), 2, later), "the other");
        assert!(!marks.is_lost((7, 1), 2, later));
    }

    #[test]
    fn each_handle_that_was_open_tells_of_a_loss_and_one_that_comes_later_only_where_none_has() {
        let marks = Unsynced::default();
        let loses = |run| {
            marks.note(7, run);
            let begun = marks.begin();
            marks.synced(run + 1, begun);
            begun
        };
        (1..3).for_each(|handle| marks.open(7, handle));
        marks.open(9, 9);
        let begun = loses(1);
        assert!(marks.is_lost((7, 1), 2, begun) && marks.is_lost((7, 2), 2, begun));
        assert!(!marks.is_lost((7, 1), 2, begun) && !marks.is_lost((7, 2), 2, begun));
        assert!(!marks.is_lost((9, 9), 2, begun), "another file");
        // Told; nothing is news to this one.
        marks.open(7, 3);
        assert!(!marks.is_lost((7, 3), 2, begun));
        // Everybody hears of the next one, who is closed hears nothing.
        marks.close(2);
        let begun = loses(2);
        marks.open(7, 4);
        assert!([1, 3, 4].iter().all(|&handle| marks.is_lost((7, handle), 3, begun)));
        assert!([1, 3, 4].iter().all(|&handle| !marks.is_lost((7, handle), 3, begun)));
        // A file of which nobody has a handle: the next one that is opened tells of it.
        [1, 3, 4].into_iter().for_each(|handle| marks.close(handle));
        let begun = loses(3);
        marks.open(7, 5);
        assert!(marks.is_lost((7, 5), 4, begun));
        marks.forget(7);
        assert!(!marks.is_lost((7, 6), 4, begun));
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
