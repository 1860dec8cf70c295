//! A program that does random things to volumes that others use as well, and writes down
//! what it asked for and what it was told.

use node::{
    Contract, Error, Mode, Op, Placement, Priority, Reply, Service, StreamId, Target, WriteRange,
};
use sim::history::{Event, Kind, ZEROS, fill, stamp_in};
use sim::{Context, Memory, Program, Random};
use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;
use units::{Bytes, Duration, Rate};

/// What a power cut may tear a write at.
pub const CELL: Bytes = Bytes::new(512);
const PAGE: Bytes = Bytes::kib(4);
/// A block of two extents.
const LONG: Bytes = Bytes::mib(2);

/// What volumes and streams of a history are like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Extents by themselves, blocks of 64 KiB.
    Usual,
    /// Runs and blocks of two extents.
    Long,
    /// Thin volumes on one disk. Most writers' blocks are an extent, so that they are written together.
    Thin,
}

/// Where volumes lie.
pub fn placement(shape: Shape) -> Placement {
    let run = if shape == Shape::Long { LONG } else { Bytes::MIB };
    let thin = shape == Shape::Thin;
    let disks = if thin { vec![node::DiskIndex(0)] } else { Vec::new() };
    Placement { run, thin, disks, ..Placement::default() }
}
pub const VOLUMES: u32 = 3;
/// Most of what happens, happens near the start of an extent, so that programs meet.
const BUSY: u64 = 24;

/// The history of all programs, on one clock.
#[derive(Debug, Default)]
pub struct Log {
    pub events: Vec<Event>,
    tick: u64,
    stamp: u64,
    /// Answers with success, by kind of operation: what a history has done.
    pub done: [u64; 8],
    /// Volumes that were made smaller while somebody recorded to them.
    pub shrunk_beside: u64,
    /// The size of each volume, and how many record to it, as far as was answered.
    sizes: [Bytes; VOLUMES as usize],
    writers: [u64; VOLUMES as usize],
}

impl Log {
    pub fn tick(&mut self) -> u64 {
        self.tick += 1;
        self.tick
    }
    /// The power went, and is back.
    pub fn crash(&mut self) {
        self.writers = Default::default();
        let (at_invoke, at_return) = (self.tick(), Some(self.tick()));
        let kind = Kind::Crash;
        self.events.push(Event { client: 0, at_invoke, at_return, kind, volume: 0, cells: 0..0 });
    }
}

impl Log {
    /// A volume has this size from now on.
    pub fn sized(&mut self, volume: u32, size: Bytes) {
        let size = size.round_up(Bytes::MIB);
        let before = std::mem::replace(&mut self.sizes[volume as usize], size);
        self.shrunk_beside += u64::from(size < before && self.writers[volume as usize] > 0);
    }
}

pub fn name(volume: u32) -> String {
    format!("v{volume}")
}

/// The stamps of the cells that `bytes` are, from byte `offset` of a volume on.
pub fn stamps(bytes: &[u8], volume: u32, offset: Bytes) -> Vec<u64> {
    let cells = bytes.chunks_exact(CELL.as_usize());
    (offset / CELL..).zip(cells).map(|(cell, bytes)| stamp_in(bytes, volume, cell)).collect()
}

/// What the program waits for.
#[derive(Clone, Debug)]
enum Doing {
    Rest,
    /// Room for a write of these bytes.
    Room(u32, WriteRange),
    /// The end of a write or a deletion; its place in the log.
    Change(usize),
    /// The same of another size.
    Resize(usize, Bytes),
    /// A volume of this size.
    Create(u32, Bytes),
    /// A read, asked for at this tick; of a stream, opened then.
    Read(u32, u64),
    Sync(u64),
    /// The answer is all the same.
    Other,
    Open(u32, Mode, Bytes),
    StreamRoom(Stream),
    StreamWrite(Stream),
    StreamSync(Stream),
    StreamRead(Stream),
    StreamAdvance(Stream),
    StreamClose(Stream),
}

#[derive(Clone, Debug)]
struct Stream {
    id: StreamId,
    mode: Mode,
    volume: u32,
    start: Bytes,
    at: Bytes,
    /// Steps until it is closed.
    left: u64,
    opened: u64,
    /// What was recorded and is not known to be durable, by its places in the log.
    waiting: Vec<usize>,
}

pub struct Client {
    pub number: u32,
    random: Random,
    log: Rc<RefCell<Log>>,
    doing: Doing,
    /// Operations that it still does.
    left: u64,
    shape: Shape,
}

impl Client {
    pub fn new(number: u32, seed: u64, left: u64, log: Rc<RefCell<Log>>) -> Self {
        let random = Random::new(seed ^ u64::from(number) << 32);
        Self { number, random, log, doing: Doing::Rest, left, shape: Shape::Usual }
    }

