//! Figure 4.6: writes into the cache of a drive as it leaves the factory.

use super::super::raw::{Begin, MB, Raw, TURN, rate};
use crate::{At, Claim, Experiment, Findings, Paper, Run};
use disk::Model;
use report::{Axis, Chart, Series, Style, Table, number};
use units::{Bytes, Direction, SECTOR};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "clockwise-fig-4.6",
    paper: Paper::Clockwise,
    title: "Writes to an Atlas-II as it leaves the factory",
    claim: "With its cache on, the disk takes writes of up to five lines of its cache of 89.5 KB \
            each almost as fast as the Fast SCSI-2 bus carries them; very small ones are slow for their overhead; large ones fall to what \
            the zone's platters take, but not in zones 0 and 1, which are as fast as the bus.",
    setup: "The model with write-back; single writes that begin with a track, the arm there and \
            the buffer empty, by zone and size.",
    real_time: false,
    run,
};

const KIB: [u64; 9] = [1, 4, 16, 32, 64, 89, 256, 512, 1024];
/// 50 us a sector (thesis, section 4.3.3), in MB/s.
const BUS: f64 = 512.0 / 50e-6 / MB;

const ONE_LINE: &str = "the drive takes up to five lines of its cache, 447 KB, at the speed of the \
                        bus; in the model a write that is longer than one line goes to the \
                        platters as if there were no cache, so that the peak between is missing";

fn run(run: &Run<'_>) -> Findings {
    let model = Model::named("quantum-atlas-ii").expect("it comes with us").with_write_back(true);
    let zones = [0, 1, 2, 5, 8, 11];
    let mut chart = Chart::new(
        "Writes with the cache on",
        Axis::logarithmic("size of a write, KB"),
        Axis::linear("MB/s"),
    )
    .reference("the bus (printed)", BUS);
    let mut table =
        Table::new(&["zone", ">1 KB", ">16 KB", ">64 KB", ">89 KB", ">1 MB", ">platters"]);
    let (mut rates, mut five_lines) = (Vec::new(), f64::INFINITY);
    for (done, &zone) in zones.iter().enumerate() {
        let mut raw = Raw::new(&model, zone as u64);
        let platters = raw.zones()[zone].per_track as f64 * SECTOR.get() as f64 / MB / (TURN / 1e3);
        let found = KIB.map(|kib| {
            let block = Bytes::kib(kib);
            let count = run.choose(2_000, 200);
            let times = raw.times(Direction::Write, zone, kib * 2, Begin::Track, count);
            (kib as f64, rate(block, times.mean()))
        });
        chart = chart.with(Series::new(format!("zone {zone}"), Style::Line, found));
        let at = |kib: u64| found[KIB.iter().position(|&it| it == kib).expect("one of them")].1;
        let cells = [at(1), at(16), at(64), at(89), at(1024), platters].map(number);
        table.row([vec![zone.to_string()], cells.to_vec()].concat());
        five_lines = five_lines.min(at(256));
        rates.push((zone, at(1), at(89), at(1024), platters));
        run.progress(done + 1, zones.len());
    }
    let mut findings = Findings::default();
    let least = |pick: fn(&(usize, f64, f64, f64, f64)) -> f64| {
        rates.iter().map(pick).fold(f64::INFINITY, f64::min)
    };
    let most_small = rates.iter().map(|it| it.1).fold(0.0, f64::max);
    findings
        .claim(Claim::at_least(
            "what fits a line of the cache (89 KB) goes almost at the speed of the bus \
             (\"almost\" taken as 80 %), in the slowest zone",
            0.8 * BUS,
            least(|it| it.2),
            "MB/s",
        ))
        .claim(
            Claim::at_least(
                "and so does what fits all five lines (447 KB): 256 KB, in the slowest zone",
                0.8 * BUS,
                five_lines,
                "MB/s",
            )
            .explained(At::both(5.08), ONE_LINE),
        )
        .claim(Claim::holds(
            "1 KB is far below what the zone could take",
            "below",
            format!("{} MB/s at the most", number(most_small)),
            most_small < 0.2 * least(|it| it.4),
        ));
    for &(zone, _, cached, large, platters) in &rates {
        let claim = if zone < 2 {
            let text = format!("zone {zone}: 1 MB does not suffer (within 10 % of 89 KB)");
            Claim::at_least(text, 0.9 * cached, large, "MB/s")
        } else {
            Claim::holds(
                format!("zone {zone}: 1 MB falls from what the cache takes towards the platters"),
                format!("at most {} MB/s, its rate under the heads", number(platters)),
                format!("{} MB/s; 89 KB: {}", number(large), number(cached)),
                large < 0.97 * cached && large <= platters * 1.02,
            )
        };
        findings.claim(claim.measured(large).explained(At::both(8.36), ONE_LINE));
    }
    findings.table("Mean rate of single writes, MB/s", table).chart(chart);
    findings
}
