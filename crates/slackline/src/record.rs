//! `slackline record`: bytes in, under contract.
//!
//! Invariant: a durable offset is told only after the daemon has said that
//! everything before it is on the medium.

use crate::appending::writer_at;
use crate::contract::{ContractArgs, thin_placement};
use crate::failure::Failure;
use crate::interrupts::interruption;
use crate::output::json;
use crate::pausing::{PAUSE, SILENT, Stops};
use crate::progress::Progress;
use crate::slow::Due;
use crate::source::{Input, Source};
use crate::summary::Summary;
use crate::volume::rounded;
use crate::{Common, output};
use client::control::{Mode, VolumeCreate};
use client::{Client, Code, Durability, Error, Writer};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use units::Bytes;

/// Write a volume under contract.
///
/// Reads standard input, or FILE, to its end. A volume that has data already is
/// left alone unless --append or --overwrite says what to do with it; a ring is gone on with at its
/// end. An
/// interrupt ends the recording in order: what was read is written and synced.
/// What fills its blocks slowly is durable some 10 s after it came all the same. Where the daemon ends, this ends
/// at once, with what is durable by then: --append goes on behind that. `slackline cameras` keeps what comes
/// meanwhile, and goes on by itself.
/// Where a program behind a pipe makes more than the contract lets pass, it may lose what nobody
/// takes meanwhile: that is told at the end, and the exit code is 4 (--copy says that it waits). Where the input brings nothing, or this is stopped with ctrl-Z,
/// the daemon is told: the contract stays, for a day at the most. A program that is stopped by
/// SIGSTOP cannot tell, and loses it after the daemon's `keep_alive`.
#[derive(clap::Args)]
pub struct Args {
    /// The volume
    volume: String,
    /// What to record; - is standard input [default: standard input]
    file: Option<PathBuf>,
    #[command(flatten)]
    contract: ContractArgs,
    /// Make the volume with this size if there is none of its name; one that exists stays as it is
    #[arg(long, value_name = "SIZE")]
    create: Option<Bytes>,
    /// With --create: make a ring, which gives up its oldest bytes and is never full. On a volume
    /// that exists: it has to be one
    #[arg(long, conflicts_with = "overwrite")]
    ring: bool,
    /// With --create: take space when it is written, and reserve nothing; SIZE is a limit then
    #[arg(long, requires = "create")]
    thin: bool,
    /// With --create and --ring: give up what was recorded so long ago also where there is room for
    /// it, for example 14d or 12h
    #[arg(long, requires_all = ["create", "ring"], value_name = "AGE")]
    keep: Option<units::Duration>,
    /// Make the volume larger as it fills, up to this size: a minute of the contract at a time.
    /// Nothing is reserved before it is needed, and so nothing is promised: where the pool is full
    /// by then, the recording ends there
    #[arg(long, value_name = "SIZE", conflicts_with = "ring")]
    grow_to: Option<Bytes>,
    /// At the end, give back the space of the volume in which nothing is recorded
    #[arg(long, conflicts_with = "ring")]
    trim: bool,
    /// Go on behind what is recorded
    #[arg(long, conflicts_with = "overwrite")]
    append: bool,
    /// Write over what is recorded, from the start
    #[arg(long)]
    overwrite: bool,
    /// The input is a copy of something: it waits until its bytes are taken, and loses nothing. It is no
    /// failure then that the contract slows it, and `slackline status` does not warn of it. A
    /// regular file is one without this
    #[arg(long)]
    copy: bool,
    /// Write every durable offset to this file as it comes, a line each
    #[arg(long, value_name = "PATH")]
    ack_file: Option<PathBuf>,
    /// Print every durable offset as it comes, a JSON object a line
    #[arg(long)]
    json_progress: bool,
}

/// How often to look for an interrupt while the input is silent.
const LOOK_UP: Duration = Duration::from_millis(100);

