//! A reader whose window is mapped.
//!
//! Invariants: while bytes are at hand no call makes a system call, but for one bell a
//! block; the program is said to wait at most once for each piece that comes.

use crate::line::Line;
use crate::reader::{Peek, Piece};
use crate::{Error, Result};
use std::path::Path;
use std::sync::Arc;
use units::{Bytes, Duration};
use window::Kind;
use wire::frame::Head;

/// See the module.
#[derive(Debug)]
pub struct SharedReader {
    pub window: window::Client,
    pub line: Arc<Line>,
    /// The daemon knows that this program waits.
    armed: bool,
    gaps: Bytes,
}

/// What was taken: bytes are at hand then.
enum Taken {
    Bytes,
    Gap(Bytes, Bytes),
    End,
}

impl SharedReader {
    /// The reader of a stream whose window is shared; the inner error says why it cannot
    /// be mapped here.
    pub fn attach(
        socket: &Path,
        stream: u64,
        window: Bytes,
    ) -> Result<std::result::Result<Self, std::io::Error>> {
        let attached = Line::attach(socket, stream)?;
        let mapped = window::Client::open(attached.control, attached.data, attached.start);
        Ok(mapped.map(|mapped| {
            mapped.populate(window);
            let line = Arc::new(attached.line);
            Self { window: mapped, line, armed: false, gaps: Bytes::ZERO }
        }))
    }

    pub fn gaps(&self) -> Bytes {
        self.gaps
    }

    #[inline]
    pub fn peek(&mut self, len_max: usize) -> Result<Peek<'_>> {
        if self.window.left() == 0 {
            match self.next()? {
                Taken::Bytes => {}
                Taken::Gap(offset, len) => return Ok(Peek::Gap { offset, len }),
                Taken::End => return Ok(Peek::End),
            }
        }
        Ok(Peek::Data(self.window.bytes(len_max)))
    }

    #[inline]
    pub fn try_peek(&mut self, len_max: usize) -> Result<Option<Peek<'_>>> {
        if self.window.left() == 0 {
            match self.try_next()? {
                None => return Ok(None),
                Some(Taken::Bytes) => {}
                Some(Taken::Gap(offset, len)) => return Ok(Some(Peek::Gap { offset, len })),
                Some(Taken::End) => return Ok(Some(Peek::End)),
            }
        }
        Ok(Some(Peek::Data(self.window.bytes(len_max))))
    }

    #[inline]
    pub fn advance(&mut self, len: usize) {
        if self.window.advance(len) {
            self.line.ring();
        }
    }

    /// As much as is there and fits, without waiting for more than the first byte.
    pub fn next_piece(&mut self, buf: &mut [u8]) -> Result<Piece> {
        match self.peek(buf.len())? {
            Peek::Gap { offset, len } => return Ok(Piece::Gap { offset, len }),
            Peek::End => return Ok(Piece::End),
            Peek::Data(_) => {}
        }
        let mut done = 0;
        loop {
            let bytes = self.window.bytes(buf.len() - done);
            let len = bytes.len();
            buf[done..done + len].copy_from_slice(bytes);
            self.advance(len);
            done += len;
            // What is no bytes is for the next call.
            if done == buf.len() || self.window.left() == 0 && !self.window.has_more() {
                return Ok(Piece::Data(done));
            }
            if self.window.left() == 0 {
                self.take()?;
            }
        }
    }

    pub fn seek(&mut self, to: Bytes) -> Result<Duration> {
        self.line.look(|heard| (heard.sought, heard.failed) = (None, None))?;
        self.line.send(Head::Seek { tag: 1, offset: to })?;
        let answer = self.line.wait(|heard| match (heard.sought.take(), heard.failed.take()) {
            (Some(sought), _) => Some(Ok(sought)),
            (None, Some(failed)) => Some(Err(failed)),
            (None, None) => None,
        })?;
        let (first, offset, ready) = answer?;
        self.window.sought(first, offset);
        self.armed = false;
        Ok(ready)
    }

    pub fn close(self) -> Result<()> {
        self.line.send(Head::Close)?;
        self.line.wait(|heard| heard.closed.then_some(()))
    }

    /// The next piece, where it is there.
    fn take(&mut self) -> Result<Option<Taken>> {
        let piece = self.window.take().map_err(|garbled| Error::Garbled(garbled.to_string()))?;
        let Some(piece) = piece else { return Ok(None) };
        self.armed = false;
        Ok(Some(match piece.kind {
            Kind::Data | Kind::Room => Taken::Bytes,
            Kind::End => Taken::End,
            Kind::Gap => {
                self.gaps += piece.len;
                if self.window.passes_bell() {
                    self.line.ring();
                }
                Taken::Gap(piece.offset, piece.len)
            }
        }))
    }

    /// Waits for the next piece.
    #[cold]
    fn next(&mut self) -> Result<Taken> {
        loop {
            if let Some(taken) = self.take()? {
                return Ok(taken);
            }
            if !self.arm() {
                continue;
            }
            let before = self.line.look(|heard| heard.frames)?;
            // It may have come between.
            if let Some(taken) = self.take()? {
                return Ok(taken);
            }
            self.line.wait(|heard| {
                let failed = heard.failed.take();
                failed.map(Err).or((heard.frames > before).then_some(Ok(())))
            })??;
        }
    }

    /// The next piece, or word that there will be news of it on the socket.
    #[cold]
    fn try_next(&mut self) -> Result<Option<Taken>> {
        loop {
            if let Some(taken) = self.take()? {
                return Ok(Some(taken));
            }
            let failed = self.line.look(|heard| heard.failed.take())?;
            if let Some(failed) = failed {
                return Err(failed);
            }
            // News that was taken from the socket now may be of a piece.
            if let Some(taken) = self.take()? {
                return Ok(Some(taken));
            }
            if self.armed {
                return Ok(None);
            }
            if self.arm() {
                return Ok(None);
            }
        }
    }

    /// Tells the daemon that this program waits; false where a piece has come meanwhile.
    fn arm(&mut self) -> bool {
        if !self.armed {
            if !self.window.begin_to_wait() {
                return false;
            }
            self.armed = true;
            self.line.ring();
        }
        true
    }
}

impl Drop for SharedReader {
    fn drop(&mut self) {
        self.line.shut();
    }
}
