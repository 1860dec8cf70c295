//! Isochronous readers and writers that measure their jitter, with a contract or without, and
//! greedy programs beside them: `rwrt` as ABISS prints it; with other pieces and rates the same
//! reader is that of its slides, and the constant-rate reader of the UCSB scheduler.
//!
//! A program without a contract has what Linux gave it: a reader is read ahead for, one
//! piece of 128 KiB before the one that it is in; a writer's bytes gather in memory in
//! such pieces and go to the disk behind it, until memory is full.

use node::{Contract, Error, Mode, Op, Reply, StreamId, WriteRange};
use sim::{Context, Metadata, Program, Random};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use units::{Bytes, Duration, Instant, Rate};

/// What `rwrt` moves at a time, and the rate at which it does.
pub(crate) const PIECE: Bytes = Bytes::new(10_000);
pub(crate) const RATE: Rate = Rate::per_second(1_000_000);
/// What Linux read ahead and wrote behind at a time.
pub(crate) const CHUNK: Bytes = Bytes::kib(128);
/// A host wakes a program at a tick of its clock: up to so much late.
const TICK: Duration = Duration::from_millis(1);

/// What a program saw.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Of each operation: from when it was due (`rwrt`), or from when it was asked for
    /// (greedy programs), to its end.
    pub times: Vec<Duration>,
    /// Of each operation of `rwrt`: when it was asked for, and how long after that it was
    /// answered.
    pub waits: Vec<(Instant, Duration)>,
    /// The longest from the ask to the answer.
    pub wait_max: Duration,
    pub bytes: Bytes,
    /// What a stream left out since it came too late.
    pub lost: Bytes,
    /// What a stream's account has of them, up to its last operation.
    pub underruns: u64,
    pub began: Option<Instant>,
    /// The end of its last operation.
    pub last: Option<Instant>,
    pub ended: Option<Instant>,
    pub error: Option<Error>,
}

pub(crate) type Shared = Rc<RefCell<Seen>>;

/// When what was beyond the end of a file is tried again.
const AGAIN: Duration = Duration::from_millis(50);

const OPEN: u64 = 0;
const MOVE: u64 = 1;
const GIVE: u64 = 2;
const CLOSE: u64 = 3;
const ROOM: u64 = 4;
const FREE: u64 = 5;
/// Reads and writes of pieces have tags from here on.
const PIECES: u64 = 16;

/// How `rwrt` gets at its bytes.
enum Way {
    Stream {
        contract: Contract,
        mode: Mode,
        stream: Option<StreamId>,
    },
    /// Pieces asked for, and those that have come and are not used up.
    Ahead {
        asked: u64,
        come: BTreeSet<u64>,
    },
    /// The piece that is being filled.
    Behind {
        room: Option<node::Span>,
    },
}

/// `rwrt` (ABISS 2005, figure 13).
pub(crate) struct Rwrt {
    volume: String,
    way: Way,
    piece: Bytes,
    rate: Rate,
    /// What was missed is not made up for.
    forgives: bool,
    length: Bytes,
    begins: Instant,
    random: Random,
    /// When the present operation was due, and when it was asked for.
    due: Instant,
    asked: Instant,
    /// What is left of it.
    left: Bytes,
    at: Bytes,
    seen: Shared,
}

impl Rwrt {
    fn new(volume: &str, way: Way, length: Bytes, begins: Instant) -> Self {
        let seed = volume.bytes().fold(17, |seed, byte| seed * 31 + u64::from(byte));
        Self {
            volume: volume.into(),
            way,
            piece: PIECE,
            rate: RATE,
            forgives: true,
            length,
            begins,
            random: Random::new(seed),
            due: begins,
            asked: begins,
            left: Bytes::ZERO,
            at: Bytes::ZERO,
            seen: Shared::default(),
        }
    }

    /// The same, so much at a time.
    pub fn in_pieces(self, piece: Bytes) -> Self {
        Self { piece, ..self }
    }

