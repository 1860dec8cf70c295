//! Loads that were recorded elsewhere, read record by record.
//!
//! One job: turn a file of a recorded load into the [`Demand`]s that it recorded, one
//! at a time, whatever the file's size. A bad record is an [`Error`] with its place
//! and with what to do about it, and ends the load; no input makes a reader panic.
//!
//! Rules for all formats:
//!
//! * A demand covers every sector of 512 bytes that the recorded request touched.
//! * Formats that count time from their own begin keep it; those that record a date
//!   begin with their first record.
//! * A record that is earlier than the one before it, as clocks of several processors
//!   make them, counts at the time of the one before, and is counted in
//!   [`Notes::earlier`]. What moves no bytes (flushes, discards) or is no request is
//!   left out, and counted in [`Notes::skipped`].
//! * Disks that the format numbers keep their number; others are numbered from 0 in
//!   the order in which they appear. [`Trace::disks`] tells their names.

mod blkparse;
mod detect;
pub(crate) mod error;
mod fio;
mod lines;
mod msr;
mod spc;
mod srt;

pub use detect::detect;

use crate::workload::{Demand, Source};
pub use error::{Error, Place};
use lines::Lines;
use std::fmt;
use std::io::BufRead;
use std::path::Path;
use units::{Access, Bytes, Direction, Duration, Lba, SECTOR};

/// No recorded request is larger; a larger one is a damaged record.
const REQUEST_MAX: u64 = 1 << 30;
/// No recorded disk is larger; a larger one is a damaged record.
const DISK_MAX: u64 = 1 << 60;
/// A trace of more disks than this is a damaged one.
const DISKS_MAX: usize = 1 << 16;

/// How a recorded load is written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// What Linux's `blkparse` prints by default.
    Blkparse,
    /// fio's log of a job, versions 2 and 3.
    FioIolog,
    /// The Storage Performance Council's trace files.
    Spc,
    /// Microsoft Research Cambridge's trace files (SNIA).
    Msr,
    /// Hewlett-Packard's SRT trace files, of the kind that the Clockwise thesis uses.
    Srt,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Blkparse => "blkparse",
            Self::FioIolog => "fio iolog",
            Self::Spc => "SPC",
            Self::Msr => "MSR Cambridge",
            Self::Srt => "HP SRT",
        })
    }
}

/// What a format leaves open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The blkparse action that counts as a request: `Q` for what programs and file
    /// systems asked, `D` for what reached the drive.
    pub blkparse_action: char,
    /// The unit of an address in an SPC trace.
    pub spc_block: Bytes,
}

impl Default for Options {
    fn default() -> Self {
        Self { blkparse_action: 'Q', spc_block: SECTOR }
    }
}

/// An [`Error`] whose place is not known yet.
#[derive(Debug)]
struct Problem {
    what: String,
    remedy: &'static str,
}

fn problem(what: impl Into<String>, remedy: &'static str) -> Problem {
    Problem { what: what.into(), remedy }
}

/// What the machine that recorded a request saw of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// From its arrival until the disk began with it, where that was recorded.
    pub started: Option<Duration>,
    /// From its arrival until it was done.
    pub done: Duration,
    /// How many requests were with the disk when it came, itself among them, where
    /// that was recorded.
    pub queue: Option<u32>,
}

/// What a reader met beside requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    /// Records that are no request for bytes.
    pub skipped: u64,
    /// Records that were earlier than the one before them.
    pub earlier: u64,
}

/// A request as a format tells it.
#[derive(Clone, Copy, Debug)]
struct Record {
    /// In ns since the format's own begin.
    at: u128,
    disk: u32,
    offset: u64,
    len: u64,
    direction: Direction,
    synchronous: bool,
    recorded: Option<Recorded>,
}

/// What one line or one binary record is.
enum Entry {
    Request(Record),
    /// No request for bytes: counted.
    Skipped,
    /// Belongs to the format's own bookkeeping.
    Nothing,
    End,
}

/// The disks of a trace in the order of their numbers.
#[derive(Default)]
struct Disks {
    names: Vec<String>,
    capacities: Vec<Option<Bytes>>,
}

impl Disks {
    /// The number of a disk that the format names.
    fn named(&mut self, name: &str) -> Result<u32, Problem> {
        if let Some(index) = self.names.iter().position(|known| known == name) {
            return Ok(index as u32);
        }
        if self.names.len() == DISKS_MAX {
            return Err(problem("more than 65536 disks", "the file is damaged before this"));
        }
        self.names.push(name.to_owned());
        Ok(self.names.len() as u32 - 1)
    }

    /// A disk that the format numbers.
    fn numbered(&mut self, number: u64) -> Result<u32, Problem> {
        if number >= DISKS_MAX as u64 {
            let what = format!("disk number {number}");
            return Err(problem(what, "numbers below 65536 are understood"));
        }
        while self.names.len() as u64 <= number {
            self.names.push(self.names.len().to_string());
        }
        Ok(number as u32)
    }
}

enum Reader {
    Blkparse(blkparse::Reader),
    Fio(fio::Reader),
    Spc(spc::Reader),
    Msr(msr::Reader),
    Srt(srt::Reader),
}

/// A recorded load as a [`Source`].
pub struct Trace {
    input: Lines,
    format: Format,
    reader: Reader,
    disks: Disks,
    /// What the time of demands counts from.
    begin: Option<u128>,
    last: Duration,
    recorded: Option<Recorded>,
    notes: Notes,
    error: Option<Error>,
    ended: bool,
}

