//! The promise of section 2.3 (ABISS, Almesberger & van den Brink 2004), held against
//! the production node.
//!
//! A trace is what a program does with one window: at times `t`, it sets its playout
//! point `p` and touches a byte `a`. While for all earlier moments (also those just
//! before the playout point was set; it is a function of time)
//!
//! > `p <= p' < p + b + r (t' - t)` and `p' <= a' < b + min(p', p + r (t' - t))`,
//!
//! every byte it touches was told to it before: it never waits. Random traces go to
//! these bounds to the byte and the nanosecond, for readers and writers, beside greedy
//! best effort and programs that keep nothing. `SLACKLINE_TRACES` says how many.

use crate::common;
use crate::common::{contract, create, fill};
use disk::{HardDisk, Profile};
use node::{
    Config, Contract, DiskSetup, Error, Mode, Node, Op, Policy, Region, Reply, StreamId, WriteRange,
};
use sim::{Context, Metadata, Program, Random, SimDisk, Timing, World};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use units::{Bytes, Duration, Instant};

const SIZE: Bytes = Bytes::mib(24);
const NANOS: i128 = 1_000_000_000;

/// What was seen in all traces.
#[derive(Clone, Debug, Default)]
struct Seen {
    traces: u64,
    /// Traces that were meant to break section 2.3, and did.
    broken: u64,
    accesses: u64,
    seeks: u64,
    writers_seeks: u64,
    changes: u64,
    refused: u64,
    joins: u64,
    leaves: u64,
    /// How long from a seek to its first byte, at the most, and stated.
    first_byte: Duration,
    first_byte_stated: Duration,
    steady_stated: Duration,
    from_memory: Bytes,
    /// What must not be.
    wrong: Vec<String>,
}

type Shared = Rc<RefCell<Seen>>;

const OPEN: u64 = 0;
const NEXT: u64 = 1;
const MOVED: u64 = 2;
const SEEK: u64 = 3;
const CLOSE: u64 = 4;
const CHANGE: u64 = 5;
const WAITS: u64 = 6;

/// Makes one trace after the other.
struct Tracer {
    number: u32,
    random: Random,
    /// Its moves come to the node up to so much later.
    host_latency: Rc<Cell<Duration>>,
    seen: Shared,
    mode: Mode,
    contract: Contract,
    /// Keeps nothing.
    breaks: bool,
    /// Under the policy that goes by the exact slack.
    exact: bool,
    /// Always the same contract, of a reader.
    fixed: Option<Contract>,
    stream: Option<StreamId>,
    told: Bytes,
    asked: bool,
    point: Bytes,
    /// Where this place of it began.
    began_at: Bytes,
    /// The least `p 10^9 - r t` of all moments so far.
    line: i128,
    /// The same of the node's own playout point, less what was excess.
    node_line: i128,
    /// Nothing is promised before.
    steady: Instant,
    /// A seek said that its first byte is there by then.
    first_by: Option<(Instant, Instant)>,
    next: Option<Instant>,
    moves: VecDeque<(Instant, Bytes)>,
    steps: u64,
    /// Waiting for an answer that everything else waits for.
    pending: bool,
    /// It goes elsewhere, and was not answered: what it is told until then is of the old place.
    going: bool,
    changing: Option<Contract>,
}

impl Tracer {
    fn new(
        number: u32,
        seed: u64,
        host_latency: &Rc<Cell<Duration>>,
        [breaks, exact]: [bool; 2],
        seen: &Shared,
    ) -> Self {
        Self {
            number,
            random: Random::new(seed),
            host_latency: host_latency.clone(),
            seen: seen.clone(),
            mode: Mode::Read,
            contract: contract(1, Bytes::kib(4), Bytes::ZERO),
            breaks,
            exact,
            fixed: None,
            stream: None,
            told: Bytes::ZERO,
            asked: false,
            point: Bytes::ZERO,
            began_at: Bytes::ZERO,
            line: i128::MAX,
            node_line: i128::MAX,
            steady: Instant::EPOCH,
            first_by: None,
            next: None,
            moves: VecDeque::new(),
            steps: 0,
            pending: false,
            going: false,
            changing: None,
        }
    }

