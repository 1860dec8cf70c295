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
//! how a reader goes elsewhere in `seek.rs`, and a writer in `going.rs`; what a sync within a
//! block writes in `partial.rs`.

use crate::admission::contract::{self, Joined, Share};
use crate::admission::odds::AtOdds;
use crate::api::*;
use crate::core::Core;
use crate::groups::group::GroupId;
use crate::limits;
use crate::memory::places::WindowMemory;
use crate::streams::landing::Landed;
use crate::streams::shared::Shared;
use crate::volumes::writes::Claim;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use core::ops::Range;
use playout::{Account, Ask, Pace, Window};
use sched::{Class, Task};
use store::VolumeId;
use units::{Bytes, Duration, Instant};

/// What a block of the window is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    /// Reader: not asked for yet. Writer: being filled. Where both: not asked for yet.
    Open,
    /// Of a stream that reads and writes: what the volume holds is in memory, and the program
    /// may change it.
    Loaded,
    /// Of a writer in a group: full, and waits for the group's next request.
    Full,
    /// A command is waiting or under way.
    Moving(CommandId),
    /// Reader: in memory. Writer: on the disk.
    Ready,
    /// The device failed on it.
    Failed(DiskIndex, DeviceError),
    /// Not asked for, and without memory until a stray command has ended.
    Nowhere,
}

/// What the device failed on, of a block of which the rest is there.
#[derive(Clone, Debug)]
pub(crate) struct Lost {
    pub block: u64,
    /// Bytes of the volume.
    pub range: Range<Bytes>,
}

/// What was read of a block ahead of the block itself (`early.rs`).
#[derive(Clone, Debug)]
pub(crate) struct Early {
    pub block: u64,
    /// Bytes of the volume that are there.
    pub there: Range<Bytes>,
    /// What is being read behind them, and where it ends.
    pub next: Option<(CommandId, Bytes)>,
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

/// Where a writer goes, and who is told when it is there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Going {
    pub ticket: Ticket,
    pub to: Bytes,
}

/// A part of a block that a disk has or shall have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Partial {
    pub id: CommandId,
    /// Of the first extent that it is written to; those of the others have the numbers that
    /// follow.
    pub claim: Claim,
    /// The volume offset behind it.
    pub upto: Bytes,
    /// Of a writer in a group: where on the disk, where that is a place of its own.
    pub at: Option<Bytes>,
}

#[derive(Clone, Debug)]
pub(crate) struct Stream {
    pub id: StreamId,
    pub volume: VolumeId,
    pub mode: Mode,
    pub contract: Contract,
    /// None of a writer in a group.
    pub tasks: Vec<Joined>,
    /// Writer: it is written together with others.
    pub group: Option<GroupId>,
    /// Writer in a group: blocks for which space is promised.
    pub promised: BTreeSet<u64>,
    /// Writer in a group: by when full blocks are to be on the disk.
    pub full: BTreeMap<u64, Instant>,
    /// Its requests may be late now and then.
    pub odds: Option<AtOdds>,
    /// Tasks of before a resize, left once no command up to the named one is
    /// under way.
    pub retired: Vec<(Vec<Joined>, CommandId)>,
    pub window: Window<Slot>,
    /// Where in memory each block of the window is; nothing for those nowhere.
    pub places: VecDeque<Bytes>,
    /// Places of blocks that the window left while their commands were under way.
    pub strays: Vec<Bytes>,
    pub window_memory: WindowMemory,
    /// Of a window that is shared with the program.
    pub shared: Option<Shared>,
    /// The playout point: where the program reads or writes next.
    pub position: Bytes,
    pub pace: Pace,
    /// Bytes handed to the program and not yet given back.
    pub held: Bytes,
    pub ask: Option<Ask<Ticket>>,
    pub timer: Option<Instant>,
    /// Reader: playout has begun.
    pub primed: bool,
    /// Reader: from here on the contract holds in full (`seek.rs`), because the requests
    /// that fill the window are released a period apart. After an opening, playout
    /// begins no earlier; a wait before this is nobody's fault.
    pub steady: Instant,
    /// Reader: when its turn on the disks came anew.
    pub renewed: Option<Instant>,
    /// Reader: what the volume's writer is filling ([`Stream::filling`]), where one is open.
    pub writer_at: Option<(Bytes, Bytes)>,
    /// Reader: blocks were not asked for because they were not written.
    pub behind_writer: bool,
    /// Reader: blocks that were asked for when the volume ended within them, and where it did.
    pub short: Vec<(u64, Bytes)>,
    /// Reader: what of its first block comes ahead of it.
    pub early: Option<Early>,
    /// By when answers are to be with the program (`landed.rs`).
    pub landed: Landed,
    /// Reader: what is lost of blocks of the window.
    pub lost: Vec<Lost>,
    /// Writer: of blocks that are being written, those of which a part failed, and why.
    pub part_failed: Vec<(u64, DiskIndex, DeviceError)>,
    /// Blocks that lie on one disk before the next disk's turn comes.
    pub in_a_row: u64,
    /// Writer: offsets written to the device, covered by the commit that began last,
    /// and on the medium.
    written: Bytes,
    /// What was written when commit number `counted` began, once more has been written since.
    committing: Bytes,
    counted: u64,
    pub durable: Bytes,
    /// Writer: where it went last; nothing is recorded by going there.
    sought: Bytes,
    pub durable_asks: Vec<DurableAsk>,
    /// Writer: a part of a block that is on its way, and the last block of which a part had
    /// the stream's turn (`partial.rs`).
    pub partial: Option<Partial>,
    pub partial_had_turn: Option<u64>,
    /// In the blocks before this one bytes may have gone beyond its rate (`excess.rs`).
    pub excess_end: u64,
    /// Of the blocks before this one some may wait in the slack, whole, without a turn.
    pub slack_end: u64,
    /// Reader: it has just been given more than its rate.
    pub went_beyond: bool,
    /// Writer: it goes to another place (`going.rs`).
    pub going: Option<Going>,
    /// Writer: it has gone to another place, and readers of its volume do not know yet.
    pub has_arrived: bool,
    pub closing: bool,
    pub close_ticket: Option<Ticket>,
    pub open_since: Instant,
    pub account: Account,
}

