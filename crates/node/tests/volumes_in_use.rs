//! A volume that is in use: what may be done to it while best effort or a stream is at
//! it, and what is refused until that has ended. The node is asked directly; its disks do
//! nothing until the test says so, so that a transfer is under way for as long as it takes.

use node::{
    Config, Contract, DiskAction, DiskCommand, DiskIndex, DiskPoll, DiskSetup, Error, Event, Mode,
    Node, Op, Placement, Policy, Reply, Span, Ticket, WriteRange,
};
use sim::{SimDisk, Timing};
use units::{Bytes, Duration, Instant, Rate};

const VOLUME: &str = "film";
const SIZE: Bytes = Bytes::mib(8);
const LEN: Bytes = Bytes::kib(256);
const BLOCK: Bytes = Bytes::kib(64);

/// A node of one disk, with a volume of 8 MiB, two of which were written.
struct Held {
    node: Node,
    now: Instant,
    tickets: u64,
    /// Given to the disk.
    under_way: Vec<DiskCommand>,
}

impl Held {
    fn new() -> Self {
        let service = Duration::from_millis(1);
        let profile = disk::Profile::of(&disk::Model::named("laptop-4200").unwrap());
        let mut disks = [SimDisk::new(Bytes::GIB, Timing::Fixed(service))];
        sim::format(&mut disks, "pool", &profile, 1).unwrap();
        let mut store = sim::open(&mut disks).unwrap();
        let volume = store.create(VOLUME, SIZE, &Placement::default()).unwrap();
        let whole = store::Blocks::first(Bytes::MIB);
        (0..2).for_each(|extent| store.note_written(volume, extent, &whole));
        store.note_length(volume, Bytes::mib(2));
        sim::commit(&mut disks, &mut store).unwrap();
        let config = Config {
            policy: Policy::SLACK,
            admission: true,
            memory: Bytes::mib(16),
            host_latency: Duration::ZERO,
            commit_interval: Duration::from_secs(2),
            remeasure: false,
        };
        let node = Node::new(config, vec![DiskSetup { profile }], store).unwrap();
        Self { node, now: Instant::from_nanos(0), tickets: 0, under_way: Vec::new() }
    }

    fn begin(&mut self, op: Op) -> Ticket {
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        self.node.handle(
            self.now,
            Event::Request { ticket, who: node::Who::root(), op, arrived: self.now },
        );
        self.poll();
        ticket
    }

    /// Takes what the disk shall do.
    fn poll(&mut self) -> Option<Instant> {
        loop {
            match self.node.poll_disk(self.now, DiskIndex(0)) {
                DiskPoll::Start(command) => self.under_way.push(command),
                DiskPoll::Wait { until } => return until,
            }
        }
    }

    /// The answer of an operation, where there is one by now.
    fn answer(&mut self, ticket: Ticket) -> Option<Result<Reply, Error>> {
        let mut outputs = std::iter::from_fn(|| self.node.poll_output());
        outputs.find(|output| output.ticket == ticket).map(|output| output.result)
    }

    /// Begins what is answered at once.
    fn at_once(&mut self, op: Op) -> Result<Reply, Error> {
        let ticket = self.begin(op);
        self.answer(ticket).expect("answered at once")
    }

    /// Whether the disk is at data.
    fn is_at_data(&self) -> bool {
        let is_data = |command: &DiskCommand| {
            matches!(command.action, DiskAction::Read { .. } | DiskAction::Write { .. })
        };
        self.under_way.iter().any(is_data)
    }

    /// Lets the disk work until an operation is answered.
    fn wait(&mut self, ticket: Ticket) -> Result<Reply, Error> {
        for _ in 0..1000 {
            if let Some(answer) = self.answer(ticket) {
                return answer;
            }
            let alarm = self.poll();
            if self.under_way.is_empty() {
                self.now = self.now.max(alarm.expect("something is yet to come"));
            }
            for DiskCommand { id, .. } in std::mem::take(&mut self.under_way) {
                let started = self.now;
                self.now += Duration::from_millis(1);
                let (disk, finished, result) = (DiskIndex(0), self.now, Ok(()));
                let event = Event::CommandDone { disk, id, started, finished, result };
                self.node.handle(self.now, event);
            }
            self.poll();
        }
        panic!("{ticket:?} is not answered");
    }

    fn room(&mut self) -> Span {
        match self.at_once(Op::Room { len: LEN, target: None }) {
            Ok(Reply::Room { span }) => span,
            other => panic!("{other:?} is no room"),
        }
    }

    /// A best-effort write that the disk is at.
    fn write(&mut self) -> Ticket {
        let span = self.room();
        let ticket = self.begin(write(span));
        assert!(self.is_at_data());
        ticket
    }

