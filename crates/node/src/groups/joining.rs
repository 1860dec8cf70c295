//! Who may be in a group, and how members come and go: the group's task is admitted for as many as there
//! are.

use crate::admission::contract::{Joined, Seen, Share, shares_of_time};
use crate::admission::rates::RateSearch;
use crate::api::*;
use crate::core::Core;
use crate::groups::group::{Group, GroupId};
use crate::limits;
use crate::streams::stream::Stream;
use alloc::boxed::Box;
use alloc::vec::Vec;
use sched::Task;
use store::{EXTENT, VolumeId};
use units::{Direction, Duration, Instant};

impl Share {
    /// The same for a member of a group: its block is there two periods after it was full.
    pub(crate) fn of_member(&self, contract: &Contract) -> Self {
        let response = contract.period().saturating_mul(2);
        Self { response, members: self.members.max(1), ..self.clone() }
    }
}

impl Seen<'_> {
    /// What a group's request takes of the disk: so many blocks one behind the other.
    pub(crate) fn cost_of_group(&self, share: &Share, way: Direction) -> Duration {
        let len = EXTENT * u64::from(share.members);
        self.profile.worst(share.range.clone(), len, way)
    }
}

impl Core {
    /// The group that a writer under this contract would be in; none where it is not written together
    /// with others.
    pub(crate) fn group_for(
        &self,
        volume: VolumeId,
        (mode, contract): (Mode, &Contract),
        shares: &[Share],
    ) -> Option<GroupId> {
        let found = self.store.volume(volume)?;
        let placement = found.placement();
        let ([share], &[disk]) = (shares, &placement.disks[..]) else { return None };
        let queue = &self.disks[disk.as_usize()].queue;
        let is_alike = found.is_thin() && placement.run == EXTENT && contract.block == EXTENT;
        // In sweeps a request has no deadline of its own; on a bus no command is so long.
        let may = queue.tasks().sweep_rule().is_none() && queue.profile().bus.is_none();
        let may = may && share.gap == 1 && share.miss.is_none() && mode == Mode::Write;
        let id = GroupId { disk, zone: placement.zone, period: contract.period() };
        let most = self.store.stretch_len(disk, placement.zone).min(limits::GROUP_MAX);
        let may = may && is_alike && self.store.has_stretch(disk, placement.zone);
        (may && u64::from(self.groups.members(&id)) < most).then_some(id)
    }

    /// How many extents members of a group take one behind the other at the most.
    pub(crate) fn together_at(&self, id: &GroupId) -> u32 {
        self.groups.members(id).max(1)
    }

    /// One more writer is in the group, or says why not and nothing has changed.
    pub(crate) fn join_group(
        &mut self,
        now: Instant,
        id: GroupId,
        contract: &Contract,
        share: &Share,
    ) -> Result<(), Error> {
        let members = self.groups.members(&id) + 1;
        let share = Share { members, ..share.clone() };
        let (shares, mode) = (core::slice::from_ref(&share), Mode::Write);
        let before = self.groups.all.get(&id).map(|group| group.task);
        let joined = match before {
            Some(task) => {
                // What has its turn is promised to those that are in the group.
                self.change_in_turn(now, contract, (shares, mode), &[task])
            }
            None => self.join(now, contract, (shares, &[]), mode, Duration::ZERO),
        };
        match joined {
            Ok(tasks) => {
                self.note_group(now, id, contract, share, tasks[0]);
                self.groups.all.get_mut(&id).expect("just noted").members = members;
                Ok(())
            }
            // Only without admission: what there is has to suffice.
            Err(Error::Refused(_)) if !self.config.admission && before.is_some() => {
                self.groups.all.get_mut(&id).expect("it is there").members = members;
                Ok(())
            }
            Err(Error::Refused(refusal)) if self.is_logs(&refusal, &id) => {
                self.search = None;
                let (commit_interval, refusal) = (self.config.commit_interval, Box::new(refusal));
                Err(Error::GroupRefused { members, commit_interval, refusal })
            }
            Err(error) => {
                if matches!(error, Error::Refused(_)) {
                    // At another rate it would be in a group of its own.
                    let alone = [Share { members: 1, ..share }];
                    let search =
                        RateSearch::new(|disk| self.seen(disk), contract, &alone, mode, &[]);
                    self.search = Some(search);
                }
                Err(error)
            }
        }
    }

    /// What is missing is missing at a deadline of the log, before any of the group's: its command is too
    /// long for others to wait for.
    fn is_logs(&self, refusal: &Refusal, id: &GroupId) -> bool {
        let steps = self.config.commit_interval / 3;
        let own = id.period.saturating_sub(self.advance(id.disk));
        refusal.deadline.is_some_and(|(within, _)| within <= steps && within < own)
    }

