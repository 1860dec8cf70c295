//! The socket at which a supervisor tells how its cameras are: whoever connects is told, as JSON,
//! and the connection is closed.
//!
//! Invariants: one supervisor for one file; what a dead one left behind is no obstacle; whoever does
//! not take the answer keeps nobody waiting.

use super::file::File;
use super::limits::{ANSWERED_WITHIN, BRIEFLY, STATUS_WITHIN};
use super::shown::Snapshot;
use crate::failure::Failure;
use std::fs::{DirBuilder, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver};
use std::time::Instant;

/// Longest answer that is read.
const ANSWER_MAX: u64 = 16 << 20;

/// How the name of each socket ends that has its usual place.
const SUFFIX: &str = ".cameras.sock";
/// Where the sockets of supervisors are that the system runs.
const SYSTEM: &str = "/run/slackline-cameras";

/// Where the socket of this file may be, the first place first.
pub fn places(file: &Path, stated: Option<&Path>) -> Vec<PathBuf> {
    if let Some(stated) = stated {
        return vec![stated.to_owned()];
    }
    let stem = file.file_stem().unwrap_or(file.as_os_str()).to_string_lossy();
    // Files in other directories may have the same name.
    let name = format!("{stem}-{:08x}{SUFFIX}", mark(&whole(file)));
    let system = Path::new(SYSTEM).join(&name);
    // What the service manager made for this one (systemd); its unit names the directory above.
    if let Some(own) = std::env::var_os("RUNTIME_DIRECTORY") {
        return vec![PathBuf::from(own).join(name)];
    }
    // Not in a directory where everybody may make one of this name.
    own_directory().map(|own| own.join(name)).into_iter().chain([system]).collect()
}

/// The path of a file by which everybody finds it, from wherever.
fn whole(file: &Path) -> PathBuf {
    let absolute = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    absolute.canonicalize().unwrap_or_else(|_| {
        // It is gone since its supervisor was started.
        let directory = absolute.parent().and_then(|directory| directory.canonicalize().ok());
        directory.zip(absolute.file_name()).map_or(absolute.clone(), |(it, name)| it.join(name))
    })
}

/// What tells paths apart (FNV-1a, folded): the same in each version of this program.
fn mark(path: &Path) -> u32 {
    let bytes = path.as_os_str().as_bytes();
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (hash ^ (hash >> 32)) as u32 // folded to its half
}

/// Where the sockets of a user's own supervisors are.
fn own_directory() -> Option<PathBuf> {
    let uid = std::fs::metadata("/proc/self").map_or(0, |own| own.uid());
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").filter(|_| uid != 0)?;
    Some(PathBuf::from(runtime).join("slackline"))
}

/// How the cameras are of all supervisors that answer this user at a usual place, within a bounded time.
pub fn all() -> Vec<Snapshot> {
    all_in(own_directory().into_iter().chain([PathBuf::from(SYSTEM)]))
}

fn all_in(directories: impl IntoIterator<Item = PathBuf>) -> Vec<Snapshot> {
    let found = directories
        .into_iter()
        .flat_map(|directory| std::fs::read_dir(directory).into_iter().flatten());
    let mut places: Vec<_> = found.flatten().map(|entry| entry.path()).collect();
    places.retain(|place| place.to_string_lossy().ends_with(SUFFIX));
    places.sort();
    let asked = places.into_iter().map(|place| bounded(move || ask_at(&[place], Path::new(""))));
    // All are asked before one is waited for.
    let asked: Vec<_> = asked.flatten().collect();
    let until = Instant::now() + BRIEFLY;
    let left = |now| until.saturating_duration_since(now);
    let told = asked.iter().map(|told| told.recv_timeout(left(Instant::now())));
    told.filter_map(|told| told.ok()?.ok()).collect()
}

/// Listens at `path`.
pub fn listen(path: &Path) -> Result<UnixListener, Failure> {
    let failed = |error: &io::Error| {
        let next = "name another place with `status = \"PATH\"` at the head of the file";
        Failure::new(format!("status socket {}: {error}", path.display()), next)
    };
    if UnixStream::connect(path).is_ok() {
        let place = path.to_owned();
        let told = bounded(move || ask_at(&[place], Path::new("")))?;
        let whose = match told.recv_timeout(ANSWERED_WITHIN) {
            Ok(Ok(it)) => format!("the supervisor of {} (process {})", it.file, it.pid),
            _ => "another supervisor".into(),
        };
        let what = format!("{whose} answers at {}", path.display());
        return Err(Failure::new(
            what,
            "end that one first; `--status` tells how its cameras are; for another file, name another \
             place with `status = \"PATH\"` at the head of one of the two",
        ));
    }
    if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
        let made = DirBuilder::new().recursive(true).mode(0o750).create(directory);
        made.map_err(|error| failed(&error))?;
    }
    match std::fs::symlink_metadata(path) {
        // Nobody answers there: a supervisor that was killed has left it.
        Ok(found) if found.file_type().is_socket() => {
            std::fs::remove_file(path).map_err(|error| failed(&error))?;
        }
        Ok(_) => return Err(failed(&io::Error::other("there is something else than a socket"))),
        Err(_) => {}
    }
    let listener = UnixListener::bind(path).map_err(|error| failed(&error))?;
    // What a camera's command says is for its owner and group.
    std::fs::set_permissions(path, Permissions::from_mode(0o660))
        .map_err(|error| failed(&error))?;
    Ok(listener)
}

/// Tells one that has connected.
pub fn tell(mut to: UnixStream, snapshot: &Snapshot) {
    let text = serde_json::to_vec(snapshot).expect("a snapshot is JSON");
    // Whoever goes away early has had enough.
    let _ = to.set_write_timeout(Some(STATUS_WITHIN)).and_then(|()| to.write_all(&text));
}

