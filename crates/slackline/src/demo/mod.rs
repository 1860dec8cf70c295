//! `slackline demo`: the main job on an emulated laptop disk, in real time.
//!
//! A real video is recorded under contract; then readers and writers keep their
//! rate beside greedy readers, once under `slack` and once, with the same load,
//! first come first served. Every byte is proved, both runs are laid side by
//! side. Everything goes through the sockets of a daemon in its own process.

pub(crate) mod child;
mod connect;
mod film;
pub(crate) mod folder;
mod load;
mod mixed;
mod outcome;
mod pace;
mod programs;
pub(crate) mod progress;
mod random;
mod report;
mod samples;
mod stamp;
mod svg;
mod video;
mod volumes;

use crate::Common;
use crate::failure::{Failure, REFUSED};
use child::Daemon;
use film::{Back, Film};
use folder::Folder;
use load::{GREEDY, Load, Policy, READERS, WRITERS};
use outcome::Outcome;
use progress::Progress;
use std::path::{Path, PathBuf};
use units::Bytes;
use volumes::Parts;

/// Show the main job, on an emulated disk, in real time
///
/// Records a video, then runs four readers and two writers at 1 MB/s each beside
/// eight greedy readers: once under slack, and once first come, first served,
/// without admission. Proves every byte. Ends with 1 where anything was late or
/// wrong under slack. Needs ffmpeg.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    scene: Option<Scene>,
    /// How long each of the two runs takes
    #[arg(long, value_name = "N", default_value_t = 30,
          value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
    /// Keep the disk, the video and the daemons' logs, in this new folder
    #[arg(long, value_name = "FOLDER")]
    keep: Option<PathBuf>,
    /// Draw the distributions of latencies into this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Run on this disk, and not on the emulated one: a file, a block device, or
    /// emulated:MODEL:FILE. What it holds is destroyed
    #[arg(long, value_name = "DEVICE", requires = "overwrite")]
    device: Option<String>,
    /// Take this profile (TOML) of the device, in place of timing it
    #[arg(long, value_name = "FILE", requires = "device")]
    profile: Option<PathBuf>,
    /// Say that the device may be overwritten
    #[arg(long, requires = "device")]
    overwrite: bool,
}

/// Other scenes than the main one.
#[derive(clap::Subcommand)]
enum Scene {
    Mixed(mixed::Args),
}

/// A failure of the demo itself.
fn failed(what: impl Into<String>) -> Failure {
    Failure::new(what, "run it again with --keep FOLDER, and read the daemons' logs there")
}

/// The disk: a 4,200 rpm laptop disk, scaled to the size of its file.
const MODEL: &str = "laptop-4200";

/// For the video and the pool's own areas.
const DISK_SPARE: Bytes = Bytes::mib(96);

/// The run that shall keep its promises, and the one that makes none.
const SLACK: Policy = Policy { name: "slack", title: "slack", run: 0 };
const FCFS: Policy = Policy { name: "fcfs", title: "fcfs, no admission", run: 1 };

/// Runs it; fails where anything was late or wrong under `slack`, or wrong
/// under `fcfs`.
pub fn run(args: &Args, common: &Common) -> Result<(), Failure> {
    if let Some(Scene::Mixed(args)) = &args.scene {
        return mixed::run(args, common);
    }
    let mut progress = Progress::new();
    let outcomes = both_runs(args, &mut progress);
    progress.clear();
    let outcomes = outcomes?;
    let mut problems = outcomes[0].late();
    for outcome in &outcomes {
        problems.extend(outcome.wrong.iter().map(|wrong| format!("{}: {wrong}", outcome.title)));
    }
    if let Some(path) = &args.svg {
        let title = format!(
            "{READERS} readers and {WRITERS} writers at 1 MB/s beside {GREEDY} greedy readers"
        );
        let written = std::fs::write(path, report::picture(&outcomes, &title));
        written.map_err(|error| Failure::file(path, &error))?;
    }
    let result = report::json(&outcomes, args.seconds, &problems);
    common.output().result(&result, |_| told(&outcomes, args, &problems))?;
    match problems.len() {
        0 => Ok(()),
        count => Err(failed(format!("{count} promises were broken: {}", problems[0]))),
    }
}

/// The result in words.
fn told(outcomes: &[Outcome], args: &Args, problems: &[String]) -> String {
    let mut text = format!("\n{}", report::table(outcomes, args.seconds));
    if let Some(path) = &args.svg {
        text.push_str(&format!("\nThe latencies as a picture: {}\n", path.display()));
    }
    text.push('\n');
    match problems {
        [] => text.push_str("Under slack nothing was late, and every byte is right.\n"),
        _ => problems.iter().for_each(|problem| text.push_str(&format!("BROKEN: {problem}\n"))),
    }
    text
}

