//! The profiler: finds out what a disk is by timing it from the outside.
//!
//! A pure state machine. It asks for commands ([`Profiler::poll`]), is told when
//! each started and finished ([`Profiler::done`]), and ends with [`Findings`]. It
//! knows no clock, does no I/O and draws its random places from a fixed seed, so
//! that the same answers always lead to the same questions. On that rests the
//! journal: the answers so far, as text, bring a new profiler to the same place.
//!
//! The procedure itself reads from top to bottom in `procedure.rs`; it is an
//! `async` function that waits for answers, and the compiler makes the state
//! machine of it.
//!
//! Techniques are those of Worthington, Ganger, Patt and Wilkes, "On-line
//! extraction of SCSI disk drive parameters" (1995: least time between completions,
//! cache probing), Schindler and Ganger, "Automated disk drive characterization"
//! (1999), Talagala et al., "Microbenchmark-based extraction of local and global
//! disk characteristics" (1999), and semi-preemptible I/O (Dimitrijevic et al.
//! 2003) section 3.4. They differ in that no command is used but read and write:
//! track boundaries are found from the *angle* at which a sector ends, which takes
//! a jump by the skew there.
//!
//! Invariants: reads only, unless [`Options::write`]; no more commands than
//! [`Options::commands_max`]; one late answer never decides anything alone.

mod beside;
mod cache;
mod chunks;
mod desk;
mod findings;
mod flat;
mod geometry;
mod held;
mod journal;
mod procedure;
mod profile;
mod question;
mod resuming;
mod rotation;
mod seeks;
mod session;
mod state_machine;
mod statistics;
mod turn;
mod two_phase;

pub use beside::{Beside, Round, Sharing, SharingSeen, Together};
pub use findings::{
    Cache, Chunk, Findings, Flat, FlatCost, Held, Measured, Mechanics, SeekPoint, Steady,
    Throughput, WriteBuffer, ZoneFound,
};
pub use question::{COMMAND_MAX, Effort, Options, Progress, Question, Step, Timing};
pub use state_machine::Profiler;
pub use two_phase::TwoPhase;
