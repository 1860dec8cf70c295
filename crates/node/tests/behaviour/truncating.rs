//! What is recorded is cut where it is: the volume keeps all of its space, and no byte comes back.

use crate::driver::*;
use node::{Error, Mode, Op, Placement};
use units::Bytes;

const FILM: &str = "film";

fn truncate(length: u64) -> Op {
    Op::VolumeTruncate { name: FILM.into(), length: Bytes::new(length), unless_changed: None }
}

fn extend(length: Bytes) -> Op {
    Op::VolumeExtend { name: FILM.into(), length }
}

/// A volume that has all of a pool's space, of which 3 MiB and a bit are recorded.
fn all_of_the_pool() -> (Driver, Bytes) {
    let mut driver = Setup::new(1).open();
    let size = driver.node.status(driver.now).disks[0].free;
    driver.volume(FILM, size);
    for at in 0..3 {
        driver.write(FILM, 1, Bytes::mib(at), Bytes::MIB);
    }
    driver.write(FILM, 1, Bytes::mib(3), Bytes::new(5000));
    driver.done(Op::Sync);
    (driver, size)
}

#[track_caller]
fn is_whole(driver: &mut Driver, size: Bytes) {
    assert_eq!(driver.node.volume(FILM).unwrap().size, size);
    let other = driver.ask(create("other", Bytes::MIB, Placement::default()));
    assert!(matches!(other, Err(Error::PoolFull { .. })), "{other:?}");
}

/// The volume has its first bytes, then zeros up to 3 MiB and a half, but for a block at 2 MiB.
#[track_caller]
fn is_cut_at(driver: &mut Driver, length: u64) {
    for at in (0..28).map(|part| Bytes::kib(128) * part) {
        let found = driver.read(FILM, at, Bytes::kib(128)).unwrap();
        let mut wanted = pattern(1, at, Bytes::kib(128));
        let kept = length.saturating_sub(at.get()).min(wanted.len() as u64) as usize;
        wanted[kept..].fill(0);
        if at == Bytes::mib(2) {
            wanted[..4096].copy_from_slice(&pattern(2, at, Bytes::kib(4)));
        }
        assert!(found == wanted, "at {at} of what was cut at {length}");
    }
}

#[test]
fn what_is_cut_where_it_is_keeps_its_space_and_does_not_come_back() {
    for length in [0, 100, 4096, 1 << 20, (1 << 20) + 5000] {
        let (mut driver, size) = all_of_the_pool();
        driver.done(truncate(length));
        assert_eq!(driver.node.volume(FILM).unwrap().length.get(), length);
        is_whole(&mut driver, size);
        driver.write(FILM, 2, Bytes::mib(2), Bytes::kib(4));
        driver.done(extend(Bytes::kib(3584)));
        is_cut_at(&mut driver, length);
        let mut driver = driver.after_a_power_cut();
        is_whole(&mut driver, size);
        is_cut_at(&mut driver, length);
        // Its description as a whole, not the records of its changes.
        let mut driver = driver.after_a_power_cut();
        is_cut_at(&mut driver, length);
    }
}

/// One record has the cut, and what was written and how far the end had come since.
#[test]
fn nor_where_one_record_has_all_of_it() {
    for length in [100, (1 << 20) + 5000] {
        let (mut driver, _) = all_of_the_pool();
        driver.done(Op::Staged(Box::new(truncate(length))));
        driver.write(FILM, 2, Bytes::mib(2), Bytes::kib(4));
        driver.done(Op::Staged(Box::new(extend(Bytes::kib(3584)))));
        driver.done(Op::Sync);
        is_cut_at(&mut driver, length);
        is_cut_at(&mut driver.after_a_power_cut(), length);
    }
}

#[test]
fn a_cut_that_no_record_has_leaves_all_that_was_there() {
    let (mut driver, size) = all_of_the_pool();
    driver.done(Op::Staged(Box::new(truncate(100))));
    let mut driver = driver.after_a_power_cut();
    assert_eq!(driver.node.volume(FILM).unwrap().length, Bytes::mib(3) + Bytes::new(5000));
    is_whole(&mut driver, size);
    let found = driver.read(FILM, Bytes::mib(2), Bytes::MIB).unwrap();
    assert!(found == pattern(1, Bytes::mib(2), Bytes::MIB));
}

#[test]
fn nothing_is_cut_under_who_uses_it_nor_to_more_than_there_is() {
    let mut driver = Setup::new(1).open();
    driver.recorded(FILM, Bytes::mib(4), Bytes::mib(2), 1);
    for mode in [Mode::Read, Mode::Write] {
        let (stream, _) = driver.stream(open(FILM, mode, usual(), Bytes::ZERO));
        assert!(matches!(driver.ask(truncate(100)), Err(Error::VolumeBusy { .. })));
        driver.close(stream).unwrap();
    }
    let beyond = driver.ask(truncate((2 << 20) + 1));
    assert!(matches!(beyond, Err(Error::Invalid { what: "length", .. })), "{beyond:?}");
    driver.done(truncate(2 << 20));
    let found = driver.read(FILM, Bytes::mib(1), Bytes::MIB).unwrap();
    assert!(found == pattern(1, Bytes::mib(1), Bytes::MIB));
}

/// The places of a thin volume are everybody's; its size is what it may come to have.
#[test]
fn a_thin_volume_keeps_its_size_and_gives_its_places_back() {
    let mut driver = Setup::new(1).open();
    let free = driver.node.status(driver.now).disks[0].free;
    let placement = Placement { thin: true, ..Placement::default() };
    driver.done(create(FILM, Bytes::mib(8), placement));
    driver.write(FILM, 1, Bytes::ZERO, Bytes::MIB);
    driver.write(FILM, 1, Bytes::MIB, Bytes::MIB);
    driver.done(truncate(100));
    assert_eq!(driver.node.volume(FILM).unwrap().size, Bytes::mib(8));
    driver.done(Op::Sync);
    driver.done(extend(Bytes::mib(2)));
    let mut driver = driver.after_a_power_cut();
    assert_eq!(driver.node.status(driver.now).disks[0].free + Bytes::MIB, free);
    let found = driver.read(FILM, Bytes::ZERO, Bytes::kib(4)).unwrap();
    assert!(found[..100] == pattern(1, Bytes::ZERO, Bytes::new(100)));
    assert!(found[100..].iter().all(|&byte| byte == 0));
}
