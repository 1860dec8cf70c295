//! What disks take under contract in blocks of several lengths, over nine tenths of them, and
//! that what was admitted is served, and nobody is late.
//!
//! Some rows of the table in docs/admission.md are held to the counts that stand there, and
//! served for two simulated minutes, or for as many as `SLACKLINE_LONG_BLOCKS` says. With
//! `SLACKLINE_LONG_BLOCKS_ALL` all rows are searched and served.
#![allow(clippy::print_stdout)] // how much is admitted is the result

use disk::Model;
use node::{Contract, DiskIndex, Mode, Placement, Policy, Zone};
use sim::scenario::{
    Control, DiskPlan, DriveKind, Outcome, Pace, Place, Scenario, StreamPlan, run,
};
use units::{Access, Bytes, Command, Direction, Duration, Lba, Rate};

/// Disks, one kind of streams on all of them, and how they lie.
#[derive(Clone)]
struct Setting {
    model: &'static str,
    disks: u16,
    rate: u64,
    block: Bytes,
    commit_interval: Duration,
    /// Admitted by sweeps of this cycle; else by bounds.
    cycle: Option<Duration>,
    /// Their volumes lie in the outer half, as on a disk that is not full.
    outer: bool,
}

/// How long rows are served.
fn minutes() -> u64 {
    let asked = std::env::var("SLACKLINE_LONG_BLOCKS").ok();
    asked.map_or(2, |minutes| minutes.parse().expect("a number of minutes"))
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
        let access = |len| Command::Transfer(Access { lba, len, direction: Direction::Read });
        // What the way there takes is in both.
        let (long, short) = (access(piece), access(Bytes::kib(4)));
        time += profile.bound(lba, &long) - profile.bound(lba, &short);
        counted += 1;
    }
    let bytes = u128::from((piece - Bytes::kib(4)).get()) * counted;
    let rate = bytes * 1_000_000_000 / u128::from(time.as_nanos());
    rate as u64 * u64::from(setting.disks)
}

/// The volume of one of so many readers, which together fill nine tenths of the disks.
fn size(setting: &Setting, count: u64) -> Bytes {
    let capacity = model(setting.model).capacity() * u64::from(setting.disks);
    let capacity = if setting.outer { capacity / 2 } else { capacity };
    (capacity / 10 * 9 / count).round_down(setting.block.max(Bytes::mib(16)))
}

/// So many readers, each on a volume of its own.
fn scenario(setting: &Setting, count: u64, duration: Duration) -> Scenario {
    let size = size(setting, count);
    let contract = Contract {
        rate: Rate::per_second(setting.rate),
        block: setting.block,
        burst: setting.block,
    };
    let placement = Placement {
        disks: (0..setting.disks).map(DiskIndex).collect(),
        run: setting.block.clamp(Bytes::MIB, store::RUN_MAX),
        zone: if setting.outer { Zone::Outer } else { Zone::Any },
        thin: false,
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
        policy: match setting.cycle {
            Some(cycle) => policies::SWEEPS.with_value("cycle", cycle.as_nanos()).unwrap(),
            None => Policy::SLACK,
        },
        admission: true,
        memory: Bytes::GIB * 24,
        commit_interval: setting.commit_interval,
        warm_up: Duration::ZERO,
        duration,
    }
}

/// Whether all of so many readers are admitted.
fn fits(setting: &Setting, count: u64) -> bool {
    let scenario = scenario(setting, count, Duration::from_secs(1));
    run(&scenario, 1, &Control::default()).unwrap().classes[0].admitted == count
}

/// The most readers of which all are admitted.
fn admitted(setting: &Setting) -> u64 {
    let (mut good, mut bad) = (0, sequential(setting) / setting.rate + 1);
    while bad - good > 1 {
        let middle = good + (bad - good) / 2;
        if fits(setting, middle) { good = middle } else { bad = middle }
    }
    good
}

/// One row of the table: so many are admitted and no more, which is a percentage of the disks'
/// mean sequential rate; all of them are served, and none is late.
fn row(setting: &Setting, count: u64, minutes: u64) {
    let sequential = sequential(setting);
    let percent = count * setting.rate * 100 / sequential;
    let Setting { model, disks, block, .. } = setting;
    let by = setting.cycle.map_or("bounds".into(), |cycle| format!("sweeps every {cycle}"));
    let rate = Rate::per_second(setting.rate);
    let place = if setting.outer { ", outer half" } else { "" };
    let what = format!("{disks} x {model}{place}, {rate} in {block} by {by}");
    if count == 0 {
        return println!("{what}: none");
    }
    let scenario = scenario(setting, count, Duration::from_secs(60 * minutes));
    let outcome: Outcome = run(&scenario, 1, &Control::default()).unwrap();
    let readers = &outcome.classes[0];
    println!(
        "{what}: {count}, {:.1} of {:.1} MB/s, {percent} %, windows {}, all {}; {minutes} min, {} requests, {} late",
        (count * setting.rate) as f64 / 1e6,
        sequential as f64 / 1e6,
        readers.window,
        readers.window * count,
        readers.requests.distribution.count(),
        readers.late.count(),
    );
    assert_eq!((readers.admitted, outcome.misses.len()), (count, 0));
    assert_eq!((readers.missed(), readers.underruns), (0, 0));
    assert_eq!(outcome.disks.iter().map(|disk| disk.overruns).sum::<u64>(), 0);
    // They all moved at their rate, but for when they begin, and begin anew at the end of
    // their volumes: until a window is there, and two blocks more.
    let due = u128::from(count * setting.rate) * 60 * u128::from(minutes);
    let (size, pause) = (size(setting, count), readers.window + setting.block * 2);
    let due = due * u128::from(size.get()) / u128::from((size + pause).get());
    let moved = u128::from((readers.seen.bytes + pause * count).get());
    assert!(moved >= due, "{moved} of {due}");
}

