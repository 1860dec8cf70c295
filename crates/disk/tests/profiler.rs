//! The profiler against drives that it cannot see into, through a noisy clock.
//!
//! The truth comes from the model's file, which the profiler never reads. The
//! clock between them is that of a busy host: every timestamp is late by some
//! microseconds, and one in a hundred by up to 8 ms.
#![allow(clippy::print_stdout)] // the table is a result

use disk::profiler::{Findings, Options, Profiler, Question, Step, Timing};
use disk::{Drive, HardDisk, Model};
use units::{Access, Command, Direction, Duration, Instant, Lba, SECTOR};

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
    /// A host's lateness: the sum of two small ones, seldom a wake-up that is late.
    fn late(&mut self, wild_in: u64) -> Duration {
        let small = self.below(9_000) + self.below(9_000);
        let wild = if self.below(wild_in) == 0 { self.below(8_000_000) } else { 0 };
        Duration::from_nanos(small + wild)
    }
}

/// A drive behind a host.
struct Bench {
    drive: Box<dyn Drive>,
    random: Random,
    now: Instant,
    noisy: bool,
}

impl Bench {
    fn new(drive: Box<dyn Drive>) -> Self {
        let now = Instant::from_nanos(1_234_567_891);
        // Another host has other luck: SLACKLINE_SEED=7.
        let seed = std::env::var("SLACKLINE_SEED").ok().and_then(|seed| seed.parse().ok());
        Self { drive, random: Random(seed.unwrap_or(42)), now, noisy: true }
    }

    fn late(&mut self, wild_in: u64) -> Duration {
        if self.noisy { self.random.late(wild_in) } else { Duration::ZERO }
    }

    fn answer(&mut self, question: &Question) -> Vec<Timing> {
        let mut answers = Vec::new();
        let mut delay = question.delay;
        for command in &question.commands {
            let started = self.now + delay + self.late(100);
            // Between the timestamp and the drive lie some system calls; that the
            // host is interrupted right there is rare.
            let begin = started + self.late(2_000);
            let end = begin + self.drive.serve(begin, command);
            self.now = end + self.late(100);
            answers.push(Timing { started, finished: self.now, failed: false });
            delay = Duration::ZERO;
        }
        answers
    }

    fn profile(&mut self, model: &Model, options: Options) -> Findings {
        let mut profiler = Profiler::new(model.capacity(), options).unwrap();
        let begun = self.now;
        while let Step::Ask(question) = profiler.poll() {
            let answers = self.answer(&question);
            profiler.done(&answers);
        }
        let findings = profiler.findings().unwrap().clone();
        println!("{} commands, {:?} of disk time", findings.commands, self.now - begun);
        findings
    }
}

/// What a model's file says, read as text: the profiler's judge.
struct Truth {
    rotation: u64,
    heads: u64,
    head_switch: u64,
    overhead: u64,
    /// Distance, nanoseconds.
    seek: Vec<(u64, u64)>,
    /// Cylinders, sectors per track.
    zones: Vec<(u64, u64)>,
}

fn nanos(value: &toml::Value) -> u64 {
    value.as_str().unwrap().parse::<Duration>().unwrap().as_nanos()
}

impl Truth {
    fn of(text: &str) -> Self {
        let table: toml::Table = text.parse().unwrap();
        let number = |value: &toml::Value| u64::try_from(value.as_integer().unwrap()).unwrap();
        let points = table["seek"].as_array().unwrap().iter();
        let zones = table["zones"].as_array().unwrap().iter();
        Self {
            rotation: 60_000_000_000 / number(&table["rpm"]),
            heads: number(&table["heads"]),
            head_switch: nanos(&table["head_switch"]),
            overhead: nanos(&table["overhead"]),
            seek: points.map(|point| (number(&point[0]), nanos(&point[1]))).collect(),
            zones: zones
                .map(|zone| (number(&zone["cylinders"]), number(&zone["sectors_per_track"])))
                .collect(),
        }
    }

    fn starts(&self) -> Vec<u64> {
        let mut start = 0;
        self.zones
            .iter()
            .map(|(cylinders, track)| {
                let here = start;
                start += cylinders * track * self.heads;
                here
            })
            .collect()
    }

    fn seek(&self, distance: u64) -> u64 {
        let after = self.seek.partition_point(|point| point.0 < distance);
        let Some(far) = self.seek.get(after) else { return self.seek[self.seek.len() - 1].1 };
        if after == 0 {
            return far.1;
        }
        let near = self.seek[after - 1];
        near.1 + (far.1 - near.1) * (distance - near.0) / (far.0 - near.0)
    }
}

/// One line of the table: what, truth, found, and how far off it may be.
fn check(what: &str, truth: u64, found: u64, allowed: u64) -> bool {
    let off = found.abs_diff(truth);
    let good = off <= allowed;
    let mark = if good { "" } else { "   <-- beyond what is allowed" };
    println!("  {what:<28} {truth:>12} {found:>12} {off:>10} {allowed:>10}{mark}");
    good
}

