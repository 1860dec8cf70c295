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
use sched::{
    Class, Contract, Next, Options, Policy, PolicyKind, Predict, Request, Schedule, TaskId,
};
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
    fn bound_anywhere(&self, _: u64, command: &Command) -> Option<Duration> {
        Some(self.bound(Lba::new(0), command))
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

/// The same beside servers.
const OFFER_BESIDE_SERVERS: u64 = 4;

/// What may happen in a world.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Commands may end before their bound.
    pub ends_early: bool,
    /// Best effort may be on offer.
    pub offers: bool,
    /// What is on offer is background.
    pub background: bool,
    /// The set is taken as it is, admitted or not.
    pub unchecked: bool,
    /// A task may hand in its next request up to a period before its time.
    pub submits_early: bool,
    /// Where the disk is free, check that one tick more than the policy gives away
    /// leads to a miss.
    pub tight: bool,
    /// The last task of the set joins at any time, and may leave and join again.
    pub joins: bool,
    /// Whoever joins and leaves may leave with requests open; otherwise only when they are
    /// done.
    pub leaves: bool,
    /// States that differ only in what the schedule remembers to be quick are searched
    /// too: it must not matter.
    pub bounds: bool,
    /// The disk holds up to so many commands, and serves them in any order.
    pub holds: usize,
    /// Give up (and say so) after this many states.
    pub states_max: usize,
}

impl Rules {
    /// Streams that keep to their contracts, and best effort at any time.
    pub const PLAIN: Self = Self {
        ends_early: true,
        offers: true,
        background: false,
        unchecked: false,
        submits_early: false,
        tight: false,
        joins: false,
        leaves: false,
        bounds: false,
        holds: 1,
        states_max: 300_000,
    };
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

/// What a member of a world has, or may change to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Deal {
    pub ticks: Ticks,
    /// Best effort with a contract: requests of any size, at any time.
    pub server: bool,
}

impl Deal {
    pub const fn stream(ticks: Ticks) -> Self {
        Self { ticks, server: false }
    }
    pub const fn server(ticks: Ticks) -> Self {
        Self { ticks, server: true }
    }
    pub fn contract(&self) -> Contract {
        if self.server {
            Contract::Server(self.ticks.task())
        } else {
            Contract::Stream(self.ticks.task())
        }
    }
}

#[derive(Clone)]
struct State {
    schedule: Schedule,
    now: u64,
    tasks: Vec<Member>,
    /// The command that the disk works on: its key, and how much of its bound is left.
    running: Option<(u64, u64)>,
    /// What else it was given: keys, and what each costs.
    inside: Vec<(u64, u64)>,
    /// The disk has not been asked yet at this instant.
    fresh: bool,
    trace: Option<std::rc::Rc<Step>>,
}

#[derive(Clone, Copy)]
struct Member {
    /// None while it has not joined.
    id: Option<TaskId>,
    deal: Deal,
    /// What it may change to, and back.
    other: Option<Deal>,
    /// The next request's release at the earliest, as far as the contract goes.
    next: u64,
    /// Which of its two keys are in use: submitted and not done.
    open: [bool; 2],
}

impl Member {
    fn opened(&self) -> u64 {
        self.open.iter().filter(|&&open| open).count() as u64
    }
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
    set: &'a [Deal],
    other: Option<Deal>,
}

/// Searches all behaviours of `set` under `policy`. The trace of a miss is found
/// by searching once more, so that the search itself does not carry it.
pub fn search(set: &[Ticks], policy: &dyn Policy, burst: u64, rules: Rules) -> Found {
    let set: Vec<Deal> = set.iter().map(|&ticks| Deal::stream(ticks)).collect();
    search_mix(&set, None, policy, burst, rules)
}

/// The same for streams and servers, where the last of the set may change at any time to
/// `other` and back.
pub fn search_mix(
    set: &[Deal],
    other: Option<Deal>,
    policy: &dyn Policy,
    burst: u64,
    rules: Rules,
) -> Found {
    let found = World::new(set, other, rules, false).run(policy, burst);
    if found.miss.is_none() {
        return found;
    }
    World::new(set, other, rules, true).run(policy, burst)
}

/// A schedule for whole ticks, with the tasks joined.
pub fn schedule_of(
    set: &[Ticks],
    policy: &dyn Policy,
    burst: u64,
    admission: bool,
) -> (Schedule, Vec<TaskId>) {
    let set: Vec<Deal> = set.iter().map(|&ticks| Deal::stream(ticks)).collect();
    schedule_of_mix(&set, policy, burst, admission)
}

