//! What best effort is likely to get: an estimate, in reports only.
//!
//! Admission counts every request at its worst. On the average a seek is shorter
//! and a disk turns half round before the first sector comes; the estimate takes
//! the mean of the bounds between places that are spread over the range, less
//! half a turn.

use super::{PlanDisk, Planner, Wanted, Whose};
use crate::admission::contract::Share;
use crate::admission::costs::ppm;
use crate::api::Mode;
use core::ops::{AddAssign, Range};
use disk::{Kind, Profile};
use sched::Task;
use units::{Access, Bytes, Command, Direction, Duration, Lba, Rate};

/// What best effort is thought to move at a time.
const TRANSFER: Bytes = Bytes::kib(64);
/// Pairs of places that are looked at.
const PLACES: u64 = 48;
/// About the golden ratio of 2^32: its multiples are spread evenly.
const SPREAD: u64 = 2_654_435_769;

/// The part of a disk's time that is likely to be used, in parts per million.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Likely(u64);

impl Likely {
    /// A task whose requests cost this on the average.
    pub(super) fn of(task: &Task, cost: Duration) -> Self {
        Self(ppm(cost, task.period))
    }
}

impl Likely {
    /// One of those that are in it is another.
    pub(super) fn becomes(&mut self, before: &Self, after: Self) {
        self.0 = self.0.saturating_sub(before.0).saturating_add(after.0);
    }
}

impl AddAssign for Likely {
    fn add_assign(&mut self, other: Self) {
        self.0 = self.0.saturating_add(other.0);
    }
}

impl Planner {
    /// What one of a kind is likely to use of a disk.
    pub(super) fn likely(&self, wanted: &Wanted, share: &Share, task: &Task) -> Likely {
        let Whose::Stream { mode, contract } = &wanted.what else {
            // Budgets are used up by programs that are themselves best effort, and
            // reserved answers are seldom asked for at full rate: as promised.
            return Likely::of(task, task.cost);
        };
        let PlanDisk { profile, .. } = &self.disks[share.disk.as_usize()];
        let direction = match mode {
            Some(Mode::Read) => Direction::Read,
            Some(Mode::Write | Mode::Update) | None => Direction::Write,
        };
        Likely::of(task, mean(profile, &share.range, contract.block, direction).min(task.cost))
    }
}

/// The mean time of a transfer between random places of `range`.
fn mean(profile: &Profile, range: &Range<Lba>, len: Bytes, direction: Direction) -> Duration {
    let room = (range.end.get() - range.start.get()).saturating_sub(len / units::SECTOR);
    let place = |number: u64| {
        let part = u128::from(number.wrapping_mul(SPREAD) & 0xffff_ffff);
        Lba::new(range.start.get() + ((u128::from(room) * part) >> 32) as u64)
    };
    let time = |number: u64| {
        let access = Access { lba: place(2 * number), len, direction };
        profile.bound(place(2 * number + 1), &Command::Transfer(access))
    };
    let total: Duration = (0..PLACES).map(time).sum();
    let turn = match &profile.kind {
        Kind::HardDisk(disk) => disk.rotation / 2,
        Kind::Linear(_) => Duration::ZERO,
    };
    (total / PLACES).saturating_sub(turn).max(Duration::from_nanos(1))
}

/// What best effort gets in random reads beside the others.
pub(super) fn best_effort(profile: &Profile, capacity: Bytes, used: &Likely) -> Rate {
    let whole = Lba::new(0)..Lba::containing(capacity);
    let alone = Rate::of(TRANSFER, mean(profile, &whole, TRANSFER, Direction::Read));
    let left = 1_000_000u64.saturating_sub(used.0);
    let rate = u128::from(alone.get()) * u128::from(left) / 1_000_000;
    Rate::per_second(u64::try_from(rate).expect("a part of a rate"))
}
