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
fail N KIND [ERROR]              fail the N-th from now on, once: fail 3 writes ENOSPC
short N KIND SIZE                move no more than so much of the N-th from now on
short KIND SIZE                  move no more than so much of each
power-cut [TIME] [seed SEED]     drop what was not flushed, or of that what the seed says;
                                 fail until power-on, or for so long
power-on                         end a power cut
heal                             nothing fails, is short or slow any more (bad sectors stay)

KIND is reads, writes or (not for short) flushes; ERROR is EIO, ENOSPC, ENOMEM or EROFS.
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
    /// A request of a kind that comes later goes wrong, once.
    Later(Later),
    /// No transfer of a direction moves more than this.
    Short(Direction, Bytes),
    /// The power fails: for so long, or until it is switched on.
    PowerCut {
        /// For how long; none for until it is switched on.
        off: Option<Duration>,
        /// Each sector that was not flushed is lost or not, as this seed has it; without
        /// one all are lost.
        seed: Option<u64>,
    },
    /// The power is back.
    PowerOn,
    /// No place fails or is slow.
    Heal,
}

/// A request that is counted up to, and what goes wrong with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Later {
    /// How many of the kind come until then, itself included.
    pub nth: u64,
    /// The kind: a direction, or flushes.
    pub kind: Option<Direction>,
    /// What goes wrong.
    pub wrong: Wrong,
}

/// What goes wrong with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// Nothing is moved, and the program is told this.
    Fails(Failure),
    /// No more than this is moved, and the program is told so.
    Short(Bytes),
}

/// What a program is told of a request that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// `EIO`: the drive could not.
    Io,
    /// `ENOSPC`: a file system, or a device that is larger than what is behind it, is full.
    NoSpace,
    /// `ENOMEM`: there was no memory for the request.
    NoMemory,
    /// `EROFS`: nothing can be written any more.
    ReadOnly,
}

impl Failure {
    const ALL: [(&'static str, Self); 4] = [
        ("EIO", Self::Io),
        ("ENOSPC", Self::NoSpace),
        ("ENOMEM", Self::NoMemory),
        ("EROFS", Self::ReadOnly),
    ];

    fn name(self) -> &'static str {
        Self::ALL.iter().find(|&&(_, failure)| failure == self).expect("all of them").0
    }
}

impl FromStr for Failure {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|&&(name, _)| name == text);
        let names = || Self::ALL.map(|(name, _)| name).join(", ");
        found.map(|&(_, failure)| failure).ok_or_else(|| format!("{text:?} is none of {}", names()))
    }
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
            ["fail", nth, kind] => later(nth, kind, Wrong::Fails(Failure::Io))?,
            ["fail", nth, kind, error] => later(nth, kind, Wrong::Fails(error.parse()?))?,
            ["short", "reads", most] => Self::Short(Direction::Read, part(most)?),
            ["short", "writes", most] => Self::Short(Direction::Write, part(most)?),
            ["short", nth, kind @ ("reads" | "writes"), most] => {
                later(nth, kind, Wrong::Short(part(most)?))?
            }
            ["power-cut"] => Self::PowerCut { off: None, seed: None },
            ["power-cut", "seed", seed] => Self::PowerCut { off: None, seed: Some(any(seed)?) },
            ["power-cut", time] => Self::PowerCut { off: Some(trouble(time)?), seed: None },
            ["power-cut", time, "seed", seed] => {
                Self::PowerCut { off: Some(trouble(time)?), seed: Some(any(seed)?) }
            }
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

fn later(nth: &str, kind: &str, wrong: Wrong) -> Result<Order, String> {
    let kind = match kind {
        "reads" => Some(Direction::Read),
        "writes" => Some(Direction::Write),
        "flushes" => None,
        _ => return Err(format!("{kind:?} is no kind; there are reads, writes and flushes")),
    };
    Ok(Order::Later(Later { nth: number(nth, u64::MAX)?, kind, wrong }))
}

/// A part of a transfer: what was not moved is still to be, so it is no nothing.
fn part(text: &str) -> Result<Bytes, String> {
    let part: Bytes = text.parse().map_err(|error| format!("{text}: {error}"))?;
    match part.is_zero() {
        false => Ok(part),
        true => Err(format!("{text:?} is no part of a transfer; give a byte at least")),
    }
}

fn any(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("{text:?} is no whole number"))
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
            Self::Later(Later { nth, kind, wrong: Wrong::Fails(failure) }) => {
                write!(f, "fail {nth} {} {}", kind_name(*kind), failure.name())
            }
            Self::Later(Later { nth, kind, wrong: Wrong::Short(most) }) => {
                write!(f, "short {nth} {} {}", kind_name(*kind), disk::exact_size(*most))
            }
            Self::Short(direction, most) => {
                write!(f, "short {} {}", kind_name(Some(*direction)), disk::exact_size(*most))
            }
            Self::PowerCut { off, seed } => {
                write!(f, "power-cut")?;
                off.map_or(Ok(()), |off| write!(f, " {}", disk::exact_duration(off)))?;
                seed.map_or(Ok(()), |seed| write!(f, " seed {seed}"))
            }
            Self::PowerOn => write!(f, "power-on"),
            Self::Heal => write!(f, "heal"),
        }
    }
}

fn kind_name(kind: Option<Direction>) -> &'static str {
    match kind {
        Some(Direction::Read) => "reads",
        Some(Direction::Write) => "writes",
        None => "flushes",
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
            "power-cut seed 7",
            "power-cut 250ms seed 18446744073709551615",
            "fail 1 reads EIO",
            "fail 3 writes ENOSPC",
            "fail 9 flushes ENOMEM",
            "short 2 writes 512B",
            "short reads 4KiB",
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
            ("stall 3", "no unit"),
            ("stall 30000s", "too long"),
            ("slow 1B..1B 4", "has no bytes"),
            ("slow 2MiB..1MiB 4", "has no bytes"),
            ("slow 0..9999999TiB 4", "more than 1 EiB"),
            ("slow 1MiB 4", "is no place"),
            ("slow 0..1MiB 0", "no number from 1"),
            ("error 0..1MiB both", "there is:"),
            ("bad 0..1MiB retry x", "no number"),
            ("fail 0 reads", "no number from 1"),
            ("fail 1 syncs", "reads, writes and flushes"),
            ("fail 1 reads EBADF", "none of EIO, ENOSPC"),
            ("short 1 flushes 4KiB", "there is:"),
            ("short reads 0", "a byte at least"),
            ("power-cut seed x", "no whole number"),
            ("power-cut 1s seed -1", "no whole number"),
        ] {
            let error = text.parse::<Order>().unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
    }

    #[test]
    fn a_place_reaches_to_whole_sectors() {
        let place: Place = "1000B..1025B".parse().unwrap();
        assert_eq!((place.from.get(), place.to.get()), (1, 3));
        assert!(place.touches(Bytes::new(1_535), Bytes::new(10)));
        assert!(!place.touches(Bytes::new(1_536), Bytes::new(10)));
        assert!(!place.touches(Bytes::new(0), Bytes::new(512)));
    }
}