/// The same for streams and servers.
pub fn schedule_of_mix(
    set: &[Deal],
    policy: &dyn Policy,
    burst: u64,
    admission: bool,
) -> (Schedule, Vec<TaskId>) {
    schedule_holding(set, policy, burst, admission, 1)
}

/// The same, on a disk that holds so many commands.
fn schedule_holding(
    set: &[Deal],
    policy: &dyn Policy,
    burst: u64,
    admission: bool,
    holds: usize,
) -> (Schedule, Vec<TaskId>) {
    // Some bursts count in ticks alone, some in requests, too.
    let (burst_requests, burst) = (burst % 2, Duration::from_nanos(burst));
    let (reserve, gap) = (Duration::ZERO, Duration::ZERO);
    let options =
        Options { admission, reserve, burst, burst_requests, depth: 1, gap, ..Options::default() };
    let options = Options { any_order: u32::try_from(holds).expect("a few"), ..options };
    let mut schedule = Schedule::with_policy(policy.clone_box(), options);
    let join =
        |deal: &Deal| schedule.join(Instant::EPOCH, deal.contract()).expect("an admitted set");
    let ids = set.iter().map(join).collect();
    (schedule, ids)
}

impl State {
    /// What the disk has: keys, and what is left of each.
    fn in_disk(&self) -> impl Iterator<Item = (u64, u64)> {
        self.running.iter().chain(&self.inside).copied()
    }
}

impl<'a> World<'a> {
    fn new(set: &'a [Deal], other: Option<Deal>, rules: Rules, tracing: bool) -> Self {
        let found = Found { states: 0, miss: None, complete: true, tight: 0 };
        let (seen, stack, scratch) = (HashSet::new(), Vec::new(), Vec::new());
        Self { rules, seen, stack, found, scratch, tracing, set, other }
    }

    fn run(mut self, policy: &dyn Policy, burst: u64) -> Found {
        let joined = self.set.len() - usize::from(self.rules.joins);
        let set = &self.set[..joined];
        let admission = !self.rules.unchecked;
        let (schedule, ids) = schedule_holding(set, policy, burst, admission, self.rules.holds);
        let member = |(at, &deal): (usize, &Deal)| Member {
            id: ids.get(at).copied(),
            deal,
            other: self.other.filter(|_| at == self.set.len() - 1),
            next: 0,
            open: [false; 2],
        };
        let tasks = self.set.iter().enumerate().map(member).collect();
        self.push(State {
            schedule,
            now: 0,
            tasks,
            running: None,
            inside: Vec::new(),
            fresh: true,
            trace: None,
        });
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
        if self.rules.holds > 1 {
            // Which of a task's two keys it is does not matter.
            let of = |key: u64| if key < OFFER { key / 2 } else { OFFER };
            self.scratch.push(of(key));
            self.scratch.extend(state.inside.iter().flat_map(|&(key, cost)| [of(key), cost]));
        }
        self.scratch.extend(state.tasks.iter().map(|task| {
            let open = u64::from(task.open[0]) + 2 * u64::from(task.open[1]);
            open + 4 * u64::from(task.id.is_some())
        }));
        if self.other.is_some() {
            // Which of the two it has now.
            self.scratch.extend(state.tasks.iter().map(|task| task.deal.ticks.cost));
            self.scratch.extend(state.tasks.iter().map(|task| u64::from(task.deal.server)));
            self.scratch.extend(state.tasks.iter().map(|task| task.deal.ticks.period));
            self.scratch.extend(state.tasks.iter().map(|task| task.deal.ticks.deadline));
        }
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
        let member = state.tasks[last];
        match member.id {
            None => self.releases(self.joined(&state, last)),
            Some(_) if self.rules.joins && (self.rules.leaves || member.opened() == 0) => {
                self.releases(self.left(&state, last));
            }
            Some(_) => {}
        }
        if member.id.is_some() && member.other.is_some() {
            self.releases(self.changed(&state, last));
        }
        self.releases(state);
    }

    fn joined(&self, state: &State, at: usize) -> State {
        let mut after = state.clone();
        let now = Instant::from_nanos(state.now);
        // Where the disk is too far behind, it is not admitted yet.
        after.tasks[at].id = after.schedule.join(now, state.tasks[at].deal.contract()).ok();
        after.tasks[at].next = state.now;
        self.note(&mut after, |state| format!("{}: {:?} joins", state.now, state.tasks[at].deal));
        after
    }

