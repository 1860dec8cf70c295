//! The body of an answer: bytes of a volume, as a client takes them.
//!
//! Invariants: what is in memory for one answer is bounded ([`AHEAD`] pieces of best effort, the
//! window of a stream) and counted as its user's; it goes back when the client has taken it, or is
//! gone. A body that cannot be completed ends its connection, so that nobody takes a part for all.

use super::Found;
use crate::api::{Control, Failure, open_stream};
use crate::control::Carriage;
use crate::data::account::{Account, Place};
use crate::pieces::{Piece, pieces};
use crate::pool::{self, Ask, Came, Chunk, Handed};
use crate::quotas::Peer;
use crate::scope;
use crate::sessions::Stop;
use axum::body::Body;
use hyper::body::{Frame, SizeHint};
use node::{Error, Mode, Playout, Priority, StreamId, calls};
use std::collections::VecDeque;
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::sync::mpsc;
use units::{Bytes, Instant, Rate};
use wire::control as api;
use wire::frame::BODY_MAX;

/// Pieces of 1 MiB that are brought while the client takes the one before.
const AHEAD: usize = 4;

/// Why a body ends before its end.
#[derive(Debug)]
struct Broken(String);

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}
impl std::error::Error for Broken {}

/// Bytes of the pool's, and when it handed them out.
type Part = (bytes::Bytes, Handed);

/// Where a task puts the bytes of a body.
type Taker = mpsc::Sender<Result<Part, Broken>>;

/// Bytes that a task sends, of which it is known how many they are.
struct Coming {
    parts: mpsc::Receiver<Result<Part, Broken>>,
    left: u64,
    ask: Ask,
    carriage: Carriage,
    /// Since when the connection has had room for the next ones.
    free: Option<Handed>,
}

impl hyper::body::Body for Coming {
    type Data = bytes::Bytes;
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<bytes::Bytes>, Broken>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        let free = *self.free.get_or_insert_with(Handed::now);
        let came = ready!(self.parts.poll_recv(cx));
        self.free = None;
        Poll::Ready(Some(match came {
            Some(Ok((bytes, handed))) => {
                self.carriage.sends(&self.ask, handed.or_later(free));
                self.left = self.left.saturating_sub(bytes.len() as u64);
                Ok(Frame::data(bytes))
            }
            Some(Err(broken)) => Err(broken),
            None => Err(Broken("the task that reads has ended".into())),
        }))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

fn body(range: &Range<Bytes>, ask: Ask, carriage: Carriage) -> (Taker, Body) {
    // The next piece waits where it can be counted.
    let (taker, parts) = mpsc::channel(1);
    let left = range.end.saturating_sub(range.start).get();
    (taker, Body::new(Coming { parts, left, ask, carriage, free: None }))
}

/// A piece's bytes, without a copy. With the last use of them its memory goes back.
struct Held {
    chunk: Box<dyn Chunk>,
    piece: Piece,
    _place: Place,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        self.piece.within(self.chunk.bytes())
    }
}

/// A body that is read as best effort.
///
/// # Errors
/// The user has as many connections as he may have.
pub fn best_effort(
    control: &Control,
    peer: &Peer,
    found: Found,
    range: Range<Bytes>,
    (priority, carriage): (Option<Priority>, Carriage),
) -> Result<Body, Failure> {
    let quota = control.quotas.connect(peer)?;
    let priority = quota.granted(priority);
    let (ask, lane) = (control.by(peer), carriage.lane.clone());
    if ask.guaranteed(&found.known, priority) > 0 {
        lane.promise();
    }
    let (taker, body) = body(&range, ask.clone(), carriage);
    let reading = Reading { ask, found, priority, account: Account::new(quota) };
    lane.spawn(async move {
        if let Err(Some(error)) = reading.send(range, &taker).await {
            // The client may be gone.
            let _ = taker.send(Err(Broken(error.to_string()))).await;
        }
    });
    Ok(body)
}

struct Reading {
    ask: Ask,
    found: Found,
    priority: Option<Priority>,
    account: Account,
}

/// A piece on its way.
struct Ahead {
    piece: Piece,
    place: Place,
    coming: pool::Coming<calls::Read>,
    came: Option<Came<calls::Read>>,
}

impl Reading {
    /// Sends a range piece by piece; `Err(None)` where nobody takes it.
    async fn send(&self, range: Range<Bytes>, taker: &Taker) -> Result<(), Option<Error>> {
        let len = range.end.saturating_sub(range.start);
        let (mut left, mut ahead) = (pieces(range.start.get(), len.get()), VecDeque::new());
        let (mut next, mut since) = (left.next(), None);
        while next.is_some() || !ahead.is_empty() {
            let wanted = next.filter(|_| ahead.len() < AHEAD);
            // What it waits for from here on is in the clock of a contract.
            since = wanted.map(|_| since.unwrap_or_else(|| self.ask.0.now()));
            tokio::select! {
                biased;
                sent = send_first(&mut ahead, taker), if !ahead.is_empty() => sent?,
                // Whoever waits for a place holds none that does not come back by itself.
                place = self.place(wanted), if wanted.is_some() => {
                    let piece = wanted.expect("looked at above");
                    let since = since.take().expect("of what is wanted");
                    ahead.push_back(self.begin(since, piece, place));
                    next = left.next();
                }
            }
        }
        Ok(())
    }

