//! What came of all runs, for programs (JSON) and as what words and pictures are made
//! of.
//!
//! A figure that each run has is told as the mean over the runs, with the half of its
//! 95 % confidence interval (Student's t); counts are sums over the runs. The time
//! line is the first run's.

use serde::Serialize;
use sim::runs::{Confidence, Estimate};
use sim::scenario::{Cause, ClassOutcome, FaultKind, Latencies, Outcome, Pace, Place, Scenario};
use units::{Bytes, Distribution, Duration};

/// Everything.
#[derive(Serialize)]
pub struct Results {
    pub scenario: String,
    pub about: Option<String>,
    pub policy: &'static str,
    pub admission: bool,
    pub seeds: Vec<u64>,
    pub warm_up_ns: u64,
    /// What was counted of each run, on average where they were stopped.
    pub counted_ns: u64,
    pub stopped: bool,
    /// How long each part of the time lines is.
    pub bin_ns: u64,
    /// Nothing that was promised was late, and nothing was refused.
    pub kept: bool,
    /// Requests and windows that were late or not ready, the programs' own fault aside.
    pub missed: u64,
    pub refused: u64,
    /// Disk commands of all runs.
    pub commands: u64,
    pub classes: Vec<Class>,
    pub disks: Vec<Disk>,
    pub memory: Memory,
    pub misses: Vec<Miss>,
    pub faults: Vec<Fault>,
    pub power_cuts: Vec<PowerCut>,
    pub dead: Option<String>,
}

/// A mean over the runs.
#[derive(Clone, Copy, Serialize)]
pub struct Figure {
    pub mean: f64,
    /// So much more or less; none of fewer than two runs.
    pub margin: Option<f64>,
}

impl Figure {
    fn of(values: &[f64]) -> Self {
        let estimate = Estimate::of(values);
        let margin = Some(estimate.margin(Confidence::Percent95)).filter(|it| it.is_finite());
        Self { mean: estimate.mean, margin }
    }
}

/// How times are distributed.
#[derive(Clone, Serialize)]
pub struct Spread {
    pub count: u64,
    pub mean_ns: Figure,
    pub p50_ns: Figure,
    pub p90_ns: Figure,
    pub p99_ns: Figure,
    pub p999_ns: Figure,
    /// Of all runs.
    pub max_ns: u64,
    /// All runs together, for pictures.
    #[serde(skip)]
    pub all: Distribution,
}

/// All programs of one kind.
#[derive(Serialize)]
pub struct Class {
    pub name: String,
    pub kind: &'static str,
    /// What each asks for, in words.
    pub asks: String,
    /// It has a contract that can be broken.
    pub promised: bool,
    pub asked: u64,
    pub admitted: u64,
    pub refused: u64,
    pub refusal: Option<Words>,
    pub window_bytes: u64,
    /// All of them together.
    pub bytes_per_second: Figure,
    /// What programs waited: from when a piece was due, or was asked for.
    pub waits: Spread,
    /// From opening or jumping to the first byte.
    pub begins: Spread,
    /// What the disks took under contract, from release to completion.
    pub requests: Spread,
    pub late: u64,
    pub late_max_ns: u64,
    pub underruns: u64,
    pub throttled: u64,
    pub missed: u64,
    pub causes: Vec<Count>,
    pub gap_bytes: u64,
    pub errors: u64,
    pub error: Option<Words>,
    pub skipped: u64,
    /// Why a recorded load ended before its end.
    pub problem: Option<String>,
    pub timeline: Vec<Bin>,
}

/// What was wrong, and what to do.
#[derive(Clone, Serialize)]
pub struct Words {
    pub what: String,
    pub next_step: String,
}

/// So many for this reason.
#[derive(Serialize)]
pub struct Count {
    pub cause: String,
    pub count: u64,
}

/// A part of the first run's time line.
#[derive(Serialize)]
pub struct Bin {
    pub bytes: u64,
    pub wait_max_ns: u64,
    pub missed: u64,
}

/// One disk.
#[derive(Serialize)]
pub struct Disk {
    pub model: String,
    pub promised_ppm: u64,
    pub busy: Figure,
    pub promised_bytes_per_second: Figure,
    pub best_effort_bytes_per_second: Figure,
    pub overruns: u64,
    pub overrun_max_ns: u64,
    /// Busy share of each part of the first run.
    pub timeline: Vec<f64>,
}

/// The node's memory.
#[derive(Serialize)]
pub struct Memory {
    pub total_bytes: u64,
    pub windows_max_bytes: u64,
    pub best_effort_max_bytes: u64,
}

/// One miss of the first run.
#[derive(Serialize)]
pub struct Miss {
    pub at_ns: u64,
    pub who: String,
    pub disk: Option<u16>,
    pub late_ns: u64,
    pub cause: String,
}

