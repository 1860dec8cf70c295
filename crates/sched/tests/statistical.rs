//! Statistical admission: more streams than the bounds allow, and no more of their
//! requests late than was said. Costs are drawn, the production schedule serves them.
//!
//! `SLACKLINE_REQUESTS`: how many requests each load serves (default 150,000).
#![allow(clippy::print_stdout)] // how much was covered is part of the result

use crate::common::Random;
use sched::{
    Chance, Class, Next, Options, PolicyKind, Predict, Request, Schedule, StatisticalSet,
    StatisticalTask, Task, TaskSet,
};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use units::{Access, Bytes, Command, Direction, Duration, Instant, Lba};

/// How a cost is drawn, in microseconds.
#[derive(Clone, Copy, Debug)]
enum Costs {
    /// Anywhere between, each as likely: rotation and seek of a disk at random places.
    Even { least: u64, most: u64 },
    /// The one, or once in so many times the other: a retry, a pause.
    Rare { often: u64, rarely: u64, once_in: u64 },
}

impl Costs {
    fn draw(self, random: &mut Random) -> u64 {
        match self {
            Self::Even { least, most } => random.within(least, most),
            Self::Rare { rarely, once_in, .. } if random.one_in(once_in) => rarely,
            Self::Rare { often, .. } => often,
        }
    }

    /// Mean, variance and bound, rounded up.
    fn known(self) -> (u64, u64, u64) {
        match self {
            Self::Even { least, most } => {
                let width = most - least + 1;
                ((least + most).div_ceil(2), (width * width).div_ceil(12), most)
            }
            Self::Rare { often, rarely, once_in } => {
                let (rise, others) = (rarely - often, once_in - 1);
                let variance = (rise * rise * others).div_ceil(once_in * once_in);
                (often + rise.div_ceil(once_in), variance, rarely)
            }
        }
    }

    fn task(self, period: u64, deadline: u64) -> StatisticalTask {
        let (mean, variance, bound) = self.known();
        let deviation = (variance as f64).sqrt().ceil() as u64;
        let [period, deadline, bound] = [period, deadline, bound].map(Duration::from_micros);
        StatisticalTask {
            task: Task::new(period, deadline, bound),
            mean: Duration::from_micros(mean),
            deviation: Duration::from_micros(deviation),
        }
    }
}

struct Bound(Duration);
impl Predict for Bound {
    fn bound(&self, _: Lba, _: &Command) -> Duration {
        self.0
    }
}

/// A best-effort command takes as long as the reserve.
const RESERVE: Duration = Duration::from_millis(40);

fn command() -> Command {
    let lba = Lba::new(0);
    Command::Transfer(Access { lba, len: Bytes::kib(64), direction: Direction::Read })
}

/// The tasks at work.
struct World<'a> {
    tasks: &'a [(StatisticalTask, Costs)],
    schedule: Schedule,
    ids: Vec<sched::TaskId>,
    random: Random,
    asks: BinaryHeap<Reverse<(Instant, usize)>>,
    /// Whose request this is; None for best effort.
    owners: BTreeMap<u64, Option<usize>>,
    keys: u64,
    best_effort: bool,
}

impl<'a> World<'a> {
    /// Releases are a period apart, from phases at random or from all at once.
    fn new(tasks: &'a [(StatisticalTask, Costs)], together: bool, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let options = Options { admission: false, reserve: RESERVE, ..Options::default() };
        let mut schedule = Schedule::new(PolicyKind::EDF, options);
        let (mut asks, mut ids) = (BinaryHeap::new(), Vec::new());
        for (at, (one, _)) in tasks.iter().enumerate() {
            ids.push(schedule.join(Instant::EPOCH, one.task).expect("admission is off"));
            let phase = if together { 0 } else { random.within(0, one.task.period.as_nanos()) };
            asks.push(Reverse((Instant::EPOCH + Duration::from_nanos(phase), at)));
        }
        let owners = BTreeMap::new();
        Self { tasks, schedule, ids, random, asks, owners, keys: 0, best_effort: false }
    }

    fn submit(&mut self, at: Instant, owner: Option<usize>) {
        let class = owner.map_or(Class::best_effort(false), |task| Class::RealTime(self.ids[task]));
        self.schedule.submit(at, self.keys, Request { class, command: command() });
        self.owners.insert(self.keys, owner);
        self.keys += 1;
    }

    /// What is asked for up to an instant, each at its time.
    fn ask(&mut self, until: Instant) {
        while let Some(&Reverse((at, task))) = self.asks.peek()
            && at <= until
        {
            self.asks.pop();
            self.asks.push(Reverse((at + self.tasks[task].0.task.period, task)));
            self.submit(at, Some(task));
        }
    }

