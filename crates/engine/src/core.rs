//! What the threads of a pool share: the node behind its lock, and what goes
//! with it.
//!
//! Whoever has news takes the lock, tells the node, collects what follows
//! ([`News`]) and drops the lock; then the news are delivered: threads are woken
//! and callbacks run. Sections under the lock do no I/O.
//!
//! Invariant: a disk whose thread sleeps has nothing to start before the instant
//! that the thread sleeps until. Whoever changes that, under the lock, puts the
//! commands into the disk's `inbox` and wakes the thread.

#[cfg(test)]
pub(crate) mod schedules;

use crate::Reply;
use crate::arena::{Arena, Loans};
use crate::backend::{Completion, fills, region, zero_room};
use crate::callers::{About, Callback, Caller, Callers, NOBODY};
use crate::chunk::{Chunk, ChunkMut, Lender, Loan, Owner};
use crate::lateness::Lately;
use crate::lock::{Mutex, MutexGuard};
use crate::searches::Searches;
use crate::sys::{self, Event};
use node::{
    CommandId, DiskCommand, DiskIndex, DiskPoll, Error, Event as Happened, Look, Mode, Node, Op,
    Output, RateSearch, Region, Span, Status, StreamId, StreamStatus, Terms, Ticket, VolumeStatus,
    Who, Wish,
};
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;
use units::{Bytes, Duration, Instant};
use window::{Kind, Memory, Piece, Rights};

/// Most disks in a pool: one bit each in [`News::wake`].
pub(crate) const DISKS_MAX: usize = 64;
const _: () = assert!(store::DISKS_MAX <= DISKS_MAX);

thread_local! {
    /// Whether this thread is a disk's.
    static IS_DISK: Cell<bool> = const { Cell::new(false) };
}

/// What the threads of a pool share.
pub(crate) struct Core {
    arena: Arc<Arena>,
    events: Vec<Arc<Event>>,
    searches: Searches,
    inner: Mutex<Inner>,
}

/// What the lock guards.
pub(crate) struct Inner {
    node: Node,
    loans: Loans,
    callers: Callers,
    /// Streams of which memory is asked for or lent. At most one piece each, so
    /// that nothing that moves the window can happen while a program looks at it.
    lent: HashMap<StreamId, Lent>,
    /// Streams with a shared window.
    windows: HashMap<StreamId, Window>,
    disks: Vec<DiskState>,
    /// The latest time that the node was told.
    now: Instant,
    /// How late the host was lately.
    lately: Lately,
    /// Nothing is started and nobody is answered any more.
    stopping: bool,
}

enum Lent {
    /// The node has been asked.
    Asked,
    /// The program has it. A close that comes meanwhile waits for it.
    Held { close: Option<Ticket> },
}

/// A stream's shared window.
struct Window {
    region: Region,
    /// Seeks that were asked for.
    seeks: u64,
}

#[derive(Default)]
struct DiskState {
    asleep: Option<Asleep>,
    inbox: Vec<DiskCommand>,
    /// What the commands in flight fill; not many, so that a list is quick.
    filling: Vec<(CommandId, Span)>,
    /// The commands in flight that transfer to or from a shared window.
    shared: Vec<(CommandId, Region)>,
}

/// A thread that sleeps, until then or for ever.
struct Asleep {
    until: Option<Instant>,
}

/// What follows from a section under the lock.
#[derive(Default)]
pub(crate) struct News {
    calls: Vec<(Callback, Result<Reply, Error>)>,
    /// Refusals that are told when the largest rate that would fit is found.
    refusals: Vec<(Callback, Error, Box<RateSearch>)>,
    wake: u64,
    /// Room in shared windows that is told of by these calls: filled with zeros first. It
    /// counts as a command in its region, which so stays until then.
    rooms: Vec<(Region, Span)>,
    /// Memory of windows that is nobody's any more, to be unmapped outside the lock.
    garbage: Vec<Arc<Memory>>,
}

/// What a disk's thread does next.
pub(crate) struct Turn {
    /// To be started now.
    pub commands: Vec<DiskCommand>,
    /// When to look again at the latest.
    pub until: Option<Instant>,
    /// No commands will come any more.
    pub stopping: bool,
}

impl Core {
    pub(crate) fn new(node: Node, arena: Arc<Arena>, events: Vec<Arc<Event>>) -> Arc<Self> {
        let inner = Inner {
            node,
            loans: Loans::new(arena.len()),
            callers: Callers::default(),
            lent: HashMap::new(),
            windows: HashMap::new(),
            disks: events.iter().map(|_| DiskState::default()).collect(),
            now: sys::now(),
            lately: Lately::new(sys::now()),
            stopping: false,
        };
        Arc::new(Self { arena, events, searches: Searches::default(), inner: Mutex::new(inner) })
    }

