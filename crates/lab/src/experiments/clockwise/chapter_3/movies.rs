//! Figures 3.1 to 3.3: how even motion-JPEG is, and how even its blocks are.

use crate::{At, Claim, Experiment, Findings, Paper, Run};
use report::{Axis, Chart, Series, Style, Table};
use sim::workload::movie::{CLIP, Kind, Movie, RED_OCTOBER, WALLACE, blocks};
use units::{Bytes, Duration};

pub(super) const FRAMES: Experiment = Experiment {
    name: "clockwise-fig-3.1",
    paper: Paper::Clockwise,
    title: "Frame sizes of motion-JPEG over time",
    claim: "Frames of three digitised movies have 33 KB (standard deviation 3.3), 10 (1.4) \
            and 11 (2.3) KB, and stay about the same over time: motion-JPEG is hardly a \
            stream of variable rate.",
    setup: "Synthetic movies of as many frames: scenes of 3 s on average, each at a level of \
            its own, in which frames wander and vary. Mean and deviation are those that are \
            printed, so that the first rows check the generator and not the paper.",
    real_time: false,
    run: frames,
};

pub(super) const DELAYS: Experiment = Experiment {
    name: "clockwise-fig-3.2",
    paper: Paper::Clockwise,
    title: "Times between blocks: their distribution",
    claim: "The larger the block, the steeper the distribution of the time between two \
            blocks. Blocks as small as frames come in jumps of 40 ms. With a tenth more \
            bandwidth than the average, a fifth of the requests come sooner than expected.",
    setup: "The same movies fill buffers of several sizes, frame by frame. The curves are \
            compared from 64 KB on, from where a block holds two frames of the larger movie; \
            below, the jumps decide. How long scenes are and how much they differ was chosen \
            so that the last sentence holds for all requests of 1 MB together; the thesis \
            does not say which size and which movie it means.",
    real_time: false,
    run: delays,
};

pub(super) const SPREAD: Experiment = Experiment {
    name: "clockwise-fig-3.3",
    paper: Paper::Clockwise,
    title: "Times between blocks: mean and standard deviation",
    claim: "The larger the block, the smaller the standard deviation of the time between two \
            blocks, per KB.",
    setup: "As for figure 3.2.",
    real_time: false,
    run: spread,
};

/// The movies with their names, and the rates of table 6.3 in KB/s where it has them.
const MOVIES: [(&str, Kind, Option<f64>); 3] = [
    ("Red October", RED_OCTOBER, Some(817.0)),
    ("clip of it", CLIP, None),
    ("A Close Shave", WALLACE, Some(245.0)),
];
const PUT_IN: &str = "the generator is given the printed mean and deviation";
const SCENES: &str = "how long scenes are and how much they differ was chosen for the last \
                      sentence of figure 3.2";
const SIZES_KB: [u64; 8] = [8, 16, 32, 64, 128, 256, 512, 1024];

fn kb(size: Bytes) -> f64 {
    size.get() as f64 / 1024.0
}

/// Mean and standard deviation.
fn moments(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    (mean, (values.iter().map(|it| (it - mean).powi(2)).sum::<f64>() / count).sqrt())
}

fn frames(_: &Run<'_>) -> Findings {
    let mut findings = Findings::default();
    let mut chart = Chart::new(
        "Mean size of the frames of 10 s",
        Axis::linear("time, minutes"),
        Axis::linear("size, KB"),
    );
    for (name, kind, rate) in MOVIES {
        let sizes: Vec<f64> = Movie::new(kind, 1).map(|frame| kb(frame.size)).collect();
        let (mean, deviation) = moments(&sizes);
        let printed = (kb(kind.mean), kb(kind.deviation));
        let minutes: Vec<f64> = sizes.chunks_exact(1500).map(|it| moments(it).0).collect();
        let drift = moments(&minutes).1 / mean;
        findings
            .claim(
                Claim::near(format!("{name}: mean size"), printed.0, mean, 0.03, "KB")
                    .calibrated(PUT_IN),
            )
            .claim(
                Claim::near(format!("{name}: deviation"), printed.1, deviation, 0.1, "KB")
                    .calibrated(PUT_IN),
            )
            .claim(
                Claim::holds(
                    format!("{name}: sizes stay about the same over time"),
                    "minutes differ by less than frames",
                    format!(
                        "by {:.1} %, frames by {:.1} %",
                        drift * 100.0,
                        deviation / mean * 100.0
                    ),
                    drift * 2.0 < deviation / mean,
                )
                .calibrated(SCENES),
            );
        if let Some(rate) = rate {
            let text = format!("{name}: its rate is that of table 6.3");
            findings.claim(Claim::near(text, rate, mean * 25.0, 0.05, "KB/s")
                .calibrated("25 frames a second of the mean size that was put in")
                .explained(
                    At::both(278.0),
                    "the thesis's own figures differ: 25 frames of 11 KB a second are 275 KB/s, \
                     table 6.3 has 245",
                ));
        }
        let points = sizes.chunks_exact(250).enumerate();
        let points = points.map(|(at, it)| (at as f64 / 6.0, moments(it).0));
        chart = chart
            .with(Series::new(name, Style::Line, points))
            .reference(format!("{name}, printed mean"), printed.0);
    }
    findings.chart(chart);
    findings
}