    fn left(&self, state: &State, at: usize) -> State {
        let mut after = state.clone();
        let id = after.tasks[at].id.take().expect("it has joined");
        for key in after.schedule.leave(id) {
            after.tasks[at].open[key as usize % 2] = false;
        }
        self.note(&mut after, |state| format!("{}: {:?} leaves", state.now, state.tasks[at].deal));
        after
    }

    fn changed(&self, state: &State, at: usize) -> State {
        let mut after = state.clone();
        let member = &mut after.tasks[at];
        let other = member.other.expect("it can change");
        let id = member.id.expect("it has joined");
        if after.schedule.change(Instant::from_nanos(state.now), id, other.contract()).is_ok() {
            member.other = Some(member.deal);
            member.deal = other;
            member.next = after.schedule.next_release(id).as_nanos();
        }
        self.note(&mut after, |state| {
            format!("{}: it is {:?} from here on", state.now, state.tasks[at].deal)
        });
        after
    }

    /// Every member hands in a request or none; the disk is asked if it is free.
    fn releases(&mut self, state: State) {
        self.releases_from(state, 0, false);
    }

    fn releases_from(&mut self, state: State, at: usize, any: bool) {
        let Some(&member) = state.tasks.get(at) else {
            // An idle disk is asked again as soon as a request comes.
            let has_room = state.running.is_none() || state.inside.len() + 1 < self.rules.holds;
            if has_room && (state.fresh || any) {
                self.choices(state);
            } else {
                self.tick(state);
            }
            return;
        };
        let ahead = if self.rules.submits_early { member.deal.ticks.period } else { 0 };
        let able = member.id.is_some() && member.opened() < 2;
        let cost = member.deal.ticks.cost;
        // The last pushed is the first searched: most releases first.
        self.releases_from(state.clone(), at + 1, any);
        if able && member.deal.server {
            for size in 1..=cost {
                let mut after = state.clone();
                self.submit(&mut after, at, size);
                self.releases_from(after, at + 1, true);
            }
        } else if able && member.next <= state.now + ahead {
            let mut after = state;
            self.submit(&mut after, at, cost);
            self.releases_from(after, at + 1, true);
        }
    }

    fn submit(&mut self, state: &mut State, at: usize, size: u64) {
        let task = &mut state.tasks[at];
        let free = usize::from(task.open[0]);
        let key = 2 * at as u64 + free as u64;
        let id = task.id.expect("it has joined");
        let class = if task.deal.server {
            Class::server(id, Duration::from_nanos(size))
        } else {
            Class::RealTime(id)
        };
        let request = Request { class, command: command(size) };
        let times = state.schedule.submit(Instant::from_nanos(state.now), key, request);
        task.open[free] = true;
        if !task.deal.server {
            // One that joins a busy disk may have to wait; otherwise it is the contract.
            let release = task.next.max(state.now);
            assert!(times.release.as_nanos() >= release, "the regulator");
            let waits = self.rules.joins || self.other.is_some();
            assert!(waits || times.release.as_nanos() == release, "the regulator");
            task.next = times.release.as_nanos() + task.deal.ticks.period;
        }
        self.note(state, |state| {
            format!("{}: {:?} submits {size}, {times:?}", state.now, state.tasks[at].deal)
        });
    }

