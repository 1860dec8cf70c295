//! The power is cut at every write and flush of random histories.
//!
//! Unflushed writes are dropped, applied, torn at sectors or at bytes, in any
//! order; recovery is itself cut and done again. See `common/history/mod.rs` for what
//! must hold. `SLACKLINE_HISTORIES` sets how many histories there are.
#![allow(clippy::print_stdout)] // the counts, for whoever runs it with --nocapture

use crate::common;
use crate::common::history::{Counts, Description, Fault, World};
use crate::common::{Cut, Disk, Random, capacities, commit, formatting, new_pool, open, run_until};
use store::{DiskIndex, IoKind, Opening, Placement};
use units::Bytes;

/// Writes, operations and I/O in one history.
const STEPS: u64 = 200;
/// Histories from which on there have to be so many of each kind of event in one on average. In a
/// few, what is rare may not have happened.
const ENOUGH: u64 = 100;

fn histories(default: u64) -> u64 {
    let set = std::env::var("SLACKLINE_HISTORIES").ok();
    set.map_or(default, |n| n.parse().expect("SLACKLINE_HISTORIES is a number"))
}

/// Lives history number `seed`; gives what happened, or what was lost.
fn live(seed: u64, fault: Fault) -> Result<Counts, String> {
    let mut world = World::new(seed, fault);
    let verdict = world.live(STEPS);
    verdict.map_err(|what| format!("history {seed}: {what}"))?;
    Ok(world.counts)
}

#[test]
fn nothing_acknowledged_is_lost_wherever_the_power_is_cut() {
    let histories = histories(110);
    let mut counts = Counts::default();
    for seed in 0..histories {
        counts += live(seed, Fault::None).unwrap_or_else(|what| panic!("{what}"));
    }
    println!("{histories} histories: {counts:?}");
    assert!(counts.cuts > histories, "too few cut points: {counts:?}");
    if histories >= ENOUGH {
        assert!(counts.cuts >= 50 * histories, "too few cut points: {counts:?}");
        assert!(counts.checkpoints >= histories / 2 && counts.reused >= histories, "{counts:?}");
        assert!(counts.moved >= histories, "{counts:?}");
    }
}

/// Thin volumes take their places, at frontiers and otherwise, leave them for others, and give them
/// back; every other pool writes its checkpoints in parts.
#[test]
fn nothing_of_thin_volumes_is_lost_wherever_the_power_is_cut() {
    let asked = histories(110);
    let histories = asked.div_ceil(5);
    let mut counts = Counts::default();
    for seed in 0..histories {
        let mut world = World::thin(seed, Fault::None);
        if seed % 4 > 1 {
            world = world.in_parts(seed);
        }
        world.live(STEPS * 3 / 2).unwrap_or_else(|what| panic!("history {seed}: {what}"));
        counts += world.counts;
    }
    println!("{histories} histories: {counts:?}");
    if asked >= ENOUGH {
        assert!(counts.placed >= 2 * histories && counts.settled >= 2 * histories, "{counts:?}");
        assert!(counts.resettled >= histories && counts.given_back >= histories, "{counts:?}");
        assert!(counts.reused >= histories && counts.parts >= histories / 8, "{counts:?}");
    }
}

/// Checkpoints are written in parts, a part with each commit, and the power is cut at each of
/// them: the log goes over to a checkpoint when all of it is on the medium, and not before.
#[test]
fn nothing_is_lost_wherever_the_power_is_cut_while_a_checkpoint_is_written_in_parts() {
    let asked = histories(110);
    let histories = asked.div_ceil(5);
    let mut counts = Counts::default();
    for seed in 0..histories {
        let mut world = World::new(seed, Fault::None).in_parts(seed);
        world.live(STEPS * 2).unwrap_or_else(|what| panic!("history {seed}: {what}"));
        counts += world.counts;
    }
    println!("{histories} histories: {counts:?}");
    assert!(counts.parts > 0, "{counts:?}");
    if asked >= ENOUGH {
        assert!(counts.parts >= 5 * histories && counts.built >= histories, "{counts:?}");
    }
}

