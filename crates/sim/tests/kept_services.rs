//! What a volume was given to be served by is kept with it: contracts hold from the first
//! request after a power cut, and one that does not fit any more is named and tried again.
#![allow(clippy::print_stdout)] // the figures are part of the result

use crate::common::*;
use crate::programs::{InTime, Keeper, Manner, user};
use disk::Profile;
use node::{
    Config, DiskSetup, Error, KeptOut, Mode, Node, Op, Policy, Priority, Reply, Service, Status,
    VolumeStatus,
};
use sim::{Greedy, Random, World};
use units::{Bytes, Duration};

const SIZE: Bytes = Bytes::mib(2);
const CAPACITY: Bytes = Bytes::GIB;

fn service_of(contract: InTime) -> Service {
    let InTime { len, within, every } = contract;
    Service::Latency { len, within, every }
}

fn serve(world: &mut World, uid: u32, name: &str, service: Service) -> Result<Reply, Error> {
    world.call_as(user(uid), Op::VolumeService { name: name.into(), service })
}

fn volume(world: &World, name: &str) -> VolumeStatus {
    world.node.volume(name).expect("it was made")
}

/// The power goes, and the pool is served again by a node of this configuration.
fn served_again(world: &mut World, config: Config, seed: u64) {
    let profile = Profile::of(&model(CAPACITY));
    let now = world.now() + Duration::from_secs(5);
    let again = world.cut_and_return(now, &mut Random::new(seed), |disks| {
        let store = sim::open(disks).map_err(|error| error.to_string())?;
        let setups = disks.iter().map(|_| DiskSetup::new(profile.clone())).collect();
        Node::new(config, setups, store).map_err(|error| error.to_string())
    });
    again.unwrap();
}

/// A volume, how it is served, whose that is, and what it has of each disk.
type Served = (String, Service, Option<u32>, Vec<(node::DiskIndex, u64)>);

fn services(status: &Status) -> Vec<Served> {
    let of = |volume: &VolumeStatus| {
        (volume.name.clone(), volume.service, volume.given_by, volume.shares.clone())
    };
    status.volumes.iter().map(of).collect()
}

