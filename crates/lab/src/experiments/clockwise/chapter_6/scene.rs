//! The array of section 6.5: three Atlas-IIs with streams, and the file systems of a
//! traced machine laid out over all of them.

use super::atlas;
use super::load::{Load, Order, STREAM_EXTENTS, extents, longest};
use super::streams::{DISKS, Layout, Track, pair};
use sched::{Options, PolicyKind, Refusal, Task};
use sim::Random;
use sim::machine::{
    DiskSetup, LoadIndex, Machine, Pace, Places, PlayPlan, Setup, StreamIndex, StreamPlan, Target,
};
use std::ops::Range;
use units::{Bytes, Direction, Duration, Lba, Rate};

/// As many tracks find a place each on one disk.
const PLACES: u64 = 64;
/// How long after its last request a load is still waited for.
const PATIENCE: u64 = 600;

/// When streams release their first requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phases {
    /// At any time of their period.
    Random,
    /// All at once.
    Equal,
}

/// What is simulated.
#[derive(Clone)]
pub(super) struct Scene<'a> {
    pub layout: Layout,
    pub order: Order,
    pub phases: Phases,
    pub policy: PolicyKind,
    /// Pairs of video and sound.
    pub pairs: u64,
    pub seed: u64,
    pub load: &'a Load,
    /// For each file system, the contract that it holds on each disk: budget and period.
    pub contracts: &'a [Option<(Duration, Duration)>],
    /// A stream of 1 MB/s in blocks of 1 MB over all disks that asks so many percent as
    /// fast as it may.
    pub greedy: Option<u64>,
    /// What a block of a stream is planned to take; the bound of the profile where nothing
    /// is said.
    pub planned: Option<fn(Bytes) -> Duration>,
}

/// The array at work.
pub(super) struct Array {
    pub machine: Machine,
    /// By pair, video and sound.
    pub streams: Vec<StreamIndex>,
    pub greedy: Option<StreamIndex>,
    pub systems: Vec<LoadIndex>,
    span: Duration,
    requests: u64,
}

impl<'a> Scene<'a> {
    /// Rotation, in groups, without contracts for file systems.
    pub fn new(load: &'a Load, policy: PolicyKind, pairs: u64, seed: u64) -> Self {
        Self {
            layout: Layout::Rotation,
            order: Order::Grouped,
            phases: Phases::Random,
            policy,
            pairs,
            seed,
            load,
            contracts: &[],
            greedy: None,
            planned: None,
        }
    }

    /// The array with all of it.
    ///
    /// # Errors
    /// [`Refusal`] where a disk cannot take some contract.
    pub fn array(&self) -> Result<Array, Refusal> {
        let options = Options { reserve: reserve(), ..Options::default() };
        let model = atlas::model().with_seed(self.seed);
        let disk = DiskSetup::new(model, self.policy, options);
        let mut machine = Machine::new(Setup::alike(&disk, DISKS as u32, self.seed));
        let mut random = Random::new(self.seed ^ 0x5eed);
        let mut systems = Vec::new();
        for (system, demands) in self.load.systems.iter().enumerate() {
            let contract = self.contracts.get(system).copied().flatten().map(server);
            let target = |disk| Target {
                contract,
                ..Target::new(disk, Lba::new(0)..Lba::containing(atlas::model().capacity()))
            };
            systems.push(machine.play(PlayPlan {
                source: Box::new(demands.clone().into_iter()),
                targets: (0..DISKS as u32).map(target).collect(),
                speed_percent: 100,
            })?);
        }
        let mut streams = Vec::new();
        for number in 0..self.pairs {
            for track in pair(number) {
                let plan = self.stream(number, &track, streams.len() as u64, &mut random);
                streams.push(machine.join(plan)?);
            }
        }
        let greedy = self.greedy.map(|percent| machine.join(greedy(percent))).transpose()?;
        let requests = self.load.requests() as u64;
        Ok(Array { machine, streams, greedy, systems, span: self.load.span, requests })
    }

