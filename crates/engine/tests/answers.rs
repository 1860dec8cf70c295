//! What a pool answers to those who ask it about its volumes and streams, and what a program
//! finds in memory that it is given.

use crate::common::*;
use engine::{Pool, Reply};
use node::{Error, Mode, Op, Ownership, Who};
use std::time::{SystemTime, UNIX_EPOCH};
use units::{Bytes, Duration};

/// An empty pool on one file, with these volumes of 4 MiB.
fn pool(dir: &Dir, volumes: &[&str]) -> Pool {
    let disks = [dir.file("a")];
    Pool::create("tape", &disks, &untimed(64)).unwrap();
    let pool = Pool::open(&disks, options()).unwrap();
    volumes.iter().for_each(|name| volume(&pool, name, Bytes::mib(4)));
    pool
}

/// Nanoseconds since 1970, as the system's clock says now.
fn wall_clock() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as i64
}

#[test]
fn all_volumes_are_named_with_their_owners_the_oldest_first() {
    let dir = Dir::new();
    let pool = pool(&dir, &[]);
    assert_eq!(pool.names(), []);
    // More than are looked at under one lock.
    let names: Vec<String> = (0..40).rev().map(|n| format!("film{n}")).collect();
    let create = |name: &String| {
        let (size, placement) = (Bytes::mib(1), Default::default());
        let access = node::Access { uid: Some(7), gid: Some(8), mode: Some(0o640) };
        pool.call(Op::VolumeCreate { name: name.clone(), size, placement, access }).unwrap();
    };
    names.iter().for_each(create);
    let theirs = Ownership { uid: 7, gid: 8, mode: 0o640 };
    let wanted: Vec<_> = names.into_iter().map(|name| (name, theirs)).collect();
    assert_eq!(pool.names(), wanted);
}

#[test]
fn what_was_written_of_a_volume_is_told_apart_from_what_was_not() {
    let dir = Dir::new();
    let pool = pool(&dir, &["image"]);
    let id = pool.volume_id("image").unwrap();
    let ask = |range| pool.written(&Who::root(), ("image", id), range);
    let all = Bytes::ZERO..Bytes::kib(256);
    assert_eq!(ask(all.clone()), Ok(vec![(Bytes::kib(256), false)]));
    pool.call_write("image", Bytes::kib(128), room(&pool, Bytes::kib(64))).unwrap();
    let runs = [(128, false), (64, true), (64, false)];
    assert_eq!(ask(all), Ok(runs.map(|(kib, written)| (Bytes::kib(kib), written)).to_vec()));
    let beyond = ask(Bytes::mib(3)..Bytes::mib(5));
    assert!(matches!(beyond, Err(Error::BeyondEnd { .. })), "{beyond:?}");
}

#[test]
fn a_volumes_times_are_the_systems() {
    let dir = Dir::new();
    let pool = pool(&dir, &[]);
    let before = wall_clock();
    volume(&pool, "film", Bytes::mib(4));
    let after = wall_clock();
    let times = pool.volume("film").unwrap().times.expect("it was made just now");
    assert!((before..=after).contains(&times.changed), "{before} {times:?} {after}");
    assert_eq!((times.accessed, times.modified), (times.changed, times.changed));
}

#[test]
fn one_stream_is_seen_as_long_as_it_is_open() {
    let dir = Dir::new();
    let pool = pool(&dir, &["film"]);
    let asked = contract("1MiB/s", Bytes::kib(64));
    let writer = stream(&pool, "film", Mode::Write, asked);
    record(&pool, writer, 100_000);
    let seen = pool.stream(writer).expect("it is open");
    let ours = ("film", Mode::Write, asked, Bytes::new(100_000));
    assert_eq!((seen.volume.as_str(), seen.mode, seen.contract, seen.position), ours);
    pool.call(Op::StreamClose { stream: writer }).unwrap();
    assert!(pool.stream(writer).is_none());
}

/// What a program had late is late in the account of its volume, though the pool handed it out in
/// time.
#[test]
fn an_answer_that_is_late_at_its_program_is_late_in_what_is_shown() {
    let dir = Dir::new();
    let pool = pool(&dir, &["film"]);
    let (len, within) = (Bytes::kib(4), Duration::from_secs(20));
    let service = node::Service::Latency { len, within, every: within };
    pool.call(Op::VolumeService { name: "film".into(), service }).unwrap();
    pool.call_write("film", Bytes::ZERO, room(&pool, len)).unwrap();
    let answer = read(&pool, "film", Bytes::ZERO, len).unwrap();
    let account = || pool.volume("film").unwrap().account;
    assert_eq!(account().late_carried, 0);
    let took = Duration::from_secs(60);
    pool.carried(&answer.promise().expect("it was promised"), took);
    assert_eq!((account().late_carried, account().carried_max), (1, took));
    let shown = pool.status().volumes[0].account;
    assert_eq!((shown.late_carried, shown.late_requests), (1, account().late_requests));
}

/// Room of a stream was another program's before: what is written behind the bytes that its
/// program puts there, and what it sees itself, is nothing of theirs.
#[test]
fn room_shows_nothing_of_those_who_had_its_memory_before() {
    let dir = Dir::new();
    let pool = pool(&dir, &["theirs", "ours"]);
    let block = Bytes::kib(256);
    let theirs = stream(&pool, "theirs", Mode::Write, contract("1MiB/s", block));
    let mut left = Bytes::mib(2);
    while left > Bytes::ZERO {
        let mut room = room_of(&pool, theirs, left);
        room.fill(0xee);
        let len = Bytes::new(room.len() as u64);
        drop(room);
        pool.call(Op::StreamWrite { stream: theirs, len }).unwrap();
        left -= len;
    }
    pool.call(Op::StreamClose { stream: theirs }).unwrap();
    let ours = stream(&pool, "ours", Mode::Write, contract("1MiB/s", block));
    // Little is cleared at once, and much by another thread.
    for kib in [4, 16, 256] {
        let room = room_of(&pool, ours, Bytes::kib(kib));
        assert!(room.iter().all(|&byte| byte == 0), "of {kib} KiB");
        let len = Bytes::new(room.len() as u64);
        drop(room);
        pool.call(Op::StreamWrite { stream: ours, len }).unwrap();
    }
}

fn room_of(pool: &Pool, stream: node::StreamId, len_max: Bytes) -> engine::ChunkMut {
    match pool.call(Op::StreamRoom { stream, len_max }) {
        Ok(Reply::Room { room }) => room,
        other => panic!("{other:?}"),
    }
}
