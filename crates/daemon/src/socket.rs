//! The sockets in the file system: claimed by one daemon, free of stale ones,
//! with their permissions from the first moment.
//!
//! Invariant: whoever holds a [`Claim`] is the only daemon on its path. The claim
//! is a lock that ends with the process, however that ends; a socket file that is
//! found under a claim is therefore stale.

use crate::config::SocketMode;
use crate::lock::Mutex;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tokio::net::UnixListener;

/// What of a path the system permits for a socket.
const PATH_MAX: usize = 107;

/// Why there is no socket.
#[derive(Debug)]
pub enum SocketError {
    /// Another daemon has it.
    Taken(PathBuf),
    /// A program that is none of ours listens there.
    Used(PathBuf),
    /// Something that is no socket is in its place.
    Occupied(PathBuf),
    /// The file system refuses.
    Io(PathBuf, io::Error),
}

impl SocketError {
    /// What is wrong, and what to do.
    pub fn texts(&self) -> (String, &'static str) {
        match self {
            Self::Taken(path) => (
                format!("another daemon serves {}", path.display()),
                "stop it, or give this one a socket of its own with --socket",
            ),
            Self::Used(path) => (
                format!("another program listens at {}", path.display()),
                "give this daemon a socket of its own with --socket",
            ),
            Self::Occupied(path) => (
                format!("{} is in the place of the socket, and is none", path.display()),
                "move it away, or give another path with --socket",
            ),
            Self::Io(path, error) if error.kind() == io::ErrorKind::InvalidInput => (
                format!("{}: {error}: at most {PATH_MAX} bytes", path.display()),
                "give a shorter path with --socket",
            ),
            Self::Io(path, error) => (
                format!("{}: {error}", path.display()),
                "make the directory writable, or give another path with --socket",
            ),
        }
    }
}

/// The right to serve at a path.
#[derive(Debug)]
pub struct Claim {
    control: PathBuf,
    /// The sockets that were made here; nothing else is removed.
    made: Mutex<Vec<PathBuf>>,
    _lock: File,
}

impl Claim {
    /// Claims the control socket's path, and with it the data socket's.
    pub fn new(control: &Path) -> Result<Self, SocketError> {
        let directory = control.parent().unwrap_or(Path::new("."));
        let error = |path: &Path, cause| SocketError::Io(path.to_owned(), cause);
        if !directory.as_os_str().is_empty() {
            fs::create_dir_all(directory).map_err(|cause| error(directory, cause))?;
        }
        let lock_path = control.with_extension("lock");
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(&lock_path)
            .map_err(|cause| error(&lock_path, cause))?;
        match lock.try_lock() {
            Ok(()) => {
                let (control, made) = (control.to_owned(), Mutex::default());
                Ok(Self { control, made, _lock: lock })
            }
            Err(TryLockError::WouldBlock) => Err(SocketError::Taken(control.to_owned())),
            Err(TryLockError::Error(cause)) => Err(error(&lock_path, cause)),
        }
    }

    /// The control socket's path.
    pub fn control_path(&self) -> &Path {
        &self.control
    }

    /// The data socket's path.
    pub fn data_path(&self) -> PathBuf {
        wire::socket::data_path(&self.control)
    }

    /// The path of the socket for block devices.
    pub fn nbd_path(&self) -> PathBuf {
        wire::socket::nbd_path(&self.control)
    }

    /// Listens on all sockets. Must run inside the runtime.
    pub fn listen(&self, mode: SocketMode) -> Result<Listeners, SocketError> {
        let listen = |path: &Path| {
            let listener = listen(path, mode)?;
            self.made.lock().push(path.to_owned());
            Ok(listener)
        };
        Ok(Listeners {
            control: listen(&self.control)?,
            data: listen(&self.data_path())?,
            nbd: listen(&self.nbd_path())?,
        })
    }
}

/// What a daemon listens on.
pub struct Listeners {
    /// Control: HTTP.
    pub control: UnixListener,
    /// Streams and best effort: frames.
    pub data: UnixListener,
    /// Block devices: NBD.
    pub nbd: UnixListener,
}

