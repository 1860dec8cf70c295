//! W. Almesberger and B. van den Brink, Active Block I/O Scheduling System, 2004 and 2005.
//!
//! Figure 14 and the latency plots of the slides are played by the whole production node
//! ([`scene`]); the table of the slides by the policies alone,
//! since batches of 10 to 160 pages are no blocks of a node: those are powers of two.

mod copier;
mod elevators;
mod figure_14;
mod kernel;
mod latency;
mod scene;

use crate::Experiment;

/// Figure 14 row by row, then the slides.
pub(super) const EXPERIMENTS: &[Experiment] = &[
    figure_14::READING,
    figure_14::WRITING,
    figure_14::TIMESHIFTING,
    latency::EXPERIMENT,
    elevators::EXPERIMENT,
    kernel::EXPERIMENT,
];
