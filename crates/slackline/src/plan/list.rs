//! Lists of streams as people write them: a file (TOML), or settings on the line.

use crate::contract::planned_run;
use crate::failure::Failure;
use client::control::{Contract, Mode, Placement, PlanStream, Priority, Service, Zone};
use serde::{Deserialize, Deserializer};
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use units::{Bytes, Duration, Rate};

/// A list, and the disks that it is for.
#[derive(Default, Debug)]
pub struct List {
    /// Disks of a pool that is not served.
    pub devices: Vec<String>,
    /// Disk models.
    pub models: Vec<String>,
    /// Files with profiles; beside the list's own file where the path is relative.
    pub profiles: Vec<PathBuf>,
    /// Memory for windows and transfers.
    pub memory: Option<Bytes>,
    /// In the order in which they would be opened.
    pub streams: Vec<PlanStream>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    devices: Vec<String>,
    #[serde(default)]
    models: Vec<String>,
    #[serde(default)]
    profiles: Vec<PathBuf>,
    #[serde(default, deserialize_with = "from_text")]
    memory: Option<Bytes>,
    #[serde(default)]
    stream: Vec<Entry>,
}

/// One kind of stream, or of volume. A scenario has the same words for the same
/// things.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    #[serde(default = "stream_name")]
    pub name: String,
    #[serde(default = "one")]
    pub count: u64,
    #[serde(default)]
    pub class: Class,
    pub mode: Option<ModeArg>,
    #[serde(default, deserialize_with = "from_text")]
    pub rate: Option<Rate>,
    #[serde(default, deserialize_with = "from_text")]
    pub block: Option<Bytes>,
    #[serde(default, deserialize_with = "from_text")]
    pub burst: Option<Bytes>,
    #[serde(default, deserialize_with = "from_text")]
    pub within: Option<Duration>,
    #[serde(default, deserialize_with = "from_text")]
    pub every: Option<Duration>,
    #[serde(default, deserialize_with = "from_text")]
    pub period: Option<Duration>,
    #[serde(default)]
    pub priority: Priority,
    #[serde(default)]
    pub disks: Vec<u16>,
    #[serde(default)]
    pub zone: Zone,
    #[serde(default, deserialize_with = "from_text")]
    pub run: Option<Bytes>,
    #[serde(default)]
    pub thin: bool,
}

/// Under which promise.
#[derive(Clone, Copy, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// A stream that keeps a rate.
    #[default]
    Rate,
    /// Operations that are answered within a time.
    Latency,
    /// The slack; with a rate, at least that.
    BestEffort,
}

/// Which way.
#[derive(clap::ValueEnum, Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ModeArg {
    /// From the volume to the program
    Read,
    /// From the program to the volume
    Write,
}

impl From<ModeArg> for Mode {
    fn from(mode: ModeArg) -> Self {
        match mode {
            ModeArg::Read => Self::Read,
            ModeArg::Write => Self::Write,
        }
    }
}

fn stream_name() -> String {
    "stream".into()
}

pub fn one() -> u64 {
    1
}

/// A quantity as people write it.
pub fn from_text<'de, D, T>(from: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr,
    T::Err: Display,
{
    let text = String::deserialize(from)?;
    text.parse().map(Some).map_err(serde::de::Error::custom)
}

impl List {
    /// The list in a file.
    pub fn read(path: &Path) -> Result<Self, Failure> {
        let text = std::fs::read_to_string(path).map_err(|error| Failure::file(path, &error))?;
        Self::parse(path, &text)
    }

    /// The same, of a text that was read from `path`.
    pub fn parse(path: &Path, text: &str) -> Result<Self, Failure> {
        let wrong = |what: String| {
            let what = format!("{}: {}", path.display(), what.trim().replace('\n', "\n  "));
            Failure::usage(what, "correct the list; examples/cameras.toml shows every setting")
        };
        let file: File = toml::from_str(text).map_err(|error| wrong(error.to_string()))?;
        let beside = |profile: PathBuf| path.parent().unwrap_or(Path::new("")).join(profile);
        let streams = file.stream.into_iter().map(Entry::planned).collect::<Result<_, _>>();
        Ok(Self {
            devices: file.devices,
            models: file.models,
            profiles: file.profiles.into_iter().map(beside).collect(),
            memory: file.memory,
            streams: streams.map_err(wrong)?,
        })
    }
}

