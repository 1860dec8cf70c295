//! The largest rate that a refused contract could have had.
//!
//! To find it takes some 25 times as long as to refuse, some seconds on a busy disk. So
//! the node only takes a copy of what admission saw. Whoever receives the answer searches,
//! on a thread that nobody else waits for.

use crate::admission::contract::{self, Joined, Seen, Share};
use crate::api::{Contract, DiskIndex, Error, Mode};
use crate::limits::BLOCK_MAX;
use alloc::boxed::Box;
use alloc::vec::Vec;
use disk::Profile;
use sched::TaskSet;
use units::{Bytes, Duration, Rate};

/// What admission saw when it refused a contract.
#[derive(Clone, Debug)]
pub struct RateSearch {
    contract: Contract,
    mode: Mode,
    /// The stream is open, and keeps its blocks.
    open: bool,
    shares: Vec<Share>,
    disks: Vec<Disk>,
}

/// One disk, in the order of the shares.
#[derive(Clone, Debug)]
struct Disk {
    profile: Profile,
    advance: Duration,
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
        let disk = |share: &Share| {
            let seen = seen(share.disk);
            let mut set = seen.set.clone();
            for own in instead_of.iter().filter(|own| own.disk == share.disk) {
                set.remove(own.id);
            }
            let (advance, chunk) = (seen.advance, seen.chunk);
            Disk { profile: seen.profile.clone(), advance, set, chunk }
        };
        let disks = shares.iter().map(disk).collect();
        let (open, shares) = (!instead_of.is_empty(), shares.to_vec());
        Box::new(Self { contract: *contract, mode, open, shares, disks })
    }

    /// Tells a refusal the largest rate, in the same blocks, that would have been admitted,
    /// zero if none; and what longer blocks would have taken, where that is more. May take some
    /// seconds.
    pub fn complete(&self, error: &mut Error) {
        if let Error::Refused(refusal) = error {
            let seen = |disk| self.seen(disk);
            refusal.rate_max = contract::rate_max(seen, &self.contract, &self.shares, self.mode);
            if !self.open {
                let asked = (&self.contract, &*self.shares, self.mode);
                refusal.longer = longer_blocks(seen, asked, refusal.rate_max);
            }
        }
    }

    fn seen(&self, index: DiskIndex) -> Seen<'_> {
        let at = self.shares.iter().position(|share| share.disk == index);
        let Disk { profile, advance, set, chunk } = &self.disks[at.expect("a disk of the shares")];
        Seen { profile, advance: *advance, set, chunk: *chunk }
    }
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
