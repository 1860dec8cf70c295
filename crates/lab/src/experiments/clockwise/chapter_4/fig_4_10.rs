//! Figure 4.10: writes without a cache.

use super::super::raw::{Begin, Raw, TURN, atlas, rate};
use crate::{Claim, Experiment, Findings, Paper, Run};
use report::{Axis, Chart, Series, Style, number};
use units::{Direction, SECTOR};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "clockwise-fig-4.10",
    paper: Paper::Clockwise,
    title: "Writes to an Atlas-II without its cache",
    claim: "A write of two sectors or of a track takes its overhead, the bus, and up to a turn. \
            In zones 0 to 2 the bus holds the platters up. A sector more than whole tracks \
            costs a turn in a significant part of the requests, nobody can say in which; section \
            7.2.3 has it at almost a turn.",
    setup: "The model without cache; single writes that begin with a track, the arm there, the \
            platters at any angle.",
    real_time: false,
    run,
};

const OVERHEADS: &str = "the model's overheads were chosen to meet the extremes of two sectors";

fn run(run: &Run<'_>) -> Findings {
    let mut findings = Findings::default();
    let count = 20_000; // The shortest and the longest are rare.
    let mut raw = Raw::new(&atlas(), 2);
    for (sectors, shortest, longest) in [(2, 1.0, 10.8), (179, 10.3, 18.7)] {
        let times = raw.times(Direction::Write, 0, sectors, Begin::Track, count);
        let text = |which: &str| format!("{sectors} sectors of zone 0, {which}");
        let [shortest, longest] = [
            Claim::near(text("shortest"), shortest, times.shortest(), 0.05, "ms"),
            Claim::near(text("longest"), longest, times.longest(), 0.05, "ms"),
        ]
        .map(|claim| if sectors == 2 { claim.calibrated(OVERHEADS) } else { claim });
        findings.claim(shortest).claim(longest);
    }
    let mut mean = |zone: usize, sectors: u64| {
        raw.times(Direction::Write, zone, sectors, Begin::Track, run.choose(5_000, 500)).mean()
    };
    // What is left of the time of ten tracks beside their time on the bus, at 51 us a sector.
    let beside = |mean: f64, sectors: u64| mean - 0.051 * sectors as f64;
    let (outer, inner) = (beside(mean(0, 1_790), 1_790), beside(mean(9, 1_250), 1_250));
    findings.claim(Claim::holds(
        "ten tracks of zone 0 wait for the bus, of zone 9 for the platters",
        "the bus is slower than the platters in zone 0 to 2",
        format!("{} and {} ms more than the bus alone takes", number(outer), number(inner)),
        outer < inner / 2.0 && outer > 0.0,
    ));
    let step = mean(0, 1_791) - mean(0, 1_790);
    findings.claim(
        Claim::near("a sector more than ten tracks of zone 0 costs", TURN, step, 0.15, "ms")
            .calibrated(
                "the model lets each write of more than a track end with a whole one, as section \
                 4.3.5 says of a significant number of them; figures 4.12, 7.7 and 7.8 judge it",
            ),
    );
    let sizes: Vec<u64> = (1..=run.choose(48, 12)).map(|at| at * 44 * run.choose(1, 4)).collect();
    let mut chart = Chart::new(
        "Writes without a cache",
        Axis::linear("size of a write, KB"),
        Axis::linear("MB/s"),
    );
    for zone in [0, 4, 11] {
        let points: Vec<(f64, f64)> = sizes
            .iter()
            .map(|&sectors| (sectors as f64 / 2.0, rate(SECTOR * sectors, mean(zone, sectors))))
            .collect();
        chart = chart.with(Series::new(format!("zone {zone}"), Style::Line, points));
    }
    findings.chart(chart);
    findings
}
