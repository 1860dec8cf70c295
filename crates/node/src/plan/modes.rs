//! The same list under other policies: what a pool would take by bounds, by sweeps of several
//! cycles, at which price in memory and in time until a stream begins.

#![allow(missing_docs)] // a field that is named for what it holds is not explained twice

use super::{PlanDisk, PlanWork, Planner, Wanted, Whose};
use crate::admission::block;
use crate::admission::costs::Costs;
use crate::api::{Error, Mode, Policy};
use alloc::vec::Vec;
use store::{EXTENT, RUN_MAX};
use units::{Bytes, Duration};

/// What would become of a list under a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModePlan {
    pub policy: Policy,
    /// The blocks of the list's entries, those that the pool would choose; none for what is no
    /// stream.
    pub blocks: Vec<Option<Bytes>>,
    /// Of all streams asked, how many fit in the list's order.
    pub admitted: u64,
    pub asked: u64,
    /// Of the disk that is promised the most.
    pub utilisation_ppm: u64,
    /// Of all windows that fit.
    pub windows: Bytes,
    /// From when the last of the streams that fit is opened until it has its window, and plays,
    /// at the latest.
    pub begins: Duration,
}

impl Planner {
    /// What would become of the list under each of these policies, in the blocks that a pool
    /// under it chooses for who names none, on volumes in runs of these.
    ///
    /// # Errors
    /// Where an entry makes no sense, whatever the disks.
    pub fn modes(&self, list: &[Wanted], policies: &[Policy]) -> Result<Vec<ModePlan>, Error> {
        self.modes_within(list, policies, &PlanWork::whole())
    }

    /// The same within some work.
    ///
    /// # Errors
    /// As [`Planner::modes`], and where the work is over.
    pub fn modes_within(
        &self,
        list: &[Wanted],
        policies: &[Policy],
        work: &PlanWork,
    ) -> Result<Vec<ModePlan>, Error> {
        policies.iter().map(|&policy| self.mode(list, policy, work)).collect()
    }

    fn mode(&self, list: &[Wanted], policy: Policy, work: &PlanWork) -> Result<ModePlan, Error> {
        let planner = self.under(policy);
        let list =
            list.iter().map(|one| planner.in_own_blocks(one)).collect::<Result<Vec<_>, _>>()?;
        let trial = planner.trial(&list, work)?;
        let begins = list.iter().zip(&trial.kinds).filter(|(_, kind)| kind.admitted > 0);
        let begins = begins.filter_map(|(one, kind)| match &one.what {
            Whose::Stream { contract, .. } => Some(contract.rate.time_for(kind.window)),
            Whose::Service(_) => None,
        });
        let block = |one: &Wanted| match &one.what {
            Whose::Stream { contract, .. } => Some(contract.block),
            Whose::Service(_) => None,
        };
        let sets = trial.planner.disks.iter().map(|disk| &disk.set);
        Ok(ModePlan {
            policy,
            blocks: list.iter().map(block).collect(),
            admitted: trial.kinds.iter().map(|kind| kind.admitted).sum(),
            asked: list.iter().map(|one| one.count).sum(),
            utilisation_ppm: sets.map(|set| set.utilisation().ppm()).max().unwrap_or(0),
            windows: trial.windows(),
            begins: begins.max().unwrap_or_default(),
        })
    }

    /// The same disks with the same promises, under another policy.
    fn under(&self, policy: Policy) -> Self {
        let mut planner = self.clone();
        planner.config.policy = policy;
        for disk in &mut planner.disks {
            let PlanDisk { profile, capacity, set, .. } = &*disk;
            let costs = Costs::new(&planner.config, profile, *capacity, set.gap());
            let mut other = Self::set(&planner.config, &costs, profile, set.gap());
            let owed = disk.with(other.clone()).ok().and_then(|disk| disk.owed);
            for (_, task) in set.iter() {
                other.add_unchecked(task);
            }
            (disk.set, disk.owed) = (other, owed);
        }
        planner
    }

    /// The entry in the block that the pool would choose.
    fn in_own_blocks(&self, wanted: &Wanted) -> Result<Wanted, Error> {
        let mut wanted = wanted.clone();
        if self.is_grouped(&wanted)
            && let Whose::Stream { contract, .. } = &mut wanted.what
        {
            (contract.block, wanted.placement.run) = (EXTENT, EXTENT);
            return Ok(wanted);
        }
        // The longest runs there are, so that no block is ruled out.
        wanted.placement.run = wanted.placement.run.max(RUN_MAX);
        let shares = self.shares_of(&wanted.placement)?;
        if let Whose::Stream { mode, contract } = &mut wanted.what {
            let seen = |disk: crate::api::DiskIndex| self.disks[disk.as_usize()].seen();
            let asked = block::Asked {
                rate: contract.rate,
                mode: mode.unwrap_or(Mode::Read),
                shares: &shares,
                late: self.config.host_latency,
                memory: self.memory,
            };
            contract.block = block::chosen(&asked, seen);
            wanted.placement.run = contract.block.max(EXTENT);
        }
        Ok(wanted)
    }

    /// How often a block of this length comes to a disk for each entry of the list that is a
    /// stream's: cycles of sweeps of which one has just room for one.
    pub fn cycles(&self, list: &[Wanted], blocks: &[Bytes]) -> Vec<Duration> {
        let mut cycles = Vec::new();
        for one in list {
            let Whose::Stream { contract, .. } = &one.what else { continue };
            let Ok(shares) = self.shares_of(&one.placement) else { continue };
            let gap = shares.iter().map(|share| share.gap).max().unwrap_or(1);
            cycles.extend(blocks.iter().map(|&block| contract.rate.time_for(block * gap)));
        }
        cycles
    }

    /// The policy that the pool follows.
    pub fn policy(&self) -> Policy {
        self.config.policy
    }
}
