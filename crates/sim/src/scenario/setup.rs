//! From a scenario to a world that is about to begin: disks, a pool, volumes with
//! what they hold, and programs.

use super::ledger::{Ledger, Shared};
use super::load::{Ground, Loader};
use super::plan::{Arrivals, DiskPlan, DriveKind, Place, Scenario};
use super::stream::Streamer;
use crate::{Metadata, Random, SimDisk, Timing, World};
use disk::{Bus, Flash, HardDisk, Profile};
use node::{Config, DiskIndex, DiskSetup, Mode, Node, Placement};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;
use store::{EXTENT, Store};
use units::{Bytes, Duration, Instant};

/// A volume whose size is left open has at least this, where there is so much.
const SIZE_MIN: Bytes = Bytes::GIB;
/// A load's volume whose size is left open.
const SIZE_LOAD: Bytes = Bytes::mib(16 << 10);

/// Why a scenario cannot begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetupError {
    /// The program it is about, in the scenario's order, streams first.
    pub class: Option<usize>,
    /// What is wrong.
    pub what: String,
    /// What to do about it.
    pub next_step: String,
}

impl fmt::Display for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.what, self.next_step)
    }
}

impl SetupError {
    fn new(class: Option<usize>, what: impl ToString, next_step: &str) -> Self {
        Self { class, what: what.to_string(), next_step: next_step.into() }
    }
}

/// A volume that there shall be.
struct Wanted<'a> {
    class: usize,
    name: String,
    size: Option<Bytes>,
    /// What it has where its size is left open.
    suits: Bytes,
    placement: &'a Placement,
    /// It holds data from the begin.
    is_full: bool,
}

/// Everything of one run that is about to begin.
pub(super) struct Begin {
    pub world: World<Metadata>,
    pub ledger: Shared,
}

/// The name of a volume in the pool; what people call it may have other letters.
fn volume(class: usize, number: u64) -> String {
    format!("c{class}-{number}")
}

/// How the node is set up.
fn config(scenario: &Scenario) -> Config {
    Config {
        policy: scenario.policy,
        admission: scenario.admission,
        memory: scenario.memory,
        host_latency: Duration::ZERO,
        commit_interval: scenario.commit_interval,
        remeasure: true,
    }
}

/// A node over what the disks hold.
pub(super) fn node(scenario: &Scenario, disks: &mut [SimDisk<Metadata>]) -> Result<Node, String> {
    let store = crate::open(disks).map_err(|error| error.to_string())?;
    with_store(scenario, store).map_err(|error| error.to_string())
}

fn with_store(scenario: &Scenario, store: Store) -> Result<Node, node::Error> {
    let setups = scenario.profiles().into_iter().map(DiskSetup::new);
    Node::new(config(scenario), setups.collect(), store)
}

/// Makes it all.
pub(super) fn begin(scenario: &Scenario, seed: u64) -> Result<Begin, SetupError> {
    let mut disks = disks(scenario, seed);
    let profile: Profile = scenario.disks[0].what.profile();
    crate::format(&mut disks, "scenario", &profile, 1)
        .map_err(|error| SetupError::new(None, error, "use larger disks, or fewer of them"))?;
    let mut store =
        crate::open(&mut disks).map_err(|error| SetupError::new(None, error, "use other disks"))?;
    let sizes = volumes(scenario, &mut store)?;
    crate::commit(&mut disks, &mut store)
        .map_err(|error| SetupError::new(None, error, "use other disks"))?;
    let node = with_store(scenario, store).map_err(|error| {
        let next = "give it more `memory`, a longer `commit-interval`, or a faster disk";
        SetupError::new(None, error, next)
    })?;
    let ledger: Shared = Rc::new(RefCell::new(Ledger::new(scenario)));
    let mut world = World::new(node, disks, scenario.memory);
    let observer = ledger.clone();
    world.observe = Some(Box::new(move |end| observer.borrow_mut().ended(end)));
    let mut begin = Begin { world, ledger };
    begin.programs(scenario, &sizes, seed)?;
    Ok(begin)
}

