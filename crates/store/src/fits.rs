//! What has room in place of a volume, or of more of a volume, that does not fit.
//!
//! A volume rotates over its disks, so that each has the same share of it: the disk with the least
//! room says how large it may be, and fewer disks may hold a larger one.

use crate::api::{DiskIndex, EXTENT, VolumeId, Zone};
use crate::error::Fits;
use crate::ring::{RING_MIN, ring_step};
use crate::state::State;
use crate::store::Store;
use crate::volume::Volume;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Reverse;
use units::Bytes;

/// The largest that `volume` can be where each disk has so many free extents.
fn most(volume: &Volume, is_ring: bool, free: &[u32]) -> Bytes {
    let placement = volume.placement();
    let rooms = placement.disks.iter().zip(&volume.slots);
    let rooms = rooms.map(|(&disk, has)| free[disk.as_usize()].saturating_add(has.len()));
    let rooms: Vec<u32> = rooms.collect();
    let fits = |extents: u32| {
        rooms.iter().enumerate().all(|(slot, &room)| volume.share(extents, slot) <= room)
    };
    let (mut fit, mut not) = (0, rooms.iter().fold(1u32, |sum, &room| sum.saturating_add(room)));
    while not - fit > 1 {
        let middle = fit + (not - fit) / 2;
        if fits(middle) { fit = middle } else { not = middle }
    }
    let fit = EXTENT * u64::from(fit);
    if !is_ring {
        return fit;
    }
    let ring = fit.round_down(EXTENT * ring_step(rooms.len(), placement.run));
    if ring < RING_MIN { Bytes::ZERO } else { ring }
}

impl Store {
    /// Free extents of each disk in a zone.
    fn free_in(&self, zone: Zone) -> Vec<u32> {
        let all = self.geometry.iter().zip(&self.state.free);
        all.map(|(disk, free)| free.free_in(&State::zone(disk, zone))).collect()
    }

    /// How large a volume can be that is to have more than its disks have room for.
    pub(crate) fn fits_here(&self, volume: &Volume) -> Box<Fits> {
        let most = most(volume, volume.is_ring(), &self.free_in(volume.placement().zone));
        Box::new(Fits { most, ..Fits::default() })
    }

    /// The same of a new one of `size`, and where else it has room; where it has none anywhere, where
    /// the largest one has.
    pub(crate) fn fits(&self, volume: &Volume, (size, is_ring): (Bytes, bool)) -> Box<Fits> {
        let zone = volume.placement().zone;
        let free = self.free_in(zone);
        let mut disks: Vec<DiskIndex> = (0..free.len()).map(DiskIndex::new).collect();
        disks.sort_by_key(|&disk| (Reverse(free[disk.as_usize()]), disk));
        let (mut there, mut on) = (Bytes::ZERO, Vec::new());
        // On as many as possible: it is the faster for it.
        for count in (1..=disks.len()).rev() {
            let mut some = disks[..count].to_vec();
            some.sort();
            let mut tried = Volume::new(VolumeId(0), String::new(), zone, some.clone());
            tried.placement.run = volume.placement().run;
            let found = most(&tried, is_ring, &free);
            if found > there {
                (there, on) = (found, some);
            }
            if there >= size {
                break;
            }
        }
        let is_enough = there >= size;
        Box::new(Fits { most: most(volume, is_ring, &free), there, disks: on, is_enough })
    }
}
