//! One open stream: its window, its playout point, and what it waits for.
//!
//! The window holds the blocks `base .. base + blocks` of the volume, each in a
//! place of its own in the arena: where one slides out of the window in front, the
//! next one at its end gets the place. The places need not be neighbours, so that
//! the window can grow and shrink while the stream is open. Invariants: the playout point lies in the window
//! or at its end; every command under way for the stream has a slot in state
//! [`Slot::Moving`]; what the program holds (`held`) is never touched.
//! What a reader or a writer does with the window is in `reader.rs` and
//! `writer.rs`.

use crate::api::*;
use crate::arena::Use;
use crate::contract::{self, Joined};
use crate::core::Core;
use crate::credit::Credit;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use sched::{Class, Task};
use store::{EXTENT, VolumeId};
use units::{Bytes, Duration, Instant};

/// What a block of the window is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    /// Reader: not asked for yet. Writer: being filled.
    Open,
    /// A command is waiting or under way.
    Moving(CommandId),
    /// Reader: in memory. Writer: on the disk.
    Ready,
    /// The device failed on it.
    Failed(DiskIndex, DeviceError),
}

/// What the program waits for: the next bytes, or room for them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ask {
    pub ticket: Ticket,
    pub len_max: Bytes,
    /// Counted as throttled or as an underrun already.
    pub throttled: bool,
    pub starved_since: Option<Instant>,
}

/// Who waits for bytes to be on the medium: past `beyond` (exclusive).
#[derive(Clone, Copy, Debug)]
pub(crate) struct DurableAsk {
    pub ticket: Ticket,
    /// Answered when the durable offset is at least this.
    pub at_least: Bytes,
    /// A sync hurries the commit; a mere listener does not.
    pub urgent: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Stream {
    pub id: StreamId,
    pub volume: VolumeId,
    pub mode: Mode,
    pub contract: Contract,
    pub tasks: Vec<Joined>,
    /// Tasks of before a resize, left once no command up to the named one is
    /// under way.
    pub retired: Vec<(Vec<Joined>, CommandId)>,
    pub slots: VecDeque<Slot>,
    /// Where in the arena each block of the window is.
    places: VecDeque<Bytes>,
    /// How many blocks the window shall have; it has more until it has slid.
    pub target: u64,
    /// A faster contract that is admitted: the program may make use of it from then
    /// on, when the window can follow.
    later: Option<(Instant, Contract)>,
    pub base: u64,
    /// The playout point: where the program reads or writes next.
    pub position: Bytes,
    pub credit: Credit,
    /// The contract that `credit` goes by.
    credit_contract: Contract,
    /// Bytes handed to the program and not yet given back.
    pub held: Bytes,
    pub ask: Option<Ask>,
    pub timer: Option<Instant>,
    /// Reader: playout has begun.
    pub primed: bool,
    /// Reader: playout begins no earlier, because the requests that fill the
    /// window are released a period apart: begun earlier, those that follow
    /// would have their deadlines too late.
    pub playout_from: Instant,
    /// Writer: offsets written to the device, covered by the running commit,
    /// and on the medium.
    pub written: Bytes,
    pub committing: Bytes,
    pub durable: Bytes,
    pub durable_asks: Vec<DurableAsk>,
    /// Writer: a partial block is being written, up to here.
    pub partial: Option<Bytes>,
    pub closing: bool,
    pub close_ticket: Option<Ticket>,
    pub open_since: Instant,
    pub moved: Bytes,
    pub requests: u64,
    pub late_requests: u64,
    pub late_max: Duration,
    pub underruns: u64,
    pub throttled: u64,
    pub gaps: Bytes,
    pub latency_max: Duration,
}

impl Stream {
    #[allow(clippy::too_many_arguments)] // an open stream is just these
    pub(crate) fn new(
        id: StreamId,
        volume: VolumeId,
        mode: Mode,
        contract: Contract,
        tasks: Vec<Joined>,
        window: Span,
        start: Bytes,
        now: Instant,
    ) -> Self {
        let blocks = window.len / contract.block;
        Self {
            id,
            volume,
            mode,
            contract,
            tasks,
            retired: Vec::new(),
            slots: (0..blocks).map(|_| Slot::Open).collect(),
            places: places(window, contract.block).collect(),
            target: blocks,
            later: None,
            base: start / contract.block,
            position: start,
            credit: Credit::new(contract.rate, contract::at_once(&contract), now),
            credit_contract: contract,
            held: Bytes::ZERO,
            ask: None,
            timer: None,
            primed: false,
            playout_from: now + contract.rate.time_for(contract.block) * blocks,
            written: start,
            committing: start,
            durable: start,
            durable_asks: Vec::new(),
            partial: None,
            closing: false,
            close_ticket: None,
            open_since: now,
            moved: Bytes::ZERO,
            requests: 0,
            late_requests: 0,
            late_max: Duration::ZERO,
            underruns: 0,
            throttled: 0,
            gaps: Bytes::ZERO,
            latency_max: Duration::ZERO,
        }
    }

