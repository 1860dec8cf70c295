//! What the host takes between two commands is charged for each of them: nobody is late in
//! worlds in which every command is followed by a gap, and a larger gap is taken on only
//! where what is promised can still be kept.
//!
//! `SLACKLINE_GAPS=1000000` says how many random worlds, and `SLACKLINE_GAPS_FROM` from which
//! one on.
#![allow(clippy::print_stdout)] // how much was tried is part of the result

use crate::common::Random;
use sched::{
    Class, Contract, Next, Options, PolicyKind, Predict, Refusal, Request, Schedule, Task, TaskId,
    TaskSet,
};
use std::collections::{HashMap, VecDeque};
use std::sync::LazyLock;
use units::{Access, Bytes, Command, Direction, Duration, Instant, Lba, SECTOR};

const fn ticks(ticks: u64) -> Duration {
    Duration::from_nanos(ticks)
}

const fn at(tick: u64) -> Instant {
    Instant::from_nanos(tick)
}

/// A tick a sector; after each part of a request but its last, a gap.
struct Sectors<'a> {
    parts: &'a HashMap<u64, u32>,
    gap: u64,
}

/// Requests of one command each.
fn whole() -> Sectors<'static> {
    static NONE: LazyLock<HashMap<u64, u32>> = LazyLock::new(HashMap::new);
    Sectors { parts: &NONE, gap: 0 }
}

impl Predict for Sectors<'_> {
    fn bound(&self, _: Lba, command: &Command) -> Duration {
        ticks(command.access().expect("only transfers here").len / SECTOR)
    }

    fn bound_of(&self, from: Lba, key: u64, command: &Command) -> Duration {
        self.bound(from, command) + ticks(self.gap * u64::from(self.gaps_within(key)))
    }

    fn gaps_within(&self, key: u64) -> u32 {
        self.parts.get(&key).map_or(0, |parts| parts - 1)
    }
}

fn read(cost: u64) -> Command {
    let len = Bytes::new(SECTOR.get() * cost);
    Command::Transfer(Access { lba: Lba::new(cost * 31 % 97), len, direction: Direction::Read })
}

fn promising() -> Vec<PolicyKind> {
    policies::ALL.iter().copied().filter(|kind| kind.promise.contracts).collect()
}

struct Member {
    id: TaskId,
    task: Task,
    server: bool,
    asks: u64,
}

/// A world in ticks: random contracts, most commands at their bounds, most gaps at theirs,
/// and best effort that takes all slack that there is.
struct World {
    random: Random,
    schedule: Schedule,
    /// What is charged; what the host takes is up to that.
    gap: u64,
    /// What it takes besides.
    unsaid: u64,
    /// Streams alone, and everything at its bounds: costs, gaps, and how soon programs ask.
    strict: bool,
    members: Vec<Member>,
    /// Of requests that are served in several commands with nothing between them: in how many.
    parts: HashMap<u64, u32>,
    now: u64,
    /// The command that the disk works on, and when it ends.
    busy: Option<(u64, u64)>,
    /// Those that it has besides, and how long each takes: it goes on by itself.
    queue: VecDeque<(u64, u64)>,
    /// The host is about the last command until then.
    host: u64,
    keys: u64,
    best_effort: u64,
    late: u64,
    promised: u64,
    /// How often a gap grew while the disk worked on what has some in it.
    longer: u64,
}

impl World {
    fn new(seed: u64, policy: PolicyKind) -> Self {
        let mut random = Random::new(seed);
        let (gap, strict) = (random.within(0, 6), random.one_in(2));
        let reserve = ticks(*random.pick(&[0, 0, 3, 8]));
        let burst = ticks(*random.pick(&[0, 0, 20]));
        let depth = *random.pick(&[1, 1, 2, 3]);
        let options = Options { reserve, burst, depth, gap: ticks(gap), ..Options::default() };
        let schedule = Schedule::new(policy, options);
        let mut world = Self {
            random,
            schedule,
            gap,
            unsaid: 0,
            strict,
            members: Vec::new(),
            parts: HashMap::new(),
            now: 0,
            busy: None,
            queue: VecDeque::new(),
            host: 0,
            keys: 0,
            best_effort: 0,
            late: 0,
            promised: 0,
            longer: 0,
        };
        let most = *world.random.pick(&[4, 12, 40]);
        (0..most).for_each(|_| world.join());
        world
    }

