//! The requests that wait on one disk, in every order that policies ask for.
//!
//! Invariants: each waiting request has a slot that `by_key` knows (one that was started has its
//! slot, too, which its flight knows), and is in exactly
//! one of `ready`, `early`, `sweeps`, `background`, or held back behind an earlier
//! ordered request of its flow (which may also be in flight). But a request to a server
//! that has entered a container is in `ready` and in `sweeps`: it has a deadline, and
//! may go before it as best effort. A request under contract that was found to cost more
//! than the contract covers ([`Waiting::over_cost`]) is in `sweeps` in place of `ready`. And
//! best effort that was found to need more than the static slack ([`Waiting::long`]) is in
//! `long` in place of `sweeps`.

mod attempt;
mod journal;
mod waiting;

pub(crate) use self::journal::Begun;
pub use self::waiting::Waiting;

use self::journal::Journal;
use crate::request::{Class, Flow, Times};
use crate::slack::Due;
use crate::sorted::Sorted;
use crate::task::TaskId;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use units::{Duration, Instant, Lba};

/// Requests under contract, by a time and by arrival.
type Timed = BTreeMap<(Instant, u64), Brief>;

/// What the computation of the slack asks of a request, at hand.
#[derive(Clone, Copy, Debug)]
struct Brief {
    slot: u32,
    deadline: Instant,
    cost: Duration,
}

/// Best-effort requests of one urgency, by place and by arrival.
#[derive(Clone, Debug, Default)]
struct Sweep {
    by_place: Sorted<(Lba, u64), u32>,
    by_arrival: Sorted<u64, u32>,
}

/// Everything that waits.
#[derive(Clone, Debug, Default)]
pub struct Queues {
    /// The requests; the queues name them by their place here.
    slots: Vec<Waiting>,
    vacant: Vec<u32>,
    by_key: Sorted<u64, u32>,
    /// Released, by deadline.
    ready: Timed,
    /// Released in the future, by release.
    early: Timed,
    /// Asynchronous and synchronous best effort.
    sweeps: [Sweep; 2],
    background: BTreeMap<u64, u32>,
    /// Best effort that was set aside, by arrival.
    long: BTreeMap<u64, u32>,
    /// How many requests under contract are over its cost.
    over_cost: usize,
    /// Ordered requests of each flow, waiting or in flight; the first may run.
    ordered: BTreeMap<Flow, VecDeque<u64>>,
    journal: Journal,
}

impl Queues {
    /// A waiting request.
    pub fn get(&self, key: u64) -> Option<&Waiting> {
        self.by_key.get(key).map(|&slot| self.at(slot))
    }

    /// The released request under contract with the earliest deadline.
    pub fn ready_first(&self) -> Option<&Waiting> {
        self.ready.first_key_value().map(|(_, brief)| self.at(brief.slot))
    }

    /// The request under contract that is released next.
    pub fn early_first(&self) -> Option<&Waiting> {
        self.early.first_key_value().map(|(_, brief)| self.at(brief.slot))
    }

    /// Released requests under contract, by deadline.
    pub fn ready(&self) -> impl Iterator<Item = &Waiting> {
        self.ready.values().map(|brief| self.at(brief.slot))
    }

    /// Requests under contract with releases in the future, by release.
    pub fn early(&self) -> impl Iterator<Item = &Waiting> {
        self.early.values().map(|brief| self.at(brief.slot))
    }

    /// True where a best-effort request may run.
    pub fn has_best_effort(&self) -> bool {
        self.sweeps.iter().any(|sweep| !sweep.by_place.is_empty())
    }

    /// The oldest best-effort request of this urgency that may run.
    pub fn best_effort_oldest(&self, synchronous: bool) -> Option<&Waiting> {
        self.sweep(synchronous).by_arrival.first().map(|&slot| self.at(slot))
    }

    /// Best-effort requests of this urgency that may run, the oldest first.
    pub fn best_effort_by_age(
        &self,
        synchronous: bool,
    ) -> impl DoubleEndedIterator<Item = &Waiting> {
        self.sweep(synchronous).by_arrival.values().map(|&slot| self.at(slot))
    }

