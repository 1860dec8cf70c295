//! The largest rate that a refused contract could have had, and a time for answers.
//!
//! To find these takes some 25 times as long as to refuse, some seconds on a busy disk. So
//! the node only takes a copy of what admission saw. Whoever receives the answer searches,
//! on a thread that nobody else waits for.

use crate::admission::contract::{self, Joined, Seen, Share};
use crate::api::{Contract, DiskIndex, Error, Mode, Service};
use crate::limits::BLOCK_MAX;
use crate::volumes::service;
use alloc::boxed::Box;
use alloc::vec::Vec;
use disk::Profile;
use sched::TaskSet;
use units::{Bytes, Duration, Rate};

/// Times for answers are told in whole ones of these.
const WITHIN_UNIT: Duration = Duration::from_micros(100);

/// What admission saw when it refused a contract.
#[derive(Clone, Debug)]
pub struct RateSearch {
    asked: Asked,
    shares: Vec<Share>,
    disks: Vec<Disk>,
}

/// What was refused.
#[derive(Clone, Copy, Debug)]
enum Asked {
    Stream {
        contract: Contract,
        mode: Mode,
        /// The stream is open, and keeps its blocks.
        open: bool,
    },
    Service {
        service: Service,
        /// What is free to be set aside for its operations.
        memory: Bytes,
    },
}

/// One disk, in the order of the shares.
#[derive(Clone, Debug)]
struct Disk {
    profile: Profile,
    advance: Duration,
    late: Duration,
    set: TaskSet,
    chunk: Option<Bytes>,
}

impl RateSearch {
    /// For `contract` in the place of these tasks, which may be none. Cost: grows with the
    /// tasks of the disks.
    pub(crate) fn new<'a>(
        seen: impl Fn(DiskIndex) -> Seen<'a>,
        contract: &Contract,
        shares: &[Share],
        mode: Mode,
        instead_of: &[Joined],
    ) -> Box<Self> {
        let asked = Asked::Stream { contract: *contract, mode, open: !instead_of.is_empty() };
        Self::of(seen, asked, shares, instead_of)
    }

    /// The same for the service of a volume or a handle, for which so much memory is free.
    pub(crate) fn of_service<'a>(
        seen: impl Fn(DiskIndex) -> Seen<'a>,
        (service, memory): (&Service, Bytes),
        shares: &[Share],
        instead_of: &[Joined],
    ) -> Box<Self> {
        Self::of(seen, Asked::Service { service: *service, memory }, shares, instead_of)
    }

    fn of<'a>(
        seen: impl Fn(DiskIndex) -> Seen<'a>,
        asked: Asked,
        shares: &[Share],
        instead_of: &[Joined],
    ) -> Box<Self> {
        let disk = |share: &Share| {
            let seen = seen(share.disk);
            let mut set = seen.set.clone();
            for own in instead_of.iter().filter(|own| own.disk == share.disk) {
                set.remove(own.id);
            }
            let (advance, late, chunk) = (seen.advance, seen.late, seen.chunk);
            Disk { profile: seen.profile.clone(), advance, late, set, chunk }
        };
        let disks = shares.iter().map(disk).collect();
        Box::new(Self { asked, shares: shares.to_vec(), disks })
    }

    /// Tells a refusal what would have been admitted: of a stream the largest rate in the same
    /// blocks, zero if none, and what longer blocks would have taken, where that is more; of a
    /// service the largest rate, or a time for answers that would. May take some seconds.
    pub fn complete(&self, error: &mut Error) {
        let Error::Refused(refusal) = error else { return };
        let seen = |disk| self.seen(disk);
        match &self.asked {
            Asked::Stream { contract, mode, open } => {
                refusal.rate_max = contract::rate_max(seen, contract, &self.shares, *mode);
                if !open {
                    let asked = (contract, &*self.shares, *mode);
                    refusal.longer = longer_blocks(seen, asked, refusal.rate_max);
                }
            }
            &Asked::Service { service: Service::Rate { rate, block, period }, memory } => {
                let serves = |rate| {
                    let rate = Rate::per_second(rate);
                    self.serves(&Service::Rate { rate, block, period }, memory)
                };
                let largest = last_that(0, rate.get(), serves);
                refusal.rate_max = Rate::per_second(largest);
            }
            &Asked::Service { service: Service::Latency { len, within, every }, memory } => {
                // The longer the time, the less is asked for by any deadline.
                let shorter = |units: u64| every.saturating_sub(WITHIN_UNIT * units);
                let serves = |within| self.serves(&Service::Latency { len, within, every }, memory);
                if serves(every) {
                    let most = every.saturating_sub(within).as_nanos() / WITHIN_UNIT.as_nanos();
                    let units = last_that(0, most + 1, |units| serves(shorter(units)));
                    refusal.within = Some(shorter(units));
                }
            }
            Asked::Service { service: Service::BestEffort(_), .. } => {}
        }
    }

    /// Whether the disks would keep this service, with so much memory for it.
    fn serves(&self, service: &Service, memory: Bytes) -> bool {
        let needs = self.shares.iter().filter_map(|share| service::need(service, share));
        let needed = needs.fold(Bytes::ZERO, |all, need| all.saturating_add(need.bytes()));
        service.check().is_ok()
            && needed <= memory
            && self.shares.iter().all(|share| {
                let seen = self.seen(share.disk);
                let task = seen.service(service, share);
                task.is_ok_and(|task| task.is_none_or(|task| seen.set.admits(&task).is_ok()))
            })
    }

    fn seen(&self, index: DiskIndex) -> Seen<'_> {
        let at = self.shares.iter().position(|share| share.disk == index);
        let Disk { profile, advance, late, set, chunk } =
            &self.disks[at.expect("a disk of the shares")];
        Seen { profile, advance: *advance, late: *late, set, chunk: *chunk }
    }
}

