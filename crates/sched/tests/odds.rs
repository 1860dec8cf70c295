//! Tasks whose requests may be late now and then, beside others that may not, and beside greedy
//! best effort: the production schedule admits them and serves them, costs are drawn. No request
//! that may not be late is, and of the others no more than was said.
//!
//! `SLACKLINE_ODDS_REQUESTS`: how many requests each load serves (default 350,000).
#![allow(clippy::print_stdout)] // how much was covered is part of the result

use crate::common::Random;
use sched::{
    BrokenOdds, Chance, Class, Next, Odds, OddsWatch, Options, PolicyKind, Predict, Request,
    Schedule, Task, TaskId,
};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use units::{Access, Bytes, Command, Direction, Duration, Instant, Lba};

/// What a command is bound to take, those of best effort, too.
const BOUND: Duration = Duration::from_millis(40);
const RESERVE: Duration = BOUND;

/// A millisecond, or once in so many times all of the bound, or so many times as long.
#[derive(Clone, Copy)]
struct Costs {
    once_in: u64,
    times: u64,
}

impl Costs {
    const OFTEN: Duration = Duration::from_millis(1);

    fn draw(self, random: &mut Random) -> Duration {
        let cost = if random.one_in(self.once_in) { BOUND } else { Self::OFTEN };
        (cost * self.times).min(BOUND)
    }

    /// Rounded up.
    fn odds(self, miss: Chance) -> Odds {
        let rise = (BOUND - Self::OFTEN).as_nanos();
        let mean = Self::OFTEN + Duration::from_nanos(rise.div_ceil(self.once_in));
        let deviation = Duration::from_nanos(rise / self.once_in.isqrt() + 1);
        Odds { miss, mean, deviation, most: BOUND }
    }
}

const COSTS: Costs = Costs { once_in: 2_000, times: 1 };

struct Bound;
impl Predict for Bound {
    fn bound(&self, _: Lba, _: &Command) -> Duration {
        BOUND
    }
}

fn command() -> Command {
    let lba = Lba::new(0);
    Command::Transfer(Access { lba, len: Bytes::kib(64), direction: Direction::Read })
}

struct World {
    schedule: Schedule,
    /// All tasks, and whether each has odds.
    tasks: Vec<(TaskId, Task)>,
    random: Random,
    costs: Costs,
    watch: OddsWatch,
    /// Late ones of those that may not be.
    broken: u64,
}

impl World {
    fn new(costs: Costs, seed: u64) -> Self {
        let options = Options { reserve: RESERVE, burst: Duration::ZERO, ..Options::default() };
        Self {
            schedule: Schedule::new(PolicyKind::SLACK, options),
            tasks: Vec::new(),
            random: Random::new(seed),
            costs,
            watch: OddsWatch::default(),
            broken: 0,
        }
    }

    fn joins(&mut self, task: Task) -> bool {
        let joined = self.schedule.join(Instant::EPOCH, task);
        joined.map(|id| self.tasks.push((id, task))).is_ok()
    }

