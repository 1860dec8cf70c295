//! Chapter 3: what is asked of disks, by movies and by file systems.

mod best_effort;
mod movies;

use crate::Experiment;

/// In the order of the thesis.
pub(in crate::experiments) const EXPERIMENTS: &[Experiment] = &[
    movies::FRAMES,
    movies::DELAYS,
    movies::SPREAD,
    best_effort::CONFIGURATIONS,
    best_effort::HOURS,
    best_effort::MINUTES,
    best_effort::BURSTS,
];
