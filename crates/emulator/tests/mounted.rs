//! The emulator over FUSE: what a program finds in the mount.
//!
//! Needs root and `/dev/fuse`; where there is none the tests say so and check
//! nothing. Nothing here is held against the wall clock: times are the model's own,
//! as the status tells them.

use disk::Model;
use emulator::{Emulator, Error, Options};
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use units::Bytes;

/// True where file systems can be mounted over FUSE; says so where not.
fn fuse_is_there() -> bool {
    let there = rustix::process::getuid().is_root()
        && OpenOptions::new().read(true).write(true).open("/dev/fuse").is_ok();
    skips::can_run(there, "needs root and /dev/fuse")
}

/// A directory that goes away with the test.
fn scratch() -> TempDir {
    tempfile::Builder::new().prefix("slackline-").tempdir().unwrap()
}

/// A drive whose mount is in that directory.
fn options(scratch: &TempDir) -> Options {
    Options {
        model: Model::named("ssd-sata").unwrap().scaled(Bytes::mib(64)).unwrap(),
        directory: scratch.path().join("drive"),
        backing: None,
        write_back: false,
        short_transfers: false,
        depth: None,
        orders: Vec::new(),
        on_thread: || (),
    }
}

fn open(path: &Path) -> File {
    let direct = rustix::fs::OFlags::DIRECT.bits() as i32;
    OpenOptions::new().read(true).write(true).custom_flags(direct).open(path).unwrap()
}

