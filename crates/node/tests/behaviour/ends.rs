//! What lies behind the end of a volume, in the 4 KiB that it ends in, is nobody's: bytes that were cut
//! off, or that a crash left of a write that was never synced, do not come back when the end moves on.

use crate::driver::*;
use node::{DiskIndex, Error, Mode, Op, Reply, Ticket};
use std::collections::BTreeMap;
use units::{Bytes, Direction};

const FILE: &str = "file";

fn bytes(n: u64) -> Bytes {
    Bytes::new(n)
}

fn extend(length: u64) -> Op {
    Op::VolumeExtend { name: FILE.into(), length: bytes(length) }
}

fn cut(length: u64) -> Op {
    Op::VolumeResize { name: FILE.into(), size: bytes(length), may_cut: true }
}

fn length(driver: &Driver) -> u64 {
    driver.node.volume(FILE).expect("it is there").length.get()
}

/// The program and the node are gone at once. What was written is on its disk, whether it was synced or
/// not.
fn killed(mut driver: Driver) -> Driver {
    driver.disks.iter_mut().for_each(|disk| disk.flush());
    driver.after_a_power_cut()
}

/// 100 bytes that are synced, and 3,000 that are not, before a crash.
fn appended_and_killed() -> Driver {
    let mut driver = Setup::new(1).open();
    driver.volume(FILE, Bytes::mib(4));
    driver.write(FILE, 1, bytes(0), bytes(100));
    driver.done(Op::Sync);
    driver.write(FILE, 2, bytes(100), bytes(3000));
    let driver = killed(driver);
    assert_eq!(length(&driver), 100);
    driver
}

/// The first 4 KiB are these 100 bytes, and zeros.
fn assert_clear(driver: &mut Driver, len: usize) {
    let found = driver.read(FILE, Bytes::ZERO, Bytes::kib(4)).expect("read");
    assert_eq!(found[..len], pattern(1, Bytes::ZERO, bytes(len as u64)));
    assert!(found[len..].iter().all(|&byte| byte == 0), "bytes from behind the end");
}

#[test]
fn what_was_never_synced_does_not_come_back_when_the_length_is_raised() {
    let mut driver = appended_and_killed();
    driver.done(extend(5000));
    assert_clear(&mut driver, 100);
    assert_eq!(length(&driver), 5000);
    // Durable at once, in this order.
    let mut driver = driver.after_a_power_cut();
    assert_clear(&mut driver, 100);
    assert_eq!(length(&driver), 5000);
}

#[test]
fn nor_when_the_change_is_answered_before_it_is_durable() {
    let mut driver = appended_and_killed();
    driver.done(Op::Staged(Box::new(extend(5000))));
    assert_clear(&mut driver, 100);
}

#[test]
fn nor_when_something_is_written_further_on() {
    let mut driver = appended_and_killed();
    driver.write(FILE, 3, bytes(9000), bytes(50));
    assert_clear(&mut driver, 100);
    assert_eq!(length(&driver), 9050);
    let found = driver.read(FILE, Bytes::kib(8), Bytes::kib(4)).expect("read");
    assert_eq!(found[808..858], pattern(3, bytes(9000), bytes(50)));
    assert!(found[..808].iter().chain(&found[858..]).all(|&byte| byte == 0));
}

#[test]
fn nor_when_something_is_written_within_the_block() {
    let mut driver = appended_and_killed();
    driver.write(FILE, 3, bytes(200), bytes(50));
    let found = driver.read(FILE, Bytes::ZERO, Bytes::kib(4)).expect("read");
    assert_eq!(found[..100], pattern(1, Bytes::ZERO, bytes(100)));
    assert!(found[100..200].iter().chain(&found[250..]).all(|&byte| byte == 0));
    let from = driver.journal.len();
    driver.done(extend(5000));
    let asked = driver.since(from).iter().filter_map(|done| done.action.transfer());
    let reads = asked.filter(|(_, direction)| *direction == Direction::Read);
    assert_eq!(reads.count(), 0, "zeros are known to lie there");
}

#[test]
fn nor_when_a_writer_is_opened_further_on() {
    let mut driver = appended_and_killed();
    let opened = open(FILE, Mode::Write, usual(), Bytes::mib(1));
    let (writer, _) = driver.stream(opened);
    driver.put_all(writer, 5, BLOCK);
    driver.close(writer).unwrap();
    assert_clear(&mut driver, 100);
    assert_eq!(length(&driver), (Bytes::mib(1) + BLOCK).get());
}