    /// Those that may not be late take all of their bounds; best effort takes whatever is left.
    fn serve(&mut self, requests: u64) {
        let mut asks = BinaryHeap::new();
        for (at, (_, task)) in self.tasks.iter().enumerate() {
            let phase = self.random.within(0, task.period.as_nanos());
            asks.push(Reverse((Instant::EPOCH + Duration::from_nanos(phase), at)));
        }
        let mut owners: BTreeMap<u64, Option<usize>> = BTreeMap::new();
        let (mut now, mut keys, mut greedy) = (Instant::EPOCH, 0, false);
        while self.watch.requests() < requests {
            loop {
                let due = asks.peek().filter(|Reverse((at, _))| *at <= now).copied();
                let Some(Reverse((at, task))) = due else { break };
                asks.pop();
                let (id, Task { period, .. }) = self.tasks[task];
                asks.push(Reverse((at + period, task)));
                let (class, command) = (Class::RealTime(id), command());
                self.schedule.submit(at, keys, Request { class, command });
                owners.insert(keys, Some(task));
                keys += 1;
            }
            if !greedy {
                let (class, command) = (Class::best_effort(true), command());
                self.schedule.submit(now, keys, Request { class, command });
                (greedy, _) = (true, owners.insert(keys, None));
                keys += 1;
            }
            match self.schedule.next(now, &Bound) {
                Next::Start { key, .. } => {
                    let owner = owners.remove(&key).unwrap();
                    let odds = owner.and_then(|task| self.tasks[task].1.odds);
                    let took = match odds {
                        Some(_) => self.costs.draw(&mut self.random),
                        None => BOUND,
                    };
                    now += took;
                    let is_late = !self.schedule.finished(now, key).late_by.is_zero();
                    match odds {
                        Some(odds) => self.watch.ended(&odds, took, is_late && owner.is_some()),
                        None => self.broken += u64::from(is_late && owner.is_some()),
                    }
                    greedy &= owner.is_some();
                }
                Next::Wait { until } => {
                    let ask = asks.peek().unwrap().0.0;
                    now = until.unwrap_or(ask).min(ask).max(now + Duration::from_nanos(1));
                }
            }
        }
    }
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// 50 of these a second: five of them by bounds would be all of the disk.
fn stream(miss: Chance, within: u64) -> Task {
    let deadline = ms(within);
    Task::new(ms(20), deadline, BOUND).at_odds(COSTS.odds(miss))
}

fn requests() -> u64 {
    let set = std::env::var("SLACKLINE_ODDS_REQUESTS").ok().and_then(|text| text.parse().ok());
    set.unwrap_or(350_000)
}

/// Streams that may be late, and as many that may not, until one of these is refused.
fn fill(world: &mut World, miss: Chance, within: u64) -> (u64, u64) {
    let (mut kept, mut at_odds) = (0, 0);
    for number in 0..40 {
        if number % 4 == 0 {
            kept += u64::from(world.joins(Task::new(ms(1_000), ms(1_000), BOUND)));
        }
        at_odds += u64::from(world.joins(stream(miss, within)));
    }
    (kept, at_odds)
}

#[test]
fn what_may_not_be_late_is_not_and_the_rest_no_oftener_than_was_said() {
    for (per, within) in [(100, 400), (10_000, 600), (1_000_000, 800)] {
        let miss = Chance::one_in(per);
        let mut world = World::new(COSTS, per);
        let (kept, at_odds) = fill(&mut world, miss, within);
        world.serve(requests());
        let (late, all) = (world.watch.late(), world.watch.requests());
        println!("{kept} kept, {at_odds} at {miss} within {within} ms: {late} of {all} late");
        assert_eq!(world.broken, 0, "those that may not be late");
        let stated = all * miss.per_billion() / 1_000_000_000;
        assert!(late <= stated + 3 * stated.isqrt() + 2, "{late} late, {stated} stated");
        assert!(at_odds >= 2 && kept >= 2, "{at_odds} at odds, {kept} kept");
        assert_eq!(world.watch.broken(), None);
    }
}

/// By bounds not one would be taken: it asks for twice the disk.
#[test]
fn those_at_odds_fit_where_bounds_do_not_and_leave_what_others_were_promised() {
    let mut world = World::new(COSTS, 1);
    assert!(!world.joins(Task::new(ms(20), ms(20), ms(20))), "the reserve alone is more");
    let before = world.schedule.tasks().slack();
    assert!(world.joins(stream(Chance::one_in(1_000_000), 800)));
    assert_eq!(world.schedule.tasks().slack(), before, "nothing is kept for it");
    // A command that is longer than the reserve has no slack that is there always.
    let long = Task::new(ms(900), ms(900), ms(60));
    let odds = Odds { most: ms(60), ..COSTS.odds(Chance::one_in(100)) };
    assert!(!world.joins(long.at_odds(odds)), "its command may not be long");
    // Others that may not be late join only as far as the odds of those that are there hold.
    let mut kept = 0;
    while world.joins(Task::new(ms(1_000), ms(1_000), BOUND)) {
        kept += 1;
    }
    let mut alone = World::new(COSTS, 1);
    let mut most = 0;
    while alone.joins(Task::new(ms(1_000), ms(1_000), BOUND)) {
        most += 1;
    }
    println!("{kept} beside one at odds, {most} alone");
    assert!(0 < kept && kept < most, "{kept} of {most}");
}

/// Costs of twice what was measured are noticed before many requests were late for them.
#[test]
fn a_distribution_that_is_wrong_by_two_is_noticed() {
    let wrong = Costs { times: 2, ..COSTS };
    let mut world = World::new(wrong, 3);
    assert!(world.joins(stream(Chance::one_in(1_000_000), 800)));
    let mut served = 0;
    while world.watch.broken().is_none() {
        served += 512;
        assert!(served < 20_000, "it is not noticed");
        let watch = std::mem::take(&mut world.watch);
        let (tasks, costs) = (world.tasks.clone(), world.costs);
        world = World::new(costs, served);
        world.watch = watch;
        for (_, task) in tasks {
            assert!(world.joins(task));
        }
        world.serve(served);
    }
    println!("noticed within {served} requests, {} of them late", world.watch.late());
    assert_eq!(world.watch.broken(), Some(BrokenOdds::Costs));
}

#[test]
fn too_many_late_ones_are_noticed_and_the_odds_that_were_said_are_not() {
    for (per, broken) in [(1_000, false), (100, true)] {
        let odds = COSTS.odds(Chance::one_in(1_000));
        let (mut watch, mut random) = (OddsWatch::default(), Random::new(per));
        for _ in 0..1_000_000 {
            watch.ended(&odds, Costs::OFTEN, random.one_in(per));
        }
        let found = watch.broken();
        assert_eq!(found, broken.then_some(BrokenOdds::Late), "{} late", watch.late());
    }
}

/// Months in which fewer were late than might have been are no credit: then once in ten is as much too
/// often as at first.
#[test]
fn a_break_after_good_months_is_noticed_as_soon_as_one_at_first() {
    for (odds, breaks, within) in
        [(1_000, 10, 100), (1_000, 300, 30_000), (1_000_000, 1_000, 10_000)]
    {
        let stated = COSTS.odds(Chance::one_in(odds));
        let noticed = |good: u64, lates: u64| {
            let (mut watch, mut random) = (OddsWatch::default(), Random::new(7));
            for at in 1..=good {
                watch.ended(&stated, Costs::OFTEN, lates > 0 && at % lates == 0);
            }
            assert_eq!(watch.broken(), None, "after {good}");
            let mut broken = |watch: &mut OddsWatch| {
                watch.ended(&stated, Costs::OFTEN, random.one_in(breaks));
                watch.broken() == Some(BrokenOdds::Late)
            };
            (1..u64::MAX).find(|_| broken(&mut watch)).expect("it is noticed")
        };
        let at_first = noticed(0, 0);
        println!("once in {breaks} in place of {odds}: noticed after {at_first}");
        assert!(at_first <= within, "{at_first}");
        for (good, lates) in [(1_000_000, 0), (10_000_000, 0), (1_000_000, odds)] {
            assert!(noticed(good, lates) <= at_first, "{good} {lates}");
        }
    }
}

/// Frequent ones among which some are late as often as was said are no reproach to a rare one;
/// and rare ones that are late too often do not hide among them.
#[test]
fn each_late_request_is_judged_by_odds_like_its_own() {
    let [often, rarely] = [50, 1_000_000].map(|per| COSTS.odds(Chance::one_in(per)));
    let mut watch = OddsWatch::default();
    (0..100_000).for_each(|at| watch.ended(&often, Costs::OFTEN, at % 200 == 0));
    watch.ended(&rarely, Costs::OFTEN, true);
    assert_eq!((watch.broken(), watch.late()), (None, 501), "one may happen");
    (0..100).for_each(|at| watch.ended(&rarely, Costs::OFTEN, at % 20 == 0));
    assert_eq!(watch.broken(), Some(BrokenOdds::Late), "six of a hundred at once in a million");
    watch.tasks_changed();
    assert_eq!((watch.broken(), watch.requests()), (None, 0), "that was of other tasks");
}

/// Commands of 64 KiB take as long as the reserve, longer ones half as long again.
struct ByLength;
impl Predict for ByLength {
    fn bound(&self, _: Lba, command: &Command) -> Duration {
        match command {
            Command::Transfer(access) if access.len > Bytes::kib(64) => BOUND * 3 / 2,
            _ => BOUND,
        }
    }
}

fn long_command() -> Command {
    let lba = Lba::new(0);
    Command::Transfer(Access { lba, len: Bytes::kib(128), direction: Direction::Read })
}

/// Odds are promised for commands in the way that are no longer than the reserve.
#[test]
fn while_there_are_odds_nothing_longer_than_the_reserve_begins_in_the_slack() {
    for policy in [PolicyKind::SLACK, PolicyKind::EDL] {
        let options = Options { reserve: RESERVE, burst: Duration::ZERO, ..Options::default() };
        let mut schedule = Schedule::new(policy, options);
        let start = Instant::EPOCH;
        let kept = schedule.join(start, Task::new(ms(1_000), ms(1_000), BOUND)).unwrap();
        let at_odds = schedule.join(start, stream(Chance::one_in(1_000_000), 800)).unwrap();
        let submit = |schedule: &mut Schedule, at, key, class, command| {
            schedule.submit(at, key, Request { class, command });
        };
        submit(&mut schedule, start, 1, Class::best_effort(true), long_command());
        submit(&mut schedule, start, 2, Class::RealTime(kept), long_command());
        let nothing = matches!(schedule.next(start, &ByLength), Next::Wait { .. });
        assert!(nothing, "neither best effort nor what costs more than its contract");
        assert!(schedule.never_fits(start, 1, &ByLength), "who waits is told");
        submit(&mut schedule, start, 3, Class::best_effort(true), command());
        let short = schedule.next(start, &ByLength);
        assert!(matches!(short, Next::Start { key: 3, .. }), "{short:?}");
        schedule.finished(start + BOUND, 3);
        assert!(schedule.leave(at_odds).is_empty());
        let later = start + ms(10_000);
        let freed = schedule.next(later, &ByLength);
        assert!(matches!(freed, Next::Start { key: 1 | 2, .. }), "{freed:?}");
    }
}

/// Under each policy that takes such tasks, however much slack there is.
#[test]
fn while_there_are_odds_best_effort_goes_before_no_released_request() {
    for policy in [PolicyKind::SLACK, PolicyKind::EDL] {
        let options = Options { reserve: RESERVE, burst: Duration::ZERO, ..Options::default() };
        let mut schedule = Schedule::new(policy, options);
        let start = Instant::EPOCH;
        let kept = schedule.join(start, Task::new(ms(1_000), ms(1_000), BOUND)).unwrap();
        schedule.join(start, stream(Chance::one_in(1_000_000), 800)).unwrap();
        let best_effort = Request { class: Class::best_effort(true), command: command() };
        schedule.submit(start, 1, best_effort);
        schedule.submit(start, 2, Request { class: Class::RealTime(kept), command: command() });
        let first = schedule.next(start, &Bound);
        assert!(matches!(first, Next::Start { key: 2, .. }), "{policy:?}: {first:?}");
    }
}

/// 20 ms for those that may not be late; else 1 ms, or 5 ms once in 100 times.
struct TwoKinds {
    at_odds: TaskId,
    owners: BTreeMap<u64, TaskId>,
}

impl TwoKinds {
    const KEPT: Duration = Duration::from_millis(20);
    const MOST: Duration = Duration::from_millis(5);

