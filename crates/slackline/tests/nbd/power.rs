//! A filesystem on a volume whose daemon is killed at random moments, while the disk below loses
//! what was not flushed: what an fsync answered is there, and the filesystem's own check finds no
//! fault. By an emulated disk, nbdfuse and a loop device; needs root.

use super::support::forgetful::{self, emulate};
use super::support::{Daemon, Scratch, fsx, noise};
use super::{Random, make, socket};
use emulator::Emulator;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use units::Bytes;

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
            let mut file = File::create(folder.join(name(number)))?;
            file.write_all(&content(number))?;
            file.sync_all()?;
            File::open(folder)?.sync_all()
        })();
        if written.is_err() {
            return number;
        }
    }
    unreachable!("the disk goes away")
}

/// A filesystem of Linux, made and checked by its own programs.
pub struct Filesystem {
    pub make: &'static str,
    /// Succeeds where there is no fault; the device comes last.
    pub check: &'static [&'static str],
}

/// How many bytes the disk has.
const DISK: Bytes = Bytes::mib(640);

/// A pool on a disk that loses what was not flushed when the power fails.
pub fn forgetful_pool(dir: &Scratch) -> Emulator {
    std::fs::write(dir.path("profile.toml"), forgetful::profile(DISK)).unwrap();
    let disk = emulate(&dir.path("disk"), DISK, 0);
    let file = disk.file().display().to_string();
    dir.run(&["pool", "create", "test", "--profile", &dir.text("profile.toml"), &file]).succeeded();
    disk
}

/// Its daemon.
pub fn serve(dir: &Scratch, disk: &Emulator) -> Daemon {
    let disks = [disk.file().display().to_string()];
    dir.try_serve(&disks, &["--no-realtime"]).unwrap_or_else(|ran| panic!("{}", ran.err))
}

/// The power goes: sometimes the daemon ends first, sometimes it sees the disk fail, and what was
/// not flushed is lost, all of it or some.
pub fn cut(disk: &Emulator, daemon: Daemon, random: &mut Random) {
    let order = match random.below(4) {
        0 => "power-cut".into(),
        _ => format!("power-cut seed {}", random.below(1 << 30)),
    };
    if random.below(2) == 0 {
        daemon.kill();
        disk.order(&order).unwrap();
    } else {
        disk.order(&order).unwrap();
        std::thread::sleep(Duration::from_millis(random.below(20)));
        daemon.kill();
    }
    disk.order("heal").unwrap();
    disk.order("power-on").unwrap();
}

/// Unpacks a source tree again and again, and removes it, until that fails.
fn unpack_until_gone(folder: &Path) {
    let tree = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let quiet = |program: &str, args: &[&Path]| {
        let mut command = Command::new(program);
        let ran = command.args(["-r", "-f"]).args(args).stderr(Stdio::null()).status();
        ran.is_ok_and(|status| status.success())
    };
    let copies = [folder.join("tree-a"), folder.join("tree-b")];
    while copies.iter().all(|copy| quiet("rm", &[copy]) && quiet("cp", &[&tree, copy])) {}
}

fn name(number: u64) -> String {
    number.to_string()
}

fn content(number: u64) -> Vec<u8> {
    noise(number, 3000 + number % 7 * 9000).bytes()
}

/// So many cuts, or `SLACKLINE_CUTS`.
pub fn fsynced_files_outlive_cuts(filesystem: &Filesystem, cuts: u64) {
    let set = std::env::var("SLACKLINE_CUTS").ok().and_then(|text| text.parse().ok());
    let dir = Scratch::new();
    let disk = forgetful_pool(&dir);
    let mut daemon = Some(serve(&dir, &disk));
    make(&dir, "v", "512MiB");
    let folder = dir.path("mounted");
    std::fs::create_dir_all(&folder).unwrap();
    let (mut kept, mut synced, mut random) = (0, 0, Random(7));
    for number in 0..set.unwrap_or(cuts) {
        let attached = Attached::new(&dir, &format!("fuse-{number}"));
        if number == 0 {
            run(filesystem.make, &["-q", &attached.device]);
        }
        let mounted = Mounted::new(&attached.device, &folder);
        for file in kept..synced {
            let read = std::fs::read(folder.join(name(file)));
            let is_there = read.is_ok_and(|read| read == content(file));
            assert!(is_there, "cut {number}: file {file} of {synced} that were synced");
        }
        if synced - kept > 1_000 {
            (kept..synced).for_each(|file| std::fs::remove_file(folder.join(name(file))).unwrap());
            kept = synced;
        }
        let wait = Duration::from_millis(300 + random.below(700));
        let before = synced;
        synced = std::thread::scope(|scope| {
            let writer = scope.spawn(|| write_until_gone(&folder, before));
            scope.spawn(|| unpack_until_gone(&folder));
            // Until it has written something, however slow the machine is.
            super::support::wait_until(|| folder.join(name(before + 1)).exists());
            let until = Instant::now() + wait;
            std::thread::sleep(until.saturating_duration_since(Instant::now()));
            cut(&disk, daemon.take().expect("it serves"), &mut random);
            daemon = Some(serve(&dir, &disk));
            writer.join().unwrap()
        });
        assert!(synced > before, "cut {number}: something was synced");
        drop((mounted, attached));
        let again = Attached::new(&dir, &format!("checked-{number}"));
        // The journal first, as a mount does.
        drop(Mounted::new(&again.device, &folder));
        let mut args = filesystem.check[1..].to_vec();
        args.push(&again.device);
        run(filesystem.check[0], &args);
    }
    println!("{}: {synced} files synced", filesystem.make);
}

/// `fsx` on two files of ext4 on a volume at once.
pub fn fsx_on_ext4() {
    let dir = Scratch::new();
    let disks = dir.make_pool_of(&["a"], "256MiB");
    let _daemon = dir.serve(&disks);
    make(&dir, "v", "128MiB");
    let folder = dir.path("mounted");
    std::fs::create_dir_all(&folder).unwrap();
    let attached = Attached::new(&dir, "fuse");
    run("mkfs.ext4", &["-q", &attached.device]);
    let _mounted = Mounted::new(&attached.device, &folder);
    fsx::twice_at_once(&folder);
}
