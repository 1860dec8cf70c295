//! Requests that are added to the command of another one make nobody late, whatever they are and
//! however long they make it, and are themselves served as they are promised.

#![allow(clippy::print_stdout)] // figures, for whoever asks with --nocapture

use crate::common::Random;
use crate::world::Sectors;
use sched::{
    Chance, Class, Contract, Next, Odds, Options, PolicyKind, Request, Schedule, Task, TaskId,
};
use units::{Access, Bytes, Command, Direction, Duration, Instant, Lba, SECTOR};

/// Of one program: how long its requests are, and when it asks next.
struct Program {
    id: Option<TaskId>,
    is_server: bool,
    cost: u64,
    period: u64,
    next: u64,
}

#[derive(Debug, Default)]
struct Seen {
    commands: u64,
    added: u64,
    refused: u64,
    promised: u64,
}

fn ticks(ticks: u64) -> Duration {
    Duration::from_nanos(ticks)
}

fn request(class: Class, cost: u64, random: &mut Random) -> Request {
    let lba = Lba::new(random.within(0, 1 << 20));
    let access = Access { lba, len: Bytes::new(cost * SECTOR.get()), direction: Direction::Read };
    Request { class, command: Command::Transfer(access) }
}

/// Contracts of both kinds, as many as are taken of some, and best effort, which always waits.
fn programs(schedule: &mut Schedule, random: &mut Random) -> Vec<Program> {
    let mut programs = Vec::new();
    for _ in 0..random.within(1, 8) {
        let (cost, is_server) = (random.within(2, 12), random.one_in(2));
        let period = random.within(cost * 3, cost * 30);
        // The budget of a server is that of a few requests.
        let many = if is_server { random.within(1, 3) } else { 1 };
        let deadline = if random.one_in(3) { random.within(cost * many, period) } else { period };
        let task = Task::new(ticks(period), ticks(deadline), ticks(cost * many));
        let contract = if is_server { Contract::Server(task) } else { Contract::Stream(task) };
        let Ok(id) = schedule.join(Instant::EPOCH, contract) else { continue };
        let next = random.within(0, period);
        programs.push(Program { id: Some(id), is_server, cost, period, next });
    }
    for cost in [random.within(1, 12), random.within(1, 40)] {
        programs.push(Program { id: None, is_server: false, cost, period: 4, next: 0 });
    }
    programs
}

/// The programs, what of theirs waits, and the schedule.
struct World {
    schedule: Schedule,
    random: Random,
    programs: Vec<Program>,
    /// The keys of what waits, and whose it is.
    waiting: Vec<(u64, usize)>,
    keys: u64,
}

impl World {
    fn new(policy: PolicyKind, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let burst = ticks(random.within(0, 2) * 20);
        let options = Options { reserve: ticks(12), burst, ..Options::default() };
        let mut schedule = Schedule::new(policy, options);
        let programs = programs(&mut schedule, &mut random);
        Self { schedule, random, programs, waiting: Vec::new(), keys: 0 }
    }

    /// When somebody asks next.
    fn next(&self) -> u64 {
        self.programs.iter().map(|program| program.next).min().expect("there is best effort")
    }

    /// What is asked for up to then, each at its time.
    fn ask(&mut self, until: u64) {
        while self.next() <= until {
            let at = self.next();
            let asks = self.programs.iter().position(|program| program.next == at);
            let number = asks.expect("just seen");
            let Program { id, is_server, cost, period, .. } = self.programs[number];
            let waits = self.waiting.iter().filter(|one| one.1 == number).count();
            // As many pieces at a time as one operation may have.
            let many = if id.is_none() || is_server { 6 } else { 1 };
            let many = if waits < 12 { self.random.within(1, many) } else { 0 };
            for _ in 0..many {
                let class = match id {
                    None => Class::best_effort(self.random.one_in(2)),
                    Some(id) if is_server => Class::server(id, ticks(cost)),
                    Some(id) => Class::RealTime(id),
                };
                let asked = request(class, cost, &mut self.random);
                self.schedule.submit(Instant::from_nanos(at), self.keys, asked);
                self.waiting.push((self.keys, number));
                self.keys += 1;
            }
            self.programs[number].next = at + self.random.within(period, period * 2);
        }
    }

    /// Takes it out of what waits; whose it is.
    fn take(&mut self, key: u64) -> usize {
        let at = self.waiting.iter().position(|one| one.0 == key).expect("it waited");
        self.waiting.remove(at).1
    }

    /// Adds to a command what waits, most often of the same program: what it serves then, and how
    /// much longer it takes.
    fn add(&mut self, now: Instant, key: u64, seen: &mut Seen) -> (Vec<u64>, Duration) {
        let whose = self.take(key);
        let (mut served, mut longer) = (vec![key], Duration::ZERO);
        for (other, owner) in self.waiting.clone() {
            if (owner != whose && !self.random.one_in(8)) || self.random.one_in(4) {
                continue;
            }
            let more = ticks(self.random.within(0, self.programs[owner].cost * 2));
            if self.schedule.start_with(now, other, key, more) {
                longer += more;
                served.push(other);
                self.take(other);
                seen.added += 1;
            } else {
                seen.refused += 1;
            }
        }
        (served, longer)
    }
}

