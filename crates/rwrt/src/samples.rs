//! Durations that were measured, kept one by one: a run has at most some millions, and an
//! exact share needs no explanation.

use serde::Serialize;
use units::Duration;

/// Measured durations.
#[derive(Clone, Debug, Default)]
pub struct Samples(Vec<Duration>);

impl Samples {
    /// Adds one.
    pub fn add(&mut self, sample: Duration) {
        self.0.push(sample);
    }

    /// Adds all of another.
    pub fn merge(&mut self, other: &Self) {
        self.0.extend_from_slice(&other.0);
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The largest; zero where there are none.
    pub fn max(&self) -> Duration {
        self.0.iter().copied().max().unwrap_or_default()
    }

    /// How many are longer than `limit`.
    pub fn above(&self, limit: Duration) -> u64 {
        self.0.iter().filter(|&&sample| sample > limit).count() as u64
    }

    /// In numbers, for programs and for tables.
    pub fn figures(&self) -> Figures {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let at = |per_mille: usize| {
            let rank = (sorted.len() * per_mille).div_ceil(1_000);
            rank.checked_sub(1).map_or(Duration::ZERO, |rank| sorted[rank]).as_nanos()
        };
        let sum: u128 = sorted.iter().map(|sample| u128::from(sample.as_nanos())).sum();
        let mean = sum / sorted.len().max(1) as u128;
        Figures {
            count: sorted.len() as u64,
            mean_ns: mean as u64,
            p50_ns: at(500),
            p99_ns: at(990),
            p999_ns: at(999),
            max_ns: at(1_000),
        }
    }

    /// For a cumulative proportional plot: milliseconds.
    pub fn millis(&self) -> impl Iterator<Item = f64> + '_ {
        self.0.iter().map(|sample| sample.as_millis_f64())
    }
}

/// A distribution in numbers, in nanoseconds. A quantile is the smallest sample that so
/// many do not exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Figures {
    /// How many samples.
    pub count: u64,
    /// Their mean.
    pub mean_ns: u64,
    /// Half of them took no longer.
    pub p50_ns: u64,
    /// 99 % of them took no longer.
    pub p99_ns: u64,
    /// 99.9 % of them took no longer.
    pub p999_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_of_samples_and_none_are_zeros() {
        let mut samples = Samples::default();
        assert_eq!(samples.figures().max_ns, 0);
        (1..=1_000).rev().for_each(|us| samples.add(Duration::from_micros(us)));
        let figures = samples.figures();
        assert_eq!((figures.p50_ns, figures.p99_ns), (500_000, 990_000));
        assert_eq!((figures.p999_ns, figures.max_ns), (999_000, 1_000_000));
        assert_eq!((figures.mean_ns, figures.count), (500_500, 1_000));
        assert_eq!(samples.above(Duration::from_micros(990)), 10);
        let twice = samples.clone();
        samples.merge(&twice);
        assert_eq!((samples.len(), samples.max()), (2_000, Duration::from_millis(1)));
    }
}
