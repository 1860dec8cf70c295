//! Many runs at once, and what they say together.
//!
//! Invariants: results come in the order of what they were made from, so that they do
//! not depend on how many workers there are or who was quicker; sums are taken in that
//! order, with additions, multiplications, divisions and square roots alone, so that they
//! are the same to the bit on every machine.

use std::num::NonZero;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// As many workers as this machine has processors for.
pub fn workers() -> NonZero<usize> {
    std::thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN)
}

/// What `run` makes of each of `items`, in their order, by up to so many threads. Each
/// takes the next item as soon as it is done with one, so that long runs do not hold up
/// short ones.
///
/// # Panics
/// Where `run` does.
pub fn in_parallel<I: Sync, T: Send>(
    items: &[I],
    workers: NonZero<usize>,
    run: impl Fn(&I) -> T + Sync,
) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let results: Vec<Mutex<Option<T>>> = items.iter().map(|_| Mutex::new(None)).collect();
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(at) else { return };
            let result = run(item);
            *results[at].lock().expect("nobody panics with this lock") = Some(result);
        }
    };
    std::thread::scope(|scope| {
        // The caller works, too.
        for _ in 1..workers.get().min(items.len()) {
            scope.spawn(work);
        }
        work();
    });
    let done = |result: Mutex<Option<T>>| result.into_inner().ok().flatten();
    results.into_iter().map(|result| done(result).expect("every item was run")).collect()
}

/// What `run` makes of the seeds from `first` on, `count` of them.
pub fn for_seeds<T: Send>(
    first: u64,
    count: u64,
    workers: NonZero<usize>,
    run: impl Fn(u64) -> T + Sync,
) -> Vec<T> {
    let seeds: Vec<u64> = (first..first + count).collect();
    in_parallel(&seeds, workers, |&seed| run(seed))
}

/// How sure an interval is to hold the mean that endless runs would have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Confidence {
    /// 95 of 100 such intervals do.
    Percent95,
    /// 99 of 100 such intervals do.
    Percent99,
}

/// A mean of independent runs, and how far it can be trusted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The mean; zero of no runs.
    pub mean: f64,
    /// Of one run; zero of less than two.
    pub standard_deviation: f64,
    /// How many runs there were.
    pub count: usize,
}

impl Estimate {
    /// From one figure of each run.
    pub fn of(runs: &[f64]) -> Self {
        let count = runs.len() as f64;
        let mean = runs.iter().sum::<f64>() / count.max(1.0);
        let squares: f64 = runs.iter().map(|run| (run - mean) * (run - mean)).sum();
        let standard_deviation = (squares / (count - 1.0).max(1.0)).sqrt();
        Self { mean, standard_deviation, count: runs.len() }
    }

    /// From the difference of each run to its fellow, which had the same seed: what both
    /// had in common falls out. The second is taken from the first.
    ///
    /// # Panics
    /// Where one is without its fellow.
    pub fn of_differences(runs: &[f64], fellows: &[f64]) -> Self {
        assert_eq!(runs.len(), fellows.len(), "a run without its fellow");
        let differences: Vec<f64> = runs.iter().zip(fellows).map(|(run, it)| run - it).collect();
        Self::of(&differences)
    }

    /// Half of the interval around the mean, by Student's t (1908); infinite of less
    /// than two runs.
    pub fn margin(&self, confidence: Confidence) -> f64 {
        match self.count {
            0 | 1 => f64::INFINITY,
            count => {
                let error = self.standard_deviation / (count as f64).sqrt();
                students_t(count - 1, confidence) * error
            }
        }
    }
}

