//! What every policy owes, whatever its order: no request is lost or served twice,
//! also when the policy changes while the disk works; nobody who was promised service
//! waits for ever; a disk that nobody else wants serves contracts.

use crate::common;
use crate::common::{Plain, World, flow, ms, read, write};
use sched::{Class, Flow, Next, Options, PolicyKind, Predict, Request, Schedule, Task, TaskId};
use std::collections::BTreeSet;
use units::{Command, Duration, Instant, Lba};

/// xorshift64* (Vigna 2016): the same numbers on every run.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11) % n
    }
}

/// Everything that can happen to a schedule, at random, and a book of what must come
/// of it.
struct Chaos {
    random: Random,
    schedule: Schedule,
    now: Instant,
    tasks: Vec<TaskId>,
    key: u64,
    waiting: BTreeSet<u64>,
    running: Vec<u64>,
    served: BTreeSet<u64>,
    gone: u64,
    name: String,
}

impl Chaos {
    fn new(seed: u64, kind: PolicyKind, depth: u32) -> Self {
        let options = Options { depth, ..Options::default() };
        let schedule = Schedule::new(kind, options);
        Self {
            random: Random(seed),
            schedule,
            now: Instant::EPOCH,
            tasks: Vec::new(),
            key: 0,
            waiting: BTreeSet::new(),
            running: Vec::new(),
            served: BTreeSet::new(),
            gone: 0,
            name: format!("{kind}, seed {seed}"),
        }
    }

    fn class(&mut self) -> Class {
        let synchronous = self.random.below(2) == 0;
        let flow = Flow(self.random.below(3));
        match self.random.below(8) {
            0 => Class::Background,
            1 => Class::BestEffort { synchronous, flow, ordered: true },
            2..5 if !self.tasks.is_empty() => {
                let at = self.random.below(self.tasks.len() as u64);
                Class::RealTime(self.tasks[at as usize])
            }
            _ => Class::BestEffort { synchronous, flow, ordered: false },
        }
    }

    fn submit(&mut self) {
        let class = self.class();
        let (place, cost) = (self.random.below(40) * 10, 1 + self.random.below(20));
        let command = match self.random.below(10) {
            0 => Command::Flush,
            1..4 => write(place, cost),
            _ => read(place, cost),
        };
        self.key += 1;
        self.schedule.submit(self.now, self.key, Request { class, command });
        self.waiting.insert(self.key);
    }

    fn step(&mut self) {
        match self.random.below(40) {
            0..12 => self.submit(),
            12 => {
                let cost = 1 + self.random.below(20);
                let period = ms(cost * (5 + self.random.below(20)));
                let task = Task::new(period, period, ms(cost));
                self.tasks.extend(self.schedule.join(self.now, task));
            }
            13 if self.tasks.len() > 3 => {
                let id = self.tasks.swap_remove(0);
                for key in self.schedule.leave(id) {
                    assert!(self.waiting.remove(&key), "{key} was dropped but did not wait");
                    self.gone += 1;
                }
            }
            14 => {
                let key = 1 + self.random.below(self.key + 1);
                let cancelled = self.schedule.cancel(key);
                assert_eq!(cancelled, self.waiting.remove(&key), "{key}");
                self.gone += u64::from(cancelled);
            }
            15 => {
                let key = 1 + self.random.below(self.key + 1);
                let class = self.class();
                let times = self.schedule.upgrade(self.now, key, class);
                assert_eq!(times.is_some(), self.waiting.contains(&key));
            }
            16..24 => self.now += ms(self.random.below(4)),
            24..32 => self.finish(),
            _ => drop(self.start()),
        }
    }

    fn start(&mut self) -> Option<Instant> {
        match self.schedule.next(self.now, &Plain) {
            Next::Start { key, .. } => {
                assert!(self.waiting.remove(&key), "{key} was started but did not wait");
                self.running.push(key);
                None
            }
            Next::Wait { until } => until,
        }
    }

    fn finish(&mut self) {
        if self.running.is_empty() {
            return;
        }
        let at = self.random.below(self.running.len() as u64) as usize;
        let key = self.running.swap_remove(at);
        self.now += ms(self.random.below(20));
        self.schedule.finished(self.now, key);
        assert!(self.served.insert(key), "{key} was served twice");
    }

    /// No more comes: all that waits is served, in bounded steps.
    fn drain(&mut self) {
        for _ in 0..100_000 {
            let before = self.running.len();
            let until = self.start();
            if self.running.len() > before {
                continue;
            }
            if !self.running.is_empty() {
                self.finish();
            } else if let Some(until) = until {
                assert!(until > self.now, "a wait that is over");
                self.now = until;
            } else {
                break;
            }
        }
        assert!(self.waiting.is_empty(), "{}: never served: {:?}", self.name, self.waiting);
        assert_eq!(self.served.len() as u64 + self.gone, self.key);
    }
}

