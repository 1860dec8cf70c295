//! A shim for programs as they are: loaded before the C library (`LD_PRELOAD`), it
//! takes the calls that open a path below a prefix, and everything that is then done
//! with the descriptor, to a volume under contract. All else goes on to the C library.
//!
//! Invariants: a descriptor of a volume is one of the kernel's, too (of a place that
//! can be neither read nor written), so that no other file gets its number and a call
//! that the shim does not know fails instead of doing something else; a child of a
//! fork has none of the volumes, so that what it closes stays open in its parent; no
//! panic leaves this crate; no lock is held while another function of the program's may
//! run.
#![allow(unsafe_code)] // what C hands over is pointers
#![allow(clippy::missing_safety_doc)] // each function is the C library's of its name

mod attributes;
mod buffered;
mod ending;
mod files;
mod forks;
mod lock;
mod mapping;
mod names;
mod naming;
mod opening;
mod real;
mod refusals;
mod rules;
mod status;
mod stream;
mod table;
mod times;
mod transfers;

use client::Error;
use libc::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs a call on a volume: `bad` and `errno` where it fails.
fn guard<T>(bad: T, body: impl FnOnce() -> Result<T, Error>) -> T {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(good)) => good,
        Ok(Err(error)) => {
            set_errno(error.errno());
            bad
        }
        Err(_) => {
            set_errno(libc::EIO);
            bad
        }
    }
}

/// Tells a person, by standard error. Without the lock that `eprintln` takes: a child of a fork would find
/// it held for ever, if another thread was just telling something.
fn say(text: &str) {
    let mut rest = text.as_bytes();
    while !rest.is_empty() {
        // SAFETY: the bytes are there.
        let written = unsafe { real::write(libc::STDERR_FILENO, rest.as_ptr().cast(), rest.len()) };
        match usize::try_from(written) {
            Ok(written) if written > 0 => rest = &rest[written.min(rest.len())..],
            _ => return, // nobody hears it
        }
    }
}

fn set_errno(number: c_int) {
    // SAFETY: the address is this thread's own `errno`, which lives as long as it does.
    unsafe { *libc::__errno_location() = number };
}
