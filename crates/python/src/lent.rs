//! The bytes of what Python hands over: of everything that lends them as one piece, such
//! as bytes, views and arrays of any kind of number, whatever they mean there.
//!
//! Invariants: the bytes stay until the loan is dropped; one for filling is writable. What
//! says that it holds references to objects is refused: bytes from a file cannot be such.

use pyo3::exceptions::PyTypeError;
use pyo3::{ffi, prelude::*};
use std::ffi::CStr;

/// A loan of bytes.
pub struct Lent {
    // What lends may point into this, so it stays where it is.
    view: Box<ffi::Py_buffer>,
}

impl Lent {
    /// Bytes to read. What lends says why, where it does not: that they do not lie one
    /// behind the other, for one.
    pub fn to_read(from: &Bound<'_, PyAny>) -> PyResult<Self> {
        Self::get(from, ffi::PyBUF_ND)
    }

    /// Bytes to fill.
    pub fn to_fill(from: &Bound<'_, PyAny>) -> PyResult<Self> {
        Self::get(from, ffi::PyBUF_ND | ffi::PyBUF_WRITABLE)
    }

    // PyO3's own buffers are typed, or know no array without dimensions.
    fn get(from: &Bound<'_, PyAny>, flags: i32) -> PyResult<Self> {
        let mut view = Box::new(ffi::Py_buffer::new());
        let mut get = |flags| {
            // SAFETY: the interpreter is held, as `from` shows; the view is a place to fill.
            let got = unsafe { ffi::PyObject_GetBuffer(from.as_ptr(), &raw mut *view, flags) };
            if got == 0 { Ok(()) } else { Err(PyErr::fetch(from.py())) }
        };
        // NumPy's dates have no format to tell, and lend their bytes without one.
        get(flags | ffi::PyBUF_FORMAT).or_else(|_| get(flags))?;
        let lent = Self { view }; // dropped, it gives the loan back
        if lent.holds_objects() {
            return Err(PyTypeError::new_err("references to objects are no bytes of a file"));
        }
        Ok(lent)
    }

    fn holds_objects(&self) -> bool {
        if self.view.format.is_null() {
            return false; // plain bytes
        }
        // SAFETY: what lends gives text that ends, and that lives as long as the loan.
        let format = unsafe { CStr::from_ptr(self.view.format) }.to_bytes();
        // Between colons stand the names of fields.
        format.split(|byte| *byte == b':').step_by(2).any(|kinds| kinds.contains(&b'O'))
    }

    /// Where they lie.
    pub fn address(&self) -> usize {
        self.view.buf as usize
    }

    /// How many they are.
    pub fn len(&self) -> usize {
        self.view.len.cast_unsigned()
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        // SAFETY: the interpreter is held meanwhile; the view was filled, and is given
        // back once.
        Python::attach(|_| unsafe { ffi::PyBuffer_Release(&raw mut *self.view) });
    }
}