fn run(policy: PolicyKind, seed: u64, seen: &mut Seen) {
    let mut world = World::new(policy, seed);
    let mut now = 0;
    while now < 4_000 {
        world.ask(now);
        let at = Instant::from_nanos(now);
        let (key, predicted) = match world.schedule.next(at, &Sectors) {
            Next::Start { key, predicted } => (key, predicted),
            Next::Wait { until } => {
                let until = until.map_or(u64::MAX, |until| until.as_nanos());
                now = until.min(world.next()).max(now + 1);
                continue;
            }
        };
        let (served, longer) = world.add(at, key, seen);
        seen.commands += 1;
        // It ends at its bound, or before.
        let most = (predicted + longer).as_nanos();
        now += if world.random.one_in(3) { world.random.within(1.min(most), most) } else { most };
        world.ask(now);
        for key in served {
            let outcome = world.schedule.finished(Instant::from_nanos(now), key);
            assert_eq!(outcome.late_by, Duration::ZERO, "{policy}, seed {seed}, at {now}: {key}");
            seen.promised += u64::from(outcome.times.deadline < Instant::MAX);
        }
    }
}

#[test]
fn what_is_added_to_a_command_makes_nobody_late() {
    let worlds = std::env::var("SLACKLINE_WORLDS").ok().and_then(|text| text.parse().ok());
    for policy in [PolicyKind::SLACK, PolicyKind::EDL] {
        let mut seen = Seen::default();
        (0..worlds.unwrap_or(150)).for_each(|seed| run(policy, seed, &mut seen));
        println!("{policy}: {seen:?}");
        let Seen { commands, added, refused, promised } = seen;
        let many = commands.min(added * 4).min(refused * 10).min(promised * 4);
        assert!(many * 2 > commands, "{policy}: {seen:?}");
    }
}

/// Under a policy that does not look at the slack, nothing is added.
#[test]
fn nothing_is_added_where_the_slack_is_not_asked_for() {
    for policy in [PolicyKind::EDF, PolicyKind::DELTA_L] {
        let mut schedule = Schedule::new(policy, Options::default());
        let mut random = Random::new(1);
        for key in 0..2 {
            let asked = request(Class::best_effort(true), 1, &mut random);
            schedule.submit(Instant::EPOCH, key, asked);
        }
        let Next::Start { key, .. } = schedule.next(Instant::EPOCH, &Sectors) else { panic!() };
        assert!(!schedule.start_with(Instant::EPOCH, 1 - key, key, Duration::ZERO));
        assert_eq!(schedule.in_flight(), 1);
    }
}

/// The heads are where the command ends: behind the last of those that it serves.
#[test]
fn the_heads_are_where_the_command_ends() {
    let mut schedule = Schedule::new(PolicyKind::SLACK, Options::default());
    let of = |lba: u64, len: u64| {
        let (lba, len) = (Lba::new(lba), Bytes::new(len * SECTOR.get()));
        let access = Access { lba, len, direction: Direction::Read };
        Request { class: Class::best_effort(true), command: Command::Transfer(access) }
    };
    schedule.submit(Instant::EPOCH, 1, of(100, 8));
    let Next::Start { key: 1, .. } = schedule.next(Instant::EPOCH, &Sectors) else { panic!() };
    for (key, lba, len, head) in [(2, 92, 8, 108), (3, 108, 16, 124), (4, 84, 8, 124)] {
        schedule.submit(Instant::EPOCH, key, of(lba, len));
        assert!(schedule.start_with(Instant::EPOCH, key, 1, ticks(len)));
        assert_eq!(schedule.head(), Lba::new(head));
    }
    assert_eq!(schedule.in_flight(), 4);
}

/// A request that may be late now and then is held against its own costs, alone.
#[test]
fn what_has_odds_goes_by_itself() {
    let ms = Duration::from_millis;
    let bound = ms(4);
    let miss = Chance::one_in(100);
    let odds = Odds { miss, mean: ms(1), deviation: ms(1), most: bound };
    for at_odds in [false, true] {
        let options = Options { reserve: ms(12), ..Options::default() };
        let mut schedule = Schedule::new(PolicyKind::SLACK, options);
        let task = Task::new(ms(100), ms(100), bound);
        let task = if at_odds { task.at_odds(odds) } else { task };
        let id = schedule.join(Instant::EPOCH, task).expect("it fits");
        let mut random = Random::new(3);
        schedule.submit(Instant::EPOCH, 0, request(Class::RealTime(id), 1, &mut random));
        schedule.submit(Instant::EPOCH, 1, request(Class::best_effort(true), 1, &mut random));
        let Next::Start { key, .. } = schedule.next(Instant::EPOCH, &Sectors) else { panic!() };
        assert_eq!(schedule.start_with(Instant::EPOCH, 1 - key, key, ticks(1)), !at_odds);
    }
}
