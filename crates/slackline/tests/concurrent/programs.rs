//! Programs that use a daemon at once, each on connections of its own, and take down what
//! they asked for and were answered.
//!
//! Invariants: an event begins before its request is sent and ends after its answer is
//! there; what is not answered, or not with success, has no end. No two writes have the
//! same stamp.

use client::control::{Contract, VolumeCreate};
use client::{BestEffort, Client, Error, Piece, Tag};
use sim::Random;
use sim::history::{Event, Kind, ZEROS, fill, stamp_in};
use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use units::{Bytes, Rate};
use wire::Code;

/// A cell is a sector: what a power cut keeps whole.
pub const CELL: u64 = 512;
/// What best effort reads in; it writes any bytes.
const PAGE: u64 = 4_096;
/// The block of the streams.
const BLOCK: u64 = 64 << 10;
/// Volumes of one history.
pub const VOLUMES: u32 = 3;
/// Registers of volumes' sizes have their numbers from here on.
pub const SIZES: u32 = 1 << 31;

/// Nanoseconds of a clock that all processes have.
pub fn tick() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The size that a volume is shown with: extents are reserved whole.
pub fn reserved(size: u64) -> u64 {
    Bytes::new(size).round_up(Bytes::MIB).get()
}

/// What a program does, over and over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trade {
    /// Reads, writes and syncs as best effort, several at a time.
    Worker,
    /// The same, and makes, resizes and deletes volumes.
    Owner,
    /// Records streams.
    Recorder,
    /// Plays streams.
    Player,
}

/// One program.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    pub number: u32,
    pub seed: u64,
    pub trade: Trade,
    /// The volumes of this history have numbers from here on.
    pub first_volume: u32,
    /// The part of each volume that all of them use most.
    pub hot: (u64, u64),
}

/// How programs are held back, and counted.
#[derive(Debug, Default)]
pub struct Gauge {
    /// What was tried so far.
    pub tried: AtomicU64,
    /// Nothing new is begun.
    pub over: AtomicBool,
}

/// A volume's name by its number, which no other history has.
pub fn name(volume: u32) -> String {
    format!("v{volume}")
}

/// The daemon is gone, or this connection to it.
struct Gone;

type Done = Result<(), Gone>;

/// A program at work.
pub struct Work<'a> {
    program: Program,
    random: Random,
    client: Client,
    connections: HashMap<u32, BestEffort>,
    stamps: u64,
    gauge: &'a Gauge,
    log: &'a mut dyn FnMut(Event),
}

/// Runs a program until the daemon is gone or the gauge says that it is over.
pub fn run(program: Program, socket: &Path, gauge: &Gauge, log: &mut dyn FnMut(Event)) {
    let Ok(client) = Client::connect(socket.to_owned()) else { return };
    let random = Random::new(program.seed);
    let connections = HashMap::new();
    // Each run has stamps of its own: a program's number is used once a history.
    let mut work = Work { program, random, client, connections, stamps: 0, gauge, log };
    while !gauge.over.load(Ordering::Relaxed) {
        let volume = program.first_volume + work.random.below(u64::from(VOLUMES)) as u32;
        let done = match program.trade {
            Trade::Worker => work.transfers(volume),
            Trade::Owner if work.random.chance(25) => work.change(volume),
            Trade::Owner => work.transfers(volume),
            Trade::Recorder => work.record(volume),
            Trade::Player => work.play(volume),
        };
        gauge.tried.fetch_add(1, Ordering::Relaxed);
        if done.is_err() {
            return;
        }
    }
}

/// Whether a request that ended so may have done something: what is refused has not.
fn may_have_happened(error: &Error) -> bool {
    !matches!(
        error.code(),
        Some(
            Code::Refused
                | Code::NoSuchVolume
                | Code::VolumeExists
                | Code::VolumeBusy
                | Code::Invalid
                | Code::PoolFull
                | Code::VolumeFull
                | Code::BeyondEnd
                | Code::NoMemory
                | Code::Busy
        )
    )
}

/// Where an error is the end of the daemon or of a connection to it.
fn is_gone(error: &Error) -> bool {
    error.problem().is_none() && !matches!(error, Error::Gap { .. })
}

