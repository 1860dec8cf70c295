//! Drive models as data: what a drive is made of, with the source of the numbers.
//!
//! A model is a hard disk ([`HardDiskModel`]) or a flash device ([`FlashModel`]).
//! Invariants of the first: at least one zone, each with cylinders and at least
//! two sectors a track; skews cover the switches that they hide, and the cylinder
//! skew is no shorter than the track skew. With these a transfer never loses a
//! turn on its way, which the bound in [`Profile`] relies on.

mod file;
mod flash;
pub(crate) mod hard_disk;
mod platters;

pub use flash::FlashModel;
pub(crate) use hard_disk::{
    Bad, Cache, HardDiskModel, Overheads, ReadAhead, Reading, Spares, WriteBuffer, Writing,
    ZoneModel,
};

use crate::{Error, Profile};
use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use units::{Bytes, Duration};

/// One line for each model that comes with the program.
macro_rules! built_in {
    ($($name:literal),+ $(,)?) => {
        &[$(($name, include_str!(concat!("../../../../models/", $name, ".toml")))),+]
    };
}

/// The models that come with the program: name and file.
const BUILT_IN: &[(&str, &str)] = built_in![
    "laptop-4200",
    "quantum-atlas-ii",
    "seagate-cheetah",
    "atlas-iii",
    "seagate-st318437lw",
    "wd400bb",
    "hitachi-travelstar",
    "hdd-7200-20tb",
    "ssd-sata",
    "ssd-nvme",
];

/// A drive that somebody built, or a class of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Model {
    pub(crate) name: String,
    pub(crate) source: String,
    pub(crate) kind: Mechanism,
}

