//! Policies that are wrong on purpose, and the papers' own: what the searches must
//! catch. They use the same interface as the policies of the crate.

use sched::{Choice, Policy, View, Waiting};
use units::{Duration, Instant};

/// Best effort in a fixed budget: `delta-l` when everything is as it should be.
#[derive(Clone, Debug)]
pub struct Budget {
    /// In place of the static slack.
    pub slack: Option<u64>,
    /// More than there is.
    pub extra: u64,
    /// A command that begins while nothing under contract waits is charged too.
    pub charges_idle: bool,
    /// The budget is full again whenever nothing under contract waits; otherwise
    /// it is full again after each request under contract.
    pub refills_when_idle: bool,
    left: u64,
}

impl Budget {
    pub fn right() -> Self {
        Self { slack: None, extra: 0, charges_idle: true, refills_when_idle: true, left: 0 }
    }
    /// One tick more than the analysis allows.
    pub fn one_more() -> Self {
        Self { extra: 1, ..Self::right() }
    }
    /// The slack as some other analysis finds it.
    pub fn of(slack: u64) -> Self {
        Self { slack: Some(slack), ..Self::right() }
    }
    /// `delta-l-1999`: as the thesis prints it (section 6.3.2), a command that
    /// begins on a disk without requests under contract is not charged.
    pub fn of_1999() -> Self {
        Self { charges_idle: false, ..Self::right() }
    }
    pub fn refilled_too_early() -> Self {
        Self { refills_when_idle: false, ..Self::right() }
    }

    fn full(&self, view: &View<'_>) -> u64 {
        self.slack.unwrap_or(view.tasks().slack().as_nanos()) + self.extra
    }
}

fn offer<'a>(view: &'a View<'_>) -> Option<&'a Waiting> {
    view.queues().best_effort_oldest(true)
}

impl Policy for Budget {
    fn choose(&mut self, view: &mut View<'_>) -> Choice {
        let ready = view.queues().ready_first().copied();
        if ready.is_none() {
            self.left = self.full(view);
        }
        if let Some(offer) = offer(view) {
            let cost = view.predicted(offer).as_nanos();
            if cost <= self.left {
                if ready.is_some() || self.charges_idle {
                    self.left -= cost;
                }
                return Choice::Start(offer.key);
            }
        }
        match ready {
            Some(ready) => {
                if !self.refills_when_idle {
                    self.left = self.full(view);
                }
                Choice::Start(ready.key)
            }
            None => Choice::Wait { until: None },
        }
    }
    fn remember(&self, _: Instant, state: &mut Vec<u64>) {
        state.push(self.left);
    }
    fn clone_box(&self) -> Box<dyn Policy> {
        Box::new(self.clone())
    }
}

/// Latest start time, as the thesis (section 6.4.2) tells it of Symphony: looks at
/// what waits, not at what may come.
#[derive(Clone, Debug)]
pub struct LatestStart;

impl LatestStart {
    /// By when the first request that waits must start so that all are in time.
    fn latest(view: &View<'_>) -> Option<Instant> {
        let waiting: Vec<&Waiting> = view.queues().ready().collect();
        let mut latest: Option<Instant> = None;
        for one in waiting.into_iter().rev() {
            let end = latest.map_or(one.times.deadline, |next| next.min(one.times.deadline));
            latest = Some(end.saturating_sub(one.cost));
        }
        latest
    }
}

impl Policy for LatestStart {
    fn choose(&mut self, view: &mut View<'_>) -> Choice {
        let ready = view.queues().ready_first().map(|ready| ready.key);
        if let Some(offer) = offer(view) {
            let end = view.now() + view.predicted(offer);
            if Self::latest(view).is_none_or(|latest| end <= latest) {
                return Choice::Start(offer.key);
            }
        }
        ready.map_or(Choice::Wait { until: None }, Choice::Start)
    }
    fn clone_box(&self) -> Box<dyn Policy> {
        Box::new(self.clone())
    }
}

/// The exact slack, but what is in the way of released requests is forgotten: as
/// soon as nothing waits, any command may start.
#[derive(Clone, Debug)]
pub struct SlackOnlyWhenBusy;

impl Policy for SlackOnlyWhenBusy {
    fn choose(&mut self, view: &mut View<'_>) -> Choice {
        let ready = view.queues().ready_first().map(|ready| ready.key);
        let offered = offer(view).map(|offer| (offer.key, view.predicted(offer)));
        match (ready, offered) {
            (None, Some((key, cost))) if cost <= Duration::from_nanos(12) => Choice::Start(key),
            (Some(_), Some((key, cost))) if view.slack_covers(cost) => Choice::Start(key),
            (Some(key), _) => Choice::Start(key),
            (None, _) => Choice::Wait { until: None },
        }
    }
    fn clone_box(&self) -> Box<dyn Policy> {
        Box::new(self.clone())
    }
}

/// A deferrable server: what its budget was not used for may be used until its deadline,
/// also after nothing waited, and is as urgent then as if it had waited.
#[derive(Clone, Debug, Default)]
pub struct Deferrable {
    release: Option<Instant>,
    left: Duration,
}

impl Policy for Deferrable {
    fn choose(&mut self, view: &mut View<'_>) -> Choice {
        let ready = view.queues().ready_first().map(|ready| (ready.key, ready.times.deadline));
        if let Some(&request) = offer(view)
            && let Some(task) = request.class.task().and_then(|id| view.tasks().get(id))
        {
            let release = self.release.filter(|&release| view.now() < release + task.period);
            if release.is_none() {
                (self.release, self.left) = (Some(view.now()), task.cost);
            }
            let deadline = release.unwrap_or(view.now()) + task.deadline;
            let is_first = ready.is_none_or(|(_, other)| deadline <= other);
            if let Some(left) = self.left.checked_sub(request.cost).filter(|_| is_first) {
                self.left = left;
                return Choice::Start(request.key);
            }
        }
        ready.map_or(Choice::Wait { until: None }, |(key, _)| Choice::Start(key))
    }
    fn remember(&self, now: Instant, state: &mut Vec<u64>) {
        let since =
            self.release.map_or(u64::MAX, |release| now.saturating_since(release).as_nanos());
        state.extend([since.min(100), self.left.as_nanos()]);
    }
    fn clone_box(&self) -> Box<dyn Policy> {
        Box::new(self.clone())
    }
}
