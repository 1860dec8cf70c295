//! `slackline demo mixed`: a film, a recording, a database and a backup on one disk, with
//! Slackline and on ext4, or xfs, under the kernel's schedulers.
//!
//! The scene of the Clockwise thesis, section 5.3: continuous media beside ordinary file
//! systems. Each program is what people use: PostgreSQL and pgbench on a file system, tar on files.

mod copies;
mod database;
mod files;
mod kept;
mod load;
mod plain;
mod pool;
mod report;
mod tools;

use super::folder::Folder;
use super::progress::Progress;
use crate::Common;
use crate::failure::Failure;
use load::Run;
use std::path::PathBuf;
use units::Bytes;

/// A film, a recording, a database and a backup on one disk, beside the kernel's schedulers
///
/// Runs them on an emulated laptop disk: with Slackline (the database on ext4 over NBD, the
/// backup from the mount, in the background), then all on ext4 under mq-deadline and bfq, with film and
/// recording in the kernel's real-time I/O class, the backup and copies in the idle one. Ends with 1
/// where anything under contract was late. Needs root, FUSE, loop devices, nbdfuse and PostgreSQL.
#[derive(clap::Args)]
pub struct Args {
    /// How long each of the three runs takes
    #[arg(long, value_name = "N", default_value_t = 20,
          value_parser = clap::value_parser!(u64).range(2..=600))]
    seconds: u64,
    /// Beside these, so many programs copy files without a pause, as best effort: half of them in the
    /// database's file system, half in that of the backup
    #[arg(long, value_name = "N", default_value_t = 0,
          value_parser = clap::value_parser!(u64).range(..=64))]
    copies: u64,
    /// The file system of the database, and of everything in the kernel's runs
    #[arg(long, value_enum, default_value_t = tools::FileSystem::Ext4)]
    fs: tools::FileSystem,
    /// In the kernel's runs leave film, recording and copies in the default I/O class, in place of
    /// the real-time class for film and recording and the idle one for copies
    #[arg(long)]
    default_classes: bool,
    /// Leave out the kernel's runs
    #[arg(long)]
    only_slackline: bool,
    /// Keep the disk and the logs in this new folder
    #[arg(long, value_name = "FOLDER")]
    keep: Option<PathBuf>,
    /// Draw the latencies of the database's transactions into this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

/// The database, with what PostgreSQL makes for itself.
const DATABASE: Bytes = Bytes::mib(768);

/// What the runs work on.
#[derive(Clone, Copy)]
struct Scene {
    seconds: u64,
    copies: u64,
    fs: tools::FileSystem,
    default_classes: bool,
}

impl Scene {
    /// Of the film, and of each recording.
    fn stream(self) -> Bytes {
        super::load::RATE
            .bytes_in(units::Duration::from_secs(self.seconds + 4))
            .round_up(Bytes::MIB)
    }

    /// How many files of 4 MiB are backed up: more than the disk reads in a run.
    fn files(self) -> u64 {
        (self.seconds * 4).clamp(16, 400)
    }

    const FILE: Bytes = Bytes::mib(4);

    fn disk(self) -> Bytes {
        (self.stream() * 4
            + Self::FILE * self.files()
            + DATABASE
            + copies::room(self.copies)
            + Bytes::mib(256))
        .round_up(Bytes::GIB)
    }
}

/// Runs it.
pub fn run(args: &Args, common: &Common) -> Result<(), Failure> {
    let tools = tools::Tools::find(args.fs)?;
    let mut progress = Progress::new();
    let Args { seconds, copies, fs, default_classes, .. } = *args;
    let scene = Scene { seconds, copies, fs, default_classes };
    let runs = all_runs(args, scene, &tools, &mut progress);
    progress.clear();
    let runs = runs?;
    if let Some(path) = &args.svg {
        let written = std::fs::write(path, report::picture(&runs));
        written.map_err(|error| Failure::file(path, &error))?;
    }
    let broken = runs[0].broken();
    common.output().result(&report::json(&runs, args.seconds, &broken), |_| {
        report::told(&runs, args, &broken)
    })?;
    match broken.first() {
        None => Ok(()),
        Some(first) => Err(super::failed(format!("a promise was broken: {first}"))),
    }
}

fn all_runs(
    args: &Args,
    scene: Scene,
    tools: &tools::Tools,
    progress: &mut Progress,
) -> Result<Vec<Run>, Failure> {
    let folder = Folder::new(args.keep.as_deref())?;
    tools::open_to_all(folder.path())?;
    let mut runs = vec![pool::run(folder.path(), scene, tools, progress)?];
    if !args.only_slackline {
        runs.extend(plain::runs(folder.path(), scene, tools, progress)?);
    }
    Ok(runs)
}
