//! A small world with whole ticks, and the search of everything that can happen
//! in it.
//!
//! The search drives the production [`Schedule`]. A state is the schedule, the
//! command that the disk works on and how much of its bound is left. From each
//! state every move is tried: at every tick any of the tasks whose contract
//! allows it may release a request (before or after the disk has chosen, for both
//! orders exist at one instant); whenever the disk is free, a best-effort command
//! of any size may be on offer, once, or none; a command may end at any tick up
//! to its bound. States that were seen before, up to a shift in time, are not
//! entered again, so that the search ends and is exhaustive.
//!
//! States are told apart by 128 bits of hash: with a billion states, the chance
//! that two are mistaken for one is below 10^-20.

#![allow(dead_code)] // each test uses its part

use crate::common::Ticks;
use sched::{Class, Next, Options, Policy, Predict, Request, Schedule, TaskId};
use std::collections::HashSet;
use units::{Access, Bytes, Command, Direction, Duration, Instant, Lba, SECTOR};

/// Costs what its length says: one tick a sector.
pub struct Sectors;

impl Predict for Sectors {
    fn bound(&self, _: Lba, command: &Command) -> Duration {
        match command {
            Command::Transfer(access) => Duration::from_nanos(access.len / SECTOR),
            _ => unreachable!("the small world does not flush"),
        }
    }
}

/// Ends at one place, whatever it costs: the head makes no difference here.
pub fn command(ticks: u64) -> Command {
    let (lba, len) = (Lba::new(1000 - ticks), Bytes::new(ticks * SECTOR.get()));
    Command::Transfer(Access { lba, len, direction: Direction::Read })
}

/// Best-effort requests have keys from here on; below are tasks, twice over.
pub const OFFER: u64 = 1000;

/// No larger best-effort command is on offer: twice the longest period of these
/// worlds, more than any slack. Only what takes everything gets here.
const OFFER_MAX: u64 = 24;

/// What may happen in a world.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Commands may end before their bound.
    pub ends_early: bool,
    /// Best effort may be on offer.
    pub offers: bool,
    /// The set is taken as it is, admitted or not.
    pub unchecked: bool,
    /// A task may hand in its next request up to a period before its time.
    pub submits_early: bool,
    /// Where the disk is free, check that one tick more than the policy gives away
    /// leads to a miss.
    pub tight: bool,
    /// The last task of the set joins at any time, and may leave and join again.
    pub joins: bool,
    /// States that differ only in what the schedule remembers to be quick are searched
    /// too: it must not matter.
    pub bounds: bool,
    /// Give up (and say so) after this many states.
    pub states_max: usize,
}

/// What a search has found.
#[derive(Clone, Debug)]
pub struct Found {
    pub states: usize,
    /// The way to the first miss.
    pub miss: Option<Vec<String>>,
    /// Every state was seen (or a miss was found before).
    pub complete: bool,
    /// States at which the tightness of the slack was shown.
    pub tight: usize,
}

#[derive(Clone)]
struct State {
    schedule: Schedule,
    now: u64,
    tasks: Vec<Member>,
    /// The command that the disk works on: its key, and how much of its bound is left.
    running: Option<(u64, u64)>,
    /// The disk has not been asked yet at this instant.
    fresh: bool,
    trace: Option<std::rc::Rc<Step>>,
}

#[derive(Clone, Copy)]
struct Member {
    /// None while it has not joined.
    id: Option<TaskId>,
    ticks: Ticks,
    /// The next request's release at the earliest, as far as the contract goes.
    next: u64,
    /// Requests so far, modulo 2: keys are told apart by it.
    parity: u64,
    /// Submitted and not done.
    open: u64,
}

/// How a state was reached, from the last move back.
struct Step {
    what: String,
    before: Option<std::rc::Rc<Step>>,
}