/// Bytes that tell where they belong.
fn pattern(offset: u64, len: usize) -> Vec<u8> {
    (0..len as u64).map(|at| ((offset + at).wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

#[test]
fn bytes_come_back_whatever_their_size_and_from_many_threads_at_once() {
    if !fuse_is_there() {
        return;
    }
    let scratch = scratch();
    let mut emulator = Emulator::start(&options(&scratch)).unwrap();
    let file = open(&emulator.file());
    assert_eq!(file.metadata().unwrap().len(), Bytes::mib(64).get());
    std::thread::scope(|scope| {
        for thread in 0..8u64 {
            let file = &file;
            scope.spawn(move || {
                for (n, len) in [(0, 512), (1, 4_096), (2, 131_072), (3, 3 << 20), (4, 777)] {
                    let offset = (thread << 23) + n * (1 << 20) + n;
                    let bytes = pattern(offset, len);
                    file.write_all_at(&bytes, offset).unwrap();
                    let mut back = vec![0; len];
                    file.read_exact_at(&mut back, offset).unwrap();
                    assert!(back == bytes, "{len} bytes at {offset}");
                }
            });
        }
    });
    file.sync_all().unwrap();
    // Like a device: it ends where it ends, and keeps its size.
    let end = Bytes::mib(64).get();
    assert_eq!(file.read_at(&mut [0; 512], end).unwrap(), 0);
    assert_eq!(file.read_at(&mut [0; 4_096], end - 512).unwrap(), 512);
    assert!(file.write_at(&[0; 512], end).is_err());
    assert!(file.set_len(1 << 20).is_err());
    drop(file);
    let truncated = File::create(emulator.file()).unwrap();
    assert_eq!(truncated.metadata().unwrap().len(), end);
    drop(truncated);
    let status = emulator.status();
    assert_eq!(status.served.bytes_read, Bytes::new(status.served.bytes_written.get() + 512));
    assert_eq!(status.served.failed, 0);
    let answered = [&status.served.reads, &status.served.writes, &status.served.flushes];
    let answered: u64 = answered.iter().map(|times| times.count()).sum();
    // It is taken down when the answer is out, which a program may see before that.
    let mut late = status.late.count();
    for _ in 0..1_000 {
        if late == answered {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
        late = emulator.status().late.count();
    }
    assert_eq!(late, answered, "each answer has its lateness");
    emulator.unmount().unwrap();
}

#[test]
fn a_power_cut_over_the_control_file_takes_back_what_was_not_synced() {
    if !fuse_is_there() {
        return;
    }
    let scratch = scratch();
    let options = Options { write_back: true, ..options(&scratch) };
    let (mut emulator, directory) = (Emulator::start(&options), options.directory.clone());
    let emulator = emulator.as_mut().unwrap();
    let (file, control) = (open(&emulator.file()), directory.join("control"));
    file.write_all_at(&[1; 8_192], 0).unwrap();
    file.sync_all().unwrap();
    file.write_all_at(&[2; 8_192], 4_096).unwrap();
    // Through the cache, as its flags ask.
    let durable = rustix::fs::OFlags::DSYNC.bits() as i32;
    let durable = OpenOptions::new().write(true).custom_flags(durable).open(emulator.file());
    durable.unwrap().write_all_at(&[3; 4_096], 65_536).unwrap();
    fs::write(&control, "power-cut\n").unwrap();
    assert!(file.read_at(&mut [0; 512], 0).is_err(), "there is no power");
    assert!(file.sync_all().is_err(), "there is no power");
    let status = fs::read_to_string(directory.join("status")).unwrap();
    assert!(status.contains("no power until power-on"), "{status}");
    fs::write(&control, "power-on\n").unwrap();
    let mut all = vec![0; 70_000];
    file.read_exact_at(&mut all, 0).unwrap();
    let mut wanted = vec![0; 70_000];
    wanted[..8_192].fill(1);
    wanted[65_536..69_632].fill(3);
    assert!(all == wanted, "exactly what was not flushed is gone");
    drop(file);
    emulator.unmount().unwrap();
}

#[test]
fn faults_over_the_control_file_are_where_they_were_asked_for() {
    if !fuse_is_there() {
        return;
    }
    let scratch = scratch();
    let options = options(&scratch);
    let mut emulator = Emulator::start(&options).unwrap();
    let (file, control) = (open(&emulator.file()), options.directory.join("control"));
    fs::write(&control, "error 1MiB..2MiB reads\nslow 4MiB..5MiB 3\n").unwrap();
    assert!(file.read_at(&mut [0; 4_096], 1 << 20).is_err());
    assert_eq!(file.read_at(&mut [0; 4_096], 2 << 20).unwrap(), 4_096);
    assert_eq!(file.write_at(&[5; 4_096], 1 << 20).unwrap(), 4_096);
    assert!(fs::write(&control, "error 1GiB..2GiB").is_err(), "not on this disk");
    assert!(fs::write(&control, "explode").is_err());
    let mut help = String::new();
    File::open(&control).unwrap().read_to_string(&mut help).unwrap();
    assert!(help.contains("power-cut"), "{help}");
    let status = fs::read_to_string(options.directory.join("status.json")).unwrap();
    let status: serde_json::Value = serde_json::from_str(&status).unwrap();
    assert_eq!(status["failed"], 1, "{status}");
    assert_eq!(status["faults"][1], "slow 4MiB..5MiB 3", "{status}");
    assert!(status["last_order"].as_str().unwrap().starts_with("refused: \"explode\""), "{status}");
    fs::write(&control, "heal").unwrap();
    let mut back = [0; 4_096];
    assert_eq!(file.read_at(&mut back, 1 << 20).unwrap(), 4_096);
    assert_eq!(back, [5; 4_096]);
    drop(file);
    emulator.unmount().unwrap();
}

#[test]
fn the_nth_request_fails_or_is_short_and_the_others_are_not() {
    if !fuse_is_there() {
        return;
    }
    let scratch = scratch();
    let options = Options { short_transfers: true, ..options(&scratch) };
    let mut emulator = Emulator::start(&options).unwrap();
    let (file, control) = (open(&emulator.file()), options.directory.join("control"));
    let orders = "fail 2 writes ENOSPC\nfail 1 flushes\nshort 3 writes 4608B\nshort reads 512B\n";
    fs::write(&control, orders).unwrap();
    let written = |offset| file.write_at(&[7; 8_192], offset).map_err(|e| e.raw_os_error());
    let full = rustix::io::Errno::NOSPC.raw_os_error();
    assert_eq!(written(0), Ok(8_192));
    assert_eq!(written(8_192), Err(Some(full)));
    assert_eq!(written(16_384), Ok(4_608));
    assert_eq!(written(32_768), Ok(8_192));
    assert!(file.sync_all().is_err());
    file.sync_all().unwrap();
    let mut back = [9; 8_192];
    assert_eq!(file.read_at(&mut back, 0).unwrap(), 512);
    assert!(back[..512] == [7; 512] && back[512..] == [9; 7_680]);
    let status = fs::read_to_string(options.directory.join("status")).unwrap();
    assert!(status.contains("short reads 512B"), "{status}");
    fs::write(&control, "heal\n").unwrap();
    let mut all = vec![0; 40_960];
    file.read_exact_at(&mut all, 0).unwrap();
    let mut wanted = vec![0; 40_960];
    wanted[..8_192].fill(7);
    wanted[16_384..20_992].fill(7);
    wanted[32_768..].fill(7);
    assert!(all == wanted, "what failed and what was left of the short one was not written");
    drop(file);
    emulator.unmount().unwrap();
}

#[test]
fn transfers_that_are_always_short_come_to_their_end_in_parts() {
    if !fuse_is_there() {
        return;
    }
    for most in [512, 4_096, 5_120] {
        let scratch = scratch();
        let options = Options { short_transfers: true, ..options(&scratch) };
        let mut emulator = Emulator::start(&options).unwrap();
        let file = open(&emulator.file());
        let bytes = pattern(512, 40_960);
        emulator.order(&format!("short writes {most}B")).unwrap();
        file.write_all_at(&bytes, 512).unwrap();
        let mut back = vec![0; bytes.len()];
        file.read_exact_at(&mut back, 512).unwrap();
        assert!(back == bytes, "written {most} at a time");
        emulator.order(&format!("short reads {most}B")).unwrap();
        back.fill(0);
        file.read_exact_at(&mut back, 512).unwrap();
        assert!(back == bytes, "read {most} at a time");
        drop(file);
        emulator.unmount().unwrap();
    }
}

#[test]
fn short_writes_are_refused_where_the_kernel_would_make_errors_of_them() {
    if !fuse_is_there() {
        return;
    }
    let scratch = scratch();
    let mut emulator = Emulator::start(&options(&scratch)).unwrap();
    for order in ["short writes 4KiB", "short 1 writes 4KiB"] {
        let refused = emulator.order(order).unwrap_err();
        assert!(refused.contains("--short-transfers"), "{refused}");
    }
    emulator.order("short reads 4KiB").unwrap();
    assert_eq!(open(&emulator.file()).read_at(&mut [0; 8_192], 0).unwrap(), 4_096);
    emulator.unmount().unwrap();
}

/// The bytes outlive the emulator in their file; two emulators do not share one.
#[test]
fn a_backing_file_keeps_the_bytes_and_is_used_by_one() {
    if !fuse_is_there() {
        return;
    }
    let scratch = scratch();
    let backing = Some(scratch.path().join("backing"));
    let first = Options { backing: backing.clone(), ..options(&scratch) };
    let second = Options { backing, directory: scratch.path().join("two"), ..options(&scratch) };
    let mut emulator = Emulator::start(&first).unwrap();
    open(&emulator.file()).write_all_at(&pattern(9, 8_192), 40_960).unwrap();
    assert!(matches!(Emulator::start(&second), Err(Error::BackingInUse(_))));
    assert!(!second.directory.exists(), "nothing is left behind");
    emulator.unmount().unwrap();
    drop(emulator);
    let mut emulator = Emulator::start(&second).unwrap();
    let mut back = vec![0; 8_192];
    open(&emulator.file()).read_exact_at(&mut back, 40_960).unwrap();
    assert!(back == pattern(9, 8_192));
    emulator.unmount().unwrap();
}

#[test]
fn a_mount_in_use_is_busy_and_goes_all_the_same_when_the_emulator_does() {
    if !fuse_is_there() {
        return;
    }
    let scratch = scratch();
    let options = options(&scratch);
    let mut emulator = Emulator::start(&options).unwrap();
    let file = open(&emulator.file());
    assert!(matches!(emulator.unmount(), Err(Error::Busy(_))));
    assert_eq!(file.read_at(&mut [0; 512], 0).unwrap(), 512, "it is served all the same");
    drop(emulator);
    assert!(file.read_at(&mut [0; 512], 0).is_err());
    assert!(!options.directory.exists(), "the mount is gone");
}

#[test]
fn places_that_cannot_be_mounted_on_are_refused_in_clear_words() {
    if !fuse_is_there() {
        return;
    }
    let scratch = scratch();
    let start =
        |directory: PathBuf| match Emulator::start(&Options { directory, ..options(&scratch) }) {
            Ok(_) => panic!("it was mounted"),
            Err(error) => (error.to_string(), error.next_step()),
        };
    let full = scratch.path().join("full");
    fs::create_dir(&full).unwrap();
    File::create(full.join("file")).unwrap().write_all(b"x").unwrap();
    assert!(start(full.clone()).0.contains("not empty"));
    assert!(start(full.join("file")).0.contains("Not a directory"));
    fs::remove_dir_all(&full).unwrap();
    assert!(start(full.join("deep")).0.contains("No such file"));
    let taken = options(&scratch);
    let mut emulator = Emulator::start(&taken).unwrap();
    let (error, next) = start(taken.directory.clone());
    assert!(error.contains("something is mounted") && next.contains("umount"), "{error}, {next}");
    emulator.unmount().unwrap();
}
