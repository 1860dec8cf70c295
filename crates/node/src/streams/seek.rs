//! How a reader goes to another place of its volume, and from when on its contract
//! holds there in full.
//!
//! A jump keeps what both windows have. Requests that were released and not started are
//! not lost: they read blocks of the new window instead, in order, at the times that they
//! had ([`redirect`](sched::Schedule::redirect)); the others are taken back and give their
//! releases back. A command that the disk has already ends in memory that the new window
//! does without until then: a stray. Under a policy that works in sweeps a request that is
//! in the sweep under way moves only where the arm has not been; otherwise it is taken back, too,
//! and the first block is a new request, which the next sweep has.
//!
//! **As soon as is safe.** What an idle disk served ahead of its turn is of no use any
//! more, but would put the next turn off by as much as the window lasts. So the stream's
//! turn comes anew ([`renew`](sched::Schedule::renew)): at once where the exact slack says
//! that nobody can be late for it, and once a period at the most, so that a program which
//! jumps all the time gets no more of the disk than its contract says, and one request.
//! Then the request for the first block is promised for as soon as the same slack allows
//! ([`advance_deadline`](sched::Schedule::advance_deadline)). Both look at the disk as it is at this moment. A
//! bound that held at all times would have to be paid at all times, by everybody: by a
//! shorter deadline for all requests of the stream, since under earliest deadline first,
//! with best effort in the slack before it, a disk makes use of all that a deadline gives.
//! (Policies that go by the static slack alone get neither: what they give away is
//! worked out for deadlines and releases as the contracts have them.)
//!
//! **What can be stated.** Block `j` of the window, counted from the playout point, is in
//! memory by `g(j)`: now, at the deadline of its request, or, where it is not asked for
//! yet, a period after the release that it gets in its turn. With the contract's burst
//! `c`, rate `r`, and `q` bytes of the first block behind the playout point, a program
//! that begins at `s` touches block `j` after `s + (j B - q - c) / r` at the earliest. So
//! the contract holds in full from the least `s` on that is no less than
//! `g(j) - max(0, j B - q - c) / r` for any `j`: of an empty window on one disk
//! `g(0) + (q + c) / r`, whatever the window's length. Behind the window each block is
//! asked for when another is used up: where that is before its turn it comes in its turn,
//! and looking on for one turn over all disks covers it; where it is later, a new run of
//! requests begins, which `contract.rs` deals with.
//!
//! Before `s` the program has its burst once, as soon as it is in memory, and nothing on
//! top: so it can show what is there, and no program that keeps its contract from `s` on
//! finds its window empty for it.

use crate::api::*;
use crate::core::Core;
use crate::streams::shared::Shared;
use crate::streams::stream::{Lost, Slot, Stream};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use playout::Pace;
use units::{Bytes, Duration, Instant};

/// Blocks that are looked at one by one; a longer window is taken to be empty.
const LOOK_MAX: u64 = 4_096;

impl Stream {
    /// The first requests of a reader that was just opened.
    pub(crate) fn fill_window(&mut self, core: &mut Core, now: Instant, has_writer: bool) {
        self.pump_reader(core, now, has_writer);
        self.steady = self.steady_from(core, now, has_writer);
    }

    /// [`Op::StreamBegin`].
    pub(crate) fn begin_at_once(
        &mut self,
        core: &mut Core,
        now: Instant,
        has_writer: bool,
    ) -> Result<Reply, Error> {
        if self.primed && self.mode == Mode::Read && !self.closing {
            return Ok(self.ready(core, now, has_writer));
        }
        // Nothing was told yet, so that nothing becomes void.
        self.seek(core, now, self.position, has_writer)
    }