pub struct World<'a> {
    rules: Rules,
    seen: HashSet<u128>,
    stack: Vec<State>,
    found: Found,
    scratch: Vec<u64>,
    tracing: bool,
    set: &'a [Ticks],
}

/// Searches all behaviours of `set` under `policy`. The trace of a miss is found
/// by searching once more, so that the search itself does not carry it.
pub fn search(set: &[Ticks], policy: &dyn Policy, burst: u64, rules: Rules) -> Found {
    let found = World::new(set, rules, false).run(policy, burst);
    if found.miss.is_none() {
        return found;
    }
    World::new(set, rules, true).run(policy, burst)
}

/// A schedule for whole ticks, with the tasks joined.
pub fn schedule_of(
    set: &[Ticks],
    policy: &dyn Policy,
    burst: u64,
    admission: bool,
) -> (Schedule, Vec<TaskId>) {
    let burst = Duration::from_nanos(burst);
    let options = Options { admission, reserve: Duration::ZERO, burst, depth: 1 };
    let mut schedule = Schedule::with_policy(policy.clone_box(), options);
    let join =
        |ticks: &Ticks| schedule.join(Instant::EPOCH, ticks.task()).expect("an admitted set");
    let ids = set.iter().map(join).collect();
    (schedule, ids)
}

impl<'a> World<'a> {
    fn new(set: &'a [Ticks], rules: Rules, tracing: bool) -> Self {
        let found = Found { states: 0, miss: None, complete: true, tight: 0 };
        let (seen, stack, scratch) = (HashSet::new(), Vec::new(), Vec::new());
        Self { rules, seen, stack, found, scratch, tracing, set }
    }

    fn run(mut self, policy: &dyn Policy, burst: u64) -> Found {
        let joined = self.set.len() - usize::from(self.rules.joins);
        let set = &self.set[..joined];
        let (schedule, ids) = schedule_of(set, policy, burst, !self.rules.unchecked);
        let member = |(at, &ticks): (usize, &Ticks)| Member {
            id: ids.get(at).copied(),
            ticks,
            next: 0,
            parity: 0,
            open: 0,
        };
        let tasks = self.set.iter().enumerate().map(member).collect();
        self.push(State { schedule, now: 0, tasks, running: None, fresh: true, trace: None });
        while let Some(state) = self.stack.pop() {
            self.moves(state);
            if self.found.miss.is_some() {
                break;
            }
            if self.seen.len() > self.rules.states_max {
                self.found.complete = false;
                break;
            }
        }
        self.found.states = self.seen.len();
        self.found
    }

    fn push(&mut self, state: State) {
        self.scratch.clear();
        let (key, left) = state.running.unwrap_or((u64::MAX, 0));
        let kind = if key < OFFER { 0 } else { 1 };
        self.scratch.extend([kind, left, u64::from(state.fresh)]);
        self.scratch.extend(state.tasks.iter().map(|task| match task.id {
            Some(_) => task.open,
            None => u64::MAX,
        }));
        state.schedule.remember(Instant::from_nanos(state.now), &mut self.scratch);
        if self.rules.bounds {
            state.schedule.remember_bounds(Instant::from_nanos(state.now), &mut self.scratch);
        }
        if self.seen.insert(hash(&self.scratch)) {
            self.stack.push(state);
        }
    }

    /// Everything that can happen at this instant, up to the next tick.
    fn moves(&mut self, state: State) {
        let last = state.tasks.len() - 1;
        match state.tasks[last].id {
            None => self.releases(self.joined(&state, last)),
            Some(_) if self.rules.joins && state.tasks[last].open == 0 => {
                self.releases(self.left(&state, last));
            }
            Some(_) => {}
        }
        self.releases(state);
    }

    fn joined(&self, state: &State, at: usize) -> State {
        let mut after = state.clone();
        let now = Instant::from_nanos(state.now);
        // Where the disk is too far behind, it is not admitted yet.
        after.tasks[at].id = after.schedule.join(now, state.tasks[at].ticks.task()).ok();
        after.tasks[at].next = state.now;
        self.note(&mut after, |state| format!("{}: {:?} joins", state.now, state.tasks[at].ticks));
        after
    }

