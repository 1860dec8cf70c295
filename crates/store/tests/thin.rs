//! Thin volumes: where their extents come to lie, what is promised and held at a frontier, when a place
//! is free again, and that all of it adds up at every step.

use crate::common::history::accounts;
use crate::common::{
    Disk, Random, at, check, commit, disk, fill_with_volumes, new_pool, open, owner,
};
use std::collections::BTreeSet;
use store::{
    Blocks, DiskIndex, EXTENT, Ownership, Placement, Settled, Store, StoreError, VolumeId, Zone,
};
use units::Bytes;

const MIB: Bytes = Bytes::MIB;

fn pool(sizes: &[u64]) -> (Vec<Disk>, Store) {
    let sizes: Vec<Bytes> = sizes.iter().map(|&size| Bytes::mib(size)).collect();
    let mut disks = new_pool(1, &sizes);
    let store = open(&mut disks).unwrap().store;
    (disks, store)
}

fn make(store: &mut Store, name: &str, mib: u64, placement: &Placement, is_ring: bool) -> VolumeId {
    let (placement, size) = (Placement { thin: true, ..placement.clone() }, Bytes::mib(mib));
    let made = match is_ring {
        true => store.create_ring(name, size, &placement, Ownership::ROOT),
        false => store.create_owned(name, size, &placement, Ownership::ROOT),
    };
    made.unwrap()
}

fn thin(store: &mut Store, name: &str, mib: u64) -> VolumeId {
    make(store, name, mib, &Placement::default(), false)
}

fn by_runs(extents: u64) -> Placement {
    Placement { run: EXTENT * extents, ..Placement::default() }
}

/// The extents of a disk at which these of a volume lie.
fn places(store: &Store, id: VolumeId, extents: std::ops::Range<u64>) -> Vec<Option<u64>> {
    let place = |extent| store.locate(id, extent).unwrap().offset.map(|offset| offset / EXTENT);
    extents.map(place).collect()
}

/// How far apart the places of a block lie on each disk, counted by hand.
fn check_reach(store: &Store, id: VolumeId) {
    let volume = store.volume(id).unwrap();
    let (run, disks) = (volume.placement().run / EXTENT, &volume.placement().disks);
    for (slot, &disk) in (0..).zip(disks) {
        let own = (0..volume.extents()).filter(|index| index / run % disks.len() as u64 == slot);
        let at: Vec<Option<u64>> =
            own.flat_map(|index| places(store, id, index..index + 1)).collect();
        for extents in [2, 4, 8] {
            let reach = |block: &[Option<u64>]| {
                // Where a stretch begins.
                let begins = |(n, at): (usize, &Option<u64>)| {
                    at.is_some() && (n == 0 || block[n - 1].map(|before| before + 1) != *at)
                };
                let stretches = block.iter().enumerate().filter(|&it| begins(it)).count();
                let placed = || block.iter().flatten();
                let apart = EXTENT * (placed().max()? - placed().min()? + 1);
                (stretches > 1).then_some(apart)
            };
            let most = at.chunks(extents as usize).filter_map(reach).max();
            assert_eq!(volume.reach_on(disk, extents), most, "{extents}: {at:?}");
        }
    }
}

/// Free, freeing and used extents.
fn space(store: &Store) -> [u64; 3] {
    accounts(store).unwrap();
    let space = store.space();
    [space.free, space.freeing, space.used].map(|bytes| bytes / EXTENT)
}

/// Nobody reads what thin rings have given up.
fn give_vacated_back(store: &mut Store) {
    let vacated: Vec<_> = store.take_vacated().collect();
    vacated.into_iter().for_each(|(disk, place)| store.give_back_held(disk, place.start));
}

/// An extent is promised, held and settles; gives where it lies, and where it lay.
fn settle(store: &mut Store, id: VolumeId, extent: u64) -> (u64, Option<Bytes>) {
    store.promise(id, extent, 1).unwrap();
    let on = store.disk_of(id, extent).unwrap();
    let offset = store.hold(id, extent);
    let Settled::There { old } = store.settle(id, extent, on, offset) else {
        panic!("it is there")
    };
    assert_eq!(store.locate(id, extent).unwrap().offset, Some(offset));
    (offset / EXTENT, old)
}

