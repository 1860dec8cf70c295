//! A volume that does not fit is refused with what would fit, and where.

use crate::common::{new_pool, open};
use store::{DiskIndex, EXTENT, Fits, Ownership, Placement, Store, StoreError, Zone};
use units::Bytes;

fn unequal() -> Store {
    let mut disks = new_pool(1, &[Bytes::mib(16), Bytes::mib(96), Bytes::mib(48)]);
    open(&mut disks).unwrap().store
}

fn free(store: &Store) -> Vec<u64> {
    (0..3).map(|disk| store.space_on(DiskIndex(disk)).free / EXTENT).collect()
}

fn on(disks: &[u16]) -> Placement {
    Placement { disks: disks.iter().map(|&disk| DiskIndex(disk)).collect(), ..Placement::default() }
}

fn refused(error: StoreError) -> (DiskIndex, Fits) {
    let StoreError::NoSpace { disk, fits, .. } = error else { panic!("{error}") };
    (disk, *fits.expect("a volume was to be made or grown"))
}

/// The refusal of a pool of unequal disks named neither the disk that is full nor those that have room.
#[test]
fn what_does_not_fit_on_all_disks_is_told_where_it_does() {
    let mut store = unequal();
    let free = free(&store);
    assert!(free[0] < free[2] && free[2] < free[1], "{free:?}");
    // As much as two of them have: the third would need as much.
    let size = EXTENT * (free[2] * 2);
    let (disk, fits) = refused(store.create("v", size, &Placement::default()).unwrap_err());
    let all = EXTENT * (free[0] * 3);
    assert_eq!((disk, fits.most), (DiskIndex(0), all), "the smallest says how large");
    assert_eq!(fits.disks, [DiskIndex(1), DiskIndex(2)]);
    assert!(fits.is_enough && fits.there >= size, "{fits:?}");
    // A little more fits nowhere: on one disk, or on two, the largest.
    let (_, none) = refused(store.create("v", size * 2, &on(&[0])).unwrap_err());
    assert_eq!((none.most, none.is_enough), (EXTENT * free[0], false));
    assert_eq!(none.there, EXTENT * free[1].max(free[2] * 2));
    // All that is told is true, to the extent.
    for (placement, most) in [(on(&[1, 2]), fits.there), (on(&[]), fits.most)] {
        store.create("more", most + EXTENT, &placement).unwrap_err();
        let made = store.create("most", most, &placement).unwrap();
        let (_, grown) = refused(store.resize(made, most + EXTENT).unwrap_err());
        assert_eq!((grown.most, grown.disks), (most, vec![]));
        store = unequal();
    }
}

#[test]
fn what_is_told_of_a_ring_and_of_a_zone_is_true_of_them() {
    let mut store = unequal();
    let free = free(&store);
    let zones = [Zone::Any, Zone::Outer];
    for (zone, is_ring) in zones.into_iter().flat_map(|zone| [(zone, true), (zone, false)]) {
        let placement = Placement { zone, ..Placement::default() };
        let make = |store: &mut Store, size, placement: &Placement| match is_ring {
            true => store.create_ring("v", size, placement, Ownership::ROOT),
            false => store.create_owned("v", size, placement, Ownership::ROOT),
        };
        let size = EXTENT * (free[1] * 3);
        let (_, fits) = refused(make(&mut store, size, &placement).unwrap_err());
        assert!(!fits.is_enough && !fits.there.is_zero(), "{fits:?}");
        let there = Placement { disks: fits.disks, ..placement.clone() };
        make(&mut store, fits.there + EXTENT, &there).unwrap_err();
        make(&mut store, fits.there, &there).unwrap();
        store = unequal();
        // None at all may be what fits.
        if fits.most >= EXTENT * 32 || !is_ring && !fits.most.is_zero() {
            make(&mut store, fits.most, &placement).unwrap();
            store = unequal();
        }
    }
}
