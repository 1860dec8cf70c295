//! What a node learns of its disks while it works: of a profile that does not hold, and
//! of extents that are bad or slow, which new volumes then do not get.

use crate::common;
use crate::common::{config, contract, create, drive, fill, model, start, world};
use disk::Profile;
use node::{Config, DiskIndex, Error, Mode, Observed, Op, Outcome, Policy, Reply, Verdict};
use sim::{Fault, Greedy, Player, Random, Recorder, SimDisk, Timing, World, pattern_matches};
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
    assert_eq!(
        world.call(Op::VolumeDelete { name: name.into(), only: None, keep_directory: false }),
        Ok(Reply::Done)
    );
}

/// Where the extents of all volumes lie, as the disk has it.
fn used(world: &World) -> BTreeSet<u64> {
    let mut disks = world.disks.clone();
    disks[0].flush();
    let store = sim::open(&mut disks).unwrap();
    let places = store.volumes().flat_map(|volume| {
        let extents = 0..volume.extents();
        extents.filter_map(|at| store.locate(volume.id(), at).unwrap().offset)
    });
    places.map(|offset| offset / Bytes::MIB).collect()
}

fn measured(world: &World) -> Option<Outcome> {
    let status = world.node.status(world.now());
    status.disks[0].measured.as_ref().map(|measured| measured.outcome.clone())
}

#[test]
fn a_disk_that_keeps_its_profile_is_fresh_and_one_that_is_slower_is_not() {
    for (percent, fresh, remeasure) in [(100, true, true), (130, false, true), (130, false, false)]
    {
        let config = Config { remeasure, ..config(Policy::SLACK) };
        let mut world = world(config, 1, Bytes::GIB, |_, profile, _| {
            Timing::Percent(Box::new(profile.clone()), percent)
        });
        create(&mut world, "v", SIZE);
        fill(&mut world, "v", 1, SIZE);
        read_all(&mut world, 2);
        let status = world.node.status(world.now()).disks[0].clone();
        assert_eq!(status.account.overruns > 0, !fresh, "{percent} %: {status:?}");
        assert!(status.observed.suspects.is_empty(), "what is slow everywhere has no slow extent");
        // It is measured again by itself, unless its profile shall stay, and from then on
        // nothing is beyond its bounds.
        let used = matches!(measured(&world), Some(Outcome::Used));
        assert_eq!(used, !fresh && remeasure, "{percent} %: {status:?}");
        let holds = status.observed.verdict == Verdict::Fresh;
        assert_eq!(holds, fresh || remeasure, "{status:?}");
    }
}

/// A slower disk is measured beside a stream, which keeps its contract with the wider
/// profile; that is stored, and nothing speaks against it from then on.
#[test]
fn a_stale_profile_is_replaced_by_a_wider_one_that_holds() {
    let mut world = world(config(Policy::SLACK), 1, Bytes::GIB, |_, profile, _| {
        Timing::Percent(Box::new(profile.clone()), 130)
    });
    create(&mut world, "v", SIZE);
    fill(&mut world, "v", 1, SIZE);
    let before = world.node.status(world.now()).disks[0].utilisation_ppm;
    world.add(Player::new(
        "v",
        1,
        contract(400_000, Bytes::kib(256), Bytes::ZERO),
        Bytes::kib(64),
        SIZE,
    ));
    let open = world.node.status(world.now()).disks[0].utilisation_ppm;
    assert!(open > before);
    assert_eq!(world.call(Op::Reprofile { disk: DiskIndex(0) }), Ok(Reply::Done));
    assert!(matches!(measured(&world), Some(Outcome::Running { .. })));
    world.run_for(Duration::from_secs(50));
    assert_eq!(measured(&world), Some(Outcome::Used));
    let status = world.node.status(world.now()).disks[0].clone();
    let told = status.measured.expect("it was measured");
    assert!(told.over > 0 && !told.excess.is_zero(), "{told:?}");
    assert!(told.parts.iter().all(|part| part.small < part.large), "{told:?}");
    assert!(status.utilisation_ppm > open, "the stream is admitted at the new costs");
    let seen = status.observed;
    assert_eq!((seen.verdict, seen.overruns), (Verdict::Fresh, 0), "{seen:?}");
    assert!(seen.commands > 20, "{seen:?}");

    // Stored: the next start has it.
    let mut disks = world.cut(&mut Random::new(1));
    let store = sim::open(&mut disks).unwrap();
    let text = String::from_utf8(store.profile(DiskIndex(0)).to_vec()).unwrap();
    let stored = Profile::parse(&text).unwrap();
    assert!(stored.confidence.starts_with("widened by"), "{}", stored.confidence);
    let whole = units::Lba::new(0)..units::Lba::containing(stored.capacity());
    let worst = |profile: &Profile| {
        profile.worst(whole.clone(), Bytes::kib(256), units::Direction::Read).as_nanos()
    };
    let honest = Profile::of(&model(stored.capacity()));
    assert!(worst(&stored) * 10 > worst(&honest) * 12, "{} {}", worst(&stored), worst(&honest));
}

