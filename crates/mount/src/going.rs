//! Which files are being opened, and which are being taken away, at this moment.
//!
//! Invariant: no open of a file begins while its name is taken away, so that whoever takes it away knows
//! whether somebody has the file open: it is removed, or kept under another name until it is closed.

use crate::ANSWER_WITHIN;
use crate::lock::locked;
use fuser::Errno;
use std::collections::{HashMap, HashSet};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// All files, by their inodes.
#[derive(Debug, Default)]
pub struct Going {
    now: Mutex<Now>,
    ended: Condvar,
}

#[derive(Debug, Default)]
struct Now {
    /// How many opens are under way.
    opening: HashMap<u64, u64>,
    leaving: HashSet<u64>,
}

/// A file is being opened until this is dropped.
#[derive(Debug)]
pub struct Opening<'a> {
    going: &'a Going,
    inode: u64,
}

/// A file is being taken away, or closed last, until this is dropped.
#[derive(Debug)]
pub struct Leaving<'a> {
    going: &'a Going,
    inode: u64,
}

impl Going {
    /// When nobody takes the file away any more; `EIO` where a daemon that hangs keeps him from it.
    fn stays(&self, inode: u64) -> Result<MutexGuard<'_, Now>, Errno> {
        let now = locked(&self.now);
        let leaves = |now: &mut Now| now.leaving.contains(&inode);
        let waited = self.ended.wait_timeout_while(now, ANSWER_WITHIN, leaves);
        match waited.unwrap_or_else(PoisonError::into_inner) {
            (_, ended) if ended.timed_out() => Err(Errno::EIO),
            (now, _) => Ok(now),
        }
    }

    /// Begins to open a file, behind whoever takes it away.
    pub fn open(&self, inode: u64) -> Result<Opening<'_>, Errno> {
        *self.stays(inode)?.opening.entry(inode).or_insert(0) += 1;
        Ok(Opening { going: self, inode })
    }

    /// Begins to take a file away, behind whoever else does.
    pub fn leave(&self, inode: u64) -> Result<Leaving<'_>, Errno> {
        self.stays(inode)?.leaving.insert(inode);
        Ok(Leaving { going: self, inode })
    }
}

impl Leaving<'_> {
    /// Whether somebody began to open it before.
    pub fn is_opened(&self) -> bool {
        locked(&self.going.now).opening.contains_key(&self.inode)
    }
}

impl Drop for Opening<'_> {
    fn drop(&mut self) {
        let mut now = locked(&self.going.now);
        let count = now.opening.get_mut(&self.inode).expect("it was counted");
        *count -= 1;
        if *count == 0 {
            now.opening.remove(&self.inode);
        }
    }
}

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        locked(&self.going.now).leaving.remove(&self.inode);
        self.going.ended.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn an_open_begins_before_its_file_is_taken_away_and_is_seen_or_after_that() {
        let going = Going::default();
        let opening = going.open(7).unwrap();
        let leaving = going.leave(7).unwrap();
        assert!(leaving.is_opened(), "it began before");
        drop((opening, going.open(8).unwrap()));
        assert!(!leaving.is_opened(), "it has ended, and the other is of another file");
        let order = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            let (begins, begun) = mpsc::channel();
            let (going, order) = (&going, &order);
            for opens in [true, false] {
                let begins = begins.clone();
                scope.spawn(move || {
                    begins.send(()).unwrap();
                    let _opening = opens.then(|| going.open(7).unwrap());
                    let _leaving = (!opens).then(|| going.leave(7).unwrap());
                    locked(order).push("waited");
                });
            }
            begun.iter().take(2).for_each(drop);
            // Whoever does not wait gets far in this time.
            std::thread::sleep(std::time::Duration::from_millis(20));
            locked(order).push("left");
            drop(leaving);
        });
        assert_eq!(*locked(&order), ["left", "waited", "waited"]);
        let now = locked(&going.now);
        assert!(now.opening.is_empty() && now.leaving.is_empty());
    }
}
