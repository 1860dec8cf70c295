//! Every I/O of a history that uses every verb fails once, and each descriptor and piece of
//! memory is not to be had once: nothing hangs, nothing panics, and after that everything
//! that was acknowledged is there.
//!
//! For the I/O the pool lies on an emulated drive over FUSE, so that it is the kernel that
//! tells the engine of the failure; behind each history the power is cut. Each is checked
//! as those of many programs are (`sim::history`).

#[path = "../common/mod.rs"]
mod common;
mod program;
mod room;

use common::*;
use emulator::Emulator;
use engine::{DeviceSpec, Pool};
use program::{Program, VOLUMES};
use sim::history;
use std::fs::OpenOptions;
use std::sync::mpsc;
use units::Bytes;

/// Many times what a history takes on the slowest machine: one that hangs says so.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(300);

/// True where file systems can be mounted over FUSE; says so where not.
fn fuse_is_there() -> bool {
    let there = rustix::process::getuid().is_root()
        && OpenOptions::new().read(true).write(true).open("/dev/fuse").is_ok();
    skips::can_run(there, "needs root and /dev/fuse")
}

/// A drive with a write cache that a power cut takes, and an empty pool on it.
fn emulated(dir: &Dir) -> (Emulator, Vec<DeviceSpec>) {
    let model = disk::Model::named("ssd-nvme").unwrap().scaled(Bytes::mib(64)).unwrap();
    let emulator = Emulator::start(&emulator::Options {
        model,
        directory: dir.path("disk"),
        backing: None,
        write_back: true,
        short_transfers: false,
        depth: None,
        orders: Vec::new(),
        on_thread: || (),
    })
    .unwrap();
    let disks = vec![DeviceSpec::Real { path: emulator.file() }];
    let create = engine::CreateOptions { size: None, ..untimed(64) };
    Pool::create("every", &disks, &create).unwrap();
    (emulator, disks)
}

/// One history with something wrong; whether that came to pass, and how many requests
/// failed.
fn history(emulator: &Emulator, disks: &[DeviceSpec], first: u32, wrong: &str) -> (bool, u64) {
    emulator.order(wrong).unwrap();
    let mut program = Program::new(disks, first);
    let (sender, ended) = mpsc::channel();
    let running = std::thread::spawn(move || {
        let _ = program.live();
        // As a kill: nothing is synced that was not.
        drop(program.pool.take());
        let _ = sender.send(());
        program
    });
    if let Err(mpsc::RecvTimeoutError::Timeout) = ended.recv_timeout(PATIENCE) {
        panic!("{wrong}: it hangs");
    }
    let mut program = running.join().unwrap_or_else(|_| panic!("{wrong}: it panicked"));
    // One that still waits is told with how many are left until it comes.
    let came = !emulator.status().troubles.iter().any(|trouble| trouble.starts_with("fail "));
    emulator.order("heal").unwrap();
    emulator.order(&format!("power-cut seed {first}")).unwrap();
    emulator.order("power-on").unwrap();
    program.audit();
    let checked = history::check(&program.events);
    let checked = checked.unwrap_or_else(|violation| panic!("{wrong}: {violation}"));
    assert!(checked.reads > 0);
    (came, program.refused)
}

/// Lets the n-th of a kind go wrong, for every n that there is; how many there were.
fn for_every(what: impl Fn(u64) -> String, judge: impl Fn(&str, u64)) -> u64 {
    let dir = Dir::new();
    let (emulator, disks) = emulated(&dir);
    let mut first = 0;
    for nth in 1.. {
        let wrong = what(nth);
        let (came, refused) = history(&emulator, &disks, first, &wrong);
        if !came {
            assert_eq!(refused, 0, "{wrong}: nothing went wrong");
            assert!(nth > 1, "{wrong}: there is none");
            return nth - 1;
        }
        judge(&wrong, refused);
        first += VOLUMES;
    }
    unreachable!("histories end")
}

fn somebody_was_told(wrong: &str, refused: u64) {
    assert!(refused > 0, "{wrong}: nobody was told");
}

#[test]
fn what_was_acknowledged_is_there_whichever_read_fails() {
    if fuse_is_there() {
        let reads = for_every(|nth| format!("fail {nth} reads"), |_, _| ());
        eprintln!("each of about {reads} reads failed once");
    }
}

#[test]
fn what_was_acknowledged_is_there_whichever_write_fails() {
    if fuse_is_there() {
        let errors = ["EIO", "ENOSPC", "ENOMEM"];
        let order = |nth: u64| format!("fail {nth} writes {}", errors[nth as usize % 3]);
        let writes = for_every(order, somebody_was_told);
        eprintln!("each of about {writes} writes failed once");
    }
}

#[test]
fn what_was_acknowledged_is_there_whichever_flush_fails() {
    if fuse_is_there() {
        let flushes = for_every(|nth| format!("fail {nth} flushes"), somebody_was_told);
        eprintln!("each of about {flushes} flushes failed once");
    }
}
