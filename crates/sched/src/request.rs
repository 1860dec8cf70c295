//! What goes into a [`Schedule`](crate::Schedule) and what comes out.

use crate::admission::Admission;
use crate::{Task, TaskId};
use units::{Command, Duration, Instant, Lba};

/// Work for the disk: one command and on whose behalf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// On whose behalf, and so under which promise.
    pub class: Class,
    /// What the disk shall do.
    pub command: Command,
}

/// Under which promise a request is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Under the contract of this task: done by its deadline.
    RealTime(TaskId),
    /// Best effort with a contract: out of the budget of this server, done by a
    /// deadline from when there is budget for it; until then, and where it costs more
    /// than the whole budget or the server's longest command, like best effort.
    Server {
        /// The server, a task that has joined as [`Contract::Server`].
        task: TaskId,
        /// Bound on the device time of the command, wherever the head is.
        cost: Duration,
        /// As for best effort.
        synchronous: bool,
        /// As for best effort.
        flow: Flow,
        /// As for best effort; requests of both classes can be in one order.
        ordered: bool,
    },
    /// In the slack of the schedule.
    BestEffort {
        /// Somebody waits for the result; goes before what nobody waits for.
        synchronous: bool,
        /// Who asks. Requests of one flow are told apart from those of others.
        flow: Flow,
        /// Starts only after every earlier ordered request of the same flow is
        /// done (dependent metadata writes).
        ordered: bool,
    },
    /// Only when nothing else wants the disk.
    Background,
}

impl Class {
    /// Best effort without an order of its own, in flow 0.
    pub const fn best_effort(synchronous: bool) -> Self {
        Self::BestEffort { synchronous, flow: Flow(0), ordered: false }
    }

    /// Out of the budget of a server, waited for, without an order of its own.
    pub const fn server(task: TaskId, cost: Duration) -> Self {
        Self::Server { task, cost, synchronous: true, flow: Flow(0), ordered: false }
    }

    /// The task of this class, if it has one.
    pub const fn task(&self) -> Option<TaskId> {
        match *self {
            Self::RealTime(task) | Self::Server { task, .. } => Some(task),
            Self::BestEffort { .. } | Self::Background => None,
        }
    }

    /// Somebody waits for the result, as best effort counts it.
    pub(crate) const fn is_synchronous(&self) -> bool {
        matches!(
            self,
            Self::Server { synchronous: true, .. } | Self::BestEffort { synchronous: true, .. }
        )
    }

    /// The flow that orders it, if one does.
    pub(crate) const fn order(&self) -> Option<Flow> {
        match *self {
            Self::Server { flow, ordered: true, .. }
            | Self::BestEffort { flow, ordered: true, .. } => Some(flow),
            _ => None,
        }
    }
}

/// What a task is for; decides the class of its requests. A plain [`Task`] is a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contract {
    /// A guaranteed rate (the deadline is the period) or a guaranteed latency (it is
    /// shorter): each request ([`Class::RealTime`]) is done within the deadline of its
    /// release, and is released when it comes, or a period after the one before it.
    /// Each is one command, or several with nothing between them ([`Task::in_parts`]), or, where the
    /// task says so ([`Task::in_chunks`]) and the policy
    /// looks at the exact online slack, a sequence of commands between which those with nearer
    /// deadlines go.
    Stream(Task),
    /// Best effort with a contract ([`Class::Server`]): requests that cost up to `cost`
    /// in sum are released in any span of `period`, each done within `deadline` of its
    /// release, and none is longer than `command` (Clockwise thesis, section 6.5.4).
    Server(Task),
}

impl Contract {
    /// The task as the analysis takes it.
    pub const fn task(&self) -> Task {
        match *self {
            Self::Stream(task) if task.commands == 1 => task.whole(),
            Self::Stream(task) => task,
            Self::Server(task) => task,
        }
    }
}

impl From<Task> for Contract {
    fn from(task: Task) -> Self {
        Self::Stream(task)
    }
}

/// Who issues best-effort requests (a volume, a session); chosen by the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Flow(pub u64);

/// When a request counts as made, and when it must be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// The regulator's answer: not before the contract allows it.
    pub release: Instant,
    /// [`Instant::MAX`] for what has no deadline: best effort, and requests to a server
    /// while there is no budget for them.
    pub deadline: Instant,
}

/// Says what a command costs before it runs.
pub trait Predict {
    /// An upper bound of the device time of `command` when the head is at `from`.
    fn bound(&self, from: Lba, command: &Command) -> Duration;

    /// The same for what a request of this key waits with, where that is more than its command:
    /// a request that is served in several commands names the first.
    fn bound_of(&self, from: Lba, _key: u64, command: &Command) -> Duration {
        self.bound(from, command)
    }

    /// How many gaps between commands ([`Options::gap`]) are in what [`Predict::bound_of`] says of a
    /// request of this key: of one that is served in several commands with nothing between them, as
    /// many as follow on the first.
    fn gaps_within(&self, _key: u64) -> u32 {
        0
    }

    /// The first of the commands that a request of this key may be served in, with others in
    /// between; None where it is served as one. Asked only where the schedule lets others go
    /// between.
    fn first_of(&self, _from: Lba, _key: u64, _command: &Command) -> Option<First> {
        None
    }

    /// An upper bound of the device time of a request of this key wherever the heads are before,
    /// where it is served by one command to one place; None where not, or where that is not known:
    /// nothing else is then given to a disk that has it ([`Options::any_order`]).
    fn bound_anywhere(&self, _key: u64, _command: &Command) -> Option<Duration> {
        None
    }

