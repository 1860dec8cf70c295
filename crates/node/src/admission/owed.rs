//! What was measured of the host and is not charged, for whoever is admitted twice (`host.rs`), and for
//! plans.

use crate::admission::contract::refused;
use crate::api::{DiskIndex, Error, HostCharge};
use alloc::boxed::Box;
use sched::{Task, TaskSet};
use units::Duration;

/// What was measured of the host and is not charged, on one disk.
#[derive(Clone, Debug)]
pub(crate) struct Owed {
    pub host: HostCharge,
    /// The contracts with what was measured; why they do not fit so.
    pub set: Result<TaskSet, sched::Refusal>,
}

impl Owed {
    /// Whether a contract that is admitted by what is charged fits beside the others with what was
    /// measured, and as which task.
    pub(crate) fn admits(&self, disk: DiskIndex, task: &Task) -> Result<Task, Error> {
        let fits = self.set.as_ref().map_err(Clone::clone).and_then(|set| {
            let task = measured(&self.host, task, set)?;
            set.admits(&task).map(|()| task)
        });
        fits.map_err(|refusal| self.refused(disk, &refusal))
    }

    /// It is there from now on.
    pub(crate) fn take(&mut self, disk: DiskIndex, task: &Task) {
        let task = self.admits(disk, task).expect("it was admitted just now");
        let set = self.set.as_mut().expect("nothing is admitted beside what does not fit");
        set.add(task).expect("it was admitted just now");
    }

    pub(crate) fn refused(&self, disk: DiskIndex, refusal: &sched::Refusal) -> Error {
        let refusal = Box::new(refused(disk, refusal));
        Error::BeyondHost { disk, host: Box::new(self.host), refusal }
    }
}

/// How much sooner the deadlines of a task are with what was measured. In sweeps, and at odds, it
/// is the window that bears a longer delivery.
pub(crate) fn sooner(host: &HostCharge, task: &Task) -> Duration {
    let bears = task.sweep.is_some() || task.odds.is_some();
    if bears { Duration::ZERO } else { host.measured.delivery - host.charged.delivery }
}

/// A task with what was measured, beside those of the set; refused where even an idle disk could
/// not keep it.
pub(crate) fn measured(
    host: &HostCharge,
    task: &Task,
    set: &TaskSet,
) -> Result<Task, sched::Refusal> {
    let gaps = host.measured.gap.saturating_mul(task.parts.into());
    let (by, needs) = (sooner(host, task), task.cost.saturating_add(gaps));
    let deadline = task.deadline.saturating_sub(by);
    if deadline < needs && by > Duration::ZERO {
        let utilisation_ppm = set.utilisation().ppm();
        let deadline = Some((task.deadline, needs.saturating_sub(deadline)));
        return Err(sched::Refusal { utilisation_ppm, deadline, undecided: false });
    }
    Ok(Task { deadline, ..*task })
}
