//! Pools whose metadata make no sense under checksums that fit.
//!
//! An input stands for one structure of a pool that has lived: ten bytes say what is
//! done to its header, the rest is its payload.
//!
//! `label`, `log` and `checkpoint` ask the decoder of one structure, as often as they can:
//! what it takes means the same when it is written and read again. `pool` writes every copy
//! of the structure so, with good checksums, and opens the whole pool: about a hundred times
//! slower, and it judges the headers, too.

#[path = "../../../store/tests/common/mod.rs"]
mod common;

use checksum::crc32c;
use common::history::{Description, accounts};
use common::{Disk, check, commit, new_pool, open};
use std::cell::OnceCell;
use store::{
    Field, KeptPolicy, Ownership, Placement, Replaying, Service, ServiceKind, ServicePriority,
    TABLES, Times,
};
use units::Bytes;

const BLOCK: usize = 4096;
/// As small as what lies there permits, since all of the logs are read each time.
const SIZE: Bytes = Bytes::mib(60);
/// Bytes of an input before the payload: flags, which field, and its value.
const HEAD: usize = 10;
/// Flags: the pool has two disks, a field of the header is set, only one copy is.
const TWO_DISKS: u8 = 1;
const SET_FIELD: u8 = 2;
const ONE_COPY: u8 = 4;
/// Which structure a whole pool is asked with: a record, or one of these.
const CHECKPOINT: u8 = 8;
const LABEL: u8 = 16;

type Magic = [u8; 8];
const OF_LABEL: &Magic = b"SLKLABEL";
const OF_RECORD: &Magic = b"SLKRECOR";
const OF_CHECKPOINT: &Magic = b"SLKCHECK";

/// The structure of an input for a whole pool.
fn kind(flags: u8) -> &'static Magic {
    match (flags & LABEL, flags & CHECKPOINT) {
        (0, 0) => OF_RECORD,
        (0, _) => OF_CHECKPOINT,
        _ => OF_LABEL,
    }
}

pub fn labels() -> Vec<Vec<u8>> {
    seeds(OF_LABEL)
}
pub fn records() -> Vec<Vec<u8>> {
    seeds(OF_RECORD)
}
pub fn checkpoints() -> Vec<Vec<u8>> {
    seeds(OF_CHECKPOINT)
}
pub fn pools() -> Vec<Vec<u8>> {
    let marked = |flag: u8, seeds: Vec<Vec<u8>>| {
        seeds.into_iter().map(move |mut seed| {
            seed[0] |= flag;
            seed
        })
    };
    let others = marked(CHECKPOINT, checkpoints()).chain(marked(LABEL, labels()));
    marked(0, records()).chain(others).collect()
}

/// The head of an input, and its payload.
fn parts(input: &[u8]) -> Option<([u8; HEAD], &[u8])> {
    let (head, payload) = input.split_first_chunk::<HEAD>()?;
    Some((*head, &payload[..payload.len().min(BLOCK - 96)]))
}

/// A state before the last record of a pool that has lived, and that of a new pool.
fn states(flags: u8) -> [Replaying; 2] {
    thread_local! {
        static STATES: [OnceCell<[Replaying; 2]>; 2] =
            const { [OnceCell::new(), OnceCell::new()] };
    }
    let made = || {
        let mut disks = pool(flags);
        // What the last record changes was not there before it.
        let is_last: Vec<_> = places(&disks, OF_RECORD);
        is_last.iter().for_each(|&(disk, at)| disks[disk].change(at, |block| block.fill(0)));
        let store = open(&mut disks).expect("a pool without its last record").store;
        let last = store.volumes().last().expect("it has lived").id();
        let before = Replaying::of(&store).at(store::VolumeId(last.0 + 1));
        [before, Replaying::nothing(&store)]
    };
    STATES.with(|states| states[usize::from(flags & TWO_DISKS)].get_or_init(made).clone())
}

/// A record behind the others.
pub fn log(input: &[u8]) -> bool {
    let Some(([flags, ..], payload)) = parts(input) else { return false };
    let [before, nothing] = states(flags);
    is_read(before, nothing, payload)
}

/// A checkpoint.
pub fn checkpoint(input: &[u8]) -> bool {
    let Some(([flags, ..], payload)) = parts(input) else { return false };
    let [_, nothing] = states(flags);
    is_read(nothing.clone(), nothing, payload)
}

