//! What a section under the pool's lock leaves to be done for callbacks, and the callbacks: memory
//! is filled with zeros, windows are unmapped, parts of them given back, programs are told.
//!
//! A disk's thread comes that much later to the next end of a command, and whoever waits for that
//! one pays. So it fills no more than [`LITTLE`] for a callback, and unmaps nothing: threads
//! beside it do that, and call back ([`Chores`]). One fills the room of streams, as much as their
//! contracts move; where the disks' threads have real-time priority, it has that of those that carry
//! answers to their programs. The other one unmaps, however much anybody has had mapped, with less:
//! no room of a stream waits for that. All other callbacks run on the disk's thread,
//! since to wake another one for each takes longer, up to milliseconds, than they do.
//!
//! Invariants: a callback runs once, when what it waits for is done; what each of the threads beside
//! has is done in its order; no lock of the pool's is held meanwhile.

use crate::arena::Arena;
use crate::backend::zero_room;
use crate::callers::Callback;
use crate::core::disk::Carried;
use crate::lock::Mutex;
use crate::on_disk::{PRIORITY_DELIVERY, PRIORITY_UNMAPPING, on_a_disks_thread};
use crate::{Reply, sys};
use node::{Error, RateSearch, Region, Span};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use units::Bytes;
use window::Memory;

/// So much is filled faster than another thread is woken.
const LITTLE: Bytes = Bytes::kib(64);

/// What gives back parts of windows.
type Release = Box<dyn FnOnce() + Send>;

/// What follows from a section under the lock.
#[derive(Default)]
pub(crate) struct News {
    pub(super) calls: Vec<Call>,
    /// Refusals that are told when the largest rate that would fit is found.
    pub(super) refusals: Vec<(Callback, Error, Box<RateSearch>)>,
    /// The disks whose threads are to be woken.
    pub(super) wake: u64,
    /// Commands that this thread is to carry out itself, each with its disk.
    pub(super) here: Vec<(usize, Carried)>,
    /// Memory of windows that is nobody's any more.
    pub(super) garbage: Vec<Arc<Memory>>,
    /// Gives parts of windows back to the system.
    pub(super) release: Option<Release>,
}

impl News {
    /// Somebody is told, and nothing is to be done before.
    pub(super) fn call(&mut self, callback: Callback, result: Result<Reply, Error>) {
        self.calls.push(Call { waits: Waits::For(None), callback, result });
    }

    /// The same of an answer of the node; of a refusal when what is left is searched.
    pub(super) fn told(&mut self, call: Call, search: Option<Box<RateSearch>>) {
        let Some(search) = search else { return self.calls.push(call) };
        match call.result {
            Err(error) => self.refusals.push((call.callback, error, search)),
            result => self.calls.push(Call { result, ..call }),
        }
    }
}

/// Somebody who is told how his operation ended.
pub(crate) struct Call {
    pub(super) waits: Waits,
    pub(super) callback: Callback,
    pub(super) result: Result<Reply, Error>,
}

/// What is to be done before.
pub(crate) enum Waits {
    /// This room is filled with zeros. One of a shared window counts as a command in its region,
    /// which so stays until then.
    For(Option<Span>),
    /// What goes with a window is unmapped.
    ForUnmapping,
}

impl Waits {
    fn is_long(&self) -> bool {
        match self {
            Self::For(room) => room.is_some_and(|room| room.len > LITTLE),
            Self::ForUnmapping => true,
        }
    }
}

impl Call {
    fn run(self, arena: &Arena) {
        if let Waits::For(Some(room)) = self.waits {
            zero_room(arena, room);
            if let Some((region, _)) = Region::of(&room) {
                drop(arena.regions().end(region));
            }
        }
        (self.callback)(self.result);
    }
}

enum Chore {
    Call(Call),
    Unmap(Vec<Arc<Memory>>),
    Release(Release),
}

impl Chore {
    /// What a stream under contract waits for.
    fn is_promised(&self) -> bool {
        matches!(self, Self::Call(Call { waits: Waits::For(_), .. }))
    }

    fn run(self, arena: &Arena) {
        match self {
            Self::Call(call) => call.run(arena),
            Self::Unmap(garbage) => drop(garbage),
            Self::Release(release) => release(),
        }
    }
}

/// Callbacks within one another on this thread, at the most.
const NESTED_MAX: u32 = 16;

thread_local! {
    static NESTED: Cell<u32> = const { Cell::new(0) };
}

