//! One open stream: its window, its playout point, and what it waits for.
//!
//! The window holds the blocks `base .. base + blocks` of the volume, each in a
//! place of its own in memory: where one slides out of the window in front, the
//! next one at its end gets the place. The places need not be neighbours, so that
//! the window can grow and shrink while the stream is open. Invariants: the playout
//! point lies in the window or at its end; every command under way for the stream has
//! a slot in state [`Slot::Moving`], or its place among the `strays`; what the program
//! holds (`held`) is never touched.
//! What a reader or a writer does with the window is in `reader.rs` and
//! `writer.rs`; what is different where it is shared with the program in `window.rs`;
//! how a reader goes elsewhere in `seek.rs`.

use crate::admission::contract::{self, Joined};
use crate::api::*;
use crate::core::Core;
use crate::memory::places::Home;
use crate::streams::credit::Credit;
use crate::streams::shared::Shared;
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
    /// Not asked for, and without memory until a stray command has ended.
    Nowhere,
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
    /// Where in memory each block of the window is; nothing for those nowhere.
    pub places: VecDeque<Bytes>,
    /// Places of blocks that the window left while their commands were under way.
    pub strays: Vec<Bytes>,
    pub home: Home,
    /// Of a window that is shared with the program.
    pub shared: Option<Shared>,
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
    /// Reader: from here on the contract holds in full (`seek.rs`), because the requests
    /// that fill the window are released a period apart. After an opening, playout
    /// begins no earlier; a wait before this is nobody's fault.
    pub steady: Instant,
    /// Reader: when its turn on the disks came anew.
    pub renewed: Option<Instant>,
    /// Reader: blocks were not asked for because they were not written.
    pub behind_writer: bool,
    /// Writer: offsets written to the device, covered by the commit that began last,
    /// and on the medium.
    written: Bytes,
    /// What was written when commit number `counted` began, once more has been written since.
    committing: Bytes,
    counted: u64,
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
        (home, places, shared): (Home, Vec<Bytes>, bool),
        start: Bytes,
        now: Instant,
    ) -> Self {
        let blocks = places.len() as u64;
        Self {
            id,
            volume,
            mode,
            contract,
            tasks,
            retired: Vec::new(),
            slots: (0..blocks).map(|_| Slot::Open).collect(),
            places: places.into(),
            strays: Vec::new(),
            home,
            shared: shared.then(|| Shared::new(start)),
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
            steady: now,
            renewed: None,
            behind_writer: false,
            written: start,
            committing: start,
            counted: 0,
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

    /// Writer: everything before this is on the device.
    pub(crate) fn written(&self) -> Bytes {
        self.written
    }

    /// Writer: everything before `upto` is on the device.
    pub(crate) fn note_written_to(&mut self, core: &Core, upto: Bytes) {
        if upto > self.written {
            (self.committing, self.counted) = (self.covered(core), core.commits.begun());
            self.written = upto;
        }
    }

    /// Writer: the commit that began last covers everything before this. Nobody has to
    /// visit all writers when one begins: what was written since then was noted then.
    pub(crate) fn covered(&self, core: &Core) -> Bytes {
        if self.counted == core.commits.begun() { self.committing } else { self.written }
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
        let slot = self.slots.pop_front();
        let place = self.places.pop_front().expect("a window has a block");
        let nowhere = slot == Some(Slot::Nowhere);
        self.base += 1;
        if self.blocks() < self.target || self.ahead() < self.target {
            self.slots.push_back(if nowhere { Slot::Nowhere } else { Slot::Open });
            self.places.push_back(place);
        } else if !nowhere {
            self.home.give(core, self.contract.block, place);
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
    pub(crate) fn more_memory(
        &mut self,
        core: &mut Core,
        blocks: u64,
    ) -> Result<Vec<Bytes>, Error> {
        let more = blocks.saturating_sub(self.blocks());
        self.home.take(core, self.contract.block, more)
    }

    /// Lets the window grow into this memory.
    pub(crate) fn grow(&mut self, more: Vec<Bytes>) {
        self.places.extend(more);
        self.slots.resize(self.places.len(), Slot::Open);
    }

    /// Gives memory back that the window did not come to use.
    pub(crate) fn give(&mut self, core: &mut Core, more: Vec<Bytes>) {
        for place in more {
            self.home.give(core, self.contract.block, place);
        }
    }

    /// Gives back what the window has more than it shall have, as far as it is not in
    /// use; the rest goes as the window slides.
    pub(crate) fn trim(&mut self, core: &mut Core) {
        while self.blocks() > self.target
            && self.ahead() > self.target
            && self.slots.back() == Some(&Slot::Open)
            && !self.is_told(self.base + self.blocks() - 1)
        {
            self.slots.pop_back();
            let place = self.places.pop_back().expect("a place for each block");
            self.home.give(core, self.contract.block, place);
        }
    }

    /// Gives all of the window's memory back.
    pub(crate) fn give_window(&mut self, core: &mut Core) {
        assert!(self.strays.is_empty(), "a command is under way");
        let slots = self.slots.iter().zip(self.places.drain(..));
        let places = slots.filter(|(slot, _)| **slot != Slot::Nowhere).map(|(_, place)| place);
        self.home.leave(core, self.contract.block, places);
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
        let filled = contract.rate.time_for(contract.block).saturating_mul(blocks);
        let follows = begins.saturating_add(filled);
        let follows = follows.max(now + released.unwrap_or_default());
        self.contract = *contract;
        self.tasks = tasks;
        self.target = blocks;
        self.later = None;
        if self.mode == Mode::Read && !self.primed {
            self.steady = self.steady.max(follows);
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

    /// The burst at once, and nothing on top of it before `at`: the contract as it is, also
    /// one that was to be made use of later.
    pub(crate) fn begin_credit(&mut self, now: Instant, at: Instant) {
        self.later = None;
        self.credit_contract = self.contract;
        let cap = contract::at_once(&self.contract);
        self.credit = Credit::new(self.contract.rate, cap, now).begin_at(at);
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
        !self.strays.is_empty() || self.slots.iter().any(|slot| matches!(slot, Slot::Moving(_)))
    }

    /// A command has ended whose block had left the window: its place is free for one
    /// that is nowhere. Says whether it was one of these.
    pub(crate) fn stray_ended(&mut self, core: &mut Core, place: Bytes) -> bool {
        let Some(at) = self.strays.iter().position(|&stray| stray == place) else { return false };
        self.strays.swap_remove(at);
        match self.slots.iter().position(|slot| *slot == Slot::Nowhere) {
            Some(at) => (self.slots[at], self.places[at]) = (Slot::Open, place),
            None => self.home.give(core, self.contract.block, place),
        }
        true
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

    /// Wakes up at `at` or before.
    pub(crate) fn wake_by(&mut self, core: &mut Core, at: Instant) {
        if self.timer.is_none_or(|timer| at < timer) {
            self.wake_at(core, at);
        }
    }

    /// A faster contract is made use of when its time has come.
    pub(crate) fn renew_credit(&mut self, now: Instant) {
        if let Some((_, contract)) = self.later.take_if(|(from, _)| *from <= now) {
            self.set_credit(now, &contract);
        }
    }

    /// When `len` more bytes may pass, as far as is known now.
    pub(crate) fn may_pass(&self, len: Bytes) -> Instant {
        let when = self.credit.when(len);
        self.later.map_or(when, |(from, _)| when.min(from))
    }

    /// Whether the rate allows `len` more bytes now. If not, the wait is
    /// counted once an ask, and the timer is set for when it does.
    pub(crate) fn within_rate(&mut self, core: &mut Core, now: Instant, len: Bytes) -> bool {
        self.renew_credit(now);
        let when = self.may_pass(len);
        if when <= now {
            return true;
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
            self.underruns += u64::from(now >= self.steady);
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

/// Opens a stream: contract, shares, memory of the window. The caller has checked the
/// mode's own conditions.
pub(crate) fn admit(
    core: &mut Core,
    now: Instant,
    volume: VolumeId,
    mode: Mode,
    asked: &Contract,
    home: &mut Home,
) -> Result<(Vec<Joined>, Vec<Bytes>), Error> {
    contract::check(asked)?;
    let shares = core.shares(volume);
    let blocks = contract::window_blocks(asked, &shares, core.late);
    let patience = match mode {
        Mode::Read => asked.rate.time_for(asked.block) / 2,
        Mode::Write => Duration::ZERO,
    };
    let tasks = core.join(now, asked, &shares, mode, patience)?;
    let places = match home.take(core, asked.block, blocks) {
        Ok(places) => places,
        Err(error) => {
            core.leave(&tasks);
            return Err(error);
        }
    };
    if mode == Mode::Write
        && let Err(error) = core.log_takes(now, volume, asked)
    {
        core.leave(&tasks);
        home.leave(core, asked.block, places.into_iter());
        return Err(error);
    }
    Ok((tasks, places))
}
