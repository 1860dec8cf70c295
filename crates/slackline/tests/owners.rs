//! Whose volumes are, in the words of the command.

use crate::support::Scratch;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

#[test]
fn a_volume_shows_whose_it_is_and_is_given_away_and_opened_as_a_file_is() {
    let dir = Scratch::new();
    let _daemon = dir.serve(&dir.make_pool(&["a"]));
    let me = std::fs::metadata("/proc/self").unwrap();
    let (uid, gid) = (me.uid().to_string(), me.gid().to_string());
    let owner = |name: &str| {
        let shown = dir.run(&["volume", "show", name, "--json"]).succeeded().json();
        let owner = &shown["owner"];
        let number = |field: &str| owner[field].as_u64().unwrap().to_string();
        (number("uid"), number("gid"), owner["mode"].as_str().unwrap().to_owned())
    };
    dir.run(&["volume", "create", "v", "--size", "1MiB"]).succeeded();
    assert_eq!(owner("v"), (uid.clone(), gid.clone(), "0600".into()), "the maker's, and closed");
    let open = ["volume", "create", "w", "--size", "1MiB", "--mode", "640", "--owner", &uid];
    assert!(dir.run(&open).succeeded().text().contains(", rw-r----- "));
    for (change, mode) in [("g+r", "0640"), ("o=r,u-w", "0444"), ("660", "0660"), ("-w", "0440")] {
        dir.run(&["volume", "chmod", change, "v"]).succeeded();
        assert_eq!(owner("v").2, mode, "{change}");
    }
    let whose = format!("{uid}:{gid}");
    let given = dir.run(&["volume", "chown", &whose, "v"]).succeeded();
    assert!(given.text().starts_with("volume v: r--r----- "), "{}", given.text());
    let list = dir.run(&["volume", "list"]).succeeded();
    let row = list.text().lines().find(|line| line.contains(" v ")).unwrap().to_owned();
    assert!(row.starts_with("r--r-----"), "{row}");
    let wrong = dir.run(&["volume", "chmod", "rw", "v"]);
    assert!(wrong.code == Some(2) && wrong.err.contains("three octal digits"), "{}", wrong.err);
    dir.run(&["volume", "chown", "no-such-user", "v"]).failed(1, &["there is no user"]);
    dir.run(&["volume", "chmod", "600", "x"]).failed(1, &["there is no volume \"x\""]);
}

#[test]
fn what_is_recorded_is_cut_only_after_a_yes() {
    let dir = Scratch::new();
    let _daemon = dir.serve(&dir.make_pool(&["a"]));
    let record = ["record", "v", "--create", "4MiB", "--rate", "1MB/s"];
    dir.run_with(&record, &vec![7; 1_500_000]).recorded();
    let resize = |more: &[&str]| dir.run(&[&["volume", "resize", "v", "1MiB"], more].concat());
    resize(&[]).failed(1, &["1500000 bytes", "of which 1 MiB would be left", "--yes"]);
    let length =
        || dir.run(&["volume", "show", "v", "--json"]).succeeded().json()["length_bytes"].clone();
    assert_eq!(length(), 1_500_000, "as it was");
    dir.run(&["volume", "resize", "v", "2MiB"]).succeeded();
    resize(&["--yes"]).succeeded();
    assert_eq!(length(), 1 << 20);
}

#[test]
fn a_pools_file_is_closed_and_one_that_is_not_is_warned_of() {
    let dir = Scratch::new();
    let disks = dir.make_pool(&["a"]);
    let path = dir.path("a");
    let set =
        |mode| std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    let warned = |said: &str| said.contains(&format!("chmod 600 {}", path.display()));
    assert!(!warned(&dir.run(&["pool", "check", &disks[0]]).succeeded().err));
    set(0o644);
    assert!(warned(&dir.run(&["pool", "check", &disks[0]]).succeeded().err));
    let daemon = dir.serve(&disks);
    daemon.signal("TERM");
    let (status, said) = daemon.wait();
    assert!(status == Some(0) && warned(&said), "{said}");
}
