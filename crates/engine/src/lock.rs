//! The lock that threads of the engine and the daemon share: a mutex with priority
//! inheritance, and what it takes to wait under one.
//!
//! A disk's thread runs at real-time priority, a program's thread does not. If
//! the second holds the lock and is put aside for a third, the first would wait
//! for all of them. With inheritance the holder runs at the priority of whoever
//! waits. Locking it twice on one thread is a programmer error and panics.
//!
//! Invariant: a panic under a lock ends the process ([`Fatal`]). What the lock guards may
//! be half changed, and a process that goes on without it serves nobody: ended, it is
//! started again, and a pool survives the end of its process at any moment.
#![allow(unsafe_code)]

#[cfg(test)]
use crate::core::schedules;
use crate::last_words;
use std::cell::UnsafeCell;
use std::fmt;
use std::io::Write;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

/// Ends the process, with a core, when it is dropped in a panic that began after it was
/// made. The panic itself has said by then what and where, as far as standard error takes
/// it. For threads without which the others would wait for ever, and for what they share.
#[derive(Debug)]
pub struct Fatal {
    what: &'static str,
    /// Whether the thread was unwinding before.
    panicking: bool,
    /// Made and dropped on one thread.
    on_this_thread: PhantomData<*const ()>,
}

impl Fatal {
    /// From now on a panic is the end; `what` it was in, for the last line that is said.
    pub fn new(what: &'static str) -> Self {
        Self { what, panicking: std::thread::panicking(), on_this_thread: PhantomData }
    }

    /// What [`Fatal`] does, for guards that cannot hold one because they change threads.
    pub fn end_if_panicking(what: &'static str) {
        #[cfg(test)]
        if schedules::inside() {
            return; // the test hears of the panic
        }
        if std::thread::panicking() {
            let last = last_words::last().map(|last| format!("; {last}")).unwrap_or_default();
            // Where standard error is gone, or takes nothing, the process ends all the same.
            last_words::say(last_words::LAST_LINE_WITHIN, move |mut to| {
                writeln!(
                    to,
                    "slackline: that was a panic {what}: this process ends, to be started again{last}"
                )
            });
            std::process::abort();
        }
    }
}

impl Drop for Fatal {
    fn drop(&mut self) {
        if !self.panicking {
            Self::end_if_panicking(self.what);
        }
    }
}

/// How often a lock is tried before its thread sleeps: some microseconds.
const SPINS: u32 = 100;

/// A value behind a lock with priority inheritance.
pub struct Mutex<T> {
    /// In a box, since a POSIX mutex must not move.
    raw: Box<UnsafeCell<libc::pthread_mutex_t>>,
    /// Taken first where a test decides which thread runs.
    #[cfg(test)]
    scheduled: shuttle::sync::Mutex<()>,
    value: UnsafeCell<T>,
}

// SAFETY: the lock gives one thread at a time access to the value.
unsafe impl<T: Send> Send for Mutex<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Mutex<T> {}

impl<T> Mutex<T> {
    /// A value that nobody has locked.
    pub fn new(value: T) -> Self {
        // SAFETY: a POSIX mutex is plain data; `init` below makes it valid.
        let raw = Box::new(UnsafeCell::new(unsafe { std::mem::zeroed() }));
        Self::init(raw.get());
        Self {
            raw,
            #[cfg(test)]
            scheduled: shuttle::sync::Mutex::new(()),
            value: UnsafeCell::new(value),
        }
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

    /// Tries a few times, with pauses: the sections under most locks are shorter than it takes to
    /// sleep and be woken, and with inheritance the kernel gives the lock from hand to hand from the first
    /// sleeper on, a change of threads each time. Says whether it has the lock.
    fn spin(&self) -> bool {
        for _ in 0..SPINS {
            // SAFETY: the mutex was initialised in `new` and lives as long as `self`.
            if unsafe { libc::pthread_mutex_trylock(self.raw.get()) } == 0 {
                return true;
            }
            std::hint::spin_loop();
        }
        false
    }

    /// Waits for the lock. Panics when this thread has it already.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        #[cfg(test)]
        let scheduled = schedules::inside().then(|| self.scheduled.lock().expect("no panic"));
        if !self.spin() {
            // SAFETY: the mutex was initialised in `new` and lives as long as `self`.
            let result = unsafe { libc::pthread_mutex_lock(self.raw.get()) };
            assert_eq!(result, 0, "a lock is taken once a thread");
        }
        MutexGuard {
            fatal: Fatal::new("under a lock"),
            mutex: self,
            #[cfg(test)]
            _scheduled: scheduled,
        }
    }
}

