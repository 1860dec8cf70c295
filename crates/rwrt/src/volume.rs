//! Volumes of a daemon: under contract, and as best effort.
//!
//! A program without a contract gets what an operating system gives it: a reader is read
//! ahead for, a writer's bytes gather in memory and go to the disk behind it, in pieces of
//! [`PIECE`]. Best effort moves whole blocks of 4 KiB; what is left of one is padded at the
//! end.

use crate::error::Error;
use crate::storage::{Account, Input, Output, Written};
use client::{BestEffort, Peek, Reader, Tag, Writer};
use std::collections::BTreeMap;
use std::sync::Arc;
use units::Bytes;

/// What is read ahead and written behind at a time: as Linux does.
pub const PIECE: Bytes = Bytes::kib(128);
/// Pieces that a reader as best effort has asked for, that which it is in included.
const AHEAD: u64 = 2;
/// Pieces that a writer as best effort has under way: all that the protocol takes.
const BEHIND: usize = 64;
const BLOCK: Bytes = Bytes::kib(4);

/// A reader under contract: its bytes are copied out of the window, which is the read of
/// figure 13, and then let go of, which moves the playout point.
pub struct StreamInput {
    reader: Reader,
    /// Copied, and not let go of yet.
    copied: usize,
    /// Of a declared gap, what has not come up yet; it reads as zeros.
    gap: usize,
}

impl StreamInput {
    pub fn new(reader: Reader) -> Self {
        Self { reader, copied: 0, gap: 0 }
    }

    fn let_go(&mut self) {
        if self.copied > 0 {
            self.reader.advance(self.copied);
            self.copied = 0;
        }
    }
}

impl Input for StreamInput {
    fn read(&mut self, into: &mut [u8]) -> Result<usize, Error> {
        let mut done = 0;
        while done < into.len() {
            let rest = &mut into[done..];
            if self.gap > 0 {
                let len = self.gap.min(rest.len());
                rest[..len].fill(0);
                (self.gap, done) = (self.gap - len, done + len);
                continue;
            }
            // What lies behind the end of a piece is shown once the piece is let go of.
            self.let_go();
            match self.reader.peek(rest.len())? {
                Peek::Data(bytes) => {
                    rest[..bytes.len()].copy_from_slice(bytes);
                    self.copied = bytes.len();
                    done += bytes.len();
                }
                Peek::Gap { len, .. } => self.gap = len.as_usize(),
                Peek::End => break,
            }
        }
        Ok(done)
    }

    fn move_playout(&mut self) -> Result<(), Error> {
        self.let_go();
        Ok(())
    }

    fn close(mut self: Box<Self>) -> Result<Option<Account>, Error> {
        self.let_go();
        let account = Account::of(&self.reader.stats()?, self.reader.is_shared());
        self.reader.close()?;
        Ok(Some(account))
    }
}

/// A writer under contract: its bytes are copied into the window, and then handed over,
/// which moves the playout point.
pub struct StreamOutput {
    writer: Writer,
    /// Copied, and not handed over yet.
    copied: usize,
}

impl StreamOutput {
    pub fn new(writer: Writer) -> Self {
        Self { writer, copied: 0 }
    }

    fn hand_over(&mut self) {
        if self.copied > 0 {
            self.writer.filled(self.copied);
            self.copied = 0;
        }
    }
}

impl Output for StreamOutput {
    fn write(&mut self, mut from: &[u8]) -> Result<(), Error> {
        while !from.is_empty() {
            self.hand_over();
            let room = self.writer.room(from.len())?;
            let (now, rest) = from.split_at(room.len().min(from.len()));
            room[..now.len()].copy_from_slice(now);
            (self.copied, from) = (now.len(), rest);
        }
        Ok(())
    }

    fn move_playout(&mut self) -> Result<(), Error> {
        self.hand_over();
        Ok(())
    }

    fn close(mut self: Box<Self>) -> Result<Option<Account>, Error> {
        self.hand_over();
        self.writer.sync()?; // so that the account is complete
        let account = Account::of(&self.writer.stats()?, self.writer.is_shared());
        self.writer.close()?;
        Ok(Some(account))
    }
}

/// Which part of a volume is used, and how.
#[derive(Clone, Debug)]
pub struct Part {
    /// From the start to here.
    pub end: Bytes,
    /// Whether it begins again there; the end is then a multiple of [`PIECE`].
    pub looping: bool,
    /// Of a volume that is written and read at a time: how far it is.
    pub written: Option<Arc<Written>>,
}

impl Part {
    /// Where the piece with this number, counted through all rounds, lies.
    fn place(&self, piece: u64) -> Bytes {
        match self.looping {
            true => PIECE * (piece % (self.end / PIECE)),
            false => PIECE * piece,
        }
    }
}

