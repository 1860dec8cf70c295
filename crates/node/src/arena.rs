//! Who holds which piece of the arena.
//!
//! Invariants: free pieces never overlap, never touch (neighbours are merged),
//! and free + windows + best effort + the zeros make the whole. Windows come from the low end and
//! best-effort spans from the high end, so that short-lived spans do not leave
//! holes between long-lived windows.

use crate::api::{MemoryStatus, Span};
use crate::limits;
use alloc::collections::BTreeMap;
use units::Bytes;

/// What a span is for; each purpose has its own account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    Window,
    BestEffort,
}

#[derive(Clone, Debug)]
pub(crate) struct Arena {
    total: Bytes,
    /// Offset to length of every free piece.
    free: BTreeMap<u64, u64>,
    windows: Bytes,
    best_effort: Bytes,
    zeros: Span,
}

impl Arena {
    pub(crate) fn new(total: Bytes) -> Self {
        assert!(total >= limits::MEMORY_MIN, "arena below MEMORY_MIN");
        let usable = total.round_down(limits::BLOCK_MIN) - limits::ZEROS;
        Self {
            total,
            free: BTreeMap::from([(0, usable.get())]),
            windows: Bytes::ZERO,
            best_effort: Bytes::ZERO,
            zeros: Span { offset: usable, len: limits::ZEROS },
        }
    }

    /// A span that holds zeros for ever.
    pub(crate) fn zeros(&self) -> Span {
        self.zeros
    }

    /// What a further window may take.
    pub(crate) fn free_for_windows(&self) -> Bytes {
        let kept = limits::BEST_EFFORT_MEMORY_MIN.saturating_sub(self.best_effort);
        self.largest().saturating_sub(kept)
    }

    /// What a node of `total` memory has for windows.
    pub(crate) fn for_windows(total: Bytes) -> Bytes {
        total.round_down(limits::BLOCK_MIN) - limits::ZEROS - limits::BEST_EFFORT_MEMORY_MIN
    }

    pub(crate) fn status(&self) -> MemoryStatus {
        MemoryStatus {
            total: self.total,
            windows: self.windows,
            best_effort: self.best_effort,
            free: self.free.values().map(|&len| Bytes::new(len)).sum(),
        }
    }

    /// A span of `len`, rounded up to the disk's alignment in the account but
    /// not in the answer; `None` where no piece is long enough.
    pub(crate) fn take(&mut self, len: Bytes, purpose: Use) -> Option<Span> {
        assert!(!len.is_zero());
        let need = len.round_up(limits::BLOCK_MIN).get();
        let fits = |piece: &(&u64, &u64)| *piece.1 >= need;
        let (start, have, taken) = match purpose {
            Use::Window => {
                if self.free_for_windows().get() < need {
                    return None;
                }
                let (&start, &have) = self.free.iter().find(fits)?;
                (start, have, start)
            }
            Use::BestEffort => {
                let (&start, &have) = self.free.iter().rev().find(fits)?;
                (start, have, start + have - need)
            }
        };
        self.free.remove(&start);
        if have > need {
            let rest = if taken == start { start + need } else { start };
            self.free.insert(rest, have - need);
        }
        *self.account(purpose) += Bytes::new(need);
        Some(Span { offset: Bytes::new(taken), len })
    }

    /// Gives a span back; it must be one that [`Arena::take`] gave for `purpose`, or
    /// whole blocks of one.
    pub(crate) fn give(&mut self, span: Span, purpose: Use) {
        let mut start = span.offset.get();
        let mut len = span.len.round_up(limits::BLOCK_MIN).get();
        *self.account(purpose) -= Bytes::new(len);
        if let Some((&before, &before_len)) = self.free.range(..start).next_back() {
            assert!(before + before_len <= start, "memory given back twice");
            if before + before_len == start {
                self.free.remove(&before);
                start = before;
                len += before_len;
            }
        }
        if let Some((&after, &after_len)) = self.free.range(start..).next() {
            assert!(start + len <= after, "memory given back twice");
            if start + len == after {
                self.free.remove(&after);
                len += after_len;
            }
        }
        self.free.insert(start, len);
    }

    fn largest(&self) -> Bytes {
        Bytes::new(self.free.values().copied().max().unwrap_or(0))
    }

    fn account(&mut self, purpose: Use) -> &mut Bytes {
        match purpose {
            Use::Window => &mut self.windows,
            Use::BestEffort => &mut self.best_effort,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn spans_never_overlap_and_all_memory_comes_back() {
        // A small generator, so that the test needs no crate: Knuth's MMIX.
        let mut seed = 7u64;
        let mut random = |below: u64| {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 33) % below
        };
        let mut arena = Arena::new(Bytes::mib(32));
        let free = arena.status().free;
        let mut held: Vec<(Span, Use)> = Vec::new();
        for _ in 0..20_000 {
            if random(2) == 0 {
                let purpose = if random(2) == 0 { Use::Window } else { Use::BestEffort };
                let len = Bytes::new(1 + random(1 << 20));
                if let Some(span) = arena.take(len, purpose) {
                    for (other, _) in &held {
                        let apart = span.offset + span.len <= other.offset
                            || other.offset + other.len <= span.offset;
                        assert!(apart, "{span:?} overlaps {other:?}");
                    }
                    held.push((span, purpose));
                }
            } else if !held.is_empty() {
                let (span, purpose) = held.swap_remove(random(held.len() as u64) as usize);
                arena.give(span, purpose);
            }
        }
        for (span, purpose) in held {
            arena.give(span, purpose);
        }
        let end = arena.status();
        assert_eq!((end.free, end.windows, end.best_effort), (free, Bytes::ZERO, Bytes::ZERO));
        assert_eq!(arena.free.len(), 1, "neighbours are merged");
    }

    #[test]
    fn windows_leave_memory_for_best_effort() {
        let mut arena = Arena::new(Bytes::mib(16));
        while arena.take(Bytes::mib(1), Use::Window).is_some() {}
        assert!(arena.take(limits::BEST_EFFORT_MAX, Use::BestEffort).is_some());
    }

    #[test]
    #[should_panic(expected = "given back twice")]
    fn memory_given_back_twice_is_a_programmer_error() {
        let mut arena = Arena::new(Bytes::mib(16));
        let keep = arena.take(Bytes::mib(1), Use::Window).unwrap();
        let span = arena.take(Bytes::mib(1), Use::Window).unwrap();
        arena.give(keep, Use::Window);
        arena.windows += keep.len;
        arena.give(span, Use::Window);
        arena.give(keep, Use::Window);
    }
}
