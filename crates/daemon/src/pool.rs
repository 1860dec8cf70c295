//! What the daemon needs of an open pool.
//!
//! [`Pool`] is the engine's pool as the daemon sees it; tests put a pool in its
//! place that answers when they say so. [`Ask`] turns its callbacks into futures.
//!
//! Invariants: nothing is asked of a pool without saying on whose behalf; memory that a
//! pool hands out ([`Chunk`], [`Room`]) goes back when its handle is dropped, so that a
//! connection may end at any point.

use crate::made_room::MadeRoom;
use engine::{SharedWindow, Told, WindowReply};
use node::{
    Capacity, CountedBy, DiskIndex, Error, HandleId, Holding, HostTime, Op, Opening, Operation,
    Ownership, Policy, Priority, Promise, Status, StreamId, StreamStatus, Terms, VolumeId,
    VolumeStatus, Who, Wish, WriteRange, calls,
};
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;
use tokio::sync::oneshot;
use units::{Bytes, Duration, Instant};
use wire::control::Lateness;

/// Bytes that the pool has filled.
pub trait Chunk: Send + Sync {
    /// The bytes.
    fn bytes(&self) -> &[u8];
    /// What is owed of the answer that this is, where it is under contract.
    fn promise(&self) -> Option<Promise> {
        None
    }
    /// When the pool decided on the answer that this is, where it says so.
    fn handed(&self) -> Option<Instant> {
        self.promise().map(|promise| promise.handed())
    }
    /// For the pool, to find its own handle again.
    fn into_any(self: Box<Self>) -> Box<dyn std::any::Any>;
}

/// The pieces of a reader's shared window, told as they come to be in memory.
pub trait Pieces: Send + Sync {
    /// Sees to it that they are told; costs nothing where they are already.
    fn ask(&self);
    /// The next that was told, if any is left: [`Told`], or why there is none.
    fn take(&self) -> Option<Result<Told, Error>>;
}

/// Memory to fill.
pub trait Room: Send {
    /// The memory.
    fn bytes_mut(&mut self) -> &mut [u8];
    /// As [`Chunk::promise`].
    fn promise(&self) -> Option<Promise> {
        None
    }
    /// For the pool, to find its own handle again.
    fn into_any(self: Box<Self>) -> Box<dyn std::any::Any>;
}

/// A good answer, with handles in place of spans.
pub type Reply = node::Reply<Box<dyn Chunk>, Box<dyn Room>, WindowReply>;

/// What this operation is answered with.
pub type Answer<O> = <O as Operation>::Answer<Box<dyn Chunk>, Box<dyn Room>, WindowReply>;

/// The end of an operation, and when the pool handed it out.
pub type Came<O = Op> = (Result<Answer<O>, Error>, Handed);

/// What is owed of an answer, where it is under contract.
pub fn promise(answer: &Reply) -> Option<Promise> {
    match answer {
        Reply::Data { bytes, .. } => bytes.promise(),
        Reply::Room { room } => room.promise(),
        Reply::Window(WindowReply::Told(told)) => told.promise,
        Reply::Promised(promise) => Some(*promise),
        _ => None,
    }
}

/// When the pool decided on an answer, where it says so.
fn decided(answer: &Reply) -> Option<Instant> {
    match answer {
        Reply::Data { bytes, .. } => bytes.handed(),
        answer => promise(answer).map(|promise| promise.handed()),
    }
}

/// What is called, once, with the end of an operation. It may run on a disk's thread and
/// only hands over (`engine::Pool::submit`).
pub type Callback = Box<dyn FnOnce(Result<Reply, Error>) + Send>;

/// What is called, once, with a window that was opened to be shared. As a [`Callback`] it only hands over.
pub type OpenedWindow = Box<dyn FnOnce(Result<SharedWindow, Error>) + Send>;

/// What is called when there may be something to take. As a [`Callback`] it only hands over.
pub type Bell = Box<dyn Fn() + Send + Sync>;

