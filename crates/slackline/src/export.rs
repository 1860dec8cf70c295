//! `slackline export`: a part of a recording into a file, by the time when it was recorded.

use crate::contract::ContractArgs;
use crate::failure::Failure;
use crate::interrupts::interruption;
use crate::moment::{self, Between, held_from};
use crate::output::json;
use crate::pausing::Sink;
use crate::progress::Progress;
use crate::target::{Target, unwritten};
use crate::{Common, output, play, unreadable};
use client::control::{Mode, Stream, Volume};
use client::{BestEffort, Client};
use serde::Serialize;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use units::{Bytes, Duration, Rate};

/// Copy a part of a recording into a file
///
/// What was recorded between two times, or all of it. It is read in what contracts leave; with
/// --rate under a contract, at that rate. A time before the recording or in a pause of it is said,
/// and the copy begins where the recording goes on. The bytes are those that were recorded: they
/// begin wherever that was in a frame, as players of streams take them. What a disk cannot read comes as
/// zeros, is told, and ends it with 1; with --rate it is left out of a ring. A file that has data already
/// is left alone unless --overwrite is given. Where it is interrupted, FILE has what was copied until then.
#[derive(clap::Args)]
pub struct Args {
    /// The volume
    volume: String,
    /// Where the bytes go; - is standard output
    file: PathBuf,
    #[command(flatten)]
    between: Between,
    /// Read under a contract of this rate, for example 10MB/s [default: best effort]
    #[arg(long, short, value_name = "RATE")]
    rate: Option<Rate>,
    /// Write over FILE where it has data already
    #[arg(long)]
    overwrite: bool,
}

/// What is read at a time without a contract.
const PIECE: Bytes = Bytes::MIB;

/// What was copied.
#[derive(Serialize)]
struct Exported {
    volume: String,
    start_bytes: u64,
    bytes: u64,
    gap_bytes: u64,
    elapsed_ns: u64,
}

/// Runs it.
pub fn run(args: &Args, common: &Common) -> Result<(), Failure> {
    if args.file == Path::new("-") {
        let name = report::quoted(&args.volume);
        play::not_to_a_terminal(&format!("slackline export {name} - | ffplay -"))?;
    }
    let client = common.client()?;
    let volume = client.volume(&args.volume)?;
    let (start, end) = match args.between.is_given() {
        true => args.between.places(&client, &volume, moment::BY_PLAY)?,
        false => (held_from(&volume), volume.length_bytes),
    };
    let began = Instant::now();
    let target = Target::new(Some(&args.file), args.overwrite);
    let path = target.path;
    target.may_be_written()?;
    // Whoever reads standard output is interrupted with this.
    let stop = path.map_or_else(Arc::default, |_| interruption());
    let (bytes, unread, stream, at) = match args.rate {
        Some(rate) => {
            let part = (start, end);
            let (bytes, stream, at) = under_contract(&client, &volume, part, rate, &target, &stop)?;
            (bytes, Bytes::ZERO, Some(stream), at)
        }
        None => {
            let from = client.best_effort(&args.volume)?;
            let mut out = target.open()?;
            let progress = Progress::new(Some(end - start));
            let copied = copy(from, (start, end), &mut out, &progress, &stop);
            progress.finish();
            let (bytes, unread) = copied.map_err(|failed| failed.told(path))?;
            (bytes, unread, None, start + bytes)
        }
    };
    if let Some(path) = path.filter(|_| at < end && stop.load(Ordering::Relaxed)) {
        return Err(interrupted(path, &volume.name, bytes, (at, end)));
    }
    let elapsed = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let gap_bytes = stream.as_ref().map_or(unread.get(), |stream| stream.gap_bytes.get());
    let (start_bytes, bytes, is_ring) = (start.get(), bytes.get(), volume.ring.is_some());
    let told = Exported { volume: volume.name, start_bytes, bytes, gap_bytes, elapsed_ns: elapsed };
    let text = if common.json { json(&told) } else { told.line() };
    match path {
        Some(_) => output::print(text.as_bytes())?,
        None => eprint!("{text}"), // standard output has the bytes
    }
    if !unread.is_zero() {
        return Err(unreadable::zeros(unread));
    }
    let gaps = stream.filter(|stream| !stream.gap_bytes.is_zero());
    gaps.map_or(Ok(()), |stream| Err(play::missing(&stream, is_ring)))
}

impl Exported {
    fn line(&self) -> String {
        let (bytes, start) = (Bytes::new(self.bytes), Bytes::new(self.start_bytes));
        let took = Duration::from_nanos(self.elapsed_ns);
        format!("exported {bytes} of {} from offset {start} in {took}\n", self.volume)
    }
}

/// The file has a part: how much that is, and how the rest, from `at` to `end`, comes behind it.
fn interrupted(path: &Path, volume: &str, bytes: Bytes, (at, end): (Bytes, Bytes)) -> Failure {
    let (quoted, to) = (report::quoted(volume), report::quoted(&path.to_string_lossy()));
    let (start, length) = (at.get(), (end - at).get());
    let next = format!(
        "begin again with --overwrite; or add the rest: `slackline play {quoted} --rate RATE --start \
         {start} --length {length} >> {to}`"
    );
    Failure::new(format!("interrupted: {} has the first {bytes}", path.display()), next)
}

/// Gives what was copied, the daemon's account of it, and where it ended.
fn under_contract(
    client: &Client,
    volume: &Volume,
    (start, end): (Bytes, Bytes),
    rate: Rate,
    target: &Target<'_>,
    stop: &AtomicBool,
) -> Result<(Bytes, Stream, Bytes), Failure> {
    let contract = ContractArgs { rate, block: None, burst: None, miss: None };
    let contract = contract.on(client, &volume.name, Mode::Read)?;
    let (mut reader, _) = client.reader_early(&volume.name, contract, start)?;
    let mut out = target.open()?;
    let progress = Progress::new(Some(end - start));
    let is_ring = volume.ring.is_some();
    let part =
        play::Part { path: target.path, length: Some(end - start), is_ring, stop: Some(stop) };
    let copied = play::copy(&part, &mut reader, &mut out, &progress);
    progress.finish();
    let bytes = copied?;
    let (stream, at) = (client.stream(reader.stream())?, reader.offset());
    reader.close()?;
    Ok((bytes, stream, at))
}

/// Why a copy ended.
enum Failed {
    Read(client::Error),
    Write(io::Error),
}

impl Failed {
    fn told(self, path: Option<&Path>) -> Failure {
        match self {
            Self::Read(error) => error.into(),
            Self::Write(error) => unwritten(path, &error),
        }
    }
}

/// Copies it, and gives how much that is, and how much of it could not be read and is zeros; ends also where
/// nobody takes it any more, or it is to stop.
fn copy(
    mut from: BestEffort,
    (start, end): (Bytes, Bytes),
    out: &mut Sink,
    progress: &Progress,
    stop: &AtomicBool,
) -> Result<(Bytes, Bytes), Failed> {
    let stops = crate::pausing::Stops::new();
    let (mut at, mut unread) = (start, Bytes::ZERO);
    while at < end && !stop.load(Ordering::Relaxed) {
        let len = PIECE.min(end - at);
        let mut piece = vec![0; len.round_up(Bytes::kib(4)).as_usize()];
        unread += unreadable::read(&mut from, at, &mut piece).map_err(Failed::Read)?.min(len);
        match out.put(&piece[..len.as_usize()], &stops, || ()) {
            Ok(()) => at += len,
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => break,
            Err(error) => return Err(Failed::Write(error)),
        }
        progress.at(at - start);
    }
    Ok((at - start, unread))
}
