//! What was tried and undone has left nothing behind: a schedule that was tried with goes on as a copy
//! that was made before does, whatever waited and whatever was tried.

use crate::common::Random;
use sched::{
    Attempt, Class, Contract, Flow, Next, Options, PolicyKind, Predict, Request, Schedule, Task,
    TaskId,
};
use units::{Access, Bytes, Command, Direction, Duration, Instant, Lba, SECTOR};

/// Costs a microsecond a sector.
struct Sectors;

impl Predict for Sectors {
    fn bound(&self, _: Lba, command: &Command) -> Duration {
        match command {
            Command::Transfer(access) => Duration::from_micros(access.len / SECTOR),
            _ => Duration::from_millis(8),
        }
    }
}

/// A schedule, and what its programs know of it.
#[derive(Clone)]
struct World {
    schedule: Schedule,
    now: Instant,
    streams: Vec<TaskId>,
    servers: Vec<TaskId>,
    keys: u64,
    disk: Vec<u64>,
}

fn command(random: &mut Random) -> Command {
    let lba = Lba::new(random.within(0, 1 << 20));
    let len = SECTOR * random.within(1, 4_000);
    Command::Transfer(Access { lba, len: len.max(Bytes::new(512)), direction: Direction::Read })
}

fn task(random: &mut Random) -> Task {
    let period = Duration::from_micros(random.within(20_000, 400_000));
    let cost = Duration::from_micros(random.within(500, 8_000));
    let deadline = if random.one_in(3) { period / 2 } else { period };
    Task::new(period, deadline, cost)
}

impl World {
    fn new(random: &mut Random) -> Self {
        let depth = random.within(1, 3) as u32;
        let gap = Duration::from_micros(random.within(0, 1) * 300);
        let options = Options { depth, gap, ..Options::default() };
        Self {
            schedule: Schedule::new(PolicyKind::SLACK, options),
            now: Instant::EPOCH,
            streams: Vec::new(),
            servers: Vec::new(),
            keys: 0,
            disk: Vec::new(),
        }
    }

    fn waiting(&self, random: &mut Random) -> Option<u64> {
        let keys: Vec<u64> =
            self.schedule.queues().by_arrival().iter().map(|waiting| waiting.key).collect();
        (!keys.is_empty()).then(|| *random.pick(&keys))
    }

    fn class(&self, random: &mut Random) -> Class {
        match random.within(0, 5) {
            0 | 1 if !self.streams.is_empty() => Class::RealTime(*random.pick(&self.streams)),
            2 if !self.servers.is_empty() => {
                let task = *random.pick(&self.servers);
                let cost = self.schedule.tasks().get(task).expect("it is open").cost;
                let (flow, ordered) = (Flow(random.within(1, 3)), random.one_in(3));
                Class::Server { task, cost, synchronous: random.one_in(2), flow, ordered }
            }
            3 => Class::Background,
            4 => {
                let flow = Flow(random.within(1, 3));
                Class::BestEffort { synchronous: random.one_in(2), flow, ordered: true }
            }
            _ => Class::best_effort(random.one_in(2)),
        }
    }

    /// Something that needs no disk.
    fn change(&mut self, random: &mut Random) {
        let Self { schedule, now, .. } = self;
        let now = *now;
        match random.within(0, 11) {
            0 => {
                let task = task(random);
                if let Ok(id) = schedule.join_within(now, task, Duration::from_millis(40)) {
                    self.streams.push(id);
                }
            }
            1 => {
                if let Ok(id) = schedule.join(now, Contract::Server(task(random))) {
                    self.servers.push(id);
                }
            }
            2 if !self.streams.is_empty() => {
                let id = *random.pick(&self.streams);
                let _ = schedule.change(now, id, task(random));
            }
            3 if !self.servers.is_empty() => {
                let id = *random.pick(&self.servers);
                let _ = schedule.change(now, id, Contract::Server(task(random)));
            }
            4 if self.streams.len() > 3 => {
                let at = random.within(0, self.streams.len() as u64 - 1) as usize;
                schedule.leave(self.streams.swap_remove(at));
            }
            5 if random.one_in(2) => {
                let kinds = [PolicyKind::SLACK, PolicyKind::EDF, PolicyKind::DELTA_L];
                let _ = schedule.change_policy(now, *random.pick(&kinds));
            }
            5 => {
                let _ = schedule.set_gap(now, Duration::from_micros(random.within(0, 600)));
            }
            6 => {
                if let Some(key) = self.waiting(random) {
                    assert!(self.schedule.cancel(key));
                }
            }
            7 => {
                let command = command(random);
                if let Some(key) = self.waiting(random) {
                    self.schedule.redirect(now, key, command);
                }
            }
            8 => {
                let class = self.class(random);
                if let Some(key) = self.waiting(random) {
                    let times = self.schedule.upgrade(now, key, class);
                    assert!(times.is_some(), "it waits");
                }
            }
            _ => {
                self.keys += 1;
                let (class, command) = (self.class(random), command(random));
                self.schedule.submit(now, self.keys, Request { class, command });
            }
        }
    }

    /// The disk has nothing more to do for now.
    fn look(&mut self) -> Vec<u64> {
        let before = self.disk.len();
        while let Next::Start { key, .. } = self.schedule.next(self.now, &Sectors) {
            self.disk.push(key);
        }
        self.disk[before..].to_vec()
    }