/// What never changes while a pool is open.
#[derive(Clone, Debug)]
pub struct Description {
    /// The pool's name.
    pub name: String,
    /// Its identity, in hexadecimal.
    pub id: String,
    /// What each disk was opened with.
    pub devices: Vec<String>,
}

/// How late the host was since the pool was opened.
#[derive(Clone, Debug)]
pub struct HostLateness {
    /// In waking the disks' threads.
    pub wakeups: Lateness,
    /// In noticing the ends of commands on emulated disks.
    pub completions: Lateness,
}

/// An open pool.
pub trait Pool: Send + Sync + 'static {
    /// Begins an operation of somebody's. What it does to the pool's volumes is seen in
    /// [`Pool::status`] when this returns, though it may not be durable. [`Op::Write`] and
    /// [`Op::Release`] are not for here: see [`Pool::write`] and the drop of the handles.
    fn submit(&self, who: Who, op: Op, callback: Callback);
    /// The same of an operation without a stream, where the daemon had read the program's
    /// request at `arrived`, by [`Pool::now`]: what is promised of an answer counts from then.
    fn submit_since(&self, who: Who, arrived: Instant, op: Op, callback: Callback);
    /// What `ask` begins on this thread may be begun together when it returns, in its order;
    /// callbacks are called then.
    fn together(&self, ask: &mut dyn FnMut()) {
        ask();
    }
    /// Begins to open a stream whose program can map its window; false where this pool or
    /// the system has no such memory, and then nothing was begun.
    fn open_window(&self, _who: Who, _opening: Opening, _opened: OpenedWindow) -> bool {
        false
    }
    /// The pieces of a reader's shared window without an ask for each; `bell` is called, on
    /// any thread, when there may be one to take. None where this pool tells them only one
    /// by one, by [`Op::WindowNext`].
    fn pieces(&self, _who: Who, _stream: StreamId, _bell: Bell) -> Option<Box<dyn Pieces>> {
        None
    }
    /// Gives `chunk` of a reader back and moves its playout point on: what
    /// [`Op::StreamAdvance`] does once the chunk is dropped. Where the pool can, it takes with the
    /// same look what is in memory behind it, at most so much: the callback of `_take` is called with
    /// what [`Op::StreamRead`] would answer, or dropped.
    fn advance(
        &self,
        who: Who,
        stream: StreamId,
        (chunk, len): (Box<dyn Chunk>, Bytes),
        callback: Callback,
        _take: (Bytes, Callback),
    ) {
        drop(chunk);
        self.submit(who, Op::StreamAdvance { stream, len }, callback);
    }
    /// The clock that the pool's instants are read from.
    fn now(&self) -> Instant {
        self.status().now
    }
    /// Begins a best-effort write to a volume, asked for at `arrived`; the bytes lie in `room`
    /// from [`WriteRange::skip`] on.
    #[allow(clippy::too_many_arguments)] // the operation's own
    fn write(
        &self,
        who: Who,
        arrived: Instant,
        volume: String,
        priority: Option<Priority>,
        range: WriteRange,
        room: Box<dyn Room>,
        callback: Callback,
    );
    /// Everything that can be seen. Its cost grows with streams and volumes: whoever wants
    /// to know of one thing asks for that.
    fn status(&self) -> Status;
    /// One volume, as [`Pool::status`] shows it.
    fn volume(&self, name: &str) -> Option<VolumeStatus> {
        let is_it = |volume: &VolumeStatus| match name.strip_prefix('/') {
            Some(number) => number.parse() == Ok(volume.id.0),
            None => volume.name == name,
        };
        self.status().volumes.into_iter().find(is_it)
    }
    /// What was written of a range of a volume: [`node::Node::written`].
    fn written(
        &self,
        who: &Who,
        volume: (&str, VolumeId),
        range: Range<Bytes>,
    ) -> Result<Vec<(Bytes, bool)>, Error>;
    /// The volume of this name, to know it again.
    fn volume_id(&self, name: &str) -> Option<VolumeId>;
    /// What the volumes of a user or of a group are together, without a look at all volumes.
    fn holding(&self, whose: CountedBy) -> Holding;
    /// One open stream, as [`Pool::status`] shows it.
    fn stream(&self, id: StreamId) -> Option<StreamStatus> {
        self.status().streams.into_iter().find(|stream| stream.stream == id)
    }
    /// What a contract would take on a volume, whether it would be admitted or not; `None`
    /// where there is no such volume, or where even idle disks could not keep it.
    fn terms(&self, volume: &str, wish: &Wish) -> Option<Terms>;
    /// As [`node::Node::run_for`]; nothing where the pool shall say it when it makes the volume.
    fn run_for(&self, _placement: &node::Placement, _size: units::Bytes) -> units::Bytes {
        units::Bytes::ZERO
    }
    /// How the volume of this name is asked for, whatever name it gets.
    fn known(&self, name: String) -> String {
        name
    }
    /// What lies directly under a directory: [`node::Node::entries`].
    fn entries(&self, _: &Who, _directory: &str, _after: &str, _most: usize) -> Vec<node::Entry> {
        Vec::new()
    }
    /// When the bytes of a volume were recorded: [`node::Node::recorded`].
    fn recorded(&self, name: &str) -> Option<node::Recorded>;
    /// The room for volumes on all disks: [`node::Node::capacity`].
    fn capacity(&self) -> Capacity {
        let Status { disks, volumes, .. } = self.status();
        let free: Bytes = disks.iter().map(|disk| disk.free).sum();
        Capacity {
            total: disks.iter().map(|disk| disk.capacity).sum(),
            free,
            volumes: volumes.len() as u64,
            volumes_free: free / Bytes::MIB,
        }
    }
    /// A directory that no volume stands for: [`node::Node::directory`].
    fn directory(&self, _: &Who, _name: &str) -> Option<node::Directory> {
        None
    }
    /// Names and owners of all volumes, the oldest first.
    fn names(&self) -> Vec<(String, Ownership)> {
        self.status().volumes.into_iter().map(|one| (one.name, one.ownership)).collect()
    }
    /// As [`node::Node::operations`].
    fn operations(&self, volume: &str, handle: Option<HandleId>) -> u64 {
        self.volume(volume).map_or(0, |volume| match handle {
            None => volume.operations,
            Some(handle) => {
                let mut handles = volume.handles.iter();
                handles.find(|one| one.handle == handle).map_or(0, |one| one.operations)
            }
        })
    }
    /// As [`node::Node::failures_told`].
    fn failures_told(&self, volume: &str) -> u64;
    /// As [`node::Node::failures_were_told`].
    fn failures_were_told(&self, who: &Who, volume: &str, failures: u64);
    /// The policy that the disks follow.
    fn policy(&self) -> Policy {
        self.status().policy
    }
    /// True once a metadata write has failed.
    fn is_read_only(&self) -> bool {
        self.status().read_only
    }
    /// What never changes.
    fn description(&self) -> Description;
    /// What a disk is called.
    fn disk_name(&self, disk: DiskIndex) -> String {
        format!("disk {}", disk.0)
    }
    /// How late the host was.
    fn host_lateness(&self) -> HostLateness;
    /// An answer under contract took so long from when this pool handed it out until it was in
    /// the socket or the window of its program, which is now: to be counted with every contract.
    fn delivered(&self, _now: Instant, _took: Duration) {}
    /// The same of one of which so much is owed, for its account.
    fn carried(&self, _promise: &Promise, _took: Duration) {}
    /// What was measured of that, and what is counted for it.
    fn deliveries(&self) -> HostTime {
        HostTime::default()
    }
    /// The threads that carry answers under contract have real-time priority.
    fn delivers_in_real_time(&self) -> bool {
        false
    }
    /// What the host did not grant, and what to do about it.
    fn warnings(&self) -> Vec<String>;
    /// What somebody else has done to the file of each disk: `engine::Pool::damage`.
    fn damage(&self) -> Vec<Option<String>> {
        Vec::new()
    }
}

