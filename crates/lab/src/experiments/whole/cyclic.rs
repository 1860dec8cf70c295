//! A program that reads in each cycle what it uses in it: all at once at the cycle's begin, as the
//! user-level scheduler of the UCSB scheduler does for its streams (section III.B), or one piece
//! after the other, as its program of figure 4.

use super::programs::Shared;
use node::{Error, Op, Priority, Reply, Service};
use sim::{Context, Metadata, Program};
use std::collections::BTreeMap;
use units::{Bytes, Duration, Instant, Rate};

/// What it reads at a time: on the disk of the paper a node cuts what is longer, so as not to
/// hold others up, and a contract for longer operations would not cover the cuts.
pub(crate) const PIECE: Bytes = Bytes::kib(512);

const SERVICE: u64 = 0;
const FREE: u64 = 1;
/// Reads have tags from here on.
const READ: u64 = 16;

/// How its reads are served.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Served {
    /// Under a contract for its rate in each period.
    UnderContract {
        /// At least a cycle: what was not asked for in one period is lost.
        period: Duration,
    },
    /// As best effort of this priority.
    BestEffort(Priority),
}

/// How it reads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reads {
    pub rate: Rate,
    pub cycle: Duration,
    pub served: Served,
    /// Pieces under way at once, at the most.
    pub at_once: usize,
}

/// Reads a file over and over, in each cycle what it uses in it.
pub(crate) struct Cyclic {
    volume: String,
    size: Bytes,
    reads: Reads,
    begins: Instant,
    /// Cycles that have begun, pieces that are used in them, and those asked for.
    cycles: u64,
    used: u64,
    asked: u64,
    waiting: BTreeMap<u64, Instant>,
    seen: Shared,
}

impl Cyclic {
    pub fn new(volume: &str, size: Bytes, reads: Reads, begins: Instant) -> Self {
        let (volume, seen) = (volume.into(), Shared::default());
        let (cycles, used, asked, waiting) = (0, 0, 0, BTreeMap::new());
        Self { volume, size, reads, begins, cycles, used, asked, waiting, seen }
    }

    /// Of each read: when it was asked for, and how long after that it was answered.
    pub fn seen(&self) -> Shared {
        self.seen.clone()
    }

    /// Asks for what is used in the cycles that have begun, in whole pieces.
    fn ask(&mut self, context: &mut Context<'_, Metadata>) {
        while self.asked < self.used && self.waiting.len() < self.reads.at_once {
            let piece = self.asked;
            let offset = PIECE * (piece % (self.size / PIECE));
            let priority = match self.reads.served {
                Served::UnderContract { .. } => None,
                Served::BestEffort(priority) => Some(priority),
            };
            let volume = self.volume.clone();
            self.waiting.insert(piece, context.now);
            context.ask(READ + piece, Op::Read { volume, offset, len: PIECE, priority });
            self.asked += 1;
        }
    }
}

impl Program<Metadata> for Cyclic {
    fn start(&mut self, context: &mut Context<'_, Metadata>) {
        if let Served::UnderContract { period } = self.reads.served {
            let service = Service::Rate { rate: self.reads.rate, block: PIECE, period };
            let name = self.volume.clone();
            return context.ask(SERVICE, Op::VolumeService { name, service });
        }
        context.alarm_at(self.begins);
    }

    fn alarm(&mut self, context: &mut Context<'_, Metadata>) {
        self.seen.borrow_mut().began.get_or_insert(context.now);
        let Reads { rate, cycle, .. } = self.reads;
        self.cycles += 1;
        self.used = rate.bytes_in(cycle * self.cycles).div_ceil(PIECE);
        self.ask(context);
        context.alarm_at(self.begins + cycle * self.cycles);
    }

    fn answer(
        &mut self,
        context: &mut Context<'_, Metadata>,
        tag: u64,
        result: Result<Reply, Error>,
    ) {
        match (tag, result) {
            (SERVICE, Ok(_)) => context.alarm_at(self.begins),
            (_, Ok(Reply::Data { bytes: span, .. })) => {
                let since = self.waiting.remove(&(tag - READ)).expect("it was asked for");
                let wait = context.now - since;
                let mut seen = self.seen.borrow_mut();
                seen.waits.push((since, wait));
                seen.wait_max = wait.max(seen.wait_max);
                (seen.bytes, seen.last) = (seen.bytes + PIECE, Some(context.now));
                drop(seen);
                context.ask(FREE, Op::Release { span });
                self.ask(context);
            }
            (_, Ok(_)) => {}
            (_, Err(error)) => self.seen.borrow_mut().error = Some(error),
        }
    }
}
