//! Bytes go to real files and come back: under contract and as best effort, over
//! one disk and over two, after an orderly end and after none.

use crate::common::*;
use engine::{Pool, Reply};
use node::{Error, Mode, Op};
use units::Bytes;

const BLOCK: Bytes = Bytes::kib(256);
const PIECE: Bytes = Bytes::kib(64);

/// A recording of a length that is no multiple of anything comes back to the
/// byte, through a stream and as best effort, also after opening the pool again.
#[test]
fn a_recording_comes_back_to_the_byte() {
    let dir = Dir::new();
    let disks = [dir.file("a")];
    Pool::create("tape", &disks, &untimed(64)).unwrap();
    let len = (3 << 20) + 12_345;
    let pool = Pool::open(&disks, options()).unwrap();
    volume(&pool, "film", Bytes::mib(8));
    let writer = stream(&pool, "film", Mode::Write, contract("4MiB/s", BLOCK));
    record(&pool, writer, len);
    match pool.call(Op::StreamClose { stream: writer }) {
        Ok(Reply::Durable { upto }) => assert_eq!(upto.get(), len),
        other => panic!("{other:?}"),
    }
    pool.shutdown().unwrap();

    let pool = Pool::open(&disks, options()).unwrap();
    let reader = stream(&pool, "film", Mode::Read, contract("4MiB/s", BLOCK));
    assert_eq!(play(&pool, reader), (vec![], len));
    let whole = read(&pool, "film", Bytes::mib(2), Bytes::mib(1)).unwrap();
    check(&whole, 2 << 20);
    drop(whole);
    pool.shutdown().unwrap();
}

/// What was synced is there when the process simply ends (the pool is dropped
/// with the writer open), on two disks that are given in the other order.
#[test]
fn what_was_synced_survives_an_end_without_shutdown() {
    let dir = Dir::new();
    let (a, b) = (dir.file("a"), dir.emulated("b"));
    Pool::create("pair", &[a.clone(), b.clone()], &untimed(64)).unwrap();
    let pool = Pool::open(&[a.clone(), b.clone()], options()).unwrap();
    volume(&pool, "film", Bytes::mib(8));
    let writer = stream(&pool, "film", Mode::Write, contract("800kB/s", BLOCK));
    record(&pool, writer, 1_500_000);
    match pool.call(Op::StreamSync { stream: writer }) {
        Ok(Reply::Durable { upto }) => assert_eq!(upto.get(), 1_500_000),
        other => panic!("{other:?}"),
    }
    drop(pool);

    let pool = Pool::open(&[b, a], options()).unwrap();
    let status = pool.status();
    assert!(status.volumes[0].extents.iter().all(|&extents| extents > 0), "on both disks");
    let reader = stream(&pool, "film", Mode::Read, contract("800kB/s", BLOCK));
    assert_eq!(play(&pool, reader), (vec![], 1_500_000));
}

/// Best-effort writes anywhere in a volume, many at a time, then a sync; bytes
/// that were never written are zeros.
#[test]
fn best_effort_writes_come_back_among_zeros() {
    every_third_block((0..256).collect());
}

/// A file is timed when the pool is made; the pool is empty all the same.
#[test]
fn a_timed_file_holds_an_empty_pool_with_its_profile() {
    let dir = Dir::new();
    let disks = [dir.file("a")];
    let created = Pool::create("tape", &disks, &size(64)).unwrap();
    let profile = &created.disks[0].1;
    assert!(profile.source.contains("timed") && profile.capacity() == Bytes::mib(64));
    let pool = Pool::open(&disks, options()).unwrap();
    assert_eq!(pool.description().profiles, std::slice::from_ref(profile));
    volume(&pool, "film", Bytes::mib(32));
    let bytes = read(&pool, "film", Bytes::ZERO, Bytes::mib(1)).unwrap();
    assert!(bytes.iter().all(|&byte| byte == 0), "what was timed is not seen");
}

/// The same from the back to the front, where each write is in front of others
/// whose zeros are still under way.
#[test]
fn best_effort_writes_overtake_no_zeros() {
    every_third_block((0..256).rev().collect());
}

fn every_third_block(order: Vec<u64>) {
    let dir = Dir::new();
    let disks = [dir.file("a"), dir.file("b")];
    Pool::create("blocks", &disks, &untimed(64)).unwrap();
    let pool = Pool::open(&disks, options()).unwrap();
    volume(&pool, "image", Bytes::mib(16));
    let (sender, ended) = std::sync::mpsc::channel();
    let places: Vec<u64> = order.into_iter().filter(|place| place % 3 == 0).collect();
    for &place in &places {
        let offset = PIECE * place;
        let mut memory = room(&pool, PIECE);
        memory.iter_mut().zip(offset.get()..).for_each(|(byte, at)| *byte = pattern(at));
        let sender = sender.clone();
        pool.write("image", offset, memory, move |result| sender.send(result.map(drop)).unwrap());
    }
    for _ in &places {
        ended.recv().unwrap().unwrap();
    }
    assert!(matches!(pool.call(Op::Sync), Ok(Reply::Done)));
    drop(pool);

    let pool = Pool::open(&disks, options()).unwrap();
    for place in 0..256 {
        let bytes = read(&pool, "image", PIECE * place, PIECE).unwrap();
        if place % 3 == 0 {
            check(&bytes, (PIECE * place).get());
        } else {
            assert!(bytes.iter().all(|&byte| byte == 0), "block {place} was never written");
        }
    }
    assert_eq!(pool.status().memory.best_effort, Bytes::ZERO, "all memory came back");
}

