//! Sweeps beside worst-case seeks: how many streams an Atlas-II takes on its outer zone,
//! with how much memory, and that nobody is late in either.
//!
//! Streams as in the Clockwise thesis, table 6.3: 817 KB/s. The one admission is that of
//! deadlines with each request at the worst that the profile knows (`TaskSet`); the other
//! that of a sweep per cycle (`SweepCosts`). Both leave room for one best-effort command
//! of 64 KiB anywhere on the disk. Both are then run by the production schedule, with
//! more best effort waiting than it will take, on the drive model and on a disk that
//! takes as long as the bound for every command.
#![allow(clippy::print_stdout)] // the table is the result

use disk::{Drive, HardDisk, Kind, Model, Profile};
use node::sweep_costs;
use sched::{
    Class, Next, Options, PolicyKind, Predict, Request, Schedule, SweepCosts, SweepPlan, Task,
    TaskId, TaskSet,
};
use sim::Random;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use units::{Access, Bytes, Command, Direction, Duration, Instant, Lba, Rate};

const RATE: Rate = Rate::per_second(817 * 1024);
const BEST_EFFORT: Bytes = Bytes::kib(64);
/// Longer cycles gain little, and a stream has to wait for one at most when it begins.
const BLOCKS_MAX: u64 = 16;

struct Bounds<'a>(&'a Profile);
impl Predict for Bounds<'_> {
    fn bound(&self, from: Lba, command: &Command) -> Duration {
        self.0.bound(from, command)
    }
}

/// A disk and the part of it in use.
struct Disk {
    model: Model,
    profile: Profile,
    zone: Range<Lba>,
}

impl Disk {
    fn atlas_ii() -> Self {
        let model = Model::named("quantum-atlas-ii").unwrap();
        let profile = Profile::of(&model);
        let Kind::HardDisk(disk) = &profile.kind else { panic!("a hard disk") };
        let zone = Lba::new(0)..disk.zones[1].start;
        Self { model, profile, zone }
    }

    fn end(&self) -> Lba {
        Lba::containing(self.profile.capacity())
    }

    /// The longest best-effort command.
    fn gap(&self) -> Duration {
        self.profile.worst(Lba::new(0)..self.end(), BEST_EFFORT, Direction::Read)
    }

    fn costs(&self, block: Bytes) -> SweepCosts {
        sweep_costs(&self.profile, self.zone.clone(), block, Direction::Read).unwrap()
    }

    /// A read of `len` somewhere in `range`.
    fn read(&self, random: &mut Random, range: &Range<Lba>, len: Bytes) -> Command {
        let last = range.start.distance(range.end) - len.div_ceil(units::SECTOR);
        let lba = Lba::new(range.start.get() + random.below(last / 8 + 1) * 8);
        Command::Transfer(Access { lba, len, direction: Direction::Read })
    }
}

/// How long commands really take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Timing {
    Drive,
    Bound,
}

#[derive(Clone, Copy, Debug, Default)]
struct Outcome {
    requests: u64,
    late: u64,
    overruns: u64,
    best_effort: u64,
    busy: Duration,
}

/// Every task asks for a block at each period from its phase on.
struct Run<'a> {
    disk: &'a Disk,
    schedule: Schedule,
    block: Bytes,
    tasks: Vec<(TaskId, Duration)>,
    asks: BTreeSet<(Instant, usize)>,
    commands: BTreeMap<u64, Command>,
    random: Random,
    best_effort: u64,
    keys: u64,
    outcome: Outcome,
}

impl<'a> Run<'a> {
    fn new(disk: &'a Disk, policy: PolicyKind, reserve: Duration, block: Bytes) -> Self {
        // The sets were admitted by what this test compares.
        let options = Options { admission: false, reserve, ..Options::default() };
        Self {
            disk,
            schedule: Schedule::new(policy, options),
            block,
            tasks: Vec::new(),
            asks: BTreeSet::new(),
            commands: BTreeMap::new(),
            random: Random::new(7),
            best_effort: 0,
            keys: 0,
            outcome: Outcome::default(),
        }
    }

    fn join(&mut self, task: Task, phase: Duration) {
        let id = self.schedule.join(Instant::EPOCH, task).expect("admission is off");
        self.asks.insert((Instant::EPOCH + phase, self.tasks.len()));
        self.tasks.push((id, task.period));
    }

    fn submit(&mut self, now: Instant, class: Class, command: Command) {
        let key = self.keys;
        self.keys += 1;
        self.schedule.submit(now, key, Request { class, command });
        self.commands.insert(key, command);
    }

    fn ask(&mut self, now: Instant) {
        while let Some(&(at, task)) = self.asks.first().filter(|(at, _)| *at <= now) {
            self.asks.pop_first();
            let (id, period) = self.tasks[task];
            self.asks.insert((at + period, task));
            let command = self.disk.read(&mut self.random, &self.disk.zone, self.block);
            self.submit(at, Class::RealTime(id), command);
        }
        while self.best_effort < 8 {
            self.best_effort += 1;
            let anywhere = Lba::new(0)..self.disk.end();
            let command = self.disk.read(&mut self.random, &anywhere, BEST_EFFORT);
            let synchronous = self.random.chance(50);
            self.submit(now, Class::best_effort(synchronous), command);
        }
    }

