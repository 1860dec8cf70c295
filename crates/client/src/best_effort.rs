//! Best effort: reads and writes at any place of a volume, many at once.
//!
//! Invariants: at most `OUTSTANDING_MAX` requests are without an answer that the
//! caller has taken; where several are under way, answers are taken from the socket while requests
//! are sent, by a thread of their own, so that neither side waits for the other for ever. One call
//! at a time needs no such thread, and has none: its caller takes its answer from the socket, and
//! the bytes of a read go to where they are wanted. Once there is the thread, it takes them all.

use crate::forks::Maker;
use crate::{Error, InTime, Result, connection, interrupt};
use rustix::net::sockopt;
use std::collections::{BTreeSet, VecDeque};
use std::io::{self, Read};
use std::net::Shutdown;
use std::num::NonZeroU64;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Instant;
use units::Bytes;
use wire::control::Priority;
use wire::frame::{HEAD_LEN, Head, OUTSTANDING_MAX, VERSION};
use wire::{Code, Problem};

/// The shortest time that the system waits for.
const SHORTEST: std::time::Duration = std::time::Duration::from_micros(1);

/// Names a request, from when it is sent until its answer is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tag(pub u64);

/// The end of a request.
#[derive(Debug)]
pub struct Completion {
    /// Which request.
    pub tag: Tag,
    /// The bytes of a read; empty for writes and syncs.
    pub result: Result<Vec<u8>>,
}

/// A volume that is read and written as best effort.
///
/// Offsets and lengths of reads are multiples of 4 KiB; writes are of any bytes. One
/// transfer has at most 1 MiB, counted from a multiple of 4 KiB on.
/// Either one call at a time ([`BestEffort::read_at`]), or many at once: begin
/// them, then take the answers, which come in any order.
#[derive(Debug)]
pub struct BestEffort {
    maker: Maker,
    connection: UnixStream,
    size: Bytes,
    last_tag: u64,
    /// Begun and not yet taken.
    outstanding: usize,
    shared: Arc<Shared>,
    /// Takes the answers, from when something is begun on.
    receiver: Option<JoinHandle<()>>,
    /// What is waited for an answer at the most.
    within: Option<std::time::Duration>,
}

#[derive(Debug, Default)]
struct Shared {
    answers: Mutex<Answers>,
    news: Condvar,
}

#[derive(Debug, Default)]
struct Answers {
    ready: VecDeque<Completion>,
    over: Option<Error>,
    /// Requests whose callers wait no more: their answers are nobody's.
    abandoned: BTreeSet<u64>,
}

impl Shared {
    fn answers(&self) -> MutexGuard<'_, Answers> {
        self.answers.lock().expect("no thread panics while it holds the answers")
    }

    fn take(&self, head: Head, body: Vec<u8>) -> Result<()> {
        if self.is_abandoned(head) {
            return Ok(());
        }
        if let Some(error) = &self.answers().over {
            return Err(error.again());
        }
        let completion = match head {
            Head::ReadDone { tag } => Completion { tag: Tag(tag), result: Ok(body) },
            Head::WriteDone { tag } | Head::SyncDone { tag } => {
                Completion { tag: Tag(tag), result: Ok(Vec::new()) }
            }
            Head::Failed { tag, code } if tag != 0 => {
                Completion { tag: Tag(tag), result: Err(Error::from_frame(code, &body)) }
            }
            other => return Err(connection::error_in(other, &body)),
        };
        self.answers().ready.push_back(completion);
        self.news.notify_one();
        Ok(())
    }

    /// Nobody waits any more for the answer to this, which may have come just now.
    fn abandon(&self, tag: u64) {
        let mut answers = self.answers();
        let before = answers.ready.len();
        answers.ready.retain(|completion| completion.tag != Tag(tag));
        if answers.ready.len() == before {
            answers.abandoned.insert(tag);
        }
    }

    /// Whether it answers what nobody waits for any more.
    fn is_abandoned(&self, head: Head) -> bool {
        match head {
            Head::ReadDone { tag }
            | Head::WriteDone { tag }
            | Head::SyncDone { tag }
            | Head::Failed { tag, .. } => self.answers().abandoned.remove(&tag),
            _ => false,
        }
    }

    fn end(&self, result: Result<()>) {
        let broken = || Error::Broken(io::ErrorKind::UnexpectedEof.into());
        self.answers().over.get_or_insert_with(|| result.err().unwrap_or_else(broken));
        self.news.notify_one();
    }
}

