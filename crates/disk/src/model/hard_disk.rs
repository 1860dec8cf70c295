//! The parts of a hard disk: platters, arm, electronics, cache.

use crate::Error;
use crate::arm::Arm;
use crate::error::ensure;
use crate::geometry::Geometry;
use alloc::vec::Vec;
use serde::Deserialize;
use units::{Bytes, Duration, SECTOR};

/// The most zones that a model may have; real disks have up to about thirty.
const ZONES_MAX: usize = 256;
/// The most sectors on a track; today's disks have some four thousand of 512 bytes.
const SECTORS_PER_TRACK: core::ops::RangeInclusive<u64> = 2..=100_000;
/// The most tracks from which on a read waits for a whole one.
const TRACKS_MAX: u64 = 1_024;
/// The most cylinders of a zone, so that no product here leaves 64 bits.
const CYLINDERS: core::ops::RangeInclusive<u64> = 1..=10_000_000;
/// The most spare sectors of one range: what they take to pass stays in 64 bits.
const SPARES_MAX: u64 = 1 << 24;

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

impl HardDiskModel {
    pub fn check(&self) -> Result<(), Error> {
        ensure!((1..=256).contains(&self.heads), "heads is {}; give 1 to 256", self.heads);
        ensure!((1..=1_024).contains(&self.depth), "depth is {}; give 1 to 1024", self.depth);
        let Reading { whole_track_from, in_order_beyond, .. } = self.reading;
        let whole_tracks_beyond = self.writing.whole_tracks_beyond;
        ensure!(
            whole_tracks_beyond <= TRACKS_MAX,
            "writing.whole_tracks_beyond is {whole_tracks_beyond}; give at most {TRACKS_MAX} tracks"
        );
        ensure!(
            whole_track_from <= TRACKS_MAX && in_order_beyond <= 1 << 32,
            "reading.whole_track_from is {whole_track_from}, in_order_beyond {in_order_beyond}; \
             give at most {TRACKS_MAX} tracks, and sectors below 2^32"
        );
        let zones = self.zones.len();
        ensure!((1..=ZONES_MAX).contains(&zones), "{zones} zones; give 1 to {ZONES_MAX}");
        for (index, zone) in self.zones.iter().enumerate() {
            self.check_zone(index, zone)?;
        }
        ensure!(
            self.head_switch <= self.track_skew,
            "track_skew is {}; give at least head_switch, {}, or each track costs a turn",
            self.track_skew,
            self.head_switch
        );
        ensure!(
            self.cylinder_switch <= self.cylinder_skew && self.track_skew <= self.cylinder_skew,
            "cylinder_skew is {}; give at least cylinder_switch, {}, and track_skew, {}",
            self.cylinder_skew,
            self.cylinder_switch,
            self.track_skew
        );
        ensure!(
            self.cylinder_skew < self.rotation,
            "cylinder_skew is {}; give less than a turn, {}",
            self.cylinder_skew,
            self.rotation
        );
        self.check_skews()?;
        for pair in self.bad.windows(2) {
            ensure!(pair[0].0 < pair[1].0, "sector {} is bad twice; give it once", pair[1].0);
        }
        Ok(())
    }

    fn check_zone(&self, index: usize, zone: &ZoneModel) -> Result<(), Error> {
        let (cylinders, sectors) = (zone.cylinders, zone.sectors_per_track);
        ensure!(
            CYLINDERS.contains(&cylinders) && SECTORS_PER_TRACK.contains(&sectors),
            "zones[{index}] has {cylinders} cylinders of {sectors} sectors a track; \
             give {CYLINDERS:?} and {SECTORS_PER_TRACK:?}"
        );
        let skew = zone.track_skew.max(zone.cylinder_skew).unwrap_or_default();
        ensure!(
            skew < sectors && zone.unused_cylinders <= *CYLINDERS.end(),
            "zones[{index}] has a skew of {skew} sectors and {} unused cylinders; give less than \
             a track, and at most {}",
            zone.unused_cylinders,
            CYLINDERS.end()
        );
        let physical = cylinders * sectors * self.heads;
        let lost = zone.front.saturating_add(zone.slips.len() as u64);
        ensure!(
            lost < physical && zone.slips.iter().all(|&slip| slip < physical),
            "zones[{index}] has {physical} sectors; front and slips leave none, or lie outside"
        );
        if let Some(spares) = self.spares {
            ensure!(
                spares.sectors <= SPARES_MAX,
                "spares has {} sectors; give at most {SPARES_MAX}",
                spares.sectors
            );
            ensure!(
                CYLINDERS.contains(&spares.cylinders)
                    && spares.sectors.saturating_add(lost)
                        < spares.cylinders * sectors * self.heads,
                "spares leave nothing of {} cylinders of zones[{index}]",
                spares.cylinders
            );
        }
        Ok(())
    }

    /// The skews that zones give in sectors cover the switches, too.
    fn check_skews(&self) -> Result<(), Error> {
        for (index, layout) in Geometry::new(self).zones.iter().enumerate() {
            let (track, cylinder) =
                (layout.track_skew(self.rotation), layout.cylinder_skew(self.rotation));
            ensure!(
                self.head_switch <= track && self.cylinder_switch <= cylinder && track <= cylinder,
                "zones[{index}] has skews of {track} and {cylinder}; give at least head_switch, \
                 {}, and cylinder_switch, {}",
                self.head_switch,
                self.cylinder_switch
            );
        }
        Ok(())
    }

    pub fn capacity(&self) -> Bytes {
        SECTOR * Geometry::new(self).sectors
    }

    pub fn cylinders(&self) -> u64 {
        self.zones.iter().map(|zone| zone.cylinders + zone.unused_cylinders).sum()
    }

    fn cylinder_size(&self, zone: &ZoneModel) -> Bytes {
        SECTOR * zone.sectors_per_track * self.heads
    }

    /// The size before anything is taken away for spares and bad sectors.
    fn full_size(&self) -> Bytes {
        self.zones.iter().map(|zone| self.cylinder_size(zone) * zone.cylinders).sum()
    }

    pub fn scaled(&self, capacity: Bytes, name: &str) -> Result<Self, Error> {
        let least: Bytes = self.zones.iter().map(|zone| self.cylinder_size(zone)).sum();
        ensure!(
            capacity >= least,
            "{name} of {capacity} is too small: give at least {}",
            crate::exact_size(least.round_up(Bytes::MIB))
        );
        let mut small = self.clone();
        (small.spares, small.bad) = (None, Vec::new());
        let full = self.full_size();
        for zone in &mut small.zones {
            let part = u128::from(zone.cylinders) * u128::from(capacity.get());
            let part = part / u128::from(full.get());
            zone.cylinders = u64::try_from(part).expect("no more than before").max(1);
            (zone.front, zone.slips, zone.unused_cylinders) = (0, Vec::new(), 0);
        }
        small.fit(capacity);
        small.arm = self.arm.scaled((small.cylinders() - 1).max(1), self.cylinders() - 1);
        Ok(small)
    }

    /// Takes cylinders away where rounding left too many, and spends what it left
    /// over, one in each zone in turn.
    fn fit(&mut self, capacity: Bytes) {
        while self.full_size() > capacity {
            let most = self.zones.iter_mut().max_by_key(|zone| zone.cylinders);
            most.expect("a model has zones").cylinders -= 1;
        }
        for index in 0..self.zones.len() {
            if self.full_size() + self.cylinder_size(&self.zones[index]) <= capacity {
                self.zones[index].cylinders += 1;
            }
        }
    }
}