    fn stream(&self, pair: u64, track: &Track, number: u64, random: &mut Random) -> StreamPlan {
        let rate = Rate::per_second(track.kib_s * 1024);
        let large = if self.layout == Layout::OneDiskLarge { 2 } else { 1 };
        let block = Bytes::kib(track.block_kib * large);
        let disks: Vec<u32> = match self.layout {
            Layout::Rotation => (0..DISKS as u32).collect(),
            _ if pair.is_multiple_of(2) => vec![2],
            _ => vec![(pair / 2 % 2) as u32],
        };
        // Rotation visits each disk in turn; which one first is any.
        let round = rate.time_for(block) * disks.len() as u64;
        let phase = random.span(round);
        let phase = if self.phases == Phases::Equal { Duration::ZERO } else { phase };
        let cost = self.planned.map(|planned| planned(block));
        StreamPlan { cost, ..plan(disks, rate, block, self.places(number), phase) }
    }

    fn places(&self, number: u64) -> Places {
        match self.order {
            Order::Grouped => Places::Sequential(stream_range(number)),
            Order::Random => Places::Random(Lba::new(0)..Lba::new(extents() * 2048)),
        }
    }
}

fn plan(disks: Vec<u32>, rate: Rate, block: Bytes, places: Places, phase: Duration) -> StreamPlan {
    StreamPlan {
        disks,
        rate,
        block,
        deadline: None,
        cost: None,
        direction: Direction::Read,
        places,
        pace: Pace::Steady,
        phase,
        patience: Duration::ZERO,
    }
}

/// Section 6.5.5: asks for more than its contract.
fn greedy(percent: u64) -> StreamPlan {
    let disks = (0..DISKS as u32).collect();
    let rate = Rate::per_second(Bytes::MIB.get());
    let places = Places::Sequential(stream_range(PLACES - 1));
    let pace = Pace::Hasty(percent);
    StreamPlan { pace, ..plan(disks, rate, Bytes::MIB, places, Duration::ZERO) }
}

/// A file system's contract as a task of each disk.
fn server((budget, period): (Duration, Duration)) -> Task {
    Task::new(period, period, budget).in_commands(reserve())
}

impl Array {
    /// Lets time pass until every request of the load is answered, or nobody has
    /// answered some for a long time.
    pub fn run(&mut self) {
        self.machine.run_for(self.span);
        for _ in 0..PATIENCE {
            if self.unanswered() == 0 {
                return;
            }
            self.machine.run_for(Duration::from_secs(1));
        }
    }

    /// Requests of the load that nobody has answered, or that were not made since too
    /// many were not.
    pub fn unanswered(&self) -> u64 {
        let answered = |&index: &LoadIndex| self.machine.load_results(index).latencies.count();
        self.requests - self.systems.iter().map(answered).sum::<u64>()
    }
}

/// The most pairs that every disk takes beside file systems.
pub(super) fn pairs_max(layout: Layout, order: Order) -> u64 {
    pairs_max_of(layout, order, None)
}

/// The same where blocks are planned otherwise.
pub(super) fn pairs_max_of(
    layout: Layout,
    order: Order,
    planned: Option<fn(Bytes) -> Duration>,
) -> u64 {
    let load = Load { systems: Vec::new(), span: Duration::ZERO };
    let fits = |pairs: &u64| {
        let scene = Scene::new(&load, PolicyKind::SLACK, *pairs, 0);
        Scene { layout, order, planned, ..scene }.array().is_ok()
    };
    (1..).take_while(fits).last().unwrap_or(0)
}

/// What admission leaves: the longest request of a file system.
fn reserve() -> Duration {
    let profile = atlas::profile();
    let worst = |direction| profile.worst(atlas::all(), longest(), direction);
    worst(Direction::Read).max(worst(Direction::Write))
}

/// Where a track lies on its disks.
fn stream_range(number: u64) -> Range<Lba> {
    let sectors = STREAM_EXTENTS / PLACES * 2048;
    let start = number % PLACES * sectors;
    Lba::new(start)..Lba::new(start + sectors)
}

/// The load of so many pairs on the disk that has most of it, in percent of what the
/// bounds allow.
pub(super) fn promised(layout: Layout, order: Order, pairs: u64) -> f64 {
    let load = Load { systems: Vec::new(), span: Duration::ZERO };
    let scene = Scene { layout, order, ..Scene::new(&load, PolicyKind::SLACK, pairs, 0) };
    let Ok(array) = scene.array() else { return f64::NAN };
    let of = |disk| array.machine.schedule(disk).tasks().utilisation().ppm();
    let most = (0..DISKS as u32).map(of).max().expect("some disk");
    most as f64 / 10_000.0
}