    fn now_and_then(&mut self, one_in: u64) -> bool {
        !self.strict && self.random.one_in(one_in)
    }

    fn contract(&mut self) -> (Contract, bool) {
        let period = self.random.within(10, 160);
        let cost = self.random.within(1, (period / 5).max(2));
        let tight = self.random.one_in(3);
        let deadline = if tight { self.random.within(cost, period) } else { period };
        let task = Task::new(ticks(period), ticks(deadline), ticks(cost));
        if !self.strict && self.random.one_in(4) {
            let command = ticks(self.random.within(1, cost));
            return (Contract::Server(task.in_commands(command)), true);
        }
        let parts = *self.random.pick(&[1, 1, 2, 5]);
        (Contract::Stream(task.in_parts(parts)), false)
    }

    fn join(&mut self) {
        let (contract, server) = self.contract();
        if let Ok(id) = self.schedule.join(at(self.now), contract) {
            let task = contract.task();
            self.members.push(Member { id, task, server, asks: self.now });
        }
    }

    fn submit(&mut self, class: Class, cost: u64) -> u64 {
        self.keys += 1;
        self.schedule.submit(at(self.now), self.keys, Request { class, command: read(cost) });
        self.keys
    }

    fn ask(&mut self) {
        for which in 0..self.members.len() {
            let Member { id, task, server, asks } = self.members[which];
            if asks > self.now {
                continue;
            }
            let late = if self.now_and_then(4) { self.random.within(0, 20) } else { 0 };
            self.members[which].asks = self.now + task.period.as_nanos() + late;
            if server {
                for _ in 0..self.random.within(1, 4) {
                    let cost = self.random.within(1, task.command.as_nanos());
                    self.submit(Class::server(id, ticks(cost)), cost);
                }
            } else {
                let key = self.submit(Class::RealTime(id), task.cost.as_nanos());
                let fewer = if self.now_and_then(3) { 1 } else { task.parts };
                self.parts.insert(key, fewer);
            }
        }
    }

    /// Everything that can happen to contracts.
    fn events(&mut self) {
        match self.random.within(0, if self.strict { 900 } else { 90 }) {
            0 => self.join(),
            1 if self.members.len() > 1 => {
                let member = self.members.swap_remove(0);
                self.schedule.leave(member.id);
            }
            2 if !self.members.is_empty() => {
                let (contract, server) = self.contract();
                let Member { id, .. } = self.members[0];
                if self.schedule.change(at(self.now), id, contract).is_ok() {
                    let (task, asks) = (contract.task(), self.now);
                    self.members[0] = Member { id, task, server, asks };
                }
            }
            3 => {
                let gap = self.random.within(0, 6);
                let taken = self.schedule.set_gap(at(self.now), ticks(gap)).is_ok();
                assert!(taken || gap > self.gap, "a smaller gap is never refused");
                if taken {
                    self.lengthen(gap.saturating_sub(self.gap));
                    self.gap = gap;
                }
            }
            _ => {}
        }
    }

    /// All gaps within what the disk works on come after this, and are longer by so much.
    fn lengthen(&mut self, longer: u64) {
        let mut further = 0;
        for (end, key) in self.busy.iter_mut() {
            further = self.parts.get(key).map_or(0, |parts| u64::from(parts - 1));
            *end += further * longer;
        }
        for (key, takes) in &mut self.queue {
            *takes += self.parts.get(key).map_or(0, |parts| u64::from(parts - 1)) * longer;
        }
        self.longer += u64::from(further * longer > 0);
    }

