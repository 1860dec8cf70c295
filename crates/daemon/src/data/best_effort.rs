//! A best-effort connection: many requests at once, on one volume.
//!
//! Invariants: at most `OUTSTANDING_MAX` requests and `BEST_EFFORT_BYTES_MAX`
//! bytes are between their request and their answer, and of the user's connections
//! together no more bytes than his part; beyond that the connection is not read from.
//! Operations of a volume under contract for which the pool has memory set aside do not wait
//! for the user's part. What the contract promises counts from when a request's head was read,
//! without the time that the program takes to send a body. When a program ends it, every request under way has ended.

use super::account::{Account, Place};
use super::answers::{Body, Way};
use super::frames::{Incoming, Outgoing, Over, misplaced};
use crate::limits::GOODBYE_WITHIN;
use crate::lock::{Mutex, MutexGuard};
use crate::pool::{Answer, Ask, Room};
use crate::quotas;
use crate::sessions::Stop;
use crate::timely::Lane;
use node::{Act, Error, Op, Priority, Target, WriteRange};
use std::sync::Arc;
use tokio::sync::watch;
use units::{Bytes, Instant};
use wire::frame::{BODY_MAX, Head, VERSION};

/// What the requests of one connection share.
struct Shared {
    /// The number of the volume behind a slash: it is this one, whatever name it gets.
    volume: String,
    /// The name that the program knows.
    name: String,
    /// Whose memory that is set aside is used: the volume's, or this handle's.
    reserved: String,
    /// What the program stated in its hello.
    priority: Option<Priority>,
    way: Arc<Way>,
    /// The first write that failed since the last sync.
    failed: Mutex<Option<Error>>,
}

/// A connection on which nothing was served yet.
pub struct Connection {
    pub place: quotas::Place,
    pub input: Incoming,
    pub output: Outgoing,
    pub ask: Ask,
    pub stop: watch::Receiver<Stop>,
}

/// Serves best effort on `volume` until the program or the daemon ends it.
pub async fn serve(
    volume: String,
    priority: Option<Priority>,
    Connection { place, mut input, output, ask, mut stop }: Connection,
    lane: Lane,
) {
    // Which of the two he may do, the pool holds each request to.
    let either = [Act::Read, Act::Write];
    let (name, volume) = (volume.clone(), ask.0.known(volume));
    let found = match crate::view::volume(ask.0.volume(&volume), &ask.1, &name, &either) {
        Ok(found) => found,
        Err(error) => return output.fail_last(&crate::problem::of(&error)).await,
    };
    let welcome = Head::Welcome { version: VERSION, offset: Bytes::ZERO, len: found.end() };
    if output.send(welcome, &[]).await.is_err() {
        return;
    }
    // No volume has such a name.
    let reserved = match ask.1.handle {
        Some(handle) => format!("{volume}/{}", handle.0),
        None => volume.clone(),
    };
    let (way, failed) = (Way::new(ask, output, lane), Mutex::default());
    let mut is_gone = way.gone.subscribe();
    let shared = Arc::new(Shared { volume, name, reserved, priority, way, failed });
    let account = Account::new(place);
    let over = tokio::select! {
        over = take_requests(&mut input, &shared, &account) => over,
        _ = is_gone.wait_for(|&gone| gone) => Over::Gone,
        why = super::stopped(&mut stop) => Over::Stopped(why),
    };
    match over {
        // The daemon stops: a program that takes no answers is not waited for.
        Over::Stopped(_) => drop(tokio::time::timeout(GOODBYE_WITHIN, account.quiet()).await),
        _ => account.quiet().await,
    }
    match over {
        // Only streams are asked for signs of life.
        Over::Gone | Over::ByRequest | Over::Silent(_) => {}
        Over::Failed(problem) => shared.way.output.fail_last(&problem).await,
        Over::Stopped(why) => shared.way.output.fail_last(&super::stop_problem(why)).await,
    }
}

async fn take_requests(input: &mut Incoming, shared: &Arc<Shared>, account: &Account) -> Over {
    loop {
        match take_request(input, shared, account).await {
            Ok(()) => {}
            Err(over) => return over,
        }
    }
}