    fn open(&mut self, context: &mut Context<'_, Metadata>) {
        let random = &mut self.random;
        let block = Bytes::kib(16) * (1 << random.below(5));
        let period = random.between(120, 900);
        let rate = block.get() * 1_000 / period;
        let burst = match random.below(3) {
            0 => Bytes::ZERO,
            1 => block * random.between(1, 3),
            _ => Bytes::new(random.below(block.get() * 3)),
        };
        self.mode = if random.chance(30) { Mode::Write } else { Mode::Read };
        self.contract = contract(rate, block, burst);
        if let Some(fixed) = self.fixed {
            (self.mode, self.contract) = (Mode::Read, fixed);
        }
        let start = match self.mode {
            Mode::Read => Bytes::new(random.below(SIZE.get() / 2)),
            Mode::Write | Mode::Update => block * random.below(4),
        };
        self.ask_open(context, start);
    }

    fn ask_open(&mut self, context: &mut Context<'_, Metadata>, start: Bytes) {
        self.go_to(start);
        let volume = match self.mode {
            Mode::Read => format!("r{}", self.random.below(3)),
            Mode::Write | Mode::Update => format!("w{}", self.number),
        };
        let (mode, contract, region) = (self.mode, self.contract, Region(self.number));
        self.pending = true;
        context.ask(OPEN, Op::WindowOpen { volume, mode, contract, start, region });
    }

    fn go_to(&mut self, to: Bytes) {
        (self.told, self.point, self.began_at) = (to, to, to);
        self.line = i128::MAX;
        self.node_line = i128::MAX;
        self.first_by = None;
        self.moves.clear();
    }

    fn ask_next(&mut self, context: &mut Context<'_, Metadata>) {
        if !self.asked {
            self.asked = true;
            context.ask(NEXT, Op::WindowNext { stream: self.stream.expect("open") });
        }
    }

    fn burst(&self) -> i128 {
        i128::from(self.contract.burst.max(self.contract.block).get()) * NANOS
    }

    fn at(point: Bytes) -> i128 {
        i128::from(point.get()) * NANOS
    }

    /// `r t`; time stands still before the contract holds.
    fn time(&self, now: Instant) -> i128 {
        let rate = i128::from(self.contract.rate.get());
        rate * i128::from(now.max(self.steady).as_nanos())
    }

    fn wrong(&self, what: String) {
        let about =
            format!("{:?} {:?} of program {}: {what}", self.mode, self.contract, self.number);
        self.seen.borrow_mut().wrong.push(about);
    }

    /// Whatever the program does, the node follows it within the contract, but for what it lets it
    /// have in the slack.
    fn look_at_node(&mut self, context: &Context<'_, Metadata>) {
        let time = self.time(context.now);
        let status = context.node.stream(self.stream.expect("open")).expect("open");
        if self.mode == Mode::Write || context.now < self.steady {
            return;
        }
        let point = Self::at(status.position) - Self::at(status.account.excess);
        if self.node_line < i128::MAX && point > self.node_line + time + self.burst() {
            self.wrong(format!("the node's playout point ran ahead: {:?}", status.position));
        }
        self.node_line = self.node_line.min(point - time);
    }

    /// One entry of the trace.
    fn access(&mut self, context: &mut Context<'_, Metadata>) {
        let now = context.now;
        let time = self.time(now);
        self.look_at_node(context);
        self.line = self.line.min(Self::at(self.point) - time);
        let most = |limit: i128| Bytes::new(((limit - 1).div_euclid(NANOS)).max(0) as u64);
        let mut point_max = most(self.line + time + self.burst()).min(SIZE);
        if self.breaks {
            point_max = self.told;
        }
        let before = self.point;
        self.point = self.between(before, point_max);
        let limit = self.burst() + Self::at(self.point).min(self.line + time);
        let access_max = most(limit).min(SIZE - Bytes::new(1));
        let access = self.between(self.point.min(access_max), access_max);
        let mut seen = self.seen.borrow_mut();
        seen.accesses += 1;
        drop(seen);
        let in_time = self.told > access && self.told >= self.point;
        if !in_time && now >= self.steady && !self.breaks {
            let told = self.told;
            self.wrong(format!("byte {access:?} was not told at {now}, only {told:?}"));
        }
        if self.told < self.point {
            // Not promised, or found wrong: this trace ends here.
            self.point = self.told.max(before);
            self.steps = 1;
        }
        if self.random.chance(5) && self.told <= self.point {
            context.ask(WAITS, Op::WindowWaits { stream: self.stream.expect("open") });
        }
        self.line = self.line.min(Self::at(self.point) - time);
        let most = self.host_latency.get();
        let late = if self.random.chance(50) { most } else { self.random.span(most) };
        let last = self.moves.back().map_or(now, |&(at, _)| at);
        self.moves.push_back((last.max(now + late), self.point - before));
    }

