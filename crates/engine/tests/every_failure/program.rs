//! A program that uses every verb of a pool, and takes down what it was told.

use crate::common::*;
use engine::{DeviceSpec, Options, Pool, Reply, SharedWindow, Told, WindowReply};
use node::{Error, Mode, Op, Placement, StreamId, WriteRange};
use sim::history::{Event, Kind, ZEROS, fill, stamp_in};
use std::sync::mpsc;
use units::{Bytes, Duration};
use window::Memory;

const CELL: u64 = 512;
const BLOCK: Bytes = Bytes::kib(64);
/// Registers of volumes' sizes have their numbers from here on.
const SIZES: u32 = 1 << 31;
/// Volumes of a history.
pub const VOLUMES: u32 = 3;

type Answer = Result<Reply, Error>;

/// A program that uses every verb, and what it was told.
pub struct Program {
    disks: Vec<DeviceSpec>,
    first: u32,
    pub pool: Option<Pool>,
    tick: u64,
    stamps: u64,
    pub events: Vec<Event>,
    /// Requests that failed.
    pub refused: u64,
}

fn name(volume: u32) -> String {
    format!("v{volume}")
}

fn quick() -> Options {
    let mut options = options();
    options.realtime = false;
    options.config.commit_interval = Duration::from_millis(100);
    options
}

impl Program {
    pub fn new(disks: &[DeviceSpec], first: u32) -> Self {
        let (pool, events) = (None, Vec::new());
        Self { disks: disks.to_vec(), first, pool, tick: 0, stamps: 0, events, refused: 0 }
    }

    fn tick(&mut self) -> u64 {
        self.tick += 1;
        self.tick
    }

    fn pool(&self) -> &Pool {
        self.pool.as_ref().expect("it is open")
    }

    fn open(&mut self) -> Option<()> {
        match Pool::open(&self.disks, quick()) {
            Ok(pool) => {
                self.pool = Some(pool);
                Some(())
            }
            Err(error) => {
                assert!(!error.to_string().is_empty());
                self.refused += 1;
                None
            }
        }
    }

    fn call(&mut self, op: Op) -> Answer {
        let answer = self.pool().call(op);
        if let Err(error) = &answer {
            self.refused += 1;
            if std::env::var_os("SLACKLINE_TELL").is_some() {
                eprintln!("{error:?}");
            }
        }
        answer
    }

    fn event(&mut self, at_invoke: u64, volume: u32, cells: (u64, u64), kind: Kind, done: bool) {
        let at_return = Some(self.tick()).filter(|_| done);
        let cells = cells.0..cells.1;
        self.events.push(Event { client: 1, at_invoke, at_return, kind, volume, cells });
    }

    fn sized(&mut self, op: Op, volume: u32, size: Bytes) {
        let at = self.tick();
        let done = self.call(op).is_ok();
        let cut = Kind::Durable { stamp: ZEROS };
        self.event(at, volume, (size.get() / CELL, u64::MAX), cut, done);
        // Extents are reserved whole.
        let reserved = Kind::Durable { stamp: size.round_up(Bytes::MIB).get() };
        self.event(at, SIZES + volume, (0, 1), reserved, done);
    }

    fn create(&mut self, volume: u32, size: Bytes) {
        let placement = Placement::default();
        self.sized(
            Op::VolumeCreate { name: name(volume), size, placement, access: Default::default() },
            volume,
            size,
        );
    }

    fn resize(&mut self, volume: u32, size: Bytes) {
        self.sized(Op::VolumeResize { name: name(volume), size, may_cut: true }, volume, size);
    }

    fn fill(&mut self, bytes: &mut [u8], volume: u32, offset: u64) -> u64 {
        self.stamps += 1;
        for (cell, bytes) in (offset / CELL..).zip(bytes.chunks_exact_mut(CELL as usize)) {
            fill(bytes, volume, cell, self.stamps);
        }
        self.stamps
    }

