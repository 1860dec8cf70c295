//! A lock that a fork finds free.
//!
//! A child of a fork has only the thread that forked: a lock that another thread held then would
//! never become free in it. So who forks takes the locks before ([`crate::forks`]), and both
//! processes release theirs behind it.

use std::cell::UnsafeCell;
use std::sync::{Mutex, MutexGuard, PoisonError};

pub struct Lock<T: 'static> {
    inside: Mutex<T>,
    /// While a fork is made. Only who holds the lock looks at it.
    held: UnsafeCell<Option<MutexGuard<'static, T>>>,
}

// SAFETY: `inside` is for all threads, and `held` for the one that holds `inside`.
unsafe impl<T: Send> Sync for Lock<T> {}

impl<T> Lock<T> {
    pub const fn new(inside: T) -> Self {
        Self { inside: Mutex::new(inside), held: UnsafeCell::new(None) }
    }

    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Before a fork: takes it.
    pub fn hold(&'static self) {
        let guard = self.lock();
        // SAFETY: this thread holds the lock.
        unsafe { *self.held.get() = Some(guard) };
    }

    /// Behind a fork, on the thread that held it: gives it back, after `what` was done.
    pub fn release(&'static self, what: impl FnOnce(&mut T)) {
        // SAFETY: this thread, or the one in the parent that this is a copy of, holds the lock.
        if let Some(mut guard) = unsafe { (*self.held.get()).take() } {
            what(&mut guard);
        }
    }
}
