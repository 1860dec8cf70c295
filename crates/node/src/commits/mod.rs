//! When the metadata log is committed, and who waits for it.

pub(crate) mod contract;
mod longest;
pub(crate) mod run;
pub(crate) mod state;
pub(crate) mod tasks;
pub(crate) mod times;
