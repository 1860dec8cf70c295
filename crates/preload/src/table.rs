//! Which descriptors are volumes.
//!
//! Invariants: a descriptor's bit is set while it is in the map, so that every other
//! descriptor costs one load; the map's lock is held for no more than a look into it.

use client::File;
use libc::c_int;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Descriptors from here on are never volumes.
const DESCRIPTORS_MAX: usize = 1 << 16;

/// An open volume; several descriptors may share one.
pub struct Open {
    file: Mutex<File>,
    /// As `fcntl(F_GETFL)` tells them.
    pub flags: c_int,
    pub name: String,
    /// The process that opened it: nobody else may use it.
    process: u32,
}

impl Open {
    pub fn new(file: File, flags: c_int, name: &str) -> Self {
        let told = libc::O_ACCMODE | libc::O_APPEND;
        let process = std::process::id();
        Self { file: Mutex::new(file), flags: flags & told, name: name.into(), process }
    }

    pub fn file(&self) -> MutexGuard<'_, File> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends it, where this was its last descriptor.
    pub fn close(self: Arc<Self>) -> Result<(), client::Error> {
        match Arc::into_inner(self) {
            Some(open) => open.file.into_inner().unwrap_or_else(PoisonError::into_inner).close(),
            None => Ok(()),
        }
    }
}

static BITS: [AtomicU64; DESCRIPTORS_MAX / 64] =
    [const { AtomicU64::new(0) }; DESCRIPTORS_MAX / 64];
static OPEN: Mutex<BTreeMap<c_int, Arc<Open>>> = Mutex::new(BTreeMap::new());

fn bit(descriptor: c_int) -> Option<(&'static AtomicU64, u64)> {
    let place = usize::try_from(descriptor).ok().filter(|&place| place < DESCRIPTORS_MAX)?;
    Some((&BITS[place / 64], 1 << (place % 64)))
}

fn map() -> MutexGuard<'static, BTreeMap<c_int, Arc<Open>>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The volume behind a descriptor, if it is one of this process.
pub fn find(descriptor: c_int) -> Option<Arc<Open>> {
    let (word, mask) = bit(descriptor)?;
    if word.load(Ordering::Acquire) & mask == 0 {
        return None;
    }
    let open = map().get(&descriptor).cloned()?;
    (open.process == std::process::id()).then_some(open)
}

/// Ties a descriptor to a volume; false where its number is too large.
pub fn insert(descriptor: c_int, open: Arc<Open>) -> bool {
    let Some((word, mask)) = bit(descriptor) else { return false };
    map().insert(descriptor, open);
    word.fetch_or(mask, Ordering::Release);
    true
}

/// Unties a descriptor; gives what it was tied to.
pub fn remove(descriptor: c_int) -> Option<Arc<Open>> {
    find(descriptor)?; // a child of a fork leaves its parent's alone
    let (word, mask) = bit(descriptor)?;
    word.fetch_and(!mask, Ordering::Release);
    map().remove(&descriptor)
}

/// Ends everything, when the process does: what was written is on the medium.
extern "C" fn end() {
    let descriptors: Vec<c_int> = map().keys().copied().collect();
    for open in descriptors.into_iter().filter_map(remove) {
        let name = open.name.clone();
        if let Err(error) = open.close() {
            eprintln!("slackline: {name}: {error}\n  next: {}", error.next_step());
        }
    }
}

// SAFETY: the loader calls what stands in this section when the process ends, with
// nothing, and asks for nothing.
#[unsafe(link_section = ".fini_array")]
#[used]
static END: extern "C" fn() = end;
