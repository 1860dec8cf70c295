//! A scenario is played by the production node: under `slack` with admission nobody is
//! late, without both somebody is; and what it counts is what happened.
#![allow(clippy::print_stdout)] // how fast it went is part of the result

use disk::Model;
use node::{Contract, Mode, Placement, Policy, Priority, Service};
use sim::scenario::{
    Arrivals, Cause, Control, DiskPlan, DriveKind, FaultKind, FaultPlan, LoadPlan, Outcome, Pace,
    Place, Scenario, StreamPlan, run, run_all,
};
use sim::workload::movie;
use std::num::NonZero;
use units::{Bytes, Duration, Rate};

fn disk(model: &str) -> DiskPlan {
    DiskPlan { what: DriveKind::Model(Model::named(model).unwrap()), bus: None }
}

fn own() -> Place {
    Place::Own { size: None, placement: Placement::default() }
}

fn streams(name: &str, count: u64, mode: Mode, rate: u64) -> StreamPlan {
    let block = Bytes::kib(512);
    StreamPlan {
        name: name.into(),
        count,
        mode,
        contract: Contract { rate: Rate::per_second(rate), block, burst: block },
        place: own(),
        pace: Pace::Constant,
        speed_percent: 100,
        jitter: Duration::ZERO,
        starts: None,
        apart: Duration::from_millis(100),
        stops: None,
        jumps: None,
    }
}

fn greedy(name: &str, count: u64) -> LoadPlan {
    LoadPlan {
        name: name.into(),
        count,
        service: None,
        place: own(),
        arrivals: Arrivals::Greedy(8),
        block: Bytes::kib(64),
        reads_percent: 80,
        sequential: false,
        starts: None,
        stops: None,
    }
}

/// Cameras, a player and eight greedy programs on a laptop's disk.
fn mixed() -> Scenario {
    let mut player = streams("player", 1, Mode::Read, 800_000);
    // 250 kB/s on average, in scenes that need more and less.
    player.pace = Pace::Frames(movie::CLIP);
    player.contract.rate = Rate::per_second(350_000);
    player.jumps = Some(Duration::from_secs(20));
    Scenario {
        name: "mixed".into(),
        disks: vec![disk("laptop-4200")],
        streams: vec![streams("camera", 4, Mode::Write, 500_000), player],
        loads: vec![greedy("greedy", 8)],
        faults: Vec::new(),
        policy: Policy::SLACK,
        admission: true,
        memory: Bytes::mib(128),
        commit_interval: Duration::from_secs(5),
        warm_up: Duration::from_secs(5),
        duration: Duration::from_secs(60),
    }
}

fn play(scenario: &Scenario) -> Outcome {
    run(scenario, 1, &Control::default()).unwrap()
}

fn missed(outcome: &Outcome) -> u64 {
    outcome.classes.iter().map(|class| class.missed()).sum()
}

#[test]
fn nobody_is_late_under_contract_and_everybody_moves() {
    let outcome = play(&mixed());
    let [camera, player, greedy] = &outcome.classes[..] else { panic!("three classes") };
    assert_eq!((camera.admitted, player.admitted, greedy.admitted), (4, 1, 8));
    assert_eq!(missed(&outcome), 0, "{:?}", outcome.misses);
    assert_eq!((camera.throttled, player.throttled), (0, 0));
    // Four cameras at 500 kB/s for a minute, to within a block each.
    let moved = camera.seen.bytes.get();
    assert!(moved.abs_diff(120_000_000) < 4 << 20, "{moved}");
    assert!(player.begins.count() >= 1, "it jumps about every 20 s");
    assert!(greedy.seen.bytes > Bytes::mib(30), "{}", greedy.seen.bytes);
    assert!(greedy.seen.distribution.quantile(500_000) > Duration::from_millis(10));
    let disk = &outcome.disks[0];
    assert!(disk.busy > Duration::from_secs(55) && disk.busy <= Duration::from_secs(60));
    assert!(disk.promised_ppm > 200_000, "{}", disk.promised_ppm);
    assert_eq!(disk.overruns, 0);
}

/// The canary: were nobody late here, the test above would test nothing.
#[test]
fn first_come_first_served_without_admission_is_late() {
    let outcome = play(&Scenario { policy: policies::FCFS, admission: false, ..mixed() });
    assert!(missed(&outcome) > 50, "{}", missed(&outcome));
    let camera = &outcome.classes[0];
    assert_eq!(camera.caused_by(Cause::NoAdmission), camera.missed());
    assert!(camera.late.count() > 0 && !outcome.misses.is_empty());
}

#[test]
fn equal_seeds_have_equal_outcomes_on_any_number_of_threads() {
    let scenario = Scenario { duration: Duration::from_secs(10), ..mixed() };
    let seeds = [1, 2, 3, 4];
    let text = |threads| {
        let workers = NonZero::new(threads).unwrap();
        let outcomes = run_all(&scenario, &seeds, workers, &Control::default()).unwrap();
        outcomes.iter().map(|outcome| format!("{outcome:?}")).collect::<Vec<_>>()
    };
    let one = text(1);
    assert_eq!(one, text(2));
    assert_ne!(one[0], one[1], "another seed is another run");
}

