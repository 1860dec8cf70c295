//! Figures 5 to 7: a stream that keeps its rate, and its response time, beside streams
//! that have no contract.

use crate::{Claim, Experiment, Findings, Paper, Run};
use disk::Model;
use report::{Axis, Chart, Series, Style, Table};
use sched::{Options, PolicyKind};
use sim::machine::{
    Arrivals, DiskSetup, LoadIndex, LoadPlan, Machine, Pace, Places, PlayPlan, Setup, StreamIndex,
    StreamPlan, Target,
};
use sim::workload::Demand;
use std::ops::Range;
use units::{Access, Bytes, Direction, Duration, Instant, Lba, Rate};

const SETUP: &str = "The model of the paper's SCSI disk (ST318437LW) with its cache; each stream \
                     reads a part of 700 MB of its own, one block after the other. The stream \
                     under contract reads 1 MB blocks and has a period of time for each instead \
                     of a cycle of 4 s for all; the others read 128 KB at a time, as Linux reads \
                     ahead.";

pub(super) const STEADY: Experiment = Experiment {
    name: "qos-fig-5",
    paper: Paper::Qos,
    title: "A stream of 8 MB/s beside streams of 5 MB/s without a contract",
    claim: "Best-effort streams of 5 MB/s join after 5, 10, 15, 20 and 25 s. The disk cannot \
            serve them all, but the stream with high priority gets its 8 MB/s.",
    setup: SETUP,
    real_time: false,
    run: steady,
};

pub(super) const GREEDY: Experiment = Experiment {
    name: "qos-fig-6",
    paper: Paper::Qos,
    title: "A stream of 8 MB/s beside greedy readers",
    claim: "Greedy readers join after 5, 10, 15, 20 and 25 s. The first reads fast; as they \
            become more, seeks reduce what they get together, but not the 8 MB/s.",
    setup: SETUP,
    real_time: false,
    run: greedy,
};

pub(super) const RESPONSE: Experiment = Experiment {
    name: "qos-fig-7",
    paper: Paper::Qos,
    title: "Response times with high and with low priority",
    claim: "One stream of 4 MB/s with high priority, several of 4 MB/s with low priority, all \
            in cycles of 4 s: the response time of the first is substantially better.",
    setup: "As for figure 5, with blocks of 1 MB for all; those with low priority ask for the \
            16 MB of a cycle at its begin. Strict priority is the policy edf here: requests \
            under contract go first. The policy slack lets others go before as long as \
            nothing is late: its response times are as long as the contract allows.",
    real_time: false,
    run: response,
};

const JOINS: u64 = 5;
const APART: Duration = Duration::from_secs(5);

fn part(stream: u64) -> Range<Lba> {
    let sectors = 700_000_000 / 512;
    Lba::new(stream * 2 * sectors)..Lba::new((stream * 2 + 1) * sectors)
}

fn machine(policy: PolicyKind, reserve: Duration) -> Machine {
    let model = Model::named("seagate-st318437lw").expect("a built-in model");
    let options = Options { reserve, ..Options::default() };
    let disk = DiskSetup { cache: true, ..DiskSetup::new(model, policy, options) };
    Machine::new(Setup { disks: vec![disk], seed: 1 })
}

fn stream(rate: Rate) -> StreamPlan {
    StreamPlan {
        disks: vec![0],
        rate,
        block: Bytes::MIB,
        deadline: None,
        cost: None,
        direction: Direction::Read,
        places: Places::Sequential(part(0)),
        pace: Pace::Steady,
        phase: Duration::ZERO,
        patience: Duration::ZERO,
    }
}

/// `batch` reads of `len` at once, every so often that `rate` comes of it, for `length`.
fn paced(rate: Rate, len: Bytes, batch: u64, stream: u64, length: Duration) -> PlayPlan {
    let period = rate.time_for(len * batch);
    let batches = length.as_nanos() / period.as_nanos();
    let sectors = len.get() / 512;
    let demands = (0..batches * batch).map(move |at| {
        let lba = Lba::new(at * sectors);
        let access = Access { lba, len, direction: Direction::Read };
        Demand { at: period * (at / batch), disk: 0, access, synchronous: true }
    });
    let demands: Vec<Demand> = demands.collect();
    PlayPlan {
        source: Box::new(demands.into_iter()),
        targets: vec![Target::new(0, part(stream))],
        speed_percent: 100,
    }
}

/// MB/s second by second: of the first stream and of each load.
struct Seen {
    first: Vec<f64>,
    others: Vec<Vec<f64>>,
    late: u64,
}

