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
use units::{Duration, Instant};

/// Accounts for which something is gathered, at the most, until the node is told.
const ACCOUNTS_MAX: usize = 256;

/// No time.
const NEVER: u64 = u64::MAX;

/// The measurement, and what is counted for it.
pub(crate) struct Deliveries {
    measuring: Mutex<Measuring>,
    /// In ns: as the node has it, without a look under the pool's lock.
    counted: AtomicU64,
    /// In ns: when what was measured is looked at next though nothing is carried; [`NEVER`] where
    /// that would change nothing.
    due: AtomicU64,
    carried: Mutex<BTreeMap<AccountOf, Carried>>,
}

impl Default for Deliveries {
    fn default() -> Self {
        Self {
            measuring: Mutex::default(),
            counted: AtomicU64::default(),
            due: AtomicU64::new(NEVER),
            carried: Mutex::default(),
        }
    }
}

impl Deliveries {
    /// An answer took so long. Gives what is to be counted from now on, where that is another
    /// time than is.
    pub(crate) fn record(&self, now: Instant, took: Duration) -> Option<Duration> {
        self.measure(|measuring, counted| measuring.record(now, took, counted))
    }

    /// It is `now`: what was measured long ago does not count any more. Gives the same.
    pub(crate) fn forget(&self, now: Instant) -> Option<Duration> {
        self.measure(|measuring, counted| measuring.pass(now, counted))
    }

    fn measure(&self, change: impl FnOnce(&mut Measuring, Duration)) -> Option<Duration> {
        let counted = self.counted();
        let mut measuring = self.measuring.lock();
        change(&mut measuring, counted);
        self.set_due(&measuring, counted);
        measuring.take_wanted()
    }

    fn set_due(&self, measuring: &Measuring, counted: Duration) {
        let due = measuring.due(counted).map_or(NEVER, Instant::as_nanos);
        self.due.store(due, Ordering::Relaxed);
    }

    /// When [`Deliveries::forget`] is to be called.
    pub(crate) fn due(&self) -> Option<Instant> {
        let due = self.due.load(Ordering::Relaxed);
        (due != NEVER).then(|| Instant::from_nanos(due))
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
        if self.counted() != counted {
            let measuring = self.measuring.lock();
            self.counted.store(counted.as_nanos(), Ordering::Relaxed);
            self.set_due(&measuring, counted);
        }
    }

    pub(crate) fn seen(&self) -> HostTime {
        self.measuring.lock().seen(self.counted())
    }

    fn counted(&self) -> Duration {
        Duration::from_nanos(self.counted.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use queue::limits::{GAPS_LEAST, GAPS_SPELL_TIME};

    /// Who carries nothing any more has no long answers.
    #[test]
    fn what_long_answers_took_is_not_counted_any_more_when_none_are_carried() {
        let (bad, takes) = (Instant::EPOCH, Duration::from_millis(3));
        for is_counted in [true, false] {
            let deliveries = Deliveries::default();
            let wanted = (0..GAPS_LEAST).find_map(|_| deliveries.record(bad, takes));
            let wanted = wanted.expect("that is more than nothing");
            // Where it does not fit, nothing is counted.
            deliveries.counts(if is_counted { wanted } else { Duration::ZERO });
            let mut said = None;
            while let Some(due) = deliveries.due() {
                assert!(due <= bad + GAPS_SPELL_TIME * 2);
                said = deliveries.forget(due).or(said);
            }
            assert_eq!(said, Some(Duration::ZERO));
        }
    }
}