    pub(crate) fn arena(&self) -> &Arena {
        &self.arena
    }

    /// Begins an operation on behalf of a program.
    pub(crate) fn submit(
        self: &Arc<Self>,
        (who, arrived): (Who, Option<Instant>),
        op: Op,
        callback: Callback,
    ) {
        assert!(
            !matches!(op, Op::Write { .. } | Op::Release { .. } | Op::WindowOpen { .. }),
            "memory goes back through its handle (Pool::write, or drop it); Pool::open_window opens windows"
        );
        self.section(|inner, news| inner.begin((who, arrived), op, callback, news));
    }

    /// Begins to open a stream whose window is shared memory.
    pub(crate) fn open_window(
        self: &Arc<Self>,
        who: Who,
        (volume, mode, contract, start): (String, Mode, node::Contract, Bytes),
        callback: Callback,
    ) -> std::io::Result<()> {
        let rights = if mode == Mode::Read { Rights::Read } else { Rights::Write };
        let (region, memory) = self.arena.regions().make(rights)?;
        let op = Op::WindowOpen { volume, mode, contract, start, region };
        let about = Some(About::Open(region, memory));
        self.section(|inner, news| match inner.stopping {
            true => news.calls.push((callback, Err(Error::ShuttingDown))),
            false => {
                let ticket = inner.callers.insert(Caller { callback, stream: None, about });
                inner.tell(ticket, (who, None), op);
            }
        });
        Ok(())
    }

    /// Begins a best-effort write of memory that a handle held.
    #[allow(clippy::too_many_arguments)] // the operation's own
    pub(crate) fn write(
        self: &Arc<Self>,
        asker: (Who, Option<Instant>),
        volume: String,
        range: node::WriteRange,
        priority: Option<node::Priority>,
        room: ChunkMut,
        callback: Callback,
    ) {
        assert!(room.belongs_to(self), "memory of another pool");
        let (span, owner) = room.into_span();
        assert_eq!(owner, Owner::BestEffort, "a stream's memory is written with StreamWrite");
        self.section(|inner, news| {
            inner.loans.take_back(span);
            let op = Op::Write { volume, range, span, priority };
            inner.begin(asker, op, callback, news);
        });
    }

    /// Everything that can be seen, gathered in steps that each hold the lock for a moment.
    pub(crate) fn status(&self) -> Status {
        let mut look = Look::new(self.inner.lock().read_clock());
        while self.inner.lock().node.look(&mut look) {}
        let (status, analysed) = look.finish();
        self.inner.lock().node.learn(&analysed);
        status
    }

    pub(crate) fn volume(&self, name: &str) -> Option<VolumeStatus> {
        self.inner.lock().node.volume(name)
    }

    pub(crate) fn stream(&self, id: StreamId) -> Option<StreamStatus> {
        self.inner.lock().node.stream(id)
    }

    pub(crate) fn terms(&self, volume: &str, wish: &Wish) -> Option<Terms> {
        self.inner.lock().node.terms(volume, wish)
    }

    pub(crate) fn is_read_only(&self) -> bool {
        self.inner.lock().node.is_read_only()
    }

    /// A disk's thread tells what has ended and how late the host was at the worst since
    /// its last turn, and asks what to do. It sleeps afterwards, unless there are
    /// callbacks to run.
    pub(crate) fn turn(
        self: &Arc<Self>,
        disk: DiskIndex,
        done: &mut Vec<Completion>,
        late: Duration,
    ) -> (Turn, News) {
        let (mut news, mut commands) = (News::default(), Vec::new());
        let mut inner = self.inner.lock();
        let now = inner.read_clock();
        let at = usize::from(disk.0);
        if let Some(latency) = inner.lately.note(now, late) {
            inner.tell_own(NOBODY, Op::HostLatency { latency });
        }
        for ended in done.drain(..) {
            inner.ended(&self.arena, disk, &ended, now, &mut news);
        }
        let until = loop {
            commands.append(&mut inner.disks[at].inbox);
            let until = inner.poll(&self.arena, disk, now, &mut commands);
            // Whoever gives this disk work from here on has to wake it, which
            // may be this thread itself, while it looks after the other disks.
            inner.disks[at].asleep = Some(Asleep { until });
            self.collect(&mut inner, &mut news);
            if inner.disks[at].asleep.is_some() {
                break until;
            }
        };
        if !news.calls.is_empty() {
            inner.disks[at].asleep = None;
        }
        let stopping = inner.stopping;
        if stopping {
            commands.clear();
        }
        news.wake &= !(1 << at);
        (Turn { commands, until, stopping }, news)
    }

