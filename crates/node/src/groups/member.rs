//! What is different for a writer that is in a group.

use crate::api::*;
use crate::core::Core;
use crate::groups::command::writing;
use crate::groups::group::{ForGroup, GroupId, Groups, Item};
use crate::limits;
use crate::streams::stream::{Partial, Slot, Stream};
use crate::volumes::slack::in_slack;
use crate::volumes::writes::End;
use crate::work::Owner;
use alloc::boxed::Box;
use store::{Blocks, EXTENT, Location, Settled};
use units::{Bytes, Duration, Instant};

impl Stream {
    /// A writer of a thin volume has space for a block before its program has room for it; of other
    /// volumes the space is there.
    pub(crate) fn take_space(
        &mut self,
        core: &mut Core,
        now: Instant,
        block: u64,
    ) -> Result<(), Error> {
        if !core.store.volume(self.volume).expect("open volumes stay").is_thin() {
            return Ok(());
        }
        if let Some(group) = self.group {
            if !self.promised.contains(&block) {
                let together = core.together_at(&group);
                core.store.promise(self.volume, block, together)?;
                self.promised.insert(block);
            }
            return Ok(());
        }
        let range = self.range_of(core, block);
        core.place_all(now, self.volume, &range)
    }

    /// What was promised and not used is promised no more.
    pub(crate) fn promise_no_more(&mut self, core: &mut Core) {
        self.full.clear();
        for block in core::mem::take(&mut self.promised) {
            core.store.promise_less(self.volume, block);
        }
    }

    /// As `send`, of a member: a full block waits for its group; what a sync wants of another goes in the
    /// slack, or with its group where that comes first.
    pub(crate) fn send_in_group(&mut self, core: &mut Core, now: Instant, block: u64, len: Bytes) {
        let group = self.group.expect("it is in one");
        let block_len = self.contract.block;
        let waiting = self.partial.take_if(|partial| partial.upto / block_len == block);
        // The place of a part that waits is promised again.
        let is_promised = waiting.is_some_and(|partial| self.take_partial_back(core, &partial));
        if len == block_len {
            if is_promised && !self.promised.insert(block) {
                core.store.promise_less(self.volume, block);
            }
            return self.fill_in_group(core, now, group, block);
        }
        // What lies behind it in a place that it has stays there.
        let at = core.store.locate(self.volume, block).expect("a block of the volume");
        let is_over = !at.written.without(&Blocks::first(len)).is_empty();
        if is_over {
            if is_promised {
                core.store.promise_less(self.volume, block);
            }
            return self.send_in_place(core, now, block, len);
        }
        // The block's own place is for when it is full, unless it will not be, or there is no other.
        let told = self.shared.map_or(self.position, |shared| shared.told);
        let limit = core.store.volume(self.volume).expect("open volumes stay").limit();
        let ends = self.closing || (self.going.is_some() && told == self.position);
        let is_last = ends || self.position == limit;
        let together = core.together_at(&group);
        let is_promised = is_promised
            || (!is_last && core.store.promise(self.volume, block, together).is_ok())
            || self.promised.remove(&block)
            || core.store.promise(self.volume, block, together).is_ok();
        if !is_promised {
            if core.store.is_placed(self.volume, block) {
                return self.send_in_place(core, now, block, len);
            }
            // The pool is read-only, or its map is full.
            *self.window.get_mut(block).expect("a block of the window") = self.fillable();
            return;
        }
        let item = self.hold_for(core, ForGroup { block, upto: len, claim: None });
        let (claim, at, upto) = (item.claim, Some(item.at), block_len * block + len);
        let items: Box<[Item]> = Box::new([item]);
        let class = in_slack(Priority::Interactive, self.volume);
        let id = core.submit(now, group.disk, class, writing(core, &items), Owner::Group { items });
        self.partial = Some(Partial { id, claim, upto, at });
        *self.window.get_mut(block).expect("a block of the window") = Slot::Moving(id);
        core.ask_group(now, group, self.id);
    }

