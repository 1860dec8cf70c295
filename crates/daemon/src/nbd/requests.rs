//! The requests of one connection, served beside each other.
//!
//! Where replies are structured, each piece of a read is sent when it is there. A read that has
//! to be answered in one reply is gathered in memory of the daemon's own.
//!
//! Invariants: nothing is said of a volume but by the pool, on the client's behalf, which holds
//! each request to the volume's permissions; what the pool does not say is no hole.

use super::Input;
use crate::data::account::Account;
use crate::data::batch::Batch;
use crate::data::frames::{Outgoing, Over};
use crate::gathers::OfUser;
use crate::limits::{FRAME_WITHIN, within};
use crate::lock::Mutex;
use crate::pace;
use crate::pieces::{Piece, pieces};
use crate::pool::{Ask, Chunk, Handed, Room};
use crate::timely::Lane;
use node::{Error, Priority, Target, VolumeId, WriteRange, calls};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use tokio::io::{AsyncBufReadExt, AsyncReadExt};
use tokio::sync::watch;
use units::{Bytes, Instant};
use wire::frame::BODY_MAX;
use wire::nbd::PAYLOAD_MAX;
use wire::nbd::handshake::Chosen;
use wire::nbd::transmission::{self as reply, Command, Errno, Extent, REQUEST_LEN, Request};

/// Extents that one reply tells at the most: a client asks again for the rest.
const EXTENTS_MAX: usize = 1024;
/// A read in one reply that is larger is one of few ([`gathers`](crate::gathers)).
const GATHER_MAX: u64 = 4 << 20;
/// Shorter pieces are read without asking whether anything was written there.
const HOLE_MIN: u32 = 64 << 10;
/// Looks at the pool for one such reply at the most; each is short, and the next comes later.
const LOOKS_MAX: usize = 16;

/// An export that a client has chosen.
pub struct Device(Arc<Shared>);

struct Shared {
    /// How the pool is asked for the volume that was there when the client chose it.
    volume: String,
    id: VolumeId,
    /// What memory that is set aside is counted by.
    reserved: String,
    priority: Option<Priority>,
    chosen: Chosen,
    ask: Ask,
    output: Arc<Outgoing>,
    /// Which threads serve it.
    lane: Lane,
    /// Large reads in one reply.
    gathers: OfUser,
    /// Set when the client does not take its replies.
    gone: watch::Sender<bool>,
    /// Failures of writes that were answered before they were on their disk, of which this client knows.
    failures_told: AtomicU64,
}

/// What of a volume is durable when a request is answered.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Durable {
    Nothing,
    /// What the request itself has written.
    Own,
    /// All that was answered before.
    All,
}

impl From<bool> for Durable {
    fn from(is_durable: bool) -> Self {
        if is_durable { Self::Own } else { Self::Nothing }
    }
}

/// A request that is served in several parts.
struct Whole {
    cookie: u64,
    /// What is durable before it is answered.
    durable: Durable,
    is_one: bool,
    /// Parts that have not ended.
    parts: AtomicUsize,
    failed: Mutex<Option<Error>>,
    /// When the pool was done with the parts that are answered together, so far.
    handed: Mutex<Option<Handed>>,
}

impl Whole {
    fn new(cookie: u64, durable: impl Into<Durable>, parts: usize) -> Arc<Self> {
        let durable = durable.into();
        let (is_one, parts) = (parts == 1, AtomicUsize::new(parts));
        let (failed, handed) = (Mutex::default(), Mutex::default());
        Arc::new(Self { cookie, durable, is_one, parts, failed, handed })
    }

    fn fail(&self, error: Error) {
        self.failed.lock().get_or_insert(error);
    }

