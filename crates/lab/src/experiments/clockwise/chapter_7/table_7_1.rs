//! Table 7.1 and figures 7.1 and 7.2: best effort beside streams, in the busiest minutes.

use super::super::chapter_6::{Load, Order, STREAM_EXTENTS};
use super::super::raw::MB;
use crate::{At, Claim, Experiment, Findings, Paper, Run};
use disk::Model;
use report::{Axis, Chart, Series, Style, Table, number};
use sched::parts::oldest;
use sched::{Choice, Options, Policy, PolicyKind, View};
use sim::machine::{
    Asker, DiskSetup, LoadIndex, Machine, Pace, Places, PlayPlan, Setup, StreamPlan, Target,
};
use sim::runs::{Confidence, Estimate};
use sim::workload::Demand;
use sim::workload::cello::Cello;
use sim::workload::cello::figures::{WINDOW, WINDOW_LOADS};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use units::{Bytes, Direction, Duration, Lba, Rate};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "clockwise-fig-7.1",
    paper: Paper::Clockwise,
    title: "Best effort beside streams in the busiest minutes of cello",
    claim: "In 1,300 s of June 1st, 1992, beside up to 17.5 MB/s of streams on three Atlas-IIs: \
            latencies under delta-L grow with the load but do not become worse than under EDF; \
            under LST they are high at a high load. A real system differs from its simulation \
            only slightly.",
    setup: "Loads like cello's, fitted to table 7.1, each file system in extents of 1 MiB over \
            three Atlas-II models; streams of 817 KB/s whose 1 MB blocks take turns on the outer \
            zone. The thesis's policies have its plan (134 ms a block) and its one queue of best \
            effort, first come first served: edf-1999 is EDF so. Ours have the bound of the \
            profile, which no block exceeds, and are held against EDF with the order that they \
            have among best effort. A mean is over all requests, each waited for to its end.",
    real_time: false,
    run,
};

const DISKS: u32 = 3;
/// Those of cello that do something in this time.
const BUSY: [usize; 5] = [0, 2, 5, 6, 7];
/// What the thesis plans a block at (table 6.4).
const PRINTED: Duration = Duration::from_millis(134);
/// How long after its last request a load is still waited for.
const PATIENCE: u64 = 3_000;

/// EDF as the thesis simulated it: best effort when nothing else waits, in the order of
/// arrival (section 6.3.2).
const EDF_1999: PolicyKind = PolicyKind {
    name: "edf-1999",
    summary: "Earliest deadline first, and best effort first come first served.",
    start: |_| Box::new(Edf1999),
    ..PolicyKind::EDF
};

#[derive(Clone, Copy, Debug)]
struct Edf1999;

impl Policy for Edf1999 {
    fn choose(&mut self, view: &mut View<'_>) -> Choice {
        let (queues, oldest) = (view.queues(), oldest(view));
        let order = [queues.ready_first(), queues.early_first(), oldest];
        match order.into_iter().flatten().next() {
            Some(request) => Choice::Start(request.key),
            None => Choice::Wait { until: None },
        }
    }

    fn clone_box(&self) -> Box<dyn Policy> {
        Box::new(*self)
    }
}

/// A policy, and what its blocks are planned to take: the bound of the profile where
/// nothing is said.
#[derive(Clone, Copy)]
struct Column {
    name: &'static str,
    policy: PolicyKind,
    planned: Option<Duration>,
}

const fn printed(name: &'static str, policy: PolicyKind) -> Column {
    Column { name, policy, planned: Some(PRINTED) }
}

const fn bounds(name: &'static str, policy: PolicyKind) -> Column {
    Column { name, policy, planned: None }
}

const COLUMNS: [Column; 7] = [
    printed("edf-1999", EDF_1999),
    printed("lst", policies::LST),
    printed("delta-l-1999", policies::DELTA_L_1999),
    bounds("edf", PolicyKind::EDF),
    bounds("delta-l", PolicyKind::DELTA_L),
    bounds("slack", PolicyKind::SLACK),
    printed("slack, 134 ms a block", PolicyKind::SLACK),
];
/// Places in these.
const EDF_1999_AT: usize = 0;
const LST: usize = 1;
const DELTA_L_1999: usize = 2;
const EDF: usize = 3;
const DELTA_L: usize = 4;
const SLACK: usize = 5;
const SLACK_AT_134: usize = 6;

/// One column at one load.
#[derive(Default)]
struct Cell {
    /// Mean latency of best effort in ms, by seed: of all, and by file system.
    all: Vec<f64>,
    systems: [Vec<f64>; BUSY.len()],
    /// Blocks of streams; of these, late, and with a bound above what they are planned at.
    blocks: u64,
    late: u64,
    over: u64,
    unanswered: u64,
}

