//! Figures 6.7 and 6.8: blocks anywhere on their disk.

use super::days;
use super::fig_6_5::kept;
use super::load::Order;
use super::scene::{Phases, pairs_max};
use super::streams::{Layout, load as load_of};
use super::sweep::{
    EDF, LST, POLICIES, PRINTED, SLACK, Sweep, Swept, against, at_most_of, is_more, mean,
};
use crate::{At, Claim, Experiment, Findings, Paper, Run};
use report::{Axis, Chart, Series, Style};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "clockwise-fig-6.7",
    paper: Paper::Clockwise,
    title: "Best-effort latency where blocks lie anywhere (figures 6.7 and 6.8)",
    claim: "With blocks anywhere on a disk fewer streams fit, since all are planned at the \
            slowest zone. At middle loads latest start times do better than static slack, at \
            high ones as well or better, since long runs of streams save no seeks. Latencies \
            are a good deal longer than with blocks in groups (figure 6.8).",
    setup: "As figure 6.5; every block of 1 MB of streams and file systems lies at a place \
            of its disk of its own, and streams read them in any order. The same loads with \
            blocks in groups beside it.",
    real_time: false,
    run,
};

fn run(run: &Run<'_>) -> Findings {
    let last = pairs_max(Layout::Rotation, Order::Random);
    let grouped_last = pairs_max(Layout::Rotation, Order::Grouped);
    let (count, seconds) = (run.choose(4, 2), run.choose(900, 150));
    let mut steps: Vec<u64> =
        run.choose((1..=last).step_by(2).chain([last]).collect(), vec![1, last / 2, last]);
    steps.dedup();
    let swept_in = |order: Order| {
        let loads = days::loads(count, seconds, order);
        let phases = Phases::Random;
        Sweep { layout: Layout::Rotation, order, phases, steps: steps.clone(), loads: &loads }
            .run(run)
    };
    let (random, grouped) = (swept_in(Order::Random), swept_in(Order::Grouped));
    let mut findings = Findings::default();
    findings.claim(Claim::holds(
        "fewer streams fit than with blocks in groups",
        "fewer",
        format!("{:.1} of {:.1} MB/s", load_of(last), load_of(grouped_last)),
        last < grouped_last,
    ));
    kept(&mut findings, &random);
    lst(&mut findings, &random);
    longer(&mut findings, &random, &grouped);
    ours(&mut findings, &random);
    charts(&mut findings, &random, &grouped);
    findings.table("Mean latency of all eight file systems, blocks anywhere", random.table());
    findings.table("The same loads with blocks in groups", grouped.table());
    findings
}

fn lst(findings: &mut Findings, swept: &Swept) {
    let ratio = |step: usize| swept.latency(step, LST) / swept.latency(step, PRINTED);
    let all = |step: usize, policy: usize| &*swept.cells[step][policy].all;
    let (middle, last) = (swept.step_at(0.6), swept.last());
    findings
        .claim(Claim::holds(
            "lst does better than delta-l-1999 at middle loads",
            "better, beyond the interval of 95 %",
            format!("{:.3} of it at {:.1} MB/s", ratio(middle), load_of(swept.steps[middle])),
            is_more(all(middle, PRINTED), all(middle, LST)),
        ).measured(ratio(middle)).explained(
            At::each(0.993, 1.0).spread(0.01),
            "at this load the static slack still covers nearly every burst, so that the two are \
             alike",
        ))
        .claim(
            Claim::at_most(
                "and about as well or better at the highest load, to the upper end of the interval \
                 of 95 %",
                1.1,
                at_most_of(all(last, LST), all(last, PRINTED)),
                "of it",
            )
            .explained(
                At::each(1.696, 3.87),
                "these parts are short and few: their interval is wider than the margin",
            ),
        );
}

fn longer(findings: &mut Findings, random: &Swept, grouped: &Swept) {
    let disk_0 =
        |swept: &Swept, step: usize, policy: usize| mean(&swept.cells[step][policy].systems[0]);
    for policy in [EDF, PRINTED, LST] {
        let steps = 0..=random.last();
        let longer = steps.filter(|&at| disk_0(random, at, policy) > disk_0(grouped, at, policy));
        let (longer, all) = (longer.count(), random.last() + 1);
        let last = random.last();
        findings.claim(Claim::holds(
            format!("disk 0 under {}: longer with blocks anywhere (figure 6.8)", POLICIES[policy]),
            "longer",
            format!(
                "at {longer} of {all} loads; at the last {} and {} ms",
                report::number(disk_0(random, last, policy)),
                report::number(disk_0(grouped, last, policy))
            ),
            longer * 4 >= all * 3,
        ));
    }
}

fn ours(findings: &mut Findings, swept: &Swept) {
    let found = swept.cells.iter().filter_map(|cells| against(cells, |cell| &cell.all));
    let ratios: Vec<f64> = found.map(|it| it.ratio).collect();
    let most = ratios.iter().copied().fold(0.0, f64::max);
    let text = "slack to the best of edf, lst and delta-l, blocks anywhere, all loads";
    findings.claim(Claim::at_most(text, 1.02, most, "").of_ours());
}

fn charts(findings: &mut Findings, random: &Swept, grouped: &Swept) {
    for chart in random.charts("Blocks anywhere: cello disk") {
        findings.chart(chart);
    }
    for policy in [EDF, PRINTED, LST, SLACK] {
        let points = |swept: &Swept| -> Vec<(f64, f64)> {
            let steps = swept.steps.iter().zip(&swept.cells);
            steps.map(|(&pairs, cells)| (load_of(pairs), mean(&cells[policy].systems[0]))).collect()
        };
        findings.chart(
            Chart::new(
                format!("Disk 0 under {} (figure 6.8)", POLICIES[policy]),
                Axis::linear("real-time load, MB/s"),
                Axis::logarithmic("mean best-effort latency, ms"),
            )
            .with(Series::new("blocks anywhere", Style::Line, points(random)))
            .with(Series::new("blocks in groups", Style::Line, points(grouped))),
        );
    }
}
