//! The power goes at any moment of a node's life: whatever was acknowledged is
//! there when it comes back.
//!
//! The whole node runs (streams, best effort, volumes, commits) over disks with
//! volatile caches. At its events the disks are copied, cut, recovered, and held
//! against what the programs had been told by then.

mod common;

use common::*;
use node::{Error, Op, Placement, Policy, Reply};
use sim::{Random, Recorder, SimDisk, Tally, Timing, pattern, pattern_matches};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use store::{EXTENT, Store};
use units::{Bytes, Duration};

/// What is known of a volume.
#[derive(Default)]
struct Known {
    seed: u64,
    /// Acknowledged as there, with at least this size.
    there: Option<Bytes>,
    /// Acknowledged as gone.
    gone: bool,
    /// A change is under way: either outcome will do.
    changing: bool,
    /// Best-effort writes that a sync has acknowledged: extents.
    synced: Vec<u64>,
    recording: Option<Rc<RefCell<Tally>>>,
}

type Ledger = Rc<RefCell<BTreeMap<String, Known>>>;

/// The first thing that is not as it was acknowledged.
fn judge(store: &Store, disks: &[SimDisk], ledger: &BTreeMap<String, Known>) -> Result<(), String> {
    for (name, known) in ledger {
        let found = store.find(name);
        let Some(volume) = found else {
            if known.there.is_some() && !known.changing {
                return Err(format!("{name} is lost"));
            }
            continue;
        };
        if known.gone && !known.changing {
            return Err(format!("{name} is back"));
        }
        if !known.changing && known.there.is_some_and(|size| volume.size() != size) {
            return Err(format!("{name} has size {:?}", volume.size()));
        }
        let mut bytes = vec![0; EXTENT.as_usize()];
        for extent in 0..volume.extents() {
            let location = store.locate(volume.id(), extent).expect("an extent of the volume");
            let disk = &disks[usize::from(location.disk.0)];
            bytes.fill(0);
            let written = location.written.as_usize();
            disk.read(location.offset, &mut bytes[..written]);
            let from = EXTENT * extent;
            // Nothing but its own bytes and zeros, sector by sector.
            for (index, sector) in bytes[..written].chunks(512).enumerate() {
                let at = from + Bytes::new(512 * index as u64);
                if sector.iter().any(|&byte| byte != 0) && !pattern_matches(known.seed, at, sector)
                {
                    // The end of a recording is padded with zeros inside a sector.
                    if !padded(known.seed, at, sector) {
                        return Err(format!("{name} shows foreign bytes at {at:?}"));
                    }
                }
            }
            if known.synced.contains(&extent) && !pattern_matches(known.seed, from, &bytes) {
                return Err(format!("{name} lost extent {extent}"));
            }
            if let Some(tally) = &known.recording {
                let durable = tally.borrow().durable;
                if durable > volume.length() {
                    return Err(format!(
                        "{name}: {durable:?} acknowledged, {:?} there",
                        volume.length()
                    ));
                }
                let upto = durable.saturating_sub(from).min(EXTENT).as_usize();
                if !pattern_matches(known.seed, from, &bytes[..upto]) {
                    return Err(format!("{name} lost acknowledged bytes of extent {extent}"));
                }
            }
        }
    }
    Ok(())
}

fn padded(seed: u64, at: Bytes, sector: &[u8]) -> bool {
    let end = sector.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    pattern_matches(seed, at, &sector[..end])
}

struct Findings {
    cuts: u64,
    problems: Vec<String>,
}

/// One random history, cut at about one of `every` events. `break_disk` plants a fault.
fn history(seed: u64, every: u64, break_disk: impl Fn(&mut SimDisk)) -> Findings {
    let mut random = Random::new(seed);
    let mut config = config(Policy::Slack);
    config.commit_interval = Duration::from_millis(500);
    let count = random.between(1, 3) as usize;
    let mut world = world(config, count, Bytes::mib(96), |_, profile, index| {
        Timing::WithinBound(Box::new(profile.clone()), Random::new(seed + index as u64))
    });
    world.disks.iter_mut().for_each(break_disk);
    let ledger: Ledger = Rc::default();
    let findings = Rc::new(RefCell::new(Findings { cuts: 0, problems: Vec::new() }));
    let (seen, known) = (findings.clone(), ledger.clone());
    let mut dice = Random::new(seed ^ 0xd1ce);
    world.watch = Some(Box::new(move |disks| {
        if dice.below(every) != 0 {
            return;
        }
        let mut disks: Vec<SimDisk> =
            disks.iter().map(|disk| disk.clone().cut(&mut dice)).collect();
        let mut seen = seen.borrow_mut();
        seen.cuts += 1;
        let verdict = sim::open(&mut disks)
            .map_err(|error| format!("does not open: {error}"))
            .and_then(|store| judge(&store, &disks, &known.borrow()));
        seen.problems.extend(verdict.err().map(|problem| format!("seed {seed}: {problem}")));
    }));
    for step in 0..12 {
        act(&mut world, &ledger, &mut random, step);
    }
    drop(world);
    Rc::into_inner(findings).expect("the world is gone").into_inner()
}

