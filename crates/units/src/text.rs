//! Quantities as people write and read them.
//!
//! Sizes: `4096B`, `64k`, `8MiB`, `2 MB`. As in fio and dd, a bare letter and
//! the `iB` forms count in 1024; the `B` forms (`kB`, `MB`) in 1000. Small letters do as well
//! as large ones.
//! Rates: a size and `/s`, or bits as `25 Mbit/s`, `25Mbps` or `25Mb/s`: a small `b` is a bit
//! behind a large letter, and before `ps`; `kb/s` and `mb/s` may mean either and are refused. Times: `250ms`, `1.5 s`.
//! A number without a unit is refused, but for a size of 0: who writes `20` does not mean 20 bytes.
//! A text comes from outside: it is held to the limits of [`Outside`].

use crate::{Bytes, Duration, Instant, Outside, Rate};
use core::fmt;
use core::str::FromStr;

/// Why a text is no quantity, and what would be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseError {
    problem: Problem,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Problem {
    Is(&'static str),
    /// A whole number, and nothing else.
    HasNoUnit(u64),
}

/// A quantity, as it may be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kind {
    example: &'static str,
    /// What may stand behind a number that has nothing there: the smallest first, which a count
    /// that a program has made is in.
    units: [&'static str; 3],
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Kind { example, units: [small, usual, large] } = self.kind;
        match self.problem {
            Problem::Is(problem) => write!(f, "{problem}; write for example {example}"),
            Problem::HasNoUnit(n) => {
                write!(f, "{n} has no unit; write {n}{small}, {n}{usual} or {n}{large}")
            }
        }
    }
}
impl core::error::Error for ParseError {}

const TIMES: Kind = Kind { example: "250ms, 1.5s, 90min, 12h or 14d", units: ["s", "min", "d"] };
const SIZES: Kind = Kind { example: "64k, 8MiB or 2MB", units: ["B", "MiB", "GiB"] };
const RATES: Kind = Kind { example: "1MB/s, 800KiB/s or 25Mbit/s", units: ["B/s", "kB/s", "MB/s"] };

/// A number without a unit that is a program's count of bytes, as of a file. Of less a person may have meant
/// MiB, or GB.
const BYTES_ALONE: u64 = 64 << 10;

/// Splits `text` into a decimal number and its unit, and scales the number:
/// `scale` gives numerator and denominator for a unit. Exact, rounded down; at most
/// what is taken from outside, which `limit` says in words.
fn scaled<Q: Outside>(
    text: &str,
    kind: Kind,
    limit: &'static str,
    scale: impl Fn(&str) -> Option<(u64, u64)>,
) -> Result<Q, ParseError> {
    let error = |problem| ParseError { problem: Problem::Is(problem), kind };
    let text = text.trim();
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() {
        return Err(error("no number"));
    }
    if fraction.len() > 9 || fraction.contains('.') {
        return Err(error("not a decimal number of at most nine places"));
    }
    let unknown = || match number.parse() {
        Ok(number) if unit.is_empty() => ParseError { problem: Problem::HasNoUnit(number), kind },
        _ if unit.is_empty() => error("no unit"),
        _ => error("unknown unit"),
    };
    let (up, down) = scale(unit.trim()).ok_or_else(unknown)?;
    let mut value: u128 = 0;
    for digit in whole.bytes().chain(fraction.bytes()) {
        value = value * 10 + u128::from(digit - b'0');
        if value > u128::from(u64::MAX) {
            return Err(error("number too large"));
        }
    }
    let places = 10u128.pow(fraction.len() as u32);
    let scaled = value * u128::from(up) / (places * u128::from(down));
    let number = u64::try_from(scaled).map_err(|_| error("number too large"))?;
    Q::from_outside(number).map_err(|_| error(limit))
}

/// How many factors a letter stands for, from `k` on.
fn factors(letter: char) -> Option<u32> {
    Some(1 + "kmgt".find(letter.to_ascii_lowercase())? as u32)
}

fn size_unit(unit: &str) -> Option<u64> {
    let mut letters = unit.chars();
    let letter = match letters.next()? {
        'b' | 'B' if unit.len() == 1 => return Some(1),
        letter => factors(letter)?,
    };
    match letters.as_str() {
        "" => Some(1 << (10 * letter)),
        rest if rest.eq_ignore_ascii_case("ib") => Some(1 << (10 * letter)),
        rest if rest.eq_ignore_ascii_case("b") => Some(1_000_u64.pow(letter)),
        _ => None,
    }
}

