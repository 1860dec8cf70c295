//! What tests need of their machine, and the list of those that did not run for want of it. A
//! test that returns early has passed for its harness, which hides what it printed: so each says
//! here that it did not run, and `make test` counts them.
//!
//! Whether a test can run is asked of the machine, never of the code that it tests: code that
//! refused everything would have no test otherwise.

use std::ffi::OsString;
use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Names the file to which each test that did not run adds a line.
pub const LIST: &str = "SLACKLINE_NOT_RUN";

/// Says that the test that calls this, or the part of it that it names, did not run, and why:
/// on standard error, and in the file that [`LIST`] names.
///
/// # Panics
/// If there is such a file and nothing can be added to it: then nobody would hear of it.
pub fn not_run(why: impl Display) {
    let thread = std::thread::current(); // has the name of the test
    let package = std::env::var("CARGO_PKG_NAME").unwrap_or_default();
    let line = format!("{package} {}: {why}", thread.name().unwrap_or("?"));
    eprintln!("NOT RUN: {line}");
    let added = add(std::env::var_os(LIST), &line);
    assert!(added.is_ok(), "{LIST}: {added:?}");
}

fn add(list: Option<OsString>, line: &str) -> io::Result<()> {
    let Some(list) = list else { return Ok(()) };
    // In one write, since tests of several programs add to it at once.
    let line = format!("{}\n", line.replace('\n', " "));
    OpenOptions::new().create(true).append(true).open(list)?.write_all(line.as_bytes())
}

/// As [`not_run`] says it, where `can` is false; returns `can`.
pub fn can_run(can: bool, why: impl Display) -> bool {
    if !can {
        not_run(why);
    }
    can
}

/// Whether files of this folder can have contracts: it is on ext4 or xfs, on a block
/// device that the system tells of.
///
/// # Panics
/// If there is no such folder.
pub fn is_fit_for_contracts(folder: &Path) -> bool {
    const EXT4: i64 = 0xef53;
    const XFS: i64 = 0x5846_5342;
    let found = rustix::fs::statfs(folder).expect("the folder is there");
    let device = std::fs::metadata(folder).expect("the folder is there").dev();
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let is_known = Path::new(&format!("/sys/dev/block/{major}:{minor}")).exists();
    matches!(found.f_type, EXT4 | XFS) && major != 0 && is_known
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_did_not_run_is_one_line_of_the_list_behind_those_before_it() {
        let folder = tempfile::Builder::new().prefix("slackline-").tempdir().unwrap();
        let list = folder.path().join("list");
        add(Some(list.clone().into()), "a: no\ntool").unwrap();
        add(Some(list.clone().into()), "b: not root").unwrap();
        add(None, "c: nobody counts").unwrap();
        assert_eq!(std::fs::read_to_string(&list).unwrap(), "a: no tool\nb: not root\n");
        let nowhere = list.join("below a file");
        assert!(add(Some(nowhere.into()), "d").is_err());
    }

    #[test]
    fn what_lies_in_no_file_on_a_drive_is_not_fit() {
        assert!(!is_fit_for_contracts(Path::new("/proc")));
    }
}
