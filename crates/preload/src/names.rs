//! Paths that the program hands over.

use crate::rules::rules;
use libc::c_char;
use std::ffi::CStr;

/// What a path names.
#[derive(Clone, Copy)]
pub enum Place<'a> {
    /// The prefix itself: the directory of all volumes.
    Top,
    /// Something below it: a volume, or a directory of volumes. Slashes at its end are none of its name.
    Below(&'a str),
}

/// The volume that a path names, if it is one. A relative path never is.
///
/// # Safety
/// `path` is null, or ends in a zero byte and stays while the result is used.
pub unsafe fn volume<'a>(path: *const c_char) -> Option<&'a str> {
    // SAFETY: as the caller promises.
    unsafe { absolute(path) }.and_then(|path| rules().volume(path))
}

/// The same, also of the prefix itself and of directories.
///
/// # Safety
/// As for [`volume`].
pub unsafe fn place<'a>(path: *const c_char) -> Option<Place<'a>> {
    // SAFETY: as the caller promises.
    let path = unsafe { absolute(path) }?;
    match rules().volume(path).map(|name| name.trim_end_matches('/')) {
        Some(name) if name != "." => Some(Place::Below(name)),
        Some(_) => Some(Place::Top),
        None => rules().is_prefix(path).then_some(Place::Top),
    }
}

/// # Safety
/// As for [`volume`].
unsafe fn absolute<'a>(path: *const c_char) -> Option<&'a str> {
    if path.is_null() {
        return None;
    }
    // SAFETY: as the caller promises.
    let path = unsafe { CStr::from_ptr(path) }.to_str().ok()?;
    path.starts_with('/').then_some(path)
}
