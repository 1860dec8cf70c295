//! Figure 13: how long commands take.

use super::{barracuda, both, load, served};
use crate::{Claim, Experiment, Findings, Paper, Run};
use report::{Axis, Chart, Series, Style};
use sched::Manner;
use sim::commands::{Found, as_printed};
use units::{Bytes, Direction, Duration};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "semi-fig-13",
    paper: Paper::SemiPreemptible,
    title: "How long commands take",
    claim: "Whole requests take as long as seek, turn and transfer together; commands mostly as \
            long as one chunk, a millisecond, with two lesser peaks about 2 ms where a chunk \
            crosses tracks or cylinders. Between 3 and 16 ms, where seeks and turns are, lie \
            0.168, 0.056 and 0.017 of them for requests of 50, 500 and 2,000 kB.",
    setup: "As figure 9. The printed parts are near only where the commands that read on in waits \
            (free prefetching) are counted, so they are; the paper does not say so.",
    real_time: false,
    run,
};

const PRINTED: [(u64, f64); 3] = [(50, 0.168), (500, 0.056), (2_000, 0.017)];
/// The width of a column and the end of the last, in ms.
const BINS: (f64, f64) = (0.5, 120.0);

fn run(run: &Run<'_>) -> Findings {
    let mut findings = Findings::default();
    let model = barracuda();
    let ahead = Manner { ahead: Bytes::mib(1), ..as_printed(&model) };
    let mut charts = [
        ("Durations of whole requests", Axis::linear("part of them, %")),
        ("Durations of commands", Axis::logarithmic("part of them, %").from(0.01)),
    ]
    .map(|(title, y)| Chart::new(title, Axis::linear("duration, ms"), y));
    for (at, (size, printed)) in PRINTED.into_iter().enumerate() {
        run.progress(at, PRINTED.len());
        let [whole, commands] = [both(&model)[0], ahead]
            .map(|manner| served(&model, &load(run, Direction::Read, size, manner)));
        let long = part(&commands.commands, 3.0, 16.0);
        findings.claim(Claim::near(
            format!("{size} kB: part of commands from 3 to 16 ms"),
            printed,
            long,
            0.35,
            "",
        ));
        let short = part(&commands.commands, 0.0, 3.0);
        findings.claim(Claim::holds(
            format!("{size} kB: most commands are chunks, below 3 ms"),
            "most",
            format!("{:.1} %", 100.0 * short),
            short > 0.5,
        ));
        let [a, b] = [&whole.whole, &commands.commands].map(|times| density(times));
        let [one, other] = charts;
        charts = [
            one.with(Series::new(format!("{size} kB"), Style::Steps, a)),
            other.with(Series::new(format!("{size} kB"), Style::Steps, b)),
        ];
        if size == 500 {
            findings.claim(longest(&whole, &commands));
        }
    }
    let [whole, commands] = charts;
    findings.chart(whole).chart(commands);
    findings
}

fn longest(whole: &Found, commands: &Found) -> Claim {
    let [long, short] = [&whole.whole, &commands.commands]
        .map(|times| times.iter().copied().max().unwrap_or_default().as_millis_f64());
    Claim::holds(
        "500 kB: the longest command is far shorter than the longest request",
        "shorter",
        format!("{short:.1} ms, {long:.1} ms"),
        short < 0.6 * long,
    )
}

fn part(times: &[Duration], from: f64, to: f64) -> f64 {
    let within = |time: &&Duration| (from..to).contains(&time.as_millis_f64());
    times.iter().filter(within).count() as f64 / times.len().max(1) as f64
}

/// Parts of a hundred by half milliseconds; what is less than one in ten thousand is not
/// drawn.
fn density(times: &[Duration]) -> Vec<(f64, f64)> {
    let mut counts = vec![0u64; (BINS.1 / BINS.0) as usize];
    for time in times {
        let at = (time.as_millis_f64() / BINS.0) as usize;
        if let Some(count) = counts.get_mut(at) {
            *count += 1;
        }
    }
    let all = times.len().max(1) as f64;
    let last = counts.iter().rposition(|&count| count > 0).map_or(0, |at| at + 2);
    let part = |&count: &u64| (100.0 * count as f64 / all).max(0.01);
    let place = |(at, count): (usize, &u64)| (at as f64 * BINS.0, part(count));
    counts.iter().enumerate().take(last).map(place).collect()
}
