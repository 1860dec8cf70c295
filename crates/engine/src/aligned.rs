//! Byte buffers that a device can transfer to and from directly.

#![allow(unsafe_code)]

use crate::arena::PAGE;
use std::ops::{Deref, DerefMut};
use units::Bytes;

#[derive(Clone, Copy)]
#[repr(C, align(4096))]
struct Page([u8; 4096]);

/// Whole pages of bytes, at a page's address.
pub(crate) struct Aligned {
    pages: Vec<Page>,
}

impl Aligned {
    /// Zeros, as many as `len` rounded up to a page.
    pub(crate) fn zeroed(len: Bytes) -> Self {
        Self { pages: vec![Page([0; 4096]); len.div_ceil(PAGE) as usize] }
    }

    /// A copy of `bytes`, with zeros up to the end of the page.
    pub(crate) fn copy_of(bytes: &[u8]) -> Self {
        let mut copy = Self::zeroed(Bytes::new(bytes.len() as u64));
        copy[..bytes.len()].copy_from_slice(bytes);
        copy
    }
}

impl Deref for Aligned {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        let len = self.pages.len() * size_of::<Page>();
        // SAFETY: pages are nothing but bytes, without padding between them.
        unsafe { std::slice::from_raw_parts(self.pages.as_ptr().cast(), len) }
    }
}
impl DerefMut for Aligned {
    fn deref_mut(&mut self) -> &mut [u8] {
        let len = self.pages.len() * size_of::<Page>();
        // SAFETY: as above, and `self` is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.pages.as_mut_ptr().cast(), len) }
    }
}
