//! What became of the contracts of a run, by the daemon's own accounts: how many requests were late, and
//! whether that can have been the machine's doing.
//!
//! The machine may be late, too: it wakes a disk's thread late, or sees an answer off late. What it took at the
//! most is charged to every contract; what it took beyond that is counted. A request that is late by no more
//! than all of that together is put down to the machine, one that is later to the schedule.

use crate::failure::Failure;
use client::Client;
use client::control::HostTime;
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
struct Machine {
    /// Between two commands, and with an answer on its way to its program.
    gap: HostTime,
    delivery: HostTime,
    /// With a wake-up of a disk's thread, and with the end of a command.
    wakeup_max: Duration,
    completion_max: Duration,
}

impl Machine {
    /// The most that one request can have been late by it. Gaps hold up what comes behind them; each other
    /// lateness holds up one request.
    fn at_most(&self) -> Duration {
        let gaps = self.gap.beyond_max_ns.saturating_mul(self.gap.beyond);
        let own = [self.delivery.beyond_max_ns, self.wakeup_max, self.completion_max];
        own.into_iter().fold(gaps, Duration::saturating_add)
    }
}

impl Kept {
    /// Of these streams, and of the contract of this volume.
    pub fn read(client: &Client, streams: &[u64], volume: &str) -> Result<Self, Failure> {
        let mut kept = Self::default();
        for &id in streams {
            let stream = client.stream(id)?;
            kept.count(stream.requests, stream.late_requests, stream.late_max_ns);
        }
        let account = client.volume(volume)?.account;
        kept.count(account.requests, account.late_requests, account.late_max_ns);
        let status = client.status()?;
        let gap = status.disks.first().map(|disk| disk.gap.clone());
        kept.machine = Machine {
            gap: gap.unwrap_or_default(),
            delivery: status.delivery,
            wakeup_max: status.host_wakeups.max_ns,
            completion_max: status.host_completions.max_ns,
        };
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

    /// How often and by how much the machine was late, in words.
    pub fn of_machine(&self) -> String {
        let Machine { gap, delivery, .. } = &self.machine;
        format!("{}, up to {}", gap.beyond + delivery.beyond, self.machine.at_most())
    }

    /// For programs.
    pub fn json(&self) -> Value {
        let Machine { gap, delivery, wakeup_max, completion_max } = &self.machine;
        json!({
            "requests": self.requests,
            "late": self.late,
            "late_max_ns": self.late_max.as_nanos(),
            "late_of_schedule": self.late_of_schedule(),
            "machine": {
                "gaps_beyond": gap.beyond,
                "gap_beyond_max_ns": gap.beyond_max_ns.as_nanos(),
                "deliveries_beyond": delivery.beyond,
                "delivery_beyond_max_ns": delivery.beyond_max_ns.as_nanos(),
                "wakeup_max_ns": wakeup_max.as_nanos(),
                "completion_max_ns": completion_max.as_nanos(),
                "at_most_ns": self.machine.at_most().as_nanos(),
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
        let gap = HostTime {
            beyond: gaps,
            beyond_max_ns: Duration::from_millis(3),
            ..HostTime::default()
        };
        let machine = Machine { gap, wakeup_max: Duration::from_millis(1), ..Machine::default() };
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
