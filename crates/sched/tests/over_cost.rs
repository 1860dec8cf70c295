//! Requests that cost more than was charged for them: a disk that turns out slower while
//! requests wait, and a stream that asks for more than its contract covers. Nobody else is
//! late for it.
#![allow(clippy::print_stdout)] // how much was tried is part of the result

use crate::common;
use crate::common::{Random, brute, random_set};
use sched::{
    Admission, Class, Contract, First, Next, Options, PolicyKind, Predict, Request, Rest, Schedule,
    Task, TaskId,
};
use units::{Access, Bytes, Command, Direction, Duration, Instant, Lba, SECTOR};

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn at(millis: u64) -> Instant {
    Instant::EPOCH + ms(millis)
}

/// A read of so many sectors; its key is its place.
fn read(key: u64, sectors: u64) -> Command {
    let len = Bytes::new(SECTOR.get() * sectors);
    Command::Transfer(Access { lba: Lba::new(key), len, direction: Direction::Read })
}

/// How long a command takes: so many milliseconds a sector, but for those of 50 sectors.
#[derive(Clone, Copy)]
struct Disk {
    ms_per_sector: u64,
}

impl Predict for Disk {
    fn bound(&self, _: Lba, command: &Command) -> Duration {
        let sectors = command.access().expect("only transfers here").len / SECTOR;
        ms(if sectors == 50 { 50 } else { sectors * self.ms_per_sector })
    }
}

struct Stream {
    id: TaskId,
    task: Task,
    /// What one of its requests reads.
    sectors: u64,
    asks: Instant,
}

/// One disk whose every command takes all of its bound, and two requests of best effort,
/// 50 ms each, that always wait.
struct World {
    schedule: Schedule,
    disk: Disk,
    now: Instant,
    busy: Option<(Instant, u64)>,
    streams: Vec<Stream>,
    offers: u64,
    keys: u64,
    best_effort: u64,
    /// By stream: how many requests were late, and the most.
    late: Vec<(u64, Duration)>,
    /// Requests to servers that had a deadline, and how many of them were late.
    served: (u64, u64),
}

impl World {
    fn new(policy: PolicyKind, disk: Disk, offers: u64) -> Self {
        let by = policy.admission;
        let options = Options { reserve: ms(50), burst: Duration::ZERO, by, ..Options::default() };
        let schedule = Schedule::new(policy, options);
        let (now, streams, late) = (Instant::EPOCH, Vec::new(), Vec::new());
        let (busy, keys, best_effort, served) = (None, 0, 0, (0, 0));
        Self { schedule, disk, now, busy, streams, offers, keys, best_effort, late, served }
    }

    fn join(&mut self, task: Task, sectors: u64) {
        let id = self.schedule.join(self.now, task).expect("it is admitted");
        self.streams.push(Stream { id, task, sectors, asks: self.now });
        self.late.push((0, Duration::ZERO));
    }

    fn submit(&mut self, class: Class, sectors: u64) {
        self.keys += 1;
        let command = read(self.keys, sectors);
        self.schedule.submit(self.now, self.keys, Request { class, command });
    }

    fn ask(&mut self) {
        for which in 0..self.streams.len() {
            let Stream { id, task, sectors, asks } = self.streams[which];
            if asks <= self.now {
                self.streams[which].asks = self.now + task.period;
                self.submit(Class::RealTime(id), sectors);
            }
        }
        while self.schedule.counts().waiting_best_effort < self.offers {
            self.submit(Class::best_effort(true), 50);
        }
    }

    fn end(&mut self) {
        let (end, key) = self.busy.take().expect("the disk ends what it began");
        let outcome = self.schedule.finished(end, key);
        let Some(id) = outcome.class.task() else {
            self.best_effort += 1;
            return;
        };
        let Some(which) = self.streams.iter().position(|stream| stream.id == id) else {
            self.served.0 += u64::from(outcome.times.deadline < Instant::MAX);
            self.served.1 += u64::from(!outcome.late_by.is_zero());
            return;
        };
        let late = &mut self.late[which];
        late.0 += u64::from(!outcome.late_by.is_zero());
        late.1 = late.1.max(outcome.late_by);
    }

    fn run_without_streams(&mut self, until: Instant) {
        for stream in &mut self.streams {
            stream.asks = Instant::MAX;
        }
        self.run(until);
    }

