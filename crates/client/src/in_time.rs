//! A contract of one handle's own: answers within a time.

use std::fmt;
use std::str::FromStr;
use units::{Bytes, Duration};

/// An operation of at most `len` bytes is answered `within` a time, if it comes `every` so long
/// after the one before it on the same disk, or later; one that comes sooner counts as coming
/// then, and a longer one as several.
///
/// As a text: `[SIZE within] TIME [every TIME]`, for example `4KiB within 150ms every 500ms`,
/// or `150ms` alone: of at most 64 KiB, every 150 ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InTime {
    /// The longest operation: a multiple of 4 KiB, at most 1 MiB.
    pub len: Bytes,
    /// How soon it is answered.
    pub within: Duration,
    /// The least time between two operations on the same disk, at least `within`.
    pub every: Duration,
}

impl InTime {
    /// Of operations of at most this length, where a text names none.
    pub const LEN: Bytes = Bytes::kib(64);

    /// Operations of at most [`InTime::LEN`], one in each such time.
    pub const fn within(within: Duration) -> Self {
        Self { len: Self::LEN, within, every: within }
    }

    /// Operations of at most this length.
    #[must_use]
    pub const fn of(self, len: Bytes) -> Self {
        Self { len, ..self }
    }

    /// One in each such time.
    #[must_use]
    pub const fn every(self, every: Duration) -> Self {
        Self { every, ..self }
    }
}

/// Why a text is no contract.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoInTime(String);

impl fmt::Display for NoInTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; say for example \"4KiB within 150ms\" or \"150ms every 500ms\"", self.0)
    }
}
impl std::error::Error for NoInTime {}

impl FromStr for InTime {
    type Err = NoInTime;

    fn from_str(text: &str) -> Result<Self, NoInTime> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let (len, rest) = match words.as_slice() {
            [len, "within", rest @ ..] => (quantity(len)?, rest),
            rest => (Self::LEN, rest),
        };
        let contract = match rest {
            [within] => Self::within(quantity(within)?),
            [within, "every", every] => Self::within(quantity(within)?).every(quantity(every)?),
            _ => return Err(NoInTime(format!("\"{text}\" names no time to answer in"))),
        };
        Ok(contract.of(len))
    }
}

fn quantity<T: FromStr<Err: fmt::Display>>(word: &str) -> Result<T, NoInTime> {
    word.parse().map_err(|error| NoInTime(format!("\"{word}\": {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a person writes into a variable or behind a flag.
    #[test]
    fn a_contract_is_read_from_a_text_and_what_is_none_is_refused() {
        let time = Duration::from_millis;
        let plain = InTime { len: Bytes::kib(64), within: time(150), every: time(150) };
        let told = InTime { len: Bytes::kib(4), within: time(150), every: time(500) };
        for (text, contract) in [
            ("150ms", plain),
            (" 64KiB within 150ms ", plain),
            ("4KiB within 150ms every 500ms", told),
            ("150ms every 500ms", told.of(Bytes::kib(64))),
        ] {
            assert_eq!(text.parse(), Ok(contract), "{text}");
        }
        for text in ["", "4KiB", "within 150ms", "4KiB within", "4KiB 150ms", "150ms every", "-1s"]
        {
            let error = text.parse::<InTime>().unwrap_err().to_string();
            assert!(error.contains("say for example"), "{text}: {error}");
        }
    }
}
