//! The load on the device itself, under a scheduler of the kernel's, with direct reads
//! in classes of the kernel's.

use super::device::Device;
use super::load::{GREEDY_EXTENT, GREEDY_READS, Program, Seen, place, run, scattered};
use engine::{IoClass, io_class};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::JoinHandle;
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
    /// Films fetch themselves, past the cache, what they play next: [`FETCHED`] at a time, of
    /// which one is in memory while the next one is fetched.
    fetches: bool,
}

/// What films fetch at a time that fetch ahead: the largest block that a contract of ours has.
const FETCHED: Bytes = Bytes::MIB;

/// Whoever gives classes by hand takes deadlines nearer than this for urgent.
const SOON: Duration = Duration::from_millis(400);

/// As much as the largest block that a contract of ours has; by hand with 2 MiB each is late
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

/// Whoever asks most of the cache: double of that.
const FAR_AHEAD: Option<Bytes> = Some(Bytes::new(2 << 20));

const fn setting(
    name: &'static str,
    scheduler: &'static str,
    knobs: &'static [(&'static str, &'static str)],
) -> Setting {
    Setting { name, scheduler, knobs, by_hand: false, read_ahead: None, fetches: false }
}

impl Setting {
    const fn by_hand(self) -> Self {
        Self { by_hand: true, ..self }
    }

    const fn reading_ahead(self, read_ahead: Option<Bytes>) -> Self {
        Self { read_ahead, ..self }
    }

    const fn fetching(self) -> Self {
        Self { fetches: true, ..self }
    }
}

/// All that the kernel has. `none` and `kyber` do not look at classes.
pub const SETTINGS: [Setting; 14] = [
    setting("none", "none", &[]),
    setting("kyber", "kyber", &[("iosched/read_lat_nsec", "20000000")]),
    setting("mq-deadline", "mq-deadline", DEADLINE),
    setting("mq-deadline, classes by hand", "mq-deadline", DEADLINE).by_hand(),
    setting("bfq", "bfq", BFQ),
    setting("bfq, classes by hand", "bfq", BFQ).by_hand(),
    setting("mq-deadline, classes by hand, read ahead", "mq-deadline", DEADLINE)
        .by_hand()
        .reading_ahead(AHEAD),
    setting("bfq, classes by hand, read ahead", "bfq", BFQ).by_hand().reading_ahead(AHEAD),
    setting("mq-deadline, read ahead", "mq-deadline", DEADLINE).reading_ahead(AHEAD),
    setting("bfq, read ahead", "bfq", BFQ).reading_ahead(AHEAD),
    setting("mq-deadline, 2 MiB read ahead", "mq-deadline", DEADLINE).reading_ahead(FAR_AHEAD),
    setting("bfq, 2 MiB read ahead", "bfq", BFQ).reading_ahead(FAR_AHEAD),
    setting("mq-deadline, films fetch 1 MiB ahead", "mq-deadline", DEADLINE).fetching(),
    setting("bfq, films fetch 1 MiB ahead", "bfq", BFQ).fetching(),
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

/// What a film has fetched: it is told of each piece once.
struct Fetched {
    told: Option<Receiver<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Fetched {
    /// Fetches so many bytes again and again, on a thread of its own, [`FETCHED`] at a time. Two
    /// pieces are there when this returns; then one waits to be taken while the next is fetched.
    fn new(file: File, begin: Bytes, extent: Bytes, class: IoClass) -> Self {
        let (tell, told) = sync_channel(1);
        let mut buffer = Buffer::new(FETCHED);
        let pieces = extent / FETCHED;
        let mut fetch = move |number: u64| buffer.read(&file, begin + FETCHED * (number % pieces));
        fetch(0);
        tell.send(()).expect("there is room");
        fetch(1);
        let thread = std::thread::spawn(move || {
            io_class(class).expect("permitted before");
            let _ = engine::keep_time(); // as the threads of a pool's disks do
            let mut number = 2;
            while tell.send(()).is_ok() {
                fetch(number);
                number += 1;
            }
        });
        Self { told: Some(told), thread: Some(thread) }
    }

    /// Waits until the next piece is there.
    fn take(&self) {
        let told = self.told.as_ref().expect("until it is dropped");
        told.recv().expect("it fetches while somebody listens");
    }
}

impl Drop for Fetched {
    fn drop(&mut self) {
        self.told = None;
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(!matches!(ended, Some(Err(_))) || std::thread::panicking(), "it fetched");
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
        let fetched = (is_film && setting.fetches)
            .then(|| Fetched::new(open(), begin, program.extent(time), setting.class(program)));
        let per_fetch = FETCHED / program.block();
        move |block: u64| {
            if let Some(fetched) = &fetched {
                if block.is_multiple_of(per_fetch) {
                    fetched.take();
                }
                return;
            }
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
