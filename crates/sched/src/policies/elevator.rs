//! Which best-effort request goes next; shared by the policies that have slack.
//!
//! Synchronous before asynchronous, in sweep order from the head. So that nobody
//! waits for ever, one in [`AGED_EVERY`] is the one that has been over its age
//! for longest, if there is one; the sweep goes on from there.

use crate::limits::{AGE_ASYNCHRONOUS, AGE_SYNCHRONOUS, AGED_EVERY};
use crate::policy::View;
use crate::queues::Waiting;
use alloc::vec::Vec;
use units::{Instant, Lba};

/// The state of the sweep.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Elevator {
    downward: bool,
    /// Requests taken in sweep order since the last one that was taken for its age.
    swept: u32,
}

/// A choice that becomes final with [`Elevator::took`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Pick {
    pub request: Waiting,
    /// Over its age: goes before early requests under contract too.
    pub aged: bool,
    downward: bool,
}

impl Elevator {
    /// The next best-effort request.
    pub(super) fn pick(&self, view: &View<'_>) -> Option<Pick> {
        if self.swept >= AGED_EVERY
            && let Some(&request) = aged(view)
        {
            return Some(Pick { request, aged: true, downward: self.downward });
        }
        self.sweep(view, true).or_else(|| self.sweep(view, false))
    }

    /// The request is started.
    pub(super) fn took(&mut self, pick: &Pick) {
        self.downward = pick.downward;
        self.swept = if pick.aged { 0 } else { (self.swept + 1).min(AGED_EVERY) };
    }

    pub(super) fn remember(&self, state: &mut Vec<u64>) {
        state.extend([u64::from(self.downward), u64::from(self.swept)]);
    }

    fn sweep(&self, view: &View<'_>, synchronous: bool) -> Option<Pick> {
        let pick = |request: &Waiting, downward| Pick { request: *request, aged: false, downward };
        let (queues, head): (_, Lba) = (view.queues(), view.head());
        let above = || queues.best_effort_above(synchronous, head).map(|found| pick(found, false));
        let below = || queues.best_effort_below(synchronous, head).map(|found| pick(found, true));
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
