//! Section 6.5.3: what streams take of memory.

use super::streams::{DISKS, Layout, Placed, load, pair, placed};
use crate::{Claim, Experiment, Findings, Paper, Run};
use report::Table;
use units::Bytes;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "clockwise-section-6.5.3",
    paper: Paper::Clockwise,
    title: "What streams take of memory",
    claim: "A stream needs two buffers for each disk that it lies on, or one for each and one \
            more where disk and network keep time with each other. One larger movie with its \
            sound on three disks takes 7.5 MB, 12 larger and 13 smaller ones 129 MB; on \
            single disks two thirds less, and about 80 MB with blocks twice as large.",
    setup: "The printed sums for the printed streams: two buffers for each disk of a stream, and \
            one for each and one more.",
    real_time: false,
    run,
};

/// The thesis's sum, in MB: two buffers for each disk of each stream.
fn printed(streams: &[Placed]) -> f64 {
    let bytes: Bytes = streams.iter().map(|it| it.block * 2).sum();
    mb(bytes)
}

/// A buffer for each disk and one more for each stream.
fn in_step(streams: &[Placed]) -> f64 {
    let one_more = streams.iter().filter(|it| it.gap == 1 || it.disk == 0);
    mb(streams.iter().chain(one_more).map(|it| it.block).sum())
}

fn mb(bytes: Bytes) -> f64 {
    bytes.get() as f64 / Bytes::MIB.get() as f64
}

fn run(_: &Run<'_>) -> Findings {
    let mut findings = Findings::default();
    let one: Vec<Placed> =
        placed(Layout::Rotation, 2).into_iter().skip(2 * DISKS as usize).collect();
    let rotation = placed(Layout::Rotation, 25);
    let single = placed(Layout::OneDisk, 25);
    let large = placed(Layout::OneDiskLarge, 25);
    // Only the larger movie and all sounds are said to be read in twice as large blocks.
    let small_movie_as_before: Bytes = (0..25)
        .flat_map(pair)
        .map(
            |track| {
                if track.name == "WG" { Bytes::kib(512) } else { Bytes::kib(track.block_kib * 4) }
            },
        )
        .sum();
    findings
        .claim(Claim::near(
            "one larger movie with sound, three disks",
            7.5,
            printed(&one),
            0.0,
            "MB",
        ))
        .claim(Claim::near(
            "12 larger and 13 smaller, three disks",
            129.0,
            printed(&rotation),
            0.0,
            "MB",
        ))
        .claim(Claim::near("the same, load", 17.0, load(25), 0.02, "MB/s"))
        .claim(Claim::near(
            "the same on single disks: less by",
            66.7,
            (1.0 - printed(&single) / printed(&rotation)) * 100.0,
            0.01,
            "%",
        ))
        .claim(Claim::near(
            "large blocks, but not the smaller movie's",
            80.0,
            mb(small_movie_as_before),
            0.02,
            "MB",
        ))
        .claim(Claim::near("all blocks twice as large", 80.0, printed(&large), 0.1, "MB"));
    let mut table = Table::new(&[
        "12 larger and 13 smaller movies",
        ">two buffers a disk, MB",
        ">one a disk and one more, MB",
    ]);
    for (name, streams) in [
        ("three disks", &rotation),
        ("single disks", &single),
        ("single disks, large blocks", &large),
    ] {
        table.row(vec![
            name.into(),
            report::number(printed(streams)),
            report::number(in_step(streams)),
        ]);
    }
    findings.table("Memory", table);
    findings
}
