//! A reader whose bytes are carried over the socket, where a window cannot be shared.
//!
//! Invariant: at most one `Next` is unanswered. Bytes that were asked for to be looked at
//! are kept until they are advanced past.

use crate::pieces::{Peek, Piece};
use crate::{Error, Result, connection};
use rustix::event::{PollFd, PollFlags};
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use units::{Bytes, Duration};
use wire::frame::{BODY_MAX, Head, VERSION};

/// How much is asked for to be looked at.
const LOOK: usize = 256 << 10;

/// See the module.
#[derive(Debug)]
pub struct CarriedReader {
    connection: UnixStream,
    /// The volume offset behind what was received.
    offset: Bytes,
    gaps: Bytes,
    /// What was received to be looked at, from `at` on.
    held: Vec<u8>,
    at: usize,
    /// A `Next` has no answer yet.
    asked: bool,
}

impl CarriedReader {
    pub fn attach(socket: &Path, stream: u64) -> Result<Self> {
        let hello = Head::HelloStream { version: VERSION, stream };
        let (connection, welcome) = connection::attach(socket, hello, &[])?;
        let Head::Welcome { offset, .. } = welcome else { unreachable!("attach gives a welcome") };
        let (gaps, held) = (Bytes::ZERO, Vec::new());
        Ok(Self { connection, offset, gaps, held, at: 0, asked: false })
    }

    pub fn offset(&self) -> Bytes {
        self.offset - Bytes::new((self.held.len() - self.at) as u64)
    }

    pub fn gaps(&self) -> Bytes {
        self.gaps
    }

    /// What comes next; bytes go to the front of `buf`, at most 1 MiB at once.
    pub fn next_piece(&mut self, buf: &mut [u8]) -> Result<Piece> {
        if buf.is_empty() {
            return Ok(Piece::Data(0));
        }
        if self.at == self.held.len() && !self.asked {
            // Straight into the caller's buffer.
            return self.receive_into(buf);
        }
        match self.peek(buf.len())? {
            Peek::Data(bytes) => {
                let len = bytes.len();
                buf[..len].copy_from_slice(bytes);
                self.advance(len);
                Ok(Piece::Data(len))
            }
            Peek::Gap { offset, len } => Ok(Piece::Gap { offset, len }),
            Peek::End => Ok(Piece::End),
        }
    }

    pub fn peek(&mut self, len_max: usize) -> Result<Peek<'_>> {
        if self.at == self.held.len() {
            let mut held = std::mem::take(&mut self.held);
            held.resize(LOOK, 0);
            let piece = self.receive_into(&mut held)?;
            let len = if let Piece::Data(len) = piece { len } else { 0 };
            held.truncate(len);
            (self.held, self.at) = (held, 0);
            match piece {
                Piece::Data(_) => {}
                Piece::Gap { offset, len } => return Ok(Peek::Gap { offset, len }),
                Piece::End => return Ok(Peek::End),
            }
        }
        let end = self.held.len().min(self.at.saturating_add(len_max));
        Ok(Peek::Data(&self.held[self.at..end]))
    }

    /// As [`Self::peek`], where an answer has begun to come.
    pub fn try_peek(&mut self, len_max: usize) -> Result<Option<Peek<'_>>> {
        if self.at == self.held.len() {
            self.ask_next(LOOK)?;
            let mut waiting = [PollFd::new(&self.connection, PollFlags::IN)];
            let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
            if rustix::event::poll(&mut waiting, Some(&now)) == Ok(0) {
                return Ok(None);
            }
        }
        self.peek(len_max).map(Some)
    }

    pub fn advance(&mut self, len: usize) {
        assert!(len <= self.held.len() - self.at, "more than is at hand");
        self.at += len;
    }

    pub fn seek(&mut self, to: Bytes) -> Result<Duration> {
        let seek = connection::asked(Head::Seek { tag: 1, offset: to })?;
        while self.asked {
            let mut void = vec![0; LOOK];
            self.receive_into(&mut void)?;
        }
        match self.ask(seek)? {
            (Head::Sought { offset, ready, .. }, _) => {
                self.held.clear();
                self.at = 0;
                self.offset = offset;
                Ok(ready)
            }
            (other, body) => Err(connection::unexpected(&mut self.connection, other, body)),
        }
    }

    fn ask_next(&mut self, len: usize) -> Result<()> {
        if !self.asked {
            let next = Head::Next { len: Bytes::new(len.min(BODY_MAX) as u64) };
            // A daemon that has gone may have said why before: whoever receives is told.
            let _ = connection::send(&mut self.connection, next, &[]);
            self.asked = true;
        }
        Ok(())
    }

    /// Asks for the next piece, where that was not done, and receives it. `buf` is at
    /// least as long as what was asked for.
    fn receive_into(&mut self, buf: &mut [u8]) -> Result<Piece> {
        self.ask_next(buf.len())?;
        let (head, body) = connection::receive_head(&mut self.connection)?;
        self.asked = false;
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
        let mut void = vec![0; LOOK];
        while self.asked {
            self.receive_into(&mut void)?;
        }
        match self.ask(Head::Close)? {
            (Head::Closed { .. }, _) => Ok(()),
            (other, body) => Err(connection::unexpected(&mut self.connection, other, body)),
        }
    }
}

impl AsFd for CarriedReader {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.connection.as_fd()
    }
}