/// How many bits a unit of them is, as `Mbit` or `Mb`; `b_is_bit` where a small `b` is one
/// whatever letter is before it.
fn bit_unit(unit: &str, b_is_bit: bool) -> Option<u64> {
    let (letter, bits) = unit.split_at(unit.find(['b', 'B'])?);
    let is_bit = bits.eq_ignore_ascii_case("bit")
        || bits == "b" && (b_is_bit || matches!(letter, "M" | "G" | "T"));
    let mut letters = letter.chars();
    match (letters.next(), letters.as_str()) {
        (None, _) if is_bit => Some(1),
        (Some(letter), "") if is_bit => Some(1_000_u64.pow(factors(letter)?)),
        _ => None,
    }
}

impl FromStr for Bytes {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let (text, limit) = (text.trim(), "more than 1 EiB");
        let is_of_a_program = |&number: &u64| number == 0 || number >= BYTES_ALONE;
        if let Some(number) = text.parse().ok().filter(is_of_a_program) {
            let error = ParseError { problem: Problem::Is(limit), kind: SIZES };
            return Self::from_outside(number).map_err(|_| error);
        }
        scaled(text, SIZES, limit, |unit| Some((size_unit(unit)?, 1)))
    }
}

impl FromStr for Rate {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Self, ParseError> {
        scaled(text, RATES, "more than 1 PiB/s", |unit| {
            let (unit, b_is_bit) = match unit.strip_suffix("ps") {
                Some(unit) => (unit, true),
                None => (unit.strip_suffix("/s")?, false),
            };
            let unit = unit.trim();
            match bit_unit(unit, b_is_bit) {
                Some(bits) => Some((bits, 8)),
                // `kb` is kilobits to one reader and kilobytes to another.
                None if unit.len() == 2 && unit.ends_with('b') => None,
                None => Some((size_unit(unit)?, 1)),
            }
        })
    }
}

impl FromStr for Duration {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Self, ParseError> {
        scaled(text, TIMES, "more than 36 years", |unit| {
            Some(match unit {
                "ns" => (1, 1),
                "us" | "µs" => (1_000, 1),
                "ms" => (1_000_000, 1),
                "s" => (1_000_000_000, 1),
                "m" | "min" => (60_000_000_000, 1),
                "h" => (3_600_000_000_000, 1),
                "d" => (86_400_000_000_000, 1),
                _ => return None,
            })
        })
    }
}

