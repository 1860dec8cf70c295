//! One disk, behind its own lock: its queue, and what its thread does.
//!
//! Invariant: a disk whose thread sleeps has nothing to start before the instant that the
//! thread sleeps until. Whoever changes that puts the commands into the disk's `inbox`
//! ([`DiskState::disturb`]) and wakes the thread; or, where nothing is promised on the disk,
//! carries them out himself ([`Disturbed::Here`]). The thread goes on sleeping meanwhile, and
//! does not end before that has.

use crate::arena::Arena;
use crate::backend::here::Here;
use crate::backend::{Completion, Stage, fills, regions};
use crate::lock::{Mutex, OwnedGuard};
use crate::sys;
use node::{CommandEnded, CommandId, DiskCommand, DiskPoll, DiskQueue, Region, Span, Work};
use queue::{DeviceTime, Queue, Shared};
use std::cell::OnceCell;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use units::{Bytes, Instant};
use window::Memory;

/// What the lock of one disk guards.
pub(crate) struct DiskState {
    queue: DiskQueue,
    asleep: Option<Asleep>,
    /// Commands that were taken from the queue for the thread while it slept.
    inbox: Vec<DiskCommand>,
    /// What the commands in flight fill, in the order in which they were given: most end so, too.
    filling: VecDeque<(CommandId, Span)>,
    /// The commands in flight that transfer to or from a shared window.
    shared: Vec<(CommandId, Region)>,
    /// Commands that have ended in the queue, and that the pool does not hear of yet.
    held: VecDeque<Held>,
    /// Carries out commands on other threads, where the device is such a one.
    here: Option<Arc<dyn Here>>,
    /// How many commands other threads carry out.
    elsewhere: usize,
    /// When the pool wants its timers run by this thread.
    timer: Option<Instant>,
    /// The latest time that it was told.
    now: Instant,
    /// Nothing is started any more.
    stopping: bool,
}

/// A command that the device has ended, so that the queue goes on, while its memory is filled or that
/// of a part of the same request before it: the pool hears of parts in their order.
struct Held {
    id: CommandId,
    /// As [`Stage`] names it; none where all of it has ended.
    number: Option<u64>,
    spans: Vec<Span>,
    regions: Vec<Region>,
    ended: CommandEnded,
}

/// A thread that sleeps, until then or for ever.
struct Asleep {
    until: Option<Instant>,
}

/// What somebody else's work does to a disk.
pub(crate) enum Disturbed {
    /// Its thread sleeps on, or is awake and finds it.
    No,
    /// Its thread is to be woken.
    Wake,
    /// Whoever disturbed it carries these out, which move so much, and then says so
    /// ([`DiskState::ended_here`]).
    Here(Carried, Bytes),
}

/// Commands of a disk that another thread carries out.
pub(crate) struct Carried {
    pub(crate) commands: Vec<DiskCommand>,
    pub(crate) here: Arc<dyn Here>,
}

/// What a disk's thread does next.
pub(crate) struct Turn {
    /// What the pool is to be told (`Core::tell`) before anything else; none where there
    /// is nothing, and the thread is to sleep.
    pub ended: Option<Vec<CommandEnded>>,
    /// Until when it sleeps at the latest.
    pub until: Option<Instant>,
    /// No commands will come any more.
    pub stopping: bool,
    /// Memory of windows that is nobody's any more, to be unmapped outside of all locks.
    pub garbage: Vec<Arc<Memory>>,
}

impl DiskState {
    pub(crate) fn new(queue: DiskQueue) -> Self {
        Self {
            queue,
            asleep: None,
            inbox: Vec::new(),
            filling: VecDeque::new(),
            shared: Vec::new(),
            held: VecDeque::new(),
            here: None,
            elsewhere: 0,
            timer: None,
            now: sys::now(),
            stopping: false,
        }
    }

    /// Commands may be carried out by others than the disk's thread.
    pub(crate) fn set_here(&mut self, here: Arc<dyn Here>) {
        self.here = Some(here);
    }

