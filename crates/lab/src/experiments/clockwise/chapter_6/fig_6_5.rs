//! Figure 6.5: best-effort latency by file system against the load, streams in rotation.

use super::days;
use super::load::{Load, Order};
use super::scene::{Phases, pairs_max, promised};
use super::streams::{Layout, load as load_of};
use super::sweep::{
    Against, Cell, DELTA_L, EDF, LST, POLICIES, PRINTED, SLACK, Sweep, Swept, against,
    held_against, is_more, late_words, mean,
};
use crate::{At, Claim, Experiment, Findings, Paper, Run};
use report::Table;
use sched::PolicyKind;

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
            delta-l, file system by file system, seed by seed; a mean of fewer than 300 requests is \
            not judged. edl is slack in order of arrival, as lst and the thesis have it. The recorded week of a \
            workstation, sped up, is played as well where somebody has it.",
    real_time: false,
    run,
};

fn run(run: &Run<'_>) -> Findings {
    let last = pairs_max(Layout::Rotation, Order::Grouped);
    let loads = days::loads(run.choose(12, 8), run.choose(1_300, 200), Order::Grouped);
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
    best(&mut findings, &swept, &sweep.each(PolicyKind::EDL));
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
/// Of fewer requests a mean is off by chance by as much as that margin: where waits vary by
/// as much as they are long, by a tenth of itself in one case of twelve.
const TOLD_MIN: u64 = 300;

/// A policy against the best of some others, on every file system that asks for enough.
#[derive(Default)]
struct Held {
    seen: usize,
    /// What is not shown to be below the margin, and how much of it is later by its mean.
    worse: Vec<String>,
    worse_by_mean: usize,
    farthest: f64,
}

impl Held {
    fn add(&mut self, system: usize, load: f64, found: &Against) {
        self.seen += 1;
        self.farthest = self.farthest.max(found.ratio);
        if found.by_seed_max > MARGIN {
            self.worse.push(format!("disk {system} at {load:.1} MB/s ({:.3})", found.ratio));
            self.worse_by_mean += usize::from(found.ratio > 1.0);
        }
    }

    fn claim(&self, what: &str) -> Claim {
        Claim::holds(
            format!("{what} at that load, on every cello disk of {TOLD_MIN} requests or more"),
            format!("at most {MARGIN} of it, to the interval of 95 % of the ratios seed by seed"),
            format!(
                "not shown in {} of {} cells, {} of them later by their means; the farthest mean \
                 is {:.2} of it",
                self.worse.len(),
                self.seen,
                self.worse_by_mean,
                self.farthest
            ),
            self.worse.is_empty() && self.seen > 0,
        )
        .of_ours()
    }

    fn note(&self, what: &str) -> String {
        let worse = if self.worse.is_empty() { "none".into() } else { self.worse.join(", ") };
        format!("Not shown to be within {MARGIN}, {what}: {worse}.")
    }
}

/// Holds slack, and the same slack in order of arrival, against the others: of its own
/// order; against lst, where that is the best of all; against all of them.
fn hold(swept: &Swept, in_order: &[Cell]) -> [Held; 3] {
    let mut held = [Held::default(), Held::default(), Held::default()];
    for ((cells, edl), &pairs) in swept.cells.iter().zip(in_order).zip(&swept.steps) {
        let load = load_of(pairs);
        for (system, _) in told(edl) {
            let against = |ours: &Cell, others: &[usize]| {
                let others = others.iter().map(|&at| &cells[at]);
                held_against(ours, others, |cell| &cell.systems[system]).expect("it asked")
            };
            let ms = |at: usize| mean(&cells[at].systems[system]);
            held[0].add(system, load, &against(&cells[SLACK], &[EDF, DELTA_L]));
            if ms(LST) < ms(EDF).min(ms(DELTA_L)) {
                held[1].add(system, load, &against(edl, &[LST]));
            }
            held[2].add(system, load, &against(&cells[SLACK], &[EDF, LST, DELTA_L]));
        }
    }
    held
}

/// The file systems that ask for enough, with how much.
fn told(cell: &Cell) -> impl Iterator<Item = (usize, u64)> {
    let all = cell.requests.clone().into_iter().enumerate();
    all.filter(|&(_, requests)| requests >= TOLD_MIN)
}

/// Slack against the best of the others; `in_order`: the same slack in order of arrival.
fn best(findings: &mut Findings, swept: &Swept, in_order: &[Cell]) {
    let all = swept.cells.iter().filter_map(|cells| Some(against(cells, |it| &it.all)?.ratio_max));
    findings.claim(
        Claim::at_most(
            "slack answers best effort of all file systems no later than the best of edf, lst \
             and delta-l, at every load, to the upper end of the interval of 95 %",
            1.02,
            all.fold(f64::NAN, f64::max),
            "",
        )
        .of_ours(),
    );
    let [same, arrival, any] = hold(swept, in_order);
    findings
        .claim(
            same.claim(
                "nearest first: slack answers best effort no later than the best of edf and delta-l",
            )
            .measured(same.worse_by_mean as f64)
            .explained(
                At::both(0.0),
                "in every cell where it is not shown slack is sooner by its mean: what the static \
                 slack does in a burst differs so much from seed to seed that the interval is \
                 wider than the margin",
            ),
        )
        .claim(
            arrival
                .claim(
                    "in order of arrival: edl, the same slack, answers best effort no later than \
                     lst where that is the best of the three",
                )
                .measured(arrival.farthest),
        )
        .claim(
            any.claim("slack answers best effort no later than the best of edf, lst and delta-l")
                .measured(any.farthest)
                .explained(
                    At::each(1.09, 1.16),
                    "the order among best effort, not the slack: slack serves the nearest first, lst \
                     what came first, and disk 7 lies furthest from the others' requests. The two \
                     claims above hold each against its like; the table shows what each order \
                     gives every disk, and that all together gain by the nearest first",
                ),
        )
        .note(same.note("slack of edf and delta-l"))
        .note(arrival.note("edl of lst"))
        .note(any.note("slack of edf, lst and delta-l"));
    findings.table(
        "What the order among best effort does: lst and edl in order of arrival, slack the nearest \
         first",
        orders(swept, in_order),
    );
}

/// Disk by disk: latest start times and slack in order of arrival, and slack.
fn orders(swept: &Swept, in_order: &[Cell]) -> Table {
    let mut table = Table::new(&[
        ">load, MB/s",
        "cello disk",
        ">requests",
        ">lst, ms",
        ">edl, ms",
        ">slack, ms",
    ]);
    for ((&pairs, cells), edl) in swept.steps.iter().zip(&swept.cells).zip(in_order) {
        let load = format!("{:.1}", load_of(pairs));
        let of = |values: [&[f64]; 3]| values.map(|values| report::number(mean(values)));
        for (system, requests) in told(edl) {
            let [a, b, c] = [&cells[LST], edl, &cells[SLACK]].map(|it| &*it.systems[system]);
            let mut row = vec![load.clone(), system.to_string(), requests.to_string()];
            row.extend(of([a, b, c]));
            table.row(row);
        }
        let mut row = vec![load, "all".into(), edl.requests.iter().sum::<u64>().to_string()];
        row.extend(of([&cells[LST].all, &edl.all, &cells[SLACK].all]));
        table.row(row);
    }
    table
}

/// Above what it would give without contracts slack may be by so much: where a disk asks for
/// few things, chance alone does that.
const NEAR: f64 = 1.1;
/// One file system at one load: slack to the best of the others, and beside it the same of
/// what slack would give without contracts.
struct Judged {
    text: String,
    ours: f64,
    least: f64,
}

/// All of them that asked for anything.
fn judge(top: &Sweep<'_>, cells: &[Vec<Cell>], possible: &[Cell]) -> Vec<Judged> {
    let mut judged = Vec::new();
    for ((&pairs, cells), possible) in top.steps.iter().zip(cells).zip(possible) {
        for (system, requests) in told(&cells[SLACK]) {
            let others = || [EDF, LST, DELTA_L].map(|at| &cells[at]).into_iter();
            let ratio = |ours| Some(held_against(ours, others(), |it| &it.systems[system])?.ratio);
            let (Some(ours), Some(least)) = (ratio(&cells[SLACK]), ratio(possible)) else {
                continue;
            };
            let load = load_of(pairs);
            let text = format!(
                "disk {system} at {load:.1} MB/s ({requests} requests: {ours:.2}; {least:.2})"
            );
            judged.push(Judged { text, ours, least });
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
            At::quick_only(0.964),
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
            "the same on the worst cello disk of 300 requests or more, at the worst of these loads",
            0.85,
            judged.iter().map(|one| one.ours).fold(f64::NAN, f64::max),
            "",
        )
        .of_ours()
        .explained(
            At::each(1.03, 0.989),
            "where the others wait little, too, there is nothing to gain; whether more was there to \
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
    let beyond: Vec<_> =
        judged.iter().filter(|it| it.ours > f64::max(0.85, NEAR * it.least)).collect();
    findings.claim(
        Claim::holds(
            "each of these disks is within 0.85, or within a tenth of what slack would give if it \
         kept no contract (best-effort-first)",
            "each",
            format!("of {} not: {}", judged.len(), list(&beyond)),
            beyond.is_empty() && !judged.is_empty(),
        )
        .of_ours(),
    );
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
fn shapes(findings: &mut Findings, swept: &Swept) {
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
    // At the very highest loads the thesis has it the other way round.
    let middles = middle..swept.step_at(0.85);
    let steps = middles.len();
    let is_better = |step: &usize| {
        let cells = &swept.cells[*step];
        let found = held_against(&cells[LST], [&cells[PRINTED]], |cell| &cell.all);
        found.is_some_and(|found| found.by_seed_max < 1.0)
    };
    let better = middles.filter(is_better).count();
    findings.claim(
        Claim::holds(
            "from a middle load on lst does better than delta-l-1999 (up to 0.85 of the loads)",
            "better at most loads, beyond the interval of 95 % of the ratios seed by seed",
            format!("at {better} of {steps} loads"),
            2 * better > steps,
        )
        .measured(better as f64)
        .explained(
            At::each(3.0, 0.0),
            "at the lower of these loads static slack still covers nearly every burst, so that the \
             two are alike there (in the short parts of a quick run at all of them)",
        ),
    );
    let systems = &swept.cells[last][LST].systems;
    let printed = &swept.cells[last][PRINTED].systems;
    let known =
        systems.iter().zip(printed).filter(|(a, b)| mean(a).is_finite() && mean(b).is_finite());
    let known: Vec<(bool, bool)> =
        known.map(|(lst, printed)| (is_more(lst, printed), mean(lst) > mean(printed))).collect();
    let worse = known.iter().filter(|(sure, _)| *sure).count();
    let by_mean = known.iter().filter(|(_, later)| *later).count();
    let ratio = ms(last, LST) / ms(last, PRINTED);
    findings.claim(
        Claim::holds(
            "at the highest load lst does worse than delta-l-1999 on most disks",
            "in most cases, beyond the interval of 95 %",
            format!(
                "on {worse} of {} disks, on {by_mean} by their means; {}",
                known.len(),
                words(last, &[LST, PRINTED])
            ),
            worse * 2 > known.len(),
        )
        .measured(ratio)
        .explained(
            At::each(11.9, 0.527),
            if ratio > 1.0 {
                "by their means it does; but the bursts of a few hours make all of that, and over \
                 so few an interval is wider than the difference"
            } else {
                "the thesis goes on to loads that our bounds do not admit, and the slack that is \
                 left here is still enough for latest start times"
            },
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
