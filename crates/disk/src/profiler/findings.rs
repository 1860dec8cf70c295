//! What a profiler found, with how well it is known.

use crate::Line;
use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use units::{Bytes, Duration, Rate};

/// Times of writes and flushes, in nanoseconds.
#[derive(Default)]
pub(super) struct WriteTimes {
    /// Of writes somewhere.
    pub first: Vec<i64>,
    /// Of the same place at once.
    pub again: Vec<i64>,
    /// Of a flush after that.
    pub flush: Vec<i64>,
    /// And of a flush after the flush, which has nothing to do.
    pub idle: Vec<i64>,
    /// Of flushes behind more and more writes, up to what a commit interval leaves.
    pub full: Vec<i64>,
}

/// A value and how far to trust it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measured<T> {
    /// The value.
    pub value: T,
    /// How it was found and how well it is known, in words.
    pub confidence: String,
}

impl<T> Measured<T> {
    pub(super) fn new(value: T, confidence: impl Into<String>) -> Self {
        Self { value, confidence: confidence.into() }
    }
}

/// A zone of a hard disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneFound {
    /// The first sector.
    pub start: u64,
    /// Sectors on each track.
    pub sectors_per_track: u64,
    /// How many cylinders, by the heads found (1 where they were not).
    pub cylinders: u64,
    /// By how much the first sector of a track comes later than on the head before.
    pub track_skew: Duration,
    /// And than on the last head of the cylinder before.
    pub cylinder_skew: Duration,
}

/// The positioning time over one distance, command overhead taken off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeekPoint {
    /// In cylinders.
    pub distance: u64,
    /// Mean.
    pub mean: Duration,
    /// Standard deviation.
    pub deviation: Duration,
    /// All but the quickest twentieth took as long.
    pub low: Duration,
    /// All but the slowest twentieth took no longer.
    pub high: Duration,
    /// How many reads it took to know.
    pub reads: u32,
}

/// The moving parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mechanics {
    /// What a command costs before the arm moves and after the sector is read, mean.
    pub overhead: Option<Measured<Duration>>,
    /// All but the slowest twentieth of commands cost no more than that.
    pub overhead_high: Option<Duration>,
    /// From one head to the next of a cylinder.
    pub head_switch: Option<Measured<Duration>>,
    /// By rising distance.
    pub seeks: Vec<SeekPoint>,
}

/// The cache for reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cache {
    /// What a read from it takes.
    pub hit: Duration,
    /// How many places it remembers.
    pub segments: Measured<u64>,
    /// How much of each.
    pub segment: Measured<Bytes>,
    /// How far it reads ahead when left alone.
    pub read_ahead: Bytes,
    /// The same after a single read that continues none.
    pub read_ahead_alone: Bytes,
    /// Segments times their size.
    pub size: Bytes,
}

/// What happens to writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteBuffer {
    /// Whether a write is answered before it is on the medium; nothing where times do
    /// not tell.
    pub hides_latency: Option<bool>,
    /// A write at a random place, median.
    pub random: Duration,
    /// The same place at once again, median.
    pub again: Duration,
    /// The longest flush after one write.
    pub flush: Duration,
    /// A flush right after a flush, median.
    pub flush_idle: Duration,
    /// The longest flush behind as many writes as the drive's cache holds, or as can be made
    /// in a commit interval.
    pub flush_full: Duration,
}

impl WriteBuffer {
    pub(super) fn from_times(rotates: bool, times: &WriteTimes) -> Self {
        use super::session::span;
        use super::statistics::median;
        let (again, flush, idle) =
            (median(&times.again), median(&times.flush), median(&times.idle));
        Self {
            // On the medium, the same sector comes by again a whole turn later. Without
            // rotation, a flush that takes longer than a write had something to do, unless
            // one with nothing to do takes as long.
            hides_latency: match rotates {
                true => Some(again < 1_500_000),
                false if flush <= 2 * again => Some(false),
                false => (flush > idle + idle / 2).then_some(true),
            },
            random: span(median(&times.first)),
            again: span(again),
            flush: span(times.flush.iter().copied().max().unwrap_or(0)),
            flush_idle: span(idle),
            flush_full: span(times.full.iter().copied().max().unwrap_or(0)),
        }
    }
}

