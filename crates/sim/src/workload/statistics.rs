//! What a load is like: the figures that papers print of disk traces.
//!
//! Counted in one pass over a load, in memory that depends on the number of disks and
//! not on the load's length.

use super::Demand;
use crate::Random;
use std::collections::VecDeque;
use units::{Bytes, Direction, Duration, Lba};

/// Times between requests are counted in bins of so many ms, the last open.
pub const BIN_MS: u64 = 2;
const BINS: usize = 2_000;

/// The figures of a load.
#[derive(Clone, Debug, Default)]
pub struct Statistics {
    /// Demands of all kinds.
    pub requests: u64,
    /// Those that read.
    pub reads: u64,
    /// What was moved.
    pub bytes: Bytes,
    /// Requests of 8 KiB.
    pub of_8_kib: u64,
    /// Reads that begin where the disk's last request ended.
    pub sequential_reads: u64,
    /// Writes that do.
    pub sequential_writes: u64,
    /// Requests that come within a millisecond of the one before on their disk.
    pub under_1_ms: u64,
    /// The longest time between two requests of a disk.
    pub apart_max: Duration,
    /// When the last request came.
    pub end: Duration,
    /// Requests by the time since the one before on their disk, in bins of [`BIN_MS`].
    apart: Vec<u64>,
    disks: Vec<Last>,
}

/// The last request of a disk: when it came and where it ended.
#[derive(Clone, Copy, Debug, Default)]
struct Last {
    seen: bool,
    at: Duration,
    end: Lba,
}

impl Statistics {
    /// Counts a demand; not earlier than the one before it.
    pub fn add(&mut self, demand: &Demand) {
        let disk = demand.disk as usize;
        if self.disks.len() <= disk {
            self.disks.resize(disk + 1, Last::default());
            self.apart.resize(BINS, 0);
        }
        let access = &demand.access;
        let reads = access.direction == Direction::Read;
        self.requests += 1;
        self.reads += u64::from(reads);
        self.bytes += access.len;
        self.of_8_kib += u64::from(access.len == Bytes::kib(8));
        self.end = demand.at;
        let last = self.disks[disk];
        if last.seen {
            let apart = demand.at.saturating_sub(last.at);
            self.apart[((apart.as_millis() / BIN_MS) as usize).min(BINS - 1)] += 1;
            self.under_1_ms += u64::from(apart < Duration::from_millis(1));
            self.apart_max = self.apart_max.max(apart);
            let follows = u64::from(last.end == access.lba);
            *if reads { &mut self.sequential_reads } else { &mut self.sequential_writes } +=
                follows;
        }
        self.disks[disk] = Last { seen: true, at: demand.at, end: access.end() };
    }

    /// Those that write.
    pub fn writes(&self) -> u64 {
        self.requests - self.reads
    }

    /// How many of a hundred requests `count` are.
    pub fn percent(&self, count: u64) -> f64 {
        100.0 * count as f64 / self.requests.max(1) as f64
    }

    /// How many of a hundred requests come within so many ms (rounded down to bins) of
    /// the one before on their disk.
    pub fn percent_within(&self, ms: u64) -> f64 {
        self.percent(self.apart.iter().take((ms / BIN_MS) as usize).sum())
    }

    /// How many of a hundred requests come within each of the first bins of [`BIN_MS`].
    pub fn times_between(&self) -> impl Iterator<Item = f64> + '_ {
        self.apart.iter().map(|&count| self.percent(count))
    }
}

/// Queues and latencies of the requests of one or several drives.
#[derive(Clone, Debug)]
pub struct Queues {
    /// Requests by how many were with the drive when they came, themselves among them.
    lengths: Vec<u64>,
    count: [u64; 2],
    latency_us: [u64; 2],
}

/// Longer queues count as this long.
const QUEUE_MAX: usize = 20_000;

impl Default for Queues {
    fn default() -> Self {
        Self { lengths: vec![0; QUEUE_MAX + 1], count: [0; 2], latency_us: [0; 2] }
    }
}

impl Queues {
    /// Counts a request that found a queue, itself among them, and how long it took.
    pub fn add(&mut self, direction: Direction, queue: u64, latency: Duration) {
        let write = usize::from(direction == Direction::Write);
        self.lengths[(queue as usize).min(QUEUE_MAX)] += 1;
        self.count[write] += 1;
        self.latency_us[write] += latency.as_micros();
    }

    /// The mean length.
    pub fn mean(&self) -> f64 {
        self.moment(1)
    }

    /// Its standard deviation.
    pub fn deviation(&self) -> f64 {
        (self.moment(2) - self.mean().powi(2)).max(0.0).sqrt()
    }

    /// The longest.
    pub fn max(&self) -> u64 {
        self.lengths.iter().rposition(|&count| count > 0).unwrap_or(0) as u64
    }

