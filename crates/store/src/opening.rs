//! Opening a pool.

use crate::api::DiskIndex;
use crate::store::Store;
use alloc::vec::Vec;

/// An open pool, and which of the given disks is which.
#[derive(Debug)]
pub struct Opened {
    /// The pool.
    pub store: Store,
    /// The number in the pool of each given disk, in the order in which they were given.
    pub order: Vec<DiskIndex>,
}
