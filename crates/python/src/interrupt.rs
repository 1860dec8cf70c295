//! Python's handlers of signals run while a call waits, as in its own calls that wait.
//!
//! Invariant: what a handler raises is raised by the call that it has ended.

use pyo3::prelude::*;
use std::cell::RefCell;

thread_local! {
    /// What a handler has raised in the call that this thread is in.
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// Has the handlers run from now on.
pub fn begin() {
    client::when_interrupted(run_handlers);
}

/// Runs the handlers of signals that have come; true where one has raised something. On other
/// threads than the main one, Python has none.
pub fn run_handlers() -> bool {
    let ran = Python::try_attach(|py| py.check_signals());
    let raised = ran.and_then(Result::err);
    let ends = raised.is_some();
    RAISED.with_borrow_mut(|place| *place = raised);
    ends
}

/// What the handler has raised that has ended a call of this thread.
pub fn raised() -> Option<PyErr> {
    RAISED.take()
}
