//! Table 6.2 with figure 6.3, and section 6.4.2: sets that other schedulers admit and
//! then are late with.

use crate::by_hand::{Ask, Served, play, task};
use crate::{Claim, Experiment, Findings, Paper, Run};
use policies::usd_admits;
use report::Table;
use sched::{Options, PolicyKind, Schedule};
use units::Instant;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "clockwise-table-6.2",
    paper: Paper::Clockwise,
    title: "Sets of streams that USD and LST let in and are late with",
    claim: "A test of utilisation alone (USD) admits four streams that nonpreemptive \
            scheduling cannot serve: one is 7 ms late at 507 ms. Latest start times (LST) \
            make a request late that comes after a best-effort request was let before.",
    setup: "The printed service times and periods, released together, on the production \
            schedule with the policies usd, lst and slack; admission by the exact analysis.",
    real_time: false,
    run,
};

/// Cost and period in milliseconds.
const TABLE: [(u64, u64); 4] = [(42, 250), (69, 250), (122, 1000), (163, 2000)];
/// Section 6.4.2, likewise, and its three requests.
const PAIR: [(u64, u64); 2] = [(10, 40), (20, 30)];
const SCRIPT: [Ask; 3] = [
    Ask { at: 0, task: Some(0), cost: 10 },
    Ask { at: 0, task: None, cost: 25 },
    Ask { at: 20, task: Some(1), cost: 20 },
];

fn run(_: &Run<'_>) -> Findings {
    let mut findings = Findings::default();
    let served = play(policies::USD, &TABLE, &releases(&TABLE, 2000));
    let late: Vec<&Served> = served.iter().filter(|request| request.late > 0).collect();
    let [first, ..] = late[..] else { panic!("a set that cannot be served is served") };
    let mut schedule = Schedule::new(policies::USD, Options::default());
    for (cost, period) in TABLE {
        schedule.join(Instant::EPOCH, task(cost, period)).ok();
    }
    let in_schedule = schedule.tasks().iter().count();
    let unchecked = Options { admission: false, ..Options::default() };
    let mut all = Schedule::new(policies::USD, unchecked);
    for (cost, period) in TABLE {
        all.join(Instant::EPOCH, task(cost, period)).expect("without admission");
    }
    findings
        .claim(Claim::holds(
            "USD's test of utilisation admits the set",
            "admits",
            if usd_admits(all.tasks()) { "admits" } else { "refuses" },
            usd_admits(all.tasks()),
        ))
        .claim(Claim::near("the late request is done at", 507.0, first.to as f64, 0.0, "ms"))
        .claim(Claim::near("and is late by", 7.0, first.late as f64, 0.0, "ms"))
        .claim(Claim::holds(
            "the exact analysis refuses the set",
            "refuses",
            format!("admits {in_schedule} of {} streams", TABLE.len()),
            in_schedule < TABLE.len(),
        ));
    let mut order = Table::new(&["stream", ">from, ms", ">to, ms", ">late by, ms"]);
    let script = releases(&TABLE, 2000);
    for request in served.iter().take(8) {
        let stream = script[request.ask].task.expect("no best effort here") + 1;
        let figures = [stream as u64, request.from, request.to, request.late];
        order.row(figures.iter().map(u64::to_string).collect());
    }
    findings.table("The first eight requests under USD (figure 6.3)", order);
    for (policy, printed) in [(policies::LST, 5), (PolicyKind::SLACK, 0)] {
        let late: u64 = play(policy, &PAIR, &SCRIPT).iter().map(|request| request.late).sum();
        let text = format!("section 6.4.2 under {policy}: the request of stream 2 is late by");
        findings.claim(Claim::near(text, f64::from(printed), late as f64, 0.0, "ms"));
    }
    findings.note(format!(
        "The thesis prints a utilisation of 0.6475; the production analysis counts {:.6}.",
        all.tasks().utilisation().ppm() as f64 / 1e6
    ));
    findings
}

/// Every request of tasks that release one each period until `end`, in milliseconds.
fn releases(tasks: &[(u64, u64)], end: u64) -> Vec<Ask> {
    let each = |(task, &(cost, period)): (usize, &(u64, u64))| {
        let asks = (0..end).step_by(period as usize);
        asks.map(move |at| Ask { at, task: Some(task), cost }).collect::<Vec<_>>()
    };
    let mut all: Vec<Ask> = tasks.iter().enumerate().flat_map(each).collect();
    all.sort_by_key(|ask| ask.at);
    all
}