    /// The same at another rate, which it keeps: what it has missed it makes up for.
    pub fn keeping(self, rate: Rate) -> Self {
        Self { rate, forgives: false, ..self }
    }

    /// With a contract for 1 MB/s in such blocks.
    pub fn under_contract(
        volume: &str,
        mode: Mode,
        block: Bytes,
        length: Bytes,
        begins: Instant,
    ) -> Self {
        let contract = Contract { rate: RATE, block, burst: Bytes::ZERO };
        Self::under(volume, mode, contract, length, begins)
    }

    /// With this contract.
    pub fn under(
        volume: &str,
        mode: Mode,
        contract: Contract,
        length: Bytes,
        begins: Instant,
    ) -> Self {
        Self::new(volume, Way::Stream { contract, mode, stream: None }, length, begins)
    }

    /// As everybody.
    pub fn best_effort(volume: &str, mode: Mode, length: Bytes, begins: Instant) -> Self {
        let way = match mode {
            Mode::Read => Way::Ahead { asked: 0, come: BTreeSet::new() },
            Mode::Write | Mode::Update => Way::Behind { room: None },
        };
        Self::new(volume, way, length, begins)
    }

    /// What it sees.
    pub fn seen(&self) -> Shared {
        self.seen.clone()
    }

    /// The next operation is due.
    fn sleep(&mut self, context: &mut Context<'_, Metadata>) {
        if let Way::Stream { stream: Some(stream), .. } = self.way
            && let Some(status) = context.node.stream(stream)
        {
            self.seen.borrow_mut().underruns = status.account.underruns;
        }
        if self.at >= self.length {
            self.seen.borrow_mut().ended = Some(context.now);
            if let Way::Stream { stream: Some(stream), .. } = self.way {
                context.ask(CLOSE, Op::StreamClose { stream });
            }
            return;
        }
        context.alarm_at(self.due + self.random.span(TICK));
    }

    /// Goes on with the operation as far as that is possible without an answer.
    fn go_on(&mut self, context: &mut Context<'_, Metadata>) {
        while !self.left.is_zero() {
            let at = self.at + (self.piece - self.left);
            let piece = at / CHUNK;
            let rest = (CHUNK * (piece + 1) - at).min(self.left);
            match &mut self.way {
                Way::Stream { mode, stream, .. } => {
                    let (stream, len_max) = (stream.expect("open"), self.left);
                    let op = match mode {
                        Mode::Read => Op::StreamRead { stream, len_max },
                        Mode::Write | Mode::Update => Op::StreamRoom { stream, len_max },
                    };
                    return context.ask(MOVE, op);
                }
                Way::Ahead { asked, come } => {
                    while *asked <= piece + 1 {
                        let offset = CHUNK * *asked;
                        let op = Op::Read {
                            volume: self.volume.clone(),
                            offset,
                            len: CHUNK,
                            priority: None,
                        };
                        context.ask(PIECES + *asked, op);
                        *asked += 1;
                    }
                    if !come.contains(&piece) {
                        return;
                    }
                    come.retain(|&one| one >= piece);
                }
                Way::Behind { room } => {
                    let Some(span) = *room else {
                        return context.ask(ROOM, Op::Room { len: CHUNK, target: None });
                    };
                    if at + rest == CHUNK * (piece + 1) {
                        *room = None;
                        let (volume, offset) = (self.volume.clone(), CHUNK * piece);
                        context.ask(
                            PIECES + piece,
                            Op::Write {
                                volume,
                                range: WriteRange::new(offset, span.len),
                                span,
                                priority: None,
                            },
                        );
                    }
                }
            }
            self.left -= rest;
        }
        self.done(context);
    }

