//! A distribution of times, kept in little memory.
//!
//! A value is counted in one of 16 equal parts of its power of two, so that a
//! quantile is at most a sixteenth above the truth. The maximum is exact.

use crate::Duration;
use alloc::vec::Vec;

const PARTS_LOG2: u32 = 4;
const BUCKETS: usize = (64 - PARTS_LOG2 as usize + 1) << PARTS_LOG2;

/// A distribution of times. Takes no memory until something is counted.
#[derive(Clone, Debug, Default)]
pub struct Distribution {
    counts: Vec<u64>,
    count: u64,
    max: Duration,
}

fn bucket(ns: u64) -> usize {
    let power = 63 - (ns | 1).leading_zeros();
    if power < PARTS_LOG2 {
        return ns as usize;
    }
    let shift = power - PARTS_LOG2;
    // The leading one adds a whole set of parts to the shift's.
    ((shift as usize) << PARTS_LOG2) + (ns >> shift) as usize
}

/// The largest value that is counted in a bucket.
fn largest(bucket: usize) -> u64 {
    let parts = 1usize << PARTS_LOG2;
    if bucket < 2 * parts {
        return bucket as u64;
    }
    let shift = (bucket >> PARTS_LOG2) - 1;
    let value = (bucket - (shift << PARTS_LOG2)) as u64;
    (value << shift) | ((1 << shift) - 1)
}

impl Distribution {
    /// Counts one value.
    pub fn record(&mut self, value: Duration) {
        self.counts.resize(BUCKETS, 0);
        self.counts[bucket(value.as_nanos())] += 1;
        self.count += 1;
        self.max = self.max.max(value);
    }

    /// Counts all that another one has counted.
    pub fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        self.counts.resize(BUCKETS, 0);
        self.counts.iter_mut().zip(&other.counts).for_each(|(mine, theirs)| *mine += theirs);
        self.count += other.count;
        self.max = self.max.max(other.max);
    }

    /// How many values were counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The largest value.
    pub fn max(&self) -> Duration {
        self.max
    }

    /// A value that at least `ppm` millionths of those counted do not exceed; at
    /// most a sixteenth above the smallest such. Zero where nothing was counted.
    pub fn quantile(&self, ppm: u64) -> Duration {
        let wanted = (u128::from(self.count) * u128::from(ppm)).div_ceil(1_000_000);
        let mut seen = 0u128;
        for (bucket, &count) in self.counts.iter().enumerate() {
            seen += u128::from(count);
            if seen >= wanted && count > 0 {
                return Duration::from_nanos(largest(bucket)).min(self.max);
            }
        }
        self.max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_has_a_bucket_whose_largest_is_close() {
        let mut value = 0u64;
        while value < u64::MAX / 2 {
            let largest = largest(bucket(value));
            assert!(largest >= value && largest - value <= value / 16, "{value}: {largest}");
            value += value / 20 + 1;
        }
        assert_eq!(largest(bucket(u64::MAX)), u64::MAX);
    }

    #[test]
    fn quantiles_are_those_of_the_values_within_a_sixteenth() {
        let mut distribution = Distribution::default();
        (1..=10_000u64).for_each(|us| distribution.record(Duration::from_micros(us)));
        for (ppm, us) in [(500_000, 5_000), (990_000, 9_900), (1_000_000, 10_000)] {
            let quantile = distribution.quantile(ppm).as_micros();
            assert!(quantile >= us && quantile <= us + us / 16, "{ppm}: {quantile}");
        }
        assert_eq!(distribution.max(), Duration::from_millis(10));
        assert_eq!(Distribution::default().quantile(990_000), Duration::ZERO);
    }

    #[test]
    fn merging_counts_everything_once() {
        let (mut one, mut two) = (Distribution::default(), Distribution::default());
        one.record(Duration::from_micros(1));
        two.record(Duration::from_micros(9));
        one.merge(&two);
        assert_eq!((one.count(), one.max()), (2, Duration::from_micros(9)));
    }
}
