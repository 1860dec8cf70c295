//! What the elevators behind the slides do, each rule by itself, as a program sees it.

use crate::closed_loop::{Asks, Program, Served, serve};
use crate::{Claim, Experiment, Findings, Paper, Run};
use report::{Table, number};
use sched::{Class, Flow, Options, PolicyKind, Schedule, Task};
use units::{Direction, Duration, Instant};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "abiss-slides-rules",
    paper: Paper::Abiss,
    title: "The rules of the elevators, one by one",
    claim: "The slides compare the ABISS elevator with those of the 2.6 kernel, whose defaults \
            its documentation gives: batches, expiry times, pauses, slices, the longest merged \
            request.",
    setup: "A few programs for each rule, on the policies of the production scheduler, on a disk \
            that takes 0.1 ms a sector wherever it lies. What a program or its neighbour sees of \
            the rule is held against the kernel's documentation, or ABISS's \
            sizes. The values were put into the schedulers: that they act as documented is \
            judged.",
    real_time: false,
    run,
};

const PUT_IN: &str = "the default was put into the scheduler; that it acts so is judged";
/// Farther away than any elevator goes back.
const FAR: u64 = 1 << 32;
/// Between the places of one program.
const STEP: u64 = 100;

const fn best_effort(synchronous: bool, flow: u64) -> Class {
    Class::BestEffort { synchronous, flow: Flow(flow), ordered: false }
}

/// A program of its own flow that goes upward from `base`, a millisecond for each request.
fn upward(flow: u64, synchronous: bool, direction: Direction, asks: Asks, base: u64) -> Program {
    let class = best_effort(synchronous, flow);
    Program { class, direction, sectors: 10, asks, place: |number| number * STEP, base }
}

/// As above, and always at one place.
fn standing(flow: u64, synchronous: bool, direction: Direction, asks: Asks, base: u64) -> Program {
    Program { place: |_| 0, ..upward(flow, synchronous, direction, asks, base) }
}

fn schedule(policy: PolicyKind, depth: u32) -> Schedule {
    Schedule::new(policy, Options { depth, ..Options::default() })
}

