//! Contracts of answers in time beside streams in long blocks: blocks are then served in chunks,
//! between which the answers go, and nobody is late.
//!
//! What is the shortest is in docs/semi-preemptible.md.
#![allow(clippy::print_stdout)] // the figures are part of the result

use crate::common::*;
use crate::programs::*;
use disk::{Model, Profile};
use node::{Op, Policy, Priority, Reply, Service};
use sim::{Player, Random, Recorder, Timing, World};
use units::{Bytes, Direction, Duration, Lba};

const SIZE: Bytes = Bytes::mib(8);
const FILM: Bytes = Bytes::mib(64);

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A pool with a volume for answers, one for whoever is greedy, and films.
fn pool(films: u64, timing: impl Fn(&Model, &Profile, usize) -> Timing) -> World {
    let mut world = world(config(Policy::SLACK), 1, Bytes::GIB, timing);
    for (name, size) in [("p", SIZE), ("g", SIZE)] {
        create(&mut world, name, size);
        fill(&mut world, name, 9, size);
    }
    for film in 0..films {
        create(&mut world, &format!("film{film}"), FILM);
        fill(&mut world, &format!("film{film}"), film, FILM);
    }
    world
}

fn promise(world: &mut World, within: Duration) -> bool {
    let service = Service::Latency { len: Bytes::kib(4), within, every: Duration::from_secs(1) };
    world.call(Op::VolumeService { name: "p".into(), service }).is_ok()
}

fn promise_no_more(world: &mut World) {
    let service = Service::BestEffort(Priority::Normal);
    assert_eq!(world.call(Op::VolumeService { name: "p".into(), service }), Ok(Reply::Done));
}

/// The shortest time within which answers are promised, to the millisecond.
fn smallest(world: &mut World) -> Duration {
    let (mut bad, mut good) = (0, 1_000);
    while good - bad > 1 {
        let middle = (good + bad) / 2;
        if promise(world, ms(middle)) {
            good = middle;
            promise_no_more(world);
        } else {
            bad = middle;
        }
    }
    ms(good)
}

fn chunk(world: &World) -> Option<Bytes> {
    world.node.status(world.now()).disks[0].chunk
}

/// Films in blocks of 1 MiB and a recording, answers as soon as can be promised, and somebody
/// greedy: nobody is late, and every byte is right.
#[test]
fn answers_between_the_chunks_of_long_blocks_make_nobody_late() {
    for timing in [drive, within_bound, at_bound] {
        let mut world = pool(3, timing);
        create(&mut world, "tape", FILM);
        let block = Bytes::MIB;
        let contract = contract(500_000, block, block);
        let players: Vec<_> = (0..3)
            .map(|film| {
                let player =
                    Player::new(&format!("film{film}"), film, contract, Bytes::kib(64), FILM);
                let tally = player.tally();
                world.add(player);
                tally
            })
            .collect();
        let recorder = Recorder::new("tape", 77, contract, Bytes::kib(64), FILM);
        let recorded = recorder.tally();
        world.add(recorder);
        world.run_for(Duration::from_secs(5));
        assert_eq!(chunk(&world), None, "nobody asked for answers");
        let within = smallest(&mut world);
        assert!(promise(&mut world, within));
        println!("{within}, in chunks of {:?}", chunk(&world));
        assert!(chunk(&world).is_some(), "{within}");
        world.add(Adversary::new(1000, "g", SIZE, 8, 50));
        let every = Duration::from_secs(1);
        let contract = InTime { len: Bytes::kib(4), within, every };
        let keeper = Keeper::new("p", SIZE, contract, Manner { writes: 30, ..Manner::PLAIN }, 7);
        let seen = keeper.seen();
        world.add(keeper);
        world.run_for(Duration::from_secs(60));
        let seen = seen.borrow().clone();
        println!("{} answers, the longest {}", seen.answers, seen.longest);
        assert!(seen.answers > 30 && seen.errors.is_empty(), "{seen:?}");
        assert_eq!((seen.late, late(&world)), (0, 0), "{seen:?}");
        for tally in players.iter().chain([&recorded]) {
            let tally = tally.borrow();
            let moved = (tally.bytes > Bytes::mib(20), tally.wrong, tally.gaps);
            assert_eq!(moved, (true, Bytes::ZERO, Bytes::ZERO), "{:?}", tally.error);
        }
        promise_no_more(&mut world);
        assert_eq!(chunk(&world), None, "requests are whole again");
        world.run_for(Duration::from_secs(20));
        assert_eq!(late(&world), 0);
    }
}