    /// Its streams, and the volumes that it makes, are like this.
    pub fn of_shape(mut self, shape: Shape) -> Self {
        self.shape = shape;
        self
    }

    fn event(&self, at_invoke: u64, kind: Kind, volume: u32, cells: Range<u64>) -> Event {
        Event { client: self.number, at_invoke, at_return: None, kind, volume, cells }
    }

    /// Writes down something that may have an effect from now on.
    fn begins(&self, kind: Kind, volume: u32, cells: Range<u64>) -> usize {
        let mut log = self.log.borrow_mut();
        let tick = log.tick();
        log.events.push(self.event(tick, kind, volume, cells));
        log.events.len() - 1
    }

    /// What was written down is known to have happened.
    fn ended(&self, at: usize) {
        let mut log = self.log.borrow_mut();
        let tick = log.tick();
        log.events[at].at_return = Some(tick);
    }

    /// Writes down what has happened between `at_invoke` and now.
    fn happened(&self, at_invoke: u64, kind: Kind, volume: u32, cells: Range<u64>) {
        let mut log = self.log.borrow_mut();
        let mut event = self.event(at_invoke, kind, volume, cells);
        event.at_return = Some(log.tick());
        log.events.push(event);
    }

    fn done(&self, what: usize) {
        self.log.borrow_mut().done[what] += 1;
    }

    fn tick(&self) -> u64 {
        self.log.borrow_mut().tick()
    }

    /// Bytes of a volume: a few cells, or many; now and then not whole pages.
    fn range(&mut self) -> Range<Bytes> {
        let extent = Bytes::MIB * self.random.below(3);
        let (unit, count) = match self.random.below(8) {
            0 => (CELL, self.random.between(1, 40)),
            1 => (PAGE, self.random.between(1, 255)),
            _ => (PAGE, self.random.between(1, 4)),
        };
        let first = match self.random.below(6) {
            0 => self.random.below(Bytes::MIB / unit),
            _ => self.random.below(BUSY * (PAGE / unit)),
        };
        let from = extent + unit * first;
        from..from + unit * count
    }

    fn next(&mut self, context: &mut Context<'_>) {
        self.doing = Doing::Rest;
        if self.left == 0 {
            return;
        }
        self.left -= 1;
        if self.random.chance(30) {
            return context.alarm_at(context.now + self.random.span(Duration::from_millis(30)));
        }
        self.act(context);
    }

    fn act(&mut self, context: &mut Context<'_>) {
        let volume = self.random.below(u64::from(VOLUMES)) as u32;
        let priority =
            *self.random.pick(&[None, Some(Priority::Interactive), Some(Priority::Background)]);
        // Of thin volumes what is recorded counts most.
        let records = self.shape == Shape::Thin && self.random.chance(50);
        let op = match if records { 85 } else { self.random.below(100) } {
            0..40 => {
                let range = self.range();
                let range = WriteRange::new(range.start, range.end - range.start);
                self.doing = Doing::Room(volume, range);
                let target = Target { volume: name(volume), offset: range.offset, priority };
                Op::Room { len: range.room().min(Bytes::MIB), target: Some(target) }
            }
            40..68 => {
                let range = self.range();
                let offset = range.start.round_down(PAGE);
                let len = (range.end.round_up(PAGE) - offset).min(Bytes::MIB);
                self.doing = Doing::Read(volume, self.tick());
                Op::Read { volume: name(volume), offset, len, priority }
            }
            68..77 => {
                self.doing = Doing::Sync(self.tick());
                Op::Sync
            }
            77..80 => {
                let size = PAGE * self.random.below(4 * 256);
                let cells = size / CELL..u64::MAX;
                // Shrunk or grown: what is behind the new end is zeros when it comes back.
                let at = self.begins(Kind::Durable { stamp: ZEROS }, volume, cells);
                self.doing = Doing::Resize(at, size);
                Op::VolumeResize { name: name(volume), size, may_cut: true }
            }
            80 => {
                let all = 0..u64::MAX;
                self.doing =
                    Doing::Change(self.begins(Kind::Durable { stamp: ZEROS }, volume, all));
                Op::VolumeDelete { name: name(volume), only: None, keep_directory: false }
            }
            81..84 => {
                let size = Bytes::mib(self.random.between(1, 3));
                self.doing = Doing::Create(volume, size);
                let placement = placement(self.shape);
                Op::VolumeCreate { name: name(volume), size, placement, access: Default::default() }
            }
            84 => {
                self.doing = Doing::Other;
                let (within, every) = (Duration::from_millis(400), Duration::from_millis(500));
                let service = match self.random.below(3) {
                    0 => Service::Latency { len: Bytes::kib(64), within, every },
                    1 => Service::BestEffort(Priority::Background),
                    _ => Service::default(),
                };
                Op::VolumeService { name: name(volume), service }
            }
            number => {
                let mode = if number < 94 { Mode::Write } else { Mode::Read };
                let (block, rate, most, places) = match self.shape {
                    Shape::Long => (LONG, 3_000_000, LONG, 2),
                    Shape::Thin if self.random.chance(80) => {
                        let rate = *self.random.pick(&[2_000_000, 2_000_000, 2_000_000, 1_000_000]);
                        (Bytes::MIB, rate, Bytes::MIB, 3)
                    }
                    // Slow ones leave room for a shrink behind them.
                    _ if self.random.chance(50) => (Bytes::kib(64), 20_000, Bytes::kib(256), 8),
                    _ => (Bytes::kib(64), 300_000, Bytes::kib(256), 20),
                };
                let contract = Contract { rate: Rate::per_second(rate), block, burst: most };
                let start = block * self.random.below(places);
                self.doing = Doing::Open(volume, mode, start);
                Op::StreamOpen { volume: name(volume), mode, contract, start }
            }
        };
        context.ask(0, op);
    }