    /// The disk goes on, or time passes. Says what it was.
    fn go_on(&mut self, random: &mut Random) -> (Next, Vec<u64>) {
        if random.one_in(3) {
            self.now += Duration::from_micros(random.within(0, 20_000));
        }
        if random.one_in(2) && !self.disk.is_empty() {
            let key = self.disk.remove(0);
            self.schedule.finished(self.now, key);
        }
        let next = self.schedule.next(self.now, &Sectors);
        if let Next::Start { key, .. } = next {
            self.disk.push(key);
        }
        (next, self.state())
    }

    fn state(&self) -> Vec<u64> {
        let mut state = Vec::new();
        self.schedule.remember(self.now, &mut state);
        self.schedule.remember_bounds(self.now, &mut state);
        for waiting in self.schedule.queues().by_arrival() {
            state.extend([waiting.key, waiting.arrival, waiting.cost.as_nanos()]);
            state.extend([waiting.times.release, waiting.times.deadline].map(Instant::as_nanos));
            state.push(u64::from(self.schedule.queues().may_run(waiting.key)));
        }
        let queues = self.schedule.queues();
        let orders = [
            queues.ready().map(|it| it.key).collect::<Vec<_>>(),
            queues.early().map(|it| it.key).collect(),
            queues.background().map(|it| it.key).collect(),
            queues.best_effort_by_age(true).map(|it| it.key).collect(),
            queues.best_effort_by_age(false).map(|it| it.key).collect(),
            queues.best_effort_upward(true, Lba::default()).map(|it| it.key).collect(),
            queues.best_effort_upward(false, Lba::default()).map(|it| it.key).collect(),
        ];
        orders.into_iter().for_each(|order| {
            state.push(u64::MAX);
            state.extend(order);
        });
        let counts = self.schedule.counts();
        state.extend([counts.waiting_real_time, counts.waiting_best_effort, counts.tasks]);
        state
    }
}

#[test]
fn what_is_undone_has_left_nothing_behind() {
    let mut undone = 0;
    for seed in 0..400 {
        let random = &mut Random::new(seed);
        let mut world = World::new(random);
        for _ in 0..60 {
            for _ in 0..random.within(0, 6) {
                world.change(random);
            }
            world.go_on(random);
            let copy = world.clone();
            let known = (world.streams.clone(), world.servers.clone(), world.keys);
            let mut attempts: Vec<Attempt> = Vec::new();
            for _ in 0..random.within(1, 8) {
                if attempts.is_empty() || random.one_in(4) {
                    attempts.push(world.schedule.attempt());
                }
                if random.one_in(4) {
                    world.now += Duration::from_micros(random.within(0, 20_000));
                }
                world.change(random);
                if attempts.len() > 1 && random.one_in(3) {
                    let inner = attempts.pop().expect("more than one");
                    world.schedule.keep(inner);
                }
            }
            while let Some(attempt) = attempts.pop() {
                world.schedule.undo(attempt);
            }
            (world.streams, world.servers, world.keys) = known;
            undone += 1;
            let mut other = World { now: world.now, ..copy };
            // What was released meanwhile is so, in the one; the disk looks first.
            let looked = [&mut world, &mut other].map(|it| it.look());
            assert_eq!(looked[0], looked[1], "seed {seed}");
            assert_eq!(world.state(), other.state(), "seed {seed}");
            // Both go on alike.
            for step in 0..4 {
                let [mut ours, mut theirs] = [(); 2].map(|()| Random::new(seed * 1_000 + step));
                world.change(&mut ours);
                other.change(&mut theirs);
                assert_eq!(world.go_on(&mut ours), other.go_on(&mut theirs), "seed {seed}");
            }
        }
    }
    assert_eq!(undone, 24_000);
}

/// What is undone within something that is kept is as if it had not been tried.
#[test]
fn what_is_undone_within_what_is_kept_has_left_nothing_behind() {
    for seed in 0..200 {
        let random = &mut Random::new(seed);
        let mut world = World::new(random);
        for step in 0..60 {
            for _ in 0..random.within(0, 6) {
                world.change(random);
            }
            world.go_on(random);
            let mut other = world.clone();
            let outer = world.schedule.attempt();
            let same = || Random::new(seed * 1_000 + step);
            world.change(&mut same());
            other.change(&mut same());
            let known = (world.streams.clone(), world.servers.clone(), world.keys);
            let inner = world.schedule.attempt();
            for _ in 0..random.within(1, 4) {
                world.change(random);
            }
            world.schedule.undo(inner);
            (world.streams, world.servers, world.keys) = known;
            world.schedule.keep(outer);
            assert_eq!(world.state(), other.state(), "seed {seed}");
            assert_eq!(world.go_on(&mut same()), other.go_on(&mut same()), "seed {seed}");
        }
    }
}

#[test]
#[should_panic = "a command comes or goes while something is tried"]
fn no_command_begins_while_something_is_tried() {
    let mut world = World::new(&mut Random::new(1));
    let request = Request { class: Class::Background, command: command(&mut Random::new(2)) };
    world.schedule.submit(Instant::EPOCH, 1, request);
    let _attempt = world.schedule.attempt();
    world.schedule.next(Instant::EPOCH, &Sectors);
}
