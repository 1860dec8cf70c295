//! Whole experiments on an emulated disk, each run with a daemon of its own.

use super::result::{Kind, Measured};
use super::{Args, CONTRACT_BLOCK, Line, play, shape};
use crate::demo::child::{Daemon, slackline};
use crate::demo::folder::Folder;
use crate::failure::Failure;
use ::rwrt::{Load, Place};
use units::{Bytes, Duration};

/// An experiment.
#[derive(clap::ValueEnum, Clone, Copy, Debug)]
pub enum Scene {
    /// Figure 14 of the ABISS paper: 1 MB/s beside eight greedy programs on a laptop disk of
    /// 4,200 rpm, reading, writing and timeshifting; 20 minutes
    Abiss,
    /// The part of it that reads
    AbissReading,
    /// The part of it that writes
    AbissWriting,
    /// The part of it that watches a recording while three are made
    AbissTimeshifting,
}

/// What the paper's disk was.
const MODEL: &str = "hitachi-travelstar";
/// The disk, scaled to this size with all its zones.
const SIZE: &str = "4GiB";
/// What the paper's machine had for applications.
const MEMORY: &str = "92MiB";
/// What the paper's programs moved.
const TOTAL: Bytes = Bytes::new(200_000_000);
const GREEDY: u64 = 8;
/// How far the reader of a timeshift is behind: at most so long, a quarter of a short run.
const BEHIND: Duration = Duration::from_secs(20);

/// One of the paper's three measurements.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Reading,
    Writing,
    Timeshifting,
}

impl Part {
    fn name(self) -> &'static str {
        match self {
            Self::Reading => "reading",
            Self::Writing => "writing",
            Self::Timeshifting => "timeshifting",
        }
    }

    fn of(scene: Scene) -> &'static [Self] {
        match scene {
            Scene::Abiss => &[Self::Reading, Self::Writing, Self::Timeshifting],
            Scene::AbissReading => &[Self::Reading],
            Scene::AbissWriting => &[Self::Writing],
            Scene::AbissTimeshifting => &[Self::Timeshifting],
        }
    }

    /// Four streams need longer transfers than one, so that seeks do not take the disk.
    fn contract_block(self) -> Bytes {
        match self {
            Self::Reading | Self::Writing => CONTRACT_BLOCK,
            Self::Timeshifting => Bytes::kib(512),
        }
    }

    fn load(self, args: &Args, place: Place) -> Load {
        let total = args.programs.total(TOTAL);
        let load = args.programs.load(place, total, &args.ways);
        // A reader as best effort may take hours: greedy writers have hundreds of requests
        // waiting before each of its own. A window has time to fill before that counts.
        let limit = load.rate.time_for(total) * 3 / 2 + Duration::from_secs(10);
        let limit = Some(args.programs.at_most.unwrap_or(limit));
        let load = Load { overwrite: true, limit, ..load };
        match self {
            Self::Reading => Load { readers: 1, greedy_readers: GREEDY, ..load },
            Self::Writing => Load { writers: 1, greedy_writers: GREEDY, ..load },
            Self::Timeshifting => {
                let behind = BEHIND.min(load.rate.time_for(total) / 4);
                Load { writers: 3, timeshift: Some(behind), greedy_writers: GREEDY, ..load }
            }
        }
    }
}

/// Runs each part of the scene under contract and, with the same load, without.
pub fn run(scene: Scene, args: &Args, told: &Line) -> Result<Vec<Measured>, Failure> {
    let folder = Folder::new(args.results.keep.as_deref())?;
    let device = format!("emulated:{MODEL}:{}", folder.path().join("disk.img").display());
    slackline(&["pool", "create", "rwrt", &device, "--size", SIZE])?;
    let mut measured = Vec::new();
    for &part in Part::of(scene) {
        for kind in [Kind::Contract, Kind::BestEffort] {
            let name = format!("{}-{}", part.name(), kind.name().replace(' ', "-"));
            let daemon = Daemon::start(folder.path(), &name, &device, &["--memory", MEMORY])?;
            let contract = (kind == Kind::Contract).then(|| shape(args, part.contract_block()));
            let client = daemon.client().clone();
            let load =
                part.load(args, Place::Volumes { client, name: part.name().into(), contract });
            load.prepare(&|progress| told.progress(progress))?;
            told.step(&described(part, kind, &load));
            let outcome = play(&load, &args.ways, told)?;
            if kind == Kind::BestEffort {
                load.remove()?;
            }
            daemon.stop()?;
            measured.push(Measured { part: part.name().into(), kind, outcome });
        }
    }
    Ok(measured)
}

fn described(part: Part, kind: Kind, load: &Load) -> String {
    let time = load.rate.time_for(load.total).as_millis() / 1_000;
    let what = match part {
        Part::Reading => "a reader beside eight greedy readers",
        Part::Writing => "a writer beside eight greedy writers",
        Part::Timeshifting => {
            "three writers and a reader of one of them beside eight greedy writers"
        }
    };
    format!("{}, {}: {what}, {} for {time} s", part.name(), kind.name(), load.rate)
}
