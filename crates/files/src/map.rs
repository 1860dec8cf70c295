//! Where a file's bytes lie on its device, and what reading them costs.
//!
//! Invariants: pieces rise in the file, do not overlap, and no two are one run both in
//! the file and on the device. What no piece has is a hole and reads as zeros.

use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;
use disk::Profile;
use units::{Access, Bytes, Direction, Duration, Lba, Outside, SECTOR};

/// A run of bytes that lie together, in the file and on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Where in the file.
    pub at: Bytes,
    /// How many bytes; whole sectors.
    pub len: Bytes,
    /// Where on the device.
    pub lba: Lba,
}

impl Piece {
    fn end(&self) -> Bytes {
        self.at + self.len
    }

    /// The part that lies in `range` of the file.
    fn within(&self, range: &Range<Bytes>) -> Option<Self> {
        let (from, to) = (self.at.max(range.start), self.end().min(range.end.round_up(SECTOR)));
        if from >= to {
            return None;
        }
        let lba = Lba::containing(self.lba.offset() + (from - self.at));
        Some(Self { at: from, len: to - from, lba })
    }

    fn sectors(&self) -> Range<Lba> {
        self.lba..Lba::containing(self.lba.offset() + self.len.round_up(SECTOR))
    }

    fn cost(&self, profile: &Profile) -> Duration {
        profile.worst(self.sectors(), self.len, Direction::Read)
    }
}

/// Why pieces are no map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapError {
    /// Two of them have the same bytes of the file.
    Overlap(Bytes),
    /// One lies behind the end of the device, by its profile.
    Beyond {
        /// Where it ends.
        end: Bytes,
        /// Where the device does.
        capacity: Bytes,
    },
    /// The file, or what is said of a piece, is longer than anything can be.
    TooLong(Bytes),
}

impl fmt::Display for MapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong(length) => write!(f, "a file of {length}: at most 1 EiB is taken"),
            Self::Overlap(at) => write!(f, "two extents have the file's byte {}", at.get()),
            Self::Beyond { end, capacity } => write!(
                f,
                "the file lies up to {end} of a device whose profile ends at {capacity}: the \
                 profile is another device's"
            ),
        }
    }
}
impl core::error::Error for MapError {}

/// Where a whole file lies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileMap {
    pieces: Vec<Piece>,
    length: Bytes,
}

impl FileMap {
    /// A file of `length` whose data is in these pieces, on a device of `capacity`.
    ///
    /// # Errors
    /// [`MapError`].
    pub fn new(mut pieces: Vec<Piece>, length: Bytes, capacity: Bytes) -> Result<Self, MapError> {
        let at_least = |lba: Lba| SECTOR.saturating_mul(lba.get());
        let of_piece = |piece: &Piece| piece.at.max(piece.len).max(at_least(piece.lba));
        let longest = pieces.iter().map(of_piece).max().unwrap_or_default().max(length);
        if longest > Bytes::OUTSIDE_MAX {
            return Err(MapError::TooLong(longest));
        }
        pieces.retain(|piece| !piece.len.is_zero() && piece.at < length.round_up(Bytes::kib(64)));
        pieces.sort_unstable_by_key(|piece| piece.at);
        let mut merged: Vec<Piece> = Vec::with_capacity(pieces.len());
        for piece in pieces {
            let end = piece.sectors().end.offset();
            if end > capacity {
                return Err(MapError::Beyond { end, capacity });
            }
            match merged.last_mut() {
                Some(last) if last.end() > piece.at => return Err(MapError::Overlap(piece.at)),
                Some(last)
                    if last.end() == piece.at
                        && last.sectors().end.offset() == piece.lba.offset() =>
                {
                    last.len += piece.len;
                }
                _ => merged.push(piece),
            }
        }
        Ok(Self { pieces: merged, length })
    }

    /// How long the file is.
    pub fn length(&self) -> Bytes {
        self.length
    }

    /// In how many runs the file lies.
    pub fn runs(&self) -> usize {
        self.pieces.len()
    }

    /// The runs that the bytes of `range` lie in.
    fn parts(&self, range: Range<Bytes>) -> impl Iterator<Item = Piece> {
        let first = self.pieces.partition_point(|piece| piece.end() <= range.start);
        let all = self.pieces[first..].iter();
        all.map_while(move |piece| piece.within(&range))
    }

    /// The bytes of `range` as one command, and what they cost at the most: more than the
    /// command where they lie in several runs. A hole, which the file system answers
    /// alone, counts as the shortest read there is.
    pub fn command(&self, profile: &Profile, range: Range<Bytes>) -> (Access, Duration) {
        let mut parts = self.parts(range);
        let hole = Piece { at: Bytes::ZERO, len: Bytes::kib(4), lba: Lba::default() };
        let first = parts.next().unwrap_or(hole);
        let cost = first.cost(profile) + parts.map(|part| part.cost(profile)).sum::<Duration>();
        (Access { lba: first.lba, len: first.len, direction: Direction::Read }, cost)
    }

    /// The most that reading any of its blocks costs. Cost: one look at each run.
    pub fn worst(&self, profile: &Profile, block: Bytes) -> Duration {
        let of_block = |number: u64| {
            let from = block * number;
            self.command(profile, from..from + block).1
        };
        let whole = |piece: &Piece| {
            let len = block.min(piece.len);
            profile.worst(piece.sectors(), len, Direction::Read)
        };
        // A block lies in one run, or has the beginning or the end of one in it.
        let inside = self.pieces.iter().map(whole).max();
        let edges =
            self.pieces.iter().flat_map(|piece| [piece.at, piece.end().saturating_sub(SECTOR)]);
        let edges = edges.map(|at| of_block(at / block)).max();
        inside.max(edges).unwrap_or_else(|| of_block(0))
    }
}
