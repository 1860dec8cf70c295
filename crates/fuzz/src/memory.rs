//! How much memory a thread has at the most at one time: an allocator that counts.
//!
//! Invariant: what a thread allocates is counted for that thread, with the sizes that it
//! asked for. Memory that another thread gives back is counted as that one's.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(0) };
}

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn count(change: isize) {
    // A thread that ends gives its own memory back when its counters are gone.
    let _ = HELD.try_with(|held| {
        held.set(held.get() + change);
        MOST.with(|most| most.set(most.get().max(held.get())));
    });
}

// SAFETY: everything is left to the system's allocator; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller keeps the promises that the system's allocator wants.
        unsafe { System.alloc(layout) }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) }
    }
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as isize - layout.size() as isize);
        // SAFETY: as above.
        unsafe { System.realloc(memory, layout, size) }
    }
}

/// What `work` gives, and how many bytes this thread had at the most while it ran, beyond
/// those that it had before.
pub fn most_during<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = HELD.get();
    MOST.set(before);
    let result = work();
    (result, usize::try_from(MOST.get() - before).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_back_at_once_counts_as_what_is_kept() {
        let (_, most) = most_during(|| drop(std::hint::black_box(vec![1u8; 1 << 20])));
        assert!((1 << 20..1 << 21).contains(&most), "{most}");
        let (kept, most) = most_during(|| {
            (0..8).fold(None, |_, _| Some(std::hint::black_box(vec![1u8; 1 << 16])))
        });
        assert!((1 << 16..1 << 18).contains(&most), "{most}");
        drop(kept);
    }
}