    /// Best-effort requests of this urgency at `from` or above, the nearest first.
    pub fn best_effort_upward(
        &self,
        synchronous: bool,
        from: Lba,
    ) -> impl Iterator<Item = &Waiting> {
        self.sweep(synchronous).by_place.range((from, 0)..).map(|(_, &slot)| self.at(slot))
    }

    /// Best-effort requests of this urgency below `from`, the nearest first.
    pub fn best_effort_downward(
        &self,
        synchronous: bool,
        from: Lba,
    ) -> impl Iterator<Item = &Waiting> {
        self.sweep(synchronous).by_place.range(..(from, 0)).rev().map(|(_, &slot)| self.at(slot))
    }

    /// The nearest best-effort request of this urgency at `from` or above.
    pub fn best_effort_above(&self, synchronous: bool, from: Lba) -> Option<&Waiting> {
        let next = self.sweep(synchronous).by_place.range((from, 0)..).next();
        next.map(|(_, &slot)| self.at(slot))
    }

    /// The nearest best-effort request of this urgency below `from`.
    pub fn best_effort_below(&self, synchronous: bool, from: Lba) -> Option<&Waiting> {
        let next = self.sweep(synchronous).by_place.range(..(from, 0)).next_back();
        next.map(|(_, &slot)| self.at(slot))
    }

    /// The oldest background request.
    pub fn background_first(&self) -> Option<&Waiting> {
        self.background.first_key_value().map(|(_, &slot)| self.at(slot))
    }

    /// Background requests, oldest first.
    pub fn background(&self) -> impl Iterator<Item = &Waiting> {
        self.background.values().map(|&slot| self.at(slot))
    }

    /// Of the best effort that was set aside because it needs more than the static slack, the
    /// first that arrived at `from` or later; else the first.
    pub fn long_from(&self, from: u64) -> Option<&Waiting> {
        let next = self.long.range(from..).next().or(self.long.first_key_value());
        next.map(|(_, &slot)| self.at(slot))
    }

    /// All best effort that was set aside, by arrival.
    pub fn all_long(&self) -> impl Iterator<Item = &Waiting> {
        self.long.values().map(|&slot| self.at(slot))
    }

    /// True where the request may run now: it waits, and not behind another of
    /// its flow.
    pub fn may_run(&self, key: u64) -> bool {
        self.get(key).is_some_and(|waiting| self.is_first_of_flow(waiting))
    }

    /// True for a request that is behind no other of its flow, or in none.
    pub(crate) fn is_first_of_flow(&self, request: &Waiting) -> bool {
        request.class.order().is_none_or(|flow| {
            self.ordered.get(&flow).and_then(VecDeque::front) == Some(&request.key)
        })
    }

    /// Everything that waits, by arrival.
    pub fn by_arrival(&self) -> Vec<&Waiting> {
        let mut all: Vec<_> = self.by_key.values().map(|&slot| self.at(slot)).collect();
        all.sort_unstable_by_key(|waiting| waiting.arrival);
        all
    }

    /// A request that waits, or that was started, by its slot.
    pub(crate) fn at(&self, slot: u32) -> &Waiting {
        &self.slots[slot as usize]
    }

    fn slot(&self, key: u64) -> u32 {
        *self.by_key.get(key).expect("it waits")
    }

    fn sweep(&self, synchronous: bool) -> &Sweep {
        &self.sweeps[usize::from(synchronous)]
    }

    /// # Panics
    /// Where a request with this key waits already.
    pub(crate) fn insert(&mut self, waiting: Waiting, now: Instant) {
        self.note(waiting.key);
        let slot = self.place(waiting);
        if let Some(flow) = waiting.class.order() {
            self.note_line(flow);
            let line = self.ordered.entry(flow).or_default();
            line.push_back(waiting.key);
            if line.len() > 1 {
                let first = line[0];
                if waiting.synchronous {
                    self.make_synchronous(first);
                }
                return;
            }
        }
        self.enqueue(slot, now);
    }