    fn run(&mut self, until: Instant) {
        while self.now < until {
            if self.busy.is_some_and(|(end, _)| end <= self.now) {
                self.end();
            }
            self.ask();
            if self.busy.is_none()
                && let Next::Start { key, predicted } = self.schedule.next(self.now, &self.disk)
            {
                self.busy = Some((self.now + predicted, key));
            }
            self.now += ms(1);
        }
    }

    fn all_late(&self) -> (u64, Duration) {
        self.late.iter().fold((0, Duration::ZERO), |sum, one| (sum.0 + one.0, sum.1.max(one.1)))
    }

    /// The disk takes half as long again for a stream's request: every contract is changed
    /// to that, or none is and the disk stays what it was thought to be. True where all are.
    fn widens(&mut self) -> bool {
        let before = self.schedule.clone();
        for stream in &self.streams {
            let task = stream.task;
            let wide = Task::new(task.period, task.deadline, task.cost * 3 / 2);
            if self.schedule.change(self.now, stream.id, wide).is_err() {
                self.schedule = before;
                return false;
            }
        }
        self.disk.ms_per_sector = self.disk.ms_per_sector * 3 / 2;
        true
    }
}

/// Policies that promise contracts.
fn promising() -> impl Iterator<Item = PolicyKind> {
    policies::ALL.iter().copied().filter(|kind| kind.promise.contracts)
}

/// Fifteen streams, half of the disk, all at once; best effort takes what slack there is.
fn fifteen(policy: PolicyKind) -> World {
    let mut world = World::new(policy, Disk { ms_per_sector: 20 }, 2);
    for _ in 0..15 {
        world.join(Task::new(ms(1_250), ms(1_250), ms(40)), 2);
    }
    world
}

/// A disk is measured again and is slower. What waits costs more from then on, too: either
/// there is time for that, or the change is refused.
#[test]
fn a_wider_profile_charges_what_waits() {
    let (mut taken, mut refused) = (0, 0);
    for policy in promising() {
        for when in (1_250..3_750).step_by(50) {
            let mut world = fifteen(policy);
            world.run(at(when));
            let changed = world.widens();
            taken += u64::from(changed);
            refused += u64::from(!changed);
            world.run(at(when + 3_000));
            assert_eq!(world.all_late(), (0, Duration::ZERO), "{policy}, changed at {when}");
        }
    }
    println!("{taken} changes taken, {refused} refused");
    assert!(taken > 20 && refused > 20, "both: {taken} taken, {refused} refused");
}

/// A disk that reads 25 sectors of a request at a time, in so many tenths of a millisecond each.
struct InChunks(u64);

/// What is read at a time.
const CHUNK: u64 = 25;

impl Predict for InChunks {
    fn bound(&self, _: Lba, command: &Command) -> Duration {
        let sectors = command.access().expect("only transfers here").len / SECTOR;
        Duration::from_micros(sectors * self.0 * 100)
    }

    fn first_of(&self, from: Lba, key: u64, command: &Command) -> Option<First> {
        let access = *command.access().filter(|_| key < 3)?; // not best effort
        let left = (access.len / SECTOR).saturating_sub(CHUNK);
        let first =
            Command::Transfer(Access { len: SECTOR * CHUNK.min(access.len / SECTOR), ..access });
        let bound = Duration::from_micros(left * self.0 * 100);
        let rest = Rest { bound, commands: (left / CHUNK) as u32 };
        Some(First { command: first, bound: self.bound(from, &first), rest })
    }
}

