//! Whose a volume is: kept over a restart, counted in the metadata, and root's in pools
//! that were made before volumes had owners.

use crate::common::{BLOCK, Disk, check, commit, disks_of, fill_with_volumes, new_pool, open};
use store::{EXTENT, Ownership, Placement, Store, StoreError, Volume};
use units::Bytes;

const ALICE: Ownership = Ownership { uid: 1000, gid: 100, mode: 0o640 };

fn owners(store: &Store) -> Vec<(&str, Ownership)> {
    store.volumes().map(|volume| (volume.name(), volume.ownership())).collect()
}

#[test]
fn what_is_said_of_an_owner_is_there_after_a_restart() {
    let mut disks = new_pool(1, &[Bytes::mib(16)]);
    let mut store = open(&mut disks).unwrap().store;
    let any = Placement::default();
    let hers = store.create_owned("hers", EXTENT, &any, ALICE).unwrap();
    let given = store.create("given", EXTENT, &any).unwrap();
    store.create("roots", EXTENT, &any).unwrap();
    assert!(commit(&mut store, &mut disks));
    // From a record, and, as opening has made one, from a checkpoint.
    let mut store = open(&mut disks).unwrap().store;
    let before = [("hers", ALICE), ("given", Ownership::ROOT), ("roots", Ownership::ROOT)];
    assert_eq!(owners(&store), before);
    store.set_ownership(given, ALICE).unwrap();
    store.set_ownership(hers, Ownership { uid: 7, ..ALICE }).unwrap();
    assert!(commit(&mut store, &mut disks));
    store.set_ownership(given, ALICE).unwrap();
    assert!(!store.dirty(), "nothing new was said");
    for _ in 0..2 {
        let store = open(&mut disks).unwrap().store;
        let hers = Ownership { uid: 7, ..ALICE };
        let after = [("hers", hers), ("given", ALICE), ("roots", Ownership::ROOT)];
        assert_eq!(owners(&store), after);
    }
    assert!(check(&disks).findings.is_empty(), "{:#?}", check(&disks));
    let gone = store.delete(given).and_then(|()| store.set_ownership(given, ALICE));
    assert_eq!(gone, Err(StoreError::NoSuchVolume { volume: given }));
}

/// Owners take room in a checkpoint, so they are refused before it does not suffice.
#[test]
fn owners_are_counted_in_the_metadata() {
    let mut disks = new_pool(1, &[Bytes::mib(8)]);
    let mut store = open(&mut disks).unwrap().store;
    let (mut made, full) = fill_with_volumes(&mut store, "v");
    assert!(matches!(full, StoreError::MetadataFull { .. }), "{full}");
    // Where one volume less is described, there is room for a few owners.
    store.delete(made.pop().unwrap()).unwrap();
    let room = |error| matches!(error, Err(StoreError::MetadataFull { .. }));
    let given = made.iter().take_while(|id| store.set_ownership(**id, ALICE).is_ok()).count();
    assert!((1..10).contains(&given) && room(store.set_ownership(made[given], ALICE)));
    // To whom it belongs already may change, and a smaller description is always possible.
    store.set_ownership(made[0], Ownership { mode: 0o777, ..ALICE }).unwrap();
    store.set_ownership(made[0], Ownership::ROOT).unwrap();
    store.set_ownership(made[given], ALICE).unwrap();
    // However full, the checkpoint fits: `commit` asserts it.
    (0..20).for_each(|_| {
        store.set_ownership(made[given], Ownership::ROOT).unwrap();
        store.set_ownership(made[given], ALICE).unwrap();
        assert!(commit(&mut store, &mut disks));
    });
    assert_eq!(owners(&open(&mut disks).unwrap().store), owners(&store));
}

/// To the byte: where a name of so many letters is the longest for which there is room, there
/// is none for such a name and an owner.
#[test]
fn a_volume_is_not_made_where_its_owner_would_not_fit() {
    let mut disks = new_pool(1, &[Bytes::mib(8)]);
    let mut store = open(&mut disks).unwrap().store;
    let any = Placement::default();
    let (made, _) = fill_with_volumes(&mut store, &"x".repeat(40));
    store.delete(made[0]).unwrap();
    let longest = (1..100).rev().map(|letters| "y".repeat(letters)).find(|name| {
        let fits = store.create(name, Bytes::ZERO, &any);
        fits.is_ok_and(|id| store.delete(id).is_ok())
    });
    let longest = longest.expect("a name of one letter fits where one of forty did");
    assert!(longest.len() < 99, "the room has an end within what was tried");
    let refused = store.create_owned(&longest, Bytes::ZERO, &any, ALICE);
    assert!(matches!(refused, Err(StoreError::MetadataFull { .. })), "{refused:?}");
    store.create(&longest, Bytes::ZERO, &any).unwrap();
    assert!(commit(&mut store, &mut disks));
}

#[test]
fn the_volumes_of_an_old_pool_are_roots_until_somebody_is_named() {
    let text = include_str!("old/version-2.txt");
    let mut disks = disks_of(text, &[Bytes::mib(12), Bytes::mib(10)]);
    let version = |disk: &Disk, block: u64| disk.block(block * BLOCK as u64)[8];
    assert!(disks[0].used_blocks().any(|block| version(&disks[0], block) == 2));
    let mut store = open(&mut disks).unwrap().store;
    let sizes = |volume: &Volume| (volume.name().to_owned(), volume.size(), volume.length());
    let film = store.find("film").unwrap().clone();
    assert_eq!(sizes(&film), ("film".into(), Bytes::mib(5), Bytes::mib(4) + Bytes::new(5000)));
    assert_eq!(store.locate(film.id(), 4).unwrap().written.watermark(), Bytes::kib(8));
    let names: Vec<&str> = store.volumes().map(Volume::name).collect();
    assert_eq!(names, ["film", "take-1", "take-2", "take-4", "take-5", "take-7", "take-8"]);
    assert!(owners(&store).iter().all(|(_, whose)| *whose == Ownership::ROOT));
    store.set_ownership(film.id(), ALICE).unwrap();
    assert!(commit(&mut store, &mut disks));
    let store = open(&mut disks).unwrap().store;
    assert_eq!(store.find("film").unwrap().ownership(), ALICE);
    assert_eq!(store.find("take-1").unwrap().ownership(), Ownership::ROOT);
    assert!(check(&disks).findings.is_empty(), "{:#?}", check(&disks));
}
