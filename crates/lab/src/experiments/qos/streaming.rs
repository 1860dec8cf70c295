//! Figures 5 to 7: a stream that keeps its rate, and its response time, beside streams
//! that have no contract.

use super::scene::{BEGIN, CYCLE, FILE, TIME_CYCLE, Under, film, late, schedulers, world};
use crate::experiments::whole::cyclic::{Cyclic, PIECE, Reads, Served};
use crate::experiments::whole::programs::{Greedy, Rwrt, Shared};
use crate::{Claim, Experiment, Findings, Paper, Run};
use node::{Contract, Mode, Policy, Priority};
use report::{Axis, Chart, Series, Style, Table, number};
use sim::{Metadata, World};
use units::{Bytes, Duration, Instant, Rate};

const SETUP: &str = "The whole production node on the model of the paper's SCSI disk (ST318437LW) \
                     with its cache, in simulated time; each stream reads a file of 700 MB of its \
                     own. Under ucsb, with cycles of 4 s, and under our slack the stream with high \
                     priority has a contract for its rate in periods of 4 s, and reads in each \
                     cycle what it uses in it, one read of 512 KiB after the other, as the program \
                     of figure 4 does. time-cycle counts a contract in each cycle for the two that \
                     a request may wait, and refuses 8 MB/s in periods of 8 s: there it is a \
                     stream in blocks of 16 MiB, and cycles last 1 s. All \
                     are admitted by the policy's own analysis. The others have no contract and \
                     read 128 KiB at a time, one ahead.";

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
    setup: "As for figure 5, but that all ask at the begin of the same cycles for the 16 MB of \
            one, at once, as the user-level scheduler of section III.B; so under time-cycle, too, \
            with contracts of 8 s for cycles of 4 s. Low priority is that of section III.A: below best effort, which is shown beside it. How \
            many are several is not printed: one to four. Substantially better is not printed \
            either: at least twice as fast here.",
    real_time: false,
    run: response,
};

const JOINS: u64 = 5;
const APART: Duration = Duration::from_secs(5);
const EIGHT: Rate = Rate::per_second(8_000_000);
const FIVE: Rate = Rate::per_second(5_000_000);
const FOUR: Rate = Rate::per_second(4_000_000);
/// The last of five has joined after 25 s.
const CYCLES: u64 = 9;
const SECONDS: u64 = 36;
/// Of a cycle's rate, in MB/s: what it uses ends within a piece.
const PIECE_OF_CYCLE: f64 = 1.05 / 4.0;

/// How the stream with high priority reads.
#[derive(Clone, Copy)]
enum First {
    /// In each cycle what it uses in it, one read after the other.
    Reads(Served),
    /// Out of a window that the node keeps filled.
    Stream,
}

/// The longest that a node has.
const BLOCK: Bytes = Bytes::mib(16);
/// Of programs at a constant rate.
const AT_A_TIME: Bytes = Bytes::kib(64);

/// MB/s: cycle by cycle of the first stream, second by second of each other one.
struct Watched {
    first: Vec<f64>,
    others: Vec<Vec<f64>>,
    /// Requests under contract that were late.
    late: u64,
    /// The contract was refused, or a read went wrong.
    error: Option<String>,
}

/// Adds a program with this number that begins at this time, and says what it sees.
type Join<'a> = &'a dyn Fn(&mut World<Metadata>, u64, Instant) -> Shared;

/// Lets others join one by one and looks every second. Without a contract the first one is
/// best effort as they are.
fn watch(policy: Policy, first: First, join: Join<'_>) -> Watched {
    let mut world = world(policy, JOINS + 1);
    let (seen, piece) = match first {
        First::Reads(served) => {
            let reads = Reads { rate: EIGHT, cycle: CYCLE, served, at_once: 1 };
            let program = Cyclic::new(&film(0), FILE, reads, BEGIN);
            let seen = program.seen();
            world.add(program);
            (seen, PIECE)
        }
        First::Stream => {
            let contract = Contract { rate: EIGHT, block: BLOCK, burst: Bytes::ZERO };
            let program = Rwrt::under(&film(0), Mode::Read, contract, FILE, BEGIN);
            let program = program.keeping(EIGHT).in_pieces(AT_A_TIME);
            let seen = program.seen();
            world.add(program);
            (seen, AT_A_TIME)
        }
    };
    let mut watched = Watched {
        first: Vec::new(),
        others: vec![Vec::new(); JOINS as usize],
        late: 0,
        error: None,
    };
    let others = (1..=JOINS).map(|number| join(&mut world, number, BEGIN + APART * number));
    let others: Vec<Shared> = others.collect();
    world.run_for(BEGIN - Instant::EPOCH);
    let mut before = vec![Bytes::ZERO; others.len()];
    for _ in 0..SECONDS {
        world.run_for(Duration::from_secs(1));
        for ((seen, before), series) in others.iter().zip(&mut before).zip(&mut watched.others) {
            let bytes = seen.borrow().bytes;
            series.push((bytes - *before).get() as f64 / 1e6);
            *before = bytes;
        }
    }
    watched.late = late(&world);
    watched.first = (0..CYCLES).map(|cycle| in_cycle(&seen, piece, cycle)).collect();
    let error = |seen: &Shared| seen.borrow().error.as_ref().map(ToString::to_string);
    watched.error = [seen].iter().chain(&others).find_map(error);
    watched
}

