//! Which blocks of a stream are in its window, and what each of them is doing.

use crate::Contract;
use alloc::collections::VecDeque;
use units::{Bytes, Duration};

/// The blocks `first .. first + len` of a stream; `S` is what one is doing.
#[derive(Clone, Debug)]
pub struct Window<S> {
    first: u64,
    slots: VecDeque<S>,
    /// How many blocks it shall have; it has more until it has slid.
    pub target: u64,
}

impl<S> Window<S> {
    /// A window that begins with block `first`.
    pub fn new(first: u64, slots: impl IntoIterator<Item = S>) -> Self {
        let slots: VecDeque<S> = slots.into_iter().collect();
        Self { first, target: slots.len() as u64, slots }
    }

    /// The number of its first block.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// The number of the first block behind it.
    pub fn end(&self) -> u64 {
        self.first + self.len()
    }

    /// How many blocks it has.
    pub fn len(&self) -> u64 {
        self.slots.len() as u64
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// How long it lasts at the contract's rate.
    pub fn time(&self, contract: &Contract) -> Duration {
        contract.rate.time_for(contract.block.saturating_mul(self.len()))
    }

    /// Its memory.
    pub fn memory(&self, contract: &Contract) -> Bytes {
        contract.block.saturating_mul(self.len())
    }

    fn at(&self, block: u64) -> Option<usize> {
        usize::try_from(block.checked_sub(self.first)?).ok()
    }

    /// What a block is doing; none outside of the window.
    pub fn get(&self, block: u64) -> Option<&S> {
        self.slots.get(self.at(block)?)
    }

    /// The same, to change.
    pub fn get_mut(&mut self, block: u64) -> Option<&mut S> {
        let at = self.at(block)?;
        self.slots.get_mut(at)
    }

    /// All blocks, with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &S)> {
        (self.first..self.end()).zip(&self.slots)
    }

    /// The same, to change.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (u64, &mut S)> {
        (self.first..self.end()).zip(&mut self.slots)
    }

    /// The first block leaves the window.
    pub fn pop_front(&mut self) -> Option<S> {
        let slot = self.slots.pop_front()?;
        self.first += 1;
        Some(slot)
    }

    /// The last block leaves the window.
    pub fn pop_back(&mut self) -> Option<S> {
        self.slots.pop_back()
    }

    /// The next block behind the window joins it.
    pub fn push_back(&mut self, slot: S) {
        self.slots.push_back(slot);
    }

    /// Puts the window elsewhere, with as many other slots; gives the old ones.
    pub fn replace(&mut self, first: u64, slots: VecDeque<S>) -> VecDeque<S> {
        self.first = first;
        core::mem::replace(&mut self.slots, slots)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use units::Rate;

    #[test]
    fn blocks_keep_their_numbers_while_the_window_slides_and_moves() {
        let mut window = Window::new(10, [0, 1, 2]);
        assert_eq!((window.first(), window.end(), window.len()), (10, 13, 3));
        assert_eq!(window.target, 3);
        assert_eq!(
            [9, 10, 12, 13].map(|block| window.get(block).copied()),
            [None, Some(0), Some(2), None]
        );
        assert_eq!(window.pop_front(), Some(0));
        window.push_back(3);
        *window.get_mut(12).unwrap() = 7;
        for (block, slot) in window.iter_mut() {
            *slot += block * 100;
        }
        let all: Vec<(u64, u64)> = window.iter().map(|(block, &slot)| (block, slot)).collect();
        assert_eq!(all, [(11, 1_101), (12, 1_207), (13, 1_303)]);
        assert_eq!(window.pop_back(), Some(1_303));
        assert_eq!(window.replace(40, VecDeque::from([5])), [1_101, 1_207]);
        assert_eq!((window.first(), window.end(), window.get(40)), (40, 41, Some(&5)));
        assert_eq!(window.pop_front(), Some(5));
        assert_eq!(window.pop_front(), None);
        assert_eq!(window.first(), 41, "an empty window does not slide");
        assert!(window.is_empty());
    }

    #[test]
    fn a_window_lasts_as_long_as_its_blocks() {
        let contract =
            Contract { rate: Rate::per_second(4_096), block: Bytes::kib(4), burst: Bytes::ZERO };
        let window = Window::new(0, [(); 5]);
        assert_eq!(window.time(&contract), Duration::from_secs(5));
        assert_eq!(window.memory(&contract), Bytes::kib(20));
    }
}
