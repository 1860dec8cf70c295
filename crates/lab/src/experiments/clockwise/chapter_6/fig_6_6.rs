//! Figure 6.6: how often a disk changes between streams and file systems, and how long
//! it stays.

use super::days;
use super::load::Order;
use super::scene::{Phases, pairs_max};
use super::streams::{Layout, load as load_of};
use super::sweep::{
    EDF, LST, POLICIES, PRINTED, RUN_DEVIATION, RUN_MEAN, SLACK, SWITCHES, Sweep, Swept,
    at_most_of, is_more,
};
use crate::{At, Claim, Experiment, Findings, Paper, Run};
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
    let loads = days::windows(run.choose(5, 4), run.choose(1_300, 200), Order::Grouped);
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

/// One figure of one policy at one step, by seed.
fn seeds(swept: &Swept, step: usize, policy: usize, figure: usize) -> &[f64] {
    &swept.cells[step][policy].by_seed[figure]
}

fn changes(findings: &mut Findings, swept: &Swept) {
    let last = swept.last();
    let at = |step: usize, policy: usize| swept.cells[step][policy].switches;
    let by_seed = |step: usize, policy: usize| seeds(swept, step, policy, SWITCHES);
    for policy in [PRINTED, LST] {
        findings.claim(Claim::holds(
            format!("changes grow with the load under {}", POLICIES[policy]),
            "grow, beyond the interval of 95 %",
            format!("from {:.2} to {:.2} a second", at(0, policy), at(last, policy)),
            is_more(by_seed(last, policy), by_seed(0, policy)),
        ));
    }
    let most = (0..=last).max_by(|&a, &b| at(a, EDF).total_cmp(&at(b, EDF))).unwrap_or(last);
    findings
        .claim(
            Claim::holds(
                "under edf they grow fewer towards the highest load",
                "fewer, beyond the interval of 95 %",
                format!(
                    "{:.2} a second at the most, {:.2} at the last load",
                    at(most, EDF),
                    at(last, EDF)
                ),
                is_more(by_seed(most, EDF), by_seed(last, EDF)),
            )
            .measured(at(last, EDF) / at(most, EDF))
            .explained(At::quick_only(0.948), FEW_SEEDS),
        )
        .claim(
            Claim::holds(
                "at the highest load lst changes more often than delta-l-1999",
                "more often, beyond the interval of 95 %",
                format!("{:.2} and {:.2} a second", at(last, LST), at(last, PRINTED)),
                is_more(by_seed(last, LST), by_seed(last, PRINTED)),
            )
            .measured(at(last, LST) / at(last, PRINTED))
            .explained(At::quick_only(1.25), FEW_SEEDS),
        );
    let ratio = at_most_of(by_seed(last, SLACK), by_seed(last, LST));
    findings.claim(
        Claim::at_most(
            "slack changes no more often than lst at the highest load: of lst's changes, to the \
             upper end of the interval of 95 %",
            1.05,
            ratio,
            "",
        )
        .of_ours()
        .explained(
            At::quick_only(1.14),
            "slack is hardly ever used up under slack, so that each request is served as soon \
             as it comes, between two of streams",
        ),
    );
}

/// Why a short run does not show what a long one does.
const FEW_SEEDS: &str =
    "these parts are short and few: their interval is wider than the difference";

fn runs(findings: &mut Findings, swept: &Swept) {
    let last = swept.last();
    let at = |step: usize, policy: usize| swept.cells[step][policy].run_mean;
    let by_seed = |step: usize, policy: usize| seeds(swept, step, policy, RUN_MEAN);
    findings
        .claim(
            Claim::holds(
                "from four streams on runs grow longer under edf",
                "longer, beyond the interval of 95 %",
                format!("{:.2} to {:.2} requests", at(1, EDF), at(last, EDF)),
                is_more(by_seed(last, EDF), by_seed(1, EDF)),
            )
            .measured(at(last, EDF) / at(1, EDF))
            .explained(
                At::each(0.588, 0.350),
                "with four streams a disk reads a block a second and is idle in between; in these \
                 busy hours a run is then all that comes in that second. From a middle load on \
                 runs do grow",
            ),
        )
        .claim(
            Claim::holds(
                "at the highest load runs are longest under edf",
                "longest, beyond the interval of 95 %",
                format!(
                    "{:.2} requests; delta-l-1999 {:.2}, lst {:.2}",
                    at(last, EDF),
                    at(last, PRINTED),
                    at(last, LST)
                ),
                [PRINTED, LST].iter().all(|&it| is_more(by_seed(last, EDF), by_seed(last, it))),
            )
            .measured(at(last, EDF) / at(last, PRINTED).max(at(last, LST))),
        );
    for policy in [PRINTED, LST] {
        findings.claim(Claim::holds(
            format!("runs grow shorter under {}", POLICIES[policy]),
            "shorter, beyond the interval of 95 %",
            format!("{:.2} to {:.2} requests", at(0, policy), at(last, policy)),
            is_more(by_seed(0, policy), by_seed(last, policy)),
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
            At::thorough_only(2.43),
            "the printed two are alike although their numbers of changes differ, which cannot be \
             where both serve the same requests: changes are twice the number of runs",
        ),
    );
    let deviation = |policy: usize| swept.cells[last][policy].run_deviation;
    let by_seed = |policy: usize| seeds(swept, last, policy, RUN_DEVIATION);
    findings.claim(
        Claim::holds(
            "runs deviate more under delta-l-1999 than under lst at the highest load",
            "more, beyond the interval of 95 %",
            format!("{:.2} and {:.2} requests", deviation(PRINTED), deviation(LST)),
            is_more(by_seed(PRINTED), by_seed(LST)),
        )
        .measured(deviation(PRINTED) / deviation(LST))
        .explained(At::quick_only(1.254), FEW_SEEDS),
    );
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