#[test]
fn a_thin_volume_takes_a_run_at_a_time_each_behind_the_one_before() {
    let (mut disks, mut store) = pool(&[60, 60]);
    let total = space(&store)[0];
    let id = make(&mut store, "film", 1000, &by_runs(4), false);
    let film = store.volume(id).unwrap();
    assert!(film.is_thin() && film.size() == Bytes::mib(1000) && film.taken().is_zero());
    assert_eq!(film.extents_on(disk(0)), 500);
    assert_eq!(space(&store), [total, 0, 0], "nothing is reserved");
    assert_eq!(store.locate(id, 5).unwrap().offset, None);
    assert!(!store.is_placed(id, 5));
    // Extent 5 is in the second run, which is the first on disk 1.
    store.place(id, 5).unwrap();
    assert_eq!(places(&store, id, 3..9), [None, Some(1), Some(2), Some(3), Some(4), None]);
    assert_eq!(store.locate(id, 5).unwrap().disk, disk(1));
    store.place(id, 6).unwrap();
    assert_eq!(space(&store), [total - 4, 0, 4], "it has a place already");
    // Somebody else is at the beginning of disk 0; what comes behind goes behind.
    let on = |on: u16| Placement { disks: vec![disk(on)], ..by_runs(4) };
    let other = make(&mut store, "other", 8, &on(1), false);
    store.place(other, 0).unwrap();
    assert_eq!(places(&store, other, 0..1), [Some(5)]);
    store.place(id, 15).unwrap();
    assert_eq!(places(&store, id, 12..16), [9, 10, 11, 12].map(Some), "no room behind its own");
    store.place(id, 20).unwrap();
    assert_eq!(places(&store, id, 20..24), [13, 14, 15, 16].map(Some), "right behind");
    store.place(other, 4).unwrap();
    assert_eq!(places(&store, other, 4..8), [17, 18, 19, 20].map(Some));
    assert_eq!(store.volume(id).unwrap().taken(), Bytes::mib(12));
    assert!(matches!(store.place(id, 1000), Err(StoreError::NoSuchVolume { .. })));
    // What is left of a run of which a part has a place.
    let (lies, old) = settle(&mut store, id, 1);
    assert_eq!(old, None);
    store.place(id, 3).unwrap();
    assert_eq!(places(&store, id, 0..2), [None, Some(lies)]);
    assert_eq!(places(&store, id, 2..4).iter().flatten().count(), 2);
    store.place(id, 0).unwrap();
    assert_eq!(store.volume(id).unwrap().taken(), Bytes::mib(16));
    // The last run of a volume that ends within it.
    store.resize(id, Bytes::mib(30)).unwrap();
    store.place(id, 29).unwrap();
    assert_eq!(places(&store, id, 28..30).iter().flatten().count(), 2);
    assert!(commit(&mut store, &mut disks));
    let again = open(&mut disks).unwrap().store;
    assert_eq!(again.volume(id), store.volume(id));
    assert!(check(&disks).findings.is_empty());
}

#[test]
fn where_no_stretch_is_as_long_as_a_run_there_is_no_space() {
    let (mut disks, mut store) = pool(&[30]);
    // Holes of three.
    let made: Vec<_> = (0..9)
        .map(|n| store.create(&format!("v{n}"), Bytes::mib(3), &Placement::default()).unwrap())
        .collect();
    let rest = store.space().free;
    store.create("rest", rest, &Placement::default()).unwrap();
    (0..9).step_by(2).for_each(|n| store.delete(made[n]).unwrap());
    let film = make(&mut store, "film", 100, &by_runs(4), false);
    let error = store.place(film, 0).unwrap_err();
    let StoreError::NoSpace { asked, free, freeing, .. } = error else { panic!("{error}") };
    assert_eq!([asked, free, freeing], [4, 0, 15].map(Bytes::mib));
    assert!(commit(&mut store, &mut disks));
    let error = store.place(film, 0).unwrap_err();
    let StoreError::NoSpace { asked, free, freeing, .. } = error else { panic!("{error}") };
    assert_eq!([asked, free, freeing], [4, 3, 0].map(Bytes::mib), "the longest stretch");
    let short = make(&mut store, "short", 100, &by_runs(2), false);
    store.place(short, 0).unwrap();
    assert_eq!(space(&store)[0], 13);
    // A frontier makes do with pieces then, and says so.
    assert!(!store.has_stretch(disk(0), Zone::Any) && !store.is_scattered(disk(0), Zone::Any));
    let places: Vec<_> = (8..21).map(|extent| settle(&mut store, short, extent).0).collect();
    assert!(store.is_scattered(disk(0), Zone::Any));
    let pieces = places.chunk_by(|one, next| one + 1 == *next).map(<[u64]>::len);
    assert_eq!(pieces.collect::<Vec<_>>(), [1, 3, 3, 3, 3], "{places:?}");
    let error = store.promise(short, 30, 1).unwrap_err();
    assert!(matches!(error, StoreError::NoSpace { .. }), "{error}");
    assert_eq!(space(&store)[0], 0);
}