fn change(ledger: &Ledger, name: &str, f: impl FnOnce(&mut Known)) {
    f(ledger.borrow_mut().entry(name.into()).or_default());
}

fn act(world: &mut sim::World, ledger: &Ledger, random: &mut Random, step: u64) {
    let names: Vec<String> = ledger
        .borrow()
        .iter()
        .filter(|(_, known)| known.there.is_some() && known.recording.is_none())
        .map(|(name, _)| name.clone())
        .collect();
    match random.below(if names.is_empty() { 2 } else { 6 }) {
        0 | 1 => {
            let name = format!("v{step}");
            let size = Bytes::mib(random.between(1, 6));
            let seed = random.bits();
            change(ledger, &name, |known| {
                known.seed = seed;
                known.changing = true;
            });
            let placement = Placement::default();
            let made = world.call(Op::VolumeCreate { name: name.clone(), size, placement });
            change(ledger, &name, |known| {
                known.there = made.is_ok().then_some(size);
                known.changing = false;
            });
            if made.is_ok() && random.chance(50) {
                let contract =
                    contract(random.between(200_000, 1_000_000), Bytes::kib(256), Bytes::ZERO);
                let length = size - Bytes::new(random.below(100_000));
                let recorder = Recorder::new(&name, seed, contract, Bytes::kib(100), length);
                let recorder = recorder.sync_every(Bytes::kib(700));
                change(ledger, &name, |known| known.recording = Some(recorder.tally()));
                world.add(recorder);
            }
        }
        2 => {
            let name = random.pick(&names).clone();
            let before = ledger.borrow()[&name].there.expect("there");
            let size = Bytes::mib(random.between(1, 8));
            change(ledger, &name, |known| {
                known.changing = true;
                known.synced.retain(|&extent| EXTENT * (extent + 1) <= size);
            });
            let done = world.call(Op::VolumeResize { name: name.clone(), size });
            change(ledger, &name, |known| {
                known.changing = false;
                known.there = Some(if done.is_ok() { size } else { before });
            });
        }
        3 => {
            let name = random.pick(&names).clone();
            change(ledger, &name, |known| known.changing = true);
            let done = world.call(Op::VolumeDelete { name: name.clone() });
            change(ledger, &name, |known| {
                known.changing = false;
                if done.is_ok() {
                    known.there = None;
                    known.gone = true;
                }
            });
        }
        _ => write_some(world, ledger, random, &names),
    }
    world.run_for(random.span(Duration::from_millis(800)));
}

/// Writes whole extents as best effort, and syncs.
fn write_some(world: &mut sim::World, ledger: &Ledger, random: &mut Random, names: &[String]) {
    let name = random.pick(names).clone();
    let (seed, size) = (ledger.borrow()[&name].seed, ledger.borrow()[&name].there.expect("there"));
    let mut extents = Vec::new();
    for _ in 0..random.between(1, 3) {
        let extent = random.below(size / EXTENT);
        let mut at = EXTENT * extent;
        for _ in 0..4 {
            let len = Bytes::kib(256);
            let span = match world.call(Op::Room { len }) {
                Ok(Reply::Room { span }) => span,
                other => panic!("{other:?}"),
            };
            pattern(seed, at, world.bytes_mut(span));
            match world.call(Op::Write { volume: name.clone(), offset: at, span }) {
                Ok(_) => {}
                Err(Error::BeyondEnd { .. }) => return,
                Err(error) => panic!("{error}"),
            }
            at += len;
        }
        extents.push(extent);
    }
    if world.call(Op::Sync).is_ok() {
        change(ledger, &name, |known| known.synced.extend(extents));
    }
}

#[test]
fn whatever_was_acknowledged_survives_a_power_cut_at_any_event() {
    let histories = match std::env::var("SLACKLINE_HISTORIES") {
        Ok(number) => number.parse().expect("SLACKLINE_HISTORIES is a number"),
        Err(_) => 60,
    };
    let (mut cuts, mut problems) = (0, Vec::new());
    for seed in 0..histories {
        let findings = history(seed, 8, |_| {});
        cuts += findings.cuts;
        problems.extend(findings.problems);
    }
    assert!(problems.is_empty(), "{} problems, the first: {}", problems.len(), problems[0]);
    assert!(cuts > 10 * histories, "only {cuts} cuts in {histories} histories");
    eprintln!("{histories} histories, {cuts} power cuts");
}

/// The canary: a disk whose flushes do nothing loses what was acknowledged, and
/// the test sees it.
#[test]
fn a_lying_disk_is_caught() {
    let caught = (0..20).any(|seed| {
        let lie = |disk: &mut SimDisk| disk.faults.push(sim::Fault::LyingFlush);
        !history(seed, 8, lie).problems.is_empty()
    });
    assert!(caught, "the test does not notice lost bytes");
}
