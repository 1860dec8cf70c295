//! Model files: TOML in, checked models out.

use super::{
    Bad, Cache, FlashModel, HardDiskModel, Mechanism, Model, Overheads, ReadAhead, Reading, Spares,
    WriteBuffer, Writing, ZoneModel,
};
use crate::arm::Arm;
use crate::error::ensure;
use crate::geometry::Geometry;
use crate::random::Random;
use crate::text::{Points, Text};
use crate::{Error, Line};
use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use serde::Deserialize;
use units::{Bytes, Duration, Rate};

/// The slowest and the fastest spindle, in turns a minute.
const RPM: core::ops::RangeInclusive<u64> = 60..=60_000;
/// The most turns that a bad sector is tried for.
const RETRIES_MAX: u64 = 10_000;
/// The most segments of a cache; they are searched one by one.
const SEGMENTS_MAX: usize = 64;

#[derive(Deserialize)]
struct Kind {
    name: String,
    kind: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HardDiskFile {
    name: String,
    #[serde(rename = "kind")]
    _kind: String,
    source: String,
    rpm: u64,
    heads: u64,
    seek: Points,
    #[serde(default)]
    seek_spread: Vec<(u64, Text<Duration>, Text<Duration>)>,
    write_settle: Text<Duration>,
    head_switch: Text<Duration>,
    cylinder_switch: Text<Duration>,
    same_cylinder: Option<Text<Duration>>,
    track_skew: Text<Duration>,
    cylinder_skew: Text<Duration>,
    overhead: Text<Duration>,
    overheads: Option<OverheadsFile>,
    bus_sector: Option<Text<Duration>>,
    reading: Option<ReadingFile>,
    writing: Option<WritingFile>,
    cache: Option<CacheFile>,
    spares: Option<Spares>,
    zones: Vec<ZoneModel>,
    bad: Option<BadFile>,
    #[serde(default = "at_once_default")]
    depth: u32,
    #[serde(default)]
    seed: u64,
}

/// A hard disk takes one command at a time, where its file does not say more.
fn at_once_default() -> u32 {
    1
}

/// What differs from the one overhead; pairs are after a read and after a write.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct OverheadsFile {
    read_hit: Option<[Text<Duration>; 2]>,
    read_miss: Option<[Text<Duration>; 2]>,
    write: Option<[Text<Duration>; 2]>,
    read_spread: Option<Text<Duration>>,
    write_spread: Option<Text<Duration>>,
}

#[derive(Deserialize, Clone, Copy, Default)]
#[serde(deny_unknown_fields, default)]
struct ReadingFile {
    zero_latency: bool,
    half_track: bool,
    whole_track_from: u64,
    in_order_beyond: u64,
}

