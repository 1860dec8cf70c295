//! What a scenario is made of, as plain data.

use crate::workload::{Source, movie};
use disk::{BusShare, Model, Profile};
use node::{Contract, Mode, Placement, Policy, Service};
use std::fmt;
use std::sync::Arc;
use units::{Bytes, Duration};

/// A mix of streams, load, disks and faults, to be played in simulated time.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// What people call it.
    pub name: String,
    /// At least one.
    pub disks: Vec<DiskPlan>,
    /// Programs under a rate contract, in the order in which they are opened.
    pub streams: Vec<StreamPlan>,
    /// Everybody else, after them.
    pub loads: Vec<LoadPlan>,
    /// What goes wrong, and when.
    pub faults: Vec<FaultPlan>,
    /// How the disks are scheduled.
    pub policy: Policy,
    /// Off only for comparisons: every contract is then taken.
    pub admission: bool,
    /// Memory of the node.
    pub memory: Bytes,
    /// Time between commits of the metadata log.
    pub commit_interval: Duration,
    /// What happens in this time first is not counted.
    pub warm_up: Duration,
    /// What happens in this time then is.
    pub duration: Duration,
}

impl Scenario {
    /// From the begin to the end.
    pub fn whole(&self) -> Duration {
        self.warm_up + self.duration
    }

    /// What each disk costs, with its wait for the bus where it shares one.
    pub fn profiles(&self) -> Vec<Profile> {
        let profile = |disk: &DiskPlan| Profile { bus: self.share(disk), ..disk.what.profile() };
        self.disks.iter().map(profile).collect()
    }

    /// What a disk has of its bus, if it shares one. A flash device and a measured disk have
    /// one for themselves.
    fn share(&self, disk: &DiskPlan) -> Option<BusShare> {
        let bus = disk.bus?;
        let model = |other: &'_ DiskPlan| match &other.what {
            DriveKind::Model(model) if other.bus == Some(bus) => Some(model.clone()),
            _ => None,
        };
        let is_on_it = model(disk).is_some_and(|model| model.is_hard_disk());
        let models: Vec<Model> = self.disks.iter().filter_map(model).collect();
        let models: Vec<&Model> = models.iter().collect();
        is_on_it.then(|| BusShare::of(&format!("bus-{bus}"), &models)).flatten()
    }
}

/// One disk.
#[derive(Clone, Debug)]
pub struct DiskPlan {
    /// How long its commands take.
    pub what: DriveKind,
    /// Which bus it is on, where it shares one; equal numbers share.
    pub bus: Option<u32>,
}

/// What a disk is known by.
#[derive(Clone, Debug)]
pub enum DriveKind {
    /// A drive somebody built.
    Model(Model),
    /// A disk that was measured: its commands take a random share of their bound.
    Profile(Box<Profile>),
}

impl DriveKind {
    /// What the node is told of it.
    pub fn profile(&self) -> Profile {
        match self {
            Self::Model(model) => Profile::of(model),
            Self::Profile(profile) => (**profile).clone(),
        }
    }
}

/// So many streams alike, each on a volume of its own.
#[derive(Clone, Debug)]
pub struct StreamPlan {
    /// What they are called.
    pub name: String,
    /// How many.
    pub count: u64,
    /// Which way.
    pub mode: Mode,
    /// What each asks for.
    pub contract: Contract,
    /// Where its volume lies.
    pub place: Place,
    /// When it wants its bytes.
    pub pace: Pace,
    /// It goes at so many percent of its contract's rate; above 100 it breaks it.
    pub speed_percent: u64,
    /// It comes up to this late on purpose, every time.
    pub jitter: Duration,
    /// The first of them opens then; none: after all those before that name no time.
    pub starts: Option<Duration>,
    /// Each opens so long after the one before it, or a random part of it.
    pub apart: Duration,
    /// Each closes then; at the end where none is given.
    pub stops: Option<Duration>,
    /// A person jumps about in it: on average so long apart.
    pub jumps: Option<Duration>,
}

/// Where a program's bytes lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// On a volume of its own of this size, or of one that suits.
    Own {
        /// None: what it needs, or what there is.
        size: Option<Bytes>,
        /// Which disks, which zone.
        placement: Placement,
    },
    /// On the volumes of the streams or loads of that name.
    Of(String),
}

/// When a stream's program wants its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// A block at a time, at the rate.
    Constant,
    /// A frame at a time, each as long as it happens to be.
    Frames(movie::Kind),
}

/// So many programs alike without a stream.
#[derive(Clone, Debug)]
pub struct LoadPlan {
    /// What they are called.
    pub name: String,
    /// How many.
    pub count: u64,
    /// How what they ask for is served; none: as its volume is.
    pub service: Option<Service>,
    /// Where their bytes lie.
    pub place: Place,
    /// When they ask.
    pub arrivals: Arrivals,
    /// How much each request moves; a multiple of 4 KiB, at most 1 MiB.
    pub block: Bytes,
    /// So many percent of the requests read.
    pub reads_percent: u64,
    /// One after the other, not anywhere.
    pub sequential: bool,
    /// When they begin; none: after all those before that name no time.
    pub starts: Option<Duration>,
    /// When they end, if before the end.
    pub stops: Option<Duration>,
}

/// When a load asks.
#[derive(Clone, Debug)]
pub enum Arrivals {
    /// So many requests are always outstanding.
    Greedy(u64),
    /// One in each such time.
    Paced(Duration),
    /// On average so long apart, independent of each other.
    Poisson(Duration),
    /// From one to `most` at once, bursts on average so long apart and independent.
    Bursts {
        /// The mean time between bursts.
        apart: Duration,
        /// The largest burst.
        most: u64,
    },
    /// As a generator or a trace says, so many percent as fast. Where and how much it
    /// reads and writes is the source's.
    From(Arc<dyn MakeSource>, u64),
}

/// Makes a load's source for one run.
pub trait MakeSource: Send + Sync + fmt::Debug {
    /// The source for this seed, over `space` bytes.
    ///
    /// # Errors
    /// Says why there is none, and what to do.
    fn source(&self, seed: u64, space: Bytes) -> Result<Box<dyn Source>, String>;
}

/// Something that goes wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultPlan {
    /// What people call it.
    pub name: String,
    /// Which disk; a power cut takes them all.
    pub disk: u16,
    /// When it begins.
    pub at: Duration,
    /// How long it lasts.
    pub lasts: Duration,
    /// What it is.
    pub kind: FaultKind,
}

/// What can go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// Transfers that touch this part of the disk take so many percent of their time.
    Slow {
        /// From here
        from: Bytes,
        /// to here.
        to: Bytes,
        /// More than 100.
        percent: u64,
    },
    /// The disk stands still.
    Stall,
    /// Reads of this part fail.
    BadSectors {
        /// From here
        from: Bytes,
        /// to here.
        to: Bytes,
    },
    /// So many commands of a million fail.
    Errors {
        /// At most a million.
        ppm: u64,
    },
    /// All writes and flushes fail.
    WriteErrors,
    /// Flushes are said to be done and do nothing: the disk lies.
    LyingFlush,
    /// The power goes, and is back when the fault is over.
    PowerCut,
}
