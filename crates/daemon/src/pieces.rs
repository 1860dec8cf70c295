//! A range of a volume in pieces that the pool takes: none crosses a multiple of 1 MiB.

use units::Bytes;
use wire::frame::BODY_MAX;

/// The smallest transfer: reads begin and end at multiples of it.
const BLOCK: u64 = 4096;
const PIECE: u64 = BODY_MAX as u64;

/// A piece of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// In bytes from the start of the volume.
    pub offset: u64,
    /// In bytes.
    pub len: u32,
}

impl Piece {
    /// The whole blocks around it: where they begin, and how long they are.
    pub fn blocks(&self) -> (Bytes, Bytes) {
        let start = self.offset / BLOCK * BLOCK;
        let end = (self.offset + u64::from(self.len)).next_multiple_of(BLOCK);
        (Bytes::new(start), Bytes::new(end - start))
    }

    /// Its bytes in those of [`Piece::blocks`].
    pub fn within<'a>(&self, blocks: &'a [u8]) -> &'a [u8] {
        &blocks[(self.offset % BLOCK) as usize..][..self.len as usize]
    }
}

/// The pieces of `len` bytes from `offset` on, which lie within a volume, in order; none where
/// there are none.
pub fn pieces(offset: u64, len: u64) -> impl ExactSizeIterator<Item = Piece> + Clone {
    let end = offset + len;
    let (first, last) = (offset / PIECE, end.div_ceil(PIECE));
    let count = if len == 0 { 0 } else { (last - first) as usize };
    (0..count).map(move |at| {
        let start = offset.max((first + at as u64) * PIECE);
        let stop = end.min((first + at as u64 + 1) * PIECE);
        Piece { offset: start, len: (stop - start) as u32 }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cover_a_range_and_cross_no_extent() {
        for offset in [0, 1, 4095, PIECE - 1, PIECE, 7 * PIECE + 511] {
            for len in [0, 1, 2, 4096, PIECE - 1, PIECE, PIECE + 1, 5 * PIECE + 77] {
                let mut at = offset;
                for piece in pieces(offset, len) {
                    assert_eq!(piece.offset, at);
                    let last = at + u64::from(piece.len) - 1;
                    assert!(piece.len > 0 && at / PIECE == last / PIECE, "{offset}+{len}");
                    let (start, blocks) = piece.blocks();
                    assert!(start.get() % BLOCK == 0 && blocks.get() % BLOCK == 0);
                    assert!(start.get() <= at && last < (start + blocks).get());
                    assert!(blocks.get() <= PIECE);
                    at = last + 1;
                }
                assert_eq!(at, offset + len);
            }
        }
    }
}
