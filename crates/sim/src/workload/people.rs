//! Loads of programs that nobody has a trace of: somebody who scrubs through movies, a
//! file system at work, virtual machines.
//!
//! They are plausible, not measured; each says what its figures come from. All are
//! best effort, with independent arrivals that do not wait for answers: somebody who
//! waits would ask less where a disk is slow.

use super::{Demand, Source};
use crate::Random;
use std::collections::VecDeque;
use std::ops::Range;
use units::{Access, Bytes, Direction, Duration, Lba, SECTOR};

/// Makes the next piece of work, some requests in the order of their times.
trait Work: Send {
    /// Puts the requests of the next piece, none before `now`, into `out`; returns when
    /// the piece after it may begin.
    fn next(&mut self, now: Duration, random: &mut Random, out: &mut VecDeque<Demand>) -> Duration;
}

/// A load of one of the kinds of this file.
pub struct People {
    work: Box<dyn Work>,
    random: Random,
    now: Duration,
    out: VecDeque<Demand>,
}

impl Iterator for People {
    type Item = Demand;

    fn next(&mut self) -> Option<Demand> {
        while self.out.is_empty() {
            self.now = self.work.next(self.now, &mut self.random, &mut self.out);
        }
        self.out.pop_front()
    }
}

impl Source for People {}

fn people(work: impl Work + 'static, seed: u64) -> People {
    let random = Random::new(seed);
    People { work: Box::new(work), random, now: Duration::ZERO, out: VecDeque::new() }
}

/// Where a load lies: a part of one of its disks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ground {
    /// The number that its demands carry.
    pub disk: u32,
    /// The sectors; at least 64 MiB.
    pub place: Range<Lba>,
}

impl Ground {
    fn check(self) -> Self {
        let room = Bytes::new(self.place.start.distance(self.place.end) * SECTOR.get());
        assert!(self.place.start < self.place.end && room >= Bytes::mib(64), "64 MiB at least");
        self
    }

    /// A place for `len` bytes at a whole multiple of `align`, each as likely, in the
    /// first `part` thousandths.
    fn anywhere(&self, len: Bytes, align: Bytes, part: u64, random: &mut Random) -> Lba {
        let room = self.place.start.distance(self.place.end) - len.div_ceil(SECTOR);
        let unit = align.div_ceil(SECTOR);
        let places = (room / unit).max(1) * part / 1000;
        Lba::new(self.place.start.get() + random.below(places.max(1)) * unit)
    }

    fn demand(&self, at: Duration, lba: Lba, len: Bytes, direction: Direction) -> Demand {
        let access = Access { lba, len, direction };
        Demand { at, disk: self.disk, access, synchronous: true }
    }
}

/// Somebody who looks for a place in a movie: drags for up to five seconds, which shows a
/// picture from another place eight times a second (two requests each: where the
/// picture is, and the picture), then watches for half a minute or so. Watching is a
/// stream's work and asks for nothing here.
///
/// # Panics
/// Where the ground is smaller than 64 MiB.
pub fn scrubbing(ground: Ground, seed: u64) -> People {
    struct Scrubbing(Ground);
    impl Work for Scrubbing {
        fn next(
            &mut self,
            now: Duration,
            random: &mut Random,
            out: &mut VecDeque<Demand>,
        ) -> Duration {
            let (index, picture) = (Bytes::kib(4), Bytes::kib(128));
            let pictures = random.between(4, DRAG.as_nanos() / SHOWN.as_nanos());
            // A hand moves in one direction, by steps that vary.
            let mut lba = self.0.anywhere(picture, picture, 1000, random);
            let step = random.between(1, 200) * 2048;
            let mut at = now;
            for _ in 0..pictures {
                let mut ask =
                    |at, lba, len| out.push_back(self.0.demand(at, lba, len, Direction::Read));
                ask(at, self.0.place.start, index);
                ask(at + Duration::from_millis(1), lba, picture);
                let next = lba.get() + random.between(step / 2, step * 3 / 2) / 8 * 8;
                let wraps = next + picture.div_ceil(SECTOR) > self.0.place.end.get();
                lba = if wraps { self.0.place.start } else { Lba::new(next) };
                at += SHOWN;
            }
            at + random.exponential(Duration::from_secs(30))
        }
    }
    people(Scrubbing(ground.check()), seed)
}

/// From one picture to the next while somebody drags.
const SHOWN: Duration = Duration::from_millis(125);
/// Nobody drags for longer.
const DRAG: Duration = Duration::from_secs(5);