impl BestEffort {
    pub(crate) fn attach(
        socket: &Path,
        volume: &str,
        priority: Option<Priority>,
        writer: Option<NonZeroU64>,
    ) -> Result<Self> {
        Self::greet(socket, volume, Head::HelloVolume { version: VERSION, priority, writer })
    }

    /// The same, under a contract of this connection's own.
    pub(crate) fn attach_in_time(socket: &Path, volume: &str, contract: InTime) -> Result<Self> {
        let InTime { len, within, every } = contract;
        Self::greet(socket, volume, Head::HelloInTime { version: VERSION, len, within, every })
    }

    fn greet(socket: &Path, volume: &str, hello: Head) -> Result<Self> {
        if volume.len() > wire::frame::NAME_MAX {
            let detail = "the volume's name is longer than 255 bytes";
            let problem = Problem::new(Code::Invalid, detail, "use the name that the list shows");
            return Err(Error::Problem(Box::new(problem)));
        }
        let hello = connection::asked(hello)?;
        let (connection, welcome) = connection::attach(socket, hello, volume.as_bytes())?;
        // A whole transfer on its way, where the system lets a program have so much; without it the
        // two ends wake each other many times for one.
        let _ = sockopt::set_socket_send_buffer_size(&connection, wire::frame::BODY_MAX);
        let Head::Welcome { len, .. } = welcome else { unreachable!("attach gives a welcome") };
        Ok(Self {
            maker: Maker::this(),
            connection,
            size: len,
            last_tag: 0,
            outstanding: 0,
            shared: Arc::default(),
            receiver: None,
            within: None,
        })
    }

    /// From here on a thread takes the answers.
    fn receive(&mut self) -> Result<()> {
        if self.receiver.is_some() {
            return Ok(());
        }
        self.connection.set_read_timeout(None)?;
        let mut incoming = self.connection.try_clone()?;
        let sharing = Arc::clone(&self.shared);
        let receive = move || {
            let result = connection::take_all(&mut incoming, |head, body| sharing.take(head, body));
            sharing.end(result);
        };
        let thread = std::thread::Builder::new().name("slackline-best-effort".into());
        self.receiver = Some(thread.spawn(receive)?);
        Ok(())
    }

    /// The size of the volume when the connection was made.
    pub fn size(&self) -> Bytes {
        self.size
    }

    /// Waits for each answer for so long at the most from now on. One that does not come is an
    /// error, and the handle is of no more use then.
    pub fn set_answer_within(&mut self, within: std::time::Duration) {
        self.within = Some(within);
        let within = Some(within.max(SHORTEST));
        // These fail only where the time is none at all, which is no time to wait.
        let _ = self.connection.set_write_timeout(within);
        if self.receiver.is_none() {
            let _ = self.connection.set_read_timeout(within);
        }
    }

    /// The number of the daemon's process, where it can be seen from here.
    pub fn daemon_process(&self) -> Option<u32> {
        let peer = rustix::net::sockopt::socket_peercred(&self.connection).ok()?;
        u32::try_from(peer.pid.as_raw_nonzero().get()).ok()
    }

    /// Requests whose answers have not been taken.
    pub fn outstanding(&self) -> usize {
        self.outstanding
    }

    /// Begins a read.
    pub fn begin_read(&mut self, offset: Bytes, len: Bytes) -> Result<Tag> {
        self.begin(|tag| Head::ReadAt { tag, offset, len }, &[])
    }

    /// Begins a write. Done means that whoever reads from now on finds it; durable after
    /// the next sync.
    pub fn begin_write(&mut self, offset: Bytes, bytes: &[u8]) -> Result<Tag> {
        fits(bytes)?;
        self.begin(|tag| Head::WriteAt { tag, offset }, bytes)
    }

    /// Begins to make durable every write whose answer has been taken.
    pub fn begin_sync(&mut self) -> Result<Tag> {
        self.begin(|tag| Head::SyncAll { tag }, &[])
    }

