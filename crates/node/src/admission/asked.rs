//! What the tasks of streams on a disk were made of, so that they can be made anew in other
//! commands.
//!
//! Invariant: `asked` has an entry for each task that a stream has on the disk.

use crate::admission::contract::Share;
use crate::api::Contract;
use alloc::collections::BTreeMap;
use sched::TaskId;
use units::{Direction, Duration};

/// What a stream's task was made of.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub contract: Contract,
    pub share: Share,
    pub way: Direction,
}

/// How one disk serves the requests of streams.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chunking {
    pub asked: BTreeMap<TaskId, Asked>,
    /// What admission leaves for best effort where requests are whole; only where they are not.
    pub reserve_whole: Option<Duration>,
}
