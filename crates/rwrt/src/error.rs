//! What can go wrong with a measurement, and what to do about it.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Why a measurement failed. [`Error::next_step`] says what to do.
#[derive(Debug)]
pub enum Error {
    /// The daemon, or the way to it.
    Client(client::Error),
    /// A file that the system refuses.
    File {
        /// Which one.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// What was asked for cannot be measured.
    Wrong {
        /// What.
        what: String,
        /// What to do.
        next_step: String,
    },
}

impl Error {
    pub(crate) fn file(path: &Path, cause: io::Error) -> Self {
        Self::File { path: path.to_owned(), cause }
    }

    pub(crate) fn wrong(what: impl Into<String>, next_step: impl Into<String>) -> Self {
        Self::Wrong { what: what.into(), next_step: next_step.into() }
    }

    /// What to do about it.
    pub fn next_step(&self) -> String {
        match self {
            Self::Client(error) => error.next_step(),
            Self::File { cause, .. } if cause.kind() == io::ErrorKind::InvalidInput => {
                "this file system may not take direct transfers: leave --direct away, or name \
                 another place"
                    .into()
            }
            Self::File { cause, .. } => report::mend_path(cause.kind()).into(),
            Self::Wrong { next_step, .. } => next_step.clone(),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Client(error) => error.fmt(f),
            Self::File { path, cause } => write!(f, "{}: {cause}", path.display()),
            Self::Wrong { what, .. } => f.write_str(what),
        }
    }
}
impl std::error::Error for Error {}

impl From<client::Error> for Error {
    fn from(error: client::Error) -> Self {
        Self::Client(error)
    }
}