    /// Waits for the next answer. One that does not come in time ends the connection. Panics where none is
    /// outstanding.
    #[track_caller]
    pub fn take(&mut self) -> Result<Completion> {
        assert!(self.outstanding > 0, "no request is outstanding");
        self.maker.check()?;
        let until = self.within.and_then(|within| Instant::now().checked_add(within));
        let mut answers = self.shared.answers();
        loop {
            if let Some(completion) = answers.ready.pop_front() {
                drop(answers);
                self.outstanding -= 1;
                return Ok(completion);
            }
            if let Some(error) = &answers.over {
                return Err(error.again());
            }
            answers = match interrupt::news(&self.shared.news, answers, until) {
                Ok(again) => again,
                Err(Error::Interrupted) => return Err(Error::Interrupted),
                Err(late) => return Err(self.ends(late)),
            };
        }
    }

    /// Whether nothing more comes on this connection: the daemon has ended it, or an error has. What is
    /// asked of it now fails with the reason.
    pub fn is_over(&self) -> bool {
        self.shared.answers().over.is_some()
    }

    /// Nothing that comes from now on can be trusted to be an answer to what is asked then: nothing does,
    /// and this is why.
    fn ends(&self, why: Error) -> Error {
        let mut answers = self.shared.answers();
        answers.ready.clear();
        answers.over = Some(why.again());
        drop(answers);
        // An error means that the daemon has gone already.
        let _ = self.connection.shutdown(Shutdown::Both);
        why
    }

    /// Reads into `buf`. Panics where other requests are outstanding.
    #[track_caller]
    pub fn read_at(&mut self, offset: Bytes, buf: &mut [u8]) -> Result<()> {
        let len = Bytes::new(buf.len() as u64);
        self.call(|tag| Head::ReadAt { tag, offset, len }, &[], buf)
    }

    /// Writes `bytes`. Panics where other requests are outstanding.
    #[track_caller]
    pub fn write_at(&mut self, offset: Bytes, bytes: &[u8]) -> Result<()> {
        fits(bytes)?;
        self.call(|tag| Head::WriteAt { tag, offset }, bytes, &mut [])
    }

    /// Makes all writes durable. Panics where other requests are outstanding.
    #[track_caller]
    pub fn sync(&mut self) -> Result<()> {
        self.call(|tag| Head::SyncAll { tag }, &[], &mut [])
    }

    /// One request and its answer, whose bytes go to `into`.
    #[track_caller]
    fn call(&mut self, head: impl FnOnce(u64) -> Head, body: &[u8], into: &mut [u8]) -> Result<()> {
        assert_eq!(self.outstanding, 0, "take the answers of what was begun first");
        if self.receiver.is_some() {
            self.begin(head, body)?;
            let taken = self.take();
            if let Err(Error::Interrupted) = &taken {
                self.shared.abandon(self.last_tag);
            }
            // Where nothing comes any more, that of the next call is no other's.
            self.outstanding = 0;
            let Completion { tag, result } = taken?;
            if tag != Tag(self.last_tag) {
                let what = format!("an answer to request {} for {}", tag.0, self.last_tag);
                return Err(self.ends(Error::Garbled(what)));
            }
            let bytes = result?;
            if bytes.len() != into.len() {
                return Err(self.ends(unequal(bytes.len(), into.len())));
            }
            into.copy_from_slice(&bytes);
            return Ok(());
        }
        if let Some(error) = &self.shared.answers().over {
            return Err(error.again());
        }
        self.maker.check()?;
        let tag = self.last_tag + 1;
        let head = connection::asked(head(tag))?;
        self.last_tag = tag;
        let sent = self.send(head, body);
        let ended = match (self.answer(tag, into), sent) {
            (Ok(answered), _) => return answered,
            // What comes next on it is the answer to this, whenever that is.
            (Err(Error::Interrupted), Ok(())) => {
                self.shared.abandon(tag);
                return Err(Error::Interrupted);
            }
            // The daemon may have said why before it went: its word is better than EPIPE.
            (Err(Error::Broken(_)), Err(error)) => error.into(),
            (Err(error), _) => error,
        };
        Err(self.ends(ended))
    }