    /// A request has a slot from here on, and is in no queue yet.
    fn place(&mut self, waiting: Waiting) -> u32 {
        let slot = self.vacant.pop().unwrap_or(self.slots.len() as u32);
        let known = self.by_key.insert(waiting.key, slot);
        assert!(known.is_none(), "key {} is in use", waiting.key);
        self.over_cost += usize::from(waiting.over_cost);
        if slot as usize == self.slots.len() {
            self.slots.push(waiting);
        } else {
            self.slots[slot as usize] = waiting;
        }
        slot
    }

    /// A request is promised for `by` from here on.
    pub(crate) fn promise(&mut self, key: u64, by: Instant) {
        self.note(key);
        let slot = self.slot(key);
        self.slots[slot as usize].promised = by;
    }

    /// The same of one that the disk has.
    pub(crate) fn promise_with_disk(&mut self, slot: u32, by: Instant) {
        self.slots[slot as usize].promised = by;
    }

    /// A request under contract that waits costs up to `cost` from here on.
    pub(crate) fn charge(&mut self, key: u64, cost: Duration) {
        self.note(key);
        let slot = self.slot(key);
        let waiting = &mut self.slots[slot as usize];
        waiting.cost = cost;
        let Waiting { times, arrival, .. } = *waiting;
        let ready = self.ready.get_mut(&(times.deadline, arrival));
        let brief = ready.or_else(|| self.early.get_mut(&(times.release, arrival)));
        if let Some(brief) = brief {
            brief.cost = cost;
        }
    }

    /// As [`Queues::charge`], with what of it is no device time of its own.
    pub(crate) fn charge_anew(&mut self, key: u64, cost: Duration, overheads: Duration) {
        self.charge(key, cost);
        let slot = self.slot(key);
        self.slots[slot as usize].overheads = overheads;
    }

    /// A request to a server says that it costs `own` from here on, `cost` in all.
    pub(crate) fn charge_server(&mut self, key: u64, cost: Duration, own: Duration) {
        self.charge(key, cost);
        let slot = self.slot(key);
        if let Class::Server { cost, .. } = &mut self.slots[slot as usize].class {
            *cost = own;
        }
    }

    /// A request that waits is served in up to so many commands.
    pub(crate) fn set_way(&mut self, key: u64, commands: u32, resume: Duration) {
        self.note(key);
        let slot = self.slot(key);
        let waiting = &mut self.slots[slot as usize];
        (waiting.commands, waiting.resume) = (commands, resume);
    }

    /// A request to a server leaves the container that it has entered; what it was promised
    /// is still what it is judged by.
    pub(crate) fn leave(&mut self, key: u64) {
        self.note(key);
        let slot = self.slot(key);
        let waiting = &mut self.slots[slot as usize];
        let deadline = core::mem::replace(&mut waiting.times.deadline, Instant::MAX);
        let arrival = waiting.arrival;
        self.ready.remove(&(deadline, arrival));
    }

    /// Whether a request waits that costs more than its contract covers.
    pub(crate) fn has_over_cost(&self) -> bool {
        self.over_cost > 0
    }

    /// A released request of a stream costs more than its contract covers: it waits among
    /// best effort from here on.
    pub(crate) fn set_over_cost(&mut self, key: u64) {
        self.note(key);
        let slot = self.slot(key);
        self.dequeue(slot);
        let waiting = &mut self.slots[slot as usize];
        waiting.over_cost = true;
        waiting.synchronous = true;
        let submitted = waiting.submitted;
        self.over_cost += 1;
        self.enqueue(slot, submitted);
    }

    /// A best-effort request that may run is set aside: others pass it.
    pub(crate) fn set_long(&mut self, key: u64) {
        let slot = self.slot(key);
        self.mark_long(slot, true);
    }

    /// None is set aside for being long any more.
    pub(crate) fn call_long(&mut self) {
        let slots: Vec<u32> = self.long.values().copied().collect();
        slots.into_iter().for_each(|slot| self.mark_long(slot, false));
    }

