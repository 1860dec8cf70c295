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
use std::future::poll_fn;
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
    /// What was there before the answer began.
    first: Option<Part>,
    /// What a task sends behind that; none where it was all that there is.
    parts: Option<mpsc::Receiver<Result<Part, Broken>>>,
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
        let came = match (self.first.take(), &mut self.parts) {
            (Some(first), _) => Some(Ok(first)),
            (None, Some(parts)) => ready!(parts.poll_recv(cx)),
            (None, None) => None,
        };
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
    (taker, Body::new(Coming { first: None, parts: Some(parts), left, ask, carriage, free: None }))
}

/// A body that is there.
fn whole((bytes, handed): Part, ask: Ask, carriage: Carriage) -> Body {
    let left = bytes.len() as u64;
    let first = Some((bytes, handed));
    Body::new(Coming { first, parts: None, left, ask, carriage, free: None })
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

/// A body that is read as best effort. One piece that is there at once is sent with the answer's
/// head; for all else there is a task, and the head is sent before it is known what can be read.
///
/// # Errors
/// The user has as many connections as he may have, or one piece was asked for and cannot be
/// read, which was known at once.
pub async fn best_effort(
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
    let reading = Reading { ask: ask.clone(), found, priority, account: Account::new(quota) };
    let mut pieces = pieces(range.start.get(), range.end.saturating_sub(range.start).get());
    if pieces.len() == 1 && !lane.is_promised() {
        let piece = pieces.next().expect("one");
        let mut one = Box::pin(reading.one(piece));
        // With the head it goes in one write, and needs no task to wake its connection.
        if let Poll::Ready(part) = poll_fn(|cx| Poll::Ready(one.as_mut().poll(cx))).await {
            return Ok(whole(part?, ask, carriage));
        }
        let (taker, body) = body(&range, ask, carriage);
        lane.spawn(async move {
            // The client may be gone.
            let _ = taker.send(one.await.map_err(|error| Broken(error.to_string()))).await;
        });
        return Ok(body);
    }
    let (taker, body) = body(&range, ask, carriage);
    lane.spawn(async move {
        if let Err(Some(error)) = reading.send(pieces, &taker).await {
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
    /// Reads one piece.
    async fn one(self, piece: Piece) -> Result<Part, Error> {
        let since = self.ask.0.now();
        let place = self.place(Some(piece)).await;
        let mut ahead = self.begin(since, piece, place);
        let came = ahead.coming.handed().await;
        ahead.part(came)
    }

    /// Sends some pieces, one after the other; `Err(None)` where nobody takes them. What was begun has
    /// ended by then: a client that is gone has its places until it has.
    async fn send(
        &self,
        left: impl Iterator<Item = Piece>,
        taker: &Taker,
    ) -> Result<(), Option<Error>> {
        let mut ahead = VecDeque::new();
        let sent = self.send_all(left, taker, &mut ahead).await;
        for mut begun in ahead {
            if begun.came.is_none() {
                drop(begun.coming.handed().await);
            }
        }
        sent
    }

    async fn send_all(
        &self,
        mut left: impl Iterator<Item = Piece>,
        taker: &Taker,
        ahead: &mut VecDeque<Ahead>,
    ) -> Result<(), Option<Error>> {
        let (mut next, mut since) = (left.next(), None);
        while next.is_some() || !ahead.is_empty() {
            let wanted = next.filter(|_| ahead.len() < AHEAD);
            // What it waits for from here on is in the clock of a contract.
            since = wanted.map(|_| since.unwrap_or_else(|| self.ask.0.now()));
            tokio::select! {
                biased;
                sent = send_first(ahead, taker), if !ahead.is_empty() => sent?,
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

impl Ahead {
    /// What has come of it.
    fn part(self, (came, handed): Came<calls::Read>) -> Result<Part, Error> {
        let held = Held { chunk: came?, piece: self.piece, _place: self.place };
        Ok((bytes::Bytes::from_owner(held), handed))
    }
}

/// Sends the piece that comes first. Nothing is lost where it is not waited for to the end.
async fn send_first(ahead: &mut VecDeque<Ahead>, taker: &Taker) -> Result<(), Option<Error>> {
    let first = ahead.front_mut().expect("asked only where there is one");
    if first.came.is_none() {
        first.came = Some(first.coming.handed().await);
    }
    let room = taker.reserve().await.map_err(|_| None)?;
    let mut first = ahead.pop_front().expect("looked at above");
    let came = first.came.take().expect("it came");
    room.send(Ok(first.part(came)?));
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
        buffered: true,
        grows_to_bytes: Bytes::ZERO,
        volume: found.known,
        mode: api::Mode::Read,
        contract,
        start_bytes: Some(range.start),
        shared_window: false,
        early: true,
    };
    let opened = open_stream(control, peer.clone(), request).await?;
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
    let most = |at| range.end.saturating_sub(at).min(Bytes::new(BODY_MAX as u64));
    let mut taken = None;
    while at < range.end {
        let (read, handed) = match taken.take() {
            Some(came) => came,
            None => ask.call_handed(calls::StreamRead { stream, len_max: most(at) }).await,
        };
        match read.map_err(told)? {
            Playout::Data { bytes: chunk, .. } => {
                let len = Bytes::new(chunk.bytes().len() as u64);
                // The window moves on when the client can take the next bytes.
                let room = taker.reserve().await.map_err(|_| None)?;
                room.send(Ok((bytes::Bytes::copy_from_slice(chunk.bytes()), handed)));
                at += len;
                taken = ask.advance(stream, (chunk, len), most(at)).await.map_err(told)?;
            }
            Playout::Gap { offset, len } => {
                return Err(Some(format!("{len} from {offset} on could not be read in time")));
            }
            Playout::End => return Err(Some("the recorded bytes end here".into())),
        }
    }
    Ok(())
}