/// What a list of changes makes of a state is, once it is opened, what a checkpoint of it makes of nothing.
fn is_read(mut state: Replaying, nothing: Replaying, payload: &[u8]) -> bool {
    if state.replay(payload).is_err() {
        return false;
    }
    let (state, mut again) = (state.opened(), nothing);
    again.replay(&state.checkpoint()).expect("what was read makes a checkpoint");
    assert_eq!(again, state, "the same again");
    true
}

/// The first label of a disk.
pub fn label(input: &[u8]) -> bool {
    thread_local! {
        static LABELS: [OnceCell<Vec<u8>>; 2] = const { [OnceCell::new(), OnceCell::new()] };
    }
    let Some((head, payload)) = parts(input) else { return false };
    let made = || pool(head[0])[0].block(0).to_vec();
    let mut block =
        LABELS.with(|all| all[usize::from(head[0] & TWO_DISKS)].get_or_init(made).clone());
    fill(&mut block, head, payload);
    let Ok(again) = store::label_again(&block, Bytes::ZERO) else { return false };
    assert_eq!(store::label_again(&again, Bytes::ZERO).as_ref(), Ok(&again), "the same again");
    true
}

/// Puts a payload, and what the head says of the header, into a structure's only block.
fn fill(block: &mut [u8], [flags, which, value @ ..]: [u8; HEAD], payload: &[u8]) {
    block[96..].fill(0);
    block[96..96 + payload.len()].copy_from_slice(payload);
    put(header("PAYLOAD_LENGTH"), block, payload.len() as u64);
    if flags & SET_FIELD != 0 {
        let fields = ["GENERATION", "PARENT", "SEQUENCE", "BASE", "PAYLOAD_LENGTH", "VERSION"];
        let name = fields[usize::from(which) % fields.len()];
        put(header(name), block, u64::from_le_bytes(value));
    }
    let checksum = crc32c(&block[96..]);
    put(header("PAYLOAD_CHECKSUM"), block, checksum.into());
    put(header("CHECKSUM"), block, 0);
    let checksum = crc32c(&block[..96]);
    put(header("CHECKSUM"), block, checksum.into());
}

fn header(name: &str) -> Field {
    let mut fields = TABLES[0].fields.iter();
    *fields.find(|field| field.name == name).expect("a field of the header")
}

fn number(field: Field, bytes: &[u8]) -> u64 {
    let mut number = [0; 8];
    number[..field.len].copy_from_slice(&bytes[field.offset..field.offset + field.len]);
    u64::from_le_bytes(number)
}

fn put(field: Field, bytes: &mut [u8], value: u64) {
    bytes[field.offset..field.offset + field.len]
        .copy_from_slice(&value.to_le_bytes()[..field.len]);
}

/// A pool with a few volumes, some with data, and a log of a few records.
fn lived_in(disks: usize) -> Vec<Disk> {
    let mut disks = new_pool(1, &vec![SIZE / disks as u64; disks]);
    for round in 0..2 {
        let mut store = open(&mut disks).expect("a pool").store;
        for i in 0..2u64 {
            let name = format!("v{round}{i}");
            let id = store.create(&name, Bytes::mib(1 + i), &Placement::default()).expect("room");
            store.note_written(id, 0, &store::Blocks::first(Bytes::kib(8 << i)));
            store.note_length(id, Bytes::new(5000 << i));
            commit(&mut store, &mut disks);
        }
        let volumes: Vec<_> = store.volumes().map(|volume| volume.id()).collect();
        let suspect = store::Suspect { extent: 3, errors: 1, slow: 2, commands: 3 };
        store.suspect(store::DiskIndex(0), vec![suspect]);
        if let Ok(to) = store.reserve(volumes[0], 0) {
            store.relocate(volumes[0], 0, to).expect("room in the maps");
        }
        store.resize(volumes[0], Bytes::new(4000)).expect("it is there");
        if round == 0 {
            thin(&mut store);
        }
        if round == 1 {
            store.delete(volumes[1]).expect("it is there");
            seen_as_files(&mut store);
        }
        commit(&mut store, &mut disks);
    }
    disks
}

/// A thin ring that has given up one of two runs that had places; the other was written.
fn thin(store: &mut store::Store) {
    let placement = Placement { run: Bytes::mib(2), thin: true, ..Placement::default() };
    let id = store.create_ring("loop", Bytes::mib(32), &placement, Ownership::ROOT);
    let id = id.expect("nothing is reserved");
    [3, 20].into_iter().for_each(|extent| store.place(id, extent).expect("room"));
    store.note_written(id, 20, &store::Blocks::first(Bytes::kib(8)));
    store.give_up(id, Bytes::mib(33)).expect("it ends there");
}

