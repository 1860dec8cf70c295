//! Contracts of every class, which programs ask for, change and give back while the
//! pool runs: none is ever late, and no refusal changes anything.
#![allow(clippy::print_stdout)] // how much was tried is part of the result

use crate::common::*;
use node::{
    Contract, Error, Event, Mode, Op, Policy, Priority, Refusal, Reply, Service, StreamId, Ticket,
    Who,
};
use sim::{Context, Greedy, Player, Program, Random, Recorder, Shared, Timing, World};
use units::{Bytes, Duration, Instant, Rate};

/// Reads at random places of a volume as its latency contract allows: never sooner
/// than `every` after the one before it, sometimes a good deal later.
struct Prober {
    volume: String,
    size: Bytes,
    len: Bytes,
    every: Duration,
    random: Random,
    asked: Instant,
    left: u64,
    tally: Shared,
}

impl Prober {
    fn new(volume: &str, size: Bytes, len: Bytes, every: Duration, seed: u64) -> Self {
        let random = Random::new(seed);
        let (asked, tally) = (Instant::EPOCH, Shared::default());
        Self { volume: volume.into(), size, len, every, random, asked, left: u64::MAX, tally }
    }
}

impl Program for Prober {
    fn start(&mut self, context: &mut Context<'_>) {
        self.alarm(context);
    }
    fn alarm(&mut self, context: &mut Context<'_>) {
        if self.left == 0 {
            return;
        }
        self.left -= 1;
        self.asked = context.now;
        let offset = self.len * self.random.below(self.size / self.len);
        context.ask(
            0,
            Op::Read { volume: self.volume.clone(), offset, len: self.len, priority: None },
        );
    }
    fn answer(&mut self, context: &mut Context<'_>, _: u64, result: Result<Reply, Error>) {
        match result {
            Ok(Reply::Data { bytes: span, .. }) => {
                let wait = context.now - self.asked;
                let mut tally = self.tally.borrow_mut();
                tally.operations += 1;
                tally.wait_max = tally.wait_max.max(wait);
                context.ask(1, Op::Release { span });
                let extra = self.random.span(self.every / 4);
                context.alarm_at((self.asked + self.every).max(context.now) + extra);
            }
            Ok(_) => {}
            Err(error) => self.tally.borrow_mut().error = Some(error),
        }
    }
}

fn serve(world: &mut World, name: &str, service: Service) -> Result<Reply, Error> {
    world.call(Op::VolumeService { name: name.into(), service })
}

/// Volumes that are filled and in use: `s` by streams, `p` by a prober, `r` and `g` by
/// greedy readers.
fn busy_world(disks: usize, timing: impl Fn(usize) -> Option<u64>, seed: u64) -> World {
    let mut world = world(config(Policy::SLACK), disks, Bytes::GIB, |model, profile, index| {
        match timing(index) {
            None => drive(model, profile, index),
            Some(100) => Timing::Percent(Box::new(profile.clone()), 100),
            Some(_) => {
                Timing::WithinBound(Box::new(profile.clone()), Random::new(seed + index as u64))
            }
        }
    });
    for (number, name) in ["s", "p", "r", "g"].into_iter().enumerate() {
        create(&mut world, name, SIZE);
        fill(&mut world, name, number as u64, SIZE);
    }
    world
}

const SIZE: Bytes = Bytes::mib(12);
const PROBE: Bytes = Bytes::kib(16);
const PIECE: Bytes = Bytes::kib(64);

fn underruns(world: &World) -> u64 {
    world.node.status(world.now()).streams.iter().map(|stream| stream.account.underruns).sum()
}

/// What can be refused is refused without a trace: the promises are what they were. Beside them,
/// the memory of windows.
fn promises(world: &World) -> (String, Bytes) {
    let status = world.node.status(world.now());
    let disks: Vec<_> =
        status.disks.iter().map(|disk| (disk.utilisation_ppm, disk.slack)).collect();
    let streams: Vec<_> =
        status.streams.iter().map(|stream| (stream.stream, stream.contract)).collect();
    let others = status.volumes.iter().filter(|volume| !volume.name.starts_with('w'));
    let services: Vec<_> = others.map(|volume| volume.service).collect();
    (format!("{disks:?} {streams:?} {services:?}"), status.memory.windows)
}

