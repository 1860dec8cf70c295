//! Thin volumes: what is written has a place first, and a pool that has none left says so.

use crate::driver::*;
use node::{Error, Mode, Placement, Reply};
use units::Bytes;

fn thin() -> Placement {
    Placement { thin: true, ..Placement::default() }
}

fn taken(driver: &Driver, volume: &str) -> Bytes {
    driver.node.volume(volume).unwrap().taken
}

/// A write over several extents takes places for those that have none, whichever they are.
#[test]
fn each_extent_of_a_write_has_a_place() {
    let mut driver = Setup::new(1).open();
    driver.done(create("v", Bytes::mib(4), thin()));
    assert_eq!(taken(&driver, "v"), Bytes::ZERO);
    driver.write("v", 1, Bytes::mib(1), Bytes::kib(64));
    assert_eq!(taken(&driver, "v"), Bytes::MIB);
    let (from, len) = (Bytes::mib(2) - Bytes::kib(32), Bytes::kib(64));
    driver.write("v", 2, from, len);
    assert_eq!(taken(&driver, "v"), Bytes::mib(2), "the second of its two extents had none");
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
