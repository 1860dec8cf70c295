//! The section `[files]` of the configuration.

use engine::BlockDevice;
use serde::{Deserialize, Deserializer};
use std::path::PathBuf;
use units::{Bytes, Duration};

/// Of a device's time, what contracts on its files may have where nothing is said.
pub const SHARE_PPM: u64 = 500_000;
/// How long others may have the device, where nothing is said, before windows are empty.
pub const RIDE_OUT: Duration = Duration::from_secs(1);
/// Memory of windows on the files of one device, where nothing is said.
pub const MEMORY: Bytes = Bytes::mib(64);

/// How contracts on files are given.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Whether they are.
    pub enabled: bool,
    /// Of each device's time, by contracts on its files: `"50%"`.
    pub share: Option<Share>,
    /// How long others may have a device before windows are empty: `"1s"`.
    #[serde(deserialize_with = "crate::config::from_text")]
    pub ride_out: Option<Duration>,
    /// Memory of windows on the files of one device: `"64MiB"`.
    #[serde(deserialize_with = "crate::config::from_text")]
    pub memory: Option<Bytes>,
    /// What is known of single devices.
    pub device: Vec<DeviceSettings>,
    /// Drives on which disks of the pool lie, each with the disk: no setting.
    #[serde(skip)]
    pub pool_drives: Vec<(String, PathBuf)>,
    /// Contracts may share a drive with the pool: no setting.
    #[serde(skip)]
    pub shared_drive: bool,
    /// Threads that read files under contract ask for real-time priority: no setting.
    #[serde(skip)]
    pub realtime: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            enabled: true,
            share: None,
            ride_out: None,
            memory: None,
            device: Vec::new(),
            pool_drives: Vec::new(),
            shared_drive: false,
            realtime: true,
        }
    }
}

/// What is known of one device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DeviceSettings {
    /// The whole device, `"sda"` or `"/dev/sda"`.
    pub device: String,
    /// What `slackline disk profile` wrote.
    pub profile: Option<PathBuf>,
    /// As in `[files]`, for this one.
    pub share: Option<Share>,
    /// What others may have in it when a read under contract comes: `"100ms"`.
    #[serde(deserialize_with = "crate::config::from_text")]
    pub others: Option<Duration>,
}

impl DeviceSettings {
    /// Whether it is about this device.
    pub fn is(&self, device: &BlockDevice) -> bool {
        let path = PathBuf::from(&self.device);
        let node = device.node();
        self.device == device.name
            || path == node
            || path.canonicalize().is_ok_and(|path| path == node)
    }
}

/// A part of a device's time, in parts per million.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share(pub u64);

impl<'de> Deserialize<'de> for Share {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match crate::quotas::Cap::deserialize(from)? {
            crate::quotas::Cap::Part(ppm) => Ok(Self(ppm)),
            _ => Err(serde::de::Error::custom("write for example 50%")),
        }
    }
}
