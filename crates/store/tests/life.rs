//! The life of a pool, told once from beginning to end.

use crate::common;
use crate::common::{check, commit, disk, new_pool, open};
use store::{
    BLOCK, Blocks, CommitId, CountedBy, EXTENT, Holding, IoKind, Ownership, Placement, Store,
};
use units::{Bytes, Duration};

#[test]
fn a_pool_is_made_used_closed_and_opened_again() {
    let mut disks = new_pool(1, &[Bytes::mib(16), Bytes::mib(24)]);
    let opened = open(&mut disks).unwrap();
    let mut store = opened.store;
    assert_eq!(store.profile(common::disk(1)), common::profile(1));
    let id = store.create("film", Bytes::mib(5), &Placement::default()).unwrap();
    let place = store.locate(id, 4).unwrap();
    assert_eq!((place.disk, place.written), (common::disk(0), Blocks::NONE));
    store.note_written(id, 4, &Blocks::first(Bytes::kib(8)));
    store.note_length(id, Bytes::mib(4) + Bytes::new(5000));
    assert!(commit(&mut store, &mut disks));
    assert_eq!(store.committed(), CommitId(1));
    assert!(!commit(&mut store, &mut disks), "nothing changed");
    drop(store);

    let store = open(&mut disks).unwrap().store;
    let film = store.find("film").unwrap();
    assert_eq!((film.size(), film.length()), (Bytes::mib(5), Bytes::mib(4) + Bytes::new(5000)));
    assert_eq!(store.locate(film.id(), 4).unwrap().written, Blocks::first(Bytes::kib(8)));
    let report = check(&disks);
    assert!(report.findings.is_empty(), "{:#?}", report.findings);
    assert_eq!(report.volumes, std::slice::from_ref(film));
}

/// To note a volume as a whole is to note each of its extents, whatever was known of it before, and
/// whether the length is told before or behind that.
#[test]
fn a_full_volume_is_one_with_each_extent_written() {
    let part = Blocks::of(&(Bytes::kib(64)..Bytes::kib(128)));
    let written = |is_whole: bool, is_length_first: bool| {
        let mut disks = new_pool(1, &[Bytes::mib(16), Bytes::mib(24)]);
        let mut store = open(&mut disks).unwrap().store;
        let length = Bytes::mib(6) + Bytes::new(77);
        let id = store.create("film", Bytes::mib(9), &Placement::default()).unwrap();
        assert!(store.reserve_scattered());
        store.note_written(id, 2, &part);
        if is_length_first {
            store.note_length(id, length);
        }
        match is_whole {
            true => store.note_full(id),
            false => (0..9).for_each(|at| store.note_written(id, at, &Blocks::first(Bytes::MIB))),
        }
        store.note_length(id, length);
        assert!(store.is_ahead(id, &(Bytes::mib(7)..Bytes::mib(9))));
        assert!(commit(&mut store, &mut disks));
        let film = store.find("film").unwrap().clone();
        (film, check(&disks).volumes, store.space())
    };
    for is_length_first in [false, true] {
        let (film, recovered, space) = written(true, is_length_first);
        assert_eq!((film, recovered, space), written(false, is_length_first));
    }
}

/// A small pool's log holds seven records; then a checkpoint empties it.
#[test]
fn the_log_is_used_to_its_end_before_it_is_replaced() {
    let mut disks = new_pool(1, &[Bytes::mib(8)]);
    let mut store = open(&mut disks).unwrap().store;
    let id = store.create("film", Bytes::mib(1), &Placement::default()).unwrap();
    let mut checkpoints = 0;
    for n in 1..=80 {
        store.note_length(id, Bytes::new(n));
        assert!(store.commit().is_some());
        while let Some(io) = store.poll() {
            if let IoKind::Write { bytes, .. } = &io.kind {
                checkpoints += u64::from(bytes.starts_with(b"SLKCHECK"));
            }
            let result = disks[0].do_io(&io.kind);
            store.done(io.id, result);
        }
    }
    assert_eq!(checkpoints, 2 * 80 / 8);
    assert_eq!(open(&mut disks).unwrap().store.volume(id).unwrap().length(), Bytes::new(80));
}

#[test]
fn what_changes_nothing_asks_for_no_commit() {
    let mut disks = new_pool(1, &[Bytes::mib(16), Bytes::mib(16)]);
    let mut store = open(&mut disks).unwrap().store;
    let id = store.create("v", Bytes::mib(3), &Placement::default()).unwrap();
    store.note_length(id, Bytes::new(77));
    while store.dirty() {
        commit(&mut store, &mut disks);
    }
    store.resize(id, Bytes::mib(3)).unwrap();
    assert!(!store.dirty(), "the size that it has");
    store.note_length(id, Bytes::new(77));
    store.note_length(id, Bytes::new(76));
    assert!(!store.dirty(), "the length that it has, or less");
    store.note_length(id, Bytes::new(78));
    assert!(store.dirty());
}

