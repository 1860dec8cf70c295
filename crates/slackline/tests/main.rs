//! The tests of this crate, but for those that need a process of their own: one program is
//! built and linked in a fraction of the time that one for each file takes.

mod support;

mod bad_disks;
mod bad_pools;
mod bytes;
mod classes;
mod demo;
mod extremes;
mod kept_services;
mod kill;
mod misunderstandings;
mod owners;
mod policy_settings;
mod profile_over_fuse;
mod refusals;
mod rwrt;
mod silence;
mod slow_sources;
mod status;
mod stop;
mod top;
