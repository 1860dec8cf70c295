//! Paths and inodes: a volume's inode is its number, whatever name it has; a directory that no
//! volume stands for has one that its path gives, and since when it has had that.
//!
//! Invariant: of every directory that the kernel knows and that no volume stands for it is known here
//! what path it had at which moment, and by that it is asked for. What a volume stands for is asked for
//! by its number. So both are the same whoever has renamed them.

use crate::lock::locked;
use client::control::DirectoryFacts;
use fuser::{FileAttr, FileType};
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Mutex;

/// The inode of the directory that is mounted.
pub const ROOT: u64 = 1;
/// Set in the inodes of directories that no volume stands for.
const IMPLICIT: u64 = 1 << 63;

/// The directories that the kernel knows.
#[derive(Default)]
pub struct Tree {
    /// What those are asked for by that no volume stands for.
    places: Mutex<HashMap<u64, String>>,
    told: Mutex<Told>,
}

/// What the kernel was told last of which directory has a name in another one.
#[derive(Default)]
struct Told {
    by_name: HashMap<(u64, OsString), u64>,
    by_inode: HashMap<u64, (u64, OsString)>,
}

impl Told {
    fn forget(&mut self, directory: u64) {
        if let Some(name) = self.by_inode.remove(&directory)
            && self.by_name.get(&name) == Some(&directory)
        {
            self.by_name.remove(&name);
        }
    }

    fn tell(&mut self, directory: u64, name: (u64, OsString)) {
        self.forget(directory);
        self.by_name.insert(name.clone(), directory);
        self.by_inode.insert(directory, name);
    }
}

impl Tree {
    /// What a directory is asked for by that no volume stands for; none of one that is not known, or
    /// not any more.
    pub fn place(&self, directory: u64) -> Option<String> {
        match directory {
            ROOT => Some(String::new()),
            _ => locked(&self.places).get(&directory).cloned(),
        }
    }

    /// The kernel is told of a directory that no volume stands for. Gives its inode.
    pub fn know(&self, found: &DirectoryFacts) -> u64 {
        let directory = implicit(found);
        self.know_as(directory, found);
        directory
    }

    /// A directory of this inode was just found.
    pub fn know_as(&self, directory: u64, found: &DirectoryFacts) {
        locked(&self.places).insert(directory, place(found));
    }

    /// The kernel does not know it any more.
    pub fn forget(&self, directory: u64) {
        locked(&self.places).remove(&directory);
        locked(&self.told).forget(directory);
    }

    /// The kernel is told what has this name in a directory.
    pub fn tell(&self, parent: u64, name: &OsStr, told: &FileAttr) {
        if told.kind == FileType::Directory {
            locked(&self.told).tell(told.ino.0, (parent, name.into()));
        }
    }

    /// The kernel has given a directory another name.
    pub fn moved(&self, (parent, name): (u64, &OsStr), (to, to_name): (u64, &OsStr)) {
        let mut told = locked(&self.told);
        if let Some(&directory) = told.by_name.get(&(parent, name.into())) {
            told.tell(directory, (to, to_name.into()));
        }
    }

    /// The directory that has this name as far as the kernel knows.
    pub fn told(&self, parent: u64, name: &OsStr) -> Option<u64> {
        locked(&self.told).by_name.get(&(parent, name.into())).copied()
    }
}

/// What a directory is asked for by that no volume stands for.
pub fn place(DirectoryFacts { name, moment, .. }: &DirectoryFacts) -> String {
    format!("/@{moment}/{name}")
}

/// Bits of an inode that say since when a directory has had its path.
const SINCE_BITS: u32 = 15;

/// The inode of a directory that no volume stands for.
pub fn implicit(DirectoryFacts { name, since, .. }: &DirectoryFacts) -> u64 {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    let path = hasher.finish() >> (SINCE_BITS + 1) << SINCE_BITS;
    // Only one that was always called so has 0.
    let since = if *since == 0 { 0 } else { 1 + since % ((1 << SINCE_BITS) - 1) };
    IMPLICIT | path | since
}

/// Whether this may be the inode of a directory that no volume stands for and that has this path.
pub fn may_be(inode: u64, path: &str) -> bool {
    let found = DirectoryFacts { name: path.into(), moment: 0, since: 0 };
    implicit(&found) >> SINCE_BITS == inode >> SINCE_BITS
}

/// Whether an inode is that of a directory that no volume stands for.
pub fn is_implicit(inode: u64) -> bool {
    inode == ROOT || inode & IMPLICIT != 0
}

/// The paths of the directories above a path, but for the one that is mounted.
pub fn above(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(end, _)| &path[..end])
}

/// The path of an entry of a directory.
pub fn join(directory: &str, name: &str) -> String {
    if directory.is_empty() { name.into() } else { format!("{directory}/{name}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attributes;

    #[test]
    fn directories_that_had_one_path_at_different_times_are_different_ones() {
        let tree = Tree::default();
        let facts = |name: &str, moment, since| DirectoryFacts { name: name.into(), moment, since };
        let [old, new] = [facts("a/b", 5, 0), facts("a/b", 7, 6)].map(|found| tree.know(&found));
        assert_eq!(tree.place(old).as_deref(), Some("/@5/a/b"));
        assert_eq!(tree.place(new).as_deref(), Some("/@7/a/b"));
        assert!(old != new && is_implicit(old) && is_implicit(new));
        assert_eq!(tree.know(&facts("a/b", 9, 0)), old);
        assert_eq!(tree.place(old).as_deref(), Some("/@9/a/b"));
        assert!(may_be(old, "a/b") && may_be(new, "a/b") && !may_be(old, "a/c"));
        assert_eq!(tree.place(ROOT), Some(String::new()));
        assert_eq!(join("", "a"), "a");
        assert!(above("a/bc/d").eq(["a", "a/bc"]) && above("a").eq([""; 0]));
    }

    #[test]
    fn of_a_directory_the_last_name_is_known_that_the_kernel_was_told() {
        let tree = Tree::default();
        let tell = |inode, parent, name: &str| {
            let mut told = attributes::of_directory(inode, (0, 0), std::time::UNIX_EPOCH);
            tree.tell(parent, OsStr::new(name), &told);
            // Of what is no directory no note is taken.
            (told.kind, told.ino.0) = (FileType::RegularFile, 99);
            tree.tell(parent, OsStr::new("file"), &told);
        };
        let told = |parent, name: &str| tree.told(parent, OsStr::new(name));
        tell(7, ROOT, "x");
        assert_eq!((told(ROOT, "x"), told(8, "x"), told(ROOT, "file")), (Some(7), None, None));
        // Another door has renamed it, and made another one.
        tell(7, ROOT, "y");
        assert_eq!((told(ROOT, "x"), told(ROOT, "y")), (None, Some(7)));
        tell(8, ROOT, "y");
        tree.forget(7);
        assert_eq!(told(ROOT, "y"), Some(8), "that is the other one's by now");
        tree.moved((ROOT, OsStr::new("y")), (3, OsStr::new("z")));
        assert_eq!((told(ROOT, "y"), told(3, "z")), (None, Some(8)));
        tree.forget(8);
        let all = locked(&tree.told);
        assert!(all.by_name.is_empty() && all.by_inode.is_empty());
    }
}
