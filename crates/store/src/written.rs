//! Which blocks of neighbouring extents were ever written: what one transfer may read.

use crate::blocks::Blocks;
use crate::sizes::EXTENT;
use alloc::vec::Vec;
use core::ops::Range;
use units::Bytes;

/// The written blocks of a transfer that may be longer than an extent, and may begin within
/// one. Offsets are counted from its start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    first: Blocks,
    /// Where the second extent begins.
    head: Bytes,
    more: Vec<Blocks>,
}

impl From<Blocks> for Written {
    fn from(first: Blocks) -> Self {
        Self::new(first, EXTENT)
    }
}

impl Written {
    /// What of an extent's last `head` bytes was written, counted from where these begin.
    pub fn new(first: Blocks, head: Bytes) -> Self {
        Self { first, head, more: Vec::new() }
    }

    /// What of the next extent was written.
    pub fn push(&mut self, blocks: Blocks) {
        self.more.push(blocks);
    }

    /// The same up to `at`, and from there on.
    #[must_use]
    pub fn cut(&self, at: Bytes) -> (Self, Self) {
        let (mut before, mut behind) = (Self::new(Blocks::NONE, self.head), None);
        let first = [(Bytes::ZERO, self.first, self.head)].into_iter();
        let more = self.more.iter().enumerate();
        let more = more.map(|(n, blocks)| (self.head + EXTENT * n as u64, *blocks, EXTENT));
        for (from, blocks, len) in first.chain(more) {
            let upto = at.saturating_sub(from).min(len);
            let (near, far) = (blocks.within(&(Bytes::ZERO..upto)), blocks.within(&(upto..len)));
            if from.is_zero() {
                before.first = near;
            } else {
                before.push(near);
            }
            match &mut behind {
                Some(behind) => Self::push(behind, far),
                None if upto < len => behind = Some(Self::new(far, len - upto)),
                None => {}
            }
        }
        (before, behind.unwrap_or_else(|| Self::new(Blocks::NONE, EXTENT)))
    }

    fn all(&self) -> impl DoubleEndedIterator<Item = (Bytes, &Blocks)> {
        let more = self.more.iter().enumerate();
        let more = more.map(|(n, blocks)| (self.head + EXTENT * n as u64, blocks));
        [(Bytes::ZERO, &self.first)].into_iter().chain(more)
    }

    /// True where it has no block.
    pub fn is_empty(&self) -> bool {
        self.first.is_empty() && self.more.iter().all(Blocks::is_empty)
    }

    /// True where it has all of the first `len` bytes.
    pub fn covers(&self, len: Bytes) -> bool {
        if self.more.is_empty() && len <= EXTENT {
            return self.first.covers(&(Bytes::ZERO..len)); // mostly
        }
        self.holes(len).next().is_none()
    }

    /// The bytes from the first block that it has to the end of the last; empty where it has
    /// none.
    pub fn span(&self) -> Range<Bytes> {
        if self.more.is_empty() {
            return self.first.span(); // mostly
        }
        let mut some = self.all().filter(|(_, blocks)| !blocks.is_empty());
        let Some((at, first)) = some.next() else { return Bytes::ZERO..Bytes::ZERO };
        let (behind, last) = some.next_back().unwrap_or((at, first));
        at + first.span().start..behind + last.span().end
    }

    /// Its runs of neighbouring blocks, in their order, in bytes.
    pub fn runs(&self) -> impl Iterator<Item = Range<Bytes>> {
        let each = |(at, blocks): (Bytes, &Blocks)| {
            blocks.runs().map(move |run| at + run.start..at + run.end)
        };
        let mut all = self.all().flat_map(each).peekable();
        core::iter::from_fn(move || {
            let mut run = all.next()?;
            while let Some(next) = all.next_if(|next| next.start == run.end) {
                run.end = next.end;
            }
            Some(run)
        })
    }

    /// What of the first `len` bytes it does not have, as runs of bytes.
    pub fn holes(&self, len: Bytes) -> impl Iterator<Item = Range<Bytes>> {
        let ends = [len..len];
        let runs = self.runs().chain(ends);
        let mut at = Bytes::ZERO;
        runs.filter_map(move |run| {
            let hole = at..run.start.min(len);
            at = at.max(run.end);
            (hole.start < hole.end).then_some(hole)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sizes::BLOCK;

    /// Cut anywhere, both ends together have what the whole has, each in its place.
    #[test]
    fn both_ends_of_a_cut_have_the_blocks_of_the_whole() {
        for head in [1u64, 100, 256] {
            let mut whole = Written::new(Blocks::of(&(Bytes::ZERO..BLOCK)), BLOCK * head);
            whole.push(Blocks::of(&(BLOCK * 3..BLOCK * 256)));
            whole.push(Blocks::of(&(Bytes::ZERO..BLOCK * 200)));
            let listed = |written: &Written, from: u64| -> Vec<u64> {
                let each = |run: Range<Bytes>| run.start / BLOCK..run.end / BLOCK;
                written.runs().flat_map(each).map(|block| block + from).collect()
            };
            for at in [0, 1, 99, 100, 101, 255, 256, 257, 300, 511, 512, 600] {
                let (before, behind) = whole.cut(BLOCK * at);
                let mut both = listed(&before, 0);
                assert!(both.iter().all(|&block| block < at), "{head} {at}");
                both.extend(listed(&behind, at));
                assert_eq!(both, listed(&whole, 0), "{head} {at}");
            }
        }
    }

    /// Every set of some blocks about the seams of three extents, against a list.
    #[test]
    fn it_is_what_a_list_of_its_blocks_is() {
        let near = [0u64, 1, 254, 255, 256, 257, 511, 512, 767];
        for chosen in 0..1u32 << near.len() {
            let has = |block: u64| {
                near.iter().position(|&n| n == block).is_some_and(|n| chosen >> n & 1 == 1)
            };
            let of = |extent: u64| {
                let blocks = (0..256).filter(|&b| has(extent * 256 + b));
                blocks
                    .map(|b| Blocks::of(&(BLOCK * b..BLOCK * (b + 1))))
                    .fold(Blocks::NONE, |all, one| all.union(&one))
            };
            let mut written = Written::from(of(0));
            written.push(of(1));
            written.push(of(2));
            let all: Vec<u64> = (0..768).filter(|&block| has(block)).collect();
            assert_eq!(written.is_empty(), all.is_empty());
            let ends = all.first().zip(all.last());
            let span = ends.map_or(Bytes::ZERO..Bytes::ZERO, |(a, b)| BLOCK * *a..BLOCK * (*b + 1));
            assert_eq!(written.span(), span);
            let runs: Vec<_> = written.runs().collect();
            assert!(runs.windows(2).all(|two| two[0].end < two[1].start), "{runs:?}");
            let listed: Vec<u64> =
                runs.iter().flat_map(|run| run.start / BLOCK..run.end / BLOCK).collect();
            assert_eq!(listed, all);
            for len in [0u64, 1, 256, 300, 768] {
                let holes =
                    written.holes(BLOCK * len).flat_map(|run| run.start / BLOCK..run.end / BLOCK);
                let missing: Vec<u64> = (0..len).filter(|&block| !has(block)).collect();
                assert_eq!(holes.collect::<Vec<_>>(), missing);
                assert_eq!(written.covers(BLOCK * len), missing.is_empty());
            }
        }
    }
}
