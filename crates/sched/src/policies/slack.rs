//! `slack`: best effort in the exact online slack, in bursts; the default.
//!
//! A command that is not urgent runs whenever the slack covers its bound. Once
//! best effort is refused, released requests under contract are drained until
//! the slack exceeds the burst threshold or none is left, because every change
//! between the two kinds costs long seeks. Best effort that needs more than the static slack
//! is passed by others, and has trials of its own. Where contracts were taken without admission
//! that cannot all be kept, best effort also goes whenever none of them waits.
//!
//! Order: best effort while requests under contract wait (if the slack covers
//! it); released requests by deadline, but a near one first where that makes none
//! late; requests under contract that came early, up to one period ahead; best effort;
//! those further ahead; background.
//!
//! Promises: no request of an admitted task is late while costs stay within bounds, also
//! beside requests that cost more than their contracts cover, which wait for slack;
//! everyone is served whose request the static slack covers, once it is its turn and
//! nothing under contract waits at the latest. Does not: what needs more than the static
//! slack waits until there is so much, perhaps for ever, and holds others up for a fifth of
//! the time at the most; background is served only by an idle disk. A pool gives up reads and writes that wait so, 30 to 60 s
//! after they came, where the contracts will never leave the time for them, and their programs get an
//! error; others wait on. Cost: O(log n) per decision where what is known of the
//! slack suffices, else the slack's computation, O(n log n) in requests and tasks per
//! deadline visited. Beside more than 64 streams computations are paid for: one that looks
//! at k tasks, requests and slots is followed by none for 100 ns times k (2 ms may be
//! owed), about ten times what it takes; until then slack that is not known counts as
//! none, which is safe. Source: ours; it finds all that slack stealing (Lehoczky and
//! Ramos-Thuel 1992; Clockwise thesis, section 6.1.3) finds, for requests that are
//! never interrupted.

use super::elevator::Elevator;
use super::long::{self, Trial, Trials};
use super::over_cost::{self, Turn};
use crate::limits::{NEAR_MAX, NEAR_TASKS_MAX};
use crate::policy::{Choice, Policy, View};
use crate::queues::Waiting;
use crate::request::{BURST, Class};
use crate::settings::{Setting, Settings};
use alloc::boxed::Box;
use alloc::vec::Vec;
use units::{Duration, Instant};

#[derive(Clone, Debug, Default)]
pub(super) struct Slack {
    elevator: Elevator,
    trials: Trials,
    /// Best effort was refused; released requests go first for now.
    draining: bool,
    /// Where it was chosen.
    burst: Option<Duration>,
}

pub(super) const SETTINGS: &[Setting] = &[Setting::time(
    "burst",
    [Duration::ZERO, Duration::from_millis(800), BURST],
    "A run of requests under contract goes on until the slack is so much, and as long as the \
     longest of them. 0ns: no runs. Without effect on disks where the place does not matter.",
)];

impl Policy for Slack {
    fn choose(&mut self, view: &mut View<'_>) -> Choice {
        match over_cost::turn(view, |view, cost| view.slack_covers(cost)) {
            Turn::OverCost(key) => Choice::Start(key),
            Turn::Held => Choice::Wait { until: view.slack_may_grow() },
            // Beside those that may be late now and then best effort goes before nobody.
            Turn::Due(ready) if view.tasks().has_odds() => start_ready(view, &ready),
            Turn::Due(ready) => match self.trials.ask(view, false) {
                Trial::Start(key) => Choice::Start(key),
                Trial::Hold => start_next(view, ready),
                Trial::None => self.busy(view, ready),
            },
            Turn::None => {
                let served = view.in_flight().len() == 0;
                match self.trials.ask(view, served) {
                    Trial::Start(key) => Choice::Start(key),
                    Trial::Hold => self.idle(view, true),
                    Trial::None => self.idle(view, false),
                }
            }
        }
    }

    /// More of the kind that it has: when the kinds change is decided with an idle disk.
    fn beside(&mut self, view: &mut View<'_>) -> Option<u64> {
        let (last, _) = view.in_flight().last()?;
        if last.is_real_time() {
            let ready = view.queues().ready_first().copied()?;
            return view.may_go_beside(&ready).then_some(ready.key);
        }
        let (&request, pick) = self.elevator.pick(view)?;
        if !view.may_go_beside(&request) {
            return None;
        }
        self.elevator.took(&pick);
        Some(pick.key)
    }

    fn has_online_slack(&self) -> bool {
        true
    }

