//! A disk that has several commands and orders them itself: whatever it prefers, nobody is late
//! that was promised something.

#![allow(clippy::print_stdout)] // figures, for whoever asks with --nocapture

use crate::common::Random;
use sched::{
    Chance, Class, Contract, EndTime, Next, Odds, Options, PolicyKind, Predict, Request, Schedule,
    Task, TaskId,
};
use units::{Access, Bytes, Command, Direction, Duration, Instant, Lba, SECTOR};

/// The disk's places, and what a way over all of them takes.
const PLACES: u64 = 64;
const WAY: u64 = 32;

/// A command takes its length in ticks, and up to [`WAY`] for the way of the heads.
///
/// The heads are where the disk's own order has left them, whatever the schedule gave it last.
struct Arm(Lba);

fn way(from: Lba, to: Lba) -> u64 {
    from.get().abs_diff(to.get()).min(PLACES).div_ceil(PLACES / WAY)
}

fn transfer(command: &Command) -> &Access {
    command.access().expect("there are no flushes here")
}

impl Predict for Arm {
    fn bound(&self, _: Lba, command: &Command) -> Duration {
        let access = transfer(command);
        ticks(access.len / SECTOR + way(self.0, access.lba))
    }
    fn bound_anywhere(&self, _: u64, command: &Command) -> Option<Duration> {
        Some(ticks(transfer(command).len / SECTOR + WAY))
    }
}

fn ticks(ticks: u64) -> Duration {
    Duration::from_nanos(ticks)
}

fn at(now: u64) -> Instant {
    Instant::from_nanos(now)
}

/// Which of its commands the disk serves next.
#[derive(Clone, Copy, Debug)]
enum Prefers {
    Latest,
    FarthestDeadline,
    Farthest,
    Any,
}

const ALL: [Prefers; 4] =
    [Prefers::Latest, Prefers::FarthestDeadline, Prefers::Farthest, Prefers::Any];

struct Program {
    id: Option<TaskId>,
    is_server: bool,
    len: u64,
    period: u64,
    next: u64,
}

struct World {
    schedule: Schedule,
    random: Random,
    programs: Vec<Program>,
    /// With the disk, not begun: key and command.
    inside: Vec<(u64, Command)>,
    commands: std::collections::BTreeMap<u64, Command>,
    /// What the disk works on, and when it ends.
    running: Option<(u64, u64)>,
    /// Of the disk.
    heads: Lba,
    keys: u64,
    prefers: Prefers,
    hurries: bool,
    /// The host looks at the disk late, while the disk has something to do.
    dozes: bool,
    given: std::collections::BTreeMap<u64, u64>,
}

#[derive(Debug, Default)]
struct Seen {
    commands: u64,
    beside: u64,
    under_contract_beside: u64,
    promised: u64,
    /// Of best effort that the disk had.
    needed: u64,
    deepest: usize,
    /// Ends that the host saw later than they were.
    unseen: u64,
}

impl World {
    fn new(policy: PolicyKind, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let prefers = ALL[random.within(0, 3) as usize];
        let options = Options {
            reserve: ticks(12 + WAY),
            burst: ticks(random.within(0, 2) * 40),
            gap: ticks(random.within(0, 2)),
            any_order: random.within(2, 6) as u32,
            ..Options::default()
        };
        let mut schedule = Schedule::new(policy, options);
        let mut programs = Vec::new();
        for _ in 0..random.within(2, 14) {
            let (len, is_server) = (random.within(1, 4), random.one_in(3));
            let cost = len + WAY;
            let period = random.within(cost * 2, cost * 16);
            let many = if is_server { random.within(1, 3) } else { 1 };
            let deadline = if random.one_in(3) {
                random.within(cost * many, period.max(cost * many))
            } else {
                period
            };
            let deadline = deadline.max(cost * many);
            let period = period.max(deadline);
            let task = Task::new(ticks(period), ticks(deadline), ticks(cost * many));
            let contract = if is_server { Contract::Server(task) } else { Contract::Stream(task) };
            let Ok(id) = schedule.join(Instant::EPOCH, contract) else { continue };
            let next = random.within(0, period);
            programs.push(Program { id: Some(id), is_server, len, period, next });
        }
        for len in [random.within(1, 8), random.within(1, 2)] {
            programs.push(Program { id: None, is_server: false, len, period: 32, next: 0 });
        }
        let (hurries, dozes) = (random.one_in(3), random.one_in(2));
        Self {
            schedule,
            random,
            programs,
            inside: Vec::new(),
            commands: Default::default(),
            running: None,
            heads: Lba::new(0),
            keys: 0,
            prefers,
            hurries,
            dozes,
            given: Default::default(),
        }
    }

