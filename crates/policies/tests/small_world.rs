//! Everything that can happen in small worlds, for every policy in the table: those that
//! promise contracts never miss, and for those that do not the search finds the miss
//! that the papers, or their own first lines, say is there.

#[path = "../../sched/tests/common/mod.rs"]
mod common;
#[path = "../../sched/tests/world/mod.rs"]
mod world;

use common::{Random, Ticks, brute, random_set};
use sched::PolicyKind;
use world::{Found, Rules, search};

const RULES: Rules = Rules::PLAIN;

fn look(kind: PolicyKind, set: &[Ticks], rules: Rules) -> Found {
    search(set, &*kind.start(), 0, rules)
}

/// Up to `count` different small admitted sets, the same on every run.
fn admitted_sets(count: usize) -> Vec<Vec<Ticks>> {
    let mut random = Random::new(3);
    let mut sets = Vec::new();
    for _ in 0..count * 20 {
        if sets.len() == count {
            break;
        }
        let tasks = random.within(2, 3);
        let set = random_set(&mut random, tasks, &[3, 4, 5, 6, 7], true);
        let known = brute(&set);
        if known.work <= known.common && known.least >= 0 && !sets.contains(&set) {
            sets.push(set);
        }
    }
    sets
}

#[test]
fn no_admitted_set_misses_under_a_policy_that_promises_contracts() {
    // `SLACKLINE_SETS=50000` stands for a thousand: there are no more that are so small.
    let wanted = std::env::var("SLACKLINE_SETS").ok().and_then(|text| text.parse::<usize>().ok());
    let sets = admitted_sets(wanted.map_or(60, |sets| (sets / 50).max(60)));
    assert!(sets.len() >= 60, "only {} sets", sets.len());
    for &kind in policies::ALL.iter().filter(|kind| kind.promise.contracts) {
        for set in &sets {
            let found = look(kind, set, RULES);
            assert_eq!(found.miss, None, "{kind}: {set:?}");
            assert!(found.complete, "{kind}: {set:?}: more states than {}", RULES.states_max);
        }
    }
}

#[test]
fn streams_ahead_of_their_contracts_harm_nobody_under_such_a_policy() {
    for &kind in policies::ALL.iter().filter(|kind| kind.promise.contracts) {
        for set in admitted_sets(12) {
            let rules = Rules { submits_early: true, ends_early: false, ..RULES };
            assert_eq!(look(kind, &set, rules).miss, None, "{kind}: {set:?}");
        }
    }
}

/// Policies that promise no contract, each with an admitted set that it misses.
#[test]
fn every_policy_without_that_promise_misses_a_set_that_can_be_kept() {
    let others = policies::ALL.iter().filter(|kind| !kind.promise.contracts);
    for &kind in others {
        // Unchecked only tells the search that nothing is gone by slack: the sets can
        // all be kept.
        let rules = Rules { unchecked: true, ends_early: false, states_max: 40_000, ..RULES };
        let missed =
            admitted_sets(60).into_iter().find(|set| look(kind, set, rules).miss.is_some());
        assert!(missed.is_some(), "{kind} promises less than it keeps");
    }
}

#[test]
fn the_search_finds_the_misses_of_the_papers() {
    // One stream (5,10) and the three horizon sets; without commands that end early.
    let rules = Rules { ends_early: false, ..RULES };
    let sets: [&[(u64, u64)]; 4] = [
        &[(5, 10)],
        &[(2, 4), (2, 6), (1, 6)],
        &[(2, 6), (3, 9), (3, 9)],
        &[(4, 6), (2, 9), (1, 9)],
    ];
    for set in sets {
        let set: Vec<Ticks> = set.iter().map(|&(cost, period)| Ticks::rate(cost, period)).collect();
        assert!(look(policies::DELTA_L_1999, &set, rules).miss.is_some(), "{set:?}");
    }
    // Section 6.4.2, to scale: (10,40) and (20,30) in tens are (1,4) and (2,3).
    let set = [Ticks::rate(1, 4), Ticks::rate(2, 3)];
    assert!(look(policies::LST, &set, rules).miss.is_some());
    // What USD's test takes and nothing can keep: a set of table 6.2's kind.
    let set = [Ticks::rate(1, 3), Ticks::rate(3, 12)];
    let unchecked = Rules { unchecked: true, offers: false, ..rules };
    assert!(look(policies::USD, &set, unchecked).miss.is_some());
}
