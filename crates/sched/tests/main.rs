//! The tests of this crate, but for those that need a process of their own: one program is
//! built and linked in a fraction of the time that one for each file takes.

mod common;
mod models;
mod world;

mod advance;
mod analysis;
mod any_order;
mod attempts;
mod behaviour;
mod chunks_small_world;
mod classes;
mod classes_small_world;
mod commands;
mod commands_admission;
mod commands_small_world;
mod cycles;
mod deep;
mod extremes;
mod gaps;
mod incremental;
mod merging;
mod mixed_commands;
mod odds;
mod over_cost;
mod overtaking;
mod random_worlds;
mod reserve;
mod shut_out;
mod small_world;
mod statistical;
mod worked_cases;
