//! From findings to a profile that admission can count with, and to text.
//!
//! What was measured gets a margin; what was not measured is assumed on the safe
//! side, and the profile's confidence says which is which.

use super::findings::{Findings, Flat, Mechanics};
use crate::error::ensure;
use crate::text::{exact_duration, exact_rate, exact_size};
use crate::{Error, HardDiskProfile, Kind, LinearProfile, Profile, SeekCurve, ZoneProfile};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;
use units::{Bytes, Duration, Lba, Rate, SECTOR};

/// The most points of a seek curve in a profile; labels have room for few.
const SEEK_POINTS: usize = 24;
/// Added to every measured time that becomes a bound: the measurement's own error.
const MARGIN: Duration = Duration::from_micros(60);
/// The same for seeks that were only looked at quickly.
const MARGIN_QUICK: Duration = Duration::from_micros(500);
/// Assumed for a flush where no write was tried.
const FLUSH_ASSUMED: Duration = Duration::from_millis(250);
/// Assumed for a command's overhead where the cache hid it.
const OVERHEAD_ASSUMED: Duration = Duration::from_millis(1);
/// Assumed for the settling of a write where none was tried; published values are
/// one to two milliseconds.
const SETTLE_ASSUMED: Duration = Duration::from_millis(2);

impl Findings {
    /// The profile that the findings make, with margins.
    ///
    /// # Errors
    /// When the target rotates but its tracks or seeks could not be measured.
    pub fn profile(&self) -> Result<Profile, Error> {
        let kind = match (&self.flat, &self.mechanics) {
            (Some(flat), _) => Kind::Linear(linear(flat)),
            (None, Some(mechanics)) => Kind::HardDisk(self.hard_disk(mechanics)?),
            (None, None) => {
                let text = "the measurement ended too early for a profile; resume it, or allow \
                            more time";
                return Err(Error::Invalid(text.into()));
            }
        };
        let flush = match &self.write_buffer {
            Some(buffer) => buffer.flush.max(buffer.flush_full) * 2,
            None => FLUSH_ASSUMED,
        };
        let profile = Profile {
            source: format!("measured from outside by {} timed commands", self.commands),
            confidence: self.confidence(),
            capacity: self.capacity,
            flush,
            kind,
            bus: None,
        };
        // The same checks that a file gets.
        Profile::parse(&profile.to_toml())
    }

    fn confidence(&self) -> String {
        let reads = if self.zones_exact {
            "zones to the track; seeks bounded by three deviations and a margin"
        } else if self.rotates {
            "quick: zone ends within a hundredth of the disk; seeks bounded by three \
             deviations and a margin"
        } else {
            "the third quartile at saturation and a fifth"
        };
        let writes = if self.write_buffer.is_some() {
            "writes measured"
        } else {
            "writes assumed, not measured"
        };
        format!("{reads}; {writes}")
    }

    fn hard_disk(&self, mechanics: &Mechanics) -> Result<HardDiskProfile, Error> {
        let rotation = self.rotation.as_ref().map_or(Duration::ZERO, |found| found.value);
        ensure!(
            !mechanics.seeks.is_empty() && !self.zones.is_empty(),
            "seeks or zones were not measured; resume the measurement, or allow more time"
        );
        let heads = self.heads.unwrap_or(1);
        let steps = self.zones.iter().map(|zone| zone.cylinder_skew.max(zone.track_skew));
        let switch = steps.max().unwrap_or(Duration::ZERO) + self.excess + MARGIN;
        Ok(HardDiskProfile {
            overhead: mechanics.overhead_high.unwrap_or(OVERHEAD_ASSUMED) + MARGIN,
            rotation: rotation + rotation / 5_000,
            seek: seek_bounds(mechanics, if self.zones_exact { MARGIN } else { MARGIN_QUICK })?,
            write_settle: SETTLE_ASSUMED,
            switch,
            long_reads: None,
            long_writes: None,
            queue: self.held.as_ref().map_or(1, |held| held.queue),
            zones: self
                .zones
                .iter()
                .map(|zone| {
                    let tracks = zone.track_skew * (heads - 1);
                    let turn = rotation * heads + tracks + zone.cylinder_skew;
                    let cylinder = SECTOR * zone.sectors_per_track * heads;
                    ZoneProfile {
                        start: Lba::new(zone.start),
                        cylinders: zone.cylinders,
                        // A thousandth less, for the error of the skews.
                        rate: Rate::of(cylinder, turn + turn / 1_000),
                    }
                })
                .collect(),
        })
    }
}