#[test]
fn what_is_promised_is_there_and_what_is_held_lies_one_behind_the_other() {
    let (mut disks, mut store) = pool(&[50]);
    let (a, b) = (thin(&mut store, "a", 100), thin(&mut store, "b", 100));
    let any = Placement::default();
    let stretch = store.stretch_len(disk(0), Zone::Any);
    assert_eq!(stretch, 16);
    let total = space(&store)[0];
    store.promise(a, 0, 1).unwrap();
    assert_eq!(space(&store), [total - stretch, stretch, 0]);
    for n in 1..10 {
        store.promise([a, b][n as usize % 2], n, 1).unwrap();
    }
    assert_eq!(space(&store), [total - stretch, stretch, 0], "of the same stretch");
    // Whoever wants to have more gets what is not promised, and no more.
    let error = store.create("all", Bytes::mib(total - 9), &any).unwrap_err();
    let StoreError::NoSpace { free, .. } = error else { panic!("{error}") };
    assert_eq!(free, Bytes::mib(total - 10));
    assert_eq!(space(&store), [total - 10, 10, 0], "what was not promised is given back");
    let all = store.create("all", Bytes::mib(total - 10), &any).unwrap();
    assert_eq!(space(&store), [0, 10, total - 10]);
    let error = store.promise(a, 50, 1).unwrap_err();
    let StoreError::NoSpace { asked, free, .. } = error else { panic!("{error}") };
    assert_eq!([asked, free], [1, 0].map(Bytes::mib));
    // Whosever they are, and though the pool is full.
    let mut lies = Vec::new();
    for n in 0..9 {
        let id = [a, b][n as usize % 2];
        let offset = store.hold(id, n);
        assert_eq!(space(&store)[1], 10 - n, "what has settled is used");
        assert_eq!(store.settle(id, n, disk(0), offset), Settled::There { old: None });
        lies.push(offset / EXTENT);
    }
    assert!(lies.windows(2).all(|two| two[0] + 1 == two[1]), "{lies:?}");
    assert_eq!(space(&store), [0, 1, total - 1]);
    store.promise_less(b, 9);
    assert_eq!(space(&store), [0, 1, total - 1], "it is the frontier's still");
    store.promise(a, 9, 1).unwrap();
    let offset = store.hold(a, 9);
    assert!(store.promise(a, 10, 1).is_err());
    store.release(disk(0), offset);
    assert_eq!(space(&store), [1, 0, total - 1]);
    store.delete(all).unwrap();
    assert!(commit(&mut store, &mut disks));
    assert_eq!(open(&mut disks).unwrap().store.volume(a), store.volume(a));
}

#[test]
#[should_panic(expected = "it was promised")]
fn what_nobody_promised_is_not_held() {
    let (_, mut store) = pool(&[50]);
    let a = thin(&mut store, "a", 100);
    store.promise(a, 0, 1).unwrap();
    store.hold(a, 0);
    store.hold(a, 1);
}

/// A frontier of another part of the disk has taken what this one needs, and does not need it.
#[test]
fn what_another_frontier_has_to_spare_can_be_promised() {
    let (_, mut store) = pool(&[60]);
    let total = space(&store)[0];
    let outer = Placement { zone: Zone::Outer, ..Placement::default() };
    let (a, b) = (thin(&mut store, "a", 9), make(&mut store, "b", 9, &outer, false));
    store.promise(a, 0, 1).unwrap();
    store.promise_less(a, 0);
    assert_eq!(space(&store), [total - 16, 16, 0], "of 29 extents of the outer half");
    store.promise(b, 0, 1).unwrap();
    assert_eq!(space(&store), [total - 16, 16, 0]);
    assert_eq!(store.hold(b, 0), EXTENT);
}