/// What was planned to go wrong.
#[derive(Serialize)]
pub struct Fault {
    pub name: String,
    /// None for all of them.
    pub disk: Option<u16>,
    /// Since what is counted began; before that, zero.
    pub at_ns: u64,
    pub lasts_ns: u64,
}

/// What power cuts of one run left.
#[derive(Serialize)]
pub struct PowerCut {
    pub seed: u64,
    pub at_ns: u64,
    pub writers: u64,
    pub durable_bytes: u64,
    pub lost_bytes: u64,
}

/// What all runs say together; at least one of them got to where it counts.
pub fn of(scenario: &Scenario, about: Option<String>, outcomes: &[Outcome]) -> Results {
    let classes = classes(scenario, outcomes);
    let missed = classes.iter().map(|class| class.missed).sum();
    let refused = classes.iter().map(|class| class.refused).sum();
    let first = &outcomes[0];
    let ns = outcomes.iter().map(|outcome| outcome.counted.as_nanos());
    let dead = outcomes.iter().find_map(|outcome| outcome.dead.clone());
    Results {
        scenario: scenario.name.clone(),
        about,
        policy: scenario.policy.name,
        admission: scenario.admission,
        seeds: outcomes.iter().map(|outcome| outcome.seed).collect(),
        warm_up_ns: scenario.warm_up.as_nanos(),
        counted_ns: ns.sum::<u64>() / outcomes.len() as u64,
        bin_ns: first.bin.as_nanos(),
        stopped: outcomes.iter().any(|outcome| outcome.stopped),
        kept: missed == 0 && refused == 0 && dead.is_none(),
        missed,
        refused,
        commands: outcomes.iter().map(|outcome| outcome.commands).sum(),
        disks: disks(scenario, outcomes),
        memory: Memory {
            total_bytes: scenario.memory.get(),
            windows_max_bytes: most(outcomes, |outcome| outcome.windows_max),
            best_effort_max_bytes: most(outcomes, |outcome| outcome.best_effort_max),
        },
        misses: misses(scenario, first, &classes),
        faults: faults(scenario),
        power_cuts: power_cuts(outcomes),
        dead,
        classes,
    }
}

fn most(outcomes: &[Outcome], of: impl Fn(&Outcome) -> Bytes) -> u64 {
    outcomes.iter().map(|outcome| of(outcome).get()).max().unwrap_or(0)
}

/// One value from each run.
fn each(outcomes: &[Outcome], value: impl Fn(&Outcome) -> f64) -> Figure {
    Figure::of(&outcomes.iter().map(value).collect::<Vec<f64>>())
}

fn spread(outcomes: &[Outcome], of: impl Fn(&Outcome) -> &Distribution, sums: &[f64]) -> Spread {
    let mut all = Distribution::default();
    outcomes.iter().for_each(|outcome| all.merge(of(outcome)));
    // A run in which there was none has no quantile.
    let some: Vec<&Distribution> = outcomes.iter().map(&of).filter(|it| it.count() > 0).collect();
    let quantile = |ppm: u64| {
        let values = some.iter().map(|it| it.quantile(ppm).as_nanos() as f64);
        Figure::of(&values.collect::<Vec<f64>>())
    };
    Spread {
        count: all.count(),
        mean_ns: Figure::of(sums),
        p50_ns: quantile(500_000),
        p90_ns: quantile(900_000),
        p99_ns: quantile(990_000),
        p999_ns: quantile(999_000),
        max_ns: all.max().as_nanos(),
        all,
    }
}

fn latencies(outcomes: &[Outcome], of: impl Fn(&Outcome) -> &Latencies) -> Spread {
    let some = outcomes.iter().map(&of).filter(|it| it.distribution.count() > 0);
    let means: Vec<f64> = some.map(|it| it.mean().as_nanos() as f64).collect();
    spread(outcomes, |outcome| &of(outcome).distribution, &means)
}

fn classes(scenario: &Scenario, outcomes: &[Outcome]) -> Vec<Class> {
    let streams = scenario.streams.iter().map(|plan| {
        let mode = match plan.mode {
            node::Mode::Read => "read",
            node::Mode::Write => "write",
            node::Mode::Update => "update",
        };
        let contract = &plan.contract;
        let mut asks = format!("{mode} {} in {}", contract.rate, contract.block);
        if let Pace::Frames(kind) = plan.pace {
            asks.push_str(&format!(", {} frames/s of {}", kind.pace, kind.mean));
        }
        if let Some(jumps) = plan.jumps {
            asks.push_str(&format!(", jumps every {}", span(jumps)));
        }
        (plan.name.clone(), "stream", asks, true)
    });
    let loads = scenario.loads.iter().map(|plan| {
        let (asks, promised) = load_asks(plan);
        (plan.name.clone(), "load", asks, promised)
    });
    let all = streams.chain(loads).enumerate();
    let class = |(index, (name, kind, asks, promised))| Class {
        name,
        kind,
        asks,
        promised,
        ..counted(outcomes, index)
    };
    all.map(class).collect()
}