/// What a mount, a service and a policy leave: names, owners, times, runs and holes. In the last
/// record, which is read where it lies.
fn seen_as_files(store: &mut store::Store) {
    store.set_clock(1_700_000_000_000_000_000);
    let held = store.volumes().next().expect("made in the round before").id();
    let kind = Ownership { uid: 1000, gid: 100, mode: Ownership::DIRECTORY | 0o755 };
    store.create_owned("d", Bytes::ZERO, &Placement::default(), kind).expect("room");
    let run = Placement { run: Bytes::mib(2), ..Placement::default() };
    let id = store.create("long", Bytes::mib(1), &run).expect("room");
    store.note_written(id, 0, &store::Blocks::of(&(Bytes::kib(8)..Bytes::kib(16))));
    store.note_arrived(id, Bytes::ZERO, Bytes::kib(8));
    store.set_clock(1_700_000_009_000_000_000);
    store.note_arrived(id, Bytes::kib(8), Bytes::kib(16));
    store.note_length(id, Bytes::kib(16));
    let ring = store.create_ring("ring", Bytes::mib(32), &Placement::default(), Ownership::ROOT);
    let ring = ring.expect("room");
    store.note_length(ring, Bytes::mib(20));
    store.give_up(ring, Bytes::mib(33)).expect("it is full there");
    store.keep_for(ring, Some(units::Duration::from_secs(3_600))).expect("a ring");
    store.note_arrived(ring, Bytes::mib(20), Bytes::mib(21));
    let (now, by) = (1_800_000_000_000_000_000, 90_000_000_000_000_000);
    store.set_clock(now);
    assert!(store.note_step(ring, now - by / 2, by), "it was recorded by a clock that was behind");
    let thin = store.find("loop").expect("made in the round before").id();
    store.place(thin, 30).expect("room");
    store.note_written(thin, 30, &store::Blocks::first(Bytes::kib(4)));
    store.rename(&[(held, "d/film".into())], None).expect("the name is free");
    store.set_times(held, Times { accessed: -1, modified: 2, changed: 3 }).expect("room");
    let kind = ServiceKind::BestEffort { priority: ServicePriority::Background };
    let service = Service { given_by: 1000, kind };
    store.set_service(held, Some(service)).expect("room");
    let settings = vec![("burst".into(), 1 << 20)];
    let policy = KeptPolicy { name: "slack".into(), settings };
    store.set_policy(Some(policy)).expect("room");
}

/// The pool of one disk and that of two, made once for each thread.
fn pool(flags: u8) -> Vec<Disk> {
    thread_local! {
        static POOLS: [OnceCell<Vec<Disk>>; 2] = const { [OnceCell::new(), OnceCell::new()] };
    }
    let disks = 1 + usize::from(flags & TWO_DISKS);
    POOLS.with(|pools| pools[disks - 1].get_or_init(|| lived_in(disks)).clone())
}

/// Where the structures that count of this kind begin: all labels, all checkpoints, all
/// copies of the last record.
fn places(disks: &[Disk], magic: &Magic) -> Vec<(usize, u64)> {
    let found = disks.iter().enumerate().flat_map(|(i, disk)| {
        disk.used_blocks().filter_map(move |block| {
            let offset = block * BLOCK as u64;
            let bytes = disk.block(offset);
            let sequence = number(header("SEQUENCE"), &bytes[..]);
            bytes.starts_with(magic).then_some((sequence, i, offset))
        })
    });
    let found: Vec<_> = found.collect();
    let last = found.iter().map(|(sequence, ..)| *sequence).max().unwrap_or(0);
    let alike = found.into_iter().filter(|(sequence, ..)| *sequence == last);
    alike.map(|(_, disk, offset)| (disk, offset)).collect()
}

/// Each opening and each commit needs a number more of these, so that a pool which has nearly none
/// left opens once and not again: after 2^62 of them. The number of the next volume, which is in
/// the payload, is not spent so.
fn is_nearly_spent([flags, _, value @ ..]: [u8; HEAD]) -> bool {
    const LAST: u64 = (1 << 62) - 1;
    flags & SET_FIELD != 0 && (LAST - 16..=LAST).contains(&u64::from_le_bytes(value))
}

