//! The socket beside a shared window: bells and requests out, news and answers in.
//!
//! Any thread of the program may wait for its own thing; one of those who wait reads
//! the socket, and tells the others. Nobody reads it while nobody waits, so that a
//! program sees by `poll(2)` whether there is news.
//!
//! Invariant: what the daemon said last is the reason why the line is over, where it
//! said something.

use crate::forks::Maker;
use crate::patience::answer_within;
use crate::{Error, Result, Sought, connection, interrupt};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendFlags};
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Instant;
use units::{Bytes, Duration};
use wire::frame::{Decoder, HEAD_LEN, Head, VERSION};

/// What the daemon has said.
#[derive(Debug, Default)]
pub struct Heard {
    /// Frames of any kind.
    pub frames: u64,
    /// Answers to `Sync`, and how far the last said that everything is on the medium.
    pub syncs: u64,
    pub durable: Bytes,
    /// The answer to `Close`.
    pub closed: bool,
    /// The answer to `Seek`: the first piece that counts, where, and how soon.
    pub sought: Option<(u64, Bytes, Sought)>,
    /// Of a reader: what was said before that of its contract.
    pub steady: Duration,
    /// Why the seek that was asked for is not done.
    pub refused: Option<Error>,
    /// What else went wrong, until somebody was told.
    pub failed: Option<Error>,
    /// The same, where nothing was said since.
    last_word: Option<Error>,
}

#[derive(Debug)]
struct State {
    heard: Heard,
    /// The part of a frame that has come; none while a thread reads.
    decoder: Option<Box<Decoding>>,
    /// Why nothing more comes.
    over: Option<Error>,
}

/// A decoder, which has nothing to show.
#[derive(Default)]
struct Decoding(Decoder);

impl std::fmt::Debug for Decoding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Decoding")
    }
}

/// See the module.
#[derive(Debug)]
pub struct Line {
    socket: UnixStream,
    maker: Maker,
    state: Mutex<State>,
    news: Condvar,
}

/// How long the socket is waited for.
#[derive(Clone, Copy, Debug)]
enum Wait {
    No,
    /// Without end, where no time is said.
    Until(Option<Instant>),
}

impl Wait {
    /// Whether the call goes on that a signal has interrupted.
    fn asked(self) -> Result<()> {
        match self {
            Self::No => Ok(()),
            Self::Until(_) => interrupt::asked(),
        }
    }
}

/// A line, where its stream starts, and the two pieces of memory of its window.
pub struct Attached {
    pub line: Line,
    pub start: Bytes,
    pub control: OwnedFd,
    pub data: OwnedFd,
}

impl Line {
    /// Connects to the data socket for a stream whose window is shared.
    pub fn attach(socket: &Path, stream: u64) -> Result<Attached> {
        let hello = Head::HelloWindow { version: VERSION, stream };
        let mut connection = connection::connect(socket)?;
        // A daemon that has no place for the connection says so before it hears anything.
        let sent = connection::send(&connection, hello, &[]);
        let mut fds = Vec::new();
        let (head, len) = receive_with(&connection, &mut fds)
            .map_err(|error| sent.err().map_or(error, Error::from))?;
        let Head::Welcome { offset: start, .. } = head else {
            return Err(connection::unexpected(&mut connection, head, len));
        };
        connection::wait_without_end(&connection)?;
        let mut fds = fds.into_iter();
        let (Some(control), Some(data)) = (fds.next(), fds.next()) else {
            return Err(Error::Garbled("a welcome without the window".into()));
        };
        Ok(Attached { line: Self::over(connection), start, control, data })
    }

