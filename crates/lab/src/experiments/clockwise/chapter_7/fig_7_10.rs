//! Figure 7.10: one to six Cheetahs, two to a bus.

use super::super::cheetahs::{Cheetahs, two_and_one};
use crate::{At, Claim, Experiment, Findings, Paper, Run};
use report::{Axis, Chart, Series, Style, Table, number};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "clockwise-fig-7.10",
    paper: Paper::Clockwise,
    title: "One to six Cheetahs, two to a bus",
    claim: "Reading 1 MB takes 72.0 to 73.3 ms on average from two to five disks, nine of ten \
            within 73.9 to 75.3 ms; a second disk costs about 4 ms, the sixth 1.2 ms. Six disks \
            read 78.5 MB/s when nine of ten keep their time.",
    setup: "As figure 4.17: models without cache on shared Ultra-Wide buses; all read 1 MB of the \
            outer zone at once, the arms there.",
    real_time: false,
    run,
};

fn run(run: &Run<'_>) -> Findings {
    let rounds = run.choose(6_000, 600);
    let all: Vec<Cheetahs> = (1..=6)
        .map(|disks| {
            run.progress(disks, 6);
            Cheetahs::read(&two_and_one(disks), rounds)
        })
        .collect();
    let between = |pick: fn(&Cheetahs) -> f64| {
        let values = all[1..5].iter().map(pick);
        let least = values.clone().fold(f64::INFINITY, f64::min);
        (least, values.fold(0.0, f64::max))
    };
    let (least, most) = between(|it| it.each);
    let (least_90, most_90) = between(|it| it.percentile_90);
    let alone = "section 4.3.7 prints 75 ms for a disk alone, which the model keeps; means of 72 to \
                 73.3 ms for two on a bus, of which one costs 4 ms, would leave 68 to 69 for it";
    let mut findings = Findings::default();
    findings
        .claim(
            Claim::near("two to five disks, mean: from", 72.0, least, 0.05, "ms")
                .explained(At::both(77.3), alone),
        )
        .claim(
            Claim::near("two to five disks, mean: to", 73.3, most, 0.05, "ms")
                .explained(At::both(78.4), alone),
        )
        .claim(Claim::near("two to five disks, 90th percentile: from", 73.9, least_90, 0.1, "ms"))
        .claim(Claim::near("two to five disks, 90th percentile: to", 75.3, most_90, 0.1, "ms"))
        .claim(Claim::near(
            "a second disk on a bus costs about",
            4.0,
            all[1].each - all[0].each,
            0.25,
            "ms",
        ))
        .claim(
            Claim::at_most("the sixth disk costs", 1.2, all[5].each - all[4].each, "ms")
                .or_better(),
        )
        .claim(
            Claim::at_least(
                "six disks, at the 90th percentile",
                78.5,
                6e3 / all[5].percentile_90,
                "MB/s",
            )
            .explained(At::both(74.1), alone),
        );
    let mut table = Table::new(&["disks", ">mean, ms", ">90th percentile, ms", ">MB/s at that"]);
    for (disks, it) in (1..).zip(&all) {
        let rate = f64::from(disks) * 1e3 / it.percentile_90;
        table.row(vec![disks.to_string(), number(it.each), number(it.percentile_90), number(rate)]);
    }
    let series = |name: &str, pick: fn(&Cheetahs) -> f64| {
        let points = (1..).zip(&all).map(|(disks, it)| (f64::from(disks), pick(it)));
        Series::new(name, Style::Line, points)
    };
    findings.table("Reads of 1 MB", table).chart(
        Chart::new("Cheetahs, two to a bus", Axis::linear("disks"), Axis::linear("ms").from(60.0))
            .with(series("mean", |it| it.each))
            .with(series("90th percentile", |it| it.percentile_90)),
    );
    findings
}
