//! What people write in files: profiles, models, scenarios, lists to plan, traces and
//! configuration. Bytes that are no text are not of interest to these, but to `trace`.

use command::reading;
use daemon::config::Options;
use disk::{Model, Profile};
use sim::traces::{Format, Trace};
use sim::workload::Source;
use std::path::{Path, PathBuf};
use units::{Bytes, Direction, Duration, Lba, Rate};

/// What other files a text names lie beside this one, where there are none.
fn path() -> &'static Path {
    Path::new("/nonexistent/a/file.toml")
}

/// True where a text may name a file of this machine, which no test shall depend on:
/// absolute paths lead out of [`path`], and keys may be written with escapes.
fn leads_out(text: &str) -> bool {
    let has_one = |words: &[&str]| words.iter().any(|word| text.contains(word));
    let slash = text.replace("B/s", "").replace("bit/s", "").contains('/');
    has_one(&["\\u", "\\U", "\\x"]) || (slash && has_one(&["trace", "file"]))
}

/// A profile that is taken gives bounds, and is the same when it is written and read.
pub fn profile(input: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(input) else { return false };
    let Ok(profile) = Profile::parse(text) else { return false };
    let again = Profile::parse(&profile.to_toml()).expect("what was written can be read");
    assert_eq!(again, profile, "{}", profile.to_toml());
    let end = Lba::containing(profile.capacity());
    let len = Bytes::kib(64).min(profile.capacity());
    for direction in [Direction::Read, Direction::Write] {
        profile.worst(Lba::new(0)..end, len, direction);
        profile.sweep(Lba::new(0)..end, len, direction);
    }
    true
}

pub fn profiles() -> Vec<Vec<u8>> {
    let profiles = Model::names().map(|name| {
        let model = Model::named(name).expect("a model by its name");
        Profile::of(&model).to_toml().into_bytes()
    });
    profiles.filter(|text| text.len() < 16 << 10).collect()
}

/// A model that is taken can be scaled and profiled.
pub fn model(input: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(input) else { return false };
    let Ok(model) = Model::parse(text) else { return false };
    let _ = model.scaled(Bytes::mib(64));
    if model.cylinders() < 10_000 && model.capacity() < Bytes::GIB * 1000 {
        let profile = Profile::of(&model);
        Profile::parse(&profile.to_toml()).expect("a profile that was made can be read");
    }
    true
}

pub fn models() -> Vec<Vec<u8>> {
    let names = ["laptop-4200", "ssd-nvme", "quantum-atlas-ii", "wd400bb"];
    files(&names.map(|name| format!("models/{name}.toml")))
}

/// A scenario is taken or refused with a line.
pub fn scenario(input: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(input) else { return false };
    if leads_out(text) {
        return false;
    }
    match reading::scenario(path(), text) {
        Ok(_) => true,
        Err(told) => {
            assert!(told.contains("next: ") && told.len() < 64 << 10, "{told}");
            false
        }
    }
}

pub fn scenarios() -> Vec<Vec<u8>> {
    let names = ["broken-disk", "cameras", "database", "instrument", "machines", "playout"];
    let files = files(&names.map(|name| format!("scenarios/{name}.toml")));
    // Comments lead out.
    let without = |text: String| {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines.map(|line| format!("{line}\n")).collect::<String>().into_bytes()
    };
    files.into_iter().filter_map(|text| String::from_utf8(text).ok()).map(without).collect()
}

/// A list to plan, and its entries in the words of the command's line.
pub fn plan(input: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(input) else { return false };
    let line = text.lines().next().unwrap_or_default();
    let told = [reading::list(path(), text).err(), reading::stream(line).err()];
    assert!(told.iter().flatten().all(|told| told.contains("next: ")));
    told.contains(&None)
}

pub fn plans() -> Vec<Vec<u8>> {
    let mut all = files(&["examples/cameras.toml".into()]);
    all.push(b"name=cam,count=10,mode=write,rate=2MB/s,block=512KiB,disks=0+2,zone=outer".into());
    all.push(b"class=latency,within=30ms,every=100ms".into());
    all.push(b"class=best-effort,rate=1MB/s,period=2s".into());
    all
}

