//! Live data in suspect extents is moved to good ones, when nothing else wants the disk.
//!
//! One extent of a disk at a time, piece by piece, as background work: read, write, and
//! when all is copied the map is switched; the next commit makes that durable, behind a
//! flush of the copy ([`Store::relocate`]). Streams go on meanwhile. Where the new place
//! lies outside of the part of the disk that a volume's contracts were admitted for, they
//! are admitted for the larger part first, or the extent stays where it is.
//!
//! Invariants: at most one move runs on a disk; while it does, the writes to its extent
//! are watched, and a copy that was written to meanwhile is not switched to but made
//! again; an extent is not moved while a write of it is under way. Bytes that cannot be
//! read are never replaced by others: the extent stays, and is named.
//!
//! [`Store::relocate`]: store::Store::relocate

use crate::api::*;
use crate::limits::MOVE_AGAIN;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Range;
use store::{EXTENT, OwnersSought, VolumeId};
use units::{Bytes, Duration, Instant};

/// An extent on its way.
#[derive(Clone, Debug)]
pub(crate) struct Move {
    pub volume: VolumeId,
    /// Which of its extents.
    pub index: u64,
    pub from: Bytes,
    pub to: Bytes,
    /// What has to be copied,
    pub written: Blocks,
    /// and where the last of it ends.
    pub upto: Bytes,
    /// What is copied.
    pub at: Bytes,
    pub span: Span,
    pub command: Option<CommandId>,
    /// The volume has changed: to be ended with the command under way.
    pub abandoned: bool,
}

/// Why an extent stays for now, and when to try again.
#[derive(Clone, Debug)]
pub(crate) struct Stuck {
    pub volume: VolumeId,
    pub why: Unmoved,
    pub again: Instant,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Moves {
    pub running: BTreeMap<DiskIndex, Move>,
    pub stuck: BTreeMap<(DiskIndex, u64), Stuck>,
    pub moved: BTreeMap<DiskIndex, u64>,
    /// Suspect extents with data when last looked, those of `stuck` among them.
    pub occupied: BTreeMap<DiskIndex, u64>,
    /// Something has changed since.
    pub wanted: bool,
    /// Suspect places of disks that are not free, whose volumes are being looked for.
    pub sought: BTreeMap<DiskIndex, (Vec<u64>, OwnersSought)>,
}

impl Moves {
    /// Suspects have changed, or a move has ended.
    pub(crate) fn look_again(&mut self) {
        self.wanted = true;
    }

    /// When to look again, though nothing changes: at once while volumes are looked for; then on disks where
    /// no move is running, whose end is such a change.
    pub(crate) fn due(&self) -> Option<Instant> {
        if !self.sought.is_empty() {
            return Some(Instant::EPOCH);
        }
        let resting = self.stuck.iter().filter(|(place, _)| !self.running.contains_key(&place.0));
        let again = resting.map(|(_, stuck)| stuck.again);
        again.min().filter(|&again| again < Instant::MAX)
    }

    /// Nothing is tried again.
    pub fn rest(&mut self) {
        self.wanted = false;
        self.sought.clear();
        self.stuck.values_mut().for_each(|stuck| stuck.again = Instant::MAX);
    }

    pub(crate) fn idle(&self) -> bool {
        self.running.is_empty()
    }

    /// The place on `disk` that an extent of `volume` is being moved to.
    pub(crate) fn target(&self, volume: VolumeId, disk: DiskIndex) -> Option<Range<Bytes>> {
        let one = self.running.get(&disk).filter(|one| one.volume == volume)?;
        Some(one.to..one.to + EXTENT)
    }
}

const _: () = {
    assert!(disk::online::SUSPECTS_MAX <= store::SUSPECTS_MAX);
    assert!(MOVE_AGAIN.as_nanos() > Duration::ZERO.as_nanos());
};
