//! What an answer under contract takes from when the node has decided on it until its program has
//! it: measured here, counted by the node ([`node::Op::Delivery`]). Callbacks of other answers that
//! run before its own are in it ([`Promise::handed`]).
//!
//! The accounts are the programs': what carrying an answer has made of them is gathered here, and
//! told to the node when somebody looks ([`node::Node::carried`]).
//!
//! Measurement and accounts have locks of their own, which nothing is done under.

use crate::lock::Mutex;
use node::{AccountOf, Carried, Promise};
use queue::{HostTime, Measuring};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use units::Duration;

/// Accounts for which something is gathered, at the most, until the node is told.
const ACCOUNTS_MAX: usize = 256;

/// The measurement, and what is counted for it.
#[derive(Default)]
pub(crate) struct Deliveries {
    measuring: Mutex<Measuring>,
    /// In ns: as the node has it, without a look under the pool's lock.
    counted: AtomicU64,
    carried: Mutex<BTreeMap<AccountOf, Carried>>,
}

impl Deliveries {
    /// An answer took so long. Gives what is to be counted from now on, where that is another
    /// time than is.
    pub(crate) fn record(&self, took: Duration) -> Option<Duration> {
        let counted = self.counted();
        let mut measuring = self.measuring.lock();
        measuring.record(took, counted);
        measuring.take_wanted()
    }

    /// An answer of this account took so long. Says whether the node is to be told of all.
    pub(crate) fn carried(&self, promise: &Promise, took: Duration) -> bool {
        let mut carried = self.carried.lock();
        carried.entry(promise.account()).or_default().add(promise, took);
        carried.len() >= ACCOUNTS_MAX
    }

    /// What the node was not told of.
    pub(crate) fn take_carried(&self) -> BTreeMap<AccountOf, Carried> {
        std::mem::take(&mut *self.carried.lock())
    }

    /// The node counts so much.
    pub(crate) fn counts(&self, counted: Duration) {
        self.counted.store(counted.as_nanos(), Ordering::Relaxed);
    }

    pub(crate) fn seen(&self) -> HostTime {
        self.measuring.lock().seen(self.counted())
    }

    fn counted(&self) -> Duration {
        Duration::from_nanos(self.counted.load(Ordering::Relaxed))
    }
}