    fn moment(&self, power: i32) -> f64 {
        let each = self.lengths.iter().enumerate();
        let sum: f64 = each.map(|(at, &count)| (at as f64).powi(power) * count as f64).sum();
        sum / self.count.iter().sum::<u64>().max(1) as f64
    }

    /// Mean time from arrival to end, in ms, of requests of one direction or of all.
    pub fn latency_ms(&self, direction: Option<Direction>) -> f64 {
        let of = |values: &[u64; 2]| match direction {
            Some(Direction::Read) => values[0],
            Some(Direction::Write) => values[1],
            None => values[0] + values[1],
        };
        of(&self.latency_us) as f64 / of(&self.count).max(1) as f64 / 1e3
    }
}

/// A drive of 1992, as far as queues need one: requests in the order of arrival, 27 ms
/// on average for one that finds it idle, 18.5 ms for one that waited, since what waits
/// is sorted. So the Clockwise thesis has it of cello (section 3.2.2): reads, which
/// seldom wait, take 27.4 ms; 8.9 requests wait on average and take 164 ms.
pub struct Drive1992 {
    random: Random,
    free: Duration,
    /// Ends of what is not done.
    ends: VecDeque<Duration>,
}

impl Drive1992 {
    /// A drive that is idle.
    pub fn new(seed: u64) -> Self {
        Self { random: Random::new(seed), free: Duration::ZERO, ends: VecDeque::new() }
    }

    /// A request comes, not before the one before it: the length of the queue, itself
    /// among them, and the time until it is done.
    pub fn serve(&mut self, at: Duration) -> (u64, Duration) {
        while self.ends.front().is_some_and(|&end| end <= at) {
            self.ends.pop_front();
        }
        let ms = Duration::from_millis;
        let seek = if self.ends.is_empty() {
            ms(7) + self.random.span(ms(19))
        } else {
            self.random.span(ms(16))
        };
        let (overhead, turn) = (ms(3), self.random.span(ms(15)));
        self.free = self.free.max(at) + overhead + seek + turn;
        self.ends.push_back(self.free);
        (self.ends.len() as u64, self.free - at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::{Access, SECTOR};

    #[test]
    fn figures_are_counted_disk_by_disk() {
        let mut statistics = Statistics::default();
        let mut ask = |us: u64, disk, lba, direction| {
            let access = Access { lba: Lba::new(lba), len: SECTOR * 16, direction };
            let at = Duration::from_micros(us);
            statistics.add(&Demand { at, disk, access, synchronous: true });
        };
        ask(0, 0, 100, Direction::Read);
        ask(500, 1, 116, Direction::Read); // another disk: follows nothing
        ask(900, 0, 116, Direction::Write);
        ask(30_000, 0, 132, Direction::Read);
        ask(80_000, 0, 0, Direction::Read);
        assert_eq!((statistics.requests, statistics.reads, statistics.writes()), (5, 4, 1));
        assert_eq!((statistics.sequential_reads, statistics.sequential_writes), (1, 1));
        assert_eq!((statistics.under_1_ms, statistics.of_8_kib), (1, 5));
        assert_eq!(statistics.apart_max, Duration::from_micros(50_000));
        assert!((statistics.percent_within(40) - 40.0).abs() < 1e-9);
        assert_eq!(statistics.times_between().filter(|percent| *percent > 0.0).count(), 3);
    }

    #[test]
    fn queues_have_the_moments_of_their_lengths() {
        let mut queues = Queues::default();
        for (queue, ms) in [(1, 10), (3, 30)] {
            queues.add(Direction::Read, queue, Duration::from_millis(ms));
        }
        queues.add(Direction::Write, 5, Duration::from_millis(80));
        assert_eq!((queues.mean(), queues.max()), (3.0, 5));
        assert!((queues.deviation() - (8.0f64 / 3.0).sqrt()).abs() < 1e-9);
        assert_eq!(queues.latency_ms(Some(Direction::Read)), 20.0);
        assert_eq!(queues.latency_ms(None), 40.0);
    }

    #[test]
    fn a_drive_takes_what_it_takes_and_queues_the_rest() {
        let mut drive = Drive1992::new(1);
        let (mut alone, mut last) = (Duration::ZERO, (0, Duration::ZERO));
        for second in 0..2_000 {
            let (queue, latency) = drive.serve(Duration::from_secs(second));
            assert_eq!(queue, 1);
            alone += latency;
        }
        for _ in 0..1_000 {
            last = drive.serve(Duration::from_secs(3_000));
        }
        assert!((alone / 2_000).as_micros().abs_diff(27_000) < 400, "{}", alone / 2_000);
        assert_eq!(last.0, 1_000);
        assert!(last.1.as_millis().abs_diff(18_500) < 500, "{}", last.1);
    }
}
