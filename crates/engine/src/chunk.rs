//! Memory in a program's hands: the handles through which bytes are read and
//! filled without a copy.
//!
//! A [`Chunk`] or [`ChunkMut`] is the only way for safe code to touch the arena.
//! Invariant: while one lives, its pages are lent to it alone (see
//! [`arena`](crate::arena)); it cannot be copied; dropping it gives them back.

#![allow(unsafe_code)]

use node::{Promise, Span, StreamId};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// Whose memory a handle holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// A stream's window: the stream goes on when the handle is gone.
    Stream(StreamId),
    /// Best effort: the handle holds the only claim on it.
    BestEffort,
}

/// Whoever lends memory.
pub(crate) trait Lender: Send + Sync {
    /// Where a span that it has lent lies.
    fn memory(&self, span: Span) -> *mut u8;
    /// A handle is gone.
    fn take_back(self: Arc<Self>, span: Span, owner: Owner);
}

/// A loan of memory, given back when dropped.
pub(crate) struct Loan {
    /// None where it was given on or back.
    lender: Option<Arc<dyn Lender>>,
    span: Span,
    owner: Owner,
    promise: Option<Promise>,
}

impl Loan {
    /// A loan of pages that [`Arena::lend`](crate::arena::Arena::lend) has lent for it, with what
    /// is owed of the answer that it is.
    pub(crate) fn new(
        lender: Arc<dyn Lender>,
        span: Span,
        owner: Owner,
        promise: Option<Promise>,
    ) -> Self {
        Self { lender: Some(lender), span, owner, promise }
    }

    /// The loan's span and owner, leaving the pages lent: for giving them on.
    fn into_parts(mut self) -> (Span, Owner) {
        self.lender = None;
        (self.span, self.owner)
    }

    fn lender(&self) -> &Arc<dyn Lender> {
        self.lender.as_ref().expect("a loan that lasts")
    }

    fn memory(&self) -> *mut u8 {
        self.lender().memory(self.span)
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        if let Some(lender) = self.lender.take() {
            lender.take_back(self.span, self.owner);
        }
    }
}

/// Bytes that the pool has filled, for reading.
///
/// A reader's chunk lies in its stream's window, and the playout point stays
/// where it is until the chunk is dropped and [`Op::StreamAdvance`] is submitted
/// (with a length of zero to give the bytes back unread), or until
/// [`Pool::advance`](crate::Pool::advance) does both. A best-effort chunk's
/// memory is free again when it is dropped.
///
/// [`Op::StreamAdvance`]: node::Op::StreamAdvance
pub struct Chunk(Loan);

/// Memory of the pool to fill.
///
/// A writer's memory lies in its stream's window; drop the handle, then submit
/// [`Op::StreamWrite`] with what was filled. Best-effort memory goes to
/// [`Pool::write`](crate::Pool::write), or is free again when it is dropped. It
/// holds whatever it held before.
///
/// [`Op::StreamWrite`]: node::Op::StreamWrite
pub struct ChunkMut(Loan);

impl Chunk {
    pub(crate) fn new(loan: Loan) -> Self {
        Self(loan)
    }

    /// What is owed of the answer that this is, where it is under contract: for
    /// [`Pool::carried`](crate::Pool::carried).
    pub fn promise(&self) -> Option<Promise> {
        self.0.promise
    }

    /// What this handle holds, without giving it back.
    pub(crate) fn into_span(self) -> (Span, Owner) {
        self.0.into_parts()
    }

    pub(crate) fn belongs_to<L: Lender>(&self, lender: &Arc<L>) -> bool {
        std::ptr::addr_eq(Arc::as_ptr(self.0.lender()), Arc::as_ptr(lender))
    }
}

impl ChunkMut {
    pub(crate) fn new(loan: Loan) -> Self {
        Self(loan)
    }

    /// As [`Chunk::promise`].
    pub fn promise(&self) -> Option<Promise> {
        self.0.promise
    }

    /// What this handle holds, without giving it back.
    pub(crate) fn into_span(self) -> (Span, Owner) {
        self.0.into_parts()
    }

    pub(crate) fn belongs_to<L: Lender>(&self, lender: &Arc<L>) -> bool {
        std::ptr::addr_eq(Arc::as_ptr(self.0.lender()), Arc::as_ptr(lender))
    }
}

impl Deref for Chunk {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        // SAFETY: the span lies in the arena, which its lender keeps alive, and is
        // always initialised (the kernel gives zeros). Its pages are lent to this
        // handle, so that until it is dropped no other handle and no device's
        // transfer writes to them.
        unsafe { std::slice::from_raw_parts(self.0.memory(), self.0.span.len.as_usize()) }
    }
}

impl Deref for ChunkMut {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        // SAFETY: as for `Chunk`.
        unsafe { std::slice::from_raw_parts(self.0.memory(), self.0.span.len.as_usize()) }
    }
}

impl DerefMut for ChunkMut {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for `Chunk`; the handle is borrowed exclusively, and no other
        // handle has these pages.
        unsafe { std::slice::from_raw_parts_mut(self.0.memory(), self.0.span.len.as_usize()) }
    }
}

impl fmt::Debug for Chunk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Chunk({:?})", self.0.span)
    }
}
impl fmt::Debug for ChunkMut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ChunkMut({:?})", self.0.span)
    }
}
