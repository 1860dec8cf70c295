//! What the classical real-time orders do with all else; shared.
//!
//! Those orders say which released request under contract goes next and leave
//! open what an idle disk does. Here it serves requests under contract that came
//! before their time, then best effort (as `slack` chooses among it), then
//! background; none is held against a deadline.

use alloc::vec::Vec;
use sched::parts::Elevator;
use sched::{Choice, View};

#[derive(Clone, Debug, Default)]
pub(super) struct Rest {
    pub elevator: Elevator,
    /// Of those that were set aside, the next one that is looked at arrived at this or later.
    pub from: u64,
}

impl Rest {
    /// Early requests, best effort, background.
    pub(super) fn choose(&mut self, view: &View<'_>) -> Choice {
        match view.queues().early_first() {
            Some(early) => Choice::Start(early.key),
            None => self.without_contract(view),
        }
    }

    /// Best effort, background.
    pub(super) fn without_contract(&mut self, view: &View<'_>) -> Choice {
        if let Some((_, pick)) = self.elevator.pick(view) {
            self.elevator.took(&pick);
            return Choice::Start(pick.key);
        }
        match view.queues().background_first() {
            Some(background) => Choice::Start(background.key),
            None => Choice::Wait { until: None },
        }
    }

    pub(super) fn remember(&self, state: &mut Vec<u64>) {
        self.elevator.remember(state);
    }
}
