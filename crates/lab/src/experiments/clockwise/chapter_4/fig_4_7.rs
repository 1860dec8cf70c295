//! Figure 4.7: reads without a cache.

use super::super::raw::{Begin, Raw, TURN, atlas, rate};
use crate::{At, Claim, Experiment, Findings, Paper, Run};
use report::{Axis, Chart, Series, Style, Table, number};
use units::{Direction, SECTOR};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "clockwise-fig-4.7",
    paper: Paper::Clockwise,
    title: "Reads of an Atlas-II without its cache",
    claim: "Small reads are slow for overhead and rotation, large ones stream. Reads of up to a \
            track are sent once half of it is in; from two tracks on the bus begins when a whole \
            track is in. In inner zones three tracks are slower than two.",
    setup: "The model without cache; single reads that begin with a track, the arm there, the \
            platters at any angle; by zone and size.",
    real_time: false,
    run,
};

/// Sectors, and the shortest and longest times printed of zone 0, in ms.
const RANGES: [(u64, f64, f64); 4] =
    [(2, 2.0, 11.1), (179, 15.0, 20.9), (180, 15.1, 21.0), (358, 27.4, 29.5)];

const OVERHEADS: &str = "the model's overheads were chosen to meet the extremes of two sectors";
const MEGABYTES: &str = "the time of a sector on the bus was chosen to meet it in zone 0, and the \
                         skews in zone 11";

fn run(run: &Run<'_>) -> Findings {
    let mut findings = Findings::default();
    let count = 20_000; // The shortest and the longest are rare.
    let mut raw = Raw::new(&atlas(), 1);
    for (sectors, shortest, longest) in RANGES {
        let times = raw.times(Direction::Read, 0, sectors, Begin::Track, count);
        let text = |which: &str| format!("{sectors} sectors of zone 0, {which}");
        let [shortest, longest] = [
            Claim::near(text("shortest"), shortest, times.shortest(), 0.05, "ms"),
            Claim::near(text("longest"), longest, times.longest(), 0.05, "ms"),
        ]
        .map(|claim| if sectors == 2 { claim.calibrated(OVERHEADS) } else { claim });
        findings.claim(shortest).claim(longest);
    }
    for (zone, mean) in [(0, 116.0), (11, 184.0)] {
        let times = raw.times(Direction::Read, zone, 2048, Begin::Track, count / 4);
        let text = format!("1 MB of zone {zone}, mean");
        findings.claim(Claim::near(text, mean, times.mean(), 0.02, "ms").calibrated(MEGABYTES));
    }
    by_size(run, &mut raw, &mut findings);
    findings
}

/// Mean rates by tracks and by zone.
fn by_size(run: &Run<'_>, raw: &mut Raw, findings: &mut Findings) {
    let mut chart = Chart::new(
        "Reads without a cache",
        Axis::linear("size of a read, tracks"),
        Axis::linear("MB/s"),
    );
    let mut table = Table::new(&[
        "zone",
        ">2 sectors",
        ">1 track",
        ">2 tracks",
        ">3 tracks",
        ">12 tracks",
        ">under the heads",
    ]);
    for (done, zone) in [0, 3, 4, 7, 11].into_iter().enumerate() {
        let per_track = raw.zones()[zone].per_track;
        let mut mean = |sectors: u64| {
            let times =
                raw.times(Direction::Read, zone, sectors, Begin::Track, run.choose(4_000, 400));
            rate(SECTOR * sectors, times.mean())
        };
        let small = mean(2);
        let rates: Vec<f64> = (1..=12).map(|tracks| mean(tracks * per_track)).collect();
        let points = rates.iter().enumerate().map(|(at, &rate)| (at as f64 + 1.0, rate));
        chart = chart.with(Series::new(format!("zone {zone}"), Style::Line, points));
        let heads = rate(SECTOR * per_track, TURN);
        let cells = [small, rates[0], rates[1], rates[2], rates[11], heads].map(number);
        table.row([vec![zone.to_string()], cells.to_vec()].concat());
        findings.claim(Claim::holds(
            format!("zone {zone}: small reads are slow, large ones stream"),
            "overhead and half a turn, against little of either",
            format!("{} MB/s of 2 sectors, {} of 12 tracks", number(small), number(rates[11])),
            small < rates[11] / 20.0 && rates[11] > 0.75 * heads.min(9.77),
        ));
        let falls = rates[2] < rates[1] * 1.02;
        if zone == 11 {
            findings.claim(
                Claim::holds(
                    "zone 11: three tracks go no faster than two",
                    "much slower",
                    format!("{} and {} MB/s", number(rates[2]), number(rates[1])),
                    falls,
                )
                .measured(rates[2] / rates[1])
                .explained(
                    At::both(1.035).spread(0.01),
                    "from three tracks on the model waits for the first sector where the bus is \
                 quicker than the platters, which costs half a turn on average and takes most of \
                 the growth away; how far the drive fell is only in the plot",
                ),
            );
        } else if zone == 0 {
            findings.claim(Claim::holds(
                "zone 0: three tracks go faster than two",
                "faster",
                format!("{} and {} MB/s", number(rates[2]), number(rates[1])),
                !falls,
            ));
        }
        if zone == 4 {
            let slower = rates[9] < rates[8];
            findings.claim(
                Claim::holds(
                    "zone 4: a whole cylinder (10 tracks) goes slower than 9 tracks",
                    "slower",
                    format!("{} and {} MB/s", number(rates[9]), number(rates[8])),
                    slower,
                )
                .measured(rates[9] / rates[8])
                .explained(
                    At::each(1.006, 1.004).spread(0.002),
                    "the thesis supposes that the bus catches up with the platters there and \
                     waits, and cannot say by what rule; nor has the model one",
                ),
            );
        }
        run.progress(done + 1, 5);
    }
    findings.table("Mean rate of single reads, MB/s", table).chart(chart);
}
