//! A recorder whose window it shares with the node: what `programs.rs` has, filled ahead
//! and told by `WindowMoved`.

use crate::programs::{Shared, Tally, pattern};
use crate::world::{Context, Program};
use node::{Contract, Error, Mode, Op, Region, Reply, Span, StreamId};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use units::{Bytes, Duration, Instant};

const OPEN: u64 = 0;
const NEXT: u64 = 1;
const MOVED: u64 = 2;
const SYNC: u64 = 3;
const CLOSE: u64 = 4;
const DURABLE: u64 = 5;

/// Which calls told of an error, in the order in which they did.
pub type Told = Rc<RefCell<Vec<(&'static str, Error)>>>;

/// An isochronous writer of a known pattern into a shared window.
pub struct WindowRecorder {
    volume: String,
    seed: u64,
    contract: Contract,
    region: Region,
    piece: Bytes,
    length: Bytes,
    sync_every: Bytes,
    stream: Option<StreamId>,
    /// Rooms that were told and are not full.
    rooms: VecDeque<Span>,
    began: Instant,
    moved: Bytes,
    tally: Shared,
    told: Told,
    closing: bool,
}

impl WindowRecorder {
    /// Writes `length` bytes of the pattern of `seed`, a `piece` at a time, and asks for a
    /// sync after each `sync_every` bytes.
    pub fn new(
        (volume, seed): (&str, u64),
        contract: Contract,
        region: Region,
        [piece, length, sync_every]: [Bytes; 3],
    ) -> Self {
        Self {
            volume: volume.into(),
            seed,
            contract,
            region,
            piece,
            length,
            sync_every,
            stream: None,
            rooms: VecDeque::new(),
            began: Instant::EPOCH,
            moved: Bytes::ZERO,
            tally: Rc::new(RefCell::new(Tally::default())),
            told: Rc::default(),
            closing: false,
        }
    }

    /// What it sees.
    pub fn tally(&self) -> Shared {
        self.tally.clone()
    }

    /// Where errors came.
    pub fn told(&self) -> Told {
        self.told.clone()
    }

    fn stream(&self) -> StreamId {
        self.stream.expect("open")
    }

    fn listen(&self, context: &mut Context<'_>) {
        let beyond = self.tally.borrow().durable;
        context.ask(DURABLE, Op::StreamDurable { stream: self.stream(), beyond });
    }

    /// Fills a piece, as far as there is room.
    fn fill(&mut self, context: &mut Context<'_>) {
        let mut left = self.piece.min(self.length - self.moved);
        let before = self.moved;
        while let Some(room) = self.rooms.front_mut().filter(|_| !left.is_zero()) {
            let len = left.min(room.len);
            let part = Span { offset: room.offset, len };
            pattern(self.seed, self.moved, context.arena.bytes(&part));
            (room.offset, room.len) = (room.offset + len, room.len - len);
            if room.len.is_zero() {
                self.rooms.pop_front();
            }
            self.moved += len;
            left -= len;
        }
        let len = self.moved - before;
        if !len.is_zero() {
            self.tally.borrow_mut().bytes += len;
            context.ask(MOVED, Op::WindowMoved { stream: self.stream(), len });
        }
        if before / self.sync_every != self.moved / self.sync_every {
            context.ask(SYNC, Op::StreamSync { stream: self.stream() });
        }
    }

    fn close(&mut self, context: &mut Context<'_>) {
        if !self.closing {
            self.closing = true;
            context.ask(CLOSE, Op::StreamClose { stream: self.stream() });
        }
    }

    fn durable(&mut self, upto: Bytes) {
        let mut tally = self.tally.borrow_mut();
        tally.durable = tally.durable.max(upto);
    }
}

impl Program for WindowRecorder {
    fn start(&mut self, context: &mut Context<'_>) {
        let (volume, mode, start) = (self.volume.clone(), Mode::Write, Bytes::ZERO);
        let (contract, region) = (self.contract, self.region);
        context.ask(OPEN, Op::WindowOpen { volume, mode, contract, start, region });
    }

    fn alarm(&mut self, context: &mut Context<'_>) {
        if self.closing || self.tally.borrow().error.is_some() {
            return;
        }
        if self.moved >= self.length {
            return self.close(context);
        }
        self.fill(context);
        let due = self.began + self.contract.rate.time_for(self.moved);
        context.alarm_at(due.max(context.now + Duration::from_millis(1)));
    }

    fn answer(&mut self, context: &mut Context<'_>, tag: u64, result: Result<Reply, Error>) {
        match (tag, result) {
            (OPEN, Ok(Reply::Stream { stream, .. })) => {
                self.stream = Some(stream);
                self.tally.borrow_mut().stream = Some(stream);
                self.began = context.now;
                self.listen(context);
                context.ask(NEXT, Op::WindowNext { stream });
                context.alarm_at(context.now);
            }
            (NEXT, Ok(Reply::Room { room: span })) => {
                self.rooms.push_back(span);
                context.ask(NEXT, Op::WindowNext { stream: self.stream() });
            }
            (DURABLE, Ok(Reply::Durable { upto })) => {
                self.durable(upto);
                if upto < self.length && !self.closing {
                    self.listen(context);
                }
            }
            (SYNC, Ok(Reply::Durable { upto })) => self.durable(upto),
            (CLOSE, Ok(Reply::Durable { upto })) => {
                self.durable(upto);
                self.tally.borrow_mut().done = true;
            }
            (MOVED, Ok(_)) => {}
            (NEXT, Err(Error::NoSuchStream { .. })) if self.closing => {}
            (NEXT, Err(Error::VolumeFull { size })) => {
                self.told.borrow_mut().push(("WindowNext", Error::VolumeFull { size }));
            }
            (tag, Err(error)) => {
                let call = [
                    "WindowOpen",
                    "WindowNext",
                    "WindowMoved",
                    "StreamSync",
                    "StreamClose",
                    "StreamDurable",
                ][tag as usize];
                self.told.borrow_mut().push((call, error.clone()));
                self.tally.borrow_mut().error.get_or_insert(error);
                if self.stream.is_some() && tag != CLOSE {
                    self.close(context);
                }
            }
            (tag, Ok(other)) => unreachable!("{tag} was answered with {other:?}"),
        }
    }
}