    pub(crate) fn blocks(&self) -> u64 {
        self.slots.len() as u64
    }

    /// The block that the playout point is in.
    pub(crate) fn block_at(&self, offset: Bytes) -> u64 {
        offset / self.contract.block
    }

    /// The state of a block; `None` outside the window.
    pub(crate) fn slot(&mut self, block: u64) -> Option<&mut Slot> {
        let at = block.checked_sub(self.base)?;
        self.slots.get_mut(at as usize)
    }

    /// Where in the arena the volume's byte `offset` lies; it must be in the window.
    pub(crate) fn place(&self, offset: Bytes) -> Bytes {
        let at = self.block_at(offset).checked_sub(self.base).expect("it is in the window");
        self.places[at as usize] + offset % self.contract.block
    }

    /// Where a block lies on disk: its disk, its offset there, its extent, and
    /// its offset in the extent.
    pub(crate) fn locate(&self, core: &Core, block: u64) -> (DiskIndex, Bytes, u64, Bytes) {
        let offset = self.contract.block * block;
        let (extent, within) = (offset / EXTENT, offset % EXTENT);
        let location = core.store.locate(self.volume, extent).expect("a block of the volume");
        (location.disk, location.offset + within, extent, within)
    }

    /// The class of a request of this stream on `disk`.
    pub(crate) fn class(&self, disk: DiskIndex) -> Class {
        let task = self.tasks.iter().find(|joined| joined.disk == disk);
        Class::RealTime(task.expect("a stream has a task on each of its disks").id)
    }

    /// A block of this stream has ended.
    pub(crate) fn account(&mut self, late_by: Duration, latency: Duration) {
        self.requests += 1;
        self.latency_max = self.latency_max.max(latency);
        if !late_by.is_zero() {
            self.late_requests += 1;
            self.late_max = self.late_max.max(late_by);
        }
    }

    /// The first block leaves the window; the next one gets its place, unless the
    /// window shall shrink.
    pub(crate) fn slide(&mut self, core: &mut Core) {
        self.slots.pop_front();
        let place = self.places.pop_front().expect("a window has a block");
        self.base += 1;
        if self.blocks() >= self.target && self.ahead() >= self.target {
            core.arena.give(Span { offset: place, len: self.contract.block }, Use::Window);
        } else {
            self.slots.push_back(Slot::Open);
            self.places.push_back(place);
        }
    }

    /// Blocks of the window that a writer can still fill; all of a reader's.
    fn ahead(&self) -> u64 {
        let first = match self.mode {
            Mode::Read => self.base,
            Mode::Write => self.block_at(self.position),
        };
        (self.base + self.blocks()).saturating_sub(first)
    }

    /// Memory for what a window of so many blocks has more than this one.
    pub(crate) fn more_memory(&self, core: &mut Core, blocks: u64) -> Result<Option<Span>, Error> {
        let asked = self.contract.block * blocks.saturating_sub(self.blocks());
        if asked.is_zero() {
            return Ok(None);
        }
        let span = core.arena.take(asked, Use::Window);
        span.map(Some).ok_or_else(|| Error::NoMemory { asked, free: core.arena.free_for_windows() })
    }

    /// Lets the window grow into this memory.
    pub(crate) fn grow(&mut self, more: Option<Span>) {
        let Some(span) = more else { return };
        self.places.extend(places(span, self.contract.block));
        self.slots.resize(self.places.len(), Slot::Open);
    }

