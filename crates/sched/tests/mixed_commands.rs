//! Requests in chunks, between whose commands nearer deadlines go, beside requests in parts, with
//! nothing between theirs, beside whole ones, requests to servers and greedy best effort, with a gap of
//! the host after each command and each part: nobody is late, while contracts come, go and change.
//!
//! `SLACKLINE_MIXED=1000000` says how many random worlds, and `SLACKLINE_MIXED_FROM` from which one on.
#![allow(clippy::print_stdout)] // how much was tried is part of the result

use crate::common::Random;
use sched::{
    Class, Contract, First, Next, Options, PolicyKind, Predict, Request, Rest, Schedule, Task,
    TaskId,
};
use std::collections::BTreeMap;
use units::{Access, Command, Direction, Duration, Instant, Lba, SECTOR};

const fn ticks(ticks: u64) -> Duration {
    Duration::from_nanos(ticks)
}

const fn at(tick: u64) -> Instant {
    Instant::from_nanos(tick)
}

/// Each request has so many places of its own.
const PLACES: u64 = 100_000;

/// How a request is served.
#[derive(Clone, Copy, Debug)]
struct Shape {
    /// A command that goes on where the last one ended.
    chunk: u64,
    chunks: u64,
    /// One from elsewhere costs so much more, where there are several chunks.
    back: u64,
    /// Of a whole request: in so many parts.
    parts: u64,
}

impl Shape {
    fn random(random: &mut Random) -> Self {
        match random.within(0, 2) {
            0 => {
                let (chunk, chunks) = (random.within(1, 5), random.within(2, 5));
                Self { chunk, chunks, back: random.within(0, 3), parts: 1 }
            }
            1 => {
                Self { chunk: random.within(2, 12), chunks: 1, back: 0, parts: random.within(2, 5) }
            }
            _ => Self { chunk: random.within(1, 12), chunks: 1, back: 0, parts: 1 },
        }
    }

    /// `unsaid`: so much less is said of a way back.
    fn task(&self, period: u64, deadline: u64, unsaid: u64) -> Task {
        let cost = self.chunk * self.chunks + self.back;
        let task = Task::new(ticks(period), ticks(deadline), ticks(cost));
        if self.chunks == 1 {
            return task.in_parts(self.parts as u32);
        }
        let back = self.back.saturating_sub(unsaid);
        task.in_chunks(ticks(self.chunk + back), self.chunks as u32, ticks(back))
    }

    fn command(&self, key: u64, done: u64) -> Command {
        let lba = Lba::new(key * PLACES + done * self.chunk);
        let len = SECTOR * ((self.chunks - done) * self.chunk);
        Command::Transfer(Access { lba, len, direction: Direction::Read })
    }
}

/// What requests take as the heads lie.
struct Heads<'a> {
    shapes: &'a BTreeMap<u64, Shape>,
    gap: u64,
}

impl Heads<'_> {
    fn of(&self, command: &Command) -> (Access, Shape) {
        let access = *command.access().expect("nothing is flushed");
        (access, self.shapes[&(access.lba.get() / PLACES)])
    }

    fn back(&self, from: Lba, access: &Access, shape: &Shape) -> u64 {
        if from == access.lba { 0 } else { shape.back }
    }
}

impl Predict for Heads<'_> {
    fn bound(&self, from: Lba, command: &Command) -> Duration {
        let (access, shape) = self.of(command);
        ticks(access.len / SECTOR + self.back(from, &access, &shape))
    }

    fn bound_of(&self, from: Lba, key: u64, command: &Command) -> Duration {
        self.bound(from, command) + ticks(self.gap * u64::from(self.gaps_within(key)))
    }

    fn gaps_within(&self, key: u64) -> u32 {
        (self.shapes[&key].parts - 1) as u32
    }

    fn first_of(&self, from: Lba, _: u64, command: &Command) -> Option<First> {
        let (access, shape) = self.of(command);
        if shape.chunks == 1 {
            return None;
        }
        let (len, left) = (SECTOR * shape.chunk, access.len / SECTOR - shape.chunk);
        Some(First {
            command: Command::Transfer(Access { len, ..access }),
            bound: ticks(shape.chunk + self.back(from, &access, &shape)),
            rest: Rest { bound: ticks(left), commands: (left / shape.chunk) as u32 },
        })
    }
}

struct Member {
    id: TaskId,
    shape: Shape,
    /// Its requests are as long as this and shorter.
    is_server: bool,
    period: u64,
    asks: u64,
}