    /// No disk starts anything any more. Whoever still waits is told so.
    pub(crate) fn stop(&self) {
        let mut inner = self.inner.lock();
        inner.stopping = true;
        let callers = inner.callers.drain();
        drop(inner);
        self.events.iter().for_each(|event| event.signal());
        let calls = callers.into_iter();
        let calls = calls.map(|caller| (caller.callback, Err(Error::ShuttingDown))).collect();
        self.deliver(News { calls, ..News::default() });
    }

    /// A section under the lock, and the delivery of what follows from it.
    fn section(self: &Arc<Self>, change: impl FnOnce(&mut Inner, &mut News)) {
        let mut news = News::default();
        let mut inner = self.inner.lock();
        // In a callback, the time of the turn that led to it will do: clocks are
        // slow in some virtual machines, and callbacks are short.
        if !IS_DISK.get() {
            inner.read_clock();
        }
        change(&mut inner, &mut news);
        self.collect(&mut inner, &mut news);
        drop(inner);
        self.deliver(news);
    }

    /// Takes the answers that the node has, and looks after the disks that got
    /// work, until there is no more of either.
    fn collect(self: &Arc<Self>, inner: &mut MutexGuard<'_, Inner>, news: &mut News) {
        loop {
            while let Some(output) = inner.node.poll_output() {
                let Output { ticket, result, search } = output;
                match (inner.answer(self, ticket, result, news), search) {
                    (Some((callback, Err(error))), Some(search)) => {
                        news.refusals.push((callback, error, search));
                    }
                    (call, _) => news.calls.extend(call),
                }
            }
            while let Some(span) = inner.node.poll_freed() {
                if let Some((region, place)) = Region::of(&span) {
                    self.arena.regions().release(region, place, span.len);
                }
            }
            let Some(disk) = inner.node.next_wake() else { break };
            if inner.disturb(&self.arena, disk) {
                news.wake |= 1 << disk.0;
            }
        }
    }

    /// Wakes threads and runs callbacks, outside the lock.
    pub(crate) fn deliver(&self, news: News) {
        for (at, event) in self.events.iter().enumerate() {
            if news.wake & (1 << at) != 0 {
                event.signal();
            }
        }
        // Gone before the close is answered that it goes with.
        drop(news.garbage);
        for (region, span) in news.rooms {
            zero_room(&self.arena, span);
            drop(self.arena.regions().end(region));
        }
        for (callback, result) in news.calls {
            callback(result);
        }
        for (callback, error, search) in news.refusals {
            self.searches.run(error, search, callback);
        }
    }
}

impl Lender for Core {
    fn memory(&self, span: Span) -> *mut u8 {
        self.arena.pointer(span)
    }

    fn take_back(self: Arc<Self>, span: Span, owner: Owner) {
        self.section(|inner, _| {
            inner.loans.take_back(span);
            match owner {
                Owner::BestEffort => inner.tell_own(NOBODY, Op::Release { span }),
                Owner::Stream(stream) => {
                    if let Some(Lent::Held { close: Some(ticket) }) = inner.lent.remove(&stream) {
                        inner.tell_own(ticket, Op::StreamClose { stream });
                    }
                }
            }
        });
    }
}

impl News {
    /// Whether a callback waits to be run.
    pub(crate) fn has_calls(&self) -> bool {
        !self.calls.is_empty()
    }
}

impl Inner {
    /// The time now; it never goes back from one section to the next.
    fn read_clock(&mut self) -> Instant {
        self.now = self.now.max(sys::now());
        self.now
    }

    /// Whether an operation may begin now, as far as lent memory is concerned.
    fn may_begin(&self, op: &Op) -> Result<(), Error> {
        let (stream, asks) = match op {
            Op::StreamRead { stream, .. } | Op::StreamRoom { stream, .. } => (stream, true),
            Op::StreamAdvance { stream, .. }
            | Op::StreamWrite { stream, .. }
            | Op::StreamSeek { stream, .. } => (stream, false),
            _ => return Ok(()),
        };
        match self.lent.get(stream) {
            None => Ok(()),
            Some(Lent::Asked) if !asks => Ok(()),
            Some(_) => Err(Error::Invalid {
                what: "request",
                rule: "one piece of a stream's memory at a time: drop the one that was given",
            }),
        }
    }