/// Sets the stage once, and runs the load under both policies on it.
fn both_runs(args: &Args, progress: &mut Progress) -> Result<Vec<Outcome>, Failure> {
    video::require_tools()?;
    let folder = Folder::new(args.keep.as_deref())?;
    let film = Film::make(folder.path(), args.seconds.clamp(2, 24), progress)?;
    let load = Load { seconds: args.seconds, files: files(args.seconds) };
    let size = (load.volumes_size() + DISK_SPARE).round_up(Bytes::GIB);
    let device = make_pool(args, folder.path(), size, progress)?;

    let daemon = Daemon::start(folder.path(), SLACK.name, &device, &[])?;
    let slack = under_slack(daemon, &film, load, progress);
    let slack = slack.map_err(|failure| beyond_the_device(args, failure))?;

    let arguments = ["--policy", FCFS.name, "--no-admission"];
    let daemon = Daemon::start(folder.path(), FCFS.name, &device, &arguments)?;
    let fcfs = one_run(daemon, &film, load, FCFS, progress)?;
    Ok(vec![slack, fcfs])
}

fn under_slack(
    daemon: Daemon,
    film: &Film,
    load: Load,
    progress: &mut Progress,
) -> Result<Outcome, Failure> {
    film.record(daemon.client(), progress)?;
    progress.step("filling the volumes of readers and greedy readers");
    load.prepare(daemon.client(), progress)?;
    one_run(daemon, film, load, SLACK, progress)
}

/// What to do where a device is too slow for the load, by what its profile says: the
/// demo's rates are its own, so that no other can be asked for.
fn beyond_the_device(args: &Args, mut failure: Failure) -> Failure {
    let Some(device) = args.device.as_ref().filter(|_| failure.exit_code == REFUSED) else {
        return failure;
    };
    let quoted = ::report::quoted(device);
    failure.next_step = match &args.profile {
        Some(profile) => format!(
            "where {} was measured without writes it assumes much for them: measure \
             with `slackline disk profile {quoted} --write` (destroys what it holds), or leave \
             --profile away, or give a faster device",
            profile.display()
        ),
        None => format!(
            "measure it more thoroughly with `slackline disk profile {quoted} --write -o FILE` and \
             give --profile FILE, or give a faster device"
        ),
    };
    failure
}

/// Makes the pool and tells its device: the emulated disk, or the one that was named,
/// which keeps its size where it is there.
fn make_pool(
    args: &Args,
    folder: &Path,
    size: Bytes,
    progress: &mut Progress,
) -> Result<String, Failure> {
    let wanted = size.to_string();
    let Some(device) = &args.device else {
        let device = format!("emulated:{MODEL}:{}", folder.join("disk.img").display());
        child::slackline(&["pool", "create", "demo", &device, "--size", &wanted])?;
        return Ok(device);
    };
    progress.step("making a pool of the device");
    let spec: engine::DeviceSpec = device.parse()?;
    let mut create = vec!["pool", "create", "demo", device, "--overwrite"];
    match spec.look()? {
        Some(found) if found.size < size => {
            let what = format!("{device} holds {}; the demo needs {size}", found.size);
            return Err(Failure::usage(what, "give a larger device, or fewer --seconds"));
        }
        Some(_) => {}
        None => create.extend(["--size", &wanted]),
    }
    let profile = args.profile.as_ref().map(|path| path.display().to_string());
    if let Some(profile) = &profile {
        create.extend(["--profile", profile]);
    }
    child::slackline(&create)?;
    Ok(device.clone())
}

/// The volume of each greedy reader: 192 MiB, and so all of them lie on three
/// quarters of the disk, of which a part has data. A short run has less, so that
/// filling does not outlast it.
fn files(seconds: u64) -> Parts {
    match seconds {
        0..10 => Parts { count: 4, stride: 48 },
        _ => Parts { count: 24, stride: 8 },
    }
}

/// One run of the load, and the film back out after it.
fn one_run(
    daemon: Daemon,
    film: &Film,
    load: Load,
    policy: Policy,
    progress: &mut Progress,
) -> Result<Outcome, Failure> {
    progress.step(&format!(
        "{READERS} readers and {WRITERS} writers at {} beside {GREEDY} greedy readers, {} s: {}",
        load::RATE,
        load.seconds,
        policy.title
    ));
    let mut outcome = load.run(daemon.client(), policy, progress)?;
    match film.play(daemon.client(), policy.name, progress)? {
        Back::Right { bytes, frames } => {
            outcome.bytes_verified += bytes;
            outcome.frames = frames;
        }
        Back::Wrong(wrong) => outcome.wrong.push(wrong),
    }
    daemon.stop()?;
    Ok(outcome)
}
