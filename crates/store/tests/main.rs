//! The tests of this crate, but for those that need a process of their own: one program is
//! built and linked in a fraction of the time that one for each file takes.

mod common;

mod damage;
mod document;
mod fits;
mod life;
mod model;
mod naming;
mod owners;
mod parts;
mod policies;
mod power_cut;
mod record;
mod recorded;
mod rings;
mod runs;
mod services;
mod stale;
mod thin;
