//! Which best-effort request goes next; shared by the policies that have slack.
//!
//! Synchronous before asynchronous, in sweep order from the head. So that nobody
//! waits for ever, while any are over their age, one in [`AGED_EVERY`] is the one
//! that has been so for longest; the sweep goes on from there.

use crate::limits::{AGE_ASYNCHRONOUS, AGE_SYNCHRONOUS, AGED_EVERY};
use crate::policy::View;
use crate::queues::Waiting;
use alloc::vec::Vec;
use units::{Instant, Lba};

/// The state of the sweep.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Elevator {
    downward: bool,
    /// Requests taken in sweep order, while any were over their age, since the last
    /// one that was taken for its age.
    swept: u32,
}

/// A choice that becomes final with [`Elevator::took`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Pick {
    pub request: Waiting,
    /// Over its age: goes before early requests under contract too.
    pub aged: bool,
    downward: bool,
    swept: u32,
}

impl Elevator {
    /// The next best-effort request.
    pub(super) fn pick(&self, view: &View<'_>) -> Option<Pick> {
        let aged = aged(view);
        if self.swept + 1 >= AGED_EVERY
            && let Some(&request) = aged
        {
            return Some(Pick { request, aged: true, downward: self.downward, swept: 0 });
        }
        let swept = if aged.is_some() { self.swept + 1 } else { 0 };
        let pick = self.sweep(view, true).or_else(|| self.sweep(view, false));
        pick.map(|(request, downward)| Pick { request, aged: false, downward, swept })
    }

    /// The request is started.
    pub(super) fn took(&mut self, pick: &Pick) {
        *self = Self { downward: pick.downward, swept: pick.swept };
    }

    pub(super) fn remember(&self, state: &mut Vec<u64>) {
        state.extend([u64::from(self.downward), u64::from(self.swept)]);
    }

    fn sweep(&self, view: &View<'_>, synchronous: bool) -> Option<(Waiting, bool)> {
        let (queues, head): (_, Lba) = (view.queues(), view.head());
        let above = || queues.best_effort_above(synchronous, head).map(|found| (*found, false));
        let below = || queues.best_effort_below(synchronous, head).map(|found| (*found, true));
        if self.downward { below().or_else(above) } else { above().or_else(below) }
    }
}

/// The request that has been over its age for longest.
fn aged<'a>(view: &'a View<'_>) -> Option<&'a Waiting> {
    let ripe = |synchronous, age| {
        let oldest = view.queues().best_effort_oldest(synchronous)?;
        let since: Instant = oldest.submitted.saturating_add(age);
        (since <= view.now()).then_some((since, oldest))
    };
    let both = [ripe(true, AGE_SYNCHRONOUS), ripe(false, AGE_ASYNCHRONOUS)];
    both.into_iter().flatten().min_by_key(|&(since, _)| since).map(|(_, request)| request)
}
