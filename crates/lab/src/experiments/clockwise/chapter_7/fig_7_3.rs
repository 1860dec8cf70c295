//! Figures 7.3 and 7.4: blocks of a volume beside requests that begin with a track.

use super::super::raw::{Begin, Raw, TURN, atlas};
use crate::{At, Claim, Experiment, Findings, Paper, Run};
use report::{Axis, Chart, Table, number};
use units::Direction;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "clockwise-fig-7.3",
    paper: Paper::Clockwise,
    title: "Blocks of a volume in the outer and the inner zone",
    claim: "Blocks of a volume do not begin with tracks. Reading them one after the other takes \
            at most one turn longer than reads that do; short ones, which are sent when all is \
            in the cache, differ only by a step to the next track.",
    setup: "A volume from sector 17 of the zone on, read block by block without cache, the \
            platters at any angle; beside it reads that begin with tracks.",
    real_time: false,
    run,
};

const KIB: [u64; 6] = [1, 16, 64, 256, 512, 1024];
/// The longest step to the next track, in ms (thesis, figure 4.5: one cylinder takes 1.4 to
/// 3.2).
const STEP: f64 = 3.2;

/// By how much the longest is longer in zone 11, thorough and quick, in ms.
const INNER: [(&str, f64, f64); 3] = [
    ("zone 11, 256 KB", 0.781, 0.808),
    ("zone 11, 512 KB", 0.481, 0.481),
    ("zone 11, 1024 KB", -0.301, -0.147),
];

fn run(run: &Run<'_>) -> Findings {
    let mut findings = Findings::default();
    let count = run.choose(6_000, 1_000);
    for (figure, zone) in [("7.3", 0), ("7.4", 11)] {
        let mut table = Table::new(&[
            "block",
            ">raw, mean",
            ">volume, mean",
            ">raw, longest",
            ">volume, longest",
            ">longer by",
        ]);
        let mut worst: f64 = 0.0;
        for (at, kib) in KIB.into_iter().enumerate() {
            let sectors = kib * 2;
            let raw =
                Raw::new(&atlas(), kib).times(Direction::Read, zone, sectors, Begin::Track, count);
            let volume = Raw::new(&atlas(), kib + 7).sequence(zone, sectors, count);
            let longer = volume.longest() - raw.longest();
            worst = worst.max(longer);
            let cells =
                [raw.mean(), volume.mean(), raw.longest(), volume.longest(), longer].map(number);
            table.row([vec![format!("{kib} KB")], cells.to_vec()].concat());
            let text = |what: &str| format!("zone {zone}, {kib} KB: the longest is {what}");
            if kib <= 16 {
                findings.claim(Claim::at_most(
                    text("longer by a step at the most"),
                    STEP,
                    longer,
                    "ms",
                ));
            } else if kib >= 256 {
                let claim = Claim::near(text("longer by a turn"), TURN, longer, 0.25, "ms");
                let at = At::in_list(&INNER, &format!("zone {zone}, {kib} KB")).spread(0.1);
                findings.claim(claim.explained(
                    at,
                    "in inner zones, where the bus is quicker than the platters, the model's long \
                     reads wait for their first sector wherever they begin, as section 4.3.4 \
                     supposes of the drive: one that begins with its track has that turn already",
                ));
            }
            if kib == 1024 {
                let chart = Chart::new(
                    format!("1 MB in zone {zone} (figure {figure})"),
                    Axis::linear("ms").from(raw.shortest() * 0.95),
                    Axis::linear("part of requests"),
                );
                let both = chart.with(raw.distribution("begins with a track"));
                findings.chart(both.with(volume.distribution("block of a volume")));
            }
            run.progress(at + 1 + if zone == 0 { 0 } else { KIB.len() }, 2 * KIB.len());
        }
        findings
            .claim(Claim::at_most(
                format!("zone {zone}: no block is longer by more than a turn and a step"),
                TURN + STEP,
                worst,
                "ms",
            ))
            .table(format!("Figure {figure}: reads in zone {zone}, ms"), table);
    }
    findings.claim(Claim::not_reproducible(
        "the long tail of all figures",
        "a tail",
        "it comes from the bad sectors of that drive, whose places are not printed; docs/disks.md \
         says how a model is given bad sectors",
    ));
    findings
}
