//! Everything that can happen in small worlds of several classes at once: streams with
//! guaranteed rates and latencies, servers, best effort and background; where a contract
//! joins, leaves and changes at any time. Nobody is late under a policy that promises
//! contracts.
//!
//! `SLACKLINE_SETS=50000` searches 25 times as many, and 30 times as deep; run it with
//! `--release`.
#![allow(clippy::print_stdout)] // how much was searched is part of the result

use crate::common::{Random, Ticks, brute};
use crate::models;
use crate::world::{Deal, Found, Rules, search_mix};
use sched::PolicyKind;
use std::sync::Mutex;

const RULES: Rules = Rules { states_max: 30_000, ..Rules::PLAIN };

/// One world: what lives in it, and what the last member may change to.
#[derive(Clone, Debug)]
struct Mix {
    set: Vec<Deal>,
    other: Option<Deal>,
}

fn admitted(set: &[Deal]) -> bool {
    let ticks: Vec<Ticks> = set.iter().map(|deal| deal.ticks).collect();
    let known = brute(&ticks);
    known.work <= known.common && known.least >= 0
}

fn deal(random: &mut Random, tasks: u64, longest: u64) -> Deal {
    let period = random.within(3, longest);
    let cost = random.within(1, (2 * period / tasks).clamp(1, 3));
    let deadline = if random.one_in(2) { random.within(cost, period) } else { period };
    Deal { ticks: Ticks { cost, deadline, period }, server: random.one_in(2) }
}

/// Different admitted mixes with at least one server, the same on every run. Where
/// `changes`, the last member has another contract to change to, and each of the two
/// sets is admitted.
fn mixes(seed: u64, tasks: u64, longest: u64, changes: bool) -> impl Iterator<Item = Mix> {
    let mut random = Random::new(seed);
    let mut known = std::collections::HashSet::new();
    std::iter::from_fn(move || {
        loop {
            let set: Vec<Deal> = (0..tasks).map(|_| deal(&mut random, tasks, longest)).collect();
            let other = changes.then(|| deal(&mut random, tasks, longest));
            let mut after = set.clone();
            after.extend(other);
            if !after.iter().any(|deal| deal.server) || !admitted(&set) {
                continue;
            }
            if other.is_some() {
                after.remove(set.len() - 1);
            }
            if admitted(&after) && known.insert((set.clone(), other)) {
                return Some(Mix { set, other });
            }
        }
    })
}

/// How many times as many worlds as in a quick run.
fn scale() -> usize {
    let wanted = std::env::var("SLACKLINE_SETS").ok().and_then(|text| text.parse::<usize>().ok());
    wanted.map_or(1, |sets| (sets / 2_000).max(1))
}

fn promising() -> impl Iterator<Item = PolicyKind> {
    policies::ALL.iter().copied().filter(|kind| kind.promise.contracts)
}

/// Searches every world under every policy that promises contracts.
fn all_safe(name: &str, worlds: impl Iterator<Item = (Mix, Rules)> + Send) {
    let worlds = Mutex::new(worlds);
    let total = Mutex::new((0, 0, 0));
    let worker = || {
        while let Some((mix, mut rules)) = { worlds.lock().unwrap().next() } {
            rules.states_max *= if scale() > 1 { 30 } else { 1 };
            for kind in promising() {
                let Found { states, miss, complete, .. } =
                    search_mix(&mix.set, mix.other, &*kind.start(), 0, rules);
                if let Some(way) = miss {
                    panic!("{mix:?} misses under {kind}:\n{}", way.join("\n"));
                }
                let mut total = total.lock().unwrap();
                *total = (total.0 + 1, total.1 + states, total.2 + usize::from(complete));
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(worker))));
    let (searches, states, complete) = total.into_inner().unwrap();
    println!("{name}: {searches} searches, {complete} of them to the end, {states} states");
    // The others are as deep as the bound on the states allows.
    assert!(complete * 4 >= searches, "many of them end: {complete} of {searches}");
}