    /// A best-effort read that the disk is at.
    fn read(&mut self) -> Ticket {
        let (volume, offset, len) = (VOLUME.into(), Bytes::ZERO, LEN);
        let ticket = self.begin(Op::Read { volume, offset, len, priority: None });
        assert!(self.is_at_data());
        ticket
    }
}

fn write(span: Span) -> Op {
    let range = WriteRange::new(Bytes::mib(4), LEN);
    Op::Write { volume: VOLUME.into(), range, span, priority: None }
}

fn resize(size: Bytes) -> Op {
    Op::VolumeResize { name: VOLUME.into(), size, may_cut: true }
}

fn delete() -> Op {
    Op::VolumeDelete { name: VOLUME.into() }
}

fn open(mode: Mode) -> Op {
    let contract = Contract { rate: Rate::per_second(100_000), block: BLOCK, burst: BLOCK };
    Op::StreamOpen { volume: VOLUME.into(), mode, contract, start: Bytes::ZERO }
}

fn busy(streams: u64) -> Result<Reply, Error> {
    Err(Error::VolumeBusy { name: VOLUME.into(), streams })
}

/// What a disk is at belongs to the volume: given to another one meanwhile, the write would
/// go over the other's data, and the read would show it.
#[test]
fn space_is_not_taken_from_under_best_effort() {
    for begin in [Held::write, Held::read] {
        let mut held = Held::new();
        let transfer = begin(&mut held);
        assert_eq!(held.at_once(delete()), busy(0));
        assert_eq!(held.at_once(resize(SIZE - Bytes::MIB)), busy(0));
        assert_eq!(held.answer(transfer), None, "it is still under way");
        // Growing takes nothing away.
        let grown = held.begin(resize(SIZE + Bytes::MIB));
        assert_eq!(held.wait(grown), Ok(Reply::Done));
        let mut held = Held::new();
        let transfer = begin(&mut held);
        assert!(held.wait(transfer).is_ok());
        let shrunk = held.begin(resize(Bytes::mib(1)));
        assert_eq!(held.wait(shrunk), Ok(Reply::Done));
        let deleted = held.begin(delete());
        assert_eq!(held.wait(deleted), Ok(Reply::Done));
        assert!(matches!(held.at_once(delete()), Err(Error::NoSuchVolume { .. })));
    }
}

/// A stream's writes go where they belong in its own order; a best-effort write to the same
/// blocks, or the zeros before one, would fall on what the stream records.
#[test]
fn a_writer_is_not_opened_beside_a_best_effort_write_nor_one_begun_beside_it() {
    let mut held = Held::new();
    let under_way = held.write();
    assert_eq!(held.at_once(open(Mode::Write)), busy(0));
    assert!(held.at_once(open(Mode::Read)).is_ok(), "a reader is");
    assert_eq!(held.wait(under_way), Ok(Reply::Done));
    let opened = held.begin(open(Mode::Write));
    let Ok(Reply::Stream { stream, .. }) = held.wait(opened) else { panic!("not opened") };
    assert_eq!(held.at_once(open(Mode::Write)), busy(1), "one writer");
    let span = held.room();
    assert_eq!(held.at_once(write(span)), busy(1));
    let closed = held.begin(Op::StreamClose { stream });
    assert!(held.wait(closed).is_ok());
    let span = held.room();
    let written = held.begin(write(span));
    assert_eq!(held.wait(written), Ok(Reply::Done), "the writer is gone");
}

/// A read beside a writer that is opened disturbs nothing.
#[test]
fn a_writer_is_opened_beside_a_best_effort_read() {
    let mut held = Held::new();
    let read = held.read();
    let opened = held.begin(open(Mode::Write));
    assert!(matches!(held.wait(opened), Ok(Reply::Stream { .. })));
    let _ = read;
}

/// Memory of a write that is refused is given to whoever waits for some.
#[test]
fn a_write_that_is_refused_gives_its_memory_to_who_waits() {
    let mut held = Held::new();
    let opened = held.begin(open(Mode::Write));
    assert!(held.wait(opened).is_ok());
    let mut spans = Vec::new();
    let waits = loop {
        let ticket = held.begin(Op::Room { len: LEN, target: None });
        match held.answer(ticket) {
            Some(Ok(Reply::Room { span })) => spans.push(span),
            None => break ticket,
            other => panic!("{other:?} is no room"),
        }
    };
    let span = spans[0];
    let refused = held.begin(write(span));
    let mut answers = std::iter::from_fn(|| held.node.poll_output());
    let first = answers.next().unwrap();
    assert_eq!((first.ticket, first.result), (refused, busy(1)));
    let second = answers.next().expect("who waits is served");
    assert_eq!((second.ticket, second.result), (waits, Ok(Reply::Room { span })));
}
