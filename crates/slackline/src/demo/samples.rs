//! Durations that were measured, kept one by one: a demo has thousands, not
//! millions, and an exact quantile needs no explanation.

use units::Duration;

/// Measured durations, in no particular order.
#[derive(Clone, Debug, Default)]
pub struct Samples(Vec<Duration>);

impl Samples {
    /// Adds one.
    pub fn add(&mut self, sample: Duration) {
        self.0.push(sample);
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The smallest sample that at least `per_mille` of 1,000 do not exceed
    /// (nearest rank); zero where there are none.
    pub fn quantile(&self, per_mille: u64) -> Duration {
        assert!((1..=1_000).contains(&per_mille), "a quantile of 1,000 parts");
        let sorted = self.sorted();
        let rank = (sorted.len() as u64 * per_mille).div_ceil(1_000);
        rank.checked_sub(1).map_or(Duration::ZERO, |rank| sorted[rank as usize])
    }

    /// The largest; zero where there are none.
    pub fn max(&self) -> Duration {
        self.0.iter().copied().max().unwrap_or(Duration::ZERO)
    }

    /// How many are longer than `limit`.
    pub fn above(&self, limit: Duration) -> u64 {
        self.0.iter().filter(|&&sample| sample > limit).count() as u64
    }

    /// All, the shortest first.
    pub fn sorted(&self) -> Vec<Duration> {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        sorted
    }
}

impl<'a> FromIterator<&'a Samples> for Samples {
    fn from_iter<I: IntoIterator<Item = &'a Samples>>(parts: I) -> Self {
        Self(parts.into_iter().flat_map(|part| part.0.iter().copied()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_samples_and_never_below_their_share() {
        let mut samples = Samples::default();
        assert_eq!((samples.quantile(500), samples.max()), (Duration::ZERO, Duration::ZERO));
        (1..=1_000).rev().for_each(|us| samples.add(Duration::from_micros(us)));
        assert_eq!(samples.quantile(500).as_micros(), 500);
        assert_eq!(samples.quantile(999).as_micros(), 999);
        assert_eq!(samples.quantile(1_000), samples.max());
        assert_eq!(samples.above(Duration::from_micros(990)), 10);
        let few: Samples = [&samples, &samples].into_iter().collect();
        assert_eq!(few.len(), 2_000);
    }
}