    /// Any sectors.
    fn write(&mut self, volume: u32, offset: Bytes, len: Bytes) {
        let range = WriteRange::new(offset, len);
        let Ok(Reply::Room { mut room }) = self.call(Op::Room { len: range.room(), target: None })
        else {
            return;
        };
        let bytes = &mut room[range.skip().as_usize()..][..len.as_usize()];
        let stamp = self.fill(bytes, volume, offset.get());
        let (at, (sender, answer)) = (self.tick(), mpsc::channel());
        let done = move |result: Result<(), Error>| drop(sender.send(result));
        let (who, now) = (node::Who::root(), self.pool().now());
        self.pool().write_as(who, now, None, &name(volume), range, room, done);
        let done = answer.recv().expect("an answer").is_ok();
        self.refused += u64::from(!done);
        let cells = (offset.get() / CELL, (offset + len).get() / CELL);
        self.event(at, volume, cells, Kind::Write { stamp }, done);
    }

    fn read(&mut self, volume: u32, offset: Bytes, len: Bytes) -> bool {
        let at = self.tick();
        let read = Op::Read { volume: name(volume), offset, len, priority: None };
        let Ok(Reply::Data { bytes: chunk, .. }) = self.call(read) else { return false };
        self.found(at, volume, offset, &chunk);
        true
    }

    fn found(&mut self, at: u64, volume: u32, offset: Bytes, bytes: &[u8]) {
        let first = offset.get() / CELL;
        let cells = (first..).zip(bytes.chunks_exact(CELL as usize));
        let stamps: Vec<u64> = cells.map(|(cell, bytes)| stamp_in(bytes, volume, cell)).collect();
        let end = first + stamps.len() as u64;
        self.event(at, volume, (first, end), Kind::Read { stamps }, true);
    }

    fn sync(&mut self) {
        let at = self.tick();
        let done = self.call(Op::Sync).is_ok();
        self.event(at, 0, (0, 0), Kind::SyncAll, done);
    }

    /// What a stream recorded is answered, and durable; or nobody knows.
    fn recorded(&mut self, at: u64, volume: u32, pieces: &mut Vec<(u64, u64, u64)>, done: bool) {
        for (start, end, stamp) in pieces.drain(..) {
            self.event(at, volume, (start, end), Kind::Write { stamp }, done);
            self.event(self.tick, volume, (start, end), Kind::Sync, done);
        }
    }

    fn stream(&mut self, volume: u32, mode: Mode, start: Bytes) -> Option<StreamId> {
        let contract = contract("8MiB/s", BLOCK);
        let open = Op::StreamOpen { volume: name(volume), mode, contract, start };
        match self.call(open) {
            Ok(Reply::Stream { stream, .. }) => Some(stream),
            _ => None,
        }
    }

    /// Bytes through the arena, under contract.
    fn record(&mut self, volume: u32) -> Option<()> {
        let stream = self.stream(volume, Mode::Write, Bytes::ZERO)?;
        let (mut at, mut pieces, began) = (0, Vec::new(), self.tick());
        for piece in 0..12 {
            let room = self.call(Op::StreamRoom { stream, len_max: Bytes::kib(20) });
            let Ok(Reply::Room { mut room }) = room else { continue };
            let len = room.len() as u64;
            let stamp = self.fill(&mut room, volume, at);
            drop(room);
            if self.call(Op::StreamWrite { stream, len: Bytes::new(len) }).is_ok() {
                pieces.push((at / CELL, (at + len) / CELL, stamp));
                at += len;
            }
            if piece == 5 {
                let synced = self.call(Op::StreamSync { stream }).is_ok();
                self.recorded(began, volume, &mut pieces, synced);
                if synced {
                    let durable = Op::StreamDurable { stream, beyond: Bytes::ZERO };
                    assert!(self.call(durable).is_ok(), "a sync said so");
                }
                let contract = contract("6MiB/s", BLOCK);
                let _ = self.call(Op::StreamChange { stream, contract });
                // Beside the stream, on another volume.
                self.write(volume - 1, Bytes::kib(512), Bytes::kib(8));
            }
        }
        let closed = self.call(Op::StreamClose { stream }).is_ok();
        self.recorded(began, volume, &mut pieces, closed);
        Some(())
    }