    /// Often one of the ends.
    fn between(&mut self, low: Bytes, high: Bytes) -> Bytes {
        match self.random.below(4) {
            0 => low,
            1 => Bytes::new(self.random.between(low.get(), high.get().max(low.get()))),
            _ => high.max(low),
        }
    }

    fn pause(&mut self) -> Duration {
        let block = self.contract.rate.time_for(self.contract.block);
        match self.random.below(8) {
            0 => Duration::ZERO,
            1 => Duration::from_nanos(self.random.below(3)),
            2 => block,
            3 => block * self.random.between(1, 12),
            4 => self.random.span(block * 4),
            _ => self.random.span(block),
        }
    }

    fn deliver(&mut self, context: &mut Context<'_, Metadata>, all: bool) {
        while let Some(&(at, len)) = self.moves.front() {
            if at > context.now && !all {
                return;
            }
            self.moves.pop_front();
            let stream = self.stream.expect("open");
            context.ask(MOVED, Op::WindowMoved { stream, len });
        }
    }

    /// Ends the trace: closes, or goes on elsewhere under the same contract.
    fn end(&mut self, context: &mut Context<'_, Metadata>) {
        let mut seen = self.seen.borrow_mut();
        seen.traces += 1;
        seen.broken += u64::from(self.breaks);
        drop(seen);
        let stream = self.stream.expect("open");
        self.deliver(context, true);
        self.pending = true;
        self.next = None;
        self.going = false;
        match self.random.below(10) {
            0..=3 if self.mode == Mode::Write => {
                // To a MiB's beginning, or to a block that was written and is written again.
                let block = self.contract.block;
                let to = match self.random.below(2) {
                    0 => Bytes::MIB * self.random.below(SIZE / Bytes::MIB),
                    _ => block * self.random.between(self.began_at / block, self.point / block),
                };
                let to = to.min(SIZE - block);
                self.seen.borrow_mut().writers_seeks += 1;
                self.going = true;
                context.ask(SEEK, Op::StreamSeek { stream, to });
                self.go_to(to);
            }
            0..=4 if self.mode == Mode::Read => {
                let to = match self.random.below(4) {
                    0 => self.point,
                    1 => Bytes::new(self.random.below(self.told.get().max(1))),
                    2 => (self.point + self.contract.block).min(SIZE - Bytes::kib(64)),
                    _ => Bytes::new(self.random.below(SIZE.get() - 1)),
                };
                self.seen.borrow_mut().seeks += 1;
                self.going = true;
                context.ask(SEEK, Op::StreamSeek { stream, to });
                self.go_to(to);
            }
            5..=6 if self.fixed.is_none() => {
                let Contract { block, .. } = self.contract;
                let rate = block.get() * 1_000 / self.random.between(120, 900);
                let burst = block * self.random.below(3);
                let changed = contract(rate, block, burst);
                self.changing = Some(changed);
                context.ask(CHANGE, Op::StreamChange { stream, contract: changed });
            }
            _ => context.ask(CLOSE, Op::StreamClose { stream }),
        }
    }

    fn alarm_next(&mut self, context: &mut Context<'_, Metadata>) {
        // What ends at an instant is told after the alarms of that instant.
        let first = self.first_by.map(|(at, _)| at + Duration::from_nanos(1));
        let at = [self.next, self.moves.front().map(|&(at, _)| at), first];
        if let Some(at) = at.into_iter().flatten().min() {
            context.alarm_at(at);
        }
    }

