//! The quantities that every room speaks in: [`Instant`], [`Duration`],
//! [`Bytes`], [`Rate`], [`Lba`], the [`Access`] that is made of them, and the
//! [`Distribution`] of many times.
//!
//! One job: give each quantity a type, so that a rate is never added to a time
//! and a sector is never taken for a byte. Everything is an integer (nanoseconds,
//! bytes, sectors); nothing here knows a clock. Overflow is a programmer error
//! and panics, except where a name says `saturating` or `checked`: what comes from
//! outside is held to limits before it is a quantity at all ([`Outside`]).
#![no_std]

extern crate alloc;

mod access;
mod distribution;
mod outside;
mod size;
mod text;
mod time;

pub use access::{Access, Command, Direction, Lba, SECTOR};
pub use distribution::Distribution;
pub use outside::{OutOfRange, Outside};
pub use size::{Bytes, Rate};
pub use text::ParseError;
pub use time::{Duration, Instant};
