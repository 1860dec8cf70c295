//! Things by key, each at a place of its own.
//!
//! What is put in or taken out does not move those beside it and needs no memory of its own: places are
//! used again.
//!
//! Invariant: `places` has the place of each thing that is in `things`, and `vacant` all others.

use alloc::vec::Vec;
use core::fmt::Debug;
use core::ops::{Index, RangeBounds};
use sched::Sorted;

/// Things by key.
#[derive(Clone, Debug)]
pub struct ByKey<T, K = u64> {
    things: Vec<Option<T>>,
    vacant: Vec<u32>,
    places: Sorted<K, u32>,
}

impl<T, K> Default for ByKey<T, K> {
    fn default() -> Self {
        Self { things: Vec::new(), vacant: Vec::new(), places: Sorted::default() }
    }
}

impl<T, K: Copy + Ord + Debug> ByKey<T, K> {
    /// Puts one in.
    ///
    /// # Panics
    /// Where the key is in use.
    pub fn insert(&mut self, key: K, thing: T) {
        let place = self.vacant.pop().unwrap_or(self.things.len() as u32);
        let before = self.places.insert(key, place);
        assert!(before.is_none(), "key {key:?} is in use");
        match self.things.get_mut(place as usize) {
            Some(free) => *free = Some(thing),
            None => self.things.push(Some(thing)),
        }
    }

    /// Takes one out.
    pub fn remove(&mut self, key: K) -> Option<T> {
        let place = self.places.remove(key)?;
        self.vacant.push(place);
        self.things[place as usize].take()
    }

    /// The one of this key.
    pub fn get(&self, key: K) -> Option<&T> {
        self.places.get(key).map(|&place| self.at(place))
    }

    /// The same, to change.
    pub fn get_mut(&mut self, key: K) -> Option<&mut T> {
        let place = *self.places.get(key)?;
        self.things[place as usize].as_mut()
    }

    /// The one of this key to change, made where there was none.
    pub fn or_default(&mut self, key: K) -> &mut T
    where
        T: Default,
    {
        if self.places.get(key).is_none() {
            self.insert(key, T::default());
        }
        self.get_mut(key).expect("just put in")
    }

    /// Those of these keys, by key.
    pub fn range(&self, keys: impl RangeBounds<K>) -> impl DoubleEndedIterator<Item = (K, &T)> {
        self.places.range(keys).map(|(key, &place)| (key, self.at(place)))
    }

    /// All of them, by key.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &T> {
        self.range(..).map(|(_, thing)| thing)
    }

    /// All of them to change, in no order.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.things.iter_mut().flatten()
    }

    /// True where there is none.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    fn at(&self, place: u32) -> &T {
        self.things[place as usize].as_ref().expect("a place that has a key")
    }
}

impl<T, K: Copy + Ord + Debug> Index<K> for ByKey<T, K> {
    type Output = T;
    fn index(&self, key: K) -> &T {
        self.get(key).expect("a key that is known")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;

    #[test]
    fn it_has_what_a_map_has_in_the_same_order_and_uses_places_again() {
        let (mut things, mut map) = (ByKey::default(), BTreeMap::new());
        let mut random = 7u64;
        for turn in 0..5_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let key = random >> 57;
            match map.remove(&key) {
                Some(thing) => assert_eq!(things.remove(key), Some(thing)),
                None => {
                    assert_eq!((things.remove(key), things.get_mut(key)), (None, None));
                    things.insert(key, turn);
                    map.insert(key, turn);
                }
            }
            assert_eq!((things.get(64), things.is_empty()), (map.get(&64), map.is_empty()));
        }
        assert!(things.range(10..90).eq(map.range(10..90).map(|(&key, thing)| (key, thing))));
        assert!(things.values().rev().eq(map.values().rev()));
        things.values_mut().for_each(|thing| *thing += 1);
        assert!(things.values().copied().eq(map.values().map(|thing| thing + 1)));
        assert!(things.things.len() <= 128, "{}", things.things.len());
    }
}
