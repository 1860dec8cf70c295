//! Large worlds in simulated time: dozens of tasks that join and leave, programs
//! that ask too early, best effort of every kind, costs up to their bounds, disks
//! with a queue, and changes of policy. No request of an admitted task is late.
#![allow(clippy::print_stdout)] // how much was tried is part of the result

use crate::common::Random;
use sched::{Class, Flow, Next, Options, PolicyKind, Predict, Request, Schedule, Task, TaskId};
use std::collections::{BTreeMap, VecDeque};
use units::{Access, Bytes, Command, Direction, Duration, Instant, Lba, SECTOR};

/// Costs a microsecond a sector, wherever the head is.
struct Sectors;

impl Predict for Sectors {
    fn bound(&self, _: Lba, command: &Command) -> Duration {
        match command {
            Command::Transfer(access) => Duration::from_micros(access.len / SECTOR),
            _ => Duration::from_millis(8),
        }
    }
}

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

struct Stream {
    id: TaskId,
    task: Task,
    /// When its program asks next.
    asks: Instant,
    /// Asks this much before its time, or after.
    early: Duration,
    waiting: u64,
}

struct World {
    random: Random,
    schedule: Schedule,
    now: Instant,
    streams: Vec<Stream>,
    /// What the disk works on: key, when it ends.
    disk: VecDeque<(u64, Instant)>,
    classes: BTreeMap<u64, Class>,
    keys: u64,
    best_effort_every: u64,
    done: u64,
    slack_starts: u64,
    refused: u64,
    /// The policy promises to stay within the slack.
    safe: bool,
}

impl World {
    fn new(seed: u64, policy: PolicyKind, depth: u32) -> Self {
        let safe = policy.promise.contracts;
        let mut random = Random::new(seed);
        let burst = *random.pick(&[ms(0), ms(30), ms(100)]);
        let reserve = if safe { *random.pick(&[ms(0), ms(12), ms(50)]) } else { ms(0) };
        let schedule =
            Schedule::new(policy, Options { reserve, burst, depth, ..Options::default() });
        let best_effort_every = *random.pick(&[3, 10, 40, 200]);
        Self {
            random,
            schedule,
            now: Instant::EPOCH,
            streams: Vec::new(),
            disk: VecDeque::new(),
            classes: BTreeMap::new(),
            keys: 0,
            best_effort_every,
            done: 0,
            slack_starts: 0,
            refused: 0,
            safe,
        }
    }

    fn command(&mut self, cost: Duration) -> Command {
        let lba = Lba::new(self.random.within(0, 1 << 30));
        let len = Bytes::new(cost.as_micros() * SECTOR.get());
        Command::Transfer(Access { lba, len, direction: Direction::Read })
    }

    fn submit(&mut self, class: Class, command: Command) {
        self.keys += 1;
        let times = self.schedule.submit(self.now, self.keys, Request { class, command });
        self.classes.insert(self.keys, class);
        if let Class::RealTime(id) = class {
            let stream = self.streams.iter_mut().find(|stream| stream.id == id).unwrap();
            stream.waiting += 1;
            // A program that keeps to its rate, more or less.
            let jitter = Duration::from_micros(self.random.within(0, 3_000));
            stream.asks =
                (times.release + stream.task.period + jitter).saturating_sub(stream.early);
        }
    }

    fn join(&mut self) {
        let period = Duration::from_micros(self.random.within(20_000, 2_000_000));
        let cost = Duration::from_micros(self.random.within(1_000, 20_000)).min(period / 3);
        let spare = (period - cost).as_nanos();
        let deadline = match self.random.within(0, 5) {
            0 => cost + Duration::from_nanos(self.random.within(0, spare)),
            1 => cost + Duration::from_nanos(self.random.within(spare / 20, spare / 8)),
            _ => period,
        };
        let task = Task::new(period, deadline, cost);
        let patience = *self.random.pick(&[ms(0), ms(40), Duration::MAX]);
        match self.schedule.join_within(self.now, task, patience) {
            Ok(id) => {
                let early =
                    *self.random.pick(&[ms(0), ms(0), ms(5), ms(400), Duration::from_secs(3)]);
                self.streams.push(Stream { id, task, asks: self.now, early, waiting: 0 });
            }
            Err(_) => self.refused += 1,
        }
    }

    fn leave(&mut self) {
        if self.streams.len() > 3 {
            let at = self.random.within(0, self.streams.len() as u64 - 1) as usize;
            let stream = self.streams.swap_remove(at);
            for key in self.schedule.leave(stream.id) {
                self.classes.remove(&key);
            }
        }
    }

    fn best_effort(&mut self) {
        for _ in 0..self.random.within(1, 6) {
            let cost = Duration::from_micros(self.random.within(500, 60_000));
            let command = if self.random.one_in(20) { Command::Flush } else { self.command(cost) };
            let class = match self.random.within(0, 9) {
                0 => Class::Background,
                1 | 2 => Class::BestEffort {
                    synchronous: self.random.one_in(2),
                    flow: Flow(self.random.within(0, 2)),
                    ordered: true,
                },
                kind => Class::best_effort(kind > 5),
            };
            self.submit(class, command);
        }
    }

