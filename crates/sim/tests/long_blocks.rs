//! What a disk takes under contract in blocks of several lengths, over all of the disk, and that
//! what was admitted is served: for 200 simulated minutes, and nobody is late.
//!
//! `SLACKLINE_LONG_BLOCKS=200` serves for so many simulated minutes; without it for 5. Run the
//! whole with `--release`: `SLACKLINE_LONG_BLOCKS=200 cargo test --release -p slackline-sim
//! --test long_blocks -- --nocapture` prints the table of docs/admission.md.
#![allow(clippy::print_stdout)] // how much is admitted is the result

use disk::Model;
use node::{Contract, DiskIndex, Mode, Placement, Policy};
use sim::scenario::{
    Control, DiskPlan, DriveKind, Outcome, Pace, Place, Scenario, StreamPlan, run,
};
use units::{Access, Bytes, Command, Direction, Duration, Lba, Rate};

/// Disks, one kind of streams on all of them, and how they lie.
struct Setting {
    model: &'static str,
    disks: u16,
    rate: u64,
    block: Bytes,
    commit_interval: Duration,
}

fn minutes() -> u64 {
    let asked = std::env::var("SLACKLINE_LONG_BLOCKS").ok();
    asked.and_then(|minutes| minutes.parse().ok()).unwrap_or(5)
}

fn model(name: &str) -> Model {
    Model::named(name).unwrap()
}

/// What the disks give on average to who reads all of them from the first byte to the last:
/// their bytes by the time that the profile has for them, in pieces of 64 MiB.
fn sequential(setting: &Setting) -> u64 {
    let profile = disk::Profile::of(&model(setting.model));
    let piece = Bytes::mib(64);
    let pieces = profile.capacity() / piece;
    let mut time = Duration::ZERO;
    // Every hundredth of a large disk.
    let step = (pieces / 1000).max(1);
    let mut counted = 0;
    for number in (0..pieces).step_by(step as usize) {
        let lba = Lba::containing(piece * number);
        let access = |len| {
            Command::Transfer(Access { lba, len, direction: Direction::Read })
        };
        // What the way there takes is in both.
        let (long, short) = (access(piece), access(Bytes::kib(4)));
        time += profile.bound(lba, &long) - profile.bound(lba, &short);
        counted += 1;
    }
    let bytes = u128::from((piece - Bytes::kib(4)).get()) * counted;
    let rate = bytes * 1_000_000_000 / u128::from(time.as_nanos());
    rate as u64 * u64::from(setting.disks)
}

/// So many readers, whose volumes fill nine tenths of the disks.
fn scenario(setting: &Setting, count: u64, duration: Duration) -> Scenario {
    let capacity = model(setting.model).capacity();
    let size = (capacity * u64::from(setting.disks) / 10 * 9 / count).round_down(Bytes::mib(16));
    let contract = Contract {
        rate: Rate::per_second(setting.rate),
        block: setting.block,
        burst: setting.block,
    };
    let placement = Placement {
        disks: (0..setting.disks).map(DiskIndex).collect(),
        run: setting.block.max(Bytes::MIB),
        ..Placement::default()
    };
    let readers = StreamPlan {
        name: "reader".into(),
        count,
        mode: Mode::Read,
        contract,
        place: Place::Own { size: Some(size), placement },
        pace: Pace::Constant,
        speed_percent: 100,
        jitter: Duration::ZERO,
        starts: None,
        apart: Duration::from_millis(1),
        stops: None,
        jumps: None,
    };
    let disk = || DiskPlan { what: DriveKind::Model(model(setting.model)), bus: None };
    Scenario {
        name: "long blocks".into(),
        disks: (0..setting.disks).map(|_| disk()).collect(),
        streams: vec![readers],
        loads: Vec::new(),
        faults: Vec::new(),
        policy: Policy::SLACK,
        admission: true,
        memory: Bytes::GIB * 16,
        commit_interval: setting.commit_interval,
        warm_up: Duration::ZERO,
        duration,
    }
}

/// The most readers of which all are admitted.
fn admitted(setting: &Setting) -> u64 {
    let all = |count| {
        let scenario = scenario(setting, count, Duration::from_secs(1));
        run(&scenario, 1, &Control::default()).unwrap().classes[0].admitted == count
    };
    let (mut good, mut bad) = (0, sequential(setting) / setting.rate + 1);
    while bad - good > 1 {
        let middle = good + (bad - good) / 2;
        if all(middle) { good = middle } else { bad = middle }
    }
    good
}

/// One line of the table: how many are admitted, and the percentage of the disks' mean
/// sequential rate that they are; all of them are served, and none is late.
fn line(setting: &Setting) -> (u64, u64) {
    let (count, sequential) = (admitted(setting), sequential(setting));
    let percent = count * setting.rate * 100 / sequential;
    let what = format!(
        "{} x {}, {} in blocks of {}",
        setting.disks,
        setting.model,
        Rate::per_second(setting.rate),
        setting.block
    );
    if count == 0 {
        println!("{what}: none");
        return (0, 0);
    }
    let scenario = scenario(setting, count, Duration::from_secs(60 * minutes()));
    let outcome: Outcome = run(&scenario, 1, &Control::default()).unwrap();
    let readers = &outcome.classes[0];
    println!(
        "{what}: {count}, {:.1} of {:.1} MB/s, {percent} %, window {}, all {}, {} min: {} requests, {} late, {} underruns",
        (count * setting.rate) as f64 / 1e6,
        sequential as f64 / 1e6,
        readers.window,
        readers.window * count,
        minutes(),
        readers.requests.distribution.count(),
        readers.late.count(),
        readers.underruns,
    );
    assert_eq!((readers.admitted, outcome.misses.len()), (count, 0));
    assert_eq!((readers.missed(), readers.underruns), (0, 0));
    assert_eq!(outcome.disks.iter().map(|disk| disk.overruns).sum::<u64>(), 0);
    // They all moved at their rate: to within a window each.
    let due = count * setting.rate * 60 * minutes();
    let moved = readers.seen.bytes.get();
    assert!(moved + (readers.window * count).get() * 2 >= due, "{moved} of {due}");
    (count, percent)
}

fn setting(model: &'static str, disks: u16, rate: u64, block: u64, commit: u64) -> Setting {
    let (block, commit_interval) = (Bytes::mib(block), Duration::from_secs(commit));
    Setting { model, disks, rate, block, commit_interval }
}

#[test]
fn a_disk_of_20_tb() {
    for rate in [2_000_000, 25_000_000] {
        for block in [1, 2, 4, 8, 16] {
            line(&setting("hdd-7200-20tb", 1, rate, block, 1));
        }
    }
}

#[test]
fn a_cheetah() {
    for (block, commit) in [(1, 1), (2, 2), (4, 4), (8, 6), (16, 12)] {
        line(&setting("seagate-cheetah", 1, 2_000_000, block, commit));
    }
}

#[test]
fn a_laptops_disk() {
    for (block, commit) in [(1, 1), (2, 2), (4, 4), (8, 6), (16, 12)] {
        line(&setting("laptop-4200", 1, 2_000_000, block, commit));
    }
}

#[test]
fn three_atlas_ii() {
    for rate in [500_000, 1_000_000] {
        for (block, commit) in [(1, 1), (2, 3), (4, 6), (8, 12), (16, 24)] {
            line(&setting("quantum-atlas-ii", 3, rate, block, commit));
        }
    }
}
