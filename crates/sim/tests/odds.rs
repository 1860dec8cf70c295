//! Streams whose requests may be late now and then, in a whole node: on a device that is quick and
//! now and then stands still, as a file on a host that others use, they are admitted where bounds
//! are too much, late no oftener than was said, and nobody else is late for them. A device that is
//! not as it was measured is noticed.
//!
//! `SLACKLINE_MINUTES`: how long is served (default 5 simulated minutes).
#![allow(clippy::print_stdout)] // what was admitted is part of the result

use crate::common;
use disk::{Cost, Kind, Line, LinearProfile, Profile, Spread};
use node::{
    BrokenOdds, Chance, Contract, DiskSetup, Error, Mode, Node, Op, Opening, Policy, Reply,
};
use sim::{Greedy, Metadata, Player, Random, SimDisk, Timing, World};
use store::{Blocks, EXTENT};
use units::{Bytes, Duration, Rate};

const CAPACITY: Bytes = Bytes::mib(400 * 1_024);
const MEMORY: Bytes = Bytes::mib(4_096);
/// The device stands still for so long,
const STALL: Duration = Duration::from_millis(60);
/// once in so many commands.
const ONCE_IN: u64 = 2_000;
const MILLIONTH: Chance = Chance::one_in(1_000_000);

/// A gigabyte in a second, and what a first look at it sees: commands that take twice as long as
/// they do, with the longest of them and a half.
fn profile() -> Profile {
    let line = Line { fixed: Duration::from_micros(100), rate: Rate::per_second(1_000_000_000) };
    let cost = |size: Bytes| {
        let often = line.cost(size);
        let deviation = STALL / ONCE_IN.isqrt();
        Cost { size, mean: often + STALL / ONCE_IN, deviation, most: STALL * 3 / 2 }
    };
    let sizes = || [Bytes::kib(4), Bytes::kib(64), Bytes::MIB].map(cost).to_vec();
    let linear = LinearProfile {
        read: line.stretched(50),
        write: line.stretched(50),
        depth: 1,
        latency: STALL * 3 / 2,
        spread: Some(Spread { read: sizes(), write: sizes() }),
    };
    Profile {
        source: "made up for a test".into(),
        confidence: "certain".into(),
        capacity: CAPACITY,
        flush: Duration::from_millis(100),
        bus: None,
        kind: Kind::Linear(linear),
    }
}

/// A pool on such a device that takes so many percent of what it was measured to take.
fn world(policy: Policy, percent: u64) -> World<Metadata> {
    world_with(policy, percent, 0)
}

/// The same, of which the first `suspects` extents of the film are suspect.
fn world_with(policy: Policy, percent: u64, suspects: u64) -> World<Metadata> {
    let profile = profile();
    // Of the bound, which is half again of the time.
    let (rarely, random) = (STALL * percent / 100, Random::new(percent));
    let percent = percent * 100 / 150;
    let timing = Timing::Seldom {
        profile: Box::new(profile.clone()),
        percent,
        rarely,
        once_in: ONCE_IN,
        random,
    };
    let mut disks = vec![SimDisk::metadata_only(CAPACITY, timing)];
    sim::format(&mut disks, "test", &profile, 1).unwrap();
    let mut store = sim::open(&mut disks).unwrap();
    for (name, length) in [("film", Bytes::mib(300 * 1_024)), ("other", Bytes::mib(20 * 1_024))] {
        let id = store.create(name, length, &Default::default()).unwrap();
        let extents = 0..length / EXTENT;
        extents.for_each(|extent| store.note_written(id, extent, &Blocks::first(EXTENT)));
        store.note_length(id, length);
    }
    let film = store.find("film").expect("it was made").id();
    let place = |extent| store.locate(film, extent).and_then(|location| location.offset);
    let suspect = |extent| store::Suspect {
        extent: (place(extent).expect("it has one") / EXTENT) as u32,
        errors: 1,
        slow: 0,
        commands: 1,
    };
    let suspects = (0..suspects).map(suspect).collect();
    store.suspect(store::DiskIndex(0), suspects);
    sim::commit(&mut disks, &mut store).unwrap();
    let config = node::Config { memory: MEMORY, remeasure: false, ..common::config(policy) };
    let node = Node::new(config, vec![DiskSetup::new(profile)], store).unwrap();
    World::new(node, disks, MEMORY)
}

