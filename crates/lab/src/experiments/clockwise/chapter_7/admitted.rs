//! The thesis's summary: how much real-time load three Atlas-IIs take without a miss.

use super::super::raw::MB;
use crate::{At, Claim, Experiment, Findings, Paper, Run};
use disk::{Model, Profile};
use node::sweep_costs;
use report::{Axis, Chart, Series, Style, Table, number};
use sched::{Options, PolicyKind, SweepPlan};
use sim::machine::{
    Arrivals, DiskSetup, LoadPlan, Machine, Pace, Places, Results, Setup, StreamPlan,
};
use std::ops::Range;
use units::{Bytes, Direction, Duration, Lba, Rate};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "clockwise-admitted-load",
    paper: Paper::Clockwise,
    title: "How much real-time load three disks take",
    claim: "Three Atlas-IIs that deliver 25.3 MB/s take up to 21 MB/s of real-time load in \
            blocks of 1 MB beside 4,000 best-effort requests a minute, and no deadline is missed.",
    setup: "Streams in blocks of 1 MB at random places of the outer zones, as many as are let in, \
            of 817, 245 and 172 KB/s, the larger first; 4,000 reads of 8 KB a minute anywhere. Let \
            in by the thesis's 134 ms a block, by the profile's bound, and in sweeps.",
    real_time: false,
    run,
};

const DISKS: u32 = 3;
const BLOCK: Bytes = Bytes::MIB;
/// Of the thesis's videos and its sound, in KB/s.
const RATES: [u64; 3] = [817, 245, 172];
/// Table 6.4: 1 MB in zone 0.
const PRINTED_COST: Duration = Duration::from_millis(134);

/// What a block is planned to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Planned {
    /// As the thesis plans it.
    Printed,
    /// What none exceeds.
    Bound,
}

struct Found {
    name: String,
    planned: Planned,
    streams: usize,
    /// MB/s.
    load: f64,
    memory: Bytes,
    results: Results,
}

fn model() -> Model {
    Model::named("quantum-atlas-ii").expect("it comes with us")
}

fn outer() -> Range<Lba> {
    Lba::new(0)..Lba::new(1_772 * 10 * 179)
}

fn machine(policy: PolicyKind, options: Options) -> Machine {
    let mut machine =
        Machine::new(Setup::alike(&DiskSetup::new(model(), policy, options), DISKS, 1));
    let end = Lba::containing(machine.profile(0).capacity());
    for disk in 0..DISKS {
        machine.load(LoadPlan {
            disk,
            arrivals: Arrivals::Poisson(Duration::from_secs(60) * u64::from(DISKS) / 4_000),
            size: Bytes::kib(8),
            direction: Direction::Read,
            places: Places::Random(Lba::new(0)..end),
            synchronous: true,
        });
    }
    machine
}

fn stream(disks: Vec<u32>, rate: Rate, cost: Option<Duration>, number: u64) -> StreamPlan {
    StreamPlan {
        disks,
        rate,
        block: BLOCK,
        deadline: None,
        cost,
        direction: Direction::Read,
        places: Places::Random(outer()),
        pace: Pace::Steady,
        phase: Duration::from_millis(137 * number),
        patience: Duration::ZERO,
    }
}

/// Streams let in by deadlines, on all disks in turn or each on one.
fn by_deadlines(name: &str, cost: Option<Duration>, rotate: bool, span: Duration) -> Found {
    let options = Options { reserve: Duration::from_millis(40), ..Options::default() };
    let mut machine = machine(PolicyKind::SLACK, options);
    let (mut streams, mut kib, mut memory) = (0, 0, Bytes::ZERO);
    for rate in RATES {
        let mut refused = 0;
        while refused < DISKS {
            let next = (streams as u32 + refused) % DISKS;
            let disks = if rotate { (0..DISKS).collect() } else { vec![next] };
            // A block is in use while those asked for of each disk come in.
            let blocks = disks.len() as u64 + 1;
            let plan = stream(disks, Rate::per_second(rate * 1024), cost, streams as u64);
            if machine.join(plan).is_ok() {
                (streams, kib, memory) = (streams + 1, kib + rate, memory + BLOCK * blocks);
                refused = 0;
            } else {
                refused = if rotate { DISKS } else { refused + 1 };
            }
        }
    }
    machine.run_for(span);
    let (name, load) = (name.to_owned(), kib as f64 / 1024.0);
    let planned = if cost.is_some() { Planned::Printed } else { Planned::Bound };
    Found { name, planned, streams, load, memory, results: machine.results() }
}

/// More than three disks can deliver, let in by nobody: the canary.
fn too_many(span: Duration) -> Found {
    let options = Options { admission: false, ..Options::default() };
    let mut machine = machine(PolicyKind::SLACK, options);
    let streams = 36;
    for number in 0..streams {
        let rate = Rate::per_second(RATES[0] * 1024);
        let plan = stream((0..DISKS).collect(), rate, None, number);
        machine.join(plan).expect("admission is off");
    }
    machine.run_for(span);
    Found {
        name: "nothing: more than the disks deliver".to_owned(),
        planned: Planned::Bound,
        streams: streams as usize,
        load: (streams * RATES[0]) as f64 / 1024.0,
        memory: BLOCK * (streams * u64::from(DISKS + 1)),
        results: machine.results(),
    }
}