/// The same where the first command of a request is done, or under way, and a nearer deadline has
/// come between.
#[test]
fn a_wider_profile_charges_what_has_begun() {
    let (long, near) = (ms(400), ms(60));
    let task =
        |cost: u64| Task::new(long, ms(200), ms(cost)).in_chunks(ms(cost / 4), 4, Duration::ZERO);
    for under_way in [false, true] {
        let (reserve, burst) = (Duration::ZERO, Duration::ZERO);
        let options = Options { reserve, burst, ..Options::default() };
        let mut schedule = Schedule::new(PolicyKind::SLACK, options);
        let stream = schedule.join(at(0), task(100)).unwrap();
        let other = schedule.join(at(0), Task::new(long, near, ms(10))).unwrap();
        let real_time =
            |id, sectors| Request { class: Class::RealTime(id), command: read(1_000, sectors) };
        schedule.submit(at(0), 1, real_time(stream, 4 * CHUNK));
        let started = schedule.next(at(0), &InChunks(10));
        assert_eq!(started, Next::Start { key: 1, predicted: ms(25) });
        schedule.submit(at(10), 2, real_time(other, 10));
        if under_way {
            schedule.change(at(20), stream, task(160)).unwrap();
        }
        // As it is known by then.
        let rest = Rest { bound: ms(if under_way { 120 } else { 75 }), commands: 3 };
        schedule.finished_part(at(25), 1, read(1_000 + CHUNK, 3 * CHUNK), rest);
        let started = schedule.next(at(25), &InChunks(10));
        assert_eq!(started, Next::Start { key: 2, predicted: ms(10) });
        if !under_way {
            schedule.change(at(30), stream, task(160)).unwrap();
        }
        // There is time for it beside 75 ms, and not beside the 120 ms that the rest takes now.
        let offer = Request { class: Class::best_effort(true), command: read(9_000, 50) };
        schedule.submit(at(30), 3, offer);
        schedule.finished(at(35), 2);
        let mut now = at(35);
        let mut done = 1;
        while done < 4 {
            let Next::Start { key, predicted } = schedule.next(now, &InChunks(16)) else {
                panic!()
            };
            assert_eq!(key, 1, "{now}: {done} are done");
            now += predicted;
            done += 1;
            if done < 4 {
                let left = 4 - done;
                let rest = Rest { bound: ms(40 * left), commands: left as u32 };
                schedule.finished_part(now, 1, read(1_000 + done * CHUNK, left * CHUNK), rest);
            }
        }
        let outcome = schedule.finished(now, 1);
        assert_eq!(outcome.late_by, Duration::ZERO, "{now}");
    }
}

/// Where what is left of a request under way would be late by the wider profile, that is refused.
#[test]
fn a_wider_profile_is_refused_where_what_has_begun_does_not_fit_with_it() {
    let task = |cost: u64| {
        Task::new(ms(400), ms(200), ms(cost)).in_chunks(ms(cost / 4), 4, Duration::ZERO)
    };
    let (reserve, burst) = (Duration::ZERO, Duration::ZERO);
    let options = Options { reserve, burst, ..Options::default() };
    let mut schedule = Schedule::new(PolicyKind::SLACK, options);
    let stream = schedule.join(at(0), task(100)).unwrap();
    schedule.join(at(0), Task::new(ms(400), ms(60), ms(10))).unwrap();
    let offer = Request { class: Class::best_effort(true), command: read(9_000, 50) };
    schedule.submit(at(0), 3, offer);
    assert_eq!(schedule.next(at(0), &InChunks(10)), Next::Start { key: 3, predicted: ms(50) });
    let request = Request { class: Class::RealTime(stream), command: read(1_000, 4 * CHUNK) };
    schedule.submit(at(1), 1, request);
    schedule.finished(at(50), 3);
    assert_eq!(schedule.next(at(50), &InChunks(10)), Next::Start { key: 1, predicted: ms(25) });
    // From 75 ms on 138 are left of it, and it is due at 201.
    let refused = schedule.change(at(60), stream, task(184)).unwrap_err();
    assert!(refused.undecided, "{refused:?}");
    schedule.change(at(60), stream, task(152)).unwrap();
}

/// Streams hand in all that they have at once; what is to be released yet is changed with
/// the rest.
#[test]
fn what_came_early_is_charged_too() {
    for policy in promising() {
        for when in (0..2_500).step_by(125) {
            let mut world = fifteen(policy);
            for _ in 0..3 {
                for which in 0..15 {
                    let Stream { id, sectors, .. } = world.streams[which];
                    world.submit(Class::RealTime(id), sectors);
                    world.streams[which].asks = at(3 * 1_250);
                }
            }
            world.run(at(when));
            world.widens();
            world.run(at(8_000));
            assert_eq!(world.all_late(), (0, Duration::ZERO), "{policy}, changed at {when}");
        }
    }
}

