//! Programs that people run beside each other: players, recorders, and greedy
//! readers. What they see goes into a [`Tally`] that the test keeps.

use crate::Random;
use crate::keeps::Keeps;
use crate::world::{Context, Program};
use node::{Chance, Contract, Error, Mode, Op, Opening, Priority, Reply, Span, StreamId};
use std::cell::RefCell;
use std::rc::Rc;
use units::{Bytes, Duration, Instant};

/// What a program saw.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Its stream, once open.
    pub stream: Option<StreamId>,
    /// Why it was turned away or broken off.
    pub error: Option<Error>,
    /// Bytes moved and found right.
    pub bytes: Bytes,
    /// Bytes that were not what they should be.
    pub wrong: Bytes,
    /// Bytes in declared gaps.
    pub gaps: Bytes,
    /// Operations that ended.
    pub operations: u64,
    /// The longest wait for an answer after it was due.
    pub wait_max: Duration,
    /// The sum of all waits.
    pub wait_total: Duration,
    /// Everything up to here was acknowledged as on the medium.
    pub durable: Bytes,
    /// What its stream's account had of them when it was closed.
    pub underruns: u64,
    /// It came to the end of its work.
    pub done: bool,
}

/// A tally that a program and a test share.
pub type Shared = Rc<RefCell<Tally>>;

/// Eight bytes at `8 * index` of the volume with this seed.
fn pattern_word(seed: u64, index: u64) -> [u8; 8] {
    Random::new(seed ^ index.wrapping_mul(0x9e37_79b9)).bits().to_le_bytes()
}

/// Fills `into` with what the volume with this seed holds at `offset`.
pub fn pattern(seed: u64, offset: Bytes, into: &mut [u8]) {
    let mut at = offset.get();
    let mut rest = into;
    while !rest.is_empty() {
        let within = (at % 8) as usize;
        let len = rest.len().min(8 - within);
        let (now, later) = rest.split_at_mut(len);
        now.copy_from_slice(&pattern_word(seed, at / 8)[within..within + len]);
        rest = later;
        at += len as u64;
    }
}

/// Whether `bytes` are what the volume with this seed holds at `offset`.
pub fn pattern_matches(seed: u64, offset: Bytes, bytes: &[u8]) -> bool {
    let mut expected = vec![0; bytes.len()];
    pattern(seed, offset, &mut expected);
    expected == bytes
}

const OPEN: u64 = 0;
const MOVE: u64 = 1;
const GIVE: u64 = 2;
const SYNC: u64 = 3;
const CLOSE: u64 = 4;
const DURABLE: u64 = 5;

/// Reads or writes a stream at its pace: a piece of `piece` bytes every
/// `piece / rate`, each up to `jitter` late on purpose.
struct Pace {
    volume: String,
    seed: u64,
    contract: Contract,
    piece: Bytes,
    jitter: Duration,
    /// Faster than the contract by this factor in percent; 100 keeps it.
    speed: u64,
    /// How often its requests may be late.
    miss: Option<Chance>,
    random: Random,
    stream: Option<StreamId>,
    began: Option<Instant>,
    moved: Bytes,
    asked: Instant,
    length: Bytes,
    tally: Shared,
}

impl Pace {
    fn new(volume: &str, seed: u64, contract: Contract, piece: Bytes, length: Bytes) -> Self {
        Self {
            volume: volume.into(),
            seed,
            contract,
            piece,
            jitter: Duration::ZERO,
            speed: 100,
            miss: None,
            random: Random::new(seed),
            stream: None,
            began: None,
            moved: Bytes::ZERO,
            asked: Instant::EPOCH,
            length,
            tally: Rc::default(),
        }
    }

    fn due(&mut self, now: Instant) -> Instant {
        let began = *self.began.get_or_insert(now);
        let due = self.contract.rate.time_for(self.moved) * 100 / self.speed;
        began + due + self.random.span(self.jitter)
    }

    fn opened(&mut self, result: Result<Reply, Error>) -> bool {
        match result {
            Ok(Reply::Stream { stream, .. }) => {
                self.stream = Some(stream);
                self.tally.borrow_mut().stream = Some(stream);
                true
            }
            Ok(other) => unreachable!("opening was answered with {other:?}"),
            Err(error) => {
                self.tally.borrow_mut().error = Some(error);
                false
            }
        }
    }

    fn answered(&mut self, now: Instant) {
        let wait = now - self.asked;
        let mut tally = self.tally.borrow_mut();
        tally.operations += 1;
        // The first answer waits for the window to fill: that is no lateness.
        if self.began.is_some() {
            tally.wait_max = tally.wait_max.max(wait);
            tally.wait_total += wait;
        }
    }

    fn stream(&self) -> StreamId {
        self.stream.expect("open")
    }

    /// Its account goes with the stream.
    fn close<K: Keeps>(&self, context: &mut Context<'_, K>) {
        let stream = self.stream();
        // Of one that the pool has ended already there is none.
        if let Some(status) = context.node.stream(stream) {
            self.tally.borrow_mut().underruns = status.account.underruns;
        }
        context.ask(CLOSE, Op::StreamClose { stream });
    }
}