struct World {
    random: Random,
    schedule: Schedule,
    gap: u64,
    /// What a way back costs more than is said.
    unsaid: u64,
    /// Everything at its bounds, and programs that ask as soon as they may.
    strict: bool,
    members: Vec<Member>,
    shapes: BTreeMap<u64, Shape>,
    done: BTreeMap<u64, u64>,
    now: u64,
    busy: Option<(u64, u64)>,
    /// The host is about the last command until then.
    host: u64,
    keys: u64,
    late: u64,
    promised: u64,
    best_effort: u64,
    /// How often another request went between the commands of one.
    between: u64,
    parted: u64,
    /// Requests to servers that were under contract.
    served: u64,
    last: u64,
}

impl World {
    fn new(seed: u64, unsaid: u64) -> Self {
        let mut random = Random::new(seed);
        let (gap, strict) = (random.within(0, 4), random.one_in(2));
        let reserve = ticks(*random.pick(&[0, 0, 5, 15]));
        let burst = ticks(*random.pick(&[0, 0, 20]));
        let options = Options { reserve, burst, gap: ticks(gap), ..Options::default() };
        let mut world = Self {
            random,
            schedule: Schedule::new(PolicyKind::SLACK, options),
            gap,
            unsaid,
            strict,
            members: Vec::new(),
            shapes: BTreeMap::new(),
            done: BTreeMap::new(),
            now: 0,
            busy: None,
            host: 0,
            keys: 0,
            late: 0,
            promised: 0,
            best_effort: 0,
            between: 0,
            parted: 0,
            served: 0,
            last: 0,
        };
        let most = *world.random.pick(&[4, 10, 30]);
        (0..most).for_each(|_| world.join());
        world
    }

    fn now_and_then(&mut self, one_in: u64) -> bool {
        !self.strict && self.random.one_in(one_in)
    }

    /// A period and a deadline for requests of this shape.
    fn times(&mut self, shape: &Shape) -> (u64, u64) {
        let cost = shape.chunk * shape.chunks + shape.back;
        let period = self.random.within(cost * 4, cost * 4 + 160);
        let deadline = self.random.within(cost, period);
        (period, if self.random.one_in(2) { deadline } else { period })
    }

    fn contract(&mut self, shape: &Shape, is_server: bool) -> (Contract, u64) {
        let (period, deadline) = self.times(shape);
        if is_server {
            let budget = ticks(shape.chunk * self.random.within(1, 2));
            let (period, deadline) = (ticks(period), ticks(deadline.max(budget.as_nanos())));
            let task = Task::new(period.max(deadline), deadline, budget);
            let task = task.in_commands(ticks(shape.chunk));
            return (Contract::Server(task), task.period.as_nanos());
        }
        (Contract::Stream(shape.task(period, deadline, self.unsaid)), period)
    }

    fn join(&mut self) {
        let shape = Shape::random(&mut self.random);
        let is_server = shape.chunks == 1 && shape.parts == 1 && self.random.one_in(2);
        let (contract, period) = self.contract(&shape, is_server);
        if let Ok(id) = self.schedule.join(at(self.now), contract) {
            self.members.push(Member { id, shape, is_server, period, asks: self.now });
        }
    }

    fn events(&mut self) {
        match self.random.within(0, if self.strict { 900 } else { 90 }) {
            0 => self.join(),
            1 if self.members.len() > 1 => {
                let member = self.members.swap_remove(0);
                self.schedule.leave(member.id);
            }
            2 if !self.members.is_empty() => {
                let Member { id, shape, is_server, .. } = self.members[0];
                let (contract, period) = self.contract(&shape, is_server);
                if self.schedule.change(at(self.now), id, contract).is_ok() {
                    self.members[0].period = period;
                }
            }
            _ => {}
        }
    }

    fn submit(&mut self, class: Class, shape: Shape) -> u64 {
        self.keys += 1;
        let (key, command) = (self.keys, shape.command(self.keys, 0));
        self.shapes.insert(key, shape);
        self.done.insert(key, 0);
        self.schedule.submit(at(self.now), key, Request { class, command });
        key
    }

    fn ask(&mut self) {
        for which in 0..self.members.len() {
            if self.members[which].asks > self.now {
                continue;
            }
            let late = if self.now_and_then(4) { self.random.within(0, 20) } else { 0 };
            let Member { id, shape, is_server, period, .. } = self.members[which];
            self.members[which].asks = self.now + period + late;
            if !is_server {
                self.submit(Class::RealTime(id), shape);
                continue;
            }
            for _ in 0..self.random.within(1, 4) {
                let chunk = self.random.within(1, shape.chunk);
                self.submit(Class::server(id, ticks(chunk)), Shape { chunk, ..shape });
            }
        }
    }

