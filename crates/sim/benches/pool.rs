//! How long the locks of a pool are held: what an engine's threads do under the pool's lock
//! (each call of a [`Node`]), and under a disk's (each call of its queue).
//!
//! Twenty disks of memory, a number of readers of 1 MB/s and some writers, greedy best
//! effort, commits, and now and then a stream that opens, changes, is refused or closes.
//! For each kind of call: how many, the median, the 99.9th percentile and the largest, of
//! the time by the clock. That holds the machine's interrupts, too: one in a thousand calls has one,
//! which is the 99.9th percentile. So each scene is played [`TIMES`] times. It is the same each time, call by
//! call (its time is simulated), and the time of a call is the smallest that it took.
//!
//! What must not grow with the number of streams stands beside itself, and at the end as a ratio. More
//! streams also make a larger part of the calls those of streams, which take longer than best effort's,
//! however many streams there are. So the last lines compare the same mix of calls: the times with few
//! streams, each kind of call as often as with most.
//! `cargo bench -p slackline-sim --bench pool`; `SLACKLINE_QUICK` in the environment: a short run, which
//! shows that it runs and nothing else.
#![allow(clippy::print_stdout)] // the figures are the result

use disk::Profile;
use node::{
    Carrier, CommandId, Config, Contract, DiskAction, DiskIndex, DiskPoll, DiskSetup, Error, Event,
    Look, Mode, Node, Op, Placement, Policy, Reply, Span, StreamId, Ticket, Who, WriteRange,
};
use sim::{Metadata, Random, SimDisk, Timing};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};
use store::{Blocks, EXTENT, Ownership};
use units::{Bytes, Duration, Instant, Rate};

const DISKS: usize = 20;
/// Best-effort operations that always wait, for each disk.
const GREEDY: u64 = 2;
/// What a program and a device take besides, so that a run has an end.
const AROUND: Duration = Duration::from_micros(150);
const BLOCK: Bytes = Bytes::kib(256);

/// How often each scene is played.
const TIMES: usize = 5;

/// A device that is nearly as quick as memory, and never slower than this with [`AROUND`].
const PROFILE: &str = r#"
    kind = "linear"
    source = "made up for a benchmark"
    confidence = "none"
    capacity = "4GiB"
    flush = "0.1ms"
    [linear]
    depth = 8
    latency = "0.4ms"
    read = { fixed = "0.02ms", rate = "3GB/s" }
    write = { fixed = "0.02ms", rate = "3GB/s" }
"#;

/// The locks, and whether each is a disk's.
const LOCKS: [(&str, bool); 2] = [("the pool's lock", false), ("a disk's lock", true)];

/// The nanoseconds that calls took, by their kind, in order.
type Times = BTreeMap<&'static str, Vec<u64>>;

/// What a question was, for its answer.
#[derive(Clone, Copy, Debug)]
enum Asked {
    Open { writer: bool, keep: bool },
    Next(StreamId),
    Best,
    Room,
    Other,
}

/// What happens by the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Alarm {
    Done { disk: u16, id: u64, started: Instant },
    Poll(u16),
    Stream(u64),
    Churn,
}

