//! `edl`: earliest deadline late; best effort in the idle times of a schedule whose
//! requests under contract are all as late as they can be.
//!
//! The server looks, as long as best effort waits, for the idle time that the late
//! schedule begins with: for every deadline the time left once all work due by it
//! (waiting, or still to be released at the earliest) is served. The original
//! builds that schedule over the common multiple of all periods and may interrupt
//! requests; here it is the exact online slack, which needs no multiple and covers
//! requests that are never interrupted. Best effort goes in order of arrival.
//!
//! Promises: no request of an admitted task is late while costs stay within bounds;
//! everyone is served whose request the static slack covers. Does not: what needs more is
//! passed by others and has its trials, as under `slack`; each change between best effort and contracts
//! costs two seeks, and it changes as often as it can; `slack` does better. A pool gives up reads and writes that wait so, 30 to 60 s
//! after they came, where the contracts will never leave the time for them, and their programs get an
//! error; others wait on.
//! Cost: O(log n) per decision where what is known of the slack suffices, else the
//! slack's computation, O(n log n) in requests and tasks per deadline visited.
//! Source: Clockwise thesis, section 6.1.3 (Chetto and Chetto 1989).

use super::long::{self, Trial, Trials};
use super::oldest::oldest;
use super::over_cost::{self, Turn};
use super::slack::start_ready;
use crate::policy::{Choice, Policy, View};
use crate::queues::Waiting;
use alloc::boxed::Box;
use alloc::vec::Vec;
use units::Instant;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Edl {
    trials: Trials,
}

impl Policy for Edl {
    fn choose(&mut self, view: &mut View<'_>) -> Choice {
        let ready = match over_cost::turn(view, |view, cost| view.slack_covers(cost)) {
            Turn::OverCost(key) => return Choice::Start(key),
            Turn::Held => return Choice::Wait { until: view.slack_may_grow() },
            // Beside those that may be late now and then best effort goes before nobody.
            Turn::Due(ready) if view.tasks().has_odds() => return start_ready(view, &ready),
            Turn::Due(ready) => Some(ready),
            Turn::None => None,
        };
        let served = ready.is_none() && view.in_flight().len() == 0;
        let held = match self.trials.ask(view, served) {
            Trial::Start(key) => return Choice::Start(key),
            Trial::Hold => true,
            Trial::None => false,
        };
        let covers = |view: &mut View<'_>, cost| view.slack_covers(cost);
        let best_effort = if held {
            None
        } else {
            long::first_of(view, |view| oldest(view).map(|one| (one, *one)), covers)
        };
        let early = view.queues().early_first().copied();
        let background = view.queues().background_first().copied();
        let idle = |request: &Waiting| ready.is_none() || !request.is_real_time();
        let background = background.filter(|_| ready.is_none() && !held);
        let order = [best_effort.map(|(one, _)| one), early.filter(idle), background];
        for request in order.into_iter().flatten() {
            let cost = view.predicted(&request);
            if view.slack_covers(cost) {
                return Choice::Start(request.key);
            }
        }
        match ready {
            Some(ready) => start_ready(view, &ready),
            None => {
                let waits = order.iter().flatten().next().is_some();
                let waits = waits || view.queues().has_best_effort();
                let grows = if waits { view.slack_may_grow() } else { None };
                Choice::Wait { until: grows.or(self.trials.next(view)).filter(|_| !held) }
            }
        }
    }

    fn beside(&mut self, view: &mut View<'_>) -> Option<u64> {
        let (last, _) = view.in_flight().last()?;
        let next = if last.is_real_time() { view.queues().ready_first() } else { oldest(view) };
        let next = *next?;
        view.may_go_beside(&next).then_some(next.key)
    }

    fn has_online_slack(&self) -> bool {
        true
    }

    fn remember(&self, now: Instant, state: &mut Vec<u64>) {
        self.trials.remember(now, state);
    }

    fn clone_box(&self) -> Box<dyn Policy> {
        Box::new(*self)
    }
}