    /// One part has ended; true for the last.
    fn is_last(&self) -> bool {
        self.parts.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// What was done until now is to be answered from now on.
    fn go_on(&self) {
        let mut all = self.handed.lock();
        *all = all.take().map(|handed| handed.or_later(Handed::now()));
    }

    /// The pool is done with a part that is answered with others.
    fn done(&self, handed: Handed) {
        let mut all = self.handed.lock();
        *all = Some(all.map_or(handed, |all| all.with(handed)));
    }

    fn is_sound(&self) -> bool {
        self.failed.lock().is_none()
    }

    fn error(&self) -> Option<Error> {
        self.failed.lock().take()
    }
}

impl Device {
    /// On a volume, for a client that has been told [`Chosen::export`].
    pub fn new(
        (volume, id): (String, VolumeId),
        priority: Option<Priority>,
        chosen: Chosen,
        ask: Ask,
        (output, lane, gathers): (Arc<Outgoing>, Lane, OfUser),
    ) -> Self {
        let (reserved, gone) = (volume.clone(), watch::Sender::new(false));
        let failures_told = AtomicU64::new(ask.0.failures_told(&volume));
        let shared = Shared {
            volume,
            id,
            reserved,
            priority,
            chosen,
            ask,
            output,
            lane,
            gathers,
            gone,
            failures_told,
        };
        Self(Arc::new(shared))
    }

    /// Tells the client that nothing more comes.
    pub async fn end(&self) {
        self.0.output.end().await;
    }

