//! The disks of a pool, for whoever drives them.
//!
//! Each disk is a [`DiskQueue`]. A driver with one thread leaves the queues to the node and
//! uses [`Node::poll_disk`] and [`Event::CommandDone`]. One with a thread for each disk
//! shares them ([`Node::share_disks`]): a disk's thread tells its queue what has ended
//! ([`crate::command_ended`]) and asks it what to start ([`next_command`]) under the queue's own
//! lock, starts that, and tells the node afterwards what has ended
//! ([`Node::command_ended`]). Whoever calls the node calls [`Node::release_disks`] at the
//! end, before it gives the lock of the node back.

use crate::api::*;
use crate::core::Disk;
use crate::node::Node;
use crate::work::{DiskQueue, Work, next_command};
use alloc::boxed::Box;
use queue::Shared;
use units::Instant;

impl Node {
    /// Puts the queue of each disk where the disk's thread can have it, too.
    pub fn share_disks(
        mut self,
        mut share: impl FnMut(DiskIndex, DiskQueue) -> Box<dyn Shared<Work>>,
    ) -> Self {
        let put = |disk: Disk| {
            let queue = disk.queue.share(|queue| share(disk.index, queue));
            Disk { queue, ..disk }
        };
        self.core.disks = self.core.disks.into_iter().map(put).collect();
        self
    }

    /// The queue of a disk.
    pub fn disk_queue(&mut self, disk: DiskIndex) -> &mut DiskQueue {
        &mut self.core.disk(disk).queue
    }

    /// The node is done with the queues of its disks until it is called again.
    pub fn release_disks(&mut self) {
        self.core.disks.iter_mut().for_each(|disk| disk.queue.release());
    }

    /// What `disk` shall do next; disk 0 also runs the timers. For a driver that leaves the
    /// queues to the node.
    pub fn poll_disk(&mut self, now: Instant, disk: DiskIndex) -> DiskPoll {
        if disk.0 == 0 {
            self.run_timers(now);
            self.core.timers_changed = false;
        }
        let poll = next_command(&mut self.core.disk(disk).queue, now);
        match (poll, self.next_timer()) {
            (DiskPoll::Wait { until }, Some(timer)) if disk.0 == 0 => {
                DiskPoll::Wait { until: Some(until.map_or(timer, |until| until.min(timer))) }
            }
            (poll, _) => poll,
        }
    }

    /// A disk that got work since it was last polled, by way of the node. Disk 0 has some
    /// where a timer may be due sooner than it was.
    pub fn next_wake(&mut self) -> Option<DiskIndex> {
        if core::mem::take(&mut self.core.timers_changed) {
            return Some(DiskIndex(0));
        }
        self.core.next_wake()
    }
}