    /// [`Op::StreamSeek`].
    pub(crate) fn seek(
        &mut self,
        core: &mut Core,
        now: Instant,
        to: Bytes,
        has_writer: bool,
    ) -> Result<Reply, Error> {
        if self.mode != Mode::Read {
            return Err(Error::WrongMode);
        }
        if self.closing {
            return Err(Error::NoSuchStream { stream: self.id });
        }
        let volume = core.store.volume(self.volume).expect("open volumes stay");
        let (start, length) = (volume.start(), volume.length());
        if to > length {
            return Err(Error::BeyondEnd { size: length });
        }
        // A reader that begins where it stands hears of the gap that it is in.
        if to < start && to != self.position {
            return Err(Error::GivenUp { start });
        }
        self.held = Bytes::ZERO;
        if let Some(ask) = &mut self.ask {
            ask.begin_anew();
        }
        self.stop_all_early(core);
        let waiting = self.move_window(core, self.block_at(to), self.incomplete(to));
        self.position = to;
        self.shared = self.shared.map(|_| Shared::new(to));
        self.reuse(core, now, waiting, has_writer);
        (self.excess_end, self.slack_end) = (0, 0);
        // Other policies do not look at the exact slack before they let others go first.
        let exact = core.config.policy.is(Policy::SLACK);
        if exact {
            self.renew(core, now);
        }
        self.pump_reader_silently(core, now, has_writer);
        self.begin_early(core, now);
        if let Some(&Slot::Moving(id)) = self.window.get(self.block_at(to)).filter(|_| exact) {
            let early = self.early_takes(core, id.disk());
            core.advance_deadline(now, id, early);
        }
        self.primed = true;
        self.steady = self.steady_from(core, now, has_writer);
        self.pace = Pace::begin_at(&self.contract, now, self.steady);
        Ok(self.ready(core, now, has_writer))
    }

    /// By when the first block is there, and from when on the contract holds in full.
    fn ready(&self, core: &Core, now: Instant, has_writer: bool) -> Reply {
        let first = self.block_at(self.position);
        let at = self.there_by(core, now, has_writer).next().filter(|&(block, _)| block == first);
        Reply::Ready { at: at.map_or(now, |(_, at)| at), steady: self.steady, seeks: 0 }
    }

    /// Puts the window elsewhere, with what both have in common. Returns the requests that
    /// were not started; none of them has a slot any more.
    ///
    /// Places go on being used in the order in which they were, around the window, so that
    /// blocks that follow each other stay neighbours for the program that has mapped them:
    /// what the strays have comes last, and the first block is in what follows on that.
    fn move_window(
        &mut self,
        core: &mut Core,
        base: u64,
        incomplete: Option<u64>,
    ) -> Vec<CommandId> {
        let early = self.early_with_disk();
        let (old, count) = (self.window.first(), self.window.len() as usize);
        let slots = self.window.replace(base, VecDeque::new());
        let places = core::mem::take(&mut self.places);
        let mut new: VecDeque<(Slot, Bytes)> =
            (0..count).map(|_| (Slot::Nowhere, Bytes::ZERO)).collect();
        // What the device failed on is read again; of what is under way it is told yet.
        let is_moving = |block: u64| {
            let at = block.checked_sub(old).and_then(|at| slots.get(at as usize));
            matches!(at, Some(Slot::Moving(_)))
        };
        let (kept, lost): (Vec<Lost>, Vec<Lost>) =
            self.lost.drain(..).partition(|lost| is_moving(lost.block));
        self.lost = kept;
        let lost: Vec<u64> = lost.iter().map(|lost| lost.block).collect();
        let (mut free, mut waiting, mut behind_strays) = (Vec::new(), Vec::new(), 0);
        for (block, (slot, place)) in (old..).zip(slots.into_iter().zip(places)) {
            let at = block.checked_sub(base).filter(|&at| at < count as u64);
            let at = at.filter(|_| incomplete != Some(block));
            // How many commands still fill the place of a block that the window leaves.
            let mut with_disk = u64::from(early == Some(block));
            match (slot, at) {
                (Slot::Nowhere, _) => continue,
                (Slot::Moving(id), _) if core.waits(id) => waiting.push(id),
                (Slot::Moving(_), None) => with_disk += 1,
                (Slot::Moving(_), Some(at)) => {
                    new[at as usize] = (slot, place);
                    continue;
                }
                (Slot::Ready, Some(at)) if !lost.contains(&block) => {
                    new[at as usize] = (slot, place);
                    continue;
                }
                (Slot::Ready | Slot::Full | Slot::Loaded | Slot::Open | Slot::Failed(..), _) => {}
            }
            if with_disk == 0 {
                free.push(place);
            } else {
                (0..with_disk).for_each(|_| self.strays.push(place));
                behind_strays = free.len();
            }
        }
        self.keep_early(|block| {
            let at = block.checked_sub(base).and_then(|at| new.get(at as usize));
            at.is_some_and(|(slot, _)| *slot != Slot::Nowhere)
        });
        if new.iter().all(|(slot, _)| *slot == Slot::Nowhere) {
            free.rotate_left(behind_strays);
        }
        let mut free = free.into_iter();
        for empty in new.iter_mut().filter(|(slot, _)| *slot == Slot::Nowhere) {
            let Some(place) = free.next() else { break };
            *empty = (Slot::Open, place);
        }
        debug_assert!(free.next().is_none(), "a place for which there is no block");
        let (slots, places) = new.into_iter().unzip();
        self.window.replace(base, slots);
        self.places = places;
        // What becomes of a stray is nobody's any more.
        let window = &self.window;
        self.lost.retain(|lost| matches!(window.get(lost.block), Some(Slot::Moving(_))));
        waiting
    }