    /// Becomes true when the client does not take its replies.
    pub fn is_gone(&self) -> watch::Receiver<bool> {
        self.0.gone.subscribe()
    }
}

/// Takes requests until the client ends it.
pub async fn take(device: &Device, input: &mut Input, account: &Account) -> Over {
    let shared = &device.0;
    let Shared { ask, lane, output, gone, .. } = &**shared;
    let batch = Batch::new(Arc::clone(&ask.0), lane.clone(), Arc::clone(output), gone.clone());
    let taking = async {
        loop {
            if let Err(over) = take_one(shared, input, account, &batch).await {
                return over;
            }
            if input.buffer().len() < REQUEST_LEN {
                batch.serve_alone();
            }
            batch.taken().await;
        }
    };
    batch.serving(account, taking).await
}

async fn take_one(
    shared: &Arc<Shared>,
    input: &mut Input,
    account: &Account,
    batch: &Batch,
) -> Result<(), Over> {
    // A client may be silent between two requests for as long as it likes.
    input.fill_buf().await?;
    let mut head = [0; REQUEST_LEN];
    in_time(input.read_exact(&mut head)).await?;
    batch.came();
    let came = shared.ask.0.now();
    let Ok(request) = Request::decode(&head) else { return Err(Over::Gone) };
    let cookie = request.cookie;
    let place = |len: Bytes| account.place(&shared.reserved, len, || shared.guaranteed());
    // Serves a part of a request beside the others.
    let again = || Arc::clone(shared);
    match request.command(&shared.chosen) {
        Err(error) => {
            discard(input, request.payload()).await?;
            shared.refuse(&request, error).await
        }
        Ok(Command::Disconnect) => Err(Over::ByRequest),
        Ok(Command::Flush) => {
            let place = place(Bytes::ZERO).await;
            let whole = Whole::new(cookie, Durable::All, 1);
            let shared = again();
            batch.push(place, async move { shared.ended(&whole).await });
            Ok(())
        }
        // A volume keeps the space that it has, a thin one also: nothing is gained by forgetting bytes.
        Ok(Command::Trim { durable, .. }) => {
            let place = place(Bytes::ZERO).await;
            let whole = Whole::new(cookie, durable, 1);
            let shared = again();
            batch.push(place, async move { shared.ended(&whole).await });
            Ok(())
        }
        Ok(Command::Read { offset, len, in_one }) => {
            let pieces = pieces(offset, len.into());
            if in_one && pieces.len() != 1 {
                return shared.gather(came, cookie, (offset, len), account).await;
            }
            if pieces.len() == 0 {
                return shared.output.send_parts(&reply::none(cookie), &[]).await;
            }
            let whole = Whole::new(cookie, false, pieces.len());
            for piece in pieces {
                let (place, whole) = (place(piece.blocks().1).await, Arc::clone(&whole));
                let shared = again();
                batch.push(place, async move { shared.read(came, piece, &whole).await });
            }
            Ok(())
        }
        Ok(Command::Write { offset, len, durable }) => {
            let pieces = pieces(offset, len.into());
            // Several have their places before the first of them is written, or none of them is. Of a
            // single one the pool looks at that itself.
            if pieces.len() > 1
                && let Err(error) = shared.place(offset, len).await
            {
                discard(input, len).await?;
                return shared.fail(cookie, false, &error).await;
            }
            // Of several one part more, which ends when all bytes have been read.
            let is_one = pieces.len() == 1;
            let whole = Whole::new(cookie, durable, pieces.len() + usize::from(!is_one));
            // What the client takes to send its bytes is its own time; what it waits for its places and
            // for memory is not.
            let mut came = came;
            for piece in pieces {
                let place = place(piece.blocks().1).await;
                let mut room = match shared.room(piece).await {
                    Ok(room) => room,
                    Err(error) => {
                        discard(input, piece.len).await?;
                        whole.fail(error);
                        shared.part(&whole).await?;
                        continue;
                    }
                };
                let range = piece.range();
                let bytes = &mut room.bytes_mut()[range.skip().as_usize()..][..piece.len as usize];
                if input.buffer().len() < bytes.len() {
                    batch.serve(); // nobody waits for bytes that are not there
                }
                let begun = shared.ask.0.now();
                pace::fill(input, bytes).await.ok_or(Over::Gone)??;
                came += shared.ask.0.now().saturating_since(begun);
                let (shared, whole) = (again(), Arc::clone(&whole));
                batch.push(place, async move { shared.write(came, piece, room, &whole).await });
            }
            if is_one {
                return Ok(());
            }
            let place = place(Bytes::ZERO).await;
            // What it waited for its place is its own time.
            whole.go_on();
            let shared = again();
            batch.push(place, async move { shared.part(&whole).await });
            Ok(())
        }
        Ok(Command::WriteZeroes { offset, len, durable }) => {
            // One after the other, so that one request does not have all of the memory. What was
            // never written is zeros already; a write that is under way has no order with this.
            let whole = Whole::new(cookie, durable, 1);
            let mut at = 0;
            while at < len && whole.is_sound() {
                let rest = Piece { offset: offset + u64::from(at), len: len - at };
                // A look has its turn among the user's requests. It is given back before the
                // writes have theirs: whoever kept one and waited for another, on as many
                // connections as he may have requests, would wait for ever.
                let turn = place(Bytes::ZERO).await;
                let looked = shared.runs(rest).await;
                drop(turn);
                at += match looked {
                    Ok((runs, looked_at)) => {
                        let data = runs.into_iter().filter(|run| !run.is_hole);
                        for piece in data.flat_map(|run| pieces(run.offset, run.len.into())) {
                            let _place = place(piece.blocks().1).await;
                            if let Err(error) = shared.zero(came, piece).await? {
                                whole.fail(error);
                                break;
                            }
                        }
                        looked_at
                    }
                    Err(error) => {
                        whole.fail(error);
                        break;
                    }
                };
            }
            shared.ended(&whole).await
        }
        Ok(Command::BlockStatus { offset, len, one }) => {
            let place = place(Bytes::ZERO).await;
            let piece = Piece { offset, len };
            let shared = again();
            batch.push(place, async move {
                let most = if one { 1 } else { EXTENTS_MAX };
                match shared.extents(piece, most).await {
                    Ok(extents) => {
                        shared.output.send_parts(&reply::status(cookie, &extents), &[]).await
                    }
                    Err(error) => shared.fail(cookie, true, &error).await,
                }
            });
            Ok(())
        }
    }
}

/// A part of an export that was written, or never was.
struct Run {
    offset: u64,
    len: u32,
    is_hole: bool,
}

impl Shared {
    /// Operations for which the pool has memory set aside, where this export is under its
    /// volume's contract.
    fn guaranteed(&self) -> u64 {
        self.ask.guaranteed(&self.volume, self.priority)
    }

