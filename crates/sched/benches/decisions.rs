//! What decisions cost: who goes next, and who may join.
//!
//! Plain measurements over repeated runs, with the smallest, the median and the
//! largest: `cargo bench -p slackline-sched --bench decisions`. `SLACKLINE_QUICK` in the
//! environment: once and small, which shows that it runs and nothing else.
#![allow(missing_docs, clippy::print_stdout)]

#[path = "../tests/common/mod.rs"]
mod common;

use common::Random;
use sched::{Class, Next, Options, PolicyKind, Predict, Request, Schedule, Task, TaskId, TaskSet};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Instant as Clock;
use units::{Access, Bytes, Command, Direction, Duration, Instant, Lba};

const RUNS: usize = 7;

fn main() {
    let quick = std::env::var_os("SLACKLINE_QUICK").is_some();
    let (runs, many) = if quick { (1, 500) } else { (RUNS, 10_000) };
    println!("{:62} {:>10} {:>10} {:>10}   aim", "", "min", "median", "max");
    for load in [Load::Greedy, Load::Moderate] {
        for streams in [10, 100, 1_000] {
            dispatch(PolicyKind::SLACK, streams, load, runs, quick);
        }
    }
    for policy in [PolicyKind::DELTA_L, PolicyKind::EDF, policies::FCFS] {
        dispatch(policy, 1_000, Load::Greedy, runs, quick);
    }
    for ppm in [500_000, 800_000, 980_000] {
        admission(1_000, ppm, Deadlines::Periods, runs, "< 200 us");
    }
    joining(1_000, runs, "< 200 us");
    for (ppm, deadlines) in [
        (800_000, Deadlines::Periods),
        (980_000, Deadlines::Periods),
        (600_000, Deadlines::Shorter),
    ] {
        admission(many, ppm, deadlines, runs, "< 1 ms");
        everybody(many, ppm, deadlines, runs, "< 50 ms");
    }
    edge(many, runs);
    flash(quick);
}

/// Deadlines of the streams.
#[derive(Clone, Copy, Debug)]
enum Deadlines {
    /// The end of the period.
    Periods,
    /// Anywhere in the second half of the period: the case that the summary of a set
    /// decides worst.
    Shorter,
}

fn row(name: &str, mut samples: Vec<u64>, aim: &str) {
    samples.sort_unstable();
    let [min, median, max] = [samples[0], samples[samples.len() / 2], samples[samples.len() - 1]]
        .map(|ns| format!("{}", Duration::from_nanos(ns)));
    println!("{name:62} {min:>10} {median:>10} {max:>10}   {aim}");
}

/// A hard disk: 4 to 12 ms a command, wherever it is.
struct Disk;

impl Predict for Disk {
    fn bound(&self, from: Lba, command: &Command) -> Duration {
        let Command::Transfer(access) = command else { return Duration::from_millis(12) };
        Duration::from_micros(4_000 + (from.distance(access.lba) >> 18).min(8_000))
    }
}

const SECTORS: u64 = 1 << 31;

fn command(random: &mut Random) -> Command {
    let lba = Lba::new(random.within(0, SECTORS));
    Command::Transfer(Access { lba, len: Bytes::kib(64), direction: Direction::Read })
}

/// Streams of all different rates that together use `ppm` of the disk, with
/// commands of 12 ms at the most.
fn tasks(random: &mut Random, streams: u64, ppm: u64, deadlines: Deadlines) -> Vec<Task> {
    let cost = Duration::from_millis(12);
    let mean = cost.as_nanos() * streams * 1_000_000 / ppm;
    (0..streams)
        .map(|_| {
            let period = Duration::from_nanos(random.within(mean * 2 / 3, mean * 3 / 2));
            let deadline = match deadlines {
                Deadlines::Periods => period,
                Deadlines::Shorter => {
                    period / 2 + Duration::from_nanos(random.within(0, period.as_nanos() / 2))
                }
            };
            Task::new(period, deadline, cost)
        })
        .collect()
}