struct Scene {
    node: Node,
    now: Instant,
    random: Random,
    events: BinaryHeap<Reverse<(Instant, Alarm)>>,
    asked: HashMap<Ticket, Asked>,
    tickets: u64,
    /// What each open stream was given, and does next.
    given: HashMap<StreamId, (bool, Bytes)>,
    streams: u64,
    churned: Vec<StreamId>,
    step: u64,
    /// What was called, in its order, and how many nanoseconds it took.
    times: Vec<(&'static str, u64)>,
    clock: u64,
    searches: u64,
}

fn contract() -> Contract {
    Contract { rate: Rate::per_second(1_000_000), block: BLOCK, burst: Bytes::ZERO }
}

/// As whoever has opened a volume calls it.
fn volume(number: u64) -> String {
    format!("/{}", number + 1)
}

impl Scene {
    fn new(streams: u64) -> Self {
        let profile = Profile::parse(PROFILE).expect("a profile");
        let keeping = || {
            SimDisk::metadata_only(
                profile.capacity(),
                Timing::Percent(Box::new(profile.clone()), 50),
            )
        };
        let mut disks: Vec<SimDisk<Metadata>> = (0..DISKS).map(|_| keeping()).collect();
        sim::format(&mut disks, "bench", &profile, 1).expect("disks that work");
        let mut store = sim::open(&mut disks).expect("a pool");
        // As many volumes as streams, each on a disk of its own; a few on all of them.
        for number in 0..streams + 8 {
            let on = match number < streams {
                true => vec![DiskIndex((number % DISKS as u64) as u16)],
                false => Vec::new(),
            };
            let placement = Placement { disks: on, ..Placement::default() };
            let size = Bytes::mib(20);
            let id = store
                .create_owned(&format!("v{number}"), size, &placement, Ownership::default())
                .expect("there is room");
            assert_eq!(volume(number), format!("/{}", id.0));
            for extent in 0..size / EXTENT {
                store.note_written(id, extent, &Blocks::first(EXTENT));
            }
            store.note_length(id, size);
        }
        sim::commit(&mut disks, &mut store).expect("disks that work");
        let config = Config {
            policy: Policy::SLACK,
            admission: true,
            memory: Bytes::mib(64) + Bytes::mib(2) * streams,
            host_latency: Duration::from_millis(2),
            commit_interval: Duration::from_secs(1),
            remeasure: false,
        };
        let setups = disks.iter().map(|_| DiskSetup::new(profile.clone())).collect();
        let node = Node::new(config, setups, store).expect("disks that are quick enough");
        let mut empty: Vec<u64> =
            (0..1_000).map(|_| std::time::Instant::now().elapsed().as_nanos() as u64).collect();
        empty.sort_unstable();
        Self {
            node,
            now: Instant::EPOCH,
            random: Random::new(7),
            events: BinaryHeap::new(),
            asked: HashMap::new(),
            tickets: 0,
            given: HashMap::new(),
            streams,
            churned: Vec::new(),
            step: 0,
            times: Vec::new(),
            clock: empty[500],
            searches: 0,
        }
    }

    /// The result of a call, and how many nanoseconds it took.
    fn clocked<T>(&mut self, call: impl FnOnce(&mut Node) -> T) -> (T, u64) {
        let began = std::time::Instant::now();
        let result = call(&mut self.node);
        (result, (began.elapsed().as_nanos() as u64).saturating_sub(self.clock))
    }

    fn timed<T>(&mut self, kind: &'static str, call: impl FnOnce(&mut Node) -> T) -> T {
        let (result, took) = self.clocked(call);
        self.times.push((kind, took));
        result
    }

    fn ask(&mut self, kind: &'static str, asked: Asked, op: Op) {
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        self.asked.insert(ticket, asked);
        let now = self.now;
        let event = Event::Request { ticket, who: Who::root(), op, arrived: self.now };
        self.timed(kind, |node| node.handle(now, event));
    }

    fn read_best_effort(&mut self) {
        let number = self.random.below(self.streams + 8);
        let offset = Bytes::kib(4) * self.random.below(Bytes::mib(20) / Bytes::kib(4));
        let op = Op::Read { volume: volume(number), offset, len: Bytes::kib(4), priority: None };
        self.ask("best effort asks", Asked::Best, op);
    }

    fn open(&mut self, number: u64, writer: bool, keep: bool) {
        let mode = if writer { Mode::Write } else { Mode::Read };
        let (volume, contract, start) = (volume(number), contract(), Bytes::ZERO);
        let op = Op::StreamOpen { volume, mode, contract, start };
        self.ask("a stream opens", Asked::Open { writer, keep }, op);
    }

    /// Takes all answers, and asks on.
    fn settle(&mut self) {
        loop {
            while let Some(disk) = self.node.next_wake() {
                self.poll(disk);
            }
            let Some(output) = self.node.poll_output() else { return };
            self.searches += u64::from(output.search.is_some());
            let asked = self.asked.remove(&output.ticket).expect("it was asked");
            self.answered(asked, output.result);
        }
    }

