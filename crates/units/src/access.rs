//! Where on a disk, which way, and how much.

use crate::Bytes;

/// The unit of a disk address: 512 bytes, whatever the disk's own sector size.
pub const SECTOR: Bytes = Bytes::new(512);

/// A logical block address: the number of a 512-byte sector on one disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Lba(u64);

impl Lba {
    /// The sector with this number.
    pub const fn new(sector: u64) -> Self {
        Self(sector)
    }
    /// The sector that byte `offset` of the disk lies in.
    pub const fn containing(offset: Bytes) -> Self {
        Self(offset.get() / SECTOR.get())
    }
    /// The number of the sector.
    pub const fn get(self) -> u64 {
        self.0
    }
    /// The byte at which the sector starts.
    pub const fn offset(self) -> Bytes {
        Bytes::new(self.0 * SECTOR.get())
    }
    /// The number of sectors between here and `other`, in either direction.
    pub const fn distance(self, other: Self) -> u64 {
        self.0.abs_diff(other.0)
    }
}

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the disk.
    Read,
    /// To the disk.
    Write,
}

/// One contiguous transfer between memory and a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The first sector.
    pub lba: Lba,
    /// How much; a whole number of sectors.
    pub len: Bytes,
    /// Which way.
    pub direction: Direction,
}

impl Access {
    /// The sector after the last one.
    pub const fn end(&self) -> Lba {
        Lba::new(self.lba.0 + self.len.get().div_ceil(SECTOR.get()))
    }
}

/// What a disk is asked to do, once and without interruption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Move bytes.
    Transfer(Access),
    /// Put everything that was written before onto the medium.
    Flush,
}
