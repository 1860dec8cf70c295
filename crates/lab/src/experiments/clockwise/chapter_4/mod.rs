//! Chapter 4: what single disks and disks side by side do.

mod fig_4_10;
mod fig_4_14;
mod fig_4_17;
mod fig_4_6;
mod fig_4_7;

use crate::Experiment;

/// In the order of the thesis.
pub(in crate::experiments) const EXPERIMENTS: &[Experiment] = &[
    fig_4_6::EXPERIMENT,
    fig_4_7::EXPERIMENT,
    fig_4_10::EXPERIMENT,
    fig_4_14::EXPERIMENT,
    fig_4_17::EXPERIMENT,
];
