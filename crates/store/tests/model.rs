//! Random operations on volumes, held against a model that is simple enough to
//! be right: a table of volumes, and for each extent of each disk who has it.

use crate::common::history::accounts;
use crate::common::{Disk, Random, commit, disk, new_pool, open};
use std::collections::{BTreeMap, BTreeSet};
use store::{Blocks, DiskIndex, EXTENT, Placement, Space, Store, StoreError, VolumeId, Zone};
use units::Bytes;

/// A place for an extent: disk and number on it.
type Place = (DiskIndex, u64);

#[derive(Clone, Debug, PartialEq)]
struct Volume {
    name: String,
    placement: Placement,
    length: u64,
    /// Where each extent lies and how many blocks of it were written.
    extents: Vec<(Place, Blocks)>,
}

struct Model {
    volumes: BTreeMap<VolumeId, Volume>,
    free: BTreeSet<Place>,
    /// Given back by what is staged, and by the commit on its way.
    staged: BTreeSet<Place>,
    running: BTreeSet<Place>,
    ids: u64,
}

fn place(store: &Store, id: VolumeId, extent: u64) -> Place {
    let location = store.locate(id, extent).expect("a volume's extent lies somewhere");
    let offset = location.offset.expect("it lies somewhere from its beginning on");
    assert!(offset.is_multiple_of(EXTENT));
    (location.disk, offset / EXTENT)
}

