//! Numbers that look random and are the same everywhere.

use units::Duration;

/// SplitMix64 (Steele, Lea and Flood 2014): small, fast, good enough to choose
/// test cases; every seed gives another sequence.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The sequence of this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }
    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    /// A number below `n`, which is not zero.
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(n)) >> 64) as u64
    }
    /// A number from `low` to `high`, both possible.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }
    /// True `percent` times of a hundred.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
    /// One of these.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u64) as usize]
    }
    /// A span with an exponential distribution, by comparisons alone (von Neumann
    /// 1951), so that it is the same on every machine.
    pub fn exponential(&mut self, mean: Duration) -> Duration {
        for whole in 0.. {
            let first = self.bits() >> 32;
            let (mut last, mut falls) = (first, 1);
            loop {
                let next = self.bits() >> 32;
                if next >= last {
                    break;
                }
                (last, falls) = (next, falls + 1);
            }
            if falls % 2 == 1 {
                let part = (u128::from(mean.as_nanos()) * u128::from(first)) >> 32;
                return mean * whole + Duration::from_nanos(part as u64);
            }
        }
        unreachable!("the loop does not end")
    }
    /// A span from zero to `most`.
    pub fn span(&mut self, most: Duration) -> Duration {
        Duration::from_nanos(self.between(0, most.as_nanos()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponential_spans_have_the_mean_and_the_tail_of_their_distribution() {
        let (mut random, mean) = (Random::new(1), Duration::from_millis(10));
        let spans: Vec<_> = (0..100_000).map(|_| random.exponential(mean)).collect();
        let average = spans.iter().copied().sum::<Duration>() / 100_000;
        assert!(average.as_micros().abs_diff(10_000) < 150, "{average}");
        // exp(-3) is 4.98 %.
        let long = spans.iter().filter(|&&span| span > mean * 3).count();
        assert!(long.abs_diff(4_979) < 300, "{long}");
    }
}
