//! `slackline disk emulate`: a drive model as a file, in real time.
//!
//! Invariant: the mount is gone when the command ends, however it ends, but by
//! SIGKILL.

use crate::Common;
use crate::failure::Failure;
use ::disk::Model;
use emulator::{Emulator, Error, Order, Status};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Once};
use std::time::Duration;
use units::Bytes;

/// How often signals and the threads are looked at.
const TICK: Duration = Duration::from_millis(50);

/// What to emulate, and where.
#[derive(clap::Args)]
pub struct Args {
    /// A model's name (see `slackline disk models`), or a file with a model
    #[arg(value_name = "MODEL|FILE")]
    model: String,
    /// Mount on this directory; made where it is missing
    #[arg(long, value_name = "DIR")]
    mount: PathBuf,
    /// How large a disk, scaled down with all its zones [default: the size of the
    /// backing file, else that of the model]
    #[arg(long, value_name = "SIZE")]
    size: Option<Bytes>,
    /// Keep the bytes in this file, made where it is missing [default: in memory]
    #[arg(long, value_name = "FILE")]
    backing: Option<PathBuf>,
    /// Writes end before they are on the medium; a power cut takes them back until
    /// they are flushed
    #[arg(long)]
    write_back: bool,
    /// Let the orders `short` be given for writes, too; the kernel then sends what one
    /// thread asks for one after the other
    #[arg(long)]
    short_transfers: bool,
    /// How many commands the drive takes in at once, to order them by itself
    /// [default: as the model]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    depth: Option<u16>,
    /// A fault from the start, as in the control file; may be repeated
    #[arg(long, value_name = "ORDER")]
    fault: Vec<String>,
    /// Seed of all that varies in the drive [default: as the model]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Do not ask for real-time priority
    #[arg(long)]
    no_realtime: bool,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::new(error.to_string(), error.next_step())
    }
}

/// Runs it, until a signal or an unmount.
pub fn run(args: &Args, common: &Common) -> Result<(), Failure> {
    let orders: Result<Vec<Order>, String> = args.fault.iter().map(|text| text.parse()).collect();
    let orders = orders.map_err(|error| Failure::usage(error, "correct --fault"))?;
    let options = emulator::Options {
        model: model(args)?,
        directory: args.mount.clone(),
        backing: args.backing.clone(),
        write_back: args.write_back,
        short_transfers: args.short_transfers,
        depth: args.depth.map(usize::from),
        orders,
        on_thread: if args.no_realtime { || () } else { keep_time },
    };
    let signals = count_signals()?;
    let mut emulator = Emulator::start(&options)?;
    eprintln!(
        "{}: {}",
        emulator.file().display(),
        emulator.status().text().lines().next().unwrap_or_default()
    );
    let ended = serve(&mut emulator, &signals);
    let status = emulator.status();
    drop(emulator);
    common.output().result(&status.json(), |_| Status::text(&status))?;
    Ok(ended?)
}

/// Gets a thread of the emulator real-time priority; says once where it cannot.
fn keep_time() {
    static TOLD: Once = Once::new();
    if let Err(error) = engine::keep_time() {
        TOLD.call_once(|| {
            eprintln!("warning: no real-time priority ({error}); answers may be late");
        });
    }
}

/// The model, of the size that was asked for.
fn model(args: &Args) -> Result<Model, Failure> {
    let wrong = |error: ::disk::Error| {
        Failure::new(error.to_string(), "see `slackline disk models`, or docs/disks.md for a file")
    };
    let path = Path::new(&args.model);
    let model = if path.is_file() {
        let text = std::fs::read_to_string(path).map_err(|error| Failure::file(path, &error))?;
        Model::parse(&text).map_err(wrong)?
    } else {
        Model::named(&args.model).map_err(wrong)?
    };
    let there = args.backing.as_ref().and_then(|path| std::fs::metadata(path).ok());
    let there = there.map(|metadata| Bytes::new(metadata.len())).filter(|size| !size.is_zero());
    let model = match args.size.or(there) {
        Some(size) if size > model.capacity() => {
            let what = format!("{} holds {}, and no more", model.name(), model.capacity());
            return Err(Failure::usage(what, "give a smaller --size"));
        }
        Some(size) => model.scaled(size).map_err(wrong)?,
        None => model,
    };
    Ok(args.seed.map_or_else(|| model.clone(), |seed| model.clone().with_seed(seed)))
}

/// How many signals to end have come.
fn count_signals() -> Result<Arc<AtomicUsize>, Failure> {
    let count = Arc::new(AtomicUsize::new(0));
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM])
        .map_err(|error| Failure::new(format!("signals: {error}"), ""))?;
    let counted = Arc::clone(&count);
    std::thread::spawn(move || {
        signals.forever().for_each(|_| {
            counted.fetch_add(1, Ordering::Relaxed);
        });
    });
    Ok(count)
}

/// Waits for the end: the first signal unmounts as soon as nobody uses the disk, the
/// second at once.
fn serve(emulator: &mut Emulator, signals: &AtomicUsize) -> Result<(), Error> {
    let mut told = false;
    loop {
        std::thread::sleep(TICK);
        let signals = signals.load(Ordering::Relaxed);
        if emulator.is_over() {
            return emulator.unmount();
        }
        if signals == 0 {
            continue;
        }
        match emulator.unmount() {
            Err(error @ Error::Busy(_)) if signals > 1 => return Err(error),
            Err(error @ Error::Busy(_)) => {
                if !told {
                    eprintln!("{error}; waiting for its end\n  next: {}", error.next_step());
                }
                told = true;
            }
            ended => return ended,
        }
    }
}