impl Cell {
    fn mean(&self) -> f64 {
        Estimate::of(&self.all).mean
    }

    fn over_percent(&self) -> f64 {
        100.0 * self.over as f64 / self.blocks.max(1) as f64
    }
}

/// Adds what comes of one load to the cell.
fn serve(cell: &mut Cell, column: &Column, streams: u64, (seed, load): (u64, &Load)) {
    let model = Model::named("quantum-atlas-ii").expect("it comes with us");
    let all = Lba::new(0)..Lba::containing(model.capacity());
    let options = Options { reserve: Duration::from_millis(40), ..Options::default() };
    let disk = DiskSetup::new(model, column.policy, options);
    let mut machine = Machine::new(Setup::alike(&disk, DISKS, seed));
    let mut planned = Duration::ZERO;
    for at in 0..streams {
        let plan = StreamPlan {
            disks: (0..DISKS).collect(),
            rate: Rate::per_second(817 * 1024),
            block: Bytes::MIB,
            deadline: None,
            cost: column.planned,
            direction: Direction::Read,
            places: Places::Sequential(Lba::new(0)..Lba::new(STREAM_EXTENTS * 2048)),
            pace: Pace::Steady,
            phase: Duration::from_millis(137 * at),
            patience: Duration::ZERO,
        };
        planned = machine.task(&plan, 0).cost;
        machine.join(plan).expect("so many are let in");
    }
    let over = Arc::new(AtomicU64::new(0));
    let seen = Arc::clone(&over);
    machine.watch(move |done| {
        let is_over = matches!(done.asker, Asker::Stream(_)) && done.outcome.predicted > planned;
        seen.fetch_add(u64::from(is_over), Ordering::Relaxed);
    });
    let play = |system: &Vec<Demand>| PlayPlan {
        source: Box::new(system.clone().into_iter()),
        targets: (0..DISKS).map(|disk| Target::new(disk, all.clone())).collect(),
        speed_percent: 100,
    };
    let systems: Vec<LoadIndex> = BUSY
        .iter()
        .map(|&at| machine.play(play(&load.systems[at])).expect("it has no contract"))
        .collect();
    let asked: u64 = BUSY.iter().map(|&at| load.systems[at].len() as u64).sum();
    let answered = |machine: &Machine| -> u64 {
        systems.iter().map(|&at| machine.load_results(at).latencies.count()).sum()
    };
    machine.run_for(load.span);
    for _ in 0..PATIENCE {
        if answered(&machine) == asked {
            break;
        }
        machine.run_for(Duration::from_secs(1));
    }
    let mut sum = 0.0;
    for (means, &at) in cell.systems.iter_mut().zip(&systems) {
        let latencies = &machine.load_results(at).latencies;
        let mean = latencies.mean().as_millis_f64();
        sum += mean * latencies.count() as f64;
        means.extend((latencies.count() > 0).then_some(mean));
    }
    cell.all.push(sum / asked as f64);
    let results = machine.results();
    cell.blocks += results.real_time.count();
    cell.late += results.late;
    cell.over += over.load(Ordering::Relaxed);
    cell.unanswered += asked - answered(&machine);
}

/// Streams of the low load that is looked at by plan.
const LOW: u64 = 6;
/// It is not worse where it takes at most so much of EDF's time.
const MARGIN: f64 = 1.05;

fn run(run: &Run<'_>) -> Findings {
    let window = WINDOW.end - WINDOW.start;
    let span = run.choose(window, Duration::from_secs(200));
    let steps: &[u64] = run.choose(&[1, 6, 11, 16, 19, 22], &[6, 22]);
    let load = |seed| Load::cello(seed, WINDOW.start..WINDOW.start + span, Order::Grouped);
    let loads: Vec<(u64, Load)> = (1..=run.choose(24, 16)).map(|seed| (seed, load(seed))).collect();
    let mut cells = Vec::new();
    for (done, &streams) in steps.iter().enumerate() {
        run.progress(done, steps.len());
        let cell = |column: &Column| {
            let mut cell = Cell::default();
            loads.iter().for_each(|(seed, load)| serve(&mut cell, column, streams, (*seed, load)));
            cell
        };
        cells.push(COLUMNS.each_ref().map(cell));
    }
    let mut findings = Findings::default();
    table_7_1(run, &mut findings);
    papers(&mut findings, steps, &cells);
    ours(&mut findings, steps, &cells);
    draw(&mut findings, steps, &cells);
    by_plan(&mut findings, &loads);
    findings.claim(Claim::not_reproducible(
        "table 7.2: one to six Cheetahs take 0.8 to 4.1 % of a processor",
        "0.041 with six",
        "of a Pentium Pro at 200 MHz and controllers that no machine has now; what our \
         decisions cost is measured by `make bench`",
    ));
    findings.note(
        "The other half of these figures, the engine in real time on an emulated disk, is \
         clockwise-section-7.1.",
    );
    findings
}

