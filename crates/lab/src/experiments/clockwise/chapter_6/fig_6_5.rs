//! Figure 6.5: best-effort latency by file system against the load, streams in rotation.

use super::days;
use super::load::{Load, Order};
use super::scene::{Phases, pairs_max, promised};
use super::streams::{Layout, load as load_of};
use super::sweep::{
    Cell, DELTA_L, EDF, LST, POLICIES, PRINTED, SLACK, Sweep, Swept, against, held_against,
    is_more, late_words, mean,
};
use crate::{At, Claim, Experiment, Findings, Paper, Run};
use report::Table;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "clockwise-fig-6.5",
    paper: Paper::Clockwise,
    title: "Best-effort latency against real-time load, streams in rotation",
    claim: "Serving best effort only when no stream waits (EDF) makes its latency grow \
            quickly. Static slack and latest start times do as well as each other at low \
            loads; at middle loads latest start times do better, at the highest mostly much \
            worse. Under static slack no stream is late; latest start times cannot promise \
            that.",
    setup: "Three Atlas-II models without caches; pairs of video and sound join one by one \
            up to the last that the exact analysis admits with our bounds. Beside them the \
            eight file systems of cello (fitted to the printed statistics) in parts of the \
            busiest day, with another hour and other random choices for each seed; every \
            policy sees the same requests. slack is held against the best of edf, lst and \
            delta-l, file system by file system, seed by seed. The recorded week of a \
            workstation, sped up, is played as well where somebody has it.",
    real_time: false,
    run,
};

fn run(run: &Run<'_>) -> Findings {
    let last = pairs_max(Layout::Rotation, Order::Grouped);
    let loads = days::loads(run.choose(5, 3), run.choose(1_300, 200), Order::Grouped);
    let steps =
        run.choose((1..=last).collect(), [1, last / 2, last * 3 / 4, last - 1, last].to_vec());
    let sweep = Sweep {
        layout: Layout::Rotation,
        order: Order::Grouped,
        phases: Phases::Random,
        steps,
        loads: &loads,
    };
    let swept = sweep.run(run);
    let mut findings = Findings::default();
    kept(&mut findings, &swept);
    best(&mut findings, &swept);
    let from = swept.steps.len() - swept.steps.len().div_ceil(10);
    let top = Sweep { steps: swept.steps[from..].to_vec(), ..sweep };
    highest(&mut findings, &top, &swept.cells[from..]);
    shapes(&mut findings, &swept);
    for chart in swept.charts("cello disk") {
        findings.chart(chart);
    }
    findings.table("Mean latency of all eight file systems", swept.table());
    let late = swept.cells.iter().enumerate().filter(|(_, cells)| late_words(cells) != "none");
    let late: Vec<String> = late
        .map(|(step, cells)| {
            format!("{:.1} MB/s: {}", load_of(swept.steps[step]), late_words(cells))
        })
        .collect();
    findings.note(match late.is_empty() {
        true => "Under no policy was a stream's request late.".into(),
        false => format!("Late requests of streams. {}.", late.join(". ")),
    });
    findings.note(format!(
        "The last load is {:.1} MB/s, {:.1} % of each disk by our bounds; the thesis, which plans \
         with 95th percentiles, goes on to about 17.5 MB/s.",
        load_of(last),
        promised(Layout::Rotation, Order::Grouped, last)
    ));
    equal_phases(&mut findings, run, &loads, last);
    week(&mut findings, run, last);
    findings
}

/// No request is late under the policies that promise it.
pub(super) fn kept(findings: &mut Findings, swept: &Swept) {
    let sum = |at: usize, pick: fn(&Cell) -> u64| -> u64 {
        swept.cells.iter().map(|cells| pick(&cells[at])).sum()
    };
    for at in [PRINTED, SLACK, DELTA_L] {
        let text = format!("late requests of streams under {}, all loads", POLICIES[at]);
        let claim = Claim::near(text, 0.0, sum(at, |cell| cell.late) as f64, 0.0, "");
        // The printed policy is the thesis's; the others are ours.
        findings.claim(if at == PRINTED { claim } else { claim.of_ours() });
    }
    let all: u64 = (0..POLICIES.len()).map(|at| sum(at, |cell| cell.overruns)).sum();
    findings.claim(Claim::near("commands beyond their bound", 0.0, all as f64, 0.0, "").of_ours());
    let starved: u64 = (0..POLICIES.len()).map(|at| sum(at, |cell| cell.unanswered)).sum();
    let text = "requests of file systems without an answer";
    findings.claim(Claim::near(text, 0.0, starved as f64, 0.0, "").of_ours());
}

