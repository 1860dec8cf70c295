//! `slackline cameras`: one supervisor for all cameras of a file.
//!
//! Each camera has two threads: one has its command, one the daemon; this file starts them, tells
//! what happens, and ends them. Invariants: it ends within a bound, whatever hangs; what it had in
//! memory and could not make durable then is told, and the exit code says so.

mod back_off;
mod buffer;
mod camera;
mod check;
mod events;
mod feed;
mod file;
mod follow;
mod group;
mod hearing;
mod keeper;
mod limits;
mod rate;
mod shown;
mod socket;
mod telling;

use crate::Common;
use crate::failure::Failure;
use crate::interrupts::interruption_with;
use camera::Camera;
use client::Client;
use events::{Event, utc};
use file::File;
use follow::Follower;
use limits::{ANSWER_WITHIN, FILE_MAX, LOOK, STOP_WITHIN, TELL_WITHIN};
pub use shown::Snapshot;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread::JoinHandle;
use std::time::{Instant, SystemTime};
use telling::Telling;
use units::Bytes;

/// Record all cameras of a file, and keep them recording.
///
/// Runs a command for each camera (ffmpeg, unless the file names another) and writes what it gives
/// into a volume of its own, under contract, behind what the volume has. A command that ends, or gives
/// no byte for a while, is started again. While the daemon is away the bytes wait in memory, and go
/// on behind what was durable when it is back. A camera that is seen to give more than its contract
/// gets a larger one, where that fits. On a terminal, shows a table; else, tells a line for
/// each change, or with --json an object. An interrupt ends it in order within 10 s.
#[derive(clap::Args)]
pub struct Args {
    /// The cameras, for example examples/recorder.toml
    #[arg(value_name = "FILE.toml")]
    file: PathBuf,
    /// Read the file, ask the daemon whether all fit, and start nothing; ends with 3 where they
    /// do not
    #[arg(long, conflicts_with = "status")]
    check: bool,
    /// Ask the supervisor that runs for this file how its cameras are: who is down and since when,
    /// what each gives and has a contract for, how long its volume lasts
    #[arg(long)]
    status: bool,
    /// Of the file only this camera, or those that this names when it is given more than once. One
    /// supervisor runs for a file, whichever of its cameras it has
    #[arg(long, value_name = "NAME")]
    camera: Vec<String>,
}

/// The names of the cameras of a file, where it can be read.
pub fn names(path: &Path) -> Vec<String> {
    let is_short = path.metadata().is_ok_and(|found| found.is_file() && found.len() <= FILE_MAX);
    let file = is_short.then(|| File::read(path).ok()).flatten();
    file.into_iter().flat_map(|file| file.cameras).map(|spec| spec.name).collect()
}

/// What each supervisor knows that answers this user at its usual place.
pub fn all() -> Vec<Snapshot> {
    socket::all()
}

/// Of all cameras of a file those that were named; all, where none was.
fn only<T>(
    all: Vec<T>,
    name: impl Fn(&T) -> &str,
    wanted: &[String],
    whose: &str,
) -> Result<Vec<T>, Failure> {
    let none = |wanted: &&String| all.iter().all(|one| name(one) != **wanted);
    if let Some(none) = wanted.iter().find(none) {
        let names: Vec<&str> = all.iter().map(name).collect();
        let what = format!("{whose} has no camera {}", report::quoted(none));
        return Err(Failure::new(what, format!("name one of these: {}", names.join(", "))));
    }
    let is_wanted = |one: &T| wanted.is_empty() || wanted.iter().any(|wanted| wanted == name(one));
    Ok(all.into_iter().filter(is_wanted).collect())
}

/// Runs it.
pub fn run(args: &Args, common: &Common) -> Result<(), Failure> {
    if args.status {
        let mut snapshot = socket::ask(&args.file)?;
        let whose = format!("the supervisor of {}", args.file.display());
        snapshot.cameras = only(snapshot.cameras, |seen| &seen.name, &args.camera, &whose)?;
        return common.output().result(&snapshot, Snapshot::text);
    }
    let mut file = File::read(&args.file)?;
    let whose = args.file.display().to_string();
    file.cameras = only(file.cameras, |spec| &spec.name, &args.camera, &whose)?;
    if args.check {
        return check::run(&file, &common.client()?, common.output());
    }
    let places = socket::places(&args.file, file.status.as_deref());
    let path = places.into_iter().next().expect("there is one at least");
    let listener = socket::listen(&path)?;
    client::set_answer_within(ANSWER_WITHIN);
    let supervised = supervise(&args.file, file, listener, common);
    let _ = std::fs::remove_file(&path);
    let Err(failure) = supervised else { return Ok(()) };
    // Whoever returns it has it told, however long that takes.
    telling::report(&failure, common.json);
    std::process::exit(failure.exit_code.into())
}