    fn next(&self) -> u64 {
        self.programs.iter().map(|program| program.next).min().expect("there is best effort")
    }

    /// What is asked for up to then, each at its time.
    fn ask(&mut self, until: u64) {
        while self.next() <= until {
            let now = self.next();
            let asks = self.programs.iter().position(|program| program.next == now);
            let number = asks.expect("just seen");
            let Program { id, is_server, len, period, .. } = self.programs[number];
            let busy = self.schedule.queues().by_arrival().len() > 40;
            let many = if id.is_none() || is_server { 4 } else { 1 };
            let many = if busy && id.is_none() { 0 } else { self.random.within(1, many) };
            for _ in 0..many {
                let class = match id {
                    None => Class::best_effort(self.random.one_in(2)),
                    Some(id) if is_server => Class::server(id, ticks(len + WAY)),
                    Some(id) => Class::RealTime(id),
                };
                // Often near the others, so that it takes far less than it may.
                let most = if self.random.one_in(4) { PLACES } else { 4 };
                let lba = Lba::new(self.random.within(0, most));
                let len = Bytes::new(len * SECTOR.get());
                let command = Command::Transfer(Access { lba, len, direction: Direction::Read });
                self.schedule.submit(at(now), self.keys, Request { class, command });
                self.commands.insert(self.keys, command);
                if self.hurries && id.is_some() && !is_server && self.random.one_in(4) {
                    self.schedule.advance_deadline(at(now), self.keys);
                }
                self.keys += 1;
            }
            // As soon as its contract allows, or later.
            let next =
                if self.random.one_in(2) { period } else { self.random.within(period, period * 2) };
            self.programs[number].next = now + next;
        }
    }

    /// The disk is given all that the schedule gives it.
    fn give(&mut self, now: u64, seen: &mut Seen) -> Option<u64> {
        loop {
            let before = self.schedule.in_flight();
            match self.schedule.next(at(now), &Arm(self.heads)) {
                Next::Wait { until } => return until.map(Instant::as_nanos),
                Next::Start { key, .. } => {
                    seen.commands += 1;
                    seen.beside += u64::from(before > 0);
                    let times = self.schedule.times(key).expect("the disk has it");
                    let is_promised = times.deadline < Instant::MAX;
                    seen.under_contract_beside += u64::from(before > 0 && is_promised);
                    seen.deepest = seen.deepest.max(before + 1);
                    self.inside.push((key, self.commands[&key]));
                    self.given.insert(key, now);
                    self.begin(now);
                    self.need(now, seen);
                }
            }
        }
    }

    /// Somebody comes to need what the disk has, of best effort mostly.
    fn need(&mut self, now: u64, seen: &mut Seen) {
        if !self.hurries || self.inside.is_empty() {
            return;
        }
        let last = self.inside.len() as u64 - 1;
        let (key, _) = self.inside[self.random.within(0, last) as usize];
        let by = at(now + self.random.within(0, 12 * WAY));
        seen.needed += u64::from(self.schedule.promise_with_disk(key, by));
    }