/// What best effort does.
#[derive(Clone, Copy, Debug)]
enum Load {
    /// 64 requests always wait.
    Greedy,
    /// Bursts that use about half of what the streams leave.
    Moderate,
}

struct Stage {
    random: Random,
    schedule: Schedule,
    now: Instant,
    keys: u64,
    waiting: u64,
    /// When which stream's next request comes.
    asks: BinaryHeap<Reverse<(Instant, usize)>>,
    ids: Vec<(TaskId, Task)>,
    load: Load,
    best_effort_at: Instant,
    deciding: Meter,
    handling: Meter,
}

/// How long calls take.
#[derive(Clone)]
struct Meter {
    nanos: u64,
    calls: u64,
    /// Calls by their length: below each power of two of nanoseconds.
    lengths: [u64; 40],
    longest: u64,
}

impl Default for Meter {
    fn default() -> Self {
        Self { nanos: 0, calls: 0, lengths: [0; 40], longest: 0 }
    }
}

impl Meter {
    fn add(&mut self, since: Clock) {
        let nanos = since.elapsed().as_nanos() as u64;
        self.nanos += nanos;
        self.calls += 1;
        self.lengths[(64 - nanos.leading_zeros() as usize).min(39)] += 1;
        self.longest = self.longest.max(nanos);
    }
    /// All but one in `parts` calls are shorter than this; the next power of two.
    fn all_but_one_in(&self, parts: u64) -> u64 {
        let mut left = self.calls / parts;
        for (power, &calls) in self.lengths.iter().enumerate().rev() {
            if calls > left {
                return 1 << power;
            }
            left -= calls;
        }
        0
    }
    /// The long ones, in words.
    fn tail(&self) -> String {
        let long: u64 = (20..40).map(|power| self.lengths[power]).sum();
        format!(
            "all but one in 1,000 below {}, the longest {}, {long} of {} longer than 524 us",
            Duration::from_nanos(self.all_but_one_in(1_000)),
            Duration::from_nanos(self.longest),
            self.calls
        )
    }
    /// Nanoseconds without what reading the clock takes, over `calls`.
    fn mean(&self, clock: u64, calls: u64) -> u64 {
        self.nanos.saturating_sub(self.calls * clock) / calls
    }
}

impl Stage {
    fn new(policy: PolicyKind, streams: u64, load: Load, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut schedule = Schedule::new(policy, Options::default());
        let mut asks = BinaryHeap::new();
        let mut ids = Vec::new();
        for (at, task) in
            tasks(&mut random, streams, 800_000, Deadlines::Periods).into_iter().enumerate()
        {
            let id = schedule.join(Instant::EPOCH, task).expect("0.8 of a disk is admitted");
            let phase = Duration::from_nanos(random.within(0, task.period.as_nanos()));
            asks.push(Reverse((Instant::EPOCH + phase, at)));
            ids.push((id, task));
        }
        let (now, best_effort_at) = (Instant::EPOCH, Instant::EPOCH);
        let (keys, waiting, deciding, handling) = (0, 0, Meter::default(), Meter::default());
        Self {
            random,
            schedule,
            now,
            keys,
            waiting,
            asks,
            ids,
            load,
            best_effort_at,
            deciding,
            handling,
        }
    }

    fn submit(&mut self, class: Class) {
        self.keys += 1;
        let request = Request { class, command: command(&mut self.random) };
        let clock = Clock::now();
        let times = self.schedule.submit(self.now, self.keys, request);
        self.handling.add(clock);
        std::hint::black_box(times);
    }

    fn best_effort(&mut self) {
        let wanted = match self.load {
            Load::Greedy => 64,
            Load::Moderate if self.best_effort_at <= self.now => {
                let pause = self.random.within(20, 1_000);
                self.best_effort_at = self.now + Duration::from_millis(pause);
                self.waiting + self.random.within(1, 12)
            }
            Load::Moderate => 0,
        };
        while self.waiting < wanted {
            self.waiting += 1;
            let synchronous = self.random.one_in(2);
            self.submit(Class::best_effort(synchronous));
        }
    }

