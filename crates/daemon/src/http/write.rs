//! The body of a request: bytes that go into a volume.
//!
//! Invariants: space is there before a byte is taken, where the request says how many there are;
//! what came before an error is written all the same, and none of it is said to be durable, but
//! nothing more is written for a program that has gone; what is in memory is counted as the user's
//! (`data::account`), and is his for as long as his bytes come at a [`Pace`].

use super::Found;
use super::conditions::Destination;
use crate::api::{Control, Failure, Resize, Staged, resized};
use crate::control::Turn;
use crate::data::account::{self, Account};
use crate::limits::{FRAME_WITHIN, MOVED_MIN};
use crate::other_end::OtherEnd;
use crate::pace::Pace;
use crate::pieces::{Piece, pieces};
use crate::pool::{Ask, Room};
use crate::quotas::Peer;
use axum::body::Body;
use hyper::body::Body as _;
use node::{Error, Priority, Target, WriteRange, calls};
use std::pin::Pin;
use std::sync::Arc;
use store::EXTENT;
use tokio::task::JoinSet;
use units::Bytes;
use wire::{Code, Problem};

/// What a program sends.
pub struct Sent {
    pub body: Body,
    /// The request's, which is ended when bytes are counted instead.
    pub turn: Turn,
    /// Whether the program is there.
    pub other_end: Arc<OtherEnd>,
}

/// Takes a body into a volume, and makes it durable.
pub async fn write(
    control: &Control,
    peer: &Peer,
    found: Found,
    place: Destination,
    priority: Option<Priority>,
    Sent { body, turn, other_end }: Sent,
) -> Result<(), Failure> {
    if found.status.start.is_some() {
        let what = format!(
            "volume {} is a ring, which takes no bytes but those of a stream",
            found.status.name
        );
        let next = "record to it with `slackline record`, a library or the socket";
        return Err(Problem::new(Code::Invalid, what, next).into());
    }
    let size = found.status.size;
    // Where nothing is said, as much as fits: it is known when it is there.
    let end = place.end().ok_or_else(too_large)?.unwrap_or(size);
    let recorded = found.status.length;
    match place.len {
        Some(len) if place.is_whole && len < recorded => return Err(would_cut(&found, end)),
        None if !recorded.is_zero() => return Err(unknown_length(&found)),
        _ => {}
    }
    if end > size {
        let size = EXTENT.saturating_mul(end.div_ceil(EXTENT));
        resized(
            control,
            peer,
            (&found.known, size, Resize::AtLeast(Bytes::ZERO)),
            Staged::default(),
        )
        .await?;
    }
    let quota = control.quotas.connect(peer)?;
    // The bytes of the body are counted instead.
    turn.end();
    let priority = quota.granted(priority);
    let ask = control.by(peer);
    let writing = Writing { ask, found, priority, account: Account::new(quota), other_end };
    let mut bytes = Incoming::new(body);
    let range = place.offset..end;
    let (taken, came) = writing.take(&mut bytes, range, place.len.is_none()).await;
    // What was taken is written, whatever came after it.
    taken?;
    came?;
    Ok(writing.ask.call(calls::Sync {}).await?)
}

struct Writing {
    ask: Ask,
    found: Found,
    priority: Option<Priority>,
    account: Account,
    other_end: Arc<OtherEnd>,
}

type Written = Result<(), Failure>;

impl Writing {
    /// Takes bytes and writes them, piece by piece: how the writes have ended, and the bytes.
    /// With `is_open` they may end before the range does.
    async fn take(
        &self,
        bytes: &mut Incoming,
        range: std::ops::Range<Bytes>,
        is_open: bool,
    ) -> (Written, Written) {
        let mut under_way = JoinSet::new();
        let mut came = Ok(());
        let len = range.end.saturating_sub(range.start);
        for piece in pieces(range.start.get(), len.get()) {
            match self.take_one(bytes, piece, &mut under_way).await {
                Ok(true) => {}
                Ok(false) if is_open => break,
                Ok(false) => {
                    came = Err(short());
                    break;
                }
                Err(failure) => {
                    came = Err(failure);
                    break;
                }
            }
            if let Some(ended) = under_way.try_join_next()
                && let Err(error) = ended.unwrap_or(Err(Error::ShuttingDown))
            {
                under_way.join_all().await;
                return (Err(error.into()), came);
            }
        }
        if came.is_ok() && is_open && bytes.next().await.is_ok_and(|more| more) {
            came = Err(Error::VolumeFull { size: self.found.status.size }.into());
        }
        let ended = under_way.join_all().await.into_iter().collect::<Result<(), Error>>();
        (ended.map_err(Failure::from), came)
    }