/// When the pool handed out an answer: what it takes from then on is the daemon's. Of one under
/// contract that is when the pool decided on it, though other callbacks may have run since.
#[derive(Clone, Copy, Debug)]
pub struct Handed {
    at: Instant,
    /// What is owed of it, where it is under contract.
    promise: Option<Promise>,
}

impl Handed {
    /// Now, and nothing is owed.
    pub fn now() -> Self {
        Self { at: engine::now(), promise: None }
    }

    /// This answer: when the pool says, or now.
    pub fn of(answer: &Result<Reply, Error>) -> Self {
        let answer = answer.as_ref().ok();
        let at = answer.and_then(decided).unwrap_or_else(engine::now);
        Self { at, promise: answer.and_then(promise) }
    }

    /// This piece of a shared window.
    pub fn of_piece(told: &Result<Told, Error>) -> Self {
        let promise = told.as_ref().ok().and_then(|told| told.promise);
        Self { at: promise.map_or_else(engine::now, |promise| promise.handed()), promise }
    }

    /// It is under contract.
    pub fn is_promised(&self) -> bool {
        self.promise.is_some()
    }

    /// This, or the instant at which the daemon had done what came before it, if that is later.
    pub fn or_later(self, free: Self) -> Self {
        Self { at: self.at.max(free.at), ..self }
    }

