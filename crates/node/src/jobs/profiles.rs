//! Another profile for a disk that is in use.
//!
//! Invariant: a profile is used only when every contract that is open, and the log's own,
//! is admitted with the costs that it states; else nothing changes, and those that would
//! not fit are named. The node as it was is kept
//! until all is admitted, and comes back where it is not.

use crate::admission::contract::refused;
use crate::admission::costs::{Costs, piece_within};
use crate::api::*;
use crate::groups::group::Group;
use crate::node::Node;
use crate::streams::stream::Stream;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use disk::{BusPlan, BusShare, Profile};
use sched::{Task, TaskId};
use store::EXTENT;
use units::{Direction, Instant};

/// A task and what it is to become.
type Change = (TaskId, Task, Task, Option<StreamId>);

impl Node {
    /// Uses and stores another profile for a disk. One of another depth is stored only:
    /// a device is opened for a depth.
    pub(crate) fn set_profile(
        &mut self,
        now: Instant,
        disk: DiskIndex,
        profile: &Profile,
    ) -> Result<(), Error> {
        let disks = self.core.disks.len() as u16;
        let state = self.core.disks.get(disk.as_usize());
        let state = state.ok_or(Error::NoSuchDisk { disk, disks })?;
        let device = state.queue.capacity();
        if profile.capacity() < device || profile.capacity() / EXTENT != device / EXTENT {
            let rule = "it is of a disk of another size; give one that was measured on this disk";
            return Err(Error::Invalid { what: "profile", rule });
        }
        let profile = &on_its_bus(profile, state.queue.profile());
        let others = self.core.disks.iter().map(|other| match other.index == disk {
            true => profile,
            false => other.queue.profile(),
        });
        if disk::check_buses(others).is_err() {
            let rule = "its [bus] has to be as the pool's other disks describe theirs, with all of \
                        the bus's disks and a `depth` as large as the largest of theirs";
            return Err(Error::Invalid { what: "profile", rule });
        }
        let state = &self.core.disks[disk.as_usize()];
        let text = profile.to_toml().into_bytes();
        let depths = |of: &Profile| (of.depth(), of.queue());
        let same_depth = depths(state.queue.profile()) == depths(profile);
        self.core.store.check_profile(&text)?;
        if same_depth {
            // The store is shared with the copy: nothing of it changes meanwhile.
            let before = self.clone();
            if let Err(mut error) = self.use_profile(now, disk, profile) {
                self.core.name_bus(&mut error); // of the profile that was tried
                self.restore(before);
                return Err(error);
            }
            drop(before);
            self.core.log_is_recounted();
        }
        self.core.store.set_profile(disk, text).expect("checked above");
        self.core.disk(disk).profile_for_next_start = !same_depth;
        self.given_back(now);
        Ok(())
    }

    /// [`Op::BusSet`].
    pub(crate) fn set_bus(
        &mut self,
        now: Instant,
        on_it: &[DiskIndex],
        bus: Option<&BusPlan>,
    ) -> Result<(), Error> {
        let disks = self.core.disks.len() as u16;
        if let Some(&disk) = on_it.iter().find(|disk| disk.0 >= disks) {
            return Err(Error::NoSuchDisk { disk, disks });
        }
        let is_on_it = |state: &crate::core::Disk| on_it.contains(&state.index);
        if self.core.disks.iter().any(|state| is_on_it(state) && state.profile_for_next_start) {
            let rule = "a disk on it has a profile that is used from the next start on: start the \
                        daemon again first";
            return Err(Error::Invalid { what: "bus", rule });
        }
        let depths = self.core.disks.iter().filter(|state| is_on_it(state));
        let depth = depths.map(|state| state.queue.profile().depth()).max().unwrap_or(1);
        let plan = bus.map(|bus| BusPlan { depth: bus.depth.max(depth), ..bus.clone() });
        let wrong = |_| {
            let rule = "it has to be as the pool's other disks describe it: name all of its disks \
                        at once, and take those off it that are on another one";
            Error::Invalid { what: "bus", rule }
        };
        let share = plan.map(BusShare::new).transpose().map_err(|error| wrong((0, error)))?;
        let profiles: Vec<Profile> = self
            .core
            .disks
            .iter()
            .map(|state| {
                let before = state.queue.profile().clone();
                if is_on_it(state) { Profile { bus: share.clone(), ..before } } else { before }
            })
            .collect();
        disk::check_buses(profiles.iter()).map_err(wrong)?;
        let text = |disk: DiskIndex| profiles[disk.as_usize()].to_toml().into_bytes();
        on_it.iter().try_for_each(|&disk| self.core.store.check_profile(&text(disk)))?;
        // The store is shared with the copy: nothing of it changes meanwhile.
        let before = self.clone();
        let mut each = on_it.iter();
        let used =
            each.try_for_each(|&disk| self.use_profile(now, disk, &profiles[disk.as_usize()]));
        if let Err(mut error) = used {
            self.core.name_bus(&mut error); // the one that was tried
            self.restore(before);
            return Err(error);
        }
        drop(before);
        self.core.log_is_recounted();
        for &disk in on_it {
            self.core.store.set_profile(disk, text(disk)).expect("checked above");
        }
        self.given_back(now);
        Ok(())
    }

