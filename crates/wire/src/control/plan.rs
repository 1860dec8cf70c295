//! What-if: a list of streams, and what would become of it.

use super::{Contract, Mode, Placement, Problem, Service, Zone};
use crate::quantity;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use units::{Bytes, Duration, Rate};

/// Asks what would become of a list of streams.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", schema(examples(json!({
    "streams": [{
        "name": "camera", "count": 10, "mode": "write", "contract": {
            "rate_bytes_per_second": 1_000_000, "block_bytes": 262_144, "burst_bytes": 262_144,
        },
    }],
    "alternatives": true,
}))))]
pub struct PlanRequest {
    /// In the order in which they would be opened; at most 10,000 together.
    pub streams: Vec<PlanStream>,
    /// Compare with other blocks, places and numbers of disks as well.
    #[serde(default)]
    pub alternatives: bool,
}

/// So many streams, or volumes with a service, alike. It has either a contract or
/// a service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct PlanStream {
    /// What they are called.
    pub name: String,
    /// How many.
    #[serde(default = "one")]
    pub count: u64,
    /// Streams: which way; missing means the one that costs more.
    #[serde(default)]
    pub mode: Option<Mode>,
    /// Streams: what each would ask.
    #[serde(default)]
    pub contract: Option<Contract>,
    /// Volumes: how each would be served.
    #[serde(default)]
    pub service: Option<Service>,
    /// Where its volume would lie.
    #[serde(default)]
    pub placement: Placement,
}

fn one() -> u64 {
    1
}

/// What would become of a list of streams.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Plan {
    /// True where all would be admitted.
    pub fits: bool,
    /// In the order of the list.
    pub streams: Vec<PlannedStream>,
    /// The first that would not be admitted; those before it would, and the rest of
    /// this answer is about them.
    #[serde(default)]
    pub stops: Option<PlanStop>,
    /// Each disk, with all that is open now and all that would be admitted.
    pub disks: Vec<PlannedDisk>,
    /// Memory of all windows that would be admitted.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub window_bytes: Bytes,
    /// Memory that is free for windows now.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub memory_bytes: Bytes,
    /// The list in other ways, where that was asked for; the first is as asked.
    pub alternatives: Vec<Alternative>,
    /// The same list by bounds and by sweeps, if alternatives were asked for.
    #[serde(default)]
    pub modes: Vec<PlannedMode>,
}

/// What would become of the list if the pool followed a policy, in the blocks that it chooses for
/// who names none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PlannedMode {
    /// The policy, as `slackline pool set --policy` takes it.
    pub policy: String,
    /// Its settings that are not as by default, as people write them.
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
    /// True where it is what the pool follows now.
    #[serde(default)]
    pub now: bool,
    /// The blocks of the list's entries, in its order; null for what is no stream.
    #[serde(default)]
    pub block_bytes: Vec<Option<u64>>,
    /// True where all would be admitted.
    pub fits: bool,
    /// How many would be admitted, in the list's order.
    pub admitted: u64,
    /// Utilisation of the disk that is promised the most, in parts per million.
    pub utilisation_ppm: u64,
    /// Memory of all windows that would be admitted.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub window_bytes: Bytes,
    /// From when a stream is opened until its window is full and it plays, at the latest.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub begins_ns: Duration,
}

/// What would become of one entry of the list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PlannedStream {
    /// What they are called.
    pub name: String,
    /// How many were asked for.
    pub asked: u64,
    /// How many would be admitted.
    pub admitted: u64,
    /// How many more would fit beside the whole list, counted to 10,000; missing
    /// where the list does not fit, or where it needs no admission.
    #[serde(default)]
    pub more: Option<u64>,
    /// What stops the one after those.
    #[serde(default)]
    pub stops: Option<Problem>,
    /// Memory of each one's window.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub window_bytes: Bytes,
    /// The smallest ring that each one may record to; zero where the list does not say that it
    /// writes.
    #[serde(with = "quantity", default)]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub ring_least_bytes: Bytes,
    /// How much of its size a ring would give up ahead of each one, at the most; zero where the list
    /// does not say that it writes.
    #[serde(with = "quantity", default)]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub ring_ahead_bytes: Bytes,
}

/// The first that would not be admitted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PlanStop {
    /// The name of its entry.
    pub name: String,
    /// Which of them, from 1.
    pub number: u64,
    /// Why, and what would fit.
    pub problem: Problem,
}

/// One disk with all that would be admitted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PlannedDisk {
    /// Its number, from 0.
    pub disk: u16,
    /// Utilisation by contracts, in parts per million.
    pub utilisation_ppm: u64,
    /// What is left for best effort, in parts per million of the time.
    pub best_effort_ppm: u64,
    /// Static slack: the least time that is left by any deadline after a common start.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub slack_ns: Duration,
    /// The time after a common start at which so little is left; missing where it
    /// is not known.
    #[serde(with = "quantity::option", default)]
    #[cfg_attr(feature = "schema", schema(value_type = Option<u64>))]
    pub critical_ns: Option<Duration>,
    /// Slack that admission leaves to best effort.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub reserve_ns: Duration,
    /// An estimate, not a promise: what best effort gets in random reads of 64 KiB.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub best_effort_estimate_bytes_per_second: Rate,
    /// All that is promised on the disk, and what did not fit.
    pub tasks: Vec<PlannedTask>,
}

/// Equal tasks on one disk: a request every `period`, done within `deadline`, that
/// costs at most `cost`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PlannedTask {
    /// The name of the entry; missing for what the disk has promised already.
    #[serde(default)]
    pub name: Option<String>,
    /// False for the one that does not fit.
    pub fits: bool,
    /// How many.
    pub count: u64,
    /// The least time between two requests.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub period_ns: Duration,
    /// The longest time to the end of a request; before it by what host and device
    /// may be late.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub deadline_ns: Duration,
    /// The longest device time of a request.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub cost_ns: Duration,
    /// The longest part of it that is never interrupted.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub command_ns: Duration,
}

/// How a list is varied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum Variation {
    /// As it was asked.
    Asked {},
    /// Every stream in blocks of this size.
    Blocks {
        /// The size.
        #[serde(with = "quantity")]
        #[cfg_attr(feature = "schema", schema(value_type = u64))]
        block_bytes: Bytes,
    },
    /// Every volume in this part of its disks.
    Zone {
        /// Which part.
        zone: Zone,
    },
    /// Every volume on one disk, in turns, in place of rotating over several.
    Apart {},
    /// Every volume rotating over this many disks; more than there are, as if the
    /// further ones were like the first and empty.
    Disks {
        /// How many.
        disks: u16,
    },
}

/// What would become of the list in another way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Alternative {
    /// How it differs.
    pub variation: Variation,
    /// True where all would be admitted.
    pub fits: bool,
    /// How many would be admitted, in the list's order.
    pub admitted: u64,
    /// Utilisation of the disk that is promised the most, in parts per million.
    pub utilisation_ppm: u64,
    /// Static slack of the disk that has the least.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub slack_ns: Duration,
    /// Memory of all windows that would be admitted.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub window_bytes: Bytes,
    /// An estimate, not a promise: what best effort gets in random reads of 64 KiB,
    /// on all disks together.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub best_effort_estimate_bytes_per_second: Rate,
}
