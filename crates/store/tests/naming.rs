//! Names that are paths, renames and times: kept over a restart, counted in the metadata, and
//! none in pools that were made before volumes had them.

use crate::common::{Disk, Random, check, commit, disks_of, fill_with_volumes, new_pool, open};
use std::collections::BTreeMap;
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

/// Names of volumes, their numbers, and whether they are directories.
type Model = BTreeMap<String, (VolumeId, bool)>;

/// What becomes of the names; none where the renames are to be refused.
fn renamed(
    before: &Model,
    renames: &[(VolumeId, String)],
    removed: Option<VolumeId>,
) -> Option<Model> {
    let mut after = before.clone();
    let name_of = |model: &Model, id| {
        model.iter().find(|(_, (other, _))| *other == id).map(|(name, _)| name.clone())
    };
    if let Some(removed) = removed {
        after.remove(&name_of(&after, removed)?);
    }
    for (id, name) in renames {
        let old = name_of(&after, *id)?;
        if after.contains_key(name) || name.starts_with('/') || name.ends_with('/') {
            return None;
        }
        let volume = after.remove(&old)?;
        after.insert(name.clone(), volume);
    }
    let is_under = |name: &str, file: &str| name.starts_with(&format!("{file}/"));
    let mut files = after.iter().filter(|(_, (_, is_directory))| !is_directory);
    let is_bad = files.any(|(file, _)| after.keys().any(|name| is_under(name, file)));
    (!is_bad).then_some(after)
}

#[test]
fn any_list_of_renames_is_refused_or_leaves_the_names_that_it_says() {
    const NAMES: [&str; 12] =
        ["a", "a/x", "a/y", "a/x/z", "b", "b/x", "b/x/z", "c", "c/x", "d", "/1", "c/"];
    let (mut done, mut refused) = (0, 0);
    for seed in 0..60 {
        let mut random = Random::new(seed);
        let (mut disks, mut store) = pool();
        let mut model = Model::new();
        for name in &NAMES[..10] {
            let kind = if random.once_in(2) { Ownership::DIRECTORY } else { 0 };
            let mut with_it = model.clone();
            with_it.insert("new".into(), (VolumeId(0), kind != 0));
            let is_free = renamed(&with_it, &[(VolumeId(0), (*name).into())], None).is_some();
            if is_free && !random.once_in(3) {
                let whose = Ownership { mode: 0o700 | kind, ..Ownership::ROOT };
                let id = store.create_owned(name, Bytes::ZERO, &Placement::default(), whose);
                model.insert((*name).into(), (id.unwrap(), kind != 0));
            }
        }
        for _ in 0..60 {
            let some = |random: &mut Random| VolumeId(1 + random.below(7));
            let name = |random: &mut Random| NAMES[random.index(NAMES.len())].to_string();
            let length = 1 + random.index(3);
            let renames: Vec<_> =
                (0..length).map(|_| (some(&mut random), name(&mut random))).collect();
            let removed = random.once_in(8).then(|| some(&mut random));
            let ended = store.rename(&renames, removed);
            let after = renamed(&model, &renames, removed);
            assert_eq!(ended.is_ok(), after.is_some(), "{renames:?} {removed:?} of {model:?}");
            done += u32::from(ended.is_ok());
            refused += u32::from(ended.is_err());
            model = after.unwrap_or(model);
            if random.once_in(5) {
                commit(&mut store, &mut disks);
                store = open(&mut disks).unwrap().store;
            }
            let all = store.named("", "");
            assert!(all.eq(model.iter().map(|(name, (id, _))| (name.as_str(), *id))));
        }
    }
    assert!(done > 100 && refused > 100, "{done} {refused}");
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
    // Space comes and goes: nothing is written by that.
    for size in [EXTENT * 3, EXTENT] {
        store.resize(volume, size).unwrap();
        assert_eq!(store.volume(volume).unwrap().times(), Some(said), "{size}");
    }
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

/// A file that was open could not be removed from a pool whose metadata were full.
#[test]
fn any_file_gets_the_name_of_a_removed_one_however_full_the_metadata_are() {
    let mut disks = new_pool(1, &[Bytes::mib(8)]);
    let mut store = open(&mut disks).unwrap().store;
    let (made, full) = fill_with_volumes(&mut store, "v");
    assert!(matches!(full, StoreError::MetadataFull { .. }), "{full}");
    while store.reserve_scattered() {}
    store.set_clock(7);
    made.iter().for_each(|id| store.note_length(*id, Bytes::ZERO));
    let name = |prefix: &str, number: usize| format!("{prefix}{number:0>62}");
    for (number, id) in made.iter().enumerate() {
        store.rename(&[(*id, name("a/", number))], None).unwrap();
    }
    assert!(store.rename(&[(made[0], "x".repeat(90))], None).is_err());
    // In the place of another one that goes there is room for a longer name, and for that of one that stays.
    store.rename(&[(made[0], "x".repeat(90))], Some(made[1])).unwrap();
    store.rename(&[(made[2], name("b/", 2)), (made[3], name("a/", 2))], None).unwrap();
    assert!(commit(&mut store, &mut disks));
    let after = open(&mut disks).unwrap().store;
    assert_eq!((after.volumes().len(), names(&after)), (made.len() - 1, names(&store)));
}

/// `df -i` promises them.
#[test]
fn there_is_room_for_as_many_volumes_as_is_said() {
    let mut disks = new_pool(2, &[Bytes::mib(900), Bytes::mib(500)]);
    let mut store = open(&mut disks).unwrap().store;
    store.set_clock(7);
    let any = Placement::default();
    let hers = Ownership { uid: 7, gid: 7, mode: 0o644 };
    let promised = store.volumes_room();
    assert!(promised > 400, "{promised}");
    for number in 0..promised {
        let id = store.create_owned(&format!("{number:0>64}"), Bytes::ZERO, &any, hers).unwrap();
        store.resize(id, EXTENT).unwrap();
        store.note_length(id, EXTENT);
        assert!(store.volume(id).unwrap().times().is_some());
        let left = store.volumes_room();
        assert!(left >= promised - 1 - number, "{left} are left of {promised} behind {number}");
    }
    assert!(commit(&mut store, &mut disks));
}
