//! What is remembered of the ends of a stream's requests (`landed.rs`).

use alloc::vec::Vec;
use units::Instant;

/// The end of a block's request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Landing {
    pub block: u64,
    pub at: Instant,
    pub from: Instant,
    pub due: Instant,
}

/// The ends that answers may still follow from.
#[derive(Clone, Debug, Default)]
pub(crate) struct Landed(pub Vec<Landing>);
