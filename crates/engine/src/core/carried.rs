//! What answers under contract take from the pool to their programs, as whoever drives it tells.

use super::{Core, Inner};
use crate::callers::NOBODY;
use node::{Op, Promise, Who};
use queue::HostTime;
use std::sync::Arc;
use units::{Duration, Instant};

impl Core {
    /// An answer under contract took so long from here to its program, which has it now.
    pub(crate) fn delivered(self: &Arc<Self>, now: Instant, took: Duration) {
        if let Some(takes) = self.deliveries.record(now, took) {
            // Where it does not fit the node keeps why, to be shown.
            self.submit((Who::root(), None), Op::Delivery { takes }, Box::new(drop));
        }
    }

    /// The same for the account that it is in, which takes the pool's lock when somebody looks
    /// at accounts, or when there are many.
    pub(crate) fn carried(&self, promise: &Promise, took: Duration) {
        if self.deliveries.carried(promise, took) {
            self.tell_carried();
        }
    }

    /// The node's accounts are those of programs.
    pub(super) fn tell_carried(&self) {
        let carried = self.deliveries.take_carried();
        if carried.is_empty() {
            return;
        }
        let mut inner = self.lock();
        carried.iter().for_each(|(&account, carried)| inner.node.carried(account, carried));
    }

    /// What was measured of deliveries long ago does not count any more, if it is time.
    pub(super) fn forget_deliveries(&self, inner: &mut Inner) {
        let Some(_) = self.deliveries.due().filter(|&at| at <= inner.now) else { return };
        if let Some(takes) = self.deliveries.forget(inner.now) {
            inner.tell_own(NOBODY, Op::Delivery { takes });
        }
    }

    /// What was measured of deliveries.
    pub(crate) fn deliveries(&self) -> HostTime {
        self.deliveries.seen()
    }
}
