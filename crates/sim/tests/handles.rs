//! A contract of one handle's own: answers in time for what is asked by it, whatever others do
//! on the same volume; it is decided when the handle is opened and ends with it.
#![allow(clippy::print_stdout)] // the figures are part of the result

use crate::common::*;
use crate::programs::{Adversary, InTime, Keeper, Manner, user};
use node::{Error, HandleId, HandleStatus, Op, Policy, Reply, Service, Who};
use sim::{Greedy, Random, World};
use std::cell::RefCell;
use std::rc::Rc;
use units::{Bytes, Duration};

const SIZE: Bytes = Bytes::mib(4);

fn service_of(contract: InTime) -> Service {
    let InTime { len, within, every } = contract;
    Service::Latency { len, within, every }
}

fn pool(disks: usize, memory: Bytes) -> World {
    let config = node::Config { memory, ..config(Policy::SLACK) };
    let mut world = world(config, disks, Bytes::GIB, drive);
    for name in ["p", "g"] {
        create(&mut world, name, SIZE);
        fill(&mut world, name, 9, SIZE);
    }
    world
}

fn open(world: &mut World, contract: InTime) -> Result<HandleId, Error> {
    let op = Op::HandleOpen { volume: "p".into(), service: service_of(contract) };
    match world.call_as(user(7), op) {
        Ok(Reply::Handle { handle }) => Ok(handle),
        Ok(other) => panic!("{other:?}"),
        Err(error) => Err(error),
    }
}

fn handles(world: &World) -> Vec<HandleStatus> {
    world.node.volume("p").expect("it was made").handles
}

/// What admission and memory have promised.
fn promised(world: &World) -> String {
    let status = world.node.status(world.now());
    let disks: Vec<_> =
        status.disks.iter().map(|disk| (disk.utilisation_ppm, disk.slack)).collect();
    format!("{disks:?} {:?}", status.memory.services)
}

const ORDINARY: InTime = InTime {
    len: Bytes::kib(4),
    within: Duration::from_millis(300),
    every: Duration::from_millis(600),
};

/// Two programs with a handle each, on one volume, beside greedy programs on the same volume
/// without one and others that have all the memory.
#[test]
fn each_handle_is_answered_in_time_beside_greedy_programs_on_its_own_volume() {
    let mut world = pool(2, Bytes::mib(32));
    let contracts = [ORDINARY, InTime { within: Duration::from_millis(450), ..ORDINARY }];
    let mut seen = Vec::new();
    for (number, contract) in contracts.into_iter().enumerate() {
        let handle = open(&mut world, contract).unwrap();
        let manner = Manner { writes: 30, odd: 30, ..Manner::PLAIN };
        let keeper = Keeper::new("p", SIZE, contract, manner, number as u64);
        let keeper = keeper.on_disks(2).by(handle);
        seen.push((handle, keeper.seen()));
        world.add(keeper);
    }
    for number in 0..4 {
        world.add(Adversary::new(1000, "p", SIZE, 8, 50 + number));
    }
    let greedy = Greedy::new("g", SIZE, Bytes::kib(256), 8, 3);
    let tally = greedy.tally();
    world.add(greedy);
    world.run_for(Duration::from_secs(60));
    for ((handle, seen), status) in seen.iter().zip(handles(&world)) {
        let seen = seen.borrow();
        println!("{seen:?}");
        assert_eq!((&seen.errors[..], seen.late, status.account.late_requests), (&[][..], 0, 0));
        assert!(seen.answers >= 20, "{seen:?}");
        assert_eq!(
            (status.handle, status.uid, status.account.requests),
            (*handle, 7, seen.answers)
        );
        assert_eq!(status.account.latency_max, seen.longest);
        assert_eq!(status.shares.len(), 2, "a part of each disk");
    }
    assert!(tally.borrow().operations > 100, "the others go on");
    let volume = world.node.volume("p").unwrap();
    assert_eq!((volume.service, volume.account.requests), (Service::default(), 0));
    // They end while requests wait: these are answered, as everybody's.
    let before = seen.iter().map(|(_, seen)| seen.borrow().answers).sum::<u64>();
    for (handle, _) in &seen {
        assert_eq!(world.call(Op::HandleClose { handle: *handle }), Ok(Reply::Done));
    }
    world.run_for(Duration::from_secs(20));
    let after = seen.iter().map(|(_, seen)| seen.borrow().answers).sum::<u64>();
    assert!(after > before && seen.iter().all(|(_, seen)| seen.borrow().errors.is_empty()));
    assert_eq!(handles(&world).len(), 0);
    assert_eq!(world.node.status(world.now()).memory.services, Bytes::ZERO);
}

/// The canary: the same program without the handle's contract is not answered in time.
#[test]
fn the_same_program_without_its_handle_waits_for_the_others() {
    let mut world = pool(1, Bytes::mib(32));
    for number in 0..4 {
        world.add(Adversary::new(1000, "p", SIZE, 8, 50 + number));
    }
    let keeper = Keeper::new("p", SIZE, ORDINARY, Manner::PLAIN, 1);
    let seen: Rc<RefCell<_>> = keeper.seen();
    world.add(keeper);
    world.run_for(Duration::from_secs(60));
    assert!(seen.borrow().late > 0, "{:?}", seen.borrow());
}

