//! A request that waits, and under which promise.

use crate::request::{Class, Times};
use crate::task::TaskId;
use units::{Command, Duration, Instant, Lba};

/// A request that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Chosen by the caller.
    pub key: u64,
    /// Rises with every request of the schedule.
    pub arrival: u64,
    /// When it came.
    pub submitted: Instant,
    /// Under which promise.
    pub class: Class,
    /// What the disk shall do.
    pub command: Command,
    /// Its release time and deadline.
    pub times: Times,
    /// The cost of its task, or what a request to a server says itself; zero for others.
    pub cost: Duration,
    /// What it takes of a sweep, where it is served in one: what its task's contract said when it
    /// came, with the gap behind it.
    pub(crate) in_sweep: Duration,
    /// That without what is for ways of the arm.
    pub(crate) beside_ways: Duration,
    /// The period of its task; zero without one.
    pub period: Duration,
    /// Best effort for which somebody waits, or behind which such a request waits.
    pub synchronous: bool,
    /// The deadline that it was given; that of its times may be earlier, where its
    /// contract has changed since.
    pub(crate) promised: Instant,
    /// What of `cost` is no device time of its own: what the host takes between commands, and
    /// what others lose when it goes between theirs.
    pub(crate) overheads: Duration,
    /// Some of its commands are done. `cost` is then what is left.
    pub(crate) begun: bool,
    /// The most commands that are left.
    pub(crate) commands: u32,
    /// After how many commands the host takes its time, as its task was when it came.
    pub(crate) gaps: u32,
    /// What it costs more each time that another goes between its commands.
    pub(crate) resume: Duration,
    /// It costs more than its contract covers: it keeps its deadline, but waits among best
    /// effort, for slack.
    pub(crate) over_cost: bool,
    /// It needs more time than there always is some day: other best effort passes it.
    pub(crate) long: bool,
}

impl Waiting {
    /// Where on the disk it begins; the start for a flush.
    pub fn place(&self) -> Lba {
        self.command.lba().unwrap_or_default()
    }

    /// The task under whose contract it waits to be served. None for a request to a
    /// server while there is no budget for it; [`Policy::entered`](crate::Policy::entered)
    /// tells when there is.
    pub fn contract(&self) -> Option<TaskId> {
        self.class.task().filter(|_| self.times.deadline < Instant::MAX)
    }

    /// True where it waits under a contract ([`Waiting::contract`]).
    pub fn is_real_time(&self) -> bool {
        self.contract().is_some()
    }

    /// It is served at the expense of its contract.
    pub(crate) fn is_covered(&self) -> bool {
        self.is_real_time() && !self.over_cost
    }
}
