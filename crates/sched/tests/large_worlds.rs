//! Large worlds, many requests: from a hundred to five thousand streams with periods
//! from 10 ms to 30 s, up to 0.99 of the disk promised, streams that come and go, costs
//! up to their bounds, and best effort that always asks for as much as the reserve
//! covers. No request of an admitted task is late.
//!
//! `SLACKLINE_LARGE=100000000` says how many requests; a few hundred thousand by
//! default. Each world is repeatable from its seed, whatever the threads do.
#![allow(clippy::print_stdout)] // how much was tried is part of the result

mod common;

use common::Random;
use sched::{
    Choice, Class, Next, Options, Policy, PolicyKind, Predict, Request, Schedule, Task, TaskId,
    View,
};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicU64, Ordering};
use units::{Access, Bytes, Command, Direction, Duration, Instant, Lba, SECTOR};

/// Costs a microsecond a sector, wherever the head is.
struct Sectors;

impl Predict for Sectors {
    fn bound(&self, _: Lba, command: &Command) -> Duration {
        let access = command.access().expect("only transfers here");
        Duration::from_micros(access.len / SECTOR)
    }
}

/// The longest period.
const PERIOD_MAX_US: u64 = 30_000_000;

/// Where so much of the disk is promised the slack is computed at nearly every
/// decision, over many deadlines: such a world gets one in so many of the requests of
/// another. And, since each computation looks at all tasks, under `slack` one of a
/// thousand tasks gets a tenth of what one of a hundred does.
const TIGHT_PARTS: u64 = 50;

/// Best effort that is always there.
const GREEDY: u64 = 2;

/// Of what kind a world is, drawn from its seed.
#[derive(Clone, Copy, Debug)]
struct Shape {
    tasks_max: u64,
    /// Promised until more than so many parts of a thousand are.
    promised: u64,
    period_min_us: u64,
    reserve: Duration,
    burst: Duration,
    /// Every cost at its bound; else a third of them.
    at_bounds: bool,
}

impl Shape {
    fn of(random: &mut Random) -> Self {
        let period_min_us = *random.pick(&[10_000, 10_000, 20_000, 100_000]);
        let reserve = Duration::from_micros(period_min_us / *random.pick(&[4, 10]));
        Self {
            tasks_max: *random.pick(&[100, 200, 400, 1_000, 5_000]),
            promised: *random.pick(&[600, 900, 970, 990, 990]),
            period_min_us,
            reserve,
            burst: reserve * *random.pick(&[0, 1, 3]),
            at_bounds: random.one_in(2),
        }
    }
}

struct Stream {
    /// None once it has left.
    id: Option<TaskId>,
    task: Task,
    /// Asks this much before its next release.
    early: Duration,
    /// Asks late by up to this.
    jitter_us: u64,
}

struct World {
    random: Random,
    shape: Shape,
    schedule: Schedule,
    now: Instant,
    streams: Vec<Stream>,
    agenda: BinaryHeap<Reverse<(Instant, u32)>>,
    busy: Option<(Instant, u64)>,
    keys: u64,
    done: u64,
    best_effort: u64,
    late: u64,
}

impl World {
    fn new(seed: u64, policy: impl FnOnce(Options) -> Schedule) -> Self {
        let mut random = Random::new(seed);
        let shape = Shape::of(&mut random);
        let options = Options { reserve: shape.reserve, burst: shape.burst, ..Options::default() };
        let mut world = Self {
            random,
            shape,
            schedule: policy(options),
            now: Instant::EPOCH,
            streams: Vec::new(),
            agenda: BinaryHeap::new(),
            busy: None,
            keys: 0,
            done: 0,
            best_effort: 0,
            late: 0,
        };
        world.fill();
        (0..GREEDY).for_each(|_| world.offer());
        world
    }

    /// Streams join until the disk is as full as it shall be.
    fn fill(&mut self) {
        let mut refused = 0;
        while (self.schedule.tasks().len() as u64) < self.shape.tasks_max
            && self.schedule.tasks().utilisation().ppm() < self.shape.promised * 1_000
            && refused < 20
        {
            refused += u64::from(!self.join());
        }
    }

