//! Checkpoints that are made and written in parts, a part with each commit.
//!
//! What is cut by the power meanwhile is in `power_cut.rs`. Here: what was written in parts
//! makes the state, however much changed meanwhile; no commit writes more than it may; and
//! one damaged bit in it is mended from the area that the log has left.

use crate::common::history::{Description, accounts};
use crate::common::{BLOCK, Cut, Disk, Random, capacities, check, new_pool, open, run_until};
use store::{
    Blocks, DiskIndex, IoKind, Opening, Placement, Settled, Severity, Store, Suspect, VolumeId,
};
use units::Bytes;

/// What one commit wrote on the first disk, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Wrote {
    record: usize,
    /// Of a checkpoint, but for the first block.
    part: usize,
    /// The first block of a checkpoint that goes on behind it.
    first: usize,
    /// A checkpoint at once.
    whole: usize,
    seal: usize,
}

fn commit(store: &mut Store, disks: &mut [Disk]) -> Wrote {
    let mut wrote = Wrote::default();
    if store.commit().is_none() {
        return wrote;
    }
    while let Some(io) = store.poll() {
        if let (IoKind::Write { bytes, .. }, DiskIndex(0)) = (&io.kind, io.disk) {
            let length = u32::from_le_bytes(bytes[88..92].try_into().unwrap()) as usize;
            let kind = match &bytes[..8] {
                b"SLKRECOR" => &mut wrote.record,
                b"SLKCHECK" if length > bytes.len() => &mut wrote.first,
                b"SLKCHECK" => &mut wrote.whole,
                b"SLKSEAL1" => &mut wrote.seal,
                _ => &mut wrote.part,
            };
            *kind += bytes.len();
        }
        let result = disks[io.disk.as_usize()].do_io(&io.kind);
        store.done(io.id, result);
    }
    wrote
}

/// A pool with so many volumes, opened.
fn pool(sizes: &[Bytes], volumes: usize, increment: Bytes) -> (Vec<Disk>, Store) {
    let mut disks = new_pool(1, sizes);
    let mut store = open(&mut disks).unwrap().store;
    store.set_increment(increment);
    for number in 0..volumes {
        store.create(&format!("{number:060}"), Bytes::ZERO, &Placement::default()).unwrap();
    }
    commit(&mut store, &mut disks);
    let mut store = open(&mut disks).unwrap().store; // the log is empty
    store.set_increment(increment);
    (disks, store)
}

/// Records on a ring, which gives up what that takes.
fn record(random: &mut Random, store: &mut Store) {
    let ring = store.find("ring").unwrap();
    let (id, length) = (ring.id(), ring.length() / Bytes::MIB);
    let end = store.writable_end(id) / Bytes::MIB;
    for extent in length..(length + random.below(5)).min(end) {
        store.note_written(id, extent, &Blocks::first(Bytes::kib(4 * random.below(257))));
        store.note_length(id, Bytes::mib(extent + 1));
    }
    store.give_up(id, Bytes::mib(length + 20));
}

/// An extent of a thin volume is written in its place, or to another at a frontier; gives the place that
/// it leaves then, if it had one.
fn settle(random: &mut Random, store: &mut Store, id: VolumeId, extent: u64) -> Left {
    let blocks = Blocks::first(Bytes::kib(4 * random.below(257)));
    let mut left = None;
    // The space comes to be in pieces that are too short for a frontier.
    if random.once_in(2) || store.promise(id, extent, 1).is_err() {
        store.place(id, extent).unwrap();
    } else {
        let disk = store.disk_of(id, extent).unwrap();
        let offset = store.hold(id, extent);
        let Settled::There { old } = store.settle(id, extent, disk, offset) else {
            panic!("it is there")
        };
        left = old.map(|old| (disk, old));
    }
    store.note_written(id, extent, &blocks);
    store.note_length(id, Bytes::mib(extent + 1));
    left
}