    /// The device time that is likely, were it started at `at`: what a model that
    /// follows the rotation knows better than the bound. For choices that no
    /// promise rests on.
    fn expected(&self, _at: Instant, from: Lba, command: &Command) -> Duration {
        self.bound(from, command)
    }
}

/// The first command of a request that is served in several, and what is left after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct First {
    /// What of it is done first.
    pub command: Command,
    /// Bound on its device time.
    pub bound: Duration,
    /// What is left then.
    pub rest: Rest,
}

/// What is left of a request of which some commands are done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rest {
    /// Bound on its device time, where nothing else goes before it.
    pub bound: Duration,
    /// In at most so many commands.
    pub commands: u32,
}

/// [`Options::burst`] by default. Of 100 to 600 ms tried, the one that serves cello's file systems soonest at the
/// highest loads (figure 6.5: 90 ms, 102 at 100) without making those wait that come alone; where
/// all streams begin at once it costs up to 6 %.
pub(crate) const BURST: Duration = Duration::from_millis(200);

/// How a schedule is set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Off where something else decides, or for comparisons: every task is then taken.
    /// What is promised of the set holds as before; of one that cannot be kept nothing
    /// is, and `slack` lets best effort begin whenever nothing under contract waits.
    pub admission: bool,
    /// By which analysis tasks are taken. Other than exact only under the policy that keeps
    /// what it takes ([`PolicyKind::admission`](crate::PolicyKind::admission)).
    pub by: Admission,
    /// Static slack that admission leaves. At least the cost of the longest
    /// best-effort command, so that best effort never waits for ever.
    pub reserve: Duration,
    /// Once best effort was refused for want of slack, real-time requests are
    /// drained until this much slack is there: each change between the two
    /// costs long seeks. Zero: best effort goes whenever the slack covers it.
    pub burst: Duration,
    /// That much at least is as long as so many of the longest requests under contract:
    /// after a shorter run the heads would be back before they have served one of each.
    /// Without effect where `burst` is zero.
    pub burst_requests: u64,
    /// Commands that the disk may hold at once, at least 1.
    pub depth: u32,
    /// Commands that a disk of depth 1 may hold all the same, where it serves them one at a time
    /// and in an order of its own: where the slack covers all of them in the worst order, and
    /// each ends by its deadline in any. At least 1. With effect under policies that look at the
    /// exact slack.
    pub any_order: u32,
    /// The most that goes by from when the disk is done with a command, as
    /// [`finished`](crate::Schedule::finished) is told, until the next one is asked for
    /// ([`next`](crate::Schedule::next)) while there is one: the host's. Each command is
    /// charged for one, by admission (also that of the reserve, where there is one) and by
    /// the slack. Bounds and times of commands are told without it. Changed by
    /// [`set_gap`](crate::Schedule::set_gap).
    pub gap: Duration,
    /// What a command takes depends on where the heads are. Where it does not, best effort of one
    /// urgency is served in the order in which it came: no place is near, and one that seemed so would
    /// keep the others waiting.
    pub place_matters: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            admission: true,
            by: Admission::Exact,
            reserve: Duration::from_millis(50),
            burst: BURST,
            burst_requests: 1,
            place_matters: true,
            depth: 1,
            any_order: 1,
            gap: Duration::ZERO,
        }
    }
}

/// What the disk shall do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Give it this request's command, and ask again.
    Start {
        /// The key of the request.
        key: u64,
        /// Bound on its device time.
        predicted: Duration,
    },
    /// Nothing now; ask again after the next event, or at `until`.
    Wait {
        /// When the answer may change without an event.
        until: Option<Instant>,
    },
}

/// Between which two instants the disk was done with a command: whoever asks it has looked at the first
/// one, when it was not, and at the last one, when it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndTime {
    /// Not before.
    pub earliest: Instant,
    /// Not after.
    pub latest: Instant,
}

impl EndTime {
    /// It is known when.
    pub fn at(now: Instant) -> Self {
        Self { earliest: now, latest: now }
    }
}

/// A finished request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Whose it was.
    pub class: Class,
    /// Its release time and deadline.
    pub times: Times,
    /// When it was given to the disk.
    pub started: Instant,
    /// The bound on its device time.
    pub predicted: Duration,
    /// Its device time: from its start, or from the end of the command before it.
    pub actual: Duration,
    /// How long after its deadline it was done.
    pub late_by: Duration,
    /// How much longer than the bound it took.
    pub overrun: Duration,
}

/// Requests of one kind that are done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Totals {
    /// How many.
    pub requests: u64,
    /// Their device time.
    pub actual: Duration,
    /// The sum of the bounds on it.
    pub predicted: Duration,
}

/// What happened on a schedule since it was made, and what waits now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Counts {
    /// Tasks that have joined and not left.
    pub tasks: u64,
    /// Requests under contract that wait.
    pub waiting_real_time: u64,
    /// Other requests that wait.
    pub waiting_best_effort: u64,
    /// Requests under contract that are done.
    pub real_time: Totals,
    /// Other requests that are done.
    pub best_effort: Totals,
    /// Requests done after their deadline.
    pub late: u64,
    /// The most that one was late by.
    pub late_max: Duration,
    /// Commands that took longer than their bound.
    pub overruns: u64,
    /// The most that one took longer.
    pub overrun_max: Duration,
    /// Requests whose bound was above the cost of their task: the contract was
    /// made for less than what is asked under it.
    pub over_cost: u64,
    /// Best-effort requests that were started while real-time requests waited.
    pub in_slack: u64,
    /// Times that the online slack was computed in full.
    pub slack_computed: u64,
}
