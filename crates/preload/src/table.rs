//! Which descriptors are volumes.
//!
//! Invariants: a descriptor's bit is set while it is in the map, so that every other
//! descriptor costs one load; the map's lock is held for no more than a look into it; nothing of
//! another process's is ended.

use crate::lock::Lock;
use crate::{real, say};
use client::{Error, File};
use libc::c_int;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Descriptors from here on are never volumes.
const DESCRIPTORS_MAX: usize = 1 << 16;

/// An open volume; several descriptors may share one.
pub struct Open {
    file: Mutex<File>,
    /// As `fcntl(F_GETFL)` tells them.
    flags: AtomicI32,
    pub name: String,
    /// Why bytes are lost that a call has told as written; the next one tells it.
    kept: Mutex<Option<Error>>,
    /// The process that opened it: nobody else may use it.
    process: u32,
}

impl Open {
    pub fn new(file: File, flags: c_int, name: &str) -> Self {
        let flags = AtomicI32::new(flags & (libc::O_ACCMODE | libc::O_APPEND));
        let process = std::process::id();
        Self { file: Mutex::new(file), flags, name: name.into(), kept: Mutex::new(None), process }
    }

    pub fn file(&self) -> MutexGuard<'_, File> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn flags(&self) -> c_int {
        self.flags.load(Ordering::Relaxed)
    }

    /// For reading, for writing, or for both: one of these flags of open(2).
    pub fn access(&self) -> c_int {
        self.flags() & libc::O_ACCMODE
    }

    pub fn writes(&self) -> bool {
        self.access() != libc::O_RDONLY
    }

    /// Whether what is written goes to the end.
    pub fn set_append(&self, yes: bool) {
        match yes {
            true => self.flags.fetch_or(libc::O_APPEND, Ordering::Relaxed),
            false => self.flags.fetch_and(!libc::O_APPEND, Ordering::Relaxed),
        };
    }

    /// Ends it, where this was its last descriptor. Where another thread is in a call of it, that one ends
    /// it, but what was written is on the medium, or its loss told, when this is answered.
    pub fn close(self: Arc<Self>) -> Result<(), Error> {
        if OPEN.lock().values().any(|other| Arc::ptr_eq(other, &self)) {
            return Ok(());
        }
        match Arc::try_unwrap(self) {
            Ok(alone) => alone.ended(),
            Err(used) if used.writes() => {
                let synced = used.file().sync();
                used.told().and(synced)
            }
            Err(_) => Ok(()),
        }
    }

    /// The same for a call that tells the program nothing of it: a person hears what went wrong.
    pub fn close_and_say(self: Arc<Self>) {
        let name = self.name.clone();
        self.close().unwrap_or_else(|error| say_of(&name, &error));
    }

    /// Ends it with the process, also where another thread is using it: that one goes no further.
    pub fn end_and_say(self: Arc<Self>) {
        let name = self.name.clone();
        let ended = match Arc::try_unwrap(self) {
            Ok(alone) => alone.ended(),
            Err(used) if used.writes() => {
                let mut file = used.file();
                let synced = file.sync();
                std::mem::forget(file);
                used.told().and(synced)
            }
            Err(_) => Ok(()),
        };
        ended.unwrap_or_else(|error| say_of(&name, &error));
    }

    fn ended(self) -> Result<(), Error> {
        let told = self.told();
        told.and(self.file.into_inner().unwrap_or_else(PoisonError::into_inner).close())
    }

    /// Keeps an error for the next call that writes, syncs or closes.
    pub fn keep(&self, error: Error) {
        *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    }

    /// Fails with what was kept, once.
    pub fn told(&self) -> Result<(), Error> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner).take();
        kept.map_or(Ok(()), Err)
    }

    fn is_ours(&self) -> bool {
        self.process == std::process::id()
    }
}

fn say_of(name: &str, error: &Error) {
    say(&format!("slackline: {name}: {error}\n  next: {}\n", error.next_step()));
}

type Map = BTreeMap<c_int, Arc<Open>>;

static BITS: [AtomicU64; DESCRIPTORS_MAX / 64] =
    [const { AtomicU64::new(0) }; DESCRIPTORS_MAX / 64];
