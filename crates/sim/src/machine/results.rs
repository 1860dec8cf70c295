//! What comes of a run: by disk, by stream and by load.

use super::Latencies;
use units::{Bytes, Duration};

/// What came of one disk, or of all of them together.
#[derive(Clone, Debug, Default)]
pub struct Results {
    /// Requests under contract, from release to end.
    pub real_time: Latencies,
    /// Best effort for which somebody waits, from submission to end.
    pub synchronous: Latencies,
    /// Best effort for which nobody waits.
    pub asynchronous: Latencies,
    /// Requests under contract that were done after their deadline.
    pub late: u64,
    /// The most that one was late by.
    pub late_max: Duration,
    /// Commands that took longer than their bound.
    pub overruns: u64,
    /// How long disks worked.
    pub busy: Duration,
    /// Requests that programs did not make since too many were outstanding.
    pub skipped: u64,
    /// How often a disk went from requests under contract to others, or back.
    pub switches: u64,
    /// Best-effort commands between two under contract, of runs that have ended.
    pub best_effort_runs: Runs,
}

impl Results {
    /// Requests of all kinds.
    pub fn requests(&self) -> u64 {
        self.real_time.count() + self.synchronous.count() + self.asynchronous.count()
    }

    /// What these requests moved.
    pub fn bytes(&self) -> Bytes {
        self.real_time.bytes + self.synchronous.bytes + self.asynchronous.bytes
    }

    /// Adds those of another disk or run.
    pub fn merge(&mut self, other: &Self) {
        self.real_time.merge(&other.real_time);
        self.synchronous.merge(&other.synchronous);
        self.asynchronous.merge(&other.asynchronous);
        self.late += other.late;
        self.late_max = self.late_max.max(other.late_max);
        self.overruns += other.overruns;
        self.busy += other.busy;
        self.skipped += other.skipped;
        self.switches += other.switches;
        self.best_effort_runs.merge(&other.best_effort_runs);
    }
}

/// How many commands of one kind followed each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Runs {
    /// How many runs there were.
    pub count: u64,
    /// How many commands were in them.
    pub commands: u64,
    /// The sum of the squares of their lengths.
    squares: u128,
}

impl Runs {
    pub(super) fn add(&mut self, length: u64) {
        self.count += 1;
        self.commands += length;
        self.squares += u128::from(length) * u128::from(length);
    }

    fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.commands += other.commands;
        self.squares += other.squares;
    }

    /// The mean length; zero for none.
    pub fn mean(&self) -> f64 {
        self.commands as f64 / self.count.max(1) as f64
    }

    /// How far lengths are from their mean: the standard deviation.
    pub fn standard_deviation(&self) -> f64 {
        let mean = self.mean();
        (self.squares as f64 / self.count.max(1) as f64 - mean * mean).max(0.0).sqrt()
    }
}

/// What came of one stream or one load.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Of a stream from release to end, of a load from submission to end.
    pub latencies: Latencies,
    /// Requests that were done after their deadline.
    pub late: u64,
    /// The most that one was late by.
    pub late_max: Duration,
    /// Requests that it did not make since too many were outstanding.
    pub skipped: u64,
}
