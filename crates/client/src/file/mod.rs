//! One handle with a place in a volume: under contract or as best effort, and the one
//! may become the other while it is open.
//!
//! Invariants: without a contract there is no stream; under one, a reader's stream
//! stands at the cursor whenever bytes come from it, and a writer's takes every byte
//! that goes on where the last one ended. A refused contract changes nothing. What was
//! written under contract or as best effort is on the medium after `sync`.

mod contract;
mod input;
mod options;
mod output;
mod random;
mod ranges;
mod seen;
mod target;

pub use contract::Contract;
pub use options::OpenOptions;
pub use ranges::{ReadRange, are_apart};
pub use target::Target;

use crate::forks::Maker;
use crate::{Client, Error, InTime, Peek, Piece, Result, Sought, Updater};
use input::Input;
use output::Output;
use random::Random;
use seen::Seen;
use std::io::{self, Read, Seek, SeekFrom, Write};
use units::{Bytes, Duration};
use wire::control::{Mode, Priority};
use wire::{Code, Problem};

/// What a best-effort peek takes at once at the most.
const PEEK_MAX: usize = wire::frame::BODY_MAX;

/// An open volume with a cursor; or a file outside the pool ([`Target::Path`]), which is
/// read only, and whose contract is the weaker one of [`Client::file_reader`].
///
/// ```no_run
/// use client::units::{Bytes, Rate};
/// use client::{Contract, File};
/// use std::io::{Read, Write};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let contract = Contract::at(Rate::per_second(1_000_000));
/// let mut out = File::options().write(true).create(Bytes::GIB).contract(contract).open("video")?;
/// out.write_all(b"on its way")?;
/// out.close()?; // it is on the medium
/// let mut back = Vec::new();
/// File::options().contract(contract).open("video")?.read_to_end(&mut back)?;
/// # Ok(()) }
/// ```
///
/// Every call takes one piece, so read and write in large ones, or put a
/// [`std::io::BufReader`] or [`std::io::BufWriter`] around it: as best effort, a read
/// of one byte is a read of 4 KiB, and a write of one byte reads and writes 4 KiB.
///
/// The child of a fork can do nothing with it, and what it drops or closes is its parent's still.
#[derive(Debug)]
pub struct File {
    maker: Maker,
    client: Client,
    volume: String,
    access: Access,
    /// The volume's size when it was opened, or last cut.
    size: u64,
    /// End of the recorded data as last heard of.
    recorded: u64,
    cursor: u64,
    contract: Option<Contract>,
    stream: Option<Stream>,
    random: Random,
    /// Best effort: bytes seen by a peek.
    seen: Seen,
    run: Run,
    /// Under a contract for reading: how much is held behind the cursor.
    keep: Bytes,
    /// Where the contract's stream stood when it was ended for a patch elsewhere.
    left: Option<u64>,
    /// How large a stream that writes may make the volume.
    grow_to: Option<Bytes>,
}

/// What a handle may do.
#[derive(Clone, Copy, Debug, Default)]
struct Access {
    read: bool,
    write: bool,
    /// A contract is for both.
    update: bool,
}

#[derive(Debug)]
enum Stream {
    In(Input),
    Out(Output),
    Both(Updater),
}

/// Writes one behind the other while the contract's stream is not where they are.
#[derive(Clone, Copy, Debug, Default)]
struct Run {
    end: u64,
    len: u64,
}

impl File {
    fn new(client: Client, volume: String, random: Random, access: Access) -> Self {
        Self {
            maker: Maker::this(),
            client,
            volume,
            access,
            size: 0,
            recorded: 0,
            cursor: 0,
            contract: None,
            stream: None,
            random,
            seen: Seen::default(),
            run: Run::default(),
            keep: Bytes::ZERO,
            left: None,
            grow_to: None,
        }
    }

    /// Opens a volume for reading, as best effort.
    pub fn open(target: &str) -> Result<Self> {
        Self::options().open(target)
    }

    /// Says how to open.
    pub fn options() -> OpenOptions {
        OpenOptions::new()
    }