impl Stream {
    #[allow(clippy::too_many_arguments)] // an open stream is just these
    pub(crate) fn new(
        id: StreamId,
        volume: VolumeId,
        mode: Mode,
        contract: Contract,
        (tasks, group): (Vec<Joined>, Option<GroupId>),
        (window_memory, places, shared): (WindowMemory, Vec<Bytes>, bool),
        (start, in_a_row): (Bytes, u64),
        now: Instant,
    ) -> Self {
        let slots = places.iter().map(|_| Slot::Open);
        Self {
            id,
            volume,
            mode,
            contract,
            tasks,
            group,
            promised: BTreeSet::new(),
            full: BTreeMap::new(),
            odds: None,
            retired: Vec::new(),
            window: Window::new(start / contract.block, slots),
            places: places.into(),
            strays: Vec::new(),
            window_memory,
            shared: shared.then(|| Shared::new(start)),
            position: start,
            pace: Pace::new(&contract, now),
            held: Bytes::ZERO,
            ask: None,
            timer: None,
            primed: false,
            steady: now,
            renewed: None,
            writer_at: None,
            behind_writer: false,
            short: Vec::new(),
            early: None,
            landed: Landed::default(),
            lost: Vec::new(),
            part_failed: Vec::new(),
            in_a_row,
            written: start,
            committing: start,
            counted: 0,
            durable: start,
            durable_asks: Vec::new(),
            partial: None,
            partial_had_turn: None,
            excess_end: 0,
            slack_end: 0,
            went_beyond: false,
            going: None,
            has_arrived: false,
            sought: start,
            closing: false,
            close_ticket: None,
            open_since: now,
            account: Account::default(),
        }
    }

    /// Writer: everything before this is on the device.
    pub(crate) fn written(&self) -> Bytes {
        self.written
    }

    /// The end of what it is at in its volume, which has this size. Of a writer that is its window,
    /// where it is and where it goes, and what it comes to next; of a reader the blocks that it has
    /// asked for.
    pub(crate) fn reach(&self, size: Bytes) -> Bytes {
        let block = self.contract.block;
        if !self.strays.is_empty() {
            return size;
        }
        if self.mode.writes() {
            let goes = self.going.as_ref().map_or(Bytes::ZERO, |going| going.to);
            let window = (block * self.window.first()).max(goes) + block * self.window.len();
            return window.saturating_add(self.contract.rate.bytes_in(limits::SHRINK_LEAVES));
        }
        let is_asked = |slot: &Slot| !matches!(slot, Slot::Open | Slot::Nowhere);
        let asked = self.window.iter().filter(|(_, slot)| is_asked(slot));
        let last = asked.map(|(number, _)| (block * (number + 1)).min(size)).max();
        last.unwrap_or_default()
    }

