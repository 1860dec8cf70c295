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
mod table_4_1;

use crate::Experiment;

/// In the order of the thesis.
pub(in crate::experiments) const EXPERIMENTS: &[Experiment] = &[
    table_4_1::ZONES,
    table_4_1::SEEKS,
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
