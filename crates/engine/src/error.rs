//! What can stand between a person and an open pool, and what to do about it.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use units::Bytes;

/// Why a pool cannot be made, opened or checked.
#[derive(Debug)]
pub enum PoolError {
    /// No devices were named.
    NoDevices,
    /// A device's name is not of the form that names have.
    Spec {
        /// The name as given.
        text: String,
        /// What is wrong with it.
        why: String,
    },
    /// The system refused something.
    Io {
        /// On what.
        path: PathBuf,
        /// What was tried, as in "cannot ...".
        action: &'static str,
        /// What the system said.
        error: io::Error,
    },
    /// Another process (or this one) has the device.
    InUse {
        /// Which device.
        path: PathBuf,
    },
    /// There is no such device, and no file is made among devices.
    NoDevice {
        /// The name as given.
        path: PathBuf,
    },
    /// A file was to be made in a directory that is not there.
    NoDirectory {
        /// Which file.
        path: PathBuf,
    },
    /// The pool's disk was not made on this emulated disk: what its label says fits in the file, and
    /// not in the model.
    OtherModel {
        /// Which file.
        path: PathBuf,
        /// The model that was given.
        model: String,
        /// What that has.
        capacity: Bytes,
        /// What the label says.
        expected: Bytes,
    },
    /// The file may only be read.
    ReadOnly {
        /// Which file.
        path: PathBuf,
    },
    /// Neither a plain file nor a block device.
    NotADevice {
        /// What it is the path of.
        path: PathBuf,
    },
    /// There is something on the device already.
    HoldsData {
        /// Which device.
        path: PathBuf,
        /// What was found there.
        what: String,
    },
    /// A loop device gives the file as a block device, which may be mounted.
    BehindLoop {
        /// Which file.
        path: PathBuf,
        /// Which device.
        device: String,
    },
    /// A new file needs a size.
    NoSize {
        /// Which file.
        path: PathBuf,
    },
    /// The file system has not so much space.
    NoSpace {
        /// Which file.
        path: PathBuf,
        /// How large it was to be.
        size: Bytes,
        /// What is left, with what the file has already.
        left: Bytes,
    },
    /// The device transfers in larger pieces than 4 KiB.
    LargeSectors {
        /// Which device.
        path: PathBuf,
        /// Its sector.
        sector: Bytes,
    },
    /// The model of an emulated disk does not fit.
    Model {
        /// Which device.
        path: PathBuf,
        /// What the model says.
        error: disk::Error,
    },
    /// The profile of a disk cannot be used.
    Profile {
        /// Which device.
        path: PathBuf,
        /// What the profile says.
        error: disk::Error,
    },
    /// The buses cannot be as they are described.
    Bus {
        /// What is wrong, and what would do.
        why: String,
    },
    /// Two devices are parts of one drive.
    SharedDrive {
        /// The devices.
        paths: [PathBuf; 2],
        /// The kernel's name of the drive.
        drive: String,
    },
    /// The devices cannot become a pool.
    Format {
        /// The devices, in the order in which the error counts them.
        devices: Vec<PathBuf>,
        /// What the store says.
        error: store::FormatError,
    },
    /// What is on the devices is no sound pool.
    Open {
        /// The devices, in the order in which the error counts them.
        devices: Vec<PathBuf>,
        /// What the store says.
        error: store::OpenError,
    },
    /// The disks are too slow for the node's own work, or an option is out of range.
    Node(node::Error),
    /// There is not so much memory for the arena.
    Memory {
        /// How much was asked for.
        asked: Bytes,
        /// What the system said.
        error: io::Error,
    },
    /// The system gives no threads, or nothing to wake them with.
    Threads(io::Error),
    /// The system gives no ring for a device.
    Uring {
        /// Which device.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// An option is out of range.
    Option {
        /// Which.
        name: &'static str,
        /// The range.
        rule: &'static str,
    },
}

impl PoolError {
    pub(crate) fn io(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |error| Self::Io { path, action, error }
    }
}

impl fmt::Display for PoolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoDevices => write!(f, "a pool needs at least one file or block device"),
            Self::Spec { text, why } => {
                write!(f, "{text:?}: {why}; name a file, a block device, or emulated:MODEL:FILE")
            }
            Self::Io { path, action, error } => {
                write!(f, "{}: cannot {action}: {error}", path.display())
            }
            Self::InUse { path } => write!(
                f,
                "{} is in use: one process at a time has a pool; stop the other one or talk to it \
                 (`lslocks` shows who has it)",
                path.display()
            ),
            Self::NoDevice { path } => write!(
                f,
                "there is no device {}; `lsblk` lists those that there are, and a file of that \
                 name would be memory",
                path.display()
            ),
            Self::NoDirectory { path } => {
                let directory = path.parent().unwrap_or(path).display();
                write!(f, "{}: there is no directory {directory}; make it first", path.display())
            }
            Self::OtherModel { path, model, capacity, expected } => write!(
                f,
                "{} was made as a file, or on another model: its label says {} bytes, which the file \
                 has, and emulated:{model} has {} of it; give the path alone, or with the model that \
                 it was made on",
                path.display(),
                expected.get(),
                capacity.get()
            ),
            Self::ReadOnly { path } => write!(
                f,
                "{} may only be read; a pool needs to write, so change its permissions or mount",
                path.display()
            ),
            Self::NotADevice { path } => {
                write!(f, "{} is neither a file nor a block device", path.display())
            }
            Self::BehindLoop { path, device } => write!(
                f,
                "{} is what {device} holds, which may be mounted; choose another file, or let that go \
                 first: `losetup -d {device}`",
                path.display()
            ),
            Self::HoldsData { path, what } => write!(
                f,
                "{} holds {what}; choose another one, or force it if that may be destroyed",
                path.display()
            ),
            Self::NoSize { path } => {
                write!(f, "{} is to be made; say how large, as in 10GiB", path.display())
            }
            Self::NoSpace { path, size, left } => write!(
                f,
                "{}: its file system has {left} left, and not {size}; choose a smaller size or another place",
                path.display()
            ),
            Self::LargeSectors { path, sector } => write!(
                f,
                "{} transfers in sectors of {sector}; Slackline needs 4 KiB or less",
                path.display()
            ),
            Self::Model { path, error } | Self::Profile { path, error } => {
                write!(f, "{}: {error}", path.display())
            }
            Self::SharedDrive { paths: [one, other], drive } => write!(
                f,
                "{} and {} lie on one drive, {drive}: each would be promised all of its time; use \
                 the whole drive, or one part of it, or say --shared-drive where no contract has \
                 to be kept",
                one.display(),
                other.display()
            ),
            Self::Bus { why } => write!(f, "{why}"),
            Self::Format { devices, error } => {
                write!(f, "{error}")?;
                number(f, devices)
            }
            Self::Open { devices, error } => {
                write!(f, "{error}")?;
                number(f, devices)
            }
            Self::Node(error) => write!(f, "{error}"),
            Self::Memory { asked, error } => {
                write!(f, "no {asked} of memory for the arena ({error}); give it less")
            }
            Self::Threads(error) => {
                write!(f, "no threads for the disks ({error}); raise the limit of processes")
            }
            Self::Uring { path, error } => write!(
                f,
                "{}: no io_uring ({error}); it needs Linux 5.11 and kernel.io_uring_disabled=0, and \
                 in a container a profile that permits it",
                path.display()
            ),
            Self::Option { name, rule } => write!(f, "{name}: give {rule}"),
        }
    }
}

/// Says which path is which of the disks that the store numbers.
fn number(f: &mut fmt::Formatter<'_>, devices: &[PathBuf]) -> fmt::Result {
    for (index, path) in devices.iter().enumerate() {
        let before = if index == 0 { " (disk " } else { ", disk " };
        write!(f, "{before}{index}: {}", path.display())?;
    }
    write!(f, ")")
}

impl std::error::Error for PoolError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { error, .. } => Some(error),
            Self::Model { error, .. } | Self::Profile { error, .. } => Some(error),
            _ => None,
        }
    }
}
