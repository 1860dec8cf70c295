//! The tests of this crate, but for those that need a process of their own: one program is
//! built and linked in a fraction of the time that one for each file takes.

mod common;

mod absurd;
mod bounds;
mod digest;
mod drives;
mod mechanics;
mod model;
mod online;
mod prediction;
mod profile_text;
mod profiler;
mod profiler_bus;
mod profiler_late_host;
mod thesis;