    /// The stream's turn comes anew, once a period.
    fn renew(&mut self, core: &mut Core, now: Instant) {
        let period = self.tasks.iter().map(|joined| joined.task.period).max();
        let from = self.renewed.map_or(now, |last| last + period.unwrap_or_default()).max(now);
        let mut renewed = false;
        for joined in &self.tasks {
            if core.next_release(joined) > from {
                core.renew(now, joined, from);
                renewed = true;
            }
        }
        if renewed {
            self.renewed = Some(from);
        }
    }

    /// Lets released requests that wait read blocks of the window; the rest is taken back.
    fn reuse(
        &mut self,
        core: &mut Core,
        now: Instant,
        mut waiting: Vec<CommandId>,
        has_writer: bool,
    ) {
        waiting.sort_unstable();
        let (mut waiting, early): (Vec<CommandId>, Vec<CommandId>) = waiting
            .into_iter()
            .partition(|&id| core.is_released(id, now) && !core.waits_in_slack(id));
        // In a sweep that does not come to the new place any more (`Policy::may_redirect`).
        let mut without_turn = Vec::new();
        for block in self.window.first()..self.window.end() {
            if waiting.is_empty() || !self.has_data(core, block, has_writer) {
                break;
            }
            if self.window.get(block) != Some(&Slot::Open) || self.is_gone(core, block) {
                continue;
            }
            let (disk, parts) = self.reading_from(core, block, Bytes::ZERO);
            if parts.iter().all(|(action, _)| action.needs_no_disk()) {
                continue;
            }
            while let Some(which) = waiting.iter().position(|id| id.disk() == disk) {
                let id = waiting.remove(which);
                if core.redirect(now, id, self.class(disk), parts.clone()) {
                    *self.window.get_mut(block).expect("looked at above") = Slot::Moving(id);
                    self.note_end(core, block);
                    break;
                }
                without_turn.push(id);
            }
        }
        // The newest first, so that each is the last that was released.
        waiting.extend(without_turn);
        waiting.extend(early);
        waiting.sort_unstable();
        for id in waiting.into_iter().rev() {
            let taken = core.take_back(id);
            assert!(taken, "it waits");
        }
    }