impl Drop for Claim {
    fn drop(&mut self) {
        // One that is not there is as good.
        for path in self.made.lock().drain(..) {
            let _ = fs::remove_file(path);
        }
    }
}

/// Listens at `path`. The socket is made in a directory that is closed to others
/// and moved to its place with its permissions set: there is no moment in which
/// it is open to more than `mode` says.
fn listen(path: &Path, mode: SocketMode) -> Result<UnixListener, SocketError> {
    let error = |cause| SocketError::Io(path.to_owned(), cause);
    match fs::symlink_metadata(path) {
        Ok(found) if !found.file_type().is_socket() => {
            return Err(SocketError::Occupied(path.to_owned()));
        }
        // No daemon of ours, which would have the claim.
        Ok(_) => match is_stale(path) {
            Ok(true) => {}
            Ok(false) => return Err(SocketError::Used(path.to_owned())),
            Err(cause) => return Err(error(cause)),
        },
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => {}
        Err(cause) => return Err(error(cause)),
    }
    let nest = nest(path).map_err(error)?;
    let inside = nest.join(IN_NEST);
    let made = (|| {
        let listener = UnixListener::bind(&inside)?;
        // Who has a use for one asks for it (`data::give`); an old system cannot be told so.
        let _ = engine::take_descriptors(listener.as_fd(), false);
        fs::set_permissions(&inside, fs::Permissions::from_mode(mode.0))?;
        fs::rename(&inside, path)?;
        Ok(listener)
    })();
    let _ = fs::remove_file(&inside);
    let _ = fs::remove_dir(&nest);
    made.map_err(error)
}

/// Whether nobody listens at a socket. Who does and is stopped is not waited for.
fn is_stale(path: &Path) -> io::Result<bool> {
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    match rustix::net::connect(&socket, &SocketAddrUnix::new(path)?) {
        Err(rustix::io::Errno::CONNREFUSED | rustix::io::Errno::NOENT) => Ok(true),
        // It is of another kind, or its program has much to do.
        Ok(()) | Err(rustix::io::Errno::PROTOTYPE | rustix::io::Errno::AGAIN) => Ok(false),
        Err(cause) => Err(cause.into()),
    }
}

/// The name of a socket in its nest.
const IN_NEST: &str = "s";

