//! Every bound of this crate, with its reason.

use units::Duration;

/// The longest period, deadline or cost of a task: 13 days. Sums of demand over
/// the longest horizon then fit 64 bits.
pub const PERIOD_MAX: Duration = Duration::from_nanos(1 << 50);

/// The longest interval that the analysis looks at: 2.2 years. It is only
/// reached when the utilisation is within about 10^-9 of the whole disk.
pub const HORIZON_MAX: Duration = Duration::from_nanos(1 << 56);

/// Bounds of commands count as this where they are longer: more than any slack, and short
/// enough that a disk full of such commands is free within 64 bits.
pub const BOUND_MAX: Duration = Duration::from_nanos(1 << 57);

/// The most classes (distinct pairs of period and deadline) that one analysis
/// visits before it gives up and the task is refused. About 30 ms of work.
pub const ANALYSIS_VISITS_MAX: u64 = 1 << 24;

/// From so many classes on a set keeps a summary of itself, and a decision no longer
/// looks at every one. Below, the exact search is as quick.
pub const CELLS_FROM: usize = 64;

/// The most kinds of tasks in a set that is admitted statistically: each is visited for
/// a few thousand intervals, which is then about 100 ms of work.
pub const STATISTICAL_CLASSES_MAX: usize = 1 << 13;

/// The most tasks on one disk.
pub const TASKS_MAX: usize = 1 << 16;

/// A synchronous best-effort request that waits longer goes, in its turn, before
/// requests under contract that come early and before asynchronous ones over their age.
pub const AGE_SYNCHRONOUS: Duration = Duration::from_secs(1);

/// An asynchronous best-effort request that waits longer goes before those too, and
/// before synchronous requests.
pub const AGE_ASYNCHRONOUS: Duration = Duration::from_secs(5);

/// While best-effort requests are over their age, one choice in this many is for it:
/// under overload, when all are old, the order among them survives.
pub const AGED_EVERY: u32 = 16;

/// While no best-effort request has waited longer than this, the nearest one goes first, whenever it
/// came: that makes the mean wait shortest. A wait of a quarter of a second is not counted as long.
pub const TURN_OPEN: Duration = Duration::from_millis(250);

/// How many best-effort requests one decision sets aside because the static slack does not
/// cover them: for each the slack may be looked for. Who is set aside is passed from then on,
/// so that any number of them is passed in time.
pub const LONG_TRIES: usize = 8;

/// How long others wait at first for the slack to grow for a request that was set aside: as long as a
/// wait is not counted as long. Twice as long each time that it does not suffice.
pub const LONG_HOLD: Duration = TURN_OPEN;

/// They never wait longer than this at once, and then not for [`LONG_PAUSES`] times as long.
pub const LONG_HOLD_MAX: Duration = Duration::from_secs(4);

/// So many times as long as others were held back they go on before it happens again.
pub const LONG_PAUSES: u64 = 4;

/// Between two looks at whether there is slack for one that was set aside: the slack is
/// looked for in full each time.
pub const LONG_PAUSE_MIN: Duration = Duration::from_millis(50);

/// How many waiting requests a policy looks at, in each direction, for one near the
/// heads: among more, one that may go is most often found sooner, and if not, the
/// oldest is as good.
pub const NEAR_MAX: usize = 16;

/// With more tasks than this the released requests of their contracts go by deadline
/// alone: whether another order is safe takes a look at all tasks.
pub const NEAR_TASKS_MAX: usize = 64;

/// How many bursts of slack are worth knowing exactly; more is reported as this.
pub const SLACK_BURSTS: i64 = 4;

/// How many of the longest periods the online slack looks ahead for more slack than
/// is needed at once.
pub const SLACK_PERIODS: i128 = 2;

/// The most deadlines of one computation of the online slack, each a visit of all
/// tasks; past it the slack counts as nothing, which is safe. It takes a
/// utilisation of about 99.9 % to get there.
pub const SLACK_LEDGES_MAX: u64 = 256;

/// What a computation of the slack may cost: for each task, request and slot that it
/// looks at it is paid with so much time, in which none is begun anew. That is ten times
/// what a look takes, so that a tenth of the time at the most goes into them.
pub const SLACK_VISIT: Duration = Duration::from_nanos(100);

/// So much may be owed for computations.
pub const SLACK_CREDIT: Duration = Duration::from_millis(2);

/// With fewer tasks computations are not counted: they take some microseconds.
pub const SLACK_FREE_TASKS: usize = 64;

/// Slots over which a computation of the online slack spreads all work by deadline:
/// 8 KiB of memory, and on a hard disk a few commands each.
pub const SLACK_SLOTS: usize = 1024;

/// Where more requests than this for each task are due within the horizon (one task
/// is much quicker than the longest), the slots are not used.
pub const SLACK_JOBS_PER_TASK: u64 = 16;

/// The most instants from which on parts of a server's budget can be released again. Past
/// it the two nearest to each other count as the later one.
pub const SERVER_PIECES_MAX: usize = 16;

/// The most delays that are tried for the first request of a task that joins a busy
/// disk; each is twice the one before, from an eighth of its deadline.
pub const DELAYS_MAX: u32 = 10;
/// Earlier deadlines that are tried for a request that shall be hurried, each at twice
/// the time of the one before.
pub const ADVANCE_ATTEMPTS_MAX: u32 = 12;

/// Nothing more is given to a disk that orders its commands itself, once one that it has was given
/// to it so long ago: it may prefer others, but not for ever.
pub const BESIDE_FOR: Duration = Duration::from_secs(1);

/// How often a best-effort command that waits on an idle disk for want of slack
/// is looked at again. Where the reserve covers it, it never waits there.
pub const SLACK_RETRY: Duration = Duration::from_millis(1);

// A task's first deadline, and the sum of all costs, lie inside the horizon.
const _: () = assert!(PERIOD_MAX.as_nanos() < HORIZON_MAX.as_nanos());
// No slack is known that covers a command of this bound.
const _: () = assert!(HORIZON_MAX.as_nanos() < BOUND_MAX.as_nanos());
