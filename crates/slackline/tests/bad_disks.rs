//! `disk profile` on targets that are in trouble: clear words, nothing harmed, and a
//! measurement that goes on where it was stopped.
//!
//! Those that need an emulated disk want root and `/dev/fuse`, and one a loop device;
//! where they are missing the tests say so and check nothing.

use crate::support;
use crate::support::{Ran, Scratch, signal, wait_until};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// True for root on a machine with FUSE; says so where not.
fn fuse_is_there() -> bool {
    use std::os::unix::fs::MetadataExt;
    let root = std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    let there = root && Path::new("/dev/fuse").exists();
    skips::can_run(there, "needs root and /dev/fuse")
}

/// A small emulated flash device, so that answers are quick.
struct Emulated {
    child: Child,
    mount: PathBuf,
}

impl Emulated {
    fn start(dir: &Scratch, fault: &str) -> Self {
        let mount = dir.path("mount");
        let mut command = Command::new(env!("CARGO_BIN_EXE_slackline"));
        command.args(["disk", "emulate", "ssd-sata", "--size", "64MiB", "--no-realtime"]);
        command.args(["--fault", fault, "--mount"]).arg(&mount);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        wait_until(|| mount.join("disk.img").exists());
        Self { child, mount }
    }

    fn file(&self) -> String {
        self.mount.join("disk.img").display().to_string()
    }

    fn order(&self, order: &str) {
        std::fs::write(self.mount.join("control"), order).unwrap();
    }
}

impl Drop for Emulated {
    fn drop(&mut self) {
        signal(self.child.id(), "TERM");
        let ended = self.child.wait().unwrap();
        if !std::thread::panicking() {
            assert!(ended.success() && !self.mount.exists(), "the mount is gone");
        }
    }
}

/// Starts a measurement and stops it once its journal has some answers; what it said.
fn begun_and_stopped(dir: &Scratch, args: &[&str], journal: &str) -> Ran {
    let before = std::fs::read_to_string(journal).unwrap_or_default().lines().count();
    let child = dir.command(args).spawn().unwrap();
    let lines = || std::fs::read_to_string(journal).unwrap_or_default().lines().count();
    wait_until(|| lines() > before + 20);
    signal(child.id(), "TERM");
    Ran::from(child.wait_with_output().unwrap())
}

#[test]
fn a_device_that_answers_with_errors_is_said_to_and_ends_soon() {
    if !fuse_is_there() {
        return;
    }
    let dir = Scratch::new();
    let emulated = Emulated::start(&dir, "error 0..64MiB");
    let ran = dir.run(&["disk", "profile", &emulated.file(), "--journal", &dir.text("j")]);
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    ran.failed(1, &["answers with errors", "begins anew"]);
    assert!(!dir.path("j").exists(), "a good disk would go on from bad answers");
}

#[test]
fn a_copy_that_cannot_be_read_leaves_nothing() {
    if !fuse_is_there() {
        return;
    }
    let dir = Scratch::new();
    let emulated = Emulated::start(&dir, "slow 0..1MiB 1");
    let disk = vec![emulated.file()];
    let profile = dir.text("profile.toml");
    std::fs::write(&profile, support::PROFILE).unwrap();
    dir.run(&["pool", "create", "test", "--profile", &profile, &disk[0]]).succeeded();
    let daemon = dir.serve(&disk);
    let bytes = support::noise(3, 3_000_000).bytes();
    dir.run_with(&["record", "v", "--create", "4MiB", "--rate", "1MB/s"], &bytes).recorded();
    emulated.order("error 0..64MiB reads");
    let copy = ["volume", "copy", "v", "clip"];
    assert_eq!(dir.run(&copy).code, Some(1));
    let volumes = || dir.run(&["volume", "list", "--json"]).succeeded().json()["volumes"].clone();
    assert_eq!(volumes().as_array().unwrap().len(), 1, "{}", volumes());
    emulated.order("heal");
    dir.run(&copy).succeeded();
    let file = dir.path("clip");
    dir.run(&["export", "clip", file.to_str().unwrap()]).succeeded();
    assert!(std::fs::read(&file).unwrap() == bytes);
    daemon.kill();
}

/// A pool on an emulated disk of which single sectors can be made bad, with its daemon and a volume `v` in
/// which so much is recorded.
fn with_a_volume(dir: &Scratch, bytes: &[u8]) -> (Emulated, support::Daemon) {
    let emulated = Emulated::start(dir, "slow 0..1MiB 1");
    let disk = vec![emulated.file()];
    let profile = dir.text("profile.toml");
    std::fs::write(&profile, support::PROFILE).unwrap();
    dir.run(&["pool", "create", "test", "--profile", &profile, &disk[0]]).succeeded();
    let daemon = dir.serve(&disk);
    dir.run_with(&["record", "v", "--create", "8MiB", "--rate", "1MB/s"], bytes).recorded();
    (emulated, daemon)
}