struct History {
    accepted: u64,
    refused: u64,
    probes: u64,
    best_effort: Bytes,
}

fn random_service(random: &mut Random) -> Service {
    match random.below(6) {
        0 => Service::BestEffort(Priority::Interactive),
        1 => Service::BestEffort(Priority::Background),
        2 => Service::default(),
        3 => Service::Latency {
            len: PROBE,
            within: Duration::from_millis(random.between(60, 300)),
            every: Duration::from_millis(random.between(300, 900)),
        },
        _ => Service::Rate {
            rate: Rate::per_second(random.between(50_000, 800_000)),
            block: PIECE,
            period: Duration::from_millis(random.between(300, 3_000)),
        },
    }
}

/// Streams come, change and go; volumes change how they are served; everybody takes as
/// much as he is let. Nobody may be late or find his window not ready.
fn history(seed: u64, steps: u64, timing: Option<u64>) -> History {
    let mut random = Random::new(seed);
    let disks = random.between(1, 3) as usize;
    let mut world = busy_world(disks, |_| timing, seed);
    let probe_every = Duration::from_millis(300);
    let prober = Prober::new("p", SIZE, PROBE, probe_every, seed + 50);
    let probes = prober.tally.clone();
    world.add(prober);
    let greedy: Vec<Shared> = ["r", "g", "p"]
        .map(|name| {
            let greedy = Greedy::new(name, SIZE, PIECE, 4, seed + 60);
            let tally = greedy.tally();
            world.add(greedy);
            tally
        })
        .into();
    let mut tallies: Vec<Shared> = Vec::new();
    let (mut accepted, mut refused, mut seen) = (0, 0, 0);
    for step in 0..steps {
        let before = promises(&world);
        let streams = world.node.status(world.now()).streams;
        let result = match random.below(10) {
            0..=2 => {
                let contract = random_contract(&mut random);
                let piece = Bytes::new(random.between(1, contract.block.get()));
                let tally = if random.chance(30) {
                    let name = format!("w{step}");
                    create(&mut world, &name, SIZE);
                    let recorder = Recorder::new(&name, 100 + step, contract, piece, SIZE);
                    let tally = recorder.tally();
                    world.add(recorder);
                    tally
                } else {
                    // As fast as it is let, so that a window that is not ready is found.
                    let player = Player::new("s", 0, contract, piece, SIZE).speed(1_000);
                    let tally = player.tally();
                    world.add(player);
                    tally
                };
                let error = tally.borrow().error.clone();
                if error.is_none() {
                    tallies.push(tally);
                }
                error.map_or(Ok(()), Err)
            }
            3..=6 if !streams.is_empty() => {
                let stream = random.pick(&streams);
                let rate = stream.contract.rate.get() * random.between(20, 400) / 100;
                let burst = stream.contract.block * random.below(4);
                let contract = Contract { rate: Rate::per_second(rate), burst, ..stream.contract };
                let op = Op::StreamChange { stream: stream.stream, contract };
                world.call(op).map(drop)
            }
            7 if !streams.is_empty() && random.chance(30) => {
                // The program hears that its stream has gone; that is not lateness.
                let stream = random.pick(&streams).stream;
                let _ = world.call(Op::StreamClose { stream });
                tallies.retain(|tally| tally.borrow().stream != Some(stream));
                continue;
            }
            _ => {
                let name = *random.pick(&["p", "r", "g"]);
                let service = random_service(&mut random);
                serve(&mut world, name, service).map(drop)
            }
        };
        match result {
            Ok(()) => accepted += 1,
            Err(Error::Refused(_) | Error::NoMemory { .. }) => {
                refused += 1;
                // A program that ended meanwhile has changed them.
                if world.node.status(world.now()).streams.len() == streams.len() {
                    let (after, windows) = promises(&world);
                    assert_eq!(after, before.0, "seed {seed}, step {step}");
                    // One that became smaller before gives back blocks as they are written.
                    assert!(windows <= before.1, "seed {seed}, step {step}: {windows}");
                }
            }
            // The stream came to its end in between.
            Err(Error::NoSuchStream { .. }) => {}
            Err(error) => panic!("seed {seed}, step {step}: {error}"),
        }
        world.run_for(random.span(Duration::from_secs(3)));
        seen = seen.max(underruns(&world));
        assert_eq!((late(&world), seen), (0, 0), "seed {seed}, step {step}");
    }
    for tally in &tallies {
        let tally = tally.borrow();
        assert_eq!((tally.error.clone(), tally.wrong), (None, Bytes::ZERO), "seed {seed}");
    }
    History {
        accepted,
        refused,
        probes: probes.borrow().operations,
        best_effort: greedy.iter().map(|tally| tally.borrow().bytes).sum(),
    }
}

