//! A map in the order of its keys, of things that are numbered one after another, and found often.
//!
//! A tree of large things is looked through at places that nobody else needs: with a thousand of them a
//! search waits for memory several times. Here a search goes through the few pages' numbers, and then to
//! one place.
//!
//! Invariants: no page is empty; `len` counts the things of all pages.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, btree_map};
use alloc::vec::Vec;
use core::marker::PhantomData;
use core::ops::{Bound, Index, RangeBounds};

/// How many numbers a page has.
const PAGE: usize = 64;

/// What numbers a thing.
pub trait Number: Copy {
    /// As a number.
    fn number(self) -> u64;
    /// From its number.
    fn from_number(number: u64) -> Self;
}

/// A map of things that are numbered one after another, in the order of their numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Numbered<K, V> {
    pages: BTreeMap<u64, Page<V>>,
    len: usize,
    keys: PhantomData<K>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Page<V> {
    places: Box<[Option<Box<V>>]>,
    len: usize,
}

impl<K, V> Default for Numbered<K, V> {
    fn default() -> Self {
        Self { pages: BTreeMap::new(), len: 0, keys: PhantomData }
    }
}

fn split(number: u64) -> (u64, usize) {
    (number / PAGE as u64, (number % PAGE as u64) as usize)
}

impl<K: Number, V> Numbered<K, V> {
    /// Puts one in, and gives the one that had its number.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        let place = self.place(key);
        let before = place.replace(Box::new(value));
        if before.is_none() {
            self.count(key);
        }
        before.map(|before| *before)
    }

    /// Takes one out.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        let (page, at) = split(key.number());
        let btree_map::Entry::Occupied(mut entry) = self.pages.entry(page) else { return None };
        let value = entry.get_mut().places[at].take()?;
        entry.get_mut().len -= 1;
        if entry.get().len == 0 {
            entry.remove();
        }
        self.len -= 1;
        Some(*value)
    }

    /// The one of this number.
    pub fn get(&self, key: &K) -> Option<&V> {
        let (page, at) = split(key.number());
        self.pages.get(&page)?.places[at].as_deref()
    }

    /// The same, to change.
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let (page, at) = split(key.number());
        self.pages.get_mut(&page)?.places[at].as_deref_mut()
    }

    /// The one of this number, made where there was none.
    pub fn or_default(&mut self, key: K) -> &mut V
    where
        V: Default,
    {
        if self.place(key).is_none() {
            self.insert(key, V::default());
        }
        self.get_mut(&key).expect("just put in")
    }

    /// True where there is one of this number.
    pub fn contains_key(&self, key: &K) -> bool {
        self.get(key).is_some()
    }

    /// Those of these numbers, in their order.
    pub fn range(&self, keys: impl RangeBounds<K>) -> impl Iterator<Item = (K, &V)> {
        let from = match keys.start_bound() {
            Bound::Included(key) => Some(key.number()),
            Bound::Excluded(key) => key.number().checked_add(1),
            Bound::Unbounded => Some(0),
        };
        let last = match keys.end_bound() {
            Bound::Included(key) => Some(key.number()),
            Bound::Excluded(key) => key.number().checked_sub(1),
            Bound::Unbounded => Some(u64::MAX),
        };
        let (from, last) = match (from, last) {
            (Some(from), Some(last)) if from <= last => (from, last),
            // No number at all.
            _ => (u64::MAX, 0),
        };
        let pages =
            (from <= last).then(|| self.pages.range(from / PAGE as u64..=last / PAGE as u64));
        let all = pages.into_iter().flatten().flat_map(|(&page, it)| things(page, it));
        all.skip_while(move |(number, _)| *number < from)
            .take_while(move |(number, _)| *number <= last)
            .map(|(number, value)| (K::from_number(number), value))
    }

    /// All of them, in the order of their numbers.
    pub fn values(&self) -> impl ExactSizeIterator<Item = &V> {
        let places = self.pages.values().flat_map(|page| page.places.iter());
        Counted { things: places.flatten().map(|value| &**value), left: self.len }
    }

    /// The same, to change.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        let pages = self.pages.values_mut();
        pages.flat_map(|page| page.places.iter_mut().flatten().map(|value| &mut **value))
    }

    /// All of them, in the order of their numbers.
    pub fn into_values(self) -> impl Iterator<Item = V> {
        let places = self.pages.into_values().flat_map(|page| page.places.into_vec());
        places.flatten().map(|value| *value)
    }

    /// The greatest number.
    pub fn last_key(&self) -> Option<K> {
        let (&page, it) = self.pages.last_key_value()?;
        let at = it.places.iter().rposition(Option::is_some).expect("no page is empty");
        Some(K::from_number(page * PAGE as u64 + at as u64))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True where there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn place(&mut self, key: K) -> &mut Option<Box<V>> {
        let (page, at) = split(key.number());
        let page = self.pages.entry(page).or_insert_with(|| Page {
            places: (0..PAGE).map(|_| None).collect::<Vec<_>>().into_boxed_slice(),
            len: 0,
        });
        &mut page.places[at]
    }

    fn count(&mut self, key: K) {
        let (page, _) = split(key.number());
        self.pages.get_mut(&page).expect("just made").len += 1;
        self.len += 1;
    }
}

