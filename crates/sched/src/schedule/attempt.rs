//! Something is tried with a schedule, and undone where it fails. What waits is not copied for
//! that: the queues note what changes ([`crate::queues::Begun`]).

use super::Schedule;
use super::core::Core;
use crate::policy::Policy;
use crate::queues::Begun;
use alloc::boxed::Box;

/// A schedule as it was when something was begun; see [`Schedule::attempt`].
#[derive(Debug)]
#[must_use = "what was begun is kept or undone"]
pub struct Attempt {
    core: Before,
    policy: Box<dyn Policy>,
}

/// All that is beneath the policy, but for what waits.
#[derive(Debug)]
#[must_use = "what was begun is kept or undone"]
pub(super) struct Before {
    core: Box<Core>,
    queues: Begun,
}

impl Schedule {
    /// Something is tried from here on that may fail: then [`Schedule::undo`] makes the schedule what
    /// it is now, but for requests that were released meanwhile; else [`Schedule::keep`] ends it. One may
    /// be within another. Cost: a copy of the contracts, of what waits for the budgets of servers, and of
    /// the policy; under [`PolicyKind::SLACK`](crate::PolicyKind::SLACK) that grows with nothing else that
    /// waits.
    ///
    /// Until then no command begins or ends: that panics.
    pub fn attempt(&mut self) -> Attempt {
        Attempt { core: self.core.attempt(), policy: self.policy.clone() }
    }

    /// What was tried stays.
    pub fn keep(&mut self, attempt: Attempt) {
        self.core.keep(attempt.core);
    }

    /// The schedule is as it was when that was begun, but for requests that were released meanwhile: these
    /// are released.
    pub fn undo(&mut self, attempt: Attempt) {
        self.core.undo(attempt.core);
        self.policy = attempt.policy;
    }
}

impl Core {
    pub(super) fn attempt(&mut self) -> Before {
        let begun = self.queues.begin();
        let (queues, scratch) =
            (::core::mem::take(&mut self.queues), ::core::mem::take(&mut self.scratch));
        let core = Box::new(self.clone());
        (self.queues, self.scratch) = (queues, scratch);
        Before { core, queues: begun }
    }

    pub(super) fn keep(&mut self, before: Before) {
        self.queues.keep(before.queues);
    }

    pub(super) fn undo(&mut self, before: Before) {
        let (mut queues, scratch) =
            (::core::mem::take(&mut self.queues), ::core::mem::take(&mut self.scratch));
        queues.undo(before.queues);
        *self = *before.core;
        (self.queues, self.scratch) = (queues, scratch);
    }
}
