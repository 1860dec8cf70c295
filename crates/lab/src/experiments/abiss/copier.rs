//! The load of the slides' plots: a program that copies a file over and over.

use crate::experiments::whole::programs::{CHUNK, Seen, Shared};
use node::{Error, Op, Reply, WriteRange};
use sim::{Context, Metadata, Program};
use units::{Bytes, Instant};

/// So much of what was read waits to be written, at the most: then reading waits.
const BEHIND_MAX: u64 = Bytes::mib(12).get() / CHUNK.get();
/// Pieces that are read at once: the one that the program wants, and one that is read ahead.
const AHEAD: u64 = 2;

const FREE: u64 = 0;
const ROOM: u64 = 1;
const WRITTEN: u64 = 2;
/// Reads have tags from here on.
const READ: u64 = 16;

/// Copies 128 KiB at a time from the first file to the second, as fast as it is let: what it
/// has read is written behind it, as by the kernel.
pub(super) struct Copier {
    files: [String; 2],
    size: Bytes,
    begins: Instant,
    /// Pieces asked for, and pieces copied into memory that is to be written.
    asked: u64,
    copied: u64,
    /// Pieces that are read or not yet on the disk.
    reading: u64,
    behind: u64,
    seen: Shared,
}

impl Copier {
    pub fn new(files: [&str; 2], size: Bytes, begins: Instant) -> Self {
        let (files, seen) = (files.map(str::to_owned), Shared::default());
        Self { files, size, begins, asked: 0, copied: 0, reading: 0, behind: 0, seen }
    }

    /// What it sees: the times of its reads, and the bytes that it has read.
    pub fn seen(&self) -> Shared {
        self.seen.clone()
    }

    fn place(&self, piece: u64) -> Bytes {
        CHUNK * (piece % (self.size / CHUNK))
    }

    fn read_on(&mut self, context: &mut Context<'_, Metadata>) {
        while self.reading < AHEAD && self.reading + self.behind < BEHIND_MAX {
            let (volume, offset) = (self.files[0].clone(), self.place(self.asked));
            context.ask(READ + self.asked, Op::Read { volume, offset, len: CHUNK, priority: None });
            self.asked += 1;
            self.reading += 1;
        }
    }
}

impl Program<Metadata> for Copier {
    fn start(&mut self, context: &mut Context<'_, Metadata>) {
        context.alarm_at(self.begins);
    }

    fn alarm(&mut self, context: &mut Context<'_, Metadata>) {
        self.seen.borrow_mut().began = Some(context.now);
        self.read_on(context);
    }

    fn answer(
        &mut self,
        context: &mut Context<'_, Metadata>,
        tag: u64,
        result: Result<Reply, Error>,
    ) {
        match (tag, result) {
            (_, Ok(Reply::Data { bytes: span, .. })) => {
                self.reading -= 1;
                self.behind += 1;
                let Seen { bytes, last, .. } = &mut *self.seen.borrow_mut();
                (*bytes, *last) = (*bytes + CHUNK, Some(context.now));
                context.ask(FREE, Op::Release { span });
                context.ask(ROOM, Op::Room { len: CHUNK, target: None });
            }
            (_, Ok(Reply::Room { room: span })) => {
                let (volume, offset) = (self.files[1].clone(), self.place(self.copied));
                let range = WriteRange::new(offset, span.len);
                context.ask(WRITTEN, Op::Write { volume, range, span, priority: None });
                self.copied += 1;
            }
            (WRITTEN, Ok(_)) => self.behind -= 1,
            (_, Ok(_)) => {}
            (_, Err(error)) => self.seen.borrow_mut().error = Some(error),
        }
        self.read_on(context);
    }
}