    fn answered(&mut self, asked: Asked, result: Result<Reply, Error>) {
        match (asked, result) {
            (Asked::Open { writer, keep }, Ok(Reply::Stream { stream, .. })) => {
                self.given.insert(stream, (writer, Bytes::ZERO));
                if !keep {
                    self.churned.push(stream);
                }
                self.events.push(Reverse((self.now, Alarm::Stream(stream.0))));
            }
            (Asked::Open { keep, .. }, Err(error)) => {
                assert!(!keep, "every stream of the scene fits: {error}");
            }
            (Asked::Next(stream), Ok(Reply::Data { bytes: span, .. })) => {
                self.used(stream, span.len)
            }
            (Asked::Next(stream), Ok(Reply::Room { room: span })) => self.used(stream, span.len),
            (Asked::Next(stream), Ok(Reply::End)) => {
                let op = Op::StreamSeek { stream, to: Bytes::ZERO };
                self.ask("a stream seeks", Asked::Other, op);
                self.events.push(Reverse((self.now, Alarm::Stream(stream.0))));
            }
            (Asked::Best, Ok(Reply::Data { bytes: span, .. })) => {
                self.ask("best effort gives back", Asked::Other, Op::Release { span });
                if self.random.chance(25) {
                    self.ask(
                        "best effort asks",
                        Asked::Room,
                        Op::Room { len: Bytes::kib(4), target: None },
                    );
                } else {
                    self.read_best_effort();
                }
            }
            (Asked::Room, Ok(Reply::Room { room: span })) => self.write_best_effort(span),
            (Asked::Best | Asked::Room, Ok(Reply::Done) | Err(_)) => self.read_best_effort(),
            _ => {}
        }
    }

    fn write_best_effort(&mut self, span: Span) {
        let number = self.random.below(self.streams);
        let offset = Bytes::kib(4) * self.random.below(Bytes::mib(20) / Bytes::kib(4));
        let range = WriteRange::new(offset, span.len);
        let op = Op::Write { volume: volume(number), range, span, priority: None };
        self.ask("best effort writes", Asked::Best, op);
    }

    /// A stream has a piece: it is done with it at once, and comes back at its rate.
    fn used(&mut self, stream: StreamId, len: Bytes) {
        let (writer, moved) = self.given[&stream];
        let op = match writer {
            true => Op::StreamWrite { stream, len },
            false => Op::StreamAdvance { stream, len },
        };
        self.ask("a stream moves on", Asked::Other, op);
        self.given.insert(stream, (writer, moved + len));
        let next = self.now + contract().rate.time_for(len);
        self.events.push(Reverse((next, Alarm::Stream(stream.0))));
    }

    fn poll(&mut self, disk: DiskIndex) {
        let now = self.now;
        loop {
            let next = |node: &mut Node| node::next_command(node.disk_queue(disk), now);
            let (found, took) = self.clocked(next);
            let kind = match &found {
                DiskPoll::Start(command) if command.is_promised => "disk: a contract's is next",
                DiskPoll::Start(_) => "disk: best effort's is next",
                DiskPoll::Wait { .. } => "disk: it waits",
            };
            self.times.push((kind, took));
            match found {
                DiskPoll::Start(command) => {
                    let took = match &command.action {
                        action if action.needs_no_disk() => Duration::ZERO,
                        DiskAction::Flush => Duration::from_micros(50),
                        _ => command.predicted / 2 + AROUND,
                    };
                    let done = Alarm::Done { disk: disk.0, id: command.id.0, started: now };
                    self.events.push(Reverse((now + took, done)));
                }
                DiskPoll::Wait { until } => {
                    let timer = self.node.next_timer().filter(|_| disk.0 == 0);
                    if timer.is_some_and(|at| at <= now) {
                        self.timed("timers", |node| node.run_timers(now));
                        continue;
                    }
                    if let Some(until) = until.into_iter().chain(timer).min() {
                        self.events.push(Reverse((until.max(now), Alarm::Poll(disk.0))));
                    }
                    return;
                }
            }
        }
    }

    /// Something of what changes who has what.
    fn churn(&mut self) {
        self.step += 1;
        let odd = self.streams + self.random.below(8);
        let volume = volume(odd);
        match self.step % 6 {
            0 | 1 => self.open(odd, false, false),
            2 => {
                let contract = Contract { rate: Rate::per_second(80_000_000_000), ..contract() };
                let op = Op::StreamOpen { volume, mode: Mode::Read, contract, start: Bytes::ZERO };
                let asked = Asked::Open { writer: false, keep: false };
                self.ask("a stream is refused", asked, op);
            }
            3 => {
                if let Some(&stream) = self.churned.last() {
                    let rate = Rate::per_second(1_000_000 + self.random.below(500_000));
                    let contract = Contract { rate, ..contract() };
                    let op = Op::StreamChange { stream, contract };
                    self.ask("a stream changes", Asked::Other, op);
                }
            }
            4 => {
                let mut look = Look::new(self.now);
                while self.timed("a look for a status", |node| node.look(&mut look)) {}
                let (status, analysed) = look.finish();
                self.timed("what it found is kept", |node| node.learn(&analysed));
                std::hint::black_box(status);
            }
            _ => {
                while self.churned.len() > 1 {
                    let stream = self.churned.remove(0);
                    self.given.remove(&stream);
                    self.ask("a stream closes", Asked::Other, Op::StreamClose { stream });
                }
                self.ask("a sync", Asked::Other, Op::Sync);
            }
        }
        self.events.push(Reverse((self.now + Duration::from_millis(40), Alarm::Churn)));
    }

