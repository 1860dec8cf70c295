//! How a volume is served: kept over a restart, counted in the metadata, and as by default in
//! pools that were made before services were kept.

use crate::common::{BLOCK, Disk, check, commit, disks_of, fill_with_volumes, new_pool, open};
use store::{
    EXTENT, Ownership, Placement, Service, ServiceKind, ServicePriority, Store, StoreError, Volume,
};
use units::{Bytes, Duration, Rate};

const AT_A_RATE: Service = Service {
    given_by: 1000,
    kind: ServiceKind::Rate {
        rate: Rate::per_second(2_000_000),
        block: Bytes::kib(64),
        period: Duration::from_secs(1),
    },
};

const IN_TIME: Service = Service {
    given_by: 0,
    kind: ServiceKind::Latency {
        len: Bytes::kib(4),
        within: Duration::from_millis(150),
        every: Duration::from_millis(500),
    },
};

const LAST: Service = Service {
    given_by: u32::MAX,
    kind: ServiceKind::BestEffort { priority: ServicePriority::Background },
};

fn services(store: &Store) -> Vec<(&str, Option<Service>)> {
    store.volumes().map(|volume| (volume.name(), volume.service())).collect()
}

/// An operator gives volumes their contracts, and the power fails behind the answer.
#[test]
fn what_is_said_of_a_service_is_there_after_a_restart_until_it_is_taken_back() {
    let mut disks = new_pool(1, &[Bytes::mib(16)]);
    let mut store = open(&mut disks).unwrap().store;
    let any = Placement::default();
    let made = ["rate", "time", "last", "plain", "gone"];
    let ids = made.map(|name| store.create(name, EXTENT, &any).unwrap());
    for (id, service) in ids.iter().zip([AT_A_RATE, IN_TIME, LAST, AT_A_RATE, IN_TIME]) {
        store.set_service(*id, Some(service)).unwrap();
    }
    store.set_service(ids[3], None).unwrap();
    assert!(commit(&mut store, &mut disks));
    store.delete(ids[4]).unwrap();
    assert!(commit(&mut store, &mut disks));
    store.set_service(ids[0], Some(AT_A_RATE)).unwrap();
    assert!(!store.dirty(), "nothing new was said");
    let kept =
        [("rate", Some(AT_A_RATE)), ("time", Some(IN_TIME)), ("last", Some(LAST)), ("plain", None)];
    // From a record, and, as opening has made one, from a checkpoint.
    for _ in 0..2 {
        assert_eq!(services(&open(&mut disks).unwrap().store), kept);
    }
    assert!(check(&disks).findings.is_empty(), "{:#?}", check(&disks));
    let mut store = open(&mut disks).unwrap().store;
    store.set_service(ids[0], None).unwrap();
    // Another volume of an old name has nothing of it.
    store.delete(ids[1]).unwrap();
    store.create("time", EXTENT, &any).unwrap();
    assert!(commit(&mut store, &mut disks));
    let kept = [("rate", None), ("last", Some(LAST)), ("plain", None), ("time", None)];
    for _ in 0..2 {
        assert_eq!(services(&open(&mut disks).unwrap().store), kept);
    }
    let gone = store.set_service(ids[1], Some(LAST));
    assert_eq!(gone, Err(StoreError::NoSuchVolume { volume: ids[1] }));
}

/// Services take room in a checkpoint, so they are refused before it does not suffice.
#[test]
fn services_are_counted_in_the_metadata() {
    let mut disks = new_pool(1, &[Bytes::mib(8)]);
    let mut store = open(&mut disks).unwrap().store;
    let (mut made, _) = fill_with_volumes(&mut store, "v");
    // Where two volumes less are described, there is room for a few services.
    (0..2).for_each(|_| store.delete(made.pop().unwrap()).unwrap());
    let given =
        made.iter().take_while(|id| store.set_service(**id, Some(AT_A_RATE)).is_ok()).count();
    assert!((1..10).contains(&given), "{given}");
    let full = store.set_service(made[given], Some(LAST));
    assert!(matches!(full, Err(StoreError::MetadataFull { .. })), "{full:?}");
    // Another one in its place is possible, and so is none.
    store.set_service(made[0], Some(IN_TIME)).unwrap();
    store.set_service(made[0], None).unwrap();
    store.set_service(made[given], Some(LAST)).unwrap();
    // However full, the checkpoint fits: `commit` asserts it.
    (0..20).for_each(|_| {
        store.set_service(made[given], None).unwrap();
        store.set_service(made[given], Some(LAST)).unwrap();
        assert!(commit(&mut store, &mut disks));
    });
    assert_eq!(services(&open(&mut disks).unwrap().store), services(&store));
}

/// The last program before services were kept wrote this pool.
#[test]
fn the_volumes_of_an_old_pool_are_served_as_by_default_until_somebody_says_otherwise() {
    let text = include_str!("old/version-3.txt");
    let mut disks = disks_of(text, &[Bytes::mib(12), Bytes::mib(10)]);
    let version = |disk: &Disk, block: u64| disk.block(block * BLOCK as u64)[8];
    assert!(disks[0].used_blocks().all(|block| version(&disks[0], block) == 3));
    let mut store = open(&mut disks).unwrap().store;
    assert_eq!(services(&store), [("film", None), ("take", None)]);
    let film: Volume = store.find("film").unwrap().clone();
    let whose = Ownership { uid: 1000, gid: 100, mode: 0o640 };
    assert_eq!((film.ownership(), film.length()), (whose, Bytes::new(5000)));
    store.set_service(film.id(), Some(IN_TIME)).unwrap();
    assert!(commit(&mut store, &mut disks));
    assert_eq!(
        services(&open(&mut disks).unwrap().store),
        [("film", Some(IN_TIME)), ("take", None)]
    );
    assert!(check(&disks).findings.is_empty(), "{:#?}", check(&disks));
}
