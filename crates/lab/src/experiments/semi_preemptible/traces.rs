//! Figures 14 and 15: requests as programs made them.

use super::{barracuda, both, load, served};
use crate::{Claim, Experiment, Findings, Paper, Run};
use report::{Axis, Chart, Series, Style, Table};
use sim::Random;
use sim::commands::{Found, Load, Places, ours};
use units::{Direction, Lba};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "semi-fig-14",
    paper: Paper::SemiPreemptible,
    title: "Waiting and throughput with traces (figures 14 and 15)",
    claim: "With traces of a video server under two orders and of a database, expected waiting \
            falls by as much as 65 %, for less than 10 % of the throughput; the summary of the \
            paper says 2.1 times for less than 6 % with a video system.",
    setup: "The traces were not published. In their place, with the figures of table 1 (requests, \
            mean size, last block): fifteen files played in turn, first come first served (DV15); \
            the same with requests of the fifteen in elevator order (Elevator15); and random \
            places among the first 8,005,312 blocks (TPC). Requests of 128 blocks, whole in one \
            command.",
    real_time: false,
    run,
};

/// A stand-in for a trace: its name, and where its requests lie.
struct Trace {
    name: &'static str,
    places: Vec<Lba>,
}

const SECTORS: u64 = 128;
const CLIENTS: u64 = 15;

fn traces(random: &mut Random) -> [Trace; 3] {
    let (requests, last) = (10_800, 28_442_272);
    // Files of equal length anywhere; each read from its begin.
    let length = requests / CLIENTS * SECTORS;
    let files: Vec<u64> = (0..CLIENTS).map(|_| random.below(last - length)).collect();
    let place = |n: u64| Lba::new(files[(n % CLIENTS) as usize] + n / CLIENTS * SECTORS);
    let in_turn: Vec<Lba> = (0..requests).map(place).collect();
    let mut elevator = in_turn.clone();
    for batch in elevator.chunks_mut(CLIENTS as usize) {
        batch.sort_unstable();
    }
    let database = (0..requests).map(|_| Lba::new(random.below(8_005_312 - SECTORS))).collect();
    [
        Trace { name: "DV15", places: in_turn },
        Trace { name: "Elevator15", places: elevator },
        Trace { name: "TPC", places: database },
    ]
}

fn run(run: &Run<'_>) -> Findings {
    let mut findings = Findings::default();
    findings.claim(Claim::not_reproducible(
        "the traces themselves",
        "three traces",
        "they were not published; the claims below are held against stand-ins with the printed \
         figures of table 1",
    ));
    let model = barracuda();
    let [whole, commands] = both(&model);
    let options = [whole, commands, ours(&model, Direction::Read)];
    let mut table = Table::new(&[
        "trace",
        ">expected wait, ms: whole",
        ">in commands",
        ">ours",
        ">MB/s: whole",
        ">in commands",
        ">ours",
    ]);
    let (mut waits, mut rates) = (Vec::new(), Vec::new());
    let traces = traces(&mut Random::new(11));
    for (at, trace) in traces.iter().enumerate() {
        run.progress(at, traces.len());
        let found: Vec<Found> = options
            .iter()
            .map(|&manner| {
                let load = load(run, Direction::Read, SECTORS / 2, manner);
                served(&model, &Load { places: Places::Listed(trace.places.clone()), ..load })
            })
            .collect();
        let wait: Vec<f64> = (0..3).map(|at| found[at].expected(options[at].preemptible)).collect();
        let rate: Vec<f64> = found.iter().map(Found::throughput).collect();
        let mut row = vec![trace.name.to_owned()];
        row.extend(wait.iter().chain(&rate).map(|figure| format!("{figure:.2}")));
        table.row(row);
        waits.push(wait);
        rates.push(rate);
    }
    claims(&waits, &rates, &mut findings);
    for (title, unit, values) in
        [("Expected waiting", "expected waiting, ms", &waits), ("Throughput", "MB/s", &rates)]
    {
        let names = traces.iter().enumerate().map(|(at, it)| (at as f64, it.name.to_owned()));
        let x = Axis::linear("").from(-0.5).to(2.5).named(names);
        let mut chart = Chart::new(format!("{title} with traces"), x, Axis::linear(unit));
        for (at, name) in ["whole", "in commands", "ours"].into_iter().enumerate() {
            let points = values.iter().enumerate().map(|(place, them)| (place as f64, them[at]));
            chart = chart.with(Series::new(name, Style::Bars, points));
        }
        findings.chart(chart);
    }
    findings.table("Stand-ins for the traces", table);
    findings
}

fn claims(waits: &[Vec<f64>], rates: &[Vec<f64>], findings: &mut Findings) {
    let best =
        |at: usize| waits.iter().map(|wait| 100.0 * (1.0 - wait[at] / wait[0])).fold(0.0, f64::max);
    let lost = |at: usize, trace: usize| 100.0 * (1.0 - rates[trace][at] / rates[trace][0]);
    let most = (0..3).map(|trace| lost(1, trace)).fold(f64::MIN, f64::max);
    findings
        .claim(Claim::near("expected waiting falls by as much as", 65.0, best(1), 0.15, "%"))
        .claim(Claim::at_most("throughput lost, at the most", 10.0, most, "%").or_better())
        .claim(Claim::near(
            "video: expected waiting is less by",
            2.1,
            waits[0][0] / waits[0][1],
            0.15,
            "times",
        ))
        .claim(Claim::at_most("video: throughput lost", 6.0, lost(1, 0), "%").or_better())
        .claim(
            Claim::at_least(
                "video, our settings: expected waiting is less by at least",
                2.1,
                waits[0][0] / waits[0][2],
                "times",
            )
            .or_better()
            .of_ours(),
        )
        .claim(
            Claim::at_most("video, our settings: throughput lost", 6.0, lost(2, 0), "%")
                .or_better()
                .of_ours(),
        );
}