    /// The name of the volume; of a file outside the pool, its path.
    pub fn volume(&self) -> &str {
        &self.volume
    }

    /// The place of the next byte.
    pub fn position(&self) -> Bytes {
        Bytes::new(self.cursor)
    }

    /// The space reserved, as far as this handle has heard.
    pub fn size(&self) -> Bytes {
        Bytes::new(self.size)
    }

    /// The end of the recorded data, by now.
    pub fn length(&mut self) -> Result<Bytes> {
        self.maker.check()?;
        if let Some(Stream::Out(output)) = &mut self.stream {
            output.flush()?;
        }
        if let Some(length) = self.random.plain_length() {
            self.recorded = length?;
            self.size = self.recorded;
            return Ok(Bytes::new(self.recorded));
        }
        let volume = self.client.volume(&self.volume)?;
        (self.size, self.recorded) = (volume.size_bytes.get(), volume.length_bytes.get());
        // What a window holds is recorded to this handle.
        if let Some(Stream::Out(output)) = &self.stream {
            self.recorded = self.recorded.max(output.position().unwrap_or(0));
        }
        if let Some(Stream::Both(updater)) = &self.stream {
            self.recorded = self.recorded.max(updater.length().get());
        }
        Ok(Bytes::new(self.recorded))
    }

    /// The contract that this handle has, with the block that it came to.
    pub fn contract(&self) -> Option<Contract> {
        self.contract
    }

    /// The number of the stream that carries this handle's bytes just now.
    pub fn stream(&self) -> Option<u64> {
        match &self.stream {
            Some(Stream::In(input)) => Some(input.stream()),
            Some(Stream::Out(output)) => Some(output.stream()),
            Some(Stream::Both(updater)) => Some(updater.stream()),
            None => None,
        }
    }

    /// Says that this program will do nothing with this handle for at most so long (a day counts
    /// at the most), so that its contract stays; see [`Reader::pause`](crate::Reader::pause).
    /// The pause ends when the program has moved on by about a block, or asks the daemon for
    /// something. Without a contract nothing has to be said, and this does nothing.
    pub fn pause(&mut self, span: Duration) -> Result<()> {
        self.maker.check()?;
        match &mut self.stream {
            Some(Stream::In(input)) => input.pause(span),
            Some(Stream::Out(output)) => output.pause(span),
            Some(Stream::Both(updater)) => updater.pause(span),
            None => Ok(()),
        }
    }

    /// Under a contract for reading on a volume, what the daemon said when it took it, or of the
    /// last jump since, which is made when the first byte behind a [`Seek::seek`] is read: how
    /// soon the first bytes are there, and from when on the contract holds in full.
    pub fn sought(&self) -> Option<Sought> {
        match &self.stream {
            Some(Stream::In(input)) => input.sought(),
            _ => None,
        }
    }

    /// Takes a contract, another one, or none; goes on at the same place. Refused,
    /// nothing changes. Another contract comes in the blocks of the one before, unless
    /// it names a block: then that must be the same. Dropping a writer's contract puts
    /// what was written on the medium.
    pub fn set_contract(&mut self, contract: Option<Contract>) -> Result<()> {
        self.maker.check()?;
        self.seen.forget();
        let Some(mut new) = contract else {
            self.contract = None;
            return self.end_stream();
        };
        let mode = self.direction(&new)?;
        let before = self.contract.map(|old| Ok::<_, Error>((old, self.direction(&old)?)));
        match (before.transpose()?, &mut self.stream) {
            (Some((old, old_mode)), Some(stream)) if old_mode == mode => {
                if !new.names_block() {
                    new = new.block(old.terms().block_bytes);
                }
                match stream {
                    Stream::In(input) => input.set_contract(new.terms())?,
                    Stream::Out(output) => output.set_contract(new.terms())?,
                    Stream::Both(updater) => updater.set_contract(new.terms())?,
                }
            }
            (before, _) => {
                if !new.names_block() && !self.random.is_plain() {
                    let block = match before.filter(|(_, old_mode)| *old_mode == mode) {
                        Some((old, _)) => old.terms().block_bytes,
                        None => self.client.block_for(&self.volume, mode, new.rate())?,
                    };
                    new = new.block(block);
                }
                let begun = self.begin_stream(new)?;
                self.end_stream()?;
                self.stream = Some(begun);
            }
        }
        self.contract = Some(new);
        Ok(())
    }

