//! The reading side of a file under contract: a reader that goes where the cursor is.
//!
//! Invariant: `seen` is no more than what the reader's last look has shown and nobody
//! has passed.

use crate::{Client, Peek, Piece, Reader, Result, Sought};
use std::fs::File;
use units::{Bytes, Duration};
use wire::control;

/// A reader at some place of a volume.
#[derive(Debug)]
pub struct Input {
    reader: Reader,
    seen: usize,
    sought: Option<Sought>,
}

impl Input {
    pub fn open(
        client: &Client,
        volume: &str,
        terms: control::Contract,
        start: u64,
    ) -> Result<Self> {
        let (reader, begins) = client.reader_early(volume, terms, Bytes::new(start))?;
        Ok(Self { reader, seen: 0, sought: Some(begins) })
    }

    /// The same of a file outside the pool, which is open.
    pub fn open_file(
        client: &Client,
        file: &File,
        terms: control::Contract,
        start: u64,
    ) -> Result<Self> {
        let reader = client.file_reader_of(file, terms, Bytes::new(start))?;
        Ok(Self { reader, seen: 0, sought: None })
    }

    pub fn stream(&self) -> u64 {
        self.reader.stream()
    }

    /// The volume offset of the next byte.
    pub fn position(&self) -> u64 {
        self.reader.offset().get()
    }

    /// Goes to another place, under the same contract.
    pub fn seek(&mut self, place: u64) -> Result<()> {
        self.seen = 0;
        self.sought = Some(self.reader.seek(Bytes::new(place))?);
        Ok(())
    }

    /// What was said of the begin, or of the last jump since.
    pub fn sought(&self) -> Option<Sought> {
        self.sought
    }

    /// Says that the program pauses.
    pub fn pause(&mut self, span: Duration) -> Result<()> {
        self.reader.pause(span)
    }

    /// What comes next, into `buf`.
    pub fn next_piece(&mut self, buf: &mut [u8]) -> Result<Piece> {
        self.seen = 0;
        self.reader.next_piece(buf)
    }

    /// What comes next, where it is; `len_max` is more than nothing.
    pub fn peek(&mut self, len_max: usize) -> Result<Peek<'_>> {
        self.seen = 0;
        let peek = self.reader.peek(len_max)?;
        if let Peek::Data(bytes) = peek {
            self.seen = bytes.len();
        }
        Ok(peek)
    }

    /// As [`Input::peek`], all of `len` bytes.
    pub fn peek_whole(&mut self, len: usize) -> Result<Peek<'_>> {
        self.seen = 0;
        let peek = self.reader.peek_whole(len)?;
        if let Peek::Data(bytes) = peek {
            self.seen = bytes.len();
        }
        Ok(peek)
    }

    /// What lies at a place of the window, copied.
    pub fn read_at(&mut self, place: u64, buf: &mut [u8]) -> Result<Piece> {
        self.reader.read_at(Bytes::new(place), buf)
    }

    /// Sets the playout point to a place of the window.
    pub fn set_playout(&mut self, place: u64) -> Result<()> {
        self.reader.set_playout(Bytes::new(place))?;
        self.seen = 0;
        Ok(())
    }

    /// Keeps so much behind the playout point.
    pub fn keep(&mut self, len: Bytes) -> Result<()> {
        self.reader.keep(len)
    }

    /// How much was seen by [`Input::peek`] and not passed.
    pub fn seen(&self) -> usize {
        self.seen
    }

    /// Passes `len` bytes that were seen.
    pub fn advance(&mut self, len: usize) {
        self.seen -= len;
        self.reader.advance(len);
    }

    pub fn set_contract(&mut self, terms: control::Contract) -> Result<()> {
        self.reader.set_contract(terms)
    }

    pub fn close(self) -> Result<()> {
        self.reader.close()
    }
}
