//! A writer whose bytes are carried over the socket, where a window cannot be shared.
//!
//! Invariants: at most `WRITES_MAX` frames are unanswered; a failure is reported
//! to the caller before anything that was written behind it can be taken for
//! accepted; a durable offset never goes back.

use crate::forks::Maker;
use crate::patience::answer_within;
use crate::{Error, Result, connection, interrupt};
use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Instant;
use units::{Bytes, Duration};
use wire::frame::{BODY_MAX, Head, VERSION, WRITES_MAX};

/// How much room is given at once.
const ROOM: usize = 256 << 10;

/// See the module.
#[derive(Debug)]
pub struct CarriedWriter {
    maker: Maker,
    connection: UnixStream,
    /// Filled up to `filled`, and not sent yet.
    room: Vec<u8>,
    filled: usize,
    /// Syncs that were asked for.
    syncs: u64,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    news: Condvar,
}

#[derive(Debug)]
struct State {
    /// Frames of any kind that have come.
    frames: u64,
    /// `Write` frames without an answer.
    unanswered: usize,
    accepted: Bytes,
    durable: Bytes,
    /// Answers to `Sync` so far.
    syncs: u64,
    closed: bool,
    /// The answer to `Seek`.
    sought: Option<Result<()>>,
    /// What stopped a write, and whether the caller knows.
    failed: Option<(Error, bool)>,
    /// Why no more answers come.
    over: Option<Error>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no thread panics while it holds the state")
    }

    /// Waits until `done`, or until no more answers come.
    fn wait(&self, mut done: impl FnMut(&State) -> bool) -> Result<MutexGuard<'_, State>> {
        let mut state = self.state();
        while !done(&state) {
            if let Some(error) = &state.over {
                return Err(error.again());
            }
            state = interrupt::news(&self.news, state, None)?;
        }
        Ok(state)
    }

    /// The same for an answer: something of the daemon comes within [`answer_within`], again and
    /// again until `done`, or no more answers are taken.
    fn answered(&self, mut done: impl FnMut(&State) -> bool) -> Result<MutexGuard<'_, State>> {
        let mut state = self.state();
        let mut heard = None;
        let mut until = None;
        while !done(&state) {
            if let Some(error) = &state.over {
                return Err(error.again());
            }
            if heard != Some(state.frames) {
                (heard, until) = (Some(state.frames), Instant::now().checked_add(answer_within()));
            }
            match interrupt::news(&self.news, state, until) {
                Ok(again) => state = again,
                Err(error) => {
                    let over = match &error {
                        Error::Interrupted => interrupt::cut_off(),
                        late => late.again(),
                    };
                    self.state().over.get_or_insert(over);
                    return Err(error);
                }
            }
        }
        Ok(state)
    }

    fn take(&self, head: Head, body: &[u8]) -> Result<()> {
        let mut state = self.state();
        state.frames += 1;
        match head {
            Head::Accepted { upto } if state.unanswered > 0 => {
                state.accepted = upto;
                state.unanswered -= 1;
            }
            Head::Durable { upto } => state.durable = state.durable.max(upto),
            Head::Synced { upto } => {
                state.durable = state.durable.max(upto);
                state.syncs += 1;
            }
            Head::Closed { upto } => {
                state.durable = state.durable.max(upto);
                state.closed = true;
            }
            Head::Sought { offset, .. } => {
                (state.accepted, state.durable) = (offset, offset);
                state.failed = None;
                state.sought = Some(Ok(()));
            }
            // A seek that failed has changed nothing.
            Head::Failed { tag, .. } if tag != 0 => {
                state.sought = Some(Err(connection::error_in(head, body)));
            }
            Head::Failed { .. } => {
                let error = connection::error_in(head, body);
                state.failed.get_or_insert((error, false));
            }
            other => return Err(connection::error_in(other, body)),
        }
        self.news.notify_all();
        Ok(())
    }

    /// No more answers come; those who wait are told why.
    fn end(&self, result: Result<()>) {
        let mut state = self.state();
        // What the daemon said last is the reason, where it said something.
        let said = state.failed.as_ref().map(|(error, _)| error.again());
        let broken = || Error::Broken(io::ErrorKind::UnexpectedEof.into());
        state.over = Some(said.or(result.err()).unwrap_or_else(broken));
        self.news.notify_all();
    }
}