    fn over(socket: UnixStream) -> Self {
        let decoder = Some(Box::default());
        let state = State { heard: Heard::default(), decoder, over: None };
        Self { socket, maker: Maker::this(), state: Mutex::new(state), news: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no thread panics while it holds the state")
    }

    /// Sends a frame. A daemon that has gone may have said why: whoever waits hears it.
    pub fn send(&self, head: Head) -> Result<()> {
        self.maker.check()?;
        let frame = head.encode(0);
        let mut sent = 0;
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        while sent < frame.len() {
            match rustix::net::send(&self.socket, &frame[sent..], flags) {
                Ok(n) => sent += n,
                Err(Errno::INTR) => {}
                // The daemon looks at the window after each of the frames that fill the
                // socket: one bell more says nothing.
                Err(Errno::AGAIN) if sent == 0 && matches!(head, Head::Bell) => return Ok(()),
                Err(Errno::AGAIN) => self.poll_out(sent > 0)?,
                Err(error) => return Err(self.reason(Error::Broken(error.into()))),
            }
        }
        Ok(())
    }

    /// Sends a bell. Where that fails the daemon has gone, which whoever waits hears.
    pub fn ring(&self) {
        let _ = self.send(Head::Bell);
    }

    /// Why the line is over; `otherwise` where nobody has said.
    fn reason(&self, otherwise: Error) -> Error {
        match self.answer(|_| None::<()>) {
            Err(said) => said,
            Ok(()) => otherwise,
        }
    }

    /// The reason why nothing more comes, which the daemon has announced.
    pub fn why_over(&self) -> Error {
        self.reason(Error::Broken(io::ErrorKind::UnexpectedEof.into()))
    }

    /// Waits until `done` has what it wants, or until nothing more comes. It is asked
    /// again whenever something was heard.
    pub fn wait<T>(&self, done: impl FnMut(&mut Heard) -> Option<T>) -> Result<T> {
        self.wait_within(None, done)
    }

    /// The same for an answer: something of the daemon comes within [`answer_within`], again and again
    /// until `done` has what it wants. The line is over where nothing comes, or a signal ends the wait:
    /// what comes on it later may be that answer.
    pub fn answer<T>(&self, done: impl FnMut(&mut Heard) -> Option<T>) -> Result<T> {
        match self.wait_within(Some(answer_within()), done) {
            Err(error) if error.ends_the_wait() => Err(self.end(error)),
            answer => answer,
        }
    }

    /// The line is over for this reason, which is told.
    fn end(&self, reason: Error) -> Error {
        let over = match &reason {
            Error::Interrupted => interrupt::cut_off(),
            late => late.again(),
        };
        self.state().over.get_or_insert(over);
        self.news.notify_all();
        self.shut();
        reason
    }

    fn wait_within<T>(
        &self,
        within: Option<std::time::Duration>,
        mut done: impl FnMut(&mut Heard) -> Option<T>,
    ) -> Result<T> {
        let mut state = self.state();
        let (mut frames, mut until) = (None, None);
        loop {
            if let Some(wanted) = done(&mut state.heard) {
                return Ok(wanted);
            }
            if let Some(over) = &state.over {
                return Err(over.again());
            }
            if let (Some(within), true) = (within, frames != Some(state.heard.frames)) {
                frames = Some(state.heard.frames);
                until = Instant::now().checked_add(within);
            }
            match state.decoder.take() {
                None => state = interrupt::news(&self.news, state, until)?,
                Some(decoder) => {
                    drop(state);
                    let received;
                    (state, received) = self.receive(decoder, Wait::Until(until));
                    received?;
                }
            }
        }
    }

    /// Asks to go on at `to` and waits for the answer: the first piece that counts from then on,
    /// where it lies, and how soon it is there.
    pub fn seek(&self, to: Bytes) -> Result<(u64, Bytes, Sought)> {
        self.begin_seek(to)?;
        self.answer(Heard::sought)?
    }

    /// Asks to go on at `to`; [`Heard::sought`] has the answer.
    pub fn begin_seek(&self, to: Bytes) -> Result<()> {
        let seek = connection::asked(Head::Seek { tag: 1, offset: to })?;
        self.look(|heard| (heard.sought, heard.refused) = (None, None))?;
        self.send(seek)
    }

    /// Takes what has come already, without waiting; what the line has heard so far.
    pub fn look<T>(&self, take: impl FnOnce(&mut Heard) -> T) -> Result<T> {
        let mut state = self.drain();
        match &state.over {
            Some(over) if state.heard.failed.is_none() => Err(over.again()),
            _ => Ok(take(&mut state.heard)),
        }
    }

    /// As [`Self::wait`], and none where that would have to wait.
    pub fn try_wait<T>(&self, done: impl FnOnce(&mut Heard) -> Option<T>) -> Result<Option<T>> {
        let mut state = self.drain();
        match (done(&mut state.heard), &state.over) {
            (None, Some(over)) => Err(over.again()),
            (wanted, _) => Ok(wanted),
        }
    }

    /// Takes what has come already.
    fn drain(&self) -> MutexGuard<'_, State> {
        let mut state = self.state();
        while state.over.is_none()
            && self.maker.is_here()
            && let Some(decoder) = state.decoder.take()
        {
            drop(state);
            let received;
            (state, received) = self.receive(decoder, Wait::No);
            if !matches!(received, Ok(true)) {
                break;
            }
        }
        state
    }

    /// Reads the socket once; false where nothing came without waiting, and an error where the wait has
    /// ended, which is none of the line's.
    fn receive(
        &self,
        mut decoder: Box<Decoding>,
        wait: Wait,
    ) -> (MutexGuard<'_, State>, Result<bool>) {
        let flags = match wait {
            Wait::Until(None) => RecvFlags::empty(),
            _ => RecvFlags::DONTWAIT,
        };
        let broken = |kind: io::ErrorKind| Err(Error::Broken(kind.into()));
        let mut received = Ok(true);
        let heard = loop {
            match rustix::net::recv(&self.socket, decoder.0.want(), flags) {
                Ok((0, _)) => break broken(io::ErrorKind::UnexpectedEof),
                Ok((read, _)) => {
                    let filled = decoder.0.filled(read);
                    break filled.map_err(|error| Error::Garbled(error.to_string()));
                }
                Err(Errno::INTR) => received = wait.asked().map(|()| true),
                Err(Errno::AGAIN) => match wait {
                    Wait::No => received = Ok(false),
                    Wait::Until(until) => {
                        received = self.poll(PollFlags::IN, until).map(|()| true);
                    }
                },
                Err(error) => break Err(Error::Broken(error.into())),
            }
            if !matches!(received, Ok(true)) {
                break Ok(None);
            }
        };
        let mut state = self.state();
        match heard.and_then(|frame| match frame {
            Some((head, body)) => state.heard.take(head, &body),
            None => Ok(()),
        }) {
            Ok(()) => {}
            Err(error) => {
                let said = state.heard.last_word.take();
                state.over = Some(said.unwrap_or(error));
            }
        }
        state.decoder = Some(decoder);
        self.news.notify_all();
        (state, received)
    }

