//! Amounts of data and rates of it.

use crate::Duration;
use core::iter::Sum;
use core::ops::{Add, AddAssign, Div, Mul, Rem, Sub, SubAssign};

const NANOS: u128 = 1_000_000_000;

/// An amount of data, or an offset, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(u64);

/// A rate in bytes per second.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Rate(u64);

impl Bytes {
    /// Nothing.
    pub const ZERO: Self = Self(0);
    /// 2^10 bytes.
    pub const KIB: Self = Self(1 << 10);
    /// 2^20 bytes.
    pub const MIB: Self = Self(1 << 20);
    /// 2^30 bytes.
    pub const GIB: Self = Self(1 << 30);
    /// The largest amount.
    pub const MAX: Self = Self(u64::MAX);

    /// An amount of `bytes`.
    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }
    /// An amount of `n` KiB.
    pub const fn kib(n: u64) -> Self {
        Self(n << 10)
    }
    /// An amount of `n` MiB.
    pub const fn mib(n: u64) -> Self {
        Self(n << 20)
    }
    /// The amount in bytes.
    pub const fn get(self) -> u64 {
        self.0
    }
    /// The amount as a length in memory; panics where it does not fit.
    #[track_caller]
    pub fn as_usize(self) -> usize {
        usize::try_from(self.0).expect("more bytes than memory can address")
    }
    /// True for nothing.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
    /// True where this is a whole number of `unit`s.
    pub const fn is_multiple_of(self, unit: Self) -> bool {
        self.0.is_multiple_of(unit.0)
    }
    /// The largest multiple of `unit` that is no larger than this.
    pub const fn round_down(self, unit: Self) -> Self {
        Self(self.0 / unit.0 * unit.0)
    }
    /// The smallest multiple of `unit` that is no smaller than this.
    pub const fn round_up(self, unit: Self) -> Self {
        Self(self.0.div_ceil(unit.0) * unit.0)
    }
    /// How many `unit`s hold this, the last one perhaps partly.
    pub const fn div_ceil(self, unit: Self) -> u64 {
        self.0.div_ceil(unit.0)
    }
    /// The difference, or nothing where `other` is larger.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
    /// The sum, or the largest amount where it is larger.
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
    /// The product, or [`Bytes::MAX`] on overflow.
    pub const fn saturating_mul(self, times: u64) -> Self {
        Self(self.0.saturating_mul(times))
    }
    /// The sum, or `None` on overflow.
    pub const fn checked_add(self, other: Self) -> Option<Self> {
        match self.0.checked_add(other.0) {
            Some(n) => Some(Self(n)),
            None => None,
        }
    }
}

impl Rate {
    /// Nothing per second.
    pub const ZERO: Self = Self(0);

    /// A rate of `bytes` per second.
    pub const fn per_second(bytes: u64) -> Self {
        Self(bytes)
    }
    /// The rate in bytes per second.
    pub const fn get(self) -> u64 {
        self.0
    }
    /// True for nothing per second.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
    /// The time that `amount` takes at this rate, rounded up to a nanosecond;
    /// [`Duration::MAX`] at rate zero or where it does not fit.
    pub fn time_for(self, amount: Bytes) -> Duration {
        if self.0 == 0 {
            return Duration::MAX;
        }
        // Below 18 GB a division of 64 bits does, which is several times as quick.
        let ns = match amount.0.checked_mul(NANOS as u64) {
            Some(product) => product.div_ceil(self.0),
            None => {
                let ns = (u128::from(amount.0) * NANOS).div_ceil(u128::from(self.0));
                u64::try_from(ns).unwrap_or(u64::MAX)
            }
        };
        Duration::from_nanos(ns)
    }
    /// The data that passes in `span` at this rate, rounded down.
    pub fn bytes_in(self, span: Duration) -> Bytes {
        let bytes = u128::from(self.0) * u128::from(span.as_nanos()) / NANOS;
        Bytes(u64::try_from(bytes).unwrap_or(u64::MAX))
    }
    /// The largest power of two that passes in `span` at this rate, but from `least` to
    /// `most`, which are powers of two and not zero.
    pub fn power_of_two_in(self, span: Duration, least: Bytes, most: Bytes) -> Bytes {
        Bytes(1 << self.bytes_in(span).0.clamp(least.0, most.0).ilog2())
    }
    /// The rate of `amount` in `span`, rounded down; zero where `span` is zero.
    pub fn of(amount: Bytes, span: Duration) -> Self {
        if span.is_zero() {
            return Self::ZERO;
        }
        let rate = u128::from(amount.0) * NANOS / u128::from(span.as_nanos());
        Self(u64::try_from(rate).unwrap_or(u64::MAX))
    }
}

macro_rules! arithmetic {
    ($type:ident, $what:literal) => {
        impl Add for $type {
            type Output = Self;
            #[inline]
            #[track_caller]
            fn add(self, other: Self) -> Self {
                Self(self.0.checked_add(other.0).expect(concat!($what, " overflow 64 bits")))
            }
        }
        impl AddAssign for $type {
            #[inline]
            #[track_caller]
            fn add_assign(&mut self, other: Self) {
                *self = *self + other;
            }
        }
        impl Sub for $type {
            type Output = Self;
            #[inline]
            #[track_caller]
            fn sub(self, other: Self) -> Self {
                Self(self.0.checked_sub(other.0).expect(concat!($what, " below zero")))
            }
        }
        impl SubAssign for $type {
            #[inline]
            #[track_caller]
            fn sub_assign(&mut self, other: Self) {
                *self = *self - other;
            }
        }
        impl Mul<u64> for $type {
            type Output = Self;
            #[inline]
            #[track_caller]
            fn mul(self, times: u64) -> Self {
                Self(self.0.checked_mul(times).expect(concat!($what, " overflow 64 bits")))
            }
        }
        impl Div<u64> for $type {
            type Output = Self;
            fn div(self, parts: u64) -> Self {
                Self(self.0 / parts)
            }
        }
        impl Sum for $type {
            fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
                amounts.fold(Self(0), |total, amount| total + amount)
            }
        }
    };
}
arithmetic!(Bytes, "bytes");
arithmetic!(Rate, "rates");

impl Div for Bytes {
    type Output = u64;
    /// How many whole `unit`s fit.
    fn div(self, unit: Self) -> u64 {
        self.0 / unit.0
    }
}
impl Rem for Bytes {
    type Output = Self;
    fn rem(self, unit: Self) -> Self {
        Self(self.0 % unit.0)
    }
}
