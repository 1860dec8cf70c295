//! What a disk has done, in counts.

use sched::Class;
use units::{Bytes, Duration};

/// Requests and bytes done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Traffic {
    /// Commands that have ended, well or not.
    pub requests: u64,
    /// What they were to transfer.
    pub bytes: Bytes,
}

/// What happened on a disk since its queue was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Account {
    /// Streams, latency contracts and the pool's own contracts.
    pub real_time: Traffic,
    /// Everything else.
    pub best_effort: Traffic,
    /// Commands that took longer than their bound.
    pub overruns: u64,
    /// The most that one took longer.
    pub overrun_max: Duration,
    /// Sum of the bounds on the device time of all commands.
    pub predicted_total: Duration,
    /// Sum of the times from the start to the end of all commands.
    pub actual_total: Duration,
    /// Requests done after their deadline.
    pub late_requests: u64,
    /// The most that one was late by.
    pub late_max: Duration,
    /// Commands that failed.
    pub errors: u64,
}

/// A command that has ended, as it is counted.
pub(crate) struct Counted {
    pub class: Class,
    /// What it was to transfer.
    pub len: Bytes,
    pub predicted: Duration,
    /// From its start to its end.
    pub time: Duration,
    /// How much longer than its bound it took.
    pub overrun: Duration,
    pub late_by: Duration,
    pub good: bool,
}

impl Account {
    pub(crate) fn count(&mut self, done: &Counted) {
        let traffic = match done.class {
            Class::RealTime(_) => &mut self.real_time,
            _ => &mut self.best_effort,
        };
        traffic.requests += 1;
        traffic.bytes += done.len;
        self.errors += u64::from(!done.good);
        self.predicted_total = self.predicted_total.saturating_add(done.predicted);
        self.actual_total = self.actual_total.saturating_add(done.time);
        self.overruns += u64::from(!done.overrun.is_zero());
        self.overrun_max = self.overrun_max.max(done.overrun);
        self.count_late(done.late_by);
    }

    /// What was counted as so late is later than that.
    pub(crate) fn count_later(&mut self, counted: Duration, late_by: Duration) {
        self.late_requests += u64::from(counted.is_zero() && !late_by.is_zero());
        self.late_max = self.late_max.max(late_by);
    }

    /// A request has ended so late, or in time.
    pub(crate) fn count_late(&mut self, late_by: Duration) {
        self.late_requests += u64::from(!late_by.is_zero());
        self.late_max = self.late_max.max(late_by);
    }
}