/// Three significant figures and a unit; a whole number without a point.
fn figure(f: &mut fmt::Formatter<'_>, value: u64, steps: &[(u64, &str)]) -> fmt::Result {
    let (size, unit) =
        steps.iter().copied().find(|&(size, _)| value >= size).unwrap_or(steps[steps.len() - 1]);
    let (places, parts): (usize, u128) = match value / size {
        _ if value.is_multiple_of(size) => (0, 1),
        0..10 => (2, 100),
        10..100 => (1, 10),
        _ => (0, 1),
    };
    let rounded = (u128::from(value) * parts + u128::from(size) / 2) / u128::from(size);
    let (whole, rest) = (rounded / parts, rounded % parts);
    if places == 0 {
        write!(f, "{whole} {unit}")
    } else {
        write!(f, "{whole}.{rest:0places$} {unit}")
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        figure(
            f,
            self.as_nanos(),
            &[(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"), (1, "ns")],
        )
    }
}
impl fmt::Debug for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}
impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let us = self.as_nanos() / 1_000;
        write!(f, "{}.{:06} s", us / 1_000_000, us % 1_000_000)
    }
}
impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "t={} ns", self.as_nanos())
    }
}
impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        figure(
            f,
            self.get(),
            &[(1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B")],
        )
    }
}
impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} B", self.get())
    }
}
impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        figure(
            f,
            self.get(),
            &[(1_000_000_000, "GB/s"), (1_000_000, "MB/s"), (1_000, "kB/s"), (1, "B/s")],
        )
    }
}
impl fmt::Debug for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} B/s", self.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    #[test]
    fn sizes_rates_and_times_read_as_people_write_them() {
        let sizes = [
            ("4096B", 4096),
            ("0", 0),
            ("64k", 65_536),
            ("8MiB", 8 << 20),
            ("2 MB", 2_000_000),
            ("1.5G", 3 << 29),
            ("7 b", 7),
            ("2tib", 2 << 40),
            ("3gb", 3_000_000_000),
            ("3Kb", 3_000),
        ];
        for (text, bytes) in sizes {
            assert_eq!(text.parse::<Bytes>().unwrap().get(), bytes, "{text}");
        }
        let rates = [
            ("2 MB/s", 2_000_000),
            ("25Mbit/s", 3_125_000),
            ("1MiB/s", 1 << 20),
            ("25Mbps", 3_125_000),
            ("25mbps", 3_125_000),
            ("25 Mb/s", 3_125_000),
            ("800 bit/s", 100),
            ("25 MBit/s", 3_125_000),
            ("25mbit/s", 3_125_000),
            ("800kBit/s", 100_000),
            ("2MBps", 2_000_000),
            ("1GB/s", 1_000_000_000),
            ("64k/s", 65_536),
        ];
        for (text, rate) in rates {
            assert_eq!(text.parse::<Rate>().unwrap().get(), rate, "{text}");
        }
        let times = [
            ("250ms", 250_000_000),
            ("1.5 s", 1_500_000_000),
            ("20us", 20_000),
            ("2m", 120_000_000_000),
        ];
        for (text, ns) in times {
            assert_eq!(text.parse::<Duration>().unwrap().as_nanos(), ns, "{text}");
        }
    }

    #[test]
    fn what_is_no_quantity_is_refused_with_an_example() {
        for text in [
            "",
            "MB",
            "1.2.3k",
            "-4k",
            "5 bananas",
            "99999999999999999999",
            "1e9",
            "5",
            "1é/s",
            "1xb/s",
            "2mb/s",
            "2kb/s",
        ] {
            assert!(text.parse::<Rate>().is_err(), "{text}");
        }
        let error = "12 parsecs".parse::<Bytes>().unwrap_err();
        assert_eq!(format!("{error}"), "unknown unit; write for example 64k, 8MiB or 2MB");
    }

    /// Who asked for a volume of `20` got one of 20 bytes.
    #[test]
    fn a_number_without_a_unit_is_refused_with_what_it_may_have_meant() {
        let size = "20".parse::<Bytes>().unwrap_err();
        assert_eq!(format!("{size}"), "20 has no unit; write 20B, 20MiB or 20GiB");
        assert!(format!("{}", BYTES_ALONE - 1).parse::<Bytes>().is_err());
        for counted in [0, BYTES_ALONE, 1 << 60] {
            assert_eq!(format!(" {counted} ").parse::<Bytes>(), Ok(Bytes::new(counted)));
        }
        let large = format!("{}", (1_u64 << 60) + 1).parse::<Bytes>().unwrap_err();
        assert_eq!(format!("{large}"), "more than 1 EiB; write for example 64k, 8MiB or 2MB");
        let rate = " 3 ".parse::<Rate>().unwrap_err();
        assert_eq!(format!("{rate}"), "3 has no unit; write 3B/s, 3kB/s or 3MB/s");
        let time = "60".parse::<Duration>().unwrap_err();
        assert_eq!(format!("{time}"), "60 has no unit; write 60s, 60min or 60d");
        let half = "1.5".parse::<Bytes>().unwrap_err();
        assert_eq!(format!("{half}"), "no unit; write for example 64k, 8MiB or 2MB");
        assert!("2/s".parse::<Rate>().is_err());
    }

    #[test]
    fn what_nothing_can_be_is_refused_with_the_limit() {
        let most = ["1048576T".parse::<Bytes>().unwrap(), Bytes::OUTSIDE_MAX];
        assert_eq!(most[0], most[1]);
        let error = "1048577T".parse::<Bytes>().unwrap_err();
        assert_eq!(format!("{error}"), "more than 1 EiB; write for example 64k, 8MiB or 2MB");
        let error = "4611686018427387904 B/s".parse::<Rate>().unwrap_err();
        assert!(format!("{error}").starts_with("more than 1 PiB/s; "), "{error}");
        let error = "18446744073709551615ns".parse::<Duration>().unwrap_err();
        assert!(format!("{error}").starts_with("more than 36 years; "), "{error}");
        assert!("20000000T".parse::<Bytes>().is_err(), "2^64 bytes do not fit");
    }

    #[test]
    fn quantities_print_with_three_figures_and_a_unit() {
        assert_eq!(format!("{}", Duration::from_micros(1_234)), "1.23 ms");
        assert_eq!(format!("{}", Duration::from_micros(12_349)), "12.3 ms");
        assert_eq!(format!("{}", Duration::from_millis(999)), "999 ms");
        assert_eq!(format!("{}", Duration::ZERO), "0 ns");
        assert_eq!(format!("{}", Bytes::kib(64)), "64 KiB");
        assert_eq!(format!("{}", Rate::per_second(817_000)), "817 kB/s");
        assert_eq!(format!("{}", Rate::per_second(1_048_576)), "1.05 MB/s");
        assert_eq!(format!("{}", Instant::from_nanos(1_002_003_000)), "1.002003 s");
    }

    #[test]
    fn a_rate_and_its_time_agree_to_the_nanosecond() {
        let rate = Rate::per_second(817_000);
        let period = rate.time_for(Bytes::MIB);
        assert!(rate.bytes_in(period) >= Bytes::MIB);
        assert!(rate.bytes_in(period - Duration::from_nanos(1)) < Bytes::MIB);
        assert_eq!(Rate::ZERO.time_for(Bytes::MIB), Duration::MAX);
        assert_eq!(Rate::of(Bytes::MIB, Duration::from_secs(2)).get(), 1 << 19);
    }
}
