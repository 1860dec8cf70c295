//! `pjdfstest`, a suite for file systems of POSIX, where it is on the path (`make` puts it there), and
//! the list of what it finds that is not there.

use super::{Mounted, has};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// Why tests of the suite fail, and which: each name, or all that begin or end so where there is a
/// star. docs/mount.md says the same to who uses it.
const NOT_THERE: [(&str, &[&str]); 5] = [
    (
        "pipes, sockets and devices",
        &[
            "*::fifo",
            "*::socket",
            "*::block",
            "*::char",
            "mkfifo::*",
            "mknod::changed_time_fields_success",
            "mknod::permission_bits_from_mode",
            "mknod::uid_gid_eq_euid_egid",
            "open::fifo_nonblock_wronly",
            "open::socket_error",
        ],
    ),
    (
        "a second name for a file: hard links",
        &[
            "link::changed_ctime_success::regular",
            "link::remove_link::regular",
            "link::share_metadata::regular",
            "rename::preserve_metadata::regular",
            "rename::to_multiply_linked::regular",
            "unlink::unchanged_ctime_failed::regular",
            "unlink::update_ctime_success::regular",
        ],
    ),
    (
        "paths of more than 255 bytes: a name of 255 has no room for its directory's",
        &["*::enametoolong_component", "*::enametoolong_path"],
    ),
    ("set-group-ID on a file, which a change of its mode would clear", &["chmod::clear_isgid_bit"]),
    ("a count of a directory's directories", &["rename::updates_link_parent"]),
];

/// What the suite does not try.
const NOT_TRIED: [(&str, &[&str]); 2] = [
    (
        "it would be mounted anew by the name that it has in the table of mounts",
        &["*::erofs_named", "*::erofs_new_file"],
    ),
    ("there is no number of hard links that is the largest", &["link::link_count_max"]),
];

fn is_meant(pattern: &str, test: &str) -> bool {
    match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
        (Some(end), _) => test.ends_with(end),
        (_, Some(begin)) => test.starts_with(begin),
        _ => test == pattern,
    }
}

/// Those that nothing explains, and the patterns that explain nothing.
fn unexplained<'a>(
    tests: &'a BTreeSet<String>,
    reasons: &'a [(&str, &[&'a str])],
) -> (Vec<&'a str>, Vec<&'a str>) {
    let patterns: Vec<&str> =
        reasons.iter().flat_map(|(_, patterns)| patterns.iter().copied()).collect();
    let has_no = |test: &&str| !patterns.iter().any(|pattern| is_meant(pattern, test));
    let is_vain = |pattern: &&str| !tests.iter().any(|test| is_meant(pattern, test));
    let tests = tests.iter().map(String::as_str).filter(has_no).collect();
    (tests, patterns.iter().copied().filter(is_vain).collect())
}

#[test]
fn pjdfstest_finds_missing_what_is_said_to_be_and_nothing_else() {
    if !has("pjdfstest") {
        return;
    }
    // One of its tests writes behind 2 GiB.
    let Some(mounted) = Mounted::of("4GiB") else { return };
    for path in [mounted.dir.path("."), mounted.path(".")] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap_or_default();
    }
    // Another file system, for renames from one to the other.
    fs::create_dir(mounted.dir.path("other")).unwrap();
    let settings = "
        [features]
        posix_fallocate = {}
        rename_ctime = {}
        utime_now = {}
        utimensat = {}
        [settings]
        naptime = 0.02
        allow_remount = false
        [dummy_auth]
        entries = [['nobody', 'nogroup'], ['daemon', 'daemon']]";
    fs::write(mounted.dir.path("settings.toml"), settings).unwrap();
    let mut suite = Command::new("pjdfstest");
    suite.arg("-c").arg(mounted.dir.path("settings.toml")).arg("-p").arg(mounted.path("."));
    suite.arg("-s").arg(mounted.dir.path("other")).env("RUST_BACKTRACE", "0");
    let ran = suite.current_dir(mounted.path(".")).output().unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    let ended = |how: &str| -> BTreeSet<String> {
        let lines = said.lines().filter_map(|line| line.strip_suffix(how));
        let names = lines.map(|line| line.trim().to_owned());
        names.filter(|name| name.contains("::") && !name.contains(' ')).collect()
    };
    let (passed, failed, skipped) = (ended("ok"), ended("FAILED"), ended("skipped"));
    println!("{} passed, {} failed, {} not tried", passed.len(), failed.len(), skipped.len());
    assert!(passed.len() > 150, "{said}");
    let (unexplained_failures, vain) = unexplained(&failed, &NOT_THERE);
    assert!(unexplained_failures.is_empty(), "{unexplained_failures:#?}\n{said}");
    assert!(vain.is_empty(), "said to be missing, and found: {vain:#?}");
    let (unexplained_skips, vain) = unexplained(&skipped, &NOT_TRIED);
    assert!(unexplained_skips.is_empty() && vain.is_empty(), "{unexplained_skips:#?} {vain:#?}");
}
