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

    /// Its first `len` bytes, whole sectors, and the rest.
    pub fn cut(self, len: Bytes) -> (Self, Self) {
        let near = Self { len, ..self };
        (near, Self { lba: near.end(), len: self.len - len, ..self })
    }
}

/// What a disk is asked to do, once and without interruption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Move bytes.
    Transfer(Access),
    /// Move bytes and do not end before the medium took part (force-unit-access): a
    /// read comes from the medium; a write is on it, and so is all that waited in
    /// the disk's write buffer.
    Forced(Access),
    /// Bring the heads to the track of this sector and move no bytes. Linux has no
    /// way to ask a real disk for it: only a simulated or an emulated disk is
    /// given one.
    Seek(Lba),
    /// Put everything that was written before onto the medium.
    Flush,
}

impl Command {
    /// The bytes that move, where any do.
    pub const fn access(&self) -> Option<&Access> {
        match self {
            Self::Transfer(access) | Self::Forced(access) => Some(access),
            Self::Seek(_) | Self::Flush => None,
        }
    }
    /// Where the heads go first, where that is known.
    pub const fn lba(&self) -> Option<Lba> {
        match self {
            Self::Transfer(access) | Self::Forced(access) => Some(access.lba),
            Self::Seek(lba) => Some(*lba),
            Self::Flush => None,
        }
    }
    /// Where the heads are afterwards, as far as the command moves them.
    pub const fn end(&self) -> Option<Lba> {
        match self {
            Self::Transfer(access) | Self::Forced(access) => Some(access.end()),
            Self::Seek(lba) => Some(*lba),
            Self::Flush => None,
        }
    }
}
