//! Best effort that needs more than the static slack; shared by the policies that go by
//! slack.
//!
//! What the static slack covers can go whenever nothing under contract waits. For what
//! needs more, slack may come now and then, or never; others of best effort must not wait
//! for that. So a request that needs more, and that the slack does not cover when it is its
//! turn, is set aside: others pass it. The slack is looked at for one of those at a time, in
//! turn, every [`LONG_PAUSE_MIN`]. Whoever has waited beyond its age (as the elevator counts
//! it) gets a *trial*: best effort is held back so that requests under contract are served
//! ahead and the slack grows, until it suffices, until nothing under contract waits (it
//! will be no more), or for [`LONG_HOLD`], which doubles with each trial that was too short
//! up to [`LONG_HOLD_MAX`]. Then others go on for [`LONG_PAUSES`] times as long: they always
//! have four fifths of the time. Nobody is held back for a request that cannot fit at all
//! ([`View::never_covers`]).
//!
//! Nothing can be promised to those that need more than the static slack: contracts may be
//! used so that it never comes.

use super::elevator::{Elevator, Pick};
use crate::limits::{
    AGE_ASYNCHRONOUS, AGE_SYNCHRONOUS, LONG_HOLD, LONG_HOLD_MAX, LONG_PAUSE_MIN, LONG_PAUSES,
    LONG_TRIES,
};
use crate::policy::View;
use crate::queues::Waiting;
use alloc::vec::Vec;
use units::{Duration, Instant};

/// The elevator's next request that could go when nothing under contract waits, or that the
/// slack covers now, and what it [costs](View::predicted). Those before it are set aside,
/// [`LONG_TRIES`] at the most.
pub(super) fn pick(elevator: &Elevator, view: &mut View<'_>) -> Option<(Pick, Duration)> {
    let covers = |view: &mut View<'_>, cost| view.slack_covers(cost);
    first_of(view, |view| elevator.pick(view), covers)
}

/// The same of requests in any order, and with any slack.
pub(super) fn first_of<T>(
    view: &mut View<'_>,
    next: impl for<'a> Fn(&'a View<'_>) -> Option<(&'a Waiting, T)>,
    covers: impl Fn(&mut View<'_>, Duration) -> bool,
) -> Option<(T, Duration)> {
    for _ in 0..LONG_TRIES {
        let (request, found) = next(view)?;
        let (bound, key) = (view.bound_of(request), request.key);
        let cost = view.with_lost_to(key, bound);
        let is_long = view.is_long_at(request, bound);
        if !is_long || covers(view, cost) {
            return Some((found, cost));
        }
        view.set_long(key);
    }
    None
}

/// Whose trial it is, and when.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Trials {
    /// The next one is for the first that arrived at this or later,
    from: u64,
    /// which is after the one with this key.
    last: u64,
    /// Not before this.
    next: Instant,
    /// Since when others are held back for it.
    held: Option<Instant>,
    /// Trials that were too short.
    short: u32,
}

/// What becomes of those that were set aside.
pub(super) enum Trial {
    /// Nothing now.
    None,
    /// Others of best effort wait.
    Hold,
    /// There is slack for this one.
    Start(u64),
}

impl Trials {
    /// Looks whether there is slack for one of those that were set aside. `served`: nothing
    /// under contract waits, and the disk has nothing: the slack will not grow.
    pub fn ask(&mut self, view: &mut View<'_>, served: bool) -> Trial {
        let Some(long) = view.queues().long_from(self.from).copied() else {
            *self = Self::default();
            return Trial::None;
        };
        let now = view.now();
        if now < self.next {
            return Trial::None;
        }
        let cost = view.predicted(&long);
        if view.slack_covers(cost) || (served && view.is_overcommitted()) {
            self.passes(&long);
            return Trial::Start(long.key);
        }
        let begins = self.held.is_none() && is_over_age(&long, now);
        if begins && !served && !view.never_covers(cost) {
            self.held = Some(now);
        }
        let Some(held) = self.held else { return self.ends(&long, now, Duration::ZERO) };
        let length = now.saturating_since(held);
        let hold = (LONG_HOLD * (1 << self.short)).min(LONG_HOLD_MAX);
        if served || length >= hold {
            self.short = (self.short + u32::from(!served)).min(16);
            return self.ends(&long, now, length);
        }
        Trial::Hold
    }

    /// When there is the next look, while any is set aside; after a pause where one was set
    /// aside just now.
    pub fn next(&self, view: &View<'_>) -> Option<Instant> {
        let now = view.now();
        let next = if self.next > now { self.next } else { now.saturating_add(LONG_PAUSE_MIN) };
        view.queues().long_from(0).map(|_| next)
    }

    pub fn remember(&self, now: Instant, state: &mut Vec<u64>) {
        let since = self.held.map(|held| now.saturating_since(held).as_nanos());
        // What is further away than the whole ticks of a search go is as good as never.
        let until = self.next.saturating_since(now).as_nanos().min(1_000);
        if until > 0 || since.is_some() {
            state.extend([self.last, until, since.unwrap_or(u64::MAX), u64::from(self.short)]);
        }
    }

    /// It is the turn of the next one.
    fn passes(&mut self, long: &Waiting) {
        (self.from, self.last, self.held) = (long.arrival + 1, long.key, None);
    }

    /// The trial, after `length`, comes to nothing.
    fn ends(&mut self, long: &Waiting, now: Instant, length: Duration) -> Trial {
        self.passes(long);
        self.next = now.saturating_add((length * LONG_PAUSES).max(LONG_PAUSE_MIN));
        Trial::None
    }
}

fn is_over_age(long: &Waiting, now: Instant) -> bool {
    let age = if long.synchronous { AGE_SYNCHRONOUS } else { AGE_ASYNCHRONOUS };
    long.submitted.saturating_add(age) <= now
}
