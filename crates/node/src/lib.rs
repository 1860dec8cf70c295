//! The composition: streams with their playout windows, the memory that they
//! share, one schedule per disk, and the store beneath.
//!
//! One job: decide. A [`Node`] is one pool as a state machine. It is told what
//! happened ([`Node::handle`]), asked what each disk shall do next
//! ([`Node::poll_disk`]) and what its callers shall hear ([`Node::poll_output`]).
//! It has no clock, no thread and no I/O, and never touches the bytes: it hands
//! out [`Span`]s of an arena that the driver owns. The engine and the simulator
//! drive this same type.
#![no_std]

extern crate alloc;

mod admission;
mod api;
mod best_effort;
mod commits;
mod copy_on_write;
mod core;
mod disks;
mod door;
mod groups;
mod jobs;
pub mod limits;
mod memory;
mod node;
mod overdue;
mod plan;
mod status;
mod streams;
mod volumes;
mod waiters;
mod work;

pub use admission::rates::RateSearch;
pub use admission::sweep::sweep_costs;
pub use admission::terms::{Terms, Wish};
pub use api::*;
pub use jobs::policy::kept_policy;
pub use node::Node;
pub use plan::{
    Alternative, DiskPlan, KindPlan, ModePlan, Plan, PlanTask, PlanWork, Planner, Stop, Variation,
    Wanted, Whose,
};
pub use status::{Analysed, Look};
pub use store::{REMOVED_DIRECTORY, VolumeId, ring_size};
pub use volumes::listing::{Directory, Entry, Looked};
pub use volumes::permission;
pub use work::{
    CommandEnded, DiskQueue, Work, command_ended, command_filled, command_noticed, next_command,
};