/// How many steps each history has: 300 in all, more where SLACKLINE_HISTORIES says.
fn histories(timing: Option<u64>) {
    let many = std::env::var("SLACKLINE_HISTORIES").ok().and_then(|text| text.parse().ok());
    let many: u64 = many.unwrap_or(6);
    let (mut accepted, mut refused, mut probes, mut best_effort) = (0, 0, 0, Bytes::ZERO);
    for seed in 0..many {
        let history = history(seed, 50, timing);
        accepted += history.accepted;
        refused += history.refused;
        probes += history.probes;
        best_effort += history.best_effort;
    }
    println!("{accepted} accepted, {refused} refused, {probes} probes, {best_effort}");
    assert!(accepted > 20 * many && refused > 2 * many, "{accepted} and {refused} for a test");
    assert!(probes > 20 * many && best_effort > Bytes::MIB * many);
}

#[test]
fn changes_of_any_contract_make_nobody_late_on_a_mechanical_disk() {
    histories(None);
}

#[test]
fn changes_of_any_contract_make_nobody_late_at_worst_cost() {
    histories(Some(100));
}

#[test]
fn changes_of_any_contract_make_nobody_late_at_any_cost_within_bounds() {
    histories(Some(50));
}

/// The canary: where nothing is refused, the same histories are late.
#[test]
fn without_admission_the_same_streams_are_late() {
    let mut config = config(Policy::SLACK);
    config.admission = false;
    let mut world = world(config, 1, Bytes::GIB, drive);
    create(&mut world, "s", SIZE);
    fill(&mut world, "s", 0, SIZE);
    for _ in 0..12 {
        let contract = contract(2_000_000, Bytes::kib(256), Bytes::ZERO);
        world.add(Player::new("s", 0, contract, Bytes::kib(256), SIZE).speed(1_000));
    }
    world.run_for(Duration::from_secs(20));
    assert!(late(&world) > 10, "only {}", late(&world));
}