    fn mark_long(&mut self, slot: u32, long: bool) {
        self.note(self.at(slot).key);
        self.dequeue(slot);
        self.slots[slot as usize].long = long;
        self.enqueue(slot, self.at(slot).submitted);
    }

    /// What costs more than its contract covers waits as if it had just come. False where
    /// nothing does.
    pub(crate) fn bring_back(&mut self, now: Instant) -> bool {
        let aside = self.by_key.values().copied();
        let aside = aside.filter(|&slot| self.slots[slot as usize].over_cost);
        let aside: Vec<u32> = aside.collect();
        for &slot in &aside {
            self.note(self.at(slot).key);
            self.dequeue(slot);
            let waiting = &mut self.slots[slot as usize];
            waiting.over_cost = false;
            waiting.synchronous = false;
            self.over_cost -= 1;
            self.enqueue(slot, now);
        }
        !aside.is_empty()
    }

    /// A released request under contract is due at `deadline` from here on.
    pub(crate) fn set_deadline(&mut self, key: u64, deadline: Instant) {
        self.note(key);
        let slot = self.slot(key);
        let waiting = &mut self.slots[slot as usize];
        let old = core::mem::replace(&mut waiting.times.deadline, deadline);
        let arrival = waiting.arrival;
        let brief = self.ready.remove(&(old, arrival)).expect("it is released");
        self.ready.insert((deadline, arrival), Brief { deadline, ..brief });
    }

    /// Requests to a server that may run and are in no container.
    pub(crate) fn unentered(&self, id: TaskId) -> impl Iterator<Item = &Waiting> {
        let all = self.by_key.values().map(|&slot| self.at(slot));
        let theirs = all.filter(
            move |waiting| matches!(waiting.class, Class::Server { task, .. } if task == id),
        );
        theirs.filter(|waiting| !waiting.is_real_time() && self.may_run(waiting.key))
    }

    /// Takes a request out, to drop it.
    pub(crate) fn take(&mut self, key: u64) -> Option<Waiting> {
        self.note(key);
        let slot = self.take_out(key)?;
        self.vacant.push(slot);
        Some(*self.at(slot))
    }

    /// A request waits no more, but keeps its slot until [`Queues::vacate`]: it is too large to be
    /// copied without need.
    pub(crate) fn take_to_start(&mut self, key: u64) -> Option<u32> {
        self.assert_nothing_is_tried();
        self.take_out(key)
    }

    fn take_out(&mut self, key: u64) -> Option<u32> {
        let slot = self.by_key.remove(key)?;
        self.dequeue(slot);
        self.over_cost -= usize::from(self.at(slot).over_cost);
        Some(slot)
    }

    /// The slot of a request that was started is free for the next that is put in.
    pub(crate) fn vacate(&mut self, slot: u32) {
        self.assert_nothing_is_tried();
        self.vacant.push(slot);
    }

    /// The request is done or dropped: the next one of its flow, which is returned, may
    /// run.
    pub(crate) fn settle(&mut self, key: u64, class: Class) -> Option<u64> {
        let flow = class.order()?;
        let line = self.ordered.get(&flow).expect("an ordered request is in its line");
        if let [Some(first), Some(next)] = [line.front().copied(), line.get(1).copied()]
            && first == key
        {
            self.note(next);
        }
        self.note_line(flow);
        let line = self.ordered.get_mut(&flow).expect("an ordered request is in its line");
        let at = line.iter().position(|&other| other == key).expect("it is in its line");
        line.remove(at);
        if line.is_empty() {
            self.ordered.remove(&flow);
            return None;
        }
        if at > 0 {
            return None;
        }
        // Only the first may be in flight: all that are left wait.
        let next = line[0];
        let slots: Vec<u32> = self.ordered[&flow].iter().map(|&key| self.slot(key)).collect();
        let urgent = slots.iter().any(|&slot| self.at(slot).synchronous);
        let first = &mut self.slots[slots[0] as usize];
        first.synchronous |= urgent;
        let submitted = first.submitted;
        self.enqueue(slots[0], submitted);
        Some(next)
    }