#[test]
fn a_checkpoint_that_the_log_goes_over_to_before_it_is_written_is_caught() {
    let caught = |seed| {
        let mut world = World::new(seed, Fault::LatePart).in_parts(seed);
        world.live(STEPS).err()
    };
    let what = (0..50).find_map(caught).expect("a checkpoint that is not whole is current");
    let shows = ["checkpoint in area", "never promised", "check after recovery", "log record"];
    assert!(shows.iter().any(|text| what.contains(text)), "{what}");
}

/// The profile of a disk is replaced, and the power fails at each write and flush of
/// that, and again while the pool is opened: the pool has the old one or the new one,
/// keeps it, and the new one from when that was acknowledged on.
#[test]
fn a_profile_that_is_replaced_is_the_old_or_the_new_one_wherever_the_power_is_cut() {
    let mut random = Random::new(9);
    let sizes = [Bytes::mib(8), Bytes::mib(9)];
    let made = new_pool(1, &sizes);
    let texts = |disks: &mut [Disk]| -> Vec<Vec<u8>> {
        let store = open(disks).expect("a pool that opens").store;
        store.disks().iter().map(|disk| store.profile(disk.index).to_vec()).collect()
    };
    let mut olds = 0;
    let mut news = 0;
    for limit in 0.. {
        let mut disks = made.clone();
        let mut store = open(&mut disks).unwrap().store;
        let before = store.profile(DiskIndex(1)).to_vec();
        let after = vec![b'#'; 20_000];
        store.set_profile(DiskIndex(1), after.clone()).unwrap();
        assert!(store.dirty() && store.commit().is_some());
        let mut left = limit;
        while left > 0 {
            let Some(io) = store.poll() else { break };
            let result = disks[io.disk.as_usize()].do_io(&io.kind);
            store.done(io.id, result);
            left -= 1;
        }
        let acknowledged = store.committed() > store::CommitId::NONE;
        for how in [Cut::Dropped, Cut::Applied, Cut::Any, Cut::Torn].repeat(10) {
            let cut: Vec<_> = disks.iter().map(|disk| disk.cut(how, &mut random)).collect();
            let mut whole = cut.clone();
            let found = texts(&mut whole);
            assert_eq!(found[0], common::profile(0), "the other disk keeps its own");
            assert!(found[1] == before || found[1] == after, "cut at {limit}, {how:?}");
            assert!(!acknowledged || found[1] == after, "cut at {limit}, {how:?}: lost");
            *(if found[1] == after { &mut news } else { &mut olds }) += 1;
            assert_eq!(texts(&mut whole), found, "opened again");
            assert!(common::check(&whole).worst() <= Some(store::Severity::Note));
            let mut again = cut;
            let mut opening = Opening::new(&capacities(&again));
            run_until(&mut opening, &mut again, 1 + random.below(12));
            let mut again: Vec<_> =
                again.iter().map(|disk| disk.cut(Cut::Any, &mut random)).collect();
            let text = texts(&mut again);
            assert!(text[1] == found[1] || how != Cut::Dropped, "cut at {limit}: {how:?}");
        }
        if acknowledged {
            break;
        }
    }
    assert!(olds > 20 && news > 40, "{olds} {news}");
}

#[test]
fn an_extent_that_is_relocated_before_its_bytes_are_copied_is_caught() {
    let (_, what) = caught(Fault::EarlyMove).expect("bytes that were acknowledged are lost");
    assert!(what.contains("not what was written"), "{what}");
}

#[test]
fn an_extent_that_settles_before_it_is_written_is_caught() {
    let caught = |seed| World::thin(seed, Fault::EarlySettle).live(STEPS).err();
    let what = (0..50).find_map(caught).expect("bytes that were acknowledged are lost");
    assert!(what.contains("not what was written"), "{what}");
}

