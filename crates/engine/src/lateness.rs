//! How late the host is: since a pool was opened, for people, and lately, for the node,
//! which makes windows for it.

use units::{Distribution, Duration, Instant};

/// How late the host was on one pool since it was opened. None of it is the
/// disks' doing.
#[derive(Clone, Debug, Default)]
pub struct HostLateness {
    /// From the instant that a disk's thread had asked to be woken at, to its
    /// first instruction: the absolute error of timers.
    pub timers: Distribution,
    /// From the end of a command on an emulated disk, by its model, to the
    /// moment that its thread noticed. Contains what `transfers` says.
    pub completions: Distribution,
    /// By how much the host's own I/O on the backing file of an emulated disk
    /// took longer than the model's whole service time, where it did.
    pub transfers: Distribution,
    /// The worst of timers and completions since it was last taken.
    worst: Duration,
}

impl HostLateness {
    /// A thread was woken so late.
    pub(crate) fn woken_late(&mut self, by: Duration) {
        self.timers.record(by);
        self.worst = self.worst.max(by);
    }

    /// The end of a command was noticed so late.
    pub(crate) fn noticed_late(&mut self, by: Duration) {
        self.completions.record(by);
        self.worst = self.worst.max(by);
    }

    /// The worst since this was last asked.
    pub(crate) fn take_worst(&mut self) -> Duration {
        std::mem::take(&mut self.worst)
    }

    /// The latest of everything.
    pub fn max(&self) -> Duration {
        self.timers.max().max(self.completions.max()).max(self.transfers.max())
    }

    /// Counts what another one has counted.
    pub fn merge(&mut self, other: &Self) {
        self.timers.merge(&other.timers);
        self.completions.merge(&other.completions);
        self.transfers.merge(&other.transfers);
    }
}

/// How long the worst counts as "lately", at least; twice as long at most.
const RECENT_SPAN: Duration = Duration::from_secs(60);

/// Windows are not made for a host that is later than this: it was stopped, or is no
/// machine to keep time on, and memory is no cure for that.
const WORST: Duration = Duration::from_millis(250);

/// The worst lateness of the host in this spell and in the one before it.
#[derive(Debug)]
pub(crate) struct RecentLateness {
    since: Instant,
    worst: Duration,
    before: Duration,
    /// What windows are made for.
    told: Duration,
}

impl RecentLateness {
    /// Nothing was late yet.
    pub(crate) fn new(now: Instant) -> Self {
        let none = Duration::ZERO;
        Self { since: now, worst: none, before: none, told: none }
    }

    /// The host was late by `late`: what windows shall be made for from now on, in whole
    /// milliseconds, where that is another than before.
    pub(crate) fn note(&mut self, now: Instant, late: Duration) -> Option<Duration> {
        if now.saturating_since(self.since) >= RECENT_SPAN {
            self.before = std::mem::take(&mut self.worst);
            self.since = now;
        }
        self.worst = self.worst.max(late);
        let worst = self.worst.max(self.before).min(WORST);
        let asked = Duration::from_millis(worst.as_nanos().div_ceil(1_000_000));
        (asked != self.told).then(|| {
            self.told = asked;
            asked
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_follow_the_worst_of_the_last_minutes_and_forget_it_afterwards() {
        let at = |s| Instant::EPOCH + Duration::from_secs(s);
        let ms = Duration::from_millis;
        let mut lately = RecentLateness::new(at(0));
        assert_eq!(lately.note(at(1), Duration::from_micros(300)), Some(ms(1)));
        assert_eq!(lately.note(at(2), ms(8)), Some(ms(8)));
        assert_eq!(lately.note(at(3), ms(5)), None);
        assert_eq!(lately.note(at(61), ms(2)), None, "the spell before counts");
        assert_eq!(lately.note(at(122), ms(1)), Some(ms(2)));
        assert_eq!(lately.note(at(123), Duration::from_secs(9)), Some(WORST));
        let mut lateness = HostLateness::default();
        lateness.woken_late(ms(3));
        lateness.noticed_late(ms(2));
        assert_eq!((lateness.take_worst(), lateness.take_worst()), (ms(3), Duration::ZERO));
    }
}