    /// Takes a piece, and begins to write what came of it; true where all of it did.
    async fn take_one(
        &self,
        bytes: &mut Incoming,
        piece: Piece,
        under_way: &mut JoinSet<Result<(), Error>>,
    ) -> Result<bool, Failure> {
        if !bytes.next().await? {
            return Ok(false);
        }
        let mut arrived = self.ask.0.now();
        let name = &self.found.known;
        let guaranteed = || self.ask.guaranteed(name, self.priority);
        let place = self.account.place(name, piece.blocks().1, guaranteed).await;
        let all = WriteRange::new(Bytes::new(piece.offset), Bytes::new(u64::from(piece.len)));
        let target = Target { volume: name.clone(), offset: all.offset, priority: self.priority };
        let mut room = self.ask.call(calls::Room { len: all.room(), target: Some(target) }).await?;
        // What was waited for here was not the client.
        bytes.pace = Pace::new(FRAME_WITHIN);
        let memory = &mut room.bytes_mut()[all.skip().as_usize()..][..piece.len as usize];
        let mut filled = 0;
        let came = loop {
            filled += bytes.fill(&mut memory[filled..]);
            if filled == memory.len() {
                break Ok(true);
            }
            // What the client takes to send its bytes is its own time; what it waits for its place and
            // for memory is not.
            let asked = self.ask.0.now();
            let next = bytes.next().await;
            arrived += self.ask.0.now().saturating_since(asked);
            match next {
                Ok(true) => {}
                other => break other,
            }
        };
        // Who has gone without an answer may have written anew since, by another connection: what waited
        // here for its turn, or in the socket, would come over that.
        if self.other_end.is_abandoned() {
            return Err(short());
        }
        if filled > 0 {
            let range = WriteRange::new(all.offset, Bytes::new(filled as u64));
            let (ask, name, priority) = (self.ask.clone(), name.clone(), self.priority);
            let other_end = Arc::clone(&self.other_end);
            under_way.spawn(async move {
                // A thread for this may have come late.
                if other_end.is_abandoned() {
                    let rule = "a client that waits for the answer";
                    return Err(Error::Invalid { what: "connection", rule });
                }
                one(ask, arrived, name, priority, range, room, place).await
            });
        }
        came
    }
}

async fn one(
    ask: Ask,
    arrived: units::Instant,
    volume: String,
    priority: Option<Priority>,
    range: WriteRange,
    room: Box<dyn Room>,
    place: account::Place,
) -> Result<(), Error> {
    let (ended, _) = ask.write(arrived, volume, priority, range, room).await;
    drop(place);
    ended
}

/// A body as its bytes come.
struct Incoming {
    body: Body,
    rest: bytes::Bytes,
    pace: Pace,
}

impl Incoming {
    fn new(body: Body) -> Self {
        Self { body, rest: bytes::Bytes::new(), pace: Pace::new(FRAME_WITHIN) }
    }

    /// Waits for bytes; false where there are no more.
    async fn next(&mut self) -> Result<bool, Failure> {
        while self.rest.is_empty() {
            let frame = std::future::poll_fn(|cx| Pin::new(&mut self.body).poll_frame(cx));
            match self.pace.next(frame).await {
                None => return Err(late()),
                Some(None) => return Ok(false),
                Some(Some(Err(_))) => return Err(short()),
                Some(Some(Ok(frame))) => self.rest = frame.into_data().unwrap_or_default(),
            }
            self.pace.moved(self.rest.len());
        }
        Ok(true)
    }

    /// Moves what there is into `memory`; gives how much that was.
    fn fill(&mut self, memory: &mut [u8]) -> usize {
        let len = memory.len().min(self.rest.len());
        memory[..len].copy_from_slice(&self.rest.split_to(len));
        len
    }
}

fn late() -> Failure {
    let within = FRAME_WITHIN.as_secs();
    let detail = format!("fewer than {MOVED_MIN} bytes of the body came in {within} s");
    Problem::new(Code::BadRequest, detail, "HEAD tells how far the bytes came; go on there").into()
}

fn short() -> Failure {
    let detail = "the body ended before its end";
    Problem::new(Code::BadRequest, detail, "HEAD tells how far the bytes came; go on there").into()
}

fn too_large() -> Failure {
    let detail = "no volume is so long";
    Problem::new(Code::TooLarge, detail, "write to where a volume can be").into()
}

fn unknown_length(found: &Found) -> Failure {
    let recorded = found.status.length;
    let detail =
        format!("the volume has {recorded} recorded, and the body does not say its length");
    let next = "send `content-length`, or `content-range` for a part";
    Problem::new(Code::WouldCut, detail, next).into()
}

fn would_cut(found: &Found, end: Bytes) -> Failure {
    let (name, recorded) = (found.name.clone(), found.status.length);
    let problem = crate::problem::of(&Error::WouldCut { name, recorded, size: end });
    // Nobody can say here that the rest may be lost.
    let next = "delete the volume first, or write a part of it with `content-range`";
    Problem { next_step: next.into(), ..problem }.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::body::Frame;
    use std::convert::Infallible;
    use std::task::{Context, Poll, ready};
    use std::time::Duration;
    use tokio::time::{Instant, Interval, interval};

    /// A body of which so much comes at a time.
    struct Coming(Interval, usize);

    impl hyper::body::Body for Coming {
        type Data = bytes::Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<bytes::Bytes>, Infallible>>> {
            ready!(self.0.poll_tick(cx));
            Poll::Ready(Some(Ok(Frame::data(vec![7; self.1].into()))))
        }
    }

    /// Before, who sent a byte each 9 s had a piece's memory for as long as he liked.
    #[tokio::test(start_paused = true)]
    async fn a_body_in_drops_ends_as_one_that_stops() {
        const EACH: Duration = Duration::from_secs(9);
        for (len, ends) in [(1, true), (MOVED_MIN, false)] {
            let mut bytes = Incoming::new(Body::new(Coming(interval(EACH), len)));
            let (since, mut came) = (Instant::now(), 0);
            let failure = loop {
                match bytes.next().await {
                    Ok(more) => assert!(more),
                    Err(failure) => break Some(failure),
                }
                came += bytes.fill(&mut [0; MOVED_MIN]);
                if since.elapsed() > 100 * EACH {
                    break None;
                }
            };
            assert_eq!(failure.is_some(), ends, "{came} bytes in {:?}", since.elapsed());
            assert!(!ends || since.elapsed() <= 2 * FRAME_WITHIN, "{:?}", since.elapsed());
        }
    }
}
