//! `slackline rwrt`: programs that keep a rate, and what they see of the storage.

mod result;
mod scene;

use crate::Common;
use crate::demo::progress::Progress;
use crate::failure::Failure;
use ::rwrt::{Load, Outcome, Place, Shape};
use engine::{IoClass, io_class};
use result::{Kind, Measured};
use std::path::PathBuf;
use std::sync::Mutex;
use units::{Bytes, Duration, Rate};

/// Measure what programs that keep a rate see of the storage
///
/// Runs programs that read or write a block at each step of a timetable (10 kB every 10 ms
/// unless told otherwise), alone or beside greedy ones, and says how late each block was.
/// The same tool measures volumes under contract, volumes as best effort (--best-effort)
/// and ordinary files, through the page cache or past it (--direct), so that with and
/// without Slackline can be compared.
///
/// What is missing is made; nothing that is there is overwritten unless --overwrite says
/// so. Every byte is checked: what is written is read back. Ends with 1 where a contract
/// was not kept or a byte was wrong.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    programs: Programs,
    #[command(flatten)]
    ways: Ways,
    #[command(flatten)]
    results: Results,
}

const EXAMPLES: &str = "\
Examples:
  One reader under contract, for 20 s, beside four greedy readers:
    slackline rwrt --volume test --readers 1 --greedy-readers 4 --total 20MB
  The same without a contract, and on files of an ordinary file system:
    slackline rwrt --volume test --readers 1 --greedy-readers 4 --total 20MB --best-effort
    slackline rwrt --path /mnt/dir --readers 1 --greedy-readers 4 --total 20MB
  Watching a recording that is still being made, five seconds behind it:
    slackline rwrt --volume test --writers 1 --timeshift 5s
  The experiment of the ABISS paper on an emulated laptop disk, a daemon of its own:
    slackline rwrt --scene abiss --report rwrt.html

The columns of the result:
  jitter    from when an operation was due to its end: what a viewer feels
  host late from when it was due to when the host woke the program: part of the jitter,
            and no storage's fault
  latency   the operation itself
  playout   moving the playout point behind what was read or written
A deadline that is missed is forgiven: the timetable goes on from there.";

/// What is measured.
#[derive(clap::Args)]
#[group(required = true, multiple = false)]
#[command(next_help_heading = "Where")]
struct Which {
    /// Volumes of the daemon: NAME itself for a single program, else NAME-reader-1 and so on
    #[arg(long, value_name = "NAME")]
    volume: Option<String>,
    /// A file for a single program, or a directory, in which each program has a file
    #[arg(long, value_name = "PATH")]
    path: Option<PathBuf>,
    /// A whole experiment on an emulated disk with a daemon of its own: under contract and,
    /// with the same load, without. Needs no running daemon
    #[arg(long, value_name = "NAME")]
    scene: Option<scene::Scene>,
}

#[derive(clap::Args)]
#[command(next_help_heading = "Programs")]
struct Programs {
    /// Programs that read at the rate
    #[arg(long, value_name = "N", default_value_t = 0, conflicts_with = "scene",
          value_parser = clap::value_parser!(u64).range(..=256))]
    readers: u64,
    /// Programs that write at the rate
    #[arg(long, value_name = "N", default_value_t = 0, conflicts_with = "scene",
          value_parser = clap::value_parser!(u64).range(..=256))]
    writers: u64,
    /// One more program reads what the first writer writes; it begins so long after it
    #[arg(long, value_name = "TIME", conflicts_with = "scene")]
    timeshift: Option<Duration>,
    /// Programs that read 128 KiB at a time as fast as they can, until the others end
    #[arg(long, value_name = "N", default_value_t = 0, conflicts_with = "scene",
          value_parser = clap::value_parser!(u64).range(..=256))]
    greedy_readers: u64,
    /// Programs that overwrite what they have as fast as they can
    #[arg(long, value_name = "N", default_value_t = 0, conflicts_with = "scene",
          value_parser = clap::value_parser!(u64).range(..=256))]
    greedy_writers: u64,
    /// What each reader and writer moves in a second
    #[arg(long, value_name = "RATE", default_value = "1MB/s")]
    rate: Rate,
    /// What it moves at a time, 1 MiB at most
    #[arg(long, value_name = "SIZE", default_value = "10kB")]
    block: Bytes,
    /// What it moves in all [default: 10MB; a scene: 200MB]
    #[arg(long, value_name = "SIZE")]
    total: Option<Bytes>,
    /// End each reader and writer after so long, whatever is missing then [default: never; a
    /// scene: one and a half times of what it takes at the rate]
    #[arg(long, value_name = "TIME")]
    at_most: Option<Duration>,
    /// What each greedy program goes round and round in [default: half of --total, from
    /// 2MiB to 64MiB]
    #[arg(long, value_name = "SIZE")]
    greedy_total: Option<Bytes>,
}

