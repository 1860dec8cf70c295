//! A group's request is put together, and ends.

use crate::admission::contract::Share;
use crate::api::*;
use crate::core::{Core, Parts};
use crate::groups::command::writing;
use crate::groups::group::{ForGroup, Group, GroupId, Item, Times};
use crate::limits;
use crate::node::Node;
use crate::volumes::slack::in_slack;
use crate::volumes::writes::overlap;
use crate::work::Owner;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::Range;
use sched::Class;
use store::EXTENT;
use units::{Bytes, Direction, Duration, Instant};

impl Node {
    /// Groups whose turn has come write.
    pub(crate) fn write_groups(&mut self, now: Instant) {
        while let Some(id) = self.core.due_group(now) {
            self.gather(now, id);
        }
        self.core.free_places_left(now);
    }

    /// One block of each member that has one, full ones first. Of parts as many as may be in a command: the
    /// others are asked for again, and come before those that are asked for after them.
    fn gather(&mut self, now: Instant, id: GroupId) {
        self.take_beyond_back(now, id);
        self.core.fit_group(now, id);
        let core = &mut self.core;
        let group = core.groups.all.get_mut(&id).expect("it is due");
        let (members, class) = (group.members as usize, Class::RealTime(group.task.id));
        let (cost, share) = (group.task.task.cost, group.share.clone());
        let waiting = core::mem::take(&mut group.waiting);
        let mut parts: Vec<(StreamId, ForGroup)> = Vec::new();
        for &stream in &waiting {
            let Some(stream) = self.streams.get_mut(stream) else { continue };
            let is_full = stream.has_full();
            let partials = parts.iter().filter(|(_, part)| part.is_part()).count();
            if parts.len() < members && (is_full || partials < limits::GROUP_PARTS_MAX) {
                parts.extend(stream.part_for_group(core).map(|part| (stream.id, part)));
            }
        }
        parts.sort_by_key(|(_, part)| part.is_part());
        core.store.begin_together(id.disk, id.zone, parts.len() as u32);
        let mut items: Vec<Item> = Vec::new();
        for (stream, part) in parts {
            let stream = self.streams.get_mut(stream).expect("it has just given it");
            items.push(stream.item(core, part));
        }
        self.write_together(now, id, (class, cost), (&share, &items));
        for stream in waiting {
            let Some(stream) = self.streams.get(stream) else { continue };
            if let (Some(group), true) = (stream.group, stream.has_for_group(&self.core)) {
                self.core.ask_group(now, group, stream.id);
            }
        }
        self.core.time_group(now, id);
    }

    /// Writes these in one request. Where the free space is in short pieces they lie in several places: as
    /// many commands as what was admitted has time for are the group's request, the longest first; what is
    /// left goes in the slack, and comes back with the next request if it waits until then.
    fn write_together(
        &mut self,
        now: Instant,
        id: GroupId,
        (class, cost): (Class, Duration),
        (share, items): (&Share, &[Item]),
    ) {
        let goes_on = |one: &Item, next: &Item| one.at + EXTENT == next.at;
        let mut commands: Vec<&[Item]> = items.chunk_by(goes_on).collect();
        // Those with a block that has had to wait go first, and then the longest.
        commands.sort_by_key(|items| {
            let due = |item: &Item| self.streams.get(item.stream)?.full.get(&item.block).copied();
            (items.iter().filter_map(due).min(), core::cmp::Reverse(items.len()))
        });
        let core = &self.core;
        let seen = core.seen(id.disk);
        // No less than may ever be charged for a gap: one that grows while this waits is in it already.
        let between = seen.advance.max(queue::limits::GAP_MAX);
        let mut takes = Duration::ZERO;
        let mut fits = |items: &&[Item]| {
            let part = Share { members: items.len() as u32, ..share.clone() };
            let more = seen.cost_of_group(&part, Direction::Write);
            let more = if takes.is_zero() { more } else { more.saturating_add(between) };
            takes = takes.saturating_add(more);
            takes <= cost
        };
        let count = commands.iter().take_while(|items| fits(items)).count().max(1);
        let (within, beyond) = commands.split_at(count.min(commands.len()));
        let part =
            |items: &&[Item]| (writing(core, items), Owner::Group { items: Box::from(*items) });
        let parts: Parts = within.iter().map(part).collect();
        if !parts.is_empty() {
            let command = self.core.submit_parts(now, id.disk, class, parts);
            let mut running = core::mem::take(&mut self.group(id).running);
            running.retain(|&command| self.core.is_known(command));
            running.push(command);
            self.group(id).running = running;
            self.are_written_by(within.iter().copied().flatten(), command);
        }
        for item in beyond.iter().copied().flatten() {
            let command = self.write_alone(now, id.disk, item);
            self.group(id).beyond.push(command);
            // The slack may not come.
            self.core.ask_group(now, id, item.stream);
        }
    }

    fn group(&mut self, id: GroupId) -> &mut Group {
        self.core.groups.all.get_mut(&id).expect("it writes")
    }

