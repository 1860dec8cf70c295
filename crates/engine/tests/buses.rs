//! What an operator says of a bus when a pool is made lasts in the disks' labels, is seen in
//! the status, and is named where a contract is refused.

mod common;

use common::*;
use engine::{CreateOptions, DeviceSpec, Pool, PoolError};
use node::{Error, Mode, Op};
use units::{Bytes, Duration};

fn disks(dir: &Dir) -> Vec<DeviceSpec> {
    ["a", "b", "c"].map(|name| dir.file(name)).to_vec()
}

fn on(bus: &str) -> CreateOptions {
    CreateOptions { buses: vec![bus.parse().unwrap()], ..untimed(64) }
}

/// Two disks of three are behind a bridge of 40 MB/s. The pool is made, closed and opened:
/// the third can do what it could, and the two count 8 commands of the other one.
#[test]
fn a_bus_is_kept_with_the_pool_and_named_where_it_is_the_cause() {
    let dir = Dir::new();
    let disks = disks(&dir);
    let created = Pool::create("tape", &disks, &on("usb,rate=40MB/s,disks=0+1")).unwrap();
    assert!(created.disks[0].1.bus.is_some() && created.disks[2].1.bus.is_none());
    let pool = Pool::open(&disks, options()).unwrap();
    let status = pool.status();
    let bus = status.disks[1].bus.as_ref().expect("it is on the bus");
    assert_eq!((bus.plan().name.as_str(), bus.plan().disks, bus.plan().depth), ("usb", 2, 8));
    // 8 MiB at 40 MB/s.
    assert_eq!(bus.wait(Bytes::kib(4)), Duration::from_nanos(8 * 26_214_400));
    assert!(status.disks[2].bus.is_none());

    let open = |name: &str, disk: u16| {
        let placement =
            node::Placement { disks: vec![node::DiskIndex(disk)], ..Default::default() };
        let size = Bytes::mib(8);
        let access = Default::default();
        let op = Op::VolumeCreate { name: name.into(), size, placement, access };
        pool.call(op).unwrap();
        // A block every 210 ms, which is no longer than it may wait for the bus.
        let contract = contract("5MB/s", Bytes::MIB);
        let (volume, start) = (name.into(), Bytes::ZERO);
        pool.call(Op::StreamOpen { volume, mode: Mode::Read, contract, start })
    };
    assert!(open("alone", 2).is_ok());
    match open("shared", 1) {
        Err(Error::Refused(refusal)) => {
            let said = refusal.to_string();
            assert!(said.contains("shares the bus usb (40 MB/s) with 1 other"), "{said}");
        }
        other => panic!("{other:?}"),
    }
    pool.shutdown().unwrap();
}

/// Nothing is made of disks whose buses cannot be.
#[test]
fn a_pool_on_an_impossible_bus_is_not_made() {
    let dir = Dir::new();
    let refused = Pool::create("tape", &disks(&dir), &on("usb,rate=40MB/s,disks=0+3"));
    assert!(matches!(refused, Err(PoolError::Bus { why }) if why.contains("there is no disk 3")));
    assert!(!dir.path("a").exists(), "what was made is taken back");
}
