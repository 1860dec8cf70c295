//! The quantities that every room speaks in: [`Instant`], [`Duration`],
//! [`Bytes`], [`Rate`], [`Lba`], and the [`Access`] that is made of them.
//!
//! One job: give each quantity a type, so that a rate is never added to a time
//! and a sector is never taken for a byte. Everything is an integer (nanoseconds,
//! bytes, sectors); nothing here knows a clock. Overflow is a programmer error
//! and panics, except where a name says `saturating` or `checked`.
#![no_std]

#[cfg(test)]
extern crate alloc;

mod access;
mod size;
mod text;
mod time;

pub use access::{Access, Command, Direction, Lba, SECTOR};
pub use size::{Bytes, Rate};
pub use text::ParseError;
pub use time::{Duration, Instant};
