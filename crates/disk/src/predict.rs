//! The profile of a simulated drive, computed from its model: bounds that hold
//! because of how the drive is built, not because nothing worse was seen.

use crate::bus::SHORTEST;
use crate::geometry::{Geometry, Layout};
use crate::model::{FlashModel, HardDiskModel, Mechanism, ReadAhead};
use crate::spread::Spread;
use crate::{
    BusPlan, BusShare, HardDiskProfile, Kind, LARGEST, Line, LinearProfile, LongAccess, Model,
    Profile, ZoneProfile,
};
use alloc::borrow::ToOwned;
use alloc::format;
use units::{Duration, Lba, Rate, SECTOR};

/// How the source of a profile begins that is computed, before the model's name.
const OF_MODEL: &str = "computed from the disk model ";

impl Profile {
    /// The model that it was computed from, where it was and has not been measured since.
    pub fn model(&self) -> Option<&str> {
        Some(self.source.strip_prefix(OF_MODEL)?.split_once(": ")?.0)
    }

    /// The profile of a simulated drive, computed from its model.
    ///
    /// No transfer exceeds [`Profile::bound`] while the arm is where the last
    /// command ended. It is not where a command was served from the cache alone:
    /// on a disk that keeps more than one segment the bound then fails to count
    /// the way back, and holds for all commands but those that follow a re-read.
    /// Bad sectors that the model names are not in the bound either.
    pub fn of(model: &Model) -> Self {
        let (kind, flush) = match &model.kind {
            Mechanism::HardDisk(disk) => {
                let profile = HardDiskProfile::of(disk);
                (Kind::HardDisk(profile), disk.overheads.flush + disk.write_out_worst())
            }
            Mechanism::Flash(flash) => {
                (Kind::Linear(LinearProfile::of(flash)), flash.flush_worst())
            }
        };
        Self {
            source: format!("{OF_MODEL}{}: {}", model.name, model.source),
            confidence: "exact for the emulated disk: counted from where its heads are, its \
                         service times never exceed these"
                .to_owned(),
            capacity: model.capacity(),
            flush,
            kind,
            bus: None,
        }
    }
}

impl BusShare {
    /// The share that each of these simulated drives has of one [`Bus`](crate::Bus), in the
    /// order in which it serves; none where fewer than two of them use it: where they are
    /// flash, or their bus takes no time. A bound, because of how that bus is built: a
    /// command waits for what was reserved before it began, at most one command of each
    /// other drive, and at most one gap that is too short to be used before each burst,
    /// which is a track's sectors, or what the model says. (Once a burst is divided, its parts
    /// leave no gap.)
    pub fn of(name: &str, models: &[&Model]) -> Option<Self> {
        let drives = models.iter().filter_map(|model| match &model.kind {
            Mechanism::HardDisk(disk) if !disk.bus_sector.is_zero() => Some(disk),
            _ => None,
        });
        let rate = drives.clone().map(|disk| Rate::of(SECTOR, disk.bus_sector)).min()?;
        let tracks = drives.clone().flat_map(|disk| &disk.zones);
        let bursts = drives.clone().map(|disk| disk.reading.burst_sectors).filter(|&it| it > 0);
        let shortest = tracks.map(|zone| zone.sectors_per_track).chain(bursts).min()?;
        let plan = BusPlan {
            burst: (SECTOR * shortest).min(LARGEST),
            lost: SHORTEST,
            ..BusPlan::new(name, rate, u32::try_from(drives.count()).ok()?)
        };
        Self::new(plan).ok()
    }
}

impl HardDiskModel {
    /// The longest time that a full write buffer keeps the heads busy.
    fn write_out_worst(&self) -> Duration {
        match self.cache {
            Some(cache) if self.write_back => {
                let longest =
                    self.arm.longest(u64::MAX).max(self.same_cylinder).max(self.head_switch);
                let zones = Geometry::new(self);
                let slowest = zones.zones.iter().map(|zone| zone.sectors_per_track).min();
                let tracks =
                    cache.segment_sectors.div_ceil(slowest.expect("a model has zones")) + 1;
                let turns = self.rotation * (2 * tracks + 1);
                (longest + self.write_settle + turns) * (cache.write_segments as u64 + 1)
            }
            _ => Duration::ZERO,
        }
    }

    /// By how many cylinders the arm may be off from where the last address says:
    /// sectors without an address between here and there, and reading ahead.
    pub(crate) fn slack(&self) -> u64 {
        let is_plain = |zone: &crate::model::ZoneModel| {
            zone.front == 0 && zone.slips.is_empty() && zone.unused_cylinders == 0
        };
        let uneven = self.spares.is_some() || !self.zones.iter().all(is_plain);
        let unused: u64 = self.zones.iter().map(|zone| zone.unused_cylinders).sum();
        let ahead = match self.cache {
            Some(cache) if cache.read_ahead != ReadAhead::Never => {
                let tracks = self.zones.iter().map(|zone| zone.sectors_per_track).min();
                let cylinder = tracks.expect("a model has zones") * self.heads;
                cache.read_ahead_sectors / cylinder + 1
            }
            _ => 0,
        };
        ahead + unused + if uneven { 2 } else { 0 }
    }
}

