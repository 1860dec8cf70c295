//! What the programs of a machine do.

use crate::workload::Source;
use sched::Task;
use std::ops::Range;
use units::{Bytes, Direction, Duration, Lba, Rate};

/// A stream with a contract.
#[derive(Clone, Debug)]
pub struct StreamPlan {
    /// The disks that its blocks take turns on, as those of a volume do; block `n` lies
    /// on the `n`-th of them, round and round. Each of `k` disks has a task of `k`
    /// periods, with a whole block in each.
    pub disks: Vec<u32>,
    /// Its contract: blocks of `block` bytes at `rate`.
    pub rate: Rate,
    /// How much it moves at a time.
    pub block: Bytes,
    /// From release to completion; the period of its task on a disk where none is given.
    pub deadline: Option<Duration>,
    /// What a block costs a disk at the most; the bound of the disk's profile where none
    /// is given.
    pub cost: Option<Duration>,
    /// Which way.
    pub direction: Direction,
    /// Where on each of its disks.
    pub places: Places,
    /// When it asks.
    pub pace: Pace,
    /// Its first ask comes so long after it joined, or when the schedules release its
    /// first requests, whichever is later.
    pub phase: Duration,
    /// How long a schedule may put its first release off.
    pub patience: Duration,
}

/// Where requests lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Places {
    /// Anywhere in a range.
    Random(Range<Lba>),
    /// One after the other through a range, from a random place on, round and round.
    Sequential(Range<Lba>),
}

impl Places {
    /// The range.
    pub fn range(&self) -> Range<Lba> {
        match self {
            Self::Random(range) | Self::Sequential(range) => range.clone(),
        }
    }
}

/// When a stream asks for its next block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Every period.
    Steady,
    /// Every period, each time late by up to this.
    Jitter(Duration),
    /// After a period less up to so many percent, or more by up to twice that.
    Variable(u64),
    /// Keeps so many requests outstanding, though its contract allows one a period.
    Eager(u64),
    /// So many percent as often as its contract allows, answered or not.
    Hasty(u64),
}

/// Requests without a contract.
#[derive(Clone, Debug)]
pub struct LoadPlan {
    /// The disk that they go to.
    pub disk: u32,
    /// When they come.
    pub arrivals: Arrivals,
    /// How much each moves.
    pub size: Bytes,
    /// Which way.
    pub direction: Direction,
    /// Where on the disk.
    pub places: Places,
    /// Somebody waits for them.
    pub synchronous: bool,
}

/// When requests without a contract come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrivals {
    /// On average so long apart, independent of each other.
    Poisson(Duration),
    /// From one to `most` at once, bursts on average so long apart and independent.
    Bursts {
        /// The mean time between bursts.
        apart: Duration,
        /// The largest burst.
        most: u64,
    },
    /// So many are always outstanding.
    Greedy(u64),
    /// One at a time, each so long after the answer to the one before it: a program that
    /// does something with what it reads.
    After(Duration),
    /// So many are always outstanding, each as long as the schedule's reserve covers
    /// and at the end of the range that the head is further from. Takes the place of
    /// `size` and of what `places` says beside the range.
    Adversary(u64),
}

/// Requests that somebody else makes up: a generator, or a recorded load.
pub struct PlayPlan {
    /// Says what is asked for and when.
    pub source: Box<dyn Source>,
    /// Where each of the source's disks lies; demands for others are left out.
    pub targets: Vec<Target>,
    /// How fast time passes for the source, in percent: at 200 its demands come twice as
    /// fast.
    pub speed_percent: u64,
}

/// A part of a disk that stands for a disk of a [`PlayPlan`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The disk.
    pub disk: u32,
    /// The part of it. An address beyond its end is taken from its begin on again, and
    /// what is longer than it is cut.
    pub range: Range<Lba>,
    /// The contract that its requests come under, if any: `cost` of budget every `period`
    /// (Clockwise thesis, section 6.5.4).
    pub contract: Option<Task>,
}

impl Target {
    /// A part of a disk without a contract.
    pub fn new(disk: u32, range: Range<Lba>) -> Self {
        Self { disk, range, contract: None }
    }
}
