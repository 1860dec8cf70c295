//! Points in time and spans of it, in integer nanoseconds.

use core::iter::Sum;
use core::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};

/// A span of time in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Duration(u64);

/// A point in time: nanoseconds since an epoch that the driver chooses (the
/// start of a simulation, the boot of the machine). Two instants compare only
/// if they come from one driver.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(u64);

impl Duration {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// The longest span (584 years).
    pub const MAX: Self = Self(u64::MAX);

    /// A span of `ns` nanoseconds.
    pub const fn from_nanos(ns: u64) -> Self {
        Self(ns)
    }
    /// A span of `us` microseconds.
    pub const fn from_micros(us: u64) -> Self {
        Self(us * 1_000)
    }
    /// A span of `ms` milliseconds.
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms * 1_000_000)
    }
    /// A span of `s` seconds.
    pub const fn from_secs(s: u64) -> Self {
        Self(s * 1_000_000_000)
    }
    /// The span in nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }
    /// The span in whole microseconds, rounded down.
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }
    /// The span in whole milliseconds, rounded down.
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }
    /// The span in whole seconds, rounded down.
    pub const fn as_secs(self) -> u64 {
        self.0 / 1_000_000_000
    }
    /// The span in seconds, for reports; never for a decision.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
    /// The span in milliseconds, for reports; never for a decision.
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }
    /// True for no time at all.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
    /// The difference, or zero where `other` is longer.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
    /// The sum, or [`Duration::MAX`] on overflow.
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
    /// The product, or [`Duration::MAX`] on overflow.
    pub const fn saturating_mul(self, times: u64) -> Self {
        Self(self.0.saturating_mul(times))
    }
    /// The difference, or `None` where `other` is longer.
    pub const fn checked_sub(self, other: Self) -> Option<Self> {
        match self.0.checked_sub(other.0) {
            Some(ns) => Some(Self(ns)),
            None => None,
        }
    }
}

impl Instant {
    /// The driver's epoch.
    pub const EPOCH: Self = Self(0);
    /// The end of time.
    pub const MAX: Self = Self(u64::MAX);

    /// The instant `ns` nanoseconds after the epoch.
    pub const fn from_nanos(ns: u64) -> Self {
        Self(ns)
    }
    /// Nanoseconds since the epoch.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }
    /// The first of two that may never come. (`min` over a list of options compiles to hundreds of
    /// instructions, and timers are compared for each operation.)
    pub fn first(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        match (one, other) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    }
    /// The time from `earlier` to here, or zero if `earlier` is later.
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
    /// The time from `earlier` to here, or `None` if `earlier` is later.
    pub const fn checked_since(self, earlier: Self) -> Option<Duration> {
        match self.0.checked_sub(earlier.0) {
            Some(ns) => Some(Duration(ns)),
            None => None,
        }
    }
    /// This instant moved `span` earlier, but not before the epoch.
    pub const fn saturating_sub(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(span.0))
    }
    /// This instant moved `span` later, but not past the end of time.
    pub const fn saturating_add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

#[inline]
#[track_caller]
fn plus(a: u64, b: u64) -> u64 {
    a.checked_add(b).expect("time overflows 64 bits")
}
#[inline]
#[track_caller]
fn minus(a: u64, b: u64) -> u64 {
    a.checked_sub(b).expect("time before its origin")
}

impl Add for Duration {
    type Output = Self;
    #[inline]
    #[track_caller]
    fn add(self, other: Self) -> Self {
        Self(plus(self.0, other.0))
    }
}
impl AddAssign for Duration {
    #[inline]
    #[track_caller]
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}
impl Sub for Duration {
    type Output = Self;
    #[inline]
    #[track_caller]
    fn sub(self, other: Self) -> Self {
        Self(minus(self.0, other.0))
    }
}
impl SubAssign for Duration {
    #[inline]
    #[track_caller]
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}
impl Mul<u64> for Duration {
    type Output = Self;
    #[inline]
    #[track_caller]
    fn mul(self, times: u64) -> Self {
        Self(self.0.checked_mul(times).expect("time overflows 64 bits"))
    }
}
impl Div<u64> for Duration {
    type Output = Self;
    fn div(self, parts: u64) -> Self {
        Self(self.0 / parts)
    }
}
impl Sum for Duration {
    fn sum<I: Iterator<Item = Self>>(spans: I) -> Self {
        spans.fold(Self::ZERO, |total, span| total + span)
    }
}
impl Add<Duration> for Instant {
    type Output = Self;
    #[inline]
    #[track_caller]
    fn add(self, span: Duration) -> Self {
        Self(plus(self.0, span.0))
    }
}
impl AddAssign<Duration> for Instant {
    #[inline]
    #[track_caller]
    fn add_assign(&mut self, span: Duration) {
        *self = *self + span;
    }
}
impl Sub<Duration> for Instant {
    type Output = Self;
    #[inline]
    #[track_caller]
    fn sub(self, span: Duration) -> Self {
        Self(minus(self.0, span.0))
    }
}
impl Sub for Instant {
    type Output = Duration;
    /// The time from `earlier` to here; panics where `earlier` is later.
    #[inline]
    #[track_caller]
    fn sub(self, earlier: Self) -> Duration {
        Duration(minus(self.0, earlier.0))
    }
}
