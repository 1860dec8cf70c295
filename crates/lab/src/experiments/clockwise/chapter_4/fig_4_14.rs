//! Figures 4.13 and 4.14: one to four Atlas-IIs at once, each on a bus of its own.

use super::super::raw::{MB, atlas};
use crate::{Claim, Experiment, Findings, Paper, Run};
use disk::raw::RawDisk;
use report::{Axis, Chart, Series, Style};
use sim::Random;
use units::{Access, Direction, Duration, Instant, Lba, SECTOR};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "clockwise-fig-4.14",
    paper: Paper::Clockwise,
    title: "One to four Atlas-IIs at once",
    claim: "Four disks on four buses read almost four times as fast as one, once the host's \
            cards use PCI in bursts. Without that they read 3.7 times and write 1.8 times as \
            fast; with it they write almost 3.5 times as fast, since memory is slow to read.",
    setup: "Drives that are alike but for what varies in each, their platters at angles of their \
            own; all begin together, done when all are; blocks of zone 0, no seek. While all four \
            move data, 64 bytes at a time, each gets a quarter of the PCI bus: 570 ns a transaction \
            for reads, 1.8 us for writes (section 4.3.6).",
    real_time: false,
    run,
};

const FEW_BYTES: &str =
    "how much a transaction moved then is not printed, only that it was a few bytes";

const APART: &str = "drives of the model share nothing but the PCI bus, which reads do not fill, so \
                     that four are as fast as four by construction";

/// A transaction of 64 bytes without alignment: reads write to memory, writes read it.
const TRANSACTION: [Duration; 2] = [Duration::from_nanos(570), Duration::from_nanos(1_800)];

/// The time of a sector on the bus of each of so many drives that move data all at once.
fn sector(way: Direction, disks: u64) -> Duration {
    let alone = Duration::from_micros(51);
    let transaction = TRANSACTION[usize::from(way == Direction::Write)];
    alone.max(transaction * (disks * SECTOR.get() / 64))
}

fn run(run: &Run<'_>) -> Findings {
    let mut findings = Findings::default();
    let mut chart = Chart::new(
        "Disks that read at once",
        Axis::logarithmic("block, KB"),
        Axis::linear("times as fast as one disk"),
    );
    let rounds = run.choose(4_000, 400);
    let sizes = [16, 64, 256, 1024];
    let mut at_a_megabyte = Vec::new();
    let read = |disks: u64, kib: u64| together(Direction::Read, disks, kib, rounds);
    let one: Vec<f64> = sizes.iter().map(|&kib| read(1, kib)).collect();
    for disks in 2..=4 {
        let times = sizes
            .iter()
            .zip(&one)
            .map(|(&kib, one)| (kib as f64, disks as f64 * one / read(disks, kib)));
        let points: Vec<(f64, f64)> = times.collect();
        at_a_megabyte.push(points[3].1);
        chart = chart.with(Series::new(format!("{disks} disks"), Style::Line, points));
        run.progress(disks as usize - 1, 3);
    }
    let [write, four_write] = [1, 4].map(|disks| together(Direction::Write, disks, 1024, rounds));
    let writes = 4.0 * write / four_write;
    findings
        .claim(
            Claim::near(
                "reads of 1 MB with four disks (\"almost four times\")",
                4.0,
                at_a_megabyte[2],
                0.05,
                "times",
            )
            .calibrated(APART),
        )
        .claim(
            Claim::holds(
                "the speed-up is almost linear",
                "linear",
                format!(
                    "{:.2}, {:.2} and {:.2} times with 2, 3 and 4 disks",
                    at_a_megabyte[0], at_a_megabyte[1], at_a_megabyte[2]
                ),
                (2..=4)
                    .zip(&at_a_megabyte)
                    .all(|(disks, times)| (times / disks as f64 - 1.0).abs() < 0.05),
            )
            .calibrated(APART),
        )
        .claim(Claim::not_reproducible(
            "figure 4.13: reads with four disks and short PCI bursts",
            "3.7 times",
            FEW_BYTES,
        ))
        .claim(Claim::not_reproducible(
            "figure 4.13: writes of 1 MB with four disks",
            "1.8 times",
            FEW_BYTES,
        ))
        .claim(Claim::near(
            "writes of 1 MB with four disks and PCI bursts (\"almost 3.5 times\")",
            3.5,
            writes,
            0.05,
            "times",
        ))
        .chart(chart)
        .note(format!(
            "One disk reads 1 MB of zone 0 in {:.1} ms ({:.2} MB/s).",
            one[3],
            1e3 / one[3] * (1_048_576.0 / MB)
        ))
        .note(format!(
            "One disk writes 1 MB in {write:.1} ms, each of four in {four_write:.1} ms, since a \
             sector takes {} on its bus instead of {}.",
            sector(Direction::Write, 4),
            sector(Direction::Write, 1)
        ));
    findings
}

/// The mean time in ms until each of so many disks has moved a block of zone 0.
fn together(way: Direction, disks: u64, kib: u64, rounds: u64) -> f64 {
    let model = atlas().with_bus(sector(way, disks));
    let mut drives: Vec<RawDisk> =
        (0..disks).map(|seed| RawDisk::new(&model.clone().with_seed(seed))).collect();
    let zone = drives[0].zones().next().expect("a first zone");
    let mut random = Random::new(disks ^ kib);
    let (mut now, mut total) = (Instant::EPOCH, Duration::ZERO);
    for _ in 0..rounds {
        let mut slowest = Duration::ZERO;
        let track = random.below(zone.tracks() - 12);
        for drive in &mut drives {
            // The spindles are not synchronised.
            let settle = Duration::from_millis(40) + random.span(Duration::from_millis(25));
            let lba = Lba::new(zone.range.start.get() + track * zone.per_track);
            let access = Access { lba, len: SECTOR * (kib * 2), direction: way };
            slowest = slowest.max(drive.time_at(None, now, settle, &access));
        }
        total += slowest;
        now += Duration::from_millis(400);
    }
    total.as_millis_f64() / rounds as f64
}
