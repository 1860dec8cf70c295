//! The profiler against drives that it cannot see into, through a noisy clock.
//!
//! The truth comes from the model's file, which the profiler never reads. The
//! clock between them is that of a busy host: every timestamp is late by some
//! microseconds, and one in a hundred by up to 8 ms.
#![allow(clippy::print_stdout)] // the table is a result

use disk::profiler::{Findings, Options, Profiler, Question, SeekPoint, Step, Timing};
use disk::{Drive, Emulated, HardDisk, Model, Profile};
use units::{Access, Bytes, Command, Direction, Duration, Instant, Lba, SECTOR};

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
    /// What is spent before a sector of the cylinder where the arm is, at least.
    same_cylinder: u64,
    /// Mean of all that a command costs beside the mechanics.
    overhead: u64,
    /// Distance, nanoseconds.
    seek: Vec<(u64, u64)>,
    /// Distance, how much less, how much more.
    spread: Vec<(u64, u64, u64)>,
    tracks: Vec<u64>,
    starts: Vec<u64>,
    /// Segments, sectors in each, sectors read ahead.
    cache: Option<(u64, u64, u64)>,
}

fn nanos(value: &toml::Value) -> u64 {
    value.as_str().unwrap().parse::<Duration>().unwrap().as_nanos()
}

fn number(value: &toml::Value) -> u64 {
    u64::try_from(value.as_integer().unwrap()).unwrap()
}

/// The value at `distance` on straight lines between points.
fn line(points: &[(u64, u64)], distance: u64) -> u64 {
    let after = points.partition_point(|point| point.0 < distance);
    let Some(far) = points.get(after) else { return points[points.len() - 1].1 };
    if after == 0 {
        return far.1;
    }
    let near = points[after - 1];
    let part = (distance - near.0) as f64 / (far.0 - near.0) as f64;
    (near.1 as f64 + (far.1 as f64 - near.1 as f64) * part) as u64
}

impl Truth {
    fn of(text: &str, model: &Model) -> Self {
        let table: toml::Table = text.parse().unwrap();
        let time = |name: &str| table.get(name).map_or(0, nanos);
        let points = table["seek"].as_array().unwrap().iter();
        let spread = table.get("seek_spread").and_then(|spread| spread.as_array());
        let overheads = table.get("overheads").and_then(|overheads| overheads.as_table());
        let read_miss = overheads.and_then(|table| table.get("read_miss"));
        let read_spread = overheads.and_then(|table| table.get("read_spread")).map_or(0, nanos);
        let miss = read_miss.map_or_else(|| time("overhead"), |miss| nanos(&miss[0]));
        let disk::Kind::HardDisk(profile) = Profile::of(model).kind else { panic!("a hard disk") };
        let cache = table.get("cache").and_then(|cache| cache.as_table());
        Self {
            rotation: 60_000_000_000 / number(&table["rpm"]),
            heads: number(&table["heads"]),
            head_switch: nanos(&table["head_switch"]),
            same_cylinder: time("same_cylinder"),
            overhead: miss + read_spread / 2 + time("bus_sector"),
            seek: points.map(|point| (number(&point[0]), nanos(&point[1]))).collect(),
            spread: spread.map_or(Vec::new(), |spread| {
                let row = |row: &toml::Value| (number(&row[0]), nanos(&row[1]), nanos(&row[2]));
                spread.iter().map(row).collect()
            }),
            tracks: table["zones"]
                .as_array()
                .unwrap()
                .iter()
                .map(|zone| number(&zone["sectors_per_track"]))
                .collect(),
            starts: profile.zones.iter().map(|zone| zone.start.get()).collect(),
            cache: cache.map(|cache| {
                let of = |name: &str| number(&cache[name]);
                (of("segments"), of("segment_sectors"), of("read_ahead_sectors"))
            }),
        }
    }

    fn seek(&self, distance: u64) -> u64 {
        line(&self.seek, distance)
    }