    /// A full block waits for its group's next request. (Where its place was taken for a part, and there is
    /// no other, it goes to that one.)
    fn fill_in_group(&mut self, core: &mut Core, now: Instant, group: GroupId, block: u64) {
        if !self.promised.contains(&block) {
            let together = core.together_at(&group);
            if core.store.promise(self.volume, block, together).is_err() {
                return self.send_in_place(core, now, block, self.contract.block);
            }
            self.promised.insert(block);
        }
        *self.window.get_mut(block).expect("a block of the window") = Slot::Full;
        // It has the first turn that none before it has.
        let turn = core.group_begins(&group).max(now);
        let last = self.full.range(..block).next_back().map_or(turn, |(_, &due)| due);
        self.full.insert(block, turn.max(last).saturating_add(self.contract.period()));
        core.ask_group(now, group, self.id);
    }

    /// What is filled of a block goes to the place that it has, in the slack.
    fn send_in_place(&mut self, core: &mut Core, now: Instant, block: u64, len: Bytes) {
        let (disk, parts) = self.writing(core, block, len, len.round_up(limits::BLOCK_MIN));
        let claim = Self::claim_of(&parts);
        let class = in_slack(Priority::Interactive, self.volume);
        let id = core.submit_parts(now, disk, class, parts);
        if len < self.contract.block {
            let upto = self.contract.block * block + len;
            self.partial = Some(Partial { id, claim, upto, at: None });
        }
        *self.window.get_mut(block).expect("a block of the window") = Slot::Moving(id);
    }

    /// A part that waits is not written: more of its block comes in its place. Says whether it had a place,
    /// which is promised again.
    fn take_partial_back(&mut self, core: &mut Core, partial: &Partial) -> bool {
        let is_out = core.take_back(partial.id);
        assert!(is_out, "it waits");
        let start = partial.upto.round_down(self.contract.block);
        let range = start..partial.upto.round_up(limits::BLOCK_MIN);
        core.writes.end_run(&mut core.store, self.volume, &range, partial.claim, End::Failed);
        let block = partial.upto / self.contract.block;
        partial.at.inspect(|&at| core.store.put_back(self.volume, block, at)).is_some()
    }

    /// Its contract is another one, and so may its group be: that knows what it has.
    pub(crate) fn in_group_of(&mut self, core: &mut Core, now: Instant) {
        let Some(before) = self.group else { return };
        let group = GroupId { period: self.contract.period(), ..before };
        self.group = Some(group);
        if group != before && self.has_for_group(core) {
            core.ask_group(now, group, self.id);
        }
    }

    /// Whether it has something for its group's next request.
    pub(crate) fn has_for_group(&self, core: &Core) -> bool {
        let waits = |partial: Partial| partial.at.is_some() && core.waits_in_slack(partial.id);
        self.has_full() || self.partial.is_some_and(waits)
    }

    /// Whether its group's next request takes this command of its, where it still waits in the slack then.
    pub(crate) fn goes_with_group(&self, groups: &Groups, id: CommandId) -> bool {
        let Some(group) = self.group.and_then(|group| groups.all.get(&group)) else { return false };
        let is_placed = |partial: Partial| partial.id == id && partial.at.is_some();
        let is_part = self.partial.is_some_and(is_placed);
        group.beyond.contains(&id) || (is_part && group.waiting.contains(&self.id))
    }

    /// Whether something of it has to be written, or will have to be at a sync, for which there is no turn: it
    /// waits in the slack until that comes, or others have to wait for it (`jobs/no_slack.rs`).
    pub(crate) fn has_no_turn(&self, core: &Core) -> bool {
        let (block, len) = (self.block_at(self.position), self.position % self.contract.block);
        let at = core.store.locate(self.volume, block);
        let is_over = |at: Location| !at.written.without(&Blocks::first(len)).is_empty();
        let goes_in_place = !len.is_zero() && at.is_some_and(is_over);
        let is_alone = |slot: &Slot| match *slot {
            Slot::Moving(id) => core.waits_in_slack(id) && !self.goes_with_group(&core.groups, id),
            _ => false,
        };
        self.group.is_some()
            && (goes_in_place || self.window.iter().any(|(_, slot)| is_alone(slot)))
    }

    /// What it has for it: the oldest block that is full, or what somebody waits for of one that is not. A
    /// place for it is promised.
    pub(crate) fn part_for_group(&mut self, core: &mut Core) -> Option<ForGroup> {
        let full = self.window.iter().find(|(_, slot)| **slot == Slot::Full);
        if let Some((block, _)) = full {
            return Some(ForGroup { block, upto: self.contract.block, claim: None });
        }
        let partial = self.partial?;
        let at = partial.at.filter(|_| core.waits_in_slack(partial.id))?;
        let block = partial.upto / self.contract.block;
        let is_out = core.take_back(partial.id);
        assert!(is_out, "it waits, alone in its command");
        core.store.put_back(self.volume, block, at);
        let (upto, claim) = (partial.upto % self.contract.block, Some(partial.claim));
        Some(ForGroup { block, upto, claim })
    }