/// The power fails, or the process dies and leaves the disks' caches as they are,
/// while the pool is opened, and again while it is opened after that, and so on:
/// whatever the depth, the state stays what it was.
#[test]
fn recovery_that_is_cut_again_and_again_changes_nothing() {
    let mut random = Random::new(7);
    for case in 0..20 * histories(150) {
        let sizes = vec![Bytes::mib(8); 1 + (case % 4 / 3) as usize];
        let mut disks = new_pool(1, &sizes);
        let mut store = open(&mut disks).unwrap().store;
        store.create("film", Bytes::mib(2), &Placement::default()).unwrap();
        assert!(commit(&mut store, &mut disks));
        for depth in 1..=5 {
            let mut opening = Opening::new(&capacities(&disks));
            run_until(&mut opening, &mut disks, 1 + random.below(6 * sizes.len() as u64));
            let how = [Cut::Any, Cut::Torn][random.index(2)];
            let cut = disks.iter().map(|disk| disk.cut(how, &mut random)).collect();
            let mut whole: Vec<Disk> = cut;
            if random.once_in(2) {
                disks = whole.clone(); // else the process died, and the power is still on
            }
            let opened = open(&mut whole);
            let opened = opened.unwrap_or_else(|e| panic!("case {case}, cut {depth}: {e}"));
            assert!(opened.store.find("film").is_some(), "case {case}, cut {depth}");
        }
    }
}

/// A pool of one disk as a crash leaves it, and the states that it may be opened in.
struct Left {
    what: &'static str,
    disk: Disk,
    states: Vec<Description>,
}

/// Pools that each flush of an opening is needed for.
fn left() -> Vec<Left> {
    let mut disks = new_pool(1, &[Bytes::mib(8)]);
    let mut store = open(&mut disks).unwrap().store;
    let mut before = Description::of(&store);
    for number in 0.. {
        store.create(&format!("film-{number}"), Bytes::mib(0), &Placement::default()).unwrap();
        let after = Description::of(&store);
        store.commit().unwrap();
        let first = store.poll().unwrap();
        let IoKind::Write { bytes, .. } = &first.kind else { panic!("a record or a checkpoint") };
        let is_checkpoint = bytes.starts_with(b"SLKCHECK");
        disks[0].do_io(&first.kind).unwrap();
        if is_checkpoint {
            // The process dies before the first of the two checkpoints is flushed.
            let states = vec![before, after];
            let cached = Left { what: "a checkpoint in the cache", disk: disks.remove(0), states };
            return vec![undamaged(false), undamaged(true), cached];
        }
        store.done(first.id, Ok(Vec::new()));
        while let Some(io) = store.poll() {
            store.done(io.id, disks[0].do_io(&io.kind));
        }
        before = after;
    }
    unreachable!("the log is full at some time")
}

/// A pool with one record; its current checkpoint may be damaged.
fn undamaged(is_damaged: bool) -> Left {
    let mut disks = new_pool(1, &[Bytes::mib(8)]);
    let mut store = open(&mut disks).unwrap().store;
    store.create("film", Bytes::mib(2), &Placement::default()).unwrap();
    assert!(commit(&mut store, &mut disks));
    let mut disk = disks.remove(0);
    let generation = |block: u64| disk.block(block * 4096)[48];
    let checkpoints = disk.used_blocks().filter(|b| disk.block(b * 4096).starts_with(b"SLKCHECK"));
    let current = checkpoints.max_by_key(|block| generation(*block)).unwrap();
    let what = if is_damaged { "a damaged checkpoint" } else { "a record" };
    if is_damaged {
        disk.flip(current * 4096 * 8 + 8 * 4000);
    }
    Left { what, disk, states: vec![Description::of(&store)] }
}

/// Opens `left` without flush number `skipped`, cuts the power at every moment in every
/// way, and opens again. The first outcome in which something is lost.
fn lost_without(skipped: Option<u64>, left: &Left) -> Option<String> {
    for limit in 0.. {
        let mut disk = left.disk.clone();
        let mut opening = Opening::new(&[Bytes::new(disk.capacity)]);
        let (mut flushes, mut left_to_do) = (0, limit);
        while let Some(io) = opening.poll() {
            if !matches!(io.kind, IoKind::Read { .. }) {
                if left_to_do == 0 {
                    break;
                }
                left_to_do -= 1;
            }
            let is_flush = io.kind == IoKind::Flush;
            let result = match is_flush && Some(flushes) == skipped {
                true => Ok(Vec::new()),
                false => disk.do_io(&io.kind),
            };
            flushes += u64::from(is_flush);
            opening.done(io.id, result);
        }
        for (number, cut) in disk.cuts().into_iter().enumerate() {
            let found = open(&mut [cut]).map(|opened| Description::of(&opened.store));
            let lost = match found {
                Err(error) => error.to_string(),
                Ok(state) if !left.states.contains(&state) => format!("{state:?}"),
                Ok(_) => continue,
            };
            return Some(format!(
                "{}, cut before I/O {limit}, outcome {number}: {lost}",
                left.what
            ));
        }
        if opening.is_finished() {
            return None;
        }
    }
    None
}