/// A place that an extent has settled from.
type Left = Option<(DiskIndex, Bytes)>;

/// Writes in a thin volume, and records on a thin ring.
fn change_thin(random: &mut Random, store: &mut Store, left: &mut Vec<(DiskIndex, Bytes)>) {
    let loose = store.find("loose").unwrap().id();
    match random.below(3) {
        // What it leaves is had again soon, by itself and by the ring.
        0 => store.resize(loose, Bytes::mib(random.below(60))).unwrap(),
        _ if store.volume(loose).unwrap().extents() == 0 => {}
        _ => {
            let extent = random.below(store.volume(loose).unwrap().extents());
            left.extend(settle(random, store, loose, extent));
        }
    }
    let ring = store.find("loop").unwrap();
    let (id, length) = (ring.id(), ring.length() / Bytes::MIB);
    let end = store.writable_end(id) / Bytes::MIB;
    for extent in length..(length + random.below(5)).min(end) {
        left.extend(settle(random, store, id, extent));
    }
    store.give_up(id, Bytes::mib(length + 20));
    let vacated: Vec<_> = store.take_vacated().collect();
    vacated.into_iter().for_each(|(disk, place)| store.give_back_held(disk, place.start));
    if random.once_in(3) {
        left.drain(..).for_each(|(disk, old)| store.give_back_held(disk, old));
    }
}

/// Writes, as if by programs, in a volume of many extents, and makes, cuts and removes others.
fn change(random: &mut Random, store: &mut Store, names: &mut u64) {
    let kept = ["large", "ring", "loose", "loop"].map(|name| store.find(name).unwrap().id());
    let large = kept[0];
    match random.below(12) {
        0 => {
            *names += 1;
            let size = Bytes::mib(random.below(6));
            let _ = store.create(&format!("v{names}"), size, &Placement::default());
        }
        1 | 2 => {
            let ids: Vec<_> = store.volumes().map(|volume| volume.id()).collect();
            let id = ids[ids.len() - 1 - random.index(6)];
            if !kept.contains(&id) {
                let size = Bytes::kib(random.below(6 << 10));
                let _ = match random.once_in(3) {
                    true => store.delete(id),
                    false => store.resize(id, size),
                };
            }
        }
        3 => {
            let extents = random.below(4);
            let size = Bytes::mib(3997 + extents);
            store.resize(large, size).unwrap();
        }
        4 => {
            let of = |extent| Suspect { extent, errors: 1, slow: 2, commands: 3 };
            let all = (0..9).filter(|_| random.once_in(3)).map(of).collect();
            store.suspect(DiskIndex(0), all);
        }
        5 => {
            let index = random.below(3990);
            if let Ok(to) = store.reserve(large, index) {
                store.relocate(large, index, to).unwrap();
            }
        }
        _ => {
            let extent = random.below(4000);
            let holes = store.reserve_scattered();
            let first = if holes && random.once_in(3) { random.below(200) } else { 0 };
            let range = Bytes::kib(4 * first)..Bytes::kib(4 * (first + 1 + random.below(56)));
            for extent in extent..extent + random.below(5) {
                store.note_written(large, extent, &Blocks::of(&range));
            }
            if holes {
                store.release_scattered();
            }
            store.note_length(large, Bytes::mib(extent));
        }
    }
}