fn load_of(streams: u64) -> f64 {
    streams as f64 * 817.0 * 1_024.0 / MB
}

/// The most that `ours` is of `theirs`, to the upper end of the interval of 95 %.
fn at_most_of(ours: &Cell, theirs: &Cell) -> f64 {
    let difference = Estimate::of_differences(&ours.all, &theirs.all);
    let upper = difference.mean + difference.margin(Confidence::Percent95).min(f64::MAX);
    1.0 + upper / theirs.mean()
}

const UPPER: &str = "of EDF's mean, to the upper end of the interval of 95 %";

fn papers(findings: &mut Findings, steps: &[u64], cells: &[[Cell; 7]]) {
    for (&streams, cells) in steps.iter().zip(cells) {
        let load = number(load_of(streams));
        let text = format!("{load} MB/s: delta-l-1999 is not worse than EDF: {UPPER}");
        let most = at_most_of(&cells[DELTA_L_1999], &cells[EDF_1999_AT]);
        findings.claim(Claim::at_most(text, MARGIN, most, ""));
    }
    let (first, last) = (&cells[0], &cells[cells.len() - 1]);
    let ratios = last[DELTA_L_1999].all.iter().zip(&first[DELTA_L_1999].all);
    let grows = Estimate::of(&ratios.map(|(last, first)| (last / first).ln()).collect::<Vec<_>>());
    let longer = Estimate::of_differences(&last[LST].all, &last[DELTA_L_1999].all);
    let is_sure = |it: &Estimate| it.mean > it.margin(Confidence::Percent95);
    let words = |one: &Cell, other: &Cell| {
        format!("{} and {} ms", number(one.mean()), number(other.mean()))
    };
    findings
        .claim(Claim::holds(
            "under delta-l-1999 latency is longer at the highest load than at the lowest",
            "grows, beyond the interval of 95 % of the ratios seed by seed",
            words(&last[DELTA_L_1999], &first[DELTA_L_1999]),
            is_sure(&grows),
        ))
        .claim(
            Claim::holds(
                "at the highest load best effort under LST waits longer than under delta-l-1999",
                "longer, beyond the interval of 95 %",
                words(&last[LST], &last[DELTA_L_1999]),
                is_sure(&longer),
            )
            .measured(last[LST].mean() / last[DELTA_L_1999].mean())
            .explained(
                At::quick_only(1.262),
                "by its mean it is longer; over 16 parts of 200 s the interval is wider than the \
                 difference (24 of the whole window show it)",
            ),
        );
}

fn ours(findings: &mut Findings, steps: &[u64], cells: &[[Cell; 7]]) {
    for (&streams, cells) in steps.iter().zip(cells) {
        let load = number(load_of(streams));
        for at in [DELTA_L, SLACK, SLACK_AT_134] {
            let text = format!("{load} MB/s: {} is not worse than EDF: {UPPER}", COLUMNS[at].name);
            let most = at_most_of(&cells[at], &cells[EDF]);
            let claim = Claim::at_most(text, MARGIN, most, "").of_ours();
            findings.claim(match at {
                SLACK_AT_134 => claim.explained(At::each(4.58, 4.72), over(&cells[at])),
                _ => claim,
            });
        }
    }
    let sum = |of: fn(&Cell) -> u64, at: &[usize]| -> u64 {
        cells.iter().flat_map(|cells| at.iter().map(|&at| of(&cells[at]))).sum()
    };
    let late = sum(|cell| cell.late, &[DELTA_L, SLACK]);
    let text = "late under delta-l and slack planned by bounds, at all loads";
    findings.claim(Claim::near(text, 0.0, late as f64, 0.0, "blocks").of_ours());
    let unanswered = sum(|cell| cell.unanswered, &[0, 1, 2, 3, 4, 5, 6]);
    let text = "requests of file systems without an answer";
    findings.claim(Claim::near(text, 0.0, unanswered as f64, 0.0, "").of_ours());
}

/// Why slack is late for best effort where blocks are planned below their bound.
fn over(cell: &Cell) -> String {
    format!(
        "{:.0} % of the blocks have a bound above 134 ms: they cost more than their contracts cover. \
         To slack such a block is no request under contract that may be put off: it goes at its turn \
         as soon as the slack covers all of it, before best effort, and else in best effort's \
         order. Planned at the bound, where none is (slack above), the same policy has the same \
         requests answered sooner than under EDF; in between the table by plan shows it step by step",
        cell.over_percent()
    )
}