    fn are_written_by<'a>(&mut self, items: impl Iterator<Item = &'a Item>, command: CommandId) {
        for item in items {
            let stream = self.streams.get_mut(item.stream).expect("a stream outlives its commands");
            stream.is_written_by(item, command);
        }
    }

    /// Full blocks that the last request had no time for, and that wait in the slack, are for the next one.
    fn take_beyond_back(&mut self, now: Instant, id: GroupId) {
        // The last first: what goes back to the frontier lies in its order there.
        for command in core::mem::take(&mut self.group(id).beyond).into_iter().rev() {
            let core = &mut self.core;
            let Some(item) = core.item_in_slack(command).filter(|item| item.len == EXTENT) else {
                continue;
            };
            let is_out = core.take_back(command);
            assert!(is_out, "it waits");
            let stream = self.streams.get_mut(item.stream).expect("a stream outlives its commands");
            stream.is_full_again(core, &item);
            if let Some(group) = stream.group {
                core.ask_group(now, group, item.stream);
            }
        }
    }

    fn volume_of(&self, stream: StreamId) -> store::VolumeId {
        self.streams.get(stream).expect("it is open").volume
    }

    /// A command that wrote for members of a group has ended.
    pub(crate) fn group_ended(
        &mut self,
        now: Instant,
        (disk, items): (DiskIndex, &[Item]),
        result: Result<(), DeviceError>,
        Times { late_by, latency, due }: Times,
    ) {
        if result.is_err() && items.len() > 1 {
            // The device failed on one of them: each is tried by itself.
            for item in items {
                self.write_alone(now, disk, item);
            }
            return;
        }
        let mut latest: Option<Finished> = None;
        for item in items {
            let core = &mut self.core;
            let stream = self.streams.get_mut(item.stream).expect("a stream outlives its commands");
            // A part has no time but its own command's.
            let (late_by, due) =
                stream.note_in_time(now, item.block, (late_by, due.unwrap_or(now)));
            stream.account.ended(late_by, latency);
            stream.landed(now, item.block, latency, due);
            let finished = Finished { whose: Carrier::Stream(item.stream), late_by, latency };
            latest = latest.into_iter().chain([finished]).max_by_key(|one| one.late_by);
            let result = result.map_err(|error| (disk, error));
            stream.item_written(core, now, (disk, item), result);
            let volume = stream.volume;
            self.after(now, item.stream);
            self.pump_readers(now, volume);
        }
        // What was late in the slack was late, too.
        let is_late = |finished: &Finished| !finished.late_by.is_zero();
        self.finished = latest.filter(is_late).or(self.finished);
        self.core.end_groups();
        self.write_groups(now);
    }

    fn write_alone(&mut self, now: Instant, disk: DiskIndex, item: &Item) -> CommandId {
        let class = in_slack(Priority::Interactive, self.volume_of(item.stream));
        let items: Box<[Item]> = Box::new([item.clone()]);
        let action = writing(&self.core, &items);
        let id = self.core.submit(now, disk, class, action, Owner::Group { items });
        self.are_written_by([item].into_iter(), id);
        id
    }
}

impl Core {
    /// A group that writes now.
    fn due_group(&mut self, now: Instant) -> Option<GroupId> {
        let mut due =
            self.groups.all.iter().filter(|(_, group)| group.due.is_some_and(|due| due <= now));
        due.next().map(|(&id, _)| id)
    }

    /// The block that a command writes by itself, where that waits in the slack.
    fn item_in_slack(&self, command: CommandId) -> Option<Item> {
        let queue = &self.disks[command.disk().as_usize()].queue;
        match &queue.works(command.0).next().filter(|_| self.waits_in_slack(command))?.owner {
            Owner::Group { items } => items.first().cloned(),
            _ => None,
        }
    }

    /// Places that were left, and that no command reads any more, are free with the next commit.
    fn free_places_left(&mut self, now: Instant) {
        self.groups.left_due = None;
        // Asked often: to change the store costs more than a look.
        if self.store.has_vacated() {
            self.groups.left.extend(self.store.take_vacated());
        }
        if self.groups.left.is_empty() {
            return;
        }
        let all = self.disks.iter().flat_map(|disk| {
            let works = disk.queue.commands().flat_map(|(key, ..)| disk.queue.works(key));
            let ranges = works.filter_map(|work| work.action.transfer());
            ranges.map(|(range, _)| (disk.index, range)).collect::<Vec<_>>()
        });
        let busy: Vec<(DiskIndex, Range<Bytes>)> = all.collect();
        let mut left = core::mem::take(&mut self.groups.left);
        let most = limits::GROUP_LEFT_LOOKS / busy.len().max(1);
        let looked_at = left.len().min(most.max(limits::GROUP_LEFT_STEP));
        let stays: Vec<_> = left
            .drain(..looked_at)
            .filter(|(disk, place)| {
                let is_read = busy.iter().any(|(on, range)| on == disk && overlap(range, place));
                if !is_read {
                    self.store.give_back_held(*disk, place.start);
                    self.changed(now);
                }
                is_read
            })
            .collect();
        left.extend(stays);
        let again = now.saturating_add(limits::GROUP_LEFT_AGAIN);
        self.groups.left_due = (!left.is_empty()).then_some(again);
        self.groups.left = left;
        self.wake_timers();
    }
}
