//! What a node learns of its disks while it works: of a profile that does not hold, and
//! of extents that are bad or slow, which new volumes then do not get.

mod common;

use common::{config, contract, create, drive, fill, model, start, world};
use disk::Profile;
use node::{Error, Observed, Op, Policy, Reply, Verdict};
use sim::{Fault, Player, Random, SimDisk, Timing, World, pattern_matches};
use std::collections::BTreeSet;
use units::{Bytes, Duration};

const SIZE: Bytes = Bytes::mib(24);

fn observed(world: &World) -> Observed {
    world.node.status(world.now()).disks[0].observed.clone()
}

/// Readers at a rate that one disk can give, until they have read all.
fn read_all(world: &mut World, times: usize) {
    let contract = contract(1_500_000, Bytes::kib(256), Bytes::ZERO);
    for _ in 0..times {
        world.add(Player::new("v", 1, contract, Bytes::kib(256), SIZE));
        world.run_for(Duration::from_secs(30));
    }
}

/// Where the extent of a pattern lies on the disk.
fn place(disk: &SimDisk, extent: u64) -> Bytes {
    let (mut at, mut block) = (Bytes::ZERO, vec![0; 4096]);
    while at < disk.capacity() {
        disk.read(at, &mut block);
        if pattern_matches(1, Bytes::MIB * extent, &block) {
            return at;
        }
        at += Bytes::MIB;
    }
    panic!("the pattern is not on the disk");
}

fn delete(world: &mut World, name: &str) {
    assert_eq!(world.call(Op::VolumeDelete { name: name.into() }), Ok(Reply::Done));
}

/// Where the extents of all volumes lie, as the disk has it.
fn used(world: &World) -> BTreeSet<u64> {
    let mut disks = world.disks.clone();
    disks[0].flush();
    let store = sim::open(&mut disks).unwrap();
    let places = store.volumes().flat_map(|volume| {
        (0..volume.size() / Bytes::MIB).map(|at| store.locate(volume.id(), at).unwrap().offset)
    });
    places.map(|offset| offset / Bytes::MIB).collect()
}

#[test]
fn a_disk_that_keeps_its_profile_is_fresh_and_one_that_is_slower_is_not() {
    for (percent, fresh) in [(100, true), (130, false)] {
        let mut world = world(config(Policy::Slack), 1, Bytes::GIB, |_, profile, _| {
            Timing::Percent(Box::new(profile.clone()), percent)
        });
        create(&mut world, "v", SIZE);
        fill(&mut world, "v", 1, SIZE);
        read_all(&mut world, 2);
        let seen = observed(&world);
        assert!(seen.commands > 100, "{seen:?}");
        assert_eq!(seen.verdict == Verdict::Fresh, fresh, "{percent} %: {seen:?}");
        assert_eq!(seen.overruns > 0, !fresh, "{seen:?}");
        assert!(seen.suspects.is_empty(), "a disk that is slow everywhere has no slow extent");
    }
}

#[test]
fn bad_and_slow_extents_are_learned_and_new_volumes_get_others_while_there_are_any() {
    let mut world = world(config(Policy::Slack), 1, Bytes::GIB, drive);
    create(&mut world, "v", SIZE);
    fill(&mut world, "v", 1, SIZE);
    let [bad, slow, once] = [5, 11, 17].map(|extent| place(&world.disks[0], extent));
    let upto = |from| from + Bytes::MIB;
    let slowness = |from, percent| Fault::Slow { from, to: upto(from), percent };
    let error = Fault::ReadError { from: bad + Bytes::kib(256), to: bad + Bytes::kib(260) };
    // One extent stalls in the first pass alone.
    world.disks[0].faults = vec![error, slowness(slow, 500), slowness(once, 500)];
    read_all(&mut world, 1);
    world.disks[0].faults.pop();
    read_all(&mut world, 6);
    let seen = observed(&world);
    let suspects: Vec<_> = seen.suspects.iter().map(|suspect| suspect.offset()).collect();
    assert_eq!(suspects, [bad, slow], "{seen:?}");
    assert!(seen.suspects[0].errors > 0 && seen.suspects[1].slow > 2, "{seen:?}");

    // With all of the disk but three extents in use they are not; the last takes them.
    // Known also after a restart, when what was moved away from is free again.
    delete(&mut world, "v");
    let disks = world.cut(&mut Random::new(1));
    let profile = Profile::of(&model(disks[0].capacity()));
    let mut world = start(config(Policy::Slack), disks, &profile);
    let free = |world: &World| world.node.status(world.now()).disks[0].free;
    let all = free(&world);
    create(&mut world, "most", all - Bytes::mib(3));
    let number = |place: Bytes| place / Bytes::MIB;
    let suspects = BTreeSet::from([number(bad), number(slow)]);
    let found = used(&world);
    assert!(found.is_disjoint(&suspects), "{suspects:?}");
    assert_eq!(found.len() as u64, all / Bytes::MIB - 3);
    create(&mut world, "rest", Bytes::mib(3));
    assert!(used(&world).is_superset(&suspects), "better than none");
    let more = Op::VolumeCreate {
        name: "none".into(),
        size: Bytes::MIB,
        placement: node::Placement::default(),
    };
    assert!(matches!(world.call(more), Err(Error::PoolFull { .. } | Error::Store(_))));
}
