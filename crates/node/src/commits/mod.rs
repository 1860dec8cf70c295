//! When the metadata log is committed, and who waits for it.

pub(crate) mod run;
pub(crate) mod state;
