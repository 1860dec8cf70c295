//! The memory of shared windows: regions beside the arena, one for each stream.
//!
//! A region is mapped here and by the program whose stream it is. Disks transfer to
//! and from it, the program reads and writes it; no Rust reference is ever made into
//! it on this side, so that nothing is lent and nothing the program does to it can
//! matter here.
//!
//! Invariants: a region that is [freed](Regions::free) is forgotten when no command is
//! under way in it any more, whatever the node decides; until then its number belongs
//! to nobody else. The memory itself lives for as long as somebody has it.

use crate::lock::Mutex;
use node::Region;
use std::fmt;
use std::io;
use std::sync::Arc;
use units::Bytes;
use window::{Memory, Rights};

/// All regions of a pool.
pub(crate) struct Regions(Mutex<Slots>);

#[derive(Default)]
struct Slots {
    /// By number.
    regions: Vec<Option<Entry>>,
    /// Numbers that nobody has.
    free: Vec<u32>,
}

struct Entry {
    memory: Arc<Memory>,
    /// Commands under way in it.
    commands: u32,
    /// To be forgotten when there are none.
    freed: bool,
}

impl Regions {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Slots::default()))
    }

    /// A new region, for a program with these rights.
    ///
    /// # Errors
    /// When the system has no descriptor or no addresses left.
    pub(crate) fn make(&self, rights: Rights) -> io::Result<(Region, Arc<Memory>)> {
        let len = node::limits::REGION_STRIDE.as_usize();
        let memory = Arc::new(Memory::create("slackline-window", len, rights)?);
        let mut slots = self.0.lock();
        let entry = Entry { memory: Arc::clone(&memory), commands: 0, freed: false };
        let number = slots.free.pop().unwrap_or_else(|| {
            slots.regions.push(None);
            u32::try_from(slots.regions.len() - 1).expect("fewer streams than that")
        });
        slots.regions[number as usize] = Some(entry);
        Ok((Region(number), memory))
    }

    /// The stream is gone. Gives the memory where nothing is under way in it, for the
    /// caller to drop when it holds no lock.
    pub(crate) fn free(&self, region: Region) -> Option<Arc<Memory>> {
        self.0.lock().change(region, |entry| entry.freed = true)
    }

    /// A command in this region begins.
    pub(crate) fn begin(&self, region: Region) {
        let forgotten = self.0.lock().change(region, |entry| entry.commands += 1);
        assert!(forgotten.is_none(), "a region with a command is kept");
    }

    /// A command in this region has ended. As [`Regions::free`].
    pub(crate) fn end(&self, region: Region) -> Option<Arc<Memory>> {
        self.0.lock().change(region, |entry| {
            assert!(entry.commands > 0, "a command ends once");
            entry.commands -= 1;
        })
    }

    /// The address of a part of a region. Panics when it lies outside.
    pub(crate) fn pointer(&self, region: Region, place: Bytes, len: Bytes) -> *mut u8 {
        let known = {
            let slots = self.0.lock();
            let entry = slots.regions.get(region.0 as usize).and_then(Option::as_ref);
            entry.map(|entry| (entry.memory.base(), entry.memory.len() as u64))
        };
        let end = place.checked_add(len).map_or(u64::MAX, Bytes::get);
        let (base, _) = known
            .filter(|&(_, whole)| end <= whole)
            .unwrap_or_else(|| panic!("{len} at {place} outside {region:?}"));
        base.wrapping_add(place.as_usize())
    }

    /// The memory of a region, where somebody has it.
    pub(crate) fn memory(&self, region: Region) -> Option<Arc<Memory>> {
        let slots = self.0.lock();
        let entry = slots.regions.get(region.0 as usize).and_then(Option::as_ref);
        entry.map(|entry| Arc::clone(&entry.memory))
    }

    /// How many there are.
    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.0.lock().regions.iter().flatten().count()
    }
}

impl Slots {
    /// Changes a region, and forgets it where it is not needed any more.
    fn change(&mut self, region: Region, change: impl FnOnce(&mut Entry)) -> Option<Arc<Memory>> {
        let slot = &mut self.regions[region.0 as usize];
        let entry = slot.as_mut().expect("a region that somebody has");
        change(entry);
        if !entry.freed || entry.commands > 0 {
            return None;
        }
        let entry = slot.take().expect("looked at above");
        self.free.push(region.0);
        Some(entry.memory)
    }
}

impl fmt::Debug for Regions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Regions")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_that_is_freed_stays_until_its_last_command_has_ended() {
        let regions = Regions::new();
        let (first, memory) = regions.make(Rights::Write).unwrap();
        let (second, _) = regions.make(Rights::Read).unwrap();
        let watch = Arc::downgrade(&memory);
        drop(memory);
        regions.begin(first);
        regions.begin(first);
        assert!(regions.free(first).is_none());
        assert_eq!(regions.make(Rights::Write).unwrap().0, Region(2), "not the freed one's");
        assert!(regions.end(first).is_none());
        let base = regions.pointer(first, Bytes::ZERO, Bytes::MIB);
        assert_eq!(base, watch.upgrade().unwrap().base());
        drop(regions.end(first).expect("the last"));
        assert!(watch.upgrade().is_none(), "unmapped");
        assert_eq!(regions.make(Rights::Write).unwrap().0, first);
        assert!(regions.free(second).is_some());
        assert_eq!(regions.count(), 2);
    }

    #[test]
    fn nothing_lies_outside_a_region() {
        let regions = std::panic::AssertUnwindSafe(Regions::new());
        let (region, _memory) = regions.make(Rights::Write).unwrap();
        let stride = node::limits::REGION_STRIDE;
        regions.pointer(region, stride - Bytes::KIB, Bytes::KIB);
        for (region, place, len) in [
            (region, stride, Bytes::new(1)),
            (region, Bytes::new(u64::MAX), Bytes::new(2)),
            (Region(1), Bytes::ZERO, Bytes::ZERO),
        ] {
            let outside = std::panic::catch_unwind(|| regions.pointer(region, place, len));
            assert!(outside.is_err(), "{region:?} {place} {len}");
        }
    }
}
