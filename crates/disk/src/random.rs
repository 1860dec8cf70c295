//! Variation that repeats: the same seed gives the same sequence everywhere.
//!
//! A simulated disk must vary as real ones do, and a run must be repeatable to
//! the nanosecond; so variation comes from a counter and a mixing function
//! (splitmix64; Steele, Lea and Flood 2014), never from the machine.

use units::Duration;

/// A sequence of numbers that look random.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `n`, each as likely; 0 where `n` is 0.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(n)) >> 64) as u64
    }

    /// A span up to `most`, each as likely. Nothing is drawn where it is zero.
    pub(crate) fn up_to(&mut self, most: Duration) -> Duration {
        if most.is_zero() {
            return most;
        }
        Duration::from_nanos(self.below(most.as_nanos() + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_repeat_with_their_seed_and_fill_their_range() {
        let (mut one, mut two) = (Random::new(7), Random::new(7));
        let mut seen = [0u32; 10];
        for _ in 0..10_000 {
            let n = one.below(10);
            assert_eq!(n, two.below(10));
            seen[n as usize] += 1;
        }
        assert!(seen.iter().all(|&count| (900..1_100).contains(&count)), "{seen:?}");
        assert!(one.up_to(Duration::from_nanos(1)) <= Duration::from_nanos(1));
    }
}
