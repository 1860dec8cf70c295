//! Where the structures lie on a disk.
//!
//! ```text
//!  label 0 | area A | extents ... | area B | label 1
//! ```
//!
//! Label 0 and area A are at the start of the disk, area B and label 1 at the
//! end of its last whole extent, so that no single accident at one place takes
//! both copies of anything. An area is a checkpoint region and a log region of
//! fixed sizes; the sizes are the same on every disk of a pool, because every
//! disk carries the same log.

use crate::api::{BLOCK, EXTENT};
use units::Bytes;

/// Room for one label and one profile.
pub const LABEL_REGION: Bytes = Bytes::kib(64);

/// Most disks in a pool: their list must fit in a label of one block.
pub const DISKS_MAX: usize = 64;

/// Largest profile that a disk carries.
pub const PROFILE_MAX: Bytes = Bytes::kib(32);

/// Most extents in a pool, so that extents are counted in 32 bits: 4 PiB.
pub const EXTENTS_MAX: u64 = u32::MAX as u64;

/// Largest checkpoint region.
pub const CHECKPOINT_MAX: Bytes = Bytes::mib(256);

/// Largest log region.
pub const LOG_MAX: Bytes = Bytes::mib(4);

/// Fewest extents that a disk must have left for volumes.
const EXTENTS_MIN: u32 = 4;

/// Which of the two areas of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Area {
    A,
    B,
}

impl Area {
    pub(crate) const BOTH: [Self; 2] = [Self::A, Self::B];

    pub(crate) fn other(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }
    pub(crate) fn as_usize(self) -> usize {
        match self {
            Self::A => 0,
            Self::B => 1,
        }
    }
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::A => "area A",
            Self::B => "area B",
        }
    }
}

/// The sizes of an area's two parts, the same on every disk of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AreaSize {
    pub(crate) checkpoint: Bytes,
    pub(crate) log: Bytes,
}

impl AreaSize {
    /// For a pool of `total` bytes. The checkpoint region has room for the worst
    /// that the extent maps can become, 10 bytes for each extent that is a run of
    /// its own with a watermark of its own, and for the volumes themselves. The
    /// log has room for hundreds of commits on a pool of 1 GiB and more.
    pub(crate) fn for_pool(total: Bytes) -> Self {
        let maps = Bytes::new((total / EXTENT).saturating_mul(10));
        let share = Bytes::new(total.get() / 256);
        let volumes = share.clamp(LABEL_REGION, Bytes::kib(256));
        let checkpoint = maps.checked_add(volumes).unwrap_or(CHECKPOINT_MAX);
        Self {
            checkpoint: checkpoint.min(CHECKPOINT_MAX).round_up(LABEL_REGION),
            log: share.clamp(LABEL_REGION, LOG_MAX).round_down(LABEL_REGION),
        }
    }
    /// True for sizes that a label may carry.
    pub(crate) fn is_possible(self) -> bool {
        let fits =
            |size: Bytes, max| !size.is_zero() && size <= max && size.is_multiple_of(LABEL_REGION);
        fits(self.checkpoint, CHECKPOINT_MAX) && fits(self.log, LOG_MAX)
    }
    fn total(self) -> Bytes {
        self.checkpoint + self.log
    }
}

/// The places on one disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Geometry {
    end: Bytes,
    area: AreaSize,
    /// First extent that volumes can have.
    pub(crate) first: u32,
    /// The one behind the last.
    pub(crate) last: u32,
}

/// Where the second label of a disk of this capacity lies: behind everything else.
pub fn last_label(capacity: Bytes) -> Bytes {
    Geometry::label(capacity, 1)
}

