//! What the kernel has in its cache of each file: of which version, so that it keeps the bytes where
//! nobody but this mount has changed the file.
//!
//! Invariants: a file's version is known here only where all that the kernel has of it was read
//! after the daemon told that version; an open that makes the kernel forget is over when the
//! kernel asks something by its handle.

use std::collections::HashMap;

/// The versions, and the opens under way.
#[derive(Default)]
pub struct Cached {
    /// By inode.
    versions: HashMap<u64, String>,
    /// By handle: the kernel forgets what it has, at some time before it asks anything by it.
    forgetting: HashMap<u64, (u64, Option<String>)>,
}

impl Cached {
    /// Whether the kernel may keep what it has of a file that is opened by this handle, and was
    /// just told to have this version; otherwise it forgets.
    pub fn keeps(&mut self, inode: u64, handle: u64, version: Option<String>) -> bool {
        let keeps = version.is_some() && self.versions.get(&inode) == version.as_ref();
        if !keeps {
            self.forgetting.insert(handle, (inode, version));
        }
        keeps
    }

    /// The kernel asks something by a handle: gives the inode of the file that it has forgotten
    /// by now, the first time.
    pub fn asked_by(&mut self, handle: u64) -> Option<u64> {
        let (inode, version) = self.forgetting.remove(&handle)?;
        match version {
            Some(version) => self.versions.insert(inode, version),
            None => self.versions.remove(&inode),
        };
        Some(inode)
    }

    /// The kernel has nothing of an inode any more.
    pub fn forget(&mut self, inode: u64) {
        self.versions.remove(&inode);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(number: u32) -> Option<String> {
        Some(number.to_string())
    }

    #[test]
    fn what_the_kernel_has_is_kept_from_when_it_has_forgotten_what_was_older() {
        let mut cached = Cached::default();
        assert!(!cached.keeps(7, 1, version(5)));
        assert!(!cached.keeps(7, 2, version(5)), "it may have older bytes for a moment");
        assert_eq!((cached.asked_by(1), cached.asked_by(1)), (Some(7), None));
        assert!(cached.keeps(7, 3, version(5)));
        assert!(!cached.keeps(7, 4, version(6)) && !cached.keeps(8, 5, version(5)));
        assert!(cached.keeps(7, 6, version(5)), "which is older than the change to 6");
        assert_eq!(cached.asked_by(4), Some(7));
        assert!(cached.keeps(7, 7, version(6)));
        cached.forget(7);
        assert!(!cached.keeps(7, 8, version(6)));
        assert!(!cached.keeps(9, 9, None));
        assert_eq!(cached.asked_by(9), Some(9));
        assert!(!cached.keeps(9, 10, None), "a daemon that tells no version");
    }
}
