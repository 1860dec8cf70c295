//! A volume that is read and written under one contract, in any order within its burst.

use crate::pieces::{Peek, Piece};
use crate::shared_reader::{outside, within};
use crate::shared_writer::SharedWriter;
use crate::{Client, Error, Result};
use std::ops::Range;
use units::{Bytes, Duration};
use window::Look;
use wire::control::{Contract, Stream};

/// A volume whose bytes are read and changed under one contract (ABISS, section 2.3).
/// Dropping it closes the stream, synced, without waiting for that.
///
/// The window holds what the volume holds: every byte less than the burst ahead of the playout
/// point is in memory, and may be read ([`Updater::read_at`]) and changed
/// ([`Updater::write_at`]) in any order, and again. When the playout point has passed a
/// block, the block is written as it is then; bytes that nobody changed stay what they were.
/// What was changed ahead of the playout point is written by [`Updater::close`] and
/// [`Updater::seek`], too, and is lost where a program ends without them.
///
/// It costs a read and a write for each block, and always shares its window.
#[derive(Debug)]
pub struct Updater {
    stream: SharedWriter,
    client: Client,
    number: u64,
    contract: Contract,
    /// The end of what is recorded, as far as this program knows, and of what it has changed.
    recorded: Bytes,
    changed: Bytes,
}

impl Updater {
    pub(crate) fn new(
        stream: SharedWriter,
        client: Client,
        number: u64,
        contract: Contract,
        recorded: Bytes,
    ) -> Self {
        Self { stream, client, number, contract, recorded, changed: Bytes::ZERO }
    }

    /// The number of the stream.
    pub fn stream(&self) -> u64 {
        self.number
    }

    /// The playout point: the volume offset of the next byte.
    pub fn offset(&self) -> Bytes {
        self.stream.window.offset()
    }

    /// The end of what is recorded, or will be when the playout point has passed what this
    /// program has changed.
    pub fn length(&self) -> Bytes {
        self.recorded
    }

    /// Says that this program will do nothing with the stream for at most so long (a day counts
    /// at the most), so that its contract stays; see [`Reader::pause`](crate::Reader::pause).
    ///
    /// # Errors
    /// When the stream has ended.
    pub fn pause(&mut self, span: Duration) -> Result<()> {
        self.stream.pause(span)
    }

    /// Everything before this volume offset is on the medium, from where the stream began or
    /// went last. Does not wait.
    pub fn durable(&self) -> Bytes {
        self.stream.durable()
    }

    /// The volume offsets of what is in memory, as far as this program has heard.
    pub fn held(&self) -> Range<Bytes> {
        self.stream.window.held()
    }

    /// Copies what lies at a place of the window to the front of `buf`, as much as is there, in
    /// any order; the playout point stays. Waits for a place that is less than the burst ahead
    /// and not there yet.
    ///
    /// # Errors
    /// Where it is a place outside of the window; when the stream has ended.
    pub fn read_at(&mut self, at: Bytes, buf: &mut [u8]) -> Result<Piece> {
        if at >= self.recorded && at >= self.held().start {
            return Ok(Piece::End);
        }
        let most = self.recorded.saturating_sub(at).get();
        let len = usize::try_from(most).unwrap_or(usize::MAX).min(buf.len());
        let (ahead, mut done) = (self.ahead(), 0);
        while done < len {
            let place = at + Bytes::new(done as u64);
            match self.stream.window.look_at(place, len - done).map_err(garbled)? {
                Look::Data(bytes) => {
                    buf[done..done + bytes.len()].copy_from_slice(bytes);
                    done += bytes.len();
                }
                _ if done > 0 => break,
                Look::NotYet if place < ahead => self.stream.more()?,
                _ => return Err(outside(at, &self.held())),
            }
        }
        Ok(Piece::Data(done))
    }

    /// Changes the bytes at a place of the window to the front of `bytes`, as many as the
    /// contract's burst reaches; gives how many. The playout point stays. Waits for a place
    /// that is less than the burst ahead and not there yet.
    ///
    /// # Errors
    /// Where it is a place outside of the window, or one that was handed over: the playout
    /// point has passed it, by more than is kept. When there is no space, or the stream has
    /// ended.
    pub fn write_at(&mut self, at: Bytes, bytes: &[u8]) -> Result<usize> {
        let mut done = 0;
        while done < bytes.len() {
            let place = at + Bytes::new(done as u64);
            let (ahead, end) = (self.ahead(), self.held().end);
            let most = ahead.saturating_sub(place).get();
            let len = usize::try_from(most).unwrap_or(usize::MAX).min(bytes.len() - done);
            match self.stream.window.room_at(place, len).map_err(garbled)? {
                Some(room) if !room.is_empty() => {
                    let len = room.len();
                    room.copy_from_slice(&bytes[done..done + len]);
                    done += len;
                }
                _ if place >= end && place < ahead => match self.stream.more() {
                    Err(error) if done == 0 => return Err(error),
                    Err(_) => break,
                    Ok(()) => {}
                },
                _ if done > 0 => break,
                _ => return Err(outside(at, &self.held())),
            }
        }
        self.changed = self.changed.max(at + Bytes::new(done as u64));
        self.recorded = self.recorded.max(self.changed);
        Ok(done)
    }

