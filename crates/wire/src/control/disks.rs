//! What a disk does, and what was seen of it.

use super::odds::OddsState;
use crate::quantity;
use serde::{Deserialize, Serialize};
use units::{Bytes, Duration, Rate};

/// Requests and bytes done since the pool was opened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Traffic {
    /// Requests.
    pub requests: u64,
    /// Bytes.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub bytes: Bytes,
}

/// One disk at one instant. Counts are since the pool was opened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Disk {
    /// Its number in the pool, from 0.
    pub disk: u16,
    /// What was given to open it: a path, or `emulated:MODEL:PATH`.
    pub device: String,
    /// Room for extents.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub capacity_bytes: Bytes,
    /// Room that no volume has reserved.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub free_bytes: Bytes,
    /// Utilisation by admitted contracts, in parts per million.
    pub utilisation_ppm: u64,
    /// Static slack of the admitted contracts.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub slack_ns: Duration,
    /// Stream requests that wait.
    pub waiting_real_time: u64,
    /// Best-effort requests that wait.
    pub waiting_best_effort: u64,
    /// Done for streams.
    pub real_time: Traffic,
    /// Done as best effort.
    pub best_effort: Traffic,
    /// Commands that took longer than their bound.
    pub overruns: u64,
    /// The largest excess over a bound.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub overrun_max_ns: Duration,
    /// Sum of the predicted device times.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub predicted_ns: Duration,
    /// Sum of the actual device times.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub actual_ns: Duration,
    /// Requests done after their deadline, and those that the disk has begun with and not ended in time.
    pub late_requests: u64,
    /// The latest of them, after its deadline.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub late_max_ns: Duration,
    /// The command that the disk has had for longest; left out where it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest_command: Option<OldestCommand>,
    /// Commands that failed.
    pub errors: u64,
    /// Of these, those for which the host had no room or no memory, as where the file system of the disk's
    /// file was full: no fault of the medium.
    #[serde(default)]
    pub host_errors: u64,
    /// What somebody else has done to its file since the pool is served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub damage: Option<String>,
    /// What the disk did, held against its profile.
    pub profile: ProfileState,
    /// The bus that it shares with other disks, by its profile; missing where it has one for
    /// itself.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub bus: Option<Bus>,
    /// What the host takes from the end of a command on it until the next one begins that waits.
    #[serde(default)]
    pub gap: HostTime,
    /// What came of requests that may be late now and then; left out where there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub odds: Option<OddsState>,
}

/// The command that a disk has had for longest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct OldestCommand {
    /// Since it was given to the disk.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub age_ns: Duration,
    /// What it takes at the most by the profile.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub bound_ns: Duration,
}

/// A disk that has had a command for so long may hang,
const HANGS_AFTER: Duration = Duration::from_secs(5);
/// and it does where that is so many times what the command may take.
const HANGS_AFTER_BOUNDS: u64 = 10;

impl Disk {
    /// For how long it has had a command that does not come back; none where it does not hang.
    pub fn hangs_for(&self) -> Option<Duration> {
        let oldest = self.oldest_command.as_ref()?;
        let may = HANGS_AFTER.max(oldest.bound_ns.saturating_mul(HANGS_AFTER_BOUNDS));
        (oldest.age_ns >= may).then_some(oldest.age_ns)
    }
}

/// What the host takes each time: measured, and charged to every contract.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct HostTime {
    /// What is charged.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub stated_ns: Duration,
    /// 999 times in 1,000 of the sample it was at most this.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub p999_ns: Duration,
    /// How many that is of: the latest ones. What is stated is the value from the pool's start
    /// until there are 1,024.
    pub sample: u64,
    /// Times that were longer than what was charged then.
    pub beyond: u64,
    /// By how much at the most.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub beyond_max_ns: Duration,
    /// By how much all of them together.
    #[serde(with = "quantity", default)]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub beyond_total_ns: Duration,
    /// Why a longer time that was measured is not charged; missing where it is.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub refused: Option<String>,
}

/// A bus that several disks share, as one of them sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Bus {
    /// What it is called. Disks of a pool with the same name share it.
    pub name: String,
    /// What it moves while one disk sends.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub rate_bytes_per_second: Rate,
    /// How many disks share it.
    pub disks: u32,
    /// The longest that a command of this disk waits for it, all of it together. The bound of
    /// each command counts it.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub wait_max_ns: Duration,
}