    /// How its volume's extents are shared out, and how late its requests may be.
    pub(crate) fn shares(&self, core: &Core) -> Vec<Share> {
        let mut shares = core.shares_with(self.volume, self.odds);
        if self.group.is_some() {
            shares.iter_mut().for_each(|share| *share = share.of_member(&self.contract));
        }
        shares
    }

    /// Writer: from the first block that is not on the disk to where the program writes next.
    pub(crate) fn filling(&self) -> (Bytes, Bytes) {
        (self.contract.block * self.window.first(), self.position)
    }

    /// Writer: everything before `upto` is on the device.
    pub(crate) fn note_written_to(&mut self, core: &Core, upto: Bytes) {
        if upto > self.written {
            (self.committing, self.counted) = (self.covered(core), core.commits.begun());
            self.written = upto;
        }
    }

    /// Writer: from now on offsets are counted from `start`, before which everything that
    /// was written is on the medium.
    pub(crate) fn begin_segment(&mut self, core: &Core, start: Bytes) {
        (self.written, self.committing, self.durable) = (start, start, start);
        self.counted = core.commits.begun();
        self.sought = start;
        (self.excess_end, self.slack_end) = (0, 0);
    }

    /// Writer: something was written since it was opened or went elsewhere. Until then it records nothing:
    /// what it was told to be durable is no more than was there before.
    pub(crate) fn has_recorded(&self) -> bool {
        self.sought != self.written
    }

    /// Writer: the commit that began last covers everything before this. Nobody has to
    /// visit all writers when one begins: what was written since then was noted then.
    pub(crate) fn covered(&self, core: &Core) -> Bytes {
        if self.counted == core.commits.begun() { self.committing } else { self.written }
    }

    /// The block that the playout point is in.
    pub(crate) fn block_at(&self, offset: Bytes) -> u64 {
        offset / self.contract.block
    }

    /// Where in the arena the volume's byte `offset` lies; it must be in the window.
    pub(crate) fn place(&self, offset: Bytes) -> Bytes {
        let at =
            self.block_at(offset).checked_sub(self.window.first()).expect("it is in the window");
        self.places[at as usize] + offset % self.contract.block
    }

    /// The class of a request of this stream on `disk`; where it reads and writes, of a read.
    pub(crate) fn class(&self, disk: DiskIndex) -> Class {
        Class::RealTime(self.task_on(disk).id)
    }

    /// Its task on `disk`.
    pub(crate) fn task_on(&self, disk: DiskIndex) -> &Joined {
        let task = self.tasks.iter().find(|joined| joined.disk == disk);
        task.expect("a stream has a task on each of its disks")
    }

    /// Its task for writing on `disk`, of a stream that writes.
    pub(crate) fn writing_task_on(&self, disk: DiskIndex) -> &Joined {
        let task = self.tasks.iter().rfind(|joined| joined.disk == disk);
        task.expect("a stream has a task on each of its disks")
    }

    /// The first block leaves the window; the next one gets its place, unless the
    /// window shall shrink.
    pub(crate) fn slide(&mut self, core: &mut Core) {
        let slot = self.window.pop_front();
        let first = self.window.first();
        self.lost.retain(|lost| lost.block >= first);
        let place = self.places.pop_front().expect("a window has a block");
        let nowhere = slot == Some(Slot::Nowhere);
        let target = self.window.target;
        if self.window.len() < target || self.ahead() < target {
            self.window.push_back(if nowhere { Slot::Nowhere } else { Slot::Open });
            self.places.push_back(place);
        } else if !nowhere {
            self.window_memory.give(core, self.contract.block, place);
        }
    }

    /// Blocks of the window that a writer can still fill; all of a reader's.
    fn ahead(&self) -> u64 {
        let first = match self.mode {
            Mode::Read => self.window.first(),
            Mode::Write | Mode::Update => self.block_at(self.position),
        };
        self.window.end().saturating_sub(first)
    }

    /// Memory for what a window of so many blocks has more than this one.
    pub(crate) fn more_memory(
        &mut self,
        core: &mut Core,
        blocks: u64,
    ) -> Result<Vec<Bytes>, Error> {
        let more = blocks.saturating_sub(self.window.len());
        self.window_memory.take(core, self.contract.block, more)
    }

    /// Lets the window grow into this memory.
    pub(crate) fn grow(&mut self, more: Vec<Bytes>) {
        more.iter().for_each(|_| self.window.push_back(Slot::Open));
        self.places.extend(more);
    }