#[test]
fn no_frontier_and_no_run_takes_a_suspect_extent() {
    let (_, mut store) = pool(&[50]);
    let suspect = |extent| store::Suspect { extent, errors: 1, slow: 2, commands: 3 };
    store.suspect(disk(0), [3, 20].into_iter().map(suspect).collect());
    let (id, runs) = (thin(&mut store, "a", 50), make(&mut store, "runs", 32, &by_runs(4), false));
    let at = |n: u64| (0..16).map(|within| n + within).collect::<Vec<u64>>();
    let lie: Vec<u64> = (0..16).map(|extent| settle(&mut store, id, extent).0).collect();
    assert_eq!(lie, at(4), "between the two");
    store.place(runs, 0).unwrap();
    assert_eq!(places(&store, runs, 0..4), [21, 22, 23, 24].map(Some));
    let few = thin(&mut store, "few", 2);
    (0..2).for_each(|extent| store.place(few, extent).unwrap());
    assert_eq!(places(&store, few, 0..2), [Some(1), Some(2)]);
    store.place(id, 16).unwrap();
    assert_eq!(places(&store, id, 16..17), [Some(25)], "20 is suspect");
}

/// Copy on write: what is read where it was is there until nobody reads it, and over a power cut.
#[test]
fn the_place_that_an_extent_settles_from_is_held_until_it_is_given_back_and_committed() {
    let (mut disks, mut store) = pool(&[50]);
    let id = thin(&mut store, "a", 100);
    let total = space(&store)[0];
    let (first, _) = settle(&mut store, id, 7);
    store.note_written(id, 7, &Blocks::first(MIB));
    store.note_length(id, Bytes::mib(8));
    assert!(commit(&mut store, &mut disks));
    assert_eq!(space(&store), [total - 16, 15, 1]);
    let (second, old) = settle(&mut store, id, 7);
    assert_eq!((second, old), (first + 1, Some(EXTENT * first)));
    assert!(store.dirty());
    assert_eq!(space(&store), [total - 16, 15, 1], "the old one is held");
    assert_eq!(store.locate(id, 7).unwrap().written, Blocks::first(MIB));
    assert!(commit(&mut store, &mut disks));
    assert_eq!(space(&store), [total - 16, 15, 1], "it still is");
    let rest = |store: &mut Store| {
        // All that is free, but what nobody may have.
        let id = store.create("rest", store.space().free, &Placement::default()).unwrap();
        let extents = store.volume(id).unwrap().extents();
        let places: BTreeSet<_> = places(store, id, 0..extents).into_iter().flatten().collect();
        store.delete(id).unwrap();
        places
    };
    assert!(!rest(&mut store).contains(&first));
    assert!(commit(&mut store, &mut disks) && !store.dirty());
    store.give_back_held(disk(0), EXTENT * first);
    assert!(store.dirty(), "or it would never be free");
    let [free, freeing, used] = space(&store);
    assert_eq!((free, freeing, used), (total - 2, 1, 1), "the frontier has nothing to spare");
    assert!(!rest(&mut store.clone()).contains(&first));
    store.commit().unwrap();
    assert_eq!(space(&store), [total - 2, 1, 1], "not before it is durable");
    while let Some(io) = store.poll() {
        let result = disks[io.disk.as_usize()].do_io(&io.kind);
        store.done(io.id, result);
    }
    assert_eq!(space(&store), [total - 1, 0, 1]);
    assert!(rest(&mut store.clone()).contains(&first));
    // An extent that is gone when what was written of it is to settle.
    store.promise(id, 99, 1).unwrap();
    let offset = store.hold(id, 99);
    store.resize(id, Bytes::mib(50)).unwrap();
    assert_eq!(store.settle(id, 99, disk(0), offset), Settled::Gone);
    assert!(rest(&mut store.clone()).contains(&(offset / EXTENT)), "at once: nobody knew of it");
    assert!(commit(&mut store, &mut disks));
    assert_eq!(open(&mut disks).unwrap().store.volume(id), store.volume(id));
}

/// A power cut frees what is promised and held.
#[test]
fn what_a_frontier_has_is_free_when_the_pool_is_opened() {
    let (mut disks, mut store) = pool(&[50]);
    let id = thin(&mut store, "a", 100);
    let total = space(&store)[0];
    settle(&mut store, id, 1);
    (2..9).for_each(|extent| store.promise(id, extent, 1).unwrap());
    store.hold(id, 2);
    assert!(commit(&mut store, &mut disks));
    assert_eq!(space(&open(&mut disks).unwrap().store), [total - 1, 0, 1]);
}

