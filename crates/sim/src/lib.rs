//! The virtual world: simulated disks, faults, programs and power cuts around
//! the *production* [`node::Node`].
//!
//! One job: let time pass. A [`World`] owns a node, its disks and the programs
//! that use it, and moves from event to event; nothing in it looks at a clock,
//! and everything is repeatable from a seed. What is found here holds for the
//! engine, which drives the same node. A [`machine`] is smaller and much quicker:
//! schedules, drives, and programs that only ask. What they ask for may come from a
//! [`workload`] or from a recorded one in [`traces`]; [`runs`] makes many of them at once.
//! [`commands`] serves the requests of one drive in commands. A [`scenario`] is a
//! person's "what if", played in a world whose disks keep no content. A [`history`] of
//! what programs asked for and were answered is checked, here and beside a daemon.

pub mod commands;
mod disk;
pub mod history;
mod keeps;
pub mod machine;
mod mechanics;
mod ordering;
mod pool;
mod programs;
mod random;
pub mod runs;
pub mod scenario;
pub mod traces;
mod windows;
pub mod workload;
mod world;

pub use crate::disk::{Fault, SimDisk, Timing};
pub use crate::keeps::{Everything, Keeps, Memory, Metadata};
pub use crate::mechanics::Known;
pub use crate::ordering::{AnyOrder, Ordering};
pub use crate::pool::{check, commit, format, open};
pub use crate::programs::{Greedy, Player, Recorder, Shared, Tally, pattern, pattern_matches};
pub use crate::random::Random;
pub use crate::windows::{Told, WindowRecorder};
pub use crate::world::{CommandEnd, Context, Program, World};
