//! Another policy for a pool that serves.
//!
//! Every contract is admitted again, by the analysis of the new policy, on all disks or on
//! none, and then the pool keeps which one it is. Streams have windows for the time after which
//! their blocks are there: to sweeps, from them, and to those of another cycle a pool goes only
//! when none is open. As with a new profile, all streams and volumes are looked at where some do not fit.

use crate::admission::contract::refused;
use crate::api::*;
use crate::node::Node;
use crate::volumes::services::Holder;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use sched::{Admission, TaskSet};
use store::KeptPolicy;
use units::{Duration, Instant};

/// Who does not fit.
pub(crate) type Names = (Vec<StreamId>, Vec<String>);

/// A policy as a pool keeps it: with the settings that are not as by default.
pub fn kept_policy(policy: Policy) -> KeptPolicy {
    let settings = policy.chosen().map(|(setting, value)| (setting.name.into(), value));
    KeptPolicy { name: policy.name.into(), settings: settings.collect() }
}

impl Node {
    /// [`Op::PolicySet`]. True where the pool keeps something else from now on.
    pub(crate) fn set_and_keep_policy(
        &mut self,
        now: Instant,
        policy: Policy,
        keep: bool,
    ) -> Result<bool, Error> {
        let kept = keep.then(|| kept_policy(policy));
        let has_news = self.core.store.policy() != kept.as_ref();
        if has_news {
            self.core.store.check_policy(kept.as_ref())?;
        }
        self.set_policy(now, policy)?;
        if has_news {
            self.core.store.set_policy(kept).expect("checked above");
        }
        Ok(has_news)
    }

    fn set_policy(&mut self, now: Instant, policy: Policy) -> Result<(), Error> {
        if policy == self.core.config.policy {
            return Ok(());
        }
        let refused_by = |(streams, volumes): Names, refusal: Option<Refusal>| {
            let refusal = refusal.map(Box::new);
            let policy = Box::new(policy);
            Error::PolicyRefused { policy, streams, volumes, refusal }
        };
        if self.core.config.admission && !policy.keeps_contracts() {
            let all = self.contracts();
            if all != Names::default() {
                return Err(refused_by(all, None));
            }
        }
        if !policy.is(Policy::SLACK) {
            let at_odds = self.streams.iter().filter(|stream| stream.odds.is_some());
            let streams: Vec<_> = at_odds.map(|stream| stream.id).collect();
            if !streams.is_empty() {
                return Err(refused_by((streams, Vec::new()), None));
            }
        }
        // Streams have windows for the time after which the old policy had their blocks there.
        let response = |policy: Policy| match policy.admission {
            Admission::Sweeps(rule) => rule.response(),
            _ => Duration::ZERO,
        };
        if response(policy) != response(self.core.config.policy) {
            let streams: Vec<_> = self.streams.iter().map(|stream| stream.id).collect();
            if !streams.is_empty() {
                return Err(refused_by((streams, Vec::new()), None));
            }
        }
        let disks = (0..self.core.disks.len() as u16).map(DiskIndex);
        let set = self.core.attempt(disks.clone(), |core| {
            disks.clone().try_for_each(|disk| {
                let changed = core.disk(disk).queue.change_policy(now, policy);
                changed.map_err(|refusal| (disk, refusal))
            })
        });
        match set {
            Ok(()) => {
                self.core.config.policy = policy;
                self.core.disks.iter_mut().for_each(crate::core::Disk::wake);
                self.given_back(now);
                Ok(())
            }
            // It is what waits now, not the contracts.
            Err((_, refusal)) if refusal.undecided => Err(refused_by(Names::default(), None)),
            Err((disk, refusal)) => {
                let gap = self.core.disks[disk.as_usize()].queue.gap();
                let names = self.not_fitting(disk, policy, gap);
                Err(refused_by(names, Some(refused(disk, &refusal))))
            }
        }
    }

    /// The streams, and the volumes with a contract.
    fn contracts(&self) -> Names {
        let streams = self.streams.iter().map(|stream| stream.id).collect();
        let mut volumes: Vec<_> = self.served().map(|(_, name)| name).collect();
        volumes.dedup();
        (streams, volumes)
    }

    /// What is under contract of a volume, or of a handle on one, with the volume's name.
    fn served(&self) -> impl Iterator<Item = (Holder, String)> + '_ {
        self.core.store.volumes().flat_map(|volume| {
            let holders = self.core.under_contract(volume.id()).into_iter();
            holders.map(|holder| (holder, volume.name().into()))
        })
    }

    /// Of the contracts on a disk, in the order in which they were made, those that do not fit
    /// beside the log and the ones before them under this policy and with this gap.
    pub(crate) fn not_fitting(&self, disk: DiskIndex, policy: Policy, gap: Duration) -> Names {
        let queue = &self.core.disks[disk.as_usize()].queue;
        let (tasks, depth) = (queue.tasks(), queue.profile().depth());
        let set = TaskSet::new(tasks.reserve()).with_gap(gap);
        let has_online_slack = policy.start().has_online_slack();
        let mut set =
            set.with_admission(policy.admission, depth).with_online_slack(has_online_slack);
        let mut fits = |task| set.add(task).is_ok();
        let log = self.core.disks[disk.as_usize()].log.ids().filter_map(|id| tasks.get(id));
        log.for_each(|task| {
            fits(task);
        });
        let mut streams = Vec::new();
        for stream in self.streams.iter() {
            let theirs = stream.tasks.iter().filter(|own| own.disk == disk);
            // All are tried: those that fit are in the way of the streams behind.
            if theirs.filter(|own| !fits(self.core.task_now(own))).count() > 0 {
                streams.push(stream.id);
            }
        }
        for group in self.core.groups.all.values().filter(|group| group.task.disk == disk) {
            if !fits(self.core.task_now(&group.task)) {
                streams.extend(self.members_of(group));
            }
        }
        let mut volumes = Vec::new();
        for (holder, name) in self.served() {
            let (service, _) = self.core.services.of(holder);
            let shares = self.core.shares(holder.volume);
            let share = shares.iter().find(|share| share.disk == disk);
            let task =
                share.and_then(|share| self.core.seen(disk).service(&service, share).ok()?);
            if task.is_some_and(|task| !fits(task)) {
                volumes.push(name);
            }
        }
        volumes.dedup();
        (streams, volumes)
    }
}
