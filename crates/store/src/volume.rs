//! A volume: its name, its bytes, and where its extents lie.

use crate::api::{BLOCK, DiskIndex, EXTENT, Placement, VolumeId, Zone};
use crate::api::{Ownership, Service, Times};
use crate::blocks::Blocks;
use crate::recorded::{Recorded, Stepped};
use crate::runs::{Freed, Runs};
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;
use units::Bytes;

/// Blocks of an extent that was written to its end.
pub(crate) const BLOCKS: u16 = (EXTENT.get() / BLOCK.get()) as u16;

/// A named sequence of extents. With runs of `r` extents, extent `i` lies on disk
/// `i / r mod k` of the `k` disks of its placement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Volume {
    pub(crate) id: VolumeId,
    pub(crate) name: String,
    pub(crate) placement: Placement,
    /// The extents on each disk of the placement, in its order.
    pub(crate) slots: Vec<Runs>,
    /// The watermark of each extent: how many blocks from its start on were written.
    pub(crate) written: Vec<u16>,
    /// All written blocks of those extents that have some beyond their watermark.
    pub(crate) scattered: BTreeMap<u32, Blocks>,
    pub(crate) length: u64,
    pub(crate) ownership: Ownership,
    pub(crate) service: Option<Service>,
    pub(crate) times: Option<Times>,
    /// Of a ring: how many of its extents it has given up (`ring.rs`). Where others count
    /// extents here, that is by their places.
    pub(crate) ring: Option<u64>,
    /// Of a ring: the seconds for which it keeps what is recorded; 0 where that has no end.
    pub(crate) keep: u32,
    pub(crate) recorded: Recorded,
    /// Of a ring: the clock by which it was recorded was set forward (`stepped.rs`).
    pub(crate) stepped: Option<Stepped>,
}

/// How a volume lies on its disks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Stretches {
    /// Stretches of neighbouring extents.
    pub count: u64,
    /// The shortest of them, in bytes; nothing where there is none.
    pub shortest: Bytes,
}

