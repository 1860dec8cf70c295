//! What lies behind the end of a volume, in random histories ([`ends`](crate::ends) has those that were thought of).

use crate::driver::*;
use crate::ends::{FILE, bytes, cut, extend, is_zeros, killed, length};
use node::{DiskIndex, Error, Op, Reply, Ticket, WriteRange};
use std::collections::BTreeMap;
use units::{Bytes, Direction};

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
    /// Where data begin on the disks.
    first: Bytes,
    /// Writes that have failed: from where on, and what.
    failed: Vec<(usize, Vec<u8>)>,
    /// What they may have left in whole blocks behind the end; and before it since that has moved on.
    left: BTreeMap<usize, Vec<u8>>,
    shown: BTreeMap<usize, Vec<u8>>,
    state: u64,
    /// Each byte as it is now, up to the end.
    now: Vec<u8>,
    /// Which other values a byte had since the last sync, and which lengths the volume had.
    since: BTreeMap<usize, Vec<u8>>,
    lengths: Vec<usize>,
    said: String,
}

const SPACE: u64 = 3 << 20;

/// A write, where it begins, and what it writes.
type Pending = (Ticket, usize, Vec<u8>);

/// Those around what was written from there on.
fn whole_blocks(at: usize, written: &[u8]) -> std::ops::Range<usize> {
    at / 4096 * 4096..(at + written.len()).next_multiple_of(4096)
}

