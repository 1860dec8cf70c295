//! Isochronous readers and writers that measure what a program sees.
//!
//! One job: the measurements of the ABISS paper (Almesberger and van den Brink 2004,
//! section 5): programs that move a block at each step of a timetable, as its figure 13
//! gives it, beside greedy ones, against volumes under contract, volumes as best effort,
//! and ordinary files, all by the same code. Every byte is a function of its stream and
//! place, and is checked.
//!
//! Invariants: the host's own lateness is measured by itself, and never laid at the
//! storage's door; making and checking bytes is in none of the times; nothing that is
//! there is overwritten unless somebody says so.

mod clock;
mod error;
mod file;
mod load;
mod outcome;
pub mod pace;
mod pattern;
mod samples;
mod storage;
mod target;
mod volume;

pub use clock::{Clock, HostClock};
pub use error::Error;
pub use load::{Load, OPERATIONS_MAX, OnStream, Progress, Told};
pub use outcome::{
    COLUMNS, CheckedFigures, DaemonLateness, GreedyFigures, GreedyOutcome, Outcome, OutcomeFigures,
    StreamFigures, StreamOutcome, plot, table,
};
pub use pattern::{Checker, Fault, Mark};
pub use samples::{Figures, Samples};
pub use storage::Account;
pub use target::{Place, Shape};