    /// Serves so many requests, with best effort in between; returns how many were late.
    fn late(mut self, requests: u64) -> u64 {
        let longest = self.tasks.iter().map(|(one, _)| one.task.cost).max().unwrap();
        let bound = Bound(longest.max(RESERVE));
        let (mut now, mut served) = (Instant::EPOCH, 0);
        while served < requests {
            self.ask(now);
            if !self.best_effort && self.random.one_in(4) {
                self.best_effort = true;
                self.submit(now, None);
            }
            match self.schedule.next(now, &bound) {
                Next::Start { key, .. } => {
                    let owner = self.owners.remove(&key).unwrap();
                    now += match owner {
                        Some(task) => {
                            Duration::from_micros(self.tasks[task].1.draw(&mut self.random))
                        }
                        None => RESERVE,
                    };
                    self.ask(now);
                    self.schedule.finished(now, key);
                    served += u64::from(owner.is_some());
                    self.best_effort &= owner.is_some();
                }
                Next::Wait { until } => {
                    let ask = self.asks.peek().unwrap().0.0;
                    now = until.unwrap_or(ask).min(ask).max(now + Duration::from_nanos(1));
                }
            }
        }
        self.schedule.counts().late
    }
}

fn requests() -> u64 {
    let set = std::env::var("SLACKLINE_REQUESTS").ok().and_then(|text| text.parse().ok());
    set.unwrap_or(150_000)
}

/// As many of these in turn as the promise allows.
fn fill(miss: Chance, kinds: &[(StatisticalTask, Costs)]) -> Vec<(StatisticalTask, Costs)> {
    let mut set = StatisticalSet::new(RESERVE, miss);
    let mut taken = Vec::new();
    for kind in kinds.iter().cycle() {
        if set.add(kind.0).is_err() {
            return taken;
        }
        taken.push(*kind);
    }
    unreachable!("no disk takes them all")
}

/// How many the bounds allow.
fn deterministic(kinds: &[(StatisticalTask, Costs)]) -> usize {
    let mut set = TaskSet::new(RESERVE);
    kinds.iter().cycle().take_while(|kind| set.add(kind.0.task).is_ok()).count()
}

/// Loads, each a mix of streams: the costs of a hard disk, costs with a rare long one
/// (the least that mean, deviation and bound leave open), and both with deadlines of
/// their own.
fn loads() -> Vec<(&'static str, Vec<(StatisticalTask, Costs)>)> {
    let disk = Costs::Even { least: 30_000, most: 65_000 };
    let quick = Costs::Even { least: 4_000, most: 24_000 };
    let rare = Costs::Rare { often: 6_000, rarely: 60_000, once_in: 50 };
    let kind = |costs: Costs, period, deadline| (costs.task(period, deadline), costs);
    vec![
        ("1 MiB of a film", vec![kind(disk, 1_253_000, 1_253_000)]),
        ("rare long ones", vec![kind(rare, 1_000_000, 1_000_000)]),
        (
            "a mix",
            vec![
                kind(quick, 400_000, 400_000),
                kind(rare, 900_000, 700_000),
                kind(disk, 3_000_000, 3_000_000),
            ],
        ),
    ]
}

#[test]
fn no_more_requests_are_late_than_was_said() {
    let mut beyond = 0;
    for (name, kinds) in loads() {
        let bounds = deterministic(&kinds);
        for per in [2, 50, 1_000, 1_000_000] {
            let miss = Chance::one_in(per);
            let tasks = fill(miss, &kinds);
            let mut set = StatisticalSet::new(RESERVE, miss);
            for (one, _) in &tasks {
                set.add(*one).expect("it was taken before");
            }
            let analysis = set.analysis().unwrap();
            assert!(analysis.miss <= miss);
            let requests = requests();
            let late =
                [false, true].map(|together| World::new(&tasks, together, per + 1).late(requests));
            println!(
                "{name}: {bounds} streams by bounds, {} late at most {}: stated {}, {} by means, {} by bounds; late {late:?} of {requests} each",
                tasks.len(),
                miss,
                analysis.miss,
                analysis.utilisation,
                analysis.utilisation_bounds
            );
            // The expected number, and what chance adds to it.
            let stated = requests * analysis.miss.per_billion() / 1_000_000_000;
            for late in late {
                assert!(late <= stated + 3 * stated.isqrt() + 2, "{late} late, stated {stated}");
            }
            assert!(tasks.len() >= bounds, "fewer than by the bounds alone");
            beyond += u64::from(tasks.len() > bounds);
        }
    }
    assert!(beyond >= 8, "no better than the bounds: {beyond}");
}