    /// What comes next, at the playout point, into `buf`; the playout point goes behind it.
    ///
    /// # Errors
    /// As [`Updater::read_at`].
    pub fn next_piece(&mut self, buf: &mut [u8]) -> Result<Piece> {
        let at = self.offset();
        let piece = self.read_at(at, buf)?;
        if let Piece::Data(len) = piece {
            self.set_playout(at + Bytes::new(len as u64))?;
        }
        Ok(piece)
    }

    /// Changes what comes next, at the playout point, which goes behind it; gives how much.
    ///
    /// # Errors
    /// As [`Updater::write_at`].
    pub fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        let at = self.offset();
        let written = self.write_at(at, bytes)?;
        self.set_playout(at + Bytes::new(written as u64))?;
        Ok(written)
    }

    /// What comes next, where it lies: at most `len_max` bytes, as many as are there.
    ///
    /// # Errors
    /// When the stream has ended.
    pub fn peek(&mut self, len_max: usize) -> Result<Peek<'_>> {
        let (at, recorded) = (self.offset(), self.recorded);
        if at >= recorded || len_max == 0 {
            return Ok(Peek::End);
        }
        if self.held().end <= at {
            self.stream.more()?;
        }
        let most = usize::try_from((recorded - at).get()).unwrap_or(usize::MAX).min(len_max);
        match self.stream.window.look_at(at, most).map_err(garbled)? {
            Look::Data(bytes) => Ok(Peek::Data(bytes)),
            _ => Ok(Peek::End),
        }
    }

    /// Sets the playout point to a place of the window, forwards or backwards, or to one that is
    /// less than the burst ahead, for which this waits. What it has passed, less what is
    /// kept, is handed over to be written.
    ///
    /// # Errors
    /// Where it is another place, for which [`Updater::seek`] is made: nothing has changed.
    pub fn set_playout(&mut self, to: Bytes) -> Result<()> {
        loop {
            if let Some(rings) = self.stream.window.set_playout(to).map_err(garbled)? {
                self.stream.rings(rings);
                return Ok(());
            }
            if to <= self.offset() || to > self.ahead() {
                return Err(outside(to, &self.held()));
            }
            self.stream.more()?;
        }
    }

    /// From now on so many bytes behind the furthest playout point so far are held, to be read
    /// and changed; what may be touched ahead of it is less by as much.
    ///
    /// # Errors
    /// Where that is more than the contract gives at once.
    pub fn keep(&mut self, len: Bytes) -> Result<()> {
        within(len, self.at_once())?;
        let rings = self.stream.window.keep(len);
        self.stream.rings(rings);
        Ok(())
    }

    /// Puts everything before the playout point on the medium, less what is kept; gives the
    /// volume offset up to which everything is there.
    ///
    /// # Errors
    /// When not everything came there.
    pub fn sync(&mut self) -> Result<Bytes> {
        self.stream.sync()
    }

    /// Goes on at another offset of the volume, under the same contract, when all that was
    /// changed is on the medium.
    ///
    /// # Errors
    /// As [`Writer::seek`](crate::Writer::seek).
    pub fn seek(&mut self, to: Bytes) -> Result<()> {
        self.hand_over()?;
        self.stream.seek(to)?;
        self.changed = Bytes::ZERO;
        Ok(())
    }

    /// Lets the playout point pass all that was changed.
    fn hand_over(&mut self) -> Result<()> {
        self.keep(Bytes::ZERO)?;
        let to = self.changed.max(self.offset());
        while self.offset() < to {
            // A step at a time: it may be more than a burst behind where the program has gone back.
            let next = to.min(self.held().end.max(self.offset()));
            self.set_playout(if next > self.offset() { next } else { to })?;
        }
        Ok(())
    }

    /// What the contract gives at once.
    fn at_once(&self) -> Bytes {
        self.contract.burst_bytes.max(self.contract.block_bytes)
    }

    /// The end of what may be touched.
    fn ahead(&self) -> Bytes {
        self.offset() + self.at_once()
    }

    /// The contract that holds.
    pub fn contract(&self) -> Contract {
        self.contract
    }

    /// Asks for another rate or burst, in the same blocks.
    ///
    /// # Errors
    /// Where admission refuses; the contract stays.
    pub fn set_contract(&mut self, contract: Contract) -> Result<()> {
        let stream = self.client.stream_change(self.number, contract)?;
        self.contract = contract;
        self.stream.window.widen(stream.window_bytes);
        Ok(())
    }

    /// What the daemon knows of this stream: its window, what was late, and why.
    ///
    /// # Errors
    /// When the stream has ended, or the daemon has.
    pub fn stats(&self) -> Result<Stream> {
        self.client.stream(self.number)
    }

    /// Closes the stream when all that was changed is on the medium; gives the volume offset
    /// up to which everything is.
    ///
    /// # Errors
    /// When not everything came to the medium.
    pub fn close(mut self) -> Result<Bytes> {
        self.hand_over()?;
        self.stream.close()
    }
}

fn garbled(garbled: window::Garbled) -> Error {
    Error::Garbled(garbled.to_string())
}