/// A curve above the usual longest and three deviations above the mean.
fn seek_bounds(mechanics: &Mechanics, margin: Duration) -> Result<SeekCurve, Error> {
    let seeks = &mechanics.seeks;
    let least = seeks.iter().map(|point| point.mean).min().unwrap_or_default();
    let switch = mechanics.head_switch.as_ref().map_or(least, |found| found.value);
    let mut longest = switch.min(least) + MARGIN;
    let mut points = Vec::from([(0, longest)]);
    let step = seeks.len().div_ceil(SEEK_POINTS);
    // The curve bends downwards, so straight lines between fewer points may lie
    // below it: each point takes the bound of the last one that it stands for.
    for group in seeks.chunks(step) {
        for point in group {
            let bound = point.high.max(point.mean + point.deviation * 3) + margin;
            longest = longest.max(bound);
        }
        points.push((group[0].distance, longest));
    }
    let end = points.last().map_or(0, |point| point.0);
    points.extend(seeks.last().filter(|last| last.distance > end).map(|l| (l.distance, longest)));
    SeekCurve::new(points)
}

fn linear(flat: &Flat) -> LinearProfile {
    let read = flat.read.line.stretched(20);
    let (write, latency) = match &flat.write {
        Some(write) => (write.line.stretched(20), flat.read.latency.max(write.latency)),
        // Twice a read, and a fifth.
        None => (flat.read.line.stretched(140), flat.read.latency),
    };
    LinearProfile { read, write, depth: flat.depth, latency: latency + latency / 2, spread: None }
}

/// Text of `[measured]`, which readers of a profile ignore.
struct Text(String);

impl Text {
    fn line(&mut self, name: &str, value: impl core::fmt::Display, why: &str) {
        let why = if why.is_empty() { String::new() } else { format!(" # {why}") };
        writeln!(self.0, "{name} = {value}{why}").expect("a string has room");
    }
    fn time(&mut self, name: &str, value: Duration, why: &str) {
        self.line(name, format!("\"{}\"", exact_duration(value)), why);
    }
    fn size(&mut self, name: &str, value: Bytes, why: &str) {
        self.line(name, format!("\"{}\"", exact_size(value)), why);
    }
    fn head(&mut self, name: &str) {
        writeln!(self.0, "\n[{name}]").expect("a string has room");
    }
    /// Rows of an array of inline tables or arrays.
    fn rows(&mut self, name: &str, rows: impl Iterator<Item = String>) {
        writeln!(self.0, "{name} = [").expect("a string has room");
        for row in rows {
            writeln!(self.0, "    {row},").expect("a string has room");
        }
        self.0.push_str("]\n");
    }
}

impl Findings {
    /// The profile and, under `[measured]`, everything that was found with its
    /// confidence, as TOML that [`Profile::parse`] reads.
    ///
    /// # Errors
    /// Those of [`Findings::profile`].
    pub fn to_toml(&self) -> Result<String, Error> {
        let mut text = Text(self.profile()?.to_toml());
        self.write_head(&mut text);
        if self.rotates {
            self.write_rotating(&mut text);
        }
        if let Some(cache) = &self.cache {
            text.head("measured.cache");
            text.time("hit", cache.hit, "a read that is cached");
            text.line("segments", cache.segments.value, &cache.segments.confidence);
            text.size("segment", cache.segment.value, &cache.segment.confidence);
            text.size("read-ahead", cache.read_ahead, "when left alone after reads in a row");
            text.size("read-ahead-alone", cache.read_ahead_alone, "after a single read");
            text.size("size", cache.size, "segments times their size");
        }
        if let Some(buffer) = &self.write_buffer {
            text.head("measured.writes");
            if let Some(hides) = buffer.hides_latency {
                text.line("hide-latency", hides, "answered before on the medium");
            }
            text.time("random", buffer.random, "median of 16");
            text.time("again", buffer.again, "the same place at once, median of 16");
            text.time("flush", buffer.flush, "longest of 16");
            text.time("flush-full", buffer.flush_full, "longest behind what a commit leaves");
            text.time("flush-idle", buffer.flush_idle, "right after a flush, median of 16");
        }
        if let Some(flat) = &self.flat {
            write_flat(&mut text, flat);
        }
        self.write_streams(&mut text);
        Ok(text.0)
    }

    fn write_head(&self, text: &mut Text) {
        text.head("measured");
        text.line("rotates", self.rotates, "");
        text.line("commands", self.commands, "");
        text.time("far-read", self.far_read, "after a movement over a third or more, median");
        if let Some((low, high)) = self.chunk_range {
            text.size("chunk-least", low, "from here to chunk-most it streams: a and b");
            text.size("chunk-most", high, "");
        }
        text.rows("notes", self.notes.iter().map(|note| format!("{note:?}")));
        text.rows("verdict", self.verdict.iter().map(|say| format!("{say:?}")));
    }

