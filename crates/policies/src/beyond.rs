//! What takes longer than admission by cycles counts with, shared by the policies that admit so: a
//! command of best effort that is longer than what may run into a cycle, and a request under contract that
//! costs more than its contract covers (on a slow place of the disk).
//!
//! Neither may begin at its turn: others would be late for it. What is beyond is paid for by the
//! register, where that covers it; else it is set aside, and others of best effort pass it. What
//! costs more than its contract covers waits among best effort, and is late alone.

use super::rest::Rest;
use sched::parts::Elevator;
use sched::{Choice, View, Waiting};
use units::{Duration, Instant};

/// So many of best effort are set aside in one decision.
pub(super) const TRIES: usize = 8;

/// What of a request's time is not counted with what may run into a cycle; nothing where no
/// contract was admitted by cycles.
pub(super) fn uncounted(view: &View<'_>, request: &Waiting) -> Duration {
    let options = view.options();
    let takes = view.predicted(request);
    if takes <= options.reserve {
        return Duration::ZERO;
    }
    let Some(cycle) = view.cycle() else { return Duration::ZERO };
    let counted = cycle.in_the_way / u64::from(options.depth.max(1));
    takes.saturating_add(options.gap).saturating_sub(counted)
}

/// Takes what is beyond from the register; false where that does not cover it.
pub(super) fn pays(view: &View<'_>, request: &Waiting, register: &mut Duration) -> bool {
    let left = register.checked_sub(uncounted(view, request));
    left.inspect(|left| *register = *left).is_some()
}

/// The released request with the earliest deadline that its contract covers; others are set aside.
pub(super) fn ready_first(view: &mut View<'_>) -> Option<Waiting> {
    while let Some(ready) = view.queues().ready_first().copied() {
        if !view.is_over_cost(&ready) || view.cycle().is_none() {
            return Some(ready);
        }
        view.set_over_cost(ready.key);
    }
    None
}

/// Sets aside all released requests that their contracts do not cover.
pub(super) fn set_aside(view: &mut View<'_>) {
    let ready = view.queues().ready().filter(|ready| view.is_over_cost(ready));
    let keys: alloc::vec::Vec<u64> = ready.map(|ready| ready.key).collect();
    if !keys.is_empty() && view.cycle().is_some() {
        keys.into_iter().for_each(|key| view.set_over_cost(key));
    }
}

/// Best effort in the elevator's order that may go, as `may` says and pays for; what may not is set
/// aside where it will not soon (`waits_long`).
pub(super) fn pick(
    view: &mut View<'_>,
    elevator: &mut Elevator,
    mut may: impl FnMut(&mut View<'_>, &Waiting) -> bool,
    waits_long: impl Fn(&View<'_>, &Waiting) -> bool,
) -> Option<Waiting> {
    for _ in 0..TRIES {
        let (&request, pick) = elevator.pick(view)?;
        if may(view, &request) {
            elevator.took(&pick);
            return Some(request);
        }
        if !waits_long(view, &request) {
            return None;
        }
        view.set_long(pick.key);
    }
    None
}

impl Rest {
    /// As [`Rest::choose`], of what `may` go; else at `until` the next look.
    pub(super) fn choose_of(
        &mut self,
        view: &mut View<'_>,
        until: Instant,
        mut may: impl FnMut(&mut View<'_>, &Waiting) -> bool,
    ) -> Choice {
        // One of those that were set aside, in turn.
        if let Some(long) = view.queues().long_from(self.from).copied() {
            self.from = long.arrival + 1;
            if may(view, &long) {
                return Choice::Start(long.key);
            }
        }
        if let Some(early) = view.queues().early_first().copied()
            && may(view, &early)
        {
            return Choice::Start(early.key);
        }
        if let Some(request) = pick(view, &mut self.elevator, &mut may, |_, _| true) {
            return Choice::Start(request.key);
        }
        let background = view.queues().background().take(TRIES).copied();
        let background: alloc::vec::Vec<Waiting> = background.collect();
        let waits = !background.is_empty() || view.queues().has_best_effort();
        match background.into_iter().find(|request| may(view, request)) {
            Some(request) => Choice::Start(request.key),
            None => Choice::Wait { until: Some(until).filter(|_| waits) },
        }
    }
}