/// The canary: a set that fits by its means alone, as if the promise were ignored, is
/// late more often than once in a thousand; so the test above would have seen it.
#[test]
fn a_set_that_fits_by_its_means_alone_is_late_more_often() {
    for (name, kinds) in loads() {
        let set = StatisticalSet::new(RESERVE, Chance::one_in(1_000));
        let mut tasks: Vec<(StatisticalTask, Costs)> = Vec::new();
        let share = |tasks: &[(StatisticalTask, Costs)]| -> u64 {
            let part = |one: &StatisticalTask| {
                one.mean.as_nanos() * 1_000_000 / one.task.period.as_nanos()
            };
            tasks.iter().map(|(one, _)| part(one)).sum()
        };
        for kind in kinds.iter().cycle() {
            tasks.push(*kind);
            if share(&tasks) > 990_000 {
                tasks.pop();
                break;
            }
        }
        let refused = tasks.iter().try_fold(set, |mut set, (one, _)| set.add(*one).map(|_| set));
        let refusal = refused.expect_err("more than the promise allows");
        let requests = requests() / 2;
        let late = World::new(&tasks, true, 1).late(requests);
        println!("{name}: {} streams, {late} of {requests} late; {refusal}", tasks.len());
        assert!(late * 1_000 > requests * 3, "{late} of {requests}");
    }
}

/// Deadlines of many periods let more be admitted, and a queue that is long lasts: what is admitted at
/// the longest of them, served in its order by a disk that does nothing else, is late no more often
/// than was said. (With lines that begin below zero 99 tasks were taken in
/// the place of 95, and 190,887 of ten million requests were late.)
#[test]
fn no_more_are_late_than_was_said_where_they_may_wait_for_many_periods() {
    const DEADLINE: u64 = 8_000_000;
    let costs = Costs::Rare { often: 400, rarely: 60_400, once_in: 100 };
    for (period, per) in [(100_000, 1_000_000), (70_000, 1_000_000), (100_000, 1_000)] {
        let miss = Chance::one_in(per);
        let tasks = fill(miss, &[(costs.task(period, DEADLINE), costs)]);
        let (mut random, mut backlog) = (Random::new(per), 0u64);
        let (mut late, mut requests) = (0, 0u64);
        while requests < 10_000_000 {
            for (_, costs) in &tasks {
                backlog += costs.draw(&mut random);
                late += u64::from(backlog > DEADLINE);
            }
            requests += tasks.len() as u64;
            backlog = backlog.saturating_sub(period);
        }
        let stated = requests * miss.per_billion() / 1_000_000_000;
        let share = tasks.len() as u64 * 1_000 * 100 / period;
        println!("{per}: {} of {period} us, {share} % on average, {late} late", tasks.len());
        assert!(late <= stated + 3 * stated.isqrt() + 2, "{late} late, stated {stated}");
        assert!(share >= 85, "{share} % on average: more can be promised");
    }
}

/// The exponent and the sum over cells, against the same in floating point.
#[test]
fn the_stated_probability_is_that_of_bennetts_inequality() {
    let costs = Costs::Even { least: 30_000, most: 65_000 };
    let one = costs.task(1_253_000, 1_253_000);
    for streams in [18, 20, 21, 22, 23, 24] {
        let mut set = StatisticalSet::new(RESERVE, Chance::ALWAYS);
        for _ in 0..streams {
            set.add(one).expect("anything may be late");
        }
        let stated = set.analysis().unwrap().miss.per_billion() as f64 / 1e9;
        let (period, mean) = (one.task.period.as_nanos() as f64, one.mean.as_nanos() as f64);
        let (sd, bound) = (one.deviation.as_nanos() as f64, one.task.cost.as_nanos() as f64);
        // Cells from deadline to deadline.
        let mut expected = 0.0;
        for periods in 1..200 {
            let n = f64::from(streams * periods);
            let room = f64::from(periods) * period - RESERVE.as_nanos() as f64;
            if n * bound > room {
                let t = (room - n * mean).max(0.0);
                let (variance, above) = (n * sd * sd, bound - mean);
                let u = above * t / variance;
                let bennett = variance / (above * above) * ((1.0 + u) * u.ln_1p() - u);
                let bernstein = t * t / (2.0 * (variance + above * t / 3.0));
                assert!(bennett >= bernstein);
                expected += (-bennett).exp();
            }
        }
        println!("{streams}: stated {stated:e}, in floating point about {expected:e}");
        assert!(stated < expected * 1.1 + 1e-8);
        assert!(stated >= expected.min(1.0), "{stated:e} {expected:e}");
    }
}

#[test]
fn a_set_whose_bounds_fit_is_never_late() {
    let one = Costs::Even { least: 5_000, most: 10_000 }.task(100_000, 100_000);
    let mut set = StatisticalSet::new(Duration::ZERO, Chance::NEVER);
    let mut fits = 0;
    while set.add(one).is_ok() {
        fits += 1;
    }
    assert_eq!(set.analysis().unwrap().miss, Chance::NEVER);
    assert_eq!((fits, set.len()), (9, 9), "a little is lost to the cells: 10 would fill the disk");
    let refusal = set.check(&one).unwrap_err();
    println!("{refusal}");
    assert!(set.remove(&one) && set.len() == 8 && set.check(&one).is_ok());
    assert!(!set.remove(&Costs::Even { least: 1, most: 2 }.task(10, 10)));
    assert_eq!(format!("{}", Chance::one_in(1_000_000)), "once in 1000000");
}
