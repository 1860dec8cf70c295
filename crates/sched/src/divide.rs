//! Division by a number that stays the same, as a multiplication.
//!
//! The analysis divides by the same few periods millions of times.

/// A divisor with its reciprocal. Invariant: `by > 0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Divisor {
    by: u64,
    reciprocal: u64,
}

/// Dividends are smaller than this, so that the estimate is short by at most 1.
const DIVIDEND_MAX: u64 = 1 << 60;

impl Divisor {
    pub(crate) fn new(by: u64) -> Self {
        Self { by, reciprocal: u64::MAX / by }
    }

    pub(crate) fn get(self) -> u64 {
        self.by
    }

    /// How often the number fits, in units of 2^-64, rounded down.
    pub(crate) fn reciprocal(self) -> u64 {
        self.reciprocal
    }

    /// Quotient and remainder. With `m = floor((2^64 - 1) / by) >= 2^64 / by - 1`,
    /// `n * m / 2^64 >= n / by - n / 2^64`, which is short of the quotient by
    /// less than one and a sixteenth: one correction is enough.
    #[inline]
    pub(crate) fn divide(self, n: u64) -> (u64, u64) {
        debug_assert!(n < DIVIDEND_MAX, "beyond the horizon");
        let estimate = ((u128::from(n) * u128::from(self.reciprocal)) >> 64) as u64;
        let rest = n - estimate * self.by;
        let short = rest >= self.by;
        (estimate + u64::from(short), if short { rest - self.by } else { rest })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reciprocal_divides_as_the_division_does() {
        let numbers = [1u64, 2, 3, 7, 10, 63, 64, 65, 999, 1 << 20, (1 << 31) - 1, 1 << 50];
        for by in numbers {
            let divisor = Divisor::new(by);
            for base in numbers.map(|n| n.saturating_mul(by)).into_iter().chain(numbers) {
                for n in base.saturating_sub(2)..=base.saturating_add(2) {
                    let n = n.min(DIVIDEND_MAX - 1);
                    assert_eq!(divisor.divide(n), (n / by, n % by), "{n} / {by}");
                }
            }
        }
    }
}
