//! What the tests share: a random number, a disk with a volatile cache, and a
//! driver for the state machines.
#![allow(dead_code)] // each test uses its part of it

use std::collections::BTreeMap;
use std::sync::Arc;
use store::{
    Checking, DiskIndex, Formatting, Id, Io, IoError, IoId, IoKind, Location, NewDisk, NewPool,
    OpenError, Opened, Opening, Placement, Report, Store, StoreError, VolumeId,
};
use units::Bytes;

pub mod history;

/// The volume that has an extent of a disk, and which of its extents that is.
pub fn owner(store: &Store, disk: DiskIndex, extent: u64) -> Option<(VolumeId, u64)> {
    let mut sought = store::OwnersSought::default();
    while !store.seek_owners(disk, &[extent], &mut sought, &mut 2) {}
    store.owners_found(disk, &sought).first().map(|&(_, owner)| owner)
}

pub const BLOCK: usize = 4096;
pub type Block = Arc<[u8; BLOCK]>;

/// SplitMix64: tiny, and the same on every machine.
#[derive(Clone)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d)
    }
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    /// From 0 to `n - 1`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
    pub fn index(&mut self, n: usize) -> usize {
        self.below(n as u64) as usize
    }
    /// True once in `n` times.
    pub fn once_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// How the unflushed writes of a disk end when the power is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    Dropped,
    Applied,
    /// Each one, in any order, whole, dropped, or torn.
    Any,
    /// Each one torn, in any order.
    Torn,
}

/// A write that no flush has covered.
#[derive(Clone, Debug)]
struct Pending {
    number: u64,
    offset: u64,
    bytes: Arc<Vec<u8>>,
}

/// A disk with a volatile write cache; blocks that are not there are zeros.
#[derive(Clone, Debug, Default)]
pub struct Disk {
    pub capacity: u64,
    /// On the medium.
    stable: BTreeMap<u64, Block>,
    /// What a read gives: the medium and the cache.
    view: BTreeMap<u64, Block>,
    pending: Vec<Pending>,
    writes: u64,
    /// Blocks that cannot be read.
    pub unreadable: Vec<u64>,
    /// Flushes do nothing.
    pub deaf: bool,
}

fn is_blocks(bytes: u64) -> bool {
    bytes.is_multiple_of(BLOCK as u64)
}

fn put(blocks: &mut BTreeMap<u64, Block>, offset: u64, bytes: &[u8]) {
    let (mut at, mut rest) = (offset, bytes);
    while !rest.is_empty() {
        let (number, from) = (at / BLOCK as u64, (at % BLOCK as u64) as usize);
        let (now, later) = rest.split_at(rest.len().min(BLOCK - from));
        let old = blocks.get(&number).map_or([0; BLOCK], |block| **block);
        let mut new = old;
        new[from..from + now.len()].copy_from_slice(now);
        if new == [0; BLOCK] {
            blocks.remove(&number);
        } else if new != old {
            blocks.insert(number, Arc::new(new));
        }
        at += now.len() as u64;
        rest = later;
    }
}