#[test]
fn a_profile_that_open_contracts_do_not_fit_is_refused_by_name_and_used_when_they_have_closed() {
    let mut world = world(config(Policy::SLACK), 1, Bytes::GIB, |_, profile, _| {
        Timing::WithinBound(Box::new(profile.clone()), Random::new(3))
    });
    create(&mut world, "v", SIZE);
    fill(&mut world, "v", 1, SIZE);
    let contract = contract(500_000, Bytes::kib(256), Bytes::ZERO);
    let mut open = Vec::new();
    loop {
        let (volume, start) = ("v".into(), Bytes::ZERO);
        match world.call(Op::StreamOpen { volume, mode: Mode::Read, contract, start }) {
            Ok(Reply::Stream { stream, .. }) => open.push(stream),
            Err(Error::Refused(_)) => break,
            other => panic!("{other:?}"),
        }
    }
    assert!(open.len() >= 2, "{open:?}");
    let mut slower = Profile::of(&model(Bytes::GIB));
    let disk::Kind::HardDisk(kind) = &mut slower.kind else { panic!("a hard disk") };
    kind.overhead += Duration::from_millis(10);
    let set = Op::ProfileSet { disk: DiskIndex(0), profile: Box::new(slower.clone()) };
    let before = world.node.status(world.now()).disks[0].clone();
    match world.call(set.clone()) {
        Err(Error::ProfileRefused { streams, volumes, .. }) => {
            assert!(!streams.is_empty() && streams.iter().all(|one| open.contains(one)));
            assert!(volumes.is_empty());
        }
        other => panic!("{other:?}"),
    }
    let after = world.node.status(world.now()).disks[0].clone();
    assert_eq!((after.utilisation_ppm, after.slack), (before.utilisation_ppm, before.slack));
    // The honest one again is no change; of another disk it is none at all.
    let same = Box::new(Profile::of(&model(Bytes::GIB)));
    assert_eq!(world.call(Op::ProfileSet { disk: DiskIndex(0), profile: same }), Ok(Reply::Done));
    let other = Box::new(Profile::of(&model(Bytes::mib(512))));
    let refused = world.call(Op::ProfileSet { disk: DiskIndex(0), profile: other });
    assert!(matches!(refused, Err(Error::Invalid { .. })), "{refused:?}");
    for stream in open.drain(1..) {
        assert_eq!(world.call(Op::StreamClose { stream }), Ok(Reply::Done));
    }
    let one = world.node.status(world.now()).disks[0].utilisation_ppm;
    assert_eq!(world.call(set), Ok(Reply::Done));
    assert!(world.node.status(world.now()).disks[0].utilisation_ppm > one);
    let mut disks = world.cut(&mut Random::new(2));
    let store = sim::open(&mut disks).unwrap();
    assert_eq!(store.profile(DiskIndex(0)), slower.to_toml().as_bytes());
}

#[test]
fn bad_and_slow_extents_are_learned_and_new_volumes_get_others_while_there_are_any() {
    let mut world = world(config(Policy::SLACK), 1, Bytes::GIB, drive);
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
    let mut world = start(config(Policy::SLACK), disks, &profile);
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
        access: node::Access::default(),
    };
    assert!(matches!(world.call(more), Err(Error::PoolFull { .. } | Error::Store(_))));
}

/// Flushes that take 100 ms longer than foretold make requests late until two of them have
/// shown it; then their bound is wider, what is open is admitted with it, and the log
/// waits for its slack.
#[test]
fn flushes_that_take_longer_than_foretold_are_counted_with_what_they_take() {
    for remeasure in [true, false] {
        let config = Config { remeasure, ..config(Policy::SLACK) };
        let mut world = world(config, 1, Bytes::GIB, |_, profile, _| {
            Timing::Percent(Box::new(profile.clone()), 100)
        });
        create(&mut world, "v", SIZE);
        fill(&mut world, "v", 1, SIZE);
        create(&mut world, "w", SIZE);
        world.add(Recorder::new(
            "w",
            2,
            contract(50_000, Bytes::kib(64), Bytes::ZERO),
            Bytes::kib(64),
            SIZE,
        ));
        let contract = contract(60_000, Bytes::kib(64), Bytes::ZERO);
        for _ in 0..12 {
            world.add(Player::new("v", 1, contract, Bytes::kib(64), SIZE));
        }
        for number in 0..4 {
            world.add(Greedy::new("v", SIZE, Bytes::kib(64), 4, number));
        }
        world.run_for(Duration::from_secs(10));
        assert_eq!(common::late(&world), 0);
        world.disks[0].faults.push(Fault::SlowFlush { by: Duration::from_millis(100) });
        world.run_for(Duration::from_secs(10));
        let at_first = common::late(&world);
        world.run_for(Duration::from_secs(200));
        let late = common::late(&world);
        let status = world.node.status(world.now()).disks[0].clone();
        if remeasure {
            assert_eq!(late, at_first, "once it is known, nobody is late");
            assert_eq!(status.measured.map(|measured| measured.outcome), Some(Outcome::Used));
        } else {
            assert!(late > 10 * at_first.max(1), "the test shows nothing: {late}");
        }
    }
}

