//! Why a trace cannot be read on, and where in its file.

use std::fmt;

/// Why a trace cannot be read on, where, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Where the record begins.
    pub place: Place,
    /// What is wrong.
    pub problem: String,
    /// What to do about it.
    pub remedy: &'static str,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.place, self.problem, self.remedy)
    }
}

impl std::error::Error for Error {}

/// Where in a file a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The line, from 1.
    Line(u64),
    /// The byte, from 0.
    Offset(u64),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(line) => write!(f, "line {line}"),
            Self::Offset(offset) => write!(f, "byte {offset}"),
        }
    }
}
