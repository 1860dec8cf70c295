//! Volumes that rotate over their disks by longer runs than an extent: where they lie, how
//! they grow, and that they are still there after a restart; and pools of before there were any.

use crate::common::{BLOCK, Disk, Random, check, commit, disks_of, new_pool, open, owner};
use store::{DiskIndex, EXTENT, OwnersSought, Placement, Store, StoreError, Suspect, VolumeId};
use units::Bytes;

fn by_runs(extents: u64) -> Placement {
    Placement { run: EXTENT * extents, ..Placement::default() }
}

/// The disk of each extent of a volume, and its number there.
fn places(store: &Store, id: VolumeId) -> Vec<(u16, u64)> {
    let extents = store.volume(id).unwrap().extents();
    let place = |index| {
        let at = store.locate(id, index).unwrap();
        (at.disk.0, at.offset.unwrap() / EXTENT)
    };
    (0..extents).map(place).collect()
}

/// A user asks for runs of 4 MiB over three disks.
#[test]
fn a_run_lies_on_one_disk_and_the_next_disk_has_the_next_run() {
    let mut disks = new_pool(3, &[Bytes::mib(60); 3]);
    let mut store = open(&mut disks).unwrap().store;
    let id = store.create("film", Bytes::mib(26), &by_runs(4)).unwrap();
    let places = places(&store, id);
    for (run, extents) in (0..).zip(places.chunks(4)) {
        let (disk, first) = extents[0];
        assert_eq!(disk, run % 3);
        let row: Vec<(u16, u64)> = (0..).map(|n| (disk, first + n)).take(extents.len()).collect();
        assert_eq!(extents, row);
    }
    let volume = store.volume(id).unwrap();
    let on = |disk| volume.extents_on(DiskIndex(disk));
    assert_eq!([0, 1, 2].map(on), [10, 8, 8], "6 runs, and 2 MiB of the seventh");
    assert_eq!(volume.placement().run, EXTENT * 4);
    assert_eq!((volume.stretches().count, volume.stretches().shortest), (3, EXTENT * 8));
}

/// It grows within its last run, is cut, the machine is started again, twice.
#[test]
fn what_rotates_by_runs_grows_is_cut_and_stays_over_a_restart() {
    let mut disks = new_pool(2, &[Bytes::mib(80); 2]);
    let mut store = open(&mut disks).unwrap().store;
    let id = store.create("film", Bytes::mib(10), &by_runs(8)).unwrap();
    assert!(commit(&mut store, &mut disks));
    let before = places(&store, id);
    store.resize(id, Bytes::mib(30)).unwrap();
    assert!(commit(&mut store, &mut disks));
    let grown = places(&store, id);
    assert_eq!(grown[..10], before, "nothing that is there moves");
    assert!(grown[8..16].windows(2).all(|two| two[0].1 + 1 == two[1].1), "{grown:?}");
    store.resize(id, Bytes::mib(21)).unwrap();
    assert!(commit(&mut store, &mut disks));
    for _ in 0..2 {
        let store = open(&mut disks).unwrap().store;
        let film = store.find("film").unwrap();
        assert_eq!(film.placement().run, EXTENT * 8);
        assert_eq!(places(&store, film.id()), grown[..21]);
        assert!(check(&disks).findings.is_empty(), "{:#?}", check(&disks));
    }
}

/// Others have left holes of 3 MiB, and one of 9.
#[test]
fn holes_too_short_for_a_run_are_used_last_and_the_volume_says_so() {
    let mut disks = new_pool(1, &[Bytes::mib(60)]);
    let mut store = open(&mut disks).unwrap().store;
    let any = Placement::default();
    let small: Vec<_> = (0..8)
        .map(|n| store.create(&format!("v{n}"), Bytes::mib(if n == 6 { 9 } else { 3 }), &any))
        .map(Result::unwrap)
        .collect();
    let rest = store.space().free;
    store.create("rest", rest, &any).unwrap();
    for n in [0, 2, 4, 6] {
        store.delete(small[n]).unwrap();
    }
    assert!(commit(&mut store, &mut disks));
    let id = store.create("film", Bytes::mib(8), &by_runs(4)).unwrap();
    let stretches = |store: &Store, id| store.volume(id).unwrap().stretches();
    assert_eq!(stretches(&store, id).count, 1, "in the hole of 9 MiB");
    let id = store.create("take", Bytes::mib(6), &by_runs(4)).unwrap();
    assert_eq!(stretches(&store, id).count, 2);
    assert_eq!(stretches(&store, id).shortest, Bytes::mib(3));
    let take = store.volume(id).unwrap();
    let pieces = [1, 2, 4, 8, 16].map(|extents| take.pieces_on(DiskIndex(0), extents));
    assert_eq!(pieces, [1, 2, 2, 2, 2], "the second begins in the middle of a block");
}

