//! The programs' way into the system: the client library, as any program uses it.

use super::programs::{Sink, Source};
use super::random::Random;
use crate::failure::Failure;
use client::{BestEffort, Error, Piece, Reader, Writer};
use std::io::Write;
use units::Bytes;

/// A reader and the memory that its bytes arrive in.
pub struct Incoming {
    reader: Reader,
    buffer: Vec<u8>,
}

impl Incoming {
    /// Reads from `reader`, at most `piece` at a time.
    pub fn new(reader: Reader, piece: Bytes) -> Self {
        Self { reader, buffer: vec![0; piece.as_usize()] }
    }

    /// Closes the stream.
    pub fn close(self) -> Result<(), Failure> {
        Ok(self.reader.close()?)
    }
}

impl Source for Incoming {
    fn next(&mut self, len: usize) -> Result<&[u8], Failure> {
        match self.reader.next_piece(&mut self.buffer[..len])? {
            Piece::Data(len) => Ok(&self.buffer[..len]),
            Piece::End => Ok(&[]),
            Piece::Gap { offset, len } => Err(Error::Gap { offset, len }.into()),
        }
    }
}

impl Sink for Writer {
    fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let result = self.write_all(bytes).and_then(|()| self.flush());
        result.map_err(|error| Error::from(error).into())
    }
}

impl Random for BestEffort {
    fn read(&mut self, offset: Bytes, len: Bytes) -> Result<u64, Failure> {
        Ok(self.begin_read(offset, len)?.0)
    }
    fn write(&mut self, offset: Bytes, bytes: &[u8]) -> Result<u64, Failure> {
        Ok(self.begin_write(offset, bytes)?.0)
    }
    fn wait(&mut self) -> Result<(u64, Vec<u8>), Failure> {
        let completion = self.take()?;
        Ok((completion.tag.0, completion.result?))
    }
}
