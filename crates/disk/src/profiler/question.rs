//! What the profiler asks for and is told, and how thorough it is to be.

use alloc::vec::Vec;
use units::{Bytes, Command, Duration, Instant, SECTOR};

/// How thorough to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// A few minutes on a disk of today.
    Quick,
    /// Every zone to the track; up to an hour.
    Full,
}

/// What the profiler may do, and how much of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// How thorough to be.
    pub effort: Effort,
    /// Whether it may write. What it writes replaces what was there.
    pub write: bool,
    /// The smallest transfer that the target takes; places are multiples of it.
    pub grain: Bytes,
    /// The most commands to ask for; the findings so far count when it is reached.
    pub commands_max: u64,
    /// The most time to take, counted by the answers' own timestamps.
    pub time_max: Duration,
}

impl Options {
    /// A few minutes, reading only.
    pub fn quick() -> Self {
        Self {
            effort: Effort::Quick,
            write: false,
            grain: SECTOR,
            commands_max: 60_000,
            time_max: Duration::from_secs(8 * 60),
        }
    }
    /// Everything, reading only.
    pub fn full() -> Self {
        Self {
            effort: Effort::Full,
            commands_max: 1_000_000,
            time_max: Duration::from_secs(4 * 3_600),
            ..Self::quick()
        }
    }
}

/// The longest command that is asked for.
pub const COMMAND_MAX: Bytes = Bytes::mib(8);

/// Commands to submit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// How long to wait, from the `finished` of the last answer, before the start.
    /// To start later is harmless if `started` says so.
    pub delay: Duration,
    /// The commands, in order.
    pub commands: Vec<Command>,
    /// How many of them to keep in flight at once; at least 1.
    pub depth: u32,
}

/// What happened to one command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Taken just before the command went out.
    pub started: Instant,
    /// Taken as soon as its completion was seen.
    pub finished: Instant,
    /// True when the device answered with an error.
    pub failed: bool,
}

impl Timing {
    /// How long it took.
    pub fn taken(&self) -> Duration {
        self.finished.saturating_since(self.started)
    }
}

/// What the profiler wants next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Carry these out, then call [`Profiler::done`](super::Profiler::done).
    Ask(Question),
    /// The findings are complete.
    Done,
}

/// How far the profiler is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// What is being measured.
    pub stage: &'static str,
    /// The part done, in thousandths; an estimate that never falls.
    pub permille: u32,
    /// Commands asked for so far.
    pub commands: u64,
    /// Commands that failed.
    pub failed: u64,
}