impl<T: Default> Default for Mutex<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> fmt::Debug for Mutex<T> {
    /// Without the value, which is only to be had under the lock.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mutex").finish_non_exhaustive()
    }
}

impl<T> Drop for Mutex<T> {
    fn drop(&mut self) {
        // SAFETY: nobody can hold or want the lock any more.
        unsafe { libc::pthread_mutex_destroy(self.raw.get()) };
    }
}

/// Access to the value, until dropped. Stays on its thread: who locks must unlock.
pub struct MutexGuard<'a, T> {
    fatal: Fatal,
    mutex: &'a Mutex<T>,
    /// Given back after the lock itself.
    #[cfg(test)]
    _scheduled: Option<shuttle::sync::MutexGuard<'a, ()>>,
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: the guard holds the lock.
        unsafe { &*self.mutex.value.get() }
    }
}
impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard holds the lock, and `self` is borrowed exclusively.
        unsafe { &mut *self.mutex.value.get() }
    }
}
impl<T> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        // Before the lock is given back: nobody sees what is half changed.
        if !self.fatal.panicking {
            Fatal::end_if_panicking(self.fatal.what);
        }
        // SAFETY: the guard holds the lock and was made on this thread: it is not `Send`.
        let result = unsafe { libc::pthread_mutex_unlock(self.mutex.raw.get()) };
        debug_assert_eq!(result, 0, "unlocked by the thread that locked");
    }
}

/// A guard that keeps the mutex, too: for whoever cannot name how long it is held.
pub struct OwnedGuard<T: 'static> {
    /// Dropped first: it refers to what `_mutex` keeps.
    guard: MutexGuard<'static, T>,
    _mutex: Arc<Mutex<T>>,
}

impl<T> OwnedGuard<T> {
    /// Waits for the lock, as [`Mutex::lock`].
    pub fn lock(mutex: &Arc<Mutex<T>>) -> Self {
        let mutex = Arc::clone(mutex);
        // SAFETY: only the lifetime is changed. The mutex is in the allocation that
        // `_mutex` keeps for longer than the guard, and does not move in it.
        let guard = unsafe {
            std::mem::transmute::<MutexGuard<'_, T>, MutexGuard<'static, T>>(mutex.lock())
        };
        Self { guard, _mutex: mutex }
    }
}

impl<T> Deref for OwnedGuard<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.guard
    }
}
impl<T> DerefMut for OwnedGuard<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

/// Waiting under a [`Mutex`] for something to become so.
pub struct Condvar(
    /// In a box, since what is waited on must not move.
    Box<UnsafeCell<libc::pthread_cond_t>>,
);

// SAFETY: a POSIX condition variable is made to be used by several threads at once.
unsafe impl Send for Condvar {}
// SAFETY: as above.
unsafe impl Sync for Condvar {}

impl Default for Condvar {
    fn default() -> Self {
        // SAFETY: a POSIX condition variable is plain data; it is made valid below.
        let raw: Box<UnsafeCell<libc::pthread_cond_t>> =
            Box::new(UnsafeCell::new(unsafe { std::mem::zeroed() }));
        let mut attributes = MaybeUninit::<libc::pthread_condattr_t>::uninit();
        let attributes = attributes.as_mut_ptr();
        // SAFETY: the attributes are initialised by the first call, used by the next two
        // and destroyed by the last; `raw` is valid and not yet a condition variable.
        let results = unsafe {
            [
                libc::pthread_condattr_init(attributes),
                libc::pthread_condattr_setclock(attributes, libc::CLOCK_MONOTONIC),
                libc::pthread_cond_init(raw.get(), attributes),
                libc::pthread_condattr_destroy(attributes),
            ]
        };
        assert_eq!(results, [0; 4], "a condition variable can be made");
        Self(raw)
    }
}

impl Condvar {
    /// Wakes one that waits, if any does.
    pub fn notify_one(&self) {
        // SAFETY: it was initialised and lives as long as `self`.
        unsafe { libc::pthread_cond_signal(self.0.get()) };
    }

    /// Wakes all that wait.
    pub fn notify_all(&self) {
        // SAFETY: as above.
        unsafe { libc::pthread_cond_broadcast(self.0.get()) };
    }