#[test]
fn what_does_not_fit_is_refused_and_the_rest_is_kept() {
    let mut scenario = mixed();
    scenario.streams[0].count = 40;
    let outcome = play(&scenario);
    let camera = &outcome.classes[0];
    assert_eq!(camera.asked, 40);
    assert!(camera.admitted > 4 && camera.admitted < 40, "{}", camera.admitted);
    assert!(matches!(camera.refusal, Some(node::Error::Refused(_))));
    assert_eq!(missed(&outcome), 0, "{:?}", outcome.misses);
}

#[test]
fn a_disk_that_breaks_its_promise_is_named() {
    let mut scenario = mixed();
    let fault = |kind, at: u64, lasts: u64| FaultPlan {
        name: "trouble".into(),
        disk: 0,
        at: Duration::from_secs(at),
        lasts: Duration::from_secs(lasts),
        kind,
    };
    let stall = fault(FaultKind::Stall, 20, 5);
    let slow = fault(FaultKind::Slow { from: Bytes::ZERO, to: Bytes::MAX, percent: 300 }, 40, 10);
    scenario.faults = vec![stall, slow];
    let outcome = play(&scenario);
    assert!(missed(&outcome) > 0);
    for class in &outcome.classes {
        assert_eq!(class.caused_by(Cause::Fault), class.missed(), "{:?}", outcome.misses);
    }
    assert!(outcome.disks[0].overruns > 0);
}

#[test]
fn a_power_cut_loses_nothing_that_was_acknowledged_and_everybody_comes_back() {
    let mut scenario = mixed();
    scenario.faults = vec![FaultPlan {
        name: "power".into(),
        disk: 0,
        at: Duration::from_secs(30),
        lasts: Duration::from_secs(10),
        kind: FaultKind::PowerCut,
    }];
    let outcome = play(&scenario);
    let [cut] = outcome.power_cuts[..] else { panic!("one cut: {:?}", outcome.dead) };
    assert_eq!((cut.writers, cut.lost), (4, Bytes::ZERO));
    assert!(cut.durable > Bytes::mib(20), "{}", cut.durable);
    // A minute less the ten seconds without power.
    let moved = outcome.classes[0].seen.bytes.get();
    assert!(moved > 90_000_000 && moved < 105_000_000, "{moved}");
    assert_eq!(missed(&outcome), 0, "{:?}", outcome.misses);
}

/// The canary of the test above: where the disk lies, what was acknowledged is lost, and
/// that is seen.
#[test]
fn a_power_cut_after_flushes_that_did_nothing_is_seen_to_lose() {
    let mut scenario = mixed();
    let fault = |kind, at| FaultPlan {
        name: "trouble".into(),
        disk: 0,
        at: Duration::from_secs(at),
        lasts: Duration::from_secs(10),
        kind,
    };
    scenario.faults = vec![fault(FaultKind::LyingFlush, 20), fault(FaultKind::PowerCut, 29)];
    let seeds: Vec<u64> = (0..6).collect();
    let workers = NonZero::new(2).unwrap();
    let outcomes = run_all(&scenario, &seeds, workers, &Control::default()).unwrap();
    let loses = |outcome: &&Outcome| {
        outcome.dead.is_some() || outcome.power_cuts.iter().any(|cut| !cut.lost.is_zero())
    };
    let count = outcomes.iter().filter(loses).count();
    assert!(count > 0, "nothing was lost in {} runs", outcomes.len());
}

#[test]
fn who_breaks_the_contract_is_slowed_to_it_and_the_others_are_kept() {
    let mut scenario = mixed();
    scenario.streams[0].speed_percent = 200;
    let outcome = play(&scenario);
    let camera = &outcome.classes[0];
    assert!(camera.throttled > 100, "{}", camera.throttled);
    assert_eq!(camera.caused_by(Cause::Client), camera.throttled);
    assert_eq!(missed(&outcome), 0, "{:?}", outcome.misses);
}

#[test]
fn services_under_contract_are_kept_beside_streams() {
    let mut scenario = mixed();
    let mut index = greedy("index", 1);
    let every = Duration::from_secs(1);
    index.block = Bytes::kib(16);
    index.service =
        Some(Service::Latency { len: Bytes::kib(16), within: Duration::from_millis(400), every });
    index.arrivals = Arrivals::Paced(every);
    let mut backup = greedy("backup", 1);
    backup.service = Some(Service::BestEffort(Priority::Background));
    scenario.loads.extend([index, backup]);
    let outcome = play(&scenario);
    let index = &outcome.classes[3];
    assert_eq!((index.admitted, index.missed()), (1, 0), "{:?}", index.refusal);
    assert!(index.requests.distribution.count() >= 59);
    assert!(index.seen.distribution.max() <= Duration::from_millis(400));
}