static OPEN: Lock<Map> = Lock::new(BTreeMap::new());

fn bit(descriptor: c_int) -> Option<(&'static AtomicU64, u64)> {
    let place = usize::try_from(descriptor).ok().filter(|&place| place < DESCRIPTORS_MAX)?;
    Some((&BITS[place / 64], 1 << (place % 64)))
}

fn is_set(descriptor: c_int) -> bool {
    bit(descriptor).is_some_and(|(word, mask)| word.load(Ordering::Acquire) & mask != 0)
}

/// The volume behind a descriptor, if it is one of this process.
pub fn find(descriptor: c_int) -> Option<Arc<Open>> {
    if !is_set(descriptor) {
        return None;
    }
    let open = OPEN.lock().get(&descriptor).cloned()?;
    if !open.is_ours() {
        return None;
    }
    if !is_placeholder(descriptor) {
        // Closed by a call that no shim sees, and perhaps another file's by now.
        if let Some(before) = remove_if(descriptor, |now| Arc::ptr_eq(now, &open)) {
            drop(before);
            let_go(open);
        }
        return None;
    }
    Some(open)
}

/// Whether the kernel has nothing for this descriptor but its number ([`crate::opening::volume`]).
fn is_placeholder(descriptor: c_int) -> bool {
    // SAFETY: a question, without an argument.
    let flags = unsafe { real::fcntl(descriptor, libc::F_GETFL, std::ptr::null_mut()) };
    flags >= 0 && flags & libc::O_PATH != 0
}

/// A number that the kernel has just given to something else: the volume that had it was closed
/// unseen.
pub fn untie(descriptor: c_int) -> c_int {
    if let Some(before) = remove(descriptor) {
        let_go(before);
    }
    descriptor
}

/// Ends a volume whose descriptor was closed unseen: nobody waits for what comes of that. Another
/// process's stays as it is.
fn let_go(open: Arc<Open>) {
    if open.is_ours() {
        let _ = catch_unwind(AssertUnwindSafe(|| drop(open)));
    } else {
        std::mem::forget(open);
    }
}

/// Ties a descriptor to a volume; false where its number is too large.
pub fn insert(descriptor: c_int, open: Arc<Open>) -> bool {
    let Some((word, mask)) = bit(descriptor) else { return false };
    let before = OPEN.lock().insert(descriptor, open);
    word.fetch_or(mask, Ordering::Release);
    if let Some(before) = before {
        let_go(before);
    }
    true
}

/// Unties a descriptor; gives what it was tied to.
pub fn remove(descriptor: c_int) -> Option<Arc<Open>> {
    if !is_set(descriptor) {
        return None;
    }
    remove_if(descriptor, |_| true)
}

fn remove_if(descriptor: c_int, wanted: impl FnOnce(&Arc<Open>) -> bool) -> Option<Arc<Open>> {
    let (word, mask) = bit(descriptor)?;
    let mut map = OPEN.lock();
    // A child of a fork leaves its parent's alone.
    map.get(&descriptor).filter(|open| open.is_ours() && wanted(open))?;
    word.fetch_and(!mask, Ordering::Release);
    map.remove(&descriptor)
}

/// The descriptors of volumes from `first` to `last`.
pub fn between(first: c_int, last: c_int) -> Vec<c_int> {
    if first > last {
        return Vec::new();
    }
    OPEN.lock().range(first..=last).map(|(&descriptor, _)| descriptor).collect()
}

/// Whether this process has a volume open whose name is wanted.
pub fn has(wanted: impl Fn(&str) -> bool) -> bool {
    between(0, c_int::MAX).into_iter().filter_map(find).any(|open| wanted(&open.name))
}

/// Before a fork.
pub fn hold() {
    OPEN.hold();
}

/// Behind it, in the parent.
pub fn release() {
    OPEN.release(|_| {});
}

/// Behind it, in the child: it has no volumes.
pub fn forget() {
    OPEN.release(|map| {
        for (descriptor, open) in std::mem::take(map) {
            if let Some((word, mask)) = bit(descriptor) {
                word.fetch_and(!mask, Ordering::Release);
            }
            std::mem::forget(open);
        }
    });
}
