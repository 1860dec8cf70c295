//! `best-effort-first`: contracts count for nothing as long as best effort waits.
//!
//! The yardstick of `slack`, whose order among best effort it has: what that order could
//! give if nothing were promised to anybody. Where `slack` is near it, contracts cost best
//! effort little; another order may be quicker (`satf`).
//!
//! Promises: everyone is served, and best effort waits for nothing but the one command
//! under way and other best effort.
//! Does not: a stream waits for as long as best effort comes, for ever if need be.
//! Cost: O(log n) per decision.
//! Source: ours.

use super::rest::Rest;
use alloc::boxed::Box;
use alloc::vec::Vec;
use sched::{Choice, Policy, View};
use units::Instant;

#[derive(Clone, Debug, Default)]
pub(super) struct BestEffortFirst {
    rest: Rest,
}

impl Policy for BestEffortFirst {
    fn choose(&mut self, view: &mut View<'_>) -> Choice {
        match view.queues().ready_first() {
            _ if view.queues().has_best_effort() => self.rest.without_contract(view),
            Some(ready) => Choice::Start(ready.key),
            None => self.rest.choose(view),
        }
    }

    fn remember(&self, _now: Instant, state: &mut Vec<u64>) {
        self.rest.remember(state);
    }

    fn clone_box(&self) -> Box<dyn Policy> {
        Box::new(self.clone())
    }
}
