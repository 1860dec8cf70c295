//! What many streams have to hear at once is told to a few of them at a time: nobody waits
//! behind thousands.
//!
//! Each call of the node tells [`ROUND_STEP`](crate::limits::ROUND_STEP) streams; until all have heard, the timer of
//! disk 0 is due. Invariant: no commit begins before all writers have heard of the one
//! before it.

use crate::api::StreamId;
use crate::commits::state::Committed;
use units::Instant;

/// A round through the streams, in the order in which they were opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Round {
    /// The last that has heard; numbers begin at 1.
    pub told: StreamId,
    pub began: Instant,
}

impl Round {
    pub fn new(now: Instant) -> Self {
        Self { told: StreamId(0), began: now }
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Rounds {
    /// A commit has ended: writers hear of it.
    pub committed: Option<(Committed, Round)>,
    /// The host's lateness has changed: windows follow.
    pub resized: Option<Round>,
}

impl Rounds {
    /// Since when somebody has to be told something.
    pub(crate) fn due(&self) -> Option<Instant> {
        let committed = self.committed.map(|(_, round)| round.began);
        Instant::first(committed, self.resized.map(|round| round.began))
    }
}
