//! Descriptors that programs gave, in hands that may be held for ever.
//!
//! What such a descriptor leads to is the program's choice: a file system of its own may
//! leave every question unanswered, the close too. So each is asked and closed on a
//! thread that nobody else needs, and their number has a bound: a hand for each.
//!
//! A file under contract has none while it is open, and one again while it is closed: to close
//! the last descriptor of a large file that was removed takes long on a busy disk.
//!
//! Invariant: a descriptor that was given is never asked or closed on a thread of the
//! runtime; no user gets one more where he has [`FILES_PER_USER`] of them, or all together
//! [`FILES_AT_ONCE`].

use crate::limits::{FILES_AT_ONCE, FILES_PER_USER};
use crate::lock::{Mutex, MutexGuard};
use engine::{HostFile, IoClass};
use std::collections::HashMap;
use std::ops::Deref;
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

/// A file of a program, closed on a thread of its own, whoever drops it.
pub struct Held {
    file: Option<HostFile>,
    hands: Arc<Hands>,
    uid: u32,
    /// Called where the file is closed.
    #[cfg(test)]
    pub closed: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

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

    /// A hand for what is closed, which cannot be refused: also where none is free.
    fn one_more(self: &Arc<Self>, uid: u32) -> Hand {
        *self.full().entry(uid).or_default() += 1;
        Hand { hands: Arc::clone(self), uid }
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
    pub fn look(mut self, look: impl FnOnce(OwnedFd, &Hand) + Send + 'static) {
        let (descriptor, hand) = self.0.take().expect("looked at or dropped once");
        in_a_thread(move || {
            look(descriptor, &hand);
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

impl Held {
    /// A file that was found in this hand.
    pub fn new(file: HostFile, hand: &Hand) -> Self {
        Self {
            file: Some(file),
            hands: Arc::clone(&hand.hands),
            uid: hand.uid,
            #[cfg(test)]
            closed: Mutex::default(),
        }
    }
}

impl Deref for Held {
    type Target = HostFile;
    fn deref(&self) -> &HostFile {
        self.file.as_ref().expect("there until it is dropped")
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let (file, hand) = (self.file.take(), self.hands.one_more(self.uid));
        #[cfg(test)]
        let closed = self.closed.lock().take();
        in_a_thread(move || {
            // A device's thread, whose class this one has then, may have been the last.
            let _ = engine::io_class(IoClass::BestEffort);
            drop(file);
            #[cfg(test)]
            closed.into_iter().for_each(|closed| closed());
            drop(hand);
        });
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

    /// Else whoever opens and closes without end would have threads without end.
    #[test]
    fn what_is_closed_has_a_hand_also_where_none_is_free() {
        let hands = Arc::new(Hands::default());
        let mut full: Vec<_> = std::iter::from_fn(|| hands.free(1)).collect();
        let closing = hands.one_more(1);
        full.pop();
        assert!(hands.free(1).is_none());
        drop(closing);
        assert!(hands.free(1).is_some());
    }
}
