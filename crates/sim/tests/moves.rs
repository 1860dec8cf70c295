//! Live data in bad and slow extents is moved to good ones, beside streams that keep
//! their contracts; what cannot be read stays and is named; all of it is known again
//! after a restart.

use crate::common::{config, contract, create, drive, fill, late, model, start, world};
use disk::Profile;
use node::{Error, MoveStatus, Op, Policy, Reply, Unmoved, WriteRange};
use sim::{Fault, Player, Random, SimDisk, World, pattern, pattern_matches};
use std::collections::BTreeMap;
use units::{Bytes, Duration};

const SIZE: Bytes = Bytes::mib(24);
const PIECE: Bytes = Bytes::kib(64);

fn moves(world: &World) -> MoveStatus {
    world.node.status(world.now()).disks[0].moves.clone()
}

/// Where each extent of a volume lies, by what the disk has when it is opened.
fn places(world: &World, name: &str) -> BTreeMap<u64, Bytes> {
    let mut disks = world.disks.clone();
    disks[0].flush();
    let store = sim::open(&mut disks).unwrap();
    let volume = store.find(name).expect("the volume is there");
    let place = |extent| (extent, store.locate(volume.id(), extent).unwrap().offset.unwrap());
    (0..volume.extents()).map(place).collect()
}

fn slow(at: Bytes, percent: u64) -> Fault {
    Fault::Slow { from: at, to: at + Bytes::MIB, percent }
}

fn bad(at: Bytes) -> Fault {
    Fault::ReadError { from: at + Bytes::kib(256), to: at + Bytes::kib(260) }
}

/// Reads a piece as best effort; what came back, or the error.
fn read(world: &mut World, name: &str, offset: Bytes) -> Result<Vec<u8>, Error> {
    let op = Op::Read { volume: name.into(), offset, len: PIECE, priority: None };
    let Reply::Data { bytes: span, .. } = world.call(op)? else { panic!("a read gives data") };
    let bytes = world.bytes(span).to_vec();
    assert_eq!(world.call(Op::Release { span }), Ok(Reply::Done));
    Ok(bytes)
}

/// Every byte of a volume is the pattern's, but in `lost` extents.
fn assert_right(world: &mut World, name: &str, seed: u64, size: Bytes) {
    let mut at = Bytes::ZERO;
    while at < size {
        let bytes = read(world, name, at).unwrap();
        assert!(pattern_matches(seed, at, &bytes), "{name} at {at}");
        at += PIECE;
    }
}

/// A piece of the extent is read that no cache has, from far away: one occasion to be
/// found slow, of the three that it takes.
fn visit(world: &mut World, name: &str, extent: u64, occasion: u64) {
    read(world, name, Bytes::mib(20) + PIECE * occasion).unwrap();
    read(world, name, Bytes::MIB * extent + PIECE * (5 * occasion)).unwrap();
}

fn learn(world: &mut World, name: &str, extent: u64) {
    for occasion in 0..3 {
        visit(world, name, extent, occasion);
        world.run_for(Duration::from_millis(1_100));
    }
}

/// The pool as it is after the process ended and was started again.
fn restarted(world: World) -> World {
    let mut disks: Vec<SimDisk> = world.cut(&mut Random::new(5));
    for disk in &mut disks {
        disk.flush();
    }
    let profile = Profile::of(&model(disks[0].capacity()));
    start(config(Policy::SLACK), disks, &profile)
}

#[test]
fn data_in_a_slow_zone_is_moved_beside_streams_that_keep_their_contracts() {
    let mut world = world(config(Policy::SLACK), 1, Bytes::GIB, drive);
    for (name, seed) in [("films", 1), ("files", 2)] {
        create(&mut world, name, SIZE);
        fill(&mut world, name, seed, SIZE);
        assert_right(&mut world, name, seed, SIZE); // what is slow is so beside others
    }
    let before = places(&world, "files");
    let zone = [3, 8, 13];
    world.disks[0].faults = zone.map(|extent| slow(before[&extent], 600)).to_vec();
    // Learned on a quiet disk; streams come before the disk has been idle for long.
    for extent in zone {
        for occasion in 0..2 {
            visit(&mut world, "files", extent, occasion);
            world.run_for(Duration::from_millis(1_100));
        }
    }
    let mut tallies = Vec::new();
    let contract = contract(600_000, Bytes::kib(256), Bytes::ZERO);
    zone.into_iter().for_each(|extent| visit(&mut world, "files", extent, 2));
    assert_eq!((moves(&world).moved, moves(&world).moving.is_some()), (0, true));
    for _ in 0..2 {
        let player = Player::new("films", 1, contract, PIECE, SIZE);
        tallies.push(player.tally());
        world.add(player);
    }
    world.run_for(Duration::from_secs(60));
    let status = world.node.status(world.now());
    assert_eq!(late(&world), 0, "{:?}", status.disks);
    let told = moves(&world);
    assert_eq!((told.moved, told.moving, told.occupied), (3, None, 0), "{told:?}");
    for tally in &tallies {
        let tally = tally.borrow();
        assert!(tally.done && tally.wrong.is_zero() && tally.gaps.is_zero(), "{tally:?}");
    }
    assert_right(&mut world, "files", 2, SIZE);
    world.run_for(Duration::from_secs(5));
    let after = places(&world, "files");
    for (extent, place) in &before {
        assert_eq!(after[extent] == *place, !zone.contains(extent), "extent {extent}");
    }

    // A restart knows them still: new volumes get others, and the data stays moved.
    let mut world = restarted(world);
    let observed = world.node.status(world.now()).disks[0].observed.clone();
    let suspects: Vec<Bytes> = observed.suspects.iter().map(|one| one.offset()).collect();
    assert_eq!(suspects, zone.map(|extent| before[&extent]));
    assert_right(&mut world, "files", 2, SIZE);
    create(&mut world, "new", SIZE);
    assert!(places(&world, "new").values().all(|place| !suspects.contains(place)));
}

