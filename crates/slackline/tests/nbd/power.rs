//! A filesystem on a volume whose daemon is killed at random moments: what its fsync answered
//! is there, and its own check finds no fault. By nbdfuse and a loop device; needs root.

use super::support::{Scratch, noise};
use super::{Random, make, socket};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Runs a program that has to succeed; gives what it said.
fn run(program: &str, args: &[&str]) -> String {
    let ran = Command::new(program).args(args).stdin(Stdio::null()).output();
    let ran = ran.unwrap_or_else(|error| panic!("{program}: {error}"));
    let said = String::from_utf8_lossy(&ran.stdout) + String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{program} {args:?}: {said}");
    said.trim().to_owned()
}

/// A volume as a loop device, until it is dropped.
struct Attached {
    fuse: Child,
    folder: PathBuf,
    device: String,
}

impl Attached {
    fn new(dir: &Scratch, folder: &str) -> Self {
        let folder = dir.path(folder);
        std::fs::create_dir_all(&folder).unwrap();
        let uri = format!("nbd+unix:///v?socket={}", socket(dir).display());
        let mut command = Command::new("nbdfuse");
        command.arg(&folder).arg(uri).stdin(Stdio::null()).stderr(Stdio::null());
        let fuse = command.spawn().expect("nbdfuse");
        let file = folder.join("nbd");
        super::support::wait_until(|| file.exists());
        let file = file.display().to_string();
        let device = run("losetup", &["--find", "--show", "--direct-io=on", &file]);
        Self { fuse, folder, device }
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["--detach", &self.device]).status();
        let _ = Command::new("umount").arg("--lazy").arg(&self.folder).status();
        let _ = self.fuse.kill();
        let _ = self.fuse.wait();
    }
}

/// A mounted filesystem, until it is dropped.
struct Mounted<'a>(&'a Path);

impl<'a> Mounted<'a> {
    fn new(device: &str, at: &'a Path) -> Self {
        run("mount", &[device, &at.display().to_string()]);
        Self(at)
    }
}

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        // What it cannot write back any more is lost, as in a power cut.
        let _ = Command::new("umount").arg("--force").arg(self.0).stderr(Stdio::null()).status();
        let _ = Command::new("umount").arg("--lazy").arg(self.0).stderr(Stdio::null()).status();
    }
}

/// Writes files, each synced, until the disk is gone; gives how many were.
fn write_until_gone(folder: &Path, first: u64) -> u64 {
    for number in first.. {
        let written = (|| {
            let mut file = File::create(folder.join(format!("{number}")))?;
            file.write_all(&noise(number, 3000 + number % 7 * 9000).bytes())?;
            file.sync_all()?;
            File::open(folder)?.sync_all()
        })();
        if written.is_err() {
            return number;
        }
    }
    unreachable!("the disk goes away")
}

/// Cuts from `SLACKLINE_CUTS` (3): soak gives more.
pub fn fsynced_files_outlive_cuts(filesystem: &str, check: &[&str]) {
    let cuts = std::env::var("SLACKLINE_CUTS").ok().and_then(|text| text.parse().ok());
    let dir = Scratch::new();
    let disks = dir.make_pool_of(&["a"], "1GiB");
    let mut daemon = Some(dir.serve(&disks));
    make(&dir, "v", "512MiB");
    let folder = dir.path("mounted");
    std::fs::create_dir_all(&folder).unwrap();
    let (mut synced, mut random) = (0, Random(7));
    for cut in 0..cuts.unwrap_or(3u64) {
        let attached = Attached::new(&dir, &format!("fuse-{cut}"));
        if cut == 0 {
            run(filesystem, &["-q", &attached.device]);
        }
        let mounted = Mounted::new(&attached.device, &folder);
        for number in 0..synced {
            let read = std::fs::read(folder.join(format!("{number}"))).unwrap();
            let wanted = noise(number, 3000 + number % 7 * 9000).bytes();
            assert!(read == wanted, "cut {cut}: file {number} of {synced} that were synced");
        }
        let wait = Duration::from_millis(300 + random.below(700));
        let before = synced;
        synced = std::thread::scope(|scope| {
            let writer = scope.spawn(|| write_until_gone(&folder, before));
            // Until it has written something, however slow the machine is.
            super::support::wait_until(|| folder.join(format!("{}", before + 1)).exists());
            let until = Instant::now() + wait;
            std::thread::sleep(until.saturating_duration_since(Instant::now()));
            daemon.take().expect("it serves").kill();
            daemon = Some(dir.serve(&disks));
            writer.join().unwrap()
        });
        assert!(synced > before, "cut {cut}: something was synced");
        drop((mounted, attached));
        let again = Attached::new(&dir, &format!("checked-{cut}"));
        // The journal first, as a mount does.
        drop(Mounted::new(&again.device, &folder));
        let mut args = check[1..].to_vec();
        args.push(&again.device);
        run(check[0], &args);
    }
    println!("{filesystem}: {synced} files synced");
}
