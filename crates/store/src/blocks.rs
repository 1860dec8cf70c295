//! Which blocks of an extent were ever written.
//!
//! Most extents are written from their start on: then the set is a prefix, and only its
//! length is kept (a *watermark*). An extent that was written with holes is *scattered*:
//! all 256 bits of it are kept. Whatever a set does not have reads as zeros.

use crate::sizes::{BLOCK, EXTENT};
use core::fmt;
use core::ops::Range;
use units::Bytes;

/// Blocks of an extent.
const COUNT: u32 = (EXTENT.get() / BLOCK.get()) as u32;
const WORDS: usize = (COUNT / u64::BITS) as usize;
const _: () = assert!(COUNT.is_multiple_of(u64::BITS));

/// A set of the 256 blocks of 4 KiB that an extent has, or of the first blocks of a
/// shorter transfer.
#[derive(Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Blocks(pub(crate) [u64; WORDS]);

impl Blocks {
    /// No block.
    pub const NONE: Self = Self([0; WORDS]);

    /// The first `len` bytes, in whole blocks.
    pub fn first(len: Bytes) -> Self {
        Self::of(&(Bytes::ZERO..len))
    }

    /// Every block that `range` touches; what lies beyond an extent is left out.
    pub fn of(range: &Range<Bytes>) -> Self {
        if range.is_empty() {
            return Self::NONE;
        }
        let from = (range.start / BLOCK).min(COUNT.into()) as u32;
        let to = range.end.div_ceil(BLOCK).min(COUNT.into()) as u32;
        let below = |upto: u32, word: u32| match upto.saturating_sub(word * u64::BITS) {
            bits if bits >= u64::BITS => u64::MAX,
            bits => (1 << bits) - 1,
        };
        Self(core::array::from_fn(|word| below(to, word as u32) & !below(from, word as u32)))
    }

    /// As it lies on a disk: the lowest bit of the first byte is the first block.
    pub(crate) fn to_bytes(self) -> [u8; COUNT as usize / 8] {
        let mut bytes = [0; COUNT as usize / 8];
        for (bytes, word) in bytes.chunks_exact_mut(8).zip(self.0) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }
    /// What [`Blocks::to_bytes`] gave; bytes that are missing are zeros.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Self {
        let byte = |at: usize| bytes.get(at).copied().unwrap_or(0);
        Self(core::array::from_fn(|word| {
            u64::from_le_bytes(core::array::from_fn(|at| byte(word * 8 + at)))
        }))
    }

    /// True where it has no block.
    pub fn is_empty(&self) -> bool {
        *self == Self::NONE
    }
    /// How many blocks it has.
    pub fn count(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }
    /// The blocks of either.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        Self(core::array::from_fn(|word| self.0[word] | other.0[word]))
    }
    /// The blocks that both have.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        Self(core::array::from_fn(|word| self.0[word] & other.0[word]))
    }
    /// The blocks that `other` does not have.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        Self(core::array::from_fn(|word| self.0[word] & !other.0[word]))
    }
    /// True where it has every block that `range` touches.
    pub fn covers(&self, range: &Range<Bytes>) -> bool {
        Self::of(range).without(self).is_empty()
    }
    /// The first block at or behind `from` that it has (`has`) or has not.
    fn next(&self, from: u32, has: bool) -> Option<u32> {
        let first = (from / u64::BITS) as usize;
        self.0.iter().enumerate().skip(first).find_map(|(at, &word)| {
            let start = at as u32 * u64::BITS;
            let wanted = if has { word } else { !word };
            let wanted = wanted & u64::MAX.checked_shl(from.saturating_sub(start)).unwrap_or(0);
            (wanted != 0).then(|| start + wanted.trailing_zeros())
        })
    }
    /// Bytes from the start up to the first block that it does not have.
    pub fn watermark(&self) -> Bytes {
        BLOCK * u64::from(self.next(0, false).unwrap_or(COUNT))
    }
    /// The same in blocks.
    pub(crate) fn count_first(&self) -> u16 {
        (self.watermark() / BLOCK) as u16
    }
    /// True where it has no block behind one that it does not have.
    pub fn is_prefix(&self) -> bool {
        *self == Self::first(self.watermark())
    }
    /// The bytes from the first block that it has to the end of the last; empty where it
    /// has none.
    pub fn span(&self) -> Range<Bytes> {
        let Some(first) = self.next(0, true) else { return Bytes::ZERO..Bytes::ZERO };
        let last = self.0.iter().enumerate().rev().find(|(_, word)| **word != 0);
        let end = last.map_or(0, |(at, word)| (at as u32 + 1) * u64::BITS - word.leading_zeros());
        BLOCK * u64::from(first)..BLOCK * u64::from(end)
    }
    /// Those of `range`, counted from its start, which is a multiple of a block.
    #[must_use]
    pub fn within(&self, range: &Range<Bytes>) -> Self {
        let inside = self.intersection(&Self::of(range)).0;
        let shift = (range.start / BLOCK).min(COUNT.into()) as u32;
        let (words, bits) = ((shift / u64::BITS) as usize, shift % u64::BITS);
        let word = |at: usize| inside.get(at).copied().unwrap_or(0);
        Self(core::array::from_fn(|at| {
            let above = word(at + words + 1).checked_shl(u64::BITS - bits).unwrap_or(0);
            word(at + words) >> bits | above
        }))
    }
    /// Its runs of neighbouring blocks, in their order, in bytes.
    pub fn runs(self) -> impl Iterator<Item = Range<Bytes>> {
        let mut at = 0;
        core::iter::from_fn(move || {
            let start = self.next(at, true)?;
            at = self.next(start, false).unwrap_or(COUNT);
            Some(BLOCK * u64::from(start)..BLOCK * u64::from(at))
        })
    }
    /// What of the first `len` bytes it does not have, as runs of bytes.
    pub fn holes(&self, len: Bytes) -> impl Iterator<Item = Range<Bytes>> {
        Self::first(len).without(self).runs()
    }
}

