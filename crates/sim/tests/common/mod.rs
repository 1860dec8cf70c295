//! What the tests of the virtual world share: pools to start from.

use disk::{HardDisk, Model, Profile};
use node::{Config, Contract, DiskSetup, Node, Op, Placement, Policy, Reply, WriteRange};
use sim::{Keeps, Player, Random, Shared, SimDisk, Timing, World, pattern};
use units::{Bytes, Duration, Rate};

pub const MEMORY: Bytes = Bytes::mib(96);

pub fn config(policy: Policy) -> Config {
    Config {
        policy,
        admission: policy != policies::FCFS,
        memory: MEMORY,
        host_latency: Duration::ZERO,
        commit_interval: Duration::from_secs(2),
        remeasure: true,
    }
}

pub fn model(capacity: Bytes) -> Model {
    Model::named("laptop-4200").unwrap().scaled(capacity).unwrap()
}

/// A world with freshly formatted disks that take the time `timing` says.
pub fn world(
    config: Config,
    disks: usize,
    capacity: Bytes,
    timing: impl Fn(&Model, &Profile, usize) -> Timing,
) -> World {
    world_keeping(config, disks, capacity, timing)
}

/// The same, with disks that keep what their type says.
pub fn world_keeping<K: Keeps>(
    config: Config,
    disks: usize,
    capacity: Bytes,
    timing: impl Fn(&Model, &Profile, usize) -> Timing,
) -> World<K> {
    let model = model(capacity);
    world_of(config, disks, (&model, Profile::of(&model)), timing)
}

/// A world with disks of one model, which the node knows by this profile.
pub fn world_of<K: Keeps>(
    config: Config,
    disks: usize,
    (model, profile): (&Model, Profile),
    timing: impl Fn(&Model, &Profile, usize) -> Timing,
) -> World<K> {
    let disks = (0..disks)
        .map(|index| SimDisk::keeping(profile.capacity(), timing(model, &profile, index)))
        .collect();
    let mut disks: Vec<SimDisk<K>> = disks;
    sim::format(&mut disks, "test", &profile, 1).unwrap();
    start(config, disks, &profile)
}

/// A node over disks that hold a pool already.
pub fn start<K: Keeps>(config: Config, mut disks: Vec<SimDisk<K>>, profile: &Profile) -> World<K> {
    let store = sim::open(&mut disks).unwrap();
    let setups = disks.iter().map(|_| DiskSetup::new(profile.clone())).collect();
    let node = Node::new(config, setups, store).unwrap();
    World::new(node, disks, config.memory)
}

pub fn drive(model: &Model, _: &Profile, _: usize) -> Timing {
    Timing::Drive(Box::new(HardDisk::new(model)))
}

/// Each command takes as long as it ever may.
pub fn at_bound(_: &Model, profile: &Profile, _: usize) -> Timing {
    Timing::Percent(Box::new(profile.clone()), 100)
}

/// Each command takes a random share of that.
pub fn within_bound(_: &Model, profile: &Profile, _: usize) -> Timing {
    Timing::WithinBound(Box::new(profile.clone()), Random::new(5))
}

pub fn create<K: Keeps>(world: &mut World<K>, name: &str, size: Bytes) {
    create_in(world, name, size, Placement::default());
}

pub fn create_in<K: Keeps>(world: &mut World<K>, name: &str, size: Bytes, placement: Placement) {
    let (name, access) = (name.into(), Default::default());
    let op = Op::VolumeCreate { name, size, placement, access };
    let made = world.call(op);
    assert!(matches!(made, Ok(Reply::Made { .. })), "{made:?}");
}

/// Writes the pattern of `seed` over a volume, as best effort; in a world without bytes all of
/// it counts as written.
pub fn fill<K: Keeps>(world: &mut World<K>, name: &str, seed: u64, size: Bytes) {
    let mut offset = Bytes::ZERO;
    while offset < size {
        let len = Bytes::MIB.min(size - offset);
        write(world, name, seed, (offset, len));
        offset += len;
    }
    assert_eq!(world.call(Op::Sync), Ok(Reply::Done));
}

/// Writes a piece of that.
pub fn write<K: Keeps>(world: &mut World<K>, name: &str, seed: u64, (offset, len): (Bytes, Bytes)) {
    let Ok(Reply::Room { room: span }) = world.call(Op::Room { len, target: None }) else {
        panic!("no room")
    };
    if let Some(bytes) = world.place(&span) {
        pattern(seed, offset, bytes);
    }
    let range = WriteRange::new(offset, span.len);
    let op = Op::Write { volume: name.into(), range, span, priority: None };
    assert_eq!(world.call(op), Ok(Reply::Done));
}

pub fn contract(rate: u64, block: Bytes, burst: Bytes) -> Contract {
    Contract { rate: Rate::per_second(rate), block, burst }
}

pub fn random_contract(random: &mut Random) -> Contract {
    let block = Bytes::kib(64) * (1 << random.below(5));
    contract(random.between(100_000, 3_000_000), block, block * random.below(3))
}

/// Players come so far apart until one is refused, and no more than so many: those that play.
pub fn play_while_admitted<K: Keeps + 'static>(
    world: &mut World<K>,
    most: u64,
    apart: Duration,
    player: impl Fn(u64) -> Player,
) -> Vec<Shared> {
    let mut players = Vec::new();
    for number in 0..most {
        let player = player(number);
        let tally = player.tally();
        world.add(player);
        world.run_for(apart);
        if tally.borrow().error.is_some() {
            break;
        }
        players.push(tally);
    }
    players
}

pub fn late<K: Keeps>(world: &World<K>) -> u64 {
    world.node.status(world.now()).disks.iter().map(|disk| disk.account.late_requests).sum()
}
