//! How late the host is.

use units::{Distribution, Duration};

/// How late the host was on one pool since it was opened. None of it is the
/// disks' doing.
#[derive(Clone, Debug, Default)]
pub struct HostLateness {
    /// From the instant that a disk's thread had asked to be woken at, to its
    /// first instruction: the absolute error of timers.
    pub timers: Distribution,
    /// From the end of a command on an emulated disk, by its model, to the
    /// moment that its thread noticed. Contains what `transfers` says.
    pub completions: Distribution,
    /// By how much the host's own I/O on the backing file of an emulated disk
    /// took longer than the model's whole service time, where it did.
    pub transfers: Distribution,
}

impl HostLateness {
    /// The latest of everything.
    pub fn max(&self) -> Duration {
        self.timers.max().max(self.completions.max()).max(self.transfers.max())
    }

    /// Counts what another one has counted.
    pub fn merge(&mut self, other: &Self) {
        self.timers.merge(&other.timers);
        self.completions.merge(&other.completions);
        self.transfers.merge(&other.transfers);
    }
}
