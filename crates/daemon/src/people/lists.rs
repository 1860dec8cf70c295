//! `/etc/passwd` and `/etc/group`, read again when they have changed.
//!
//! Invariant: what is kept was read from files that nobody had changed for some time. A file that
//! changes twice between two ticks of the kernel's clock may look the same afterwards; so one that
//! changed just now is read each time.

use crate::lock::Mutex;
use std::collections::{HashMap, HashSet};
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, SystemTime};

const PASSWD: &str = "/etc/passwd";
const GROUP: &str = "/etc/group";

/// A file that changed longer ago than this has another time in its inode with its next change.
const SETTLED: Duration = Duration::from_secs(2);

/// Who there is, and in which groups.
#[derive(Debug, Default)]
pub(super) struct Lists {
    /// Each user's name and group.
    users: HashMap<u32, (String, u32)>,
    /// Users of whom there is a line, whatever else it says.
    named: HashSet<u32>,
    /// The further groups of each name.
    groups: HashMap<String, Vec<u32>>,
}

/// What tells a file's state from its others.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Stamp {
    file: (u64, u64),
    len: u64,
    /// Since 1970, of the inode's last change: seconds, and nanoseconds of the second.
    changed: (i64, i64),
}

impl Stamp {
    /// None where the file is not there.
    fn of(path: &str) -> Option<Self> {
        let is = std::fs::metadata(path).ok()?;
        let changed = (is.ctime(), is.ctime_nsec());
        Some(Self { file: (is.dev(), is.ino()), len: is.len(), changed })
    }

    /// Nobody has changed the file for some time, by a clock that says `now`.
    fn is_settled(&self, now: SystemTime) -> bool {
        let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let changed = Duration::from_secs(u64::try_from(self.changed.0).unwrap_or(0));
        since.checked_sub(changed).is_some_and(|ago| ago > SETTLED)
    }
}

/// What was read, and of which files.
type Kept = Option<([Stamp; 2], Arc<Lists>)>;

static KEPT: LazyLock<Mutex<Kept>> = LazyLock::new(Mutex::default);

impl Lists {
    /// What the files say now. One that cannot be read says nothing.
    pub fn now() -> Arc<Self> {
        let stamps = || Some([Stamp::of(PASSWD)?, Stamp::of(GROUP)?]);
        // Before they are read: what changes meanwhile has another stamp at the next look.
        let before = stamps();
        if let Some((of, lists)) = &*KEPT.lock()
            && Some(*of) == before
        {
            return Arc::clone(lists);
        }
        let read = |path| std::fs::read_to_string(path).unwrap_or_default();
        let lists = Arc::new(Self::new(&read(PASSWD), &read(GROUP)));
        let now = SystemTime::now();
        let kept = before.filter(|stamps| stamps.iter().all(|stamp| stamp.is_settled(now)));
        *KEPT.lock() = kept.map(|stamps| (stamps, Arc::clone(&lists)));
        lists
    }

    /// Of such texts.
    pub fn new(passwd: &str, group: &str) -> Self {
        let mut lists = Self::default();
        for line in passwd.lines() {
            let mut fields = line.split(':');
            let (name, id) = (fields.next(), fields.nth(1).and_then(|id| id.parse().ok()));
            let (Some(name), Some(id)) = (name, id) else { continue };
            lists.named.insert(id);
            if let Some(gid) = fields.next().and_then(|gid| gid.parse().ok()) {
                lists.users.entry(id).or_insert_with(|| (name.to_owned(), gid)); // the first counts
            }
        }
        for line in group.lines() {
            let mut fields = line.split(':').skip(2);
            let id = fields.next().and_then(|id| id.parse().ok());
            let (Some(id), Some(members)) = (id, fields.next()) else { continue };
            for name in members.split(',').filter(|name| !name.is_empty()) {
                lists.groups.entry(name.to_owned()).or_default().push(id);
            }
        }
        lists
    }

    /// There is a user of this number.
    pub fn knows(&self, uid: u32) -> bool {
        self.named.contains(&uid)
    }

    /// A user's group, and all that he is in.
    pub fn groups_of(&self, uid: u32) -> Option<(u32, Arc<[u32]>)> {
        let (name, gid) = self.users.get(&uid)?;
        let further = self.groups.get(name).map_or(&[][..], Vec::as_slice);
        let mut groups = [further, &[*gid]].concat();
        groups.sort_unstable();
        groups.dedup();
        Some((*gid, groups.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file is read again where it was changed, replaced, or changed just now.
    #[test]
    fn a_change_of_a_file_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("passwd");
        let stamp = || Stamp::of(path.to_str().unwrap());
        assert!(stamp().is_none());
        std::fs::write(&path, "a").unwrap();
        let first = stamp().unwrap();
        assert!(!first.is_settled(SystemTime::now()));
        assert!(!first.is_settled(SystemTime::UNIX_EPOCH), "a clock that was set back");
        assert!(first.is_settled(SystemTime::now() + SETTLED * 2));
        assert!(Some(first) == stamp());
        std::fs::write(&path, "ab").unwrap();
        assert!(Some(first) != stamp());
        let (other, before) = (folder.path().join("other"), stamp());
        std::fs::write(&other, "ab").unwrap();
        std::fs::rename(&other, &path).unwrap();
        assert!(before != stamp());
    }

    #[test]
    fn the_first_line_counts_and_bad_lines_do_not() {
        let passwd = "ann:x:1000:100::\nother:x:1000:7::\nbad:x:5\nworse:x\n:x:9:9";
        let lists =
            Lists::new(passwd, "video:x:44:ann,,bob\nbad:x:y:ann\nworse:x:45\nusers:x:100:ann");
        let of = |uid| lists.groups_of(uid).map(|(gid, groups)| (gid, groups.to_vec()));
        assert_eq!(of(1000), Some((100, vec![44, 100])));
        assert_eq!(of(5), None);
        assert!(lists.knows(5) && lists.knows(1000) && !lists.knows(6));
        assert_eq!(of(9), Some((9, vec![9])));
    }
}