    fn run(&mut self, span: Duration) {
        let end = self.now + span;
        while let Some(&Reverse((at, alarm))) = self.events.peek()
            && at <= end
        {
            self.events.pop();
            self.now = self.now.max(at);
            let now = self.now;
            match alarm {
                Alarm::Done { disk, id, started } => {
                    let disk = DiskIndex(disk);
                    let id = CommandId(id);
                    let (ended, took_of_disk) = self.clocked(|node| {
                        node::command_ended(node.disk_queue(disk), id, started, now, Ok(()))
                    });
                    let ((), took) = self.clocked(|node| node.command_ended(now, ended));
                    let (of_disk, of_pool) = match self.node.finished().map(|it| it.whose) {
                        Some(Carrier::Stream(_)) => {
                            ("disk: a stream's has ended", "a stream's block is done")
                        }
                        Some(Carrier::Pool) => {
                            ("disk: the log's has ended", "the log's command is done")
                        }
                        Some(Carrier::Operation(_)) | None => {
                            ("disk: best effort's has ended", "best effort is done")
                        }
                    };
                    self.times.extend([(of_disk, took_of_disk), (of_pool, took)]);
                    self.poll(disk);
                }
                Alarm::Poll(disk) => self.poll(DiskIndex(disk)),
                Alarm::Stream(stream) => {
                    let stream = StreamId(stream);
                    if let Some(&(writer, _)) = self.given.get(&stream) {
                        let len_max = BLOCK;
                        let op = match writer {
                            true => Op::StreamRoom { stream, len_max },
                            false => Op::StreamRead { stream, len_max },
                        };
                        self.ask("a stream asks", Asked::Next(stream), op);
                    }
                }
                Alarm::Churn => self.churn(),
            }
            self.settle();
        }
    }
}

/// One scene, from its beginning: its calls, in their order.
fn play(streams: u64, span: Duration) -> Vec<(&'static str, u64)> {
    let mut scene = Scene::new(streams);
    for number in 0..streams {
        scene.open(number, number % 5 == 4, true);
        scene.settle();
    }
    for _ in 0..GREEDY * DISKS as u64 {
        scene.read_best_effort();
    }
    scene.settle();
    scene.events.push(Reverse((scene.now, Alarm::Churn)));
    for disk in 0..DISKS as u16 {
        scene.poll(DiskIndex(disk));
    }
    // Into the steady state first.
    scene.run(Duration::from_millis(500));
    scene.times.clear();
    let (began, before) = (std::time::Instant::now(), scene.searches);
    scene.run(span);
    let took = began.elapsed().as_nanos() as u64;
    println!(
        "{streams} streams: {} calls, {} refused, {} calls a second",
        scene.times.len(),
        scene.searches - before,
        scene.times.len() as u64 * 1_000_000_000 / took.max(1)
    );
    scene.times
}

/// The times of each kind of call, in order.
fn measure(streams: u64, span: Duration) -> Times {
    let mut calls = play(streams, span);
    for _ in 1..TIMES {
        let again = play(streams, span);
        assert_eq!(again.len(), calls.len(), "each time the same calls");
        for ((kind, least), (same, took)) in calls.iter_mut().zip(again) {
            assert_eq!(*kind, same, "each time the same calls");
            *least = (*least).min(took);
        }
    }
    let mut times = Times::new();
    for (kind, took) in calls {
        times.entry(kind).or_default().push(took);
    }
    times.values_mut().for_each(|times| times.sort_unstable());
    times
}

fn at(times: &[u64], per_mille: usize) -> u64 {
    times[(times.len() - 1) * per_mille / 1000]
}

fn is_of_disk(kind: &str) -> bool {
    kind.starts_with("disk: ")
}

/// One line of the table. `times`: in nanoseconds, in order.
fn row(what: &str, streams: u64, times: &[u64]) {
    let of = |per_mille| Duration::from_nanos(at(times, per_mille)).to_string();
    let (count, median, high, largest) = (times.len(), of(500), of(999), of(1000));
    println!("{what:28} {streams:>7} {count:>9} {median:>9} {high:>10} {largest:>11}");
}

/// The times of a lock's calls by kind, where each kind comes as often as in `mix`: what `per_mille` of the
/// calls do not exceed.
fn at_in_mix<'a>(
    times: impl Iterator<Item = (&'a &'static str, &'a Vec<u64>)>,
    mix: &Times,
    per_mille: usize,
) -> u64 {
    let mut weighed = Vec::new();
    for (kind, times) in times {
        let weight = mix.get(kind).map_or(0, Vec::len) as f64 / times.len() as f64;
        weighed.extend(times.iter().map(|&time| (time, weight)));
    }
    weighed.sort_unstable_by_key(|&(time, _)| time);
    let all: f64 = weighed.iter().map(|(_, weight)| weight).sum();
    let mut left = all * per_mille as f64 / 1000.0;
    for &(time, weight) in &weighed {
        left -= weight;
        if left <= 0.0 {
            return time;
        }
    }
    weighed.last().expect("one call at least").0
}

/// How often longer each time is with most streams than with fewest.
fn show_growth(few: &Times, most: &Times) {
    let ratio = |few: u64, most: u64| format!("{:.2}", most as f64 / few.max(1) as f64);
    println!();
    println!("{:40} {:>9} {:>10}", "with most streams / with fewest", "median", "99.9 %");
    for (lock, is_disk) in LOCKS {
        let of = |times: &Times| held(times, is_disk);
        let (few_held, most_held) = (of(few), of(most));
        let each = [500, 999].map(|part| ratio(at(&few_held, part), at(&most_held, part)));
        println!("{lock:40} {:>9} {:>10}", each[0], each[1]);
        let each = [500, 999].map(|part| {
            let few = few.iter().filter(|(kind, _)| is_of_disk(kind) == is_disk);
            ratio(at_in_mix(few, most, part), at(&most_held, part))
        });
        println!("{:40} {:>9} {:>10}", format!("{lock}, same mix of calls"), each[0], each[1]);
    }
}

/// Which kinds of calls the longest one in a thousand are, with most streams.
fn show_longest(times: &Times) {
    for (lock, is_disk) in LOCKS {
        let limit = at(&held(times, is_disk), 999);
        println!();
        println!("{lock}: which calls are longer than {}", Duration::from_nanos(limit));
        for (kind, times) in times.iter().filter(|(kind, _)| is_of_disk(kind) == is_disk) {
            let longer = times.len() - times.partition_point(|&time| time <= limit);
            if longer > 0 {
                println!("{kind:28} {longer:>7} of {:>9}", times.len());
            }
        }
    }
}

/// The times of all calls under a lock, in order.
fn held(times: &Times, is_disk: bool) -> Vec<u64> {
    let of = times.iter().filter(|(kind, _)| is_of_disk(kind) == is_disk);
    let mut held: Vec<u64> = of.flat_map(|(_, times)| times).copied().collect();
    held.sort_unstable();
    held
}

fn main() {
    let quick = std::env::var_os("SLACKLINE_QUICK").is_some();
    // Few streams make few calls: they are watched for longer.
    let scenes: &[(u64, u64)] = match quick {
        true => &[(10, 200), (20, 200)],
        false => &[(10, 12_000), (100, 4_000), (1_000, 2_000)],
    };
    let of = |&(streams, ms)| (streams, measure(streams, Duration::from_millis(ms)));
    let all: Vec<_> = scenes.iter().map(of).collect();
    println!();
    println!(
        "{:28} {:>7} {:>9} {:>9} {:>10} {:>11}",
        "", "streams", "calls", "median", "99.9 %", "largest"
    );
    for (lock, is_disk) in LOCKS {
        for (streams, times) in &all {
            row(lock, *streams, &held(times, is_disk));
        }
    }
    println!();
    let kinds: Vec<&str> = all.last().expect("one at least").1.keys().copied().collect();
    for kind in kinds {
        for (streams, times) in &all {
            if let Some(times) = times.get(kind) {
                row(kind, *streams, times);
            }
        }
    }
    let (few, most) = (&all[0].1, &all[all.len() - 1].1);
    show_longest(most);
    show_growth(few, most);
}
