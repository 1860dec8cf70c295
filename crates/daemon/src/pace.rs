//! How fast a client has to send its bytes, or to take ours: slowly, and all the time.
//!
//! Invariant: what is timed is the time in which too little comes, and never a whole transfer: over a
//! slow link it may take as long as it takes.

use crate::limits::{FRAME_WITHIN, MOVED_MIN};
use std::future::poll_fn;
use std::io::{Error, ErrorKind, Result};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncReadExt};
use tokio::time::{Instant, timeout_at};

/// Of bytes that move, each [`MOVED_MIN`] has the same time.
pub struct Pace {
    limit: Duration,
    /// Bytes since the time began,
    moved: usize,
    /// and when it ends; none while nobody had to wait in it.
    until: Option<Instant>,
}

impl Pace {
    /// Of what nobody has waited for.
    pub fn new(limit: Duration) -> Self {
        Self { limit, moved: 0, until: None }
    }

    /// What comes next; none where it is late. What is there already is not timed ([`within`](crate::limits::within)).
    pub async fn next<T>(&mut self, coming: impl Future<Output = T>) -> Option<T> {
        let mut coming = pin!(coming);
        match poll_fn(|context| Poll::Ready(coming.as_mut().poll(context))).await {
            Poll::Ready(came) => Some(came),
            Poll::Pending => {
                let until = *self.until.get_or_insert_with(|| Instant::now() + self.limit);
                timeout_at(until, coming).await.ok()
            }
        }
    }

    /// So many bytes have moved.
    pub fn moved(&mut self, len: usize) {
        self.moved += len;
        if self.moved >= MOVED_MIN {
            (self.moved, self.until) = (0, None);
        }
    }
}

/// Fills `into` with what a client sends; none where it does not go on in time.
pub async fn fill(input: &mut (impl AsyncRead + Unpin), mut into: &mut [u8]) -> Option<Result<()>> {
    let mut pace = Pace::new(FRAME_WITHIN);
    while !into.is_empty() {
        let read = match pace.next(input.read(into)).await? {
            Ok(0) => Err(Error::from(ErrorKind::UnexpectedEof)),
            read => read,
        };
        match read {
            Ok(read) => {
                pace.moved(read);
                into = &mut into[read..];
            }
            Err(error) => return Some(Err(error)),
        }
    }
    Some(Ok(()))
}

/// Reads bytes for which there is no place, as [`fill`] does.
pub async fn discard(
    input: &mut (impl AsyncBufRead + Unpin),
    mut len: usize,
) -> Option<Result<()>> {
    let mut pace = Pace::new(FRAME_WITHIN);
    while len > 0 {
        let there = pace.next(input.fill_buf()).await?.map(|there| there.len().min(len));
        match there {
            Ok(0) => return Some(Err(ErrorKind::UnexpectedEof.into())),
            Ok(there) => {
                input.consume(there);
                pace.moved(there);
                len -= there;
            }
            Err(error) => return Some(Err(error)),
        }
    }
    Some(Ok(()))
}
