//! A reader whose window is mapped.
//!
//! Invariants: while bytes are at hand no call makes a system call, but for one bell a
//! block; the program is said to wait at most once for each piece that comes.

use crate::line::Line;
use crate::pieces::{Peek, Piece};
use crate::{Error, Result, Sought, connection};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use units::{Bytes, Duration};
use window::{Kind, Look};
use wire::frame::Head;
use wire::{Code, Problem};

/// See the module.
#[derive(Debug)]
pub struct SharedReader {
    pub window: window::Client,
    pub line: Arc<Line>,
    /// The daemon knows that this program waits, since it had heard of so many pieces.
    armed: Option<u64>,
    /// A look across places that do not lie in a row.
    copied: Vec<u8>,
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
        Ok(mapped.map(|mut mapped| {
            mapped.populate(window);
            let line = Arc::new(attached.line);
            Self { window: mapped, line, armed: None, copied: Vec::new() }
        }))
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
        Ok(Peek::Data(self.window.bytes_in_a_row(len_max).map_err(garbled)?))
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
        Ok(Some(Peek::Data(self.window.bytes_in_a_row(len_max).map_err(garbled)?)))
    }

    /// As [`Self::peek`], all of `len` bytes, which are no more than `ahead_max`.
    pub fn peek_whole(&mut self, len: usize, ahead_max: Bytes) -> Result<Peek<'_>> {
        within(Bytes::new(len as u64), ahead_max)?;
        match self.peek(1)? {
            Peek::Gap { offset, len } => return Ok(Peek::Gap { offset, len }),
            Peek::End => return Ok(Peek::End),
            Peek::Data(_) => {}
        }
        // How much there is before a gap or the end.
        let (start, mut there) = (self.window.offset(), 0);
        let mut in_a_row = self.window.bytes_in_a_row(len).map_err(garbled)?.len();
        while there < len {
            let at = start + Bytes::new(there as u64);
            let is_there = match self.window.look_at(at, len - there).map_err(garbled)? {
                Look::Data(bytes) => {
                    there += bytes.len();
                    true
                }
                Look::NotYet => false,
                Look::Gap { .. } | Look::Gone => break,
            };
            if !is_there && !self.more()? {
                break;
            }
        }
        if in_a_row < there {
            in_a_row = self.window.bytes_in_a_row(there).map_err(garbled)?.len();
        }
        if in_a_row >= there {
            return Ok(Peek::Data(self.window.bytes_in_a_row(there).map_err(garbled)?));
        }
        let mut copied = std::mem::take(&mut self.copied);
        copied.resize(there, 0);
        let read = self.copy(start, &mut copied);
        self.copied = copied;
        read.map(|_| Peek::Data(&self.copied))
    }

    #[inline]
    pub fn advance(&mut self, len: usize) {
        if self.window.advance(len) {
            self.line.ring();
        }
    }

    /// Keeps so much behind the playout point.
    pub fn keep(&mut self, len: Bytes) {
        if self.window.keep(len) {
            self.line.ring();
        }
    }

    /// Sets the playout point to a place that is held, or will be: at most `ahead_max` on.
    /// False where that would have to wait and shall not.
    pub fn set_playout(&mut self, to: Bytes, ahead_max: Bytes, waits: bool) -> Result<bool> {
        loop {
            if let Some(rings) = self.window.set_playout(to).map_err(garbled)? {
                if rings {
                    self.line.ring();
                }
                return Ok(true);
            }
            let ahead = to.saturating_sub(self.window.offset());
            if ahead.is_zero() || ahead > ahead_max {
                return Err(outside(to, &self.window.held()));
            }
            if waits {
                if !self.more()? {
                    return Err(outside(to, &self.window.held()));
                }
            } else if self.arm() {
                return self.line.look(|heard| heard.failed.take())?.map_or(Ok(false), Err);
            }
        }
    }

    /// What lies at a place, copied: none where that would have to wait and shall not.
    pub fn read_at(
        &mut self,
        at: Bytes,
        buf: &mut [u8],
        ahead_max: Bytes,
        waits: bool,
    ) -> Result<Option<Piece>> {
        if buf.is_empty() {
            return Ok(Some(Piece::Data(0)));
        }
        loop {
            match self.copy(at, buf)? {
                (0, Some(Look::Gap { end })) => {
                    return Ok(Some(Piece::Gap { offset: at, len: end - at }));
                }
                (0, Some(Look::NotYet)) if at < self.window.offset() + ahead_max => {
                    if waits {
                        if !self.more()? {
                            return Ok(Some(Piece::End));
                        }
                    } else if self.arm() {
                        return self.line.look(|heard| heard.failed.take())?.map_or(Ok(None), Err);
                    }
                }
                (0, _) => return Err(outside(at, &self.window.held())),
                (done, _) => return Ok(Some(Piece::Data(done))),
            }
        }
    }

    /// Copies what is there from a place on: how much, and what stands behind it.
    fn copy(&mut self, at: Bytes, buf: &mut [u8]) -> Result<(usize, Option<Look<'static>>)> {
        let mut done = 0;
        while done < buf.len() {
            let place = at.checked_add(Bytes::new(done as u64)).unwrap_or(at);
            match self.window.look_at(place, buf.len() - done).map_err(garbled)? {
                Look::Data(bytes) => {
                    buf[done..done + bytes.len()].copy_from_slice(bytes);
                    done += bytes.len();
                }
                Look::Gap { end } => return Ok((done, Some(Look::Gap { end }))),
                Look::NotYet => return Ok((done, Some(Look::NotYet))),
                Look::Gone => return Ok((done, Some(Look::Gone))),
            }
        }
        Ok((done, None))
    }

    /// Waits until the program hears of more of the volume; false at its end.
    #[cold]
    fn more(&mut self) -> Result<bool> {
        let filled = self.window.held().end;
        loop {
            let ended = self.window.hear_all().map_err(garbled)?;
            if self.window.held().end > filled || ended {
                return Ok(!ended);
            }
            if !self.arm() {
                continue;
            }
            let before = self.line.look(|heard| heard.frames)?;
            // It may have come between.
            if !self.window.has_heard_all() {
                continue;
            }
            self.line.wait(|heard| {
                let failed = heard.failed.take();
                failed.map(Err).or((heard.frames > before).then_some(Ok(())))
            })??;
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

    pub fn seek(&mut self, to: Bytes) -> Result<Sought> {
        let (first, offset, sought) = self.line.seek(to)?;
        self.window.sought(first, offset);
        self.armed = None;
        Ok(sought)
    }

    pub fn pause(&self, span: Duration) -> Result<()> {
        self.line.send(connection::pause(span))
    }

    pub fn close(self) -> Result<()> {
        self.line.send(Head::Close)?;
        self.line.answer(|heard| heard.closed.then_some(()))
    }

    /// The next piece, where it is there.
    fn take(&mut self) -> Result<Option<Taken>> {
        let Some(piece) = self.window.take().map_err(garbled)? else { return Ok(None) };
        Ok(Some(match piece.kind {
            Kind::Data | Kind::Room => Taken::Bytes,
            Kind::End => Taken::End,
            Kind::Gap => {
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
            if self.arm() {
                return Ok(None);
            }
        }
    }

    /// Tells the daemon that this program waits; false where a piece has come meanwhile.
    fn arm(&mut self) -> bool {
        let heard = self.window.heard();
        if self.armed != Some(heard) {
            if !self.window.begin_to_wait() {
                return false;
            }
            self.armed = Some(heard);
            self.line.ring();
        }
        true
    }
}

fn garbled(garbled: window::Garbled) -> Error {
    Error::Garbled(garbled.to_string())
}

/// What is looked at in one piece is no longer than what the contract promises at once.
pub fn within(len: Bytes, at_once: Bytes) -> Result<()> {
    if len <= at_once {
        return Ok(());
    }
    let what = format!("{len} are more than the {at_once} that the contract gives at once");
    let next = "look at less, or take a contract with a larger burst";
    Err(Error::Problem(Box::new(Problem::new(Code::Invalid, what, next))))
}

/// A place that the window does not have.
pub fn outside(at: Bytes, held: &Range<Bytes>) -> Error {
    let (at, start, end) = (at.get(), held.start.get(), held.end.get());
    let what = format!("offset {at} is not in the window, which holds {start} to {end}");
    let next = "stay less than the burst ahead of the playout point, keep more behind it, or seek";
    Error::Problem(Box::new(Problem::new(Code::Invalid, what, next)))
}

impl Drop for SharedReader {
    fn drop(&mut self) {
        self.line.shut();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;
    use window::{Daemon, Memory, Mode, Rights};
    use wire::frame::HEAD_LEN;

    const BLOCK: u64 = 4096;

    /// A reader, the daemon's end of its window, and the daemon's end of its socket.
    fn reader() -> (SharedReader, Daemon, UnixStream) {
        let end = Daemon::create(Mode::Read, 64).unwrap();
        let data = Memory::create("test", 64 * BLOCK as usize, Rights::Read).unwrap();
        let fds = (end.fd().try_clone_to_owned(), data.fd().try_clone_to_owned());
        let window = window::Client::open(fds.0.unwrap(), fds.1.unwrap(), Bytes::ZERO).unwrap();
        let (line, socket) = line::pair();
        socket.set_nonblocking(true).unwrap();
        let line = Arc::new(line);
        (SharedReader { window, line, armed: None, copied: Vec::new() }, end, socket)
    }

    fn publish(end: &mut Daemon, number: u64) -> bool {
        let [place, offset, len] = [number % 64 * BLOCK, number * BLOCK, BLOCK].map(Bytes::new);
        let news = end.publish(window::Piece { kind: Kind::Data, place, offset, len });
        assert!(!end.ring_at_next(), "it cannot have passed what it was not told of");
        news
    }

    /// The frames that the program has sent, all of which are bells.
    fn bells(socket: &mut UnixStream) -> usize {
        let mut bytes = vec![0; 1 << 16];
        let read = socket.read(&mut bytes).unwrap_or(0);
        let frames = bytes[..read].chunks_exact(HEAD_LEN);
        frames.map(|bytes| assert_eq!(bytes, Head::Bell.encode(0))).count()
    }

    #[test]
    fn what_is_in_the_window_costs_one_bell_a_block_and_no_other_word() {
        let (mut reader, mut end, mut socket) = reader();
        for round in 0..10 {
            (0..32).for_each(|number| assert!(!publish(&mut end, round * 32 + number)));
            let mut buf = [0; 100];
            for _ in 0..32 * BLOCK / 128 {
                // By copy and in place, in steps that meet no block's end or both.
                assert_eq!(reader.next_piece(&mut buf).unwrap(), Piece::Data(100));
                let mut left = 28;
                while left > 0 {
                    let Peek::Data(seen) = reader.peek(left).unwrap() else { panic!("no data") };
                    let len = seen.len();
                    reader.advance(len);
                    left -= len;
                }
            }
            // One for the first mark; the daemon, which is asleep here, has set no other.
            assert_eq!(bells(&mut socket), 1);
            assert_eq!(end.further().unwrap().bytes.get(), 32 * BLOCK);
            assert!(!end.ring_at_next(), "nothing is with the program");
        }
    }

    #[test]
    fn a_daemon_that_listens_hears_one_bell_for_each_block() {
        let (mut reader, mut end, mut socket) = reader();
        (0..64).for_each(|number| assert!(!publish(&mut end, number)));
        let mut heard = 0;
        for _ in 0..64 * BLOCK / 64 {
            assert_eq!(reader.next_piece(&mut [0; 64]).unwrap(), Piece::Data(64));
            let now = bells(&mut socket);
            if now > 0 {
                assert_eq!(end.further().unwrap().bytes.get(), BLOCK);
                let _ = end.ring_at_next();
            }
            heard += now;
        }
        assert_eq!(heard, 64);
    }

    #[test]
    fn who_finds_nothing_says_once_that_it_waits_and_sees_what_comes() {
        let (mut reader, mut end, mut socket) = reader();
        for number in 0..100 {
            for _ in 0..5 {
                assert_eq!(reader.try_peek(1).unwrap(), None);
            }
            assert_eq!(bells(&mut socket), 1, "however often it looks");
            assert!(end.begins_to_wait() && !end.begins_to_wait());
            assert!(publish(&mut end, number), "news are due");
            socket.write_all(&Head::News.encode(0)).unwrap();
            assert!(matches!(reader.try_peek(1), Ok(Some(Peek::Data(_)))));
            reader.advance(BLOCK as usize);
            bells(&mut socket);
            assert_eq!(end.further().unwrap().bytes.get(), BLOCK);
        }
    }

    #[test]
    fn what_the_daemon_says_last_is_why_it_is_over_also_later() {
        let (mut reader, _end, mut socket) = reader();
        let head = Head::Failed { tag: 0, code: wire::Code::ShuttingDown };
        let text = b"it stops\nstart it again";
        socket.write_all(&head.encode(text.len())).unwrap();
        socket.write_all(text).unwrap();
        drop(socket);
        for _ in 0..3 {
            let error = reader.peek(1).unwrap_err();
            assert_eq!(error.code(), Some(wire::Code::ShuttingDown), "{error}");
        }
        assert_eq!(reader.seek(Bytes::ZERO).unwrap_err().code(), Some(wire::Code::ShuttingDown));
    }
}