    /// The disk begins with what it prefers.
    fn begin(&mut self, now: u64) {
        if self.running.is_some() || self.inside.is_empty() {
            return;
        }
        let last = self.inside.len() - 1;
        let rank = |at: &usize| match self.prefers {
            Prefers::Latest | Prefers::Any => *at as u64,
            Prefers::FarthestDeadline => {
                self.schedule.times(self.inside[*at].0).expect("it has it").deadline.as_nanos()
            }
            Prefers::Farthest => way(self.heads, transfer(&self.inside[*at].1).lba),
        };
        let chosen = match self.prefers {
            Prefers::Any => self.random.within(0, last as u64) as usize,
            _ => (0..=last).max_by_key(rank).expect("it has some"),
        };
        let (key, command) = self.inside.remove(chosen);
        let access = transfer(&command);
        let most = access.len / SECTOR + way(self.heads, access.lba);
        let takes = if self.random.one_in(8) { self.random.within(1, most) } else { most };
        self.heads = access.end();
        self.running = Some((key, now + takes));
    }
}

fn run(policy: PolicyKind, seed: u64, seen: &mut Seen) {
    let mut world = World::new(policy, seed);
    let gap = world.schedule.tasks().gap().as_nanos();
    let (mut now, mut looked) = (0, 0);
    while now < 8_000 {
        world.ask(now);
        let until = world.give(now, seen);
        looked = looked.max(now);
        let ends = world.running.map(|(_, ends)| ends);
        let next = [until, ends, Some(world.next())].into_iter().flatten().min();
        now = next.expect("there is best effort").max(now + u64::from(ends != Some(now)));
        if world.dozes && world.running.is_some() && world.random.one_in(4) {
            now += world.random.within(0, 3 * WAY);
        }
        let mut ended = Vec::new();
        while let Some((key, ends)) = world.running.filter(|&(_, ends)| ends <= now) {
            world.running = None;
            ended.push((key, ends));
            if world.inside.is_empty() {
                // The host may take so long until the disk has another one.
                now = now.min(ends) + world.random.within(0, gap);
            }
            world.begin(ends);
        }
        world.ask(now);
        for (key, ends) in ended {
            // Since the host looked last, and since the disk has it.
            let earliest = if world.dozes { looked.max(world.given[&key]) } else { ends };
            let latest = if world.dozes { now } else { ends };
            seen.unseen += u64::from(earliest < ends);
            let within = EndTime { earliest: at(earliest), latest: at(latest) };
            let outcome = world.schedule.finished_within(within, key);
            let late = ends.saturating_sub(outcome.times.deadline.as_nanos());
            assert_eq!(late, 0, "{policy}, seed {seed}, at {ends}: {key}, {:?}", world.prefers);
            assert_eq!(outcome.overrun, Duration::ZERO, "{policy}, seed {seed}, at {ends}: {key}");
            seen.promised += u64::from(outcome.times.deadline < Instant::MAX);
        }
    }
}

#[test]
fn whatever_the_disk_prefers_nobody_is_late() {
    let worlds = std::env::var("SLACKLINE_WORLDS").ok().and_then(|text| text.parse().ok());
    for policy in [PolicyKind::SLACK, PolicyKind::EDL] {
        let mut seen = Seen::default();
        (0..worlds.unwrap_or(150)).for_each(|seed| run(policy, seed, &mut seen));
        println!("{policy}: {seen:?}");
        let Seen { commands, beside, under_contract_beside, promised, needed, deepest, unseen } =
            seen;
        assert!(
            beside * 3 > commands && under_contract_beside * 25 > commands,
            "{policy}: {seen:?}"
        );
        assert!(promised * 12 > commands && deepest == 6, "{policy}: {seen:?}");
        assert!(needed * 12 > commands, "{policy}: {seen:?}");
        assert!(unseen * 12 > commands, "{policy}: {seen:?}");
    }
}

/// A request of so many sectors at a place.
fn request(class: Class, lba: u64, len: u64) -> Request {
    let (lba, len) = (Lba::new(lba), Bytes::new(len * SECTOR.get()));
    Request { class, command: Command::Transfer(Access { lba, len, direction: Direction::Read }) }
}