impl CarriedWriter {
    pub fn attach(socket: &Path, stream: u64) -> Result<Self> {
        let hello = Head::HelloStream { version: VERSION, stream };
        let (connection, welcome) = connection::attach(socket, hello, &[])?;
        let Head::Welcome { offset, .. } = welcome else { unreachable!("attach gives a welcome") };
        let state = State {
            frames: 0,
            unanswered: 0,
            accepted: offset,
            durable: offset,
            syncs: 0,
            closed: false,
            sought: None,
            failed: None,
            over: None,
        };
        let shared = Arc::new(Shared { state: Mutex::new(state), news: Condvar::new() });
        let mut incoming = connection.try_clone()?;
        let sharing = Arc::clone(&shared);
        let receive = move || {
            let result =
                connection::take_all(&mut incoming, |head, body| sharing.take(head, &body));
            sharing.end(result);
        };
        // It ends with the connection, which the daemon ends.
        std::thread::Builder::new().name("slackline-writer".into()).spawn(receive)?;
        Ok(Self { maker: Maker::this(), connection, room: Vec::new(), filled: 0, syncs: 0, shared })
    }

    /// The volume offset behind the last byte that the daemon has accepted.
    pub fn accepted(&self) -> Bytes {
        self.shared.state().accepted
    }

    /// Everything before this volume offset survives a crash. Does not wait.
    pub fn durable(&self) -> Bytes {
        self.shared.state().durable
    }

    /// For another thread, to follow how far the bytes are durable.
    pub fn durability(&self) -> CarriedDurability {
        CarriedDurability(Arc::clone(&self.shared))
    }

    /// Puts everything written so far on the medium; gives the volume offset up
    /// to which everything is there. A failed write that the caller does not
    /// know of yet is reported here; the next sync goes through, and writing may
    /// go on from [`Self::accepted`].
    pub fn sync(&mut self) -> Result<Bytes> {
        let asked = self.begin_sync()?;
        let mut state = self.answer(|state| state.syncs >= asked)?;
        state.failed = None;
        Ok(state.durable)
    }

    /// Asks for a sync; gives how many answers there are when it is answered. Before that all writes are
    /// answered: the daemon would take those that follow a failed one in its place.
    pub fn begin_sync(&mut self) -> Result<u64> {
        self.send_room()?;
        self.answered()?;
        self.send(Head::Sync, &[])?;
        self.syncs += 1;
        Ok(self.syncs)
    }

    /// Whether the stream goes on, without waiting.
    pub fn check(&self) -> Result<()> {
        self.shared.state().over.as_ref().map_or(Ok(()), |over| Err(over.again()))
    }

    /// Goes on at another place, when all that was written is on the medium.
    pub fn seek(&mut self, to: Bytes) -> Result<()> {
        let seek = connection::asked(Head::Seek { tag: 1, offset: to })?;
        self.send_room()?;
        self.answered()?;
        self.shared.state().sought = None;
        self.send(seek, &[])?;
        let answer = self.answer(|state| state.sought.is_some())?.sought.take();
        answer.expect("waited for")
    }

    pub fn pause(&mut self, span: Duration) -> Result<()> {
        self.send(connection::pause(span), &[])
    }

    /// Closes the stream, synced; gives the volume offset up to which everything
    /// is on the medium. A failed write that the caller does not know of yet is
    /// reported here, and the stream is closed all the same.
    pub fn close(mut self) -> Result<Bytes> {
        let answered = self.send_room().and_then(|()| self.answered());
        self.send(Head::Close, &[])?;
        let durable = self.answer(|state| state.closed)?.durable;
        answered.map(|()| durable)
    }

