//! Z. Dimitrijevic, R. Rangaswami and E. Chang, Design and Implementation of
//! Semi-preemptible IO, FAST 2003.
//!
//! Everything is served by the production planner (`sched::Planner`) on the model of the
//! paper's disk, a Seagate ST318437LW, in the world of [`sim::commands`].

mod chunks;
mod contributions;
mod durations;
mod example;
mod preemption;
mod profiler;
mod seeks;
mod single;
mod tables;
mod traces;
mod waiting;
mod writes;

use crate::{Experiment, Run};
use disk::Model;
use sched::Manner;
use sim::commands::{self, Found, Load, Places, as_printed, not_preemptible};
use units::{Direction, Duration};

/// In the order of the paper.
pub(super) const EXPERIMENTS: &[Experiment] = &[
    example::EXPERIMENT,
    chunks::EXPERIMENT,
    seeks::EXPERIMENT,
    profiler::EXPERIMENT,
    waiting::FCFS,
    waiting::ELEVATOR,
    durations::EXPERIMENT,
    traces::EXPERIMENT,
    contributions::EXPERIMENT,
    preemption::TABLE_2,
    writes::TABLE_3,
    writes::TABLE_4,
];

/// The sizes of figures 9 to 17, in kB.
const SIZES: [u64; 6] = [50, 100, 250, 500, 1_000, 2_000];

fn barracuda() -> Model {
    Model::named("seagate-st318437lw").expect("a model that comes with the program")
}

/// Large requests at random places without any of higher rank. The paper writes kB; a
/// request of 500 kB is 1,000 sectors here.
fn load(run: &Run<'_>, direction: Direction, kilobytes: u64, manner: Manner) -> Load {
    Load {
        direction,
        size: 2 * kilobytes,
        places: Places::Random,
        urgent: 0,
        manner,
        span: Duration::from_secs(run.choose(1_000, 100)),
        seed: 7,
    }
}

/// The same with so many urgent requests a second, long enough for a mean of them.
fn with_urgent(run: &Run<'_>, load: Load, a_second: f64) -> Load {
    let least = run.choose(2_000.0, 300.0) / a_second;
    let span = load.span.max(Duration::from_millis((least * 1e3) as u64));
    Load { urgent: (a_second * 1_000.0) as u64, span, ..load }
}

/// As Linux did, and as the paper does.
fn both(model: &Model) -> [Manner; 2] {
    [not_preemptible(), as_printed(model)]
}

fn served(model: &Model, load: &Load) -> Found {
    commands::run(model, load)
}

/// By how many parts of a hundred `ours` is off.
fn off(printed: f64, ours: f64) -> f64 {
    100.0 * (ours / printed - 1.0)
}