/// A model's service times never exceed what its profile predicts, also when
/// they pass through threads, timers and the whole node.
#[test]
fn an_emulated_disk_never_exceeds_its_prediction() {
    let dir = Dir::new();
    let disks = [dir.emulated("a")];
    Pool::create("slow", &disks, &size(64)).unwrap();
    let pool = Pool::open(&disks, options()).unwrap();
    volume(&pool, "film", Bytes::mib(4));
    let writer = stream(&pool, "film", Mode::Write, contract("1.5MB/s", BLOCK));
    record(&pool, writer, 2 << 20);
    pool.call(Op::StreamClose { stream: writer }).unwrap();
    let reader = stream(&pool, "film", Mode::Read, contract("1.5MB/s", BLOCK));
    assert_eq!(play(&pool, reader), (vec![], 2 << 20));
    let disk = &pool.status().disks[0];
    // What a writer brings beyond its rate is written in the slack.
    let account = &disk.account;
    assert!(account.real_time.requests + account.best_effort.requests >= 16, "{disk:?}");
    assert_eq!((disk.account.overruns, disk.account.errors), (0, 0), "{disk:?}");
    assert!(
        disk.account.actual_total <= disk.account.predicted_total
            && !disk.account.actual_total.is_zero()
    );
    let lateness = pool.host_lateness();
    assert!(lateness.completions.count() >= 16 && lateness.max() >= lateness.completions.max());
}

/// A stream's memory is with one holder at a time, whatever a program asks.
#[test]
fn a_streams_memory_is_lent_once_and_a_close_waits_for_it() {
    let dir = Dir::new();
    let disks = [dir.file("a")];
    Pool::create("tape", &disks, &untimed(64)).unwrap();
    let pool = Pool::open(&disks, options()).unwrap();
    volume(&pool, "film", Bytes::mib(4));
    let writer = stream(&pool, "film", Mode::Write, contract("4MiB/s", BLOCK));
    record(&pool, writer, 2 << 20);
    pool.call(Op::StreamClose { stream: writer }).unwrap();

    let reader = stream(&pool, "film", Mode::Read, contract("4MiB/s", BLOCK));
    let ask = || pool.call(Op::StreamRead { stream: reader, len_max: Bytes::mib(1) });
    let Ok(Reply::Data { bytes: chunk, .. }) = ask() else { panic!("no data") };
    assert!(matches!(ask(), Err(Error::Invalid { .. })), "a second piece");
    let advance = Op::StreamAdvance { stream: reader, len: Bytes::new(chunk.len() as u64) };
    assert!(matches!(pool.call(advance), Err(Error::Invalid { .. })), "under the reader's eyes");
    let (sender, closed) = std::sync::mpsc::channel();
    pool.submit(Op::StreamClose { stream: reader }, move |result| {
        sender.send(result.is_ok()).unwrap();
    });
    // The pool works on; the close does not end, and the bytes stay.
    volume(&pool, "other", Bytes::mib(4));
    assert!(closed.try_recv().is_err(), "closed while the program reads");
    check(&chunk, 0);
    drop(chunk);
    assert!(closed.recv().unwrap());
    assert!(matches!(ask(), Err(Error::NoSuchStream { .. })));
}

/// Whoever waits when the pool ends is told so, and memory that a program still
/// holds stays valid.
#[test]
fn the_end_of_a_pool_reaches_everybody() {
    let dir = Dir::new();
    let disks = [dir.file("a")];
    Pool::create("tape", &disks, &untimed(64)).unwrap();
    let pool = Pool::open(&disks, options()).unwrap();
    volume(&pool, "film", Bytes::mib(4));
    let writer = stream(&pool, "film", Mode::Write, contract("4MiB/s", BLOCK));
    let (sender, answers) = std::sync::mpsc::channel();
    let beyond = Bytes::mib(1);
    pool.submit(Op::StreamDurable { stream: writer, beyond }, move |result| {
        sender.send(result.map(drop)).unwrap();
    });
    let mut held = room(&pool, BLOCK);
    drop(pool);
    assert_eq!(answers.recv().unwrap(), Err(Error::ShuttingDown));
    held.fill(1);
    assert!(held.iter().all(|&byte| byte == 1));
}

/// Handles go back where they came from, and only through their own doors.
#[test]
fn memory_of_one_pool_is_not_anothers() {
    let dir = Dir::new();
    let (a, b) = ([dir.file("a")], [dir.file("b")]);
    Pool::create("a", &a, &untimed(64)).unwrap();
    Pool::create("b", &b, &untimed(64)).unwrap();
    let (a, b) = (Pool::open(&a, options()).unwrap(), Pool::open(&b, options()).unwrap());
    let memory = room(&a, BLOCK);
    let write = std::panic::AssertUnwindSafe(|| b.write("x", Bytes::ZERO, memory, |_| ()));
    assert!(std::panic::catch_unwind(write).is_err());
    let release = Op::Release { span: node::Span { offset: Bytes::ZERO, len: BLOCK } };
    let raw = std::panic::AssertUnwindSafe(|| a.submit(release, |_| ()));
    assert!(std::panic::catch_unwind(raw).is_err());
}
