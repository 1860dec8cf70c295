//! What is owed of an answer under contract when it is handed out: the clock of the contract runs
//! on until the program has it, and only the driver sees that.
//!
//! An account counts each answer when it is handed out. A driver that takes time to carry answers
//! to their programs says so for each ([`Carried::add`]), gathers that by account, and tells the
//! node when it likes ([`Node::carried`](crate::Node::carried)): accounts are then by the whole
//! clock. One that does not say anything has its programs' accounts end where it gets the answers.

use super::{ServiceAccount, StreamAccount, StreamId};
use crate::volumes::services::Holder;
use units::{Duration, Instant};

/// UnderContract account an answer is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AccountOf(pub(crate) UnderContract);

/// Under whose contract an answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum UnderContract {
    /// A volume's service, or that of a handle on it.
    Service(Holder),
    Stream(StreamId),
}

/// An answer under contract: when its clock began, and by when its program is to have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promise {
    pub(crate) whose: UnderContract,
    pub(crate) from: Instant,
    pub(crate) due: Instant,
    /// When the node gave the answer out: until then its account has counted it.
    pub(crate) handed: Instant,
}

impl Promise {
    /// UnderContract account it is in.
    pub fn account(&self) -> AccountOf {
        AccountOf(self.whose)
    }

    /// By when its program is to have it.
    pub fn due(&self) -> Instant {
        self.due
    }
}

/// What the way to their programs has made of the answers of one account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Carried {
    /// Answers that were in time when they were handed out, and late at their programs.
    late: u64,
    late_max: Duration,
    latency_max: Duration,
    took_max: Duration,
}

impl Carried {
    /// An answer took so long from when the node gave it out until its program had it.
    pub fn add(&mut self, promise: &Promise, took: Duration) {
        let at = promise.handed.saturating_add(took);
        let late_by = at.saturating_since(promise.due);
        let was_late = promise.handed > promise.due;
        self.late += u64::from(!late_by.is_zero() && !was_late);
        self.late_max = self.late_max.max(late_by);
        self.latency_max = self.latency_max.max(at.saturating_since(promise.from));
        self.took_max = self.took_max.max(took);
    }
}

impl ServiceAccount {
    pub(crate) fn carry(&mut self, carried: &Carried) {
        self.late_requests += carried.late;
        self.late_max = self.late_max.max(carried.late_max);
        self.latency_max = self.latency_max.max(carried.latency_max);
        self.late_carried += carried.late;
        self.carried_max = self.carried_max.max(carried.took_max);
    }
}

/// The same for a stream's account.
pub(crate) fn carry(account: &mut StreamAccount, carried: &Carried) {
    account.late_requests += carried.late;
    account.late_max = account.late_max.max(carried.late_max);
    account.latency_max = account.latency_max.max(carried.latency_max);
}