/// The rate of a sequential stream in chunks of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// The size of each command.
    pub size: Bytes,
    /// The rate.
    pub rate: Rate,
}

/// What one size gives in one zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Throughput {
    /// The zone's first sector.
    pub start: u64,
    /// The size of each command.
    pub size: Bytes,
    /// One after the other.
    pub sequential: Rate,
    /// The median time of one at a random place in the zone.
    pub random: Duration,
}

/// What transfers cost in one direction, without rotation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlatCost {
    /// The line above the third quartile of every size.
    pub line: Line,
    /// Size, median device time at saturation, median time alone.
    pub sizes: Vec<(Bytes, Duration, Duration)>,
    /// All but a hundredth spend no longer in the pipeline at saturation.
    pub latency: Duration,
}

/// A target without rotation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flat {
    /// Commands in flight that saturate it.
    pub depth: u32,
    /// Device time of a small read by commands in flight.
    pub depths: Vec<(u32, Duration)>,
    /// Reads.
    pub read: FlatCost,
    /// Writes, where they were allowed.
    pub write: Option<FlatCost>,
    /// Small reads and writes by turns, device time of one at that depth.
    pub mixed: Option<Duration>,
    /// Writes without a break.
    pub steady: Option<Steady>,
}

/// How a disk with an arm goes about several commands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// With how many at a time it is as fast as it becomes; 1 where it gains little by others.
    pub queue: u32,
    /// The time of a small read at a random place by commands in flight.
    pub depths: Vec<(u32, Duration)>,
}

/// What becomes of writes that go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steady {
    /// How much was written.
    pub written: Bytes,
    /// The rate of the first eighth.
    pub first: Rate,
    /// The rate of the slowest eighth after it.
    pub slowest: Rate,
    /// The longest that one write took, the host's lateness included.
    pub longest: Duration,
}

/// Everything that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Findings {
    /// How much the target holds, as told.
    pub capacity: Bytes,
    /// It answered with errors so often that the measurement was given up.
    pub faulty: bool,
    /// Whether it rotates.
    pub rotates: bool,
    /// The time of one turn.
    pub rotation: Option<Measured<Duration>>,
    /// A read after a movement over a third of the disk or more, median.
    pub far_read: Duration,
    /// Heads, where they could be told apart.
    pub heads: Option<u64>,
    /// From sector 0 on.
    pub zones: Vec<ZoneFound>,
    /// Whether the zones' ends are known to the track.
    pub zones_exact: bool,
    /// Seeks and switches.
    pub mechanics: Option<Mechanics>,
    /// By how much long reads exceed what the parts found account for.
    pub excess: Duration,
    /// Several commands at a time, where the target rotates.
    pub held: Option<Held>,
    /// The cache, where there is one.
    pub cache: Option<Cache>,
    /// Writes, where they were allowed.
    pub write_buffer: Option<WriteBuffer>,
    /// Rates by chunk size.
    pub chunks: Vec<Chunk>,
    /// The sizes at which it streams: `a` and `b` of semi-preemptible I/O figure 3.
    pub chunk_range: Option<(Bytes, Bytes)>,
    /// Rates by zone and size.
    pub throughput: Vec<Throughput>,
    /// Costs of a target that does not rotate.
    pub flat: Option<Flat>,
    /// How many commands it took.
    pub commands: u64,
    /// What went wrong or was left out.
    pub notes: Vec<String>,
    /// What it means for keeping time.
    pub verdict: Vec<String>,
}

