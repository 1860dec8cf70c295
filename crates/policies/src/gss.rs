//! `gss`: group sweeping; groups in order of their joint deadlines, a sweep within
//! each.
//!
//! A group is the [`GROUP`] released requests with the earliest deadlines, so that
//! its deadlines are similar; the joint deadline is the earliest of them. A group is
//! served in one sweep, up and down in turns, before the next is made. Groups of
//! one are earliest deadline first; one group of all is a sweep per cycle.
//!
//! Promises: everyone is served while tasks keep to their contracts. Does not: the
//! last of a sweep may be the first in deadline order, so that requests of an
//! admitted set can be late. Cost: O(log n) per decision, and O(g log g) for a group
//! of g. Source: UCSB QoS scheduler, section II.A (Chen, Kandlur and Yu 1993).

use super::rest::Rest;
use alloc::boxed::Box;
use alloc::vec::Vec;
use sched::Waiting;
use sched::{Choice, Policy, View};
use sched::{Setting, Settings};
use units::Instant;

/// Requests in a group: enough that seeks are short, few enough that a group of
/// 1 MiB blocks is served in about half a second.
const GROUP: u64 = 4;

pub(super) const SETTINGS: &[Setting] = &[Setting::number(
    "group",
    [1, 4096, GROUP],
    "Requests that are served in one sweep; 1 is earliest deadline first.",
)];

#[derive(Clone, Debug, Default)]
pub(super) struct Gss {
    /// Keys of the group, the next one last.
    group: Vec<u64>,
    downward: bool,
    rest: Rest,
    size: usize,
}

impl Gss {
    pub(super) fn new(values: &Settings) -> Self {
        Self { size: values.number(0), ..Self::default() }
    }

    fn gather(&mut self, view: &View<'_>) {
        let mut group: Vec<_> = view.queues().ready().take(self.size).collect();
        group.sort_by_key(|request| (request.place(), request.arrival));
        if !self.downward {
            group.reverse();
        }
        self.downward ^= !group.is_empty();
        self.group.extend(group.iter().map(|request| request.key));
    }
}

impl Policy for Gss {
    fn choose(&mut self, view: &mut View<'_>) -> Choice {
        if self.group.is_empty() {
            self.gather(view);
        }
        self.group.pop().map_or_else(|| self.rest.choose(view), Choice::Start)
    }

    fn dropped(&mut self, request: &Waiting) {
        self.group.retain(|&key| key != request.key);
    }

    fn remember(&self, _now: Instant, state: &mut Vec<u64>) {
        self.rest.remember(state);
        state.push(u64::from(self.downward));
        state.extend(&self.group);
    }

    fn clone_box(&self) -> Box<dyn Policy> {
        Box::new(self.clone())
    }
}