fn plays(policy: PolicyKind, programs: &[Program], seconds: u64) -> Vec<Served> {
    serve(schedule(policy, 1), programs, Duration::from_secs(seconds))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Requests of one program after another, without the first and the last such run: how many,
/// and for how many milliseconds.
fn runs(served: &[Served], program: usize) -> Vec<(f64, f64)> {
    let runs: Vec<_> = served.chunk_by(|a, b| a.program == b.program).collect();
    let inner = runs.get(1..runs.len().saturating_sub(1)).unwrap_or_default();
    let of_it = inner.iter().filter(|run| run[0].program == program);
    of_it
        .map(|run| {
            let span = run[run.len() - 1].done - run[0].begun;
            (run.len() as f64, span.as_millis_f64())
        })
        .collect()
}

fn requests_in_a_run(served: &[Served], program: usize) -> f64 {
    median(runs(served, program).into_iter().map(|run| run.0).collect())
}

fn span_of_a_run(served: &[Served], program: usize) -> f64 {
    median(runs(served, program).into_iter().map(|run| run.1).collect())
}

/// From call to answer, in ms.
fn responses(served: &[Served], program: usize) -> Vec<f64> {
    let of_it = served.iter().filter(|served| served.program == program);
    of_it.map(|served| served.response().as_millis_f64()).collect()
}

/// The largest of the values from `from` on, a fiftieth apart, up to four times as much, for which
/// `holds`, before it first does not.
fn largest(from: f64, holds: impl Fn(f64) -> bool) -> f64 {
    let values = (0..70).map(|at| from * 1.02_f64.powi(at));
    values.take_while(|&value| holds(value)).last().unwrap_or(f64::NAN)
}

/// How long one far behind the others waits in ms: the median, and the least.
fn behind(policy: PolicyKind, direction: Direction, synchronous: bool, flow: u64) -> [f64; 2] {
    let period = Duration::from_millis(7_411);
    let programs = [
        upward(1, synchronous, direction, Asks::Greedy(4), FAR),
        standing(flow, synchronous, direction, Asks::Every(period, period), 0),
    ];
    let waits = responses(&plays(policy, &programs, 600), 1);
    [median(waits.clone()), waits.into_iter().fold(f64::NAN, f64::min)]
}

/// The longest pause in ms after which a near reader is answered at once, beside a far one.
fn pause(policy: PolicyKind) -> f64 {
    let is_waited_for = |ms: f64| {
        let think = Duration::from_micros((ms * 1_000.0) as u64);
        let programs = [
            upward(1, true, Direction::Read, Asks::After(think), 0),
            upward(2, true, Direction::Read, Asks::Greedy(4), FAR),
        ];
        median(responses(&plays(policy, &programs, 5), 0)) < 1.1
    };
    largest(3.0, is_waited_for)
}

/// As far as an elevator goes back from a request in service, in sectors: another waits four
/// times as far ahead.
fn back(policy: PolicyKind, from: f64) -> f64 {
    let goes_back = |sectors: f64| {
        let sectors = sectors as u64;
        let asynchronous = |at: u64, base: u64| {
            let asks = Asks::Once(Duration::from_micros(at));
            standing(1, false, Direction::Read, asks, base)
        };
        let programs = [
            asynchronous(0, FAR),
            asynchronous(500, FAR + 4 * sectors),
            asynchronous(500, FAR - sectors),
        ];
        plays(policy, &programs, 1).get(1).is_some_and(|served| served.program == 2)
    };
    largest(from, goes_back)
}

/// As far ahead of a reader who will come back, in sectors, as another is served all the same.
fn near() -> f64 {
    let is_served = |sectors: f64| {
        let think = Asks::After(Duration::from_millis(3));
        let programs = [
            standing(1, true, Direction::Read, think, FAR),
            standing(2, true, Direction::Read, Asks::Greedy(4), FAR + 10 + sectors as u64),
        ];
        median(responses(&plays(policies::ANTICIPATORY, &programs, 5), 0)) > 1.1
    };
    largest(4_000.0, is_served)
}

/// What is claimed, what is documented, what we found, the margin, the unit.
type Row = (&'static str, f64, f64, f64, &'static str);

fn deadline() -> Vec<Row> {
    let greedy = Asks::Greedy(64);
    let both = [
        upward(1, true, Direction::Read, greedy, 0),
        upward(2, false, Direction::Write, greedy, FAR),
    ];
    let served = plays(policies::DEADLINE, &both, 20);
    let [reads, writes] = [0, 1].map(|program| requests_in_a_run(&served, program));
    let [read, _] = behind(policies::DEADLINE, Direction::Read, true, 2);
    let [write, _] = behind(policies::DEADLINE, Direction::Write, false, 2);
    vec![
        ("deadline: writes in a batch", 16.0, writes, 0.1, ""),
        ("deadline: batches of reads before one of writes", 2.0, reads / writes, 0.1, ""),
        ("deadline: a read far behind waits", 500.0, read, 0.05, "ms"),
        ("deadline: a write far behind waits", 5_000.0, write, 0.05, "ms"),
    ]
}

fn anticipatory() -> Vec<Row> {
    let greedy = Asks::Greedy(64);
    let both = [
        upward(1, true, Direction::Read, greedy, 0),
        upward(2, false, Direction::Write, greedy, FAR),
    ];
    let served = plays(policies::ANTICIPATORY, &both, 60);
    let [reads, writes] = [0, 1].map(|program| span_of_a_run(&served, program));
    let [read, _] = behind(policies::ANTICIPATORY, Direction::Read, true, 2);
    let [_, write] = behind(policies::ANTICIPATORY, Direction::Write, false, 2);
    let back = back(policies::ANTICIPATORY, 500_000.0);
    vec![
        ("anticipatory: reads go for", 500.0, reads, 0.05, "ms"),
        ("anticipatory: writes go for", 125.0, writes, 0.05, "ms"),
        ("anticipatory: a read far behind waits", 125.0, read, 0.05, "ms"),
        ("anticipatory: a write far behind waits at least", 250.0, write, 0.05, "ms"),
        ("anticipatory: a reader is waited for", 6.0, pause(policies::ANTICIPATORY), 0.1, "ms"),
        ("anticipatory: not where another is so near", 8_192.0, near(), 0.05, "sectors"),
        ("anticipatory: goes back by up to", 1_048_576.0, back, 0.05, "sectors"),
    ]
}

fn cfq() -> Vec<Row> {
    let greedy = Asks::Greedy(64);
    let reader = |flow: u64| upward(flow, true, Direction::Read, greedy, flow * FAR);
    let writer =
        |sectors| Program { sectors, ..upward(9, false, Direction::Write, greedy, 9 * FAR) };
    let readers = plays(policies::CFQ, &[reader(1), reader(2)], 20);
    let slow = plays(policies::CFQ, &[reader(1), writer(40)], 20);
    let quick = plays(policies::CFQ, &[reader(1), writer(10)], 20);
    let deep = serve(schedule(policies::CFQ, 32), &[reader(1)], Duration::from_secs(2));
    let held_at = |at: Instant| deep.iter().filter(|it| it.given <= at && it.done > at).count();
    let held = deep.iter().map(|one| held_at(one.given)).max().unwrap_or(0);
    let [synchronous, _] = behind(policies::CFQ, Direction::Read, true, 1);
    let [asynchronous, _] = behind(policies::CFQ, Direction::Write, false, 1);
    let back = back(policies::CFQ, 16_000.0);
    vec![
        ("cfq: a reader's slice", 100.0, span_of_a_run(&readers, 0), 0.05, "ms"),
        ("cfq: a slice of writes of 4 ms", 40.0, span_of_a_run(&slow, 1), 0.05, "ms"),
        ("cfq: writes of 1 ms in a slice", 16.0, requests_in_a_run(&quick, 1), 0.1, ""),
        ("cfq: a reader is waited for", 8.0, pause(policies::CFQ), 0.1, "ms"),
        ("cfq: commands of a reader in the drive", 4.0, held as f64, 0.1, ""),
        ("cfq: a reader's read far behind waits", 125.0, synchronous, 0.05, "ms"),
        ("cfq: a write far behind waits", 250.0, asynchronous, 0.05, "ms"),
        ("cfq: goes back by up to", 32_768.0, back, 0.05, "sectors"),
    ]
}

/// KiB of one program that go as one request beside another's.
fn noop() -> Row {
    // More than the disk can do, so that much waits.
    let each = Asks::Every(Duration::from_millis(1), Duration::ZERO);
    let runs_on = |flow: u64| Program {
        sectors: 8,
        place: |number| number * 8,
        ..upward(flow, true, Direction::Read, each, flow * FAR)
    };
    let served = plays(policies::NOOP, &[runs_on(1), runs_on(2)], 20);
    let merged = requests_in_a_run(&served, 0) * 4.0;
    ("noop: so much goes as one request", 512.0, merged, 0.05, "KiB")
}

/// A stream's request of so many sectors a second is not served at once beside best effort.
fn is_held(sectors: u64) -> bool {
    let options = Options { admission: false, ..Options::default() };
    let mut schedule = Schedule::new(policies::ABISS, options);
    let period = Duration::from_secs(1);
    let task = Task::new(period, period, Duration::from_millis(50));
    let stream = schedule.join(Instant::EPOCH, task).expect("nobody is refused");
    let programs = [
        Program {
            class: Class::RealTime(stream),
            sectors,
            ..upward(1, true, Direction::Read, Asks::Every(period, Duration::ZERO), FAR)
        },
        upward(2, true, Direction::Read, Asks::Greedy(4), 0),
    ];
    let served = serve(schedule, &programs, Duration::from_secs(10));
    median(responses(&served, 0)) > 250.0
}

fn abiss() -> Vec<Row> {
    let at_once = Asks::Greedy(1_000);
    let falling = Program {
        place: |number| 100_000 - number % 1_000 * STEP,
        ..upward(1, false, Direction::Read, at_once, 0)
    };
    let first = plays(policies::ABISS, &[falling], 1).first().map_or(0, |served| served.number);
    let held = largest(40.0, |sectors| is_held(sectors as u64)) / 2.0;
    vec![
        (
            "abiss: of 1,000 asynchronous requests it sweeps over so many, 200 places less 84 that \
             are others'",
            116.0,
            first as f64 + 1.0,
            0.05,
            "",
        ),
        ("abiss: a stream's request waits for others up to", 40.0, held, 0.05, "KiB"),
    ]
}

fn run(_: &Run<'_>) -> Findings {
    let mut findings = Findings::default();
    let mut table = Table::new(&["rule", ">documented", ">found", "unit"]);
    let rows = [deadline(), anticipatory(), cfq(), vec![noop()], abiss()].concat();
    for (text, documented, found, margin, unit) in rows {
        table.row(vec![text.into(), number(documented), number(found), unit.into()]);
        let claim = Claim::near(text, documented, found, margin, unit);
        findings.claim(claim.calibrated(PUT_IN).of_ours());
    }
    findings.table("Rules as they are seen", table);
    findings
}
