//! Everything that can happen in small worlds (scheduling.md, section 10): no
//! admitted set ever misses under `slack` or `delta-l`, and neither gives away one
//! tick less than it could.
//!
//! `SLACKLINE_SETS=50000` searches that many sets; run it with `--release`.
#![allow(clippy::print_stdout)] // how much was searched is part of the result

use crate::common;
use crate::common::{Random, Ticks, brute};
use crate::models::{Budget, LatestStart, SlackOnlyWhenBusy};
use crate::world::{Found, Rules, search};
use sched::{Policy, PolicyKind};
use std::collections::HashSet;
use std::sync::Mutex;

const RULES: Rules = Rules::PLAIN;

/// One set and how it is searched.
#[derive(Clone, Debug)]
struct World {
    set: Vec<Ticks>,
    burst: u64,
    submits_early: bool,
}

/// Different admitted sets, without end.
struct Worlds {
    random: Random,
    known: HashSet<Vec<Ticks>>,
    size: Size,
}

/// Bounds on the product of the periods, with which the number of states grows,
/// for sets of two, three and four tasks.
type Size = [u64; 3];

const QUICK: Size = [100, 150, 600];
const LONG: Size = [144, 400, 1300];

impl Worlds {
    fn new(seed: u64, size: Size) -> Self {
        Self { random: Random::new(seed), known: HashSet::new(), size }
    }
}

