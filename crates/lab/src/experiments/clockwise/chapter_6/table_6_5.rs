//! Table 6.5: the best-effort load of the busiest day.

use super::load::{Load, Order};
use crate::{Claim, Experiment, Findings, Paper, Run};
use report::{Mood, Table};
use sim::workload::cello::figures::{BUSIEST, BUSIEST_LOADS};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "clockwise-table-6.5",
    paper: Paper::Clockwise,
    title: "The best-effort load of June 1st, 1992",
    claim: "On the busiest day of its trace cello's eight disks got 801,007 requests: from \
            0.3 to 173 a minute on average, with peaks of up to 2,840 a minute.",
    setup: "The generator of a load like cello's, the whole day, each disk's requests as they \
            come to the simulated array, counted by minute.",
    real_time: false,
    run,
};

const MADE: &str = "the generator makes this day as printed";

fn run(run: &Run<'_>) -> Findings {
    let mut findings = Findings::default();
    let load = Load::cello(run.choose(1, 2), BUSIEST, Order::Grouped);
    let mut table = Table::new(&[
        "disk",
        ">requests: printed",
        ">ours",
        ">a minute on average: printed",
        ">ours",
        ">peak minute: printed",
        ">ours",
    ]);
    let (mut farthest, mut peak_farthest) = (0.0_f64, 0.0_f64);
    for (disk, (demands, printed)) in load.systems.iter().zip(BUSIEST_LOADS).enumerate() {
        let mut minutes = vec![0u64; 24 * 60];
        for demand in demands {
            minutes[(demand.at.as_millis() / 60_000) as usize] += 1;
        }
        let peak = minutes.iter().copied().max().unwrap_or(0);
        let requests = demands.len() as u64;
        farthest = farthest.max((requests as f64 / printed.requests as f64 - 1.0).abs());
        peak_farthest = peak_farthest.max((peak as f64 / printed.peak as f64 - 1.0).abs());
        let average = |requests: u64| format!("{:.1}", requests as f64 / 1440.0);
        let cells = [
            disk.to_string(),
            printed.requests.to_string(),
            requests.to_string(),
            average(printed.requests),
            average(requests),
            printed.peak.to_string(),
            peak.to_string(),
        ];
        table.moody(cells.into_iter().map(|cell| (cell, Mood::Plain)).collect());
        run.progress(disk + 1, load.systems.len());
    }
    findings
        .claim(
            Claim::near("requests of the day", 801_007.0, load.requests() as f64, 0.01, "")
                .calibrated(MADE),
        )
        .claim(
            Claim::at_most("farthest of a disk's requests from print", 2.0, farthest * 100.0, "%")
                .calibrated(MADE),
        )
        .claim(
            Claim::at_most(
                "farthest of a disk's peak minute from print",
                10.0,
                peak_farthest * 100.0,
                "%",
            )
            .calibrated(MADE),
        );
    findings.table("The load, disk by disk", table);
    findings
}
