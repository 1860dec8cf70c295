//! A cost that grows with the size alone: `fixed + size / rate`.

use crate::Error;
use crate::error::ensure;
use units::{Bytes, Duration, Outside, Rate};

/// A straight line over the size of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// What every transfer costs.
    pub fixed: Duration,
    /// How fast its bytes go by on top of that.
    pub rate: Rate,
}

impl Line {
    /// The cost of a transfer of `size`.
    pub fn cost(&self, size: Bytes) -> Duration {
        self.fixed.saturating_add(self.rate.time_for(size))
    }

    /// The lowest line above all `samples` (size, time), measured at their
    /// average size: no sample took longer than its cost on the line.
    ///
    /// Such a line touches two neighbours of the upper hull of the samples, or
    /// one of them and is level; hulls are small, so all pairs are tried.
    ///
    /// # Errors
    /// When there are no samples, or none with a size above zero.
    pub fn above(samples: &[(Bytes, Duration)]) -> Result<Self, Error> {
        ensure!(!samples.is_empty(), "no samples to draw a line above; measure some first");
        let average: u128 = samples.iter().map(|(size, _)| u128::from(size.get())).sum::<u128>()
            / samples.len() as u128;
        ensure!(average > 0, "all samples are empty; measure transfers of some bytes");
        let average = Bytes::new(u64::try_from(average).expect("no more than the largest"));
        let slowest = samples.iter().map(|&(_, time)| time).max().expect("there are samples");
        let level = Self { fixed: slowest, rate: Rate::OUTSIDE_MAX };
        let mut best = level;
        for (index, &one) in samples.iter().enumerate() {
            for &two in &samples[index + 1..] {
                let line = Self::through(one, two).raised_above(samples);
                if line.cost(average) < best.cost(average) {
                    best = line;
                }
            }
        }
        Ok(best)
    }

    /// A line with the slope between two samples; level where size does not cost.
    fn through(one: (Bytes, Duration), two: (Bytes, Duration)) -> Self {
        let (small, large) = if one.0 <= two.0 { (one, two) } else { (two, one) };
        let (size, time) = (large.0.saturating_sub(small.0), large.1.saturating_sub(small.1));
        let rate = Rate::of(size, time);
        let rate = if rate.is_zero() { Rate::OUTSIDE_MAX } else { rate };
        Self { fixed: Duration::ZERO, rate }
    }

    fn raised_above(mut self, samples: &[(Bytes, Duration)]) -> Self {
        let over =
            samples.iter().map(|&(size, time)| time.saturating_sub(self.rate.time_for(size)));
        self.fixed = over.max().unwrap_or_default();
        self
    }

    /// The same line `percent` higher at every size.
    pub fn stretched(self, percent: u64) -> Self {
        let rate = u128::from(self.rate.get()) * 100 / u128::from(100 + percent);
        Self {
            fixed: self.fixed + self.fixed * percent / 100,
            rate: Rate::per_second(u64::try_from(rate).expect("a smaller rate").max(1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn no_sample_lies_above_the_line_and_some_lie_on_it() {
        let mut random = 7u64;
        for _ in 0..200 {
            let samples: Vec<_> = (0..12)
                .map(|_| {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let size = Bytes::kib(4) * (1 + (random >> 33) % 256);
                    let noise = Duration::from_micros((random >> 20) % 900);
                    (
                        size,
                        Duration::from_micros(80)
                            + Rate::per_second(500 << 20).time_for(size)
                            + noise,
                    )
                })
                .collect();
            let line = Line::above(&samples).unwrap();
            let over = samples.iter().map(|&(size, time)| line.cost(size).checked_sub(time));
            let gaps: Vec<_> = over.map(|gap| gap.expect("below the line")).collect();
            assert!(gaps.iter().any(|gap| gap.is_zero()), "the line could be lower");
        }
    }

    #[test]
    fn an_exact_line_is_found_again() {
        let line = Line { fixed: Duration::from_micros(100), rate: Rate::per_second(1 << 30) };
        let samples: Vec<_> = [4u64, 64, 1_024]
            .map(|kib| (Bytes::kib(kib), line.cost(Bytes::kib(kib))))
            .into_iter()
            .collect();
        let found = Line::above(&samples).unwrap();
        for kib in [4, 16, 1_024] {
            let (a, b) = (found.cost(Bytes::kib(kib)), line.cost(Bytes::kib(kib)));
            assert!(a.saturating_sub(b) < Duration::from_micros(1), "{a:?} for {b:?}");
            assert!(b.saturating_sub(a) < Duration::from_micros(1), "{a:?} for {b:?}");
        }
        let higher = found.stretched(50);
        assert!(higher.cost(Bytes::MIB) >= line.cost(Bytes::MIB) + line.cost(Bytes::MIB) / 2);
    }
}
