//! The cello-like load beside what the Clockwise thesis prints of cello (section 3.2.2,
//! tables 3.3 to 3.5, 6.5 and 7.1). The first group of figures is made to be as printed
//! and must be so exactly; the second comes out of the model and must be near.
#![allow(clippy::print_stdout)] // ours beside theirs is the result

use sim::Random;
use sim::workload::Source;
use sim::workload::cello::{Cello, figures};
use units::{Bytes, Direction, Duration};

const CAPACITY: Bytes = Bytes::new(1_300_000_000); // the thesis: 10.4 GB in eight disks

/// What is counted of a load on one disk after the other.
#[derive(Default)]
struct Statistics {
    requests: u64,
    reads: u64,
    /// Read and write requests that begin where the disk's last one ended.
    sequential: [u64; 2],
    /// Times between requests of one disk, in bins of 2 ms.
    apart: Vec<u64>,
    under_1_ms: u64,
    gap_max: Duration,
    small: u64,
    queue: Vec<u64>,
    /// In us, by direction.
    latency: [u64; 2],
}

/// A drive of 1992, in the order of arrival.
struct Drive {
    random: Random,
    free: Duration,
    /// Ends of what is not done.
    ends: std::collections::VecDeque<Duration>,
}

impl Drive {
    fn serve(&mut self, at: Duration) -> (u64, Duration) {
        while self.ends.front().is_some_and(|&end| end <= at) {
            self.ends.pop_front();
        }
        let queued = !self.ends.is_empty();
        let ms = Duration::from_millis;
        // Sorted, queued requests need shorter seeks.
        let seek = if queued { self.random.span(ms(16)) } else { ms(7) + self.random.span(ms(19)) };
        let service = ms(3) + self.random.span(ms(15)) + seek;
        self.free = self.free.max(at) + service;
        self.ends.push_back(self.free);
        (self.ends.len() as u64, self.free - at)
    }
}

impl Statistics {
    fn of(&mut self, source: impl Source, seed: u64) {
        let mut drive = Drive {
            random: Random::new(seed),
            free: Duration::ZERO,
            ends: std::collections::VecDeque::new(),
        };
        let mut last: Option<sim::workload::Demand> = None;
        self.apart.resize(2_000, 0);
        self.queue.resize(20_000, 0);
        for demand in source {
            let write = usize::from(demand.access.direction == Direction::Write);
            self.requests += 1;
            self.reads += 1 - write as u64;
            self.small += u64::from(demand.access.len == Bytes::kib(8));
            if let Some(last) = last {
                let apart = demand.at - last.at;
                self.apart[(apart.as_millis() as usize / 2).min(1_999)] += 1;
                self.under_1_ms += u64::from(apart < Duration::from_millis(1));
                self.gap_max = self.gap_max.max(apart);
                self.sequential[write] += u64::from(last.access.end() == demand.access.lba);
            }
            last = Some(demand);
            let (queue, latency) = drive.serve(demand.at);
            self.queue[(queue as usize).min(19_999)] += 1;
            self.latency[write] += latency.as_micros();
        }
    }

    fn percent(&self, count: u64) -> f64 {
        100.0 * count as f64 / self.requests as f64
    }

    fn queue(&self) -> (f64, f64, usize) {
        let sum = |power: i32| -> f64 {
            let each = self.queue.iter().enumerate();
            each.map(|(length, &count)| (length as f64).powi(power) * count as f64).sum()
        };
        let mean = sum(1) / self.requests as f64;
        let max = self.queue.iter().rposition(|&count| count > 0).unwrap_or(0);
        (mean, (sum(2) / self.requests as f64 - mean * mean).sqrt(), max)
    }
}

/// A figure of the thesis, ours, and how far ours may be from it.
struct Row {
    what: &'static str,
    printed: f64,
    ours: f64,
    /// In parts of the printed figure.
    tolerance: f64,
}

fn row(what: &'static str, printed: f64, ours: f64, tolerance: f64) -> Row {
    Row { what, printed, ours, tolerance }
}

/// Prints ours beside theirs; the rows that are too far apart.
fn compare(rows: &[Row]) -> Vec<&'static str> {
    println!("{:52} {:>10} {:>10} {:>9}", "", "printed", "ours", "within");
    for Row { what, printed, ours, tolerance } in rows {
        println!("{what:52} {printed:>10.1} {ours:>10.1} {:>7.0} %", tolerance * 100.0);
    }
    let far = |row: &&Row| (row.ours - row.printed).abs() > row.tolerance * row.printed;
    rows.iter().filter(far).map(|row| row.what).collect()
}