    /// The time since in which its program had to make room is not the daemon's.
    pub(crate) fn excusing(self, room: &MadeRoom) -> Self {
        Self { at: self.at.saturating_add(room.since(self.at)), ..self }
    }

    /// Of two that go to the program as one: the later one, and what is due later.
    pub fn with(self, other: Self) -> Self {
        let later = |one: &Self| one.promise.map(|promise| promise.due());
        let promise = if later(&self) < later(&other) { other.promise } else { self.promise };
        Self { at: self.at.max(other.at), promise }
    }
}

/// The answer to an operation that was begun, when it comes.
pub struct Coming<O = Op> {
    receiver: oneshot::Receiver<(Result<Reply, Error>, Option<Handed>)>,
    to: PhantomData<fn() -> O>,
}

impl<O: Operation> Coming<O> {
    /// A callback, and what it brings. `is_stamped`: with when it was called, for which it may have to
    /// read the clock.
    fn new(is_stamped: bool) -> (Callback, Self) {
        let (answer, receiver) = oneshot::channel();
        let callback = move |result| {
            let handed = is_stamped.then(|| Handed::of(&result));
            drop(answer.send((result, handed)));
        };
        (Box::new(callback), Self { receiver, to: PhantomData })
    }

    async fn come(&mut self) -> (Result<Answer<O>, Error>, Option<Handed>) {
        let gone = |_| (Err(Error::ShuttingDown), None);
        let (result, handed) = (&mut self.receiver).await.unwrap_or_else(gone);
        (result.map(O::answer), handed)
    }

    /// What comes, and when it was handed out; or that the pool has gone. Nothing is lost where
    /// this is not waited for to the end.
    pub async fn handed(&mut self) -> Came<O> {
        let (result, handed) = self.come().await;
        (result, handed.unwrap_or_else(Handed::now))
    }

    /// The same of what may not have been begun: none then.
    async fn if_any(self) -> Option<Came<O>> {
        let (result, handed) = self.receiver.await.ok()?;
        Some((result.map(O::answer), handed.unwrap_or_else(Handed::now)))
    }

    /// What comes.
    pub async fn end(mut self) -> Result<Answer<O>, Error> {
        self.come().await.0
    }
}

/// The way to a pool: nothing is asked through it before somebody is named.
#[derive(Clone)]
pub struct Entry(pub Arc<dyn Pool>);

impl Entry {
    /// On behalf of somebody.
    pub fn by(&self, who: Who) -> Ask {
        Ask(Arc::clone(&self.0), who)
    }

    /// On behalf of the daemon itself, which may do everything.
    pub fn own(&self) -> Ask {
        self.by(Who::root())
    }
}

