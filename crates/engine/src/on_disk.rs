//! Which threads are disks', and what may not be done on them; the priorities of threads that keep
//! time.

use std::cell::Cell;

/// The priority of disks' threads among real-time ones: above whatever is left
/// at the lowest, below the kernel's own.
pub(crate) const PRIORITY: i32 = 20;

/// The priority of threads that carry answers under contract to their programs: above ordinary
/// ones, below the disks', which have to begin the next command first.
pub(crate) const PRIORITY_DELIVERY: i32 = PRIORITY - 10;

/// The priority of the thread that unmaps windows: below those that somebody under contract waits
/// for, and above ordinary ones, since who closes waits for it.
pub(crate) const PRIORITY_UNMAPPING: i32 = PRIORITY_DELIVERY - 1;

thread_local! {
    /// Whether this thread is a disk's.
    static IS_DISK: Cell<bool> = const { Cell::new(false) };
    /// Whether it carries answers under contract.
    static DELIVERS: Cell<bool> = const { Cell::new(false) };
}

/// Marks this thread as one that carries answers under contract to their programs.
pub(crate) fn this_thread_delivers_in_time() {
    DELIVERS.set(true);
}

/// Whether this thread keeps time for others: it carries out nothing of best effort itself.
pub(crate) fn keeps_time() -> bool {
    IS_DISK.get() || DELIVERS.get()
}

/// Marks this thread as a disk's, on which nobody may wait for the pool.
pub(crate) fn this_thread_is_a_disks() {
    IS_DISK.set(true);
}

/// Whether this is a disk's thread, on which a callback may only hand over (`Pool::submit`): it must
/// not wait, nor copy, nor ask the system for what takes time.
pub fn on_a_disks_thread() -> bool {
    IS_DISK.get()
}

/// Panics on a disk's thread: waiting there for the disk would be for ever.
pub(crate) fn assert_may_wait() {
    assert!(!on_a_disks_thread(), "a callback must not wait for the pool; submit instead");
}
