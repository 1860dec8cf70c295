//! What the threads of a pool share: the node behind its lock, and what goes
//! with it.
//!
//! Whoever has news takes the lock, tells the node, collects what follows
//! ([`News`]) and drops the lock; then the news are delivered: threads are woken
//! and callbacks run. Sections under the lock do no I/O.
//!
//! The queue of each disk has a lock of its own ([`disk`]). A disk's thread takes that
//! alone to say what has ended and to get what to start; it starts that, and tells the pool
//! afterwards. Under the pool's lock the node takes those of the disks that it needs and
//! gives them back with the pool's ([`Held`]). Nobody waits for the pool's lock under a
//! disk's.

mod carried;
mod carry_out;
mod disk;
mod here;
mod later;
mod news;
#[cfg(test)]
pub(crate) mod schedules;

use crate::arena::Arena;
use crate::backend::Completion;
use crate::backend::here::Here;
use crate::callers::{About, Callback, Caller, Callers, NOBODY};
use crate::chunk::{Chunk, ChunkMut, Lender, Loan, Owner};
use crate::core::disk::{DiskState, Disturbed, SharedQueue, Turn};
use crate::core::later::Later;
pub(crate) use crate::core::news::News;
use crate::core::news::{Call, Chores, Waits};
use crate::deliveries::Deliveries;
use crate::lateness::RecentLateness;
use crate::lock::{Mutex, MutexGuard};
use crate::on_disk::on_a_disks_thread;
use crate::searches::Searches;
use crate::sys::{self, Event};
use crate::{Pieces, Reply, SharedWindow, Told, WindowReply};
use node::{
    CommandEnded, CountedBy, DiskCommand, DiskIndex, Error, Event as Happened, HandleId, Holding,
    Look, Mode, Node, Op, Opening, Output, Ownership, Policy, Promise, Region, Span, Status,
    StreamId, StreamStatus, Terms, Ticket, VolumeId, VolumeStatus, Who, Wish,
};
use std::collections::HashMap;
use std::ops::{Deref, DerefMut, Range};
use std::sync::Arc;
use units::{Bytes, Duration, Instant};
use window::{Kind, Memory, Piece, Rights};

/// Most disks in a pool: one bit each in [`News::wake`].
pub(crate) const DISKS_MAX: usize = 64;
const _: () = assert!(store::DISKS_MAX <= DISKS_MAX);

/// Where the clock moves by less than this many nanoseconds against the one that only counts, the machine
/// has not slept for longer.
const SLEPT_LEAST: u64 = 1_000_000_000;

#[cfg(test)]
thread_local! {
    /// How often this thread has taken a pool's lock.
    static VISITS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// How often this thread has taken a pool's lock.
#[cfg(test)]
pub(crate) fn visits() -> u64 {
    VISITS.get()
}

/// What the threads of a pool share.
pub(crate) struct Core {
    arena: Arc<Arena>,
    events: Vec<Arc<Event>>,
    searches: Searches,
    chores: Chores,
    deliveries: Deliveries,
    disks: Vec<Arc<Mutex<DiskState>>>,
    inner: Mutex<Inner>,
}

/// What the lock guards.
pub(crate) struct Inner {
    node: Node,
    callers: Callers,
    /// Streams of which memory is asked for or lent. At most one piece each, so
    /// that nothing that moves the window can happen while a program looks at it.
    lent: HashMap<StreamId, Lent>,
    /// Streams with a shared window.
    windows: HashMap<StreamId, Window>,
    /// When the node wants its timers run, as disk 0 was told.
    timer: Option<Instant>,
    /// The latest time that the node was told.
    now: Instant,
    /// Of which it was told the time of day.
    told_wall_clock: Instant,
    /// What time it was at the epoch when it was told last for how long the machine has slept.
    epoch: i64,
    /// How late the host was recent_lateness.
    recent_lateness: RecentLateness,
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
    mode: Mode,
    /// Seeks that were asked for.
    seeks: u64,
}

/// The pool's lock, with those of the disks that were taken under it.
struct Held<'a>(MutexGuard<'a, Inner>);

impl Deref for Held<'_> {
    type Target = Inner;
    fn deref(&self) -> &Inner {
        &self.0
    }
}

