//! From a contract to tasks on disks, and to the window that makes them suffice.
//!
//! A stream of rate r in blocks of B needs a block every T = B / r. Where its
//! volume's extents come back to a disk every k-th extent, that disk sees one
//! block every k T (scheduling.md, section 1), so the task there is (k T, k T,
//! worst cost). An extent of m blocks comes as m releases in a row; spaced k T
//! apart they run ahead of need by at most (m - 1)(k - 1) T, which the window
//! has to hold: `k + 1 + (m - 1)(k - 1)` blocks, plus what the program may touch at
//! once, plus what passes while the host is late.
//!
//! What it may touch at once is its burst c, at least a block: a bucket of c bytes that
//! fills at r, so that a program that fell behind may catch up. Why that many blocks
//! suffice on one disk: a block is asked for when another has been used up, is released
//! T after the one before it or at once, and is there T later. Let s be when the first
//! of a run of requests without a pause was asked for, and n blocks be used up before
//! it. By t at least n + floor((t - s) / T) were brought, and the program wants at most
//! n + 1 + c/B + ceil((t - s) / T). The difference is 2 + c/B at the most. (With a block
//! less a program that lags by part of a block and catches up finds its window empty.)
//!
//! This holds from when the whole window is there and a further request could be
//! released. So playout begins one window after the stream's first request may be
//! released: on opening, or up to half a block's time later, where that keeps it apart
//! from other streams (`Schedule::join_within`). A writer's first block may be there at
//! once, so that it cannot bear to be put off.

use crate::admission::costs::ppm;
use crate::api::{Contract, DiskIndex, Error, Mode, Placement, Refusal, Zone};
use alloc::vec::Vec;
use core::ops::Range;
use disk::Profile;
use sched::limits::PERIOD_MAX;
use sched::{Task, TaskId, TaskSet};
use store::EXTENT;
use units::{Bytes, Duration, Lba, Rate};

/// What a volume's extents mean for one disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Share {
    pub disk: DiskIndex,
    /// Every how many extents of the volume this disk's turn comes, at least.
    pub gap: u64,
    /// Where on the disk they lie.
    pub range: Range<Lba>,
}

/// A task that a stream has on a disk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Joined {
    pub disk: DiskIndex,
    pub id: TaskId,
    pub task: Task,
}

/// What these tasks have of each disk's time, in parts per million.
pub(crate) fn used(tasks: &[Joined]) -> Vec<(DiskIndex, u64)> {
    tasks.iter().map(|one| (one.disk, ppm(one.task.cost, one.task.period))).collect()
}

pub(crate) fn refused(disk: DiskIndex, refusal: &sched::Refusal) -> Refusal {
    Refusal {
        disk,
        utilisation_ppm: refusal.utilisation_ppm,
        deadline: refusal.deadline,
        rate_max: Rate::ZERO,
        bus: None,
        undecided: refusal.undecided,
    }
}

/// How often a disk with this share has a block of the stream to move. Where it is seldom
/// enough to be outside what the analysis counts with, more is set aside than is needed.
pub(crate) fn period(contract: &Contract, share: &Share) -> Duration {
    contract.time_of(share.gap).min(PERIOD_MAX)
}

/// A disk as admission sees it: what it costs, and who has its promise.
#[derive(Clone, Copy)]
pub(crate) struct Seen<'a> {
    pub profile: &'a Profile,
    /// Deadlines are advanced by this.
    pub advance: Duration,
    pub set: &'a TaskSet,
}

impl Seen<'_> {
    /// What `contract` asks of this disk; `Err` where even an idle disk could
    /// not keep it.
    pub(crate) fn task(
        &self,
        contract: &Contract,
        share: &Share,
        mode: Mode,
    ) -> Result<Task, Refusal> {
        let period = period(contract, share);
        let range = share.range.clone();
        let cost = self.profile.worst(range, contract.block, mode.direction());
        self.possible(share.disk, cost, period, period)
    }

    /// A task with deadlines before the end of its period, advanced; `Err` where
    /// even an idle disk could not keep it.
    pub(crate) fn possible(
        &self,
        disk: DiskIndex,
        cost: Duration,
        within: Duration,
        period: Duration,
    ) -> Result<Task, Refusal> {
        let cost = cost.max(Duration::from_nanos(1));
        let deadline = within.saturating_sub(self.advance);
        if cost > deadline {
            let late = cost.saturating_add(self.advance).saturating_sub(within);
            let used = self.set.utilisation().ppm();
            return Err(Refusal {
                disk,
                utilisation_ppm: used.saturating_add(ppm(cost, period)),
                deadline: Some((within, late)),
                rate_max: Rate::ZERO,
                bus: None,
                undecided: false,
            });
        }
        Ok(Task::new(period, deadline, cost))
    }
}

/// Whether these disks would take `contract`; the first refusal if not.
pub(crate) fn fits<'a>(
    seen: impl Fn(DiskIndex) -> Seen<'a>,
    contract: &Contract,
    shares: &[Share],
    mode: Mode,
) -> Result<(), Refusal> {
    for share in shares {
        let disk = seen(share.disk);
        let task = disk.task(contract, share, mode)?;
        disk.set.admits(&task).map_err(|refusal| refused(share.disk, &refusal))?;
    }
    Ok(())
}

/// The largest rate, in the same blocks, that would be admitted; zero if none.
/// A longer period never hurts a set (its demand falls by at least what its
/// blocking rises), so halving finds it.
pub(crate) fn rate_max<'a>(
    seen: impl Fn(DiskIndex) -> Seen<'a>,
    contract: &Contract,
    shares: &[Share],
    mode: Mode,
) -> Rate {
    let (mut good, mut bad) = (0, contract.rate.get());
    while bad - good > 1 {
        let middle = good + (bad - good) / 2;
        let tried = Contract { rate: Rate::per_second(middle), ..*contract };
        if tried.check().is_ok() && fits(&seen, &tried, shares, mode).is_ok() {
            good = middle;
        } else {
            bad = middle;
        }
    }
    Rate::per_second(good)
}

/// The shares of a volume that does not exist yet, on disks of these capacities.
pub(crate) fn shares_of(placement: &Placement, capacities: &[Bytes]) -> Result<Vec<Share>, Error> {
    let count = capacities.len() as u16;
    let disks = match placement.disks.as_slice() {
        [] => (0..count).map(DiskIndex).collect(),
        some => some.to_vec(),
    };
    if let Some(&disk) = disks.iter().find(|disk| disk.0 >= count) {
        return Err(Error::NoSuchDisk { disk, disks: count });
    }
    let share = |&disk: &DiskIndex| {
        let end = Lba::containing(capacities[disk.as_usize()]);
        let middle = Lba::new(end.get() / 2);
        let range = match placement.zone {
            Zone::Any => Lba::new(0)..end,
            Zone::Outer => Lba::new(0)..middle,
            Zone::Inner => middle..end,
        };
        Share { disk, gap: disks.len() as u64, range }
    };
    Ok(disks.iter().map(share).collect())
}

/// Blocks of the window, where the host may be `late` by so much.
pub(crate) fn window_blocks(contract: &Contract, shares: &[Share], late: Duration) -> u64 {
    let gap = shares.iter().map(|share| share.gap).max().unwrap_or(1);
    blocks_of(contract, gap, late)
}

/// The same where every `gap`th extent comes to a disk.
pub(crate) fn blocks_of(contract: &Contract, gap: u64, late: Duration) -> u64 {
    let per_extent = EXTENT / contract.block;
    gap + 1 + (per_extent - 1) * (gap - 1) + contract.blocks_ahead(late)
}