/// What the disks' deadlines do not show, the programs' own clocks do: where nothing is admitted, answers
/// are late and bytes are behind their rate.
#[test]
fn a_program_that_kept_to_its_contract_and_was_not_served_is_counted() {
    let block = Bytes::MIB;
    let (within, every) = (Duration::from_millis(300), Duration::from_millis(500));
    let rate = Rate::per_second(6_000_000);
    let services = [
        (Service::Latency { len: block, within, every }, Arrivals::Paced(every)),
        (Service::Rate { rate, block, period: Duration::from_secs(1) }, Arrivals::Greedy(6)),
    ];
    for (service, arrivals) in services {
        let mut promised = greedy("promised", 1);
        (promised.service, promised.arrivals, promised.block) = (Some(service), arrivals, block);
        let mut alone = mixed();
        (alone.streams, alone.loads) = (Vec::new(), vec![promised, greedy("greedy", 8)]);
        let kept = play(&alone);
        assert_eq!((missed(&kept), kept.classes[0].underruns), (0, 0), "{service:?}");
        let mut crowded = mixed();
        crowded.loads = alone.loads;
        (crowded.admission, crowded.policy) = (false, policies::FCFS);
        let broken = play(&crowded).classes[2].underruns;
        assert!(broken > 5, "{service:?}: {broken}");
    }
}

fn thin(size: Option<Bytes>) -> Place {
    Place::Own { size, placement: Placement { thin: true, ..Placement::default() } }
}

/// A reader finds its volume full, also where that takes its places when it is written. Before, a
/// scenario with one ended in a panic.
#[test]
fn a_reader_of_a_thin_volume_finds_it_full() {
    let mut scenario = mixed();
    scenario.duration = Duration::from_secs(10);
    let mut film = streams("film", 2, Mode::Read, 500_000);
    film.place = thin(Some(Bytes::mib(64)));
    film.contract.block = Bytes::MIB;
    film.contract.burst = Bytes::MIB;
    scenario.streams = vec![film];
    let outcome = play(&scenario);
    let film = &outcome.classes[0];
    assert_eq!((film.admitted, film.missed(), film.errors), (2, 0, 0), "{:?}", film.error);
    assert_eq!(film.gaps, Bytes::ZERO, "all of it was written");
    assert!(film.seen.bytes > Bytes::mib(8), "{}", film.seen.bytes);
    // More than the disk has is refused, in words.
    scenario.streams[0].place = thin(Some(Bytes::mib(1 << 20)));
    let refused = run(&scenario, 1, &Control::default()).unwrap_err();
    assert!(refused.next_step.contains("less `size`"), "{refused}");
}

/// A writer whose part of the disk is full, because what is promised on it is more than there is, fails, and
/// tries again every second. Before, it did so at the same instant for ever.
#[test]
fn a_writer_that_finds_the_disk_full_tries_again_later() {
    let mut scenario = mixed();
    scenario.disks = vec![disk("seagate-cheetah")];
    scenario.duration = Duration::from_secs(30);
    let mut archive = streams("archive", 1, Mode::Read, 1_000_000);
    archive.place = Place::Own { size: Some(Bytes::mib(4300)), placement: Placement::default() };
    let mut camera = streams("camera", 1, Mode::Write, 1_000_000);
    camera.place = thin(Some(Bytes::mib(100)));
    (camera.contract.block, camera.contract.burst) = (Bytes::MIB, Bytes::MIB);
    (scenario.streams, scenario.loads) = (vec![archive, camera], Vec::new());
    let outcome = play(&scenario);
    let [archive, camera] = &outcome.classes[..] else { panic!("two classes") };
    assert_eq!((archive.admitted, archive.missed(), archive.errors), (1, 0, 0));
    assert!(matches!(camera.error, Some(node::Error::PoolFull { .. })), "{:?}", camera.error);
    assert!((5..=35).contains(&camera.errors), "{}", camera.errors);
}

/// A day of it, where somebody asks for so much: for the speed, and to see that the
/// memory stays where it is.
#[test]
fn long_runs_need_no_more_memory() {
    let hours = std::env::var("SLACKLINE_HOURS").map_or(0, |hours| hours.parse().unwrap());
    if hours == 0 {
        return skips::not_run("needs SLACKLINE_HOURS, of simulated time");
    }
    let mut scenario = mixed();
    scenario.duration = Duration::from_secs(3600 * hours);
    let begin = std::time::Instant::now();
    let outcome = play(&scenario);
    let took = begin.elapsed().as_secs_f64();
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default();
    println!(
        "{hours} h in {took:.1} s: {:.0} simulated s/s, {:.0} commands/s; {peak}",
        3600.0 * hours as f64 / took,
        outcome.commands as f64 / took
    );
}