    /// Gives memory back that the window did not come to use.
    pub(crate) fn give(&mut self, core: &mut Core, more: Vec<Bytes>) {
        for place in more {
            self.window_memory.give(core, self.contract.block, place);
        }
    }

    /// Gives back what the window has more than it shall have, as far as it is not in
    /// use; the rest goes as the window slides.
    pub(crate) fn trim(&mut self, core: &mut Core) {
        while self.window.len() > self.window.target
            && self.ahead() > self.window.target
            && self.window.get(self.window.end() - 1) == Some(&Slot::Open)
            && !self.is_told(self.window.end() - 1)
        {
            self.window.pop_back();
            let place = self.places.pop_back().expect("a place for each block");
            self.window_memory.give(core, self.contract.block, place);
        }
    }

    /// Gives all of the window's memory back.
    pub(crate) fn give_window(&mut self, core: &mut Core) {
        assert!(self.strays.is_empty(), "a command is under way");
        let slots = self.window.iter().zip(self.places.drain(..));
        let places = slots.filter(|((_, slot), _)| **slot != Slot::Nowhere);
        let places = places.map(|(_, place)| place);
        self.window_memory.leave(core, self.contract.block, places);
    }

    /// From now on another contract, which is admitted with these tasks; the first
    /// request under it is released at `begins` at the earliest.
    pub(crate) fn change(
        &mut self,
        core: &mut Core,
        now: Instant,
        begins: Instant,
        contract: &Contract,
        tasks: Vec<Joined>,
        blocks: u64,
    ) {
        let released = self.tasks.iter().map(|joined| joined.task.period).max();
        let released = released.or(self.group.map(|group| group.period));
        let follows = Pace::follows(contract, blocks, begins, now, released.unwrap_or_default());
        self.contract = *contract;
        self.tasks = tasks;
        self.in_group_of(core, now);
        self.window.target = blocks;
        if self.mode != Mode::Write && !self.primed {
            self.steady = self.steady.max(follows);
            self.pace.change(now, contract);
        } else {
            self.pace.change_later(now, contract, follows);
        }
        self.trim(core);
    }

    /// True while a command is waiting or under way.
    pub(crate) fn moving(&self) -> bool {
        !self.strays.is_empty()
            || self.early_with_disk().is_some()
            || self.window.iter().any(|(_, slot)| matches!(slot, Slot::Moving(_) | Slot::Full))
    }