    fn join(&mut self) -> bool {
        let shape = self.shape;
        // Evenly over the octaves.
        let octaves = (PERIOD_MAX_US / shape.period_min_us).ilog2() as u64;
        let low = shape.period_min_us << self.random.within(0, octaves);
        let period_us = self.random.within(low, low * 2).min(PERIOD_MAX_US);
        let share = period_us * shape.promised / 1_000 / shape.tasks_max;
        let cost_us = self.random.within(share / 2, share * 2);
        let cost_us = cost_us.clamp(5, shape.period_min_us / 5);
        let [period, cost] = [period_us, cost_us].map(Duration::from_micros);
        let deadline = if self.random.one_in(8) { period - (period - cost) / 4 } else { period };
        let task = Task::new(period, deadline, cost);
        let patience = *self.random.pick(&[Duration::ZERO, period / 2, Duration::MAX]);
        let Ok(id) = self.schedule.join_within(self.now, task, patience) else { return false };
        let early = *self.random.pick(&[Duration::ZERO, Duration::ZERO, period / 2]);
        let jitter_us = *self.random.pick(&[0, 0, period_us / 4]);
        self.streams.push(Stream { id: Some(id), task, early, jitter_us });
        self.agenda.push(Reverse((self.now, self.streams.len() as u32 - 1)));
        true
    }

    fn leave(&mut self) {
        let at = self.random.within(0, self.streams.len() as u64 - 1) as usize;
        if let Some(id) = self.streams[at].id.take() {
            self.schedule.leave(id);
        }
    }

    fn submit(&mut self, class: Class, cost: Duration) -> Instant {
        self.keys += 1;
        let lba = Lba::new(self.random.within(0, 1 << 30));
        let len = Bytes::new(cost.as_micros() * SECTOR.get());
        let access = Access { lba, len, direction: Direction::Read };
        let request = Request { class, command: Command::Transfer(access) };
        self.schedule.submit(self.now, self.keys, request).release
    }

    /// As much as the reserve covers.
    fn offer(&mut self) {
        self.submit(Class::best_effort(true), self.shape.reserve);
    }

    fn ask(&mut self, index: u32) {
        let Stream { id: Some(id), task, early, jitter_us } = self.streams[index as usize] else {
            return;
        };
        let release = self.submit(Class::RealTime(id), task.cost);
        let jitter = Duration::from_micros(self.random.within(0, jitter_us));
        let next = (release + task.period + jitter).saturating_sub(early).max(self.now);
        self.agenda.push(Reverse((next, index)));
    }

    fn start(&mut self) -> Option<Instant> {
        match self.schedule.next(self.now, &Sectors) {
            Next::Wait { until } => until,
            Next::Start { key, predicted } => {
                let nanos = predicted.as_nanos();
                let at_bounds = self.shape.at_bounds || self.random.one_in(3);
                let actual = if at_bounds { nanos } else { self.random.within(nanos / 2, nanos) };
                self.busy = Some((self.now + Duration::from_nanos(actual), key));
                None
            }
        }
    }

    /// Runs until so many requests are done.
    fn run(&mut self, requests: u64) {
        let mut wake = None;
        while self.done < requests {
            let agenda = self.agenda.peek().map(|Reverse((at, _))| *at);
            let end = self.busy.map(|(end, _)| end);
            let next = [agenda, end, wake].into_iter().flatten().min().expect("it goes on");
            self.now = self.now.max(next);
            if end == Some(self.now) {
                self.finish();
            }
            while let Some(&Reverse((at, index))) = self.agenda.peek()
                && at <= self.now
            {
                self.agenda.pop();
                self.ask(index);
            }
            if self.busy.is_none() {
                wake = self.start();
            }
        }
    }

    fn finish(&mut self) {
        let (end, key) = self.busy.take().expect("the disk ends what it began");
        let outcome = self.schedule.finished(end, key);
        self.done += 1;
        self.late += u64::from(!outcome.late_by.is_zero());
        if !matches!(outcome.class, Class::RealTime(_)) {
            self.best_effort += 1;
            self.offer();
        }
        if self.done.is_multiple_of(1_000) {
            (0..self.random.within(1, 5)).for_each(|_| self.leave());
            self.fill();
        }
    }
}

