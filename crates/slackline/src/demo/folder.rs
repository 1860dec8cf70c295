//! The folder of a demo: gone when the demo is, however it ends.
//!
//! The disk of the demo takes gigabytes, and a daemon runs on it. A demo that is
//! interrupted or killed cannot clean up after itself, so a shell does: it waits
//! for the end of a pipe that the demo holds open, and so for the demo's end.

use crate::failure::Failure;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use tempfile::TempDir;

/// Waits for the demo's end; then undoes what is left to undo, the last first, kills what is left
/// of its daemon and removes the folder. Deaf to the signals that end the demo.
const CARETAKER: &str = "trap '' INT TERM HUP; read -r _; \
     if [ -f \"$0/undo\" ]; then tac \"$0/undo\" | sh; fi; \
     if [ -f \"$0/daemon.pid\" ]; then kill -KILL \"$(cat \"$0/daemon.pid\")\"; fi; \
     if [ -n \"$1\" ]; then rm -rf --one-file-system -- \"$0\"; fi";

/// A folder, and who looks after it.
pub struct Folder {
    path: PathBuf,
    caretaker: Child,
    alive: Option<ChildStdin>,
}

/// Has the caretaker run this line at the end, before those that it was told earlier.
pub fn undo(folder: &Path, line: &str) -> Result<(), Failure> {
    let path = folder.join("undo");
    let file = std::fs::OpenOptions::new().create(true).append(true).open(&path);
    let written = file.and_then(|mut file| writeln!(file, "{line}"));
    written.map_err(|error| Failure::file(&path, &error))
}

/// Where a daemon's process number is, as long as it runs.
pub fn pid_file(folder: &Path) -> PathBuf {
    folder.join("daemon.pid")
}

impl Folder {
    /// Makes the folder: `keep`, which stays, or one that goes with the demo.
    pub fn new(keep: Option<&Path>) -> Result<Self, Failure> {
        let base = temporary();
        let (path, passing) = match keep {
            Some(path) => (path.to_path_buf(), None),
            None => {
                let made = tempfile::Builder::new().prefix("slackline-demo-").tempdir_in(&base);
                let made = made.map_err(|error| Failure::file(&base, &error))?;
                (made.path().to_path_buf(), Some(made))
            }
        };
        let failed = |error| Failure::file(&path, &error);
        std::fs::create_dir_all(&path).map_err(failed)?;
        if std::fs::read_dir(&path).map_err(failed)?.next().is_some() {
            let what = format!("{} is not empty", path.display());
            return Err(Failure::new(what, "name a new folder with --keep"));
        }
        let remove = if keep.is_some() { "" } else { "remove" };
        let mut shell = Command::new("sh");
        shell.args(["-c", CARETAKER]).arg(&path).arg(remove).stdin(Stdio::piped());
        shell.stdout(Stdio::null()).stderr(Stdio::null());
        let mut caretaker = shell.spawn().map_err(failed)?;
        let alive = caretaker.stdin.take();
        let _ = passing.map(TempDir::keep); // from here on it is the caretaker's
        Ok(Self { path, caretaker, alive })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(self.alive.take());
        let _ = self.caretaker.wait(); // it was started, so it ends
    }
}

/// A place for gigabytes. `/tmp` is often memory; `/var/tmp` is a disk.
fn temporary() -> PathBuf {
    match std::env::var_os("TMPDIR") {
        Some(chosen) => chosen.into(),
        None if Path::new("/var/tmp").is_dir() => "/var/tmp".into(),
        None => "/tmp".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_goes_with_its_demo_unless_it_is_kept() {
        let dir = tempfile::Builder::new().prefix("slackline-").tempdir().unwrap();
        let base = dir.path().join("kept");
        let kept = Folder::new(Some(&base)).unwrap();
        std::fs::write(kept.path().join("x"), "x").unwrap();
        assert!(Folder::new(Some(&base)).is_err(), "somebody's files are not mixed with ours");
        drop(kept);
        assert!(base.join("x").exists());

        let passing = Folder::new(None).unwrap();
        let path = passing.path().to_path_buf();
        std::fs::write(path.join("x"), "x").unwrap();
        drop(passing);
        assert!(!path.exists());
    }
}
