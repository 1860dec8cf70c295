//! Requests for which there will be no slack end without the device, or go without it.

use crate::limits::GIVEN_UP_LOOKS;
use crate::queue::{Ended, Entry, Queue};
use alloc::vec::Vec;
use sched::Class;
use units::{Duration, Instant};

impl<W> Queue<W> {
    /// Gives up a request that others have passed since `before`, and for which there will be no
    /// slack as long as the contracts stay: its owner is told, in place of waiting for ever. It is
    /// best effort, or takes longer than its contract covers. Only one of those that `may` be, which is asked
    /// of such requests alone, and of which the device had nothing yet. Each of its parts ends; empty where there is none.
    pub fn give_up(
        &mut self,
        now: Instant,
        before: Instant,
        may: impl Fn(&W, &Class) -> bool,
    ) -> Vec<Ended<W>> {
        let now = self.time(now);
        match self.without_slack(now, before, |queue, key| !queue.commands[key].begun, may) {
            Some(key) => self.end_without_device(now, key),
            None => Vec::new(),
        }
    }

    /// Lets one such request go next, whatever the slack: others may be late for it. Says whether there is one.
    pub fn insist(
        &mut self,
        now: Instant,
        before: Instant,
        must: impl Fn(&W, &Class) -> bool,
    ) -> bool {
        let now = self.time(now);
        let found = self.without_slack(now, before, |_, _| true, must);
        if let Some(key) = found {
            self.schedule.insist(key);
            self.has_news = true;
        }
        found.is_some()
    }

    /// The first request that others have passed since `before`, and for which there will be no slack.
    fn without_slack(
        &mut self,
        now: Instant,
        before: Instant,
        may_be: impl Fn(&Self, u64) -> bool,
        is_meant: impl Fn(&W, &Class) -> bool,
    ) -> Option<u64> {
        let mut from = 0;
        for _ in 0..GIVEN_UP_LOOKS {
            let long = self.schedule.queues().long_from(from);
            let long = long.filter(|long| long.arrival >= from && long.submitted <= before);
            let Some((key, arrival)) = long.map(|long| (long.key, long.arrival)) else { break };
            from = arrival + 1;
            if may_be(self, key)
                && is_meant(&self.commands[key].work, &self.commands[key].class)
                && self.predicting(|schedule, predict| schedule.never_fits(now, key, predict))
            {
                return Some(key);
            }
        }
        None
    }

    /// Whether anything waits that others pass, because it needs more slack than there mostly is.
    pub fn has_long(&self) -> bool {
        self.schedule.queues().long_from(0).is_some()
    }

    /// All parts of a request that waits end here.
    fn end_without_device(&mut self, now: Instant, key: u64) -> Vec<Ended<W>> {
        // As its contract goes, where it has one.
        let times = self.schedule.times(key).filter(|of| of.deadline < Instant::MAX);
        let (promised, due) = (times.is_some(), self.due(key).filter(|_| times.is_some()));
        let late_by = due.map_or(Duration::ZERO, |due| now.saturating_since(due));
        let latency = times.map_or(Duration::ZERO, |of| now.saturating_since(of.release));
        assert!(self.schedule.cancel(key), "it waits");
        let Entry { work, rest, .. } = self.remove(key).expect("it is known");
        let of_part = |work| Ended {
            work,
            late_by: Duration::ZERO,
            latency: Duration::ZERO,
            due: None,
            promised,
            took: None,
            suspects_changed: false,
            is_last: false,
            with: Vec::new(),
        };
        let parts = core::iter::once(work).chain(rest.into_iter().map(|(_, work)| work));
        let mut ended: Vec<Ended<W>> = parts.map(of_part).collect();
        let last = ended.last_mut().expect("a request has a part");
        (last.late_by, last.latency, last.due, last.is_last) = (late_by, latency, due, true);
        ended
    }
}
