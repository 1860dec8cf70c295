//! The policy of a pool: what it promises, its settings, and another one in its place.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How the disks of the pool are scheduled, and what that promises.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PolicyState {
    /// Its name.
    pub policy: String,
    /// What it is, in a sentence or two.
    pub summary: String,
    /// By which analysis contracts are admitted that it keeps.
    pub admission: PolicyAdmission,
    /// False where no contract is a promise: the policy keeps none, or the daemon was started
    /// with `--no-admission`.
    pub promised: bool,
    /// Its settings, with their values and limits.
    #[serde(default)]
    pub settings: Vec<PolicySetting>,
    /// True where the pool keeps that this policy was chosen, with these settings: it is
    /// followed when the daemon is started again.
    #[serde(default)]
    pub kept: bool,
}

/// A setting of a policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PolicySetting {
    /// Its name.
    pub name: String,
    /// What its values count.
    pub unit: SettingUnit,
    /// Its value now.
    pub value: u64,
    /// Its value where none was chosen.
    pub default: u64,
    /// The least value.
    pub least: u64,
    /// The greatest value.
    pub most: u64,
    /// What it does, in a sentence or two.
    pub summary: String,
}

/// What the values of a setting count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum SettingUnit {
    /// Nanoseconds.
    Nanoseconds,
    /// Bytes.
    Bytes,
    /// Things.
    Number,
}

/// By which analysis a policy keeps what was admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum PolicyAdmission {
    /// Demand and blocking at every deadline.
    Exact,
    /// All requests of a cycle within it.
    Cycles,
    /// Those of streams in one sweep over the disk in each cycle, and all others by deadlines.
    Sweeps,
    /// None: it keeps no contract.
    Nothing,
}

/// Another policy for the pool, or other settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct PolicySet {
    /// Its name; its settings are then as by default, but for those that are named. Missing: the
    /// one that the pool follows, with the settings that it has, but for those that are named.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub policy: Option<String>,
    /// Values of its settings by their names, as people write them: a time with its unit
    /// (`"20ms"`), a size (`"40KiB"`), or a number (`"16"`).
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub settings: BTreeMap<String, String>,
    /// False: until the daemon stops; the pool then forgets what it kept. Missing: the pool
    /// keeps it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub keep: Option<bool>,
}