    /// Programs ask; streams come and go.
    fn events(&mut self) {
        for at in 0..self.streams.len() {
            let stream = &self.streams[at];
            if stream.asks <= self.now && stream.waiting < 3 && !self.random.one_in(50) {
                let share = self.random.within(1, 4);
                let (id, cost) = (self.streams[at].id, self.streams[at].task.cost);
                let cost = if share == 1 { cost / 2 } else { cost };
                let command = self.command(cost);
                self.submit(Class::RealTime(id), command);
            }
        }
        if self.random.one_in(self.best_effort_every) && self.classes.len() < 200 {
            self.best_effort();
        }
        match self.random.within(0, 2_000) {
            0..20 => self.join(),
            20..24 => self.leave(),
            24..34 => {
                let key = self.random.within(self.keys.saturating_sub(20), self.keys);
                let real_time = matches!(self.classes.get(&key), Some(Class::RealTime(_)));
                if !real_time && self.schedule.cancel(key) {
                    self.classes.remove(&key);
                }
            }
            _ => {}
        }
    }

    /// Gives the disk what the schedule wants it to have.
    fn ask(&mut self) {
        loop {
            let queues = self.schedule.queues();
            let others = queues.has_best_effort() || queues.background_first().is_some();
            let before = (self.safe && others).then(|| self.schedule.clone());
            let known = self.schedule.queues().ready_first().is_some();
            let Next::Start { key, predicted } = self.schedule.next(self.now, &Sectors) else {
                return;
            };
            if !matches!(self.classes[&key], Class::RealTime(_)) {
                // What is remembered of the slack is never more than there is.
                if let Some(slack) = before.and_then(|it| it.slack_now(self.now, predicted)) {
                    assert_eq!(slack, predicted, "at {}", self.now);
                }
                self.slack_starts += u64::from(known);
            }
            let nanos = predicted.as_nanos();
            let actual = match self.random.within(0, 2) {
                0 => nanos,
                1 => self.random.within(1, nanos),
                _ => self.random.within(nanos * 9 / 10, nanos),
            };
            let from = self.disk.back().map_or(self.now, |&(_, end)| end).max(self.now);
            self.disk.push_back((key, from + Duration::from_nanos(actual)));
        }
    }

    fn run(&mut self, until: Instant, check: impl Fn(&World, u64)) {
        while self.now < until {
            self.events();
            self.ask();
            let tick = Duration::from_micros(self.random.within(50, 3_000));
            let mut next = self.now + tick;
            if let Some(&(key, end)) = self.disk.front().filter(|&&(_, end)| end <= next) {
                next = end;
                self.now = next;
                self.disk.pop_front();
                let outcome = self.schedule.finished(end, key);
                assert!(outcome.overrun.is_zero(), "the disk keeps its bounds");
                if let Some(Class::RealTime(id)) = self.classes.remove(&key)
                    && let Some(stream) = self.streams.iter_mut().find(|stream| stream.id == id)
                {
                    stream.waiting -= 1;
                }
                self.done += 1;
                check(self, key);
            }
            self.now = next;
        }
    }
}

#[test]
fn no_request_is_late_while_costs_keep_to_their_bounds() {
    let (mut done, mut in_slack, mut refused, mut computed) = (0, 0, 0, 0);
    for seed in 0..40 {
        let policy = *[PolicyKind::SLACK, PolicyKind::DELTA_L].get(seed as usize % 2).unwrap();
        let depth = [1, 1, 2, 8][seed as usize / 2 % 4];
        let mut world = World::new(seed, policy, depth);
        for _ in 0..80 {
            world.join();
        }
        for part in 1..=4 {
            world.run(Instant::EPOCH + Duration::from_secs(5 * part), |world, _| {
                let counts = world.schedule.counts();
                assert_eq!(
                    counts.late, 0,
                    "seed {seed}, {policy}, depth {depth}, at {}",
                    world.now
                );
            });
            if seed % 5 == 0 {
                let other = if part % 2 == 0 { PolicyKind::SLACK } else { PolicyKind::DELTA_L };
                world.schedule.set_policy(other);
            }
        }
        done += world.done;
        in_slack += world.slack_starts;
        refused += world.refused;
        computed += world.schedule.counts().slack_computed;
    }
    println!("{done} requests done, {in_slack} of best effort before waiting ones under contract");
    println!("{refused} tasks refused; the slack was computed {computed} times");
    assert!(done > 60_000 && in_slack > 1_000 && refused > 10);
}

/// The harness proves itself: the same worlds under policies without a promise.
#[test]
fn the_same_worlds_are_late_without_slack() {
    for policy in [PolicyKind::EDF, policies::FCFS] {
        let mut late = 0;
        for seed in 0..6 {
            let mut world = World::new(seed, policy, 1);
            world.random.next();
            (0..80).for_each(|_| world.join());
            world.run(Instant::EPOCH + Duration::from_secs(10), |_, _| {});
            late += u64::from(world.schedule.counts().late > 0);
        }
        assert!(late > 3, "{policy}: {late} of 6");
    }
}
