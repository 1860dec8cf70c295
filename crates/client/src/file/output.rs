//! The writing side of a file under contract: a writer that begins anywhere.
//!
//! A stream begins at a block, and its last part of a 4 KiB sector is written with
//! zeros behind it. So what stands before the place in its block is written once
//! more, and what stands behind the end in its sector is written along.
//!
//! Invariant: `position` is where the program's next byte goes; what is written along
//! lies behind it, and after that the stream takes no more.

use super::random::{Random, SECTOR};
use crate::{Client, Error, Result, Writer};
use std::io::Write;
use std::ops::Range;
use units::{Bytes, Duration};
use wire::control;

/// A writer at some place of a volume.
#[derive(Debug)]
pub struct Output {
    writer: Writer,
    position: u64,
    /// End of what was recorded when the stream was opened.
    recorded: u64,
    /// What stands before the place in its block; goes ahead of the first byte.
    lead: Vec<u8>,
    /// What stood behind the position was written along.
    padded: bool,
}

impl Output {
    /// Opens a stream whose next byte goes to `start`.
    pub fn open(
        client: &Client,
        volume: &str,
        terms: control::Contract,
        start: u64,
        grow_to: Option<Bytes>,
        random: &mut Random,
    ) -> Result<Self> {
        let recorded = client.volume(volume)?.length_bytes.get();
        // A block that cannot be divided by is refused by the daemon, in its words.
        let begin = start - start % terms.block_bytes.get().max(1);
        let lead = lead(begin..start, recorded, random)?;
        let begin = Bytes::new(begin);
        let writer = match grow_to {
            Some(limit) => client.growing_writer(volume, terms, begin, limit)?,
            None => client.writer(volume, terms, begin)?,
        };
        Ok(Self { writer, position: start, recorded, lead, padded: false })
    }

    /// Goes on at another place, under the same contract; everything is on the medium then.
    pub fn seek(
        &mut self,
        (client, volume): (&Client, &str),
        place: u64,
        random: &mut Random,
    ) -> Result<()> {
        self.pad(random)?;
        let block = self.writer.contract().block_bytes.get().max(1);
        let begin = place - place % block;
        self.writer.seek(Bytes::new(begin))?;
        // Without what stands before the place, the stream takes nothing.
        (self.position, self.padded) = (begin, true);
        self.recorded = client.volume(volume)?.length_bytes.get();
        let lead = lead(begin..place, self.recorded, random)?;
        (self.position, self.lead, self.padded) = (place, lead, false);
        Ok(())
    }

    pub fn stream(&self) -> u64 {
        self.writer.stream()
    }

    /// Says that the program pauses.
    pub fn pause(&mut self, span: Duration) -> Result<()> {
        self.writer.pause(span)
    }

    pub fn set_contract(&mut self, terms: control::Contract) -> Result<()> {
        self.writer.set_contract(terms)
    }

    /// Where the next byte goes; none where the stream takes no more.
    pub fn position(&self) -> Option<u64> {
        (!self.padded).then_some(self.position)
    }

    /// Where the program's next byte goes, whether or not this stream can take it.
    pub fn end(&self) -> u64 {
        self.position
    }

    pub fn durable(&self) -> Bytes {
        self.writer.durable().min(Bytes::new(self.position))
    }

    /// Writes the front of `bytes`, and says how much. After a failure the position is
    /// behind what went through.
    pub fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        let lead = std::mem::take(&mut self.lead);
        self.writer.write_all(&lead).map_err(|error| self.failed(error.into()))?;
        match self.writer.write(bytes) {
            Ok(len) => {
                self.position += len as u64;
                Ok(len)
            }
            Err(error) => Err(self.failed(error.into())),
        }
    }

    /// Waits until the daemon has accepted everything.
    pub fn flush(&mut self) -> Result<()> {
        self.writer.flush().map_err(|error| self.failed(error.into()))
    }

    fn failed(&mut self, error: Error) -> Error {
        // What was sent and not accepted was never written.
        self.position = self.position.min(self.writer.accepted().get());
        error
    }

    /// Puts everything on the medium.
    pub fn sync(&mut self, random: &mut Random) -> Result<()> {
        self.pad(random)?;
        self.writer.sync().map(drop).map_err(|error| self.failed(error))
    }

    /// Puts everything on the medium and ends the stream.
    pub fn close(mut self, random: &mut Random) -> Result<()> {
        let padded = self.pad(random);
        let closed = self.writer.close().map(drop);
        padded.and(closed)
    }

    /// Writes along what stood behind the position in its sector.
    pub fn pad(&mut self, random: &mut Random) -> Result<()> {
        let sector_end = self.position.next_multiple_of(SECTOR);
        let end = sector_end.min(self.recorded);
        if self.padded || end <= self.position || !self.lead.is_empty() {
            return Ok(());
        }
        let mut behind = vec![0; (end - self.position) as usize];
        random.read_full(self.position, &mut behind)?;
        self.padded = true;
        self.writer.write_all(&behind).map_err(|error| self.failed(error.into()))
    }
}

/// What stands in this range. Behind what is recorded that is nobody's, and zeros.
fn lead(range: Range<u64>, recorded: u64, random: &mut Random) -> Result<Vec<u8>> {
    let mut lead = vec![0; (range.end - range.start) as usize];
    let known = recorded.clamp(range.start, range.end) - range.start;
    random.read_full(range.start, &mut lead[..known as usize])?;
    Ok(lead)
}
