//! Z. Dimitrijevic and R. Rangaswami, Quality of Service Support for Real-time Storage
//! Systems, 2003: the UCSB scheduler.

mod inequality;
mod latency;
mod scene;
mod streaming;

use crate::Experiment;

/// In the order of the paper.
pub(super) const EXPERIMENTS: &[Experiment] = &[
    inequality::EXPERIMENT,
    streaming::STEADY,
    streaming::GREEDY,
    streaming::RESPONSE,
    latency::EXPERIMENT,
];
