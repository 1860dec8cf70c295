//! Released requests in deadline order, and those that cost more than their contract
//! covers; shared by the policies that promise contracts.
//!
//! A request whose bound is above the cost of its task (the profile of the disk was made
//! wider, or the contract was made for less than is asked under it) would make others late
//! if it began at its turn: admission knows of the task's cost alone. To the others it is
//! best effort: it starts at its turn where what may be given away covers all of it, once
//! nothing is kept for it any more; else it waits among best effort, keeps its deadline,
//! and is late alone. Where it must be done although it never fits, its owner
//! [insists](crate::Schedule::insist), and others are late for it.

use crate::policy::View;
use crate::queues::Waiting;
use units::Duration;

/// Which released request under contract may go next.
pub(super) enum Turn {
    /// None waits.
    None,
    /// The one with the earliest deadline.
    Due(Waiting),
    /// One that costs more than its contract covers, or that may be late now and then; what may
    /// be given away covers it now.
    OverCost(u64),
    /// One that may be late now and then waits for slack, and nothing else under contract does.
    Held,
}

/// The next turn; `covers` says whether so much may be given away now, and spends it. Each
/// request that costs too much is looked at once, and then waits elsewhere: O(log n) for
/// each.
pub(super) fn turn(
    view: &mut View<'_>,
    mut covers: impl FnMut(&mut View<'_>, Duration) -> bool,
) -> Turn {
    let mut at_odds = view.first_at_odds();
    while let Some(long) = at_odds.filter(|first| view.is_long(first)) {
        // On a bad extent: there may never be so much slack, and nobody shall be held up for it.
        view.set_over_cost(long.key);
        at_odds = view.first_at_odds();
    }
    if let Some(first) = at_odds
        && view.first_kept().is_none_or(|kept| first.times.deadline < kept.times.deadline)
        && covers(view, view.predicted(&first))
    {
        return Turn::OverCost(first.key);
    }
    while let Some(ready) = view.first_kept() {
        if !view.is_over_cost(&ready) {
            return Turn::Due(ready);
        }
        view.set_over_cost(ready.key);
        if covers(view, view.predicted(&ready)) {
            return Turn::OverCost(ready.key);
        }
    }
    if at_odds.is_some() { Turn::Held } else { Turn::None }
}