#[derive(clap::Args)]
#[command(next_help_heading = "How")]
struct Ways {
    /// Without a contract: reads ahead and writes behind 128 KiB at a time
    #[arg(long, requires = "volume")]
    best_effort: bool,
    /// What a contract moves at a time: a power of two from 4KiB to 32MiB [default: 256KiB;
    /// where a scene timeshifts: 512KiB]
    #[arg(long, value_name = "SIZE", conflicts_with = "path")]
    contract_block: Option<Bytes>,
    /// Past the page cache (O_DIRECT)
    #[arg(long, requires = "path")]
    direct: bool,
    /// Give readers and writers (not the greedy) the kernel's real-time class for I/O
    #[arg(long, requires = "path")]
    real_time_io: bool,
    /// Do not ask for real-time priority for readers and writers
    #[arg(long)]
    no_realtime: bool,
    /// Another seed makes other bytes
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Do not check the bytes: to read what rwrt did not write
    #[arg(long)]
    no_verify: bool,
    /// What is there may be overwritten
    #[arg(long, conflicts_with = "scene")]
    overwrite: bool,
    /// Remove the volumes or files of this run at its end
    #[arg(long, conflicts_with = "scene")]
    remove: bool,
}

#[derive(clap::Args)]
#[command(next_help_heading = "Results")]
struct Results {
    /// Draw which share of operations took longer than what into this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Write a page with tables and plots
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Keep the emulated disk and the daemon's logs, in this new folder
    #[arg(long, value_name = "FOLDER", requires = "scene")]
    keep: Option<PathBuf>,
}

/// What a contract moves at a time, unless told otherwise.
const CONTRACT_BLOCK: Bytes = Bytes::kib(256);

/// A rate over less than this says nothing.
const A_MOMENT: Duration = Duration::from_millis(100);

impl From<::rwrt::Error> for Failure {
    fn from(error: ::rwrt::Error) -> Self {
        match error {
            ::rwrt::Error::Client(error) => error.into(),
            other => Self::new(other.to_string(), other.next_step()),
        }
    }
}

impl Programs {
    fn total(&self, default: Bytes) -> Bytes {
        self.total.unwrap_or(default)
    }

    /// A load of nothing yet.
    fn load(&self, place: Place, total: Bytes, ways: &Ways) -> Load {
        let greedy_total = (total / 2).clamp(Bytes::mib(2), Bytes::mib(64));
        Load {
            place,
            readers: 0,
            writers: 0,
            timeshift: None,
            greedy_readers: 0,
            greedy_writers: 0,
            rate: self.rate,
            block: self.block,
            total,
            limit: self.at_most,
            greedy_total: self.greedy_total.unwrap_or(greedy_total),
            seed: ways.seed,
            verify: !ways.no_verify,
            overwrite: ways.overwrite,
        }
    }
}

/// Runs it.
pub fn run(args: &Args, common: &Common) -> Result<(), Failure> {
    let told = Line::new();
    let measured = match args.which.scene {
        Some(scene) => scene::run(scene, args, &told),
        None => once(args, common, &told).map(|outcome| vec![outcome]),
    };
    told.clear();
    let measured = measured?;
    result::write(&args.results, &measured)?;
    common.output().result(&result::json(&measured), |_| result::words(&measured))?;
    match result::problems(&measured) {
        problems if problems.is_empty() => Ok(()),
        problems => {
            let what = format!("{} things are not as promised: {}", problems.len(), problems[0]);
            let next_step = "`slackline pool status` counts what the disks and the host did late; \
                             wrong bytes are listed above";
            Err(Failure::new(what, next_step))
        }
    }
}

/// A run against what is there.
fn once(args: &Args, common: &Common, told: &Line) -> Result<Measured, Failure> {
    let (ways, programs) = (&args.ways, &args.programs);
    let (place, kind) = match (&args.which.volume, &args.which.path) {
        (Some(name), _) => {
            let contract = (!ways.best_effort).then(|| shape(args, CONTRACT_BLOCK));
            let kind = contract.map_or(Kind::BestEffort, |_| Kind::Contract);
            (Place::Volumes { client: common.client()?, name: name.clone(), contract }, kind)
        }
        (None, Some(path)) => {
            let kind = if ways.direct { Kind::DirectFiles } else { Kind::Files };
            (Place::Files { path: path.clone(), direct: ways.direct }, kind)
        }
        (None, None) => unreachable!("one of the three is required"),
    };
    let load = Load {
        readers: programs.readers,
        writers: programs.writers,
        timeshift: programs.timeshift,
        greedy_readers: programs.greedy_readers,
        greedy_writers: programs.greedy_writers,
        ..programs.load(place, programs.total(Bytes::new(10_000_000)), ways)
    };
    load.prepare(&|progress| told.progress(progress))?;
    let outcome = play(&load, ways, told);
    if ways.remove {
        load.remove()?;
    }
    Ok(Measured { part: "run".into(), kind, outcome: outcome? })
}

