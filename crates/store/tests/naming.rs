//! Names that are paths, renames and times: kept over a restart, counted in the metadata, and
//! none in pools that were made before volumes had them.

mod common;

use common::{Disk, check, commit, disks_of, fill_with_volumes, new_pool, open};
use store::{EXTENT, Ownership, Placement, Store, StoreError, Times, VolumeId};
use units::Bytes;

fn names(store: &Store) -> Vec<&str> {
    store.volumes().map(|volume| volume.name()).collect()
}

fn pool() -> (Vec<Disk>, Store) {
    let mut disks = new_pool(1, &[Bytes::mib(16)]);
    let store = open(&mut disks).unwrap().store;
    (disks, store)
}

#[test]
fn renames_are_there_after_a_restart_from_records_and_from_a_checkpoint() {
    let (mut disks, mut store) = pool();
    let any = Placement::default();
    let [a, b, c] = ["a", "b", "d/c"].map(|name| store.create(name, EXTENT, &any).unwrap());
    assert!(commit(&mut store, &mut disks));
    store.rename(&[(a, "d/a b".into())], None).unwrap();
    // In the place of one that goes, and of one that stays under another name.
    store.rename(&[(b, "d/c".into())], Some(c)).unwrap();
    let d = store.create("b", EXTENT, &any).unwrap();
    store.rename(&[(b, "kept".into()), (d, "d/c".into())], None).unwrap();
    let after = ["d/a b", "kept", "d/c"];
    assert_eq!(names(&store), after);
    assert!(commit(&mut store, &mut disks));
    for _ in 0..2 {
        let store = open(&mut disks).unwrap().store;
        assert_eq!(names(&store), after);
        assert_eq!(store.find("d/c").unwrap().id(), d);
        assert_eq!(store.find(&format!("/{}", b.0)).unwrap().name(), "kept");
        assert!(store.find("a").is_none() && store.find(&format!("/{}", c.0)).is_none());
        let below: Vec<_> = store.named("d/", "d/").map(|(name, _)| name).collect();
        assert_eq!(below, ["d/a b", "d/c"]);
        let rest: Vec<_> = store.named("d/", "d/b").map(|(name, _)| name).collect();
        assert_eq!(rest, ["d/c"]);
    }
    assert!(check(&disks).findings.is_empty(), "{:#?}", check(&disks));
}

#[test]
fn a_rename_that_is_refused_changes_nothing() {
    let (mut disks, mut store) = pool();
    let any = Placement::default();
    let [a, b] = ["a", "b"].map(|name| store.create(name, EXTENT, &any).unwrap());
    assert!(commit(&mut store, &mut disks));
    let taken = store.rename(&[(a, "c".into()), (b, "b2".into()), (a, "b".into())], None);
    assert_eq!(taken, Ok(()), "the name was given up in the same step");
    assert_eq!(names(&store), ["b", "b2"]);
    for (renames, removed) in [
        (vec![(b, "x".to_string()), (a, "x/../y".into())], None),
        (vec![(b, "b".into())], None),
        (vec![(b, "x".into()), (VolumeId(99), "y".into())], None),
        (vec![(a, "x".repeat(256))], Some(b)),
    ] {
        assert!(store.rename(&renames, removed).is_err(), "{renames:?}");
        assert_eq!(names(&store), ["b", "b2"]);
    }
}

#[test]
fn longer_names_and_times_are_counted_in_the_metadata() {
    let mut disks = new_pool(1, &[Bytes::mib(8)]);
    let mut store = open(&mut disks).unwrap().store;
    let (mut made, full) = fill_with_volumes(&mut store, "v");
    assert!(matches!(full, StoreError::MetadataFull { .. }), "{full}");
    let full = |ended| matches!(ended, Err(StoreError::MetadataFull { .. }));
    let long = "x".repeat(255);
    assert!(full(store.rename(&[(made[0], long.clone())], None)));
    // Writes leave no times where there is no room, and are none the worse for it.
    store.set_clock(7);
    let without = made.iter().rev().take_while(|id| {
        store.note_length(**id, Bytes::ZERO);
        store.volume(**id).unwrap().times().is_some()
    });
    assert!(without.count() < 20);
    store.delete(made.pop().unwrap()).unwrap();
    store.delete(made.pop().unwrap()).unwrap();
    store.rename(&[(made[0], "short".into())], None).unwrap();
    assert!(commit(&mut store, &mut disks));
    assert!(open(&mut disks).is_ok());
}

#[test]
fn times_are_those_of_the_last_write_or_what_somebody_said_since() {
    let (mut disks, mut store) = pool();
    let volume = store.create("v", EXTENT, &Placement::default()).unwrap();
    store.note_length(volume, Bytes::new(5));
    assert_eq!(store.volume(volume).unwrap().times(), None, "nobody has said what time it is");
    store.set_clock(-7);
    store.note_length(volume, Bytes::new(5));
    let written = Times { accessed: 0, modified: -7, changed: -7 };
    assert_eq!(store.volume(volume).unwrap().times(), Some(written));
    assert!(store.dirty() && commit(&mut store, &mut disks));
    let mut store = open(&mut disks).unwrap().store;
    assert_eq!(store.volume(volume).unwrap().times(), Some(written));
    store.set_clock(9);
    store.note_length(volume, Bytes::new(9));
    let said = Times { accessed: i64::MAX, modified: i64::MIN, changed: 9 };
    store.set_times(volume, said).unwrap();
    store.set_clock(10);
    store.rename(&[(volume, "w".into())], None).unwrap();
    store.set_ownership(volume, Ownership { mode: 0o644, ..Ownership::ROOT }).unwrap();
    assert!(commit(&mut store, &mut disks));
    for _ in 0..2 {
        let store = open(&mut disks).unwrap().store;
        let after = Times { changed: 10, ..said };
        assert_eq!(store.volume(volume).unwrap().times(), Some(after));
    }
}

#[test]
fn a_volume_is_a_directory_or_a_link_from_its_making_on() {
    let (mut disks, mut store) = pool();
    for (name, kind) in [("d", Ownership::DIRECTORY), ("l", Ownership::LINK), ("f", 0)] {
        let whose = Ownership { mode: 0o755 | kind, ..Ownership::ROOT };
        store.create_owned(name, Bytes::ZERO, &Placement::default(), whose).unwrap();
    }
    assert!(commit(&mut store, &mut disks));
    let store = open(&mut disks).unwrap().store;
    let kinds: Vec<_> = store.volumes().map(|volume| volume.ownership().kind()).collect();
    assert_eq!(kinds, [Ownership::DIRECTORY, Ownership::LINK, 0]);
    assert!(!Ownership::is_mode(0o100_000) && !Ownership::is_mode(0o1000));
}

#[test]
fn the_volumes_of_a_pool_of_version_4_have_no_times_until_they_are_used() {
    let mut disks = disks_of(include_str!("old/version-4.txt"), &[Bytes::mib(12), Bytes::mib(10)]);
    let mut store = open(&mut disks).unwrap().store;
    assert!(store.volumes().len() > 0 && store.volumes().all(|volume| volume.times().is_none()));
    let volume = store.volumes().next().unwrap().id();
    store.set_clock(3);
    store.rename(&[(volume, "under/a/directory".into())], None).unwrap();
    store.note_length(volume, Bytes::ZERO);
    assert!(commit(&mut store, &mut disks));
    let store = open(&mut disks).unwrap().store;
    let found = store.find("under/a/directory").unwrap();
    assert_eq!((found.id(), found.times().map(|times| times.modified)), (volume, Some(3)));
}
