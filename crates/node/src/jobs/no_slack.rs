//! What waits for slack that will not come.

use crate::api::*;
use crate::core::Core;
use crate::groups::group::Groups;
use crate::limits;
use crate::node::Node;
use crate::streams::index::Streams;
use crate::streams::stream::Slot;
use crate::work::{self, Owner};
use alloc::vec::Vec;
use core::cell::RefCell;
use units::Instant;

impl Core {
    /// Sets a timer to look for requests that must be served although they have no slack.
    pub(crate) fn look_for_stuck(&mut self, now: Instant) {
        if self.stuck_look.is_none() {
            self.stuck_look = Some(now.saturating_add(limits::INSIST_WITHIN));
            self.wake_timers();
        }
    }

    /// The same, if any request waits for more slack than there mostly is.
    pub(crate) fn look_for_stuck_if_any(&mut self, now: Instant) {
        if self.stuck_look.is_none() && self.disks.iter().any(|disk| disk.queue.has_long()) {
            self.look_for_stuck(now);
        }
    }
}

impl Node {
    /// Serves parts of records and writers' blocks that have waited too long for slack. Other requests may be
    /// late for each of them; without this, the requests that wait for it would never be served.
    pub(crate) fn insist(&mut self, now: Instant) {
        if self.core.stuck_look.take_if(|due| *due <= now).is_none() {
            return;
        }
        let waits = [limits::INSIST_WITHIN, limits::INSIST_ANYWAY_WITHIN];
        let [never, none] = waits.map(|within| now.saturating_sub(within));
        let (streams, groups, mut went) = (&self.streams, &self.core.groups, false);
        let has_turn = |owner: &Owner| has_turn(streams, groups, owner);
        let is_writer = |id| streams.get(id).is_some_and(|stream| stream.mode != Mode::Read);
        for disk in &mut self.core.disks {
            went |= work::insist(&mut disk.queue, now, (never, none), (is_writer, has_turn));
        }
        if went {
            // A record has several parts, one behind the other.
            self.core.stuck_look = Some(now.saturating_add(limits::INSIST_AGAIN));
        }
        if self.core.commits.running.is_some() {
            self.core.look_for_stuck(now);
        }
        self.core.look_for_stuck_if_any(now);
    }

    /// Gives up what has waited for long and will have no slack.
    pub(crate) fn give_up(&mut self, now: Instant) {
        let before = now.saturating_sub(limits::NO_SLACK_WITHIN);
        for disk in (0..self.core.disks.len() as u16).map(DiskIndex) {
            loop {
                let streams = &self.streams;
                let is_reader =
                    |id| streams.get(id).is_some_and(|stream| stream.mode == Mode::Read);
                let (best_effort, kept) = (&self.best_effort, RefCell::new(Vec::new()));
                let is_kept = |operation: u64| {
                    let is_answered = best_effort.is_answered(operation);
                    if is_answered {
                        kept.borrow_mut().push(operation);
                    }
                    is_answered
                };
                let queue = &mut self.core.disk(disk).queue;
                let parts = work::given_up(queue, disk, (now, before), (is_reader, is_kept));
                for operation in kept.into_inner() {
                    self.best_effort.no_slack(&mut self.core, (now, before), disk, operation);
                }
                if parts.is_empty() {
                    break;
                }
                for ended in parts {
                    let ended = self.core.command_ended(ended);
                    self.ended(now, ended);
                }
            }
        }
        self.best_effort.look_for_slack_later(now, !self.streams.is_empty());
    }
}

/// Whether what waits in the slack goes in a turn if no slack comes. A member of a group has none of its own:
/// what does not go with its group's has none at all.
fn has_turn(streams: &Streams, groups: &Groups, owner: &Owner) -> bool {
    match owner {
        Owner::Block { stream, .. } => {
            streams.get(*stream).is_some_and(|stream| stream.group.is_none())
        }
        Owner::Group { items } => items.iter().any(|item| {
            let Some(stream) = streams.get(item.stream) else { return false };
            let slot = stream.window.get(item.block);
            matches!(slot, Some(&Slot::Moving(id)) if stream.goes_with_group(groups, id))
        }),
        _ => true,
    }
}