#[test]
fn a_thin_ring_gives_its_places_back_with_the_commit_that_gives_its_extents_up() {
    let (mut disks, mut store) = pool(&[99, 99, 99]);
    let id = make(&mut store, "ring", 96, &by_runs(2), true);
    let total = space(&store)[0];
    for extent in 0..96 {
        store.place(id, extent).unwrap();
        store.note_written(id, extent, &Blocks::first(MIB));
        store.note_length(id, EXTENT * (extent + 1));
    }
    assert!(commit(&mut store, &mut disks));
    assert_eq!(space(&store), [total - 96, 0, 96]);
    let had = |store: &Store, extents: std::ops::Range<u64>| {
        let place = |extent| store.locate(id, extent).unwrap();
        extents.map(|extent| (place(extent).disk, at(&place(extent)))).collect::<Vec<_>>()
    };
    let stays = had(&store, 16..96);
    store.give_up(id, Bytes::mib(97)).unwrap();
    give_vacated_back(&mut store);
    assert_eq!(space(&store), [total - 96, 16, 80]);
    assert_eq!(store.volume(id).unwrap().taken(), Bytes::mib(80));
    assert_eq!(had(&store, 16..96), stays, "what it holds lies where it lay");
    assert!(places(&store, id, 96..112).iter().all(Option::is_none));
    assert!(commit(&mut store, &mut disks));
    assert_eq!(space(&store), [total - 80, 0, 80]);
    // Around its end, twice, in another order, and opened again each time.
    for turn in 1..8 {
        let from = 80 + turn * 16;
        for extent in (from..from + 16).rev() {
            match extent % 3 {
                0 => drop(settle(&mut store, id, extent)),
                _ => store.place(id, extent).unwrap(),
            }
            store.note_written(id, extent, &Blocks::first(MIB));
        }
        store.note_length(id, Bytes::mib(from + 16));
        let more = if turn == 4 { 48 } else { 16 };
        let first = (from + 16 + more - 96).max(store.volume(id).unwrap().start() / EXTENT);
        let stays = had(&store, first..from + 16);
        store.give_up(id, Bytes::mib(from + 16 + more));
        give_vacated_back(&mut store);
        assert_eq!(store.volume(id).unwrap().start() / EXTENT, first);
        assert_eq!(had(&store, first..from + 16), stays);
        space(&store);
        assert!(commit(&mut store, &mut disks));
        let again = open(&mut disks.clone()).unwrap().store;
        assert_eq!(again.volume(id), store.volume(id), "turn {turn}");
    }
}

/// Where the ring's places may not be written again yet, none is given.
#[test]
#[should_panic(expected = "first what was placed, then what was given up")]
fn no_extent_is_placed_before_that_it_was_given_up_is_durable() {
    let (mut disks, mut store) = pool(&[60]);
    let id = make(&mut store, "ring", 32, &Placement::default(), true);
    (0..32).for_each(|extent| store.place(id, extent).unwrap());
    assert!(commit(&mut store, &mut disks));
    store.give_up(id, Bytes::mib(33)).unwrap();
    let _ = store.place(id, 32);
}

