//! Whether two targets share their way to the host, in real time: carries out what
//! [`Beside`] asks, on a thread for each target.
//!
//! Invariants: both are only read; both threads begin a round at the same moment.

use crate::device::DeviceSpec;
use crate::profiling::{ProfileError, Target};
use crate::sys;
use disk::profiler::{Beside, Question, Sharing, Timing};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use units::{Command, Duration};

/// Reads two targets, each alone and both at once, for seconds on most disks and a
/// minute on slow ones; `warn` hears what should be known about the way they are read.
/// Nothing when `stop` was set, or when a target answered with errors.
///
/// # Errors
/// When a target cannot be used.
pub fn beside(
    specs: [&DeviceSpec; 2],
    stop: &AtomicBool,
    warn: &mut dyn FnMut(&str),
) -> Result<Option<Sharing>, ProfileError> {
    let mut targets = [Target::open(specs[0], false)?, Target::open(specs[1], false)?];
    targets.iter().flat_map(|target| &target.warnings).for_each(|warning| warn(warning));
    let refused = |error| ProfileError::Profiler(specs[1].path().to_owned(), error);
    let capacities = targets.each_ref().map(|target| target.capacity);
    let mut beside = Beside::new(capacities).map_err(refused)?;
    while let Some(round) = beside.poll() {
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let [one, other] = answers(&mut targets, round.commands);
        beside.done([&one, &other]);
    }
    Ok(beside.sharing())
}

/// Both targets work off their commands at once.
fn answers(targets: &mut [Target; 2], commands: [Vec<Command>; 2]) -> [Vec<Timing>; 2] {
    let start = Barrier::new(2);
    let work = |target: &mut Target, commands: Vec<Command>| {
        // Where the system refuses, both are late alike.
        let _ = crate::thread::keep_time();
        start.wait();
        if commands.is_empty() {
            return Vec::new();
        }
        target.answer(&Question { delay: Duration::ZERO, commands, depth: 1 }, sys::now())
    };
    let [one, other] = targets;
    let [first, second] = commands;
    std::thread::scope(|scope| {
        let one = scope.spawn(|| work(one, first));
        let other = scope.spawn(|| work(other, second));
        [one, other].map(|thread| thread.join().expect("it reads, and no more"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use disk::profiler::Together;

    /// Two drives, each emulated on a bus of its own, do not slow each other down; how
    /// late this machine is does not decide that, for what they do takes milliseconds.
    #[test]
    fn two_emulated_disks_are_read_alone_and_at_once() {
        let dir = tempfile::Builder::new().prefix("slackline-").tempdir().unwrap();
        let spec = |name: &str| -> DeviceSpec {
            let path = dir.path().join(name);
            std::fs::File::create(&path).unwrap().set_len(1 << 30).unwrap();
            format!("emulated:hdd-7200-20tb:{}", path.display()).parse().unwrap()
        };
        let (one, other) = (spec("one"), spec("other"));
        let stop = AtomicBool::new(false);
        let sharing = beside([&one, &other], &stop, &mut |_| ()).unwrap().expect("they answered");
        assert_eq!(sharing.seen.len(), 3);
        for seen in &sharing.seen {
            // Alone or not, at least what the bus takes for so much.
            let least = Duration::from_micros(100);
            assert!(seen.times.iter().flatten().all(|time| *time > least), "{sharing}");
        }
        let _: Together = sharing.together();
        stop.store(true, Ordering::Relaxed);
        assert_eq!(beside([&one, &other], &stop, &mut |_| ()).unwrap(), None);
    }
}
