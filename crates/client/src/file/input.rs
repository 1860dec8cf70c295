//! The reading side of a file under contract: a reader that can be looked into.
//!
//! Invariants: `held` is what was taken from the reader and not yet used; it ends
//! where the reader goes on.

use crate::{Client, Peek, Piece, Reader, Result};
use units::Bytes;
use wire::control;

/// A reader at some place of a volume.
#[derive(Debug)]
pub struct Input {
    reader: Reader,
    held: Vec<u8>,
    used: usize,
}

impl Input {
    pub fn open(
        client: &Client,
        volume: &str,
        terms: control::Contract,
        start: u64,
    ) -> Result<Self> {
        let reader = client.reader(volume, terms, Bytes::new(start))?;
        Ok(Self { reader, held: Vec::new(), used: 0 })
    }

    pub fn stream(&self) -> u64 {
        self.reader.stream()
    }

    /// The volume offset of the next byte.
    pub fn position(&self) -> u64 {
        self.reader.offset().get() - (self.held.len() - self.used) as u64
    }

    /// What comes next, into `buf`.
    pub fn next_piece(&mut self, buf: &mut [u8]) -> Result<Piece> {
        let held = &self.held[self.used..];
        if held.is_empty() {
            return self.reader.next_piece(buf);
        }
        let len = held.len().min(buf.len());
        buf[..len].copy_from_slice(&held[..len]);
        self.used += len;
        Ok(Piece::Data(len))
    }

    /// What comes next, where it is; `len_max` is more than nothing.
    pub fn peek(&mut self, len_max: usize) -> Result<Peek<'_>> {
        if self.used == self.held.len() {
            (self.used, self.held) = (0, std::mem::take(&mut self.held));
            self.held.resize(len_max, 0);
            let piece = self.reader.next_piece(&mut self.held);
            let len = if let Ok(Piece::Data(len)) = piece { len } else { 0 };
            self.held.truncate(len);
            match piece? {
                Piece::Data(_) => {}
                Piece::Gap { offset, len } => return Ok(Peek::Gap { offset, len }),
                Piece::End => return Ok(Peek::End),
            }
        }
        let held = &self.held[self.used..];
        Ok(Peek::Data(&held[..held.len().min(len_max)]))
    }

    /// How much was seen by [`Input::peek`] and not passed.
    pub fn seen(&self) -> usize {
        self.held.len() - self.used
    }

    /// Passes `len` bytes that were seen.
    pub fn advance(&mut self, len: usize) {
        assert!(len <= self.seen(), "only what was seen is passed");
        self.used += len;
    }

    pub fn close(self) -> Result<()> {
        self.reader.close()
    }
}
