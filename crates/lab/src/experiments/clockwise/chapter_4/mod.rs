//! Chapter 4: what single disks and disks side by side do.

mod fig_4_10;
mod fig_4_11;
mod fig_4_14;
mod fig_4_16;
mod fig_4_17;
mod fig_4_18;
mod fig_4_6;
mod fig_4_7;
mod fig_4_8;

use crate::Experiment;

/// In the order of the thesis.
pub(in crate::experiments) const EXPERIMENTS: &[Experiment] = &[
    fig_4_6::EXPERIMENT,
    fig_4_7::EXPERIMENT,
    fig_4_8::EXPERIMENT,
    fig_4_10::EXPERIMENT,
    fig_4_11::EXPERIMENT,
    fig_4_14::EXPERIMENT,
    fig_4_16::EXPERIMENT,
    fig_4_17::EXPERIMENT,
    fig_4_18::EXPERIMENT,
];