/// Whatever changes while a checkpoint is made: what is found on the disk after each of many
/// commits is what was committed.
#[test]
fn what_was_written_in_parts_makes_what_was_committed() {
    let (mut built, mut began, mut whole, mut compared, mut wraps) = (0, 0, 0, 0, 0);
    for seed in 0..4 {
        let mut random = Random::new(seed);
        let increment = Bytes::kib(4 + 4 * (seed % 2));
        let (mut disks, mut store) = pool(&[Bytes::GIB * 6], 60, increment);
        // Before the large one, so that a list has them for as long as its watermarks take.
        let thin = Placement { thin: true, ..Placement::default() };
        let (place, whose) = (Placement::default(), store::Ownership::ROOT);
        store.create_owned("loose", Bytes::mib(400), &thin, whose).unwrap();
        store.create_ring("loop", Bytes::mib(64), &thin, whose).unwrap();
        store.create("large", Bytes::mib(4000), &place).unwrap();
        let size = Bytes::mib(512);
        store.create_ring("ring", size, &place, whose).unwrap();
        let mut left = Vec::new();
        let mut names = 0;
        for number in 0..1500 {
            for _ in 0..1 + random.below(3) {
                change(&mut random, &mut store, &mut names);
            }
            record(&mut random, &mut store);
            change_thin(&mut random, &mut store, &mut left);
            if !store.dirty() {
                continue;
            }
            let wrote = commit(&mut store, &mut disks);
            began += u64::from(wrote.part > 0);
            built += u64::from(wrote.first > 0);
            whole += u64::from(wrote.whole > 0);
            if wrote.first > 0 || number % 97 == 0 || (wrote.part > 0 && random.once_in(4)) {
                let mut now = disks.clone();
                let found = open(&mut now).unwrap_or_else(|e| panic!("{seed}, {number}: {e}"));
                let same = Description::of(&found.store) == Description::of(&store);
                assert!(same, "{seed}: another state behind commit {number}: {wrote:?}");
                accounts(&found.store).unwrap();
                compared += 1;
            }
        }
        wraps += store.find("ring").unwrap().start() / size;
    }
    assert!(wraps >= 12, "{wraps} times around the rings");
    assert!(built >= 8 && began >= 4 * built && compared > 60, "{built} {began} {compared}");
    assert!(whole <= built, "{whole} were written at once, {built} in parts");
}

/// No commit writes more of a checkpoint than its part, and while one is written the log has
/// room: with records of any size up to an increment.
#[test]
fn no_commit_writes_more_of_a_checkpoint_than_its_part() {
    for (volumes, increment, changes) in [(2000, 16, 1), (1500, 64, 200), (3000, 64, 30)] {
        let increment = Bytes::kib(increment);
        let (mut disks, mut store) = pool(&[Bytes::GIB * 64], volumes, increment);
        let mut built = 0;
        commit(&mut store, &mut disks);
        for number in 0..2000_u64 {
            for name in 0..changes {
                let volume = store.find(&format!("{name:060}")).unwrap().id();
                let mode = (number % 8) as u16;
                let whose = store::Ownership { mode, ..store::Ownership::ROOT };
                store.set_ownership(volume, whose).unwrap();
            }
            let wrote = commit(&mut store, &mut disks);
            assert!(wrote.record > 0 && wrote.record <= increment.as_usize(), "{wrote:?}");
            assert!(wrote.part <= increment.as_usize(), "commit {number}: {wrote:?}");
            assert_eq!(wrote.whole, 0, "commit {number}: {wrote:?}");
            built += u64::from(wrote.first > 0);
        }
        assert!(built >= 3, "{volumes} volumes, {increment}: {built} checkpoints");
    }
}

/// A pool whose log has gone over to a checkpoint that was written in parts, with so many
/// records behind it; where the first block of that checkpoint lies; and the pool's state.
fn gone_over(sizes: &[Bytes], records: usize) -> (Vec<Disk>, u64, Description) {
    let (mut disks, mut store) = pool(sizes, 200, Bytes::kib(4));
    let mut behind = None;
    for number in 0.. {
        if behind == Some(records) {
            break;
        }
        let size = Bytes::mib(number % 2);
        let volume = store.find(&format!("{:060}", number % 7)).unwrap().id();
        if store.resize(volume, size).is_err() || !store.dirty() {
            store
                .set_ownership(
                    volume,
                    store::Ownership { uid: number as u32, ..Default::default() },
                )
                .unwrap();
        }
        let wrote = commit(&mut store, &mut disks);
        behind = if wrote.first > 0 { Some(0) } else { behind.map(|behind| behind + 1) };
    }
    let generation = |block: &u64| disks[0].block(block * BLOCK as u64)[48];
    let is_checkpoint = |block: &u64| disks[0].block(block * BLOCK as u64).starts_with(b"SLKCHECK");
    let first = disks[0].used_blocks().filter(is_checkpoint).max_by_key(generation).unwrap();
    let state = Description::of(&store);
    (disks, first * BLOCK as u64, state)
}