/// A program goes at 3 MB/s all the time: what of that is beyond its contract goes by the contract's
/// rate, a faster one's as soon as the window can follow and a slower one's at once; the window's
/// memory goes with the burst.
#[test]
fn an_open_stream_gets_faster_slower_larger_and_smaller() {
    let mut world = world(config(Policy::SLACK), 1, Bytes::GIB, drive);
    let size = Bytes::mib(120);
    create(&mut world, "v", size);
    fill(&mut world, "v", 1, size);
    let block = Bytes::mib(1);
    let before = world.node.status(world.now()).memory.windows;
    let player = Player::new("v", 1, contract(1_000_000, block, Bytes::ZERO), block, size);
    let player = player.speed(300);
    let tally = player.tally();
    world.add(player);
    // Bytes a second that it had, and those beyond its contract.
    let moved = |world: &mut World, seconds| {
        let stream = tally.borrow().stream.expect("it was admitted");
        let seen = |world: &World| {
            let excess = world.node.stream(stream).expect("open").account.excess;
            (tally.borrow().bytes, excess)
        };
        let from = seen(world);
        world.run_for(Duration::from_secs(seconds));
        let upto = seen(world);
        ((upto.0 - from.0).get() / seconds, (upto.1 - from.1).get() / seconds)
    };
    world.run_for(Duration::from_secs(4));
    let stream = tally.borrow().stream.expect("it was admitted");
    let change = |rate, burst| Op::StreamChange { stream, contract: contract(rate, block, burst) };
    let near = |rate: u64, wanted: u64| rate.abs_diff(wanted) <= wanted / 5;
    let (rate, excess) = moved(&mut world, 8);
    assert!(near(rate, 3_000_000) && excess >= 2_000_000, "{rate} {excess}");

    let burst = Bytes::mib(2);
    let Ok(Reply::Stream { window, .. }) = world.call(change(3_000_000, burst)) else {
        panic!("not admitted")
    };
    assert_eq!(window, block * 2 + burst, "two blocks and the burst");
    assert_eq!(world.node.status(world.now()).memory.windows, before + window);
    world.run_for(Duration::from_secs(3));
    let (rate, excess) = moved(&mut world, 8);
    assert!(near(rate, 3_000_000) && excess == 0, "{rate} {excess}");

    assert!(world.call(change(500_000, Bytes::ZERO)).is_ok());
    let (rate, excess) = moved(&mut world, 12);
    assert!(near(rate, 3_000_000) && excess >= 2_400_000, "{rate} {excess}");
    assert_eq!(world.node.status(world.now()).memory.windows, before + block * 3);

    let Err(Error::Refused(refusal)) = world.call(change(90_000_000, Bytes::ZERO)) else {
        panic!("90 MB/s from a laptop disk")
    };
    // Whoever drives the node searches for that rate, not the node while others wait for it.
    let (ticket, now) = (Ticket(1 << 40), world.now());
    let (who, op) = (Who::root(), change(90_000_000, Bytes::ZERO));
    world.node.handle(now, Event::Request { ticket, who, op, arrived: now });
    let output = std::iter::from_fn(|| world.node.poll_output()).find(|it| it.ticket == ticket);
    let output = output.expect("refused at once");
    let unsearched = Refusal { rate_max: Rate::ZERO, longer: None, ..refusal.clone() };
    assert_eq!(output.result, Err(Error::Refused(unsearched)));
    assert_eq!(output.complete().result, Err(Error::Refused(refusal.clone())));
    assert_eq!(refusal.longer, None, "an open stream keeps its blocks");
    let best = refusal.rate_max.get();
    assert!(matches!(world.call(change(best + 1, Bytes::ZERO)), Err(Error::Refused(_))));
    assert!(world.call(change(best, Bytes::ZERO)).is_ok(), "{refusal}");
    let other = contract(1_000, Bytes::kib(64), Bytes::ZERO);
    let wrong = world.call(Op::StreamChange { stream, contract: other });
    assert!(matches!(wrong, Err(Error::Invalid { what: "block size", .. })));
    assert_eq!((late(&world), underruns(&world)), (0, 0));
    assert_eq!(world.call(Op::StreamClose { stream }), Ok(Reply::Done));
    assert_eq!(world.node.status(world.now()).memory.windows, before);
}

/// Whoever is refused is told of blocks in which more fits; what is named is admitted, and where
/// all that was asked for fits, in no shorter blocks.
#[test]
fn a_refusal_names_longer_blocks_that_are_admitted() {
    let mut world = world(config(Policy::SLACK), 1, Bytes::GIB, drive);
    create(&mut world, "v", Bytes::mib(120));
    let open = |world: &mut World, rate, block| {
        let (volume, contract) = ("v".into(), contract(rate, block, Bytes::ZERO));
        let (mode, start) = (Mode::Read, Bytes::ZERO);
        match world.call(Op::StreamOpen { volume, mode, contract, start }) {
            Ok(Reply::Stream { stream, .. }) => {
                assert_eq!(world.call(Op::StreamClose { stream }), Ok(Reply::Done));
                None
            }
            Err(Error::Refused(refusal)) => Some(refusal),
            other => panic!("{other:?}"),
        }
    };
    for asked in [5_000_000, 2_000_000_000] {
        let refusal = open(&mut world, asked, Bytes::kib(64)).expect("refused");
        let (block, rate) = refusal.longer.expect("longer blocks take more");
        assert!(block > Bytes::kib(64) && rate > refusal.rate_max, "{block} {rate}");
        assert_eq!(rate == Rate::per_second(asked), asked == 5_000_000, "{rate}");
        assert_eq!(open(&mut world, rate.get(), block), None, "{rate} in {block}");
        if asked == 5_000_000 {
            let shorter = open(&mut world, asked, block / 2).expect("no shorter ones");
            assert_eq!(shorter.longer, Some((block, rate)));
        } else {
            assert!(open(&mut world, rate.get() / 64 * 66, block).is_some(), "not the most");
        }
    }
}

