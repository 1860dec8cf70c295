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
    /// Whether somebody who knows all programs gave each a class: what is due soon (the
    /// database, sound) the real-time one, films best effort, and the greedy ones what is
    /// idle. Otherwise all that have a deadline are in the real-time class.
    pub by_hand: bool,
    /// Films go through the kernel's cache, which reads so much ahead for them; all else
    /// goes past it.
    read_ahead: Option<Bytes>,
}

/// Whoever gives classes by hand takes deadlines nearer than this for urgent.
const SOON: Duration = Duration::from_millis(400);

/// As much as the largest block that a contract of ours has; with 2 MiB each is late
/// sooner.
const AHEAD: Option<Bytes> = Some(Bytes::MIB);

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
pub const SETTINGS: [Setting; 8] = [
    Setting { name: "none", scheduler: "none", knobs: &[], by_hand: false, read_ahead: None },
    Setting {
        name: "kyber",
        scheduler: "kyber",
        knobs: &[("iosched/read_lat_nsec", "20000000")],
        by_hand: false,
        read_ahead: None,
    },
    Setting {
        name: "mq-deadline",
        scheduler: "mq-deadline",
        knobs: DEADLINE,
        by_hand: false,
        read_ahead: None,
    },
    Setting {
        name: "mq-deadline, classes by hand",
        scheduler: "mq-deadline",
        knobs: DEADLINE,
        by_hand: true,
        read_ahead: None,
    },
    Setting { name: "bfq", scheduler: "bfq", knobs: BFQ, by_hand: false, read_ahead: None },
    Setting {
        name: "bfq, classes by hand",
        scheduler: "bfq",
        knobs: BFQ,
        by_hand: true,
        read_ahead: None,
    },
    Setting {
        name: "mq-deadline, classes by hand, read ahead",
        scheduler: "mq-deadline",
        knobs: DEADLINE,
        by_hand: true,
        read_ahead: AHEAD,
    },
    Setting {
        name: "bfq, classes by hand, read ahead",
        scheduler: "bfq",
        knobs: BFQ,
        by_hand: true,
        read_ahead: AHEAD,
    },
];

impl Setting {
    fn class(&self, program: Program) -> IoClass {
        match program {
            _ if self.by_hand && program.period() > SOON => IoClass::BestEffort,
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
    let ahead = setting.read_ahead.unwrap_or_default();
    let kib = (ahead / Bytes::kib(1)).to_string();
    set(&("read_ahead_kb", &kib))?;
    device.forget().map_err(|error| format!("the cache: {error}"))?;
    let permitted = std::thread::spawn(|| io_class(IoClass::RealTime)).join();
    permitted.expect("no panic").map_err(|error| format!("the real-time I/O class: {error}"))?;
    let open = || device.open().expect("it was opened before");
    let cached = || device.open_cached().expect("it was opened before");
    let reader = |number: usize, program: Program| {
        io_class(setting.class(program)).expect("permitted before");
        let _ = engine::keep_time(); // as the threads of a pool's disks do
        let is_film = matches!(program, Program::Stream { .. });
        let file = if is_film && setting.read_ahead.is_some() { cached() } else { open() };
        let begin = device.place(place(number, false));
        let mut buffer = Buffer::new(program.block());
        let blocks = program.extent(time) / program.block();
        if is_film && setting.read_ahead.is_some() {
            // Playout begins when there is something ahead of it, as with our windows.
            (0..2).for_each(|block| buffer.read(&file, begin + program.block() * block));
        }
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