    fn began(&mut self, now: Instant) {
        self.steps = self.random.between(3, 16);
        self.next = Some(now + self.pause());
        self.pending = false;
    }

    /// The first byte after a seek has come, or is overdue.
    fn look_for_first_byte(&mut self, now: Instant) {
        let Some((by, asked)) = self.first_by else { return };
        if self.told > self.point {
            let took = now - asked;
            let mut seen = self.seen.borrow_mut();
            seen.first_byte = seen.first_byte.max(took);
            self.first_by = None;
        } else if now > by {
            self.first_by = None;
            self.wrong(format!("no byte at {:?} by {by}", self.point));
        }
    }
}

impl Program<Metadata> for Tracer {
    fn start(&mut self, context: &mut Context<'_, Metadata>) {
        self.open(context);
    }

    fn alarm(&mut self, context: &mut Context<'_, Metadata>) {
        if self.stream.is_none() && !self.pending {
            return self.open(context);
        }
        let now = context.now;
        self.deliver(context, false);
        if !self.pending {
            self.look_for_first_byte(now);
        }
        if self.next.is_some_and(|next| next <= now) && !self.pending {
            self.access(context);
            self.steps -= 1;
            if self.steps == 0 {
                self.first_by = None;
                return self.end(context);
            }
            self.next = Some(now + self.pause());
        }
        self.alarm_next(context);
    }

    fn answer(
        &mut self,
        context: &mut Context<'_, Metadata>,
        tag: u64,
        result: Result<Reply, Error>,
    ) {
        let now = context.now;
        match (tag, result) {
            (OPEN, Ok(Reply::Stream { stream, .. })) => {
                self.stream = Some(stream);
                self.seen.borrow_mut().joins += 1;
                self.steady = now;
                if self.mode == Mode::Write {
                    self.began(now);
                    self.alarm_next(context);
                }
                self.ask_next(context);
            }
            (OPEN, Err(Error::Refused(_) | Error::NoMemory { .. })) => {
                self.seen.borrow_mut().refused += 1;
                self.pending = false;
                context.alarm_at(now + Duration::from_millis(700));
            }
            (NEXT, Ok(Reply::Data { offset, bytes: span })) => {
                self.asked = false;
                if self.going {
                    return; // Told before it went elsewhere: void.
                }
                assert_eq!(offset, self.told, "pieces come in order");
                self.told += span.len;
                if self.pending && self.steps == 0 && self.first_by.is_none() {
                    self.began(now);
                }
                self.look_for_first_byte(now);
                self.ask_next(context);
                self.alarm_next(context);
            }
            (NEXT, Ok(Reply::Room { room: span })) => {
                self.asked = false;
                if self.going {
                    return; // Told before it went elsewhere: void.
                }
                self.told += span.len;
                self.ask_next(context);
            }
            (NEXT, Ok(Reply::End) | Err(Error::VolumeFull { .. })) => {
                self.asked = false;
                if self.pending && self.steps == 0 {
                    self.began(now);
                    self.alarm_next(context);
                }
            }
            (SEEK, Ok(Reply::Ready { at, steady, .. })) => {
                assert!(at <= steady || at <= now, "{at} {steady} {now}");
                self.going = false;
                self.steady = steady;
                let reads = self.mode == Mode::Read && self.point < SIZE;
                self.first_by = reads.then_some((at, now));
                let mut seen = self.seen.borrow_mut();
                if self.exact {
                    seen.first_byte_stated = seen.first_byte_stated.max(at.saturating_since(now));
                    seen.steady_stated = seen.steady_stated.max(steady.saturating_since(now));
                }
                drop(seen);
                self.began(now);
                self.ask_next(context);
                self.alarm_next(context);
            }
            (CHANGE, result) => {
                let changed = self.changing.take().expect("it asked");
                if result.is_ok() {
                    self.seen.borrow_mut().changes += 1;
                    let before = std::mem::replace(&mut self.contract, changed);
                    // A faster one holds when the window can follow: what was served ahead of
                    // its turn under the old one comes first. Only then is it tried.
                    let window = match result {
                        Ok(Reply::Stream { window, .. }) => window + changed.block * 4,
                        other => panic!("{other:?}"),
                    };
                    let (old, new) = (before.rate.time_for(window), changed.rate.time_for(window));
                    self.steady = now + old * 2 + new * 3;
                    self.line = i128::MAX;
                    self.node_line = i128::MAX;
                }
                self.began(now.max(self.steady));
                self.alarm_next(context);
            }
            (MOVED | WAITS, Ok(_)) => {}
            (CLOSE, Ok(_)) => {
                self.stream = None;
                self.seen.borrow_mut().leaves += 1;
                self.asked = false;
                self.next = None;
                self.pending = false;
                self.steps = 0;
                self.open(context);
            }
            (NEXT, Err(Error::NoSuchStream { .. })) => self.asked = false,
            (tag, other) => panic!("{tag} was answered with {other:?}"),
        }
    }
}

