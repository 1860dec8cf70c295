//! Faults on request: the words of the control file and of `--fault`.
//!
//! Invariant: what parses is within the bounds; whether the drive has such sectors
//! the device says.

use crate::limits::{SLOWER_MAX, TROUBLE_MAX};
use std::fmt;
use std::str::FromStr;
use units::{Bytes, Direction, Duration, Lba, SECTOR};

/// The words, as the control file shows them.
pub const HELP: &str = "\
stall TIME                       stand still for so long: stall 3s
slow FROM..TO TIMES              take so many times as long there: slow 1GiB..2GiB 4
error FROM..TO [reads|writes]    fail there: error 100MiB..101MiB reads
bad FROM..TO [retry TURNS]       sectors that lie elsewhere, or are read after so many turns more
power-cut [TIME]                 drop what was not flushed; fail until power-on, or for so long
power-on                         end a power cut
heal                             no place fails or is slow any more (bad sectors stay)
";

/// No disk is larger, and sums of two such sizes are safe.
const LARGEST: Bytes = Bytes::new(1 << 60);

/// Sectors, from one to before another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The first.
    pub from: Lba,
    /// The one after the last.
    pub to: Lba,
}

impl Place {
    /// True where some of the bytes from `offset` on lie here.
    pub(crate) fn touches(&self, offset: Bytes, len: Bytes) -> bool {
        offset < self.to.offset() && self.from.offset() < offset + len
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = |lba: Lba| disk::exact_size(lba.offset());
        write!(f, "{}..{}", size(self.from), size(self.to))
    }
}

impl FromStr for Place {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no place; write for example 100MiB..101MiB");
        let (from, to) = text.split_once("..").ok_or_else(wrong)?;
        let size = |text: &str| text.parse::<Bytes>().map_err(|error| format!("{text}: {error}"));
        let (from, to) = (size(from)?, size(to)?);
        if from >= to || to > LARGEST {
            return Err(format!(
                "{text:?} has no bytes of a disk; its end lies behind its beginning"
            ));
        }
        let (from, to) = (from.round_down(SECTOR), to.round_up(SECTOR));
        Ok(Self { from: Lba::containing(from), to: Lba::containing(to) })
    }
}

/// What can be asked of an emulated drive while it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// Nothing begins or ends for so long.
    Stall(Duration),
    /// Commands that touch the place take so many times as long.
    Slow(Place, u64),
    /// Commands that touch the place fail: those of one direction, or all.
    Error(Place, Option<Direction>),
    /// Bad sectors: remapped, or read after so many more turns.
    Bad(Place, Option<u64>),
    /// The power fails: for so long, or until it is switched on.
    PowerCut(Option<Duration>),
    /// The power is back.
    PowerOn,
    /// No place fails or is slow.
    Heal,
}

impl FromStr for Order {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let order = match words[..] {
            ["stall", time] => Self::Stall(trouble(time)?),
            ["slow", place, times] => Self::Slow(place.parse()?, number(times, SLOWER_MAX)?),
            ["error", place] => Self::Error(place.parse()?, None),
            ["error", place, "reads"] => Self::Error(place.parse()?, Some(Direction::Read)),
            ["error", place, "writes"] => Self::Error(place.parse()?, Some(Direction::Write)),
            ["bad", place] => Self::Bad(place.parse()?, None),
            ["bad", place, "retry", turns] => {
                Self::Bad(place.parse()?, Some(number(turns, SLOWER_MAX)?))
            }
            ["power-cut"] => Self::PowerCut(None),
            ["power-cut", time] => Self::PowerCut(Some(trouble(time)?)),
            ["power-on"] => Self::PowerOn,
            ["heal"] => Self::Heal,
            _ => return Err(format!("{text:?} is no order; there is:\n{HELP}")),
        };
        Ok(order)
    }
}

fn trouble(text: &str) -> Result<Duration, String> {
    let time: Duration = text.parse().map_err(|error| format!("{text}: {error}"))?;
    match time <= TROUBLE_MAX {
        true => Ok(time),
        false => Err(format!("{text} is too long; give at most {TROUBLE_MAX}")),
    }
}

fn number(text: &str, most: u64) -> Result<u64, String> {
    let parsed = text.parse().ok().filter(|number| (1..=most).contains(number));
    parsed.ok_or_else(|| format!("{text:?} is no number from 1 to {most}"))
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stall(time) => write!(f, "stall {}", disk::exact_duration(*time)),
            Self::Slow(place, times) => write!(f, "slow {place} {times}"),
            Self::Error(place, None) => write!(f, "error {place}"),
            Self::Error(place, Some(Direction::Read)) => write!(f, "error {place} reads"),
            Self::Error(place, Some(Direction::Write)) => write!(f, "error {place} writes"),
            Self::Bad(place, None) => write!(f, "bad {place}"),
            Self::Bad(place, Some(turns)) => write!(f, "bad {place} retry {turns}"),
            Self::PowerCut(None) => write!(f, "power-cut"),
            Self::PowerCut(Some(time)) => write!(f, "power-cut {}", disk::exact_duration(*time)),
            Self::PowerOn => write!(f, "power-on"),
            Self::Heal => write!(f, "heal"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_written_as_they_are_read() {
        for text in [
            "stall 3s",
            "slow 1GiB..2GiB 4",
            "error 100MiB..101MiB",
            "error 0B..512B reads",
            "error 512B..4KiB writes",
            "bad 4KiB..8KiB",
            "bad 4KiB..8KiB retry 3",
            "power-cut",
            "power-cut 250ms",
            "power-on",
            "heal",
        ] {
            let order: Order = text.parse().expect(text);
            assert_eq!(order.to_string().parse::<Order>(), Ok(order), "{text}");
        }
    }

    #[test]
    fn what_is_no_order_is_refused_with_what_would_do() {
        for (text, says) in [
            ("", "there is:"),
            ("stall", "there is:"),
            ("stall 3", "unknown unit"),
            ("stall 30000s", "too long"),
            ("slow 1..1 4", "has no bytes"),
            ("slow 2MiB..1MiB 4", "has no bytes"),
            ("slow 0..9999999TiB 4", "has no bytes"),
            ("slow 1MiB 4", "is no place"),
            ("slow 0..1MiB 0", "no number from 1"),
            ("error 0..1MiB both", "there is:"),
            ("bad 0..1MiB retry x", "no number"),
        ] {
            let error = text.parse::<Order>().unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
    }

    #[test]
    fn a_place_reaches_to_whole_sectors() {
        let place: Place = "1000..1025".parse().unwrap();
        assert_eq!((place.from.get(), place.to.get()), (1, 3));
        assert!(place.touches(Bytes::new(1_535), Bytes::new(10)));
        assert!(!place.touches(Bytes::new(1_536), Bytes::new(10)));
        assert!(!place.touches(Bytes::new(0), Bytes::new(512)));
    }
}
