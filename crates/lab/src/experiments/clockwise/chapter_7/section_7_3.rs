//! Section 7.3: a program that asks for more than its contract, beside one that does not.

use crate::by_hand::{Ask, play, task};
use crate::{Claim, Experiment, Findings, Paper, Run};
use report::Table;
use sched::{PolicyKind, TaskSet};
use sim::Random;
use units::Duration;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "clockwise-section-7.3",
    paper: Paper::Clockwise,
    title: "A program that asks for more than its contract",
    claim: "With no slack left, EDF and LST make a program that keeps to its contract late as \
            soon as another asks for more than its own, since they begin with its early \
            requests on an idle disk. The delta-L scheduler never does.",
    setup: "Random sets of three streams that the exact analysis lets in with at most 2 ms of \
            static slack, on the production schedule; each request takes its whole cost. One \
            stream asks three times as often as it may, the others once a period. What is too \
            much goes as best effort, or is regulated.",
    real_time: false,
    run,
};

/// Milliseconds in which programs ask.
const SPAN: u64 = 6_000;

/// Three tasks `(cost, period)` in ms with next to no slack, the greedy one first.
fn set(random: &mut Random) -> Vec<(u64, u64)> {
    loop {
        let tasks: Vec<(u64, u64)> = (0..3)
            .map(|_| {
                let period = random.between(8, 80);
                (random.between(1, period / 2), period)
            })
            .collect();
        let mut admitted = TaskSet::new(Duration::ZERO);
        let fits = tasks.iter().all(|&(cost, period)| admitted.add(task(cost, period)).is_ok());
        if fits && admitted.slack() <= Duration::from_millis(2) {
            return tasks;
        }
    }
}

/// What becomes of the requests that a program may not ask for yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Excess {
    /// They go as best effort, as the thesis has it.
    BestEffort,
    /// The regulator gives them the release times of the contract, as production does.
    Regulated,
}

/// Requests that come: of the first task three times as often as it may ask.
fn script(tasks: &[(u64, u64)], excess: Excess, random: &mut Random) -> Vec<Ask> {
    let mut asks = Vec::new();
    for (number, &(cost, period)) in tasks.iter().enumerate() {
        let phase = random.below(period);
        for at in (phase..SPAN).step_by(period as usize) {
            asks.push(Ask { at, task: Some(number), cost });
            if number == 0 {
                let task = (excess == Excess::Regulated).then_some(0);
                asks.extend([1, 2].map(|third| Ask { at: at + period * third / 3, task, cost }));
            }
        }
    }
    asks.sort_by_key(|ask| ask.at);
    asks
}

/// Of the requests of programs that keep to their contracts: how many, how many late, and
/// by how much at the most, in ms; and in how many sets.
#[derive(Default)]
struct Late {
    requests: u64,
    late: u64,
    late_max: u64,
    sets: u64,
}

const POLICIES: [PolicyKind; 5] = [
    PolicyKind::EDF,
    policies::LST,
    policies::DELTA_L_1999,
    PolicyKind::DELTA_L,
    PolicyKind::SLACK,
];

fn play_sets(policy: PolicyKind, excess: Excess, sets: &[Vec<(u64, u64)>]) -> Late {
    let mut random = Random::new(11);
    let mut found = Late::default();
    for tasks in sets {
        let script = script(tasks, excess, &mut random);
        let mut any = false;
        for request in play(policy, tasks, &script) {
            if script[request.ask].task.is_none_or(|task| task == 0) {
                continue;
            }
            found.requests += 1;
            found.late += u64::from(request.late > 0);
            found.late_max = found.late_max.max(request.late);
            any |= request.late > 0;
        }
        found.sets += u64::from(any);
    }
    found
}

fn run(run: &Run<'_>) -> Findings {
    let mut random = Random::new(7);
    let sets: Vec<_> = (0..run.choose(500, 30)).map(|_| set(&mut random)).collect();
    let mut findings = Findings::default();
    for (done, excess) in [Excess::BestEffort, Excess::Regulated].into_iter().enumerate() {
        let mut table =
            Table::new(&["policy", ">requests", ">late", ">by at most, ms", ">in sets"]);
        for policy in POLICIES {
            let found = play_sets(policy, excess, &sets);
            let cells = [found.requests, found.late, found.late_max, found.sets];
            table.row([vec![policy.to_string()], cells.map(|it| it.to_string()).to_vec()].concat());
            if let Some(claim) = claim(policy, excess, &found) {
                findings.claim(claim);
            }
        }
        let what = match excess {
            Excess::BestEffort => "Excess requests go as best effort, as in the thesis",
            Excess::Regulated => "Excess requests are regulated, as in production",
        };
        let (sets, seconds) = (sets.len(), SPAN / 1_000);
        findings.table(format!("{what}: {sets} sets of streams, {seconds} s each"), table);
        run.progress(done + 1, 2);
    }
    findings.note(
        "Where the regulator gives early requests the release times of their contract, no policy \
         that goes by deadlines is late: one that is served early can be in the way only once, \
         and takes the place of one that would have come, which the exact analysis counts.",
    );
    findings
}

/// What the thesis says of its scheduler, in words.
fn never_late(text: String, late: u64) -> Claim {
    let printed = "never misses a deadline";
    Claim::holds(text, printed, format!("{late} late"), late == 0).measured(late as f64)
}

fn claim(policy: PolicyKind, excess: Excess, found: &Late) -> Option<Claim> {
    let Late { requests, late, .. } = *found;
    let is_safe = [PolicyKind::DELTA_L, PolicyKind::SLACK].contains(&policy);
    if excess == Excess::BestEffort && [PolicyKind::EDF, policies::LST].contains(&policy) {
        return Some(Claim::holds(
            format!("{policy}: streams that keep to their contracts are late"),
            "late",
            format!("{late} of {requests}"),
            late > 0,
        ));
    }
    if excess == Excess::BestEffort && policy == policies::DELTA_L_1999 {
        let text = format!("{policy}: late of {requests} requests that keep to contracts");
        return Some(never_late(text, late));
    }
    if is_safe || excess == Excess::Regulated {
        let how = if excess == Excess::Regulated { ", excess regulated" } else { "" };
        let text = format!("{policy}{how}: late of {requests} requests that keep to contracts");
        return Some(never_late(text, late).of_ours());
    }
    None
}
