//! Operations, as tests ask for them.

use super::{Driver, pattern};
use node::{
    Access, Contract, Error, Mode, Op, Placement, Priority, Region, Reply, Service, Span, StreamId,
    Target, Ticket, WriteRange,
};
use units::{Bytes, Duration, Rate};

pub const BLOCK: Bytes = Bytes::kib(64);
/// A block of 64 KiB each 62.5 ms.
pub const RATE: Rate = Rate::per_second(1 << 20);

pub fn contract(rate: Rate, block: Bytes, burst: Bytes) -> Contract {
    Contract { rate, block, burst }
}

/// 1 MiB/s in blocks of 64 KiB.
pub fn usual() -> Contract {
    contract(RATE, BLOCK, Bytes::ZERO)
}

pub fn create(name: &str, size: Bytes, placement: Placement) -> Op {
    Op::VolumeCreate { name: name.into(), size, placement, access: Access::default() }
}

pub fn resize(name: &str, size: Bytes) -> Op {
    Op::VolumeResize { name: name.into(), size, may_cut: false }
}

pub fn delete(name: &str) -> Op {
    Op::VolumeDelete { name: name.into(), only: None, keep_directory: false }
}

/// In the place of what is there, where it `replace`s that.
pub fn rename(name: &str, to: &str, replace: bool) -> Op {
    let (name, to) = (name.into(), to.into());
    Op::VolumeRename {
        name,
        to,
        replace,
        keep_as: None,
        is: None,
        only: None,
        keep_directory: false,
    }
}

/// In the place of what is there, which is kept under another name.
pub fn rename_keeping(name: &str, to: &str, kept: &str) -> Op {
    let (name, to, keep_as) = (name.into(), to.into(), Some(kept.into()));
    Op::VolumeRename {
        name,
        to,
        replace: true,
        keep_as,
        is: None,
        only: None,
        keep_directory: false,
    }
}

pub fn service(name: &str, service: Service) -> Op {
    Op::VolumeService { name: name.into(), service }
}

pub fn in_time(len: Bytes, within: Duration, every: Duration) -> Service {
    Service::Latency { len, within, every }
}

pub fn at_rate(rate: Rate, block: Bytes, period: Duration) -> Service {
    Service::Rate { rate, block, period }
}

pub fn open(volume: &str, mode: Mode, contract: Contract, start: Bytes) -> Op {
    Op::StreamOpen { volume: volume.into(), mode, contract, start }
}

pub fn open_window(volume: &str, mode: Mode, contract: Contract, region: u32) -> Op {
    let (start, region) = (Bytes::ZERO, Region(region));
    Op::WindowOpen { volume: volume.into(), mode, contract, start, region }
}

pub fn read(volume: &str, offset: Bytes, len: Bytes) -> Op {
    Op::Read { volume: volume.into(), offset, len, priority: None }
}

pub fn read_as(volume: &str, offset: Bytes, len: Bytes, priority: Priority) -> Op {
    Op::Read { volume: volume.into(), offset, len, priority: Some(priority) }
}

pub fn room(len: Bytes) -> Op {
    Op::Room { len, target: None }
}

pub fn room_for(volume: &str, offset: Bytes, len: Bytes) -> Op {
    let target = Target { volume: volume.into(), offset, priority: None };
    Op::Room { len, target: Some(target) }
}

pub fn write(volume: &str, range: WriteRange, span: Span) -> Op {
    Op::Write { volume: volume.into(), range, span, priority: None }
}

pub fn write_as(volume: &str, range: WriteRange, span: Span, priority: Priority) -> Op {
    Op::Write { volume: volume.into(), range, span, priority: Some(priority) }
}

pub fn no_memory(result: &Result<Reply, Error>) -> bool {
    matches!(result, Err(Error::NoMemory { .. } | Error::NoServiceMemory { .. }))
}

pub fn is_refused(result: &Result<Reply, Error>) -> bool {
    matches!(result, Err(Error::Refused(_)))
}

/// A volume is made.
pub fn is_made(answer: Result<Reply, Error>) -> bool {
    matches!(answer, Ok(Reply::Made { .. }))
}

impl Driver {
    /// A volume on all disks.
    pub fn volume(&mut self, name: &str, size: Bytes) {
        self.done(create(name, size, Placement::default()));
    }

    /// Memory, at once.
    pub fn room(&mut self, len: Bytes) -> Span {
        match self.ask(room(len)) {
            Ok(Reply::Room { room: span }) => span,
            other => panic!("no room: {other:?}"),
        }
    }

    /// Puts the test's bytes where a write of them takes them from.
    pub fn fill(&mut self, span: Span, seed: u64, range: &WriteRange) {
        let bytes = pattern(seed, range.offset, range.len);
        self.memory.put(span.offset + range.skip(), &bytes);
    }