/// Slack is not worse than another where it takes at most so much of the other's time, to
/// the upper end of the interval.
const MARGIN: f64 = 1.1;

/// Slack against the best of the others, on every file system.
fn best(findings: &mut Findings, swept: &Swept) {
    let (mut worse, mut seen, mut farthest) = (Vec::new(), 0, 0.0_f64);
    let mut by_mean = 0;
    for (cells, pairs) in swept.cells.iter().zip(&swept.steps) {
        for system in 0..cells[SLACK].systems.len() {
            let Some(found) = against(cells, |cell| &cell.systems[system]) else { continue };
            seen += 1;
            farthest = farthest.max(found.ratio);
            by_mean += usize::from(found.ratio > MARGIN);
            if found.ratio_max > MARGIN {
                let load = load_of(*pairs);
                worse.push(format!("disk {system} at {load:.1} MB/s ({:.3})", found.ratio));
            }
        }
    }
    findings.claim(
        Claim::holds(
            "slack answers best effort no later than the best of edf, lst and delta-l at that \
             load, on every cello disk",
            format!("at most {MARGIN} of it in every cell, to the interval of 95 % over the seeds"),
            format!(
                "not shown in {} of {seen} cells, {by_mean} of them by their means; the farthest \
                 mean is {farthest:.2} of the best",
                worse.len()
            ),
            worse.is_empty(),
        )
        .measured(by_mean as f64)
        .of_ours(),
    );
    findings.note(format!("Not shown to be within {MARGIN} of the best: {}.", worse.join(", ")));
}

/// Above what it would give without contracts slack may be by so much: where a disk asks for
/// few things, chance alone does that.
const NEAR: f64 = 1.1;
/// Of fewer requests a mean says nothing.
const REQUESTS_MIN: u64 = 30;

/// One file system at one load: slack to the best of the others, and beside it the same of
/// what slack would give without contracts.
struct Judged {
    text: String,
    requests: u64,
    ours: f64,
    least: f64,
}

/// All of them that asked for anything.
fn judge(top: &Sweep<'_>, cells: &[Vec<Cell>], possible: &[Cell]) -> Vec<Judged> {
    let mut judged = Vec::new();
    for ((&pairs, cells), possible) in top.steps.iter().zip(cells).zip(possible) {
        for (system, &requests) in cells[SLACK].requests.iter().enumerate() {
            let ratio = |ours| Some(held_against(ours, cells, |it| &it.systems[system])?.ratio);
            let (Some(ours), Some(least)) = (ratio(&cells[SLACK]), ratio(possible)) else {
                continue;
            };
            let load = load_of(pairs);
            let text = format!(
                "disk {system} at {load:.1} MB/s ({requests} requests: {ours:.2}; {least:.2})"
            );
            judged.push(Judged { text, requests, ours, least });
        }
    }
    judged
}