/// The last stream reads up to eighty times as much as its contract covers, from any time
/// on. It is late; the others, who keep theirs, are not. (What never fits never begins.)
#[test]
fn who_asks_for_more_than_his_contract_covers_is_late_alone() {
    let mut over_cost = 0;
    for policy in promising() {
        for (offers, greedy_sectors) in [(0, 12), (0, 17), (0, 18), (2, 12), (2, 2), (0, 80)] {
            for phase in [0, 50, 101, 150, 195, 199] {
                let mut world = World::new(policy, Disk { ms_per_sector: 10 }, offers);
                world.join(Task::new(ms(200), ms(180), ms(10)), 1);
                world.join(Task::new(ms(1_000), ms(500), ms(100)), 10);
                world.join(Task::new(ms(600), ms(600), ms(100)), 10);
                world.run(at(phase));
                world.join(Task::new(ms(1_000), ms(1_000), ms(10)), greedy_sectors);
                world.run(at(8_000));
                let name = format!("{policy}, {offers}, {greedy_sectors}, {phase}");
                assert_eq!(world.late[..3], [(0, Duration::ZERO); 3], "{name}");
                let counts = world.schedule.counts();
                over_cost += counts.over_cost;
                assert!(greedy_sectors > 2 || counts.over_cost > 5, "{name}: {counts:?}");
                assert!(offers == 0 || world.best_effort > 10, "{name}: {counts:?}");
            }
        }
    }
    assert!(over_cost > 300, "{over_cost}");
}

/// A little more than the contract covers is nothing to anybody while there is slack.
#[test]
fn a_little_more_than_the_contract_covers_is_served_in_slack_and_in_time() {
    for policy in promising() {
        let mut world = World::new(policy, Disk { ms_per_sector: 11 }, 2);
        for period in [300, 500, 700] {
            world.join(Task::new(ms(period), ms(period), ms(20)), 2);
        }
        world.run(at(20_000));
        let counts = world.schedule.counts();
        assert!(counts.over_cost > 100, "{policy}: {counts:?}");
        assert_eq!(world.all_late(), (0, Duration::ZERO), "{policy}");
        assert!(world.best_effort > 100, "{policy}");
    }
}

/// What waits for slack is not lost when the policy changes to one that knows nothing of it.
#[test]
fn another_policy_serves_what_waited_for_slack() {
    for &kind in policies::ALL {
        let mut world = World::new(PolicyKind::SLACK, Disk { ms_per_sector: 10 }, 0);
        world.join(Task::new(ms(1_000), ms(1_000), ms(10)), 30);
        world.join(Task::new(ms(100), ms(100), ms(10)), 1);
        world.run(at(3));
        world.run(at(500));
        let waiting = world.schedule.counts().waiting_real_time;
        assert_eq!(waiting, 1, "its 300 ms never fit");
        world.schedule.set_policy(kind);
        world.schedule.set_policy(PolicyKind::SLACK);
        world.schedule.set_policy(kind);
        let key = world.schedule.queues().by_arrival()[0].key;
        world.run(at(1_200));
        let waits = world.schedule.queues().get(key).is_some();
        // Those that keep deadlines let it wait; the others serve it in its turn.
        let keeps = kind.promise.contracts || matches!(kind.admission, Admission::Sweeps(_));
        assert_eq!(waits, keeps, "{kind}");
    }
}

/// A request to a server that takes longer than it says leaves its container: others have
/// the budget, nothing is kept for it, and it is served in slack.
#[test]
fn a_request_to_a_server_that_says_too_little_leaves_the_budget_to_others() {
    for policy in promising() {
        let mut world = World::new(policy, Disk { ms_per_sector: 10 }, 0);
        world.join(Task::new(ms(200), ms(180), ms(10)), 1);
        let server = Contract::Server(Task::new(ms(400), ms(400), ms(30)));
        let id = world.schedule.join(at(0), server).expect("it fits");
        let slack = world.schedule.slack_now(at(0), ms(1_000));
        let ask = |world: &mut World, sectors, says| {
            world.submit(Class::server(id, ms(says)), sectors);
            world.keys
        };
        let [long, longer] = [12, 90].map(|sectors| ask(&mut world, sectors, 15));
        world.run_without_streams(at(1));
        let right = ask(&mut world, 1, 10);
        let deadline = world.schedule.times(right).expect("it waits").deadline;
        assert!(deadline < Instant::MAX, "{policy}: the budget is for it now");
        world.run_without_streams(at(200));
        let waits = |world: &World, key| world.schedule.queues().get(key).is_some();
        assert_eq!([right, longer].map(|key| waits(&world, key)), [false, true], "{policy}");
        world.run_without_streams(at(800));
        assert!(!waits(&world, long) || policy == PolicyKind::DELTA_L, "{policy}");
        assert_eq!(world.schedule.slack_now(at(800), ms(1_000)), slack, "nothing is kept");
        let again = ask(&mut world, 3, 30);
        assert_eq!(world.schedule.times(again).expect("it waits").deadline, at(1_200));
        assert_eq!(world.all_late(), (0, Duration::ZERO));
    }
}

