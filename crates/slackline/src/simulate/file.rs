//! Scenarios as people write them (TOML). A list of `slackline plan` is one, too.
//!
//! Invariant: every mistake is told with its line and with what to do.

use super::entry::Entry;
use super::fault;
use super::source::Source;
use crate::failure::Failure;
use crate::plan::list::{from_text, one};
use disk::{Model, Profile};
use node::Policy;
use serde::{Deserialize, Deserializer};
use sim::scenario::{DiskPlan, DriveKind, Scenario};
use std::path::{Path, PathBuf};
use toml::Spanned;
use units::{Bytes, Duration, Rate};

/// A scenario, and how often it shall be played.
#[derive(Debug)]
pub struct Read {
    /// What is played.
    pub scenario: Scenario,
    /// What it is about, in the words of who wrote it.
    pub about: Option<String>,
    /// How many runs.
    pub runs: u64,
    /// The seed of the first; each run has the next.
    pub seed: u64,
    /// The file.
    pub text: String,
}

/// What the line of arguments says in place of the file.
#[derive(Default)]
pub struct Instead {
    pub policy: Option<Policy>,
    pub admission: Option<bool>,
    pub duration: Option<Duration>,
    pub warm_up: Option<Duration>,
    pub runs: Option<u64>,
    pub seed: Option<u64>,
    pub memory: Option<Bytes>,
}

/// A policy by its name.
fn policy_from_text<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Policy>, D::Error> {
    let text = String::deserialize(from)?;
    policies::named(&text).map(Some).map_err(serde::de::Error::custom)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: Option<String>,
    about: Option<String>,
    #[serde(default, deserialize_with = "policy_from_text")]
    policy: Option<Policy>,
    admission: Option<bool>,
    #[serde(default, deserialize_with = "from_text")]
    memory: Option<Bytes>,
    #[serde(default, deserialize_with = "from_text")]
    commit_interval: Option<Duration>,
    #[serde(default, deserialize_with = "from_text")]
    warm_up: Option<Duration>,
    #[serde(default, deserialize_with = "from_text")]
    duration: Option<Duration>,
    runs: Option<u64>,
    seed: Option<u64>,
    #[serde(default)]
    models: Vec<Spanned<String>>,
    #[serde(default)]
    profiles: Vec<Spanned<PathBuf>>,
    #[serde(default)]
    disk: Vec<Spanned<DiskEntry>>,
    #[serde(default)]
    stream: Vec<Spanned<Entry>>,
    #[serde(default)]
    load: Vec<Spanned<Entry>>,
    #[serde(default)]
    fault: Vec<Spanned<fault::Entry>>,
}

/// So many disks alike.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct DiskEntry {
    model: Option<String>,
    file: Option<PathBuf>,
    profile: Option<PathBuf>,
    #[serde(default = "one")]
    count: u64,
    #[serde(default, deserialize_with = "from_text")]
    capacity: Option<Bytes>,
    bus: Option<String>,
    #[serde(default, deserialize_with = "from_text")]
    bus_rate: Option<Rate>,
}

/// Most disks, as a pool has them.
const DISKS_MAX: usize = 64;
/// Most programs together.
const PROGRAMS_MAX: u64 = 10_000;
const SHOWS_ALL: &str = "correct it; docs/simulate.md has every setting";

/// The scenario in a file.
pub fn read(path: &Path, instead: &Instead) -> Result<Read, Failure> {
    let text = std::fs::read_to_string(path).map_err(|error| Failure::file(path, &error))?;
    parse(path, text, instead)
}