    /// As much as there is, some more or less, or anything.
    fn offer(&mut self) -> u64 {
        let slack = self.schedule.slack_now(at(self.now), ticks(400));
        let slack = slack.unwrap_or_default().as_nanos();
        let less = self.random.within(0, self.gap);
        let any = self.random.within(1, 12);
        let most = slack.saturating_sub(self.gap);
        *self.random.pick(&[most.max(1), slack.saturating_sub(less).max(1), any])
    }

    /// The host asks for as long as there is something, each time with something on offer.
    /// Until when the schedule wants to wait then.
    fn start(&mut self) -> Option<u64> {
        loop {
            let offer = self.offer();
            let in_parts = self.random.within(1, 4) as u32;
            let gaps = self.gap * u64::from(in_parts - 1);
            let (offer, parts) = if offer > gaps { (offer - gaps, in_parts) } else { (offer, 1) };
            let offer = self.submit(Class::best_effort(true), offer);
            self.parts.insert(offer, parts);
            let of = Sectors { parts: &self.parts, gap: self.gap };
            let next = self.schedule.next(at(self.now), &of);
            self.schedule.cancel(offer);
            let (key, predicted) = match next {
                Next::Start { key, predicted } => (key, predicted),
                Next::Wait { until } => return until.map(Instant::as_nanos),
            };
            let bound = predicted.as_nanos();
            let early = self.now_and_then(6);
            let actual = if early { self.random.within(1, bound) } else { bound };
            if self.busy.is_none() {
                self.busy = Some((self.now + actual, key));
            } else {
                self.queue.push_back((key, actual));
            }
        }
    }

    /// 1,500 ticks.
    fn run(&mut self) {
        while self.now < 1_500 {
            self.step();
        }
    }

    fn step(&mut self) {
        if let Some((end, key)) = self.busy.filter(|&(end, _)| end <= self.now) {
            self.busy = self.queue.pop_front().map(|(key, actual)| (end + actual, key));
            let outcome = self.schedule.finished(at(end), key);
            self.late += u64::from(!outcome.late_by.is_zero());
            self.promised += u64::from(outcome.times.deadline < Instant::MAX);
            self.best_effort += u64::from(outcome.class.task().is_none());
            let less = self.now_and_then(6);
            let gap = if less { self.random.within(0, self.gap) } else { self.gap };
            self.host = end + gap + self.unsaid;
        }
        self.ask();
        self.events();
        let until = if self.now >= self.host { self.start() } else { None };
        self.now = self.next_instant(until);
    }

    /// When something happens next, or best effort comes by chance: nothing changes before,
    /// so that a world takes a step for each instant at which something does.
    fn next_instant(&mut self, until: Option<u64>) -> u64 {
        let chance = self.now + self.random.within(1, 12);
        let ends = self.busy.map(|(end, _)| end);
        let asks = self.members.iter().map(|member| member.asks);
        let all = asks.chain(ends).chain(until).chain([self.host, chance]);
        all.filter(|&at| at > self.now).min().expect("chance comes later")
    }
}

#[test]
fn nobody_is_late_where_a_gap_follows_each_command() {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let wanted = number("SLACKLINE_GAPS").unwrap_or(2_000);
    let from = number("SLACKLINE_GAPS_FROM").unwrap_or(0);
    let (mut promised, mut best_effort, mut longer) = (0, 0, 0);
    for seed in from..from + wanted {
        let policies = promising();
        let policy = policies[seed as usize % policies.len()];
        let mut world = World::new(seed, policy);
        world.run();
        assert_eq!(world.late, 0, "seed {seed}, {policy}");
        promised += world.promised;
        best_effort += world.best_effort;
        longer += world.longer;
    }
    println!("{wanted} worlds: {promised} requests under contract, {best_effort} of best effort");
    println!("a gap grew {longer} times within what the disk worked on");
    assert!(promised > wanted * 50 && best_effort > wanted * 10 && longer > wanted / 20);
}

/// The harness proves itself: the same worlds with gaps of which the schedule is not told.
#[test]
fn somebody_is_late_where_the_gap_is_more_than_was_said() {
    let mut late = 0;
    for seed in 0..60 {
        let mut world = World::new(seed, PolicyKind::SLACK);
        world.unsaid = 2;
        world.run();
        late += u64::from(world.late > 0);
    }
    assert!(late > 20, "{late} of 60 worlds");
}

