//! Everything that can happen in small worlds in which requests are served in several commands,
//! between which nearer deadlines go: no admitted set ever misses under `slack`, and charged or
//! blocked for a tick less some do.
//!
//! The adversary chooses when requests come, how long each command takes up to its bound, and
//! whether best effort of any size is on offer. A command that goes on where the last one ended
//! costs `chunk`; one from elsewhere `chunk + back`.
//!
//! `SLACKLINE_SETS=50000` searches that many sets; run it with `--release`.
#![allow(clippy::print_stdout)] // how much was searched is part of the result

use crate::common::Random;
use sched::{
    Class, First, Next, Options, PolicyKind, Predict, Request, Rest, Schedule, Task, TaskId,
};
use std::collections::HashSet;
use units::{Access, Bytes, Command, Direction, Duration, Instant, Lba, SECTOR};

/// One task: requests of `chunks` commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Chunked {
    deadline: u64,
    period: u64,
    /// A command that goes on where the last one ended.
    chunk: u64,
    chunks: u64,
    /// One from elsewhere costs so much more.
    back: u64,
}

const fn ticks(ticks: u64) -> Duration {
    Duration::from_nanos(ticks)
}

/// What is wrong on purpose with what the schedule is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Right,
    /// A return costs a tick less than it does.
    ShorterReturn,
    /// A command is a tick shorter than it is.
    ShorterCommand,
    /// Each request is one command.
    Whole,
}

impl Chunked {
    fn cost(&self) -> u64 {
        self.back + self.chunk * self.chunks
    }

    fn task(&self, told: Told) -> Task {
        let [period, deadline, cost] = [self.period, self.deadline, self.cost()].map(ticks);
        let task = Task::new(period, deadline, cost);
        if self.chunks == 1 || told == Told::Whole {
            return task;
        }
        let less = |wrong| u64::from(told == wrong);
        let command = (self.chunk + self.back - less(Told::ShorterCommand)).max(1);
        let back = self.back.saturating_sub(less(Told::ShorterReturn));
        task.in_chunks(ticks(command), self.chunks as u32, ticks(back))
    }
}

/// Requests of a task have the keys `2 * task` and the one after; best effort those from here on.
const OFFER: u64 = 100;
/// The places of one request.
const PLACES: u64 = 1_000;

/// Costs as the heads lie.
struct Heads<'a>(&'a [Chunked]);

/// What is left of a request of which so many commands are done.
fn command(set: &[Chunked], key: u64, done: u64) -> Command {
    let task = &set[key as usize / 2];
    let lba = Lba::new(key * PLACES + done * task.chunk);
    let len = SECTOR * ((task.chunks - done) * task.chunk);
    Command::Transfer(Access { lba, len, direction: Direction::Read })
}

fn offer(size: u64) -> Command {
    let (lba, len) = (Lba::new((OFFER + size) * PLACES), Bytes::new(size * SECTOR.get()));
    Command::Transfer(Access { lba, len, direction: Direction::Read })
}

impl Heads<'_> {
    fn back(&self, from: Lba, access: &Access) -> u64 {
        let key = access.lba.get() / PLACES;
        if key >= OFFER || from == access.lba { 0 } else { self.0[key as usize / 2].back }
    }
}

impl Predict for Heads<'_> {
    fn bound(&self, from: Lba, command: &Command) -> Duration {
        let access = command.access().expect("nothing is flushed");
        ticks(access.len / SECTOR + self.back(from, access))
    }

    fn first_of(&self, from: Lba, key: u64, command: &Command) -> Option<First> {
        let access = *command.access().expect("nothing is flushed");
        if key >= OFFER {
            return None;
        }
        let chunk = self.0[key as usize / 2].chunk;
        let (len, left) = (SECTOR * chunk, access.len / SECTOR - chunk);
        Some(First {
            command: Command::Transfer(Access { len, ..access }),
            bound: ticks(chunk + self.back(from, &access)),
            rest: Rest { bound: ticks(left), commands: (left / chunk) as u32 },
        })
    }
}

#[derive(Clone)]
struct State {
    schedule: Schedule,
    now: u64,
    ids: Vec<TaskId>,
    /// When each may release its next request.
    next: Vec<u64>,
    /// Of each key, how many commands are done; none where it is not open.
    done: Vec<Option<u64>>,
    /// The command that the disk works on, and how much of its bound is left.
    running: Option<(u64, u64)>,
    fresh: bool,
    way: Vec<String>,
}

struct Found {
    states: usize,
    complete: bool,
    miss: Option<Vec<String>>,
    /// So often a request made way.
    interrupted: u64,
}

const STATES_MAX: usize = 200_000;

struct World<'a> {
    set: &'a [Chunked],
    seen: HashSet<u128>,
    stack: Vec<State>,
    found: Found,
    largest: u64,
    tracing: bool,
}

