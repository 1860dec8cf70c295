//! Best effort in order of arrival: what several policies serve in their slack.

use crate::policy::View;
use crate::queues::Waiting;

/// The best-effort request that came first.
pub fn oldest<'a>(view: &'a View<'_>) -> Option<&'a Waiting> {
    let both = [true, false].map(|synchronous| view.queues().best_effort_oldest(synchronous));
    both.into_iter().flatten().min_by_key(|request| request.arrival)
}