const fn us(us: u64) -> Duration {
    Duration::from_micros(us)
}

struct Fixed(Duration);

impl Predict for Fixed {
    fn bound(&self, _: Lba, _: &Command) -> Duration {
        self.0
    }
}

/// As many streams of one kind as are taken, up to `most`, that all begin at once. The host
/// takes `gap` after each command, and deadlines are advanced by its latency. How many there
/// are, how many requests they had, how many were late, and by how much.
fn crowd(
    (most, cost, period): (usize, Duration, Duration),
    latency: Duration,
    [gap, charged]: [Duration; 2],
    rounds: u32,
) -> (usize, u64, u64, Duration) {
    let options = Options { reserve: cost, gap: charged, ..Options::default() };
    let mut schedule = Schedule::new(PolicyKind::SLACK, options);
    let task = Task::new(period, period.saturating_sub(latency), cost);
    let mut join = || schedule.join(Instant::EPOCH, task).ok();
    let ids: Vec<TaskId> = (0..most).map_while(|_| join()).collect();
    let (mut key, mut late, mut late_max, mut requests) = (0, 0, Duration::ZERO, 0);
    let (mut now, mut released, end) =
        (Instant::EPOCH, Instant::EPOCH, Instant::EPOCH + period * u64::from(rounds));
    while now < end {
        while released <= now && released < end {
            for &id in &ids {
                key += 1;
                let request = Request { class: Class::RealTime(id), command: read(1) };
                schedule.submit(released, key, request);
            }
            released += period;
        }
        if schedule.counts().waiting_best_effort == 0 {
            key += 1;
            let request = Request { class: Class::best_effort(true), command: read(1) };
            schedule.submit(now, key, request);
        }
        match schedule.next(now, &Fixed(cost)) {
            Next::Start { key, .. } => {
                now += cost;
                let outcome = schedule.finished(now, key);
                requests += u64::from(outcome.class.task().is_some());
                let late_by = outcome.late_by.saturating_sub(latency);
                late += u64::from(!late_by.is_zero());
                late_max = late_max.max(late_by);
                now += gap;
            }
            Next::Wait { until } => now = until.map_or(released, |until| until.min(released)),
        }
    }
    (ids.len(), requests, late, late_max)
}

/// One gap before the deadline is not enough: a busy period has many.
#[test]
fn the_host_s_latency_alone_does_not_cover_the_gaps_of_a_busy_period() {
    let streams = (19, Duration::from_millis(60), Duration::from_millis(1_250));
    for gap in [us(500), us(2_000)] {
        let latency = us(2_000);
        let before = crowd(streams, latency, [gap, Duration::ZERO], 20);
        let after = crowd(streams, latency, [gap, gap], 20);
        println!("{gap} after each command of 60 ms: {before:?}, and charged {after:?}");
        assert!(before.2 > 5 && after.2 == 0 && after.0 >= 17, "{before:?}, {after:?}");
    }
    let flash = (816, us(1_000), us(832_000));
    let before = crowd(flash, us(100), [us(20), Duration::ZERO], 6);
    let after = crowd(flash, us(100), [us(20), us(20)], 6);
    println!("20 us after each command on flash: {before:?}, and charged {after:?}");
    assert!(before.2 > 50 && after.2 == 0 && after.0 >= 750, "{before:?}, {after:?}");
}

