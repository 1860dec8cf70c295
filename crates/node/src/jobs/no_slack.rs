//! What waits for slack that will not come.

use crate::api::*;
use crate::limits;
use crate::node::Node;
use crate::work;
use alloc::vec::Vec;
use core::cell::RefCell;
use units::Instant;

impl Node {
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
