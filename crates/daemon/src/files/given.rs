//! Descriptors that programs gave, in hands that may be held for ever.
//!
//! What such a descriptor leads to is the program's choice: a file system of its own may
//! leave every question unanswered, the close too. So each is asked and closed on a
//! thread that nobody else needs, and their number has a bound: a hand for each.
//!
//! Invariant: a descriptor that was given is never asked or closed on a thread of the
//! runtime; no user has more than [`FILES_PER_USER`] of them, all together no more than
//! [`FILES_AT_ONCE`].

use crate::limits::{FILES_AT_ONCE, FILES_PER_USER};
use crate::lock::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// How many hands each user has full.
#[derive(Default)]
pub struct Hands(Mutex<HashMap<u32, usize>>);

/// A hand for one descriptor of a program; free again when dropped.
pub struct Hand {
    hands: Arc<Hands>,
    uid: u32,
}

/// A descriptor that a program gave.
pub struct Given(Option<(OwnedFd, Hand)>);

impl Hands {
    fn full(&self) -> MutexGuard<'_, HashMap<u32, usize>> {
        self.0.lock()
    }

    /// A hand for this user, if there is one.
    pub fn free(self: &Arc<Self>, uid: u32) -> Option<Hand> {
        let mut full = self.full();
        let all: usize = full.values().sum();
        let own = full.get(&uid).copied().unwrap_or_default();
        if own >= FILES_PER_USER || all >= FILES_AT_ONCE {
            return None;
        }
        full.insert(uid, own + 1);
        Some(Hand { hands: Arc::clone(self), uid })
    }
}

impl Drop for Hand {
    fn drop(&mut self) {
        let mut full = self.hands.full();
        let own = full.get_mut(&self.uid).expect("this hand was full");
        *own -= 1;
        if *own == 0 {
            full.remove(&self.uid);
        }
    }
}

impl Given {
    /// What came, in a hand.
    pub fn new(descriptor: OwnedFd, hand: Hand) -> Self {
        Self(Some((descriptor, hand)))
    }

    /// Runs `look` on it, on a thread of its own.
    pub fn look(mut self, look: impl FnOnce(OwnedFd) + Send + 'static) {
        let (descriptor, hand) = self.0.take().expect("looked at or dropped once");
        in_a_thread(move || {
            look(descriptor);
            drop(hand);
        });
    }
}

impl Drop for Given {
    fn drop(&mut self) {
        if let Some(held) = self.0.take() {
            in_a_thread(move || drop(held));
        }
    }
}

/// Where the system has no thread for it, it is not done, and what it holds is closed here:
/// nothing better can be done then.
fn in_a_thread(work: impl FnOnce() + Send + 'static) {
    if let Err(error) = std::thread::Builder::new().name("file".into()).spawn(work) {
        tracing::error!(%error, "no thread to look at a file: {error}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_user_leaves_hands_for_others() {
        let hands = Arc::new(Hands::default());
        let one: Vec<_> = std::iter::from_fn(|| hands.free(1)).collect();
        assert_eq!(one.len(), FILES_PER_USER);
        let others: Vec<_> = (2..100).flat_map(|uid| hands.free(uid)).collect();
        assert_eq!(others.len(), 98.min(FILES_AT_ONCE - FILES_PER_USER));
        drop(one);
        assert!(hands.free(1).is_some());
        drop(others);
        assert!(hands.full().is_empty());
    }
}