/// Runs it.
pub fn run(args: &Args, common: &Common) -> Result<(), Failure> {
    if let (Some(create), Some(grow_to)) = (args.create, args.grow_to)
        && grow_to < create
    {
        let what = format!("--grow-to {grow_to} is less than --create {create}");
        return Err(Failure::usage(
            what,
            "let it grow to more than it is made with, or leave one out",
        ));
    }
    let client = common.client()?;
    let (input, total) = open_input(args)?;
    let holds = if input.loses() { client.clone() } else { client.buffered() };
    let (mut writer, start) = open(args, &holds)?;
    // Another volume may come to have its name.
    let to_trim = args.trim.then(|| client.volume(&args.volume)).transpose()?;
    let acknowledging = acknowledge(args, writer.durability(), start)?;
    let (began, progress) = (Instant::now(), Progress::new(total));
    let interrupted = interruption();
    // From here on: what the source waits for before is not the contract's doing.
    let source = Source::begin(input);
    let copied = copy(&source, &mut writer, start, &progress, &interrupted);
    let slowed = copied.as_ref().map_or(None, |&sent| source.slowed(sent));
    let (summary, finished) = finish(&client, writer, &args.volume, start, began);
    progress.finish();
    let durable = Bytes::new(summary.durable_bytes.unwrap_or_default()).saturating_sub(start);
    let copied = copied.map_err(|why| why.told(args, durable));
    let finished = finished.map_err(|error| Failed::Daemon(error).told(args, durable));
    let acknowledged =
        acknowledging.map_or(Ok(()), |thread| thread.join().expect("no panic while acknowledging"));
    // Also what came before a failure is kept, and the rest given back.
    let trimmed = to_trim.map_or(Ok(()), |volume| trim(&client, &volume.by_number()));
    // Whatever failed: how much is on the medium is told.
    let text = if common.json { json(&summary) } else { summary.line() };
    let printed = output::print(text.as_bytes());
    // The first failure is the one to tell; a closed stream tells it once more.
    copied.map(drop).and(finished).and(acknowledged).and(trimmed).and(printed)?;
    slowed.map_or(Ok(()), |slowed| Err(slowed.failure()))
}

/// A writer that stands at the offset where the recording starts.
fn open(args: &Args, client: &Client) -> Result<(Writer, Bytes), Failure> {
    let (start, made) = prepare_volume(args, client)?;
    let writer = open_at(args, client, start);
    if writer.is_err() && made {
        // A refusal leaves things as they were.
        client.volume_delete(&args.volume)?;
    }
    Ok((writer?, start))
}

fn open_at(args: &Args, client: &Client, start: Bytes) -> Result<Writer, Failure> {
    let contract = args.contract.on(client, &args.volume, Mode::Write)?;
    let client = args.contract.client(client);
    let (writer, lost) = writer_at(&client, &args.volume, contract, start, args.grow_to)?;
    if !lost.is_zero() {
        eprintln!(
            "slackline: warning: {lost} of what was recorded before could not be read, and are zeros now: \
             `slackline pool status` counts the errors of each disk"
        );
    }
    Ok(writer)
}

/// Gives back the space in which nothing is recorded.
fn trim(client: &Client, by_number: &str) -> Result<(), Failure> {
    let volume = client.volume(by_number)?;
    client.volume_resize(by_number, volume.length_bytes).map(drop).map_err(|error| {
        let what =
            format!("what was recorded is kept, but its volume was not made smaller: {error}");
        let quoted = report::quoted(&volume.name);
        Failure::new(
            what,
            format!("try again: slackline volume resize {quoted} {}", volume.length_bytes.get()),
        )
    })
}