/// The two-sided quantile of Student's distribution with so many degrees of freedom: from
/// a table, and beyond it by its expansion around the normal one (Abramowitz and Stegun
/// 1964, 26.7.5), which is right to five figures there.
fn students_t(freedom: usize, confidence: Confidence) -> f64 {
    const TABLE: [[f64; 12]; 2] = [
        [
            12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281,
            2.2010, 2.1788,
        ],
        [
            63.6567, 9.9248, 5.8409, 4.6041, 4.0321, 3.7074, 3.4995, 3.3554, 3.2498, 3.1693,
            3.1058, 3.0545,
        ],
    ];
    let (row, normal) = match confidence {
        Confidence::Percent95 => (0, 1.959_964),
        Confidence::Percent99 => (1, 2.575_829),
    };
    if let Some(&exact) = TABLE[row].get(freedom - 1) {
        return exact;
    }
    let (n, z) = (freedom as f64, normal);
    let (z3, z5, z7) = (z * z * z, z * z * z * z * z, z * z * z * z * z * z * z);
    z + (z3 + z) / (4.0 * n)
        + (5.0 * z5 + 16.0 * z3 + 3.0 * z) / (96.0 * n * n)
        + (3.0 * z7 + 19.0 * z5 + 17.0 * z3 - 15.0 * z) / (384.0 * n * n * n)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;

    fn workers(count: usize) -> NonZero<usize> {
        NonZero::new(count).expect("not none")
    }

    #[test]
    fn results_come_in_order_whatever_the_workers() {
        // Early seeds take longest, so that many workers end out of order.
        let run = |seed: u64| {
            let mut random = Random::new(seed);
            (0..(100 - seed) * 1_000).fold(0u64, |sum, _| sum.wrapping_add(random.bits()))
        };
        let alone = for_seeds(7, 60, workers(1), run);
        for count in [2, 3, 8, 100] {
            assert_eq!(for_seeds(7, 60, workers(count), run), alone, "{count} workers");
        }
        assert_eq!(alone[3], run(10));
        assert!(for_seeds(7, 0, workers(3), run).is_empty());
    }

    /// The share of Student's distribution between `-t` and `t`, by Simpson's rule.
    fn share_within(freedom: usize, t: f64) -> f64 {
        let n = freedom as f64;
        let density = |x: f64| (1.0 + x * x / n).powf(-(n + 1.0) / 2.0);
        let integral = |to: f64| {
            let steps = 200_000;
            let width = to / f64::from(steps);
            let inner: f64 = (1..steps)
                .map(|at| density(width * f64::from(at)) * if at % 2 == 1 { 4.0 } else { 2.0 })
                .sum();
            (density(0.0) + inner + density(to)) * width / 3.0
        };
        // With one degree of freedom the tail from here on is 0.00006 of all.
        integral(t) / integral(10_000.0)
    }

    #[test]
    fn quantiles_are_those_of_students_distribution() {
        for freedom in [1, 2, 3, 4, 7, 9, 12, 13, 20, 31, 100] {
            for (confidence, share) in
                [(Confidence::Percent95, 0.95), (Confidence::Percent99, 0.99)]
            {
                let within = share_within(freedom, students_t(freedom, confidence));
                assert!((within - share).abs() < 1e-4, "{freedom} {confidence:?} {within}");
            }
        }
    }

    #[test]
    fn intervals_hold_the_mean_as_often_as_they_say() {
        let mut random = Random::new(5);
        // Sums of twelve even ones are nearly normal.
        let mut one = || (0..12).map(|_| random.below(1_000_000) as f64 / 1e6).sum::<f64>();
        let mut outside = [0, 0];
        for _ in 0..20_000 {
            let runs: Vec<f64> = (0..5).map(|_| one()).collect();
            let estimate = Estimate::of(&runs);
            for (at, confidence) in
                [Confidence::Percent95, Confidence::Percent99].iter().enumerate()
            {
                outside[at] +=
                    u64::from((estimate.mean - 6.0).abs() > estimate.margin(*confidence));
            }
        }
        assert!(outside[0].abs_diff(1_000) < 100 && outside[1].abs_diff(200) < 50, "{outside:?}");
    }

    #[test]
    fn what_fellows_have_in_common_falls_out() {
        let (runs, fellows) = ([10.0, 20.0, 31.0], [9.0, 19.0, 30.0]);
        let difference = Estimate::of_differences(&runs, &fellows);
        assert_eq!(
            (difference.mean, difference.standard_deviation, difference.count),
            (1.0, 0.0, 3)
        );
        assert!(Estimate::of(&runs).margin(Confidence::Percent95) > 20.0);
        assert!(Estimate::of(&[1.0]).margin(Confidence::Percent95).is_infinite());
        assert_eq!(Estimate::of(&[]).mean, 0.0);
    }
}