fn options(any_order: u32, gap: u64) -> Options {
    let (reserve, burst, gap) = (Duration::ZERO, Duration::ZERO, ticks(gap));
    Options { reserve, burst, gap, any_order, ..Options::default() }
}

/// The keys of what the disk is given, the heads being at the start.
fn given(schedule: &mut Schedule, now: u64) -> Vec<u64> {
    let mut keys = Vec::new();
    while let Next::Start { key, .. } = schedule.next(at(now), &Arm(Lba::new(0))) {
        keys.push(key);
    }
    keys
}

/// Best effort is given to the disk as long as each of it could come from anywhere, the first too,
/// and a request that comes next is not late: to the tick. In an order in which each takes all
/// that, it ends as it is due.
#[test]
fn the_slack_covers_all_in_the_worst_order_to_the_tick() {
    const LENGTHS: [u64; 4] = [3, 5, 2, 4];
    for (policy, gap) in [(PolicyKind::SLACK, 0), (PolicyKind::SLACK, 2), (PolicyKind::EDL, 1)] {
        for many in 2..=4 {
            for short in [0, 1] {
                let all: u64 = LENGTHS[..many].iter().map(|len| len + WAY + gap).sum();
                let cost = 9;
                let deadline = ticks(all + cost + gap - short);
                let mut schedule = Schedule::new(policy, options(4, gap));
                let task = Task::new(ticks(1_000), deadline, ticks(cost));
                let id = schedule.join(at(0), task).expect("it fits");
                for (key, len) in LENGTHS.into_iter().enumerate() {
                    let (key, class) = (key as u64, Class::best_effort(true));
                    schedule.submit(at(0), key, request(class, key * 8, len));
                }
                let mut keys = given(&mut schedule, 0);
                let wanted: Vec<u64> = (0..(many as u64 - short)).collect();
                assert_eq!(keys, wanted, "{policy}, gap {gap}, {many}, short by {short}");
                assert_eq!(schedule.with_disk().collect::<Vec<_>>(), wanted);

                (0..4).for_each(|key| {
                    schedule.cancel(key);
                });
                schedule.submit(at(0), 9, request(Class::RealTime(id), 0, cost));
                let mut now = 0;
                // The first to come is the last to be served.
                keys.reverse();
                let way = if keys.len() > 1 { WAY } else { 0 };
                for key in keys {
                    now += LENGTHS[key as usize] + way;
                    let outcome = schedule.finished(at(now), key);
                    assert!(outcome.overrun <= ticks(gap), "the host takes no longer");
                    now += gap;
                    if schedule.in_flight() > 0 {
                        assert_eq!(given(&mut schedule, now), [], "it would be late");
                    }
                }
                assert_eq!(given(&mut schedule, now), [9]);
                let outcome = schedule.finished(at(now + cost), 9);
                let left = outcome.times.deadline.saturating_since(at(now + cost));
                assert_eq!(outcome.late_by, Duration::ZERO);
                assert!(
                    short == 1 || left == ticks(gap),
                    "{left}: one more tick would not be late"
                );
            }
        }
    }
}

/// What was merged with the first command is in its bound from anywhere, too.
#[test]
fn what_was_added_to_a_command_counts_from_anywhere_with_it() {
    const MORE: u64 = 7;
    for short in [0, 1] {
        let deadline = ticks(2 * (2 + WAY) + MORE + 9 - short);
        let mut schedule = Schedule::new(PolicyKind::SLACK, options(4, 0));
        schedule.join(at(0), Task::new(ticks(1_000), deadline, ticks(9))).expect("it fits");
        (0..3).for_each(|key| {
            schedule.submit(at(0), key, request(Class::best_effort(true), key * 2, 2));
        });
        let Next::Start { key: 0, .. } = schedule.next(at(0), &Arm(Lba::new(0))) else { panic!() };
        assert!(schedule.start_with(at(0), 1, 0, ticks(MORE)));
        let wanted: &[u64] = if short == 0 { &[2] } else { &[] };
        assert_eq!(given(&mut schedule, 0), wanted);
    }
}