/// MB/s of what came in a cycle.
fn in_cycle(seen: &Shared, piece: Bytes, cycle: u64) -> f64 {
    let begin = BEGIN + CYCLE * cycle;
    let seen = seen.borrow();
    let ends = seen.waits.iter().map(|&(asked, wait)| asked + wait);
    let there = ends.filter(|&end| end > begin && end <= begin + CYCLE);
    (piece * there.count() as u64).get() as f64 / 1e6 / CYCLE.as_secs_f64()
}

impl Watched {
    /// The lowest rate of a cycle.
    fn lowest(&self) -> f64 {
        self.first.iter().copied().fold(f64::MAX, f64::min)
    }

    /// What the others got together in the four seconds before the next one joined.
    fn together(&self, joined: u64) -> f64 {
        let end = ((joined + 1) * APART.as_nanos() / 1_000_000_000) as usize;
        let of = |series: &Vec<f64>| series[end - 4..end].iter().sum::<f64>() / 4.0;
        self.others.iter().map(of).sum()
    }

    fn chart(&self, title: String) -> Chart {
        let chart = Chart::new(title, Axis::linear("time, s"), Axis::linear("MB/s").from(0.0));
        let ends = |(cycle, &rate): (usize, &f64)| {
            let from = (CYCLE * cycle as u64).as_secs_f64();
            [(from, rate), (from + CYCLE.as_secs_f64(), rate)]
        };
        let first: Vec<(f64, f64)> = self.first.iter().enumerate().flat_map(ends).collect();
        let chart = chart.with(Series::new("high priority, by cycle", Style::Line, first));
        let chart = chart.reference("8 MB/s", 8.0);
        self.others.iter().enumerate().fold(chart, |chart, (at, series)| {
            let points = series.iter().enumerate().map(|(at, &rate)| (at as f64 + 0.5, rate));
            chart.with(Series::new(format!("best effort {}", at + 1), Style::Line, points))
        })
    }
}

/// The paper's claim where it is the paper's scheduler, else ours.
fn of(under: &Under, claim: Claim) -> Claim {
    if under.is_papers { claim } else { claim.of_ours() }
}

fn kept(under: &Under, watched: &Watched) -> [Claim; 2] {
    let name = under.name;
    let text = format!("{name}: the stream with high priority, its lowest cycle");
    let lowest = Claim::at_least(text, 8.0 - PIECE_OF_CYCLE, watched.lowest(), "MB/s");
    let late = format!("{name}: requests under contract that are late, or fail");
    let ours = match &watched.error {
        Some(error) => error.clone(),
        None => watched.late.to_string(),
    };
    let sound = watched.late == 0 && watched.error.is_none();
    [of(under, lowest), Claim::holds(late, "none", ours, sound).of_ours()]
}

