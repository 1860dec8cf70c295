//! The policies that keep every contract, and the order that the analysis takes for
//! granted. All others are in the crate `policies`.

use crate::admission::Admission;
use crate::kind::{PolicyKind, Promise, admits_always};
use crate::settings::Settings;
use alloc::boxed::Box;

mod delta_l;
mod edf;
mod edl;
pub(crate) mod elevator;
mod long;
pub(crate) mod oldest;
mod over_cost;
mod slack;

impl PolicyKind {
    /// The default: see its summary.
    pub const SLACK: Self = Self {
        name: "slack",
        summary: "Best effort in the exact online slack, in bursts. Keeps every contract.",
        promise: Promise::BOTH,
        admission: Admission::Exact,
        settings: slack::SETTINGS,
        values: Settings::of(slack::SETTINGS),
        admits: admits_always,
        start: |values| Box::new(slack::Slack::new(values)),
    };

    /// The static slack: cheaper, and less for best effort.
    pub const DELTA_L: Self = Self {
        name: "delta-l",
        summary: "Best effort in the static slack. Keeps every contract.",
        promise: Promise::BOTH,
        admission: Admission::Exact,
        settings: &[],
        values: Settings::of(&[]),
        admits: admits_always,
        start: |_| Box::new(delta_l::DeltaL::default()),
    };

    /// Earliest deadline late.
    pub const EDL: Self = Self {
        name: "edl",
        summary: "Earliest deadline late: best effort in order of arrival whenever the exact slack \
                  covers it. Keeps every contract.",
        promise: Promise::BOTH,
        admission: Admission::Exact,
        settings: &[],
        values: Settings::of(&[]),
        admits: admits_always,
        start: |_| Box::new(edl::Edl::default()),
    };

    /// Earliest deadline first: the order that the analysis takes for granted.
    pub const EDF: Self = Self {
        name: "edf",
        summary: "Earliest deadline first, best effort when nothing else waits. Best effort that \
                  begins on an idle disk can make requests late.",
        promise: Promise::EVERYONE,
        admission: Admission::Nothing,
        settings: &[],
        values: Settings::of(&[]),
        admits: admits_always,
        start: |_| Box::new(edf::Edf::default()),
    };
}
