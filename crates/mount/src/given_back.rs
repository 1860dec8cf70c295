//! Space that programs have given back here, and that cannot be had at once: a file that was removed
//! stays until the kernel has forgotten it, which it does at once where nobody uses it; and what was
//! removed or cut is free with the next commit.
//!
//! Invariant: no call is told that there is no room because of what was given back here before it
//! began, unless the kernel takes longer than [`FORGOTTEN_WITHIN`] to forget a file.

use crate::lock::locked;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A file that was removed is waited for so long after that. One that some program has open, or
/// holds in another way, is not waited for any longer.
const FORGOTTEN_WITHIN: Duration = Duration::from_secs(1);

/// What was given back.
#[derive(Debug, Default)]
pub struct GivenBack {
    /// Files that were removed, by their inodes, with when.
    going: Mutex<HashMap<u64, Instant>>,
    gone: Condvar,
    /// Something was given back since the last commit that was asked for here.
    is_new: AtomicBool,
}

impl GivenBack {
    /// A file has lost its name.
    pub fn going(&self, inode: u64) {
        locked(&self.going).insert(inode, Instant::now());
    }

    /// It was removed, or has a name again.
    pub fn gone(&self, inode: u64) {
        self.note();
        locked(&self.going).remove(&inode);
        self.gone.notify_all();
    }

    /// Space was given back.
    pub fn note(&self) {
        self.is_new.store(true, Ordering::Relaxed);
    }

    /// When the files that have lost their names by now are removed, as far as nobody uses them.
    pub fn settled(&self) {
        let begun = Instant::now();
        let mut going = locked(&self.going);
        let left = |going: &HashMap<u64, Instant>| {
            let before = going.values().filter(|&&at| at <= begun);
            let longest = before.map(|at| FORGOTTEN_WITHIN.saturating_sub(at.elapsed()));
            longest.max().filter(|left| !left.is_zero())
        };
        while let Some(left) = left(&going) {
            going = self.gone.wait_timeout(going, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Whether space was given back of which a commit was not asked for yet.
    pub fn take_new(&self) -> bool {
        self.is_new.swap(false, Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_go_are_waited_for_until_they_are_gone() {
        let given = GivenBack::default();
        given.settled();
        assert!(!given.take_new());
        given.going(7);
        let gone = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                given.settled();
                assert!(gone.load(Ordering::SeqCst));
            });
            gone.store(true, Ordering::SeqCst);
            given.gone(7);
        });
        assert!(given.take_new() && !given.take_new());
        assert!(locked(&given.going).is_empty());
    }

    #[test]
    fn files_that_lose_their_names_later_are_not_waited_for() {
        let given = GivenBack::default();
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for inode in 0.. {
                    given.going(inode);
                    if is_over.load(Ordering::SeqCst) {
                        return;
                    }
                    std::thread::yield_now();
                }
            });
            given.settled();
            is_over.store(true, Ordering::SeqCst);
        });
    }
}