pub fn ask(input: &[u8]) -> bool {
    let Some((head, payload)) = parts(input) else { return false };
    if is_nearly_spent(head) {
        return false;
    }
    let (flags, magic) = (head[0], kind(head[0]));
    let mut disks = pool(flags);
    let mut places = places(&disks, magic);
    // A label names its own disk.
    places.retain(|(disk, _)| *disk == 0 || magic != OF_LABEL);
    places.truncate(if flags & ONE_COPY != 0 { 1 } else { places.len() });
    for (disk, offset) in places {
        disks[disk].change(offset, |block| fill(&mut block[..], head, payload));
    }
    let report = check(&disks);
    let is_wrong = report.worst() == Some(store::Severity::Error);
    if is_wrong && !input.len().is_multiple_of(8) {
        return false; // opening reads the same, and agrees
    }
    match open(&mut disks) {
        Err(error) => assert!(is_wrong, "{error}: {report:?}"),
        Ok(opened) => {
            assert!(!is_wrong, "it was opened: {report:?}");
            lives_on(opened.store, disks);
        }
    }
    !is_wrong
}

/// What was taken adds up, is the same when it is opened again, and can be changed.
fn lives_on(mut store: store::Store, mut disks: Vec<Disk>) {
    accounts(&store).expect("what was taken adds up");
    let state = Description::of(&store);
    let again = open(&mut disks).expect("what was opened opens").store;
    assert_eq!(Description::of(&again), state, "the same again");
    let volumes: Vec<_> = store.volumes().map(|volume| volume.id()).collect();
    store = again;
    volumes.iter().for_each(|id| store.delete(*id).expect("it was there"));
    let _ = store.create("again", Bytes::mib(2), &Placement::default());
    commit(&mut store, &mut disks);
    let again = open(&mut disks).expect("what was changed opens").store;
    assert_eq!(Description::of(&again), Description::of(&store));
}

fn seeds(magic: &Magic) -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for flags in [0, TWO_DISKS] {
        let disks = pool(flags);
        let alike = if magic == OF_LABEL { 1 } else { disks.len() };
        for disk in &disks[..alike] {
            for block in disk.used_blocks() {
                let bytes = disk.block(block * BLOCK as u64);
                if !bytes.starts_with(magic) {
                    continue;
                }
                let len = number(header("PAYLOAD_LENGTH"), &bytes[..]) as usize;
                let payload = &bytes[96..96 + len.min(BLOCK - 96)];
                seeds.push([&[flags][..], &[0; HEAD - 1], payload].concat());
            }
        }
    }
    seeds.sort();
    seeds.dedup();
    seeds
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a pool counts on from is refused where it cannot go on, and what it has written itself
    /// it can read.
    #[test]
    fn numbers_at_the_end_of_what_can_be_counted_are_lived_with() {
        let (end, mut taken) = (1_u64 << 62, [0; 2]);
        for seed in pools() {
            for (which, value) in (0..4).flat_map(|it| (end - 20..end + 2).map(move |at| (it, at)))
            {
                let mut input = seed.clone();
                input[0] |= SET_FIELD;
                input[1] = which;
                input[2..HEAD].copy_from_slice(&value.to_le_bytes());
                taken[0] += usize::from(ask(&input));
            }
            // The number of the next volume stands before all changes.
            for value in end - 6..end + 2 {
                let mut input = seed.clone();
                if let Some(next) = input.get_mut(HEAD..HEAD + 8) {
                    next.copy_from_slice(&value.to_le_bytes());
                    taken[1] += usize::from(ask(&input));
                }
            }
        }
        assert!(taken.iter().all(|&taken| taken > 10), "{taken:?} were taken");
    }

    /// A change that is new in the format is not left out here.
    #[test]
    fn each_change_of_a_volume_is_in_a_seed() {
        let seeds = [records(), checkpoints()].concat();
        let changes = TABLES.iter().filter(|table| table.name.starts_with("Change "));
        for table in changes.filter(|table| table.fields.iter().any(|it| it.name == "VOLUME")) {
            let number = table.name["Change ".len()..].split(':').next().expect("a number");
            let tag: u8 = number.parse().expect("a number");
            // One of the first volumes of the first or of the second life.
            let is_number = |part: &[u8]| part[0] < 9 && part[3] < 2 && part[4..8] == [0; 4];
            let is_it = |part: &[u8]| part[0] == tag && is_number(&part[1..9]);
            let is_in = |seed: &Vec<u8>| seed[HEAD..].windows(9).any(is_it);
            assert!(seeds.iter().any(is_in), "{}", table.name);
        }
    }
}