impl Iterator for Worlds {
    type Item = World;
    fn next(&mut self) -> Option<World> {
        let random = &mut self.random;
        loop {
            // Two, three or four tasks; early requests with two. Drawn anew each time,
            // for there is an end to the sets of two.
            let (tasks, submits_early) =
                *random.pick(&[(2, false), (2, false), (2, true), (3, false), (4, false)]);
            // The larger ones are rarer.
            let tasks = if tasks > 2 && !random.one_in(2 * tasks - 4) { 2 } else { tasks };
            let constrained = !random.one_in(3);
            let mut set = common::random_set(random, tasks, &common::SMALL[1..], constrained);
            set.sort_unstable();
            let product: u64 = set.iter().map(|task| task.period).product();
            let product = if submits_early { product * 2 } else { product };
            if product > self.size[tasks as usize - 2] || brute(&set).work > brute(&set).common {
                continue;
            }
            if brute(&set).least < 0 || !self.known.insert(set.clone()) {
                continue;
            }
            let burst = if random.one_in(4) { random.within(1, 6) } else { 0 };
            return Some(World { set, burst, submits_early });
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    sets: u64,
    by_tasks: [u64; 5],
    constrained: u64,
    early: u64,
    states: usize,
    tight: usize,
    misses_by_one_more: u64,
    too_large: u64,
}

fn assert_safe(world: &World, name: &str, found: &Found) {
    if let Some(way) = &found.miss {
        panic!("{world:?} misses under {name}:\n{}", way.join("\n"));
    }
}

/// Searches one world under both policies; false where it is too large.
fn search_world(world: &World, tally: &mut Tally) -> bool {
    let rules = Rules { submits_early: world.submits_early, ..RULES };
    let known = brute(&world.set);
    // With the whole disk promised the online slack is nothing by decree; with
    // bursts it is held back on purpose; early requests compete for it.
    let tight = known.work < known.common && world.burst == 0 && !world.submits_early;
    let slack = PolicyKind::SLACK.start();
    let found = search(&world.set, slack.as_ref(), world.burst, Rules { tight, ..rules });
    assert_safe(world, "slack", &found);
    let static_slack = search(&world.set, PolicyKind::DELTA_L.start().as_ref(), world.burst, rules);
    assert_safe(world, "delta-l", &static_slack);
    if !found.complete || !static_slack.complete {
        tally.too_large += 1;
        return false;
    }
    // The same budget and one tick: some behaviour misses.
    let one_more = search(&world.set, &Budget::one_more(), 0, RULES);
    assert!(one_more.miss.is_some(), "{world:?} keeps its deadlines with a tick more");
    tally.sets += 1;
    tally.by_tasks[world.set.len()] += 1;
    tally.constrained += u64::from(world.set.iter().any(|task| task.deadline < task.period));
    tally.early += u64::from(world.submits_early);
    tally.states += found.states + static_slack.states + one_more.states;
    tally.tight += found.tight;
    tally.misses_by_one_more += 1;
    true
}

/// The disk holds two commands or three and goes on with any of them. Best effort is refused where
/// one tick more would make a request late.
#[test]
fn no_admitted_set_ever_misses_whatever_order_the_disk_serves_in() {
    let wanted = match std::env::var("SLACKLINE_SETS") {
        Ok(text) => text.parse().expect("SLACKLINE_SETS is a number of task sets"),
        Err(_) => 24,
    };
    let (mut sets, mut states, mut tight) = (0, 0, 0);
    for world in Worlds::new(23, [40, 60, 100]) {
        if sets >= wanted {
            break;
        }
        let known = brute(&world.set);
        let is_tight = known.work < known.common && world.burst == 0 && !world.submits_early;
        for policy in [PolicyKind::SLACK, PolicyKind::EDL] {
            let rules = Rules {
                submits_early: world.submits_early,
                tight: is_tight && policy == PolicyKind::SLACK,
                holds: 2 + sets as usize % 2,
                states_max: 100_000,
                ..RULES
            };
            let found = search(&world.set, policy.start().as_ref(), world.burst, rules);
            assert_safe(&world, "a disk with an order of its own", &found);
            sets += u64::from(found.complete);
            (states, tight) = (states + found.states, tight + found.tight);
        }
    }
    println!("{sets} sets, {states} states, {tight} of them tight");
    assert!(tight > states / 20, "{tight} of {states}");
}

#[test]
fn no_admitted_set_ever_misses() {
    let wanted: u64 = match std::env::var("SLACKLINE_SETS") {
        Ok(text) => text.parse().expect("SLACKLINE_SETS is a number of task sets"),
        Err(_) => 2_000,
    };
    let shared =
        Mutex::new((Worlds::new(11, if wanted > 2_000 { LONG } else { QUICK }), Tally::default()));
    let worker = || {
        loop {
            let world = {
                let mut shared = shared.lock().unwrap();
                if shared.1.sets >= wanted {
                    return;
                }
                shared.0.next().expect("there are always more")
            };
            let mut tally = Tally::default();
            search_world(&world, &mut tally);
            let total = &mut shared.lock().unwrap().1;
            total.sets += tally.sets;
            (0..5).for_each(|at| total.by_tasks[at] += tally.by_tasks[at]);
            total.constrained += tally.constrained;
            total.early += tally.early;
            total.states += tally.states;
            total.tight += tally.tight;
            total.misses_by_one_more += tally.misses_by_one_more;
            total.too_large += tally.too_large;
            if tally.sets > 0 && total.sets % 1_000 == 0 {
                println!("{} of {wanted} sets", total.sets);
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(worker))));
    let tally = shared.into_inner().unwrap().1;
    println!("{tally:#?}");
    assert!(tally.sets >= wanted && tally.misses_by_one_more == tally.sets);
    assert!(tally.constrained * 4 > tally.sets && tally.by_tasks[3] > 0 && tally.by_tasks[4] > 0);
}

/// A task that joins in the middle of anything, leaves when it has nothing open and
/// joins again: nobody is late, neither it nor the others.
#[test]
fn joining_and_leaving_at_any_time_makes_nobody_late() {
    let (mut sets, mut states) = (0, 0);
    let worlds = Worlds::new(15, [60, 60, 300]).filter(|world| world.set.len() < 4);
    for world in worlds.take(150) {
        for kind in [PolicyKind::SLACK, PolicyKind::DELTA_L] {
            let rules = Rules { joins: true, submits_early: world.submits_early, ..RULES };
            let found = search(&world.set, kind.start().as_ref(), world.burst, rules);
            assert_safe(&world, kind.name, &found);
            states += found.states;
            sets += u64::from(found.complete);
        }
    }
    println!("{sets} searches, {states} states");
    assert!(sets > 280);
}

/// What the schedule remembers to be quick never changes what it gives away: states
/// that differ in nothing else are told apart here, and each gives all it can.
#[test]
fn bounds_that_are_remembered_change_nothing() {
    let slack = PolicyKind::SLACK.start();
    let (mut sets, mut states, mut plain) = (0, 0, 0);
    let worlds = Worlds::new(14, [40, 40, 300]).filter(|world| world.set.len() < 4);
    for world in worlds.take(100) {
        let known = brute(&world.set);
        let tight = known.work < known.common && world.burst == 0 && !world.submits_early;
        let rules = Rules { submits_early: world.submits_early, tight, ..RULES };
        let found =
            search(&world.set, slack.as_ref(), world.burst, Rules { bounds: true, ..rules });
        assert_safe(&world, "slack", &found);
        plain += search(&world.set, slack.as_ref(), world.burst, rules).states;
        states += found.states;
        sets += u64::from(found.complete);
    }
    println!("{sets} sets, {states} states instead of {plain}");
    assert!(sets > 95 && states > plain);
}

/// Admission refuses only what it must: each refused set with utilisation up to 1
/// misses without any best effort, in some behaviour.
#[test]
fn every_refused_set_can_miss() {
    let mut random = Random::new(12);
    let rules = Rules { offers: false, unchecked: true, ..RULES };
    let (mut refused, mut tried) = (0, 0);
    while refused < 400 {
        tried += 1;
        let tasks = random.within(2, 3);
        let set = common::random_set(&mut random, tasks, &common::SMALL[1..], tried % 2 == 0);
        let known = brute(&set);
        if known.work <= known.common && known.least < 0 {
            refused += 1;
            let found = search(&set, PolicyKind::SLACK.start().as_ref(), 0, rules);
            assert!(found.miss.is_some(), "{set:?} is refused and never misses");
        }
    }
    println!("{refused} refused sets miss, out of {tried}");
}

/// How many of the first `count` worlds a policy misses in.
fn caught(policy: &dyn Policy, count: usize) -> usize {
    let worlds = Worlds::new(13, QUICK).take(count);
    worlds.filter(|world| search(&world.set, policy, 0, RULES).miss.is_some()).count()
}

/// The searcher proves itself: what is wrong on purpose is caught, and what is
/// right is not.
#[test]
fn planted_bugs_are_caught() {
    assert_eq!(caught(&Budget::right(), 60), 0);
    for (name, policy) in [
        ("a tick more than the static slack", Box::new(Budget::one_more()) as Box<dyn Policy>),
        ("a command begun on an idle disk is not charged", Box::new(Budget::of_1999())),
        ("the budget is full again too early", Box::new(Budget::refilled_too_early())),
        ("what may still be released is not counted", Box::new(LatestStart)),
        ("an idle disk takes anything", Box::new(SlackOnlyWhenBusy)),
        ("earliest deadline first with best effort on an idle disk", PolicyKind::EDF.start()),
        ("first come, first served", policies::FCFS.start()),
        ("best effort before contracts, always", policies::BEST_EFFORT_FIRST.start()),
    ] {
        let caught = caught(policy.as_ref(), 60);
        println!("{name}: caught in {caught} of 60 worlds");
        assert!(caught > 5, "{name}: caught in {caught}");
    }
}

/// The thesis's formula gives each of these sets a slack of one or more where
/// there is none: spending it misses.
#[test]
fn the_slack_of_the_thesis_is_too_much() {
    for set in [
        [Ticks::rate(2, 4), Ticks::rate(2, 6), Ticks::rate(1, 6)],
        [Ticks::rate(2, 6), Ticks::rate(3, 9), Ticks::rate(3, 9)],
        [Ticks::rate(4, 6), Ticks::rate(2, 9), Ticks::rate(1, 9)],
    ] {
        let slack = common::thesis_slack(&set) as u64;
        let found = search(&set, &Budget::of(slack), 0, RULES);
        let way = found.miss.expect("the slack of the thesis misses");
        println!("{set:?}: {slack} by the thesis\n  {}", way.join("\n  "));
        let found = search(&set, &Budget::right(), 0, RULES);
        assert!(found.miss.is_none() && found.complete);
    }
}