fn contract(rate: u64) -> Contract {
    Contract { rate: Rate::per_second(rate), block: Bytes::MIB, burst: Bytes::ZERO }
}

fn open(world: &mut World<Metadata>, rate: u64, miss: Option<Chance>) -> Result<Reply, Error> {
    let (volume, mode, contract) = ("film".into(), Mode::Read, contract(rate));
    let opening = Opening { volume, mode, contract, start: Bytes::ZERO, early: false, miss };
    world.call(Op::Open { opening: Box::new(opening), region: None })
}

fn minutes() -> u64 {
    let set = std::env::var("SLACKLINE_MINUTES").ok().and_then(|text| text.parse().ok());
    set.unwrap_or(5)
}

/// What a stream was admitted with, it is admitted with again when an extent of its volume is moved: by
/// bounds it would not fit.
#[test]
fn extents_move_beneath_a_stream_at_odds() {
    const SUSPECTS: u64 = 20;
    let length = Bytes::new(20_000_000 * 60);
    let [mut quiet, mut world] = [0, SUSPECTS].map(|suspects| {
        let mut world = world_with(Policy::SLACK, 100, suspects);
        world.add(
            Player::new("film", 1, contract(20_000_000), Bytes::MIB, length).at_odds(MILLIONTH),
        );
        while world.node.status(world.now()).streams.is_empty() {
            world.run_for(Duration::from_micros(100));
        }
        world
    });
    let moves = |world: &World<Metadata>| world.node.status(world.now()).disks[0].moves.clone();
    let before = moves(&world).moved;
    assert!(before < SUSPECTS / 2, "{before} before the stream came");
    world.run_for(Duration::from_secs(50));
    quiet.run_for(Duration::from_secs(50));
    let after = moves(&world);
    assert_eq!(
        (after.moved, after.occupied, &after.stuck[..]),
        (SUSPECTS, 0, &[][..]),
        "{after:?}"
    );
    let promised = |world: &World<Metadata>| {
        let status = world.node.status(world.now());
        (status.streams[0].miss, status.disks[0].odds.late, status.disks[0].utilisation_ppm)
    };
    assert_eq!(promised(&world), promised(&quiet));
}

#[test]
fn a_tenth_of_what_a_device_gives_is_admitted_at_odds_and_kept_beside_others() {
    for rate in [20_000_000, 100_000_000] {
        let mut world = world(Policy::SLACK, 100);
        assert!(matches!(open(&mut world, rate, None), Err(Error::Refused(_))), "by bounds");
        let player = |rate, length| Player::new("film", 1, contract(rate), Bytes::MIB, length);
        let seconds = (60 * minutes()).min(300 * 1_024 * 1_048_576 / rate - 60);
        let at_odds = player(rate, Bytes::new(rate * seconds)).at_odds(MILLIONTH);
        let kept = player(2_000_000, Bytes::new(2_000_000 * seconds));
        let greedy = Greedy::new("other", Bytes::mib(20 * 1_024), Bytes::kib(256), 1, 5);
        let tallies = [at_odds.tally(), kept.tally()];
        world.add(at_odds);
        world.add(kept);
        world.add(greedy);
        world.run_for(Duration::from_secs(5));
        let shown = world.node.status(world.now()).streams;
        assert_eq!([shown[0].miss, shown[1].miss], [Some(MILLIONTH), None]);
        world.run_for(Duration::from_secs(seconds - 10));
        let status = world.node.status(world.now());
        let disk = &status.disks[0];
        println!(
            "{rate} B/s: window {}, {} of {} late, best effort {}",
            shown[0].window, disk.odds.late, disk.odds.requests, disk.account.best_effort.bytes
        );
        assert!(disk.odds.requests > rate * (seconds - 20) / EXTENT.get());
        assert_eq!((disk.account.late_requests, disk.odds.broken), (0, None));
        for (tally, one) in tallies.iter().zip(&status.streams) {
            assert_eq!(tally.borrow().error, None);
            assert_eq!((one.account.late_requests, one.account.underruns), (0, 0));
        }
        // What is left is for best effort: it is not held up for what those that are at odds might take.
        assert!(disk.account.best_effort.bytes > Bytes::mib(200) * seconds);
    }
}