/// Times between blocks of `size` in us for each KB of a block, one for each block but
/// the first.
fn per_kb(kind: Kind, seed: u64, size: u64) -> Vec<f64> {
    let times: Vec<Duration> = blocks(Movie::new(kind, seed), Bytes::kib(size)).collect();
    let apart = times.windows(2).map(|pair| (pair[1] - pair[0]).as_micros() as f64);
    apart.map(|us| us / size as f64).collect()
}

/// The value that `part` of them do not exceed.
fn quantile(sorted: &[f64], part: f64) -> f64 {
    sorted[((sorted.len() - 1) as f64 * part) as usize]
}

fn delays(_: &Run<'_>) -> Findings {
    let mut findings = Findings::default();
    for (name, kind, _) in MOVIES {
        let mut chart = Chart::new(
            format!("{name}: time between blocks"),
            Axis::linear("us for each KB"),
            Axis::linear("part of the blocks").to(1.0),
        );
        let mut widths = Vec::new();
        for size in SIZES_KB {
            let mut delays = per_kb(kind, 1, size);
            delays.sort_by(f64::total_cmp);
            if size >= 64 {
                widths.push(quantile(&delays, 0.9) - quantile(&delays, 0.1));
            }
            if [16, 64, 256, 1024].contains(&size) {
                let points = (0..=100).map(|at| at as f64 / 100.0);
                let points = points.map(|part| (quantile(&delays, part), part));
                chart = chart.with(Series::new(format!("{size} KB"), Style::Line, points));
            }
        }
        findings.claim(Claim::holds(
            format!("{name}: the larger the block, the steeper the curve"),
            "nine tenths lie closer to one tenth",
            format!("apart by {} us/KB", list(&widths)),
            widths.windows(2).all(|pair| pair[1] <= pair[0]),
        ));
        let small = blocks(Movie::new(kind, 1), Bytes::kib(8)).collect::<Vec<_>>();
        let frame = Duration::from_millis(40).as_nanos();
        let jumps = small.windows(2).all(|it| (it[1] - it[0]).as_nanos().is_multiple_of(frame));
        findings
            .claim(
                Claim::holds(
                    format!("{name}: small blocks come in jumps of 40 ms"),
                    "all",
                    if jumps { "all" } else { "not all" },
                    jumps,
                )
                .calibrated("frames of the generator are 40 ms apart"),
            )
            .chart(chart);
    }
    let (mut early, mut all) = (0, 0);
    for (name, kind, _) in MOVIES {
        let (of_movie, blocks) = sooner(kind);
        findings.note(format!("{name}: {of_movie} of {blocks} blocks come sooner"));
        (early, all) = (early + of_movie, all + blocks);
    }
    let text = "blocks of 1 MB that come sooner than expected with a tenth more bandwidth";
    findings.claim(
        Claim::at_most(text, 20.0, 100.0 * early as f64 / all as f64, "%").calibrated(SCENES),
    );
    findings
}

fn list(values: &[f64]) -> String {
    values.iter().map(|it| report::number(*it)).collect::<Vec<_>>().join(", ")
}

/// Of how many blocks of 1 MB how many come sooner than a contract with a tenth more
/// than the average bandwidth allows for.
fn sooner(kind: Kind) -> (usize, usize) {
    let delays = per_kb(kind, 1, 1024);
    let expected = moments(&delays).0 / 1.1;
    (delays.iter().filter(|&&it| it < expected).count(), delays.len())
}

fn spread(_: &Run<'_>) -> Findings {
    let mut findings = Findings::default();
    let mut table = Table::new(&["movie", ">block, KB", ">mean, us/KB", ">deviation, us/KB"]);
    let mut chart = Chart::new(
        "Standard deviation of the time between blocks",
        Axis::logarithmic("block, KB"),
        Axis::logarithmic("us for each KB"),
    );
    for (name, kind, _) in MOVIES {
        let of_size = |&size: &u64| (size as f64, moments(&per_kb(kind, 1, size)));
        let rows: Vec<(f64, (f64, f64))> = SIZES_KB.iter().map(of_size).collect();
        for (size, (mean, deviation)) in &rows {
            let figures = [*size, *mean, *deviation].map(report::number);
            table.row([name.to_owned()].into_iter().chain(figures).collect());
        }
        let deviations: Vec<f64> = rows.iter().map(|row| row.1.1).collect();
        findings.claim(Claim::holds(
            format!("{name}: the larger the block, the smaller the deviation"),
            "smaller at every step",
            format!("{} us/KB", list(&deviations)),
            deviations.windows(2).all(|pair| pair[1] < pair[0]),
        ));
        let points = rows.iter().map(|(size, (_, deviation))| (*size, *deviation));
        chart = chart.with(Series::new(name, Style::Line, points));
    }
    findings.table("Time between blocks", table).chart(chart);
    findings
}
