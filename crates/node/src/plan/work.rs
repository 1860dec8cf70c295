//! How much a plan may take. Whoever asks a daemon for one has its processor for that long.
//!
//! Counted are contracts that are tried on a disk, which takes some microseconds however many others it has,
//! and little more. Invariant: planning ends soon after the work is used up, or nobody wants it any more.

use super::Planner;
use crate::api::Error;
use core::cell::Cell;

/// A search for the largest rate that fits tries about so many contracts, in several blocks.
const SEARCH: u64 = 100;
/// A copy is made of so many contracts, or as many are looked through, while one is tried.
const COPIED: u64 = 50;

/// What a plan may take, and has not.
pub struct PlanWork<'a> {
    left: Cell<u64>,
    is_wanted: &'a dyn Fn() -> bool,
}

impl<'a> PlanWork<'a> {
    /// As long as it takes.
    pub fn whole() -> Self {
        Self::within(u64::MAX, &|| true)
    }

    /// So many tries, and as long as somebody wants it.
    pub fn within(most: u64, is_wanted: &'a dyn Fn() -> bool) -> Self {
        Self { left: Cell::new(most), is_wanted }
    }

    /// What is left of it.
    pub fn left(&self) -> u64 {
        self.left.get()
    }

    /// Whether it ended for want of this.
    pub fn is_over(&self) -> bool {
        self.left.get() == 0
    }

    /// It is looked what one of a kind asks of each disk, and a copy is made of what they have.
    pub(super) fn takes_kind(&self, planner: &Planner) -> Result<(), Error> {
        self.takes(disks(planner).saturating_add(contracts(planner) / COPIED))
    }

    /// One of a kind is tried.
    pub(super) fn takes_one(&self, planner: &Planner) -> Result<(), Error> {
        self.takes(disks(planner))
    }

    /// It is searched for what would have fitted in the place of one.
    pub(super) fn takes_search(&self, planner: &Planner) -> Result<(), Error> {
        self.takes(disks(planner).saturating_mul(SEARCH))
    }

    fn takes(&self, tries: u64) -> Result<(), Error> {
        let left = self.left.get().saturating_sub(tries);
        self.left.set(if (self.is_wanted)() { left } else { 0 });
        match self.is_over() {
            false => Ok(()),
            true => Err(Error::Invalid { what: "plan", rule: "fewer kinds, or fewer streams" }),
        }
    }
}

fn disks(planner: &Planner) -> u64 {
    planner.disks.len() as u64
}

/// Those that are on the disks.
fn contracts(planner: &Planner) -> u64 {
    planner.disks.iter().map(|disk| disk.set.len() as u64).sum()
}
