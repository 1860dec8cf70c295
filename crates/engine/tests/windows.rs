//! Shared windows on a real file and on an emulated disk: bytes by their places, memory
//! that goes with its stream and not while a command is under way in it, and a pool that
//! ends with windows open.
#![allow(unsafe_code)]

use crate::common::*;
use engine::{DeviceSpec, Pool, Reply, SharedWindow, Told, WindowReply};
use node::{Error, Mode, Op, StreamId};
use std::sync::{Arc, mpsc};
use units::Bytes;
use window::{Kind, Memory, Piece};

const BLOCK: Bytes = Bytes::kib(64);

fn open(pool: &Pool, mode: Mode, rate: &str) -> (StreamId, Arc<Memory>) {
    let (sender, opened) = mpsc::channel();
    let done = move |result: Result<SharedWindow, Error>| sender.send(result).unwrap();
    let (volume, start, contract) = ("film".into(), Bytes::ZERO, contract(rate, BLOCK));
    let opening = node::Opening { volume, mode, contract, start, early: false, miss: None };
    pool.open_window(node::Who::root(), opening, done).unwrap();
    let SharedWindow { stream, window, memory } = opened.recv().unwrap().unwrap();
    assert!(window > Bytes::ZERO && window.as_usize() <= memory.len());
    (stream, memory)
}

fn next(pool: &Pool, stream: StreamId) -> Piece {
    match pool.call(Op::WindowNext { stream }) {
        Ok(Reply::Window(WindowReply::Told(Told { piece, seeks: 0, .. }))) => piece,
        other => panic!("{other:?}"),
    }
}

fn moved(pool: &Pool, stream: StreamId, len: Bytes) {
    assert!(matches!(pool.call(Op::WindowMoved { stream, len }), Ok(Reply::Done)));
}

fn at(memory: &Memory, piece: &Piece, byte: u64) -> *mut u8 {
    assert!(byte < piece.len.get());
    memory.base().wrapping_add(piece.place.as_usize() + byte as usize)
}

fn there_and_back(disk: DeviceSpec, rate: &str, blocks: u64, create: engine::CreateOptions) {
    let disks = [disk];
    Pool::create("tape", &disks, &create).unwrap();
    let pool = Pool::open(&disks, options()).unwrap();
    volume(&pool, "film", Bytes::mib(4));
    let len = blocks * BLOCK.get() + 777;
    let (writer, memory) = open(&pool, Mode::Write, rate);
    let mut done = 0;
    while done < len {
        let room = next(&pool, writer);
        assert_eq!(room.kind, Kind::Room);
        let filled = room.len.get().min(len - done);
        for byte in 0..filled {
            // SAFETY: inside the room that was told; nobody else writes there.
            unsafe { at(&memory, &room, byte).write_volatile(pattern(done + byte)) };
        }
        moved(&pool, writer, Bytes::new(filled));
        done += filled;
    }
    let too_far = Op::WindowMoved { stream: writer, len: Bytes::mib(1) };
    assert!(matches!(pool.call(too_far), Err(Error::Invalid { .. })), "more than was told");
    let gone = Arc::downgrade(&memory);
    drop(memory);
    assert!(gone.upgrade().is_some(), "the stream has it");
    match pool.call(Op::StreamClose { stream: writer }) {
        Ok(Reply::Durable { upto }) => assert_eq!(upto.get(), len),
        other => panic!("{other:?}"),
    }
    assert!(gone.upgrade().is_none(), "it went with the close");

    let (reader, memory) = open(&pool, Mode::Read, rate);
    let mut done = 0;
    loop {
        let piece = next(&pool, reader);
        if piece.kind == Kind::End {
            break;
        }
        assert_eq!((piece.kind, piece.offset.get()), (Kind::Data, done));
        for byte in 0..piece.len.get() {
            // SAFETY: inside the bytes that were told; nobody writes there until moved past.
            let got = unsafe { at(&memory, &piece, byte).read_volatile() };
            assert_eq!(got, pattern(done + byte), "at {}", done + byte);
        }
        moved(&pool, reader, piece.len);
        done += piece.len.get();
    }
    assert_eq!(done, len);

    // Closed while the disk fills it: the memory goes when the last command has ended.
    let (busy, fills) = open(&pool, Mode::Read, rate);
    let gone = Arc::downgrade(&fills);
    drop(fills);
    assert!(matches!(pool.call(Op::StreamClose { stream: busy }), Ok(Reply::Done)));
    assert!(gone.upgrade().is_none());
    assert_eq!(pool.status().memory.regions, pool.status().streams[0].window);
    // The pool ends with a window open, and another just begun.
    let (_begun, begun) = open(&pool, Mode::Read, rate);
    drop(pool);
    assert_eq!((Arc::strong_count(&begun), Arc::strong_count(&memory)), (1, 1), "only ours");
}

#[test]
fn windows_on_a_file_past_the_systems_cache() {
    let dir = Dir::new();
    there_and_back(dir.file("a"), "2MiB/s", 10, untimed(64));
}

#[test]
fn windows_on_an_emulated_disk() {
    let dir = Dir::new();
    there_and_back(dir.emulated("a"), "200kB/s", 4, size(64));
}