#[test]
fn a_mix_of_streams_and_servers_never_misses() {
    let pairs = mixes(21, 2, 6, false).take(9 * scale());
    let triples = mixes(22, 3, 4, false).take(scale());
    all_safe("mixes", pairs.chain(triples).map(|mix| (mix, RULES)));
}

#[test]
fn background_harms_nobody() {
    let rules = Rules { background: true, ..RULES };
    all_safe("background", mixes(23, 2, 5, false).take(3 * scale()).map(|mix| (mix, rules)));
}

#[test]
fn streams_ahead_of_their_contracts_beside_servers_harm_nobody() {
    let rules = Rules { submits_early: true, ends_early: false, ..RULES };
    all_safe("early", mixes(24, 2, 5, false).take(4 * scale()).map(|mix| (mix, rules)));
}

#[test]
fn joining_and_leaving_with_requests_open_makes_nobody_late() {
    let rules = Rules { joins: true, leaves: true, ..RULES };
    all_safe("joins", mixes(25, 2, 5, false).take(5 * scale()).map(|mix| (mix, rules)));
}

#[test]
fn a_contract_that_changes_at_any_time_makes_nobody_late() {
    all_safe("changes", mixes(26, 2, 5, true).take(8 * scale()).map(|mix| (mix, RULES)));
}

#[test]
fn joins_leaves_and_changes_of_early_requests_make_nobody_late() {
    let rules =
        Rules { joins: true, leaves: true, submits_early: true, ends_early: false, ..RULES };
    all_safe("everything", mixes(27, 2, 5, true).take(6 * scale()).map(|mix| (mix, rules)));
}

/// The slack beside a server is all that there is: one tick more, and somebody is late.
#[test]
fn the_slack_beside_a_server_is_exact() {
    let rules = Rules { tight: true, ends_early: false, states_max: 1_500, ..RULES };
    let mut shown = 0;
    let below_all = |mix: &Mix| {
        let ticks: Vec<Ticks> = mix.set.iter().map(|deal| deal.ticks).collect();
        brute(&ticks).work < brute(&ticks).common
    };
    for mix in mixes(28, 2, 5, false).filter(below_all).take(6 * scale()) {
        let found = search_mix(&mix.set, None, &*PolicyKind::SLACK.start(), 0, rules);
        assert_eq!(found.miss, None, "{mix:?}");
        shown += found.tight;
    }
    println!("{shown} states give all they can");
    assert!(shown > 1_000);
}

/// The search proves itself on a server whose budget keeps until its deadline.
#[test]
fn a_deferrable_budget_is_caught() {
    let rules = Rules { offers: false, ends_early: false, ..RULES };
    let (mut caught, mut right) = (0, 0);
    let one_server = |mix: &Mix| mix.set.iter().filter(|deal| deal.server).count() == 1;
    for mix in mixes(29, 2, 6, false).filter(one_server).take(30) {
        let deferrable = models::Deferrable::default();
        caught += usize::from(search_mix(&mix.set, None, &deferrable, 0, rules).miss.is_some());
        let slack = PolicyKind::SLACK.start();
        right += usize::from(search_mix(&mix.set, None, &*slack, 0, rules).miss.is_none());
    }
    println!("caught in {caught} of 30 worlds");
    assert!(caught > 5 && right == 30, "{caught} {right}");
}

/// A large request of the old contract waits while the new one promises answers that it
/// would be in the way of: it has to go before.
#[test]
fn what_an_old_contract_released_is_in_nobodys_way() {
    let ticks = |cost, deadline, period| Ticks { cost, deadline, period };
    let set = [Deal::stream(ticks(1, 5, 5)), Deal::server(ticks(1, 2, 3))];
    for other in [Deal::server(ticks(3, 5, 5)), Deal::stream(ticks(3, 5, 5))] {
        for kind in promising() {
            let found = search_mix(&set, Some(other), &*kind.start(), 0, RULES);
            assert_eq!(found.miss, None, "{kind}: {other:?}");
        }
    }
}
