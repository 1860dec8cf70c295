//! What a write that has failed leaves behind the end of a volume is not read when the end moves on, also where
//! other writes of the volume were under way at that time; and these lose nothing that they were answered for.

use crate::driver::*;
use node::{DiskIndex, Error, Op, Reply, WriteRange};
use units::{Bytes, Direction};

const FILE: &str = "file";
const MIB: u64 = 1 << 20;
/// Within the second block of an extent on the first disk.
const END: u64 = 2 * MIB + 5000;
const BLOCK: u64 = 2 * MIB + 4096;
/// The others take so long.
const SLOW: u64 = 3000;

fn bytes(n: u64) -> Bytes {
    Bytes::new(n)
}

fn extend(length: u64) -> Op {
    Op::VolumeExtend { name: FILE.into(), length: bytes(length) }
}

fn is_device_error(answer: &Result<Reply, Error>) -> bool {
    matches!(answer, Err(Error::Device { .. }))
}

/// A volume whose disk cannot write the block of its end from now on. The other disk is slow.
fn failing() -> Driver {
    let mut driver = Setup::new(2).open();
    driver.recorded(FILE, Bytes::mib(4), Bytes::mib(2), 1);
    driver.write(FILE, 1, Bytes::mib(2), bytes(END - 2 * MIB));
    driver.done(Op::Sync);
    let [other, block] = [MIB, BLOCK].map(|at| driver.place(FILE, bytes(at)));
    driver.break_at(DISK, block..block + Bytes::kib(4), Some(Direction::Write));
    driver.slow_at(DiskIndex(1), other..Bytes::mib(256), ms(SLOW));
    driver
}

/// A write of 8 bytes behind the end fails.
fn fails(driver: &mut Driver) {
    let failed = driver.begin_write(FILE, 9, bytes(END + 100), bytes(8));
    let answer = driver.wait(failed);
    assert!(is_device_error(&answer), "{answer:?}");
    driver.disks[0].troubles.retain(|trouble| trouble.error.is_none());
}

fn assert_zeros_behind_the_end(driver: &mut Driver) {
    let found = driver.read(FILE, bytes(BLOCK), Bytes::kib(4)).expect("read");
    let wrong = found[(END - BLOCK) as usize..].iter().position(|&byte| byte != 0);
    assert_eq!(wrong, None, "{:?}", &found[900..1020]);
}

/// One overwrites what is recorded, in another block, and ends well.
#[test]
fn a_failure_beside_a_write_of_other_blocks_leaves_nothing() {
    for under_way in [false, true] {
        for raises_by_write in [false, true] {
            let mut driver = failing();
            let other = driver.begin_write(FILE, 2, Bytes::MIB, Bytes::kib(4));
            fails(&mut driver);
            assert!(!driver.is_answered(other));
            if !under_way {
                assert_eq!(driver.wait(other), Ok(Reply::Done));
            }
            match raises_by_write {
                true => driver.write(FILE, 3, bytes(2 * MIB + 10_000), bytes(100)),
                false => driver.done(extend(3 * MIB)),
            }
            assert_zeros_behind_the_end(&mut driver);
            if under_way {
                assert_eq!(driver.wait(other), Ok(Reply::Done));
            }
            let found = driver.read(FILE, Bytes::MIB, Bytes::kib(4)).expect("read");
            assert_eq!(found, pattern(2, Bytes::MIB, Bytes::kib(4)));
        }
    }
}