    async fn place(&self, piece: Option<Piece>) -> Place {
        let len = piece.map_or(Bytes::ZERO, |piece| piece.blocks().1);
        let name = &self.found.known;
        self.account.place(name, len, || self.ask.guaranteed(name, self.priority)).await
    }

    fn begin(&self, since: Instant, piece: Piece, place: Place) -> Ahead {
        let volume = self.found.known.clone();
        let (offset, len) = piece.blocks();
        let op = calls::Read { volume, offset, len, priority: self.priority };
        Ahead { piece, place, coming: self.ask.begin_since(since, op), came: None }
    }
}

/// Sends the piece that comes first. Nothing is lost where it is not waited for to the end.
async fn send_first(ahead: &mut VecDeque<Ahead>, taker: &Taker) -> Result<(), Option<Error>> {
    let first = ahead.front_mut().expect("asked only where there is one");
    if first.came.is_none() {
        first.came = Some(first.coming.handed().await);
    }
    let room = taker.reserve().await.map_err(|_| None)?;
    let Ahead { piece, place, came, .. } = ahead.pop_front().expect("looked at above");
    let (came, handed) = came.expect("it came");
    let held = Held { chunk: came?, piece, _place: place };
    room.send(Ok((bytes::Bytes::from_owner(held), handed)));
    Ok(())
}

/// A body that is read under a contract of its own.
///
/// # Errors
/// The contract does not fit.
pub async fn under_contract(
    control: &Control,
    peer: &Peer,
    found: Found,
    range: Range<Bytes>,
    (rate, carriage): (Rate, Carriage),
) -> Result<Body, Failure> {
    scope::promise(peer, rate)?;
    let block = calls::Block { volume: found.known.clone(), mode: Mode::Read, rate };
    let block = control.by(peer).call(block).await?;
    let contract =
        api::Contract { rate_bytes_per_second: rate, block_bytes: block, burst_bytes: block };
    let request = api::StreamOpen {
        miss_per_billion: None,
        volume: found.known,
        mode: api::Mode::Read,
        contract,
        start_bytes: Some(range.start),
        shared_window: false,
        early: true,
    };
    // A task of its own: a stream that was opened must be known to the sessions.
    let opening = tokio::spawn(open_stream(control.clone(), peer.clone(), request));
    let opened = opening.await.unwrap_or_else(|_| Err(Box::new(crate::api::fault())))?;
    let stream = StreamId(opened.id);
    let Ok(attached) = control.sessions.attach(stream) else {
        return Err(Error::NoSuchStream { stream }.into());
    };
    let (ask, lane) = (control.by(peer), carriage.lane.clone());
    lane.promise();
    let (taker, body) = body(&range, ask.clone(), carriage);
    lane.spawn(async move {
        let mut stop = attached.stop.clone();
        let sent = tokio::select! {
            sent = play(&ask, stream, range, &taker) => sent,
            why = stop.wait_for(|&why| why != Stop::No) => {
                drop(why);
                Err(Some("the stream was closed".into()))
            }
            () = taker.closed() => Err(None),
        };
        // Closed in any case: who asked has what he asked for, or is gone.
        let _ = attached.finish().await;
        if let Err(Some(why)) = sent {
            let _ = taker.send(Err(Broken(why))).await;
        }
    });
    Ok(body)
}

/// Sends what a stream reads; `Err(None)` where nobody takes it.
async fn play(
    ask: &Ask,
    stream: StreamId,
    range: Range<Bytes>,
    taker: &Taker,
) -> Result<(), Option<String>> {
    let mut at = range.start;
    let told = |error: Error| Some(error.to_string());
    while at < range.end {
        let len_max = range.end.saturating_sub(at).min(Bytes::new(BODY_MAX as u64));
        let (read, handed) = ask.call_handed(calls::StreamRead { stream, len_max }).await;
        match read.map_err(told)? {
            Playout::Data { bytes: chunk, .. } => {
                let len = Bytes::new(chunk.bytes().len() as u64);
                // The window moves on when the client can take the next bytes.
                let room = taker.reserve().await.map_err(|_| None)?;
                room.send(Ok((bytes::Bytes::copy_from_slice(chunk.bytes()), handed)));
                ask.advance(stream, chunk, len).await.map_err(told)?;
                at += len;
            }
            Playout::Gap { offset, len } => {
                return Err(Some(format!("{len} from {offset} on could not be read in time")));
            }
            Playout::End => return Err(Some("the recorded bytes end here".into())),
        }
    }
    Ok(())
}