    /// The priority that this handle's best effort states.
    pub fn priority(&self) -> Option<Priority> {
        self.random.priority()
    }

    /// What this handle reads and writes as best effort goes before or behind other best
    /// effort, as far as the volume's service and the user's quota let it; with none, as
    /// the volume's service says. A contract has its own time, whatever this says.
    ///
    /// # Errors
    /// For a file outside the pool, which is read as any program reads it.
    pub fn set_priority(&mut self, priority: Option<Priority>) -> Result<()> {
        if priority.is_some() && self.random.is_plain() {
            let what = format!("{} is a file outside the pool, without priorities", self.volume);
            return Err(problem(Code::Invalid, what, "open it without one, or under a contract"));
        }
        self.random.set_priority(priority);
        Ok(())
    }

    /// The contract that this handle has for what no stream carries.
    pub fn in_time(&self) -> Option<InTime> {
        self.random.in_time()
    }

    /// What this handle reads and writes without a contract of a rate is answered in time from
    /// now on, or, with none, is best effort again. Admission decides, and a refusal changes
    /// nothing; another contract is asked for beside the one before, which then ends. A
    /// [priority](File::set_priority) says nothing while it lasts.
    ///
    /// # Errors
    /// [`Code::Refused`], [`Code::Quota`]; and for a file outside the pool.
    pub fn set_in_time(&mut self, contract: Option<InTime>) -> Result<()> {
        if contract.is_some() && self.random.is_plain() {
            let what =
                format!("{} is a file outside the pool, without answers in time", self.volume);
            return Err(problem(Code::Invalid, what, "open it without, or under a rate"));
        }
        self.random.set_in_time(contract)
    }

    /// Which way a contract goes on this handle.
    fn direction(&self, contract: &Contract) -> Result<Mode> {
        let mode = match (self.access.read, self.access.write) {
            _ if self.access.update && contract.mode().is_none() => Mode::Update,
            (true, true) => contract.mode().unwrap_or(Mode::Write),
            (_, write) => {
                let own = if write { Mode::Write } else { Mode::Read };
                if contract.mode().is_some_and(|mode| mode != own) {
                    return Err(not_open_for("what its contract is for"));
                }
                own
            }
        };
        Ok(mode)
    }

    /// A stream at the cursor.
    fn begin_stream(&mut self, contract: Contract) -> Result<Stream> {
        let (mode, terms) = (self.direction(&contract)?, contract.terms());
        let (client, volume) = (&self.client, &self.volume);
        Ok(match mode {
            Mode::Read => {
                let mut input = match self.random.plain() {
                    Some(file) => Input::open_file(client, file, terms, self.cursor)?,
                    None => Input::open(client, volume, terms, self.cursor)?,
                };
                input.keep(self.keep)?;
                Stream::In(input)
            }
            Mode::Write => {
                let random = &mut self.random;
                let (at, limit) = (self.cursor, self.grow_to);
                Stream::Out(Output::open(client, volume, terms, at, limit, random)?)
            }
            Mode::Update => {
                let begin = begin_of_block(self.cursor, &terms);
                let mut updater = client.updater(volume, terms, Bytes::new(begin))?;
                updater.set_playout(Bytes::new(self.cursor))?;
                Stream::Both(updater)
            }
        })
    }

    fn end_stream(&mut self) -> Result<()> {
        match self.stream.take() {
            Some(Stream::In(input)) => input.close(),
            Some(Stream::Out(output)) => output.close(&mut self.random),
            Some(Stream::Both(updater)) => updater.close().map(drop),
            None => Ok(()),
        }
    }

