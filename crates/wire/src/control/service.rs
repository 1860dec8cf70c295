//! How reads and writes without a stream are served.

use crate::quantity;
use serde::{Deserialize, Serialize};
use units::{Bytes, Duration, Rate};

/// How reads and writes of a volume that no stream carries are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(tag = "class", rename_all = "snake_case", deny_unknown_fields)]
pub enum Service {
    /// In the slack of the contracts; nothing is promised.
    BestEffort {
        /// Who goes first among those without a contract.
        #[serde(default)]
        priority: Priority,
    },
    /// In the slack, and at least so much whatever the others do.
    Rate {
        /// Bytes per second, sustained; each disk of the volume gives its part.
        #[serde(with = "quantity")]
        #[cfg_attr(feature = "schema", schema(value_type = u64))]
        rate_bytes_per_second: Rate,
        /// In operations of at least so many bytes, anywhere on the volume: a
        /// multiple of 4 KiB, at most 1 MiB.
        #[serde(with = "quantity")]
        #[cfg_attr(feature = "schema", schema(value_type = u64))]
        block_bytes: Bytes,
        /// Over this time; what is not used in it is lost.
        #[serde(with = "quantity")]
        #[cfg_attr(feature = "schema", schema(value_type = u64))]
        period_ns: Duration,
    },
    /// Each operation is answered within a time.
    Latency {
        /// The largest operation: a multiple of 4 KiB, at most 1 MiB.
        #[serde(with = "quantity")]
        #[cfg_attr(feature = "schema", schema(value_type = u64))]
        len_bytes: Bytes,
        /// How soon it is answered.
        #[serde(with = "quantity")]
        #[cfg_attr(feature = "schema", schema(value_type = u64))]
        within_ns: Duration,
        /// The least time between two operations on the same disk.
        #[serde(with = "quantity")]
        #[cfg_attr(feature = "schema", schema(value_type = u64))]
        every_ns: Duration,
    },
}

impl Default for Service {
    fn default() -> Self {
        Self::BestEffort { priority: Priority::Normal }
    }
}

/// Who goes first among those without a contract.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    /// Somebody waits for the answer: before the others.
    Interactive,
    /// As everybody.
    #[default]
    Normal,
    /// Only when nothing else wants the disk.
    Background,
}

impl Priority {
    /// Its name, as in JSON, in settings and at doors.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Interactive => "interactive",
            Self::Normal => "normal",
            Self::Background => "background",
        }
    }
}

/// A service that is kept with its volume and is not in force: it did not fit when the pool
/// was served, and the volume is served as by default. It is tried again when another contract
/// ends or changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct KeptOut {
    /// What the volume was given.
    pub service: Service,
    /// Why it did not fit when it was tried last, with the figures.
    pub detail: String,
    /// What to do.
    pub next_step: String,
}

/// A best-effort connection that has a contract of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Handle {
    /// Its number, by which it is ended; zero where an older daemon does not say.
    #[serde(default)]
    pub id: u64,
    /// Whose it is.
    pub user: String,
    /// The contract.
    pub service: Service,
    /// What became of its requests.
    pub account: ServiceAccount,
}

/// Requests of a volume under its service's contract, since it got one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ServiceAccount {
    /// Requests done.
    pub requests: u64,
    /// Requests answered after their time: of answers in time, counted from when the daemon
    /// had read the request until the answer was in the socket or the window of its program.
    pub late_requests: u64,
    /// The latest of them, after its time.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub late_max_ns: Duration,
    /// Longest time of a request: of answers in time, from when the daemon had read it until the
    /// answer was with its program; of a rate, from when the budget let it in.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub latency_max_ns: Duration,
    /// Of those that were late: in time when the pool handed the answer out, and late when it was
    /// with its program.
    #[serde(default)]
    pub late_carried_requests: u64,
    /// The longest time from when the pool handed out an answer until it was with its program.
    #[serde(with = "quantity", default)]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub carried_max_ns: Duration,
}
