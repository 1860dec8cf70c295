//! A reader whose bytes are carried over the socket, where a window cannot be shared.
//!
//! Invariant: at most one `Next` is unanswered. What was received is kept until the playout
//! point has passed it, by as much as the program wants to keep.

use crate::forks::Maker;
use crate::pieces::{Peek, Piece};
use crate::shared_reader::{outside, within};
use crate::{Error, Result, Sought, connection};
use rustix::event::{PollFd, PollFlags};
use std::collections::VecDeque;
use std::io::Read;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use units::{Bytes, Duration};
use wire::frame::{BODY_MAX, Head, VERSION};

/// How much is asked for to be looked at.
const LOOK: usize = 256 << 10;
/// No gap is longer: it is a block, or what one of a file was cut to.
const GAP_MAX: u64 = 64 << 20;

/// See the module.
#[derive(Debug)]
pub struct CarriedReader {
    maker: Maker,
    connection: UnixStream,
    /// What was received from the volume offset `start` on. Where `holes` are, the disk
    /// failed, and these are no bytes.
    held: Vec<u8>,
    start: u64,
    holes: VecDeque<Range<u64>>,
    /// The playout point.
    position: u64,
    keep: u64,
    /// The furthest playout point before the program last went back, and the bytes of gaps
    /// before that.
    reached: u64,
    gaps: u64,
    /// A `Next` has no answer yet.
    asked: bool,
}

impl CarriedReader {
    pub fn attach(socket: &Path, stream: u64) -> Result<Self> {
        let hello = Head::HelloStream { version: VERSION, stream };
        let (connection, welcome) = connection::attach(socket, hello, &[])?;
        let Head::Welcome { offset, .. } = welcome else { unreachable!("attach gives a welcome") };
        let start = offset.get();
        Ok(Self {
            maker: Maker::this(),
            connection,
            held: Vec::new(),
            start,
            holes: VecDeque::new(),
            position: start,
            keep: 0,
            reached: start,
            gaps: 0,
            asked: false,
        })
    }

    pub fn offset(&self) -> Bytes {
        Bytes::new(self.position)
    }

    pub fn gaps(&self) -> Bytes {
        Bytes::new(self.gaps)
    }

    pub fn held(&self) -> Range<Bytes> {
        Bytes::new(self.start)..Bytes::new(self.end())
    }

    /// Behind what was received.
    fn end(&self) -> u64 {
        self.start + self.held.len() as u64
    }

    /// What comes next; bytes go to the front of `buf`, at most 1 MiB at once.
    pub fn next_piece(&mut self, buf: &mut [u8]) -> Result<Piece> {
        if buf.is_empty() {
            return Ok(Piece::Data(0));
        }
        if self.position == self.end() && !self.asked && self.keep == 0 {
            // Straight into the caller's buffer.
            self.held.clear();
            self.holes.clear();
            self.start = self.position;
            self.ask_next(buf.len())?;
            if let Some(body) = self.receive_head()? {
                if body > buf.len() {
                    return Err(Error::Garbled("more bytes than were asked for".into()));
                }
                self.connection.read_exact(&mut buf[..body])?;
                self.position += body as u64;
                self.start = self.position;
                return Ok(Piece::Data(body));
            }
            if self.position == self.end() {
                return Ok(Piece::End);
            }
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
        if self.position == self.end() && !self.receive(LOOK)? {
            return Ok(Peek::End);
        }
        self.show(len_max)
    }

    /// What was received at the playout point; a gap is passed.
    fn show(&mut self, len_max: usize) -> Result<Peek<'_>> {
        let at = self.position;
        if let Some(end) = self.hole_at(at) {
            self.pass(end);
            return Ok(Peek::Gap { offset: Bytes::new(at), len: Bytes::new(end - at) });
        }
        Ok(Peek::Data(self.bytes(at, len_max)))
    }