/// A trace in a format that its first byte says: every demand that it gives can be had.
pub fn trace(input: &[u8]) -> bool {
    let Some((&format, bytes)) = input.split_first() else { return false };
    let formats = [Format::Blkparse, Format::FioIolog, Format::Spc, Format::Msr, Format::Srt];
    let format = formats[usize::from(format) % formats.len()];
    let input = Box::new(std::io::Cursor::new(bytes.to_vec()));
    let mut trace = Trace::read(input, format, sim::traces::Options::default());
    let mut last = Duration::ZERO;
    for demand in trace.by_ref() {
        assert!(demand.at >= last, "demands come in the order of their times");
        last = demand.at;
        let _ = demand.access.end();
    }
    trace.error().is_none()
}

pub fn traces() -> Vec<Vec<u8>> {
    let texts: [&[u8]; 4] = [
        b"8,0 1 1 0.000000000 123 Q R 2048 + 8 [a]\n8,0 1 2 0.5 123 Q WS 4096 + 16 [a]\n",
        b"fio version 2 iolog\n/dev/sda add\n/dev/sda open\n/dev/sda read 0 4096\n/dev/sda wait 10 0\n/dev/sda write 4096 8192\n/dev/sda close\n",
        b"0,20941264,8192,W,0.551706\n1,20939840,8192,R,0.554041\n",
        b"128166372003061629,hm,0,Read,383496192,32768,413\n128166372016382155,hm,0,Write,2822144,4096,7\n",
    ];
    let mut seeds: Vec<Vec<u8>> =
        (0u8..).zip(texts).map(|(format, text)| [&[format], text].concat()).collect();
    seeds.push([&[4][..], &[0; 128]].concat());
    seeds
}

/// A configuration file is taken and settled, or refused.
pub fn config(input: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(input) else { return false };
    let Ok(options) = toml::from_str::<Options>(text) else { return false };
    let again = options.clone().or(Options::default());
    assert_eq!(again, options, "nothing is lost to the defaults");
    if let Err(error) = options.settle(|| PathBuf::from("/s")) {
        assert!(!error.what.is_empty() && !error.next_step.is_empty());
    }
    true
}

pub fn configs() -> Vec<Vec<u8>> {
    let mut all = files(&["packaging/slackline.toml".into()]);
    all.push(
        b"disks = ['/dev/sdb', 'emulated:laptop:/tmp/disk']\nsocket = '/tmp/s.sock'\n\
          socket_mode = '0600'\nmemory = '64MiB'\npolicy = 'edf'\ncommit_interval = '500ms'\n\
          remeasure = false\nadmission = true\nhost_latency = '5ms'\n\
          [quota]\npreset = 'server'\n[quota.default]\nstreams = 4\n[files]\n"
            .into(),
    );
    all
}

/// Sizes, rates and times: what is taken can be written, and is then the same.
pub fn quantity(input: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(input) else { return false };
    let (size, rate, time) =
        (text.parse::<Bytes>(), text.parse::<Rate>(), text.parse::<Duration>());
    if let Ok(size) = &size {
        assert_eq!(format!("{}B", size.get()).parse(), Ok(*size));
        let _ = size.to_string();
    }
    if let Ok(rate) = &rate {
        assert_eq!(format!("{}B/s", rate.get()).parse(), Ok(*rate));
        let _ = rate.to_string();
    }
    if let Ok(time) = &time {
        assert_eq!(format!("{}ns", time.as_nanos()).parse(), Ok(*time));
        let _ = time.to_string();
    }
    size.is_ok() || rate.is_ok() || time.is_ok()
}

pub fn quantities() -> Vec<Vec<u8>> {
    let texts = ["64k", "8MiB", "2 MB/s", "25Mbit/s", "1.5s", "250ms", "0", "12345678B"];
    texts.map(|text| text.as_bytes().to_vec()).into()
}

/// Files of the repository.
fn files(names: &[String]) -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    names.iter().filter_map(|name| std::fs::read(root.join(name)).ok()).collect()
}
