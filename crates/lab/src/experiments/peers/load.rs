//! The load that every setting gets, and what its programs saw.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use units::{Bytes, Rate};

/// A program with a deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// Reads one block after the other at a rate; each must be there a block's time
    /// after the program asked for it.
    Stream { rate: Rate, block: Bytes },
    /// Reads a random block every so often, and must have it before the next.
    Points { block: Bytes, every: Duration },
}

impl Program {
    /// How much it reads at a time.
    pub fn block(self) -> Bytes {
        match self {
            Self::Stream { block, .. } | Self::Points { block, .. } => block,
        }
    }

    /// Between its requests, and from each to its deadline.
    pub fn period(self) -> Duration {
        match self {
            Self::Stream { rate, block } => Duration::from_nanos(rate.time_for(block).as_nanos()),
            Self::Points { every, .. } => every,
        }
    }

    /// What it needs of the disk for a run of so long.
    pub fn extent(self, time: Duration) -> Bytes {
        let len = match self {
            Self::Stream { rate, .. } => rate.bytes_in(units::Duration::from_secs(time.as_secs())),
            Self::Points { .. } => Bytes::mib(16),
        };
        (len + Bytes::mib(4)).round_up(Bytes::MIB)
    }
}

/// Programs with deadlines that run together.
#[derive(Clone, Copy)]
pub struct Mix {
    pub name: &'static str,
    /// There however many cameras there are.
    pub first: &'static [Program],
    /// One more at each step.
    pub more: Program,
}

const FILM: Program = Program::Stream { rate: Rate::per_second(1_000_000), block: Bytes::kib(512) };

/// A few tracks of sound, due after 0.34 s.
const SOUND: Program = Program::Stream { rate: Rate::per_second(192_000), block: Bytes::kib(64) };
/// A copy to an archive that keeps a rate, due after 2.1 s.
const COPY: Program = Program::Stream { rate: Rate::per_second(250_000), block: Bytes::kib(512) };
const DATABASE: Program =
    Program::Points { block: Bytes::kib(16), every: Duration::from_millis(150) };

/// The loads that are tried.
pub const MIXES: [Mix; 3] = [
    Mix { name: "films", first: &[], more: FILM },
    Mix { name: "films and a database", first: &[DATABASE], more: FILM },
    Mix {
        name: "films, sound, copies and a database",
        first: &[DATABASE, SOUND, SOUND, COPY, COPY],
        more: FILM,
    },
];

impl Mix {
    /// With so many films.
    pub fn with(self, films: usize) -> Vec<Program> {
        self.first.iter().copied().chain((0..films).map(|_| self.more)).collect()
    }
}

/// So many programs with deadlines have places.
pub const PROGRAMS_MAX: usize = 24;
/// Programs without a deadline, and what each reads at a time, at random places.
pub const GREEDY: usize = 8;
pub const GREEDY_READS: Bytes = Bytes::kib(256);
pub const GREEDY_EXTENT: Bytes = Bytes::mib(32);
/// Places on the disk, evenly apart: one for each program.
pub const PLACES: u64 = 32;

/// What is the machine's own lateness and no setting's: how late a request may be.
/// Wake-ups come up to 8 ms late on a virtual machine that shares its processors.
pub const GRACE: Duration = Duration::from_millis(10);

/// The place of the program with this number; greedy ones lie between the others.
pub fn place(number: usize, greedy: bool) -> u64 {
    if greedy { 4 * number as u64 + 1 } else { [0, 2, 3][number % 3] + 4 * (number as u64 / 3) }
}

/// What programs saw.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// From asking to having, of each request that has a deadline.
    pub waits: Vec<Duration>,
    /// Later than their deadline by more than [`GRACE`].
    pub late: u64,
    /// The most that one was late by.
    pub late_max: Duration,
    /// The most that a program was woken late by.
    pub woken_late_max: Duration,
    /// What the greedy ones read in a second.
    pub greedy: f64,
}

impl Seen {
    fn merge(&mut self, other: Self) {
        self.waits.extend(other.waits);
        self.late += other.late;
        self.late_max = self.late_max.max(other.late_max);
        self.woken_late_max = self.woken_late_max.max(other.woken_late_max);
    }

    /// The wait that `per_mille` of a thousand did not exceed.
    pub fn percentile(&self, per_mille: usize) -> Duration {
        let mut waits = self.waits.clone();
        waits.sort_unstable();
        let rank = (waits.len() * per_mille).div_ceil(1000).max(1) - 1;
        waits.get(rank).copied().unwrap_or_default()
    }
}

/// Runs programs for `time`: each gets, on a thread of its own, something to read
/// with. `reader` makes what reads the block with this number, `greedy` what reads one
/// block anywhere; both block until the bytes are there.
pub fn run<R, G>(
    programs: &[Program],
    time: Duration,
    reader: impl Fn(usize, Program) -> R + Sync,
    greedy: impl Fn(usize) -> G + Sync,
) -> Seen
where
    R: FnMut(u64),
    G: FnMut(u64),
{
    let ready = std::sync::Barrier::new(programs.len() + GREEDY);
    let read = AtomicU64::new(0);
    let mut seen = Seen::default();
    thread::scope(|scope| {
        let mut threads = Vec::new();
        for (number, program) in programs.iter().enumerate() {
            let (reader, ready) = (&reader, &ready);
            threads.push(scope.spawn(move || {
                let read = reader(number, *program);
                ready.wait();
                paced(*program, Instant::now(), time, read)
            }));
        }
        for number in 0..GREEDY {
            let (greedy, ready, bytes) = (&greedy, &ready, &read);
            scope.spawn(move || {
                let mut read = greedy(number);
                ready.wait();
                let end = Instant::now() + time;
                let mut request = number as u64;
                while Instant::now() < end {
                    read(request);
                    request += GREEDY as u64;
                    bytes.fetch_add(GREEDY_READS.get(), Ordering::Relaxed);
                }
            });
        }
        for thread in threads {
            seen.merge(thread.join().expect("a program that reads"));
        }
    });
    seen.greedy = read.into_inner() as f64 / time.as_secs_f64();
    seen
}

/// Asks for a block each period from `start` on, whatever became of the one before.
fn paced(program: Program, start: Instant, time: Duration, mut read: impl FnMut(u64)) -> Seen {
    let mut seen = Seen::default();
    let period = program.period();
    for block in 0.. {
        let due = start + period * block;
        if due > start + time {
            break;
        }
        let early = due.saturating_duration_since(Instant::now());
        if !early.is_zero() {
            thread::sleep(early);
            seen.woken_late_max = seen.woken_late_max.max(due.elapsed());
        }
        read(u64::from(block));
        let wait = due.elapsed();
        seen.waits.push(wait);
        let late = wait.saturating_sub(period);
        seen.late += u64::from(late > GRACE);
        seen.late_max = seen.late_max.max(late);
    }
    seen
}

/// A number that looks random, the same for the same request.
pub fn scattered(request: u64, of: u64) -> u64 {
    (request.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 24) % of
}