impl Work<'_> {
    fn event(&mut self, at_invoke: u64, volume: u32, cells: Range<u64>, kind: Kind, done: bool) {
        let at_return = done.then(tick);
        let client = self.program.number;
        (self.log)(Event { client, at_invoke, at_return, kind, volume, cells });
    }

    fn stamp(&mut self) -> u64 {
        self.stamps += 1;
        u64::from(self.program.number) << 32 | self.stamps
    }

    /// The bytes of these cells with one stamp.
    fn bytes(volume: u32, cells: &Range<u64>, stamp: u64) -> Vec<u8> {
        let mut bytes = vec![0; ((cells.end - cells.start) * CELL) as usize];
        for (cell, place) in cells.clone().zip(bytes.chunks_exact_mut(CELL as usize)) {
            fill(place, volume, cell, stamp);
        }
        bytes
    }

    /// Pages to transfer: mostly few, mostly in the hot part.
    fn pages(&mut self, size: u64) -> Option<Range<u64>> {
        let pages = size / PAGE;
        let len = match self.random.below(20) {
            0..10 => self.random.between(1, 2),
            10..17 => self.random.between(1, 16),
            17..19 => self.random.between(1, 64),
            _ => 256,
        };
        let (from, to) = self.program.hot;
        let (from, to) = match self.random.chance(80) {
            true => (from.min(pages), to.min(pages)),
            false => (0, pages),
        };
        let len = len.min(to - from);
        (len > 0).then(|| {
            let start = self.random.between(from, to - len);
            start..start + len
        })
    }

    /// A connection to a volume, for as long as it works; none where the volume is not.
    fn connection(&mut self, volume: u32) -> Result<Option<BestEffort>, Gone> {
        if let Some(connection) = self.connections.remove(&volume) {
            return Ok(Some(connection));
        }
        match self.client.best_effort(&name(volume)) {
            Ok(connection) => Ok(Some(connection)),
            Err(error) if is_gone(&error) => Err(Gone),
            Err(_) => Ok(None),
        }
    }

    /// A few transfers at once, or a sync.
    fn transfers(&mut self, volume: u32) -> Done {
        let Some(mut connection) = self.connection(volume)? else { return Ok(()) };
        let size = connection.size().get();
        let mut asked: HashMap<Tag, (u64, Range<u64>, Kind)> = HashMap::new();
        let mut gone = false;
        for _ in 0..self.random.between(1, 4) {
            let Some(pages) = self.pages(size) else { break };
            let mut cells = pages.start * PAGE / CELL..pages.end * PAGE / CELL;
            let what = self.random.below(100);
            if what < 45 && self.random.chance(30) {
                cells = cells.start + self.random.below(8)..cells.end - self.random.below(8);
                if cells.is_empty() {
                    cells = cells.start..cells.start + 1; // in the first page, or the second
                }
            }
            let stamp = self.stamp();
            let bytes = Self::bytes(volume, &cells, stamp);
            let offset = Bytes::new(cells.start * CELL);
            let at = tick();
            let (begun, kind) = match what {
                0..45 => (connection.begin_write(offset, &bytes), Kind::Write { stamp }),
                45..90 => {
                    let len = Bytes::new(bytes.len() as u64);
                    (connection.begin_read(offset, len), Kind::Read { stamps: Vec::new() })
                }
                _ => (connection.begin_sync(), Kind::SyncAll),
            };
            match begun {
                Ok(tag) => drop(asked.insert(tag, (at, cells, kind))),
                Err(_) => {
                    gone = true;
                    if matches!(kind, Kind::Write { .. }) {
                        self.event(at, volume, cells, kind, false);
                    }
                    break;
                }
            }
        }
        while !gone && !asked.is_empty() {
            let Ok(completion) = connection.take() else {
                gone = true;
                break;
            };
            let (at, cells, kind) = asked.remove(&completion.tag).expect("asked for");
            self.ended(at, volume, cells, kind, completion.result);
        }
        for (at, cells, kind) in asked.into_values() {
            if matches!(kind, Kind::Write { .. }) {
                self.event(at, volume, cells, kind, false);
            }
        }
        if gone {
            // The daemon, or only the volume under this connection?
            return self.client.volumes().map(drop).map_err(|_| Gone);
        }
        if self.random.chance(80) {
            self.connections.insert(volume, connection);
        }
        Ok(())
    }

    fn ended(
        &mut self,
        at: u64,
        volume: u32,
        cells: Range<u64>,
        kind: Kind,
        result: Result<Vec<u8>, Error>,
    ) {
        match (result, kind) {
            (Ok(bytes), Kind::Read { .. }) => {
                let kind = found(&bytes, volume, cells.start);
                self.event(at, volume, cells, kind, true);
            }
            (Ok(_), Kind::SyncAll) => self.event(at, volume, 0..0, Kind::SyncAll, true),
            (Ok(_), kind) => self.event(at, volume, cells, kind, true),
            (Err(error), kind @ Kind::Write { .. }) if may_have_happened(&error) => {
                self.event(at, volume, cells, kind, false);
            }
            (Err(_), _) => {}
        }
    }

    /// Makes, resizes, deletes or lists volumes.
    fn change(&mut self, volume: u32) -> Done {
        let at = tick();
        let size = PAGE * *self.random.pick(&[16, 100, 256, 300, 512, 700]);
        let (result, size) = match self.random.below(10) {
            0..4 => {
                let create = VolumeCreate::new(name(volume), Bytes::new(size));
                (self.client.volume_create(&create).map(drop), size)
            }
            4..7 => {
                let resized = self.client.volume_cut(&name(volume), Bytes::new(size));
                (resized.map(drop), size)
            }
            7 => (self.client.volume_delete(&name(volume)), 0),
            _ => return self.list(),
        };
        let done = match &result {
            Ok(()) => true,
            Err(error) if may_have_happened(error) => false,
            Err(_) => return Ok(()),
        };
        // What lies behind the end is gone, and comes back as zeros.
        let cut = Kind::Durable { stamp: ZEROS };
        self.event(at, volume, size / CELL..u64::MAX, cut, done);
        let reserved = Kind::Durable { stamp: reserved(size) };
        self.event(at, SIZES + volume, 0..1, reserved, done);
        match result {
            Err(error) if is_gone(&error) => Err(Gone),
            _ => Ok(()),
        }
    }

    fn list(&mut self) -> Done {
        let at = tick();
        let volumes = self.client.volumes().map_err(|_| Gone)?;
        for volume in self.program.first_volume..self.program.first_volume + VOLUMES {
            let found = volumes.iter().find(|found| found.name == name(volume));
            let stamps = vec![found.map_or(ZEROS, |found| found.size_bytes.get())];
            self.event(at, SIZES + volume, 0..1, Kind::Read { stamps }, true);
        }
        Ok(())
    }

    fn contract() -> Contract {
        Contract {
            rate_bytes_per_second: Rate::per_second(3_000_000),
            block_bytes: Bytes::new(BLOCK),
            burst_bytes: Bytes::new(BLOCK),
        }
    }

    /// Records a while; its bytes are answered by the syncs.
    fn record(&mut self, volume: u32) -> Done {
        let start = self.random.below(16) * BLOCK;
        let opened = self.client.writer(&name(volume), Self::contract(), Bytes::new(start));
        let mut writer = match opened {
            Ok(writer) => writer,
            Err(error) if is_gone(&error) => return Err(Gone),
            Err(_) => return self.client.volumes().map(drop).map_err(|_| Gone),
        };
        let (first, mut end) = (start / CELL, start / CELL);
        let mut pending: Vec<(u64, Range<u64>, u64)> = Vec::new();
        let pieces = self.random.between(1, 24);
        let mut result = Ok(());
        for _ in 0..pieces {
            let cells = end..end + self.random.between(1, 8) * (PAGE / CELL);
            let (stamp, at) = (self.stamp(), tick());
            let bytes = Self::bytes(volume, &cells, stamp);
            end = cells.end;
            pending.push((at, cells, stamp));
            result = std::io::Write::write_all(&mut writer, &bytes);
            if result.is_err() {
                break;
            }
            if self.random.chance(15) {
                let at = tick();
                if writer.sync().is_err() {
                    break;
                }
                self.recorded(volume, &mut pending, at, first..end, true);
            }
            self.gauge.tried.fetch_add(1, Ordering::Relaxed);
        }
        let at = tick();
        let closed = match result.is_ok() && self.random.chance(70) {
            true => writer.close().is_ok(),
            false => false, // dropped: nobody says how it ended
        };
        self.recorded(volume, &mut pending, at, first..end, closed);
        self.client.volumes().map(drop).map_err(|_| Gone)
    }

    /// What was recorded so far is answered, and durable; or nobody knows.
    fn recorded(
        &mut self,
        volume: u32,
        pending: &mut Vec<(u64, Range<u64>, u64)>,
        at: u64,
        cells: Range<u64>,
        done: bool,
    ) {
        for (at, cells, stamp) in pending.drain(..) {
            self.event(at, volume, cells, Kind::Write { stamp }, done);
        }
        if done && !cells.is_empty() {
            self.event(at, volume, cells, Kind::Sync, true);
        }
    }

    /// Plays a while, and jumps. What was read ahead may be as old as the stream: a jump
    /// into its window reads nothing anew.
    fn play(&mut self, volume: u32) -> Done {
        let at = tick();
        let start = self.random.below(24) * BLOCK;
        let opened = self.client.reader(&name(volume), Self::contract(), Bytes::new(start));
        let mut reader = match opened {
            Ok(reader) => reader,
            Err(error) if is_gone(&error) => return Err(Gone),
            Err(_) => return self.client.volumes().map(drop).map_err(|_| Gone),
        };
        let mut buffer = vec![0; PAGE as usize];
        let mut filled = 0;
        for _ in 0..self.random.between(1, 300) {
            if self.random.chance(3) {
                let to = Bytes::new(self.random.below(32) * BLOCK);
                if reader.seek(to).is_err() {
                    break;
                }
                filled = 0;
            }
            let from = reader.offset().get() - filled as u64;
            match reader.next_piece(&mut buffer[filled..]) {
                Ok(Piece::Data(len)) => {
                    filled += len;
                    if filled == buffer.len() {
                        let first = from / CELL;
                        let kind = found(&buffer, volume, first);
                        self.event(at, volume, first..first + PAGE / CELL, kind, true);
                        filled = 0;
                    }
                }
                Ok(Piece::Gap { .. }) => filled = 0,
                Ok(Piece::End) | Err(_) => break,
            }
            if self.gauge.over.load(Ordering::Relaxed) {
                break;
            }
            self.gauge.tried.fetch_add(1, Ordering::Relaxed);
        }
        drop(reader);
        self.client.volumes().map(drop).map_err(|_| Gone)
    }
}

