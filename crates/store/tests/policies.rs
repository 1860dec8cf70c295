//! The policy that was chosen for a pool: kept over a restart, counted in the metadata, and
//! none in pools that were made before policies were kept.

use crate::common::{BLOCK, Disk, check, commit, disks_of, fill_with_volumes, new_pool, open};
use store::{EXTENT, KeptPolicy, Placement, ServiceKind, StoreError};
use units::Bytes;

fn chosen(name: &str, settings: &[(&str, u64)]) -> KeptPolicy {
    let settings = settings.iter().map(|(name, value)| (name.to_string(), *value)).collect();
    KeptPolicy { name: name.into(), settings }
}

/// An administrator chooses a policy, and the power fails behind the answer.
#[test]
fn the_policy_that_was_chosen_last_is_there_after_a_restart_until_it_is_taken_back() {
    let mut disks = new_pool(1, &[Bytes::mib(16)]);
    let mut store = open(&mut disks).unwrap().store;
    assert_eq!(store.policy(), None);
    store.create("film", EXTENT, &Placement::default()).unwrap();
    store.set_policy(Some(chosen("cfq", &[]))).unwrap();
    assert!(commit(&mut store, &mut disks));
    let ucsb = chosen("ucsb", &[("cycle", 200_000_000), ("register-least", 7)]);
    store.set_policy(Some(ucsb.clone())).unwrap();
    assert!(commit(&mut store, &mut disks));
    store.set_policy(Some(ucsb.clone())).unwrap();
    assert!(!store.dirty(), "nothing new was said");
    // From a record, and, as opening has made one, from a checkpoint.
    for _ in 0..2 {
        assert_eq!(open(&mut disks).unwrap().store.policy(), Some(&ucsb));
    }
    assert!(check(&disks).findings.is_empty(), "{:#?}", check(&disks));
    let mut store = open(&mut disks).unwrap().store;
    store.set_policy(None).unwrap();
    assert!(commit(&mut store, &mut disks));
    for _ in 0..2 {
        assert_eq!(open(&mut disks).unwrap().store.policy(), None);
    }
}

/// It takes room in a checkpoint, so it is refused before that does not suffice.
#[test]
fn a_policy_is_counted_in_the_metadata() {
    let mut disks = new_pool(1, &[Bytes::mib(8)]);
    let mut store = open(&mut disks).unwrap().store;
    let any = Placement::default();
    let (mut made, _) = fill_with_volumes(&mut store, "v");
    let long: Vec<(String, u64)> =
        (0..16).map(|at| (format!("setting-{at:0>24}"), u64::MAX)).collect();
    let long = KeptPolicy { name: "p".repeat(32), settings: long };
    let full = store.set_policy(Some(long.clone()));
    assert!(matches!(full, Err(StoreError::MetadataFull { .. })), "{full:?}");
    assert_eq!(store.policy(), None);
    while store.set_policy(Some(long.clone())).is_err() {
        store.delete(made.pop().unwrap()).unwrap();
    }
    // However full, the checkpoint fits: `commit` asserts it.
    while store.create(&format!("w{}", made.len()), Bytes::ZERO, &any).is_ok() {
        made.push(store.volumes().last().unwrap().id());
    }
    (0..20).for_each(|_| {
        store.set_policy(None).unwrap();
        store.set_policy(Some(long.clone())).unwrap();
        assert!(commit(&mut store, &mut disks));
    });
    assert_eq!(open(&mut disks).unwrap().store.policy(), Some(&long));
}

/// The last program before policies were kept wrote this pool.
#[test]
fn a_pool_of_version_4_has_its_services_and_no_policy_until_one_is_chosen() {
    let text = include_str!("old/version-4.txt");
    let mut disks = disks_of(text, &[Bytes::mib(12), Bytes::mib(10)]);
    let version = |disk: &Disk, block: u64| disk.block(block * BLOCK as u64)[8];
    assert_eq!(version(&disks[0], 16).max(version(&disks[0], 17)), 4);
    let mut store = open(&mut disks).unwrap().store;
    assert_eq!(store.policy(), None);
    let film = store.find("film").unwrap();
    let service = film.service().expect("kept by the older program");
    assert!(matches!(service.kind, ServiceKind::Latency { .. }));
    store.set_policy(Some(chosen("edl", &[]))).unwrap();
    assert!(commit(&mut store, &mut disks));
    let store = open(&mut disks).unwrap().store;
    assert_eq!(store.policy(), Some(&chosen("edl", &[])));
    assert!(store.find("film").unwrap().service().is_some());
    assert!(check(&disks).findings.is_empty(), "{:#?}", check(&disks));
}