/// Who is looked at first: under contract, or not.
enum First {
    Stream(StreamIndex),
    Load(LoadIndex),
}

/// Lets loads join one by one and looks every second.
fn watch(
    mut machine: Machine,
    first: &First,
    length: Duration,
    mut join: impl FnMut(&mut Machine, u64) -> LoadIndex,
) -> Seen {
    let mut loads: Vec<LoadIndex> = Vec::new();
    let mut seen = Seen { first: Vec::new(), others: vec![Vec::new(); JOINS as usize], late: 0 };
    let seconds = length.as_nanos() / 1_000_000_000;
    for second in 0..seconds {
        let joined = loads.len() as u64;
        if joined < JOINS && Duration::from_secs(second) >= APART * (joined + 1) {
            loads.push(join(&mut machine, joined + 1));
        }
        machine.forget();
        machine.run_until(Instant::EPOCH + Duration::from_secs(second + 1));
        let rate = |bytes: Bytes| bytes.get() as f64 / 1e6;
        let bytes = match first {
            First::Stream(stream) => machine.stream_results(*stream).latencies.bytes,
            First::Load(load) => machine.load_results(*load).latencies.bytes,
        };
        seen.first.push(rate(bytes));
        for (at, series) in seen.others.iter_mut().enumerate() {
            let bytes = loads.get(at).map(|load| machine.load_results(*load).latencies.bytes);
            series.push(bytes.map_or(0.0, rate));
        }
        seen.late += machine.results().late;
    }
    seen
}

impl Seen {
    /// The lowest mean of four seconds in a row, the paper's cycle, once it runs.
    fn lowest(&self) -> f64 {
        let means = self.first[1..].windows(4).map(|it| it.iter().sum::<f64>() / 4.0);
        means.fold(f64::MAX, f64::min)
    }

    /// What the loads got together in the last seconds before the `joins`-th joined.
    fn together(&self, joins: u64) -> f64 {
        let end = ((joins + 1) * APART.as_nanos() / 1_000_000_000) as usize;
        let of = |series: &Vec<f64>| series[end - 3..end].iter().sum::<f64>() / 3.0;
        self.others.iter().map(of).sum()
    }

    fn chart(&self, title: &str) -> Chart {
        let chart = Chart::new(title, Axis::linear("time, s"), Axis::linear("MB/s"));
        let points = |series: &[f64]| -> Vec<(f64, f64)> {
            series.iter().enumerate().map(|(at, &rate)| (at as f64, rate)).collect()
        };
        let chart = chart.with(Series::new("under contract", Style::Line, points(&self.first)));
        let chart = chart.reference("8 MB/s", 8.0);
        self.others.iter().enumerate().fold(chart, |chart, (at, series)| {
            chart.with(Series::new(format!("best effort {}", at + 1), Style::Line, points(series)))
        })
    }
}

const EIGHT: Rate = Rate::per_second(8_000_000);
/// The last of five has joined after 25 s.
const LENGTH: Duration = Duration::from_secs(35);
/// Bound on a best-effort command of 128 KB, with room.
const RESERVE: Duration = Duration::from_millis(40);
const READ_AHEAD: Bytes = Bytes::kib(128);
/// A window of four seconds holds one block of 1 MB more or less.
const BLOCK_OF_WINDOW: f64 = 1.05 / 4.0;

/// Under contract, with `join` adding the others.
fn under_contract(join: impl FnMut(&mut Machine, u64) -> LoadIndex) -> Seen {
    let mut machine = machine(PolicyKind::SLACK, RESERVE);
    let first = machine.join(stream(EIGHT)).expect("the disk is fast enough");
    watch(machine, &First::Stream(first), LENGTH, join)
}

/// The same without a contract, first come, first served.
fn without(join: impl FnMut(&mut Machine, u64) -> LoadIndex) -> Seen {
    let mut machine = machine(policies::FCFS, RESERVE);
    let plan = paced(EIGHT, Bytes::MIB, 1, 0, LENGTH);
    let first = machine.play(plan).expect("no contract");
    watch(machine, &First::Load(first), LENGTH, join)
}

fn kept(with: &Seen) -> [Claim; 2] {
    [
        Claim::at_least(
            "the stream under contract: its lowest four seconds",
            8.0 - BLOCK_OF_WINDOW,
            with.lowest(),
            "MB/s",
        ),
        Claim::at_most("late requests of it", 0.0, with.late as f64, "").of_ours(),
    ]
}

