//! Loads that were recorded elsewhere, read record by record.
//!
//! One job: turn a file of a recorded load into the [`Demand`](crate::workload::Demand)s
//! that it recorded. A bad record is an [`Error`] with its place and with what to do
//! about it; no input makes a reader panic.

use std::fmt;

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
