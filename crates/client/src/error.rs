//! What can go wrong for a program, and what to do about it.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use wire::{Code, Problem, Refusal};

/// Why a call failed. [`Error::next_step`] says what to do.
#[derive(Debug)]
pub enum Error {
    /// Nobody answers at the socket.
    NoDaemon {
        /// The socket.
        socket: PathBuf,
        /// Why not.
        cause: io::Error,
    },
    /// A file outside the pool cannot be opened.
    Path {
        /// Where it would be.
        path: PathBuf,
        /// Why not.
        cause: io::Error,
    },
    /// The daemon says no.
    Problem(Box<Problem>),
    /// The connection to the daemon broke.
    Broken(io::Error),
    /// A signal has ended the call, as this process asked for
    /// ([`when_interrupted`](crate::when_interrupted)). What it was to do may be done or not.
    Interrupted,
    /// The daemon said something that cannot be understood.
    Garbled(String),
    /// The disk failed on these bytes of a stream: they are lost to this reader,
    /// which goes on behind them.
    Gap {
        /// Where they start in the volume.
        offset: units::Bytes,
        /// How many they are.
        len: units::Bytes,
    },
}

impl Error {
    /// The daemon's problem, where it is one.
    pub fn problem(&self) -> Option<&Problem> {
        match self {
            Self::Problem(problem) => Some(problem),
            _ => None,
        }
    }

    /// The daemon's code, where it gave one.
    pub fn code(&self) -> Option<Code> {
        self.problem().map(|problem| problem.code)
    }

    /// The figures, where admission refused.
    pub fn refusal(&self) -> Option<&Refusal> {
        self.problem().and_then(|problem| problem.refusal.as_ref())
    }

    /// True where what is in the way passes by itself ([`Problem::passes`]): it is worth to ask again
    /// some seconds later.
    pub fn passes(&self) -> bool {
        self.problem().is_some_and(|problem| problem.passes)
    }

    /// True where the same request may succeed when it is tried again at once, though nobody gives
    /// anything back: a refusal that is undecided, or too much that waits at this moment.
    pub fn may_be_tried_again(&self) -> bool {
        let undecided = self.refusal().is_some_and(|refusal| refusal.undecided);
        undecided || self.code() == Some(Code::Busy)
    }

    /// What to do about it.
    pub fn next_step(&self) -> String {
        match self {
            Self::NoDaemon { socket, cause } if is_barred(cause) => {
                match crate::socket::group(socket) {
                    Some(group) => format!(
                        "join the group {group} (`sudo usermod -aG {group} USER`) and log in again, or \
                     give another socket with --socket"
                    ),
                    None => "use it as root (`sudo`), or ask whoever runs that daemon to let you in: the \
                             group and the mode of its socket say who may"
                        .into(),
                }
            }
            Self::NoDaemon { .. } => "start the daemon with `slackline serve DEVICE...`, or give \
                                      its socket with --socket"
                .into(),
            Self::Path { cause, .. } if is_barred(cause) => {
                "correct the path, or ask whose the file is to let you read it".into()
            }
            Self::Path { .. } => "correct the path".into(),
            Self::Problem(problem) => problem.next_step.clone(),
            Self::Broken(cause) if is_late(cause) => {
                "look at the daemon's messages and at its process (`ps`); what it said is durable is kept"
                    .into()
            }
            Self::Broken(_) => {
                "look at the daemon's messages; what it said is durable is kept".into()
            }
            Self::Interrupted => "make the call again, if it shall still be done".into(),
            Self::Garbled(_) => "use a client and a daemon of the same version".into(),
            Self::Gap { .. } => "`slackline pool status` counts the errors of each disk".into(),
        }
    }

    /// The same for those who speak in numbers, C and the kernel's calls: a value of
    /// `errno`. Several errors share one; the text tells them apart.
    pub fn errno(&self) -> i32 {
        match self {
            Self::NoDaemon { cause, .. } if is_barred(cause) => libc::EACCES,
            Self::NoDaemon { .. } => libc::ECONNREFUSED,
            Self::Path { cause, .. } => cause.raw_os_error().unwrap_or(libc::EINVAL),
            Self::Problem(problem) => errno_of(problem.code),
            Self::Broken(_) => libc::ECONNRESET,
            Self::Interrupted => libc::EINTR,
            Self::Garbled(_) => libc::EPROTO,
            Self::Gap { .. } => libc::EIO,
        }
    }

    /// Whether it says that an answer was waited for and has not come.
    pub(crate) fn ends_the_wait(&self) -> bool {
        match self {
            Self::Broken(cause) => is_late(cause),
            Self::Interrupted => true,
            _ => false,
        }
    }

    pub(crate) fn no_daemon(socket: &Path, cause: io::Error) -> Self {
        Self::NoDaemon { socket: socket.to_owned(), cause }
    }

    /// From the text of a `Failed` frame: one line what, one line what to do.
    pub(crate) fn from_frame(code: Code, text: &[u8]) -> Self {
        let text = String::from_utf8_lossy(text);
        let (detail, next_step) = text.split_once('\n').unwrap_or((&text, ""));
        Self::Problem(Box::new(Problem::new(code, detail, next_step)))
    }

