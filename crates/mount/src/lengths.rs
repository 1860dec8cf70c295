//! How long the kernel takes each file to be: as it was told, and as it saw itself since.
//!
//! It appends where it takes a file to end, and does not ask. So an open for writing by which it would be
//! wrong is refused with `ESTALE`: then it looks the name up again, is told the length, and opens the file. And
//! when a write past its cache has failed it cuts the file to where it took it to end before, by the same
//! call as a program: nothing is cut off where another door has written since the file was opened, also where
//! that comes at this moment ([`File::cut_back`](crate::file::File::cut_back)).
//!
//! Invariants: a length here is never more than what the kernel takes the file to have, unless it was told
//! two lengths at the same time; an open is refused once, also where the kernel has no name to look up.

use crate::lock::locked;
use std::collections::HashMap;
use std::sync::Mutex;

/// Of all files that the kernel knows.
#[derive(Debug, Default)]
pub struct Lengths(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    files: HashMap<u64, Taken>,
    /// The file whose open was refused last, by the number of the thread that opens it.
    refused: HashMap<u32, u64>,
    /// Where writes past the cache that have failed ended, by their handles.
    failed: HashMap<u64, u64>,
}

#[derive(Clone, Copy, Debug)]
struct Taken {
    length: u64,
}

impl Lengths {
    /// The kernel is told how long a file is.
    pub fn told(&self, inode: u64, length: u64) {
        locked(&self.0).files.insert(inode, Taken { length });
    }

    /// The kernel sees a write, or space that is made a part of the file, up to here.
    pub fn reaches(&self, inode: u64, end: u64) {
        if let Some(taken) = locked(&self.0).files.get_mut(&inode) {
            taken.length = taken.length.max(end);
        }
    }

    /// The kernel reads less than it has asked for: it may take the file to end there.
    pub fn ends(&self, inode: u64, end: u64) {
        if let Some(taken) = locked(&self.0).files.get_mut(&inode) {
            taken.length = taken.length.min(end);
        }
    }

    /// The kernel does not know the file any more.
    pub fn forget(&self, inode: u64) {
        let mut known = locked(&self.0);
        known.files.remove(&inode);
        known.refused.retain(|_, refused| *refused != inode);
    }

    /// Whether the kernel is to look at a file of this length anew before this thread opens it.
    pub fn refuses(&self, (inode, thread): (u64, u32), length: u64) -> bool {
        let mut known = locked(&self.0);
        // The kernel opens it again at once, whether or not it had a name to look up.
        if known.refused.remove(&thread) == Some(inode) {
            return false;
        }
        let is_known = known.files.get(&inode).is_some_and(|taken| taken.length == length);
        if !is_known {
            known.refused.insert(thread, inode);
        }
        !is_known
    }

    /// A request up to here of a write past the cache has failed: where the kernel takes the file to be
    /// shorter, the next thing that it asks for by this handle is a cut to where it takes it to end.
    pub fn failed(&self, (inode, handle): (u64, u64), end: u64) {
        let mut known = locked(&self.0);
        if known.files.get(&inode).is_some_and(|taken| taken.length < end) {
            let failed = known.failed.entry(handle).or_insert(end);
            *failed = end.max(*failed);
        }
    }

    /// What is asked for by a handle is a cut to this length, or else something else. True where it is the
    /// kernel's, because a write has failed, and no program's.
    pub fn undoes(&self, (inode, handle): (u64, u64), length: Option<u64>) -> bool {
        let mut known = locked(&self.0);
        let (Some(failed), Some(length)) = (known.failed.remove(&handle), length) else {
            return false;
        };
        known.files.get(&inode).is_some_and(|taken| (taken.length..failed).contains(&length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_is_refused_once_where_the_kernel_takes_the_file_to_end_elsewhere() {
        let lengths = Lengths::default();
        let refuses = |thread, length| lengths.refuses((7, thread), length);
        assert!(refuses(1, 10) && !refuses(1, 10), "nobody has told it anything");
        lengths.told(7, 10);
        lengths.reaches(7, 15);
        lengths.reaches(7, 12);
        assert!(!refuses(1, 15));
        assert!(refuses(1, 20) && refuses(2, 20) && !refuses(1, 30), "each thread for itself");
        // The other one has gone on to another file.
        lengths.told(8, 5);
        assert!(!lengths.refuses((8, 2), 5) && refuses(2, 20));
        // A read that finds the end, and a longer one that does not.
        lengths.ends(7, 4);
        lengths.ends(7, 9);
        assert!(refuses(3, 15) && !refuses(4, 4));
        lengths.forget(7);
        assert!(locked(&lengths.0).refused.is_empty());
        lengths.reaches(7, 4);
        assert!(refuses(4, 4));
    }

    #[test]
    fn the_cut_behind_a_write_that_has_failed_is_told_from_one_that_a_program_asks_for() {
        let lengths = Lengths::default();
        lengths.told(7, 100);
        let (here, undoes) = ((7, 1), |length| lengths.undoes((7, 1), Some(length)));
        assert!(!undoes(100), "nothing has failed");
        lengths.failed(here, 100);
        assert!(!undoes(100), "it ended within the file");
        lengths.failed(here, 500);
        assert!(!lengths.undoes((7, 2), Some(100)), "another handle");
        assert_eq!((undoes(100), undoes(100)), (true, false), "once");
        for other in [99, 400] {
            lengths.failed(here, 400);
            assert!(!undoes(other), "to another length");
        }
        lengths.failed(here, 400);
        assert!(!lengths.undoes(here, None));
        assert!(!undoes(100), "something else was asked for in between");
    }
}