/// Twice the time in each command, in the long ones, too.
#[test]
fn a_device_that_is_slower_by_two_is_noticed_and_those_by_bounds_go_on() {
    let mut world = world(Policy::SLACK, 200);
    let length = Bytes::mib(100 * 1_024);
    world.add(Player::new("film", 1, contract(20_000_000), Bytes::MIB, length).at_odds(MILLIONTH));
    world.run_for(Duration::from_secs(10));
    let told = |world: &World<Metadata>| world.node.status(world.now()).disks[0].odds;
    assert_eq!(told(&world).broken, None, "nothing is known of it yet");
    world.run_for(Duration::from_secs(600));
    let odds = told(&world);
    println!("{} of {} late", odds.late, odds.requests);
    assert_eq!(odds.broken, Some(BrokenOdds::Costs));
}

#[test]
fn what_cannot_be_at_odds_is_refused_in_words() {
    let miss = Some(MILLIONTH);
    let rule = |result: Result<Reply, Error>| match result {
        Err(Error::Invalid { what, rule }) => format!("{what}: {rule}"),
        other => panic!("{other:?}"),
    };
    let mut world = world(Policy::SLACK, 100);
    let often = open(&mut world, 1_000_000, Some(Chance::one_in(9)));
    assert!(rule(often).contains("at most 0.1"));
    let long = Contract { block: Bytes::mib(2), ..contract(1_000_000) };
    let (volume, mode, start) = ("film".to_owned(), Mode::Read, Bytes::ZERO);
    let opening = Opening { volume, mode, contract: long, start, early: false, miss };
    let long = world.call(Op::Open { opening: Box::new(opening), region: None });
    assert!(rule(long).contains("at most 1 MiB"));
    // More than the device has is refused as by bounds, with what would have fitted.
    let Err(Error::Refused(refusal)) = open(&mut world, 2_000_000_000, miss) else { panic!() };
    println!("{refusal:?}");
    assert!(refusal.rate_max >= Rate::per_second(100_000_000), "{}", refusal.rate_max);
    let Ok(Reply::Stream { stream, .. }) = open(&mut world, 20_000_000, miss) else { panic!() };
    // It stays as it is, and so does the policy.
    let contract = contract(10_000_000);
    assert!(rule(world.call(Op::StreamChange { stream, contract })).contains("open another one"));
    let edl = Box::new(Policy::EDL);
    let refused = world.call(Op::PolicySet { policy: edl, keep: false });
    assert!(matches!(refused, Err(Error::PolicyRefused { streams, .. }) if streams == [stream]));
    // Disks with seeks, and other policies.
    let mut seeks = common::world(common::config(Policy::SLACK), 1, Bytes::mib(64), common::drive);
    common::create(&mut seeks, "film", Bytes::mib(8));
    let opening = |miss| {
        let (volume, mode, start) = ("film".to_owned(), Mode::Read, Bytes::ZERO);
        let contract = Contract { block: Bytes::kib(64), ..self::contract(10_000) };
        let opening = Box::new(Opening { volume, mode, contract, start, early: false, miss });
        Op::Open { opening, region: None }
    };
    assert!(rule(seeks.call(opening(miss))).contains("timed by"));
    assert!(seeks.call(opening(Some(Chance::NEVER))).is_ok(), "never late: by bounds");
    let mut other = self::world(Policy::EDL, 100);
    assert!(rule(open(&mut other, 1_000_000, miss)).contains("slack"));
}
