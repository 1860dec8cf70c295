//! What a person looks at: everything at one instant with what is found in it, and the last hours.

use super::{PolicyState, Status, Stream};
use crate::control::Mode;
use serde::{Deserialize, Serialize};
use units::{Bytes, Duration};

/// How grave a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Weight {
    /// A contract was not kept, or what stands there is no promise, or data is in danger.
    Broken,
    /// Nothing is broken yet, and somebody should look.
    Look,
}

/// One thing that a person should know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Finding {
    /// Which finding it is: the same while it lasts, whatever its figures become, for example
    /// `disk/0/errors` or `stream/3/late`.
    pub key: String,
    /// The volume that it is about; missing where it is about the pool, a disk or the host.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub volume: Option<String>,
    /// How grave it is.
    pub weight: Weight,
    /// What is the case, with its figures.
    pub what: String,
    /// What to do.
    pub next_step: String,
}

/// Everything at one instant, with what is found in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Overview {
    /// True where nothing was found: every contract was kept so far, and nothing that is known
    /// endangers one.
    pub sound: bool,
    /// The same in a line for people, with how many contracts or findings there are.
    pub verdict: String,
    /// What was found, the gravest first.
    pub findings: Vec<Finding>,
    /// How the disks are scheduled.
    pub policy: PolicyState,
    /// What it was found in.
    pub status: Status,
}

/// What the disks did in the last hours.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct History {
    /// How long a step is.
    pub step_seconds: u64,
    /// The oldest first. Where the daemon did not run there are none.
    pub steps: Vec<HistoryStep>,
}

/// One step of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct HistoryStep {
    /// When it ended, in seconds since 1970, by the clock of the daemon's machine.
    pub at_seconds: u64,
    /// In the order of the disks' numbers.
    pub disks: Vec<DiskStep>,
}

/// What one disk did in a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct DiskStep {
    /// The share of its time that contracts had at the end, in parts per million.
    pub promised_ppm: u64,
    /// Bytes moved under contract.
    pub contract_bytes: u64,
    /// Bytes moved as best effort.
    pub best_effort_bytes: u64,
    /// Requests under contract done after their deadline.
    pub late_requests: u64,
}

impl Status {
    /// Where the volume of that name is full; none where it is not shown, or never is: a ring.
    pub fn full_at(&self, volume: &str) -> Option<Bytes> {
        let found = self.volumes.iter().find(|one| one.name == volume);
        found.filter(|one| one.ring.is_none()).map(|one| one.size_bytes)
    }
}

impl Stream {
    /// How long a writer can go on at its rate until its volume, of this size, is full, or as large as its
    /// program makes it; none for what does not write.
    pub fn left(&self, size: Option<Bytes>) -> Option<Duration> {
        let rate = self.contract.rate_bytes_per_second.get();
        if self.mode != Mode::Write || rate == 0 {
            return None;
        }
        let size = size?.max(self.grows_to_bytes);
        let room = size.get().saturating_sub(self.position_bytes.get());
        Some(Duration::from_secs(room / rate))
    }
}