/// Reads or writes random places as fast as it is let.
struct Greedy {
    random: Random,
    writes: bool,
}

impl Greedy {
    fn go(&mut self, context: &mut Context<'_, Metadata>, slot: u64) {
        let len = Bytes::kib(64);
        if self.writes {
            return context.ask(slot, Op::Room { len, target: None });
        }
        let offset = len * self.random.below(SIZE / len);
        let volume = String::from("r0");
        context.ask(slot, Op::Read { volume, offset, len, priority: None });
    }
}

impl Program<Metadata> for Greedy {
    fn start(&mut self, context: &mut Context<'_, Metadata>) {
        for slot in 0..2 {
            self.go(context, slot);
        }
    }
    fn answer(
        &mut self,
        context: &mut Context<'_, Metadata>,
        slot: u64,
        result: Result<Reply, Error>,
    ) {
        match result.expect("best effort is served") {
            Reply::Data { bytes: span, .. } => context.ask(slot, Op::Release { span }),
            Reply::Room { room: span } => {
                let offset = span.len * self.random.below(SIZE / span.len);
                let volume = String::from("g");
                context.ask(
                    slot,
                    Op::Write {
                        volume,
                        range: WriteRange::new(offset, span.len),
                        span,
                        priority: None,
                    },
                );
            }
            _ => self.go(context, slot),
        }
    }
}

fn volumes(world: &mut World<Metadata>) {
    for name in ["r0", "r1", "r2"] {
        create(world, name, SIZE);
        fill(world, name, 0, SIZE);
    }
    create(world, "g", SIZE);
}

/// `full`: one disk, which takes all of the time that was promised for. `shares`: readers of a
/// volume have from memory what others of it have read.
fn world(
    seed: u64,
    policy: Policy,
    memory: Bytes,
    host_latency: Duration,
    (full, shares): (bool, bool),
) -> World<Metadata> {
    let mut random = Random::new(seed);
    let config = Config {
        policy,
        admission: true,
        memory,
        host_latency,
        commit_interval: Duration::from_secs(2),
        remeasure: true,
    };
    let model = common::model(Bytes::mib(if full { 512 } else { 256 }));
    let profile = Profile::of(&model);
    let (count, timing) = match full {
        true => (1, 2),
        false => (random.between(1, 3), random.below(3)),
    };
    let disks = (0..count).map(|index| {
        let timing = match timing {
            0 => Timing::Drive(Box::new(HardDisk::new(&model))),
            1 => Timing::WithinBound(Box::new(profile.clone()), Random::new(seed + index)),
            _ => Timing::Percent(Box::new(profile.clone()), 100),
        };
        SimDisk::metadata_only(profile.capacity(), timing)
    });
    let mut disks: Vec<SimDisk<Metadata>> = disks.collect();
    sim::format(&mut disks, "test", &profile, 1).unwrap();
    let store = sim::open(&mut disks).unwrap();
    let setups = disks.iter().map(|_| DiskSetup::new(profile.clone())).collect();
    let mut node = Node::new(config, setups, store).unwrap();
    if shares {
        // As slowly as is counted for a copy.
        disks.iter_mut().for_each(|disk| disk.copies = Some(node::limits::KEPT_COPY_RATE));
        node.share_reads();
    }
    World::new(node, disks, config.memory)
}

