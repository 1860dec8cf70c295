//! What the disks of a world keep of what is written to them.
//!
//! A world that checks bytes has disks that keep [`Everything`] and memory that the
//! bytes go through. A world that asks how long things take has disks that keep
//! [`Metadata`] alone, and no memory: its size does not grow with what is written.
//! The two are types, so that a program that looks at bytes cannot be put into a
//! world that has none.

use node::Span;
use std::fmt::Debug;
use units::Bytes;

/// See the top of this file; nobody but this crate has more of them.
pub trait Keeps: Clone + Debug + 'static + sealed::Sealed {
    /// The driver's memory, that transfers go to and come from.
    type Memory: Debug;
    /// So much memory.
    #[doc(hidden)]
    fn memory(len: Bytes) -> Self::Memory;
    /// What is kept of a write of `span`, of which `valid` bytes are filled.
    #[doc(hidden)]
    fn taken(memory: &mut Self::Memory, span: &Span, valid: Bytes) -> Option<Vec<u8>>;
    /// Where the bytes of a read go.
    #[doc(hidden)]
    fn place<'a>(memory: &'a mut Self::Memory, span: &Span) -> Option<&'a mut [u8]>;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Everything {}
    impl Sealed for super::Metadata {}
}

/// Every byte.
#[derive(Clone, Copy, Debug)]
pub struct Everything;

/// What the store writes of its own: labels, log and checkpoints.
#[derive(Clone, Copy, Debug)]
pub struct Metadata;

impl Keeps for Everything {
    type Memory = Vec<u8>;

    fn memory(len: Bytes) -> Vec<u8> {
        vec![0; len.as_usize()]
    }

    fn taken(memory: &mut Vec<u8>, span: &Span, valid: Bytes) -> Option<Vec<u8>> {
        let whole = Self::place(memory, span)?;
        whole[valid.as_usize()..].fill(0);
        Some(whole.to_vec())
    }

    fn place<'a>(memory: &'a mut Vec<u8>, span: &Span) -> Option<&'a mut [u8]> {
        Some(&mut memory[span.offset.as_usize()..][..span.len.as_usize()])
    }
}

impl Keeps for Metadata {
    type Memory = ();

    fn memory(_: Bytes) {}

    fn taken((): &mut (), _: &Span, _: Bytes) -> Option<Vec<u8>> {
        None
    }

    fn place<'a>((): &'a mut (), _: &Span) -> Option<&'a mut [u8]> {
        None
    }
}
