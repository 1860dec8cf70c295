//! Drive models as data: what a drive is made of, with the source of the numbers.
//!
//! Invariants of a [`Model`]: at least one zone, each with cylinders and at least
//! two sectors a track; skews cover the switches that they hide, and the cylinder
//! skew is no shorter than the track skew. With these a transfer never loses a
//! turn on its way, which the bound in [`Profile`](crate::Profile) relies on.

use crate::error::ensure;
use crate::text::{Points, Text};
use crate::{Error, SeekCurve};
use alloc::borrow::ToOwned;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use serde::Deserialize;
use units::{Bytes, Duration, SECTOR};

/// The models that come with the program: name and file.
const BUILT_IN: &[(&str, &str)] =
    &[("laptop-4200", include_str!("../../../models/laptop-4200.toml"))];

/// The most zones that a model may have; real disks have up to about thirty.
const ZONES_MAX: usize = 256;
/// The slowest and the fastest spindle, in turns a minute.
const RPM: core::ops::RangeInclusive<u64> = 60..=60_000;
/// The most sectors on a track; today's disks have some four thousand of 512 bytes.
const SECTORS_PER_TRACK: core::ops::RangeInclusive<u64> = 2..=100_000;
/// The most cylinders of a zone, so that no product here leaves 64 bits.
const CYLINDERS: core::ops::RangeInclusive<u64> = 1..=10_000_000;

/// Some cylinders whose tracks hold equally many sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Zone {
    /// How many cylinders.
    pub cylinders: u64,
    /// Sectors of 512 bytes on each track.
    pub sectors_per_track: u64,
}

/// A hard disk without a cache: a write is on the medium when it completes, and
/// a read waits for its first sector, reads to the last and is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Model {
    pub(crate) name: String,
    pub(crate) source: String,
    pub(crate) rotation: Duration,
    pub(crate) heads: u64,
    pub(crate) seek: SeekCurve,
    pub(crate) write_settle: Duration,
    pub(crate) head_switch: Duration,
    pub(crate) cylinder_switch: Duration,
    pub(crate) track_skew: Duration,
    pub(crate) cylinder_skew: Duration,
    pub(crate) overhead: Duration,
    pub(crate) zones: Vec<Zone>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: String,
    kind: String,
    source: String,
    rpm: u64,
    heads: u64,
    seek: Points,
    write_settle: Text<Duration>,
    head_switch: Text<Duration>,
    cylinder_switch: Text<Duration>,
    track_skew: Text<Duration>,
    cylinder_skew: Text<Duration>,
    overhead: Text<Duration>,
    zones: Vec<Zone>,
}

