//! A contract as the scheduler sees it, and what the analysis says about it.

use crate::chance::Chance;
use core::fmt;
use units::Duration;

/// One stream on one disk: requests at least `period` apart, each at most `cost`
/// of device time, each done `deadline` after its release. A request may be served in
/// several commands, between which others may go.
///
/// Invariant: `0 < command <= cost <= deadline <= period <= limits::PERIOD_MAX`, `commands > 0`,
/// `parts > 0` and `resume <= command`; where requests are served in sweeps, the deadline may be longer than
/// the period, and is no longer than `limits::PERIOD_MAX`; so where they have odds ([`Odds`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Task {
    /// The least time between two releases.
    pub period: Duration,
    /// From release to completion at the most; the period for a rate contract.
    pub deadline: Duration,
    /// Bound on the device time of one request: of all of its commands, and of what
    /// it makes others lose by going between theirs.
    pub cost: Duration,
    /// Bound on the longest piece of a request that is never interrupted: what
    /// others may have to wait for. The whole cost where a request is one command.
    pub command: Duration,
    /// The most commands that a request is served in, where a nearer deadline may come between
    /// them; 1 where it is not interrupted. A server's requests are one command each.
    pub commands: u32,
    /// The most commands that a request is served in where nothing comes between them: after each
    /// of them the host takes its time. 1 where it is one command, and where `commands` are several.
    pub parts: u32,
    /// Bound on what a request costs more for each time that another one came between its
    /// commands. Not in `cost`: those that come between are charged for it
    /// ([`Contract::Stream`](crate::Contract::Stream)).
    pub resume: Duration,
    /// Its requests are gathered, and served with others in one sweep over the disk: `cost` is
    /// what one takes in a sweep. None where each request is served by its own deadline, and
    /// costs at most so much wherever the arm was before.
    pub sweep: Option<Sweep>,
    /// A request may be late now and then: it is served in what those leave that may not, ahead of
    /// best effort. None where no request is late.
    pub odds: Option<Odds>,
}

/// How often a request may be late, and what is known of its cost, which is at most `most` and has
/// this mean and this standard deviation, or less.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Odds {
    /// Each request by itself is late with at most this probability.
    pub miss: Chance,
    /// At most `most`.
    pub mean: Duration,
    /// At most `most`.
    pub deviation: Duration,
    /// The bound of the cost for those that may be late. (That of the task is what others have to
    /// let it have in one piece.)
    pub most: Duration,
}

/// What a sweep costs beside the requests that it serves. Of several tasks on one disk the
/// most counts, once for each sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Sweep {
    /// The way to the first request, from wherever the arm was, and what all distances between
    /// requests add to what each of these is charged for its own.
    pub once: Duration,
    /// The way back to the sweep, after something else went in between.
    pub back: Duration,
    /// What of a request's cost is for ways of the arm, all of which are charged for together: the
    /// rest bounds what it takes from where it ends. Each task has its own.
    pub ways: Duration,
}

impl Odds {
    /// A request is one command, in no sweep, and no number is above `most`, which is within the
    /// deadline.
    fn is_valid(&self, task: &Task) -> bool {
        let is_plain = task.sweep.is_none() && task.commands == 1 && task.parts == 1;
        let is_bound = self.mean.max(self.deviation).max(task.cost) <= self.most;
        is_plain && is_bound && self.most <= task.deadline
    }
}

impl Sweep {
    /// The most of each.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        let (once, back) = (self.once.max(other.once), self.back.max(other.back));
        Self { once, back, ways: self.ways.max(other.ways) }
    }
}

impl Task {
    /// A task whose requests are one command each.
    pub const fn new(period: Duration, deadline: Duration, cost: Duration) -> Self {
        let (commands, parts, resume) = (1, 1, Duration::ZERO);
        let (command, sweep, odds) = (cost, None, None);
        Self { period, deadline, cost, command, commands, parts, resume, sweep, odds }
    }

    /// The same task with requests that may be late with these odds.
    #[must_use]
    pub const fn at_odds(self, odds: Odds) -> Self {
        Self { odds: Some(odds), ..self }
    }

    /// The same task with requests that are served in sweeps.
    #[must_use]
    pub const fn in_sweeps(self, sweep: Sweep) -> Self {
        Self { sweep: Some(sweep), ..self }
    }

    /// The same task with requests in up to so many commands, one after the other with nothing
    /// between them.
    #[must_use]
    pub const fn in_parts(self, parts: u32) -> Self {
        Self { parts, ..self }
    }

