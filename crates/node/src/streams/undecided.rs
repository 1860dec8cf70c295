//! What is kept of an opening that cannot be decided for a moment (`opening.rs`).

use crate::api::*;
use units::Instant;

/// An opening that waits until it can be decided.
#[derive(Clone, Debug)]
pub(crate) struct Undecided {
    pub ticket: Ticket,
    pub opening: Opening,
    pub region: Option<Region>,
    /// When it is tried again, and until when at the latest.
    pub again: Instant,
    pub until: Instant,
}