/// So many things, and no more.
struct Counted<I> {
    things: I,
    left: usize,
}

impl<I: Iterator> Iterator for Counted<I> {
    type Item = I::Item;
    fn next(&mut self) -> Option<I::Item> {
        self.left = self.left.saturating_sub(1);
        self.things.next()
    }
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<I: Iterator> ExactSizeIterator for Counted<I> {}

/// What is on a page, with its numbers.
fn things<V>(page: u64, it: &Page<V>) -> impl Iterator<Item = (u64, &V)> {
    let places = it.places.iter().enumerate();
    places.filter_map(move |(at, value)| {
        value.as_deref().map(|value| (page * PAGE as u64 + at as u64, value))
    })
}

impl<K: Number, V> Index<&K> for Numbered<K, V> {
    type Output = V;
    fn index(&self, key: &K) -> &V {
        self.get(key).expect("a number that is known")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Number for u64 {
        fn number(self) -> u64 {
            self
        }
        fn from_number(number: u64) -> Self {
            number
        }
    }

    /// Numbers that rise and lie close, such that lie far apart, and the greatest of all.
    #[test]
    fn it_has_what_a_map_has_in_the_same_order() {
        for (bits, factor) in [(7, 1), (10, 1), (10, 61), (6, u64::MAX / 63)] {
            let (mut numbered, mut map) = (Numbered::default(), BTreeMap::new());
            let mut random = 7u64;
            let mut next = move || {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (random >> (64 - bits)) * factor
            };
            for turn in 0..20_000u64 {
                let (key, old, made) = (next(), next(), next());
                assert_eq!(numbered.insert(key, turn), map.insert(key, turn));
                assert_eq!(numbered.remove(&old), map.remove(&old));
                assert_eq!(numbered.get(&made), map.get(&made));
                *numbered.or_default(made) += 1;
                *map.entry(made).or_default() += 1;
                assert_eq!(numbered.get_mut(&old), map.get_mut(&old));
                assert_eq!(numbered.contains_key(&key), map.contains_key(&key));
                assert_eq!(numbered[&made], map[&made]);
                assert_eq!((numbered.len(), numbered.is_empty()), (map.len(), map.is_empty()));
                assert_eq!(numbered.last_key(), map.last_key_value().map(|(&key, _)| key));
                if turn % 64 == 0 {
                    let (from, to) = (old.min(key), old.max(key));
                    let same = |(&key, value)| (key, value);
                    let behind = (Bound::Excluded(from), Bound::Unbounded);
                    assert!(numbered.range(from..to).eq(map.range(from..to).map(same)));
                    assert!(numbered.range(from..=to).eq(map.range(from..=to).map(same)));
                    assert!(numbered.range(behind).eq(map.range(behind).map(same)));
                    assert!(numbered.range(..to).eq(map.range(..to).map(same)));
                    assert!(numbered.range(..).eq(map.iter().map(same)));
                    assert!(numbered.range(from..from).next().is_none());
                    let behind_all = (Bound::Excluded(u64::MAX), Bound::Unbounded);
                    assert!(numbered.range(behind_all).next().is_none());
                    assert!(numbered.values().eq(map.values()));
                    assert_eq!(numbered.values().len(), map.len());
                    numbered.values_mut().for_each(|value| *value += 1);
                    map.values_mut().for_each(|value| *value += 1);
                }
            }
            assert!(
                numbered.pages.values().all(|page| {
                    page.len > 0 && page.len == page.places.iter().flatten().count()
                })
            );
            for key in map.keys() {
                assert!(numbered.remove(key).is_some());
            }
            assert!(numbered.is_empty() && numbered.pages.is_empty());
            assert_eq!((numbered.last_key(), numbered.into_values().count()), (None, 0));
        }
    }
}
