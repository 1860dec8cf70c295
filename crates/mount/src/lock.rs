//! The one way to take a lock here.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// What of another thread's panic is passed over: it was that thread's call.
pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
