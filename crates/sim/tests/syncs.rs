//! A writer that syncs within its blocks keeps its rate, and what was synced is there.

use crate::common::*;
use node::{Error, Policy, Region};
use sim::{
    Fault, Greedy, Player, Random, Recorder, SimDisk, Timing, WindowRecorder, World,
    pattern_matches,
};
use units::{Bytes, Duration};

const BLOCK: Bytes = Bytes::kib(256);
const LENGTH: Bytes = Bytes::mib(3);

/// A disk at its worst costs, with eight players that have most of it and a greedy program that
/// has the rest.
fn beside_eight_players(rate: u64) -> (World, Vec<sim::Shared>) {
    let mut world = world(config(Policy::SLACK), 1, Bytes::mib(384), |_, profile, _| {
        Timing::Percent(Box::new(profile.clone()), 100)
    });
    create(&mut world, "w", Bytes::mib(64));
    let size = Bytes::mib(24);
    let name = |number: u64| format!("p{number}");
    for number in 0..8 {
        create(&mut world, &name(number), size);
        fill(&mut world, &name(number), number, size);
    }
    let mut players = Vec::new();
    for number in 0..8 {
        let asked = contract(rate, BLOCK, Bytes::ZERO);
        let player = Player::new(&name(number), number, asked, Bytes::kib(32), size);
        players.push(player.tally());
        world.add(player);
    }
    world.run_for(Duration::from_secs(5));
    world.add(Greedy::new("p0", size, Bytes::kib(64), 16, 3));
    (world, players)
}

/// Blocks of 256 KiB, a sync after each 64 KiB (once at odd offsets), eight players beside it:
/// the program finds room at once, by both kinds of window, and nobody is late for it.
#[test]
fn a_writer_that_syncs_within_its_blocks_finds_room_at_once() {
    for (number, rate) in [128 << 10, 256 << 10, 512 << 10].into_iter().enumerate() {
        let (mut world, players) = beside_eight_players(550_000);
        let asked = contract(rate, BLOCK, Bytes::ZERO);
        let piece = Bytes::new([16 << 10, 16 << 10, 10_007][number]);
        let every = Bytes::kib(64);
        let recorder = Recorder::new("w", 99, asked, piece, LENGTH).sync_every(every);
        let tally = recorder.tally();
        world.add(recorder);
        world.run_for(Duration::from_secs(30));
        let tally = tally.borrow();
        assert_eq!(tally.error, None);
        assert!(tally.done && tally.durable == LENGTH, "{rate}: {tally:?}");
        assert_eq!(tally.wait_max, Duration::ZERO, "at {rate} B/s");
        assert_eq!(late(&world), 0);
        assert!(players.iter().all(|player| player.borrow().error.is_none()));
    }
}

/// The same in a window that is shared: it is never found full.
#[test]
fn a_shared_window_is_not_full_for_a_writer_that_syncs_within_its_blocks() {
    for rate in [128 << 10, 512 << 10] {
        let (mut world, _) = beside_eight_players(550_000);
        let asked = contract(rate, BLOCK, Bytes::ZERO);
        let sizes = [Bytes::new(10_007), LENGTH, Bytes::kib(64)];
        let recorder = WindowRecorder::new(("w", 9), asked, Region(1), sizes);
        let (tally, told) = (recorder.tally(), recorder.told());
        world.add(recorder);
        let lasts = asked.rate.time_for(LENGTH) + Duration::from_millis(500);
        world.run_for(lasts);
        assert_eq!(tally.borrow().bytes, LENGTH, "all was filled in its time");
        world.run_for(Duration::from_secs(5));
        assert!(tally.borrow().done && told.borrow().is_empty(), "{:?}", told.borrow());
        assert_eq!(late(&world), 0);
    }
}

const SEED: u64 = 9;