    /// The next step of a recording or a playback.
    fn go_on(&mut self, context: &mut Context<'_>, mut stream: Stream) {
        let most = if self.shape == Shape::Usual { 16 } else { 256 };
        let is_whole = self.shape == Shape::Thin && self.random.chance(60);
        let pages = if is_whole { most } else { self.random.between(1, most) };
        let (id, len_max) = (stream.id, PAGE * pages);
        let op;
        (self.doing, op) = match stream.left {
            0 => (Doing::StreamClose(stream), Op::StreamClose { stream: id }),
            _ => {
                stream.left -= 1;
                match stream.mode {
                    Mode::Read => {
                        (Doing::StreamRead(stream), Op::StreamRead { stream: id, len_max })
                    }
                    Mode::Write if self.random.chance(25) => {
                        (Doing::StreamSync(stream), Op::StreamSync { stream: id })
                    }
                    Mode::Write | Mode::Update => {
                        (Doing::StreamRoom(stream), Op::StreamRoom { stream: id, len_max })
                    }
                }
            }
        };
        context.ask(0, op);
    }

    /// A sync or the close of a recording was answered.
    fn is_durable(&mut self, stream: &mut Stream) {
        for at in stream.waiting.drain(..) {
            self.ended(at);
        }
        let tick = self.tick();
        self.happened(tick, Kind::Sync, stream.volume, stream.start / CELL..stream.at / CELL);
        self.done(5);
    }

    /// Nobody records by this stream any more.
    fn closed(&self, stream: &Stream) {
        let writers = &mut self.log.borrow_mut().writers[stream.volume as usize];
        *writers -= u64::from(stream.mode == Mode::Write && *writers > 0);
    }

    fn stamp(&self) -> u64 {
        let mut log = self.log.borrow_mut();
        log.stamp += 1;
        log.stamp
    }
}

/// Fills memory from `at` on with these cells of a volume.
fn fill_cells(memory: &mut Memory, at: Bytes, volume: u32, cells: Range<u64>, stamp: u64) {
    for (index, cell) in (0..).zip(cells) {
        let span = node::Span { offset: at + CELL * index, len: CELL };
        fill(memory.bytes(&span), volume, cell, stamp);
    }
}

impl Program for Client {
    fn start(&mut self, context: &mut Context<'_>) {
        self.next(context);
    }

    fn alarm(&mut self, context: &mut Context<'_>) {
        self.act(context);
    }

