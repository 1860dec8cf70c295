//! The tests of this crate, but for those that need a process of their own: one program is
//! built and linked in a fraction of the time that one for each file takes.

mod common;

mod answers;
mod bad_input;
mod buses;
mod bytes;
mod closed;
mod host_files;
mod kill;
mod many;
mod thin_reads;
mod windows;