    /// Gives back what the window has more than it shall have, as far as it is not in
    /// use; the rest goes as the window slides.
    pub(crate) fn trim(&mut self, core: &mut Core) {
        while self.blocks() > self.target
            && self.ahead() > self.target
            && self.slots.back() == Some(&Slot::Open)
        {
            self.slots.pop_back();
            let place = self.places.pop_back().expect("a place for each block");
            core.arena.give(Span { offset: place, len: self.contract.block }, Use::Window);
        }
    }

    /// Gives all of the window's memory back.
    pub(crate) fn give_window(&mut self, core: &mut Core) {
        for place in self.places.drain(..) {
            core.arena.give(Span { offset: place, len: self.contract.block }, Use::Window);
        }
    }

    /// From now on another contract, which is admitted with these tasks; the first
    /// request under it is released at `begins` at the earliest.
    ///
    /// A slower one binds the program at once. A faster one it may use only when what
    /// was asked for under the old one has come, and the window has been filled as
    /// after an opening: begun earlier, requests that follow would have their
    /// deadlines too late.
    pub(crate) fn change(
        &mut self,
        core: &mut Core,
        now: Instant,
        begins: Instant,
        contract: &Contract,
        tasks: Vec<Joined>,
        blocks: u64,
    ) {
        let old = self.allowed(now);
        let released = self.tasks.iter().map(|joined| joined.task.period).max();
        let follows = begins + contract.rate.time_for(contract.block) * blocks;
        let follows = follows.max(now + released.unwrap_or_default());
        self.contract = *contract;
        self.tasks = tasks;
        self.target = blocks;
        self.later = None;
        if self.mode == Mode::Read && !self.primed {
            self.playout_from = self.playout_from.max(follows);
            self.set_credit(now, contract);
        } else {
            let rate = contract.rate.min(old.rate);
            let burst = contract.burst.min(old.burst);
            let first = Contract { rate, burst, ..*contract };
            self.set_credit(now, &first);
            if first != *contract {
                self.later = Some((follows, *contract));
            }
        }
        self.trim(core);
    }

    /// The contract that the program may make use of.
    fn allowed(&self, now: Instant) -> Contract {
        match self.later {
            Some((from, _)) if from > now => self.credit_contract,
            _ => self.contract,
        }
    }

    fn set_credit(&mut self, now: Instant, contract: &Contract) {
        self.credit_contract = *contract;
        self.credit = self.credit.changed(contract.rate, contract::at_once(contract), now);
    }

    /// True while a command is waiting or under way.
    pub(crate) fn moving(&self) -> bool {
        self.slots.iter().any(|slot| matches!(slot, Slot::Moving(_)))
    }

    /// Arms the stream's one timer.
    pub(crate) fn wake_at(&mut self, core: &mut Core, at: Instant) {
        if self.timer == Some(at) {
            return;
        }
        if let Some(old) = self.timer.replace(at) {
            core.clear_timer(old, self.id);
        }
        core.set_timer(at, self.id);
    }

    pub(crate) fn stop_timer(&mut self, core: &mut Core) {
        if let Some(old) = self.timer.take() {
            core.clear_timer(old, self.id);
        }
    }

    /// Whether the rate allows `len` more bytes now. If not, the wait is
    /// counted once an ask, and the timer is set for when it does.
    pub(crate) fn within_rate(&mut self, core: &mut Core, now: Instant, len: Bytes) -> bool {
        if let Some((_, contract)) = self.later.take_if(|(from, _)| *from <= now) {
            self.set_credit(now, &contract);
        }
        let mut when = self.credit.when(len);
        if when <= now {
            return true;
        }
        if let Some((from, _)) = self.later {
            when = when.min(from);
        }
        if let Some(ask) = &mut self.ask
            && !ask.throttled
        {
            ask.throttled = true;
            self.throttled += 1;
        }
        self.wake_at(core, when);
        false
    }

    /// A program within its rate finds the window not ready: counted once an ask.
    pub(crate) fn starved(&mut self, now: Instant) {
        if let Some(ask) = &mut self.ask
            && ask.starved_since.is_none()
        {
            ask.starved_since = Some(now);
            self.underruns += 1;
        }
    }

    /// The time that the whole window lasts at the contract's rate.
    pub(crate) fn window_time(&self) -> Duration {
        self.contract.rate.time_for(self.contract.block * self.blocks())
    }