/// A pool of two disks with twenty volumes, some under contract, and streams, is killed as by a
/// power cut. Greedy programs come with the first requests of those who have contracts, at the
/// very instant at which it is served again.
#[test]
fn contracts_of_twenty_volumes_hold_from_the_first_request_after_a_power_cut() {
    let config = Config { memory: Bytes::mib(64), ..config(Policy::SLACK) };
    let mut world = world(config, 2, CAPACITY, drive);
    for number in 0..20 {
        create(&mut world, &format!("v{number}"), SIZE);
        fill(&mut world, &format!("v{number}"), number, SIZE);
    }
    let time = Duration::from_millis;
    let contracts = [300, 400, 500].map(|within| InTime {
        len: Bytes::kib(4),
        within: time(within),
        every: time(within + 300),
    });
    for (number, contract) in contracts.into_iter().enumerate() {
        let given = serve(&mut world, 1000, &format!("v{number}"), service_of(contract));
        assert_eq!(given, Ok(Reply::Done));
    }
    let (rate, block, period) =
        (units::Rate::per_second(400_000), Bytes::kib(64), Duration::from_secs(1));
    let others = [
        ("v3", Service::Rate { rate, block, period }),
        ("v4", Service::BestEffort(Priority::Background)),
        ("v5", Service::BestEffort(Priority::Interactive)),
    ];
    for (name, service) in others {
        assert_eq!(serve(&mut world, 7, name, service), Ok(Reply::Done));
    }
    // Given and taken back, and given to a volume that is gone.
    let (first, default) = (service_of(contracts[0]), Service::default());
    assert_eq!(serve(&mut world, 7, "v6", first), Ok(Reply::Done));
    assert_eq!(serve(&mut world, 7, "v6", default), Ok(Reply::Done));
    assert_eq!(serve(&mut world, 7, "v19", first), Ok(Reply::Done));
    assert_eq!(
        world.call(Op::VolumeDelete { name: "v19".into(), only: None, keep_directory: false }),
        Ok(Reply::Done)
    );
    for (name, start) in [("v7", 0), ("v8", 1)] {
        let contract = contract(300_000, Bytes::kib(256), Bytes::ZERO);
        let start = Bytes::mib(start);
        let (volume, mode) = (name.into(), Mode::Read);
        let opened = world.call(Op::StreamOpen { volume, mode, contract, start });
        assert!(matches!(opened, Ok(Reply::Stream { .. })), "{opened:?}");
    }
    let before = services(&world.node.status(world.now()));

    served_again(&mut world, config, 1);
    let after = world.node.status(world.now());
    assert_eq!(services(&after), before);
    assert_eq!(volume(&world, "v0").given_by, Some(1000));
    assert_eq!((volume(&world, "v6").given_by, world.node.kept_out().count()), (None, 0));
    let greedy = Greedy::new("v3", SIZE, Bytes::kib(64), 4, 5);
    let tally = greedy.tally();
    world.add(greedy);
    for number in 10..13 {
        world.add(Greedy::new(&format!("v{number}"), SIZE, Bytes::kib(256), 8, number));
    }
    let mut seen = Vec::new();
    for (number, contract) in contracts.into_iter().enumerate() {
        let manner = Manner { writes: 30, ..Manner::PLAIN };
        let keeper = Keeper::new(&format!("v{number}"), SIZE, contract, manner, 70 + number as u64);
        let keeper = keeper.on_disks(2);
        seen.push(keeper.seen());
        world.add(keeper);
    }
    world.run_for(Duration::from_secs(60));
    for (number, seen) in seen.iter().enumerate() {
        let account = volume(&world, &format!("v{number}")).account;
        let seen = seen.borrow();
        assert_eq!((&seen.errors[..], seen.late, account.late_requests), (&[][..], 0, 0));
        assert!(seen.answers > 50 && account.requests == seen.answers, "{seen:?} {account:?}");
        println!("v{number}: {} answers, the longest {}", seen.answers, seen.longest);
    }
    let got = tally.borrow().operations * 64 * 1024 / 60;
    assert!(got >= 400_000, "{got} B/s of 400000 under contract");
}

/// Volumes with contracts of answers in time, one of which does not fit when the pool is served
/// by a daemon that is told that its host is later.
fn too_much() -> (World, Config, [InTime; 3]) {
    let config = Config { memory: Bytes::mib(64), ..config(Policy::SLACK) };
    let mut world = world(config, 1, CAPACITY, drive);
    let contracts = [320, 340, 900].map(|within| InTime {
        len: Bytes::kib(64),
        within: Duration::from_millis(within),
        every: Duration::from_millis(1_000),
    });
    for (name, contract) in ["a", "b", "c"].into_iter().zip(contracts) {
        create(&mut world, name, SIZE);
        fill(&mut world, name, 3, SIZE);
        assert_eq!(serve(&mut world, 5, name, service_of(contract)), Ok(Reply::Done));
    }
    (world, config, contracts)
}

/// The least host latency with which the pool is served and somebody is kept out.
fn late_host(config: Config) -> (World, Config, [InTime; 3]) {
    for late in (5..300).step_by(5) {
        let (mut world, _, contracts) = too_much();
        let config = Config { host_latency: Duration::from_millis(late), ..config };
        served_again(&mut world, config, late);
        if world.node.kept_out().count() == 1 {
            return (world, config, contracts);
        }
    }
    panic!("everything fits, or nothing");
}