    fn answer(&mut self, context: &mut Context<'_>, tag: u64, result: Result<Reply, Error>) {
        if tag > 0 {
            return; // memory that it gave back, a stream that it gave up
        }
        let doing = std::mem::replace(&mut self.doing, Doing::Rest);
        match (doing, result) {
            (Doing::Room(volume, range), Ok(Reply::Room { room: span })) => {
                let cells = range.offset / CELL..(range.offset + range.len) / CELL;
                let stamp = self.stamp();
                if span.len >= range.room() {
                    let at = span.offset + range.skip();
                    fill_cells(context.arena, at, volume, cells.clone(), stamp);
                }
                let range = match span.len >= range.room() {
                    true => range,
                    // Too long to be taken at once: what fits.
                    false => return self.give_back(context, span),
                };
                self.doing = Doing::Change(self.begins(Kind::Write { stamp }, volume, cells));
                let priority = self.random.chance(30).then_some(Priority::Background);
                context.ask(0, Op::Write { volume: name(volume), range, span, priority });
            }
            (Doing::Create(volume, size), Ok(_)) => {
                self.log.borrow_mut().sized(volume, size);
                self.next(context);
            }
            (Doing::Resize(at, size), Ok(_)) => {
                let volume = self.log.borrow().events[at].volume;
                self.log.borrow_mut().sized(volume, size);
                self.done(1);
                self.ended(at);
                self.next(context);
            }
            (Doing::Change(at), Ok(_)) => {
                let kind = self.log.borrow().events[at].kind.clone();
                self.done(usize::from(matches!(kind, Kind::Durable { .. })));
                self.ended(at);
                self.next(context);
            }
            (Doing::Change(at) | Doing::Resize(at, _), Err(error)) => {
                if !matches!(error, Error::Device { .. } | Error::ReadOnly { .. }) {
                    // Refused: it has not happened.
                    self.log.borrow_mut().events[at].cells = 0..0;
                }
                self.next(context);
            }
            (Doing::Read(volume, tick), Ok(Reply::Data { bytes: span, offset })) => {
                let stamps = stamps(context.arena.bytes(&span), volume, offset);
                let cells = offset / CELL..(offset + span.len) / CELL;
                self.happened(tick, Kind::Read { stamps }, volume, cells);
                self.done(2);
                self.give_back(context, span);
            }
            (Doing::Sync(tick), Ok(_)) => {
                self.happened(tick, Kind::SyncAll, 0, 0..0);
                self.done(3);
                self.next(context);
            }
            (Doing::Open(volume, mode, at), Ok(Reply::Stream { stream: id, .. })) => {
                let (left, opened) = (self.random.between(1, 12), self.tick());
                let records = u64::from(mode == Mode::Write);
                self.log.borrow_mut().writers[volume as usize] += records;
                self.done(4);
                let waiting = Vec::new();
                let start = at;
                let stream = Stream { id, mode, volume, start, at, left, opened, waiting };
                self.go_on(context, stream);
            }
            (Doing::StreamRoom(mut stream), Ok(Reply::Room { room: span })) => {
                let len = span.len.round_down(PAGE);
                let cells = stream.at / CELL..(stream.at + len) / CELL;
                let stamp = self.stamp();
                fill_cells(context.arena, span.offset, stream.volume, cells.clone(), stamp);
                stream.waiting.push(self.begins(Kind::Write { stamp }, stream.volume, cells));
                stream.at += len;
                let id = stream.id;
                self.doing = Doing::StreamWrite(stream);
                context.ask(0, Op::StreamWrite { stream: id, len });
            }
            (Doing::StreamSync(mut stream), Ok(Reply::Durable { upto })) => {
                assert!(upto >= stream.at, "all that was written");
                self.is_durable(&mut stream);
                self.go_on(context, stream);
            }
            (Doing::StreamRead(stream), Ok(Reply::Data { bytes: span, offset })) => {
                let whole = node::Span { len: span.len.round_down(CELL), ..span };
                let stamps = stamps(context.arena.bytes(&whole), stream.volume, offset);
                let cells = offset / CELL..(offset + whole.len) / CELL;
                self.happened(stream.opened, Kind::Read { stamps }, stream.volume, cells);
                self.done(6);
                let id = stream.id;
                self.doing = Doing::StreamAdvance(stream);
                context.ask(0, Op::StreamAdvance { stream: id, len: span.len });
            }
            // The end, or a gap.
            (Doing::StreamRead(mut stream), Ok(_)) => {
                stream.left = 0;
                self.go_on(context, stream);
            }
            (Doing::StreamWrite(stream) | Doing::StreamAdvance(stream), Ok(_)) => {
                self.go_on(context, stream);
            }
            (Doing::StreamClose(mut stream), Ok(_)) => {
                if stream.mode == Mode::Write {
                    self.is_durable(&mut stream);
                    self.closed(&stream);
                }
                self.next(context);
            }
            (
                Doing::StreamRoom(stream)
                | Doing::StreamWrite(stream)
                | Doing::StreamSync(stream)
                | Doing::StreamRead(stream)
                | Doing::StreamAdvance(stream),
                Err(_),
            ) => {
                context.ask(1, Op::StreamClose { stream: stream.id });
                self.closed(&stream);
                self.next(context);
            }
            _ => self.next(context),
        }
    }

    fn returned(&mut self, context: &mut Context<'_>) {
        self.next(context);
    }
}

impl Client {
    fn give_back(&mut self, context: &mut Context<'_>, span: node::Span) {
        context.ask(1, Op::Release { span });
        self.next(context);
    }
}
