//! Thin volumes on a disk that is nearly full: a write has places for all of it, or takes none.

use super::driver::*;
use node::limits::PLACES_MAX;
use node::{Error, Mode, Op, Placement, Reply};
use units::Bytes;

const MIB: Bytes = Bytes::MIB;

/// A disk with room for so many more extents, and a thin volume of 64 MiB.
fn nearly_full(left: Bytes) -> Driver {
    let mut driver = Setup::new(1).open();
    let free = driver.node.status(driver.now).disks[0].free;
    driver.volume("other", free - left);
    driver.done(create("v", Bytes::mib(64), thin()));
    driver
}

fn thin() -> Placement {
    Placement { thin: true, ..Placement::default() }
}

fn place(offset: Bytes, len: Bytes) -> Op {
    Op::Place { volume: "v".into(), offset, len }
}

fn taken(driver: &Driver) -> Bytes {
    driver.node.volume("v").unwrap().taken
}

fn is_full(result: &Result<Reply, Error>) -> bool {
    matches!(result, Err(Error::PoolFull { .. }))
}

#[test]
fn a_range_has_places_for_all_of_it_or_takes_none() {
    let mut driver = nearly_full(Bytes::mib(5));
    let part = Bytes::kib(300);
    // Six extents, of which one has a place then: five are to be had.
    assert!(is_full(&driver.ask(place(part, Bytes::mib(5)))));
    assert_eq!(taken(&driver), Bytes::ZERO);
    driver.write("v", 1, Bytes::mib(2), part);
    assert_eq!(taken(&driver), MIB);
    assert!(is_full(&driver.ask(place(part, Bytes::mib(5) + Bytes::kib(800)))));
    assert_eq!(taken(&driver), MIB, "none of them");
    driver.done(place(part, Bytes::mib(4)));
    assert_eq!(taken(&driver), Bytes::mib(5));
    // What has places is written, and refused elsewhere.
    for at in 0..5 {
        driver.write("v", 1, MIB * at, MIB);
    }
    driver.done(place(Bytes::ZERO, Bytes::mib(5)));
    assert!(is_full(&driver.ask(place(Bytes::mib(4), MIB + Bytes::new(1)))));
    assert_eq!(taken(&driver), Bytes::mib(5));
}

/// At the end of the space: a write over the end of an extent that has a place writes nothing there.
#[test]
fn a_write_that_is_refused_for_space_leaves_what_it_could_have_written() {
    let mut driver = nearly_full(MIB);
    driver.write("v", 1, Bytes::ZERO, MIB);
    let half = Bytes::kib(512);
    let refused = driver.begin_write("v", 2, half, MIB);
    assert!(is_full(&driver.wait(refused)));
    assert_eq!(driver.read("v", Bytes::ZERO, MIB).unwrap(), pattern(1, Bytes::ZERO, MIB));
    assert_eq!(driver.read("v", MIB, half).unwrap(), vec![0; half.as_usize()]);
    // With space again it goes.
    driver.done(delete("other"));
    driver.done(Op::Sync);
    driver.write("v", 2, half, MIB);
    assert_eq!(driver.read("v", half, MIB).unwrap(), pattern(2, half, MIB));
}

/// Nothing is taken by who asks for what cannot be, and a volume that is not thin has its places.
#[test]
fn places_are_taken_within_a_volume_up_to_a_bound() {
    let mut driver = nearly_full(Bytes::mib(40));
    for (offset, len) in [(Bytes::ZERO, Bytes::ZERO), (Bytes::ZERO, PLACES_MAX + Bytes::new(1))] {
        let refused = driver.ask(place(offset, len));
        assert!(matches!(refused, Err(Error::Invalid { what: "length", .. })), "{refused:?}");
    }
    for offset in [Bytes::mib(64), Bytes::new(u64::MAX)] {
        let refused = driver.ask(place(offset, MIB));
        assert!(matches!(refused, Err(Error::BeyondEnd { .. })), "{refused:?}");
    }
    assert_eq!(taken(&driver), Bytes::ZERO);
    let other = driver.node.volume("other").unwrap();
    driver.done(Op::Place { volume: "other".into(), offset: Bytes::ZERO, len: PLACES_MAX });
    assert_eq!(driver.node.volume("other").unwrap().taken, other.taken);
    driver.done(place(Bytes::ZERO, PLACES_MAX));
    assert_eq!(taken(&driver), PLACES_MAX);
}

/// A write over several extents takes places for those that have none, whichever they are.
#[test]
fn each_extent_of_a_write_has_a_place() {
    let mut driver = Setup::new(1).open();
    driver.done(create("v", Bytes::mib(4), thin()));
    assert_eq!(taken(&driver), Bytes::ZERO);
    driver.write("v", 1, Bytes::mib(1), Bytes::kib(64));
    assert_eq!(taken(&driver), Bytes::MIB);
    let (from, len) = (Bytes::mib(2) - Bytes::kib(32), Bytes::kib(64));
    driver.write("v", 2, from, len);
    assert_eq!(taken(&driver), Bytes::mib(2), "the second of its two extents had none");
    assert_eq!(driver.read("v", from, len).unwrap(), pattern(2, from, len));
}

/// A writer that begins within an extent needs zeros before its place, and these a place of their
/// own: where there is none it is not open, and can be opened when there is one again.
#[test]
fn a_writer_for_whose_beginning_there_is_no_place_is_not_opened() {
    let mut driver = Setup::new(1).open();
    driver.done(create("v", Bytes::mib(4), thin()));
    let free = driver.node.capacity().free;
    driver.done(create("all", free, Placement::default()));
    let asked = open("v", Mode::Write, usual(), BLOCK);
    let told = driver.ask(asked.clone());
    assert!(matches!(told, Err(Error::PoolFull { .. })), "{told:?}");
    assert_eq!(driver.node.status(driver.now).streams, []);
    driver.done(delete("all"));
    driver.done(node::Op::Sync);
    let (stream, _) = driver.stream(asked);
    assert_eq!(driver.put(stream, 7, BLOCK), BLOCK);
    assert_eq!(driver.close(stream), Ok(Reply::Durable { upto: BLOCK * 2 }));
    let zeros = vec![0; BLOCK.as_usize()];
    assert!(driver.read("v", Bytes::ZERO, BLOCK).unwrap() == zeros);
    assert!(driver.read("v", BLOCK, BLOCK).unwrap() == pattern(7, BLOCK, BLOCK));
}