    /// Begins a best-effort write of the test's bytes.
    pub fn begin_write(&mut self, volume: &str, seed: u64, offset: Bytes, len: Bytes) -> Ticket {
        let range = WriteRange::new(offset, len);
        let span = self.room(range.room());
        self.fill(span, seed, &range);
        self.begin(write(volume, range, span))
    }

    /// Writes the test's bytes, and waits.
    pub fn write(&mut self, volume: &str, seed: u64, offset: Bytes, len: Bytes) {
        let ticket = self.begin_write(volume, seed, offset, len);
        assert_eq!(self.wait(ticket), Ok(Reply::Done));
    }

    /// A volume of which so much is recorded.
    pub fn recorded(&mut self, name: &str, size: Bytes, recorded: Bytes, seed: u64) {
        self.volume(name, size);
        let mut at = Bytes::ZERO;
        while at < recorded {
            let len = (recorded - at).min(Bytes::MIB);
            self.write(name, seed, at, len);
            at += len;
        }
        self.done(Op::Sync);
    }

    /// Best effort, read and given back.
    pub fn read(&mut self, volume: &str, offset: Bytes, len: Bytes) -> Result<Vec<u8>, Error> {
        match self.ask(read(volume, offset, len))? {
            Reply::Data { bytes: span, offset: from } => {
                assert_eq!((span.len, from), (len, offset));
                let bytes = self.bytes(span);
                self.done(Op::Release { span });
                Ok(bytes)
            }
            other => panic!("{other:?} is no data"),
        }
    }

    /// Where these bytes of a volume lie on its disk, which is read there.
    pub fn place(&mut self, volume: &str, offset: Bytes) -> Bytes {
        let from = self.journal.len();
        self.read(volume, offset, Bytes::kib(4)).expect("read");
        let read = self.since(from).iter().find_map(|done| done.action.transfer());
        read.expect("of the disk").0.start
    }

    /// Opens a stream: its number and its window.
    pub fn stream(&mut self, op: Op) -> (StreamId, Bytes) {
        match self.ask(op) {
            Ok(Reply::Stream { stream, window }) => (stream, window),
            other => panic!("not opened: {other:?}"),
        }
    }

    pub fn reader(&mut self, volume: &str, contract: Contract) -> StreamId {
        self.stream(open(volume, Mode::Read, contract, Bytes::ZERO)).0
    }

    pub fn writer(&mut self, volume: &str, contract: Contract) -> StreamId {
        self.stream(open(volume, Mode::Write, contract, Bytes::ZERO)).0
    }

    /// Reads on in a stream, and gives back what it gave: where, and the bytes.
    pub fn next(&mut self, stream: StreamId, len_max: Bytes) -> (Bytes, Vec<u8>) {
        match self.ask(Op::StreamRead { stream, len_max }) {
            Ok(Reply::Data { bytes: span, offset }) => {
                let bytes = self.bytes(span);
                self.done(Op::StreamAdvance { stream, len: span.len });
                (offset, bytes)
            }
            other => panic!("{other:?} is no data"),
        }
    }

    /// Writes on in a stream, as long a piece as it takes: so much.
    pub fn put(&mut self, stream: StreamId, seed: u64, len_max: Bytes) -> Bytes {
        let from = self.node.stream(stream).expect("open").position;
        match self.ask(Op::StreamRoom { stream, len_max }) {
            Ok(Reply::Room { room: span }) => {
                self.memory.put(span.offset, &pattern(seed, from, span.len));
                self.done(Op::StreamWrite { stream, len: span.len });
                span.len
            }
            other => panic!("{other:?} is no room"),
        }
    }

    /// The same until so much is written.
    pub fn put_all(&mut self, stream: StreamId, seed: u64, len: Bytes) {
        let mut left = len;
        while !left.is_zero() {
            left -= self.put(stream, seed, left);
        }
    }

    pub fn close(&mut self, stream: StreamId) -> Result<Reply, Error> {
        self.ask(Op::StreamClose { stream })
    }
}

/// Pieces of 1 MiB that best effort can have, but for interactive requests, of 32 MiB: three
/// quarters of it are 24; 64 KiB are zeros, and 1 MiB is kept for interactive requests.
pub const PIECES: usize = 22;

impl Driver {
    /// Takes all the memory that best effort can have in pieces of 1 MiB.
    pub fn all_rooms(&mut self) -> Vec<Span> {
        (0..PIECES).map(|_| self.room(Bytes::MIB)).collect()
    }
}

impl Driver {
    /// Syncs a writer.
    pub fn done_durable(&mut self, stream: StreamId) -> Bytes {
        match self.ask(Op::StreamSync { stream }) {
            Ok(Reply::Durable { upto }) => upto,
            other => panic!("not durable: {other:?}"),
        }
    }
}

impl Driver {
    /// All but so many of the pieces of 1 MiB that best effort can have.
    pub fn all_rooms_but(&mut self, few: usize) -> Vec<Span> {
        (few..PIECES).map(|_| self.room(Bytes::MIB)).collect()
    }
}