/// Asks the supervisor of this file, for a bounded time.
pub fn ask(file: &Path) -> Result<Snapshot, Failure> {
    let next = "look whether its process is there, and whether it was stopped";
    let hangs = format!("the supervisor of {} does not answer", file.display());
    let file = file.to_owned();
    let told = bounded(move || {
        // A file that was broken meanwhile must not hide how the cameras are, nor one that is not
        // for everybody's eyes.
        let stated = File::read(&file).ok().and_then(|file| file.status);
        ask_at(&places(&file, stated.as_deref()), &file)
    })?;
    told.recv_timeout(ANSWERED_WITHIN).unwrap_or_else(|_| Err(Failure::new(hangs, next)))
}

/// Asks on a thread of its own: of a supervisor that was stopped not even the connection comes about, once
/// enough have asked.
fn bounded(
    ask: impl FnOnce() -> Result<Snapshot, Failure> + Send + 'static,
) -> Result<Receiver<Result<Snapshot, Failure>>, Failure> {
    let (tell, told) = mpsc::channel();
    let asks = move || drop(tell.send(ask()));
    let thread = std::thread::Builder::new().name("slackline-ask".into()).spawn(asks);
    thread.map_err(|error| Failure::new(format!("a thread cannot be started: {error}"), ""))?;
    Ok(told)
}

fn ask_at(places: &[PathBuf], file: &Path) -> Result<Snapshot, Failure> {
    let mut cause = io::Error::from(io::ErrorKind::NotFound);
    for place in places {
        match UnixStream::connect(place) {
            Ok(from) => {
                let mut text = Vec::new();
                let read = from.take(ANSWER_MAX).read_to_end(&mut text);
                return read.and_then(|_| Ok(serde_json::from_slice(&text)?)).map_err(|error| {
                    let what = format!("the supervisor at {}: {error}", place.display());
                    Failure::new(what, "look whether its process is there")
                });
            }
            // That there is one which says nothing to this user tells more than that there is none.
            Err(_) if cause.kind() == io::ErrorKind::PermissionDenied => {}
            Err(error) => cause = error,
        }
    }
    let at: Vec<_> = places.iter().map(|place| place.display().to_string()).collect();
    if cause.kind() == io::ErrorKind::PermissionDenied {
        let what = format!("the supervisor at {} answers its user alone", at.join(" or "));
        return Err(Failure::new(
            what,
            "ask as the user who started it, as one of its group, or as root",
        ));
    }
    let what = format!("no supervisor answers at {}: {cause}", at.join(" or "));
    let quoted = report::quoted(&file.to_string_lossy());
    Err(Failure::new(what, format!("start it: `slackline cameras {quoted}`")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cameras::shown::Seen;

    /// Two files of one name in two directories had one socket: the second was not started, and its
    /// status was the first one's.
    #[test]
    fn files_of_one_name_have_sockets_of_their_own_and_each_file_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        for directory in ["a", "b"] {
            std::fs::create_dir(path(directory)).unwrap();
            std::fs::write(path(directory).join("cams.toml"), "").unwrap();
        }
        std::os::unix::fs::symlink(path("a"), path("link")).unwrap();
        let [a, b, link, around] =
            ["a/cams.toml", "b/cams.toml", "link/cams.toml", "b/../a/cams.toml"]
                .map(|file| places(&path(file), None));
        assert!(a.iter().zip(&b).all(|(a, b)| a != b), "{a:?} {b:?}");
        assert_eq!((&link, &around), (&a, &a), "the same file");
        std::fs::remove_file(path("a/cams.toml")).unwrap();
        assert_eq!(places(&path("link/cams.toml"), None), a, "also when it is gone");
        assert_eq!(mark(Path::new("/etc/slackline/cameras.toml")), 0x896a_39a2);
    }

    /// A place that two files name is the one's that runs.
    #[test]
    fn whose_supervisor_answers_is_said() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("x.sock");
        let listener = listen(&place).unwrap();
        std::thread::spawn(move || {
            let snapshot = Snapshot { file: "/a/cams.toml".into(), pid: 7, ..Snapshot::default() };
            for connection in listener.incoming() {
                tell(connection.unwrap(), &snapshot);
            }
        });
        let failure = listen(&place).unwrap_err();
        assert!(failure.what.contains("the supervisor of /a/cams.toml (process 7)"), "{failure:?}");
    }

    /// One that was stopped, one that is dead and what is no socket hide nobody.
    #[test]
    fn each_supervisor_that_answers_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let place = |name: &str| dir.path().join(name);
        let listeners = ["a.cameras.sock", "b.cameras.sock", "c.other"]
            .map(|name| UnixListener::bind(place(name)).unwrap());
        drop(UnixListener::bind(place("dead.cameras.sock")).unwrap());
        std::fs::write(place("file.cameras.sock"), "").unwrap();
        for (listener, name) in listeners.iter().zip(["a.toml", "b b.toml"]) {
            let seen = |name: &str, state: &str, lost| Seen {
                name: name.into(),
                state: state.into(),
                lost_bytes: lost,
                ..Seen::default()
            };
            let cameras = vec![seen("gate", "recording", 0), seen("yard", "down", 2_000)];
            let snapshot = Snapshot { file: name.into(), pid: 1, time: String::new(), cameras };
            let listener = listener.try_clone().unwrap();
            std::thread::spawn(move || tell(listener.accept().unwrap().0, &snapshot));
        }
        let lines: Vec<_> =
            all_in([dir.path().into(), place("none")]).iter().map(Snapshot::line).collect();
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert_eq!(
            lines[1],
            "cameras of b b.toml: 1 recording, yard down; 1.95 KiB lost (`slackline cameras 'b b.toml' --status`)\n"
        );
    }
}
