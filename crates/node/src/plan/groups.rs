//! Writers that would be written together (`groups/`), in a plan: a task on their disk for all of them.

use super::{Demand, Planner, Trial, Wanted, Whose};
use crate::admission::contract::{self, Share};
use crate::api::{Contract, DiskIndex, Error, Mode, Refusal, Zone};
use crate::limits;
use sched::limits::PERIOD_MAX;
use sched::{Task, TaskId, TaskSet};
use store::EXTENT;
use units::{Direction, Duration};

/// Which group.
pub(super) type Key = (DiskIndex, Zone, Duration);

/// A group of the list.
#[derive(Clone, Copy, Debug)]
pub(super) struct Planned {
    /// Which entry of the list has told of it.
    kind: usize,
    members: u32,
    task: TaskId,
}

impl Planner {
    /// The group that one of a kind would be in. (A part of a disk that is too full for that is not
    /// known here.)
    pub(super) fn group_of(
        &self,
        wanted: &Wanted,
        (mode, contract): (Mode, &Contract),
        shares: &[Share],
    ) -> Option<Key> {
        let ([share], placement) = (shares, &wanted.placement) else { return None };
        let disk = &self.disks[share.disk.as_usize()];
        let is_alike = placement.thin && placement.run <= EXTENT && contract.block == EXTENT;
        let may = disk.set.sweep_rule().is_none() && disk.profile.bus.is_none();
        let writes = mode == Mode::Write && self.is_grouped(wanted);
        // What the host takes and nobody is charged for is counted for each by itself.
        let is_in_one = is_alike && may && writes && disk.owed.is_none();
        is_in_one.then(|| (share.disk, placement.zone, contract.period()))
    }

    /// Volumes of the kind are thin, and a stream of it that writes can be written with others.
    pub(super) fn is_grouped(&self, wanted: &Wanted) -> bool {
        let is_on_one = wanted.placement.disks.len() == 1 || self.disks.len() == 1;
        let writes = matches!(wanted.what, Whose::Stream { mode: Some(Mode::Write), .. });
        wanted.placement.thin && is_on_one && writes
    }
}

impl Trial {
    /// The task of the group with one more member, and the one that it has.
    fn with_one_more(&self, demand: &Demand, key: Key) -> Result<(Task, Option<Planned>), Refusal> {
        let before = self.groups.get(&key).copied();
        let members = before.map_or(0, |group| group.members) + 1;
        let share = Share { members, ..demand.shares[0].clone() };
        let seen = self.planner.disks[share.disk.as_usize()].seen();
        let (cost, period) = (seen.cost_of_group(&share, Direction::Write), key.2.min(PERIOD_MAX));
        Ok((seen.possible(share.disk, cost, period, period)?, before))
    }

    /// Whether one more fits into its group.
    pub(super) fn fits_into_group(&self, demand: &Demand, key: Key) -> Result<(), Error> {
        let extents = self.planner.disks[key.0.as_usize()].capacity / EXTENT;
        let extents = if key.1 == Zone::Any { extents } else { extents / 2 };
        let most = store::stretch_of(extents).min(limits::GROUP_MAX);
        let full = |group: &Planned| u64::from(group.members) >= most;
        if self.groups.get(&key).is_some_and(full) {
            return Err(Error::Invalid {
                what: "plan",
                rule: "at most 128 writers of a rate together on a part of a disk",
            });
        }
        let refused = |refusal: sched::Refusal| contract::refused(key.0, &refusal);
        let (task, before) = self.with_one_more(demand, key).map_err(Error::Refused)?;
        let mut set: TaskSet = self.planner.disks[key.0.as_usize()].set.clone();
        let fits = match before {
            Some(group) => set.change(group.task, task),
            None => set.admits(&task),
        };
        fits.map_err(|refusal| Error::Refused(refused(refusal)))
    }

    /// One more is in its group, which [fits](Self::fits_into_group).
    pub(super) fn take_into_group(&mut self, at: usize, demand: &Demand, key: Key) {
        let (task, before) = self.with_one_more(demand, key).expect("it was admitted just now");
        let disk = key.0.as_usize();
        let set = &mut self.planner.disks[disk].set;
        let id = match before {
            Some(group) => set.change(group.task, task).map(|()| group.task),
            None => set.add(task),
        };
        let id = id.expect("it was admitted just now");
        let members = before.map_or(0, |group| group.members) + 1;
        let kind = before.map_or(at, |group| group.kind);
        self.groups.insert(key, Planned { kind, members, task: id });
        self.disks[disk].note_group(kind, task, before.is_some());
        self.planner.memory -= demand.window;
    }
}