    /// The disk is free and is asked, with every best-effort command on offer.
    fn choices(&mut self, state: State) {
        let mut given = 0;
        // Beside servers, whose requests may go first, not only the largest counts.
        let servers = state.tasks.iter().any(|task| task.deal.server);
        for size in 0.. {
            let (after, taken) = self.choice(&state, size);
            self.push(after);
            if taken {
                given = size;
            }
            let last = if servers { size == OFFER_BESIDE_SERVERS } else { size > 0 && !taken };
            if last || !self.rules.offers || size == OFFER_MAX {
                break;
            }
        }
        // Only a policy that goes by slack takes no larger one than it refused.
        let by_slack = self.rules.offers && !self.rules.unchecked && !servers;
        if by_slack && self.seen.len().is_multiple_of(8) {
            let larger = given < OFFER_MAX && self.choice(&state, given + 3).1;
            assert!(!larger, "a larger one is taken than was refused");
        }
        // Beside what is under contract goes no best effort, whatever the slack.
        let is_asked_for_it = state.in_disk().all(|(key, _)| key >= OFFER);
        if self.rules.tight && is_asked_for_it {
            let mut state = state.clone();
            if servers {
                // Their own requests compete with what is on offer: ask for the number.
                let now = Instant::from_nanos(state.now);
                let _ = state.schedule.upgrade(now, u64::MAX, Class::Background); // time comes
                let slack = state.schedule.slack_now(now, Duration::from_nanos(OFFER_MAX));
                given = slack.expect("it is known").as_nanos();
            }
            let more = given >= OFFER_MAX || one_tick_more_is_too_much(&state, given + 1);
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
        let is_free = |offer: &u64| state.in_disk().all(|(key, _)| key != *offer);
        let offer = (0..).map(|other| OFFER + size + 100 * other).find(is_free).expect("some is");
        if size > 0 {
            let class =
                if self.rules.background { Class::Background } else { Class::best_effort(true) };
            let request = Request { class, command: command(size) };
            after.schedule.submit(now, offer, request);
        }
        let next = after.schedule.next(now, &Sectors);
        let withdrawn = size > 0 && after.schedule.cancel(offer);
        after.fresh = false;
        if let Next::Start { key, predicted } = next {
            // Where there is room it is asked again.
            after.fresh = state.in_disk().count() + 1 < self.rules.holds;
            let given = (key, predicted.as_nanos());
            match after.running {
                None => after.running = Some(given),
                Some(_) => after.inside.push(given),
            }
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
            state.tasks[key as usize / 2].open[key as usize % 2] = false;
        }
        self.note(&mut state, |state| {
            format!("{}: {key} ends, late by {}", state.now, outcome.late_by)
        });
        if !outcome.late_by.is_zero() {
            self.found.miss = Some(path(&state.trace));
            return;
        }
        if state.inside.is_empty() {
            return self.push(state);
        }
        // It goes on with any of the others.
        for next in 0..state.inside.len() {
            let mut after = state.clone();
            after.running = Some(after.inside.remove(next));
            self.note(&mut after, |state| {
                format!("{}: goes on with {:?}", state.now, state.running)
            });
            self.push(after);
        }
    }

    fn note(&self, state: &mut State, what: impl Fn(&State) -> String) {
        if self.tracing {
            let step = Step { what: what(state), before: state.trace.take() };
            state.trace = Some(std::rc::Rc::new(step));
        }
    }
}

/// From a state with a free disk: spend `extra`, then let every member ask for as much
/// and as soon as it may. True where a request is late.
fn one_tick_more_is_too_much(state: &State, extra: u64) -> bool {
    let mut state = state.clone();
    state.schedule.set_policy(PolicyKind::EDF);
    let best_effort = state.schedule.queues().by_arrival().into_iter();
    let best_effort = best_effort.filter(|waiting| waiting.contract().is_none());
    for key in best_effort.map(|waiting| waiting.key).collect::<Vec<_>>() {
        state.schedule.cancel(key);
    }
    let mut free_at = state.now + extra;
    let mut running = None;
    let in_disk: Vec<_> = state.in_disk().collect();
    for (key, left) in in_disk {
        state.schedule.finished(Instant::from_nanos(state.now), key);
        free_at += left;
    }
    let ticks: Vec<Ticks> = state.tasks.iter().map(|task| task.deal.ticks).collect();
    let end = free_at + 4 * crate::common::common_multiple(&ticks);
    let mut key = OFFER;
    while state.now < end {
        let now = Instant::from_nanos(state.now);
        if free_at <= state.now
            && let Some(key) = running.take()
            && !state.schedule.finished(now, key).late_by.is_zero()
        {
            return true;
        }
        for task in &mut state.tasks {
            key = ask_for_all(&mut state.schedule, task, now, key);
        }
        if free_at <= state.now
            && let Next::Start { key, predicted } = state.schedule.next(now, &Sectors)
        {
            running = Some(key);
            free_at = state.now + predicted.as_nanos();
        }
        state.now += 1;
        let first = state.schedule.queues().ready_first();
        if first.is_some_and(|first| first.times.deadline.as_nanos() < state.now) {
            return true;
        }
    }
    false
}

/// A stream's next request where it is time, a server's budget tick by tick.
fn ask_for_all(schedule: &mut Schedule, task: &mut Member, now: Instant, mut key: u64) -> u64 {
    let Some(id) = task.id else { return key };
    if !task.deal.server && task.next <= now.as_nanos() {
        let request =
            Request { class: Class::RealTime(id), command: command(task.deal.ticks.cost) };
        let times = schedule.submit(now, key, request);
        task.next = times.release.as_nanos() + task.deal.ticks.period;
        key += 1;
    }
    if !task.deal.server {
        return key;
    }
    loop {
        let class = Class::server(id, Duration::from_nanos(1));
        schedule.submit(now, key, Request { class, command: command(1) });
        if schedule.queues().get(key).expect("it waits").contract().is_none() {
            schedule.cancel(key);
            return key;
        }
        key += 1;
    }
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
