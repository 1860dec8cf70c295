//! A disk that orders its commands itself: what it is given beside what it works on.
//!
//! It serves one command at a time, and chooses which. So each of them may come from the end of any
//! other, and each may be the last: a command is counted as if the heads came from anywhere, also
//! the one that was alone when it was given, and all of them are done by the same instant
//! ([`Core::busy_until`]). What has a deadline and is with the disk meets it if it meets it as the
//! last one; nothing is given to the disk beside it that would change that.
//!
//! To all that waits, a command that is added is time given away: the slack covers it, with what
//! the first one may take longer for it. A request under contract may be added where it has the
//! earliest deadline of those that wait; for deadlines after its own it spends what is kept for it.
//!
//! Best effort that the disk has may be overtaken by what it is given later. Where somebody comes to need it
//! by a time, nothing is given to the disk from then on that would make it later than that
//! ([`Schedule::promise_with_disk`](crate::Schedule::promise_with_disk)).

use super::core::{Core, DONE, Flight};
use crate::limits::BESIDE_FOR;
use crate::queues::Waiting;
use crate::request::Predict;
use units::{Duration, Instant};

impl Core {
    /// Wherever the heads are before; none where nothing may go beside it.
    pub(super) fn anywhere(&self, predict: &dyn Predict, request: &Waiting) -> Option<Duration> {
        let is_one = self.options.any_order > 1
            && !request.begun
            && self.first_of(predict, request).is_none();
        if is_one { predict.bound_anywhere(request.key, &request.command) } else { None }
    }

    /// Whether the disk, which is busy, may be given any other command now.
    pub(super) fn holds_more(&self, now: Instant) -> bool {
        if self.options.any_order <= 1 {
            return false;
        }
        let flights = &self.in_flight;
        let commands = flights.iter().filter(|flight| flight.anywhere != Some(Duration::ZERO));
        // A disk that prefers what is near keeps others waiting no longer than this.
        let is_recent = |flight: &Flight| now < flight.started.saturating_add(BESIDE_FOR);
        commands.count() < self.options.any_order as usize
            && !self.tasks.has_odds()
            && flights.iter().all(|flight| flight.anywhere.is_some() && is_recent(flight))
    }

    /// What those that the disk has may take longer, where they come from anywhere.
    fn longer_in_any_order(&self) -> Duration {
        let longer = |flight: &Flight| Some(flight.anywhere?.saturating_sub(flight.predicted));
        self.in_flight.iter().filter_map(longer).fold(Duration::ZERO, Duration::saturating_add)
    }

    /// See [`View::may_go_beside`](crate::View::may_go_beside).
    pub(crate) fn may_go_beside(
        &mut self,
        now: Instant,
        predict: &dyn Predict,
        request: &Waiting,
    ) -> bool {
        let Some(anywhere) = self.anywhere(predict, request) else { return false };
        let (longer, own) = (self.longer_in_any_order(), self.with_gap(anywhere));
        let all = longer.saturating_add(own);
        let ends = self.free_at(now).saturating_add(all);
        if self.is_late_at(ends) {
            return false;
        }
        if !request.is_real_time() {
            return self.slack_covers(now, all.as_nanos());
        }
        // Its own deadline is among those that this covers.
        let beyond = longer.saturating_add(own.saturating_sub(request.cost));
        request.is_covered()
            && self.slack_covers(now, beyond.as_nanos())
            && self.slack_covers_before(now, all.as_nanos(), request.times.deadline)
    }

    /// See [`Schedule::promise_with_disk`](crate::Schedule::promise_with_disk).
    pub(super) fn promise_with_disk(&mut self, key: u64, by: Instant) -> bool {
        let Some(slot) = self.in_flight.iter().find(|it| it.key == key).map(|it| it.slot) else {
            return false;
        };
        let is_kept = self.busy_until <= by;
        if is_kept && by < self.queues.at(slot).promised {
            self.queues.promise_with_disk(slot, by);
        }
        is_kept
    }

    /// Gives the disk this request beside the others, as [`Core::may_go_beside`] has permitted.
    pub(super) fn start_beside(
        &mut self,
        now: Instant,
        key: u64,
        predict: &dyn Predict,
    ) -> Duration {
        assert!(self.queues.may_run(key), "the policy chose a request that may not run: {key}");
        let in_slack = self.queues.ready_first().is_some();
        let slot = self.take_to_start(key);
        let request = self.queues.at(slot);
        let anywhere = self.anywhere(predict, request).expect("it may go beside others");
        let longer = self.longer_in_any_order();
        self.busy_until =
            self.free_at(now).saturating_add(longer).saturating_add(self.with_gap(anywhere));
        for flight in &mut self.in_flight {
            flight.predicted = flight.anywhere.expect("nothing goes beside others");
        }
        self.counts.in_slack += u64::from(in_slack && !request.is_real_time());
        if let Some(end) = request.command.end() {
            self.head = end;
        }
        let (predicted, rest, anywhere) = (anywhere, DONE, Some(anywhere));
        self.in_flight.push_back(Flight {
            key,
            slot,
            started: now,
            predicted,
            rest,
            gaps_within: 0,
            anywhere,
        });
        predicted
    }
}
