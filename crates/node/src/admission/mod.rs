//! What a contract takes, whether it fits, and how it joins, changes and leaves.

pub(crate) mod asked;
pub(crate) mod block;
pub(crate) mod chunks;
pub(crate) mod contract;
pub(crate) mod costs;
pub(crate) mod host;
pub(crate) mod join;
pub(crate) mod odds;
pub(crate) mod owed;
pub(crate) mod rates;
pub(crate) mod sweep;
pub(crate) mod terms;