/// One kind from `name=value,name=value`, with the same names as in a file.
pub fn stream(settings: &str) -> Result<PlanStream, Failure> {
    let mut text = String::new();
    for setting in settings.split(',') {
        let (name, value) = setting.split_once('=').unwrap_or((setting, ""));
        let line = match name.trim() {
            "count" => format!("count = {value}\n"),
            "disks" => format!("disks = [{}]\n", value.replace('+', ",")),
            name => format!("{name} = {}\n", toml::Value::from(value.trim())),
        };
        text.push_str(&line);
    }
    let entry: Result<Entry, _> = toml::from_str(&text);
    entry.map_err(|error| error.message().to_owned()).and_then(Entry::planned).map_err(|what| {
        let next = "write for example --stream name=camera,count=10,mode=write,rate=2MB/s";
        Failure::usage(format!("--stream {settings}: {what}"), next)
    })
}

impl Entry {
    /// What it asks for.
    pub fn planned(self) -> Result<PlanStream, String> {
        self.check()?;
        let needed = |what: &str| format!("\"{}\" needs {what}", self.name);
        let rate = || self.rate.ok_or_else(|| needed("a rate"));
        let small = self.block.unwrap_or(Bytes::kib(64));
        let service = match self.class {
            Class::Rate => None,
            Class::Latency => Some(Service::Latency {
                len_bytes: small,
                within_ns: self
                    .within
                    .ok_or_else(|| needed("the time `within` an answer comes"))?,
                every_ns: self.every.ok_or_else(|| needed("how often, as `every` = a time"))?,
            }),
            Class::BestEffort if self.rate.is_some() => Some(Service::Rate {
                rate_bytes_per_second: rate()?,
                block_bytes: small,
                period_ns: self.period.unwrap_or(Duration::from_secs(1)),
            }),
            Class::BestEffort => Some(Service::BestEffort { priority: self.priority }),
        };
        let block_bytes = self.block.unwrap_or(Bytes::MIB);
        let run_of = if matches!(self.class, Class::Rate) { block_bytes } else { Bytes::MIB };
        let contract = match service {
            Some(_) => None,
            None => Some(Contract {
                rate_bytes_per_second: rate()?,
                block_bytes,
                burst_bytes: self.burst.unwrap_or(block_bytes),
            }),
        };
        let placement = Placement {
            disks: self.disks,
            zone: self.zone,
            run_bytes: if self.thin { Bytes::MIB } else { planned_run(self.run, run_of) },
            thin: self.thin,
        };
        let mode = self.mode.map(Mode::from);
        Ok(PlanStream { name: self.name, count: self.count, mode, contract, service, placement })
    }

    /// A setting that means nothing here is a mistake, not a wish to be ignored.
    fn check(&self) -> Result<(), String> {
        let is_stream = matches!(self.class, Class::Rate);
        let idle = [
            ("within", self.within.is_some(), matches!(self.class, Class::Latency)),
            ("every", self.every.is_some(), matches!(self.class, Class::Latency)),
            ("period", self.period.is_some(), matches!(self.class, Class::BestEffort)),
            ("burst", self.burst.is_some(), is_stream),
            ("mode", self.mode.is_some(), is_stream),
            ("rate", self.rate.is_some(), !matches!(self.class, Class::Latency)),
        ];
        match idle.into_iter().find(|&(_, given, means)| given && !means) {
            None => Ok(()),
            Some((name, ..)) => {
                Err(format!("\"{}\": {name} means nothing in its class", self.name))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_on_the_line_mean_what_they_mean_in_a_file() {
        let line = "name=cam,count=10,mode=write,rate=2MB/s,block=512KiB,disks=0+2,zone=outer";
        let cam = stream(line).unwrap();
        let file = "name = 'cam'\ncount = 10\nmode = 'write'\nrate = '2MB/s'\nblock = '512KiB'\n\
                    disks = [0, 2]\nzone = 'outer'\n";
        let entry: Entry = toml::from_str(file).unwrap();
        assert_eq!(cam, entry.planned().unwrap());
        let contract = cam.contract.unwrap();
        assert_eq!((contract.burst_bytes, cam.placement.disks), (Bytes::kib(512), vec![0, 2]));
    }

    #[test]
    fn every_class_has_its_settings_and_no_others() {
        let service = |text: &str| stream(text).unwrap().service.unwrap();
        assert!(matches!(
            service("class=latency,within=30ms,every=100ms"),
            Service::Latency { .. }
        ));
        assert!(matches!(service("class=best-effort,rate=1MB/s"), Service::Rate { .. }));
        assert_eq!(service("class=best-effort"), Service::default());
        for (wrong, said) in [
            ("rate=2MB/s,within=3ms", "within means nothing"),
            ("class=latency,within=3ms", "every"),
            ("count=2", "needs a rate"),
            ("rate=fast", "rate"),
            ("ratio=2MB/s", "unknown field"),
            ("rate=1MB/s,count=x", ""),
            ("", ""),
        ] {
            let failure = stream(wrong).unwrap_err();
            assert!(failure.what.contains(said), "{wrong}: {}", failure.what);
        }
    }
}
