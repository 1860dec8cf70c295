//! What the pool does of its own accord: extents are moved, disks measured again; and
//! what changes for all of it: a profile, the policy.

pub(crate) mod delivery;
pub(crate) mod gaps;
pub(crate) mod measuring;
pub(crate) mod moves;
pub(crate) mod moving;
pub(crate) mod no_slack;
pub(crate) mod policy;
pub(crate) mod profiles;
pub(crate) mod remeasure;