fn load_asks(plan: &sim::scenario::LoadPlan) -> (String, bool) {
    use node::Service;
    use sim::scenario::Arrivals;
    let what = match plan.reads_percent {
        100 => "reads".into(),
        0 => "writes".into(),
        share => format!("{share} % reads"),
    };
    let when = match &plan.arrivals {
        Arrivals::Greedy(most) => format!("{what} of {}, {most} at a time", plan.block),
        Arrivals::Paced(gap) => format!("{what} of {} every {gap}", plan.block),
        Arrivals::Poisson(gap) => format!("{what} of {} about every {gap}", plan.block),
        Arrivals::Bursts { apart, most } => {
            format!("{what} of {}, up to {most} about every {apart}", plan.block)
        }
        Arrivals::From(from, 100) => format!("{from:?}"),
        Arrivals::From(from, speed) => format!("{from:?} at {speed} %"),
    };
    let on = match &plan.place {
        Place::Of(name) => format!(" on {name}"),
        Place::Own { .. } => String::new(),
    };
    match plan.service {
        None => (format!("{when}{on}"), false),
        Some(Service::BestEffort(priority)) => {
            let priority = format!("{priority:?}").to_lowercase();
            (format!("{when}{on}, {priority}"), false)
        }
        Some(Service::Rate { rate, .. }) => (format!("{when}{on}; at least {rate}"), true),
        Some(Service::Latency { within, every, .. }) => {
            (format!("{when}{on}; within {within} every {every}"), true)
        }
    }
}

fn words(error: &node::Error) -> Words {
    let problem = daemon::problem::of(error);
    Words { what: problem.detail, next_step: problem.next_step }
}

/// What was counted of one kind of program; what it is called is left open.
fn counted<'a>(outcomes: &'a [Outcome], index: usize) -> Class {
    let of = |outcome: &'a Outcome| -> &'a ClassOutcome { class_of(outcome, index) };
    let sum = |value: fn(&ClassOutcome) -> u64| -> u64 {
        outcomes.iter().map(|outcome| value(of(outcome))).sum()
    };
    let first = of(&outcomes[0]);
    let causes = Cause::ALL.iter().map(|&cause| Count {
        cause: cause.to_string(),
        count: outcomes.iter().map(|outcome| of(outcome).caused_by(cause)).sum(),
    });
    let bin = |bin: &sim::scenario::Bin| Bin {
        bytes: bin.bytes.get(),
        wait_max_ns: bin.wait_max.as_nanos(),
        missed: bin.missed,
    };
    Class {
        name: String::new(),
        kind: "",
        asks: String::new(),
        promised: false,
        asked: sum(|class| class.asked),
        admitted: sum(|class| class.admitted),
        refused: sum(
            |class| if class.refusal.is_some() { class.asked - class.admitted } else { 0 },
        ),
        refusal: outcomes.iter().find_map(|outcome| of(outcome).refusal.as_ref()).map(words),
        window_bytes: first.window.get(),
        bytes_per_second: each(outcomes, |it| rate(class_of(it, index).seen.bytes, it)),
        waits: latencies(outcomes, |outcome| &class_of(outcome, index).seen),
        begins: spread(outcomes, |outcome| &class_of(outcome, index).begins, &[]),
        requests: latencies(outcomes, |outcome| &class_of(outcome, index).requests),
        late: sum(|class| class.late.count()),
        late_max_ns: outcomes.iter().map(|it| of(it).late.max().as_nanos()).max().unwrap_or(0),
        underruns: sum(|class| class.underruns),
        throttled: sum(|class| class.throttled),
        missed: sum(ClassOutcome::missed),
        causes: causes.filter(|it| it.count > 0).collect(),
        gap_bytes: sum(|class| class.gaps.get()),
        errors: sum(|class| class.errors),
        error: outcomes.iter().find_map(|outcome| of(outcome).error.as_ref()).map(words),
        skipped: sum(|class| class.skipped),
        problem: outcomes.iter().find_map(|outcome| of(outcome).problem.clone()),
        timeline: first.timeline.iter().take(bins(&outcomes[0])).map(bin).collect(),
    }
}

/// The parts of a time line that a run got to.
fn bins(outcome: &Outcome) -> usize {
    outcome.counted.as_nanos().div_ceil(outcome.bin.as_nanos().max(1)) as usize
}

fn class_of(outcome: &Outcome, index: usize) -> &ClassOutcome {
    &outcome.classes[index]
}

fn rate(bytes: Bytes, outcome: &Outcome) -> f64 {
    bytes.get() as f64 / outcome.counted.as_secs_f64().max(1e-9)
}