/// A disk whose flushes take seconds is not made the measure of all commits.
#[test]
fn flushes_that_would_put_commits_far_apart_do_not_widen_the_profile() {
    let mut world = world(config(Policy::SLACK), 1, Bytes::GIB, |_, profile, _| {
        Timing::Percent(Box::new(profile.clone()), 100)
    });
    create(&mut world, "v", SIZE);
    fill(&mut world, "v", 1, SIZE);
    let used = |world: &World| world.node.status(world.now()).disks[0].utilisation_ppm;
    let before = used(&world);
    world.disks[0].faults.push(Fault::SlowFlush { by: Duration::from_secs(5) });
    for _ in 0..4 {
        fill(&mut world, "v", 2, Bytes::MIB);
    }
    assert_eq!((used(&world), measured(&world)), (before, None));
}

/// Where the log lies on extents that take longer than the slack can ever be, a record waited for ever, and with
/// it everybody's bytes. It goes after a while, and others are late for it.
#[test]
fn records_are_written_although_there_is_no_slack_for_the_extents_of_the_log() {
    // Of one stream it is known that there never will be; of several that are apart it is not.
    for (streams, percent) in [(1, 1_000), (1, 600), (2, 2_000), (2, 1_500), (2, 1_000)] {
        records_are_written_on_slow_extents(Policy::SLACK, streams, percent);
    }
    let is_written = |&policy: &Policy| {
        [1_000, 3_000, 10_000]
            .map(|percent| records_are_written_on_slow_extents(policy, 1, percent))
            == [true; 3]
    };
    let kept: Vec<&str> = policies::ALL
        .iter()
        .filter(|policy| is_written(policy))
        .map(|policy| policy.name)
        .collect();
    let keep = ["slack", "delta-l", "fcfs", "edl", "time-cycle", "sweeps", "ucsb"];
    assert_eq!(kept, keep, "those that take the contract");
}

/// False where the policy refuses the contract.
fn records_are_written_on_slow_extents(policy: Policy, streams: u64, percent: u64) -> bool {
    let mut world = world(config(policy), 1, Bytes::GIB, |_, profile, _| {
        Timing::Percent(Box::new(profile.clone()), 100)
    });
    create(&mut world, "v", SIZE);
    fill(&mut world, "v", 1, SIZE);
    let rate = if policy == Policy::SLACK { 500_000 } else { 50_000 };
    let contract = contract(rate / streams, Bytes::kib(64), Bytes::ZERO);
    let mut tallies = Vec::new();
    for stream in 0..streams {
        let name = format!("w{stream}");
        create(&mut world, &name, Bytes::mib(150));
        let recorder = Recorder::new(&name, 2, contract, Bytes::kib(64), Bytes::mib(150));
        tallies.push(recorder.tally());
        world.add(recorder);
    }
    world.run_for(Duration::from_secs(10));
    let (from, to) = (Bytes::ZERO, place(&world.disks[0], 0));
    world.disks[0].faults.push(Fault::Slow { from, to, percent });
    world.run_for(Duration::from_secs(60));
    let status = world.node.status(world.now());
    if policy != Policy::SLACK && status.streams.len() < streams as usize {
        return false;
    }
    let slack = status.disks[0].slack;
    let suspects = observed(&world).suspects;
    let is_slow = suspects.iter().any(|suspect| suspect.offset() < to);
    let case = format!("{policy:?}, {streams} streams, {percent} %, slack {slack}");
    // Others may never have a command of the log that is slow alone.
    assert!(is_slow || policy != Policy::SLACK, "{case}: {suspects:?}");
    let durable = || tallies.iter().map(|tally| tally.borrow().durable).collect::<Vec<_>>();
    for _ in 0..6 {
        let before = durable();
        world.run_for(Duration::from_secs(20));
        let now = durable();
        let all = before.iter().zip(&now).all(|(before, now)| now > before);
        assert!(all, "in 20 s: {before:?}, {now:?}, {case}");
    }
    true
}