/// The same, of a text that was read from `path`.
pub fn parse(path: &Path, text: String, instead: &Instead) -> Result<Read, Failure> {
    let source = Source { path, text: &text };
    let file: File = toml::from_str(&text).map_err(|error| {
        let said = error.to_string().trim().replace('\n', "\n  ");
        Failure::usage(format!("{}: {said}", path.display()), SHOWS_ALL)
    })?;
    let disks = disks(&file, &source)?;
    let mut streams = Vec::new();
    let mut loads = Vec::new();
    for entry in &file.stream {
        let wrong = |said: String| source.wrong(entry, &said, SHOWS_ALL);
        // As in a list of `slackline plan`, a service may stand among the streams.
        match entry.get_ref().is_stream() {
            true => streams.push(entry.get_ref().stream().map_err(wrong)?),
            false => loads.push(entry.get_ref().load(&source).map_err(wrong)?),
        }
    }
    for entry in &file.load {
        let wrong = |said: String| source.wrong(entry, &said, SHOWS_ALL);
        loads.push(entry.get_ref().as_load().load(&source).map_err(wrong)?);
    }
    let counts = streams.iter().map(|plan| plan.count).chain(loads.iter().map(|plan| plan.count));
    let count = counts.fold(0, u64::saturating_add);
    if streams.is_empty() && loads.is_empty() || count > PROGRAMS_MAX {
        let what = format!("{}: from one to {PROGRAMS_MAX} programs can be played", path.display());
        return Err(Failure::usage(what, "give it some [[stream]] or [[load]], and not more"));
    }
    let policy = instead.policy.or(file.policy).unwrap_or_default();
    let default = daemon::config::node_default();
    let mut scenario = Scenario {
        name: file.name.clone().unwrap_or_else(|| stem(path)),
        disks,
        streams,
        loads,
        faults: Vec::new(),
        policy,
        // Without a promise to keep there is nothing to admit by.
        admission: instead.admission.or(file.admission).unwrap_or(policy.keeps_contracts()),
        memory: instead.memory.or(file.memory).unwrap_or(default.memory).round_down(Bytes::MIB),
        commit_interval: file.commit_interval.unwrap_or(default.commit_interval),
        warm_up: instead.warm_up.or(file.warm_up).unwrap_or(Duration::from_secs(10)),
        duration: instead.duration.or(file.duration).unwrap_or(Duration::from_secs(300)),
    };
    for entry in &file.fault {
        let wrong = |said: String| source.wrong(entry, &said, SHOWS_ALL);
        scenario.faults.push(entry.get_ref().plan(&scenario).map_err(wrong)?);
    }
    check(&scenario, path)?;
    let runs = instead.runs.or(file.runs).unwrap_or(5).clamp(1, 1000);
    let seed = instead.seed.or(file.seed).unwrap_or(1);
    Ok(Read { scenario, about: file.about, runs, seed, text })
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

fn check(scenario: &Scenario, path: &Path) -> Result<(), Failure> {
    let wrong =
        |what: String, next: &str| Err(Failure::usage(format!("{}: {what}", path.display()), next));
    let least = node::limits::MEMORY_MIN;
    if scenario.memory < least {
        let what = format!("memory = \"{}\" is too little", scenario.memory);
        return wrong(what, &format!("give it at least {least}"));
    }
    let shortest = Duration::from_secs(1);
    if scenario.duration < shortest || scenario.commit_interval.is_zero() {
        let what = "a duration of at least 1s, and a commit_interval above nothing, are needed";
        return wrong(what.into(), SHOWS_ALL);
    }
    let names = scenario.streams.iter().map(|plan| &plan.name);
    let mut names: Vec<_> = names.chain(scenario.loads.iter().map(|plan| &plan.name)).collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => {
            let what = format!("two kinds of programs are called \"{}\"", pair[0]);
            wrong(what, "give each kind a name of its own")
        }
        None => Ok(()),
    }
}

fn disks(file: &File, source: &Source<'_>) -> Result<Vec<DiskPlan>, Failure> {
    let mut disks = Vec::new();
    let mut buses: Vec<&str> = Vec::new();
    for name in &file.models {
        let what = DriveKind::Model(named(name.get_ref()).map_err(|said| {
            source.wrong(name, &said, "name a model that there is, once for each disk")
        })?);
        disks.push(DiskPlan { what, bus: None });
    }
    for path in &file.profiles {
        let what = profile(&source.beside(path.get_ref()))?;
        disks.push(DiskPlan { what, bus: None });
    }
    for entry in &file.disk {
        let disk = entry.get_ref();
        let what = disk.what(source).map_err(|said| source.wrong(entry, &said, SHOWS_ALL))?;
        let bus = disk.bus.as_deref().map(|name| {
            let known = buses.iter().position(|bus| *bus == name);
            known.unwrap_or_else(|| {
                buses.push(name);
                buses.len() - 1
            }) as u32
        });
        let count = (disk.count as usize).min(DISKS_MAX + 1);
        disks.extend((0..count).map(|_| DiskPlan { what: what.clone(), bus }));
    }
    if disks.is_empty() || disks.len() > DISKS_MAX {
        let what = format!("{}: from one to {DISKS_MAX} disks make a pool", source.path.display());
        let next = "give it a [[disk]] with a model (`slackline disk models` lists them)";
        return Err(Failure::usage(what, next));
    }
    Ok(disks)
}

