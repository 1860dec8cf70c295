//! What the programs of a one-disk world do.

use units::{Bytes, Direction, Duration, Lba, Rate};

/// A stream with a contract.
#[derive(Clone, Debug)]
pub struct StreamPlan {
    /// Its contract: blocks of `block` bytes at `rate`.
    pub rate: Rate,
    /// How much it moves at a time.
    pub block: Bytes,
    /// From release to completion; the period where none is given.
    pub deadline: Option<Duration>,
    /// Which way.
    pub direction: Direction,
    /// Where on the disk.
    pub places: Places,
    /// When it asks.
    pub pace: Pace,
    /// Its first ask comes so long after it joined, or when the schedule releases its
    /// first request, whichever is later.
    pub phase: Duration,
    /// How long the schedule may put its first release off.
    pub patience: Duration,
}

/// Where requests lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Places {
    /// Anywhere in a range.
    Random(core::ops::Range<Lba>),
    /// One after the other through a range, from a random place on, round and round.
    Sequential(core::ops::Range<Lba>),
}

impl Places {
    /// The range.
    pub fn range(&self) -> core::ops::Range<Lba> {
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
}

/// Requests without a contract.
#[derive(Clone, Debug)]
pub struct LoadPlan {
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
    /// So many are always outstanding, each as long as the schedule's reserve covers
    /// and at the end of the range that the head is further from. Takes the place of
    /// `size` and of what `places` says beside the range.
    Adversary(u64),
}