/// What has a deadline and is with the disk is served by it, though the disk prefers all others.
#[test]
fn what_the_disk_has_is_served_by_its_deadline_as_the_last() {
    for short in [0, 1] {
        let mut schedule = Schedule::new(PolicyKind::SLACK, options(4, 0));
        let cost = 2 + WAY;
        let tasks = [3 * cost - short, 900, 950].map(|deadline| {
            let task = Task::new(ticks(1_000), ticks(deadline), ticks(cost));
            schedule.join(at(0), task).expect("it fits")
        });
        for (key, id) in tasks.into_iter().enumerate() {
            schedule.submit(at(0), key as u64, request(Class::RealTime(id), 0, 2));
        }
        // Alone, each would take 2 ticks.
        let wanted: &[u64] = if short == 0 { &[0, 1, 2] } else { &[0, 1] };
        assert_eq!(given(&mut schedule, 0), wanted);
    }
}

/// Best effort that the disk has, and that somebody comes to need, is served by then, though the disk
/// prefers all others: to the tick.
#[test]
fn what_the_disk_has_is_promised_for_no_sooner_than_it_may_be_and_kept() {
    for policy in [PolicyKind::SLACK, PolicyKind::EDL] {
        let mut schedule = Schedule::new(policy, options(4, 0));
        let each = 2 + WAY;
        (0..2).for_each(|key| {
            schedule.submit(at(0), key, request(Class::best_effort(false), 0, 2));
        });
        assert_eq!(given(&mut schedule, 0), [0, 1]);
        assert!(!schedule.promise_with_disk(2, at(9_999)), "the disk does not have it");
        assert!(!schedule.promise_with_disk(1, at(2 * each - 1)), "it may be the last");
        assert!(schedule.promise_with_disk(1, at(3 * each)));
        assert!(schedule.promise_with_disk(1, at(9_999)), "it is needed sooner all the same");
        (2..4).for_each(|key| {
            schedule.submit(at(0), key, request(Class::best_effort(false), 0, 2));
        });
        let third = given(&mut schedule, 0);
        assert_eq!(third.len(), 1, "the fourth would make it late");
        assert!(schedule.finished(at(3 * each), 1).late_by.is_zero());
        assert_eq!(given(&mut schedule, 3 * each), [5 - third[0]]);
    }
}

/// A request that may take longer from anywhere than its contract covers goes beside others where
/// the slack covers the difference.
#[test]
fn what_takes_longer_than_its_contract_covers_asks_the_slack() {
    let beside = |slack: u64| {
        let mut schedule = Schedule::new(PolicyKind::SLACK, options(4, 0));
        let (first, second, others) = (2 + WAY, WAY - 5, 12);
        let all = first + second + others * first + slack;
        let tasks = [(300, first), (400, second)].into_iter();
        for (key, (deadline, cost)) in tasks.chain((0..others).map(|_| (all, first))).enumerate() {
            let task = Task::new(ticks(4_000), ticks(deadline), ticks(cost));
            let id = schedule.join(at(0), task).expect("it fits");
            if key < 2 {
                schedule.submit(at(0), key as u64, request(Class::RealTime(id), 0, 2));
            }
        }
        given(&mut schedule, 0).len()
    };
    // From anywhere the second takes seven ticks more than its contract has.
    assert_eq!([6, 7, 8].map(beside), [1, 2, 2]);
}

