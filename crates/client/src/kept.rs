//! Connections to the control socket that wait for their next call.
//!
//! Invariants: each is used by one call at a time, and kept only where its answer was read to its end; none is
//! used that the daemon has ended, that has waited for [`WAITS_MAX`], or that another process has made.

use crate::forks::Maker;
use rustix::net::{RecvFlags, recv};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// So many wait at the most: each holds a place at the daemon.
const KEPT_MAX: usize = 8;
/// The daemon ends a connection on which nothing is asked for 10 s. One that it ends just when something is
/// asked on it would leave open whether that was done.
const WAITS_MAX: Duration = Duration::from_secs(3);

#[derive(Debug)]
struct Waiting {
    connection: UnixStream,
    since: Instant,
    maker: Maker,
}

/// Of one client and its clones.
#[derive(Clone, Debug, Default)]
pub struct Kept(Arc<Mutex<Vec<Waiting>>>);

impl Kept {
    fn waiting(&self) -> MutexGuard<'_, Vec<Waiting>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One that can be used, if there is one: the last that was.
    pub fn take(&self) -> Option<UnixStream> {
        loop {
            let last = self.waiting().pop()?;
            let is_own = last.maker.is_here();
            if is_own && last.since.elapsed() < WAITS_MAX && is_quiet(&last.connection) {
                return Some(last.connection);
            }
        }
    }

    /// Keeps one whose answer was read to its end.
    pub fn put(&self, connection: UnixStream) {
        let mut waiting = self.waiting();
        if waiting.len() < KEPT_MAX {
            let (since, maker) = (Instant::now(), Maker::this());
            waiting.push(Waiting { connection, since, maker });
        }
    }
}

/// Whether the other end has neither ended the connection nor said anything.
fn is_quiet(connection: &UnixStream) -> bool {
    let look = RecvFlags::PEEK | RecvFlags::DONTWAIT;
    matches!(recv(connection, &mut [0; 1][..], look), Err(rustix::io::Errno::AGAIN))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn only_what_is_quiet_own_and_not_old_is_used_again() {
        let kept = Kept::default();
        let (here, mut there) = UnixStream::pair().unwrap();
        kept.put(here);
        let here = kept.take().expect("nothing has happened on it");
        assert!(kept.take().is_none(), "it is in use");
        kept.put(here);
        there.write_all(b"HTTP/1.1 408 Request Timeout\r\n\r\n").unwrap();
        assert!(kept.take().is_none(), "what nobody has asked for was said on it");

        let (here, there) = UnixStream::pair().unwrap();
        kept.put(here);
        drop(there);
        assert!(kept.take().is_none(), "the other end has gone");

        let (here, _there) = UnixStream::pair().unwrap();
        kept.put(here);
        kept.waiting()[0].since = Instant::now().checked_sub(WAITS_MAX).unwrap();
        assert!(kept.take().is_none(), "it is about to be ended");

        let (here, _there) = UnixStream::pair().unwrap();
        kept.put(here);
        kept.waiting()[0].maker = Maker::other();
        assert!(kept.take().is_none(), "it is another process's");
    }

    #[test]
    fn few_wait() {
        let kept = Kept::default();
        let pairs: Vec<_> = (0..=KEPT_MAX).map(|_| UnixStream::pair().unwrap()).collect();
        let theirs: Vec<_> = pairs
            .into_iter()
            .map(|(here, there)| {
                kept.put(here);
                there
            })
            .collect();
        assert_eq!(std::iter::from_fn(|| kept.take()).count(), KEPT_MAX);
        drop(theirs);
    }
}
