//! What comes of a machine, as a digest of every figure: whoever makes it quicker must
//! not change it. A digest changes with the models and with the policies, and then this
//! test has to be told; it prints the new ones.

use disk::Model;
use sched::{Options, PolicyKind};
use sim::machine::{
    Arrivals, DiskSetup, Latencies, LoadPlan, Machine, Pace, Places, Setup, StreamPlan,
};
use units::{Bytes, Direction, Duration, Lba, Rate};

/// Fowler, Noll and Vo's hash, 64 bits.
struct Digest(u64);

impl Digest {
    fn add(&mut self, number: u64) {
        for byte in number.to_le_bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    fn latencies(&mut self, latencies: &Latencies) {
        self.add(latencies.count());
        self.add(latencies.mean().as_nanos());
        self.add(latencies.longest().as_nanos());
        self.add(latencies.bytes.get());
        for per_mille in [10, 100, 500, 900, 999] {
            self.add(latencies.percentile(per_mille).as_nanos());
        }
    }
}

fn run(model: &str, cache: bool, policy: PolicyKind, variant: u64) -> u64 {
    let model = Model::named(model).unwrap();
    let end = Lba::containing(model.capacity());
    let third = Lba::new(end.get() / 3);
    let reserve = Duration::from_millis(60);
    let options = Options { reserve, ..Options::default() };
    let disk = DiskSetup { cache, ..DiskSetup::new(model, policy, options) };
    let mut world = Machine::new(Setup { disks: vec![disk], seed: variant });
    let paces =
        [Pace::Steady, Pace::Jitter(Duration::from_millis(70)), Pace::Variable(30), Pace::Eager(3)];
    let mut streams = Vec::new();
    for at in 0..20u64 {
        let places = match at % 3 {
            0 => Places::Sequential(Lba::new(0)..third),
            1 => Places::Random(Lba::new(0)..third),
            _ => Places::Random(third..end),
        };
        let plan = StreamPlan {
            disks: vec![0],
            cost: None,
            rate: Rate::per_second(70_000 + 11_000 * at),
            block: Bytes::kib(64 << (at % 3)),
            deadline: (at % 5 == 4).then(|| Duration::from_millis(380)),
            direction: if at % 4 == 3 { Direction::Write } else { Direction::Read },
            places,
            pace: paces[(at + variant) as usize % 4],
            phase: Duration::from_millis(37 * at),
            patience: if at % 2 == 0 { Duration::MAX } else { Duration::ZERO },
        };
        if let Ok(stream) = world.join(plan) {
            streams.push(stream);
        }
    }
    let load = |arrivals, size, direction, places, synchronous| LoadPlan {
        disk: 0,
        arrivals,
        size,
        direction,
        places,
        synchronous,
    };
    let all = || Places::Random(Lba::new(0)..end);
    let (read, write) = (Direction::Read, Direction::Write);
    let apart = Duration::from_millis(400);
    world.load(load(Arrivals::Bursts { apart, most: 15 }, Bytes::kib(8), read, all(), true));
    let apart = Duration::from_millis(90);
    world.load(load(Arrivals::Poisson(apart), Bytes::kib(4), write, all(), false));
    match variant % 3 {
        0 => {}
        1 => {
            let places = Places::Sequential(third..end);
            world.load(load(Arrivals::Greedy(4), Bytes::kib(64), read, places, false));
        }
        _ => {
            world.load(load(Arrivals::Adversary(2), Bytes::KIB, read, all(), true));
        }
    }
    let mut digest = Digest(0xcbf2_9ce4_8422_2325);
    digest.add(streams.len() as u64);
    for round in 0..3 {
        world.run_for(Duration::from_secs(20));
        let results = world.results();
        digest.latencies(&results.real_time);
        digest.latencies(&results.synchronous);
        digest.latencies(&results.asynchronous);
        for number in [results.late, results.overruns, results.skipped] {
            digest.add(number);
        }
        digest.add(results.late_max.as_nanos());
        digest.add(results.busy.as_nanos());
        if round == 0 {
            world.forget();
            if let Some(stream) = streams.pop() {
                world.leave(stream);
            }
        }
    }
    digest.0
}

/// Model, whether it has its cache, policy, variant, digest.
const EXPECTED: &[(&str, bool, PolicyKind, u64, u64)] = &[
    ("quantum-atlas-ii", false, PolicyKind::SLACK, 0, 0x886e_0ace_eae4_04f6),
    ("quantum-atlas-ii", false, PolicyKind::SLACK, 1, 0x8557_9c0e_025f_8b2d),
    ("quantum-atlas-ii", false, PolicyKind::SLACK, 2, 0xcbb2_19ac_9622_6a76),
    ("quantum-atlas-ii", true, PolicyKind::DELTA_L, 1, 0x6132_bd89_284a_f03b),
    ("seagate-st318437lw", true, PolicyKind::SLACK, 1, 0xbff9_8607_0b35_4a79),
    ("hdd-7200-20tb", false, policies::LST, 2, 0x8cc1_f722_3edb_e50e),
    ("seagate-cheetah", true, PolicyKind::EDF, 0, 0xa367_9a60_0dc8_03ee),
    ("ssd-sata", false, PolicyKind::SLACK, 1, 0x90b0_ec09_c186_2634),
];

#[test]
fn no_figure_has_changed() {
    let found = |&(model, cache, policy, variant, expected): &_| {
        let found = run(model, cache, policy, variant);
        let text = format!("{model}, cache {cache}, {policy}, {variant}: {found:#018x}");
        (found != expected).then_some(text)
    };
    let changed: Vec<String> = EXPECTED.iter().filter_map(found).collect();
    assert!(changed.is_empty(), "{changed:#?}");
}
