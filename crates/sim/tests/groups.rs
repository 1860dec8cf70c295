//! Writers of thin volumes that are written together: how many a disk takes in windows of a few blocks,
//! and that nobody is late beside people who look at recordings and something greedy.
//!
//! Each row is served for a simulated minute, or for as many as `SLACKLINE_GROUPS` says.
#![allow(clippy::print_stdout)] // how much is admitted is the result

use disk::Model;
use node::{Contract, DiskIndex, Mode, Placement, Policy, Zone};
use sim::scenario::{
    Arrivals, Control, DiskPlan, DriveKind, LoadPlan, Pace, Place, Scenario, StreamPlan, run,
};
use units::{Bytes, Duration, Rate};

/// How long rows are served.
fn minutes() -> u64 {
    let asked = std::env::var("SLACKLINE_GROUPS").ok();
    asked.map_or(1, |minutes| minutes.parse().expect("a number of minutes"))
}

fn streams(
    name: &str,
    count: u64,
    mode: Mode,
    (size, placement): (Bytes, Placement),
) -> StreamPlan {
    let rate = Rate::per_second(2_000_000);
    StreamPlan {
        name: name.into(),
        count,
        mode,
        contract: Contract { rate, block: Bytes::MIB, burst: Bytes::MIB },
        place: Place::Own { size: Some(size), placement },
        pace: Pace::Constant,
        speed_percent: 100,
        jitter: Duration::ZERO,
        starts: None,
        apart: Duration::from_millis(7),
        stops: None,
        jumps: None,
    }
}

/// When people come to look at what cameras record: there is something to look at.
const PEOPLE_COME: Duration = Duration::from_secs(120);

/// People at 2 MB/s: beside cameras that are written together they look at what these recorded two
/// minutes ago, in blocks of 4 MiB, which lie in four places.
fn people_of(thin: bool, count: u64, own: (Bytes, Placement)) -> StreamPlan {
    let mut plan = streams("person", count, Mode::Read, own);
    if thin {
        plan.place = Place::Of("camera".into());
        plan.starts = Some(PEOPLE_COME);
        (plan.contract.block, plan.contract.burst) = (Bytes::mib(4), Bytes::mib(4));
    }
    plan
}

/// Cameras of 2 MB/s on a disk of 20 TB, and people who look at recordings.
fn scenario(zone: Zone, thin: bool, (cameras, people): (u64, u64), duration: Duration) -> Scenario {
    let placement = |thin| Placement { disks: vec![DiskIndex(0)], zone, run: Bytes::MIB, thin };
    let model = Model::named("hdd-7200-20tb").unwrap();
    // Nine tenths of that part of the disk.
    let part = if zone == Zone::Any { model.capacity() } else { model.capacity() / 2 };
    let each = (part / 10 * 9 / (cameras + people)).round_down(Bytes::mib(16));
    Scenario {
        name: "cameras".into(),
        disks: vec![DiskPlan { what: DriveKind::Model(model), bus: None }],
        streams: vec![
            streams("camera", cameras, Mode::Write, (each, placement(thin))),
            people_of(thin, people, (each, placement(false))),
        ],
        loads: Vec::new(),
        faults: Vec::new(),
        policy: Policy::SLACK,
        admission: true,
        memory: Bytes::GIB * 2,
        commit_interval: Duration::from_secs(6),
        warm_up: Duration::ZERO,
        duration,
    }
}

/// Whether all of them are admitted.
fn fits(zone: Zone, thin: bool, count: (u64, u64)) -> bool {
    let duration = PEOPLE_COME + Duration::from_secs(5);
    let scenario = scenario(zone, thin, count, duration);
    let outcome = run(&scenario, 1, &Control::default()).unwrap();
    (outcome.classes[0].admitted, outcome.classes[1].admitted) == count
}

/// One row of the table: so many cameras beside so many people and no more; all are served beside
/// something greedy, and nobody is late.
fn row(zone: Zone, (cameras, people): (u64, u64)) {
    assert!(!fits(zone, true, (cameras + 1, people)), "more than the table says");
    let minutes = minutes();
    let duration = PEOPLE_COME + Duration::from_secs(60 * minutes);
    let mut scenario = scenario(zone, true, (cameras, people), duration);
    scenario.loads.push(LoadPlan {
        name: "greedy".into(),
        count: 1,
        service: None,
        place: Place::Own { size: Some(Bytes::GIB * 100), placement: Placement::default() },
        arrivals: Arrivals::Greedy(4),
        block: Bytes::MIB,
        reads_percent: 50,
        sequential: false,
        starts: None,
        stops: None,
    });
    let outcome = run(&scenario, 1, &Control::default()).unwrap();
    let [recorded, seen, greedy] = &outcome.classes[..] else { panic!("three kinds") };
    println!(
        "{zone}: {cameras} cameras in windows of {}, {people} people; {minutes} min, {} requests, \
         {} late; greedy {:.1} MB/s",
        recorded.window,
        recorded.requests.distribution.count() + seen.requests.distribution.count(),
        recorded.late.count() + seen.late.count(),
        greedy.seen.bytes.get() as f64 / 1e6 / duration.as_secs_f64(),
    );
    assert_eq!((recorded.admitted, seen.admitted), (cameras, people), "{:?}", recorded.refusal);
    assert!(recorded.window <= Bytes::mib(4), "{}", recorded.window);
    assert_eq!(outcome.misses.len(), 0, "{:?}", outcome.misses);
    for class in [recorded, seen] {
        let wrong = (class.missed(), class.underruns, class.errors, class.throttled);
        assert_eq!(wrong, (0, 0, 0, 0), "{:?}", class.error);
    }
    assert_eq!(outcome.disks.iter().map(|disk| disk.overruns).sum::<u64>(), 0);
    // They record at their rate from when they are open, but for what is in their windows.
    let open = duration.saturating_sub(Duration::from_secs(3));
    let due = Rate::per_second(2_000_000).bytes_in(open).saturating_sub(Bytes::mib(5)) * cameras;
    assert!(recorded.seen.bytes >= due, "{} of {due}", recorded.seen.bytes);
    assert!(greedy.seen.bytes > Bytes::mib(8), "{}", greedy.seen.bytes);
}

/// The same block by block, as volumes that are not thin have it.
#[test]
fn by_themselves_few_fit() {
    for (cameras, people) in [(16, 0), (12, 4)] {
        assert!(fits(Zone::Outer, false, (cameras, people)));
        assert!(!fits(Zone::Outer, false, (cameras + 1, people)));
    }
}

#[test]
fn in_the_outer_half() {
    row(Zone::Outer, (97, 0));
    row(Zone::Outer, (86, 3));
    row(Zone::Outer, (82, 4));
}

#[test]
fn anywhere() {
    row(Zone::Any, (58, 0));
    row(Zone::Any, (47, 4));
}