    /// Places for all of a write to a thin volume, or an error, and then it has none that it had not.
    async fn place(&self, offset: u64, len: u32) -> Result<(), Error> {
        const { assert!(PAYLOAD_MAX as u64 <= node::limits::PLACES_MAX.get()) };
        let (offset, len) = (Bytes::new(offset), Bytes::new(len.into()));
        self.ask.call(calls::Place { volume: self.volume.clone(), offset, len }).await
    }

    /// Memory for a write.
    async fn room(&self, piece: Piece) -> Result<Box<dyn Room>, Error> {
        let (range, priority) = (piece.range(), self.priority);
        let target = Target { volume: self.volume.clone(), offset: range.offset, priority };
        self.ask.call(calls::Room { len: range.room(), target: Some(target) }).await
    }

    /// The whole blocks around a piece.
    async fn blocks(&self, came: Instant, piece: Piece) -> (Result<Box<dyn Chunk>, Error>, Handed) {
        let ((offset, len), volume) = (piece.blocks(), self.volume.clone());
        let read = calls::Read { volume, offset, len, priority: self.priority };
        self.ask.call_since(came, read).await
    }

    /// What of a range was ever written, as far as one look at the pool says it: runs from its
    /// start on, and how much they are together. Others have their turn afterwards.
    async fn runs(&self, range: Piece) -> Result<(Vec<Run>, u32), Error> {
        let (start, end) = (Bytes::new(range.offset), range.offset + u64::from(range.len));
        let Ask(pool, who) = &self.ask;
        let told = pool.written(who, (&self.volume, self.id), start..Bytes::new(end))?;
        let mut offset = range.offset;
        let runs = told.into_iter().map(|(len, is_written)| {
            let run = Run { offset, len: len.get() as u32, is_hole: !is_written };
            offset += len.get();
            run
        });
        let runs: Vec<Run> = runs.collect();
        tokio::task::yield_now().await;
        Ok((runs, (offset - range.offset) as u32))
    }

    /// Whether nothing was ever written in a piece that is long enough to ask.
    async fn is_hole(&self, piece: Piece) -> Result<bool, Error> {
        Ok(piece.len >= HOLE_MIN && self.runs(piece).await?.0.iter().all(|run| run.is_hole))
    }

    /// Reads a piece, and sends it as a chunk of its reply.
    async fn read(&self, came: Instant, piece: Piece, whole: &Whole) -> Result<(), Over> {
        let cookie = whole.cookie;
        match self.is_hole(piece).await {
            Ok(true) if self.chosen.is_structured => {
                let hole = reply::hole(cookie, whole.is_one, piece.offset, piece.len);
                self.lane.answered(false);
                self.output.send_parts(&hole, &[]).await?;
                return self.read_part(whole).await;
            }
            Ok(_) => {}
            Err(error) => {
                whole.fail(error);
                return self.read_part(whole).await;
            }
        }
        let (read, handed) = self.blocks(came, piece).await;
        match read {
            Ok(chunk) if !self.chosen.is_structured => {
                let bytes = piece.within(chunk.bytes());
                return self.send_handed(&reply::simple(cookie, None), bytes, handed).await;
            }
            Ok(chunk) => {
                let head = reply::data(cookie, whole.is_one, piece.offset, piece.len);
                self.send_handed(&head, piece.within(chunk.bytes()), handed).await?;
            }
            Err(error) => whole.fail(error),
        }
        self.read_part(whole).await
    }

    /// A part of a read was sent, or has failed: the last one ends the reply.
    async fn read_part(&self, whole: &Whole) -> Result<(), Over> {
        if !whole.is_last() {
            return Ok(());
        }
        match whole.error() {
            Some(error) => self.fail(whole.cookie, true, &error).await,
            None if whole.is_one => Ok(()),
            None => self.output.send_parts(&reply::none(whole.cookie), &[]).await,
        }
    }

