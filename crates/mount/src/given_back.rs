//! Space that programs have given back here, and that cannot be had at once: a file that was removed
//! stays until the kernel has forgotten it, which it does at once where nobody uses it; and what was
//! removed or cut is free with the next commit.
//!
//! Invariants: no call is told that there is no room because of what was given back here before it
//! began, unless the kernel takes longer than [`FORGOTTEN_WITHIN`] to forget a file, or more than
//! [`WAIT_MAX`] calls wait for that: the others of those who take the kernel's calls have to hear what it
//! has forgotten.

use crate::lock::locked;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A file that was removed is waited for so long after that. One that some program has open, or
/// holds in another way, is not waited for any longer.
const FORGOTTEN_WITHIN: Duration = Duration::from_secs(1);
/// Calls that wait for it at once.
pub const WAIT_MAX: usize = 8;

/// What was given back.
#[derive(Debug)]
pub struct GivenBack {
    /// [`FORGOTTEN_WITHIN`], but in a test.
    within: Duration,
    /// Files that were removed, by their inodes, with when.
    going: Mutex<HashMap<u64, Instant>>,
    gone: Condvar,
    /// How often something was given back, and of which of these times a commit has made it free.
    given: AtomicU64,
    freed: AtomicU64,
    waiting: AtomicUsize,
    /// One at a time asks for a commit; when the last one ended that failed.
    asks: Mutex<Option<Instant>>,
}

impl Default for GivenBack {
    fn default() -> Self {
        Self::within(FORGOTTEN_WITHIN)
    }
}

impl GivenBack {
    fn within(within: Duration) -> Self {
        Self {
            within,
            going: Mutex::default(),
            gone: Condvar::default(),
            given: AtomicU64::default(),
            freed: AtomicU64::default(),
            waiting: AtomicUsize::default(),
            asks: Mutex::default(),
        }
    }

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
        if self.waiting.fetch_add(1, Ordering::SeqCst) < WAIT_MAX {
            self.wait_for_the_kernel();
        }
        self.waiting.fetch_sub(1, Ordering::SeqCst);
    }

    fn wait_for_the_kernel(&self) {
        let begun = Instant::now();
        let mut going = locked(&self.going);
        let left = |going: &HashMap<u64, Instant>| {
            let before = going.values().filter(|&&at| at <= begun);
            let longest = before.map(|at| self.within.saturating_sub(at.elapsed()));
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
        self.free_since(Instant::now(), before, commit)
    }

    fn free_since(&self, begun: Instant, before: u64, commit: impl FnOnce() -> bool) -> bool {
        let mut failed = locked(&self.asks);
        let given = self.given.load(Ordering::SeqCst);
        // Whoever waited for one that failed does not wait for another, which may take as long.
        if self.freed() < given && failed.is_none_or(|at| at <= begun) {
            match commit() {
                true => self.freed.store(given, Ordering::SeqCst),
                false => *failed = Some(Instant::now()),
            }
        }
        self.freed() > before
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
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

    /// Else nobody were left who takes the kernel's word that it has forgotten the file.
    #[test]
    fn not_all_who_take_the_kernels_calls_wait_for_it() {
        let given = Arc::new(GivenBack::within(Duration::from_secs(3600)));
        given.going(7);
        let (tell, told) = std::sync::mpsc::channel();
        for _ in 0..2 * WAIT_MAX {
            let (given, tell) = (Arc::clone(&given), tell.clone());
            std::thread::spawn(move || tell.send(given.make_free(0, || true)));
        }
        let a_minute = Duration::from_secs(60);
        for _ in 0..WAIT_MAX {
            assert!(!told.recv_timeout(a_minute).unwrap(), "nothing is free yet");
        }
        given.gone(7);
        for _ in 0..WAIT_MAX {
            assert!(told.recv_timeout(a_minute).unwrap());
        }
    }

    /// Sixteen that try one after the other what takes half a minute took eight.
    #[test]
    fn who_waited_for_a_commit_that_failed_asks_for_no_other() {
        let given = GivenBack::default();
        given.note();
        let before = Instant::now();
        assert!(!given.free_since(Instant::now(), 0, || false));
        assert!(!given.free_since(before, 0, || panic!("one has just failed")));
        assert!(given.free_since(Instant::now(), 0, || true), "a later call tries anew");
    }
}