fn disks(scenario: &Scenario, seed: u64) -> Vec<SimDisk<Metadata>> {
    let mut buses: BTreeMap<u32, Rc<RefCell<Bus>>> = BTreeMap::new();
    let disks = (0u64..).zip(&scenario.disks).map(|(number, DiskPlan { what, bus })| {
        let seed = Random::new(seed ^ (number << 32)).bits();
        let timing = match what {
            DriveKind::Profile(profile) => Timing::WithinBound(profile.clone(), Random::new(seed)),
            DriveKind::Model(model) if model.is_hard_disk() => {
                let drive = Box::new(HardDisk::new(&model.clone().with_seed(seed)));
                match bus {
                    Some(bus) => Timing::OnBus(drive, buses.entry(*bus).or_default().clone()),
                    None => Timing::Drive(drive),
                }
            }
            DriveKind::Model(model) => {
                Timing::Flash(Box::new(Flash::new(&model.clone().with_seed(seed))))
            }
        };
        SimDisk::metadata_only(what.profile().capacity(), timing)
    });
    disks.collect()
}

/// Makes the volumes; their sizes by name.
fn volumes(scenario: &Scenario, store: &mut Store) -> Result<BTreeMap<String, Bytes>, SetupError> {
    let wanted = wanted(scenario);
    let share = share(&wanted, store);
    let mut sizes = BTreeMap::new();
    for Wanted { class, name, size, suits, placement, is_full } in wanted {
        let open = Bytes::new((u128::from(suits.get()) * u128::from(share) / 1000) as u64);
        let size = size.unwrap_or(open.round_down(EXTENT)).max(EXTENT);
        let next = "give volumes less `size`, let them lie on more disks, or use larger ones";
        let id = store
            .create(&name, size, placement)
            .map_err(|error| SetupError::new(Some(class), error, next))?;
        if is_full {
            // What is thin takes its places when it is written.
            for extent in (0..size.div_ceil(EXTENT)).filter(|_| placement.thin) {
                let placed = store.place(id, extent);
                placed.map_err(|error| SetupError::new(Some(class), error, next))?;
            }
            store.note_length(id, size);
            store.note_full(id);
        }
        sizes.insert(name, size);
    }
    Ok(sizes)
}

fn wanted(scenario: &Scenario) -> Vec<Wanted<'_>> {
    let mut wanted = Vec::new();
    for (class, plan) in scenario.streams.iter().enumerate() {
        let Place::Own { size, placement } = &plan.place else { continue };
        let moved = plan.contract.rate.bytes_in(scenario.whole());
        let suits = (moved + moved / 50 + Bytes::mib(64)).max(SIZE_MIN).round_up(EXTENT);
        for number in 0..plan.count {
            let (name, is_full) = (volume(class, number), plan.mode == Mode::Read);
            wanted.push(Wanted { class, name, size: *size, suits, placement, is_full });
        }
    }
    for (class, plan) in (scenario.streams.len()..).zip(&scenario.loads) {
        let Place::Own { size, placement } = &plan.place else { continue };
        for number in 0..plan.count {
            let (name, suits) = (volume(class, number), SIZE_LOAD);
            wanted.push(Wanted { class, name, size: *size, suits, placement, is_full: true });
        }
    }
    wanted
}

