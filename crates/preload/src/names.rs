//! Paths that the program hands over.

use crate::rules::rules;
use client::control::FileKind;
use client::{Client, Error, Found};
use libc::c_char;
use std::ffi::CStr;
use std::io;

/// What a path names.
#[derive(Clone, Copy)]
pub enum Place<'a> {
    /// The prefix itself: the directory of all volumes.
    Top,
    /// Something below it: a volume, or a directory of volumes.
    Below(&'a str),
    /// The same where a slash follows the name: a volume is an error there.
    Directory(&'a str),
}

impl<'a> Place<'a> {
    /// Its name at the daemon; empty for the prefix itself.
    pub fn name(self) -> &'a str {
        match self {
            Self::Top => "",
            Self::Below(name) | Self::Directory(name) => name,
        }
    }
}

/// What the daemon has under the name of a place, which is not the prefix itself.
///
/// # Errors
/// `ENOTDIR` where that is a volume and a slash follows its name; and the daemon's.
pub fn found(client: &Client, place: Place<'_>) -> Result<Found, Error> {
    let found = client.file_facts(place.name())?;
    match place {
        Place::Directory(name) if !is_directory(&found) => {
            let cause = io::Error::from_raw_os_error(libc::ENOTDIR);
            Err(Error::Path { path: format!("{name}/").into(), cause })
        }
        _ => Ok(found),
    }
}

/// Whether what was found is a directory.
pub fn is_directory(found: &Found) -> bool {
    match found {
        Found::Volume(facts) => facts.kind == FileKind::Directory,
        Found::Directory(_) => true,
    }
}

/// What a path names of ours, if it does. A relative path never does.
///
/// # Safety
/// `path` is null, or ends in a zero byte and stays while the result is used.
pub unsafe fn place<'a>(path: *const c_char) -> Option<Place<'a>> {
    // SAFETY: as the caller promises.
    let path = unsafe { absolute(path) }?;
    match rules().below(path).map(|name| (name, name.trim_end_matches('/'))) {
        Some((_, ".")) => Some(Place::Top),
        Some((given, name)) if given == name => Some(Place::Below(name)),
        Some((_, name)) => Some(Place::Directory(name)),
        None => rules().is_prefix(path).then_some(Place::Top),
    }
}

/// # Safety
/// As for [`place`].
unsafe fn absolute<'a>(path: *const c_char) -> Option<&'a str> {
    if path.is_null() {
        return None;
    }
    // SAFETY: as the caller promises.
    let path = unsafe { CStr::from_ptr(path) }.to_str().ok()?;
    path.starts_with('/').then_some(path)
}