    fn remember(&self, now: Instant, state: &mut Vec<u64>) {
        self.elevator.remember(state);
        self.trials.remember(now, state);
        state.push(u64::from(self.draining));
    }

    fn clone_box(&self) -> Box<dyn Policy> {
        Box::new(self.clone())
    }
}

impl Slack {
    pub(super) fn new(values: &Settings) -> Self {
        // By default as the schedule was set up.
        let burst = Some(values.time(0)).filter(|&burst| burst != BURST);
        Self { burst, ..Self::default() }
    }

    /// Released requests under contract wait.
    fn busy(&mut self, view: &mut View<'_>, ready: Waiting) -> Choice {
        if view.queues().has_best_effort() {
            let burst = self.burst.map_or_else(|| view.burst(), |burst| view.burst_of(burst));
            if (!self.draining || view.slack_recovered(burst))
                && let Some((pick, cost)) = long::pick(&self.elevator, view)
                && view.slack_covers(cost)
            {
                self.draining = false;
                self.elevator.took(&pick);
                return Choice::Start(pick.key);
            }
            self.draining = !burst.is_zero();
        }
        start_next(view, ready)
    }

    /// No released request under contract waits. Best effort may be held back.
    fn idle(&mut self, view: &mut View<'_>, held: bool) -> Choice {
        self.draining = false;
        let pick = if held { None } else { long::pick(&self.elevator, view) };
        let early = view.queues().early_first();
        let near = early.filter(|early| is_near(view, early));
        let far = if near.is_some() { None } else { early };
        let background = view.queues().background_first();
        let background = background.filter(|_| !held && pick.is_none() && early.is_none());
        // Their keys and costs: the requests themselves take many words each.
        let of = |request: &Waiting| (request.key, view.predicted(request));
        let best_effort = pick.as_ref().map(|(pick, cost)| (pick.key, *cost));
        let aged = best_effort.filter(|_| pick.as_ref().is_some_and(|(pick, _)| pick.aged));
        let order = [aged, near.map(of), best_effort, far.map(of), background.map(of)];
        for (key, cost) in order.into_iter().flatten() {
            if view.is_overcommitted() || view.slack_covers(cost) {
                if let Some((pick, _)) = pick.as_ref().filter(|(pick, _)| pick.key == key) {
                    self.elevator.took(pick);
                }
                return Choice::Start(key);
            }
        }
        let waits = order.iter().flatten().next().is_some() || view.queues().has_best_effort();
        let grows = if waits { view.slack_may_grow() } else { None };
        Choice::Wait { until: grows.or(self.trials.next(view)).filter(|_| !held) }
    }
}

fn start_next(view: &mut View<'_>, ready: Waiting) -> Choice {
    let next = near_ready(view, ready);
    start_ready(view, &next)
}

/// The released request under contract that the disk reaches soonest, where to take it
/// before those with earlier deadlines cannot make any of them late; else the one with
/// the earliest deadline. Safe by the same test as best effort: to all that are due
/// before it the near one is time given away. It asks for nothing later, so that it is
/// proof also where more is promised than the whole disk.
fn near_ready(view: &mut View<'_>, first: Waiting) -> Waiting {
    if view.in_flight().len() > 0 || view.tasks().len() > NEAR_TASKS_MAX {
        return first;
    }
    let (now, head) = (view.now(), view.head());
    let time = |request: &&Waiting| view.expected(now, head, &request.command);
    let all = view.queues().ready().take(NEAR_MAX);
    let Some(&near) = all.min_by_key(time) else { return first };
    let cost = view.predicted(&near);
    let keeps_turn = near.key == first.key || view.interrupts(&near) || view.is_over_cost(&near);
    if keeps_turn || !view.slack_covers_before(cost, near.times.deadline) {
        return first;
    }
    near
}

/// Serves the earliest deadline. A disk that still works on others is given it
/// only where that cannot make an earlier deadline late, which may yet come.
pub(super) fn start_ready(view: &mut View<'_>, ready: &Waiting) -> Choice {
    let cost = view.predicted(ready);
    if view.in_flight().len() == 0 || view.slack_covers_before(cost, ready.times.deadline) {
        Choice::Start(ready.key)
    } else {
        Choice::Wait { until: None }
    }
}

/// Released within one period from now.
pub(super) fn is_near(view: &View<'_>, early: &Waiting) -> bool {
    let Class::RealTime(id) = early.class else { return false };
    let task = view.tasks().get(id).expect("a waiting request's task is there");
    early.times.release.saturating_since(view.now()) <= task.period
}
