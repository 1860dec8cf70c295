//! Figure 8: the seek curve.

use super::barracuda;
use crate::{Claim, Experiment, Findings, Paper, Run};
use report::{Axis, Chart, Series, Style};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "semi-fig-8",
    paper: Paper::SemiPreemptible,
    title: "The seek curve",
    claim: "Seeks take about 10 ms on average and up to about 20 ms; over one distance they vary \
            by about a millisecond, which limits what can be predicted.",
    setup: "The curve of the model, which was made to meet these words, as there are no numbers: \
            this shows what everything else rests on, and is no reproduction.",
    real_time: false,
    run,
};

const CURVE: &str = "the model's curve was made to meet it";

fn run(_: &Run<'_>) -> Findings {
    let model = barracuda();
    let last = model.cylinders() - 1;
    let mut findings = Findings::default();
    // Over all pairs of cylinders, distance d has 2 (n - d) of n² pairs.
    let weight = |d: u64| (model.cylinders() - d) as f64;
    let (sum, weights) = (1..=last).fold((0.0, 0.0), |(sum, all), d| {
        (sum + weight(d) * model.seek(d)[1].as_millis_f64(), all + weight(d))
    });
    let longest = model.seek(last)[2].as_millis_f64();
    let spread = model.seek(last / 3);
    let varies = (spread[2] - spread[0]).as_millis_f64();
    findings
        .claim(Claim::near("the mean seek", 10.0, sum / weights, 0.15, "ms").calibrated(CURVE))
        .claim(Claim::near("the longest seek", 20.0, longest, 0.15, "ms").calibrated(CURVE))
        .claim(
            Claim::near("seeks over a third of the stroke vary by", 1.0, varies, 0.15, "ms")
                .calibrated(CURVE),
        );
    let x = Axis::linear("distance, cylinders");
    let mut chart = Chart::new("Seek time by distance", x, Axis::linear("seek, ms"));
    for (at, name) in ["shortest", "mean", "longest"].into_iter().enumerate() {
        let places = (0..=200u64).map(|part| (part * last / 200).max(1));
        let points = places.map(|d| (d as f64, model.seek(d)[at].as_millis_f64()));
        chart = chart.with(Series::new(name, Style::Line, points));
    }
    findings.chart(chart);
    findings
}
