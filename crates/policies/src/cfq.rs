//! `cfq`: the 2.6 kernel's complete fair queueing: time slices for queues, idling for
//! whoever may come back.
//!
//! Every stream has a queue in the real-time class, every flow one for its
//! synchronous requests in the best-effort class, asynchronous requests share one,
//! background has the idle class. Queues of a class take turns: a slice is 100 ms of
//! synchronous, 40 ms of asynchronous work (and [`ASYNCHRONOUS_MAX`] requests at most),
//! or one background request. A queue of the real-time class goes before the others at once.
//! Where the queue of a slice has nothing more, the disk waits up to [`IDLE`] for its
//! next request. Within a queue: a one-way elevator, and what is over its time (125 ms
//! synchronous, 250 ms asynchronous) first.
//!
//! Promises: best effort shares what the real-time class leaves, slice by slice.
//! Does not: deadlines count for nothing; background can wait for ever. Cost: O(log n)
//! per decision, and those held back by the order of their flow. Source: ABISS, figures
//! of its measurements; Linux 2.6, `cfq-iosched.c` at priority 4.

use super::deadline::Side;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use sched::TaskId;
use sched::Waiting;
use sched::{Choice, Policy, View};
use sched::{Class, Flow, Outcome};
use sched::{Setting, Settings};
use units::{Duration, Instant};

/// `slice_sync`.
const SLICE: Duration = Duration::from_millis(100);
/// `slice_async`.
const SLICE_ASYNCHRONOUS: Duration = Duration::from_millis(40);
/// `slice_async_rq` (2), scaled as the kernel does for priority 4.
const ASYNCHRONOUS_MAX: u64 = 16;
/// `slice_idle`.
const IDLE: Duration = Duration::from_millis(8);
/// `quantum`: commands of one queue that the disk may hold.
const QUANTUM: u64 = 4;
/// `fifo_expire_sync`, `fifo_expire_async`.
const EXPIRE: [Duration; 2] = [Duration::from_millis(125), Duration::from_millis(250)];
/// `back_seek_max`, 16 MiB in sectors.
const BACK_MAX: u64 = 32 * 1024;

pub(super) const SETTINGS: &[Setting] = &[
    Setting::time(
        "slice",
        [Duration::from_millis(1), Duration::from_secs(10), SLICE],
        "How long a queue of synchronous requests is served in its turn.",
    ),
    Setting::time(
        "slice-asynchronous",
        [Duration::from_millis(1), Duration::from_secs(10), SLICE_ASYNCHRONOUS],
        "How long asynchronous requests are served in their turn.",
    ),
    Setting::number(
        "asynchronous-max",
        [1, 4096, ASYNCHRONOUS_MAX],
        "Asynchronous requests that are served in their turn.",
    ),
    Setting::time(
        "idle",
        [Duration::ZERO, Duration::from_secs(1), IDLE],
        "How long the disk waits for the next request of a queue.",
    ),
    Setting::number("quantum", [1, 1024, QUANTUM], "Commands of one queue that the disk may hold."),
    Setting::time(
        "expire-synchronous",
        [Duration::ZERO, Duration::from_secs(60), EXPIRE[0]],
        "A synchronous request that has waited so long goes first in its queue.",
    ),
    Setting::time(
        "expire-asynchronous",
        [Duration::ZERO, Duration::from_secs(60), EXPIRE[1]],
        "An asynchronous request that has waited so long goes first in its queue.",
    ),
];

/// Who has a queue; the order is that of the classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Who {
    Stream(TaskId),
    Synchronous(Flow),
    Asynchronous,
    Background,
}

fn who(request: &Waiting) -> Who {
    match request.class {
        Class::RealTime(id) => Who::Stream(id),
        Class::BestEffort { synchronous: true, flow, .. }
        | Class::Server { synchronous: true, flow, .. } => Who::Synchronous(flow),
        Class::BestEffort { .. } | Class::Server { .. } => Who::Asynchronous,
        Class::Background => Who::Background,
    }
}

impl Who {
    fn class(self) -> usize {
        match self {
            Self::Stream(_) => 0,
            Self::Synchronous(_) | Self::Asynchronous => 1,
            Self::Background => 2,
        }
    }

    fn synchronous(self) -> bool {
        matches!(self, Self::Stream(_) | Self::Synchronous(_))
    }
}

/// The queue whose turn it is.
#[derive(Clone, Copy, Debug)]
struct Slice {
    who: Who,
    ends: Instant,
    served: u64,
    /// When the wait for its next request is given up.
    idle_ends: Instant,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Cfq {
    /// Queues with requests.
    queues: BTreeMap<Who, Side>,
    /// Their turns, by class; without the one that has the slice.
    turns: [VecDeque<Who>; 3],
    slice: Option<Slice>,
    /// Of synchronous requests, of asynchronous ones.
    length: [Duration; 2],
    asynchronous_max: u64,
    idle: Duration,
    quantum: usize,
    /// Of synchronous requests, of asynchronous ones.
    expire: [Duration; 2],
}

impl Cfq {
    pub(super) fn new(values: &Settings) -> Self {
        Self {
            length: [0, 1].map(|at| values.time(at)),
            asynchronous_max: values.get(2),
            idle: values.time(3),
            quantum: values.number(4),
            expire: [5, 6].map(|at| values.time(at)),
            ..Self::default()
        }
    }

