//! Contracts under quota whose volume changes its size.
//!
//! On a larger volume a contract may take more: of more disks, of slower places, in more parts.
//! What each holder may still have is counted here and goes to the pool with the resize, which
//! holds what the contracts come to against it.
//!
//! Invariant: nothing is opened or changed from the counting to the resize ([`Quotas::turn`]).

use super::{Holder, Quotas, Used};
use crate::pool::Pool;
use crate::sessions::Sessions;
use node::{ContractRoom, Error, Op};
use std::collections::BTreeMap;
use units::Bytes;
use wire::Problem;
use wire::control::QuotaLimits;

/// What the contracts on a volume may come to: of each holder, with what he has elsewhere.
pub struct Rooms(Vec<(Holder, Used, ContractRoom)>);

impl Rooms {
    /// The resize, within these.
    pub fn resize(&self, name: &str, size: Bytes, may_cut: bool) -> Op {
        let name = name.to_owned();
        let rooms: Vec<_> = self.0.iter().map(|(_, _, room)| room.clone()).collect();
        match rooms.is_empty() {
            true => Op::VolumeResize { name, size, may_cut },
            false => Op::VolumeResizeWithin { name, size, may_cut, rooms },
        }
    }
}

impl Quotas {
    /// What the contracts on a volume may come to, of everybody who has one there and a limit.
    pub fn rooms(&self, volume: &str, pool: &dyn Pool, sessions: &Sessions) -> Rooms {
        let has_any = pool.volume(volume).is_some_and(|found| {
            found.streams > 0 || !found.handles.is_empty() || self.giver(&found).is_some()
        });
        if !has_any {
            return Rooms(Vec::new()); // without a look at everything
        }
        let mut status = pool.status();
        let disks = status.disks.len();
        let mut theirs: BTreeMap<Holder, ContractRoom> = BTreeMap::new();
        let none = || ContractRoom {
            streams: Vec::new(),
            service: false,
            handles: Vec::new(),
            shares: Vec::new(),
            memory: Bytes::MAX,
        };
        let mut of = |peer: Option<super::Peer>, add: &dyn Fn(&mut ContractRoom)| {
            let holders = peer.map(|peer| self.holders(&peer)).unwrap_or_default();
            holders.into_iter().for_each(|holder| add(theirs.entry(holder).or_insert_with(none)));
        };
        for stream in status.streams.iter().filter(|stream| stream.volume == volume) {
            of(sessions.owner(stream.stream), &|room| room.streams.push(stream.stream));
        }
        if let Some(found) = status.volumes.iter_mut().find(|found| found.name == volume) {
            of(self.giver(found), &|room| room.service = true);
            let owners = self.state().handles.clone();
            for handle in &found.handles {
                let owner = owners.get(&handle.handle).cloned();
                of(owner, &|room| room.handles.push(handle.handle));
            }
            // What is left in the status is what they have elsewhere.
            found.shares.clear();
            found.memory = Bytes::ZERO;
            found.handles.clear();
        }
        status.streams.retain(|stream| stream.volume != volume);
        let with_limits = theirs.into_iter().filter_map(|(holder, room)| {
            let QuotaLimits { disk_share_ppm, memory_bytes, .. } = self.limits(holder);
            if disk_share_ppm.is_none() && memory_bytes.is_none() {
                return None;
            }
            let used = self.used(holder, &status, sessions);
            let left = |most: u64| {
                let disks = (0..disks as u16).map(node::DiskIndex);
                disks.map(|disk| most.saturating_sub(used.share(disk))).collect()
            };
            let shares = disk_share_ppm.map(left).unwrap_or_default();
            let memory = memory_bytes.map_or(Bytes::MAX, |most| most.saturating_sub(used.memory));
            Some((holder, used, ContractRoom { shares, memory, ..room }))
        });
        Rooms(with_limits.collect())
    }

    /// Why a resize was refused for one of these rooms, in words; none where it was for
    /// something else.
    pub fn beyond(&self, rooms: Rooms, error: &Error, pool: &dyn Pool) -> Option<Box<Problem>> {
        let (&Error::BeyondShare { room, .. } | &Error::BeyondMemory { room, .. }) = error else {
            return None;
        };
        let (holder, mut used, _) = rooms.0.into_iter().nth(room)?;
        match *error {
            Error::BeyondShare { disk, ppm, .. } => used.add(&[(disk, ppm)]),
            Error::BeyondMemory { memory, .. } => used.memory += memory,
            _ => {}
        }
        self.over(holder, &used, pool).map(Box::new)
    }
}