/// Streams, and a server of four requests a second beside them; best effort takes what slack there
/// is. By cycles there is room for fewer.
fn beside_a_server(policy: PolicyKind) -> (World, TaskId) {
    let mut world = World::new(policy, Disk { ms_per_sector: 20 }, 2);
    for _ in 0..if policy.admission == Admission::Exact { 8 } else { 2 } {
        world.join(Task::new(ms(1_250), ms(1_250), ms(40)), 2);
    }
    let server = Task::new(ms(1_000), ms(1_000), ms(160)).in_commands(ms(40));
    let id = world.schedule.join(at(0), Contract::Server(server)).expect("it fits");
    (world, id)
}

/// The disk takes half as long again, also for what waits for a server. True where that is
/// taken.
fn widens_beside(world: &mut World, server: TaskId, costs: &[(u64, Duration)]) -> bool {
    let (before, disk) = (world.schedule.clone(), world.disk);
    let wide = Contract::Server(Task::new(ms(1_000), ms(1_000), ms(240)).in_commands(ms(60)));
    let is_taken =
        world.widens() && world.schedule.change_charging(world.now, server, wide, costs).is_ok();
    if !is_taken {
        (world.schedule, world.disk) = (before, disk);
    }
    is_taken
}

/// Requests to a server, too, cost more from then on. Those that had budget keep it and their
/// deadlines, those in the line have theirs as soon as before, and all are served in time, or the
/// change is refused. By cycles and by sweeps those that had budget may lose it, and nobody else
/// is late.
#[test]
fn a_wider_profile_charges_what_waits_for_a_server() {
    let keeps = |kind: &PolicyKind| {
        kind.promise.contracts
            || matches!(kind.admission, Admission::Cycles(_) | Admission::Sweeps(_))
    };
    for policy in policies::ALL.iter().copied().filter(keeps) {
        let (mut taken, mut refused, mut had_budget, mut in_line) = (0, 0, 0, 0);
        for when in (1_250..2_500).step_by(50) {
            let (mut world, server) = beside_a_server(policy);
            for asks in [0, 1_250] {
                world.run(at(asks));
                for _ in 0..6 {
                    world.submit(Class::server(server, ms(40)), 2);
                }
            }
            world.run(at(when));
            let waits: Vec<_> = {
                let all = world.schedule.queues().by_arrival().into_iter();
                let theirs = all.filter(|one| one.class.task() == Some(server));
                theirs.map(|one| (one.key, one.times.deadline)).collect()
            };
            let costs: Vec<_> = waits.iter().map(|&(key, _)| (key, ms(60))).collect();
            let is_taken = widens_beside(&mut world, server, &costs);
            taken += u64::from(is_taken && !waits.is_empty());
            refused += u64::from(!is_taken);
            let name = format!("{policy}, changed at {when}: {is_taken}, {waits:?}");
            let is_exact = policy.admission == Admission::Exact;
            for &(key, deadline) in &waits {
                let has_budget = deadline < Instant::MAX;
                had_budget += u64::from(has_budget);
                in_line += u64::from(!has_budget);
                let now = world.schedule.times(key).expect("it waits").deadline;
                assert!(now == deadline || !has_budget || !is_exact, "{name}: {key} is due {now}");
            }
            let before = world.served;
            world.run(at(when + 4_000));
            assert_eq!(world.all_late(), (0, Duration::ZERO), "{name}");
            assert_eq!(world.schedule.counts().over_cost, 0, "{name}");
            let budgets = waits.iter().filter(|(_, deadline)| *deadline < Instant::MAX).count();
            if is_exact && is_taken {
                assert_eq!(world.served.1, 0, "{name}");
                assert!(world.served.0 - before.0 >= budgets as u64, "{name}: {:?}", world.served);
            }
            let left = waits.iter().filter(|(key, _)| world.schedule.queues().get(*key).is_some());
            assert_eq!(left.count(), 0, "{name}");
        }
        println!(
            "{policy}: {taken} taken, {refused} refused, {had_budget} had budget, {in_line} in line"
        );
        assert!(taken > 0, "{policy}");
    }
}

