//! What each user and group may hold, and holds.

use super::Priority;
use crate::quantity;
use serde::{Deserialize, Serialize};
use units::Bytes;

/// Whether a holder is a user or a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum HolderKind {
    /// All programs of one user.
    User,
    /// All programs of the members of a group, together.
    Group,
}

/// The most that a holder may have; what is missing has no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct QuotaLimits {
    /// Of each disk's time, by contracts, in parts per million.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_share_ppm: Option<u64>,
    /// Space of the pool in volumes.
    #[serde(with = "quantity::option", default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<u64>))]
    pub space_bytes: Option<Bytes>,
    /// Volumes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volumes: Option<u64>,
    /// Memory of playout windows.
    #[serde(with = "quantity::option", default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<u64>))]
    pub memory_bytes: Option<Bytes>,
    /// Open streams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streams: Option<u64>,
    /// Open best-effort connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best_effort_connections: Option<u64>,
    /// Best-effort requests under way, on all connections together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best_effort_requests: Option<u64>,
    /// The highest priority that a best-effort connection may state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
}

/// What a holder has of one disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct QuotaShare {
    /// The number of the pool's disk, or the name of a device with files under contract.
    pub disk: String,
    /// Of its time, in parts per million.
    pub share_ppm: u64,
}

/// One user or group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Holder {
    /// Which of the two.
    pub kind: HolderKind,
    /// Its number.
    pub id: u32,
    /// Its name; the number where it has none.
    pub name: String,
    /// What it may have.
    pub limits: QuotaLimits,
    /// What it has of each disk, by contracts.
    pub shares: Vec<QuotaShare>,
    /// Space that its volumes reserve: those that a user owns, or that are in a group.
    #[serde(with = "quantity", default)]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub space_bytes: Bytes,
    /// Its volumes.
    #[serde(default)]
    pub volumes: u64,
    /// Memory of its playout windows.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub memory_bytes: Bytes,
    /// Its open streams.
    pub streams: u64,
    /// Its open best-effort connections.
    pub best_effort_connections: u64,
    /// Its best-effort requests under way.
    pub best_effort_requests: u64,
}

/// All users and groups that have something or have a quota of their own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Quotas {
    /// What a user may have for whom nothing is said.
    pub default_limits: QuotaLimits,
    /// Users by number, then groups by number.
    pub holders: Vec<Holder>,
}