/// A callback runs on this thread.
struct Nested;

impl Nested {
    fn enter() -> Self {
        NESTED.set(NESTED.get() + 1);
        Self
    }

    fn is_deep() -> bool {
        NESTED.get() > NESTED_MAX
    }
}

impl Drop for Nested {
    fn drop(&mut self) {
        NESTED.set(NESTED.get() - 1);
    }
}

/// The threads beside the disks', each from its first chore on, until [`Chores::end`].
#[derive(Default)]
pub(crate) struct Chores {
    /// Fills what streams wait for.
    fills: Mutex<Beside>,
    /// Unmaps, gives parts of windows back, and does all that comes after that.
    unmaps: Mutex<Beside>,
}

#[derive(Default)]
enum Beside {
    /// No disk's thread had a chore so far.
    #[default]
    NotYet,
    Runs(Sender<Chore>, JoinHandle<()>),
    /// It could not be had, or has ended.
    None,
}

impl Chores {
    /// Tells somebody, here or beside. What is answered at once (a read of what is cached, memory that is
    /// free) may be asked for in the callback of the one before it, on and on: beyond so many of these
    /// within one another the next one's is called beside.
    pub(crate) fn call(&self, arena: &Arc<Arena>, call: Call) {
        let _nested = Nested::enter();
        match call.waits.is_long() {
            _ if Nested::is_deep() => self.beside(arena, Chore::Call(call)),
            true => self.run(arena, Chore::Call(call)),
            false => call.run(arena),
        }
    }

    /// Unmaps windows, here or beside, before who waits for that is told.
    pub(crate) fn unmap(&self, arena: &Arc<Arena>, garbage: Vec<Arc<Memory>>) {
        if !garbage.is_empty() {
            self.run(arena, Chore::Unmap(garbage));
        }
    }

    /// Gives back, here or beside, what the pool's streams do not need any more of their windows.
    pub(crate) fn release(&self, arena: &Arc<Arena>, release: Release) {
        self.run(arena, Chore::Release(release));
    }

    /// Here, unless this is a disk's thread and there is another one.
    fn run(&self, arena: &Arc<Arena>, chore: Chore) {
        #[cfg(test)]
        if super::schedules::inside() {
            return chore.run(arena);
        }
        if !on_a_disks_thread() {
            return chore.run(arena);
        }
        self.beside(arena, chore);
    }

    /// On another thread, where there is one.
    fn beside(&self, arena: &Arc<Arena>, chore: Chore) {
        #[cfg(test)]
        if super::schedules::inside() {
            return chore.run(arena);
        }
        let (beside, name, priority) = match chore.is_promised() {
            true => (&self.fills, "slackline-fills", PRIORITY_DELIVERY),
            false => (&self.unmaps, "slackline-unmaps", PRIORITY_UNMAPPING),
        };
        let mut beside = beside.lock();
        if let Beside::NotYet = *beside {
            *beside = start(Arc::clone(arena), name, priority);
        }
        let sent = match &*beside {
            Beside::Runs(thread, _) => thread.send(chore).map_err(|back| back.0),
            _ => Err(chore),
        };
        drop(beside);
        if let Err(chore) = sent {
            chore.run(arena);
        }
    }

    /// Waits until all is done, and for the end of the threads; called when the disks' threads have
    /// ended.
    pub(crate) fn end(&self) {
        for beside in [&self.fills, &self.unmaps] {
            let beside = std::mem::replace(&mut *beside.lock(), Beside::None);
            let Beside::Runs(chores, thread) = beside else { continue };
            drop(chores);
            // The pool's last owner may be a callback, on this very thread.
            if thread.thread().id() != std::thread::current().id() {
                let _ = thread.join(); // a panic there has ended the process
            }
        }
    }
}

fn start(arena: Arc<Arena>, name: &str, priority: i32) -> Beside {
    let (sender, chores) = channel::<Chore>();
    let thread = std::thread::Builder::new().name(name.into());
    let work = move || {
        let _fatal = crate::lock::Fatal::new("in the thread that does disks' chores");
        // A disk's thread has started it.
        if sys::is_real_time() {
            let _ = sys::become_real_time_alone(priority); // to have less is permitted
        }
        chores.into_iter().for_each(|chore| chore.run(&arena));
    };
    thread.spawn(work).map_or(Beside::None, |thread| Beside::Runs(sender, thread))
}