/// At the highest tenth of loads, beside what there is to have without contracts.
fn highest(findings: &mut Findings, top: &Sweep<'_>, cells: &[Vec<Cell>]) {
    let possible = top.yardstick();
    let all = cells.iter().filter_map(|cells| Some(against(cells, |cell| &cell.all)?.ratio));
    findings.claim(
        Claim::at_most(
            "highest tenth of loads, all file systems: slack to the best of the others",
            0.85,
            all.fold(f64::NAN, f64::max),
            "",
        )
        .of_ours()
        .explained(
            At::quick_only(0.946),
            "these short parts hold no burst that uses up the slack; what is left is the rest of \
             one block of a stream, which no order can avoid (the thorough run holds such bursts)",
        ),
    );
    let judged = judge(top, cells, &possible);
    let (within, above): (Vec<_>, Vec<_>) = judged.iter().partition(|one| one.ours <= 0.85);
    let list = |all: &[&Judged]| match all.is_empty() {
        true => "none".to_owned(),
        false => all.iter().map(|one| &*one.text).collect::<Vec<_>>().join(", "),
    };
    findings.claim(
        Claim::at_most(
            "the same on the worst cello disk, at the worst of these loads",
            0.85,
            judged.iter().map(|one| one.ours).fold(f64::NAN, f64::max),
            "",
        )
        .of_ours()
        .explained(
            At::each(1.07, 1.49),
            "where a disk asks for few things there is nothing to gain; whether more was there to \
             have, the next claim says",
        ),
    );
    findings.note(format!(
        "{} of {} disks at the highest tenth of loads are within 0.85 of the best. Above it are \
         (slack; slack if it kept no contract): {}.",
        within.len(),
        judged.len(),
        list(&above)
    ));
    let told = judged.iter().filter(|one| one.requests >= REQUESTS_MIN);
    let beyond: Vec<_> =
        told.clone().filter(|it| it.ours > f64::max(0.85, NEAR * it.least)).collect();
    findings.claim(Claim::holds(
        "every cello disk of 30 requests or more is within 0.85, or within a tenth of what slack \
         would give if it kept no contract (best-effort-first)",
        "each",
        format!("of {} not: {}", told.clone().count(), list(&beyond)),
        beyond.is_empty() && told.count() > 0,
    )
    .of_ours());
    findings.table(
        "Mean latency at the highest tenth of loads, disk by disk",
        disks(top, cells, &possible),
    );
}

/// The last loads, disk by disk, and last what there is to have without contracts.
fn disks(top: &Sweep<'_>, cells: &[Vec<Cell>], possible: &[Cell]) -> Table {
    let names = POLICIES.map(|policy| format!(">{policy}, ms"));
    let mut headings = vec![">load, MB/s", "cello disk", ">requests"];
    headings.extend(names.iter().map(String::as_str));
    headings.push(">best-effort-first, ms");
    let mut table = Table::new(&headings);
    for ((&pairs, cells), possible) in top.steps.iter().zip(cells).zip(possible) {
        for system in 0..possible.systems.len() {
            let mut row = vec![format!("{:.1}", load_of(pairs)), system.to_string()];
            row.push(cells[SLACK].requests[system].to_string());
            let all = cells.iter().chain([possible]);
            row.extend(all.map(|cell| report::number(mean(&cell.systems[system]))));
            table.row(row);
        }
    }
    table
}

/// What the thesis says of its curves.
pub(super) fn shapes(findings: &mut Findings, swept: &Swept) {
    let ms = |step: usize, policy: usize| swept.latency(step, policy);
    let words = |step: usize, policies: &[usize]| {
        let figures = policies
            .iter()
            .map(|&at| format!("{} {} ms", POLICIES[at], report::number(ms(step, at))));
        let figures: Vec<String> = figures.collect();
        format!("at {:.1} MB/s {}", load_of(swept.steps[step]), figures.join(", "))
    };
    let (middle, last) = (swept.step_at(0.5), swept.last());
    findings
        .claim(Claim::holds(
            "edf grows quickly: at half the load far above the others",
            "much higher",
            words(middle, &[EDF, LST, PRINTED]),
            ms(middle, EDF) > 1.5 * ms(middle, LST).max(ms(middle, PRINTED)),
        ))
        .claim(Claim::holds(
            "at the lowest load lst and delta-l-1999 do equally well",
            "alike (here: within 5 %)",
            words(0, &[LST, PRINTED]),
            (ms(0, LST) / ms(0, PRINTED) - 1.0).abs() < 0.05,
        ));
    let all = |step: usize, policy: usize| &*swept.cells[step][policy].all;
    let from_middle = middle..last;
    let steps = from_middle.len();
    let better = from_middle.filter(|&it| is_more(all(it, PRINTED), all(it, LST))).count();
    findings.claim(
        Claim::holds(
            "from a middle load on, up to the last but one, lst does better than delta-l-1999",
            "better at most loads, beyond the interval of 95 % over the seeds",
            format!("at {better} of {steps} loads"),
            2 * better > steps,
        )
        .measured(better as f64)
        .explained(
            At::quick_only(0.0),
            "static slack still covers nearly every burst at middle loads, so that the two are \
             alike there",
        ),
    );
    let systems = &swept.cells[last][LST].systems;
    let printed = &swept.cells[last][PRINTED].systems;
    let known =
        systems.iter().zip(printed).filter(|(a, b)| mean(a).is_finite() && mean(b).is_finite());
    let known: Vec<bool> = known.map(|(lst, printed)| is_more(lst, printed)).collect();
    let worse = known.iter().filter(|worse| **worse).count();
    findings.claim(
        Claim::holds(
            "at the highest load lst does worse than delta-l-1999 on most disks",
            "in most cases, beyond the interval of 95 %",
            format!("on {worse} of {} disks; {}", known.len(), words(last, &[LST, PRINTED])),
            worse * 2 > known.len(),
        )
        .measured(worse as f64)
        .explained(
            At::quick_only(0.0),
            "the thesis goes on to loads that our bounds do not admit, and the slack that is \
             left here is still enough for latest start times",
        ),
    );
}

