//! What a model's file says, read as text, and what the profiler found beside it.

use super::Random;
use disk::profiler::{Findings, SeekPoint};
use disk::{Drive, Model, Profile};
use units::{Access, Command, Direction, Duration, Instant, Lba, SECTOR};

/// The models with caches, buses, spread and spares, those of the papers among them.
pub const MODELS: [(&str, &str); 7] = [
    ("quantum-atlas-ii", include_str!("../../../../models/quantum-atlas-ii.toml")),
    ("atlas-iii", include_str!("../../../../models/atlas-iii.toml")),
    ("seagate-cheetah", include_str!("../../../../models/seagate-cheetah.toml")),
    ("seagate-st318437lw", include_str!("../../../../models/seagate-st318437lw.toml")),
    ("wd400bb", include_str!("../../../../models/wd400bb.toml")),
    ("hitachi-travelstar", include_str!("../../../../models/hitachi-travelstar.toml")),
    ("hdd-7200-20tb", include_str!("../../../../models/hdd-7200-20tb.toml")),
];

/// What a model's file says, read as text: the profiler's judge.
pub struct Truth {
    pub rotation: u64,
    pub heads: u64,
    pub head_switch: u64,
    /// What is spent before a sector of the cylinder where the arm is, at least.
    pub same_cylinder: u64,
    /// Mean of all that a command costs beside the mechanics.
    pub overhead: u64,
    /// Distance, nanoseconds.
    pub seek: Vec<(u64, u64)>,
    /// Distance, how much less, how much more.
    pub spread: Vec<(u64, u64, u64)>,
    pub tracks: Vec<u64>,
    pub starts: Vec<u64>,
    /// Segments, sectors in each, sectors read ahead.
    pub cache: Option<(u64, u64, u64)>,
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
    pub fn of(text: &str, model: &Model) -> Self {
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
pub fn check(what: &str, truth: u64, found: u64, allowed: u64) -> bool {
    let off = found.abs_diff(truth);
    let good = off <= allowed;
    let mark = if good { "" } else { "   <-- beyond what is allowed" };
    println!("  {what:<28} {truth:>12} {found:>12} {off:>10} {allowed:>10}{mark}");
    good
}

pub fn judge(name: &str, truth: &Truth, findings: &Findings) -> bool {
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
pub fn exceeded(findings: &Findings, drive: &mut dyn Drive) -> (u64, u64) {
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
