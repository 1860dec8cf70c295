//! Disks that share a bus: what is admitted with the wait for the bus in every bound is
//! never late, and no command takes longer than its bound; what that costs is told.
//!
//! `SLACKLINE_BUSES=10000` tries that many random machines; run it with `--release`.
#![allow(clippy::print_stdout)] // how much is admitted is part of the result

use disk::{BusPlan, BusShare, Model, Profile};
use sched::{Options, PolicyKind};
use sim::Random;
use sim::machine::{Arrivals, DiskSetup, LoadPlan, Machine, Pace, Places, Setup, StreamPlan};
use units::{Bytes, Direction, Duration, Lba, Rate, SECTOR};

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// Drives whose bus takes time.
const DRIVES: [&str; 5] =
    ["seagate-cheetah", "quantum-atlas-ii", "atlas-iii", "seagate-st318437lw", "wd400bb"];

/// The time of a sector on a bus of this rate.
fn sector(rate: Rate) -> Duration {
    rate.time_for(SECTOR)
}

fn on_bus(name: &str, rate: Rate) -> Model {
    Model::named(name).unwrap().with_bus(sector(rate))
}

/// A disk under `slack`, with room for one best-effort command of `piece` anywhere.
fn setup(model: Model, bus: Option<u32>, share: Option<BusShare>, piece: Bytes) -> DiskSetup {
    let profile = Profile { bus: share.clone(), ..Profile::of(&model) };
    let whole = Lba::new(0)..Lba::containing(profile.capacity());
    let worst = |direction| profile.worst(whole.clone(), piece, direction);
    let reserve = worst(Direction::Read).max(worst(Direction::Write));
    let options = Options { reserve, ..Options::default() };
    DiskSetup { cache: true, bus, share, ..DiskSetup::new(model, PolicyKind::SLACK, options) }
}

fn whole(machine: &Machine, disk: u32) -> std::ops::Range<Lba> {
    Lba::new(0)..Lba::containing(machine.profile(disk).capacity())
}

fn stream(
    machine: &Machine,
    disk: u32,
    block: Bytes,
    rate: Rate,
    direction: Direction,
) -> StreamPlan {
    StreamPlan {
        disks: vec![disk],
        rate,
        block,
        deadline: None,
        cost: None,
        direction,
        places: Places::Random(whole(machine, disk)),
        pace: Pace::Steady,
        phase: Duration::ZERO,
        patience: Duration::ZERO,
    }
}

fn load(machine: &Machine, disk: u32, size: Bytes, arrivals: Arrivals) -> LoadPlan {
    LoadPlan {
        disk,
        arrivals,
        size,
        direction: Direction::Read,
        places: Places::Random(whole(machine, disk)),
        synchronous: false,
    }
}

/// Three Cheetahs on a bus of 20 MB/s, films in blocks of 1 MiB at 1 MB/s, and a greedy
/// program on each: streams that were let in, requests, late ones, overruns.
fn cheetahs(counts: bool) -> (u64, u64, u64, u64) {
    let model = on_bus("seagate-cheetah", Rate::per_second(20_000_000));
    let models = [&model; 3];
    let share = counts.then(|| BusShare::of("scsi", &models).expect("three drives on a bus"));
    let disk = setup(model.clone(), Some(0), share, Bytes::kib(256));
    let mut machine = Machine::new(Setup::alike(&disk, 3, 1));
    let mut streams = 0;
    for disk in 0..3 {
        let plan = |machine: &Machine| {
            stream(machine, disk, Bytes::MIB, Rate::per_second(1_000_000), Direction::Read)
        };
        while machine.join(plan(&machine)).is_ok() {
            streams += 1;
        }
        let greedy = load(&machine, disk, Bytes::kib(256), Arrivals::Greedy(4));
        machine.load(greedy);
    }
    machine.run_for(ms(60_000));
    let results = machine.results();
    (streams, results.real_time.count(), results.late, results.overruns)
}

/// Each of the three is admitted to the full where the bus is not counted, and nearly all
/// requests are late: the bus has less than half of what they ask for. Where it is counted,
/// less is admitted, and nobody is late.
#[test]
fn three_cheetahs_on_one_bus_keep_what_they_promise() {
    let (streams, requests, late, overruns) = cheetahs(false);
    println!("bus not counted: {streams} streams, {late} of {requests} late, {overruns} overruns");
    assert!(late * 2 > requests && overruns > 0, "the canary: {late} of {requests}");
    let (fewer, requests, late, overruns) = cheetahs(true);
    println!("bus counted: {fewer} streams, {late} of {requests} late, {overruns} overruns");
    assert!(requests > 300);
    assert_eq!((late, overruns), (0, 0));
    assert!(fewer < streams && fewer >= 6, "{fewer} of {streams}");
}

/// What one random machine came to.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    requests: u64,
    admitted: u64,
    /// With the same wishes and no bus counted.
    without: u64,
    late_without: u64,
    overruns_without: u64,
}