/// An isochronous reader that checks every byte, where there are any.
pub struct Player(Pace);

impl Player {
    /// Reads `length` bytes of a volume that holds the pattern of `seed`.
    pub fn new(volume: &str, seed: u64, contract: Contract, piece: Bytes, length: Bytes) -> Self {
        Self(Pace::new(volume, seed, contract, piece, length))
    }
    /// Each read comes up to `jitter` late.
    pub fn jitter(mut self, jitter: Duration) -> Self {
        self.0.jitter = jitter;
        self
    }
    /// Tries to go at `percent` of its contract's rate.
    pub fn speed(mut self, percent: u64) -> Self {
        self.0.speed = percent;
        self
    }
    /// Its requests may be late so often.
    pub fn at_odds(mut self, miss: Chance) -> Self {
        self.0.miss = Some(miss);
        self
    }
    /// What it sees.
    pub fn tally(&self) -> Shared {
        self.0.tally.clone()
    }
    fn next<K: Keeps>(&mut self, context: &mut Context<'_, K>) {
        if self.0.moved >= self.0.length {
            return self.0.close(context);
        }
        match self.0.began {
            None => self.alarm(context),
            Some(_) => {
                let due = self.0.due(context.now);
                context.alarm_at(due);
            }
        }
    }
}

impl<K: Keeps> Program<K> for Player {
    fn start(&mut self, context: &mut Context<'_, K>) {
        let Pace { volume, contract, .. } = &self.0;
        let (volume, contract) = (volume.clone(), *contract);
        let (mode, start, miss) = (Mode::Read, Bytes::ZERO, self.0.miss);
        let opening = Opening { volume, mode, contract, start, early: false, miss };
        context.ask(OPEN, Op::Open { opening: Box::new(opening), region: None });
    }
    fn alarm(&mut self, context: &mut Context<'_, K>) {
        self.0.asked = context.now;
        let len_max = self.0.piece.min(self.0.length - self.0.moved);
        context.ask(MOVE, Op::StreamRead { stream: self.0.stream(), len_max });
    }
    fn answer(&mut self, context: &mut Context<'_, K>, tag: u64, result: Result<Reply, Error>) {
        match (tag, result) {
            (OPEN, result) => {
                if self.0.opened(result) {
                    self.next(context);
                }
            }
            (MOVE, Ok(Reply::Data { bytes: span, offset })) => {
                self.0.answered(context.now);
                self.0.due(context.now);
                let seed = self.0.seed;
                let good = context.bytes(&span).map(|bytes| pattern_matches(seed, offset, bytes));
                let mut tally = self.0.tally.borrow_mut();
                match good {
                    Some(true) => tally.bytes += span.len,
                    Some(false) => tally.wrong += span.len,
                    None => {}
                }
                drop(tally);
                self.0.moved += span.len;
                let stream = self.0.stream.expect("open");
                context.ask(GIVE, Op::StreamAdvance { stream, len: span.len });
            }
            (MOVE, Ok(Reply::Gap { len, .. })) => {
                self.0.tally.borrow_mut().gaps += len;
                self.0.moved += len;
                self.next(context);
            }
            (MOVE, Ok(Reply::End)) => {
                self.0.tally.borrow_mut().done = true;
            }
            (GIVE, Ok(_)) => self.next(context),
            (CLOSE, Ok(_)) => self.0.tally.borrow_mut().done = true,
            (_, Err(error)) => self.0.tally.borrow_mut().error = Some(error),
            (tag, Ok(other)) => unreachable!("{tag} was answered with {other:?}"),
        }
    }
}

/// An isochronous writer of a known pattern.
pub struct Recorder {
    pace: Pace,
    room: Option<Span>,
    sync_every: Option<Bytes>,
}

impl Recorder {
    /// Writes `length` bytes of the pattern of `seed`.
    pub fn new(volume: &str, seed: u64, contract: Contract, piece: Bytes, length: Bytes) -> Self {
        Self {
            pace: Pace::new(volume, seed, contract, piece, length),
            room: None,
            sync_every: None,
        }
    }
    /// Each write comes up to `jitter` late.
    pub fn jitter(mut self, jitter: Duration) -> Self {
        self.pace.jitter = jitter;
        self
    }
    /// Goes at `percent` of its contract's rate.
    pub fn speed(mut self, percent: u64) -> Self {
        self.pace.speed = percent;
        self
    }
    /// Asks for a sync after every so many bytes.
    pub fn sync_every(mut self, bytes: Bytes) -> Self {
        self.sync_every = Some(bytes);
        self
    }
    /// What it sees.
    pub fn tally(&self) -> Shared {
        self.pace.tally.clone()
    }
    fn listen(&mut self, context: &mut Context<'_>) {
        let beyond = self.pace.tally.borrow().durable;
        context.ask(DURABLE, Op::StreamDurable { stream: self.pace.stream(), beyond });
    }
    fn next(&mut self, context: &mut Context<'_>) {
        let due = self.pace.due(context.now);
        if self.pace.moved >= self.pace.length {
            return self.pace.close(context);
        }
        context.alarm_at(due);
    }
}

