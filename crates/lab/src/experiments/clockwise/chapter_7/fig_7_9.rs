//! Figure 7.9: a volume on two and three Atlas-IIs, read through the production schedules.

use super::super::raw::MB;
use crate::{Claim, Experiment, Findings, Paper, Run};
use disk::Model;
use report::{Axis, Chart, Series, Style, Table, number};
use sched::{Options, PolicyKind};
use sim::machine::{Arrivals, DiskSetup, LoadPlan, Machine, Places, Setup};
use units::{Bytes, Direction, Duration, Lba};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "clockwise-fig-7.9",
    paper: Paper::Clockwise,
    title: "A volume on two and three disks",
    claim: "Two Atlas-IIs with a bus each read 1.98 times as fast as one, three 2.95 times.",
    setup: "A volume whose blocks take turns on the disks, which lie in zone 0 without cache; \
            each disk has a block to read at any time, one after the other. Ours under the \
            production schedule.",
    real_time: false,
    run,
};

/// MB/s of a volume on so many disks.
fn rate(disks: u32, kib: u64, span: Duration) -> f64 {
    let model = Model::named("quantum-atlas-ii").expect("it comes with us");
    let one = DiskSetup::new(model, PolicyKind::SLACK, Options::default());
    let mut machine = Machine::new(Setup::alike(&one, disks, 1));
    for disk in 0..disks {
        machine.load(LoadPlan {
            disk,
            arrivals: Arrivals::Greedy(1),
            size: Bytes::kib(kib),
            direction: Direction::Read,
            places: Places::Sequential(Lba::new(17)..Lba::new(1_772 * 10 * 179)),
            synchronous: true,
        });
    }
    machine.warm_up(Duration::from_secs(2));
    machine.run_for(span);
    // The volume is as fast as its slowest disk.
    let slowest = (0..disks).map(|disk| machine.disk_results(disk).bytes().get()).min();
    let bytes = slowest.unwrap_or(0) * u64::from(disks);
    bytes as f64 / MB / span.as_secs_f64()
}

const APART: &str = "disks of the simulator share nothing and each has its own greedy reader, so \
                     that three are as fast as three by construction";

fn run(run: &Run<'_>) -> Findings {
    let span = Duration::from_secs(run.choose(2_000, 200));
    let sizes = [64, 256, 1024];
    let mut table =
        Table::new(&["block", ">1 disk, MB/s", ">2 disks", ">3 disks", ">times", ">times"]);
    let mut lines = [Vec::new(), Vec::new()];
    let mut findings = Findings::default();
    for (done, kib) in sizes.into_iter().enumerate() {
        let rates = [1, 2, 3].map(|disks| rate(disks, kib, span));
        let times = [rates[1] / rates[0], rates[2] / rates[0]];
        let cells = [rates[0], rates[1], rates[2], times[0], times[1]].map(number);
        table.row([vec![format!("{kib} KB")], cells.to_vec()].concat());
        for (line, times) in lines.iter_mut().zip(times) {
            line.push((kib as f64, times));
        }
        if kib == 1024 {
            findings
                .claim(
                    Claim::near("two disks, 1 MB", 1.98, times[0], 0.03, "times").calibrated(APART),
                )
                .claim(
                    Claim::near("three disks, 1 MB", 2.95, times[1], 0.03, "times")
                        .calibrated(APART),
                );
        }
        run.progress(done + 1, sizes.len());
    }
    let [two, three] = lines;
    findings.table("Reads of a volume", table).chart(
        Chart::new(
            "A volume on several disks",
            Axis::logarithmic("block, KB"),
            Axis::linear("times as fast as one disk"),
        )
        .with(Series::new("2 disks", Style::Line, two))
        .with(Series::new("3 disks", Style::Line, three))
        .reference("2 disks (printed)", 1.98)
        .reference("3 disks (printed)", 2.95),
    );
    findings
}