    /// An operation has ended.
    fn done(&mut self, context: &mut Context<'_, Metadata>) {
        let now = context.now;
        self.at += self.piece;
        let mut seen = self.seen.borrow_mut();
        match seen.began {
            // The first one waits for the window to be filled, or for the first piece.
            None => {
                seen.began = Some(now);
                self.due = now;
            }
            Some(_) => {
                seen.times.push(now.saturating_since(self.due));
                seen.waits.push((self.asked, now - self.asked));
                seen.wait_max = seen.wait_max.max(now - self.asked);
                seen.bytes += self.piece;
                seen.last = Some(now);
            }
        }
        drop(seen);
        self.due += self.rate.time_for(self.piece);
        if self.forgives {
            self.due = self.due.max(now);
        }
        self.sleep(context);
    }

    fn moved(&mut self, context: &mut Context<'_, Metadata>, len: Bytes) {
        let Way::Stream { mode, stream: Some(stream), .. } = self.way else {
            unreachable!("only streams move")
        };
        self.left -= len;
        context.ask(
            GIVE,
            match mode {
                Mode::Read => Op::StreamAdvance { stream, len },
                Mode::Write | Mode::Update => Op::StreamWrite { stream, len },
            },
        );
    }
}

impl Program<Metadata> for Rwrt {
    /// A contract is asked for at once, whenever its work begins.
    fn start(&mut self, context: &mut Context<'_, Metadata>) {
        if let Way::Stream { contract, mode, .. } = self.way {
            let (volume, start) = (self.volume.clone(), Bytes::ZERO);
            return context.ask(OPEN, Op::StreamOpen { volume, mode, contract, start });
        }
        context.alarm_at(self.begins);
    }

    fn alarm(&mut self, context: &mut Context<'_, Metadata>) {
        // Else it tries again what was beyond the end of a file that grows.
        if self.left.is_zero() {
            self.asked = context.now;
            self.left = self.piece;
        }
        self.go_on(context);
    }

    fn answer(
        &mut self,
        context: &mut Context<'_, Metadata>,
        tag: u64,
        result: Result<Reply, Error>,
    ) {
        match (tag, result) {
            (OPEN, Ok(Reply::Stream { stream: id, .. })) => {
                let Way::Stream { stream, .. } = &mut self.way else { unreachable!("opened") };
                *stream = Some(id);
                context.alarm_at(self.begins);
            }
            (MOVE, Ok(Reply::Data { bytes: span, .. } | Reply::Room { room: span })) => {
                self.moved(context, span.len);
            }
            (GIVE, Ok(_)) => self.go_on(context),
            (ROOM, Ok(Reply::Room { room: span })) => {
                let Way::Behind { room } = &mut self.way else { unreachable!("asked for") };
                *room = Some(span);
                self.go_on(context);
            }
            (tag, Ok(Reply::Data { bytes: span, .. })) if tag >= PIECES => {
                let Way::Ahead { come, .. } = &mut self.way else { unreachable!("asked for") };
                come.insert(tag - PIECES);
                context.ask(FREE, Op::Release { span });
                if !self.left.is_zero() {
                    self.go_on(context);
                }
            }
            // What came too late is left out of the stream.
            (MOVE, Ok(Reply::Gap { len, .. })) => {
                self.seen.borrow_mut().lost += len;
                self.left = self.left.saturating_sub(len);
                self.go_on(context);
            }
            (FREE | CLOSE, Ok(_)) => {}
            (tag, Ok(Reply::Done)) if tag >= PIECES => {}
            (tag, Err(Error::BeyondEnd { .. })) if tag >= PIECES => {
                let Way::Ahead { asked, .. } = &mut self.way else { unreachable!("asked for") };
                *asked = (*asked).min(tag - PIECES);
                let wanted = (self.at + (self.piece - self.left)) / CHUNK;
                if !self.left.is_zero() && wanted == tag - PIECES {
                    context.alarm_at(context.now + AGAIN);
                }
            }
            (_, Err(error)) => self.seen.borrow_mut().error = Some(error),
            (tag, Ok(other)) => unreachable!("{tag} was answered with {other:?}"),
        }
    }
}