impl Model {
    /// The names of the models that come with the program.
    pub fn names() -> impl Iterator<Item = &'static str> {
        BUILT_IN.iter().map(|&(name, _)| name)
    }

    /// The model of that name that comes with the program.
    ///
    /// # Errors
    /// [`Error::NoSuchModel`], with the names that there are.
    pub fn named(name: &str) -> Result<Self, Error> {
        match BUILT_IN.iter().find(|&&(known, _)| known == name) {
            Some((_, text)) => Self::parse(text),
            None => {
                let known: Vec<&str> = Self::names().collect();
                Err(Error::NoSuchModel { name: name.to_owned(), known: known.join(", ") })
            }
        }
    }

    /// Reads a model file.
    ///
    /// # Errors
    /// Says what is wrong and what would do.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let file: File = toml::from_str(text).map_err(|error| Error::Syntax(error.to_string()))?;
        ensure!(
            file.kind == "hard-disk",
            "{}: kind {:?} is not known; write kind = \"hard-disk\"",
            file.name,
            file.kind
        );
        ensure!(RPM.contains(&file.rpm), "rpm is {}; give {RPM:?}", file.rpm);
        let model = Self {
            rotation: Duration::from_secs(60) / file.rpm,
            name: file.name,
            source: file.source,
            heads: file.heads,
            seek: SeekCurve::parse(file.seek)?,
            write_settle: file.write_settle.0,
            head_switch: file.head_switch.0,
            cylinder_switch: file.cylinder_switch.0,
            track_skew: file.track_skew.0,
            cylinder_skew: file.cylinder_skew.0,
            overhead: file.overhead.0,
            zones: file.zones,
        };
        model.check()?;
        Ok(model)
    }

    fn check(&self) -> Result<(), Error> {
        ensure!((1..=256).contains(&self.heads), "heads is {}; give 1 to 256", self.heads);
        let zones = self.zones.len();
        ensure!((1..=ZONES_MAX).contains(&zones), "{zones} zones; give 1 to {ZONES_MAX}");
        for (index, zone) in self.zones.iter().enumerate() {
            let (cylinders, sectors) = (zone.cylinders, zone.sectors_per_track);
            ensure!(
                CYLINDERS.contains(&cylinders) && SECTORS_PER_TRACK.contains(&sectors),
                "zones[{index}] has {cylinders} cylinders of {sectors} sectors a track; \
                 give {CYLINDERS:?} and {SECTORS_PER_TRACK:?}"
            );
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
        ensure!(
            self.head_switch <= self.seek.time(1),
            "head_switch is {}; give at most the shortest seek, {}",
            self.head_switch,
            self.seek.time(1)
        );
        Ok(())
    }

    /// What the model is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where its numbers come from.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The time of one turn.
    pub fn rotation(&self) -> Duration {
        self.rotation
    }

    /// How many bytes it holds.
    pub fn capacity(&self) -> Bytes {
        self.zones.iter().map(|zone| self.cylinder_size(zone) * zone.cylinders).sum()
    }

    /// How many cylinders it has.
    pub fn cylinders(&self) -> u64 {
        self.zones.iter().map(|zone| zone.cylinders).sum()
    }

    fn cylinder_size(&self, zone: &Zone) -> Bytes {
        SECTOR * zone.sectors_per_track * self.heads
    }

    /// The same disk with fewer cylinders, so that it holds at most `capacity`.
    ///
    /// To shrink an emulated disk by using only its first addresses would keep
    /// all data on the outer, faster tracks and all seeks short. Here each zone
    /// gives up the same part of its cylinders, and a seek over a part of the
    /// stroke takes as long as over that part of the full disk. Tracks, turns and
    /// the step to the next cylinder stay as they are.
    ///
    /// # Errors
    /// When `capacity` holds less than one cylinder of each zone.
    pub fn scaled(&self, capacity: Bytes) -> Result<Self, Error> {
        let full = self.capacity();
        if capacity >= full {
            return Ok(self.clone());
        }
        let least: Bytes = self.zones.iter().map(|zone| self.cylinder_size(zone)).sum();
        ensure!(
            capacity >= least,
            "{} of {capacity} is too small: give at least {}",
            self.name,
            crate::exact_size(least.round_up(Bytes::MIB))
        );
        let mut small = self.clone();
        for zone in &mut small.zones {
            let part = u128::from(zone.cylinders) * u128::from(capacity.get());
            let part = part / u128::from(full.get());
            zone.cylinders = u64::try_from(part).expect("no more than before").max(1);
        }
        small.fit(capacity);
        small.seek = self.seek.scaled(small.cylinders() - 1, self.cylinders() - 1);
        Ok(small)
    }

    /// Takes cylinders away where rounding left too many, and spends what it left
    /// over, one in each zone in turn.
    fn fit(&mut self, capacity: Bytes) {
        while self.capacity() > capacity {
            let most = self.zones.iter_mut().max_by_key(|zone| zone.cylinders);
            most.expect("a model has zones").cylinders -= 1;
        }
        for index in 0..self.zones.len() {
            if self.capacity() + self.cylinder_size(&self.zones[index]) <= capacity {
                self.zones[index].cylinders += 1;
            }
        }
    }
}