/// A schedule with these tasks; none where they are not admitted.
fn schedule(set: &[Chunked], told: Told) -> Option<(Schedule, Vec<TaskId>)> {
    let options =
        Options { reserve: ticks(0), burst: ticks(0), gap: ticks(0), ..Options::default() };
    let mut schedule = Schedule::new(PolicyKind::SLACK, options);
    let mut ids = Vec::new();
    for task in set {
        let task = task.task(told);
        ids.push(task.is_valid().then(|| schedule.join(Instant::EPOCH, task).ok())??);
    }
    Some((schedule, ids))
}

/// The way to a miss is found by searching once more, so that the search does not carry it.
fn search(set: &[Chunked], told: Told) -> Option<Found> {
    let found = search_once(set, told, false)?;
    if found.miss.is_none() { Some(found) } else { search_once(set, told, true) }
}

fn search_once(set: &[Chunked], told: Told, tracing: bool) -> Option<Found> {
    let (schedule, ids) = schedule(set, told)?;
    let found = Found { states: 0, complete: true, miss: None, interrupted: 0 };
    let largest = set.iter().map(|task| task.period).max().unwrap();
    let mut world = World { set, seen: HashSet::new(), stack: Vec::new(), found, largest, tracing };
    let (next, done) = (vec![0; set.len()], vec![None; 2 * set.len()]);
    let (running, fresh, way) = (None, true, Vec::new());
    world.push(State { schedule, now: 0, ids, next, done, running, fresh, way });
    while let Some(state) = world.stack.pop() {
        world.releases(state, 0, false);
        if world.found.miss.is_some() {
            break;
        }
        if world.seen.len() > STATES_MAX {
            world.found.complete = false;
            break;
        }
    }
    world.found.states = world.seen.len();
    Some(world.found)
}

impl World<'_> {
    fn note(&self, state: &mut State, what: impl Fn(u64) -> String) {
        if self.tracing {
            state.way.push(what(state.now));
        }
    }

    fn push(&mut self, state: State) {
        let (key, left) = state.running.unwrap_or((u64::MAX, 0));
        let kind = if key < OFFER { key / 2 } else { OFFER + u64::from(key < u64::MAX) };
        let mut words = vec![kind, left, u64::from(state.fresh)];
        words.extend(state.next.iter().map(|next| next.saturating_sub(state.now)));
        for pair in state.done.chunks(2) {
            let mut pair = [pair[0], pair[1]].map(|done| done.map_or(99, |done| done));
            pair.sort_unstable();
            words.extend(pair);
        }
        state.schedule.remember(Instant::from_nanos(state.now), &mut words);
        if self.seen.insert(hash(&words)) {
            self.stack.push(state);
        }
    }

    /// Every task releases a request or none; a disk that is free is asked.
    fn releases(&mut self, state: State, at: usize, any: bool) {
        if at == self.set.len() {
            if state.running.is_none() && (state.fresh || any) {
                return self.choices(state);
            }
            return self.tick(state);
        }
        self.releases(state.clone(), at + 1, any);
        let free = (0..2).find(|slot| state.done[2 * at + slot].is_none());
        let Some(slot) = free.filter(|_| state.next[at] <= state.now) else { return };
        let (mut state, key) = (state, (2 * at + slot) as u64);
        let request =
            Request { class: Class::RealTime(state.ids[at]), command: command(self.set, key, 0) };
        state.schedule.submit(Instant::from_nanos(state.now), key, request);
        state.done[key as usize] = Some(0);
        state.next[at] = state.now + self.set[at].period;
        self.note(&mut state, |now| format!("{now}: {key} comes"));
        self.releases(state, at + 1, true);
    }

    /// The disk is free and is asked, with best effort of each size on offer.
    fn choices(&mut self, state: State) {
        for size in 0..=self.largest {
            let (mut after, now) = (state.clone(), Instant::from_nanos(state.now));
            if size > 0 {
                let class = Class::best_effort(true);
                let request = Request { class, command: offer(size) };
                after.schedule.submit(now, OFFER + size, request);
            }
            let next = after.schedule.next(now, &Heads(self.set));
            let withdrawn = size > 0 && after.schedule.cancel(OFFER + size);
            after.fresh = false;
            if let Next::Start { key, predicted } = next {
                let begun = |&(other, done): &(usize, &Option<u64>)| {
                    other as u64 != key && done.is_some_and(|done| done > 0)
                };
                self.found.interrupted +=
                    u64::from(after.done.iter().enumerate().any(|it| begun(&it)));
                after.running = Some((key, predicted.as_nanos()));
                self.note(&mut after, |now| format!("{now}: {key} starts, {predicted}"));
            }
            self.push(after);
            if withdrawn {
                break;
            }
        }
    }

    fn tick(&mut self, mut state: State) {
        state.now += 1;
        let first = state.schedule.queues().ready_first();
        if first.is_some_and(|first| first.times.deadline.as_nanos() < state.now) {
            self.found.miss = Some(state.way);
            return;
        }
        let Some((key, left)) = state.running.map(|(key, left)| (key, left - 1)) else {
            state.fresh = true;
            return self.push(state);
        };
        state.running = Some((key, left));
        if left > 0 {
            self.push(state.clone());
        }
        (state.running, state.fresh) = (None, true);
        let now = Instant::from_nanos(state.now);
        self.note(&mut state, |now| format!("{now}: {key} ends"));
        if state.schedule.has_more(key) {
            let task = &self.set[key as usize / 2];
            let done = state.done[key as usize].expect("it is open") + 1;
            state.done[key as usize] = Some(done);
            let left = task.chunks - done;
            let rest = Rest { bound: ticks(left * task.chunk), commands: left as u32 };
            state.schedule.finished_part(now, key, command(self.set, key, done), rest);
            return self.push(state);
        }
        if key < OFFER {
            state.done[key as usize] = None;
        }
        if state.schedule.finished(now, key).late_by.is_zero() {
            self.push(state);
        } else {
            self.found.miss = Some(state.way);
        }
    }
}