fn busiest_day(seed: u64) -> Statistics {
    let load = Cello::new(seed, CAPACITY);
    let mut all = Statistics::default();
    for disk in 0..figures::DISKS {
        all.of(load.disk(disk, figures::BUSIEST), u64::from(disk));
    }
    all
}

/// What comes out of the model. The printed figures are of 63 days, ours of the day
/// that the thesis plays; the times at the disk are those of a drive that needs 18.5 ms
/// for a request that waited (printed: 8.9 in the queue and 164 ms in all) and 27 ms for
/// one that did not (printed: reads take 27.4 ms and so seldom wait).
#[test]
fn the_mix_the_bursts_and_the_queues_are_near_those_that_are_printed() {
    for seed in [1, 2, 3] {
        let all = busiest_day(seed);
        let writes = all.requests - all.reads;
        let of = |part: u64, whole: u64| 100.0 * part as f64 / whole as f64;
        let milliseconds = |us: u64, count: u64| us as f64 / count as f64 / 1e3;
        let (mean, deviation, _) = all.queue();
        let percent_under_40_ms = all.percent(all.apart[..20].iter().sum());
        let rows = [
            row("reads, %", 44.0, all.percent(all.reads), 0.03),
            row("sequential reads, %", 7.7, of(all.sequential[0], all.reads), 0.1),
            row("sequential writes, %", 6.3, of(all.sequential[1], writes), 0.1),
            row("less than 40 ms apart, %", 80.0, percent_under_40_ms, 0.04),
            row(
                "less than 1 ms apart, % (printed: 10 to 20)",
                15.0,
                all.percent(all.under_1_ms),
                0.33,
            ),
            row("queue, mean", 8.9, mean, 0.15),
            row("queue, standard deviation", 36.0, deviation, 0.25),
            row("latency of reads, ms", 27.4, milliseconds(all.latency[0], all.reads), 0.1),
            row("latency of writes, ms", 272.0, milliseconds(all.latency[1], writes), 0.2),
            row("latency, ms", 164.0, milliseconds(all.latency.iter().sum(), all.requests), 0.2),
        ];
        println!("seed {seed}");
        assert_eq!(compare(&rows), [""; 0], "too far from print");
        assert!(all.percent(all.small) > 75.0, "most requests are for 8 KB");
        shape_of_the_times_between(&all);
    }
}

/// Peaks at 0 and at about 20 ms, and a long tail (section 3.2.2, after Ruemmler and
/// Wilkes).
fn shape_of_the_times_between(all: &Statistics) {
    let percent: Vec<f64> = all.apart[..25].iter().map(|&count| all.percent(count)).collect();
    println!("% in each 2 ms: {percent:.1?}");
    let peak = (3..25).max_by_key(|&bin| all.apart[bin]).unwrap();
    assert!((8..=11).contains(&peak), "the second peak is at about 20 ms, not at {} ms", peak * 2);
    let between = all.apart[3..8].iter().min().unwrap();
    assert!(all.apart[0] > 4 * between && all.apart[peak] > 4 * between, "two peaks");
    let over_a_second = all.percent(all.apart[500..].iter().sum());
    println!("over a second: {over_a_second:.1} %, longest {}", all.gap_max);
    assert!(over_a_second > 1.0 && all.gap_max > Duration::from_secs(600), "a long tail");
}

/// Requests of each part of so many seconds.
fn counts(source: impl Source, seconds: u64) -> Vec<u64> {
    let mut counts = Vec::new();
    for demand in source {
        let at = (demand.at.as_nanos() / (seconds * 1_000_000_000)) as usize;
        counts.resize(counts.len().max(at + 1), 0);
        counts[at] += 1;
    }
    counts
}