    /// A request to a server has a release, which is now or past, and a deadline.
    pub(crate) fn enter(&mut self, key: u64, times: Times) -> Waiting {
        self.note(key);
        let slot = self.slot(key);
        let waiting = &mut self.slots[slot as usize];
        (waiting.times, waiting.promised) = (times, times.deadline);
        let brief = Brief { slot, deadline: times.deadline, cost: waiting.cost };
        self.ready.insert((times.deadline, waiting.arrival), brief);
        *waiting
    }

    /// Moves what is released by `now` from the early requests to the ready ones.
    pub(crate) fn release(&mut self, now: Instant) {
        while let Some(first) = self.early.first_entry() {
            let (release, arrival) = *first.key();
            if release > now {
                return;
            }
            let brief = first.remove();
            self.ready.insert((brief.deadline, arrival), brief);
        }
    }

    /// Deadlines and costs of what waits under contract: the released requests by
    /// deadline, then the early ones.
    pub(crate) fn due(&self) -> impl Iterator<Item = Due> {
        self.ready
            .values()
            .chain(self.early.values())
            .map(|brief| Due { deadline: brief.deadline.as_nanos(), cost: brief.cost.as_nanos() })
    }

    pub(crate) fn counts(&self) -> (usize, usize) {
        let real_time = self.ready.len() + self.early.len() + self.over_cost;
        (real_time, self.by_key.len() - real_time)
    }

    /// The first of an ordered line is waited for by somebody further back.
    fn make_synchronous(&mut self, key: u64) {
        let Some(&slot) = self.by_key.get(key) else { return };
        if !self.at(slot).synchronous {
            self.note(key);
            self.dequeue(slot);
            self.slots[slot as usize].synchronous = true;
            self.enqueue(slot, self.at(slot).submitted);
        }
    }

    fn enqueue(&mut self, slot: u32, now: Instant) {
        let waiting = &self.slots[slot as usize];
        let arrival = waiting.arrival;
        match waiting.class {
            Class::RealTime(_) if !waiting.over_cost => {
                let Times { release, deadline } = waiting.times;
                let brief = Brief { slot, deadline, cost: waiting.cost };
                if release <= now {
                    self.ready.insert((deadline, arrival), brief);
                } else {
                    self.early.insert((release, arrival), brief);
                }
            }
            Class::RealTime(_) | Class::Server { .. } | Class::BestEffort { .. } => {
                if waiting.long {
                    self.long.insert(arrival, slot);
                } else {
                    let sweep = &mut self.sweeps[usize::from(waiting.synchronous)];
                    sweep.by_place.insert((waiting.place(), arrival), slot);
                    sweep.by_arrival.insert(arrival, slot);
                }
                if waiting.is_covered() {
                    let Times { deadline, .. } = waiting.times;
                    let brief = Brief { slot, deadline, cost: waiting.cost };
                    self.ready.insert((deadline, arrival), brief);
                }
            }
            Class::Background => {
                self.background.insert(arrival, slot);
            }
        }
    }

    fn dequeue(&mut self, slot: u32) {
        let waiting = &self.slots[slot as usize];
        let arrival = waiting.arrival;
        match waiting.class {
            Class::RealTime(_) if !waiting.over_cost => {
                if self.ready.remove(&(waiting.times.deadline, arrival)).is_none() {
                    self.early.remove(&(waiting.times.release, arrival));
                }
            }
            Class::RealTime(_) | Class::Server { .. } | Class::BestEffort { .. } => {
                if waiting.long {
                    self.long.remove(&arrival);
                } else {
                    let sweep = &mut self.sweeps[usize::from(waiting.synchronous)];
                    sweep.by_place.remove((waiting.place(), arrival));
                    sweep.by_arrival.remove(arrival);
                }
                if waiting.is_covered() {
                    self.ready.remove(&(waiting.times.deadline, arrival));
                }
            }
            Class::Background => {
                self.background.remove(&arrival);
            }
        }
    }
}