/// Two to five drives on one or two buses, perhaps with one beside them; streams of all
/// kinds until four were refused; best effort that never ends, on each disk.
fn random_machine(seed: u64, counts: bool) -> (u64, u64, u64, u64) {
    let mut random = Random::new(seed);
    let count = random.between(2, 5);
    let rates: Vec<Rate> =
        (0..2).map(|_| Rate::per_second(random.between(8, 80) * 1_000_000)).collect();
    let plan: Vec<(Model, Option<u32>)> = (0..count)
        .map(|number| {
            let name = *random.pick(&DRIVES);
            let bus = if random.chance(15) { None } else { Some(random.below(2) as u32) };
            let model = match bus {
                Some(bus) => on_bus(name, rates[bus as usize]),
                None => Model::named(name).unwrap(),
            };
            (model.with_seed(seed ^ number), bus)
        })
        .collect();
    let piece = Bytes::kib(1 << random.between(6, 10));
    let disks = plan.iter().map(|(model, bus)| {
        let share = bus.filter(|_| counts).and_then(|bus| {
            let on_it = plan.iter().filter(|(_, other)| *other == Some(bus));
            let models: Vec<&Model> = on_it.map(|(model, _)| model).collect();
            BusShare::of("bus", &models)
        });
        setup(model.clone(), *bus, share, piece)
    });
    let mut machine = Machine::new(Setup { disks: disks.collect(), seed });
    let (mut refused, mut admitted) = (0, 0);
    while refused < 4 {
        let disk = random.below(count) as u32;
        let block = Bytes::kib(1 << random.between(4, 10));
        let rate = Rate::per_second(random.between(20, 2_000) * 1_000);
        let direction = if random.chance(40) { Direction::Write } else { Direction::Read };
        let mut plan = stream(&machine, disk, block, rate, direction);
        let period = rate.time_for(block);
        plan.deadline = random.chance(30).then(|| period / 100 * random.between(60, 99));
        plan.pace = *random.pick(&[
            Pace::Steady,
            Pace::Jitter(period / 4),
            Pace::Eager(2),
            Pace::Variable(20),
        ]);
        plan.phase = random.span(period);
        let task = machine.task(&plan, disk);
        // Some are too quick for any disk.
        let joined = task.is_valid() && machine.join(plan).is_ok();
        admitted += u64::from(joined);
        refused += u64::from(!joined);
    }
    for disk in 0..count as u32 {
        let arrivals = *random.pick(&[Arrivals::Greedy(3), Arrivals::Adversary(2)]);
        let mut greedy = load(&machine, disk, piece, arrivals);
        if random.chance(40) {
            greedy.direction = Direction::Write;
        }
        machine.load(greedy);
    }
    machine.run_for(ms(20_000));
    let results = machine.results();
    (admitted, results.real_time.count(), results.late, results.overruns)
}

/// Whatever the drives, the rates of the buses, the contracts and the best effort: no
/// command takes longer than its bound, and no request is late.
#[test]
fn no_random_set_of_buses_disks_and_streams_is_late() {
    let worlds = std::env::var("SLACKLINE_BUSES").map_or(150, |text| text.parse().unwrap());
    let all = sim::runs::for_seeds(1, worlds, sim::runs::workers(), |seed| {
        let (admitted, requests, late, overruns) = random_machine(seed, true);
        assert_eq!((late, overruns), (0, 0), "seed {seed}: late, overruns of {requests}");
        let (without, _, late_without, overruns_without) = random_machine(seed, false);
        Tally { requests, admitted, without, late_without, overruns_without }
    });
    let sum = |of: fn(&Tally) -> u64| all.iter().map(of).sum::<u64>();
    println!(
        "{worlds} machines: {} streams, {} requests, none late; not counted: {} streams, {} late, \
         {} overruns",
        sum(|one| one.admitted),
        sum(|one| one.requests),
        sum(|one| one.without),
        sum(|one| one.late_without),
        sum(|one| one.overruns_without),
    );
    assert!(sum(|one| one.requests) > worlds * 100);
    // The canary: the same machines break their promises where buses are not counted.
    assert!(sum(|one| one.late_without) > worlds && sum(|one| one.overruns_without) > worlds);
}

/// A burst of each other disk, for each of one's own: what round-robin promises. With the
/// same burst short commands wait less than in the order of commands, and long ones about
/// as long.
#[test]
fn turns_of_bursts_make_short_commands_wait_less() {
    let plan = BusPlan::new("usb", Rate::per_second(40_000_000), 4);
    let commands = BusShare::new(plan.clone()).unwrap();
    let bursts = BusShare::new(BusPlan { order: disk::BusOrder::Bursts, ..plan }).unwrap();
    let (short, long) = (Bytes::kib(4), Bytes::MIB);
    assert_eq!(commands.wait(short), commands.wait(long));
    assert!(bursts.wait(short) * 5 < commands.wait(short));
    assert!(bursts.wait(long) > commands.wait(long));
    assert!(bursts.wait(long) < commands.wait(long) + commands.wait(long) / 10);
}