/// What contracts say beside their rate; `block` unless something else is asked for.
fn shape(args: &Args, block: Bytes) -> Shape {
    Shape { block: args.ways.contract_block.unwrap_or(block), burst: args.programs.block }
}

/// Runs a load that is prepared.
fn play(load: &Load, ways: &Ways, told: &Line) -> Result<Outcome, Failure> {
    let on_stream = || {
        if !ways.no_realtime
            && let Err(error) = engine::keep_time()
        {
            told.once(&format!(
                "warning: no real-time priority ({error}): jitter may be the host's"
            ));
        }
        if ways.real_time_io
            && let Err(error) = io_class(IoClass::RealTime)
        {
            told.once(&format!("warning: no real-time class for I/O ({error})"));
        }
    };
    Ok(load.run(&on_stream, &|progress| told.progress(progress))?)
}

/// What is going on, for who looks.
struct Line {
    line: Mutex<Progress>,
    warned: Mutex<Vec<String>>,
    /// What the line is of.
    of: Mutex<String>,
}

impl Line {
    fn new() -> Self {
        let line = Mutex::new(Progress::new());
        Self { line, warned: Mutex::default(), of: Mutex::default() }
    }

    fn step(&self, text: &str) {
        self.line.lock().expect("nobody panics while it tells").step(text);
    }

    /// Says something that need not be said twice.
    fn once(&self, text: &str) {
        let mut warned = self.warned.lock().expect("nobody panics while it tells");
        if !warned.iter().any(|before| before == text) {
            warned.push(text.to_owned());
            self.step(text);
        }
    }

    fn progress(&self, progress: &::rwrt::Progress) {
        let mut line = self.line.lock().expect("nobody panics while it tells");
        let mut of = self.of.lock().expect("nobody panics while it tells");
        // "filling a" and "filling b" are one step with one sum.
        let step = progress.what.split(' ').next().unwrap_or_default();
        if *of != step {
            line.ended();
            *of = step.into();
        }
        line.update(&words(progress));
    }

    fn clear(&self) {
        let mut line = self.line.lock().expect("nobody panics while it tells");
        line.ended();
        line.clear();
    }
}

/// How far it is.
fn words(progress: &::rwrt::Progress) -> String {
    let megabytes = |bytes: Bytes| bytes.get() as f64 / 1e6;
    let (done, total) = (progress.done, progress.total);
    let mut text = match total.get() {
        0 => progress.what.clone(),
        1..1_000_000 => {
            let kilobytes = |bytes: Bytes| bytes.get() as f64 / 1e3;
            let (done, total) = (kilobytes(done), kilobytes(total));
            format!("{}: {done:.1} of {total:.1} kB", progress.what)
        }
        _ => {
            let (done, total) = (megabytes(done), megabytes(total));
            format!("{}: {done:.1} of {total:.1} MB", progress.what)
        }
    };
    // Of less than a moment no rate can be told.
    if !progress.greedy.is_zero() && progress.elapsed >= A_MOMENT {
        let rate = Rate::of(progress.greedy, progress.elapsed).get() as f64 / 1e6;
        text.push_str(&format!(", greedy programs {rate:.1} MB/s"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The programs of a load may have moved much before the first word of it.
    #[test]
    fn the_rate_of_greedy_programs_is_that_since_they_began() {
        let progress = |elapsed| ::rwrt::Progress {
            what: "running".into(),
            done: Bytes::new(200_000),
            total: Bytes::new(2_000_000),
            greedy: Bytes::new(130_000_000),
            elapsed,
        };
        assert_eq!(words(&progress(Duration::from_nanos(100))), "running: 0.2 of 2.0 MB");
        let after = words(&progress(Duration::from_millis(500)));
        assert_eq!(after, "running: 0.2 of 2.0 MB, greedy programs 260.0 MB/s");
        let small = ::rwrt::Progress { total: Bytes::new(400_000), ..progress(Duration::ZERO) };
        assert_eq!(words(&small), "running: 200.0 of 400.0 kB");
    }
}