/// Small admitted sets in whole ticks, of which the first task's requests cost up to 6 each,
/// at random: it alone is late, whatever best effort comes.
#[test]
fn in_small_worlds_only_who_is_over_his_cost_is_late() {
    let mut random = Random::new(31);
    let (mut worlds, mut over_cost, mut late) = (0, 0, 0);
    while worlds < 3_000 {
        let tasks = random.within(2, 4);
        let set = random_set(&mut random, tasks, common::SMALL, true);
        let known = brute(&set);
        if known.work > known.common || known.least < 0 {
            continue;
        }
        worlds += 1;
        for policy in promising() {
            let options =
                Options { reserve: Duration::ZERO, burst: Duration::ZERO, ..Options::default() };
            let mut schedule = Schedule::new(policy, options);
            let mut join = |ticks: &common::Ticks| schedule.join(Instant::EPOCH, ticks.task());
            let ids: Vec<TaskId> = set.iter().map(|ticks| join(ticks).expect("it fits")).collect();
            let (mut busy, mut keys) = (None, 0);
            for tick in 0..150 {
                let now = Instant::from_nanos(tick);
                if let Some((_, key)) = busy.filter(|&(end, _)| end <= tick) {
                    busy = None;
                    let outcome = schedule.finished(now, key);
                    let own = outcome.class.task() == Some(ids[0]);
                    late += u64::from(own && !outcome.late_by.is_zero());
                    assert!(own || outcome.late_by.is_zero(), "{set:?}, {policy}: {outcome:?}");
                }
                for (&id, ticks) in ids.iter().zip(&set) {
                    let waits = schedule.queues().by_arrival();
                    let waits = waits.iter().filter(|one| one.class.task() == Some(id)).count();
                    if waits < 2 && random.one_in(2) {
                        keys += 1;
                        let own = id == ids[0];
                        let cost = if own { random.within(1, 6) } else { ticks.cost };
                        let command = read(keys, cost);
                        schedule.submit(now, keys, Request { class: Class::RealTime(id), command });
                    }
                }
                if random.one_in(3) && schedule.counts().waiting_best_effort < 2 {
                    keys += 1;
                    let (class, cost) = (Class::best_effort(true), random.within(1, 6));
                    schedule.submit(now, keys, Request { class, command: read(keys, cost) });
                }
                if busy.is_none()
                    && let Next::Start { key, predicted } = schedule.next(now, &WholeTicks)
                {
                    busy = Some((tick + predicted.as_nanos(), key));
                }
            }
            over_cost += schedule.counts().over_cost;
        }
    }
    println!("{over_cost} requests over their cost, {late} of them or their likes late");
    assert!(over_cost > 10_000 && late > 2_000);
}

/// A tick a sector.
struct WholeTicks;

impl Predict for WholeTicks {
    fn bound(&self, _: Lba, command: &Command) -> Duration {
        Duration::from_nanos(command.access().expect("only transfers here").len / SECTOR)
    }
}

/// A request that waits for slack and is to read something else is still one that waits for
/// slack, and leaves once.
#[test]
fn a_request_over_its_cost_can_be_redirected() {
    let disk = Disk { ms_per_sector: 1 };
    let mut schedule = Schedule::new(PolicyKind::SLACK, Options::default());
    let task = schedule.join(at(0), Task::new(ms(200), ms(200), ms(10))).unwrap();
    schedule.join(at(0), Task::new(ms(200), ms(120), ms(30))).unwrap();
    let submit = |schedule: &mut Schedule, key| {
        let request = Request { class: Class::RealTime(task), command: read(key, 150) };
        schedule.submit(at(1_000), key, request);
    };
    submit(&mut schedule, 1);
    assert!(matches!(schedule.next(at(1_000), &disk), Next::Wait { .. }), "no slack for it");
    assert!(schedule.redirect(at(1_000), 1, read(7, 150)));
    assert_eq!(schedule.queues().get(1).unwrap().command, read(7, 150));
    assert!(matches!(schedule.next(at(1_001), &disk), Next::Wait { .. }), "nor for this");
    assert!(schedule.redirect(at(1_001), 1, read(9, 10)));
    assert!(schedule.cancel(1));
    assert_eq!(schedule.counts().waiting_real_time, 0);
}