    /// What comes next, into `buf`: one piece. A gap is passed by being told.
    pub fn next_piece(&mut self, buf: &mut [u8]) -> Result<Piece> {
        self.may(self.access.read, "reading")?;
        if buf.is_empty() {
            return Ok(Piece::Data(0));
        }
        let piece = if self.updates()? {
            match self.cursor < self.recorded || self.cursor < self.length()?.get() {
                true => self.updater()?.next_piece(buf)?,
                false => Piece::End,
            }
        } else if self.reads_under_contract()? {
            match self.input()? {
                Some(input) => input.next_piece(buf)?,
                None => Piece::End,
            }
        } else {
            self.read_best_effort(buf)?
        };
        self.cursor += match piece {
            Piece::Data(len) => len as u64,
            Piece::Gap { len, .. } => len.get(),
            Piece::End => 0,
        };
        Ok(piece)
    }

    fn reads_under_contract(&self) -> Result<bool> {
        let mode = self.contract.map(|contract| self.direction(&contract)).transpose()?;
        Ok(mode == Some(Mode::Read))
    }

    /// Whether what this handle reads and writes goes by one contract for both.
    fn updates(&self) -> Result<bool> {
        let mode = self.contract.map(|contract| self.direction(&contract)).transpose()?;
        Ok(mode == Some(Mode::Update))
    }

    /// The stream of a contract for both, at the cursor.
    fn updater(&mut self) -> Result<&mut Updater> {
        let contract = self.contract.expect("asked only under contract");
        let cursor = Bytes::new(self.cursor);
        if !matches!(self.stream, Some(Stream::Both(_))) {
            self.end_stream()?;
            self.stream = Some(self.begin_stream(contract)?);
        }
        let Some(Stream::Both(updater)) = &mut self.stream else { unreachable!("just begun") };
        if updater.offset() != cursor {
            let held = updater.held();
            if cursor < held.start || cursor >= held.end {
                let begin = begin_of_block(cursor.get(), &contract.terms());
                updater.seek(Bytes::new(begin))?;
            }
            updater.set_playout(cursor)?;
        }
        Ok(updater)
    }

    /// The reader's stream, at the cursor; none where the cursor is beyond the end.
    fn input(&mut self) -> Result<Option<&mut Input>> {
        let at_cursor = match &self.stream {
            Some(Stream::In(input)) => input.position() == self.cursor,
            _ => false,
        };
        if !at_cursor {
            if self.cursor > self.recorded && self.cursor > self.length()?.get() {
                return Ok(None);
            }
            match &mut self.stream {
                Some(Stream::In(input)) if !self.random.is_plain() => input.seek(self.cursor)?,
                _ => {
                    // The stream of a file outside the pool goes only forward.
                    self.end_stream()?;
                    let contract = self.contract.expect("asked only under contract");
                    self.stream = Some(self.begin_stream(contract)?);
                }
            }
        }
        match &mut self.stream {
            Some(Stream::In(input)) => Ok(Some(input)),
            _ => unreachable!("a contract for reading has a reader"),
        }
    }

    /// What comes next: what a peek has shown, where one has.
    fn read_best_effort(&mut self, buf: &mut [u8]) -> Result<Piece> {
        if let Some(seen) = self.seen.at(self.cursor) {
            let len = seen.len().min(buf.len());
            buf[..len].copy_from_slice(&seen[..len]);
            return Ok(Piece::Data(len));
        }
        self.read_there(self.cursor, buf)
    }

    /// What lies at a place by now, as best effort.
    fn read_there(&mut self, place: u64, buf: &mut [u8]) -> Result<Piece> {
        match self.readable(place, buf.len())? {
            0 => Ok(Piece::End),
            len => match self.random.read(place, &mut buf[..len])? {
                0 => Ok(Piece::End),
                read => Ok(Piece::Data(read)),
            },
        }
    }

    /// How much of `len_max` bytes at a place can be read as best effort: what this
    /// handle has written under contract is put on the disk first.
    fn readable(&mut self, place: u64, len_max: usize) -> Result<usize> {
        self.see_until(place.saturating_add(len_max as u64))?;
        Ok(self.recorded.saturating_sub(place).min(len_max as u64) as usize)
    }

