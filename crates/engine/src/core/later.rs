//! What a thread asks for together takes the pool's lock once: what callbacks ask for on a disk's
//! thread, until those of one delivery have run, and what somebody asks for in one go
//! (`Core::together`). It is best effort's reads, memory for it, and its memory that comes back.
//!
//! Invariants: what is put off is in the order in which it was asked for, and before
//! everything that its thread asks of the pool afterwards ([`take`] in each section); none
//! is left when the delivery, or the go, is over. Only what bears to come a moment later than
//! another thread's requests is put off: streams do not. Writes that overlap do not where
//! callbacks ask for them, which may tell other threads; where one goes before another in one
//! go, nobody else has heard of either.

use crate::callers::Callback;
use node::{Op, Span, Who};
use std::cell::RefCell;
use units::Instant;

/// Which pool of this process.
pub(super) type PoolId = usize;

/// One request that was put off.
pub(super) enum Later {
    /// An operation; the memory of a write comes back with it.
    Begin((Who, Option<Instant>), Op, Callback),
    Release(Span),
}

/// What a thread has put off while it delivers, or asks for much in one go.
struct Put {
    /// The pool whose disk's thread this is, or that is asked: requests to others are none of ours.
    of: PoolId,
    /// Writes, too.
    writes: bool,
    list: Vec<Later>,
}

thread_local! {
    static PUT: RefCell<Option<Put>> = const { RefCell::new(None) };
}

#[cfg(test)]
shuttle::thread_local! {
    /// The same in a scene, whose threads are one of ours.
    static SCENE: RefCell<Option<Put>> = RefCell::new(None);
}

fn with<T>(look: impl FnOnce(&mut Option<Put>) -> T) -> T {
    #[cfg(test)]
    if super::schedules::inside() {
        return SCENE.with(|put| look(&mut put.borrow_mut()));
    }
    PUT.with(|put| look(&mut put.borrow_mut()))
}

/// From here on this thread, one of a disk of `pool`, puts off what it may. `list` is empty.
pub(super) fn begin(pool: PoolId, list: Vec<Later>) {
    debug_assert!(list.is_empty());
    with(|put| *put = Some(Put { of: pool, writes: false, list }));
}

/// The same of a thread that asks for much in one go, writes included. False where it puts off
/// already: then nothing has begun.
pub(super) fn begin_go(pool: PoolId) -> bool {
    with(|put| {
        let is_free = put.is_none();
        if is_free {
            *put = Some(Put { of: pool, writes: true, list: Vec::new() });
        }
        is_free
    })
}

/// From here on it does not. Returns what was put off and not taken.
pub(super) fn end() -> Vec<Later> {
    with(Option::take).map(|put| put.list).unwrap_or_default()
}

/// Whether this thread puts off the beginning of this operation.
pub(super) fn puts_off(pool: PoolId, op: &Op) -> bool {
    with(|put| match put {
        Some(put) if put.of == pool => match op {
            Op::Read { .. } | Op::Room { .. } => true,
            Op::Write { .. } => put.writes,
            _ => false,
        },
        _ => false,
    })
}

/// Puts off what this thread [puts off](puts_off).
pub(super) fn put(later: Later) {
    // By way of a reference: it is many words long.
    let mut later = Some(later);
    with(|put| put.as_mut().expect("it puts off").list.extend(later.take()));
}

/// Puts off that memory of best effort comes back. Says whether it is.
pub(super) fn put_release(pool: PoolId, span: Span) -> bool {
    with(|put| match put {
        Some(put) if put.of == pool => {
            put.list.push(Later::Release(span));
            true
        }
        _ => false,
    })
}

/// What this thread has put off for `pool` so far: now is its turn.
pub(super) fn take(pool: PoolId) -> Vec<Later> {
    with(|put| match put {
        Some(put) if put.of == pool => std::mem::take(&mut put.list),
        _ => Vec::new(),
    })
}
