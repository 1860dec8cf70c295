//! Which files are being opened, and which are being taken away, at this moment.
//!
//! Invariant: no open of a file begins while its name is taken away, so that whoever takes it away knows
//! whether somebody has the file open: it is removed, or kept under another name until it is closed.

use crate::lock::locked;
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
    /// When nobody takes the file away any more.
    fn stays(&self, inode: u64) -> MutexGuard<'_, Now> {
        let now = locked(&self.now);
        let waited = self.ended.wait_while(now, |now| now.leaving.contains(&inode));
        waited.unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to open a file, behind whoever takes it away.
    pub fn open(&self, inode: u64) -> Opening<'_> {
        *self.stays(inode).opening.entry(inode).or_insert(0) += 1;
        Opening { going: self, inode }
    }

    /// Begins to take a file away, behind whoever else does.
    pub fn leave(&self, inode: u64) -> Leaving<'_> {
        self.stays(inode).leaving.insert(inode);
        Leaving { going: self, inode }
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
        let opening = going.open(7);
        let leaving = going.leave(7);
        assert!(leaving.is_opened(), "it began before");
        drop((opening, going.open(8)));
        assert!(!leaving.is_opened(), "it has ended, and the other is of another file");
        std::thread::scope(|scope| {
            let (tells, told) = mpsc::channel();
            let going = &going;
            for kind in 0..2 {
                let tells = tells.clone();
                scope.spawn(move || {
                    let _guards = (kind == 0).then(|| going.open(7));
                    let _other = (kind == 1).then(|| going.leave(7));
                    tells.send(kind).unwrap();
                });
            }
            std::thread::yield_now();
            assert!(told.try_recv().is_err(), "both wait");
            drop(leaving);
            let mut both = [told.recv().unwrap(), told.recv().unwrap()];
            both.sort_unstable();
            assert_eq!(both, [0, 1]);
        });
        let now = locked(&going.now);
        assert!(now.opening.is_empty() && now.leaving.is_empty());
    }
}
