//! The machine of programs, schedules and drives: many disks, buses, loads that are
//! played, and memory that does not grow.

use disk::{Model, Profile};
use sched::{Options, PolicyKind, Task};
use sim::machine::{
    Arrivals, Asker, DiskSetup, Done, LoadPlan, Machine, Pace, Places, PlayPlan, Results, Setup,
    StreamPlan, Target,
};
use sim::runs;
use sim::workload::Demand;
use std::num::NonZero;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use units::{Access, Bytes, Direction, Duration, Instant, Lba, Rate, SECTOR};

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn options() -> Options {
    Options { reserve: ms(40), ..Options::default() }
}

fn disk(model: &str, policy: PolicyKind) -> DiskSetup {
    DiskSetup::new(Model::named(model).unwrap(), policy, options())
}

fn outer() -> Range<Lba> {
    Lba::new(0)..Lba::new(1_772 * 10 * 179)
}

fn whole(machine: &Machine) -> Range<Lba> {
    Lba::new(0)..Lba::containing(machine.profile(0).capacity())
}

fn stream(disks: &[u32], rate: u64) -> StreamPlan {
    StreamPlan {
        disks: disks.to_vec(),
        rate: Rate::per_second(rate),
        block: Bytes::MIB,
        deadline: None,
        cost: None,
        direction: Direction::Read,
        places: Places::Random(outer()),
        pace: Pace::Steady,
        phase: Duration::ZERO,
        patience: Duration::MAX,
    }
}

fn small_reads(machine: &Machine, disk: u32) -> LoadPlan {
    LoadPlan {
        disk,
        arrivals: Arrivals::Bursts { apart: ms(1_000), most: 15 },
        size: Bytes::kib(8),
        direction: Direction::Read,
        places: Places::Random(whole(machine)),
        synchronous: true,
    }
}

/// A volume on three disks: each disk has a task of three periods and a third of the
/// blocks, so that three disks take three times what one does.
#[test]
fn blocks_take_turns_on_the_disks_of_a_stream() {
    let rate = 817 * 1024;
    let fits = |disks: u32| {
        let alike = Setup::alike(&disk("quantum-atlas-ii", PolicyKind::SLACK), disks, 1);
        let mut machine = Machine::new(alike);
        let names: Vec<u32> = (0..disks).collect();
        let task = machine.task(&stream(&names, rate), 0);
        assert_eq!(task.period, Rate::per_second(rate).time_for(Bytes::mib(u64::from(disks))));
        let mut streams = Vec::new();
        while let Ok(stream) = machine.join(stream(&names, rate)) {
            streams.push(stream);
        }
        for at in 0..disks {
            let load = small_reads(&machine, at);
            machine.load(load);
        }
        machine.warm_up(ms(10_000));
        machine.run_for(ms(300_000));
        let all = machine.results();
        assert_eq!((all.late, all.overruns), (0, 0));
        let blocks = 300 * rate * streams.len() as u64 / Bytes::MIB.get();
        assert!(all.real_time.count().abs_diff(blocks) <= 2 * streams.len() as u64, "{blocks}");
        let tallied: u64 =
            streams.iter().map(|&it| machine.stream_results(it).latencies.count()).sum();
        assert_eq!(tallied, all.real_time.count());
        for at in 0..disks {
            let one = machine.disk_results(at).real_time.count();
            assert!((one * u64::from(disks)).abs_diff(blocks) <= blocks / 50, "{one} of {blocks}");
            assert_eq!(machine.schedule(at).tasks().len(), streams.len());
        }
        streams.len()
    };
    let (one, three) = (fits(1), fits(3));
    assert!(three >= 3 * one, "{one} and {three}");
}

/// Where one disk refuses, nothing is left on the others.
#[test]
fn a_stream_joins_all_of_its_disks_or_none() {
    let mut machine =
        Machine::new(Setup::alike(&disk("quantum-atlas-ii", PolicyKind::SLACK), 2, 1));
    while machine.join(stream(&[1], 400_000)).is_ok() {}
    assert!(machine.join(stream(&[0, 1], 800_000)).is_err());
    assert_eq!(machine.schedule(0).tasks().len(), 0);
    let only = machine.join(stream(&[0], 400_000)).expect("this disk is free");
    machine.run_for(ms(10_000));
    machine.leave(only);
    assert_eq!(machine.schedule(0).tasks().len(), 0);
}

