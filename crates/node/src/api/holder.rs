//! Whom a service is promised to.

use super::words::HandleId;
use core::ops::RangeInclusive;
use store::VolumeId;

/// Who has a service: a volume, or one handle on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Holder {
    pub volume: VolumeId,
    pub handle: Option<HandleId>,
}

impl From<VolumeId> for Holder {
    fn from(volume: VolumeId) -> Self {
        Self { volume, handle: None }
    }
}

impl Holder {
    /// The volume and all handles on it.
    pub(crate) fn on(volume: VolumeId) -> RangeInclusive<Self> {
        Self::from(volume)..=Self { volume, handle: Some(HandleId(u64::MAX)) }
    }
}