    /// The disk's thread says what has ended, and asks what to do: `commands` are to be started
    /// now. Where there is nothing to tell the pool, it sleeps afterwards.
    pub(crate) fn turn(
        &mut self,
        arena: &Arena,
        done: &mut Vec<Completion>,
        commands: &mut Vec<DiskCommand>,
    ) -> Turn {
        self.now = self.now.max(sys::now());
        let mut garbage = Vec::new();
        let mut ended = Vec::with_capacity(done.len());
        done.drain(..).for_each(|done| self.ended(arena, &done, &mut ended, &mut garbage));
        commands.append(&mut self.inbox);
        let until = self.poll(arena, self.now, commands);
        let is_due = self.timer.is_some_and(|at| at <= self.now);
        let ended = (is_due || !ended.is_empty()).then_some(ended);
        self.asleep = ended.is_none().then_some(Asleep { until });
        if self.stopping {
            commands.clear();
        }
        let stopping = self.stopping && self.elsewhere == 0;
        Turn { ended, until, stopping, garbage }
    }

    /// Something of a command has ended; `told` are those that the pool is to hear of.
    fn ended(
        &mut self,
        arena: &Arena,
        done: &Completion,
        told: &mut Vec<CommandEnded>,
        garbage: &mut Vec<Arc<Memory>>,
    ) {
        let Completion { id, started, finished, noticed, result, stage } = *done;
        if let Stage::Memory(number) = stage {
            return self.is_filled(arena, (number, noticed), told, garbage);
        }
        let (mut spans, mut regions) = (Vec::new(), Vec::new());
        let number = match stage {
            Stage::Device(number) => Some(number),
            _ => None,
        };
        if let Some(at) = self.filling.iter().position(|&(other, _)| other == id) {
            // What one command fills lies side by side here.
            while let Some(&(_, span)) = self.filling.get(at).filter(|(other, _)| *other == id) {
                match number {
                    None => arena.take_back(span),
                    Some(_) => spans.push(span),
                }
                self.filling.remove(at);
            }
        }
        while let Some(at) = self.shared.iter().position(|&(other, _)| other == id) {
            let (_, region) = self.shared.swap_remove(at);
            match number {
                None => garbage.extend(arena.regions().end(region)),
                Some(_) => regions.push(region),
            }
        }
        let times = DeviceTime { started, finished, noticed };
        let ended = node::command_noticed(&mut self.queue, id, times, result);
        if number.is_some() || self.held.iter().any(|held| held.id == id) {
            self.held.push_back(Held { id, number, spans, regions, ended });
        } else {
            told.push(ended);
        }
    }

    /// The memory of a command is filled: the pool hears of it, and of what has waited for that.
    fn is_filled(
        &mut self,
        arena: &Arena,
        (number, now): (u64, Instant),
        told: &mut Vec<CommandEnded>,
        garbage: &mut Vec<Arc<Memory>>,
    ) {
        let held = self.held.iter_mut().find(|held| held.number == Some(number));
        let held = held.expect("its device has ended before");
        held.number = None;
        held.spans.drain(..).for_each(|span| arena.take_back(span));
        garbage.extend(held.regions.drain(..).filter_map(|region| arena.regions().end(region)));
        let id = held.id;
        while let Some(at) = self.held.iter().position(|held| held.id == id)
            && self.held[at].number.is_none()
            && let Some(Held { mut ended, .. }) = self.held.remove(at)
        {
            node::command_filled(&mut self.queue, &mut ended, now);
            told.push(ended);
        }
    }

    /// Asks the queue what the disk shall do until it says to wait, and until when.
    fn poll(
        &mut self,
        arena: &Arena,
        now: Instant,
        commands: &mut Vec<DiskCommand>,
    ) -> Option<Instant> {
        if self.stopping {
            return None;
        }
        loop {
            match node::next_command(&mut self.queue, now) {
                DiskPoll::Wait { until } => return until.into_iter().chain(self.timer).min(),
                DiskPoll::Start(command) => {
                    for &span in fills(&command.action) {
                        arena.lend(span);
                        self.filling.push_back((command.id, span));
                    }
                    for region in regions(&command.action) {
                        arena.regions().begin(region);
                        self.shared.push((command.id, region));
                    }
                    commands.push(command);
                }
            }
        }
    }

