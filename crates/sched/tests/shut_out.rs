//! Best effort is never shut out by one of its own: a request for which the slack does not
//! come is passed by others, is served when it does come, and can be told from those for
//! which it never will.
#![allow(clippy::print_stdout)] // how long everybody waited is part of the result

use sched::{
    Admission, Class, Next, Options, PolicyKind, Predict, Request, Schedule, Task, TaskId,
};
use std::collections::BTreeMap;
use units::{Access, Bytes, Command, Direction, Duration, Instant, Lba, SECTOR};

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn at(millis: u64) -> Instant {
    Instant::EPOCH + ms(millis)
}

/// A millisecond a sector, wherever the head is.
struct Plain;

impl Predict for Plain {
    fn bound(&self, _: Lba, command: &Command) -> Duration {
        ms(command.access().expect("only transfers here").len / SECTOR)
    }
}

fn promising() -> impl Iterator<Item = PolicyKind> {
    policies::ALL.iter().copied().filter(|kind| kind.promise.contracts)
}

/// A disk whose every command takes its bound, beside streams that ask for all they may.
struct World {
    schedule: Schedule,
    now: u64,
    busy: Option<(u64, u64)>,
    streams: Vec<(TaskId, u64, u64, u64)>,
    keys: u64,
    /// When each request of best effort came, and was done.
    came: BTreeMap<u64, u64>,
    done: BTreeMap<u64, u64>,
    late: u64,
}

impl World {
    fn new(policy: PolicyKind, burst: u64, streams: &[(u64, u64)]) -> Self {
        let options = Options { reserve: ms(50), burst: ms(burst), ..Options::default() };
        let mut schedule = Schedule::new(policy, options);
        let mut join = |&(cost, period): &(u64, u64)| {
            let task = Task::new(ms(period), ms(period), ms(cost));
            (schedule.join(Instant::EPOCH, task).expect("it is admitted"), cost, period, 0)
        };
        let streams = streams.iter().map(&mut join).collect();
        let (came, done) = (BTreeMap::new(), BTreeMap::new());
        Self { schedule, now: 0, busy: None, streams, keys: 0, came, done, late: 0 }
    }

    fn submit(&mut self, class: Class, cost: u64) -> u64 {
        self.keys += 1;
        let access = Access {
            lba: Lba::new(self.keys * 1_000 % 7_919),
            len: Bytes::new(SECTOR.get() * cost),
            direction: Direction::Read,
        };
        let request = Request { class, command: Command::Transfer(access) };
        self.schedule.submit(at(self.now), self.keys, request);
        if class.task().is_none() {
            self.came.insert(self.keys, self.now);
        }
        self.keys
    }

    fn read(&mut self, cost: u64) -> u64 {
        self.submit(Class::best_effort(true), cost)
    }

    /// Runs until `end`; at each millisecond `more` may ask for more.
    fn run(&mut self, end: u64, more: impl FnMut(&mut Self)) {
        self.go(end, more);
        assert_eq!(self.late, 0, "what is promised is kept");
    }

    /// The same, where requests may be late.
    fn go(&mut self, end: u64, mut more: impl FnMut(&mut Self)) {
        while self.now < end {
            if let Some((_, key)) = self.busy.filter(|&(until, _)| until <= self.now) {
                self.busy = None;
                let outcome = self.schedule.finished(at(self.now), key);
                self.late += u64::from(!outcome.late_by.is_zero());
                if outcome.class.task().is_none() {
                    self.done.insert(key, self.now);
                }
            }
            for which in 0..self.streams.len() {
                let (id, cost, period, asks) = self.streams[which];
                if asks <= self.now {
                    self.streams[which].3 = self.now + period;
                    self.submit(Class::RealTime(id), cost);
                }
            }
            more(self);
            if self.busy.is_none()
                && let Next::Start { key, predicted } = self.schedule.next(at(self.now), &Plain)
            {
                self.busy = Some((self.now + predicted.as_millis(), key));
            }
            self.now += 1;
        }
    }

    fn never_fits(&self, key: u64) -> bool {
        self.schedule.never_fits(at(self.now), key, &Plain)
    }

    /// The longest that one of these waited; those that still wait, until now.
    fn longest_wait(&self, without: &[u64]) -> u64 {
        let of = |(key, came): (&u64, &u64)| self.done.get(key).unwrap_or(&self.now) - came;
        self.came.iter().filter(|(key, _)| !without.contains(key)).map(of).max().unwrap_or(0)
    }
}

/// A stream needs the disk every 200 ms, so that 500 ms never fit. The 598 that come after
/// it are served all the same.
#[test]
fn one_that_never_fits_shuts_nobody_out() {
    for policy in promising() {
        for burst in [0, 200] {
            let mut world = World::new(policy, burst, &[(20, 200)]);
            let long = world.read(500);
            world.run(60_000, |world| {
                if world.now.is_multiple_of(100) && world.keys < 1_500 {
                    world.read(10);
                }
            });
            assert!(world.never_fits(long), "{policy}");
            let (asked, done) = (world.came.len(), world.done.len());
            assert!(asked > 500 && done >= asked - 2, "{policy}: {done} of {asked}");
            assert!(!world.done.contains_key(&long));
            assert!(world.longest_wait(&[long]) <= 300, "{policy}");
        }
    }
}