/// Asks a pool on somebody's behalf and awaits its answer. Dropping the future is safe:
/// the answer, when it comes, is dropped and gives its memory back.
#[derive(Clone)]
pub struct Ask(pub Arc<dyn Pool>, pub Who);

impl Ask {
    /// The end of an operation.
    pub async fn call<O: Operation>(&self, op: O) -> Result<Answer<O>, Error> {
        let (callback, coming) = Coming::<O>::new(false);
        self.0.submit(self.1.clone(), op.into(), callback);
        coming.end().await
    }

    /// The same, and when the pool handed it out.
    pub async fn call_handed<O: Operation>(&self, op: O) -> Came<O> {
        self.begin(op).handed().await
    }

    /// The same of what its program asked for at `arrived`.
    pub async fn call_since<O: Operation>(&self, arrived: Instant, op: O) -> Came<O> {
        self.begin_since(arrived, op).handed().await
    }

    /// Begins an operation, for whoever wants to wait for other things as well.
    pub fn begin<O: Operation>(&self, op: O) -> Coming<O> {
        let (callback, coming) = Coming::new(true);
        self.0.submit(self.1.clone(), op.into(), callback);
        coming
    }

    /// The same of what its program asked for at `arrived`.
    pub fn begin_since<O: Operation>(&self, arrived: Instant, op: O) -> Coming<O> {
        let (callback, coming) = Coming::new(true);
        self.0.submit_since(self.1.clone(), arrived, op.into(), callback);
        coming
    }

    /// Opens a stream whose program can map its window; none where there is no such memory.
    pub async fn open_window(&self, opening: Opening) -> Option<Result<SharedWindow, Error>> {
        let (sender, opened) = oneshot::channel();
        let told = Box::new(move |window| drop(sender.send(window)));
        if !self.0.open_window(self.1.clone(), opening, told) {
            return None;
        }
        Some(opened.await.unwrap_or(Err(Error::ShuttingDown)))
    }

    /// Gives back what a reader was given, and moves its playout point on by `len`. With that comes what
    /// is in memory behind it, at most `next`, if anything is: what [`Op::StreamRead`] would answer.
    ///
    /// # Errors
    /// As [`Op::StreamAdvance`].
    pub async fn advance(
        &self,
        stream: StreamId,
        given: (Box<dyn Chunk>, Bytes),
        next: Bytes,
    ) -> Result<Option<Came<calls::StreamRead>>, Error> {
        let (callback, coming) = Coming::<calls::StreamAdvance>::new(false);
        let (taken, next_coming) = Coming::<calls::StreamRead>::new(true);
        self.0.advance(self.1.clone(), stream, given, callback, (next, taken));
        coming.end().await?;
        Ok(next_coming.if_any().await)
    }

    /// An answer is in the socket or the window of its program. Its account hears of it; what
    /// carrying takes is counted with every contract where it was carried by those threads that
    /// contracts are promised.
    pub fn delivered(&self, handed: &Handed) {
        let now = engine::now();
        let took = now.saturating_since(handed.at);
        if let Some(promise) = &handed.promise {
            self.0.carried(promise, took);
        }
        if crate::timely::is_here() {
            self.0.delivered(now, took);
        }
    }

    /// Operations on a volume for which the pool has memory set aside: under the contract of the
    /// handle that asks, or of the volume, where what the handle states does not leave it.
    pub fn guaranteed(&self, volume: &str, stated: Option<Priority>) -> u64 {
        if stated == Some(Priority::Background) {
            return 0;
        }
        self.0.operations(volume, self.1.handle)
    }

    /// The end of a best-effort write.
    pub async fn write(
        &self,
        arrived: Instant,
        volume: String,
        priority: Option<Priority>,
        range: WriteRange,
        room: Box<dyn Room>,
    ) -> (Result<(), Error>, Handed) {
        let (callback, mut coming) = Coming::<calls::Write>::new(true);
        self.0.write(self.1.clone(), arrived, volume, priority, range, room, callback);
        coming.handed().await
    }
}