impl fmt::Debug for Blocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.runs().map(|run| run.start / BLOCK..run.end / BLOCK)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use alloc::vec::Vec;

    fn at(block: u64) -> Bytes {
        BLOCK * block
    }
    fn listed(blocks: &Blocks) -> BTreeSet<u64> {
        blocks.runs().flat_map(|run| run.start / BLOCK..run.end / BLOCK).collect()
    }
    /// Sets of many shapes: edges of words among them.
    fn samples() -> Vec<Range<Bytes>> {
        let edges = [0, 1, 2, 62, 63, 64, 65, 127, 128, 130, 191, 192, 200, 255, 256];
        let pairs = edges.iter().flat_map(|&a| edges.iter().map(move |&b| (a, b)));
        pairs.filter(|(a, b)| a <= b).map(|(a, b)| at(a)..at(b)).collect()
    }

    #[test]
    fn sets_hold_what_lists_of_numbers_hold() {
        for a in samples() {
            let one = Blocks::of(&a);
            let first: BTreeSet<u64> = (a.start / BLOCK..a.end / BLOCK).collect();
            assert_eq!(listed(&one), first);
            assert_eq!(u64::from(one.count()), first.len() as u64);
            assert_eq!(one.is_prefix(), first.is_empty() || first.contains(&0));
            for b in samples() {
                let other = Blocks::of(&b);
                let second: BTreeSet<u64> = (b.start / BLOCK..b.end / BLOCK).collect();
                let both = one.union(&other);
                assert_eq!(listed(&both), &first | &second);
                assert_eq!(listed(&one.intersection(&other)), &first & &second);
                assert_eq!(listed(&one.without(&other)), &first - &second);
                assert_eq!(one.covers(&b), second.is_subset(&first));
                let union = &first | &second;
                let watermark = (0..=256).find(|block| !union.contains(block)).unwrap();
                assert_eq!(both.watermark(), at(watermark));
                let ends = union.first().zip(union.last());
                let span = ends.map_or(at(0)..at(0), |(first, last)| at(*first)..at(last + 1));
                assert_eq!(both.span(), span);
                let cut: BTreeSet<u64> =
                    first.intersection(&second).map(|block| block - b.start / BLOCK).collect();
                assert_eq!(listed(&one.within(&b)), cut, "{a:?} within {b:?}");
                let holes = both.holes(b.end).flat_map(|run| run.start / BLOCK..run.end / BLOCK);
                let missing: Vec<u64> =
                    (0..b.end / BLOCK).filter(|block| !union.contains(block)).collect();
                assert_eq!(holes.collect::<Vec<_>>(), missing);
            }
        }
    }

    #[test]
    fn bytes_round_out_to_blocks_and_end_with_the_extent() {
        let part = Bytes::new(4095)..Bytes::new(4097);
        assert_eq!(Blocks::of(&part), Blocks::first(Bytes::kib(8)));
        assert_eq!(Blocks::of(&(Bytes::mib(3)..Bytes::mib(4))), Blocks::NONE);
        assert_eq!(Blocks::first(Bytes::MAX), Blocks::first(EXTENT));
    }
}