impl Model {
    /// All that the disks have: everything between the two edges.
    fn new(store: &Store) -> Self {
        let free = store.disks().iter().flat_map(|disk| {
            let last = disk.capacity / EXTENT - 1; // one extent at each edge holds metadata
            (1..last).map(|extent| (disk.index, extent))
        });
        Self {
            volumes: BTreeMap::new(),
            free: free.collect(),
            staged: BTreeSet::new(),
            running: BTreeSet::new(),
            ids: 0,
        }
    }
    fn in_zone(&self, store: &Store, disk: DiskIndex, zone: Zone) -> u64 {
        let middle = store.disks()[disk.as_usize()].capacity / EXTENT / 2;
        let fits = |&&(on, extent): &&Place| {
            on == disk
                && match zone {
                    Zone::Any => true,
                    Zone::Outer => extent < middle,
                    Zone::Inner => extent >= middle,
                }
        };
        self.free.iter().filter(fits).count() as u64
    }
    /// Takes the extents that the store chose for a volume; each must be free, on
    /// the disk whose turn it is, and in the zone.
    fn take(&mut self, store: &Store, id: VolumeId, extents: u64) {
        let volume = self.volumes.get_mut(&id).unwrap();
        let Placement { disks, zone, run, .. } = &volume.placement;
        for i in volume.extents.len() as u64..extents {
            let place = place(store, id, i);
            let turn = (i / (*run / EXTENT)) as usize;
            assert_eq!(place.0, disks[turn % disks.len()], "rotation");
            let middle = store.disks()[place.0.as_usize()].capacity / EXTENT / 2;
            match zone {
                Zone::Any => {}
                Zone::Outer => assert!(place.1 < middle),
                Zone::Inner => assert!(place.1 >= middle),
            }
            assert!(self.free.remove(&place), "{place:?} was not free");
            assert_eq!(store.locate(id, i).unwrap().written, Blocks::NONE);
            volume.extents.push((place, Blocks::NONE));
        }
    }
    /// "No space" must be true.
    fn refused(&self, store: &Store, error: &StoreError, placement: &Placement, more: u64) {
        let StoreError::NoSpace { disk, zone, asked, free, freeing, .. } = error else {
            panic!("{error}");
        };
        let k = placement.disks.len() as u64;
        let share = *asked / EXTENT;
        assert!(placement.disks.contains(disk) && placement.zone == *zone);
        let run = placement.run.max(EXTENT) / EXTENT;
        let (least, most) = ((more / k).saturating_sub(run), more.div_ceil(k) + run);
        assert!(share >= least && share <= most);
        assert_eq!(*free / EXTENT, self.in_zone(store, *disk, *zone));
        assert!(asked > free);
        let given_back = self.staged.iter().chain(&self.running).filter(|p| p.0 == *disk).count();
        assert_eq!(*freeing / EXTENT, given_back as u64);
    }
    fn cut(&mut self, id: VolumeId, size: u64) {
        let volume = self.volumes.get_mut(&id).unwrap();
        let gone = volume.extents.split_off(size.div_ceil(EXTENT.get()) as usize);
        self.staged.extend(gone.into_iter().map(|(place, _)| place));
        volume.length = volume.length.min(size);
        if let (Some((_, written)), 1..) = (volume.extents.last_mut(), size % EXTENT.get()) {
            *written = written.intersection(&Blocks::first(Bytes::new(size) % EXTENT));
        }
    }
    /// The pool is opened again: what was written behind the ends is not there.
    fn forget_what_is_behind(&mut self) {
        for volume in self.volumes.values_mut() {
            for (extent, (_, written)) in (0..).zip(&mut volume.extents) {
                let before = volume.length.saturating_sub(extent * EXTENT.get());
                *written = written.intersection(&Blocks::first(Bytes::new(before)));
            }
        }
    }
    /// The store shows exactly the model.
    fn agrees(&self, store: &Store) {
        assert_eq!(store.volumes().len(), self.volumes.len());
        for (id, volume) in &self.volumes {
            let shown = store.find(&volume.name).expect("it exists");
            assert_eq!((shown.id(), shown.name()), (*id, &*volume.name));
            assert_eq!(shown.length().get(), volume.length);
            assert_eq!(shown.size(), EXTENT * volume.extents.len() as u64);
            assert_eq!(shown.placement(), &volume.placement);
            for (i, (at, written)) in (0..).zip(&volume.extents) {
                assert_eq!(place(store, *id, i), *at);
                assert_eq!(store.locate(*id, i).unwrap().written, *written);
            }
            assert_eq!(store.locate(*id, volume.extents.len() as u64), None);
        }
        for disk in store.disks() {
            let on = |places: &BTreeSet<Place>| {
                EXTENT * places.iter().filter(|place| place.0 == disk.index).count() as u64
            };
            let used = self.volumes.values().flat_map(|volume| &volume.extents);
            let used = EXTENT * used.filter(|(place, _)| place.0 == disk.index).count() as u64;
            let freeing = on(&self.staged) + on(&self.running);
            let free = on(&self.free);
            let total = used + free + freeing;
            assert_eq!(store.space_on(disk.index), Space { total, used, free, freeing });
        }
        accounts(store).unwrap();
    }
}

fn placement(random: &mut Random, disks: u64) -> Placement {
    let mut chosen: Vec<DiskIndex> = Vec::new();
    for _ in 0..random.below(disks + 1) {
        let disk = disk(random.below(disks) as u16);
        if !chosen.contains(&disk) {
            chosen.push(disk);
        }
    }
    let zone = [Zone::Any, Zone::Any, Zone::Outer, Zone::Inner][random.index(4)];
    let run = EXTENT * (1 << random.below(5));
    Placement { disks: chosen, zone, run, thin: false }
}