    fn left(&self, state: &State, at: usize) -> State {
        let mut after = state.clone();
        let id = after.tasks[at].id.take().expect("it has joined");
        after.schedule.leave(id);
        self.note(&mut after, |state| format!("{}: {:?} leaves", state.now, state.tasks[at].ticks));
        after
    }

    fn releases(&mut self, state: State) {
        let able: Vec<usize> = (0..state.tasks.len())
            .filter(|&at| {
                let task = &state.tasks[at];
                if task.id.is_none() {
                    return false;
                }
                let ahead = if self.rules.submits_early { task.ticks.period } else { 0 };
                task.next <= state.now + ahead && task.open < 2
            })
            .collect();
        // The last pushed is the first searched: most releases first.
        for mask in 0..1u32 << able.len() {
            let mut after = state.clone();
            for (bit, &at) in able.iter().enumerate() {
                if mask & (1 << bit) != 0 {
                    self.submit(&mut after, at);
                }
            }
            // An idle disk is asked again as soon as a request comes.
            if after.running.is_none() && (after.fresh || mask != 0) {
                self.choices(after);
            } else {
                self.tick(after);
            }
        }
    }

    fn submit(&mut self, state: &mut State, at: usize) {
        let task = &mut state.tasks[at];
        let key = 2 * at as u64 + task.parity;
        let class = Class::RealTime(task.id.expect("it has joined"));
        let request = Request { class, command: command(task.ticks.cost) };
        let times = state.schedule.submit(Instant::from_nanos(state.now), key, request);
        // One that joins a busy disk may have to wait; otherwise it is the contract.
        let release = task.next.max(state.now);
        assert!(times.release.as_nanos() >= release, "the regulator");
        assert!(self.rules.joins || times.release.as_nanos() == release, "the regulator");
        task.next = times.release.as_nanos() + task.ticks.period;
        task.parity ^= 1;
        task.open += 1;
        self.note(state, |state| {
            format!("{}: {:?} submits, {times:?}", state.now, state.tasks[at].ticks)
        });
    }

    /// The disk is free and is asked, with every best-effort command on offer.
    fn choices(&mut self, state: State) {
        let mut given = 0;
        for size in 0.. {
            let (after, taken) = self.choice(&state, size);
            self.push(after);
            if taken {
                given = size;
            }
            if size > 0 && !taken || !self.rules.offers || size == OFFER_MAX {
                break;
            }
        }
        // Only a policy that goes by slack takes no larger one than it refused.
        if self.rules.offers && !self.rules.unchecked && self.seen.len().is_multiple_of(8) {
            let larger = given < OFFER_MAX && self.choice(&state, given + 3).1;
            assert!(!larger, "a larger one is taken than was refused");
        }
        if self.rules.tight {
            let more = one_tick_more_is_too_much(&state, given + 1);
            let (set, way) = (self.set, path(&state.trace));
            assert!(more, "{set:?}: {given} is given where more could be, at {way:?}");
            self.found.tight += 1;
        }
    }

    /// The disk is asked with a best-effort command of `size` on offer (none for
    /// zero), and whether it was taken. One that is not taken is withdrawn.
    fn choice(&self, state: &State, size: u64) -> (State, bool) {
        let mut after = state.clone();
        let now = Instant::from_nanos(after.now);
        if size > 0 {
            let request = Request { class: Class::best_effort(true), command: command(size) };
            after.schedule.submit(now, OFFER + size, request);
        }
        let next = after.schedule.next(now, &Sectors);
        let withdrawn = size > 0 && after.schedule.cancel(OFFER + size);
        after.fresh = false;
        if let Next::Start { key, predicted } = next {
            after.running = Some((key, predicted.as_nanos()));
            self.note(&mut after, |state| format!("{}: starts {key} of {predicted}", state.now));
        }
        let taken = matches!(next, Next::Start { key, .. } if key >= OFFER);
        assert_eq!(taken, size > 0 && !withdrawn);
        (after, taken)
    }