impl Disk {
    pub fn new(capacity: Bytes) -> Self {
        Self { capacity: capacity.get(), ..Self::default() }
    }
    pub fn read(&self, offset: u64, len: u64) -> Result<Vec<u8>, IoError> {
        assert!(is_blocks(offset) && is_blocks(len) && len > 0);
        assert!(offset + len <= self.capacity, "read beyond the disk");
        let mut bytes = vec![0; len as usize];
        for (i, chunk) in bytes.chunks_mut(BLOCK).enumerate() {
            let number = offset / BLOCK as u64 + i as u64;
            if self.unreadable.contains(&number) {
                return Err(IoError(5));
            }
            if let Some(block) = self.view.get(&number) {
                chunk.copy_from_slice(&block[..]);
            }
        }
        Ok(bytes)
    }
    pub fn block(&self, offset: u64) -> Block {
        let block = self.view.get(&(offset / BLOCK as u64));
        block.cloned().unwrap_or_else(|| Arc::new([0; BLOCK]))
    }
    pub fn write(&mut self, offset: u64, bytes: Vec<u8>) {
        assert!(is_blocks(offset) && is_blocks(bytes.len() as u64) && !bytes.is_empty());
        assert!(offset + bytes.len() as u64 <= self.capacity, "write beyond the disk");
        put(&mut self.view, offset, &bytes);
        // The disk takes a sector anew.
        let written = offset / BLOCK as u64..(offset + bytes.len() as u64) / BLOCK as u64;
        self.unreadable.retain(|block| !written.contains(block));
        self.writes += 1;
        self.pending.push(Pending { number: self.writes, offset, bytes: Arc::new(bytes) });
    }
    /// How many writes have ended: what a flush that begins now will cover.
    pub fn writes(&self) -> u64 {
        self.writes
    }
    /// Puts the first `writes` writes onto the medium.
    pub fn flush(&mut self, writes: u64) {
        if self.deaf {
            return;
        }
        let (covered, rest) =
            std::mem::take(&mut self.pending).into_iter().partition(|write| write.number <= writes);
        self.pending = rest;
        let covered: Vec<Pending> = covered;
        for write in covered {
            put(&mut self.stable, write.offset, &write.bytes);
        }
    }
    /// The disk after a power cut.
    pub fn cut(&self, how: Cut, random: &mut Random) -> Self {
        let mut disk =
            Self { capacity: self.capacity, stable: self.stable.clone(), ..Self::default() };
        let mut pending = self.pending.clone();
        if matches!(how, Cut::Any | Cut::Torn) {
            for i in (1..pending.len()).rev() {
                pending.swap(i, random.index(i + 1));
            }
        }
        for write in pending {
            let whole = (0, write.bytes.len());
            match (how, random.below(4)) {
                (Cut::Dropped, _) | (Cut::Any, 0) => {}
                (Cut::Applied, _) | (Cut::Any, 1) => disk.apply(&write, whole),
                (Cut::Any, _) | (Cut::Torn, _) => disk.tear(&write, random),
            }
        }
        disk.view = disk.stable.clone();
        disk
    }
    /// The disk after every power cut, as far as each pending write is dropped, applied,
    /// or torn in the middle of its header, one half of it or the other. For few writes.
    pub fn cuts(&self) -> Vec<Self> {
        let bare = Self { capacity: self.capacity, stable: self.stable.clone(), ..Self::default() };
        let mut all = vec![bare];
        for write in &self.pending {
            let parts = [(0, 0), (0, write.bytes.len()), (0, 60), (60, write.bytes.len())];
            let outcomes = |disk: Self| {
                parts.map(|part| {
                    let mut disk = disk.clone();
                    disk.apply(write, part);
                    disk
                })
            };
            all = all.into_iter().flat_map(outcomes).collect();
        }
        all.iter_mut().for_each(|disk| disk.view = disk.stable.clone());
        all
    }
    fn tear(&mut self, write: &Pending, random: &mut Random) {
        let len = write.bytes.len();
        if random.once_in(2) {
            // at sectors: any subset of them
            for from in (0..len).step_by(512) {
                if random.once_in(2) {
                    self.apply(write, (from, from + 512));
                }
            }
        } else {
            // at bytes: one range, often in a header or a short content, where it matters
            let most = len.min([len, 1024, 128][random.index(3)]);
            let from = random.index(most);
            let to = from + 1 + random.index(most - from);
            self.apply(write, (from, to));
        }
    }
    fn apply(&mut self, write: &Pending, (from, to): (usize, usize)) {
        put(&mut self.stable, write.offset + from as u64, &write.bytes[from..to]);
    }
    /// Changes bytes behind the pool's back.
    pub fn change(&mut self, offset: u64, how: impl FnOnce(&mut [u8; BLOCK])) {
        let number = offset / BLOCK as u64;
        let mut block = *self.block(offset);
        how(&mut block);
        put(&mut self.view, number * BLOCK as u64, &block);
        put(&mut self.stable, number * BLOCK as u64, &block);
    }
    pub fn flip(&mut self, bit: u64) {
        self.change(bit / 8, |block| block[(bit / 8) as usize % BLOCK] ^= 1 << (bit % 8));
    }
    /// The numbers of all blocks that are not zeros.
    pub fn used_blocks(&self) -> impl Iterator<Item = u64> {
        self.view.keys().copied()
    }
    pub fn is_idle(&self) -> bool {
        self.pending.is_empty()
    }
    pub fn do_io(&mut self, kind: &IoKind) -> Result<Vec<u8>, IoError> {
        match kind {
            IoKind::Read { offset, len } => return self.read(offset.get(), len.get()),
            IoKind::Write { offset, bytes } => self.write(offset.get(), bytes.clone()),
            IoKind::Flush => self.flush(self.writes),
        }
        Ok(Vec::new())
    }
}

/// What all state machines have in common.
pub trait Machine {
    fn poll(&mut self) -> Option<Io>;
    fn done(&mut self, id: IoId, result: Result<Vec<u8>, IoError>);
    fn is_finished(&self) -> bool;
}

macro_rules! machine {
    ($($type:ty),*) => {
        $(impl Machine for $type {
            fn poll(&mut self) -> Option<Io> {
                self.poll()
            }
            fn done(&mut self, id: IoId, result: Result<Vec<u8>, IoError>) {
                self.done(id, result);
            }
            fn is_finished(&self) -> bool {
                self.is_finished()
            }
        })*
    };
}
machine!(Formatting, Opening, Checking);

