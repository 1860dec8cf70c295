//! What the file systems of a traced machine ask the array of section 6.5 for.

use super::atlas;
use super::streams::DISKS;
use sim::Random;
use sim::traces::Trace;
use sim::workload::cello::{Cello, figures};
use sim::workload::{Demand, Source, fit};
use std::ops::Range;
use std::path::PathBuf;
use units::{Bytes, Duration, Lba, SECTOR};

/// What moves together: a block of a dynamic partition.
const EXTENT: u64 = Bytes::MIB.get() / SECTOR.get();
/// Streams lie in the first so many extents of each disk, inside its outermost zone;
/// file systems behind them.
pub(in crate::experiments::clockwise) const STREAM_EXTENTS: u64 = 1024;
/// Longer requests of file systems are cut to so much.
const LONGEST: Bytes = Bytes::kib(64);

/// How blocks lie on their disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::experiments::clockwise) enum Order {
    /// Streams in the outermost zone, one after the other; file systems behind them.
    Grouped,
    /// Every extent anywhere on its disk.
    Random,
}

/// Requests of file systems over a span of time, each with its disk of the array and
/// its place there.
#[derive(Clone)]
pub(in crate::experiments::clockwise) struct Load {
    /// By file system, each in the order of their times.
    pub systems: Vec<Vec<Demand>>,
    pub span: Duration,
}

/// Whole extents of a disk.
pub(super) fn extents() -> u64 {
    atlas::all().end.get() / EXTENT
}

impl Load {
    /// Cello's eight file systems in a part of its trace.
    pub fn cello(seed: u64, part: Range<Duration>, order: Order) -> Self {
        let ground = Ground::new(order, figures::DISKS as usize);
        let cello = Cello::new(seed, ground.size());
        let system = |disk: u32| {
            let demands = cello.disk(disk, part.clone());
            demands.map(|demand| ground.place(disk as usize, demand)).collect()
        };
        Self { systems: (0..figures::DISKS).map(system).collect(), span: part.end - part.start }
    }

    /// The recorded week of a workstation, `faster` times as fast; none where nobody has
    /// it. The folder with recorded loads is named by `SLACKLINE_DATA`.
    pub fn week(faster: u64, order: Order) -> Option<Self> {
        let folder = PathBuf::from(std::env::var_os("SLACKLINE_DATA")?);
        let mut trace = Trace::open(&folder.join("hp1992/ajw.1week.srt")).ok()?;
        let mut demands: Vec<Demand> = trace.by_ref().collect();
        if demands.is_empty() || trace.error().is_some() {
            return None;
        }
        let systems = demands.iter().map(|demand| demand.disk + 1).max()? as usize;
        for demand in &mut demands {
            demand.at = demand.at / faster;
        }
        let span = demands.last()?.at + Duration::from_secs(1);
        let ground = Ground::new(order, systems);
        let sizes = (0..systems as u32).map(|disk| trace.capacity(disk).unwrap_or(Bytes::MIB));
        let onto = Lba::new(0)..Lba::new(ground.size() / SECTOR);
        let fitted = fit(demands.into_iter(), sizes.collect(), onto);
        let mut load = Self { systems: vec![Vec::new(); systems], span };
        for demand in fitted {
            let system = demand.disk as usize;
            load.systems[system].push(ground.place(system, demand));
        }
        Some(load)
    }

    /// Requests of all systems.
    pub fn requests(&self) -> usize {
        self.systems.iter().map(Vec::len).sum()
    }
}

/// The longest request that a file system makes.
pub(super) fn longest() -> Bytes {
    LONGEST
}

/// Where the extents of file systems lie: of each disk an equal part behind the streams,
/// or extents from everywhere.
struct Ground {
    /// Extents of one file system on one disk.
    part: u64,
    order: Vec<u64>,
}

impl Ground {
    fn new(order: Order, systems: usize) -> Self {
        let mut map: Vec<u64> = (0..extents()).collect();
        if order == Order::Random {
            let mut random = Random::new(652);
            for at in (1..map.len()).rev() {
                map.swap(at, random.below(at as u64 + 1) as usize);
            }
        }
        Self { part: (extents() - STREAM_EXTENTS) / systems as u64, order: map }
    }

    /// How much a file system holds.
    fn size(&self) -> Bytes {
        Bytes::MIB * (self.part * DISKS)
    }

    /// Extents take turns on the disks. A request that would cross an extent's end is
    /// moved back to it.
    fn place(&self, system: usize, mut demand: Demand) -> Demand {
        let access = &mut demand.access;
        access.len = access.len.min(LONGEST);
        let (extent, inside) = (access.lba.get() / EXTENT, access.lba.get() % EXTENT);
        let inside = inside.min(EXTENT - access.len / SECTOR);
        let local = STREAM_EXTENTS + system as u64 * self.part + extent / DISKS % self.part;
        access.lba = Lba::new(self.order[local as usize] * EXTENT + inside);
        demand.disk = (extent % DISKS) as u32;
        demand
    }
}
