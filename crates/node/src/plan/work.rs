//! How much a plan may take. Whoever asks a daemon for one has its processor for that long.
//!
//! Counted are the contracts that are looked at for each that is tried: what a trial takes grows with
//! them. Invariant: planning ends soon after the work is used up, or nobody wants it any more.

use super::Planner;
use crate::api::Error;
use core::cell::Cell;

/// A search for the largest rate that fits tries about so many contracts, in several blocks.
const SEARCH: usize = 100;

/// To know what a contract of a kind asks of a disk takes as long as to look at so many.
const KIND: usize = 100;

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

    /// So many contracts, and as long as somebody wants it.
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

    /// It is known what one of a kind asks of each disk, and a copy is made of what these have.
    pub(super) fn takes_kind(&self, planner: &Planner, contracts: usize) -> Result<(), Error> {
        self.takes(contracts.saturating_add(planner.disks.len() * KIND))
    }

    /// What would have fitted in the place of a contract was searched for, beside so many.
    pub(super) fn takes_search(&self, contracts: usize) -> Result<(), Error> {
        self.takes(contracts.saturating_mul(SEARCH))
    }

    /// So many more are looked at.
    pub(super) fn takes(&self, contracts: usize) -> Result<(), Error> {
        let left = self.left.get().saturating_sub(1 + contracts as u64);
        self.left.set(if (self.is_wanted)() { left } else { 0 });
        match self.is_over() {
            false => Ok(()),
            true => Err(Error::Invalid { what: "plan", rule: "fewer kinds, or fewer streams" }),
        }
    }
}