/// Three Cheetahs on one bus are slower than with a bus each (Clockwise thesis, section
/// 4.3.7): where all read their outer zones it cannot carry them. A
/// profile that says nothing of the bus does not know of the others: requests overrun without a
/// margin.
#[test]
fn disks_wait_for_the_bus_that_they_share() {
    let run = |bus: Option<u32>, margin: Duration| {
        let cheetah = disk("seagate-cheetah", PolicyKind::SLACK);
        let mut machine = Machine::new(Setup::alike(&DiskSetup { bus, margin, ..cheetah }, 3, 1));
        for at in 0..3 {
            let places = Places::Sequential(Lba::new(0)..Lba::new(2_000_000));
            machine.load(LoadPlan {
                arrivals: Arrivals::Greedy(2),
                size: Bytes::MIB,
                places,
                ..small_reads(&machine, at)
            });
        }
        machine.run_for(ms(60_000));
        machine.results()
    };
    let (own, shared) = (run(None, Duration::ZERO), run(Some(0), Duration::ZERO));
    assert_eq!(own.overruns, 0);
    // 38.1 MB/s go over the bus.
    let rate = |results: &Results| results.bytes() / Bytes::kib(60);
    assert!(rate(&own) > 39_500 && rate(&shared) < 39_050, "{} {}", rate(&own), rate(&shared));
    assert!(shared.overruns > 0);
    assert_eq!(run(Some(0), ms(100)).overruns, 0);
}

fn demand(at: Duration, disk: u32, lba: u64) -> Demand {
    let access = Access { lba: Lba::new(lba), len: SECTOR * 16, direction: Direction::Read };
    Demand { at, disk, access, synchronous: disk == 0 }
}

#[test]
fn a_source_is_played_at_any_speed_on_the_parts_that_stand_for_its_disks() {
    for speed_percent in [100, 400] {
        let mut machine =
            Machine::new(Setup::alike(&disk("quantum-atlas-ii", PolicyKind::SLACK), 2, 1));
        let demands: Vec<Demand> =
            (0..1_000).map(|at| demand(ms(100 * at), at as u32 % 3, at * 7_001)).collect();
        let part = Lba::new(1_000_000)..Lba::new(1_100_000);
        let targets = vec![Target::new(1, part.clone()), Target::new(0, part.clone())];
        let seen = Arc::new(Mutex::new(Vec::new()));
        let watched = seen.clone();
        machine.watch(move |done: &Done| watched.lock().unwrap().push(*done));
        machine.run_until(Instant::EPOCH + ms(5));
        let source = Box::new(demands.into_iter());
        let load = machine.play(PlayPlan { source, targets, speed_percent }).unwrap();
        machine.run_for(ms(101_000));
        let seen = seen.lock().unwrap();
        // A third is for a disk that nothing stands for.
        assert_eq!((seen.len(), machine.load_results(load).latencies.count()), (667, 667));
        assert!(machine.load_error(load).is_none());
        for done in &*seen {
            let number = (done.submitted - Instant::EPOCH - ms(5)).as_nanos() * speed_percent
                / Duration::from_millis(100).as_nanos()
                / 100;
            assert_eq!((done.asker, done.disk), (Asker::Load(load), 1 - number as u32 % 3));
            let (place, len) = (number * 7_001, 100_000);
            let inside = if place + 16 <= len { place } else { place % (len - 15) };
            assert_eq!(done.access.lba.get(), part.start.get() + inside, "{number}");
        }
        assert_eq!(machine.disk_results(1).synchronous.count(), 334);
        assert_eq!(machine.disk_results(0).asynchronous.count(), 333);
    }
}

/// A budget of 100 ms a second is kept for a load while a stream with deadlines runs.
#[test]
fn a_load_under_a_contract_is_served_out_of_its_budget() {
    let mut machine =
        Machine::new(Setup::alike(&disk("quantum-atlas-ii", PolicyKind::SLACK), 1, 1));
    let cost = Profile::of(&Model::named("quantum-atlas-ii").unwrap()).worst(
        whole(&machine),
        Bytes::kib(8),
        Direction::Read,
    );
    while machine.join(stream(&[0], 600_000)).is_ok() && machine.schedule(0).tasks().len() < 4 {}
    let plan = LoadPlan { arrivals: Arrivals::Poisson(ms(500)), ..small_reads(&machine, 0) };
    let contract = Task { command: cost, ..Task::new(ms(1_000), ms(400), ms(150)) };
    let load = machine.load_under(plan.clone(), contract).expect("there is room");
    assert!(machine.load_under(plan, Task::new(ms(100), ms(100), ms(90))).is_err());
    machine.run_for(ms(200_000));
    let tally = machine.load_results(load);
    assert!(tally.latencies.count() > 300 && tally.late == 0, "{tally:?}");
    assert_eq!(machine.results().late, 0);
}