#[test]
fn a_writer_does_not_go_over_an_end_that_may_hide_something() {
    let mut driver = appended_and_killed();
    let writer = driver.writer(FILE, usual());
    let told = driver.ask(Op::StreamSeek { stream: writer, to: Bytes::mib(1) });
    assert!(matches!(told, Err(Error::Invalid { what: "offset", .. })), "{told:?}");
    let told = driver.ask(extend(5000));
    assert!(matches!(told, Err(Error::VolumeBusy { streams: 1, .. })), "{told:?}");
    // Its own end hides nothing.
    driver.put_all(writer, 1, bytes(200));
    let told = driver.ask(Op::StreamSeek { stream: writer, to: Bytes::mib(1) });
    assert!(matches!(told, Ok(Reply::Ready { .. })), "{told:?}");
    driver.put_all(writer, 6, BLOCK);
    driver.close(writer).unwrap();
    assert_clear(&mut driver, 200);
}

#[test]
fn what_was_cut_off_does_not_come_back() {
    let mut driver = Setup::new(1).open();
    driver.recorded(FILE, Bytes::mib(2), Bytes::mib(2), 1);
    driver.done(cut(100));
    driver.done(resize(FILE, Bytes::mib(2)));
    driver.done(extend(3000));
    assert_clear(&mut driver, 100);
    // Zeros are known to lie behind 3,000; behind 200 it is not known again.
    driver.write(FILE, 1, bytes(0), bytes(3000));
    driver.done(cut(200));
    driver.done(resize(FILE, Bytes::mib(2)));
    driver.write(FILE, 1, bytes(5000), bytes(10));
    assert_clear(&mut driver, 200);
}

#[test]
fn a_write_that_waits_for_that_loses_nothing_and_gives_its_memory_back() {
    for fails in [false, true] {
        let mut driver = appended_and_killed();
        if fails {
            let place = driver.place(FILE, Bytes::ZERO);
            driver.break_at(DISK, place..place + Bytes::kib(4), None);
        }
        let free = driver.node.status(driver.now).memory.free;
        let far: Vec<Ticket> =
            (1..9).map(|n| driver.begin_write(FILE, n, bytes(n * 9000), bytes(60))).collect();
        let answers: Vec<_> = far.iter().map(|&ticket| driver.wait(ticket)).collect();
        assert_eq!(driver.node.status(driver.now).memory.free, free);
        for (n, answer) in (1..9).zip(answers) {
            match fails {
                true => assert!(matches!(answer, Err(Error::Device { .. })), "{answer:?}"),
                false => {
                    assert_eq!(answer, Ok(Reply::Done));
                    let block = bytes(n * 9000).round_down(Bytes::kib(4));
                    let found = driver.read(FILE, block, Bytes::kib(8)).expect("read");
                    let at = (bytes(n * 9000) - block).as_usize();
                    assert_eq!(found[at..at + 60], pattern(n, bytes(n * 9000), bytes(60)));
                }
            }
        }
        assert_eq!(length(&driver), if fails { 100 } else { 72_060 });
    }
}

/// A write over two extents of which one half was committed by another program's sync, and which had not
/// ended at the crash.
#[test]
fn half_of_a_write_that_had_not_ended_does_not_come_back() {
    for slow in [0, 1].map(DiskIndex) {
        half_of_a_write(slow);
    }
}

fn half_of_a_write(slow: DiskIndex) {
    let mut driver = Setup::new(2).open();
    driver.recorded(FILE, Bytes::mib(4), Bytes::mib(2), 1);
    let places = [Bytes::ZERO, Bytes::MIB].map(|at| driver.place(FILE, at));
    driver.done(cut(0));
    driver.done(resize(FILE, Bytes::mib(4)));
    for place in places {
        driver.slow_at(slow, place..place + Bytes::MIB, ms(5000));
    }
    driver.begin_write(FILE, 2, Bytes::MIB - Bytes::kib(4), Bytes::kib(8));
    driver.run(ms(500));
    driver.done(Op::Sync);
    let mut driver = killed(driver);
    assert_eq!(length(&driver), 0);
    driver.done(extend(2 << 20));
    let found = driver.read(FILE, Bytes::MIB - Bytes::kib(4), Bytes::kib(8)).expect("read");
    assert!(found.iter().all(|&byte| byte == 0), "bytes of a write that never ended");
}

/// Appends, writes further on, cuts, extensions, syncs and crashes at any moment, several writes under
/// way at once. What is read is what was written, or zeros; and after a crash, for what was not synced, a
/// value that it had since the last sync.
#[test]
fn random_histories_with_crashes_show_no_byte_from_behind_an_end() {
    let worlds = std::env::var("SLACKLINE_ENDS").ok().and_then(|n| n.parse().ok()).unwrap_or(15);
    for seed in 0..worlds {
        World::new(seed).run(120);
    }
}

struct World {
    driver: Driver,
    state: u64,
    /// Each byte as it is now, up to the end.
    now: Vec<u8>,
    /// Which other values a byte had since the last sync, and which lengths the volume had.
    since: BTreeMap<usize, Vec<u8>>,
    lengths: Vec<usize>,
    said: String,
}

const SPACE: u64 = 3 << 20;

