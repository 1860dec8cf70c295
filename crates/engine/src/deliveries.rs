//! What whoever drives the pool takes from when it is handed an answer under contract until its
//! program has it: measured here, counted by the node ([`node::Op::Delivery`]).
//!
//! The measurement has a lock of its own, which nothing is done under.

use crate::lock::Mutex;
use queue::{HostTime, Measuring};
use std::sync::atomic::{AtomicU64, Ordering};
use units::Duration;

/// The measurement, and what is counted for it.
#[derive(Default)]
pub(crate) struct Deliveries {
    measuring: Mutex<Measuring>,
    /// In ns: as the node has it, without a look under the pool's lock.
    counted: AtomicU64,
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