fn named(name: &str) -> Result<Model, String> {
    Model::named(name).map_err(|error| error.to_string())
}

fn profile(path: &Path) -> Result<DriveKind, Failure> {
    let profile: Profile = crate::pool::read_profile(path)?;
    Ok(DriveKind::Profile(Box::new(profile)))
}

impl DiskEntry {
    fn what(&self, source: &Source<'_>) -> Result<DriveKind, String> {
        let model = match (&self.model, &self.file, &self.profile) {
            (Some(name), None, None) => named(name)?,
            (None, Some(path), None) => {
                let path = source.beside(path);
                let text = std::fs::read_to_string(&path);
                let text = text.map_err(|error| format!("{}: {error}", path.display()))?;
                Model::parse(&text).map_err(|error| format!("{}: {error}", path.display()))?
            }
            (None, None, Some(path)) => {
                if self.bus.is_some() || self.capacity.is_some() {
                    return Err("a measured disk has its own size and bus: \
                                leave `capacity` and `bus` away"
                        .into());
                }
                return profile(&source.beside(path)).map_err(|failure| failure.what);
            }
            _ => {
                return Err("a disk is known by one of: `model` (a name), `file` (a model's \
                            file), `profile` (a measured disk's file)"
                    .into());
            }
        };
        let model = match self.capacity {
            Some(capacity) => model.scaled(capacity).map_err(|error| error.to_string())?,
            None => model,
        };
        let sector = self.bus_rate.map(|rate| rate.time_for(units::SECTOR));
        Ok(DriveKind::Model(sector.map_or(model.clone(), |sector| model.with_bus(sector))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use node::Mode;
    use sim::scenario::{Arrivals, FaultKind, Pace, Place};

    fn read(text: &str) -> Result<Read, Failure> {
        parse(Path::new("a.toml"), text.into(), &Instead::default())
    }

    const SMALL: &str = "[[disk]]\nmodel = \"laptop-4200\"\n[[stream]]\nrate = \"1MB/s\"\n";

    #[test]
    fn the_smallest_scenario_has_a_default_for_everything_else() {
        let read = read(SMALL).unwrap();
        let scenario = read.scenario;
        assert_eq!((scenario.name.as_str(), read.runs, read.seed), ("a", 5, 1));
        assert_eq!((scenario.policy, scenario.admission), (Policy::SLACK, true));
        let stream = &scenario.streams[0];
        assert_eq!((stream.count, stream.mode, stream.pace), (1, Mode::Read, Pace::Constant));
        assert_eq!(stream.contract.burst, stream.contract.block);
    }

    #[test]
    fn a_list_to_plan_is_a_scenario() {
        let text = include_str!("../../../../examples/cameras.toml");
        let scenario = read(text).unwrap().scenario;
        assert_eq!((scenario.disks.len(), scenario.memory), (1, Bytes::mib(256)));
        let names: Vec<_> = scenario.streams.iter().map(|plan| &*plan.name).collect();
        assert_eq!(names, ["camera", "monitor"]);
        let names: Vec<_> = scenario.loads.iter().map(|plan| &*plan.name).collect();
        assert_eq!(names, ["index", "backup"]);
        assert!(matches!(scenario.loads[0].arrivals, Arrivals::Paced(_)));
    }

    #[test]
    fn everything_that_can_be_said_is_understood() {
        let text = "policy = 'fcfs'\nduration = '1h'\n\
            [[disk]]\nmodel = 'quantum-atlas-ii'\ncount = 3\nbus = 'scsi'\nbus_rate = '40MB/s'\n\
            [[stream]]\nname = 'movie'\nmode = 'read'\nrate = '1MB/s'\nframe_rate = 25\n\
            mean_rate = '800kB/s'\nvaries = '30%'\njumps = '1min'\nzone = 'outer'\nsize = '1GiB'\n\
            [[load]]\nname = 'db'\nask = 'bursts'\ngap = '50ms'\nmost = 20\nreads = '70%'\n\
            volume = 'movie'\nblock = '8KiB'\n\
            [[load]]\nname = 'vm'\nlike = 'virtual-machine'\nper_second = 50\nspeed = '200%'\n\
            [[fault]]\nkind = 'slow'\nat = '1min'\nlasts = '10s'\npercent = 300\nto = '1GiB'\n";
        let scenario = read(text).unwrap().scenario;
        assert!(!scenario.admission, "fcfs keeps no contracts");
        assert_eq!(scenario.disks.iter().filter(|disk| disk.bus == Some(0)).count(), 3);
        let movie = &scenario.streams[0];
        let Pace::Frames(kind) = movie.pace else { panic!("frame by frame") };
        let expected = (25, Bytes::new(32_000), Bytes::new(9_600));
        assert_eq!((kind.pace, kind.mean, kind.deviation), expected);
        let load = &scenario.loads[0];
        assert_eq!((load.place.clone(), load.reads_percent), (Place::Of("movie".into()), 70));
        assert!(matches!(load.arrivals, Arrivals::Bursts { most: 20, .. }));
        assert!(matches!(&scenario.loads[1].arrivals, Arrivals::From(_, 200)));
        let slow = FaultKind::Slow { from: Bytes::ZERO, to: Bytes::GIB, percent: 300 };
        assert_eq!(scenario.faults[0].kind, slow);
    }

    /// What is wrong, what is said, and on which line.
    #[test]
    fn every_mistake_is_told_with_its_line() {
        let cases = [
            ("[[stream]]\nrate = '1MB/s'\n", "disks make a pool", None),
            ("[[disk]]\nmodel = 'floppy'\n[[stream]]\nrate = '1MB/s'\n", "floppy", Some(1)),
            ("[[disk]]\n[[stream]]\nrate = '1MB/s'\n", "known by one of", Some(1)),
            ("[[disk]]\nmodel = 'laptop-4200'\n", "programs can be played", None),
            (&format!("{SMALL}[[stream]]\nname = 'b'\n"), "needs a rate", Some(5)),
            (&format!("{SMALL}within = '3ms'\n"), "within means nothing", Some(3)),
            (&format!("{SMALL}outstanding = 3\n"), "outstanding means nothing", Some(3)),
            (&format!("{SMALL}varies = '30%'\n"), "frame_rate", Some(3)),
            (&format!("{SMALL}[[load]]\nask = 'poisson'\n"), "gap", Some(5)),
            (&format!("{SMALL}[[load]]\ntrace = 'no.csv'\n"), "no.csv", Some(5)),
            (&format!("{SMALL}[[load]]\nlike = 'cello'\nblock = '8k'\n"), "block means", Some(5)),
            (&format!("{SMALL}[[load]]\nreads = 'many'\n"), "%", Some(6)),
            (&format!("{SMALL}[[load]]\nspeed = '%'\n"), "", Some(6)),
            (&format!("{SMALL}[[fault]]\nkind = 'slow'\nat = '1s'\n"), "percent", Some(5)),
            (
                &format!("{SMALL}[[fault]]\nkind = 'stall'\nat = '1s'\ndisk = 4\n"),
                "disk 4",
                Some(5),
            ),
            (&format!("{SMALL}[[fault]]\nkind = 'stall'\nat = '9h'\n"), "after the end", Some(5)),
            (&format!("{SMALL}[[load]]\nname = 'stream'\n"), "two kinds", None),
            (&format!("colour = 'red'\n{SMALL}"), "unknown field", Some(1)),
            (&format!("policy = 'best'\n{SMALL}"), "no such policy", Some(1)),
            (&format!("memory = '1MiB'\n{SMALL}"), "too little", None),
            (&format!("duration = '3'\n{SMALL}"), "no unit", Some(1)),
        ];
        for (text, said, line) in cases {
            let failure = read(text).unwrap_err();
            assert!(failure.what.contains(said), "{text}: {}", failure.what);
            if let Some(line) = line {
                let at = format!("line {line}");
                assert!(failure.what.contains(&at), "{text}: not {at}: {}", failure.what);
            }
            assert!(!failure.next_step.is_empty());
        }
    }
}