    fn asks(&mut self) {
        while let Some(&Reverse((at, stream))) = self.asks.peek()
            && at <= self.now
        {
            self.asks.pop();
            let (id, task) = self.ids[stream];
            let jitter = Duration::from_micros(self.random.within(0, 2_000));
            self.asks.push(Reverse((at + task.period + jitter, stream)));
            self.submit(Class::RealTime(id));
        }
    }

    fn next(&mut self) -> Next {
        let clock = Clock::now();
        let next = self.schedule.next(self.now, &Disk);
        self.deciding.add(clock);
        next
    }

    fn run(&mut self, decisions: u64) {
        while self.deciding.calls < decisions {
            self.asks();
            self.best_effort();
            let Next::Start { key, predicted } = self.next() else {
                let next = self.asks.peek().expect("streams always ask again").0.0;
                let next = if self.waiting == 0 { next.min(self.best_effort_at) } else { next };
                self.now = next.max(self.now + Duration::from_micros(100));
                continue;
            };
            let asked = self.next();
            assert!(matches!(asked, Next::Wait { .. }), "one command at a time");
            // Between a half and all of the bound, as disks do.
            let actual = self.random.within(predicted.as_nanos() / 2, predicted.as_nanos());
            self.now += Duration::from_nanos(actual);
            let clock = Clock::now();
            let outcome = self.schedule.finished(self.now, key);
            self.handling.add(clock);
            self.waiting -= u64::from(!matches!(outcome.class, Class::RealTime(_)));
        }
    }
}

/// What a command on flash takes.
const FLASH: Duration = Duration::from_micros(34);

struct FlashDisk;

impl Predict for FlashDisk {
    fn bound(&self, _: Lba, _: &Command) -> Duration {
        FLASH
    }
}

/// A flash disk that is promised to 97 %, beside greedy best effort: a decision must not
/// cost more than a tenth of the command that it decides about.
fn flash(quick: bool) {
    let commands = if quick { 2_000 } else { 60_000 };
    for (depth, burst) in [(1, 200), (1, 0), (8, 200), (8, 0)] {
        let mut random = Random::new(11);
        let (streams, ppm) = (2_604, 970_000);
        let mean = FLASH.as_nanos() * streams * 1_000_000 / ppm;
        let options = Options {
            depth,
            burst: Duration::from_millis(burst),
            reserve: Duration::from_millis(1),
            ..Options::default()
        };
        let mut schedule = Schedule::new(PolicyKind::SLACK, options);
        let (mut asks, mut ids) = (BinaryHeap::new(), Vec::new());
        for at in 0..streams as usize {
            let period = Duration::from_nanos(random.within(mean * 4 / 5, mean * 5 / 4));
            let task = Task::new(period, period, FLASH);
            ids.push((schedule.join(Instant::EPOCH, task).expect("it fits"), task));
            let phase = Duration::from_nanos(random.within(0, period.as_nanos()));
            asks.push(Reverse((Instant::EPOCH + phase, at)));
        }
        let (mut now, mut keys, mut waiting) = (Instant::EPOCH, 0, 0);
        let mut busy: Vec<u64> = Vec::new();
        let mut meter = Meter::default();
        let mut done = [0, 0];
        while done[0] + done[1] < commands {
            while let Some(&Reverse((at, stream))) = asks.peek()
                && at <= now
            {
                asks.pop();
                let (id, task) = ids[stream];
                asks.push(Reverse((at + task.period, stream)));
                keys += 1;
                let class = Class::RealTime(id);
                schedule.submit(now, keys, Request { class, command: command(&mut random) });
            }
            while waiting < 64 {
                (waiting, keys) = (waiting + 1, keys + 1);
                let class = Class::best_effort(true);
                schedule.submit(now, keys, Request { class, command: command(&mut random) });
            }
            loop {
                let clock = Clock::now();
                let next = schedule.next(now, &FlashDisk);
                meter.add(clock);
                let Next::Start { key, .. } = next else { break };
                busy.push(key);
            }
            // One after the other, each in all of its bound.
            now += FLASH;
            if !busy.is_empty() {
                let outcome = schedule.finished(now, busy.remove(0));
                let best_effort = !matches!(outcome.class, Class::RealTime(_));
                waiting -= u64::from(best_effort);
                done[usize::from(best_effort)] += 1;
            }
        }
        let counts = schedule.counts();
        let name = format!("flash, {streams} streams, 97 %, depth {depth}, burst {burst} ms");
        let mean = meter.mean(clock_cost(), commands);
        let aim = format!("< {}", FLASH / 10);
        println!("{name:62} {:>10} {:>10} {:>10}   {aim}", "", Duration::from_nanos(mean), "");
        println!("    {}", meter.tail());
        println!(
            "    {} best effort, {} late, slack computed for {}",
            done[1], counts.late, counts.slack_computed
        );
    }
}

