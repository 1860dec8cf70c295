//! The buses of a pool that serves: said, said anew, and taken back, beside open contracts.

use crate::common::*;
use disk::{BusOrder, BusPlan};
use node::{DiskIndex, Error, Mode, Op, Policy, Reply, StreamId};
use sim::World;
use units::{Bytes, Duration, Rate};

const SIZE: Bytes = Bytes::mib(12);

fn pool() -> World {
    let config = node::Config {
        commit_interval: Duration::from_secs(8),
        memory: Bytes::mib(256),
        ..config(Policy::SLACK)
    };
    let mut world = world(config, 2, Bytes::GIB, drive);
    create(&mut world, "v", SIZE);
    fill(&mut world, "v", 1, SIZE);
    world
}

/// As many as fit.
fn open_all(world: &mut World) -> Vec<StreamId> {
    let mut open = Vec::new();
    loop {
        let contract = contract(400_000, Bytes::kib(256), Bytes::ZERO);
        let (mode, start) = (Mode::Read, Bytes::ZERO);
        let stream = Op::StreamOpen { volume: "v".into(), mode, contract, start };
        match world.call(stream) {
            Ok(Reply::Stream { stream, .. }) => open.push(stream),
            refused => {
                assert!(matches!(refused, Err(Error::Refused(_))), "{refused:?}");
                return open;
            }
        }
    }
}

fn set(world: &mut World, disks: &[u16], rate: Option<u64>) -> Result<Reply, Error> {
    let bus = rate.map(|rate| {
        let plan = BusPlan::new("scsi", Rate::per_second(rate), disks.len() as u32);
        Box::new(BusPlan { order: BusOrder::Commands, ..plan })
    });
    world.call(Op::BusSet { disks: disks.iter().copied().map(DiskIndex).collect(), bus })
}

fn rates(world: &World) -> Vec<Option<u64>> {
    let status = world.node.status(world.now());
    let rate = |disk: &node::DiskStatus| disk.bus.as_ref().map(|bus| bus.plan().rate.get());
    status.disks.iter().map(rate).collect()
}

/// An operator finds out that two disks share a bus, says so, and corrects it.
#[test]
fn contracts_are_admitted_again_with_the_wait_for_a_bus_that_is_said_while_the_pool_serves() {
    let mut world = pool();
    let alone = open_all(&mut world);
    assert!(alone.len() > 3, "{}", alone.len());
    // All of them beside the wait are too many: they are named, and nothing changes.
    let refused = set(&mut world, &[0, 1], Some(10_000_000)).unwrap_err();
    let Error::ProfileRefused { streams, refusal, .. } = &refused else { panic!("{refused:?}") };
    let named = refusal.bus.as_ref().map(|bus| bus.plan().rate.get());
    assert_eq!(named, Some(10_000_000), "the bus that was tried");
    assert!(streams.iter().all(|one| alone.contains(one)) && !streams.is_empty());
    assert_eq!(rates(&world), [None, None]);
    for stream in alone.iter().copied() {
        assert_eq!(world.call(Op::StreamClose { stream }), Ok(Reply::Done));
    }
    assert_eq!(set(&mut world, &[0, 1], Some(10_000_000)), Ok(Reply::Done));
    assert_eq!(rates(&world), [Some(10_000_000); 2]);
    let slow = open_all(&mut world);
    assert!(slow.len() < alone.len() && !slow.is_empty(), "{} {}", slow.len(), alone.len());
    // Another rate for both at once; what is open fits the better.
    assert_eq!(set(&mut world, &[0, 1], Some(80_000_000)), Ok(Reply::Done));
    assert_eq!(rates(&world), [Some(80_000_000); 2]);
    // A bus has all of its disks, and the pool has no other.
    let one = set(&mut world, &[0], Some(20_000_000)).unwrap_err();
    assert!(matches!(one, Error::Invalid { what: "bus", .. }), "{one:?}");
    let none = set(&mut world, &[0, 2], Some(20_000_000)).unwrap_err();
    assert_eq!(none, Error::NoSuchDisk { disk: DiskIndex(2), disks: 2 });
    // Taken back, as many fit as before, and the profiles on the disks say so.
    assert_eq!(set(&mut world, &[0, 1], None), Ok(Reply::Done));
    assert_eq!(rates(&world), [None, None]);
    for stream in slow {
        assert_eq!(world.call(Op::StreamClose { stream }), Ok(Reply::Done));
    }
    assert_eq!(open_all(&mut world).len(), alone.len());
}