    /// The standard deviation: evenly `below` less or `above` more, with chances
    /// that keep the mean.
    fn deviation(&self, distance: u64) -> u64 {
        if self.spread.is_empty() {
            return 0;
        }
        let below: Vec<_> = self.spread.iter().map(|row| (row.0, row.1)).collect();
        let above: Vec<_> = self.spread.iter().map(|row| (row.0, row.2)).collect();
        (line(&below, distance) * line(&above, distance) / 3).isqrt()
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

fn judge(name: &str, truth: &Truth, findings: &Findings) -> bool {
    println!("{name}: truth, found, off, allowed (ns, sectors or numbers)");
    let rotation = findings.rotation.as_ref().expect("it rotates").value.as_nanos();
    let mut good = check("rotation", truth.rotation, rotation, truth.rotation / 10_000);
    good &= check("zones", truth.tracks.len() as u64, findings.zones.len() as u64, 0);
    if truth.tracks.len() != findings.zones.len() {
        println!("  truth {:?} {:?}", truth.starts, truth.tracks);
        let found = findings.zones.iter();
        let found: Vec<_> = found.map(|zone| (zone.start, zone.sectors_per_track)).collect();
        println!("  found {found:?}");
    }
    let (mut start_off, mut track_off) = (0, 0);
    for ((start, track), found) in truth.starts.iter().zip(&truth.tracks).zip(&findings.zones) {
        start_off = start_off.max(start.abs_diff(found.start).div_ceil(*track));
        track_off = track_off.max(track.abs_diff(found.sectors_per_track));
    }
    good &= check("zone starts, tracks off", 0, start_off, 1);
    good &= check("sectors per track, off", 0, track_off, 0);
    good &= check("heads", truth.heads, findings.heads.unwrap_or(1), 0);
    good &= judge_mechanics(truth, findings);
    if let Some((segments, sectors, ahead)) = truth.cache {
        let cache = findings.cache.as_ref().expect("a cache");
        good &= check("cache segments", segments, cache.segments.value, 0);
        good &= check("sectors a segment", sectors, cache.segment.value / SECTOR, 0);
        good &= check("sectors read ahead", ahead, cache.read_ahead / SECTOR, 0);
    } else {
        good &= check("caches", 0, u64::from(findings.cache.is_some()), 0);
    }
    good
}

fn judge_mechanics(truth: &Truth, findings: &Findings) -> bool {
    let mechanics = findings.mechanics.as_ref().expect("mechanics");
    let mut good = true;
    let switch = mechanics.head_switch.as_ref().map_or(0, |found| found.value.as_nanos());
    if truth.same_cylinder > truth.head_switch {
        // The wait for the arm's own cylinder covers the switch: it cannot be seen.
        println!("  head switch: hidden behind the {} ns before any sector", truth.same_cylinder);
    } else if truth.heads > 1 {
        good &= check("head switch", truth.head_switch, switch, truth.head_switch / 20);
    }
    let overhead = mechanics.overhead.as_ref().map_or(0, |found| found.value.as_nanos());
    good &= check("overhead", truth.overhead + truth.same_cylinder, overhead, 60_000);
    // Of overhead and seek only the sum can be seen; the least is called overhead.
    let mean = |distance| truth.seek(distance).saturating_sub(truth.same_cylinder);
    let off = |point: &SeekPoint| point.mean.as_nanos().abs_diff(mean(point.distance));
    let worst = mechanics.seeks.iter().max_by_key(|point| off(point)).expect("seeks");
    let what = format!("worst seek, {} cyl. of {}", worst.distance, mechanics.seeks.len());
    good &= check(&what, mean(worst.distance), worst.mean.as_nanos(), 200_000);
    let square = |deviation: u64| u128::from(deviation).pow(2);
    let (mut spread, mut found) = (0, 0);
    for point in &mechanics.seeks {
        spread += square(truth.deviation(point.distance));
        found += square(point.deviation.as_nanos());
    }
    let root = |sum: u128| (sum / mechanics.seeks.len() as u128).isqrt() as u64;
    let (spread, found) = (root(spread), root(found));
    good & check("seek spread (deviation)", spread, found, (spread / 5).max(20_000))
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
        good &= judge(name, &Truth::of(text, &model), &findings);
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

/// The rate of a stream in chunks of `sectors` on the outer tracks, without noise.
fn stream_rate(model: &Model, sectors: u64) -> u64 {
    let (mut drive, mut now) = (Emulated::new(model), Instant::EPOCH);
    let mut rates = Vec::new();
    for start in 0..9u64 {
        let far = Lba::new(model.capacity() / SECTOR / 2);
        let chunks = (8_192 / sectors).clamp(12, 96);
        let first = model.capacity() / SECTOR / 640 * start;
        let mut times = Vec::new();
        let places = (0..=chunks).map(|index| Lba::new(first + index * sectors));
        for (lba, len) in [(far, SECTOR)].into_iter().chain(places.map(|l| (l, SECTOR * sectors))) {
            let access = Access { lba, len, direction: Direction::Read };
            now += drive.serve(now, &Command::Transfer(access)) + Duration::from_micros(20);
            times.push(now);
        }
        let spent = times[times.len() - 1] - times[1];
        rates.push(chunks * sectors * 512 * 1_000_000_000 / spent.as_nanos());
    }
    rates.sort_unstable();
    rates[4]
}

/// `a` and `b` of semi-preemptible I/O figure 3: between them the disk streams at
/// 93 % of its best, outside it does not; known to one step of the sizes tried and
/// to two and a half percent of the rate.
fn judge_chunks(model: &Model, findings: &Findings) -> bool {
    let (low, high) = findings.chunk_range.expect("a range");
    let sizes: Vec<u64> = findings.chunks.iter().map(|chunk| chunk.size / SECTOR).collect();
    let rates: Vec<u64> = sizes.iter().map(|sectors| stream_rate(model, *sectors)).collect();
    let best = *rates.iter().max().expect("rates");
    let reaches = |index: usize, permille: u64| rates[index] * 1_000 >= best * permille;
    let place = |size: units::Bytes| {
        sizes.iter().position(|sectors| *sectors == size / SECTOR).expect("a size tried")
    };
    let (first, last) = (place(low), place(high));
    let mut good = reaches(first, 905) && reaches(last, 905);
    good &= !(0..first.saturating_sub(1)).any(|index| reaches(index, 955));
    good &= !(last + 2..sizes.len()).any(|index| reaches(index, 955));
    let percent = |index: usize| rates[index] * 100 / best;
    println!(
        "  chunks {low} ({} % of the best in truth; {} % a step below) to {high} ({} %; {} % a step \
         above): {}",
        percent(first),
        percent(first.saturating_sub(1)),
        percent(last),
        percent((last + 1).min(sizes.len() - 1)),
        if good { "right" } else { "<-- beyond what is allowed" }
    );
    good
}

/// The models with caches, buses, spread and spares, those of the papers among them.
const MODELS: [(&str, &str); 7] = [
    ("quantum-atlas-ii", include_str!("../../../models/quantum-atlas-ii.toml")),
    ("atlas-iii", include_str!("../../../models/atlas-iii.toml")),
    ("seagate-cheetah", include_str!("../../../models/seagate-cheetah.toml")),
    ("seagate-st318437lw", include_str!("../../../models/seagate-st318437lw.toml")),
    ("wd400bb", include_str!("../../../models/wd400bb.toml")),
    ("hitachi-travelstar", include_str!("../../../models/hitachi-travelstar.toml")),
    ("hdd-7200-20tb", include_str!("../../../models/hdd-7200-20tb.toml")),
];

#[test]
fn models_with_caches_are_found_out() {
    let only = std::env::var("SLACKLINE_MODEL").ok();
    let mut good = true;
    for (name, text) in MODELS {
        if only.as_deref().is_some_and(|only| only != name) {
            continue;
        }
        let model = Model::parse(text).unwrap();
        let mut bench = Bench::new(Box::new(Emulated::new(&model)));
        let findings = bench.profile(&model, Options::full());
        if only.is_some() {
            println!("{}", findings.to_toml().unwrap());
        }
        good &= judge(name, &Truth::of(text, &model), &findings);
        good &= judge_chunks(&model, &findings);
        let (over, percent) = exceeded(&findings, &mut Emulated::new(&model));
        println!("  beyond the found bound: {over} ppm of reads; bound/actual {percent} %");
    }
    assert!(good, "see the table");
}

/// A device without rotation is told from one that has it, and costs what it costs.
#[test]
fn flash_is_not_taken_for_a_disk() {
    for name in ["ssd-sata", "ssd-nvme"] {
        let model = Model::named(name).unwrap();
        let mut bench = Bench::new(Box::new(Emulated::new(&model)));
        let findings = bench.profile(&model, Options { write: true, ..Options::quick() });
        assert!(!findings.rotates && findings.rotation.is_none(), "{name}");
        let profile = findings.profile().unwrap();
        let disk::Kind::Linear(line) = &profile.kind else { panic!("{name} is linear") };
        println!("{name}: {line:?}");
        println!("{:?}", findings.verdict);
        let flat = findings.flat.as_ref().unwrap();
        let (steady, mixed) = (flat.steady.unwrap(), flat.mixed.unwrap());
        println!("{steady:?}, mixed {mixed}");
        assert_eq!(steady.written, Bytes::mib(512), "{name}");
        let lasting = profile.bound(Lba::new(0), &write(Bytes::MIB)) + Duration::from_micros(50);
        assert!(steady.slowest.time_for(Bytes::MIB) <= lasting, "{name}: the profile knows");
        if name == "ssd-sata" {
            assert!(steady.longest >= Duration::from_millis(10), "{name}: its pauses are seen");
        }
    }
}

fn write(len: Bytes) -> Command {
    Command::Transfer(Access { lba: Lba::new(0), len, direction: Direction::Write })
}

/// A few minutes are enough for a profile whose bounds hold; what is left out is
/// how exactly zones end, and how far seeks vary.
#[test]
fn a_quick_look_takes_minutes_and_its_bounds_hold() {
    for (name, text) in MODELS {
        let model = Model::parse(text).unwrap();
        let mut bench = Bench::new(Box::new(Emulated::new(&model)));
        let begun = bench.now;
        let findings = bench.profile(&model, Options::quick());
        let truth = Truth::of(text, &model);
        assert!(bench.now - begun <= Duration::from_secs(8 * 60 + 1), "{name}");
        let rotation = findings.rotation.as_ref().unwrap().value.as_nanos();
        assert!(check("rotation", truth.rotation, rotation, truth.rotation / 10_000), "{name}");
        assert_eq!(findings.heads, Some(truth.heads), "{name}");
        let (over, percent) = exceeded(&findings, &mut Emulated::new(&model));
        println!("{name}: beyond the bound {over} ppm of reads; bound/actual {percent} %");
        // The Cheetah's seeks vary by distance as no few points can tell.
        let allowed = if name == "seagate-cheetah" { 30_000 } else { 1_000 };
        assert!(over <= allowed, "{name}");
    }
}