/// What an empty call measures, so that it is not counted.
fn clock_cost() -> u64 {
    let mut samples: Vec<u64> =
        (0..1_000).map(|_| Clock::now().elapsed().as_nanos() as u64).collect();
    samples.sort_unstable();
    samples[500]
}

fn dispatch(policy: PolicyKind, streams: u64, load: Load, runs: usize, quick: bool) {
    let (mut deciding, mut handling) = (Vec::new(), Vec::new());
    let (mut computed, mut decisions, mut in_slack, mut late) = (0, 0, 0, 0);
    let mut tail = String::new();
    for run in 0..runs {
        let mut stage = Stage::new(policy, streams, load, run as u64 + 1);
        // Into the steady state first.
        stage.run(if quick { 500 } else { 4 * streams + 2_000 });
        let before = stage.schedule.counts();
        (stage.deciding, stage.handling) = (Meter::default(), Meter::default());
        stage.run(if quick { 500 } else { 100_000 });
        // Half of the calls only say that the disk is busy: they are not counted,
        // nor is the time that they took (they are the cheapest there are).
        let clock = clock_cost();
        deciding.push(stage.deciding.mean(clock, stage.deciding.calls / 2));
        handling.push(stage.handling.mean(clock, stage.handling.calls));
        tail = stage.deciding.tail();
        let counts = stage.schedule.counts();
        computed += counts.slack_computed - before.slack_computed;
        in_slack += counts.in_slack - before.in_slack;
        late += counts.late;
        decisions += stage.deciding.calls / 2;
    }
    let name = format!("{policy}, {streams} streams, best effort {load:?}");
    let aim = if policy == PolicyKind::SLACK { "< 1 us" } else { "" };
    row(&format!("{name}: who is next"), deciding, aim);
    println!("    {tail} (last run)");
    row("    a request comes, or is done", handling, "");
    let share =
        |count: u64| format!("{}.{} %", count * 100 / decisions, count * 1000 / decisions % 10);
    let (computed, in_slack) = (share(computed), share(in_slack));
    println!(
        "    slack computed in full for {computed}, best effort before streams {in_slack}, {late} late"
    );
}

/// One stream more beside many: the decision, the change of it, the end of it, and
/// the exact slack, which nobody needs for the decision.
fn admission(streams: u64, ppm: u64, deadlines: Deadlines, runs: usize, aim: &str) {
    let mut samples: [Vec<u64>; 4] = Default::default();
    for run in 0..runs {
        let mut random = Random::new(run as u64 + 100);
        let mut tasks = tasks(&mut random, streams, ppm, deadlines);
        let last = tasks.pop().unwrap();
        let mut set = TaskSet::of(Duration::from_millis(50), &tasks).expect("these fit");
        let mut time = |sample: usize, set: &mut TaskSet, what: &mut dyn FnMut(&mut TaskSet)| {
            let clock = Clock::now();
            what(set);
            samples[sample].push(clock.elapsed().as_nanos() as u64);
        };
        let mut id = None;
        time(0, &mut set, &mut |set| id = set.add(last).ok());
        let id = id.expect("one more fits");
        time(1, &mut set, &mut |set| {
            set.change(id, tasks[0]).expect("it is like the others");
        });
        time(2, &mut set, &mut |set| {
            std::hint::black_box(set.slack());
        });
        time(3, &mut set, &mut |set| {
            set.remove(id);
        });
    }
    let percent = ppm / 10_000;
    let name = format!("one more beside {} streams, {percent} % used", streams - 1);
    let name = match deadlines {
        Deadlines::Periods => name,
        Deadlines::Shorter => format!("{name}, deadlines shorter"),
    };
    let [add, change, slack, leave] = samples;
    row(&name, add, aim);
    row("    it changes", change, aim);
    row("    the exact slack, when somebody asks", slack, "");
    row("    it leaves", leave, aim);
}