    /// Waits for an answer ([`Shared::answered`]). Where none comes the connection ends: nothing more
    /// goes into it.
    fn answer(&self, done: impl FnMut(&State) -> bool) -> Result<MutexGuard<'_, State>> {
        let answer = self.shared.answered(done);
        if answer.as_ref().is_err_and(Error::ends_the_wait) {
            // An error means that the daemon has gone already.
            let _ = self.connection.shutdown(Shutdown::Both);
        }
        answer
    }

    /// Waits until all writes are answered; reports a failure that is not known.
    fn answered(&self) -> Result<()> {
        let mut state = self.answer(|state| state.unanswered == 0)?;
        match &mut state.failed {
            Some((error, known)) if !*known => {
                *known = true;
                Err(error.again())
            }
            _ => Ok(()),
        }
    }

    /// The failure, once [`Self::accepted`] says how much went through.
    fn failed(&self) -> Result<Error> {
        let mut state = self.answer(|state| state.unanswered == 0)?;
        let (error, known) = state.failed.as_mut().expect("only a sync forgets a failure");
        *known = true;
        Ok(error.again())
    }

    fn send(&mut self, head: Head, body: &[u8]) -> Result<()> {
        self.maker.check()?;
        connection::send(&self.connection, head, body).map_err(|error| {
            // The daemon may have said why before it went: its word is better than EPIPE.
            match self.answer(|_| false) {
                Err(said) => said,
                Ok(_) => error.into(),
            }
        })
    }
}

impl CarriedWriter {
    /// Waits where the caller is faster than its contract and the window is full.
    pub fn write(&mut self, buf: &[u8]) -> Result<usize> {
        self.send_room()?;
        self.send_piece(buf)
    }

    /// Room to fill, which is sent when there is none left of it.
    pub fn room(&mut self, len_max: usize) -> Result<&mut [u8]> {
        if self.filled == self.room.len() {
            self.send_room()?;
            self.room.resize(ROOM, 0);
        }
        let end = self.room.len().min(self.filled.saturating_add(len_max));
        Ok(&mut self.room[self.filled..end])
    }

    pub fn filled(&mut self, len: usize) {
        assert!(len <= self.room.len() - self.filled, "more than there was room for");
        self.filled += len;
    }

    /// Sends what was filled.
    fn send_room(&mut self) -> Result<()> {
        let room = std::mem::take(&mut self.room);
        let filled = std::mem::take(&mut self.filled);
        let sent = self.send_piece(&room[..filled]).map(drop);
        self.room = room;
        self.room.clear();
        sent
    }

    fn send_piece(&mut self, buf: &[u8]) -> Result<usize> {
        if buf.is_empty() {
            return Ok(0);
        }
        let piece = &buf[..buf.len().min(BODY_MAX)];
        {
            let done = |state: &State| state.failed.is_some() || state.unanswered < WRITES_MAX;
            let mut state = self.shared.wait(done)?;
            if state.failed.is_some() {
                drop(state);
                return Err(self.failed()?);
            }
            state.unanswered += 1;
        }
        self.send(Head::Write, piece)?;
        Ok(piece.len())
    }

    /// Waits until the daemon has accepted everything; not yet durable.
    pub fn flush(&mut self) -> Result<()> {
        self.send_room()?;
        self.answered()
    }
}

impl Drop for CarriedWriter {
    fn drop(&mut self) {
        if !self.maker.is_here() {
            return;
        }
        // An error means that the daemon has gone already, and the bytes with it.
        let _ = self.send_room();
        // The daemon has not looked at all that was sent: its answers are taken until it has, and ends
        // the connection.
        let _ = self.connection.shutdown(Shutdown::Write);
    }
}

impl AsFd for CarriedWriter {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.connection.as_fd()
    }
}

/// Follows how far a writer's bytes are durable.
#[derive(Clone, Debug)]
pub struct CarriedDurability(Arc<Shared>);

impl CarriedDurability {
    /// Waits until more than `beyond` is durable; gives how far. None when the
    /// writer has ended and nothing more will be.
    pub fn wait(&self, beyond: Bytes) -> Option<Bytes> {
        self.0.wait(|state| state.durable > beyond).ok().map(|state| state.durable)
    }
}
