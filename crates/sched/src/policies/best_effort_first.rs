//! `best-effort-first`: contracts count for nothing as long as best effort waits.
//!
//! The yardstick: what best effort could have if nothing were promised to anybody. A
//! policy that keeps contracts can come near its latencies, and where it is near, no
//! other policy can be much better. Best effort goes in the order of `slack`.
//!
//! Promises: everyone is served, and best effort waits for nothing but the one command
//! under way and other best effort.
//! Does not: a stream waits for as long as best effort comes, for ever if need be.
//! Cost: O(log n) per decision.
//! Source: ours.

use super::rest::Rest;
use crate::policy::{Choice, Policy, View};
use alloc::boxed::Box;
use alloc::vec::Vec;
use units::Instant;

#[derive(Clone, Debug, Default)]
pub(super) struct BestEffortFirst {
    rest: Rest,
}

impl Policy for BestEffortFirst {
    fn choose(&mut self, view: &mut View<'_>) -> Choice {
        match view.queues().ready_first().map(|ready| ready.key) {
            Some(key) if !view.queues().has_best_effort() => Choice::Start(key),
            Some(_) => self.rest.without_contract(view),
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