    /// Sends a frame. Where the daemon does not take it in time, the connection ends: what has come on it
    /// by then is all that there is.
    fn send(&mut self, head: Head, body: &[u8]) -> io::Result<()> {
        let sent = connection::send(&self.connection, head, body);
        if sent.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock) {
            let _ = self.connection.shutdown(Shutdown::Both);
        }
        sent
    }

    /// The answer to the only request that is under way. An error means that the connection is of
    /// no more use.
    fn answer(&mut self, asked: u64, into: &mut [u8]) -> Result<Result<()>> {
        let mut incoming = Incoming::new(&self.connection, self.within);
        let (head, len) = loop {
            let mut head = [0; HEAD_LEN];
            incoming.begin(&mut head)?;
            let (head, len) =
                Head::decode(&head).map_err(|error| Error::Garbled(error.to_string()))?;
            if !self.shared.is_abandoned(head) {
                break (head, len);
            }
            incoming.fill(&mut vec![0; len])?;
        };
        match head {
            Head::ReadDone { tag } | Head::WriteDone { tag } | Head::SyncDone { tag }
                if tag == asked =>
            {
                if len != into.len() {
                    return Err(unequal(len, into.len()));
                }
                incoming.fill(into)?;
                Ok(Ok(()))
            }
            other => {
                let mut body = vec![0; len];
                incoming.fill(&mut body)?;
                match other {
                    Head::Failed { tag, code } if tag == asked => {
                        Ok(Err(Error::from_frame(code, &body)))
                    }
                    other => Err(connection::error_in(other, &body)),
                }
            }
        }
    }

    fn begin(&mut self, head: impl FnOnce(u64) -> Head, body: &[u8]) -> Result<Tag> {
        self.maker.check()?;
        if self.outstanding == OUTSTANDING_MAX {
            let detail = format!("{OUTSTANDING_MAX} requests are outstanding on this connection");
            let problem = Problem::new(Code::Busy, detail, "take an answer first");
            return Err(Error::Problem(Box::new(problem)));
        }
        self.receive()?;
        let tag = self.last_tag + 1;
        let head = connection::asked(head(tag))?;
        if let Err(error) = self.send(head, body) {
            // The daemon may have said why before it went: its word is better than
            // EPIPE. The connection is broken, so its end comes.
            let answers = self.shared.answers();
            let over = self.shared.news.wait_while(answers, |answers| answers.over.is_none());
            let said = over.ok().and_then(|answers| answers.over.as_ref().map(Error::again));
            return Err(said.unwrap_or_else(|| error.into()));
        }
        self.last_tag = tag;
        self.outstanding += 1;
        Ok(Tag(tag))
    }
}

/// What a transfer cannot have more of.
fn fits(bytes: &[u8]) -> Result<()> {
    if bytes.len() <= wire::frame::BODY_MAX {
        return Ok(());
    }
    let detail = "one transfer has at most 1 MiB";
    let problem = Problem::new(Code::Invalid, detail, "write in smaller pieces");
    Err(Error::Problem(Box::new(problem)))
}

pub(crate) fn unequal(came: usize, asked: usize) -> Error {
    Error::Garbled(format!("{came} bytes for a request of {asked}"))
}

/// The answer that is waited for.
struct Incoming<'a> {
    connection: &'a UnixStream,
    /// When it is too late. The system itself waits no longer for each part of it than it was told.
    until: Option<Instant>,
}

impl<'a> Incoming<'a> {
    fn new(connection: &'a UnixStream, within: Option<std::time::Duration>) -> Self {
        Self { connection, until: within.map(|within| Instant::now() + within) }
    }

    /// The first part of a frame: before its first byte a signal may end the wait.
    fn begin(&mut self, into: &mut [u8]) -> Result<()> {
        self.fill_where(into, interrupt::asked)
    }

    fn fill(&mut self, into: &mut [u8]) -> Result<()> {
        self.fill_where(into, || Ok(()))
    }

    fn fill_where(&mut self, mut into: &mut [u8], asked: impl Fn() -> Result<()>) -> Result<()> {
        let whole = into.len();
        while !into.is_empty() {
            match self.connection.read(into) {
                Ok(0) => return Err(Error::Broken(io::ErrorKind::UnexpectedEof.into())),
                Ok(read) => into = &mut into[read..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                    if into.len() == whole {
                        asked()?;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Err(Error::Broken(io::ErrorKind::TimedOut.into()));
                }
                Err(error) => return Err(error.into()),
            }
            if !into.is_empty() && self.until.is_some_and(|until| Instant::now() > until) {
                return Err(Error::Broken(io::ErrorKind::TimedOut.into()));
            }
        }
        Ok(())
    }
}

impl Drop for BestEffort {
    fn drop(&mut self) {
        let receiver = self.receiver.take();
        if !self.maker.is_here() {
            // Its thread is the parent's, too.
            std::mem::forget(receiver);
            return;
        }
        // An error means that the daemon has gone already.
        let _ = self.connection.shutdown(Shutdown::Both);
        if let Some(receiver) = receiver {
            let _ = receiver.join();
        }
    }
}