/// A reader as best effort.
pub struct Ahead {
    volume: BestEffort,
    part: Part,
    at: Bytes,
    /// The first piece that is not asked for.
    next: u64,
    asked: BTreeMap<Tag, u64>,
    come: BTreeMap<u64, Vec<u8>>,
}

impl Ahead {
    pub fn new(volume: BestEffort, part: Part) -> Self {
        let (asked, come) = (BTreeMap::new(), BTreeMap::new());
        Self { volume, part, at: Bytes::ZERO, next: 0, asked, come }
    }

    /// Asks for what comes next, as far as it is there.
    fn ask(&mut self) -> Result<(), Error> {
        let wanted = self.at / PIECE + AHEAD;
        while self.next < wanted {
            let end = PIECE * (self.next + 1);
            if !self.part.looping && PIECE * self.next >= self.part.end {
                return Ok(());
            }
            if let Some(written) = &self.part.written {
                let (upto, all) = written.now();
                if end.min(self.part.end) > upto && !all {
                    return Ok(());
                }
            }
            let offset = self.part.place(self.next);
            let len = PIECE.min(self.volume.size() - offset);
            self.asked.insert(self.volume.begin_read(offset, len)?, self.next);
            self.next += 1;
        }
        Ok(())
    }

    /// Has the piece that the program is in.
    fn fetch(&mut self) -> Result<&[u8], Error> {
        let piece = self.at / PIECE;
        self.come.retain(|&one, _| one >= piece);
        self.ask()?;
        if self.next <= piece {
            let end = PIECE * (piece + 1);
            let written = self.part.written.as_ref().expect("all else was asked for");
            written.wait(end.min(self.part.end));
            self.ask()?;
        }
        while !self.come.contains_key(&piece) {
            let completion = self.volume.take()?;
            let which = self.asked.remove(&completion.tag).expect("what was asked for");
            self.come.insert(which, completion.result?);
        }
        Ok(&self.come[&piece])
    }
}

impl Input for Ahead {
    fn read(&mut self, into: &mut [u8]) -> Result<usize, Error> {
        let mut done = 0;
        while done < into.len() {
            let left = match self.part.looping {
                true => Bytes::MAX,
                false => self.part.end.saturating_sub(self.at),
            };
            let want = (into.len() - done).min(usize::try_from(left.get()).unwrap_or(usize::MAX));
            if want == 0 {
                break;
            }
            let from = (self.at % PIECE).as_usize();
            let bytes = self.fetch()?;
            let len = want.min(bytes.len() - from);
            into[done..][..len].copy_from_slice(&bytes[from..][..len]);
            self.at += Bytes::new(len as u64);
            done += len;
        }
        Ok(done)
    }

    fn close(self: Box<Self>) -> Result<Option<Account>, Error> {
        Ok(None)
    }
}

/// A writer as best effort.
pub struct Behind {
    volume: BestEffort,
    part: Part,
    /// The piece that is being gathered, and what there is of it.
    piece: u64,
    gathered: Vec<u8>,
    under_way: BTreeMap<Tag, u64>,
}

impl Behind {
    pub fn new(volume: BestEffort, part: Part) -> Self {
        let gathered = Vec::with_capacity(PIECE.as_usize());
        Self { volume, part, piece: 0, gathered, under_way: BTreeMap::new() }
    }

    fn begin(&mut self) -> Result<(), Error> {
        while self.under_way.len() >= BEHIND {
            self.take()?;
        }
        let tag = self.volume.begin_write(self.part.place(self.piece), &self.gathered)?;
        self.under_way.insert(tag, self.piece);
        self.piece += 1;
        self.gathered.clear();
        Ok(())
    }

    fn take(&mut self) -> Result<(), Error> {
        let completion = self.volume.take()?;
        completion.result?;
        self.under_way.remove(&completion.tag);
        if let Some(written) = &self.part.written {
            let first = self.under_way.values().min().copied();
            written.upto(PIECE * first.unwrap_or(self.piece));
        }
        Ok(())
    }
}

impl Output for Behind {
    fn write(&mut self, mut from: &[u8]) -> Result<(), Error> {
        while !from.is_empty() {
            let room = PIECE.as_usize() - self.gathered.len();
            let (now, rest) = from.split_at(room.min(from.len()));
            self.gathered.extend_from_slice(now);
            if self.gathered.len() == PIECE.as_usize() {
                self.begin()?;
            }
            from = rest;
        }
        Ok(())
    }

    fn close(mut self: Box<Self>) -> Result<Option<Account>, Error> {
        if !self.gathered.is_empty() {
            let whole = Bytes::new(self.gathered.len() as u64).round_up(BLOCK);
            self.gathered.resize(whole.as_usize(), 0);
            self.begin()?;
        }
        while !self.under_way.is_empty() {
            self.take()?;
        }
        self.volume.sync()?;
        if let Some(written) = &self.part.written {
            written.end();
        }
        Ok(None)
    }
}
