//! What happens to volumes when the process ends: what the program has written is on the medium then.
//!
//! The C library writes what its `FILE`s hold behind this, when no volume is open any more. So those
//! of volumes are written here first.

use crate::buffered::{self, Locked};
use crate::{say, set_errno, table};
use libc::{FILE, c_int};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// So often, and so long each time, a `FILE` is waited for that another thread uses.
const TRIES: u32 = 100;
const PAUSE: Duration = Duration::from_millis(10);

unsafe extern "C" {
    fn fflush_unlocked(file: *mut FILE) -> c_int;
    fn funlockfile(file: *mut FILE);
}

/// Ends everything, when the process does.
extern "C" fn end() {
    let _ = catch_unwind(AssertUnwindSafe(end_volumes));
}

fn end_volumes() {
    let files = locked();
    end_all(&files);
    for file in files {
        // SAFETY: this thread has locked it.
        unsafe { funlockfile(file.file()) };
    }
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

fn end_all(files: &[Locked]) {
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
    for open in table::between(0, c_int::MAX).into_iter().filter_map(table::remove) {
        open.close_and_say();
    }
}

// SAFETY: the loader calls what stands in this section when the process ends, with
// nothing, and asks for nothing.
#[unsafe(link_section = ".fini_array")]
#[used]
static END: extern "C" fn() = end;
