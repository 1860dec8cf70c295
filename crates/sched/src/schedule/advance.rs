//! A stream that begins anew somewhere else: its next request sooner than its turn, and
//! the deadline of one request brought forward, where nobody is late for it.
//!
//! What was served early has times that are still to come, and the turn of the next
//! request is after them, however idle the disk is. Both answers here are about the state
//! as it is: the argument of [`slack`](crate::slack) needs of the past no more than that
//! the exact slack is not negative now, and of the future that releases are a period
//! apart from here on. So where the exact slack stays zero at least with the sooner
//! release, or the earlier deadline, everything that is promised is kept; and where
//! nothing that was released waits, the offline test has said so before. It takes a
//! policy that goes by the exact slack from then on: `slack`. What is served in sweeps has its
//! turn and its time when it has them: a cycle holds no request more.

use super::Schedule;
use super::core::Core;
use crate::limits::ADVANCE_ATTEMPTS_MAX;
use crate::request::Class;
use crate::slack::{Answer, Meter};
use crate::task::TaskId;
use units::{Duration, Instant};

impl Schedule {
    /// Lets a stream release its next request at `from`, or as soon after as the others
    /// allow, where its turn would come later. Whoever asks sees to it that this does not
    /// happen too often: each time may cost best effort one more request. Beside tasks that may
    /// be late now and then the turn stays: [their odds](crate::Odds) count with it.
    ///
    /// # Panics
    /// Where there is no such task, or a request of it waits that came early.
    pub fn renew(&mut self, now: Instant, id: TaskId, from: Instant) {
        self.release(now);
        assert!(!self.has_early(id), "a request of the task has its turn still to come");
        let (turn, from) = (self.core.next_release(id), from.max(now));
        // Odds count one release of each task in each of its periods, whatever the slack is.
        let is_otherwise = self.core.servers.knows(id.index) || self.core.is_not_kept(id);
        if turn <= from || is_otherwise || self.core.tasks.has_odds() {
            return;
        }
        self.core.release_from(id, from);
        self.core.meter = Meter::unknown();
        if !self.core.delay_first(now, id) || self.core.next_release(id) > turn {
            self.core.release_from(id, turn);
        }
        self.core.meter = Meter::unknown();
    }

    /// Whether a request of the task waits that came early: its turn is still to come.
    pub fn has_early(&self, id: TaskId) -> bool {
        self.core.queues.early().any(|waiting| waiting.class.task() == Some(id))
    }

    /// Promises a released request of a stream for `by`, where nobody is late for it and it
    /// was promised for later; else for as soon as none is. True where it is due by then.
    pub fn advance_deadline_to(&mut self, now: Instant, key: u64, by: Instant) -> bool {
        self.release(now);
        let Some(old) = self.core.queues.get(key).copied() else { return false };
        if !matches!(old.class, Class::RealTime(_)) || old.times.release > now {
            return false;
        }
        if old.times.deadline <= by || self.core.is_served_otherwise(&old) {
            return old.times.deadline <= by;
        }
        self.core.queues.set_deadline(key, by);
        if !self.core.nobody_is_late(now) {
            self.core.queues.set_deadline(key, old.times.deadline);
            return self.advance_deadline(now, key).is_some_and(|promised| promised <= by);
        }
        self.core.queues.promise(key, by);
        self.core.meter = Meter::unknown();
        self.tell_moves(&[old]);
        true
    }

    /// Promises a released request of a stream for as soon as none is late for it; not
    /// later than it was. None where it does not wait, or was not released.
    pub fn advance_deadline(&mut self, now: Instant, key: u64) -> Option<Instant> {
        self.advance_deadline_behind(now, key, Duration::ZERO)
    }

    /// As [`Schedule::advance_deadline`], and so that `others` may go before it, which wait for
    /// slack.
    pub fn advance_deadline_behind(
        &mut self,
        now: Instant,
        key: u64,
        others: Duration,
    ) -> Option<Instant> {
        self.release(now);
        let old = *self.core.queues.get(key)?;
        if !matches!(old.class, Class::RealTime(_)) || old.times.release > now {
            return None;
        }
        if old.over_cost || self.core.is_served_otherwise(&old) {
            return Some(old.promised);
        }
        let free_at = now.max(self.core.busy_until).saturating_add(others);
        for attempt in 0..ADVANCE_ATTEMPTS_MAX {
            let by = free_at.saturating_add(Duration::from_nanos(old.cost.as_nanos() << attempt));
            if by >= old.times.deadline {
                break;
            }
            self.core.queues.set_deadline(key, by);
            if self.core.nobody_is_late(now) {
                self.core.queues.promise(key, by);
                self.core.meter = Meter::unknown();
                self.tell_moves(&[old]);
                return Some(by);
            }
        }
        self.core.queues.set_deadline(key, old.times.deadline);
        Some(old.promised)
    }
}

impl Core {
    /// The exact slack is not negative.
    pub(super) fn nobody_is_late(&mut self, now: Instant) -> bool {
        let mut scratch = ::core::mem::take(&mut self.scratch);
        self.collect_due(&mut scratch.due, true);
        let answer = self.exact_any_time(now).covers(0, 0, &mut scratch);
        self.scratch = scratch;
        matches!(answer, Answer::AtLeast(_) | Answer::Exactly { .. })
    }

    fn release_from(&mut self, id: TaskId, from: Instant) {
        let live = &mut self.live[self.places[id.index as usize] as usize];
        live.release_next = from.as_nanos();
    }
}