/// Beside those that may be late now and then nothing goes.
#[test]
fn nothing_goes_beside_others_where_some_have_odds() {
    let ms = Duration::from_millis;
    let many = |at_odds: bool| {
        let options = Options { reserve: ms(12), ..options(4, 0) };
        let mut schedule = Schedule::new(PolicyKind::SLACK, options);
        let odds = Odds { miss: Chance::one_in(100), mean: ms(1), deviation: ms(1), most: ms(4) };
        let task = Task::new(ms(100), ms(100), ms(4));
        let task = if at_odds { task.at_odds(odds) } else { task };
        schedule.join(at(0), task).expect("it fits");
        for key in 0..4 {
            schedule.submit(at(0), key, request(Class::best_effort(true), key * 8, 2));
        }
        given(&mut schedule, 0).len()
    };
    assert_eq!([false, true].map(many), [4, 1]);
}

/// Under contract beside best effort, or the other way round, nothing goes: when the kinds change
/// is the policy's choice. And nothing goes beside what is not one command.
#[test]
fn what_goes_beside_others_is_of_their_kind() {
    /// Of odd keys it is not known what they take from anywhere.
    struct Odd;
    impl Predict for Odd {
        fn bound(&self, _: Lba, _: &Command) -> Duration {
            ticks(2)
        }
        fn bound_anywhere(&self, key: u64, _: &Command) -> Option<Duration> {
            key.is_multiple_of(2).then_some(ticks(2))
        }
    }
    let next = |schedule: &mut Schedule| match schedule.next(at(0), &Odd) {
        Next::Start { key, .. } => Some(key),
        Next::Wait { .. } => None,
    };
    let mut schedule = Schedule::new(PolicyKind::SLACK, options(3, 0));
    let id = schedule.join(at(0), Task::new(ticks(900), ticks(900), ticks(2))).expect("it fits");
    schedule.submit(at(0), 0, request(Class::best_effort(true), 0, 2));
    assert_eq!(next(&mut schedule), Some(0));
    schedule.submit(at(0), 2, request(Class::RealTime(id), 0, 2));
    assert_eq!(next(&mut schedule), None, "of another kind");
    schedule.submit(at(0), 3, request(Class::best_effort(true), 0, 2));
    assert_eq!(next(&mut schedule), None, "in several commands");
    schedule.finished(at(1), 0);
    assert_eq!(next(&mut schedule), Some(3));
    schedule.submit(at(1), 4, request(Class::best_effort(true), 0, 2));
    assert_eq!(next(&mut schedule), None, "beside what is in several commands");
    schedule.finished(at(1), 3);
    assert_eq!(next(&mut schedule), Some(4));
    assert_eq!(next(&mut schedule), None, "of another kind");
    schedule.finished(at(2), 4);
    assert_eq!(next(&mut schedule), Some(2), "no best effort waits");
    for key in [6, 8, 10, 12] {
        schedule.submit(at(2), key, request(Class::best_effort(true), key, 2));
    }
    assert_eq!(next(&mut schedule), None, "of another kind");
    schedule.finished(at(3), 2);
    assert_eq!([(); 3].map(|()| next(&mut schedule)), [6, 8, 10].map(Some));
    assert_eq!(next(&mut schedule), None, "no more than it holds");
}

/// One that the disk keeps waiting goes on after a second at the latest: nothing more is given to
/// it until that has ended.
#[test]
fn what_waits_in_the_disk_for_a_second_is_waited_for() {
    let mut schedule = Schedule::new(PolicyKind::SLACK, options(2, 0));
    let mut key = 0;
    let (mut now, step) = (Instant::EPOCH, Duration::from_millis(100));
    for _ in 0..30 {
        for _ in 0..2 {
            let nearest = request(Class::best_effort(true), 0, 2);
            schedule.submit(now, key, nearest);
            key += 1;
        }
        while let Next::Start { .. } = schedule.next(now, &Arm(Lba::new(0))) {}
        now += step;
        // Never the first.
        let Some(last) = schedule.with_disk().filter(|&key| key > 0).last() else { break };
        schedule.finished(now, last);
    }
    assert_eq!(schedule.with_disk().collect::<Vec<_>>(), [0]);
    assert_eq!(now, Instant::EPOCH + step * 11);
}
