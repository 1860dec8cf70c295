//! The lock that a pool's threads share: a mutex with priority inheritance.
//!
//! A disk's thread runs at real-time priority, a program's thread does not. If
//! the second holds the lock and is put aside for a third, the first would wait
//! for all of them. With inheritance the holder runs at the priority of whoever
//! waits. Locking it twice on one thread is a programmer error and panics.
#![allow(unsafe_code)]

use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};

/// A value behind a lock with priority inheritance.
pub(crate) struct Mutex<T> {
    /// In a box, since a POSIX mutex must not move.
    raw: Box<UnsafeCell<libc::pthread_mutex_t>>,
    /// Set when a thread panicked inside the lock: the value may be half changed.
    poisoned: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: the lock gives one thread at a time access to the value.
unsafe impl<T: Send> Send for Mutex<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Mutex<T> {}

impl<T> Mutex<T> {
    /// A value that nobody has locked.
    pub(crate) fn new(value: T) -> Self {
        // SAFETY: a POSIX mutex is plain data; `init` below makes it valid.
        let raw = Box::new(UnsafeCell::new(unsafe { std::mem::zeroed() }));
        Self::init(raw.get());
        Self { raw, poisoned: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    fn init(raw: *mut libc::pthread_mutex_t) {
        let mut attributes = MaybeUninit::<libc::pthread_mutexattr_t>::uninit();
        let attributes = attributes.as_mut_ptr();
        // SAFETY: the attributes are initialised by the first call, used by the
        // next three and destroyed by the last; `raw` is valid and not yet a mutex.
        let results = unsafe {
            [
                libc::pthread_mutexattr_init(attributes),
                libc::pthread_mutexattr_setprotocol(attributes, libc::PTHREAD_PRIO_INHERIT),
                libc::pthread_mutexattr_settype(attributes, libc::PTHREAD_MUTEX_ERRORCHECK),
                libc::pthread_mutex_init(raw, attributes),
                libc::pthread_mutexattr_destroy(attributes),
            ]
        };
        assert_eq!(results, [0; 5], "a mutex with priority inheritance can be made");
    }

    /// Waits for the lock. Panics when this thread has it already, or when a
    /// thread panicked while it had it.
    pub(crate) fn lock(&self) -> Guard<'_, T> {
        // SAFETY: the mutex was initialised in `new` and lives as long as `self`.
        let result = unsafe { libc::pthread_mutex_lock(self.raw.get()) };
        assert_eq!(result, 0, "the pool's lock is taken once a thread");
        let guard =
            Guard { mutex: self, panicking: std::thread::panicking(), on_this_thread: PhantomData };
        assert!(
            !self.poisoned.load(Ordering::Relaxed),
            "a thread panicked while it changed the pool; open the pool again"
        );
        guard
    }
}

impl<T> Drop for Mutex<T> {
    fn drop(&mut self) {
        // SAFETY: nobody can hold or want the lock any more.
        unsafe { libc::pthread_mutex_destroy(self.raw.get()) };
    }
}

/// Access to the value, until dropped.
pub(crate) struct Guard<'a, T> {
    mutex: &'a Mutex<T>,
    /// Whether the thread was unwinding before it took the lock.
    panicking: bool,
    /// A guard stays on its thread: who locks must unlock.
    on_this_thread: PhantomData<*const ()>,
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: the guard holds the lock.
        unsafe { &*self.mutex.value.get() }
    }
}
impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard holds the lock, and `self` is borrowed exclusively.
        unsafe { &mut *self.mutex.value.get() }
    }
}
impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        if std::thread::panicking() && !self.panicking {
            self.mutex.poisoned.store(true, Ordering::Relaxed);
        }
        // SAFETY: the guard holds the lock and was made on this thread: it is not `Send`.
        let result = unsafe { libc::pthread_mutex_unlock(self.mutex.raw.get()) };
        debug_assert_eq!(result, 0, "unlocked by the thread that locked");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn one_thread_at_a_time_changes_the_value() {
        let total = Arc::new(Mutex::new(0u64));
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let total = Arc::clone(&total);
                std::thread::spawn(move || (0..10_000).for_each(|_| *total.lock() += 1))
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(*total.lock(), 40_000);
    }

    #[test]
    fn a_panic_inside_the_lock_is_remembered() {
        let value = Arc::new(Mutex::new(1));
        let inner = Arc::clone(&value);
        let panicked = std::thread::spawn(move || {
            let _guard = inner.lock();
            panic!("on purpose");
        });
        assert!(panicked.join().is_err());
        assert!(std::thread::spawn(move || *value.lock()).join().is_err());
    }

    #[test]
    #[should_panic(expected = "once a thread")]
    fn locking_twice_on_one_thread_panics_instead_of_hanging() {
        let value = Mutex::new(1);
        let _first = value.lock();
        let _second = value.lock();
    }
}
