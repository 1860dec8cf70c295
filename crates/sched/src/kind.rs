//! A policy that can be chosen: its name, what it promises, how it starts.
//!
//! The table of a program is open: whoever writes a policy makes one [`PolicyKind`], and
//! `sched` knows of none but those that keep contracts, and of the order that the analysis
//! takes for granted.

use crate::admission::Admission;
use crate::policy::Policy;
use alloc::boxed::Box;
use core::cmp::Ordering;
use core::fmt;
use core::hash::{Hash, Hasher};

/// What a policy promises, besides an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promise {
    /// No request of a task that the exact analysis admits is late while costs stay within
    /// bounds, whatever else comes. Some that do not promise this keep what another analysis
    /// admits ([`PolicyKind::admission`]).
    pub contracts: bool,
    /// Every best-effort request is served in the end, whatever best effort comes
    /// after it, while tasks keep to their contracts and leave some of the disk.
    pub everyone: bool,
}

impl Promise {
    /// Neither.
    pub const NOTHING: Self = Self { contracts: false, everyone: false };
    /// Everyone is served; contracts are not kept.
    pub const EVERYONE: Self = Self { contracts: false, everyone: true };
    /// Contracts are kept, and everyone is served.
    pub const BOTH: Self = Self { contracts: true, everyone: true };
}

/// A policy that a schedule can follow. Two with the same name are the same.
#[derive(Clone, Copy)]
pub struct PolicyKind {
    /// The name that people write. No other policy of a program has it.
    pub name: &'static str,
    /// What it is, in a sentence or two.
    pub summary: &'static str,
    /// What it promises.
    pub promise: Promise,
    /// By which analysis contracts are taken that it keeps.
    pub admission: Admission,
    /// Makes the policy; see [`PolicyKind::start`].
    pub start: fn() -> Box<dyn Policy>,
}

impl PolicyKind {
    /// True where there are contracts that it keeps: those that its own analysis admits.
    pub fn keeps_contracts(self) -> bool {
        self.admission != Admission::Nothing
    }

    /// The policy in its first state.
    pub fn start(self) -> Box<dyn Policy> {
        (self.start)()
    }
}

impl Default for PolicyKind {
    fn default() -> Self {
        Self::SLACK
    }
}

impl PartialEq for PolicyKind {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for PolicyKind {}

impl PartialOrd for PolicyKind {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for PolicyKind {
    fn cmp(&self, other: &Self) -> Ordering {
        self.name.cmp(other.name)
    }
}

impl Hash for PolicyKind {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl fmt::Debug for PolicyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PolicyKind({})", self.name)
    }
}

impl fmt::Display for PolicyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name)
    }
}
