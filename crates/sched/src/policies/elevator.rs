//! Which best-effort request goes next; shared by the policies that have slack.
//!
//! Synchronous before asynchronous; within each, by turns. A turn is what waited when
//! it began, and what joined while its oldest request was no older than [`TURN_OPEN`].
//! Within a turn goes next what the disk is likely to do soonest from where the heads
//! are: best effort goes between requests under contract, which leave the heads
//! anywhere, so that a sweep of its own would not be one. Where the place does not matter
//! ([`Options::place_matters`](crate::Options::place_matters)) the oldest goes next. What comes later in a turn
//! waits for the next, so that nobody is overtaken by more than waited with it. Between
//! the two urgencies, and against requests under contract that come early, age decides:
//! while any are over theirs, one choice in [`AGED_EVERY`] is for those that have been
//! so for longest.

use crate::limits::{AGE_ASYNCHRONOUS, AGE_SYNCHRONOUS, AGED_EVERY, NEAR_MAX, TURN_OPEN};
use crate::policy::View;
use crate::queues::Waiting;
use alloc::vec::Vec;
use units::Duration;

/// The state of the turns.
#[derive(Clone, Copy, Debug, Default)]
pub struct Elevator {
    /// The turns of asynchronous and of synchronous requests; empty where no request
    /// is left in one.
    turns: [Turn; 2],
    /// Choices, while any request was over its age, since the last one for its age.
    passed: u32,
}

/// Requests that arrived before `end`, the oldest of them at `begin`.
#[derive(Clone, Copy, Debug, Default)]
struct Turn {
    begin: u64,
    end: u64,
}

/// A choice that becomes final with [`Elevator::took`].
#[derive(Clone, Copy, Debug)]
pub struct Pick {
    /// Of the request.
    pub key: u64,
    /// Over its age: goes before early requests under contract too.
    pub aged: bool,
    after: Elevator,
}

impl Elevator {
    /// The next best-effort request, and the choice.
    pub fn pick<'a>(&self, view: &'a View<'_>) -> Option<(&'a Waiting, Pick)> {
        let mut after = Self { passed: 0, ..*self };
        if let Some(synchronous) = over_age(view) {
            if self.passed + 1 >= AGED_EVERY {
                let request = after.turn(view, synchronous)?;
                return Some((request, Pick { key: request.key, aged: true, after }));
            }
            after.passed = self.passed + 1;
        }
        let request = after.turn(view, true).or_else(|| after.turn(view, false))?;
        Some((request, Pick { key: request.key, aged: false, after }))
    }

    /// The request is started.
    pub fn took(&mut self, pick: &Pick) {
        *self = pick.after;
    }

    /// Appends what later choices depend on, as [`Policy::remember`](crate::Policy::remember).
    pub fn remember(&self, state: &mut Vec<u64>) {
        state.extend(self.turns.map(|turn| turn.end - turn.begin));
        state.push(u64::from(self.passed));
    }

    /// The next request of this urgency.
    fn turn<'a>(&mut self, view: &'a View<'_>, synchronous: bool) -> Option<&'a Waiting> {
        let queues = view.queues();
        let mut by_age = queues.best_effort_by_age(synchronous);
        let oldest = by_age.next()?;
        let second = by_age.next();
        let turn = &mut self.turns[usize::from(synchronous)];
        let is_open = view.now() < oldest.submitted.saturating_add(TURN_OPEN);
        if is_open || oldest.arrival >= turn.end {
            turn.end = by_age.next_back().or(second).unwrap_or(oldest).arrival + 1;
        }
        let nearest = match view.place_matters() {
            true => near(view, synchronous, turn.end),
            false => None,
        };
        let next = nearest.unwrap_or(oldest);
        let left = if next.key == oldest.key { second } else { Some(oldest) };
        *turn = match left.filter(|left| left.arrival < turn.end) {
            Some(left) => Turn { begin: left.arrival, end: turn.end },
            None => Turn::default(),
        };
        Some(next)
    }
}

/// Of the requests of this urgency that arrived before `end`, the one that the disk is
/// likely to have done soonest; none where none is found near the heads.
fn near<'a>(view: &'a View<'_>, synchronous: bool, end: u64) -> Option<&'a Waiting> {
    let (queues, now, head) = (view.queues(), view.now(), view.head());
    let belongs = |request: &&Waiting| request.arrival < end;
    let above = queues.best_effort_upward(synchronous, head).take(NEAR_MAX).find(belongs);
    let below = queues.best_effort_downward(synchronous, head).take(NEAR_MAX).find(belongs);
    match (above, below) {
        (Some(_), Some(_)) => {
            let time = |request: &&Waiting| view.expected(now, head, &request.command);
            [above, below].into_iter().flatten().min_by_key(time)
        }
        _ => above.or(below),
    }
}

/// The urgency of the request that has been over its age for longest.
fn over_age(view: &View<'_>) -> Option<bool> {
    let over = |synchronous, age: Duration| {
        let oldest = view.queues().best_effort_oldest(synchronous)?;
        let since = oldest.submitted.saturating_add(age);
        (since <= view.now()).then_some((since, synchronous))
    };
    let both = [over(true, AGE_SYNCHRONOUS), over(false, AGE_ASYNCHRONOUS)];
    both.into_iter().flatten().min().map(|(_, synchronous)| synchronous)
}
