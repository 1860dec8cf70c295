//! What people write in files: profiles, models, traces; and quantities. Bytes that are no text
//! are of interest to `trace` alone.

use super::files;
use disk::{Model, Profile};
use sim::traces::{Format, Trace};
use sim::workload::Source;
use units::{Bytes, Direction, Duration, Lba, Rate};

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
    for model in model.scaled(Bytes::mib(64)).into_iter().chain([model]) {
        let profile = Profile::of(&model);
        Profile::parse(&profile.to_toml()).expect("a profile that was made can be read");
    }
    true
}

pub fn models() -> Vec<Vec<u8>> {
    let names = ["laptop-4200", "ssd-nvme", "quantum-atlas-ii", "wd400bb"];
    files(&names.map(|name| format!("models/{name}.toml")))
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
