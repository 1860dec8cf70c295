//! What came of one run, in memory that does not grow with its length.

use node::Error;
use std::fmt;
use units::{Bytes, Distribution, Duration};

/// A time line has so many parts, whatever the duration.
pub const TIMELINE_BINS: usize = 120;
/// So many misses are told one by one; all are counted.
pub(super) const MISSES_TOLD: usize = 100;

/// Times of one kind, and the bytes that were moved.
#[derive(Clone, Debug, Default)]
pub struct Latencies {
    /// How they are distributed.
    pub distribution: Distribution,
    /// Their sum, in nanoseconds.
    pub sum_ns: u128,
    /// Bytes moved.
    pub bytes: Bytes,
}

impl Latencies {
    pub(super) fn add(&mut self, latency: Duration, len: Bytes) {
        self.distribution.record(latency);
        self.sum_ns += u128::from(latency.as_nanos());
        self.bytes += len;
    }

    /// Counts all that another one has counted.
    pub fn merge(&mut self, other: &Self) {
        self.distribution.merge(&other.distribution);
        self.sum_ns += other.sum_ns;
        self.bytes += other.bytes;
    }

    /// Their mean; zero for none.
    pub fn mean(&self) -> Duration {
        let count = u128::from(self.distribution.count().max(1));
        Duration::from_nanos((self.sum_ns / count) as u64)
    }
}

/// Whose fault it is that something was late.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// A fault of the scenario was at work on the disk.
    Fault,
    /// The disk took longer than its profile's bound.
    Device,
    /// The same, on a bus that others use, longer than the wait for it that its bound counts.
    Bus,
    /// Admission was off: nothing was promised.
    NoAdmission,
    /// The policy keeps no contracts.
    Policy,
    /// The program wanted more than its contract allows, or sooner.
    Client,
    /// None of these. Where a policy keeps contracts that is an error in Slackline.
    Unexplained,
}

impl Cause {
    /// Every one.
    pub const ALL: [Self; 7] = [
        Self::Fault,
        Self::Device,
        Self::Bus,
        Self::NoAdmission,
        Self::Policy,
        Self::Client,
        Self::Unexplained,
    ];

    pub(super) fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Fault => "a planned fault of the disk",
            Self::Device => "the disk took longer than its profile says",
            Self::Bus => "the bus was taken by another disk",
            Self::NoAdmission => "nothing was promised: admission is off",
            Self::Policy => "the policy keeps no contracts",
            Self::Client => "the program went beyond its contract",
            Self::Unexplained => "unexplained",
        })
    }
}

/// What became of all programs of one kind.
#[derive(Clone, Debug, Default)]
pub struct ClassOutcome {
    /// How many asked for a contract, or just began where they need none.
    pub asked: u64,
    /// How many were let in.
    pub admitted: u64,
    /// Why the first was refused that was.
    pub refusal: Option<Error>,
    /// Memory of each one's playout window.
    pub window: Bytes,
    /// What the programs saw: streams, from when a piece was due until it was in hand;
    /// loads, from asking until the answer.
    pub seen: Latencies,
    /// From opening, or from a jump, to the first byte.
    pub begins: Distribution,
    /// What the disks did under contract: from release to completion of each request.
    pub requests: Latencies,
    /// Requests done after their deadline, and by how much.
    pub late: Distribution,
    /// Times that a program that kept to its contract did not have its bytes in time: a window that was
    /// not ready, an answer that was late by the program's clock, bytes behind a rate.
    pub underruns: u64,
    /// Times that a program was slowed to its contract.
    pub throttled: u64,
    /// What was late or not ready, by [`Cause`].
    pub causes: [u64; Cause::ALL.len()],
    /// Bytes given up as declared gaps.
    pub gaps: Bytes,
    /// Times that a program was broken off, or an operation failed.
    pub errors: u64,
    /// Why the first was.
    pub error: Option<Error>,
    /// Why a recorded load ended before its end.
    pub problem: Option<String>,
    /// Requests that were not made since too many were outstanding.
    pub skipped: u64,
    /// The share of the duration that each of these was at, on the time line.
    pub timeline: Vec<Bin>,
}

impl ClassOutcome {
    /// What was late or not ready and is not the program's own fault.
    pub fn missed(&self) -> u64 {
        self.causes.iter().sum::<u64>() - self.causes[Cause::Client.index()]
    }

    /// How much of this cause.
    pub fn caused_by(&self, cause: Cause) -> u64 {
        self.causes[cause.index()]
    }
}

/// One part of a time line.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bin {
    /// Moved in it.
    pub bytes: Bytes,
    /// The longest that a program waited.
    pub wait_max: Duration,
    /// What was late or not ready.
    pub missed: u64,
}

/// What one disk did.
#[derive(Clone, Debug, Default)]
pub struct DiskOutcome {
    /// Share of its time that is promised, in parts per million.
    pub promised_ppm: u64,
    /// How long it worked.
    pub busy: Duration,
    /// Bytes moved under contract, and as best effort.
    pub promised: Bytes,
    /// See `promised`.
    pub best_effort: Bytes,
    /// Commands that took longer than their bound, and by how much at the most.
    pub overruns: u64,
    /// See `overruns`.
    pub overrun_max: Duration,
    /// Commands.
    pub commands: u64,
    /// The time line of how long it worked.
    pub timeline: Vec<Duration>,
}

/// Something that was late or not ready.
#[derive(Clone, Copy, Debug)]
pub struct Miss {
    /// When it ended, since the begin of what is counted.
    pub at: Duration,
    /// Which class, in the order of the scenario, streams first; none for the log.
    pub class: Option<usize>,
    /// Which disk; none for a program that found its window not ready.
    pub disk: Option<u16>,
    /// After its deadline.
    pub late_by: Duration,
    /// Why.
    pub cause: Cause,
    /// Which fault, where it was one.
    pub fault: Option<usize>,
}

/// What a power cut left.
#[derive(Clone, Copy, Debug)]
pub struct PowerCut {
    /// When, since the begin of the run.
    pub at: Duration,
    /// Writers that were open.
    pub writers: u64,
    /// What they had been told is on the medium.
    pub durable: Bytes,
    /// Of that, what was not there when the power was back.
    pub lost: Bytes,
}

/// What came of one run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What was random followed from it.
    pub seed: u64,
    /// The time that was counted: the duration, or less where the run was stopped.
    pub counted: Duration,
    /// How long each part of the time lines is.
    pub bin: Duration,
    /// The run was stopped before its end.
    pub stopped: bool,
    /// Streams in the scenario's order, then loads.
    pub classes: Vec<ClassOutcome>,
    /// In the scenario's order.
    pub disks: Vec<DiskOutcome>,
    /// The most memory of all windows, and of best effort, that was seen.
    pub windows_max: Bytes,
    /// See `windows_max`.
    pub best_effort_max: Bytes,
    /// The first misses.
    pub misses: Vec<Miss>,
    /// What power cuts left.
    pub power_cuts: Vec<PowerCut>,
    /// Why the pool did not come back after one.
    pub dead: Option<String>,
    /// Commands of all disks from the begin, also those that are not counted.
    pub commands: u64,
}
