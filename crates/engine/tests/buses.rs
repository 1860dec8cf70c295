//! What an operator says of a bus when a pool is made lasts in the disks' labels, is seen in
//! the status, and is named where a contract is refused; disks that are one drive are told of.
#![allow(clippy::print_stdout)] // what was not tried

use crate::common::*;
use engine::{CreateOptions, DeviceSpec, Pool, PoolError};
use node::{Error, Mode, Op};
use std::os::unix::fs::MetadataExt;
use std::process::Command;
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

/// Two files on one file system are one drive's: each disk is promised all of its time. It
/// is accepted, since tests and demonstrations do so, and told at making and at opening.
#[test]
fn files_on_one_drive_are_told_of() {
    let dir = Dir::new();
    let disks = [dir.file("a"), dir.file("b")];
    let created = Pool::create("tape", &disks, &untimed(64)).unwrap();
    let device = std::fs::metadata(dir.path("a")).unwrap().dev();
    let known = format!("/sys/dev/block/{}:{}", libc::major(device), libc::minor(device));
    if !std::path::Path::new(&known).exists() {
        return skips::not_run(format!("{} is on no device", dir.path("a").display()));
    }
    let told = |warnings: &[String]| warnings.iter().filter(|w| w.contains("one drive")).count();
    assert_eq!(told(&created.warnings), 1, "{:?}", created.warnings);
    let pool = Pool::open(&disks, options()).unwrap();
    assert_eq!(told(pool.warnings()), 1, "{:?}", pool.warnings());
    pool.shutdown().unwrap();
    // Emulated disks keep their model's time, whatever their files lie on.
    let emulated = [dir.emulated("c"), dir.emulated("d")];
    let created = Pool::create("models", &emulated, &size(64)).unwrap();
    assert_eq!(told(&created.warnings), 0);
}

/// A loop device is the pool's whole drive, and the drive under its file is not: images go on
/// working beside each other. Needs root and a free loop device; says so where there is none.
#[test]
fn a_loop_device_is_a_drive_and_is_taken_beside_a_file() {
    let dir = Dir::new();
    std::fs::File::create(dir.path("image")).unwrap().set_len(64 << 20).unwrap();
    let made = Command::new("losetup").args(["-f", "--show"]).arg(dir.path("image")).output();
    let device = match made {
        Ok(made) if made.status.success() => {
            String::from_utf8(made.stdout).unwrap().trim().to_owned()
        }
        other => {
            return skips::not_run(format!("needs root and a loop device: {other:?}"));
        }
    };
    let disks = [device.parse::<DeviceSpec>().unwrap(), dir.file("b")];
    let drives = engine::pool_drives(&disks);
    let created = Pool::create("tape", &disks, &untimed(64));
    let removed = Command::new("losetup").args(["-d", &device]).status();
    let name = device.trim_start_matches("/dev/").to_owned();
    assert!(drives.contains(&(name, device.into())), "the loop device itself, too: {drives:?}");
    assert!(created.is_ok(), "{created:?}");
    assert!(removed.unwrap().success());
}
