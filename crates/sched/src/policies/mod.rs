//! The policies, and the table that names them.

use crate::policy::Policy;
use crate::request::Options;
use crate::schedule::Schedule;
use alloc::boxed::Box;
use core::fmt;
use core::str::FromStr;

mod abiss;
mod anticipatory;
mod best_effort_first;
mod bubble_up;
mod c_scan;
mod cello;
mod cfq;
mod deadline;
mod delta_l;
mod delta_l_1999;
mod drr;
mod edf;
mod edl;
mod elevator;
mod fcfs;
mod freeblock;
mod gss;
mod long;
mod look;
mod lst;
mod noop;
mod over_cost;
mod places;
mod ranked;
mod rate_monotonic;
mod rest;
mod round_robin;
mod satf;
mod scan;
mod scan_edf;
mod slack;
mod sstf;
mod time_cycle;
mod ucsb;
mod usd;

pub use usd::usd_admits;

impl Schedule {
    /// An empty schedule under one of the known policies.
    ///
    /// # Panics
    /// Where `options.depth` is zero.
    pub fn new(policy: PolicyKind, options: Options) -> Self {
        Self::with_policy(policy.start(), options)
    }

    /// Goes on under another policy, with the same contracts and requests.
    pub fn set_policy(&mut self, policy: PolicyKind) {
        self.follow(policy.start());
    }
}

/// What a policy promises, besides an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promise {
    /// No request of an admitted task is late while costs stay within bounds,
    /// whatever else comes.
    pub contracts: bool,
    /// Every best-effort request is served in the end, whatever best effort comes
    /// after it, while tasks keep to their contracts and leave some of the disk.
    pub everyone: bool,
}

const NOTHING: Promise = Promise { contracts: false, everyone: false };
const EVERYONE: Promise = Promise { contracts: false, everyone: true };
const BOTH: Promise = Promise { contracts: true, everyone: true };