/// All rows where that is asked for; otherwise these, with the counts that the table has.
fn table(settings: impl IntoIterator<Item = Setting>, pinned: &[(Setting, u64)]) {
    if std::env::var_os("SLACKLINE_LONG_BLOCKS_ALL").is_some() {
        for setting in settings {
            row(&setting, admitted(&setting), minutes());
        }
        return;
    }
    for (setting, count) in pinned {
        assert!(!fits(setting, count + 1), "more than the table says");
        row(setting, *count, minutes());
    }
}

fn setting(model: &'static str, disks: u16, rate: u64, block: u64, commit: u64) -> Setting {
    let (block, commit_interval) = (Bytes::mib(block), Duration::from_secs(commit));
    Setting { model, disks, rate, block, commit_interval, cycle: None, outer: false }
}

fn in_outer_half(setting: Setting) -> Setting {
    Setting { outer: true, ..setting }
}

const ALL: [(u64, u64); 5] = [(1, 1), (2, 3), (4, 6), (8, 12), (16, 24)];

#[test]
fn a_disk_of_20_tb() {
    let of = |rate, block| setting("hdd-7200-20tb", 1, rate, block, 1);
    let rates = [2_000_000, 25_000_000].into_iter();
    let all = rates.flat_map(|rate| [1, 2, 4, 8, 16].map(|block| of(rate, block)));
    let long = |block| setting("hdd-7200-20tb", 1, 25_000_000, block, 6);
    let outer = [16, 32].map(|block| in_outer_half(long(block)));
    let others = [long(32)].into_iter().chain(outer.clone());
    let [_, outer] = outer;
    let pinned = [(of(2_000_000, 16), 81), (of(25_000_000, 16), 5), (long(32), 7), (outer, 8)];
    table(all.chain(others), &pinned);
}

#[test]
fn a_cheetah() {
    let of = |(block, commit)| setting("seagate-cheetah", 1, 2_000_000, block, commit);
    table(ALL.map(of), &[(of((2, 3)), 5), (of((8, 12)), 6)]);
}

#[test]
fn a_laptops_disk() {
    let of = |(block, commit)| setting("laptop-4200", 1, 2_000_000, block, commit);
    table(ALL.map(of), &[(of((4, 6)), 10), (of((16, 24)), 12)]);
}

#[test]
fn three_atlas_ii() {
    let of = |(block, commit)| setting("quantum-atlas-ii", 3, 1_000_000, block, commit);
    table(ALL.map(of), &[(of((2, 3)), 22), (of((4, 6)), 24)]);
}

/// The same by sweeps, whose cycle is so many times what a block lasts on a disk.
fn swept(setting: Setting, times: u64) -> Setting {
    let lasts = Rate::per_second(setting.rate).time_for(setting.block * u64::from(setting.disks));
    Setting { cycle: Some(lasts * times), ..setting }
}

#[test]
fn a_disk_of_20_tb_by_sweeps() {
    let of = |rate, block, times| swept(setting("hdd-7200-20tb", 1, rate, block, 12), times);
    let slow = [4, 8, 16].map(|block| of(2_000_000, block, 1));
    let fast = [1, 4, 8, 12].map(|times| of(25_000_000, 16, times));
    let outer = [1, 2].map(|times| in_outer_half(of(25_000_000, 32, times)));
    let [_, outer_twice] = outer.clone();
    let pinned = [(of(2_000_000, 16, 1), 92), (of(25_000_000, 16, 12), 7), (outer_twice, 8)];
    table(slow.into_iter().chain(fast).chain(outer), &pinned);
}

#[test]
fn a_cheetah_and_a_laptops_disk_by_sweeps() {
    let of =
        |model, block, times, commit| swept(setting(model, 1, 2_000_000, block, commit), times);
    let all = ["seagate-cheetah", "laptop-4200"].into_iter().flat_map(|model| {
        let rows = [(4, 1), (4, 4), (8, 1), (8, 4), (16, 1), (16, 4)];
        rows.map(|(block, times)| of(model, block, times, 24))
    });
    let pinned = [(of("laptop-4200", 4, 4, 24), 10), (of("seagate-cheetah", 8, 4, 24), 5)];
    table(all, &pinned);
}

#[test]
fn three_atlas_ii_by_sweeps() {
    let of = |block, times| swept(setting("quantum-atlas-ii", 3, 1_000_000, block, 24), times);
    let all = [(1, 1), (1, 4), (2, 1), (2, 4), (4, 1)].map(|(block, times)| of(block, times));
    table(all, &[(of(2, 1), 21)]);
}