#[allow(unsafe_code)]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Surroundings;
    use crate::on_disk::this_thread_is_a_disks;
    use std::sync::mpsc::Receiver;
    use std::thread::{self, ThreadId};
    use window::Rights;

    fn call(waits: Waits) -> (Call, Receiver<ThreadId>) {
        let (told, is_told) = channel();
        let callback = Box::new(move |_| told.send(thread::current().id()).unwrap());
        (Call { waits, callback, result: Ok(Reply::Done) }, is_told)
    }

    /// A disk's thread has completions to look at.
    #[test]
    fn a_disks_thread_fills_little_and_leaves_what_takes_long_to_another_one() {
        let arena = Surroundings::alone().arena;
        let room = |len| Span { offset: Bytes::mib(1), len };
        let bytes = Bytes::MIB.as_usize();
        // SAFETY: nobody else knows of the arena yet.
        unsafe { arena.pointer(room(Bytes::MIB)).write_bytes(7, bytes) };
        let worker = move || {
            let (chores, own) = (Chores::default(), thread::current().id());
            let (long, is_told) = call(Waits::For(Some(room(Bytes::MIB))));
            chores.call(&arena, long);
            assert_eq!(is_told.recv(), Ok(own), "an ordinary thread does it itself");
            // SAFETY: it was told, and nobody has it.
            unsafe { arena.pointer(room(Bytes::MIB)).write_bytes(7, bytes) };
            this_thread_is_a_disks();
            let (long, is_told) = call(Waits::For(Some(room(Bytes::MIB))));
            chores.call(&arena, long);
            assert_ne!(is_told.recv(), Ok(own));
            // SAFETY: as above.
            let memory =
                unsafe { std::slice::from_raw_parts(arena.pointer(room(Bytes::MIB)), bytes) };
            assert!(memory.iter().all(|&byte| byte == 0), "filled before it is told");
            for waits in [Waits::For(Some(room(LITTLE))), Waits::For(None)] {
                let (short, is_told) = call(waits);
                chores.call(&arena, short);
                assert_eq!(is_told.recv(), Ok(own));
            }
        };
        thread::spawn(worker).join().unwrap();
    }

    /// Another user has much memory unmapped: a stream's room does not wait for that.
    #[test]
    fn room_is_filled_while_windows_are_unmapped() {
        let arena = Surroundings::alone().arena;
        let worker = move || {
            let chores = Chores::default();
            this_thread_is_a_disks();
            let (filled, is_filled) = channel();
            let (closed, is_closed) = channel();
            // The one that is under way waits for what comes behind it.
            let callback = Box::new(move |_| {
                let within = std::time::Duration::from_secs(60);
                closed.send(is_filled.recv_timeout(within).is_ok()).unwrap();
            });
            let close = Call { waits: Waits::ForUnmapping, callback, result: Ok(Reply::Done) };
            chores.call(&arena, close);
            let room = Span { offset: Bytes::mib(1), len: Bytes::MIB };
            let callback = Box::new(move |_| filled.send(()).unwrap());
            let waits = Waits::For(Some(room));
            chores.call(&arena, Call { waits, callback, result: Ok(Reply::Done) });
            assert_eq!(is_closed.recv(), Ok(true));
            chores.end();
        };
        thread::spawn(worker).join().unwrap();
    }

    #[test]
    fn a_close_is_answered_when_its_window_is_unmapped_beside_the_disks_thread() {
        let arena = Surroundings::alone().arena;
        let worker = move || {
            let chores = Chores::default();
            this_thread_is_a_disks();
            let (_, memory) = arena.regions().make(Rights::Read).unwrap();
            let (region, window) = arena.regions().make(Rights::Read).unwrap();
            drop(memory);
            let watch = Arc::downgrade(&window);
            drop(window);
            chores.unmap(&arena, arena.regions().free(region).into_iter().collect());
            let (told, is_told) = channel();
            let callback = Box::new(move |_| told.send(watch.upgrade().is_none()).unwrap());
            let close = Call { waits: Waits::ForUnmapping, callback, result: Ok(Reply::Done) };
            chores.call(&arena, close);
            assert_eq!(is_told.recv(), Ok(true));

            // At the end nothing is left to be done, also where nobody waits for it.
            let (region, window) = arena.regions().make(Rights::Read).unwrap();
            let watch = Arc::downgrade(&window);
            drop(window);
            chores.unmap(&arena, arena.regions().free(region).into_iter().collect());
            chores.end();
            assert!(watch.upgrade().is_none());
        };
        thread::spawn(worker).join().unwrap();
    }
}