/// One line registers a policy: its kind, its name, what it promises, how it starts.
macro_rules! policies {
    ($($(#[doc = $doc:literal])* $kind:ident, $name:literal, $promise:expr, $new:expr;)*) => {
        /// Which policy a schedule follows.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum PolicyKind {
            $($(#[doc = $doc])* $kind,)*
        }

        impl PolicyKind {
            /// Every policy.
            pub const ALL: &[Self] = &[$(Self::$kind,)*];

            /// The name that people write.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$kind => $name,)* }
            }

            /// What it promises.
            pub const fn promise(self) -> Promise {
                match self { $(Self::$kind => $promise,)* }
            }

            /// What it is, in a sentence or two.
            pub const fn summary(self) -> &'static str {
                match self { $(Self::$kind => concat!($($doc,)*).trim_ascii_start(),)* }
            }

            /// The policy in its first state.
            pub fn start(self) -> Box<dyn Policy> {
                match self { $(Self::$kind => Box::new($new),)* }
            }
        }
    };
}

policies! {
    /// Best effort in the exact online slack, in bursts. Keeps every contract.
    Slack, "slack", BOTH, slack::Slack::default();
    /// Best effort in the static slack. Keeps every contract.
    DeltaL, "delta-l", BOTH, delta_l::DeltaL::default();
    /// Earliest deadline first, best effort when nothing else waits. Best effort
    /// that begins on an idle disk can make requests late.
    Edf, "edf", EVERYONE, edf::Edf::default();
    /// Contracts only where no best effort waits: what they cost best effort under `slack`.
    BestEffortFirst, "best-effort-first", EVERYONE, best_effort_first::BestEffortFirst::default();
    /// First come, first served. Contracts count for nothing.
    Fcfs, "fcfs", EVERYONE, fcfs::Fcfs::default();
    /// The nearest request next. Promises nothing; what is far can wait for ever.
    Sstf, "sstf", NOTHING, sstf::Sstf::default();
    /// The shortest device time next. Promises nothing; what is slow can wait for ever.
    Satf, "satf", NOTHING, satf::Satf::default();
    /// Up and down from edge to edge; a turn serves what waited when it began.
    Scan, "scan", EVERYONE, scan::Scan::default();
    /// Upward only, then back to the lowest.
    CScan, "c-scan", EVERYONE, c_scan::CScan::default();
    /// Up and down, turning at the last request.
    Look, "look", EVERYONE, look::Look::default();
    /// C-SCAN, with background work in rotations that would be waited out.
    Freeblock, "freeblock", EVERYONE, freeblock::Freeblock::default();
    /// The shortest period first. Admission does not cover it.
    RateMonotonic, "rate-monotonic", EVERYONE, rate_monotonic::RateMonotonic::default();
    /// Earliest deadline first, with sweeps among deadlines that are as good as equal.
    ScanEdf, "scan-edf", EVERYONE, scan_edf::ScanEdf::default();
    /// Earliest deadline late: best effort in order of arrival whenever the exact
    /// slack covers it. Keeps every contract.
    Edl, "edl", BOTH, edl::Edl::default();
    /// One request of each stream in turn.
    RoundRobin, "round-robin", EVERYONE, round_robin::RoundRobin::default();
    /// A cycle of slots, the free ones kept next for synchronous best effort.
    BubbleUp, "bubble-up", EVERYONE, bubble_up::BubbleUp::default();
    /// Groups in deadline order, a sweep within each.
    Gss, "gss", EVERYONE, gss::Gss::default();
    /// Best effort in the static slack as the thesis printed it. Unsafe: requests of
    /// an admitted set can be late.
    DeltaL1999, "delta-l-1999", EVERYONE, delta_l_1999::DeltaL1999::default();
    /// Best effort until the latest start time of what waits. Does not foresee what
    /// comes.
    Lst, "lst", EVERYONE, lst::Lst;
    /// Earliest deadline first, where whoever was late is served less.
    Usd, "usd", EVERYONE, usd::Usd::default();
    /// Shares of the disk for classes, and an order within each.
    Cello, "cello", EVERYONE, cello::Cello::default();
    /// Deficit round robin between streams and flows, as in MARS.
    Drr, "drr", EVERYONE, drr::Drr::default();
    /// One sweep of requests under contract per cycle, with a bubble slot for
    /// interactive requests and a slack register for best effort.
    TimeCycle, "time-cycle", EVERYONE, time_cycle::TimeCycle::default();
    /// Priorities, guaranteed places in a bounded queue, and streams that fetch
    /// together: the ABISS elevator.
    Abiss, "abiss", NOTHING, abiss::Abiss::default();
    /// Priorities above and below an unchanged best-effort scheduler, with a slack
    /// register: the UCSB meta-scheduler.
    Ucsb, "ucsb", EVERYONE, ucsb::Ucsb::default();
    /// First come, first served, with merging, as in Linux 2.6.
    Noop, "noop", EVERYONE, noop::Noop::default();
    /// One-way elevator with expiry times, as in Linux 2.6.
    Deadline, "deadline", EVERYONE, deadline::Deadline::default();
    /// The same with a pause for readers that come back, as in Linux 2.6.
    Anticipatory, "anticipatory", EVERYONE, anticipatory::Anticipatory::default();
    /// Time slices for queues, as in Linux 2.6.
    Cfq, "cfq", EVERYONE, cfq::Cfq::default();
}

#[allow(clippy::derivable_impls)] // the table stays free of attributes
impl Default for PolicyKind {
    fn default() -> Self {
        Self::Slack
    }
}

impl fmt::Display for PolicyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The text names no policy; prints those that there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownPolicy;

impl fmt::Display for UnknownPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no such policy; there are")?;
        PolicyKind::ALL.iter().try_for_each(|kind| write!(f, " {kind}"))
    }
}
impl core::error::Error for UnknownPolicy {}

impl FromStr for PolicyKind {
    type Err = UnknownPolicy;
    fn from_str(text: &str) -> Result<Self, UnknownPolicy> {
        Self::ALL.iter().copied().find(|kind| kind.name() == text).ok_or(UnknownPolicy)
    }
}