    fn begin(
        &mut self,
        asker: (Who, Option<Instant>),
        op: Op,
        callback: Callback,
        news: &mut News,
    ) {
        let may = if self.stopping { Err(Error::ShuttingDown) } else { self.may_begin(&op) };
        if let Err(error) = may {
            if let Op::Write { span, .. } = op {
                self.tell_own(NOBODY, Op::Release { span });
            }
            return news.calls.push((callback, Err(error)));
        }
        let stream = match &op {
            Op::StreamRead { stream, .. } | Op::StreamRoom { stream, .. } => {
                self.lent.insert(*stream, Lent::Asked);
                Some(*stream)
            }
            _ => None,
        };
        let closes = if let Op::StreamClose { stream } = &op { Some(*stream) } else { None };
        let about = self.about(&op);
        let ticket = self.callers.insert(Caller { callback, stream, about });
        if let Some(Lent::Held { close }) = closes.and_then(|stream| self.lent.get_mut(&stream))
            && close.is_none()
        {
            *close = Some(ticket);
            return;
        }
        self.tell(ticket, asker, op);
    }

    /// What an operation has to do with a shared window. A seek counts from here on: the
    /// answers that the node had were all taken, so that those that come are later.
    fn about(&mut self, op: &Op) -> Option<About> {
        match op {
            Op::WindowNext { stream } => Some(About::Next(*stream)),
            Op::StreamClose { stream } => Some(About::Close(*stream)),
            Op::StreamSeek { stream, .. } => {
                let window = self.windows.get_mut(stream)?;
                window.seeks += 1;
                Some(About::Seek(window.seeks))
            }
            _ => None,
        }
    }

    /// What somebody asks, and when his program did where that was before now.
    fn tell(&mut self, ticket: Ticket, (who, arrived): (Who, Option<Instant>), op: Op) {
        let arrived = arrived.unwrap_or(self.now);
        self.node.handle(self.now, Happened::Request { ticket, who, op, arrived });
    }

    /// What the engine asks by itself.
    fn tell_own(&mut self, ticket: Ticket, op: Op) {
        self.tell(ticket, (Who::root(), None), op);
    }

    fn ended(
        &mut self,
        arena: &Arena,
        disk: DiskIndex,
        ended: &Completion,
        now: Instant,
        news: &mut News,
    ) {
        let DiskState { filling, shared, .. } = &mut self.disks[usize::from(disk.0)];
        if let Some(at) = filling.iter().position(|&(id, _)| id == ended.id) {
            self.loans.take_back(filling.swap_remove(at).1);
        }
        if let Some(at) = shared.iter().position(|&(id, _)| id == ended.id) {
            news.garbage.extend(arena.regions().end(shared.swap_remove(at).1));
        }
        let Completion { id, started, finished, result } = *ended;
        self.node.handle(now, Happened::CommandDone { disk, id, started, finished, result });
    }

    /// Asks the node what a disk shall do until it says to wait.
    fn poll(
        &mut self,
        arena: &Arena,
        disk: DiskIndex,
        now: Instant,
        commands: &mut Vec<DiskCommand>,
    ) -> Option<Instant> {
        if self.stopping {
            return None;
        }
        loop {
            match self.node.poll_disk(now, disk) {
                DiskPoll::Wait { until } => return until,
                DiskPoll::Start(command) => {
                    if let Some(span) = fills(&command.action) {
                        self.loans.lend(span);
                        self.disks[usize::from(disk.0)].filling.push((command.id, span));
                    }
                    if let Some(region) = region(&command.action) {
                        arena.regions().begin(region);
                        self.disks[usize::from(disk.0)].shared.push((command.id, region));
                    }
                    commands.push(command);
                }
            }
        }
    }

    /// Looks what a disk with news shall do; true where its thread sleeps and
    /// must be woken for it.
    fn disturb(&mut self, arena: &Arena, disk: DiskIndex) -> bool {
        let at = usize::from(disk.0);
        let Some(asleep) = &self.disks[at].asleep else { return false };
        let wake_at = asleep.until;
        let mut commands = std::mem::take(&mut self.disks[at].inbox);
        let until = self.poll(arena, disk, self.now, &mut commands);
        let sooner = match (until, wake_at) {
            (Some(until), Some(wake_at)) => until < wake_at,
            (Some(_), None) => true,
            (None, _) => false,
        };
        let wake = sooner || !commands.is_empty();
        self.disks[at].inbox = commands;
        if wake {
            self.disks[at].asleep = None;
        }
        wake
    }

