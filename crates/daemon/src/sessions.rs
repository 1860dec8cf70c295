//! Which streams are open through this daemon, and which connection carries the
//! bytes of each.
//!
//! Invariants: a stream that was opened here is closed here exactly once: by its
//! data connection when that ends, by request, or because no connection came in
//! time. At most one connection carries a stream.

use crate::limits::ATTACH_WITHIN;
use crate::lock::{Mutex, MutexGuard};
use crate::people::Peer;
use crate::pool::Ask;
use crate::shared::Shared;
use node::{Error, HandleId, Mode, StreamId, calls};
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::watch;
use units::Bytes;

/// Why a data connection is asked to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// It is not.
    No,
    /// Its stream was closed by request.
    Closed,
    /// Its handle's contract was ended by request.
    HandleEnded,
    /// The daemon stops.
    ShuttingDown,
}

/// One stream as its connection needs it.
#[derive(Clone, Debug)]
pub struct Opened {
    /// Its number.
    pub stream: StreamId,
    /// Which way.
    pub mode: Mode,
    /// The volume that it is open on.
    pub volume: String,
    /// The playout point that it starts from.
    pub start: Bytes,
    /// Whose program opened it.
    pub owner: Peer,
    /// Its program loses nothing while it is slowed.
    pub buffered: bool,
    /// Its program makes the volume larger, up to this; 0: it does not.
    pub grows_to: Bytes,
    /// The window, where its program can map it.
    pub shared: Option<Arc<Shared>>,
}

struct Session {
    opened: Opened,
    attached: bool,
    stop: watch::Sender<Stop>,
    closed: watch::Sender<Option<Closed>>,
}

/// How a stream was closed. Writers: the volume offset up to which everything
/// is on the medium.
type Closed = Result<Option<Bytes>, Error>;

/// Why a connection may not carry a stream.
#[derive(Debug, PartialEq, Eq)]
pub enum AttachError {
    /// There is no such stream.
    NoSuchStream,
    /// Another connection carries it.
    Attached,
}

/// All sessions of the daemon.
pub struct Sessions {
    ask: Ask,
    open: Mutex<HashMap<StreamId, Session>>,
    /// Owners of streams that the pool has not closed yet.
    closing: Mutex<HashMap<StreamId, Peer>>,
    /// Tells connections without a session to end.
    stop: watch::Sender<Stop>,
    /// The same for each connection that has a contract of its own.
    handles: Mutex<HashMap<HandleId, watch::Sender<Stop>>>,
}

/// The tie of a connection to its stream: the stream is closed when it ends,
/// however it ends.
pub struct Attached {
    stream: StreamId,
    opened: Option<Opened>,
    /// Tells when to end.
    pub stop: watch::Receiver<Stop>,
    sessions: Arc<Sessions>,
    finished: bool,
}

impl Attached {
    /// Closes the stream; a writer is synced first.
    pub async fn finish(mut self) -> Closed {
        self.finished = true;
        self.sessions.finish(self.stream).await
    }

    /// The stream, once.
    pub fn take_opened(&mut self) -> Opened {
        self.opened.take().expect("taken once")
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        if !self.finished {
            let (sessions, stream) = (Arc::clone(&self.sessions), self.stream);
            tokio::spawn(async move { sessions.finish(stream).await });
        }
    }
}

/// A stream that the pool is asked to close, while anybody waits for that.
struct Closing<'a> {
    sessions: &'a Sessions,
    stream: StreamId,
}

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.sessions.closing.lock().remove(&self.stream);
    }
}

impl Sessions {
    /// None yet.
    pub fn new(ask: Ask) -> Arc<Self> {
        let (stop, _) = watch::channel(Stop::No);
        let (open, closing, handles) = (Mutex::default(), Mutex::default(), Mutex::default());
        Arc::new(Self { ask, open, closing, stop, handles })
    }

