//! Best effort: reads and writes at any place of a volume, many at once.
//!
//! Invariants: at most `OUTSTANDING_MAX` requests are without an answer that the
//! caller has taken; answers are taken from the socket while requests are sent,
//! so that neither side waits for the other for ever.

use crate::{Error, InTime, Result, connection};
use std::collections::VecDeque;
use std::io;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use units::Bytes;
use wire::control::Priority;
use wire::frame::{Head, OUTSTANDING_MAX, VERSION};
use wire::{Code, Problem};

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
    connection: UnixStream,
    size: Bytes,
    last_tag: u64,
    /// Begun and not yet taken.
    outstanding: usize,
    shared: Arc<Shared>,
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
}

impl Shared {
    fn answers(&self) -> MutexGuard<'_, Answers> {
        self.answers.lock().expect("no thread panics while it holds the answers")
    }

    fn take(&self, head: Head, body: Vec<u8>) -> Result<()> {
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

    fn end(&self, result: Result<()>) {
        let broken = || Error::Broken(io::ErrorKind::UnexpectedEof.into());
        self.answers().over = Some(result.err().unwrap_or_else(broken));
        self.news.notify_one();
    }
}

impl BestEffort {
    pub(crate) fn attach(socket: &Path, volume: &str, priority: Option<Priority>) -> Result<Self> {
        Self::greet(socket, volume, Head::HelloVolume { version: VERSION, priority })
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
        let Head::Welcome { len, .. } = welcome else { unreachable!("attach gives a welcome") };
        let shared = Arc::new(Shared::default());
        let mut incoming = connection.try_clone()?;
        let sharing = Arc::clone(&shared);
        let receive = move || {
            let result = connection::take_all(&mut incoming, |head, body| sharing.take(head, body));
            sharing.end(result);
        };
        let thread = std::thread::Builder::new().name("slackline-best-effort".into());
        let receiver = Some(thread.spawn(receive)?);
        Ok(Self {
            connection,
            size: len,
            last_tag: 0,
            outstanding: 0,
            shared,
            receiver,
            within: None,
        })
    }

    /// The size of the volume when the connection was made.
    pub fn size(&self) -> Bytes {
        self.size
    }

    /// Waits for each answer for so long at the most from now on. One that does not come is an
    /// error, and the handle is of no more use then.
    pub fn set_answer_within(&mut self, within: std::time::Duration) {
        self.within = Some(within);
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
        self.begin_padded(offset, bytes, Bytes::ZERO)
    }

    /// As [`BestEffort::begin_write`]; what is recorded does not reach over the last
    /// `padding` bytes.
    pub fn begin_padded(&mut self, offset: Bytes, bytes: &[u8], padding: Bytes) -> Result<Tag> {
        if bytes.len() > wire::frame::BODY_MAX {
            let detail = "one transfer has at most 1 MiB";
            let problem = Problem::new(Code::Invalid, detail, "write in smaller pieces");
            return Err(Error::Problem(Box::new(problem)));
        }
        self.begin(|tag| Head::WriteAt { tag, offset, padding }, bytes)
    }

    /// Begins to make durable every write whose answer has been taken.
    pub fn begin_sync(&mut self) -> Result<Tag> {
        self.begin(|tag| Head::SyncAll { tag }, &[])
    }

    /// Waits for the next answer. Panics where none is outstanding.
    #[track_caller]
    pub fn take(&mut self) -> Result<Completion> {
        assert!(self.outstanding > 0, "no request is outstanding");
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
            answers = match self.within {
                None => self.shared.news.wait(answers),
                Some(within) => {
                    let begun = self.shared.news.wait_timeout_while(answers, within, |answers| {
                        answers.ready.is_empty() && answers.over.is_none()
                    });
                    match begun {
                        Ok((_, waited)) if waited.timed_out() => {
                            return Err(Error::Broken(io::ErrorKind::TimedOut.into()));
                        }
                        Ok((answers, _)) => Ok(answers),
                        Err(error) => panic!("{error}"),
                    }
                }
            }
            .expect("no thread panics while it holds the answers");
        }
    }

    /// Reads into `buf`. Panics where other requests are outstanding.
    #[track_caller]
    pub fn read_at(&mut self, offset: Bytes, buf: &mut [u8]) -> Result<()> {
        assert_eq!(self.outstanding, 0, "take the answers of what was begun first");
        self.begin_read(offset, Bytes::new(buf.len() as u64))?;
        let bytes = self.take()?.result?;
        if bytes.len() != buf.len() {
            let what = format!("{} bytes for a read of {}", bytes.len(), buf.len());
            return Err(Error::Garbled(what));
        }
        buf.copy_from_slice(&bytes);
        Ok(())
    }

    /// Writes `bytes`. Panics where other requests are outstanding.
    #[track_caller]
    pub fn write_at(&mut self, offset: Bytes, bytes: &[u8]) -> Result<()> {
        self.write_padded(offset, bytes, Bytes::ZERO)
    }

    /// As [`BestEffort::begin_padded`], and waits. Panics where other requests are
    /// outstanding.
    #[track_caller]
    pub fn write_padded(&mut self, offset: Bytes, bytes: &[u8], padding: Bytes) -> Result<()> {
        assert_eq!(self.outstanding, 0, "take the answers of what was begun first");
        self.begin_padded(offset, bytes, padding)?;
        self.take()?.result.map(drop)
    }

    /// Makes all writes durable. Panics where other requests are outstanding.
    #[track_caller]
    pub fn sync(&mut self) -> Result<()> {
        assert_eq!(self.outstanding, 0, "take the answers of what was begun first");
        self.begin_sync()?;
        self.take()?.result.map(drop)
    }

    fn begin(&mut self, head: impl FnOnce(u64) -> Head, body: &[u8]) -> Result<Tag> {
        if self.outstanding == OUTSTANDING_MAX {
            let detail = format!("{OUTSTANDING_MAX} requests are outstanding on this connection");
            let problem = Problem::new(Code::Busy, detail, "take an answer first");
            return Err(Error::Problem(Box::new(problem)));
        }
        let tag = self.last_tag + 1;
        let head = connection::asked(head(tag))?;
        if let Err(error) = connection::send(&mut self.connection, head, body) {
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

impl Drop for BestEffort {
    fn drop(&mut self) {
        // An error means that the daemon has gone already.
        let _ = self.connection.shutdown(Shutdown::Both);
        if let Some(receiver) = self.receiver.take() {
            let _ = receiver.join();
        }
    }
}