    /// What is recorded up to there is known, and on the disk where this handle has written it
    /// under contract.
    fn see_until(&mut self, end: u64) -> Result<()> {
        if end > self.recorded {
            self.length()?;
        }
        if let Some(Stream::Out(output)) = &mut self.stream
            && output.durable().get() < end.min(self.recorded)
        {
            output.sync(&mut self.random)?;
        }
        Ok(())
    }

    /// The next bytes where they are, at most `len_max` and at least one, until the next call. A
    /// gap is passed by being told.
    ///
    /// As best effort, what is read and passed next is what was shown, and what was shown behind
    /// that is shown next. Who looks once more at the same place, or has gone elsewhere
    /// meanwhile, sees what is there by then.
    pub fn peek(&mut self, len_max: usize) -> Result<Peek<'_>> {
        self.may(self.access.read, "reading")?;
        if len_max == 0 {
            return Ok(Peek::Data(&[]));
        }
        if self.updates()? {
            return self.updater()?.peek(len_max);
        }
        if !self.reads_under_contract()? {
            return self.peek_best_effort(len_max.min(PEEK_MAX));
        }
        if self.input()?.is_none() {
            return Ok(Peek::End);
        }
        let Some(Stream::In(input)) = &mut self.stream else { unreachable!("just looked at") };
        let peek = input.peek(len_max)?;
        if let Peek::Gap { len, .. } = peek {
            self.cursor += len.get();
        }
        Ok(peek)
    }

    /// As [`File::peek`], and all of `len` bytes in one piece, where neither a gap nor the end
    /// is before that: under a contract as [`Reader::peek_whole`](crate::Reader::peek_whole),
    /// otherwise 1 MiB at the most.
    ///
    /// # Errors
    /// Where `len` is more than that.
    pub fn peek_whole(&mut self, len: usize) -> Result<Peek<'_>> {
        self.may(self.access.read, "reading")?;
        if len == 0 {
            return Ok(Peek::Data(&[]));
        }
        if self.updates()? {
            let (at, mut bytes) = (Bytes::new(self.cursor), self.seen.memory(len));
            let mut done = 0;
            while done < len {
                let place = at + Bytes::new(done as u64);
                match self.updater()?.read_at(place, &mut bytes[done..])? {
                    Piece::Data(read) => done += read,
                    Piece::Gap { .. } | Piece::End => break,
                }
            }
            bytes.truncate(done);
            self.seen = Seen::new(self.cursor, bytes);
            return Ok(self.seen.at(self.cursor).map_or(Peek::End, Peek::Data));
        }
        if !self.reads_under_contract()? {
            if len > PEEK_MAX {
                let what = format!("{len} bytes are more than the {PEEK_MAX} of best effort");
                return Err(problem(Code::Invalid, what, "look at less, or take a contract"));
            }
            if self.seen.at(self.cursor).is_some_and(|seen| seen.len() < len) {
                self.seen.forget();
            }
            return self.peek_best_effort(len);
        }
        if self.input()?.is_none() {
            return Ok(Peek::End);
        }
        let Some(Stream::In(input)) = &mut self.stream else { unreachable!("just looked at") };
        let peek = input.peek_whole(len)?;
        if let Peek::Gap { len, .. } = peek {
            self.cursor += len.get();
        }
        Ok(peek)
    }

    /// Copies what lies at `place` to the front of `buf`, as much as comes at once, and
    /// leaves the cursor where it is. Under a contract for reading, it is a place of the
    /// window, as for [`Reader::read_at`](crate::Reader::read_at); otherwise any place.
    ///
    /// # Errors
    /// Under a contract, where it is a place outside of the window.
    pub fn read_at(&mut self, place: Bytes, buf: &mut [u8]) -> Result<Piece> {
        self.may(self.access.read, "reading")?;
        if self.updates()? {
            return self.updater()?.read_at(place, buf);
        }
        if self.reads_under_contract()? {
            return match self.input()? {
                Some(input) => input.read_at(place.get(), buf),
                None => Ok(Piece::End),
            };
        }
        if buf.is_empty() { Ok(Piece::Data(0)) } else { self.read_there(place.get(), buf) }
    }

    /// Changes the bytes at `place` to the front of `bytes`, and leaves the cursor where it is;
    /// gives how many. Under a contract for reading and writing
    /// ([`OpenOptions::update`]) it is a place of the window, as for
    /// [`Updater::write_at`](crate::Updater::write_at); without a contract for writing, any place.
    ///
    /// # Errors
    /// Under such a contract, where it is a place outside of the window; under one for writing
    /// alone, which writes one byte behind the other.
    pub fn write_at(&mut self, place: Bytes, bytes: &[u8]) -> Result<usize> {
        self.may(self.access.write, "writing")?;
        self.seen.forget();
        if self.updates()? {
            return self.updater()?.write_at(place, bytes);
        }
        if self.writes_under_contract()? {
            let what = "a contract for writing alone writes one byte behind the other";
            let next = "open it for updating, or go to the place to write there";
            return Err(problem(Code::WrongMode, what, next));
        }
        let written = self.random.write(place.get(), bytes, self.size)?;
        self.recorded = self.recorded.max(place.get() + written as u64);
        Ok(written)
    }

    /// Moves the cursor to a place of the window, forwards or backwards, as
    /// [`Reader::set_playout`](crate::Reader::set_playout). Under a contract for writing the
    /// stream goes anywhere, when what was written is on the medium, as
    /// [`Writer::seek`](crate::Writer::seek): its contract is not given up meanwhile.
    /// Without a contract, anywhere, as [`Seek::seek`] does.
    ///
    /// # Errors
    /// Where it is a place outside of the window, or one to which a writer's stream cannot
    /// go: the cursor stays.
    pub fn set_playout(&mut self, place: Bytes) -> Result<()> {
        self.seen.forget();
        if self.updates()? {
            self.updater()?.set_playout(place)?;
        } else if let Some(Stream::Out(output)) = &mut self.stream {
            let (at, volume) = (place.get(), self.volume.as_str());
            output.seek((&self.client, volume), at, &mut self.random)?;
            (self.run, self.left) = (Run::default(), None);
        } else if self.reads_under_contract()?
            && let Some(input) = self.input()?
        {
            input.set_playout(place.get())?;
        }
        self.cursor = place.get();
        Ok(())
    }

    /// From now on so many bytes behind the cursor are held, under a contract for reading, as
    /// [`Reader::keep`](crate::Reader::keep).
    ///
    /// # Errors
    /// Where there is no such contract, or that is more than it gives at once.
    pub fn keep(&mut self, len: Bytes) -> Result<()> {
        if self.updates()? {
            return self.updater()?.keep(len);
        }
        if !self.reads_under_contract()? {
            let what = "nothing is kept without a contract for reading";
            return Err(problem(Code::WrongMode, what, "take one, or read what is needed again"));
        }
        if let Some(Stream::In(input)) = &mut self.stream {
            input.keep(len)?;
        }
        self.keep = len;
        Ok(())
    }

    fn peek_best_effort(&mut self, len_max: usize) -> Result<Peek<'_>> {
        if !self.seen.shows_next(self.cursor) {
            let len = self.readable(self.cursor, len_max)?;
            let mut bytes = self.seen.memory(len);
            let read = if len == 0 { 0 } else { self.random.read(self.cursor, &mut bytes)? };
            bytes.truncate(read);
            self.seen = Seen::new(self.cursor, bytes);
        }
        let seen = self.seen.at(self.cursor).unwrap_or_default();
        let seen = &seen[..seen.len().min(len_max)];
        Ok(if seen.is_empty() { Peek::End } else { Peek::Data(seen) })
    }

    /// Passes `len` bytes that a peek has shown.
    pub fn advance(&mut self, len: usize) -> Result<()> {
        self.maker.check()?;
        if self.updates()? {
            let to = self.cursor.saturating_add(len as u64);
            return self.set_playout(Bytes::new(to));
        }
        let seen = match &mut self.stream {
            Some(Stream::In(input)) if input.position() == self.cursor => input.seen(),
            // It has not followed yet.
            Some(Stream::In(_)) => 0,
            _ => self.seen.at(self.cursor).map_or(0, <[u8]>::len),
        };
        if len > seen {
            let what = format!("{len} bytes are more than the {seen} that were seen");
            return Err(problem(Code::Invalid, what, "advance by what the last peek gave"));
        }
        if let Some(Stream::In(input)) = &mut self.stream {
            input.advance(len);
        }
        self.cursor += len as u64;
        Ok(())
    }

    /// Writes the front of `bytes` at the cursor; gives how much.
    fn write_piece(&mut self, bytes: &[u8]) -> Result<usize> {
        self.may(self.access.write, "writing")?;
        if bytes.is_empty() {
            return Ok(0);
        }
        self.seen.forget();
        if self.updates()? {
            let written = self.updater()?.write(bytes)?;
            self.cursor += written as u64;
            self.recorded = self.recorded.max(self.cursor);
            return Ok(written);
        }
        let written = match self.output(bytes.len())? {
            Some(output) => {
                let written = output.write(bytes);
                self.cursor = output.position().unwrap_or(self.cursor);
                written?
            }
            None => {
                let written = self.random.write(self.cursor, bytes, self.size)?;
                self.went_by(written);
                self.cursor += written as u64;
                written
            }
        };
        self.recorded = self.recorded.max(self.cursor);
        Ok(written)
    }

    fn went_by(&mut self, written: usize) {
        let before = if self.run.end == self.cursor { self.run.len } else { 0 };
        self.run =
            Run { end: self.cursor + written as u64, len: before.saturating_add(written as u64) };
    }

    /// The writer's stream, at the cursor; none where this write is best effort. A
    /// write somewhere else than where the stream stands ends the stream: a volume has
    /// one writer. Patches are best effort; where the stream stood, and where a block is
    /// written one behind the other, a stream goes on under the same contract.
    fn output(&mut self, len: usize) -> Result<Option<&mut Output>> {
        let Some(contract) = self.contract else { return Ok(None) };
        if self.direction(&contract)? != Mode::Write {
            return Ok(None);
        }
        let position = match &self.stream {
            Some(Stream::Out(output)) => output.position(),
            _ => None,
        };
        if position != Some(self.cursor) {
            if let Some(Stream::Out(output)) = &self.stream {
                self.left = Some(output.end());
            }
            self.end_stream()?;
            let run = if self.run.end == self.cursor { self.run.len } else { 0 };
            let block = contract.terms().block_bytes.get();
            if self.left != Some(self.cursor) && run.saturating_add(len as u64) < block {
                return Ok(None);
            }
            self.stream = Some(self.begin_stream(contract)?);
            (self.run, self.left) = (Run::default(), None);
        }
        match &mut self.stream {
            Some(Stream::Out(output)) => Ok(Some(output)),
            _ => unreachable!("a contract for writing has a writer"),
        }
    }

    /// Puts everything that this handle has written on the medium; under a contract for reading
    /// and writing, what lies before the cursor. A handle that may write so also makes durable what
    /// others have written to the volume and was answered before; but of a block device's writes that
    /// were answered ahead and have failed only a flush of that device tells.
    pub fn sync(&mut self) -> Result<()> {
        self.maker.check()?;
        if let Some(Stream::Out(output)) = &mut self.stream {
            output.sync(&mut self.random)?;
        }
        if let Some(Stream::Both(updater)) = &mut self.stream {
            updater.sync()?;
        }
        if self.access.write { self.random.sync_all() } else { self.random.sync() }
    }

    /// While a stream carries what is written: everything before this place is on the
    /// medium. Does not wait.
    pub fn durable(&self) -> Option<Bytes> {
        match &self.stream {
            Some(Stream::Out(output)) => Some(output.durable()),
            Some(Stream::Both(updater)) => Some(updater.durable()),
            _ => None,
        }
    }

    /// Cuts what is recorded to `len`, on the medium. The space stays reserved. Refused
    /// while another program has a stream on the volume. Where a crash keeps this from
    /// returning, it may be cut already.
    pub fn set_len(&mut self, len: Bytes) -> Result<()> {
        self.may(self.access.write, "writing")?;
        let recorded = self.length()?;
        if len > recorded {
            let what = format!("{len} is beyond the {recorded} that are recorded");
            return Err(problem(Code::Invalid, what, "write what shall be there"));
        }
        if len < recorded {
            // A stream of this handle would be in the way. It comes back with the next read or
            // write, wherever that is.
            self.end_stream()?;
            self.run = Run { end: self.cursor, len: u64::MAX };
            self.seen.forget();
            self.size = self.client.volume_truncate(&self.volume, len)?.size_bytes.get();
            self.recorded = len.get();
        }
        Ok(())
    }

    /// The stream of the contract is opened again, at the cursor, before the program asks for
    /// bytes. Where its part of the disk has gone to somebody else meanwhile, that is told when
    /// they are asked for.
    fn resume(&mut self) {
        if let (Some(contract), None) = (self.contract, &self.stream)
            && let Ok(stream) = self.begin_stream(contract)
        {
            self.stream = Some(stream);
            (self.run, self.left) = (Run::default(), None);
        }
    }

    /// Ends the handle; what was written is on the medium. A failed write that the
    /// program does not know of yet is reported here. In the child of a fork it closes the
    /// child's copy, and nothing else.
    pub fn close(mut self) -> Result<()> {
        if !self.maker.is_here() {
            return Ok(());
        }
        let ended = self.end_stream();
        ended.and(self.random.sync())
    }

    /// Under a contract for writing, alone or with reading.
    fn writes_under_contract(&self) -> Result<bool> {
        Ok(self.contract.is_some() && !self.reads_under_contract()?)
    }

    fn may(&self, allowed: bool, what: &str) -> Result<()> {
        self.maker.check()?;
        if allowed { Ok(()) } else { Err(not_open_for(what)) }
    }
}