#[derive(Deserialize, Clone, Copy, Default)]
#[serde(deny_unknown_fields, default)]
struct WritingFile {
    whole_tracks_beyond: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CacheFile {
    segments: usize,
    segment_sectors: u64,
    read_ahead: String,
    #[serde(default)]
    read_ahead_sectors: u64,
    keeps_sent: bool,
    write_segments: usize,
    #[serde(default)]
    write_buffer: WriteBufferFile,
    holds_written: bool,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct WriteBufferFile {
    /// A segment's where it is not given.
    sectors: Option<u64>,
    holds_back: bool,
    nearest: bool,
    before_reads: bool,
    next_part: Option<Text<Duration>>,
}

/// Bad sectors one by one, or scattered by a seed.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BadFile {
    #[serde(default)]
    remapped: Vec<u64>,
    #[serde(default)]
    retried: Vec<u64>,
    #[serde(default)]
    scattered_remapped: u64,
    #[serde(default)]
    scattered_retried: u64,
    #[serde(default = "one")]
    retries: u64,
}

fn one() -> u64 {
    1
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FlashFile {
    name: String,
    #[serde(rename = "kind")]
    _kind: String,
    source: String,
    capacity: Text<Bytes>,
    depth: u32,
    read: LineFile,
    write: LineFile,
    latency_spread: Text<Duration>,
    collect_every: Text<Bytes>,
    collect_stall: Text<Duration>,
    flush: Text<Duration>,
    #[serde(default)]
    seed: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LineFile {
    cost: Text<Duration>,
    rate: Text<Rate>,
    latency: Text<Duration>,
}

/// Reads a model file; see [`Model::parse`].
pub(super) fn parse(text: &str) -> Result<Model, Error> {
    let syntax = |error: toml::de::Error| Error::Syntax(error.to_string());
    let kind: Kind = toml::from_str(text).map_err(syntax)?;
    match kind.kind.as_str() {
        "hard-disk" => hard_disk(toml::from_str(text).map_err(syntax)?),
        "flash" => flash(toml::from_str(text).map_err(syntax)?),
        other => {
            ensure!(
                false,
                "{}: kind {other:?} is not known; write kind = \"hard-disk\" or \"flash\"",
                kind.name
            );
            unreachable!("refused above")
        }
    }
}

fn hard_disk(file: HardDiskFile) -> Result<Model, Error> {
    ensure!(RPM.contains(&file.rpm), "rpm is {}; give {RPM:?}", file.rpm);
    let means: Vec<_> = file.seek.iter().map(|&(d, Text(time))| (d, time)).collect();
    let spread: Vec<_> =
        file.seek_spread.iter().map(|&(d, Text(below), Text(above))| (d, below, above)).collect();
    let reading = file.reading.unwrap_or_default();
    let WritingFile { whole_tracks_beyond } = file.writing.unwrap_or_default();
    let mut disk = HardDiskModel {
        rotation: Duration::from_secs(60) / file.rpm,
        heads: file.heads,
        arm: Arm::new(&means, &spread)?,
        write_settle: file.write_settle.0,
        head_switch: file.head_switch.0,
        cylinder_switch: file.cylinder_switch.0,
        same_cylinder: file.same_cylinder.map_or(Duration::ZERO, |Text(time)| time),
        track_skew: file.track_skew.0,
        cylinder_skew: file.cylinder_skew.0,
        overheads: overheads(file.overhead.0, file.overheads.unwrap_or_default()),
        bus_sector: file.bus_sector.map_or(Duration::ZERO, |Text(time)| time),
        reading: Reading {
            zero_latency: reading.zero_latency,
            half_track: reading.half_track,
            whole_track_from: reading.whole_track_from,
            in_order_beyond: reading.in_order_beyond,
            burst_sectors: 0,
        },
        writing: Writing { whole_tracks_beyond },
        cache: file.cache.map(cache).transpose()?,
        write_back: false,
        spares: file.spares,
        zones: file.zones,
        bad: Vec::new(),
        depth: file.depth,
        seed: file.seed,
    };
    disk.check()?;
    if let Some(bad) = file.bad {
        disk.bad = bad_sectors(&bad, &disk)?;
        disk.check()?;
    }
    Ok(Model { name: file.name, source: file.source, kind: Mechanism::HardDisk(Box::new(disk)) })
}

fn overheads(all: Duration, file: OverheadsFile) -> Overheads {
    let pair = |pair: Option<[Text<Duration>; 2]>| pair.map_or([all; 2], |[r, w]| [r.0, w.0]);
    let spread = |spread: Option<Text<Duration>>| spread.map_or(Duration::ZERO, |time| time.0);
    Overheads {
        read_hit: pair(file.read_hit),
        read_miss: pair(file.read_miss),
        write: pair(file.write),
        read_spread: spread(file.read_spread),
        write_spread: spread(file.write_spread),
        flush: all,
    }
}

fn cache(file: CacheFile) -> Result<Cache, Error> {
    let read_ahead = match file.read_ahead.as_str() {
        "never" => ReadAhead::Never,
        "always" => ReadAhead::Always,
        "sequential" => ReadAhead::Sequential,
        other => {
            let text = alloc::format!(
                "cache.read_ahead is {other:?}; give \"never\", \"always\" or \"sequential\""
            );
            return Err(Error::Invalid(text));
        }
    };
    ensure!(
        (1..=SEGMENTS_MAX).contains(&file.segments) && file.write_segments <= SEGMENTS_MAX,
        "cache has {} segments, {} for writes; give 1 to {SEGMENTS_MAX}",
        file.segments,
        file.write_segments
    );
    ensure!(
        (1..=1 << 24).contains(&file.segment_sectors) && file.read_ahead_sectors <= 1 << 24,
        "cache.segment_sectors is {}; give 1 to {}",
        file.segment_sectors,
        1 << 24
    );
    let WriteBufferFile { sectors, holds_back, nearest, before_reads, next_part } =
        file.write_buffer;
    let next_part = next_part.map_or(Duration::ZERO, |time| time.0);
    let sectors = sectors.unwrap_or(file.segment_sectors);
    ensure!(
        (1..=file.segment_sectors).contains(&sectors),
        "cache.write_buffer.sectors is {sectors}; give 1 to a segment, {}",
        file.segment_sectors
    );
    Ok(Cache {
        segments: file.segments,
        segment_sectors: file.segment_sectors,
        read_ahead,
        read_ahead_sectors: file.read_ahead_sectors,
        keeps_sent: file.keeps_sent,
        write_segments: file.write_segments,
        write_buffer: WriteBuffer { sectors, holds_back, nearest, before_reads, next_part },
        holds_written: file.holds_written,
    })
}

fn bad_sectors(file: &BadFile, disk: &HardDiskModel) -> Result<Vec<(u64, Bad)>, Error> {
    let sectors = Geometry::new(disk).sectors;
    let retried = Bad::Retried(file.retries);
    let mut bad: Vec<(u64, Bad)> = file.remapped.iter().map(|&lba| (lba, Bad::Remapped)).collect();
    bad.extend(file.retried.iter().map(|&lba| (lba, retried)));
    for &(lba, _) in &bad {
        ensure!(lba < sectors, "bad sector {lba} of a disk that ends at {sectors}");
    }
    let mut random = Random::new(disk.seed ^ 0xbad);
    ensure!(file.retries <= RETRIES_MAX, "{} retries; give at most {RETRIES_MAX}", file.retries);
    let scattered = file.scattered_remapped.saturating_add(file.scattered_retried);
    ensure!(scattered <= sectors / 100, "{scattered} bad sectors; give at most one in a hundred");
    for index in 0..scattered {
        let kind = if index < file.scattered_remapped { Bad::Remapped } else { retried };
        bad.push((random.below(sectors), kind));
    }
    bad.sort_unstable_by_key(|&(lba, _)| lba);
    bad.dedup_by_key(|&mut (lba, _)| lba);
    Ok(bad)
}

fn flash(file: FlashFile) -> Result<Model, Error> {
    let line = |line: &LineFile| Line { fixed: line.cost.0, rate: line.rate.0 };
    let flash = FlashModel {
        capacity: file.capacity.0,
        read: line(&file.read),
        write: line(&file.write),
        read_latency: file.read.latency.0,
        write_latency: file.write.latency.0,
        spread: file.latency_spread.0,
        depth: file.depth,
        collect_every: file.collect_every.0,
        collect_stall: file.collect_stall.0,
        flush: file.flush.0,
        seed: file.seed,
    };
    flash.check()?;
    Ok(Model { name: file.name, source: file.source, kind: Mechanism::Flash(flash) })
}
