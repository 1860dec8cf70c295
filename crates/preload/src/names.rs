//! Paths that the program hands over.

use crate::rules::rules;
use libc::c_char;
use std::ffi::CStr;

/// The volume that a path names, if it is one. A relative path never is.
///
/// # Safety
/// `path` is null, or ends in a zero byte and stays while the result is used.
pub unsafe fn volume<'a>(path: *const c_char) -> Option<&'a str> {
    if path.is_null() {
        return None;
    }
    // SAFETY: as the caller promises.
    let path = unsafe { CStr::from_ptr(path) }.to_str().ok()?;
    path.starts_with('/').then(|| rules().volume(path)).flatten()
}