/// Where the map of extents has no room for more pieces, places are refused when they are asked for, and
/// what was promised settles all the same.
#[test]
fn places_are_refused_where_the_metadata_are_full_and_what_was_promised_settles() {
    let (mut disks, mut store) = pool(&[1400]);
    let id = make(&mut store, "a", 1100, &Placement::default(), false);
    let there = make(&mut store, "there", 2000, &Placement::default(), false);
    for extent in (0..1000).step_by(2) {
        store.promise(id, extent, 1).unwrap();
    }
    let held: Vec<Bytes> = (0..800).step_by(2).map(|extent| store.hold(id, extent)).collect();
    let (made, full) = fill_with_volumes(&mut store, "v");
    assert!(matches!(full, StoreError::MetadataFull { .. }), "{full}");
    let named = (1..200).rev().map(|len| "n".repeat(len));
    let names: Vec<_> =
        named.filter(|name| store.create(name, Bytes::ZERO, &by_runs(1)).is_ok()).collect();
    assert!(names.len() < 100);
    while store.reserve_scattered() {}
    // Room for some hundred places.
    made[..80].iter().for_each(|id| store.delete(*id).unwrap());
    let places = (0..900).take_while(|n| store.place(there, n * 2).is_ok()).count();
    assert!((300..700).contains(&places), "{places}");
    for error in
        [store.place(there, 1900), store.promise(there, 1905, 1), store.promise(id, 1050, 1)]
    {
        assert!(matches!(error, Err(StoreError::MetadataFull { .. })), "{error:?}");
    }
    // The worst watermarks that there are.
    let mark = |extent: u64| Blocks::first(Bytes::kib(4 * (1 + extent % 256)));
    for (extent, offset) in (0..800).step_by(2).zip(held) {
        assert_eq!(store.settle(id, extent, disk(0), offset), Settled::There { old: None });
        store.note_written(id, extent, &mark(extent));
    }
    for extent in (800..1000).step_by(2) {
        let offset = store.hold(id, extent);
        store.settle(id, extent, disk(0), offset);
        store.note_written(id, extent, &mark(extent));
    }
    store.note_length(id, Bytes::mib(1000));
    // There is as much in the maps as there is room for, and no more.
    match store.create("one", Bytes::ZERO, &Placement::default()) {
        Err(StoreError::MetadataFull { needed, room, .. }) => {
            assert_eq!(needed, room + Bytes::kib(4))
        }
        other => panic!("{other:?}"),
    }
    assert!(commit(&mut store, &mut disks));
    assert_eq!(open(&mut disks).unwrap().store.volume(id), store.volume(id));
    accounts(&store).unwrap();
}

/// Everything that can be done to places at random, against the set of those that somebody has.
#[test]
fn no_place_is_anybodys_twice_and_all_adds_up_at_every_step() {
    let (mut settled, mut refused, mut reused) = (0, 0, 0);
    for seed in 0..30 {
        let mut random = Random::new(seed);
        let (mut disks, mut store) = pool(&[90 + random.below(60), 80][..1 + seed as usize % 2]);
        let total: u64 = space(&store).iter().sum();
        let zones = [Zone::Any, Zone::Outer, Zone::Inner];
        let volumes: Vec<VolumeId> = (0..4)
            .map(|n| {
                let zone = zones[random.index(3)];
                let placement = Placement { zone, ..by_runs(1 << random.below(4)) };
                make(&mut store, &format!("v{n}"), 32 + random.below(32), &placement, n == 3)
            })
            .collect();
        let (mut promised, mut held, mut left) = (Vec::new(), Vec::new(), Vec::new());
        let mut before: BTreeSet<(DiskIndex, Bytes)> = BTreeSet::new();
        for _ in 0..1500 {
            let id = volumes[random.index(4)];
            let volume = store.volume(id).unwrap();
            let extent = volume.start() / EXTENT + random.below(volume.extents());
            let may = EXTENT * (extent + 1) <= store.writable_end(id);
            match random.below(12) {
                0..3 if may => match store.promise(id, extent, 1) {
                    Ok(()) => promised.push((id, extent)),
                    Err(_) => refused += 1,
                },
                3..6 if !promised.is_empty() => {
                    let (id, extent) = promised.swap_remove(random.index(promised.len()));
                    if random.once_in(6) || EXTENT * (extent + 1) > store.writable_end(id) {
                        store.promise_less(id, extent);
                        continue;
                    }
                    let on = store.disk_of(id, extent).unwrap();
                    let offset = store.hold(id, extent);
                    assert!(
                        offset >= EXTENT
                            && held
                                .iter()
                                .all(|it: &(_, _, _, Bytes)| (it.2, it.3) != (on, offset))
                    );
                    assert!(left.iter().all(|it| *it != (on, offset)), "it is read there still");
                    assert_eq!(owner(&store, on, offset / EXTENT), None);
                    reused += u64::from(before.contains(&(on, offset)));
                    held.push((id, extent, on, offset));
                }
                6..8 if !held.is_empty() => {
                    let (id, extent, on, offset) = held.swap_remove(random.index(held.len()));
                    if random.once_in(6) {
                        store.release(on, offset);
                    } else if let Settled::There { old } = store.settle(id, extent, on, offset) {
                        assert_eq!(store.locate(id, extent).unwrap().offset, Some(offset));
                        before.insert((on, offset));
                        left.extend(old.map(|old| (on, old)));
                        settled += 1;
                    }
                }
                8 => left.drain(..).for_each(|(on, old)| store.give_back_held(on, old)),
                9 if may => drop(store.place(id, extent)),
                // All of one goes: or else what is free is soon in pieces too short for a frontier.
                11 if id != volumes[3] && random.once_in(5) => {
                    let size = store.volume(id).unwrap().size();
                    store.resize(id, Bytes::ZERO).unwrap();
                    store.resize(id, size).unwrap();
                }
                10 => {
                    let end = store.volume(volumes[3]).unwrap().end();
                    store.give_up(volumes[3], end + MIB);
                    give_vacated_back(&mut store);
                }
                _ => drop(commit(&mut store, &mut disks)),
            }
            let [free, freeing, used] = space(&store);
            assert_eq!(free + freeing + used, total);
            let taken = volumes.iter().map(|id| store.volume(*id).unwrap().taken() / EXTENT);
            assert_eq!(used, taken.sum::<u64>());
            if id != volumes[3] {
                check_reach(&store, id);
            }
            let least = promised.len() + held.len() + left.len();
            assert!(freeing >= least as u64, "{freeing} for {least}");
        }
        commit(&mut store, &mut disks);
        let again = open(&mut disks).unwrap().store;
        for id in &volumes {
            assert_eq!(again.volume(*id), store.volume(*id));
        }
        let used = space(&store)[2];
        assert_eq!(space(&again), [total - used, 0, used]);
    }
    assert!(settled > 1000 && refused > 100 && reused > 100, "{settled} {refused} {reused}");
}