/// What moves when a drive works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Mechanism {
    HardDisk(Box<HardDiskModel>),
    Flash(FlashModel),
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

    /// Reads a model file. What it gives has a profile ([`Profile::of`]) that is
    /// sound.
    ///
    /// # Errors
    /// Says what is wrong and what would do.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let model = file::parse(text)?;
        Profile::of(&model).check().map_err(|error| {
            Error::Invalid(format!("{}: what its numbers make together: {error}", model.name))
        })?;
        Ok(model)
    }

    /// What the model is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where its numbers come from.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The hard disk, where it is one.
    pub(crate) fn hard_disk(&self) -> Option<&HardDiskModel> {
        match &self.kind {
            Mechanism::HardDisk(disk) => Some(disk),
            Mechanism::Flash(_) => None,
        }
    }

    /// True for a disk with platters and an arm.
    pub fn is_hard_disk(&self) -> bool {
        self.hard_disk().is_some()
    }

    /// The time of one turn; zero where nothing turns.
    pub fn rotation(&self) -> Duration {
        self.hard_disk().map_or(Duration::ZERO, |disk| disk.rotation)
    }

    /// How many bytes it holds.
    pub fn capacity(&self) -> Bytes {
        match &self.kind {
            Mechanism::HardDisk(disk) => disk.capacity(),
            Mechanism::Flash(flash) => flash.capacity,
        }
    }

    /// How many commands the drive takes in at once, to order them by itself; 1 for
    /// one without a queue. (Slackline gives a hard disk one at a time.)
    pub fn depth(&self) -> usize {
        let depth = match &self.kind {
            Mechanism::HardDisk(disk) => disk.depth,
            Mechanism::Flash(flash) => flash.depth,
        };
        depth as usize
    }

    /// How many cylinders it has; 0 where there are none.
    pub fn cylinders(&self) -> u64 {
        self.hard_disk().map_or(0, HardDiskModel::cylinders)
    }

    /// The seek over `distance` cylinders: shortest, mean and longest, without
    /// the overhead of a command; zero where no arm moves.
    pub fn seek(&self, distance: u64) -> [Duration; 3] {
        self.hard_disk().map_or([Duration::ZERO; 3], |disk| {
            [disk.arm.least(distance), disk.arm.mean(distance), disk.arm.most(distance)]
        })
    }

    /// The same drive with its volatile write buffer in use, or not: with it a
    /// write completes when its bytes are in the buffer and reaches the medium
    /// later, or when it is flushed. Models start without. No change where the
    /// drive has no such buffer.
    #[must_use]
    pub fn with_write_back(mut self, on: bool) -> Self {
        match &mut self.kind {
            Mechanism::HardDisk(disk) => {
                disk.write_back = on && disk.cache.is_some_and(|cache| cache.write_segments > 0);
            }
            Mechanism::Flash(_) => {}
        }
        self
    }

    /// The same drive, with its write buffer worked off the `nearest` first or in order
    /// of arrival, and before or after a read that comes meanwhile. To see what each of
    /// them does; no change where the drive has no such buffer.
    #[must_use]
    pub fn with_write_order(mut self, nearest: bool, before_reads: bool) -> Self {
        if let Mechanism::HardDisk(disk) = &mut self.kind
            && let Some(cache) = &mut disk.cache
        {
            let buffer = &mut cache.write_buffer;
            (buffer.nearest, buffer.before_reads) = (nearest, before_reads);
        }
        self
    }

    /// The same drive, whose heads settle for so long after a seek before they write.
    #[must_use]
    pub fn with_write_settle(mut self, time: Duration) -> Self {
        if let Mechanism::HardDisk(disk) = &mut self.kind {
            disk.write_settle = time;
        }
        self
    }

    /// The same drive, whose commands start so much later where they go on from one before
    /// and are longer than what may be ahead of the medium.
    #[must_use]
    pub fn with_next_part(mut self, time: Duration) -> Self {
        if let Mechanism::HardDisk(disk) = &mut self.kind
            && let Some(cache) = &mut disk.cache
        {
            cache.write_buffer.next_part = time;
        }
        self
    }

    /// The same drive without its cache, as when every command forces access to
    /// the medium.
    #[must_use]
    pub fn without_cache(mut self) -> Self {
        if let Mechanism::HardDisk(disk) = &mut self.kind {
            (disk.cache, disk.write_back) = (None, false);
        }
        self
    }

    /// The same drive on a bus that moves a sector in `sector`; zero for a bus that
    /// is never in the way. No change where the drive's bus is part of its curve.
    #[must_use]
    pub fn with_bus(mut self, sector: Duration) -> Self {
        if let Mechanism::HardDisk(disk) = &mut self.kind {
            disk.bus_sector = sector;
        }
        self
    }

    /// The same drive, which sends what it reads `sectors` at a time, of one track or of
    /// several, as soon as they come in as fast as the bus takes them; 0: what there is of
    /// each track, as models start. No change where the drive is no hard disk.
    #[must_use]
    pub fn with_read_bursts(mut self, sectors: u64) -> Self {
        if let Mechanism::HardDisk(disk) = &mut self.kind {
            disk.reading.burst_sectors = sectors;
        }
        self
    }

    /// The same drive, which waits for a whole track before it sends a read of at least
    /// `tracks`; 0: it never does. To see what that costs.
    #[must_use]
    pub fn with_whole_tracks_from(mut self, tracks: u64) -> Self {
        if let Mechanism::HardDisk(disk) = &mut self.kind {
            disk.reading.whole_track_from = tracks;
        }
        self
    }

    /// The same drive with another seed for what varies in it.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        match &mut self.kind {
            Mechanism::HardDisk(disk) => disk.seed = seed,
            Mechanism::Flash(flash) => flash.seed = seed,
        }
        self
    }

    /// The same disk with fewer cylinders, so that it holds at most `capacity`.
    ///
    /// To shrink an emulated disk by using only its first addresses would keep
    /// all data on the outer, faster tracks and all seeks short. Here each zone
    /// gives up the same part of its cylinders, and a seek over a part of the
    /// stroke takes as long as over that part of the full disk. Tracks, turns and
    /// the step to the next cylinder stay as they are; single bad sectors go. A
    /// flash device gets smaller and nothing else.
    ///
    /// # Errors
    /// When `capacity` holds less than one cylinder of each zone.
    pub fn scaled(&self, capacity: Bytes) -> Result<Self, Error> {
        if capacity >= self.capacity() {
            return Ok(self.clone());
        }
        let kind = match &self.kind {
            Mechanism::HardDisk(disk) => {
                Mechanism::HardDisk(Box::new(disk.scaled(capacity, &self.name)?))
            }
            Mechanism::Flash(flash) => Mechanism::Flash(flash.scaled(capacity, &self.name)?),
        };
        Ok(Self { name: self.name.clone(), source: self.source.clone(), kind })
    }
}
