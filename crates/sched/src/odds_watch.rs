//! Whether what was admitted by odds is kept: late requests and costs, held against what was
//! said of them.
//!
//! Two tests, neither of which is duller for what was good for long. They take the odds and the
//! distribution for true, and each request for itself.
//!
//! *Late requests* are added up for each magnitude of odds by itself, so that neither rare nor
//! frequent ones are judged by the odds of others, and for each of [`TIMES`] by itself: a request
//! with odds `p` adds `log2 r` where it is late, always takes `(r - 1) p log2 e` away, and a sum is
//! never below zero (CUSUM: Page, "Continuous inspection schemes", 1954). At [`BITS`] the odds are
//! broken: it is that much likelier that requests are late `r` times as often. Whatever came before
//! a sum was zero does not count, so a break is noticed as soon after years as at first. As long as
//! the odds are true, `2^sum` is expected to be one at the most for each request from which on it is
//! looked at; so of `n` requests less than `n / 2^BITS` alarms come of each sum (Lorden, "Procedures
//! for reacting to a change in distribution", 1971): less than one in 10^15 requests. Odds of which
//! the truth is less than a fifth worse are not seen to be wrong.
//!
//! At the sum of *costs* it is looked at whenever their number since the last beginning is a power of
//! two, and after [`WINDOW`] of them it begins anew; broken is what would be a surprise of
//! [`SURPRISE`] bits: once in 10^9 such spells or less. That costs are longer than was measured,
//! which is why requests are late, is seen after some hundreds.

use crate::chance::{Chance, LOG2_E};
use crate::statistical::{Costs, StatisticalTask};
use crate::task::{Odds, Task};
use alloc::collections::BTreeMap;
use units::Duration;

/// So many bits are too much of a surprise.
const SURPRISE: u128 = 44;
/// So many costs are summed up.
const WINDOW: u64 = 1 << 16;

/// At so many bits the odds are broken.
const BITS: u128 = 56;
/// Units of a bit in [`TIMES`], and of a sum: those of a [`Chance`] as well.
const UNIT: u32 = 12;
/// How much more often than is said requests may be late, `r`: its logarithm to the base 2, and
/// `(r - 1) log2 e` rounded up, in units of 2^-12.
const TIMES: [(u128, u128); 14] = [
    (1 << 10, 1_119),
    (1 << 11, 2_448),
    times(1),
    times(2),
    times(3),
    times(4),
    times(6),
    times(8),
    times(11),
    times(14),
    times(18),
    times(22),
    times(26),
    times(30),
];

const fn times(log: u32) -> (u128, u128) {
    ((log as u128) << UNIT, ((1 << log) - 1) * LOG2_E)
}

/// Of the requests with odds of about the same: a sum for each of [`TIMES`].
#[derive(Clone, Debug, Default)]
struct Magnitude([u128; TIMES.len()]);

impl Magnitude {
    /// A request has ended. Gives the highest sum, in whole bits.
    fn add(&mut self, miss: Chance, is_late: bool) -> u128 {
        let each = self.0.iter_mut().zip(TIMES);
        let sums = each.map(|(sum, (log, less))| {
            let gained = if is_late { log << Chance::BITS } else { 0 };
            // Neither is near the end of the numbers: 2^81 where it is broken, and 2^106.
            *sum = sum.saturating_add(gained).saturating_sub(miss.bits() * less);
            *sum >> (UNIT + Chance::BITS)
        });
        sums.max().unwrap_or(0)
    }
}

/// What was seen of the requests of one disk that may be late now and then.
#[derive(Clone, Debug, Default)]
pub struct OddsWatch {
    late: u64,
    requests: u64,
    /// Of those that there are.
    magnitudes: BTreeMap<u8, Magnitude>,
    sum: u128,
    stated: Costs,
    in_window: u64,
    broken: Option<BrokenOdds>,
}

/// What is not as it was said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BrokenOdds {
    /// More requests are late.
    Late,
    /// Requests cost more than what was measured says.
    Costs,
}

impl OddsWatch {
    /// A request of such a task has ended, which took so long.
    pub fn ended(&mut self, odds: &Odds, took: Duration, is_late: bool) {
        self.requests += 1;
        self.late += u64::from(is_late);
        let at = odds.miss.per_billion().max(1).ilog2() as u8;
        let alike = self.magnitudes.entry(at).or_default();
        if alike.add(odds.miss, is_late) >= BITS {
            self.broken = self.broken.or(Some(BrokenOdds::Late));
        }
        let task = Task::new(odds.most, odds.most, odds.most);
        self.stated.add(&StatisticalTask { task, mean: odds.mean, deviation: odds.deviation }, 1);
        self.sum += u128::from(took.as_nanos());
        self.in_window += 1;
        if self.in_window.is_power_of_two() {
            let over = self.sum.saturating_sub(self.stated.mean);
            if over > 0 && self.stated.sixteenths(over) >= 16 * SURPRISE {
                self.broken = self.broken.or(Some(BrokenOdds::Costs));
            }
        }
        if self.in_window >= WINDOW {
            (self.sum, self.stated, self.in_window) = (0, Costs::default(), 0);
        }
    }

    /// Other tasks have odds than before. What was found broken was so of the former ones; counts
    /// in which nothing was found go on, since each request is held against its own odds.
    pub fn tasks_changed(&mut self) {
        if self.broken.is_some() {
            *self = Self::default();
        }
    }

    /// How many have ended.
    pub fn requests(&self) -> u64 {
        self.requests
    }

    /// How many of them were late.
    pub fn late(&self) -> u64 {
        self.late
    }

    /// What was found first not to be as it was said.
    pub fn broken(&self) -> Option<BrokenOdds> {
        self.broken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether each of a row of requests is late that are so once in so many times.
    fn draws(once_in: u64, mut seed: u64) -> impl Iterator<Item = bool> {
        core::iter::repeat_with(move || {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            (u128::from(seed) * u128::from(once_in)) >> 64 == 0
        })
    }

    /// How many alarms come of true odds, with so low a threshold that there are some: of each sum
    /// less than is stated.
    #[test]
    fn true_odds_raise_no_more_alarms_than_is_stated() {
        for (once_in, bits, requests) in
            [(5, 4, 200_000), (20, 8, 1_000_000), (1_000, 8, 4_000_000), (1_000, 12, 8_000_000)]
        {
            let (miss, mut alarms) = (Chance::one_in(once_in), 0);
            let mut alike = Magnitude::default();
            for is_late in draws(once_in, 88_172_645_463_325_252).take(requests) {
                if alike.add(miss, is_late) >= bits {
                    (alarms, alike) = (alarms + 1, Magnitude::default());
                }
            }
            let stated = (requests * TIMES.len()) >> bits;
            assert!(alarms <= stated, "once in {once_in}, {bits} bits: {alarms}, {stated} stated");
            assert!(bits > 8 || alarms > 0, "there are some to be counted");
        }
    }

    /// What is stated of the threshold that holds.
    const _: () = assert!((1 << BITS) / TIMES.len() as u128 > 1_000_000_000_000_000);
}