    /// The next request of a queue.
    fn next_of(&self, who: Who, view: &View<'_>) -> Option<Waiting> {
        let side = self.queues.get(&who)?;
        let expired = side.expired(view, self.expire[usize::from(!who.synchronous())]);
        expired.or_else(|| side.places.one_way(view.queues(), view.head(), BACK_MAX)).copied()
    }

    /// True where the slice is over, or taken away for a queue of a higher class.
    fn is_over(&self, slice: &Slice, now: Instant) -> bool {
        let most = match slice.who {
            Who::Asynchronous => self.asynchronous_max,
            Who::Background => 1,
            _ => u64::MAX,
        };
        let higher = self.turns[..slice.who.class()].iter().any(|turns| !turns.is_empty());
        now >= slice.ends || slice.served >= most || higher
    }

    /// Ends the slice; its queue goes to the end of its class.
    fn expire(&mut self) {
        if let Some(Slice { who, .. }) = self.slice.take()
            && self.queues.contains_key(&who)
        {
            self.turns[who.class()].push_back(who);
        }
    }

    fn begin(&mut self, now: Instant) -> Option<Slice> {
        let who = self.turns.iter_mut().find_map(VecDeque::pop_front)?;
        let length = self.length[usize::from(!who.synchronous())];
        let ends = now.saturating_add(length);
        self.slice = Some(Slice { who, ends, served: 0, idle_ends: now });
        self.slice
    }

    /// What to do in this slice; none where it is over.
    fn go_on(&mut self, slice: Slice, view: &View<'_>) -> Option<Choice> {
        let held = view.in_flight().filter(|(request, _)| who(request) == slice.who).count();
        if let Some(request) = self.next_of(slice.who, view) {
            if held >= self.quantum {
                return Some(Choice::Wait { until: None });
            }
            self.slice = Some(Slice { served: slice.served + 1, ..slice });
            self.dropped(&request);
            return Some(Choice::Start(request.key));
        }
        if held > 0 {
            return Some(Choice::Wait { until: None });
        }
        let idles = slice.who.synchronous() && view.now() < slice.idle_ends;
        idles.then_some(Choice::Wait { until: Some(slice.idle_ends) })
    }
}

impl Policy for Cfq {
    fn choose(&mut self, view: &mut View<'_>) -> Choice {
        // Each turn is looked at once: queues that are held back have nothing to start.
        for _ in 0..=self.turns.iter().map(VecDeque::len).sum::<usize>() + 1 {
            if self.slice.is_some_and(|slice| self.is_over(&slice, view.now())) {
                self.expire();
            }
            let Some(slice) = self.slice.or_else(|| self.begin(view.now())) else { break };
            if let Some(choice) = self.go_on(slice, view) {
                return choice;
            }
            self.expire();
        }
        Choice::Wait { until: None }
    }

    fn submitted(&mut self, request: &Waiting) {
        let who = who(request);
        if !self.queues.contains_key(&who) && self.slice.is_none_or(|slice| slice.who != who) {
            self.turns[who.class()].push_back(who);
        }
        self.queues.entry(who).or_default().insert(request);
    }

    fn dropped(&mut self, request: &Waiting) {
        // One that somebody came to wait for stands where it was put first.
        let asynchronous = Some(Who::Asynchronous).filter(|_| request.synchronous);
        for who in [Some(who(request)), asynchronous].into_iter().flatten() {
            let Some(side) = self.queues.get_mut(&who) else { continue };
            side.remove(request);
            if side.places.is_empty() {
                self.queues.remove(&who);
                if self.slice.is_none_or(|slice| slice.who != who) {
                    self.turns[who.class()].retain(|&other| other != who);
                }
            }
        }
    }

    fn finished(&mut self, request: &Waiting, outcome: &Outcome) {
        if let Some(slice) = &mut self.slice
            && slice.who == who(request)
        {
            let ended = outcome.started.saturating_add(outcome.actual);
            slice.idle_ends = ended.saturating_add(self.idle).min(slice.ends);
        }
    }

    fn remember(&self, now: Instant, state: &mut Vec<u64>) {
        for turn in self.turns.iter().flatten() {
            self.queues[turn].remember(state);
            state.push(u64::MAX);
        }
        if let Some(slice) = self.slice {
            let times = [slice.ends, slice.idle_ends];
            state.extend(times.map(|time| time.saturating_since(now).as_nanos()));
            state.push(slice.served);
            self.queues.get(&slice.who).inspect(|side| side.remember(state));
        }
    }

    fn clone_box(&self) -> Box<dyn Policy> {
        Box::new(self.clone())
    }
}