/// The room of the pool is that of its disks, also while extents are on their way back.
#[test]
fn the_room_of_a_pool_is_that_of_its_disks() {
    let mut disks = new_pool(1, &[Bytes::mib(16), Bytes::mib(24)]);
    let mut store = open(&mut disks).unwrap().store;
    let ids: Vec<_> = (0..3)
        .map(|i| store.create(&format!("v{i}"), Bytes::mib(3), &Placement::default()).unwrap())
        .collect();
    commit(&mut store, &mut disks);
    store.delete(ids[1]).unwrap();
    let (all, one, two) = (store.space(), store.space_on(disk(0)), store.space_on(disk(1)));
    assert_eq!(all.total, one.total + two.total);
    assert_eq!(all.used, one.used + two.used);
    assert_eq!(all.free, one.free + two.free);
    assert_eq!(all.freeing, one.freeing + two.freeing);
    assert_eq!(all.used, Bytes::mib(6));
    assert!(!one.freeing.is_zero() && !two.freeing.is_zero());
}

/// A number is given to one volume only, also where no record speaks of it any more: whoever has kept
/// it would find another volume's bytes.
#[test]
fn a_number_that_was_lost_in_a_crash_is_not_given_out_again() {
    let mut disks = new_pool(1, &[Bytes::mib(16)]);
    let mut given = Vec::new();
    for life in 0..6 {
        let mut store = open(&mut disks).unwrap().store;
        for volume in 0..3 {
            let name = format!("v{life}-{volume}");
            let id = store.create(&name, Bytes::ZERO, &Placement::default()).unwrap();
            assert!(!given.contains(&id), "life {life}: {id:?} of {given:?}");
            given.push(id);
            if volume == 0 && life % 2 == 0 {
                commit(&mut store, &mut disks);
            }
        }
    } // and is gone with what was not committed
    let store = open(&mut disks).unwrap().store;
    assert_eq!(store.volumes().len(), 3);
    assert!(given.iter().all(|id| id.0 < 6 << 24), "there are enough of them: {given:?}");
    assert!(check(&disks).findings.is_empty());
}

/// A change of one volume looks at none of the others: with a thousand of them a pool is not slower.
#[test]
fn a_change_of_a_volume_costs_no_look_at_all_volumes() {
    let mut disks = new_pool(1, &[Bytes::mib(200), Bytes::mib(200)]);
    let mut store = open(&mut disks).unwrap().store;
    store.set_clock(1_790_000_000_000_000_000);
    for number in 0..100 {
        store.create(&format!("v{number}"), Bytes::ZERO, &Placement::default()).unwrap();
    }
    let (root, any) = (Ownership::ROOT, Placement::default());
    let ring = store.create_ring("ring", Bytes::mib(32), &any, root).unwrap();
    let thin = Placement { thin: true, ..Placement::default() };
    let thin = store.create_ring("thin", Bytes::mib(32), &thin, root).unwrap();
    store.keep_for(ring, Some(Duration::from_secs(60))).unwrap();
    for round in 0..40 {
        for id in [ring, thin] {
            let extent = round * 16;
            store.give_up(id, EXTENT * (extent + 16));
            commit(&mut store, &mut disks);
            for (disk, range) in store.take_vacated() {
                let extents = (range.start / EXTENT)..(range.end / EXTENT);
                extents.for_each(|extent| store.give_back_held(disk, EXTENT * extent));
            }
            store.place(id, extent).unwrap();
            store.note_arrived(id, EXTENT * extent, EXTENT * (extent + 16));
            store.note_written(id, extent, &Blocks::first(EXTENT));
            store.note_length(id, EXTENT * (extent + 1));
        }
        let name = format!("w{round}");
        let id = store.create(&name, Bytes::mib(2), &any).unwrap();
        store.resize(id, Bytes::mib(3)).unwrap();
        store.note_written(id, 0, &Blocks::first(BLOCK));
        store.note_length(id, BLOCK);
        let to = store.reserve(id, 0).unwrap();
        store.relocate(id, 0, to).unwrap();
        store.rename(&[(id, format!("renamed{round}"))], None).unwrap();
        store.set_ownership(id, Ownership { uid: 7, ..root }).unwrap();
        store.truncate(id, Bytes::ZERO).unwrap();
        commit(&mut store, &mut disks);
        store.delete(id).unwrap();
        commit(&mut store, &mut disks);
    }
    // What somebody has is known without one as well.
    let owned = Ownership { uid: 7, gid: 9, ..root };
    let one = store.create_owned("one", Bytes::mib(2), &any, owned).unwrap();
    store.create_owned("two", Bytes::mib(3), &any, owned).unwrap();
    let has = |store: &Store, whose| {
        let Holding { space, volumes } = store.holding(whose);
        (space / EXTENT, volumes)
    };
    assert_eq!(has(&store, CountedBy::User(7)), (5, 2));
    store.resize(one, Bytes::mib(4)).unwrap();
    store.set_ownership(one, Ownership { gid: 10, ..owned }).unwrap();
    assert_eq!([9, 10].map(|gid| has(&store, CountedBy::Group(gid))), [(3, 1), (4, 1)]);
    assert_eq!([7, 8].map(|uid| has(&store, CountedBy::User(uid))), [(7, 2), (0, 0)]);
    store.delete(one).unwrap();
    assert_eq!(
        (has(&store, CountedBy::User(7)), has(&store, CountedBy::Group(10))),
        ((3, 1), (0, 0))
    );
    assert_eq!(store.walks(), 1, "when the pool was opened");
    commit(&mut store, &mut disks);
    store = open(&mut disks).unwrap().store;
    assert_eq!(has(&store, CountedBy::User(7)), (3, 1));
}
