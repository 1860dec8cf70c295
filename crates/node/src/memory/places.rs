//! Where the blocks of a window are: in the arena, or in a region beside it.
//!
//! Invariants: a place that was taken is nobody else's until it is given; of the
//! places of a region that are free the lowest is taken first, so that a window that
//! shrank and grows again needs no more of the region than it had. A place that the driver gives back
//! to the system at that moment is nobody's until it has.

use crate::api::{Error, Region, Span};
use crate::core::Core;
use crate::limits;
use crate::memory::arena::Use;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use units::Bytes;

/// Where a stream's window is, and which of its blocks are free.
#[derive(Clone, Debug)]
pub(crate) enum WindowMemory {
    Arena,
    Region {
        region: Region,
        /// Places that were given, below `end`.
        spare: BTreeSet<Bytes>,
        /// Never taken from here on.
        end: Bytes,
    },
}

impl WindowMemory {
    /// The arena, or all of a region.
    pub(crate) fn new(region: Option<Region>) -> Self {
        match region {
            None => Self::Arena,
            Some(region) => Self::Region { region, spare: BTreeSet::new(), end: Bytes::ZERO },
        }
    }

    /// Places for so many blocks.
    pub(crate) fn take(
        &mut self,
        core: &mut Core,
        block: Bytes,
        blocks: u64,
    ) -> Result<Vec<Bytes>, Error> {
        let asked = block.saturating_mul(blocks);
        if asked.is_zero() {
            return Ok(Vec::new());
        }
        match self {
            Self::Arena => match core.arena.take(asked, Use::Window) {
                Some(span) => Ok((0..blocks).map(|number| span.offset + block * number).collect()),
                None => Err(Error::NoMemory { asked, free: core.arena.free_for_windows() }),
            },
            Self::Region { region, spare, end } => {
                let held = core.releasing_in(*region).filter(|place| spare.contains(place));
                let usable = spare.len() as u64 - u64::from(held.is_some());
                let left = limits::REGION_STRIDE - *end + block * usable;
                if asked > left {
                    return Err(Error::NoMemory { asked, free: left });
                }
                core.arena.take_beside(asked)?;
                let mut place = || {
                    let lowest = spare.iter().find(|&&place| Some(place) != held).copied();
                    let place = lowest.unwrap_or_else(|| {
                        let fresh = *end;
                        *end += block;
                        fresh
                    });
                    spare.remove(&place);
                    region.offset() + place
                };
                let places: Vec<Bytes> = (0..blocks).map(|_| place()).collect();
                places.iter().for_each(|&offset| core.unfree(offset));
                Ok(places)
            }
        }
    }

    /// A place is not needed any more.
    pub(crate) fn give(&mut self, core: &mut Core, block: Bytes, place: Bytes) {
        let span = Span { offset: place, len: block };
        match self {
            Self::Arena => core.arena.give(span, Use::Window),
            Self::Region { region, spare, .. } => {
                core.arena.give_beside(block);
                spare.insert(place - region.offset());
                core.freed(span);
            }
        }
    }

    /// All of it goes, with these places that were still taken.
    pub(crate) fn leave(
        &mut self,
        core: &mut Core,
        block: Bytes,
        places: impl Iterator<Item = Bytes>,
    ) {
        for place in places {
            self.give(core, block, place);
        }
        if let Self::Region { region, .. } = self {
            core.forget_freed(*region);
        }
    }
}
