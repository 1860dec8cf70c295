//! The writing side of a file under contract: a writer that begins anywhere.
//!
//! A stream begins at a block, and its last part of a 4 KiB sector is written with
//! zeros behind it. So what stands before the place in its block is written once
//! more, and what stands behind the end in its sector is written along.
//!
//! Invariants: `position` is where the program's next byte goes, never before its first one; what stands
//! before that goes ahead of it again until the daemon has accepted it; what is written along
//! lies behind it, and after that the stream takes no more.

use super::random::{Random, SECTOR};
use crate::{Client, Error, Result, Writer};
use std::io::Write;
use std::ops::Range;
use units::{Bytes, Duration};
use wire::{Code, control};

/// How often what a stream cannot end without is read again, and how long after.
const TRIES: u32 = 40;
const PAUSE: std::time::Duration = std::time::Duration::from_millis(50);

/// A writer at some place of a volume.
#[derive(Debug)]
pub struct Output {
    writer: Writer,
    position: u64,
    /// End of what was recorded when the stream was opened.
    recorded: u64,
    /// Where the program's first byte goes.
    start: u64,
    /// What stands before that in its block, until the daemon has accepted it.
    lead: Vec<u8>,
    /// It was handed over.
    is_led: bool,
    /// How far what stood behind the position was written along.
    along: u64,
    /// On its way to another place: it takes nothing.
    is_between: bool,
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
        if recorded > start {
            // What stands behind its end is read when it is closed: that does not fail for want of a
            // connection then.
            random.connection()?;
        }
        let begin = Bytes::new(begin);
        let writer = match grow_to {
            Some(limit) => client.growing_writer(volume, terms, begin, limit)?,
            None => client.writer(volume, terms, begin)?,
        };
        let is_led = lead.is_empty();
        let (position, along, is_between) = (start, 0, false);
        Ok(Self { writer, position, recorded, start, lead, is_led, along, is_between })
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
        (self.position, self.start, self.along, self.is_between) = (begin, begin, 0, true);
        (self.lead, self.is_led) = (Vec::new(), true);
        self.recorded = client.volume(volume)?.length_bytes.get();
        self.lead = lead(begin..place, self.recorded, random)?;
        (self.position, self.start, self.is_between) = (place, place, false);
        self.is_led = self.lead.is_empty();
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
        (!self.is_between && self.along <= self.position).then_some(self.position)
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
        self.give_lead()?;
        match self.writer.write(bytes) {
            Ok(len) => {
                self.position += len as u64;
                Ok(len)
            }
            Err(error) => Err(self.failed(error.into())),
        }
    }

    /// Hands over what stands before the first byte; again what of it was not accepted.
    fn give_lead(&mut self) -> Result<()> {
        if self.is_led {
            if !self.lead.is_empty() && self.writer.accepted().get() >= self.start {
                self.lead = Vec::new();
            }
            return Ok(());
        }
        self.is_led = true;
        let from = self.lead_accepted();
        let given = self.writer.write_all(&self.lead[from..]);
        given.map_err(|error| self.failed(error.into()))
    }

    /// How much of it the daemon has accepted.
    fn lead_accepted(&self) -> usize {
        let begin = self.start - self.lead.len() as u64;
        (self.writer.accepted().get().clamp(begin, self.start) - begin) as usize
    }

    /// Waits until the daemon has accepted everything.
    pub fn flush(&mut self) -> Result<()> {
        self.writer.flush().map_err(|error| self.failed(error.into()))
    }

    fn failed(&mut self, error: Error) -> Error {
        // What was sent and not accepted was never written.
        let accepted = self.writer.accepted().get();
        self.is_led &= accepted >= self.start;
        self.position = self.position.min(accepted.max(self.start));
        self.along = self.along.min(accepted);
        error
    }

    /// Puts everything on the medium.
    pub fn sync(&mut self, random: &mut Random) -> Result<()> {
        // Where that is refused, what was accepted before is on the medium all the same.
        let padded = self.pad(random);
        let synced = self.writer.sync().map(drop).map_err(|error| self.failed(error));
        padded.and(synced)
    }

    /// Puts everything on the medium and ends the stream.
    pub fn close(mut self, random: &mut Random) -> Result<()> {
        let padded = self.pad(random);
        let closed = self.writer.close().map(drop);
        padded.and(closed)
    }

    /// Writes along what stood behind the position in its sector.
    pub fn pad(&mut self, random: &mut Random) -> Result<()> {
        if self.is_between || !self.is_led && self.lead_accepted() == 0 {
            return Ok(()); // it has written nothing
        }
        self.give_lead()?;
        let end = self.position.next_multiple_of(SECTOR).min(self.recorded);
        let from = self.along.max(self.position);
        if end <= from {
            return Ok(());
        }
        let mut behind = vec![0; (end - from) as usize];
        read_patiently(random, from, &mut behind)?;
        self.along = end;
        self.writer.write_all(&behind).map_err(|error| self.failed(error.into()))
    }
}

/// Reads what a stream cannot end without: when it ends so, the rest of the sector is zeros. Again for a
/// while where that is refused for a reason that passes.
fn read_patiently(random: &mut Random, from: u64, into: &mut [u8]) -> Result<usize> {
    for _ in 0..TRIES {
        match random.read_full(from, into) {
            Err(error) if passes(&error) => std::thread::sleep(PAUSE),
            ended => return ended,
        }
    }
    random.read_full(from, into)
}

/// Whether what was refused may be granted a moment later.
fn passes(error: &Error) -> bool {
    let is_short = matches!(error.code(), Some(Code::Busy | Code::NoMemory | Code::Quota));
    is_short || error.passes()
}

/// What stands in this range. Behind what is recorded that is nobody's, and zeros.
fn lead(range: Range<u64>, recorded: u64, random: &mut Random) -> Result<Vec<u8>> {
    let mut lead = vec![0; (range.end - range.start) as usize];
    let known = recorded.clamp(range.start, range.end) - range.start;
    random.read_full(range.start, &mut lead[..known as usize])?;
    Ok(lead)
}