/// One further on was begun before, and moves the end on when it ends. Where it was answered already, its
/// bytes are read all the while.
#[test]
fn a_failure_beside_a_write_further_on_leaves_nothing() {
    for (behind, ends) in [(false, false), (true, false), (true, true)] {
        let mut driver = failing();
        let range = WriteRange { behind, ..WriteRange::new(Bytes::mib(3), Bytes::kib(4)) };
        let span = driver.room(range.room());
        driver.fill(span, 3, &range);
        let other = driver.begin(write(FILE, range, span));
        assert_eq!(driver.is_answered(other), behind);
        fails(&mut driver);
        let read = |driver: &mut Driver| driver.read(FILE, Bytes::mib(3), Bytes::kib(4));
        if ends {
            // What was answered is written to its end.
            driver.done(Op::Shutdown);
            driver = driver.after_a_power_cut();
        } else if behind {
            let found = read(&mut driver).expect("read");
            assert_eq!(found, pattern(3, Bytes::mib(3), Bytes::kib(4)));
        }
        if !ends {
            assert_eq!(driver.wait(other), Ok(Reply::Done));
            let synced = driver.ask(Op::SyncVolume { volume: FILE.into(), told: Some(0) });
            assert_eq!(synced, Ok(Reply::Done));
        }
        assert_zeros_behind_the_end(&mut driver);
        assert_eq!(read(&mut driver).unwrap(), pattern(3, Bytes::mib(3), Bytes::kib(4)));
    }
}

/// The disk has failed on a block that another write has done its part in. It cannot be said of that part that
/// it was written.
#[test]
fn who_has_written_to_a_block_that_the_disk_fails_on_then_fails_with_it() {
    let mut driver = Setup::new(2).open();
    driver.recorded(FILE, Bytes::mib(4), Bytes::mib(2), 1);
    let place = driver.place(FILE, bytes(MIB - 4096));
    let from = driver.place(FILE, Bytes::ZERO);
    driver.done(Op::VolumeResize { name: FILE.into(), size: bytes(MIB - 3996), may_cut: true });
    driver.done(resize(FILE, Bytes::mib(4)));
    // The half in the block of the end is done, and the one on the other disk is not.
    driver.slow_at(DiskIndex(1), from..Bytes::mib(256), ms(SLOW));
    let half = driver.begin_write(FILE, 2, bytes(MIB - 3896), bytes(3896 + 4096));
    driver.run(ms(200));
    assert!(!driver.is_answered(half));
    driver.break_at(DISK, place..place + Bytes::kib(4), Some(Direction::Write));
    let failed = driver.begin_write(FILE, 9, bytes(MIB - 3990), bytes(8));
    let answers = [failed, half].map(|ticket| driver.wait(ticket));
    assert!(answers.iter().all(is_device_error), "{answers:?}");
    driver.disks.iter_mut().for_each(|disk| disk.troubles.clear());
    driver.done(extend(MIB));
    let found = driver.read(FILE, bytes(MIB - 4096), Bytes::kib(4)).expect("read");
    assert!(found[100..].iter().all(|&byte| byte == 0), "bytes from behind the end");
}

/// One has failed elsewhere, and left its part in the block of the end, while others were under way.
#[test]
fn a_part_of_a_write_that_has_failed_beside_others_is_not_read() {
    let mut driver = Setup::new(2).open();
    driver.recorded(FILE, Bytes::mib(4), Bytes::mib(4), 1);
    let place = driver.place(FILE, Bytes::ZERO);
    driver.done(Op::VolumeResize { name: FILE.into(), size: bytes(MIB - 3996), may_cut: true });
    driver.done(resize(FILE, Bytes::mib(4)));
    driver.break_at(DiskIndex(1), place..Bytes::mib(256), None);
    driver.disks[1].troubles[0].extra = ms(1000);
    let failed = driver.begin_write(FILE, 2, bytes(MIB - 3896), bytes(3896 + 4096));
    driver.run(ms(200));
    driver.slow_at(DISK, place..place + Bytes::kib(4), ms(SLOW));
    let other = driver.begin_write(FILE, 3, Bytes::ZERO, Bytes::kib(4));
    let answer = driver.wait(failed);
    assert!(is_device_error(&answer) && !driver.is_answered(other), "{answer:?}");
    assert_eq!(driver.wait(other), Ok(Reply::Done));
    driver.done(extend(MIB));
    let found = driver.read(FILE, bytes(MIB - 4096), Bytes::kib(4)).expect("read");
    assert_eq!(found[..100], pattern(1, bytes(MIB - 4096), bytes(100)));
    assert!(found[100..].iter().all(|&byte| byte == 0), "bytes from behind the end");
}