    fn run(mut self, timing: Timing, span: Duration) -> Outcome {
        let mut drive = HardDisk::new(&self.disk.model);
        let mut now = Instant::EPOCH;
        while now < Instant::EPOCH + span {
            self.ask(now);
            match self.schedule.next(now, &Bounds(&self.disk.profile)) {
                Next::Start { key, predicted } => {
                    let command = self.commands.remove(&key).unwrap();
                    // The drive moves in both: where it stands is part of the world.
                    let real = drive.serve(now, &command);
                    let time = if timing == Timing::Drive { real } else { predicted };
                    now += time;
                    // What is asked for meanwhile comes when it comes, in order.
                    while let Some(&(at, _)) = self.asks.first().filter(|(at, _)| *at < now) {
                        self.ask(at);
                    }
                    let outcome = self.schedule.finished(now, key);
                    let real_time = matches!(outcome.class, Class::RealTime(_));
                    self.best_effort -= u64::from(!real_time);
                    self.outcome.requests += u64::from(real_time);
                    self.outcome.best_effort += u64::from(!real_time);
                    self.outcome.late += u64::from(real_time && !outcome.late_by.is_zero());
                    self.outcome.overruns += u64::from(!outcome.overrun.is_zero());
                    self.outcome.busy += time;
                }
                Next::Wait { until } => {
                    let ask = self.asks.first().map(|(at, _)| *at);
                    now = until
                        .into_iter()
                        .chain(ask)
                        .min()
                        .unwrap()
                        .max(now + Duration::from_nanos(1));
                }
            }
        }
        self.outcome
    }
}

/// How many streams deadlines and worst-case seeks admit, and a run of them.
fn worst_seeks(disk: &Disk, block: Bytes, cost: Duration) -> (u64, TaskSet) {
    let period = RATE.time_for(block);
    let mut set = TaskSet::new(disk.gap());
    while set.add(Task::new(period, period, cost)).is_ok() {}
    (set.len() as u64, set)
}

fn run_worst(disk: &Disk, block: Bytes, set: &TaskSet, timing: Timing, span: Duration) -> Outcome {
    let mut run = Run::new(disk, PolicyKind::SLACK, disk.gap(), block);
    for (_, task) in set.iter() {
        let phase = Duration::from_nanos(run.random.below(task.period.as_nanos()));
        run.join(task, phase);
    }
    run.run(timing, span)
}

/// A stream is `plan.blocks` tasks of one request a cycle, all due by its end.
fn run_sweep(
    disk: &Disk,
    block: Bytes,
    plan: &SweepPlan,
    streams: u64,
    timing: Timing,
    span: Duration,
) -> Outcome {
    let requests = streams * plan.blocks;
    // Each request's part of the sweep, so that the slack register holds what is left.
    let work = disk.costs(block).sweep(requests);
    let part = Duration::from_nanos(work.as_nanos().div_ceil(requests)).min(plan.cycle);
    // No bubble: the gap is there for the command that runs into the cycle.
    let mut run = Run::new(disk, policies::TIME_CYCLE, Duration::ZERO, block);
    for _ in 0..requests {
        run.join(Task::new(plan.cycle, plan.cycle, part), Duration::ZERO);
    }
    run.run(timing, span)
}

fn percent(part: Duration, whole: Duration) -> String {
    let ppm = u128::from(part.as_nanos()) * 1_000_000 / u128::from(whole.as_nanos());
    format!("{}.{} %", ppm / 10_000, ppm / 1_000 % 10)
}

fn minutes() -> u64 {
    std::env::var("SLACKLINE_MINUTES").ok().and_then(|text| text.parse().ok()).unwrap_or(15)
}

