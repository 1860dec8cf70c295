//! A mount from its beginning to its end.

use crate::connections::{Connections, own_number};
use crate::given_back::WAIT_MAX;
use crate::server::{READ_AHEAD, Server};
use crate::{ANSWER_WITHIN, removed};
use client::{Client, Code, Error};
use fuser::{BackgroundSession, MountOption, Session, SessionACL, SessionUnmounter};
use rustix::io::Errno;
use rustix::mount::UnmountFlags;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

/// Threads that take the kernel's requests: as many calls of programs are under way at a time.
const TAKERS: usize = 2 * WAIT_MAX;

/// What is mounted, and where.
#[derive(Clone, Debug)]
pub struct Options {
    /// The directory; it has to be there.
    pub directory: PathBuf,
    /// The daemon's control socket.
    pub socket: PathBuf,
    /// Nothing can be changed through it.
    pub read_only: bool,
    /// Other users may use it too, each for what volumes let him: as root only.
    pub allow_other: bool,
}

/// Why nothing was mounted.
#[derive(Debug)]
pub enum NotMounted {
    /// The daemon says no, or is not there.
    Daemon(Error),
    /// FUSE says no.
    Fuse(io::Error),
    /// Only root may let others in.
    OnlyRoot,
}

/// A directory that is mounted.
pub struct Mount {
    session: BackgroundSession,
    unmounter: Unmounter,
    ways: Arc<Connections>,
}

impl Mount {
    /// Mounts the volumes.
    ///
    /// # Errors
    /// Where there is no daemon, or the directory cannot be mounted on; nothing is mounted then.
    pub fn start(options: &Options) -> Result<Self, NotMounted> {
        if options.allow_other && !rustix::process::geteuid().is_root() {
            return Err(NotMounted::OnlyRoot);
        }
        client::set_answer_within(ANSWER_WITHIN);
        let mut client = Client::at(&options.socket).keeping_connections();
        let health = client.health().map_err(NotMounted::Daemon)?;
        // A daemon from before pools said who they are has no identity here.
        if !health.pool_id.is_empty() {
            client = client.of_pool(&health.pool_id);
        }
        let as_writer = client.clone().as_writer(own_number());
        // A daemon from before there were writers with numbers refuses to hear of one.
        if !matches!(as_writer.file_facts("/0"), Err(Error::Problem(p)) if p.code == Code::BadRequest)
        {
            client = as_writer;
        }
        if !options.read_only {
            removed::sweep(&client);
        }
        let ways = Arc::new(Connections::new(client, health.run));
        let mut config = fuser::Config::default();
        config.mount_options = vec![
            MountOption::FSName(format!("slackline:{}", health.pool)),
            MountOption::Subtype("slackline".into()),
            MountOption::DefaultPermissions,
            MountOption::NoDev,
            MountOption::NoSuid,
            MountOption::NoAtime,
        ];
        if options.read_only {
            config.mount_options.push(MountOption::RO);
        }
        config.acl = if options.allow_other { SessionACL::All } else { SessionACL::Owner };
        config.n_threads = Some(TAKERS);
        let server = Server::new(Arc::clone(&ways));
        let notifier = server.notifier();
        let session = Session::new(server, &options.directory, &config);
        let mut session = session.map_err(NotMounted::Fuse)?;
        let unmounter = Unmounter(session.unmount_callable());
        let session = session.spawn().map_err(NotMounted::Fuse)?;
        let _ = notifier.set(session.notifier());
        read_ahead(&options.directory);
        Ok(Self { session, unmounter, ways })
    }

    /// Waits until it is unmounted. What unmounts it is given to another thread.
    ///
    /// # Errors
    /// Where the kernel's requests could not be taken any more.
    pub fn wait(self, unmounts: impl FnOnce(Unmounter)) -> io::Result<()> {
        unmounts(self.unmounter);
        let ended = self.session.join();
        drop(self.ways);
        match ended {
            // A request that the unmount finds half read ends so, and not with ENODEV.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => Ok(()),
            ended => ended,
        }
    }
}

/// Whatever a file system asks for, the kernel reads no more than 128 KiB ahead, unless root says so.
fn read_ahead(directory: &Path) {
    let Ok(known) = std::fs::metadata(directory) else { return };
    let (major, minor) = (rustix::fs::major(known.dev()), rustix::fs::minor(known.dev()));
    let setting = format!("/sys/class/bdi/{major}:{minor}/read_ahead_kb");
    // Where it may not be changed, reads are shorter, and more.
    let _ = std::fs::write(setting, (READ_AHEAD >> 10).to_string());
}

/// Ends a mount.
pub struct Unmounter(SessionUnmounter);

impl Unmounter {
    /// Unmounts; fails where a program uses it.
    ///
    /// # Errors
    /// As the kernel says.
    pub fn unmount(&mut self) -> io::Result<()> {
        self.0.unmount()
    }
}

