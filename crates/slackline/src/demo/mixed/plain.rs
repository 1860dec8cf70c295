//! All on one file system on the emulated disk, under the kernel's schedulers.

use super::super::{failed, folder, progress::Progress};
use super::database::Database;
use super::load::{self, FILM, Ordinary, Places, Run};
use super::tools::{self, Tools};
use super::{super::MODEL, Scene, copies, files};
use crate::failure::Failure;
use report::quoted;
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};

const SCHEDULERS: [&str; 2] = ["mq-deadline", "bfq"];
/// Requests that the device takes in; those before it are the scheduler's to order.
const DEPTH: &str = "4";

/// A run under each scheduler, on one file system.
pub fn runs(
    folder: &Path,
    scene: Scene,
    tools: &Tools,
    progress: &mut Progress,
) -> Result<Vec<Run>, Failure> {
    let fs = scene.fs.name();
    progress.step(&format!("making {fs} on the emulated disk, with the same files"));
    let device = emulate(folder, scene)?;
    let root = tools::make_fs(scene.fs, folder, &device, fs)?;
    let film = root.join("film");
    files::write_file(&film, FILM, scene.stream())?;
    let home = root.join("home");
    files::make_home(&home, scene, progress)?;
    let copied = copies::make(&[&root], scene.copies)?;
    let database = Database::start(folder, "postgres-plain", &root.join("database"), tools)?;
    let mut runs = Vec::new();
    for scheduler in SCHEDULERS {
        let path = format!("/sys/block/{}/queue/scheduler", device.trim_start_matches("/dev/"));
        let path = Path::new(&path);
        if let Err(error) = std::fs::write(path, scheduler) {
            let what = format!("{}: {scheduler}: {error}", path.display());
            return Err(Failure::new(what, format!("modprobe {scheduler}")));
        }
        database.fill()?;
        let recording = root.join(format!("recording-{scheduler}"));
        let open = |file: std::io::Result<File>, path: &Path| {
            file.map(Ordinary::new).map_err(|error| Failure::file(path, &error))
        };
        let places = Places {
            film: &mut open(File::open(&film), &film)?,
            recording: &mut open(File::create(&recording), &recording)?,
            database: &database,
            home: home.clone(),
            copied: copied.clone(),
            in_classes: !scene.default_classes,
        };
        runs.push(load::run(&format!("{fs}, {scheduler}"), places, scene, progress)?);
    }
    Ok(runs)
}

/// The same disk as a loop device.
fn emulate(folder: &Path, scene: Scene) -> Result<String, Failure> {
    let at = folder.join("emulated");
    let this = std::env::current_exe().map_err(|error| failed(format!("myself: {error}")))?;
    let log = folder.join("emulator.log");
    let log = File::create(&log).map_err(|error| Failure::file(&log, &error))?;
    let size = scene.disk().to_string();
    let mut emulate = Command::new(this);
    emulate.args(["disk", "emulate", MODEL, "--size", &size, "--mount"]).arg(&at);
    let child = emulate.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn();
    let child = child.map_err(|error| failed(format!("the emulator: {error}")))?;
    // Twice: the second ends it although somebody uses the disk.
    let pid = child.id();
    let mount = quoted(&at.display().to_string());
    folder::undo(folder, &format!("kill {pid}; sleep 1; kill {pid}; umount --lazy {mount}"))?;
    tools::wait_for(&at.join("disk.img"))?;
    let device = tools::attach(folder, &at.join("disk.img"))?;
    let queue = format!("/sys/block/{}/queue/nr_requests", device.trim_start_matches("/dev/"));
    // A loop device has room for 128: all of the load, and nothing left to order.
    std::fs::write(&queue, DEPTH).map_err(|error| Failure::file(Path::new(&queue), &error))?;
    Ok(device)
}