    /// The same with its place at the frontier.
    pub(crate) fn item(&mut self, core: &mut Core, part: ForGroup) -> Item {
        if part.claim.is_none() {
            let was_promised = self.promised.remove(&part.block);
            assert!(was_promised, "its program has had room for it");
        }
        self.hold_for(core, part)
    }

    /// Whether a part of a block is not written where more of it is: it waits by itself.
    pub(crate) fn may_replace(&self, core: &Core, partial: &Partial) -> bool {
        match self.group {
            Some(_) => core.waits_in_slack(partial.id),
            None => core.waits(partial.id),
        }
    }

    fn hold_for(&mut self, core: &mut Core, part: ForGroup) -> Item {
        let ForGroup { block, upto, claim } = part;
        let (start, len) = (self.contract.block * block, upto.round_up(limits::BLOCK_MIN));
        let at = core.store.hold(self.volume, block);
        let claim =
            claim.unwrap_or_else(|| core.writes.claim_run(self.volume, &(start..start + len)));
        Item { stream: self.id, block, len, upto, place: self.place(start), at, claim }
    }

    /// This command writes the block, or a part of it.
    pub(crate) fn is_written_by(&mut self, item: &Item, id: CommandId) {
        *self.window.get_mut(item.block).expect("a block of the window") = Slot::Moving(id);
        if let Some(partial) = &mut self.partial
            && partial.upto / self.contract.block == item.block
        {
            (partial.id, partial.at) = (id, Some(item.at));
        }
    }

    /// A full block that waited in the slack for its disk waits for its group again.
    pub(crate) fn is_full_again(&mut self, core: &mut Core, item: &Item) {
        let start = self.contract.block * item.block;
        let range = start..start + item.len;
        core.writes.end_run(&mut core.store, self.volume, &range, item.claim, End::Failed);
        core.store.put_back(self.volume, item.block, item.at);
        self.promised.insert(item.block);
        *self.window.get_mut(item.block).expect("a block of the window") = Slot::Full;
    }

    /// Whether it has a full block for its group's next request.
    pub(crate) fn has_full(&self) -> bool {
        self.window.iter().any(|(_, slot)| *slot == Slot::Full)
    }

    /// By how much a block that is on the disk now is late, and by when it was due.
    pub(crate) fn note_in_time(
        &mut self,
        now: Instant,
        block: u64,
        otherwise: (Duration, Instant),
    ) -> (Duration, Instant) {
        let is_part = self.is_part(block);
        match self.full.remove(&block).filter(|_| !is_part) {
            Some(due) => (now.saturating_since(due), due),
            None => otherwise,
        }
    }

    /// By how much a block is late by now that is not on the disk yet.
    pub(crate) fn late_by(&self, now: Instant, block: u64, otherwise: Duration) -> Duration {
        let due = self.full.get(&block).filter(|_| !self.is_part(block));
        due.map_or(otherwise, |&due| now.saturating_since(due))
    }

    /// A part is no full block, also where it was one's.
    fn is_part(&self, block: u64) -> bool {
        self.partial.is_some_and(|partial| partial.upto / self.contract.block == block)
    }

    /// A block, or a part of it, is on its disk, or the device failed on it.
    pub(crate) fn item_written(
        &mut self,
        core: &mut Core,
        now: Instant,
        (disk, item): (DiskIndex, &Item),
        result: Result<(), (DiskIndex, DeviceError)>,
    ) {
        let start = self.contract.block * item.block;
        let end = match result {
            Ok(()) => {
                core.abandon_moves_of(|one| one.volume == self.volume && one.index == item.block);
                if let Settled::There { old: Some(old) } =
                    core.store.settle(self.volume, item.block, disk, item.at)
                {
                    core.groups.left.push((disk, old..old + EXTENT));
                }
                End::Written
            }
            Err(_) => {
                core.store.release(disk, item.at);
                End::Failed
            }
        };
        let range = start..start + item.len;
        core.writes.end_run(&mut core.store, self.volume, &range, item.claim, end);
        self.wrote(core, now, item.block, result);
    }
}