/// One random operation on both.
fn step(random: &mut Random, store: &mut Store, disks: &mut [Disk], model: &mut Model) {
    let ids: Vec<VolumeId> = model.volumes.keys().copied().collect();
    let any = |random: &mut Random| ids.get(random.index(ids.len().max(1))).copied();
    match random.below(12) {
        0..3 => {
            let mut placement = placement(random, disks.len() as u64);
            let extents = random.below(9);
            model.ids += 1;
            let name = format!("volume-{}", model.ids);
            let size = EXTENT * extents - Bytes::new(random.below(EXTENT.get()).min(extents));
            let made = store.create(&name, size, &placement);
            if placement.disks.is_empty() {
                placement.disks = store.disks().iter().map(|disk| disk.index).collect();
            }
            match made {
                Err(error) => model.refused(store, &error, &placement, extents),
                Ok(id) => {
                    assert!(ids.iter().all(|old| *old < id), "a number comes back");
                    let volume = Volume { name, placement, length: 0, extents: vec![] };
                    model.volumes.insert(id, volume);
                    model.take(store, id, extents);
                }
            }
        }
        3 => {
            let Some(id) = any(random) else { return };
            store.delete(id).unwrap();
            model.cut(id, 0);
            model.volumes.remove(&id);
            assert_eq!(store.delete(id), Err(StoreError::NoSuchVolume { volume: id }));
        }
        4..6 => {
            let Some(id) = any(random) else { return };
            let size = random.below(9 << 20);
            let has = model.volumes[&id].extents.len() as u64;
            let extents = size.div_ceil(EXTENT.get());
            match store.resize(id, Bytes::new(size)) {
                Err(error) => {
                    let placement = model.volumes[&id].placement.clone();
                    model.refused(store, &error, &placement, extents - has);
                }
                Ok(()) if size < has * EXTENT.get() => model.cut(id, size),
                Ok(()) => model.take(store, id, extents),
            }
        }
        6..9 => {
            let Some(id) = any(random) else { return };
            let volume = model.volumes.get_mut(&id).unwrap();
            let extent = random.below(10);
            let reserved = store.reserve_scattered();
            let first = if reserved && random.once_in(2) { random.below(256) } else { 0 };
            let blocks = Blocks::of(&(Bytes::kib(4) * first..Bytes::kib(4) * random.below(257)));
            store.note_written(id, extent, &blocks);
            if reserved {
                store.release_scattered();
            }
            if let Some((_, written)) = volume.extents.get_mut(extent as usize) {
                *written = written.union(&blocks);
            }
            let length = random.below(10 << 20);
            store.note_length(id, Bytes::new(length));
            let size = volume.extents.len() as u64 * EXTENT.get();
            volume.length = volume.length.max(length.min(size));
        }
        9 => {
            if store.commit().is_some() {
                model.running = std::mem::take(&mut model.staged);
            }
        }
        _ => {
            for _ in 0..random.below(8) {
                let Some(io) = store.poll() else { return };
                let result = disks[io.disk.as_usize()].do_io(&io.kind);
                let before = store.committed();
                store.done(io.id, result);
                if store.committed() > before {
                    model.free.append(&mut model.running);
                }
            }
        }
    }
}

#[test]
fn the_store_is_what_the_model_says() {
    for seed in 0..60 {
        let mut random = Random::new(1000 + seed);
        let count = 1 + random.below(3);
        let sizes: Vec<Bytes> = (0..count).map(|_| Bytes::mib(8 + random.below(20))).collect();
        let mut disks = new_pool(seed, &sizes);
        let mut store = open(&mut disks).unwrap().store;
        let mut model = Model::new(&store);
        model.agrees(&store);
        for _ in 0..400 {
            step(&mut random, &mut store, &mut disks, &mut model);
            model.agrees(&store);
        }
        // Finish what is running, commit the rest, and open again: nothing changes.
        commit(&mut store, &mut disks);
        commit(&mut store, &mut disks);
        assert!(!store.dirty());
        model.free.append(&mut model.running);
        model.free.append(&mut model.staged);
        model.agrees(&store);
        model.forget_what_is_behind();
        model.agrees(&open(&mut disks).unwrap().store);
    }
}

