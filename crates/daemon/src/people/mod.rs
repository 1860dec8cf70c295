//! Who is at the other end of a socket, and what they are called.
//!
//! Names are those of `/etc/passwd` and `/etc/group`; users that another service knows
//! go by their numbers.

mod lists;

use lists::Lists;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use token::Grant;
use tokio::net::UnixStream;

/// The user and the groups of the process that connected, at the time it did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its effective user.
    pub uid: u32,
    /// Its effective group.
    pub gid: u32,
    /// The same and its further groups.
    pub groups: Arc<[u32]>,
    /// What of all that the user may do the token says that was shown; none where the system
    /// says who it is.
    pub scope: Option<Arc<Grant>>,
}

/// A user's groups at some time, as they are kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Groups {
    gid: u32,
    groups: Vec<u32>,
}

impl Groups {
    /// Those that a peer has.
    pub fn of(peer: &Peer) -> Self {
        Self { gid: peer.gid, groups: peer.groups.to_vec() }
    }
}

impl Peer {
    /// Whoever has nobody's rights.
    const NOBODY: u32 = 65_534;

    /// Who connected; nobody where the system does not say.
    pub fn of(connection: &UnixStream) -> Self {
        let Ok(credentials) = connection.peer_cred() else {
            return Self {
                uid: Self::NOBODY,
                gid: Self::NOBODY,
                groups: Arc::new([]),
                scope: None,
            };
        };
        let mut groups = engine::peer_groups(connection.as_fd()).unwrap_or_default();
        groups.push(credentials.gid());
        groups.sort_unstable();
        groups.dedup();
        let (uid, gid) = (credentials.uid(), credentials.gid());
        Self { uid, gid, groups: groups.into(), scope: None }
    }

    /// A user who does not ask now, with the groups that `/etc/passwd` and `/etc/group` say.
    pub fn known(uid: u32) -> Self {
        Self::from_lists(uid, &Lists::now())
    }

    fn from_lists(uid: u32, lists: &Lists) -> Self {
        let Some((gid, groups)) = lists.groups_of(uid) else {
            let groups = Arc::new([Self::NOBODY]);
            return Self { uid, gid: Self::NOBODY, groups, scope: None };
        };
        Self { uid, gid, groups, scope: None }
    }

    /// Whoever shows a token: its user, and no more than it says. He has those groups of when it
    /// was made that the system's lists still say; all of them where the lists do not know him. Of
    /// a token that was made before groups were kept the lists say all.
    pub fn bearing(grant: Arc<Grant>, maker: Option<&Groups>) -> Self {
        let user = Self::made_by(grant.uid, maker, &Lists::now());
        Self { scope: Some(grant), ..user }
    }

    fn made_by(uid: u32, maker: Option<&Groups>, lists: &Lists) -> Self {
        let known = Self::from_lists(uid, lists);
        let Some(Groups { gid, groups }) = maker else { return known };
        if !lists.knows(uid) {
            return Self { gid: *gid, groups: groups.as_slice().into(), ..known };
        }
        let is_in = |group: &u32| known.groups.contains(group);
        let gid = Some(*gid).filter(is_in).unwrap_or(Self::NOBODY);
        Self { gid, groups: groups.iter().copied().filter(is_in).collect(), ..known }
    }
}

/// Who this process is.
pub fn own_uid() -> u32 {
    // The owner of a process's own directory is its effective user.
    std::fs::metadata("/proc/self").map_or(0, |own| own.uid())
}

/// By what a list that has changed is told from the one before.
pub type Changed = (i64, i64, u64, u64);

const USERS: &str = "/etc/passwd";
const GROUPS: &str = "/etc/group";

/// Of the system's lists of users and of groups; none of one that is not there.
pub fn lists_changed() -> [Option<Changed>; 2] {
    [USERS, GROUPS].map(|path| {
        let list = std::fs::metadata(path).ok()?;
        Some((list.mtime(), list.mtime_nsec(), list.ino(), list.len()))
    })
}

/// The names of users or of groups.
#[derive(Debug, Default)]
pub struct Names(HashMap<u32, String>);

impl Names {
    /// Of users.
    pub fn of_users() -> Self {
        Self::read(USERS)
    }

    /// Of groups.
    pub fn of_groups() -> Self {
        Self::read(GROUPS)
    }

    fn read(path: &str) -> Self {
        Self::of(&std::fs::read_to_string(path).unwrap_or_default())
    }

    /// By the lines of such a list.
    pub fn of(text: &str) -> Self {
        let entry = |line: &str| {
            let mut fields = line.split(':');
            let (name, _, id) = (fields.next()?, fields.next()?, fields.next()?);
            Some((id.parse().ok()?, name.to_owned()))
        };
        let mut names = HashMap::new();
        for (id, name) in text.lines().filter_map(entry) {
            names.entry(id).or_insert(name); // the first counts, as for the system
        }
        Self(names)
    }

    /// The name of a number; the number where it has none.
    pub fn name(&self, id: u32) -> String {
        self.0.get(&id).cloned().unwrap_or_else(|| id.to_string())
    }

    /// The number of a name, or of a number.
    pub fn number(&self, name: &str) -> Option<u32> {
        let named = self.0.iter().find(|(_, known)| *known == name).map(|(&id, _)| id);
        named.or_else(|| name.parse().ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A contract is its user's also after the daemon was started again, and counts for his
    /// groups.
    #[test]
    fn a_user_who_does_not_ask_has_the_groups_of_the_lists() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\nann:x:1000:100::/home/ann:/bin/sh\nbad:x";
        let group = "root:x:0:\nusers:x:100:\nvideo:x:44:bob,ann\naudio:x:29:bob\nx:y:z";
        let lists = Lists::new(passwd, group);
        let groups = |uid| Peer::from_lists(uid, &lists).groups.to_vec();
        assert_eq!(groups(1000), [44, 100]);
        assert_eq!(groups(0), [0]);
        assert_eq!(groups(7), [Peer::NOBODY], "nobody's groups where the system knows none");
        assert_eq!(Peer::from_lists(1000, &lists).gid, 100);
    }

    /// A process may have fewer groups than the lists say, and a service may know users that the
    /// lists do not.
    #[test]
    fn a_token_has_of_its_makers_groups_those_that_the_lists_still_say() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\nann:x:1000:100::/home/ann:/bin/sh";
        let group = "users:x:100:\nvideo:x:44:bob,ann\naudio:x:29:ann";
        let lists = Lists::new(passwd, group);
        let made = |uid, gid, groups: &[u32]| {
            let maker = Groups { gid, groups: groups.to_vec() };
            let peer = Peer::made_by(uid, Some(&maker), &lists);
            (peer.gid, peer.groups.to_vec())
        };
        assert_eq!(made(1000, 100, &[29, 100]), (100, vec![29, 100]), "not 44, which he had not");
        assert_eq!(made(1000, 100, &[7, 44, 100]), (100, vec![44, 100]), "7 he has no more");
        assert_eq!(made(1000, 7, &[7]), (Peer::NOBODY, vec![]));
        assert_eq!(made(5000, 5001, &[44, 5001]), (5001, vec![44, 5001]), "whom no list knows");
        let before = Peer::made_by(1000, None, &lists);
        assert_eq!((before.gid, &*before.groups), (100, &[29, 44, 100][..]));
    }
}