impl Trace {
    /// The load in a file, whose format is guessed from its begin.
    ///
    /// # Errors
    /// Where the file cannot be opened or read, or its format is none that we know.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let error = |error: std::io::Error| Error {
            place: Place::Offset(0),
            problem: format!("{} cannot be read: {error}", path.display()),
            remedy: "check the path and its permissions",
        };
        let mut input = std::io::BufReader::new(std::fs::File::open(path).map_err(error)?);
        let format = detect(input.fill_buf().map_err(error)?).ok_or_else(|| Error {
            place: Place::Offset(0),
            problem: format!("{} begins like no trace that is known", path.display()),
            remedy: "blkparse text, fio iolog 2 and 3, SPC, MSR Cambridge and HP SRT are; \
                     decompress it first if it is compressed",
        })?;
        Ok(Self::read(Box::new(input), format, Options::default()))
    }

    /// The load that `input` holds.
    pub fn read(input: Box<dyn BufRead + Send>, format: Format, options: Options) -> Self {
        let reader = match format {
            Format::Blkparse => Reader::Blkparse(blkparse::Reader::new(options.blkparse_action)),
            Format::FioIolog => Reader::Fio(fio::Reader::default()),
            Format::Spc => Reader::Spc(spc::Reader::new(options.spc_block)),
            Format::Msr => Reader::Msr(msr::Reader),
            Format::Srt => Reader::Srt(srt::Reader::default()),
        };
        Self {
            input: Lines::new(input),
            format,
            reader,
            disks: Disks::default(),
            begin: (format != Format::Msr).then_some(0),
            last: Duration::ZERO,
            recorded: None,
            notes: Notes::default(),
            error: None,
            ended: false,
        }
    }

    /// How the load is written down.
    pub fn format(&self) -> Format {
        self.format
    }

    /// The names of the disks that were met so far, in the order of their numbers.
    pub fn disks(&self) -> &[String] {
        &self.disks.names
    }

    /// How large a disk was, where the trace tells it; known once a demand was made.
    pub fn capacity(&self, disk: u32) -> Option<Bytes> {
        *self.disks.capacities.get(disk as usize)?
    }

    /// What was recorded of the demand that was made last.
    pub fn recorded(&self) -> Option<Recorded> {
        self.recorded
    }

    /// What was met beside requests so far.
    pub fn notes(&self) -> Notes {
        self.notes
    }

    fn entry(&mut self) -> Result<Entry, Problem> {
        let (input, disks) = (&mut self.input, &mut self.disks);
        let line = match &mut self.reader {
            Reader::Srt(reader) => return reader.entry(input, disks),
            _ => input.line()?,
        };
        let Some(line) = line else {
            return Ok(Entry::End);
        };
        if line.is_empty() {
            return Ok(Entry::Nothing);
        }
        match &mut self.reader {
            Reader::Blkparse(reader) => reader.entry(line, disks),
            Reader::Fio(reader) => reader.entry(line, disks),
            Reader::Spc(reader) => reader.entry(line, disks),
            Reader::Msr(reader) => reader.entry(line, disks),
            Reader::Srt(_) => unreachable!("read above"),
        }
    }

    fn demand(&mut self, record: &Record) -> Result<Option<Demand>, Problem> {
        if record.len == 0 {
            self.notes.skipped += 1;
            return Ok(None);
        }
        if record.len > REQUEST_MAX || record.offset > DISK_MAX {
            let what = format!("a request for {} bytes at byte {}", record.len, record.offset);
            return Err(problem(what, "the record is damaged: remove it or fetch the file again"));
        }
        let begin = *self.begin.get_or_insert(record.at);
        let since = record.at.saturating_sub(begin);
        let since = u64::try_from(since).map(Duration::from_nanos).map_err(|_| {
            problem("a time 584 years after the begin", "the record is damaged: remove it")
        })?;
        let earlier = record.at < begin || since < self.last;
        self.notes.earlier += u64::from(earlier);
        self.last = self.last.max(since);
        self.recorded = record.recorded;
        let end = Bytes::new(record.offset + record.len).round_up(SECTOR);
        let begin = Bytes::new(record.offset).round_down(SECTOR);
        let access =
            Access { lba: Lba::containing(begin), len: end - begin, direction: record.direction };
        let (disk, synchronous) = (record.disk, record.synchronous);
        Ok(Some(Demand { at: self.last, disk, access, synchronous }))
    }

    fn next_demand(&mut self) -> Result<Option<Demand>, Problem> {
        loop {
            match self.entry()? {
                Entry::Request(record) => {
                    if let Some(demand) = self.demand(&record)? {
                        return Ok(Some(demand));
                    }
                }
                Entry::Skipped => self.notes.skipped += 1,
                Entry::Nothing => {}
                Entry::End => return Ok(None),
            }
        }
    }
}

impl Iterator for Trace {
    type Item = Demand;

    fn next(&mut self) -> Option<Demand> {
        if self.ended {
            return None;
        }
        let next = self.next_demand();
        self.ended = !matches!(next, Ok(Some(_)));
        next.unwrap_or_else(|Problem { what, remedy }| {
            self.error = Some(Error { place: self.input.place(), problem: what, remedy });
            None
        })
    }
}

impl Source for Trace {
    fn error(&self) -> Option<&Error> {
        self.error.as_ref()
    }
}
