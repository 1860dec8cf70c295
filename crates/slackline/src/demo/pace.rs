//! A program's timetable: what it does at which instant, and how late the host
//! woke it for that.
//!
//! The timetable never shifts. A program that is kept waiting finds its next
//! step overdue and the wait counts in that step too, as it does for a viewer;
//! measuring from the moment of asking would hide all but the first stall.

use super::samples::Samples;
use std::time::Instant;
use units::Duration;

/// Steps at a fixed distance from each other.
pub struct Timetable {
    start: Instant,
    period: Duration,
    steps: u64,
    wakeups: Samples,
}

impl Timetable {
    /// The first step is at `start`.
    pub fn new(start: Instant, period: Duration) -> Self {
        Self { start, period, steps: 0, wakeups: Samples::default() }
    }

    /// When the next step is due.
    pub fn due(&self) -> Instant {
        self.start + std(self.period * self.steps)
    }

    /// Leaves the next step out; gives when it was due.
    pub fn skip(&mut self) -> Instant {
        let due = self.due();
        self.steps += 1;
        due
    }

    /// Sleeps until the next step is due. Gives the instant from which the
    /// system's answer counts: the step's own, if that was past already, or else
    /// that at which the host woke the program, whose lateness is noted apart.
    pub fn next(&mut self) -> Instant {
        let due = self.skip();
        let now = Instant::now();
        if now >= due {
            return due;
        }
        std::thread::sleep(due - now);
        let woken = Instant::now();
        self.wakeups.add(since(due, woken));
        woken
    }

    /// How late each wake-up was.
    pub fn into_wakeups(self) -> Samples {
        self.wakeups
    }
}

/// The time from `earlier` to `later`, or none at all.
pub fn since(earlier: Instant, later: Instant) -> Duration {
    let nanos = later.saturating_duration_since(earlier).as_nanos();
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// A span as the standard library writes it.
pub fn std(span: Duration) -> std::time::Duration {
    std::time::Duration::from_nanos(span.as_nanos())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_in_the_past_keep_their_time_and_are_no_wake_ups() {
        let start = Instant::now() - std(Duration::from_secs(10));
        let mut table = Timetable::new(start, Duration::from_secs(1));
        for second in 0..5 {
            assert_eq!(table.next(), start + std(Duration::from_secs(second)));
        }
        assert_eq!(table.into_wakeups().len(), 0);
    }

    #[test]
    fn a_step_to_come_is_waited_for_and_its_wake_up_noted() {
        let start = Instant::now() + std(Duration::from_millis(2));
        let mut table = Timetable::new(start, Duration::from_secs(1));
        let woken = table.next();
        assert!(woken >= start);
        let wakeups = table.into_wakeups();
        assert_eq!((wakeups.len(), wakeups.max()), (1, since(start, woken)));
    }
}
