//! What the kernel has in its cache of each file: of which version, so that it keeps the bytes where
//! nobody but this mount has changed the file.
//!
//! The kernel puts what a program writes into its cache first and sends it then. An open that makes it
//! forget its cache in between lets a read bring the older bytes back, and they stay. So it
//! forgets as seldom as may be: where another door has changed the file. Where it has forgotten while others
//! had the file open, older bytes may be there, and it forgets once more at an open some time later.
//!
//! A write that was not answered in time may be done yet, at a version of which the kernel has read older bytes
//! by then. It is another door's change for that: this mount writes under another number from then on
//! ([`Connections::write`](crate::connections::Connections::write)).
//!
//! Invariants: a file's version is known here only where all that the kernel has of it was read
//! after the daemon told that version, or for no longer than [`DOUBTED_FOR`]; an open that makes the
//! kernel forget is over when the kernel asks something by its handle.

use std::collections::HashMap;
use std::time::{Duration, Instant};

/// So long what the kernel has is kept where some of it may be older than a write.
const DOUBTED_FOR: Duration = Duration::from_secs(10);

/// The versions, and the opens under way.
#[derive(Default)]
pub struct Cached {
    /// By inode.
    versions: HashMap<u64, Known>,
    /// By handle: the kernel forgets what it has, at some time before it asks anything by it.
    forgetting: HashMap<u64, Forgetting>,
}

struct Known {
    version: String,
    /// Not to be relied on from then on.
    until: Option<Instant>,
}

struct Forgetting {
    inode: u64,
    /// What it will have then; none where that is not known.
    version: Option<String>,
    /// Others have the file open, and may write to it at that moment.
    is_doubted: bool,
}

impl Cached {
    /// Whether the kernel may keep what it has of a file that is opened by this handle, and was
    /// just told to have this version; otherwise it forgets. `has_others`: the file is open by other
    /// handles, too.
    pub fn keeps(
        &mut self,
        (inode, handle): (u64, u64),
        version: Option<String>,
        has_others: bool,
        now: Instant,
    ) -> bool {
        let is_known = |known: &Known| {
            Some(&known.version) == version.as_ref() && known.until.is_none_or(|until| now < until)
        };
        let keeps = self.versions.get(&inode).is_some_and(is_known);
        if !keeps {
            let forgetting = Forgetting { inode, version, is_doubted: has_others };
            self.forgetting.insert(handle, forgetting);
        }
        keeps
    }

    /// The kernel asks something by a handle: it has forgotten by now what it was to forget.
    pub fn asked_by(&mut self, handle: u64, now: Instant) {
        let Some(Forgetting { inode, version, is_doubted }) = self.forgetting.remove(&handle)
        else {
            return;
        };
        match version {
            Some(version) => {
                // Another drop that is doubted may have come behind this one.
                let before = self.versions.get(&inode).and_then(|known| known.until);
                let until = match is_doubted {
                    true => Some(now + DOUBTED_FOR),
                    false => before.filter(|&until| now < until),
                };
                self.versions.insert(inode, Known { version, until });
            }
            None => drop(self.versions.remove(&inode)),
        }
    }

    /// The kernel has nothing of an inode any more, or what it has is not known any more.
    pub fn forget(&mut self, inode: u64) {
        self.versions.remove(&inode);
        for other in self.forgetting.values_mut().filter(|other| other.inode == inode) {
            other.version = None;
        }
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
        let (mut cached, now) = (Cached::default(), Instant::now());
        let keeps = |cached: &mut Cached, inode, handle, number| {
            cached.keeps((inode, handle), number, false, now)
        };
        assert!(!keeps(&mut cached, 7, 1, version(5)));
        assert!(!keeps(&mut cached, 7, 2, version(5)), "it may have older bytes for a moment");
        cached.asked_by(1, now);
        assert!(keeps(&mut cached, 7, 3, version(5)));
        assert!(!keeps(&mut cached, 7, 4, version(6)) && !keeps(&mut cached, 8, 5, version(5)));
        assert!(keeps(&mut cached, 7, 6, version(5)), "which is older than the change to 6");
        cached.asked_by(4, now);
        assert!(keeps(&mut cached, 7, 7, version(6)));
        cached.forget(7);
        assert!(!keeps(&mut cached, 7, 8, version(6)));
        cached.forget(7);
        cached.asked_by(8, now);
        assert!(!keeps(&mut cached, 7, 9, version(6)), "it was changed past the cache meanwhile");
        assert!(!keeps(&mut cached, 9, 10, None));
        cached.asked_by(10, now);
        assert!(!keeps(&mut cached, 9, 11, None), "a daemon that tells no version");
    }

    #[test]
    fn what_was_forgotten_while_others_had_the_file_open_is_kept_for_a_while() {
        let (mut cached, now) = (Cached::default(), Instant::now());
        assert!(!cached.keeps((7, 1), version(5), true, now));
        cached.asked_by(1, now);
        let later = now + DOUBTED_FOR;
        assert!(cached.keeps((7, 2), version(5), true, later - Duration::from_millis(1)));
        assert!(!cached.keeps((7, 3), version(5), false, later));
        cached.asked_by(3, later);
        assert!(cached.keeps((7, 4), version(5), true, later + DOUBTED_FOR * 100));
        // The first of two is asked by when the second has dropped what the first may write to.
        assert!(!cached.keeps((8, 5), version(5), false, now));
        assert!(!cached.keeps((8, 6), version(5), true, now));
        cached.asked_by(6, now);
        cached.asked_by(5, now);
        assert!(!cached.keeps((8, 7), version(5), true, later));
    }
}
