//! Probabilities in integers, rounded to the safe side.

use core::fmt;

/// A probability, in units of 2^-63.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Chance(u64);

/// 2^(-j/16) in units of 2^-63, rounded up.
const SIXTEENTHS: [u64; 16] = [
    0x8000000000000000,
    0x7a92be8a92436617,
    0x75606373ee921c98,
    0x70666f76154a7089,
    0x6ba27e656b4eb57b,
    0x6712460a8fc24072,
    0x62b39508aa836d6f,
    0x5e8451cfac061b60,
    0x5a827999fcef3243,
    0x56ac1f752150a564,
    0x52ff6b54d8a89c76,
    0x4f7a993048d088d7,
    0x4c1bf828c6dc54b8,
    0x48e1e9b9d588e19c,
    0x45cae0f1f545eb74,
    0x42d561b3e6243d8b,
];

impl Chance {
    /// It does not happen.
    pub const NEVER: Self = Self(0);
    /// It happens.
    pub const ALWAYS: Self = Self(1 << 63);
    /// The least that is not never.
    pub(crate) const LEAST: Self = Self(1);

    /// Once in so many times, rounded down.
    ///
    /// # Panics
    /// Where `times` is zero.
    pub const fn one_in(times: u64) -> Self {
        Self((1 << 63) / times)
    }

    /// So many parts per billion, rounded down; at most all.
    pub const fn of_billion(parts: u64) -> Self {
        let parts = if parts > 1_000_000_000 { 1_000_000_000 } else { parts };
        Self(((parts as u128) * (1 << 63) / 1_000_000_000) as u64)
    }

    /// Parts per billion, rounded up.
    pub fn per_billion(self) -> u64 {
        ((u128::from(self.0) * 1_000_000_000).div_ceil(1 << 63)) as u64
    }

    /// In how many bits [`Chance::bits`] counts: always is two to their power.
    pub(crate) const BITS: u32 = 63;

    /// As a number.
    pub(crate) fn bits(self) -> u128 {
        self.0.into()
    }

    /// 2 to the power of minus so many sixteenths, rounded up.
    pub(crate) fn of_sixteenths(sixteenths: u128) -> Self {
        let (whole, part) = (sixteenths / 16, (sixteenths % 16) as usize);
        Self(if whole > 62 { 1 } else { (SIXTEENTHS[part] >> whole) + 1 }.min(1 << 63))
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        Self((self.0 + other.0).min(1 << 63))
    }
}

impl fmt::Display for Chance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NEVER => write!(f, "never"),
            Self(chance) => write!(f, "once in {}", (1u64 << 63) / chance),
        }
    }
}

/// The logarithm of e to the base 2 in units of 2^-12, rounded up.
pub(crate) const LOG2_E: u128 = 5_910;

/// The logarithm of a number above zero to the base 2 in units of 2^-12: no more than that, and
/// less by at most two units.
pub(crate) fn log2_below(number: u128) -> u128 {
    let zeros = number.leading_zeros();
    let mut mantissa = (number << zeros) >> 64;
    let mut log = u128::from(127 - zeros);
    for _ in 0..12 {
        mantissa = (mantissa * mantissa) >> 63;
        let is_twice = mantissa >> 64;
        mantissa >>= is_twice;
        log = log << 1 | is_twice;
    }
    log
}