/// Makes the sector bad in which these bytes stand.
fn make_bad(emulated: &Emulated, sector: &[u8]) {
    let disk = std::fs::read(emulated.file()).unwrap();
    let place = disk.chunks(4_096).position(|there| there == sector).unwrap() * 4_096;
    emulated.order(&format!("error {place}..{} reads", place + 4_096));
}

/// Who had one bad sector in an hour of film had the film up to there, and no word of how to get the rest.
#[test]
fn a_bad_sector_costs_a_copy_of_a_recording_that_sector_and_it_is_told() {
    if !fuse_is_there() {
        return;
    }
    let dir = Scratch::new();
    let bytes = support::noise(4, 3_000_000).bytes();
    let (emulated, daemon) = with_a_volume(&dir, &bytes);
    make_bad(&emulated, &bytes[1_228_800..][..4_096]);
    let mut rest = bytes.clone();
    rest[1_228_800..][..4_096].fill(0);
    let file = dir.path("clip");
    let ran = dir.run(&["export", "v", file.to_str().unwrap()]);
    ran.failed(1, &["4 KiB could not be read and came as zeros", "pool status"]);
    assert!(std::fs::read(&file).unwrap() == rest);
    dir.run(&["volume", "copy", "v", "copy"]).failed(1, &["4 KiB could not be read and came as"]);
    let file = dir.path("copy");
    dir.run(&["export", "copy", file.to_str().unwrap()]).succeeded();
    assert!(std::fs::read(&file).unwrap() == rest);
    daemon.kill();
}

/// A writer begins at a block, and writes once more what stands in it. Where that could not be read, nobody
/// could ever go on behind it: a camera was off for good, and writing the block would have cured the disk.
#[test]
fn a_bad_sector_at_the_end_of_a_recording_does_not_end_it_for_good() {
    if !fuse_is_there() {
        return;
    }
    let dir = Scratch::new();
    let bytes = support::noise(6, 3_000_000).bytes();
    let (emulated, daemon) = with_a_volume(&dir, &bytes);
    let last = 2_998_272; // the last whole sector, far behind the start of its block
    make_bad(&emulated, &bytes[last - 4_096..last]);
    let append = ["record", "v", "--append", "--rate", "1MB/s", "--block", "256KiB"];
    let ran = dir.run_with(&append, b"and so on");
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.err.contains("4 KiB of what was recorded before could not be read"), "{}", ran.err);
    emulated.order("heal");
    let file = dir.path("all");
    dir.run(&["export", "v", file.to_str().unwrap()]).succeeded();
    let mut all = [&bytes[..], b"and so on"].concat();
    all[last - 4_096..last].fill(0);
    assert!(std::fs::read(&file).unwrap() == all);
    daemon.kill();
}

#[test]
fn a_stopped_measurement_of_a_device_in_trouble_goes_on() {
    if !fuse_is_there() {
        return;
    }
    let dir = Scratch::new();
    let emulated = Emulated::start(&dir, "error 30MiB..31MiB");
    let (file, journal) = (emulated.file(), dir.text("journal"));
    let args = ["disk", "profile", &file, "--journal", &journal];
    let ran = begun_and_stopped(&dir, &args, &journal);
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    assert!(ran.err.contains("give the same command again"), "{}", ran.err);
    emulated.order("stall 100ms");
    begun_and_stopped(&dir, &args, &journal);
    let text = std::fs::read_to_string(&journal).unwrap();
    assert_eq!(text.matches("resumed").count(), 1, "{text}");
}

#[test]
fn a_target_that_may_only_be_read_is_read_and_never_written() {
    let dir = Scratch::new();
    let (file, journal) = (dir.text("disk"), dir.text("journal"));
    let bytes = support::noise(5, 16 << 20).bytes();
    std::fs::write(&file, &bytes).unwrap();
    let mut permissions = std::fs::metadata(&file).unwrap().permissions();
    permissions.set_readonly(true);
    std::fs::set_permissions(&file, permissions).unwrap();
    let ran = begun_and_stopped(&dir, &["disk", "profile", &file, "--journal", &journal], &journal);
    assert!(ran.err.contains("give the same command again"), "{}", ran.err);
    // Before it writes it asks, and there is nobody to answer.
    let ran = dir.run(&["disk", "profile", &file, "--write", "--journal", &dir.text("other")]);
    assert_ne!(ran.code, Some(0), "{}", ran.err);
    assert!(std::fs::read(&file).unwrap() == bytes, "not touched");
}

