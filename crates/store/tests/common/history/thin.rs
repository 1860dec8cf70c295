//! What happens to thin volumes in a history: they take places when they are written, in their places
//! or at a frontier, and thin rings give them back.

use super::{BLOCK, Fault, Verdict, World, at, pattern};
use store::{Blocks, DiskIndex, EXTENT, Settled, VolumeId};
use units::Bytes;

/// An extent of a thin volume that is being written where it will lie.
#[derive(Clone, Debug)]
pub(super) struct Hold {
    volume: VolumeId,
    extent: u64,
    disk: DiskIndex,
    offset: Bytes,
    /// New blocks of the extent, and of which version they are.
    blocks: (u64, u64),
    version: u64,
}

impl World {
    /// Whether a volume is thin, and a ring.
    pub(super) fn any_kind(&mut self) -> (bool, bool) {
        let is_thin = self.random.once_in(6) != self.is_thin;
        (is_thin, is_thin && self.random.once_in(3))
    }
    /// An extent that some volume has.
    pub(super) fn any_extent(&mut self) -> Option<(VolumeId, u64)> {
        let id = self.any_volume()?;
        let volume = self.store.volume(id).unwrap();
        let (first, extents) = (volume.start() / EXTENT, volume.extents());
        // So that a ring, which is long, is not written here and there only.
        let most = if volume.is_ring() { 20.min(extents) } else { extents };
        (extents > 0).then(|| (id, first + self.random.below(most)))
    }
    /// Nobody else is writing to the extent, and what a ring gave up of it is durable.
    pub(super) fn may_write(&self, volume: VolumeId, extent: u64) -> bool {
        let held = self.holding.iter().any(|it| (it.volume, it.extent) == (volume, extent));
        !held && EXTENT * (extent + 1) <= self.store.writable_end(volume)
    }
    /// Gives an extent a place if it has none; false where there is no room.
    pub(super) fn place(&mut self, volume: VolumeId, extent: u64) -> bool {
        if self.store.is_placed(volume, extent) {
            return true;
        }
        let placed = self.store.place(volume, extent).is_ok();
        self.counts.placed += u64::from(placed);
        placed
    }
    /// Begins to write an extent of a thin volume at a frontier: what was written of it, and some blocks
    /// more.
    pub(super) fn hold(&mut self) -> Verdict {
        let Some((volume, extent)) = self.any_extent() else { return Ok(()) };
        let is_thin = self.store.volume(volume).unwrap().is_thin();
        if !is_thin || !self.may_write(volume, extent) {
            return Ok(());
        }
        if self.store.promise(volume, extent, 1).is_err() {
            return Ok(());
        }
        if self.random.once_in(8) {
            self.store.promise_less(volume, extent);
            return Ok(());
        }
        let place = self.store.locate(volume, extent).unwrap();
        let written = place.written.span().end.get() / BLOCK as u64;
        let first = if self.random.once_in(3) { self.random.below(written + 1) } else { written };
        let first = first.min(place.written.watermark().get() / BLOCK as u64);
        let count = (1 + self.random.below(3)).min(256 - first);
        let offset = self.store.hold(volume, extent);
        let (disk, blocks) = (place.disk, (first, count));
        self.version += 1;
        let hold = Hold { volume, extent, disk, offset, blocks, version: self.version };
        if self.fault == Fault::EarlySettle {
            self.settle_there(&hold)?;
            self.start_commit();
            self.io()?;
            return self.write_there(&hold, place.offset, written);
        }
        self.write_there(&hold, place.offset, written)?;
        self.holding.push(hold);
        Ok(())
    }
    /// Writes the blocks that the extent has at `old`, and the new ones over them.
    fn write_there(&mut self, hold: &Hold, old: Option<Bytes>, written: u64) -> Verdict {
        let disk = hold.disk.as_usize();
        let (first, count) = hold.blocks;
        for block in 0..written.max(first + count) {
            let at = Bytes::new(block * BLOCK as u64);
            let bytes = match old {
                _ if (first..first + count).contains(&block) => {
                    *pattern(hold.volume, hold.extent * 256 + block, hold.version)
                }
                Some(old) => *self.disks[disk].block((old + at).get()),
                None => continue,
            };
            let to = (hold.offset + at).get();
            self.note_owner(disk, to, hold.volume);
            self.disks[disk].write(to, bytes.to_vec());
        }
        self.cut()
    }
    pub(super) fn note_owner(&mut self, disk: usize, offset: u64, volume: VolumeId) {
        let before = self.owners.insert((disk, offset), volume);
        self.counts.reused += u64::from(before.is_some_and(|before| before != volume));
    }
    /// One of those that were written settles, or is given up.
    pub(super) fn settle(&mut self) -> Verdict {
        if self.holding.is_empty() {
            return Ok(());
        }
        let hold = self.holding.swap_remove(self.random.index(self.holding.len()));
        if self.random.once_in(8) {
            self.store.release(hold.disk, hold.offset);
            return Ok(());
        }
        self.settle_there(&hold)
    }
    fn settle_there(&mut self, hold: &Hold) -> Verdict {
        let Hold { volume, extent, disk, offset, blocks: (first, count), version } = *hold;
        let before = self.store.locate(volume, extent);
        match self.store.settle(volume, extent, disk, offset) {
            Settled::Gone if before.is_some() => return Err(format!("{hold:?} is there")),
            Settled::Gone => return Ok(()),
            Settled::There { old } => {
                if before.is_none_or(|before| before.offset != old) {
                    return Err(format!("{hold:?}: it lay at {before:?}, not at {old:?}"));
                }
                self.counts.settled += 1;
                self.counts.resettled += u64::from(old.is_some());
                self.left.extend(old.map(|old| (disk, old)));
            }
        }
        let place = self.store.locate(volume, extent).unwrap();
        if at(&place) != offset.get() {
            return Err(format!("{hold:?} lies at {place:?}"));
        }
        // Who reads it from now on reads this.
        self.version += 1;
        for block in extent * 256 + first..extent * 256 + first + count {
            let content = pattern(volume, block, version);
            self.history.entry((volume, block)).or_default().push((self.version, content));
        }
        let byte = |block: u64| Bytes::new(block * BLOCK as u64);
        let blocks = Blocks::of(&(byte(first)..byte(first + count)));
        self.store.note_written(volume, extent, &blocks);
        self.store.note_length(volume, EXTENT * extent + byte(first + count));
        Ok(())
    }
    /// Nobody reads one of the places any more that extents have settled from.
    pub(super) fn give_back(&mut self) {
        if !self.left.is_empty() {
            let (disk, offset) = self.left.swap_remove(self.random.index(self.left.len()));
            self.store.give_back_held(disk, offset);
        }
    }
    /// A ring goes on.
    pub(super) fn give_up(&mut self) {
        let rings = self.store.volumes().filter(|volume| volume.is_ring());
        let rings: Vec<_> = rings.map(|ring| (ring.id(), ring.end(), ring.taken())).collect();
        if !rings.is_empty() {
            let (ring, end, taken) = rings[self.random.index(rings.len())];
            let more = Bytes::new(1 + self.random.below(40 << 20));
            self.store.give_up(ring, end + more);
            let vacated: Vec<_> = self.store.take_vacated().collect();
            for (disk, place) in vacated {
                self.store.give_back_held(disk, place.start);
            }
            let left = self.store.volume(ring).unwrap().taken();
            self.counts.given_back += (taken - left) / EXTENT;
        }
    }
}
