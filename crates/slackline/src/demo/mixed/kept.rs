//! What became of the contracts of a run, by the daemon's own accounts: how many requests were late, and
//! whether that can have been the machine's doing.
//!
//! The machine may be late, too: it wakes a disk's thread late, or sees an answer off late. What it took as a
//! rule is charged to every contract; by how much it took longer during the run is counted. A request that is
//! late by no more than all of that together is put down to the machine, one that is later to the schedule.

use crate::failure::Failure;
use client::Client;
use report::counted;
use serde_json::{Value, json};
use units::Duration;

/// The accounts of all contracts of a run.
#[derive(Clone, Debug, Default)]
pub struct Kept {
    pub requests: u64,
    /// Those that ended after their deadline, and the most that one was late by.
    pub late: u64,
    late_max: Duration,
    machine: Machine,
}

/// How late the machine was.
#[derive(Clone, Debug, Default)]
pub struct Machine {
    /// Gaps between two commands that were longer than what is charged, and by how much together.
    gaps: u64,
    gaps_total: Duration,
    /// Answers that took longer on their way to their programs, and by how much at the most.
    deliveries: u64,
    delivery_max: Duration,
    /// With a wake-up of a disk's thread, and with the end of a command.
    wakeup_max: Duration,
    completion_max: Duration,
}

impl Machine {
    /// Since the daemon's start.
    pub fn read(client: &Client) -> Result<Self, Failure> {
        let status = client.status()?;
        let gap = status.disks.first().map(|disk| disk.gap.clone()).unwrap_or_default();
        Ok(Self {
            gaps: gap.beyond,
            gaps_total: gap.beyond_total_ns,
            deliveries: status.delivery.beyond,
            delivery_max: status.delivery.beyond_max_ns,
            wakeup_max: status.host_wakeups.max_ns,
            completion_max: status.host_completions.max_ns,
        })
    }

    /// What came after it was as `before`. The most counts from the daemon's start.
    fn since(self, before: &Self) -> Self {
        let (gaps, deliveries) = (self.gaps - before.gaps, self.deliveries - before.deliveries);
        Self { gaps, gaps_total: self.gaps_total - before.gaps_total, deliveries, ..self }
    }

    /// The most that one request can have been late by it. Gaps hold up what comes behind them; each other
    /// lateness holds up one request.
    fn at_most(&self) -> Duration {
        let own = [self.delivery_max, self.wakeup_max, self.completion_max];
        own.into_iter().fold(self.gaps_total, Duration::saturating_add)
    }
}

impl Kept {
    /// Of these streams, and of the contract of this volume, on a machine that was so late before them.
    pub fn read(
        client: &Client,
        streams: &[u64],
        volume: &str,
        before: &Machine,
    ) -> Result<Self, Failure> {
        let machine = Machine::read(client)?.since(before);
        let mut kept = Self { machine, ..Self::default() };
        for &id in streams {
            let stream = client.stream(id)?;
            kept.count(stream.requests, stream.late_requests, stream.late_max_ns);
        }
        let account = client.volume(volume)?.account;
        kept.count(account.requests, account.late_requests, account.late_max_ns);
        Ok(kept)
    }

    fn count(&mut self, requests: u64, late: u64, late_max: Duration) {
        self.requests += requests;
        self.late += late;
        self.late_max = self.late_max.max(late_max);
    }

    /// Requests that were late, where one of them was later than the machine can have made it.
    pub fn late_of_schedule(&self) -> u64 {
        if self.late_max > self.machine.at_most() { self.late } else { 0 }
    }

    /// What breaks a promise, in words.
    pub fn broken(&self) -> Option<String> {
        let whose = match self.late_of_schedule() {
            0 => "the machine was late by as much",
            _ => "more than the machine was late by",
        };
        (self.late > 0).then(|| {
            let late = counted(self.late, "request");
            format!("{late} ended after their deadline, by up to {}: {whose}", self.late_max)
        })
    }

    /// By how much the machine was late together, at the most, in words.
    pub fn of_machine(&self) -> String {
        self.machine.at_most().to_string()
    }

    /// For programs.
    pub fn json(&self) -> Value {
        let machine = &self.machine;
        json!({
            "requests": self.requests,
            "late": self.late,
            "late_max_ns": self.late_max.as_nanos(),
            "late_of_schedule": self.late_of_schedule(),
            "machine": {
                "gaps_beyond": machine.gaps,
                "gaps_beyond_total_ns": machine.gaps_total.as_nanos(),
                "deliveries_beyond": machine.deliveries,
                "delivery_beyond_max_ns": machine.delivery_max.as_nanos(),
                "wakeup_max_ns": machine.wakeup_max.as_nanos(),
                "completion_max_ns": machine.completion_max.as_nanos(),
                "at_most_ns": machine.at_most().as_nanos(),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run in which the latest of two was late by so many milliseconds, on a machine with so many gaps that
    /// were 3 ms too long.
    fn late_by(millis: u64, gaps: u64) -> Kept {
        let of_start = |gaps| Machine {
            gaps,
            gaps_total: Duration::from_millis(3 * gaps),
            wakeup_max: Duration::from_millis(1),
            ..Machine::default()
        };
        let machine = of_start(40 + gaps).since(&of_start(40));
        let mut kept = Kept { machine, ..Kept::default() };
        kept.count(10, 0, Duration::ZERO);
        kept.count(10, 2, Duration::from_millis(millis));
        kept
    }

    #[test]
    fn what_is_later_than_the_machine_was_is_the_schedules() {
        for (millis, gaps, of_schedule) in [(1, 0, 0), (2, 0, 2), (7, 2, 0), (8, 2, 2)] {
            let kept = late_by(millis, gaps);
            assert_eq!((kept.requests, kept.late), (20, 2));
            assert_eq!(kept.late_of_schedule(), of_schedule, "{millis} ms, {gaps} gaps");
            let broken = kept.broken().unwrap();
            assert_eq!(broken.contains("more than the machine"), of_schedule > 0, "{broken}");
            assert_eq!(kept.json()["late_of_schedule"], of_schedule);
        }
        let sound = Kept::default();
        assert_eq!((sound.late_of_schedule(), sound.broken()), (0, None));
    }
}
