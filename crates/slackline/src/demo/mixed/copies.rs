//! Programs that copy files without a pause, beside the others.

use super::super::failed;
use super::super::programs::Span;
use super::files::write_file;
use crate::failure::Failure;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Instant;
use units::Bytes;

/// What each of them copies.
const FILE: Bytes = Bytes::mib(16);
/// So much at a time.
const PIECE: usize = 1 << 20;
/// Direct reads and writes, past the system's own memory, need memory that lies so.
const ALIGNED: usize = 4096;

/// The first of a source's numbers: nobody else's sectors are like these.
const NUMBER: u64 = 10_000;

/// Makes what so many programs copy, in these directories by turns; where each finds it.
pub fn make(directories: &[&Path], programs: u64) -> Result<Vec<PathBuf>, Failure> {
    let made = |(number, directory): (u64, &&Path)| {
        let path = directory.join(format!("copied-{number}"));
        write_file(&path, NUMBER + number, FILE)?;
        Ok(path)
    };
    (0..programs).zip(directories.iter().cycle()).map(made).collect()
}

/// Copies a file next to itself, over and over, until the run ends; how many bytes.
pub fn copy(path: &Path, span: Span) -> Result<u64, Failure> {
    let open = |path: &Path, write: bool| -> Result<File, Failure> {
        let mut options = OpenOptions::new();
        options.read(!write).write(write).create(write);
        let direct = i32::try_from(rustix::fs::OFlags::DIRECT.bits()).expect("a flag");
        let opened = options.custom_flags(direct).open(path);
        opened.map_err(|error| Failure::file(path, &error))
    };
    let mut memory = vec![0; PIECE + ALIGNED];
    let from = memory.as_ptr().align_offset(ALIGNED);
    let piece = &mut memory[from..from + PIECE];
    let (from, to) = (open(path, false)?, open(&path.with_extension("copy"), true)?);
    std::thread::sleep(span.start.saturating_duration_since(Instant::now()));
    let mut moved = 0;
    while Instant::now() < span.end {
        let at = moved % FILE.get();
        let done = from.read_exact_at(piece, at).and_then(|()| to.write_all_at(piece, at));
        done.map_err(|error| failed(format!("the copy of {}: {error}", path.display())))?;
        moved += PIECE as u64;
        // What is copied goes to the disk, as with any program that keeps what it copies.
        if moved.is_multiple_of(FILE.get()) {
            to.sync_data().map_err(|error| Failure::file(path, &error))?;
        }
    }
    Ok(moved)
}

/// What the copies of so many programs need on the disk.
pub fn room(programs: u64) -> Bytes {
    FILE * (2 * programs)
}