fn open_input(args: &Args) -> Result<(Input, Option<Bytes>), Failure> {
    let of = |input: Input| if args.copy { input.waiting() } else { input };
    let Some(path) = args.file.as_deref().filter(|path| *path != Path::new("-")) else {
        return Ok((of(Input::standard()), None));
    };
    let file = File::open(path).map_err(|error| Failure::file(path, &error))?;
    let metadata = file.metadata().map_err(|error| Failure::file(path, &error))?;
    if metadata.is_dir() {
        return Err(Failure::new(
            format!("{} is a directory", path.display()),
            "name a file, or - for standard input",
        ));
    }
    let size = metadata.len();
    Ok((of(Input::file(file)), (size > 0).then(|| Bytes::new(size))))
}

/// Makes the volume where that was asked for, and finds where to start on it;
/// says whether it was made.
fn prepare_volume(args: &Args, client: &Client) -> Result<(Bytes, bool), Failure> {
    let name = &args.volume;
    let volume = match (client.volume(name), args.create) {
        (Err(error), Some(size)) if error.code() == Some(Code::NoSuchVolume) => {
            let ring = args.ring;
            let keep_ns = args.keep;
            let new = VolumeCreate::new(name, size);
            let placement = thin_placement(args.thin);
            let made = client.volume_create(&VolumeCreate { ring, keep_ns, placement, ..new })?;
            if let Some(note) = rounded(&made, size) {
                eprintln!("slackline: note: {note}");
            }
            return Ok((Bytes::ZERO, true));
        }
        (Err(error), None) if error.code() == Some(Code::NoSuchVolume) => {
            let mut failure = Failure::from(error);
            let quoted = report::quoted(name);
            failure.next_step = format!(
                "make it with `slackline volume create {quoted} --size SIZE`, or add --create SIZE"
            );
            return Err(failure);
        }
        (volume, _) => volume?,
    };
    if let Some(asked) = args.create.filter(|asked| *asked != volume.size_bytes) {
        let size = volume.size_bytes;
        eprintln!(
            "slackline: note: volume {name} exists with {size}: --create {asked} changes nothing \
             (`slackline volume resize` does)"
        );
    }
    match (volume.ring.is_some(), args.overwrite) {
        (true, true) => {
            return Err(Failure::new(
                format!("volume {name} is a ring, whose offsets only grow"),
                "leave --overwrite away: what is recorded goes on at its end",
            ));
        }
        (true, false) => return Ok((volume.length_bytes, false)),
        (false, _) if args.ring => {
            return Err(Failure::new(
                format!("volume {name} is no ring"),
                "leave --ring away, or record to another name",
            ));
        }
        (false, _) => {}
    }
    if volume.length_bytes.is_zero() || args.overwrite {
        return Ok((Bytes::ZERO, false));
    }
    if args.append {
        return Ok((volume.length_bytes, false));
    }
    Err(Failure::new(
        format!("volume {name} has {} recorded", volume.length_bytes),
        "add --append to go on behind it, or --overwrite to write over it",
    ))
}

/// Why a recording ended before its input did.
enum Failed {
    Input(io::Error),
    Daemon(Error),
}

impl Failed {
    /// What is told of it, where so much of the recording is on the medium.
    fn told(self, args: &Args, durable: Bytes) -> Failure {
        use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
        let gone = [BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof];
        match self {
            Self::Input(error) => Failure::new(
                format!("the input cannot be read: {error}"),
                "what was read before it is recorded",
            ),
            Self::Daemon(Error::Broken(cause)) if gone.contains(&cause.kind()) => {
                let quoted = report::quoted(&args.volume);
                let again = if args.overwrite {
                    format!("record it again, or go on with `slackline record {quoted} --append`")
                } else {
                    format!("go on with `slackline record {quoted} --append`")
                };
                let next = format!(
                    "{durable} of this recording are durable; start the daemon again (`systemctl start \
                     slackline`, or `slackline serve DEVICE...`) and {again}; `slackline cameras` keeps \
                     what comes meanwhile and goes on by itself"
                );
                Failure { next_step: next, ..Error::Broken(cause).into() }
            }
            Self::Daemon(error) => error.into(),
        }
    }
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self::Daemon(error)
    }
}

