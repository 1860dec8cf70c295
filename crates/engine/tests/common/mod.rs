//! A directory that goes away, and pools in it.
#![allow(dead_code)] // each test file uses its part

use engine::{Chunk, ChunkMut, CreateOptions, DeviceSpec, Options, Pool, Reply};
use node::{Contract, Mode, Op, Placement, StreamId};
use std::path::PathBuf;
use tempfile::TempDir;
use units::{Bytes, Duration, Rate};

/// A directory that is removed when dropped.
pub struct Dir(TempDir);

impl Dir {
    pub fn new() -> Self {
        Self(tempfile::Builder::new().prefix("slackline-").tempdir().unwrap())
    }
    /// In memory, of which a container may have 64 MiB.
    pub fn in_memory() -> Self {
        Self(tempfile::Builder::new().prefix("slackline-").tempdir_in("/dev/shm").unwrap())
    }
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
    pub fn file(&self, name: &str) -> DeviceSpec {
        DeviceSpec::Real { path: self.path(name) }
    }
    pub fn emulated(&self, name: &str) -> DeviceSpec {
        DeviceSpec::Emulated { model: "laptop-4200".into(), path: self.path(name) }
    }
}

pub fn size(mib: u64) -> CreateOptions {
    CreateOptions { size: Some(Bytes::mib(mib)), ..CreateOptions::default() }
}

/// A file's profile without the seconds of timing it.
pub fn untimed(mib: u64) -> CreateOptions {
    with_fixed("0.1ms", mib, 8)
}

/// The same of a disk that has one command at a time.
pub fn one_at_a_time(mib: u64) -> CreateOptions {
    with_fixed("0.1ms", mib, 1)
}

/// Of a disk that is too quick for anything to be cached.
pub fn quick(mib: u64) -> CreateOptions {
    with_fixed("0.01ms", mib, 8)
}

fn with_fixed(fixed: &str, mib: u64, depth: u32) -> CreateOptions {
    let text = r#"
        kind = "linear"
        source = "made up for a test"
        confidence = "none"
        capacity = "1MiB"
        flush = "2ms"
        [linear]
        depth = DEPTH
        latency = "1ms"
        read = { fixed = "FIXED", rate = "1GB/s" }
        write = { fixed = "FIXED", rate = "1GB/s" }
    "#;
    let text = text.replace("FIXED", fixed).replace("DEPTH", &depth.to_string());
    CreateOptions { profile: Some(disk::Profile::parse(&text).unwrap()), ..size(mib) }
}

pub fn options() -> Options {
    let mut options = Options::default();
    options.config.memory = Bytes::mib(32);
    options.config.commit_interval = Duration::from_millis(600);
    // The profile is made up; a busy machine does not hold to it.
    options.config.remeasure = false;
    // What is refused does not depend on how busy the machine is.
    options.gap = Some(Duration::ZERO);
    options
}

pub fn volume(pool: &Pool, name: &str, size: Bytes) {
    let placement = Placement::default();
    let op = Op::VolumeCreate { name: name.into(), size, placement, access: Default::default() };
    assert!(matches!(pool.call(op), Ok(Reply::Made { .. })));
}

pub fn contract(rate: &str, block: Bytes) -> Contract {
    Contract { rate: rate.parse::<Rate>().unwrap(), block, burst: Bytes::ZERO }
}

pub fn stream(pool: &Pool, volume: &str, mode: Mode, contract: Contract) -> StreamId {
    let op = Op::StreamOpen { volume: volume.into(), mode, contract, start: Bytes::ZERO };
    match pool.call(op) {
        Ok(Reply::Stream { stream, .. }) => stream,
        other => panic!("{other:?}"),
    }
}

/// The byte at an offset of a volume: a pattern in which every block differs.
pub fn pattern(offset: u64) -> u8 {
    (offset ^ (offset >> 8).wrapping_mul(31) ^ (offset >> 17).wrapping_mul(17)) as u8
}

/// Writes the pattern to a stream up to `len`.
pub fn record(pool: &Pool, stream: StreamId, len: u64) {
    record_with(pool, stream, len, || {});
}

/// The same, with this before each piece.
pub fn record_with(pool: &Pool, stream: StreamId, len: u64, before: impl Fn()) {
    let mut at = 0;
    while at < len {
        before();
        let len_max = Bytes::new(len - at);
        let mut room = match pool.call(Op::StreamRoom { stream, len_max }) {
            Ok(Reply::Room { room }) => room,
            other => panic!("{other:?}"),
        };
        room.iter_mut().zip(at..).for_each(|(byte, offset)| *byte = pattern(offset));
        let len = Bytes::new(room.len() as u64);
        drop(room);
        assert!(matches!(pool.call(Op::StreamWrite { stream, len }), Ok(Reply::Done)));
        at += len.get();
    }
}

/// Reads a stream to its end and checks the pattern; gives the gaps and the length.
pub fn play(pool: &Pool, stream: StreamId) -> (Vec<(u64, u64)>, u64) {
    let (mut gaps, mut at) = (Vec::new(), 0);
    loop {
        match pool.call(Op::StreamRead { stream, len_max: Bytes::mib(1) }) {
            Ok(Reply::Data { bytes: chunk, offset }) => {
                assert_eq!(offset.get(), at);
                check(&chunk, at);
                at += chunk.len() as u64;
                let len = Bytes::new(chunk.len() as u64);
                drop(chunk);
                assert!(matches!(pool.call(Op::StreamAdvance { stream, len }), Ok(Reply::Done)));
            }
            Ok(Reply::Gap { offset, len }) => {
                assert_eq!(offset.get(), at);
                gaps.push((offset.get(), len.get()));
                at += len.get();
            }
            Ok(Reply::End) => return (gaps, at),
            other => panic!("{other:?}"),
        }
    }
}

pub fn check(bytes: &[u8], from: u64) {
    let wrong = bytes.iter().zip(from..).find(|&(&byte, offset)| byte != pattern(offset));
    assert!(wrong.is_none(), "byte {} of the volume is {}", wrong.unwrap().1, wrong.unwrap().0);
}

pub fn read(pool: &Pool, volume: &str, offset: Bytes, len: Bytes) -> Result<Chunk, node::Error> {
    match pool.call(Op::Read { volume: volume.into(), offset, len, priority: None })? {
        Reply::Data { bytes: chunk, .. } => Ok(chunk),
        other => panic!("{other:?}"),
    }
}

pub fn room(pool: &Pool, len: Bytes) -> ChunkMut {
    match pool.call(Op::Room { len, target: None }) {
        Ok(Reply::Room { room }) => room,
        other => panic!("{other:?}"),
    }
}