/// A file system at work for several people, about `per_second` operations a second:
/// seven of eight open a file and read all of it, one writes a file; files are small
/// (half of them below 8 KiB, one of a hundred over 1 MiB) and lie in one piece; what
/// is written goes out together every five seconds, with a log. The proportions are
/// those of the Sprite study (as the Clockwise thesis cites it, section 3.2.1).
///
/// # Panics
/// Where the ground is smaller than 64 MiB or the rate is zero.
pub fn file_system(ground: Ground, per_second: u64, seed: u64) -> People {
    assert!(per_second > 0, "some operations");
    let apart = Duration::from_nanos(1_000_000_000 / per_second);
    let work = FileSystem { ground: ground.check(), apart, put_off: Vec::new(), written: COMMIT };
    people(work, seed)
}

/// How often what was put off is written.
const COMMIT: Duration = Duration::from_secs(5);
/// Reading a file ahead, the next part is asked for after about this.
const READ_ON: Duration = Duration::from_millis(4);
/// No more files wait to be written than this.
const PUT_OFF_MAX: usize = 4096;

struct FileSystem {
    ground: Ground,
    apart: Duration,
    /// Files that wait to be written: their sizes.
    put_off: Vec<Bytes>,
    /// When they are written next.
    written: Duration,
}

/// The size of a file: each power of two from 1 KiB has its share of a thousand.
fn file_size(random: &mut Random) -> Bytes {
    const SHARES: [u64; 15] = [130, 180, 190, 140, 110, 90, 60, 40, 25, 14, 8, 6, 4, 2, 1];
    let mut part = random.below(SHARES.iter().sum());
    let mut size = 1024;
    for share in SHARES {
        match part.checked_sub(share) {
            Some(rest) => part = rest,
            None => break,
        }
        size *= 2;
    }
    Bytes::new(random.between(size / 2 + 1, size)).round_up(Bytes::kib(1))
}

impl FileSystem {
    /// A file in parts of 64 KiB, one after the other.
    fn file(
        &self,
        start: Duration,
        size: Bytes,
        direction: Direction,
        apart: Duration,
        random: &mut Random,
    ) -> Vec<Demand> {
        let len = Bytes::kib(64);
        let mut lba = self.ground.anywhere(size, Bytes::kib(4), 1000, random);
        let (mut left, mut at, mut demands) = (size, start, Vec::new());
        while !left.is_zero() {
            let part = left.min(len);
            demands.push(self.ground.demand(at, lba, part, direction));
            (left, lba) = (left - part, demands.last().expect("pushed just now").access.end());
            at += apart;
        }
        demands
    }
}

impl Work for FileSystem {
    fn next(&mut self, now: Duration, random: &mut Random, out: &mut VecDeque<Demand>) -> Duration {
        if now >= self.written {
            let mut at = now;
            // The log first: one piece, near the begin.
            let log = Bytes::kib(4) * (1 + self.put_off.len() as u64 / 8);
            let place = self.ground.anywhere(log, Bytes::kib(4), 10, random);
            out.push_back(self.ground.demand(at, place, log, Direction::Write));
            for size in std::mem::take(&mut self.put_off) {
                let file = self.file(at, size, Direction::Write, Duration::ZERO, random);
                out.extend(file.into_iter().map(|it| Demand { synchronous: false, ..it }));
                at += Duration::from_micros(300);
            }
            while self.written <= at {
                self.written += COMMIT;
            }
            return at;
        }
        let size = file_size(random);
        if random.below(8) == 0 && self.put_off.len() < PUT_OFF_MAX {
            self.put_off.push(size);
        } else {
            let inode = self.ground.anywhere(Bytes::kib(4), Bytes::kib(4), 50, random);
            out.push_back(self.ground.demand(now, inode, Bytes::kib(4), Direction::Read));
            out.extend(self.file(now + READ_ON * 2, size, Direction::Read, READ_ON, random));
        }
        let last = out.back().map_or(now, |demand| demand.at);
        // No operation begins while another reads: one at a time, as one disk sees them.
        last.max(now) + random.exponential(self.apart)
    }
}

