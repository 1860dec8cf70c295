//! Chapter 6: disk scheduling. Table 6.2 stands in a file of its own.

mod atlas;
mod days;
mod fig_6_10;
mod fig_6_13;
mod fig_6_14;
mod fig_6_4;
mod fig_6_5;
mod fig_6_6;
mod fig_6_7;
mod fig_6_9;
mod fits;
mod load;
mod printed;
mod scene;
mod section_6_2;
mod section_6_5_3;
mod streams;
mod sweep;
mod table_6_3;
mod table_6_4;
mod table_6_5;

use crate::Experiment;

pub(super) use load::{Load, Order, STREAM_EXTENTS};

/// In the order of the chapter.
pub(in crate::experiments) const EXPERIMENTS: &[Experiment] = &[
    section_6_2::EXPERIMENT,
    table_6_3::EXPERIMENT,
    table_6_4::EXPERIMENT,
    table_6_5::EXPERIMENT,
    fig_6_4::EXPERIMENT,
    fig_6_5::EXPERIMENT,
    fig_6_6::EXPERIMENT,
    fig_6_7::EXPERIMENT,
    fig_6_9::EXPERIMENT,
    section_6_5_3::EXPERIMENT,
    fig_6_10::EXPERIMENT,
    fig_6_13::EXPERIMENT,
    fig_6_14::EXPERIMENT,
];
