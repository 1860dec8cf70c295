//! Readers of one volume, one close behind the other: what the first has read the second has from
//! memory.

use crate::driver::*;
use units::{Bytes, Direction};

/// Two play a film, the second half a second behind the first. What the first reads from then on is
/// read once.
#[test]
fn who_plays_close_behind_another_has_his_blocks_from_memory() {
    let mut driver = Setup::new(1).open();
    driver.node.share_reads();
    driver.recorded("film", Bytes::mib(4), Bytes::mib(4), 1);
    let first = driver.reader("film", usual());
    let play = |driver: &mut Driver, stream, block: u64| {
        let (at, bytes) = driver.next(stream, BLOCK);
        assert_eq!(at, BLOCK * block);
        assert!(bytes == pattern(1, at, BLOCK), "at {at}");
    };
    (0..8).for_each(|block| play(&mut driver, first, block));
    let second = driver.reader("film", usual());
    let from = driver.journal.len();
    for block in 0..56 {
        play(&mut driver, first, block + 8);
        play(&mut driver, second, block);
    }
    let account = driver.node.stream(second).unwrap().account;
    assert!(account.from_memory >= BLOCK * 40, "{account:?}");
    assert_eq!((account.late_requests, account.underruns), (0, 0));
    let transfers = driver.since(from).iter().filter_map(|done| done.action.transfer());
    let reads = transfers.filter(|(_, direction)| *direction == Direction::Read);
    let read: Bytes = reads.map(|(range, _)| range.end - range.start).sum();
    assert!(read < BLOCK * 80, "of 112 blocks that were played {read} were read");
}
