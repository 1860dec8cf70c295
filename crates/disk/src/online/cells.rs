//! Statistics of commands by kind, and whether commands of a kind take longer now.
//!
//! Invariant: at most [`REGIONS`] * 13 * 2 cells, and 256 * 13 * 2 kinds.

use alloc::collections::BTreeMap;
use units::{Access, Bytes, Direction, Duration, Lba};

/// Parts of a disk that are told apart.
pub const REGIONS: u64 = 32;

/// Upper ends of [`Cell::ratios`], in parts per million of the bound; the last has none.
pub const RATIO_STEPS: [u64; 7] =
    [250_000, 500_000, 750_000, 900_000, 1_000_000, 1_100_000, 1_500_000];

/// Commands of one size class and direction in one part of a disk.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Cell {
    /// How many.
    pub count: u64,
    /// Their device time in all.
    pub total: Duration,
    /// The longest.
    pub max: Duration,
    /// Sum of time by bound, in parts per million.
    pub ratio_sum: u64,
    /// How many took so much of their bound; see [`RATIO_STEPS`].
    pub ratios: [u64; 8],
}

impl Cell {
    /// Mean device time.
    pub fn mean(&self) -> Duration {
        self.total / self.count.max(1)
    }
}

#[derive(Clone, Debug)]
pub(super) struct Cells {
    end: Lba,
    cells: BTreeMap<(u8, u8, bool), Cell>,
    /// Count and sum of ratios over all of them.
    all: (u64, u64),
}

/// Fewer commands than this give no mean.
const ENOUGH: u64 = 8;

impl Cells {
    pub(super) fn new(capacity: Bytes) -> Self {
        Self { end: Lba::containing(capacity), cells: BTreeMap::new(), all: (0, 0) }
    }

    fn key(&self, access: &Access) -> (u8, u8, bool) {
        let part = u128::from(access.lba.get()) * u128::from(REGIONS);
        let region = part / u128::from(self.end.get().max(1));
        (region.min(u128::from(REGIONS) - 1) as u8, size_class(access), is_write(access))
    }

    /// Mean of time by bound among commands like this one, in parts per million; among
    /// all where these are too few.
    pub(super) fn mean_ratio(&self, access: &Access) -> u64 {
        let cell = self.cells.get(&self.key(access)).filter(|cell| cell.count >= ENOUGH);
        let (count, sum) = cell.map_or(self.all, |cell| (cell.count, cell.ratio_sum));
        sum.checked_div(count).unwrap_or(1_000_000)
    }

    pub(super) fn add(&mut self, access: &Access, actual: Duration, ratio: u64) {
        let cell = self.cells.entry(self.key(access)).or_default();
        cell.count += 1;
        cell.total = cell.total.saturating_add(actual);
        cell.max = cell.max.max(actual);
        cell.ratio_sum = cell.ratio_sum.saturating_add(ratio);
        cell.ratios[RATIO_STEPS.partition_point(|&step| step < ratio)] += 1;
        self.all = (self.all.0 + 1, self.all.1.saturating_add(ratio));
    }

    pub(super) fn total(&self) -> (u64, u64) {
        self.all
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u8, u8, Direction, &Cell)> {
        self.cells.iter().map(|(&(region, size, write), cell)| {
            (region, size, if write { Direction::Write } else { Direction::Read }, cell)
        })
    }
}

/// As many of a kind are its first.
const FIRST: u64 = 128;
/// The weight of a command in the mean of late: one in so many.
const LATE: i64 = 1_024;
/// Commands that take so much of what they took at first have drifted.
const LIMIT: u64 = 1_150_000;

/// Whether commands take longer than commands of the same kind did at first.
///
/// Kinds are told apart by direction, size and bound (to a quarter of an octave): a
/// bound grows with the way of the arm, so that commands of one kind move it about as
/// far, and other loads on the same disk change the mix of kinds, not what one takes.
#[derive(Clone, Debug)]
pub(super) struct Drift {
    kinds: BTreeMap<(u8, u8, bool), [u64; 2]>,
    /// Mean of late, in parts per million of the first, times [`LATE`].
    late: i64,
}

impl Default for Drift {
    fn default() -> Self {
        Self { kinds: BTreeMap::new(), late: 1_000_000 * LATE }
    }
}

impl Drift {
    pub(super) fn add(&mut self, access: &Access, bound: Duration, ratio: u64) {
        let key = (quarter_octave(bound), size_class(access), is_write(access));
        let [count, sum] = self.kinds.entry(key).or_default();
        if *count < FIRST {
            (*count, *sum) = (*count + 1, *sum + ratio);
            return;
        }
        let first = (*sum / FIRST).max(1);
        // One command that stalls is an overrun, not a drift.
        let part = (ratio.saturating_mul(1_000_000) / first).min(4_000_000);
        self.late += part as i64 - self.late / LATE;
    }

    pub(super) fn ppm(&self) -> u64 {
        (self.late / LATE).max(0) as u64
    }

    pub(super) fn alarm(&self) -> Option<u64> {
        Some(self.ppm()).filter(|&ppm| ppm > LIMIT)
    }
}

fn is_write(access: &Access) -> bool {
    access.direction == Direction::Write
}

/// Four classes to the octave.
fn quarter_octave(span: Duration) -> u8 {
    let nanos = span.as_nanos().max(4);
    let octave = nanos.ilog2();
    (octave * 4) as u8 + (nanos >> (octave - 2) & 3) as u8
}

/// The logarithm of an access's sectors, rounded up; 1 MiB and a half and more are one.
fn size_class(access: &Access) -> u8 {
    let sectors = access.len.div_ceil(units::SECTOR).max(1);
    sectors.next_power_of_two().trailing_zeros().min(12) as u8
}
