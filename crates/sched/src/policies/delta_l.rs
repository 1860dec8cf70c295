//! `delta-l`: best effort in the static slack; safe.
//!
//! The budget is the static slack. Every command out of deadline order is charged
//! to it in full when it starts; the budget is full again whenever no released
//! request under contract waits. In an interval that ends in a deadline and in
//! which a request due by then always waits, the budget is not refilled, so that
//! at most the static slack is stolen, even by a command that was in service when
//! the interval began. The thesis (section 6.3.2) does not charge that one; see
//! `delta-l-1999`.
//!
//! Promises: no request of an admitted task is late while costs stay within bounds;
//! everyone is served whose request the static slack covers. Does not: what needs more is
//! passed by others and never served while the contracts stay; it finds only the
//! slack that is there at all times. A pool gives up reads and writes that wait so, 30 to 60 s
//! after they came, where the contracts will never leave the time for them, and their programs get an
//! error; others wait on. Cost: O(log n) per decision.
//! Source: Clockwise thesis, sections 6.2 and 6.3.2, mended.

use super::elevator::Elevator;
use super::long;
use super::over_cost::{self, Turn};
use super::slack::is_near;
use crate::policy::{Choice, Policy, View};
use crate::queues::Waiting;
use crate::task::TaskId;
use alloc::boxed::Box;
use alloc::vec::Vec;
use units::{Duration, Instant};

#[derive(Clone, Debug, Default)]
pub(super) struct DeltaL {
    elevator: Elevator,
    /// What may still be given away before the next refill.
    budget: Duration,
    /// The static slack is another one: what was too long for it may fit.
    recall: bool,
}

impl Policy for DeltaL {
    fn choose(&mut self, view: &mut View<'_>) -> Choice {
        let (slack, gap) = (view.tasks().slack(), view.options().gap);
        let ready = match over_cost::turn(view, |_, cost| self.pay(cost.saturating_add(gap))) {
            Turn::OverCost(key) => return Choice::Start(key),
            Turn::Due(ready) => Some(ready),
            // None has odds where the policy has no online slack.
            Turn::Held | Turn::None => None,
        };
        if ready.is_none() {
            let spent = view.in_flight().map(|(_, bound)| bound.saturating_add(gap));
            let spent = spent.fold(Duration::ZERO, Duration::saturating_add);
            self.budget = slack.saturating_sub(spent);
        }
        if core::mem::take(&mut self.recall) {
            view.call_long();
        }
        // What is not covered by all of the static slack never will be.
        let elevator = self.elevator;
        let pick = long::first_of(view, |view| elevator.pick(view), |_, _| false);
        let pick = pick.map(|(pick, _)| pick);
        let best_effort = pick.and_then(|pick| view.queues().get(pick.key)).copied();
        if let Some(ready) = ready {
            if let Some((pick, request)) = pick.zip(best_effort)
                && self.spend(view, &request)
            {
                self.elevator.took(&pick);
                return Choice::Start(pick.key);
            }
            return if view.in_flight().len() == 0 || self.spend(view, &ready) {
                Choice::Start(ready.key)
            } else {
                Choice::Wait { until: None }
            };
        }
        let early = view.queues().early_first().copied();
        let near = early.filter(|early| is_near(view, early));
        let background = view.queues().background_first().copied();
        let first = if pick.is_some_and(|pick| pick.aged) { None } else { near };
        let order = [first, best_effort, early, background];
        for request in order.into_iter().flatten() {
            if self.spend(view, &request) {
                if let Some(pick) = pick.filter(|pick| pick.key == request.key) {
                    self.elevator.took(&pick);
                }
                return Choice::Start(request.key);
            }
        }
        Choice::Wait { until: None }
    }

    fn joined(&mut self) {
        // What was given away before counted on the slack of the smaller set.
        self.budget = Duration::ZERO;
        self.recall = true;
    }

    fn left(&mut self, _task: TaskId) {
        self.recall = true;
    }

    fn remember(&self, _now: Instant, state: &mut Vec<u64>) {
        self.elevator.remember(state);
        state.push(self.budget.as_nanos());
        state.extend(self.recall.then_some(1));
    }

    fn clone_box(&self) -> Box<dyn Policy> {
        Box::new(self.clone())
    }
}

impl DeltaL {
    fn spend(&mut self, view: &View<'_>, request: &Waiting) -> bool {
        self.pay(view.predicted(request).saturating_add(view.options().gap))
    }

    fn pay(&mut self, cost: Duration) -> bool {
        let left = self.budget.checked_sub(cost);
        self.budget = left.unwrap_or(self.budget);
        left.is_some()
    }
}