/// Runs a machine to its end, or until `limit` writes and flushes were asked
/// for; the last of them, if it is a write, is in the cache. True at the end.
pub fn run_until(machine: &mut impl Machine, disks: &mut [Disk], limit: u64) -> bool {
    let mut left = limit;
    while let Some(io) = machine.poll() {
        let disk = &mut disks[io.disk.as_usize()];
        if !matches!(io.kind, IoKind::Read { .. }) {
            if left == 0 {
                return false;
            }
            left -= 1;
            if left == 0 && io.kind == IoKind::Flush {
                return false; // the power fails before the flush does anything
            }
        }
        let result = disk.do_io(&io.kind);
        machine.done(io.id, result);
    }
    assert!(machine.is_finished(), "nothing to do, and not finished");
    true
}

pub fn run(machine: &mut impl Machine, disks: &mut [Disk]) {
    run_until(machine, disks, u64::MAX);
}

pub fn capacities(disks: &[Disk]) -> Vec<Bytes> {
    disks.iter().map(|disk| Bytes::new(disk.capacity)).collect()
}

pub fn id(kind: u8, n: u64) -> Id {
    let mut id = [kind; 16];
    id[8..].copy_from_slice(&n.to_le_bytes());
    Id(id)
}

pub fn profile(disk: usize) -> Vec<u8> {
    format!("profile of disk {disk}\n").repeat(100).into_bytes()
}

/// What makes pool number `n` on disks of these sizes.
pub fn formatting(n: u64, capacities: &[Bytes]) -> Formatting {
    let new = capacities.iter().enumerate().map(|(i, &capacity)| NewDisk {
        id: id(2, n * 100 + i as u64),
        capacity,
        profile: profile(i),
    });
    let new = NewPool { name: format!("pool-{n}"), pool_id: id(1, n), disks: new.collect() };
    Formatting::new(new).expect("a good pool")
}

/// Makes pool number `n` on new disks and puts it onto the medium.
pub fn new_pool(n: u64, capacities: &[Bytes]) -> Vec<Disk> {
    let mut disks: Vec<Disk> = capacities.iter().map(|&capacity| Disk::new(capacity)).collect();
    let mut formatting = formatting(n, capacities);
    run(&mut formatting, &mut disks);
    formatting.finish().expect("the disks work");
    assert!(disks.iter().all(Disk::is_idle), "making a pool ends with a flush");
    disks
}

pub fn open(disks: &mut [Disk]) -> Result<Opened, OpenError> {
    let mut opening = Opening::new(&capacities(disks));
    run(&mut opening, disks);
    opening.finish()
}

pub fn check(disks: &[Disk]) -> Report {
    let mut disks = disks.to_vec();
    let mut checking = Checking::new(&capacities(&disks));
    while let Some(io) = checking.poll() {
        assert!(matches!(io.kind, IoKind::Read { .. }), "a check only reads");
        let result = disks[io.disk.as_usize()].do_io(&io.kind);
        checking.done(io.id, result);
    }
    checking.finish()
}

/// Runs a commit to its end; false where there is nothing to commit.
pub fn commit(store: &mut store::Store, disks: &mut [Disk]) -> bool {
    let started = store.commit().is_some();
    while let Some(io) = store.poll() {
        let result = disks[io.disk.as_usize()].do_io(&io.kind);
        store.done(io.id, result);
    }
    assert!(store.is_counted(), "what is kept of the sizes of volumes is what they are");
    started
}

/// The first byte on its disk of an extent that has a place.
pub fn at(place: &Location) -> u64 {
    place.offset.expect("an extent that has a place").get()
}

pub fn disk(index: u16) -> DiskIndex {
    DiskIndex(index)
}

/// Disks as they were written down.
pub fn disks_of(text: &str, capacities: &[Bytes]) -> Vec<Disk> {
    let mut disks: Vec<Disk> = capacities.iter().map(|&capacity| Disk::new(capacity)).collect();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let [disk, block, hex] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let mut bytes = vec![0; BLOCK];
        for (byte, pair) in bytes.iter_mut().zip(hex.as_bytes().chunks(2)) {
            *byte = u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
        }
        disks[disk.parse::<usize>().unwrap()].write(block.parse::<u64>().unwrap() * 4096, bytes);
    }
    disks
}

/// Makes empty volumes, with names that begin like this, until the metadata is full; gives them,
/// and how it was refused.
pub fn fill_with_volumes(store: &mut Store, begins: &str) -> (Vec<VolumeId>, StoreError) {
    let mut made = Vec::new();
    loop {
        let name = format!("{begins}{}", made.len());
        match store.create(&name, Bytes::ZERO, &Placement::default()) {
            Ok(id) => made.push(id),
            Err(full) => return (made, full),
        }
    }
}