impl Findings {
    pub(super) fn new(capacity: Bytes) -> Self {
        Self {
            capacity,
            faulty: false,
            rotates: false,
            rotation: None,
            far_read: Duration::ZERO,
            heads: None,
            zones: Vec::new(),
            zones_exact: false,
            mechanics: None,
            excess: Duration::ZERO,
            held: None,
            cache: None,
            write_buffer: None,
            chunks: Vec::new(),
            chunk_range: None,
            throughput: Vec::new(),
            flat: None,
            commands: 0,
            notes: Vec::new(),
            verdict: Vec::new(),
        }
    }

    /// The seek over half the stroke's third that random pairs average, and the
    /// longest: mean over all pairs of cylinders, and full stroke.
    pub fn seek_mean_and_full(&self) -> Option<(Duration, Duration)> {
        let seeks = &self.mechanics.as_ref()?.seeks;
        let longest = seeks.last()?;
        // Of pairs of cylinders, `longest - d` are `d` apart.
        let (mut sum, mut weights) = (0u128, 0u128);
        for step in 1..=200u64 {
            let distance = (longest.distance * step / 200).max(1);
            let weight = u128::from(longest.distance - distance) + 1;
            sum += weight * u128::from(interpolate(seeks, distance).as_nanos());
            weights += weight;
        }
        let mean = u64::try_from(sum / weights).ok()?;
        Some((Duration::from_nanos(mean), longest.mean))
    }

    /// What the findings mean for a server that keeps time.
    pub(super) fn judge(&mut self) {
        let say = &mut self.verdict;
        match &self.write_buffer {
            Some(WriteBuffer { hides_latency: Some(true), flush, flush_full, .. }) => {
                say.push(format!(
                    "its write cache hides latency: writes are late when it is full, and a flush \
                     took up to {flush} after one write and up to {flush_full} behind as many as \
                     it holds; switch it off (hdparm -W 0)"
                ));
            }
            Some(WriteBuffer { hides_latency: Some(false), .. }) => {
                say.push("writes are on the medium when they complete".to_owned());
            }
            Some(WriteBuffer { hides_latency: None, flush_idle, .. }) => say.push(format!(
                "a flush takes {flush_idle} whether or not something was written, so that times \
                 do not tell whether writes are on the medium when they complete; ask the drive \
                 (hdparm -W, nvme id-ctrl)"
            )),
            None => say.push("writes were not tried: their bounds are assumptions".to_owned()),
        }
        if let Some(steady) = self.flat.as_ref().and_then(|flat| flat.steady) {
            if steady.slowest.get() < steady.first.get() / 4 * 3 {
                say.push(format!(
                    "writes slow down from {} to {} within {}: its cache was full; the profile \
                     has the slower rate",
                    steady.first, steady.slowest, steady.written
                ));
            }
            say.push(format!("the longest of writes that went on took {}", steady.longest));
        }
        if let Some(cache) = &self.cache {
            say.push(format!(
                "reads ahead {}; a stream's next chunk may come from its cache of {} segments",
                cache.read_ahead, cache.segments.value
            ));
        }
        if self.rotates && (self.zones.is_empty() || self.mechanics.is_none()) {
            say.push("it rotates, but could not be measured: not fit for contracts".to_owned());
        } else {
            say.push(match self.write_buffer {
                Some(_) => "fit for contracts".to_owned(),
                None => "fit for contracts that read; measure it with --write, too, before \
                         others are given"
                    .to_owned(),
            });
        }
    }
}

fn interpolate(seeks: &[SeekPoint], distance: u64) -> Duration {
    let after = seeks.partition_point(|point| point.distance < distance);
    let Some(far) = seeks.get(after) else {
        return seeks[seeks.len() - 1].mean;
    };
    if after == 0 {
        return far.mean;
    }
    let near = &seeks[after - 1];
    let part = |time: Duration, weight: u64| u128::from(time.as_nanos()) * u128::from(weight);
    let sum = part(near.mean, far.distance - distance) + part(far.mean, distance - near.distance);
    let ns = sum / u128::from(far.distance - near.distance);
    Duration::from_nanos(u64::try_from(ns).expect("between two times"))
}
