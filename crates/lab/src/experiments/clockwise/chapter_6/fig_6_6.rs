//! Figure 6.6: how often a disk changes between streams and file systems, and how long
//! it stays.

use super::days;
use super::load::Order;
use super::scene::{Phases, pairs_max};
use super::streams::{Layout, load as load_of};
use super::sweep::{EDF, LST, POLICIES, PRINTED, SLACK, Sweep, Swept};
use crate::{Claim, Experiment, Findings, Paper, Run};
use report::{Axis, Table};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "clockwise-fig-6.6",
    paper: Paper::Clockwise,
    title: "Changes between streams and best effort, and runs of best effort",
    claim: "Changes grow with the number of streams under static slack and latest start \
            times; from about 35 streams on latest start times change more often. Under EDF \
            they grow fewer with many streams and runs of best effort longer; under the other \
            two runs grow shorter, alike in their mean, and deviate more from it under \
            static slack.",
    setup: "As figure 6.5, with fewer loads. Changes a second on one disk, and the lengths \
            of runs of best-effort requests between two of streams.",
    real_time: false,
    run,
};

fn run(run: &Run<'_>) -> Findings {
    let last = pairs_max(Layout::Rotation, Order::Grouped);
    let loads = days::windows(run.choose(3, 2), run.choose(1_300, 200), Order::Grouped);
    let sweep = Sweep {
        layout: Layout::Rotation,
        order: Order::Grouped,
        phases: Phases::Random,
        steps: run.choose(
            (1..=last).step_by(3).chain([last - 1, last]).collect(),
            vec![1, 2, last / 2, last],
        ),
        loads: &loads,
    };
    let mut steps = sweep.steps.clone();
    steps.sort_unstable();
    steps.dedup();
    let swept = Sweep { steps, ..sweep }.run(run);
    let mut findings = Findings::default();
    changes(&mut findings, &swept);
    runs(&mut findings, &swept);
    findings
        .chart(swept.chart(
            "Changes between streams and best effort",
            Axis::linear("changes a second on a disk"),
            |cell| cell.switches,
        ))
        .chart(
            swept.chart("Mean run of best effort", Axis::logarithmic("requests"), |cell| {
                cell.run_mean
            }),
        )
        .chart(swept.chart(
            "Deviation of runs from their mean",
            Axis::logarithmic("requests"),
            |cell| cell.run_deviation,
        ));
    table(&mut findings, &swept);
    findings
}

fn changes(findings: &mut Findings, swept: &Swept) {
    let (last, at) =
        (swept.last(), |step: usize, policy: usize| swept.cells[step][policy].switches);
    for policy in [PRINTED, LST] {
        findings.claim(Claim::holds(
            format!("changes grow with the load under {}", POLICIES[policy]),
            "grow",
            format!("from {:.2} to {:.2} a second", at(0, policy), at(last, policy)),
            at(last, policy) > at(0, policy),
        ));
    }
    let most = (0..=last).map(|step| at(step, EDF)).fold(0.0, f64::max);
    findings
        .claim(Claim::holds(
            "under edf they grow fewer towards the highest load",
            "fewer",
            format!("{most:.2} a second at the most, {:.2} at the last load", at(last, EDF)),
            at(last, EDF) < most,
        ))
        .claim(Claim::holds(
            "at the highest load lst changes more often than delta-l-1999",
            "more often",
            format!("{:.2} and {:.2} a second", at(last, LST), at(last, PRINTED)),
            at(last, LST) > at(last, PRINTED),
        ))
        .claim(
            Claim::holds(
                "ours: slack changes no more often than lst at the highest load",
                "less often (our aim)",
                format!("{:.2} and {:.2} a second", at(last, SLACK), at(last, LST)),
                at(last, SLACK) <= 1.02 * at(last, LST),
            )
            .explained(
                "slack is hardly ever used up under slack, so that each request is served as soon \
                 as it comes, between two of streams",
            ),
        );
}

fn runs(findings: &mut Findings, swept: &Swept) {
    let last = swept.last();
    let at = |step: usize, policy: usize| swept.cells[step][policy].run_mean;
    findings
        .claim(
            Claim::holds(
                "from four streams on runs grow longer under edf",
                "longer",
                format!("{:.2} to {:.2} requests", at(1, EDF), at(last, EDF)),
                at(last, EDF) > at(1, EDF),
            )
            .explained(
                "with four streams a disk reads a block a second and is idle in between; in these \
                 busy hours a run is then all that comes in that second. From a middle load on \
                 runs do grow",
            ),
        )
        .claim(Claim::holds(
            "at the highest load runs are longest under edf",
            "longest",
            format!(
                "{:.2} requests; delta-l-1999 {:.2}, lst {:.2}",
                at(last, EDF),
                at(last, PRINTED),
                at(last, LST)
            ),
            at(last, EDF) > at(last, PRINTED).max(at(last, LST)),
        ));
    for policy in [PRINTED, LST] {
        findings.claim(Claim::holds(
            format!("runs grow shorter under {}", POLICIES[policy]),
            "shorter",
            format!("{:.2} to {:.2} requests", at(0, policy), at(last, policy)),
            at(last, policy) < at(0, policy),
        ));
    }
    findings.claim(
        Claim::near(
            "mean run at the highest load, lst against delta-l-1999",
            at(last, PRINTED),
            at(last, LST),
            0.25,
            "requests",
        )
        .explained(
            "the printed two are alike although their numbers of changes differ, which cannot be \
             where both serve the same requests: changes are twice the number of runs",
        ),
    );
    let deviation = |policy: usize| swept.cells[last][policy].run_deviation;
    findings.claim(Claim::holds(
        "runs deviate more under delta-l-1999 than under lst at the highest load",
        "more",
        format!("{:.2} and {:.2} requests", deviation(PRINTED), deviation(LST)),
        deviation(PRINTED) > deviation(LST),
    ));
}

fn table(findings: &mut Findings, swept: &Swept) {
    for (caption, value) in [
        ("Changes a second on a disk", (|cell| cell.switches) as fn(&super::sweep::Cell) -> f64),
        ("Mean run of best effort, requests", |cell| cell.run_mean),
        ("Deviation of runs, requests", |cell| cell.run_deviation),
    ] {
        let names = POLICIES.map(|policy| format!(">{policy}"));
        let mut headings = vec![">streams", ">load, MB/s"];
        headings.extend(names.iter().map(String::as_str));
        let mut table = Table::new(&headings);
        for (&pairs, cells) in swept.steps.iter().zip(&swept.cells) {
            let mut row = vec![(2 * pairs).to_string(), format!("{:.1}", load_of(pairs))];
            row.extend(cells.iter().map(|cell| report::number(value(cell))));
            table.row(row);
        }
        findings.table(caption, table);
    }
}