/// One run for each scheduler, and one without a contract.
fn figure(
    run: &Run<'_>,
    join: Join<'_>,
    judge: &dyn Fn(&Under, &Watched, &mut Findings),
) -> Findings {
    let mut findings = Findings::default();
    let schedulers = schedulers();
    let rates = (1..=JOINS).map(|joined| format!(">others, {joined} joined"));
    let names = ["policy".to_owned(), ">high priority, MB/s: lowest cycle".to_owned()];
    let names: Vec<String> = names.into_iter().chain(rates).collect();
    let mut table = Table::new(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let row = |name: &str, watched: &Watched| {
        let rates = (1..=JOINS).map(|joined| watched.together(joined));
        let figures = [watched.lowest()].into_iter().chain(rates).map(|rate| format!("{rate:.2}"));
        [name.to_owned()].into_iter().chain(figures).collect()
    };
    for (at, under) in schedulers.iter().enumerate() {
        run.progress(at, schedulers.len() + 1);
        let first = match under.name {
            TIME_CYCLE => First::Stream,
            _ => First::Reads(Served::UnderContract { period: under.period }),
        };
        let watched = watch(under.policy, first, join);
        findings.claims.extend(kept(under, &watched));
        judge(under, &watched, &mut findings);
        table.row(row(under.name, &watched));
        findings.chart(watched.chart(format!("With a contract for one, {}", under.name)));
    }
    let without =
        watch(policies::DEADLINE, First::Reads(Served::BestEffort(Priority::Normal)), join);
    table.row(row("deadline, no contract", &without));
    findings
        .claim(
            Claim::holds(
                "under deadline alone, without a contract, the stream does not get its rate",
                "less than 8 MB/s",
                format!("{:.2} MB/s in its lowest cycle", without.lowest()),
                without.lowest() < 7.5,
            )
            .of_ours(),
        )
        .chart(without.chart("Without one, under deadline".into()))
        .table(
            "Rates in MB/s, of the others together over the four seconds before the next one joins",
            table,
        );
    findings
}

fn steady(run: &Run<'_>) -> Findings {
    let join = |world: &mut World<Metadata>, number, begins| {
        let reader = Rwrt::best_effort(&film(number), Mode::Read, FILE, begins);
        let reader = reader.keeping(FIVE).in_pieces(AT_A_TIME);
        let seen = reader.seen();
        world.add(reader);
        seen
    };
    figure(run, &join, &|under, watched, findings| {
        let together = watched.together(JOINS);
        let text = format!("{}: the disk cannot serve all that is asked for", under.name);
        let ours = format!("{together:.1} MB/s");
        let asked = "less than 25 MB/s of best effort";
        findings.claim(of(under, Claim::holds(text, asked, ours, together < 24.5)));
    })
}

fn greedy(run: &Run<'_>) -> Findings {
    let join = |world: &mut World<Metadata>, number, begins| {
        let reader = Greedy::new(&film(number), FILE, Mode::Read, begins);
        let seen = reader.seen();
        world.add(reader);
        seen
    };
    figure(run, &join, &|under, watched, findings| {
        let rates: Vec<f64> = (1..=JOINS).map(|joined| watched.together(joined)).collect();
        let shown: Vec<String> = rates.iter().map(|rate| format!("{rate:.1}")).collect();
        let text = "the first greedy reader reads faster than all five together";
        let text = format!("{}: {text}", under.name);
        let ours = format!("together {} MB/s as they join", shown.join(", "));
        let holds = rates[0] > 1.05 * rates[JOINS as usize - 1];
        findings.claim(of(under, Claim::holds(text, "seeks reduce the rate", ours, holds)));
    })
}

/// Mean response times in ms of the stream with high priority and of `count` others, and
/// requests under contract that were late or went wrong.
fn responses(under: &Under, low: Priority, count: u64, length: Duration) -> (f64, f64, u64) {
    let mut world = world(under.policy, count + 1);
    let high = Served::UnderContract { period: under.period };
    let at_once = usize::MAX;
    let mut all = Vec::new();
    for number in 0..=count {
        let served = if number == 0 { high } else { Served::BestEffort(low) };
        let reads = Reads { rate: FOUR, cycle: CYCLE, served, at_once };
        let program = Cyclic::new(&film(number), FILE, reads, BEGIN);
        all.push(program.seen());
        world.add(program);
    }
    world.run_for(BEGIN - Instant::EPOCH + length);
    let mean = |of: &[Shared]| {
        let waits: Vec<Duration> =
            of.iter().flat_map(|seen| seen.borrow().waits.clone()).map(|(_, wait)| wait).collect();
        let sum: Duration = waits.iter().copied().sum();
        sum.as_millis_f64() / waits.len() as f64
    };
    let errors = all.iter().filter(|seen| seen.borrow().error.is_some()).count() as u64;
    (mean(&all[..1]), mean(&all[1..]), late(&world) + errors)
}

fn response(run: &Run<'_>) -> Findings {
    let mut findings = Findings::default();
    let length = run.choose(Duration::from_secs(1_200), Duration::from_secs(120));
    let mut table = Table::new(&[
        "policy",
        "the others",
        ">how many",
        ">high priority, ms",
        ">the others, ms",
        ">times",
        ">late",
    ]);
    let kinds = [("low priority", Priority::Background), ("best effort", Priority::Normal)];
    let schedulers = schedulers();
    for (at, under) in schedulers.iter().enumerate() {
        let (mut late_here, mut least) = (0, f64::MAX);
        let mut chart = Chart::new(
            format!("Mean response time, {}", under.name),
            Axis::linear("streams beside it"),
            Axis::linear("ms").from(0.0),
        );
        for (kind, (name, priority)) in kinds.into_iter().enumerate() {
            run.progress(at * kinds.len() + kind, schedulers.len() * kinds.len());
            let (mut high, mut low) = (Vec::new(), Vec::new());
            for count in 1..=4 {
                let (first, others, late) = responses(under, priority, count, length);
                let mut row = vec![under.name.to_owned(), name.to_owned(), count.to_string()];
                row.extend([first, others, others / first].map(number));
                row.push(late.to_string());
                table.row(row);
                high.push((count as f64, first));
                low.push((count as f64, others));
                late_here += late;
                if priority == Priority::Background {
                    least = least.min(others / first);
                }
            }
            chart = chart
                .with(Series::new(format!("high, beside {name}"), Style::Line, high))
                .with(Series::new(name, Style::Line, low));
        }
        let text =
            format!("{}: responses are so many times as fast as with low priority", under.name);
        findings
            .claim(of(under, Claim::at_least(text, 2.0, least, "times at the least")))
            .claim(
                Claim::at_most(
                    format!("{}: requests under contract that are late, or fail", under.name),
                    0.0,
                    late_here as f64,
                    "",
                )
                .of_ours(),
            )
            .chart(chart);
    }
    findings.table("Mean response times", table).note(
        "Beside best effort ucsb turns the order around while its slack register lasts: what \
         section III.A calls priority inversion, and means for interactive programs. Each program asks \
         for all of its cycle at once, as section III.B has it. Where programs read one block at \
         a time, there is nothing to go before: the responses were 1.02 times as fast in a trial.",
    );
    findings
}