impl World {
    fn new(seed: u64) -> Self {
        let mut driver = Setup::new(1).open();
        driver.volume(FILE, bytes(SPACE));
        Self {
            driver,
            state: seed * 7 + 1,
            now: Vec::new(),
            since: BTreeMap::new(),
            lengths: vec![0],
            said: format!("seed {seed}:"),
        }
    }

    fn below(&mut self, most: u64) -> u64 {
        self.state = self
            .state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 33) % most
    }

    fn place(&mut self) -> u64 {
        let near = self.now.len() as u64;
        match self.below(4) {
            0 => near,
            1 => self.below(near + 1),
            2 => near + self.below(6000),
            // Where an extent ends.
            _ => (1 << 20) - self.below(5000),
        }
        .min(SPACE - 8192)
    }

    fn run(&mut self, steps: u64) {
        for _ in 0..steps {
            match self.below(20) {
                0..9 => {
                    let offset = self.place();
                    self.write(offset);
                }
                9..11 => {
                    let length = self.place();
                    self.said += &format!(" extend {length}");
                    self.driver.done(extend(length));
                    if length as usize > self.now.len() {
                        self.ends_at(length as usize);
                    }
                }
                11..13 => {
                    let length = self.below(self.now.len() as u64 + 1);
                    self.said += &format!(" cut {length}");
                    self.driver.done(cut(length));
                    self.ends_at(length as usize);
                    // It is durable, and everything before it.
                    self.synced();
                    self.driver.done(resize(FILE, bytes(SPACE)));
                }
                13..15 => {
                    self.said += " sync";
                    self.driver.done(Op::Sync);
                    self.synced();
                }
                15..17 => self.crash(),
                _ => self.read(),
            }
        }
        self.read();
    }

    fn write(&mut self, offset: u64) {
        let count = 1 + self.below(3);
        let mut tickets = Vec::new();
        let mut at = offset;
        let mut done = Vec::new();
        for _ in 0..count {
            let len = (1 + self.below(5000)).min(SPACE - at);
            let seed = self.below(1 << 20);
            self.said += &format!(" write {at}+{len}");
            tickets.push(self.driver.begin_write(FILE, seed, bytes(at), bytes(len)));
            done.push((at as usize, pattern(seed, bytes(at), bytes(len))));
            at = (at + len + self.below(3) * self.below(5000)).min(SPACE - 8192);
        }
        let is_killed = self.below(4) == 0;
        if is_killed {
            for _ in 0..self.below(12) {
                self.driver.step(units::Instant::MAX);
            }
        } else {
            for ticket in tickets {
                assert_eq!(self.driver.wait(ticket), Ok(Reply::Done), "{}", self.said);
            }
        }
        for (at, written) in done {
            let end = (at + written.len()).max(self.now.len());
            if end > self.now.len() {
                self.ends_at(end);
            }
            for (at, byte) in (at..).zip(written) {
                self.had(at);
                self.now[at] = byte;
            }
        }
        if is_killed {
            self.crash();
        }
    }

    fn ends_at(&mut self, length: usize) {
        self.now.resize(length, 0);
        self.lengths.push(length);
    }

    fn synced(&mut self) {
        self.since.clear();
        self.lengths = vec![self.now.len()];
    }

    /// A byte is another one from now on, but not on the medium.
    fn had(&mut self, at: usize) {
        let byte = self.now[at];
        self.since.entry(at).or_default().push(byte);
    }

    fn content(&mut self) -> Vec<u8> {
        let len = self.now.len();
        let mut all = Vec::new();
        while all.len() < len {
            let at = all.len() as u64;
            let piece = (len as u64 - at).next_multiple_of(4096).min(1 << 20);
            all.extend(self.driver.read(FILE, bytes(at), bytes(piece)).expect("read"));
        }
        all.truncate(len);
        all
    }

    fn read(&mut self) {
        assert_eq!(length(&self.driver), self.now.len() as u64, "{}", self.said);
        let found = self.content();
        let wrong = found.iter().zip(&self.now).position(|(a, b)| a != b);
        assert_eq!(wrong, None, "{}", self.said);
    }

    fn crash(&mut self) {
        self.said += " crash";
        let fresh = Setup::new(1).open();
        let driver = std::mem::replace(&mut self.driver, fresh);
        self.driver = match self.below(2) {
            0 => killed(driver),
            _ => driver.after_a_power_cut(),
        };
        let length = length(&self.driver) as usize;
        assert!(self.lengths.contains(&length), "{length} {:?} {}", self.lengths, self.said);
        self.now.resize(length, 0);
        let found = self.content();
        for (at, byte) in found.iter().enumerate() {
            let had = self.since.get(&at).is_some_and(|had| had.contains(byte));
            assert!(had || self.now[at] == *byte, "byte {at} {}", self.said);
        }
        self.now = found;
        self.driver.done(Op::Sync);
        self.synced();
        self.driver.done(resize(FILE, bytes(SPACE)));
    }
}