impl DerefMut for Held<'_> {
    fn deref_mut(&mut self) -> &mut Inner {
        &mut self.0
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.node.release_disks();
    }
}

impl Core {
    pub(crate) fn new(node: Node, arena: Arc<Arena>, events: Vec<Arc<Event>>) -> Arc<Self> {
        let mut disks = Vec::new();
        let mut node = node.share_disks(|_, queue| {
            let state = Arc::new(Mutex::new(DiskState::new(queue)));
            disks.push(Arc::clone(&state));
            Box::new(SharedQueue::new(state))
        });
        node.release_disks();
        let inner = Inner {
            node,
            callers: Callers::default(),
            lent: HashMap::new(),
            windows: HashMap::new(),
            timer: None,
            now: sys::now(),
            told_wall_clock: Instant::EPOCH,
            epoch: 0,
            recent_lateness: RecentLateness::new(sys::now()),
            stopping: false,
        };
        let (searches, inner) = (Searches::default(), Mutex::new(inner));
        let (deliveries, chores) = (Deliveries::default(), Chores::default());
        Arc::new(Self { arena, events, searches, chores, deliveries, disks, inner })
    }

    fn lock(&self) -> Held<'_> {
        #[cfg(test)]
        VISITS.set(VISITS.get() + 1);
        Held(self.inner.lock())
    }

    pub(crate) fn arena(&self) -> &Arena {
        &self.arena
    }

    /// Lets the node begin what it has to do before anybody asks for anything.
    pub(crate) fn begin(self: &Arc<Self>) {
        self.section(|inner, _| inner.run_timers());
    }

    /// Begins an operation on behalf of a program.
    pub(crate) fn submit(
        self: &Arc<Self>,
        (who, arrived): (Who, Option<Instant>),
        op: Op,
        callback: Callback,
    ) {
        assert!(
            !matches!(
                op,
                Op::Write { .. }
                    | Op::Release { .. }
                    | Op::WindowOpen { .. }
                    | Op::Open { region: Some(_), .. }
            ),
            "memory goes back through its handle (Pool::write, or drop it); Pool::open_window opens windows"
        );
        let asker = (who, arrived);
        if later::puts_off(self.id(), &op) {
            return later::put(Later::Begin(asker, op, callback));
        }
        self.section(|inner, news| inner.begin(asker, op, callback, news));
    }

    /// Begins to open a stream whose window is shared memory.
    pub(crate) fn open_window(
        self: &Arc<Self>,
        who: Who,
        opening: Opening,
        callback: Callback,
    ) -> std::io::Result<()> {
        let mode = opening.mode;
        let rights = if mode == Mode::Read { Rights::Read } else { Rights::Write };
        let (region, memory) = self.arena.regions().make(rights)?;
        let op = Op::Open { opening: Box::new(opening), region: Some(region) };
        let about = Some(About::Open(region, memory, mode));
        self.section(|inner, news| match inner.stopping {
            true => news.call(callback, Err(Error::ShuttingDown)),
            false => {
                let ticket = inner.callers.insert(Caller { callback, stream: None, about });
                inner.tell(ticket, (who, None), op);
            }
        });
        Ok(())
    }

    /// A stream's memory comes back, and its playout point moves on, in one section; in the same one
    /// what is in memory behind it is taken, as much as `take` says.
    pub(crate) fn advance(
        self: &Arc<Self>,
        who: Who,
        (chunk, len): (Chunk, Bytes),
        callback: Callback,
        take: Option<(Bytes, Callback)>,
    ) {
        assert!(chunk.belongs_to(self), "memory of another pool");
        let (span, owner) = chunk.into_span();
        let Owner::Stream(stream) = owner else { panic!("best effort has no playout point") };
        self.section(|inner, news| {
            inner.take_back(&self.arena, span, owner);
            inner.begin((who.clone(), None), Op::StreamAdvance { stream, len }, callback, news);
            // Nobody waits for it: what is not there is asked for when the program does.
            if let Some((len_max, callback)) = take
                && inner.node.is_there(inner.now, stream, len_max)
            {
                let read = Op::StreamRead { stream, len_max };
                inner.begin((who, None), read, callback, news);
            }
        });
    }

    /// Begins to tell of the pieces of a reader's shared window.
    pub(crate) fn ask_for_pieces(self: &Arc<Self>, pieces: &Arc<Pieces>) {
        self.section(|inner, news| {
            let stream = pieces.stream();
            let error = match inner.windows.get(&stream) {
                _ if inner.stopping => Some(Error::ShuttingDown),
                None => Some(Error::NoSuchStream { stream }),
                Some(window) => (window.mode != Mode::Read).then_some(Error::WrongMode),
            };
            match error {
                None => inner.next_piece(pieces),
                Some(error) => news.call(told(pieces), Err(error)),
            }
        });
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
        let op = Op::Write { volume, range, span, priority };
        let puts_off = later::puts_off(self.id(), &op);
        let write = Later::Begin(asker, op, callback);
        match puts_off {
            true => later::put(write),
            false => self.section(|inner, news| inner.begin_later(&self.arena, write, news)),
        }
    }

    /// Everything that can be seen, gathered in steps that each hold the lock for a moment.
    pub(crate) fn status(&self) -> Status {
        self.tell_carried();
        let mut look = Look::new(self.lock().read_clock());
        while self.lock().node.look(&mut look) {}
        let (status, analysed) = look.finish();
        self.lock().node.learn(&analysed);
        status
    }

    pub(crate) fn volume(&self, name: &str) -> Option<VolumeStatus> {
        self.tell_carried();
        self.lock().node.volume(name)
    }

    pub(crate) fn written(
        &self,
        who: &Who,
        volume: (&str, VolumeId),
        range: Range<Bytes>,
    ) -> Result<Vec<(Bytes, bool)>, Error> {
        self.lock().node.written(who, volume, range)
    }

    /// Where it lies says which one it is.
    fn id(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    pub(crate) fn volume_id(&self, name: &str) -> Option<VolumeId> {
        self.lock().node.volume_id(name)
    }

    pub(crate) fn holding(&self, whose: CountedBy) -> Holding {
        self.lock().node.holding(whose)
    }

    pub(crate) fn stream(&self, id: StreamId) -> Option<StreamStatus> {
        self.tell_carried();
        self.lock().node.stream(id)
    }

    pub(crate) fn terms(&self, volume: &str, wish: &Wish) -> Option<Terms> {
        self.lock().node.terms(volume, wish)
    }

    pub(crate) fn run_for(&self, placement: &node::Placement, size: Bytes) -> Bytes {
        self.lock().node.run_for(placement, size)
    }

    pub(crate) fn entries(
        &self,
        who: &Who,
        directory: &str,
        after: &str,
        most: usize,
    ) -> Vec<node::Entry> {
        let (mut all, mut looked) = (Vec::new(), None);
        loop {
            let behind = (after, looked);
            let (some, next) =
                self.lock().node.look_at_entries(who, directory, behind, most - all.len());
            all.extend(some);
            match next {
                Some(next) if all.len() < most => looked = Some(next),
                _ => return all,
            }
        }
    }

    pub(crate) fn recorded(&self, name: &str) -> Option<node::Recorded> {
        self.lock().node.recorded(name)
    }

    pub(crate) fn capacity(&self) -> node::Capacity {
        self.lock().node.capacity()
    }

    pub(crate) fn directory(&self, who: &Who, name: &str) -> Option<node::Directory> {
        let mut looked = None;
        loop {
            let found = self.lock().node.look_at_directory(who, name, looked);
            match found {
                Ok(found) => return found,
                Err(next) => looked = Some(next),
            }
        }
    }

    /// Names and owners of all volumes, with the lock taken for some of them at a time.
    pub(crate) fn names(&self) -> Vec<(String, Ownership)> {
        let (mut all, mut last) = (Vec::new(), None);
        loop {
            let some = self.lock().node.names_after(last);
            let Some((id, ..)) = some.last() else { return all };
            last = Some(*id);
            all.extend(some.into_iter().map(|(_, name, whose)| (name, whose)));
        }
    }

    pub(crate) fn operations(&self, volume: &str, handle: Option<HandleId>) -> u64 {
        self.lock().node.operations(volume, handle)
    }

    pub(crate) fn failures_told(&self, volume: &str) -> u64 {
        self.lock().node.failures_told(volume)
    }

    pub(crate) fn failures_were_told(&self, who: &Who, volume: &str, failures: u64) {
        self.lock().node.failures_were_told(who, volume, failures);
    }

    pub(crate) fn policy(&self) -> Policy {
        self.lock().node.config().policy
    }

    pub(crate) fn is_read_only(&self) -> bool {
        self.lock().node.is_read_only()
    }

    /// Commands of this disk may be carried out by others than its thread.
    pub(crate) fn set_here(&self, disk: DiskIndex, here: Arc<dyn Here>) {
        self.disks[disk.as_usize()].lock().set_here(here);
    }

    /// A disk's thread says what has ended, and asks what to do: `commands` are to be started now.
    pub(crate) fn turn(
        &self,
        disk: DiskIndex,
        done: &mut Vec<Completion>,
        commands: &mut Vec<DiskCommand>,
    ) -> Turn {
        self.disks[disk.as_usize()].lock().turn(&self.arena, done, commands)
    }

    /// A disk's thread tells the pool what has ended, and how late the host was at the worst
    /// since it last did.
    pub(crate) fn tell(self: &Arc<Self>, ended: Vec<CommandEnded>, late: Duration) -> News {
        let mut news = News::default();
        let mut inner = self.lock();
        let now = inner.read_clock();
        if let Some(latency) = inner.recent_lateness.note(now, late) {
            inner.tell_own(NOBODY, Op::HostLatency { latency });
        }
        news.calls.reserve(ended.len()); // mostly somebody hears of each
        ended.into_iter().for_each(|ended| inner.node.command_ended(now, ended));
        self.collect(&mut inner, &mut news);
        news
    }

    /// No disk starts anything any more. Whoever still waits is told so.
    pub(crate) fn stop(self: &Arc<Self>) {
        let mut inner = self.lock();
        inner.stopping = true;
        let callers = inner.callers.drain();
        drop(inner);
        self.disks.iter().for_each(|disk| disk.lock().stop());
        self.events.iter().for_each(|event| event.signal());
        let mut news = News::default();
        callers.into_iter().for_each(|it| news.call(it.callback, Err(Error::ShuttingDown)));
        self.deliver(news);
    }

    /// What the disks' threads have left to the thread beside them is done; they have ended.
    pub(crate) fn end_chores(&self) {
        self.chores.end();
    }

    /// A section under the lock, and the delivery of what follows from it.
    fn section(self: &Arc<Self>, change: impl FnOnce(&mut Inner, &mut News)) {
        self.deliver(self.collected(later::take(self.id()), change));
    }

    /// What follows from a section under the lock, in which what this thread has put off
    /// comes first.
    fn collected(
        self: &Arc<Self>,
        later: Vec<Later>,
        change: impl FnOnce(&mut Inner, &mut News),
    ) -> News {
        let mut news = News::default();
        let mut inner = self.lock();
        // In a callback, the time of the turn that led to it will do: clocks are
        // slow in some virtual machines, and callbacks are short.
        if !on_a_disks_thread() {
            inner.read_clock();
        }
        if !later.is_empty() {
            later.into_iter().for_each(|later| inner.begin_later(&self.arena, later, &mut news));
            // Before `change`: a seek tells what was answered before it from what comes later.
            self.take_outputs(&mut inner, &mut news);
        }
        change(&mut inner, &mut news);
        self.collect(&mut inner, &mut news);
        news
    }

    /// Delivers on a disk's thread: what the callbacks ask for and may be put off takes the
    /// lock once for all of them.
    pub(crate) fn deliver_together(self: &Arc<Self>, news: News) {
        // For each a read that begins and one's memory that comes back, mostly.
        later::begin(self.id(), Vec::with_capacity(2 * news.calls.len()));
        self.deliver(news);
        self.begin_all(later::end());
    }

    /// Begins what this thread has put off.
    pub(crate) fn begin_put_off(self: &Arc<Self>) {
        self.begin_all(later::take(self.id()));
    }

    fn begin_all(self: &Arc<Self>, later: Vec<Later>) {
        if !later.is_empty() {
            self.deliver(self.collected(later, |_, _| {}));
        }
    }

    /// What `ask` asks for on this thread takes the lock once, where it may be put off.
    pub(crate) fn together(self: &Arc<Self>, ask: impl FnOnce()) {
        if !later::begin_go(self.id()) {
            return ask();
        }
        /// Also where `ask` panics: what its thread puts off is never left behind.
        struct Go<'a>(&'a Arc<Core>);
        impl Drop for Go<'_> {
            fn drop(&mut self) {
                self.0.begin_all(later::end());
            }
        }
        let _go = Go(self);
        ask();
    }

    /// Takes the answers that the node has, and looks after the disks that got work.
    fn collect(self: &Arc<Self>, inner: &mut Inner, news: &mut News) {
        self.forget_deliveries(inner);
        self.take_outputs(inner, news);
        self.deliveries.counts(inner.node.delivery());
        // Once, since what is left may be much: disk 0's thread goes on with it.
        if inner.node.next_timer().is_some_and(|at| at <= inner.now) {
            inner.run_timers();
            self.take_outputs(inner, news);
        }
        let mut disks = 0u64;
        while let Some(disk) = inner.node.next_wake() {
            disks |= 1 << disk.0;
        }
        inner.node.release_disks();
        let timer = inner.node.next_timer().into_iter().chain(self.deliveries.due()).min();
        if timer != inner.timer {
            inner.timer = timer;
            self.disks[0].lock().set_timer(timer);
            disks |= 1;
        }
        let mut may = here::may();
        for (at, disk) in self.disks.iter().enumerate().filter(|(at, _)| disks & 1 << at != 0) {
            let disturbed = disk.lock().disturb(&self.arena, inner.now, may);
            match disturbed {
                Disturbed::No => {}
                Disturbed::Wake => news.wake |= 1 << at,
                Disturbed::Here(carried, moves) => {
                    may -= moves;
                    news.here.push((at, carried));
                }
            }
        }
    }

    fn take_outputs(self: &Arc<Self>, inner: &mut Inner, news: &mut News) {
        while let Some(output) = inner.node.poll_output() {
            inner.answer(self, output, news);
        }
        if inner.node.has_freed() {
            let core = Arc::clone(self);
            news.release = Some(Box::new(move || core.release_freed()));
        }
    }

    /// Gives parts of windows that are not needed any more back to the system, which takes its time:
    /// without the lock.
    fn release_freed(&self) {
        let mut done = None;
        loop {
            let mut inner = self.lock();
            done.into_iter().for_each(|number| inner.node.released(number));
            let Some((number, span)) = inner.node.release_next() else { return };
            // Taken under the lock: the region may be another stream's soon.
            let part = Region::of(&span)
                .and_then(|(region, place)| Some((self.arena.regions().memory(region)?, place)));
            drop(inner);
            if let Some((memory, place)) = part {
                // Refused, the memory stays until the stream is closed.
                let _ = memory.release(place.as_usize(), span.len.as_usize());
            }
            done = Some(number);
        }
    }

    /// Wakes threads and runs callbacks, outside the lock.
    pub(crate) fn deliver(self: &Arc<Self>, news: News) {
        self.wake(news.wake);
        // Before anybody is called back: he may stop the pool, which waits for this.
        let mut carried_out = self.carry_out(news.here);
        if let Some((next, _)) = &mut carried_out {
            self.wake(std::mem::take(&mut next.wake));
        }
        // Gone before the close is answered that it goes with.
        self.unmap(news.garbage);
        for call in news.calls {
            self.chores.call(&self.arena, call);
        }
        for (callback, error, search) in news.refusals {
            self.searches.run(error, search, callback);
        }
        if let Some(release) = news.release {
            self.chores.release(&self.arena, release);
        }
        if let Some((next, _within)) = carried_out {
            self.deliver(next);
        }
    }

    fn wake(&self, disks: u64) {
        for (_, event) in self.events.iter().enumerate().filter(|(at, _)| disks & (1 << at) != 0) {
            event.signal();
        }
    }
}

