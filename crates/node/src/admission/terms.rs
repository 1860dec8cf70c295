//! What a contract would take, before anybody is asked for it: of memory, and of each
//! disk's time. Whoever keeps quotas compares it with what somebody may have, so that
//! nothing joins a schedule only to be taken away again.

use crate::admission::contract::{shares_of_time, window_blocks};
use crate::api::*;
use crate::node::Node;
use crate::volumes::service::need;
use alloc::vec::Vec;
use units::Bytes;

/// A contract that could be asked for, on a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Of a stream.
    Stream(Mode, Contract),
    /// Of what no stream carries.
    Service(Service),
}

/// What a contract takes.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Terms {
    /// Memory for the window; of a service, what is set aside for it.
    pub window: Bytes,
    /// The share of each disk's time, in parts per million, as a status shows it once the
    /// contract is admitted.
    pub shares: Vec<(DiskIndex, u64)>,
}

impl Node {
    /// The run by which a volume of this size in this place rotates over its disks, where nobody names one: a
    /// block of a stream that pays lies in one.
    pub fn run_for(&self, placement: &Placement, size: Bytes) -> Bytes {
        self.core.run_for(placement, size)
    }

    /// What this contract would take on the volume as it lies now, whether it would be
    /// admitted or not; `None` where there is no such volume, or where even an idle disk
    /// could not keep it. Searches nothing.
    pub fn terms(&self, volume: &str, wish: &Wish) -> Option<Terms> {
        let core = &self.core;
        let volume = core.store.find(volume)?.id();
        let shares = core.shares(volume);
        let (window, tasks) = match wish {
            Wish::Stream(mode, contract) => {
                contract.check().ok()?;
                let window = contract.block * window_blocks(contract, &shares, *mode, core.late);
                (window, core.tasks(contract, &shares, *mode)?)
            }
            Wish::Service(service) => {
                service.check().ok()?;
                let mut tasks = Vec::new();
                for share in &shares {
                    let task = core.seen(share.disk).service(service, share).ok()?;
                    tasks.extend(task.map(|task| (share.disk, task)));
                }
                let needs = shares.iter().filter_map(|share| need(service, share));
                let memory =
                    needs.map(|need| need.bytes()).fold(Bytes::ZERO, Bytes::saturating_add);
                (memory, tasks)
            }
        };
        let shares = shares_of_time(tasks.iter().map(|(disk, task)| (*disk, task)));
        Some(Terms { window, shares })
    }
}
