//! No contract is given or widened that does not fit with what was measured of the host.
//!
//! What the host takes between commands and to deliver answers is charged to every contract, and
//! where the open ones do not all fit with what was measured, less is charged (`jobs/gaps.rs`,
//! `jobs/delivery.rs`). As long as that is so, whoever asks for a contract, or for more than he
//! has, is admitted twice: by what is charged, and by what was measured, together with all others
//! on the disk. So what is promised too much becomes less with each contract that ends, and never
//! more. A contract that asks for no more than before is not looked at.
//!
//! When all contracts are admitted anew at other costs (a wider profile, another delivery), nobody
//! asks for more than he has: the costs of now have to be charged, whatever the host takes.

use crate::admission::contract::Joined;
use crate::admission::owed::{Owed, measured};
use crate::api::*;
use crate::core::Core;
use crate::node::Node;
use alloc::vec::Vec;
use sched::{Task, TaskSet};

impl Node {
    /// Runs what admits all contracts anew at other costs.
    pub(crate) fn recharging<T>(&mut self, admit: impl FnOnce(&mut Self) -> T) -> T {
        self.core.recharges = true;
        let admitted = admit(self);
        self.core.recharges = false;
        admitted
    }
}

impl Core {
    /// Whether the task in the place of `old` fits with what was measured, as long as that is not
    /// charged. The disk has it already: whoever asks takes it back.
    pub(crate) fn bears_host_more(
        &self,
        disk: DiskIndex,
        old: Option<Task>,
        new: &Task,
    ) -> Result<(), Error> {
        match old.is_some_and(|old| !asks_more(&old, new)) {
            true => Ok(()),
            false => self.bears_host(disk),
        }
    }

    /// The task as the disk has it now: in chunks of another length than when its contract was
    /// given, perhaps.
    pub(crate) fn task_now(&self, joined: &Joined) -> Task {
        let queue = &self.disks[joined.disk.as_usize()].queue;
        queue.tasks().get(joined.id).unwrap_or(joined.task)
    }

    /// Less is charged to the contracts on a disk than was measured.
    pub(crate) fn owes_host(&self, disk: DiskIndex) -> bool {
        let is_owed = self.disks[disk.as_usize()].gap_refused.is_some();
        (is_owed || self.delivery.refused.is_some()) && !self.recharges && self.config.admission
    }

    /// Whether all contracts on the disk fit with what was measured, as long as that is not
    /// charged.
    pub(crate) fn bears_host(&self, disk: DiskIndex) -> Result<(), Error> {
        let Some(owed) = self.owed_host(disk) else { return Ok(()) };
        let refused = owed.set.as_ref().err().map(|refusal| owed.refused(disk, refusal));
        refused.map_or(Ok(()), Err)
    }

    /// What was measured of the host, as long as it is not charged, and the contracts on the disk
    /// with it.
    pub(crate) fn owed_host(&self, disk: DiskIndex) -> Option<Owed> {
        if !self.owes_host(disk) {
            return None;
        }
        let state = &self.disks[disk.as_usize()];
        let charged = Host { gap: state.queue.gap(), delivery: self.delivery.counted };
        let gap = state.gap_refused.as_ref().map(|(gap, error)| (*gap, error));
        let delivery = self.delivery.refused.as_ref().map(|(takes, error)| (*takes, error));
        let measured = Host {
            gap: gap.map_or(charged.gap, |(gap, _)| gap.max(charged.gap)),
            delivery: delivery.map_or(charged.delivery, |(takes, _)| takes.max(charged.delivery)),
        };
        let named = |error: &Error| match error {
            Error::GapRefused { streams, volumes, .. }
            | Error::DeliveryRefused { streams, volumes, .. } => (streams.len(), volumes.len()),
            _ => (0, 0),
        };
        let all = [gap, delivery].into_iter().flatten().map(|(_, error)| named(error));
        let (streams, volumes) = all.max().unwrap_or_default();
        let host = HostCharge { measured, charged, streams, volumes };
        Some(Owed { host, set: self.with_host(disk, &host) })
    }

    /// The contracts on a disk with what was measured of the host, where they fit so.
    fn with_host(&self, disk: DiskIndex, host: &HostCharge) -> Result<TaskSet, sched::Refusal> {
        let queue = &self.disks[disk.as_usize()].queue;
        let (policy, depth, has) = (self.config.policy, queue.profile().depth(), queue.tasks());
        let set = TaskSet::new(has.reserve()).with_gap(host.measured.gap);
        let has_online_slack = policy.start().has_online_slack();
        let set = set.with_admission(policy.admission, depth);
        let mut set = set.with_online_slack(has_online_slack);
        let mut tasks = Vec::new();
        for (_, task) in has.iter() {
            tasks.push(measured(host, &task, has)?);
        }
        set.add_all(&tasks)?;
        Ok(set)
    }
}

/// Whether a task may take more of any time than the one in whose place it is.
fn asks_more(old: &Task, new: &Task) -> bool {
    new.cost > old.cost
        || new.commands > old.commands
        || new.parts > old.parts
        || new.command > old.command
        || new.resume > old.resume
        || new.period < old.period
        || new.deadline < old.deadline
        || (new.sweep, new.odds) != (old.sweep, old.odds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sched::Sweep;
    use units::Duration;

    /// More of any one thing is more, however much less there is of the others.
    #[test]
    fn whoever_asks_for_more_of_one_thing_asks_for_more() {
        let ms = Duration::from_millis;
        let task = |period, deadline, cost, (command, commands, resume)| {
            Task::new(ms(period), ms(deadline), ms(cost)).in_chunks(
                ms(command),
                commands,
                ms(resume),
            )
        };
        let old = task(100, 80, 40, (10, 4, 5));
        for less in [
            old,
            task(101, 80, 40, (10, 4, 5)),
            task(100, 81, 40, (10, 4, 5)),
            task(101, 81, 39, (9, 3, 4)),
        ] {
            assert!(!asks_more(&old, &less), "{less:?}");
        }
        for more in [
            task(99, 90, 20, (5, 2, 2)),
            task(110, 79, 20, (5, 2, 2)),
            task(110, 90, 41, (5, 2, 2)),
            task(110, 90, 20, (11, 2, 2)),
            task(110, 90, 20, (5, 5, 2)),
            task(110, 90, 20, (10, 2, 6)),
            old.in_sweeps(Sweep::default()),
            Task { parts: 2, ..old },
        ] {
            assert!(asks_more(&old, &more), "{more:?}");
        }
    }
}
