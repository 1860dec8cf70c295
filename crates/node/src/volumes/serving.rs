//! A volume is served in another way, also what waits (`services.rs`).

use crate::admission::contract::{self, Joined};
use crate::admission::rates::RateSearch;
use crate::api::*;
use crate::best_effort::BestEffort;
use crate::core::Core;
use crate::memory::line::Rank;
use crate::memory::reserve::Need;
use crate::volumes::service;
use crate::volumes::services::{Holder, Piece, Served};
use crate::volumes::slack::in_slack;
use crate::work::Owner;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use sched::{Class, Contract as Promise, Flow};
use store::VolumeId;
use units::{Bytes, Direction, Duration, Instant, Lba};

/// On each disk requests that wait, by their keys, and what they cost by now.
type Costs = BTreeMap<DiskIndex, Vec<(u64, Duration)>>;

impl Core {
    /// The class of a request of `volume` that no stream carries and that needs no
    /// order: a transfer of `len` on `disk`, whose handle may state a priority.
    pub(crate) fn class_of(
        &self,
        holder: Holder,
        disk: DiskIndex,
        at: Lba,
        len: Bytes,
        direction: Direction,
        stated: Option<Priority>,
    ) -> Class {
        let volume = holder.volume;
        let Some(served) = self.services.0.get(&holder) else {
            return in_slack(stated.unwrap_or_default(), volume);
        };
        if let Some(priority) = stated.and_then(|stated| served.service.granted(stated)) {
            return in_slack(priority, volume);
        }
        let task = served.tasks.iter().find(|joined| joined.disk == disk);
        match (&served.service, task) {
            (Service::BestEffort(priority), _) => in_slack(*priority, volume),
            (Service::Latency { len: most, .. }, Some(joined)) if len <= *most => {
                Class::RealTime(joined.id)
            }
            (Service::Rate { .. }, Some(joined)) => {
                let profile = self.disks[disk.as_usize()].queue.profile();
                let end = Lba::containing(at.offset() + len.round_up(crate::limits::BLOCK_MIN));
                let cost = profile.worst(at..end, len, direction).max(Duration::from_nanos(1));
                let (task, flow) = (joined.id, Flow(volume.0));
                Class::Server { task, cost, synchronous: true, flow, ordered: false }
            }
            _ => in_slack(Priority::Interactive, volume),
        }
    }

    /// A command without a contract is waited for by somebody else on this volume: where
    /// it waits itself, it does so as one that somebody waits for.
    pub(crate) fn lift(&mut self, now: Instant, id: CommandId, volume: VolumeId) {
        let Some(class) = self.waits_as(id) else { return };
        if matches!(class, Class::Background | Class::BestEffort { synchronous: false, .. }) {
            let lifted = in_slack(Priority::Interactive, volume);
            self.queue_of_mut(id).upgrade(now, id.0, lifted);
        }
    }

    /// Who an operation that needs memory is, of a volume and its handle.
    pub(crate) fn rank_of(&self, holder: Holder, stated: Option<Priority>) -> Rank {
        let Some(served) = self.services.0.get(&holder) else {
            return stated.unwrap_or_default().into();
        };
        match (stated.and_then(|stated| served.service.granted(stated)), served.service) {
            (Some(priority), _) | (None, Service::BestEffort(priority)) => priority.into(),
            (None, Service::Rate { .. } | Service::Latency { .. }) => Rank::Contract,
        }
    }

    /// Serves a volume, or a handle, this way from now on, also what waits for a disk; or says why not and
    /// changes nothing. What waits for memory is to be [asked for anew](BestEffort::ask_anew).
    pub(crate) fn serve(
        &mut self,
        now: Instant,
        holder: Holder,
        service: Service,
        best_effort: &BestEffort,
    ) -> Result<(), Error> {
        service.check()?;
        let volume = holder.volume;
        let waiting = self.waiting(|owner| match owner {
            Owner::Piece { operation, .. } => {
                best_effort.is_of(*operation, holder).then(|| best_effort.stated(*operation))
            }
            _ => None,
        });
        let before = self.services.0.get(&holder).cloned().unwrap_or_default();
        let concerned: BTreeSet<DiskIndex> = self
            .shares(volume)
            .iter()
            .map(|share| share.disk)
            .chain(before.tasks.iter().map(|joined| joined.disk))
            .chain(waiting.iter().map(|piece| piece.disk))
            .collect();
        // What is larger than the new contract allows for must not come under it.
        let keeps = |len: Bytes| match service {
            Service::BestEffort(_) => false,
            Service::Rate { block: most, .. } | Service::Latency { len: most, .. } => len <= most,
        };
        let tasks = self.attempt::<_, Error>(concerned.iter().copied(), |core| {
            for piece in waiting.iter().filter(|piece| before.tasks.is_empty() || !keeps(piece.len))
            {
                let class = in_slack(Priority::Interactive, volume);
                core.queue_of_mut(piece.id).upgrade(now, piece.id.0, class);
            }
            let costs = core.costs_of(holder, &waiting);
            let tasks = core.promise(now, volume, &service, (&before.tasks, &costs))?;
            let shares = core.shares(volume);
            let needs: Vec<Need> =
                shares.iter().filter_map(|share| service::need(&service, share)).collect();
            core.reserves.set(&mut core.arena, holder, &needs)?;
            Ok(tasks)
        });
        let tasks = tasks.inspect_err(|error| {
            if matches!(error, Error::Refused(_)) {
                let shares = self.shares(volume);
                let seen = |disk| self.seen(disk);
                let asked = (&service, self.arena.free_for_services());
                let search = RateSearch::of_service(seen, asked, &shares, &before.tasks);
                self.search = Some(search);
            }
        })?;
        // The clock of a contract that stays goes on.
        let turns = if before.service == service { before.turns } else { BTreeMap::new() };
        let (joined, account) = (tasks.clone(), before.account);
        self.services.0.insert(holder, Served { service, tasks, account, turns });
        for piece in waiting {
            self.put_in_class(now, holder, &piece);
        }
        // Where a disk is deep in other work, a contract begins when that is done.
        for joined in &joined {
            let next = self.next_release(joined);
            self.services.begin_turns(holder, joined.disk, next);
        }
        for disk in concerned {
            self.relax_chunks(disk);
            self.disk(disk).wake();
        }
        Ok(())
    }

