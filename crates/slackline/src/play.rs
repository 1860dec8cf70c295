//! `slackline play`: bytes out, under contract.

use crate::contract::ContractArgs;
use crate::failure::Failure;
use crate::moment::Between;
use crate::output::json;
use crate::pausing::{PAUSE, Sink, Stops};
use crate::progress::Progress;
use crate::summary::Summary;
use crate::target::{Target, unwritten};
use crate::{Common, output};
use client::control::{Mode, Stream};
use client::{Piece, Reader};
use report::quoted;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use units::Bytes;

/// Read a volume, or an ordinary file, under contract.
///
/// A VOLUME that begins with /, ./ or ../ is the path of a file on ext4 or xfs. Others use its
/// device as well, so that the promise is a weaker one: what can disturb it is said first.
///
/// Writes to standard output, or FILE, up to the end of what is recorded. While the volume is being
/// recorded it follows the recording, until that ends: --length, --for or --to end it sooner. Bytes
/// that a disk has lost come as zeros, and are counted; the command then ends
/// with 1. Of a ring they are left out: what it gave up before it was played is gone, and would come
/// as many hours of zeros. A FILE that has data already is left alone unless --overwrite is given.
///
/// With --from it begins with what was recorded at that time, and --for or --to say where it ends. A
/// time before the recording or in a pause of it is said, and it begins where the recording goes on.
///
/// Where nobody takes what it writes, or it is stopped with ctrl-Z, the daemon is told: its contract
/// stays, for a day at the most. A program that is stopped by SIGSTOP cannot tell, and loses it
/// after the daemon's `keep_alive`.
#[derive(clap::Args)]
pub struct Args {
    /// The volume, or the path of a file
    volume: String,
    /// Where the bytes go; - is standard output [default: standard output]
    file: Option<PathBuf>,
    /// Write over FILE where it has data already
    #[arg(long)]
    overwrite: bool,
    #[command(flatten)]
    contract: ContractArgs,
    /// The volume offset to start from: its bytes come first, and as soon as they are there
    /// [default: the beginning, of a ring that of what it holds]
    #[arg(long, value_name = "OFFSET", value_parser = in_bytes, conflicts_with_all = ["from", "to"])]
    start: Option<Bytes>,
    /// Stop after so much
    #[arg(long, value_name = "SIZE", value_parser = in_bytes, conflicts_with_all = ["to", "for"])]
    length: Option<Bytes>,
    #[command(flatten)]
    between: Between,
}

/// A place or a length in a volume: other programs, and this one's `--json`, count these in bytes, so
/// that a number may stand without a unit.
fn in_bytes(text: &str) -> Result<Bytes, units::ParseError> {
    match text.bytes().all(|byte| byte.is_ascii_digit()) && !text.is_empty() {
        true => format!("{text}B").parse(),
        false => text.parse(),
    }
}

/// Longest piece that is asked for at once: what one frame carries.
const PIECE: usize = wire::frame::BODY_MAX;

/// Runs it.
pub fn run(args: &Args, common: &Common) -> Result<(), Failure> {
    let target = Target::new(args.file.as_deref(), args.overwrite);
    if target.path.is_none() {
        let name = quoted(&args.volume);
        not_to_a_terminal(&format!("slackline play {name} --rate RATE | ffplay -"))?;
    }
    target.may_be_written()?;
    let client = common.client()?;
    // A volume's name may have slashes within.
    let is_file = ["/", "./", "../"].iter().any(|begin| args.volume.starts_with(begin));
    if is_file && args.contract.miss.is_some() {
        let text = "a file outside the pool has no odds of being late".to_owned();
        return Err(Failure::usage(text, "leave --miss away, or play a volume"));
    }
    if is_file && args.between.is_given() {
        let text = "when a file outside the pool was recorded is not known".to_owned();
        return Err(Failure::usage(text, "leave --from and --to away, or play a volume"));
    }
    let (mut asked, mut length) = (args.start, args.length);
    let (recorded, is_ring, mut reader) = if is_file {
        let opened =
            client.file_open(&args.volume, args.contract.on_file(), asked.unwrap_or_default())?;
        opened.notes.iter().for_each(|note| eprintln!("slackline: note: {note}"));
        (opened.length_bytes, false, client.attach_reader(opened.id)?)
    } else {
        let volume = client.volume(&args.volume).map_err(|error| no_volume(error, args))?;
        if args.between.is_given() {
            let (from, to) =
                args.between.places(&client, &volume, "name a place with --start OFFSET")?;
            (asked, length) =
                (Some(from), Some(length.map_or(to - from, |most| most.min(to - from))));
        }
        let (recorded, is_ring) = (volume.length_bytes, volume.ring.is_some());
        let contract = args.contract.on(&client, &args.volume, Mode::Read)?;
        // Whoever takes the bytes has no clock of ours: they go out as soon as they are there.
        let by = args.contract.client(&client);
        let reader = match asked {
            Some(start) => by.reader_early(&args.volume, contract, start)?,
            None => by.reader_of_all(&args.volume, contract)?,
        };
        (recorded, is_ring, reader.0)
    };
    // Of a ring it is where what that holds begins, where nothing else is asked for.
    let start = reader.offset();
    let left = recorded.saturating_sub(start);
    let total = length.map_or(left, |length| length.min(left));
    let mut out = target.open()?;
    let (began, progress) = (Instant::now(), Progress::new(Some(total)));
    let part = Part { path: target.path, length, is_ring, stop: None };
    let copied = copy(&part, &mut reader, &mut out, &progress);
    progress.finish();
    let bytes = copied?;
    let stream = client.stream(reader.stream())?;
    let mut summary = Summary::new("play", &args.volume, start, bytes, began);
    summary.count(&stream);
    reader.close()?;
    let text = if common.json { json(&summary) } else { summary.line() };
    match target.path {
        Some(_) => output::print(text.as_bytes())?,
        None => eprint!("{text}"), // standard output has the bytes
    }
    if stream.gap_bytes.is_zero() {
        return Ok(());
    }
    Err(missing(&stream, is_ring))
}

