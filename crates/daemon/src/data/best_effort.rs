//! A best-effort connection: many requests at once, on one volume.
//!
//! Invariants: at most `OUTSTANDING_MAX` requests and `BEST_EFFORT_BYTES_MAX`
//! bytes are between their request and their answer, and of the user's connections
//! together no more bytes than his part; beyond that the connection is not read from.
//! Operations of a volume under contract for which the pool has memory set aside do not wait
//! for the user's part. What the contract promises counts from when a request's head was read,
//! without the time that the program takes to send a body. When a program ends it, every request under way has ended.

use super::account::Account;
use super::batch::Batch;
use super::frames::{Incoming, Outgoing, Over, misplaced};
use crate::limits::GOODBYE_WITHIN;
use crate::lock::{Mutex, MutexGuard};
use crate::pool::{Ask, Handed, Room};
use crate::quotas;
use crate::sessions::Stop;
use crate::timely::Lane;
use node::{Act, Error, Priority, Target, WriteRange, Writer, calls};
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
    ask: Ask,
    writer: Option<Writer>,
    output: Arc<Outgoing>,
    /// The first write that failed since the last sync.
    failed: Mutex<Option<Error>>,
    /// Which threads serve it: what answers under contract take from the pool to here is measured.
    lane: Lane,
}

/// A connection on which nothing was served yet.
pub struct Connection {
    pub place: quotas::Place,
    pub input: Incoming,
    pub output: Outgoing,
    pub ask: Ask,
    /// Who writes, where he wants to know of changes that are not his own.
    pub writer: Option<Writer>,
    pub stop: watch::Receiver<Stop>,
}

/// Serves best effort on `volume` until the program or the daemon ends it.
pub async fn serve(
    volume: String,
    priority: Option<Priority>,
    Connection { place, mut input, output, ask, writer, mut stop }: Connection,
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
    if let Some(socket) = lane.socket() {
        socket.hold_answers();
    }
    if output.send(welcome, &[]).await.is_err() {
        return;
    }
    let (gone, mut is_gone) = watch::channel(false);
    // No volume has such a name.
    let reserved = match ask.1.handle {
        Some(handle) => format!("{volume}/{}", handle.0),
        None => volume.clone(),
    };
    let (failed, output) = (Mutex::default(), Arc::new(output));
    let batch = Batch::new(Arc::clone(&ask.0), lane.clone(), Arc::clone(&output), gone.clone());
    let shared = Shared { volume, name, reserved, priority, ask, writer, output, failed, lane };
    let shared = Arc::new(shared);
    let account = Account::new(place);
    let over = tokio::select! {
        over = batch.serving(&account, take_requests(&mut input, &shared, &account, &batch)) => over,
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
        Over::Gone | Over::NotTaken | Over::ByRequest | Over::Silent(_) => {}
        Over::Failed(problem) => shared.output.fail_last(&problem).await,
        Over::Stopped(why) => shared.output.fail_last(&super::stop_problem(why)).await,
    }
}

async fn take_requests(
    input: &mut Incoming,
    shared: &Arc<Shared>,
    account: &Account,
    batch: &Batch,
) -> Over {
    loop {
        if let Err(over) = take_request(input, shared, account, batch).await {
            return over;
        }
        if !input.has_head() {
            batch.serve_alone();
        }
        batch.taken().await;
    }
}