    /// Time passes.
    fn tick(&mut self, mut state: State) {
        state.now += 1;
        let first = state.schedule.queues().ready_first();
        if first.is_some_and(|first| first.times.deadline.as_nanos() < state.now) {
            // It still waits: under some policies for ever.
            self.found.miss = Some(path(&state.trace));
            return;
        }
        let Some((key, left)) = state.running.as_mut().map(|(key, left)| {
            *left -= 1;
            (*key, *left)
        }) else {
            state.fresh = true;
            return self.push(state);
        };
        if left > 0 {
            if self.rules.ends_early {
                self.push(state.clone());
            } else {
                return self.push(state);
            }
        }
        let outcome = state.schedule.finished(Instant::from_nanos(state.now), key);
        state.running = None;
        state.fresh = true;
        if key < OFFER {
            state.tasks[key as usize / 2].open -= 1;
        }
        self.note(&mut state, |state| {
            format!("{}: {key} ends, late by {}", state.now, outcome.late_by)
        });
        if outcome.late_by.is_zero() {
            self.push(state);
        } else {
            self.found.miss = Some(path(&state.trace));
        }
    }

    fn note(&self, state: &mut State, what: impl Fn(&State) -> String) {
        if self.tracing {
            let step = Step { what: what(state), before: state.trace.take() };
            state.trace = Some(std::rc::Rc::new(step));
        }
    }
}

/// From a state with a free disk: spend `extra`, then let every task ask for as
/// much and as soon as it may. True where a request is late.
fn one_tick_more_is_too_much(state: &State, extra: u64) -> bool {
    let queues = state.schedule.queues();
    // (deadline, release, cost) of what waits.
    let mut waiting: Vec<(u64, u64, u64)> = queues
        .ready()
        .chain(queues.early())
        .map(|one| {
            (one.times.deadline.as_nanos(), one.times.release.as_nanos(), one.cost.as_nanos())
        })
        .collect();
    let mut next: Vec<u64> = state.tasks.iter().map(|task| task.next.max(state.now)).collect();
    let mut now = state.now + extra;
    let end = now
        + 4 * crate::common::common_multiple(
            &state.tasks.iter().map(|t| t.ticks).collect::<Vec<_>>(),
        );
    while now < end {
        for (task, next) in state.tasks.iter().zip(&mut next) {
            while *next <= now {
                waiting.push((*next + task.ticks.deadline, *next, task.ticks.cost));
                *next += task.ticks.period;
            }
        }
        let first =
            waiting.iter().enumerate().filter(|(_, one)| one.1 <= now).min_by_key(|(_, one)| one.0);
        match first.map(|(at, _)| at) {
            Some(at) => {
                let (deadline, _, cost) = waiting.swap_remove(at);
                now += cost;
                if now > deadline {
                    return true;
                }
            }
            None => now += 1,
        }
    }
    false
}

fn path(trace: &Option<std::rc::Rc<Step>>) -> Vec<String> {
    let mut steps = Vec::new();
    let mut at = trace.as_ref();
    while let Some(step) = at {
        steps.push(step.what.clone());
        at = step.before.as_ref();
    }
    steps.reverse();
    steps
}

/// Two multiply-and-rotate hashes with different constants.
fn hash(words: &[u64]) -> u128 {
    let (mut a, mut b) = (0x243F_6A88_85A3_08D3_u64, 0x1319_8A2E_0370_7344_u64);
    for &word in words {
        a = (a ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
        b = (b.rotate_left(31) ^ word).wrapping_mul(0xD6E8_FEB8_6659_FD93);
        b ^= b >> 32;
    }
    u128::from(a) << 64 | u128::from(b)
}
