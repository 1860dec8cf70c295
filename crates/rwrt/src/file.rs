//! Ordinary files, through the page cache or past it.
//!
//! Past it (`O_DIRECT`) only whole blocks of 4 KiB move, from and to memory that is
//! aligned: a reader keeps what is left of its last block, a writer gathers until a block
//! is full. Through it, what is of a file in the cache is dropped before it is read, so
//! that a disk is measured and not the memory of whoever made the file.

use crate::error::Error;
use crate::storage::{Account, Input, Output, Written};
use rustix::fs::{Advice, OFlags};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use units::Bytes;

const BLOCK: Bytes = Bytes::kib(4);

/// How a file is used.
#[derive(Clone, Debug)]
pub struct Part {
    /// From the start to here.
    pub end: Bytes,
    /// Whether it begins again there; operations then divide the end.
    pub looping: bool,
    /// Past the page cache.
    pub direct: bool,
    /// At most so much at a time.
    pub most: Bytes,
    /// Of a file that is written and read at a time: how far it is.
    pub written: Option<Arc<Written>>,
}

/// Memory that begins at a multiple of a block, with the bytes `from..to` of a file in it.
struct Aligned {
    memory: Vec<u8>,
    begin: usize,
    from: Bytes,
    to: Bytes,
}

impl Aligned {
    fn new(most: Bytes) -> Self {
        let len = (most.round_up(BLOCK) + BLOCK * 3).as_usize();
        let memory = vec![0; len];
        let begin = memory.as_ptr().align_offset(BLOCK.as_usize());
        Self { memory, begin, from: Bytes::ZERO, to: Bytes::ZERO }
    }

    /// The memory of `from..to`, which begins at or behind `self.from`.
    fn part(&mut self, from: Bytes, to: Bytes) -> &mut [u8] {
        let at = self.begin + (from - self.from).as_usize();
        &mut self.memory[at..][..(to - from).as_usize()]
    }

    /// Lets go of everything before the block of `at`.
    fn forget(&mut self, at: Bytes) {
        let keep = at.round_down(BLOCK);
        if keep >= self.from && keep < self.to {
            let from = self.begin + (keep - self.from).as_usize();
            let len = (self.to - keep).as_usize();
            self.memory.copy_within(from..from + len, self.begin);
        } else {
            self.to = keep;
        }
        self.from = keep;
    }
}

fn open(path: &Path, options: &mut OpenOptions, direct: bool) -> Result<File, Error> {
    if direct {
        options.custom_flags(OFlags::DIRECT.bits() as i32);
    }
    options.open(path).map_err(|cause| Error::file(path, cause))
}

/// Drops what is of the file in the page cache and is on the medium already.
fn drop_cache(file: &File) {
    // Advice: where it is not taken, reads are faster than the disk, and nothing breaks.
    let _ = rustix::fs::fadvise(file, 0, None, Advice::DontNeed);
}