fn steady(_: &Run<'_>) -> Findings {
    let mut findings = Findings::default();
    let join = |machine: &mut Machine, at: u64| {
        let five = Rate::per_second(5_000_000);
        machine.play(paced(five, READ_AHEAD, 1, at, LENGTH)).expect("no contract")
    };
    let (with, without) = (under_contract(join), without(join));
    findings.claims.extend(kept(&with));
    let together = with.together(JOINS);
    findings
        .claim(Claim::holds(
            "the disk cannot serve all that is asked for",
            "less than 25 MB/s of best effort",
            format!("{together:.1} MB/s"),
            together < 24.5,
        ))
        .claim(Claim::holds(
            "without a contract the first stream does not get its rate",
            "less than 8 MB/s",
            format!("{:.2} MB/s in its lowest four seconds", without.lowest()),
            without.lowest() < 7.5,
        ))
        .chart(with.chart("With a contract for one"))
        .chart(without.chart("Without one: first come, first served"));
    findings
}

fn greedy(_: &Run<'_>) -> Findings {
    let mut findings = Findings::default();
    let join = |machine: &mut Machine, at: u64| {
        machine.load(LoadPlan {
            disk: 0,
            arrivals: Arrivals::Greedy(2),
            size: READ_AHEAD,
            direction: Direction::Read,
            places: Places::Sequential(part(at)),
            synchronous: true,
        })
    };
    let with = under_contract(join);
    findings.claims.extend(kept(&with));
    let rates: Vec<f64> = (1..=JOINS).map(|joins| with.together(joins)).collect();
    let shown: Vec<String> = rates.iter().map(|rate| format!("{rate:.1}")).collect();
    findings
        .claim(Claim::holds(
            "the first greedy reader reads faster than all five together",
            "seeks reduce the rate",
            format!("together {} MB/s as they join", shown.join(", ")),
            rates[0] > rates[JOINS as usize - 1],
        ))
        .chart(with.chart("With a contract for one"));
    findings
}

const FOUR: Rate = Rate::per_second(4_000_000);

/// Mean response times in ms of the stream and of `count` others, and late requests.
fn responses(policy: PolicyKind, count: u64, length: Duration) -> (f64, f64, u64) {
    let mut machine = machine(policy, Duration::from_millis(90));
    let first = machine.join(stream(FOUR)).expect("the disk is fast enough");
    let join = |at| machine.play(paced(FOUR, Bytes::MIB, 15, at, length)).expect("no contract");
    let loads: Vec<LoadIndex> = (1..=count).map(join).collect();
    machine.run_for(length);
    let stream = machine.stream_results(first);
    let mut others = sim::machine::Latencies::default();
    loads.iter().for_each(|load| others.merge(&machine.load_results(*load).latencies));
    (stream.latencies.mean().as_millis_f64(), others.mean().as_millis_f64(), stream.late)
}

fn response(run: &Run<'_>) -> Findings {
    let mut findings = Findings::default();
    let length = run.choose(Duration::from_secs(1_200), Duration::from_secs(120));
    let mut table = Table::new(&[
        ">with low priority",
        ">edf: high, ms",
        ">low, ms",
        ">slack: contract, ms",
        ">others, ms",
        ">late",
    ]);
    let (mut high, mut low, mut late) = (Vec::new(), Vec::new(), 0);
    for count in 1..=4 {
        run.progress(count as usize - 1, 4);
        let (first, others, _) = responses(PolicyKind::EDF, count, length);
        let (patient, served, late_here) = responses(PolicyKind::SLACK, count, length);
        let figures = [first, others, patient, served].map(report::number);
        let row = [count.to_string()].into_iter().chain(figures);
        table.row(row.chain([late_here.to_string()]).collect());
        high.push((count as f64, first));
        low.push((count as f64, others));
        late += late_here;
    }
    let ratios = high.iter().zip(&low).map(|(high, low)| low.1 / high.1);
    let least = ratios.fold(f64::MAX, f64::min);
    findings
        .claim(Claim::holds(
            "strict priority: responses are at least twice as fast, however many others there are",
            "substantially better",
            format!("{least:.1} times at the least"),
            least >= 2.0,
        ))
        .claim(
            Claim::at_most("slack: late requests under contract", 0.0, late as f64, "").of_ours(),
        )
        .table("Mean response times", table)
        .chart(
            Chart::new(
                "Mean response time, strict priority",
                Axis::linear("streams with low priority"),
                Axis::linear("ms"),
            )
            .with(Series::new("high priority", Style::Line, high))
            .with(Series::new("low priority", Style::Line, low)),
        );
    findings
}
