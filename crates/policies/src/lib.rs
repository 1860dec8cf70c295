//! The schedulers of the literature, and the table of all policies.
//!
//! One job: compare. `sched` has the policies that keep every contract; the others are
//! here, behind the same [`Policy`]: what the papers describe, what Linux had, and the
//! classical orders. [`ALL`] has those of both crates. A new one is a file here, its
//! `mod`, its line in the table, and its place in [`ALL`].
#![no_std]

extern crate alloc;

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use core::fmt;
use sched::{Admission, Policy, PolicyKind, Promise, Settings, admits_always};

mod abiss;
mod anticipatory;
mod best_effort_first;
mod beyond;
mod bubble_up;
mod c_scan;
mod cello;
mod cfq;
mod containers_1999;
mod deadline;
mod delta_l_1999;
mod drr;
mod fcfs;
mod freeblock;
mod gss;
mod look;
mod lst;
mod noop;
mod places;
mod ranked;
mod rate_monotonic;
mod rest;
mod round_robin;
mod satf;
mod scan;
mod scan_edf;
mod sstf;
mod sweeps;
mod time_cycle;
mod ucsb;
mod usd;

pub use usd::usd_admits;

const NOTHING: Promise = Promise::NOTHING;
const EVERYONE: Promise = Promise::EVERYONE;
const NONE: Admission = Admission::Nothing;

/// What a line of the table says, or what counts where it says nothing.
macro_rules! first {
    ($first:expr $(, $other:expr)*) => {
        $first
    };
}