impl Core {
    /// Memory of windows that is nobody's any more.
    pub(crate) fn unmap(&self, garbage: Vec<Arc<Memory>>) {
        self.chores.unmap(&self.arena, garbage);
    }
}

impl Lender for Core {
    fn memory(&self, span: Span) -> *mut u8 {
        self.arena.pointer(span)
    }

    fn take_back(self: Arc<Self>, span: Span, owner: Owner) {
        if owner == Owner::BestEffort && later::put_release(self.id(), span) {
            return;
        }
        self.section(|inner, _| inner.take_back(&self.arena, span, owner));
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
                self.release(span);
            }
            return news.call(callback, Err(error));
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

    /// Memory that was lent comes back.
    fn take_back(&mut self, arena: &Arena, span: Span, owner: Owner) {
        arena.take_back(span);
        match owner {
            Owner::BestEffort => self.release(span),
            Owner::Stream(stream) => {
                if let Some(Lent::Held { close: Some(ticket) }) = self.lent.remove(&stream) {
                    self.tell_own(ticket, Op::StreamClose { stream });
                }
            }
        }
    }

    /// Asks the node for the next piece, on behalf of whoever is told all of them.
    fn next_piece(&mut self, pieces: &Arc<Pieces>) {
        let (stream, about) = (pieces.stream(), Some(About::Pieces(Arc::clone(pieces))));
        let caller = Caller { callback: told(pieces), stream: None, about };
        let ticket = self.callers.insert(caller);
        self.tell(ticket, (pieces.who().clone(), None), Op::WindowNext { stream });
    }

