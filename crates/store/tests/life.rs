//! The life of a pool, told once from beginning to end.

mod common;

use common::{check, commit, new_pool, open};
use store::{CommitId, Placement};
use units::Bytes;

#[test]
fn a_pool_is_made_used_closed_and_opened_again() {
    let mut disks = new_pool(1, &[Bytes::mib(16), Bytes::mib(24)]);
    let opened = open(&mut disks).unwrap();
    let mut store = opened.store;
    assert_eq!(store.profile(common::disk(1)), common::profile(1));
    let id = store.create("film", Bytes::mib(5), &Placement::default()).unwrap();
    let place = store.locate(id, 4).unwrap();
    assert_eq!((place.disk, place.written), (common::disk(0), Bytes::ZERO));
    store.note_written(id, 4, Bytes::kib(8));
    store.note_length(id, Bytes::mib(4) + Bytes::new(5000));
    assert!(commit(&mut store, &mut disks));
    assert_eq!(store.committed(), CommitId(1));
    assert!(!commit(&mut store, &mut disks), "nothing changed");
    drop(store);

    let store = open(&mut disks).unwrap().store;
    let film = store.find("film").unwrap();
    assert_eq!((film.size(), film.length()), (Bytes::mib(5), Bytes::mib(4) + Bytes::new(5000)));
    assert_eq!(store.locate(film.id(), 4).unwrap().written, Bytes::kib(8));
    let report = check(&disks);
    assert!(report.findings.is_empty(), "{:#?}", report.findings);
    assert_eq!(report.volumes, std::slice::from_ref(film));
}
