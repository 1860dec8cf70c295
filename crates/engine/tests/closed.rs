//! A pool's file is its owner's alone, and who may only read one that is not cannot keep
//! anybody from serving it.

#![allow(clippy::print_stdout)] // what another process has, and what was not tried

use crate::common::*;
use engine::{Pool, PoolError, open_to_others};
use std::fs::{File, Permissions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_new_pools_file_is_closed_and_an_open_one_is_told_of() {
    let dir = Dir::new();
    for device in [dir.file("a"), dir.emulated("b")] {
        Pool::create("tape", std::slice::from_ref(&device), &untimed(64)).unwrap();
        let path = device.path();
        assert_eq!((mode(path), open_to_others(path)), (0o600, None));
        for open in [0o640, 0o604, 0o644, 0o660] {
            set_mode(path, open);
            let pool = Pool::open(std::slice::from_ref(&device), options()).unwrap();
            let told: Vec<_> = pool.warnings().iter().filter(|w| w.contains("chmod 600")).collect();
            assert_eq!(told.len(), 1, "{:?}", pool.warnings());
            assert!(told[0].contains(&format!("mode {open:04o}")), "{told:?}");
            pool.shutdown().unwrap();
        }
    }
    assert_eq!(open_to_others(Path::new("/dev/null")), None, "what is a device is the system's");
}

/// Not a test by itself: takes the lock of a file, for reading or for writing, and keeps
/// it until its input ends.
#[test]
fn as_somebody_who_locks() {
    let Ok(path) = std::env::var("SLACKLINE_TEST_LOCK") else { return };
    let write = std::env::var_os("SLACKLINE_TEST_WRITE").is_some();
    let file = File::options().read(true).write(write).open(path).unwrap();
    file.try_lock().unwrap();
    println!("locked");
    let _ = std::io::stdin().read_line(&mut String::new());
}

/// As whom a process takes a lock, and for what it opens the file.
#[derive(Clone, Copy)]
enum Locks {
    NobodyToRead,
    OwnerToRead,
    OwnerToWrite,
}

/// A process of this program.
struct Locker(Child, Option<ChildStdin>);

impl Locker {
    fn start(dir: &Dir, path: &Path, locks: Locks) -> Self {
        let program = dir.path("program");
        if !program.exists() {
            std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
            set_mode(&program, 0o755);
            set_mode(program.parent().unwrap(), 0o755);
        }
        let mut command = Command::new(&program);
        command.args(["--exact", "closed::as_somebody_who_locks", "--nocapture"]);
        command.env("SLACKLINE_TEST_LOCK", path).stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(Stdio::null());
        match locks {
            Locks::NobodyToRead => command.uid(65_534).gid(65_534),
            Locks::OwnerToRead => &mut command,
            Locks::OwnerToWrite => command.env("SLACKLINE_TEST_WRITE", "1"),
        };
        let mut child = command.spawn().unwrap();
        let input = child.stdin.take();
        let said = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut said = said.map_while(Result::ok);
        assert!(said.any(|line| line.contains("locked")), "it has the lock");
        Self(child, input)
    }

    fn end(mut self) {
        drop(self.1.take().map(|mut input| input.write_all(b"\n")));
        self.0.wait().unwrap();
    }
}

/// Only root can be two users, and sees what all have open.
#[test]
fn the_lock_of_a_reader_is_no_claim_and_that_of_a_writer_is() {
    let root = std::os::unix::fs::MetadataExt::uid(&std::fs::metadata("/proc/self").unwrap()) == 0;
    let all = std::fs::read_link("/proc/self/ns/pid").unwrap();
    if !root || all != Path::new("pid:[4026531836]") {
        return skips::not_run("needs root where all processes are seen");
    }
    let dir = Dir::new();
    let disks = [dir.file("a")];
    Pool::create("tape", &disks, &untimed(64)).unwrap();
    let path = dir.path("a");
    set_mode(&path, 0o644); // as pools were made before
    let reader = Locker::start(&dir, &path, Locks::NobodyToRead);
    let pool = Pool::open(&disks, options()).expect("a reader does not keep it from being served");
    // The pool that is open has no lock now, and is kept to one process all the same.
    assert!(matches!(Pool::open(&disks, options()), Err(PoolError::InUse { .. })));
    assert!(matches!(Pool::check(&disks), Err(PoolError::InUse { .. })));
    pool.shutdown().unwrap();
    reader.end();
    let writer = Locker::start(&dir, &path, Locks::OwnerToWrite);
    assert!(matches!(Pool::open(&disks, options()), Err(PoolError::InUse { .. })));
    writer.end();
    // Who can only be the owner is no stranger, although he only reads.
    set_mode(&path, 0o600);
    let owner = Locker::start(&dir, &path, Locks::OwnerToRead);
    assert!(matches!(Pool::open(&disks, options()), Err(PoolError::InUse { .. })));
    owner.end();
    Pool::open(&disks, options()).unwrap().shutdown().unwrap();
}
