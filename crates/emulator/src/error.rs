//! Why a drive cannot be emulated, and what to do about it.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// What went wrong.
#[derive(Debug)]
pub enum Error {
    /// The kernel has no FUSE, or does not let us use it.
    NoFuse(io::Error),
    /// The directory for the mount cannot be used.
    Directory(PathBuf, io::Error),
    /// The directory is not empty; what is there would be hidden.
    NotEmpty(PathBuf),
    /// Another file system is mounted there.
    Mounted(PathBuf),
    /// An emulator was here and was killed; its mount is left.
    Stale(PathBuf),
    /// The backing file cannot be used.
    Backing(PathBuf, io::Error),
    /// Another process has the backing file.
    BackingInUse(PathBuf),
    /// The backing file is larger than the disk.
    BackingTooLarge(PathBuf, units::Bytes),
    /// A fault that this drive cannot have.
    Order(String),
    /// Some program has a file of the mount open.
    Busy(PathBuf),
    /// The mount cannot be taken away.
    Unmount(PathBuf, io::Error),
    /// The thread that is the drive came to an end that it should not have.
    Drive,
    /// The threads that take the kernel's requests came to an end that they should not have.
    Session(io::Error),
}

impl Error {
    /// What to do next.
    pub fn next_step(&self) -> String {
        match self {
            Self::NoFuse(_) => "run it as root, on a kernel with FUSE (modprobe fuse)".into(),
            Self::Directory(..) | Self::NotEmpty(_) => "give an empty or a new directory".into(),
            Self::Mounted(path) => format!("give another directory, or umount {}", path.display()),
            Self::Stale(path) => format!("umount {}", path.display()),
            Self::Backing(..) => {
                "give a path that is there and that this user may read and write".into()
            }
            Self::BackingInUse(_) => "give another file, or end the other program".into(),
            Self::BackingTooLarge(..) => "give another file, or a larger --size".into(),
            Self::Order(_) => "correct the fault".into(),
            Self::Busy(path) => format!(
                "end the programs that use it (fuser -m {0}), detach its loop devices \
                 (losetup -j {0}/disk.img); a second signal ends it at once",
                path.display()
            ),
            Self::Unmount(path, _) => format!("umount -l {}", path.display()),
            Self::Drive | Self::Session(_) => {
                "start it again; this is a defect that is worth a report".into()
            }
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoFuse(error) => write!(f, "cannot mount over FUSE: {error}"),
            Self::Directory(path, error) => write!(f, "{}: {error}", path.display()),
            Self::NotEmpty(path) => {
                write!(f, "{} is not empty; a mount would hide what it holds", path.display())
            }
            Self::Mounted(path) => write!(f, "something is mounted on {}", path.display()),
            Self::Stale(path) => write!(
                f,
                "{} has the mount of an emulator that was killed; nobody answers there",
                path.display()
            ),
            Self::Backing(path, error) => write!(f, "{}: {error}", path.display()),
            Self::BackingInUse(path) => {
                write!(f, "{} is in use by another program", path.display())
            }
            Self::BackingTooLarge(path, capacity) => write!(
                f,
                "{} is larger than the disk, of which it would hold {capacity}",
                path.display()
            ),
            Self::Order(why) => write!(f, "{why}"),
            Self::Busy(path) => write!(f, "{} is still in use", path.display()),
            Self::Unmount(path, error) => write!(f, "cannot unmount {}: {error}", path.display()),
            Self::Drive => write!(f, "the drive's thread ended unexpectedly"),
            Self::Session(error) => write!(f, "the FUSE session ended unexpectedly: {error}"),
        }
    }
}

impl std::error::Error for Error {}