async fn take_request(
    input: &mut Incoming,
    shared: &Arc<Shared>,
    account: &Account,
    batch: &Batch,
) -> Result<(), Over> {
    let (head, body) = input.head().await?;
    batch.came();
    let came = shared.ask.0.now();
    match head {
        Head::ReadAt { tag, offset, len } => {
            if len.get() > BODY_MAX as u64 {
                let rule = "at most 1 MiB at once";
                return shared.fail(tag, &Error::Invalid { what: "length", rule }).await;
            }
            let place = account.place(&shared.reserved, len, || shared.guaranteed()).await;
            let shared = Arc::clone(shared);
            batch.push(place, async move { shared.read(came, tag, offset, len).await });
            Ok(())
        }
        Head::WriteAt { tag, offset } => {
            let whole = WriteRange::new(offset, Bytes::new(body as u64));
            let range = WriteRange { writer: shared.writer, ..whole };
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
            let begun = shared.ask.0.now();
            if !input.has(body) {
                batch.serve(); // nobody waits for a body that is not there
            }
            input.fill(room.as_mut(), range.skip().as_usize(), body).await?;
            // What the program takes to send its bytes is its own time.
            let came = came + shared.ask.0.now().saturating_since(begun);
            let shared = Arc::clone(shared);
            batch.push(place, async move { shared.write(came, tag, range, room).await });
            Ok(())
        }
        Head::SyncAll { tag } => {
            let guaranteed = || shared.guaranteed();
            let place = account.place(&shared.reserved, Bytes::ZERO, guaranteed).await;
            // A write before it that is refused at once fails it.
            batch.serve();
            let shared = Arc::clone(shared);
            batch.push(place, async move { shared.sync(tag).await });
            Ok(())
        }
        other => Err(misplaced(other, "best effort")),
    }
}

impl Shared {
    /// Operations for which the pool has memory set aside, where this handle is under its
    /// volume's contract.
    fn guaranteed(&self) -> u64 {
        self.ask.guaranteed(&self.volume, self.priority)
    }

    /// Memory for a write.
    async fn room(&self, range: WriteRange) -> Result<Box<dyn Room>, Error> {
        let Self { volume, priority, .. } = self;
        let target = Target { volume: volume.clone(), offset: range.offset, priority: *priority };
        self.ask.call(calls::Room { len: range.room(), target: Some(target) }).await
    }

    async fn read(&self, came: Instant, tag: u64, offset: Bytes, len: Bytes) -> Result<(), Over> {
        let (volume, priority) = (self.volume.clone(), self.priority);
        let read = calls::Read { volume, offset, len, priority };
        let (read, handed) = self.ask.call_since(came, read).await;
        match read {
            Ok(chunk) => self.answer(Head::ReadDone { tag }, chunk.bytes(), handed).await,
            Err(error) => self.fail(tag, &error).await,
        }
    }

    async fn write(
        &self,
        came: Instant,
        tag: u64,
        range: WriteRange,
        room: Box<dyn Room>,
    ) -> Result<(), Over> {
        // Who has gone without an answer may have written anew since, by another connection: what
        // waited here for its turn, for a thread, or in the socket, would come over that.
        if self.lane.is_abandoned() {
            return Err(Over::Gone);
        }
        let (volume, priority) = (self.volume.clone(), self.priority);
        let (written, handed) = self.ask.write(came, volume, priority, range, room).await;
        match written {
            Ok(()) => self.answer(Head::WriteDone { tag }, &[], handed).await,
            Err(error) => {
                self.failed().get_or_insert(error.clone());
                self.fail(tag, &error).await
            }
        }
    }

    /// Makes durable what was written. A write of this connection that has failed since
    /// the last sync fails this one, too, and once: a program that looks at its syncs only
    /// hears of it, and nobody else does.
    async fn sync(&self, tag: u64) -> Result<(), Over> {
        let failed = self.failed().take();
        let synced = self.ask.call(calls::Sync {}).await;
        match failed.map_or(synced, Err) {
            Ok(()) => self.output.send(Head::SyncDone { tag }, &[]).await,
            Err(error) => self.fail(tag, &error).await,
        }
    }

    /// Sends an answer that the pool handed out then. What is promised waits for no other one.
    async fn answer(&self, head: Head, body: &[u8], handed: Handed) -> Result<(), Over> {
        match handed.is_promised() {
            true => self.output.send(head, body).await?,
            false => self.output.answer_with(head, body).await?,
        }
        self.lane.answered(handed.is_promised());
        self.ask.delivered(&self.output.excusing(handed));
        Ok(())
    }

    fn failed(&self) -> MutexGuard<'_, Option<Error>> {
        self.failed.lock()
    }

    async fn fail(&self, tag: u64, error: &Error) -> Result<(), Over> {
        self.lane.answered(false); // nothing is promised of what is refused
        let error = match error {
            Error::NoSuchVolume { .. } => &Error::NoSuchVolume { name: self.name.clone() },
            error => error,
        };
        self.output.fail(tag, &crate::problem::of(error)).await
    }
}