    /// What was put off, in its turn.
    fn begin_later(&mut self, arena: &Arena, later: Later, news: &mut News) {
        match later {
            Later::Begin(asker, op, callback) => {
                if let Op::Write { span, .. } = &op {
                    arena.take_back(*span);
                }
                self.begin(asker, op, callback, news);
            }
            Later::Release(span) => self.take_back(arena, span, Owner::BestEffort),
        }
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

    /// What the node does by itself by now; some of it goes by the time of day.
    fn run_timers(&mut self) {
        self.tell_wall_clock();
        self.node.run_timers(self.now);
    }

    /// Once for each time that the node is told: clocks are slow in some virtual machines.
    fn tell_wall_clock(&mut self) {
        if self.told_wall_clock != self.now {
            self.told_wall_clock = self.now;
            let epoch = sys::wall_clock_at_epoch(self.now);
            // What the machine has slept is asked for only where that may be it.
            if epoch.abs_diff(self.epoch) > SLEPT_LEAST {
                self.epoch = epoch;
                self.node.set_slept(sys::slept());
            }
            self.node.set_wall_clock(epoch);
        }
    }

    /// What somebody asks, and when his program did where that was before now.
    fn tell(&mut self, ticket: Ticket, (who, arrived): (Who, Option<Instant>), op: Op) {
        let arrived = arrived.unwrap_or(self.now);
        self.tell_wall_clock();
        self.node.handle(self.now, Happened::Request { ticket, who, op, arrived });
    }

    /// Memory of best effort is nobody's any more.
    fn release(&mut self, span: Span) {
        self.tell_wall_clock();
        self.node.release(self.now, span);
    }

    /// What the engine asks by itself.
    fn tell_own(&mut self, ticket: Ticket, op: Op) {
        self.tell(ticket, (Who::root(), None), op);
    }

    /// Makes the node's answer into the program's: memory is lent here.
    fn answer(&mut self, core: &Arc<Core>, output: Output, news: &mut News) {
        let Output { ticket, result, search, promise } = output;
        if ticket == NOBODY || self.stopping {
            return;
        }
        let Caller { callback, stream, about } = self.callers.remove(ticket);
        if let Some(about) = about {
            let (waits, result) = self.answer_window(core.arena(), about, (result, promise), news);
            return news.told(Call { waits, callback, result }, search);
        }
        if let Some(stream) = stream {
            self.lent.remove(&stream);
        }
        if let (Some(stream), Ok(node::Reply::Data { .. } | node::Reply::Room { .. })) =
            (stream, &result)
        {
            self.lent.insert(stream, Lent::Held { close: None });
        }
        let lend = |span: Span| {
            core.arena.lend(span);
            let owner = stream.map_or(Owner::BestEffort, Owner::Stream);
            let lender: Arc<dyn Lender> = core.clone();
            Loan::new(lender, span, owner, promise)
        };
        let mut room_lent = None;
        let result = result.map(|reply| match (reply, promise) {
            (node::Reply::Done, Some(promise)) => Reply::Promised(promise),
            (reply, _) => reply.map(
                |span| Chunk::new(lend(span)),
                |span| {
                    room_lent = stream.map(|_| span);
                    ChunkMut::new(lend(span))
                },
                |never| match never {},
            ),
        });
        news.told(Call { waits: Waits::For(room_lent), callback, result }, search);
    }

    /// The same, for an operation that has to do with a shared window: a region is
    /// given to its stream here, and taken back.
    fn answer_window(
        &mut self,
        arena: &Arena,
        about: About,
        (result, promise): (Result<node::Reply, Error>, Option<Promise>),
        news: &mut News,
    ) -> (Waits, Result<Reply, Error>) {
        let mut waits = Waits::For(None);
        let result = match (about, result) {
            (About::Open(region, memory, mode), Ok(node::Reply::Stream { stream, window })) => {
                self.windows.insert(stream, Window { region, mode, seeks: 0 });
                Ok(Reply::Window(WindowReply::Shared(SharedWindow { stream, window, memory })))
            }
            (About::Open(region, ..), result) => {
                news.garbage.extend(arena.regions().free(region));
                Err(result.expect_err("a stream that is opened has a number"))
            }
            (About::Next(stream), Ok(reply)) => {
                // What a stream that reads and writes is told of holds what the volume holds.
                let mode = self.windows.get(&stream).map(|window| window.mode);
                if let node::Reply::Room { room: span } = reply
                    && mode != Some(Mode::Update)
                {
                    let (region, _) = Region::of(&span).expect("room of a shared window");
                    arena.regions().begin(region);
                    waits = Waits::For(Some(span));
                }
                let seeks = self.windows.get(&stream).map_or(0, |window| window.seeks);
                Ok(Reply::Window(WindowReply::Told(Told { piece: piece(reply), seeks, promise })))
            }
            (About::Seek(seeks), Ok(node::Reply::Ready { at, steady, .. })) => {
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
                waits = Waits::ForUnmapping;
                result.map(|reply| match reply {
                    node::Reply::Durable { upto } => Reply::Durable { upto },
                    node::Reply::Done => Reply::Done,
                    other => unreachable!("{other:?} answers no close"),
                })
            }
            (About::Pieces(pieces), result) => {
                let seeks = self.windows.get(&pieces.stream()).map_or(0, |window| window.seeks);
                let piece = |reply| Told { piece: piece(reply), seeks, promise };
                let told = result.map(piece);
                if pieces.tell(told) {
                    self.next_piece(&pieces);
                }
                Ok(Reply::Done)
            }
            (About::Next(_) | About::Seek(_), Err(error)) => Err(error),
            (About::Seek(_), Ok(other)) => unreachable!("{other:?} answers no seek"),
        };
        (waits, result)
    }
}

/// Rings where pieces are told. An error that did not come by the node is told here.
fn told(pieces: &Arc<Pieces>) -> Callback {
    let pieces = Arc::clone(pieces);
    Box::new(move |result: Result<Reply, Error>| {
        if let Err(error) = result {
            pieces.tell(Err(error));
        }
        pieces.ring();
    })
}

/// What the node tells of the next piece of a shared window.
fn piece(reply: node::Reply) -> Piece {
    let place = |span: &Span| Region::of(span).expect("a shared window is in a region").1;
    let none = Bytes::ZERO;
    match reply {
        node::Reply::Data { bytes: span, offset } => {
            Piece { kind: Kind::Data, place: place(&span), offset, len: span.len }
        }
        node::Reply::Room { room: span } => {
            Piece { kind: Kind::Room, place: place(&span), offset: none, len: span.len }
        }
        node::Reply::Gap { offset, len } => Piece { kind: Kind::Gap, place: none, offset, len },
        node::Reply::End => Piece { kind: Kind::End, place: none, offset: none, len: none },
        other => unreachable!("{other:?} is no piece of a window"),
    }
}