fn disks(scenario: &Scenario, outcomes: &[Outcome]) -> Vec<Disk> {
    use sim::scenario::DriveKind;
    let one = |(index, plan): (usize, &sim::scenario::DiskPlan)| {
        let first = &outcomes[0];
        let bin = first.bin.as_secs_f64().max(1e-9);
        let total = |value: fn(&sim::scenario::DiskOutcome) -> u64| {
            outcomes.iter().map(move |outcome| value(&outcome.disks[index]))
        };
        let busy = |outcome: &Outcome| {
            outcome.disks[index].busy.as_secs_f64() / outcome.counted.as_secs_f64().max(1e-9)
        };
        let timeline = first.disks[index].timeline.iter().take(bins(first));
        Disk {
            model: match &plan.what {
                DriveKind::Model(model) => model.name().into(),
                DriveKind::Profile(_) => "measured".into(),
            },
            promised_ppm: total(|disk| disk.promised_ppm).max().unwrap_or(0),
            busy: each(outcomes, busy),
            promised_bytes_per_second: each(outcomes, |it| rate(it.disks[index].promised, it)),
            best_effort_bytes_per_second: each(outcomes, |it| {
                rate(it.disks[index].best_effort, it)
            }),
            overruns: total(|disk| disk.overruns).sum(),
            overrun_max_ns: total(|disk| disk.overrun_max.as_nanos()).max().unwrap_or(0),
            timeline: timeline.map(|busy| (busy.as_secs_f64() / bin).min(1.0)).collect(),
        }
    };
    scenario.disks.iter().enumerate().map(one).collect()
}

fn misses(scenario: &Scenario, outcome: &Outcome, classes: &[Class]) -> Vec<Miss> {
    let miss = |miss: &sim::scenario::Miss| Miss {
        at_ns: miss.at.as_nanos(),
        who: miss.class.map_or("the pool itself".into(), |class| classes[class].name.clone()),
        disk: miss.disk,
        late_ns: miss.late_by.as_nanos(),
        cause: match miss.fault {
            Some(fault) => format!("fault: {}", scenario.faults[fault].name),
            None => miss.cause.to_string(),
        },
    };
    outcome.misses.iter().map(miss).collect()
}

fn faults(scenario: &Scenario) -> Vec<Fault> {
    let fault = |plan: &sim::scenario::FaultPlan| Fault {
        name: plan.name.clone(),
        disk: (plan.kind != FaultKind::PowerCut).then_some(plan.disk),
        at_ns: plan.at.saturating_sub(scenario.warm_up).as_nanos(),
        lasts_ns: plan.lasts.as_nanos(),
    };
    scenario.faults.iter().map(fault).collect()
}

fn power_cuts<'a>(outcomes: &'a [Outcome]) -> Vec<PowerCut> {
    let of = |it: &'a Outcome| it.power_cuts.iter().map(move |cut| (it.seed, cut));
    let cuts = outcomes.iter().flat_map(of);
    let told = |(seed, cut): (u64, &sim::scenario::PowerCut)| PowerCut {
        seed,
        at_ns: cut.at.as_nanos(),
        writers: cut.writers,
        durable_bytes: cut.durable.get(),
        lost_bytes: cut.lost.get(),
    };
    cuts.map(told).collect()
}

/// A long time as people say it: `1.5 h`, `20 min`, `45 s`.
pub fn span(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    let short = |value: f64, unit: &str| {
        let text = format!("{value:.1}");
        format!("{} {unit}", text.trim_end_matches(".0"))
    };
    match seconds {
        s if s >= 7_200.0 => short(s / 3_600.0, "h"),
        s if s >= 120.0 => short(s / 60.0, "min"),
        _ => time.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use node::{Placement, Priority, Service};

    /// The priority is a word of the sentence; units are written as everywhere. Before, it was
    /// "reads of 64 kib".
    #[test]
    fn what_a_load_asks_for_is_told_with_its_units_as_they_are() {
        let plan = sim::scenario::LoadPlan {
            name: "Backup".into(),
            count: 1,
            service: Some(Service::BestEffort(Priority::Background)),
            place: Place::Of("Film".into()),
            arrivals: sim::scenario::Arrivals::Greedy(4),
            block: Bytes::kib(64),
            reads_percent: 100,
            sequential: false,
            starts: None,
            stops: None,
        };
        let told = load_asks(&plan);
        assert_eq!(told, ("reads of 64 KiB, 4 at a time on Film, background".into(), false));
        let own = Place::Own { size: None, placement: Placement::default() };
        let (told, _) = load_asks(&sim::scenario::LoadPlan { place: own, ..plan });
        assert_eq!(told, "reads of 64 KiB, 4 at a time, background");
    }
}