fn judge(name: &str, text: &str, findings: &Findings) -> bool {
    let truth = Truth::of(text);
    println!("{name}: truth, found, off, allowed (ns or sectors)");
    let rotation = findings.rotation.as_ref().expect("it rotates").value.as_nanos();
    let mut good = check("rotation", truth.rotation, rotation, truth.rotation / 10_000);
    good &= check("zones", truth.zones.len() as u64, findings.zones.len() as u64, 0);
    let (mut start_off, mut track_off) = (0, 0);
    for ((start, zone), found) in truth.starts().iter().zip(&truth.zones).zip(&findings.zones) {
        start_off = start_off.max(start.abs_diff(found.start) / zone.1);
        track_off = track_off.max(zone.1.abs_diff(found.sectors_per_track));
    }
    if truth.zones.len() != findings.zones.len() {
        println!("  truth {:?} {:?}", truth.starts(), truth.zones);
        let found = findings.zones.iter();
        let found: Vec<_> = found.map(|zone| (zone.start, zone.sectors_per_track)).collect();
        println!("  found {found:?}");
    }
    good &= check("zone starts, tracks off", 0, start_off, 1);
    good &= check("sectors per track, off", 0, track_off, 0);
    good &= check("heads", truth.heads, findings.heads.unwrap_or(1), 0);
    let mechanics = findings.mechanics.as_ref().expect("mechanics");
    if truth.heads > 1 {
        let switch = mechanics.head_switch.as_ref().map_or(0, |found| found.value.as_nanos());
        good &= check("head switch", truth.head_switch, switch, truth.head_switch / 20);
    }
    let overhead = mechanics.overhead.as_ref().map_or(0, |found| found.value.as_nanos());
    good &= check("overhead", truth.overhead, overhead, 60_000);
    let off = |point: &disk::profiler::SeekPoint| {
        point.mean.as_nanos().abs_diff(truth.seek(point.distance))
    };
    let worst = mechanics.seeks.iter().max_by_key(|point| off(point)).expect("seeks");
    let what = format!("worst seek, {} cyl. of {}", worst.distance, mechanics.seeks.len());
    good &= check(&what, truth.seek(worst.distance), worst.mean.as_nanos(), 200_000);
    let spread = mechanics.seeks.iter().map(|point| point.deviation.as_nanos()).max().unwrap();
    good &= check("seek spread", 0, spread, 60_000);
    good
}

/// The share of random reads that take longer than the found profile's bound, in
/// millionths, and the mean of bound to truth in percent.
fn exceeded(findings: &Findings, drive: &mut dyn Drive) -> (u64, u64) {
    let profile = findings.profile().expect("a profile");
    let end = profile.capacity() / SECTOR;
    let (mut random, mut now, mut head) = (Random(7), Instant::EPOCH, Lba::new(0));
    let (mut over, mut bounds, mut times) = (0, 0, 0);
    let count = 20_000;
    for _ in 0..count {
        let sectors = [1, 8, 128, 2_048][random.below(4) as usize];
        let lba = Lba::new(random.below(end - sectors));
        let access = Access { lba, len: SECTOR * sectors, direction: Direction::Read };
        let command = Command::Transfer(access);
        let (bound, time) = (profile.bound(head, &command), drive.serve(now, &command));
        over += u64::from(time > bound);
        bounds += bound.as_nanos();
        times += time.as_nanos();
        now += time + Duration::from_nanos(random.below(3_000_000));
        head = access.end();
    }
    (over * 1_000_000 / count, bounds * 100 / times)
}

const LAPTOP: &str = include_str!("../../../models/laptop-4200.toml");

/// A plain mechanical disk, from what differs.
fn plain(
    name: &str,
    rpm: u64,
    heads: u64,
    switch: [&str; 4],
    seek: &[(u64, &str)],
    zones: &[(u64, u64)],
) -> String {
    let points: Vec<String> = seek.iter().map(|(d, time)| format!("[{d}, \"{time}\"]")).collect();
    let zones: Vec<String> = zones
        .iter()
        .map(|(c, n)| format!("{{ cylinders = {c}, sectors_per_track = {n} }}"))
        .collect();
    let [head, cylinder, track_skew, cylinder_skew] = switch;
    format!(
        "name = \"{name}\"\nkind = \"hard-disk\"\nsource = \"this test\"\nrpm = {rpm}\n\
         heads = {heads}\nseek = [{}]\nwrite_settle = \"1ms\"\nhead_switch = \"{head}\"\n\
         cylinder_switch = \"{cylinder}\"\ntrack_skew = \"{track_skew}\"\n\
         cylinder_skew = \"{cylinder_skew}\"\noverhead = \"0.2ms\"\nzones = [{}]\n",
        points.join(", "),
        zones.join(", ")
    )
}