/// A volume that grows to a far part of its disk costs its streams more. Where one of them
/// does not fit any more, all is as before: nothing was given up to try it.
#[test]
fn a_growth_that_the_streams_do_not_bear_changes_nothing() {
    let block = Bytes::kib(64);
    let mut refused = 0;
    for count in 1.. {
        let mut world = world(config(Policy::SLACK), 1, Bytes::GIB, drive);
        create(&mut world, "v", Bytes::mib(1));
        fill(&mut world, "v", 1, Bytes::mib(1));
        create(&mut world, "between", Bytes::mib(800));
        let idle = world.node.status(world.now()).disks[0].utilisation_ppm;
        let open = || Op::StreamOpen {
            volume: "v".into(),
            mode: Mode::Read,
            contract: contract(100_000, block, block),
            start: Bytes::ZERO,
        };
        let opened: Vec<_> = (0..count).map(|_| world.call(open())).collect();
        if opened.iter().any(Result::is_err) {
            break;
        }
        let before = world.node.status(world.now());
        let grow = Op::VolumeResize { name: "v".into(), size: Bytes::mib(9), may_cut: false };
        match world.call(grow) {
            Ok(_) => continue,
            Err(Error::Refused(_)) => refused += 1,
            Err(other) => panic!("{other}"),
        }
        let after = world.node.status(world.now());
        assert_eq!(after.volumes, before.volumes);
        assert_eq!(after.memory, before.memory);
        assert_eq!(after.disks[0].utilisation_ppm, before.disks[0].utilisation_ppm);
        world.run_for(Duration::from_secs(10));
        assert_eq!(late(&world), 0);
        for stream in before.streams {
            let closed = world.call(Op::StreamClose { stream: stream.stream });
            assert_eq!(closed, Ok(Reply::Done));
        }
        assert_eq!(world.node.status(world.now()).disks[0].utilisation_ppm, idle);
    }
    assert!(refused > 2, "{refused} growths were refused");
}

/// What a volume reads under its latency contract is there in time, whatever the
/// others do; without one it is not.
#[test]
fn reserved_answers_come_in_time_and_others_do_not() {
    let within = Duration::from_millis(200);
    let every = Duration::from_millis(300);
    let waited = |service: Option<Service>| {
        let mut world = busy_world(1, |_| None, 1);
        for number in 0..3 {
            world.add(Greedy::new("g", SIZE, Bytes::mib(1), 8, number));
            let contract = contract(300_000, Bytes::kib(256), Bytes::ZERO);
            world.add(Player::new("s", 0, contract, PIECE, SIZE));
        }
        if let Some(service) = service {
            assert_eq!(serve(&mut world, "p", service), Ok(Reply::Done));
        }
        let prober = Prober::new("p", SIZE, PROBE, every, 9);
        let tally = prober.tally.clone();
        world.add(prober);
        world.run_for(Duration::from_secs(60));
        assert_eq!(late(&world), 0);
        let tally = tally.borrow();
        assert!(tally.operations > 10, "{tally:?}");
        tally.wait_max
    };
    let reserved = waited(Some(Service::Latency { len: PROBE, within, every }));
    assert!(reserved <= within, "{reserved}");
    let plain = waited(None);
    assert!(plain > within, "a test that cannot fail: {plain}");
}

/// A volume whose best effort has a contract gets its rate beside greedy programs
/// and streams that fill the disk; without one it gets its share of the slack.
#[test]
fn best_effort_with_a_contract_gets_its_rate() {
    let rate = Rate::per_second(600_000);
    let span = Duration::from_secs(60);
    let got = |service: Option<Service>| {
        let mut world = busy_world(1, |_| None, 2);
        if let Some(service) = service {
            assert_eq!(serve(&mut world, "r", service), Ok(Reply::Done));
        }
        for number in 0..6 {
            world.add(Greedy::new("g", SIZE, PIECE, 16, number));
        }
        let contract = contract(500_000, Bytes::mib(1), Bytes::ZERO);
        for _ in 0..3 {
            world.add(Player::new("s", 0, contract, PIECE, SIZE));
        }
        let mine = Greedy::new("r", SIZE, PIECE, 4, 99);
        let tally = mine.tally();
        world.add(mine);
        world.run_for(span);
        assert_eq!(late(&world), 0);
        tally.borrow().bytes
    };
    let (period, block) = (Duration::from_secs(1), PIECE);
    let promised = got(Some(Service::Rate { rate, block, period }));
    let least = rate.bytes_in(span - period * 2);
    assert!(promised >= least, "{promised} of {least}");
    let plain = got(None);
    assert!(plain < least, "a test that cannot fail: {plain} of {least}");
}