/// What of a stream did not come. Of a ring it is left out, since its offsets only grow.
pub fn missing(stream: &Stream, is_ring: bool) -> Failure {
    const ERRORS: &str = "`slackline pool status` counts the errors of each disk";
    let lost = match is_ring {
        true => format!("{} could not be read and were left out", stream.lost()),
        false => format!("{} could not be read and came as zeros", stream.lost()),
    };
    if stream.overtaken_bytes.is_zero() {
        return Failure::new(lost, ERRORS);
    }
    let gone = format!("{} were left out: the ring had given them up", stream.overtaken_bytes);
    let next = "play at a larger rate than it is recorded at";
    match stream.lost().is_zero() {
        true => Failure::new(gone, next),
        false => Failure::new(format!("{gone}; {lost}"), format!("{next}; {ERRORS}")),
    }
}

/// Refuses where bytes would go to a person's terminal, which takes some of them for orders.
pub fn not_to_a_terminal(instead: &str) -> Result<(), Failure> {
    if !io::stdout().is_terminal() {
        return Ok(());
    }
    let what = "the bytes would go to the terminal";
    Err(Failure::usage(what, format!("name a FILE, or a program that takes them: `{instead}`")))
}

/// Why a volume is not played; a file of that name is called otherwise.
fn no_volume(error: client::Error, args: &Args) -> Failure {
    let is_file = error.code() == Some(client::Code::NoSuchVolume)
        && std::path::Path::new(&args.volume).is_file();
    let mut failure = Failure::from(error);
    if is_file {
        failure.next_step =
            format!("to play the file of that name: `slackline play ./{}`", quoted(&args.volume));
    }
    failure
}

/// What is copied, and where to.
pub struct Part<'a> {
    /// Standard output, where there is none.
    pub path: Option<&'a Path>,
    /// To the end of what is recorded, where there is none.
    pub length: Option<Bytes>,
    /// What it has given up is left out; what is lost of others comes as zeros.
    pub is_ring: bool,
    /// Set where it is to end; whoever has none ends with the process.
    pub stop: Option<&'a AtomicBool>,
}

/// Copies until the end, until the other side of standard output has gone, or until it is to stop. Gives
/// what went out.
pub fn copy(
    part: &Part<'_>,
    reader: &mut Reader,
    out: &mut Sink,
    progress: &Progress,
) -> Result<Bytes, Failure> {
    let (mut piece, stops) = (vec![0; PIECE], Stops::new());
    // What cannot be said is told with the next bytes.
    let pause = |reader: &mut Reader| drop(reader.pause(PAUSE));
    let (mut done, mut went_out) = (Bytes::ZERO, Bytes::ZERO);
    loop {
        let left = part.length.map_or(Bytes::MAX, |length| length.saturating_sub(done));
        let want = usize::try_from(left.get()).unwrap_or(PIECE).min(PIECE);
        let stops_here = part.stop.is_some_and(|stop| stop.load(Ordering::Relaxed));
        if want == 0 || stops_here {
            break;
        }
        let written = match reader.next_piece(&mut piece[..want])? {
            Piece::Data(len) => {
                done += Bytes::new(len as u64);
                went_out += Bytes::new(len as u64);
                out.put(&piece[..len], &stops, || pause(reader))
            }
            Piece::Gap { len, .. } => {
                let len = len.min(left);
                done += len;
                let zero = if part.is_ring { Bytes::ZERO } else { len };
                went_out += zero;
                zeros(zero, |zeros| out.put(zeros, &stops, || pause(reader)))
            }
            Piece::End => break,
        };
        match written {
            Ok(()) => progress.at(done),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(went_out),
            Err(error) => return Err(unwritten(part.path, &error)),
        }
    }
    Ok(went_out)
}

fn zeros(len: Bytes, mut put: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
    let (zeros, mut left) = ([0; 64 << 10], len.get());
    while left > 0 {
        let now = left.min(zeros.len() as u64);
        put(&zeros[..now as usize])?;
        left -= now;
    }
    Ok(())
}
