//! What a token can be held to.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;
use units::Rate;

/// Longest name of a volume, in bytes, as everywhere.
pub const NAME_MAX: usize = 255;
/// The last second that a token can be good until: the end of the year 9999, the last that has
/// four digits.
pub const UNTIL_MAX: u64 = 253_402_300_799;

/// One thing that a token is held to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Restriction {
    /// To these volumes.
    Volumes(Vec<Names>),
    /// To these verbs.
    Verbs(Verbs),
    /// To contracts of this rate at the most.
    RateMax(Rate),
    /// To a time before this one, in seconds since 1970.
    Until(u64),
}

impl fmt::Display for Restriction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Volumes(names) => {
                f.write_str("volumes: ")?;
                for (at, one) in names.iter().enumerate() {
                    write!(f, "{}{one}", if at == 0 { "" } else { ", " })?;
                }
                Ok(())
            }
            Self::Verbs(verbs) => write!(f, "verbs: {verbs}"),
            Self::RateMax(rate) => write!(f, "contracts of at most {rate}"),
            Self::Until(until) => write!(f, "until {}", Date(*until)),
        }
    }
}

/// One volume, or many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Names {
    /// The volume of this name.
    One(String),
    /// Every volume whose name begins so.
    Beginning(String),
}

impl Names {
    /// Whether a volume of this name is meant.
    pub fn has(&self, name: &str) -> bool {
        match self {
            Self::One(one) => one == name,
            Self::Beginning(prefix) => name.starts_with(&**prefix),
        }
    }

    /// What it says of names.
    pub fn text(&self) -> &str {
        let (Self::One(text) | Self::Beginning(text)) = self;
        text
    }

    /// Whether it can stand in a token.
    pub fn is_sound(&self) -> bool {
        let text = self.text();
        (1..=NAME_MAX).contains(&text.len()) && !text.chars().any(char::is_control)
    }
}

impl fmt::Display for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(name) => write!(f, "\"{name}\""),
            Self::Beginning(prefix) => write!(f, "all that begin with \"{prefix}\""),
        }
    }
}

/// What somebody wants to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Verb {
    /// Read bytes, and what is known of volumes.
    Read = 1,
    /// Write bytes, grow and shrink.
    Write = 2,
    /// Make and delete volumes.
    Create = 4,
    /// Give volumes names, owners, modes and contracts; what concerns the pool.
    Manage = 8,
}

impl Verb {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Read, Self::Write, Self::Create, Self::Manage];

    /// What it is called.
    pub fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Create => "create",
            Self::Manage => "manage",
        }
    }
}

impl FromStr for Verb {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|verb| verb.word() == text);
        found.ok_or("no such verb; there are read, write, create and manage")
    }
}

/// Some verbs, at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verbs(u8);

impl Verbs {
    /// All there are.
    pub const ALL: Self = Self(15);

    /// These; none where there are none.
    pub fn of(verbs: impl IntoIterator<Item = Verb>) -> Option<Self> {
        Self::from_bits(verbs.into_iter().fold(0, |all, verb| all | verb as u8))
    }

    pub(crate) fn from_bits(bits: u8) -> Option<Self> {
        (bits != 0 && bits & !Self::ALL.0 == 0).then_some(Self(bits))
    }

    pub(crate) fn bits(self) -> u8 {
        self.0
    }

    /// Whether this one is among them.
    pub fn has(self, verb: Verb) -> bool {
        self.0 & verb as u8 != 0
    }
}

impl fmt::Display for Verbs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut comma = "";
        for verb in Verb::ALL.into_iter().filter(|&verb| self.has(verb)) {
            write!(f, "{comma}{}", verb.word())?;
            comma = ", ";
        }
        Ok(())
    }
}

/// A second since 1970 as people write it, in the time of Greenwich.
pub(crate) struct Date(pub u64);

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (days, rest) = (self.0 / 86_400, self.0 % 86_400);
        // Howard Hinnant, "chrono-compatible low-level date algorithms": years begin in March, so
        // that the leap day is the last of its year.
        let days = days + 719_468;
        let (era, day_of_era) = (days / 146_097, days % 146_097);
        let year =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year + year / 4 - year / 100);
        let march = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * march + 2) / 5 + 1;
        let month = if march < 10 { march + 3 } else { march - 9 };
        let year = year + era * 400 + u64::from(month <= 2);
        let (hour, minute, second) = (rest / 3_600, rest / 60 % 60, rest % 60);
        write!(f, "{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
    }
}
