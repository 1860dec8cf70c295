//! The parts of a hard disk: platters, arm, electronics, cache.

use crate::arm::Arm;
use alloc::vec::Vec;
use serde::Deserialize;
use units::Duration;

/// Some cylinders whose tracks hold equally many sectors.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ZoneModel {
    /// How many cylinders.
    pub cylinders: u64,
    /// Sectors of 512 bytes on each track.
    pub sectors_per_track: u64,
    /// In sectors, where it is known; else the disk's skew, in time.
    pub track_skew: Option<u64>,
    pub cylinder_skew: Option<u64>,
    /// Physical sectors at the front that hold no address.
    #[serde(default)]
    pub front: u64,
    /// Physical sectors, counted from the zone's start, that addresses skip.
    #[serde(default)]
    pub slips: Vec<u64>,
    /// Cylinders between this zone and the next that hold no address.
    #[serde(default)]
    pub unused_cylinders: u64,
}

/// Sectors kept free at the end of each run of cylinders of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Spares {
    pub cylinders: u64,
    pub sectors: u64,
}

/// What a command costs the electronics, after a read and after a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Overheads {
    /// From the command to the first byte, when the bytes are in the cache.
    pub read_hit: [Duration; 2],
    /// From the command to the first move of the arm.
    pub read_miss: [Duration; 2],
    /// From the command to the first byte into the buffer.
    pub write: [Duration; 2],
    /// Up to so much more, each as likely.
    pub read_spread: Duration,
    pub write_spread: Duration,
    /// Of a flush that has nothing to do.
    pub flush: Duration,
}

/// How a read leaves the platters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Reading {
    /// A track is read from where the head comes down, in any order.
    pub zero_latency: bool,
    /// The bus waits for half of the request, or half a turn, as well as for the
    /// first sector.
    pub half_track: bool,
    /// From so many whole tracks on, the bus waits for the first of them; 0: never.
    pub whole_track_from: u64,
    /// Beyond so many tracks, where the platters are slower than the bus, a read
    /// starts with its first sector after all; 0: never.
    pub in_order_beyond: u64,
    /// The bus takes so many sectors at a time, of one track or of several, whatever the
    /// other rules say; 0: what there is of each track.
    pub burst_sectors: u64,
}

/// How a write gets onto the platters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Writing {
    /// A write of more than so many tracks ends when the track that it ends on has gone by:
    /// it takes as long as one of whole tracks (Clockwise thesis, section 4.3.5). 0: never.
    pub whole_tracks_beyond: u64,
}

/// When a disk reads on after what it was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadAhead {
    Never,
    Always,
    /// After a read that goes on where the command before it ended; then the
    /// whole of its track is kept, too.
    Sequential,
}

/// Memory on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cache {
    pub segments: usize,
    pub segment_sectors: u64,
    pub read_ahead: ReadAhead,
    pub read_ahead_sectors: u64,
    /// What was sent stays; else only what was read ahead.
    pub keeps_sent: bool,
    /// Writes that may wait for the medium; 0 where there is no write buffer.
    pub write_segments: usize,
    pub write_buffer: WriteBuffer,
    /// A read of what was just written needs no medium.
    pub holds_written: bool,
}

/// How a drive works its write buffer off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WriteBuffer {
    /// Sectors of one run of writes that may be ahead of the medium.
    pub sectors: u64,
    /// A run that gets longer ends its commands when all but that is on the medium
    /// (semi-preemptible I/O, footnote 4). Else longer ones go past the buffer.
    pub holds_back: bool,
    /// The nearest write first, as the platters turn; else in order of arrival.
    pub nearest: bool,
    /// A read that the cache does not have waits until all of it is on the medium.
    pub before_reads: bool,
    /// How much later a command starts that goes on from the one before it and is longer than
    /// `sectors`: the drive takes it in parts.
    pub next_part: Duration,
}

/// What is wrong with a sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bad {
    /// It lies elsewhere: on the last track of its zone.
    Remapped,
    /// It is read after so many more turns.
    Retried(u64),
}

/// A hard disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HardDiskModel {
    pub rotation: Duration,
    pub heads: u64,
    pub arm: Arm,
    pub write_settle: Duration,
    pub head_switch: Duration,
    pub cylinder_switch: Duration,
    /// The least time before a new command's first sector on the cylinder where the
    /// arm is.
    pub same_cylinder: Duration,
    pub track_skew: Duration,
    pub cylinder_skew: Duration,
    pub overheads: Overheads,
    /// Time of a sector on the bus; zero where the bus is never in the way.
    pub bus_sector: Duration,
    pub reading: Reading,
    pub writing: Writing,
    pub cache: Option<Cache>,
    pub write_back: bool,
    pub spares: Option<Spares>,
    pub zones: Vec<ZoneModel>,
    /// By address, rising.
    pub bad: Vec<(u64, Bad)>,
    /// How many commands it takes in at once, to order them by itself.
    pub depth: u32,
    pub seed: u64,
}