/// Pools of one disk or two with random streams, some of which write, close and come again, and
/// answers as soon as can be promised or a little later, changed again and again, beside somebody
/// greedy: nobody is late, and every byte is right. `SLACKLINE_CHUNKS` says how many.
#[test]
fn whatever_streams_and_answers_there_are_nobody_is_late() {
    let loads = std::env::var("SLACKLINE_CHUNKS").map_or(6, |text| text.parse().unwrap());
    let (mut in_chunks, mut answers) = (0, 0);
    for seed in 0..loads {
        let mut random = Random::new(900 + seed);
        let timing = [drive, within_bound, at_bound][random.below(3) as usize];
        let films = random.between(1, 4);
        let mut world = pool(films, timing);
        let mut tallies = Vec::new();
        for film in 0..films {
            let block = Bytes::kib(256) * (1 << random.below(4));
            let contract = contract(random.between(100_000, 500_000), block, block);
            let (name, piece) = (format!("film{film}"), Bytes::kib(64));
            let length = Bytes::mib(random.between(2, 20));
            if random.below(3) == 0 {
                create(&mut world, &format!("tape{film}"), FILM);
                let recorder = Recorder::new(&format!("tape{film}"), film, contract, piece, length);
                tallies.push(recorder.tally());
                world.add(recorder);
            } else {
                let player = Player::new(&name, film, contract, piece, length);
                tallies.push(player.tally());
                world.add(player);
            }
        }
        world.run_for(ms(random.between(1, 4_000)));
        let within = smallest(&mut world) + ms(random.below(15));
        assert!(promise(&mut world, within));
        world.add(Adversary::new(1000, "g", SIZE, 8, 50));
        let every = Duration::from_secs(1);
        let asked = InTime { len: Bytes::kib(4), within, every };
        let keeper = Keeper::new("p", SIZE, asked, Manner { writes: 30, ..Manner::PLAIN }, seed);
        let seen = keeper.seen();
        world.add(keeper);
        for _ in 0..20 {
            in_chunks += u64::from(chunk(&world).is_some());
            world.run_for(ms(random.between(100, 2_000)));
        }
        let seen = seen.borrow().clone();
        answers += seen.answers;
        let what = format!("{seed}: {films} films, within {within}, {seen:?}");
        assert_eq!((seen.late, late(&world), seen.errors.len()), (0, 0, 0), "{what}");
        for tally in &tallies {
            let tally = tally.borrow();
            assert_eq!((tally.wrong, tally.gaps), (Bytes::ZERO, Bytes::ZERO), "{what}");
        }
    }
    println!("{answers} answers, in chunks at {in_chunks} of {} looks", loads * 20);
    assert!(in_chunks > loads * 5 && answers > loads * 5, "{in_chunks} {answers}");
}

/// What docs/semi-preemptible.md says of `laptop-4200`.
#[test]
fn the_shortest_answers_that_are_promised_beside_streams() {
    let profile = Profile::of(&model(Bytes::GIB));
    let end = Lba::containing(profile.capacity());
    let alone = profile.worst(Lba::new(0)..end, Bytes::kib(4), Direction::Read);
    let mut found = Vec::new();
    for (films, rate, block) in [(0, 0, 0), (1, 500_000, 1), (3, 500_000, 1), (1, 2_000_000, 4)] {
        let mut world = pool(films, drive);
        for film in 0..films {
            let contract = contract(rate, Bytes::mib(block), Bytes::mib(block));
            let name = format!("film{film}");
            world.add(Player::new(&name, film, contract, Bytes::kib(64), FILM));
        }
        world.run_for(Duration::from_secs(5));
        let within = smallest(&mut world);
        assert!(promise(&mut world, within));
        found.push((within, chunk(&world)));
    }
    println!("alone {alone}: {found:?}");
    let chunk = Some(Bytes::kib(64));
    assert_eq!(found, [(ms(86), chunk), (ms(109), chunk), (ms(109), chunk), (ms(109), chunk)]);
    assert_eq!(alone.as_micros() / 100, 404, "2.1 and 2.7 times as long");
}