fn hash(words: &[u64]) -> u128 {
    let (mut a, mut b) = (0x243F_6A88_85A3_08D3_u64, 0x1319_8A2E_0370_7344_u64);
    for &word in words {
        a = (a ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
        b = (b.rotate_left(31) ^ word).wrapping_mul(0xD6E8_FEB8_6659_FD93);
        b ^= b >> 32;
    }
    u128::from(a) << 64 | u128::from(b)
}

/// Different sets, of which some requests come in several commands.
fn sets(seed: u64) -> impl Iterator<Item = Vec<Chunked>> {
    let (mut random, mut known) = (Random::new(seed), HashSet::new());
    std::iter::from_fn(move || {
        loop {
            let count = if random.one_in(4) { 3 } else { 2 };
            let task = |random: &mut Random| {
                let chunks = random.within(1, 4);
                let (chunk, back) = (random.within(1, 2), random.within(0, 2));
                let least = back + chunk * chunks;
                let deadline = random.within(least, least + 10);
                let period = deadline + if random.one_in(2) { 0 } else { random.within(1, 6) };
                Chunked { deadline, period, chunk, chunks, back }
            };
            let mut set: Vec<Chunked> = (0..count).map(|_| task(&mut random)).collect();
            set.sort_unstable();
            let product: u64 = set.iter().map(|task| task.period).product();
            let in_chunks = set.iter().any(|task| task.chunks > 1 && task.back > 0);
            if in_chunks && product <= 1_000 && known.insert(set.clone()) {
                return Some(set);
            }
        }
    })
}

fn wanted(least: u64) -> u64 {
    match std::env::var("SLACKLINE_SETS") {
        Ok(text) => text.parse().expect("SLACKLINE_SETS is a number of task sets"),
        Err(_) => least,
    }
}

#[test]
fn no_set_that_is_admitted_in_chunks_ever_misses() {
    let (mut searched, mut gained, mut states, mut interrupted, mut large) = (0, 0, 0, 0, 0);
    for set in sets(61) {
        let Some(found) = search(&set, Told::Right) else { continue };
        if let Some(way) = &found.miss {
            panic!("{set:?} misses:\n{}", way.join("\n"));
        }
        searched += 1;
        states += found.states;
        large += u64::from(!found.complete);
        interrupted += u64::from(found.interrupted > 0);
        gained += u64::from(schedule(&set, Told::Whole).is_none());
        if searched >= wanted(150) {
            break;
        }
    }
    println!("{searched} sets, {gained} of them only in chunks; {states} states, {large} too many");
    println!("in {interrupted} a request makes way");
    assert!(gained * 20 > searched && interrupted * 4 > searched && large * 20 < searched);
}

/// Sets that are admitted only because the schedule is told a tick too little.
fn misses_told(told: Told, count: u64) -> (u64, u64) {
    let only = sets(62).filter(|set| schedule(set, Told::Right).is_none());
    let (mut tried, mut missed) = (0, 0);
    for found in only.filter_map(|set| search(&set, told)) {
        tried += 1;
        missed += u64::from(found.miss.is_some());
        if tried >= count {
            break;
        }
    }
    (missed, tried)
}

#[test]
fn with_a_tick_less_for_a_return_or_a_command_some_sets_miss() {
    // A return is tight. A command is not: who interrupts is charged for the return by its own
    // deadline, although the return comes after it.
    for (told, misses) in [(Told::ShorterReturn, 40), (Told::ShorterCommand, 6)] {
        let (missed, tried) = misses_told(told, 40);
        println!("{told:?}: {missed} of {tried} sets that are admitted only so miss");
        assert_eq!((missed, tried), (misses, 40), "{told:?}: docs/semi-preemptible.md has them");
    }
}
