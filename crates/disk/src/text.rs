//! Quantities in data files: text that reads well and comes back exactly.
//!
//! Invariant: `exact_*(x)` parses to `x`, to the last nanosecond and byte. (The
//! `Display` of these types rounds to three figures, for people.)

use crate::Error;
use alloc::string::String;
use alloc::{format, vec::Vec};
use core::fmt::Display;
use core::str::FromStr;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use units::{Bytes, Duration, Outside, Rate};

/// A quantity that is written as text in a data file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Text<T>(pub T);

/// A number of millionths, written in ones with as many places as it needs.
fn millionths(value: u64, unit: &str) -> String {
    let (whole, rest) = (value / 1_000_000, value % 1_000_000);
    if rest == 0 {
        return format!("{whole}{unit}");
    }
    let places = format!("{rest:06}");
    format!("{whole}.{}{unit}", places.trim_end_matches('0'))
}

/// The span in milliseconds, to the nanosecond: `14.285714ms`.
pub fn exact_duration(span: Duration) -> String {
    millionths(span.as_nanos(), "ms")
}

/// The rate in MB/s, to the byte: `33.98MB/s`.
pub fn exact_rate(rate: Rate) -> String {
    millionths(rate.get(), "MB/s")
}

/// The amount in the largest of MiB, KiB and B that gives a whole number.
pub fn exact_size(size: Bytes) -> String {
    for (unit, name) in [(Bytes::MIB, "MiB"), (Bytes::KIB, "KiB")] {
        if size.is_multiple_of(unit) {
            return format!("{}{name}", size / unit);
        }
    }
    format!("{}B", size.get())
}

/// The longest time that any part of a command may take by a model or a profile, or 1 MiB
/// at one of their rates. No disk that works comes near; costs add up and multiply, and stay
/// in 64 bits.
const PART_MAX: Duration = Duration::from_secs(3_600);

/// What [`Text`] can hold.
pub(crate) trait Quantity: FromStr<Err: Display> {
    fn exact(&self) -> String;
    /// Which a disk's can be, where this is none.
    fn absurd(&self) -> Option<&'static str>;
}
impl Quantity for Duration {
    fn exact(&self) -> String {
        exact_duration(*self)
    }
    fn absurd(&self) -> Option<&'static str> {
        (*self > PART_MAX).then_some("give at most an hour")
    }
}
impl Quantity for Rate {
    fn exact(&self) -> String {
        exact_rate(*self)
    }
    fn absurd(&self) -> Option<&'static str> {
        let is_a_disks = *self <= Rate::OUTSIDE_MAX && self.time_for(Bytes::MIB) <= PART_MAX;
        (!is_a_disks).then_some("give at least 292 B/s and at most 1 PiB/s")
    }
}
impl Quantity for Bytes {
    fn exact(&self) -> String {
        exact_size(*self)
    }
    fn absurd(&self) -> Option<&'static str> {
        (*self > Self::OUTSIDE_MAX).then_some("give at most 1 EiB")
    }
}

/// Holds a quantity of a disk's to what can be.
///
/// # Errors
/// Names it, and says what would do.
pub(crate) fn check<T: Quantity>(name: &str, given: &T) -> Result<(), Error> {
    match given.absurd() {
        None => Ok(()),
        Some(rule) => Err(Error::Invalid(format!("{name} is {}; {rule}", given.exact()))),
    }
}

fn read<T: Quantity, E: de::Error>(text: &str) -> Result<Text<T>, E> {
    let quantity: T = text.parse().map_err(|error| E::custom(format!("{text:?}: {error}")))?;
    match quantity.absurd() {
        None => Ok(Text(quantity)),
        Some(rule) => Err(E::custom(format!("{text:?} is no disk's; {rule}"))),
    }
}

impl<T: Quantity> Serialize for Text<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0.exact())
    }
}
impl<'de, T: Quantity> Deserialize<'de> for Text<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read(&String::deserialize(deserializer)?)
    }
}

/// The rate of a line. A level one, on which size costs nothing, was once written with the
/// largest number that there is: pools have such profiles.
pub(crate) fn line_rate<'de, D: Deserializer<'de>>(from: D) -> Result<Text<Rate>, D::Error> {
    let text = String::deserialize(from)?;
    let level = text == exact_rate(Rate::per_second(u64::MAX));
    if level { Ok(Text(Rate::OUTSIDE_MAX)) } else { read(&text) }
}

/// A seek curve as a file has it.
pub(crate) type Points = Vec<(u64, Text<Duration>)>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_quantity_comes_back_exactly() {
        let mut value = 1u64;
        for step in 0..5_000u64 {
            value = value.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(step);
            let n = value >> (value % 40 + 14); // within what a text may say
            assert_eq!(
                exact_duration(Duration::from_nanos(n)).parse(),
                Ok(Duration::from_nanos(n))
            );
            assert_eq!(exact_rate(Rate::per_second(n)).parse(), Ok(Rate::per_second(n)));
            assert_eq!(exact_size(Bytes::new(n)).parse(), Ok(Bytes::new(n)));
        }
    }

    #[test]
    fn quantities_read_well() {
        assert_eq!(exact_duration(Duration::from_nanos(14_285_714)), "14.285714ms");
        assert_eq!(exact_duration(Duration::from_micros(2_500)), "2.5ms");
        assert_eq!(exact_rate(Rate::per_second(33_980_000)), "33.98MB/s");
        assert_eq!(exact_size(Bytes::kib(40)), "40KiB");
    }
}
