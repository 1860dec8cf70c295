//! Section 6.2 with figures 6.1 and 6.2: what one request in the way costs, and how
//! much slack is really there.

use super::printed::Printed;
use crate::by_hand::{Ask, play, task};
use crate::{At, Claim, Experiment, Findings, Paper, Run};
use report::Table;
use sched::{PolicyKind, Task, TaskSet};
use sim::Random;
use units::Duration;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "clockwise-section-6.2",
    paper: Paper::Clockwise,
    title: "How much slack is there: the printed definition and the exact one",
    claim: "A request that cannot be interrupted may be in the way of all that are released \
            just after it began (figure 6.2). The test of a set takes this in, and gives the \
            slack that each request keeps to its deadline at least (theorem 1): every \
            request may begin so much later and none is late. It is looked for up to the \
            longest period.",
    setup: "Random sets of 2 to 4 streams in whole milliseconds, and (2, 6) (3, 9) (3, 9): the \
            printed slack against the exact one, which looks as far as it can be smaller. \
            Where the printed one is larger, all streams release at once while a best-effort \
            request of the printed length waits, under delta-l-1999, delta-l and slack.",
    real_time: false,
    run,
};

/// Cost and period. The printed slack is 1, the true one 0.
const KNOWN: [(u64, u64); 3] = [(2, 6), (3, 9), (3, 9)];
/// So many random sets are shown beside it.
const SHOWN: usize = 4;

/// The exact slack; nothing where the set cannot be kept.
fn exact(tasks: &[Task]) -> Option<Duration> {
    TaskSet::of(Duration::ZERO, tasks).ok().map(|set| set.slack())
}

fn tasks(set: &[(u64, u64)]) -> Vec<Task> {
    set.iter().map(|&(cost, period)| task(cost, period)).collect()
}

/// By how many milliseconds requests are late at most, when all streams release at 0 and
/// then each period, and a best-effort request comes with them.
fn late(policy: PolicyKind, set: &[(u64, u64)], best_effort: u64) -> u64 {
    let end = 60;
    let mut script = vec![Ask { at: 0, task: None, cost: best_effort }];
    for at in 0..end {
        for (number, &(cost, period)) in set.iter().enumerate() {
            if at % period == 0 {
                script.push(Ask { at, task: Some(number), cost });
            }
        }
    }
    play(policy, set, &script).iter().map(|request| request.late).max().unwrap_or(0)
}

fn random_set(random: &mut Random) -> Vec<(u64, u64)> {
    let count = random.between(2, 4);
    (0..count)
        .map(|_| {
            let period = random.between(3, 12);
            (random.between(1, period.min(5)), period)
        })
        .collect()
}

#[derive(Default)]
struct Tally {
    agreed: u64,
    admitted_alike: u64,
    refused_alike: u64,
    larger: u64,
    smaller: u64,
    late_1999: u64,
    late_ours: u64,
    shown: Vec<Vec<(u64, u64)>>,
}

fn search(run: &Run<'_>) -> Tally {
    let (mut tally, mut random) = (Tally::default(), Random::new(62));
    let sets = run.choose(200_000, 10_000);
    for number in 0..sets {
        let set = random_set(&mut random);
        let all = tasks(&set);
        let (printed, exact) = (Printed::of(&all).slack(&all), exact(&all));
        tally.admitted_alike += u64::from(printed.is_some() && exact.is_some());
        tally.refused_alike += u64::from(printed.is_none() && exact.is_none());
        tally.agreed += u64::from(printed.is_some() == exact.is_some());
        if let (Some(printed), Some(exact)) = (printed, exact) {
            let [printed, exact] = [printed, exact].map(|it| it.as_nanos() / 1_000_000);
            tally.larger += u64::from(printed > exact);
            tally.smaller += u64::from(printed < exact);
            if printed > exact {
                if tally.shown.len() < SHOWN {
                    tally.shown.push(set.clone());
                }
                tally.late_1999 += u64::from(late(policies::DELTA_L_1999, &set, printed) > 0);
                for policy in [PolicyKind::DELTA_L, PolicyKind::SLACK] {
                    tally.late_ours += u64::from(late(policy, &set, printed) > 0);
                }
            }
        }
        if number % 1_000 == 0 {
            run.progress(number, sets);
        }
    }
    tally
}

/// One set: its slacks, and by how much requests are late under the three policies.
fn row(table: &mut Table, set: &[(u64, u64)]) -> u64 {
    let all = tasks(set);
    let printed = Printed::of(&all).slack(&all).expect("the thesis admits it");
    let printed = printed.as_nanos() / 1_000_000;
    let exact = exact(&all).expect("it can be kept").as_nanos() / 1_000_000;
    let policies = [policies::DELTA_L_1999, PolicyKind::DELTA_L, PolicyKind::SLACK];
    let found = policies.map(|policy| late(policy, set, printed));
    let words: Vec<String> = set.iter().map(|(c, t)| format!("({c}, {t})")).collect();
    let mut cells = vec![words.join(" ")];
    cells.extend([printed, exact].map(|ms| ms.to_string()));
    cells.extend(found.map(|ms| ms.to_string()));
    table.row(cells);
    found[0]
}

fn run(run: &Run<'_>) -> Findings {
    let mut findings = Findings::default();
    let mut table = Table::new(&[
        "set: cost, period in ms",
        ">printed slack",
        ">exact slack",
        ">late by, delta-l-1999",
        ">delta-l",
        ">slack",
    ]);
    let tally = search(run);
    let known_late = row(&mut table, &KNOWN);
    for set in &tally.shown {
        row(&mut table, set);
    }
    findings.table("Sets whose slack is smallest beyond the longest period, in ms", table);
    let both = tally.admitted_alike + tally.refused_alike;
    findings
        .claim(Claim::holds(
            "the printed test admits what can be kept and refuses what cannot (6.1 and 6.2)",
            "always",
            format!("{both} random sets alike, {} not", run.choose(200_000, 10_000) - both),
            tally.agreed == run.choose(200_000, 10_000),
        ))
        .claim(
            Claim::holds(
                "theorem 1: every request keeps the printed slack to its deadline",
                "always",
                format!(
                    "not for {} of {} admitted sets, whose slack is smaller beyond the longest \
                     period",
                    tally.larger, tally.admitted_alike
                ),
                tally.larger == 0,
            )
            .measured(tally.larger as f64)
            .explained(
                At::each(34.0, 4.0).spread(0.0),
                "the proof looks at the deadlines up to the longest period only; (2, 6) (3, 9) \
                 (3, 9) has none at 18",
            ),
        )
        .claim(
            Claim::holds(
                "the exact slack is never more than the printed one",
                "never",
                format!("{} sets", tally.smaller),
                tally.smaller == 0,
            )
            .of_ours(),
        )
        .claim(
            Claim::holds(
                "a best-effort request of the printed slack makes nobody late (delta-l-1999)",
                "never late",
                format!(
                    "(2, 6) (3, 9) (3, 9) is late by {known_late} ms, and {} random sets are late",
                    tally.late_1999
                ),
                known_late + tally.late_1999 == 0,
            )
            .measured((known_late + tally.late_1999) as f64)
            .explained(
                At::each(32.0, 5.0).spread(0.0),
                "the budget is the printed slack, which is more than there is",
            ),
        )
        .claim(
            Claim::near(
                "the same under delta-l and slack: sets with a late request",
                0.0,
                tally.late_ours as f64,
                0.0,
                "",
            )
            .of_ours(),
        );
    findings
}
