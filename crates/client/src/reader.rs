//! A reader under contract.

use crate::carried_reader::CarriedReader;
use crate::pieces::{Peek, Piece};
use crate::shared_reader::SharedReader;
use crate::{Client, Error, Result};
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use units::{Bytes, Duration};
use wire::control::{Contract, Stream};

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
            Carrier::Shared(reader) => reader.gaps(),
            Carrier::Carried(reader) => reader.gaps(),
        }
    }

    /// What comes next, where it lies, at most `len_max` (at least 1) bytes of it: as
    /// many as lie in one piece, which may be fewer. Waits for the first where the caller
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

    /// Goes on at another offset of the volume, under the same contract; gives the time
    /// until the first bytes are there, at the most: none where they are in the window.
    ///
    /// # Errors
    /// Where the offset is no place to read from; the reader stays where it is.
    pub fn seek(&mut self, to: Bytes) -> Result<Duration> {
        match &mut self.carrier {
            Carrier::Shared(reader) => reader.seek(to),
            Carrier::Carried(reader) => reader.seek(to),
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
        self.client.stream_change(self.stream, contract)?;
        self.contract = contract;
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