/// Runs so many traces in one world.
fn run(seed: u64, traces: u64, seen: &Shared) {
    let mut random = Random::new(seed ^ 0x7ace);
    let host_latency = match random.below(3) {
        0 => Duration::ZERO,
        1 => random.span(Duration::from_millis(2)),
        _ => random.span(Duration::from_millis(30)),
    };
    let exact = random.chance(80);
    let policy = if exact { Policy::SLACK } else { Policy::DELTA_L };
    // Every other one, or all, where that is asked for.
    let shares = seed % 2 == 1 || std::env::var_os("SLACKLINE_SHARED").is_some();
    let mut world = world(seed, policy, Bytes::mib(96), host_latency, (false, shares));
    volumes(&mut world);
    let host_latency = Rc::new(Cell::new(host_latency));
    let tracers = random.between(1, 6) as u32;
    for number in 0..tracers {
        create(&mut world, &format!("w{number}"), SIZE);
        let breaks = number > 0 && random.chance(20);
        world.add(Tracer::new(number, random.bits(), &host_latency, [breaks, exact], seen));
    }
    if random.chance(50) {
        world.add(Greedy { random: Random::new(random.bits()), writes: random.chance(30) });
    }
    let until = seen.borrow().traces + traces;
    while seen.borrow().traces < until && seen.borrow().wrong.is_empty() {
        world.run_for(Duration::from_secs(5));
    }
    let status = world.node.status(world.now());
    let late: u64 = status.disks.iter().map(|disk| disk.account.late_requests).sum();
    seen.borrow_mut().from_memory += status.memory.from_memory;
    if late > 0 {
        seen.borrow_mut().wrong.push(format!("seed {seed}: {late} requests were late"));
    }
    if let Some(wrong) = seen.borrow_mut().wrong.first_mut()
        && !wrong.contains("seed")
    {
        *wrong = format!("seed {seed}: {wrong}");
    }
}

#[test]
fn every_access_within_section_2_3_is_served_from_memory() {
    let wanted: u64 = match std::env::var("SLACKLINE_TRACES") {
        Ok(number) => number.parse().expect("SLACKLINE_TRACES is a number"),
        Err(_) => 3_000,
    };
    let seen = Shared::default();
    let first = std::env::var("SLACKLINE_SEED").ok().and_then(|seed| seed.parse().ok());
    for seed in first.unwrap_or(0).. {
        run(seed, 250, &seen);
        let seen = seen.borrow();
        assert!(
            seen.wrong.is_empty(),
            "{} wrong, the first: {}",
            seen.wrong.len(),
            seen.wrong.join("; ")
        );
        if seen.traces >= wanted {
            break;
        }
    }
    let seen = seen.borrow();
    assert!(seen.writers_seeks > wanted / 20, "{seen:?}");
    assert!(seen.from_memory > Bytes::new(wanted * 1_000), "{seen:?}");
    assert!(seen.seeks > wanted / 10 && seen.broken > wanted / 30, "{seen:?}");
    eprintln!("{seen:?}");
}

/// The engine's part: says how late the host was found to be. Programs are later only
/// when it has been said and the windows can follow, and no longer before it is taken
/// back.
struct Lateness {
    random: Random,
    now: Duration,
    next: Duration,
    allowed: Rc<Cell<Duration>>,
    samples: Rc<RefCell<Vec<String>>>,
}

impl Lateness {
    fn sample(&self, context: &Context<'_, Metadata>) {
        let status = context.node.status(context.now);
        let windows: Vec<String> =
            status.streams.iter().map(|stream| stream.window.to_string()).collect();
        self.samples.borrow_mut().push(format!(
            "{:>9}  host {:>7}  {:>8} in {} windows: {}",
            context.now.to_string(),
            self.now.to_string(),
            status.memory.regions.to_string(),
            windows.len(),
            windows.join(", ")
        ));
        let sum: Bytes = status.streams.iter().map(|stream| stream.window).sum();
        assert!(status.memory.regions == sum, "{:?} in regions, {sum:?}", status.memory.regions);
    }
}

