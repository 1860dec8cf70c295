//! `edf`: earliest deadline first, and the rest when nothing else waits.
//!
//! What runs on an idle disk is not asked what it may do to deadlines: the
//! comparison that shows why slack must be counted.
//!
//! Promises: everyone is served while tasks keep to their contracts. Does not: best
//! effort that begins on an idle disk can make requests of an admitted set late.
//! Cost: O(log n) per decision. Source: Clockwise thesis, sections 6.1.2 and 6.5.

use super::elevator::Elevator;
use crate::policy::{Choice, Policy, View};
use alloc::boxed::Box;
use alloc::vec::Vec;
use units::Instant;

#[derive(Clone, Debug, Default)]
pub(super) struct Edf {
    elevator: Elevator,
}

impl Policy for Edf {
    fn choose(&mut self, view: &mut View<'_>) -> Choice {
        let queues = view.queues();
        if let Some(request) = queues.ready_first().or_else(|| queues.early_first()) {
            return Choice::Start(request.key);
        }
        if let Some((_, pick)) = self.elevator.pick(view) {
            self.elevator.took(&pick);
            return Choice::Start(pick.key);
        }
        match view.queues().background_first() {
            Some(request) => Choice::Start(request.key),
            None => Choice::Wait { until: None },
        }
    }

    fn remember(&self, _now: Instant, state: &mut Vec<u64>) {
        self.elevator.remember(state);
    }

    fn clone_box(&self) -> Box<dyn Policy> {
        Box::new(self.clone())
    }
}
