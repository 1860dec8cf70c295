//! A map in the order of its keys, for what comes and goes with each request.
//!
//! Mostly it has some tens of things: then they lie side by side, and to put one in or take one out
//! moves a few hundred bytes. A tree of boxes splits and merges these all the time, and asks for
//! memory. Where there are more they are in chunks, so that no step moves more than one of these.
//!
//! Invariants: keys rise within each chunk, and from each chunk to the next; no chunk has more than
//! [`CHUNK`]; none is empty, but where it is the only one.

use alloc::vec::Vec;
use core::ops::{Bound, RangeBounds};

/// How many things lie side by side at the most.
const CHUNK: usize = 64;

/// A map in the order of its keys.
#[derive(Clone, Debug)]
pub struct Sorted<K, V> {
    chunks: Vec<Vec<(K, V)>>,
    len: usize,
}

impl<K, V> Default for Sorted<K, V> {
    fn default() -> Self {
        Self { chunks: Vec::new(), len: 0 }
    }
}

impl<K: Copy + Ord, V> Sorted<K, V> {
    /// Puts one in, and gives the one that had its key.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        let (at, within) = self.place(key);
        let Some(chunk) = self.chunks.get_mut(at) else {
            self.chunks.push(Vec::from([(key, value)]));
            self.len = 1;
            return None;
        };
        match within {
            Ok(within) => Some(core::mem::replace(&mut chunk[within].1, value)),
            Err(within) => {
                self.len += 1;
                chunk.insert(within, (key, value));
                if chunk.len() > CHUNK {
                    // Keys rise mostly: who comes at the end leaves a full chunk behind.
                    let split = if within == CHUNK { CHUNK } else { CHUNK / 2 };
                    let far = chunk.split_off(split);
                    self.chunks.insert(at + 1, far);
                }
                None
            }
        }
    }

    /// Takes one out.
    pub fn remove(&mut self, key: K) -> Option<V> {
        let (at, within) = self.place(key);
        let within = within.ok()?;
        let (_, value) = self.chunks[at].remove(within);
        self.len -= 1;
        if self.chunks[at].is_empty() && self.chunks.len() > 1 {
            self.chunks.remove(at);
        }
        Some(value)
    }

    /// The one of this key.
    pub fn get(&self, key: K) -> Option<&V> {
        let (at, within) = self.place(key);
        let within = within.ok()?;
        Some(&self.chunks[at][within].1)
    }

    /// Those of these keys, in their order.
    pub fn range(&self, keys: impl RangeBounds<K>) -> impl DoubleEndedIterator<Item = (K, &V)> {
        let (from, within_from) = match keys.start_bound() {
            Bound::Included(key) => self.upto(|other| other < key),
            Bound::Excluded(key) => self.upto(|other| other <= key),
            Bound::Unbounded => (0, 0),
        };
        let (to, within_to) = match keys.end_bound() {
            Bound::Included(key) => self.upto(|other| other <= key),
            Bound::Excluded(key) => self.upto(|other| other < key),
            Bound::Unbounded => (self.chunks.len(), 0),
        };
        let end = self.chunks.len().min(to + 1);
        let part = move |at: usize| {
            let chunk = &self.chunks[at][..];
            let chunk = if at == to { &chunk[..within_to] } else { chunk };
            let chunk = if at == from { &chunk[within_from..] } else { chunk };
            chunk.iter().map(|(key, value)| (*key, value))
        };
        (from..end).flat_map(part)
    }

    /// The first of them.
    pub fn first(&self) -> Option<&V> {
        self.chunks.first()?.first().map(|(_, value)| value)
    }

    /// All of them, in the order of their keys.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &V> {
        self.chunks.iter().flatten().map(|(_, value)| value)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True where there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The chunk that this key belongs into, and where in it it is, or would be.
    fn place(&self, key: K) -> (usize, Result<usize, usize>) {
        let at = self.chunk(|other| *other <= key);
        let chunk = self.chunks.get(at).map_or(&[][..], |chunk| chunk);
        match chunk.last() {
            // Keys rise mostly: who comes, comes last.
            Some((last, _)) if *last < key => (at, Err(chunk.len())),
            _ => (at, chunk.binary_search_by_key(&key, |(other, _)| *other)),
        }
    }

    /// The chunk in which those end that are `before`, and how many of it are.
    fn upto(&self, before: impl Fn(&K) -> bool) -> (usize, usize) {
        let at = self.chunk(&before);
        let chunk = self.chunks.get(at).map_or(&[][..], |chunk| chunk);
        (at, chunk.partition_point(|(key, _)| before(key)))
    }

    /// The last chunk whose first is `before`; the first chunk where none's is.
    fn chunk(&self, before: impl Fn(&K) -> bool) -> usize {
        if self.chunks.len() <= 1 {
            return 0;
        }
        let begins = |chunk: &Vec<(K, V)>| chunk.first().is_some_and(|(key, _)| before(key));
        self.chunks.partition_point(begins).saturating_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;

    /// As few as one chunk has and many times as many, with keys that rise and keys in no order.
    #[test]
    fn it_has_what_a_map_has_in_the_same_order() {
        for (bits, rises) in [(4, false), (7, false), (11, false), (7, true), (11, true)] {
            let (mut sorted, mut map) = (Sorted::default(), BTreeMap::new());
            let mut random = 7u64;
            let mut next = move || {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                random >> (64 - bits)
            };
            for turn in 0..20_000u64 {
                let base = if rises { turn } else { 0 };
                let (key, old) = (base + next(), base.saturating_sub(next()) + next());
                assert_eq!(sorted.get(old), map.get(&old));
                if map.len() as u64 >> (bits - 1) == 0 {
                    assert_eq!(sorted.insert(key, turn), map.insert(key, turn));
                }
                assert_eq!(sorted.remove(old), map.remove(&old));
                assert_eq!((sorted.len(), sorted.is_empty()), (map.len(), map.is_empty()));
                assert_eq!(sorted.first(), map.first_key_value().map(|(_, value)| value));
                if turn % 64 == 0 {
                    let (from, to) = (old.min(key), old.max(key));
                    let same = |(&key, value)| (key, value);
                    assert!(sorted.range(from..to).eq(map.range(from..to).map(same)));
                    assert!(sorted.range(from..).eq(map.range(from..).map(same)));
                    assert!(sorted.range(..to).rev().eq(map.range(..to).rev().map(same)));
                    assert!(sorted.range(..=to).rev().eq(map.range(..=to).rev().map(same)));
                    assert!(sorted.values().rev().eq(map.values().rev()));
                }
            }
            assert!(sorted.chunks.len() == 1 || sorted.chunks.iter().all(|it| !it.is_empty()));
            assert!(sorted.chunks.iter().all(|it| it.len() <= CHUNK));
        }
    }
}