    /// Becomes as a copy was, but for where the queues of the disks are.
    pub(crate) fn restore(&mut self, mut copy: Self) {
        let handles = core::mem::take(&mut self.core.disks).into_iter();
        for (disk, now) in copy.core.disks.iter_mut().zip(handles.map(|disk| disk.queue)) {
            let before = core::mem::replace(&mut disk.queue, now);
            disk.queue.set_to(before);
        }
        *self = copy;
    }

    /// May fail half-way.
    fn use_profile(
        &mut self,
        now: Instant,
        disk: DiskIndex,
        profile: &Profile,
    ) -> Result<(), Error> {
        let core = &mut self.core;
        let queue = &core.disks[disk.as_usize()].queue;
        let capacity = queue.capacity();
        let costs = Costs::new(&core.config, profile, capacity, queue.gap());
        let least = costs.commit_interval_under(core.config.policy, profile.depth());
        core.config.commit_interval = core.config.commit_interval.max(least);
        let reserve = core.disks[disk.as_usize()].queue.tasks().reserve();
        let state = core.disk(disk);
        // The slack that admission leaves is fixed while the pool is served: pieces of best
        // effort that cost more now are cut smaller.
        let most = state.queue.chunks().map_or(costs.piece, |chunks| chunks.len.min(costs.piece));
        state.set_piece(piece_within(profile, capacity, most, reserve).0);
        state.is_slow = costs.is_slow;
        state.queue.use_profile(profile.clone(), costs.advance, costs.best_effort);
        self.recharging(|node| {
            node.admit_all(now, disk)?;
            node.recount_log(now)
        })
    }

    /// Where commits have come to be further apart, records are longer: what the writers that are
    /// open add to them is counted anew, and the log's contracts grow with it. What the store
    /// has to know of it comes [later](crate::core::Core::log_is_recounted).
    pub(crate) fn recount_log(&mut self, now: Instant) -> Result<(), Error> {
        let core = &mut self.core;
        for stream in self.streams.iter().filter(|stream| stream.mode.writes()) {
            core.log_notes(stream.volume, &stream.contract, stream.mode);
        }
        core.log_holds(now).map_err(|refusal| {
            let (streams, volumes) = (Vec::new(), Vec::new());
            Error::ProfileRefused { streams, volumes, refusal: Box::new(refusal) }
        })
    }

