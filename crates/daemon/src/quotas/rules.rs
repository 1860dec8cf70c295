//! Who may hold how much, as the configuration says it: the section `[quota]`.
//!
//! Invariant: what a user's own section leaves out is as in `[quota.default]`, what
//! that leaves out as in the preset; what a group's section leaves out has no limit.

use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use units::Bytes;
use wire::control::{Priority, QuotaLimits};

/// The section of the configuration file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Rules {
    /// Where the limits start from.
    pub preset: Preset,
    /// For users without a section of their own.
    pub default: Limits,
    /// By name or number.
    pub user: BTreeMap<String, Limits>,
    /// By name or number: for all members together.
    pub group: BTreeMap<String, Limits>,
}

/// Limits for one kind of machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Preset {
    /// One person at a time, many programs: nearly everything, and some is left for a
    /// second person and for what runs by itself.
    #[default]
    Desktop,
    /// Many users who do not know of each other.
    Server,
    /// Nobody has a limit.
    None,
}

/// What a part of is a part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Whole {
    /// The pool's memory.
    pub memory: Bytes,
    /// Its room for volumes.
    pub space: Bytes,
}

/// Limits as they are written; what is left out is taken from elsewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Of each disk's time, by contracts: `"50%"` or `"unlimited"`.
    pub disk_share: Option<Cap>,
    /// Space in volumes: `"100GiB"`, a part of the pool's, `"25%"`, or `"unlimited"`.
    pub space: Option<Cap>,
    /// Volumes: a number or `"unlimited"`.
    pub volumes: Option<Cap>,
    /// Memory of windows: `"64MiB"`, a part of the pool's, `"25%"`, or `"unlimited"`.
    pub memory: Option<Cap>,
    /// Open streams: a number or `"unlimited"`.
    pub streams: Option<Cap>,
    /// Best-effort connections.
    pub best_effort_connections: Option<Cap>,
    /// Best-effort requests under way, over all connections.
    pub best_effort_requests: Option<Cap>,
    /// The highest priority of a best-effort connection.
    pub priority: Option<Priority>,
}

/// One limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cap {
    /// None.
    Unlimited,
    /// So many.
    Count(u64),
    /// So much of the whole, in parts per million.
    Part(u64),
    /// So much memory or space.
    Size(Bytes),
}

impl<'de> Deserialize<'de> for Cap {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Number(u64),
            Text(String),
        }
        let wrong = || serde::de::Error::custom("write for example 50%, 64MiB, 32 or unlimited");
        match Written::deserialize(from).map_err(|_| wrong())? {
            Written::Number(count) => Ok(Self::Count(count)),
            Written::Text(text) => Self::parse(text.trim()).ok_or_else(wrong),
        }
    }
}

impl Cap {
    fn parse(text: &str) -> Option<Self> {
        if text == "unlimited" {
            return Some(Self::Unlimited);
        }
        if let Some(percent) = text.strip_suffix('%') {
            return percent_ppm(percent.trim()).map(Self::Part);
        }
        text.parse().ok().map(Self::Size)
    }

    /// Of a whole.
    fn of(self, whole: u64) -> Option<u64> {
        match self {
            Self::Unlimited => None,
            Self::Count(count) => Some(count),
            Self::Size(size) => Some(size.get()),
            Self::Part(ppm) => Some((u128::from(whole) * u128::from(ppm) / 1_000_000) as u64),
        }
    }
}

/// Parts per million of `"12.5"`; at most 100 of 100.
fn percent_ppm(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    if part.len() > 4 {
        return None;
    }
    let whole: u64 = whole.parse().ok()?;
    let digits = format!("{part:0<4}");
    let ppm = whole.checked_mul(10_000)?.checked_add(digits.parse().ok()?)?;
    (ppm <= 1_000_000).then_some(ppm)
}

impl Preset {
    /// What each says of a user.
    fn limits(self) -> Limits {
        let percent = |percent: u64| Some(Cap::Part(percent * 10_000));
        match self {
            Self::Desktop => Limits {
                disk_share: percent(80),
                space: percent(80),
                volumes: Some(Cap::Count(512)),
                memory: percent(50),
                streams: Some(Cap::Count(256)),
                best_effort_connections: Some(Cap::Count(256)),
                best_effort_requests: Some(Cap::Count(1024)),
                priority: Some(Priority::Interactive),
            },
            Self::Server => Limits {
                disk_share: percent(25),
                space: percent(25),
                // Each takes some of the metadata, whatever its size: a small pool has
                // room for some hundred.
                volumes: Some(Cap::Count(64)),
                memory: percent(10),
                streams: Some(Cap::Count(64)),
                best_effort_connections: Some(Cap::Count(32)),
                best_effort_requests: Some(Cap::Count(128)),
                priority: Some(Priority::Normal),
            },
            Self::None => Limits::default(),
        }
    }
}

impl Limits {
    fn or(self, other: Self) -> Self {
        Self {
            disk_share: self.disk_share.or(other.disk_share),
            space: self.space.or(other.space),
            volumes: self.volumes.or(other.volumes),
            memory: self.memory.or(other.memory),
            streams: self.streams.or(other.streams),
            best_effort_connections: self.best_effort_connections.or(other.best_effort_connections),
            best_effort_requests: self.best_effort_requests.or(other.best_effort_requests),
            priority: self.priority.or(other.priority),
        }
    }