/// The pool whose volumes are files below this very directory, where it is a mount of Slackline's. The
/// path is one without links and dots.
///
/// # Errors
/// `ENOTCONN` where the process of that mount has gone: what the kernel remembers of the directory does
/// not tell that.
pub fn pool_at(directory: &Path) -> io::Result<Option<String>> {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let Some(pool) = listed_at(&mounts, directory) else { return Ok(None) };
    match rustix::fs::statfs(directory) {
        Err(Errno::NOTCONN) => Err(Errno::NOTCONN.into()),
        _ => Ok(Some(pool)),
    }
}

/// The same by a list of mounts as `proc_pid_mountinfo(5)` has it; of several at one place the last one
/// is seen.
fn listed_at(mounts: &str, directory: &Path) -> Option<String> {
    let seen = mounts.lines().rfind(|line| {
        let place = line.split(' ').nth(4).map(plain);
        place.as_deref() == Some(directory.as_os_str().as_bytes())
    })?;
    let mut words = seen.split_once(" - ")?.1.split(' ');
    let (kind, source) = (words.next()?, plain(words.next()?));
    let pool = String::from_utf8(source).ok()?.strip_prefix("slackline:")?.to_owned();
    // Mounts of root's have no kind of their own.
    matches!(kind, "fuse" | "fuse.slackline").then_some(pool)
}

/// A word of that list: blanks, line ends and backslashes are in it as `\\` and three octal digits.
fn plain(word: &str) -> Vec<u8> {
    let mut parts = word.split('\\');
    let mut plain: Vec<u8> = parts.next().unwrap_or_default().into();
    for part in parts {
        let digits = part.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match digits {
            Some(byte) => {
                plain.push(byte);
                plain.extend(&part.as_bytes()[3..]);
            }
            None => {
                plain.push(b'\\');
                plain.extend(part.as_bytes());
            }
        }
    }
    plain
}

/// Why a directory was not unmounted.
#[derive(Debug)]
pub enum NotUnmounted {
    /// What is mounted there, if anything, is none of ours.
    NotOurs,
    /// A program uses it, or the system says no for another reason.
    System(io::Error),
}

impl From<io::Error> for NotUnmounted {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

/// Unmounts a directory with a mount of ours, also one whose process has gone: as root by the kernel's
/// own call, as anybody else by `fusermount3`.
///
/// # Errors
/// Where none of ours is there, or a program uses it.
pub fn unmount(directory: &Path) -> Result<(), NotUnmounted> {
    let directory = place_of(directory)?;
    let mounts = std::fs::read_to_string("/proc/self/mountinfo")?;
    if listed_at(&mounts, &directory).is_none() {
        return Err(NotUnmounted::NotOurs);
    }
    if rustix::process::geteuid().is_root() {
        let unmounted = rustix::mount::unmount(&directory, UnmountFlags::NOFOLLOW);
        return Ok(unmounted.map_err(io::Error::from)?);
    }
    let ended = Command::new("fusermount3").arg("-u").arg("--").arg(&directory).output()?;
    match ended.status.success() {
        true => Ok(()),
        false => {
            let said = String::from_utf8_lossy(&ended.stderr).trim().to_owned();
            Err(io::Error::other(said).into())
        }
    }
}

/// Where a directory is, without links and dots. One whose mount's process has gone cannot be looked
/// at: what leads to it can.
fn place_of(directory: &Path) -> io::Result<PathBuf> {
    match directory.canonicalize() {
        Err(error) if error.kind() == io::ErrorKind::NotConnected => {
            let whole = std::path::absolute(directory)?;
            let (Some(parent), Some(name)) = (whole.parent(), whole.file_name()) else {
                return Err(error);
            };
            Ok(parent.canonicalize()?.join(name))
        }
        place => place,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_is_known_by_its_kind_its_pool_and_its_place() {
        let mounts = "29 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
                      40 29 0:50 / /mnt/a\\040b rw,nosuid shared:3 - fuse.slackline slackline:my\\040pool rw\n\
                      41 29 0:51 / /mnt/c rw - fuse.sshfs slackline:x rw\n\
                      42 29 0:52 / /mnt/d rw - fuse.slackline slackline:one rw\n\
                      44 29 0:54 / /mnt/e rw - fuse slackline:one rw\n\
                      43 42 0:53 / /mnt/d rw - tmpfs none rw\n";
        let at = |place: &str| listed_at(mounts, Path::new(place));
        assert_eq!(at("/mnt/a b").as_deref(), Some("my pool"));
        assert_eq!(at("/mnt/e").as_deref(), Some("one"));
        for other in ["/", "/mnt", "/mnt/a", "/mnt/a b/c", "/mnt/c", "/mnt/d"] {
            assert_eq!(at(other), None, "{other}");
        }
    }
}