/// A recorder that syncs at odd offsets, often several times in a block and without waiting for
/// the answer: by a window of its own, or a shared one.
fn syncs_at_odd_offsets(seed: u64, faults: &[Fault]) -> (World, sim::Shared) {
    let mut random = Random::new(seed);
    let disks = 1 + seed as usize % 2;
    let mut world = world(config(Policy::SLACK), disks, Bytes::mib(96), |_, profile, index| {
        Timing::WithinBound(Box::new(profile.clone()), Random::new(seed + index as u64))
    });
    create(&mut world, "v", Bytes::mib(4));
    let served: Vec<u64> = world.disks.iter().map(SimDisk::served).collect();
    for (disk, served) in world.disks.iter_mut().zip(served) {
        disk.faults.extend(faults.iter().map(|fault| match *fault {
            Fault::WriteError { after } => Fault::WriteError { after: after + served },
            other => other,
        }));
    }
    let block = Bytes::kib(16) * (1 << random.below(4));
    let asked = contract(block.get() * 4, block, block * random.below(3));
    let piece = Bytes::new(random.between(500, 9_000));
    let every = Bytes::new(random.between(3_000, 30_000));
    let length = Bytes::new(random.between(300_000, 900_000));
    let tally = if seed.is_multiple_of(3) {
        let recorder = WindowRecorder::new(("v", SEED), asked, Region(1), [piece, length, every]);
        let tally = recorder.tally();
        world.add(recorder);
        tally
    } else {
        let recorder = Recorder::new("v", SEED, asked, piece, length).sync_every(every);
        let tally = recorder.tally();
        world.add(recorder);
        tally
    };
    (world, tally)
}

/// What the volume has on these disks, up to the end of the 4 KiB that `upto` is in, of which
/// it has recorded that much at least.
fn recorded(mut disks: Vec<SimDisk>, upto: Bytes) -> Vec<u8> {
    let store = sim::open(&mut disks).expect("the pool opens");
    let volume = store.find("v").expect("it is there");
    assert!(volume.length() >= upto, "{} of {upto}", volume.length());
    let mut bytes = vec![0; upto.round_up(store::BLOCK).as_usize()];
    for (extent, bytes) in (0u64..).zip(bytes.chunks_mut(store::EXTENT.as_usize())) {
        let location = store.locate(volume.id(), extent).expect("an extent");
        disks[location.disk.as_usize()].read(location.offset.unwrap(), bytes);
    }
    bytes
}

/// Whenever a sync is answered, the power may go: what was synced is there as it was written.
#[test]
fn what_was_synced_within_a_block_is_there_after_a_power_cut() {
    let mut cuts = 0;
    for seed in 0..40 {
        let (mut world, tally) = syncs_at_odd_offsets(seed, &[]);
        let mut random = Random::new(seed);
        let (mut checked, end) = (Bytes::ZERO, world.now() + Duration::from_secs(60));
        while !tally.borrow().done && world.step(end) {
            let durable = tally.borrow().durable;
            if durable > checked {
                checked = durable;
                let disks = world.disks.iter().map(|disk| disk.clone().cut(&mut random)).collect();
                let mut bytes = recorded(disks, durable);
                bytes.truncate(durable.as_usize());
                assert!(pattern_matches(SEED, Bytes::ZERO, &bytes), "seed {seed}, {durable}");
                cuts += 1;
            }
        }
        assert!(tally.borrow().done && tally.borrow().error.is_none(), "seed {seed}");
        assert_eq!(late(&world), 0);
        let behind = recorded(world.disks.clone(), checked).split_off(checked.as_usize());
        assert!(behind.iter().all(|&byte| byte == 0), "seed {seed}: behind what was recorded");
    }
    assert!(cuts > 150, "{cuts} cuts");
}

/// A disk that fails on a part of a block, or on anything after it: the program hears it, and
/// what it was told before to be on the medium is there.
#[test]
fn a_part_that_is_not_written_is_told_and_nothing_before_it_is_lost() {
    let mut broken_off = 0;
    for seed in 0..24 {
        let (mut world, tally) = syncs_at_odd_offsets(seed, &[Fault::WriteError { after: seed }]);
        world.run_for(Duration::from_secs(60));
        let tally = tally.borrow();
        let told = matches!(tally.error, Some(Error::Device { .. } | Error::ReadOnly { .. }));
        assert!(told && !tally.done, "seed {seed}: {:?}", tally.error);
        let mut bytes = recorded(world.disks.clone(), tally.durable);
        bytes.truncate(tally.durable.as_usize());
        assert!(pattern_matches(SEED, Bytes::ZERO, &bytes), "seed {seed}");
        broken_off += u32::from(!tally.durable.is_zero());
    }
    assert!(broken_off > 5, "{broken_off}");
}