impl Volume {
    pub(crate) fn new(id: VolumeId, name: String, zone: Zone, disks: Vec<DiskIndex>) -> Self {
        let slots = disks.iter().map(|_| Runs::default()).collect();
        let placement = Placement { disks, zone, run: EXTENT, thin: false };
        let ownership = Ownership::ROOT;
        Self {
            id,
            name,
            placement,
            slots,
            written: Vec::new(),
            scattered: BTreeMap::new(),
            length: 0,
            ownership,
            service: None,
            times: None,
            ring: None,
            keep: 0,
            recorded: Recorded::default(),
            stepped: None,
        }
    }
    /// Its number.
    pub fn id(&self) -> VolumeId {
        self.id
    }
    /// Its name, unique in the pool.
    pub fn name(&self) -> &str {
        &self.name
    }
    /// Its size: a whole number of extents, all of which are reserved unless it is
    /// [thin](Self::is_thin).
    pub fn size(&self) -> Bytes {
        EXTENT * self.extents()
    }
    /// The byte behind the last one recorded.
    pub fn length(&self) -> Bytes {
        Bytes::new(self.length)
    }
    /// Its disks, all of them named, in the order of rotation; and its zone.
    pub fn placement(&self) -> &Placement {
        &self.placement
    }
    /// Whose it is, and what others may do with it.
    pub fn ownership(&self) -> Ownership {
        self.ownership
    }
    /// How it is served and who said so; none where nobody has, or where it is served as by
    /// default again.
    pub fn service(&self) -> Option<Service> {
        self.service
    }
    /// When it was last used; none of a volume of which nobody has ever said it.
    pub fn times(&self) -> Option<Times> {
        self.times
    }
    /// When its bytes were recorded, as far as that was noted.
    pub fn recorded(&self) -> &Recorded {
        &self.recorded
    }
    /// How many extents it has.
    pub fn extents(&self) -> u64 {
        self.written.len() as u64
    }
    /// How many of its extents lie on `disk`, or will.
    pub fn extents_on(&self, disk: DiskIndex) -> u64 {
        let slot = self.placement.disks.iter().position(|&d| d == disk);
        slot.map_or(0, |slot| self.slots[slot].len().into())
    }
    /// The stretch of `disk` that all of its extents there lie in; none where it
    /// has none. Cost: one look at each run of neighbouring extents.
    pub fn span_on(&self, disk: DiskIndex) -> Option<Range<Bytes>> {
        let slot = self.placement.disks.iter().position(|&d| d == disk)?;
        let first = self.slots[slot].placed().map(|run| run.start).min()?;
        let end = self.slots[slot].placed().map(|run| run.start + run.count).max()?;
        Some(EXTENT * u64::from(first)..EXTENT * u64::from(end))
    }
    /// Which blocks of extent `index` were ever written; `None` where there is no such
    /// extent.
    pub(crate) fn blocks(&self, index: u32) -> Option<Blocks> {
        let watermark = *self.written.get(index as usize)?;
        let scattered = self.scattered.get(&index).copied();
        Some(scattered.unwrap_or_else(|| Blocks::first(BLOCK * u64::from(watermark))))
    }
    /// Of extent `index`, the blocks that lie before the end of what is recorded, or that it is in. What
    /// was written behind them is of writes that have not ended, or have failed: nobody is shown it, and
    /// after a crash it was never written. A ring has all: one stream writes it, from its end on. What a
    /// crash leaves behind its end is forgotten when the pool is opened.
    pub fn before_end(&self, index: u64) -> Blocks {
        let before = EXTENT.get().saturating_mul(index);
        match self.is_ring() {
            true => Blocks::first(EXTENT),
            false => Blocks::first(Bytes::new(self.length.saturating_sub(before))),
        }
    }
    /// Of the blocks of extent `index` that were written, those that records speak of.
    pub(crate) fn recorded_blocks(&self, index: u32) -> Option<Blocks> {
        Some(self.blocks(index)?.intersection(&self.before_end(index.into())))
    }
    /// Blocks of extent `index` were written of which no record speaks.
    pub(crate) fn is_ahead(&self, index: u32) -> bool {
        self.blocks(index) != self.recorded_blocks(index)
    }
    /// These blocks of an extent of the volume were written, too. True where that is news.
    pub(crate) fn add(&mut self, index: u32, blocks: Blocks) -> bool {
        let before = self.blocks(index).expect("an extent of the volume");
        let after = before.union(&blocks);
        if after == before {
            return false;
        }
        self.set(index, after);
        true
    }
    /// Exactly these blocks of an extent of the volume were written.
    pub(crate) fn set(&mut self, index: u32, blocks: Blocks) {
        self.written[index as usize] = blocks.count_first();
        if blocks.is_prefix() {
            self.scattered.remove(&index);
        } else {
            self.scattered.insert(index, blocks);
        }
    }
    /// What is recorded ends here. What lay behind that, where it is less than before, was never
    /// written: no old byte comes back when the end moves on.
    pub(crate) fn set_length(&mut self, length: u64) {
        let is_cut = length < self.length && !self.is_ring();
        self.length = length;
        if is_cut {
            self.recorded.cut(Bytes::new(length));
            self.forget_behind_end();
        }
    }
    /// Nothing was ever written behind the end of what is recorded.
    pub(crate) fn forget_behind_end(&mut self) {
        if self.is_ring() {
            return self.forget_behind_ring();
        }
        let last = (self.length / EXTENT.get()) as u32;
        if let Some(blocks) = self.recorded_blocks(last) {
            self.set(last, blocks);
        }
        self.scattered.split_off(&last.saturating_add(1));
        if let Some(behind) = self.written.get_mut(last as usize + 1..) {
            behind.fill(0);
        }
    }
    /// All blocks of all extents were written. The extents of which more is recorded by that, and those
    /// that are [ahead](Self::is_ahead) now and were not full.
    ///
    /// # Panics
    /// Where an extent has no place.
    pub(crate) fn fill(&mut self) -> (Vec<u32>, Vec<u32>) {
        let full = Blocks::first(EXTENT);
        for slot in &self.slots {
            let placed: u32 = slot.placed().map(|run| run.count).sum();
            assert_eq!(placed, slot.len(), "it was written somewhere");
        }
        let is_more = |&index: &u32| self.written[index as usize] != full.count_first();
        let more: Vec<u32> = (0..self.written.len() as u32).filter(is_more).collect();
        // Extents before this one are recorded as a whole, those behind it not at all.
        let end = if self.is_ring() { u32::MAX } else { (self.length / EXTENT.get()) as u32 };
        let at_end = self.recorded_blocks(end);
        self.written.fill(full.count_first());
        self.scattered.clear();
        let is_recorded =
            |&&index: &&u32| index < end || index == end && self.recorded_blocks(end) != at_end;
        let recorded = more.iter().filter(is_recorded).copied().collect();
        let ahead = more.iter().filter(|&&index| index >= end && self.is_ahead(index));
        (recorded, ahead.copied().collect())
    }
    /// The disks that have extents of it, or will.
    pub(crate) fn disks(&self) -> impl Iterator<Item = DiskIndex> {
        let slots = self.placement.disks.iter().zip(&self.slots);
        slots.filter(|(_, slot)| slot.len() > 0).map(|(&disk, _)| disk)
    }
    /// The disk of extent `index`, and the number on it; none where it has no place.
    pub(crate) fn place(&self, index: u32) -> Option<(DiskIndex, Option<u32>)> {
        let (slot, position) = self.slot_of(index);
        let disk = self.placement.disks[slot];
        (u64::from(index) < self.extents()).then(|| (disk, self.slots[slot].get(position)))
    }
    /// In which of its disks' lists extent `index` is, and where in it.
    pub(crate) fn slot_of(&self, index: u32) -> (usize, u32) {
        let (k, r) = (self.slots.len() as u32, self.run());
        let (run, within) = (index / r, index % r);
        ((run % k) as usize, run / k * r + within)
    }
    /// The extent that is at `position` in the list of disk `slot`.
    pub(crate) fn index_of(&self, slot: usize, position: u32) -> u64 {
        let (k, r) = (self.slots.len() as u64, u64::from(self.run()));
        let (run, within) = (u64::from(position) / r, u64::from(position) % r);
        (run * k + slot as u64) * r + within
    }
    /// How many extents it has on a disk before the next disk's turn comes.
    pub(crate) fn run(&self) -> u32 {
        (self.placement.run / EXTENT) as u32
    }
    /// How many of `extents` extents lie on disk `slot`.
    pub(crate) fn share(&self, extents: u32, slot: usize) -> u32 {
        let (k, r, slot) = (self.slots.len() as u32, self.run(), slot as u32);
        let (runs, rest) = (extents / r, extents % r);
        let own = runs / k + u32::from(slot < runs % k);
        own * r + if slot == runs % k { rest } else { 0 }
    }
    /// Its map as it is when it was cut to `size`, for whoever has to know before it is: with its
    /// placement and its extents, and nothing of what is in them.
    pub fn cut_to(&self, size: Bytes) -> Self {
        let mut cut = Self::new(self.id, String::new(), self.placement.zone, Vec::new());
        cut.placement = self.placement.clone();
        cut.slots = self.slots.clone();
        cut.written = vec![0; self.written.len()];
        cut.truncate(size.div_ceil(EXTENT).min(self.extents()) as u32);
        cut
    }
    /// Keeps its first extents, no more than it has, and gives the others.
    pub(crate) fn truncate(&mut self, extents: u32) -> Freed {
        let mut freed = Freed::new();
        for slot in 0..self.slots.len() {
            let (disk, keeps) = (self.placement.disks[slot], self.share(extents, slot));
            let cut = self.slots[slot].truncate(keeps);
            freed.extend(cut.into_iter().map(|run| (disk, run)));
        }
        self.written.truncate(extents as usize);
        freed
    }
    /// The stretches of neighbouring extents that it has on all of its disks.
    pub fn stretches(&self) -> Stretches {
        let runs = || self.slots.iter().flat_map(|slot| slot.placed());
        let shortest = runs().map(|run| run.count).min().unwrap_or(0);
        Stretches { count: runs().count() as u64, shortest: EXTENT * u64::from(shortest) }
    }
    /// Into how many stretches of neighbouring extents a block of so many extents on `disk`
    /// falls at the most, where blocks begin at multiples of their length: what has no place yet
    /// comes to lie in stretches of a run of the volume. Cost: one look at each stretch.
    pub fn pieces_on(&self, disk: DiskIndex, extents: u32) -> u32 {
        let Some(slot) = self.placement.disks.iter().position(|&d| d == disk) else { return 0 };
        let (mut before, mut most, mut block, mut pieces) = (0, 1, 0, 1);
        assert!(extents > 0, "a block of nothing");
        if self.has_room_to_take() {
            most = extents.div_ceil(self.run());
        }
        for run in self.slots[slot].iter() {
            // A stretch that begins within a block makes one piece more of it.
            if before % extents != 0 {
                pieces = if before / extents == block { pieces + 1 } else { 2 };
                block = before / extents;
                most = most.max(pieces);
            }
            before += run.count;
        }
        most
    }
    /// From the first to the last of the extents that a block of so many has on `disk`: the most
    /// of the blocks that lie in several stretches; none where no block does. Blocks and cost as of
    /// [`Volume::pieces_on`].
    pub fn reach_on(&self, disk: DiskIndex, extents: u32) -> Option<Bytes> {
        let slot = self.placement.disks.iter().position(|&d| d == disk)?;
        assert!(extents > 0, "a block of nothing");
        let (mut before, mut most) = (0, None);
        // The block that the last stretch ended in, and from where to where it lies up to now.
        let mut last: Option<(u32, Range<u32>)> = None;
        for run in self.slots[slot].iter() {
            let end = before + run.count;
            if run.has_place() {
                let within = |block: u32| {
                    let from = before.max(block * extents) - before;
                    let upto = end.min((block + 1) * extents) - before;
                    run.start + from..run.start + upto
                };
                let begins = before / extents;
                let mut at = within(begins);
                if let Some((_, other)) = last.filter(|(block, _)| *block == begins) {
                    at = at.start.min(other.start)..at.end.max(other.end);
                    most = most.max(Some(at.end - at.start));
                }
                let ends = (end - 1) / extents;
                last = Some((ends, if ends == begins { at } else { within(ends) }));
            }
            before = end;
        }
        most.map(|extents| EXTENT * u64::from(extents))
    }
}