impl World {
    fn new(seed: u64) -> Self {
        let mut driver = Setup::new(2).open();
        driver.recorded("other", Bytes::mib(2), Bytes::mib(2), 1);
        let first = [0, 1].map(|at| driver.place("other", Bytes::mib(at))).into_iter().min();
        driver.volume(FILE, bytes(SPACE));
        Self {
            driver,
            first: first.expect("of two"),
            failed: Vec::new(),
            left: BTreeMap::new(),
            shown: BTreeMap::new(),
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
                    assert_eq!(self.extend(length), Ok(Reply::Done), "{}", self.said);
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

    fn extend(&mut self, length: u64) -> Result<Reply, Error> {
        self.said += &format!(" extend {length}");
        let extended = self.driver.ask(extend(length));
        if extended.is_ok() {
            // What is longer may be behind yet.
            self.lengths.push(self.lengths[0].max(length as usize));
            if length as usize > self.now.len() {
                self.ends_at(length as usize);
            }
        }
        extended
    }

    fn write(&mut self, offset: u64) {
        let count = 1 + self.below(3);
        let mut pending = Vec::new();
        let mut at = offset;
        // One of the disks is slow, so that of a write over the border of an extent one half has ended.
        let mut slow = Some(self.below(2) as usize).filter(|_| self.below(3) == 0);
        let fails = slow.is_some() && self.below(3) == 0;
        // That of the end fails, and on the other one a write is under way meanwhile.
        let beside = (fails && self.below(2) == 0).then(|| {
            let mib = 1 << 20;
            let failing = self.now.len() / mib % 2;
            slow = Some(failing);
            at = (self.now.len() as u64 + self.below(3000)).min(SPACE - 8192);
            (1 - failing) as u64 * mib as u64 + self.below(mib as u64 - 8192)
        });
        let beside = beside.filter(|&other| other + 8192 < at || other > at + 40_000);
        if let Some(slow) = slow {
            let (disk, places) = (DiskIndex(slow as u16), self.first..Bytes::mib(256));
            self.said += &format!(" disk {slow} {}", if fails { "fails" } else { "is slow" });
            match fails {
                true => {
                    // What was answered before has ended. Zeros behind the end are written, too.
                    self.driver.run(ms(5000));
                    self.failed.push((self.now.len(), Vec::new()));
                    self.driver.break_at(disk, places.clone(), Some(Direction::Write));
                    if beside.is_some() {
                        self.said += ", the other one is slow";
                        self.driver.slow_at(DiskIndex(1 - disk.0), places, ms(2000));
                    }
                }
                false => self.driver.slow_at(disk, places, ms(2000)),
            }
        }
        if let Some(at) = beside {
            let len = 1 + self.below(5000);
            pending.push(self.begin_write(at, len, false));
        }
        for _ in 0..count {
            let len = (1 + self.below(5000)).min(SPACE - at);
            let behind = !fails && self.below(5) == 0;
            pending.push(self.begin_write(at, len, behind));
            at = (at + len + self.below(3) * self.below(5000)).min(SPACE - 8192);
        }
        if let Some(slow) = slow {
            return self.with_slow(slow, fails, pending);
        }
        let is_killed = self.below(4) == 0;
        if is_killed {
            for _ in 0..self.below(12) {
                self.driver.step(units::Instant::MAX);
            }
        } else {
            for &(ticket, ..) in &pending {
                assert_eq!(self.driver.wait(ticket), Ok(Reply::Done), "{}", self.said);
            }
        }
        pending.into_iter().for_each(|(_, at, written)| self.wrote(at, written));
        if is_killed {
            self.crash();
        }
    }

    fn begin_write(&mut self, at: u64, len: u64, behind: bool) -> Pending {
        let seed = self.below(1 << 20);
        self.said += &format!(" write {at}+{len} {behind}");
        let range = WriteRange { behind, ..WriteRange::new(bytes(at), bytes(len)) };
        let span = self.driver.room(range.room());
        self.driver.fill(span, seed, &range);
        let ticket = self.driver.begin(write(FILE, range, span));
        (ticket, at as usize, pattern(seed, bytes(at), bytes(len)))
    }

    /// These writes are under way, and a disk is slow, or fails on them.
    fn with_slow(&mut self, slow: usize, fails: bool, pending: Vec<Pending>) {
        let span = ms(self.below(200));
        self.driver.run(span);
        let mut rest = Vec::new();
        for (ticket, at, written) in pending {
            match self.driver.is_answered(ticket) {
                true => self.answered(ticket, at, written),
                false => rest.push((ticket, at, written)),
            }
        }
        if self.below(2) == 0 {
            self.said += " sync amid";
            let sync = self.driver.begin(Op::Sync);
            self.driver.run(ms(1000));
            if self.driver.is_answered(sync) {
                assert_eq!(self.driver.wait(sync), Ok(Reply::Done), "{}", self.said);
                self.synced();
            }
        }
        let all_troubles = self.driver.disks.iter().all(|disk| !disk.troubles.is_empty());
        match all_troubles {
            // The end moves on while some are under way.
            true if self.below(2) == 0 => {
                self.driver.disks[slow].troubles.clear();
                let length = self.place();
                drop(self.extend(length));
            }
            true => {}
            false => self.look_behind(1 - slow),
        }
        let is_killed = self.below(2) == 0;
        for (ticket, at, written) in rest {
            match is_killed && !self.driver.is_answered(ticket) {
                true => {
                    if fails {
                        // Some of it may have failed already.
                        self.failed.push((at, written.clone()));
                    }
                    self.wrote(at, written);
                }
                false => self.answered(ticket, at, written),
            }
        }
        if is_killed {
            return self.crash();
        }
        self.driver.disks.iter_mut().for_each(|disk| disk.troubles.clear());
        if !self.failed.is_empty() {
            self.settle();
        }
    }

    fn answered(&mut self, ticket: Ticket, at: usize, written: Vec<u8>) {
        match self.driver.wait(ticket) {
            Ok(Reply::Done) => self.wrote(at, written),
            Err(Error::Device { .. }) => self.failed.push((at, written)),
            other => panic!("{other:?} {}", self.said),
        }
    }

    fn wrote(&mut self, at: usize, written: Vec<u8>) {
        let end = at + written.len();
        // A crash may leave it without those before it.
        self.lengths.push(end.max(self.lengths[0]));
        if end > self.now.len() {
            self.ends_at(end);
        }
        for (at, byte) in (at..).zip(written) {
            self.had(at);
            self.shown.remove(&at);
            self.now[at] = byte;
        }
    }

    /// Each byte of a write that has failed may be there, or not.
    fn of_failed(&mut self) -> BTreeMap<usize, Vec<u8>> {
        let mut values: BTreeMap<usize, Vec<u8>> = BTreeMap::new();
        for (at, written) in std::mem::take(&mut self.failed) {
            // What a disk leaves of a write that fails, in the whole blocks around it.
            whole_blocks(at, &written).for_each(|at| values.entry(at).or_default().push(0xee));
            (at..).zip(written).for_each(|(at, byte)| values.entry(at).or_default().push(byte));
        }
        values
    }

    /// Writes have failed: what is there of them is there for good, and behind the end nothing of them.
    fn settle(&mut self) {
        let (found, behind) = (self.content(), self.now.len().next_multiple_of(4096));
        let of_each: Vec<_> = self.failed.iter().map(|(at, it)| whole_blocks(*at, it)).collect();
        let mut values = self.of_failed();
        for (at, mut left) in values.split_off(&behind) {
            // Only where one had done its part can the disk have failed on another one.
            let in_one = of_each.iter().filter(|blocks| blocks.contains(&at)).count() < 2;
            if in_one {
                assert_eq!(left.remove(0), 0xee, "what the disk leaves comes first");
            }
            self.left.entry(at).or_default().extend(left);
        }
        for (at, all) in std::mem::take(&mut self.shown) {
            values.entry(at).or_default().extend(all);
        }
        for (at, &byte) in found.iter().enumerate().filter(|&(at, byte)| self.now[at] != *byte) {
            let all = values.get(&at);
            assert!(
                all.is_some_and(|all| all.contains(&byte)),
                "{at} {byte} {} {all:?} {}",
                self.now[at],
                self.said
            );
        }
        self.now = found;
        (0..2).for_each(|disk| self.look_behind(disk));
        self.driver.done(Op::Sync);
        self.synced();
        match self.below(4) {
            0 => self.crash(),
            1 => {
                self.driver.done(cut(self.now.len() as u64));
                self.driver.done(resize(FILE, bytes(SPACE)));
            }
            // Nothing but the failure itself says that there may be something behind the end.
            _ => {
                let length = self.now.len() as u64 + self.below(8192);
                let extended = self.extend(length.min(SPACE - 8192));
                assert_eq!(extended, Ok(Reply::Done), "{}", self.said);
                self.read();
            }
        }
    }

    /// In whole blocks behind the end there are zeros for everybody, on this disk.
    fn look_behind(&mut self, disk: usize) {
        let mib = 1 << 20;
        for extent in (0..SPACE / mib).filter(|extent| *extent as usize % 2 == disk) {
            let at = extent * mib;
            let found = self.driver.read(FILE, bytes(at), Bytes::MIB).expect("read");
            let end = length(&self.driver).next_multiple_of(4096).saturating_sub(at).min(mib);
            assert!(is_zeros(&found[end as usize..]), "behind {end} of {at} {}", self.said);
        }
    }

    fn ends_at(&mut self, length: usize) {
        if length < self.now.len() {
            // Whole blocks that are cut off were never written.
            self.left.clear();
            self.shown.split_off(&length);
        }
        let behind = self.left.split_off(&length);
        self.shown.extend(std::mem::replace(&mut self.left, behind));
        self.now.resize(length, 0);
        self.lengths.push(length);
    }

    fn synced(&mut self) {
        self.since.clear();
        self.lengths = vec![self.now.len()];
    }

    /// A byte is another one from now on, but not on the medium.
    fn had(&mut self, at: usize) {
        let others = self.shown.get(&at).into_iter().flatten();
        let had = others.chain([&self.now[at]]);
        self.since.entry(at).or_default().extend(had);
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
        let shown = std::mem::take(&mut self.shown);
        let may_be = |at: usize| shown.get(&at).is_some_and(|all| all.contains(&found[at]));
        let wrong = (0..found.len()).find(|&at| found[at] != self.now[at] && !may_be(at));
        assert_eq!(wrong, None, "{}", self.said);
        self.now = found;
    }

    fn crash(&mut self) {
        self.said += " crash";
        let fresh = Setup::new(2).open();
        let driver = std::mem::replace(&mut self.driver, fresh);
        self.driver = match self.below(2) {
            0 => killed(driver),
            _ => driver.after_a_power_cut(),
        };
        let length = length(&self.driver) as usize;
        assert!(self.lengths.contains(&length), "{length} {:?} {}", self.lengths, self.said);
        self.now.resize(length, 0);
        self.left.clear();
        for (at, values) in std::mem::take(&mut self.shown).into_iter().chain(self.of_failed()) {
            self.since.entry(at).or_default().extend(values);
        }
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
