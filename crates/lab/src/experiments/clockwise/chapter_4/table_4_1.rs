//! Table 4.1 and figure 4.5: what the model of the Atlas-II is made of, held against print.

use super::super::raw::{MB, Raw, atlas};
use crate::{Claim, Experiment, Findings, Paper, Run};
use report::{Axis, Chart, Series, Style, Table, number};
use units::{Duration, SECTOR};

pub(super) const ZONES: Experiment = Experiment {
    name: "clockwise-table-4.1",
    paper: Paper::Clockwise,
    title: "The zones of the Atlas-II",
    claim: "5,812 cylinders of ten tracks in twelve zones; their sizes and their rates under the \
            heads, at 7,200 turns a minute.",
    setup: "The model, whose zones were taken from the table: that sizes and rates come out as \
            printed shows that the zones were copied rightly.",
    real_time: false,
    run: zones,
};

pub(super) const SEEKS: Experiment = Experiment {
    name: "clockwise-fig-4.5",
    paper: Paper::Clockwise,
    title: "Seek times of the Atlas-II",
    claim: "A seek over one cylinder takes 1.4 to 3.2 ms (1.9 in the mean), the longest 17.8 ms; \
            the means follow two formulas, and each distance varies by 1.5 to 2.0 ms.",
    setup: "The model's curve, which was made from these figures, with the mean millisecond of \
            controller, bus and host that every measured seek has (section 4.3.2). The factor \
            of the first formula is printed as 0.0015 and is taken as 1.9 for thousands of cylinders, \
            which meets the figure.",
    real_time: false,
    run: seeks,
};

const PUT_IN: &str = "the model was made of these figures";

/// Table 4.1: capacity in MB and MB/s.
#[rustfmt::skip]
const PRINTED: [(f64, f64); 12] = [
    (1548.0, 10.5), (292.0, 9.9), (333.0, 9.6), (245.0, 9.4), (180.0, 9.3), (308.0, 8.9),
    (203.0, 8.7), (331.0, 8.1), (327.0, 7.5), (126.0, 7.3), (222.0, 6.8), (221.0, 6.3),
];

fn zones(_: &Run<'_>) -> Findings {
    let mut findings = Findings::default();
    let model = atlas();
    let raw = Raw::new(&model, 1);
    findings.claim(
        Claim::near("cylinders", 5_812.0, model.cylinders() as f64, 0.0, "").calibrated(PUT_IN),
    );
    findings.claim(
        Claim::near("zones", PRINTED.len() as f64, raw.zones().len() as f64, 0.0, "")
            .calibrated(PUT_IN),
    );
    let mut table = Table::new(&[">zone", ">MB: printed", ">ours", ">MB/s: printed", ">ours"]);
    for (index, (zone, (size, rate))) in raw.zones().iter().zip(PRINTED).enumerate() {
        let sectors = zone.range.start.distance(zone.range.end);
        let ours = (SECTOR * sectors).get() as f64 / MB;
        let media = (SECTOR * zone.per_track).get() as f64 / MB / model.rotation().as_secs_f64();
        findings.claim(
            Claim::near(format!("zone {index}: capacity"), size, ours, 0.01, "MB")
                .calibrated(PUT_IN),
        );
        findings.claim(
            Claim::near(format!("zone {index}: rate under the heads"), rate, media, 0.01, "MB/s")
                .calibrated(PUT_IN),
        );
        table.row([index as f64, size, ours, rate, media].map(number).into_iter().collect());
    }
    findings.table("Zones", table);
    findings
}

/// In every measured seek, in ms.
const BESIDE: f64 = 1.0;

fn seeks(_: &Run<'_>) -> Findings {
    let mut findings = Findings::default();
    let model = atlas();
    let with = |time: Duration| time.as_millis_f64() + BESIDE;
    let last = model.cylinders() - 1;
    let short = |d: f64| 9.5 - 1.9 * (2.0 - d / 1e3).powi(2);
    let long = |d: f64| 2.0 * d / 1e3 + 6.1;
    let [least, mean, most] = model.seek(1).map(with);
    let longest = with(model.seek(last)[2]);
    let mut claims = vec![
        Claim::near("one cylinder: shortest", 1.4, least, 0.05, "ms"),
        Claim::near("one cylinder: mean", 1.9, mean, 0.02, "ms"),
        Claim::near("one cylinder: longest", 3.2, most, 0.05, "ms"),
        Claim::near("the longest", 17.8, longest, 0.02, "ms"),
    ];
    for d in [500, 1_000, 1_400, 2_000, 4_000, last] {
        let printed = if d < 1_500 { short(d as f64) } else { long(d as f64) };
        let ours = with(model.seek(d)[1]);
        claims.push(Claim::near(format!("{d} cylinders: mean"), printed, ours, 0.02, "ms"));
    }
    for d in [1_000, 3_000] {
        let [least, _, most] = model.seek(d).map(with);
        // 1.5 to 2.0.
        claims.push(Claim::near(format!("{d} cylinders: spread"), 1.75, most - least, 0.143, "ms"));
    }
    for claim in claims {
        findings.claim(claim.calibrated(PUT_IN));
    }
    let mut chart = Chart::new(
        "Seek time by distance (figure 4.5)",
        Axis::linear("distance, cylinders"),
        Axis::linear("seek, ms"),
    );
    for (at, name) in ["shortest", "mean", "longest"].into_iter().enumerate() {
        let places = (0..=200).map(|part| (part * last / 200).max(1));
        let points = places.map(|d| (d as f64, with(model.seek(d)[at])));
        chart = chart.with(Series::new(name, Style::Line, points));
    }
    for (name, from, to, of) in
        [("printed formulas", 1, 1_500, &short as &dyn Fn(f64) -> f64), ("", 1_500, last, &long)]
    {
        let places = (0..=20).map(|part| (from + part * (to - from) / 20) as f64);
        chart = chart.with(Series::new(name, Style::Printed, places.map(|d| (d, of(d)))));
    }
    findings.chart(chart);
    findings
}