async fn take_request(
    input: &mut Incoming,
    shared: &Arc<Shared>,
    account: &Account,
) -> Result<(), Over> {
    let (head, body) = input.head().await?;
    let came = shared.way.ask.0.now();
    match head {
        Head::ReadAt { tag, offset, len } => {
            if len.get() > BODY_MAX as u64 {
                let rule = "at most 1 MiB at once";
                return shared.fail(tag, &Error::Invalid { what: "length", rule }).await;
            }
            let place = account.place(&shared.reserved, len, || shared.guaranteed()).await;
            shared.read(place, came, tag, (offset, len));
            Ok(())
        }
        Head::WriteAt { tag, offset, padding } => {
            let range = WriteRange { offset, len: Bytes::new(body as u64), padding };
            let guaranteed = || shared.guaranteed();
            let place = account.place(&shared.reserved, range.room(), guaranteed).await;
            let mut room = match shared.room(range).await {
                Ok(room) => room,
                Err(error) => {
                    input.discard(body).await?;
                    shared.failed().get_or_insert(error.clone());
                    return shared.fail(tag, &error).await;
                }
            };
            let begun = shared.way.ask.0.now();
            input.fill(room.as_mut(), range.skip().as_usize(), body).await?;
            // What the program takes to send its bytes is its own time.
            let came = came + shared.way.ask.0.now().saturating_since(begun);
            shared.write(place, came, tag, (range, room));
            Ok(())
        }
        Head::SyncAll { tag } => {
            let guaranteed = || shared.guaranteed();
            let place = account.place(&shared.reserved, Bytes::ZERO, guaranteed).await;
            let synced = Arc::clone(shared);
            shared.way.serve(place, |_| async move { synced.sync(tag).await });
            Ok(())
        }
        other => Err(misplaced(other, "best effort")),
    }
}

impl Shared {
    /// Operations for which the pool has memory set aside, where this handle is under its
    /// volume's contract.
    fn guaranteed(&self) -> u64 {
        self.way.ask.guaranteed(&self.volume, self.priority)
    }

    /// Memory for a write.
    async fn room(&self, range: WriteRange) -> Result<Box<dyn Room>, Error> {
        let Self { volume, priority, .. } = self;
        let target = Target { volume: volume.clone(), offset: range.offset, priority: *priority };
        self.way.ask.room(Op::Room { len: range.room(), target: Some(target) }).await
    }

    fn read(
        self: &Arc<Self>,
        place: Place,
        came: Instant,
        tag: u64,
        (offset, len): (Bytes, Bytes),
    ) {
        let (volume, priority, shared) = (self.volume.clone(), self.priority, Arc::clone(self));
        let read = Op::Read { volume, offset, len, priority };
        self.way.ask.op_then(came, read, move |read, handed| match read {
            Ok(Answer::Data { chunk, .. }) => {
                let len = chunk.bytes().len();
                let head = Head::ReadDone { tag }.encode(len);
                shared.way.give(place, &head, Body::Read(chunk, 0..len), handed);
            }
            Ok(_) => unreachable!("the pool answers a read with data"),
            Err(error) => shared.fail_beside(place, tag, error),
        });
    }

    fn write(
        self: &Arc<Self>,
        place: Place,
        came: Instant,
        tag: u64,
        (range, room): (WriteRange, Box<dyn Room>),
    ) {
        let (of, shared) = ((self.volume.clone(), self.priority), Arc::clone(self));
        self.way.ask.write_then(came, of, range, room, move |written, handed| match written {
            Ok(_) => {
                let head = Head::WriteDone { tag }.encode(0);
                shared.way.give(place, &head, Body::None, handed);
            }
            Err(error) => {
                shared.failed().get_or_insert(error.clone());
                shared.fail_beside(place, tag, error);
            }
        });
    }

    /// Makes durable what was written. A write of this connection that has failed since
    /// the last sync fails this one, too, and once: a program that looks at its syncs only
    /// hears of it, and nobody else does.
    async fn sync(&self, tag: u64) -> Result<(), Over> {
        let failed = self.failed().take();
        let synced = self.way.ask.done(Op::Sync).await;
        match failed.map_or(synced, Err) {
            Ok(()) => self.way.output.send(Head::SyncDone { tag }, &[]).await,
            Err(error) => self.fail(tag, &error).await,
        }
    }

    fn failed(&self) -> MutexGuard<'_, Option<Error>> {
        self.failed.lock()
    }

    /// Says beside the other requests that one has failed.
    fn fail_beside(self: &Arc<Self>, place: Place, tag: u64, error: Error) {
        let failed = Arc::clone(self);
        self.way.serve(place, |_| async move { failed.fail(tag, &error).await });
    }

    async fn fail(&self, tag: u64, error: &Error) -> Result<(), Over> {
        self.way.lane.answered(false); // nothing is promised of what is refused
        let error = match error {
            Error::NoSuchVolume { .. } => &Error::NoSuchVolume { name: self.name.clone() },
            error => error,
        };
        self.way.output.fail(tag, &crate::problem::of(error)).await
    }
}
