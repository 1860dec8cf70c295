//! The ways to the daemon: connections for the bytes of volumes, kept for the next call, and
//! calls that wait a moment for a daemon that is being started again.
//!
//! Invariants: a connection that has failed is not used again; each is used by one call at a
//! time; no more than [`KEPT_MAX`] wait for their next call. What a write may do yet that was not answered is
//! told of as another door's change: the number under which this mount writes is another one by then.

use crate::attributes::errno;
use crate::given_back::GivenBack;
use crate::lock::locked;
use crate::unsynced::Unsynced;
use crate::{ANSWER_WITHIN, BACK_WITHIN};
use client::{BestEffort, Client, Code, Error, Result};
use fuser::Errno;
use std::collections::VecDeque;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::num::NonZeroU64;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use units::Bytes;

/// Connections that wait for their next call: each holds a place at the daemon.
const KEPT_MAX: usize = 32;
/// Between two looks whether the daemon is back.
const PAUSE: Duration = Duration::from_millis(100);

/// Whether the daemon is stopping: another may be there soon.
fn is_stopping(error: &Error) -> bool {
    error.code() == Some(Code::ShuttingDown)
}

fn is_full(error: &Error) -> bool {
    matches!(errno(error), Errno::ENOSPC | Errno::EDQUOT)
}

/// A number that no other mount has: of random bits.
pub fn own_number() -> NonZeroU64 {
    let random = RandomState::new().build_hasher().finish();
    NonZeroU64::new(random % (1 << 60)).unwrap_or(NonZeroU64::MIN)
}

/// A connection, and the run of the daemon at its other end.
pub struct Connection {
    /// For the bytes.
    pub bytes: BestEffort,
    /// See [`client::control::Health::run`].
    pub run: u64,
    /// The number of the writes by it.
    writer: Option<NonZeroU64>,
}

/// All ways to one daemon.
pub struct Connections {
    /// For calls.
    pub client: Client,
    kept: Mutex<VecDeque<(u64, Connection)>>,
    /// The run of the daemon that was last heard of.
    run: AtomicU64,
    /// The process that the daemon was in then.
    process: Mutex<Option<u32>>,
    /// What was answered and is not durable yet.
    pub unsynced: Unsynced,
    /// What may be had again soon.
    pub given_back: GivenBack,
}

impl Connections {
    /// To the daemon of this client.
    pub fn new(client: Client, run: u64) -> Self {
        Self {
            client,
            kept: Mutex::default(),
            run: AtomicU64::new(run),
            process: Mutex::default(),
            unsynced: Unsynced::default(),
            given_back: GivenBack::default(),
        }
    }

    /// The run of the daemon, as far as is known without asking it.
    pub fn run(&self) -> u64 {
        self.run.load(Ordering::Relaxed)
    }

    /// Makes a call that changes nothing: again where the daemon was being stopped or started.
    pub fn ask<T>(&self, call: impl Fn(&Client) -> Result<T>) -> Result<T> {
        self.patiently(|error| !matches!(error, Error::Problem(_)) || is_stopping(error), call)
    }

    /// Makes a call that changes something: again only where no daemon has heard it.
    pub fn change<T>(&self, call: impl Fn(&Client) -> Result<T>) -> Result<T> {
        self.patiently(|error| matches!(error, Error::NoDaemon { .. }), call)
    }

    fn patiently<T>(
        &self,
        may_again: impl Fn(&Error) -> bool,
        call: impl Fn(&Client) -> Result<T>,
    ) -> Result<T> {
        let begun = Instant::now();
        loop {
            match call(&self.client) {
                Err(error) if may_again(&error) && begun.elapsed() < BACK_WITHIN => {
                    std::thread::sleep(PAUSE);
                }
                ended => return ended,
            }
        }
    }