impl HardDiskProfile {
    /// The bound on steps between tracks. A zone's rate counts each step as if
    /// its time were spread over the track before it. A transfer then meets at
    /// most one cylinder step that it has not paid for: any run of steps in it
    /// costs no more than one cylinder step and, for each whole track between
    /// them, that track's share; since the cylinder step is the longest, and
    /// since zones begin with a whole cylinder, a step into the next zone changes
    /// nothing. One nanosecond for each zone covers the rounding of edges. The
    /// sectors without an address that it may meet are counted once, likewise.
    fn of(disk: &HardDiskModel) -> Self {
        let geometry = Geometry::new(disk);
        let (zones, rotation) = (&geometry.zones, disk.rotation);
        let longest =
            zones.iter().map(|zone| zone.cylinder_skew(rotation) + zone.gaps(rotation)).max();
        let longest = longest.expect("a model has zones");
        let (still, slack) = (disk.same_cylinder.max(disk.head_switch), disk.slack());
        // A profile adds the settling of a write to a seek alone; where no seek
        // seems needed and yet one may be, the way to nowhere has it.
        let still = match slack {
            0 => still,
            _ => still.max(disk.arm.longest(slack) + disk.write_settle),
        };
        let seek = disk.arm.bound(still, slack).expect("a checked model's curve rises");
        Self {
            overhead: disk.overhead_worst(zones),
            rotation,
            seek,
            write_settle: disk.write_settle,
            switch: longest + Duration::from_nanos(2 * zones.len() as u64),
            long_reads: disk.long_reads(zones),
            long_writes: disk.long_writes(zones),
            // A drive at work serves what it is given; whoever gives it several says so.
            queue: 1,
            zones: zones.iter().map(|zone| disk.zone_profile(zone)).collect(),
        }
    }
}

impl HardDiskModel {
    /// What a command may cost beside seek, turn and transfer: the electronics,
    /// what the write buffer has left to do, and the last sector on the bus.
    fn overhead_worst(&self, zones: &[Layout]) -> Duration {
        let overheads = &self.overheads;
        let most = |pair: [Duration; 2]| pair[0].max(pair[1]);
        let read = most(overheads.read_miss).max(most(overheads.read_hit)) + overheads.read_spread;
        let write = most(overheads.write) + overheads.write_spread;
        let electronics = read.max(write) + self.write_out_worst();
        if self.bus_sector.is_zero() {
            return electronics;
        }
        let slowest = zones.iter().map(|zone| zone.sectors_per_track).min();
        let sector = self.rotation / slowest.expect("a model has zones");
        electronics + self.bus_sector + sector + Duration::from_nanos(1)
    }

    /// A read of some tracks that begins within one waits for its first sector, and
    /// then until as many sectors as a track has are in: a turn and one step to the
    /// next track. (What more a step to the next cylinder takes delays the platters, not
    /// what the bus then has; `switch` covers it.)
    fn long_reads(&self, zones: &[Layout]) -> Option<LongAccess> {
        let shortest = zones.iter().map(|zone| zone.sectors_per_track).min()?;
        let skew = zones.iter().map(|zone| zone.track_skew(self.rotation)).max()?;
        let from = SECTOR * (shortest * self.reading.whole_track_from);
        (!from.is_zero()).then_some(LongAccess { from, extra: self.rotation + skew })
    }

    /// A write that ends within a track goes on to its end: at most a turn.
    fn long_writes(&self, zones: &[Layout]) -> Option<LongAccess> {
        let beyond = self.writing.whole_tracks_beyond;
        let shortest = zones.iter().map(|zone| zone.sectors_per_track).min()?;
        let from = SECTOR * (shortest * beyond + 1);
        let tracks = (beyond > 0).then_some(LongAccess { from, extra: self.rotation });
        let buffer = self.cache.filter(|_| self.write_back).map(|cache| cache.write_buffer);
        let parts = buffer.filter(|buffer| !buffer.next_part.is_zero());
        both(
            tracks,
            parts.map(|it| LongAccess { from: SECTOR * (it.sectors + 1), extra: it.next_part }),
        )
    }

    fn zone_profile(&self, layout: &Layout) -> ZoneProfile {
        let rotation = self.rotation;
        let track_steps = layout.track_skew(rotation) * (self.heads - 1);
        let turn = rotation * self.heads + track_steps + layout.cylinder_skew(rotation);
        // Over the whole zone, with what holds no address.
        let platters = u128::from(turn.as_nanos()) * u128::from(layout.cylinders);
        let sectors = u128::from(layout.sectors) * u128::from(SECTOR.get());
        let rate = sectors * 1_000_000_000 / platters;
        let rate = Rate::per_second(u64::try_from(rate).expect("a rate of some disk"));
        let bus = Rate::of(SECTOR, self.bus_sector);
        let rate = if bus.is_zero() { rate } else { rate.min(bus) };
        ZoneProfile { start: Lba::new(layout.first_sector), cylinders: layout.cylinders, rate }
    }
}

/// What costs on top for either reason, counted as if both were met at once.
fn both(one: Option<LongAccess>, other: Option<LongAccess>) -> Option<LongAccess> {
    match (one, other) {
        (Some(one), Some(other)) => {
            Some(LongAccess { from: one.from.min(other.from), extra: one.extra + other.extra })
        }
        (one, other) => one.or(other),
    }
}

impl LinearProfile {
    /// A write's share of the pauses is in its rate, a whole pause in the latency.
    fn of(flash: &FlashModel) -> Self {
        let every = flash.collect_every;
        let span = flash.write.rate.time_for(every) + flash.collect_stall;
        let write = Line { fixed: flash.write.fixed, rate: Rate::of(every, span) };
        Self {
            read: flash.read,
            write,
            depth: flash.depth,
            latency: flash.latency_worst() + flash.collect_stall,
            spread: Some(Spread::of_stalls(
                [flash.read, flash.write],
                flash.latency_worst(),
                (flash.collect_every, flash.collect_stall),
            )),
        }
    }
}

impl FlashModel {
    fn latency_worst(&self) -> Duration {
        self.read_latency.max(self.write_latency) + self.spread
    }

    fn flush_worst(&self) -> Duration {
        self.flush + self.latency_worst() + self.collect_stall
    }
}
