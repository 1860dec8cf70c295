//! What happens to volumes when the process ends: what the program has written is on the medium then,
//! or standard error says that this is not known.
//!
//! The C library writes what its `FILE`s hold behind this, when no volume is open any more. So those
//! of volumes are written here first.
//!
//! Invariant: a daemon that hangs keeps no program from ending. So another thread does the work, and
//! is waited for as long as the daemon answers.

use crate::buffered::{self, Locked};
use crate::rules::rules;
use crate::table::{self, Open};
use crate::{say, set_errno};
use libc::{FILE, c_int};
use std::collections::BTreeSet;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// So often, and so long each time, a `FILE` is waited for that another thread uses.
const TRIES: u32 = 100;
const PAUSE: Duration = Duration::from_millis(10);
/// A daemon that says nothing for so long hangs.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);
/// For a disk that hangs under a daemon that does not. A full window on a busy disk takes less.
const AT_MOST: Duration = Duration::from_secs(120);

unsafe extern "C" {
    fn fflush_unlocked(file: *mut FILE) -> c_int;
    fn funlockfile(file: *mut FILE);
}

/// What two threads know of some work.
struct Work {
    left: Mutex<Left>,
    changed: Condvar,
}

#[derive(Default)]
struct Left {
    /// Volumes of which something may have to be written.
    volumes: Vec<String>,
    is_done: bool,
}

impl Work {
    fn new(volumes: Vec<String>) -> Arc<Self> {
        let left = Mutex::new(Left { volumes, is_done: false });
        Arc::new(Self { left, changed: Condvar::new() })
    }

    fn left(&self) -> MutexGuard<'_, Left> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn done(&self) {
        self.left().is_done = true;
        self.changed.notify_all();
    }

    /// Whether it is done, within so long.
    fn wait(&self, within: Duration) -> bool {
        let waited = self.changed.wait_timeout_while(self.left(), within, |left| !left.is_done);
        waited.unwrap_or_else(PoisonError::into_inner).0.is_done
    }
}

/// Ends everything, when the process does.
extern "C" fn end() {
    let _ = catch_unwind(AssertUnwindSafe(end_volumes));
}

fn end_volumes() {
    let files = locked();
    let open = each(table::find);
    if !open.is_empty() {
        let written = open.into_iter().filter(|it| it.writes());
        let work = Work::new(written.map(|it| it.name.clone()).collect());
        end_beside(&work, &files);
    }
    for file in files {
        // SAFETY: this thread has locked it.
        unsafe { funlockfile(file.file()) };
    }
}

/// Each open volume once, however many descriptors it has.
fn each(by: impl FnMut(c_int) -> Option<Arc<Open>>) -> Vec<Arc<Open>> {
    let mut open: Vec<_> = table::between(0, c_int::MAX).into_iter().filter_map(by).collect();
    open.sort_by_key(Arc::as_ptr);
    open.dedup_by(|one, other| Arc::ptr_eq(one, other));
    open
}

/// Ends all volumes on another thread, as far as the daemon does its part.
fn end_beside(work: &Arc<Work>, files: &[Locked]) {
    let (its, its_files) = (work.clone(), files.to_vec());
    let beside = std::thread::Builder::new().spawn(move || {
        take_no_signals();
        end_all(&its, &its_files);
        its.done();
    });
    if beside.is_err() {
        // A program that may have no threads.
        return end_all(work, files);
    }
    let began = Instant::now();
    while !work.wait(ANSWERS_WITHIN) {
        if began.elapsed() < AT_MOST && answers() {
            continue;
        }
        if work.wait(Duration::ZERO) {
            return;
        }
        // What the C library still does with them fails at once.
        each(table::remove).into_iter().for_each(std::mem::forget);
        let left = std::mem::take(&mut work.left().volumes);
        for name in BTreeSet::from_iter(left) {
            say(&format!(
                "slackline: {name}: the daemon does not answer, and has not confirmed what was written\n  \
                 next: look at its process (`ps`); when it answers, see what `slackline volume show` says\n"
            ));
        }
        return;
    }
}

/// On this thread: what the program does at a signal is not for it, and a daemon that has gone is told by
/// an error.
fn take_no_signals() {
    // SAFETY: a set is zeros until it is filled, and the mask is this thread's own.
    unsafe {
        let mut all = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const all, std::ptr::null_mut());
    }
}

/// Whether the daemon answers.
fn answers() -> bool {
    let asked = Work::new(Vec::new());
    let its = asked.clone();
    let beside = std::thread::Builder::new().spawn(move || {
        take_no_signals();
        if rules().client().health().is_ok() {
            its.done();
        }
    });
    beside.is_ok() && asked.wait(ANSWERS_WITHIN)
}

/// The `FILE`s of volumes, locked, so that no other thread fills or closes them meanwhile.
fn locked() -> Vec<Locked> {
    let mut locked = Vec::new();
    for _ in 0..TRIES {
        if buffered::lock_all(&mut locked) == 0 {
            return locked;
        }
        std::thread::sleep(PAUSE);
    }
    say(
        "slackline: another thread uses a FILE of a volume: what is in its buffer is not written\n  \
         next: end the threads of the program before it exits\n",
    );
    locked
}

fn end_all(work: &Work, files: &[Locked]) {
    for file in files {
        let open = table::find(file.descriptor);
        set_errno(0);
        // SAFETY: it is locked, and so nobody closes it.
        if unsafe { fflush_unlocked(file.file()) } == 0 {
            continue;
        }
        let why = io::Error::last_os_error();
        let name = open.map_or_else(String::new, |open| format!("{}: ", open.name));
        say(&format!(
            "slackline: {name}what was in the buffer of a FILE is not written: {why}\n  \
             next: close it before the program exits, which tells the program\n"
        ));
    }
    for open in each(table::remove) {
        let name = open.name.clone();
        Open::end_and_say(open);
        let mut left = work.left();
        if let Some(at) = left.volumes.iter().position(|it| *it == name) {
            left.volumes.swap_remove(at);
        }
    }
}

// SAFETY: the loader calls what stands in this section when the process ends, with
// nothing, and asks for nothing.
#[unsafe(link_section = ".fini_array")]
#[used]
static END: extern "C" fn() = end;
