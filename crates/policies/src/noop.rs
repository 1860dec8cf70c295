//! `noop`: the 2.6 kernel's queue without an order: first come, first served, and
//! what continues a request is merged with it.
//!
//! A request that begins where one before it ends, in the same direction, and came
//! while that one waited, goes along with it, up to [`MERGED_MAX`].
//!
//! Promises: everyone is served. Does not: contracts count for nothing, nor do
//! seeks. Cost: O(log n) per decision, and those held back by the order of their
//! flow. Source: ABISS, figures of its measurements; Linux 2.6, `noop-iosched.c`.

use super::places::Places;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use sched::Waiting;
use sched::{Choice, Policy, View};
use sched::{Setting, Settings};
use units::{Access, Bytes, Command, Instant};

/// The kernel's limit for one request, 1024 sectors.
const MERGED_MAX: Bytes = Bytes::kib(512);

pub(super) const SETTINGS: &[Setting] = &[Setting::size(
    "merged-max",
    [Bytes::ZERO, Bytes::mib(64), MERGED_MAX],
    "So much is served as one request where requests continue each other; 0B merges none.",
)];

#[derive(Clone, Debug, Default)]
pub(super) struct Noop {
    /// Keys by arrival.
    line: BTreeMap<u64, u64>,
    places: Places,
    newest: u64,
    merged: Option<Merged>,
    merged_max: Bytes,
}

/// The request that was started last, with what was merged into it.
#[derive(Clone, Copy, Debug)]
struct Merged {
    last: Access,
    len: Bytes,
    /// The newest arrival when the first of it was started.
    before: u64,
}

impl Noop {
    pub(super) fn new(values: &Settings) -> Self {
        Self { merged_max: Bytes::new(values.get(0)), ..Self::default() }
    }

    /// What continues the request that was started last.
    fn next_of(&self, view: &View<'_>, merged: &Merged) -> Option<Waiting> {
        let next = self.places.above(view.queues(), merged.last.end())?;
        let Command::Transfer(access) = next.command else { return None };
        let fits = access.lba == merged.last.end()
            && access.direction == merged.last.direction
            && merged.len + access.len <= self.merged_max
            && next.arrival <= merged.before;
        fits.then_some(*next)
    }
}

impl Policy for Noop {
    fn choose(&mut self, view: &mut View<'_>) -> Choice {
        let queues = view.queues();
        let continued = self.merged.as_ref().and_then(|merged| self.next_of(view, merged));
        let oldest = || self.line.values().find(|&&key| queues.may_run(key));
        let Some(request) = continued.or_else(|| queues.get(*oldest()?).copied()) else {
            return Choice::Wait { until: None };
        };
        self.merged = match (request.command, self.merged) {
            (Command::Flush | Command::Forced(_) | Command::Seek(_), _) => None,
            (Command::Transfer(last), Some(merged)) if continued.is_some() => {
                Some(Merged { last, len: merged.len + last.len, ..merged })
            }
            (Command::Transfer(last), _) => {
                Some(Merged { last, len: last.len, before: self.newest })
            }
        };
        self.dropped(&request);
        Choice::Start(request.key)
    }

    fn submitted(&mut self, request: &Waiting) {
        self.newest = request.arrival;
        self.line.insert(request.arrival, request.key);
        self.places.insert(request);
    }

    fn dropped(&mut self, request: &Waiting) {
        self.line.remove(&request.arrival);
        self.places.remove(request);
    }

    fn remember(&self, _now: Instant, state: &mut Vec<u64>) {
        state.extend(self.line.values());
        if let Some(Merged { last, len, before }) = self.merged {
            let merged = |&(&arrival, _): &(&u64, &u64)| arrival <= before;
            let came_before = self.line.iter().filter(merged).count() as u64;
            state.extend([last.end().get(), len.get(), came_before]);
        }
    }

    fn clone_box(&self) -> Box<dyn Policy> {
        Box::new(self.clone())
    }
}