/// Each flush of an opening has a crash that only it survives, and with all of them there
/// is none that is not survived.
#[test]
fn an_opening_needs_each_of_its_flushes() {
    let pools = left();
    for left in &pools {
        assert_eq!(lost_without(None, left), None);
    }
    let [record, damaged, cached] = &pools[..] else { panic!("three pools") };
    // What was read; the new twin; the new checkpoint, of which the seal speaks.
    assert!(lost_without(Some(0), cached).is_some(), "before anything is written");
    assert!(lost_without(Some(1), record).is_some(), "behind the twin");
    assert!(lost_without(Some(2), record).is_some(), "behind the current checkpoint");
    assert!(lost_without(Some(1), damaged).is_some(), "behind the checkpoint that was mended");
}

/// A pool is made where another one was, and the power fails meanwhile: what is
/// there then is the old pool, or the new one, or none, but no mixture.
#[test]
fn a_pool_whose_making_is_cut_short_is_no_mixture() {
    let mut random = Random::new(8);
    let sizes = [Bytes::mib(8), Bytes::mib(9)];
    let mut old = new_pool(1, &sizes);
    let mut store = open(&mut old).unwrap().store;
    store.create("film", Bytes::mib(2), &Placement::default()).unwrap();
    assert!(commit(&mut store, &mut old));
    let (mut olds, mut news, mut nones) = (0, 0, 0);
    for limit in 1.. {
        let mut disks = old.clone();
        let ended = run_until(&mut formatting(2, &sizes), &mut disks, limit);
        let ways = [Cut::Dropped, Cut::Applied, Cut::Any, Cut::Torn].repeat(5);
        for how in ways {
            let mut cut: Vec<_> = disks.iter().map(|disk| disk.cut(how, &mut random)).collect();
            match open(&mut cut) {
                Err(_) => nones += 1,
                Ok(opened) => {
                    let is_old = opened.store.pool().name == "pool-1";
                    assert_eq!(opened.store.find("film").is_some(), is_old, "cut at {limit}");
                    *(if is_old { &mut olds } else { &mut news }) += 1;
                }
            }
        }
        if ended {
            break;
        }
    }
    assert!(olds > 0 && news > 20 && nones > 100, "{olds} {news} {nones}");
}

/// The history, of the first hundred, in which a planted bug shows.
fn caught(fault: Fault) -> Option<(u64, String)> {
    (0..100).find_map(|seed| live(seed, fault).err().map(|what| (seed, what)))
}

#[test]
fn a_skipped_flush_of_data_is_caught() {
    let (_, what) = caught(Fault::NoDataFlush).expect("bytes that were acknowledged are lost");
    assert!(what.contains("not what was written"), "{what}");
}

#[test]
fn a_skipped_flush_of_the_log_is_caught() {
    let (_, what) = caught(Fault::NoLogFlush).expect("a commit that was acknowledged is lost");
    assert!(what.contains("never promised") || what.contains("log record"), "{what}");
}

#[test]
fn extents_that_are_reused_too_early_are_caught() {
    let (_, what) = caught(Fault::EarlyReuse).expect("a volume shows the bytes of another");
    assert!(what.contains("not what was written"), "{what}");
}

#[test]
fn a_recovery_that_does_not_mirror_is_caught() {
    let (_, what) = caught(Fault::NoMirroring).expect("the disks do not agree");
    let shows = ["check after recovery", "checkpoint in area", "never promised"];
    assert!(shows.iter().any(|text| what.contains(text)), "{what}");
}

#[test]
fn a_skipped_flush_during_recovery_is_caught() {
    let (_, what) = caught(Fault::NoRecoveryFlush).expect("a cut recovery leaves nothing whole");
    let shows = ["changed the state", "checkpoint in area", "never promised"];
    assert!(shows.iter().any(|text| what.contains(text)), "{what}");
}