impl Program<Metadata> for Lateness {
    fn start(&mut self, context: &mut Context<'_, Metadata>) {
        context.alarm_at(context.now + Duration::from_secs(5));
    }
    fn alarm(&mut self, context: &mut Context<'_, Metadata>) {
        if self.next == self.now {
            self.allowed.set(self.now);
            self.sample(context);
            self.next = self.random.span(Duration::from_millis(300));
            self.allowed.set(self.now.min(self.next));
            context.alarm_at(context.now + Duration::from_secs(5));
        } else {
            self.now = self.next;
            context.ask(0, Op::HostLatency { latency: self.now });
            context.alarm_at(context.now + Duration::from_secs(4));
        }
    }
    fn answer(&mut self, context: &mut Context<'_, Metadata>, _: u64, _: Result<Reply, Error>) {
        self.sample(context);
    }
}

/// Windows grow and shrink while streams join, leave, change and jump, and while the
/// host is found to be late by more and by less; and nobody misses.
#[test]
fn windows_are_resized_and_nobody_misses_through_a_thousand_changes() {
    [false, true].into_iter().for_each(a_thousand_changes);
}

fn a_thousand_changes(shares: bool) {
    let seen = Shared::default();
    let mut random = Random::new(77);
    let mut world = world(77, Policy::SLACK, Bytes::mib(512), Duration::ZERO, (true, shares));
    volumes(&mut world);
    let host_latency = Rc::new(Cell::new(Duration::ZERO));
    for number in 0..9 {
        create(&mut world, &format!("w{number}"), SIZE);
        world.add(Tracer::new(number, random.bits(), &host_latency, [false, true], &seen));
    }
    world.add(Greedy { random: Random::new(5), writes: false });
    let samples = Rc::new(RefCell::new(Vec::new()));
    world.add(Lateness {
        random: Random::new(6),
        now: Duration::ZERO,
        next: Duration::ZERO,
        allowed: host_latency,
        samples: samples.clone(),
    });
    let done = |seen: &Seen| seen.joins + seen.leaves + seen.changes + seen.seeks;
    while done(&seen.borrow()) < 1_000 {
        world.run_for(Duration::from_secs(5));
        let seen = seen.borrow();
        assert!(seen.wrong.is_empty(), "{}", seen.wrong.join("; "));
    }
    let status = world.node.status(world.now());
    let late: u64 = status.disks.iter().map(|disk| disk.account.late_requests).sum();
    let underruns: u64 = status.streams.iter().map(|stream| stream.account.underruns).sum();
    assert_eq!((late, underruns), (0, 0));
    let samples = samples.borrow();
    for sample in samples.iter().step_by(samples.len() / 12) {
        eprintln!("{sample}");
    }
    eprintln!("{:?}", seen.borrow());
}

/// One reader on a disk that is as full as it may be, whose moves come late: with
/// windows made for that it never waits; with windows that are not, the same traces find
/// it waiting. In both the window is open when it is said.
#[test]
fn a_window_is_made_for_the_lateness_that_is_measured() {
    let waits = |told: bool| {
        let seen = Shared::default();
        let mut world = world(3, Policy::SLACK, Bytes::mib(64), Duration::ZERO, (true, false));
        volumes(&mut world);
        create(&mut world, "w0", SIZE);
        let host_latency = Rc::new(Cell::new(Duration::ZERO));
        let mut tracer = Tracer::new(0, 1, &host_latency, [false, true], &seen);
        tracer.fixed = Some(contract(460_000, Bytes::kib(64), Bytes::ZERO));
        world.add(tracer);
        world.add(Greedy { random: Random::new(5), writes: false });
        world.run_for(Duration::from_secs(5));
        let before = world.node.status(world.now()).memory.regions;
        let latency = Duration::from_millis(110);
        if told {
            assert_eq!(world.call(Op::HostLatency { latency }), Ok(Reply::Done));
            let after = world.node.status(world.now()).memory.regions;
            assert_eq!(after, before + Bytes::kib(64), "at once");
            world.run_for(Duration::from_secs(3));
        }
        host_latency.set(latency);
        while seen.borrow().traces < 1_500 && seen.borrow().wrong.is_empty() {
            world.run_for(Duration::from_secs(5));
        }
        seen.take().wrong
    };
    assert_eq!(waits(true), Vec::<String>::new());
    let without = waits(false);
    assert!(!without.is_empty(), "the window need not have been larger");
    eprintln!("otherwise: {}", without[0]);
}