    fn play(&mut self, volume: u32) -> Option<()> {
        let began = self.tick();
        let stream = self.stream(volume, Mode::Read, Bytes::ZERO)?;
        for piece in 0..40 {
            if piece == 4 {
                let _ = self.call(Op::StreamSeek { stream, to: BLOCK });
            }
            match self.call(Op::StreamRead { stream, len_max: Bytes::kib(16) }) {
                Ok(Reply::Data { bytes: chunk, offset }) => {
                    self.found(began, volume, offset, &chunk);
                    let len = Bytes::new(chunk.len() as u64);
                    drop(chunk);
                    let _ = self.call(Op::StreamAdvance { stream, len });
                }
                Ok(Reply::Gap { .. }) => self.refused += 1,
                Ok(Reply::End) | Err(_) => break,
                other => panic!("{other:?}"),
            }
        }
        let _ = self.call(Op::StreamClose { stream });
        Some(())
    }

    fn window(&mut self, volume: u32, mode: Mode) -> Option<(StreamId, std::sync::Arc<Memory>)> {
        let (sender, opened) = mpsc::channel();
        let done = move |result: Result<SharedWindow, Error>| drop(sender.send(result));
        let contract = contract("8MiB/s", BLOCK);
        let (volume, start) = (name(volume), Bytes::ZERO);
        let opening = node::Opening { volume, mode, contract, start, early: false, miss: None };
        let asked = self.pool().open_window(node::Who::root(), opening, done);
        asked.ok()?;
        match opened.recv().expect("an answer") {
            Ok(SharedWindow { stream, memory, .. }) => Some((stream, memory)),
            Err(_) => {
                self.refused += 1;
                None
            }
        }
    }

    /// Bytes through memory that the program has mapped.
    fn record_shared(&mut self, volume: u32) -> Option<()> {
        let (stream, memory) = self.window(volume, Mode::Write)?;
        let (mut at, mut pieces, began) = (0, Vec::new(), self.tick());
        for _ in 0..4 {
            let Ok(Reply::Window(WindowReply::Told(Told { piece, .. }))) =
                self.call(Op::WindowNext { stream })
            else {
                break;
            };
            let mut bytes = vec![0; piece.len.as_usize()];
            let stamp = self.fill(&mut bytes, volume, at);
            put(&memory, piece.place.as_usize(), &bytes);
            let moved = self.call(Op::WindowMoved { stream, len: piece.len });
            pieces.push((at / CELL, (at + piece.len.get()) / CELL, stamp));
            at += piece.len.get();
            if moved.is_err() {
                break;
            }
        }
        let closed = self.call(Op::StreamClose { stream }).is_ok();
        self.recorded(began, volume, &mut pieces, closed);
        Some(())
    }

    fn play_shared(&mut self, volume: u32) -> Option<()> {
        let began = self.tick();
        let (stream, memory) = self.window(volume, Mode::Read)?;
        let _ = self.call(Op::WindowWaits { stream });
        for _ in 0..40 {
            let Ok(Reply::Window(WindowReply::Told(Told { piece, .. }))) =
                self.call(Op::WindowNext { stream })
            else {
                break;
            };
            match piece.kind {
                window::Kind::Data => {
                    let bytes = take(&memory, piece.place.as_usize(), piece.len.as_usize());
                    self.found(began, volume, piece.offset, &bytes);
                }
                window::Kind::End => break,
                _ => self.refused += 1,
            }
            let _ = self.call(Op::WindowMoved { stream, len: piece.len });
        }
        let _ = self.call(Op::StreamClose { stream });
        Some(())
    }

    /// What changes no bytes.
    fn settings(&mut self, volume: u32) {
        let service = node::Service::default();
        let _ = self.call(Op::VolumeService { name: name(volume), service });
        let rate = "1MB/s".parse().unwrap();
        let _ = self.call(Op::Block { volume: name(volume), mode: Mode::Read, rate });
        let _ = self.call(Op::HostLatency { latency: Duration::from_millis(3) });
        assert!(matches!(self.call(Op::Plan), Ok(Reply::Planner(_))));
        let profile = self.pool().description().profiles[0].clone();
        let (disk, profile) = (node::DiskIndex(0), Box::new(profile));
        let _ = self.call(Op::ProfileSet { disk, profile });
        let _ = self.call(Op::Reprofile { disk });
    }

