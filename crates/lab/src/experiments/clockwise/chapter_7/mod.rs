//! Chapter 7: what volumes on these disks do, and that programs do not disturb each other.

mod admitted;
mod fig_7_10;
mod fig_7_11;
mod fig_7_3;
mod fig_7_5;
mod fig_7_7;
mod fig_7_9;
mod section_7_3;
mod table_7_1;

use crate::Experiment;

/// In the order of the thesis.
pub(in crate::experiments) const EXPERIMENTS: &[Experiment] = &[
    table_7_1::EXPERIMENT,
    fig_7_3::EXPERIMENT,
    fig_7_5::EXPERIMENT,
    fig_7_7::EXPERIMENT,
    fig_7_9::EXPERIMENT,
    fig_7_10::EXPERIMENT,
    fig_7_11::EXPERIMENT,
    section_7_3::EXPERIMENT,
    admitted::EXPERIMENT,
];
