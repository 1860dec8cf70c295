//! Figure 8.1 and the numbers of section 8.1: one to three Cheetahs on one bus.

use super::cheetahs::{Cheetahs, naive};
use crate::{At, Claim, Experiment, Findings, Paper, Run};
use report::{Axis, Chart, Series, Style, Table, number};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "clockwise-fig-8.1",
    paper: Paper::Clockwise,
    title: "One to three Cheetahs on one bus",
    claim: "A second disk on an Ultra-Wide bus costs reads of 1 MB some 4 ms; planned with 80 ms, \
            which 90 % keep, two disks give 24.7 MB/s. With three all reads are slower: none takes \
            less than about 88 ms instead of 70 to 73, 90 % take up to 96 ms, and three disks give \
            31.3 MB/s.",
    setup: "As figure 4.17, on one bus: models of the drive without cache; all read 1 MB of the \
            outer zone at once. The bus serves the disk that asked first, 170 KB at a time.",
    real_time: false,
    run,
};

fn run(run: &Run<'_>) -> Findings {
    let rounds = run.choose(10_000, 1_000);
    let all: Vec<Cheetahs> = (1..=3)
        .map(|disks| {
            run.progress(disks - 1, 3);
            Cheetahs::read(&naive(disks), rounds)
        })
        .collect();
    let rate = |disks: usize| disks as f64 * 1e3 / all[disks - 1].percentile_90;
    let mut findings = Findings::default();
    findings
        .claim(
            Claim::near("a second disk costs", 4.0, all[1].each - all[0].each, 0.15, "ms")
                .explained(
                    At::thorough_only(3.29),
                    "the thesis has two figures for this, 2.5 ms in section 4.3.7 and some 4 ms here",
                ),
        )
        .claim(Claim::near("two disks: 90 % take up to", 80.0, all[1].percentile_90, 0.05, "ms"))
        .claim(Claim::near("two disks, planned with that", 24.7, rate(2), 0.05, "MB/s"))
        .claim(Claim::near("one disk: the shortest", 70.0, all[0].shortest, 0.05, "ms"))
        .claim(Claim::near("two disks: the shortest", 73.0, all[1].shortest, 0.05, "ms"))
        .claim(Claim::near("three disks: the shortest", 88.0, all[2].shortest, 0.05, "ms"))
        .claim(Claim::near("three disks: 90 % take up to", 96.0, all[2].percentile_90, 0.05, "ms"))
        .claim(Claim::near("three disks, planned with that", 31.3, rate(3), 0.05, "MB/s"));
    let mut table = Table::new(&["disks", ">shortest, ms", ">mean, ms", ">90 %, ms", ">MB/s"]);
    for (disks, it) in (1..).zip(&all) {
        let cells = [it.shortest, it.each, it.percentile_90, rate(disks)].map(number);
        table.row([vec![disks.to_string()], cells.to_vec()].concat());
    }
    let line = |name: &str, pick: fn(&Cheetahs) -> f64| {
        let points = (1..).zip(&all).map(|(disks, it)| (f64::from(disks), pick(it)));
        Series::new(name, Style::Line, points)
    };
    let printed = [(1.0, 70.0), (2.0, 73.0), (3.0, 88.0)];
    findings.table("Reads of 1 MB on one bus", table).chart(
        Chart::new(
            "One to three Cheetahs on one bus",
            Axis::linear("disks"),
            Axis::linear("ms").from(60.0),
        )
        .with(line("shortest", |it| it.shortest))
        .with(line("90 %", |it| it.percentile_90))
        .with(Series::new("shortest, printed", Style::Printed, printed)),
    );
    findings
}