/// Each block of the checkpoint loses a bit; the area that the log has left makes it anew,
/// also where the power is cut meanwhile.
#[test]
fn one_flipped_bit_in_a_checkpoint_that_was_written_in_parts_is_mended() {
    let mut random = Random::new(5);
    for sizes in [vec![Bytes::mib(12)], vec![Bytes::mib(12), Bytes::mib(10)]] {
        for records in 0..3 {
            let (disks, first, state) = gone_over(&sizes, records);
            let found = check(&disks).findings;
            assert!(found.is_empty(), "{records} records: {found:#?}");
            for block in 0..4 {
                let mut hurt = disks.clone();
                hurt[0].flip((first + block * BLOCK as u64) * 8 + 8 * 100 + random.below(8 * 3000));
                let report = check(&hurt);
                assert_eq!(report.worst(), Some(Severity::Warning), "{:#?}", report.findings);
                let mut mended = hurt.clone();
                let store = open(&mut mended).unwrap().store;
                assert_eq!(Description::of(&store), state, "{records} records, block {block}");
                assert!(check(&mended).findings.is_empty());
                for limit in 1..12 {
                    let mut cut = hurt.clone();
                    let mut opening = Opening::new(&capacities(&cut));
                    run_until(&mut opening, &mut cut, limit);
                    for how in [Cut::Dropped, Cut::Applied, Cut::Any, Cut::Torn, Cut::Torn] {
                        let mut cut: Vec<Disk> =
                            cut.iter().map(|disk| disk.cut(how, &mut random)).collect();
                        let store = open(&mut cut);
                        let store = store.unwrap_or_else(|e| panic!("cut at {limit}: {e}")).store;
                        assert_eq!(Description::of(&store), state, "cut at {limit}");
                    }
                }
            }
        }
    }
}

/// Checkpoint and records of the current area are gone: that is not taken for their not
/// having been there yet.
#[test]
fn what_the_log_has_gone_over_to_is_missed_when_it_is_gone() {
    let (disks, first, _) = gone_over(&[Bytes::mib(12)], 2);
    let mut hurt = disks;
    let newest = hurt[0].block(first)[48];
    let gone: Vec<u64> = hurt[0]
        .used_blocks()
        .map(|block| block * BLOCK as u64)
        .filter(|&at| {
            let block = hurt[0].block(at);
            block[48] == newest && [b"SLKCHECK", b"SLKRECOR"].iter().any(|m| block.starts_with(*m))
        })
        .collect();
    gone.into_iter().for_each(|at| hurt[0].change(at, |block| block.fill(0x5a)));
    let error = open(&mut hurt).unwrap_err().to_string();
    assert!(error.contains("checkpoint in area"), "{error}");
}