/// All streams released together: worse for latest start times.
fn equal_phases(findings: &mut Findings, run: &Run<'_>, loads: &[Load], last: u64) {
    let sweep = Sweep {
        layout: Layout::Rotation,
        order: Order::Grouped,
        phases: Phases::Equal,
        steps: run.choose(vec![last * 3 / 4, last - 2, last - 1, last], vec![last]),
        loads,
    };
    let swept = sweep.run(run);
    kept_equal(findings, &swept);
    findings.table("The same where all streams begin at once", swept.table());
}

fn kept_equal(findings: &mut Findings, swept: &Swept) {
    let late: u64 = swept.cells.iter().map(|c| c[SLACK].late + c[DELTA_L].late).sum();
    findings.claim(
        Claim::near(
            "late requests under slack and delta-l where all streams begin at once",
            0.0,
            late as f64,
            0.0,
            "",
        )
        .of_ours(),
    );
    let ratios: Vec<f64> = swept
        .cells
        .iter()
        .filter_map(|cells| Some(against(cells, |cell| &cell.all)?.ratio))
        .collect();
    let most = ratios.iter().copied().fold(0.0, f64::max);
    let text = "and slack to the best of the others there";
    findings.claim(Claim::at_most(text, 1.0, most, "").or_better().of_ours());
}

/// The recorded week, sped up until it loads the disks as cello's busiest window does.
fn week(findings: &mut Findings, run: &Run<'_>, last: u64) {
    let Some(load) = Load::week(run.choose(200, 2_000), Order::Grouped) else {
        findings.note(
            "The recorded week of 1992 was not there (SLACKLINE_DATA names the folder that \
             holds it), so its column is missing.",
        );
        return;
    };
    let loads = [load];
    let sweep = Sweep {
        layout: Layout::Rotation,
        order: Order::Grouped,
        phases: Phases::Random,
        steps: run.choose(vec![last / 4, last / 2, last * 3 / 4, last - 1, last], vec![last]),
        loads: &loads,
    };
    let swept = sweep.run(run);
    let late: u64 = swept.cells.iter().map(|c| c[SLACK].late + c[DELTA_L].late).sum();
    let ratios = swept.cells.iter().filter_map(|c| Some(against(c, |cell| &cell.all)?.ratio));
    let most = ratios.fold(0.0, f64::max);
    findings
        .claim(
            Claim::near(
                "the recorded week: late under slack and delta-l",
                0.0,
                late as f64,
                0.0,
                "",
            )
            .of_ours(),
        )
        .claim(
            Claim::at_most("the recorded week: slack to the best of the others", 1.02, most, "")
                .of_ours(),
        );
    let seconds = loads[0].span.as_secs_f64();
    findings.table(
        format!(
            "The recorded week of a workstation in {seconds:.0} s: {} requests, {:.0} a second",
            loads[0].requests(),
            loads[0].requests() as f64 / seconds
        ),
        swept.table(),
    );
}