#[test]
fn a_volume_grows_in_one_piece_where_it_can() {
    let mut disks = new_pool(1, &[Bytes::mib(64)]);
    let mut store = open(&mut disks).unwrap().store;
    let any = Placement::default();
    let first = store.create("first", Bytes::mib(4), &any).unwrap();
    let second = store.create("second", Bytes::mib(4), &any).unwrap();
    let third = store.create("third", Bytes::mib(4), &any).unwrap();
    let at = |store: &Store, id, extent| place(store, id, extent).1;
    assert_eq!([first, second, third].map(|id| at(&store, id, 0)), [1, 5, 9]);
    store.resize(third, Bytes::mib(6)).unwrap();
    assert_eq!(at(&store, third, 5), 14, "right behind its end");
    store.delete(second).unwrap();
    store.resize(first, Bytes::mib(6)).unwrap();
    assert_eq!(at(&store, first, 4), 15, "not yet where the second was");
    commit(&mut store, &mut disks);
    let fourth = store.create("fourth", Bytes::mib(4), &any).unwrap();
    assert_eq!(at(&store, fourth, 0), 5, "now it is");
}

#[test]
fn bad_requests_are_refused_with_the_reason() {
    let mut disks = new_pool(1, &[Bytes::mib(16), Bytes::mib(16)]);
    let mut store = open(&mut disks).unwrap().store;
    let any = Placement::default();
    let long = "x".repeat(256);
    for name in ["", "/a", "a//b", "a/..", "a\n", &long] {
        let error = store.create(name, EXTENT, &any).unwrap_err();
        assert!(matches!(error, StoreError::BadName { .. }), "{error}");
        assert!(error.to_string().contains("1 to 255"), "{error}");
    }
    store.create("film", EXTENT, &any).unwrap();
    let error = store.create("film", EXTENT, &any).unwrap_err();
    assert!(error.to_string().contains("'film' exists"), "{error}");
    let on = |disks: &[u16]| Placement {
        disks: disks.iter().map(|&index| disk(index)).collect(),
        ..Placement::default()
    };
    let error = store.create("a", EXTENT, &on(&[0, 2])).unwrap_err();
    assert_eq!(error.to_string(), "the pool has no disk 2; its disks are 0 to 1");
    let error = store.create("a", EXTENT, &on(&[1, 1])).unwrap_err();
    assert!(error.to_string().contains("disk 1 is named twice"), "{error}");
    let error = store.create("a", Bytes::MAX, &any).unwrap_err();
    assert!(matches!(error, StoreError::TooLarge { .. }), "{error}");
    let error = store.create("a", Bytes::mib(100), &any).unwrap_err();
    assert!(
        error.to_string().starts_with("50 MiB is asked of disk 0, which has 13 MiB"),
        "{error}"
    );
    assert_eq!(store.volumes().len(), 1, "nothing was changed by what was refused");
}

/// The extent maps have a limited place; what would not fit is refused before it happens.
#[test]
fn more_volumes_than_can_be_described_are_refused() {
    let mut disks = new_pool(1, &[Bytes::mib(8)]);
    let mut store = open(&mut disks).unwrap().store;
    let mut made = 0;
    let error = loop {
        match store.create(&format!("{made:064}"), Bytes::ZERO, &Placement::default()) {
            Ok(_) if made > 10_000 => panic!("more volumes than there is room for"),
            Ok(_) => made += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, StoreError::MetadataFull { .. }), "{error}");
    assert!(made > 400, "{made}");
    assert!(commit(&mut store, &mut disks));
    let mut store = open(&mut disks).unwrap().store;
    assert_eq!(store.volumes().len(), made);
    let id = store.volumes().next().unwrap().id();
    // To the byte.
    for letters in 65.. {
        if store.rename(&[(id, "x".repeat(letters))], None).is_err() {
            break;
        }
    }
    let error = store.resize(id, Bytes::mib(5)).unwrap_err();
    assert!(matches!(error, StoreError::MetadataFull { .. }), "{error}");
    store.delete(id).unwrap();
    store.create("again", EXTENT, &Placement::default()).unwrap();
    commit(&mut store, &mut disks);
    assert_eq!(open(&mut disks).unwrap().store.volumes().len(), made);
}

