//! A reader under contract.

use crate::carried_reader::CarriedReader;
use crate::pieces::{Peek, Piece};
use crate::shared_reader::{SharedReader, within};
use crate::{Client, Error, Result};
use std::io::{self, Read};
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use units::{Bytes, Duration};
use wire::control::{Contract, Stream};

/// Where a reader is after a jump, both counted from the daemon's answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sought {
    /// Until the first bytes are there, at the most: zero where they are in the window.
    pub ready: Duration,
    /// From when on the contract holds in full. Before that the program has its burst once,
    /// when it is there, and nothing on top.
    pub steady: Duration,
}

/// A volume that is read under contract. Dropping it closes the stream.
///
/// The bytes lie in the stream's window, which is mapped: [`Reader::peek`] shows them
/// there, [`Reader::advance`] is done with them, and [`Read::read`] copies. Neither makes
/// a system call while bytes are there, but for one a block of the contract. Where the
/// daemon cannot share the window, the bytes are carried over the socket, and all this
/// works in the same way, but slower.
#[derive(Debug)]
pub struct Reader {
    carrier: Carrier,
    client: Client,
    stream: u64,
    contract: Contract,
}

#[derive(Debug)]
enum Carrier {
    Shared(SharedReader),
    Carried(CarriedReader),
}

impl Reader {
    pub(crate) fn shared(
        reader: SharedReader,
        client: Client,
        stream: u64,
        contract: Contract,
    ) -> Self {
        Self { carrier: Carrier::Shared(reader), client, stream, contract }
    }

    pub(crate) fn carried(
        reader: CarriedReader,
        client: Client,
        stream: u64,
        contract: Contract,
    ) -> Self {
        Self { carrier: Carrier::Carried(reader), client, stream, contract }
    }

    /// The number of the stream.
    pub fn stream(&self) -> u64 {
        self.stream
    }

    /// Whether the window is mapped, rather than carried over the socket.
    pub fn is_shared(&self) -> bool {
        matches!(self.carrier, Carrier::Shared(_))
    }

    /// The volume offset of the next byte.
    pub fn offset(&self) -> Bytes {
        match &self.carrier {
            Carrier::Shared(reader) => reader.window.offset(),
            Carrier::Carried(reader) => reader.offset(),
        }
    }

    /// Bytes given up so far as declared gaps.
    pub fn gaps(&self) -> Bytes {
        match &self.carrier {
            Carrier::Shared(reader) => reader.window.gaps(),
            Carrier::Carried(reader) => reader.gaps(),
        }
    }