    /// How far the daemon has said that everything is on the medium.
    pub fn durable(&self) -> Bytes {
        self.state().heard.durable
    }

    /// Waits until the daemon takes more of a frame, of which a part may have gone.
    fn poll_out(&self, is_begun: bool) -> Result<()> {
        let until = Instant::now().checked_add(answer_within());
        match self.poll(PollFlags::OUT, until) {
            // No other frame goes behind a part of one.
            Err(error) if is_begun => Err(self.end(error)),
            polled => polled,
        }
    }

    /// Waits for the socket, but not beyond `until`. Whoever polls looks again.
    fn poll(&self, flags: PollFlags, until: Option<Instant>) -> Result<()> {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        // What is longer than the system's times is waited for without end.
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        match rustix::event::poll(&mut [PollFd::new(&self.socket, flags)], left.as_ref()) {
            Ok(0) => Err(interrupt::late()),
            Err(Errno::INTR) => interrupt::asked(),
            _ => Ok(()),
        }
    }

    /// Ends the connection, for every thread that has this line.
    pub fn shut(&self) {
        if !self.maker.is_here() {
            return;
        }
        // An error means that the daemon has gone already.
        let _ = self.socket.shutdown(Shutdown::Both);
    }
}

impl AsFd for Line {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Heard {
    /// The answer to a seek, if it has come.
    pub fn sought(&mut self) -> Option<Result<(u64, Bytes, Sought)>> {
        match (self.sought.take(), self.refused.take()) {
            (Some(sought), _) => Some(Ok(sought)),
            (None, refused) => refused.map(Err),
        }
    }

    fn take(&mut self, head: Head, body: &[u8]) -> Result<()> {
        self.frames += 1;
        self.last_word = None;
        match head {
            Head::News => {}
            Head::Durable { upto } => self.durable = self.durable.max(upto),
            Head::Synced { upto } => {
                self.durable = self.durable.max(upto);
                self.syncs += 1;
            }
            Head::Closed { upto } => {
                self.durable = self.durable.max(upto);
                self.closed = true;
            }
            Head::Steady { after } => self.steady = after,
            Head::Sought { first, offset, ready } => {
                // Of a writer: what is durable is counted from there on.
                self.durable = offset;
                let steady = std::mem::take(&mut self.steady);
                self.sought = Some((first, offset, Sought { ready, steady }));
            }
            Head::Failed { tag, .. } => {
                let error = connection::error_in(head, body);
                self.last_word = Some(error.again());
                // Only a seek has a tag.
                let of = if tag == 0 { &mut self.failed } else { &mut self.refused };
                *of = Some(error);
            }
            other => return Err(connection::error_in(other, body)),
        }
        Ok(())
    }
}

/// A line to a test that plays the daemon, and the test's end of it.
#[cfg(test)]
pub fn pair() -> (Line, UnixStream) {
    let (ours, theirs) = UnixStream::pair().expect("a pair of sockets");
    (Line::over(ours), theirs)
}

/// The first head, with the descriptors that come with it.
fn receive_with(connection: &UnixStream, fds: &mut Vec<OwnedFd>) -> Result<(Head, usize)> {
    let mut bytes = [0; HEAD_LEN];
    let mut have = 0;
    while have < HEAD_LEN {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut room = [IoSliceMut::new(&mut bytes[have..])];
        let flags = RecvFlags::CMSG_CLOEXEC;
        let got = match rustix::net::recvmsg(connection, &mut room, &mut control, flags) {
            Err(Errno::INTR) if have == 0 => {
                interrupt::asked()?;
                continue;
            }
            Err(Errno::INTR) => continue,
            got => got.map_err(|error| Error::Broken(error.into()))?,
        };
        if got.bytes == 0 || got.flags.contains(ReturnFlags::CTRUNC) {
            return Err(Error::Broken(io::ErrorKind::UnexpectedEof.into()));
        }
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(rights) = message {
                fds.extend(rights);
            }
        }
        have += got.bytes;
    }
    Head::decode(&bytes).map_err(|error| Error::Garbled(error.to_string()))
}