/// What was found in cells from `first` on.
fn found(bytes: &[u8], volume: u32, first: u64) -> Kind {
    let cells = (first..).zip(bytes.chunks_exact(CELL as usize));
    Kind::Read { stamps: cells.map(|(cell, bytes)| stamp_in(bytes, volume, cell)).collect() }
}

/// Reads everything that is there, alone.
pub fn audit(socket: &Path, first_volume: u32, log: &mut dyn FnMut(Event)) {
    let client = Client::connect(socket.to_owned()).unwrap();
    let program = Program { number: 0, seed: 0, trade: Trade::Worker, first_volume, hot: (0, 0) };
    let (random, gauge) = (Random::new(0), Gauge::default());
    let connections = HashMap::new();
    let mut work = Work { program, random, client, connections, stamps: 0, gauge: &gauge, log };
    assert!(work.list().is_ok(), "nobody kills this daemon");
    for volume in first_volume..first_volume + VOLUMES {
        let Ok(mut connection) = work.client.best_effort(&name(volume)) else { continue };
        let size = connection.size().get();
        for from in (0..size).step_by(1 << 20) {
            let mut bytes = vec![0; (size - from).min(1 << 20) as usize];
            let at = tick();
            connection.read_at(Bytes::new(from), &mut bytes).unwrap();
            let cells = from / CELL..(from + bytes.len() as u64) / CELL;
            let kind = found(&bytes, volume, from / CELL);
            work.event(at, volume, cells, kind, true);
        }
    }
}