/// Holes of 5 and 6 MiB hold a run of 4 MiB each, and a film of two runs takes these.
#[test]
fn a_run_is_taken_whole_where_a_longer_hole_would_only_hold_more_of_it() {
    let mut disks = new_pool(1, &[Bytes::mib(60)]);
    let mut store = open(&mut disks).unwrap().store;
    let any = Placement::default();
    let made: Vec<_> = [5, 1, 6, 1]
        .iter()
        .enumerate()
        .map(|(n, &mib)| store.create(&format!("v{n}"), Bytes::mib(mib), &any).unwrap())
        .collect();
    store.create("rest", store.space().free, &any).unwrap();
    store.delete(made[0]).unwrap();
    store.delete(made[2]).unwrap();
    assert!(commit(&mut store, &mut disks));
    let id = store.create("film", Bytes::mib(8), &by_runs(4)).unwrap();
    let film = store.volume(id).unwrap();
    assert_eq!(film.pieces_on(DiskIndex(0), 4), 1, "{:?}", places(&store, id));
    assert_eq!(film.stretches().shortest, Bytes::mib(4));
}

/// Volumes come, grow and go at random until the space is in pieces; each is looked at extent by
/// extent: how many runs it has, and into how many a block of each length falls at the most.
#[test]
fn what_a_volume_says_of_its_runs_is_what_its_map_says() {
    let mut random = Random::new(16);
    let (mut volumes, mut pieces_seen) = (0, std::collections::BTreeSet::new());
    for round in 0..60 {
        let mut disks =
            new_pool(1 + round % 3, &[Bytes::mib(90), Bytes::mib(90)][..1 + round as usize % 2]);
        let mut store = open(&mut disks).unwrap().store;
        for step in 0..25 {
            let placement = by_runs(1 << random.below(5));
            let _ = store.create(&format!("v{step}"), Bytes::mib(random.below(24)), &placement);
            let ids: Vec<VolumeId> = store.volumes().map(|volume| volume.id()).collect();
            let any = ids[random.index(ids.len())];
            match random.below(4) {
                0 => store.delete(any).unwrap(),
                1 => drop(store.resize(any, Bytes::mib(random.below(30)))),
                _ => {}
            }
            if store.dirty() {
                assert!(commit(&mut store, &mut disks));
            }
        }
        for volume in store.volumes() {
            volumes += 1;
            let (run, k) = (volume.placement().run / EXTENT, volume.placement().disks.len() as u64);
            let (mut count, mut shortest) = (0, u64::MAX);
            for disk in 0..k {
                // The extents on a disk, in the volume's order.
                let own = (0..volume.extents()).filter(|index| index / run % k == disk);
                let at: Vec<u64> = own
                    .map(|index| store.locate(volume.id(), index).unwrap().offset.unwrap() / EXTENT)
                    .collect();
                assert_eq!(volume.extents_on(DiskIndex(disk as u16)), at.len() as u64);
                for stretch in at.chunk_by(|a, b| a + 1 == *b) {
                    count += 1;
                    shortest = shortest.min(stretch.len() as u64);
                }
                for extents in [1, 2, 4, 8, 16] {
                    let of = |block: &[u64]| block.chunk_by(|a, b| a + 1 == *b).count() as u32;
                    let most = at.chunks(extents as usize).map(of).max().unwrap_or(1);
                    assert_eq!(volume.pieces_on(DiskIndex(disk as u16), extents), most);
                    let apart = |block: &&[u64]| of(block) > 1;
                    let reach = |block: &[u64]| {
                        EXTENT * (block.iter().max().unwrap() - block.iter().min().unwrap() + 1)
                    };
                    let most = at.chunks(extents as usize).filter(apart).map(reach).max();
                    assert_eq!(volume.reach_on(DiskIndex(disk as u16), extents), most);
                    pieces_seen.insert(most);
                }
            }
            let shortest = if count == 0 { Bytes::ZERO } else { EXTENT * shortest };
            assert_eq!((volume.stretches().count, volume.stretches().shortest), (count, shortest));
        }
    }
    assert!(volumes > 200 && pieces_seen.len() > 3, "{volumes} volumes, {pieces_seen:?} pieces");
}

#[test]
fn a_run_is_a_power_of_two_of_extents_up_to_16_mib() {
    let mut disks = new_pool(1, &[Bytes::mib(60)]);
    let mut store = open(&mut disks).unwrap().store;
    for run in [Bytes::mib(3), Bytes::mib(32), EXTENT + Bytes::new(1)] {
        let placement = Placement { run, ..Placement::default() };
        let error = store.create("film", Bytes::mib(8), &placement).unwrap_err();
        assert_eq!(error, StoreError::BadRun { run });
    }
    assert_eq!(store.volumes().len(), 0);
}

