//! Which inodes the kernel knows: those that it was told of and has not forgotten.
//!
//! A program that has come to an inode by a path asks for it later, and finds it also where its name
//! was taken away meanwhile. Invariant: an inode is known from before the kernel is told of it until
//! the kernel has forgotten it as often as it was told.

use crate::lock::locked;
use crate::tree::ROOT;
use std::collections::HashMap;
use std::sync::Mutex;

/// How often the kernel was told of each.
#[derive(Debug, Default)]
pub struct Known(Mutex<HashMap<u64, u64>>);

impl Known {
    /// The kernel is about to be told of it.
    pub fn tell(&self, inode: u64) {
        if inode != ROOT {
            *locked(&self.0).entry(inode).or_insert(0) += 1;
        }
    }

    /// The kernel forgets that it was told so often. Gives whether it does not know it any more.
    pub fn forget(&self, inode: u64, times: u64) -> bool {
        let mut all = locked(&self.0);
        let Some(told) = all.get_mut(&inode) else { return inode != ROOT };
        *told = told.saturating_sub(times);
        let is_forgotten = *told == 0;
        if is_forgotten {
            all.remove(&inode);
        }
        is_forgotten
    }

    /// Runs this if the kernel does not know the inode; nobody can tell it of that meanwhile. Another thread may
    /// have told it again since [`forget`](Self::forget) gave that it does not know it.
    pub fn unless_told(&self, inode: u64, forget: impl FnOnce()) {
        let all = locked(&self.0);
        if !all.contains_key(&inode) {
            forget();
        }
    }

    /// Whether the kernel knows it.
    pub fn has(&self, inode: u64) -> bool {
        locked(&self.0).contains_key(&inode)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_inode_is_known_until_it_is_forgotten_as_often_as_it_was_told() {
        let known = Known::default();
        (0..3).for_each(|_| known.tell(7));
        assert!(known.has(7) && !known.has(8));
        assert!(!known.forget(7, 2) && known.has(7));
        assert!(known.forget(7, 1) && !known.has(7));
        known.tell(ROOT);
        assert!(!known.forget(ROOT, 1), "the root stays");
        assert!(locked(&known.0).is_empty());
    }

    /// One thread handled the last forget, and another told the kernel of the inode again before the first had
    /// removed what was noted for it: that was lost, and the next open for writing was refused.
    #[test]
    fn what_is_told_again_is_not_forgotten_by_who_comes_late() {
        let known = Known::default();
        let forgets = || {
            let mut forgets = false;
            known.unless_told(7, || {
                assert!(known.0.try_lock().is_err(), "nobody is told meanwhile");
                forgets = true;
            });
            forgets
        };
        known.tell(7);
        assert!(known.forget(7, 1) && forgets());
        known.tell(7);
        assert!(!forgets());
    }
}
