//! How long a record can be, by a formula, held against records that are really made.
#![allow(clippy::print_stdout)] // the figures, for whoever runs it with --nocapture

use crate::common::{Disk, Random, new_pool, open};
use std::collections::BTreeSet;
use store::{
    Blocks, DiskIndex, IoKind, Ownership, Placement, RecordContent, Service, ServiceKind,
    ServicePriority, Store, VolumeId,
};
use units::Bytes;

/// Commits, and gives the bytes that were written to the log of the first disk.
fn commit(store: &mut Store, disks: &mut [Disk]) -> Option<Bytes> {
    let mut record = Bytes::ZERO;
    store.commit()?;
    while let Some(io) = store.poll() {
        if let (IoKind::Write { bytes, .. }, DiskIndex(0)) = (&io.kind, io.disk)
            && bytes.starts_with(b"SLKRECOR")
        {
            record = Bytes::new(bytes.len() as u64);
        }
        store.done(io.id, disks[io.disk.as_usize()].do_io(&io.kind));
    }
    Some(record)
}

/// What is staged, counted beside the store.
#[derive(Default)]
struct Staged {
    changes: u64,
    extents: BTreeSet<(VolumeId, u64)>,
    lengths: BTreeSet<VolumeId>,
}

fn write(random: &mut Random, store: &mut Store, staged: &mut Staged, id: VolumeId) {
    let extents = store.volume(id).unwrap().extents();
    let first = random.below(extents);
    for index in first..extents.min(first + 1 + random.below(3)) {
        let holes = store.reserve_scattered();
        let from = if holes { random.below(256) } else { 0 };
        let range = Bytes::kib(4 * from)..Bytes::kib(4 * (from + 1 + random.below(20)));
        store.note_written(id, index, &Blocks::of(&range));
        if holes {
            store.release_scattered();
        }
        staged.extents.insert((id, index));
    }
    let length = Bytes::mib(first) + Bytes::new(random.below(1 << 20));
    arrive(random, store, id, length);
    store.note_length(id, length);
    staged.lengths.insert(id);
}

/// As bytes come when each piece is the first one after a pause.
fn arrive(random: &mut Random, store: &mut Store, id: VolumeId, to: Bytes) {
    let from = store.volume(id).unwrap().length();
    for part in 1..=random.below(4) {
        let later = random.below(20_000_000_000).cast_signed();
        store.set_clock(store.clock().unwrap().saturating_add(later));
        store.note_arrived(id, from, from + to.saturating_sub(from) * part / 3);
    }
}

fn lengthen(random: &mut Random, store: &mut Store, staged: &mut Staged, id: VolumeId) {
    let length = store.volume(id).unwrap().length() + Bytes::new(1 + random.below(10));
    arrive(random, store, id, length);
    store.note_length(id, length);
    staged.lengths.insert(id);
}

/// Changes whose lengths in bytes are in the tables of docs/on-disk-format.md.
fn change(random: &mut Random, store: &mut Store, staged: &mut Staged, made: &mut u64) {
    let root = Ownership::ROOT;
    match random.below(4) {
        0 => {
            *made += 1;
            let name = format!("{made:0width$}", width = 8 + random.index(50));
            store.create(&name, Bytes::ZERO, &Placement::default()).unwrap();
            staged.changes += 13 + name.len() as u64 + 2 * store.disks().len() as u64;
        }
        1 => {
            let id = store.volumes().next().unwrap().id();
            let gid = random.below(9) as u32 + 1;
            let other = Ownership { gid, ..root };
            if store.volume(id).unwrap().ownership() != other {
                store.set_ownership(id, other).unwrap();
                staged.changes += 19;
            }
        }
        2 => {
            let id = store.volumes().next().unwrap().id();
            let priority = ServicePriority::Background;
            let given_by = random.below(9) as u32;
            let service = Service { given_by, kind: ServiceKind::BestEffort { priority } };
            if store.volume(id).unwrap().service() != Some(service) {
                store.set_service(id, Some(service)).unwrap();
                staged.changes += 39;
            }
        }
        _ => {
            let last = store.volumes().last().unwrap();
            if last.extents() == 0 {
                let id = last.id();
                store.delete(id).unwrap();
                staged.changes += 9;
            }
        }
    }
}

#[test]
fn no_record_is_longer_than_the_formula_says() {
    let (mut records, mut close) = (0, 0);
    for seed in 0..30 {
        let mut random = Random::new(seed);
        let sizes = vec![Bytes::GIB; 1 + random.index(2)];
        let mut disks = new_pool(1, &sizes);
        let mut store = open(&mut disks).unwrap().store;
        let volumes = 1 + random.below(300);
        for number in 0..volumes {
            store.create(&format!("v{number}"), Bytes::mib(3), &Placement::default()).unwrap();
        }
        store.set_clock(1);
        commit(&mut store, &mut disks);
        let ids: Vec<VolumeId> = store.volumes().map(|volume| volume.id()).collect();
        let mut made = 0;
        let mut ahead = BTreeSet::new();
        for _ in 0..60 {
            let mut staged = Staged::default();
            // Of all kinds, or of one: then nothing else makes up for it.
            let kind = random.below(4);
            for _ in 0..random.below(2 * volumes) {
                let id = ids[random.index(ids.len())];
                match kind {
                    0 | 1 => {
                        write(&mut random, &mut store, &mut staged, id);
                        store.note_length(id, Bytes::ZERO); // its times are those of the write
                    }
                    2 => lengthen(&mut random, &mut store, &mut staged, id),
                    _ => {}
                }
            }
            for _ in 0..[20, 0, 0, 400][kind as usize] {
                change(&mut random, &mut store, &mut staged, &mut made);
            }
            // What was written behind an end is recorded when the end has come so far.
            ahead.append(&mut staged.extents.clone());
            let rose = |extent: &&(VolumeId, u64)| staged.lengths.contains(&extent.0);
            staged.extents.extend(ahead.iter().filter(rose).copied());
            let content = RecordContent {
                changes: Bytes::new(staged.changes),
                extents: staged.extents.len() as u64,
                placed: 0,
                lengths: staged.lengths.len() as u64,
                recorded: staged.lengths.len() as u64,
            };
            let most = content.size_max();
            ahead.retain(|&(id, index)| {
                store.volume(id).is_some_and(|it| it.length() < Bytes::mib(index + 1))
            });
            let Some(record) = commit(&mut store, &mut disks) else { continue };
            assert!(record <= most, "{record} in a record, {most} by the formula: {content:?}");
            records += u64::from(!record.is_zero());
            close += u64::from(record * 10 >= most * 9 && record > Bytes::kib(16));
        }
    }
    println!("{records} records, {close} of them nearly as long as they may be");
    assert!(records > 1_000 && close > 20, "{records} {close}");
}
