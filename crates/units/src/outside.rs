//! The door: numbers from outside as quantities.
//!
//! A number that a program, a file or a network gives is a quantity only within limits
//! that no machine comes near. They leave room for what the rooms make of it, so that
//! arithmetic within the house has no case "the user gave 2^63": sixteen offsets or
//! times add up in 64 bits, and a rate times a time is counted in 128. What grows faster
//! than that (a cost times a number of operations) says `saturating` or `checked` where
//! it stands.
//!
//! Only what a text, a message or a frame says is held against these limits. Quantities
//! that the house makes itself may be larger: sums over years, offsets of memory regions,
//! [`Duration::MAX`] for never.

use crate::{Bytes, Duration, Lba, Rate, SECTOR};
use core::fmt;

/// A number from outside that is no quantity: larger than anything there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfRange {
    /// What was given, in the quantity's own unit.
    pub given: u64,
    /// The most that is taken.
    pub most: u64,
    /// The unit of both.
    pub unit: &'static str,
}

impl fmt::Display for OutOfRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { given, most, unit } = self;
        write!(f, "{given} {unit} is out of range: at most {most} {unit}")
    }
}
impl core::error::Error for OutOfRange {}

/// A quantity that may come from outside.
pub trait Outside: Copy + Ord {
    /// The most that is taken.
    const OUTSIDE_MAX: Self;

    /// From a number in the quantity's own unit: bytes, bytes per second, nanoseconds,
    /// sectors.
    ///
    /// # Errors
    /// [`OutOfRange`] above [`Outside::OUTSIDE_MAX`].
    fn from_outside(number: u64) -> Result<Self, OutOfRange>;

    /// The number that is told outside: this, or the most that may be said. Counts that
    /// went on for longer than that stay there.
    fn to_outside(self) -> u64;

    /// This very quantity, which came in by a way that has no door of its own.
    ///
    /// # Errors
    /// As [`Outside::from_outside`].
    fn checked(self) -> Result<Self, OutOfRange>;
}

macro_rules! outside {
    ($type:ident, $unit:literal, $most:expr, $new:path, $number:path) => {
        impl Outside for $type {
            const OUTSIDE_MAX: Self = $new($most);

            fn from_outside(given: u64) -> Result<Self, OutOfRange> {
                let most = $most;
                if given > most {
                    return Err(OutOfRange { given, most, unit: $unit });
                }
                Ok($new(given))
            }
            fn to_outside(self) -> u64 {
                $number(self.min(Self::OUTSIDE_MAX))
            }
            fn checked(self) -> Result<Self, OutOfRange> {
                Self::from_outside($number(self))
            }
        }
    };
}
// 1 EiB: thirty thousand of the largest disks.
outside!(Bytes, "B", 1 << 60, Bytes::new, Bytes::get);
// 1 PiB/s: a thousand times what memory gives.
outside!(Rate, "B/s", 1 << 50, Rate::per_second, Rate::get);
// 36 years: nobody waits so long.
outside!(Duration, "ns", 1 << 60, Duration::from_nanos, Duration::as_nanos);
// The sector after the last one of the largest amount.
outside!(Lba, "sectors", (1 << 60) / SECTOR.get(), Lba::new, Lba::get);

// A sum of so many cannot overflow, and an access cannot end behind what an offset says.
const _: () = {
    assert!(u64::MAX / Bytes::OUTSIDE_MAX.get() >= 15);
    assert!(u64::MAX / Duration::OUTSIDE_MAX.as_nanos() >= 15);
    assert!(Lba::OUTSIDE_MAX.offset().get() == Bytes::OUTSIDE_MAX.get());
};

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn a_quantity_from_outside_is_at_most_its_limit_and_a_refusal_says_which() {
        let most = Rate::OUTSIDE_MAX.get();
        assert_eq!(Rate::from_outside(most), Ok(Rate::OUTSIDE_MAX));
        for given in [most + 1, 1 << 62, 1 << 63, u64::MAX] {
            let refused = OutOfRange { given, most, unit: "B/s" };
            assert_eq!(Rate::from_outside(given), Err(refused));
            assert_eq!(Rate::per_second(given).checked(), Err(refused));
        }
        let text = Bytes::from_outside(u64::MAX).unwrap_err().to_string();
        assert_eq!(text, "18446744073709551615 B is out of range: at most 1152921504606846976 B");
    }

    #[test]
    fn what_is_told_outside_can_be_read_there() {
        for ns in [0, 1, 1 << 60, (1 << 60) + 1, u64::MAX] {
            let told = Duration::from_nanos(ns).to_outside();
            assert_eq!(Duration::from_outside(told).map(Duration::as_nanos), Ok(ns.min(1 << 60)));
        }
    }
}
