//! What is charged for the host beside the gap that the schedule has, and what was measured and
//! is not charged.

use node::Error;
use units::{Duration, Instant};

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Host {
    /// What deadlines are advanced by for what the daemon takes to carry an answer.
    pub delivery: Duration,
    /// A longer gap that was measured, with what the contracts that are open do not bear.
    pub gap_refused: Option<(Duration, Error)>,
    /// The same of deliveries.
    pub delivery_refused: Option<(Duration, Error)>,
    /// When what was measured of gaps is looked at next though no read ends.
    pub gaps_due: Option<Instant>,
    /// When it was last tried again because a stream had closed,
    pub tried: Option<Instant>,
    /// and when it is to be tried again because more have closed since.
    pub again: Option<Instant>,
}