    /// Transfers bytes of a volume: again where the connection, or the daemon, went meanwhile.
    /// Gives the run of the daemon that did it, too.
    pub fn transfer<T>(
        &self,
        inode: u64,
        mut transfer: impl FnMut(&mut BestEffort) -> Result<T>,
    ) -> Result<(T, u64)> {
        let begun = Instant::now();
        loop {
            let ended = self.take(inode).and_then(|mut connection| {
                let ended = transfer(&mut connection.bytes);
                let run = connection.run;
                // A daemon that stops has said so on connections that nobody used.
                if !connection.bytes.is_over() {
                    self.keep(inode, connection);
                }
                Ok((ended?, run))
            });
            let is_gone = match &ended {
                Err(Error::NoDaemon { .. } | Error::Broken(_)) => true,
                Err(error) => is_stopping(error),
                Ok(_) => false,
            };
            if !is_gone || begun.elapsed() >= BACK_WITHIN {
                return ended;
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Writes bytes of a volume, as [`transfer`](Self::transfer). Gives the run of the daemon that did it.
    pub fn write(&self, inode: u64, at: Bytes, bytes: &[u8]) -> Result<u64> {
        let write = |way: &mut BestEffort| {
            let written = way.write_at(at, bytes);
            // The daemon may go on with it. What is read until then is of an older version.
            if written.is_err() && way.is_over() {
                self.write_as_another();
            }
            written
        };
        self.transfer(inode, write).map(|((), run)| run)
    }

    /// What goes by the connections that there are is another's from now on.
    fn write_as_another(&self) {
        // A daemon from before there were writers with numbers hears of none.
        if self.client.writer_number().is_some() {
            self.client.set_writer_number(own_number());
            let before = std::mem::take(&mut *locked(&self.kept));
            drop(before); // not under the lock
        }
    }

    fn take(&self, inode: u64) -> Result<Connection> {
        let mut kept = locked(&self.kept);
        if let Some(at) = kept.iter().rposition(|(of, _)| *of == inode) {
            return Ok(kept.remove(at).expect("just found").1);
        }
        drop(kept);
        let writer = self.client.writer_number();
        let mut bytes = self.client.best_effort(&crate::attributes::volume(inode))?;
        bytes.set_answer_within(ANSWER_WITHIN);
        let process = bytes.daemon_process();
        let known = *locked(&self.process);
        if process.is_some() && known == process {
            return Ok(Connection { bytes, run: self.run(), writer });
        }
        // Behind the connection: if the daemon was started again between the two, it is broken.
        let run = self.client.health()?.run;
        self.run.store(run, Ordering::Relaxed);
        *locked(&self.process) = process;
        Ok(Connection { bytes, run, writer })
    }

    fn keep(&self, inode: u64, connection: Connection) {
        let mut kept = locked(&self.kept);
        if connection.writer != self.client.writer_number() {
            drop(kept);
            return drop(connection); // its end takes a moment
        }
        kept.push_back((inode, connection));
        let oldest = if kept.len() > KEPT_MAX { kept.pop_front() } else { None };
        drop(kept);
        drop(oldest); // its end takes a moment
    }

    /// Lets go what is kept for a volume.
    pub fn forget(&self, inode: u64) {
        let mut kept = locked(&self.kept);
        let (gone, stays) = kept.drain(..).partition(|(of, _)| *of == inode);
        let _: &VecDeque<_> = &gone;
        *kept = stays;
        drop(kept);
        drop(gone);
    }

    /// As [`change`](Self::change), for what is not durable before a sync: a mark of each of these inodes
    /// says so.
    pub fn change_of<T>(&self, inodes: &[u64], call: impl Fn(&Client) -> Result<T>) -> Result<T> {
        let apart = self.client.heard_apart();
        let ended = self.change(|_| call(&apart));
        if let Some(run) = apart.run_heard() {
            self.run.store(run, Ordering::Relaxed);
        }
        inodes.iter().for_each(|&inode| self.note_heard(inode, &apart));
        ended
    }

    /// The daemon that this client has heard last has something of an inode that is not durable. Where it
    /// has not answered, that is the last that was heard of: rather is somebody told of a loss that was
    /// none than not told of one.
    pub fn note_heard(&self, inode: u64, client: &Client) {
        self.unsynced.note(inode, client.run_heard().unwrap_or_else(|| self.run()));
    }

    /// Makes a call that takes space: once more where there is none, behind a commit: what was given back
    /// here, and at other doors, can be had then.
    pub fn with_room<T>(&self, call: impl Fn() -> Result<T>) -> Result<T> {
        let freed = self.given_back.freed();
        let first = call();
        if !first.as_ref().is_err_and(is_full) {
            return first;
        }
        let commit = || {
            let begun = self.unsynced.begin();
            let synced = self.client.sync();
            synced.map(|run| self.unsynced.synced(run, begun)).is_ok()
        };
        match self.given_back.make_free(freed, commit) || commit() {
            true => call(),
            false => first,
        }
    }

    /// Makes everything durable. Gives whether what was answered of an inode is lost, with the
    /// daemon that had it: a handle says that once.
    pub fn sync(&self, inode: u64, handle: u64) -> Result<bool> {
        let begun = self.unsynced.begin();
        let run = self.ask(Client::sync)?;
        self.run.store(run, Ordering::Relaxed);
        self.unsynced.synced(run, begun);
        Ok(self.unsynced.is_lost((inode, handle), run, begun))
    }

    /// Makes everything durable where that saves many marks.
    pub fn sync_many(&self) {
        if !self.unsynced.are_many() {
            return;
        }
        let begun = self.unsynced.begin();
        if let Ok(run) = self.client.sync() {
            self.unsynced.synced(run, begun);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::sync::Arc;
    use wire::frame::{HEAD_LEN, Head, VERSION};

    /// Plays the daemon: one write of two pages is not answered, and the connection ends.
    #[derive(Default)]
    struct Fake {
        /// The number in each hello, in their order.
        writers: Mutex<Vec<Option<NonZeroU64>>>,
        has_ended: Mutex<bool>,
    }

    impl Fake {
        /// None where the connection ends.
        fn carry(&self, connection: &mut UnixStream) -> Option<()> {
            let mut head = [0; HEAD_LEN];
            connection.read_exact(&mut head).ok()?;
            let (head, len) = Head::decode(&head).unwrap();
            connection.read_exact(&mut vec![0; len]).unwrap();
            let head = match head {
                Head::WriteAt { tag, .. } => {
                    if len == 8192 && !std::mem::replace(&mut *locked(&self.has_ended), true) {
                        return None;
                    }
                    Head::WriteDone { tag }
                }
                Head::HelloVolume { writer, .. } => {
                    locked(&self.writers).push(writer);
                    Head::Welcome { version: VERSION, offset: Bytes::ZERO, len: Bytes::MIB }
                }
                other => panic!("{other:?}"),
            };
            connection.write_all(&head.encode(0)).unwrap();
            Some(())
        }
    }

    fn serve(listener: UnixListener, mut serve: impl FnMut(UnixStream) + Send + 'static) {
        std::thread::spawn(move || listener.incoming().flatten().for_each(&mut serve));
    }

    /// When the write was done after all, the version was that from before it, and the mount showed the
    /// older bytes for ever.
    #[test]
    fn a_write_that_is_not_answered_is_anothers_from_then_on() {
        let dir = tempfile::Builder::new().prefix("slackline-").tempdir().unwrap();
        let control = dir.path().join("s.sock");
        serve(UnixListener::bind(&control).unwrap(), |mut connection| {
            let _asked = connection.read(&mut [0; 4096]).unwrap();
            let body = r#"{"status": "ok", "pool": "fake", "version": "0"}"#;
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
            connection.write_all(&[head.as_bytes(), body.as_bytes()].concat()).unwrap();
        });
        let daemon = Arc::new(Fake::default());
        let fake = Arc::clone(&daemon);
        let data = UnixListener::bind(wire::socket::data_path(&control)).unwrap();
        serve(data, move |mut connection| {
            let fake = Arc::clone(&fake);
            std::thread::spawn(move || while fake.carry(&mut connection).is_some() {});
        });
        let number = own_number();
        let ways = Connections::new(Client::at(&control).as_writer(number), 1);
        let write = |inode, len| ways.write(inode, Bytes::ZERO, &vec![7; len]).map(drop).unwrap();
        write(1, 4096);
        write(1, 4096);
        write(2, 8192);
        let another = ways.client.writer_number();
        assert!(another.is_some() && another != Some(number), "which also asks for versions");
        write(1, 4096);
        write(2, 4096);
        let number = Some(number);
        assert_eq!(*locked(&daemon.writers), [number, number, another, another]);
    }
}