    /// The group that a member is in under another contract; none for a stream that is in none.
    ///
    /// # Errors
    /// Where it would be in none.
    pub(crate) fn group_after(
        &self,
        stream: &Stream,
        contract: &Contract,
    ) -> Result<Option<GroupId>, Error> {
        let Some(before) = stream.group else { return Ok(None) };
        if contract.period() == before.period {
            return Ok(Some(before));
        }
        let shares = self.shares(stream.volume);
        let after = self.group_for(stream.volume, (stream.mode, contract), &shares);
        let rule = "one at which it is written together with others: open another stream";
        after.map(Some).ok_or(Error::Invalid { what: "rate", rule })
    }

    /// A member is in another group from now on, unless it is the same; what it has for that one is to be
    /// [said](Stream::in_group_of), and the one before may be [over](Core::end_groups). May fail half-way.
    pub(crate) fn move_member(
        &mut self,
        now: Instant,
        stream: &Stream,
        group: GroupId,
        contract: &Contract,
        share: &Share,
    ) -> Result<Vec<Joined>, Error> {
        let before = stream.group.expect("it is in one");
        if before != group {
            self.is_member_no_more(now, before, Some(stream.id));
            self.join_group(now, group, contract, share)?;
        }
        Ok(Vec::new())
    }

    /// When a group's task may release its next request.
    pub(crate) fn group_begins(&self, id: &GroupId) -> Instant {
        self.groups.all.get(id).map_or(Instant::EPOCH, |group| self.next_release(&group.task))
    }

    fn note_group(
        &mut self,
        now: Instant,
        id: GroupId,
        contract: &Contract,
        share: Share,
        task: Joined,
    ) {
        match self.groups.all.get_mut(&id) {
            Some(group) => (group.share, group.task) = (share, task),
            None => {
                let (contract, members, beyond) = (*contract, share.members, Vec::new());
                let (waiting, running, due) = (Vec::new(), Vec::new(), None);
                let group = Group { contract, members, share, task, waiting, running, beyond, due };
                self.groups.all.insert(id, group);
            }
        }
        self.time_group(now, id);
    }

    /// One writer less is in the group.
    pub(crate) fn leave_group(&mut self, now: Instant, id: GroupId, stream: Option<StreamId>) {
        self.is_member_no_more(now, id, stream);
        self.end_groups();
    }

    /// Groups without members end when their requests have ended.
    pub(crate) fn end_groups(&mut self) {
        let is_over = |(_, group): &(&GroupId, &Group)| {
            group.members == 0 && group.running.iter().all(|&command| !self.is_known(command))
        };
        let over: Vec<GroupId> =
            self.groups.all.iter().filter(is_over).map(|(id, _)| *id).collect();
        for id in over {
            let group = self.groups.all.remove(&id).expect("just found");
            self.leave(&[group.task]);
        }
    }

    /// As [`Core::leave_group`], but the group stays: nothing leaves its disk's schedule.
    fn is_member_no_more(&mut self, now: Instant, id: GroupId, stream: Option<StreamId>) {
        let Some(group) = self.groups.all.get_mut(&id) else { return };
        if let Some(stream) = stream {
            group.waiting.retain(|&other| other != stream);
        }
        group.members -= 1;
        self.fit_group(now, id);
    }

    /// Lets the group's task shrink to what its members need. A request that was made ahead of its turn was
    /// made under the larger one, and would lose its promise; and where the next one would be put
    /// off, it is tried again with that.
    pub(crate) fn fit_group(&mut self, now: Instant, id: GroupId) {
        let Some(group) = self.groups.all.get(&id) else { return };
        let (contract, members, task) = (group.contract, group.members, group.task);
        let is_early = self.disks[id.disk.as_usize()].queue.schedule().has_early(task.id);
        if members == 0 || members == group.share.members || is_early {
            return;
        }
        let share = Share { members, ..group.share.clone() };
        let shares = core::slice::from_ref(&share);
        if let Ok(tasks) = self.change_in_turn(now, &contract, (shares, Mode::Write), &[task]) {
            self.note_group(now, id, &contract, share, tasks[0]);
        }
        self.search = None;
    }

    /// What each member of a group has of its disk's time, in parts per million.
    pub(crate) fn part_of_member(&self, id: &GroupId) -> Vec<(DiskIndex, u64)> {
        let Some(group) = self.groups.all.get(id) else { return Vec::new() };
        Self::part_each(group.task.disk, &group.task.task, group.members)
    }

    /// The same of one that is to join it under this contract; none where even an idle disk could not
    /// keep that.
    pub(crate) fn part_of_new_member(
        &self,
        id: &GroupId,
        contract: &Contract,
        share: &Share,
    ) -> Option<Vec<(DiskIndex, u64)>> {
        let share = Share { members: self.groups.members(id) + 1, ..share.clone() };
        let task = self.seen(id.disk).task(contract, &share, Direction::Write).ok()?;
        Some(Self::part_each(id.disk, &task, share.members))
    }

    fn part_each(disk: DiskIndex, task: &Task, members: u32) -> Vec<(DiskIndex, u64)> {
        let whole = shares_of_time([(disk, task)].into_iter()).into_iter();
        whole.map(|(disk, ppm)| (disk, ppm.div_ceil(members.into()))).collect()
    }
}