    /// A command has ended whose block had left the window: its place is free for one
    /// that is nowhere. Says whether it was one of these.
    pub(crate) fn stray_ended(&mut self, core: &mut Core, place: Bytes) -> bool {
        let Some(at) = self.strays.iter().position(|&stray| stray == place) else { return false };
        self.strays.swap_remove(at);
        // Two commands may be under way to it.
        if self.strays.contains(&place) {
            return true;
        }
        let mut blocks = self.window.iter_mut().zip(&mut self.places);
        match blocks.find(|((_, slot), _)| **slot == Slot::Nowhere) {
            Some(((_, slot), its_place)) => {
                (*slot, *its_place) = (Slot::Open, place);
            }
            None => self.window_memory.give(core, self.contract.block, place),
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

    /// Whether the rate allows `len` more bytes now. If not, the wait is
    /// counted once an ask, and the timer is set for when it does.
    pub(crate) fn within_rate(&mut self, core: &mut Core, now: Instant, len: Bytes) -> bool {
        self.pace.renew(now);
        let when = self.pace.may_pass(len);
        if when <= now {
            return true;
        }
        if let Some(ask) = &mut self.ask {
            ask.throttle(&mut self.account);
        }
        self.wake_by(core, when);
        false
    }

    /// A program within its rate finds the window not ready: counted once an ask.
    pub(crate) fn starved(&mut self, now: Instant) {
        if let Some(ask) = &mut self.ask {
            ask.starve(now, now >= self.steady, &mut self.account);
        }
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
        let moving = self.window.iter().filter_map(|(_, slot)| match *slot {
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
    pub(crate) fn leave(&mut self, core: &mut Core, now: Instant) {
        self.promise_no_more(core);
        if let Some(group) = self.group {
            core.leave_group(now, group, Some(self.id));
        }
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
                self.stop_all_early(core);
                for (_, slot) in self.window.iter_mut() {
                    if let Slot::Moving(id) = *slot
                        && core.cancel(id)
                    {
                        *slot = Slot::Open;
                    }
                }
            }
            Mode::Write | Mode::Update => {
                self.take_loads_back(core);
                self.stop_going(core, Error::NoSuchStream { stream: self.id });
                self.pump_writer(core, now);
            }
        }
    }

    /// Whether a closing stream has come to its end, and the answer.
    pub(crate) fn ended(&self, core: &Core) -> Option<Result<Reply, Error>> {
        if !self.closing || self.moving() {
            return None;
        }
        match self.mode {
            Mode::Read => Some(Ok(Reply::Done)),
            Mode::Write | Mode::Update => match self.failure(core) {
                Some(error) => Some(Err(error)),
                None if self.durable >= self.position => {
                    Some(Ok(Reply::Durable { upto: self.durable }))
                }
                None => None,
            },
        }
    }

    pub(crate) fn status(&self, core: &Core, volume: alloc::string::String) -> StreamStatus {
        // It may be served in other commands than when its contract was given.
        let now = |own: &Joined| Joined { task: core.task_now(own), ..*own };
        let tasks: Vec<Joined> = self.tasks.iter().map(now).collect();
        StreamStatus {
            stream: self.id,
            volume,
            mode: self.mode,
            contract: self.contract,
            window: self.window.memory(&self.contract),
            position: self.position,
            durable: self.durable,
            account: self.account,
            open_since: self.open_since,
            shares: match self.group {
                Some(group) => core.part_of_member(&group),
                None => contract::used(&tasks),
            },
            miss: self.odds.map(|odds| odds.miss),
            promised: false,
        }
    }
}

/// Opens a stream: contract, shares, memory of the window. The caller has checked the
/// mode's own conditions.
pub(crate) fn admit(
    core: &mut Core,
    now: Instant,
    volume: VolumeId,
    (mode, asked, miss): (Mode, &Contract, Option<Chance>),
    window_memory: &mut WindowMemory,
) -> Result<Admitted, Error> {
    asked.check()?;
    let (shares, odds) = match miss.filter(|&miss| miss > Chance::NEVER) {
        None => (core.shares(volume), None),
        Some(miss) => {
            core.may_be_at_odds(volume, mode, asked)?;
            let (shares, odds) = core.shares_at(volume, (mode, asked), miss);
            (shares, Some(odds))
        }
    };
    contract::check_block(asked, &shares, |disk| core.seen(disk).profile)?;
    let mut group = core.group_for(volume, (mode, asked), &shares);
    let mut shares: Vec<Share> = match group {
        Some(_) => shares.iter().map(|share| share.of_member(asked)).collect(),
        None => shares,
    };
    let mut blocks = contract::window_blocks(asked, &shares, mode, core.late);
    if mode.writes() {
        let on = core.store.volume(volume).expect("it was found");
        core.check_ring(on, asked, (&shares, mode))?;
    }
    let patience = match mode {
        Mode::Read => asked.rate.time_for(asked.block) / 2,
        Mode::Write | Mode::Update => Duration::ZERO,
    };
    let chunks: Vec<_> = shares.iter().map(|one| (one.disk, core.chunk(one.disk))).collect();
    let tasks = match group {
        Some(id) => match core.join_group(now, id, asked, &shares[0]) {
            Ok(()) => Ok(Vec::new()),
            Err(Error::Refused(refusal)) if refusal.undecided => Err(Error::Refused(refusal)),
            // By itself it may fit: its block is shorter than the group's command.
            Err(error) => {
                let search = core.search.take();
                group = None;
                shares = core.shares(volume);
                blocks = contract::window_blocks(asked, &shares, mode, core.late);
                core.join(now, asked, (&shares, &[]), mode, patience).map_err(|_| {
                    core.search = search;
                    error
                })
            }
        },
        None => core.join(now, asked, (&shares, &[]), mode, patience),
    }?;
    let leave = |core: &mut Core| match group {
        Some(group) => core.leave_group(now, group, None),
        None => core.leave(&tasks),
    };
    let places = match window_memory.take(core, asked.block, blocks) {
        Ok(places) => places,
        Err(error) => {
            leave(core);
            core.put_chunks_back(now, &chunks);
            return Err(error);
        }
    };
    if mode.writes()
        && let Err(error) = core.log_takes(now, volume, asked, mode)
    {
        leave(core);
        core.put_chunks_back(now, &chunks);
        window_memory.leave(core, asked.block, places.into_iter());
        return Err(error);
    }
    Ok(Admitted { tasks, group, places, odds })
}

/// What a stream was given.
pub(crate) struct Admitted {
    pub tasks: Vec<Joined>,
    pub group: Option<GroupId>,
    pub places: Vec<Bytes>,
    pub odds: Option<AtOdds>,
}
