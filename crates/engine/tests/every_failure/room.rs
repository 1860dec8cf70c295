//! What a process may not have more of: descriptors, and memory.
//!
//! The program is this test again, told by its environment how much there is.

use crate::common::*;
use crate::program::Program;
use engine::{DeviceSpec, Pool};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use sim::history;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};

const DISK: &str = "SLACKLINE_TEST_ROOM_DISK";
const WHAT: &str = "SLACKLINE_TEST_ROOM_WHAT";
const HOW_MUCH: &str = "SLACKLINE_TEST_ROOM_MORE";

/// What the program says of itself: nothing failed.
const NOTHING_FAILED: i32 = 40;
/// Something failed, and all that was acknowledged was there.
const ALL_WAS_THERE: i32 = 41;

/// Lives with so much room, and looks with all the room that there is whether everything
/// is there.
#[test]
fn the_program_that_has_no_room() {
    let word = |name| std::env::var(name);
    let (Ok(disk), Ok(what), Ok(more)) = (word(DISK), word(WHAT), word(HOW_MUCH)) else {
        return; // not that program
    };
    let more: u64 = more.parse().unwrap();
    let (resource, limit) = match what.as_str() {
        "descriptors" => (Resource::Nofile, below_which_are_free(more)),
        _ => (Resource::As, memory() + more),
    };
    let all = getrlimit(resource);
    setrlimit(resource, Rlimit { current: Some(limit), ..all }).unwrap();
    let mut program = Program::new(&[DeviceSpec::Real { path: disk.into() }], 0);
    let _ = program.live();
    drop(program.pool.take());
    let refused = program.refused;
    setrlimit(resource, all).unwrap();
    program.audit();
    if let Err(violation) = history::check(&program.events) {
        panic!("{violation}");
    }
    std::process::exit(if refused == 0 { NOTHING_FAILED } else { ALL_WAS_THERE });
}

/// The number below which so many descriptors are free. What other tests have open at this
/// moment may be among those in use.
fn below_which_are_free(more: u64) -> u64 {
    let is_used = |number: &u64| std::fs::exists(format!("/proc/self/fd/{number}")).unwrap();
    (0..).filter(|number| !is_used(number)).nth(more as usize).expect("numbers do not end")
}

/// Addresses that this process has, in bytes.
fn memory() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = pages.split(' ').next().unwrap().parse().unwrap();
    pages * rustix::param::page_size() as u64
}

fn run(disk: &DeviceSpec, what: &str, more: u64) -> (ExitStatus, String) {
    let program = Command::new(std::env::current_exe().unwrap())
        .args(["room::the_program_that_has_no_room", "--exact", "--nocapture"])
        .env(DISK, disk.path())
        .env(WHAT, what)
        .env(HOW_MUCH, more.to_string())
        .stdout(Stdio::null())
        .output()
        .unwrap();
    (program.status, String::from_utf8_lossy(&program.stderr).into_owned())
}

/// With more and more room, until there is enough. How often there was not, and how often
/// the process itself was ended by that.
fn until_there_is_enough(what: &str, step: u64) -> (u64, u64) {
    let dir = Dir::new();
    let disks = [dir.file("a")];
    Pool::create("room", &disks, &untimed(64)).unwrap();
    let (mut short, mut aborted) = (0, 0);
    for more in (0..100 * step).step_by(step as usize) {
        let (status, said) = run(&disks[0], what, more);
        match status.code() {
            Some(NOTHING_FAILED) => return (short, aborted),
            Some(ALL_WAS_THERE) => short += 1,
            // Where small memory is not to be had, Rust ends the process: as a kill does.
            None if status.signal() == Some(6) && said.contains("memory allocation") => {
                (short, aborted) = (short + 1, aborted + 1);
                Pool::open(&disks, options()).unwrap().shutdown().unwrap();
                // The next begins without its volumes.
                Pool::create("room", &disks, &engine::CreateOptions { force: true, ..untimed(64) })
                    .unwrap();
            }
            _ => panic!("{what}, {more} more: {status}: {said}"),
        }
    }
    panic!("{what}: something fails with any room: SLACKLINE_TELL=1 says what")
}

#[test]
fn each_descriptor_that_cannot_be_had_is_an_error_that_loses_nothing() {
    let (short, aborted) = until_there_is_enough("descriptors", 1);
    eprintln!("enough with {short} more descriptors");
    assert!(short > 2 && aborted == 0, "{short}, {aborted}");
}

#[test]
fn memory_that_cannot_be_had_is_an_error_that_loses_nothing() {
    let (short, aborted) = until_there_is_enough("memory", 4 << 20);
    eprintln!("enough with {short} times 4 MiB more; {aborted} of them ended the process");
    assert!(short > 2 && short > aborted, "{short}, {aborted}");
}
