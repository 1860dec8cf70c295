//! What a token that was checked lets somebody do: all of its restrictions at once.

use crate::restriction::{Date, Names, Restriction, Verb, Verbs};
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use units::Rate;

/// What a token lets somebody do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// By which it is revoked.
    pub number: u64,
    /// The user that it acts as.
    pub uid: u32,
    /// A volume must be on each of these lists.
    volumes: Vec<Vec<Names>>,
    /// Verbs that every restriction names; none where there is no such verb.
    verbs: Option<Verbs>,
    rate_max: Option<Rate>,
    /// The second from which on it is good for nothing.
    pub until: Option<u64>,
}

/// What somebody asks for.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// What he wants to do,
    pub verb: Verb,
    /// with this volume, where it is one; none: with what concerns the whole pool.
    pub volume: Option<&'a str>,
}

/// Why a token does not let somebody do it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Its time is over.
    Expired {
        /// Since then, in seconds since 1970.
        until: u64,
    },
    /// It does not have this verb.
    Verb(Verb),
    /// It does not have this volume.
    Volume(String),
    /// It is for some volumes, and this concerns the pool.
    Pool,
    /// It has smaller contracts.
    Rate {
        /// What was asked for.
        asked: Rate,
        /// What it has.
        most: Rate,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Expired { until } => write!(f, "the token was good until {}", Date(*until)),
            Self::Verb(verb) => write!(f, "the token does not let you {}", verb.word()),
            Self::Volume(name) => write!(f, "the token is not for volume \"{name}\""),
            Self::Pool => f.write_str("the token is for some volumes, and this concerns the pool"),
            Self::Rate { asked, most } => {
                write!(f, "the token is for contracts of at most {most}, and {asked} was asked for")
            }
        }
    }
}
impl core::error::Error for Refusal {}

impl Grant {
    pub(crate) fn new(number: u64, uid: u32, restrictions: &[Restriction]) -> Self {
        let (volumes, verbs) = (Vec::new(), Some(Verbs::ALL));
        let mut grant = Self { number, uid, volumes, verbs, rate_max: None, until: None };
        let less = |known: Option<u64>, more| Some(known.map_or(more, |known| known.min(more)));
        for restriction in restrictions {
            match restriction {
                Restriction::Volumes(names) => grant.volumes.push(names.clone()),
                Restriction::Verbs(more) => {
                    let both = |known: Verbs| Verbs::from_bits(known.bits() & more.bits());
                    grant.verbs = grant.verbs.and_then(both);
                }
                Restriction::RateMax(rate) => {
                    grant.rate_max = Some(grant.rate_max.map_or(*rate, |known| known.min(*rate)));
                }
                Restriction::Until(until) => grant.until = less(grant.until, *until),
            }
        }
        grant
    }

    /// Whether it is good at this second at all.
    ///
    /// # Errors
    /// Its time is over.
    pub fn is_good(&self, now: u64) -> Result<(), Refusal> {
        match self.until {
            Some(until) if now >= until => Err(Refusal::Expired { until }),
            _ => Ok(()),
        }
    }

    /// Whether it lets somebody do this. Its time is asked about apart ([`Grant::is_good`]).
    ///
    /// # Errors
    /// Which of its restrictions does not.
    pub fn permits(&self, asked: Asked<'_>) -> Result<(), Refusal> {
        self.has(asked.verb)?;
        match asked.volume {
            Some(name) if !self.names(name) => Err(Refusal::Volume(name.into())),
            None if !self.volumes.is_empty() => Err(Refusal::Pool),
            _ => Ok(()),
        }
    }

    /// Whether it has this verb, for whatever volumes.
    ///
    /// # Errors
    /// It does not.
    pub fn has(&self, verb: Verb) -> Result<(), Refusal> {
        match self.verbs.is_some_and(|verbs| verbs.has(verb)) {
            true => Ok(()),
            false => Err(Refusal::Verb(verb)),
        }
    }

    /// Whether a volume of this name is on all of its lists.
    pub fn names(&self, name: &str) -> bool {
        self.volumes.iter().all(|list| list.iter().any(|names| names.has(name)))
    }

    /// Whether it is for all volumes.
    pub fn is_for_all(&self) -> bool {
        self.volumes.is_empty()
    }

    /// Whether it lets somebody have a contract of this rate.
    ///
    /// # Errors
    /// It has smaller ones.
    pub fn promises(&self, asked: Rate) -> Result<(), Refusal> {
        match self.rate_max {
            Some(most) if asked > most => Err(Refusal::Rate { asked, most }),
            _ => Ok(()),
        }
    }

    /// The largest contract that it lets somebody have, where it says one.
    pub fn rate_max(&self) -> Option<Rate> {
        self.rate_max
    }
}
