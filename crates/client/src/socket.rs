//! Where the daemon's socket is, and whom it lets in.
//!
//! Invariant: nothing here connects to anything, so that it may be asked at any time.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Who may connect: the bit of the socket's mode.
const GROUP_WRITES: u32 = 0o020;
/// Who may pass: the bit of a directory's mode.
const GROUP_PASSES: u32 = 0o010;

/// The user that this process acts as.
fn own_uid() -> u32 {
    // The owner of a process's own directory is its effective user.
    std::fs::metadata("/proc/self").map_or(0, |own| own.uid())
}

/// The control socket of a daemon that this user serves himself.
pub fn own() -> PathBuf {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    wire::socket::control_path(own_uid(), runtime.as_deref())
}

/// This user's own daemon where it has a socket, or else the machine's, where that has one.
pub fn default() -> PathBuf {
    found(own(), wire::socket::control_path(0, None))
}

fn found(own: PathBuf, machines: PathBuf) -> PathBuf {
    let is_there = |path: &Path| std::fs::symlink_metadata(path).is_ok();
    // Whoever is not in the group does not see the socket, but its directory.
    let served = || is_there(&machines) || machines.parent().is_some_and(is_there);
    if !is_there(&own) && served() { machines } else { own }
}

/// The group whose members may use a socket that this process may not use.
pub fn group(socket: &Path) -> Option<String> {
    // The last thing that can be seen is what bars the way.
    let bars = socket.ancestors().find_map(|path| {
        let metadata = std::fs::symlink_metadata(path).ok()?;
        let bit = if path == socket { GROUP_WRITES } else { GROUP_PASSES };
        Some((metadata.mode() & bit != 0).then(|| metadata.gid()))
    });
    let groups = std::fs::read_to_string("/etc/group").unwrap_or_default();
    named(bars??, &groups)
}

/// The name of a group, by a list as in `/etc/group`; that of root is nobody's to join.
fn named(gid: u32, groups: &str) -> Option<String> {
    let mut lines = groups.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let line = lines.find(|line| line.get(2).and_then(|it| it.parse().ok()) == Some(gid));
    line.filter(|_| gid != 0).map(|line| line[0].into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, chown};

    const GROUPS: &str = "root:x:0:\ndaemon:x:1:\nslackline:x:990:alice,bob\nbad\n";

    #[test]
    fn a_group_is_named_by_the_list_and_that_of_root_is_not() {
        assert_eq!(named(990, GROUPS).as_deref(), Some("slackline"));
        assert_eq!((named(0, GROUPS), named(7, GROUPS)), (None, None));
    }

    #[test]
    fn a_users_own_daemon_is_found_first_and_the_machines_else() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name).join("slackline.sock");
        let found = || found(path("own"), path("run"));
        assert_eq!(found(), path("own"), "none is there");
        std::fs::create_dir(dir.path().join("run")).unwrap();
        assert_eq!(found(), path("run"), "its directory is");
        std::fs::create_dir(dir.path().join("own")).unwrap();
        assert_eq!(found(), path("run"), "a directory of one's own is no daemon");
        std::fs::write(path("own"), "").unwrap();
        assert_eq!(found(), path("own"));
    }

    #[test]
    fn what_bars_the_way_says_whose_group_may_pass() {
        let dir = tempfile::tempdir().unwrap();
        let (folder, socket) = (dir.path().join("d"), dir.path().join("d/s.sock"));
        std::fs::create_dir(&folder).unwrap();
        let gid = std::fs::metadata(&folder).unwrap().gid();
        let groups = std::fs::read_to_string("/etc/group").unwrap_or_default();
        // Root can give it to a group that others may join.
        let gid = if chown(&folder, None, Some(1)).is_ok() { 1 } else { gid };
        let mode = |bits| {
            std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(bits)).unwrap();
        };
        mode(0o750);
        assert_eq!(group(&socket), named(gid, &groups));
        mode(0o700);
        assert_eq!(group(&socket), None, "nobody's but its owner's");
    }
}
