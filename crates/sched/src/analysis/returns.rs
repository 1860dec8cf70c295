//! What requests are charged for that go between the commands of others.

use crate::task::Task;
use units::Duration;

/// What a request is charged for that goes between the commands of another one.
///
/// Under earliest deadline first only a request of a task with a shorter deadline goes between,
/// and each takes the heads from at most one other when it begins (`commands/admission.rs` has
/// the argument): so each request of such a task is charged once for the longest return.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Returns {
    /// Tasks with deadlines below this may go between the commands of some other.
    pub below: u64,
    /// The longest return.
    pub resume: u64,
}

impl Returns {
    pub(super) fn with(self, task: &Task) -> Self {
        if task.resume.is_zero() {
            return self;
        }
        let [deadline, resume] = [task.deadline, task.resume].map(Duration::as_nanos);
        Self { below: self.below.max(deadline), resume: self.resume.max(resume) }
    }

    /// Of a request of a task with this deadline.
    pub(crate) fn of(self, deadline: Duration) -> Duration {
        let nanos = if deadline.as_nanos() < self.below { self.resume } else { 0 };
        Duration::from_nanos(nanos)
    }
}