impl Geometry {
    /// The places on a disk of `capacity`; `None` where too little is left for
    /// volumes, or the disk is larger than extents can be counted.
    pub(crate) fn new(capacity: Bytes, area: AreaSize) -> Option<Self> {
        let end = capacity.round_down(EXTENT);
        let edge = LABEL_REGION + area.total();
        let first = u32::try_from(edge.div_ceil(EXTENT)).ok()?;
        let last = u32::try_from(end.saturating_sub(edge) / EXTENT).ok()?;
        (last >= first.saturating_add(EXTENTS_MIN)).then_some(Self { end, area, first, last })
    }
    /// The smallest capacity that [`Geometry::new`] takes.
    pub(crate) fn capacity_min(area: AreaSize) -> Bytes {
        let edge = LABEL_REGION + area.total();
        EXTENT * (edge.div_ceil(EXTENT) * 2 + u64::from(EXTENTS_MIN))
    }
    /// Where label `copy` (0 or 1) of a disk of `capacity` lies.
    pub(crate) fn label(capacity: Bytes, copy: usize) -> Bytes {
        match copy {
            0 => Bytes::ZERO,
            _ => capacity.round_down(EXTENT).saturating_sub(LABEL_REGION),
        }
    }
    /// Where the profile beside label `copy` lies.
    pub(crate) fn profile(capacity: Bytes, copy: usize) -> Bytes {
        Self::label(capacity, copy) + BLOCK
    }
    /// The first byte of an area, where its checkpoint lies.
    pub(crate) fn checkpoint(&self, area: Area) -> Bytes {
        match area {
            Area::A => LABEL_REGION,
            Area::B => self.end - LABEL_REGION - self.area.total(),
        }
    }
    /// The first byte of an area's log.
    pub(crate) fn log(&self, area: Area) -> Bytes {
        self.checkpoint(area) + self.area.checkpoint
    }
    /// Bytes of a checkpoint region.
    pub(crate) fn checkpoint_size(&self) -> Bytes {
        self.area.checkpoint
    }
    /// Bytes of a log region.
    pub(crate) fn log_size(&self) -> Bytes {
        self.area.log
    }
    /// Bytes of a log region that records may use: all but the seal's block.
    pub(crate) fn records_size(&self) -> Bytes {
        self.area.log - BLOCK
    }
    /// Where an area's seal lies: the last block of its log.
    pub(crate) fn seal(&self, area: Area) -> Bytes {
        self.log(area) + self.records_size()
    }
    /// The extent that the inner half begins with.
    pub(crate) fn middle(&self) -> u32 {
        let middle = u32::try_from(self.end / EXTENT / 2).unwrap_or(u32::MAX);
        middle.clamp(self.first, self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both the smallest pool and a 16 TB disk keep nearly all their room for volumes.
    #[test]
    fn metadata_is_small_on_small_and_on_large_disks() {
        for (capacity, room_least) in [
            (Bytes::mib(64), Bytes::mib(62)),
            (Bytes::GIB, Bytes::mib(1014)),
            (Bytes::new(16_000_000_000_000), Bytes::new(15_990_000_000_000)),
        ] {
            let geometry = Geometry::new(capacity, AreaSize::for_pool(capacity)).unwrap();
            let room = EXTENT * u64::from(geometry.last - geometry.first);
            assert!(room >= room_least, "{capacity}: {room}");
            assert!(
                geometry.log(Area::A) + geometry.log_size() <= EXTENT * u64::from(geometry.first)
            );
            assert!(geometry.checkpoint(Area::B) >= EXTENT * u64::from(geometry.last));
            assert_eq!(geometry.seal(Area::B) + BLOCK, Geometry::label(capacity, 1));
        }
    }

    #[test]
    fn the_smallest_disk_fits_and_a_smaller_one_does_not() {
        let area = AreaSize::for_pool(Bytes::mib(8));
        let smallest = Geometry::capacity_min(area);
        assert!(Geometry::new(smallest, area).is_some());
        assert!(Geometry::new(smallest - EXTENT, area).is_none());
        assert!(Geometry::new(Bytes::ZERO, area).is_none());
        assert!(Geometry::new(Bytes::MAX, area).is_none());
    }
}