/// Interactive goes before normal, and background waits for both; each can be changed
/// while requests wait.
#[test]
fn priorities_of_best_effort_are_kept_and_can_be_changed() {
    let mut world = busy_world(1, |_| None, 3);
    let mut tallies = Vec::new();
    for name in ["p", "r", "g"] {
        let greedy = Greedy::new(name, SIZE, PIECE, 4, 5);
        tallies.push(greedy.tally());
        world.add(greedy);
    }
    let shares = |world: &mut World| {
        let before: Vec<Bytes> = tallies.iter().map(|tally| tally.borrow().bytes).collect();
        world.run_for(Duration::from_secs(20));
        let after = tallies.iter().map(|tally| tally.borrow().bytes);
        after.zip(before).map(|(after, before)| (after - before).get()).collect::<Vec<_>>()
    };
    let order = [Priority::Interactive, Priority::Normal, Priority::Background];
    for (name, priority) in ["p", "r", "g"].into_iter().zip(order) {
        serve(&mut world, name, Service::BestEffort(priority)).unwrap();
    }
    let first = shares(&mut world);
    assert!(first[0] > 3 * first[1] && first[2] == 0, "{first:?}");
    for (name, priority) in ["g", "r", "p"].into_iter().zip(order) {
        serve(&mut world, name, Service::BestEffort(priority)).unwrap();
    }
    let second = shares(&mut world);
    assert!(second[2] > 3 * second[1] && second[0] < first[0] / 20, "{second:?}");
}

/// A contract of a volume goes with the volume, bears no growth that would break it,
/// and what it takes is free again.
#[test]
fn a_service_lives_as_long_as_its_volume() {
    let mut world = world(config(Policy::SLACK), 1, Bytes::GIB, drive);
    create(&mut world, "v", Bytes::mib(4));
    let within = Duration::from_millis(200);
    let service = Service::Latency { len: PROBE, within, every: within };
    let empty = promises(&world);
    assert_eq!(serve(&mut world, "v", service), Ok(Reply::Done));
    assert_ne!(promises(&world), empty);
    assert_eq!(serve(&mut world, "v", Service::default()), Ok(Reply::Done));
    assert_eq!(promises(&world), empty);
    assert_eq!(serve(&mut world, "v", service), Ok(Reply::Done));
    assert!(matches!(serve(&mut world, "x", service), Err(Error::NoSuchVolume { .. })));
    let greedy = Service::Rate {
        rate: Rate::per_second(50_000_000),
        block: PIECE,
        period: Duration::from_secs(1),
    };
    assert!(matches!(serve(&mut world, "v", greedy), Err(Error::Refused(_))));
    let status = world.node.status(world.now());
    assert_eq!(status.volumes[0].service, service, "the refusal changed nothing");
    assert_eq!(
        world.call(Op::VolumeDelete { name: "v".into(), only: None, keep_directory: false }),
        Ok(Reply::Done)
    );
    create(&mut world, "v", Bytes::mib(4));
    assert_eq!(promises(&world), empty);
    let open = Op::StreamOpen {
        volume: "v".into(),
        mode: Mode::Read,
        contract: contract(300_000, Bytes::kib(64), Bytes::ZERO),
        start: Bytes::ZERO,
    };
    assert_eq!(world.call(open).map(|_| ()), Ok(()));
    assert_eq!(
        world.call(Op::StreamChange {
            stream: StreamId(77),
            contract: contract(1, Bytes::kib(64), Bytes::ZERO),
        }),
        Err(Error::NoSuchStream { stream: StreamId(77) })
    );
}