/// The last number before `bad` of which this holds, as of all before it; `good` at the least.
fn last_that(mut good: u64, mut bad: u64, holds: impl Fn(u64) -> bool) -> u64 {
    while bad.saturating_sub(good) > 1 {
        let middle = good + (bad - good) / 2;
        if holds(middle) {
            good = middle;
        } else {
            bad = middle;
        }
    }
    good
}

/// The shortest longer block in which all that is asked for would fit, or the one that takes
/// most, with a rate that fits in it, where that is more than `rate_max`. Long blocks are not
/// always better: what is due soon waits for all of one.
pub(crate) fn longer_blocks<'a>(
    seen: impl Fn(DiskIndex) -> Seen<'a>,
    (asked, shares, mode): (&Contract, &[Share], Mode),
    rate_max: Rate,
) -> Option<(Bytes, Rate)> {
    let fits = |block, rate| {
        let contract = Contract { block, rate: Rate::per_second(rate), ..*asked };
        contract.check().is_ok()
            && contract::check_block(&contract, shares, |disk| seen(disk).profile).is_ok()
            && contract::fits(&seen, &contract, shares, mode).is_ok()
    };
    let (mut best, asked_rate) = ((None, rate_max.get()), asked.rate.get());
    let mut block = asked.block;
    while block < BLOCK_MAX {
        block = block * 2;
        if fits(block, asked_rate) {
            return Some((block, asked.rate));
        }
        // To a sixty-fourth: it is there to choose a block by.
        let (mut good, mut bad) = (best.1 + best.1 / 64 + 1, asked_rate);
        if good >= bad || !fits(block, good) {
            continue;
        }
        while bad - good > (good / 64).max(1) {
            let middle = good + (bad - good) / 2;
            if fits(block, middle) {
                good = middle;
            } else {
                bad = middle;
            }
        }
        best = (Some(block), good);
    }
    best.0.map(|block| (block, Rate::per_second(best.1)))
}
