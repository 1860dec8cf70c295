//! The tests of this crate, but for those that need a process of their own: one program is
//! built and linked in a fraction of the time that one for each file takes.

mod common;

mod all;
mod containers_1999;
mod contracts;
mod index;
mod linux;
mod orders;
mod papers;
mod settings;
mod smoke;