    /// The disk may have something to start, or its timer is another. Whoever disturbs it moves at
    /// most `may` himself.
    pub(crate) fn disturb(&mut self, arena: &Arena, now: Instant, may: Bytes) -> Disturbed {
        let Some(asleep) = &self.asleep else { return Disturbed::No };
        let wake_at = asleep.until;
        self.now = self.now.max(now);
        let mut commands = std::mem::take(&mut self.inbox);
        let until = self.poll(arena, self.now, &mut commands);
        let sooner = match (until, wake_at) {
            (Some(until), Some(wake_at)) => until < wake_at,
            (Some(_), None) => true,
            (None, _) => false,
        };
        if !sooner && let Some((moves, here)) = self.takes_here(&commands, may) {
            self.elsewhere += commands.len();
            return Disturbed::Here(Carried { commands, here }, moves);
        }
        let wake = sooner || !commands.is_empty();
        self.inbox = commands;
        if !wake {
            return Disturbed::No;
        }
        self.asleep = None;
        Disturbed::Wake
    }

    /// What carries out these commands on the thread that has them. Where something is promised,
    /// the disk's thread does: others may have to wait for a processor in the midst of it.
    fn takes_here(&self, commands: &[DiskCommand], may: Bytes) -> Option<(Bytes, Arc<dyn Here>)> {
        let here = self.here.as_ref().filter(|_| self.queue.is_unpromised())?;
        let moves: Option<Bytes> = commands.iter().map(|it| here.takes(&it.action)).sum();
        let moves = moves.filter(|&moves| !commands.is_empty() && moves <= may)?;
        Some((moves, Arc::clone(here)))
    }

    /// Somebody has carried out commands; says whether the disk's thread is to be woken.
    pub(crate) fn ended_here(
        &mut self,
        arena: &Arena,
        all: &[Completion],
    ) -> (Vec<CommandEnded>, bool) {
        self.now = all.iter().map(|done| done.noticed).fold(self.now, Instant::max);
        self.elsewhere -= all.len();
        let mut ended = Vec::with_capacity(all.len());
        all.iter().for_each(|done| self.ended(arena, done, &mut ended, &mut Vec::new()));
        // That may wait for this.
        let wakes =
            self.stopping || matches!(self.disturb(arena, self.now, Bytes::ZERO), Disturbed::Wake);
        (ended, wakes)
    }

    /// When the pool wants its timers run.
    pub(crate) fn set_timer(&mut self, timer: Option<Instant>) {
        self.timer = timer;
    }

    /// Nothing is started any more.
    pub(crate) fn stop(&mut self) {
        self.stopping = true;
    }

    #[cfg(test)]
    pub(crate) fn inbox_is_empty(&self) -> bool {
        self.inbox.is_empty()
    }
}

/// The queue of a disk as the node finds it: locked from the first look in a section under
/// the pool's lock to the end of that section.
pub(crate) struct SharedQueue {
    state: Arc<Mutex<DiskState>>,
    held: OnceCell<OwnedGuard<DiskState>>,
}

// SAFETY: a guard belongs to the thread that locked. `held` is empty whenever the node that
// this belongs to changes threads: it does so behind the pool's lock, and whoever has that
// releases all disks before giving it back (`Held`).
#[allow(unsafe_code)]
unsafe impl Send for SharedQueue {}

impl SharedQueue {
    pub(crate) fn new(state: Arc<Mutex<DiskState>>) -> Self {
        Self { state, held: OnceCell::new() }
    }

    fn held(&self) -> &OwnedGuard<DiskState> {
        self.held.get_or_init(|| OwnedGuard::lock(&self.state))
    }
}

impl fmt::Debug for SharedQueue {
    /// Without the queue, which is only to be had under the lock.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedQueue").finish_non_exhaustive()
    }
}

impl Shared<Work> for SharedQueue {
    fn get(&self) -> &Queue<Work> {
        &self.held().queue
    }

    fn get_mut(&mut self) -> &mut Queue<Work> {
        self.held();
        &mut self.held.get_mut().expect("locked just now").queue
    }

    fn release(&mut self) {
        drop(self.held.take());
    }
}
