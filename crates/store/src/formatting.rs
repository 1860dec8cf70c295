//! Makes a pool on its disks: empty areas, then labels.
//!
//! Order: the old labels are wiped, then the areas are written whole, then the
//! new labels, with a flush after each. A pool whose making was cut short is no
//! pool; nothing of what was on the disks before can be taken for its metadata.

use crate::api::{Disk, DiskIndex, EXTENT, Id, Io, IoError, IoId, NewPool, Pool};
use crate::error::FormatError;
use crate::geometry::{
    Area, AreaSize, DISKS_MAX, EXTENTS_MAX, Geometry, LABEL_REGION, PROFILE_MAX,
};
use crate::label::Label;
use crate::log::{Log, LogDisk};
use crate::names::is_name;
use crate::state::State;
use crate::steps::{Steps, Task};
use crate::structure::Payload;
use alloc::vec::Vec;
use units::Bytes;

/// Makes a pool on its disks: a state machine over [`Io`].
#[derive(Clone, Debug)]
pub struct Formatting {
    steps: Steps,
}

impl Formatting {
    /// Plans the pool, or says why there can be none. In the I/O, disks are
    /// numbered as they are given, which is their order in the pool.
    pub fn new(new: NewPool) -> Result<Self, FormatError> {
        let (area, geometry) = plan(&new)?;
        let NewPool { name, pool_id, disks } = new;
        let mut profiles = Vec::new();
        let list = disks.into_iter().enumerate().map(|(i, disk)| {
            profiles.push(Payload::new(disk.profile));
            Disk { index: DiskIndex::new(i), id: disk.id, capacity: disk.capacity }
        });
        let pool = Pool { name, id: pool_id, disks: list.collect() };
        let disks = || pool.disks.iter();
        let indexes = || disks().map(|disk| disk.index);
        let mut steps = Steps::default();
        let label_places = disks()
            .flat_map(|disk| [0, 1].map(|copy| (disk, Geometry::label(disk.capacity, copy), copy)));
        steps.push(
            label_places.clone().map(|(disk, at, _)| (disk.index, Task::Zeros(at, LABEL_REGION))),
        );
        steps.push_flush(indexes());
        for area in Area::BOTH {
            steps.push(disks().zip(&geometry).map(|(disk, geometry)| {
                (disk.index, Task::Zeros(geometry.log(area), geometry.log_size()))
            }));
        }
        let log_disks = disks().zip(&geometry).map(|(disk, geometry)| LogDisk {
            owner: Log::owner(pool.id, disk.id),
            geometry: *geometry,
            area: Area::A,
        });
        let empty = Payload::new(State::new(&geometry).checkpoint());
        let mut log = Log::new(log_disks.collect(), 0, 0, 0);
        log.checkpoint(&empty, &mut steps);
        log.write_seal(&mut steps);
        steps.push_flush(indexes());
        for copy in [0, 1] {
            steps.push(disks().zip(&profiles).flat_map(|(disk, profile)| {
                let label = Label { pool: pool.clone(), index: disk.index, area };
                label.tasks(copy, profile, 1).map(|task| (disk.index, task))
            }));
            steps.push_flush(indexes());
        }
        Ok(Self { steps })
    }
    /// The next I/O to start; none while others must end first.
    pub fn poll(&mut self) -> Option<Io> {
        self.steps.poll()
    }
    /// An I/O has ended.
    pub fn done(&mut self, id: IoId, result: Result<Vec<u8>, IoError>) {
        self.steps.done(id, result);
    }
    /// True when no I/O is left or on its way.
    pub fn is_finished(&self) -> bool {
        self.steps.is_finished()
    }
    /// The end: the pool can be opened, or a disk failed. To be called when
    /// [`Formatting::is_finished`].
    pub fn finish(self) -> Result<(), FormatError> {
        assert!(self.is_finished(), "the pool is still being made");
        self.steps.failed().map_or(Ok(()), |(disk, error)| Err(FormatError::Device { disk, error }))
    }
}

/// Checks what a pool is to be made of, and gives its places.
fn plan(new: &NewPool) -> Result<(AreaSize, Vec<Geometry>), FormatError> {
    if !is_name(&new.name) {
        return Err(FormatError::BadName { name: new.name.clone() });
    }
    if !(1..=DISKS_MAX).contains(&new.disks.len()) {
        return Err(FormatError::DiskCount { disks: new.disks.len() });
    }
    let mut ids: Vec<Id> = [new.pool_id].into();
    for (i, disk) in new.disks.iter().enumerate() {
        if ids.contains(&disk.id) {
            return Err(FormatError::SameId { disk: DiskIndex::new(i), id: disk.id });
        }
        ids.push(disk.id);
        let len = Bytes::new(disk.profile.len() as u64);
        if len > PROFILE_MAX {
            return Err(FormatError::ProfileTooLarge { disk: DiskIndex::new(i), len });
        }
    }
    let total = new.disks.iter().fold(0u64, |sum, disk| sum.saturating_add(disk.capacity.get()));
    let total = Bytes::new(total);
    if total / EXTENT >= EXTENTS_MAX {
        return Err(FormatError::PoolTooLarge { total });
    }
    let area = AreaSize::for_pool(total);
    let geometry = new.disks.iter().enumerate().map(|(i, disk)| {
        Geometry::new(disk.capacity, area).ok_or(FormatError::DiskTooSmall {
            disk: DiskIndex::new(i),
            capacity: disk.capacity,
            least: Geometry::capacity_min(area),
        })
    });
    Ok((area, geometry.collect::<Result<_, _>>()?))
}
