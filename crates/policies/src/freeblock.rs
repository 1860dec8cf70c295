//! `freeblock`: background work for free, in rotations that would be waited out.
//!
//! What is not background goes in C-SCAN order. Before each such request, a
//! background request goes that can be served and left again in the time that
//! the next one would wait for its sector anyway: by the expectations of the
//! model, `free + next after free <= next`. Others run when the disk is idle.
//!
//! Promises: everyone is served, and background delays nobody as far as the model
//! is right. Does not: contracts count for nothing; a prediction that does not
//! follow the rotation never finds a free place. Cost: O(log n) per decision, and
//! two predictions for each of at most [`LOOKED_AT`] background requests.
//! Source: UCSB QoS scheduler, section II.A (Lumb, Schindler and Ganger 2000-02).

use super::c_scan::CScan;
use alloc::boxed::Box;
use alloc::vec::Vec;
use sched::Class;
use sched::Waiting;
use sched::{Choice, Policy, View};
use sched::{Setting, Settings};
use units::{Command, Instant};

/// Background requests that are tried before each other request; the oldest.
const LOOKED_AT: u64 = 64;

pub(super) const SETTINGS: &[Setting] = &[Setting::number(
    "looked-at",
    [0, 4096, LOOKED_AT],
    "Background requests that are tried before each other request; each takes two predictions.",
)];

#[derive(Clone, Debug, Default)]
pub(super) struct Freeblock {
    foreground: CScan,
    /// Goes next; free requests may still go before it.
    next: Option<Waiting>,
    looked_at: usize,
}

impl Freeblock {
    pub(super) fn new(values: &Settings) -> Self {
        Self { looked_at: values.number(0), ..Self::default() }
    }
}

impl Policy for Freeblock {
    fn choose(&mut self, view: &mut View<'_>) -> Choice {
        self.next = self.next.take().or_else(|| self.foreground.take(view));
        let Some(next) = self.next else {
            return match view.queues().background_first() {
                Some(background) => Choice::Start(background.key),
                None => Choice::Wait { until: None },
            };
        };
        if let Some(free) = free_before(view, &next, self.looked_at) {
            return Choice::Start(free.key);
        }
        self.next = None;
        Choice::Start(next.key)
    }

    fn submitted(&mut self, request: &Waiting) {
        if request.class != Class::Background {
            self.foreground.insert(request);
        }
    }

    fn dropped(&mut self, request: &Waiting) {
        self.foreground.remove(request);
        self.next = self.next.filter(|next| next.key != request.key);
    }

    fn remember(&self, _now: Instant, state: &mut Vec<u64>) {
        self.foreground.write_state(state);
        state.extend(self.next.map(|next| next.key));
    }

    fn clone_box(&self) -> Box<dyn Policy> {
        Box::new(self.clone())
    }
}

/// The oldest background request that costs the next one nothing.
fn free_before<'a>(view: &'a View<'_>, next: &Waiting, looked_at: usize) -> Option<&'a Waiting> {
    let (now, head) = (view.now(), view.head());
    let direct = view.expected(now, head, &next.command);
    view.queues().background().take(looked_at).find(|free| {
        let Command::Transfer(access) = free.command else { return false };
        let detour = view.expected(now, head, &free.command);
        detour <= direct
            && detour + view.expected(now + detour, access.end(), &next.command) <= direct
    })
}
