//! Standard descriptors that are volumes which another process has open.

use crate::{say, table};
use libc::c_int;
use std::sync::atomic::{AtomicBool, Ordering};

/// Which of the standard descriptors are volumes that another process has open.
static OTHERS: [AtomicBool; 3] = [const { AtomicBool::new(false) }; 3];

/// Tells a person, once, why a call on such a descriptor fails.
pub fn say_whose(descriptor: c_int) {
    let others = usize::try_from(descriptor).ok().and_then(|place| OTHERS.get(place));
    if others.is_some_and(|others| others.load(Ordering::Relaxed))
        && table::is_placeholder(descriptor)
        && others.is_some_and(|others| others.swap(false, Ordering::Relaxed))
    {
        say(&format!(
            "slackline: descriptor {descriptor} is a volume that another process has open, a shell perhaps, \
             and is not this program's: only `slackline mount DIR` can do this\n  \
             next: give each program the name of the volume, or one of them the output of all by a pipe\n"
        ));
    }
}

/// Such a descriptor is one; false where it is none of the standard ones.
pub fn note(descriptor: c_int) -> bool {
    let others = usize::try_from(descriptor).ok().and_then(|place| OTHERS.get(place));
    others.is_some_and(|others| {
        others.store(true, Ordering::Relaxed);
        true
    })
}
