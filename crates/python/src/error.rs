//! Errors as Python raises them: an `OSError` with what to do next, and the figures
//! where admission refused.

use crate::interrupt;
use pyo3::create_exception;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

create_exception!(
    slackline,
    Error,
    PyOSError,
    "What went wrong, in `strerror`; `next_step` says what to do, `refusal` has the figures \
     where a contract was refused, and `may_be_tried_again` is true where the same may be \
     taken when it is tried again."
);

/// The exception of an error.
pub fn raise(py: Python<'_>, error: &client::Error) -> PyErr {
    if matches!(error, client::Error::Interrupted)
        && let Some(raised) = interrupt::raised()
    {
        return raised;
    }
    let raised = Error::new_err((error.errno(), error.to_string()));
    match describe(py, &raised, error) {
        Ok(()) => raised,
        Err(instead) => instead,
    }
}

fn describe(py: Python<'_>, raised: &PyErr, error: &client::Error) -> PyResult<()> {
    let value = raised.value(py);
    value.setattr("next_step", error.next_step())?;
    value.setattr("may_be_tried_again", error.may_be_tried_again())?;
    let Some(refusal) = error.refusal() else { return value.setattr("refusal", py.None()) };
    let figures = PyDict::new(py);
    figures.set_item("disk", refusal.disk)?;
    figures.set_item("utilisation_ppm", refusal.utilisation_ppm)?;
    figures.set_item("deadline_ns", refusal.deadline_ns.map(|time| time.as_nanos()))?;
    figures.set_item("excess_ns", refusal.excess_ns.map(|time| time.as_nanos()))?;
    figures.set_item("rate_max", refusal.rate_max_bytes_per_second.get())?;
    value.setattr("refusal", figures)
}