/// A disk of 16 TB, full, with the worst watermarks that there can be.
#[test]
fn a_disk_of_16_tb_fits() {
    let mut disks = new_pool(1, &[Bytes::new(16_000_000_000_000)]);
    let mut store = open(&mut disks).unwrap().store;
    let space = store.space();
    assert!(space.total >= Bytes::new(15_990_000_000_000), "{space:?}");
    let id = store.create("everything", space.free, &Placement::default()).unwrap();
    for extent in 0..space.free / EXTENT {
        store.note_written(id, extent, &Blocks::first(Bytes::kib(4) * (extent * 7 % 257)));
    }
    store.note_length(id, space.free);
    assert!(commit(&mut store, &mut disks));
    let again = open(&mut disks).unwrap().store;
    let last = space.free / EXTENT - 1;
    assert_eq!(again.space().free, Bytes::ZERO);
    for extent in [0, 1, last / 2, last] {
        assert_eq!(again.locate(id, extent), store.locate(id, extent));
    }
}

/// Extents with holes take room in the metadata: no more of it than is left, nor so much
/// that no volumes can be made, and all of them come back.
#[test]
fn extents_with_holes_fill_their_half_of_the_metadata_and_no_more() {
    let mut disks = new_pool(1, &[Bytes::GIB * 6]);
    let mut store = open(&mut disks).unwrap().store;
    let id = store.create("holes", Bytes::mib(5000), &Placement::default()).unwrap();
    let hole = Blocks::of(&(Bytes::kib(8)..Bytes::kib(12)));
    let mut scattered = 0;
    while store.reserve_scattered() {
        store.note_written(id, scattered, &hole);
        store.release_scattered();
        scattered += 1;
    }
    // Of a checkpoint region of 320 KiB (10 bytes for each MiB of the pool and 256 KiB, in whole
    // 64 KiB), at 45 bytes each.
    assert_eq!(scattered, Bytes::kib(320).get() / 2 / 45);
    store.note_length(id, Bytes::mib(5000));
    assert!(commit(&mut store, &mut disks));
    for n in 0..100 {
        store.create(&format!("v{n}"), Bytes::ZERO, &Placement::default()).unwrap();
    }
    assert!(commit(&mut store, &mut disks));
    let mut again = open(&mut disks).unwrap().store;
    for extent in 0..5000 {
        let wanted = if extent < scattered { hole } else { Blocks::NONE };
        assert_eq!(again.locate(id, extent).unwrap().written, wanted);
    }
    // What has no holes any more leaves its room to others.
    assert!(!again.reserve_scattered());
    again.note_written(id, 0, &Blocks::first(Bytes::kib(8)));
    assert!(again.reserve_scattered() && !again.reserve_scattered());
    again.release_scattered();
    again.delete(id).unwrap();
    assert!(again.reserve_scattered());
}

/// A failed metadata write makes the pool read-only, and everything says so.
#[test]
fn after_a_failed_write_the_pool_is_read_only() {
    let mut disks = new_pool(1, &[Bytes::mib(16), Bytes::mib(16)]);
    let mut store = open(&mut disks).unwrap().store;
    let id = store.create("film", EXTENT, &Placement::default()).unwrap();
    let commit = store.commit().unwrap();
    let io = store.poll().unwrap();
    store.done(io.id, Err(store::IoError(5)));
    assert_eq!(store.failed(), Some((io.disk, store::IoError(5))));
    assert!(store.poll().is_none() && store.committed() < commit);
    for error in [
        store.create("other", EXTENT, &Placement::default()).unwrap_err(),
        store.resize(id, Bytes::ZERO).unwrap_err(),
        store.delete(id).unwrap_err(),
    ] {
        assert!(error.to_string().contains("read-only"), "{error}");
        assert!(error.to_string().contains("errno 5"), "{error}");
    }
    assert!(store.commit().is_none());
    assert!(store.locate(id, 0).is_some(), "reading goes on");
}
