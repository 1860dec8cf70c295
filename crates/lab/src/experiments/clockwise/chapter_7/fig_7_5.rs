//! Figures 7.5 and 7.6: the rest of a track is kept for the next block.

use super::super::raw::{Begin, Raw, TURN, Times, atlas};
use crate::{Claim, Experiment, Findings, Paper, Run};
use disk::{TrackRemainders, Tracks};
use report::{Axis, Chart, Series, Style, Table, number};
use units::{Bytes, Direction, Duration, Lba, SECTOR};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "clockwise-fig-7.5",
    paper: Paper::Clockwise,
    title: "A cache of the remainders of tracks",
    claim: "Without a cache a block of a volume takes slightly more than half a turn longer than \
            one that begins with a track. A cache that rounds reads up to whole tracks makes up \
            for it: 99 of 100 sequential reads of 1 KB do not reach the disk, and of blocks of \
            512 KB 30 % read five tracks and 70 % six, which takes a turn more.",
    setup: "The production cache (disk::TrackRemainders, eight tracks) before the model; blocks \
            one after the other in zone 0 from sector 17 on. No bad sectors, which the thesis \
            blames for 1 to 2 ms of its means.",
    real_time: false,
    run,
};

const KIB: [u64; 6] = [1, 16, 64, 256, 512, 1024];

/// What of zone 0 is read at the most: of its 1,548 MB, whole blocks of each size.
const ZONE_0_KB: u64 = 1_500 * 1024;

/// Blocks one after the other through the cache.
struct Cached {
    times: Times,
    /// Of a hundred, those that did not reach the disk, and those that read five tracks.
    hits: f64,
    five: f64,
    five_times: Vec<Duration>,
    six_times: Vec<Duration>,
}

fn cached(kib: u64, count: usize) -> Cached {
    let model = atlas();
    let mut raw = Raw::new(&model, kib);
    let mut cache = TrackRemainders::new(Tracks::of(&model).expect("it has tracks"), 8);
    let (mut lba, mut times, mut hits) = (17, Vec::new(), 0);
    let (mut five_times, mut six_times) = (Vec::new(), Vec::new());
    for _ in 0..count {
        match cache.plan(Lba::new(lba), Bytes::kib(kib)).read {
            None => {
                hits += 1;
                times.push(Duration::ZERO);
            }
            Some(access) => {
                let time = raw.next(&access);
                let is_five = access.len / SECTOR <= 5 * 179;
                if is_five {
                    five_times.push(time)
                } else {
                    six_times.push(time)
                }
                times.push(time);
            }
        }
        lba += kib * 2;
    }
    let percent = |part: usize| part as f64 * 100.0 / count as f64;
    Cached {
        times: Times::of(times),
        hits: percent(hits),
        five: percent(five_times.len()),
        five_times,
        six_times,
    }
}

fn run(run: &Run<'_>) -> Findings {
    let mut findings = Findings::default();
    let count = run.choose(3_000, 1_000);
    let mut table = Table::new(&["block", ">raw, ms", ">no cache, ms", ">cache, ms", ">hits, %"]);
    let (mut raw_line, mut plain_line, mut cached_line) = (Vec::new(), Vec::new(), Vec::new());
    for (done, kib) in KIB.into_iter().enumerate() {
        let many = if kib == 1 { count * 20 } else { count };
        let raw = Raw::new(&atlas(), kib).times(Direction::Read, 0, kib * 2, Begin::Track, count);
        let plain = Raw::new(&atlas(), kib + 1).sequence(0, kib * 2, count);
        let kept = cached(kib, many.min((ZONE_0_KB / kib) as usize));
        let cells = [raw.mean(), plain.mean(), kept.times.mean(), kept.hits].map(number);
        table.row([vec![format!("{kib} KB")], cells.to_vec()].concat());
        raw_line.push((kib as f64, raw.mean()));
        plain_line.push((kib as f64, plain.mean()));
        cached_line.push((kib as f64, kept.times.mean()));
        claims(kib, &raw, &plain, &kept, &mut findings);
        run.progress(done + 1, KIB.len());
    }
    let chart = Chart::new(
        "Mean times of blocks (figure 7.5)",
        Axis::logarithmic("block, KB"),
        Axis::linear("ms"),
    )
    .with(Series::new("begins with a track", Style::Line, raw_line))
    .with(Series::new("block of a volume", Style::Line, plain_line))
    .with(Series::new("with the cache", Style::Line, cached_line));
    findings.table("Figure 7.5: mean times", table).chart(chart);
    findings
}

fn claims(kib: u64, raw: &Times, plain: &Times, kept: &Cached, findings: &mut Findings) {
    let later = plain.mean() - raw.mean();
    if kib >= 512 {
        findings.claim(Claim::near(
            format!("{kib} KB without a cache: later than raw by slightly more than half a turn"),
            TURN / 2.0,
            later,
            0.2,
            "ms",
        ));
    }
    if kib < 89 {
        findings.claim(Claim::at_most(
            format!("{kib} KB: the cache makes blocks below a track quicker than raw"),
            raw.mean(),
            kept.times.mean(),
            "ms",
        ));
    } else {
        findings.claim(Claim::holds(
            format!("{kib} KB: with the cache as long as raw, to 2 ms"),
            "1 to 2 ms longer, of bad sectors",
            format!("{:+.1} ms", kept.times.mean() - raw.mean()),
            (kept.times.mean() - raw.mean()).abs() <= 2.0,
        ));
    }
    if kib == 1 {
        findings.claim(Claim::near(
            "1 KB reads that do not reach the disk",
            99.0,
            kept.hits,
            0.01,
            "%",
        ));
    }
    if kib != 512 {
        return;
    }
    let [five, six] = [&kept.five_times, &kept.six_times].map(|it| Times::of(it.clone()).mean());
    findings
        .claim(Claim::near("512 KB blocks that read five tracks", 30.0, kept.five, 0.1, "%"))
        .claim(Claim::near("512 KB blocks that read six tracks", 70.0, 100.0 - kept.five, 0.1, "%"))
        .claim(Claim::near("six tracks later than five", TURN, six - five, 0.15, "ms"))
        .chart(
            Chart::new(
                "Blocks of 512 KB in zone 0 (figure 7.6)",
                Axis::linear("ms").from(50.0),
                Axis::linear("part of requests"),
            )
            .with(raw.distribution("begins with a track"))
            .with(plain.distribution("block of a volume"))
            .with(kept.times.distribution("with the cache")),
        );
}