/// Places for a range are those that its extents would get one after the other, or none is taken where one
/// of these would be refused: on disks that are nearly full, in pieces.
#[test]
fn a_range_has_the_places_of_its_extents_one_by_one_or_none() {
    let (mut all, mut none) = (0, 0);
    for seed in 0..60 {
        let mut random = Random::new(seed);
        let (mut disks, mut store) = pool(&[40, 40]);
        let runs = [1, 2, 4, 8].map(|run| Placement { thin: true, ..by_runs(run) });
        let volumes: Vec<VolumeId> = runs
            .iter()
            .zip(0..)
            .map(|(placement, n)| make(&mut store, &format!("v{n}"), 60, placement, n == 3))
            .collect();
        for _ in 0..80 {
            let id = volumes[random.index(volumes.len())];
            if random.once_in(6) {
                let size = store.volume(id).unwrap().size();
                if !store.volume(id).unwrap().is_ring() {
                    store.resize(id, EXTENT * random.below(60)).unwrap();
                    store.resize(id, size).unwrap();
                }
                commit(&mut store, &mut disks);
                continue;
            }
            let first = random.below(50);
            let range = first..first + random.below(10);
            let before = store.clone();
            let mut one_by_one = store.clone();
            let placed = range.clone().try_for_each(|extent| one_by_one.place(id, extent));
            let taken = store.place_all(id, range.clone());
            let at = |store: &Store| places(store, id, range.clone());
            match placed {
                Ok(()) => {
                    assert_eq!(taken, Ok(at(&before) != at(&store)), "seed {seed}");
                    assert_eq!(at(&store), at(&one_by_one), "seed {seed}");
                    all += u64::from(taken == Ok(true));
                }
                Err(StoreError::NoSpace { .. }) => {
                    let Err(StoreError::NoSpace { asked, .. }) = taken else { panic!("{taken:?}") };
                    assert!(asked >= EXTENT && asked <= EXTENT * 20, "{asked}");
                    assert_eq!(space(&store), space(&before), "seed {seed}");
                    assert_eq!(store.staged_size(), before.staged_size(), "seed {seed}");
                    none += 1;
                }
                Err(error) => panic!("{error}"),
            }
            if taken.is_err() {
                volumes.iter().for_each(|&id| assert_eq!(store.volume(id), before.volume(id)));
            }
            assert!(store.is_counted());
        }
        commit(&mut store, &mut disks);
        let again = open(&mut disks).unwrap().store;
        volumes.iter().for_each(|&id| assert_eq!(again.volume(id), store.volume(id)));
        assert!(check(&disks).findings.is_empty());
    }
    assert!(all > 200 && none > 200, "{all} {none}");
}
