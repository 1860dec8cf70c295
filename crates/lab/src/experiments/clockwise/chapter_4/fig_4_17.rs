//! Figure 4.17: up to twelve Cheetahs on four buses.

use super::super::cheetahs::{Cheetahs, naive, two_and_one};
use crate::{At, Claim, Experiment, Findings, Paper, Run};
use report::{Axis, Chart, Series, Style, Table, number};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "clockwise-fig-4.17",
    paper: Paper::Clockwise,
    title: "Up to twelve Cheetahs on four buses",
    claim: "One Cheetah reads 1 MB in 75 ms; a second on its bus adds 2.5 ms, a third 15. Buses \
            that carry two disks each give 6 to 11 MB/s more with up to eight disks than buses \
            that are filled with three. The host ends it at 100 MB/s for reads and 88 for writes.",
    setup: "Models of the drive without cache on shared Ultra-Wide buses, each of which serves the \
            disk that asked first, 170 KB at a time (section 7.2.5); all read 1 MB of the outer \
            zone at once, done when all are. No PCI bus and no memory bind them.",
    real_time: false,
    run,
};

const MEMORY: &str = "the limit is the host's memory: the thesis expects 114.6 MB/s of it and the PCI \
                      bus, measures less, and supposes other cards that use it meanwhile";

fn run(run: &Run<'_>) -> Findings {
    let rounds = run.choose(2_000, 250);
    let measure = |buses: fn(usize) -> Vec<usize>| -> Vec<Cheetahs> {
        (1..=12).map(|disks| Cheetahs::read(&buses(disks), rounds)).collect()
    };
    let three = measure(naive);
    run.progress(1, 2);
    let two = measure(two_and_one);
    let ms = |it: &[Cheetahs], disks: usize| it[disks - 1].until_all;
    let rate = |it: &[Cheetahs], disks: usize| disks as f64 * 1e3 / ms(it, disks);
    let mut findings = Findings::default();
    findings
        .claim(Claim::near("one disk reads 1 MB in", 75.0, ms(&three, 1), 0.02, "ms"))
        .claim(Claim::near("and so", 13.2, rate(&three, 1), 0.03, "MB/s"))
        .claim(
            Claim::near(
                "a second on the same bus adds",
                2.5,
                ms(&three, 2) - ms(&three, 1),
                0.15,
                "ms",
            )
            .explained(
                At::both(3.82),
                "the thesis has two figures for this, 2.5 ms here and some 4 ms in section 8.1; in \
                 the model each of the two disks waits for whole bursts of the other, of 4.5 ms",
            ),
        )
        .claim(
            Claim::near("a third adds", 15.0, ms(&three, 3) - ms(&three, 2), 0.1, "ms")
                .calibrated("what a burst costs the bus beside its data was chosen to meet it"),
        )
        .claim(Claim::near(
            "three on one bus (section 4.3.7: 32)",
            32.0,
            rate(&three, 3),
            0.05,
            "MB/s",
        ))
        .claim(Claim::at_most(
            "nine disks on three full buses are later than three on one by",
            2.9,
            ms(&three, 9) - ms(&three, 3),
            "ms",
        ));
    let gains: Vec<f64> =
        [3, 6, 8].iter().map(|&disks| rate(&two, disks) - rate(&three, disks)).collect();
    let most = gains.iter().copied().fold(0.0, f64::max);
    findings
        .claim(Claim::near(
            "two to a bus instead of three gives, with 3 disks,",
            6.0,
            gains[0],
            0.1,
            "MB/s more",
        ))
        .claim(Claim::at_least("and with up to 8 disks at the most", 11.0, most, "MB/s more"))
        .claim(Claim::not_reproducible("twelve disks read", "about 100 MB/s", MEMORY))
        .claim(Claim::not_reproducible("twelve disks write", "88 MB/s", MEMORY))
        .claim(Claim::not_reproducible("reads and writes part at", "72 MB/s", MEMORY));
    let mut table = Table::new(&["disks", ">three to a bus, MB/s", ">two, then a third, MB/s"]);
    for disks in 1..=12 {
        table.row(vec![disks.to_string(), number(rate(&three, disks)), number(rate(&two, disks))]);
    }
    let series = |name: &str, it: &[Cheetahs]| {
        let points: Vec<(f64, f64)> =
            (1..=12).map(|disks| (disks as f64, rate(it, disks))).collect();
        Series::new(name, Style::Line, points)
    };
    let chart =
        Chart::new("Cheetahs that read at once", Axis::linear("disks"), Axis::linear("MB/s"))
            .with(series("three to a bus", &three))
            .with(series("two, then a third", &two))
            .reference("the host's end for reads (printed)", 100.0);
    findings.table("Reads of 1 MB", table).chart(chart);
    findings
}
