//! What the pool does of its own accord: extents are moved, disks measured again.

pub(crate) mod measuring;
pub(crate) mod moves;
pub(crate) mod moving;
pub(crate) mod profiles;
pub(crate) mod remeasure;
