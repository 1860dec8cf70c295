//! Statistics that a few wild values cannot move.
//!
//! All in whole nanoseconds. Times from a host are late by chance, never early,
//! and sometimes by milliseconds; so means of raw times appear nowhere.

use alloc::vec::Vec;

/// The middle value, the lower of two; zero of nothing.
pub(super) fn median(values: &[i64]) -> i64 {
    quantile(values, 500)
}

/// The value below which `permille` thousandths lie; zero of nothing.
pub(super) fn quantile(values: &[i64], permille: u64) -> i64 {
    if values.is_empty() {
        return 0;
    }
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let last = sorted.len() as u64 - 1;
    sorted[(last * permille / 1_000) as usize]
}

/// The median distance from the median: a spread that outliers do not widen.
pub(super) fn deviation(values: &[i64]) -> i64 {
    let middle = median(values);
    let apart: Vec<i64> = values.iter().map(|value| (value - middle).abs()).collect();
    median(&apart)
}

/// `value` modulo `turn`, in `-turn/2 ..= turn/2`.
pub(super) fn centred(value: i64, turn: i64) -> i64 {
    let inside = value.rem_euclid(turn);
    if inside > turn / 2 { inside - turn } else { inside }
}

/// What is known of a quantity that was never seen itself, only whether it is at
/// most some value: its distribution, by isotonic regression (pool adjacent
/// violators; Ayer et al. 1955).
pub(super) struct Hidden {
    /// Their shares rise.
    pools: Vec<Pool>,
}

/// Neighbouring observations with one share.
#[derive(Clone, Copy)]
struct Pool {
    first: i64,
    last: i64,
    /// How many found the quantity at most their value.
    within: u64,
    count: u64,
}

impl Hidden {
    /// From facts (`value`, "the quantity was at most `value`").
    pub fn new(facts: &[(i64, bool)]) -> Self {
        let mut sorted = facts.to_vec();
        sorted.sort_unstable();
        let mut pools: Vec<Pool> = Vec::new();
        for &(value, within) in &sorted {
            pools.push(Pool { first: value, last: value, within: u64::from(within), count: 1 });
            while let [.., a, b] = pools[..] {
                // The share of the later pool must exceed that of the earlier.
                if a.within * b.count < b.within * a.count {
                    break;
                }
                pools.pop();
                let last = pools.len() - 1;
                pools[last] = Pool {
                    first: a.first,
                    last: b.last,
                    within: a.within + b.within,
                    count: a.count + b.count,
                };
            }
        }
        Self { pools }
    }

    /// What is known of the distribution. A rise of the share between two pools lies
    /// half-way between them; the outermost twentieths count as if they lay where
    /// the rest ends, so that one late answer widens nothing.
    pub fn moments(&self) -> Moments {
        const WHOLE: i128 = 1_000_000;
        const TAIL: i128 = WHOLE / 20;
        // Shares in millionths, without the tails.
        let share = |pool: &Pool| match i128::from(pool.within) * WHOLE / i128::from(pool.count) {
            share if share < TAIL => 0,
            share if share > WHOLE - TAIL => WHOLE,
            share => share,
        };
        let mut mass: Vec<(i64, i128)> = Vec::new();
        let mut previous: Option<(i64, i128)> = None;
        for pool in &self.pools {
            let (before, share_before) = previous.unwrap_or((pool.first, 0));
            let now = share(pool);
            mass.push((i64::midpoint(before, pool.first), now - share_before));
            previous = Some((pool.last, now));
        }
        // What no observation reached lies at the last.
        let (last, reached) = previous.unwrap_or((0, 0));
        mass.push((last, WHOLE - reached));
        mass.retain(|(_, part)| *part > 0);
        let mean: i128 = mass.iter().map(|&(value, part)| i128::from(value) * part).sum();
        let mean = mean / WHOLE;
        let variance: i128 =
            mass.iter().map(|&(value, part)| (i128::from(value) - mean).pow(2) * part).sum();
        let variance = (variance / WHOLE) as i64;
        let (low, high) = (mass[0].0, mass[mass.len() - 1].0);
        Moments { mean: mean as i64, deviation: variance.isqrt(), low, high }
    }
}

/// A distribution in four numbers.
pub(super) struct Moments {
    pub mean: i64,
    pub deviation: i64,
    pub low: i64,
    pub high: i64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wild_value_moves_no_median() {
        let values = [5, 6, 7, 6, 5, 8_000_000, 6];
        assert_eq!(median(&values), 6);
        assert_eq!(deviation(&values), 1);
        assert_eq!(quantile(&values, 1_000), 8_000_000);
    }

    #[test]
    fn a_turn_has_no_far_side() {
        assert_eq!(centred(99, 100), -1);
        assert_eq!(centred(-99, 100), 1);
        assert_eq!(centred(250, 100), 50);
    }

    /// A hidden quantity uniform in 1000..3000, of which we see only comparisons.
    #[test]
    fn a_hidden_distribution_is_found_from_comparisons() {
        let mut random = 1u64;
        let mut below = |n: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99);
            ((random >> 33) % n) as i64
        };
        let facts: Vec<(i64, bool)> = (0..4_000)
            .map(|_| (below(4_000), 1_000 + below(2_000)))
            .map(|(v, s)| (v, s <= v))
            .collect();
        let Moments { mean, deviation, .. } = Hidden::new(&facts).moments();
        assert!((1_950..2_050).contains(&mean), "{mean}");
        assert!((540..615).contains(&deviation), "{deviation}, in truth 577");
    }
}
