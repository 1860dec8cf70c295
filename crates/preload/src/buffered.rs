//! Which `FILE`s are volumes.
//!
//! Invariant: a `FILE` is here from before the program has it until it is closed; who holds this
//! lock finds each of them alive.

use crate::lock::Lock;
use libc::{FILE, c_int};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

#[derive(Clone, Copy)]
struct Buffered {
    descriptor: c_int,
    writes: bool,
    /// The process that opened it: what a child has a copy of is its parent's to write.
    process: u32,
}

/// By the address.
static FILES: Lock<BTreeMap<usize, Buffered>> = Lock::new(BTreeMap::new());
/// How many they are, so that every other `FILE` costs one load where there are none.
static COUNT: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" {
    fn ftrylockfile(file: *mut FILE) -> c_int;
}

pub fn insert(file: *mut FILE, descriptor: c_int, writes: bool) {
    let process = std::process::id();
    FILES.lock().insert(file.expose_provenance(), Buffered { descriptor, writes, process });
    COUNT.fetch_add(1, Ordering::Release);
}

pub fn remove(file: *mut FILE) {
    if FILES.lock().remove(&file.addr()).is_some() {
        COUNT.fetch_sub(1, Ordering::Release);
    }
}

/// The descriptor of a `FILE`, if it is a volume's.
pub fn descriptor(file: *mut FILE) -> Option<c_int> {
    if COUNT.load(Ordering::Acquire) == 0 {
        return None;
    }
    FILES.lock().get(&file.addr()).map(|found| found.descriptor)
}

/// A `FILE` that is locked.
#[derive(Clone, Copy)]
pub struct Locked {
    address: usize,
    pub descriptor: c_int,
}

impl Locked {
    pub fn file(self) -> *mut FILE {
        std::ptr::with_exposed_provenance_mut(self.address)
    }
}

/// Locks, for this thread, those that this process writes and that are not among `locked` yet; gives how
/// many another thread holds.
pub fn lock_all(locked: &mut Vec<Locked>) -> usize {
    let mut others = 0;
    let files = FILES.lock();
    let ours = files.iter().filter(|(_, it)| it.writes && it.process == std::process::id());
    for (&address, &Buffered { descriptor, .. }) in ours {
        if locked.iter().any(|it| it.address == address) {
            continue;
        }
        let file = Locked { address, descriptor };
        // SAFETY: it is not freed before it is removed here, which waits for this lock.
        match unsafe { ftrylockfile(file.file()) } {
            0 => locked.push(file),
            _ => others += 1,
        }
    }
    others
}

/// Before a fork.
pub fn hold() {
    FILES.hold();
}

/// Behind it.
pub fn release() {
    FILES.release(|_| {});
}
