//! Every kind of damage is named, or mended from another copy; nothing panics,
//! and no wrong state is ever served silently.
//!
//! The one exception: where both copies of the last record (or of the last few)
//! are destroyed on every disk, and can be read, that cannot be told from a commit
//! that the power cut short, and the state before it is served.

use crate::common;
use crate::common::history::{Description, accounts};
use crate::common::{
    BLOCK, Cut, Disk, Random, capacities, check, commit, disk, new_pool, open, run_until,
};
use checksum::crc32c;
use store::{
    Blocks, Checking, DiskIndex, Field, MAGICS, OpenError, Opening, Placement, Report, Severity,
    Store, TABLES, Zone,
};
use units::Bytes;

/// A structure that was found on a disk.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Found {
    disk: usize,
    kind: &'static str,
    offset: u64,
    generation: u64,
    sequence: u64,
    size: u64,
}

fn field(table: &str, name: &str) -> Field {
    let table = TABLES.iter().find(|t| t.name == table).expect("the table exists");
    *table.fields.iter().find(|f| f.name == name).expect("the field exists")
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

/// All structures on all disks.
fn structures(disks: &[Disk]) -> Vec<Found> {
    let header = |name| field("Header", name);
    let mut all = Vec::new();
    for (i, disk) in disks.iter().enumerate() {
        for block in disk.used_blocks() {
            let offset = block * BLOCK as u64;
            let bytes = disk.block(offset);
            let Some((kind, _)) = MAGICS.iter().find(|(_, magic)| bytes.starts_with(*magic)) else {
                continue;
            };
            all.push(Found {
                disk: i,
                kind,
                offset,
                generation: number(header("GENERATION"), &bytes[..]),
                sequence: number(header("SEQUENCE"), &bytes[..]),
                size: (96 + number(header("PAYLOAD_LENGTH"), &bytes[..]))
                    .next_multiple_of(BLOCK as u64),
            });
        }
    }
    all
}

/// The structures of the current generation, and what stands beside it: the
/// twin's checkpoint and seal, labels and profiles.
fn current(disks: &[Disk]) -> Vec<Found> {
    let all = structures(disks);
    let newest = all.iter().map(|found| found.generation).max().unwrap();
    let alive = |found: &Found| match found.kind {
        "record" => found.generation == newest,
        _ => true,
    };
    all.into_iter().filter(alive).collect()
}

/// A pool with some volumes and a log of five records, its state, and its state
/// after each record from the last one back.
fn lived_in(n: u64, capacities: &[Bytes]) -> (Vec<Disk>, Description, Vec<Description>) {
    let mut disks = new_pool(n, capacities);
    let mut store = open(&mut disks).unwrap().store;
    let mut states = vec![Description::of(&store)];
    for i in 0..5 {
        let zone = [Zone::Any, Zone::Inner, Zone::Outer][i % 3];
        let placement = Placement { zone, ..Placement::default() };
        let id = store.create(&format!("v{i}"), Bytes::mib(1 + i as u64 % 2), &placement).unwrap();
        store.note_written(id, 0, &Blocks::first(Bytes::kib(8 << i)));
        store.note_length(id, Bytes::new(5000 << i));
        if i == 3 {
            let first = store.volumes().next().unwrap().id();
            store.delete(first).unwrap();
        }
        assert!(commit(&mut store, &mut disks));
        states.insert(0, Description::of(&store));
    }
    (disks, Description::of(&store), states)
}

fn opened(disks: &[Disk]) -> Result<(Vec<Disk>, Store), OpenError> {
    let mut disks = disks.to_vec();
    let store = open(&mut disks)?.store;
    Ok((disks, store))
}

fn only_notes(report: &Report) -> bool {
    report.worst() <= Some(Severity::Note)
}

/// Each structure in turn loses one bit; there is always another copy.
#[test]
fn one_flipped_bit_in_any_structure_is_named_and_mended() {
    let mut random = Random::new(1);
    for sizes in [vec![Bytes::mib(12)], vec![Bytes::mib(12), Bytes::mib(10)]] {
        let (disks, state, _) = lived_in(1, &sizes);
        assert!(check(&disks).findings.is_empty(), "{:#?}", check(&disks));
        let all = current(&disks);
        let kinds = |kind| all.iter().filter(|found| found.kind == kind).count() / sizes.len();
        // Two of everything, and five records twice.
        assert_eq!(MAGICS.map(|(kind, _)| kinds(kind)), [2, 2, 2, 10, 1]);
        for found in all {
            let mut hurt = disks.clone();
            let bit = found.offset * 8 + random.below(found.size * 8);
            hurt[found.disk].flip(bit);
            let report = check(&hurt);
            let named = report.findings.iter().any(|finding| {
                finding.severity == Severity::Warning
                    && finding.device == Some(disk(found.disk as u16))
                    && finding.offset == Some(Bytes::new(found.offset))
                    && finding.what.contains(found.kind)
            });
            assert!(named, "{found:?}: {:#?}", report.findings);
            assert_eq!(report.findings.len(), 1, "{found:?}: {:#?}", report.findings);
            let (mended, store) = opened(&hurt).unwrap();
            assert_eq!(Description::of(&store), state, "{found:?}");
            assert!(check(&mended).findings.is_empty(), "{found:?}: {:#?}", check(&mended));
        }
    }
}

/// What is mended is mended in an order that a power cut cannot spoil.
#[test]
fn one_flipped_bit_and_a_power_cut_while_it_is_mended_are_survived() {
    let mut random = Random::new(6);
    for sizes in [vec![Bytes::mib(12)], vec![Bytes::mib(12), Bytes::mib(10)]] {
        let (disks, state, _) = lived_in(1, &sizes);
        for found in current(&disks) {
            for limit in 1..20 {
                let mut hurt = disks.clone();
                hurt[found.disk].flip(found.offset * 8 + random.below(found.size * 8));
                let mut opening = Opening::new(&capacities(&hurt));
                let ended = run_until(&mut opening, &mut hurt, limit);
                let ways = [Cut::Dropped, Cut::Applied]
                    .into_iter()
                    .chain([Cut::Any, Cut::Torn, Cut::Torn].repeat(4));
                for how in ways {
                    let cut: Vec<Disk> = hurt.iter().map(|d| d.cut(how, &mut random)).collect();
                    let (mended, store) = opened(&cut)
                        .unwrap_or_else(|e| panic!("{found:?}, cut at {limit}, {how:?}: {e}"));
                    assert_eq!(Description::of(&store), state, "{found:?}, cut at {limit}");
                    assert!(check(&mended).findings.is_empty());
                }
                if ended {
                    break;
                }
            }
        }
    }
}

/// Both copies of a thing are damaged: an error that names it.
#[test]
fn what_is_damaged_in_every_copy_is_an_error_that_names_it() {
    let (disks, state, states) = lived_in(1, &[Bytes::mib(12)]);
    let all = current(&disks);
    let last = all.iter().map(|found| found.sequence).max().unwrap();
    for (kind, _) in MAGICS {
        let sequences: Vec<u64> = match kind {
            "record" => (last - 4..=last).collect(),
            _ => vec![0],
        };
        for sequence in sequences {
            let mut hurt = disks.clone();
            let of_it = |found: &&Found| {
                found.kind == kind && (kind != "record" || found.sequence == sequence)
            };
            for found in all.iter().filter(of_it) {
                hurt[0].flip(found.offset * 8 + 200);
            }
            let result = opened(&hurt);
            match kind {
                "seal" => assert_eq!(Description::of(&result.unwrap().1), state),
                "record" if sequence == last => {
                    assert_eq!(Description::of(&result.unwrap().1), states[1], "see above");
                }
                _ => {
                    let error = result.unwrap_err().to_string();
                    assert!(error.contains(kind) && error.contains("given disk 0"), "{error}");
                    let report = check(&hurt);
                    let named =
                        |f: &store::Finding| f.severity == Severity::Error && f.what.contains(kind);
                    assert!(report.findings.iter().any(named), "{kind}: {report:#?}");
                }
            }
        }
    }
}

/// A whole area is overwritten, as by a file system made on the wrong disk.
#[test]
fn an_area_that_is_gone_is_never_taken_for_one_that_was_not_written_yet() {
    let (disks, state, _) = lived_in(1, &[Bytes::mib(12)]);
    let newest = current(&disks).iter().map(|found| found.generation).max().unwrap();
    let lost = |generation: u64| {
        let mut hurt = disks.clone();
        for found in structures(&disks) {
            let is_log = found.kind == "record" || found.kind == "checkpoint";
            if is_log && found.generation == generation {
                hurt[0].change(found.offset, |block| block.fill(0x5a));
            }
        }
        hurt
    };
    let error = opened(&lost(newest)).unwrap_err().to_string();
    assert!(error.contains("checkpoint in area A"), "{error}");
    let (_, store) = opened(&lost(newest - 1)).unwrap();
    assert_eq!(Description::of(&store), state);
}

#[test]
fn disks_that_cannot_be_read_are_named_and_spared_where_there_is_a_copy() {
    let (disks, state, _) = lived_in(1, &[Bytes::mib(12)]);
    for found in current(&disks) {
        let mut hurt = disks.clone();
        hurt[0].unreadable = vec![found.offset / BLOCK as u64];
        let report = check(&hurt);
        let told = report
            .findings
            .iter()
            .any(|f| f.what.contains("errno 5") || f.what.contains(found.kind));
        assert!(told, "{found:?}: {report:#?}");
        let (_, store) = opened(&hurt).unwrap();
        assert_eq!(Description::of(&store), state, "{found:?}");
    }
    let mut hurt = disks.clone();
    hurt[0].unreadable = (0..12 << 8).collect();
    let error = opened(&hurt).unwrap_err().to_string();
    assert!(error.contains("label") && error.contains("errno 5"), "{error}");
}

/// The blocks of the records with these numbers, in all copies on one disk.
fn blocks_of(all: &[Found], disk: usize, sequences: std::ops::RangeInclusive<u64>) -> Vec<u64> {
    let of_it = |found: &&Found| {
        found.disk == disk && found.kind == "record" && sequences.contains(&found.sequence)
    };
    let blocks = |found: &Found| {
        found.offset / BLOCK as u64..(found.offset + found.size).div_ceil(BLOCK as u64)
    };
    all.iter().filter(of_it).flat_map(blocks).collect()
}

/// The disk, copied to another one, with zeros for what cannot be read.
fn copied(disk: &Disk) -> Disk {
    let mut copy = disk.clone();
    for block in std::mem::take(&mut copy.unreadable) {
        copy.change(block * BLOCK as u64, |bytes| bytes.fill(0));
    }
    copy
}

/// Opening and checking refuse it for an end of the log that cannot be read, and write nothing.
fn assert_end_unreadable(disks: &[Disk], case: &str) {
    let mut given = disks.to_vec();
    let error = open(&mut given).err().unwrap_or_else(|| panic!("{case}: it was opened"));
    let writes = |disks: &[Disk]| disks.iter().map(Disk::writes).collect::<Vec<_>>();
    assert_eq!(writes(&given), writes(disks), "{case}: nothing is written");
    let OpenError::Damaged(damage) = &error else { panic!("{case}: {error}") };
    let at = damage.offset / Bytes::new(BLOCK as u64);
    assert!(disks[damage.device.as_usize()].unreadable.contains(&at), "{case}: {error}");
    let text = error.to_string();
    assert!(text.contains("log record") && text.contains("errno 5"), "{case}: {text}");
    assert!(text.contains("copy the disk to another one, with zeros"), "{case}: {text}");
    let report = check(disks);
    let told = report.findings.iter().filter(|finding| finding.severity == Severity::Error);
    let told: Vec<_> = told.collect();
    assert_eq!(told.len(), 1, "{case}: {report:#?}");
    assert_eq!(told[0].offset, Some(damage.offset), "{case}");
    assert!(text.ends_with(told[0].next), "{case}: {text}");
}

/// The device cannot read the last records, or all of the log: commits that were acknowledged are not
/// taken for ones that never were. When it reads them again they are there; on a copy that has zeros in
/// their place, the state before them.
#[test]
fn an_end_of_the_log_that_cannot_be_read_is_not_taken_for_one_without_a_record() {
    for sizes in [vec![Bytes::mib(12)], vec![Bytes::mib(12), Bytes::mib(10)]] {
        let (disks, state, states) = lived_in(1, &sizes);
        let all = current(&disks);
        let last = all.iter().map(|found| found.sequence).max().unwrap();
        for lost in 1..=5 {
            for whole_log in [false, true] {
                let mut hurt = disks.clone();
                for (i, disk) in hurt.iter_mut().enumerate() {
                    disk.unreadable = blocks_of(&all, i, last + 1 - lost..=last);
                    if whole_log {
                        let first = disk.unreadable[0];
                        let used = 2 * (5 - lost);
                        disk.unreadable = (first..first + 16 - used).collect(); // 64 KiB
                    }
                }
                let case = format!("{} disks, {lost} records, {whole_log}", sizes.len());
                assert_end_unreadable(&hurt, &case);
                let copies: Vec<Disk> = hurt.iter().map(copied).collect();
                let opens = Description::of(&opened(&copies).unwrap().1);
                assert_eq!(opens, states[lost as usize], "{case}");
                hurt.iter_mut().for_each(|disk| disk.unreadable.clear());
                assert_eq!(Description::of(&opened(&hurt).unwrap().1), state, "{case}");
                if sizes.len() == 1 {
                    continue;
                }
                // What one disk has is enough to know it, and what one has not, too.
                hurt[0].unreadable = blocks_of(&all, 0, last..=last);
                assert_eq!(Description::of(&opened(&hurt).unwrap().1), state, "{case}");
                hurt[1].unreadable = blocks_of(&all, 1, last..=last);
                hurt[1] = copied(&hurt[1]);
                assert_eq!(Description::of(&opened(&hurt).unwrap().1), states[1], "{case}");
            }
        }
    }
}

/// A record of several blocks. A power cut leaves one block that cannot be read, at the most: that was no
/// commit. One such block in each copy is damage.
#[test]
fn one_block_that_a_power_cut_left_unreadable_is_no_commit_that_is_lost() {
    let mut disks = new_pool(1, &[Bytes::mib(12)]);
    let mut store = open(&mut disks).unwrap().store;
    let before = Description::of(&store);
    for i in 0..40 {
        let name = format!("{i:0>200}");
        store.create(&name, Bytes::ZERO, &Placement::default()).unwrap();
    }
    assert!(commit(&mut store, &mut disks));
    let after = Description::of(&store);
    let all = current(&disks);
    let last = all.iter().map(|found| found.sequence).max().unwrap();
    let blocks = blocks_of(&all, 0, last..=last);
    let (first, second) = blocks.split_at(blocks.len() / 2);
    assert!(first.len() >= 3, "{blocks:?}");
    for &a in first {
        for &b in second {
            let mut hurt = disks.clone();
            hurt[0].unreadable = vec![a, b];
            assert_end_unreadable(&hurt, &format!("{a} and {b} of {blocks:?}"));
        }
    }
    for (copy, other) in [(first, second), (second, first)] {
        for &a in copy {
            let mut hurt = disks.clone();
            hurt[0].unreadable = vec![a];
            assert_eq!(Description::of(&opened(&hurt).unwrap().1), after, "{a} of {blocks:?}");
            // The other copy was not written yet.
            for &b in other {
                hurt[0].change(b * BLOCK as u64, |bytes| bytes.fill(0));
            }
            assert_eq!(Description::of(&opened(&hurt).unwrap().1), before, "{a} of {blocks:?}");
        }
    }
}

/// Every power cut leaves such a block. When the pool is opened that becomes zeros, so that there is one at
/// a time: two of them would be damage.
#[test]
fn blocks_that_power_cuts_left_unreadable_do_not_become_more() {
    for sizes in [vec![Bytes::mib(12)], vec![Bytes::mib(12), Bytes::mib(10)]] {
        let (mut disks, mut state, _) = lived_in(1, &sizes);
        for cut in 0..5 {
            let all = current(&disks);
            let last = all.iter().map(|found| found.sequence).max().unwrap();
            for (i, disk) in disks.iter_mut().enumerate() {
                // The first copy of the record behind the last one was being written.
                let end = blocks_of(&all, i, last..=last).last().unwrap() + 1;
                disk.unreadable.push(end);
            }
            let report = check(&disks);
            assert_eq!(report.worst(), Some(Severity::Warning), "{cut}: {report:#?}");
            let (mended, mut store) = opened(&disks).unwrap_or_else(|e| panic!("{cut}: {e}"));
            assert_eq!(Description::of(&store), state, "{cut}");
            disks = mended;
            assert!(disks.iter().all(|disk| disk.unreadable.is_empty()), "{cut}");
            assert!(check(&disks).findings.is_empty(), "{cut}: {:#?}", check(&disks));
            for n in 0..5 - cut {
                let name = format!("cut{cut}-{n}");
                store.create(&name, Bytes::ZERO, &Placement::default()).unwrap();
                assert!(commit(&mut store, &mut disks));
            }
            state = Description::of(&store);
        }
    }
}

/// The last records of one disk of two cannot be read. That disk is no copy of an earlier time: which byte
/// cannot be read is said, and what to do about that.
#[test]
fn a_disk_whose_last_records_cannot_be_read_is_not_told_as_an_older_copy() {
    let (disks, state, _) = lived_in(1, &[Bytes::mib(12), Bytes::mib(10)]);
    let all = current(&disks);
    let last = all.iter().map(|found| found.sequence).max().unwrap();
    for (hurt, lost) in [(0, 2), (1, 2), (1, 4)] {
        let mut given = disks.clone();
        given[hurt].unreadable = blocks_of(&all, hurt, last + 1 - lost..=last);
        let mut written = given.clone();
        let error = open(&mut written).expect_err("it lacks what the other proves");
        assert_eq!(written[hurt].writes(), given[hurt].writes(), "nothing is written");
        let OpenError::Behind { disks: lags } = &error else { panic!("{error}") };
        assert_eq!((lags.len(), lags[0].device), (1, disk(hurt as u16)));
        let first = given[hurt].unreadable[0] * BLOCK as u64;
        let text = error.to_string();
        let report = check(&given);
        let finding = report.findings.iter().find(|f| f.severity == Severity::Error).unwrap();
        for text in [text, finding.to_string()] {
            assert!(text.contains(&format!("from byte {first} on, cannot be read")), "{text}");
            assert!(text.contains("errno 5"), "{text}");
            assert!(text.contains("check the disk and its cable, and try again"), "{text}");
            assert!(!text.contains("; it is a copy of an earlier time"), "{text}");
        }
        given[hurt].unreadable.clear();
        assert_eq!(Description::of(&opened(&given).unwrap().1), state);
    }
}

fn errors(disks: &[Disk]) -> (OpenError, String) {
    let error = opened(disks).expect_err("it cannot be opened");
    let report = check(disks);
    let told = |f: &store::Finding| {
        f.severity == Severity::Error && error.to_string() == format!("{}; {}", f.what, f.next)
    };
    assert!(report.findings.iter().any(told), "{error}\n{report:#?}");
    let text = error.to_string();
    (error, text)
}

#[test]
fn wrong_disks_are_named_with_the_next_step() {
    let sizes = [Bytes::mib(12), Bytes::mib(10)];
    let (disks, state, _) = lived_in(1, &sizes);
    let (foreign, ..) = lived_in(2, &sizes);

    let (error, text) = errors(&disks[..1]);
    let (index, id) = (disk(1), common::id(2, 101));
    assert!(matches!(error, OpenError::Missing { index: i, id: d, .. } if (i, d) == (index, id)));
    assert!(text.contains("disk 1") && text.contains(&id.to_string()), "{text}");

    let (error, _) = errors(&[disks[0].clone(), disks[1].clone(), foreign[0].clone()]);
    assert!(matches!(error, OpenError::OtherPool { device: DiskIndex(2), .. }), "{error}");
    let (error, _) = errors(&[disks[0].clone(), foreign[1].clone()]);
    assert!(matches!(error, OpenError::OtherPool { device: DiskIndex(1), .. }), "{error}");
    assert!(error.to_string().contains("pool-2"), "{error}");

    let (error, _) = errors(&[disks[0].clone(), disks[1].clone(), disks[0].clone()]);
    let same = |device, other| matches!(error, OpenError::SameDisk { device: d, other: o, .. } if (d, o) == (device, other));
    assert!(same(disk(2), disk(0)), "{error}");

    let (error, _) = errors(&[disks[0].clone(), Disk::new(Bytes::mib(10))]);
    let lacking = Some("pool-1".into());
    assert_eq!(error, OpenError::NotAPool { device: disk(1), capacity: Bytes::mib(10), lacking });
    let (error, _) = errors(&[Disk::new(Bytes::ZERO)]);
    let nothing = OpenError::NotAPool { device: disk(0), capacity: Bytes::ZERO, lacking: None };
    assert_eq!(error, nothing);
    let (error, _) = errors(&[]);
    assert_eq!(error, OpenError::DiskCount { disks: 0 });
    let (error, _) = errors(&vec![Disk::new(Bytes::mib(10)); 65]);
    assert_eq!(error, OpenError::DiskCount { disks: 65 });

    let mut short = disks.clone();
    short[1].capacity -= BLOCK as u64;
    let (error, text) = errors(&short);
    assert!(matches!(error, OpenError::CutShort { device: DiskIndex(1), .. }), "{error}");
    assert!(text.contains(&(10 << 20).to_string()), "{text}");

    let mut longer = disks.clone();
    longer[0].capacity += 5 << 20;
    assert_eq!(Description::of(&opened(&longer).unwrap().1), state, "a larger device will do");
}

/// The caller learns which device is which disk, whatever the order.
#[test]
fn swapped_disks_are_recognised() {
    let (disks, state, _) = lived_in(1, &[Bytes::mib(12), Bytes::mib(10), Bytes::mib(11)]);
    let mut given = vec![disks[2].clone(), disks[0].clone(), disks[1].clone()];
    let report = check(&given);
    assert_eq!(report.worst(), Some(Severity::Note), "{report:#?}");
    assert!(report.findings[0].what.contains("another order"), "{report:#?}");
    let opened = open(&mut given).unwrap();
    assert_eq!(opened.order, [disk(2), disk(0), disk(1)]);
    assert_eq!(Description::of(&opened.store), state);
    assert!(only_notes(&check(&given)));
}

#[test]
fn a_newer_format_is_named() {
    let (mut disks, ..) = lived_in(1, &[Bytes::mib(12)]);
    let version = store::VERSION + 1;
    let newer = u64::from(version);
    for found in current(&disks).iter().filter(|found| found.kind == "label") {
        disks[0].change(found.offset, |block| put(field("Header", "VERSION"), block, newer));
        restamp(&mut disks[0], found.offset);
    }
    let (error, text) = errors(&disks);
    assert_eq!(error, OpenError::Newer { device: disk(0), version });
    assert!(
        text.contains(&format!("version {version}")) && text.contains("newer program"),
        "{text}"
    );
}

/// A block that the disk put in another place, and blocks of other disks and pools.
#[test]
fn whole_structures_in_wrong_places_are_not_taken() {
    let sizes = [Bytes::mib(12), Bytes::mib(12)];
    let (disks, state, _) = lived_in(1, &sizes);
    let (mut other, ..) = lived_in(2, &sizes);
    open(&mut other).unwrap(); // its generations are higher
    let all = current(&disks);
    let twin = *all.iter().filter(|f| f.kind == "checkpoint").max_by_key(|f| f.offset).unwrap();
    let main = *all.iter().filter(|f| f.kind == "checkpoint").min_by_key(|f| f.offset).unwrap();
    let cases = [
        (disks[0].block(main.offset), "another place"),
        (disks[1].block(twin.offset), "another pool or disk"),
        (other[0].block(twin.offset), "another pool or disk"),
    ];
    for (block, problem) in cases {
        let mut hurt = disks.clone();
        hurt[0].change(twin.offset, |bytes| *bytes = *block);
        let report = check(&hurt);
        assert!(report.findings[0].what.contains(problem), "{problem}: {report:#?}");
        assert_eq!((report.findings.len(), report.worst()), (1, Some(Severity::Warning)));
        assert_eq!(Description::of(&opened(&hurt).unwrap().1), state, "{problem}");
    }
}

/// Two copies of one record, both whole, that say different things: neither is believed.
#[test]
fn copies_that_differ_are_refused() {
    let (disks, ..) = lived_in(1, &[Bytes::mib(12)]);
    let last = current(&disks).into_iter().rfind(|found| found.kind == "record").unwrap();
    let mut hurt = disks.clone();
    let volume = 96 + 12 + 1; // header, fixed part, tag: the number of the record's first volume
    hurt[0].change(last.offset, |block| block[volume] ^= 2);
    restamp(&mut hurt[0], last.offset);
    let text = opened(&hurt).unwrap_err().to_string();
    assert!(text.contains("copies differ") && text.contains("log record"), "{text}");
    assert_eq!(check(&hurt).worst(), Some(Severity::Error));
}

/// A number stands for one content for ever, also those of commits that were cut short.
#[test]
fn numbers_go_on_above_every_number_that_was_seen() {
    let (mut disks, state, _) = lived_in(1, &[Bytes::mib(12)]);
    let twin = current(&disks)
        .into_iter()
        .filter(|found| found.kind == "checkpoint")
        .max_by_key(|found| found.offset)
        .unwrap();
    // A checkpoint of which only the first sector arrived.
    disks[0].change(twin.offset, |block| {
        put(field("Header", "GENERATION"), block, 70);
        put(field("Header", "SEQUENCE"), block, 90);
        put(field("Header", "BASE"), block, 90);
    });
    restamp(&mut disks[0], twin.offset);
    disks[0].change(twin.offset, |block| block[BLOCK - 1] ^= 1);
    let (mended, store) = opened(&disks).unwrap();
    assert_eq!(Description::of(&store), state);
    for found in structures(&mended).iter().filter(|found| found.kind == "checkpoint") {
        assert!(found.generation > 70 && found.sequence > 90, "{found:?}");
    }
}

/// Makes the checksums of the structure at `offset` fit whatever it holds.
fn restamp(disk: &mut Disk, offset: u64) {
    let header = |name| field("Header", name);
    let length = number(header("PAYLOAD_LENGTH"), &disk.block(offset)[..]);
    let size = (96 + length).next_multiple_of(BLOCK as u64);
    if offset + size > disk.capacity {
        return;
    }
    let bytes = disk.read(offset, size).unwrap();
    let payload = crc32c(&bytes[96..]);
    disk.change(offset, |block| {
        put(header("PAYLOAD_CHECKSUM"), block, payload.into());
        put(header("CHECKSUM"), block, 0);
        let checksum = crc32c(&block[..96]);
        put(header("CHECKSUM"), block, checksum.into());
    });
}

/// A checkpoint and a seal that are whole, but of another generation than the pool's, are
/// named.
#[test]
fn structures_of_another_generation_are_named() {
    let (disks, ..) = lived_in(1, &[Bytes::mib(12), Bytes::mib(10)]);
    let generation = field("Header", "GENERATION");
    let successor = field("Seal payload", "SUCCESSOR");
    let successor = Field { offset: 96 + successor.offset, ..successor };
    // Of a seal, another successor; where it is no seal's, of a checkpoint.
    let mut named = [0, 0];
    for found in current(&disks) {
        let (at, what) = match found.kind {
            "checkpoint" => (generation, 0),
            "seal" => (successor, 1),
            _ => continue,
        };
        let mut hurt = disks.clone();
        let was = number(at, &hurt[found.disk].block(found.offset)[..]);
        hurt[found.disk].change(found.offset, |block| put(at, block, was - 1));
        restamp(&mut hurt[found.disk], found.offset);
        let report = check(&hurt);
        let says = report.findings.iter().any(|it| it.to_string().contains("generation"));
        named[what] += u64::from(says);
    }
    assert!(named.iter().all(|&named| named >= 2), "{named:?} named");
}

/// A check has not ended before it has begun.
#[test]
fn a_check_says_when_it_has_ended() {
    let (mut disks, ..) = lived_in(1, &[Bytes::mib(12)]);
    let mut checking = Checking::new(&capacities(&disks));
    assert!(!checking.is_finished());
    while let Some(io) = checking.poll() {
        assert!(!checking.is_finished());
        let result = disks[io.disk.as_usize()].do_io(&io.kind);
        checking.done(io.id, result);
    }
    assert!(checking.is_finished());
}

/// All that a pool must be after its disks were hurt: itself, or an error.
struct Outcome {
    served: u64,
    refused: u64,
}

impl Outcome {
    /// Opens and checks `hurt`, which may give one of `states`.
    fn take(&mut self, hurt: &[Disk], states: &[&Description], what: &str) {
        let report = check(hurt);
        match opened(hurt) {
            Ok((mended, store)) => {
                let state = Description::of(&store);
                assert!(states.contains(&&state), "{what}: a wrong state was served");
                assert!(only_notes(&check(&mended)), "{what}: {:#?}", check(&mended).findings);
                self.served += 1;
            }
            Err(error) => {
                assert_eq!(report.worst(), Some(Severity::Error), "{what}: {error}\n{report:#?}");
                self.refused += 1;
            }
        }
    }
}

/// Bits of all metadata blocks, current and stale.
fn metadata_bits(disks: &[Disk], random: &mut Random) -> (usize, u64) {
    let all: Vec<(usize, u64)> = disks
        .iter()
        .enumerate()
        .flat_map(|(i, disk)| disk.used_blocks().map(move |block| (i, block)))
        .collect();
    let (disk, block) = all[random.index(all.len())];
    (disk, block * BLOCK as u64 * 8 + random.below(BLOCK as u64 * 8))
}

#[test]
fn any_single_flipped_bit_is_survived() {
    let mut random = Random::new(2);
    for sizes in [vec![Bytes::mib(12)], vec![Bytes::mib(12), Bytes::mib(10)]] {
        let (disks, state, _) = lived_in(1, &sizes);
        let mut outcome = Outcome { served: 0, refused: 0 };
        for i in 0..3000 {
            let mut hurt = disks.clone();
            let (disk, bit) = metadata_bits(&disks, &mut random);
            hurt[disk].flip(bit);
            outcome.take(&hurt, &[&state], &format!("flip {i}, disk {disk}, bit {bit}"));
        }
        assert_eq!((outcome.served, outcome.refused), (3000, 0));
    }
}

/// Many flips, garbage, and blocks that went to another place.
#[test]
fn heavy_damage_gives_the_state_or_an_error() {
    let mut random = Random::new(3);
    for sizes in [vec![Bytes::mib(12)], vec![Bytes::mib(12), Bytes::mib(10)]] {
        let (disks, _, states) = lived_in(1, &sizes);
        let records: Vec<Found> =
            current(&disks).into_iter().filter(|found| found.kind == "record").collect();
        let last = records.iter().map(|found| found.sequence).max().unwrap();
        let mut outcome = Outcome { served: 0, refused: 0 };
        for i in 0..1500 {
            let mut hurt = disks.clone();
            let mut hit = Vec::new();
            for _ in 0..1 + random.below(12) {
                let (disk, bit) = metadata_bits(&disks, &mut random);
                let (other, elsewhere) = metadata_bits(&disks, &mut random);
                match random.below(3) {
                    0 => hurt[disk].flip(bit),
                    1 => hurt[disk].change(bit / 8, |block| {
                        block.iter_mut().for_each(|byte| *byte = random.next() as u8);
                    }),
                    _ => {
                        let block = disks[other].block(elsewhere / 8);
                        hurt[disk].change(bit / 8, |bytes| *bytes = *block);
                    }
                }
                hit.push((disk, bit / 8 / BLOCK as u64));
            }
            let gone = |found: &&Found| hit.contains(&(found.disk, found.offset / BLOCK as u64));
            let kept = records.iter().filter(|found| !gone(found));
            let lost = kept.map(|found| last - found.sequence).min().unwrap_or(5) as usize;
            let allowed: Vec<&Description> = states[..=lost].iter().collect();
            outcome.take(&hurt, &allowed, &format!("case {i}: {hit:?}"));
        }
        assert!(
            outcome.served > 200 && outcome.refused > 50,
            "{} {}",
            outcome.served,
            outcome.refused
        );
    }
}

/// Contents that make no sense under checksums that fit: the decoders believe
/// nothing. What they let pass must still add up.
#[test]
fn nonsense_with_good_checksums_never_panics() {
    let mut random = Random::new(4);
    let (disks, ..) = lived_in(1, &[Bytes::mib(12), Bytes::mib(10)]);
    let all = current(&disks);
    let (mut served, mut refused) = (0, 0);
    for i in 0..4000 {
        let mut hurt = disks.clone();
        let target = all[random.index(all.len())];
        // The same damage in every copy, so that it counts.
        let same = |found: &&Found| found.kind == target.kind && found.sequence == target.sequence;
        let numbers: Vec<u64> = (0..1 + random.below(4)).map(|_| random.next()).collect();
        for found in all.iter().filter(same) {
            let length = number(
                field("Header", "PAYLOAD_LENGTH"),
                &disks[found.disk].block(found.offset)[..],
            );
            for n in &numbers {
                let from = if n % 8 == 0 { 56 } else { 96 }; // sometimes in the header, too
                let at = from + (n >> 8) % (96 + length - from).min(BLOCK as u64 - from);
                let value = [0, 1, 0xff, (n >> 40) as u8][(n >> 4) as usize % 4];
                hurt[found.disk].change(found.offset, |block| block[at as usize] = value);
            }
            restamp(&mut hurt[found.disk], found.offset);
        }
        check(&hurt);
        match opened(&hurt) {
            Err(_) => refused += 1,
            Ok((mut disks, mut store)) => {
                served += 1;
                accounts(&store).unwrap_or_else(|what| panic!("case {i}: {what}"));
                let ids: Vec<_> = store.volumes().map(|volume| volume.id()).collect();
                ids.iter().for_each(|id| store.delete(*id).unwrap());
                let _ = store.create("again", Bytes::mib(2), &Placement::default());
                commit(&mut store, &mut disks);
                assert_eq!(
                    Description::of(&open(&mut disks).unwrap().store),
                    Description::of(&store)
                );
            }
        }
    }
    assert!(served > 200 && refused > 500, "{served} {refused}");
}

/// Disks full of noise, and of noise behind good magics.
#[test]
fn garbage_is_no_pool() {
    let mut random = Random::new(5);
    for _ in 0..200 {
        let mut disks = vec![Disk::new(Bytes::mib(8)); 1 + random.index(2)];
        for disk in &mut disks {
            for _ in 0..40 {
                let magic = MAGICS[random.index(5)].1;
                let offset = [random.below(8 << 20), random.below(1 << 17), 0][random.index(3)];
                disk.change(offset, |block| {
                    block.iter_mut().for_each(|byte| *byte = random.next() as u8);
                    block[..8].copy_from_slice(magic);
                });
            }
        }
        assert_eq!(capacities(&disks).len(), disks.len());
        assert!(opened(&disks).is_err());
        assert_eq!(check(&disks).worst(), Some(Severity::Error));
    }
}