    /// Answers a read in one reply. Its bytes are gathered piece by piece, so that it holds no
    /// more of the pool's memory than one of them; what it holds itself counts as its user's, and
    /// of more than [`GATHER_MAX`] there are few at a time in the whole daemon, and one of each user.
    async fn gather(
        &self,
        came: Instant,
        cookie: u64,
        (offset, len): (u64, u32),
        account: &Account,
    ) -> Result<(), Over> {
        let counted = Bytes::new(u64::from(len).min(GATHER_MAX));
        // What a contract has memory for is one operation, of no more than this.
        let guaranteed = || if len as usize <= BODY_MAX { self.guaranteed() } else { 0 };
        let _place = account.place(&self.reserved, counted, guaranteed).await;
        let _turn = match u64::from(len) > GATHER_MAX {
            true => Some(self.gathers.turn().await),
            false => None,
        };
        let (mut bytes, mut handed) = (Vec::with_capacity(len as usize), None);
        for piece in pieces(offset, len.into()) {
            let (read, of_piece) = self.blocks(came, piece).await;
            match read {
                Ok(chunk) => bytes.extend_from_slice(piece.within(chunk.bytes())),
                Err(error) => return self.fail(cookie, true, &error).await,
            }
            handed = Some(handed.map_or(of_piece, |before: Handed| before.with(of_piece)));
        }
        let handed = handed.unwrap_or_else(Handed::now);
        match self.chosen.is_structured {
            true => self.send_handed(&reply::data(cookie, true, offset, len), &bytes, handed).await,
            false => self.send_handed(&reply::simple(cookie, None), &bytes, handed).await,
        }
    }

    async fn write(
        &self,
        came: Instant,
        piece: Piece,
        room: Box<dyn Room>,
        whole: &Whole,
    ) -> Result<(), Over> {
        self.is_there()?;
        let (volume, priority) = (self.volume.clone(), self.priority);
        // Until a flush nothing is promised of it.
        let range = WriteRange { behind: whole.durable == Durable::Nothing, ..piece.range() };
        let (written, handed) = self.ask.write(came, volume, priority, range, room).await;
        match written {
            Ok(()) => whole.done(handed),
            Err(error) => whole.fail(error),
        }
        self.part(whole).await
    }

    async fn zero(&self, came: Instant, piece: Piece) -> Result<Result<(), Error>, Over> {
        let mut room = match self.room(piece).await {
            Ok(room) => room,
            Err(error) => return Ok(Err(error)),
        };
        self.is_there()?;
        let range = piece.range();
        room.bytes_mut()[range.skip().as_usize()..][..piece.len as usize].fill(0);
        Ok(self.ask.write(came, self.volume.clone(), self.priority, range, room).await.0)
    }

    /// Whether the client waits for what it asked for. Who has gone without a reply may have written
    /// anew since, by another connection: what waited here for its turn, for a thread, or in the socket, would
    /// come over that.
    fn is_there(&self) -> Result<(), Over> {
        match self.lane.is_abandoned() {
            true => Err(Over::Gone),
            false => Ok(()),
        }
    }

    /// A part of a request has ended; the last one answers.
    async fn part(&self, whole: &Whole) -> Result<(), Over> {
        if whole.is_last() { self.ended(whole).await } else { Ok(()) }
    }

    /// Answers a request that has no data to give.
    async fn ended(&self, whole: &Whole) -> Result<(), Over> {
        let failed = match whole.error() {
            None => match whole.durable {
                Durable::Nothing => None,
                // It was written before: whether others have failed is a flush's matter.
                Durable::Own => self.sync(None).await.err(),
                Durable::All => self.flush().await.err(),
            },
            failed => failed,
        };
        // What is durable was promised nothing: the wait for that is in no account.
        let is_promised = whole.durable == Durable::Nothing;
        let handed = whole.handed.lock().take().filter(|_| is_promised);
        match (failed, handed) {
            (None, Some(handed)) => {
                self.send_handed(&reply::simple(whole.cookie, None), &[], handed).await
            }
            (None, None) => {
                self.lane.answered(false);
                self.output.send_parts(&reply::simple(whole.cookie, None), &[]).await
            }
            (Some(error), _) => {
                self.fail(whole.cookie, false, &error).await?;
                if let Error::WriteBehind { failures, .. } = error {
                    self.told(failures);
                }
                Ok(())
            }
        }
    }

