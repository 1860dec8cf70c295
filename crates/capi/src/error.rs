//! The last error of each thread: a number in `errno`, words and figures beside it.
//!
//! Invariant: what `sl_error` gives stays good until the next failure on its thread.

use client::{Code, Error, Problem, Refusal};
use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// `struct sl_refusal`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct SlRefusal {
    disk: u64,
    utilisation_ppm: u64,
    deadline_ns: u64,
    excess_ns: u64,
    rate_max: u64,
}

impl From<&Refusal> for SlRefusal {
    fn from(refusal: &Refusal) -> Self {
        let nanos = |time: Option<client::units::Duration>| time.map_or(0, |t| t.as_nanos());
        Self {
            disk: refusal.disk.into(),
            utilisation_ppm: refusal.utilisation_ppm,
            deadline_ns: nanos(refusal.deadline_ns),
            excess_ns: nanos(refusal.excess_ns),
            rate_max: refusal.rate_max_bytes_per_second.get(),
        }
    }
}

struct Last {
    words: CString,
    refusal: Option<SlRefusal>,
    may_be_tried_again: bool,
}

thread_local! {
    static LAST: RefCell<Last> =
        RefCell::new(Last {
            words: c"nothing has failed".into(),
            refusal: None,
            may_be_tried_again: false,
        });
}

/// Runs the body of a function; what fails or panics ends as `bad`, told.
pub fn guard<T>(bad: T, body: impl FnOnce() -> Result<T, Error>) -> T {
    let panicked = || {
        let what = "the library came to a state that it does not know";
        Err(problem(Code::Internal, what, "close the handle; tell its makers what was called"))
    };
    // What a panic leaves half done is a handle, which the caller may only close.
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|_| panicked()).unwrap_or_else(|error| {
        fail(&error);
        bad
    })
}

/// Remembers an error, and sets `errno`.
pub fn fail(error: &Error) {
    let text = format!("{error}; next: {}", error.next_step());
    // A zero byte can only come from a name, and ends what C can read of it anyway.
    let text = text.split('\0').next().unwrap_or_default();
    let words = CString::new(text).unwrap_or_default();
    let refusal = error.refusal().map(SlRefusal::from);
    let may_be_tried_again = error.may_be_tried_again();
    let failed = Last { words, refusal, may_be_tried_again };
    // A thread that ends has no words left to keep.
    let _ = LAST.try_with(|last| *last.borrow_mut() = failed);
    // SAFETY: the address is this thread's own `errno`, which lives as long as it does.
    unsafe { *libc::__errno_location() = error.errno() };
}

/// The words of the last error.
pub fn words() -> *const c_char {
    LAST.try_with(|last| last.borrow().words.as_ptr()).unwrap_or(c"".as_ptr())
}

/// The figures of the last error, where admission refused.
pub fn refusal() -> Option<SlRefusal> {
    LAST.try_with(|last| last.borrow().refusal).ok().flatten()
}

/// Whether the last error may pass when the same is tried again.
pub fn may_be_tried_again() -> bool {
    LAST.try_with(|last| last.borrow().may_be_tried_again).unwrap_or(false)
}

/// An argument that is none.
pub fn invalid(what: &str) -> Error {
    problem(Code::Invalid, what, "see the man page of the function")
}

fn problem(code: Code, what: &str, next: &str) -> Error {
    Error::Problem(Box::new(Problem::new(code, what, next)))
}
