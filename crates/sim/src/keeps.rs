//! What the disks of a world keep of what is written to them.
//!
//! A world that checks bytes has disks that keep [`Everything`] and memory that the
//! bytes go through. A world that asks how long things take has disks that keep
//! [`Metadata`] alone, and no memory: its size does not grow with what is written.
//! The two are types, so that a program that needs bytes cannot be put into a
//! world that has none. One that serves both says so: it looks at what there is, and counts
//! as right only what it has looked at.

use node::{Region, Span};
use std::collections::BTreeMap;
use std::fmt::Debug;
use units::Bytes;

/// See the top of this file; nobody but this crate has more of them.
pub trait Keeps: Clone + Debug + 'static + sealed::Sealed {
    /// The driver's memory, that transfers go to and come from.
    type Memory: Debug;
    /// So much memory.
    #[doc(hidden)]
    fn memory(len: Bytes) -> Self::Memory;
    /// What is kept of a write of `span`.
    #[doc(hidden)]
    fn taken(memory: &mut Self::Memory, span: &Span) -> Option<Vec<u8>>;
    /// A program gets this memory to fill. Room of a stream is zeros, to the end of its last
    /// 4 KiB; everything else holds what it held before.
    #[doc(hidden)]
    fn lent(memory: &mut Self::Memory, span: &Span, of_stream: bool);
    /// A part of a region is not needed any more.
    #[doc(hidden)]
    fn freed(memory: &mut Self::Memory, span: &Span);
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

/// The arena, and every region as far as it was used.
#[derive(Debug)]
pub struct Memory {
    arena: Vec<u8>,
    regions: BTreeMap<Region, Vec<u8>>,
}

impl Memory {
    /// What a span holds now.
    pub fn bytes(&mut self, span: &Span) -> &mut [u8] {
        let (memory, from) = match Region::of(span) {
            None => (&mut self.arena, span.offset.as_usize()),
            Some((region, place)) => {
                let memory = self.regions.entry(region).or_default();
                let end = (place + span.len).as_usize();
                if memory.len() < end {
                    memory.resize(end, 0);
                }
                (memory, place.as_usize())
            }
        };
        &mut memory[from..][..span.len.as_usize()]
    }

    /// What was freed of a region is zeros when it is used again.
    pub(crate) fn forget(&mut self, span: &Span) {
        self.bytes(span).fill(0);
    }
}

impl Keeps for Everything {
    type Memory = Memory;

    fn memory(len: Bytes) -> Memory {
        Memory { arena: vec![0; len.as_usize()], regions: BTreeMap::new() }
    }

    fn taken(memory: &mut Memory, span: &Span) -> Option<Vec<u8>> {
        Some(memory.bytes(span).to_vec())
    }

    fn place<'a>(memory: &'a mut Memory, span: &Span) -> Option<&'a mut [u8]> {
        Some(memory.bytes(span))
    }

    fn lent(memory: &mut Memory, span: &Span, of_stream: bool) {
        if !of_stream {
            return memory.bytes(span).fill(0xdb);
        }
        let end = (span.offset + span.len).round_up(store::BLOCK);
        memory.bytes(&Span { offset: span.offset, len: end - span.offset }).fill(0);
    }

    fn freed(memory: &mut Memory, span: &Span) {
        memory.forget(span);
    }
}

impl Keeps for Metadata {
    type Memory = ();

    fn memory(_: Bytes) {}

    fn taken((): &mut (), _: &Span) -> Option<Vec<u8>> {
        None
    }

    fn place<'a>((): &'a mut (), _: &Span) -> Option<&'a mut [u8]> {
        None
    }

    fn lent((): &mut (), _: &Span, _: bool) {}

    fn freed((): &mut (), _: &Span) {}
}
