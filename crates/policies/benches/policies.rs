//! What one decision of every policy costs, by how much waits.
//!
//! A queue of constant length: of every 20 requests one is background, nine are
//! asynchronous and ten synchronous best effort, over 16 flows; and beside them up to
//! 64 streams with a request each, released as their periods go by. Each decision is
//! followed by the end of its command and by a new request. Times are of `next` alone,
//! the median of at least [`DECISIONS_MIN`] decisions and the one that 99 % are below
//! (mean and maximum measure the machine's interruptions). `SLACKLINE_QUICK` in the
//! environment: a few decisions each, which show that it runs and nothing else.
#![allow(clippy::print_stdout)]

use sched::{Class, Flow, Next, Options, PolicyKind, Predict, Request, Schedule, Task, TaskId};
use std::time::{Duration as Elapsed, Instant as Clock};
use units::{Access, Bytes, Command, Direction, Duration, Instant, Lba};

const LENGTHS: [u64; 4] = [10, 100, 1_000, 10_000];
const DECISIONS_MIN: usize = 200;
const DECISIONS_MAX: usize = 20_000;
const TIME: Elapsed = Elapsed::from_millis(150);

/// Seek and transfer of a disk of 8 GiB: up to 8 ms, and 10 MB/s.
struct Disk;

impl Predict for Disk {
    fn bound(&self, from: Lba, command: &Command) -> Duration {
        let Command::Transfer(access) = command else { return Duration::from_millis(8) };
        Duration::from_nanos(access.lba.distance(from) / 2 + access.len.get() * 100)
    }
}

struct Load {
    schedule: Schedule,
    now: Instant,
    key: u64,
    random: u64,
    streams: Vec<(TaskId, Instant)>,
    others: u64,
}

impl Load {
    fn new(kind: PolicyKind, length: u64) -> Self {
        let schedule = Schedule::new(kind, Options::default());
        let now = Instant::EPOCH;
        let mut load = Self {
            schedule,
            now,
            key: 0,
            random: 88_172_645_463_325_252,
            streams: Vec::new(),
            others: 0,
        };
        let streams = (length / 4).clamp(1, 64);
        for n in 0..streams {
            let period = Duration::from_millis(2_000 + 10 * n);
            let cost = Duration::from_millis(16);
            let id = load.schedule.join(now, Task::new(period, period, cost));
            load.streams.push((id.expect("half of the disk"), now));
        }
        for _ in 0..length - streams {
            load.best_effort();
        }
        load.release();
        load
    }

    fn random(&mut self, below: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % below
    }

    fn submit(&mut self, class: Class) {
        self.key += 1;
        let lba = Lba::new(self.random(16 << 20) & !127);
        let direction = if self.random(3) == 0 { Direction::Write } else { Direction::Read };
        let command = Command::Transfer(Access { lba, len: Bytes::kib(64), direction });
        self.schedule.submit(self.now, self.key, Request { class, command });
    }

    fn best_effort(&mut self) {
        self.others += 1;
        let flow = Flow(self.random(16));
        self.submit(match self.others % 20 {
            0 => Class::Background,
            n => Class::BestEffort { synchronous: n > 9, flow, ordered: false },
        });
    }

    /// Each stream asks again when its period is over.
    fn release(&mut self) {
        for at in 0..self.streams.len() {
            let (id, next) = self.streams[at];
            if next <= self.now {
                let period = self.schedule.tasks().get(id).expect("it has joined").period;
                self.streams[at].1 = self.now + period;
                self.submit(Class::RealTime(id));
            }
        }
    }

    /// One decision and what follows it; how long the decision took.
    fn decide(&mut self) -> Elapsed {
        let begun = Clock::now();
        let next = self.schedule.next(self.now, &Disk);
        let took = begun.elapsed();
        match next {
            Next::Start { key, predicted } => {
                self.now += predicted;
                let outcome = self.schedule.finished(self.now, key);
                if !matches!(outcome.class, Class::RealTime(_)) {
                    self.best_effort();
                }
            }
            Next::Wait { until } => self.now = until.expect("something waits"),
        }
        self.release();
        took
    }
}

fn main() {
    println!(
        "One decision, median (99 % below), in microseconds, with so many requests waiting:\n"
    );
    print!("{:<16}", "policy");
    LENGTHS.iter().for_each(|length| print!("{length:>20}"));
    println!();
    let quick = std::env::var_os("SLACKLINE_QUICK").is_some();
    let (least, time) = if quick { (5, Elapsed::ZERO) } else { (DECISIONS_MIN, TIME) };
    let wanted: Vec<String> =
        std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    for &kind in policies::ALL {
        if !wanted.is_empty() && !wanted.iter().any(|name| name == kind.name) {
            continue;
        }
        print!("{kind:<16}");
        for length in LENGTHS {
            let mut load = Load::new(kind, length);
            let mut times = Vec::new();
            let begun = Clock::now();
            while times.len() < least || (begun.elapsed() < time && times.len() < DECISIONS_MAX) {
                times.push(load.decide().as_secs_f64() * 1e6);
            }
            times.sort_unstable_by(f64::total_cmp);
            print!(
                "{:>20}",
                format!("{:.2} ({:.1})", times[times.len() / 2], times[times.len() * 99 / 100])
            );
        }
        println!();
    }
}
