//! Figures 6.10 and 6.11: each stream on one disk, with small and with large blocks.

use super::days;
use super::fig_6_5::kept;
use super::load::{Load, Order};
use super::scene::{Phases, pairs_max};
use super::streams::{Layout, load as load_of};
use super::sweep::{DELTA_L, LST, POLICIES, PRINTED, SLACK, Sweep, Swept, against, is_more};
use crate::{At, Claim, Experiment, Findings, Paper, Run};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "clockwise-fig-6.10",
    paper: Paper::Clockwise,
    title: "Streams on single disks, small and large blocks (figures 6.10 and 6.11)",
    claim: "Streams on single disks take a third of the memory; the highest load is lower \
            than with rotation, and static slack and latest start times differ less. With \
            blocks twice as large more streams fit, latencies are shorter than with small \
            ones, and at extreme loads latest start times do about as well as static slack \
            or worse.",
    setup: "As figure 6.5, with one movie on disks 0 and 1 and the other on disk 2 (section \
            6.5.3). All blocks are doubled for figure 6.11.",
    real_time: false,
    run,
};

fn run(run: &Run<'_>) -> Findings {
    let last_of = |layout| pairs_max(layout, Order::Grouped);
    let [rotation, single, large] =
        [Layout::Rotation, Layout::OneDisk, Layout::OneDiskLarge].map(last_of);
    let loads = days::loads(run.choose(4, 2), run.choose(900, 150), Order::Grouped);
    let sweep = |layout, last: u64| {
        let mut steps: Vec<u64> =
            run.choose((1..=last).step_by(2).chain([last]).collect(), vec![1, last / 2, last]);
        steps.dedup();
        swept(run, layout, steps, &loads)
    };
    let (small, doubled) = (sweep(Layout::OneDisk, single), sweep(Layout::OneDiskLarge, large));
    let beside = swept(run, Layout::Rotation, small.steps.clone(), &loads);
    let mut findings = Findings::default();
    findings
        .claim(Claim::holds(
            "the highest load is lower than with rotation",
            "lower",
            format!("{:.1} of {:.1} MB/s", load_of(single), load_of(rotation)),
            single < rotation,
        ))
        .claim(Claim::holds(
            "larger blocks admit more",
            "more",
            format!("{:.1} of {:.1} MB/s", load_of(large), load_of(single)),
            large > single,
        ));
    kept(&mut findings, &small);
    kept(&mut findings, &doubled);
    differ(&mut findings, &small, &beside);
    shorter(&mut findings, &small, &doubled, &loads, run);
    ours(&mut findings, &small, "small blocks");
    ours(&mut findings, &doubled, "large blocks");
    for chart in small.charts("One disk each: cello disk") {
        findings.chart(chart);
    }
    for chart in doubled.charts("One disk each, large blocks: cello disk") {
        findings.chart(chart);
    }
    findings.table("Small blocks: mean latency of all eight file systems", small.table());
    findings.table("Large blocks", doubled.table());
    findings.table("Rotation, at the loads of small blocks", beside.table());
    findings
}

fn swept(run: &Run<'_>, layout: Layout, steps: Vec<u64>, loads: &[Load]) -> Swept {
    Sweep { layout, order: Order::Grouped, phases: Phases::Random, steps, loads }.run(run)
}

/// How far lst and delta-l are from each other.
fn differ(findings: &mut Findings, small: &Swept, rotation: &Swept) {
    let apart = |swept: &Swept| {
        let ratio = |step: usize| (swept.latency(step, LST) / swept.latency(step, PRINTED)).ln();
        let steps = 0..=swept.last();
        let all: Vec<f64> = steps.map(|step| ratio(step).abs()).collect();
        (all.iter().sum::<f64>() / all.len() as f64).exp()
    };
    let [single, rotation] = [small, rotation].map(apart);
    findings.claim(
        Claim::holds(
            "lst and delta-l-1999 differ less than with rotation",
            "less pronounced",
            format!("by a factor of {single:.3} on average, with rotation {rotation:.3}"),
            single < rotation,
        )
        .measured(single)
        .explained(
            At::each(1.474, 1.134),
            "the static slack of single disks is a third of that of rotation (figure 6.4), so \
             that delta-l refuses more often what lst still serves",
        ),
    );
}

/// Latency with large blocks to that with small ones, thorough and quick, where it is not
/// shorter beyond the interval.
const LARGER_TO_SMALLER: [(&str, f64, f64); 4] = [
    ("delta-l-1999", 0.751, 0.999),
    ("delta-l", 0.749, 0.971),
    ("lst", 0.127, 1.387),
    ("slack", 1.222, 1.42),
];

/// Large blocks against small ones at the same loads.
fn shorter(findings: &mut Findings, small: &Swept, large: &Swept, loads: &[Load], run: &Run<'_>) {
    let last = *small.steps.last().expect("some step");
    let again = swept(run, Layout::OneDiskLarge, vec![last], loads);
    for policy in [PRINTED, DELTA_L, LST, SLACK] {
        let [with_small, with_large] =
            [small.latency(small.last(), policy), again.latency(0, policy)];
        let why = match with_large < with_small {
            true => "the mean is shorter; the interval of a few seeds is wider than the difference",
            false => {
                "a request that comes while a block is read waits for the rest of it, which is \
                 longer for a larger one; the slack that it saves was there with small blocks, \
                 too"
            }
        };
        let at = At::in_list(&LARGER_TO_SMALLER, &POLICIES[policy].to_string());
        let claim = Claim::holds(
            format!(
                "at {:.1} MB/s under {}: shorter with large blocks",
                load_of(last),
                POLICIES[policy]
            ),
            "shorter, beyond the interval of 95 %",
            format!("{} and {} ms", report::number(with_large), report::number(with_small)),
            is_more(&small.cells[small.last()][policy].all, &again.cells[0][policy].all),
        )
        .measured(with_large / with_small)
        .explained(at, why);
        let is_ours = [DELTA_L, SLACK].contains(&policy);
        findings.claim(if is_ours { claim.of_ours() } else { claim });
    }
    let ratio = large.latency(large.last(), LST) / large.latency(large.last(), PRINTED);
    findings.claim(
        Claim::holds(
            "large blocks, highest load: lst about as good as delta-l-1999 or worse",
            "almost equal or worse (here: at least 0.9 of it)",
            format!("{ratio:.2} of it"),
            ratio >= 0.9,
        )
        .measured(ratio)
        .explained(
            At::quick_only(0.75),
            "the exact analysis with our bounds ends before the loads at which the thesis saw \
             latest start times fall behind",
        ),
    );
}

fn ours(findings: &mut Findings, swept: &Swept, name: &str) {
    let found = swept.cells.iter().filter_map(|cells| against(cells, |cell| &cell.all));
    let most = found.map(|it| it.ratio).fold(0.0, f64::max);
    let text = format!("slack to the best of edf, lst and delta-l, {name}, all loads");
    findings.claim(Claim::at_most(text, 1.02, most, "").of_ours());
}
