//! The scene with Slackline: streams under contract, a file system over NBD, files by the mount.

use super::super::child::{Daemon, slackline};
use super::super::connect::Incoming;
use super::super::load::contract;
use super::super::volumes::{Parts, fill_volume};
use super::super::{MODEL, failed, folder, progress::Progress};
use super::database::Database;
use super::kept::{Kept, Machine};
use super::load::{self, FILM, PIECE, Places, Run};
use super::tools::{self, Tools};
use super::{DATABASE, Scene, copies, files};
use crate::failure::Failure;
use client::Client;
use client::control::VolumeCreate;
use report::quoted;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use units::Bytes;

/// What the database has at least, whatever others do.
const DATABASE_RATE: &str = "1MiB/s";
/// Longer requests are cut to this, each with a turn of the disk: a database writes long ones, too.
const DATABASE_BLOCK: &str = "256KiB";

/// One run.
pub fn run(
    folder: &Path,
    scene: Scene,
    tools: &Tools,
    progress: &mut Progress,
) -> Result<Run, Failure> {
    progress.step("making a pool on the emulated disk");
    let device = format!("emulated:{MODEL}:{}", folder.join("disk.img").display());
    let size = scene.disk().to_string();
    slackline(&["pool", "create", "mixed", &device, "--size", &size])?;
    let daemon = Daemon::start(folder, "mixed", &device, &[])?;
    let client = daemon.client();
    for (name, size) in
        [("film", scene.stream()), ("recording", scene.stream()), ("database", DATABASE)]
    {
        client.volume_create(&VolumeCreate::new(name, size))?;
    }
    let mut film = client.best_effort("film")?;
    fill_volume(&mut film, FILM, Parts::all(scene.stream()), |_| {})?;
    film.sync()?;
    let socket = folder.join("control.sock").display().to_string();
    let on = |arguments: &[&str]| slackline(&[&["--socket", socket.as_str()], arguments].concat());
    on(&[
        "volume",
        "set",
        "database",
        "--best-effort-rate",
        DATABASE_RATE,
        "--block",
        DATABASE_BLOCK,
    ])?;
    let over_nbd = tools::make_fs(scene.fs, folder, &attach(folder)?, "over-nbd")?;
    let mounted = tools::directory(folder, "volumes")?;
    let at = mounted.display().to_string();
    on(&["mount", &at])?;
    folder::undo(folder, &format!("umount {0} || umount --lazy {0}", quoted(&at)))?;
    progress.step("files by the mount, and a database on a file system over NBD");
    let home = mounted.join("home");
    files::make_home(&home, scene, progress)?;
    in_background(&home)?;
    let copied = copies::make(&[&over_nbd, &mounted], scene.copies)?;
    let database = Database::start(folder, "postgres-nbd", &over_nbd.join("database"), tools)?;
    database.fill()?;
    let run = play(client, &database, (home, copied), scene, progress)?;
    Ok(run)
}

/// The database's volume as a loop device.
fn attach(folder: &Path) -> Result<String, Failure> {
    let at = tools::directory(folder, "nbd")?;
    let socket = wire::socket::nbd_path(&folder.join("control.sock"));
    let uri = format!("nbd+unix:///database?socket={}", socket.display());
    let mut nbdfuse = Command::new("nbdfuse");
    nbdfuse.arg(&at).arg(uri).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    nbdfuse.spawn().map_err(|error| failed(format!("nbdfuse: {error}")))?;
    folder::undo(folder, &format!("umount --lazy {}", quoted(&at.display().to_string())))?;
    tools::wait_for(&at.join("nbd"))?;
    tools::attach(folder, &at.join("nbd"))
}

fn play(
    client: &Client,
    database: &Database,
    (home, copied): (PathBuf, Vec<PathBuf>),
    scene: Scene,
    progress: &mut Progress,
) -> Result<Run, Failure> {
    let reader = client.reader("film", contract(), Bytes::ZERO)?;
    let mut writer = client.writer("recording", contract(), Bytes::ZERO)?;
    let streams = [reader.stream(), writer.stream()];
    let before = Machine::read(client)?;
    let mut film = Incoming::new(reader, PIECE);
    let places = Places {
        film: &mut film,
        recording: &mut writer,
        database,
        home,
        copied,
        in_classes: false,
    };
    let mut run = load::run("Slackline", places, scene, progress)?;
    run.kept = Some(Kept::read(client, &streams, "database", &before)?);
    film.close()?;
    writer.close()?;
    Ok(run)
}

/// Says of the files that are backed up that nobody waits for them: they have priority `background`.
fn in_background(home: &Path) -> Result<(), Failure> {
    let failed_at = |error: std::io::Error| Failure::file(home, &error);
    for entry in std::fs::read_dir(home).map_err(failed_at)? {
        let path = entry.map_err(failed_at)?.path();
        let (name, flags) = ("user.slackline.priority", rustix::fs::XattrFlags::empty());
        rustix::fs::setxattr(&path, name, b"background", flags)
            .map_err(|error| Failure::file(&path, &error.into()))?;
    }
    Ok(())
}