/// What is to be thought of a disk's profile, by what the disk did since the pool was
/// opened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ProfileState {
    /// Whether it can be trusted.
    pub verdict: Verdict,
    /// The same in words, with the figures.
    pub detail: String,
    /// Commands that were held against it.
    pub commands: u64,
    /// Those of them that took longer than their bound.
    pub overruns: u64,
    /// Mean of time by bound, in parts per million.
    pub ratio_ppm: u64,
    /// How long commands take of late, in parts per million of what commands of their
    /// kind took at first.
    pub drift_ppm: u64,
    /// How many extents are bad or slow: new volumes get others.
    pub suspects: u64,
    /// The first 16 of them.
    pub suspect_extents: Vec<SuspectExtent>,
    /// How many of them hold data of a volume, which is moved when nothing else wants
    /// the disk.
    pub occupied: u64,
    /// Extents that were moved to good places since the daemon was started.
    pub moved: u64,
    /// Where the extent begins that is being moved.
    #[serde(with = "quantity::option", skip_serializing_if = "Option::is_none", default)]
    #[cfg_attr(feature = "schema", schema(value_type = Option<u64>))]
    pub moving_offset_bytes: Option<Bytes>,
    /// Suspect extents with data that could not be moved; they are tried again. At most
    /// 16 of them.
    pub stuck: Vec<StuckExtent>,
    /// What measuring the disk again came to, if it was since the daemon was started.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub measured: Option<Measured>,
    /// Another profile is stored, which is used when the daemon is started again.
    pub for_next_start: bool,
}

/// A disk measured again while it was in use, with reads in the background.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Measured {
    /// How far it is, or what it came to.
    pub outcome: Outcome,
    /// The same in words.
    pub detail: String,
    /// Reads that were held against the profile.
    pub reads: u64,
    /// Those of them that took longer than their bound.
    pub over: u64,
    /// By how much at the most.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub excess_ns: Duration,
    /// How long the large reads were; the small ones are of 4 KiB.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub large_bytes: Bytes,
    /// By parts of the disk, from its start.
    pub parts: Vec<MeasuredPart>,
}

/// What a measurement came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It is on its way; what else is told is of the one before.
    Running,
    /// All reads kept within their bounds: the profile stays.
    Holds,
    /// A profile with wider bounds is used and stored.
    Used,
    /// A profile with wider bounds leaves no room for what is open.
    Refused,
}

/// One part of a disk, as it was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct MeasuredPart {
    /// Where it begins on the disk.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub from_bytes: Bytes,
    /// Where it ends.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub to_bytes: Bytes,
    /// Mean time of a small read.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub small_ns: Duration,
    /// Mean time of a large read.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub large_ns: Duration,
    /// Throughput, from what the large ones took longer; missing where they did not.
    #[serde(with = "quantity::option", skip_serializing_if = "Option::is_none", default)]
    #[cfg_attr(feature = "schema", schema(value_type = Option<u64>))]
    pub rate_bytes_per_second: Option<Rate>,
}

/// A bus that disks of the pool share from now on, or disks that share none any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum BusSet {
    /// As for `slackline pool create --bus`: `NAME,rate=RATE,disks=N+N...`.
    Shared(String),
    /// Numbers of disks that are on no bus.
    None(Vec<u16>),
}

/// A profile for a disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct DiskProfile {
    /// As TOML: what `slackline disk profile` writes.
    pub profile: String,
}

/// A bad or slow extent whose data could not be moved so far.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct StuckExtent {
    /// Where on the disk it begins.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub offset_bytes: Bytes,
    /// Whose data it holds.
    pub volume: String,
    /// Why it stays there, and what to do.
    pub detail: String,
}

/// Whether a profile can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Nothing speaks against it.
    Fresh,
    /// Commands take longer than commands of their kind did at first.
    Drifted,
    /// More commands exceed their bounds than it states, or it is of a disk of another
    /// size.
    Stale,
}

/// A bad or slow extent of a disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SuspectExtent {
    /// Where on the disk it begins; it is 1 MiB long.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub offset_bytes: Bytes,
    /// Commands on it that failed.
    pub errors: u64,
    /// Commands on it that overran far more than others like them.
    pub slow: u64,
    /// Commands that touched it since the first of these.
    pub commands: u64,
}