    fn write_rotating(&self, text: &mut Text) {
        if let Some(rotation) = &self.rotation {
            text.time("rotation", rotation.value, &rotation.confidence);
        }
        if let Some(heads) = self.heads {
            text.line("heads", heads, "by the rhythm of the skews");
        }
        let Some(mechanics) = &self.mechanics else { return };
        if let Some(overhead) = &mechanics.overhead {
            text.time("overhead", overhead.value, &overhead.confidence);
            let high = mechanics.overhead_high.unwrap_or(overhead.value);
            text.time("overhead-high", high, "all but the slowest twentieth");
        }
        if let Some(switch) = &mechanics.head_switch {
            text.time("head-switch", switch.value, &switch.confidence);
        }
        if !self.excess.is_zero() {
            let why = "added to every bound: long reads took longer than the parts account for";
            text.time("excess", self.excess, why);
        }
        if let Some((mean, full)) = self.seek_mean_and_full() {
            text.time("seek-mean", mean, "over all pairs of cylinders");
            text.time("seek-full", full, "from the first cylinder to the last");
        }
        if let Some(curve) = self.two_phase() {
            let why = format!("microseconds; off by {} at most", curve.off_most);
            text.line("seek-curve", format!("\"{curve}\""), &why);
        }
        let time = |time: Duration| exact_duration(time);
        text.0.push_str(
            "# cylinders, mean, standard deviation, and what the middle nine tenths lie between\n",
        );
        text.rows(
            "seek",
            mechanics.seeks.iter().map(|point| {
                let (mean, deviation) = (time(point.mean), time(point.deviation));
                let (low, high) = (time(point.low), time(point.high));
                let d = point.distance;
                format!("[{d}, \"{mean}\", \"{deviation}\", \"{low}\", \"{high}\"]")
            }),
        );
        if let Some(held) = &self.held {
            text.line("queue", held.queue, "commands that it is given at a time");
            text.0.push_str("# in flight, time of a small read at a random place\n");
            let depths = held.depths.iter();
            let row = |(n, each): &(u32, Duration)| format!("[{n}, \"{}\"]", time(*each));
            text.rows("queue-depths", depths.map(row));
        }
        text.0.push_str("# first sector, cylinders, sectors per track, skews\n");
        text.rows(
            "zones",
            self.zones.iter().map(|zone| {
                let (track, cylinder) = (time(zone.track_skew), time(zone.cylinder_skew));
                let (start, n) = (zone.start, zone.sectors_per_track);
                format!("[{start}, {}, {n}, \"{track}\", \"{cylinder}\"]", zone.cylinders)
            }),
        );
    }

    fn write_streams(&self, text: &mut Text) {
        text.head("measured.streams");
        text.0.push_str("# chunk, rate of a stream in such chunks on the outer tracks\n");
        let chunk = |size: Bytes, rate: Rate| {
            format!("[\"{}\", \"{}\"]", exact_size(size), exact_rate(rate))
        };
        text.rows("chunks", self.chunks.iter().map(|found| chunk(found.size, found.rate)));
        text.0.push_str("# zone's first sector, size, sequential rate, one at random, median\n");
        text.rows(
            "throughput",
            self.throughput.iter().map(|found| {
                let (size, rate) = (exact_size(found.size), exact_rate(found.sequential));
                let random = exact_duration(found.random);
                format!("[{}, \"{size}\", \"{rate}\", \"{random}\"]", found.start)
            }),
        );
    }
}

fn write_flat(text: &mut Text, flat: &Flat) {
    text.head("measured.flat");
    text.line("depth", flat.depth, "the least in flight with 95 % of the best rate");
    let depths = flat.depths.iter();
    text.0.push_str("# in flight, device time of a small read\n");
    text.rows("depths", depths.map(|(n, time)| format!("[{n}, \"{}\"]", exact_duration(*time))));
    if let Some(mixed) = flat.mixed {
        text.time("mixed", mixed, "device time of small reads and writes by turns, median");
    }
    if let Some(steady) = &flat.steady {
        text.size("steady-written", steady.written, "without a break");
        let rate = |rate: Rate| format!("\"{}\"", exact_rate(rate));
        text.line("steady-first", rate(steady.first), "the first eighth");
        text.line("steady-slowest", rate(steady.slowest), "the slowest eighth after it");
        text.time("steady-longest", steady.longest, "one write, the host's lateness included");
    }
    let directions = [("read", Some(&flat.read)), ("write", flat.write.as_ref())];
    for (name, cost) in directions {
        let Some(cost) = cost else { continue };
        text.time(&format!("{name}-latency"), cost.latency, "all but a hundredth, at that depth");
        text.0.push_str("# size, device time at saturation, time alone, medians\n");
        text.rows(
            name,
            cost.sizes.iter().map(|(size, device, alone)| {
                let (device, alone) = (exact_duration(*device), exact_duration(*alone));
                format!("[\"{}\", \"{device}\", \"{alone}\"]", exact_size(*size))
            }),
        );
    }
}
