//! The load on the device itself, under a scheduler of the kernel's, with direct reads
//! in classes of the kernel's.

use super::device::Device;
use super::load::{GREEDY_EXTENT, GREEDY_READS, Program, Seen, place, run, scattered};
use engine::{IoClass, io_class};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Duration;
use units::Bytes;

/// A scheduler with what we found best for it: files below the device's queue.
pub struct Setting {
    pub name: &'static str,
    scheduler: &'static str,
    knobs: &'static [(&'static str, &'static str)],
    /// Whether somebody who knows all programs gave each a class: the database the
    /// real-time one, films best effort, and the greedy ones what is idle. Otherwise all
    /// that have a deadline are in the real-time class.
    pub by_hand: bool,
}

/// One request after the other instead of 16 of a batch, and nobody is promoted past the
/// real-time class while we look.
const DEADLINE: &[(&str, &str)] =
    &[("iosched/fifo_batch", "1"), ("iosched/prio_aging_expire", "60000")];
/// One request in the drive at a time and no waiting for more of the same program.
const BFQ: &[(&str, &str)] = &[
    ("iosched/strict_guarantees", "1"),
    ("iosched/slice_idle", "0"),
    ("iosched/low_latency", "0"),
];

/// All that the kernel has. `none` and `kyber` do not look at classes.
pub const SETTINGS: [Setting; 6] = [
    Setting { name: "none", scheduler: "none", knobs: &[], by_hand: false },
    Setting {
        name: "kyber",
        scheduler: "kyber",
        knobs: &[("iosched/read_lat_nsec", "20000000")],
        by_hand: false,
    },
    Setting { name: "mq-deadline", scheduler: "mq-deadline", knobs: DEADLINE, by_hand: false },
    Setting {
        name: "mq-deadline, classes by hand",
        scheduler: "mq-deadline",
        knobs: DEADLINE,
        by_hand: true,
    },
    Setting { name: "bfq", scheduler: "bfq", knobs: BFQ, by_hand: false },
    Setting { name: "bfq, classes by hand", scheduler: "bfq", knobs: BFQ, by_hand: true },
];

impl Setting {
    fn class(&self, program: Program) -> IoClass {
        match program {
            Program::Stream { .. } if self.by_hand => IoClass::BestEffort,
            _ => IoClass::RealTime,
        }
    }

    fn greedy_class(&self) -> IoClass {
        if self.by_hand { IoClass::Idle } else { IoClass::BestEffort }
    }
}

/// Memory for direct reads.
struct Buffer {
    memory: Vec<u8>,
    begin: usize,
    len: usize,
}

impl Buffer {
    const ALIGN: usize = 4096;

    fn new(len: Bytes) -> Self {
        let len = len.as_usize();
        let memory = vec![0; len + Self::ALIGN];
        let begin = memory.as_ptr().align_offset(Self::ALIGN);
        Self { memory, begin, len }
    }

    fn read(&mut self, file: &File, at: Bytes) {
        let into = &mut self.memory[self.begin..][..self.len];
        file.read_exact_at(into, at.get()).expect("the emulated disk has no errors");
    }
}

/// Runs the load for `time` under one setting.
///
/// # Errors
/// Where the kernel has no such scheduler, or does not permit the real-time class.
pub fn load(
    device: &Device,
    setting: &Setting,
    programs: &[Program],
    time: Duration,
) -> Result<Seen, String> {
    let set = |(what, value): &(&str, &str)| {
        device.set(what, value).map_err(|error| format!("{what} = {value}: {error}"))
    };
    set(&("scheduler", setting.scheduler))?;
    setting.knobs.iter().try_for_each(set)?;
    let permitted = std::thread::spawn(|| io_class(IoClass::RealTime)).join();
    permitted.expect("no panic").map_err(|error| format!("the real-time I/O class: {error}"))?;
    let open = || device.open().expect("it was opened before");
    let reader = |number: usize, program: Program| {
        io_class(setting.class(program)).expect("permitted before");
        let _ = engine::keep_time(); // as the threads of a pool's disks do
        let (file, begin) = (open(), device.place(place(number, false)));
        let mut buffer = Buffer::new(program.block());
        let blocks = program.extent(time) / program.block();
        move |block: u64| {
            let block = match program {
                Program::Stream { .. } => block % blocks,
                Program::Points { .. } => scattered(block, blocks),
            };
            buffer.read(&file, begin + program.block() * block);
        }
    };
    let greedy = |number: usize| {
        io_class(setting.greedy_class()).expect("permitted before");
        let (file, begin) = (open(), device.place(place(number, true)));
        let mut buffer = Buffer::new(GREEDY_READS);
        let blocks = GREEDY_EXTENT / GREEDY_READS;
        move |request: u64| buffer.read(&file, begin + GREEDY_READS * scattered(request, blocks))
    };
    let seen = run(programs, time, reader, greedy);
    set(&("scheduler", "none"))?;
    Ok(seen)
}