/// The last program before runs were kept wrote this pool.
#[test]
fn the_volumes_of_an_old_pool_rotate_by_extents() {
    let text = include_str!("old/version-4.txt");
    let mut disks = disks_of(text, &[Bytes::mib(12), Bytes::mib(10)]);
    let version = |disk: &Disk, block: u64| disk.block(block * BLOCK as u64)[8];
    assert_eq!(version(&disks[0], 16).max(version(&disks[0], 17)), 4);
    let mut store = open(&mut disks).unwrap().store;
    let film = store.find("film").unwrap().clone();
    assert_eq!((film.placement().run, film.length()), (EXTENT, Bytes::new(5000)));
    let places = places(&store, film.id());
    assert_eq!(places.iter().map(|place| place.0).collect::<Vec<_>>(), [0, 1, 0]);
    let id = store.create("long", Bytes::mib(4), &by_runs(2)).unwrap();
    assert!(commit(&mut store, &mut disks));
    let store = open(&mut disks).unwrap().store;
    assert_eq!(store.volume(id).unwrap().placement().run, EXTENT * 2);
    assert_eq!(store.find("film").unwrap().placement().run, EXTENT);
    assert!(check(&disks).findings.is_empty(), "{:#?}", check(&disks));
}

/// Volumes of many runs on two disks; the owners of suspect places are looked for in steps of any length,
/// between which volumes are made, grow, are cut, deleted, and have an extent moved.
#[test]
fn owners_of_suspect_places_are_found_in_steps_while_volumes_change() {
    let (mut found_in_all, mut steps) = (0, 0);
    for seed in 0..60 {
        let mut random = Random::new(seed);
        let mut disks = new_pool(2, &[Bytes::mib(90); 2]);
        let mut store = open(&mut disks).unwrap().store;
        let mut made = 0;
        let mut change = |store: &mut Store, random: &mut Random| {
            let all: Vec<VolumeId> = store.volumes().map(|volume| volume.id()).collect();
            let one = (!all.is_empty()).then(|| all[random.index(all.len())]);
            let size = EXTENT * (1 + random.below(12));
            match (random.below(6), one) {
                (0, Some(id)) => store.delete(id).unwrap(),
                (1 | 2, Some(id)) => drop(store.resize(id, size)),
                (3, Some(id)) => {
                    let index = random.below(store.volume(id).unwrap().extents());
                    if let Ok(to) = store.reserve(id, index) {
                        store.relocate(id, index, to).unwrap();
                    }
                }
                _ => {
                    made += 1;
                    drop(store.create(&format!("v{made}"), size, &Placement::default()));
                }
            }
        };
        for turn in 0..120 {
            change(&mut store, &mut random);
            if turn % 8 == 0 {
                assert!(commit(&mut store, &mut disks));
            }
        }
        let on = DiskIndex(random.below(2) as u16);
        let suspect = |extent| Suspect { extent, errors: 1, slow: 0, commands: 1 };
        let all: Vec<u32> = (0..90).filter(|_| random.below(3) == 0).collect();
        store.suspect(on, all.iter().copied().map(suspect).collect());
        let taken = store.taken(on, all.iter().map(|&extent| extent.into()));
        let owners = |store: &Store| {
            let mut all_on: Vec<(u64, (VolumeId, u64))> = Vec::new();
            for volume in store.volumes() {
                for (index, (disk, extent)) in (0..).zip(places(store, volume.id())) {
                    if disk == on.0 && all.contains(&(extent as u32)) {
                        all_on.push((extent, (volume.id(), index)));
                    }
                }
            }
            all_on.sort_unstable();
            all_on
        };
        let before = owners(&store);
        assert!(before.iter().all(|(extent, _)| taken.contains(extent)));
        let mut sought = OwnersSought::default();
        loop {
            steps += 1;
            let mut left = 1 + random.below(9);
            if store.seek_owners(on, &taken, &mut sought, &mut left) {
                break;
            }
            assert_eq!(left, 0, "a step ends before its time");
            change(&mut store, &mut random);
        }
        let found = store.owners_found(on, &sought);
        let after = owners(&store);
        assert!(found.is_sorted() && found.iter().all(|one| after.contains(one)), "seed {seed}");
        let stayed = before.iter().filter(|one| after.contains(one));
        for one in stayed {
            assert!(found.contains(one), "seed {seed}: {one:?} is not found");
            assert_eq!(owner(&store, on, one.0), Some(one.1));
            found_in_all += 1;
        }
    }
    assert!(found_in_all > 300 && steps > 600, "{found_in_all} in {steps} steps");
}
