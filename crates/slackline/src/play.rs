//! `slackline play`: bytes out, under contract.

use crate::contract::ContractArgs;
use crate::failure::Failure;
use crate::output::json;
use crate::progress::Progress;
use crate::summary::Summary;
use crate::{Common, output};
use client::control::Mode;
use client::{Piece, Reader};
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Instant;
use units::Bytes;

/// Read a volume, or an ordinary file, under contract.
///
/// A VOLUME that begins with /, ./ or ../ is the path of a file on ext4 or xfs. Others use its
/// device as well, so that the promise is a weaker one: what can disturb it is said first.
///
/// Writes to standard output, or FILE, up to the end of what is recorded. Bytes
/// that a disk has lost come as zeros, and are counted; the command then ends
/// with 1.
#[derive(clap::Args)]
pub struct Args {
    /// The volume, or the path of a file
    volume: String,
    /// Where the bytes go [default: standard output]
    file: Option<PathBuf>,
    #[command(flatten)]
    contract: ContractArgs,
    /// The volume offset to start from: its bytes come first, and as soon as they are there
    #[arg(long, value_name = "OFFSET", default_value = "0")]
    start: Bytes,
    /// Stop after so much
    #[arg(long, value_name = "SIZE")]
    length: Option<Bytes>,
}

/// Longest piece that is asked for at once: what one frame carries.
const PIECE: usize = wire::frame::BODY_MAX;

/// Runs it.
pub fn run(args: &Args, common: &Common) -> Result<(), Failure> {
    let client = common.client()?;
    // A volume's name may have slashes within.
    let is_file = ["/", "./", "../"].iter().any(|begin| args.volume.starts_with(begin));
    if is_file && args.contract.miss.is_some() {
        let text = "a file outside the pool has no odds of being late".to_owned();
        return Err(Failure::usage(text, "leave --miss away, or play a volume"));
    }
    let (recorded, mut reader) = if is_file {
        let opened = client.file_open(&args.volume, args.contract.on_file(), args.start)?;
        opened.notes.iter().for_each(|note| eprintln!("slackline: note: {note}"));
        (opened.length_bytes, client.attach_reader(opened.id)?)
    } else {
        let recorded = client.volume(&args.volume)?.length_bytes;
        let contract = args.contract.on(&client, &args.volume, Mode::Read)?;
        // Whoever takes the bytes has no clock of ours: they go out as soon as they are there.
        let reader = args.contract.client(&client);
        (recorded, reader.reader_early(&args.volume, contract, args.start)?.0)
    };
    let left = recorded.saturating_sub(args.start);
    let total = args.length.map_or(left, |length| length.min(left));
    // Only now: what is refused must not empty a file.
    let mut out: Box<dyn Write> = match &args.file {
        Some(path) => Box::new(File::create(path).map_err(|error| Failure::file(path, &error))?),
        None => Box::new(io::stdout().lock()),
    };
    let (began, progress) = (Instant::now(), Progress::new(Some(total)));
    let copied = copy(args, &mut reader, &mut *out, &progress);
    progress.finish();
    let bytes = copied?;
    let summary = Summary::new("play", &client.stream(reader.stream())?, args.start, bytes, began);
    reader.close()?;
    let text = if common.json { json(&summary) } else { summary.line() };
    match &args.file {
        Some(_) => output::print(text.as_bytes())?,
        None => eprint!("{text}"), // standard output has the bytes
    }
    if summary.gap_bytes == 0 {
        return Ok(());
    }
    let what = format!("{} could not be read and came as zeros", Bytes::new(summary.gap_bytes));
    Err(Failure::new(what, "`slackline pool status` counts the errors of each disk"))
}

/// Copies until the end, or until the other side of standard output has gone.
fn copy(
    args: &Args,
    reader: &mut Reader,
    out: &mut dyn Write,
    progress: &Progress,
) -> Result<Bytes, Failure> {
    let mut piece = vec![0; PIECE];
    let mut done = Bytes::ZERO;
    loop {
        let left = args.length.map_or(Bytes::MAX, |length| length.saturating_sub(done));
        let want = usize::try_from(left.get()).unwrap_or(PIECE).min(PIECE);
        if want == 0 {
            break;
        }
        let written = match reader.next_piece(&mut piece[..want])? {
            Piece::Data(len) => {
                done += Bytes::new(len as u64);
                out.write_all(&piece[..len])
            }
            Piece::Gap { len, .. } => {
                let len = len.min(left);
                done += len;
                zeros(out, len)
            }
            Piece::End => break,
        };
        match written {
            Ok(()) => progress.at(done),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(done),
            Err(error) => return Err(unwritten(args, &error)),
        }
    }
    out.flush().map_err(|error| unwritten(args, &error))?;
    Ok(done)
}

fn unwritten(args: &Args, error: &io::Error) -> Failure {
    match &args.file {
        Some(path) => Failure::file(path, error),
        None => Failure::new(format!("standard output: {error}"), "correct where it goes"),
    }
}

fn zeros(out: &mut dyn Write, len: Bytes) -> io::Result<()> {
    let mut zeros = io::Read::take(io::repeat(0), len.get());
    io::copy(&mut zeros, out).map(drop)
}