    fn open(&self) -> MutexGuard<'_, HashMap<StreamId, Session>> {
        self.open.lock()
    }

    /// Notes a stream that the pool has opened, and closes it if no connection
    /// comes in time.
    pub fn add(self: &Arc<Self>, opened: Opened) {
        let stream = opened.stream;
        let (stop, closed) = (watch::channel(Stop::No).0, watch::channel(None).0);
        let session = Session { opened, attached: false, stop, closed };
        let before = self.open().insert(stream, session);
        assert!(before.is_none(), "the pool gives each stream a number of its own");
        let sessions = Arc::clone(self);
        tokio::spawn(async move {
            tokio::time::sleep(ATTACH_WITHIN).await;
            let alone = |session: &Session| !session.attached;
            if sessions.close_if(stream, Stop::Closed, alone).await.is_ok() {
                tracing::info!(
                    stream = stream.0,
                    "closed stream {}: no program came for its bytes",
                    stream.0
                );
            }
        });
    }

    /// Whose stream it is, until the pool has closed it: so long it has what it was promised.
    /// None where it was not opened here, or is closed.
    pub fn owner(&self, stream: StreamId) -> Option<Peer> {
        let open = self.open();
        let owner = open.get(&stream).map(|session| session.opened.owner.clone());
        owner.or_else(|| self.closing.lock().get(&stream).cloned())
    }

    /// Ties a connection to a stream.
    pub fn attach(self: &Arc<Self>, stream: StreamId) -> Result<Attached, AttachError> {
        let mut open = self.open();
        let session = open.get_mut(&stream).ok_or(AttachError::NoSuchStream)?;
        if session.attached {
            return Err(AttachError::Attached);
        }
        session.attached = true;
        Ok(Attached {
            stream,
            opened: Some(session.opened.clone()),
            stop: session.stop.subscribe(),
            sessions: Arc::clone(self),
            finished: false,
        })
    }

    /// The shared window of a stream, where it has one.
    pub fn shared(&self, stream: StreamId) -> Option<Arc<Shared>> {
        self.open().get(&stream).and_then(|session| session.opened.shared.clone())
    }

    /// Whether its program loses nothing while it is slowed.
    pub fn is_buffered(&self, stream: StreamId) -> bool {
        self.open().get(&stream).is_some_and(|session| session.opened.buffered)
    }

    /// How large its program makes the volume.
    pub fn grows_to(&self, stream: StreamId) -> Bytes {
        self.open().get(&stream).map_or(Bytes::ZERO, |session| session.opened.grows_to)
    }

    /// True while a connection carries this stream.
    pub fn is_attached(&self, stream: StreamId) -> bool {
        self.open().get(&stream).is_some_and(|session| session.attached)
    }

    /// Closes a stream, through its connection where it has one, so that its
    /// program hears why.
    pub async fn close(self: &Arc<Self>, stream: StreamId, why: Stop) -> Closed {
        self.close_if(stream, why, |_| true).await
    }

    async fn close_if(
        self: &Arc<Self>,
        stream: StreamId,
        why: Stop,
        condition: impl FnOnce(&Session) -> bool,
    ) -> Closed {
        let mut closed = {
            let open = self.open();
            let session = open.get(&stream).filter(|session| condition(session));
            let session = session.ok_or(Error::NoSuchStream { stream })?;
            session.stop.send_replace(why);
            let closed = session.closed.subscribe();
            if !session.attached {
                // A task of its own: this future may be dropped, the stream is closed all the same.
                let sessions = Arc::clone(self);
                tokio::spawn(async move { sessions.finish(stream).await });
            }
            closed
        };
        let result = closed.wait_for(Option::is_some).await;
        result.map_or(Err(Error::NoSuchStream { stream }), |result| {
            result.clone().expect("waited for it")
        })
    }

    async fn finish(&self, stream: StreamId) -> Closed {
        let session = {
            let mut open = self.open();
            let session = open.remove(&stream).ok_or(Error::NoSuchStream { stream })?;
            // Under the lock of `open`: at no instant it is nobody's.
            self.closing.lock().insert(stream, session.opened.owner.clone());
            session
        };
        let _closing = Closing { sessions: self, stream };
        let result = self.ask.call(calls::StreamClose { stream }).await;
        let writes = session.opened.mode.writes();
        debug_assert!(
            result.as_ref().is_ok_and(|upto| upto.is_some() == writes) || result.is_err()
        );
        session.closed.send_replace(Some(result.clone()));
        result
    }

    /// For connections without a stream: tells when to end.
    pub fn stop_signal(&self) -> watch::Receiver<Stop> {
        self.stop.subscribe()
    }

    /// A connection has a contract of its own: tells it when to end.
    pub fn add_handle(&self, handle: HandleId) -> watch::Receiver<Stop> {
        let (stop, told) = watch::channel(Stop::No);
        self.handles.lock().insert(handle, stop);
        // Told before it was there.
        if *self.stop.borrow() == Stop::ShuttingDown {
            self.end_handle(handle, Stop::ShuttingDown);
        }
        told
    }

    /// It has none any more.
    pub fn forget_handle(&self, handle: HandleId) {
        self.handles.lock().remove(&handle);
    }

    /// Tells the connection of a handle to end; false where there is none.
    pub fn end_handle(&self, handle: HandleId, why: Stop) -> bool {
        match self.handles.lock().get(&handle) {
            Some(stop) => {
                stop.send_replace(why);
                true
            }
            None => false,
        }
    }

    /// Tells every connection to end and closes every stream, synced.
    pub async fn stop_all(self: &Arc<Self>) {
        self.stop.send_replace(Stop::ShuttingDown);
        for stop in self.handles.lock().values() {
            stop.send_replace(Stop::ShuttingDown);
        }
        loop {
            let streams: Vec<_> = self.open().keys().copied().collect();
            if streams.is_empty() {
                return;
            }
            // Told all at once, so that their syncs share commits.
            let closing: Vec<_> = streams
                .into_iter()
                .map(|stream| {
                    let sessions = Arc::clone(self);
                    tokio::spawn(async move { sessions.close(stream, Stop::ShuttingDown).await })
                })
                .collect();
            for closed in closing {
                if let Ok(Err(error)) = closed.await
                    && !matches!(error, Error::NoSuchStream { .. })
                {
                    tracing::error!("{}", crate::problem::of(&error).detail);
                }
            }
        }
    }
}
