//! Who may join a disk's schedule, and who goes next.
//!
//! One job: decide. [`TaskSet`] is the analysis: it says whether a set of
//! contracts on one disk can be kept, and how much time stays free ([`TaskSet::slack`]).
//! [`Schedule`] is the queue of one disk: it gives each request its release time
//! and deadline, asks a [`Policy`] which request goes next, and holds what the
//! disk did against what was predicted. Time is an argument; there is no clock,
//! no I/O, no thread and no randomness.
//!
//! A disk serves one command at a time, never interrupts one, and needs at most
//! the task's `cost` for each; the host takes at most [`Options::gap`] from its end to the
//! next. Under the policies [`PolicyKind::SLACK`],
//! [`PolicyKind::DELTA_L`] and [`PolicyKind::EDL`] no request of an admitted task is late while that holds.
#![no_std]

extern crate alloc;

mod admission;
mod analysis;
mod chance;
mod commands;
mod containers;
mod cycle;
mod divide;
mod kind;
pub mod limits;
mod odds_watch;
pub mod parts;
mod phases;
mod policies;
mod policy;
mod queues;
mod request;
mod schedule;
mod settings;
mod slack;
mod sorted;
mod statistical;
mod sweep;
mod task;
mod waiting;

pub use admission::{Admission, Cycle, CycleRule, SweepRule};
pub use analysis::TaskSet;
pub use chance::Chance;
pub use commands::{
    Account, Bounded, Chunking, Ended, JustInTime, Manner, Mechanics, Motion, Part, Piece, Plan,
    Planner, Standing, Step, Way, Ways,
};
pub use cycle::{CycleAnalysis, CycleRefusal, CycleStream, shortest_cycle, time_cycle};
pub use kind::{PolicyKind, Promise, admits_always};
pub use odds_watch::{BrokenOdds, OddsWatch};
pub use policy::{Choice, Policy, View};
pub use queues::{Queues, Waiting};
pub use request::{
    Class, Contract, Counts, EndTime, First, Flow, Next, Options, Outcome, Predict, Request, Rest,
    Times, Totals,
};
pub use schedule::{Attempt, Schedule};
pub use settings::{SETTINGS_MAX, Setting, SettingUnit, Settings, ShownValue, WrongSetting};
pub use sorted::Sorted;
pub use statistical::{StatisticalAnalysis, StatisticalRefusal, StatisticalSet, StatisticalTask};
pub use sweep::{SweepAnalysis, SweepCosts, SweepPlan, SweepRefusal};
pub use task::{Analysis, Odds, Refusal, Sweep, Task, TaskId, Utilisation};
pub use waiting::{expected_waiting, expected_waiting_of, longest_waiting_of};
