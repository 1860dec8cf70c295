//! A reader under contract.

use crate::{Error, Result, connection};
use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::path::Path;
use units::Bytes;
use wire::frame::{BODY_MAX, Head, VERSION};

/// What comes next in a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    /// So many bytes were read.
    Data(usize),
    /// The disk failed on these bytes; the stream goes on behind them.
    Gap {
        /// Where they start in the volume.
        offset: Bytes,
        /// How many they are.
        len: Bytes,
    },
    /// The volume's recorded data ends here, for now.
    End,
}

/// A volume that is read under contract. Bytes arrive in the caller's buffer
/// straight from the socket; nothing is buffered here, so read in large pieces.
/// Dropping it closes the stream.
#[derive(Debug)]
pub struct Reader {
    connection: UnixStream,
    stream: u64,
    offset: Bytes,
    gaps: Bytes,
}

impl Reader {
    pub(crate) fn attach(socket: &Path, stream: u64) -> Result<Self> {
        let hello = Head::HelloStream { version: VERSION, stream };
        let (connection, welcome) = connection::attach(socket, hello, &[])?;
        let Head::Welcome { offset, .. } = welcome else { unreachable!("attach gives a welcome") };
        Ok(Self { connection, stream, offset, gaps: Bytes::ZERO })
    }

    /// The number of the stream.
    pub fn stream(&self) -> u64 {
        self.stream
    }

    /// The volume offset of the next byte.
    pub fn offset(&self) -> Bytes {
        self.offset
    }

    /// Bytes given up so far as declared gaps.
    pub fn gaps(&self) -> Bytes {
        self.gaps
    }

    /// What comes next; bytes go to the front of `buf`, at most 1 MiB at once.
    /// Waits where the caller is faster than its contract.
    pub fn next_piece(&mut self, buf: &mut [u8]) -> Result<Piece> {
        if buf.is_empty() {
            return Ok(Piece::Data(0));
        }
        let len = Bytes::new(buf.len().min(BODY_MAX) as u64);
        let (head, body) = self.ask(Head::Next { len })?;
        match head {
            Head::Data { offset } if offset == self.offset && body <= buf.len() => {
                self.connection.read_exact(&mut buf[..body])?;
                self.offset += Bytes::new(body as u64);
                Ok(Piece::Data(body))
            }
            Head::Gap { offset, len } => {
                self.offset = offset + len;
                self.gaps += len;
                Ok(Piece::Gap { offset, len })
            }
            Head::End { .. } => Ok(Piece::End),
            other => Err(connection::unexpected(&mut self.connection, other, body)),
        }
    }

    /// The answer to a frame. A daemon that has gone may have said why before:
    /// its word is better than a broken pipe.
    fn ask(&mut self, head: Head) -> Result<(Head, usize)> {
        let sent = connection::send(&mut self.connection, head, &[]);
        let answer = connection::receive_head(&mut self.connection);
        answer.map_err(|error| sent.err().map_or(error, Error::from))
    }

    /// Closes the stream, and waits until that is done.
    pub fn close(mut self) -> Result<()> {
        match self.ask(Head::Close)? {
            (Head::Closed { .. }, _) => Ok(()),
            (other, body) => Err(connection::unexpected(&mut self.connection, other, body)),
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
