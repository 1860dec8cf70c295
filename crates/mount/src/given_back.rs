//! Space that programs have given back here, and that cannot be had at once: a file that was removed
//! stays until the kernel has forgotten it, which it does at once where nobody uses it; and what was
//! removed or cut is free with the next commit.
//!
//! Invariant: no call is told that there is no room because of what was given back here before it
//! began, unless the kernel takes longer than [`FORGOTTEN_WITHIN`] to forget a file.

use crate::lock::locked;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
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
    /// How often something was given back, and of which of these times a commit has made it free.
    given: AtomicU64,
    freed: AtomicU64,
    /// One at a time asks for a commit.
    asks: Mutex<()>,
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
        self.given.fetch_add(1, Ordering::SeqCst);
    }

    /// When the files that have lost their names by now are removed, as far as nobody uses them.
    fn settled(&self) {
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

    /// What was made free so far: to be read before space is asked for.
    pub fn freed(&self) -> u64 {
        self.freed.load(Ordering::SeqCst)
    }

    /// Makes free what was given back, by a commit where there was none since. Whether more is free
    /// than `before`.
    pub fn make_free(&self, before: u64, commit: impl FnOnce() -> bool) -> bool {
        self.settled();
        let _asks = locked(&self.asks);
        let given = self.given.load(Ordering::SeqCst);
        if self.freed() < given && commit() {
            self.freed.store(given, Ordering::SeqCst);
        }
        self.freed() > before
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn files_that_go_are_waited_for_until_they_are_gone() {
        let given = GivenBack::default();
        given.settled();
        assert!(!given.make_free(given.freed(), || panic!("nothing was given back")));
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
        assert!(locked(&given.going).is_empty());
        // A commit that fails frees nothing; one is enough for all who have asked before it.
        let before = given.freed();
        assert!(!given.make_free(before, || false) && given.make_free(before, || true));
        assert!(given.make_free(before, || panic!("there was one")));
        assert!(!given.make_free(given.freed(), || panic!("there was one")));
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