/// Tables 6.5 and 7.1: the day and the 1300 s.
#[test]
fn the_loads_that_are_printed_are_kept() {
    for seed in [1, 7] {
        let load = Cello::new(seed, CAPACITY);
        for disk in 0..figures::DISKS {
            let minutes = counts(load.disk(disk, figures::BUSIEST), 60);
            let printed = figures::BUSIEST_LOADS[disk as usize];
            assert_eq!(minutes.iter().sum::<u64>(), printed.requests, "disk {disk}, table 6.5");
            assert_eq!(minutes.iter().max(), Some(&printed.peak), "disk {disk}, table 6.5");
            let seconds = counts(load.disk(disk, figures::WINDOW), 1);
            let printed = figures::WINDOW_LOADS[disk as usize];
            let peak = seconds.iter().copied().max().unwrap_or(0);
            println!("disk {disk}: the peak of a second is {peak}, printed {}", printed.peak);
            assert_eq!(seconds.iter().sum::<u64>(), printed.requests, "disk {disk}, table 7.1");
            assert!(peak.abs_diff(printed.peak) * 4 <= printed.peak, "disk {disk}, table 7.1");
        }
    }
}

const DAY: Duration = Duration::from_secs(86_400);

/// Tables 3.4 and 3.5: the highest hour and the highest minute of each disk; of the
/// days that they name, or with SLACKLINE_DAYS=63 of all, table 3.3 with them.
#[test]
fn no_hour_and_no_minute_is_higher_than_the_highest() {
    let load = Cello::new(1, CAPACITY);
    let whole = std::env::var("SLACKLINE_DAYS").is_ok_and(|days| days == "63");
    let mut all = 0;
    for disk in 0..figures::DISKS {
        let hour = figures::HIGHEST_HOURS[disk as usize];
        let minute = figures::HIGHEST_MINUTES[disk as usize];
        let (mut hours_max, mut minutes_max) = ((0, 0, 0), (0, 0, 0));
        for day in (0..figures::DAYS).filter(|&day| whole || day == hour.day || day == minute.day) {
            let part = DAY * u64::from(day)..DAY * u64::from(day + 1);
            let minutes = counts(load.disk(disk, part), 60);
            let hours: Vec<u64> = minutes.chunks(60).map(|hour| hour.iter().sum()).collect();
            all += hours.iter().sum::<u64>();
            let highest = |counts: &[u64]| {
                let at = (0..counts.len()).max_by_key(|&at| counts[at]).unwrap_or(0);
                (counts.get(at).copied().unwrap_or(0), day, at as u32)
            };
            hours_max = hours_max.max(highest(&hours));
            minutes_max = minutes_max.max(highest(&minutes));
        }
        assert_eq!(hours_max, (hour.requests, hour.day, hour.hour), "disk {disk}, table 3.4");
        let at = minute.hour * 60 + minute.minute;
        assert_eq!(minutes_max, (minute.requests, minute.day, at), "disk {disk}, table 3.5");
    }
    if whole {
        assert_eq!(all, figures::REQUESTS, "table 3.3");
    } else {
        println!("SLACKLINE_DAYS=63 looks at all days");
    }
}

/// "Queue lengths of over 1,000 entries": in the highest minute of all.
#[test]
fn queues_grow_over_a_thousand() {
    let minute = figures::HIGHEST_MINUTES[0];
    let start = DAY * u64::from(minute.day)
        + Duration::from_secs(u64::from(minute.hour) * 3600 + u64::from(minute.minute) * 60);
    let mut around = Statistics::default();
    let part = start - Duration::from_secs(600)..start + Duration::from_secs(600);
    around.of(Cello::new(1, CAPACITY).disk(0, part), 1);
    assert!(around.queue().2 > 1_000, "{}", around.queue().2);
}

#[test]
fn a_part_is_the_same_whoever_asks_and_repeats_with_its_seed() {
    let day = Cello::new(3, CAPACITY).disk(5, figures::BUSIEST);
    let offset = figures::WINDOW.start - figures::BUSIEST.start;
    let end = figures::WINDOW.end - figures::BUSIEST.start;
    let of_day: Vec<_> = day
        .filter(|demand| demand.at >= offset && demand.at < end)
        .map(|demand| (demand.at - offset, demand.access))
        .collect();
    let alone = |seed| Cello::new(seed, CAPACITY).disk(5, figures::WINDOW);
    let window: Vec<_> = alone(3).map(|demand| (demand.at, demand.access)).collect();
    assert_eq!(of_day, window);
    assert_ne!(window, alone(4).map(|demand| (demand.at, demand.access)).collect::<Vec<_>>());
    let all = Cello::new(3, CAPACITY).disks(&[0, 5], figures::WINDOW);
    let times: Vec<_> = all.map(|demand| demand.at).collect();
    assert!(times.is_sorted());
    assert_eq!(times.len(), 31_066 + 8_401);
}
