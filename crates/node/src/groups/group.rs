//! The groups of a pool: which there are, who has something for them, and when they write next.

use crate::admission::contract::{Joined, Share};
use crate::api::{CommandId, Contract, DiskIndex, StreamId, Zone};
use crate::limits;
use crate::volumes::writes::Claim;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Range;
use store::EXTENT;
use units::{Bytes, Duration, Instant};

/// Which group: those of a period that write to the same part of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct GroupId {
    pub disk: DiskIndex,
    pub zone: Zone,
    pub period: Duration,
}

/// Writers that are written together.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    /// Of the first of them: the others' blocks and periods are the same.
    pub contract: Contract,
    /// How many there are: no more than the task was admitted for.
    pub members: u32,
    /// What its task was admitted for, with so many members.
    pub share: Share,
    pub task: Joined,
    /// Members that have something to be written, who asked first before the others.
    pub waiting: Vec<StreamId>,
    /// Its requests that have not ended, as far as that was looked at.
    pub running: Vec<CommandId>,
    /// Commands for which the last request had no room, and that went in the slack.
    pub beyond: Vec<CommandId>,
    /// When it writes next, where something waits.
    pub due: Option<Instant>,
}

/// A block of a member, or its beginning, on its way to its disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    pub stream: StreamId,
    pub block: u64,
    /// Bytes from the block's start on, and how many are written: whole 4 KiB.
    pub len: Bytes,
    pub upto: Bytes,
    /// Where it lies in memory, and where on the disk.
    pub place: Bytes,
    pub at: Bytes,
    pub claim: Claim,
}

/// All groups of a pool.
#[derive(Clone, Debug, Default)]
pub(crate) struct Groups {
    pub all: BTreeMap<GroupId, Group>,
    /// Places that blocks have left, which commands may still read.
    pub left: Vec<(DiskIndex, Range<Bytes>)>,
    /// When these are looked at next.
    pub left_due: Option<Instant>,
}

impl Groups {
    /// Something may be due then.
    pub(crate) fn due(&self) -> Option<Instant> {
        let writes = self.all.values().filter_map(|group| group.due);
        writes.chain(self.left_due).min()
    }

    /// In so many of its requests all that its members have of blocks that are not full is written.
    pub(crate) fn rounds_of_parts(&self, id: &GroupId) -> u64 {
        u64::from(self.members(id)).div_ceil(limits::GROUP_PARTS_MAX as u64)
    }

    /// How many members a group has; none where there is no such group.
    pub(crate) fn members(&self, id: &GroupId) -> u32 {
        self.all.get(id).map_or(0, |group| group.members)
    }
}

/// What a member has for its group: so much from the start of a block on, and its claim where it has one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ForGroup {
    pub block: u64,
    pub upto: Bytes,
    pub claim: Option<Claim>,
}

impl ForGroup {
    /// It is less than a block.
    pub(crate) fn is_part(&self) -> bool {
        self.upto < EXTENT
    }
}

/// When a command was done: by how much too late, after how long, and by when it was due.
pub(crate) struct Times {
    pub late_by: Duration,
    pub latency: Duration,
    pub due: Option<Instant>,
}
