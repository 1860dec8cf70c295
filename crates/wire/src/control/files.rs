//! Contracts on ordinary files, which no pool holds.

use super::{Contract, HostTime};
use crate::quantity;
use serde::{Deserialize, Serialize};
use units::{Bytes, Duration, Rate};

/// Asks for a contract on a file: the body of a `HelloFile` frame, which carries the
/// file's descriptor. Only reading is offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileOpen {
    /// What is asked.
    pub contract: Contract,
    /// The playout point to start from: an offset in the file.
    #[serde(default, with = "quantity")]
    pub start_bytes: Bytes,
}

/// The contract is taken, as far as the device bears it out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileOpened {
    /// The number of the stream, for the first frame on the data socket.
    pub id: u64,
    /// Memory of the playout window.
    #[serde(with = "quantity")]
    pub window_bytes: Bytes,
    /// How long the file is.
    #[serde(with = "quantity")]
    pub length_bytes: Bytes,
    /// The stream is closed unless a data connection asks for it within this time.
    pub attach_within_ms: u64,
    /// What can disturb the promise, in words.
    pub notes: Vec<String>,
}

/// A device that carries file systems of others, at one instant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct FileDevice {
    /// Its name, as the kernel has it.
    pub device: String,
    /// Where its profile comes from.
    pub profile: String,
    /// The kernel's scheduler on it.
    pub scheduler: String,
    /// Streams open on its files.
    pub streams: u64,
    /// Its time that contracts on files have, in parts per million.
    pub utilisation_ppm: u64,
    /// The most that they may have.
    pub share_ppm: u64,
    /// Reads done.
    pub requests: u64,
    /// Reads done after their deadline,
    pub late_requests: u64,
    /// and the latest of them, after it.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub late_max_ns: Duration,
    /// Reads that took longer than the profile and what others are allowed for: somebody
    /// else had the device.
    pub disturbed: u64,
    /// The most that one took longer.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub disturbed_max_ns: Duration,
    /// Sum of the reads' times by the profile,
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub predicted_ns: Duration,
    /// and of the times that they took.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub actual_ns: Duration,
    /// What a stream of 1 MiB blocks could still be given.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub rate_max_bytes_per_second: Rate,
    /// What the host takes from the end of a read until the next one begins that waits.
    #[serde(default)]
    pub gap: HostTime,
    /// What the daemon takes to carry an answer under contract to its program: what was measured
    /// is of all programs, what is counted of this device.
    #[serde(default)]
    pub delivery: HostTime,
    /// What can disturb the promise, in words.
    pub notes: Vec<String>,
}

/// All devices with files under contract since the daemon was started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct FileDevices {
    /// In the order of their first use.
    pub devices: Vec<FileDevice>,
}