    fn draw(&self, key: u64, random: &mut Random) -> Duration {
        match self.owners[&key] == self.at_odds {
            true if random.one_in(100) => Self::MOST,
            true => ms(1),
            false => Self::KEPT,
        }
    }
}

impl Predict for TwoKinds {
    fn bound(&self, _: Lba, _: &Command) -> Duration {
        unreachable!("each request has a bound of its own")
    }

    fn bound_of(&self, _: Lba, key: u64, _: &Command) -> Duration {
        if self.owners[&key] == self.at_odds { Self::MOST } else { Self::KEPT }
    }
}

/// Three readers that may not be late, each of which jumps once a period, as soon as it has asked
/// for its block: its turn would come anew, and there would be a request more in each period than
/// the odds of the one beside them count with.
#[test]
fn readers_that_jump_do_not_break_the_odds_of_others() {
    for jumps in [false, true] {
        let options =
            Options { reserve: TwoKinds::KEPT, burst: Duration::ZERO, ..Options::default() };
        let mut schedule = Schedule::new(PolicyKind::SLACK, options);
        let task = Task::new(ms(200), ms(200), TwoKinds::KEPT);
        let kept: Vec<TaskId> =
            (0..3).map(|_| schedule.join(Instant::EPOCH, task).unwrap()).collect();
        let (mean, deviation) = (Duration::from_micros(1_040), Duration::from_micros(401));
        let odds = Odds { miss: Chance::one_in(1_000_000), mean, deviation, most: TwoKinds::MOST };
        let every = Duration::from_micros(1_800);
        let within = |deadline| Task::new(every, deadline, TwoKinds::MOST).at_odds(odds);
        // As a pool does: twice the shortest for which the odds hold.
        let mut deadlines = (4..160).map(|times| ms(50) * times);
        let (found, deadline) = deadlines
            .find_map(|by| Some((schedule.join(Instant::EPOCH, within(by)).ok()?, by)))
            .expect("its odds hold");
        schedule.leave(found);
        let at_odds = schedule.join(Instant::EPOCH, within(deadline * 2)).unwrap();
        let mut costs = TwoKinds { at_odds, owners: BTreeMap::new() };
        // When each asks next, and whether it jumps then.
        let mut asks: BinaryHeap<_> =
            (0..3).map(|at| Reverse((Instant::EPOCH + ms(60) * at, at as usize, false))).collect();
        asks.push(Reverse((Instant::EPOCH, kept.len(), false)));
        let (mut random, mut now, mut keys) = (Random::new(9), Instant::EPOCH, 0);
        let [mut served, mut late, mut late_kept, mut jumped] = [0; 4];
        while now < Instant::EPOCH + Duration::from_secs(20) {
            while let Some(&Reverse((at, which, is_jump))) = asks.peek().filter(|it| it.0.0 <= now)
            {
                asks.pop();
                let id = kept.get(which).copied().unwrap_or(at_odds);
                if is_jump {
                    let turn = schedule.next_release(id);
                    schedule.renew(at, id, at);
                    jumped += 1;
                    if schedule.next_release(id) == turn {
                        asks.push(Reverse((turn, which, false)));
                        continue;
                    }
                }
                let request = Request { class: Class::RealTime(id), command: command() };
                schedule.submit(at, keys, request);
                costs.owners.insert(keys, id);
                keys += 1;
                asks.push(Reverse(match id == at_odds {
                    true => (at + every, which, false),
                    false if jumps && !is_jump => (at + ms(1), which, true),
                    false => (schedule.next_release(id), which, false),
                }));
            }
            match schedule.next(now, &costs) {
                Next::Start { key, .. } => {
                    now += costs.draw(key, &mut random);
                    let is_late = !schedule.finished(now, key).late_by.is_zero();
                    match costs.owners.remove(&key) == Some(at_odds) {
                        true => (served, late) = (served + 1, late + u64::from(is_late)),
                        false => late_kept += u64::from(is_late),
                    }
                }
                Next::Wait { until } => {
                    let ask = asks.peek().unwrap().0.0;
                    now = until.unwrap_or(ask).min(ask).max(now + Duration::from_nanos(1));
                }
            }
        }
        println!("{jumped} jumps: {late} of {served} late within {deadline} twice");
        assert_eq!((late, late_kept), (0, 0), "jumps: {jumps}");
        assert!(served > 10_000 && (jumped > 100) == jumps, "{served} and {jumped}");
    }
}