    /// The disk is asked for as long as it is idle, each time with best effort on offer. Until when the
    /// schedule wants to wait then.
    fn start(&mut self) -> Option<u64> {
        while self.busy.is_none() {
            let slack = self.schedule.slack_now(at(self.now), ticks(400)).unwrap_or_default();
            let most = slack.as_nanos().saturating_sub(self.gap).max(1);
            let chunk = if self.random.one_in(2) { most } else { self.random.within(1, 12) };
            let shape = Shape { chunk, chunks: 1, back: 0, parts: 1 };
            let offer = self.submit(Class::best_effort(true), shape);
            let heads = Heads { shapes: &self.shapes, gap: self.gap };
            let next = self.schedule.next(at(self.now), &heads);
            self.schedule.cancel(offer);
            let (key, predicted) = match next {
                Next::Start { key, predicted } => (key, predicted.as_nanos()),
                Next::Wait { until } => return until.map(Instant::as_nanos),
            };
            let begun = self.done.get(&self.last).is_some_and(|&done| done > 0);
            self.between += u64::from(begun && key != self.last);
            self.last = key;
            let early = self.now_and_then(6);
            let takes = if early { self.random.within(1, predicted) } else { predicted };
            self.busy = Some((self.now + takes, key));
        }
        None
    }

    fn step(&mut self) {
        if let Some((end, key)) = self.busy.filter(|&(end, _)| end <= self.now) {
            self.busy = None;
            let shape = self.shapes[&key];
            if self.schedule.has_more(key) {
                let done = self.done[&key] + 1;
                self.done.insert(key, done);
                let left = shape.chunks - done;
                let rest = Rest { bound: ticks(left * shape.chunk), commands: left as u32 };
                self.schedule.finished_part(at(end), key, shape.command(key, done), rest);
            } else {
                let outcome = self.schedule.finished(at(end), key);
                self.late += u64::from(!outcome.late_by.is_zero());
                let is_promised = outcome.times.deadline < Instant::MAX;
                self.promised += u64::from(is_promised);
                self.parted += u64::from(is_promised && shape.parts > 1);
                let is_server = matches!(outcome.class, Class::Server { .. });
                self.served += u64::from(is_promised && is_server);
                self.best_effort += u64::from(!is_promised);
                self.done.remove(&key);
            }
            let less = self.now_and_then(6);
            let gap = if less { self.random.within(0, self.gap) } else { self.gap };
            self.host = end + gap;
        }
        self.ask();
        self.events();
        let until = if self.now >= self.host { self.start() } else { None };
        let chance = self.now + self.random.within(1, 12);
        let ends = self.busy.map(|(end, _)| end);
        let asks = self.members.iter().map(|member| member.asks);
        let all = asks.chain(ends).chain(until).chain([self.host, chance]);
        self.now = all.filter(|&at| at > self.now).min().expect("chance comes later");
    }

    fn run(mut self) -> Self {
        while self.now < 1_500 {
            self.step();
        }
        self
    }
}

#[test]
fn nobody_is_late_where_chunks_and_parts_are_served_beside_each_other() {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let wanted = number("SLACKLINE_MIXED").unwrap_or(1_000);
    let from = number("SLACKLINE_MIXED_FROM").unwrap_or(0);
    let (mut promised, mut best_effort, mut between, mut parted, mut served) = (0, 0, 0, 0, 0);
    for seed in from..from + wanted {
        let world = World::new(seed, 0).run();
        assert_eq!(world.late, 0, "seed {seed}");
        promised += world.promised;
        best_effort += world.best_effort;
        between += world.between;
        parted += world.parted;
        served += world.served;
    }
    println!(
        "{wanted} worlds: {promised} requests under contract, {parted} in parts, {served} to servers"
    );
    println!("{best_effort} of best effort; {between} times one went between commands of another");
    assert!(promised > wanted * 50 && best_effort > wanted * 10);
    assert!(between > wanted && parted > wanted * 10 && served > wanted * 10);
}

/// The harness proves itself: the same worlds with ways back of which the schedule is not told.
#[test]
fn somebody_is_late_where_a_way_back_is_longer_than_was_said() {
    let late = (0..300).filter(|&seed| World::new(seed, 2).run().late > 0).count();
    assert!(late > 10, "{late} of 300 worlds");
}
