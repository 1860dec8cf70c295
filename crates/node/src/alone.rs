//! What a window needs on one disk alone, for those who keep windows of their own: files
//! under contract that no pool holds.

use crate::admission::contract;
use crate::api::{Contract, Error};
pub use crate::streams::credit::Credit;
use units::Duration;

/// Checks of a contract what does not depend on a disk.
///
/// # Errors
/// [`Error::Invalid`] says what is out of which range.
pub fn check(contract: &Contract) -> Result<(), Error> {
    contract::check(contract)
}

/// Blocks of the window of a reader whose blocks all lie on one disk, of which each is
/// released a period after the one before it and is there a period later.
pub fn window_blocks(contract: &Contract, host_latency: Duration) -> u64 {
    2 + contract::blocks_ahead(contract, host_latency)
}