#[test]
fn a_device_that_stalls_for_seconds_is_measured_on() {
    if !fuse_is_there() {
        return;
    }
    let dir = Scratch::new();
    let emulated = Emulated::start(&dir, "stall 1ms");
    let (file, journal) = (emulated.file(), dir.text("journal"));
    let child = dir.command(&["disk", "profile", &file, "--journal", &journal]).spawn().unwrap();
    let lines = || std::fs::read_to_string(&journal).unwrap_or_default();
    wait_until(|| lines().lines().count() > 20);
    emulated.order("stall 5s");
    // What took longer than four seconds counts as failed, and the next is asked.
    wait_until(|| lines().lines().any(|line| line.ends_with('!')));
    let before = lines().lines().count();
    wait_until(|| lines().lines().count() > before + 5);
    signal(child.id(), "TERM");
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert!(ran.err.contains("give the same command again"), "{}", ran.err);
}

#[test]
fn a_file_of_a_mebibyte_is_too_small_to_tell_anything_of() {
    let dir = Scratch::new();
    std::fs::write(dir.path("small"), vec![7; 1 << 20]).unwrap();
    let ran = dir.run(&["disk", "profile", &dir.text("small"), "--journal", &dir.text("j")]);
    ran.failed(1, &["give at least 8 MiB"]);
    assert!(!dir.path("j").exists(), "nothing was begun");
}

/// Root may write to any file; a device that was made read-only refuses even root.
#[test]
fn a_read_only_device_is_not_written_and_said_to_be_one() {
    let dir = Scratch::new();
    let bytes = support::noise(9, 16 << 20).bytes();
    std::fs::write(dir.path("image"), &bytes).unwrap();
    let image = dir.text("image");
    let made = Command::new("losetup").args(["--read-only", "--find", "--show", &image]).output();
    let Some(made) = made.ok().filter(|made| made.status.success()) else {
        return skips::not_run("needs root and losetup");
    };
    let device = String::from_utf8(made.stdout).unwrap().trim().to_owned();
    let journal = dir.text("journal");
    let ran =
        dir.run(&["disk", "profile", &device, "--write", "--overwrite", "--journal", &journal]);
    let detached = Command::new("losetup").args(["-d", &device]).status();
    ran.failed(1, &["may only be read", "leave --write away"]);
    assert!(detached.unwrap().success());
    assert!(!Path::new(&journal).exists(), "nothing was begun");
    assert!(std::fs::read(dir.path("image")).unwrap() == bytes, "not touched");
}

/// A loop device with a mounted file system.
struct Mounted {
    device: String,
    mount: PathBuf,
}

impl Mounted {
    /// None where loop devices or file systems cannot be had; says so.
    fn new(dir: &Scratch) -> Option<Self> {
        let image = dir.path("image");
        std::fs::File::create(&image).unwrap().set_len(32 << 20).unwrap();
        let run = |program: &str, args: &[&str]| {
            let output = Command::new(program).args(args).output().ok()?;
            let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            output.status.success().then_some(text)
        };
        let mount = dir.path("fs");
        std::fs::create_dir(&mount).unwrap();
        let device = run("losetup", &["--find", "--show", image.to_str().unwrap()]);
        let mounted = device.and_then(|device| {
            let made = run("mkfs.ext4", &["-q", &device]);
            let mounted = made.and_then(|_| run("mount", &[&device, mount.to_str().unwrap()]));
            if mounted.is_none() {
                run("losetup", &["-d", &device]);
            }
            mounted.map(|_| Self { device, mount })
        });
        skips::can_run(mounted.is_some(), "needs root, losetup and mkfs.ext4");
        mounted
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.mount).status();
        let _ = Command::new("losetup").args(["-d", &self.device]).status();
    }
}

#[test]
fn a_mounted_device_is_never_written_and_read_with_a_warning() {
    let dir = Scratch::new();
    let Some(mounted) = Mounted::new(&dir) else { return };
    std::fs::write(mounted.mount.join("kept"), b"kept").unwrap();
    let device = &mounted.device;
    let journal = dir.text("journal");
    let args = ["disk", "profile", device, "--write", "--overwrite", "--journal", &journal];
    let ran = dir.run(&args);
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    assert!(ran.err.contains("is mounted or held by another program"), "{}", ran.err);
    assert!(!Path::new(&journal).exists(), "nothing was begun");
    let ran =
        begun_and_stopped(&dir, &["disk", "profile", device, "--journal", &journal], &journal);
    assert!(ran.err.contains("warning:") && ran.err.contains("only read"), "{}", ran.err);
    assert_eq!(std::fs::read(mounted.mount.join("kept")).unwrap(), b"kept");
}