/// A virtual machine's disk, about `per_second` requests a second: seven of ten read;
/// most are for 4 KiB, some for 16 or 64; nine of ten fall into the tenth of the disk
/// that is in use; every two seconds its file system writes a log of up to 256 KiB in
/// a row, for which somebody waits.
///
/// # Panics
/// Where the ground is smaller than 64 MiB or the rate is zero.
pub fn virtual_machine(ground: Ground, per_second: u64, seed: u64) -> People {
    struct Machine {
        ground: Ground,
        apart: Duration,
        log: Duration,
    }
    impl Work for Machine {
        fn next(
            &mut self,
            now: Duration,
            random: &mut Random,
            out: &mut VecDeque<Demand>,
        ) -> Duration {
            if now >= self.log {
                let len = Bytes::kib(4 * random.between(2, 64));
                let lba = self.ground.anywhere(len, Bytes::kib(4), 10, random);
                out.push_back(self.ground.demand(now, lba, len, Direction::Write));
                self.log = now + Duration::from_secs(2);
            } else {
                let len = Bytes::kib([4, 4, 4, 4, 4, 4, 4, 16, 16, 64][random.below(10) as usize]);
                let part = if random.chance(90) { 100 } else { 1000 };
                let lba = self.ground.anywhere(len, Bytes::kib(4), part, random);
                let reads = random.chance(70);
                let direction = if reads { Direction::Read } else { Direction::Write };
                let demand = self.ground.demand(now, lba, len, direction);
                out.push_back(Demand { synchronous: reads, ..demand });
            }
            now + random.exponential(self.apart).max(Duration::from_nanos(1))
        }
    }
    assert!(per_second > 0, "some requests");
    let apart = Duration::from_nanos(1_000_000_000 / per_second);
    people(Machine { ground: ground.check(), apart, log: Duration::from_secs(2) }, seed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::first_demands;

    const HOUR: Duration = Duration::from_secs(3600);

    fn ground() -> Ground {
        Ground { disk: 2, place: Lba::new(1_000)..Lba::new(1_000 + 1000 * 2048) }
    }

    fn an_hour(people: People) -> Vec<Demand> {
        let demands: Vec<Demand> = first_demands(people, HOUR).collect();
        assert!(demands.is_sorted_by_key(|demand| demand.at), "times go on");
        for Demand { disk, access, .. } in &demands {
            let place = ground().place;
            assert!(*disk == 2 && place.start <= access.lba && access.end() <= place.end);
            assert!(!access.len.is_zero() && access.len.is_multiple_of(SECTOR), "{access:?}");
        }
        demands
    }

    #[test]
    fn all_keep_to_their_place_their_time_and_their_seed() {
        let make: [fn(u64) -> People; 3] = [
            |seed| scrubbing(ground(), seed),
            |seed| file_system(ground(), 5, seed),
            |seed| virtual_machine(ground(), 20, seed),
        ];
        for make in make {
            let one = an_hour(make(1));
            assert_eq!(one, an_hour(make(1)));
            assert_ne!(one, an_hour(make(2)));
        }
    }

    #[test]
    fn scrubbing_comes_in_runs_of_two_requests_eight_times_a_second() {
        let demands = an_hour(scrubbing(ground(), 1));
        let pictures = demands.iter().filter(|it| it.access.len == Bytes::kib(128)).count();
        assert_eq!(pictures * 2, demands.len());
        // 2.75 s of dragging and 30 s of watching: 22 pictures each 32.75 s.
        assert!((1_800..3_000).contains(&pictures), "{pictures}");
        let gaps = demands.windows(2).map(|pair| pair[1].at - pair[0].at);
        assert!(gaps.filter(|gap| *gap > Duration::from_secs(1)).count() > 50);
    }

    #[test]
    fn a_file_system_reads_whole_small_files_and_writes_them_together() {
        let demands = an_hour(file_system(ground(), 5, 1));
        let reads = demands.iter().filter(|it| it.access.direction == Direction::Read).count();
        let writes = demands.len() - reads;
        assert!(reads > 3 * writes && writes > 700, "{reads} {writes}");
        let follows =
            demands.windows(2).filter(|pair| pair[0].access.end() == pair[1].access.lba).count();
        assert!(follows > demands.len() / 10, "files are read on: {follows}");
        let sizes: Vec<u64> =
            (0..10_000).scan(Random::new(4), |random, _| Some(file_size(random).get())).collect();
        let under = |most| sizes.iter().filter(|&&size| size <= most).count();
        assert!((4_000..6_500).contains(&under(8 << 10)), "{}", under(8 << 10));
        assert!((50..250).contains(&(10_000 - under(1 << 20))), "{}", 10_000 - under(1 << 20));
    }

    #[test]
    fn a_virtual_machine_has_its_rate_its_mix_and_its_log() {
        let demands = an_hour(virtual_machine(ground(), 20, 1));
        assert!((70_000..74_000).contains(&demands.len()), "{}", demands.len());
        let reads = demands.iter().filter(|it| it.access.direction == Direction::Read).count();
        assert!((67..72).contains(&(reads * 100 / demands.len())), "{reads}");
        let logs =
            demands.iter().filter(|it| it.synchronous && it.access.direction == Direction::Write);
        assert!((1_600..1_800).contains(&logs.count()));
    }
}