/// Counts of all worlds, and how far they are.
#[derive(Default)]
struct Sum {
    next: AtomicU64,
    done: AtomicU64,
    best_effort: AtomicU64,
    tasks_max: AtomicU64,
}

#[test]
fn no_request_is_late_in_large_worlds() {
    let wanted = std::env::var("SLACKLINE_LARGE").ok().and_then(|text| text.parse().ok());
    let wanted: u64 = wanted.unwrap_or(200_000);
    let each = (wanted / 10).clamp(20_000, 1_000_000);
    let sum = Sum::default();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while sum.done.load(Ordering::Relaxed) < wanted {
                    one_world(sum.next.fetch_add(1, Ordering::Relaxed), each, &sum);
                }
            });
        }
    });
    let [done, best_effort] = [&sum.done, &sum.best_effort].map(|it| it.load(Ordering::Relaxed));
    let worlds = sum.next.load(Ordering::Relaxed);
    println!("{done} requests in {worlds} worlds, {best_effort} of best effort; none late");
    assert!(done >= wanted && best_effort > done / 100);
    assert!(sum.tasks_max.load(Ordering::Relaxed) > 3_000, "some worlds are large");
}

fn one_world(seed: u64, requests: u64, sum: &Sum) {
    let policy = [PolicyKind::SLACK, PolicyKind::SLACK, PolicyKind::DELTA_L][seed as usize % 3];
    let mut world = World::new(seed, |options| Schedule::new(policy, options));
    let tasks = world.schedule.tasks().len();
    let parts = match world.shape.promised >= 900 {
        _ if policy != PolicyKind::SLACK => 1,
        true => TIGHT_PARTS * (tasks as u64 / 100).max(1),
        false => (tasks as u64 / 100).max(1),
    };
    let requests = (requests / parts).max(200);
    let begin = std::time::Instant::now();
    world.run(requests);
    assert_eq!(world.late, 0, "seed {seed}, {policy}, {:?}, {tasks} tasks", world.shape);
    let done = sum.done.fetch_add(world.done, Ordering::Relaxed) + world.done;
    sum.best_effort.fetch_add(world.best_effort, Ordering::Relaxed);
    sum.tasks_max.fetch_max(tasks as u64, Ordering::Relaxed);
    println!(
        "{done:>10}: seed {seed}, {policy}, {tasks} tasks, {}; {:.0} requests/s",
        world.schedule.tasks().utilisation(),
        world.done as f64 / begin.elapsed().as_secs_f64(),
    );
}

/// `slack`, but it believes that there is one maximal command more.
#[derive(Clone, Debug)]
struct OneTooMany;

impl Policy for OneTooMany {
    fn choose(&mut self, view: &mut View<'_>) -> Choice {
        let ready = view.queues().ready_first().map(|ready| ready.key);
        let offer = view.queues().best_effort_oldest(true).copied();
        if let Some(offer) = offer
            && view.slack_covers(view.predicted(&offer).saturating_sub(view.options().reserve))
        {
            return Choice::Start(offer.key);
        }
        ready.map_or(Choice::Wait { until: view.slack_may_grow() }, Choice::Start)
    }
    fn clone_box(&self) -> Box<dyn Policy> {
        Box::new(self.clone())
    }
}

/// The harness proves itself: a planted bug, and a policy that promises nothing.
#[test]
fn one_command_more_than_the_slack_is_late_and_so_is_fcfs() {
    let late = |policy: &dyn Fn(Options) -> Schedule| {
        let worlds = (0..40).map(|seed| World::new(seed, policy));
        let small = worlds.filter(|world| world.shape.tasks_max <= 200).take(8);
        let late = small.filter_map(|mut world| {
            world.run(1_000);
            (world.late > 0).then_some(())
        });
        late.count()
    };
    let planted = late(&|options| Schedule::with_policy(Box::new(OneTooMany), options));
    assert!(planted >= 3, "{planted} of 8");
    let fcfs = late(&|options| Schedule::new(policies::FCFS, options));
    assert!(fcfs >= 3, "{fcfs} of 8");
}
