//! The profiler against drives in real time, over FUSE, on this machine's own
//! jitter: what it finds by timing alone, held against the model.
//!
//! Runs where `SLACKLINE_REALTIME` names models (`seagate-st318437lw,laptop-4200`)
//! and the machine has root and FUSE; else it says that it did nothing. Each model
//! takes eight minutes; `SLACKLINE_REALTIME_SIZE` is its size (1GiB), and with
//! `SLACKLINE_REALTIME_EFFORT=--full` it takes as long as it takes. Prints a table,
//! with the emulator's own lateness in it.
#![allow(clippy::print_stdout)] // the table is a result

use crate::support;
use crate::support::Scratch;
use disk::{Kind, Model, Profile, Tracks};
use serde_json::Value;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use units::{Bytes, Lba};

fn setting(name: &str, default: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| default.to_owned())
}

/// Where zones start and how many sectors their tracks have.
fn zones(model: &Model) -> Vec<(u64, u64)> {
    let Kind::HardDisk(profile) = Profile::of(model).kind else { panic!("a hard disk") };
    let tracks = Tracks::of(model).unwrap();
    let track = |start: Lba| tracks.track(start).end.get() - start.get();
    profile.zones.iter().map(|zone| (zone.start.get(), track(zone.start))).collect()
}

/// An emulator that is stopped in order.
struct Emulator(Child);

impl Emulator {
    fn start(model: &str, size: &str, mount: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_slackline"));
        command.args(["disk", "emulate", model, "--size", size, "--json", "--mount"]).arg(mount);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        support::wait_until(|| mount.join("disk.img").exists());
        Self(child)
    }

    /// What it says of itself.
    fn stop(self) -> Value {
        support::signal(self.0.id(), "TERM");
        let output = self.0.wait_with_output().unwrap();
        assert!(output.status.success());
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

/// One model: a line of the table, and whether it is good enough.
fn judge(name: &str, size: &str, effort: &str) -> (String, bool) {
    let dir = Scratch::new();
    let model = Model::named(name).unwrap().scaled(size.parse::<Bytes>().unwrap()).unwrap();
    let emulator = Emulator::start(name, size, &dir.path("mount"));
    let (disk, out) = (dir.text("mount/disk.img"), dir.text("profile.toml"));
    let found = dir.run(&["disk", "profile", &disk, effort, "--json", "-o", &out]).succeeded();
    let own = emulator.stop();
    let found: Value = serde_json::from_slice(&found.out).unwrap();
    let truth = model.rotation().as_nanos();
    let rotation = found["rotation_ns"].as_u64().unwrap_or(0);
    let off_ppm = rotation.abs_diff(truth) * 1_000_000 / truth;
    let list = found["zones"].as_array().unwrap();
    let number = |zone: &Value, field: &str| zone[field].as_u64().unwrap();
    let list: Vec<(u64, u64)> = list
        .iter()
        .map(|zone| (number(zone, "start_sector"), number(zone, "sectors_per_track")))
        .collect();
    let (mut right, mut start_off, zones) = (0, 0, zones(&model));
    for (start, track) in &zones {
        let near = list.iter().filter(|zone| zone.1 == *track);
        let Some(near) = near.min_by_key(|zone| zone.0.abs_diff(*start)) else { continue };
        right += 1;
        start_off = start_off.max(near.0.abs_diff(*start).div_ceil(*track));
    }
    let late = |field: &str| own["late"][field].as_u64().unwrap() / 1_000;
    let line = format!(
        "{name:<20} {off_ppm:>8} {right:>5} of {:<3} {:>7} {start_off:>9} {:>7} {:>6} {:>6} {:>6}",
        zones.len(),
        list.len(),
        found["commands"],
        late("p50_ns"),
        late("p99_ns"),
        late("max_ns"),
    );
    (line, off_ppm <= 1_000 && right * 10 >= zones.len() * 9)
}

#[test]
fn the_profiler_finds_turns_and_zones_in_real_time() {
    let models = setting("SLACKLINE_REALTIME", "");
    let root = std::fs::metadata("/proc/self").is_ok_and(|own| {
        use std::os::unix::fs::MetadataExt;
        own.uid() == 0
    });
    if models.is_empty() || !root || !Path::new("/dev/fuse").exists() {
        return skips::not_run("needs SLACKLINE_REALTIME=MODEL,..., root and /dev/fuse");
    }
    let (size, effort) = (
        setting("SLACKLINE_REALTIME_SIZE", "1GiB"),
        setting("SLACKLINE_REALTIME_EFFORT", "--quick"),
    );
    println!(
        "{:<20} {:>8} {:>12} {:>7} {:>9} {:>7} {:>20}",
        "model", "turn off", "zones right", "found", "start off", "reads", "late p50, p99, max"
    );
    println!("{:<20} {:>8} {:>12} {:>7} {:>9} {:>7} {:>20}", "", "ppm", "", "", "tracks", "", "us");
    let mut bad = Vec::new();
    for name in models.split(',') {
        let (line, good) = judge(name, &size, &effort);
        println!("{line}");
        if !good {
            bad.push(name.to_owned());
        }
    }
    assert!(
        bad.is_empty(),
        "a turn is off by more than 0.1 %, or more than a tenth of zones: {bad:?}"
    );
}
