//! The tests of this crate, but for those that need a process of their own: one program is
//! built and linked in a fraction of the time that one for each file takes.

mod common;
#[path = "answers/programs.rs"]
mod programs;

mod answers_in_time;
mod apart;
mod bus_set;
mod bus_small_world;
mod buses;
mod by_default;
mod cache;
mod cello;
mod chunks;
#[path = "concurrent/main.rs"]
mod concurrent;
mod contracts;
mod device_beside_copies;
mod digest;
mod ending;
mod extremes;
mod first_byte;
mod groups;
mod handles;
mod host_gaps;
mod kept_services;
mod log;
mod long_blocks;
mod many_writers;
mod memory;
mod moves;
mod odds;
mod online;
mod permissions;
mod policies;
mod power_cut;
mod priorities;
mod promises;
mod queueing;
mod reach;
mod rings;
mod semi_preemptible;
mod sweep;
mod syncs;
mod terms;
mod together;
mod together_histories;
mod traces;
mod updates;
mod whole_clock;
mod window_bytes;
mod windows;
