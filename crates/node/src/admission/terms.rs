//! What a contract would take, before anybody is asked for it: of memory, and of each
//! disk's time. Whoever keeps quotas compares it with what somebody may have, so that
//! nothing joins a schedule only to be taken away again.

use crate::admission::contract::{Share, shares_of_time, window_blocks};
use crate::api::*;
use crate::core::Core;
use crate::node::Node;
use crate::volumes::service::need;
use crate::volumes::services::Holder;
use alloc::vec::Vec;
use store::VolumeId;
use units::Bytes;

/// A contract that could be asked for, on a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Of a stream.
    Stream(Mode, Contract),
    /// Of a stream whose requests may be late so often.
    StreamAtOdds(Mode, Contract, Chance),
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
        match wish {
            Wish::Stream(_, contract) | Wish::StreamAtOdds(_, contract, _) => {
                contract.check().ok()?;
            }
            Wish::Service(service) => service.check().ok()?,
        }
        match wish {
            Wish::StreamAtOdds(mode, contract, miss) => {
                core.terms(&core.shares_at(volume, (*mode, contract), *miss).0, wish)
            }
            Wish::Stream(mode, contract) => {
                let shares = core.shares(volume);
                match core.group_for(volume, (*mode, contract), &shares) {
                    Some(group) => {
                        let share = shares[0].of_member(contract);
                        let parts = core.part_of_new_member(&group, contract, &share)?;
                        Some(core.terms_of_member(contract, share, parts))
                    }
                    None => core.terms(&shares, wish),
                }
            }
            Wish::Service(_) => core.terms(&core.shares(volume), wish),
        }
    }

    /// What the contracts of a room take of the volume as it lies now.
    pub(crate) fn taken(&self, volume: VolumeId, room: &ContractRoom) -> Terms {
        let core = &self.core;
        let shares = core.shares(volume);
        let streams = room.streams.iter().filter_map(|&id| self.streams.get(id));
        let streams = streams.filter(|stream| stream.volume == volume);
        let streams = streams.map(|stream| {
            if let Some(group) = stream.group {
                let share = stream.shares(core).swap_remove(0);
                let parts = core.part_of_member(&group);
                return Some(core.terms_of_member(&stream.contract, share, parts));
            }
            let wish = Wish::Stream(stream.mode, stream.contract);
            core.terms(&stream.shares(core), &wish)
        });
        let own = room.service.then_some(Holder::from(volume));
        let handles = room.handles.iter().map(|&handle| Holder { volume, handle: Some(handle) });
        let services = own.into_iter().chain(handles);
        let services = services.map(|holder| Wish::Service(core.services.of(holder).0));
        // What not even idle disks could keep is refused as such.
        let services = services.map(|wish| core.terms(&shares, &wish));
        streams.chain(services).flatten().fold(Terms::default(), Terms::and)
    }

    /// Whether the contracts of each room are within it, or take no more than they did.
    pub(crate) fn fit_into(
        &self,
        volume: VolumeId,
        rooms: &[ContractRoom],
        before: &[Terms],
    ) -> Result<(), Error> {
        for (number, (room, before)) in rooms.iter().zip(before).enumerate() {
            let now = self.taken(volume, room);
            for &(disk, ppm) in &now.shares {
                let most = room.shares.get(disk.as_usize()).copied().unwrap_or(u64::MAX);
                if ppm > most && ppm > before.share(disk) {
                    return Err(Error::BeyondShare { room: number, disk, ppm, most });
                }
            }
            if now.window > room.memory && now.window > before.window {
                let (memory, most) = (now.window, room.memory);
                return Err(Error::BeyondMemory { room: number, memory, most });
            }
        }
        Ok(())
    }
}

impl Core {
    /// Of a writer that has these parts of its group's disk.
    fn terms_of_member(
        &self,
        contract: &Contract,
        share: Share,
        shares: Vec<(DiskIndex, u64)>,
    ) -> Terms {
        let blocks = window_blocks(contract, &[share], Mode::Write, self.late);
        Terms { window: contract.block * blocks, shares }
    }

    fn terms(&self, shares: &[Share], wish: &Wish) -> Option<Terms> {
        let (window, tasks) = match wish {
            Wish::Stream(mode, contract) | Wish::StreamAtOdds(mode, contract, _) => {
                let window = contract.block * window_blocks(contract, shares, *mode, self.late);
                (window, self.tasks(contract, shares, *mode)?)
            }
            Wish::Service(service) => {
                let mut tasks = Vec::new();
                for share in shares {
                    let task = self.seen(share.disk).service(service, share).ok()?;
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

impl Terms {
    fn share(&self, disk: DiskIndex) -> u64 {
        self.shares.iter().filter(|(of, _)| *of == disk).map(|(_, ppm)| ppm).sum()
    }

    /// Both, with one share for each disk.
    fn and(mut self, other: Self) -> Self {
        self.window = self.window.saturating_add(other.window);
        for (disk, ppm) in other.shares {
            match self.shares.iter_mut().find(|(of, _)| *of == disk) {
                Some((_, sum)) => *sum += ppm,
                None => self.shares.push((disk, ppm)),
            }
        }
        self
    }
}