/// One line registers a policy: its constant, its name, what it promises, by which analysis
/// contracts are taken that it keeps, how it starts; where it has settings, these, and where
/// they change the analysis, how.
macro_rules! table {
    ($($(#[doc = $doc:literal])* $kind:ident, $name:literal, $promise:expr, $admission:expr,
        $new:expr $(, $settings:path $(, $admits:path)?)?;)*) => {$(
        $(#[doc = $doc])*
        pub const $kind: PolicyKind = PolicyKind {
            name: $name,
            summary: concat!($($doc,)*).trim_ascii_start(),
            promise: $promise,
            admission: $admission,
            settings: first!($($settings,)? &[]),
            values: Settings::of(first!($($settings,)? &[])),
            admits: first!($($($admits,)?)? admits_always),
            start: |values| -> Box<dyn Policy> {
                let new: fn(&Settings) -> _ = $new;
                Box::new(new(values))
            },
        };
    )*};
}

table! {
    /// Contracts only where no best effort waits: what they cost best effort under `slack`.
    BEST_EFFORT_FIRST, "best-effort-first", EVERYONE, NONE, |_| best_effort_first::BestEffortFirst::default();
    /// First come, first served. Contracts count for nothing.
    FCFS, "fcfs", EVERYONE, NONE, |_| fcfs::Fcfs::default();
    /// The nearest request next. Promises nothing; what is far can wait for ever.
    SSTF, "sstf", NOTHING, NONE, |_| sstf::Sstf::default();
    /// The shortest device time next. Promises nothing; what is slow can wait for ever.
    SATF, "satf", NOTHING, NONE, |_| satf::Satf::default();
    /// Up and down from edge to edge; a turn serves what waited when it began.
    SCAN, "scan", EVERYONE, NONE, |_| scan::Scan::default();
    /// Upward only, then back to the lowest.
    C_SCAN, "c-scan", EVERYONE, NONE, |_| c_scan::CScan::default();
    /// Up and down, turning at the last request.
    LOOK, "look", EVERYONE, NONE, |_| look::Look::default();
    /// C-SCAN, with background work in rotations that would be waited out.
    FREEBLOCK, "freeblock", EVERYONE, NONE, freeblock::Freeblock::new, freeblock::SETTINGS;
    /// The shortest period first. Admission does not cover it.
    RATE_MONOTONIC, "rate-monotonic", EVERYONE, NONE, |_| rate_monotonic::RateMonotonic::default();
    /// Earliest deadline first, with sweeps among deadlines that are as good as equal.
    SCAN_EDF, "scan-edf", EVERYONE, NONE, scan_edf::ScanEdf::new, scan_edf::SETTINGS;
    /// One request of each stream in turn.
    ROUND_ROBIN, "round-robin", EVERYONE, NONE, |_| round_robin::RoundRobin::default();
    /// A cycle of slots, the free ones kept next for synchronous best effort.
    BUBBLE_UP, "bubble-up", EVERYONE, NONE, |_| bubble_up::BubbleUp::default();
    /// Groups in deadline order, a sweep within each.
    GSS, "gss", EVERYONE, NONE, gss::Gss::new, gss::SETTINGS;
    /// Best effort in the static slack as the thesis printed it. Unsafe: requests of
    /// an admitted set can be late.
    DELTA_L_1999, "delta-l-1999", EVERYONE, NONE, |_| delta_l_1999::DeltaL1999::default();
    /// Best effort until the latest start time of what waits. Does not foresee what
    /// comes.
    LST, "lst", EVERYONE, NONE, |_| lst::Lst;
    /// Earliest deadline first, where whoever was late is served less.
    USD, "usd", EVERYONE, NONE, |_| usd::Usd::default();
    /// Shares of the disk for classes, and an order within each.
    CELLO, "cello", EVERYONE, NONE, cello::Cello::new, cello::SETTINGS;
    /// Deficit round robin between streams and flows, as in MARS.
    DRR, "drr", EVERYONE, NONE, drr::Drr::new, drr::SETTINGS;
    /// One sweep of requests under contract per cycle, with a bubble slot for
    /// interactive requests and a slack register for best effort.
    TIME_CYCLE, "time-cycle", EVERYONE, time_cycle::ADMISSION, time_cycle::TimeCycle::new, time_cycle::SETTINGS, time_cycle::admits;
    /// Streams in one sweep per cycle of a chosen length, so that many short ways of the arm are
    /// promised in the place of long ones; all other contracts by their deadlines in between.
    SWEEPS, "sweeps", EVERYONE, sweeps::ADMISSION, sweeps::Sweeps::new, sweeps::SETTINGS, sweeps::admits;
    /// Priorities, guaranteed places in a bounded queue, and streams that fetch
    /// together: the ABISS elevator.
    ABISS, "abiss", NOTHING, NONE, abiss::Abiss::new, abiss::SETTINGS;
    /// Priorities above and below an unchanged best-effort scheduler, with a slack
    /// register: the UCSB meta-scheduler.
    UCSB, "ucsb", EVERYONE, ucsb::ADMISSION, ucsb::Ucsb::new, ucsb::SETTINGS, ucsb::admits;
    /// First come, first served, with merging, as in Linux 2.6.
    NOOP, "noop", EVERYONE, NONE, noop::Noop::new, noop::SETTINGS;
    /// One-way elevator with expiry times, as in Linux 2.6.
    DEADLINE, "deadline", EVERYONE, NONE, deadline::Deadline::new, deadline::SETTINGS;
    /// The same with a pause for readers that come back, as in Linux 2.6.
    ANTICIPATORY, "anticipatory", EVERYONE, NONE, anticipatory::Anticipatory::new, anticipatory::SETTINGS;
    /// Time slices for queues, as in Linux 2.6.
    CFQ, "cfq", EVERYONE, NONE, cfq::Cfq::new, cfq::SETTINGS;
}

/// Every policy, those of `sched` among them.
pub const ALL: &[PolicyKind] = &[
    PolicyKind::SLACK,
    PolicyKind::DELTA_L,
    PolicyKind::EDF,
    BEST_EFFORT_FIRST,
    FCFS,
    SSTF,
    SATF,
    SCAN,
    C_SCAN,
    LOOK,
    FREEBLOCK,
    RATE_MONOTONIC,
    SCAN_EDF,
    PolicyKind::EDL,
    ROUND_ROBIN,
    BUBBLE_UP,
    GSS,
    DELTA_L_1999,
    LST,
    USD,
    CELLO,
    DRR,
    TIME_CYCLE,
    SWEEPS,
    ABISS,
    UCSB,
    NOOP,
    DEADLINE,
    ANTICIPATORY,
    CFQ,
];

/// The policy of this name.
///
/// # Errors
/// [`UnknownPolicy`] where there is none.
pub fn named(name: &str) -> Result<PolicyKind, UnknownPolicy> {
    ALL.iter().copied().find(|kind| kind.name == name).ok_or(UnknownPolicy)
}

/// The policy of this name, with these values of its settings.
///
/// # Errors
/// The text of [`UnknownPolicy`] or [`sched::WrongSetting`].
pub fn chosen<'a>(
    name: &str,
    settings: impl IntoIterator<Item = (&'a str, u64)>,
) -> Result<PolicyKind, String> {
    let policy = named(name).map_err(|error| error.to_string())?;
    let mut settings = settings.into_iter();
    settings.try_fold(policy, |policy, (name, value)| {
        policy.with_value(name, value).map_err(|error| error.to_string())
    })
}

/// The text names no policy; prints those that there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownPolicy;

impl fmt::Display for UnknownPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no such policy; there are")?;
        ALL.iter().try_for_each(|kind| write!(f, " {kind}"))
    }
}
impl core::error::Error for UnknownPolicy {}
