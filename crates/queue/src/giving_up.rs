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
        let (mut from, mut looks) = (0, 0);
        while looks < GIVEN_UP_LOOKS {
            let long = self.schedule.queues().long_from(from);
            let long = long.filter(|long| long.arrival >= from && long.submitted <= before);
            let Some((key, arrival)) = long.map(|long| (long.key, long.arrival)) else { break };
            from = arrival + 1;
            let entry = &self.commands[key];
            if entry.begun || !may(&entry.work, &entry.class) {
                continue; // others behind it are looked at all the same
            }
            looks += 1;
            if self.predicting(|schedule, predict| schedule.never_fits(now, key, predict)) {
                return self.end_without_device(now, key);
            }
        }
        Vec::new()
    }

    /// Lets one request that others have passed go next, whatever the slack; others may be late for it. It is one
    /// that has waited since the first of `waits` and for which there will be no slack, or one that has waited
    /// since the second. `must` gives a rank to each request that may not wait for ever; the smallest goes first.
    /// Returns whether there was one.
    pub fn insist(
        &mut self,
        now: Instant,
        waits: (Instant, Instant),
        must: impl Fn(&W, &Class) -> Option<u8>,
    ) -> bool {
        let now = self.time(now);
        let mut found: Vec<(u8, u64, u64, bool)> = Vec::new();
        for long in self.schedule.queues().all_long() {
            // One under contract waits since it was released.
            let since = long.times.release.max(long.submitted);
            let entry = &self.commands[long.key];
            if let Some(rank) = must(&entry.work, &entry.class).filter(|_| since <= waits.0) {
                found.push((rank, long.arrival, long.key, since <= waits.1));
            }
        }
        found.sort_unstable();
        let goes = |queue: &mut Self, &(_, _, key, is_old): &(u8, u64, u64, bool)| {
            is_old || queue.predicting(|schedule, predict| schedule.never_fits(now, key, predict))
        };
        let found = found.iter().take(GIVEN_UP_LOOKS).find(|one| goes(self, one));
        if let Some(&(_, _, key, _)) = found {
            self.schedule.insist(key);
            self.has_news = true;
        }
        found.is_some()
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