/// Reads or overwrites a file over and over as fast as it is let.
pub(crate) struct Greedy {
    volume: String,
    size: Bytes,
    mode: Mode,
    /// Pieces under way at once.
    most: u64,
    begins: Instant,
    next: u64,
    asked: Vec<Instant>,
    seen: Shared,
}

impl Greedy {
    pub fn new(volume: &str, size: Bytes, mode: Mode, begins: Instant) -> Self {
        // A reader has what it reads and what is read ahead; a writer all that fits.
        let most = if mode == Mode::Read { 2 } else { 96 };
        let asked = vec![Instant::EPOCH; most as usize];
        let (volume, seen) = (volume.into(), Shared::default());
        Self { volume, size, mode, most, begins, next: 0, asked, seen }
    }

    pub fn seen(&self) -> Shared {
        self.seen.clone()
    }

    /// Asks for the next piece in `slot`; a writer for memory first.
    fn ask(&mut self, context: &mut Context<'_, Metadata>, slot: u64) {
        self.asked[slot as usize] = context.now;
        match self.mode {
            Mode::Read => {
                let op = Op::Read {
                    volume: self.volume.clone(),
                    offset: self.place(),
                    len: CHUNK,
                    priority: None,
                };
                context.ask(slot, op);
            }
            Mode::Write | Mode::Update => context.ask(slot, Op::Room { len: CHUNK, target: None }),
        }
    }

    fn place(&mut self) -> Bytes {
        let piece = self.next % (self.size / CHUNK);
        self.next += 1;
        CHUNK * piece
    }

    fn took(&mut self, now: Instant, slot: u64) {
        let took = now - self.asked[slot as usize];
        let mut seen = self.seen.borrow_mut();
        seen.times.push(took);
        seen.wait_max = seen.wait_max.max(took);
    }
}

impl Program<Metadata> for Greedy {
    fn start(&mut self, context: &mut Context<'_, Metadata>) {
        context.alarm_at(self.begins);
    }

    fn alarm(&mut self, context: &mut Context<'_, Metadata>) {
        self.seen.borrow_mut().began = Some(context.now);
        for slot in 0..self.most {
            self.ask(context, slot);
        }
    }

    fn answer(
        &mut self,
        context: &mut Context<'_, Metadata>,
        tag: u64,
        result: Result<Reply, Error>,
    ) {
        let slot = tag % self.most;
        match result {
            Ok(Reply::Data { bytes: span, .. }) => {
                self.took(context.now, slot);
                self.seen.borrow_mut().bytes += CHUNK;
                context.ask(self.most + slot, Op::Release { span });
                self.ask(context, slot);
            }
            Ok(Reply::Room { room: span }) => {
                self.took(context.now, slot);
                let (volume, offset) = (self.volume.clone(), self.place());
                context.ask(
                    2 * self.most + slot,
                    Op::Write {
                        volume,
                        range: WriteRange::new(offset, span.len),
                        span,
                        priority: None,
                    },
                );
            }
            // Written: the next one. Memory given back: nothing.
            Ok(_) if tag >= 2 * self.most => {
                self.seen.borrow_mut().bytes += CHUNK;
                self.ask(context, slot);
            }
            Ok(_) => {}
            Err(error) => self.seen.borrow_mut().error = Some(error),
        }
    }
}

/// Where cumulative plots begin, in ms.
pub(crate) const FROM: f64 = 0.01;

/// For a cumulative plot: a time in ms, and how many of a hundred took longer.
pub(crate) fn beyond(mut times: Vec<Duration>) -> Vec<(f64, f64)> {
    times.sort_unstable();
    let all = times.len() as f64;
    let mut points: Vec<(f64, f64)> = Vec::new();
    for (at, time) in times.iter().enumerate() {
        let (x, y) = (time.as_millis_f64(), 100.0 * (all - at as f64 - 1.0) / all);
        let near = points.last().is_some_and(|last| x < last.0 * 1.01 && y > last.1 * 0.98);
        if x < FROM {
            points = vec![(FROM, y)];
        } else if !near {
            points.push((x, y.max(0.01)));
        }
    }
    points
}
