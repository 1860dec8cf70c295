//! The four programs at work beside each other, wherever their bytes are.

use super::super::load::RATE;
use super::super::pace::std;
use super::super::programs::{Meter, Pace, Played, Reader, Sink, Source, Span, write};
use super::super::samples::Samples;
use super::super::{failed, progress::Progress};
use super::database::Database;
use super::kept::Kept;
use super::{Scene, copies, tools};
use crate::failure::Failure;
use engine::IoClass;
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::scope;
use std::time::Instant;
use units::{Bytes, Duration, Rate};

/// What the film's and the recording's programs touch at a time.
pub const PIECE: Bytes = Bytes::kib(64);
/// The number that marks the film's sectors.
pub const FILM: u64 = 100;
/// Before the first piece is due.
const LEAD: Duration = Duration::from_millis(500);

/// Where the programs' bytes are.
pub struct Places<'a> {
    pub film: &'a mut (dyn Source + Send),
    pub recording: &'a mut (dyn Sink + Send),
    pub database: &'a Database,
    /// What is backed up.
    pub home: PathBuf,
    /// Files that are copied, each by a program of its own.
    pub copied: Vec<PathBuf>,
    /// Whether film and recording are in the kernel's real-time class and the copies in the idle
    /// one, as somebody would do by ionice who knows all programs. A pool goes by contracts.
    pub in_classes: bool,
}

/// What the programs saw of one run.
pub struct Run {
    pub title: String,
    pub film: Played,
    pub recording: Played,
    pub transactions: Samples,
    /// What the backup read.
    pub backup: Rate,
    /// What was copied, where anything was.
    pub copied: Option<Rate>,
    /// What became of the contracts; none without any.
    pub kept: Option<Kept>,
}

impl Run {
    /// Pieces of the film and the recording that came after the one before was used up.
    pub fn late_pieces(&self) -> u64 {
        let late = |played: &Played| played.latency.above(RATE.time_for(PIECE));
        late(&self.film) + late(&self.recording)
    }

    /// What breaks a promise, in words.
    pub fn broken(&self) -> Vec<String> {
        let mut broken: Vec<String> = self.film.wrong.iter().map(ToString::to_string).collect();
        broken.extend(self.kept.as_ref().and_then(Kept::broken));
        if self.late_pieces() > 0 {
            broken.push(format!("{} pieces came too late for their program", self.late_pieces()));
        }
        broken
    }
}

/// Runs all of them.
pub fn run(
    title: &str,
    places: Places<'_>,
    scene: Scene,
    progress: &mut Progress,
) -> Result<Run, Failure> {
    progress.step(&format!(
        "a film, a recording, a database and a backup, {} s: {title}",
        scene.seconds
    ));
    tools::forget_cached()?;
    let Places { film, recording, database, home, copied, in_classes } = places;
    let into = |class| match in_classes {
        true => engine::io_class(class)
            .map_err(|error| failed(format!("the I/O class {class:?}: {error}"))),
        false => Ok(()),
    };
    let mut film = Reader::new(film, FILM, PIECE);
    film.touch()?; // once the first piece is there, the window is full
    let start = Instant::now() + std(LEAD);
    let span = Span { start, end: start + std(Duration::from_secs(scene.seconds)) };
    let when = (span, Pace { piece: PIECE, rate: RATE });
    let meter = &Meter::default();
    scope(|threads| {
        let film = threads.spawn(move || {
            into(IoClass::RealTime)?;
            film.play(when, meter)
        });
        let recording = threads.spawn(move || {
            into(IoClass::RealTime)?;
            write(recording, FILM + 1, when, meter)
        });
        let transactions = threads.spawn(|| {
            std::thread::sleep(span.start.saturating_duration_since(Instant::now()));
            database.transactions(title.rsplit(' ').next().unwrap_or(title), scene.seconds)
        });
        let backup = threads.spawn(|| back_up(&home, span));
        let copy = |path| {
            into(IoClass::Idle)?;
            copies::copy(path, span)
        };
        let copies: Vec<_> = copied.iter().map(|path| threads.spawn(move || copy(path))).collect();
        let panicked = |_| failed("a program of the scene panicked");
        let rate = |bytes| Rate::of(Bytes::new(bytes), span.duration());
        let is_copied = !copies.is_empty();
        let copies = copies.into_iter().map(|copy| copy.join().map_err(panicked)?);
        let copies: u64 = copies.sum::<Result<_, Failure>>()?;
        Ok(Run {
            title: title.to_owned(),
            film: film.join().map_err(panicked)??,
            recording: recording.join().map_err(panicked)??.0,
            transactions: transactions.join().map_err(panicked)??,
            backup: rate(backup.join().map_err(panicked)??),
            copied: is_copied.then(|| rate(copies)),
            kept: None,
        })
    })
}

struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill(); // it may have ended by itself
        let _ = self.0.wait();
    }
}

/// Reads what tar makes of the directory, over and over, until the run ends; how many bytes. It
/// runs in the idle class, for the kernel's schedulers; a pool goes by the priority of its files.
fn back_up(home: &Path, span: Span) -> Result<u64, Failure> {
    std::thread::sleep(span.start.saturating_duration_since(Instant::now()));
    let (mut buffer, mut moved) = (vec![0; 1 << 18], 0);
    while Instant::now() < span.end {
        let mut tar = Command::new("ionice");
        tar.args(["-c", "3", "tar", "-C"]).arg(home).args(["-cf", "-", "."]);
        tar.stdout(Stdio::piped());
        let child = tar.stdin(Stdio::null()).stderr(Stdio::null()).spawn();
        let mut tar = Killed(child.map_err(|error| failed(format!("tar: {error}")))?);
        let mut output = tar.0.stdout.take().expect("it is piped");
        while Instant::now() < span.end {
            let read = output.read(&mut buffer).map_err(|error| failed(format!("tar: {error}")))?;
            moved += read as u64;
            if read == 0 {
                tools::forget_cached()?;
                break;
            }
        }
    }
    Ok(moved)
}

/// A file that is read or written in order, as any program does.
pub struct Ordinary {
    pub file: File,
    pub buffer: Vec<u8>,
}

impl Ordinary {
    pub fn new(file: File) -> Self {
        Self { file, buffer: vec![0; PIECE.as_usize()] }
    }
}

impl Source for Ordinary {
    fn next(&mut self, len: usize) -> Result<&[u8], Failure> {
        let read = self.file.read(&mut self.buffer[..len]);
        let read = read.map_err(|error| failed(format!("the film: {error}")))?;
        Ok(&self.buffer[..read])
    }
}

impl Sink for Ordinary {
    fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.file.write_all(bytes).map_err(|error| failed(format!("the recording: {error}")))
    }
}

impl<S: Source + ?Sized> Source for &mut S {
    fn next(&mut self, len: usize) -> Result<&[u8], Failure> {
        (**self).next(len)
    }
}