fn supervise(
    path: &Path,
    file: File,
    listener: UnixListener,
    common: &Common,
) -> Result<(), Failure> {
    let (tell, told) = mpsc::channel();
    let camera = |spec| Arc::new(Camera::new(spec, tell.clone()));
    let cameras: Vec<Arc<Camera>> = file.cameras.into_iter().map(camera).collect();
    let all = cameras.clone();
    let kill = move |end: fn() -> !| {
        let _none_starts = group::kill_all(all.iter().map(|camera| &camera.group));
        end()
    };
    let ended = interruption_with(kill).map_err(no_thread)?;
    // What a camera gives waits in its buffer, and what that loses the supervisor tells.
    let client = Client::at(common.socket()).buffered();
    let threads = begin(&cameras, &client, &ended)?;
    let follower = follow(&cameras, client)?;
    answer(path, &cameras, follower, listener)?;
    daemon::notify::tell("READY=1");
    let mut telling = Telling::start(common.json).map_err(no_thread)?;
    let mut is_sound = true;
    while !ended.load(Ordering::Relaxed) {
        let events = heard(&told);
        cameras.iter().for_each(|camera| camera.look());
        telling.tell(&events, || snapshot(path, &cameras));
        if has_died(&threads, &ended) {
            is_sound = false;
            ended.store(true, Ordering::Relaxed);
        }
    }
    daemon::notify::tell("STOPPING=1");
    let until = Instant::now() + STOP_WITHIN;
    while threads.iter().any(|thread| !thread.is_finished()) && Instant::now() < until {
        telling.tell(&heard(&told), || snapshot(path, &cameras));
    }
    cameras.iter().for_each(|camera| camera.look());
    // What the cameras had was what the time was for.
    let until = until.max(Instant::now() + TELL_WITHIN);
    telling.end(&heard(&told), || snapshot(path, &cameras), until);
    let unsaved: u64 = cameras.iter().map(|camera| camera.unsaved()).sum();
    if unsaved > 0 {
        let unsaved_of = cameras.iter().filter(|camera| camera.unsaved() > 0);
        let why: Vec<String> = unsaved_of.map(|camera| camera.why_unsaved()).collect();
        let what = format!("{} were not written, and are lost", Bytes::new(unsaved));
        let next = format!("see why the daemon has not taken them: {}", why.join("; "));
        return Err(Failure::new(what, next));
    }
    if !is_sound {
        let what = "a thread of a camera ended by an error of the supervisor's own";
        return Err(Failure::new(what, "start it again, and report what it has said before that"));
    }
    Ok(())
}

/// Whether a camera has nobody to look after it: each thread works until it is told to end.
fn has_died(threads: &[JoinHandle<()>], ended: &AtomicBool) -> bool {
    threads.iter().any(JoinHandle::is_finished) && !ended.load(Ordering::Relaxed)
}

/// Starts the threads of all cameras.
fn begin(
    cameras: &[Arc<Camera>],
    client: &Client,
    ended: &Arc<AtomicBool>,
) -> Result<Vec<JoinHandle<()>>, Failure> {
    let turn = Arc::new(AtomicUsize::new(0));
    let mut threads = Vec::new();
    let mut start = |work: Box<dyn FnOnce() + Send>| {
        let thread = std::thread::Builder::new().name("slackline-camera".into()).spawn(work);
        thread.map(|thread| threads.push(thread)).map_err(no_thread)
    };
    for (number, camera) in cameras.iter().enumerate() {
        let (own, ended) = (Arc::clone(camera), Arc::clone(ended));
        start(Box::new(move || feed::run(&own, &ended)))?;
        let (own, client, turn) = (Arc::clone(camera), client.clone(), Arc::clone(&turn));
        start(Box::new(move || keeper::run(&own, &client, number, &turn)))?;
    }
    Ok(threads)
}

fn no_thread(error: std::io::Error) -> Failure {
    Failure::new(format!("a thread cannot be started: {error}"), "name fewer cameras in the file")
}

/// Looks what the daemon has of the cameras, until the process ends.
fn follow(cameras: &[Arc<Camera>], client: Client) -> Result<Arc<Follower>, Failure> {
    let (follower, cameras) = (Arc::new(Follower::default()), cameras.to_vec());
    let own = Arc::clone(&follower);
    let thread = std::thread::Builder::new().name("slackline-follow".into());
    thread.spawn(move || own.run(&cameras, &client)).map_err(no_thread)?;
    Ok(follower)
}

/// Tells whoever connects how the cameras are, until the process ends.
fn answer(
    path: &Path,
    cameras: &[Arc<Camera>],
    follower: Arc<Follower>,
    listener: UnixListener,
) -> Result<(), Failure> {
    let (path, cameras) = (path.to_owned(), cameras.to_vec());
    let serve = move || {
        for connection in listener.incoming() {
            match connection {
                Ok(connection) => {
                    follower.look();
                    socket::tell(connection, &snapshot(&path, &cameras));
                }
                // No descriptors are left for now.
                Err(_) => std::thread::sleep(LOOK),
            }
        }
    };
    let thread = std::thread::Builder::new().name("slackline-status".into()).spawn(serve);
    thread.map(drop).map_err(no_thread)
}

fn snapshot(path: &Path, cameras: &[Arc<Camera>]) -> Snapshot {
    // Whoever reads it may be in another directory.
    let file = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    Snapshot {
        file: file.display().to_string(),
        pid: std::process::id(),
        time: utc(SystemTime::now()),
        cameras: cameras.iter().map(|camera| camera.seen()).collect(),
    }
}

/// What happened, waiting for it for a moment.
fn heard(told: &Receiver<Event>) -> Vec<Event> {
    let first = told.recv_timeout(LOOK).ok();
    first.into_iter().chain(told.try_iter()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_ends_before_it_was_told_to_is_noticed() {
        let ((end, waits), ended) = (mpsc::channel::<()>(), AtomicBool::new(false));
        let threads = [std::thread::spawn(move || {
            let _ = waits.recv();
        })];
        assert!(!has_died(&threads, &ended));
        drop(end);
        while !threads[0].is_finished() {
            std::thread::yield_now();
        }
        assert!(has_died(&threads, &ended));
        ended.store(true, Ordering::Relaxed);
        assert!(!has_died(&threads, &ended), "it was told to");
    }
}