/// Of the sizes that are left open, so much of a thousand fits on every disk, with a
/// tenth left free.
fn share(wanted: &[Wanted<'_>], store: &Store) -> u64 {
    let count = store.disks().len();
    let mut open = vec![0u128; count];
    let mut fixed = vec![0u128; count];
    for volume in wanted {
        let all: Vec<usize> = (0..count).collect();
        let on: Vec<usize> = volume.placement.disks.iter().map(|disk| disk.as_usize()).collect();
        let on = if on.is_empty() { all } else { on };
        let (list, size) = match volume.size {
            Some(size) => (&mut fixed, size),
            None => (&mut open, volume.suits),
        };
        on.iter().filter(|&&disk| disk < count).for_each(|&disk| {
            list[disk] += u128::from(size.get()) / on.len() as u128;
        });
    }
    let shares = (0..count).filter(|&disk| open[disk] > 0).map(|disk| {
        let free = u128::from(store.space_on(DiskIndex(disk as u16)).free.get());
        let left = (free * 9 / 10).saturating_sub(fixed[disk]);
        (left * 1000 / open[disk]) as u64
    });
    shares.min().unwrap_or(1000).min(1000)
}

impl Begin {
    fn programs(
        &mut self,
        scenario: &Scenario,
        sizes: &BTreeMap<String, Bytes>,
        seed: u64,
    ) -> Result<(), SetupError> {
        let mut random = Random::new(seed);
        let end = Instant::EPOCH + scenario.whole();
        let until =
            |stops: Option<Duration>| stops.map_or(end, |stops| (Instant::EPOCH + stops).min(end));
        // Whoever names no time comes after those who stand before him: it is in this
        // order that a plan tries who fits.
        let mut turn = Instant::EPOCH;
        for (class, plan) in scenario.streams.iter().enumerate() {
            let names = names(scenario, class, &plan.place)?;
            let mut own = Instant::EPOCH + plan.starts.unwrap_or_default();
            let opens = if plan.starts.is_some() { &mut own } else { &mut turn };
            for number in 0..plan.count {
                let name = names[number as usize % names.len()].clone();
                let length = sizes[&name];
                let (seed, ledger) = (random.bits(), self.ledger.clone());
                self.ledger.borrow_mut().program(class);
                let closes = until(plan.stops);
                let streamer =
                    Streamer::new(plan, class, name, length, *opens, closes, seed, ledger);
                self.world.add(streamer);
                *opens += random.span(plan.apart);
            }
        }
        for (class, plan) in (scenario.streams.len()..).zip(&scenario.loads) {
            for number in 0..plan.count {
                let names = match &plan.place {
                    Place::Own { .. } => vec![volume(class, number)],
                    Place::Of(_) => names(scenario, class, &plan.place)?,
                };
                let ground = |volume: String| Ground { size: sizes[&volume], volume };
                let grounds: Vec<Ground> = names.into_iter().map(ground).collect();
                let (seed, ledger) = (random.bits(), self.ledger.clone());
                let source = match &plan.arrivals {
                    Arrivals::From(make, _) => {
                        let made = make.source(seed, grounds[0].size);
                        let next = "correct the load";
                        Some(made.map_err(|what| SetupError::new(Some(class), what, next))?)
                    }
                    _ => None,
                };
                self.ledger.borrow_mut().program(class);
                let begins = plan.starts.map_or(turn, |starts| Instant::EPOCH + starts);
                let ends = until(plan.stops);
                let loader = Loader::new(plan, class, grounds, begins, ends, seed, source, ledger);
                self.world.add(loader);
            }
        }
        Ok(())
    }
}

/// The volumes of a class.
fn names(scenario: &Scenario, class: usize, place: &Place) -> Result<Vec<String>, SetupError> {
    let (class, count) = match place {
        Place::Own { .. } => {
            let plans = scenario.streams.len();
            let count = match class.checked_sub(plans) {
                None => scenario.streams[class].count,
                Some(load) => scenario.loads[load].count,
            };
            (class, count)
        }
        Place::Of(name) => {
            let streams = scenario.streams.iter().map(|plan| (&plan.name, plan.count, &plan.place));
            let loads = scenario.loads.iter().map(|plan| (&plan.name, plan.count, &plan.place));
            let mut owners = streams.chain(loads).enumerate();
            let owner = owners.find(|(_, (other, _, place))| {
                *other == name && matches!(place, Place::Own { .. })
            });
            let Some((owner, (_, count, _))) = owner else {
                let what = format!("nobody called \"{name}\" has volumes of its own");
                return Err(SetupError::new(Some(class), what, "name one that has"));
            };
            (owner, count)
        }
    };
    Ok((0..count).map(|number| volume(class, number)).collect())
}
