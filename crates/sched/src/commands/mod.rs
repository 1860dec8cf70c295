//! Commands inside a request: how a disk that never interrupts a command is kept
//! from making others wait for a whole request.
//!
//! A [`Planner`] serves requests as sequences of commands (semi-preemptible I/O,
//! section 3). A transfer goes in *chunks*, which cost nothing while the disk reads
//! on by itself or gathers writes in its buffer. A seek begins *just in time*: the
//! turn that the heads would wait out at their goal is waited out before, when
//! nothing runs and so nothing blocks. A long seek is *split*. The last chunk of a
//! write is *forced*, so that no write-back of other requests follows later. In a
//! wait that nobody needs, a small request goes for free, or the disk reads on
//! behind the last read.
//!
//! Between commands the request with the least rank goes on. One that has begun and
//! makes way has to be sought back: that is charged, and refused where the caller
//! cannot pay. [`Ways`] is the analysis of contracts whose requests are served so.
//!
//! What a disk is like comes through [`Mechanics`]. Of a disk that is known less
//! well, only chunks remain.

mod admission;
mod mechanics;
mod plan;
mod planner;

pub use admission::{Chunking, Way, Ways};
pub use mechanics::{Bounded, Mechanics, Motion, Part};
pub use plan::Plan;
pub use planner::{Account, Ended, JustInTime, Manner, Piece, Planner, Standing, Step};