fn copy(
    source: &Source,
    writer: &mut Writer,
    start: Bytes,
    progress: &Progress,
    interrupted: &AtomicBool,
) -> Result<Bytes, Failed> {
    let (mut sent, stops) = (Bytes::ZERO, Stops::new());
    // Since when the source has brought nothing; none where that was told.
    let mut silent = Some(Instant::now());
    let mut due = Due::new(Instant::now(), writer.durable());
    loop {
        // While the window has room nothing else says that the daemon has gone.
        writer.check()?;
        let (now, durable) = (Instant::now(), writer.durable());
        if due.is_due(now, durable, writer.accepted() > durable) {
            // The source goes on meanwhile, and so does this.
            writer.sync_soon()?;
            due.asked(now, durable);
        }
        // What cannot be said is told with the next bytes.
        stops.heed(|| drop(writer.pause(PAUSE)));
        if silent.is_some_and(|since| since.elapsed() >= Duration::from_nanos(SILENT.as_nanos())) {
            let _ = writer.pause(PAUSE);
            silent = None;
        }
        let piece = match source.pieces.recv_timeout(LOOK_UP) {
            Ok(piece) => piece.map_err(Failed::Input)?,
            Err(RecvTimeoutError::Timeout) if interrupted.load(Ordering::Relaxed) => break,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => break,
        };
        writer.write_all(&piece).map_err(Error::from)?;
        sent += Bytes::new(piece.len() as u64);
        silent = Some(Instant::now());
        progress.at(sent);
        progress.say(format!("({} durable)", writer.durable().saturating_sub(start)));
        if interrupted.load(Ordering::Relaxed) {
            break;
        }
    }
    writer.flush().map_err(Error::from)?;
    Ok(sent)
}

/// Syncs, takes the daemon's account of the stream, and closes it. What is known of it is told also
/// where that fails, as beside a daemon that has ended.
fn finish(
    client: &Client,
    mut writer: Writer,
    volume: &str,
    start: Bytes,
    began: Instant,
) -> (Summary, Result<(), Error>) {
    let asked = writer.sync().and_then(|_| client.stream(writer.stream()));
    // A writer that failed at once may be behind what was there before.
    let (accepted, durable) = (writer.accepted().max(start), writer.durable().max(start));
    let mut summary = Summary::new("record", volume, start, accepted - start, began);
    (summary.accepted_bytes, summary.durable_bytes) = (Some(accepted.get()), Some(durable.get()));
    let finished = asked.and_then(|stream| {
        summary.count(&stream);
        let closed = writer.close()?;
        summary.durable_bytes = Some(closed.max(start).get());
        Ok(())
    });
    (summary, finished)
}

/// Tells every durable offset as it comes, on a thread of its own, until the
/// writer has ended.
fn acknowledge(
    args: &Args,
    durability: Durability,
    start: Bytes,
) -> Result<Option<JoinHandle<Result<(), Failure>>>, Failure> {
    let mut file = match &args.ack_file {
        Some(path) => Some(File::create(path).map_err(|error| Failure::file(path, &error))?),
        None => None,
    };
    let (path, json_progress) = (args.ack_file.clone(), args.json_progress);
    if file.is_none() && !json_progress {
        return Ok(None);
    }
    let tell = move || {
        let mut told = start;
        while let Some(upto) = durability.wait(told) {
            told = upto;
            if let (Some(file), Some(path)) = (&mut file, &path) {
                // A File has no buffer of its own: the line is with the system at once.
                let line = format!("{}\n", upto.get());
                file.write_all(line.as_bytes()).map_err(|error| Failure::file(path, &error))?;
            }
            if json_progress {
                output::print(format!("{{\"durable_bytes\":{}}}\n", upto.get()).as_bytes())?;
            }
        }
        Ok(())
    };
    Ok(Some(std::thread::spawn(tell)))
}