/// The checkpoint is damaged, and so is the last record of the area that was left, in both
/// copies: what is left makes no state that was ever acknowledged, and is not taken for one.
#[test]
fn an_area_that_was_left_without_all_of_its_records_is_no_stand_in() {
    let (disks, first, _) = gone_over(&[Bytes::mib(12)], 2);
    let mut hurt = disks;
    hurt[0].flip(first * 8 + 8 * 200);
    let newest = hurt[0].block(first)[48];
    let records: Vec<(u8, u64)> = hurt[0]
        .used_blocks()
        .map(|block| (hurt[0].block(block * BLOCK as u64), block * BLOCK as u64))
        .filter(|(block, _)| block.starts_with(b"SLKRECOR") && block[48] == newest - 1)
        .map(|(block, at)| (block[64], at))
        .collect();
    let last = records.iter().map(|(sequence, _)| *sequence).max().unwrap();
    let copies = records.iter().filter(|(sequence, _)| *sequence == last);
    assert_eq!(copies.clone().count(), 2);
    copies.for_each(|(_, at)| hurt[0].flip(at * 8 + 8 * 200));
    let error = open(&mut hurt).unwrap_err().to_string();
    assert!(error.contains("checkpoint in area"), "{error}");
}

/// A pool that is closed while a checkpoint is being written has it whole, and nothing is
/// missing.
#[test]
fn a_pool_that_is_closed_while_a_checkpoint_is_written_has_it_whole() {
    let (mut disks, mut store) = pool(&[Bytes::mib(12)], 200, Bytes::kib(4));
    for number in 0.. {
        let volume = store.volumes().next().unwrap().id();
        let whose = store::Ownership { uid: number, ..Default::default() };
        store.set_ownership(volume, whose).unwrap();
        let wrote = commit(&mut store, &mut disks);
        assert_eq!(wrote.first, 0);
        if wrote.part > 0 {
            break;
        }
    }
    assert!(check(&disks).worst() == Some(Severity::Warning), "the twin is being written over");
    let mut commits = 0;
    while !store.close() {
        commit(&mut store, &mut disks);
        commits += 1;
    }
    assert_eq!(commits, 1, "the empty record that a pool is closed with");
    let found = check(&disks).findings;
    assert!(found.is_empty(), "{found:#?}");
    let state = Description::of(&store);
    assert_eq!(Description::of(&open(&mut disks).unwrap().store), state);
}

/// An extent that was freed since the list began, and is had again by a volume that the same
/// commit deletes, is in the list twice: it begins anew. Otherwise nobody could read it.
#[test]
fn an_extent_that_is_had_again_and_deleted_at_once_ends_the_building() {
    for gone in [true, false] {
        let mut disks = new_pool(1, &[Bytes::mib(96)]);
        let mut store = open(&mut disks).unwrap().store;
        store.set_increment(Bytes::kib(8));
        let first = store.create("first", Bytes::mib(4), &Placement::default()).unwrap();
        for number in 0..600 {
            store.create(&format!("{number:060}"), Bytes::ZERO, &Placement::default()).unwrap();
        }
        commit(&mut store, &mut disks);
        let mut went_over = 0;
        let (mut parts, mut is_cut, mut is_had_again) = (0, false, false);
        for number in 0..20_000 {
            match (is_cut, is_had_again) {
                _ if parts < 2 => {}
                (false, _) => {
                    store.resize(first, Bytes::mib(3)).unwrap();
                    is_cut = true;
                }
                (true, false) if parts > 2 => {
                    store.resize(first, Bytes::mib(4)).unwrap();
                    if gone {
                        store.delete(first).unwrap();
                    } else {
                        store.resize(first, Bytes::mib(2)).unwrap();
                    }
                    is_had_again = true;
                }
                _ => {}
            }
            let name = format!("v{number}");
            let id = store.create(&name, Bytes::ZERO, &Placement::default()).unwrap();
            let wrote = commit(&mut store, &mut disks);
            parts += usize::from(wrote.part > 0);
            store.delete(id).unwrap();
            if wrote.first > 0 {
                went_over += 1;
                let mut crashed = disks.clone();
                let opened = open(&mut crashed).expect("what was gone over to is read");
                assert_eq!(opened.store.find("first").is_none(), gone && is_had_again);
                if is_had_again && went_over > 1 {
                    break;
                }
            }
        }
        assert!(is_had_again && went_over > 0, "the test shows nothing: {parts} parts");
    }
}
