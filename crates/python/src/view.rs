//! Bytes of a file where they are, as Python's buffers see them.
//!
//! Invariant: while a view of any bytes lives, its handle counts it, and no call moves the bytes or
//! gives their memory back.

use crate::Handle;
use pyo3::exceptions::PyBufferError;
use pyo3::{ffi, prelude::*};
use std::os::raw::{c_int, c_void};
use std::sync::atomic::Ordering;

/// What a memoryview of a peek is made of.
#[pyclass(frozen, module = "slackline._slackline")]
pub struct View {
    handle: Py<Handle>,
    data: usize,
    len: usize,
}

impl View {
    /// A view that the handle counts already, where it has bytes.
    pub fn new(handle: Py<Handle>, data: usize, len: usize) -> Self {
        Self { handle, data, len }
    }
}

#[pymethods]
impl View {
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        if view.is_null() {
            return Err(PyBufferError::new_err("there is no place for the view"));
        }
        let this = slf.get();
        // SAFETY: the bytes stay while this view lives (see the module), and the buffer
        // keeps it alive; it is filled as one that cannot be written to.
        let filled = unsafe {
            let data = this.data as *mut c_void;
            ffi::PyBuffer_FillInfo(view, slf.as_ptr(), data, this.len as isize, 1, flags)
        };
        if filled == 0 { Ok(()) } else { Err(PyErr::fetch(slf.py())) }
    }
}

impl Drop for View {
    fn drop(&mut self) {
        if self.len > 0 {
            self.handle.get().views.fetch_sub(1, Ordering::AcqRel);
        }
    }
}