/// What must be done all the same goes next where somebody insists, and others are late for it once.
#[test]
fn one_that_never_fits_and_must_be_done_goes_next() {
    for policy in promising() {
        let mut world = World::new(policy, 0, &[(20, 200)]);
        let long = world.read(500);
        world.run(5_000, |_| {});
        assert!(world.never_fits(long) && !world.done.contains_key(&long), "{policy}");
        world.schedule.insist(99_999); // nobody
        world.schedule.insist(long);
        world.go(6_000, |_| {});
        let done = world.done.get(&long).copied();
        assert!(done.is_some_and(|done| done < 5_800), "{policy}: {done:?}");
        assert!((1..5).contains(&world.late), "{policy}: {} late", world.late);
    }
}

/// Any number of them is passed, a few in each decision.
#[test]
fn a_thousand_that_never_fit_shut_nobody_out_and_cost_no_more() {
    for policy in promising() {
        let mut world = World::new(policy, 200, &[(20, 200), (100, 1_000)]);
        for _ in 0..1_000 {
            world.read(500);
        }
        let small = world.read(10);
        world.run(20_000, |world| {
            if world.now.is_multiple_of(100) {
                world.read(10);
            }
        });
        assert!(world.done.get(&small).is_some_and(|&done| done < 2_000), "{policy}");
        assert!(world.done.len() > 190, "{policy}: {}", world.done.len());
        // Twenty looks a second, and those that others of best effort need.
        let computed = world.schedule.counts().slack_computed;
        assert!(computed < 20 * 20 + 1_000 + 400, "{policy}: {computed}");
    }
}

/// It would fit while the long stream is not due, if best effort left the slack alone: it
/// gets it, and the others go on for most of the time.
#[test]
fn one_that_fits_now_and_then_gets_its_turn_beside_greedy_best_effort() {
    for policy in promising().filter(|&policy| policy != PolicyKind::DELTA_L) {
        for (burst, streams) in [(0, 1), (200, 1), (0, 3), (200, 3)] {
            let set = [(400, 2_000), (100, 2_000), (100, 2_000)];
            let mut world = World::new(policy, burst, &set[..streams]);
            let slack = world.schedule.tasks().slack().as_millis();
            let mut served = Vec::new();
            for round in 0..3 {
                let long = world.read(slack + 300);
                assert!(!world.never_fits(long), "{policy}");
                let mut small = 0;
                world.run(40_000 * (round + 1), |world| {
                    if world.schedule.counts().waiting_best_effort < 3 {
                        world.read(5);
                        small += 1;
                    }
                });
                let wait = world.done.get(&long).map(|done| done - world.came[&long]);
                served.extend(wait);
                assert!(small > 2_000, "{policy}: {small} others in 40 s");
            }
            println!("{policy}, burst {burst} ms, {streams} streams: served after {served:?} ms");
            assert_eq!(served.len(), 3, "{policy}, {burst}: {served:?}");
            // The first two trials are over after 1 s of age, 250 ms, 1 s, 500 ms, and so on.
            assert!(served.iter().all(|&wait| wait < 20_000), "{policy}, {burst}: {served:?}");
        }
    }
}

/// One that never fits does not stand in the way of one that fits now and then, nor does one
/// that could fit and does not.
#[test]
fn those_that_were_set_aside_take_turns() {
    for policy in promising().filter(|&policy| policy != PolicyKind::DELTA_L) {
        let mut world = World::new(policy, 200, &[(400, 2_000)]);
        let never = [world.read(9_000), world.read(9_000)];
        assert!(never.iter().all(|&key| world.never_fits(key)), "{policy}");
        let long = world.read(1_700);
        world.run(60_000, |world| {
            if world.schedule.counts().waiting_best_effort < 5 {
                world.read(5);
            }
        });
        assert!(world.done.contains_key(&long), "{policy}");
        assert_eq!(never.map(|key| world.done.contains_key(&key)), [false; 2], "{policy}");
    }
}

/// Small requests, one every 50 ms: how many of those of the first second, and of the first
/// minute, waited for more than 100 ms beside long ones.
fn slow_beside(policy: PolicyKind, long: &[u64]) -> [usize; 2] {
    let mut world = World::new(policy, 0, &[(40, 2_000); 40]);
    let long: Vec<u64> = long.iter().map(|&cost| world.read(cost)).collect();
    world.run(60_000, |world| {
        if world.now.is_multiple_of(50) {
            world.read(5);
        }
    });
    assert!(long.iter().all(|key| !world.done.contains_key(key)), "{policy}");
    [900, 59_000].map(|end| {
        let small = world.came.iter().filter(|&(key, &came)| came < end && !long.contains(key));
        small.filter(|(key, came)| world.done[key] - **came > 100).count()
    })
}