#[test]
fn no_policy_loses_a_request_or_serves_one_twice() {
    for &kind in policies::ALL {
        for seed in 1..=20 {
            let mut chaos = Chaos::new(seed, kind, if seed % 2 == 0 { 4 } else { 1 });
            for _ in 0..600 {
                chaos.step();
            }
            chaos.drain();
        }
    }
}

#[test]
fn a_change_of_policy_keeps_everything() {
    for seed in 1..=40 {
        let mut chaos = Chaos::new(seed, PolicyKind::SLACK, if seed % 2 == 0 { 4 } else { 1 });
        for _ in 0..60 {
            let at = chaos.random.below(policies::ALL.len() as u64);
            chaos.schedule.set_policy(policies::ALL[at as usize]);
            for _ in 0..chaos.random.below(30) {
                chaos.step();
            }
        }
        chaos.drain();
    }
}

#[test]
fn a_disk_that_nobody_else_wants_serves_contracts_in_time() {
    for &kind in policies::ALL {
        let mut world = World::new(kind);
        let tasks = [world.join(10, 100), world.join(20, 200)];
        for round in 0..10 {
            for (stream, &id) in tasks.iter().enumerate() {
                if round % (stream as u64 + 1) == 0 {
                    let key = 10 * round + stream as u64;
                    world.submit(key, Class::RealTime(id), read(1000 * key, 10));
                }
            }
            world.run(&Plain);
            world.now = common::at(100 * (round + 1));
        }
        assert_eq!(world.outcomes.len(), 15, "{kind}");
        let late = world.outcomes.iter().filter(|(_, outcome)| !outcome.late_by.is_zero());
        assert_eq!(late.count(), 0, "{kind}");
    }
}

/// A far request takes a millisecond longer for every 100,000 sectors.
struct Seeking;

impl Predict for Seeking {
    fn bound(&self, from: Lba, command: &Command) -> Duration {
        let Command::Transfer(access) = command else { return ms(1) };
        Plain.bound(from, command) + ms(access.lba.distance(from) / 100_000)
    }
}

/// One far request beside an endless supply of others near the head, each of a flow of
/// its own, and a stream that keeps its contract. How long the far one waits, in
/// requests; none for longer than anybody should.
fn victim_waits(
    kind: PolicyKind,
    victim_synchronous: bool,
    crowd_synchronous: bool,
) -> Option<u64> {
    let mut world = World::new(kind);
    let id = world.join(5, 100);
    let victim = 1_000_000_000;
    world.submit(victim, flow(0, victim_synchronous), read(1_000_000, 5));
    let mut released = Duration::ZERO;
    for key in 1..20_000 {
        while world.schedule.counts().waiting_best_effort < 6 {
            let near = world.schedule.head().get().min(9_000) / 10 * 10;
            world.submit(
                key * 10 + world.schedule.counts().waiting_best_effort,
                flow(1 + key % 3, crowd_synchronous),
                read(near.saturating_sub(20), 5),
            );
        }
        if world.now.saturating_since(Instant::EPOCH) >= released {
            released += ms(100);
            world.submit(victim + key, Class::RealTime(id), read(0, 5));
        }
        let started = match world.schedule.next(world.now, &Seeking) {
            Next::Start { key, predicted } => {
                world.now += predicted;
                world.schedule.finished(world.now, key);
                key
            }
            Next::Wait { until } => {
                world.now = until.expect("there is work");
                0
            }
        };
        if started == victim {
            return Some(key);
        }
    }
    None
}

#[test]
fn everybody_is_served_in_the_end_where_the_policy_promises_it() {
    for &kind in policies::ALL {
        let waits = [(true, true), (true, false), (false, true), (false, false)]
            .map(|(victim, crowd)| victim_waits(kind, victim, crowd));
        if kind.promise.everyone {
            assert!(waits.iter().all(Option::is_some), "{kind}: {waits:?}");
        } else {
            assert!(waits.iter().any(Option::is_none), "{kind} promises less than it keeps");
        }
    }
}

#[test]
fn a_request_that_a_stream_needs_is_upgraded_not_repeated() {
    for &kind in policies::ALL {
        let mut world = World::new(kind);
        let id = world.join(10, 100);
        world.submit(1, Class::best_effort(false), read(500, 10));
        let times = world.schedule.upgrade(world.now, 1, Class::RealTime(id)).expect("it waits");
        assert_eq!(times.deadline, common::at(100));
        assert_eq!(world.schedule.counts().waiting_real_time, 1);
        assert_eq!(world.run(&Plain), [1], "{kind}");
        assert_eq!(world.schedule.upgrade(world.now, 1, Class::RealTime(id)), None);
    }
}