    /// The block can be asked for: it has data, and is whole where somebody writes it.
    pub(crate) fn has_data(&self, core: &Core, block: u64, has_writer: bool) -> bool {
        let length = core.store.volume(self.volume).expect("open volumes stay").length();
        let from = self.contract.block * block;
        // A writer that is elsewhere does not go on with the last block.
        let grows = self.writer_at.is_some_and(|(first, next)| first <= length && length <= next);
        from < length && !(has_writer && grows && from + self.contract.block > length)
    }

    /// From when on the contract holds in full.
    pub(crate) fn steady_from(&self, core: &Core, now: Instant, has_writer: bool) -> Instant {
        self.steady_after(core, now, self.contract.at_once(), has_writer)
    }

    /// From when on it does for a program that may have so much before then.
    pub(crate) fn steady_after(
        &self,
        core: &Core,
        now: Instant,
        before: Bytes,
        has_writer: bool,
    ) -> Instant {
        let Contract { rate, block: len, .. } = self.contract;
        let first = self.block_at(self.position);
        let free = self.position % len + before;
        if !self.is_looked_at_by_block() {
            let open = self.window.iter().filter(|(_, slot)| **slot == Slot::Open);
            let not_asked = open.count() as u64;
            let period = rate.time_for(len);
            let response = self.odds.map_or(Duration::ZERO, |odds| odds.response);
            let filled =
                period.saturating_mul(not_asked + 1 + self.turn()).saturating_add(response);
            return core.begins(&self.tasks).max(now).saturating_add(filled);
        }
        let mut steady = now;
        for (block, by) in self.there_by(core, now, has_writer) {
            let beyond = (len * (block - first)).saturating_sub(free);
            // Rounded up, so that a nanosecond is to be given back.
            let wanted = rate.time_for(beyond).saturating_sub(Duration::from_nanos(1));
            steady = steady.max(by.saturating_sub(wanted));
        }
        steady
    }

    /// Whether its window is short enough for that.
    pub(crate) fn is_looked_at_by_block(&self) -> bool {
        self.window.len() + self.turn() <= LOOK_MAX
    }

    /// Blocks from one turn of a disk to its next one, at the most.
    fn turn(&self) -> u64 {
        let block = self.contract.rate.time_for(self.contract.block);
        let longest = self.tasks.iter().map(|joined| joined.task.period).max();
        let gap = longest.unwrap_or(block).as_nanos().div_ceil(block.as_nanos().max(1));
        self.in_a_row * (gap - 1) + 1
    }

    /// By when the blocks from the playout point on are in memory, to one turn behind the
    /// window.
    pub(crate) fn there_by<'a>(
        &'a self,
        core: &'a Core,
        now: Instant,
        has_writer: bool,
    ) -> impl Iterator<Item = (u64, Instant)> + 'a {
        let first = self.block_at(self.position);
        let mut turns = self.turns(core, now);
        let end = self.window.end() + self.turn();
        let has_data = move |block: &u64| self.has_data(core, *block, has_writer);
        (first..end).take_while(has_data).map(move |block| {
            let slot = self.window.get(block);
            let by = match slot {
                Some(Slot::Ready | Slot::Loaded | Slot::Failed(..)) => now,
                // In the slack it waits for a turn like one that was not asked for.
                Some(&Slot::Moving(id)) if !core.waits_in_slack(id) => {
                    match core.there_by(id, now).max(now) {
                        // It was begun in the slack, which covers it in its turn.
                        Instant::MAX => {
                            let mut turn =
                                *turns.on(id.disk()).expect("a task on each of its disks");
                            turn.take(1)
                        }
                        by => by,
                    }
                }
                slot => {
                    let disk = self.disk_of(core, block);
                    let turn = turns.on(disk).expect("a task on each of its disks");
                    if slot == Some(&Slot::Nowhere) {
                        // The stray in its place is done within a period.
                        turn.next = turn.next.max(now + turn.period);
                    }
                    turn.take(1)
                }
            };
            (block, by)
        })
    }
}