#[test]
fn what_cannot_be_read_stays_where_it_is_and_is_named_and_moves_when_it_can() {
    let mut world = world(config(Policy::SLACK), 1, Bytes::GIB, drive);
    create(&mut world, "v", SIZE);
    fill(&mut world, "v", 1, SIZE);
    let before = places(&world, "v");
    world.disks[0].faults = vec![bad(before[&3]), slow(before[&9], 400)];
    let at = Bytes::mib(3) + Bytes::kib(256);
    assert!(matches!(read(&mut world, "v", at), Err(Error::Device { .. })));
    learn(&mut world, "v", 9);
    world.run_for(Duration::from_secs(20));
    let told = moves(&world);
    assert_eq!((told.moved, told.occupied, told.stuck.len()), (1, 1, 1), "{told:?}");
    let stuck = &told.stuck[0];
    assert_eq!((stuck.extent, &*stuck.volume), (before[&3] / Bytes::MIB, "v"));
    assert_eq!(stuck.why, Unmoved::Unreadable { offset: at, error: node::DeviceError(5) });
    // Nothing is made up in its place.
    assert!(matches!(read(&mut world, "v", at), Err(Error::Device { .. })));
    assert_eq!(places(&world, "v")[&3], before[&3]);
    // The disk has found a way to read it after all.
    world.disks[0].faults.clear();
    world.run_for(Duration::from_secs(700));
    let told = moves(&world);
    assert_eq!((told.moved, told.occupied, told.stuck.len()), (2, 0, 0), "{told:?}");
    assert_right(&mut world, "v", 1, SIZE);
}

#[test]
fn writes_to_an_extent_on_its_way_are_never_lost() {
    let mut world = world(config(Policy::SLACK), 1, Bytes::GIB, drive);
    create(&mut world, "v", SIZE);
    fill(&mut world, "v", 1, SIZE);
    let mut random = Random::new(11);
    let mut seeds: Vec<u64> = vec![1; (SIZE / PIECE) as usize];
    for round in 0..12u64 {
        // A sector fails once: its extent is suspect from then on.
        let place = places(&world, "v")[&(round * 2)];
        world.disks[0].faults = vec![Fault::ReadError { from: place, to: place + PIECE }];
        assert!(read(&mut world, "v", Bytes::mib(round * 2)).is_err());
        world.disks[0].faults.clear();
        for seed in 0..random.between(1, 12) {
            let piece = round * 32 + random.below(16);
            let (offset, seed) = (PIECE * piece, 100 + seed);
            let Ok(Reply::Room { room: span }) = world.call(Op::Room { len: PIECE, target: None })
            else {
                panic!()
            };
            pattern(seed, offset, world.bytes_mut(span));
            let op = Op::Write {
                volume: "v".into(),
                range: WriteRange::new(offset, span.len),
                span,
                priority: None,
            };
            assert_eq!(world.call(op), Ok(Reply::Done));
            seeds[piece as usize] = seed;
            world.run_for(random.span(Duration::from_millis(150)));
        }
        world.run_for(Duration::from_secs(8));
    }
    let told = moves(&world);
    assert_eq!((told.moved, told.occupied), (12, 0), "{told:?}");
    for (piece, &seed) in (0..).zip(&seeds) {
        let bytes = read(&mut world, "v", PIECE * piece).unwrap();
        assert!(pattern_matches(seed, PIECE * piece, &bytes), "piece {piece}");
    }
    let mut world = restarted(world);
    for (piece, &seed) in (0..).zip(&seeds) {
        let bytes = read(&mut world, "v", PIECE * piece).unwrap();
        assert!(pattern_matches(seed, PIECE * piece, &bytes), "piece {piece} after a restart");
    }
}

#[test]
fn a_volume_that_is_deleted_or_shrunk_on_the_way_leaves_nothing_behind() {
    for shrink in [false, true] {
        let mut world = world(config(Policy::SLACK), 1, Bytes::GIB, drive);
        create(&mut world, "v", SIZE);
        fill(&mut world, "v", 1, SIZE);
        let free = |world: &World| world.node.status(world.now()).disks[0].free;
        let (place, before) = (places(&world, "v")[&20], free(&world));
        world.disks[0].faults = vec![Fault::ReadError { from: place, to: place + PIECE }];
        assert!(read(&mut world, "v", Bytes::mib(20)).is_err());
        world.disks[0].faults.clear();
        world.run_for(Duration::from_millis(100));
        assert!(moves(&world).moving.is_some(), "{:?}", moves(&world));
        let op = match shrink {
            true => Op::VolumeResize { name: "v".into(), size: Bytes::mib(4), may_cut: true },
            false => Op::VolumeDelete { name: "v".into(), only: None, keep_directory: false },
        };
        assert_eq!(world.call(op), Ok(Reply::Done));
        world.run_for(Duration::from_secs(10));
        let told = moves(&world);
        assert_eq!((told.moved, told.moving, told.occupied), (0, None, 0), "{told:?}");
        let kept = if shrink { Bytes::mib(4) } else { Bytes::ZERO };
        assert_eq!(free(&world), before + SIZE - kept);
        assert_eq!(world.call(Op::Shutdown), Ok(Reply::Done));
    }
}
