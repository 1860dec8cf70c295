//! Figure 6.9: best effort in what blocks of the outer zones are planned too long for.

use super::days;
use super::fits::{EDF_FITS, LST_FITS, PRINTED_FITS};
use super::load::Order;
use super::scene::{Phases, pairs_max_of};
use super::streams::{Layout, load as load_of, printed_slowest};
use super::sweep::{Cell, Sweep, held_against, mean};
use crate::{At, Claim, Experiment, Findings, Paper, Run};
use report::{Axis, Chart, Series, Style, Table};
use sched::PolicyKind;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "clockwise-fig-6.9",
    paper: Paper::Clockwise,
    title: "Best effort in time that blocks are planned too long for",
    claim: "Blocks that lie anywhere are planned at the slowest zone. Where one lies further out, \
            best effort goes before it that fits into the difference. Under EDF that changes \
            nothing; under static slack and latest start times there is a small difference at \
            middle and high loads, since time that is found then is little against what waits.",
    setup: "As figure 6.7, whose blocks lie anywhere, planned as the thesis plans them: at the \
            slowest zone of table 6.4, as many as the exact analysis admits so. Each policy of the thesis as it is, and with \
            the rule before it: the best effort that came first goes before the next block if \
            its bound, what went before that block already, and the block's bound in its own zone \
            behind the longest seek are together no more than the block is planned for.",
    real_time: false,
    run,
};

/// Each policy, and the same with the rule.
const PAIRS: [[PolicyKind; 2]; 3] = [
    [PolicyKind::EDF, EDF_FITS],
    [policies::DELTA_L_1999, PRINTED_FITS],
    [policies::LST, LST_FITS],
];
/// A small difference, as the plots show it.
const SMALL: f64 = 0.15;

/// One policy at one load: without the rule, and with it.
type Both = [Cell; 2];

fn run(run: &Run<'_>) -> Findings {
    let last = pairs_max_of(Layout::Rotation, Order::Random, Some(printed_slowest));
    let loads = days::loads(run.choose(16, 8), run.choose(900, 200), Order::Random);
    let steps = run.choose(
        (1..=last).step_by(3).chain([last - 1, last]).collect(),
        vec![1, last / 2, last - 1, last],
    );
    let (layout, order, phases) = (Layout::Rotation, Order::Random, Phases::Random);
    let sweep = Sweep { layout, order, phases, steps, loads: &loads };
    let mut found: Vec<[Both; 3]> = Vec::new();
    for (done, &pairs) in sweep.steps.iter().enumerate() {
        run.progress(done, sweep.steps.len());
        let cell = |policy| sweep.cell_planned(policy, pairs, Some(printed_slowest));
        found.push(PAIRS.map(|both| both.map(cell)));
    }
    let mut findings = Findings::default();
    for (at, [policy, _]) in PAIRS.iter().enumerate() {
        let of: Vec<&Both> = found.iter().map(|cells| &cells[at]).collect();
        differences(&mut findings, *policy, &sweep.steps, &of);
        findings.chart(chart(*policy, &sweep.steps, &of));
    }
    findings.table(
        "Best effort without the rule / with it; changes between streams and best effort on a disk",
        table(&sweep.steps, &found),
    );
    findings
}

/// Of the time without the rule, what it takes with it.
fn part(both: &Both, of: impl Fn(&Cell) -> &[f64]) -> f64 {
    mean(of(&both[1])) / mean(of(&both[0]))
}

fn disk_0(cell: &Cell) -> &[f64] {
    &cell.systems[0]
}

fn differences(findings: &mut Findings, policy: PolicyKind, steps: &[u64], found: &[&Both]) {
    let parts = found.iter().map(|both| part(both, disk_0));
    let farthest = parts.fold(
        1.0,
        |far: f64, part| {
            if (part - 1.0).abs() > (far - 1.0).abs() { part } else { far }
        },
    );
    let last = found[found.len() - 1];
    let text = format!("{policy}: disk 0 with the rule, of that without it, at the farthest load");
    if policy == PolicyKind::EDF {
        findings.claim(Claim::near(text, 1.0, farthest, 0.01, "").explained(
            At::each(0.849, 0.79),
            format!(
                "the thesis's EDF serves best effort when no block waits, whatever the rule says, so \
                 that its two curves are one; here the rule goes before EDF as before the others, \
                 and best effort goes before blocks: at the last load a disk changes between the \
                 two {:.2} times a second in the place of {:.2}",
                last[1].switches, last[0].switches
            ),
        ));
        return;
    }
    findings.claim(Claim::near(text, 1.0, farthest, SMALL, ""));
    let from = found.len() / 2;
    let is_less = |&at: &usize| {
        let [without, with] = found[at];
        held_against(with, [without], disk_0).is_some_and(|found| found.by_seed_max < 1.0)
    };
    let less =
        (from..found.len()).filter(is_less).map(|at| format!("{:.1} MB/s", load_of(steps[at])));
    let less: Vec<String> = less.collect();
    let claim = Claim::holds(
        format!("{policy}: there is a difference for disk 0 at middle to high loads"),
        "sooner with the rule at one of these loads at least, beyond the interval of 95 % of the \
         ratios seed by seed",
        match less.is_empty() {
            true => format!("at none of {} loads", found.len() - from),
            false => format!("at {}", less.join(", ")),
        },
        !less.is_empty(),
    );
    findings.claim(if policy == policies::LST {
        let [without, with] = last.each_ref().map(|cell| cell.switches);
        claim.measured(with / without).explained(
            At::each(1.0, 1.0).spread(0.01),
            format!(
                "up to the loads that an exact analysis admits, latest start times hardly keep best \
                 effort from going first, rule or not: at the last load a disk changes between \
                 the two {with:.2} times a second with it and {without:.2} without"
            ),
        )
    } else {
        claim.measured(less.len() as f64).explained(
            At::quick_only(0.0),
            "it is there by the means; over so few seeds of 200 s an interval is wider than it",
        )
    });
}

fn chart(policy: PolicyKind, steps: &[u64], found: &[&Both]) -> Chart {
    let points = |rule: usize| {
        let all = steps.iter().zip(found);
        all.map(move |(&pairs, both)| (load_of(pairs), mean(disk_0(&both[rule]))))
    };
    Chart::new(
        format!("Disk 0 under {policy} (figure 6.9)"),
        Axis::linear("real-time load, MB/s"),
        Axis::logarithmic("mean best-effort latency, ms"),
    )
    .with(Series::new("without the rule", Style::Line, points(0)))
    .with(Series::new("with it", Style::Line, points(1)))
}

fn table(steps: &[u64], found: &[[Both; 3]]) -> Table {
    let mut headings = vec![">load, MB/s".to_owned()];
    for [policy, _] in PAIRS {
        headings.push(format!(">{policy}: disk 0, ms"));
        headings.extend([">all, ms", ">changes a second", ">late"].map(str::to_owned));
    }
    let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
    let mut table = Table::new(&headings);
    for (&pairs, cells) in steps.iter().zip(found) {
        let mut row = vec![format!("{:.1}", load_of(pairs))];
        for both in cells {
            let of = |figure: &dyn Fn(&Cell) -> String| {
                let [without, with] = both.each_ref().map(figure);
                format!("{without} / {with}")
            };
            row.push(of(&|cell| report::number(mean(disk_0(cell)))));
            row.push(of(&|cell| report::number(mean(&cell.all))));
            row.push(of(&|cell| format!("{:.2}", cell.switches)));
            row.push(of(&|cell| cell.late.to_string()));
        }
        table.row(row);
    }
    table
}