    /// What requests that wait for a holder's rate cost by now where that is something else than
    /// when they came: the profile of their disk is another one.
    fn costs_of(&self, holder: Holder, waiting: &[Piece]) -> Costs {
        let mut costs = Costs::new();
        for piece in waiting {
            let Piece { disk, at, len, direction, stated, .. } = *piece;
            let was = self.waits_as(piece.id);
            let is = self.class_of(holder, disk, at, len, direction, stated);
            if let Class::Server { task, cost, .. } = is
                && was != Some(is)
                && was.and_then(|was| was.task()) == Some(task)
            {
                costs.entry(disk).or_default().push((piece.id.0, cost));
            }
        }
        costs
    }

    /// Joins, changes or leaves on each disk; may fail half-way. `before`: the tasks that there
    /// are, and what waits for them at other costs.
    fn promise(
        &mut self,
        now: Instant,
        volume: VolumeId,
        service: &Service,
        (before, costs): (&[Joined], &Costs),
    ) -> Result<Vec<Joined>, Error> {
        let mut tasks = Vec::new();
        let mut left: Vec<Joined> = before.to_vec();
        for share in self.shares(volume) {
            let wanted = self.seen(share.disk).service(service, &share).map_err(Error::Refused)?;
            let old = left.iter().position(|joined| joined.disk == share.disk);
            let old = old.map(|at| left.swap_remove(at));
            let promise = wanted.map(|task| match service {
                Service::Rate { .. } => Promise::Server(task),
                _ => Promise::Stream(task),
            });
            let refused = |refusal| Error::Refused(contract::refused(share.disk, &refusal));
            let is_latency = matches!(service, Service::Latency { .. });
            let queue = &mut self.disk(share.disk).queue;
            let id = match (old, promise) {
                (None, None) => continue,
                (Some(old), None) => {
                    let dropped = queue.leave(old.id);
                    assert!(dropped.is_empty(), "what waited has another class by now");
                    continue;
                }
                (Some(old), Some(promise)) => {
                    let costs = costs.get(&share.disk).map_or(&[][..], Vec::as_slice);
                    let task = wanted.as_ref().expect("a promise has one");
                    self.admit_on(now, share.disk, is_latency, |core| {
                        let queue = &mut core.disk(share.disk).queue;
                        queue.change_charging(now, old.id, promise, costs).map_err(refused)?;
                        core.bears_host_more(share.disk, Some(old.task), task)
                    })?;
                    old.id
                }
                (None, Some(promise)) => self.admit_on(now, share.disk, is_latency, |core| {
                    let id = core.disk(share.disk).queue.join(now, promise).map_err(refused)?;
                    core.bears_host(share.disk)?;
                    Ok(id)
                })?,
            };
            tasks.push(Joined { disk: share.disk, id, task: wanted.expect("a promise has one") });
        }
        // Disks that the volume has no extent on any more.
        self.leave(&left);
        Ok(tasks)
    }

    /// Gives a waiting request the class that it would have if it came now.
    fn put_in_class(&mut self, now: Instant, holder: Holder, piece: &Piece) {
        let Piece { disk, at, len, direction, stated, .. } = *piece;
        let class = self.class_of(holder, disk, at, len, direction, stated);
        let id = piece.id;
        if self.waits_as(id) != Some(class) {
            self.queue_of_mut(id).upgrade(now, id.0, class);
        }
    }

    /// The volume is gone, or the handle is closed.
    pub(crate) fn serve_no_more(&mut self, holder: Holder) {
        if let Some(served) = self.services.0.remove(&holder) {
            self.leave(&served.tasks);
            for joined in &served.tasks {
                self.relax_chunks(joined.disk);
            }
            let ended = self.reserves.set(&mut self.arena, holder, &[]);
            ended.expect("to end takes no memory");
        }
    }

    /// The volume and the handles on it whose service is a contract.
    pub(crate) fn under_contract(&self, volume: VolumeId) -> Vec<Holder> {
        let mut all = self.services.on(volume);
        all.retain(|holder| !self.services.0[holder].tasks.is_empty());
        all
    }
}