    /// The same task with requests in commands of at most `command` each; of at most
    /// the whole cost.
    #[must_use]
    pub fn in_commands(self, command: Duration) -> Self {
        Self { command: command.min(self.cost), ..self }
    }

    /// The same task with requests in up to `commands` commands of at most `command` each,
    /// between which nearer deadlines come; `resume` bounds what a request costs more each time.
    #[must_use]
    pub fn in_chunks(self, command: Duration, commands: u32, resume: Duration) -> Self {
        let command = command.min(self.cost);
        Self { command, commands, parts: 1, resume: resume.min(command), ..self }
    }

    /// The same task with each request as one command.
    #[must_use]
    pub const fn whole(self) -> Self {
        Self { command: self.cost, resume: Duration::ZERO, ..self }
    }

    /// After how many commands of a request the host takes its time, at the most.
    pub(crate) fn gaps(&self) -> u32 {
        self.commands.max(self.parts)
    }

    /// True where the invariant of this type holds.
    pub fn is_valid(&self) -> bool {
        !self.command.is_zero()
            && self.command <= self.cost
            && self.commands > 0
            && (self.parts == 1 || self.parts > 1 && self.commands == 1)
            && self.resume <= self.command
            && self.cost <= self.deadline
            && (self.deadline <= self.period || self.sweep.is_some() || self.odds.is_some())
            && self.odds.is_none_or(|odds| odds.is_valid(self))
            && self.deadline.max(self.period) <= crate::limits::PERIOD_MAX
    }
}

/// Names a task of one [`TaskSet`](crate::TaskSet) or [`Schedule`](crate::Schedule);
/// never used again after the task is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

impl TaskId {
    /// Its place among the tasks that are there now: for [`Policy::remember`](crate::Policy::remember).
    pub const fn index(self) -> u32 {
        self.index
    }
}

/// The share of the disk's time that is promised, rounded up by less than 2^-64
/// for each class of tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Utilisation(pub(crate) u128);

/// The whole disk, in units of 2^-64.
pub(crate) const WHOLE: u128 = 1 << 64;

impl Utilisation {
    /// The whole disk.
    pub const WHOLE: Self = Self(WHOLE);

    /// In units of 2^-64 of the disk.
    pub const fn parts(self) -> u128 {
        self.0
    }

    /// Parts per million, rounded up.
    pub fn ppm(self) -> u64 {
        u64::try_from((self.0.saturating_mul(1_000_000)).div_ceil(WHOLE)).unwrap_or(u64::MAX)
    }
}

impl fmt::Display for Utilisation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ppm = self.ppm();
        write!(f, "{}.{:04} %", ppm / 10_000, ppm % 10_000)
    }
}

/// What the analysis says of a set that can be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Analysis {
    /// The share of the disk that is promised.
    pub utilisation: Utilisation,
    /// The static slack: the least of `L - demand(L) - blocking(L)` over all
    /// deadlines `L` from a common start; [`Duration::MAX`] for no tasks.
    pub slack: Duration,
    /// The interval at which the slack is that small (the largest such, unless
    /// several are equal and the search met another first).
    pub critical: Duration,
    /// False where the slack was not found in bounded work: `slack` is then a lower
    /// bound, and `critical` means nothing.
    pub exact: bool,
    /// Classes that the search visited, for tests and benchmarks.
    pub visits: u64,
}

/// Why a task cannot be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Utilisation with the task, in parts per million, rounded up.
    pub utilisation_ppm: u64,
    /// The earliest deadline `L`, from a common start, by which more time would be
    /// asked for than there is (the reserve counts as asked for), and by how much.
    /// None where the utilisation alone leaves too little, or where `undecided`.
    pub deadline: Option<(Duration, Duration)>,
    /// The analysis reached one of its bounds (see [`limits`](crate::limits))
    /// before an answer, or the disk is so far behind that no time is in sight when
    /// the task could begin: refused, to be safe.
    pub undecided: bool,
}

impl Refusal {
    /// There is no answer beside what waits now, at this utilisation with the task.
    pub fn undecided(utilisation_ppm: u64) -> Self {
        Self { utilisation_ppm, deadline: None, undecided: true }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let utilisation = Utilisation(u128::from(self.utilisation_ppm) * WHOLE / 1_000_000);
        write!(f, "the disk would be promised to {utilisation}")?;
        if let Some((interval, excess)) = self.deadline {
            write!(f, "; within {interval} it would be asked for {excess} more than there is")?;
        }
        if self.undecided {
            write!(f, "; too close to the limit, or the disk too far behind, to promise it now")?;
        }
        Ok(())
    }
}
impl core::error::Error for Refusal {}