    /// Puts every contract on the disk in the place of itself at the costs of now.
    pub(crate) fn admit_all(&mut self, now: Instant, disk: DiskIndex) -> Result<(), Error> {
        let (mut first, mut streams, mut volumes) = (None, Vec::new(), Vec::new());
        let mut changes = self.log_changes(disk).unwrap_or_else(|refusal| {
            first = Some(refusal);
            Vec::new()
        });
        for stream in self.streams.iter() {
            let ways = stream.mode.directions();
            let on_disk = stream.tasks.iter().enumerate().filter(|(_, own)| own.disk == disk);
            for ((at, joined), &way) in on_disk.zip(ways) {
                let shares = stream.shares(&self.core);
                let share = shares.iter().find(|share| share.disk == disk);
                let share = share.expect("a stream has a task on each of its disks");
                let wanted = self.core.seen(disk).task(&stream.contract, share, way);
                match wanted {
                    Ok(task) => {
                        changes.push((joined.id, stream.tasks[at].task, task, Some(stream.id)))
                    }
                    Err(refusal) => {
                        first.get_or_insert(refusal);
                        streams.push(stream.id);
                    }
                }
            }
        }
        for group in self.core.groups.all.values().filter(|group| group.task.disk == disk) {
            match self.core.seen(disk).task(&group.contract, &group.share, Direction::Write) {
                Ok(task) => changes.push((group.task.id, group.task.task, task, None)),
                Err(refusal) => {
                    first.get_or_insert(refusal);
                    streams.extend(self.members_of(group));
                }
            }
        }
        // What becomes cheaper first, so that there is room for what does not.
        changes.sort_by_key(|(_, old, new, _)| new.cost > old.cost || new.deadline < old.deadline);
        changes.retain(|(_, old, new, _)| old != new);
        for (id, _, new, stream) in changes {
            let turn = self.core.disks[disk.as_usize()].queue.schedule().next_release(id);
            let changed = self.core.disk(disk).queue.change(now, id, new);
            let changed = changed.map_err(|refusal| refused(disk, &refusal));
            // Nobody has asked for it whose next request it could put off.
            let changed =
                changed.and_then(|()| match self.core.is_put_off((disk, id), turn, now) {
                    true => Err(self.core.undecided(disk)),
                    false => Ok(()),
                });
            match changed {
                Ok(()) => self.note_task((disk, id), stream, new),
                Err(refusal) => {
                    first.get_or_insert(refusal);
                    streams.extend(stream);
                    let mut groups = self.core.groups.all.values();
                    let of_it = groups.find(|group| group.task.id == id && group.task.disk == disk);
                    streams.extend(of_it.into_iter().flat_map(|group| self.members_of(group)));
                }
            }
        }
        let ids: Vec<StreamId> = self.streams.iter().map(|stream| stream.id).collect();
        for id in ids {
            if let Some(stream) = self.streams.get_mut(id) {
                stream.find_in_slack(&mut self.core, now);
            }
        }
        let all = self.core.store.volumes().map(|volume| volume.id());
        let served: Vec<_> =
            all.filter(|&volume| !self.core.under_contract(volume).is_empty()).collect();
        for volume in served {
            if let Err(Error::Refused(refusal)) = self.serve_again(now, volume) {
                first.get_or_insert(refusal);
                let name = self.core.store.volume(volume).map(|volume| volume.name().into());
                volumes.extend(name);
            }
        }
        match first {
            Some(refusal) if self.core.config.admission => {
                streams.dedup();
                Err(Error::ProfileRefused { streams, volumes, refusal: Box::new(refusal) })
            }
            _ => Ok(()),
        }
    }

    fn log_changes(&self, disk: DiskIndex) -> Result<Vec<Change>, Refusal> {
        let state = &self.core.disks[disk.as_usize()];
        let change = |(id, new): (TaskId, Task)| {
            let old = state.queue.tasks().get(id).expect("the log's tasks stay");
            (id, old, new, None)
        };
        Ok(self.core.log_wanted(disk)?.into_iter().map(change).collect())
    }

    /// The streams in a group.
    pub(crate) fn members_of(&self, group: &Group) -> Vec<StreamId> {
        let (on, core) = ((group.task.disk, group.task.id), &self.core);
        let task =
            |id| core.groups.all.get(&id).map(|group: &Group| (group.task.disk, group.task.id));
        let is_in = |stream: &&Stream| stream.group.and_then(task) == Some(on);
        self.streams.iter().filter(is_in).map(|stream| stream.id).collect()
    }

    fn note_task(&mut self, on: (DiskIndex, TaskId), stream: Option<StreamId>, task: Task) {
        let mut groups = self.core.groups.all.values_mut();
        if let Some(group) = groups.find(|group| (group.task.disk, group.task.id) == on) {
            group.task.task = task;
        }
        let Some(stream) = stream.and_then(|id| self.streams.get_mut(id)) else { return };
        for joined in stream.tasks.iter_mut().filter(|joined| (joined.disk, joined.id) == on) {
            joined.task = task;
        }
    }
}

/// A profile as it was measured says nothing of a bus: the disk stays on the one that it is on.
fn on_its_bus(profile: &Profile, before: &Profile) -> Profile {
    let bus = profile.bus.clone().or_else(|| before.bus.clone());
    Profile { bus, ..profile.clone() }
}

/// Names of what would not fit, for people.
pub(crate) fn listed(streams: &[StreamId], volumes: &[String]) -> String {
    let streams = streams.iter().map(|stream| alloc::format!("stream {}", stream.0));
    let volumes = volumes.iter().map(|volume| alloc::format!("the service of volume {volume}"));
    let all: Vec<String> = streams.chain(volumes).collect();
    match all.as_slice() {
        [] => String::from("the metadata log"),
        all => all.join(", "),
    }
}
