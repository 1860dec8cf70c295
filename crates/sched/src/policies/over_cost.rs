//! Released requests in deadline order, and those that cost more than their contract
//! covers; shared by the policies that promise contracts.
//!
//! A request whose bound is above the cost of its task (the profile of the disk was made
//! wider, or the contract was made for less than is asked under it) would make others late
//! if it began at its turn: admission knows of the task's cost alone. To the others it is
//! best effort: it starts at its turn where what may be given away covers all of it, once
//! nothing is kept for it any more; else it waits among best effort, keeps its deadline,
//! and is late alone.

use crate::policy::View;
use crate::queues::Waiting;
use units::Duration;

/// Which released request under contract may go next.
pub(super) enum Turn {
    /// None waits.
    None,
    /// The one with the earliest deadline.
    Due(Waiting),
    /// One that costs more than its contract covers; what may be given away covers it now.
    OverCost(u64),
}

/// The next turn; `covers` says whether so much may be given away now, and spends it. Each
/// request that costs too much is looked at once, and then waits elsewhere: O(log n) for
/// each.
pub(super) fn turn(
    view: &mut View<'_>,
    mut covers: impl FnMut(&mut View<'_>, Duration) -> bool,
) -> Turn {
    while let Some(ready) = view.queues().ready_first().copied() {
        if !view.is_over_cost(&ready) {
            return Turn::Due(ready);
        }
        view.set_over_cost(ready.key);
        if covers(view, view.predicted(&ready)) {
            return Turn::OverCost(ready.key);
        }
    }
    Turn::None
}