    /// As [`Self::peek`], all of `len` bytes, which are no more than `ahead_max`.
    pub fn peek_whole(&mut self, len: usize, ahead_max: Bytes) -> Result<Peek<'_>> {
        within(Bytes::new(len as u64), ahead_max)?;
        while self.end() - self.position < len as u64 && !self.holes_ahead() {
            let more = len - (self.end() - self.position) as usize;
            if !self.receive(more.max(LOOK))? {
                if self.position == self.end() {
                    return Ok(Peek::End);
                }
                break;
            }
        }
        self.show(len)
    }

    /// As [`Self::peek`], where an answer has begun to come.
    pub fn try_peek(&mut self, len_max: usize) -> Result<Option<Peek<'_>>> {
        if self.position == self.end() {
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
        assert!(len as u64 <= self.end() - self.position, "more than is at hand");
        self.pass(self.position + len as u64);
    }

    /// Keeps so much behind the playout point.
    pub fn keep(&mut self, len: Bytes) {
        self.keep = len.get();
        self.forget();
    }

    /// Sets the playout point to a place that is held, or will be: at most `ahead_max` on.
    pub fn set_playout(&mut self, to: Bytes, ahead_max: Bytes) -> Result<()> {
        let ahead = to.saturating_sub(self.offset());
        while to.get() > self.end() && ahead <= ahead_max && self.receive(LOOK)? {}
        if to.get() < self.start || to.get() > self.end() {
            return Err(outside(to, &self.held()));
        }
        self.pass(to.get());
        Ok(())
    }

    /// What lies at a place, copied.
    pub fn read_at(&mut self, at: Bytes, buf: &mut [u8], ahead_max: Bytes) -> Result<Piece> {
        if buf.is_empty() {
            return Ok(Piece::Data(0));
        }
        let place = at.get();
        while place >= self.end() && at.saturating_sub(self.offset()) < ahead_max {
            if !self.receive(LOOK)? {
                return Ok(Piece::End);
            }
        }
        if place < self.start || place >= self.end() {
            return Err(outside(at, &self.held()));
        }
        if let Some(end) = self.hole_at(place) {
            return Ok(Piece::Gap { offset: at, len: Bytes::new(end - place) });
        }
        let bytes = self.bytes(place, buf.len());
        buf[..bytes.len()].copy_from_slice(bytes);
        Ok(Piece::Data(bytes.len()))
    }

    pub fn pause(&mut self, span: Duration) -> Result<()> {
        self.maker.check()?;
        Ok(connection::send(&self.connection, connection::pause(span), &[])?)
    }

    pub fn seek(&mut self, to: Bytes) -> Result<Sought> {
        let seek = connection::asked(Head::Seek { tag: 1, offset: to })?;
        connection::answered(self, |reader| reader.seek_to(seek))
    }

    fn seek_to(&mut self, seek: Head) -> Result<Sought> {
        while self.asked {
            self.receive(LOOK)?;
        }
        let mut answer = self.ask(seek)?;
        let mut steady = Duration::ZERO;
        if let (Head::Steady { after }, _) = answer {
            steady = after;
            answer = connection::receive_head(&mut self.connection)?;
        }
        match answer {
            (Head::Sought { offset, ready, .. }, _) => {
                self.held.clear();
                self.holes.clear();
                (self.start, self.position) = (offset.get(), offset.get());
                self.reached = offset.get();
                Ok(Sought { ready, steady })
            }
            (other, body) => Err(connection::unexpected(&mut self.connection, other, body)),
        }
    }

    /// The end of the gap that a place lies in.
    fn hole_at(&self, at: u64) -> Option<u64> {
        self.holes.iter().find(|hole| hole.contains(&at)).map(|hole| hole.end)
    }

    /// Whether a gap was received behind the playout point.
    fn holes_ahead(&self) -> bool {
        self.holes.back().is_some_and(|hole| hole.end > self.position)
    }

    /// What was received at a place, up to the next gap.
    fn bytes(&self, at: u64, len_max: usize) -> &[u8] {
        let hole = self.holes.iter().map(|hole| hole.start).find(|&start| start > at);
        let len = (hole.unwrap_or(self.end()) - at).min(len_max as u64) as usize;
        &self.held[(at - self.start) as usize..][..len]
    }

    /// The playout point goes to `to`, over all that lies between.
    fn pass(&mut self, to: u64) {
        self.reached = self.reached.max(self.position);
        for hole in &self.holes {
            self.gaps += hole.end.min(to).saturating_sub(hole.start.max(self.reached));
        }
        self.position = to;
        self.forget();
    }

    /// Lets go of what is not to be kept, where that is worth moving the rest.
    fn forget(&mut self) {
        let past = self.position.saturating_sub(self.keep).saturating_sub(self.start);
        if past as usize == self.held.len() || past as usize > LOOK.max(self.held.len() / 2) {
            self.held.drain(..past as usize);
            self.start += past;
            self.holes.retain(|hole| hole.end > self.start);
        }
    }

    fn ask_next(&mut self, len: usize) -> Result<()> {
        self.maker.check()?;
        if !self.asked {
            let next = Head::Next { len: Bytes::new(len.min(BODY_MAX) as u64) };
            // A daemon that has gone may have said why before: whoever receives is told.
            let _ = connection::send(&self.connection, next, &[]);
            self.asked = true;
        }
        Ok(())
    }

    /// Asks for the next piece, where that was not done, and receives it behind the others;
    /// false at the end.
    fn receive(&mut self, len: usize) -> Result<bool> {
        self.ask_next(len)?;
        let before = self.end();
        if let Some(body) = self.receive_head()? {
            let at = self.held.len();
            self.held.resize(at + body, 0);
            if let Err(error) = self.connection.read_exact(&mut self.held[at..]) {
                self.held.truncate(at);
                return Err(error.into());
            }
        }
        Ok(self.end() > before)
    }

    /// Receives the head of what was asked for: the length of the bytes that follow it. None
    /// where that was a gap, which is then among the `holes`, or the end.
    fn receive_head(&mut self) -> Result<Option<usize>> {
        let (head, body) = connection::receive_head(&mut self.connection)?;
        self.asked = false;
        match head {
            Head::Data { offset } if offset.get() == self.end() => Ok(Some(body)),
            Head::Gap { offset, len } if offset.get() == self.end() && len.get() <= GAP_MAX => {
                self.holes.push_back(self.end()..self.end() + len.get());
                self.held.resize(self.held.len() + len.as_usize(), 0);
                Ok(None)
            }
            Head::End { .. } => Ok(None),
            other => Err(connection::unexpected(&mut self.connection, other, body)),
        }
    }

    /// The answer to a frame. A daemon that has gone may have said why before:
    /// its word is better than a broken pipe.
    fn ask(&mut self, head: Head) -> Result<(Head, usize)> {
        self.maker.check()?;
        let sent = connection::send(&self.connection, head, &[]);
        let answer = connection::receive_head(&mut self.connection);
        answer.map_err(|error| sent.err().map_or(error, Error::from))
    }

    /// Closes the stream, and waits until that is done.
    pub fn close(mut self) -> Result<()> {
        connection::answered(&mut self, |reader| {
            while reader.asked {
                reader.receive(LOOK)?;
            }
            match reader.ask(Head::Close)? {
                (Head::Closed { .. }, _) => Ok(()),
                (other, body) => Err(connection::unexpected(&mut reader.connection, other, body)),
            }
        })
    }
}

impl connection::AsConnection for CarriedReader {
    fn connection(&self) -> &UnixStream {
        &self.connection
    }
}

impl AsFd for CarriedReader {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.connection.as_fd()
    }
}
