//! Bad answers: what failed, with its figures, and what to do next.

use crate::control::Bus;
use crate::{Code, quantity};
use serde::{Deserialize, Serialize};
use units::{Bytes, Duration, Rate};

/// Why a contract does not fit, and what would.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Refusal {
    /// The disk that cannot take it.
    pub disk: u16,
    /// Utilisation of that disk with the contract, in parts per million.
    pub utilisation_ppm: u64,
    /// The earliest deadline, from a common start, at which the disk would be
    /// asked for more time than there is; missing where the utilisation alone
    /// is too much.
    #[serde(with = "quantity::option", default)]
    #[cfg_attr(feature = "schema", schema(value_type = Option<u64>))]
    pub deadline_ns: Option<Duration>,
    /// By how much demand exceeds supply at that deadline.
    #[serde(with = "quantity::option", default)]
    #[cfg_attr(feature = "schema", schema(value_type = Option<u64>))]
    pub excess_ns: Option<Duration>,
    /// The largest rate, in the same blocks, that would have been admitted.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub rate_max_bytes_per_second: Rate,
    /// Longer blocks in which more would have been admitted; missing where none would help.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub longer: Option<LongerBlocks>,
    /// Of answers in time: a time that would have been admitted, at the same interval and length;
    /// missing where none would.
    #[serde(with = "quantity::option", skip_serializing_if = "Option::is_none", default)]
    #[cfg_attr(feature = "schema", schema(value_type = Option<u64>))]
    pub within_ns: Option<Duration>,
    /// The bus that the disk shares with others: without the wait for it the disk could take
    /// more.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub bus: Option<Box<Bus>>,
    /// True where nothing was found to be too much: the disk could not tell within the work that
    /// one decision may take, or what waits at this moment is in the way. The same request may
    /// be taken when it is tried again.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub undecided: bool,
}

/// Blocks that are longer than those of a refused contract, and take more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct LongerBlocks {
    /// The shortest in which all that was asked for fits; those that take most where it fits in
    /// none.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub block_bytes: Bytes,
    /// A rate that would have been admitted in them: the one that was asked for, or the largest,
    /// found to a sixty-fourth.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub rate_bytes_per_second: Rate,
}

/// A bad answer (RFC 9457), with what to do next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(examples(json!({
    "type": "urn:slackline:problem:refused",
    "title": "The contract does not fit",
    "status": 409,
    "detail": "disk 0 cannot keep this contract: its utilisation would be 102.34 %, and by the \
        deadline 507 ms after a common start it would be asked for 7 ms more time than there is",
    "code": "refused",
    "next_step": "the largest rate that fits in these blocks is 817 kB/s: ask for \
        `--rate 817432B/s`, or close a stream",
    "refusal": {
        "disk": 0, "utilisation_ppm": 1_023_456, "deadline_ns": 507_000_000,
        "excess_ns": 7_000_000, "rate_max_bytes_per_second": 817_432,
    },
}))))]
pub struct Problem {
    /// `urn:slackline:problem:` and the code.
    #[serde(rename = "type")]
    pub kind: String,
    /// What the code means; the same for every occurrence.
    pub title: String,
    /// The status of the HTTP answer.
    pub status: u16,
    /// What went wrong this time.
    pub detail: String,
    /// What went wrong, for a program.
    pub code: Code,
    /// What to do about it.
    pub next_step: String,
    /// The figures, where admission refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<Refusal>,
    /// What is in the way passes by itself, as a host does that is busy for a while: the same request
    /// may be taken later, though nobody gives anything back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub passes: bool,
}

impl Problem {
    /// A problem of this code: what went wrong this time, and what to do.
    pub fn new(code: Code, detail: impl Into<String>, next_step: impl Into<String>) -> Self {
        Self {
            kind: format!("urn:slackline:problem:{}", code.word()),
            title: code.title().into(),
            status: code.http_status(),
            detail: detail.into(),
            code,
            next_step: next_step.into(),
            refusal: None,
            passes: false,
        }
    }
}