/// At a low load, what slack makes of the same requests by what blocks are planned at.
fn by_plan(findings: &mut Findings, loads: &[(u64, Load)]) {
    let plans = [Some(134), Some(138), Some(141), None];
    let mut table = Table::new(&[
        "blocks planned at",
        ">with a bound above that, %",
        ">mean latency, ms",
        ">late",
    ]);
    let mut found = Vec::new();
    for plan in plans {
        let column = Column {
            name: "slack",
            policy: PolicyKind::SLACK,
            planned: plan.map(Duration::from_millis),
        };
        let mut cell = Cell::default();
        loads.iter().for_each(|(seed, load)| serve(&mut cell, &column, LOW, (*seed, load)));
        table.row(vec![
            plan.map_or("the bound".to_owned(), |ms| format!("{ms} ms")),
            format!("{:.0}", cell.over_percent()),
            number(cell.mean()),
            cell.late.to_string(),
        ]);
        found.push(cell);
    }
    let falls = |of: fn(&Cell) -> f64| found.windows(2).all(|pair| of(&pair[1]) < of(&pair[0]));
    let words: Vec<String> = found
        .iter()
        .map(|cell| format!("{:.0} %: {} ms", cell.over_percent(), number(cell.mean())))
        .collect();
    findings
        .claim(
            Claim::holds(
                format!(
                    "{:.1} MB/s under slack: the fewer blocks have a bound above their plan, the \
                     sooner best effort is answered",
                    load_of(LOW)
                ),
                "each step sooner",
                words.join(", "),
                falls(Cell::over_percent) && falls(Cell::mean),
            )
            .of_ours(),
        )
        .table(format!("Best effort under slack by plan, {:.1} MB/s", load_of(LOW)), table);
}

fn draw(findings: &mut Findings, steps: &[u64], cells: &[[Cell; 7]]) {
    let chart = |title: String, of: &dyn Fn(&Cell) -> f64| {
        let x = Axis::linear("real-time load, MB/s");
        let mut chart = Chart::new(title, x, Axis::logarithmic("mean latency, ms"));
        for (at, column) in COLUMNS.iter().enumerate() {
            let points = steps.iter().zip(cells).map(|(&it, row)| (load_of(it), of(&row[at])));
            chart = chart.with(Series::new(column.name, Style::Line, points));
        }
        chart
    };
    findings.chart(chart("Best effort beside streams, all disks".into(), &|cell| cell.mean()));
    for (at, system) in BUSY.iter().enumerate() {
        findings
            .chart(chart(format!("Best effort beside streams, cello disk {system}"), &|cell| {
                Estimate::of(&cell.systems[at]).mean
            }));
    }
    let mut headings = vec![">load, MB/s".to_owned()];
    headings.extend(COLUMNS.iter().map(|column| format!(">{}, ms", column.name)));
    let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
    let mut table = Table::new(&headings);
    let mut late =
        Table::new(&headings.iter().map(|it| it.trim_end_matches(", ms")).collect::<Vec<_>>());
    for (&streams, cells) in steps.iter().zip(cells) {
        let load = format!("{:.1}", load_of(streams));
        let mut row = vec![load.clone()];
        row.extend(cells.iter().map(|cell| number(cell.mean())));
        table.row(row);
        let mut row = vec![load];
        row.extend(
            cells.iter().map(|cell| {
                format!("{} of {}; {:.0} %", cell.late, cell.blocks, cell.over_percent())
            }),
        );
        late.row(row);
    }
    findings
        .table("Mean latency of best effort", table)
        .table("Blocks that were late; blocks whose bound is above what they are planned at", late);
}

/// The load of table 7.1, and ours.
fn table_7_1(run: &Run<'_>, findings: &mut Findings) {
    let mut table = Table::new(&["cello's disk", ">printed", ">ours (mean of seeds)"]);
    for (disk, printed) in (0..).zip(WINDOW_LOADS) {
        let counts: Vec<f64> = (1..=run.choose(8, 4))
            .map(|seed| Cello::new(seed, Bytes::GIB).disk(disk, WINDOW).count() as f64)
            .collect();
        let ours = number(Estimate::of(&counts).mean);
        table.row(vec![disk.to_string(), printed.requests.to_string(), ours]);
    }
    findings
        .claim(Claim::not_reproducible(
            "table 7.1: requests of each disk in these 1,300 s",
            "53,752 in all",
            "the trace is not public; our load is generated to have these counts, so that they \
             show nothing",
        ))
        .table("Table 7.1: requests in 1,300 s; ours are generated to have them", table);
}