/// A program asks for more than there is, goes, and comes again.
#[test]
fn a_handle_that_does_not_fit_is_refused_and_one_that_is_closed_gives_everything_back() {
    let mut world = pool(1, Bytes::mib(32));
    let before = promised(&world);
    let mut open_ones = Vec::new();
    let refused = loop {
        match open(&mut world, ORDINARY) {
            Ok(handle) => open_ones.push(handle),
            Err(error) => break error,
        }
    };
    let Error::Refused(refusal) = refused else { panic!("{refused:?}") };
    assert!(open_ones.len() >= 2 && refusal.deadline.is_some(), "{refusal:?}");
    let full = promised(&world);
    assert!(open(&mut world, ORDINARY).is_err());
    assert_eq!(promised(&world), full, "a refusal changes nothing");
    // What the memory is not there for is refused, too, with its figures.
    let slow = InTime {
        len: Bytes::mib(1),
        within: Duration::from_secs(60),
        every: Duration::from_secs(60),
    };
    let mut small = pool(1, Bytes::mib(16));
    let mut most = 0;
    let refused = loop {
        match open(&mut small, slow) {
            Ok(_) => most += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, Error::NoServiceMemory { .. }) && most == 2, "{most}: {refused:?}");
    for handle in open_ones {
        assert_eq!(world.call(Op::HandleClose { handle }), Ok(Reply::Done));
        assert_eq!(world.call(Op::HandleClose { handle }), Ok(Reply::Done), "it has ended before");
    }
    assert_eq!((promised(&world), handles(&world).len()), (before, 0));
    for service in [
        Service::default(),
        Service::Rate {
            rate: units::Rate::per_second(1),
            block: Bytes::kib(4),
            period: Duration::from_secs(1),
        },
    ] {
        let asked = world.call(Op::HandleOpen { volume: "p".into(), service });
        assert!(matches!(asked, Err(Error::Invalid { .. })), "{asked:?}");
    }
}

/// Who may neither read nor write a volume has no contract on it.
#[test]
fn a_handle_is_for_who_may_read_or_write_the_volume() {
    let mut world = pool(1, Bytes::mib(32));
    let op = |volume: &str| Op::HandleOpen { volume: volume.into(), service: service_of(ORDINARY) };
    let stranger = Who::user(9, 9, []);
    let refused = world.call_as(stranger.clone(), op("p"));
    // He is not told that it is there.
    assert!(matches!(refused, Err(Error::NoSuchVolume { .. })), "{refused:?}");
    for mode in [0o604, 0o602] {
        let access = node::Access { mode: Some(mode), ..Default::default() };
        assert_eq!(world.call(Op::VolumeAccess { name: "p".into(), access }), Ok(Reply::Done));
        let opened = world.call_as(stranger.clone(), op("p"));
        assert!(matches!(opened, Ok(Reply::Handle { .. })), "{mode:o}: {opened:?}");
    }
}

/// Programs open, ask, close in the midst of it, and volumes grow and go: nothing is lost, and
/// in the end nothing is held.
#[test]
fn handles_come_and_go_while_operations_are_under_way() {
    for seed in 0..20 {
        let mut random = Random::new(seed);
        let mut world = pool(2, Bytes::mib(32));
        let before = promised(&world);
        let mut open_ones = Vec::new();
        for step in 0..40 {
            match random.below(5) {
                0 | 1 => open_ones.extend(open(&mut world, ORDINARY).ok()),
                2 if !open_ones.is_empty() => {
                    let handle =
                        open_ones.swap_remove(random.below(open_ones.len() as u64) as usize);
                    assert_eq!(world.call(Op::HandleClose { handle }), Ok(Reply::Done));
                }
                3 => {
                    let size = SIZE + Bytes::mib(step / 8);
                    let may_cut = false;
                    let _ = world.call(Op::VolumeResize { name: "p".into(), size, may_cut });
                }
                _ => {
                    let handle = open_ones.last().copied();
                    let who = Who { handle, ..user(7) };
                    let len = Bytes::kib(4) * (1 + random.below(16));
                    let offset = Bytes::kib(4) * random.below(512);
                    let read = Op::Read { volume: "p".into(), offset, len, priority: None };
                    let Ok(Reply::Data { bytes: span, .. }) = world.call_as(who, read) else {
                        panic!("it is read")
                    };
                    assert_eq!(world.call(Op::Release { span }), Ok(Reply::Done));
                }
            }
        }
        assert_eq!(
            world.call(Op::VolumeDelete { name: "p".into(), only: None, keep_directory: false }),
            Ok(Reply::Done)
        );
        assert_eq!(promised(&world), before, "seed {seed}");
        for handle in open_ones {
            assert_eq!(world.call(Op::HandleClose { handle }), Ok(Reply::Done));
        }
    }
}