/// Reads until `into` is full or the file ends.
fn read_all(file: &File, mut at: u64, into: &mut [u8]) -> std::io::Result<usize> {
    let mut done = 0;
    while done < into.len() {
        match file.read_at(&mut into[done..], at) {
            Ok(0) => break,
            Ok(len) => (done, at) = (done + len, at + len as u64),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

/// A file that is read.
pub struct FileInput {
    path: PathBuf,
    file: File,
    part: Part,
    at: Bytes,
    aligned: Option<Aligned>,
}

impl FileInput {
    pub fn new(path: &Path, part: Part) -> Result<Self, Error> {
        let file = open(path, OpenOptions::new().read(true), part.direct)?;
        drop_cache(&file);
        let aligned = part.direct.then(|| Aligned::new(part.most));
        Ok(Self { path: path.to_owned(), file, part, at: Bytes::ZERO, aligned })
    }

    fn read_now(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let Some(aligned) = &mut self.aligned else {
            return read_all(&self.file, self.at.get(), into);
        };
        let end = self.at + Bytes::new(into.len() as u64);
        aligned.forget(self.at);
        let (from, to) = (aligned.to, end.round_up(BLOCK));
        if from < to {
            let came = read_all(&self.file, from.get(), aligned.part(from, to))?;
            // What the file does not have is asked for again next time: it may grow.
            aligned.to = (from + Bytes::new(came as u64)).round_down(BLOCK);
            let there = (from + Bytes::new(came as u64)).min(end);
            let len = there.saturating_sub(self.at);
            into[..len.as_usize()].copy_from_slice(aligned.part(self.at, self.at + len));
            return Ok(len.as_usize());
        }
        into.copy_from_slice(aligned.part(self.at, end));
        Ok(into.len())
    }
}

impl Input for FileInput {
    fn read(&mut self, into: &mut [u8]) -> Result<usize, Error> {
        if self.part.looping && self.at >= self.part.end {
            self.at = Bytes::ZERO;
            drop_cache(&self.file);
        }
        let left = self.part.end.saturating_sub(self.at);
        let len = into.len().min(usize::try_from(left.get()).unwrap_or(usize::MAX));
        if let Some(written) = &self.part.written {
            written.wait(self.at + Bytes::new(len as u64));
        }
        let read = self.read_now(&mut into[..len]);
        let read = read.map_err(|cause| Error::file(&self.path, cause))?;
        self.at += Bytes::new(read as u64);
        Ok(read)
    }

    fn close(self: Box<Self>) -> Result<Option<Account>, Error> {
        Ok(None)
    }
}

/// A file that is written.
pub struct FileOutput {
    path: PathBuf,
    file: File,
    part: Part,
    at: Bytes,
    aligned: Option<Aligned>,
}

impl FileOutput {
    /// Makes the file where it is missing; what it holds is overwritten in place.
    pub fn new(path: &Path, part: Part) -> Result<Self, Error> {
        let options = &mut OpenOptions::new();
        let file = open(path, options.write(true).create(true), part.direct)?;
        let aligned = part.direct.then(|| Aligned::new(part.most));
        Ok(Self { path: path.to_owned(), file, part, at: Bytes::ZERO, aligned })
    }

    fn write_now(&mut self, from: &[u8]) -> std::io::Result<()> {
        let Some(aligned) = &mut self.aligned else {
            return self.file.write_all_at(from, self.at.get());
        };
        let end = self.at + Bytes::new(from.len() as u64);
        aligned.part(self.at, end).copy_from_slice(from);
        aligned.to = end;
        let (begin, whole) = (aligned.from, end.round_down(BLOCK));
        if begin < whole {
            self.file.write_all_at(aligned.part(begin, whole), begin.get())?;
            aligned.forget(end);
        }
        Ok(())
    }

    /// Writes what does not fill a block, and gives the file its length.
    fn finish(&mut self) -> std::io::Result<()> {
        if let Some(aligned) = &mut self.aligned {
            let (begin, end) = (aligned.from, self.at);
            if begin < end {
                let whole = end.round_up(BLOCK);
                aligned.part(end, whole).fill(0);
                self.file.write_all_at(aligned.part(begin, whole), begin.get())?;
                self.file.set_len(end.get())?;
            }
        }
        self.file.sync_all()
    }
}

impl Output for FileOutput {
    fn write(&mut self, from: &[u8]) -> Result<(), Error> {
        if self.part.looping && self.at >= self.part.end {
            self.at = Bytes::ZERO;
            self.aligned = self.part.direct.then(|| Aligned::new(self.part.most));
        }
        self.write_now(from).map_err(|cause| Error::file(&self.path, cause))?;
        self.at += Bytes::new(from.len() as u64);
        if let Some(written) = &self.part.written {
            written.upto(self.aligned.as_ref().map_or(self.at, |aligned| aligned.from));
        }
        Ok(())
    }

    fn close(mut self: Box<Self>) -> Result<Option<Account>, Error> {
        self.finish().map_err(|cause| Error::file(&self.path, cause))?;
        if let Some(written) = &self.part.written {
            written.upto(self.at);
            written.end();
        }
        Ok(None)
    }
}