/// The streams could leave 2.3 s and never do: nobody waits for that before it is over its
/// age, and then for a fifth of the time.
#[test]
fn trials_leave_others_four_fifths_of_the_time() {
    for policy in promising() {
        let alone = slow_beside(policy, &[]);
        let beside = slow_beside(policy, &[2_300, 2_300]);
        println!("{policy}: {alone:?} of 1,200 were slow alone, {beside:?} beside long ones");
        assert_eq!(alone[0], beside[0], "{policy}: nobody is over its age");
        assert!(beside[1] <= alone[1] + 1_200 / 5, "{policy}: {beside:?}, {alone:?}");
    }
}

/// Counts how often anybody asks what a command of 100 s would take.
#[derive(Default)]
struct Counting {
    asked: std::cell::Cell<u64>,
}

impl Predict for Counting {
    fn bound(&self, from: Lba, command: &Command) -> Duration {
        let bound = Plain.bound(from, command);
        self.asked.set(self.asked.get() + u64::from(bound == ms(100_000)));
        bound
    }
}

/// A long one that waits is looked at twenty times a second, however many decisions there
/// are.
#[test]
fn one_that_was_set_aside_is_looked_at_now_and_then() {
    for policy in promising() {
        let mut world = World::new(policy, 0, &[(20, 2_000)]);
        world.read(100_000);
        let counting = Counting::default();
        for _ in 0..10_000 {
            world.read(1);
            world.now += 1;
            if let Next::Start { key, .. } = world.schedule.next(at(world.now), &counting) {
                world.schedule.finished(at(world.now), key);
            }
        }
        let asked = counting.asked.get();
        assert!(asked <= 2 * 10 * 20 + 20, "{policy}: {asked} looks in 10 s");
    }
}

/// What the reserve covers needs no trial, whatever greedy best effort comes after it: it
/// goes when it is its turn, once nothing under contract waits at the latest.
#[test]
fn what_the_reserve_covers_goes_in_its_turn() {
    for policy in promising() {
        for burst in [0, 200] {
            let mut world = World::new(policy, burst, &[(60, 600), (100, 1_000), (200, 800)]);
            world.run(300_000, |world| {
                if world.schedule.counts().waiting_best_effort < 4 {
                    let cost = if world.keys.is_multiple_of(16) { 50 } else { 5 };
                    world.read(cost);
                }
            });
            assert!(world.longest_wait(&[]) < 1_500, "{policy}: {}", world.longest_wait(&[]));
        }
    }
}

/// Once the contract that kept it waiting has left, it is served.
#[test]
fn what_never_fitted_is_served_when_the_contract_leaves() {
    for policy in promising() {
        let mut world = World::new(policy, 200, &[(20, 2_000), (20, 200)]);
        let long = world.read(500);
        world.run(5_000, |_| ());
        assert!(world.never_fits(long) && !world.done.contains_key(&long), "{policy}");
        let (id, ..) = world.streams.pop().expect("two streams");
        world.schedule.leave(id);
        assert!(!world.never_fits(long), "{policy}");
        world.run(8_000, |_| ());
        assert!(world.done.contains_key(&long), "{policy}");
    }
}

/// The same where its policy gives way to another one.
#[test]
fn what_was_set_aside_is_known_to_another_policy() {
    for &policy in policies::ALL {
        let mut world = World::new(PolicyKind::SLACK, 200, &[(20, 200)]);
        let long = world.read(500);
        world.run(1_000, |world| {
            if world.now.is_multiple_of(100) {
                world.read(10);
            }
        });
        world.schedule.set_policy(policy);
        assert_eq!(world.schedule.counts().waiting_best_effort, 1);
        for _ in 0..40_000 {
            if let Next::Start { key, .. } = world.schedule.next(at(world.now), &Plain) {
                world.schedule.finished(at(world.now), key);
            }
            world.now += 1;
        }
        let waits = world.schedule.queues().get(long).is_some();
        // The budget of these is all that they give; none of them serves it.
        let by_sweeps = matches!(policy.admission, Admission::Sweeps(_));
        let has_budget = policy.promise.contracts || by_sweeps || policy == policies::DELTA_L_1999;
        assert_eq!(waits, has_budget, "{policy}");
    }
}

/// Nothing never fits that is under contract, or where nothing is promised.
#[test]
fn only_what_waits_for_slack_never_fits() {
    let mut world = World::new(PolicyKind::SLACK, 200, &[(20, 200)]);
    let id = world.streams[0].0;
    let promised = world.submit(Class::RealTime(id), 20);
    assert!(!world.never_fits(promised) && !world.never_fits(99_999));
    let short = world.read(100);
    let long = world.read(1_000_000_000);
    assert!(!world.never_fits(short) && world.never_fits(long));
    let mut idle = World::new(PolicyKind::SLACK, 200, &[]);
    let long = idle.read(1_000_000_000);
    assert!(!idle.never_fits(long));
}