/// Streams join until one is refused; then one leaves and one joins, at the edge.
fn edge(streams: u64, runs: usize) {
    let (mut all, mut worst, mut churn) = (Vec::new(), Vec::new(), Vec::new());
    let mut admitted = 0;
    for run in 0..runs {
        let mut random = Random::new(run as u64 + 300);
        // More than fit.
        let tasks = tasks(&mut random, streams * 11 / 10, 1_050_000, Deadlines::Periods);
        let mut set = TaskSet::new(Duration::from_millis(50));
        let (clock, mut longest, mut last) = (Clock::now(), 0, None);
        for &task in &tasks {
            let one = Clock::now();
            let added = set.add(task);
            longest = longest.max(one.elapsed().as_nanos() as u64);
            match added {
                Ok(id) => last = Some((id, task)),
                Err(_) => break,
            }
        }
        all.push(clock.elapsed().as_nanos() as u64);
        worst.push(longest);
        admitted += set.len();
        let (mut id, task) = last.expect("many fit");
        for _ in 0..20 {
            let clock = Clock::now();
            set.remove(id);
            id = set.add(task).expect("it was there before");
            churn.push(clock.elapsed().as_nanos() as u64);
        }
    }
    row("as many streams as fit, one at a time, with the refusal", all, "");
    println!("    {} streams", admitted / runs);
    row("    the longest single answer", worst, "");
    row("    at the edge one leaves and one joins", churn, "< 1 ms");
}

/// A stream joins and leaves while the disk is in the middle of everything.
fn joining(streams: u64, runs: usize, aim: &str) {
    let (mut joins, mut leaves) = (Vec::new(), Vec::new());
    for run in 0..runs {
        let mut stage = Stage::new(PolicyKind::SLACK, streams - 1, Load::Greedy, run as u64 + 1);
        stage.run(4 * streams);
        let task = stage.ids[0].1;
        for _ in 0..20 {
            stage.run(stage.deciding.calls + 50);
            let clock = Clock::now();
            let id = stage.schedule.join(stage.now, task).expect("one more fits");
            joins.push(clock.elapsed().as_nanos() as u64);
            let clock = Clock::now();
            stage.schedule.leave(id);
            leaves.push(clock.elapsed().as_nanos() as u64);
        }
    }
    row(&format!("stream {streams} joins a busy schedule"), joins, aim);
    row("    and leaves", leaves, "");
}

fn everybody(streams: u64, ppm: u64, deadlines: Deadlines, runs: usize, aim: &str) {
    let (mut singly, mut together) = (Vec::new(), Vec::new());
    for run in 0..runs {
        let mut random = Random::new(run as u64 + 200);
        let tasks = tasks(&mut random, streams, ppm, deadlines);
        let clock = Clock::now();
        let mut set = TaskSet::new(Duration::from_millis(50));
        for &task in &tasks {
            set.add(task).expect("these fit");
        }
        singly.push(clock.elapsed().as_nanos() as u64);
        std::hint::black_box(set.slack());
        let clock = Clock::now();
        let set = TaskSet::of(Duration::from_millis(50), &tasks).expect("these fit");
        together.push(clock.elapsed().as_nanos() as u64);
        std::hint::black_box(set.slack());
    }
    row(&format!("{streams} streams admitted, one at a time"), singly, aim);
    row("    in one batch", together, aim);
}
