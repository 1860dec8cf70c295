//! By which analysis contracts are taken, as the policy says that is to keep them.
//!
//! *By cycles* is the inequality of the UCSB scheduler (section III.B, inequality 1; `cycle`
//! has it as printed) for requests that come when they come and are as large as they are.
//! There a program has its cycle begin with the disk's, asks for what it uses in one, and
//! nothing else is in the way. Here
//!
//! * a request has to be done within its deadline, and waits for the cycle under way where
//!   the policy gathers requests: so the cycle is the shortest deadline by
//!   [`CycleRule::cycles`];
//! * a task has one request in each cycle, however short it is, since a period is no shorter
//!   than the deadline: the work is the sum of all costs, a latency and a block each;
//! * commands that the disk was given before, `depth` of them, run into the cycle;
//! * the slack register may be used up once for each cycle that a request waits in:
//!   [`CycleRule::registers`] times.
//!
//! So the set fits iff `sum of C_i + depth * longest command + registers * register <= cycle`
//! with a register of at least the reserve. Whatever is left is added to the register. The
//! settings of a policy may make the cycle shorter than that, the register that has to fit
//! larger, and what is given away in the end smaller: none of these makes a request later.

use crate::task::Sweep;
use units::Duration;

/// By which analysis contracts are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Admission {
    /// Demand and blocking at every deadline: [`TaskSet`](crate::TaskSet).
    #[default]
    Exact,
    /// All requests of a cycle within it.
    Cycles(CycleRule),
    /// Those of a cycle in one sweep, beside others by their deadlines: [`SweepRule`].
    Sweeps(SweepRule),
    /// By none: the policy keeps no contract, whatever is taken.
    Nothing,
}

/// How a policy works in cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CycleRule {
    /// A request is done within so many cycles of its release; at least 1.
    pub cycles: u32,
    /// So many slack registers may be spent while one request waits; at least 1.
    pub registers: u32,
    /// A cycle is no longer than this.
    pub length_max: Duration,
    /// The register is at least this, also where the reserve is less.
    pub register_least: Duration,
    /// No more than this is given away in a cycle, whatever else is left of it; but for
    /// what the register is at least.
    pub register_most: Duration,
}

/// How a policy works in sweeps.
///
/// The instants at which cycles begin are `cycle` apart while the disk has work. A request of a
/// task that is served in sweeps ([`Task::sweep`](crate::Task::sweep)) is gathered by the first
/// of them that comes after its release, or at its release, and done by the next: so its task is
/// due within two cycles. All other requests go before, earliest deadline first. The set fits iff
///
/// * the other tasks can be kept beside a reserve that is no less than the longest request of a
///   sweep, since they wait for one of these at the most ([`TaskSet`](crate::TaskSet));
/// * `once + sum of n_i C_i + sum of m_j (C_j + max(back, C_j)) + depth * longest command +
///   register <= cycle`, where `n_i` is how many requests of a task in sweeps are released
///   within a cycle, and `m_j` how many of another one may be served in it, each of which the
///   arm has to come back from; the budget of a server may be many requests, each of which costs
///   a way of the arm by itself, so that the ways back are no more than the budget once more;
///   the register is the reserve and a way back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SweepRule {
    /// From the beginning of one cycle to that of the next.
    pub cycle: Duration,
}

impl SweepRule {
    /// How long after its release a request of a sweep is done at the latest.
    pub fn response(self) -> Duration {
        self.cycle.saturating_mul(2)
    }
}

/// The cycle of a set that was admitted by cycles, or by sweeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cycle {
    /// How long it is.
    pub length: Duration,
    /// What the requests of one cycle cost at the most.
    pub work: Duration,
    /// Commands that may run into it.
    pub in_the_way: Duration,
    /// The slack register: what may be given away in each cycle.
    pub register: Duration,
    /// Of `work`, what is not a sweep's: requests that go before it by their deadlines, and the
    /// ways back from them.
    pub others: Duration,
    /// What a sweep costs beside its requests; nothing without sweeps.
    pub sweep: Sweep,
}

impl CycleRule {
    /// Cycles as long as deadlines allow, of which all that is left may be given away.
    pub const fn new(cycles: u32, registers: u32) -> Self {
        let (length_max, register_most) = (Duration::MAX, Duration::MAX);
        Self { cycles, registers, length_max, register_least: Duration::ZERO, register_most }
    }

    /// What the register is at least, where the reserve is so much.
    pub fn least(&self, reserve: Duration) -> Duration {
        reserve.max(self.register_least)
    }

    /// The cycle of tasks that cost `work` in sum and are due within `deadline` at the
    /// soonest; `Err` with the cycle and the time that is missing in it where a register of
    /// `least` does not fit.
    pub(crate) fn cycle(
        self,
        deadline: Duration,
        work: Duration,
        in_the_way: Duration,
        least: Duration,
    ) -> Result<Cycle, (Duration, Duration)> {
        let length = (deadline / u64::from(self.cycles.max(1))).min(self.length_max);
        let least = self.least(least);
        let registers = u64::from(self.registers.max(1));
        let fixed = work.saturating_add(in_the_way);
        let needed = fixed.saturating_add(least.saturating_mul(registers));
        if needed > length {
            return Err((length, needed.saturating_sub(length)));
        }
        let register = length.saturating_sub(fixed) / registers;
        let register = register.min(self.register_most.max(least));
        let (others, sweep) = (Duration::ZERO, Sweep::default());
        Ok(Cycle { length, work, in_the_way, register, others, sweep })
    }
}