    /// Gives the lock back until somebody notifies; or sooner, without a reason.
    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        // SAFETY: both are initialised, and this thread holds the lock: guards are not
        // `Send`. It holds it again when the call returns.
        let result = unsafe { libc::pthread_cond_wait(self.0.get(), guard.mutex.raw.get()) };
        assert_eq!(result, 0, "who waits has the lock");
        guard
    }

    /// As [`Condvar::wait`], for no longer than `time`.
    pub fn wait_for<'a, T>(&self, guard: MutexGuard<'a, T>, time: Duration) -> MutexGuard<'a, T> {
        let until = after(time);
        // SAFETY: as above; `until` lives until the call returns.
        let result =
            unsafe { libc::pthread_cond_timedwait(self.0.get(), guard.mutex.raw.get(), &until) };
        assert!(matches!(result, 0 | libc::ETIMEDOUT), "who waits has the lock");
        guard
    }
}

impl Drop for Condvar {
    fn drop(&mut self) {
        // SAFETY: nobody can wait or notify any more.
        unsafe { libc::pthread_cond_destroy(self.0.get()) };
    }
}

/// So long from now, as the kernel says times; as late as it can say where that is later.
fn after(time: Duration) -> libc::timespec {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is valid for writing.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    let now = Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs() as u32);
    let until = now.saturating_add(time);
    let tv_sec = libc::time_t::try_from(until.as_secs()).unwrap_or(libc::time_t::MAX);
    libc::timespec { tv_sec, tv_nsec: until.subsec_nanos().into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;
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
    fn who_waits_has_the_lock_again_when_it_is_told_or_the_time_is_over() {
        let both = Arc::new((Mutex::new(0), Condvar::default()));
        let other = Arc::clone(&both);
        let thread = std::thread::spawn(move || {
            *other.0.lock() = 1;
            other.1.notify_all();
        });
        let mut value = both.0.lock();
        while *value == 0 {
            value = both.1.wait(value);
        }
        *value = 2;
        value = both.1.wait_for(value, Duration::from_millis(1));
        assert_eq!(*value, 2);
        assert_eq!(after(Duration::MAX).tv_sec, libc::time_t::MAX);
        drop(value);
        thread.join().unwrap();
    }

    /// The ends that a process can come to, by name. Each is this test again, in a process
    /// of its own.
    const ENDS: [(&str, fn()); 4] = [
        ("under_a_lock", || {
            let value = Mutex::new(1);
            let _guard = value.lock();
            panic!("planted under a lock");
        }),
        ("after_a_wait", || {
            let (value, news) = (Mutex::new(1), Condvar::default());
            let _guard = news.wait_for(value.lock(), Duration::from_millis(1));
            panic!("planted after a wait");
        }),
        ("twice_on_one_thread", || {
            let value = Mutex::new(1);
            let _first = value.lock();
            let _second = value.lock();
        }),
        ("in_a_thread_of_the_others", || {
            let thread = std::thread::spawn(|| {
                let _fatal = Fatal::new("in a disk's thread");
                panic!("planted in a thread");
            });
            let _ = thread.join();
        }),
    ];

    /// Before, the lock stayed poisoned and the process alive: every thread that came
    /// panicked in its turn, and nobody was served.
    #[test]
    fn a_panic_under_a_lock_ends_the_process_with_its_message() {
        const END: &str = "SLACKLINE_TEST_END";
        if let Ok(name) = std::env::var(END) {
            let (_, end) = ENDS.iter().find(|(other, _)| *other == name).expect("a known end");
            let ended = std::thread::spawn(*end).join();
            panic!("the process outlived its thread, which ended with {ended:?}");
        }
        let this = "lock::tests::a_panic_under_a_lock_ends_the_process_with_its_message";
        let messages = [
            "planted under a lock",
            "planted after a wait",
            "a lock is taken once a thread",
            "planted in a thread",
        ];
        for ((name, _), message) in ENDS.iter().zip(messages) {
            let mut again = Command::new(std::env::current_exe().unwrap());
            let again = again.args(["--exact", this, "--nocapture"]).env(END, name);
            let output = again.output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.signal(), Some(libc::SIGABRT), "{name}: {said}");
            assert!(said.contains(message), "{name}: {said}");
            assert!(said.contains("this process ends, to be started again"), "{name}: {said}");
        }
    }

    /// What unwinds already may still look at what is locked: a destructor's business.
    #[test]
    fn a_lock_taken_in_a_panic_does_not_end_the_process() {
        struct Looks(Arc<Mutex<u64>>);
        impl Drop for Looks {
            fn drop(&mut self) {
                *self.0.lock() += 1;
            }
        }
        let value = Arc::new(Mutex::new(1));
        let looks = Looks(Arc::clone(&value));
        let panicked = std::thread::spawn(move || {
            let _looks = looks;
            panic!("on purpose, outside of the lock");
        });
        assert!(panicked.join().is_err());
        assert_eq!(*value.lock(), 2);
    }
}