    /// What a flush fails with is on its way to the client: it is his matter now, and nobody's else.
    fn told(&self, failures: u64) {
        self.failures_told.fetch_max(failures, Ordering::AcqRel);
        self.ask.0.failures_were_told(&self.ask.1, &self.volume, failures);
    }

    /// Makes durable what was answered, or says that some of it could not be written: once to each
    /// client that was there.
    async fn flush(&self) -> Result<(), Error> {
        let told = self.failures_told.load(Ordering::Acquire);
        self.sync(Some(told)).await
    }

    async fn sync(&self, told: Option<u64>) -> Result<(), Error> {
        self.ask.call(calls::SyncVolume { volume: self.volume.clone(), told }).await
    }

    /// Sends what the pool was done with then.
    async fn send_handed(&self, head: &[u8], body: &[u8], handed: Handed) -> Result<(), Over> {
        self.lane.answered(handed.is_promised());
        match handed.is_promised() {
            true => self.output.send_parts(head, body).await?,
            false => self.output.answer(head, body).await?, // with others that are there
        }
        self.ask.delivered(&self.output.excusing(handed));
        Ok(())
    }

    async fn refuse(&self, request: &Request, error: Errno) -> Result<(), Over> {
        self.lane.answered(false);
        match request.is_read() && self.chosen.is_structured {
            true => self.output.send_parts(&reply::error(request.cookie, error, ""), &[]).await,
            false => self.output.send_parts(&reply::simple(request.cookie, Some(error)), &[]).await,
        }
    }

    async fn fail(&self, cookie: u64, reads: bool, error: &Error) -> Result<(), Over> {
        self.lane.answered(false); // nothing is promised of what is refused
        let number = errno(error);
        match reads && self.chosen.is_structured {
            true => {
                let problem = crate::problem::of(error);
                let why = format!("{}; {}", problem.detail, problem.next_step);
                self.output.send_parts(&reply::error(cookie, number, &why), &[]).await
            }
            false => self.output.send_parts(&reply::simple(cookie, Some(number)), &[]).await,
        }
    }

    /// Where data is, from the start of a range on: at least of the first bytes of it.
    async fn extents(&self, range: Piece, most: usize) -> Result<Vec<Extent>, Error> {
        let (mut extents, mut at) = (Vec::<Extent>::new(), 0);
        for _ in 0..LOOKS_MAX {
            let rest = Piece { offset: range.offset + u64::from(at), len: range.len - at };
            let (runs, looked_at) = self.runs(rest).await?;
            for Run { len, is_hole, .. } in runs {
                let is_full = extents.len() == most;
                match extents.last_mut() {
                    Some(last) if last.is_hole == is_hole => last.len += len,
                    _ if is_full => return Ok(extents),
                    _ => extents.push(Extent { len, is_hole }),
                }
            }
            at += looked_at;
            if at == range.len {
                break;
            }
        }
        Ok(extents)
    }
}

impl Piece {
    fn range(&self) -> WriteRange {
        WriteRange::new(Bytes::new(self.offset), Bytes::new(u64::from(self.len)))
    }
}

/// What an error of the pool is in this protocol.
fn errno(error: &Error) -> Errno {
    match error {
        Error::VolumeFull { .. } | Error::PoolFull { .. } => Errno::NoSpace,
        Error::BeyondEnd { .. } | Error::Invalid { .. } => Errno::Invalid,
        Error::NotPermitted { .. } | Error::OnlyRoot { .. } => Errno::NotPermitted,
        Error::NoMemory { .. } | Error::NoServiceMemory { .. } | Error::Busy { .. } => {
            Errno::NoMemory
        }
        Error::ShuttingDown => Errno::Shutdown,
        _ => Errno::Io,
    }
}

/// What a client does in time once it has begun.
async fn in_time<T>(coming: impl Future<Output = std::io::Result<T>>) -> Result<T, Over> {
    Ok(within(FRAME_WITHIN, coming).await.ok_or(Over::Gone)??)
}

/// Reads bytes for which there is no place.
async fn discard(input: &mut Input, len: u32) -> Result<(), Over> {
    Ok(pace::discard(input, len as usize).await.ok_or(Over::Gone)??)
}