/// Where the block of a place begins. One that cannot be divided by is refused by the daemon.
fn begin_of_block(place: u64, terms: &wire::control::Contract) -> u64 {
    place - place % terms.block_bytes.get().max(1)
}

fn problem(code: Code, what: impl Into<String>, next: &str) -> Error {
    Error::Problem(Box::new(Problem::new(code, what, next)))
}

fn not_open_for(what: &str) -> Error {
    problem(Code::WrongMode, format!("the handle is not open for {what}"), "open it so")
}

impl Drop for File {
    /// Ends the stream without waiting for the medium.
    fn drop(&mut self) {
        if let Some(Stream::Out(output)) = &mut self.stream
            && self.maker.is_here()
        {
            // Nobody is left to tell.
            let _ = output.pad(&mut self.random);
        }
    }
}

impl Read for File {
    /// As [`File::next_piece`]. A gap is an error that holds [`Error::Gap`], once; the
    /// next read goes on behind it.
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self.next_piece(buf)? {
            Piece::Data(len) => Ok(len),
            Piece::Gap { offset, len } => Err(Error::Gap { offset, len }.into()),
            Piece::End => Ok(0),
        }
    }
}

impl Write for File {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        Ok(self.write_piece(buf)?)
    }

    /// Under contract: waits until the daemon has accepted everything; not durable yet.
    fn flush(&mut self) -> io::Result<()> {
        match &mut self.stream {
            Some(Stream::Out(output)) => Ok(output.flush()?),
            _ => Ok(()),
        }
    }
}

impl Seek for File {
    /// Moves the cursor, also beyond the end of what is recorded. The end is that of
    /// the recorded data. The window follows with the next read or write.
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let (from, by) = match to {
            SeekFrom::Start(place) => (place, 0),
            SeekFrom::Current(by) => (self.cursor, by),
            SeekFrom::End(by) => (self.length()?.get(), by),
        };
        let place = from.checked_add_signed(by).ok_or_else(|| {
            let what = format!("{by} from offset {from} is no place in a volume");
            problem(Code::Invalid, what, "seek to the start or behind it")
        })?;
        self.seen.forget();
        self.cursor = place;
        Ok(place)
    }
}