    /// The same error once more, for each of those who wait for it.
    pub(crate) fn again(&self) -> Self {
        let copy = |cause: &io::Error| io::Error::new(cause.kind(), cause.to_string());
        match self {
            Self::NoDaemon { socket, cause } => Self::no_daemon(socket, copy(cause)),
            Self::Path { path, cause } => {
                let cause = match cause.raw_os_error() {
                    Some(number) => io::Error::from_raw_os_error(number),
                    None => copy(cause),
                };
                Self::Path { path: path.clone(), cause }
            }
            Self::Problem(problem) => Self::Problem(problem.clone()),
            Self::Broken(cause) => Self::Broken(copy(cause)),
            Self::Interrupted => Self::Interrupted,
            Self::Garbled(what) => Self::Garbled(what.clone()),
            &Self::Gap { offset, len } => Self::Gap { offset, len },
        }
    }
}

/// There may be a daemon, but not for this user.
fn is_barred(cause: &io::Error) -> bool {
    cause.kind() == io::ErrorKind::PermissionDenied
}

/// Whether the time for an answer was over.
fn is_late(cause: &io::Error) -> bool {
    matches!(cause.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

/// The other side is not there any more.
fn has_ended(cause: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    matches!(cause.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof)
}

fn errno_of(code: Code) -> i32 {
    match code {
        Code::Refused | Code::VolumeBusy | Code::Attached => libc::EBUSY,
        Code::NoSuchVolume => libc::ENOENT,
        Code::GivenUp => libc::ENODATA,
        Code::NotPermitted => libc::EACCES,
        Code::Forbidden => libc::EPERM,
        Code::Quota => libc::EDQUOT,
        Code::VolumeExists => libc::EEXIST,
        Code::NotEmpty => libc::ENOTEMPTY,
        Code::NameTooLong => libc::ENAMETOOLONG,
        Code::NoSuchStream | Code::OtherVolume | Code::OtherPool => libc::ESTALE,
        Code::PoolFull | Code::VolumeFull => libc::ENOSPC,
        Code::NoMemory => libc::ENOMEM,
        Code::Busy => libc::EAGAIN,
        Code::Silent => libc::ETIMEDOUT,
        Code::WrongMode => libc::EBADF,
        Code::ShuttingDown => libc::ESHUTDOWN,
        Code::ReadOnly => libc::EROFS,
        Code::Protocol | Code::Version => libc::EPROTO,
        Code::Device | Code::Medium | Code::Internal => libc::EIO,
        _ => libc::EINVAL, // a value, an address or a disk that is not there
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoDaemon { socket, cause } if is_barred(cause) => {
                write!(f, "this user may not use the daemon at {}", socket.display())?;
                match crate::socket::group(socket) {
                    Some(group) => write!(f, ", which is for the group {group}"),
                    None => write!(f, ": {cause}"),
                }
            }
            Self::NoDaemon { socket, cause } => {
                write!(f, "no daemon answers at {}: {cause}", socket.display())
            }
            Self::Path { path, cause } => write!(f, "{}: {cause}", path.display()),
            Self::Problem(problem) => f.write_str(&problem.detail),
            // Which of them a program sees of a daemon that ends depends on what it did just then.
            Self::Broken(cause) if has_ended(cause) => {
                f.write_str("the daemon has closed the connection")
            }
            Self::Broken(cause) if is_late(cause) => f.write_str(
                "the daemon does not answer: it hangs, or its process is stopped, or a disk hangs",
            ),
            Self::Broken(cause) => write!(f, "the connection to the daemon broke: {cause}"),
            Self::Interrupted => f.write_str("a signal has ended the call"),
            Self::Garbled(what) => write!(f, "the daemon's answer cannot be understood: {what}"),
            Self::Gap { offset, len } => {
                write!(f, "the disk failed on {len} at offset {}: a gap", offset.get())
            }
        }
    }
}
impl std::error::Error for Error {}

impl From<io::Error> for Error {
    /// Takes out the error that [`io::Read`] or [`io::Write`] carried.
    fn from(error: io::Error) -> Self {
        match error.downcast::<Self>() {
            Ok(inner) => inner,
            Err(error) => Self::Broken(error),
        }
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        let kind = match &error {
            Error::NoDaemon { cause, .. } | Error::Path { cause, .. } | Error::Broken(cause) => {
                cause.kind()
            }
            Error::Garbled(_) => io::ErrorKind::InvalidData,
            // Whoever writes or reads all of something would make the call again for the other kind.
            Error::Gap { .. } | Error::Interrupted => io::ErrorKind::Other,
            Error::Problem(problem) => match problem.code {
                Code::VolumeFull | Code::PoolFull => io::ErrorKind::StorageFull,
                Code::NoSuchVolume | Code::NoSuchStream => io::ErrorKind::NotFound,
                Code::NotPermitted | Code::Forbidden => io::ErrorKind::PermissionDenied,
                Code::Quota => io::ErrorKind::QuotaExceeded,
                Code::Invalid => io::ErrorKind::InvalidInput,
                Code::Busy => io::ErrorKind::ResourceBusy,
                Code::ReadOnly => io::ErrorKind::ReadOnlyFilesystem,
                _ => io::ErrorKind::Other,
            },
        };
        Self::new(kind, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// Who may not use the machine's daemon was told how to serve one of his own.
    #[test]
    fn a_socket_that_no_group_may_use_is_asked_for_or_used_as_root() {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("slackline.sock");
        std::fs::write(&socket, "").unwrap();
        std::fs::set_permissions(&socket, PermissionsExt::from_mode(0o600)).unwrap();
        let barred = io::Error::from(io::ErrorKind::PermissionDenied);
        let next = Error::no_daemon(&socket, barred).next_step();
        assert!(next.contains("as root") && next.contains("that daemon"), "{next}");
        assert!(!next.contains("slackline serve"), "{next}");
    }
}