    /// Every verb, over two lives of the pool. Nothing where it cannot be opened.
    pub fn live(&mut self) -> Option<()> {
        self.open()?;
        let [a, b, c] = [self.first, self.first + 1, self.first + 2];
        self.create(a, Bytes::mib(2));
        self.create(b, Bytes::mib(1));
        self.write(a, Bytes::ZERO, Bytes::kib(64));
        self.write(a, Bytes::kib(100), Bytes::kib(4));
        self.write(a, Bytes::new(512), Bytes::new(1024));
        self.read(a, Bytes::ZERO, Bytes::kib(128));
        self.sync();
        self.write(a, Bytes::kib(32), Bytes::kib(64));
        self.write(a, Bytes::new(110 * 512), Bytes::new(33 * 512));
        self.write(a, Bytes::kib(1000), Bytes::kib(64));
        self.sync();
        self.resize(a, Bytes::kib(1020));
        self.resize(a, Bytes::mib(3));
        self.read(a, Bytes::kib(960), Bytes::kib(128));
        self.record(a + 1);
        self.play(b);
        let (copy, of, start) = (name(a), name(a + 1), Bytes::ZERO);
        let _ = self.call(Op::VolumeCopied { name: copy, of, start });
        self.create(c, Bytes::mib(1));
        self.record_shared(c);
        self.play_shared(c);
        self.settings(a);
        self.sized(
            Op::VolumeDelete { name: name(b), only: None, keep_directory: false },
            b,
            Bytes::ZERO,
        );
        self.create(b, Bytes::mib(2));
        self.write(b, Bytes::kib(96), Bytes::kib(32));
        self.read(b, Bytes::ZERO, Bytes::kib(256));
        let at = self.tick();
        let stopped = self.pool.take().expect("it is open").shutdown().is_ok();
        self.refused += u64::from(!stopped);
        self.event(at, 0, (0, 0), Kind::SyncAll, stopped);
        let at = self.tick();
        self.open()?;
        if !stopped {
            // The pool could write no more, and said so: what was not synced may be gone.
            self.event(at, 0, (0, 0), Kind::Crash, true);
        }
        self.write(b, Bytes::kib(64), Bytes::kib(48));
        self.sync();
        self.write(a, Bytes::ZERO, Bytes::kib(16));
        Some(())
    }

    /// The pool is open again after a power cut: everything is read.
    pub fn audit(&mut self) {
        let at_invoke = self.tick();
        let opened = Pool::open(&self.disks, quick());
        self.pool = Some(opened.unwrap_or_else(|error| panic!("it does not open: {error}")));
        self.event(at_invoke, 0, (0, 0), Kind::Crash, true);
        let volumes = self.pool().status().volumes;
        for volume in self.first..self.first + VOLUMES {
            let found = volumes.iter().find(|found| found.name == name(volume));
            let size = found.map_or(Bytes::ZERO, |found| found.size);
            let (at, stamps) = (self.tick(), vec![size.get()]);
            self.event(at, SIZES + volume, (0, 1), Kind::Read { stamps }, true);
            for from in (0..size.get()).step_by(1 << 20) {
                let len = (size - Bytes::new(from)).min(Bytes::MIB);
                assert!(self.read(volume, Bytes::new(from), len), "the disk is whole");
            }
            if found.is_some() {
                assert!(
                    self.call(Op::VolumeDelete {
                        name: name(volume),
                        only: None,
                        keep_directory: false
                    })
                    .is_ok()
                );
            }
        }
        self.pool.take().expect("it is open").shutdown().unwrap();
    }
}

#[allow(unsafe_code)]
fn put(memory: &Memory, place: usize, bytes: &[u8]) {
    assert!(place + bytes.len() <= memory.len());
    // SAFETY: inside the memory, in room that the daemon has told and does not touch.
    unsafe { memory.base().add(place).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
}

#[allow(unsafe_code)]
fn take(memory: &Memory, place: usize, len: usize) -> Vec<u8> {
    assert!(place + len <= memory.len());
    let mut bytes = vec![0; len];
    // SAFETY: inside the memory, in bytes that were told and are not moved past.
    unsafe { memory.base().add(place).copy_to_nonoverlapping(bytes.as_mut_ptr(), len) };
    bytes
}
