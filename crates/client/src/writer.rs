//! A writer under contract.
//!
//! Invariants: at most `WRITES_MAX` frames are unanswered; a failure is reported
//! to the caller before anything that was written behind it can be taken for
//! accepted; a durable offset never goes back.

use crate::{Error, Result, connection};
use std::io::{self, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use units::Bytes;
use wire::frame::{BODY_MAX, Head, VERSION, WRITES_MAX};

/// A volume that is written under contract.
///
/// [`Write::write`] returns when the bytes are on their way to the window;
/// [`Write::flush`] when the daemon has accepted them; [`Writer::sync`] when
/// they are on the medium. Dropping it closes the stream, synced, without
/// waiting for that.
#[derive(Debug)]
pub struct Writer {
    connection: UnixStream,
    stream: u64,
    shared: Arc<Shared>,
    receiver: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    news: Condvar,
}

#[derive(Debug)]
struct State {
    /// `Write` frames without an answer.
    unanswered: usize,
    accepted: Bytes,
    durable: Bytes,
    /// Answers to `Sync` so far.
    syncs: u64,
    closed: bool,
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
            state = self.news.wait(state).expect("no thread panics while it holds the state");
        }
        Ok(state)
    }

    fn take(&self, head: Head, body: &[u8]) -> Result<()> {
        let mut state = self.state();
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

impl Writer {
    pub(crate) fn attach(socket: &Path, stream: u64) -> Result<Self> {
        let hello = Head::HelloStream { version: VERSION, stream };
        let (connection, welcome) = connection::attach(socket, hello, &[])?;
        let Head::Welcome { offset, .. } = welcome else { unreachable!("attach gives a welcome") };
        let state = State {
            unanswered: 0,
            accepted: offset,
            durable: offset,
            syncs: 0,
            closed: false,
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
        let receiver =
            std::thread::Builder::new().name("slackline-writer".into()).spawn(receive)?;
        Ok(Self { connection, stream, shared, receiver: Some(receiver) })
    }

    /// The number of the stream.
    pub fn stream(&self) -> u64 {
        self.stream
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
    pub fn durability(&self) -> Durability {
        Durability(Arc::clone(&self.shared))
    }

    /// Puts everything written so far on the medium; gives the volume offset up
    /// to which everything is there. A failed write that the caller does not
    /// know of yet is reported here; the next sync goes through, and writing may
    /// go on from [`Writer::accepted`].
    pub fn sync(&mut self) -> Result<Bytes> {
        self.answered()?;
        let before = self.shared.state().syncs;
        self.send(Head::Sync, &[])?;
        let mut state = self.shared.wait(|state| state.syncs > before)?;
        state.failed = None;
        Ok(state.durable)
    }

    /// Closes the stream, synced; gives the volume offset up to which everything
    /// is on the medium. A failed write that the caller does not know of yet is
    /// reported here, and the stream is closed all the same.
    pub fn close(mut self) -> Result<Bytes> {
        let answered = self.answered();
        self.send(Head::Close, &[])?;
        let durable = self.shared.wait(|state| state.closed)?.durable;
        answered.map(|()| durable)
    }

    /// Waits until all writes are answered; reports a failure that is not known.
    fn answered(&self) -> Result<()> {
        let mut state = self.shared.wait(|state| state.unanswered == 0)?;
        match &mut state.failed {
            Some((error, known)) if !*known => {
                *known = true;
                Err(error.again())
            }
            _ => Ok(()),
        }
    }

    /// The failure, once [`Writer::accepted`] says how much went through.
    fn failed(&self) -> Result<Error> {
        let mut state = self.shared.wait(|state| state.unanswered == 0)?;
        let (error, known) = state.failed.as_mut().expect("only a sync forgets a failure");
        *known = true;
        Ok(error.again())
    }

    fn send(&mut self, head: Head, body: &[u8]) -> Result<()> {
        connection::send(&mut self.connection, head, body).map_err(|error| {
            // The daemon may have said why before it went: its word is better than EPIPE.
            match self.shared.wait(|_| false) {
                Err(said) => said,
                Ok(_) => error.into(),
            }
        })
    }
}

impl Write for Writer {
    /// Waits where the caller is faster than its contract and the window is full.
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        if buf.is_empty() {
            return Ok(0);
        }
        let piece = &buf[..buf.len().min(BODY_MAX)];
        {
            let done = |state: &State| state.failed.is_some() || state.unanswered < WRITES_MAX;
            let mut state = self.shared.wait(done)?;
            if state.failed.is_some() {
                drop(state);
                return Err(self.failed()?.into());
            }
            state.unanswered += 1;
        }
        self.send(Head::Write, piece)?;
        Ok(piece.len())
    }

    /// Waits until the daemon has accepted everything; not yet durable.
    fn flush(&mut self) -> io::Result<()> {
        Ok(self.answered()?)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // An error means that the daemon has gone already.
        let _ = self.connection.shutdown(Shutdown::Both);
        if let Some(receiver) = self.receiver.take() {
            let _ = receiver.join();
        }
    }
}

/// Follows how far a writer's bytes are durable.
#[derive(Clone, Debug)]
pub struct Durability(Arc<Shared>);

impl Durability {
    /// Waits until more than `beyond` is durable; gives how far. None when the
    /// writer has ended and nothing more will be.
    pub fn wait(&self, beyond: Bytes) -> Option<Bytes> {
        self.0.wait(|state| state.durable > beyond).ok().map(|state| state.durable)
    }
}
