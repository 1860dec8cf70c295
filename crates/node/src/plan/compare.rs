//! The same list in other ways: other blocks, other places, other disks.

#![allow(missing_docs)] // a field that is named for what it holds is not explained twice

use super::{PlanDisk, PlanWork, Planner, Trial, Wanted, Whose, estimate};
use crate::admission::costs::Costs;
use crate::api::{DiskIndex, Error, Placement, Zone};
use alloc::vec::Vec;
use sched::TaskSet;
use store::{EXTENT, RUN_MAX};
use units::{Bytes, Duration, Rate};

/// How a list is varied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variation {
    /// As it was asked.
    Asked,
    /// Every stream in blocks of this size, and every volume in runs of that at least, as far as
    /// there are such runs.
    Block(Bytes),
    /// Every volume in this part of its disks.
    Zone(Zone),
    /// Every volume on one disk, in turns, in place of rotating over several.
    Apart,
    /// Every volume rotating over this many disks; more than there are, as if the
    /// further ones were like the first and empty.
    Disks(u16),
}

/// What would become of the list in another way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alternative {
    pub variation: Variation,
    /// Of all streams asked, how many fit in the list's order.
    pub admitted: u64,
    pub asked: u64,
    /// Of the disk that is promised the most.
    pub utilisation_ppm: u64,
    /// Of the disk that has the least.
    pub slack: Duration,
    /// Of all windows that fit.
    pub windows: Bytes,
    /// Estimate: what best effort gets on all disks together.
    pub best_effort: Rate,
}

/// Blocks that are compared.
const BLOCKS: [Bytes; 10] = [
    Bytes::kib(64),
    Bytes::kib(128),
    Bytes::kib(256),
    Bytes::kib(512),
    Bytes::mib(1),
    Bytes::mib(2),
    Bytes::mib(4),
    Bytes::mib(8),
    Bytes::mib(16),
    Bytes::mib(32),
];
/// Up to how many disks are compared where there are fewer.
const DISKS: u16 = 4;
/// Where there are more than this, only these numbers of disks are compared.
const DISKS_MANY: u16 = 8;

impl Planner {
    /// The list as asked, and in every other way that makes sense for it.
    ///
    /// # Errors
    /// Where an entry makes no sense, whatever the disks.
    pub fn compare(&self, list: &[Wanted]) -> Result<Vec<Alternative>, Error> {
        self.compare_within(list, &PlanWork::whole())
    }

    /// The same within some work.
    ///
    /// # Errors
    /// As [`Planner::compare`], and where the work is over.
    pub fn compare_within(
        &self,
        list: &[Wanted],
        work: &PlanWork,
    ) -> Result<Vec<Alternative>, Error> {
        let mut ways = alloc::vec![Variation::Asked];
        let has_streams = list.iter().any(|one| matches!(one.what, Whose::Stream { .. }));
        if has_streams {
            ways.extend(BLOCKS.map(Variation::Block));
        }
        ways.extend([Variation::Zone(Zone::Outer), Variation::Zone(Zone::Inner)]);
        if self.disks.len() > 1 {
            ways.push(Variation::Apart);
        }
        let most = self.disks().max(DISKS);
        ways.extend((1..=most.min(DISKS_MANY)).map(Variation::Disks));
        let each = |&variation: &Variation| {
            // Another way to do the same has a row of its own only where it differs.
            let varied = self.vary(list, variation);
            let is_asked = variation == Variation::Asked;
            if !is_asked && varied.1 == list && varied.0.disks() == self.disks() {
                return None;
            }
            match alternative(variation, (&varied.0, &varied.1), work) {
                // There is no such way on these disks, or at this rate.
                Err(Error::Invalid { .. }) if !is_asked && !work.is_over() => None,
                other => Some(other),
            }
        };
        ways.iter().filter_map(each).collect()
    }

    /// The disks and the list, varied.
    pub fn vary(&self, list: &[Wanted], variation: Variation) -> (Self, Vec<Wanted>) {
        let mut planner = self.clone();
        let mut list = list.to_vec();
        match variation {
            Variation::Asked => {}
            Variation::Block(block) => {
                for one in &mut list {
                    if let Whose::Stream { contract, .. } = &mut one.what {
                        contract.block = block;
                        if block > EXTENT {
                            one.placement.run = one.placement.run.max(block.min(RUN_MAX));
                        }
                    }
                }
            }
            Variation::Zone(zone) => list.iter_mut().for_each(|one| one.placement.zone = zone),
            Variation::Apart => list = list.iter().flat_map(|one| self.apart(one)).collect(),
            Variation::Disks(count) => {
                planner.extend_to(count);
                let all = self.disks() == count;
                for one in &mut list {
                    let disks = (0..count).map(DiskIndex).collect();
                    one.placement.disks = if all { Vec::new() } else { disks };
                }
            }
        }
        (planner, list)
    }

    /// Streams on several disks as streams on one each, in turns.
    fn apart(&self, wanted: &Wanted) -> Vec<Wanted> {
        let all: Vec<DiskIndex> = match wanted.placement.disks.as_slice() {
            [] => (0..self.disks()).map(DiskIndex).collect(),
            some => some.to_vec(),
        };
        let many = all.len() as u64;
        let on = |(turn, &disk): (u64, &DiskIndex)| {
            let count = wanted.count / many + u64::from(turn < wanted.count % many);
            let placement = Placement { disks: alloc::vec![disk], ..wanted.placement.clone() };
            Wanted { count, placement, ..wanted.clone() }
        };
        (0..).zip(&all).map(on).filter(|one| one.count > 0).collect()
    }

    /// Adds disks like the first, with nothing promised but the metadata log.
    fn extend_to(&mut self, count: u16) {
        while self.disks() < count {
            let PlanDisk { profile, capacity, set, advance, late, .. } = &self.disks[0];
            let gap = set.gap();
            let costs = Costs::new(&self.config, profile, *capacity, gap);
            let mut set = Self::set(&self.config, &costs, profile, gap);
            for task in costs.metadata(&self.config) {
                set.add_unchecked(task);
            }
            let (profile, capacity) = (profile.clone(), *capacity);
            let (advance, late) = (*advance, *late);
            self.disks.push(PlanDisk {
                profile,
                capacity,
                advance,
                late,
                set,
                chunk: None,
                has_latency: false,
                owed: None,
            });
        }
    }
}

fn alternative(
    variation: Variation,
    (planner, list): (&Planner, &[Wanted]),
    work: &PlanWork,
) -> Result<Alternative, Error> {
    let trial = planner.trial(list, work)?;
    let Trial { planner, disks, kinds, .. } = &trial;
    let rates = planner.disks.iter().zip(disks);
    let rates = rates.map(|(disk, trial)| {
        estimate::best_effort(&disk.profile, disk.capacity, &trial.likely).get()
    });
    let sets = || planner.disks.iter().map(|disk| &disk.set);
    Ok(Alternative {
        variation,
        admitted: kinds.iter().map(|kind| kind.admitted).sum(),
        asked: list.iter().map(|one| one.count).sum(),
        utilisation_ppm: sets().map(|set| set.utilisation().ppm()).max().unwrap_or(0),
        slack: sets().map(TaskSet::slack).min().unwrap_or(Duration::MAX),
        windows: trial.windows(),
        best_effort: Rate::per_second(rates.sum()),
    })
}
