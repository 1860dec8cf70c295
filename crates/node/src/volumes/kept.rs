//! Services that the pool keeps: each is admitted again when the pool is served
//! (`keeping.rs`).
//!
//! One that does not fit any more (a profile is wider, a disk is another, the daemon is told
//! another host latency) is *kept out*: its volume is served as by default, and the pool says
//! so. It stays in the pool, and is tried again when something was given back: one volume a
//! [`KEPT_OUT_PAUSE`], so that no call takes long and nobody makes the pool search by opening
//! and closing. Whoever sets the volume's service anew decides himself.
//!
//! Invariants: a volume is kept out only while the store has a service of it that is not in
//! force; `turns` is zero while nothing is due.

use crate::api::Error;
use crate::limits::KEPT_OUT_PAUSE;
use alloc::collections::BTreeMap;
use core::ops::Bound;
use store::VolumeId;
use units::Instant;

/// Services that are kept and not in force.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeptOutServices {
    pub(crate) why: BTreeMap<VolumeId, Error>,
    /// How many are to be tried again, the next behind this one, and when.
    turns: usize,
    last: Option<VolumeId>,
    due: Option<Instant>,
}

impl KeptOutServices {
    /// When one is tried again, if any is to be.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Its volume has another service, or is gone.
    pub(crate) fn forget(&mut self, volume: VolumeId) {
        self.why.remove(&volume);
        if self.why.is_empty() {
            (self.turns, self.due) = (0, None);
        }
    }

    /// Time, memory or space was given back. True where there is somebody to try.
    pub(crate) fn given_back(&mut self, now: Instant) -> bool {
        self.turns = self.why.len();
        if self.turns > 0 && self.due.is_none() {
            self.due = Some(now.saturating_add(KEPT_OUT_PAUSE));
        }
        self.turns > 0
    }

    /// Whose turn it is, one after the other.
    pub(crate) fn next(&mut self, now: Instant) -> Option<VolumeId> {
        if self.due.is_none_or(|due| due > now) {
            return None;
        }
        let behind = self.last.map_or(Bound::Unbounded, Bound::Excluded);
        let next = self.why.range((behind, Bound::Unbounded)).next().or(self.why.iter().next());
        self.last = next.map(|(&volume, _)| volume);
        self.turns = self.turns.saturating_sub(1);
        self.due = (self.turns > 0).then(|| now.saturating_add(KEPT_OUT_PAUSE));
        self.last
    }
}