    /// Makes the node's answer into the program's: memory is lent here.
    fn answer(
        &mut self,
        core: &Arc<Core>,
        ticket: Ticket,
        result: Result<node::Reply, Error>,
        news: &mut News,
    ) -> Option<(Callback, Result<Reply, Error>)> {
        if ticket == NOBODY || self.stopping {
            return None;
        }
        let Caller { callback, stream, about } = self.callers.remove(ticket);
        if let Some(about) = about {
            let result = self.answer_window(core.arena(), about, result, news);
            return Some((callback, result));
        }
        if let Some(stream) = stream {
            self.lent.remove(&stream);
        }
        let mut lend = |span: Span| {
            self.loans.lend(span);
            let owner = stream.map_or(Owner::BestEffort, Owner::Stream);
            if let Some(stream) = stream {
                self.lent.insert(stream, Lent::Held { close: None });
            }
            let lender: Arc<dyn Lender> = core.clone();
            Loan::new(lender, span, owner)
        };
        let result = result.map(|reply| match reply {
            node::Reply::Done => Reply::Done,
            node::Reply::Stream { stream, window } => Reply::Stream { stream, window },
            node::Reply::Data { span, offset } => {
                Reply::Data { chunk: Chunk::new(lend(span)), offset }
            }
            node::Reply::Room { span } => Reply::Room { room: ChunkMut::new(lend(span)) },
            node::Reply::End => Reply::End,
            node::Reply::Gap { offset, len } => Reply::Gap { offset, len },
            node::Reply::Durable { upto } => Reply::Durable { upto },
            node::Reply::Ready { at, steady } => Reply::Ready { at, steady, seeks: 0 },
            node::Reply::Block { block } => Reply::Block { block },
            node::Reply::Planner(planner) => Reply::Planner(planner),
        });
        Some((callback, result))
    }

    /// The same, for an operation that has to do with a shared window: a region is
    /// given to its stream here, and taken back.
    fn answer_window(
        &mut self,
        arena: &Arena,
        about: About,
        result: Result<node::Reply, Error>,
        news: &mut News,
    ) -> Result<Reply, Error> {
        match (about, result) {
            (About::Open(region, memory), Ok(node::Reply::Stream { stream, window })) => {
                self.windows.insert(stream, Window { region, seeks: 0 });
                Ok(Reply::Shared { stream, window, memory })
            }
            (About::Open(region, _), result) => {
                news.garbage.extend(arena.regions().free(region));
                Err(result.expect_err("a stream that is opened has a number"))
            }
            (About::Next(stream), Ok(reply)) => {
                if let node::Reply::Room { span } = reply {
                    let (region, _) = Region::of(&span).expect("room of a shared window");
                    arena.regions().begin(region);
                    news.rooms.push((region, span));
                }
                let seeks = self.windows.get(&stream).map_or(0, |window| window.seeks);
                Ok(Reply::Piece { piece: piece(reply), seeks })
            }
            (About::Seek(seeks), Ok(node::Reply::Ready { at, steady })) => {
                Ok(Reply::Ready { at, steady, seeks })
            }
            (About::Close(stream), result) => {
                // Asked for twice, the second is told that there is no such stream while
                // the first is under way.
                if !matches!(result, Err(Error::NoSuchStream { .. }))
                    && let Some(window) = self.windows.remove(&stream)
                {
                    news.garbage.extend(arena.regions().free(window.region));
                }
                result.map(|reply| match reply {
                    node::Reply::Durable { upto } => Reply::Durable { upto },
                    _ => Reply::Done,
                })
            }
            (About::Next(_) | About::Seek(_), Err(error)) => Err(error),
            (About::Seek(_), Ok(other)) => unreachable!("{other:?} answers no seek"),
        }
    }
}

/// What the node tells of the next piece of a shared window.
fn piece(reply: node::Reply) -> Piece {
    let place = |span: &Span| Region::of(span).expect("a shared window is in a region").1;
    let none = Bytes::ZERO;
    match reply {
        node::Reply::Data { span, offset } => {
            Piece { kind: Kind::Data, place: place(&span), offset, len: span.len }
        }
        node::Reply::Room { span } => {
            Piece { kind: Kind::Room, place: place(&span), offset: none, len: span.len }
        }
        node::Reply::Gap { offset, len } => Piece { kind: Kind::Gap, place: none, offset, len },
        node::Reply::End => Piece { kind: Kind::End, place: none, offset: none, len: none },
        other => unreachable!("{other:?} is no piece of a window"),
    }
}

/// Marks this thread as a disk's, on which nobody may wait for the pool.
pub(crate) fn this_thread_is_a_disks() {
    IS_DISK.set(true);
}

/// Panics on a disk's thread: waiting there for the disk would be for ever.
pub(crate) fn assert_may_wait() {
    assert!(!IS_DISK.get(), "a callback must not wait for the pool; submit instead");
}