/// The figures are in the refusal, the others have theirs, and the volume goes on.
#[test]
fn a_contract_that_does_not_fit_any_more_is_named_and_its_volume_served_as_best_effort() {
    let (_, config, _) = too_much();
    let (mut world, config, contracts) = late_host(config);
    let kept_out: Vec<(String, KeptOut)> = world.node.kept_out().collect();
    let [(name, KeptOut { service, why })] = &kept_out[..] else { panic!("{kept_out:?}") };
    println!("{name} does not fit with {}: {why}", config.host_latency);
    let number = ["a", "b", "c"].iter().position(|one| one == name).unwrap();
    assert_eq!(*service, service_of(contracts[number]));
    assert!(matches!(&**why, Error::Refused(refusal) if refusal.deadline.is_some()), "{why:?}");
    let status = volume(&world, name);
    assert_eq!((status.service, status.given_by), (Service::default(), Some(5)));
    assert_eq!((status.shares.len(), status.operations), (0, 0), "it holds nothing");
    assert_eq!(status.kept_out.as_ref(), Some(&kept_out[0].1));
    let read =
        Op::Read { volume: name.clone(), offset: Bytes::ZERO, len: SIZE / 4, priority: None };
    let Ok(Reply::Data { bytes: span, .. }) = world.call(read) else { panic!("it is served") };
    assert_eq!(world.call(Op::Release { span }), Ok(Reply::Done));
    for other in ["a", "b", "c"].into_iter().filter(|other| other != name) {
        let status = volume(&world, other);
        assert!(status.kept_out.is_none() && status.shares.len() == 1, "{status:?}");
    }

    // Nothing was given back: it is not tried, and it is kept out after the next start, too.
    world.run_for(Duration::from_secs(30));
    assert_eq!(world.node.kept_out().count(), 1);
    served_again(&mut world, config, 2);
    assert_eq!(world.node.kept_out().collect::<Vec<_>>(), kept_out);

    // Another contract ends: it is tried a second later, and has its own.
    let other = if name == "a" { "b" } else { "a" };
    assert_eq!(serve(&mut world, 5, other, Service::default()), Ok(Reply::Done));
    assert_eq!(world.node.kept_out().count(), 1, "not in the call of another");
    world.run_for(node::limits::KEPT_OUT_PAUSE);
    let status = volume(&world, name);
    assert_eq!((status.service, status.kept_out), (*service, None));
    assert_eq!(status.shares.len(), 1);
    // What was given back is not there any more, and this is kept.
    served_again(&mut world, config, 3);
    assert_eq!(volume(&world, other).service, Service::default());
    assert_eq!((volume(&world, name).service, world.node.kept_out().count()), (*service, 0));
}

/// Who is kept out may be given another service, or be deleted, and is then kept out no more.
#[test]
fn setting_a_volume_anew_or_deleting_it_ends_what_does_not_fit() {
    for delete in [false, true] {
        let (_, config, _) = too_much();
        let (mut world, config, _) = late_host(config);
        let (name, _) = world.node.kept_out().next().unwrap();
        if delete {
            assert_eq!(
                world.call(Op::VolumeDelete {
                    name: name.clone(),
                    only: None,
                    keep_directory: false
                }),
                Ok(Reply::Done)
            );
        } else {
            let lower = InTime {
                len: Bytes::kib(4),
                within: Duration::from_secs(4),
                every: Duration::from_secs(4),
            };
            assert_eq!(serve(&mut world, 6, &name, service_of(lower)), Ok(Reply::Done));
            assert_eq!(volume(&world, &name).given_by, Some(6));
        }
        assert_eq!(world.node.kept_out().count(), 0);
        served_again(&mut world, config, 4);
        assert_eq!(world.node.kept_out().count(), 0);
        assert_eq!(world.node.volume(&name).is_some(), !delete);
    }
}

/// A refusal changes nothing, now or after the next start.
#[test]
fn a_service_that_is_refused_is_not_kept() {
    let (mut world, config, contracts) = too_much();
    create(&mut world, "d", SIZE);
    let before = services(&world.node.status(world.now()));
    let impossible = Service::Latency {
        len: Bytes::kib(64),
        within: Duration::from_millis(2),
        every: Duration::from_millis(2),
    };
    for name in ["a", "d"] {
        let refused = serve(&mut world, 9, name, impossible);
        assert!(matches!(refused, Err(Error::Refused(_))), "{refused:?}");
    }
    assert_eq!(services(&world.node.status(world.now())), before);
    served_again(&mut world, config, 5);
    assert_eq!(services(&world.node.status(world.now())), before);
    assert_eq!(volume(&world, "a").service, service_of(contracts[0]));
}