/// Makes the directory in which the socket for `path` is made. One that is there is stale, as the
/// sockets are: its daemon was killed in that moment. It is removed where it is this user's; a
/// link is not followed, and what somebody else has put there stays and is an error.
fn nest(path: &Path) -> io::Result<PathBuf> {
    let nest = path.with_extension("nest");
    let make = || fs::DirBuilder::new().mode(0o700).create(&nest);
    match make() {
        Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => {
            let found = fs::symlink_metadata(&nest)?;
            if !found.is_dir() || found.uid() != rustix::process::geteuid().as_raw() {
                let what = format!("{} is there, and not this user's: remove it", nest.display());
                return Err(io::Error::new(io::ErrorKind::AlreadyExists, what));
            }
            match fs::remove_file(nest.join(IN_NEST)) {
                Err(cause) if cause.kind() != io::ErrorKind::NotFound => return Err(cause),
                _ => fs::remove_dir(&nest)?,
            }
            make()?;
        }
        made => made?,
    }
    Ok(nest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch() -> tempfile::TempDir {
        tempfile::Builder::new().prefix("slackline-").tempdir().unwrap()
    }

    #[tokio::test]
    async fn a_stale_socket_is_replaced_and_a_second_daemon_is_refused() {
        let dir = scratch();
        let path = dir.path().join("run/s.sock");
        let claim = Claim::new(&path).unwrap();
        assert!(matches!(Claim::new(&path), Err(SocketError::Taken(_))));
        let listeners = claim.listen(SocketMode(0o660)).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o660);
        // As a kill leaves it: the socket files stay, the lock does not.
        drop(listeners);
        fs::hard_link(&path, dir.path().join("kept")).unwrap();
        drop(claim);
        fs::rename(dir.path().join("kept"), &path).unwrap();
        assert!(std::os::unix::net::UnixStream::connect(&path).is_err(), "stale");
        let claim = Claim::new(&path).unwrap();
        let _listeners = claim.listen(SocketMode(0o600)).unwrap();
        assert!(std::os::unix::net::UnixStream::connect(&path).is_ok());
        drop(claim);
        assert!(!path.exists() && !wire::socket::data_path(&path).exists());
    }

    #[tokio::test]
    async fn a_file_in_the_place_of_the_socket_is_left_alone() {
        let dir = scratch();
        let path = dir.path().join("s.sock");
        fs::write(&path, "precious").unwrap();
        let claim = Claim::new(&path).unwrap();
        let error = claim.listen(SocketMode(0o660)).err().unwrap();
        assert!(matches!(&error, SocketError::Occupied(at) if at == &path));
        assert_eq!(fs::read(&path).unwrap(), b"precious");
        let beside = wire::socket::data_path(&path);
        fs::write(&beside, "precious").unwrap();
        drop(claim);
        for path in [&path, &beside] {
            assert_eq!(fs::read(path).unwrap(), b"precious", "also when it ends");
        }
        // It had made the first of the sockets.
        fs::remove_file(&path).unwrap();
        let claim = Claim::new(&path).unwrap();
        assert!(claim.listen(SocketMode(0o660)).is_err());
        drop(claim);
        assert!(!path.exists() && beside.exists());
    }

    #[tokio::test]
    async fn the_socket_of_another_program_is_left_alone() {
        let dir = scratch();
        let path = dir.path().join("s.sock");
        let other = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let claim = Claim::new(&path).unwrap();
        assert!(matches!(claim.listen(SocketMode(0o660)), Err(SocketError::Used(_))));
        drop(claim);
        assert!(std::os::unix::net::UnixStream::connect(&path).is_ok());
        drop(other);
        let datagrams = dir.path().join("d.sock");
        let _other = std::os::unix::net::UnixDatagram::bind(&datagrams).unwrap();
        let claim = Claim::new(&datagrams).unwrap();
        assert!(matches!(claim.listen(SocketMode(0o660)), Err(SocketError::Used(_))));
        assert!(Claim::new(&path).unwrap().listen(SocketMode(0o660)).is_ok(), "stale");
    }

    /// A daemon that is killed at that moment leaves the directory in which it made the socket.
    #[tokio::test]
    async fn a_nest_that_a_killed_daemon_has_left_is_replaced() {
        let dir = scratch();
        let path = dir.path().join("s.sock");
        let claim = Claim::new(&path).unwrap();
        for is_made in [false, true] {
            let nest = dir.path().join("s.nest");
            fs::create_dir(&nest).unwrap();
            if is_made {
                drop(UnixListener::bind(nest.join(IN_NEST)).unwrap());
            }
            let _listeners = claim.listen(SocketMode(0o660)).unwrap();
            assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o660);
            assert!(std::os::unix::net::UnixStream::connect(&path).is_ok());
            assert!(!nest.exists(), "and leaves none");
        }
    }

    /// Whoever may write beside the socket does not lead the daemon to files elsewhere.
    #[tokio::test]
    async fn a_link_in_the_place_of_the_nest_is_not_followed() {
        let dir = scratch();
        let elsewhere = dir.path().join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        fs::write(elsewhere.join(IN_NEST), "precious").unwrap();
        std::os::unix::fs::symlink(&elsewhere, dir.path().join("s.nest")).unwrap();
        let claim = Claim::new(&dir.path().join("s.sock")).unwrap();
        assert!(matches!(claim.listen(SocketMode(0o660)), Err(SocketError::Io(..))));
        assert_eq!(fs::read(elsewhere.join(IN_NEST)).unwrap(), b"precious");
    }
}
