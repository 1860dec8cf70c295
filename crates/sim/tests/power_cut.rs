//! The power goes at any moment of a node's life: whatever was acknowledged is
//! there when it comes back.
//!
//! The whole node runs (streams, best effort, volumes, commits) over disks with
//! volatile caches. At its events the disks are copied, cut, recovered, and held
//! against what the programs had been told by then.

use crate::common;
use crate::common::*;
use node::{Error, Op, Placement, Policy, Priority, Region, Reply, Service, Who, WriteRange};
use sim::{Random, Recorder, SimDisk, Tally, Timing, WindowRecorder, pattern, pattern_matches};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use store::{EXTENT, ServiceKind, Store};
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
    /// How it was told to be served, and who said so.
    service: Option<store::Service>,
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
        if !known.changing && volume.service() != known.service {
            return Err(format!("{name} is to be served by {:?}", volume.service()));
        }
        if !known.changing && known.there.is_some_and(|size| volume.size() != size) {
            return Err(format!("{name} has size {:?}", volume.size()));
        }
        let mut bytes = vec![0; EXTENT.as_usize()];
        for extent in 0..volume.extents() {
            let location = store.locate(volume.id(), extent).expect("an extent of the volume");
            let disk = &disks[usize::from(location.disk.0)];
            bytes.fill(0);
            for run in location.written.runs() {
                let part = run.start.as_usize()..run.end.as_usize();
                disk.read(location.offset.unwrap() + run.start, &mut bytes[part]);
            }
            let from = EXTENT * extent;
            // Nothing but its own bytes and zeros, sector by sector.
            for (index, sector) in bytes.chunks(512).enumerate() {
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
    /// Extents moved.
    moved: u64,
    problems: Vec<String>,
}

/// One random history, cut at about one of `every` events. `break_disk` plants a fault.
fn history(seed: u64, every: u64, break_disk: impl Fn(&mut SimDisk)) -> Findings {
    let mut random = Random::new(seed);
    let mut config = config(Policy::SLACK);
    config.commit_interval = Duration::from_millis(500);
    let count = random.between(1, 3) as usize;
    let mut world = world(config, count, Bytes::mib(96), |_, profile, index| {
        Timing::WithinBound(Box::new(profile.clone()), Random::new(seed + index as u64))
    });
    world.disks.iter_mut().for_each(break_disk);
    let ledger: Ledger = Rc::default();
    let findings = Rc::new(RefCell::new(Findings { cuts: 0, moved: 0, problems: Vec::new() }));
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
    let status = world.node.status(world.now());
    let moved = status.disks.iter().map(|disk| disk.moves.moved).sum();
    drop(world);
    findings.borrow_mut().moved = moved;
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
    match random.below(if names.is_empty() { 2 } else { 9 }) {
        0 | 1 => {
            let name = format!("v{step}");
            let size = Bytes::mib(random.between(1, 6));
            let seed = random.bits();
            change(ledger, &name, |known| {
                known.seed = seed;
                known.changing = true;
            });
            let placement = Placement::default();
            let made = world.call(Op::VolumeCreate {
                name: name.clone(),
                size,
                placement,
                access: Default::default(),
            });
            change(ledger, &name, |known| {
                known.there = made.is_ok().then_some(size);
                known.changing = false;
            });
            if made.is_ok() && random.chance(50) {
                let contract =
                    contract(random.between(200_000, 1_000_000), Bytes::kib(256), Bytes::ZERO);
                let length = size - Bytes::new(random.below(100_000));
                let (piece, sync_every) = (Bytes::kib(100), Bytes::kib(700));
                if step.is_multiple_of(2) {
                    let recorder = Recorder::new(&name, seed, contract, piece, length);
                    let recorder = recorder.sync_every(sync_every);
                    change(ledger, &name, |known| known.recording = Some(recorder.tally()));
                    return world.add(recorder);
                }
                // Through a window that it shares; pieces end anywhere in a block.
                let sizes = [Bytes::new(random.between(1, 200_000)), length, sync_every];
                let region = Region(step as u32);
                let recorder = WindowRecorder::new((&name, seed), contract, region, sizes);
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
            let done = world.call(Op::VolumeResize { name: name.clone(), size, may_cut: true });
            change(ledger, &name, |known| {
                known.changing = false;
                known.there = Some(if done.is_ok() { size } else { before });
            });
        }
        3 => {
            let name = random.pick(&names).clone();
            change(ledger, &name, |known| known.changing = true);
            let done = world.call(Op::VolumeDelete {
                name: name.clone(),
                only: None,
                keep_directory: false,
            });
            change(ledger, &name, |known| {
                known.changing = false;
                if done.is_ok() {
                    known.service = None;
                    known.there = None;
                    known.gone = true;
                }
            });
        }
        4 | 5 => spoil(world, random, &names),
        6 => serve(world, ledger, random, &names),
        _ => write_some(world, ledger, random, &names),
    }
    world.run_for(random.span(Duration::from_millis(800)));
}

/// Says how a volume is served, by a contract or not.
fn serve(world: &mut sim::World, ledger: &Ledger, random: &mut Random, names: &[String]) {
    let (name, uid) = (random.pick(names).clone(), random.below(3) as u32);
    let (len, within, every) = (Bytes::kib(16), Duration::from_secs(2), Duration::from_secs(3));
    let (service, kind) = *random.pick(&[
        (Service::default(), None),
        (
            Service::BestEffort(Priority::Background),
            Some(ServiceKind::BestEffort { priority: store::ServicePriority::Background }),
        ),
        (
            Service::Latency { len, within, every },
            Some(ServiceKind::Latency { len, within, every }),
        ),
    ]);
    change(ledger, &name, |known| known.changing = true);
    let who = Who { is_superuser: true, ..Who::user(uid, uid, []) };
    let done = world.call_as(who, Op::VolumeService { name: name.clone(), service });
    change(ledger, &name, |known| {
        known.changing = false;
        if done.is_ok() {
            known.service = kind.map(|kind| store::Service { given_by: uid, kind });
        }
    });
}

/// A read of some extent fails once: it is suspect from then on, and what it holds is
/// moved as soon as the disk is idle.
fn spoil(world: &mut sim::World, random: &mut Random, names: &[String]) {
    let name = random.pick(names);
    let status = world.node.status(world.now());
    let volume = status.volumes.iter().find(|volume| volume.name == *name).expect("it is there");
    let offset = EXTENT * random.below(volume.size / EXTENT);
    for disk in &mut world.disks {
        disk.faults.push(sim::Fault::ReadError { from: Bytes::ZERO, to: disk.capacity() });
    }
    let _ =
        world.call(Op::Read { volume: name.clone(), offset, len: Bytes::kib(64), priority: None });
    for disk in &mut world.disks {
        disk.faults.pop();
    }
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
            let span = match world.call(Op::Room { len, target: None }) {
                Ok(Reply::Room { room: span }) => span,
                other => panic!("{other:?}"),
            };
            pattern(seed, at, world.bytes_mut(span));
            match world.call(Op::Write {
                volume: name.clone(),
                range: WriteRange::new(at, span.len),
                span,
                priority: None,
            }) {
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

/// Histories from which on so many extents have to be moved on average: in a few, none may be.
const ENOUGH: u64 = 50;

#[test]
fn whatever_was_acknowledged_survives_a_power_cut_at_any_event() {
    let histories = match std::env::var("SLACKLINE_HISTORIES") {
        Ok(number) => number.parse().expect("SLACKLINE_HISTORIES is a number"),
        Err(_) => 60,
    };
    let (mut cuts, mut moved, mut problems) = (0, 0, Vec::new());
    for seed in 0..histories {
        let findings = history(seed, 8, |_| {});
        cuts += findings.cuts;
        moved += findings.moved;
        problems.extend(findings.problems);
    }
    assert!(problems.is_empty(), "{} problems, the first: {}", problems.len(), problems[0]);
    assert!(cuts > 10 * histories, "only {cuts} cuts in {histories} histories");
    if histories >= ENOUGH {
        assert!(moved >= histories / 4, "only {moved} extents moved in {histories} histories");
    }
    eprintln!("{histories} histories, {cuts} power cuts, {moved} extents moved");
}

/// How many cuts there were, and what was lost in them.
type Cuts = Rc<RefCell<(u64, Vec<String>)>>;

/// From now on the power is cut at every event of this world, and what comes back is held
/// against the ledger.
fn cut_at_every_event(world: &mut sim::World, ledger: &Ledger, seed: u64) -> Cuts {
    let found = Cuts::default();
    let (seen, known) = (found.clone(), ledger.clone());
    let mut dice = Random::new(seed ^ 0xd1ce);
    world.watch = Some(Box::new(move |disks| {
        let mut disks: Vec<SimDisk> =
            disks.iter().map(|disk| disk.clone().cut(&mut dice)).collect();
        let mut seen = seen.borrow_mut();
        seen.0 += 1;
        let verdict = sim::open(&mut disks)
            .map_err(|error| format!("does not open: {error}"))
            .and_then(|store| judge(&store, &disks, &known.borrow()));
        seen.1.extend(verdict.err());
    }));
    found
}

/// Nothing was lost in any cut of a world that is gone; how many there were.
fn nothing_was_lost(found: Cuts, seed: u64) -> u64 {
    let (cuts, problems) = Rc::into_inner(found).expect("the world is gone").into_inner();
    assert!(problems.is_empty(), "seed {seed}: {} problems: {}", problems.len(), problems[0]);
    cuts
}

/// A program records through a window that it shares, syncs now and then, and the power is
/// cut at every event of that: what a sync or the durable offset told is there.
#[test]
fn a_recording_through_a_window_that_is_cut_anywhere_loses_nothing_that_was_told() {
    let mut cuts = 0;
    for seed in 0..3 {
        let mut config = config(Policy::SLACK);
        config.commit_interval = Duration::from_millis(500);
        let mut world = world(config, 1 + seed as usize % 2, Bytes::mib(96), |_, profile, _| {
            Timing::WithinBound(Box::new(profile.clone()), Random::new(seed))
        });
        let ledger: Ledger = Rc::default();
        let size = Bytes::mib(6);
        common::create(&mut world, "v", size);
        let contract = contract(400_000, Bytes::kib(128 << seed), Bytes::ZERO);
        let sizes = [Bytes::new(50_021), size - Bytes::new(12_345), Bytes::kib(300)];
        let recorder = WindowRecorder::new(("v", 7), contract, Region(1), sizes);
        change(&ledger, "v", |known| {
            known.seed = 7;
            known.there = Some(size);
            known.recording = Some(recorder.tally());
        });
        let tally = recorder.tally();
        let found = cut_at_every_event(&mut world, &ledger, seed);
        world.add(recorder);
        world.run_for(Duration::from_secs(25));
        assert_eq!(tally.borrow().error, None, "seed {seed}");
        let durable = tally.borrow().durable;
        assert_eq!(durable, size - Bytes::new(12_345), "seed {seed}: all of it, in the end");
        drop(world);
        cuts += nothing_was_lost(found, seed);
    }
    assert!(cuts > 600, "only {cuts} cuts");
    eprintln!("{cuts} power cuts");
}

/// A recording in blocks of 4 MiB, of which the first lies in three runs on a single disk; over two
/// disks in runs. By the socket and through a window, and the power is cut at every event.
#[test]
fn a_recording_in_long_blocks_that_is_cut_anywhere_loses_nothing_that_was_told() {
    let mut cuts = 0;
    for seed in 0..4 {
        let mut config = config(Policy::SLACK);
        config.commit_interval = Duration::from_secs(2);
        let disks = 1 + seed as usize % 2;
        let mut world = world(config, disks, Bytes::mib(96), |_, profile, _| {
            Timing::WithinBound(Box::new(profile.clone()), Random::new(seed))
        });
        let ledger: Ledger = Rc::default();
        let size = Bytes::mib(11);
        let holes = if disks == 1 { 3 } else { 0 };
        for hole in 0..holes {
            common::create(&mut world, &format!("hole{hole}"), Bytes::mib(2 + hole));
            common::create(&mut world, &format!("between{hole}"), Bytes::MIB);
        }
        if holes > 0 {
            let rest = world.node.status(world.now()).disks[0].free - Bytes::mib(2);
            common::create(&mut world, "rest", rest);
        }
        for hole in 0..holes {
            let name = format!("hole{hole}");
            assert_eq!(
                world.call(Op::VolumeDelete { name, only: None, keep_directory: false }),
                Ok(Reply::Done)
            );
        }
        let placement = Placement { run: Bytes::mib(4), ..Placement::default() };
        let (name, access) = (String::from("v"), Default::default());
        let made = world.call(Op::VolumeCreate { name, size, placement, access });
        assert!(matches!(made, Ok(Reply::Made { .. })));
        let stretches = world.node.volume("v").unwrap().stretches;
        assert_eq!(stretches.count, if disks == 1 { 4 } else { 2 }, "{stretches:?}");
        let contract = contract(2_000_000, Bytes::mib(4), Bytes::ZERO);
        let (piece, length, sync_every) =
            (Bytes::new(250_021), size - Bytes::new(12_345), Bytes::kib(3_300));
        let by_socket = seed < 2;
        let tally;
        let recorder: Box<dyn FnOnce(&mut sim::World)> = if by_socket {
            let recorder = Recorder::new("v", 7, contract, piece, length).sync_every(sync_every);
            tally = recorder.tally();
            Box::new(|world| world.add(recorder))
        } else {
            let sizes = [piece, length, sync_every];
            let recorder = WindowRecorder::new(("v", 7), contract, Region(1), sizes);
            tally = recorder.tally();
            Box::new(|world| world.add(recorder))
        };
        change(&ledger, "v", |known| {
            known.seed = 7;
            known.there = Some(size);
            known.recording = Some(tally.clone());
        });
        let found = cut_at_every_event(&mut world, &ledger, seed);
        recorder(&mut world);
        world.run_for(Duration::from_secs(25));
        assert_eq!(tally.borrow().error, None, "seed {seed}");
        let durable = tally.borrow().durable;
        assert_eq!(durable, length, "seed {seed}: all of it, in the end");
        assert_eq!(common::late(&world), 0, "seed {seed}");
        drop(world);
        cuts += nothing_was_lost(found, seed);
    }
    assert!(cuts > 100, "only {cuts} cuts");
    eprintln!("{cuts} power cuts");
}

/// One extent after the other is moved, beside a recording, and the power is cut at every
/// event of that.
#[test]
fn a_move_that_is_cut_anywhere_loses_nothing() {
    let mut cuts = 0;
    for seed in 0..2 {
        let mut config = config(Policy::SLACK);
        config.commit_interval = Duration::from_millis(500);
        let mut world = world(config, 1 + seed as usize % 2, Bytes::mib(96), |_, profile, _| {
            Timing::WithinBound(Box::new(profile.clone()), Random::new(seed))
        });
        let mut random = Random::new(seed);
        let ledger: Ledger = Rc::default();
        let size = Bytes::mib(3);
        common::create(&mut world, "v", size);
        common::fill(&mut world, "v", 7, size);
        change(&ledger, "v", |known| {
            known.seed = 7;
            known.there = Some(size);
            known.synced = (0..3).collect();
        });
        let found = cut_at_every_event(&mut world, &ledger, seed);
        for _ in 0..3 {
            spoil(&mut world, &mut random, &["v".into()]);
            world.run_for(Duration::from_secs(6));
        }
        let status = world.node.status(world.now());
        let moved: u64 = status.disks.iter().map(|disk| disk.moves.moved).sum();
        assert!(moved >= 2, "seed {seed}: {moved} moved: {:?}", status.disks[0].moves);
        drop(world);
        cuts += nothing_was_lost(found, seed);
    }
    assert!(cuts > 200, "only {cuts} cuts");
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