impl Program for Recorder {
    fn start(&mut self, context: &mut Context<'_>) {
        let Pace { volume, contract, .. } = &self.pace;
        let (volume, contract) = (volume.clone(), *contract);
        context
            .ask(OPEN, Op::StreamOpen { volume, mode: Mode::Write, contract, start: Bytes::ZERO });
    }
    fn alarm(&mut self, context: &mut Context<'_>) {
        self.pace.asked = context.now;
        let len_max = self.pace.piece.min(self.pace.length - self.pace.moved);
        context.ask(MOVE, Op::StreamRoom { stream: self.pace.stream(), len_max });
    }
    fn answer(&mut self, context: &mut Context<'_>, tag: u64, result: Result<Reply, Error>) {
        match (tag, result) {
            (OPEN, result) => {
                if self.pace.opened(result) {
                    self.listen(context);
                    self.next(context);
                }
            }
            (MOVE, Ok(Reply::Room { room: span })) => {
                self.pace.answered(context.now);
                pattern(self.pace.seed, self.pace.moved, context.arena.bytes(&span));
                self.room = Some(span);
                context.ask(GIVE, Op::StreamWrite { stream: self.pace.stream(), len: span.len });
            }
            (GIVE, Ok(_)) => {
                let len = self.room.take().expect("room was given").len;
                let before = self.pace.moved;
                self.pace.moved += len;
                self.pace.tally.borrow_mut().bytes += len;
                if let Some(every) = self.sync_every
                    && before / every != self.pace.moved / every
                {
                    context.ask(SYNC, Op::StreamSync { stream: self.pace.stream() });
                }
                self.next(context);
            }
            (DURABLE, Ok(Reply::Durable { upto })) => {
                self.durable(upto);
                if self.pace.moved < self.pace.length {
                    self.listen(context);
                }
            }
            (SYNC, Ok(Reply::Durable { upto })) => self.durable(upto),
            (CLOSE, Ok(Reply::Durable { upto })) => {
                self.durable(upto);
                self.pace.tally.borrow_mut().done = true;
            }
            (_, Err(error)) => self.pace.tally.borrow_mut().error = Some(error),
            (tag, Ok(other)) => unreachable!("{tag} was answered with {other:?}"),
        }
    }
}

impl Recorder {
    fn durable(&mut self, upto: Bytes) {
        let mut tally = self.pace.tally.borrow_mut();
        tally.durable = tally.durable.max(upto);
    }
}

/// Reads random places of a volume as fast as it is let, so many at a time.
pub struct Greedy {
    volume: String,
    size: Bytes,
    piece: Bytes,
    outstanding: u64,
    random: Random,
    asked: Vec<Instant>,
    priority: Option<Priority>,
    tally: Shared,
}

impl Greedy {
    /// Reads of `piece` bytes from the first `size` bytes, `outstanding` at a time.
    pub fn new(volume: &str, size: Bytes, piece: Bytes, outstanding: u64, seed: u64) -> Self {
        Self {
            volume: volume.into(),
            size,
            piece,
            outstanding,
            random: Random::new(seed),
            asked: vec![Instant::EPOCH; outstanding as usize],
            priority: None,
            tally: Rc::default(),
        }
    }
    /// As one whose handle states this priority.
    #[must_use]
    pub fn stating(self, priority: Priority) -> Self {
        Self { priority: Some(priority), ..self }
    }
    /// What it sees.
    pub fn tally(&self) -> Shared {
        self.tally.clone()
    }
    fn read<K: Keeps>(&mut self, context: &mut Context<'_, K>, slot: u64) {
        self.asked[slot as usize] = context.now;
        let offset = self.piece * self.random.below(self.size / self.piece);
        let (volume, len, priority) = (self.volume.clone(), self.piece, self.priority);
        context.ask(slot, Op::Read { volume, offset, len, priority });
    }
}

impl<K: Keeps> Program<K> for Greedy {
    fn start(&mut self, context: &mut Context<'_, K>) {
        for slot in 0..self.outstanding {
            self.read(context, slot);
        }
    }
    fn answer(&mut self, context: &mut Context<'_, K>, slot: u64, result: Result<Reply, Error>) {
        match result {
            Ok(Reply::Data { bytes: span, .. }) => {
                let wait = context.now - self.asked[slot as usize];
                let mut tally = self.tally.borrow_mut();
                tally.operations += 1;
                tally.bytes += span.len;
                tally.wait_max = tally.wait_max.max(wait);
                tally.wait_total += wait;
                context.ask(slot + self.outstanding, Op::Release { span });
            }
            Ok(_) => self.read(context, slot - self.outstanding),
            Err(error) => self.tally.borrow_mut().error = Some(error),
        }
    }
}
