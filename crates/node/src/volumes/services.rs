//! The volumes' services while the pool runs: their tasks on the disks, and which
//! class a request of a volume is of.
//!
//! A service lives as long as its volume and the daemon; it is not on the disk.
//! Invariant: `served` has an entry for each volume whose service is not the
//! default, and for each disk of it a task where the service is a contract.

use crate::admission::contract::{self, Joined};
use crate::api::*;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use store::VolumeId;
use units::{Bytes, Direction, Duration, Lba};

/// How one volume is served.
#[derive(Clone, Debug, Default)]
pub(crate) struct Served {
    pub service: Service,
    pub tasks: Vec<Joined>,
    pub account: ServiceAccount,
}

/// All volumes that are served otherwise than by default.
#[derive(Clone, Debug, Default)]
pub(crate) struct Services(pub BTreeMap<VolumeId, Served>);

impl Services {
    /// What a volume's contract has of each disk's time, in parts per million.
    pub(crate) fn shares(&self, volume: VolumeId) -> Vec<(DiskIndex, u64)> {
        self.0.get(&volume).map(|served| contract::used(&served.tasks)).unwrap_or_default()
    }

    pub(crate) fn of(&self, volume: VolumeId) -> (Service, ServiceAccount) {
        let served = self.0.get(&volume);
        served.map_or_else(Default::default, |served| (served.service, served.account))
    }

    /// The longest piece that an operation of the volume is cut to.
    pub(crate) fn piece(&self, volume: VolumeId) -> Bytes {
        match self.of(volume).0 {
            Service::BestEffort(_) => Bytes::MAX,
            Service::Rate { block: len, .. } | Service::Latency { len, .. } => len,
        }
    }

    /// A request of the volume has ended.
    pub(crate) fn account(&mut self, volume: VolumeId, late_by: Duration, latency: Duration) {
        let Some(served) = self.0.get_mut(&volume) else { return };
        if let Service::BestEffort(_) = served.service {
            return;
        }
        let account = &mut served.account;
        account.requests += 1;
        account.late_requests += u64::from(!late_by.is_zero());
        account.late_max = account.late_max.max(late_by);
        account.latency_max = account.latency_max.max(latency);
    }
}

/// A request of a volume that waits and may change its class.
pub(crate) struct Piece {
    pub id: CommandId,
    pub disk: DiskIndex,
    pub at: Lba,
    pub len: Bytes,
    pub direction: Direction,
    /// The priority that its handle states.
    pub stated: Option<Priority>,
}
