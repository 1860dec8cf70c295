//! What happens to volumes at a fork: nothing in the parent, and the child has none of them.
//!
//! Invariant: nothing of the parent's is ended in the child. The two share the connections to the
//! daemon, and the child lacks the threads that would be waited for.
//!
//! A child that no handler was called for (of vfork, or of a system call of the program's own) is told
//! by its number: [`crate::table::find`].

use crate::{buffered, rules, table};

extern "C" fn before() {
    rules::hold();
    table::hold();
    buffered::hold();
}

extern "C" fn in_parent() {
    buffered::release();
    table::release();
    rules::release();
}

extern "C" fn in_child() {
    buffered::release();
    table::forget();
    rules::release();
}

extern "C" fn begin() {
    // SAFETY: the functions stay as long as the process does. Without memory for three pointers
    // nothing else would run either.
    unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
}

// SAFETY: the loader calls what stands in this section when the process begins, before anything of
// the program's, whose own handlers so run outside of these.
#[unsafe(link_section = ".init_array")]
#[used]
static BEGIN: extern "C" fn() = begin;