#[test]
fn admission_charges_each_request_for_a_gap() {
    let task = |cost, period| Task::new(ticks(period), ticks(period), ticks(cost));
    let set = |gap| TaskSet::new(Duration::ZERO).with_gap(ticks(gap));
    // Ten of 10 in 100; with a gap of 1 nine, and 1 is left.
    let fits = |set: &mut TaskSet| (0..20).map_while(|_| set.add(task(10, 100)).ok()).count();
    let (mut without, mut with) = (set(0), set(1));
    assert_eq!([fits(&mut without), fits(&mut with)], [10, 9]);
    assert_eq!(with.slack(), ticks(1));
    assert_eq!(with.demand(ticks(100)), ticks(99));
    assert!(with.iter().all(|(_, stated)| stated == task(10, 100)), "as it was stated");
    assert_eq!(with.blocking(ticks(50)), ticks(11), "what others wait for");
    // In commands of 4 there are three of them at least.
    let in_commands = set(2);
    let found = in_commands.check(&task(10, 100).in_commands(ticks(4))).expect("alone");
    assert_eq!(found.slack, ticks(100 - 10 - 3 * 2));
    // Nothing that would end after its deadline with it.
    assert!(set(1).admits(&task(100, 100)).is_err());
    // The command that the reserve is for has one, too.
    let reserve = TaskSet::new(ticks(5)).with_gap(ticks(2));
    assert!(reserve.admits(&task(91, 100)).is_ok() && reserve.admits(&task(92, 100)).is_err());
    assert_eq!(reserve.reserve(), ticks(5));
}

#[test]
fn another_gap_is_taken_where_all_contracts_can_be_kept_with_it() {
    let options = Options { reserve: ticks(5), gap: ticks(1), ..Options::default() };
    let mut schedule = Schedule::new(PolicyKind::SLACK, options);
    let task = Task::new(ticks(100), ticks(100), ticks(10));
    let ids: Vec<TaskId> = (0..8).map(|_| schedule.join(at(0), task).expect("eight fit")).collect();
    assert_eq!(schedule.tasks().slack(), ticks(12));
    // 8 * 12 and 5 + 2 are 103.
    let Refusal { deadline, undecided, .. } =
        schedule.set_gap(at(0), ticks(2)).expect_err("too much");
    assert!(!undecided && deadline == Some((ticks(100), ticks(3))), "{deadline:?}");
    assert_eq!((schedule.tasks().slack(), schedule.tasks().gap()), (ticks(12), ticks(1)));
    schedule.leave(ids[0]);
    schedule.set_gap(at(0), ticks(2)).expect("seven fit");
    assert_eq!(schedule.tasks().slack(), ticks(100 - 7 * 12));
    assert_eq!(schedule.tasks().get(ids[1]), Some(task), "names and contracts stay");
    // All wait, and so much was given away that there is no time for more.
    for (key, &id) in ids[1..].iter().enumerate() {
        schedule.submit(
            at(0),
            key as u64,
            Request { class: Class::RealTime(id), command: read(10) },
        );
    }
    assert_eq!(schedule.slack_now(at(0), ticks(99)), Some(ticks(16)));
    // A command of 15 is followed by 2; one of 14 is the longest that there is time for.
    let best_effort = |cost| Request { class: Class::best_effort(true), command: read(cost) };
    schedule.submit(at(0), 98, best_effort(15));
    let mut other = schedule.clone();
    assert!(matches!(other.next(at(0), &whole()), Next::Start { key, .. } if key != 98));
    schedule.cancel(98);
    schedule.submit(at(0), 99, best_effort(14));
    let next = schedule.next(at(0), &whole());
    assert_eq!(next, Next::Start { key: 99, predicted: ticks(14) }, "told without the gap");
    assert_eq!(schedule.slack_now(at(0), ticks(99)), Some(ticks(0)), "while it is in service");
    let outcome = schedule.finished(at(14), 99);
    assert_eq!((outcome.actual, outcome.predicted), (ticks(14), ticks(14)));
    assert_eq!(schedule.slack_now(at(14), ticks(99)), Some(ticks(0)), "the gap is still to come");
    assert!(schedule.set_gap(at(14), ticks(3)).expect_err("no time").undecided);
    assert_eq!(schedule.tasks().gap(), ticks(2));
    schedule.set_gap(at(14), ticks(0)).expect("less is never refused");
    assert_eq!(schedule.slack_now(at(14), ticks(99)), Some(ticks(16)));
    assert!(schedule.set_gap(at(14), ticks(1)).is_ok());
}
