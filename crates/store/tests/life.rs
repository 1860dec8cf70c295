//! The life of a pool, told once from beginning to end.

mod common;

use common::{check, commit, new_pool, open};
use store::{Blocks, CommitId, IoKind, Placement};
use units::Bytes;

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
