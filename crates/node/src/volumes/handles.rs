//! Handles on a volume that have contracts of their own: answers within a time, for what is
//! asked by this handle alone.
//!
//! They are served by the same machinery as volumes under contract (`services.rs`), beside the
//! volume's own service, and end with the handle; nothing of them is kept.
//!
//! What opens and closes them is in `opening.rs`. Invariant: `open` has exactly the handles that have a service.

use crate::api::HandleId;
use alloc::collections::BTreeMap;
use store::VolumeId;

/// All that are open.
#[derive(Clone, Debug, Default)]
pub(crate) struct Handles {
    /// On which volume, and of which user.
    pub(crate) open: BTreeMap<HandleId, (VolumeId, u32)>,
    pub(crate) next: u64,
}