    /// Whether these are the tasks that the stream has.
    pub(crate) fn has_tasks(&self, asked: &[(DiskIndex, Task)]) -> bool {
        let have = self.tasks.iter().map(|joined| (joined.disk, joined.task));
        have.eq(asked.iter().copied())
    }

    /// From the next request on, other tasks.
    pub(crate) fn replace_tasks(&mut self, core: &mut Core, joined: Vec<Joined>) {
        let old = core::mem::replace(&mut self.tasks, joined);
        self.retired.push((old, core.last_command()));
        self.leave_retired(core);
    }

    /// Leaves retired tasks that no command under way was made under.
    pub(crate) fn leave_retired(&mut self, core: &mut Core) {
        if self.retired.is_empty() {
            return;
        }
        let moving = self.slots.iter().filter_map(|slot| match *slot {
            Slot::Moving(id) => Some(id),
            _ => None,
        });
        let oldest = moving.min();
        self.retired.retain(|(tasks, last)| {
            let in_use = oldest.is_some_and(|oldest| oldest <= *last);
            if !in_use {
                core.leave(tasks);
            }
            in_use
        });
    }

    /// Leaves every disk.
    pub(crate) fn leave(&mut self, core: &mut Core) {
        core.leave(&self.tasks);
        for (tasks, _) in &self.retired {
            core.leave(tasks);
        }
    }

    /// No more asks; a reader's waiting requests are taken back, a writer's
    /// last bytes go out.
    pub(crate) fn begin_close(&mut self, core: &mut Core, now: Instant) {
        self.closing = true;
        self.held = Bytes::ZERO;
        self.stop_timer(core);
        if let Some(ask) = self.ask.take() {
            core.answer(ask.ticket, Err(Error::NoSuchStream { stream: self.id }));
        }
        match self.mode {
            Mode::Read => {
                for slot in &mut self.slots {
                    if let Slot::Moving(id) = *slot
                        && core.cancel(id)
                    {
                        *slot = Slot::Open;
                    }
                }
            }
            Mode::Write => self.pump_writer(core, now),
        }
    }

    /// Whether a closing stream has come to its end, and the answer.
    pub(crate) fn ended(&self, core: &Core) -> Option<Result<Reply, Error>> {
        if !self.closing || self.moving() {
            return None;
        }
        match self.mode {
            Mode::Read => Some(Ok(Reply::Done)),
            Mode::Write => match self.failure(core) {
                Some(error) => Some(Err(error)),
                None if self.durable >= self.position => {
                    Some(Ok(Reply::Durable { upto: self.durable }))
                }
                None => None,
            },
        }
    }

    pub(crate) fn status(&self, volume: alloc::string::String) -> StreamStatus {
        StreamStatus {
            stream: self.id,
            volume,
            mode: self.mode,
            contract: self.contract,
            window: self.contract.block * self.blocks(),
            position: self.position,
            moved: self.moved,
            durable: self.durable,
            requests: self.requests,
            late_requests: self.late_requests,
            late_max: self.late_max,
            underruns: self.underruns,
            throttled: self.throttled,
            gaps: self.gaps,
            latency_max: self.latency_max,
            open_since: self.open_since,
            shares: contract::used(&self.tasks),
        }
    }
}

/// The places of the blocks in a span.
fn places(span: Span, block: Bytes) -> impl Iterator<Item = Bytes> {
    (0..span.len / block).map(move |number| span.offset + block * number)
}

/// Opens a stream: contract, shares, window. The caller has checked the mode's
/// own conditions.
pub(crate) fn admit(
    core: &mut Core,
    now: Instant,
    volume: VolumeId,
    mode: Mode,
    asked: &Contract,
) -> Result<(Vec<Joined>, Span), Error> {
    contract::check(asked)?;
    let shares = core.shares(volume);
    let len = asked.block * contract::window_blocks(asked, &shares, &core.config);
    let patience = match mode {
        Mode::Read => asked.rate.time_for(asked.block) / 2,
        Mode::Write => Duration::ZERO,
    };
    let tasks = core.join(now, asked, &shares, mode, patience)?;
    match core.arena.take(len, crate::arena::Use::Window) {
        Some(window) => Ok((tasks, window)),
        None => {
            core.leave(&tasks);
            Err(Error::NoMemory { asked: len, free: core.arena.free_for_windows() })
        }
    }
}