/// Every change between requests under contract and others is counted, and every run
/// of best effort between them.
#[test]
fn switches_and_runs_are_those_that_a_watcher_sees() {
    for policy in [PolicyKind::SLACK, PolicyKind::EDF, policies::LST] {
        let mut machine = Machine::new(Setup::alike(&disk("quantum-atlas-ii", policy), 1, 3));
        for at in 0..6 {
            machine.join(StreamPlan { phase: ms(31 * at), ..stream(&[0], 700_000) }).unwrap();
        }
        let load = small_reads(&machine, 0);
        machine.load(load);
        let seen = Arc::new(Mutex::new(Vec::new()));
        let watched = seen.clone();
        machine.watch(move |done: &Done| {
            watched.lock().unwrap().push(matches!(done.asker, Asker::Stream(_)));
        });
        machine.run_for(ms(100_000));
        let seen = seen.lock().unwrap();
        let switches = seen.windows(2).filter(|pair| pair[0] != pair[1]).count() as u64;
        let mut runs: Vec<u64> =
            seen.split(|&is_stream| is_stream).map(|run| run.len() as u64).collect();
        runs.pop(); // It has not ended.
        runs.retain(|&run| run > 0);
        let results = machine.results();
        assert!(switches > 50, "{switches}");
        assert_eq!(results.switches, switches, "{policy}");
        let found = results.best_effort_runs;
        assert_eq!((found.count, found.commands), (runs.len() as u64, runs.iter().sum()));
        let mean = found.mean();
        let squares: f64 = runs.iter().map(|&run| (run as f64 - mean).powi(2)).sum();
        let deviation = (squares / runs.len() as f64).sqrt();
        assert!((found.standard_deviation() - deviation).abs() < 1e-6);
    }
}

/// Pages of this process that can be written to.
fn data_pages() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").expect("a Linux");
    text.split(' ').nth(5).and_then(|pages| pages.parse().ok()).expect("a number of pages")
}

/// What is kept is counts: a machine that has run for longer has no more memory. The
/// canary keeps each request, and is seen.
#[test]
fn memory_does_not_grow_with_simulated_time() {
    let busy = || {
        let mut machine =
            Machine::new(Setup::alike(&disk("quantum-atlas-ii", PolicyKind::SLACK), 2, 1));
        for at in 0..8 {
            let places = Places::Sequential(outer());
            machine
                .join(StreamPlan { places, phase: ms(100 * at), ..stream(&[0, 1], 800_000) })
                .unwrap();
        }
        for at in 0..2 {
            let load = small_reads(&machine, at);
            machine.load(load);
            let greedy = LoadPlan { arrivals: Arrivals::Greedy(4), ..small_reads(&machine, at) };
            machine.load(greedy);
        }
        machine.warm_up(ms(60_000));
        machine
    };
    let grown = |mut machine: Machine| {
        let before = data_pages();
        machine.run_for(ms(3_000_000));
        assert!(machine.results().requests() > 100_000);
        data_pages().saturating_sub(before)
    };
    let (plain, mut canary) = (busy(), busy());
    // Other tests of this process come and go: the least of a few counts.
    let plain = grown(plain).min(grown(busy())).min(grown(busy()));
    let kept = Arc::new(Mutex::new(Vec::new()));
    let all = kept.clone();
    canary.watch(move |done: &Done| all.lock().unwrap().push(*done));
    let canary = grown(canary);
    assert!(plain <= 64, "{plain} pages more");
    assert!(canary > 1_000 && kept.lock().unwrap().len() > 100_000, "{canary} pages more");
}

/// The same figures from one worker and from many.
#[test]
fn runs_of_many_seeds_are_the_same_whatever_the_workers() {
    let run = |seed: u64| {
        let one = disk("quantum-atlas-ii", PolicyKind::SLACK);
        let mut machine = Machine::new(Setup::alike(&one, 1, seed));
        machine.join(stream(&[0], 800_000)).unwrap();
        let load = small_reads(&machine, 0);
        machine.load(load);
        machine.run_for(ms(20_000));
        let results = machine.results();
        (results.synchronous.mean(), results.busy, results.real_time.count())
    };
    let alone = runs::for_seeds(1, 6, NonZero::<usize>::MIN, run);
    assert_eq!(runs::for_seeds(1, 6, NonZero::new(4).unwrap(), run), alone);
    assert!(alone.windows(2).all(|pair| pair[0] != pair[1]), "seeds matter");
}