    /// What comes next, where it lies, at most `len_max` (at least 1) bytes of it: as
    /// many as are there and lie in a row, which may be fewer. Waits for the first where the caller
    /// is faster than its contract. A gap and the end are told once: the next look is
    /// behind them.
    ///
    /// # Errors
    /// When the stream has ended, or the daemon has.
    #[inline]
    pub fn peek(&mut self, len_max: usize) -> Result<Peek<'_>> {
        match &mut self.carrier {
            Carrier::Shared(reader) => reader.peek(len_max),
            Carrier::Carried(reader) => reader.peek(len_max),
        }
    }

    /// As [`Reader::peek`], and none where that would have to wait: then the descriptor
    /// ([`AsFd`]) can be read from when it is worth to look again.
    ///
    /// # Errors
    /// As [`Reader::peek`].
    #[inline]
    pub fn try_peek(&mut self, len_max: usize) -> Result<Option<Peek<'_>>> {
        match &mut self.carrier {
            Carrier::Shared(reader) => reader.try_peek(len_max),
            Carrier::Carried(reader) => reader.try_peek(len_max),
        }
    }

    /// Is done with `len` bytes of those that were shown: the playout point moves.
    ///
    /// # Panics
    /// Where more is asked for than was shown by the last look that showed any.
    #[inline]
    pub fn advance(&mut self, len: usize) {
        match &mut self.carrier {
            Carrier::Shared(reader) => reader.advance(len),
            Carrier::Carried(reader) => reader.advance(len),
        }
    }

    /// As [`Reader::peek`], and all of `len` bytes in one piece, where neither a gap nor the
    /// end is before that: waits for the last of them. They are copied only where the window
    /// was resized, or where a jump met requests under way: then blocks that follow each
    /// other may lie apart.
    ///
    /// # Errors
    /// As [`Reader::peek`]; and where `len` is more than the contract gives at once (its
    /// burst, a block at least).
    pub fn peek_whole(&mut self, len: usize) -> Result<Peek<'_>> {
        let at_once = self.at_once();
        match &mut self.carrier {
            Carrier::Shared(reader) => reader.peek_whole(len.max(1), at_once),
            Carrier::Carried(reader) => reader.peek_whole(len.max(1), at_once),
        }
    }

    /// The volume offsets of what is in memory, as far as this program has heard: it can be
    /// read by [`Reader::read_at`], and the playout point can be set into it. A byte is held
    /// until a playout point was further behind the end of the byte's block than
    /// [`Reader::keep`] says.
    pub fn held(&self) -> Range<Bytes> {
        match &self.carrier {
            Carrier::Shared(reader) => reader.window.held(),
            Carrier::Carried(reader) => reader.held(),
        }
    }

    /// From now on so many bytes behind the furthest playout point so far are held. They are
    /// bytes of the window: what the contract promises ahead of the playout point is less by as much, so
    /// that a program that keeps `len` asks for a burst that is larger by `len`.
    ///
    /// # Errors
    /// Where that is more than the contract gives at once.
    pub fn keep(&mut self, len: Bytes) -> Result<()> {
        within(len, self.at_once())?;
        match &mut self.carrier {
            Carrier::Shared(reader) => reader.keep(len),
            Carrier::Carried(reader) => reader.keep(len),
        }
        Ok(())
    }

    /// Sets the playout point to a place that is held, forwards or backwards, or to one that
    /// is less than the burst ahead, for which this waits. It costs the disks nothing: what
    /// is skipped is passed at the contract's rate, and what is read again is in memory.
    ///
    /// # Errors
    /// Where it is another place, for which [`Reader::seek`] is made: nothing has changed.
    pub fn set_playout(&mut self, to: Bytes) -> Result<()> {
        let at_once = self.at_once();
        match &mut self.carrier {
            Carrier::Shared(reader) => reader.set_playout(to, at_once, true).map(drop),
            Carrier::Carried(reader) => reader.set_playout(to, at_once),
        }
    }

    /// As [`Reader::set_playout`], and false where that would have to wait: then the descriptor
    /// ([`AsFd`]) can be read from when it is worth to try again. A reader whose window is not
    /// shared waits.
    ///
    /// # Errors
    /// As [`Reader::set_playout`].
    pub fn try_set_playout(&mut self, to: Bytes) -> Result<bool> {
        let at_once = self.at_once();
        match &mut self.carrier {
            Carrier::Shared(reader) => reader.set_playout(to, at_once, false),
            Carrier::Carried(reader) => reader.set_playout(to, at_once).map(|()| true),
        }
    }

    /// Copies what lies at a place of the window to the front of `buf`, as much as is there,
    /// in any order, and leaves the playout point where it is. Waits for a place that is
    /// less than the burst ahead and not there yet, as [`Reader::peek`] does.
    ///
    /// # Errors
    /// Where it is a place outside of the window; when the stream has ended.
    pub fn read_at(&mut self, at: Bytes, buf: &mut [u8]) -> Result<Piece> {
        let at_once = self.at_once();
        match &mut self.carrier {
            Carrier::Shared(reader) => {
                let read = reader.read_at(at, buf, at_once, true)?;
                Ok(read.expect("it has waited"))
            }
            Carrier::Carried(reader) => reader.read_at(at, buf, at_once),
        }
    }

    /// As [`Reader::read_at`], and none where that would have to wait: then the descriptor
    /// ([`AsFd`]) can be read from when it is worth to look again. A reader whose window is
    /// not shared waits.
    ///
    /// # Errors
    /// As [`Reader::read_at`].
    pub fn try_read_at(&mut self, at: Bytes, buf: &mut [u8]) -> Result<Option<Piece>> {
        let at_once = self.at_once();
        match &mut self.carrier {
            Carrier::Shared(reader) => reader.read_at(at, buf, at_once, false),
            Carrier::Carried(reader) => reader.read_at(at, buf, at_once).map(Some),
        }
    }

    /// What the contract gives at once.
    fn at_once(&self) -> Bytes {
        self.contract.burst_bytes.max(self.contract.block_bytes)
    }

    /// What comes next; bytes go to the front of `buf`, as many as are there. Waits for
    /// the first where the caller is faster than its contract.
    ///
    /// # Errors
    /// As [`Reader::peek`].
    pub fn next_piece(&mut self, buf: &mut [u8]) -> Result<Piece> {
        if buf.is_empty() {
            return Ok(Piece::Data(0));
        }
        match &mut self.carrier {
            Carrier::Shared(reader) => reader.next_piece(buf),
            Carrier::Carried(reader) => reader.next_piece(buf),
        }
    }

    /// Goes on at another offset of the volume, under the same contract; gives how soon the
    /// first bytes are there, and from when on the contract holds in full.
    ///
    /// # Errors
    /// Where the offset is no place to read from; the reader stays where it is.
    pub fn seek(&mut self, to: Bytes) -> Result<Sought> {
        match &mut self.carrier {
            Carrier::Shared(reader) => reader.seek(to),
            Carrier::Carried(reader) => reader.seek(to),
        }
    }

    /// Says that this program will neither move its window nor ask for anything for at most so
    /// long (a day counts at the most): its contract stays, though the daemon takes that of a
    /// program that is silent for too long. The pause ends when the program has moved on by about
    /// a block, or asks the daemon for something. Does not wait.
    ///
    /// # Errors
    /// When the stream has ended, or the daemon has.
    pub fn pause(&mut self, span: Duration) -> Result<()> {
        match &mut self.carrier {
            Carrier::Shared(reader) => reader.pause(span),
            Carrier::Carried(reader) => reader.pause(span),
        }
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
        let stream = self.client.stream_change(self.stream, contract)?;
        self.contract = contract;
        if let Carrier::Shared(reader) = &mut self.carrier {
            reader.window.widen(stream.window_bytes);
        }
        Ok(())
    }

    /// What the daemon knows of this stream: its window, what was late, and why.
    ///
    /// # Errors
    /// When the stream has ended, or the daemon has.
    pub fn stats(&self) -> Result<Stream> {
        self.client.stream(self.stream)
    }

    /// Closes the stream, and waits until that is done.
    ///
    /// # Errors
    /// When it has ended otherwise.
    pub fn close(self) -> Result<()> {
        match self.carrier {
            Carrier::Shared(reader) => reader.close(),
            Carrier::Carried(reader) => reader.close(),
        }
    }
}

impl Read for Reader {
    /// As [`Reader::next_piece`]. A gap is an error that holds [`Error::Gap`],
    /// once; the next read goes on behind it.
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self.next_piece(buf)? {
            Piece::Data(len) => Ok(len),
            Piece::Gap { offset, len } => Err(Error::Gap { offset, len }.into()),
            Piece::End => Ok(0),
        }
    }
}

impl AsFd for Reader {
    /// For `poll(2)`, after [`Reader::try_peek`] gave nothing. Do not read from it.
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.carrier {
            Carrier::Shared(reader) => reader.line.as_fd(),
            Carrier::Carried(reader) => reader.as_fd(),
        }
    }
}
