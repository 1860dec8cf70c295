//! Section 6.5.2: a block is planned at the slowest zone of its disk; where it lies
//! further out, best effort that fits into what it is planned too long for goes before it.

use super::atlas;
use sched::parts::oldest;
use sched::{Choice, Outcome, Policy, PolicyKind, Settings, TaskId, View, Waiting};
use sched::{Setting, admits_always};
use units::{Duration, Instant, Lba};

const NONE: &[Setting] = &[];

/// The policies of the thesis under which best effort may go before a request that waits,
/// with this rule.
pub(super) const EDF_FITS: PolicyKind =
    kind("edf-fits", PolicyKind::EDF, |_| Fits::over(PolicyKind::EDF));
pub(super) const LST_FITS: PolicyKind =
    kind("lst-fits", policies::LST, |_| Fits::over(policies::LST));
pub(super) const PRINTED_FITS: PolicyKind =
    kind("delta-l-1999-fits", policies::DELTA_L_1999, |_| Fits::over(policies::DELTA_L_1999));

const fn kind(
    name: &'static str,
    within: PolicyKind,
    start: fn(&Settings) -> Box<dyn Policy>,
) -> PolicyKind {
    let PolicyKind { summary, promise, admission, .. } = within;
    let (settings, values) = (NONE, Settings::of(NONE));
    PolicyKind { name, summary, promise, admission, settings, values, admits: admits_always, start }
}

/// Another policy with this rule before it.
#[derive(Clone, Debug)]
struct Fits {
    within: Box<dyn Policy>,
    /// What went before the request under contract that is next, and how long it took.
    before: Option<(u64, Duration)>,
    end: Lba,
}

impl Fits {
    fn over(within: PolicyKind) -> Box<dyn Policy> {
        Box::new(Self { within: within.start(), before: None, end: atlas::all().end })
    }

    /// Best effort that is done, with the request under contract behind it, before that one
    /// alone was planned to be.
    fn fitting(&mut self, view: &View<'_>) -> Option<u64> {
        let (ready, next) = (*view.queues().ready_first()?, *oldest(view)?);
        // As it is planned: in its zone, with the longest seek.
        let from = [Lba::new(0), self.end].map(|from| view.predicted_from(from, &ready));
        let [low, high] = from;
        let before = self.before.filter(|(key, _)| *key == ready.key);
        let taken = before.map_or(Duration::ZERO, |(_, taken)| taken) + view.predicted(&next);
        if taken + low.max(high) > ready.cost {
            return None;
        }
        self.before = Some((ready.key, taken));
        Some(next.key)
    }
}

impl Policy for Fits {
    fn choose(&mut self, view: &mut View<'_>) -> Choice {
        match self.fitting(view) {
            Some(key) => Choice::Start(key),
            None => self.within.choose(view),
        }
    }

    fn submitted(&mut self, request: &Waiting) {
        self.within.submitted(request);
    }

    fn entered(&mut self, request: &Waiting) {
        self.within.entered(request);
    }

    fn dropped(&mut self, request: &Waiting) {
        self.within.dropped(request);
    }

    fn finished(&mut self, request: &Waiting, outcome: &Outcome) {
        self.within.finished(request, outcome);
    }

    fn joined(&mut self) {
        self.within.joined();
    }

    fn left(&mut self, task: TaskId) {
        self.within.left(task);
    }

    fn remember(&self, now: Instant, state: &mut Vec<u64>) {
        self.within.remember(now, state);
        state.extend(self.before.map(|(_, taken)| taken.as_nanos()));
    }

    fn clone_box(&self) -> Box<dyn Policy> {
        Box::new(self.clone())
    }
}