/// Show 6: at least `times` as many streams (in hundredths), nobody late.
fn show(block: Bytes, times: u64) {
    let disk = Disk::atlas_ii();
    let span = Duration::from_secs(60 * minutes());
    let costs = disk.costs(block);
    let cost = disk.profile.worst(disk.zone.clone(), block, Direction::Read);
    println!("\n{} KiB blocks, 817 KB/s, outer zone; {} min each", block / Bytes::KIB, minutes());
    println!(
        "{:34} {:>7} {:>9} {:>9} {:>8} {:>6} {:>6}",
        "", "streams", "memory", "cycle", "used", "late", "ratio"
    );
    let (worst, set) = worst_seeks(&disk, block, cost);
    let line = |name: String, streams: u64, memory: Bytes, cycle: String, all: &[Outcome]| {
        let used = percent(all[0].busy, span);
        let late: u64 = all.iter().map(|outcome| outcome.late).sum();
        let ratio = streams * 100 / worst;
        let kib = memory / Bytes::KIB;
        println!(
            "{name:34} {streams:>7} {kib:>5} KiB {cycle:>9} {used:>8} {late:>6} {}.{:02}",
            ratio / 100,
            ratio % 100
        );
    };
    let both = [Timing::Drive, Timing::Bound];
    let all = both.map(|timing| run_worst(&disk, block, &set, timing, span));
    line("worst-case seeks".into(), worst, block * 2 * worst, "-".into(), &all);
    for outcome in all {
        assert_eq!((outcome.late, outcome.overruns), (0, 0));
        assert!(outcome.requests > 1_000 && outcome.best_effort > 100, "{outcome:?}");
    }
    // What the deadlines would admit if nobody ever took the arm out of the zone.
    let inside = costs.request + SweepCosts { stroke: costs.cylinders, ..costs.clone() }.sweep(1)
        - costs.request;
    let (within, _) = worst_seeks(&disk, block, inside);
    println!("{:34} {within:>7}", "worst-case seeks within the zone");
    let plans: Vec<SweepPlan> = costs.plans(RATE, block, disk.gap(), BLOCKS_MAX).collect();
    let most = plans.iter().map(|plan| plan.streams).max().unwrap();
    let mut enough = false;
    let mut seen = 0u64;
    // For each number of streams the shortest cycle that has it: the least memory.
    for plan in &plans {
        if plan.streams <= seen {
            continue;
        }
        seen = plan.streams;
        let all = both.map(|timing| run_sweep(&disk, block, plan, plan.streams, timing, span));
        let name = format!("a sweep of {} a cycle", plan.blocks * plan.streams);
        line(name, plan.streams, plan.memory, format!("{}", plan.cycle), &all);
        for outcome in all {
            assert_eq!((outcome.late, outcome.overruns), (0, 0), "{plan:?}");
            assert!(outcome.requests > 1_000 && outcome.best_effort > 20, "{outcome:?}");
        }
        enough |= plan.streams * 100 >= worst * times;
    }
    let refusal = costs.check(plans[0].cycle, disk.gap(), plans[0].streams + 1).unwrap_err();
    println!("one more in the shortest cycle: {refusal}");
    assert_eq!(refusal.fits, plans[0].streams);
    assert!(enough, "{most} streams with sweeps, {worst} without");
}

#[test]
fn sweeps_take_1_3_times_as_many_streams_in_blocks_of_256_kib() {
    show(Bytes::kib(256), 130);
}

#[test]
fn sweeps_take_1_1_times_as_many_streams_in_blocks_of_1_mib() {
    show(Bytes::MIB, 110);
}

/// The canary: with more streams than the bound takes, on a disk at its bounds, requests
/// are late; so the runs above could have seen it.
#[test]
fn more_streams_than_the_sweep_takes_are_late() {
    let disk = Disk::atlas_ii();
    let block = Bytes::kib(256);
    let plan = disk.costs(block).plans(RATE, block, disk.gap(), 4).last().unwrap();
    let span = Duration::from_secs(120);
    let outcome = run_sweep(&disk, block, &plan, plan.streams + 2, Timing::Bound, span);
    assert!(outcome.late > 10, "{outcome:?}");
}

/// No sweep, in either direction, from wherever the arm was, takes longer than its
/// bound: with the profile's bound for each command, which no drive exceeds.
#[test]
fn no_sweep_takes_longer_than_its_bound() {
    let mut random = Random::new(3);
    let mut nearest = u64::MAX;
    for name in ["quantum-atlas-ii", "atlas-iii", "seagate-cheetah", "laptop-4200"] {
        let model = Model::named(name).unwrap();
        let profile = Profile::of(&model);
        let end = Lba::containing(profile.capacity()).get();
        for _ in 0..2_000 {
            let block = Bytes::kib(*random.pick(&[4, 64, 256, 1024]));
            let start = random.below(end / 2);
            let part = Lba::new(start)..Lba::new(random.between(start + end / 64, end));
            let costs = sweep_costs(&profile, part.clone(), block, Direction::Read).unwrap();
            let count = random.between(1, 40);
            let last = part.start.distance(part.end) - block.div_ceil(units::SECTOR);
            // Evenly spread, or anywhere.
            let even = random.chance(50);
            let mut places: Vec<u64> = (0..count)
                .map(|at| if even { last * at / count } else { random.below(last + 1) })
                .collect();
            places.sort_unstable();
            if random.chance(50) {
                places.reverse();
            }
            let mut head = Lba::new(random.below(end));
            let mut time = Duration::ZERO;
            for place in places {
                let lba = Lba::new(part.start.get() + place);
                let access = Access { lba, len: block, direction: Direction::Read };
                time += profile.bound(head, &Command::Transfer(access));
                head = access.end();
            }
            let bound = costs.sweep(count);
            assert!(time <= bound, "{name}: {count} of {block:?} took {time}, bound {bound}");
            let near = (bound - time).as_nanos() * 1_000 / bound.as_nanos();
            nearest = if count > 4 { nearest.min(near) } else { nearest };
        }
    }
    println!("the nearest came to within {nearest} thousandths of its bound");
    assert!(nearest <= 30, "the bound is too far away to be tested");
}