    /// In figures, for a pool of so much of everything.
    fn settle(self, whole: Whole) -> QuotaLimits {
        let of = |cap: Option<Cap>, whole| cap.and_then(|cap| cap.of(whole));
        QuotaLimits {
            disk_share_ppm: of(self.disk_share, 1_000_000),
            space_bytes: of(self.space, whole.space.get()).map(Bytes::new),
            volumes: of(self.volumes, u64::MAX),
            memory_bytes: of(self.memory, whole.memory.get()).map(Bytes::new),
            streams: of(self.streams, u64::MAX),
            best_effort_connections: of(self.best_effort_connections, u64::MAX),
            best_effort_requests: of(self.best_effort_requests, u64::MAX),
            priority: self.priority,
        }
    }

    /// True where a limit is of no kind that its place can have.
    fn is_wrong(self) -> bool {
        let part = |cap| matches!(cap, None | Some(Cap::Unlimited | Cap::Part(_)));
        let size = |cap| matches!(cap, None | Some(Cap::Unlimited | Cap::Part(_) | Cap::Size(_)));
        let count = |cap| matches!(cap, None | Some(Cap::Unlimited | Cap::Count(_)));
        // One that may have nothing under way would hang, not be refused.
        let none = self.best_effort_requests == Some(Cap::Count(0));
        let counts =
            [self.streams, self.volumes, self.best_effort_connections, self.best_effort_requests];
        let sizes = size(self.memory) && size(self.space);
        !(part(self.disk_share) && sizes && counts.into_iter().all(count)) || none
    }
}

impl Rules {
    /// Why these rules are none; `None` where they are.
    pub fn wrong(&self) -> Option<String> {
        let sections =
            self.user.iter().map(|(name, limits)| (format!("quota.user.{name}"), limits));
        let groups =
            self.group.iter().map(|(name, limits)| (format!("quota.group.{name}"), limits));
        let default = [("quota.default".to_owned(), &self.default)];
        let mut all = default.into_iter().chain(sections).chain(groups);
        let (section, _) = all.find(|(_, limits)| limits.is_wrong())?;
        Some(format!(
            "[{section}]: disk_share is a percentage, memory and space are sizes or percentages, the others \
             are counts (best_effort_requests at least 1), or each \"unlimited\""
        ))
    }

    /// The same rules, with what `default` leaves out as in the preset.
    #[must_use]
    pub fn settled(self) -> Self {
        Self { default: self.default.or(self.preset.limits()), ..self }
    }

    /// For users without a section of their own.
    pub fn default_limits(&self, whole: Whole) -> QuotaLimits {
        self.default.or(self.preset.limits()).settle(whole)
    }

    /// For a user with one.
    pub fn user_limits(&self, limits: Limits, whole: Whole) -> QuotaLimits {
        limits.or(self.default).or(self.preset.limits()).settle(whole)
    }

    /// For a group.
    pub fn group_limits(limits: Limits, whole: Whole) -> QuotaLimits {
        limits.settle(whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_users_section_goes_before_the_default_and_that_before_the_preset() {
        let text = "preset = 'server'\n[default]\nmemory = '64MiB'\n[user.alice]\ndisk_share = \
                    '12.5%'\nstreams = 'unlimited'\n[group.video]\nstreams = 3\n";
        let rules: Rules = toml::from_str(text).unwrap();
        assert_eq!(rules.wrong(), None);
        let whole = Whole { memory: Bytes::mib(256), space: Bytes::mib(100 << 10) };
        let limits = rules.user_limits(rules.user["alice"], whole);
        assert_eq!(limits.disk_share_ppm, Some(125_000), "her own");
        assert_eq!(limits.streams, None, "her own");
        assert_eq!(limits.memory_bytes, Some(Bytes::mib(64)), "the default's");
        assert_eq!(limits.best_effort_requests, Some(128), "the preset's");
        assert_eq!((limits.space_bytes, limits.volumes), (Some(Bytes::mib(25 << 10)), Some(64)));
        let group = Rules::group_limits(rules.group["video"], whole);
        assert_eq!((group.streams, group.disk_share_ppm), (Some(3), None));
        let desktop = Rules::default().default_limits(whole);
        assert_eq!(desktop.memory_bytes, Some(Bytes::mib(128)));
        let none: Rules = toml::from_str("preset = 'none'").unwrap();
        assert_eq!(none.default_limits(whole), QuotaLimits::default());
    }

    #[test]
    fn what_is_no_limit_is_refused_in_words() {
        for text in ["disk_share = '120%'", "memory = 'much'", "streams = -1", "memry = '1MiB'"] {
            assert!(toml::from_str::<Limits>(text).is_err(), "{text}");
        }
        for text in [
            "disk_share = 5",
            "streams = '5%'",
            "volumes = '1GiB'",
            "space = 5",
            "best_effort_requests = 0",
        ] {
            let rules: Rules = toml::from_str(&format!("[default]\n{text}")).unwrap();
            assert!(rules.wrong().unwrap().contains("[quota.default]"), "{text}");
        }
    }
}
