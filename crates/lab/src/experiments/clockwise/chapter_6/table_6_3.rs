//! Table 6.3: what movies and sounds ask for, and their periods.

use super::streams::{GROMIT, OCTOBER, SOUND, Track};
use crate::{At, Claim, Experiment, Findings, Paper, Run};
use report::{Mood, Table};
use units::{Bytes, Rate};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "clockwise-table-6.3",
    paper: Paper::Clockwise,
    title: "What movies and sounds ask for, and their periods",
    claim: "Movies as motion-JPEG ask for 245 and 817 KB/s, uncompressed video for 5.3 and \
            21.1 MB/s, sound for 172 KB/s. The table prints the period of each for blocks of \
            256 KB to 2 MB; one uncompressed full-size stream takes up three quarters of \
            three disks.",
    setup: "The period that a rate contract gets for the printed rate and block, against the \
            printed period. What three Atlas-II models move in 2 MB blocks at the rate of \
            their outermost zone stands for what the array has.",
    real_time: false,
    run,
};

const BLOCKS_KIB: [u64; 4] = [256, 512, 1024, 2048];

/// Rate in KB/s and the printed periods in ms.
const ROWS: [(Track, [u64; 4]); 5] = [
    (GROMIT, [886, 1772, 3543, 7087]),
    (OCTOBER, [313, 627, 1253, 2507]),
    (Track { name: "RGB16, 384 × 288", kib_s: 5_427, block_kib: 1024 }, [47, 94, 189, 377]),
    (Track { name: "RGB16, 768 × 576", kib_s: 21_606, block_kib: 1024 }, [12, 24, 47, 94]),
    (SOUND, [1488, 2977, 5953, 11_907]),
];

fn run(_: &Run<'_>) -> Findings {
    let mut findings = Findings::default();
    let mut table = Table::new(&[
        "track",
        ">KB/s",
        ">256 KB: printed, ms",
        ">ours",
        ">512 KB: printed",
        ">ours",
        ">1 MB: printed",
        ">ours",
        ">2 MB: printed",
        ">ours",
    ]);
    for (track, printed) in ROWS {
        let rate = Rate::per_second(track.kib_s * 1024);
        let ours = BLOCKS_KIB.map(|kib| rate.time_for(Bytes::kib(kib)).as_millis_f64());
        let plain = |words: String| (words, Mood::Plain);
        let mut cells = vec![plain(track.name.into()), plain(track.kib_s.to_string())];
        for (ours, printed) in ours.iter().zip(printed) {
            // Whole milliseconds are printed.
            let off = (ours - printed as f64).abs() > 0.6 + printed as f64 / 500.0;
            let mood = if off { Mood::Careful } else { Mood::Plain };
            cells.extend([plain(printed.to_string()), (format!("{ours:.0}"), mood)]);
        }
        table.moody(cells);
        let text = format!("period of {} in 1 MB blocks", track.name);
        findings.claim(Claim::near(text, printed[2] as f64, ours[2], 0.01, "ms").explained(
            At::both(4180.0),
            "the printed periods of this movie are those of 289 KB/s, not of the printed \
                 245 KB/s; figure 6.4's limits and its static slack come out with 245 KB/s, \
                 which we use",
        ));
    }
    findings.table("Periods", table);
    let array = 3.0 * outer_rate();
    findings.claim(Claim::near(
        "part of three disks that one full-size uncompressed stream takes",
        75.0,
        21_606.0 / 1024.0 / array * 100.0,
        0.15,
        "%",
    ));
    findings
}

/// MB/s of a disk's outermost zone in 2 MB blocks one after the other, on the model.
fn outer_rate() -> f64 {
    let time = super::atlas::sequential_read(0, Bytes::mib(2), 64, 1);
    2.0 / time.mean().as_secs_f64()
}
