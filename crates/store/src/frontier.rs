//! What writers of thin volumes that are written together write to next: extents in stretches of
//! neighbours, which are nobody's yet (`thin.rs`).

use crate::api::{DiskIndex, Zone};
use crate::runs::Run;
use alloc::collections::{BTreeMap, VecDeque};

/// What writers side by side write to next on a part of a disk.
#[derive(Clone, Debug, Default)]
pub(crate) struct Frontier {
    /// What was taken of the free extents, in the order in which it is written.
    pub(crate) runs: VecDeque<Run>,
    /// So many of these are promised.
    pub(crate) promised: u32,
    /// So many are taken at a time, at the most.
    pub(crate) together: u32,
    /// Behind this one more is looked for.
    pub(crate) at: u32,
    /// How often more was looked for, up to some number.
    pub(crate) looks: u8,
    /// So many extents were free when no stretch was found that is long enough.
    pub(crate) none_of: Option<u32>,
}

/// All of them, by where they are.
pub(crate) type Frontiers = BTreeMap<(DiskIndex, Zone), Frontier>;

impl Frontier {
    /// How many extents it has.
    pub(crate) fn len(&self) -> u32 {
        self.runs.iter().map(|run| run.count).sum()
    }
    /// How many of these can be had, as many at a time one behind the other as are taken together: less
    /// may be left of each run than that. Where the free space is in short pieces, all of them.
    pub(crate) fn usable(&self) -> u32 {
        let left = if self.none_of.is_some() { 0 } else { self.together.saturating_sub(1) };
        self.runs.iter().map(|run| run.count.saturating_sub(left)).sum()
    }
    pub(crate) fn push(&mut self, run: Run) {
        match self.runs.back_mut() {
            Some(last) if last.start + last.count == run.start => last.count += run.count,
            _ => self.runs.push_back(run),
        }
    }
}
