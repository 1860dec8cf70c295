//! The cello-like load beside what the Clockwise thesis prints of cello (section 3.2.2,
//! tables 3.3 to 3.5, 6.5 and 7.1). The first group of figures is made to be as printed
//! and must be so exactly; the second comes out of the model and must be near.
#![allow(clippy::print_stdout)] // ours beside theirs is the result

use sim::workload::Source;
use sim::workload::cello::{Cello, figures};
use sim::workload::statistics::{Drive1992, Queues, Statistics};
use units::{Bytes, Direction, Duration};

const CAPACITY: Bytes = Bytes::new(1_300_000_000); // the thesis: 10.4 GB in eight disks

/// Counts the load of one disk.
fn count(source: impl Source, seed: u64, statistics: &mut Statistics, queues: &mut Queues) {
    let mut drive = Drive1992::new(seed);
    for demand in source {
        statistics.add(&demand);
        let (queue, latency) = drive.serve(demand.at);
        queues.add(demand.access.direction, queue, latency);
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

fn busiest_day(seed: u64) -> (Statistics, Queues) {
    let load = Cello::new(seed, CAPACITY);
    let (mut statistics, mut queues) = (Statistics::default(), Queues::default());
    for disk in 0..figures::DISKS {
        let source = load.disk(disk, figures::BUSIEST);
        count(source, u64::from(disk), &mut statistics, &mut queues);
    }
    (statistics, queues)
}

/// What comes out of the model. The printed figures are of 63 days, ours of the day
/// that the thesis plays.
#[test]
fn the_mix_the_bursts_and_the_queues_are_near_those_that_are_printed() {
    for seed in [1, 2, 3] {
        let (all, queues) = busiest_day(seed);
        let of = |part: u64, whole: u64| 100.0 * part as f64 / whole as f64;
        let rows = [
            row("reads, %", 44.0, all.percent(all.reads), 0.03),
            row("sequential reads, %", 7.7, of(all.sequential_reads, all.reads), 0.1),
            row("sequential writes, %", 6.3, of(all.sequential_writes, all.writes()), 0.1),
            row("less than 40 ms apart, %", 80.0, all.percent_within(40), 0.04),
            row("less than 1 ms, % (10 to 20)", 15.0, all.percent(all.under_1_ms), 0.33),
            row("queue, mean", 8.9, queues.mean(), 0.15),
            row("queue, standard deviation", 36.0, queues.deviation(), 0.25),
            row("latency of reads, ms", 27.4, queues.latency_ms(Some(Direction::Read)), 0.1),
            row("latency of writes, ms", 272.0, queues.latency_ms(Some(Direction::Write)), 0.2),
            row("latency, ms", 164.0, queues.latency_ms(None), 0.2),
        ];
        println!("seed {seed}");
        assert_eq!(compare(&rows), [""; 0], "too far from print");
        assert!(all.percent(all.of_8_kib) > 75.0, "most requests are for 8 KB");
        shape_of_the_times_between(&all);
    }
}

/// Peaks at 0 and at about 20 ms, and a long tail (section 3.2.2, after Ruemmler and
/// Wilkes).
fn shape_of_the_times_between(all: &Statistics) {
    let percent: Vec<f64> = all.times_between().take(25).collect();
    println!("% in each 2 ms: {percent:.1?}");
    let peak = (3..25).max_by(|&a, &b| percent[a].total_cmp(&percent[b])).unwrap();
    assert!((8..=11).contains(&peak), "the second peak is at about 20 ms, not at {} ms", peak * 2);
    let between = percent[3..8].iter().copied().fold(f64::MAX, f64::min);
    assert!(percent[0] > 4.0 * between && percent[peak] > 4.0 * between, "two peaks");
    let over_a_second = 100.0 - all.percent_within(1_000);
    println!("over a second: {over_a_second:.1} %, longest {}", all.apart_max);
    assert!(over_a_second > 1.0 && all.apart_max > Duration::from_secs(600), "a long tail");
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
    let part = start - Duration::from_secs(600)..start + Duration::from_secs(600);
    let mut queues = Queues::default();
    let source = Cello::new(1, CAPACITY).disk(0, part);
    count(source, 1, &mut Statistics::default(), &mut queues);
    assert!(queues.max() > 1_000, "{}", queues.max());
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