/// Disks of several ages: few sectors and many, two heads and sixteen, few zones
/// and many, one of them a single track wide.
fn plain_disks() -> Vec<(&'static str, String)> {
    let short = [(1, "0.8ms"), (10, "1.1ms"), (100, "1.9ms"), (1_000, "4ms"), (6_000, "9ms")];
    let slow = [(1, "3.5ms"), (10, "5ms"), (100, "9ms"), (600, "18ms"), (1_448, "28ms")];
    let far = [(1, "0.8ms"), (10, "1ms"), (1_000, "2.2ms"), (50_000, "6ms"), (400_000, "15ms")];
    let tenths: Vec<(u64, u64)> = (0..12).map(|z| (480 + 7 * z % 50, 179 - 6 * z)).collect();
    let many: Vec<(u64, u64)> = (0..30).map(|z| (9_000 + 131 * z, 2_400 - 43 * z)).collect();
    let odd = [(900, 437), (1, 436), (700, 435), (30, 400), (1_000, 399), (2, 398), (1_500, 300)];
    let old = ["1.2ms", "3ms", "1.3ms", "3.2ms"];
    let usual = ["0.7ms", "1ms", "0.8ms", "1.1ms"];
    vec![
        ("ten-heads-7200", plain("ten-heads-7200", 7_200, 10, usual, &short, &tenths)),
        ("server-10033", plain("server-10033", 10_033, 8, usual, &short, &tenths)),
        ("old-4002", plain("old-4002", 4_002, 8, old, &slow, &[(1_449, 56)])),
        ("sixteen-heads-7200", plain("sixteen-heads-7200", 7_200, 16, usual, &far, &many)),
        ("odd-zones-5400", plain("odd-zones-5400", 5_400, 2, usual, &short, &odd)),
    ]
}

#[test]
fn plain_disks_are_found_out() {
    let mut all = plain_disks();
    all.insert(0, ("laptop-4200", LAPTOP.to_owned()));
    let mut good = true;
    for (name, text) in &all {
        let model = Model::parse(text).unwrap();
        let mut bench = Bench::new(Box::new(HardDisk::new(&model)));
        let findings = bench.profile(&model, Options::full());
        good &= judge(name, text, &findings);
        let (over, percent) = exceeded(&findings, &mut HardDisk::new(&model));
        println!("  beyond the found bound: {over} ppm of reads; bound/actual {percent} %");
        good &= over <= 1_000;
    }
    assert!(good, "see the table");
}

/// Stopped after any command and resumed from its journal, on a clock that began
/// anew, the profiler asks for no answer twice and finds the same.
#[test]
fn a_profiler_goes_on_from_its_journal() {
    let model = Model::parse(LAPTOP).unwrap().scaled(units::Bytes::GIB).unwrap();
    let options = Options::quick();
    let mut bench = Bench::new(Box::new(HardDisk::new(&model)));
    let mut profiler = Profiler::new(model.capacity(), options.clone()).unwrap();
    let mut journal = profiler.journal_header();
    let mut commands = 0;
    while let Step::Ask(question) = profiler.poll() {
        let answers = bench.answer(&question);
        journal += &Profiler::journal_entry(&question, &answers);
        profiler.done(&answers);
        commands += 1;
        if [70, 150, 900, 2_000].contains(&commands) {
            // Killed while it wrote a line.
            let cut = journal.len() - 7;
            let (resumed, used) =
                Profiler::resume(model.capacity(), options.clone(), &journal[..cut]).unwrap();
            assert_eq!(resumed.progress().commands, profiler.progress().commands - 1);
            journal.truncate(used);
            journal += Profiler::JOURNAL_RESUMED;
            profiler = resumed;
            bench.now += Duration::from_nanos(3_600_000_000_123);
        }
    }
    let findings = profiler.findings().unwrap();
    let uninterrupted =
        Bench::new(Box::new(HardDisk::new(&model))).profile(&model, options.clone());
    let tracks = |findings: &Findings| -> Vec<u64> {
        findings.zones.iter().map(|zone| zone.sectors_per_track).collect()
    };
    assert_eq!(tracks(findings), tracks(&uninterrupted));
    assert_eq!(findings.heads, uninterrupted.heads);
    let other = Profiler::resume(model.capacity(), Options::full(), &journal).err().unwrap();
    assert!(other.to_string().contains("delete it to start anew"), "{other}");
    let (whole, used) = Profiler::resume(model.capacity(), options, &journal).unwrap();
    assert_eq!(used, journal.len());
    assert_eq!(whole.progress().commands, profiler.progress().commands);
}

#[test]
fn models_are_found_out() {
    let only = std::env::var("SLACKLINE_MODEL").ok();
    for name in ["quantum-atlas-ii", "atlas-iii", "seagate-cheetah", "seagate-st318437lw", "wd400bb", "hitachi-travelstar", "hdd-7200-20tb"] {
        if only.as_deref().is_some_and(|only| only != name) { continue; }
        println!("=== {name}");
        let model = Model::named(name).unwrap();
        let mut bench = Bench::new(Box::new(disk::Emulated::new(&model)));
        let findings = bench.profile(&model, Options::full());
        println!("{}", findings.to_toml().unwrap_or_else(|e| format!("{e} {findings:#?}")));
    }
}
