//! Requests under contract that overtake: `slack` takes the nearest one first where that
//! is proved to make none late that is due before it, also where more is promised than
//! the disk has time for and nothing is known of the slack. What it overtakes is on time,
//! whatever comes after.
#![allow(clippy::print_stdout)] // how much was tried is part of the result

use crate::common::Random;
use sched::{Class, Next, Options, PolicyKind, Predict, Request, Schedule, Task, TaskId};
use std::collections::BTreeMap;
use units::{Access, Command, Direction, Duration, Instant, Lba, SECTOR};

/// Bounded by a microsecond a sector; likely to take as long as the way there.
struct Ways;

impl Predict for Ways {
    fn bound(&self, _: Lba, command: &Command) -> Duration {
        Duration::from_micros(command.access().expect("a transfer").len / SECTOR)
    }
    fn expected(&self, _: Instant, from: Lba, command: &Command) -> Duration {
        Duration::from_micros(from.get().abs_diff(command.lba().expect("it has a place").get()))
    }
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A request under contract that waits.
struct Waits {
    deadline: Instant,
    overtaken: bool,
}

/// What was seen to happen.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    requests: u64,
    late: u64,
    overtaken: u64,
    best_effort: u64,
}

struct World {
    random: Random,
    schedule: Schedule,
    /// Each with the time at which its program asks next.
    tasks: Vec<(TaskId, Task, Instant)>,
    waiting: BTreeMap<u64, Waits>,
    keys: u64,
    now: Instant,
    seen: Seen,
}

impl World {
    /// Tasks that ask for one to three times what the disk can do.
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let options = Options { admission: false, ..Options::default() };
        let mut schedule = Schedule::new(PolicyKind::SLACK, options);
        let (count, percent) = (random.within(2, 12), random.within(110, 250));
        let tasks = (0..count).map(|_| {
            let period = ms(random.within(50, 1_000));
            let cost = (period * percent / 100 / count).min(period);
            let deadline = if random.one_in(3) { cost.max(period / 2) } else { period };
            let task = Task::new(period, deadline, cost);
            let id = schedule.join(Instant::EPOCH, task).expect("nobody is refused");
            (id, task, Instant::EPOCH)
        });
        let tasks: Vec<_> = tasks.collect();
        assert!(schedule.tasks().utilisation().ppm() > 1_000_000 || count < 4);
        let (waiting, now) = (BTreeMap::new(), Instant::EPOCH);
        Self { random, schedule, tasks, waiting, keys: 0, now, seen: Seen::default() }
    }

    fn submit(&mut self, now: Instant, class: Class, cost: Duration) {
        let lba = Lba::new(self.random.within(0, 1 << 16));
        let len = SECTOR * (cost.as_nanos() / 1_000).max(1);
        let command = Command::Transfer(Access { lba, len, direction: Direction::Read });
        let times = self.schedule.submit(now, self.keys, Request { class, command });
        if class.task().is_some() {
            let waits = Waits { deadline: times.deadline, overtaken: false };
            self.waiting.insert(self.keys, waits);
        }
        self.keys += 1;
    }

    /// Programs ask until `end`.
    fn ask(&mut self, end: Instant) {
        for at in 0..self.tasks.len() {
            while self.tasks[at].2 <= end {
                let (id, task, now) = self.tasks[at];
                self.submit(now, Class::RealTime(id), task.cost);
                self.tasks[at].2 = now + task.period + ms(self.random.within(0, 1_500));
            }
        }
    }

    fn step(&mut self) {
        if self.random.one_in(8) {
            self.submit(self.now, Class::best_effort(true), ms(10));
        }
        let Next::Start { key, predicted } = self.schedule.next(self.now, &Ways) else {
            let next = self.tasks.iter().map(|(_, _, ask)| *ask).min();
            self.now = self.now.max(next.expect("there are tasks"));
            return self.ask(self.now);
        };
        let started = self.waiting.remove(&key);
        if let Some(Waits { deadline, .. }) = started {
            for earlier in self.waiting.values_mut().filter(|it| it.deadline < deadline) {
                self.seen.overtaken += u64::from(!earlier.overtaken);
                earlier.overtaken = true;
            }
        }
        let end = self.now + predicted;
        // Those who ask while the disk works, in the order of time.
        self.ask(end);
        self.now = end;
        let outcome = self.schedule.finished(end, key);
        match started {
            None => self.seen.best_effort += 1,
            Some(Waits { overtaken, .. }) => {
                self.seen.requests += 1;
                self.seen.late += u64::from(!outcome.late_by.is_zero());
                assert!(!overtaken || outcome.late_by.is_zero(), "overtaken, then {outcome:?}");
            }
        }
    }
}

#[test]
fn who_is_overtaken_is_on_time_also_where_too_much_is_promised() {
    let mut all = Seen::default();
    for seed in 0..2_000 {
        let mut world = World::new(seed);
        world.ask(Instant::EPOCH);
        (0..200).for_each(|_| world.step());
        let seen = world.seen;
        all.requests += seen.requests;
        all.late += seen.late;
        all.overtaken += seen.overtaken;
        all.best_effort += seen.best_effort;
    }
    println!("{all:?}");
    // Both kinds of worlds: with room to overtake, and without.
    assert!(all.overtaken > 1_500 && all.late > 5_000 && all.best_effort > 1_000, "{all:?}");
}

/// Best effort is not shut out for ever where contracts were taken that leave nothing.
#[test]
fn where_too_much_is_promised_best_effort_goes_while_nothing_under_contract_waits() {
    let options = Options { admission: false, ..Options::default() };
    let mut schedule = Schedule::new(PolicyKind::SLACK, options);
    let task = Task::new(ms(100), ms(100), ms(60));
    let ids = [0, 1].map(|_| schedule.join(Instant::EPOCH, task).expect("nobody is refused"));
    let read = |at: u64| {
        let access = Access { lba: Lba::new(at), len: SECTOR * 60_000, direction: Direction::Read };
        Command::Transfer(access)
    };
    let mut submit = |key, class| {
        schedule.submit(Instant::EPOCH, key, Request { class, command: read(key) });
    };
    submit(0, Class::best_effort(true));
    submit(1, Class::RealTime(ids[0]));
    submit(2, Class::RealTime(ids[1]));
    let mut now = Instant::EPOCH;
    let order = [(); 3].map(|()| {
        let Next::Start { key, predicted } = schedule.next(now, &Ways) else { panic!("it waits") };
        now += predicted;
        schedule.finished(now, key);
        key
    });
    assert_eq!(order, [1, 2, 0]);
}