/// The most that cycles of sweeps take, in the least memory for it: each stream on one
/// disk, `plan.blocks` of its blocks in each cycle.
fn by_sweeps(kib: u64, span: Duration) -> Found {
    let profile = Profile::of(&model());
    let costs = sweep_costs(&profile, outer(), BLOCK, Direction::Read).expect("it has an arm");
    let end = Lba::containing(profile.capacity());
    let gap = profile.worst(Lba::new(0)..end, Bytes::kib(8), Direction::Read);
    let rate = Rate::per_second(kib * 1024);
    let plans: Vec<SweepPlan> = costs.plans(rate, BLOCK, gap, 16).collect();
    let most = plans.iter().map(|plan| plan.streams).max().expect("a plan");
    let plan = plans.iter().find(|plan| plan.streams == most).expect("that one");
    assert!(costs.check(plan.cycle, gap, most * plan.blocks + 1).is_err(), "one more is refused");
    let work = costs.sweep(most * plan.blocks);
    let part = Duration::from_nanos(work.as_nanos().div_ceil(most * plan.blocks));
    // The sweeps are what lets them in; the gap takes the command that runs into a cycle.
    let options = Options { admission: false, reserve: Duration::ZERO, ..Options::default() };
    let mut machine = machine(policies::TIME_CYCLE, options);
    for disk in 0..DISKS {
        for _ in 0..most * plan.blocks {
            let each = Rate::of(BLOCK, plan.cycle);
            machine.join(stream(vec![disk], each, Some(part), 0)).expect("admission is off");
        }
    }
    machine.run_for(span);
    let streams = (most * u64::from(DISKS)) as usize;
    Found {
        planned: Planned::Bound,
        name: format!("sweeps of {} a cycle of {}", most * plan.blocks, plan.cycle),
        streams,
        load: streams as f64 * kib as f64 / 1024.0,
        memory: plan.memory * u64::from(DISKS),
        results: machine.results(),
    }
}

/// Late requests where blocks are planned as printed, thorough and quick.
const LATE: [(&str, f64, f64); 2] = [
    ("134 ms a block (table 6.4), all disks in turn", 103.0, 1.0),
    ("134 ms a block (table 6.4), each on one disk", 68.0, 2.0),
];

fn run(run: &Run<'_>) -> Findings {
    let span = Duration::from_secs(run.choose(10_000, 300));
    let mut all = vec![
        by_deadlines(
            "134 ms a block (table 6.4), all disks in turn",
            Some(PRINTED_COST),
            true,
            span,
        ),
        by_deadlines(
            "134 ms a block (table 6.4), each on one disk",
            Some(PRINTED_COST),
            false,
            span,
        ),
        by_deadlines("the profile's bound, all disks in turn", None, true, span),
        by_deadlines("the profile's bound, each on one disk", None, false, span),
    ];
    run.progress(1, 2);
    all.extend(RATES.map(|kib| by_sweeps(kib, span)));
    let canary = too_many(Duration::from_secs(60));
    let mut table = Table::new(&[
        "let in by",
        ">streams",
        ">MB/s",
        ">memory, MB",
        ">requests",
        ">late",
        ">overruns",
    ]);
    let mut findings = Findings::default();
    let heads = 179.0 * 512.0 / MB / (super::super::raw::TURN / 1e3) * f64::from(DISKS);
    for found in all.iter().chain([&canary]) {
        let memory = (found.memory / Bytes::MIB).to_string();
        let counts = [found.results.real_time.count(), found.results.late, found.results.overruns];
        let mut cells =
            vec![found.name.clone(), found.streams.to_string(), number(found.load), memory];
        cells.extend(counts.map(|count| count.to_string()));
        table.row(cells);
    }
    for found in &all {
        let (requests, late) = (found.results.real_time.count(), found.results.late);
        let text = format!("{}: late of {requests} requests", found.name);
        // Where bounds are kept, nothing explains a late request.
        let claim = Claim::at_most(text, 0.0, late as f64, "");
        findings.claim(match found.planned {
            Planned::Printed => claim.explained(
                At::in_list(&LATE, &found.name).spread(0.0),
                "134 ms are a percentile and a seek, no bound: a block may take longer, and where \
                 streams are let in up to the last millisecond nothing is left to pay for it",
            ),
            Planned::Bound => claim.of_ours(),
        });
    }
    findings.claim(
        Claim::holds(
            "the check sees lateness: with more streams than the disks can serve",
            "late",
            format!("{} of {}", canary.results.late, canary.results.real_time.count()),
            canary.results.late * 10 > canary.results.real_time.count(),
        )
        .of_ours(),
    );
    let most = |from: &[Found]| from.iter().map(|it| it.load).fold(0.0, f64::max);
    findings
        .claim(Claim::at_least("let in by the thesis's service times", 21.0, most(&all[..2]), "MB/s").or_better())
        .claim(
            Claim::at_least("let in by bounds that no request exceeds, at its deadline", 21.0, most(&all[2..4]), "MB/s")
                .of_ours()
                .explained(
                    At::both(20.8).spread(0.1),
                    "the thesis's 134 ms are the 95th percentile of a read and the longest seek; \
                     the profile's bound covers every read, and one more turn for those that begin \
                     within a track (thesis, section 7.2.2)",
                ),
        )
        .claim(Claim::at_least("let in by such bounds in sweeps", 21.0, most(&all[4..]), "MB/s").or_better().of_ours())
        .table(format!("Three disks, {} of simulated time each", span), table)
        .chart(
            Chart::new("Real-time load let in", Axis::linear("way of letting in").from(-0.6).to(all.len() as f64 - 0.4).named((0..all.len()).map(|at| (at as f64, (at + 1).to_string()))), Axis::linear("MB/s"))
                .with(Series::new("ours", Style::Bars, all.iter().enumerate().map(|(at, it)| (at as f64, it.load))))
                .reference("the thesis", 21.0)
                .reference("what three disks deliver (thesis)", 25.3)
                .reference("under the heads", heads),
        )
        .note("The bars are in the order of the table. Memory: of each stream the block in use and \
               those that may be on their way, one for each disk; in sweeps, the blocks of two cycles.");
    findings
}
